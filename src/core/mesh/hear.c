/* hear.c: what a received packet shows: its arrival, its sender's stamps, and what its sender received from us. */
#include "base/cache.h"
#include "core/mesh/internal.h"

#define SEQ_WINDOW 64

static struct sent_slot *sent_find(struct mesh_edge *e, uint8_t path, uint32_t seq)
{
    struct sent_slot *slot = path < EDGE_PATH_MAX ? &e->out[path].sent[seq % SLOT_COUNT] : NULL;

    return slot && slot->seq == seq && slot->state != SENT_NONE ? slot : NULL;
}

static struct heard_slot *heard_find(struct mesh_edge *e, uint8_t path, uint32_t seq)
{
    struct heard_slot *slot = path < EDGE_PATH_MAX ? &e->in[path].heard[seq % SLOT_COUNT] : NULL;

    return slot && slot->valid && slot->seq == seq ? slot : NULL;
}

/* Proves that the packet was made after a packet which this host sent within the last seconds: so it is no old recording. Packets
 * on a path that is no longer used prove nothing, because its slots never change again. */
static bool remembers(struct mesh_edge *e, uint8_t path, uint32_t seq)
{
    return path < e->path_count && sent_find(e, path, seq) != NULL;
}

static bool knows_us(struct mesh_edge *e, const struct probe *probe)
{
    return probe->heard.present && remembers(e, probe->heard.path, probe->heard.seq);
}

bool mesh_echo(const struct mesh *m, int edge, struct probe_echo *ret_echo)
{
    const struct mesh_edge *e = &m->edges[edge];
    struct mono newest = MONO_NEVER;

    for (uint8_t p = 0; p < EDGE_PATH_MAX && e->used && e->fresh; p++) {
        const struct path_in *in = &e->in[p];
        if (in->known && in->half.heard.ns != MONO_NEVER.ns &&
            (newest.ns == MONO_NEVER.ns || mono_before(newest, in->half.heard))) {
            newest = in->half.heard;
            *ret_echo = (struct probe_echo){.seq = in->highest, .path = p};
        }
    }
    return newest.ns != MONO_NEVER.ns;
}

bool mesh_echoed(const struct mesh *m, uint32_t local, struct nic_id peer,
                 const struct probe_echo *echo)
{
    const int edge = mesh_edge_find(m, local, peer);

    return edge >= 0 && remembers(&m->edges[edge], echo->path, echo->seq);
}

static void window_reset(struct path_in *in, uint32_t seq)
{
    in->known = true;
    in->highest = seq;
    in->mask = UINT64_MAX; /* earlier packets are not known to be lost */
    in->unseen = 0;
    /* counts from the sender's earlier run prove nothing in this one */
    in->floor_wanted = in->floor_set = false;
    in->reported = seq;
    in->missed = 0;
    in->evidence = 0;
    in->proof_due = MONO_NEVER;
}

