/* host_leaf.h: the host's raw clock as a leaf of its NICs' clocks (hardware stamps).
 *
 * Each NIC's clock is a member of the consensus; the host's clock is not. A bracket (mono before, nic_time, mono after) shows
 * that the NIC's clock was read between two readings of the host's clock. Time flows only from NICs to the host, so the asymmetry
 * of PCIe never enters the consensus. The host's line is the median over its NICs of F_nic(nic clock), taken at the brackets,
 * with one small filter for each NIC's offset and rate. Its hard bound is the NIC's bound plus the possible distance between
 * filter and NIC clock, by the last brackets alone. The filter is only a mean, and one direction over PCIe can become longer by
 * microseconds.
 *
 * If the line's error is above a millisecond (the host's clock stood still in a suspend), the line jumps, in a new epoch and
 * DISRUPTED. A smaller error is corrected slowly and added to both bounds.
 *
 * Cost: under 2 KiB a NIC, all in place; a bracket is O(1), a tick O(NICs). */
#pragma once
#include "base/limits.h"
#include "core/clock/clock.h"
#include "core/clock/drift.h"

struct host_leaf_bracket {
    struct mono before;
    struct nic_time nic;
    struct mono after;
};

struct host_leaf_nic {
    bool used;
    bool seen;
    struct mono r;         /* the filter's origin */
    int64_t nic_minus_ns;  /* nic clock - host clock at r, whole ns */
    double fraction, rate; /* its fraction, and the rate */
    double p00, p01, p11;
    double lower_ns, upper_ns; /* NIC clock - filter at r, from brackets alone */
    struct drift drift;
    double noise2;     /* variance of the brackets' middles, ns^2: from second differences */
    double least_ns;   /* the least recent width ... */
    double excess2;    /* ... and the mean square of the brackets' excess over it */
    double wander2;    /* the wander that the filter assumes, ns^2/s^3: from its own innovations */
    double surprise;   /* the last innovation, over its expected deviation */
    int64_t origin_ns; /* the reference of these values: the first offset */
    double before[2];  /* the last two offsets ... */
    struct mono before_at[2]; /* ... and their times */
    unsigned before_count;
    struct mono last;
    /* brackets contradicted each other at that time; 0: no, or it was reported */
    struct mono broke;
    struct clock_terms terms;
};

struct host_leaf {
    struct host_leaf_nic nics[HOST_NIC_MAX];
    double rate_limit, rate_drift;
    struct clock_terms terms; /* of the host's clock; stamped with `nic_time` == mono */
    bool have_terms;
    uint32_t restarts; /* of the own line: gaps that are too large for slewing */
    struct mono disrupted_until;
    uint64_t refused;
};

void host_leaf_init(struct host_leaf *leaf, double rate_limit_ppm, double rate_drift_ppb_s);
/* nic: 0 … HOST_NIC_MAX - 1, the host's own count. False: the bracket does not continue earlier ones (it was refused, it is the
 * first one, or one of the two clocks stepped). */
bool host_leaf_on_bracket(struct host_leaf *leaf, struct mono now, int nic,
                          const struct host_leaf_bracket *bracket);
/* True, once, if brackets have shown that this NIC's clock broke and not the host's: not all other NICs' brackets broke with it.
 * With only one NIC the two can't be told apart; then the NIC's clock is assumed. */
bool host_leaf_nic_broke(struct host_leaf *leaf, struct mono now, int nic);
/* The NIC's clock, as its member publishes it. */
void host_leaf_on_terms(struct host_leaf *leaf, struct mono now, int nic,
                        const struct clock_terms *terms);
/* The host's clock stood still, or may have jumped: earlier brackets of all NICs' clocks are void. */
void host_leaf_on_fault(struct host_leaf *leaf, struct mono now);
void host_leaf_tick(struct host_leaf *leaf, struct mono now);
/* False until a NIC has both a bracket and terms: status UNKNOWN. The terms' nic_time is the host's mono. */
bool host_leaf_terms(const struct host_leaf *leaf, struct clock_terms *ret_terms);
/* The NIC's present clock, by its brackets; false: none yet. clock_tick() of that NIC's member gets it. */
bool host_leaf_nic_now(const struct host_leaf *leaf, struct mono now, int nic,
                       struct nic_time *ret_now);
/* The possible error of that, by the brackets. nic: one that host_leaf_nic_now() knows. */
double host_leaf_nic_error_ns(const struct host_leaf *leaf, struct mono now, int nic);
