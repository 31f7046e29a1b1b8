/* hop.h: routers' answers to probes with a small TTL: ICMP "time exceeded" (and "port
 * unreachable").
 *
 * One raw ICMP socket per address family hears them all; a filter in the kernel lets nothing else
 * through. What routers quote of the probe says whose it was: source address and port, destination,
 * and, where the quote is long enough (RFC 1812 asks for it, many routers give only 8 bytes), the
 * probe's own bytes. Needs CAP_NET_RAW: without it hops stay unknown, nothing else.
 *
 * Parsing is total: any bytes. */
#pragma once
#include "base/bug.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hop_answer {
    uint8_t router[16];      /* who answered; IPv4 mapped */
    uint8_t source[16];      /* of the probe: our address */
    uint8_t destination[16]; /* the peer's */
    uint16_t source_port, destination_port;
    uint8_t unreachable; /* port unreachable: the peer's host itself */
    uint8_t no_route;    /* a router that knows no way on: the probe ended there */
    uint8_t quoted;      /* bytes of payload that follow */
    uint8_t payload[160];
};

/* A datagram from a raw IPv4 socket (with its IP header), or from a raw ICMPv6 socket (without;
 * `router` given). False: not an answer to a UDP packet. */
bool hop_parse4(const uint8_t *bytes, size_t size, struct hop_answer *ret_answer);
bool hop_parse6(const uint8_t *bytes, size_t size, const uint8_t router[16],
                struct hop_answer *ret_answer);

struct hop_listener {
    int fd4, fd6; /* -1: not open */
};
/* -EPERM: no CAP_NET_RAW. One family that works is enough. */
MUST_CHECK int hop_open(struct hop_listener *ret_listener);
void hop_close(struct hop_listener *h);
/* The next answer that waits; false: none. */
bool hop_next(struct hop_listener *h, struct hop_answer *ret_answer);
