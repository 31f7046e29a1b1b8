/* now.h: reads a clock of the kernel, for programs that measure. */
#pragma once
#include <stdint.h>
#include <time.h>

#include "base/time.h"

static inline int64_t now_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static inline double now_s(clockid_t id)
{
    return (double)now_ns(id) * 1e-9;
}
