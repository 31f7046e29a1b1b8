/* oscillator.h: the lab's emulated clocks, in a shared page: one oscillator per host and per NIC.
 *
 * On one machine all namespaces read the same kernel clock. To test a fleet of clocks, each host's raw clock and each NIC's
 * clock is a *pure function* of the machine's CLOCK_MONOTONIC_RAW and of parameters in a file that all processes map. Agents
 * and libfoliot-clock read time only through it. The lab's evaluation computes the same function, so it has the true time at
 * any instant, also in the past.
 *
 *   value(t) = t + offset + freq·(t − origin) + wander(t − origin) + Σ events that took effect
 *
 * wander is random-walk frequency noise (wander_ppb, in ppb per √second; clknetsim's 1e-8 is 10), as a sum of eight octaves
 * (0.25 s … 4096 s) of smooth noise. Each octave is a cubic B-spline over hashed nodes. So it is continuous with two
 * derivatives, and costs the same at any t (about 100 ns). Steps, frequency jumps, temperature ramps and suspends are events.
 * Events are appended and never changed or removed (an undo appends the opposite). So the past does not change, and readers
 * need no lock.
 *
 * Signs: with a positive offset, step or frequency this clock is ahead, or fast. True time is called raw_ns here: the
 * machine's CLOCK_MONOTONIC_RAW, int64 ns.
 *
 * The only I/O is open and map, with FOLIOT_LAB_OSCILLATOR=<file>:<host>. */
#pragma once
#include "base/bug.h"
#include "base/limits.h"
#include "base/time.h"

#include <stddef.h>
#include <stdint.h>

#define OSCILLATOR_ENV       "FOLIOT_LAB_OSCILLATOR"
#define OSCILLATOR_MAGIC     0x4f544f494c4f4631ULL
#define OSCILLATOR_VERSION   1
#define OSCILLATOR_HOST_MAX  256 /* hosts in one lab */
#define OSCILLATOR_EVENT_MAX 512 /* events of one host in the whole life of a lab */
#define OSCILLATOR_NAME_SIZE 32

/* The clock of an event: OSCILLATOR_HOST_CLOCK, or a NIC's local number + 1. */
#define OSCILLATOR_HOST_CLOCK 0

enum oscillator_stamps {
    OSCILLATOR_STAMPS_HOST = 0, /* the host's clock stamps packets, like software stamps */
    OSCILLATOR_STAMPS_NIC = 1,  /* the NIC's clock stamps packets, like hardware stamps */
};

struct oscillator_clock {
    int64_t offset_ns;
    double freq_ppb;
    double wander_ppb; /* ppb per √s */
    uint64_t seed;
    int32_t read_delay_ns; /* a read over PCIe takes at least this, for the round trip */
    int32_t read_noise_ns; /* mean of additional exponential delay, each direction */
};

/* From effect_raw_ns on: phase += step_ns; the frequency grows by freq_ppb, linearly over ramp_ns (0: at once); and the clock
 * stands still for suspend_ns, which CLOCK_BOOTTIME − CLOCK_MONOTONIC then includes. */
struct oscillator_event {
    int64_t effect_raw_ns;
    int64_t step_ns;
    int64_t suspend_ns;
    int64_t ramp_ns;
    double freq_ppb;
    uint32_t clock;
    uint32_t reserved;
};

struct oscillator_host {
    char name[OSCILLATOR_NAME_SIZE];
    int64_t origin_raw_ns;
    int64_t realtime_offset_ns; /* the host's CLOCK_REALTIME is its raw clock plus this */
    uint32_t nic_count;
    uint32_t stamps;            /* enum oscillator_stamps */
    uint32_t disruption_marker; /* like VMClock's marker: changes when a virtual machine is moved */
    uint32_t clocksource_lost;  /* not 0: the kernel no longer uses the TSC */
    struct oscillator_clock clock[1 + HOST_NIC_MAX]; /* [0] is the host's */
    uint32_t event_count;                            /* stored with release order after the event */
    uint32_t reserved;
    struct oscillator_event event[OSCILLATOR_EVENT_MAX];
};

struct oscillator_page {
    uint64_t magic;
    uint32_t version;
    uint32_t host_count;
    uint64_t seed;
    int64_t origin_raw_ns;
    uint64_t reserved[4];
    struct oscillator_host host[];
};

/* A mapped page, and one of its hosts. */
struct oscillator {
    struct oscillator_page *page;
    struct oscillator_host *host;
    size_t size;
};

/* Maps `spec` = <file>:<host> read-only. -EINVAL: no colon; -EPROTO: no such page, or another version; -ENOENT: no such file
 * or host; else the error of open or mmap. */
MUST_CHECK int oscillator_open(const char *spec, struct oscillator *ret_oscillator);
/* The same with the environment variable. -ENODATA: the variable is not set: this is no lab. */
MUST_CHECK int oscillator_open_env(struct oscillator *ret_oscillator);
/* Maps for writing (only the lab), or creates a page for host_count hosts, zeroed. ret->host is host 0. */
MUST_CHECK int oscillator_open_write(const char *file, struct oscillator *ret_oscillator);
MUST_CHECK int oscillator_create(const char *file, uint32_t host_count,
                                 struct oscillator *ret_oscillator);
void oscillator_close(struct oscillator *o);
/* NULL: no host has this name. */
struct oscillator_host *oscillator_find(const struct oscillator *o, const char *name);

/* Only one process may write. -ENOSPC: OSCILLATOR_EVENT_MAX is reached; -EINVAL: no such clock. An effect in the past would
 * change what readers saw: use a time a few ms ahead. */
MUST_CHECK int oscillator_append(struct oscillator_host *h, const struct oscillator_event *e);

/* At the time raw_ns of the machine's raw clock: the host's raw clock (its CLOCK_MONOTONIC_RAW), its CLOCK_REALTIME, and how
 * long it was suspended (CLOCK_BOOTTIME − CLOCK_MONOTONIC since the lab began). */
struct mono oscillator_mono(const struct oscillator_host *h, int64_t raw_ns);
int64_t oscillator_realtime_ns(const struct oscillator_host *h, int64_t raw_ns);
int64_t oscillator_suspended_ns(const struct oscillator_host *h, int64_t raw_ns);
/* The clock of NIC `nic` (local number, below nic_count). It is always the NIC's own clock, for any `stamps`. */
struct nic_time oscillator_nic(const struct oscillator_host *h, uint32_t nic, int64_t raw_ns);

/* The inverse, for timers and for the evaluation. It is exact to about 1 ns where the clock is continuous. Inside a step
 * either side may be returned. */
int64_t oscillator_raw_of_mono(const struct oscillator_host *h, struct mono m);
int64_t oscillator_raw_of_nic(const struct oscillator_host *h, uint32_t nic, struct nic_time t);

/* An emulated PCIe read that begins at raw_ns. The NIC latches its clock at *ret_latch_raw_ns. The caller has the value at
 * *ret_done_raw_ns: wait until then, then take the second stamp of the bracket. `nonce` must differ between reads (a counter).
 * Both directions are alike except for noise. */
void oscillator_read(const struct oscillator_host *h, uint32_t nic, int64_t raw_ns, uint64_t nonce,
                     int64_t *ret_latch_raw_ns, int64_t *ret_done_raw_ns);

/* In the lab all hosts share one kernel clock. That hides the error of converting a batch of stamps from CLOCK_REALTIME to
 * raw. This is that error: uniform in ±delta_ns by host and batch. */
int64_t oscillator_conversion_error_ns(const struct oscillator_host *h, uint64_t batch,
                                       int64_t delta_ns);
