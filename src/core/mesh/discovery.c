/* discovery.c: finds out which source ports take which way.
 *
 * One peer at a time for each NIC, at most MESH_DISCOVERY_RATE packets a second. Packets with hop limits 1, 2, 3 ... go from each
 * of the 32 source ports, until path_limit distinct hop lists are known, or as many as other paths of this host have between the
 * same two routers, or all ports are used. Routers answer "time exceeded"; the peer reports packets that reached it. Then one
 * port for each distinct list is kept. If routers are silent, the first ports stay, and the signature 0 means that coverage is
 * unknown. The peer's report shows the length of the lists: a switch answers few packets a second, and a list that ends before
 * the peer is no way to it. Known ways are verified later, path by path (verify). A path that dies is traced (trace.c). */
#include <string.h>

#include "core/mesh/hops.h"

#define ANSWER_NS   (400 * NS_PER_MS)
#define PROBE_GAP   (NS_PER_S / MESH_DISCOVERY_RATE)
#define VERIFY_GAP  (250 * NS_PER_MS)
#define LEARN_LATER (60 * NS_PER_S)

uint32_t discovery_seq(uint32_t generation, uint8_t port, uint8_t ttl, uint32_t flag)
{
    return (generation << 16) | flag | (uint32_t)port << 8 | ttl;
}

void discovery_send(struct mesh *m, int edge, uint16_t source_port, uint32_t seq, uint8_t ttl)
{
    const struct mesh_edge *e = &m->edges[edge];

    mesh_send_push(m, &(struct send_entry){.edge = edge,
                                           .local = e->local,
                                           .peer = e->nic,
                                           .type = PROBE_DISCOVERY,
                                           .ttl = ttl,
                                           .seq = seq,
                                           .high = true,
                                           .port = source_port,
                                           .generation = e->generation});
    m->counters.discovery_sent++;
}

/* True while a way is dead, because a dead way doesn't show its route. If the ways were learned now, the dead one would be
 * forgotten and its fault reported as over. So learning waits; if no way was ever learned, only for a limited time. */
static bool learn_later(const struct mesh_edge *e, struct mono now)
{
    for (uint8_t p = 0; p < e->path_count; p++) {
        const struct path_half *half = &e->out[p].half;
        if (half->state == PATH_DEAD &&
            (e->discovered || e->placed || mono_sub(now, half->since).ns < LEARN_LATER)) {
            return true;
        }
    }
    return false;
}

/* Results of the former port don't count for the new one: neither losses nor arrivals. */
static void moves(struct mesh *m, struct mono now, int edge, uint8_t path)
{
    struct path_out *out = &m->edges[edge].out[path];

    path_half_forget(&out->half, now);
    out->test = (struct loss_test){0};
    out->moved = now;
    out->half.heard = MONO_NEVER;
    /* those packets were sent before, on the other way */
    out->trials_judged = out->acked = out->seq_next - 1;
    out->acked_any = true;
    out->full.waits = false;
    if (out->half.state == PATH_DEAD || out->half.state == PATH_SUSPECT) {
        path_half_move(m, now, edge, path, DIRECTION_OUT, PATH_SILENCE, 0);
    }
    mesh_verdict_push(m, (struct mesh_verdict){.kind = MESH_REPATH,
                                               .edge = edge,
                                               .path = path,
                                               .direction = DIRECTION_OUT,
                                               .since = now});
}

static void adopt(struct mesh *m, struct mono now, int edge, const struct discovery *d)
{
    struct mesh_edge *e = &m->edges[edge];
    uint8_t ports[EDGE_PATH_MAX];

    if (learn_later(e, now)) {
        return;
    }
    uint32_t count = hops_distinct_ports(d, MESH_PORT_COUNT, ports, m->config.path_limit);
    const uint8_t length = count > 0 ? hops_length(d->hops[ports[0]]) : 0,
                  whole = hops_before_peer(d, length);
    /* the end of the list is missing: it may be several ways */
    count = count == 1 && length < whole ? 0 : count;
    e->discovered = true;
    e->placed = e->unsorted = false;
    e->discovery_silent = count == 0;
    /* fewer ways than before: some may just have been down */
    e->discover_next = mono_add(now, span_ns(count < e->path_count ? LEARN_LATER : REDISCOVER_NS));
    if (count == 0) {
        return;
    }
    hops_sort_ports(m, d, ports, count);
    for (uint8_t p = 0; p < count; p++) {
        struct path_out *out = &e->out[p];
        const uint16_t source_port = (uint16_t)(m->config.port_base + ports[p]);
        const uint64_t signature = hops_signature(m, d->hops[ports[p]]);
        const bool moved = source_port != out->half.port || p >= e->path_count ||
                           (out->signature != 0 && out->signature != signature);

        memcpy(out->hops, d->hops[ports[p]], sizeof(out->hops));
        out->hop_count = whole;
        out->signature = signature;
        out->verified = now;
        out->half.port = source_port;
        if (moved) {
            moves(m, now, edge, p);
        }
    }
    for (uint8_t p = (uint8_t)count; p < e->path_count; p++) {
        path_half_move(m, now, edge, p, DIRECTION_OUT, PATH_SILENCE, 0);
        e->out[p].burst_next = MONO_NEVER;
        e->out[p].burst_left = e->out[p].burst_wait = 0;
    }
    e->path_count = (uint8_t)count;
}

