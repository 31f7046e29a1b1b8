/* admit.h: decides whether a host may join: its paths, measured just now, are compared with those of its cohort, measured at the
 * same time.
 *
 * The host's paths are judged by NIC and direction. Each is compared with paths among the hosts of its cohort of the same kind
 * (near: both ends on one leaf). Medians over paths are compared, and the cohort's own spread is allowed for: on a busy fleet all
 * paths are slower, and the host isn't the cause. Both "no" and "yes" need evidence. Unmeasured paths, and an empty cohort, give
 * "unknown". */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADMIT_LOST_MIN  3     /* fewer lost packets prove nothing */
#define ADMIT_LOSS_PPM  1000  /* a smaller share proves nothing, either */
#define ADMIT_SLOWER_NS 2000  /* a host is not refused for less than this above the cohort */
#define ADMIT_TAIL_NS   20000 /* the same at the 99th percentile */
/* dead paths are the host's own if they exceed its cohort's share so many times */
#define ADMIT_DEAD_MORE 3
#define ADMIT_DEAD_MIN  3         /* and by so many more than expected */
#define ADMIT_NO_DELAY  INT64_MIN /* not known */

enum admit_answer { ADMIT_YES, ADMIT_UNKNOWN, ADMIT_NO };

struct admit_path {
    uint32_t nic;  /* of the host, 0 … nic_count - 1; not used unless own */
    bool own;      /* the host is one end; otherwise both ends are of its cohort */
    bool out;      /* for own: the host sends */
    bool near;     /* both ends are on one leaf */
    bool measured; /* false: it was not measured */
    uint32_t sent, answered, bound_ns;
    int32_t lost; /* of sent; -1: not known */
    int64_t owd_ns_p50, owd_ns_p99;
};

enum admit_kind {
    ADMIT_WELL, /* none of the reasons below; one of these for each NIC and direction */
    ADMIT_DEAD, /* paths without any answer; value, cohort: ppm of paths */
    /* the same, but its cohort has about as many: the fabric's fault, not the host's */
    ADMIT_SHARED,
    ADMIT_LOSSY, /* value, cohort: ppm */
    ADMIT_SLOW,  /* value, cohort: ns, medians of the paths' medians */
    ADMIT_TAIL,  /* value, cohort: ns, medians of the paths' 99th percentiles */
    ADMIT_UNMEASURED,
    ADMIT_TIMELESS, /* answered, but with clocks that are not in step: no delay is known */
    ADMIT_ALONE,    /* there is no path of its cohort to compare with */
};

struct admit_reason {
    enum admit_kind kind;
    uint32_t nic;
    bool out, near; /* near: valid for DEAD, SHARED, SLOW, TAIL, ALONE */
    uint32_t paths, paths_bad;
    int64_t value, cohort;
    uint32_t worst; /* index of a path that shows it; for WELL the slowest one */
};

/* At most seven reasons for each NIC and direction. scratch: one value for each path. Returns the answer; ret_reasons has the
 * reasons. */
enum admit_answer admit_judge(const struct admit_path *paths, uint32_t count, uint32_t nic_count,
                              int64_t *scratch, struct admit_reason *ret_reasons, size_t capacity,
                              size_t *ret_count);
enum admit_answer admit_answer_of(enum admit_kind kind);
