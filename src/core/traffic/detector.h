/* detector.h: finds out why this peer's lanes are slow, from one-way delays of its lanes against each other, against their own
 * floors, and against the NIC's other peers.
 *
 * q_i = owd_i - floor_i (least of two 5 s buckets: clock offsets cancel), c = min q_i, e_i = q_i - c, theta = max(4 MAD, half the
 * floor of the round trip, 20 us), held for 8 chunks over at least 2 round trips:
 *
 *   e_i > theta on some | c > theta here | c > theta to all peers | verdict
 *   yes                 | no             | no                     | CONTENTION on those lanes
 *   no                  | yes            | no                     | INCAST, or SLOW_RECEIVER if the receiver reports that
 *   no                  | yes            | yes                    | OWN_HOST
 *   yes                 | yes            | any                    | BOTH
 *   yes (all)           | yes, all peers of a rack                | CONGESTION (the caller knows racks)
 *
 * In addition another lane must have been faster since, by the bare delay, in the last 100 ms. Otherwise a clock that was set or
 * drifts, or a floor that is older than another one, would look like a queue on the busiest lane.
 *
 * Starved: the bare delay exceeds the best lane's by more than three times c (or theta). A flow that shares a path with others
 * waits as they do, but not so much longer than on all other paths, so this one carries less than the others.
 *
 * Risen: the least bare delay, above the least floor of all lanes, exceeds four times its recent average (the mean of 30 s; at
 * least the floor of the round trip). If all lanes have one path, they wait alike, and none is contended beside the others. c
 * can't be used: the floor of a lane that never saw its path empty hides the queue. A queue is bytes over rate, and a sender on a
 * path that becomes slow has fewer bytes in flight (smaller chunks): so it is compared with the usual queue for as many bytes.
 *
 * Alike: c is above theta, and no lane is contended. The queue is before a NIC, or all lanes have one path.
 *
 * Only stamps of one kind are compared: samples that woke a process up late must not be passed. One for each set, at the sender's
 * end (delays come back in STATE); plain struct, no allocation. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"
#include "base/time.h"
#include "stats/least.h"

#define DETECTOR_WINDOW 16 /* samples of a lane that are judged */

enum detector_verdict {
    DETECTOR_CLEAR,
    DETECTOR_UNKNOWN, /* too few samples */
    DETECTOR_CONTENTION,
    DETECTOR_INCAST,
    DETECTOR_SLOW_RECEIVER,
    DETECTOR_OWN_HOST,
    DETECTOR_BOTH,
    DETECTOR_CONGESTION,
    DETECTOR_VERDICT_COUNT
};

struct detector_lane {
    bool open;
    struct least floor_ns;
    int64_t q_ns[DETECTOR_WINDOW];
    uint32_t count, next;
    int64_t smooth_ns; /* of q */
    int64_t noise_ns;  /* of q, until the next sample */
    int64_t owd_ns;    /* last */
    struct mono at;
    uint32_t over; /* consecutive samples with e > theta */
    struct mono over_since;
};
struct detector {
    struct detector_lane lanes[LANE_MAX];
    int64_t rtt_floor_ns;
    uint32_t base_over; /* consecutive samples with c > theta */
    struct mono base_since;
    int64_t theta_ns, base_ns;
    int64_t bare_ns;      /* the least bare delay, above the least floor of all lanes */
    double usual_ns;      /* of bare_ns */
    double load_bytes;    /* of this set in flight, smoothed; 0: not known */
    double usual_bytes;   /* of load_bytes, as usual_ns */
    int64_t usual_age_ns; /* of the mean: the time with samples */
    struct mono usual_at;
    bool off;
    struct bug_note bug;
};

/* Further facts. */
struct detector_context {
    uint32_t peers, peers_over;     /* of this NIC, with traffic; with detector_base_over */
    uint32_t rack_peers, rack_over; /* in the peer's rack; 0: not known */
    bool receiver_slow;             /* the time from received to consumed grows */
};
struct detector_finding {
    enum detector_verdict verdict;
    uint32_t contended; /* bit k: lane k */
    uint32_t starved;   /* of those: a fair share doesn't explain the delay */
    bool risen;         /* c rises, of late */
    bool alike;         /* c > theta has held, and no lane is contended: all may have one path */
    bool waits; /* the least bare delay is theta above the least floor: no lane has an empty path */
    int worst;  /* the lane with the largest e, or -1 */
    int64_t excess_ns; /* its e */
    int64_t base_ns;   /* c */
    int64_t theta_ns;
};

void detector_init(struct detector *d, struct mono now);
void detector_lane_open(struct detector *d, struct mono now, uint32_t lane);
void detector_lane_down(struct detector *d, uint32_t lane);
/* A measured round trip: the least one counts. */
void detector_on_rtt(struct detector *d, struct span rtt);
/* The bytes that all lanes have in flight now; called before the delay from the same report. */
void detector_on_load(struct detector *d, uint64_t bytes);
/* One chunk's one-way delay, minus length / rate (serialisation) if that is known. */
void detector_on_owd(struct detector *d, struct mono now, uint32_t lane, int64_t owd_ns);
/* c > theta has held: it counts for the NIC's other sets. */
bool detector_base_over(const struct detector *d);
void detector_judge(const struct detector *d, struct mono now,
                    const struct detector_context *context, struct detector_finding *ret_finding);
/* Whether the lane's path is better than the other one's, by the bare delay, by more than half of the other's queue. 1 yes, 0 no,
 * -1: too few samples yet. */
int detector_better(const struct detector *d, uint32_t lane, uint32_t than);
int64_t detector_queue_ns(const struct detector *d, uint32_t lane); /* smoothed q; < 0: unknown */
const char *detector_verdict_name(enum detector_verdict verdict);
