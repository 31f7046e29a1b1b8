/* clock_page.h: fleet time in shared memory: 4 KiB that the agent writes twenty times a second. Any number of programs read it
 * without a lock, a system call or the agent's help.
 *
 * With the page a reader turns a reading of the host's raw clock into fleet time with its bounds, as long as the page is valid.
 * Nothing in it needs a living agent: a dead agent's page ages by the reader's own arithmetic, first into HOLDOVER, then into
 * UNKNOWN.
 *
 * Raw time ("raw") is CLOCK_MONOTONIC_RAW, in the lab the host's emulated clock. Three lines cover it, so that time never runs
 * backwards when a page replaces another:
 *
 *     since ........ line_from ........ map_from ........>  raw
 *       prior (what was shown before)  line (slews)   map (from where the line meets it)
 *
 * The writer sets line_from a little after the moment of publication, so no reader can have used `prior` later than that. A
 * reader takes its raw time *before* it reads the page. Each line starts at its predecessor's value. Before `since` no time is
 * known (a step, a suspend, a cold start).
 *
 * Bounds at raw time c, with t = |c - written| in seconds:
 *   hard         h + integral of max(rate_limit, rate_drift s) ds from 0 to t + guard_ns +
 *                guard_rate max(0, c - guard) + slewed: fleet time is within +- that if clock_page_terms'
 *                premises hold (docs/clock.md lists them)
 *   statistical  6 sqrt(p00 + 2 p01 t + p11 t^2 + q2 t^3 / 3 + spread2) + shift + slewed, never above hard
 *   slewed       |rate of prior - rate of map| (line_from - c) for c before line_from, else 0
 *
 * Mechanics: a sequence lock of 64-bit words. The sequence starts at a random even number, so a reader that reads a part of a
 * dead agent's page and a part of its successor's sees two different numbers. Words are stored with release and loaded with
 * acquire order: on x86 these are plain moves. A writer that is killed within a write leaves an odd number: readers give up after
 * SEQUENCE_LOCK_TRIES and return UNKNOWN until a new agent writes. The file must never be truncated while it is mapped; a new
 * agent makes a new file and renames it over the old one. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"
#include "wire/linear_map.h"

#define CLOCK_PAGE_NAME    "clock.page" /* in the runtime directory */
#define CLOCK_PAGE_SIZE    4096
#define CLOCK_PAGE_MAGIC   0x314b434f4c434f46ULL /* "FOCLOCK1" */
#define CLOCK_PAGE_VERSION 1

#define CLOCK_PAGE_HOLDOVER_NS 2000000000LL    /* unwritten for longer: HOLDOVER */
#define CLOCK_PAGE_UNKNOWN_NS  3600000000000LL /* for longer: UNKNOWN */
#define CLOCK_PAGE_HARD_NS_MAX 4000000         /* a wider hard bound: UNKNOWN */
/* raw time further before `written`: the page isn't ours */
#define CLOCK_PAGE_EARLY_NS 1000000000LL

enum clock_page_status {
    CLOCK_PAGE_UNKNOWN,   /* no fleet time */
    CLOCK_PAGE_SYNCED,    /* both bounds hold */
    CLOCK_PAGE_HOLDOVER,  /* they hold, but grow: peers or the agent are gone */
    CLOCK_PAGE_DISRUPTED, /* a premise was seen to fail: don't order events by it */
};
enum clock_page_guard {
    /* there is no second clock here: only peers' packets would show a jump of the rate */
    CLOCK_PAGE_GUARD_PEERS,
    CLOCK_PAGE_GUARD_PHC,
    CLOCK_PAGE_GUARD_KVM,
};

/* The same bounds as whole numbers for the first half second after `written`, so that the usual reading needs no floating point
 * (latency: a third of a reading). clock_page_write() fills it in. */
#define CLOCK_PAGE_BINS      8
#define CLOCK_PAGE_BIN_SHIFT 26 /* a bin of 2^26 ns = 67 ms */
struct clock_page_quick {
    int64_t valid;                      /* 1: usable */
    int64_t hard_ns;                    /* h + guard_ns, rounded up */
    int64_t drift;                      /* rate_limit in 2^-42 */
    int64_t guard_rate;                 /* in 2^-42 */
    int64_t likely_ns[CLOCK_PAGE_BINS]; /* statistical bound at the end of each bin */
};

