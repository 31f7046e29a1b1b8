/* fleet.h: the fleet's brain: who is heard, and who is ill.
 *
 * A pure object that is told the time. Facts go in: who is a member with which NICs, what a host reports of itself and finds.
 * Out come events (a host fell silent, is heard again) and, for whoever shows them, each host's freshness and health.
 *
 * WHO IS ILL IS ILL; WHO ONLY SEES IT ISN'T. A finding accuses an element. A host is ill by its own word about itself, by a
 * port that is down, or because two hosts whose word counts accuse it or a NIC of it. One other host's word is a warning; so is a
 * finding that may be about the host that reports it, or about nothing but that host. Another tenant's word is nothing. A dead
 * path that its finding places elsewhere (a trunk, a switch, another host) says nothing about who reports it; one that nobody
 * places is a warning. What a silent host found counts for nothing: silence is never health, and never evidence.
 *
 * Memory is claimed by fleet_new and fleet_make_room, never by an event. Where there is no room for a finding, the host with most
 * of them loses its newest to one with less, and that is counted. Cost: an event O(1) and O(open findings of one host), without
 * room O(hosts); a tick O(hosts), due only when the first of them could have changed. */
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
        report; /* how often a host says something, and a rollup, unless it tells otherwise */
    uint32_t finding_max; /* open at once */
};

struct fleet_member {
    uint32_t host; /* its number: below what fleet_make_room was asked for */
    bool present;  /* false: it left; what it found is over */
    const uint32_t *nics;
    uint32_t nic_count;
};

enum fleet_clock { FLEET_CLOCK_UNUSABLE, FLEET_CLOCK_SYNCED, FLEET_CLOCK_HOLDOVER };

/* What is known of a host once its report was taken. */
struct fleet_report {
    uint32_t host;
    bool rollup;   /* a whole one, not a sign of life */
    uint8_t clock; /* enum fleet_clock */
    uint32_t ports_down, nics_unwatched, paths_dead;
};

struct fleet_finding {
    uint32_t host; /* who says so */
    uint32_t run, number, kind;
    bool open;
    bool hearsay;           /* accuses another tenant's host, which is none the worse for it */
    struct element suspect; /* what it is sure of */
    struct element_choice choice; /* of an unknown one: what it may be */
};

enum fleet_action_kind { FLEET_SILENT, FLEET_HEARD, FLEET_SHOWN };
struct fleet_action {
    uint32_t kind; /* FLEET_SHOWN: its freshness changed, and no event comes of it */
    uint32_t host;
    struct mono at;
};

/* NULL: no memory. */
struct fleet *fleet_new(const struct fleet_terms *terms, struct mono now);
void fleet_delete(struct fleet *f); /* NULL is fine */
/* Room for hosts and NICs numbered below these. -ENOMEM: as before. */
MUST_CHECK int fleet_make_room(struct fleet *f, uint32_t hosts, uint32_t nics);

/* A host came, changed, or (present false) went: what it said of others goes with it. */
void fleet_on_member(struct fleet *f, const struct fleet_member *member, struct mono now);
/* Any sign of it. How often it says something and reports, as it tells; 0: as in the terms. */
void fleet_on_heard(struct fleet *f, uint32_t host, struct span beat, struct span report,
                    struct mono now);
void fleet_on_report(struct fleet *f, const struct fleet_report *report, struct mono now);
/* Its agent started anew: what it found in other runs is over. */
void fleet_on_run(struct fleet *f, uint32_t host, uint32_t run, struct mono now);
void fleet_on_finding(struct fleet *f, const struct fleet_finding *finding, struct mono now);

/* What time alone brings: hosts that weren't heard. At fleet_deadline() or later. */
void fleet_tick(struct fleet *f, struct mono now);
/* What to tell, until false: ask again after each event and each tick. */
bool fleet_next_action(struct fleet *f, struct fleet_action *ret_action);
struct mono
fleet_deadline(const struct fleet *f); /* of the next tick; MONO_NEVER: nobody to watch */

/* As of `now`: by when it was heard; by that and its open findings. */
enum freshness fleet_host_freshness(const struct fleet *f, uint32_t host, struct mono now);
enum health fleet_host_health(const struct fleet *f, uint32_t host, struct mono now);
/* Its health is its own: a report has come since it was first heard, or three were due. */
bool fleet_host_judged(const struct fleet *f, uint32_t host, struct mono now);
/* Open findings that it reports, and those that had no room since the start. */
uint32_t fleet_host_findings(const struct fleet *f, uint32_t host);
uint64_t fleet_findings_dropped(const struct fleet *f);
