/* node_clock.c: the host's clock members: what breaks them, their input, and the host's own clock. Their edges: node_edge.c.
 *
 * A member has the number of the lowest NIC id that its clock stamps. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/node/internal.h"

/* ---- life ----------------------------------------------------------------------------------- */

static uint8_t hops(const struct node *n)
{
    const struct node_config *c = &n->config;

    return c->diameter != 0 ? (uint8_t)c->diameter
                            : peers_hops(c->fleet.peer_count, c->ring_peers, c->full_limit);
}

void node_clock_follow_hops(struct node *n)
{
    for (uint32_t i = 0; i < n->member_count; i++) {
        if (n->members[i].clock) {
            clock_on_hops(n->members[i].clock, hops(n));
        }
    }
}

int node_clock_start(struct node *n, uint32_t index, struct nic_time now, int64_t wall_minus_ns)
{
    struct member *m = &n->members[index];
    const uint32_t edge_count = n->config.nic_count * n->config.edge_limit;
    const bool hardware = n->config.nics[m->local].stamps == STAMP_HARDWARE;
    const struct mesh_peer *own =
        &n->config.fleet.peers[fleet_find(&n->config.fleet, n->config.nics[m->local].nic)];
    const struct clock_config config = {
        .member = m->number,
        .stamps = hardware ? CLOCK_STAMPS_HARDWARE : CLOCK_STAMPS_SOFTWARE,
        .edge_capacity = (uint16_t)(m->domain == 0 ? edge_count : n->config.edge_limit * 4u),
        .wall_minus_ns = wall_minus_ns,
        .edge_limit_ns = n->config.edge_bound_ns,
        .hops = hops(n),
        /* two stamps for each point; with hardware the learned noise sets it */
        .guard_is_own = m->domain == 0,
        .anchor = own->anchor != 0,
        .stamp_error_ns = hardware ? 0 : 2 * (int64_t)n->config.stamp_error_ns,
        .seed = hash_u64(n->config.seed, 100 + index),
    };

    m->clock = clock_new(&config, now);
    if (!m->clock) {
        return -ENOMEM;
    }
    m->last = now;
    clock_published(m->clock, now, &m->published);
    return 0;
}

int node_clock_new(struct node *n, struct mono now)
{
    bool host_member = false;

    for (uint32_t i = 0; i < n->config.nic_count; i++) {
        const struct node_nic *nic = &n->config.nics[i];
        uint32_t index = 0;

        while (index < n->member_count && n->members[index].domain != nic->domain) {
            index++;
        }
        if (index == n->member_count) {
            n->members[n->member_count++] = (struct member){.domain = nic->domain,
                                                            .number = nic->nic.index,
                                                            .local = i,
                                                            .bound_ns = -1,
                                                            .last_mono = MONO_NEVER};
        }
        if (nic->nic.index < n->members[index].number) {
            n->members[index].number = nic->nic.index;
        }
        n->member_of[i] = (uint8_t)index;
        host_member = host_member || nic->domain == 0;
    }
    n->has_leaf = !host_member;
    n->leaf_due = n->clock_ticked = now;
    host_leaf_init(&n->leaf, 2, 100);
    for (uint32_t i = 0; i < n->member_count; i++) {
        /* a NIC's clock starts when it is first read */
        if (n->members[i].domain == 0 &&
            node_clock_start(n, i, (struct nic_time){now.ns}, n->config.wall_minus_ns) < 0) {
            return -ENOMEM;
        }
    }
    return 0;
}

void node_clock_free(struct node *n)
{
    for (uint32_t i = 0; i < n->member_count; i++) {
        clock_free(n->members[i].clock);
    }
}

bool node_member_time(const struct node *n, uint32_t member, struct mono now,
                      struct nic_time *ret_time)
{
    if (n->members[member].domain == 0) {
        *ret_time = (struct nic_time){now.ns};
        return true;
    }
    return host_leaf_nic_now(&n->leaf, now, (int)member, ret_time);
}

/* ---- faults of the host's own clock --------------------------------------------------------- */

