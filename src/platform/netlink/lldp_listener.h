/* lldp_listener.h: LLDP frames as they come in at chosen interfaces.
 *
 * One packet socket for all, that takes nothing but ethertype 0x88cc; on each interface the group address that switches
 * send to is asked for. Nothing is ever sent. Needs CAP_NET_RAW and the address family AF_PACKET: without them, or without
 * anybody who speaks LLDP, neighbours stay unknown, nothing else. */
#pragma once
#include "base/bug.h"

#include <stdint.h>

#include "wire/lldp.h"

struct lldp_listener {
    int fd; /* -1: not open */
};
/* -EPERM, -EAFNOSUPPORT, … */
MUST_CHECK int lldp_open(struct lldp_listener *ret_listener);
void lldp_close(struct lldp_listener *l);
/* From this interface too; again and again is fine. */
MUST_CHECK int lldp_listen(struct lldp_listener *l, uint32_t interface);
/* The next good one that waits, and where it came in. False: none (left). */
bool lldp_next(struct lldp_listener *l, struct lldp *ret, uint32_t *ret_interface);
