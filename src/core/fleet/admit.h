/* admit.h: may this host join? Its paths, measured just now, beside those of its cohort, measured at the same time.
 *
 * A host's paths are judged by NIC and direction, each against the paths among the hosts of its cohort that are of the same kind
 * (near: both ends on one leaf). What is compared are medians over paths, and the cohort's own spread is allowed for: on a busy
 * fleet all are slower, and a host isn't to be blamed for that. "no" takes evidence, and so does "yes": what nobody measured,
 * and a cohort of nobody, are "unknown". */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ADMIT_LOST_MIN  3         /* fewer lost packets prove nothing */
#define ADMIT_LOSS_PPM  1000      /* nor does a smaller share of them */
#define ADMIT_SLOWER_NS 2000      /* less than this beside the cohort is nothing to say no for, */
#define ADMIT_TAIL_NS   20000     /* at the 99th percentile */
#define ADMIT_DEAD_MORE 3         /* dead paths: so many times its cohort's share, */
#define ADMIT_DEAD_MIN  3         /* and as many more than expected, are the host's own */
#define ADMIT_NO_DELAY  INT64_MIN /* not known */

enum admit_answer { ADMIT_YES, ADMIT_UNKNOWN, ADMIT_NO };

struct admit_path {
    uint32_t nic;  /* of the host, 0 … nic_count - 1; not looked at unless own */
    bool own;      /* the host is one end; else both are of its cohort */
    bool out;      /* of own: the host sends */
    bool near;     /* both ends hang on one leaf */
    bool measured; /* false: nobody got to it */
    uint32_t sent, answered, bound_ns;
    int32_t lost; /* of sent; -1: not known */
    int64_t owd_ns_p50, owd_ns_p99;
};

enum admit_kind {
    ADMIT_WELL,   /* nothing below; one of these for each NIC and direction */
    ADMIT_DEAD,   /* paths by which nothing was answered; value, cohort: ppm of paths */
    ADMIT_SHARED, /* the same, but of its cohort's paths about as many: the fabric's, not its own */
    ADMIT_LOSSY,  /* value, cohort: ppm */
    ADMIT_SLOW,   /* value, cohort: ns, medians of the paths' medians */
    ADMIT_TAIL,   /* value, cohort: ns, medians of the paths' 99th percentiles */
    ADMIT_UNMEASURED,
    ADMIT_TIMELESS, /* answered, but by clocks that are not in step: no delay is known */
    ADMIT_ALONE,    /* no path of its cohort to compare with */
};

struct admit_reason {
    enum admit_kind kind;
    uint32_t nic;
    bool out, near; /* near: of DEAD, SHARED, SLOW, TAIL, ALONE */
    uint32_t paths, paths_bad;
    int64_t value, cohort;
    uint32_t worst; /* index of a path that shows it; of WELL the slowest */
};

/* Seven reasons of each NIC and direction at most. scratch: a value for each path. Returns the answer; what led to it
 * is in ret_reasons. */
enum admit_answer admit_judge(const struct admit_path *paths, uint32_t count, uint32_t nic_count,
                              int64_t *scratch, struct admit_reason *ret_reasons, size_t capacity,
                              size_t *ret_count);
enum admit_answer admit_answer_of(enum admit_kind kind);