/* ---- one after the other -------------------------------------------------------------------- */

/* An edge with a fault comes first. */
static int next_edge(const struct mesh *m, struct mono now, uint32_t local)
{
    int best = -1, first = -1;

    for (int edge = (int)local * m->config.edge_limit;
         edge < (int)(local + 1) * m->config.edge_limit; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        if (e->used && !e->silent && e->fresh && place_wanted(e, now) &&
            (first < 0 || e->place_next.ns < m->edges[first].place_next.ns)) {
            first = edge;
        }
        if (e->used && !e->silent && e->fresh && e->discover_next.ns <= now.ns &&
            !learn_later(e, now) &&
            (best < 0 || e->discover_next.ns < m->edges[best].discover_next.ns)) {
            best = edge;
        }
    }
    return first >= 0 ? first : best;
}

/* The highest useful hop limit: up to the peer, if its distance is known. */
static uint8_t ttl_limit(const struct discovery *d)
{
    return d->reached > 0 ? (uint8_t)(d->reached - 1) : d->port < 2 ? MESH_HOP_MAX - 1 : 3;
}

static uint8_t port_now(const struct discovery *d)
{
    return d->in_place ? d->ports[d->port] : d->port;
}

/* True if the first pass knows enough. There may be more ways than this host's other paths take between the same two routers, but
 * not many. A way that all of them missed is found when one of them is verified. */
static bool enough_ports(const struct mesh *m, const struct discovery *d)
{
    uint8_t ports[EDGE_PATH_MAX];

    if (d->in_place || d->port < 4) {
        return false;
    }
    if (d->reached > 0 && d->reached <= 2) {
        return true; /* one router in between means one way */
    }
    if (d->port < 8) {
        return false;
    }
    /* while answers are missing, a list looks different or too short */
    const uint32_t count = hops_distinct_ports(d, d->port, ports, m->config.path_limit);
    const uint32_t known = count > 0 && d->reached > 0
                               ? hops_ways_between(m, d->hops[ports[0]], (uint8_t)(d->reached - 1))
                               : 0;

    return count >= m->config.path_limit || (known > 0 && count >= known);
}

static void step(struct mesh *m, struct mono now, uint32_t local)
{
    struct discovery *d = &m->nics[local].discovery;
    const uint8_t count = d->in_place ? d->port_count : MESH_PORT_COUNT;

    /* the second pass only repeats what had no answer */
    while (d->port < count) {
        if (d->ttl > ttl_limit(d) || d->ttl > MESH_HOP_MAX) {
            d->port++;
            d->ttl = 1;
            if (d->port == 1) { /* first learn the distance */
                d->next = mono_add(now, span_ns(ANSWER_NS));
                return;
            }
            d->port = enough_ports(m, d) ? count : d->port;
            continue;
        }
        const uint16_t *hops = d->hops[port_now(d)];
        if (d->pass == 0 || (hops[d->ttl - 1] == 0 && (hops_length(hops) > 0 || d->in_place))) {
            break;
        }
        d->ttl++;
    }
    if (d->port < count) {
        const uint8_t port = port_now(d);

        discovery_send(m, d->edge, (uint16_t)(m->config.port_base + port),
                       discovery_seq(d->generation, port, d->ttl, 0), d->ttl);
        d->last_port = port;
        d->last_ttl = d->ttl++;
        d->asked_again = d->pass == 1;
        d->next = mono_add(now, span_ns(PROBE_GAP));
        return;
    }
    if (d->pass == 0) {
        d->next = mono_add(now, span_ns(ANSWER_NS));
        d->pass = 1;
        d->port = 0;
        d->ttl = 1;
    } else {
        d->next = d->asked_again ? mono_add(now, span_ns(ANSWER_NS)) : now;
        d->finish = d->next;
    }
}

