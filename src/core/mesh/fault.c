/* fault.c: faults that own packets show all the time, without a dead path: outages, gray loss, holes for a packet size, slow
 * links. Each kind has an inference of its own. Each fault is reported with its beginning, its name and its end. */
#include <string.h>

#include "core/mesh/suspect.h"

#define FULL_NUMBER      0x80000000u      /* faults that full packets show */
#define NARROW_NUMBER    0x40000000u      /* faults that outgoing pairs show */
#define NARROW_IN_NUMBER 0xc0000000u      /* faults that incoming pairs show */
#define LEAVES_NS        (10 * NS_PER_MS) /* a packet leaves at most so long after it was built */

static void tell_fate(struct mesh *m, struct locate *l, uint64_t *told, int edge, uint8_t path,
                      struct evidence_view view, struct mono sent, bool lost)
{
    const struct mesh_edge *e = &m->edges[edge];
    const struct path_out *out = &e->out[path];
    const uint32_t number = evidence_number(m, edge, path);
    const uint64_t routed = hash_u64(hash_u64(13, e->generation), out->signature);

    if (out->signature == 0 || path >= e->path_count || !discovery_way_holds(out)) {
        return; /* its elements are unknown */
    }
    if (*told != routed) {
        struct way_chain chain;

        evidence_chain(m, e, path, view.out, &chain);
        if (chain.count == 0) {
            return;
        }
        const struct locate_route route = evidence_route(m, e, &chain, chain.count - 1, view);
        locate_path_set(l, number, &route);
        *told = routed;
    }
    locate_on_trial(l, number, sent, lost);
}

void mesh_tell_trial(struct mesh *m, int edge, uint8_t path, struct mono sent, bool lost)
{
    const struct evidence_view out = {.out = true};

    tell_fate(m, m->trials, &m->edges[edge].out[path].routed, edge, path, out, sent, lost);
}

void mesh_tell_full(struct mesh *m, int edge, uint8_t path, struct mono sent, bool lost)
{
    const struct evidence_view out = {.out = true};

    tell_fate(m, m->fulls, &m->edges[edge].out[path].full_routed, edge, path, out, sent, lost);
}

void mesh_tell_pair(struct mesh *m, int edge, uint8_t path, bool out, struct mono sent, bool wide)
{
    struct mesh_edge *e = &m->edges[edge];
    struct path_half *half = path_half_of(e, path, out);
    const struct evidence_view view = {.out = out};

    tell_fate(m, m->pairs[out ? 0 : 1], &half->spread_routed, edge, path, view, sent, wide);
}

/* Finds one path of the case, and counts the NIC pairs with such paths. False: a full queue dropped the packets, which is no
 * fault. */
static bool case_path(const struct mesh *m, struct mono now, const struct locate_case *c,
                      struct mesh_fault *ret)
{
    const struct locate *l = ret->full_size ? m->fulls : m->trials;
    uint32_t queued = 0, paths = 0;
    struct class_sums classes = {{0}, {0}};

    ret->edge = -1;
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        bool any = false;

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            const uint64_t routed = ret->full_size ? e->out[p].full_routed : e->out[p].routed;
            if (routed == 0 || !locate_explains(l, c, evidence_number(m, edge, p))) {
                continue;
            }
            if (ret->edge < 0) {
                ret->edge = edge;
                ret->path = p;
            }
            any = true;
            paths++;
            queued += hear_queue_drops(m, now, e, &e->out[p]);
            trial_classes(&e->out[p], now, &classes);
        }
        ret->where.edges += any;
    }
    ret->job_class = !ret->full_size && trial_is_job_class(&classes);
    return ret->edge >= 0 && (ret->hole || 2 * queued <= paths);
}

/* The same for a narrow link, and the gap of its paths' pairs. If the paths lead to several hosts, the gap is that on which all
 * agree, because one of the hosts may have a gap of its own. */
static bool narrow_path(const struct mesh *m, const struct locate_case *c,
                        struct evidence_view view, struct mesh_fault *ret)
{
    const struct gaps *g = &m->gaps[view.out ? 0 : 1];
    double usual = 0;
    uint32_t count = 0, host = 0;

