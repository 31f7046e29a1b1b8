/* invariant.c: compares the bounds, the order and the status of all hosts with the truth. invariant_reach.c has who can reach
 * whom, and the error that the load allows. */
#include "sim/invariant_private.h"

#include "core/clock/clock.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STEP_MARK_NS                                                                               \
    (1 * NS_PER_S) /* a step, or a rate that no guard measures, must be marked by then */
#define ROUNDING_NS  2.0
#define EDGES_JUDGED 400 /* at one instant */
#define GUARDED_PPM  60.0

static const char *const names[INVARIANT_COUNT] = {
    [INVARIANT_HARD] = "invariant.hard",         [INVARIANT_EDGE] = "invariant.edge",
    [INVARIANT_HOLDOVER] = "invariant.holdover", [INVARIANT_LATE] = "invariant.late",
    [INVARIANT_STALE] = "invariant.stale",       [INVARIANT_BACKWARDS] = "invariant.backwards",
    [INVARIANT_TIMELINE] = "invariant.timeline", [INVARIANT_EPOCH] = "invariant.epoch",
    [INVARIANT_BACK] = "invariant.back",         [INVARIANT_P99] = "invariant.p99",
    [INVARIANT_ACCUSED] = "invariant.accused",   [INVARIANT_STEPPED] = "invariant.stepped",
    [INVARIANT_UTC] = "invariant.utc",           [INVARIANT_FALSE] = "invariant.false",
    [INVARIANT_WRONG] = "invariant.wrong",       [INVARIANT_MISSED] = "invariant.missed",
};

const char *invariant_name(enum invariant i)
{
    return names[i];
}

bool invariant_named(const char *metric)
{
    return strncmp(metric, "invariant.", 10) == 0;
}

uint64_t invariant_broken(const struct invariants *v, enum invariant i)
{
    return v->broken[i];
}

uint64_t invariant_count(const struct invariants *v, const char *metric)
{
    for (int i = 0; i < INVARIANT_COUNT; i++) {
        if (strcmp(names[i], metric) == 0) {
            return v->broken[i];
        }
    }
    return UINT64_MAX; /* an unknown name: never good */
}

int64_t invariant_first(const struct invariants *v, enum invariant i, const char **ret_text)
{
    *ret_text = v->text[i];
    return v->broken[i] > 0 ? v->first[i] : -1;
}

void invariant_break(struct invariants *v, const struct world *w, enum invariant i,
                     const char *format, ...)
{
    va_list arguments;

    if (v->broken[i]++ == 0) {
        v->first[i] = w->now;
        va_start(arguments, format);
        vsnprintf(v->text[i], sizeof(v->text[i]), format, arguments);
        va_end(arguments);
    }
}

/* ---- life ---- */
struct invariants *invariant_new(struct world *w)
{
    struct invariants *v = calloc(1, sizeof(*v));
    const size_t n = (size_t)w->scenario->fabric.hosts;
    const size_t nics = (size_t)w->scenario->fabric.nics_per_host;

    if (v == NULL) {
        return NULL;
    }
    v->hosts = calloc(n, sizeof(*v->hosts));
    v->claims = calloc(n * (nics + 1), sizeof(*v->claims));
    v->waits = calloc(n * n, sizeof(*v->waits));
    v->scratch = calloc(n * n + nics * n, sizeof(*v->scratch));
    v->ratios = calloc(1, sizeof(*v->ratios));
    if (v->hosts == NULL || v->claims == NULL || v->waits == NULL || v->scratch == NULL ||
        v->ratios == NULL) {
        invariant_free(v);
        return NULL;
    }
    prng_init(&v->random, hash_u64(w->seed, 0x696e76));
    for (size_t i = 0; i < n; i++) {
        v->hosts[i].broken_at = INT64_MIN / 2;
        v->hosts[i].mark_until = INT64_MIN / 2;
    }
    return v;
}

void invariant_free(struct invariants *v)
{
    if (v != NULL) {
        free(v->hosts);
        free(v->claims);
        free(v->waits);
        free(v->scratch);
        free(v->ratios);
        free(v);
    }
}

/* ---- faults and their hosts ---- */
static bool breaks_clock(const struct scenario_fault *f)
{
    return f->kind == FAULT_CLOCK_STEP || f->kind == FAULT_CLOCK_FREQ || f->kind == FAULT_SUSPEND ||
           f->kind == FAULT_REBOOT || f->kind == FAULT_NIC_STEER;
}

