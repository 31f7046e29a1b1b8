/* disturbance.c: what a member does when its edges show a disturbance: its own clock stepped, two parts of the fleet met again,
 * or it is lost. */
#include <math.h>
#include <stdlib.h>

#include "core/clock/clock_private.h"

#define STEP_TICKS    2
#define PROVING_PEERS 2
/* if there are fewer edges than a step needs: more than one packet of each */
#define APART_TICKS     4
#define STEP_AGAIN_NS   (3 * NS_PER_S)
#define STEPS_REACQUIRE 3
#define SCATTER         6.0
#define SCATTER_GAIN    0.02
#define CALM_NS         (1 * NS_PER_S)
#define CALM_TICKS      10 /* ticks in which it must be calm: a starved member has few ticks */
#define UNEASY_NS       (100 * NS_PER_MS)
#define VOUCHED_NS      (NS_PER_S / 2)
#define MERGE_TICKS     10
/* a third: the smaller of two parts sees more of the other, and moves there */
#define MERGE_SHARE   3
#define BACK_NS       (2 * NS_PER_S)
#define LOST_SCALE    6.0
#define LOST_S        2.0
#define LOST_AGAIN_NS (5 * NS_PER_S)

bool disturbance_watched(const struct clock *c)
{
    return c->settled && c->now.ns - c->phase_since.ns >= EARLY_NS;
}

double disturbance_step_limit(const struct clock *c)
{
    return 8 * c->deviation_ns + 100 + 6 * noise_sigma_ns(&c->noise);
}

/* Its packets show by how much it is off since its level was learned. */
static bool shows_shift(const struct clock *c, const struct clock_edge *e)
{
    return edge_usable(c, e) && !e->parked && e->false_rate == 0 && e->has_raw && e->level_known &&
           !(e->returned && c->now.ns - e->returned_at.ns < BACK_NS);
}

static bool shows_step(const struct clock *c, const struct clock_edge *e)
{
    return shows_shift(c, e) &&
           fabs(edge_shift(e->raw_low, e->level_ns)) > disturbance_step_limit(c);
}

/* It shows a step to the same side as step_ns, at least half as large, and stamps allow it. So neither a liar's value nor a queue
 * counts for what others show. */
static bool shows_as_much(const struct clock *c, const struct clock_edge *e)
{
    if (!shows_step(c, e)) {
        return false;
    }
    const double off = edge_shift(e->raw_low, e->level_ns);
    return off * c->step_ns > 0 && fabs(off) >= fabs(c->step_ns) / 2 &&
           contain_allows(e, e->level_ns + off);
}

/* The error of this member by each edge, sorted, in c->values. Levels are slow, so after a step they still have their values from
 * before. */
static int sorted_shifts(struct clock *c, double limit, int *ret_out, int *ret_possible)
{
    int count = 0;

    *ret_out = *ret_possible = 0;
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (e->config.witness || !shows_shift(c, e)) {
            continue;
        }
        const double off = edge_shift(e->raw_low, e->level_ns);
        c->values[count++] = off;
        *ret_out += fabs(off) > limit;
        *ret_possible += fabs(off) > limit && contain_allows(e, e->level_ns + off);
    }
    if (count > 0) {
        (void)shortest_half(c->values, count, count); /* sorts */
    }
    return count;
}

static void calm_ends(struct clock *c)
{
    c->calm_since = c->now;
    c->calm_ticks = 0;
}

/* A clock steps after a calm time. A map that drifts off, because its member starves or learned a wrong rate, first shows a small
 * error, scatter, or disagreement of the edges. split: many of them are off. */
static void note_calm(struct clock *c, double median, double limit, bool split)
{
    const double clipped = fmin(limit, fabs(median));

    c->shift_ms += SCATTER_GAIN * (clipped * clipped - c->shift_ms);
    if (fabs(median) < limit / 2 && !split) {
        c->uneasy = false;
        c->calm_ticks += c->calm_ticks < CALM_TICKS;
    } else if (!c->uneasy) {
        c->uneasy = true;
        c->uneasy_since = c->now;
    } else if (c->now.ns - c->uneasy_since.ns >= UNEASY_NS) {
        calm_ends(c);
    }
}

/* So few edges can't show whose clock stepped. But this member and all its peers are apart by more than any queue explains.
 * Averaging would move both at the rate limit. */
static void note_apart(struct clock *c, bool apart)
{
    c->apart_ticks = apart ? c->apart_ticks + 1 : 0;
}

bool disturbance_apart(const struct clock *c)
{
    return c->apart_ticks >= APART_TICKS;
}

