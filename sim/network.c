/* network.c: routes and delays. network_fault.c has faults, network_traffic.c has cross traffic. */
#include "sim/network.h"

#include "sim/network_fault.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int network_host(const struct network *n, uint32_t nic)
{
    return (int)nic / n->fabric->nics_per_host;
}

int network_leaf(const struct network *n, uint32_t nic)
{
    if (n->fabric->wiring == WIRING_RAIL) {
        return ((int)nic % n->fabric->nics_per_host) % n->leaves;
    }
    return (int)((int64_t)network_host(n, nic) * n->leaves / n->fabric->hosts);
}

static double frame_bytes(const struct scenario_fabric *f)
{
    return f->link_mbps >= 10000 ? 4096 + 66 : 1538;
}

static int make_ports(struct network *n)
{
    const struct scenario_fabric *f = n->fabric;
    const size_t trunks = (size_t)n->leaves * (size_t)n->spines;

    n->down = calloc((size_t)n->nics, sizeof(*n->down));
    n->up = calloc(trunks, sizeof(*n->up));
    n->across = calloc(trunks, sizeof(*n->across));
    n->trunk_down = calloc(trunks, 1);
    n->trunk_avoided = calloc(trunks, sizeof(*n->trunk_avoided));
    n->answers_at = calloc((size_t)n->leaves + (size_t)n->spines, sizeof(*n->answers_at));
    if (n->down == NULL || n->up == NULL || n->across == NULL || n->trunk_down == NULL ||
        n->trunk_avoided == NULL || n->answers_at == NULL) {
        return -ENOMEM;
    }
    for (int i = 0; i < n->nics; i++) {
        port_init(&n->down[i], hash_u64(n->seed, 1000000 + (uint64_t)i), f->link_mbps,
                  (double)f->buffer_bytes, frame_bytes(f), !f->drops);
    }
    for (size_t i = 0; i < trunks; i++) {
        port_init(&n->up[i], hash_u64(n->seed, 2000000 + i), scenario_trunk_mbps(f),
                  (double)f->buffer_bytes, frame_bytes(f), !f->drops);
        port_init(&n->across[i], hash_u64(n->seed, 3000000 + i), scenario_trunk_mbps(f),
                  (double)f->buffer_bytes, frame_bytes(f), !f->drops);
    }
    return 0;
}

int network_init(struct network *n, const struct scenario *s, uint64_t seed)
{
    *n = (struct network){.scenario = s,
                          .fabric = &s->fabric,
                          .seed = seed,
                          .nics = s->fabric.hosts * s->fabric.nics_per_host,
                          .leaves = s->fabric.leaves,
                          .spines = s->fabric.spines};
    prng_init(&n->random, hash_u64(seed, 0x6e657477));
    n->carrier = malloc((size_t)n->nics);
    if (n->carrier == NULL) {
        return -ENOMEM;
    }
    memset(n->carrier, 1, (size_t)n->nics);
    for (int i = 0; i < s->fault_count; i++) {
        n->faults[i].fault = &s->fault[i];
    }
    return s->fabric.network == NETWORK_FABRIC ? make_ports(n) : 0;
}

void network_done(struct network *n)
{
    free(n->down);
    free(n->up);
    free(n->across);
    free(n->carrier);
    free(n->trunk_down);
    free(n->trunk_avoided);
    free(n->answers_at);
    *n = (struct network){0};
}

void network_address(bool spine, int number, uint8_t ret_address[16])
{
    memset(ret_address, 0, 16);
    ret_address[10] = ret_address[11] = 0xff;
    ret_address[12] = 10;
    ret_address[13] = spine ? 202 : 201;
    ret_address[14] = (uint8_t)(number >> 8);
    ret_address[15] = (uint8_t)number;
}

/* ---- routes ---- */
static bool usable(const struct network *n, int leaf, int spine, int64_t now)
{
    const size_t trunk = (size_t)leaf * (size_t)n->spines + (size_t)spine;
    return n->trunk_down[trunk] == 0 || now < n->trunk_avoided[trunk];
}

