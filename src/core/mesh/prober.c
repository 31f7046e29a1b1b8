/* prober.c: decides what is sent when, and which stamps a packet carries. */
#include <string.h>

#include "core/mesh/internal.h"

static struct span half_interval(const struct mesh *m)
{
    return span_ns(m->config.interval.ns / 2);
}

/* Uniform in +-8 % of the interval: with the departure's share it is within +-10 %. */
static struct span jitter(struct mesh *m)
{
    const int64_t most = m->config.interval.ns * 8 / 100;

    return span_ns((int64_t)prng_below(&m->prng, (uint64_t)(2 * most + 1)) - most);
}

/* Hosts' rounds stay within a frame's length of each other for ten seconds if their clocks differ by 1 ppm, and NICs of one host
 * send in one round. So the same packets would meet at a switch and wait in the same way each time, and a constant wait looks
 * like a longer cable. Therefore each round departs at a random time, and its NICs depart apart from each other, in a random
 * order. A driver without a grid begins its rounds at random times, which mesh_begin_us() gives. So its first packets needn't
 * wait. */
void prober_round(struct mesh *m)
{
    const uint32_t count = m->config.nic_count;
    const uint32_t departures = count < DEPART_MAX ? count : DEPART_MAX;
    const uint32_t apart = DEPART_US / departures;
    const uint32_t first = (uint32_t)prng_below(&m->prng, apart);
    const uint32_t wait = m->config.grid.ns == 0 ? 0 : first;
    uint32_t order[HOST_NIC_MAX];

    m->begin_us = first - wait;
    for (uint32_t i = 0; i < count; i++) { /* a shuffle, from the inside */
        const uint32_t k = (uint32_t)prng_below(&m->prng, i + 1);

        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < count; i++) {
        m->nics[order[i]].hold_us = (uint16_t)(wait + i % departures * apart);
    }
}

/* Edges are spread over the interval, so that neither the host nor a peer sends everything at once. */
static void start_rounds(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];
    const uint64_t spread = hash_u64(m->nics[e->local].id.index, e->nic.index);

    e->pair_nominal = mono_add(now, span_ns((int64_t)(spread % (uint64_t)m->config.interval.ns)));
    e->pair_next = e->pair_nominal;
    e->single_next = MONO_NEVER;
    e->full_next = mono_add(now, span_ns((int64_t)(spread % (2 * NS_PER_S))));
    mesh_due(m, edge, e->pair_next);
}

void prober_edge_again(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];

    for (uint8_t p = 0; p < e->path_count; p++) {
        e->out[p].burst_next = MONO_NEVER;
        e->out[p].burst_left = e->out[p].burst_wait = 0;
    }
    start_rounds(m, now, edge);
}

void prober_edge_start(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];

    e->path_count = (uint8_t)m->config.path_limit;
    for (uint8_t p = 0; p < e->path_count; p++) {
        e->out[p].half.port = (uint16_t)(m->config.port_base + p);
        e->out[p].seq_next = (uint32_t)prng_u64(&m->prng);
        e->out[p].trials_judged = e->out[p].seq_next - 1;
    }
    e->discover_next = now;
    start_rounds(m, now, edge);
}

/* The end with the higher id sends half an interval after the other one: it turns its phase towards that. */
void prober_hear_pair(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];
    const int64_t interval = m->config.interval.ns;

    if (m->nics[e->local].id.index < e->nic.index) {
        return;
    }
    int64_t off = (now.ns + interval / 2 - e->pair_nominal.ns) % interval;
    off = off > interval / 2 ? off - interval : off < -interval / 2 ? off + interval : off;
    e->pair_nominal = mono_add(e->pair_nominal, span_ns(off / 8));
}

static void push(struct mesh *m, int edge, enum probe_type type, uint8_t path, enum slots slots,
                 bool high)
{
    const struct mesh_edge *e = &m->edges[edge];
    struct send_entry entry = {.edge = edge,
                               .local = e->local,
                               .peer = e->nic,
                               .type = (uint8_t)type,
                               .path = path,
                               .slots = (uint8_t)slots,
                               .high = high,
                               .port = e->out[path].half.port,
                               .generation = e->generation};

    mesh_send_push(m, &entry);
}

