/* least.h: the least recent value: a floor that is forgotten, because paths change.
 *
 * Two buckets of `span`: the present one and the last one. So a value counts for one to two spans: after two spans without a
 * value there is no floor. Inline, 24 bytes, one comparison for each value. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

#define LEAST_NONE INT64_MAX

struct least {
    int64_t values[2]; /* [0] of the present bucket; LEAST_NONE: no value */
    struct mono began; /* when [0] began */
};

static inline void least_init(struct least *l, struct mono now)
{
    *l = (struct least){.values = {LEAST_NONE, LEAST_NONE}, .began = now};
}

static inline void least_add(struct least *l, struct mono now, struct span span, int64_t value)
{
    const int64_t age = mono_sub(now, l->began).ns;

    if (age >= span.ns) {
        const bool next = age < 2 * span.ns;
        l->values[1] = next ? l->values[0] : LEAST_NONE;
        l->values[0] = LEAST_NONE;
        l->began = next ? mono_add(l->began, span) : now;
    }
    l->values[0] = value < l->values[0] ? value : l->values[0];
}

/* Of the last one to two spans, even if no value came in them. */
static inline int64_t least_at(const struct least *l, struct mono now, struct span span)
{
    const int64_t age = mono_sub(now, l->began).ns;
    const int64_t last = age < span.ns ? l->values[1] : LEAST_NONE;

    return age >= 2 * span.ns ? LEAST_NONE : l->values[0] < last ? l->values[0] : last;
}

/* As of the last least_add(); LEAST_NONE: none. */
static inline int64_t least_get(const struct least *l)
{
    return l->values[0] < l->values[1] ? l->values[0] : l->values[1];
}
