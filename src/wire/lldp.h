/* lldp.h: what a switch says of itself on a cable (IEEE 802.1AB): its name and the port that we hang on.
 *
 * An LLDPDU is TLVs: 7 bits of type, 9 of length, value. The first three are chassis id, port id, time to live, in this order;
 * then others, of which port description (4) and system name (5) are read; type 0 ends it. It comes from whoever is at the
 * other end of the cable, unauthenticated: it is good for telling people where to look, and for nothing else.
 *
 * lldp_decode is total: any bytes. Texts come out as printable ASCII, other bytes as '?'. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LLDP_ETHERTYPE 0x88cc
#define LLDP_TEXT_SIZE 64 /* longer names are cut */

struct lldp {
    char system
        [LLDP_TEXT_SIZE]; /* its name; without one the chassis id: a MAC address as aa:bb:…, or a text */
    char port
        [LLDP_TEXT_SIZE]; /* port id likewise; where that is no name and a description is given, the description */
    uint16_t ttl_s; /* 0: it says farewell */
};

/* A frame from its destination address on. False: not LLDP, or malformed; *ret is then untouched. */
bool lldp_decode(const uint8_t *frame, size_t size, struct lldp *ret);
