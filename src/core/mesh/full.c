/* full.c: finds paths that lose full-size packets but not short ones. A switch with a small MTU, or a tunnel on the way, drops
 * only those: probes look fine, and the job stands still.
 *
 * Each edge sends one full packet in two seconds, on its paths in turn. The peer reports its arrival on a working path. After a
 * loss, all edges send four times as many for some seconds, every second one on the path that lost: in most fleets one packet in
 * two seconds is too little to find the element. All peers of a NIC together then request less than it may answer.
 *
 * Nothing is concluded before the peer has answered once. So an older agent, or a fabric with shorter packets everywhere, accuses
 * nobody. An unanswered packet counts as lost only if short packets on that path arrived, also later ones, and the peer wasn't
 * silent in between. Losses go to an inference of their own (fault.c). It only reports elements that lose nearly all full
 * packets. While the ways back lose packets, it is unknown which of the two directions lost one. */
#include "core/mesh/internal.h"

#define FULL_NS    (2 * NS_PER_S) /* between two full packets of an edge */
#define SOON_NS    (500 * NS_PER_MS)
#define ALARM_NS   (5 * NS_PER_S)  /* of the faster rate, after a loss */
#define CALM_NS    (20 * NS_PER_S) /* no second alarm within this time since it began */
#define ANSWER_NS  (300 * NS_PER_MS)
#define GIVE_UP_NS (2 * NS_PER_S)
#define BACK_SHARE 20 /* at most one packet in so many may be lost on the ways back */

#define FULL_FLAGS (TRACE_FLAG | VERIFY_FLAG)

bool full_is(uint32_t seq)
{
    return (seq & FULL_FLAGS) == FULL_FLAGS;
}

static bool is_alarm(const struct mesh *m, struct mono now)
{
    return m->full_alarm.ns != 0 && mono_sub(now, m->full_alarm).ns < ALARM_NS;
}

/* Sends the next ones soon, each at its own time. */
static void alarm_all(struct mesh *m, struct mono now)
{
    if (m->full_alarm.ns != 0 && mono_sub(now, m->full_alarm).ns < CALM_NS) {
        return;
    }
    m->full_alarm = now;
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        struct mesh_edge *e = &m->edges[edge];
        const struct mono soon = mono_add(
            now, span_ns((int64_t)(hash_u64(hash_u64(m->nics[e->local].id.index, e->nic.index),
                                            (uint64_t)now.ns) %
                                   SOON_NS)));
        if (e->used) {
            e->full_next = mono_min(e->full_next, soon);
            mesh_due(m, edge, e->full_next);
        }
    }
}

static void tell(struct mesh *m, struct mono now, int edge, uint8_t path, bool lost)
{
    struct mesh_edge *e = &m->edges[edge];

    if (lost) {
        e->full_bad = path;
        e->full_bad_at = now;
        alarm_all(m, now);
    }

    e->full_lost = (uint8_t)(e->full_lost + lost - (e->full_past >> 15));
    e->full_past = (uint16_t)(e->full_past << 1 | lost);
    e->full_past_len = (uint8_t)(e->full_past_len < 16 ? e->full_past_len + 1 : 16);
    mesh_tell_full(m, edge, path, e->out[path].full.sent, lost);
}

/* True if pairs arrive, which have the same class: otherwise the class is lost, not the size. */
static bool pairs_come(const struct path_out *out, struct mono now)
{
    struct class_sums sums = {{0}, {0}};

    trial_classes(out, now, &sums);
    return sums.sent[0] > 0 && 2 * sums.lost[0] < sums.sent[0];
}

/* True if answers arrive: otherwise the packet may have arrived, and its answer was lost. */
static bool answers_come(const struct mesh_edge *e, struct mono now)
{
    uint32_t sent = 0, lost = 0;

    for (uint8_t p = 0; p < EDGE_PATH_MAX; p++) {
        const struct fates f = path_half_recent(&e->in[p].half, now);

        sent += f.sent;
        lost += f.lost;
    }
    return lost * BACK_SHARE <= sent;
}

static void judge(struct mesh *m, struct mono now, int edge, uint8_t path)
{
    struct mesh_edge *e = &m->edges[edge];
    struct path_out *out = &e->out[path];
    struct full_probe *full = &out->full;
    const int64_t age = mono_sub(now, full->sent).ns;

    if (!full->waits || age < ANSWER_NS) {
        return;
    }
    if (out->half.state == PATH_ALIVE && out->half.heard.ns != MONO_NEVER.ns &&
        mono_sub(out->half.heard, full->sent).ns > ANSWER_NS) {
        full->waits = false;
        if (e->full_answered && pairs_come(out, now) && answers_come(e, now) &&
            !trial_may_be_queue(out, true, full->sent)) {
            tell(m, now, edge, path, true);
        }
    } else if (age > GIVE_UP_NS) {
        full->waits = false; /* its fate is unknown */
    }
}

static void ask(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];
    const bool alarm = is_alarm(m, now);

    e->full_again = alarm && !e->full_again && e->full_bad < e->path_count &&
                    e->full_bad_at.ns >= m->full_alarm.ns;
    const uint8_t path = e->full_again ? e->full_bad : (uint8_t)(e->full_round++ % e->path_count);
    struct path_out *out = &e->out[path];

    e->full_next = mono_add(now, span_ns(alarm ? SOON_NS : FULL_NS));
    if (out->signature == 0 || out->half.state != PATH_ALIVE || out->full.waits) {
        return;
    }
    out->full =
        (struct full_probe){.sent = now, .number = (uint8_t)(out->full.number + 1), .waits = true};
    mesh_send_push(m, &(struct send_entry){
                          .edge = edge,
                          .local = e->local,
                          .peer = e->nic,
                          .type = PROBE_DISCOVERY,
                          .seq = discovery_seq(e->generation, path, out->full.number, FULL_FLAGS),
                          .high = true,
                          .full = true,
                          .port = out->half.port,
                          .generation = e->generation});
}

void full_tick(struct mesh *m, struct mono now, int edge)
{
    struct mesh_edge *e = &m->edges[edge];
    const struct nic *nic = &m->nics[e->local];
    const bool blind = e->silent || !e->fresh || mesh_is_late(m, now) || e->peer_late ||
                       (nic->carrier_known && !nic->carrier);

    for (uint8_t p = 0; p < e->path_count; p++) {
        if (blind) {
            e->out[p].full.waits = false;
        } else {
            judge(m, now, edge, p);
        }
    }
    if (!blind && e->full_next.ns <= now.ns) {
        ask(m, now, edge);
    }
}

void full_answer(struct mesh *m, int edge, uint32_t seq)
{
    const struct mesh_edge *e = &m->edges[edge];
    const uint8_t path = prober_good_path(e, UINT8_MAX);

    mesh_send_push(m, &(struct send_entry){.edge = edge,
                                           .local = e->local,
                                           .peer = e->nic,
                                           .type = PROBE_SINGLE,
                                           .slots = SLOTS_PROBE_REPLY,
                                           .path = path,
                                           .seq = seq,
                                           .high = true,
                                           .port = e->out[path].half.port,
                                           .generation = e->generation});
}

void full_reached(struct mesh *m, struct mono now, int edge, uint32_t seq)
{
    struct mesh_edge *e = &m->edges[edge];
    const uint8_t path = (uint8_t)(seq >> 8) & 0x3f;
    struct full_probe *full = path < e->path_count ? &e->out[path].full : NULL;

    e->full_answered = true;
    if (full && full->waits && full->number == (uint8_t)seq) {
        full->waits = false;
        tell(m, now, edge, path, false);
    }
}
