/* world.c: the loop, the packets, and how a scenario becomes a world. */
#include "sim/world.h"

#include "sim/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- packets ---- */
#define PACKET_NONE UINT32_MAX

uint32_t world_packet_new(struct world *w)
{
    uint32_t i = w->packet_free;

    if (i != PACKET_NONE) {
        w->packet_free = w->packets[i].next_free;
        return i;
    }
    if (w->packet_count == w->packet_capacity) {
        const uint32_t capacity = w->packet_capacity == 0 ? 4096 : 2 * w->packet_capacity;
        struct packet *packets = realloc(w->packets, capacity * sizeof(*packets));
        ASSERT(packets != NULL);
        w->packets = packets;
        w->packet_capacity = capacity;
    }
    return w->packet_count++;
}

void world_packet_free(struct world *w, uint32_t packet)
{
    w->packets[packet].next_free = w->packet_free;
    w->packet_free = packet;
}

uint32_t world_nic(const struct world *w, int host, int nic)
{
    return (uint32_t)(host * w->nics_per_host + nic);
}

int64_t world_raw(struct world *w, int host, int64_t at)
{
    return crystal_read(&w->hosts[host].raw, at, NULL);
}

void world_deliver(struct world *w, int host, int64_t at, enum inbox_kind kind, uint32_t packet)
{
    struct world_host *h = &w->hosts[host];

    if (h->node == NULL || h->inbox_count >= WORLD_BACKLOG) {
        world_packet_free(w, packet);
        return;
    }
    if (h->inbox_count == h->inbox_capacity) {
        const size_t capacity = h->inbox_capacity == 0 ? 16 : 2 * h->inbox_capacity;
        struct inbox_item *inbox = realloc(h->inbox, capacity * sizeof(*inbox));
        ASSERT(inbox != NULL);
        h->inbox = inbox;
        h->inbox_capacity = capacity;
    }
    h->inbox[h->inbox_count++] =
        (struct inbox_item){.at = at, .packet = packet, .kind = (uint32_t)kind};
}

/* A packet is at its receiver's NIC: it is stamped now, and read later. */
void world_arrive(struct world *w, uint32_t packet, int64_t at)
{
    struct packet *p = &w->packets[packet];
    const int host = (int)p->dst / w->nics_per_host;
    struct world_host *h = &w->hosts[host];
    const struct scenario_clocks *c = &w->scenario->clocks;
    const uint32_t local = p->dst % (uint32_t)w->nics_per_host;

    if (h->node == NULL || w->network.carrier[p->dst] == 0) {
        world_packet_free(w, packet);
        return;
    }
    double late = c->noise_ns * prng_normal(&h->random);
    if (world_jitter_ns(w, host) > 0) {
        late += world_jitter_ns(w, host) * prng_exponential(&h->random);
    }
    p->arrives = at;
    p->receive.local = local;
    p->receive.source_port = p->source_port;
    p->receive.rx.ns = host_stamp(w, host, local, at) + (int64_t)late;
    if (c->quantum_ns > 1) {
        p->receive.rx.ns -= p->receive.rx.ns % (int64_t)c->quantum_ns;
    }
    p->receive.stamps = world_nics_stamp(w, host) ? STAMP_HARDWARE : STAMP_SOFTWARE;
    p->receive.error_ns = (uint32_t)(8.5 * c->noise_ns + c->quantum_ns + 10);
    if (w->recorded != NULL) {
        world_record(w, p);
    }
    check_arrival(w, p);
    world_deliver(w, host, at, INBOX_RECEIVE, packet);
}

static void step(struct world *w, uint32_t packet, enum network_step step, int64_t at)
{
    struct packet *p = &w->packets[packet];

    switch (step) {
    case NETWORK_ON:
        agenda_add(&w->agenda, at, WORLD_HOP, packet);
        break;
    case NETWORK_ARRIVES:
        world_arrive(w, packet, at);
        break;
    case NETWORK_EXPIRES:
        world_deliver(w, network_host(&w->network, p->src), at, INBOX_HOP, packet);
        break;
    case NETWORK_LOST:
        world_packet_free(w, packet);
        break;
    }
}

void world_launch(struct world *w, uint32_t packet)
{
    int64_t at = 0;
    const enum network_step s = network_start(&w->network, &w->packets[packet], &at);

    w->probes++;
    step(w, packet, s, at);
}