    ret->edge = -1;
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];
        bool any = false;

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            const struct path_half *half = evidence_half(e, p, view);

            if (half->spread_routed == 0 ||
                !locate_explains(m->pairs[view.out ? 0 : 1], c, evidence_number(m, edge, p))) {
                continue;
            }
            if (ret->edge < 0) {
                ret->edge = edge;
                ret->path = p;
                host = e->host.index;
            }
            any = true;
            host = host == e->host.index ? host : GAPS_ALL;
            if (half->spread.learned >= SPREAD_LEARN) {
                usual += half->spread.usual_ns;
                count++;
            }
        }
        ret->where.edges += any;
    }
    ret->apart_ns = (int64_t)gaps_of(g, host);
    ret->usual_ns = count > 0 ? (int64_t)(usual / count) : 0;
    return ret->edge >= 0;
}

static bool own_carrier_moved(const struct mesh *m, const struct locate_case *c)
{
    for (uint32_t i = 0; i < m->config.nic_count; i++) {
        const struct nic *nic = &m->nics[i];
        if (c->elements[0].kind == ELEMENT_NIC && c->elements[0].a == nic->id.index &&
            nic->carrier_moved.ns != MONO_NEVER.ns && nic->carrier_moved.ns >= c->began_low.ns) {
            return true; /* the link's own verdict explains it all */
        }
    }
    return false;
}

/* If the queue is full, an end replaces the last beginning, because an end is reported only once. */
static void fault_add(struct mesh *m, const struct mesh_fault *f)
{
    uint32_t at = m->fault_count;

    if (at < FAULT_QUEUE) {
        m->fault_count++;
    } else {
        do {
            if (!f->ended || at == 0) {
                return;
            }
            at--;
        } while (m->faults[(m->fault_head + at) % FAULT_QUEUE].ended);
    }
    m->faults[(m->fault_head + at) % FAULT_QUEUE] = *f;
}

/* Reports an end although no own path takes that way any more: whoever got the beginning waits for it. */
static void fault_end(struct mesh *m, const struct mesh_fault *f)
{
    if (f->ended) {
        struct mesh_fault end = *f;

        end.edge = -1;
        end.hole = false; /* a hole is reported once, with its beginning */
        fault_add(m, &end);
    }
}

/* A packet counts with the time when it was built. */
static struct mesh_length length_of(struct outage o)
{
    if (o.began_low.ns == MONO_NEVER.ns || o.began_low.ns >= o.began_high.ns ||
        o.ended_high.ns == MONO_NEVER.ns || o.ended_low.ns >= o.ended_high.ns) {
        return (struct mesh_length){{0}, {0}}; /* its beginning or its end isn't known */
    }
    const int64_t least = mono_sub(o.ended_low, o.began_high).ns - LEAVES_NS;

    return (struct mesh_length){.least = span_ns(least > 0 ? least : 0),
                                .most =
                                    span_ns(mono_sub(o.ended_high, o.began_low).ns + LEAVES_NS)};
}

/* The report of a case of any kind. */
static struct mesh_fault fault_of(const struct locate_case *c, uint32_t kind, bool out)
{
    const bool ended = c->state == LOCATE_ENDED;

    return (struct mesh_fault){.number = c->serial | kind,
                               .direction = out ? DIRECTION_OUT : DIRECTION_IN,
                               .named = c->named.ns != MONO_NEVER.ns,
                               .ended = ended,
                               .began = c->began_high,
                               .over = ended ? c->ended_high : MONO_NEVER,
                               .length =
                                   ended ? length_of((struct outage){c->began_low, c->began_high,
                                                                     c->ended_low, c->ended_high})
                                         : (struct mesh_length){{0}, {0}},
                               .lost = c->lost,
                               .sent = c->sent};
}

/* Reports the case with its name, for one of its paths. */
static void fault_tell(struct mesh *m, const struct locate_case *c, const struct way_chain *chain,
                       struct evidence_view view, struct mesh_fault *f)
{
    suspect_set(m, &f->where, chain, c, suspect_likeliest(c, chain, false),
                f->named && suspect_is_one(c), view);
    f->where.paths = c->paths;
    fault_add(m, f);
}

/* True if a path with an unknown way lost packets then, too: the missing element may be on it. */
static bool lost_elsewhere(const struct mesh *m, const struct locate_case *c)
{
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *e = &m->edges[edge];

        for (uint8_t p = 0; e->used && p < e->path_count; p++) {
            if (trial_unplaced(&e->out[p], c)) {
                return true;
            }
        }
    }
    return false;
}

