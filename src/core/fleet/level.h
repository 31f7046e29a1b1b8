/* level.h: a service level: a limit that all paths of a kind are to keep, met or broken, since when.
 *
 * A round: level_begin, level_add for each path that the level is about, level_end. A level is broken as soon as one of its
 * paths is beyond the limit for `hold`, and met again when none was for as long. Where nothing is measured it is unknown,
 * and not met. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define LEVEL_NAME_MAX 48

enum level_kind { LEVEL_OWD_P50, LEVEL_OWD_P99, LEVEL_LOSS, LEVEL_HOPS, LEVEL_KIND_COUNT };
/* Which paths: between NICs that share a leaf, a pod, a rail; or all. */
enum level_within { LEVEL_LEAF, LEVEL_POD, LEVEL_RAIL, LEVEL_FLEET, LEVEL_WITHIN_COUNT };

struct level {
    char name[LEVEL_NAME_MAX];
    enum level_kind kind;
    enum level_within within;
    int64_t limit; /* ns, ppm or hops: the most that is right */
    struct span hold;
};

enum level_verdict { LEVEL_UNKNOWN, LEVEL_MET, LEVEL_BROKEN };

struct level_state {
    enum level_verdict verdict, next; /* next: as the last round was */
    struct mono since, next_since;
    /* of the last round */
    uint64_t paths, unmeasured, beyond;
    int64_t worst; /* -1: none measured */
    uint32_t worst_from, worst_to, worst_port;
};

struct level_path {
    uint32_t from, to, port;
    int64_t value; /* -1: not measured */
};

void level_begin(struct level_state *s);
/* True: it is beyond the limit. */
bool level_add(struct level_state *s, const struct level *level, const struct level_path *path);
/* True: the verdict is another one now. */
bool level_end(struct level_state *s, const struct level *level, struct mono now);
const char *level_kind_word(enum level_kind kind);
const char *level_within_word(enum level_within within);
const char *level_verdict_word(enum level_verdict verdict);