/* ---- the loop ---- */
static void handle(struct world *w, const struct agenda_item *item)
{
    int64_t at = 0;

    switch (item->kind) {
    case WORLD_WAKE:
        host_wake(w, (int)item->subject);
        break;
    case WORLD_HOP: {
        const enum network_step s =
            network_hop(&w->network, &w->packets[item->subject], w->now, &at);
        step(w, item->subject, s, at);
        break;
    }
    case WORLD_FAULT_ON:
        world_fault(w, item->subject, true);
        break;
    case WORLD_FAULT_OFF:
        world_fault(w, item->subject, false);
        break;
    case WORLD_FLAP:
        world_flap(w, item->subject);
        break;
    case WORLD_TRAFFIC:
        network_traffic(&w->network, w->now);
        break;
    case WORLD_START:
        host_start(w, (int)item->subject);
        break;
    case WORLD_EVERY:
        world_fault_turn(w, item->subject);
        break;
    default:
        break;
    }
}

void world_run(struct world *w, int64_t until)
{
    struct agenda_item item;

    while (w->agenda.count > 0 && w->agenda.items[0].at < until) {
        if (!agenda_next(&w->agenda, &item)) {
            break;
        }
        /* an instant is judged after all that happens at it: a clock that steps then has its fault by then */
        while (w->check_every > 0 && item.at > w->next_check) {
            w->now = w->next_check;
            check_instant(w);
            w->next_check += w->check_every;
        }
        w->now = item.at > w->now ? item.at : w->now;
        w->events++;
        handle(w, &item);
    }
    w->now = until;
}

void world_found(struct world *w, int host, const struct finding *finding)
{
    if (w->finding_count == w->finding_capacity) {
        const size_t capacity = w->finding_capacity == 0 ? 64 : 2 * w->finding_capacity;
        struct world_finding *findings = realloc(w->findings, capacity * sizeof(*findings));
        ASSERT(findings != NULL);
        w->findings = findings;
        w->finding_capacity = capacity;
    }
    w->findings[w->finding_count++] =
        (struct world_finding){.at = w->now, .host = host, .finding = *finding};
    check_finding(w, &w->findings[w->finding_count - 1]);
}

uint64_t world_trace(const struct world *w)
{
    uint64_t trace = w->trace;

    for (int i = 0; i < w->host_count; i++) {
        trace = hash_u64(trace, w->hosts[i].trace);
    }
    return trace;
}

/* ---- life ---- */
static int make_fleet(struct world *w)
{
    const int nics = w->host_count * w->nics_per_host;
    const int routers = w->network.leaves + w->network.spines;

    w->peers = calloc((size_t)nics, sizeof(*w->peers));
    w->fewer = calloc((size_t)nics * (2 * (size_t)w->scenario->fault_count + 1), sizeof(*w->fewer));
    w->routers = calloc((size_t)routers, sizeof(*w->routers));
    if (w->peers == NULL || w->fewer == NULL || w->routers == NULL) {
        return -ENOMEM;
    }
    const bool fabric = w->scenario->fabric.network == NETWORK_FABRIC;
    for (int i = 0; i < nics; i++) {
        w->peers[i] = (struct mesh_peer){
            .nic = {(uint32_t)i},
            .host = {(uint32_t)(i / w->nics_per_host)},
            .rail = (uint16_t)(i % w->nics_per_host),
            .anchor = w->scenario->clocks.anchors_named &&
                      i / w->nics_per_host < w->scenario->clocks.anchors,
            .leaf = fabric ? (uint16_t)network_leaf(&w->network, (uint32_t)i) : LEAF_UNKNOWN};
    }
    for (int i = 0; i < routers; i++) {
        const bool spine = i >= w->network.leaves;
        const int number = spine ? i - w->network.leaves : i;
        w->routers[i].place = spine ? PLACE_SPINE : PLACE_LEAF;
        w->routers[i].number = (uint32_t)number;
        network_address(spine, number, w->routers[i].address);
    }
    w->fleet = (struct mesh_fleet){.seed = 7,
                                   .peers = w->peers,
                                   .peer_count = (uint32_t)nics,
                                   .router_count = fabric ? (uint32_t)routers : 0,
                                   .routers = w->routers};
    return 0;
}

static void make_crystal(struct world *w, struct crystal *c, uint64_t seed, bool far)
{
    const struct scenario_clocks *k = &w->scenario->clocks;
    struct prng p;

    prng_init(&p, seed);
    const bool ramps = prng_uniform(&p) < k->ramp_share;
    const struct crystal_config config = {
        .seed = seed,
        .offset_ns =
            far ? 100000 * NS_PER_S + (int64_t)((2 * prng_uniform(&p) - 1) * (double)k->offset_ns)
                : 100000 * NS_PER_S,
        .ppm = (2 * prng_uniform(&p) - 1) * k->ppm,
        .wander = k->wander,
        .ramp_ppb_s = ramps ? k->ramp_ppb_s : 0,
        .ramp_for_ns = k->ramp_for_ns,
        .ramp_every_ns = k->ramp_every_ns,
        .ramp_phase_ns =
            k->ramp_every_ns > 0 ? (int64_t)prng_below(&p, (uint64_t)k->ramp_every_ns) : 0,
    };
    crystal_init(c, &config);
}