/* The host notices it as soon as it is awake. A virtual machine's pause is not noticed if its kernel does not notice it. */
static bool shows_itself(const struct scenario_fault *f)
{
    return (f->kind == FAULT_SUSPEND && f->told) || f->kind == FAULT_REBOOT;
}

/* How long a host may go on without noticing: docs/clock.md, "Hard". It must notice at once a rate that its second clock
 * shows, a suspend and a reboot. */
static int64_t may_miss(const struct world *w, const struct scenario_fault *f, int host)
{
    if (shows_itself(f)) {
        return 0;
    }
    const bool host_clock = f->target.kind != TARGET_NIC || !world_nics_stamp(w, host);
    if (f->kind == FAULT_CLOCK_FREQ && host_clock && fabs(f->ppm) <= GUARDED_PPM) {
        return 0;
    }
    return STEP_MARK_NS;
}

/* Other hosts alone show the fault. A suspend and a reboot show themselves; the host's clock shows a NIC's; a second clock
 * shows the host's. */
static bool only_others_show(const struct world *w, const struct scenario_fault *f, int host)
{
    return !shows_itself(f) && !w->scenario->clocks.guard && !world_nics_stamp(w, host);
}

void invariant_fault(struct invariants *v, struct world *w, unsigned index, bool on)
{
    const struct scenario_fault *f = &w->scenario->fault[index];

    v->changed_at = w->now;
    v->on[index] = on;
    for (int i = 0; i < w->host_count && breaks_clock(f); i++) {
        struct judged_host *h = &v->hosts[i];
        if (w->fault_hosts[index][i] == 0) {
            continue;
        }
        h->broken_at = w->now;
        h->unseen = only_others_show(w, f, i);
        const int64_t until = w->now + may_miss(w, f, i);
        h->mark_until = until > h->mark_until ? until : h->mark_until;
        h->steered += f->kind == FAULT_NIC_STEER ? (on ? 1 : -1) : 0;
    }
}

/* ---- claims ---- */
static double growth_ns(const struct clock_terms *t, double s)
{
    const double knee = t->rate_drift > 0 ? t->rate_limit / t->rate_drift : INFINITY;

    s = fabs(s);
    return s <= knee ? t->rate_limit * s * 1e9
                     : (t->rate_limit * knee + t->rate_drift * (s * s - knee * knee) / 2) * 1e9;
}

/* Fleet time by a member's published line, minus true time and v->base. */
bool invariant_line(struct invariants *v, struct world *w, int host, uint32_t member,
                    const struct clock_terms *terms, double *ret_error)
{
    struct world_host *h = &w->hosts[host];
    const bool nic = world_nics_stamp(w, host);
    double fraction = 0;

    if (terms->status == CLOCK_UNKNOWN) {
        return false;
    }
    const int64_t c = crystal_read(nic ? &h->nics[member].crystal : &h->raw, w->now, &fraction);
    const int64_t t = c - terms->line.r.ns, slewed = terms->line.until.ns - terms->line.r.ns;
    const int64_t whole = c + terms->line.x_ns - w->now;

    if (!v->base_known) {
        v->base = whole;
        v->base_known = true;
    }
    *ret_error = (double)(whole - v->base) + fraction + terms->line.x_fraction +
                 terms->line.y * (double)t + terms->line.slew * (double)(t < slewed ? t : slewed);
    return true;
}

static void claim_page(struct invariants *v, struct world *w, int host)
{
    struct judged_host *j = &v->hosts[host];
    struct world_host *h = &w->hosts[host];

    j->status = CLOCK_PAGE_UNKNOWN;
    if (!h->page_valid || !check_awake(w, host)) {
        return;
    }
    const int64_t raw = world_raw(w, host, w->now);
    const struct reading r = check_read(w, host, raw);
    const int64_t whole = r.fleet_ns - w->now;

    j->status = r.status;
    j->timeline = h->page.page.terms.timeline;
    if (r.status != CLOCK_PAGE_SYNCED && r.status != CLOCK_PAGE_HOLDOVER) {
        return;
    }
    if (!v->base_known) {
        v->base = whole;
        v->base_known = true;
    }
    j->error = (double)(whole - v->base) + r.fraction;
    j->hard = r.hard_ns;
    v->claims[v->claim_count++] = (struct claim){.host = host,
                                                 .nic = -1,
                                                 .synced = r.status == CLOCK_PAGE_SYNCED,
                                                 .timeline = j->timeline,
                                                 .error = j->error,
                                                 .hard = j->hard};
}

