/* discovery.c: which source ports go which way.
 *
 * One peer at a time per NIC, at most MESH_DISCOVERY_RATE packets a second: packets with hop limits
 * 1, 2, 3 ... from each of the 32 source ports, until path_limit distinct hop lists are known or
 * the ports are used up. Routers answer "time exceeded"; the peer itself tells when a packet
 * reached it. One port per distinct list is then kept. Where routers are silent the first ports
 * stay, and the signature 0 says that coverage is unknown.
 *
 * A path that is overdue or dead is traced at once: the last router that still answers says where
 * it ends. */
#include <string.h>

#include "core/mesh/internal.h"

#define ANSWER_NS    (400 * NS_PER_MS)
#define PROBE_GAP    (NS_PER_S / MESH_DISCOVERY_RATE)
#define TRACE_AGAIN  (110 * NS_PER_MS)
#define TRACE_SHARED (100 * NS_PER_MS)
#define TRACE_OLD    (2 * NS_PER_S)
#define TRACE_ROUNDS 2
#define TRACE_FLAG   0x8000u
#define VERIFY_FLAG  0x4000u
#define VERIFY_GAP   (250 * NS_PER_MS)
#define LEARN_LATER  (60 * NS_PER_S)

/* Discovery's sequence number: what was asked, so that the peer's answer tells it. */
static uint32_t probe_seq(uint32_t generation, uint8_t port, uint8_t ttl, uint32_t flag)
{
    return (generation << 16) | flag | (uint32_t)port << 8 | ttl;
}

