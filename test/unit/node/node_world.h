/* node_world.h: a few hosts in one process: real nodes, a fabric of delays and losses, clocks with offsets and rates.
 *
 * Two leaves, four spines, hosts on one leaf each. A source port selects a spine. Each trunk can lose packets in each direction,
 * and each host can stop. One seed gives one history. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/node/node.h"
#include "node_invariant.h"

#define WORLD_HOSTS   8
#define WORLD_NICS    2
#define WORLD_SPINES  4
#define WORLD_PACKETS 65536
#define WORLD_EVENTS  4096

enum world_kind { WORLD_ARRIVE, WORLD_STAMP, WORLD_HOP };
struct world_packet {
    int64_t at; /* true time */
    uint32_t kind, host, order;
    struct mesh_send send;
    struct node_transmit transmit;
    struct node_hop hop;
    uint32_t from_host;
    int64_t rx;
};
struct world_host {
    struct node *node;
    double rate; /* of its clock */
    int64_t offset;
    int64_t stopped_until; /* true time */
    int64_t wake;
    struct node_finding_log {
        struct finding finding;
        int64_t at;
    } findings[WORLD_EVENTS];
    uint32_t finding_count;
    uint64_t digest; /* of all actions */
};
struct world {
    struct prng prng;
    int64_t now; /* true */
    uint32_t host_count, nic_count, spine_count, order;
    struct world_host hosts[WORLD_HOSTS];
    struct mesh_peer peers[WORLD_HOSTS * WORLD_NICS];
    struct mesh_router routers[2 * 2 + WORLD_SPINES * 2];
    double trunk_loss[2][WORLD_SPINES][2];        /* leaf, spine, 0: up (leaf to spine), 1: down */
    bool job_class_only;                          /* trunks lose only that class */
    double host_loss[WORLD_HOSTS][WORLD_NICS][2]; /* 0: to the fabric, 1: from it */
    int64_t trunk_delay[2][WORLD_SPINES][2];
    int64_t pair_delay[WORLD_HOSTS][WORLD_HOSTS]; /* from, to */
    struct world_packet *heap;
    uint32_t heap_count;
    bool trace_hops, routers_silent;
    uint16_t path_limit[WORLD_HOSTS]; /* of a host; 0: the usual */
    uint32_t astray;                  /* bits: hosts whose packets state that they aren't in step */
    uint64_t sends, losses, drains;
    uint32_t liars; /* bits: hosts whose digests `lie` changes */
    void (*lie)(const struct world *w, struct probe_digest *digest);
};

static inline uint32_t world_leaf(const struct world *w, uint32_t host)
{
    return host < (w->host_count + 1) / 2 ? 0 : 1;
}
static inline int64_t world_clock(const struct world_host *h, int64_t t)
{
    return h->offset + t + (int64_t)((double)t * h->rate);
}
/* The true time of a reading, to a few ns. */
static inline int64_t world_when(const struct world_host *h, int64_t reading)
{
    const double t = (double)(reading - h->offset) / (1.0 + h->rate);
    return (int64_t)t + 2;
}