/* The host's clock's knowledge of its NICs' clocks is void; `nics`: the NICs' own knowledge, too. */
static void fault_clocks(struct node *n, struct mono now, enum clock_fault fault, bool nics)
{
    for (uint32_t i = 0; i < n->member_count; i++) {
        const struct member *m = &n->members[i];
        struct nic_time at;

        if (m->clock && (nics || m->domain == 0) && node_member_time(n, i, now, &at)) {
            clock_on_fault(m->clock, at, fault);
        }
    }
    if (n->has_leaf) {
        host_leaf_on_fault(&n->leaf, now);
        n->leaf_due = now;
        n->terms_changed = true;
    }
    memset(n->guards, 0, sizeof(n->guards));
}

void node_on_clock_fact(struct node *n, struct mono now, const struct node_clock_fact *event)
{
    struct nic_time at;

    n->now = now;
    switch ((enum clock_fact_kind)event->kind) {
    case CLOCK_FACT_SUSPENDED:
        node_jump_told(n);
        fault_clocks(n, now, CLOCK_FAULT_SUSPEND, true);
        mesh_on_sleep(n->mesh, now); /* its clock stood still: no round was late because of that */
        break;
    case CLOCK_FACT_SOURCE:
        node_jump_told(n);
        fault_clocks(n, now, CLOCK_FAULT_CLOCKSOURCE, true);
        break;
    case CLOCK_FACT_VM_MARKER:
        node_jump_told(n);
        fault_clocks(n, now, CLOCK_FAULT_MIGRATED, true);
        break;
    case CLOCK_FACT_STEERED:
        if (event->local < n->config.nic_count) {
            const uint32_t member = n->member_of[event->local];
            if (n->members[member].clock && node_member_time(n, member, now, &at)) {
                clock_on_steered(n->members[member].clock, at, (double)event->amount_ns);
            }
        }
        break;
    /* stamps were converted batch by batch: no clock of ours moved */
    case CLOCK_FACT_REALTIME_STEP:
        break;
    }
}

static struct guard_line *guard_find(struct node *n, uint32_t source)
{
    for (uint32_t i = 0; i < GUARD_SOURCES; i++) {
        if (n->guards[i].source == source || n->guards[i].source == 0) {
            n->guards[i].source = source;
            return &n->guards[i];
        }
    }
    return NULL;
}

void node_on_guard(struct node *n, struct mono now, const struct node_guard *event)
{
    struct guard_line *g = event->source != 0 ? guard_find(n, event->source) : NULL;
    const int64_t width = mono_sub(event->after, event->before).ns;
    const struct mono middle = {event->before.ns + width / 2};
    const int64_t offset = event->other_ns - middle.ns;
    struct nic_time at;

    n->now = now;
    if (!g || width < 0 || width > 50 * NS_PER_US) {
        return;
    }
    const double age = (double)mono_sub(middle, g->at).ns;
    const double predicted = (double)g->offset_ns + g->rate * age;
    const double off = (double)(offset - (g->count > 0 ? (int64_t)predicted : offset));
    if (g->count >= GUARD_COUNT &&
        fabs(off) > GUARD_NS + (double)width / 2 + GUARD_RATE / 4 * age) {
        n->guard_broke = true;
        fault_clocks(n, now, CLOCK_FAULT_GUARD, true);
        return;
    }
    if (g->count == 0) {
        g->start = middle;
        g->start_offset_ns = offset;
    } else if (mono_sub(middle, g->start).ns > 100 * NS_PER_MS) {
        const double rate =
            (double)(offset - g->start_offset_ns) / (double)mono_sub(middle, g->start).ns;
        g->rate = g->count < GUARD_COUNT ? rate : g->rate + 0.01 * (rate - g->rate);
        /* the fit covers only the last seconds */
        if (mono_sub(middle, g->start).ns > 2 * NS_PER_S) {
            g->start = middle;
            g->start_offset_ns = offset;
        }
    }
    g->offset_ns = g->count < GUARD_COUNT ? offset : (int64_t)(predicted + 0.05 * off);
    g->at = middle;
    g->count++;
    for (uint32_t i = 0; i < n->member_count && g->count > GUARD_COUNT; i++) {
        if (n->members[i].clock && node_member_time(n, i, now, &at)) {
            clock_on_guard(n->members[i].clock, at, GUARD_NS, GUARD_RATE);
        }
    }
}