static void push_pair(struct mesh *m, int edge, uint8_t path)
{
    const struct mesh_edge *e = &m->edges[edge];
    struct send_entry entry = {.edge = edge,
                               .local = e->local,
                               .peer = e->nic,
                               .type = PROBE_PAIR,
                               .path = path,
                               .slots = SLOTS_PAIR,
                               .high = true,
                               .port = e->out[path].half.port,
                               .generation = e->generation};

    if (m->send_count + 2 > SEND_QUEUE) {
        m->counters.sends_dropped += 2;
        return;
    }
    mesh_send_push(m, &entry);
    entry.slots = SLOTS_SINGLE;
    entry.second = 1;
    mesh_send_push(m, &entry);
}

void prober_burst(struct mesh *m, struct mono now, int edge, uint8_t path)
{
    struct path_out *out = &m->edges[edge].out[path];

    if (out->burst_left > 0 || out->burst_wait > 0) {
        return;
    }
    out->burst_left = MESH_BURST_PACKETS;
    out->burst_stamped = 0;
    out->burst_next = now;
    m->counters.bursts++;
    mesh_due(m, edge, now);
}

/* An own path that probably works, for packets that must arrive; `avoid` is the last choice. */
uint8_t prober_good_path(const struct mesh_edge *e, uint8_t avoid)
{
    for (uint8_t i = 0; i < e->path_count; i++) {
        const uint8_t p = (uint8_t)((e->round + i) % e->path_count);
        if (p != avoid &&
            (e->out[p].half.state == PATH_ALIVE || e->out[p].half.state == PATH_LOSSY)) {
            return p;
        }
    }
    return (uint8_t)((avoid + 1) % e->path_count);
}

static void send_bursts(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];
    struct nic *nic = &m->nics[e->local];

    for (uint8_t p = 0; p < e->path_count; p++) {
        struct path_out *out = &e->out[p];

        if (out->burst_next.ns > now.ns) {
            continue;
        }
        if (out->burst_left == 0) { /* sent and stamped, or waited long enough: report */
            struct send_entry entry = {.edge = edge,
                                       .local = e->local,
                                       .peer = e->nic,
                                       .type = PROBE_BURST,
                                       .path = prober_good_path(e, p),
                                       .slots = SLOTS_REPORT,
                                       .report_path = p,
                                       .seq = out->burst_last,
                                       .high = true,
                                       .generation = e->generation};
            entry.port = e->out[entry.path].half.port;
            if (out->burst_stamped >= MESH_BURST_PACKETS - 1) {
                mesh_send_push(m, &entry);
            }
            out->burst_wait = 0;
            out->burst_next = MONO_NEVER;
        } else if (mesh_credit(m, now, &nic->burst_credit)) {
            push(m, edge, PROBE_BURST, p, SLOTS_PAIR, true);
            out->burst_left--;
            out->burst_wait = 1;
            out->burst_next =
                mono_add(now, span_ns(out->burst_left > 0 ? BURST_STEP_NS : 20 * NS_PER_MS));
        } else {
            out->burst_next = mono_add(now, span_ms(25));
        }
    }
}

static void send_wants(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];
    bool ask = false;

    for (uint8_t p = 0; p < EDGE_PATH_MAX; p++) {
        struct path_in *in = &e->in[p];
        if ((e->want & (1u << p)) != 0 && mono_sub(now, in->wanted).ns >= WANT_AGAIN_NS) {
            in->wanted = now;
            ask = true;
        }
    }
    if (ask && mesh_credit(m, now, &m->nics[e->local].burst_credit)) {
        push(m, edge, PROBE_SINGLE, prober_good_path(e, UINT8_MAX), SLOTS_PAIR, true);
    }
}

static void send_regular(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];
    const uint8_t count = e->path_count;

    if (e->single_next.ns <= now.ns) {
        push(m, edge, PROBE_SINGLE, (uint8_t)((e->round - 1 + count / 2) % count), SLOTS_PAIR,
             false);
        e->single_next = MONO_NEVER;
    }
    if (e->pair_next.ns > now.ns) {
        return;
    }
    push_pair(m, edge, (uint8_t)(e->round % count));
    if (count % 2 == 0) {
        push(m, edge, PROBE_SINGLE, (uint8_t)((e->round + count / 2) % count), SLOTS_PAIR, false);
    } else {
        e->single_next = mono_add(now, half_interval(m));
    }
    e->round++;
    e->pair_nominal = mono_add(e->pair_nominal, m->config.interval);
    if (mono_sub(now, e->pair_nominal).ns > 0) { /* missed packets are not made up for */
        e->pair_nominal = mono_add(now, m->config.interval);
    }
    e->pair_next = mono_add(e->pair_nominal, jitter(m));
}

