/* scheduler.h: which lane gets the next chunk: the one that should deliver it first.
 *
 * Expected delivery of `size` bytes on lane i: E_i = (b_i + size) * s_i / w_i + floor_i, where b is
 * what is unacknowledged there, s how slow it is, w its weight (0..1, core/failover), floor the
 * least delay seen in 10 s. s: by how much its chunks' delays exceeded the floor, over what was
 * unacknowledged when each was bound, of the last few. Not 1 / r, r being the delivery rate: a lane
 * that is asked for little has a low rate however fast it is, and on a short path the rate is what
 * we allow it. But no less than 1 / (all lanes' rates): what finds every lane empty is spread.
 *
 * Late binding: chunks stay in the pool until a lane can take one. If the
 * best lane is full, *wait*: to spill to the next best gains nothing and ruins its delay. Full: b_i
 * >= r_i * (round trip floor + back_i) + 4 chunks, but of these no more than r_i brings in 8 ms, or one; or the
 * kernel's buffer has no room (the caller's `room`). Where dozens of lanes share a slow link, four chunks of each would stand
 * there for longer than any switch has memory for. Of a set that has lost lanes the others hold that much more:
 * its share of a link that it has in common with others stays what it was.
 *
 * back: by how much the reports' way back took longer than the least of late. Others may fill that way. Without back such a
 * lane would have room for less than its rate brings until the report is there. Its rate would fall, its room with it, and
 * both would stay low beside empty links. And r is measured by when the reports were written: two that come together after the
 * way back was full would show more than any link carries.
 *
 * A lane that was made over a full path never saw it empty: by its own floor it would hold more than the others, and have more
 * of the link. So a lane has the least floor of all over the set's own NICs, if that is less than its own. Fast lanes
 * (32 KiB in less than 1 ms) of which half of the four chunks wouldn't fill what their own floor is longer have a longer route,
 * and keep it. Four chunks of a slow lane are 4 ms of its rate: a route that is longer by less doesn't hold it back.
 *
 * Each lane gets one chunk per 10 ms however bad it looks, so that its estimate stays fresh, but none
 * that somebody waits for; if the lane takes twice the best one's time, `slow` says that the chunk
 * should go by another lane as well. One chunk in 50 at most is spent so, 256 in a row; beyond that such
 * a lane isn't asked. After 200 ms idle, and while
 * suspect, one chunk at a time. A lane that comes to others that are known begins with one, and has
 * 4 after three acknowledgements. If a broken invariant is found the scheduler goes on as round
 * robin (scheduler_bug says which).
 *
 * Spare lanes are the standbys: over other NICs, which have their own sets to carry. A chunk goes by
 * one only if it brings the chunk four times sooner than the set's own lanes. Where those have been four
 * times as slow for 50 ms and four chunks, empty or not, their NIC carries little, and no path over it
 * is better: `away`, all lanes are equal then, and what is left on the set's own may go twice. It ends
 * when they are known to be less than twice as slow. What a spare lane's chunks told is forgotten after an idle second.
 * Lanes that owe an answer are at least as slow as they have been silent.
 *
 * One per lane set, sender's end. No allocation; plain struct. About 30 ns a pick with 4 lanes. */
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
    double rate;       /* bytes per ns; 0 unknown */
    double late_ns;    /* of the last chunks: delay beyond the floor, */
    double late_bytes; /* and what was unacknowledged when they were bound, they included */
    const struct lane_load *load; /* unacknowledged, as the sender counts it; NULL: nothing */
    struct least floor_ns;        /* of round trips */
    struct mono bound_at;         /* last chunk bound */
    struct mono acked_at;         /* last acknowledgement */
    struct mono silent_at;        /* it owes an answer, and nothing came since then */
    bool limited; /* the sender had less to send than the lane would take, since the last sample */
    bool cold;    /* idle for 200 ms: one chunk until something is acknowledged */
    double back_ns; /* by how much the way back of its last reports took longer than the least */
    uint32_t spare; /* chunks beyond rate * floor */
    uint64_t run_bytes, run_chunks; /* acknowledged since run_at, while never empty */
    struct mono run_at;
};
struct scheduler {
    struct scheduler_lane lanes[LANE_MAX];
    const struct lane_load *loads; /* by lane; NULL: there is no sender */
    uint32_t lane_count;           /* of those that carry */
    uint32_t wanted;               /* own lanes that the set has if all is well; 0: not told */
    double share;                  /* of those, so many are there for each that carries */
    double floor_ns;               /* the least over the set's own NICs, at the last pick */
    uint32_t lanes_open;           /* bit k: lanes[k] is */
    uint32_t writes;               /* bit k: its chunks are writes */
    uint32_t turn;                 /* round robin, if broken */
    bool round_robin;
    bool slow;      /* the last pick asks how a lane is that takes twice the best one's time */
    uint32_t owed;  /* in 1/50 of a chunk: what may be sent twice */
    bool away;      /* spare lanes carry as much as any: the set's own NICs are far slower */
    uint32_t spare; /* of the last pick */
    struct mono away_since; /* how slow they are says the opposite since; MONO_NEVER: it doesn't */
    bool one_way;           /* all lanes lead over the same memory: the first carries all it can */
    struct bug_note bug;
};

