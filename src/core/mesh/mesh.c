/* mesh.c: the life of the mesh and of its edges, its queues, its answers. prober.c decides what is sent when, hear.c evaluates
 * packets, verdict.c makes verdicts. */
#include "core/mesh/mesh.h"

#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "core/fleet/locate.h"
#include "core/mesh/internal.h"

#define CHOICE_MAX 256

/* ---- queues --------------------------------------------------------------------------------- */

void mesh_verdict_push(struct mesh *m, struct mesh_verdict verdict)
{
    if (m->verdict_count == m->verdict_limit) {
        m->counters.verdicts_dropped++;
        return;
    }
    m->verdicts[m->verdict_count++] = verdict;
}

bool mesh_next_verdict(struct mesh *m, struct mesh_verdict *ret_verdict)
{
    if (m->verdict_next == m->verdict_count) {
        m->verdict_next = m->verdict_count = 0;
        return false;
    }
    *ret_verdict = m->verdicts[m->verdict_next++];
    return true;
}

bool mesh_send_push(struct mesh *m, const struct send_entry *entry)
{
    if (m->send_count == SEND_QUEUE) {
        m->counters.sends_dropped++;
        return false;
    }
    ASSERT(m->send_count < SEND_QUEUE && entry->edge < m->edge_capacity);
    m->sends[(m->send_head + m->send_count++) % SEND_QUEUE] = *entry;
    return true;
}

void mesh_due(struct mesh *m, int edge, struct mono at)
{
    ASSERT(edge >= 0 && edge < m->edge_capacity);
    m->due[edge] = mono_min(m->due[edge], at);
    m->promised = mono_min(m->promised, at);
}

bool mesh_credit(struct mesh *m, struct mono now, int64_t *credit)
{
    (void)m;
    (void)now;
    if (*credit < NS_PER_S) {
        return false;
    }
    *credit -= NS_PER_S;
    return true;
}

static void credits_grow(struct mesh *m, struct mono now)
{
    for (uint32_t i = 0; i < m->config.nic_count; i++) {
        struct nic *nic = &m->nics[i];
        const int64_t age = mono_sub(now, nic->credit_at).ns;
        const int64_t gone = age < 0 ? 0 : age < NS_PER_S ? age : NS_PER_S; /* < 0: a step */

        nic->burst_credit += gone * MESH_BURST_RATE;
        nic->probe_credit += gone * MESH_DISCOVERY_RATE;
        if (nic->burst_credit > MESH_BURST_RATE * NS_PER_S) {
            nic->burst_credit = MESH_BURST_RATE * NS_PER_S;
        }
        if (nic->probe_credit > MESH_DISCOVERY_RATE / 4 * NS_PER_S) {
            nic->probe_credit = MESH_DISCOVERY_RATE / 4 * NS_PER_S;
        }
        nic->full_credit += gone * MESH_FULL_RATE;
        if (nic->full_credit > MESH_FULL_RATE * NS_PER_S) {
            nic->full_credit = MESH_FULL_RATE * NS_PER_S;
        }
        nic->credit_at = now;
    }
}

uint32_t mesh_router(struct mesh *m, const uint8_t address[static 16])
{
    uint64_t low, high;

    memcpy(&low, address, 8);
    memcpy(&high, address + 8, 8);
    uint64_t hash = hash_u64(low, high);
    for (uint32_t i = 0; i < m->router_count; i++) {
        if (m->routers[i].hash == hash && memcmp(m->routers[i].address, address, 16) == 0) {
            return i + 1;
        }
    }
    if (m->router_count == ROUTER_MAX) {
        return 0;
    }
    struct router *r = &m->routers[m->router_count++];
    *r = (struct router){.hash = hash, .place = PLACE_ROUTER, .number = UINT32_MAX};
    memcpy(r->address, address, 16);
    for (uint32_t i = 0; i < m->config.fleet.router_count; i++) {
        if (memcmp(m->config.fleet.routers[i].address, address, 16) == 0) {
            r->place = m->config.fleet.routers[i].place;
            r->number = m->config.fleet.routers[i].number;
        }
    }
    r->name = router_name(r->place, r->number, r->hash);
    return m->router_count;
}

/* ---- edges ---------------------------------------------------------------------------------- */

