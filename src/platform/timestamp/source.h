/* source.h: the one place where the agent learns what time it is.
 *
 * Three kernel clocks matter: CLOCK_MONOTONIC_RAW, the host's raw clock, which nobody steers
 * (struct mono); CLOCK_REALTIME, in which the kernel stamps packets and which chrony slews; and a
 * NIC's own clock (PHC). In the lab all of them pass through the emulated oscillators of
 * platform/oscillator/oscillator.h (FOLIOT_LAB_OSCILLATOR), here and nowhere else, so that the rest of the agent
 * can't tell.
 *
 * Software stamps. The kernel says REALTIME. A *sandwich* (RAW, REALTIME, RAW), the narrowest of
 * several, ties the two clocks together, once per batch, after the batch was drained. A stamp
 * between two sandwiches is placed on the line through them. Its error: half of the wider sandwich,
 * plus what a change of REALTIME's rate since the sandwich before could have done (|rate − rate
 * before| × distance). Stamps older than the ring of sandwiches, or next to a jump of more than 100
 * us, have no conversion: better no stamp than a wrong one.
 *
 * Cost: a sandwich is 9 vDSO calls, about 0.3 us. Not thread safe. */
#pragma once
#include "base/bug.h"
#include "base/time.h"
#include "core/node/node.h"

#include <stdbool.h>
#include <stdint.h>

struct time_source;

/* -EPROTO, -ENOENT, …: the lab's oscillator page was named but can't be used. Not in a lab: never
 * fails but for memory. */
MUST_CHECK int time_source_open(struct time_source **ret_source);
struct time_source *time_source_close(struct time_source *s); /* NULL is fine; returns NULL */

bool time_source_is_lab(const struct time_source *s);
/* The lab asks for NIC stamps (its file says `stamps: nic`): software stamps come out as NIC
 * `nic`'s clock. */
bool time_source_lab_nic_stamps(const struct time_source *s);

/* The host's raw clock, and its CLOCK_REALTIME (ns since the Unix epoch), now. */
struct mono time_source_now(struct time_source *s);
int64_t time_source_wall_ns(struct time_source *s);
/* The kernel's CLOCK_REALTIME, as stamps show it, now: no seam. */
int64_t time_source_kernel_wall_ns(void);

/* Ends a batch: ties REALTIME to RAW. Call after draining the sockets and before time_source_stamp.
 */
void time_source_sandwich(struct time_source *s);
/* A kernel stamp (REALTIME) as the clock of local NIC `nic` shows it: the host's raw clock, or in a
 * lab with NIC stamps the NIC's. *ret_error_ns: δ, the stamp is within this of the truth. False: no
 * honest conversion. */
MUST_CHECK bool time_source_stamp(struct time_source *s, int64_t realtime_ns, uint32_t nic,
                                  struct nic_time *ret_stamp, uint32_t *ret_error_ns);
/* A kernel stamp as CLOCK_MONOTONIC_RAW, without the lab's seam: for the drivers beside this one.
 */
MUST_CHECK bool time_source_raw_of_wall(struct time_source *s, int64_t realtime_ns,
                                        int64_t *ret_raw_ns, uint32_t *ret_error_ns);

/* What happened to the clocks since the last call: suspend, clock source, VM marker, a set
 * REALTIME. One at a time; false: nothing (more). Cheap at any rate, but clocksource is only looked
 * at once a second. */
bool time_source_next_fact(struct time_source *s, struct node_clock_fact *ret_fact);
/* UTC as the kernel's own discipline bounds it (adjtimex), or untrusted wall time. */
void time_source_anchor(struct time_source *s, struct node_anchor *ret_anchor);

/* The kernel's clocks together, by which a reader of the clock page sees a suspend before the agent
 * does (wire/clock_page.h, pass_*), and VMClock's marker (0: none). */
void time_source_pass(struct time_source *s, int64_t *ret_raw_ns, int64_t *ret_coarse_ns,
                      int64_t *ret_suspended_ns, uint64_t *ret_marker);

/* In the lab: reads NIC `nic`'s emulated clock, with the noise of a PCIe read, between two readings
 * of the host's. False: no lab or no such NIC. */
bool time_source_lab_bracket(struct time_source *s, uint32_t nic, struct node_bracket *ret_bracket);
/* The kernel's clock source ("tsc"), and the boot id (36 characters), for state that must not
 * outlive either. */
const char *time_source_clocksource(const struct time_source *s);
const char *time_source_boot_id(const struct time_source *s);

/* The conversion alone, for tests: sandwiches in, stamps out. */
struct sandwich {
    int64_t raw_ns; /* middle */
    int64_t realtime_ns;
    int64_t width_ns; /* of the two RAW readings */
};
#define SANDWICH_RING 16
struct sandwich_ring {
    struct sandwich ring[SANDWICH_RING];
    uint64_t count;  /* ever added */
    int64_t jump_ns; /* of the last one against the one before: REALTIME was set; 0: it wasn't */
};
#define SANDWICH_JUMP_NS 100000
void sandwich_add(struct sandwich_ring *ring, const struct sandwich *s);
bool sandwich_convert(const struct sandwich_ring *ring, int64_t realtime_ns, int64_t *ret_raw_ns,
                      uint32_t *ret_error_ns);
