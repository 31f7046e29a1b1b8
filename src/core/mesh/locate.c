/* locate.c: what bad paths share.
 *
 * A path is a chain of boxes (own NIC, routers, the peer's NIC) and of segments between them. A
 * segment that a good path crosses is innocent. Of those left, the traces made when the path died
 * decide: what answers is still reached, so the first segment behind the last answer is the
 * suspect; without traces, the segment that explains most bad paths. When all ways into a router
 * are bad, and there are several, the router itself is. What can't be told apart is said to be a
 * guess.
 *
 * Routers are one box by their name in the fleet's list; without names by address, and then a
 * router that answers with several addresses looks like several. */
#include <string.h>

#include "core/mesh/internal.h"

#define CHAIN_MAX    (MESH_HOP_MAX + 2)
#define TRACE_ONE_NS NS_PER_S /* traces so close in time are of one fault */

struct box {
    uint64_t key;
    struct place place;
};
struct chain {
    struct box boxes[CHAIN_MAX];
    uint32_t count; /* 0: hops unknown */
};
struct tally {
    uint32_t good, bad, bad_edges;
};

static struct box nic_box(struct nic_id nic)
{
    return (struct box){hash_u64(1, nic.index), {.kind = PLACE_NIC, .number = nic.index}};
}

static struct box router_box(const struct router *r)
{
    struct box box = {r->number != UINT32_MAX ? hash_u64(hash_u64(2, r->place), r->number)
                                              : hash_u64(3, r->hash),
                      {.kind = r->place, .number = r->number}};

    memcpy(box.place.address, r->address, sizeof box.place.address);
    return box;
}

/* The boxes of own path p. What comes in on path p is taken to go the same way: with named routers
 * both ends sort their paths alike (discovery.c), and a silent router in between makes the chain
 * unusable either way. */
static void chain_of(const struct mesh *m, const struct mesh_edge *e, uint8_t p, struct chain *ret)
{
    const struct path_out *out = &e->out[p];

    ret->count = 0;
    if (out->hop_count == 0 || p >= e->path_count) {
        return;
    }
    ret->boxes[ret->count++] = nic_box(m->nics[e->local].id);
    for (uint32_t hop = 0; hop < out->hop_count; hop++) {
        if (out->hops[hop] == 0) {
            ret->count = 0;
            return;
        }
        ret->boxes[ret->count++] = router_box(&m->routers[out->hops[hop] - 1]);
    }
    ret->boxes[ret->count++] = nic_box(e->nic);
}

/* What is asked: which direction, and whether of death, of loss or of delay. */
struct view {
    bool out, loss, slow;
};

static const struct path_half *half_of(const struct mesh_edge *e, uint8_t p, struct view view)
{
    return view.out ? &e->out[p].half : &e->in[p].half;
}

static bool is_bad(const struct mesh_edge *e, uint8_t p, struct view view)
{
    const struct path_half *half = half_of(e, p, view);
    const uint32_t lost = half->lost_now + half->lost_before,
                   sent = half->sent_now + half->sent_before;

    if (view.slow) { /* windows fill one after the other: what is away already is as bad */
        return half->watch.slow || half->watch.away;
    }
    if (view.loss) { /* tests reach their limits one after the other: what loses alike is bad alike
                      */
        return half->state == PATH_LOSSY ||
               (half->state == PATH_ALIVE && lost >= 3 && lost * 100 >= sent);
    }
    return half->state == PATH_DEAD || half->state == PATH_LOSSY || half->state == PATH_SUSPECT;
}

static bool is_good(const struct mesh_edge *e, uint8_t p, struct view view)
{
    const struct path_half *half = half_of(e, p, view);
    const uint32_t lost = half->lost_now + half->lost_before,
                   sent = half->sent_now + half->sent_before;

    if (view.slow && (half->watch.slow || half->watch.away || half->watch.learned < SLOW_BASE)) {
        return false;
    }
    return half->state == PATH_ALIVE && (!view.loss || (sent >= 100 && lost * 200 <= sent));
}

/* Whether the chain crosses the segment a - b, either way round; b 0: whether it meets box a. */
static bool crosses(const struct chain *chain, uint64_t a, uint64_t b)
{
    for (uint32_t i = 0; i < chain->count; i++) {
        if (chain->boxes[i].key == a && (b == 0 || (i > 0 && chain->boxes[i - 1].key == b) ||
                                         (i + 1 < chain->count && chain->boxes[i + 1].key == b))) {
            return true;
        }
    }
    return false;
}

static struct tally tally_segment(const struct mesh *m, uint64_t a, uint64_t b, struct view view)
{
    struct tally t = {0, 0, 0};
    struct chain chain;

    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        uint32_t bad = 0;