/* One lane as the caller sees it now. */
struct scheduler_choice {
    uint32_t usable;          /* bit k: takes chunks (watch_carriers) */
    uint32_t room;            /* bit k: its socket takes bytes now */
    uint32_t spare;           /* bit k: of those, over other NICs than the set's own */
    uint32_t apart;           /* bit k: a standby, needed or not */
    uint32_t one;             /* bit k: one chunk at a time (suspect, on probation) */
    double weights[LANE_MAX]; /* 0..1 */
    bool urgent;              /* somebody waits for it: not to find out how a lane is */
};

/* What was acknowledged of a lane. */
struct scheduler_acked {
    uint32_t chunks;
    uint64_t bytes;
    struct mono sent; /* when the newest was bound */
    uint64_t load;    /* unacknowledged on the lane then, it included */
    bool alone;       /* it found the lane empty */
    int64_t back_ns;  /* the report's way back took so much longer than the least; 0: not known */
};

void scheduler_init(struct scheduler *s, struct mono now);
/* What is unacknowledged on each lane (sender_loads), from now on; must stay. */
void scheduler_loads(struct scheduler *s, const struct lane_load *loads);
/* FOLIOT_MODE below full, or to compare: plain turns, still full lanes left out. */
void scheduler_round_robin(struct scheduler *s, bool on);
/* The peer is a process of this machine: no path is better than another, and none can be contended. Then fewer lanes and
 * larger chunks cost both ends less: the first lane that can take a chunk gets it, and it is as large as may be. Less than
 * 1 MiB fill no lane, in however many chunks: the receiver looks at the other lanes more seldom. */
void scheduler_one_way(struct scheduler *s, bool on);
/* The set has so many lanes of its own at once; the most that were count. */
void scheduler_on_lanes(struct scheduler *s, uint32_t count);
/* A lane's new epoch: estimates start anew; rtt: its connect's, or < 0. */
void scheduler_lane_open(struct scheduler *s, struct mono now, uint32_t lane, struct span rtt);
void scheduler_lane_down(struct scheduler *s, uint32_t lane);
/* Until it is down, its chunks are writes of a queue pair. Each has a header and two acknowledgements of its own: of small chunks
 * these are most of what a slow lane carries. */
void scheduler_lane_writes(struct scheduler *s, uint32_t lane);
/* A chunk was bound to it, and is in its load. */
void scheduler_on_bound(struct scheduler *s, struct mono now, uint32_t lane);
/* Some were acknowledged, and are out of it. */
void scheduler_on_acked(struct scheduler *s, struct mono now, uint32_t lane,
                        const struct scheduler_acked *acked);
/* The pool had nothing for lanes that would have taken more: rates are lower bounds until it has.
 * */
void scheduler_on_idle(struct scheduler *s);
/* The lane for a chunk of `size` bytes, or -1: wait for an acknowledgement or for room. */
int scheduler_pick(struct scheduler *s, struct mono now, uint32_t size,
                   const struct scheduler_choice *choice);
/* The chunk size for messages not yet cut, `pending` bytes being in the pool:
 * min(rate * 1 ms, max(pending / 4 lanes, 32 KiB, on fast lanes 64)) within [8, 256] KiB. [32, 256] if the fastest lane writes.
 * 8 KiB until a rate is known.
 * Fits sender_next's wanted_size. */
uint32_t scheduler_chunk_size(const struct scheduler *s, uint64_t pending);
/* Unacknowledged bytes over rate: for watch_on_sent, and E of a further chunk. */
struct span scheduler_backlog(const struct scheduler *s, uint32_t lane);
struct span scheduler_expected(const struct scheduler *s, uint32_t lane, uint32_t size);
/* Hedge what was bound before this: 3 E ago; MONO with ns INT64_MIN: nothing. */
struct mono scheduler_hedge_before(const struct scheduler *s, struct mono now, uint32_t lane);
/* Does as much take less than half the time on that lane as on the other one, beyond their floors? 1 yes, 0 no, -1: not known. */
int scheduler_better(const struct scheduler *s, uint32_t lane, uint32_t than);
uint64_t scheduler_unacked(const struct scheduler *s); /* bytes, of all lanes */
double scheduler_rate_bps(const struct scheduler *s,
                          uint32_t lane); /* bits per second; 0 unknown */
const struct bug_note *scheduler_bug(const struct scheduler *s);
