/* network_fault.c: faults of links, trunks, spines and paths, applied to each packet. */
#include "sim/network_fault.h"

#include <math.h>

#define IP_BYTES 28 /* of headers */

/* ---- is the fault on this packet's path? ---- */
static bool crosses(const struct packet *p, enum network_part part)
{
    return p->enters <= part && part <= p->ends;
}

static bool on_nic(const struct network *n, const struct scenario_fault *f, const struct packet *p)
{
    const uint32_t nic =
        (uint32_t)(f->target.from.host * n->fabric->nics_per_host + f->target.from.nic);
    return (p->src == nic && f->direction != TOWARDS_DOWN && crosses(p, PART_OUT)) ||
           (p->dst == nic && f->direction != TOWARDS_UP && crosses(p, PART_IN));
}

static bool on_trunk(const struct network *n, const struct scenario_fault *f,
                     const struct packet *p)
{
    const int leaf = f->target.first, spine = f->target.last;

    if (p->spine != spine || n->fabric->network != NETWORK_FABRIC) {
        return false;
    }
    return (network_leaf(n, p->src) == leaf && f->direction != TOWARDS_DOWN &&
            crosses(p, PART_UP)) ||
           (network_leaf(n, p->dst) == leaf && f->direction != TOWARDS_UP && crosses(p, PART_DOWN));
}

static bool on_edge(const struct network *n, const struct scenario_target *t,
                    const struct packet *p)
{
    const uint32_t from = (uint32_t)(t->from.host * n->fabric->nics_per_host + t->from.nic);
    const uint32_t to = (uint32_t)(t->to.host * n->fabric->nics_per_host + t->to.nic);

    if (t->path >= 0 && p->spine != t->path) {
        return false;
    }
    return (p->src == from && p->dst == to) || (t->both_ways && p->src == to && p->dst == from);
}

static bool on_way(const struct network *n, const struct scenario_fault *f, const struct packet *p)
{
    switch (f->target.kind) {
    case TARGET_ALL:
        return true;
    case TARGET_NIC:
        return on_nic(n, f, p);
    case TARGET_TRUNK:
        return on_trunk(n, f, p);
    case TARGET_SPINE:
        return p->spine == f->target.first && (crosses(p, PART_UP) || crosses(p, PART_DOWN));
    case TARGET_EDGE:
        return on_edge(n, &f->target, p);
    default:
        return false;
    }
}

/* +1: this packet takes the direction that got longer; -1: the other; 0: not on such an edge. */
static int asymmetric(const struct network *n, const struct scenario_fault *f,
                      const struct packet *p)
{
    if (f->target.kind == TARGET_EDGES) {
        const uint32_t low = p->src < p->dst ? p->src : p->dst;
        const uint32_t high = p->src < p->dst ? p->dst : p->src;
        const uint64_t h = hash_u64(n->seed ^ 0x617379, ((uint64_t)low << 32) | high);
        if ((double)(h >> 11) * 0x1p-53 >= f->target.share) {
            return 0;
        }
        return (p->src == low) == ((h & 1) != 0) ? 1 : -1;
    }
    if (on_edge(n, &f->target, p)) {
        return 1;
    }
    struct scenario_target back = f->target;
    back.from = f->target.to;
    back.to = f->target.from;
    return on_edge(n, &back, p) ? -1 : 0;
}

static bool parted(const struct network *n, const struct network_fault *nf, const struct packet *p)
{
    return nf->hosts[network_host(n, p->src)] != nf->hosts[network_host(n, p->dst)];
}

static bool in_class(const struct scenario_fault *f, const struct packet *p)
{
    return f->net_class == CLASS_ANY || (f->net_class == CLASS_CLOCK) == (p->high != 0);
}

static bool one_fault(struct network *n, struct network_fault *nf, struct packet *p)
{
    const struct scenario_fault *f = nf->fault;

    switch (f->kind) {
    case FAULT_BLACKHOLE:
        return !on_way(n, f, p) || !in_class(f, p) || IP_BYTES + p->size <= f->above_bytes;
    case FAULT_LOSS:
        return !on_way(n, f, p) || !in_class(f, p) || prng_uniform(&n->random) >= f->loss;
    case FAULT_DELAY:
        if (on_way(n, f, p)) {
            p->extra_ns += f->delay_ns;
            if (f->jitter_ns > 0) {
                p->extra_ns += (int64_t)((double)f->jitter_ns * prng_exponential(&n->random));
            }
        }
        return true;
    case FAULT_ASYMMETRY:
        p->extra_ns += asymmetric(n, f, p) * f->delay_ns;
        return true;
    case FAULT_PARTITION:
        return !parted(n, nf, p);
    case FAULT_NIC_VANISH:
        return !on_way(n, f, p);
    default:
        return true;
    }
}

