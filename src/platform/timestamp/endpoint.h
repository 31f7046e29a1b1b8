/* endpoint.h: the UDP sockets of one NIC, with the kernel's stamps of sent and received packets.
 *
 * One socket per address family receives on the fleet's port. One socket per source port sends; it is opened when it is first
 * used. The source port selects the path through the fabric, so each path has a socket. Sending sockets receive nothing: a
 * filter drops all incoming packets, because otherwise other programs could fill the buffer that the stamps share. All sockets
 * are bound to the NIC's address and, if permitted, to its device. No packet is fragmented: a packet that is longer than the
 * interface's MTU is not sent, and a router drops packets that are too long for it.
 *
 * Packets are queued. endpoint_flush sends them with as few calls as possible: one per change of socket. The two packets of a
 * pair go in one call, some microseconds apart. No call blocks.
 *
 * Stamps are software stamps (CLOCK_REALTIME, taken by the kernel when the driver gets the packet), or, if the NIC supports
 * them and they are configured, hardware stamps (the NIC's clock). transmit_ring.h describes how they are assigned to packets.
 * If a failed send makes the kernel's count uncertain, the count is restarted, and the waiting packets are reported as not
 * stamped. */
#pragma once
#include "base/bug.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENDPOINT_BATCH        64
#define ENDPOINT_PAYLOAD_SIZE 160
#define ENDPOINT_FULL_SIZE    9160 /* for an MTU of 9,216 */
#define ENDPOINT_PORT_MAX     32

struct endpoint;

struct endpoint_config {
    const char *device;       /* "" or NULL: not bound to a device */
    struct in_addr address4;  /* 0: no IPv4 */
    struct in6_addr address6; /* zero: no IPv6 */
    uint32_t scope;           /* interface index, for link-local IPv6 */
    uint16_t port;            /* to receive on, and to send to */
    uint16_t port_base;       /* sending ports: port_base … + ENDPOINT_PORT_MAX - 1 */
    bool hardware;            /* the NIC was set up to stamp */
};

struct endpoint_packet {
    uint64_t token;
    uint8_t peer[16]; /* IPv4 mapped into IPv6 */
    uint16_t source_port;
    uint8_t ttl;           /* 0: the default */
    uint8_t traffic_class; /* DSCP << 2 */
    bool want_stamp;
    uint16_t size; /* of the payload, padded with zeros, <= ENDPOINT_FULL_SIZE; 0: only the bytes */
    uint8_t bytes[ENDPOINT_PAYLOAD_SIZE];
};

struct endpoint_received {
    uint8_t from[16];
    uint16_t source_port;
    uint8_t traffic_class; /* as received: DSCP << 2, and two bits of ECN */
    uint16_t size;         /* 1 more than the largest payload: the packet was longer */
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

/* -EADDRINUSE: another socket uses that port of that address; -EADDRNOTAVAIL: the address does not exist (yet); -EPERM …;
 * *ret_what (static text): the step that failed. */
MUST_CHECK int endpoint_open(struct endpoint **ret_endpoint, const struct endpoint_config *config,
                             const char **ret_what);
struct endpoint *endpoint_close(struct endpoint *e); /* accepts NULL; returns NULL */

/* Queues a packet. Flushes when ENDPOINT_BATCH packets wait. */
void endpoint_queue(struct endpoint *e, const struct endpoint_packet *packet);
void endpoint_flush(struct endpoint *e);
bool endpoint_waits(const struct endpoint *e); /* true: packets wait for a flush */

/* Gets up to ENDPOINT_BATCH received packets; 0: none left. */
size_t endpoint_receive(struct endpoint *e, struct endpoint_received *ret_packets);
/* The next transmit stamp, or the report that there is none for a packet. False: nothing now. */
bool endpoint_next_stamp(struct endpoint *e, struct endpoint_stamp *ret_stamp);

void endpoint_counters_get(const struct endpoint *e, struct endpoint_counters *ret_counters);
