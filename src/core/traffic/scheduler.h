/* scheduler.h: decides which lane gets the next chunk: the one that should deliver it first.
 *
 * The expected delivery of `size` bytes on lane i: E_i = (b_i + size) * s_i / w_i + floor_i. b is the unacknowledged load there,
 * s its slowness, w its weight (0..1, core/failover), floor the least delay of 10 s. s: the excess of its last chunks' delays
 * over the floor, divided by the load when each was bound. It is not 1 / r, with the delivery rate r: a lane with little data has
 * a low rate however fast it is, and on a short path the rate is what this end allows it. But s is at least 1 / (sum of all
 * lanes' rates): chunks that find every lane empty are spread.
 *
 * Late binding: chunks stay in the pool until a lane can take one. If the best lane is full, *wait*: to use the next best one
 * gains nothing and ruins its delay. Full: b_i >= r_i * (round trip floor + back_i) + 4 chunks, of these at most what r_i brings
 * in 8 ms, or one; or the kernel's buffer has no room (the caller's `room`). If dozens of lanes share a slow link, four chunks of
 * each would stand there for longer than any switch has memory for. In a set that has lost lanes, the others hold so much more
 * that its share of a common link stays the same.
 *
 * back: the excess of the reports' way back over its recent least. Other traffic may fill that way. Without back such a lane
 * would have room for less than its rate brings until the report arrives. Its rate would fall, its room with it, and both would
 * stay low on empty links. And r is measured by the times when the reports were written: two that come together after the way
 * back was full would show more than any link carries.
 *
 * A lane that was made over a full path never saw it empty: with its own floor it would hold more than the others, and get more
 * of the link. So a lane has the least floor of all over the set's own NICs, if that is less than its own. A fast lane (32 KiB in
 * less than 1 ms) keeps its own floor if half of the four chunks would not fill the difference: it has a longer route. Four
 * chunks of a slow lane are 4 ms of its rate: a route that is longer by less doesn't hold it back.
 *
 * Each lane gets one chunk in 10 ms however bad it looks, so that its estimate stays fresh, but none that is urgent. If the lane
 * takes twice the best one's time, `slow` means that the chunk should be sent over another lane as well. At most one chunk in 50
 * is spent so, 256 consecutive ones; beyond that such a lane isn't tested. After 200 ms idle, and while suspect, it gets one
 * chunk at a time. A lane that joins known ones begins with one, and has 4 after three acknowledgements. If a broken invariant is
 * found, the scheduler goes on as round robin (scheduler_bug has it).
 *
 * Spare lanes are the standbys: over other NICs, which have their own sets to carry. A chunk uses one only if it arrives four
 * times sooner than over the set's own lanes. If those have been four times as slow for 50 ms and four chunks, empty or not,
 * their NIC carries little, and no path over it is better: `away`. Then all lanes are equal, and the rest on the set's own lanes
 * may be sent twice. It ends when they are known to be less than twice as slow. The results of a spare lane are forgotten after
 * an idle second. Lanes that owe an answer are at least as slow as they have been silent.
 *
 * One for each lane set, at the sender's end. No allocation; plain struct. About 30 ns a pick with 4 lanes. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"
#include "base/time.h"
#include "core/failover/lane_load.h"
#include "stats/least.h"

struct scheduler_lane {
    bool open;
    double rate;                  /* bytes per ns; 0: unknown */
    double late_ns;               /* for the last chunks: delay beyond the floor */
    double late_bytes;            /* and the load when they were bound, themselves included */
    const struct lane_load *load; /* unacknowledged, by the sender's count; NULL: nothing */
    struct least floor_ns;        /* of round trips */
    struct mono bound_at;         /* when the last chunk was bound */
    struct mono acked_at;         /* last acknowledgement */
    struct mono silent_at;        /* it owes an answer, and nothing came since then */
    bool limited;   /* since the last sample the sender had less to send than the lane would take */
    bool cold;      /* idle for 200 ms: one chunk until something is acknowledged */
    double back_ns; /* the excess of its last reports' way back over the least */
    uint32_t spare; /* chunks beyond rate * floor */
    uint64_t run_bytes, run_chunks; /* acknowledged since run_at, while never empty */
    struct mono run_at;
};
struct scheduler {
    struct scheduler_lane lanes[LANE_MAX];
    const struct lane_load *loads; /* by lane; NULL: there is no sender */
    uint32_t lane_count;           /* number of lanes that carry */
    uint32_t wanted;               /* the set's own lanes if all work; 0: not set */
    double share;                  /* wanted lanes for each one that carries */
    double floor_ns;               /* the least over the set's own NICs, at the last pick */
    uint32_t lanes_open;           /* bit k: lanes[k] is open */
    uint32_t writes;               /* bit k: its chunks are writes */
    uint32_t turn;                 /* for round robin, if broken */
    bool round_robin;
    bool slow;      /* the last pick tests a lane that takes twice the best one's time */
    uint32_t owed;  /* in 1/50 of a chunk: the amount that may be sent twice */
    bool away;      /* spare lanes carry as any other: the set's own NICs are far slower */
    uint32_t spare; /* of the last pick */
    /* their slowness contradicts `away` since then; MONO_NEVER: it doesn't */
    struct mono away_since;
    bool one_way; /* all lanes use the same memory: the first one carries all it can */
    struct bug_note bug;
};

