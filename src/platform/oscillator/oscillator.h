/* oscillator.h: the emulated clocks of the lab, in a shared page: one oscillator per host and per
 * NIC.
 *
 * On one machine every namespace reads the same kernel clock. So that a fleet of clocks can be
 * tried at all, each host's raw clock and each NIC's clock is a *pure function* of the machine's
 * CLOCK_MONOTONIC_RAW and of parameters that lie in a file that all processes map. Agents and
 * libfoliot-clock read time only through it; the lab's evaluation reads the same function and so
 * knows the truth at any instant, past ones included.
 *
 *   value(t) = t + offset + freq·(t − origin) + wander(t − origin) + Σ events that took effect
 *
 * wander is random-walk frequency noise (wander_ppb, in ppb per √second; clknetsim's 1e-8 is 10) as
 * a sum of eight octaves (0.25 s … 4096 s) of smooth noise: a cubic B-spline over hashed nodes, so
 * it is continuous with two derivatives, and costs the same at any t (about 100 ns). Steps,
 * frequency jumps, temperature ramps and suspends are events: appended, never changed or taken away
 * (an undo appends the opposite), so the past is stable and readers need no lock.
 *
 * Signs: positive offset, step and frequency = this clock is ahead, fast.
 * True time is called raw_ns here: the machine's CLOCK_MONOTONIC_RAW, int64 ns.
 *
 * The only I/O is open and map, by FOLIOT_LAB_OSCILLATOR=<file>:<host>. */
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
#define OSCILLATOR_EVENT_MAX 512 /* events of one host, ever: a lab restarts sooner */
#define OSCILLATOR_NAME_SIZE 32

/* Which clock of a host an event is for: OSCILLATOR_HOST_CLOCK, or a NIC's local number + 1. */
#define OSCILLATOR_HOST_CLOCK 0

enum oscillator_stamps {
    OSCILLATOR_STAMPS_HOST =
        0,                     /* packets are stamped by the host's clock, as software stamps are */
    OSCILLATOR_STAMPS_NIC = 1, /* by the NIC's clock, as hardware stamps are */
};

struct oscillator_clock {
    int64_t offset_ns;
    double freq_ppb;
    double wander_ppb; /* ppb per √s */
    uint64_t seed;
    int32_t read_delay_ns; /* a PCIe read of it: round trip at least this */
    int32_t read_noise_ns; /* mean of the exponential delay on top, each way */
};

/* From effect_raw_ns on: phase += step_ns; frequency grows by freq_ppb, linearly over ramp_ns (0:
 * at once); and the clock stands still for suspend_ns, which CLOCK_BOOTTIME − CLOCK_MONOTONIC then
 * shows. */
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
    uint32_t disruption_marker; /* as VMClock's: changes when a virtual machine was moved */
    uint32_t clocksource_lost;  /* not 0: the kernel gave up the TSC */
    struct oscillator_clock clock[1 + HOST_NIC_MAX]; /* [0] is the host's */
    uint32_t event_count;                            /* release store after the event is written */
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

/* A mapped page and one host in it. */
struct oscillator {
    struct oscillator_page *page;
    struct oscillator_host *host;
    size_t size;
};

/* Maps `spec` = <file>:<host> read-only. -EINVAL: no colon; -EPROTO: not such a page or another
 * version; -ENOENT: no such file or host; else what open and mmap said. */
MUST_CHECK int oscillator_open(const char *spec, struct oscillator *ret_oscillator);
/* The same by the environment; -ENODATA: the variable isn't set, this is no lab. */
MUST_CHECK int oscillator_open_env(struct oscillator *ret_oscillator);
/* Maps for writing (the lab only), or creates with room for host_count hosts, zeroed; ret->host is
 * host 0. */
MUST_CHECK int oscillator_open_write(const char *file, struct oscillator *ret_oscillator);
MUST_CHECK int oscillator_create(const char *file, uint32_t host_count,
                                 struct oscillator *ret_oscillator);
void oscillator_close(struct oscillator *o);
/* NULL: no host of that name. */
struct oscillator_host *oscillator_find(const struct oscillator *o, const char *name);

/* One writer. -ENOSPC: OSCILLATOR_EVENT_MAX reached; -EINVAL: no such clock. An effect in the past
 * rewrites what readers saw: give a time a few ms ahead. */
MUST_CHECK int oscillator_append(struct oscillator_host *h, const struct oscillator_event *e);

/* The host's raw clock (what stands for CLOCK_MONOTONIC_RAW there), its CLOCK_REALTIME, and how
 * long it was suspended (CLOCK_BOOTTIME − CLOCK_MONOTONIC since the lab began), when the machine's
 * raw clock shows raw_ns. */
struct mono oscillator_mono(const struct oscillator_host *h, int64_t raw_ns);
int64_t oscillator_realtime_ns(const struct oscillator_host *h, int64_t raw_ns);
int64_t oscillator_suspended_ns(const struct oscillator_host *h, int64_t raw_ns);
/* NIC `nic` (local number, below nic_count): its clock, always its own whatever `stamps` says. */
struct nic_time oscillator_nic(const struct oscillator_host *h, uint32_t nic, int64_t raw_ns);

/* Inverse, for timers and for the evaluation: exact to a ns or so where the clock is continuous;
 * inside a step the side is unspecified. */
int64_t oscillator_raw_of_mono(const struct oscillator_host *h, struct mono m);
int64_t oscillator_raw_of_nic(const struct oscillator_host *h, uint32_t nic, struct nic_time t);

/* An emulated PCIe read that begins at raw_ns: the NIC latches its clock at *ret_latch_raw_ns, the
 * value is with the caller at *ret_done_raw_ns: wait for that, then take the second stamp of the
 * bracket. `nonce` differs from read to read (a counter). The two ways are alike but for noise. */
void oscillator_read(const struct oscillator_host *h, uint32_t nic, int64_t raw_ns, uint64_t nonce,
                     int64_t *ret_latch_raw_ns, int64_t *ret_done_raw_ns);

/* What one kernel clock shared by all hosts hides: the error of turning a batch of stamps from
 * CLOCK_REALTIME to raw. Uniform in ±delta_ns by host and batch. */
int64_t oscillator_conversion_error_ns(const struct oscillator_host *h, uint64_t batch,
                                       int64_t delta_ns);