/* ---- time ----------------------------------------------------------------------------------- */

#define UTC_AGE_RATE 1e-3 /* no two clocks of a host differ more */

/* Keeps the host's UTC for a NIC's clock, as exactly as brackets relate the two clocks. The host's clock may have stepped since
 * the last bracket. The next one shows that, so the value waits for it. */
static void keep_anchor(struct node *n, struct mono now, uint32_t member,
                        const struct node_anchor *event)
{
    struct member *m = &n->members[member];
    const int64_t ago = mono_sub(now, event->at).ns;

    m->anchor.waits = node_member_time(n, member, now, &m->anchor.at);
    if (m->anchor.waits) {
        m->anchor.at.ns -= ago;
        m->anchor.utc_ns = event->utc_ns;
        m->anchor.bound_ns = (double)event->bound_ns + UTC_AGE_RATE * fabs((double)ago) +
                             host_leaf_nic_error_ns(&n->leaf, now, (int)member);
    }
}

/* continued: the bracket agrees with earlier ones. A step may hide within their error. */
void node_clock_on_bracket(struct node *n, struct mono now, uint32_t member, bool continued)
{
    struct member *m = &n->members[member];

    if (m->anchor.waits && continued && m->clock) {
        clock_on_utc(m->clock, m->anchor.at, m->anchor.utc_ns,
                     m->anchor.bound_ns + host_leaf_nic_error_ns(&n->leaf, now, (int)member));
    }
    m->anchor.waits = false;
}

/* A lost source gives no values: its last one becomes less exact with every second. */
void node_on_anchor(struct node *n, struct mono now, const struct node_anchor *event)
{
    n->now = now;
    for (uint32_t i = 0; i < n->member_count && event->trusted != 0 && event->bound_ns >= 0; i++) {
        if (n->members[i].domain != 0) {
            keep_anchor(n, now, i, event);
        } else {
            clock_on_utc(n->members[i].clock, (struct nic_time){event->at.ns}, event->utc_ns,
                         (double)event->bound_ns);
        }
    }
}

static void do_actions(struct node *n, struct mono now, uint32_t member)
{
    struct clock_action action;

    while (clock_next_action(n->members[member].clock, &action)) {
        switch (action.kind) {
        case CLOCK_ACTION_PUBLISH:
            n->terms_changed = n->terms_changed || n->members[member].domain == 0;
            break;
        case CLOCK_ACTION_QUERY:
            node_clock_ask(n, now, member, action.peer);
            break;
        case CLOCK_ACTION_REPLACE:
            for (int edge = 0; edge < mesh_edge_capacity(n->mesh); edge++) {
                if (n->links[edge].generation != 0 && n->links[edge].member == (int)member &&
                    n->links[edge].clock_edge == action.edge) {
                    mesh_replace(n->mesh, now, edge);
                    break;
                }
            }
            node_clock_sync_edges(n, now);
            break;
        case CLOCK_ACTION_TIMELINE:
            n->terms_changed = true;
            break;
        case CLOCK_ACTION_STATUS:
        case CLOCK_ACTION_STEP:
        case CLOCK_ACTION_LIAR:
        case CLOCK_ACTION_ASYMMETRY:
        case CLOCK_ACTION_CLEARED:
            n->terms_changed = true;
            node_finding_clock(n, now, member, &action);
            break;
        }
    }
}

static void leaf_tick(struct node *n, struct mono now)
{
    struct clock_terms terms;

    if (!n->has_leaf || mono_before(now, n->leaf_due)) {
        return;
    }
    n->leaf_due = mono_add(now, span_ns(CLOCK_TICK_NS));
    for (uint32_t i = 0; i < n->member_count; i++) {
        if (n->members[i].clock) {
            clock_terms(n->members[i].clock, &terms);
            host_leaf_on_terms(&n->leaf, now, (int)i, &terms);
        }
    }
    host_leaf_tick(&n->leaf, now);
    n->terms_changed = true;
}

