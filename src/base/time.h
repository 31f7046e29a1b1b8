/* time.h: the kinds of time, each a struct of its own, so that the compiler refuses to mix them.
 *
 * All are int64 nanoseconds: 292 years in either direction. Subtract in int64; convert to double only a difference that is known
 * to be small (|value| < 2^53 ns = 104 days keeps nanoseconds exact). Sums are checked in debug, and never wrap in release: every
 * input from outside is range-checked where it is decoded (wire/).
 *
 *   mono        the host's raw clock (CLOCK_MONOTONIC_RAW; in the lab its emulated oscillator); `now` in the core
 *   nic_time    the clock that stamps a NIC's packets, free running: its PHC (hardware stamps), or the
 *               host's raw clock (software stamps: then numerically equal to mono)
 *   fleet_time  the one timeline, since the Unix epoch
 *   span        a difference of two times of one kind
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct mono {
    int64_t ns;
};
struct nic_time {
    int64_t ns;
};
struct fleet_time {
    int64_t ns;
};
struct span {
    int64_t ns;
};

#define NS_PER_US 1000LL
#define NS_PER_MS 1000000LL
#define NS_PER_S  1000000000LL

#define MONO_NEVER ((struct mono){INT64_MAX})

static inline struct span span_ns(int64_t ns)
{
    return (struct span){ns};
}
static inline struct span span_us(int64_t us)
{
    return (struct span){us * NS_PER_US};
}
static inline struct span span_ms(int64_t ms)
{
    return (struct span){ms * NS_PER_MS};
}
static inline struct span span_s(int64_t s)
{
    return (struct span){s * NS_PER_S};
}
static inline struct span mono_sub(struct mono a, struct mono b)
{
    return (struct span){a.ns - b.ns};
}
/* a + s; MONO_NEVER stays MONO_NEVER. */
static inline struct mono mono_add(struct mono a, struct span s)
{
    return a.ns == INT64_MAX ? a : (struct mono){a.ns + s.ns};
}
static inline bool mono_before(struct mono a, struct mono b)
{
    return a.ns < b.ns;
}
static inline struct mono mono_min(struct mono a, struct mono b)
{
    return a.ns < b.ns ? a : b;
}
static inline struct mono mono_max(struct mono a, struct mono b)
{
    return a.ns > b.ns ? a : b;
}
static inline struct span nic_time_sub(struct nic_time a, struct nic_time b)
{
    return (struct span){a.ns - b.ns};
}
static inline struct nic_time nic_time_add(struct nic_time a, struct span s)
{
    return (struct nic_time){a.ns + s.ns};
}
static inline struct span fleet_time_sub(struct fleet_time a, struct fleet_time b)
{
    return (struct span){a.ns - b.ns};
}
static inline struct fleet_time fleet_time_add(struct fleet_time a, struct span s)
{
    return (struct fleet_time){a.ns + s.ns};
}
