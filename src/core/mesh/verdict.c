/* verdict.c: overdue packets, proofs, and silence. */
#include <math.h>

#include "core/mesh/internal.h"

void path_half_trial(struct path_half *half, struct mono now, bool lost)
{
    const int64_t age = mono_sub(now, half->recent_start).ns;

    if (age >= RECENT_NS) {
        half->sent_before = age < 2 * RECENT_NS ? half->sent_now : 0;
        half->lost_before = age < 2 * RECENT_NS ? half->lost_now : 0;
        half->sent_now = half->lost_now = 0;
        half->recent_start = now;
    }
    half->sent++;
    half->sent_now++;
    half->lost += lost;
    half->lost_now += lost;
    ASSERT(half->lost <= half->sent && half->lost_now <= half->sent_now); /* a share of them */
}

/* Windows only turn when packets come. Without packets for so long, their content is old. */
struct fates path_half_recent(const struct path_half *half, struct mono now)
{
    if (mono_sub(now, half->recent_start).ns >= 2 * RECENT_NS) {
        return (struct fates){0, 0};
    }
    return (struct fates){.sent = half->sent_now + half->sent_before,
                          .lost = half->lost_now + half->lost_before};
}

/* The path takes another way now. */
void path_half_forget(struct path_half *half, struct mono now)
{
    delay_init(half->delay, now);
    half->brief_count = 0;
    half->sent_now = half->lost_now = 0;
    half->sent_before = half->lost_before = 0;
}

void path_half_move(struct mesh *m, struct mono now, int edge, uint8_t path,
                    enum finding_direction direction, enum path_event event, uint32_t proof)
{
    struct mesh_edge *e = &m->edges[edge];
    struct path_half *half = path_half_of(e, path, direction == DIRECTION_OUT);
    const enum path_state was = half->state, state = path_next(was, event);

    if (state == was) {
        return;
    }
    half->state = (uint8_t)state;
    half->deaths += state == PATH_DEAD;
    if (state == PATH_DEAD) {
        digest_alarm(m, now);
    }
    /* a path died at its last arrival, not when that was proven; with a new port, before that port was heard */
    const bool moved = direction == DIRECTION_OUT && e->out[path].moved.ns != 0;
    half->since = state == PATH_DEAD && half->heard.ns != MONO_NEVER.ns ? half->heard
                  : state == PATH_DEAD && moved                         ? e->out[path].moved
                  : event == PATH_REVIVED                               ? half->back
                                                                        : now;
    if (direction == DIRECTION_OUT) {
        e->out[path].revive = 0;
        e->out[path].proven = state == PATH_DEAD ? now : e->out[path].proven;
        /* a dead path is not a lossy one, nor is a path whose peer was silent */
        if (state == PATH_DEAD || was == PATH_DEAD || was == PATH_UNKNOWN) {
            e->out[path].test = (struct loss_test){0};
            e->out[path].judged = e->out[path].seq_next - 1;
        }
    }
    mesh_verdict_push(m, (struct mesh_verdict){.kind = MESH_PATH_STATE,
                                               .edge = edge,
                                               .path = path,
                                               .direction = (uint8_t)direction,
                                               .state = (uint8_t)state,
                                               .was = (uint8_t)was,
                                               .since = half->since,
                                               .proof = proof});
}

/* ---- the peer's paths ----------------------------------------------------------------------- */

/* The longest time between two packets on one of the peer's paths, with jitter. */
static struct span touch_gap(const struct mesh *m, const struct mesh_edge *e)
{
    const int64_t rounds = (e->peer_path_count + 1) / 2;

    return span_ns(m->config.interval.ns * rounds + OVERDUE_NS);
}

/* A path is overdue only if it is silent while the same peer is heard. */
static bool peer_talks(const struct mesh *m, const struct mesh_edge *e, struct mono now)
{
    return e->heard.ns != MONO_NEVER.ns &&
           mono_sub(now, e->heard).ns < m->config.interval.ns + OVERDUE_NS;
}

static uint32_t counted_from(const struct path_in *in)
{
    return in->floor_set && seq_sub(in->floor, in->highest) > 0 ? in->floor : in->highest;
}

/* Nothing came from the peer for a while, or this host could not listen. Packets of that time may be lost, and prove nothing
 * about one path: counting goes on with the next report. After a short gap, earlier missing packets stay missing: dropping queues
 * cause such a gap every half second, and a hole beside them would never be proven. */
