/* fleet.c: which hosts are heard, what they find, and which are accused. */
#include "core/fleet/fleet.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/finding/finding.h"

#define NONE UINT32_MAX

struct accusation { /* an open finding */
    uint32_t sayer, run, number, accused;
    uint32_t next;          /* in the reporter's list, or in the list of free ones */
    uint32_t after, before; /* in the accused host's list */
    /* is_of_path: about the way between two hosts, not about the reporter */
    bool confident, is_of_path;
    bool placed; /* its suspect is known */
};

struct host {
    bool present, reported;
    uint8_t clock, shown;
    struct mono heard, since; /* last time, first time */
    struct span beat, report; /* 0: as in the terms */
    uint32_t ports_down, nics_unwatched, paths_dead;
    uint32_t found, finding_count; /* list of its findings; their number */
    uint32_t accused;              /* list of accusations against it */
};

struct fleet {
    struct fleet_terms terms;
    struct host *hosts;
    uint32_t host_count;
    uint32_t *nic_hosts; /* FLEET_NOBODY: no host's */
    uint32_t nic_count;
    struct accusation *pool;
    uint32_t pool_free;
    uint64_t dropped;
    uint32_t cursor; /* the next host of the present tick; host_count: all were reported */
    struct mono now, deadline;
};

/* ---- life --------------------------------------------------------------------------------------------------------- */

struct fleet *fleet_new(const struct fleet_terms *terms, struct mono now)
{
    struct fleet *f = calloc(1, sizeof(*f));

    ASSERT(terms->finding_max > 0 && terms->beat.ns > 0 && terms->report.ns > 0);
    if (f == NULL) {
        return NULL;
    }
    f->terms = *terms;
    f->now = now;
    f->deadline = MONO_NEVER;
    f->pool = calloc(terms->finding_max, sizeof(*f->pool));
    if (f->pool == NULL) {
        fleet_delete(f);
        return NULL;
    }
    for (uint32_t k = 0; k < terms->finding_max; k++) {
        f->pool[k].next = k + 1 < terms->finding_max ? k + 1 : NONE;
    }
    return f;
}

void fleet_delete(struct fleet *f)
{
    if (f != NULL) {
        free(f->hosts);
        free(f->nic_hosts);
        free(f->pool);
        free(f);
    }
}

/* Claims twice the requested room, so that a fleet that grows one by one isn't copied each time. */
static void *larger(const void *old, uint32_t count, uint32_t room, size_t size)
{
    void *fresh = calloc(room, size);

    if (fresh != NULL && count > 0) {
        memcpy(fresh, old, count * size);
    }
    return fresh;
}

int fleet_make_room(struct fleet *f, uint32_t hosts, uint32_t nics)
{
    if (hosts > f->host_count) {
        const uint32_t room = hosts * 2;
        struct host *fresh = larger(f->hosts, f->host_count, room, sizeof(*fresh));
        if (fresh == NULL) {
            return -ENOMEM;
        }
        for (uint32_t h = f->host_count; h < room; h++) {
            fresh[h] = (struct host){.heard = MONO_NEVER, .found = NONE, .accused = NONE};
        }
        free(f->hosts);
        f->hosts = fresh;
        f->cursor = f->cursor == f->host_count ? room : f->cursor;
        f->host_count = room;
    }
    if (nics > f->nic_count) {
        const uint32_t room = nics * 2;
        uint32_t *fresh = larger(f->nic_hosts, f->nic_count, room, sizeof(*fresh));
        if (fresh == NULL) {
            return -ENOMEM;
        }
        for (uint32_t n = f->nic_count; n < room; n++) {
            fresh[n] = FLEET_NOBODY;
        }
        free(f->nic_hosts);
        f->nic_hosts = fresh;
        f->nic_count = room;
    }
    return 0;
}

static struct host *host_of(const struct fleet *f, uint32_t host)
{
    ASSERT(host < f->host_count);
    return &f->hosts[host];
}

