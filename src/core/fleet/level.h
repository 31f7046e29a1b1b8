/* level.h: a service level: a limit for all paths of a kind; met or broken, and since when.
 *
 * A round: level_begin, level_add for each path of the level, level_end. A level is broken when one of its paths was beyond the
 * limit for `hold`, and met again when none was for as long. Without a measurement it is unknown, not met. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define LEVEL_NAME_MAX 48

enum level_kind { LEVEL_OWD_P50, LEVEL_OWD_P99, LEVEL_LOSS, LEVEL_HOPS, LEVEL_KIND_COUNT };
/* The paths: between NICs that share a leaf, a pod or a rail; or all. */
enum level_within { LEVEL_LEAF, LEVEL_POD, LEVEL_RAIL, LEVEL_FLEET, LEVEL_WITHIN_COUNT };

struct level {
    char name[LEVEL_NAME_MAX];
    enum level_kind kind;
    enum level_within within;
    int64_t limit; /* in ns, ppm or hops: the largest allowed value */
    struct span hold;
};

enum level_verdict { LEVEL_UNKNOWN, LEVEL_MET, LEVEL_BROKEN };

struct level_state {
    enum level_verdict verdict, next; /* next: the result of the last round */
    struct mono since, next_since;
    /* of the last round */
    uint64_t paths, unmeasured, beyond;
    int64_t worst; /* -1: none was measured */
    uint32_t worst_from, worst_to, worst_port;
};

struct level_path {
    uint32_t from, to, port;
    int64_t value; /* -1: not measured */
};

void level_begin(struct level_state *s);
/* True: it is beyond the limit. */
bool level_add(struct level_state *s, const struct level *level, const struct level_path *path);
/* True: the verdict changed. */
bool level_end(struct level_state *s, const struct level *level, struct mono now);
const char *level_kind_word(enum level_kind kind);
const char *level_within_word(enum level_within within);
const char *level_verdict_word(enum level_verdict verdict);