static void make_host(struct world *w, int host)
{
    struct world_host *h = &w->hosts[host];
    const uint64_t seed = hash_u64(w->seed, 100 + (uint64_t)host);

    prng_init(&h->random, seed);
    /* an oscillator starts near zero with its host; wall clocks have the large numbers */
    make_crystal(w, &h->raw, hash_u64(seed, 1), true);
    make_crystal(w, &h->second, hash_u64(seed, 2), true);
    for (int i = 0; i < w->nics_per_host; i++) {
        struct world_nic *nic = &h->nics[i];
        if (world_nics_stamp(w, host)) {
            make_crystal(w, &nic->crystal, hash_u64(seed, 3 + (uint64_t)i), true);
        }
        nic->facts = (struct link_facts){.present = 1,
                                         .carrier = 1,
                                         .width = 4,
                                         .speed_mbps = (uint32_t)w->scenario->fabric.link_mbps};
        nic->facts_new = true;
    }
    h->wall_error_ns = (int64_t)(prng_normal(&h->random) * 0.5e9);
    if (prng_uniform(&h->random) < 0.1) { /* its battery is dead */
        h->wall_error_ns = (int64_t)((2 * prng_uniform(&h->random) - 1) * 3600e9);
    }
    h->version = PROBE_VERSION;
    h->anchor = host < w->scenario->clocks.anchors;
    /* agents start within the first 200 ms, as in a rollout */
    agenda_add(&w->agenda, (int64_t)prng_below(&h->random, 200 * NS_PER_MS), WORLD_START,
               (uint32_t)host);
}

static void plan_traffic(struct world *w)
{
    agenda_add(&w->agenda, 0, WORLD_TRAFFIC, 0);
    for (int i = 0; i < w->scenario->traffic_count; i++) {
        agenda_add(&w->agenda, w->scenario->traffic[i].start_ns, WORLD_TRAFFIC, 0);
        agenda_add(&w->agenda, w->scenario->traffic[i].end_ns, WORLD_TRAFFIC, 0);
    }
}

int world_new(struct world **ret, const struct scenario *s, uint64_t seed)
{
    struct world *w = calloc(1, sizeof(*w));

    if (w == NULL) {
        return -ENOMEM;
    }
    w->scenario = s;
    w->seed = seed;
    w->packet_free = PACKET_NONE;
    w->host_count = s->fabric.hosts;
    w->nics_per_host = s->fabric.nics_per_host;
    w->check_every = 100 * NS_PER_MS;
    w->next_check = w->check_every;
    for (unsigned i = 0; i < ARRAY_COUNT(w->keys); i++) {
        w->keys[i].id = i + 1;
        memset(w->keys[i].bytes, (int)(17 * (i + 1)), sizeof(w->keys[i].bytes));
    }
    agenda_init(&w->agenda);
    int r = network_init(&w->network, s, seed);
    if (r == 0) {
        r = make_fleet(w);
    }
    if (r == 0) {
        w->hosts = calloc((size_t)w->host_count, sizeof(*w->hosts));
        r = w->hosts == NULL ? -ENOMEM : 0;
    }
    for (int i = 0; i < w->host_count && r == 0; i++) {
        make_host(w, i);
    }
    if (r == 0) {
        plan_traffic(w);
        r = world_faults_init(w);
    }
    if (r == 0) {
        r = check_new(&w->check, w);
    }
    if (r < 0) {
        world_free(w);
        return r;
    }
    *ret = w;
    return 0;
}

static void free_host(struct world *w, struct world_host *h)
{
    node_free(h->node);
    free(h->inbox);
    free(h->outbox);
    free(h->saved);
    crystal_done(&h->raw);
    crystal_done(&h->second);
    for (int i = 0; i < w->nics_per_host; i++) {
        crystal_done(&h->nics[i].crystal);
    }
}

struct world *world_free(struct world *w)
{
    if (w == NULL) {
        return NULL;
    }
    for (int i = 0; i < w->host_count && w->hosts != NULL; i++) {
        free_host(w, &w->hosts[i]);
    }
    for (unsigned i = 0; i < SCENARIO_FAULT_MAX; i++) {
        free(w->fault_hosts[i]);
    }
    check_free(w->check);
    network_done(&w->network);
    agenda_done(&w->agenda);
    free(w->hosts);
    free(w->peers);
    free(w->fewer);
    free(w->routers);
    free(w->packets);
    free(w->recorded);
    free(w->findings);
    free(w);
    return NULL;
}