/* Between discoveries, known paths are verified one after the other, with one packet each. Otherwise the hop lists would be wrong
 * after a fabric has routed around a dead trunk without any loss. */
static void verify(struct mesh *m, struct mono now, uint32_t local)
{
    struct nic *nic = &m->nics[local];
    const uint32_t count = (uint32_t)m->config.edge_limit * m->config.path_limit;

    for (uint32_t tries = 0; tries < count; tries++) {
        const uint32_t at = nic->verify_next++ % count;
        const int edge = (int)local * m->config.edge_limit + (int)(at / m->config.path_limit);
        const struct mesh_edge *e = &m->edges[edge];
        const uint8_t p = (uint8_t)(at % m->config.path_limit);
        const struct path_out *out = &e->out[p];
        /* the middle hop, where ways differ */
        const uint8_t ttl = (uint8_t)(out->hop_count / 2 + 1);

        if (e->used && e->discovered && p < e->path_count && out->hop_count > 1 &&
            out->hops[ttl - 1] != 0 &&
            (out->half.state == PATH_ALIVE || out->half.state == PATH_LOSSY) &&
            mesh_credit(m, now, &nic->probe_credit)) {
            discovery_send(m, edge, out->half.port,
                           discovery_seq(e->generation, p, ttl, VERIFY_FLAG), ttl);
            return;
        }
    }
}

static bool share_router(const struct mesh *m, const struct path_out *a, const struct path_out *b)
{
    for (uint8_t i = 0; i < a->hop_count; i++) {
        for (uint8_t k = 0; k < b->hop_count; k++) {
            if (a->hops[i] != 0 && b->hops[k] != 0 && hops_same_router(m, a->hops[i], b->hops[k])) {
                return true;
            }
        }
    }
    return false;
}

/* The fabric routes around an element on the path's former way, or a router on it spreads its packets anew. Losses on ways
 * through one of its routers may belong to other ways until these are verified again. Other ways, such as those of another rail,
 * did not change. */
static void verify_failed(struct mesh *m, struct mono now, struct mesh_edge *e, uint8_t p)
{
    const struct path_out *former = &e->out[p];

    for (int edge = 0; discovery_way_holds(former) && edge < m->edge_capacity; edge++) {
        struct mesh_edge *other = &m->edges[edge];

        for (uint8_t k = 0; other->used && k < other->path_count; k++) {
            struct path_out *out = &other->out[k];
            if (out != former && share_router(m, former, out)) {
                out->rerouted = now;
            }
        }
    }
    e->out[p].rerouted = e->out[p].astray = now;
    e->discover_next = now; /* it takes another way now */
}

bool discovery_way_astray(const struct path_out *out)
{
    return out->astray.ns > out->verified.ns;
}

bool discovery_way_holds(const struct path_out *out)
{
    return out->hop_count <= 1 ||
           out->verified.ns >= out->rerouted.ns; /* one switch: there is no other way */
}

static bool verify_answer(struct mesh *m, struct mono now, int edge, uint32_t seq, uint32_t router)
{
    struct mesh_edge *e = &m->edges[edge];
    const uint8_t ttl = (uint8_t)seq, p = (uint8_t)(seq >> 8) & 0x3f;

    if ((seq & (TRACE_FLAG | VERIFY_FLAG)) != VERIFY_FLAG || p >= e->path_count || ttl == 0 ||
        ttl > MESH_HOP_MAX) {
        return false;
    }
    if (e->out[p].hops[ttl - 1] != 0 && !hops_same_router(m, e->out[p].hops[ttl - 1], router)) {
        verify_failed(m, now, e, p);
    } else {
        e->out[p].verified = now;
    }
    return true;
}

/* A dead path isn't verified, but it is traced. By another router than the known one it goes another way, and where it ends is
 * there. Where its edge's ports go is asked anew. */
static bool trace_astray(struct mesh *m, struct mono now, int edge, uint32_t seq, uint32_t router)
{
    struct mesh_edge *e = &m->edges[edge];
    const uint8_t ttl = (uint8_t)seq, p = (uint8_t)(seq >> 8) & 0x3f;

    if ((seq & (TRACE_FLAG | VERIFY_FLAG)) != TRACE_FLAG ||
        (seq >> 16) != (e->generation & 0xffff) || p >= e->path_count || ttl == 0 ||
        ttl > MESH_HOP_MAX || e->out[p].hops[ttl - 1] == 0 ||
        hops_same_router(m, e->out[p].hops[ttl - 1], router)) {
        return false;
    }
    verify_failed(m, now, e, p);
    e->discovered = e->placed = false;
    e->place_next = now;
    return true;
}