/* False: a replay, or outside any window. */
static bool window_accept(struct mesh *m, struct mono now, int edge, const struct probe *probe)
{
    struct mesh_edge *e = &m->edges[edge];
    struct path_in *in = &e->in[probe->path];
    const int32_t ahead = in->known ? seq_sub(probe->seq, in->highest) : 0;

    /* Before the edge is fresh, nothing that the peer reports counts, so its first packets may have any number. Afterwards an
     * echo of an own packet must prove a path's first number. */
    if (!in->known && e->fresh && !knows_us(e, probe)) {
        return false;
    }
    if (!in->known || (ahead > SEQ_LIFE && knows_us(e, probe))) {
        window_reset(in, probe->seq);
        return true;
    }
    if (ahead > 0 && (ahead <= SEQ_WINDOW || knows_us(e, probe))) {
        const uint64_t fill = mesh_is_late(m, now) || probe->late ? UINT64_MAX : 0;

        if (ahead >= 64) {
            in->mask = fill;
        } else {
            in->mask = (in->mask << ahead) | (fill & ((1ull << ahead) - 1));
        }
        in->mask |= 1;
        in->highest = probe->seq;
        for (int32_t i = 1; i < ahead && i <= SEQ_WINDOW; i++) {
            path_half_trial(&in->half, now, fill == 0);
        }
        path_half_trial(&in->half, now, false);
        const int32_t run = fill != 0 ? 0 : ahead - 1 < SHARE_RUN ? ahead - 1 : SHARE_RUN;
        verdict_share(m, now, edge, probe->path, run, run + 1);
        return true;
    }
    if (ahead <= 0 && ahead > -64 && (in->mask & (1ull << -ahead)) == 0) {
        in->mask |= 1ull << -ahead;
        in->half.reordered++;
        in->half.lost -= in->half.lost > 0; /* it was only late */
        in->half.lost_now -= in->half.lost_now > 0;
        verdict_share(m, now, edge, probe->path, -1, 0);
        return true;
    }
    if ((ahead <= -64 || ahead > SEQ_WINDOW) &&
        knows_us(e, probe)) { /* the peer's agent was restarted */
        window_reset(in, probe->seq);
        return true;
    }
    return false;
}

static void note_packet(struct mesh_edge *e, struct path_in *in, const struct probe *probe,
                        bool stamped, struct nic_time rx)
{
    in->heard[probe->seq % SLOT_COUNT] = (struct heard_slot){
        .seq = probe->seq, .valid = 1, .stamped = stamped, .second = probe->second, .rx = rx};
    if (probe->type != PROBE_PAIR) {
        e->single_in =
            (struct packet_ref){.seq = probe->seq, .path = probe->path, .valid = stamped};
    } else if (!probe->second) {
        e->pair_in = (struct packet_ref){
            .seq = probe->seq, .path = probe->path, .valid = stamped, .pair = 1};
    } else if (!heard_find(
                   e, probe->path,
                   probe->seq -
                       1)) { /* the pair's first packet was lost: the second alone is a single */
        e->single_in =
            (struct packet_ref){.seq = probe->seq, .path = probe->path, .valid = stamped};
    }
}

/* The sender's stamps of an earlier packet or pair, with the own stamps of its arrival: a backward point. */
static void point_backward(struct mesh_edge *e, int edge, const struct probe *probe,
                           struct mesh_heard *heard)
{
    const struct probe_stamps *own = &probe->own;
    struct heard_slot *first = heard_find(e, own->path, own->seq);
    struct heard_slot *second = own->gap_ns != 0 ? heard_find(e, own->path, own->seq + 1) : NULL;
    struct clock_point point = {.edge = edge, .path = own->path, .forward = false};

    if (!own->present || own->path >= EDGE_PATH_MAX) {
        return;
    }
    if (first && first->stamped && !first->used) {
        first->used = 1;
        point.local = first->rx;
        point.remote = own->first;
        if (second && second->stamped) {
            second->used = 1;
            point.local_gap_ns = (int32_t)nic_time_sub(second->rx, first->rx).ns;
            point.remote_gap_ns = own->gap_ns;
        }
    } else if (!first && second && second->stamped && !second->used) {
        second->used = 1;
        point.local = second->rx;
        point.remote = nic_time_add(own->first, span_ns(own->gap_ns));
    } else {
        return;
    }
    heard->single_of[heard->point_count] = DELAY_OF_JOB;
    heard->points[heard->point_count++] = point;
}

/* The sender's stamps of the arrival of own packets: a forward point. */
static void point_forward(struct mesh_edge *e, int edge, const struct probe *probe,
                          struct mesh_heard *heard)
{
    const struct probe_stamps *theirs = &probe->heard;
    struct sent_slot *first = sent_find(e, theirs->path, theirs->seq);
    struct sent_slot *second =
        theirs->gap_ns != 0 ? sent_find(e, theirs->path, theirs->seq + 1) : NULL;
    struct clock_point point = {.edge = edge, .path = theirs->path, .forward = true};