/* The values for each reading, together in few cache lines. Times are raw ns if not stated otherwise. */
struct clock_page_terms {
    uint64_t magic;
    uint32_t version;
    uint32_t status; /* enum clock_page_status, as of `written` */
    uint64_t timeline;
    uint32_t
        epoch; /* 0: the fleet's; else the second of fleet time at which it is 0 again (core/page/page.h) */
    uint32_t reserved;
    int64_t written;
    int64_t since;
    int64_t void_after; /* INT64_MAX: none; times after it are DISRUPTED */
    int64_t line_from;
    int64_t map_from;
    struct linear_map prior;
    struct linear_map line;
    struct linear_map map;
    double h_ns;              /* half a width; without the guard's part */
    double rate_limit;        /* 2e-6 */
    double rate_drift;        /* 1e-7 per second */
    double p00, p01, p11, q2; /* ns^2 and per s, s^2, s^3 */
    double spread2;           /* ns^2 */
    double shift_ns;
    int64_t guard; /* last pass; INT64_MAX: there is no second clock */
    double guard_ns;
    double guard_rate;
    /* The kernel's own clocks, read together at the last pass. With these a reader sees a suspend before the agent does:
     * CLOCK_MONOTONIC_RAW and CLOCK_REALTIME_COARSE (the machine's even in the lab; both 0: not given), and BOOTTIME - MONOTONIC
     * (in the lab with the emulated sleep). */
    int64_t pass_raw;
    int64_t pass_coarse;
    int64_t pass_suspended;
    struct clock_page_quick quick;
};

/* The clock of one local NIC. UNKNOWN with software stamps: those have the host's time. */
struct clock_page_nic {
    char name[16];         /* as the kernel calls it, NUL-terminated */
    uint32_t nic;          /* number in the fleet */
    uint32_t status;       /* UNKNOWN: the NIC has no clock of its own, or it isn't known */
    struct linear_map map; /* NIC clock -> fleet time */
    double h_ns;           /* at map.r; it ages like the one in the terms */
    double statistical_ns;
};

struct clock_page {
    struct clock_page_terms terms;
    uint8_t boot_id[16]; /* /proc/sys/kernel/random/boot_id */
    int64_t utc_minus_fleet_ns;
    int64_t utc_bound_ns;   /* < 0: UTC unknown */
    int64_t realtime_since; /* raw: when CLOCK_REALTIME was set; its earlier stamps are invalid */
    uint64_t marker;        /* VMClock's disruption marker as of `written`; 0: none */
    uint32_t nic_count;
    uint32_t agent; /* its process id, for people */
    struct clock_page_nic nics[HOST_NIC_MAX];
};

struct clock_page_memory {
    uint64_t sequence; /* only by atomic access */
    uint64_t words[CLOCK_PAGE_SIZE / 8 - 1];
};
_Static_assert(sizeof(struct clock_page) % 8 == 0, "copied by words");
_Static_assert(sizeof(struct clock_page) <= sizeof(((struct clock_page_memory *)0)->words), "fits");
_Static_assert(sizeof(struct clock_page_memory) == CLOCK_PAGE_SIZE, "one page");
_Static_assert(offsetof(struct clock_page, terms) == 0, "readers copy the head only");

/* -- writer: only the agent */

/* Zeroes the page and sets its first sequence; nonce: random. */
void clock_page_init(struct clock_page_memory *memory, uint64_t nonce);
/* Fills in magic, version and quick. */
void clock_page_write(struct clock_page_memory *memory, const struct clock_page *page);

/* -- readers: any number; safe with any bytes */

/* False: never written, torn for SEQUENCE_LOCK_TRIES tries, or bytes that no agent of this version writes. */
MUST_CHECK bool clock_page_read(const struct clock_page_memory *memory, struct clock_page *ret);
/* Only what clock_page_at() needs. */
MUST_CHECK bool clock_page_read_terms(const struct clock_page_memory *memory,
                                      struct clock_page_terms *ret);

struct clock_page_reading {
    enum clock_page_status status;
    int64_t estimate_ns;    /* fleet time; 0 when UNKNOWN */
    int64_t hard_ns;        /* INT64_MAX when UNKNOWN */
    int64_t statistical_ns; /* likewise */
};
/* Fleet time at raw time c, asked at raw time now >= c (foliot_now: both are the same). Pure. terms: as a reader returned them.
 * Safe with any c. */
struct clock_page_reading clock_page_at(const struct clock_page_terms *terms, int64_t c,
                                        int64_t now);
/* Read and evaluated in one call, with no copy in between, for foliot_now(); ~12 ns. Bounds are those of clock_page_at(), or
 * wider by less than 3 ns and 67 ms of ageing. */
struct clock_page_head {
    uint64_t timeline;
    uint32_t epoch;
    int64_t written;
    int64_t pass_raw, pass_coarse, pass_suspended;
};
MUST_CHECK bool clock_page_read_at(const struct clock_page_memory *memory, int64_t c, int64_t now,
                                   struct clock_page_head *ret_head,
                                   struct clock_page_reading *ret);
/* The same for a stamp of NIC `index` of the page. */
struct clock_page_reading clock_page_nic_at(const struct clock_page *page, uint32_t index,
                                            int64_t stamp, int64_t now);