/* A trunk that is down drops packets until routing has healed. */
static bool trunks_carry(const struct network *n, const struct packet *p)
{
    if (n->fabric->network != NETWORK_FABRIC || p->spine < 0) {
        return true;
    }
    const int up = network_leaf(n, p->src) * n->spines + p->spine;
    const int down = network_leaf(n, p->dst) * n->spines + p->spine;
    return (n->trunk_down[up] == 0 || !crosses(p, PART_UP)) &&
           (n->trunk_down[down] == 0 || !crosses(p, PART_DOWN));
}

/* Counts the packet for its trunk's fault: a judge asks whether probes could notice it. */
static void lost_on_trunk(struct network *n, const struct packet *p)
{
    for (unsigned i = 0; i < n->active_count; i++) {
        struct network_fault *nf = &n->faults[n->active[i]];
        const enum scenario_fault_kind kind = nf->fault->kind;
        nf->lost += (kind == FAULT_TRUNK || kind == FAULT_SPINE) && on_way(n, nf->fault, p);
    }
}

bool network_fault_pass(struct network *n, struct packet *p)
{
    if ((n->carrier[p->src] == 0 && crosses(p, PART_OUT)) ||
        (n->carrier[p->dst] == 0 && crosses(p, PART_IN))) {
        return false;
    }
    if (!trunks_carry(n, p)) {
        lost_on_trunk(n, p);
        return false;
    }
    for (unsigned i = 0; i < n->active_count; i++) {
        struct network_fault *nf = &n->faults[n->active[i]];
        if (!one_fault(n, nf, p)) {
            nf->lost++;
            return false;
        }
    }
    return true;
}

/* ---- on, off ---- */
static void hold_trunk(struct network *n, int leaf, int spine, int by, int64_t avoided)
{
    const int trunk = leaf * n->spines + spine;
    n->trunk_down[trunk] = (uint8_t)(n->trunk_down[trunk] + by);
    if (by > 0) {
        n->trunk_avoided[trunk] = avoided;
    }
}

static void trunks(struct network *n, const struct scenario_fault *f, int by, int64_t now)
{
    const int64_t avoided = now + f->reroute_ns;

    if (n->fabric->network != NETWORK_FABRIC) {
        return;
    }
    if (f->target.kind == TARGET_TRUNK) {
        hold_trunk(n, f->target.first, f->target.last, by, avoided);
    } else if (f->target.kind == TARGET_SPINE) {
        for (int leaf = 0; leaf < n->leaves; leaf++) {
            hold_trunk(n, leaf, f->target.first, by, avoided);
        }
    }
}

static void brownout(struct network *n, const struct scenario_fault *f, bool on)
{
    if (n->fabric->network != NETWORK_FABRIC) {
        return;
    }
    if (f->target.kind == TARGET_NIC) {
        const int nic = f->target.from.host * n->fabric->nics_per_host + f->target.from.nic;
        port_rate(&n->down[nic], on ? f->rate_mbps : n->fabric->link_mbps);
    } else {
        const double rate = on ? f->rate_mbps : scenario_trunk_mbps(n->fabric);
        port_rate(&n->up[f->target.first * n->spines + f->target.last], rate);
        port_rate(&n->across[f->target.last * n->leaves + f->target.first], rate);
    }
}

void network_fault_on(struct network *n, unsigned index, int64_t now, const uint8_t *hosts)
{
    struct network_fault *nf = &n->faults[index];
    const struct scenario_fault *f = nf->fault;

    if (nf->on) {
        return;
    }
    nf->on = true;
    nf->since = now;
    nf->hosts = hosts;
    n->active[n->active_count++] = index;
    if (f->kind == FAULT_TRUNK || f->kind == FAULT_SPINE || f->kind == FAULT_FLAP) {
        trunks(n, f, 1, now);
    } else if (f->kind == FAULT_BROWNOUT) {
        brownout(n, f, true);
    }
}

void network_fault_off(struct network *n, unsigned index, int64_t now)
{
    struct network_fault *nf = &n->faults[index];
    const struct scenario_fault *f = nf->fault;

    if (!nf->on) {
        return;
    }
    nf->on = false;
    for (unsigned i = 0; i < n->active_count; i++) {
        if (n->active[i] == index) {
            n->active[i] = n->active[--n->active_count];
            break;
        }
    }
    if (f->kind == FAULT_TRUNK || f->kind == FAULT_SPINE || f->kind == FAULT_FLAP) {
        trunks(n, f, -1, now);
    } else if (f->kind == FAULT_BROWNOUT) {
        brownout(n, f, false);
    }
}
