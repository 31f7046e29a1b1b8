/* node_silent.c: peers that fall silent: which end is it, and one finding for all paths that died together. */
#include <stdlib.h>

#include "core/node/internal.h"

/* paths that die together gather for so long before the finding is told */
#define GATHER_NS (60 * NS_PER_MS)

/* Packets of a pair of NICs are 200 ms apart, and another 300 ms in flight at most: paths that ended at one moment had their last
 * arrivals within that time of each other. */
#define APART_NS (500 * NS_PER_MS)
/* A peer without packets for so long is silent: it did not come back with the other. */
#define BACK_NS (2 * NS_PER_S)
/* with two trunks, all take the same one with odds of 2^20 against it: 10^6 */
#define PORTS_SURE 20

/* True if a packet arrived that left after that moment: an earlier last arrival may belong to that fault. */
static bool heard_after(const struct mesh_edge_info *info, struct mono since)
{
    return !info->silent && info->heard.ns != MONO_NEVER.ns &&
           mono_sub(info->heard, since).ns >= APART_NS;
}

/* Another NIC of that host was heard after that moment, and has been for a while, or never fell silent. A host that comes back is
 * heard on one of its NICs first. */
static bool host_lives(const struct node *n, struct mono now, struct host_id host,
                       struct mono since)
{
    for (int edge = 0; edge < mesh_edge_capacity(n->mesh); edge++) {
        struct mesh_edge_info info;
        if (mesh_edge_info(n->mesh, now, edge, &info) && host_id_equal(info.host, host) &&
            heard_after(&info, since) &&
            (mono_before(info.talks, since) || mono_sub(now, info.talks).ns >= APART_NS)) {
            return true;
        }
    }
    return false;
}

/* The probed NICs of that host; and those that are silent, or (since) were not heard since. */
static void host_edges(const struct node *n, struct mono now, struct host_id host,
                       const struct mono *since, uint32_t *ret_silent, uint32_t *ret_all)
{
    *ret_silent = *ret_all = 0;
    for (int edge = 0; edge < mesh_edge_capacity(n->mesh); edge++) {
        struct mesh_edge_info info;
        if (mesh_edge_info(n->mesh, now, edge, &info) && host_id_equal(info.host, host)) {
            (*ret_all)++;
            *ret_silent += since != NULL ? !heard_after(&info, *since) : info.silent;
        }
    }
}

void node_host_edges(const struct node *n, struct mono now, struct host_id host,
                     uint32_t *ret_silent, uint32_t *ret_all)
{
    host_edges(n, now, host, NULL, ret_silent, ret_all);
}

/* The peers that this NIC is chosen to hear, and the silent ones. */
static void local_edges(const struct node *n, struct mono now, struct nic_id local,
                        uint32_t *ret_silent, uint32_t *ret_all)
{
    *ret_silent = *ret_all = 0;
    for (int edge = 0; edge < mesh_edge_capacity(n->mesh); edge++) {
        struct mesh_edge_info info;
        if (mesh_edge_info(n->mesh, now, edge, &info) &&
            nic_id_equal(n->config.nics[info.local].nic, local)) {
            (*ret_all)++;
            *ret_silent += info.silent;
        }
    }
}

/* Another NIC of this host hears that one: it works, and so does its link. */
static bool heard_elsewhere(const struct node *n, struct mono now, struct nic_id nic,
                            struct mono since)
{
    for (int edge = 0; edge < mesh_edge_capacity(n->mesh); edge++) {
        struct mesh_edge_info info;
        if (mesh_edge_info(n->mesh, now, edge, &info) && nic_id_equal(info.nic, nic) &&
            heard_after(&info, since)) {
            return true;
        }
    }
    return false;
}

/* A packet arrived through that leaf since. */
static bool leaf_is_heard(const struct node *n, struct mono now, uint16_t leaf, struct mono since)
{
    const struct mesh_fleet *fleet = &n->config.fleet;

    for (int edge = 0; edge < mesh_edge_capacity(n->mesh) && leaf != LEAF_UNKNOWN; edge++) {
        struct mesh_edge_info info;

        if (mesh_edge_info(n->mesh, now, edge, &info) && heard_after(&info, since)) {
            const uint32_t far = fleet_find(fleet, info.nic),
                           near = fleet_find(fleet, n->config.nics[info.local].nic);
            if ((far != UINT32_MAX && fleet->peers[far].leaf == leaf) ||
                (near != UINT32_MAX && fleet->peers[near].leaf == leaf)) {
                return true;
            }
        }
    }
    return false;
}

/* The silent part lies behind its leaves. */
static bool leaves_are_heard(const struct node *n, struct mono now, struct host_id host,
                             struct mono since)
{
    const struct mesh_fleet *fleet = &n->config.fleet;

    for (uint32_t k = 0; k < fleet->peer_count; k++) {
        const struct mesh_peer *of = &fleet->peers[k];

        if (host_id_equal(of->host, host) && !leaf_is_heard(n, now, of->leaf, since)) {
            return false;
        }
    }
    return true;
}

