/* network_traffic.c: the scenario's cross traffic as streams of bursts at each port. */
#include "sim/network.h"

#define MESSAGE_BYTES 65536.0 /* all-to-all and plain flows are cut into messages of this size */

static bool aims_at(const struct network *n, const struct scenario_target *t, int nic)
{
    const int host = nic / n->fabric->nics_per_host;

    switch (t->kind) {
    case TARGET_HOSTS:
        return t->share > 0
                   ? (double)(hash_u64(n->seed ^ 0x7466, (uint64_t)host) >> 11) * 0x1p-53 < t->share
                   : host >= t->first && host <= t->last;
    case TARGET_NIC:
        return nic == t->from.host * n->fabric->nics_per_host + t->from.nic;
    case TARGET_LEAF:
        return network_leaf(n, (uint32_t)nic) == t->first;
    default:
        return true;
    }
}

static void to_nic(struct network *n, const struct scenario_traffic *t, int nic, double now)
{
    const double link = n->fabric->link_mbps;

    switch (t->kind) {
    case TRAFFIC_FLOW:
    case TRAFFIC_ALL_TO_ALL:
        port_add(&n->down[nic], now, t->load, MESSAGE_BYTES, link);
        break;
    case TRAFFIC_INCAST:
        port_add(&n->down[nic], now, t->load, (double)t->burst_bytes * t->fan, link * t->fan);
        break;
    case TRAFFIC_STANDING:
        n->down[nic].standing += (double)t->queue_bytes;
        break;
    }
}

/* Between leaves the same bytes come one by one, spread by ECMP over all trunks: bursts at link rate, which overlap by chance. */
static void to_trunk(struct network *n, const struct scenario_traffic *t, struct port *port,
                     double share, double now)
{
    const double rate = n->fabric->link_mbps;
    const double load = t->load * share;

    if (t->kind == TRAFFIC_STANDING) {
        return;
    }
    port_add(port, now, load < 0.97 ? load : 0.97,
             t->kind == TRAFFIC_INCAST ? (double)t->burst_bytes : MESSAGE_BYTES, rate);
}

static void add_traffic(struct network *n, const struct scenario_traffic *t, double now)
{
    const int per_leaf = n->nics / n->leaves > 0 ? n->nics / n->leaves : 1;
    int aimed[1024] = {0}, all = 0;

    for (int nic = 0; nic < n->nics; nic++) {
        if (aims_at(n, &t->to, nic)) {
            to_nic(n, t, nic, now);
            aimed[network_leaf(n, (uint32_t)nic) % 1024]++;
            all++;
        }
    }
    /* the traffic that leaves and enters each leaf: all but the part that stays on it */
    const double crossing = n->leaves > 1 ? 1.0 - 1.0 / n->leaves : 0;
    const double ratio =
        n->fabric->link_mbps / (scenario_trunk_mbps(n->fabric) * n->spines) * crossing;
    for (int leaf = 0; leaf < n->leaves && n->leaves > 1; leaf++) {
        const double in = ratio * aimed[leaf % 1024];
        const double out = ratio * (double)all / n->leaves;
        for (int spine = 0; spine < n->spines; spine++) {
            to_trunk(n, t, &n->across[spine * n->leaves + leaf], in, now);
            to_trunk(n, t, &n->up[leaf * n->spines + spine], out < per_leaf ? out : per_leaf, now);
        }
    }
}

void network_traffic(struct network *n, int64_t now)
{
    const struct scenario *s = n->scenario;

    if (n->fabric->network != NETWORK_FABRIC) {
        return;
    }
    for (int i = 0; i < n->nics; i++) {
        port_clear(&n->down[i]);
    }
    for (int i = 0; i < n->leaves * n->spines; i++) {
        port_clear(&n->up[i]);
        port_clear(&n->across[i]);
    }
    for (int i = 0; i < s->traffic_count; i++) {
        if (s->traffic[i].start_ns <= now && now < s->traffic[i].end_ns) {
            add_traffic(n, &s->traffic[i], (double)now);
        }
    }
}
