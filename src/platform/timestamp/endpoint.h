/* endpoint.h: the UDP sockets of one NIC, with the kernel's stamps of what goes in and out.
 *
 * One socket per address family hears on the fleet's port. One per source port sends, opened when
 * first used: the source port is what spreads packets over paths, so a path is a socket. Sending
 * sockets accept nothing (a filter drops all that comes in, or strangers could fill the buffer that
 * the stamps share). All are bound to the NIC's address and, where allowed, to its device. No packet
 * is ever cut: what is longer than the interface's MTU is not sent, and a router drops what is too
 * long for it.
 *
 * Packets are queued and leave with endpoint_flush in as few calls as there are changes of socket;
 * the two of a pair in one call, some microseconds apart. Everything is non-blocking; a batch call
 * takes what waits and returns.
 *
 * Stamps are software (CLOCK_REALTIME, taken by the kernel when the driver gets the packet) or,
 * where the NIC can and was asked, hardware (the NIC's clock). How they find their packets:
 * transmit_ring.h. If a send fails in a way that leaves the kernel's count in doubt, the count is
 * started anew and what waited is reported as not stamped. */
#pragma once
#include "base/bug.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENDPOINT_BATCH        64
#define ENDPOINT_PAYLOAD_SIZE 160
#define ENDPOINT_FULL_SIZE    9160 /* where the MTU is 9,216 */
#define ENDPOINT_PORT_MAX     32

struct endpoint;

struct endpoint_config {
    const char *device;       /* "" or NULL: don't bind to one */
    struct in_addr address4;  /* 0: no IPv4 */
    struct in6_addr address6; /* zero: no IPv6 */
    uint32_t scope;           /* interface index, for link-local IPv6 */
    uint16_t port;            /* to hear on, and to send to */
    uint16_t port_base;       /* sending ports: port_base … + ENDPOINT_PORT_MAX - 1 */
    bool hardware;            /* the NIC stamps (it was set up to) */
};

struct endpoint_packet {
    uint64_t token;
    uint8_t peer[16]; /* IPv4 mapped into IPv6 */
    uint16_t source_port;
    uint8_t ttl;           /* 0: the default */
    uint8_t traffic_class; /* DSCP << 2 */
    bool want_stamp;
    uint16_t
        size; /* of the payload: zeros follow the bytes, up to ENDPOINT_FULL_SIZE; 0: just the bytes */
    uint8_t bytes[ENDPOINT_PAYLOAD_SIZE];
};

struct endpoint_received {
    uint8_t from[16];
    uint16_t source_port;
    uint8_t traffic_class; /* as it came: DSCP << 2, and two bits of ECN */
    uint16_t size;         /* 1 more than the payload's: something longer came */
    int64_t software_ns;   /* CLOCK_REALTIME; 0: none */
    int64_t hardware_ns;   /* the NIC's clock; 0: none */
    const uint8_t *bytes;  /* valid until the next call on any endpoint */
};

enum endpoint_outcome { ENDPOINT_STAMPED, ENDPOINT_NO_STAMP, ENDPOINT_NOT_SENT };
struct endpoint_stamp {
    uint64_t token;
    enum endpoint_outcome outcome;
    bool hardware;
    int64_t ns;        /* CLOCK_REALTIME, or the NIC's clock */
    int64_t called_ns; /* hardware: CLOCK_REALTIME just before the packet was sent */
};

struct endpoint_counters {
    uint64_t sent, not_sent, stamps, stamps_missing, stamps_unmatched, received, count_resets;
    int last_error; /* errno of the last failed send */
};

/* -EADDRINUSE: somebody hears on that port of that address; -EADDRNOTAVAIL: the address isn't there
 * (yet); -EPERM …; *ret_what (static text) says which step failed. */
MUST_CHECK int endpoint_open(struct endpoint **ret_endpoint, const struct endpoint_config *config,
                             const char **ret_what);
struct endpoint *endpoint_close(struct endpoint *e); /* NULL is fine; returns NULL */

/* Queues; flushes by itself when ENDPOINT_BATCH wait. */
void endpoint_queue(struct endpoint *e, const struct endpoint_packet *packet);
void endpoint_flush(struct endpoint *e);
bool endpoint_waits(const struct endpoint *e); /* for a flush */

/* Up to ENDPOINT_BATCH packets that came; 0: none (left). */
size_t endpoint_receive(struct endpoint *e, struct endpoint_received *ret_packets);
/* Next transmit stamp, or news that none will come. False: none now. */
bool endpoint_next_stamp(struct endpoint *e, struct endpoint_stamp *ret_stamp);

void endpoint_counters_get(const struct endpoint *e, struct endpoint_counters *ret_counters);