void prober_edge_tick(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];
    const struct nic *nic = &m->nics[e->local];

    if (nic->carrier_known && !nic->carrier) { /* nothing would leave */
        if (e->pair_next.ns <= now.ns) {
            e->pair_nominal = e->pair_next = mono_add(now, m->config.interval);
        }
        e->single_next = MONO_NEVER;
        for (uint8_t p = 0; p < e->path_count; p++) {
            e->out[p].burst_next = MONO_NEVER;
            e->out[p].burst_left = e->out[p].burst_wait = 0;
        }
        return;
    }
    send_wants(m, now, edge);
    send_bursts(m, now, edge);
    send_regular(m, now, edge);
}

struct mono prober_due(const struct mesh_edge *e)
{
    struct mono due = mono_min(e->pair_next, e->single_next);

    for (uint8_t p = 0; p < e->path_count; p++) {
        due = mono_min(due, e->out[p].burst_next);
    }
    return due;
}

/* ---- building a packet ---------------------------------------------------------------------- */

static void fill_own(const struct mesh_edge *e, struct packet_ref ref, struct probe_stamps *ret)
{
    const struct path_out *out = &e->out[ref.path];
    const struct sent_slot *first = &out->sent[ref.seq % SLOT_COUNT];
    const struct sent_slot *second = &out->sent[(ref.seq + 1) % SLOT_COUNT];

    if (!ref.valid || first->seq != ref.seq || first->state != SENT_STAMPED || first->rough) {
        return;
    }
    *ret = (struct probe_stamps){
        .present = true, .path = ref.path, .seq = ref.seq, .first = first->tx};
    int64_t gap = nic_time_sub(second->tx, first->tx).ns;
    if (ref.pair && second->seq == ref.seq + 1 && second->state == SENT_STAMPED && !second->rough &&
        gap >= 0 && gap < PROBE_GAP_NS_MAX) {
        ret->gap_ns = gap == 0 ? 1 : (int32_t)gap;
    }
}

static void fill_heard(const struct mesh_edge *e, struct packet_ref ref, struct probe_stamps *ret)
{
    const struct path_in *in = &e->in[ref.path];
    const struct heard_slot *first = &in->heard[ref.seq % SLOT_COUNT];
    const struct heard_slot *second = &in->heard[(ref.seq + 1) % SLOT_COUNT];

    if (!ref.valid || !first->valid || first->seq != ref.seq || !first->stamped) {
        return;
    }
    *ret = (struct probe_stamps){
        .present = true, .path = ref.path, .seq = ref.seq, .first = first->rx};
    int64_t gap = nic_time_sub(second->rx, first->rx).ns;
    if (ref.pair && second->valid && second->seq == ref.seq + 1 && second->stamped &&
        gap > -PROBE_GAP_NS_MAX && gap < PROBE_GAP_NS_MAX) {
        ret->gap_ns = gap == 0 ? 1 : (int32_t)gap;
    }
}

static uint32_t received_mask(const struct mesh_edge *e, const struct probe_stamps *heard)
{
    const struct path_in *in = &e->in[heard->path];
    const int32_t behind = seq_sub(in->highest, heard->seq);

    if (!heard->present || behind < 0 || behind > 31) {
        return heard->present ? UINT32_MAX : 0;
    }
    return (uint32_t)(in->mask >> behind);
}

/* The newest of both that has its stamps: a packet that was just sent can't report itself. */
static struct packet_ref newest_stamped(const struct mesh_edge *e,
                                        const struct packet_ref refs[static 2])
{
    const struct sent_slot *slot = &e->out[refs[0].path].sent[refs[0].seq % SLOT_COUNT];

    return refs[0].valid && slot->seq == refs[0].seq && slot->state == SENT_STAMPED ? refs[0]
                                                                                    : refs[1];
}

static void fill_slots(const struct mesh_edge *e, const struct send_entry *entry,
                       struct probe *probe)
{
    const struct packet_ref report = {.seq = entry->seq, .path = entry->report_path, .valid = 1};
    const bool pair = entry->slots == SLOTS_PAIR;

