/* gaps.h: the gap on which pairs of many paths agree, as a slow link leaves it.
 *
 * Among the wide pairs (spread.h) of the last GAPS_NS, those that are alike are counted. Frames between the two packets of a pair
 * leave gaps of any length, so some pairs are alike by chance: the number follows from the gaps around them, up to a third longer
 * or shorter. A larger number, by odds of e^GAPS_ODDS, comes from a link. The link counts as slow since the moment from which the
 * agreement is most surprising; pairs from before show nothing about it.
 *
 * Frames of one size before full ports leave gaps that are alike, too. Waits (spread.h) distinguish them from a slow link.
 *
 * A gap needs the pairs of at least two peer hosts: without the host that has most of them, the others must still agree, by odds
 * of e^GAPS_SECOND. One peer's pairs may have a gap of their own, for example if that peer's NIC is slow. They need no known gap,
 * or odds twice as high. A pair is wide by one gap: its host's own, or else that of all. It is narrow if all known gaps make it
 * narrow. So a peer with forged stamps spoils its own pairs, and hides no other slow link.
 *
 * A gap is forgotten if it hasn't stood out for GAPS_NS, unless a case explains most of its pairs. A case of another slow link
 * does not keep a gap that is alike by chance. Reports about a gap are not taken back.
 *
 * Memory is fixed. Wide pairs have a ring of their own, with at most GAPS_EDGE a second for two NICs. So it lasts for GAPS_NS
 * with 16 NICs of 28 peers each and a sixth of wide pairs. If it lasts for less, chance is computed for that time.
 *
 * Cost of a packet: a pair is copied once or twice, and judged by up to four gaps. All other work is done by time:
 *   - at most once in 20 ms, one wide pair is examined, in up to 13 passes over the wide pairs of GAPS_NS, with a logarithm for
 *     each pair that is alike. If more come, some are skipped;
 *   - at most once in 100 ms, each known gap is searched in two passes, and the closest of all pairs in two;
 *   - at most twice in two seconds a gap is found, and the inference gets its paths again.
 */
#pragma once
#include "core/mesh/spread.h"

#define GAPS_RING    1024
#define GAPS_WIDE    4096
#define GAPS_HOSTS   3 /* hosts that may have a gap of their own at the same time */
#define GAPS_EDGE    32
#define GAPS_NS      (5 * NS_PER_S)
#define GAPS_LEAST   3
#define GAPS_ONCE_NS NS_PER_S /* several pairs within this time are no more surprising than one */
#define GAPS_ODDS    16.0
#define GAPS_SECOND  4.0
#define GAPS_NEAR    1.3
#define GAPS_LOW     64 /* one of so many pairs may have a bad stamp */
#define GAPS_BAD     2  /* and at least so many */
#define GAPS_ALL     UINT32_MAX

struct gap {
    double slow_ns;        /* 0: no gap is known */
    uint32_t host;         /* GAPS_ALL: several hosts agree; otherwise only this host's pairs do */
    struct mono since;     /* the time of the first pair that agreed */
    struct mono stood_out; /* the last time */
    bool held;             /* most of its pairs were explained then: it may belong to a case */
};

struct gaps_wide {
    struct mono at;
    uint32_t heard_ns;
    uint32_t host : 31, explained : 1;
};

/* The share of two NICs in the ring of wide pairs. */
struct gaps_share {
    struct mono start;
    uint32_t count;
};

struct gaps {
    struct gap all, of_host[GAPS_HOSTS];
    double
        least_ns; /* the least time of a packet on a link at full rate: pairs that a queue pushed together show it */
    struct mono looked, refreshed;
    struct mono changed[2];     /* the last change, and the one before */
    uint64_t count, wide_count; /* since the start */
    uint64_t wide_looked;       /* of those, the number that was examined or skipped */
    struct spread_pair ring[GAPS_RING];
    struct gaps_wide wide[GAPS_WIDE];
};

/* GAPS_FREE: a kept gap may be lost or replaced. GAPS_KEEP: it may only be replaced. GAPS_FIXED: neither, while it stands out, or
 * by pairs that no case explains. A gap that isn't held may always be lost. */
enum gaps_hold { GAPS_FREE, GAPS_KEEP, GAPS_FIXED };

/* explained: its path crosses an element that a case names, or there is no case. */
void gaps_add(struct gaps *g, struct gaps_share *share, const struct spread_pair *pair,
              bool explained);
/* Returns a new gap: the pairs of its host, or all, must be judged again since its beginning. NULL: none. */
const struct gap *gaps_look(struct gaps *g, struct mono now, enum gaps_hold hold);
bool gaps_known(const struct gaps *g);
/* Judges a pair by all known gaps; ret_slow_ns: the gap that makes it wide. */
enum spread gaps_judge(const struct gaps *g, const struct spread_pair *pair, double *ret_slow_ns);
/* True if the gap belongs to that host's pairs only. */
bool gaps_is_host(const struct gap *gap, uint32_t host);
/* True if a gap is known for that host's pairs only. */
bool gaps_has_own(const struct gaps *g, uint32_t host);
/* True if the pair has a gap that has been known for at most some minutes: no floor is learned from it, even if no case was
 * reported yet. */
bool gaps_is_slow(const struct gaps *g, struct mono now, uint32_t host, double usual_ns,
                  double heard_ns);
/* The gap by which this host's pairs are judged; 0: none. */
double gaps_of(const struct gaps *g, uint32_t host);
/* The kept pairs, oldest first; NULL: no more. */
const struct spread_pair *gaps_pair(const struct gaps *g, uint32_t index);
