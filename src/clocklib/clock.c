/* clock.c: libfoliot-clock: a reading of the host's raw clock, turned into fleet time by the page. */
#include "foliot/clock.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "clocklib/map.h"

#define SUSPECT_NS     20000000  /* CLOCK_REALTIME_COARSE against raw: look for a sleep */
#define SLEPT_NS       1000000   /* BOOTTIME - MONOTONIC grew by more: it slept */
#define OLD_PAGE_NS    500000000 /* unwritten for longer: is there a new file? */
#define STEERING_PPM   500       /* the most that the kernel steers CLOCK_MONOTONIC */
#define UTC_RATE       200e-6    /* fleet time against UTC, at worst (core/clock/anchor.c) */
#define SANDWICH_TRIES 3
#define FUTURE_NS      1000000 /* a stamp may be that far ahead: other CPU, rounding */

_Static_assert((int)FOLIOT_UNKNOWN == (int)CLOCK_PAGE_UNKNOWN &&
                   (int)FOLIOT_SYNCED == (int)CLOCK_PAGE_SYNCED &&
                   (int)FOLIOT_HOLDOVER == (int)CLOCK_PAGE_HOLDOVER &&
                   (int)FOLIOT_DISRUPTED == (int)CLOCK_PAGE_DISRUPTED,
               "the page's status is ours");

