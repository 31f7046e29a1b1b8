/* full.c: does a packet of full size get through where short ones do? A switch whose MTU is too small, or a tunnel on the way,
 * swallows those alone: probes are fine, and the job stands still.
 *
 * Each edge sends one full packet in two seconds, on its paths in turn. The peer tells that it came, on a path that lives.
 * When one is lost, all edges send four times as many for some seconds, every second one on the path that lost: few fleets have
 * enough paths to tell by one in two seconds what it is. All peers of a NIC together then ask for less than it answers.
 * Nothing is concluded before that peer has answered one: an older agent, or a fabric whose packets are shorter everywhere,
 * accuses nobody. One that wasn't answered was lost only if the path's short packets came, those sent after it, too, and the
 * peer wasn't silent in between. What full packets lost goes to an inference of its own (fault.c), which tells only what loses
 * nearly all of them. While the ways back lose packets, nobody knows which of the two was lost. */
#include "core/mesh/internal.h"

#define FULL_NS    (2 * NS_PER_S) /* between two of an edge */
#define SOON_NS    (500 * NS_PER_MS)
#define ALARM_NS   (5 * NS_PER_S)  /* of the latter, after a loss */
#define CALM_NS    (20 * NS_PER_S) /* not again, since it began */
#define ANSWER_NS  (300 * NS_PER_MS)
#define GIVE_UP_NS (2 * NS_PER_S)
#define BACK_SHARE 20 /* one packet of so many lost on the ways back, at most */

#define FULL_FLAGS (TRACE_FLAG | VERIFY_FLAG)

bool full_is(uint32_t seq)
{
    return (seq & FULL_FLAGS) == FULL_FLAGS;
}

static bool is_alarm(const struct mesh *m, struct mono now)
{
    return m->full_alarm.ns != 0 && mono_sub(now, m->full_alarm).ns < ALARM_NS;
}

/* The next ones soon, each at a time of its own. */
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

/* Pairs, which ride in its class, come: else it is the class that is lost. */
static bool pairs_come(const struct path_out *out, struct mono now)
{
    struct class_sums sums = {{0}, {0}};

    trial_classes(out, now, &sums);
    return sums.sent[0] > 0 && 2 * sums.lost[0] < sums.sent[0];
}

/* Else it may have come, and its answer was lost. */
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
        full->waits = false; /* nobody knows */
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
