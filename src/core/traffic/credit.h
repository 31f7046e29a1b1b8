/* credit.h: a receiver that many send to at once asks for just so much that its link stays full.
 *
 * What stands before a NIC delays whatever comes to it, by each lane and from everybody alike. So the *least* delayed
 * chunk of an interval tells how long the shared queue stood (as in CoDel, RFC 8289): a burst, or a trunk that some lanes
 * share with others, leaves some chunk quick. While even that one waits for longer than `target`, and two senders or more
 * have more for us than our link takes, all of them together get a window W of bytes on their way, each communicator W / N:
 *
 *   begin            three such intervals in a row: W = needed(q, e)
 *   q > target       W -= rate * (q - target), by half at most: what stands in the queue isn't asked for again. But W
 *                    doesn't fall below needed(target, e)
 *   q < target / 2   W += rate * target / 2, or W / 8 if less comes than before: the link shall not run dry
 *   end              W has grown to eight times what is needed, or nobody but one sends for 100 ms
 *
 * target = max(half a round trip, two chunks at the rate received, 20 us, `noise`).
 * needed(q, e) = most * (round trip + q + e): what is under way (Little's law) if q stands here and e elsewhere. e is
 * the mean delay of chunks beyond the least: where all send to all, each sender's own NIC and each trunk may have a
 * queue. What waits there is no queue of ours, and without it our link would run dry. most: the largest rate of late; a
 * sixteenth of it is forgotten in an interval.
 *
 * More than our link takes: a sender that has data for k receivers has 1/k of its link for us. Where all send to all
 * these shares add up to one link: each sender's own NIC divides what comes here, and what stands before us is a burst.
 * Limits there make equal windows of unequal round trips: short ones take the link, long ones are late, and it runs dry.
 *
 * Off when it does harm: limits hold, the queue stands none the less, and for eight intervals less
 * than 0.9 comes of what came before: others take what we leave. Then no limits for 1 s, doubled each
 * time up to 64 s. Off in vain, for 8 s at least: after half a second of limits e is still more than twice max(q, target) in
 * more than a third of all intervals, and less comes than came without limits. (If as much comes, what waits elsewhere waits
 * because of our queue: segments that it dropped go again.) Off for good on a bug of its own (credit_bug).
 *
 * Several processes on one NIC need not know of each other: each sees the same queue and leaves the same part of it.
 *
 * One per receiving NIC of a process, shared by its sets (the caller locks); told the sums of each set now and
 * then, not each chunk. Plain struct, no allocation. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/time.h"

#define CREDIT_UNLIMITED     UINT64_MAX
#define CREDIT_QUEUE_UNKNOWN INT64_MAX

/* What came, and in what time; of late: beyond half a second both are halved. */
struct credit_mean {
    double bytes;
    int64_t ns;
};

struct credit {
    uint32_t interval; /* number of the present one, from 1 */
    struct mono began;
    /* of the present interval */
    uint64_t bytes;
    int64_t queue_ns;
    double delay_ns; /* sum over `delays` chunks of how long each waited, wherever */
    uint32_t delays;
    uint32_t sets, comms, chunk_now;
    double demand; /* of these sets, in links: 1 / receivers each */
    /* of the last one */
    double rate;           /* bytes per ns; 0: nothing came */
    double rate_most;      /* of late */
    int64_t queue_last_ns; /* CREDIT_QUEUE_UNKNOWN */
    int64_t elsewhere_ns;  /* mean delay of its chunks beyond that queue */
    uint32_t active;       /* communicators that something came for */
    uint32_t chunk;        /* largest, or of the present one */
    int64_t rtt_ns, noise_ns;
    uint32_t standing;             /* intervals in a row with a queue that stood */
    struct credit_mean free, held; /* what comes from many, without limits and with */
    int elsewhere; /* two for each interval in which chunks waited elsewhere, less the others */
    double window; /* W; 0: no limit */
    struct mono limited;    /* since when it is there */
    double rate_before;     /* least of the intervals that led to it */
    uint32_t poor;          /* intervals in a row with less than that */
    struct mono alone;      /* since when nobody but one sends; MONO_NEVER */
    struct mono barred;     /* no limits before */
    struct span bar;        /* the next one's length */
    uint64_t begins, harms; /* how often */
    struct bug_note bug;
};

/* Arrivals of one set since its last report. */
struct credit_arrivals {
    uint64_t bytes;
    int64_t queue_ns; /* least delay above the sender's floor; CREDIT_QUEUE_UNKNOWN */
    double delay_ns;  /* sum over `delays` chunks of that delay */
    uint32_t delays;
    int64_t noise_ns;   /* how far floors may be off: clocks that nobody steers drift */
    uint32_t chunk;     /* largest */
    uint32_t comms;     /* that something came for since the set's last interval */
    uint32_t receivers; /* that its sender has data for, by that NIC; 0: not told, like 1 */
    bool first;         /* something came, for the first time in this interval (credit.interval) */
};

#define CREDIT_NO_ARRIVALS ((struct credit_arrivals){.queue_ns = CREDIT_QUEUE_UNKNOWN})

void credit_init(struct credit *c, struct mono now);
void credit_on_arrivals(struct credit *c, struct mono now, const struct credit_arrivals *arrivals);
/* Least round trip to any sender. */
void credit_on_rtt(struct credit *c, struct span rtt);
/* Ends the interval if it is time. */
void credit_tick(struct credit *c, struct mono now);
/* For each communicator, in bytes: at least the largest chunk; CREDIT_UNLIMITED. */
uint64_t credit_window(const struct credit *c);
const struct bug_note *credit_bug(const struct credit *c);