/* NIC clocks have their own lines and bounds. */
static void claim_members(struct invariants *v, struct world *w, int host)
{
    struct world_host *h = &w->hosts[host];

    if (!world_nics_stamp(w, host) || h->node == NULL || !check_awake(w, host) ||
        h->stopped_until > w->now) {
        return;
    }
    for (uint32_t m = 0; m < node_member_count(h->node); m++) {
        const struct clock *clock = node_member_clock(h->node, m);
        struct clock_terms terms;
        double error = 0;
        if (clock == NULL) {
            continue;
        }
        clock_terms(clock, &terms);
        if (terms.status != CLOCK_SYNCED || terms.h_ns < 0 ||
            !invariant_line(v, w, host, m, &terms, &error)) {
            continue;
        }
        const int64_t c = crystal_read(&h->nics[m].crystal, w->now, NULL);
        const double age = (double)(c - terms.line.r.ns) * 1e-9;
        if (age > 2) {
            continue; /* no reader gets it as in step */
        }
        double hard = terms.h_ns + growth_ns(&terms, age);
        if (terms.guarded) {
            hard += terms.guard_ns + terms.guard_rate * fmax(0, (double)(c - terms.guard.ns));
        }
        v->claims[v->claim_count++] = (struct claim){.host = host,
                                                     .nic = (int)m,
                                                     .synced = true,
                                                     .timeline = terms.timeline,
                                                     .error = error,
                                                     .hard = hard};
    }
}

/* ---- the hosts now ---- */
static void look_at(struct invariants *v, struct world *w, int host)
{
    struct judged_host *j = &v->hosts[host];
    const struct world_host *h = &w->hosts[host];

    if (j->generation != h->generation || j->running != (h->node != NULL)) {
        j->disturbed_at = w->now;
        v->restarted_at = w->now;
    }
    j->generation = h->generation;
    j->running = h->node != NULL;
    j->asleep = !check_awake(w, host);
    if (j->asleep || h->stopped_until > w->now || h->starved_until > w->now) {
        j->disturbed_at = w->now;
    }
    j->honest = h->lie == NULL;
    if (j->steered > 0) {
        j->broken_at = w->now;
        j->mark_until = w->now + STEP_MARK_NS;
    }
    if (j->unseen && j->heard_at < j->broken_at) {
        j->broken_at = w->now; /* the host can't know it yet */
    }
    j->sound = j->honest && !j->asleep && w->now - j->broken_at > INVARIANT_SETTLE_NS;
    if (!j->honest) {
        j->disturbed_at = w->now;
    }
    claim_page(v, w, host);
    claim_members(v, w, host);
}

/* ---- hard bounds ---- */
static bool counts(const struct invariants *v, const struct claim *c, uint64_t timeline,
                   bool holdover)
{
    return c->timeline == timeline && v->hosts[c->host].sound && (c->synced || holdover);
}

struct common {
    double low, high;
    const struct claim *low_of, *high_of;
};

/* The common part of all sound intervals of a timeline: intervals that meet pairwise share a point. */
static struct common common_of(const struct invariants *v, uint64_t timeline, bool holdover)
{
    struct common c = {.low = -INFINITY, .high = INFINITY};

    for (int i = 0; i < v->claim_count; i++) {
        const struct claim *k = &v->claims[i];
        if (!counts(v, k, timeline, holdover)) {
            continue;
        }
        if (k->error - k->hard > c.low) {
            c.low = k->error - k->hard;
            c.low_of = k;
        }
        if (k->error + k->hard < c.high) {
            c.high = k->error + k->hard;
            c.high_of = k;
        }
    }
    return c;
}

static void tear(struct invariants *v, const struct world *w, enum invariant i,
                 const struct common *c)
{
    invariant_break(v, w, i,
                    "hosts %d (nic %d) and %d (nic %d) are %.0f ns apart, bounds allow %.0f",
                    c->low_of->host, c->low_of->nic, c->high_of->host, c->high_of->nic,
                    c->low_of->error - c->high_of->error, c->low_of->hard + c->high_of->hard);
}