static void fault_push(struct mesh *m, struct mono now, const struct locate_case *told, bool full)
{
    const struct evidence_view view = {.out = true};
    struct locate_case own = *told, *c = &own;
    const bool parted = c->state == LOCATE_ENDED && !full &&
                        (locate_has_twin(m->trials, c) || lost_elsewhere(m, c));

    if (parted) {
        /* all that they share was gone, but none of the elements is the cause: the fabric was partitioned */
        c->named = MONO_NEVER;
    }
    struct mesh_fault f = fault_of(c, full ? FULL_NUMBER : 0, true);
    struct way_chain chain = {.count = 0};

    f.parted = parted;
    f.full_size = full;
    f.hole = c->share > EVIDENCE_SHARE_ALL && !full;
    if (full && c->share <= EVIDENCE_SHARE_ALL && !f.ended) {
        return; /* only the answers are lost */
    }
    if (!own_carrier_moved(m, c) && case_path(m, now, c, &f)) {
        evidence_chain(m, &m->edges[f.edge], f.path, true, &chain);
    }
    if (chain.count == 0) {
        fault_end(m, &f);
        return;
    }
    suspect_rule_out(m, &m->edges[f.edge], now, c->began_high, view, &f.where);
    fault_tell(m, c, &chain, view, &f);
}

/* Of its own elements, a host can only prove slow reception. Its sent packets are stamped when the NIC begins with them, so
 * stamps don't show the NIC's sending time, or before they wait behind the job in the NIC, which makes any NIC look slow. The way
 * of incoming packets is only assumed, so for those only the own NIC is reported. */
bool mesh_may_be_narrow(const struct mesh *m, const struct locate_case *c, bool out)
{
    bool own = false;

    for (uint32_t i = 0; i < m->config.nic_count; i++) {
        own =
            own || (c->elements[0].kind == ELEMENT_NIC && c->elements[0].a == m->nics[i].id.index);
    }
    return out ? !own && c->elements[0].kind != ELEMENT_HOST
               : own && c->elements[0].direction == DIRECTION_IN && suspect_is_one(c);
}

static void narrow_push(struct mesh *m, const struct locate_case *told, bool out)
{
    const struct evidence_view view = {.out = out};
    struct locate_case own = *told;
    const struct locate_case *c = &own;
    struct mesh_fault f = fault_of(c, out ? NARROW_NUMBER : NARROW_IN_NUMBER, out);
    struct way_chain chain = {.count = 0};

    own.single = false; /* its share is one of wide pairs: nothing is lost */
    f.narrow = true;
    if (mesh_may_be_narrow(m, c, out) && narrow_path(m, c, view, &f)) {
        evidence_chain(m, &m->edges[f.edge], f.path, out, &chain);
    }
    if (chain.count == 0) {
        fault_end(m, &f);
        return;
    }
    fault_tell(m, c, &chain, view, &f);
}

void mesh_faults_tick(struct mesh *m, struct mono now)
{
    struct locate_case c;

    for (uint32_t d = 0; d < 2; d++) {
        if (locate_deadline(m->pairs[d]).ns <= now.ns) {
            locate_tick(m->pairs[d], now);
            while (locate_next_change(m->pairs[d], &c)) {
                narrow_push(m, &c, d == 0);
            }
        }
    }

    if (locate_deadline(m->trials).ns <= now.ns) {
        locate_tick(m->trials, now);
        while (locate_next_change(m->trials, &c)) {
            fault_push(m, now, &c, false);
        }
    }
    if (locate_deadline(m->fulls).ns <= now.ns) {
        locate_tick(m->fulls, now);
        while (locate_next_change(m->fulls, &c)) {
            fault_push(m, now, &c, true);
        }
    }
}

bool mesh_next_fault(struct mesh *m, struct mesh_fault *ret_fault)
{
    if (m->fault_count == 0) {
        return false;
    }
    *ret_fault = m->faults[m->fault_head];
    m->fault_head = (m->fault_head + 1) % FAULT_QUEUE;
    m->fault_count--;
    return true;
}

bool mesh_outage(struct mesh *m, struct mono now, int edge, uint8_t path,
                 struct mesh_outage *ret_outage)
{
    struct outage outage;

    if (!locate_outage(m->trials, now, evidence_number(m, edge, path), &outage)) {
        return false;
    }
    *ret_outage = (struct mesh_outage){outage.began_high, outage.ended_high, length_of(outage)};
    return true;
}
