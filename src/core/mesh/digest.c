/* digest.c: digests, in which hosts tell each other about their own paths. So all hosts that see one fault find one name, without
 * a server.
 *
 * A digest holds observations, never verdicts: for each path, when its last packet came and how many were lost since. It is about
 * the sender's own paths only; anything else is dropped when it is read. A healthy fleet sends none. If an own path dies, or a
 * neighbour reports a new loss, rounds of digests go to all probed hosts for some seconds. They contain lost paths first, a few
 * for each way and for each peer. Then come paths that work over the same elements, because those acquit the elements. Packets a
 * second, packets a round and the memory for one host are limited, and no received digest makes a host send more than that.
 *
 * A received observation counts for TOLD_NS. It is absolute, and an older one never replaces a newer one, so a replay changes
 * nothing. */
#include <string.h>

#include "core/mesh/internal.h"

#define DIGEST_RATE  40 /* packets a second for each NIC */
#define DIGEST_DEPTH 80 /* and so many at once */
#define FIRST_NS     (80 * NS_PER_MS)
#define ROUND_NS     (250 * NS_PER_MS) /* rounds go on for a second, for hosts that missed one */
#define LATER_NS     (500 * NS_PER_MS)
#define DEATH_NS     (3 * NS_PER_S) /* so long after an own path died */
#define NEWS_NS      NS_PER_S       /* so long after a neighbour reported a loss */
#define TOLD_NS      (5 * NS_PER_S)
#define TOUCH_NS     (200 * NS_PER_MS)
#define LOST_MAX     8
/* paths in a round: lost ones first, then those whose routers answered, then working ones */
#define LOST_PATHS     12
#define ANSWERED_PATHS 16
#define ALL_PATHS      24
#define SILENT_TOLD_NS (10 * NS_PER_S)
/* The cost that another host may cause. Packets: two rounds at once. Own rounds: 3 s in 30 s, even if it reports a loss again and
 * again and takes it back in between. */
#define HEARD_DEPTH   (2 * (DIGEST_MAX + HOST_NIC_MAX))
#define NEWS_DEPTH_NS (3 * NS_PER_S)
#define NEWS_SHARE    10
#define OF_ONE        2 /* lost paths of one way or to one peer; working paths over one element */
#define ELEMENT_SLOTS 256
#define SERVED_MAX    64

uint32_t router_name(uint32_t place, uint32_t number, uint64_t hash)
{
    return (uint32_t)(number != UINT32_MAX ? hash_u64(hash_u64(2, place), number)
                                           : hash_u64(3, hash));
}

/* ---- own observations ------------------------------------------------------------------------ */

static uint8_t hop_kind(const struct router *r)
{
    return r->place == PLACE_LEAF    ? PROBE_HOP_LEAF
           : r->place == PLACE_SPINE ? PROBE_HOP_SPINE
                                     : PROBE_HOP_ROUTER;
}

static uint16_t age_ms(struct mono now, struct mono at)
{
    const int64_t ms = at.ns == MONO_NEVER.ns ? UINT16_MAX : mono_sub(now, at).ns / NS_PER_MS;

    return (uint16_t)(ms < 0 ? 0 : ms < UINT16_MAX ? ms : UINT16_MAX);
}

static bool set_hops(const struct mesh *m, const struct path_out *out, uint8_t count,
                     struct probe_observation *o)
{
    for (uint8_t i = 0; i < count; i++) {
        if (out->hops[i] == 0) {
            return false;
        }
        o->hops[i].name = m->routers[out->hops[i] - 1].name;
        o->hops[i].kind = hop_kind(&m->routers[out->hops[i] - 1]);
    }
    o->hop_count = count;
    return count > 0;
}

bool digest_seen(const struct mesh *m, struct mono now, int edge, uint8_t path,
                 struct probe_observation *ret)
{
    const struct mesh_edge *e = &m->edges[edge];
    const struct path_out *out = &e->out[path];
    const bool bad = out->half.state == PATH_DEAD; /* an overdue packet may just be late */
    const struct mono last = bad ? out->half.since : out->half.heard;

    *ret = (struct probe_observation){.to = e->nic, .path = path};
    if (!e->used || e->silent || path >= e->path_count || last.ns == MONO_NEVER.ns ||
        (!bad && out->half.state != PATH_ALIVE) ||
        (bad ? discovery_way_astray(out) : !discovery_way_holds(out)) ||
        !set_hops(m, out, out->hop_count, ret)) {
        return false;
    }
    ret->age_ms = age_ms(now, last);
    if (bad) {
        const int64_t lost = mono_sub(now, last).ns / TOUCH_NS;
        ret->lost = (uint8_t)(lost < 1 ? 1 : lost < LOST_MAX ? lost : LOST_MAX);
    }
    return true;
}