static void judge_timeline(struct invariants *v, struct world *w, uint64_t timeline)
{
    const struct common synced = common_of(v, timeline, false);
    const struct common all = common_of(v, timeline, true);
    const bool torn = synced.low > synced.high + ROUNDING_NS;

    if (torn) {
        tear(v, w, INVARIANT_HARD, &synced);
    } else if (all.low > all.high + ROUNDING_NS) {
        tear(v, w, INVARIANT_HOLDOVER, &all);
    }
    for (int i = 0; i < v->claim_count && !torn; i++) {
        const struct claim *k = &v->claims[i];
        const struct judged_host *h = &v->hosts[k->host];
        if (k->timeline == timeline && k->synced && h->honest && !h->sound &&
            w->now > h->mark_until &&
            (k->error - k->hard > synced.high + ROUNDING_NS ||
             k->error + k->hard < synced.low - ROUNDING_NS)) {
            invariant_break(v, w, INVARIANT_LATE,
                            "host %d (nic %d) reads SYNCED %.3f s after its clock broke, off by "
                            "%.0f ns with a bound of %.0f",
                            k->host, k->nic, (double)(w->now - h->broken_at) * 1e-9,
                            k->error - (synced.low + synced.high) / 2, k->hard);
        }
    }
}

static void judge_hard(struct invariants *v, struct world *w)
{
    for (int i = 0; i < v->claim_count; i++) {
        bool first = true;
        for (int k = 0; k < i && first; k++) {
            first = v->claims[k].timeline != v->claims[i].timeline;
        }
        if (first) {
            judge_timeline(v, w, v->claims[i].timeline);
        }
    }
}

/* Breaks the invariant for a host that is SYNCED on a page so old that the time can't be known. */
static void judge_stale(struct invariants *v, struct world *w)
{
    for (int i = 0; i < w->host_count; i++) {
        if (v->hosts[i].status != CLOCK_PAGE_SYNCED) {
            continue;
        }
        const int64_t age = world_raw(w, i, w->now) - w->hosts[i].page.page.terms.written;
        if (age > CLOCK_PAGE_HOLDOVER_NS + 200 * NS_PER_MS) {
            invariant_break(v, w, INVARIANT_STALE, "host %d reads SYNCED on a page %.1f s old", i,
                            (double)age * 1e-9);
        }
    }
}

/* ---- each edge against the true theta ---- */
static void judge_edge(struct invariants *v, struct world *w, int host, uint32_t e)
{
    const struct world_host *h = &w->hosts[host];
    const struct mono now = {world_raw(w, host, w->now)};
    struct clock_edge_report report;
    struct clock_terms own, peer;
    struct node_edge edge;
    struct nic_time at;
    double own_error = 0, peer_error = 0;

    if (!node_edge_get(h->node, e, now, &edge) || edge.silent != 0) {
        return;
    }
    const struct clock *clock = node_member_clock(h->node, edge.member);
    const int other = (int)edge.peer.index / w->nics_per_host;
    const struct world_host *o = &w->hosts[other];
    const uint32_t theirs =
        world_nics_stamp(w, other) ? edge.peer.index % (uint32_t)w->nics_per_host : 0;

    if (clock == NULL || !v->hosts[other].sound || o->node == NULL ||
        v->hosts[other].status != CLOCK_PAGE_SYNCED || theirs >= node_member_count(o->node) ||
        node_member_clock(o->node, theirs) == NULL ||
        !node_member_time(h->node, edge.member, now, &at) ||
        !clock_edge_report(clock, at, (int)edge.member_edge, &report) || report.bound_ns < 0) {
        return;
    }
    clock_terms(clock, &own);
    clock_terms(node_member_clock(o->node, theirs), &peer);
    if (own.status != CLOCK_SYNCED || peer.status != CLOCK_SYNCED ||
        own.timeline != peer.timeline ||
        !invariant_line(v, w, host, edge.member, &own, &own_error) ||
        !invariant_line(v, w, other, theirs, &peer, &peer_error)) {
        return;
    }
    if (fabs(peer_error - own_error) > report.bound_ns + ROUNDING_NS) {
        invariant_break(
            v, w, INVARIANT_EDGE,
            "edge of host %d nic %u to host %d nic %u: theta is %.0f ns, its bound %.0f", host,
            edge.local_index, other, edge.peer.index % (unsigned)w->nics_per_host,
            peer_error - own_error, report.bound_ns);
    }
}

