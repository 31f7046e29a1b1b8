/* finding.h: a finding, the one form of all reports to people.
 *
 * A finding is a record of fixed size, which a decision module fills. One renderer (finding_text) turns it into a sentence, for
 * the log, the terminal and the JSON. The parts are always the same:
 *
 *   who -> who, which path, what, since when (UTC), the other direction, what it rules out,
 *   the suspected element, what to do.
 *
 * A finding opens, may be updated, and closes. All its records have the same number. It contains no names: hosts and NICs are
 * ids, and the caller's table turns them into text. UNKNOWN is a legal value of every judgement. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "base/time.h"
#include "core/finding/element.h"

enum finding_kind {
    FINDING_NONE,
    FINDING_LINK_DOWN,     /* an own NIC lost carrier. numbers: carrier-down count */
    FINDING_LINK_FLAPPING, /* numbers: flaps, window in s, threshold */
    FINDING_LINK_SPEED,    /* numbers: Mbit/s before, after; width before, after */
    FINDING_LINK_ERRORS,   /* numbers: errors in the window, window in s */
    FINDING_NIC_GONE,      /* the device vanished */
    FINDING_PATH_DEAD, /* silent black hole. numbers: packets proven lost, paths affected, NIC pairs affected */
    FINDING_PATH_LOSSY, /* gray loss. numbers: lost, sent, paths affected, NIC pairs affected */
    /* the one-way delay shifted. numbers: ns before, ns after, the other direction's shift, bound ns */
    FINDING_PATH_SLOW,
    FINDING_PATH_FLAPPING, /* numbers: times dead, window in s */
    FINDING_PEER_SILENT,   /* no packet comes from a peer. numbers: silent for ms */
    FINDING_CLOCK_DISRUPTED, /* this host's clock is not usable. numbers: clock_fault - 1 for old controllers, ns, clock_fault */
    FINDING_CLOCK_STEP, /* this host's clock stepped. numbers: ns; 1: it stood still for so long */
    /* a peer's clock lies or is broken. numbers: level ns, neighbours that report it, neighbours asked */
    FINDING_CLOCK_LIAR,
    FINDING_CLOCK_ASYMMETRY, /* an edge is asymmetric. numbers: level ns */
    /* this agent was late, and judged nothing meanwhile. numbers: ms late */
    FINDING_SENSING_LATE,
    /* the kernel returns no stamps. numbers: missing, sent; ns: or stamps that may be wrong by more */
    FINDING_STAMPS_MISSING,
    FINDING_BAD_PACKETS, /* numbers: enum probe_error, count */
    FINDING_TWO_AGENTS,  /* another agent sends with an own NIC's id */
    FINDING_CLOCK_ASTRAY, /* a peer reports for long that it isn't in step. numbers: s, neighbours in step, all */
    /* a fault of a port of this host that only RDMA shows. numbers: enum verbs_trouble, found, expected, detail */
    FINDING_RDMA_PORT,
    /* a link takes longer for each packet. numbers: ns between packets that were sent back to back, ns before, paths affected,
     * NIC pairs affected */
    FINDING_PATH_NARROW,
    FINDING_KIND_COUNT
};

enum finding_phase { FINDING_OPENED, FINDING_UPDATED, FINDING_CLOSED };
enum finding_direction { DIRECTION_NONE, DIRECTION_OUT, DIRECTION_IN, DIRECTION_BOTH };

/* What is known about the other direction, or about the element that is not accused. */
enum finding_other { OTHER_UNKNOWN, OTHER_FINE, OTHER_LOSSY, OTHER_DEAD };

/* What the evidence rules out, as bits. */
#define RULES_OUT_OWN_HOST  1u /* other paths of this host work */
#define RULES_OUT_OWN_NIC   2u /* other paths of this NIC work */
#define RULES_OUT_PEER_HOST 4u /* the peer answers on other paths */
#define RULES_OUT_PEER_NIC  8u
#define RULES_OUT_OWN_LINK  16u /* own carrier is up */
#define RULES_OUT_LEAF      32u
#define RULES_OUT_SPINE     64u
#define RULES_OUT_CLOCK     128u /* the other direction did not move */
#define RULES_OUT_NETWORK   256u