/* The last router of a dead path that answered a packet which was sent after the death. */
static bool seen_answer(const struct mesh *m, struct mono now, int edge, uint8_t path,
                        struct probe_observation *ret)
{
    const struct mesh_edge *e = &m->edges[edge];
    const struct path_out *out = &e->out[path];
    const int last = trace_reached(out, now);

    *ret = (struct probe_observation){.to = e->nic, .path = path, .answered = true};
    if (last < 0 || !set_hops(m, out, (uint8_t)(last + 1), ret)) {
        return false;
    }
    ret->age_ms = age_ms(now, out->trace_began);
    return true;
}

/* ---- the selection --------------------------------------------------------------------------- */

struct element_count {
    uint64_t key; /* 0: free */
    uint8_t count;
};
struct round {
    struct element_count ways[ELEMENT_SLOTS], elements[ELEMENT_SLOTS];
    struct {
        struct probe_observation seen;
        uint32_t local;
    } list[ALL_PATHS];
    uint32_t count;
};

/* NULL: no room, or it isn't in the list and must not be added. */
static struct element_count *count_of(struct element_count *list, uint64_t key, bool add)
{
    for (uint32_t i = 0; i < 16; i++) {
        struct element_count *c = &list[(key + i) % ELEMENT_SLOTS];

        if (c->key == key) {
            return c;
        }
        if (c->key == 0) {
            c->key = add ? key : 0;
            return add ? c : NULL;
        }
    }
    return NULL;
}

/* The elements of a path: NICs with direction, routers, trunks with direction. */
static uint32_t elements_of(struct nic_id from, const struct probe_observation *o,
                            uint64_t ret[static 2 + 2 * PATH_HOP_MAX])
{
    uint32_t count = 0;

    ret[count++] = hash_u64(20, from.index) | 1;
    ret[count++] = hash_u64(21, o->to.index) | 1;
    for (uint32_t i = 0; i < o->hop_count; i++) {
        ret[count++] = hash_u64(22, o->hops[i].name) | 1;
        if (i > 0) {
            ret[count++] = hash_u64(hash_u64(23, o->hops[i - 1].name), o->hops[i].name) | 1;
        }
    }
    return count;
}

static void want(struct round *r, struct nic_id from, const struct probe_observation *o)
{
    uint64_t keys[2 + 2 * PATH_HOP_MAX];
    const uint32_t count = elements_of(from, o, keys);

    for (uint32_t i = 0; i < count; i++) {
        (void)count_of(r->elements, keys[i], true);
    }
}

/* True if the path crosses an element of a lost path for which too few working paths are in the round yet. */
static bool acquits(struct round *r, struct nic_id from, const struct probe_observation *o)
{
    uint64_t keys[2 + 2 * PATH_HOP_MAX];
    const uint32_t count = elements_of(from, o, keys);
    bool any = false;

    for (uint32_t i = 0; i < count; i++) {
        const struct element_count *c = count_of(r->elements, keys[i], false);
        any = any || (c && c->count < OF_ONE);
    }
    for (uint32_t i = 0; i < count && any; i++) {
        struct element_count *c = count_of(r->elements, keys[i], false);
        if (c && c->count < OF_ONE) {
            c->count++;
        }
    }
    return any;
}

static bool first_of(struct element_count *list, uint64_t key)
{
    struct element_count *c = count_of(list, key | 1, true);

    return c && c->count++ < OF_ONE;
}

static void add(struct round *r, uint32_t local, const struct probe_observation *o)
{
    ASSERT(r->count < ALL_PATHS); /* the caller has checked the room */
    r->list[r->count].seen = *o;
    r->list[r->count++].local = local;
}

/* Any element on the ways to a silent peer may hide it. */
static void want_silent(const struct mesh *m, int edge, struct round *r)
{
    const struct mesh_edge *e = &m->edges[edge];

    for (uint8_t p = 0; p < e->path_count; p++) {
        struct probe_observation o = {.to = e->nic};
        if (set_hops(m, &e->out[p], e->out[p].hop_count, &o)) {
            want(r, m->nics[e->local].id, &o);
        }
    }
}

