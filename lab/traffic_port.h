/* traffic_port.h: source ports that spread flows evenly over the trunks.
 *
 * ECMP hashes addresses and ports. With random ports 2 of 4 flows often share a trunk. The leaf's kernel reports the next hop
 * of a given flow (RTM_GETROUTE with ports). So a few candidates are asked for, and the port whose trunk carries least is
 * taken. */
#pragma once
#include "lab/traffic_socket.h"

struct traffic_ports;

struct traffic_ports *traffic_ports_new(void);
void traffic_ports_free(struct traffic_ports *p);
/* Sets link->source_port. *ret_trunk: the leaf's interface that the flow will take (0: unknown; any port was taken). It moves
 * this process to another namespace. */
MUST_CHECK int traffic_ports_choose(struct traffic_ports *p, struct traffic_link *link,
                                    int *ret_trunk);
