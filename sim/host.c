/* host.c: one host: its agent's round, its NICs' stamps, and the answers of its kernel. */
#include "sim/world.h"

#include "sim/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOW_NS (100 * NS_PER_MS) /* brackets */
#define AHEAD   4                 /* packets that are prefetched */

int64_t host_stamp(struct world *w, int host, uint32_t local, int64_t at)
{
    struct world_host *h = &w->hosts[host];
    return crystal_read(world_nics_stamp(w, host) ? &h->nics[local].crystal : &h->raw, at, NULL);
}

/* ---- events for the node ---- */
static struct recorder *recorder_of(const struct world *w, const struct world_host *h)
{
    return h == &w->hosts[w->record_host] ? w->recorder : NULL;
}

static void tell(struct world *w, struct world_host *h, enum node_event_kind kind, struct mono now,
                 const void *event)
{
    recorder_append(recorder_of(w, h), kind, now, event);
    if (node_on_event(h->node, now, kind, event) < 0) {
        bug_found("node_on_event", __FILE__, __LINE__, __func__);
    }
}

void host_tell_peers(struct world *w, int host, const struct mesh_fleet *fleet)
{
    const struct mono now = {world_raw(w, host, w->now)};
    tell(w, &w->hosts[host], NODE_EVENT_PEERS, now, fleet);
}

/* ---- life of the agent ---- */
/* The fleet's edge limit as `foliot doctor` would propose it: the longest path of an idle fabric, and a margin. */
static uint32_t edge_limit(const struct world *w)
{
    const struct scenario_clocks *c = &w->scenario->clocks;
    const double longest = (double)network_longest(&w->network);

    if (c->edge_limit_ns > 0) {
        return (uint32_t)c->edge_limit_ns;
    }
    /* twice the error of software stamps, and a margin */
    const double stamps = c->stamps == STAMPS_NIC ? 0 : 3000;
    return (uint32_t)(1.1 * longest + 1500 + 12 * c->noise_ns + 2 * c->jitter_ns + stamps);
}

static struct node_config node_configure(struct world *w, int host)
{
    const struct scenario *s = w->scenario;
    const bool hardware = world_nics_stamp(w, host);
    struct node_config c = {
        .host = {(uint32_t)host},
        .nic_count = (uint32_t)w->nics_per_host,
        .fleet = w->fleet,
        .seed = hash_u64(w->seed ^ 0x686f7374, (uint64_t)host) ^ w->hosts[host].generation,
        .no_discovery = s->fabric.network == NETWORK_ABSTRACT,
        .edge_bound_ns = edge_limit(w),
        .edge_limit = (uint16_t)s->fabric.edges_per_nic,
        .path_limit = (uint16_t)(s->fabric.network == NETWORK_ABSTRACT ? s->fabric.paths : 0)};
    for (int i = 0; i < w->nics_per_host; i++) {
        c.nics[i] = (struct node_nic){.nic = {world_nic(w, host, i)},
                                      .stamps = hardware ? STAMP_HARDWARE : STAMP_SOFTWARE,
                                      .domain = hardware ? (uint8_t)(i + 1) : 0,
                                      .speed_mbps = (uint32_t)s->fabric.link_mbps};
    }
    return c;
}

/* A stopped agent keeps its state for the next one, as in its state file. */
void host_save(struct world *w, int host)
{
    struct world_host *h = &w->hosts[host];

    if (h->node == NULL || !w->scenario->clocks.warm_start) {
        return;
    }
    free(h->saved);
    h->saved_size = node_saved_size(h->node);
    h->saved = malloc(h->saved_size);
    if (h->saved != NULL) {
        node_save(h->node, (struct mono){world_raw(w, host, w->now)}, h->saved);
    }
}

static void restore(struct world *w, struct world_host *h, struct mono now)
{
    if (h->saved != NULL && node_restore(h->node, now, h->saved, h->saved_size) == 0 &&
        recorder_of(w, h) != NULL) {
        recorder_restored(w->recorder, h->saved, h->saved_size);
    }
    free(h->saved);
    h->saved = NULL;
}

