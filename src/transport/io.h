/* io.h: the transport's whole outside world in one table: connections, clocks, randomness.
 *
 * tcp.c fills it with Linux sockets. The simulator fills it with its own, and so runs the real transport code with simulated
 * networks, seeds and pauses. Nothing in src/transport reads a clock, draws a random number or touches a socket except by this
 * table.
 *
 * A connection is a small number that the driver gave, never negative. All calls return at once. They may be made from several
 * threads, as long as no two of them act on one connection at a time; wait() is for the housekeeping thread only, kick() for all.
 *
 * Times: `now` is the host's raw clock, which never jumps. A stamp is fleet time if the agent's page has it, else the raw clock
 * moved by a constant (half_ns IO_HALF_UNKNOWN): such delays are only good for comparing lanes of one pair. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/bug.h"
#include "base/time.h"

#define IO_HALF_UNKNOWN UINT32_MAX
#define IO_IN           1u /* bytes, a connection, or its end can be read */
#define IO_OUT          2u /* connected, or there is room again */

#define IO_TAG_LINKS (UINT64_MAX - 1) /* of an event from wait(), not armed: some link changed */

/* IPv4 as ::ffff:a.b.c.d. */
struct io_address {
    uint8_t ip[16];
    uint32_t scope; /* interface index of a link-local address, else 0 */
    uint16_t port;  /* in the host's byte order */
};

struct io_stamp {
    struct fleet_time at;
    /* half of the interval that holds the truth; IO_HALF_UNKNOWN: not synchronised */
    uint32_t half_ns;
    /* low bits of timeline and epoch, mixed: stamps with different values can't be compared */
    uint32_t epoch;
    bool kernel; /* by kernel or NIC, not by this process when it read the data */
};

struct io_connect {
    struct io_address from; /* port 0: any */
    struct io_address to;
    const char *device;    /* leave by this device; NULL: as routed */
    uint32_t notsent;      /* bytes that may wait unsent in the kernel; 0: the kernel's default */
    uint8_t traffic_class; /* DSCP << 2; 0: unmarked */
    bool here;             /* `to` is this machine: there is no network on the way */
};

struct io_info { /* the kernel's data about a connection */
    bool known;  /* false: there are none, and all fields below are 0 */
    uint64_t segments_out;
    uint64_t retransmits;
    uint64_t bytes_acked;
    uint32_t rtt_ns, rtt_var_ns, rtt_ns_min; /* 0: not measured yet */
    uint32_t resend_ns;     /* the resend timeout of the last segment; 0: not known */
    uint32_t unacked, lost; /* segments */
    uint64_t ack_age_ns;    /* time since the peer's kernel was heard last; 0: not known */
    uint32_t backoff;       /* retransmission timeouts in a row */
    bool shut;              /* the peer takes no data now, and answers so */
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
    void (*random)(struct io *io, void *bytes, size_t size); /* good enough for keys */

    /* A listener at that address (its port is ignored), on a port of [low, high], both 0: any. A driver may hold back silent
     * connections for a while. -EADDRINUSE: no port is free. */
    int (*listen)(struct io *io, const struct io_address *at, uint16_t low, uint16_t high,
                  int *ret_conn, uint16_t *ret_port);
    /* -EAGAIN: nobody connected; -EMFILE and so on. */
    int (*accept)(struct io *io, int listener, int *ret_conn, struct io_address *ret_local,
                  struct io_address *ret_peer);
    /* Settings for an accepted connection, which carries our data, too: as connect would have set them (notsent, traffic_class,
     * here). */
    void (*carry)(struct io *io, int conn, const struct io_connect *how);
    /* Begins to connect. */
    int (*connect)(struct io *io, const struct io_connect *connect, int *ret_conn);
    /* 0: it is connected, and from which port; -EAGAIN: not yet; else why it failed. */
    int (*connected)(struct io *io, int conn, struct io_address *ret_local);

    /* The number of bytes taken; -EAGAIN: no room. */
    ssize_t (*send)(struct io *io, int conn, const struct iovec *parts, int count);
    /* The number of bytes received; 0: the peer ended it; -EAGAIN. *ret_stamp: when the last of them arrived; set if bytes came
     * and it isn't NULL. */
    ssize_t (*receive)(struct io *io, int conn, const struct iovec *parts, int count,
                       struct io_stamp *ret_stamp);
    /* reset: data that is sent but not delivered is dropped, and the peer is told. */
    void (*close)(struct io *io, int conn, bool reset);
    /* It may also restart data that hangs in this host. */
    void (*info)(struct io *io, int conn, struct io_info *ret);
    void (*pace)(struct io *io, int conn, uint64_t bytes_per_s); /* UINT64_MAX: no pacing */

    /* One event, once, from wait(); events 0: none. */
    int (*arm)(struct io *io, int conn, uint64_t tag, uint32_t events);
    /* Sleeps until an armed event, a kick or that moment; returns the number of events. */
    int (*wait)(struct io *io, struct mono until, struct io_event *ret_events, int capacity);
    void (*kick)(struct io *io);

    /* The device's link: 1 up, 0 down, -errno; *ret_downs: how often it went down so far. */
    int (*carrier)(struct io *io, const char *device, uint32_t *ret_downs);

    /* A message for people, each one once. False: no new one. NULL: there are never any. */
    bool (*trouble)(struct io *io, char *text, size_t size);
};

/* True for an IPv4 address, or one that is mapped into IPv6. io_address_same_ip() ignores ports. */
bool io_address_is_v4(const struct io_address *address);
bool io_address_same_ip(const struct io_address *a, const struct io_address *b);
/* "10.0.0.1:4791", "[fd00::1]:4791"; text: at least 64 bytes. */
#define IO_ADDRESS_TEXT 64
const char *io_address_text(const struct io_address *address, char text[static IO_ADDRESS_TEXT]);