static void judge_edges(struct invariants *v, struct world *w)
{
    for (int n = 0; n < EDGES_JUDGED; n++) {
        const int host = (int)prng_below(&v->random, (uint64_t)w->host_count);
        const struct world_host *h = &w->hosts[host];
        if (h->node == NULL || !v->hosts[host].sound ||
            v->hosts[host].status != CLOCK_PAGE_SYNCED || h->stopped_until > w->now) {
            continue;
        }
        const uint32_t count = node_edge_count(h->node);
        if (count > 0) {
            judge_edge(v, w, host, (uint32_t)prng_below(&v->random, count));
        }
    }
}

/* ---- status ---- */
static void judge_back(struct invariants *v, struct world *w)
{
    for (int i = 0; i < w->host_count; i++) {
        struct judged_host *j = &v->hosts[i];
        if (j->status == CLOCK_PAGE_SYNCED || !j->sound || !j->running ||
            w->now - j->disturbed_at < INVARIANT_SETTLE_NS ||
            w->now - j->far_at < INVARIANT_SETTLE_NS || !invariant_can_sync(v, w, i)) {
            continue;
        }
        invariant_break(v, w, INVARIANT_BACK, "host %d isn't SYNCED %.1f s after the last fault", i,
                        (double)(w->now - v->changed_at) * 1e-9);
    }
}

/* True if nothing has begun or ended for so long that all hosts should be in step. */
static bool quiet(const struct invariants *v, const struct world *w)
{
    if (w->now < INVARIANT_START_NS || w->now - v->changed_at < INVARIANT_SETTLE_NS ||
        w->now - v->restarted_at < INVARIANT_SETTLE_NS) {
        return false;
    }
    for (int i = 0; i < w->scenario->fault_count; i++) {
        const enum scenario_fault_kind kind = w->scenario->fault[i].kind;
        if (v->on[i] && (kind == FAULT_FLAP || kind == FAULT_AGENT_RESTART)) {
            return false;
        }
    }
    return true;
}

/* ---- the error ---- */
static void judge_error(struct invariants *v, struct world *w)
{
    int synced = 0;

    for (int i = 0; i < w->host_count; i++) {
        const struct judged_host *j = &v->hosts[i];
        if (j->sound && j->status == CLOCK_PAGE_SYNCED &&
            w->now - j->disturbed_at >= INVARIANT_SETTLE_NS && invariant_can_sync(v, w, i)) {
            v->scratch[synced++] = i;
        }
    }
    if (synced < 2) {
        return;
    }
    const double allowed = invariant_allowed_ns(v, w, v->scratch + synced);
    for (int n = 0; n < 2 * synced; n++) {
        const int a = (int)v->scratch[prng_below(&v->random, (uint64_t)synced)];
        const int b = (int)v->scratch[prng_below(&v->random, (uint64_t)synced)];
        const double error = fabs(v->hosts[a].error - v->hosts[b].error);
        if (a != b) {
            tally_add(v->ratios, 1e6 * error / (allowed + invariant_unseen_ns(v, w, a, b)));
            v->error_worst = fmax(v->error_worst, error);
        }
    }
}

void invariant_instant(struct invariants *v, struct world *w)
{
    v->claim_count = 0;
    v->base_known = false;
    for (int i = 0; i < w->host_count; i++) {
        look_at(v, w, i);
        invariant_alone(v, w, i);
        invariant_few(v, w, i);
        invariant_far(v, w, i);
    }
    judge_hard(v, w);
    judge_stale(v, w);
    judge_edges(v, w);
    if (quiet(v, w)) {
        judge_back(v, w);
        if (invariant_error_judged(v, w)) {
            judge_error(v, w);
        }
    }
    w->check_every = 20 * NS_PER_MS + (int64_t)prng_below(&v->random, 130 * NS_PER_MS);
}

