/* fleet.h: which hosts of the fleet are heard, and which are ill.
 *
 * A pure object; time is an argument. Facts go in: members with their NICs, the reports of hosts about themselves, their
 * findings. Events come out (a host fell silent, or is heard again), and each host's freshness and health for display.
 *
 * ONLY THE ACCUSED ELEMENT IS ILL, NOT ITS OBSERVER. A finding accuses an element. A host is ill by its own report about itself,
 * by a port that is down, or if two other hosts accuse it or a NIC of it. The report of one other host is a warning. So is a
 * finding that may be about the host that reports it, or about nothing but that host. A report from another tenant counts for
 * nothing. A dead path that its finding places elsewhere (a trunk, a switch, another host) shows nothing about its reporter; one
 * without a place is a warning. Findings of a silent host don't count: silence is never health, and never evidence.
 *
 * Memory is claimed by fleet_new() and fleet_make_room(), never by an event. If a finding has no room, the host with the most of
 * them loses its newest to one with fewer, and that is counted. Cost: an event is O(1) plus O(open findings of one host), without
 * room O(hosts). A tick is O(hosts), and due only when the first host could have changed. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/time.h"
#include "core/finding/element.h"
#include "core/fleet/freshness.h"

#define FLEET_NOBODY UINT32_MAX

struct fleet;

struct fleet_terms {
    struct span beat,
        report;           /* intervals of messages and of rollups, unless the host reports others */
    uint32_t finding_max; /* open at the same time */
};

struct fleet_member {
    uint32_t host; /* its number: below fleet_make_room()'s */
    bool present;  /* false: it left; its findings are over */
    const uint32_t *nics;
    uint32_t nic_count;
};

enum fleet_clock { FLEET_CLOCK_UNUSABLE, FLEET_CLOCK_SYNCED, FLEET_CLOCK_HOLDOVER };

/* What a report of a host contains. */
struct fleet_report {
    uint32_t host;
    bool rollup;   /* a whole report, not a sign of life */
    uint8_t clock; /* enum fleet_clock */
    uint32_t ports_down, nics_unwatched, paths_dead;
};

struct fleet_finding {
    uint32_t host; /* the reporter */
    uint32_t run, number, kind;
    bool open;
    bool hearsay;           /* it accuses another tenant's host, whose health does not change */
    struct element suspect; /* the certain suspect */
    struct element_choice choice; /* the possible elements of an unknown suspect */
};

enum fleet_action_kind { FLEET_SILENT, FLEET_HEARD, FLEET_SHOWN };
struct fleet_action {
    uint32_t kind; /* FLEET_SHOWN: its freshness changed, without an event */
    uint32_t host;
    struct mono at;
};

/* NULL: out of memory. */
struct fleet *fleet_new(const struct fleet_terms *terms, struct mono now);
void fleet_delete(struct fleet *f); /* NULL is allowed */
/* Room for hosts and NICs with numbers below these. -ENOMEM: unchanged. */
MUST_CHECK int fleet_make_room(struct fleet *f, uint32_t hosts, uint32_t nics);

/* A host joined, changed, or (present false) left: then its findings about others end, too. */
void fleet_on_member(struct fleet *f, const struct fleet_member *member, struct mono now);
/* Any message from it. beat, report: its intervals of messages and of reports; 0: as in the terms. */
void fleet_on_heard(struct fleet *f, uint32_t host, struct span beat, struct span report,
                    struct mono now);
void fleet_on_report(struct fleet *f, const struct fleet_report *report, struct mono now);
/* Its agent restarted: findings of other runs are over. */
void fleet_on_run(struct fleet *f, uint32_t host, uint32_t run, struct mono now);
void fleet_on_finding(struct fleet *f, const struct fleet_finding *finding, struct mono now);

/* Changes by time alone: silent hosts. Called at fleet_deadline() or later. */
void fleet_tick(struct fleet *f, struct mono now);
/* The next action, until false: call it after each event and each tick. */
bool fleet_next_action(struct fleet *f, struct fleet_action *ret_action);
struct mono
fleet_deadline(const struct fleet *f); /* of the next tick; MONO_NEVER: there is no host to watch */

/* At `now`: by its last message; by that and its open findings. */
enum freshness fleet_host_freshness(const struct fleet *f, uint32_t host, struct mono now);
enum health fleet_host_health(const struct fleet *f, uint32_t host, struct mono now);
/* True if its health is based on a report since it was first heard, or if three reports were due. */
bool fleet_host_judged(const struct fleet *f, uint32_t host, struct mono now);
/* Number of open findings that it reports; number without room since the start. */
uint32_t fleet_host_findings(const struct fleet *f, uint32_t host);
uint64_t fleet_findings_dropped(const struct fleet *f);
