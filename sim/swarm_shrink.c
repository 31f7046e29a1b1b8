/* swarm_shrink.c: delta debugging of a world: which parts can be left out while the same invariant stays broken? It tries each
 * step in turn, large ones first, until no step helps. */
#include "sim/swarm.h"

#include "base/time.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct shrinker {
    struct scenario *best;
    struct scenario *trial;
    enum invariant broken;
    int tries, left;
    bool smaller; /* in this round */
};

/* ---- does it still fit? ---- */
static bool nic_fits(const struct scenario_fabric *f, struct scenario_nic n)
{
    return n.host < f->hosts && n.nic < f->nics_per_host;
}

static bool target_fits(const struct scenario_fabric *f, const struct scenario_target *t)
{
    switch (t->kind) {
    case TARGET_HOSTS:
        return t->share > 0 || t->last < f->hosts;
    case TARGET_NIC:
        return nic_fits(f, t->from);
    case TARGET_EDGE:
        return nic_fits(f, t->from) && nic_fits(f, t->to) && t->from.host != t->to.host &&
               t->path < (f->network == NETWORK_FABRIC ? f->spines : f->paths);
    case TARGET_LEAF:
        return t->first < f->leaves;
    case TARGET_SPINE:
        return t->first < f->spines;
    case TARGET_TRUNK:
        return t->first < f->leaves && t->last < f->spines;
    default:
        return true;
    }
}

static bool fits(const struct scenario *s)
{
    const struct scenario_fabric *f = &s->fabric;

    if (f->hosts < 2 || f->nics_per_host < 1 || f->leaves < 1 || f->spines < 1 ||
        s->duration_ns < NS_PER_S || s->clocks.anchors > f->hosts) {
        return false;
    }
    for (int i = 0; i < s->fault_count; i++) {
        if (!target_fits(f, &s->fault[i].target) || s->fault[i].at_ns > s->duration_ns) {
            return false;
        }
    }
    for (int i = 0; i < s->traffic_count; i++) {
        if (!target_fits(f, &s->traffic[i].to) || !target_fits(f, &s->traffic[i].from)) {
            return false;
        }
    }
    return true;
}

/* ---- one step ---- */
static void set_duration(struct scenario *s, int64_t duration_ns)
{
    for (int i = 0; i < s->traffic_count; i++) {
        if (s->traffic[i].end_ns >= s->duration_ns || s->traffic[i].end_ns > duration_ns) {
            s->traffic[i].end_ns = duration_ns;
        }
    }
    for (int i = 0; i < s->bound_count; i++) {
        s->bound[i].until_ns = duration_ns;
    }
    s->duration_ns = duration_ns;
}

/* Plays the trial. If it breaks as well, it becomes the best. */
static bool try(struct shrinker *k)
{
    struct swarm_result result;

    if (memcmp(k->trial, k->best, sizeof(*k->trial)) == 0 || !fits(k->trial) || k->left == 0) {
        *k->trial = *k->best;
        return false;
    }
    k->left--;
    k->tries++;
    if (swarm_play(k->trial, k->broken, &result) < 0 || result.broken[k->broken] == 0) {
        *k->trial = *k->best;
        return false;
    }
    *k->best = *k->trial;
    k->smaller = true;
    return true;
}

static void drop_faults(struct shrinker *k)
{
    for (int size = k->best->fault_count; size > 0; size /= 2) {
        for (int at = 0; at + size <= k->best->fault_count;) {
            struct scenario *t = k->trial;
            memmove(&t->fault[at], &t->fault[at + size],
                    (size_t)(t->fault_count - at - size) * sizeof(t->fault[0]));
            t->fault_count -= size;
            at += try(k) ? 0 : 1;
        }
    }
}

static void drop_traffic(struct shrinker *k)
{
    for (int at = 0; at < k->best->traffic_count;) {
        struct scenario *t = k->trial;
        memmove(&t->traffic[at], &t->traffic[at + 1],
                (size_t)(t->traffic_count - at - 1) * sizeof(t->traffic[0]));
        t->traffic_count--;
        at += try(k) ? 0 : 1;
    }
}

/* Lowers a number to `least` by halves, then by one. */
static void less(struct shrinker *k, size_t offset, int least)
{
    int *const best = (int *)(void *)((char *)k->best + offset);
    int *const trial = (int *)(void *)((char *)k->trial + offset);

    for (int by = (*best - least + 1) / 2; by > 0; by /= 2) {
        while (*best - by >= least) {
            *trial = *best - by;
            if (!try(k)) {
                break;
            }
        }
    }
}