/* ---- findings ---- */
/* Jobs that fill a queue delay packets, and lose them if queues drop. Such findings are true. */
static bool load_explains(const struct world *w, const struct finding *x)
{
    const bool lost = x->kind == FINDING_PATH_LOSSY || x->kind == FINDING_PATH_DEAD ||
                      x->kind == FINDING_PATH_FLAPPING;

    if (x->kind != FINDING_PATH_SLOW && !(lost && w->scenario->fabric.drops)) {
        return false;
    }
    for (int i = 0; i < w->scenario->traffic_count; i++) {
        const struct scenario_traffic *t = &w->scenario->traffic[i];
        if (w->now >= t->start_ns && w->now <= t->end_ns + 2 * INVARIANT_SETTLE_NS) {
            return true;
        }
    }
    return false;
}

void invariant_unexplained(struct invariants *v, struct world *w, const struct world_finding *f)
{
    if (!load_explains(w, &f->finding)) {
        invariant_break(v, w, INVARIANT_FALSE, "host %d: %s from NIC %d to NIC %d", f->host,
                        finding_kind_word(f->finding.kind), (int)f->finding.from.index,
                        (int)f->finding.to.index);
    }
}

/* ---- the end ---- */
static void judge_timelines(struct invariants *v, struct world *w)
{
    int first = -1;

    for (int i = 0; i < w->host_count && quiet(v, w); i++) {
        const struct judged_host *j = &v->hosts[i];
        if (j->status == CLOCK_PAGE_UNKNOWN || !j->sound ||
            w->now - j->disturbed_at < INVARIANT_SETTLE_NS || !invariant_can_sync(v, w, i)) {
            continue;
        }
        first = first < 0 ? i : first;
        if (j->timeline != v->hosts[first].timeline) {
            invariant_break(v, w, INVARIANT_TIMELINE,
                            "hosts %d and %d reach each other and are on different timelines",
                            first, i);
        } else if (j->status == CLOCK_PAGE_SYNCED && v->hosts[first].status == CLOCK_PAGE_SYNCED &&
                   w->check->hosts[i].epoch != w->check->hosts[first].epoch) {
            invariant_break(v, w, INVARIANT_EPOCH,
                            "hosts %d and %d are in step and in epochs %u and %u", first, i,
                            w->check->hosts[first].epoch, w->check->hosts[i].epoch);
        }
    }
}

/* Takes over the counts of check.c and check_finding.c, under the name of an invariant. */
static void take_over(struct invariants *v, struct world *w)
{
    const struct check *c = w->check;
    const struct check_window *all = &c->windows[0];
    const struct {
        enum invariant invariant;
        uint64_t count;
        const char *text;
    } counted[] = {
        {INVARIANT_BACKWARDS, all->backwards, "readings went backwards within an epoch"},
        {INVARIANT_ACCUSED, all->false_liar, "honest hosts were called liars"},
        {INVARIANT_STEPPED, all->false_step, "clock steps were told that nobody made"},
        {INVARIANT_UTC, all->utc_outside, "UTC was outside the bound that a host states for it"},
    };

    for (size_t i = 0; i < ARRAY_COUNT(counted); i++) {
        if (counted[i].count > 0) {
            invariant_break(v, w, counted[i].invariant, "%s: %" PRIu64, counted[i].text,
                            counted[i].count);
            v->broken[counted[i].invariant] = counted[i].count;
        }
    }
    for (int i = 0; i < w->scenario->fault_count; i++) {
        const struct scenario_fault *f = &w->scenario->fault[i];
        if (c->faults[i].wrong) {
            invariant_break(v, w, INVARIANT_WRONG, "fault %d (%s) was named as another element", i,
                            scenario_fault_name(f->kind));
        }
        if (c->faults[i].told < 0 && invariant_must_be_told(v, w, i)) {
            invariant_break(v, w, INVARIANT_MISSED, "fault %d (%s) was never told", i,
                            scenario_fault_name(f->kind));
        }
    }
}

void invariant_end(struct invariants *v, struct world *w)
{
    const double ratio =
        v->ratios->head.count >= INVARIANT_ENOUGH ? 1e-6 * tally_quantile(v->ratios, 0.99) : 0;

    judge_timelines(v, w);
    take_over(v, w);
    v->p99_ratio = ratio;
    if (ratio > 1) {
        invariant_break(
            v, w, INVARIANT_P99,
            "p99 of the error is %.2f times what stamps and load allow (%.0f ns at last, "
            "worst %.0f)",
            ratio, v->allowed, v->error_worst);
    }
}