static void verdict_gap(struct mesh_edge *e, struct mono now, bool brief)
{
    e->acked = now;
    e->stamped_since_ack = e->heard_since_ack = 0;
    for (uint8_t p = 0; p < EDGE_PATH_MAX; p++) {
        struct path_in *in = &e->in[p];
        const int32_t missed = in->floor_wanted ? 0 : seq_sub(in->reported, counted_from(in));

        in->missed = !brief ? 0 : in->missed + (missed > 0 ? (uint32_t)missed : 0);
        in->evidence = brief ? in->evidence : 0;
        in->floor_wanted = true;
        in->proof_due = MONO_NEVER;
        in->unseen = 0;
        e->out[p].full.waits = e->out[p].full.waits && brief; /* an absent peer did not answer */
    }
}

void verdict_touched(struct mesh *m, struct mono now, int edge, uint8_t path)
{
    struct mesh_edge *e = &m->edges[edge];
    struct path_in *in = &e->in[path];

    if (e->silent || e->heard.ns == MONO_NEVER.ns) {
        for (uint8_t p = 0; p < EDGE_PATH_MAX; p++) { /* it starts anew: nothing is overdue yet */
            e->in[p].touched = now;
        }
        if (e->silent) {
            mesh_spare_remove(m, edge);
            mesh_verdict_push(
                m, (struct mesh_verdict){.kind = MESH_PEER_HEARD, .edge = edge, .since = now});
        }
        e->silent = false;
        e->acked = now;
        e->stamped_since_ack = e->heard_since_ack = 0;
    }
    if (e->heard.ns == MONO_NEVER.ns || !peer_talks(m, e, now)) {
        const bool heard = e->heard.ns != MONO_NEVER.ns;
        verdict_gap(e, now,
                    heard && mono_sub(now, e->heard).ns < GAP_ROUNDS * m->config.interval.ns);
    }
    e->talks = e->heard.ns == MONO_NEVER.ns || mono_sub(now, e->heard).ns > NIC_SILENT_NS / 2
                   ? now
                   : e->talks;
    e->heard = now;
    e->heard_since_ack += !mesh_is_late(m, now); /* packets that waited in the own socket are old */
    in->touched = now;
    in->half.heard = now;
    in->half.back = in->revive == 0 ? now : in->half.back;
    in->unseen = 0;
    in->missed = 0;
    in->evidence = 0;
    in->reported = in->highest;
    in->proof_due = MONO_NEVER;
    if (in->half.state == PATH_DEAD && ++in->revive >= REVIVE_PACKETS) {
        path_half_move(m, now, edge, path, DIRECTION_IN, PATH_REVIVED, 0);
    } else {
        path_half_move(m, now, edge, path, DIRECTION_IN, PATH_HEARD, 0);
    }
    if (in->half.state != PATH_DEAD) {
        in->revive = 0;
    }
    mesh_due(m, edge, mono_add(now, touch_gap(m, e)));
}

/* So many of the peer's packets on that path arrived or are missing. */
void verdict_share(struct mesh *m, struct mono now, int edge, uint8_t path, double lost,
                   double sent)
{
    struct mesh_edge *e = &m->edges[edge];

    if (e->in[path].half.state == PATH_DEAD || mesh_is_late(m, now)) {
        return; /* packets in a hole show nothing about queues */
    }
    loss_share_add(&e->in[path].share, now, span_ns(SHARE_PATH_NS), lost, sent);
    loss_share_add(&m->nics[e->local].share, now, span_ns(SHARE_NIC_NS), lost, sent);
    loss_share_add(&m->nics[e->local].share_usual, now, span_ns(SHARE_PATH_NS), lost, sent);
}

/* The share that this path may lose to queues. If any packets are lost, a path may lose more than its few packets show. If more
 * than usual are missing, the loss may have just begun, as if one way of several lost everything. */
static double in_share(const struct mesh *m, const struct mesh_edge *e, const struct path_in *in)
{
    const struct nic *nic = &m->nics[e->local];
    const double now = loss_share_get(&nic->share), usual = loss_share_get(&nic->share_usual);
    const double guess = now > 2 * usual + PROOF_QUIET / 2 ? now * e->peer_path_count : now;
    const double own = now > PROOF_QUIET || usual > PROOF_QUIET ? loss_share_most(&in->share)
                                                                : loss_share_get(&in->share);

    return own > guess ? own : guess < SHARE_NIC_MAX ? guess : SHARE_NIC_MAX;
}

