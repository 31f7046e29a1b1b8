/* traffic_plan.c: makes flows from patterns. */
#include "lab/traffic_plan.h"

#include "base/bug.h"

#include <errno.h>

struct plan {
    const struct traffic_fabric *fabric;
    const struct traffic_wish *wish;
    struct traffic_flow *flows;
    int count, capacity;
};

/* The rate that one NIC may send to other leaves, Mbit/s: its share of the leaf's uplinks. */
static double trunk_share_mbps(const struct traffic_fabric *f, int nic)
{
    int neighbours = 0;
    for (int i = 0; i < f->nic_count; i++) {
        neighbours += f->nics[i].leaf == f->nics[nic].leaf;
    }
    double share = f->spines * f->trunk_mbps / neighbours;
    return share < f->link_mbps ? share : f->link_mbps;
}

static int add(struct plan *p, int source, int sink, double mbps)
{
    for (int i = 0; i < p->wish->flows; i++) {
        if (p->count == p->capacity) {
            return -ENOSPC;
        }
        double rate = p->wish->greedy ? 0 : mbps * 1e6 / p->wish->flows;
        p->flows[p->count++] = (struct traffic_flow){source, sink, rate};
    }
    return 0;
}

/* The leaf after `leaf`; after the last one comes the first. */
static int next_leaf(const struct traffic_fabric *f, int leaf)
{
    int next = -1, lowest = leaf;
    for (int i = 0; i < f->nic_count; i++) {
        int l = f->nics[i].leaf;
        if (l > leaf && (next < 0 || l < next)) {
            next = l;
        }
        lowest = l < lowest ? l : lowest;
    }
    return next >= 0 ? next : lowest;
}

/* The NIC at place `place` of a leaf; after the last one comes the first. */
static int nic_at(const struct traffic_fabric *f, int leaf, int place)
{
    int count = 0;
    for (int i = 0; i < f->nic_count; i++) {
        count += f->nics[i].leaf == leaf;
    }
    ASSERT(count > 0); /* flows only go to leaves with NICs */
    place %= count;
    for (int i = 0; i < f->nic_count; i++) {
        if (f->nics[i].leaf == leaf && place-- == 0) {
            return i;
        }
    }
    return -1;
}

/* The NIC at the same place on the next leaf. -1: there is only one leaf, or one host. If that NIC belongs to the same host
 * (rail wiring), all NICs take the next place, so that each is taken once. */
static int counterpart(const struct traffic_fabric *f, int nic)
{
    int leaf = next_leaf(f, f->nics[nic].leaf), place = 0;
    if (leaf == f->nics[nic].leaf) {
        return -1;
    }
    for (int i = 0; i < nic; i++) {
        place += f->nics[i].leaf == f->nics[nic].leaf;
    }
    for (int k = 0; k < f->nic_count; k++) {
        int found = nic_at(f, leaf, place + k);
        if (f->nics[found].host != f->nics[nic].host) {
            return found;
        }
    }
    return -1;
}

/* The next NIC of another host on the same leaf; -1: none. */
static int neighbour(const struct traffic_fabric *f, int nic)
{
    for (int k = 1; k < f->nic_count; k++) {
        int i = (nic + k) % f->nic_count;
        /* The NIC's number is the same, so every link has exactly one such flow out and one in. */
        if (f->nics[i].leaf == f->nics[nic].leaf && f->nics[i].host != f->nics[nic].host &&
            f->nics[i].nic == f->nics[nic].nic) {
            return i;
        }
    }
    return -1;
}