int network_route(const struct network *n, uint32_t src, uint32_t dst, uint16_t port, int64_t now)
{
    const int from = network_leaf(n, src), to = network_leaf(n, dst);
    int choices[256], count = 0;

    if (from == to || n->spines == 0) {
        return -1;
    }
    for (int spine = 0; spine < n->spines; spine++) {
        if (usable(n, from, spine, now) && usable(n, to, spine, now)) {
            choices[count++] = spine;
        }
    }
    if (count == 0) {
        return -1;
    }
    const uint64_t flow =
        hash_u64(hash_u64(n->seed ^ 0x65636d70, ((uint64_t)src << 32) | dst), port);
    return choices[flow % (uint64_t)count];
}

/* ---- abstract ---- */
static double uniform_of(uint64_t seed, uint64_t a, uint64_t b)
{
    return (double)(hash_u64(hash_u64(seed, a), b) >> 11) * 0x1p-53;
}

static uint64_t edge_key(uint32_t a, uint32_t b)
{
    return a < b ? ((uint64_t)a << 32) | b : ((uint64_t)b << 32) | a;
}

/* Half of the difference between the two directions; positive for the direction from the lower number. */
static double asymmetry_ns(const struct network *n, uint64_t edge, unsigned path)
{
    const struct scenario_fabric *f = n->fabric;
    const uint64_t which = f->asymmetry_per_path ? path + 1 : 0;

    if (f->asymmetry_uniform_ns > 0) {
        return (2 * uniform_of(n->seed ^ 0x6173, edge, which) - 1) *
               (double)f->asymmetry_uniform_ns;
    }
    if (uniform_of(n->seed ^ 0x6174, edge, which) < f->asymmetric_share) {
        const bool up = (hash_u64(n->seed ^ 0x6175, edge ^ which) & 1) != 0;
        return up ? (double)f->asymmetry_ns : -(double)f->asymmetry_ns;
    }
    return 0;
}

static unsigned abstract_path(const struct network *n, uint32_t src, uint32_t dst, uint16_t port)
{
    (void)src;
    (void)dst;
    return (unsigned)port % (unsigned)n->fabric->paths;
}

int64_t network_fixed(const struct network *n, uint32_t src, uint32_t dst, uint16_t port)
{
    const struct scenario_fabric *f = n->fabric;
    const uint64_t edge = edge_key(src, dst);
    const double width = (double)(f->delay_ns_max - f->delay_ns_min);
    const double a = asymmetry_ns(n, edge, abstract_path(n, src, dst, port));
    const double delay = (double)f->delay_ns_min + width * uniform_of(n->seed ^ 0x64, edge, 0) +
                         (src < dst ? a : -a);

    return delay > 0 ? (int64_t)delay : 0;
}

static enum network_step start_abstract(struct network *n, struct packet *p, int64_t *ret_at)
{
    int64_t delay = network_fixed(n, p->src, p->dst, p->source_port) + p->extra_ns;

    if (prng_uniform(&n->random) < n->fabric->queued_share) {
        delay += (int64_t)((double)n->fabric->queue_ns * prng_exponential(&n->random));
    }
    n->passed++;
    *ret_at = p->sent + delay;
    return NETWORK_ARRIVES;
}

/* ---- fabric ---- */
static int64_t link_ns(const struct network *n)
{
    return n->fabric->cable_ns + n->fabric->switch_ns;
}

static enum network_step start_fabric(struct network *n, struct packet *p, int64_t *ret_at)
{
    const double serial = network_wire_bytes(p->size) * 8000.0 / n->fabric->link_mbps;

    if (p->spine < 0 && network_leaf(n, p->src) != network_leaf(n, p->dst)) {
        n->lost++;
        return NETWORK_LOST;
    }
    p->stages = p->spine < 0 ? 1 : 3;
    p->expires = p->ttl == 0 || p->ttl > p->stages ? 255 : (uint8_t)(p->ttl - 1);
    *ret_at = p->sent + (int64_t)serial + link_ns(n) + p->extra_ns;
    return NETWORK_ON;
}