enum finding_advice {
    ADVICE_NONE,
    ADVICE_CHECK_CABLE,
    ADVICE_CHECK_TRUNK,
    ADVICE_CHECK_SWITCH,
    ADVICE_CHECK_PEER_AGENT,
    ADVICE_CHECK_PEER_HOST,
    ADVICE_CHECK_OWN_HOST,
    ADVICE_GIVE_CPU,
    ADVICE_CHECK_CLOCK,
    ADVICE_CHECK_DRIVER,
    ADVICE_CHECK_KEYS,
    ADVICE_STOP_OTHER_AGENT,
    ADVICE_WAIT,
    ADVICE_UPGRADE,
    ADVICE_FIND_SENDER,
    ADVICE_ASK_ITS_CLOCK,
    ADVICE_CHECK_CLASS,
    ADVICE_CHECK_SIZE,
    ADVICE_CHECK_RDMA,
    ADVICE_CHECK_RATE,
    ADVICE_SHOW_PAUSES,
    ADVICE_CHECK_SOURCE,
};

#define FINDING_NO_TIME INT64_MIN

/* 440 bytes, without padding: recorded and compared as bytes. */
struct finding {
    uint32_t number; /* grows within a host; the same from opened to closed */
    uint32_t kind;   /* enum finding_kind */
    uint8_t phase, direction, other, path;
    uint16_t path_count;  /* number of paths of the NIC pair; 0: no path is meant */
    uint16_t source_port; /* of the path; 0: no path is meant */
    /* who -> who, the direction of the packets (`direction` is from the reporter's view); NIC_NONE: no pair */
    struct nic_id from;
    struct nic_id to;
    struct host_id from_host;
    struct host_id to_host;
    uint64_t signature;     /* of the path's list of hops; 0: unknown */
    struct mono since;      /* when the fault began, as far as known */
    struct mono said;       /* when the verdict was made */
    int64_t since_fleet_ns; /* FINDING_NO_TIME: there was no timeline */
    int64_t since_utc_ns;   /* FINDING_NO_TIME: no anchor was known */
    uint16_t rules_out;     /* RULES_OUT_* */
    uint16_t advice;        /* enum finding_advice */
    uint32_t reserved;
    struct element suspect;       /* the certain suspect */
    struct element_choice choice; /* the possible elements of an unknown suspect */
    int64_t numbers[4];           /* their meaning by kind: see above */
    int64_t ended_ns;             /* monotonic time; for a closed finding */
    int64_t length_error_ns;      /* the possible error of ended_ns - since; 0: not known */
};

/* Hosts that see one fault agree on its name. Two findings are about one fault if finding_fault() is the same and they began
 * within FINDING_FAULT_NS of each other by fleet time. The value comes from the suspect or the list of possible elements; a host
 * with one NIC counts as that NIC. 0: too little is known. */
#define FINDING_FAULT_NS (500 * NS_PER_MS)
uint64_t finding_fault(const struct element *suspect, const struct element_choice *choice);
bool finding_fault_same(const struct finding *x, const struct finding *y);

/* True if the finding is about packets between two NICs. */
static inline bool finding_is_of_path(uint32_t kind)
{
    return (kind >= FINDING_PATH_DEAD && kind <= FINDING_PEER_SILENT) ||
           kind == FINDING_PATH_NARROW;
}
/* Fills f with a finding of that kind that has no details. */
void finding_init(struct finding *f, enum finding_kind kind, struct mono now);
/* Short stable word for JSON and tests: "path-dead". */
const char *finding_kind_word(uint32_t kind);
/* Writes the sentence, always terminated. Returns the length of the whole sentence, like snprintf. names may be NULL. */
size_t finding_text(const struct finding *f, const struct finding_names *names, char *ret_text,
                    size_t size);
/* Single parts, for tables and JSON. */
size_t finding_what_text(const struct finding *f, char *ret_text, size_t size);
const char *finding_advice_text(uint32_t advice);
/* "2026-11-21 06:57:54.000000", for ns since the Unix epoch. */
size_t finding_time_text(int64_t ns, char *ret_text, size_t size);
/* ", since 2026-11-21 06:57:54.000000 UTC". If there is no UTC, fleet time is written instead, marked as such: it differs from
 * UTC. FINDING_NO_TIME: not known. */
size_t finding_since_text(int64_t utc_ns, int64_t fleet_ns, char *ret_text, size_t size);