static int plan_leaf(struct plan *p)
{
    const struct traffic_fabric *f = p->fabric;
    const struct traffic_wish *w = p->wish;
    for (int i = 0; i < f->nic_count; i++) {
        int beside = neighbour(f, i);
        double rate = w->load > 0 ? w->load * f->link_mbps * TRAFFIC_PAYLOAD_SHARE : w->rate_mbps;
        int r = beside < 0 ? -EINVAL : add(p, i, beside, rate);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int plan_cross(struct plan *p, bool fill)
{
    const struct traffic_fabric *f = p->fabric;
    const struct traffic_wish *w = p->wish;
    for (int i = 0; i < f->nic_count; i++) {
        int across = counterpart(f, i), beside = fill ? neighbour(f, i) : -1;
        double cross = 0;
        int r = 0;
        if (across < 0 && beside < 0) {
            return -EINVAL;
        }
        if (across >= 0) {
            cross = w->load > 0 ? w->load * trunk_share_mbps(f, i) * TRAFFIC_PAYLOAD_SHARE
                                : w->rate_mbps;
            if (fill && w->load <= 0 && beside >= 0) {
                cross /= 2;
            }
            r = add(p, i, across, cross);
        }
        double rest = w->load > 0 ? w->load * f->link_mbps * TRAFFIC_PAYLOAD_SHARE - cross
                                  : w->rate_mbps - cross;
        if (r == 0 && beside >= 0 && (rest > 0.1 || w->greedy)) {
            r = add(p, i, beside, rest);
        }
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

static int plan_all_to_all(struct plan *p)
{
    const struct traffic_fabric *f = p->fabric;
    const struct traffic_wish *w = p->wish;
    for (int i = 0; i < f->nic_count; i++) {
        int peers = 0, across = 0;
        for (int j = 0; j < f->nic_count; j++) {
            bool other = f->nics[j].host != f->nics[i].host;
            peers += other;
            across += other && f->nics[j].leaf != f->nics[i].leaf;
        }
        if (peers == 0) {
            return -EINVAL;
        }
        double rate = w->rate_mbps;
        if (w->load > 0) {
            double by_trunk = across > 0 ? trunk_share_mbps(f, i) * peers / across : f->link_mbps;
            rate = w->load * (by_trunk < f->link_mbps ? by_trunk : f->link_mbps) *
                   TRAFFIC_PAYLOAD_SHARE;
        }
        for (int j = 0; j < f->nic_count; j++) {
            if (f->nics[j].host != f->nics[i].host) {
                int r = add(p, i, j, rate / peers);
                if (r < 0) {
                    return r;
                }
            }
        }
    }
    return 0;
}

static int plan_incast(struct plan *p)
{
    const struct traffic_fabric *f = p->fabric;
    const struct traffic_wish *w = p->wish;
    int senders = 0;
    for (int i = 0; i < f->nic_count; i++) {
        senders += f->nics[i].host != f->nics[w->to].host;
    }
    double rate = w->load > 0 ? w->load * f->link_mbps * TRAFFIC_PAYLOAD_SHARE : w->rate_mbps;
    for (int i = 0; i < f->nic_count; i++) {
        if (f->nics[i].host != f->nics[w->to].host) {
            int r = add(p, i, w->to, rate / senders);
            if (r < 0) {
                return r;
            }
        }
    }
    return senders > 0 ? 0 : -EINVAL;
}

int traffic_plan(const struct traffic_fabric *fabric, const struct traffic_wish *wish,
                 struct traffic_flow *ret_flows, int capacity)
{
    struct plan p = {.fabric = fabric, .wish = wish, .flows = ret_flows, .capacity = capacity};
    int n = fabric->nic_count, r = -EINVAL;
    bool to_known = wish->to >= 0 && wish->to < n, from_known = wish->from >= 0 && wish->from < n;
    if (wish->flows < 1 || (!wish->greedy && wish->load <= 0 && wish->rate_mbps <= 0)) {
        return -EINVAL;
    }
    switch (wish->pattern) {
    case TRAFFIC_PATTERN_CROSS:
    case TRAFFIC_PATTERN_FILL:
        r = plan_cross(&p, wish->pattern == TRAFFIC_PATTERN_FILL);
        break;
    case TRAFFIC_PATTERN_LEAF:
        r = plan_leaf(&p);
        break;
    case TRAFFIC_PATTERN_ALL_TO_ALL:
        r = plan_all_to_all(&p);
        break;
    case TRAFFIC_PATTERN_INCAST:
        r = to_known ? plan_incast(&p) : -EINVAL;
        break;
    case TRAFFIC_PATTERN_ONE:
        if (to_known && from_known && wish->to != wish->from) {
            r = add(&p, wish->from, wish->to,
                    wish->load > 0 ? wish->load * fabric->link_mbps * TRAFFIC_PAYLOAD_SHARE
                                   : wish->rate_mbps);
        }
        break;
    }
    return r < 0 ? r : p.count;
}