/* True if other packets of this NIC waited lately: a queue may begin to drop, first on this path. Its share is unknown until the
 * path is heard again, so the largest share is assumed that the waiting packets allow. */
static bool queue_fills(const struct mesh *m, const struct mesh_edge *e)
{
    return m->nics[e->local].waits.lost > 0.5;
}

static double queue_share(const struct mesh *m, const struct mesh_edge *e)
{
    const struct nic *nic = &m->nics[e->local];
    const struct loss_share waited = {.lost = nic->share.lost,
                                      .sent = fmax(nic->waits.lost, nic->share.lost)};

    return loss_share_most(&waited);
}

/* Longer than the recent spread of the path's delays. */
static struct span proof_wait(const struct path_in *in)
{
    const int64_t high = delay_quantile(in->half.delay, 0.95),
                  low = delay_quantile(in->half.delay, 0);
    const int64_t queue = high == INT64_MIN || low == INT64_MIN ? 0 : high - low;

    return span_ns(PROOF_WAIT_NS + (queue < PROOF_QUEUE_NS ? queue : PROOF_QUEUE_NS));
}

/* The peer's transmit stamp of its packet `seq` on that path is known. Did the packet arrive? */
void verdict_own_slot(struct mesh *m, struct mono now, int edge, const struct probe_stamps *own)
{
    struct mesh_edge *e = &m->edges[edge];
    const uint8_t path = own->path;
    const uint32_t seq = own->seq + (own->gap_ns != 0);
    struct path_in *in = path < EDGE_PATH_MAX ? &e->in[path] : NULL;

    if (!in || path >= m->config.path_limit) {
        return;
    }
    in->told = now;
    if (mesh_is_late(m, now) || in->half.state == PATH_DEAD) {
        return;
    }
    if (in->floor_wanted) {
        in->floor_wanted = false;
        in->floor_set = true;
        in->floor = in->missed > 0 && seq_sub(in->reported, seq) > 0 ? in->reported : seq;
        return;
    }
    if (!in->known) { /* never heard: count reports of packets that did not arrive */
        if (in->unseen == 0 || in->proof_seq != seq) {
            in->unseen++;
            in->proof_seq = seq;
        }
        if (in->unseen >= proof_wanted(in_share(m, e, in)).packets &&
            in->proof_due.ns == MONO_NEVER.ns) {
            in->proof_due = mono_add(now, span_ns(PROOF_WAIT_NS));
            mesh_due(m, edge, in->proof_due);
        }
        return;
    }
    const int32_t since = seq_sub(seq, counted_from(in));
    if (since <= 0 || since > SEQ_LIFE) {
        return;
    }
    const bool fills = queue_fills(m, e);
    const double share = in_share(m, e, in);
    if (seq_sub(seq, in->reported) > 0) {
        in->evidence += proof_evidence(
            fills ? fmax(share, queue_share(m, e)) : share,
            in->evidence == 0 ? INT64_MAX : nic_time_sub(own->first, in->missed_at).ns);
        in->missed_at = own->first;
        in->reported = seq;
    }
    const bool enough = (share <= PROOF_QUIET && !fills) || in->evidence > PROOF_ENOUGH;
    if (enough && in->missed + (uint32_t)since >= PROOF_PACKETS &&
        in->proof_due.ns == MONO_NEVER.ns) {
        in->proof_seq = seq;
        in->proof_due = mono_add(now, proof_wait(in));
        mesh_due(m, edge, in->proof_due);
    }
}

/* The peer no longer uses that path. */
static void given_up(struct mesh *m, struct mono now, int edge, uint8_t path)
{
    struct mesh_edge *e = &m->edges[edge];

    path_half_move(m, now, edge, path, DIRECTION_IN, PATH_SILENCE, 0);
    e->in[path].known = false;
    e->want &= (uint8_t) ~(1u << path);
    while (e->peer_path_count > 1 && !e->in[e->peer_path_count - 1].known) {
        e->peer_path_count--;
    }
}