    if (entry->slots == SLOTS_REPORT) {
        fill_own(e, report, &probe->own);
    } else {
        fill_own(e, newest_stamped(e, pair ? e->pair_out : e->single_out), &probe->own);
    }
    fill_heard(e, entry->slots == SLOTS_SINGLE ? e->single_in : e->pair_in, &probe->heard);
    if (!probe->heard.present) {
        fill_heard(e, entry->slots == SLOTS_SINGLE ? e->pair_in : e->single_in, &probe->heard);
    }
    if (e->stranger.present) {
        probe->heard = e->stranger;
    }
    probe->received = e->stranger.present ? UINT32_MAX : received_mask(e, &probe->heard);
    if (entry->slots == SLOTS_PROBE_REPLY) {
        probe->own = (struct probe_stamps){0};
        probe->heard = (struct probe_stamps){
            .present = true, .path = MESH_PATH_PROBE, .seq = entry->seq, .first = {1}, .gap_ns = 0};
        probe->received = 0;
    }
}

static void fill_states(const struct mesh *m, struct mono now, const struct mesh_edge *e,
                        struct probe *probe)
{
    probe->late = mesh_is_late(m, now);
    probe->wanted = e->want;
    for (uint8_t p = 0; p < EDGE_PATH_MAX; p++) {
        probe->dead |= e->in[p].half.state == PATH_DEAD ? (uint8_t)(1u << p) : 0;
    }
}

static void remember(struct mesh *m, struct mono now, struct mesh_edge *e,
                     const struct send_entry *entry, uint32_t seq, uint64_t token)
{
    struct path_out *out = &e->out[entry->path];
    struct packet_ref *refs = entry->type == PROBE_PAIR ? e->pair_out : e->single_out;

    out->sent[seq % SLOT_COUNT] = (struct sent_slot){.seq = seq,
                                                     .state = SENT_WAITING,
                                                     .second = entry->type != PROBE_PAIR ? 0
                                                               : entry->second           ? 2
                                                                                         : 1,
                                                     .high = entry->high,
                                                     .at_us = (uint32_t)(now.ns / NS_PER_US)};
    if (!entry->second) {
        refs[1] = refs[0];
        refs[0] = (struct packet_ref){
            .seq = seq, .path = entry->path, .valid = 1, .pair = entry->type == PROBE_PAIR};
    }
    if (entry->type == PROBE_BURST && entry->slots != SLOTS_REPORT) {
        out->burst_last = seq;
    }
    m->pending[token & m->pending_mask] = (struct pending){.token = token,
                                                           .seq = seq,
                                                           .generation = e->generation,
                                                           .edge = entry->edge,
                                                           .path = entry->path};
}

#define VERSION_AGAIN 4096 /* packets of an edge */
#define VERSION_TURN  16   /* long enough for a packet on each path, and for an answer */

/* The lower of both ends' newest versions. A peer that was never heard may be unable to read the newest one, and would never
 * answer, so all versions are tried in turn. A restarted peer is answered in its present version, because it may have been rolled
 * back. Now and then the newest version is tried again, so that an edge climbs after an accidental step down, or after an upgrade
 * of its peer. */
static uint8_t version_for(struct mesh_edge *e)
{
    const uint32_t n = e->version_count++;

    if (e->version == 0) {
        return (uint8_t)(PROBE_VERSION -
                         n / VERSION_TURN % (PROBE_VERSION - PROBE_VERSION_LOWEST + 1));
    }
    if (e->stranger.present && e->stranger_version < e->version) {
        return e->stranger_version;
    }
    return n % VERSION_AGAIN == 0 ? PROBE_VERSION : e->version;
}

static void build(struct mesh *m, struct mono now, const struct send_entry *entry,
                  struct mesh_send *send)
{
    struct probe *probe = &send->probe;
    struct mesh_edge *e = entry->edge >= 0 ? &m->edges[entry->edge] : NULL;