void discovery_tick(struct mesh *m, struct mono now, uint32_t local)
{
    struct nic *nic = &m->nics[local];
    struct discovery *d = &nic->discovery;

    if (m->config.no_discovery || d->next.ns > now.ns) {
        return;
    }
    if (d->edge >= 0 &&
        (!m->edges[d->edge].used || m->edges[d->edge].generation != d->generation)) {
        d->edge = -1;
    }
    if (d->edge >= 0 && d->finish.ns <= now.ns) {
        if (d->in_place) {
            place_done(m, now, d->edge, d);
        } else {
            adopt(m, now, d->edge, d);
        }
        d->edge = -1;
    }
    if (d->edge < 0) {
        const int edge = nic->carrier ? next_edge(m, now, local) : -1;

        d->next = mono_add(now, span_ns(VERIFY_GAP));
        if (edge < 0) {
            if (nic->carrier) {
                verify(m, now, local);
            }
            return;
        }
        *d = (struct discovery){.edge = edge,
                                .generation = m->edges[edge].generation,
                                .in_place = place_wanted(&m->edges[edge], now),
                                .ttl = 1,
                                .next = now,
                                .finish = MONO_NEVER};
        if (d->in_place) {
            place_start(d, m, &m->edges[edge]);
        }
    }
    if (!mesh_credit(m, now, &nic->probe_credit)) {
        d->next = mono_add(now, span_ns(PROBE_GAP));
        return;
    }
    step(m, now, local);
}

struct mono discovery_due(const struct mesh *m, uint32_t local)
{
    return m->config.no_discovery ? MONO_NEVER : m->nics[local].discovery.next;
}

void discovery_reached(struct mesh *m, struct mono now, int edge, uint32_t seq)
{
    struct mesh_edge *e = &m->edges[edge];
    struct discovery *d = &m->nics[e->local].discovery;
    const uint8_t ttl = (uint8_t)seq, port = (uint8_t)(seq >> 8) & 0x3f;

    if ((seq >> 16) == (e->generation & 0xffff) && full_is(seq)) {
        full_reached(m, now, edge, seq);
        return;
    }
    if ((seq >> 16) != (e->generation & 0xffff) || (seq & (TRACE_FLAG | VERIFY_FLAG)) != 0 ||
        d->edge != edge || port >= MESH_PORT_COUNT || ttl == 0 || ttl > MESH_HOP_MAX) {
        return;
    }
    d->reached = d->reached == 0 || ttl < d->reached ? ttl : d->reached;
}

void mesh_on_hop(struct mesh *m, struct mono now, uint32_t local, struct nic_id peer,
                 uint16_t source_port, uint64_t token, uint8_t ttl,
                 const uint8_t address[static 16])
{
    const int edge = mesh_edge_find(m, local, peer);
    struct discovery *d = &m->nics[local].discovery;
    const struct pending *asked = &m->pending[token & m->pending_mask];
    const uint32_t port = (uint32_t)(source_port - m->config.port_base);

    if (token != 0 && asked->token == token && asked->path == MESH_PATH_PROBE) {
        ttl = (uint8_t)asked->seq;
    } else if (ttl == 0 && d->edge == edge && d->last_port == port) {
        /* short quote: only one packet is in flight at a time, and answers come within milliseconds */
        ttl = d->last_ttl;
    }

    if (edge < 0 || port >= MESH_PORT_COUNT) {
        m->counters.hops_unmatched++;
        return;
    }
    uint32_t router = mesh_router(m, address);
    if (router == 0) {
        return;
    }
    m->counters.hops_heard++;
    if (token != 0 && asked->token == token &&
        (verify_answer(m, now, edge, asked->seq, router) ||
         (asked->path == MESH_PATH_PROBE && trace_astray(m, now, edge, asked->seq, router)))) {
        return;
    }
    if (discovery_trace_answer(m, now, edge, source_port, router)) {
        return;
    }
    if (d->edge != edge || ttl == 0 || ttl > MESH_HOP_MAX) {
        m->counters.hops_unmatched++;
        return;
    }
    d->hops[port][ttl - 1] = (uint16_t)router;
}