int mesh_edge_find(const struct mesh *m, uint32_t local, struct nic_id peer)
{
    const struct nic *nic = &m->nics[local];

    for (uint32_t i = (uint32_t)hash_u64(1, peer.index);; i++) {
        const int32_t edge = nic->table[i & m->table_mask];
        if (edge < 0 || nic_id_equal(m->edges[edge].nic, peer)) {
            return edge;
        }
    }
}

static void table_insert(struct mesh *m, uint32_t local, int edge)
{
    uint32_t i = (uint32_t)hash_u64(1, m->edges[edge].nic.index);

    /* twice as many places as edges: every search ends at an empty one */
    ASSERT(2u * m->config.edge_limit <= m->table_mask + 1);
    while (m->nics[local].table[i & m->table_mask] >= 0) {
        i++;
    }
    m->nics[local].table[i & m->table_mask] = edge;
}

static void table_rebuild(struct mesh *m, uint32_t local)
{
    for (uint32_t i = 0; i <= m->table_mask; i++) {
        m->nics[local].table[i] = -1;
    }
    for (int i = 0; i < m->config.edge_limit; i++) {
        const int edge = (int)local * m->config.edge_limit + i;
        if (m->edges[edge].used) {
            table_insert(m, local, edge);
        }
    }
}

static struct delay_window *edge_delay(struct mesh *m, int edge, uint32_t path, uint32_t in)
{
    return &m->delays[((size_t)edge * m->config.path_limit + path) * 2 + in];
}

int mesh_edge_add(struct mesh *m, struct mono now, uint32_t local, const struct peer_choice *choice)
{
    const struct mesh_peer *peer = &m->config.fleet.peers[choice->index];
    struct mesh_edge *e = NULL;
    int edge;

    for (edge = (int)local * m->config.edge_limit; edge < (int)(local + 1) * m->config.edge_limit;
         edge++) {
        if (!m->edges[edge].used) {
            e = &m->edges[edge];
            break;
        }
    }
    if (!e) {
        return -1;
    }
    /* otherwise two edges would count one pair's packets */
    ASSERT(mesh_edge_find(m, local, peer->nic) < 0);
    memset(e, 0, sizeof(*e));
    e->used = true;
    e->reason = choice->reason;
    e->ring = choice->ring;
    e->forward = choice->forward;
    e->rank = choice->rank;
    e->local = local;
    e->peer = choice->index;
    e->nic = peer->nic;
    e->host = peer->host;
    e->generation = ++m->generation;
    e->heard = MONO_NEVER;
    e->started = e->acked = e->min_start = e->version_start = now;
    e->owd_min[0] = e->owd_min[1] = INT64_MAX;
    e->out_min[0] = e->out_min[1] = e->in_min[0] = e->in_min[1] = INT64_MAX;
    for (uint32_t p = 0; p < EDGE_PATH_MAX; p++) {
        struct path_half *halves[2] = {&e->out[p].half, &e->in[p].half};

        for (uint32_t d = 0; d < 2; d++) {
            halves[d]->since = halves[d]->recent_start = now;
            halves[d]->heard = MONO_NEVER;
            halves[d]->delay = p < m->config.path_limit ? edge_delay(m, edge, p, d) : NULL;
            if (halves[d]->delay) {
                delay_init(halves[d]->delay, now);
            }
        }
        e->out[p].burst_next = e->in[p].proof_due = MONO_NEVER;
    }
    table_insert(m, local, edge);
    m->edge_count++;
    ASSERT(m->edge_count <= m->edge_capacity);
    prober_edge_start(m, now, edge);
    return edge;
}

static void edge_remove(struct mesh *m, int edge)
{
    struct mesh_edge *e = &m->edges[edge];

    ASSERT(e->used);
    e->used = false;
    m->due[edge] = MONO_NEVER;
    ASSERT(m->edge_count > 0);
    m->edge_count--;
    m->generation++;
    table_rebuild(m, e->local);
}