/* The caller's present view of the lanes. */
struct scheduler_choice {
    uint32_t usable;          /* bit k: takes chunks (watch_carriers) */
    uint32_t room;            /* bit k: its socket takes bytes now */
    uint32_t spare;           /* bit k: of those, over other NICs than the set's own */
    uint32_t apart;           /* bit k: a standby, needed or not */
    uint32_t one;             /* bit k: one chunk at a time (suspect, on probation) */
    double weights[LANE_MAX]; /* 0..1 */
    bool urgent;              /* a request waits for it: it must not test a lane */
};

/* What was acknowledged on a lane. */
struct scheduler_acked {
    uint32_t chunks;
    uint64_t bytes;
    struct mono sent; /* when the newest was bound */
    uint64_t load;    /* unacknowledged on the lane then, itself included */
    bool alone;       /* it found the lane empty */
    int64_t back_ns;  /* the excess of the report's way back over the least; 0: not known */
};

void scheduler_init(struct scheduler *s, struct mono now);
/* The unacknowledged data on each lane (sender_loads), from now on; the array must stay. */
void scheduler_loads(struct scheduler *s, const struct lane_load *loads);
/* For FOLIOT_MODE below full, or for comparison: plain turns, but full lanes are still left out. */
void scheduler_round_robin(struct scheduler *s, bool on);
/* The peer is a process of this machine: no path is better than another, and none can be contended. Then fewer lanes and larger
 * chunks cost both ends less: the first lane that can take a chunk gets it, as large as possible. Less than 1 MiB, in any number
 * of chunks, fills no lane: the receiver polls the other lanes less often. */
void scheduler_one_way(struct scheduler *s, bool on);
/* The set has so many lanes of its own now; the largest number counts. */
void scheduler_on_lanes(struct scheduler *s, uint32_t count);
/* A lane's new epoch: estimates start anew; rtt: from its connect, or < 0. */
void scheduler_lane_open(struct scheduler *s, struct mono now, uint32_t lane, struct span rtt);
void scheduler_lane_down(struct scheduler *s, uint32_t lane);
/* Until the lane is down, its chunks are writes of a queue pair. Each has a header and two acknowledgements of its own: for small
 * chunks these are most of the traffic on a slow lane. */
void scheduler_lane_writes(struct scheduler *s, uint32_t lane);
/* A chunk was bound to it, and is in its load. */
void scheduler_on_bound(struct scheduler *s, struct mono now, uint32_t lane);
/* Some chunks were acknowledged, and left its load. */
void scheduler_on_acked(struct scheduler *s, struct mono now, uint32_t lane,
                        const struct scheduler_acked *acked);
/* The pool had nothing for lanes that would have taken more: rates are lower bounds until it has. */
void scheduler_on_idle(struct scheduler *s);
/* The lane for a chunk of `size` bytes, or -1: wait for an acknowledgement or for room. */
int scheduler_pick(struct scheduler *s, struct mono now, uint32_t size,
                   const struct scheduler_choice *choice);
/* The chunk size for messages not yet cut, with `pending` bytes in the pool: min(rate * 1 ms, max(pending / 4 lanes, 32 KiB, on
 * fast lanes 64)) within [8, 256] KiB; [32, 256] if the fastest lane writes. 8 KiB until a rate is known. It is sender_next's
 * wanted_size. */
uint32_t scheduler_chunk_size(const struct scheduler *s, uint64_t pending);
/* Unacknowledged bytes over rate: for watch_on_sent, and E of a further chunk. */
struct span scheduler_backlog(const struct scheduler *s, uint32_t lane);
struct span scheduler_expected(const struct scheduler *s, uint32_t lane, uint32_t size);
/* Chunks that were bound before this time should be hedged: 3 E ago; ns INT64_MIN: none. */
struct mono scheduler_hedge_before(const struct scheduler *s, struct mono now, uint32_t lane);
/* Whether the same amount takes less than half the time on that lane than on the other one, beyond their floors. 1 yes, 0 no, -1:
 * not known. */
int scheduler_better(const struct scheduler *s, uint32_t lane, uint32_t than);
uint64_t scheduler_unacked(const struct scheduler *s); /* bytes, of all lanes */
double scheduler_rate_bps(const struct scheduler *s,
                          uint32_t lane); /* bits per second; 0: unknown */
const struct bug_note *scheduler_bug(const struct scheduler *s);