void host_start(struct world *w, int host)
{
    struct world_host *h = &w->hosts[host];

    if (h->node != NULL || h->held > 0) {
        return;
    }
    h->generation++;
    w->trace = hash_u64(w->trace, h->trace);
    h->trace = 0;
    const struct node_config config = node_configure(w, host);
    const struct mono now = {world_raw(w, host, w->now)};
    if (node_new(&h->node, &config, now) < 0) {
        bug_found("node_new", __FILE__, __LINE__, __func__);
    }
    if (recorder_of(w, h) != NULL) {
        recorder_start(w->recorder, &config, now);
    }
    restore(w, h, now);
    h->started = w->now;
    const struct node_anchor wall = {
        .at = now, .utc_ns = WORLD_UTC_NS + w->now + h->wall_error_ns, .bound_ns = NS_PER_S};
    tell(w, h, NODE_EVENT_ANCHOR, now, &wall);
    page_maker_init(&h->page);
    h->page_valid = false;
    h->next_slow = w->now;
    h->due = h->ticked = 0;
    for (int i = 0; i < w->nics_per_host; i++) {
        h->nics[i].facts_new = true;
        h->nics[i].facts_at = w->now;
    }
    if (!h->wake_due) {
        h->wake_due = true;
        agenda_add(&w->agenda, w->now + 1000, WORLD_WAKE, (uint32_t)host);
    }
}

void host_stop(struct world *w, int host)
{
    struct world_host *h = &w->hosts[host];

    h->node = node_free(h->node);
    for (size_t i = 0; i < h->inbox_count; i++) {
        world_packet_free(w, h->inbox[i].packet);
    }
    h->inbox_count = 0;
    h->outbox_count = 0;
}

void host_carrier(struct world *w, int host, int nic, bool carrier, bool present)
{
    struct world_nic *n = &w->hosts[host].nics[nic];

    if (n->facts.carrier == carrier && n->facts.present == present) {
        return;
    }
    if (n->facts.carrier != 0 && !carrier) {
        n->facts.carrier_down_count++;
        w->hosts[host].downs++;
    } else if (n->facts.carrier == 0 && carrier) {
        n->facts.carrier_up_count++;
    }
    if (n->facts.present == 0 && present) { /* a new device counts from zero */
        n->facts.carrier_down_count = n->facts.carrier_up_count = 0;
    }
    n->facts.carrier = carrier;
    n->facts.present = present;
    n->facts_new = true;
    n->facts_at = w->now + NS_PER_MS + (int64_t)prng_below(&w->hosts[host].random, 20 * NS_PER_MS);
    w->network.carrier[world_nic(w, host, nic)] = carrier && present;
}

/* ---- arrivals ---- */
static int by_arrival(const void *a, const void *b)
{
    const struct inbox_item *x = a, *y = b;
    if (x->at != y->at) {
        return x->at < y->at ? -1 : 1;
    }
    return x->packet < y->packet ? -1 : 1;
}

/* Moves the packets that have arrived to the front, sorted; returns how many. */
static size_t arrived(struct world_host *h, int64_t now)
{
    size_t n = 0;

    for (size_t i = 0; i < h->inbox_count; i++) {
        if (h->inbox[i].at <= now) {
            const struct inbox_item item = h->inbox[n];
            h->inbox[n++] = h->inbox[i];
            h->inbox[i] = item;
        }
    }
    if (n > 1) {
        qsort(h->inbox, n, sizeof(h->inbox[0]), by_arrival);
    }
    return n;
}

static void on_hop(struct world *w, struct world_host *h, struct mono now, const struct packet *p)
{
    struct node_hop hop = {.token = p->token,
                           .local = p->src % (uint32_t)w->nics_per_host,
                           .peer = {p->dst},
                           .source_port = p->source_port,
                           .ttl = p->ttl};
    network_router(&w->network, p, hop.address);
    tell(w, h, NODE_EVENT_HOP, now, &hop);
}

static void on_item(struct world *w, struct world_host *h, struct mono now,
                    const struct inbox_item *item)
{
    struct packet *p = &w->packets[item->packet];

    switch (item->kind) {
    case INBOX_RECEIVE:
        h->received++;
        tell(w, h, NODE_EVENT_RECEIVE, now, &p->receive);
        break;
    case INBOX_TRANSMIT: {
        const struct node_transmit tx = {.token = p->token,
                                         .tx = p->receive.rx,
                                         .local = p->receive.local,
                                         .error_ns = p->receive.error_ns,
                                         .outcome = p->stage,
                                         .stamps = p->receive.stamps};
        tell(w, h, NODE_EVENT_TRANSMIT, now, &tx);
        break;
    }
    case INBOX_HOP:
        on_hop(w, h, now, p);
        break;
    default: {
        const struct node_bad_packet bad = {
            .local = p->dst % (uint32_t)w->nics_per_host, .error = p->stage, .count = 1};
        w->refused++;
        tell(w, h, NODE_EVENT_BAD_PACKET, now, &bad);
        break;
    }
    }
    world_packet_free(w, item->packet);
}