/* Another host's NIC had its last arrival at that moment, too: they have a common cause, which is none of the two. A partitioned
 * fabric looks so from each side. A host that fell silent later doesn't count. */
static bool others_fell_silent(const struct node *n, struct mono now, struct host_id host,
                               struct nic_id local, struct mono since)
{
    for (int edge = 0; edge < mesh_edge_capacity(n->mesh); edge++) {
        struct mesh_edge_info info;

        if (mesh_edge_info(n->mesh, now, edge, &info) && !host_id_equal(info.host, host) &&
            nic_id_equal(n->config.nics[info.local].nic, local) && info.heard.ns != MONO_NEVER.ns &&
            llabs((long long)mono_sub(since, info.heard).ns) < APART_NS) {
            return true;
        }
    }
    return false;
}

/* One leaf between the two, by the fleet's list; or several ways, all of them known. */
static bool no_trunk_alone(const struct node *n, int edge, const struct mesh_edge_info *info)
{
    const uint32_t near = fleet_find(&n->config.fleet, n->config.nics[info->local].nic),
                   far = fleet_find(&n->config.fleet, info->nic);
    const uint16_t leaf =
        near != UINT32_MAX ? n->config.fleet.peers[near].leaf : (uint16_t)LEAF_UNKNOWN;

    return mesh_ways_known(n->mesh, edge) ||
           (leaf != LEAF_UNKNOWN && far != UINT32_MAX && leaf == n->config.fleet.peers[far].leaf);
}

/* True if it is not a trunk behind it that all its packets use by chance: with few ports that is likely, until their ways are
 * known. And no other host hears it, by the hosts' reports. */
static bool lies_at_its_end(const struct node *n, struct mono now, const struct finding *f,
                            bool host)
{
    uint32_t ports = 0;
    bool sure = false;

    for (int edge = 0; edge < mesh_edge_capacity(n->mesh); edge++) {
        struct mesh_edge_info info;

        if (!mesh_edge_info(n->mesh, now, edge, &info) ||
            (host ? !host_id_equal(info.host, f->from_host) : !nic_id_equal(info.nic, f->from))) {
            continue;
        }
        if (mesh_is_told_to_send(n->mesh, now, info.nic, f->since)) {
            return false;
        }
        ports += info.peer_path_count;
        sure = sure || no_trunk_alone(n, edge, &info);
    }
    return (sure || ports >= PORTS_SURE) &&
           !others_fell_silent(n, now, f->from_host, f->to, f->since);
}

/* Sets the silent element as the suspect; unsure: or another element. */
static void suspect(struct finding *f, struct element e, bool sure, enum finding_advice advice)
{
    e.direction = e.a.number == f->to.index && e.kind == ELEMENT_NIC ? DIRECTION_IN : DIRECTION_OUT;
    if (sure) {
        f->suspect = e;
    } else {
        element_choice_add(&f->choice, &e);
        f->choice.total = f->choice.count + 1;
    }
    f->advice = (uint16_t)advice;
}

static void suspect_host(const struct node *n, struct mono now, struct finding *f, uint32_t nics)
{
    const bool behind =
        leaves_are_heard(n, now, f->from_host, f->since) && lies_at_its_end(n, now, f, true);

    suspect(f, element_of(ELEMENT_HOST, PLACE_HOST, f->from_host.index), behind && nics > 1,
            ADVICE_CHECK_PEER_HOST);
    if (nics == 1) { /* and nothing else is heard of it */
        suspect(f, element_of(ELEMENT_NIC, PLACE_NIC, f->from.index), false,
                ADVICE_CHECK_PEER_HOST);
        f->choice.total -= behind;
    }
}

/* Decides whether it is this host, one NIC of the peer, or the whole peer. Each has a cause of its own, and one finding. 0: ask
 * again. */
static uint64_t silent_cause(struct node *n, struct mono now, struct open_finding *o,
                             struct finding *f, bool *ret_deaf)
{
    uint32_t silent, all, local_silent, local_all;