/* When the fleet shrinks, the faults' places move with it: hosts and NICs towards 0. */
static void lower_targets(struct shrinker *k)
{
    for (int i = 0; i < k->best->fault_count; i++) {
        struct scenario_target *t = &k->trial->fault[i].target;
        if (t->kind == TARGET_HOSTS && t->share == 0 && t->first > 0) {
            t->last -= t->first;
            t->first = 0;
            (void)try(k);
        }
        t = &k->trial->fault[i].target;
        if (t->kind == TARGET_HOSTS && t->share == 0 && t->last > t->first) {
            t->last = t->first;
            (void)try(k);
        }
        t = &k->trial->fault[i].target;
        if (t->kind == TARGET_NIC || t->kind == TARGET_EDGE) {
            t->from = (struct scenario_nic){0, 0};
            t->to = t->kind == TARGET_EDGE ? (struct scenario_nic){1, 0} : t->to;
            (void)try(k);
        }
        t = &k->trial->fault[i].target;
        if (t->kind == TARGET_TRUNK || t->kind == TARGET_SPINE) {
            t->first = t->last = 0;
            (void)try(k);
        }
    }
}

static void shorten(struct shrinker *k)
{
    struct swarm_result result;

    if (swarm_play(k->best, k->broken, &result) == 0 && result.first[k->broken] > 0 &&
        result.first[k->broken] + NS_PER_S < k->best->duration_ns) {
        k->tries++;
        set_duration(k->trial, result.first[k->broken] / NS_PER_S * NS_PER_S + NS_PER_S);
        (void)try(k);
    }
    for (int64_t by = k->best->duration_ns / 2; by > 2 * NS_PER_S; by /= 2) {
        set_duration(k->trial, (k->best->duration_ns - by) / NS_PER_S * NS_PER_S);
        (void)try(k);
    }
    for (int i = 0; i < k->best->fault_count; i++) { /* rounder times */
        struct scenario_fault *f = &k->trial->fault[i];
        f->at_ns = f->at_ns / NS_PER_S * NS_PER_S;
        (void)try(k);
        f = &k->trial->fault[i];
        f->for_ns = f->for_ns > NS_PER_S ? f->for_ns / NS_PER_S * NS_PER_S : f->for_ns;
        (void)try(k);
    }
}

/* Resets members that don't matter to their defaults, one at a time. */
#define PLAIN(member)                                                                              \
    do {                                                                                           \
        k->trial->member = plain->member;                                                          \
        (void)try(k);                                                                              \
    } while (0)

static void plainer(struct shrinker *k, const struct scenario *plain)
{
    const int hosts = k->best->fabric.hosts, nics = k->best->fabric.nics_per_host;

    k->trial->clocks = plain->clocks;
    k->trial->clocks.stamps = k->best->clocks.stamps;
    (void)try(k);
    k->trial->fabric = plain->fabric;
    k->trial->fabric.hosts = hosts;
    k->trial->fabric.nics_per_host = nics;
    (void)try(k);
    PLAIN(wire);
    PLAIN(clocks.jitter_ns);
    PLAIN(clocks.quantum_ns);
    PLAIN(clocks.offset_ns);
    PLAIN(clocks.ramp_every_ns);
    PLAIN(clocks.one_tx_stamp);
    PLAIN(clocks.anchors);
    PLAIN(clocks.anchor_bound_ns);
    PLAIN(clocks.guard);
    PLAIN(clocks.warm_start);
    PLAIN(clocks.nic_read_ns);
    PLAIN(clocks.nic_read_noise_ns);
    PLAIN(clocks.noise_ns);
    PLAIN(clocks.wander);
    PLAIN(clocks.ppm);
    PLAIN(fabric.network);
    PLAIN(fabric.wiring);
    PLAIN(fabric.ip);
    PLAIN(fabric.trunk_mbps);
    PLAIN(fabric.link_mbps);
    PLAIN(fabric.buffer_bytes);
    PLAIN(fabric.drops);
    PLAIN(fabric.probe_class);
    PLAIN(fabric.routers_answer);
    PLAIN(fabric.edges_per_nic);
    PLAIN(fabric.cable_ns);
    PLAIN(fabric.switch_ns);
}

static void one_bound(struct scenario *s, enum invariant broken)
{
    s->bound[0] = s->bound[broken];
    s->bound_count = 1;
}

int swarm_shrink(struct scenario *s, enum invariant broken, int tries)
{
    struct shrinker k = {.best = s, .broken = broken, .left = tries};
    struct scenario *plain = malloc(sizeof(*plain));

    k.trial = malloc(sizeof(*k.trial));
    if (plain == NULL || k.trial == NULL) {
        free(plain);
        free(k.trial);
        return -ENOMEM;
    }
    scenario_init(plain);
    *k.trial = *s;
    do {
        k.smaller = false;
        drop_faults(&k);
        drop_traffic(&k);
        shorten(&k);
        less(&k, offsetof(struct scenario, fabric.hosts), 2);
        less(&k, offsetof(struct scenario, fabric.nics_per_host), 1);
        lower_targets(&k);
        less(&k, offsetof(struct scenario, fabric.spines), 1);
        less(&k, offsetof(struct scenario, fabric.leaves), 1);
        plainer(&k, plain);
    } while (k.smaller && k.left > 0);
    one_bound(s, broken);
    free(plain);
    free(k.trial);
    return k.tries;
}
