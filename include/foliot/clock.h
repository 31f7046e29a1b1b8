/* foliot/clock.h: fleet time for any program: one nanosecond timeline, shared by every host that runs
 * foliot-agent, each reading with the bounds within which the truth lies.
 *
 *     struct foliot_time now;
 *     if (foliot_now(&now) == FOLIOT_SYNCED) { ... now.earliest_ns ... now.latest_ns ... }
 *
 * Link with -lfoliot-clock (pkg-config foliot-clock). No set-up, no threads, no locks, no system call on
 * the way: a reading costs tens of nanoseconds. Every function may be called from any thread, from
 * a signal handler and after fork().
 *
 * How to use the bounds. Event A certainly came before event B, on any two hosts, if both readings
 * are SYNCED, have the same timeline and epoch, and A.latest_ns < B.earliest_ns. Epoch 0 is the fleet's. A host
 * whose time had to go back shows another one until it is past all that it has shown before. To measure a
 * delay between hosts take the difference of the estimates; it is off by no more than the sum of both
 * likely_ns in all but about one of ten thousand cases, and never by more than the sum of both half
 * widths while the premises hold (foliot-clock(7)).
 *
 * Nothing is guessed: without an agent, with a page too old to be believed, or for a time before the
 * last disturbance the answer is FOLIOT_UNKNOWN. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define FOLIOT_API __attribute__((visibility("default")))
#else
#define FOLIOT_API
#endif

/* How far a reading may be trusted. */
enum foliot_status {
    FOLIOT_UNKNOWN = 0,  /* not synchronised: there is no fleet time */
    FOLIOT_SYNCED = 1,   /* in step with the fleet, both bounds hold */
    FOLIOT_HOLDOVER = 2, /* both bounds hold but grow: peers or the agent went silent */
    FOLIOT_DISRUPTED =
        3, /* the clock was just seen to step, jump or sleep: don't order events by it */
};

struct foliot_time {
    int64_t earliest_ns; /* fleet time, ns since the Unix epoch: not before; INT64_MIN: no bound */
    int64_t latest_ns;   /* not after; INT64_MAX: no bound */
    int64_t
        estimate_ns;   /* best guess, between the two; never runs backwards within an epoch; 0 when
                            there is no bound */
    int64_t likely_ns; /* statistical bound: |estimate - truth| is rarely larger; INT64_MAX: none */
    uint64_t timeline; /* which fleet: times of different timelines can't be compared */
    uint32_t
        epoch; /* 0: the fleet's. Nor can those of different epochs. Another one is the second of
                            fleet time, since 1970, at which it is 0 again: this host's time went back */
    uint32_t status; /* enum foliot_status, as returned */
};

/* Fleet time now. */
FOLIOT_API enum foliot_status foliot_now(struct foliot_time *ret_time);

/* Fleet time of a stamp taken earlier on this host, ns, by CLOCK_MONOTONIC_RAW, CLOCK_MONOTONIC or
 * CLOCK_REALTIME. The bounds grow with the stamp's age: by up to 500 ppm of it for the latter two, which
 * the kernel may have been steering. UNKNOWN for stamps of the future, of before the last disturbance, or
 * of before CLOCK_REALTIME was last set. */
FOLIOT_API enum foliot_status foliot_from_raw(int64_t raw_ns, struct foliot_time *ret_time);
FOLIOT_API enum foliot_status foliot_from_monotonic(int64_t monotonic_ns,
                                                    struct foliot_time *ret_time);
FOLIOT_API enum foliot_status foliot_from_realtime(int64_t realtime_ns,
                                                   struct foliot_time *ret_time);
/* The same of a stamp by a NIC's own clock (its PHC, as in SOF_TIMESTAMPING_RAW_HARDWARE); nic: the
 * interface's name. UNKNOWN for a NIC whose clock takes no part in the fleet: so
 * where the agent uses software stamps. Stamps by the kernel go through foliot_from_realtime(). The epoch is the
 * host's: it doesn't tell of steps of the NIC's clock alone. */
FOLIOT_API enum foliot_status foliot_from_nic(const char *nic, int64_t nic_ns,
                                              struct foliot_time *ret_time);

/* UTC of a fleet time: 0 and both outputs set; -ENODATA: nobody in the fleet knows UTC well, or there is no
 * fleet time. */
FOLIOT_API int foliot_utc(int64_t fleet_ns, int64_t *ret_utc_ns, int64_t *ret_bound_ns);

/* Optional. Opens the page now rather than at the first reading, and says why it can't: 0, or -ENOENT (no
 * agent runs here, or $FOLIOT_RUNTIME_DIR is wrong), -EACCES, -EPROTO (another version, or no
 * clock page), -ESTALE (left behind by an earlier boot), -EAGAIN (nothing published yet). Readings try
 * again by themselves, ten times a second at most. */
FOLIOT_API int foliot_clock_open(void);

#ifdef __cplusplus
}
#endif
