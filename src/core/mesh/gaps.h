/* gaps.h: the gap that pairs of many paths agree on, as a slow link leaves it.
 *
 * Of the wide pairs (spread.h) of the last GAPS_NS those count that are alike. Frames between the two of a pair leave gaps of any
 * length, so some are alike by chance: as many as the gaps around them, up to a third longer or shorter, let expect. More than
 * that, by odds of e^GAPS_ODDS, are a link's. It counts as slow since they are most surprising: what was sent before tells
 * nothing of it.
 *
 * Frames of one size before full ports leave gaps that are alike, too. What tells them from a slow link are waits (spread.h).
 *
 * A gap rests on the pairs of two peer hosts at least: without those of the host that has most of them the others still
 * agree, by odds of e^GAPS_SECOND. One peer's pairs may agree on a gap of their own, as where that peer's NIC is slow, if none is
 * known or if they agree on it by twice the odds. A pair is wide by one gap: its host's own, else the one of all. It is narrow if
 * it is so by all that are known. So a peer whose stamps are forged spoils its own pairs, and hides no other slow link.
 *
 * A gap is forgotten when it hasn't stood out for GAPS_NS, unless a case is there that most of its pairs are explained by. A case
 * of another slow link holds no gap that is alike by chance. What was told of a gap stays.
 *
 * Memory is fixed. Wide pairs have a ring of their own: of two NICs at most GAPS_EDGE a second, so that it lasts for GAPS_NS
 * where 16 NICs have 28 peers each and a sixth of the pairs is wide. Where it lasts for less, chance is counted for that time.
 *
 * Cost of a packet: a pair is copied once or twice, and judged by up to four gaps. What else is done is done by time:
 * - at most once in 20 ms a wide one is looked at, in up to 13 passes over the wide ones of GAPS_NS, a logarithm for each that is
 *   alike. Where more come, some are passed over;
 * - at most once in 100 ms each gap that is known is looked for in two passes, and the closest of all pairs are in two;
 * - at most twice in two seconds a gap comes up, and paths are told anew. */
#pragma once
#include "core/mesh/spread.h"

#define GAPS_RING    1024
#define GAPS_WIDE    4096
#define GAPS_HOSTS   3 /* that may have a gap of their own at a time */
#define GAPS_EDGE    32
#define GAPS_NS      (5 * NS_PER_S)
#define GAPS_LEAST   3
#define GAPS_ONCE_NS NS_PER_S /* within it they are no more surprising */
#define GAPS_ODDS    16.0
#define GAPS_SECOND  4.0
#define GAPS_NEAR    1.3
#define GAPS_LOW     64 /* one of so many pairs may have been stamped badly, */
#define GAPS_BAD     2  /* and so many at least */
#define GAPS_ALL     UINT32_MAX

struct gap {
    double slow_ns;        /* 0: none is known */
    uint32_t host;         /* GAPS_ALL: several agree; else the pairs of this one alone do */
    struct mono since;     /* the first pair that agreed */
    struct mono stood_out; /* last */
    bool held;             /* most of its pairs were explained then: a case may be of it */
};

struct gaps_wide {
    struct mono at;
    uint32_t heard_ns;
    uint32_t host : 31, explained : 1;
};

/* What two NICs had of the ring of wide ones. */
struct gaps_share {
    struct mono start;
    uint32_t count;
};

struct gaps {
    struct gap all, of_host[GAPS_HOSTS];
    double
        least_ns; /* what a packet takes on a link at full rate, at least: pairs that a queue pushed together show it */
    struct mono looked, refreshed;
    struct mono changed[2];     /* the last, and the one before */
    uint64_t count, wide_count; /* ever */
    uint64_t wide_looked;       /* of those, looked at or passed over */
    struct spread_pair ring[GAPS_RING];
    struct gaps_wide wide[GAPS_WIDE];
};

/* A gap that is held may be lost or replaced; replaced; neither, while it stands out or by pairs that no case explains. One that
 * isn't held may always be lost. */
enum gaps_hold { GAPS_FREE, GAPS_KEEP, GAPS_FIXED };

/* explained: its path crosses what a case names, or no case is there. */
void gaps_add(struct gaps *g, struct gaps_share *share, const struct spread_pair *pair,
              bool explained);
/* A gap that wasn't known: the pairs of its host, or all, are to be judged anew since its beginning. NULL: none. */
const struct gap *gaps_look(struct gaps *g, struct mono now, enum gaps_hold hold);
bool gaps_known(const struct gaps *g);
/* By all that is known; ret_slow_ns: the gap that makes it wide. */
enum spread gaps_judge(const struct gaps *g, const struct spread_pair *pair, double *ret_slow_ns);
/* Whether it is of that host's pairs alone. */
bool gaps_is_host(const struct gap *gap, uint32_t host);
/* Whether a gap is known of that host's pairs alone. */
bool gaps_has_own(const struct gaps *g, uint32_t host);
/* A pair of that host has a gap that has been known for some minutes at most: no floor is learned of it, though no case may be
 * told yet. */
bool gaps_is_slow(const struct gaps *g, struct mono now, uint32_t host, double usual_ns,
                  double heard_ns);
/* The gap that this host's pairs are judged by; 0: none. */
double gaps_of(const struct gaps *g, uint32_t host);
/* The pairs that are kept, oldest first; NULL: no more. */
const struct spread_pair *gaps_pair(const struct gaps *g, uint32_t index);
