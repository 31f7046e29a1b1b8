/* lldp.h: what a switch reports of itself on a cable (IEEE 802.1AB): its name, and the port at this end's cable.
 *
 * An LLDPDU is TLVs: 7 bits of type, 9 of length, value. The first three are chassis id, port id and time to live, in this order.
 * Of the others, port description (4) and system name (5) are read; type 0 ends it. The sender is whatever is at the other end of
 * the cable, without authentication: so it only helps people to find the place.
 *
 * lldp_decode is total: it takes any bytes. Texts are printable ASCII, with '?' for other bytes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LLDP_ETHERTYPE 0x88cc
#define LLDP_TEXT_SIZE 64 /* longer names are cut */

struct lldp {
    /* its name; if it has none, the chassis id: a MAC address as aa:bb:…, or a text */
    char system[LLDP_TEXT_SIZE];
    /* the port id, likewise; if that is no name and there is a description, the description */
    char port[LLDP_TEXT_SIZE];
    uint16_t ttl_s; /* 0: the switch says that it leaves */
};

/* frame: begins with its destination address. False: not LLDP, or malformed; *ret is then untouched. */
bool lldp_decode(const uint8_t *frame, size_t size, struct lldp *ret);
