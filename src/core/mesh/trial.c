/* trial.c: the fates of own packets, one by one, from the peer's reports. The inference that always runs uses them.
 *
 * The peer's mask holds the last 32 packets of a path. It comes with the first packet that arrives again. So after an outage the
 * fates of its packets are known, with the times at which they were sent. A trial is the first packet in 50 ms: those behind it
 * share its queue. Unknown fates are left out (no stamp, one end late, an unknown way, no carrier). So is a loss if packets of
 * that class waited lately, for as long as 32 kB take to leave: a full queue may have dropped it. Most singles wait behind the
 * job; pairs, and singles of the probes' class, don't. */
#include <math.h>

#include "core/fleet/locate.h"
#include "core/mesh/internal.h"

#define TRIAL_US   50000 /* at least so long between two trials */
#define SETTLE_US  60000 /* a packet sent so long before one that arrived is no longer in flight */
#define MASK_BITS  32
#define FATES_NS   (2 * NS_PER_S)
#define LOST_LEAST 3                 /* a few packets are always lost */
#define TOUCH_NS   (300 * NS_PER_MS) /* a path's packets are 200 ms apart */
#define WAIT_MOST  32                /* delays that show queues */
#define WAIT_LEAST 8
#define WAIT_SHARE 16 /* one in so many waited */

static const struct sent_slot *slot_of(const struct path_out *out, uint32_t seq)
{
    const struct sent_slot *slot = &out->sent[seq % SLOT_COUNT];

    return slot->seq == seq && slot->state == SENT_STAMPED ? slot : NULL;
}

void trial_on_delay(struct mesh *m, struct mono now, int edge, uint8_t path, bool high,
                    int64_t owd_ns)
{
    const struct mesh_edge *e = &m->edges[edge];
    struct path_out *out = &m->edges[edge].out[path];
    struct waits *w = &out->waits[high ? 0 : 1];

    if (out->half.brief_count > 0) {
        const bool late = owd_ns - out->half.brief_min > m->config.drain_ns[e->local];

        w->waited = (uint8_t)(w->waited + late - (w->bits >> 31));
        w->bits = w->bits << 1 | late;
        w->count = (uint8_t)(w->count < WAIT_MOST ? w->count + 1 : WAIT_MOST);
        w->at = now;
    }
}

bool trial_may_be_queue(const struct path_out *out, bool high, struct mono sent)
{
    const struct waits *w = &out->waits[high ? 0 : 1];

    return w->count < WAIT_LEAST || mono_sub(sent, w->at).ns > QUEUE_FRESH_NS ||
           w->waited * WAIT_SHARE > w->count;
}

/* ---- by class ---- */
static void note_fate(struct class_fates *f, struct mono now, bool high, bool lost)
{
    const uint32_t class = high ? 0 : 1;

    if (mono_sub(now, f->start).ns >= FATES_NS) {
        const bool old = mono_sub(now, f->start).ns >= 2 * FATES_NS;

        for (uint32_t i = 0; i < 2; i++) {
            f->sent[i][1] = old ? 0 : f->sent[i][0];
            f->lost[i][1] = old ? 0 : f->lost[i][0];
            f->sent[i][0] = f->lost[i][0] = 0;
        }
        f->start = now;
    }
    if (f->sent[class][0] < UINT16_MAX) {
        f->sent[class][0]++;
        f->lost[class][0] = (uint16_t)(f->lost[class][0] + lost);
    }
}

void trial_classes(const struct path_out *out, struct mono now, struct class_sums *sums)
{
    const struct class_fates *f = &out->fates;

    for (uint32_t i = 0; i < 2 && mono_sub(now, f->start).ns < 2 * FATES_NS; i++) {
        sums->sent[i] += f->sent[i][0] + f->sent[i][1];
        sums->lost[i] += f->lost[i][0] + f->lost[i][1];
    }
}

bool trial_is_job_class(const struct class_sums *sums)
{
    const double share = sums->sent[1] > 0 ? fmin(0.999, sums->lost[1] / sums->sent[1]) : 0;

    /* the two packets of a pair share their fate */
    return sums->lost[0] == 0 && sums->sent[0] / 2 * log(1 - share) < -LOCATE_LIMIT;
}

static void unplaced_end(struct path_out *out)
{
    if (out->unplaced[0].count >= LOST_LEAST) {
        out->unplaced[1] = out->unplaced[0];
    }
    out->unplaced[0].count = 0;
}

/* No element can be blamed for a loss on an unknown way. */
static void note_unplaced(struct path_out *out, struct mono sent, bool lost)
{
    struct unplaced_run *r = &out->unplaced[0];

    if (!lost || (r->count > 0 && mono_sub(sent, r->last).ns >= FATES_NS)) {
        unplaced_end(out);
    }
    if (!lost || (out->signature != 0 && discovery_way_holds(out))) {
        return;
    }
    r->first = r->count == 0 ? sent : r->first;
    r->last = sent;
    r->count++;
}

bool trial_unplaced(const struct path_out *out, const struct locate_case *c)
{
    for (uint32_t i = 0; i < 2 && c->ended_high.ns != MONO_NEVER.ns; i++) {
        const struct unplaced_run *r = &out->unplaced[i];

        if (r->count >= LOST_LEAST && mono_sub(r->first, c->ended_high).ns <= TOUCH_NS &&
            mono_sub(c->began_low, r->last).ns <= TOUCH_NS) {
            return true;
        }
    }
    return false;
}

void trial_skip(struct mesh *m, int edge)
{
    struct mesh_edge *e = &m->edges[edge];

    for (uint8_t p = 0; p < EDGE_PATH_MAX; p++) {
        e->out[p].trials_judged = e->out[p].seq_next - 1;
    }
}

void trial_on_mask(struct mesh *m, struct mono now, int edge, const struct probe *probe)
{
    struct mesh_edge *e = &m->edges[edge];
    const uint8_t path = probe->heard.path;
    struct path_out *out = &e->out[path];
    const uint32_t newest = probe->heard.seq;
    const struct sent_slot *last = slot_of(out, newest);
    const struct nic *nic = &m->nics[e->local];
    const int64_t now_us = now.ns / NS_PER_US;

    if (probe->late || mesh_is_late(m, now) || !last || (nic->carrier_known && !nic->carrier)) {
        out->trials_judged = newest;
        return;
    }
    if (seq_sub(newest, out->trials_judged) >= MASK_BITS) {
        out->trials_judged = newest - MASK_BITS;
    }
    for (; seq_sub(newest, out->trials_judged) > 0; out->trials_judged++) {
        const uint32_t seq = out->trials_judged + 1;
        const struct sent_slot *slot = slot_of(out, seq);

        if (slot && last->at_us - slot->at_us < SETTLE_US) {
            return;
        }
        if (!slot) {
            continue;
        }
        const int64_t age_us = (uint32_t)now_us - slot->at_us; /* modulo 2^32 */
        const struct mono sent = {(now_us - age_us) * NS_PER_US};
        const bool lost = (probe->received & (1u << (newest - seq))) == 0;

        note_fate(&out->fates, now, slot->high, lost);
        if (lost && trial_may_be_queue(out, slot->high, sent)) {
            continue;
        }
        note_unplaced(out, sent, lost);
        if (slot->at_us - out->trial_us < TRIAL_US) {
            continue;
        }
        out->trial_us = slot->at_us;
        mesh_tell_trial(m, edge, path, sent, lost);
    }
}
