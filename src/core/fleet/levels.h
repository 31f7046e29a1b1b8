/* levels.h: all service levels of a fleet (level.h), judged together: which paths each is about, what a path's value is for it,
 * and who is at the ends of those that are beyond it.
 *
 * Once a rollup interval, level by level: levels_begin, levels_add for each path of the fleet, levels_end. Pure, told the time;
 * the file they come from is the caller's. */
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
    struct level_offender offenders[LEVELS_OFFENDERS]; /* most broken paths first */
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
/* What was last told of a path. */
struct levels_path {
    uint32_t from, to, port; /* NICs' numbers */
    struct levels_nic sends, receives;
    bool known;               /* its receiver is heard, and measures it */
    int32_t owd_p50, owd_p99; /* delay codes */
    uint64_t loss_ppm;
    uint32_t hops; /* 0: not known; asked of levels about hops only */
};

/* What a level was stays known as long as it means the same. */
void levels_keep(struct levels *fresh, const struct levels *before);
/* 0: in none. */
uint32_t levels_pod(const struct levels *v, const char *leaf);
bool levels_due(const struct levels *v, struct mono now, struct span report);
/* Are both ends of the kind that the level is about? */
bool levels_about(const struct levels *v, const struct level *level, const struct levels_nic *a,
                  const struct levels_nic *b);
/* A path's value for a level; -1: not measured. */
int64_t levels_value(const struct level *level, const struct levels_path *p);

/* broken: the caller's, as many as NICs, for this level alone. */
void levels_begin(struct level_entry *e, uint32_t *broken, uint32_t nics);
void levels_add(const struct levels *v, struct level_entry *e, const struct levels_path *p,
                uint32_t *broken);
/* Who is at the ends; the verdict is level_end's. */
void levels_end(struct level_entry *e, const uint32_t *broken, uint32_t nics);
uint32_t levels_broken(const struct levels *v); /* NULL: none */