static inline bool world_before(const struct world_packet *a, const struct world_packet *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}
static inline void world_push(struct world *w, struct world_packet *p)
{
    uint32_t i = w->heap_count++;

    if (w->heap_count > WORLD_PACKETS) {
        abort();
    }
    p->order = w->order++;
    for (; i > 0 && world_before(p, &w->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        w->heap[i] = w->heap[(i - 1) / 2];
    }
    w->heap[i] = *p;
}
static inline struct world_packet world_pop(struct world *w)
{
    const struct world_packet top = w->heap[0], last = w->heap[--w->heap_count];
    uint32_t i = 0, child;

    while ((child = 2 * i + 1) < w->heap_count) {
        child += child + 1 < w->heap_count && world_before(&w->heap[child + 1], &w->heap[child]);
        if (!world_before(&w->heap[child], &last)) {
            break;
        }
        w->heap[i] = w->heap[child];
        i = child;
    }
    w->heap[i] = last;
    return top;
}

static inline void world_address(uint8_t *address, uint32_t tier, uint32_t number, uint32_t port)
{
    static const uint8_t mapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    memcpy(address, mapped, 12);
    address[12] = 10;
    address[13] = (uint8_t)tier;
    address[14] = (uint8_t)number;
    address[15] = (uint8_t)port;
}

static inline void world_init(struct world *w, uint64_t seed, uint32_t host_count,
                              uint32_t nic_count)
{
    memset(w, 0, sizeof(*w));
    prng_init(&w->prng, seed);
    w->host_count = host_count;
    w->nic_count = nic_count;
    w->spine_count = WORLD_SPINES;
    w->heap = calloc(WORLD_PACKETS, sizeof(*w->heap));
    for (uint32_t h = 0; h < host_count; h++) {
        for (uint32_t i = 0; i < nic_count; i++) {
            w->peers[h * nic_count + i] = (struct mesh_peer){.nic = {h * nic_count + i},
                                                             .host = {h},
                                                             .rail = (uint16_t)i,
                                                             .leaf = (uint16_t)world_leaf(w, h)};
        }
    }
    uint32_t r = 0;
    for (uint32_t leaf = 0; leaf < 2;
         leaf++) { /* one address for each side on which packets come in */
        for (uint32_t port = 0; port < 2; port++) {
            world_address(w->routers[r].address, 1, leaf, port);
            w->routers[r].place = PLACE_LEAF;
            w->routers[r++].number = leaf;
        }
    }
    for (uint32_t s = 0; s < WORLD_SPINES; s++) {
        for (uint32_t leaf = 0; leaf < 2; leaf++) {
            world_address(w->routers[r].address, 2, s, leaf);
            w->routers[r].place = PLACE_SPINE;
            w->routers[r++].number = s;
        }
    }
}

static inline struct mono world_mono(const struct world *w, uint32_t host)
{
    return (struct mono){world_clock(&w->hosts[host], w->now)};
}

static inline void world_start(struct world *w, uint32_t host)
{
    struct world_host *h = &w->hosts[host];
    struct node_config config = {.host = {host},
                                 .nic_count = w->nic_count,
                                 .fleet = {.seed = 7,
                                           .peers = w->peers,
                                           .peer_count = w->host_count * w->nic_count,
                                           .routers = w->routers,
                                           .router_count = 4 + 2 * WORLD_SPINES},
                                 .path_limit = w->path_limit[host],
                                 .seed = prng_u64(&w->prng)};

    if (w->now == 0) {
        h->offset = (int64_t)prng_below(&w->prng, 1000000000000ULL);
        h->rate = (prng_uniform(&w->prng) - 0.5) * 60e-6;
    }
    for (uint32_t i = 0; i < w->nic_count; i++) {
        config.nics[i] =
            (struct node_nic){.nic = {host * w->nic_count + i}, .stamps = STAMP_SOFTWARE};
    }
    config.wall_minus_ns =
        1795000000000000000 - h->offset + (int64_t)prng_below(&w->prng, 20000000);
    config.no_discovery = !w->trace_hops;
    if (node_new(&h->node, &config, world_mono(w, host)) < 0) {
        abort();
    }
    h->wake = w->now;
}

static inline uint32_t world_spine(const struct world *w, const struct mesh_send *s)
{
    return (uint32_t)(hash_u64(hash_u64(s->source_port, s->probe.src.index), s->probe.dst.index) %
                      w->spine_count);
}

static inline bool world_lost(struct world *w, double p)
{
    if (p <= 0) {
        return false;
    }
    const bool lost = p >= 1 || prng_uniform(&w->prng) < p;
    w->losses += lost;
    return lost;
}

static inline void world_hop(struct world *w, uint32_t host, const struct mesh_send *s, int64_t at,
                             uint32_t tier, uint32_t number, uint32_t port)
{
    struct world_packet p = {.at = at, .kind = WORLD_HOP, .host = host};

    if (!w->routers_silent) {
        p.hop = (struct node_hop){.token = s->token,
                                  .local = s->local,
                                  .peer = s->peer,
                                  .source_port = s->source_port,
                                  .ttl = s->ttl};
        world_address(p.hop.address, tier, number, port);
        world_push(w, &p);
    }
}

/* Sends a packet over its leaf, maybe a spine, and the other leaf. It may be lost on the way, or end at its hop limit. */
static inline void world_send(struct world *w, uint32_t host, const struct mesh_send *s)
{
    const uint32_t to = s->probe.dst.index / w->nic_count,
                   to_nic = s->probe.dst.index % w->nic_count;
    const uint32_t leaf = world_leaf(w, host), to_leaf = world_leaf(w, to),
                   spine = world_spine(w, s);
    const int64_t queue =
        (int64_t)(prng_uniform(&w->prng) < 0.3 ? prng_exponential(&w->prng) * 1000 : 0);
    const int64_t sent = w->now + s->hold_us * NS_PER_US + (int64_t)prng_below(&w->prng, 20000) +
                         (s->probe.second ? 30000 : 0);
    struct world_packet stamp = {.at = sent + 200000, .kind = WORLD_STAMP, .host = host};
    struct world_packet p = {
        .at = sent + queue, .kind = WORLD_ARRIVE, .host = to, .send = *s, .from_host = host};
    uint32_t ttl = s->ttl ? s->ttl : 64;

    w->sends++;
    stamp.transmit = (struct node_transmit){.token = s->token,
                                            .local = s->local,
                                            .tx = {world_clock(&w->hosts[host], sent)},
                                            .outcome = TRANSMIT_STAMPED,
                                            .stamps = STAMP_SOFTWARE};
    world_push(w, &stamp);
    if (world_lost(w, w->host_loss[host][s->local][0])) {
        return;
    }
    p.at += 1000;
    if (--ttl == 0) {
        world_hop(w, host, s, p.at + 1000, 1, leaf, 0);
        return;
    }
    if (leaf != to_leaf) {
        const double lossy = w->job_class_only && s->net_class != NODE_CLASS_JOB ? 0 : 1;

        if (world_lost(w, lossy * w->trunk_loss[leaf][spine][0])) {
            return;
        }
        p.at += 1000 + w->trunk_delay[leaf][spine][0];
        if (--ttl == 0) {
            world_hop(w, host, s, p.at + 1000, 2, spine, leaf);
            return;
        }
        if (world_lost(w, lossy * w->trunk_loss[to_leaf][spine][1])) {
            return;
        }
        p.at += 1000 + w->trunk_delay[to_leaf][spine][1];
        if (--ttl == 0) {
            world_hop(w, host, s, p.at + 1000, 1, to_leaf, 1);
            return;
        }
    }
    p.at += 1000 + w->pair_delay[host][to];
    if (!world_lost(w, w->host_loss[to][to_nic][1])) {
        p.rx = p.at + (int64_t)(prng_exponential(&w->prng) * 50);
        world_push(w, &p);
    }
}

static inline void world_digest(struct world_host *h, const struct node_action *a)
{
    const uint8_t *bytes = (const uint8_t *)a;
    uint64_t word;

    for (size_t i = 0; i + 8 <= sizeof(*a); i += 8) {
        memcpy(&word, bytes + i, 8);
        h->digest = hash_u64(h->digest, word);
    }
}

static inline void world_drain(struct world *w, uint32_t host)
{
    struct world_host *h = &w->hosts[host];
    struct node_action a;

    const char *broken = w->drains++ % 16 == 0 ? node_invariant(h->node) : NULL;
    if (broken != NULL) {
        fprintf(stderr, "host %u: %s\n", host, broken);
        abort();
    }
    while (node_next_action(h->node, &a)) {
        world_digest(h, &a);
        if (a.kind == NODE_SEND) {
            if (a.send.probe.type == PROBE_DIGEST && (w->liars & 1u << host) != 0) {
                w->lie(w, &a.send.probe.digest);
            }
            world_send(w, host, &a.send);
        } else if (a.kind == NODE_FINDING && h->finding_count < WORLD_EVENTS) {
            h->findings[h->finding_count++] = (struct node_finding_log){a.finding, w->now};
        }
    }
    h->wake = world_when(h, node_deadline(h->node).ns);
    h->wake = h->wake <= w->now ? w->now + 1000 : h->wake;
}

static inline void world_deliver(struct world *w, const struct world_packet *p)
{
    struct world_host *h = &w->hosts[p->host];
    const struct mono now = world_mono(w, p->host);

    if (p->kind == WORLD_STAMP) {
        node_on_transmit(h->node, now, &p->transmit);
    } else if (p->kind == WORLD_HOP) {
        node_on_hop(h->node, now, &p->hop);
    } else {
        struct node_receive event = {.local = p->send.probe.dst.index % w->nic_count,
                                     .source_port = p->send.source_port,
                                     .stamps = STAMP_SOFTWARE,
                                     .rx = {world_clock(h, p->rx)},
                                     .probe = p->send.probe};
        event.probe.core = event.probe.core && (w->astray & 1u << p->from_host) == 0;
        node_on_receive(h->node, now, &event);
    }
}

/* Runs for so long, in true time. A stopped host's packets wait for it. */
static inline void world_run(struct world *w, int64_t ns)
{
    const int64_t end = w->now + ns;

    for (;;) {
        int64_t next = end;
        uint32_t wake = UINT32_MAX;

        for (uint32_t i = 0; i < w->host_count; i++) {
            struct world_host *h = &w->hosts[i];
            if (!h->node) {
                continue;
            }
            const int64_t at = h->wake > h->stopped_until ? h->wake : h->stopped_until;
            if (at < next) {
                next = at;
                wake = i;
            }
        }
        if (w->heap_count > 0 && w->heap[0].at <= next) {
            struct world_packet p = world_pop(w);

            w->now = p.at > w->now ? p.at : w->now;
            if (!w->hosts[p.host].node) {
                continue;
            }
            if (p.at < w->hosts[p.host].stopped_until) {
                p.at = w->hosts[p.host].stopped_until;
                world_push(w, &p);
                continue;
            }
            world_deliver(w, &p);
            world_drain(w, p.host);
            continue;
        }
        w->now = next > w->now ? next : w->now;
        if (wake == UINT32_MAX) {
            return;
        }
        node_tick(w->hosts[wake].node, world_mono(w, wake));
        world_drain(w, wake);
    }
}

static inline void world_stop(struct world *w, uint32_t host, int64_t ns)
{
    struct world_host *h = &w->hosts[host];

    h->stopped_until = w->now + ns > h->stopped_until ? w->now + ns : h->stopped_until;
}

static inline void world_done(struct world *w)
{
    for (uint32_t i = 0; i < w->host_count; i++) {
        w->hosts[i].node = node_free(w->hosts[i].node);
    }
    free(w->heap);
}