static void in_path_tick(struct mesh *m, struct mono now, int edge, uint8_t path)
{
    struct mesh_edge *e = &m->edges[edge];
    struct path_in *in = &e->in[path];
    const uint8_t bit = (uint8_t)(1u << path);

    if (in->proof_due.ns <= now.ns) {
        const uint32_t proof = in->known ? in->proof_seq - in->highest : in->unseen;

        in->proof_due = MONO_NEVER;
        path_half_move(m, now, edge, path, DIRECTION_IN, PATH_PROVEN, proof);
    }
    if (!in->known || in->half.state == PATH_UNKNOWN) {
        e->want &= (uint8_t)~bit;
        return;
    }
    if (mono_sub(now, in->touched).ns < touch_gap(m, e).ns) {
        e->want &= (uint8_t)~bit;
        return;
    }
    if (!peer_talks(m, e, now)) {
        in->told = now; /* no packet could arrive */
        e->want &= (uint8_t)~bit;
        return;
    }
    if (in->half.state == PATH_DEAD) {
        e->want &= (uint8_t)~bit;
        if (mono_sub(now, in->told).ns > UNUSED_NS) {
            given_up(m, now, edge, path);
        }
        return;
    }
    if ((e->want & bit) == 0) {
        e->want |= bit;
        in->suspect = now;
        in->wanted = (struct mono){now.ns - WANT_AGAIN_NS};
        path_half_move(m, now, edge, path, DIRECTION_IN, PATH_OVERDUE, 0);
    }
    if (mono_sub(now, in->suspect).ns > SUSPECT_NS_MAX) {
        given_up(m, now, edge, path);
    }
}

/* ---- own paths ------------------------------------------------------------------------------ */

void verdict_ack(struct mesh *m, struct mono now, int edge, uint8_t path)
{
    struct mesh_edge *e = &m->edges[edge];
    struct path_out *out = &e->out[path];

    e->acked = now;
    e->stamped_since_ack = e->heard_since_ack = 0;
    e->deaf = false;
    out->half.heard = now;
    out->half.back = out->revive == 0 ? now : out->half.back;
    if (out->half.state != PATH_DEAD) {
        path_half_move(m, now, edge, path, DIRECTION_OUT, PATH_HEARD, 0);
    } else if (++out->revive >= REVIVE_PACKETS) {
        path_half_move(m, now, edge, path, DIRECTION_OUT, PATH_REVIVED, 0);
    }
}

/* The peer's report about own paths. */
void verdict_masks(struct mesh *m, struct mono now, int edge, uint8_t wanted, uint8_t dead)
{
    struct mesh_edge *e = &m->edges[edge];

    if (e->peer_late) {
        return;
    }
    for (uint8_t p = 0; p < e->path_count; p++) {
        if (mono_sub(now, e->out[p].moved).ns < MOVED_NS && e->out[p].moved.ns != 0) {
            continue;
        }
        if ((wanted & (1u << p)) != 0) {
            path_half_move(m, now, edge, p, DIRECTION_OUT, PATH_OVERDUE, 0);
            prober_burst(m, now, edge, p);
            discovery_trace(m, now, edge, p);
        }
        if ((dead & (1u << p)) != 0) {
            path_half_move(m, now, edge, p, DIRECTION_OUT, PATH_PROVEN, PROOF_PACKETS);
            /* again: the first one may have been lost, or refused */
            discovery_trace(m, now, edge, p);
        }
    }
}

/* The share that this edge may lose to queues: the worst of its paths, or this NIC's loss in either direction. */
static double out_share(const struct mesh *m, const struct mesh_edge *e)
{
    double share = loss_share_get(&m->nics[e->local].share_out);
    const double in = loss_share_get(&m->nics[e->local].share);

    share = in > share ? in : share;
    for (uint8_t p = 0; p < e->path_count; p++) {
        const double own = loss_share_get(&e->out[p].share);
        share = own > share ? own : share;
    }
    return share;
}

/* The peer sends, but receives nothing from this host on any path. It can't report that, so this host counts itself. */
static void deaf_tick(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];

    if (e->deaf || e->peer_late || mesh_is_late(m, now) || !e->fresh || !peer_talks(m, e, now) ||
        e->heard_since_ack < DEAF_PACKETS || e->stamped_since_ack < DEAF_PACKETS ||
        mono_sub(now, e->acked).ns < DEAF_NS) {
        return;
    }
    const struct proof_wanted wanted = proof_wanted(out_share(m, e));
    if (e->stamped_since_ack < wanted.packets || mono_sub(now, e->acked).ns < wanted.time.ns) {
        return;
    }
    e->deaf = true;
    for (uint8_t p = 0; p < e->path_count; p++) {
        path_half_move(m, now, edge, p, DIRECTION_OUT, PATH_PROVEN, e->stamped_since_ack);
        discovery_trace(m, now, edge, p);
    }
}