    if (!first || first->state != SENT_STAMPED || first->used || first->rough) {
        return;
    }
    first->used = 1;
    point.local = first->tx;
    point.remote = theirs->first;
    if (second && second->state == SENT_STAMPED && !second->rough) {
        second->used = 1;
        point.local_gap_ns = (int32_t)nic_time_sub(second->tx, first->tx).ns;
        point.remote_gap_ns = theirs->gap_ns;
    }
    heard->single_of[heard->point_count] = first->high ? DELAY_OF_PROBE : DELAY_OF_JOB;
    heard->points[heard->point_count++] = point;
}

/* True if a full queue may have dropped packets, which is no gray loss: packets beside the lost ones waited. If fleet time can't
 * give delays, the cause is unknown. */
bool hear_queue_drops(const struct mesh *m, struct mono now, const struct mesh_edge *e,
                      const struct path_out *out)
{
    const struct delay_window *d = out->half.delay;
    const int64_t limit = m->config.queue_ns[e->local], spread = delay_spread(d);

    return spread == INT64_MIN || mono_sub(now, out->half.brief_at).ns > QUEUE_FRESH_NS ||
           spread > limit || delay_quantile(d, 0.9) - delay_quantile(d, 0) > limit;
}

/* The receiver's mask shows the fates of own packets; the newest few may still be in flight. */
static void judge_mask(struct mesh *m, struct mono now, int edge, const struct probe *probe)
{
    struct mesh_edge *e = &m->edges[edge];
    const uint8_t path = probe->heard.path;
    struct path_out *out = &e->out[path];
    const uint32_t last = probe->heard.seq - 6;

    if (!out->judged_any || seq_sub(last, out->judged) > 26) {
        out->judged = last - (out->judged_any ? 25 : 0);
        out->judged_any = true;
    }
    for (; seq_sub(last, out->judged) > 0; out->judged++) {
        const uint32_t seq = out->judged + 1, bit = probe->heard.seq - seq;
        const struct sent_slot *slot = sent_find(e, path, seq);
        const bool lost = (probe->received & (1u << bit)) == 0;

        if (!slot || slot->state != SENT_STAMPED || probe->late || mesh_is_late(m, now)) {
            continue;
        }
        path_half_trial(&out->half, now, lost);
        out->lost_run = lost ? out->lost_run + 1 : 0;
        /* a hole that was over before it was proven is no gray loss */
        if (out->lost_run >= SHARE_RUN) {
            out->test = (struct loss_test){0};
            continue;
        }
        if (out->half.state != PATH_DEAD && !e->deaf) {
            loss_share_add(&out->share, now, span_ns(SHARE_PATH_NS), lost, 1);
            loss_share_add(&m->nics[e->local].share_out, now, span_ns(SHARE_NIC_NS), lost, 1);
        }
        /* the fate of a pair */
        if (slot->second == 2 && out->half.state != PATH_DEAD && bit < 31) {
            const bool first_lost = (probe->received & (2u << bit)) == 0;
            const enum path_event event = loss_test_pair(&out->test, lost || first_lost);
            if (event == PATH_LOSS && hear_queue_drops(m, now, e, out)) {
                out->test = (struct loss_test){0}; /* test again */
            } else if (event != PATH_EVENT_COUNT) {
                path_half_move(m, now, edge, path, DIRECTION_OUT, event, 0);
            }
        }
    }
}

static void hear_echo(struct mesh *m, struct mono now, int edge, const struct probe *probe)
{
    struct mesh_edge *e = &m->edges[edge];

    if (probe->heard.path == MESH_PATH_PROBE) {
        discovery_reached(m, now, edge, probe->heard.seq);
        return;
    }
    if (!knows_us(e, probe)) {
        return;
    }
    e->fresh = true;
    struct path_out *out = &e->out[probe->heard.path];
    const uint32_t newest = probe->heard.seq + (probe->heard.gap_ns != 0);
    if (!out->acked_any || seq_sub(newest, out->acked) > 0) {
        out->acked = newest;
        out->acked_any = true;
        verdict_ack(m, now, edge, probe->heard.path);
    }
    judge_mask(m, now, edge, probe);
    trial_on_mask(m, now, edge, probe);
}