/* Adds lost paths: a few for each way, and a few for each peer. */
static void add_lost(const struct mesh *m, struct mono now, struct round *r)
{
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        const struct nic_id from = m->nics[e->local].id;

        if (e->used && e->silent && e->heard.ns != MONO_NEVER.ns &&
            mono_sub(now, e->heard).ns < SILENT_TOLD_NS) {
            want_silent(m, edge, r);
        }
        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            struct probe_observation o;

            if (!digest_seen(m, now, edge, p, &o) || o.lost == 0) {
                continue;
            }
            want(r, from, &o);
            const bool way = first_of(r->ways, hash_u64(e->out[p].signature, from.index)),
                       peer = first_of(r->ways, hash_u64(hash_u64(24, from.index), o.to.index));
            if ((way || peer) && r->count < LOST_PATHS) {
                add(r, e->local, &o);
            }
        }
    }
}

/* Adds answers of routers: one for each way is enough. */
static void add_answers(const struct mesh *m, struct mono now, struct round *r)
{
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && !e->silent && p < e->path_count; p++) {
            struct probe_observation o;

            if (e->out[p].half.state == PATH_DEAD && r->count < ANSWERED_PATHS &&
                seen_answer(m, now, edge, p, &o) &&
                first_of(r->ways, hash_u64(hash_u64(25, e->out[p].signature), o.hop_count))) {
                add(r, e->local, &o);
            }
        }
    }
}

static void want_told(const struct mesh *m, struct mono now, struct round *r)
{
    for (uint32_t i = 0; i < m->told_top; i++) {
        const struct told_path *t = digest_told(m, now, i);
        struct probe_observation o = {.hop_count = t ? t->hop_count : 0};

        if (!t || t->lost == 0) {
            continue;
        }
        o.to = t->to;
        for (uint32_t k = 0; k < t->hop_count; k++) {
            o.hops[k].name = m->routers[t->hops[k] - 1].name;
        }
        want(r, t->from, &o);
    }
}

static void add_clean(const struct mesh *m, struct mono now, struct round *r)
{
    for (int edge = 0; edge < m->edge_capacity && r->count < ALL_PATHS; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && p < e->path_count && r->count < ALL_PATHS; p++) {
            struct probe_observation o;

            if (digest_seen(m, now, edge, p, &o) && o.lost == 0 &&
                acquits(r, m->nics[e->local].id, &o)) {
                add(r, e->local, &o);
            }
        }
    }
}

/* Distributes the selection over packets. Each packet has the paths of one NIC. */
static void pack(struct mesh *m, const struct round *r)
{
    struct digests *d = &m->digests;

    d->count = 0;
    for (uint32_t local = 0; local < m->config.nic_count; local++) {
        struct probe_digest *packet = NULL;

        for (uint32_t i = 0; i < r->count; i++) {
            if (r->list[i].local != local ||
                (packet && probe_digest_put(packet, &r->list[i].seen))) {
                continue;
            }
            if (d->count == DIGEST_MAX) {
                return;
            }
            packet = &d->packets[d->count++];
            *packet = (struct probe_digest){.from = m->nics[local].id};
            ASSERT(probe_digest_put(packet, &r->list[i].seen));
        }
    }
}

/* ---- rounds --------------------------------------------------------------------------------- */

static bool credit(struct mesh *m, struct mono now, uint32_t packets)
{
    struct digests *d = &m->digests;
    const int64_t age = mono_sub(now, d->credit_at).ns,
                  most = (int64_t)m->config.nic_count * DIGEST_DEPTH * NS_PER_S;

    d->credit += (age < 0              ? 0
                  : age < 4 * NS_PER_S ? age
                                       : 4 * NS_PER_S) *
                 DIGEST_RATE * (int64_t)m->config.nic_count;
    d->credit = d->credit < most ? d->credit : most;
    d->credit_at = now;
    if (d->credit < packets * NS_PER_S) {
        return false;
    }
    d->credit -= packets * NS_PER_S;
    return true;
}

static bool may_send(const struct mesh *m, const struct mesh_edge *e)
{
    const struct nic *nic = &m->nics[e->local];
    bool alive = false;

    for (uint8_t p = 0; e->used && p < e->path_count; p++) {
        alive = alive || e->out[p].half.state == PATH_ALIVE;
    }
    /* a silent peer may still hear: it learns what others see of its ways */
    return (alive || e->silent) && e->fresh && e->version >= PROBE_VERSION_DIGEST &&
           (!nic->carrier_known || nic->carrier);
}

