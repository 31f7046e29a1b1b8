/* check_delay.c: compares the one-way delays that nodes report with the true delays of their packets.
 *
 * Some flows (a NIC pair and a source port) are watched: the true delays of their last packets are kept. Once a second a
 * node's reported median over 10 to 20 s is compared with the true median of the last 15 s. */
#include "sim/check.h"

#include <math.h>
#include <stdlib.h>

#include "stats/sample.h"

#define LOOK_NS    (15 * NS_PER_S)
#define ENOUGH     40
#define EVERY_FLOW 4 /* one of so many flows is watched, while there is room */

static uint64_t flow_key(uint32_t src, uint32_t dst, uint16_t port)
{
    return ((uint64_t)src << 36) | ((uint64_t)dst << 16) | port;
}

static struct check_flow *flow_of(struct check *c, uint64_t key, bool add)
{
    const uint64_t h = hash_u64(key, 77);
    struct check_flow *f = &c->flows[h % CHECK_FLOWS];

    if (f->key == key) {
        return f;
    }
    if (!add || f->key != 0 || (h >> 32) % EVERY_FLOW != 0) {
        return NULL;
    }
    f->key = key;
    return f;
}

void check_arrival(struct world *w, const struct packet *p)
{
    if (p->sent < 0) {
        return;
    }
    if (w->check->invariants != NULL) {
        invariant_arrival(w->check->invariants, w, p);
    }
    struct check_flow *f = flow_of(w->check, flow_key(p->src, p->dst, p->source_port), true);
    if (f == NULL) {
        return;
    }
    f->at[f->count % CHECK_DELAYS] = p->arrives;
    f->delay[f->count % CHECK_DELAYS] = (double)(p->arrives - p->sent);
    f->src = p->src;
    f->dst = p->dst;
    f->port = p->source_port;
    f->count++;
}

/* NAN: too few samples. */
static double true_median(const struct check_flow *f, int64_t now)
{
    double delays[CHECK_DELAYS];
    int n = 0;

    for (uint32_t i = 0; i < CHECK_DELAYS && i < f->count; i++) {
        if (now - f->at[i] < LOOK_NS) {
            delays[n++] = f->delay[i];
        }
    }
    if (n < ENOUGH) {
        return NAN;
    }
    qsort(delays, (size_t)n, sizeof(delays[0]), sample_order);
    return sample_median(delays, (size_t)n);
}

/* The receiver's report of the flow. */
static bool reported(struct world *w, const struct check_flow *f, double *ret)
{
    const int host = (int)f->dst / w->nics_per_host;
    const struct node *n = w->hosts[host].node;
    const struct mono now = {world_raw(w, host, w->now)};
    struct node_edge edge;
    struct path_report report;

    if (n == NULL || !w->check->hosts[host].judged) {
        return false;
    }
    for (uint32_t e = 0; e < node_edge_count(n); e++) {
        node_edge_get(n, e, now, &edge);
        if (edge.local.index != f->dst || edge.peer.index != f->src) {
            continue;
        }
        for (uint8_t path = 0; path < EDGE_PATH_MAX; path++) {
            if (node_path_get(n, e, path, DIRECTION_IN, now, &report) &&
                report.source_port == f->port && report.owd_count >= ENOUGH / 2) {
                *ret = (double)report.owd_ns_p50;
                return report.owd_ns_p50 != INT64_MIN;
            }
        }
    }
    return false;
}

void check_delays(struct world *w)
{
    struct check *c = w->check;

    for (int i = 0; i < 32; i++) {
        const struct check_flow *f = &c->flows[prng_below(&c->random, CHECK_FLOWS)];
        double says = 0;
        const double truth = f->key != 0 ? true_median(f, w->now) : NAN;
        if (isnan(truth) || !reported(w, f, &says)) {
            continue;
        }
        for (int k = 0; k < c->window_count; k++) {
            if (w->now >= c->windows[k].from + LOOK_NS && w->now <= c->windows[k].until) {
                tally_add(&c->windows[k].owd, fabs(says - truth));
            }
        }
    }
}