/* Chooses peers by their places on the rings. */
static void choose(struct mesh *m, struct mono now, uint32_t local)
{
    const struct mesh_config *c = &m->config;
    struct nic *nic = &m->nics[local];

    nic->choice_count = peers_chosen(nic->rings, &c->fleet, nic->peer, nic->choices, CHOICE_MAX);
    for (int edge = (int)local * c->edge_limit; edge < (int)(local + 1) * c->edge_limit; edge++) {
        struct mesh_edge *e = &m->edges[edge];
        bool wanted = e->used && e->reason == EDGE_GUEST && e->peer != UINT32_MAX;

        for (uint32_t i = 0; e->used && i < nic->choice_count && nic->choices[i].rank == 0; i++) {
            wanted = wanted || nic->choices[i].index == e->peer;
        }
        if (e->used && !wanted) {
            edge_remove(m, edge);
        }
    }
    for (uint32_t i = 0; i < nic->choice_count && nic->choices[i].rank == 0; i++) {
        const struct peer_choice *choice = &nic->choices[i];
        const int edge = mesh_edge_find(m, local, c->fleet.peers[choice->index].nic);

        if (edge < 0) {
            mesh_edge_add(m, now, local, choice);
        } else {
            m->edges[edge].reason = choice->reason;
            m->edges[edge].ring = choice->ring;
            m->edges[edge].forward = choice->forward;
            m->edges[edge].rank = 0;
        }
    }
}

static void look(struct mesh *m, struct mono now, uint32_t local)
{
    const struct mesh_config *c = &m->config;

    peers_look(m->nics[local].rings, &c->fleet, m->nics[local].peer, c->ring_peers, c->full_limit);
    choose(m, now, local);
}

void mesh_on_peers(struct mesh *m, struct mono now, const struct mesh_fleet *fleet)
{
    m->config.fleet = *fleet;
    m->router_count = 0; /* names may differ; hop lists are learned anew */
    memset(m->told, 0, TOLD_MAX * sizeof(*m->told));
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        struct mesh_edge *e = &m->edges[edge];
        e->discover_next = now;
        for (uint32_t p = 0; p < EDGE_PATH_MAX; p++) {
            memset(e->out[p].hops, 0, sizeof(e->out[p].hops));
        }
        e->peer = e->used ? fleet_find(fleet, e->nic) : UINT32_MAX;
        if (e->used && e->peer != UINT32_MAX) {
            e->host = fleet->peers[e->peer].host;
        }
    }
    for (uint32_t local = 0; local < m->config.nic_count; local++) {
        m->nics[local].peer = fleet_find(fleet, m->config.nics[local]);
        m->nics[local].discovery.edge = -1;
        look(m, now, local);
    }
}

static uint32_t moved(uint32_t index, uint32_t at, bool gone)
{
    return index == UINT32_MAX || index < at ? index : gone ? index - 1 : index + 1;
}

void mesh_on_member(struct mesh *m, struct mono now, const struct mesh_fleet *fleet,
                    const struct mesh_member *member, uint32_t at)
{
    const struct mesh_config *c = &m->config;
    const bool gone = member->gone != 0,
               /* the NIC changes other NICs' indices */
        shifts = at != fleet->peer_count - (gone ? 0 : 1);

    m->config.fleet = *fleet;
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        struct mesh_edge *e = &m->edges[edge];
        const bool is = e->used && nic_id_equal(e->nic, member->peer.nic);
        e->peer = !is ? moved(e->peer, at, gone) : gone ? UINT32_MAX : at;
        if (is && !gone) {
            e->host = member->peer.host;
        }
    }
    for (uint32_t local = 0; local < c->nic_count; local++) {
        struct nic *nic = &m->nics[local];
        nic->peer = moved(nic->peer, at, gone);
        const bool changed =
            peers_change(nic->rings, fleet, nic->peer, c->ring_peers, c->full_limit, member);
        if (changed || shifts || gone) { /* a guest may have left, too */
            choose(m, now, local);
        }
        if (nic->discovery.edge >= 0 && !m->edges[nic->discovery.edge].used) {
            nic->discovery.edge = -1;
        }
    }
}

void mesh_on_ring_peers(struct mesh *m, struct mono now, uint16_t ring_peers)
{
    m->config.ring_peers = ring_peers;
    for (uint32_t local = 0; local < m->config.nic_count; local++) {
        look(m, now, local);
    }
}

/* The next peer on the ring after that edge's peer that is not probed yet; NULL: none. */
static const struct peer_choice *next_of_ring(const struct mesh *m, const struct mesh_edge *e)
{
    const struct nic *nic = &m->nics[e->local];
    const bool ring = e->reason != EDGE_FULL && e->reason != EDGE_GUEST;

    for (uint32_t i = 0; ring && i < nic->choice_count; i++) {
        const struct peer_choice *c = &nic->choices[i];

        if (c->ring == e->ring && c->forward == e->forward && c->rank > e->rank &&
            mesh_edge_find(m, e->local, m->config.fleet.peers[c->index].nic) < 0) {
            return c;
        }
    }
    return NULL;
}

