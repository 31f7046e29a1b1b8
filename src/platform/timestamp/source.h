/* source.h: the only place where the agent reads time.
 *
 * Three kernel clocks are used: CLOCK_MONOTONIC_RAW, the host's raw clock, which no program steers (struct mono);
 * CLOCK_REALTIME, in which the kernel stamps packets and which chrony slews; and a NIC's own clock (PHC). In the lab all of
 * them go through the emulated oscillators of platform/oscillator/oscillator.h (FOLIOT_LAB_OSCILLATOR). This happens only
 * here, so the rest of the agent sees no difference.
 *
 * Software stamps are in REALTIME. A *sandwich* (RAW, REALTIME, RAW), the narrowest of several, connects the two clocks. There
 * is one per batch, after the batch was read. A stamp between two sandwiches is placed on the line through them. Its error is
 * half of the wider sandwich, plus the possible effect of a change of REALTIME's rate since the sandwich before (|rate − rate
 * before| × distance). Stamps that are older than the ring of sandwiches, or next to a jump of more than 100 us, are not
 * converted: a missing stamp is better than a wrong one.
 *
 * Cost: a sandwich is 9 vDSO calls, about 0.3 us. Not thread safe. */
#pragma once
#include "base/bug.h"
#include "base/time.h"
#include "core/node/node.h"

#include <stdbool.h>
#include <stdint.h>

struct time_source;

/* -EPROTO, -ENOENT, …: the lab's oscillator page was named but can't be used. Outside a lab it fails only with -ENOMEM. */
MUST_CHECK int time_source_open(struct time_source **ret_source);
struct time_source *time_source_close(struct time_source *s); /* accepts NULL; returns NULL */

bool time_source_is_lab(const struct time_source *s);
/* True if the lab uses NIC stamps (its file has `stamps: nic`): then software stamps are converted to the clock of NIC `nic`. */
bool time_source_lab_nic_stamps(const struct time_source *s);

/* The host's raw clock now, and its CLOCK_REALTIME (ns since the Unix epoch). */
struct mono time_source_now(struct time_source *s);
int64_t time_source_wall_ns(struct time_source *s);
/* The kernel's CLOCK_REALTIME now, as in stamps, without the lab's emulation. */
int64_t time_source_kernel_wall_ns(void);

/* Ends a batch: connects REALTIME to RAW. Call it after the sockets were read and before time_source_stamp. */
void time_source_sandwich(struct time_source *s);
/* Converts a kernel stamp (REALTIME) to the clock of local NIC `nic`: the host's raw clock, or in a lab with NIC stamps the
 * NIC's clock. *ret_error_ns: δ, the stamp is within this of the truth. False: it can't be converted. */
MUST_CHECK bool time_source_stamp(struct time_source *s, int64_t realtime_ns, uint32_t nic,
                                  struct nic_time *ret_stamp, uint32_t *ret_error_ns);
/* Converts a kernel stamp to CLOCK_MONOTONIC_RAW, without the lab's emulation: for the drivers beside this one. */
MUST_CHECK bool time_source_raw_of_wall(struct time_source *s, int64_t realtime_ns,
                                        int64_t *ret_raw_ns, uint32_t *ret_error_ns);

/* Events of the clocks since the last call: suspend, clock source, VM marker, a step of REALTIME. One at a time; false: no
 * more. It is cheap at any rate; the clock source is read only once a second. */
bool time_source_next_fact(struct time_source *s, struct node_clock_fact *ret_fact);
/* UTC with the bound of the kernel's own discipline (adjtimex), or untrusted wall time. */
void time_source_anchor(struct time_source *s, struct node_anchor *ret_anchor);

/* Reads the kernel's clocks together. With these values a reader of the clock page sees a suspend before the agent does
 * (wire/clock_page.h, pass_*). Also VMClock's marker (0: none). */
void time_source_pass(struct time_source *s, int64_t *ret_raw_ns, int64_t *ret_coarse_ns,
                      int64_t *ret_suspended_ns, uint64_t *ret_marker);

/* In the lab: reads NIC `nic`'s emulated clock between two readings of the host's clock, with the noise of a PCIe read. False:
 * no lab, or no such NIC. */
bool time_source_lab_bracket(struct time_source *s, uint32_t nic, struct node_bracket *ret_bracket);
/* The kernel's clock source ("tsc"), and the boot id (36 characters): for state that is valid only with both. */
const char *time_source_clocksource(const struct time_source *s);
/* True of those that the kernel takes when it has given up a better one: hpet, acpi_pm, jiffies; and of "", which isn't known. */
bool clocksource_is_slow(const char *name);
const char *time_source_boot_id(const struct time_source *s);

/* Only the conversion, for tests: sandwiches in, stamps out. */
struct sandwich {
    int64_t raw_ns; /* the middle of the two RAW readings */
    int64_t realtime_ns;
    int64_t width_ns; /* difference of the two RAW readings */
};
#define SANDWICH_RING 16
struct sandwich_ring {
    struct sandwich ring[SANDWICH_RING];
    uint64_t count;  /* added in all */
    int64_t jump_ns; /* between the last two sandwiches: REALTIME was set; 0: it was not */
};
#define SANDWICH_JUMP_NS 100000
void sandwich_add(struct sandwich_ring *ring, const struct sandwich *s);
bool sandwich_convert(const struct sandwich_ring *ring, int64_t realtime_ns, int64_t *ret_raw_ns,
                      uint32_t *ret_error_ns);
