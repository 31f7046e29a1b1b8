/* traffic_port.h: source ports that spread flows over the trunks as evenly as can be.
 *
 * ECMP hashes addresses and ports; ports drawn at random put 2 of 4 flows on one trunk more often than not. The
 * leaf's kernel tells by which next hop it would forward a given flow (RTM_GETROUTE with ports), so a few
 * candidates are asked about and the one whose trunk carries least is taken. */
#pragma once
#include "lab/traffic_socket.h"

struct traffic_ports;

struct traffic_ports *traffic_ports_new(void);
void traffic_ports_free(struct traffic_ports *p);
/* Sets link->source_port; *ret_trunk: the leaf's interface index it will take (0: unknown, any port was taken). Moves
 * this process to another namespace. */
MUST_CHECK int traffic_ports_choose(struct traffic_ports *p, struct traffic_link *link,
                                    int *ret_trunk);
