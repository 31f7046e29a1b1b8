/* spread.h: how far apart do the two packets of a pair arrive: does a link on the way take longer for a packet than before?
 *
 * The two leave one right behind the other. A link that needs longer for a packet than they are apart holds the second
 * one back. So they arrive as far apart as a packet takes on the slowest link: at 5 % of the rate 20 times as far. What
 * else spreads them is a frame of somebody else's between them, by a random part of what it takes. A slow link differs
 * from that in two ways:
 * - a rate is constant. So gaps of many pairs are alike, and it is the pairs of all paths together that tell how long the slow
 *   link takes (gaps.h);
 * - each packet takes longer there, whatever else happens. So what waited for less didn't cross the slow link.
 *
 * With the gap of the slow link known, a pair is
 * - *narrow* if it waited for less than it must have waited on the slow link: SPREAD_WAIT of slow_ns - least_ns, and what
 *   a queue behind it adds where the two arrive closer together than the slow link leaves them;
 * - *wide* if it arrives as far apart as the slow link leaves it;
 * - all others tell nothing.
 *
 * A standing queue makes all pairs of a port wait for too long to be narrow. Frames of one size between the two of some pairs
 * leave gaps that are alike, and nothing would speak against them. So pairs that waited for that long are weighed for each path:
 * each one that is no further apart than usual takes back SPREAD_CLOSE wide ones that come after it (spread_weigh). On a slow
 * link only a queue behind it pushes some together.
 *
 * A wait is a delay beyond the path's least one. A clock that is off shifts all delays between two hosts, those of one direction
 * up and those of the other down. Nothing waits for less than nothing, so the pairs of both directions bound what it is off by
 * (struct spread_clock), and no more than that is taken away. If the waits of one direction alone moved, or the other one's
 * aren't known, a floor may be off instead: a pair that is as far apart as the slow link leaves it tells nothing, if it is
 * narrow or wide only by what was taken away.
 *
 * What was usual is learned from narrow pairs that weren't pushed together on the way: a fabric whose trunks are slower
 * than its NICs has wider pairs from the start. All zero is the initial state. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define SPREAD_WIDER    1.5
#define SPREAD_LEARN    9 /* pairs, before any is judged */
#define SPREAD_FLOOR_NS (10 * NS_PER_S)
#define SPREAD_CLOCK_NS NS_PER_S
#define SPREAD_WAIT     0.95
#define SPREAD_ALIKE_NS 50.0  /* two stamps' noise, */
#define SPREAD_ALIKE    0.005 /* and two oscillators' */

/* Full ports leave fewest pairs so far apart: at most 18 % of those that count, and 58 % at 1.4 times as far as usual. So these
 * are evidence for two. So is one that waited for just what a slow link makes it wait, for it met no queue anywhere: what has a
 * frame between the two behind a full port waited for any part of a frame. */
#define SPREAD_FAR 4.0

#define SPREAD_CLOSE      1 /* wide ones that a close one takes back, */
#define SPREAD_CLOSE_MOST 8 /* and several of them at most */

/* _LATE: it waited for so long that one as far apart as usual isn't narrow: that one is close, too. */
enum spread { SPREAD_NOTHING, SPREAD_NARROW, SPREAD_WIDE, SPREAD_WIDE_LATE, SPREAD_CLOSE_LATE };

struct spread_watch {
    uint64_t way; /* that all this is of */
    uint32_t learned;
    double usual_ns;                    /* apart at arrival */
    struct mono floor_at;               /* when this window began */
    int64_t floor_now, floor_before[2]; /* the least delay of this window and of the last two */
    uint32_t floors;                    /* windows before this one */
    uint32_t close;                     /* wide ones that tell nothing (spread_weigh) */
};

/* Between two NICs: the least delays of either direction beyond their floors, [0] of this window, [1] of the last. */
struct spread_clock {
    struct mono start;
    bool known[2][2];
    int64_t low[2][2]; /* [direction: 0 out] */
};

/* A pair, as far as it matters once the slow link's gap is known. */
struct spread_pair {
    struct mono at;
    uint64_t way;
    uint32_t path; /* the caller's number */
    uint32_t sent_ns, heard_ns, usual_ns;
    int32_t wait_ns;
    uint32_t host; /* the peer's, the caller's number */
    int32_t
        doubt_ns; /* taken from its wait though the other direction doesn't confirm it (spread_wait) */
};

/* One pair that went that way, and the delay of the faster one. `keep`: the floor is kept, for a link is known to be slow.
 * False: too little is known of the way yet. True: the pair, without path and way, its wait as the clocks have it. */
bool spread_add(struct spread_watch *w, struct mono now, uint64_t way, int64_t sent_ns,
                int64_t heard_ns, int64_t owd_ns, bool keep, struct spread_pair *ret_pair);
/* The wait of a pair becomes the one without what a clock must be off by. */
void spread_wait(struct spread_clock *c, struct mono now, bool out, struct spread_pair *pair);
bool spread_is_wide(const struct spread_pair *pair);
bool spread_alike(double a_ns, double b_ns);
/* least_ns: what a packet takes on such a link at its full rate, at least. */
enum spread spread_judge(const struct spread_pair *pair, double slow_ns, double least_ns);
/* For how many a wide pair counts (SPREAD_FAR). */
uint32_t spread_worth(const struct spread_pair *pair, double slow_ns, double least_ns);
/* What is to be told of a pair of that way, judged so: no late one. */
enum spread spread_weigh(struct spread_watch *w, enum spread spread);