/* The peer can't trace the paths that come to it. For each own NIC it gets the ways that don't arrive. */
void digest_to_peer(const struct mesh *m, struct mono now, int edge, struct probe_digest *ret)
{
    const struct mesh_edge *to = &m->edges[edge];

    *ret = (struct probe_digest){.from = m->nics[to->local].id};
    for (int i = 0; i < m->edge_capacity; i++) {
        const struct mesh_edge *e = &m->edges[i];

        for (uint8_t p = 0; e->used && e->local == to->local && host_id_equal(e->host, to->host) &&
                            p < e->path_count;
             p++) {
            struct probe_observation o;
            if (digest_seen(m, now, i, p, &o) && o.lost > 0 && !probe_digest_put(ret, &o)) {
                return;
            }
        }
    }
}

/* A working path, another one in each round of probes; if there is none, any path. */
static uint8_t path_for(const struct mesh_edge *e)
{
    for (uint8_t i = 0; i < e->path_count; i++) {
        const uint8_t p = (uint8_t)((e->round + i) % e->path_count);
        if (e->out[p].half.state == PATH_ALIVE) {
            return p;
        }
    }
    return (uint8_t)(e->round % e->path_count);
}

static void push(struct mesh *m, int edge, uint32_t number)
{
    const struct mesh_edge *e = &m->edges[edge];
    const uint8_t path = path_for(e);

    mesh_send_push(m, &(struct send_entry){.edge = edge,
                                           .local = e->local,
                                           .peer = e->nic,
                                           .type = PROBE_DIGEST,
                                           .path = path,
                                           .seq = number,
                                           .high = true,
                                           .port = e->out[path].half.port,
                                           .generation = e->generation});
    m->counters.digests_sent++;
}

/* Takes one edge from each own NIC to that host, if the host gets something over it. */
static void push_to_peer(struct mesh *m, struct mono now, int edge)
{
    const struct host_id host = m->edges[edge].host;
    uint32_t done = 0;

    for (int i = 0; i < m->edge_capacity; i++) {
        const struct mesh_edge *e = &m->edges[i];
        struct probe_digest digest;

        if (!e->used || !host_id_equal(e->host, host) || (done & (1u << e->local)) != 0 ||
            !may_send(m, e)) {
            continue;
        }
        done |= 1u << e->local;
        digest_to_peer(m, now, i, &digest);
        if (digest.count > 0 && credit(m, now, 1)) {
            push(m, i, DIGEST_TO_PEER);
        }
    }
}

/* Sends to each host once, as long as the credit lasts. Hosts that are left out come first in the next round. */
static void send_round(struct mesh *m, struct mono now)
{
    struct digests *d = &m->digests;
    struct host_id served[SERVED_MAX];
    uint32_t count = 0;

    for (int i = 0; i < m->edge_capacity; i++) {
        const int edge = (d->cursor + i) % m->edge_capacity;
        const struct mesh_edge *e = &m->edges[edge];
        bool again = false;

        for (uint32_t k = 0; k < count; k++) {
            again = again || host_id_equal(served[k], e->host);
        }
        if (again || !may_send(m, e)) {
            continue;
        }
        if (count == SERVED_MAX || !credit(m, now, d->count)) {
            d->cursor = edge;
            return;
        }
        served[count++] = e->host;
        push_to_peer(m, now, edge);
        for (uint32_t k = 0; k < d->count; k++) {
            push(m, edge, k);
        }
    }
    d->cursor = m->edge_capacity > 0 ? (d->cursor + 1) % m->edge_capacity : 0;
}

void digest_tick(struct mesh *m, struct mono now)
{
    struct digests *d = &m->digests;
    struct round r;

    if (d->next.ns > now.ns) {
        return;
    }
    if (d->until.ns < now.ns) {
        d->next = MONO_NEVER;
        return;
    }
    const bool first = mono_sub(now, d->news).ns < NEWS_NS;
    d->next = mono_add(now, span_ns(first ? ROUND_NS : LATER_NS));
    if (mesh_is_late(m, now)) {
        return; /* a missing packet may be this host's own fault */
    }
    memset(&r, 0, sizeof(r));
    add_lost(m, now, &r);
    add_answers(m, now, &r);
    want_told(m, now, &r);
    add_clean(m, now, &r);
    pack(m, &r);
    if (d->count > 0) {
        send_round(m, now);
    }
}

struct mono digest_due(const struct mesh *m)
{
    return m->digests.next;
}