        for (uint8_t p = 0; e->used && !e->silent && p < e->path_count; p++) {
            chain_of(m, e, p, &chain);
            if (chain.count > 0 && crosses(&chain, a, b)) {
                t.good += is_good(e, p, view);
                bad += is_bad(e, p, view);
            }
        }
        t.bad += bad;
        t.bad_edges += bad > 0;
    }
    return t;
}

/* Ways into box `at` that bad paths take. */
static uint32_t bad_ways_into(const struct mesh *m, uint64_t at, struct view view)
{
    uint64_t ways[16];
    uint32_t count = 0;
    struct chain chain;

    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && !e->silent && p < e->path_count; p++) {
            bool fresh = is_bad(e, p, view);

            chain_of(m, e, p, &chain);
            for (uint32_t i = 1; i < chain.count && fresh; i++) {
                const uint64_t before = chain.boxes[i - 1].key;
                bool known = false;

                if (chain.boxes[i].key != at) {
                    continue;
                }
                for (uint32_t k = 0; k < count; k++) {
                    known = known || ways[k] == before;
                }
                if (!known && count < 16) {
                    ways[count++] = before;
                }
                fresh = false;
            }
        }
    }
    return count;
}

static void set_box(struct mesh_location *where, const struct box *box, uint32_t direction)
{
    where->suspect.kind = element_at(&box->place).kind;
    where->suspect.direction = direction;
    where->suspect.a = box->place;
    where->key = hash_u64(10, box->key);
}

/* forward: the packets that are bad went from a to b. */
static void set_segment(struct mesh_location *where, const struct box *a, const struct box *b,
                        bool forward)
{
    /* a NIC's cable is said as the NIC; a trunk from the leaf upwards, whichever way the packet
     * went */
    const bool swap =
        a->place.kind == PLACE_SPINE || (a->place.kind == b->place.kind && a->key > b->key);

    if (a->place.kind == PLACE_NIC || b->place.kind == PLACE_NIC) {
        const bool sends = (a->place.kind == PLACE_NIC) == forward;
        set_box(where, a->place.kind == PLACE_NIC ? a : b, sends ? DIRECTION_OUT : DIRECTION_IN);
        return;
    }
    where->suspect.kind = ELEMENT_TRUNK;
    where->suspect.direction = swap != forward ? DIRECTION_OUT : DIRECTION_IN;
    where->suspect.a = swap ? b->place : a->place;
    where->suspect.b = swap ? a->place : b->place;
    /* addresses differ by the side that was asked from; a name says enough */
    if (a->place.number != UINT32_MAX && b->place.number != UINT32_MAX) {
        memset(where->suspect.a.address, 0, 16);
        memset(where->suspect.b.address, 0, 16);
    }
    where->key =
        hash_u64(11, a->key < b->key ? hash_u64(a->key, b->key) : hash_u64(b->key, a->key));
}

/* Without hop lists only NICs can be told apart. */
static void locate_by_ends(const struct mesh *m, const struct mesh_edge *bad, struct view view,
                           struct mesh_location *where)
{
    struct tally own = {0, 0, 0}, peer = {0, 0, 0};

    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        const uint8_t count = view.out ? e->path_count : e->peer_path_count;

        for (uint8_t p = 0; e->used && !e->silent && p < count && p < EDGE_PATH_MAX; p++) {
            own.good += e->local == bad->local && is_good(e, p, view);
            own.bad += e->local == bad->local && is_bad(e, p, view);
            peer.good += nic_id_equal(e->nic, bad->nic) && is_good(e, p, view);
            peer.bad += nic_id_equal(e->nic, bad->nic) && is_bad(e, p, view);
        }
    }
    where->paths = own.bad;
    where->edges = 1;
    if (own.good == 0 && own.bad > peer.bad) {
        const struct box box = nic_box(m->nics[bad->local].id);
        set_box(where, &box, view.out ? DIRECTION_OUT : DIRECTION_IN);
        where->confident = true;
    } else if (peer.good == 0 && own.good > 0) {
        const struct box box = nic_box(bad->nic);
        set_box(where, &box, view.out ? DIRECTION_IN : DIRECTION_OUT);
        where->paths = peer.bad;
        where->confident = true;
    }
}

static void rule_out(const struct mesh *m, const struct mesh_edge *bad, struct view view,
                     struct mesh_location *where)
{
    const struct nic *nic = &m->nics[bad->local];

