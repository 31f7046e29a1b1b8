/* lldp_listener.h: receives LLDP frames on chosen interfaces.
 *
 * One packet socket for all interfaces accepts only ethertype 0x88cc. On each interface it joins the group address of
 * switches. It never sends. It needs CAP_NET_RAW and the address family AF_PACKET. Without them, or without LLDP in the
 * network, neighbours stay unknown; nothing else is affected. */
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
/* Also listen on this interface. Repeated calls are allowed. */
MUST_CHECK int lldp_listen(struct lldp_listener *l, uint32_t interface);
/* Gets the next valid frame, and its interface. False: none left. */
bool lldp_next(struct lldp_listener *l, struct lldp *ret, uint32_t *ret_interface);