static void alarm_for(struct mesh *m, struct mono now, int64_t ns)
{
    struct digests *d = &m->digests;
    const struct mono until = mono_add(now, span_ns(ns));

    d->news = now;
    d->until = until.ns > d->until.ns ? until : d->until;
    d->next = mono_min(d->next, mono_add(now, span_ns(FIRST_NS)));
    m->promised = mono_min(m->promised, d->next);
}

void digest_alarm(struct mesh *m, struct mono now)
{
    alarm_for(m, now, DEATH_NS);
}

/* ---- digests of other hosts ------------------------------------------------------------------ */

const struct told_path *digest_told(const struct mesh *m, struct mono now, uint32_t index)
{
    const struct told_path *t = &m->told[index];

    return t->used && mono_sub(now, t->made).ns < TOLD_NS ? t : NULL;
}

/* 1 + the router's index, if this host knows the name; 0: unknown. */
static uint16_t router_by_name(struct mesh *m, uint32_t name)
{
    for (uint32_t i = 0; i < m->router_count; i++) {
        if (m->routers[i].name == name) {
            return (uint16_t)(i + 1);
        }
    }
    for (uint32_t i = 0; i < m->config.fleet.router_count; i++) {
        const struct mesh_router *r = &m->config.fleet.routers[i];
        if (r->number != UINT32_MAX && router_name(r->place, r->number, 0) == name) {
            return (uint16_t)mesh_router(m, r->address);
        }
    }
    return 0;
}

/* The oldest path of the host that holds most places; NULL: no host holds more than `least`. */
static struct told_path *most_held(struct mesh *m, uint32_t least)
{
    static const uint32_t slots = 1024; /* more than there are paths */
    uint16_t first[1024] = {0}, count[1024] = {0};
    struct told_path *oldest = NULL;
    uint32_t most = least;

    _Static_assert(TOLD_MAX < 1024, "a free slot ends each search");
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < TOLD_MAX; i++) {
            struct told_path *t = &m->told[i];
            uint32_t at = (uint32_t)hash_u64(26, t->host.index) % slots;

            while (first[at] != 0 && !host_id_equal(m->told[first[at] - 1].host, t->host)) {
                at = (at + 1) % slots;
            }
            first[at] = first[at] != 0 ? first[at] : (uint16_t)(i + 1);
            count[at] = (uint16_t)(count[at] + (pass == 0));
            most = count[at] > most ? count[at] : most;
            if (pass == 1 && count[at] == most && most > least &&
                (!oldest || t->made.ns < oldest->made.ns)) {
                oldest = t;
            }
        }
    }
    return oldest;
}

/* A place for that path of the host: a free one, the oldest of its own share, or the oldest of the host that holds most. NULL: no
 * room. */
static struct told_path *place_for(struct mesh *m, struct mono now, struct host_id host,
                                   struct nic_id from, const struct probe_observation *o)
{
    struct told_path *spare = NULL, *oldest = NULL;
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->told_top; i++) {
        struct told_path *t = &m->told[i];

        if (!digest_told(m, now, i)) {
            spare = spare ? spare : t;
        } else if (host_id_equal(t->host, host)) {
            if (nic_id_equal(t->from, from) && nic_id_equal(t->to, o->to) && t->path == o->path &&
                t->answered == o->answered) {
                return t;
            }
            count++;
            oldest = !oldest || t->made.ns < oldest->made.ns ? t : oldest;
        }
    }
    if (!spare && m->told_top < TOLD_MAX) {
        spare = &m->told[m->told_top];
    }
    if (count >= TOLD_HOST_MAX || spare) {
        return count < TOLD_HOST_MAX ? spare : oldest;
    }
    struct told_path *other = most_held(m, count + 1);
    return other ? other : oldest;
}

/* True: it reports a loss that was not known. */
static bool keep(struct mesh *m, struct mono now, struct host_id host, struct nic_id from,
                 struct mono made, const struct probe_observation *o)
{
    const uint32_t to = fleet_find(&m->config.fleet, o->to);
    struct told_path told = {.used = true,
                             .answered = o->answered,
                             .path = o->path,
                             .lost = o->lost < LOST_MAX ? o->lost : LOST_MAX,
                             .hop_count = o->hop_count,
                             .host = host,
                             .from = from,
                             .to = o->to,
                             .made = made,
                             .heard = o->age_ms == UINT16_MAX
                                          ? MONO_NEVER
                                          : mono_add(made, span_ns(-o->age_ms * NS_PER_MS))};