/* Both ends use the lower of their newest versions. The newest version that was received within some seconds counts, and at first
 * the newest own version is tried. So two ends that were upgraded one after the other return to it, even if packets crossed on
 * the way. */
static void hear_version(struct mesh_edge *e, struct mono now, uint8_t version)
{
    if (mono_sub(now, e->version_start).ns >= 2 * NS_PER_S) {
        e->version = e->version_lately;
        e->version_lately = 0;
        e->version_start = now;
    }
    e->version_lately = version > e->version_lately ? version : e->version_lately;
    e->version = version > e->version ? version : e->version; /* 0 before the first packet */
}

/* A packet came on one of the peer's paths. */
static void touch(struct mesh *m, struct mono now, int edge, const struct probe *probe,
                  uint16_t source_port)
{
    struct mesh_edge *e = &m->edges[edge];
    struct path_in *in = &e->in[probe->path];

    if (in->half.port != source_port && in->half.port != 0) {
        mesh_verdict_push(m, (struct mesh_verdict){.kind = MESH_REPATH,
                                                   .edge = edge,
                                                   .path = probe->path,
                                                   .direction = DIRECTION_IN,
                                                   .since = now});
        path_half_forget(&in->half, now);
        if (in->half.state == PATH_DEAD) { /* it was about another way */
            path_half_move(m, now, edge, probe->path, DIRECTION_IN, PATH_SILENCE, 0);
        }
    }
    in->half.port = source_port;
    if (probe->path >= e->peer_path_count) {
        e->peer_path_count = (uint8_t)(probe->path + 1);
    }
    verdict_touched(m, now, edge, probe->path);
}

/* ---- prefetching ----------------------------------------------------------------------------- */
int mesh_expect(const struct mesh *m, uint32_t local, const struct probe *probe)
{
    /* only the table's first place for it: checking whether it is the right peer would have to wait for the edge's memory */
    const int edge = m->nics[local].table[(uint32_t)hash_u64(1, probe->src.index) & m->table_mask];
    const uint8_t back = probe->heard.path; /* a digest has none of these fields */

    if (edge < 0 || probe->path >= m->config.path_limit) {
        return -1;
    }
    const struct mesh_edge *e = &m->edges[edge];
    const struct path_in *in = &e->in[probe->path];
    const struct delay_window *delays =
        &m->delays[((size_t)edge * m->config.path_limit + probe->path) * 2];
    cache_fetch(e, offsetof(struct mesh_edge, out));
    cache_fetch(in, offsetof(struct path_in, heard));
    cache_fetch(&in->heard[probe->seq % SLOT_COUNT], 1);
    cache_fetch(&delays[1], DELAY_FETCH);
    if (probe->type != PROBE_DIGEST && probe->heard.present && back < m->config.path_limit) {
        const struct path_out *out = &e->out[back];
        cache_fetch(out, offsetof(struct path_out, sent));
        cache_fetch(&out->sent[probe->heard.seq % SLOT_COUNT], 1);
        cache_fetch(&out->sent[(probe->heard.seq - 6) % SLOT_COUNT], 1);
        cache_fetch(&m->delays[((size_t)edge * m->config.path_limit + back) * 2], DELAY_FETCH);
    }
    return edge;
}

static int edge_of(struct mesh *m, struct mono now, uint32_t local, const struct probe *probe,
                   struct mesh_heard *heard)
{
    int edge = mesh_edge_find(m, local, probe->src);

