/* host_leaf.h: the host's raw clock as a leaf on its NICs' clocks (hardware stamps).
 *
 * Each NIC's clock is a member of the consensus; the host's clock is not. A bracket (mono before,
 * nic_time, mono after) says that the NIC's clock was read between two readings of the host's. Time
 * flows from NICs to the host only, so the asymmetry of PCIe never enters the consensus. The host's
 * line is the median over its NICs of F_nic(nic clock), taken at the brackets, with one small
 * filter per NIC for offset and rate; its hard bound is the NIC's plus how far from the
 * filter the NIC's clock can be by the last brackets alone: the filter is a mean, and one way over
 * PCIe can grow longer by microseconds.
 *
 * A line that is more than a millisecond off (the host's clock stood still in a suspend) jumps, in a new
 * epoch and DISRUPTED; less is met slowly and added to both bounds.
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
    double fraction, rate; /* and its fraction and rate */
    double p00, p01, p11;
    double lower_ns, upper_ns; /* NIC clock - filter at r, by brackets alone */
    struct drift drift;
    double noise2;     /* of brackets' middles on the whole, ns^2: from second differences */
    double least_ns;   /* the least width lately ... */
    double excess2;    /* ... and the mean square of what brackets are wider by */
    double wander2;    /* what the filter allows the rate, ns^2/s^3: from its own surprises */
    double surprise;   /* the last innovation, over the deviation that was expected of it */
    int64_t origin_ns; /* what these are counted from: the first offset */
    double before[2];  /* the last two offsets ... */
    struct mono before_at[2]; /* ... and when */
    unsigned before_count;
    struct mono last;
    struct mono broke; /* brackets contradicted each other; 0: not, or it was told */
    struct clock_terms terms;
};

struct host_leaf {
    struct host_leaf_nic nics[HOST_NIC_MAX];
    double rate_limit, rate_drift;
    struct clock_terms terms; /* of the host's clock; stamped with `nic_time` == mono */
    bool have_terms;
    uint32_t restarts; /* of the own line: gaps that no slew bridges */
    struct mono disrupted_until;
    uint64_t refused;
};

void host_leaf_init(struct host_leaf *leaf, double rate_limit_ppm, double rate_drift_ppb_s);
/* nic: 0 … HOST_NIC_MAX - 1, the host's own count. False: it continues nothing (refused, the first one, or one of the two clocks
 * was stepped). */
bool host_leaf_on_bracket(struct host_leaf *leaf, struct mono now, int nic,
                          const struct host_leaf_bracket *bracket);
/* True, once, if brackets have shown that this NIC's clock broke, and not the host's: those of no other NIC, or not of all, broke
 * with it. Of a host's only NIC nobody knows whose clock it was: then it is taken for the NIC's. */
bool host_leaf_nic_broke(struct host_leaf *leaf, struct mono now, int nic);
/* The NIC's clock as its member publishes it. */
void host_leaf_on_terms(struct host_leaf *leaf, struct mono now, int nic,
                        const struct clock_terms *terms);
/* The host's clock stood still, or may have jumped: what its brackets told of the NICs' clocks is void until the next ones. */
void host_leaf_on_fault(struct host_leaf *leaf, struct mono now);
void host_leaf_tick(struct host_leaf *leaf, struct mono now);
/* False until a NIC has both a bracket and terms: status UNKNOWN. The terms' nic_time is the host's
 * mono. */
bool host_leaf_terms(const struct host_leaf *leaf, struct clock_terms *ret_terms);
/* The NIC's clock now, by its brackets; false: none yet. What clock_tick() of that NIC's member is
 * told. */
bool host_leaf_nic_now(const struct host_leaf *leaf, struct mono now, int nic,
                       struct nic_time *ret_now);
/* How far that may be off: what its brackets leave open by now. nic: one that host_leaf_nic_now() knows. */
double host_leaf_nic_error_ns(const struct host_leaf *leaf, struct mono now, int nic);