    if (to == UINT32_MAX || host_id_equal(m->config.fleet.peers[to].host, host)) {
        m->counters.digests_refused++;
        return false;
    }
    told.to_host = m->config.fleet.peers[to].host;
    for (uint8_t i = 0; i < o->hop_count; i++) {
        told.hops[i] = router_by_name(m, o->hops[i].name);
        if (told.hops[i] == 0) {
            return false; /* a path with unknown elements shows nothing here */
        }
    }
    struct told_path *t = place_for(m, now, host, from, o);
    if (!t) {
        return false;
    }
    const bool taken = digest_told(m, now, (uint32_t)(t - m->told)) != NULL,
               known = taken && nic_id_equal(t->from, from) && nic_id_equal(t->to, o->to) &&
                       t->path == o->path && t->answered == o->answered;
    if (taken && t->made.ns >= made.ns && host_id_equal(t->host, host)) {
        return false;
    }
    const bool news = told.lost > 0 && (!known || t->lost == 0);
    *t = told;
    m->told_top += t == &m->told[m->told_top];
    m->told_version++;
    m->told_until = mono_add(made, span_ns(TOLD_NS)).ns > m->told_until.ns
                        ? mono_add(made, span_ns(TOLD_NS))
                        : m->told_until;
    return news;
}

/* The first edge to that host has the account of its cost. */
static struct mesh_edge *account_of(struct mesh *m, struct mono now, struct host_id host)
{
    struct mesh_edge *e = NULL;

    for (int i = 0; i < m->edge_capacity && !e; i++) {
        e = m->edges[i].used && host_id_equal(m->edges[i].host, host) ? &m->edges[i] : NULL;
    }
    ASSERT(e); /* the digest came over one */
    const int64_t passed = mono_sub(now, e->digest_at).ns, most = HEARD_DEPTH * ROUND_NS;
    const int64_t age = passed > 0 ? passed : 0; /* the host's clock may have stepped back */
    const bool known = e->digest_at.ns != 0 && age < NEWS_DEPTH_NS * NEWS_SHARE;

    e->digest_credit = known ? e->digest_credit + age * (DIGEST_MAX + HOST_NIC_MAX) : most;
    e->digest_credit = e->digest_credit < most ? e->digest_credit : most;
    e->news_credit = known ? e->news_credit + age / NEWS_SHARE : NEWS_DEPTH_NS;
    e->news_credit = e->news_credit < NEWS_DEPTH_NS ? e->news_credit : NEWS_DEPTH_NS;
    e->digest_at = now;
    return e;
}

/* Starts rounds for its news, as long as it has credit. */
static void alarm_of(struct mesh *m, struct mono now, struct mesh_edge *account)
{
    const int64_t left = m->digests.until.ns > now.ns ? mono_sub(m->digests.until, now).ns : 0,
                  cost = left < NEWS_NS ? NEWS_NS - left : 0;

    if (account->news_credit >= cost) {
        account->news_credit -= cost;
        alarm_for(m, now, NEWS_NS);
    }
}

bool mesh_on_digest(struct mesh *m, struct mono now, uint32_t local, const struct probe *probe,
                    struct mono made)
{
    const int edge = mesh_edge_find(m, local, probe->src);
    const uint32_t from = fleet_find(&m->config.fleet, probe->digest.from);
    struct probe_observation o;
    const uint32_t before = m->told_version;
    uint16_t at = 0;
    bool lost = false, news = false;

    if (!nic_id_equal(probe->dst, m->nics[local].id) || edge < 0 || !m->edges[edge].fresh ||
        from == UINT32_MAX ||
        !host_id_equal(m->config.fleet.peers[from].host, m->edges[edge].host)) {
        m->counters.digests_refused++;
        return false;
    }
    struct mesh_edge *account = account_of(m, now, m->edges[edge].host);
    if (account->digest_credit < ROUND_NS) {
        m->counters.digests_refused++;
        return false;
    }
    account->digest_credit -= ROUND_NS;
    m->counters.digests_heard++;
    for (uint32_t i = 0; i < probe->digest.count && probe_digest_next(&probe->digest, &at, &o);
         i++) {
        news = keep(m, now, m->edges[edge].host, probe->digest.from, made, &o) || news;
        lost = lost || o.lost > 0;
    }
    if (news) {
        alarm_of(m, now, account);
    }
    return lost && m->told_version != before; /* a replayed digest causes no new search */
}
