/* spread.h: the time between the two packets of a pair at their arrival: it shows whether a link on the way takes longer for a
 * packet than before.
 *
 * The two packets leave back to back. A link that needs longer for a packet than their distance delays the second one. So they
 * arrive as far apart as a packet takes on the slowest link: at 5 % of the rate 20 times as far. The other cause is a foreign
 * frame between them, which adds a random part of its own time. A slow link differs from that in two ways:
 *   - a rate is constant. So gaps of many pairs are alike, and the pairs of all paths together show the time that the slow
 *     link takes (gaps.h);
 *   - each packet takes longer there in any case. So a packet that waited for less did not cross the slow link.
 *
 * With the known gap of the slow link, a pair is
 *   - *narrow* if it waited for less than it must have waited on the slow link: SPREAD_WAIT of slow_ns - least_ns, plus the
 *     addition of a queue behind it, if the two arrive closer together than the slow link leaves them;
 *   - *wide* if its packets arrive as far apart as the slow link leaves them;
 *   - otherwise it shows nothing.
 *
 * A standing queue makes all pairs of a port wait for too long to be narrow. Frames of one size between the packets of some pairs
 * leave gaps that are alike, and nothing would contradict them. So pairs with such a wait are weighed for each path: each pair
 * that is no further apart than usual cancels SPREAD_CLOSE wide ones after it (spread_weigh). On a slow link only a queue behind
 * it pushes some pairs together.
 *
 * A wait is a delay beyond the path's least one. A clock error shifts all delays between two hosts, up in one direction and down
 * in the other. No wait is negative, so the pairs of both directions bound the error (struct spread_clock), and only that much is
 * subtracted. If the waits of one direction alone moved, or those of the other direction are unknown, a floor may be wrong
 * instead. Then a pair with the slow link's gap shows nothing if it is narrow or wide only because of the subtraction.
 *
 * The usual gap is learned from narrow pairs that weren't pushed together on the way: a fabric with slower trunks than NICs has
 * wider pairs from the start. All zero is the initial state. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define SPREAD_WIDER    1.5
#define SPREAD_LEARN    9 /* pairs, before the first one is judged */
#define SPREAD_FLOOR_NS (10 * NS_PER_S)
#define SPREAD_CLOCK_NS NS_PER_S
#define SPREAD_WAIT     0.95
#define SPREAD_ALIKE_NS 50.0  /* the noise of two stamps */
#define SPREAD_ALIKE    0.005 /* and of two oscillators */

/* Full ports leave the fewest pairs so far apart: at most 18 % of those that count, and 58 % at 1.4 times the usual distance. So
 * these pairs count twice. So does a pair that waited exactly as long as a slow link makes it wait, because it met no queue: a
 * pair with a frame in between, behind a full port, waited for any part of a frame. */
#define SPREAD_FAR 4.0

#define SPREAD_CLOSE      1 /* wide pairs that a close one cancels */
#define SPREAD_CLOSE_MOST 8 /* and that several of them cancel at most */

/* _LATE: it waited for so long that a pair with the usual distance isn't narrow: such a pair is close, too. */
enum spread { SPREAD_NOTHING, SPREAD_NARROW, SPREAD_WIDE, SPREAD_WIDE_LATE, SPREAD_CLOSE_LATE };

struct spread_watch {
    uint64_t way; /* the way of these data */
    uint32_t learned;
    double usual_ns;                    /* at arrival */
    struct mono floor_at;               /* when this window began */
    int64_t floor_now, floor_before[2]; /* the least delay of this window and of the last two */
    uint32_t floors;                    /* windows before this one */
    uint32_t close;                     /* wide pairs that count for nothing (spread_weigh) */
};

/* Between two NICs: the least delays of each direction beyond their floors, [0] of this window, [1] of the last. */
struct spread_clock {
    struct mono start;
    bool known[2][2];
    int64_t low[2][2]; /* [direction: 0 out] */
};

/* The part of a pair that matters once the slow link's gap is known. */
struct spread_pair {
    struct mono at;
    uint64_t way;
    uint32_t path; /* a number of the caller */
    uint32_t sent_ns, heard_ns, usual_ns;
    int32_t wait_ns;
    uint32_t host; /* the peer's host, a number of the caller */
    /* subtracted from its wait although the other direction doesn't confirm it (spread_wait) */
    int32_t doubt_ns;
};

/* Adds one pair of that way, with the delay of its faster packet. `keep`: the floor is kept, because a slow link is known. False:
 * too little is known of the way yet. True: returns the pair without path and way; its wait is as the clocks give it. */
bool spread_add(struct spread_watch *w, struct mono now, uint64_t way, int64_t sent_ns,
                int64_t heard_ns, int64_t owd_ns, bool keep, struct spread_pair *ret_pair);
/* Subtracts the certain clock error from the wait of a pair. */
void spread_wait(struct spread_clock *c, struct mono now, bool out, struct spread_pair *pair);
bool spread_is_wide(const struct spread_pair *pair);
bool spread_alike(double a_ns, double b_ns);
/* least_ns: the least time of a packet on such a link at full rate. */
enum spread spread_judge(const struct spread_pair *pair, double slow_ns, double least_ns);
/* For how many a wide pair counts (SPREAD_FAR). */
uint32_t spread_worth(const struct spread_pair *pair, double slow_ns, double least_ns);
/* The verdict to report for a pair of that way with this judgement: never a late one. */
enum spread spread_weigh(struct spread_watch *w, enum spread spread);