/* The same host is in time and has been heard on another NIC for a while: its agent runs, so silence here means more. After a
 * wait an agent is heard on one of its NICs first. */
static bool host_talks(const struct mesh *m, const struct mesh_edge *e, struct mono now)
{
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        const struct mesh_edge *other = &m->edges[edge];

        if (other->used && other != e && host_id_equal(other->host, e->host) && !other->peer_late &&
            peer_talks(m, other, now) && mono_sub(now, other->talks).ns >= NIC_SILENT_NS / 2) {
            return true;
        }
    }
    return false;
}

static void silence_tick(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];
    const struct mono since = e->heard.ns == MONO_NEVER.ns ? e->started : e->heard;

    if (e->silent || mono_sub(now, since).ns < NIC_SILENT_NS || mesh_is_late(m, now)) {
        return;
    }
    if (mono_sub(now, since).ns < SILENT_NS &&
        (e->heard.ns == MONO_NEVER.ns || !host_talks(m, e, now))) {
        return;
    }
    e->silent = true;
    e->want = 0;
    for (uint8_t p = 0; p < EDGE_PATH_MAX; p++) {
        e->in[p].proof_due = MONO_NEVER;
        path_half_move(m, now, edge, p, DIRECTION_IN, PATH_SILENCE, 0);
        path_half_move(m, now, edge, p, DIRECTION_OUT, PATH_SILENCE, 0);
    }
    mesh_spare_add(m, now, edge);
    if (e->heard.ns != MONO_NEVER.ns) {
        digest_alarm(m, now);
    }
    mesh_verdict_push(
        m, (struct mesh_verdict){.kind = MESH_PEER_SILENT, .edge = edge, .since = since});
}

void verdict_edge_tick(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];
    const struct nic *nic = &m->nics[e->local];

    if (nic->carrier_known && !nic->carrier) {
        return; /* the link's own verdict explains it all */
    }
    silence_tick(m, now, edge);
    if (e->silent || mesh_is_late(m, now)) {
        return;
    }
    for (uint8_t p = 0; p < m->config.path_limit; p++) {
        in_path_tick(m, now, edge, p);
    }
    deaf_tick(m, now, edge);
}

struct mono verdict_due(const struct mesh *m, const struct mesh_edge *e)
{
    struct mono due = MONO_NEVER;

    for (uint8_t p = 0; p < m->config.path_limit; p++) {
        const struct path_in *in = &e->in[p];

        due = mono_min(due, in->proof_due);
        if (in->known && (e->want & (1u << p)) == 0 && in->half.state != PATH_DEAD &&
            in->half.state != PATH_UNKNOWN) {
            const struct mono at = mono_add(in->touched, touch_gap(m, e));
            /* overdue packets are checked with each pair that is sent */
            due = at.ns > m->last_tick.ns ? mono_min(due, at) : due;
        }
    }
    return due;
}

/* Packets of that time may be lost, and no path is to blame: peers are told that, too. */
void mesh_on_sleep(struct mesh *m, struct mono now)
{
    m->late_until = mono_add(now, span_ns(LATE_GRACE_NS));
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        struct mesh_edge *e = &m->edges[edge];

        if (!e->used) {
            continue;
        }
        trial_skip(m, edge);
        e->want = 0;
        e->stamped_since_ack = e->heard_since_ack = 0;
        e->acked = now;
        verdict_gap(e, now, false);
        if (e->heard.ns != MONO_NEVER.ns && !e->silent) {
            e->heard = now; /* this host may have missed it */
        }
        for (uint8_t p = 0; p < m->config.path_limit; p++) {
            e->in[p].touched = mono_add(now, span_ns(LATE_GRACE_NS));
            e->in[p].proof_due = MONO_NEVER;
            e->in[p].mask = UINT64_MAX;
            path_half_move(m, now, edge, p, DIRECTION_IN, PATH_LATE, 0);
        }
    }
}

void verdict_late(struct mesh *m, struct mono now, struct span late)
{
    const bool known = mesh_is_late(m, now);

    m->counters.late_ticks++;
    mesh_on_sleep(m, now);
    if (!known) {
        mesh_verdict_push(
            m, (struct mesh_verdict){.kind = MESH_LATE, .edge = -1, .since = now, .late = late});
    }
}