static uint32_t free_edges(const struct mesh *m, uint32_t local)
{
    uint32_t count = 0;

    for (int i = 0; i < m->config.edge_limit; i++) {
        count += !m->edges[(int)local * m->config.edge_limit + i].used;
    }
    return count;
}

/* The replaced peer still probes this NIC, because it chose this NIC, too. As a guest it is answered; otherwise it would conclude
 * that this NIC died. Without room for both, no peer is replaced. */
bool mesh_replace(struct mesh *m, struct mono now, int edge)
{
    const struct mesh_edge *old = &m->edges[edge];
    const struct peer_choice *next = old->used ? next_of_ring(m, old) : NULL;
    const uint32_t local = old->local;
    const struct peer_choice guest = {.index = old->peer, .reason = EDGE_GUEST};

    if (!next || free_edges(m, local) < 1) {
        return false;
    }
    edge_remove(m, edge);
    return mesh_edge_add(m, now, local, next) >= 0 && mesh_edge_add(m, now, local, &guest) >= 0;
}

/* A chosen peer is silent: the next one of its ring is probed, too, until it is heard again. Its other neighbour does the same,
 * so the two remaining neighbours begin to probe each other. */
void mesh_spare_add(struct mesh *m, struct mono now, int edge)
{
    const struct mesh_edge *e = &m->edges[edge];
    const struct peer_choice *next = next_of_ring(m, e);

    if (next) {
        struct peer_choice spare = *next;

        spare.reason = EDGE_SPARE;
        mesh_edge_add(m, now, e->local, &spare);
    }
}

void mesh_spare_remove(struct mesh *m, int edge)
{
    const struct mesh_edge *e = &m->edges[edge];
    const int first = (int)e->local * m->config.edge_limit;

    for (int other = first; other < first + m->config.edge_limit && e->reason != EDGE_FULL;
         other++) {
        const struct mesh_edge *s = &m->edges[other];
        if (s->used && s->reason == EDGE_SPARE && s->ring == e->ring && s->forward == e->forward &&
            s->rank > e->rank) {
            edge_remove(m, other);
        }
    }
}

/* ---- life ----------------------------------------------------------------------------------- */

static uint32_t power_of_two(uint32_t at_least)
{
    uint32_t n = 16;

    while (n < at_least) {
        n *= 2;
    }
    return n;
}

struct mesh *mesh_new(const struct mesh_config *config, struct mono now)
{
    struct mesh *m = calloc(1, sizeof(*m));