enum network_step network_start(struct network *n, struct packet *p, int64_t *ret_at)
{
    const bool fabric = n->fabric->network == NETWORK_FABRIC;

    p->spine = fabric ? network_route(n, p->src, p->dst, p->source_port, p->sent)
                      : (int)abstract_path(n, p->src, p->dst, p->source_port);
    p->stage = 0;
    p->extra_ns = 0;
    p->enters = PART_OUT;
    p->ends = p->ttl == 0 || p->ttl > (p->spine < 0 ? 1 : 3) ? PART_IN : (uint8_t)(p->ttl - 1);
    if (!network_fault_pass(n, p)) {
        n->lost++;
        return NETWORK_LOST;
    }
    return fabric ? start_fabric(n, p, ret_at) : start_abstract(n, p, ret_at);
}

static struct port *port_of(struct network *n, const struct packet *p)
{
    const int from = network_leaf(n, p->src), to = network_leaf(n, p->dst);

    if (p->stage + 1 == p->stages) {
        return &n->down[p->dst];
    }
    return p->stage == 0 ? &n->up[from * n->spines + p->spine]
                         : &n->across[p->spine * n->leaves + to];
}

/* A switch limits the packets that go to its processor. */
static bool router_answers(struct network *n, const struct packet *p, int64_t at)
{
    const int leaf = network_leaf(n, p->expires == 0 ? p->src : p->dst);
    int64_t *again = &n->answers_at[p->expires == 1 ? n->leaves + p->spine : leaf];

    if (!n->fabric->routers_answer || at < *again) {
        return false;
    }
    *again = n->fabric->answers_s > 0 ? at + (int64_t)(1e9 / n->fabric->answers_s) : at;
    return true;
}

/* A router's answer returns over the same spine, and is affected by faults on its way. */
static bool answer_passes(struct network *n, const struct packet *p, int64_t at)
{
    struct packet back = *p;

    back.src = p->dst;
    back.dst = p->src;
    back.enters = p->expires == 0 ? PART_IN : p->expires == 1 ? PART_DOWN : PART_UP;
    back.ends = PART_IN;
    return router_answers(n, p, at) && network_fault_pass(n, &back);
}

enum network_step network_hop(struct network *n, struct packet *p, int64_t at, int64_t *ret_at)
{
    if (p->stage == p->expires) {
        *ret_at = at + (at - p->sent) + 20000; /* a router's slow path */
        return answer_passes(n, p, at) ? NETWORK_EXPIRES : NETWORK_LOST;
    }
    const double left =
        port_pass(port_of(n, p), (double)at, network_wire_bytes(p->size), p->high != 0);
    if (left < 0) {
        n->lost++;
        return NETWORK_LOST;
    }
    p->stage++;
    if (p->stage == p->stages) {
        n->passed++;
        *ret_at = (int64_t)left + n->fabric->cable_ns;
        return NETWORK_ARRIVES;
    }
    *ret_at = (int64_t)left + link_ns(n);
    return NETWORK_ON;
}

void network_router(const struct network *n, const struct packet *p, uint8_t ret_address[16])
{
    const bool spine = p->expires == 1;
    network_address(spine, spine ? p->spine : network_leaf(n, p->expires == 0 ? p->src : p->dst),
                    ret_address);
}

int64_t network_longest(const struct network *n)
{
    const struct scenario_fabric *f = n->fabric;
    const double serial = PROBE_WIRE_BYTES * 8000.0;

    if (f->network == NETWORK_ABSTRACT) {
        return f->delay_ns_max + f->asymmetry_ns + f->asymmetry_uniform_ns;
    }
    return 4 * f->cable_ns + 3 * f->switch_ns +
           (int64_t)(2 * serial / f->link_mbps + 2 * serial / scenario_trunk_mbps(f));
}