static void expect(const struct world *w, const struct world_host *h, const struct inbox_item *item)
{
    if (item->kind == INBOX_RECEIVE) {
        node_expect(h->node, &w->packets[item->packet].receive);
    }
}

static void take_inbox(struct world *w, struct world_host *h, struct mono now)
{
    const size_t n = arrived(h, w->now);

    for (size_t i = 0; i < n && i < AHEAD; i++) {
        expect(w, h, &h->inbox[i]);
    }
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n) {
            expect(w, h, &h->inbox[i + AHEAD]);
        }
        on_item(w, h, now, &h->inbox[i]);
    }
    for (size_t i = n; i < h->inbox_count; i++) {
        h->inbox[i - n] = h->inbox[i];
    }
    h->inbox_count -= n;
}

/* ---- answers of the kernel ---- */
/* Does what the agent does at each publication, and after each guard pass. */
static void publish(struct world *w, int host, struct mono now)
{
    struct world_host *h = &w->hosts[host];
    const struct clock_page_terms was = h->page.page.terms;
    struct clock_terms terms;

    node_clock_page(h->node, &terms);
    page_maker_update(&h->page, &terms, now);
    check_publish(w, host, h->page_valid ? &was : NULL);
    h->page_valid = true;
}

static void tell_guard(struct world *w, int host, struct mono now)
{
    struct world_host *h = &w->hosts[host];
    const int64_t width = 40 + (int64_t)(20 * prng_exponential(&h->random));
    const struct node_guard guard = {.before = {now.ns},
                                     .other_ns = crystal_read(&h->second, w->now + width / 2, NULL),
                                     .after = {world_raw(w, host, w->now + width)},
                                     .source = 64};
    tell(w, h, NODE_EVENT_GUARD, now, &guard);
    if (h->page_valid) {
        publish(w, host, now);
    }
}

/* Takes the narrowest of nine readings, as the agent does. */
static void read_nic(struct world *w, int host, double *ret_there, double *ret_back)
{
    const struct scenario_clocks *c = &w->scenario->clocks;
    struct prng *p = &w->hosts[host].random;

    *ret_there = *ret_back = 1e9;
    for (int i = 0; i < 9; i++) {
        const double there = c->nic_read_ns / 2 + c->nic_read_noise_ns * prng_exponential(p);
        const double back = c->nic_read_ns / 2 + c->nic_read_noise_ns * prng_exponential(p);
        if (there + back < *ret_there + *ret_back) {
            *ret_there = there;
            *ret_back = back;
        }
    }
}

static void tell_brackets(struct world *w, int host, struct mono now)
{
    struct world_host *h = &w->hosts[host];

    for (int i = 0; i < w->nics_per_host; i++) {
        double there, back;
        read_nic(w, host, &there, &back);
        const int64_t at = w->now + (int64_t)there;
        const struct node_bracket b = {.before = {now.ns},
                                       .nic = {crystal_read(&h->nics[i].crystal, at, NULL)},
                                       .after = {world_raw(w, host, at + (int64_t)back)},
                                       .local = (uint32_t)i};
        if (h->nics[i].facts.present != 0) {
            tell(w, h, NODE_EVENT_BRACKET, now, &b);
        }
    }
}

static void tell_slow(struct world *w, int host, struct mono now)
{
    struct world_host *h = &w->hosts[host];

    if (world_nics_stamp(w, host)) {
        tell_brackets(w, host, now);
    }
    if (h->anchor && (w->now / SLOW_NS) % 10 == 0) {
        const double bound = (double)w->scenario->clocks.anchor_bound_ns;
        /* a server's error moves slowly */
        const double error = bound / 3 * sin((double)w->now * 1e-11 + (double)(host * 2));
        const struct node_anchor a = {.at = now,
                                      .utc_ns = WORLD_UTC_NS + w->now + (int64_t)error,
                                      .bound_ns = (int64_t)bound,
                                      .trusted = 1};
        tell(w, h, NODE_EVENT_ANCHOR, now, &a);
    }
}

static void tell_facts(struct world *w, int host, struct mono now)
{
    struct world_host *h = &w->hosts[host];

    for (int i = 0; i < w->nics_per_host; i++) {
        struct world_nic *n = &h->nics[i];
        if (n->facts_new && n->facts_at <= w->now) {
            struct node_link link = {.local = (uint32_t)i, .facts = n->facts};
            link.facts.at = now;
            n->facts_new = false;
            tell(w, h, NODE_EVENT_LINK, now, &link);
        }
    }
    if (h->suspended_ns > 0) {
        const struct node_clock_fact fact = {
            .kind = CLOCK_FACT_SUSPENDED, .local = UINT32_MAX, .amount_ns = h->suspended_ns};
        h->suspended_ns = 0;
        tell(w, h, NODE_EVENT_CLOCK_FACT, now, &fact);
    }
}