    if (!m) {
        return NULL;
    }
    m->config = *config;
    prng_init(&m->prng, config->seed);
    const uint32_t own = fleet_find(&config->fleet, config->nics[0]);
    m->edge_capacity = (int)(config->nic_count * config->edge_limit);
    m->table_mask = power_of_two(2u * config->edge_limit) - 1;
    m->pending_mask = power_of_two(config->nic_count * 512u) - 1;
    m->promised = MONO_NEVER;
    m->late_until = m->last_tick = now;
    m->edges = calloc((size_t)m->edge_capacity, sizeof(*m->edges));
    m->due = calloc((size_t)m->edge_capacity, sizeof(*m->due));
    m->pending = calloc(m->pending_mask + 1, sizeof(*m->pending));
    m->sends = calloc(SEND_QUEUE, sizeof(*m->sends));
    m->verdict_limit = (uint32_t)m->edge_capacity *
                       (config->path_limit * 2u * VERDICTS_OF_HALF + VERDICTS_OF_EDGE);
    m->verdicts = calloc(m->verdict_limit, sizeof(*m->verdicts));
    m->routers = calloc(ROUTER_MAX, sizeof(*m->routers));
    m->delays = calloc((size_t)m->edge_capacity * config->path_limit * 2, sizeof(*m->delays));
    m->choices = calloc((size_t)config->nic_count * CHOICE_MAX, sizeof(*m->choices));
    m->rings = calloc(config->nic_count, sizeof(*m->rings));
    m->locate_numbers = (uint32_t)m->edge_capacity * config->path_limit + TRACE_ANSWERS;
    m->locate = locate_new(&(struct locate_config){.path_limit = m->locate_numbers,
                                                   .own = config->fleet.peers[own].host});
    m->trials = locate_new(&(struct locate_config){.path_limit = m->locate_numbers - TRACE_ANSWERS,
                                                   .calm = span_ns(FAULT_CALM_NS),
                                                   .own = config->fleet.peers[own].host});
    m->wide = locate_new(&(struct locate_config){.path_limit = m->locate_numbers + TOLD_MAX,
                                                 .own = config->fleet.peers[own].host});
    m->told = calloc(TOLD_MAX, sizeof(*m->told));
    m->digests.next = MONO_NEVER;
    m->told_until = now;
    m->digests.credit_at = m->digests.until = m->digests.news = now;
    m->fulls = locate_new(&(struct locate_config){.path_limit = m->locate_numbers - TRACE_ANSWERS,
                                                  .calm = span_ns(FAULT_CALM_NS),
                                                  .own = config->fleet.peers[own].host});
    m->gaps = calloc(2, sizeof(*m->gaps));
    for (uint32_t d = 0; d < 2; d++) {
        m->pairs[d] =
            locate_new(&(struct locate_config){.path_limit = m->locate_numbers - TRACE_ANSWERS,
                                               .calm = span_ns(FAULT_CALM_NS),
                                               .background = NARROW_NULL,
                                               .share = NARROW_SHARE,
                                               .own = config->fleet.peers[own].host});
    }
    if (!m->pairs[0] || !m->pairs[1] || !m->locate || !m->fulls || !m->wide || !m->told ||
        !m->trials || !m->edges || !m->due || !m->pending || !m->sends || !m->verdicts ||
        !m->routers || !m->delays || !m->choices || !m->rings || !m->gaps) {
        mesh_free(m);
        return NULL;
    }
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        m->due[edge] = MONO_NEVER;
    }
    for (uint32_t i = 0; i < config->nic_count; i++) {
        m->nics[i] = (struct nic){.id = config->nics[i],
                                  .peer = fleet_find(&config->fleet, config->nics[i]),
                                  .carrier = true,
                                  .carrier_moved = MONO_NEVER,
                                  .credit_at = now,
                                  .discovery.edge = -1,
                                  .discovery.next = now,
                                  .rings = &m->rings[i],
                                  .choices = &m->choices[i * CHOICE_MAX],
                                  .table = calloc(m->table_mask + 1, sizeof(int32_t))};
        if (!m->nics[i].table) {
            mesh_free(m);
            return NULL;
        }
        table_rebuild(m, i);
    }
    for (uint32_t i = 0; i < config->nic_count; i++) {
        look(m, now, i);
    }
    return m;
}

void mesh_free(struct mesh *m)
{
    if (!m) {
        return;
    }
    for (uint32_t i = 0; i < HOST_NIC_MAX; i++) {
        free(m->nics[i].table);
    }
    free(m->edges);
    free(m->due);
    free(m->pending);
    free(m->sends);
    free(m->verdicts);
    free(m->routers);
    free(m->delays);
    free(m->choices);
    free(m->rings);
    locate_free(m->locate);
    locate_free(m->wide);
    free(m->told);
    locate_free(m->trials);
    locate_free(m->fulls);
    free(m->gaps);
    locate_free(m->pairs[0]);
    locate_free(m->pairs[1]);
    free(m);
}

/* ---- time ----------------------------------------------------------------------------------- */

static struct mono grid_up(const struct mesh *m, struct mono at)
{
    const int64_t grid = m->config.grid.ns;

    if (grid <= 0 || at.ns == MONO_NEVER.ns) {
        return at;
    }
    return (struct mono){(at.ns / grid + (at.ns % grid > 0)) * grid};
}

void mesh_notice_late(struct mesh *m, struct mono now)
{
    const struct mono deadline = grid_up(m, m->promised);

    if (deadline.ns != MONO_NEVER.ns && mono_sub(now, deadline).ns > m->config.late.ns) {
        verdict_late(m, now, mono_sub(now, deadline));
        m->promised = now; /* reported once */
    }
}