    host_edges(n, now, f->from_host, &f->since, &silent, &all);
    local_edges(n, now, f->to, &local_silent, &local_all);
    *ret_deaf = local_all > 1 && local_silent == local_all;
    f->suspect = element_unknown();
    f->choice = (struct element_choice){0};
    if (*ret_deaf) {
        n->deaf_at[o->local] = now;
        suspect(f, element_of(ELEMENT_NIC, PLACE_NIC, f->to.index), false, ADVICE_CHECK_OWN_HOST);
        return node_finding_key(FINDING_PEER_SILENT, 1, f->to.index, 0);
    }
    if (mono_sub(now, n->deaf_at[o->local]).ns < 3 * NS_PER_S / 2) {
        /* a moment ago this host itself was the cause: wait for its end */
        o->say = mono_add(now, span_ns(NS_PER_S));
        return 0;
    }
    if (heard_elsewhere(n, now, f->from, f->since)) { /* something between the two */
        if (node_incident_at(n, f->since)) {
            o->say = mono_add(now, span_ns(NS_PER_S)); /* and that is reported already */
            return 0;
        }
        f->rules_out = RULES_OUT_PEER_HOST | RULES_OUT_PEER_NIC | RULES_OUT_OWN_HOST |
                       (local_silent < local_all ? RULES_OUT_OWN_NIC : 0);
        return node_finding_key(FINDING_PEER_SILENT, 4, 0, 0);
    }
    if (silent < all && !host_lives(n, now, f->from_host, f->since)) {
        o->say =
            mono_add(now, span_ns(NS_PER_S)); /* it is back, and this NIC may be a moment later */
        return 0;
    }
    if (silent < all) { /* its other NICs are heard */
        suspect(f, element_of(ELEMENT_NIC, PLACE_NIC, f->from.index),
                lies_at_its_end(n, now, f, false), ADVICE_CHECK_CABLE);
        f->rules_out = RULES_OUT_PEER_HOST | RULES_OUT_OWN_HOST;
        return node_finding_key(FINDING_PEER_SILENT, 2, f->from.index, 0);
    }
    suspect_host(n, now, f, all);
    f->rules_out = local_silent < local_all ? RULES_OUT_OWN_HOST | RULES_OUT_OWN_NIC : 0;
    return node_finding_key(FINDING_PEER_SILENT, 3, f->from_host.index, 0);
}

static bool is_told(const struct node *n, const struct open_finding *o)
{
    for (uint32_t i = 0; i < n->open_count; i++) {
        const struct open_finding *other = &n->open[i];
        if (other != o && other->said && other->cause == o->cause) {
            return true;
        }
    }
    return false;
}

void node_silent_due(struct node *n, struct mono now, struct open_finding *o)
{
    bool deaf;

    o->say = MONO_NEVER;
    struct finding f = o->finding;
    const uint64_t cause = silent_cause(n, now, o, &f, &deaf);
    const bool named = f.suspect.kind != ELEMENT_UNKNOWN;
    if (cause == 0 || (o->said && !named)) {
        return;
    }
    o->cause = cause;
    o->finding = f;
    if (o->said) { /* those that fell silent with it are back */
        o->finding.phase = FINDING_UPDATED;
        node_finding_push(n, &o->finding);
        return;
    }
    if (is_told(n, o)) {
        return;
    }
    if (deaf) {
        o->finding.from = f.to; /* no peer is heard: it is about this host */
        o->finding.from_host = n->config.host;
        o->finding.to = NIC_NONE;
        o->finding.to_host = HOST_NONE;
        o->finding.direction = DIRECTION_NONE;
    }
    node_incident_note(n, &o->finding, cause);
    o->said = true;
    node_finding_push(n, &o->finding);
}

/* A peer is heard again. Hosts that fell silent with it were not named, because a common cause would have ended for all. Those
 * that are still silent are looked at again at the time when it would have ended. */
static void silent_alone(struct node *n, struct mono now)
{
    for (uint32_t i = 0; i < n->open_count; i++) {
        struct open_finding *o = &n->open[i];

        if (o->finding.kind == FINDING_PEER_SILENT && o->said &&
            o->finding.suspect.kind == ELEMENT_UNKNOWN && o->finding.choice.count > 0 &&
            o->finding.direction != DIRECTION_NONE) {
            o->say = mono_add(now, span_ns(BACK_NS));
        }
    }
}

/* The reported finding is over. If others of its cause are not, one of them is reported instead. */
static void silent_again(struct node *n, struct mono now, uint64_t cause)
{
    for (uint32_t i = 0; i < n->open_count && cause != 0; i++) {
        if (n->open[i].cause == cause && n->open[i].finding.kind == FINDING_PEER_SILENT) {
            n->open[i].say = mono_add(now, span_ns(NS_PER_S));
        }
    }
}

void node_finding_silent(struct node *n, struct mono now, const struct mesh_verdict *v)
{
    struct mesh_edge_info info;
    struct open_finding *o;

    if (!mesh_edge_info(n->mesh, now, v->edge, &info)) {
        return;
    }
    uint64_t key = node_finding_key(FINDING_PEER_SILENT, info.nic.index, 0, 0);
    if (v->kind == MESH_PEER_HEARD) {
        o = node_finding_find(n, key);
        const uint64_t cause = o && o->said ? o->cause : 0;
        node_finding_close_key(n, now, key);
        silent_again(n, now, cause);
        silent_alone(n, now);
        return;
    }
    if (node_finding_find(n, key) || info.reason == EDGE_GUEST || info.heard.ns == MONO_NEVER.ns) {
        return; /* a peer that was never heard is shown by `foliot mesh`; it is no news */
    }
    o = node_finding_open(n, key, FINDING_PEER_SILENT, v->since,
                          mono_add(now, span_ns(5 * GATHER_NS)));
    if (o) {
        o->edge = v->edge;
        o->generation = info.generation;
        o->local = info.local;
        o->finding.from = info.nic;
        o->finding.from_host = info.host;
        o->finding.to = n->config.nics[info.local].nic;
        o->finding.to_host = n->config.host;
        o->finding.direction = DIRECTION_IN;
        o->finding.numbers[0] = mono_sub(now, v->since).ns / NS_PER_MS;
    }
}