/* ---- findings ----------------------------------------------------------------------------------------------------- */

static void forget(struct fleet *f, struct host *h, uint32_t at)
{
    struct accusation *a = &f->pool[at];
    uint32_t *link = &h->found;

    while (*link != at) {
        ASSERT(*link != NONE); /* it must be in its reporter's list */
        link = &f->pool[*link].next;
    }
    *link = a->next;
    if (a->accused != FLEET_NOBODY) {
        ASSERT((a->before == NONE ? f->hosts[a->accused].accused : f->pool[a->before].after) == at);
        if (a->before != NONE) {
            f->pool[a->before].after = a->after;
        } else {
            f->hosts[a->accused].accused = a->after;
        }
        if (a->after != NONE) {
            f->pool[a->after].before = a->before;
        }
    }
    ASSERT(h->finding_count > 0);
    h->finding_count--;
    a->next = f->pool_free;
    f->pool_free = at;
}

/* Removes findings of other runs of that host. all: of every run. */
static void forget_others(struct fleet *f, struct host *h, uint32_t run, bool all)
{
    for (uint32_t at = h->found, next; at != NONE; at = next) {
        next = f->pool[at].next;
        if (all || f->pool[at].run != run) {
            forget(f, h, at);
        }
    }
}

static uint32_t accused_by(const struct fleet *f, const struct element *suspect)
{
    const uint32_t number = suspect->a.number;
    uint32_t host = FLEET_NOBODY;

    if (suspect->kind == ELEMENT_HOST) {
        host = number;
    } else if (suspect->kind == ELEMENT_NIC && number < f->nic_count) {
        host = f->nic_hosts[number];
    }
    return host < f->host_count && f->hosts[host].present ? host : FLEET_NOBODY;
}

/* The host that an unknown suspect makes doubtful: the reporter, if it may be the suspect itself; or else the only host that it
 * can be. */
static uint32_t doubted_by(const struct fleet *f, const struct fleet_finding *x)
{
    const struct element_choice *c = &x->choice;
    uint32_t all = c->count > 0 ? accused_by(f, &c->one_of[0]) : FLEET_NOBODY;

    for (uint32_t k = 0; k < c->count; k++) {
        const uint32_t one = accused_by(f, &c->one_of[k]);
        if (one == x->host) {
            return one;
        }
        all = one == all ? all : FLEET_NOBODY;
    }
    return all;
}

static bool is_of_path(uint32_t kind)
{
    return finding_is_of_path(kind) || kind == FINDING_CLOCK_LIAR ||
           kind == FINDING_CLOCK_ASYMMETRY || kind == FINDING_CLOCK_ASTRAY;
}

/* Without room, the host with the most findings loses its newest to a host with fewer: some hosts with false reports can't
 * displace the rest. */
static bool make_room(struct fleet *f, const struct host *h)
{
    struct host *most = &f->hosts[0];

    f->dropped++;
    for (uint32_t k = 1; k < f->host_count; k++) {
        most = f->hosts[k].finding_count > most->finding_count ? &f->hosts[k] : most;
    }
    if (most->finding_count <= h->finding_count + 1) {
        return false;
    }
    forget(f, most, most->found);
    return true;
}

static void note(struct fleet *f, struct host *h, const struct fleet_finding *x)
{
    if (f->pool_free == NONE && !make_room(f, h)) {
        return;
    }
    const bool sure = x->suspect.kind != ELEMENT_UNKNOWN;
    const uint32_t at = f->pool_free;
    ASSERT(at < f->terms.finding_max); /* a place was free, or one was made free */
    struct accusation *a = &f->pool[at];
    f->pool_free = a->next;
    *a = (struct accusation){.sayer = x->host,
                             .run = x->run,
                             .number = x->number,
                             .accused = x->hearsay ? FLEET_NOBODY
                                        : sure     ? accused_by(f, &x->suspect)
                                                   : doubted_by(f, x),
                             .next = h->found,
                             .after = NONE,
                             .before = NONE,
                             .confident = sure,
                             .is_of_path = is_of_path(x->kind),
                             .placed = sure || x->choice.count > 0};
    h->found = at;
    h->finding_count++;
    if (a->accused != FLEET_NOBODY) {
        struct host *accused = &f->hosts[a->accused];
        a->after = accused->accused;
        if (a->after != NONE) {
            f->pool[a->after].before = at;
        }
        accused->accused = at;
    }
}