/* Prefetches the next edge that is due, while this one is processed. */
static void tick_fetch(const struct mesh *m, struct mono now, int after)
{
    for (int edge = after + 1; edge < m->edge_capacity; edge++) {
        if (m->due[edge].ns <= now.ns) {
            const struct mesh_edge *e = &m->edges[edge];

            cache_fetch(e, offsetof(struct mesh_edge, out));
            for (uint8_t p = 0; p < m->config.path_limit; p++) {
                cache_fetch(&e->in[p], offsetof(struct path_in, half) + CACHE_LINE);
                cache_fetch(&e->out[p], CACHE_LINE);
            }
            return;
        }
    }
}

/* The host's clock went back. What was due by it would be due when it is there again, and the host would be silent until then. */
static void back_in_time(struct mesh *m, struct mono now)
{
    mesh_on_sleep(m, now);
    m->promised = now;
    m->digests.next = m->digests.until = now;
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        if (m->edges[edge].used) {
            prober_edge_again(m, now, edge);
        }
        for (uint32_t p = 0; p < EDGE_PATH_MAX; p++) {
            memset(m->edges[edge].out[p].unplaced, 0, sizeof(m->edges[edge].out[p].unplaced));
        }
    }
    for (uint32_t i = 0; i < m->config.nic_count; i++) {
        m->nics[i].discovery.next = mono_min(m->nics[i].discovery.next, now);
    }
}

void mesh_tick(struct mesh *m, struct mono now)
{
    if (mono_before(now, m->last_tick)) {
        back_in_time(m, now);
    }
    mesh_notice_late(m, now);
    credits_grow(m, now);
    m->last_tick = now;
    prober_round(m);
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        if (m->due[edge].ns > now.ns) {
            continue;
        }
        tick_fetch(m, now, edge);
        struct mesh_edge *e = &m->edges[edge];
        m->due[edge] = MONO_NEVER;
        if (e->used && e->reason == EDGE_GUEST &&
            mono_sub(now, e->heard.ns == MONO_NEVER.ns ? e->started : e->heard).ns > GUEST_NS) {
            edge_remove(m, edge);
        }
        if (!e->used) {
            continue;
        }
        verdict_edge_tick(m, now, edge);
        prober_edge_tick(m, now, edge);
        full_tick(m, now, edge);
        m->due[edge] = mono_min(m->due[edge], mono_min(prober_due(e), verdict_due(m, e)));
    }
    mesh_faults_tick(m, now);
    digest_tick(m, now);
    m->promised = digest_due(m);
    for (uint32_t i = 0; i < m->config.nic_count; i++) {
        discovery_tick(m, now, i);
        m->promised = mono_min(m->promised, discovery_due(m, i));
    }
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        m->promised = mono_min(m->promised, m->due[edge]);
    }
    if (m->promised.ns <= now.ns) { /* the grid may be exact: never ask for a time in the past */
        m->promised = (struct mono){now.ns + 1};
    }
}

struct mono mesh_deadline(const struct mesh *m)
{
    return grid_up(m, mono_min(m->promised, mono_add(m->last_tick, span_ms(100))));
}

uint32_t mesh_begin_us(const struct mesh *m)
{
    return m->begin_us;
}

void mesh_on_carrier(struct mesh *m, struct mono now, uint32_t local, bool up)
{
    struct nic *nic = &m->nics[local];
    const bool was_down = nic->carrier_known && !nic->carrier;

    nic->carrier = up;
    nic->carrier_known = true;
    nic->carrier_moved = up == !was_down ? nic->carrier_moved : now;
    for (int edge = (int)local * m->config.edge_limit;
         edge < (int)(local + 1) * m->config.edge_limit; edge++) {
        struct mesh_edge *e = &m->edges[edge];

        if (!e->used || (up && !was_down)) {
            continue;
        }
        trial_skip(m, edge);
        e->acked = now;
        e->stamped_since_ack = e->heard_since_ack = 0;
        e->want = 0;
        e->heard = e->heard.ns == MONO_NEVER.ns || e->silent ? e->heard : now;
        for (uint8_t p = 0; p < EDGE_PATH_MAX; p++) {
            e->in[p].touched = now;
            e->in[p].proof_due = MONO_NEVER;
            if (!up) { /* its own link explains everything */
                path_half_move(m, now, edge, p, DIRECTION_IN, PATH_SILENCE, 0);
                path_half_move(m, now, edge, p, DIRECTION_OUT, PATH_SILENCE, 0);
            }
        }
    }
}
