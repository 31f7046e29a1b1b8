/* hop.h: routers' answers to probes with a small TTL: ICMP "time exceeded" (and "port unreachable").
 *
 * One raw ICMP socket per address family receives all of them. A filter in the kernel drops everything else. The quote of the
 * probe identifies it: source address and port, destination, and, if the quote is long enough (RFC 1812 asks for it; many
 * routers quote only 8 bytes), the probe's own bytes. It needs CAP_NET_RAW. Without it hops stay unknown; nothing else is
 * affected.
 *
 * Parsing is total: any bytes are allowed. */
#pragma once
#include "base/bug.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hop_answer {
    uint8_t router[16];      /* the answering router; IPv4 mapped */
    uint8_t source[16];      /* of the probe: the own address */
    uint8_t destination[16]; /* the peer's */
    uint16_t source_port, destination_port;
    uint8_t unreachable; /* port unreachable: from the peer's host itself */
    uint8_t no_route;    /* the router has no route: the probe ended there */
    uint8_t quoted;      /* bytes of payload that follow */
    uint8_t payload[160];
};

/* Parses a datagram of a raw IPv4 socket (with its IP header), or of a raw ICMPv6 socket (without; `router` is given). False:
 * no answer to a UDP packet. */
bool hop_parse4(const uint8_t *bytes, size_t size, struct hop_answer *ret_answer);
bool hop_parse6(const uint8_t *bytes, size_t size, const uint8_t router[16],
                struct hop_answer *ret_answer);

struct hop_listener {
    int fd4, fd6; /* -1: not open */
};
/* -EPERM: no CAP_NET_RAW. One working family is enough. */
MUST_CHECK int hop_open(struct hop_listener *ret_listener);
void hop_close(struct hop_listener *h);
/* Gets the next answer; false: none. */
bool hop_next(struct hop_listener *h, struct hop_answer *ret_answer);