void fleet_on_finding(struct fleet *f, const struct fleet_finding *x, struct mono now)
{
    struct host *h = host_of(f, x->host);
    uint32_t at = h->found;

    f->now = now;
    while (at != NONE && (f->pool[at].number != x->number || f->pool[at].run != x->run)) {
        at = f->pool[at].next;
    }
    if (at != NONE) {
        forget(f, h, at);
    }
    if (x->open && h->present) {
        note(f, h, x);
    }
}

void fleet_on_run(struct fleet *f, uint32_t host, uint32_t run, struct mono now)
{
    f->now = now;
    forget_others(f, host_of(f, host), run, false);
}

/* ---- hosts -------------------------------------------------------------------------------------------------------- */

static struct span or_default(struct span own, struct span general)
{
    return own.ns > 0 ? own : general;
}

enum freshness fleet_host_freshness(const struct fleet *f, uint32_t host, struct mono now)
{
    const struct host *h = host_of(f, host);

    return freshness_of(now, h->heard, or_default(h->beat, f->terms.beat),
                        or_default(h->report, f->terms.report));
}

/* The time at which its displayed state may change; MONO_NEVER: not by time alone. */
static struct mono changes_at(const struct fleet *f, const struct host *h)
{
    if (!h->present || h->heard.ns == MONO_NEVER.ns || h->shown == FRESHNESS_STALE) {
        return MONO_NEVER;
    }
    return mono_add(h->heard,
                    freshness_span((enum freshness)h->shown, or_default(h->beat, f->terms.beat),
                                   or_default(h->report, f->terms.report)));
}

void fleet_on_member(struct fleet *f, const struct fleet_member *m, struct mono now)
{
    struct host *h = host_of(f, m->host);

    f->now = now;
    if (!m->present) {
        forget_others(f, h, 0, true);
        ASSERT(h->finding_count == 0); /* its findings were given back to the pool */
        for (uint32_t at = h->accused, next; at != NONE;
             at = next) { /* accusations against a host that left end */
            next = f->pool[at].after;
            f->pool[at].accused = FLEET_NOBODY;
        }
        h->accused = NONE;
        h->reported = false;
    } else if (!h->present) {
        *h = (struct host){.heard = MONO_NEVER, .found = NONE, .accused = NONE};
    }
    h->present = m->present;
    for (uint32_t k = 0; k < m->nic_count; k++) {
        ASSERT(m->nics[k] < f->nic_count);
        f->nic_hosts[m->nics[k]] = m->present ? m->host : FLEET_NOBODY;
    }
}

void fleet_on_heard(struct fleet *f, uint32_t host, struct span beat, struct span report,
                    struct mono now)
{
    struct host *h = host_of(f, host);

    f->now = now;
    h->since = h->heard.ns == MONO_NEVER.ns ? now : h->since;
    h->heard = now;
    h->beat = beat;
    h->report = report;
    f->deadline = mono_min(f->deadline, h->shown == FRESHNESS_LIVE ? changes_at(f, h) : now);
}

void fleet_on_report(struct fleet *f, const struct fleet_report *r, struct mono now)
{
    struct host *h = host_of(f, r->host);

    h->reported = h->reported || r->rollup;
    h->clock = r->clock;
    h->ports_down = r->ports_down;
    h->nics_unwatched = r->nics_unwatched;
    h->paths_dead = r->paths_dead;
    f->now = now;
}

/* ---- time --------------------------------------------------------------------------------------------------------- */

