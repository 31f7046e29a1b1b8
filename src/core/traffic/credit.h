/* credit.h: a receiver with many senders grants just so many bytes that its link stays full.
 *
 * A queue before a NIC delays all packets to it equally, from every lane and sender. So the *least* delayed chunk of an interval
 * shows how long the shared queue stood (as in CoDel, RFC 8289): with a burst, or a trunk that some lanes share with others, some
 * chunk is still fast. If even that one waits for longer than `target`, and two senders or more have more data than the link
 * takes, all of them together get a window W of bytes in flight, each communicator W / N:
 *
 *   begin            three such intervals in a row: W = needed(q, e)
 *   q > target       W -= rate * (q - target), by half at most: bytes in the queue aren't granted again. But W
 *                    doesn't fall below needed(target, e)
 *   q < target / 2   W += rate * target / 2, or W / 8 if less comes than before: the link must not run dry
 *   end              W has grown to eight times the need, or only one sends for 100 ms
 *
 * target = max(half a round trip, two chunks at the rate received, 20 us, `noise`).
 *
 * needed(q, e) = most * (round trip + q + e): the bytes in flight (Little's law) if q stands here and e elsewhere. e is the mean
 * delay of chunks beyond the least one: if all send to all, each sender's own NIC and each trunk may have a queue. That queue
 * isn't this receiver's, and without its bytes the link would run dry. most: the largest recent rate; a sixteenth of it is
 * forgotten in an interval.
 *
 * More data than the link takes: a sender with data for k receivers has 1/k of its link for this one. If all send to all, these
 * shares add up to one link: each sender's own NIC divides the traffic, and a queue here is a burst. Limits in that case make
 * equal windows of unequal round trips: short ones take the link, long ones are late, and the link runs dry.
 *
 * Limits end when they do harm: they hold, the queue stands nevertheless, and for eight intervals less than 0.9 of the former
 * rate comes, because other traffic takes the rest. Then there are no limits for 1 s, doubled each time up to 64 s. Limits also
 * end, for 8 s at least, when they are in vain: after half a second e is still more than twice max(q, target) in more than a
 * third of all intervals, and less comes than without limits. (If as much comes, the chunks elsewhere wait because of this
 * receiver's queue: its dropped segments are sent again.) They end for good on a bug of this module (credit_bug).
 *
 * Several processes on one NIC need not know each other: each sees the same queue and reduces its share in the same way.
 *
 * One for each receiving NIC of a process, shared by its sets (the caller locks). It gets the sums of each set now and then, not
 * each chunk. Plain struct, no allocation. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/time.h"

#define CREDIT_UNLIMITED     UINT64_MAX
#define CREDIT_QUEUE_UNKNOWN INT64_MAX

/* The bytes that came, and the time; recent: beyond half a second both are halved. */
struct credit_mean {
    double bytes;
    int64_t ns;
};

struct credit {
    uint32_t interval; /* number of the present one, from 1 */
    struct mono began;
    /* for the present interval */
    uint64_t bytes;
    int64_t queue_ns;
    double delay_ns; /* the sum of the waiting times of `delays` chunks, wherever they waited */
    uint32_t delays;
    uint32_t sets, comms, chunk_now;
    double demand; /* of these sets, in links: 1 / receivers for each */
    /* for the last one */
    double rate;           /* bytes per ns; 0: nothing came */
    double rate_most;      /* the largest recent one */
    int64_t queue_last_ns; /* CREDIT_QUEUE_UNKNOWN */
    int64_t elsewhere_ns;  /* mean delay of its chunks beyond that queue */
    uint32_t active;       /* communicators with arrivals */
    uint32_t chunk;        /* the largest chunk, or that of the present interval */
    int64_t rtt_ns, noise_ns;
    uint32_t standing;             /* consecutive intervals with a standing queue */
    struct credit_mean free, held; /* rates from many senders, without limits and with them */
    /* two for each interval in which chunks waited elsewhere, minus one for each other */
    int elsewhere;
    double window;          /* W; 0: no limit */
    struct mono limited;    /* when it began */
    double rate_before;     /* the least of the intervals that led to it */
    uint32_t poor;          /* consecutive intervals with less than that */
    struct mono alone;      /* the time since which at most one sends; MONO_NEVER */
    struct mono barred;     /* no limits before this time */
    struct span bar;        /* the length of the next pause */
    uint64_t begins, harms; /* numbers of times */
    struct bug_note bug;
};

/* Arrivals of one set since its last report. */
struct credit_arrivals {
    uint64_t bytes;
    int64_t queue_ns; /* least delay above the sender's floor; CREDIT_QUEUE_UNKNOWN */
    double delay_ns;  /* the sum of that delay over `delays` chunks */
    uint32_t delays;
    int64_t noise_ns;   /* the possible error of floors: free-running clocks drift */
    uint32_t chunk;     /* largest */
    uint32_t comms;     /* with arrivals since the set's last interval */
    uint32_t receivers; /* receivers of its sender over that NIC; 0: not reported, counts as 1 */
    bool first;         /* the first arrivals of this interval (credit.interval) */
};

#define CREDIT_NO_ARRIVALS ((struct credit_arrivals){.queue_ns = CREDIT_QUEUE_UNKNOWN})

void credit_init(struct credit *c, struct mono now);
void credit_on_arrivals(struct credit *c, struct mono now, const struct credit_arrivals *arrivals);
/* The least round trip to any sender. */
void credit_on_rtt(struct credit *c, struct span rtt);
/* Ends the interval if it is time. */
void credit_tick(struct credit *c, struct mono now);
/* For each communicator, in bytes: at least the largest chunk; CREDIT_UNLIMITED. */
uint64_t credit_window(const struct credit *c);
const struct bug_note *credit_bug(const struct credit *c);