    if (edge >= 0) {
        return edge;
    }
    uint32_t peer = fleet_find(&m->config.fleet, probe->src);
    if (peer != UINT32_MAX && !host_id_equal(m->config.fleet.peers[peer].host,
                                             m->config.fleet.peers[m->nics[local].peer].host)) {
        /* a host with another list, or one that replaced a silent peer by this host: it is answered in the same way */
        edge = mesh_edge_add(m, now, local,
                             &(struct peer_choice){.index = peer, .reason = EDGE_GUEST});
        heard->new_edge = edge >= 0;
    }
    m->counters.unknown_sender += edge < 0;
    return edge;
}

void mesh_on_receive(struct mesh *m, struct mono now, uint32_t local, uint16_t source_port,
                     bool stamped, struct nic_time rx, const struct probe *probe,
                     struct mesh_heard *ret_heard)
{
    *ret_heard = (struct mesh_heard){.edge = -1};
    mesh_notice_late(m, now);
    m->counters.received++;
    if (!nic_id_equal(probe->dst, m->nics[local].id) ||
        nic_id_equal(probe->src, m->nics[local].id)) {
        m->counters.own_id += nic_id_equal(probe->src, m->nics[local].id);
        m->counters.unknown_sender++;
        return;
    }
    if (probe->type == PROBE_QUERY || probe->type == PROBE_ANSWER || probe->type == PROBE_DIGEST) {
        return; /* the caller handles these */
    }
    int edge = edge_of(m, now, local, probe, ret_heard);
    if (edge < 0) {
        return;
    }
    struct mesh_edge *e = &m->edges[edge];
    if (probe->type == PROBE_DISCOVERY && full_is(probe->seq)) {
        /* a replay of an hour ago has no echo of what this host just sent */
        if (knows_us(e, probe) && mesh_credit(m, now, &m->nics[local].full_credit)) {
            full_answer(m, edge, probe->seq);
        }
        return;
    }
    if (probe->type == PROBE_DISCOVERY) { /* its hop limit sufficed: the sender gets a report */
        if (mesh_credit(m, now, &m->nics[local].probe_credit)) {
            mesh_send_push(m, &(struct send_entry){.edge = edge,
                                                   .local = local,
                                                   .peer = e->nic,
                                                   .type = PROBE_SINGLE,
                                                   .slots = SLOTS_PROBE_REPLY,
                                                   .seq = probe->seq,
                                                   .high = true,
                                                   .port = e->out[0].half.port,
                                                   .generation = e->generation});
        }
        return;
    }
    if (probe->path >= EDGE_PATH_MAX || probe->path >= m->config.path_limit) {
        m->counters.stale++;
        return;
    }
    if (!window_accept(m, now, edge, probe)) {
        m->counters.replayed++;
        if (stamped && (e->heard.ns == MONO_NEVER.ns || mono_sub(now, e->heard).ns > STRANGER_NS)) {
            e->stranger = (struct probe_stamps){
                .present = true, .path = probe->path, .seq = probe->seq, .first = rx};
            e->stranger_version = probe->version;
        }
        return;
    }
    ret_heard->edge = edge;
    if (e->stranger.present) { /* the peer restarted: its earlier version shows nothing */
        e->version = e->version_lately = 0;
        e->version_start = now;
    }
    e->stranger.present = false;
    e->peer_late = probe->late;
    hear_version(e, now, probe->version);
    note_packet(e, &e->in[probe->path], probe, stamped, rx);
    touch(m, now, edge, probe, source_port);
    if (probe->type == PROBE_PAIR && !probe->second) {
        prober_hear_pair(m, now, edge);
    }
    hear_echo(m, now, edge, probe);
    ret_heard->fresh = e->fresh;
    point_backward(e, edge, probe, ret_heard);
    point_forward(e, edge, probe, ret_heard);
    if (probe->own.present) {
        verdict_own_slot(m, now, edge, &probe->own);
    }
    if (e->fresh) {
        verdict_masks(m, now, edge, probe->wanted, probe->dead);
    }
}