/* All peers and this member learn their place anew. */
void disturbance_part(struct clock *c)
{
    clock_disrupt(c, span_ns(DISRUPT_NS));
    clock_acquire_again(c);
}

/* This member is off: nearly all edges show it, on one side, in two consecutive ticks. More peers than may lie show as much. */
bool disturbance_find_step(struct clock *c)
{
    const double limit = disturbance_step_limit(c);
    int out, possible;

    if (!disturbance_watched(c)) {
        calm_ends(c);
        return false;
    }
    int count = sorted_shifts(c, limit, &out, &possible);
    /* A shift that stamps exclude is a queue. A clock that stepped leaves the bounds, and then nothing is excluded. */
    if (2 * out > count && possible < out) {
        bound_edges(c, c->now);
        count = sorted_shifts(c, limit, &out, &possible);
        out = possible;
    }
    const int least = c->peers_chosen < 5 ? (c->peers_chosen < 3 ? 3 : c->peers_chosen) : 5;
    const double low = count > 0 ? c->values[count / 5] : 0,
                 high = count > 0 ? c->values[count - 1 - count / 5] : 0;
    const bool aside = low > limit || high < -limit;
    /* each edge shows at least so much, and at most a fifth lie */
    c->step_ns = low > 0 ? high : low;
    note_apart(c, c->live < least && 2 * out > count && aside &&
                      consensus_peers(c, shows_step) > c->liars_max);
    if (count < least || 5 * out < 4 * count || !aside ||
        consensus_peers(c, shows_as_much) <= c->liars_max) {
        if (c->step_ticks > 0) { /* it looked like a step, but was none */
            calm_ends(c);
        }
        c->step_ticks = 0;
        note_calm(c, count > 0 ? c->values[count / 2] : 0, limit, 4 * out > count);
        return false;
    }
    if (c->step_ticks == 0) {
        c->step_sudden = c->now.ns - c->calm_since.ns >= CALM_NS && c->calm_ticks >= CALM_TICKS;
    }
    return ++c->step_ticks >= STEP_TICKS;
}

bool disturbance_vouched(const struct clock *c)
{
    return c->config.guard_is_own && c->guard_seen && c->now.ns - c->guard_at.ns < VOUCHED_NS;
}

/* Edges to one peer are between the same two clocks. So with any number of them a single peer can't show whose clock stepped. */
static bool peers_prove(const struct clock *c)
{
    return consensus_peers(c, shows_as_much) >= PROVING_PEERS;
}

/* Decides whether the clock can have stepped. It did not if it was off before, if it is off by as much all the time, or if a
 * second clock shows that it ran on: then the map was wrong. For a clock that did step, its guard reports it
 * (CLOCK_FAULT_GUARD). */
static bool may_have_stepped(const struct clock *c)
{
    return c->step_sudden && fabs(c->step_ns) > SCATTER * sqrt(c->shift_ms) &&
           !disturbance_vouched(c);
}

/* Levels are slow: they are those from before the step. But an edge that showed the step long before the others may follow it
 * already, and its level is on its way there. */
static void restore_level(const struct clock *c, struct clock_edge *e, double step_ns)
{
    if (fabs(e->expected_ns - e->level_ns) > disturbance_step_limit(c) &&
        fabs(e->expected_ns - step_ns) < fabs(e->level_ns)) { /* it followed this step */
        e->level_ns = e->expected_ns - step_ns;
    }
    e->expected_ns = e->level_ns;
}

void disturbance_take_step(struct clock *c, struct nic_time now)
{
    const int64_t whole = (int64_t)c->step_ns;

    c->steps_running = now.ns - c->stepped_at.ns < STEP_AGAIN_NS ? c->steps_running + 1 : 1;
    c->stepped_at = now;
    const bool possible = may_have_stepped(c), stepped = possible && peers_prove(c);
    const double drifted_s = fmax(0.05, (double)(now.ns - c->uneasy_since.ns) * 1e-9);
    /* no two clocks differ more; a covariance of 10^29 would lose its sign in the next update */
    const double rate_max = 2 * CLOCK_RATE_MAX * NS_PER_S;
    const double drift = !possible && c->uneasy ? c->step_ns / drifted_s : 0;
    const double rate = fmin(rate_max, fmax(-rate_max, drift));
    c->own_utc_known &= !possible;
    if (stepped) {
        c->steps++;
        c->fault = CLOCK_FAULT_STEP;
        c->fault_seen = true;
        clock_push(c, (struct clock_action){
                          .kind = CLOCK_ACTION_STEP, .edge = -1, .value_ns = c->step_ns});
    }
    calm_ends(c);
    clock_disrupt(c, span_ns(DISRUPT_NS));
    c->disrupted_by = stepped ? CLOCK_FAULT_STEP : c->disrupted_by;
    clock_jump(c, whole);
    clock_forget_stamps(c);
    for (int i = 0; i < c->capacity; i++) {
        restore_level(c, &c->edges[i], (double)whole);
    }
    c->step_ticks = 0;
    if (llabs((long long)whole) > (int64_t)ELSEWHERE_NS) {
        c->epoch++;
        line_restart(c, now);
        clock_push(c, (struct clock_action){.kind = CLOCK_ACTION_TIMELINE,
                                            .edge = -1,
                                            .timeline = c->timeline,
                                            .epoch = c->epoch});
    }
    bank_doubt(&c->bank, 200.0 * 200.0, fmax(100.0 * 100.0, rate * rate));
    if (c->steps_running >= STEPS_REACQUIRE) { /* it is a rate, not a step */
        clock_doubt_rate(c);
        clock_acquire_again(c);
    }
}

