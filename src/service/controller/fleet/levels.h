/* levels.h: service levels of the fleet: levels.yaml, judged over all paths each rollup interval. */
#pragma once
#include "core/fleet/level.h"
#include "service/controller/controller.h"

#define LEVELS_DEFAULT      "/etc/foliot/levels.yaml"
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

/* Into an empty one. -EINVAL: error has the place, `name` stands for the file's. */
MUST_CHECK int levels_parse(const char *name, const char *text, struct levels *ret,
                            struct config_error *error);
/* -EINVAL: the file (said): levels as before. A missing file that nobody asked for: none. */
int levels_load(struct controller *c);
void levels_free(struct controller *c);
void levels_watch(struct controller *c); /* once a second */
uint32_t levels_broken(const struct controller *c);
/* Are both ends of the kind that the level is about? */
bool levels_about(const struct controller *c, const struct level *level, const struct fleet_nic *a,
                  const struct fleet_nic *b);
/* A path's value for a level; -1: not measured. */
int64_t levels_value(const struct controller *c, const struct level *level,
                     const struct fleet_path *p, bool known);
