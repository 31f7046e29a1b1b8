/* linear_map.h: a clock as a straight line, in integers: F(c) = c + x + y (c - r).
 *
 *   c  a reading of some raw clock (a host's or a NIC's), ns
 *   F  the fleet time at that instant, ns
 *   r  the reference reading, ns: near the present, so that y never multiplies a long time
 *   x  offset at r, ns, positive = fleet time is ahead of the raw clock; x_fraction in 2^-32 ns
 *   y  rate, in units of 2^-42 (0.23e-12): positive = fleet time runs faster than the raw clock
 *
 * Integers, not double: a reading has 61 bits of nanoseconds, and each program with the same six numbers must get the same
 * nanosecond. The result is rounded down, hence monotone in c for any y > -1.
 *
 * linear_map_valid() limits each field so that linear_map_at() can't overflow for any |c| <= TIME_NS_MAX. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Limit for any time from outside, of any clock: year 2096 in fleet time. The sum of two fits. */
#define TIME_NS_MAX      4000000000000000000LL
#define LINEAR_MAP_Y_ONE (1LL << 42) /* y for a rate of 1 (1e9 ppb) */
/* 5000 ppm: the oscillator, its error, slewing of up to 2000 ppm (core/clock/line.c), and its reversal. */
#define LINEAR_MAP_Y_MAX (LINEAR_MAP_Y_ONE / 200)

struct linear_map {
    int64_t r;
    int64_t x;
    int64_t y;
    uint32_t x_fraction;
    uint32_t reserved; /* 0; the struct is copied to shared memory as it is */
};
_Static_assert(sizeof(struct linear_map) == 32, "shared memory layout");

static inline bool linear_map_valid(const struct linear_map *map)
{
    return map->r >= -TIME_NS_MAX && map->r <= TIME_NS_MAX && map->x >= -TIME_NS_MAX &&
           map->x <= TIME_NS_MAX && map->y >= -LINEAR_MAP_Y_MAX && map->y <= LINEAR_MAP_Y_MAX;
}

/* F(c) rounded down to ns. Needs a valid map and |c| <= TIME_NS_MAX. */
static inline int64_t linear_map_at(const struct linear_map *map, int64_t c)
{
    __extension__ typedef __int128 int128;
    /* In units of 2^-42 ns: y (c - r) + the fraction of x. >> of a negative is arithmetic with gcc,
     * clang. */
    const int128 part = (int128)map->y * (c - map->r) + ((int64_t)map->x_fraction << 10);

    return c + map->x + (int64_t)(part >> 42);
}

/* y as ppb and back; for display and for the core's doubles, saturating at LINEAR_MAP_Y_MAX. */
static inline double linear_map_ppb(int64_t y)
{
    return (double)y * (1e9 / (double)LINEAR_MAP_Y_ONE);
}
static inline int64_t linear_map_y(double ppb)
{
    const double y = ppb * ((double)LINEAR_MAP_Y_ONE / 1e9);

    if (!(y < (double)LINEAR_MAP_Y_MAX)) { /* NaN too */
        return LINEAR_MAP_Y_MAX;
    }
    return y < -(double)LINEAR_MAP_Y_MAX ? -LINEAR_MAP_Y_MAX : (int64_t)y;
}
