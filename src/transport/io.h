/* io.h: the whole outside world of the transport, in one table: connections, clocks, randomness.
 *
 * tcp.c fills it with Linux sockets; the simulator fills it with its own, and so drives the real
 * transport code with simulated networks, seeds and pauses. Nothing in src/transport reads a clock,
 * draws a random number or touches a socket past this table.
 *
 * A connection is a small number that the driver gave, never negative. All calls return at once. They
 * may be made from several threads, as long as no two of them act on one connection at a time; wait()
 * belongs to the housekeeping thread alone, kick() to everybody.
 *
 * Times: `now` is the host's raw clock, which never jumps. A stamp is fleet time where the agent's page
 * says so, else the raw clock moved by a constant (half_ns IO_HALF_UNKNOWN): delays are then good for
 * comparing lanes of one pair, and for nothing else. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/bug.h"
#include "base/time.h"

#define IO_HALF_UNKNOWN UINT32_MAX
#define IO_IN           1u /* bytes, a connection, or its end, are there to be read */
#define IO_OUT          2u /* connected, or there is room again */

#define IO_TAG_LINKS (UINT64_MAX - 1) /* of an event from wait(), not armed: some link changed */

/* IPv4 as ::ffff:a.b.c.d. */
struct io_address {
    uint8_t ip[16];
    uint32_t scope; /* interface index of a link-local address, else 0 */
    uint16_t port;  /* host's byte order */
};

struct io_stamp {
    struct fleet_time at;
    uint32_t half_ns; /* of the interval that holds the truth; IO_HALF_UNKNOWN: not synchronised */
    uint32_t
        epoch;   /* low bits of timeline and epoch mixed: stamps of different ones don't compare */
    bool kernel; /* taken by kernel or NIC, not by us when we got to it */
};

struct io_connect {
    struct io_address from; /* port 0: any */
    struct io_address to;
    const char *device;    /* leave by it; NULL: as routed */
    uint32_t notsent;      /* bytes that may wait unsent in the kernel; 0: its own */
    uint8_t traffic_class; /* DSCP << 2; 0: unmarked */
    bool here;             /* `to` is this machine: no network on the way */
};

struct io_info { /* what the kernel knows of a connection */
    bool known;  /* false: it says nothing, all below is 0 */
    uint64_t segments_out;
    uint64_t retransmits;
    uint64_t bytes_acked;
    uint32_t rtt_ns, rtt_var_ns, rtt_ns_min; /* 0: not measured yet */
    uint32_t resend_ns; /* that the last segment of all waits until it is sent again; 0: not told */
    uint32_t unacked, lost; /* segments */
    uint64_t ack_age_ns;    /* since it heard of the peer's kernel last; 0: not known */
    uint32_t backoff;       /* retransmission timeouts in a row */
    bool shut;              /* the peer takes nothing now, and says so when it is asked */
    uint32_t notsent;       /* bytes */
};

struct io_event {
    uint64_t tag;    /* as armed */
    uint32_t events; /* IO_IN, IO_OUT */
};

struct io {
    void *driver;

    struct mono (*now)(struct io *io);
    struct io_stamp (*stamp)(struct io *io);
    void (*random)(struct io *io, void *bytes, size_t size); /* fit for keys */

    /* A listener at that address (its port doesn't count), on a port of [low, high], both 0: any. A driver may keep back
     * connections that say nothing, for a while. -EADDRINUSE: none of them is free. */
    int (*listen)(struct io *io, const struct io_address *at, uint16_t low, uint16_t high,
                  int *ret_conn, uint16_t *ret_port);
    /* -EAGAIN: nobody there; -EMFILE and the like. */
    int (*accept)(struct io *io, int listener, int *ret_conn, struct io_address *ret_local,
                  struct io_address *ret_peer);
    /* What was accepted carries our own bytes, too: as connect would have set it (notsent, traffic_class, here). */
    void (*carry)(struct io *io, int conn, const struct io_connect *how);
    /* Begins to connect. */
    int (*connect)(struct io *io, const struct io_connect *connect, int *ret_conn);
    /* 0: it is connected, and from which port; -EAGAIN: not yet; else why it will not be. */
    int (*connected)(struct io *io, int conn, struct io_address *ret_local);

    /* Bytes taken; -EAGAIN: no room. */
    ssize_t (*send)(struct io *io, int conn, const struct iovec *parts, int count);
    /* Bytes got; 0: the peer ended it; -EAGAIN. *ret_stamp: when the last of them arrived; set if
     * bytes came and it isn't NULL. */
    ssize_t (*receive)(struct io *io, int conn, const struct iovec *parts, int count,
                       struct io_stamp *ret_stamp);
    /* reset: nothing sent and not yet delivered arrives any more, and the peer is told so. */
    void (*close)(struct io *io, int conn, bool reset);
    /* May also make what hangs in our own host go on. */
    void (*info)(struct io *io, int conn, struct io_info *ret);
    void (*pace)(struct io *io, int conn, uint64_t bytes_per_s); /* UINT64_MAX: don't */

    /* One event, once, from wait(); events 0: none. */
    int (*arm)(struct io *io, int conn, uint64_t tag, uint32_t events);
    /* Sleeps till an armed event, a kick or that moment; the number of events. */
    int (*wait)(struct io *io, struct mono until, struct io_event *ret_events, int capacity);
    void (*kick)(struct io *io);

    /* The device's link: 1 up, 0 down, -errno; *ret_downs: how often it went down, ever. */
    int (*carrier)(struct io *io, const char *device, uint32_t *ret_downs);

    /* Something that people should know, each once: false: nothing new. NULL: never anything. */
    bool (*trouble)(struct io *io, char *text, size_t size);
};

/* An IPv4 address, or one that is mapped into IPv6. Ports don't count for the same_ip. */
bool io_address_is_v4(const struct io_address *address);
bool io_address_same_ip(const struct io_address *a, const struct io_address *b);
/* "10.0.0.1:4791", "[fd00::1]:4791"; text: at least 64 bytes. */
#define IO_ADDRESS_TEXT 64
const char *io_address_text(const struct io_address *address, char text[static IO_ADDRESS_TEXT]);
