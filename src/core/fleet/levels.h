/* levels.h: all service levels of a fleet (level.h), judged together: the paths of each level, a path's value for it, and the
 * NICs at the ends of paths beyond the limit.
 *
 * Once a rollup interval, level by level: levels_begin, levels_add for each path of the fleet, levels_end. Pure; time is an
 * argument. The caller reads the file. */
#pragma once
#include "base/bug.h"
#include "core/fleet/level.h"

#define LEVELS_MAX          64
#define LEVELS_OFFENDERS    10
#define LEVELS_POD_LEAF_MAX 4096
#define LEVELS_ERROR_SIZE   512

struct level_offender {
    uint32_t nic, paths;
};

struct level_entry {
    struct level level;
    struct level_state state;
    int64_t since_utc_ns;
    struct level_offender offenders[LEVELS_OFFENDERS]; /* sorted by the number of broken paths */
    uint32_t offender_count;
};

struct levels {
    struct level_entry entries[LEVELS_MAX];
    uint32_t count;
    struct {
        char leaf[64];
        uint32_t pod;
    } leaves[LEVELS_POD_LEAF_MAX];
    uint32_t leaf_count;
    struct mono judged;
    char error[LEVELS_ERROR_SIZE]; /* of a refused file; empty: none */
};

/* One end of a path. */
struct levels_nic {
    const char *leaf; /* empty: not known */
    uint32_t rail;
};
/* The last report of a path. */
struct levels_path {
    uint32_t from, to, port; /* numbers of NICs */
    struct levels_nic sends, receives;
    bool known;               /* its receiver is heard, and measures it */
    int32_t owd_p50, owd_p99; /* delay codes */
    uint64_t loss_ppm;
    uint32_t hops; /* 0: not known; only set for levels about hops */
};

/* A level keeps its state as long as its meaning is the same. */
void levels_keep(struct levels *fresh, const struct levels *before);
/* 0: in no pod. */
uint32_t levels_pod(const struct levels *v, const char *leaf);
bool levels_due(const struct levels *v, struct mono now, struct span report);
/* True if both ends are of the kind of the level. */
bool levels_about(const struct levels *v, const struct level *level, const struct levels_nic *a,
                  const struct levels_nic *b);
/* A path's value for a level; -1: not measured. */
int64_t levels_value(const struct level *level, const struct levels_path *p);

/* broken: the caller's array for each NIC, for this level only. */
void levels_begin(struct level_entry *e, uint32_t *broken, uint32_t nics);
void levels_add(const struct levels *v, struct level_entry *e, const struct levels_path *p,
                uint32_t *broken);
/* Sets the NICs at the ends; the verdict comes from level_end(). */
void levels_end(struct level_entry *e, const uint32_t *broken, uint32_t nics);
uint32_t levels_broken(const struct levels *v); /* NULL is allowed */