void fleet_tick(struct fleet *f, struct mono now)
{
    f->now = now;
    if (!mono_before(now, f->deadline)) {
        f->cursor = 0;
        f->deadline = MONO_NEVER;
    }
}

bool fleet_next_action(struct fleet *f, struct fleet_action *ret)
{
    while (f->cursor < f->host_count) {
        const uint32_t host = f->cursor++;
        struct host *h = &f->hosts[host];
        const enum freshness was = (enum freshness)h->shown;
        const enum freshness is = h->present ? fleet_host_freshness(f, host, f->now) : was;

        h->shown = (uint8_t)is;
        f->deadline = mono_min(f->deadline, changes_at(f, h));
        if (is != was) {
            *ret = (struct fleet_action){.kind = is == FRESHNESS_STALE ? FLEET_SILENT
                                                 : was == FRESHNESS_STALE && is == FRESHNESS_LIVE
                                                     ? FLEET_HEARD
                                                     : FLEET_SHOWN,
                                         .host = host,
                                         .at = f->now};
            return true;
        }
    }
    return false;
}

struct mono fleet_deadline(const struct fleet *f)
{
    return f->cursor < f->host_count ? f->now : f->deadline;
}

/* ---- verdicts ----------------------------------------------------------------------------------------------------- */

static bool counts(const struct fleet *f, uint32_t host, struct mono now)
{
    const enum freshness is = fleet_host_freshness(f, host, now);

    return f->hosts[host].present && (is == FRESHNESS_LIVE || is == FRESHNESS_LATE);
}

/* How certain its illness is: by its own report, or by the number of other reporters. */
static void weigh_accusers(const struct fleet *f, uint32_t host, struct mono now,
                           struct health_facts *facts)
{
    uint32_t first = FLEET_NOBODY;

    for (uint32_t at = f->hosts[host].accused; at != NONE && !facts->ill; at = f->pool[at].after) {
        const struct accusation *a = &f->pool[at];
        if (!counts(f, a->sayer, now)) {
            continue;
        }
        facts->accused = true;
        facts->ill =
            a->confident && (a->sayer == host || (first != FLEET_NOBODY && first != a->sayer));
        first = a->confident && first == FLEET_NOBODY ? a->sayer : first;
    }
}

enum health fleet_host_health(const struct fleet *f, uint32_t host, struct mono now)
{
    const struct host *h = host_of(f, host);
    struct health_facts facts = {.freshness = fleet_host_freshness(f, host, now),
                                 .reported = h->reported,
                                 .clock_synced = h->clock == FLEET_CLOCK_SYNCED,
                                 .clock_holdover = h->clock == FLEET_CLOCK_HOLDOVER,
                                 .ports_down = h->ports_down,
                                 .nics_unwatched = h->nics_unwatched};
    bool placed = false;

    for (uint32_t at = h->found; at != NONE; at = f->pool[at].next) {
        const struct accusation *a = &f->pool[at];
        facts.findings += !a->is_of_path;
        facts.unplaced += a->is_of_path && !a->placed;
        placed = placed || (a->is_of_path && a->placed);
    }
    facts.unplaced += h->paths_dead > 0 && !placed;
    weigh_accusers(f, host, now, &facts);
    return health_of(&facts);
}

bool fleet_host_judged(const struct fleet *f, uint32_t host, struct mono now)
{
    const struct host *h = host_of(f, host);
    const struct span patience = freshness_span(FRESHNESS_LATE, or_default(h->beat, f->terms.beat),
                                                or_default(h->report, f->terms.report));

    return h->heard.ns != MONO_NEVER.ns &&
           (h->reported || mono_sub(now, h->since).ns >= patience.ns);
}

uint32_t fleet_host_findings(const struct fleet *f, uint32_t host)
{
    return host_of(f, host)->finding_count;
}

uint64_t fleet_findings_dropped(const struct fleet *f)
{
    return f->dropped;
}