    where->rules_out |= nic->carrier_known && nic->carrier ? RULES_OUT_OWN_LINK : 0;
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && !e->silent && p < EDGE_PATH_MAX; p++) {
            if (!is_good(e, p, view)) {
                continue;
            }
            where->rules_out |= RULES_OUT_OWN_HOST;
            where->rules_out |= e->local == bad->local ? RULES_OUT_OWN_NIC : 0;
            where->rules_out |= host_id_equal(e->host, bad->host) ? RULES_OUT_PEER_HOST : 0;
            where->rules_out |= nic_id_equal(e->nic, bad->nic) ? RULES_OUT_PEER_NIC : 0;
        }
    }
}

static bool is_traced(const struct path_out *path, struct view view)
{
    return view.out && !view.loss && !view.slow && path->trace_rounds > 0;
}

/* The last hop of that path that answered since it was traced; -1: none. */
static int last_answer(const struct path_out *path, uint32_t hop_count)
{
    int answered = -1;

    for (uint32_t hop = 0; path->trace_rounds > 0 && hop < hop_count; hop++) {
        answered = (path->trace_answered & (1u << hop)) != 0 ? (int)hop : answered;
    }
    return answered;
}

/* Some packet of ours crossed a -> b and was answered behind it, since the moment the path was
 * traced. Routers limit how often they answer, so an answer on any path counts, and a missing one
 * says little. */
static bool crossed_lately(const struct mesh *m, const struct path_out *path, uint64_t a,
                           uint64_t b)
{
    struct chain chain;

    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            const struct path_out *other = &e->out[p];
            const int64_t apart = mono_sub(other->traced, path->traced).ns;
            const int answered = last_answer(other, other->hop_count);

            if (answered < 0 || apart > TRACE_ONE_NS || apart < -TRACE_ONE_NS) {
                continue;
            }
            chain_of(m, e, p, &chain);
            for (int i = 0; i + 1 < (int)chain.count && i <= answered; i++) {
                if (chain.boxes[i].key == a && chain.boxes[i + 1].key == b) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* The suspect among the chain's segments: index of its first box; -1 none. Sure is only what is
 * left alone; of several the first behind the last answer is the likeliest, or what explains most.
 */
static int choose_segment(const struct mesh *m, const struct path_out *path,
                          const struct chain *chain, struct view view, struct mesh_location *where)
{
    const bool traced = is_traced(path, view);
    int best = -1;
    uint32_t suspects = 0;
    struct tally most = {0, 0, 0};

    for (int i = 0; i + 1 < (int)chain->count; i++) {
        const uint64_t a = chain->boxes[i].key, b = chain->boxes[i + 1].key;
        const struct tally t = tally_segment(m, a, b, view);

        if (t.good > 0 || (traced && crossed_lately(m, path, a, b))) {
            continue;
        }
        suspects++;
        if (best < 0 || (!traced && t.bad > most.bad)) {
            best = i;
            most = t;
        }
    }
    where->paths = most.bad;
    where->edges = most.bad_edges;
    where->confident = suspects == 1;
    return best;
}

void mesh_locate(const struct mesh *m, int edge, uint8_t path, enum finding_direction direction,
                 struct mesh_location *ret_location)
{
    const struct mesh_edge *e = &m->edges[edge];
    struct view view = {.out = direction == DIRECTION_OUT};
    struct chain chain;
    int segment;

    memset(ret_location, 0, sizeof *ret_location);
    view.loss = half_of(e, path, view)->state == PATH_LOSSY;
    view.slow = !view.loss && half_of(e, path, view)->state != PATH_DEAD &&
                half_of(e, path, view)->watch.slow;
    rule_out(m, e, view, ret_location);
    chain_of(m, e, path, &chain);
    if (chain.count == 0) {
        locate_by_ends(m, e, view, ret_location);
        return;
    }
    segment = choose_segment(m, &e->out[path], &chain, view, ret_location);
    if (segment <
        0) { /* a good path crosses each segment: only this one of several flows is hurt */
        return;
    }
    const struct box *a = &chain.boxes[segment], *b = &chain.boxes[segment + 1];
    const struct tally into = tally_segment(m, b->key, 0, view);
    const bool router = b->place.kind != PLACE_NIC;

    if (router && into.good == 0 && bad_ways_into(m, b->key, view) > 1) {
        set_box(ret_location, b, DIRECTION_NONE);
        ret_location->paths = into.bad;
        ret_location->edges = into.bad_edges;
    } else if (router && !ret_location->confident && !is_traced(&e->out[path], view) &&
               into.good == 0) {
        set_box(ret_location, b,
                DIRECTION_NONE); /* it, or a trunk of it: from here they look alike */
    } else {
        set_segment(ret_location, a, b, view.out);
    }
    ret_location->confident = ret_location->confident && view.out;
}