    probe->version = e ? version_for(e) : PROBE_VERSION_BEFORE;
    probe->version_lowest = PROBE_VERSION_LOWEST;
    probe->type = (enum probe_type)entry->type;
    probe->src = m->nics[entry->local].id;
    probe->dst = entry->peer;
    probe->path = entry->path;
    probe->second = entry->second;
    if (entry->type == PROBE_QUERY || entry->type == PROBE_ANSWER) {
        probe->query = entry->query;
        return;
    }
    if (entry->type == PROBE_DIGEST) {
        probe->version = PROBE_VERSION_DIGEST;
        if (entry->seq == DIGEST_TO_PEER) {
            digest_to_peer(m, now, entry->edge, &probe->digest);
        } else {
            probe->digest = m->digests.packets[entry->seq % DIGEST_MAX];
        }
        return;
    }
    fill_slots(e, entry, probe);
    fill_states(m, now, e, probe);
    if (entry->type == PROBE_DISCOVERY || entry->slots == SLOTS_PROBE_REPLY) {
        probe->path = entry->slots == SLOTS_PROBE_REPLY ? entry->path : MESH_PATH_PROBE;
    }
    if (entry->type == PROBE_DISCOVERY) {
        probe->seq = entry->seq;
        m->pending[send->token & m->pending_mask] = (struct pending){.token = send->token,
                                                                     .seq = entry->seq,
                                                                     .generation = e->generation,
                                                                     .edge = entry->edge,
                                                                     .path = MESH_PATH_PROBE};
        return;
    }
    probe->seq = e->out[entry->path].seq_next++;
    remember(m, mono_add(now, span_us(send->hold_us)), e, entry, probe->seq, send->token);
    send->want_stamp = 1;
}

bool mesh_next_send(struct mesh *m, struct mono now, struct mesh_send *ret_send, int *ret_edge)
{
    while (m->send_count > 0) {
        const struct send_entry entry = m->sends[m->send_head];

        m->send_head = (m->send_head + 1) % SEND_QUEUE;
        m->send_count--;
        if (entry.edge >= 0 &&
            (!m->edges[entry.edge].used || m->edges[entry.edge].generation != entry.generation)) {
            continue;
        }
        memset(ret_send, 0, sizeof(*ret_send));
        ret_send->token = ++m->token;
        ret_send->local = entry.local;
        ret_send->peer = entry.peer;
        ret_send->source_port = entry.port;
        ret_send->ttl = entry.ttl;
        ret_send->net_class = entry.high ? NODE_CLASS_CLOCK : NODE_CLASS_JOB;
        ret_send->pair = entry.type == PROBE_PAIR;
        ret_send->size = entry.full ? MESH_FULL_SIZE : PROBE_SIZE;
        ret_send->hold_us = m->nics[entry.local].hold_us;
        build(m, now, &entry, ret_send);
        *ret_edge = entry.edge;
        m->counters.sent++;
        return true;
    }
    return false;
}

bool mesh_query(struct mesh *m, uint32_t local, struct nic_id peer, const struct probe_query *query,
                bool answer)
{
    const struct send_entry entry = {.edge = -1,
                                     .local = local,
                                     .peer = peer,
                                     .type = answer ? PROBE_ANSWER : PROBE_QUERY,
                                     .port = m->config.port_base,
                                     .high = true,
                                     .query = *query};

    return mesh_credit(m, m->last_tick, &m->nics[local].burst_credit) && mesh_send_push(m, &entry);
}

void mesh_on_transmit(struct mesh *m, struct mono now, uint64_t token, uint8_t outcome,
                      struct nic_time tx, bool rough)
{
    const struct pending *p = &m->pending[token & m->pending_mask];

    (void)now;
    if (token == 0 || p->token != token || p->path == MESH_PATH_PROBE || !m->edges[p->edge].used ||
        m->edges[p->edge].generation != p->generation) {
        m->counters.unmatched_stamps++;
        return;
    }
    struct mesh_edge *e = &m->edges[p->edge];
    struct sent_slot *slot = &e->out[p->path].sent[p->seq % SLOT_COUNT];
    if (slot->seq != p->seq || slot->state != SENT_WAITING) {
        m->counters.unmatched_stamps++;
        return;
    }
    slot->state = outcome == 0 ? SENT_STAMPED : outcome == 1 ? SENT_UNSTAMPED : SENT_FAILED;
    slot->tx = tx;
    slot->rough = rough;
    m->counters.stamped += outcome == 0;
    m->counters.stamps_missing += outcome == 1;
    m->nics[e->local].stamped += outcome == 0;
    m->nics[e->local].stamps_missing += outcome == 1;
    m->counters.not_sent += outcome >= 2;
    if (outcome != 0) {
        return;
    }
    e->stamped_since_ack++;
    struct path_out *out = &e->out[p->path];
    if (out->burst_wait && p->seq - out->burst_last + MESH_BURST_PACKETS <= MESH_BURST_PACKETS) {
        out->burst_stamped++;
        if (out->burst_left == 0 && p->seq == out->burst_last) {
            out->burst_next = now; /* report at the next tick */
            mesh_due(m, p->edge, now);
        }
    }
}