/* ---- departures ---- */
uint64_t world_trace_action(uint64_t trace, struct mono now, const struct node_action *a)
{
    if (a->kind == NODE_SEND) {
        const struct probe *p = &a->send.probe;
        trace = hash_u64(trace ^ a->send.token, (uint64_t)p->map.map.x);
        return hash_u64(trace ^ (uint64_t)now.ns,
                        ((uint64_t)a->send.peer.index << 32) | a->send.source_port);
    }
    if (a->kind == NODE_FINDING) {
        return hash_u64(trace ^ (uint64_t)now.ns,
                        a->finding.number ^ ((uint64_t)a->finding.kind << 32));
    }
    return trace;
}

static void act(struct world *w, int host, struct mono now)
{
    struct world_host *h = &w->hosts[host];
    struct node_action a;

    while (node_next_action(h->node, &a)) {
        h->trace = world_trace_action(h->trace, now, &a);
        switch (a.kind) {
        case NODE_SEND:
            host_queue(h, w->now, &a.send);
            break;
        case NODE_PUBLISH_CLOCK:
            publish(w, host, now);
            break;
        case NODE_FINDING:
            if (recorder_of(w, h) != NULL) {
                recorder_finding(w->recorder, &a.finding);
            }
            world_found(w, host, &a.finding);
            break;
        default:
            break;
        }
    }
    if (recorder_of(w, h) != NULL) {
        recorder_drained(w->recorder);
    }
}

/* ---- the round ---- */
/* The time at or after `at` when the agent runs. */
static int64_t runnable(struct world_host *h, int64_t at)
{
    if (h->starved_until > at && h->starve_turn > 0) {
        const int64_t turn = at % h->starve_turn;
        const int64_t run = (int64_t)((1 - h->starve_share) * (double)h->starve_turn);
        if (turn > run) {
            at += h->starve_turn - turn;
        }
    }
    return at > h->stopped_until ? at : h->stopped_until;
}

/* The agent sleeps until its node needs a tick or until the next turn of the grid, whichever comes first. */
static void sleep_until_due(struct world *w, int host, struct mono now)
{
    struct world_host *h = &w->hosts[host];
    const int64_t late = (int64_t)(20000 * prng_exponential(&h->random));
    const int64_t grid = (now.ns / WORLD_GRID_NS + 1) * WORLD_GRID_NS;

    h->due = node_deadline(h->node).ns;
    const int64_t until = h->due < grid ? h->due : grid;
    const int64_t sleep = until - now.ns < 10000 ? 10000 : until - now.ns;
    /* by its own clock; that clock's error (ppm) is far below `late` */
    h->wake_due = true;
    agenda_add(&w->agenda, w->now + sleep + 2000 + late, WORLD_WAKE, (uint32_t)host);
}

/* Sends the packets that are due, and sleeps until the next one is, as the agent does. */
static void depart(struct world *w, int host, struct mono now)
{
    struct world_host *h = &w->hosts[host];
    const int64_t next = host_depart(w, host);

    if (next == INT64_MAX) {
        sleep_until_due(w, host, now);
    } else {
        h->wake_due = true;
        agenda_add(&w->agenda, next, WORLD_WAKE, (uint32_t)host);
    }
}

void host_wake(struct world *w, int host)
{
    struct world_host *h = &w->hosts[host];

    h->wake_due = false;
    if (h->node == NULL) {
        return;
    }
    const int64_t when = runnable(h, w->now);
    if (when > w->now) {
        h->wake_due = true;
        agenda_add(&w->agenda, when, WORLD_WAKE, (uint32_t)host);
        return;
    }
    const struct mono now = {world_raw(w, host, w->now)};
    if (h->outbox_count > 0) { /* the last round left some */
        depart(w, host, now);
        return;
    }
    tell_facts(w, host, now);
    take_inbox(w, h, now);
    if (w->scenario->clocks.guard) {
        tell_guard(w, host, now);
    }
    if (w->now >= h->next_slow) {
        h->next_slow = w->now + SLOW_NS;
        tell_slow(w, host, now);
    }
    if (now.ns >= h->due || now.ns < h->ticked) { /* the clock went back */
        h->ticked = now.ns;
        tell(w, h, NODE_EVENT_TICK, now, NULL);
    }
    act(w, host, now);
    depart(w, host, now);
}