static void send_probe(struct mesh *m, int edge, uint16_t source_port, uint32_t seq, uint8_t ttl)
{
    const struct edge *e = &m->edges[edge];

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

static uint64_t list_signature(const struct mesh *m, const uint16_t *hops)
{
    uint64_t signature = 0;

    for (uint32_t i = 0; i < MESH_HOP_MAX; i++) {
        if (hops[i] != 0) {
            signature = hash_u64(signature + i + 1, m->routers[hops[i] - 1].hash);
        }
    }
    return signature;
}

static uint8_t list_length(const uint16_t *hops)
{
    uint8_t length = 0;

    for (uint8_t i = 0; i < MESH_HOP_MAX; i++) {
        length = hops[i] != 0 ? (uint8_t)(i + 1) : length;
    }
    return length;
}

/* Alike as far as both are known. */
static bool list_same(const uint16_t *a, const uint16_t *b)
{
    for (uint32_t i = 0; i < MESH_HOP_MAX; i++) {
        if (a[i] != b[i] && a[i] != 0 && b[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Ports with distinct, complete lists; returns their count. */
static uint32_t distinct_ports(const struct discovery *d, uint32_t port_end, uint8_t *ret_ports,
                               uint32_t limit)
{
    uint32_t count = 0;
    uint8_t longest = 0;

    for (uint32_t port = 0; port < port_end; port++) {
        const uint8_t length = list_length(d->hops[port]);
        longest = length > longest ? length : longest;
    }
    for (uint32_t port = 0; port < port_end && count < limit; port++) {
        bool fresh = list_length(d->hops[port]) == longest && longest > 0;

        for (uint32_t i = 0; i < count && fresh; i++) {
            fresh = !list_same(d->hops[port], d->hops[ret_ports[i]]);
        }
        if (fresh) {
            ret_ports[count++] = (uint8_t)port;
        }
    }
    return count;
}

/* Where routers have names, both ends order their paths alike: path k then tends to be the same
 * switch both ways. */
static uint64_t list_order(const struct mesh *m, const uint16_t *hops)
{
    uint64_t order = 0;

    for (uint32_t i = 0; i < MESH_HOP_MAX; i++) {
        const struct router *r = hops[i] != 0 ? &m->routers[hops[i] - 1] : NULL;
        if (r && r->place == PLACE_SPINE) {
            return r->number;
        }
        order = r ? (order ^ r->hash) | 1ull << 40 : order;
    }
    return order;
}

static void sort_ports(const struct mesh *m, const struct discovery *d, uint8_t *ports,
                       uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        const uint8_t port = ports[i];
        const uint64_t order = list_order(m, d->hops[port]);
        uint32_t at = i;

        for (; at > 0 && list_order(m, d->hops[ports[at - 1]]) > order; at--) {
            ports[at] = ports[at - 1];
        }
        ports[at] = port;
    }
}

/* A dead way doesn't tell where it goes: to learn the ways now would be to forget it, and to say
 * that its fault is over. It is left for later; where nothing was ever learnt, not for ever. */
static bool learn_later(const struct edge *e, struct mono now)
{
    for (uint8_t p = 0; p < e->path_count; p++) {
        const struct path_half *half = &e->out[p].half;
        if (half->state == PATH_DEAD &&
            (e->discovered || mono_sub(now, half->since).ns < LEARN_LATER)) {
            return true;
        }
    }
    return false;
}

static void adopt(struct mesh *m, struct mono now, int edge, const struct discovery *d)
{
    struct edge *e = &m->edges[edge];
    uint8_t ports[EDGE_PATH_MAX];
    uint32_t count;

    if (learn_later(e, now)) {
        return;
    }
    count = distinct_ports(d, MESH_PORT_COUNT, ports, m->config.path_limit);
    e->discovered = true;
    e->discovery_silent = count == 0;
    /* fewer ways than before: some may have been down just now */
    e->discover_next = mono_add(now, span_ns(count < e->path_count ? LEARN_LATER : REDISCOVER_NS));
    if (count == 0) {
        return;
    }
    sort_ports(m, d, ports, count);
    for (uint8_t p = 0; p < count; p++) {
        struct path_out *out = &e->out[p];
        const uint16_t source_port = (uint16_t)(m->config.port_base + ports[p]);
        const uint64_t signature = list_signature(m, d->hops[ports[p]]);
        const bool moved = source_port != out->half.port || p >= e->path_count ||
                           (out->signature != 0 && out->signature != signature);

        memcpy(out->hops, d->hops[ports[p]], sizeof out->hops);
        out->hop_count = list_length(out->hops);
        out->signature = signature;
        out->half.port = source_port;
        if (moved) {
            delay_init(out->half.delay, now);
            out->half.brief_count = 0;
            out->test = (struct loss_test){0};
            out->moved = now;
            if (out->half.state == PATH_DEAD) { /* that was of another way */
                path_half_move(m, now, edge, p, DIRECTION_OUT, PATH_SILENCE, 0);
            }
            mesh_verdict_push(m, (struct mesh_verdict){.kind = MESH_REPATH,
                                                       .edge = edge,
                                                       .path = p,
                                                       .direction = DIRECTION_OUT,
                                                       .since = now});
        }
    }
    for (uint8_t p = (uint8_t)count; p < e->path_count; p++) {
        path_half_move(m, now, edge, p, DIRECTION_OUT, PATH_SILENCE, 0);
        e->out[p].burst_next = MONO_NEVER;
        e->out[p].burst_left = e->out[p].burst_wait = 0;
    }
    e->path_count = (uint8_t)count;
}

static int next_edge(const struct mesh *m, struct mono now, uint32_t local)
{
    int best = -1;

    for (int edge = (int)local * m->config.edge_limit;
         edge < (int)(local + 1) * m->config.edge_limit; edge++) {
        const struct edge *e = &m->edges[edge];

        if (e->used && !e->silent && e->fresh && e->discover_next.ns <= now.ns &&
            !learn_later(e, now) &&
            (best < 0 || e->discover_next.ns < m->edges[best].discover_next.ns)) {
            best = edge;
        }
    }
    return best;
}

/* The hop limits worth asking for: up to the peer where its distance is known. */
static uint8_t ttl_limit(const struct discovery *d)
{
    return d->reached > 0 ? (uint8_t)(d->reached - 1) : d->port == 0 ? MESH_HOP_MAX - 1 : 3;
}

static void step(struct mesh *m, struct mono now, uint32_t local)
{
    struct discovery *d = &m->nics[local].discovery;
    uint8_t ports[EDGE_PATH_MAX];

    /* in the second pass only what did not answer */
    while (d->port < MESH_PORT_COUNT) {
        if (d->ttl > ttl_limit(d) || d->ttl > MESH_HOP_MAX) {
            d->port++;
            d->ttl = 1;
            if (d->port == 1) { /* learn the distance before going on */
                d->next = mono_add(now, span_ns(ANSWER_NS));
                return;
            }
            if (d->port >= 8 && distinct_ports(d, d->port - 4u, ports, m->config.path_limit) >=
                                    m->config.path_limit) {
                d->port = MESH_PORT_COUNT;
            }
            if (d->port >= 4 && d->reached > 0 &&
                d->reached <= 2) { /* one router between: one way */
                d->port = MESH_PORT_COUNT;
            }
            continue;
        }
        if (d->pass == 0 ||
            (d->hops[d->port][d->ttl - 1] == 0 && list_length(d->hops[d->port]) > 0)) {
            break;
        }
        d->ttl++;
    }
    if (d->port < MESH_PORT_COUNT) {
        send_probe(m, d->edge, (uint16_t)(m->config.port_base + d->port),
                   probe_seq(d->generation, d->port, d->ttl, 0), d->ttl);
        d->last_port = d->port;
        d->last_ttl = d->ttl++;
        d->next = mono_add(now, span_ns(PROBE_GAP));
        return;
    }
    d->next = mono_add(now, span_ns(ANSWER_NS));
    if (d->pass == 0) {
        d->pass = 1;
        d->port = 0;
        d->ttl = 1;
    } else {
        d->finish = d->next;
    }
}

static bool same_router(const struct mesh *m, uint32_t a, uint32_t b)
{
    const struct router *x = &m->routers[a - 1], *y = &m->routers[b - 1];

    return a == b || (x->number != UINT32_MAX && x->number == y->number && x->place == y->place);
}

/* Between discoveries the paths that are known are looked at one after the other, with one packet
 * each: a fabric that went round a dead trunk by itself loses nothing, but the hop lists would be
 * lies. */
static void verify(struct mesh *m, struct mono now, uint32_t local)
{
    struct nic *nic = &m->nics[local];
    const uint32_t count = (uint32_t)m->config.edge_limit * m->config.path_limit;

    for (uint32_t tries = 0; tries < count; tries++) {
        const uint32_t at = nic->verify_next++ % count;
        const int edge = (int)local * m->config.edge_limit + (int)(at / m->config.path_limit);
        const struct edge *e = &m->edges[edge];
        const uint8_t p = (uint8_t)(at % m->config.path_limit);
        const struct path_out *out = &e->out[p];
        const uint8_t ttl = (uint8_t)(out->hop_count / 2 + 1); /* the middle: where ways differ */

        if (e->used && e->discovered && p < e->path_count && out->hop_count > 1 &&
            out->hops[ttl - 1] != 0 && out->half.state == PATH_ALIVE &&
            mesh_credit(m, now, &nic->probe_credit)) {
            send_probe(m, edge, out->half.port, probe_seq(e->generation, p, ttl, VERIFY_FLAG), ttl);
            return;
        }
    }
}

static bool verify_answer(struct mesh *m, struct mono now, int edge, uint32_t seq, uint32_t router)
{
    struct edge *e = &m->edges[edge];
    const uint8_t ttl = (uint8_t)seq, p = (uint8_t)(seq >> 8) & 0x3f;

    if ((seq & (TRACE_FLAG | VERIFY_FLAG)) != VERIFY_FLAG || p >= e->path_count || ttl == 0 ||
        ttl > MESH_HOP_MAX) {
        return false;
    }
    if (e->out[p].hops[ttl - 1] != 0 && !same_router(m, e->out[p].hops[ttl - 1], router)) {
        e->discover_next = now; /* it goes another way now */
    }
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
        adopt(m, now, d->edge, d);
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
                                .ttl = 1,
                                .next = now,
                                .finish = MONO_NEVER};
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
    struct edge *e = &m->edges[edge];
    struct discovery *d = &m->nics[e->local].discovery;
    const uint8_t ttl = (uint8_t)seq, port = (uint8_t)(seq >> 8) & 0x3f;

    (void)now;
    if ((seq >> 16) != (e->generation & 0xffff) || (seq & (TRACE_FLAG | VERIFY_FLAG)) != 0 ||
        d->edge != edge || port >= MESH_PORT_COUNT || ttl == 0 || ttl > MESH_HOP_MAX) {
        return;
    }
    d->reached = d->reached == 0 || ttl < d->reached ? ttl : d->reached;
}

/* Another path of this NIC takes the same hops and was traced just now: its answers are ours. */
static const struct path_out *traced_alike(const struct mesh *m, struct mono now, uint32_t local,
                                           const struct path_out *out)
{
    const int first = (int)local * m->config.edge_limit;

    for (int edge = first; edge < first + m->config.edge_limit; edge++) {
        const struct edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            const struct path_out *other = &e->out[p];
            if (other != out && other->signature == out->signature &&
                other->trace_rounds > out->trace_rounds &&
                mono_sub(now, other->traced).ns < TRACE_SHARED) {
                return other;
            }
        }
    }
    return NULL;
}

void discovery_trace(struct mesh *m, struct mono now, int edge, uint8_t path)
{
    struct edge *e = &m->edges[edge];
    struct path_out *out = &e->out[path];
    const struct path_out *alike;

    if (m->config.no_discovery || out->hop_count == 0 || path >= e->path_count) {
        return;
    }
    if (out->trace_rounds > 0 && mono_sub(now, out->traced).ns > TRACE_OLD) {
        out->trace_rounds = 0;
    }
    if (out->trace_rounds >= TRACE_ROUNDS ||
        (out->trace_rounds > 0 && mono_sub(now, out->traced).ns < TRACE_AGAIN)) {
        return;
    }
    out->trace_answered = out->trace_rounds == 0 ? 0 : out->trace_answered;
    alike = traced_alike(m, now, e->local, out);
    out->trace_rounds++;
    out->traced = now;
    if (alike) {
        out->trace_answered |= alike->trace_answered;
        out->traced = alike->traced;
        return;
    }
    for (uint8_t ttl = 1; ttl <= out->hop_count; ttl++) {
        if (mesh_credit(m, now, &m->nics[e->local].probe_credit)) {
            send_probe(m, edge, out->half.port, probe_seq(e->generation, path, ttl, TRACE_FLAG),
                       ttl);
        }
    }
}

static void note_answer(struct mesh *m, struct mono now, uint32_t local, uint64_t signature,
                        uint8_t hop)
{
    const int first = (int)local * m->config.edge_limit;

    for (int edge = first; edge < first + m->config.edge_limit; edge++) {
        struct edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            struct path_out *out = &e->out[p];
            if (out->signature == signature && out->trace_rounds > 0 &&
                mono_sub(now, out->traced).ns < TRACE_OLD) {
                out->trace_answered |= (uint8_t)(1u << hop);
            }
        }
    }
}

/* A traced path's own routers are recognised by their addresses: short quotes don't tell the hop
 * limit. */
static bool trace_answer(struct mesh *m, struct mono now, int edge, uint16_t source_port,
                         uint32_t router)
{
    struct edge *e = &m->edges[edge];

    for (uint8_t p = 0; p < e->path_count; p++) {
        struct path_out *out = &e->out[p];

        if (out->half.port != source_port || out->trace_rounds == 0 ||
            mono_sub(now, out->traced).ns > NS_PER_S) {
            continue;
        }
        for (uint8_t hop = 0; hop < out->hop_count; hop++) {
            if (out->hops[hop] == router) {
                note_answer(m, now, e->local, out->signature, hop);
                mesh_verdict_push(m, (struct mesh_verdict){.kind = MESH_TRACED,
                                                           .edge = edge,
                                                           .path = p,
                                                           .direction = DIRECTION_OUT,
                                                           .since = now});
                return true;
            }
        }
    }
    return false;
}

void mesh_on_hop(struct mesh *m, struct mono now, uint32_t local, struct nic_id peer,
                 uint16_t source_port, uint64_t token, uint8_t ttl,
                 const uint8_t address[static 16])
{
    const int edge = mesh_edge_find(m, local, peer);
    struct discovery *d = &m->nics[local].discovery;
    const struct pending *asked = &m->pending[token & m->pending_mask];
    const uint32_t port = (uint32_t)(source_port - m->config.port_base);
    uint32_t router;

    if (token != 0 && asked->token == token && asked->path == MESH_PATH_PROBE) {
        ttl = (uint8_t)asked->seq;
    } else if (ttl == 0 && d->edge == edge && d->last_port == port) {
        ttl = d->last_ttl; /* short quote: one is on its way at a time, and answers come within
                              milliseconds */
    }

    if (edge < 0 || port >= MESH_PORT_COUNT) {
        m->counters.hops_unmatched++;
        return;
    }
    router = mesh_router(m, address);
    if (router == 0) {
        return;
    }
    m->counters.hops_heard++;
    if (token != 0 && asked->token == token && verify_answer(m, now, edge, asked->seq, router)) {
        return;
    }
    if (trace_answer(m, now, edge, source_port, router)) {
        return;
    }
    if (d->edge != edge || ttl == 0 || ttl > MESH_HOP_MAX) {
        m->counters.hops_unmatched++;
        return;
    }
    d->hops[port][ttl - 1] = (uint16_t)router;
}

void mesh_on_no_route(struct mesh *m, struct mono now, uint32_t local, struct nic_id peer,
                      uint16_t source_port, const uint8_t address[static 16])
{
    const int edge = mesh_edge_find(m, local, peer);
    const uint32_t router = edge >= 0 ? mesh_router(m, address) : 0;

    for (uint8_t p = 0; router != 0 && p < m->edges[edge].path_count; p++) {
        struct path_out *out = &m->edges[edge].out[p];

        for (uint8_t hop = 0; out->half.port == source_port && hop < out->hop_count; hop++) {
            if (out->hops[hop] == 0 || !same_router(m, out->hops[hop], router)) {
                continue;
            }
            out->trace_answered = out->trace_rounds == 0 ? 0 : out->trace_answered;
            out->trace_rounds = out->trace_rounds == 0 ? 1 : out->trace_rounds;
            out->traced = now;
            note_answer(m, now, local, out->signature, hop);
            m->counters.hops_heard++;
            mesh_verdict_push(m, (struct mesh_verdict){.kind = MESH_TRACED,
                                                       .edge = edge,
                                                       .path = p,
                                                       .direction = DIRECTION_OUT,
                                                       .since = now});
        }
    }
}

/* ---- over a restart ------------------------------------------------------------------------- */

bool mesh_save_edge(const struct mesh *m, int edge, struct mesh_saved_edge *ret_saved)
{
    const struct edge *e = &m->edges[edge];

    memset(ret_saved, 0, sizeof *ret_saved);
    if (!e->used) {
        return false;
    }
    ret_saved->local = m->nics[e->local].id;
    ret_saved->peer = e->nic;
    ret_saved->path_count = e->path_count;
    for (uint8_t p = 0; p < e->path_count; p++) {
        const struct path_out *out = &e->out[p];

        ret_saved->ports[p] = out->half.port;
        ret_saved->hop_counts[p] = out->hop_count;
        for (uint8_t hop = 0; hop < out->hop_count; hop++) {
            if (out->hops[hop] != 0) {
                memcpy(ret_saved->hops[p][hop], m->routers[out->hops[hop] - 1].address, 16);
            }
        }
    }
    return true;
}

void mesh_restore_edge(struct mesh *m, struct mono now, const struct mesh_saved_edge *saved)
{
    static const uint8_t none[16];
    struct edge *e = NULL;

    (void)now;
    for (uint32_t local = 0; local < m->config.nic_count; local++) {
        const int edge = nic_id_equal(m->nics[local].id, saved->local)
                             ? mesh_edge_find(m, local, saved->peer)
                             : -1;
        e = edge >= 0 ? &m->edges[edge] : e;
    }
    if (!e || saved->path_count < 1 || saved->path_count > m->config.path_limit) {
        return;
    }
    for (uint32_t p = 0; p < saved->path_count; p++) {
        if ((uint32_t)(saved->ports[p] - m->config.port_base) >= MESH_PORT_COUNT ||
            saved->hop_counts[p] > MESH_HOP_MAX) {
            return;
        }
    }
    e->path_count = (uint8_t)saved->path_count;
    for (uint8_t p = 0; p < e->path_count; p++) {
        struct path_out *out = &e->out[p];

        out->half.port = saved->ports[p];
        out->hop_count = saved->hop_counts[p];
        for (uint8_t hop = 0; hop < out->hop_count; hop++) {
            out->hops[hop] = memcmp(saved->hops[p][hop], none, 16) != 0
                                 ? (uint16_t)mesh_router(m, saved->hops[p][hop])
                                 : 0;
        }
        out->signature = out->hop_count > 0 ? list_signature(m, out->hops) : 0;
    }
}