/* It is back from a silence, and shows that this member is off. */
static bool is_apart(const struct clock *c, const struct clock_edge *e)
{
    return edge_usable(c, e) && e->returned && !e->config.witness && e->has_raw && !e->silent &&
           !e->unsure && (e->out_since_s >= 0.3 || edge_elsewhere(e)) &&
           fabs(e->raw_ns) > noise_high_ns(&c->noise);
}

static bool near_part(const struct clock *c, double raw_ns)
{
    return fabs(raw_ns - c->part_ns) < fmax(2000, 0.1 * fabs(c->part_ns));
}

static bool is_of_part(const struct clock *c, const struct clock_edge *e)
{
    return is_apart(c, e) && near_part(c, e->raw_ns);
}

/* Two parts of the fleet meet again: many edges are off by the same amount. They are to more peers than may lie. */
void disturbance_merge(struct clock *c, struct nic_time now)
{
    int count = 0;

    for (int i = 0; i < c->capacity && c->regained; i++) {
        if (is_apart(c, &c->edges[i])) {
            c->values[count++] = c->edges[i].raw_ns;
        }
    }
    if (count <= c->liars_max || MERGE_SHARE * count < c->track_peers) {
        c->merge_ticks = 0;
        return;
    }
    const int keep = (4 * count + 4) / 5;
    int agree = 0;
    c->part_ns = shortest_half(c->values, count, keep);
    for (int i = 0; i < count; i++) {
        agree += near_part(c, c->values[i]);
    }
    if (agree < keep || consensus_peers(c, is_of_part) <= c->liars_max) {
        c->merge_ticks = 0;
        return;
    }
    if (++c->merge_ticks < MERGE_TICKS) {
        return;
    }
    c->merge_ticks = 0;
    clock_disrupt(c, span_ns(DISRUPT_NS));
    clock_acquire_again(c);
}

static bool measured(const struct clock *c, const struct clock_edge *e)
{
    return edge_usable(c, e) && e->in_gate;
}

/* True if the edge is measured, or shows no time and so contradicts nothing. */
static bool measured_or_silent(const struct clock *c, const struct clock_edge *e)
{
    const bool silent =
        e->level_known && e->out_since_s >= 1 && (e->silent || e->unsure || edge_held_up(e));

    return edge_usable(c, e) && (e->in_gate || silent);
}

/* The member is lost if its own edges disagree far more than the neighbours' do, or if most peers have no packets in gate, while
 * the neighbours track undisturbed. Then it learns offset and rate anew from them. */
void disturbance_check_lost(struct clock *c, double dt_s)
{
    const int tracking = consensus_peers(c, edge_usable), known = consensus_peers(c, measured);
    const int silent = consensus_peers(c, measured_or_silent) - known;
    const bool bad =
        (c->peers_in_gate + silent < c->needed &&
         c->scale_own_ns > fmax(LOST_SCALE * c->scale_ns, 60 + 3 * noise_sigma_ns(&c->noise))) ||
        2 * known < tracking - silent;
    const bool others = 4 * c->track_peers >= 3 * c->live && tracking >= c->needed;

    c->lost_s = bad && others ? c->lost_s + dt_s : 0;
    if (c->lost_s > LOST_S && c->now.ns - c->lost_at.ns > LOST_AGAIN_NS) {
        c->lost_s = 0;
        c->lost_at = c->now;
        noise_reshape(&c->noise, c->config.stamp_noise_ns * sqrt(2));
        clock_acquire_again(c);
    }
}