/* For the mesh page, which needs it hundreds of times in a tick. */
static void note_bound(struct member *m, struct nic_time at)
{
    struct clock_terms terms;

    clock_terms(m->clock, &terms);
    struct clock_reading reading = clock_terms_read(&terms, at);
    m->synced = reading.status == CLOCK_SYNCED;
    m->bound_ns = (reading.status == CLOCK_SYNCED || reading.status == CLOCK_HOLDOVER) &&
                          reading.statistical_ns >= 0 && reading.statistical_ns < 1e9
                      ? (int64_t)ceil(2 * reading.statistical_ns)
                      : -1;
}

void node_clock_tick(struct node *n, struct mono now)
{
    /* the host's clock went back; the NICs' clocks run on */
    if (mono_before(now, n->clock_ticked)) {
        node_jump_told(n);
        fault_clocks(n, now, CLOCK_FAULT_STEP, false);
    }
    n->clock_ticked = now;
    for (uint32_t i = 0; i < n->member_count; i++) {
        struct member *m = &n->members[i];
        struct nic_time at;

        if (!m->clock || !node_member_time(n, i, now, &at)) {
            continue;
        }
        m->last = at;
        m->last_mono = now;
        if (m->domain != 0 && host_leaf_nic_broke(&n->leaf, now, (int)i)) {
            clock_on_fault(m->clock, at, CLOCK_FAULT_GUARD);
        }
        /* further ahead than any deadline: the NIC's clock went back, and would wait until it is there again */
        const int64_t ahead_ns = clock_deadline(m->clock).ns - at.ns;
        if (ahead_ns <= 0 || ahead_ns > 2 * CLOCK_TICK_NS) {
            clock_tick(m->clock, at);
            note_bound(m, at);
        }
        do_actions(n, now, i);
        clock_published(m->clock, at, &m->published);
    }
    leaf_tick(n, now);
    node_jump_tick(n, now);
}

struct mono node_clock_deadline(const struct node *n)
{
    struct mono due = n->has_leaf ? n->leaf_due : MONO_NEVER;

    for (uint32_t i = 0; i < n->member_count; i++) {
        const struct member *m = &n->members[i];
        if (m->clock && m->last_mono.ns != MONO_NEVER.ns) {
            due = mono_min(due,
                           mono_add(m->last_mono, nic_time_sub(clock_deadline(m->clock), m->last)));
        } else if (m->clock) {
            due = mono_min(due, n->now);
        }
    }
    return due;
}

/* ---- answers -------------------------------------------------------------------------------- */

void node_clock_page(const struct node *n, struct clock_terms *ret_terms)
{
    *ret_terms = (struct clock_terms){.status = CLOCK_UNKNOWN, .h_ns = -1};
    if (n->has_leaf) {
        if (!host_leaf_terms(&n->leaf, ret_terms)) {
            *ret_terms = (struct clock_terms){.status = CLOCK_UNKNOWN, .h_ns = -1};
        }
        return;
    }
    clock_terms(n->members[node_host_member(n)].clock, ret_terms);
}

uint32_t node_member_count(const struct node *n)
{
    return n->member_count;
}

const struct clock *node_member_clock(const struct node *n, uint32_t member)
{
    return member < n->member_count ? n->members[member].clock : NULL;
}

uint32_t node_host_member(const struct node *n)
{
    for (uint32_t i = 0; i < n->member_count; i++) {
        if (n->members[i].domain == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

bool node_fleet_time(const struct node *n, struct mono at, struct fleet_time *ret_time)
{
    struct clock_terms terms;

    node_clock_page(n, &terms);
    struct clock_reading reading = clock_terms_read(&terms, (struct nic_time){at.ns});
    if (reading.status == CLOCK_UNKNOWN) {
        return false;
    }
    *ret_time = reading.time;
    return true;
}