static int64_t read_ns(clockid_t id)
{
    struct timespec t;

    clock_gettime(id, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The host's raw clock when the machine's shows raw_ns. */
static int64_t host_time(int64_t raw_ns)
{
    return __builtin_expect(page_map.oscillator.host == NULL, 1)
               ? raw_ns
               : oscillator_mono(page_map.oscillator.host, raw_ns).ns;
}

static enum foliot_status no_time(enum foliot_status status, struct foliot_time *ret_time)
{
    *ret_time = (struct foliot_time){
        .earliest_ns = INT64_MIN, .latest_ns = INT64_MAX, .likely_ns = INT64_MAX, .status = status};
    return status;
}

/* Whether the host slept, or was frozen, since the agent's last look: raw time then stood still. */
static bool slept(const struct clock_page_head *head, int64_t raw_ns, int64_t coarse_ns)
{
    const int64_t apart = (int64_t)(((uint64_t)coarse_ns - (uint64_t)head->pass_coarse) -
                                    ((uint64_t)raw_ns - (uint64_t)head->pass_raw));

    if (__builtin_expect((apart < SUSPECT_NS && apart > -SUSPECT_NS) || head->pass_raw == 0, 1) &&
        __builtin_expect(page_map.oscillator.host == NULL, 1)) {
        return false;
    }
    if (head->pass_raw == 0) {
        return false;
    }
    int64_t suspended = (read_ns(CLOCK_BOOTTIME) - page_map.boot_offset_ns) -
                        (read_ns(CLOCK_MONOTONIC) - page_map.mono_offset_ns);
    if (page_map.oscillator.host != NULL) {
        suspended += oscillator_suspended_ns(page_map.oscillator.host, raw_ns);
    }
    return (int64_t)((uint64_t)suspended - (uint64_t)head->pass_suspended) > SLEPT_NS;
}

static enum foliot_status answer(uint64_t timeline, uint32_t epoch,
                                 const struct clock_page_reading *reading, int64_t widen_ns,
                                 struct foliot_time *ret_time)
{
    if (__builtin_expect(reading->status == CLOCK_PAGE_UNKNOWN, 0)) {
        return no_time(FOLIOT_UNKNOWN, ret_time);
    }
    ret_time->earliest_ns = reading->estimate_ns - reading->hard_ns - widen_ns;
    ret_time->latest_ns = reading->estimate_ns + reading->hard_ns + widen_ns;
    ret_time->estimate_ns = reading->estimate_ns;
    ret_time->likely_ns = reading->statistical_ns + widen_ns;
    ret_time->timeline = timeline;
    ret_time->epoch = epoch;
    ret_time->status = reading->status;
    return (enum foliot_status)reading->status;
}

/* Raw time first, the page after: so a reading never uses a line that was replaced before (page.h). */
static const struct clock_page_memory *memory_at(int64_t raw_ns)
{
    const struct clock_page_memory *memory = __atomic_load_n(&page_map.memory, __ATOMIC_ACQUIRE);

    if (__builtin_expect(memory == NULL, 0)) {
        page_map_retry(&page_map, raw_ns);
        memory = __atomic_load_n(&page_map.memory, __ATOMIC_ACQUIRE);
    }
    return memory;
}

/* Fleet time of the machine's raw time c_ns, asked at raw_ns. */
static enum foliot_status from_raw(int64_t c_ns, int64_t raw_ns, int64_t widen_ns,
                                   struct foliot_time *ret_time)
{
    const int64_t coarse_ns = read_ns(CLOCK_REALTIME_COARSE);
    const struct clock_page_memory *memory = memory_at(raw_ns);
    struct clock_page_head head;
    struct clock_page_reading reading;

    if (__builtin_expect(memory == NULL, 0)) {
        return no_time(FOLIOT_UNKNOWN, ret_time);
    }
    raw_ns -= page_map.mono_offset_ns;
    int64_t now = host_time(raw_ns);
    int64_t c = c_ns == INT64_MAX ? now : host_time(c_ns - page_map.mono_offset_ns);
    if (__builtin_expect(!clock_page_read_at(memory, c, now, &head, &reading), 0)) {
        page_map_retry(&page_map, raw_ns);
        return no_time(FOLIOT_UNKNOWN, ret_time);
    }
    if (__builtin_expect(now - head.written > OLD_PAGE_NS, 0)) {
        page_map_retry(&page_map, raw_ns); /* for the next reading */
    }
    if (__builtin_expect(slept(&head, raw_ns, coarse_ns), 0)) {
        return no_time(FOLIOT_DISRUPTED, ret_time);
    }
    return answer(head.timeline, head.epoch, &reading, widen_ns, ret_time);
}

enum foliot_status foliot_now(struct foliot_time *ret_time)
{
    return from_raw(INT64_MAX, read_ns(CLOCK_MONOTONIC_RAW), 0, ret_time);
}

static bool plausible(int64_t stamp_ns, int64_t now_ns)
{
    return stamp_ns >= -TIME_NS_MAX && stamp_ns <= now_ns + FUTURE_NS;
}

enum foliot_status foliot_from_raw(int64_t raw_ns, struct foliot_time *ret_time)
{
    const int64_t now_ns = read_ns(CLOCK_MONOTONIC_RAW);

    return plausible(raw_ns, now_ns) ? from_raw(raw_ns, now_ns, 0, ret_time)
                                     : no_time(FOLIOT_UNKNOWN, ret_time);
}

/* Reads `id` between two readings of raw, the narrowest of a few: raw time, the clock's, half width. */
static void sandwich(clockid_t id, int64_t *ret_raw_ns, int64_t *ret_ns, int64_t *ret_half_ns)
{
    *ret_half_ns = INT64_MAX;
    for (int i = 0; i < SANDWICH_TRIES; i++) {
        const int64_t before = read_ns(CLOCK_MONOTONIC_RAW);
        const int64_t ns = read_ns(id);
        const int64_t after = read_ns(CLOCK_MONOTONIC_RAW);
        if ((after - before) / 2 + 1 < *ret_half_ns) {
            *ret_half_ns = (after - before) / 2 + 1;
            *ret_raw_ns = before + (after - before) / 2;
            *ret_ns = ns;
        }
    }
}

/* A stamp of a steered clock; not before raw time since_ns, from when on it wasn't set. */
static enum foliot_status from_clock(clockid_t id, int64_t stamp_ns, struct foliot_time *ret_time)
{
    int64_t raw_ns, now_ns, half_ns;

    sandwich(id, &raw_ns, &now_ns, &half_ns);
    if (!plausible(stamp_ns, now_ns)) {
        return no_time(FOLIOT_UNKNOWN, ret_time);
    }
    int64_t age_ns = now_ns - stamp_ns;
    return from_raw(raw_ns - age_ns, raw_ns,
                    half_ns + (age_ns > 0 ? age_ns : -age_ns) / (1000000 / STEERING_PPM) + 1,
                    ret_time);
}

enum foliot_status foliot_from_monotonic(int64_t monotonic_ns, struct foliot_time *ret_time)
{
    return from_clock(CLOCK_MONOTONIC, monotonic_ns, ret_time);
}

/* Whether CLOCK_REALTIME was set after the stamp was taken. */
static bool was_set_since(int64_t realtime_ns)
{
    const int64_t raw_ns = read_ns(CLOCK_MONOTONIC_RAW) - page_map.mono_offset_ns;
    const int64_t now_ns = read_ns(CLOCK_REALTIME);
    const struct clock_page_memory *memory = memory_at(raw_ns);
    struct clock_page page;

    if (memory == NULL || !clock_page_read(memory, &page)) {
        return true;
    }
    int64_t apart = (int64_t)(((uint64_t)now_ns - (uint64_t)page.terms.pass_coarse) -
                              ((uint64_t)raw_ns - (uint64_t)page.terms.pass_raw));
    return (page.terms.pass_raw != 0 && (apart > SUSPECT_NS || apart < -SUSPECT_NS)) ||
           host_time(raw_ns - (now_ns - realtime_ns)) < page.realtime_since;
}

enum foliot_status foliot_from_realtime(int64_t realtime_ns, struct foliot_time *ret_time)
{
    if (!plausible(realtime_ns, read_ns(CLOCK_REALTIME)) || was_set_since(realtime_ns)) {
        return no_time(FOLIOT_UNKNOWN, ret_time);
    }
    return from_clock(CLOCK_REALTIME, realtime_ns, ret_time);
}

enum foliot_status foliot_from_nic(const char *nic, int64_t nic_ns, struct foliot_time *ret_time)
{
    const int64_t raw_ns = read_ns(CLOCK_MONOTONIC_RAW);
    const int64_t coarse_ns = read_ns(CLOCK_REALTIME_COARSE);
    const struct clock_page_memory *memory = memory_at(raw_ns);
    struct clock_page page;

    if (memory == NULL || !clock_page_read(memory, &page)) {
        return no_time(FOLIOT_UNKNOWN, ret_time);
    }
    struct clock_page_head head = {.pass_raw = page.terms.pass_raw,
                                   .pass_coarse = page.terms.pass_coarse,
                                   .pass_suspended = page.terms.pass_suspended};
    if (slept(&head, raw_ns - page_map.mono_offset_ns, coarse_ns)) {
        return no_time(FOLIOT_DISRUPTED, ret_time);
    }
    for (uint32_t i = 0; i < page.nic_count; i++) {
        if (strcmp(page.nics[i].name, nic) == 0) {
            const struct clock_page_reading reading =
                clock_page_nic_at(&page, i, nic_ns, host_time(raw_ns - page_map.mono_offset_ns));
            return answer(page.terms.timeline, page.terms.epoch, &reading, 0, ret_time);
        }
    }
    return no_time(FOLIOT_UNKNOWN, ret_time);
}

int foliot_utc(int64_t fleet_ns, int64_t *ret_utc_ns, int64_t *ret_bound_ns)
{
    struct foliot_time now;
    struct clock_page page;
    const enum foliot_status status = foliot_now(&now);
    const struct clock_page_memory *memory = __atomic_load_n(&page_map.memory, __ATOMIC_ACQUIRE);

    if (status == FOLIOT_UNKNOWN || now.latest_ns == INT64_MAX || memory == NULL ||
        !clock_page_read(memory, &page) || page.utc_bound_ns < 0 ||
        page.utc_bound_ns > TIME_NS_MAX || fleet_ns > TIME_NS_MAX || fleet_ns < -TIME_NS_MAX) {
        return -ENODATA;
    }
    *ret_utc_ns = fleet_ns + page.utc_minus_fleet_ns;
    /* Told of the moment of the page: at any other one UTC - F may be another. */
    *ret_bound_ns =
        page.utc_bound_ns +
        (int64_t)ceil(UTC_RATE * fabs((double)fleet_ns -
                                      (double)linear_map_at(&page.terms.map, page.terms.written)));
    return 0;
}

int foliot_clock_open(void)
{
    for (;;) {
        const int r = page_map_refresh(&page_map);
        if (r != -EBUSY) {
            return r;
        }
        /* Another thread is at it: microseconds. */
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}
