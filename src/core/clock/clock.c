/* clock.c: the member: events in, ticks, phases and status, decisions out. */
#include "core/clock/clock_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cache.h"
#include "stats/sample.h"
#include "wire/linear_map.h"

/* When parts of a fleet meet again, each part moves towards the other, and sees the other's moves a tick or two late. With a gain
 * K for both, the difference follows e' = e - 2 K e(two ticks ago), which settles only for 2 K < 0.62. From the doubts alone K
 * would be 1: the parts would exchange places at each tick, and their rates would run away. */
#define GIVE_WAY          3 /* K = 1 / (1 + 3) */
#define HOLD_UNKNOWN_NS   (3600 * NS_PER_S)
#define HOLD_REACQUIRE_NS (60 * NS_PER_S)
#define HOLD_H_NS_MAX     BOUND_H_NS_MAX
#define JOINING_PEERS     2
/* no packet is later than so many maps, a little more than a second */
#define MAPS_LATE 64
/* the share of a rate's allowed error that steering may use; the rest belongs to the oscillator */
#define STEERED_SHARE 0.25
#define LINE_CALM_NS  20e3
#define QUEUE_SIGMAS  4 /* not the gate: a host that took queues for noise has a wide gate */

/* -- decisions out
 * ---------------------------------------------------------------------------------------- */

void clock_push(struct clock *c, struct clock_action action)
{
    if (c->action_count == CLOCK_ACTIONS_MAX) {
        c->action_first = (c->action_first + 1) % CLOCK_ACTIONS_MAX;
        c->action_count--;
    }
    ASSERT(c->action_count < CLOCK_ACTIONS_MAX);
    c->actions[(c->action_first + c->action_count++) % CLOCK_ACTIONS_MAX] = action;
}

bool clock_next_action(struct clock *c, struct clock_action *ret_action)
{
    if (c->action_count > 0) {
        *ret_action = c->actions[c->action_first];
        c->action_first = (c->action_first + 1) % CLOCK_ACTIONS_MAX;
        c->action_count--;
        return true;
    }
    if (c->publish) {
        c->publish = false;
        *ret_action = (struct clock_action){.kind = CLOCK_ACTION_PUBLISH, .edge = -1};
        return true;
    }
    return false;
}

/* -- the map
 * ---------------------------------------------------------------------------------------------- */

static void set_map(struct clock *c, struct nic_time r, int64_t x_ns, double fraction, double y)
{
    /* peers use these values */
    ASSERT(isfinite(fraction) && fabs(fraction) < 0x1p62 && isfinite(y));
    const double whole = floor(fraction);
    double part = floor((fraction - whole) * 0x1p32 + 0.5) * 0x1p-32;

    x_ns += (int64_t)whole;
    if (part >= 1) {
        part -= 1;
        x_ns++;
    }
    y = fmin(CLOCK_RATE_MAX, fmax(-CLOCK_RATE_MAX, y));
    c->map = (struct clock_map){r, x_ns, part, floor(y * 0x1p42 + 0.5) * 0x1p-42};
    c->map_seq++;
}

void clock_move(struct clock *c, struct nic_time r, double dx_ns, double dy)
{
    const double moved = c->map.x_fraction + c->map.y * (double)(r.ns - c->map.r.ns) + dx_ns;

    set_map(c, r, c->map.x_ns, moved, c->map.y + dy);
}

void clock_jump(struct clock *c, int64_t dx_ns)
{
    set_map(c, c->map.r, c->map.x_ns + dx_ns, c->map.x_fraction, c->map.y);
}

/* Steering is a rate that all members apply alike, once. If x were moved at each tick instead, each member would see all others
 * run fast, and the rates would run away. A member that has just synchronised took this rate with the others' maps. */
static void follow_steer(struct clock *c)
{
    if (c->phase != CLOCK_TRACK) {
        c->steered_known = false;
        return;
    }
    if (c->steered_known && c->steer != c->steered) {
        clock_move(c, c->map.r, 0, c->steer - c->steered);
    }
    c->steered = c->steer;
    c->steered_known = true;
}

/* -- phases
 * -----------------------------------------------------------------------------------------------
 */

void clock_set_phase(struct clock *c, enum clock_phase phase)
{
    if (c->phase >= CLOCK_TRACK && phase < CLOCK_TRACK && bound_rate_held(c)) {
        c->usual_y = c->map.y;
    }
    c->phase = phase;
    c->phase_since = c->now;
    c->rounds = c->calm = 0;
    c->step_ticks = c->apart_ticks = 0;
    c->narrow = false;
    c->ever_tracked |= phase == CLOCK_TRACK;
}

void clock_disrupt(struct clock *c, struct span hold)
{
    const int64_t until = c->now.ns + hold.ns;

    c->disrupted_by = c->disrupted ? c->disrupted_by : CLOCK_FAULT_NONE;
    c->disrupted = true;
    if (until > c->disrupted_until.ns) {
        c->disrupted_until.ns = until;
    }
    c->h_known = false; /* no longer valid */
    anchor_forget_peers(c);
    c->tight = c->core = false;
    c->tight_ticks = 0;
}

/* Earlier stamps belong to another clock, the own one or the peer's. */
void clock_forget_stamps_of(struct clock *c, struct clock_edge *e)
{
    e->written = e->consumed = e->solved_written = 0;
    e->solved.valid = false;
    memset(e->buckets, 0, sizeof(e->buckets));
    drift_init(&e->drift);
    memset(e->coarse_seen, 0, sizeof(e->coarse_seen));
    memset(e->raw_seen, 0, sizeof(e->raw_seen));
    e->has_e = e->has_raw = e->bounded = e->proven = e->silent = false;
    e->not_before_ns = c->now.ns;
    e->told_at.ns = 0; /* its age is not known */
    for (int p = 0; p < CLOCK_PATH_MAX; p++) {
        e->paths[p].low[0] = e->paths[p].low[1] = INFINITY;
        e->paths[p].way_at[0] = e->paths[p].way_at[1] = e->paths[p].round_at = 0;
    }
}

/* Stamps of the other edges to this peer are of the same clock. */
void clock_forget_stamps_of_peer(struct clock *c, const struct clock_edge *e)
{
    for (int i = e->leader; i >= 0; i = c->edges[i].next_of_peer) {
        clock_forget_stamps_of(c, &c->edges[i]);
    }
}

void clock_forget_stamps(struct clock *c)
{
    for (int i = 0; i < c->capacity; i++) {
        if (c->edges[i].used) {
            clock_forget_stamps_of(c, &c->edges[i]);
        }
    }
}

void clock_acquire_again(struct clock *c)
{
    clock_forget_stamps(c);
    clock_set_phase(c, CLOCK_ACQUIRE);
}

void clock_doubt_rate(struct clock *c)
{
    c->own_rate.since = c->now;
    c->usual_y = 0;
}

void clock_on_hops(struct clock *c, uint8_t hops)
{
    c->config.hops = hops;
}

void clock_on_fault(struct clock *c, struct nic_time now, enum clock_fault fault)
{
    c->now = now;
    c->fault = fault;
    c->fault_seen = true;
    clock_disrupt(c, span_ns(DISRUPT_NS));
    c->disrupted_by = fault;
    clock_forget_stamps(c);
    c->own_utc_known = false; /* it was reported at a time of another clock */
    if (fault != CLOCK_FAULT_STEP && fault != CLOCK_FAULT_SUSPEND) {
        clock_doubt_rate(c);
    }
    if (c->ever_tracked) {
        clock_set_phase(c, fault == CLOCK_FAULT_GUARD ? CLOCK_ACQUIRE : CLOCK_COLD);
        if (fault != CLOCK_FAULT_GUARD) {
            c->settled = false;
        }
    }
    c->deadline = now;
    c->publish = true;
}

void clock_on_steered(struct clock *c, struct nic_time now, double ppb)
{
    c->now = now;
    if (ppb == 0 || fabs(ppb) > STEERED_SHARE * c->config.rate_limit_ppm * 1000) {
        clock_on_fault(c, now, CLOCK_FAULT_STEP);
        return;
    }
    clock_move(c, now, 0, -ppb * 1e-9); /* the clock runs faster, so the map's rate becomes lower */
    c->publish = true;
}

void clock_on_guard(struct clock *c, struct nic_time now, double guard_ns, double guard_rate)
{
    c->guard_seen = true;
    c->guard_at = now;
    c->guard_ns = guard_ns;
    c->guard_rate = guard_rate;
}

/* -- making a member ------------------------------------------------------------------------------------------- */

static void set_defaults(struct clock_config *g)
{
    const bool hardware = g->stamps == CLOCK_STAMPS_HARDWARE;

    g->stamp_noise_ns = g->stamp_noise_ns > 0 ? g->stamp_noise_ns : hardware ? 20 : 300;
    g->edge_limit_ns = g->edge_limit_ns > 0 ? g->edge_limit_ns : hardware ? 8000 : 50000;
    g->hops = g->hops > 0 ? g->hops : 4;
    g->stamp_error_ns = g->stamp_error_ns > 0 ? g->stamp_error_ns
                        : hardware            ? (int64_t)(6 * sqrt(2) * g->stamp_noise_ns)
                                              : 20000;
    g->rate_limit_ppm = g->rate_limit_ppm > 0 ? g->rate_limit_ppm : 2;
    g->rate_drift_ppb_s = g->rate_drift_ppb_s > 0 ? g->rate_drift_ppb_s : 100;
}

struct clock *clock_new(const struct clock_config *config, struct nic_time now)
{
    int64_t wall_ns;

    if (config->edge_capacity > MEMBER_EDGE_MAX || !isfinite(config->stamp_noise_ns) ||
        __builtin_add_overflow(config->wall_minus_ns, now.ns, &wall_ns) || wall_ns < -TIME_NS_MAX ||
        wall_ns > TIME_NS_MAX) {
        return NULL;
    }
    struct clock *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        return NULL;
    }
    const size_t room = (size_t)config->edge_capacity + 2; /* the own value beside the edges' */
    c->config = *config;
    set_defaults(&c->config);
    c->capacity = config->edge_capacity;
    c->edges = calloc(room, sizeof(*c->edges));
    c->values = calloc(room, sizeof(*c->values));
    c->weights = calloc(room, sizeof(*c->weights));
    c->order = calloc(room, sizeof(*c->order));
    if (c->edges == NULL || c->values == NULL || c->weights == NULL || c->order == NULL) {
        clock_free(c);
        return NULL;
    }
    prng_init(&c->prng, hash_u64(config->seed, config->member));
    noise_init(&c->noise, c->config.stamp_noise_ns * sqrt(2),
               config->stamps == CLOCK_STAMPS_SOFTWARE);
    bank_init(&c->bank, config->wander_ppb);
    bank_start(&c->bank, 50.0 * 50.0, 100.0 * 100.0);
    c->now = c->started = c->ticked = c->noise_at = c->phase_since = c->deadline = now;
    c->map.r = now;
    c->map.x_ns = config->wall_minus_ns;
    c->sigma_e_ns = c->config.stamp_noise_ns;
    timeline_found(c, now);
    return c;
}

void clock_free(struct clock *c)
{
    if (c != NULL) {
        free(c->edges);
        free(c->values);
        free(c->weights);
        free(c->order);
        free(c);
    }
}

/* -- edges
 * ------------------------------------------------------------------------------------------------
 */

static void find_leaders(struct clock *c)
{
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (!e->used) {
            continue;
        }
        e->leader = e->host_leader = i;
        e->next_of_peer = -1;
        for (int j = i - 1; j >= 0; j--) {
            const struct clock_edge_config *other = &c->edges[j].config;
            if (c->edges[j].used && other->peer == e->config.peer) {
                c->edges[j].next_of_peer = e->leader == i ? i : c->edges[j].next_of_peer;
                e->leader = e->host_leader = j;
            } else if (c->edges[j].used && other->host == e->config.host && other->host != 0) {
                e->host_leader = j;
            }
        }
    }
}

static void count_edges(struct clock *c)
{
    c->edge_count = 0;
    for (int i = 0; i < c->capacity; i++) {
        c->edge_count += c->edges[i].used && !c->edges[i].config.witness;
    }
    find_leaders(c);
    consensus_count(c);
}

int clock_edge_add(struct clock *c, struct nic_time now, const struct clock_edge_config *config)
{
    int slot = -1;

    if (config->path_count == 0 || config->path_count > CLOCK_PATH_MAX ||
        config->peer == c->config.member || config->delay_ns_min < 0) {
        return -EINVAL;
    }
    for (int i = c->capacity - 1; i >= 0; i--) {
        const struct clock_edge *e = &c->edges[i];
        if (!e->used) {
            slot = i;
        } else if (nic_id_equal(e->config.local_nic, config->local_nic) &&
                   nic_id_equal(e->config.peer_nic, config->peer_nic) &&
                   e->config.peer == config->peer) {
            return -EEXIST;
        }
    }
    if (slot < 0) {
        return -ENOSPC;
    }
    c->now = now;
    c->edges[slot] = (struct clock_edge){
        .used = true, .config = *config, .added = now, .live_at = now, .not_before_ns = INT64_MIN};
    drift_init(&c->edges[slot].drift);
    count_edges(c);
    return slot;
}

void clock_edge_remove(struct clock *c, struct nic_time now, int edge)
{
    if (edge < 0 || edge >= c->capacity || !c->edges[edge].used) {
        return;
    }
    c->now = now;
    c->edges[edge].used = false;
    count_edges(c);
}

void clock_edge_repath(struct clock *c, struct nic_time now, int edge, uint8_t path)
{
    if (edge < 0 || edge >= c->capacity || !c->edges[edge].used ||
        path >= c->edges[edge].config.path_count) {
        return;
    }
    c->now = now;
    const struct path *was = &c->edges[edge].paths[path];
    c->edges[edge].paths[path] = (struct path){
        .learning_since = now, .was_m_ns = was->known && !was->unsure ? was->m_ns : was->was_m_ns};
}

/* -- facts in
 * --------------------------------------------------------------------------------------------- */

/* The peer's maps count from zero again and belong to another time: its clock isn't the one of the stamps so far. */
static bool began_anew(const struct clock_published *was, const struct clock_published *is)
{
    return fabs(clock_map_difference(&is->map, is->map.r, &was->map, is->map.r)) > ELSEWHERE_NS;
}

/* Uses a header of this edge's peer. */
static void hear_by(struct clock *c, struct nic_time now, struct clock_edge *e,
                    const struct clock_published *heard)
{
    /* the maps by which it is older; a large number: it is newer */
    const uint32_t older = e->peer.map_seq - heard->map_seq;
    if (e->heard && older - 1 < MAPS_LATE && now.ns - e->heard_at.ns < NS_PER_S) {
        return; /* an older header that arrived late over another path */
    }
    if (e->heard && older != 0 && older < UINT32_MAX / 2 && began_anew(&e->peer, heard)) {
        clock_forget_stamps_of(c, e);
    }
    if (e->heard && e->level_known && heard->phase == CLOCK_TRACK) {
        const double moved =
            clock_map_difference(&heard->map, heard->map.r, &e->peer.map, heard->map.r);
        if (!e->tracking || fabs(moved) >= 1e4) {
            contain_move(e, moved);
            e->expected_ns =
                e->tracking ? e->expected_ns : e->level_ns; /* until now its map was not a time */
        } else {
            edge_move(c, e, moved);
        }
    }
    bound_hear(e, heard, now);
    if (e->tracking && heard->phase < CLOCK_TRACK) { /* its clock may be broken */
        drift_init(&e->drift);
    }
    if ((heard->phase == CLOCK_TRACK) != e->tracking) {
        e->tracking = !e->tracking;
        e->tracking_since = now;
    }
    e->peer = *heard;
    e->heard = true;
    e->heard_at = now;
    anchor_hear(e, now, heard);
}

/* The header describes the peer's clock, whichever edge brought it. All edges to that peer use the same map. */
void clock_on_peer(struct clock *c, struct nic_time now, int edge,
                   const struct clock_published *heard)
{
    if (edge < 0 || edge >= c->capacity || !c->edges[edge].used ||
        !(fabs(heard->map.y) <= CLOCK_RATE_MAX) ||
        !(heard->map.x_fraction >= 0 && heard->map.x_fraction < 1) || heard->phase > CLOCK_HOLD) {
        c->peers_refused++;
        return;
    }
    c->now = now;
    for (int i = c->edges[edge].leader; i >= 0; i = c->edges[i].next_of_peer) {
        hear_by(c, now, &c->edges[i], heard);
    }
}

void clock_on_point(struct clock *c, struct nic_time now, const struct clock_point *point)
{
    c->now = now;
    if (point->edge < 0 || point->edge >= c->capacity || !c->edges[point->edge].used ||
        point->local.ns < c->edges[point->edge].not_before_ns ||
        !edge_take_point(c, &c->edges[point->edge], point)) {
        c->points_refused++;
        return;
    }
    c->points++;
}

/* -- a tick of tracking
 * ----------------------------------------------------------------------------------- */

static void learn_noise(struct clock *c, struct nic_time now)
{
    if (now.ns - c->noise_at.ns >= NS_PER_S) {
        c->noise_at = now;
        noise_refresh(&c->noise, c->now.ns - c->phase_since.ns < EARLY_NS ? 0.7 : 0.92);
        if (c->now.ns - c->phase_since.ns < EARLY_NS) {
            bank_forget(&c->bank); /* the errors of the start show nothing about wander */
        }
    }
}

/* How far this member is off by the fastest packets. If they waited, too, this is too large; nothing shows whether they did. */
static double typical_raw_ns(struct clock *c)
{
    int count = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (edge_usable(c, e) && !e->config.witness && e->has_raw) {
            sample_insert(c->values, (size_t)count++, fabs(e->raw_ns));
        }
    }
    return count > 0 ? c->values[count / 2] : 0;
}

/* Paths that take longer than before, by less than a queue would show. It may be one direction or both: a member can't know.
 * Paths that share a part of the fabric grow together, and then their edges agree. So it isn't divided by the number of edges. */
static double paths_risen_ns(struct clock *c)
{
    int count = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        double sum = 0;
        int known = 0;
        if (!edge_usable(c, e) || e->config.witness) {
            continue;
        }
        for (int p = 0; p < e->config.path_count; p++) {
            known += e->paths[p].known;
            sum += path_risen_ns(&e->paths[p]);
        }
        sample_insert(c->values, (size_t)count++, known > 0 ? sum / known : 0);
    }
    return count > 0 ? fmax(0, c->values[3 * (count - 1) / 4]) : 0;
}

static void find_queues(struct clock *c)
{
    int count = 0, over = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        double worst = 0;
        if (!edge_usable(c, e) || e->config.witness) {
            continue;
        }
        for (int p = 0; p < e->config.path_count; p++) {
            worst = fmax(worst, e->paths[p].known ? e->paths[p].excess_ns : 0);
        }
        over += worst > QUEUE_SIGMAS * noise_sigma_ns(&c->noise);
        c->values[count++] = worst;
    }
    c->queued = count > 0 && 2 * over >= count;
    c->queue_ns = 0;
    if (c->queued) {
        (void)shortest_half(c->values, count, count);
        c->queue_ns = c->values[count / 2] / 2;
    }
    c->queue_ns = fmax(c->queue_ns, paths_risen_ns(c));
    if (c->peers_in_gate < c->needed) {
        c->queue_ns += typical_raw_ns(c);
    }
}

/* Prefetches an edge's data for edge_track() and bound_tick(), while another edge is processed. An agent does other things
 * between ticks, and many members in one process do even more. */
static void fetch_edge(const struct clock *c, int edge)
{
    const struct clock_edge *e = &c->edges[edge];

    if (edge < c->capacity) {
        cache_fetch(e, offsetof(struct clock_edge, ring));
        cache_fetch(&e->ring[(e->written - 4) % RING_PACKETS], 4 * sizeof(struct packet));
        cache_fetch(e->buckets,
                    offsetof(struct clock_edge, solved) - offsetof(struct clock_edge, buckets));
        cache_fetch(&e->solved_written, sizeof(*e) - offsetof(struct clock_edge, solved_written));
    }
}

static void track(struct clock *c, struct nic_time now, double dt_s)
{
    double dx, dy;

    bank_predict(&c->bank, dt_s, !c->sparse);
    c->deviation_ns = bank_deviation_ns(&c->bank);
    for (int i = 0; i < c->capacity; i++) {
        fetch_edge(c, i + 1);
        c->edges[i].proven &= dt_s <= BOUND_HORIZON_S;
        if (edge_usable(c, &c->edges[i])) {
            edge_track(c, &c->edges[i], now);
        } else {
            c->edges[i].has_e = c->edges[i].has_raw = false;
            c->edges[i].consumed = c->edges[i].written;
        }
    }
    if (disturbance_find_step(c)) {
        disturbance_take_step(c, now);
        return;
    }
    if (disturbance_apart(c)) {
        disturbance_part(c);
        return;
    }
    consensus_gather(c, now);
    if (c->step_ticks > 0 || c->apart_ticks > 0) {
        c->has_mean = false; /* most edges show a shift now, which must not be averaged */
    }
    if (consensus_suffices(c)) {
        const double theirs = c->regained ? GIVE_WAY * c->deviation_ns * c->deviation_ns : 0;

        bank_update(&c->bank, c->mean_ns, c->mean_var + theirs, c->mean_age_s, !c->sparse);
    }
    consensus_levels(c, now, dt_s);
    bank_mean(&c->bank, &dx, &dy);
    const double dx_most = CLOCK_MOVE_NS_MAX, dy_most = CLOCK_RATE_STEP_MAX * 1e9;
    dx = fmin(dx_most, fmax(-dx_most, dx));
    dy = fmin(dy_most, fmax(-dy_most, dy));
    double more_dx, more_dy;
    consensus_follow(c, dt_s, &more_dx, &more_dy);
    more_dx = fmin(dx_most - dx, fmax(-dx_most - dx, more_dx)); /* both together are one move */
    more_dy = fmin(dy_most - dy, fmax(-dy_most - dy, more_dy));
    clock_move(c, now, dx + more_dx, (dy + more_dy) * 1e-9);
    for (int i = 0; i < c->capacity; i++) {
        edge_move(c, &c->edges[i], -dx - more_dx);
    }
    bank_shift(&c->bank, dx, dy);
    disturbance_merge(c, now);
    learn_noise(c, now);
    disturbance_check_lost(c, dt_s);
    find_queues(c);
    liar_tick(c, now, dt_s);
}

/* -- status
 * -----------------------------------------------------------------------------------------------
 */

/* After a warm start: true until three quarters of the neighbours have been heard and agree. */
static bool restored_wait(struct clock *c)
{
    int agree = 0;

    for (int i = 0; i < c->capacity && c->restored; i++) {
        const struct clock_edge *e = &c->edges[i];
        agree += e->used && !e->config.witness && e->in_gate &&
                 e->packets_in_gate + e->packets_alike > 0;
    }
    if (4 * agree >= 3 * c->edge_count && c->edge_count > 0) {
        c->restored = false;
    }
    return c->restored;
}

static enum clock_status judge_status(struct clock *c, struct nic_time now)
{
    const bool alone = c->config.alone_is_fine && c->edge_count == 0;

    if (c->disrupted && now.ns >= c->disrupted_until.ns && c->phase == CLOCK_TRACK &&
        c->vouching >= c->needed && fabs(line_minus_map(c, now)) < LINE_CALM_NS) {
        c->disrupted = false;
    }
    if (alone) {
        return CLOCK_SYNCED;
    }
    if (!c->ever_tracked) {
        return CLOCK_UNKNOWN;
    }
    if (c->disrupted) {
        return CLOCK_DISRUPTED;
    }
    if (c->phase == CLOCK_TRACK && c->vouching >= c->needed && c->settled && c->h_known &&
        !restored_wait(c) && (c->core || now.ns - c->h_at.ns < NS_PER_S)) {
        c->hold_since = now;
        return CLOCK_SYNCED;
    }
    if (now.ns - c->hold_since.ns > HOLD_UNKNOWN_NS || !c->h_known ||
        bound_aged_ns(c, now) > HOLD_H_NS_MAX) {
        return c->status == CLOCK_SYNCED ? CLOCK_HOLDOVER
               : c->h_known              ? CLOCK_UNKNOWN
               : c->settled              ? CLOCK_HOLDOVER
                                         : CLOCK_UNKNOWN;
    }
    return CLOCK_HOLDOVER;
}

static void update_status(struct clock *c, struct nic_time now)
{
    const enum clock_status status = judge_status(c, now);

    if (status != c->status) {
        clock_push(c, (struct clock_action){.kind = CLOCK_ACTION_STATUS,
                                            .edge = -1,
                                            .status = status,
                                            .was = c->status,
                                            .fault = c->disrupted_by});
        c->status = status;
    }
}

/* Of one or two peers each joins any single member that tracks (acquire.c). If this member learned its time anew, too, it would
 * meet them halfway, though its own time is right. If nothing shows that its own clock ran on, it may be the one that broke. */
bool clock_awaited(const struct clock *c)
{
    if (c->phase < CLOCK_TRACK || c->disrupted || c->live == 0 || c->peers_chosen > JOINING_PEERS ||
        c->now.ns - c->hold_since.ns > HOLD_REACQUIRE_NS || !disturbance_vouched(c)) {
        return false;
    }
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (edge_live(c, e) && !e->config.witness && e->peer.phase >= CLOCK_TRACK) {
            return false;
        }
    }
    return true;
}

/* Without neighbours: keeps the rate, and reports HOLDOVER. When they are back: goes on, or starts anew after a long time. */
static void update_hold(struct clock *c, struct nic_time now)
{
    const bool awaited = clock_awaited(c);

    if (c->phase == CLOCK_TRACK && c->in_gate == 0 && c->track_peers == 0 && !awaited &&
        now.ns - c->phase_since.ns > 3 * NS_PER_S) {
        clock_set_phase(c, CLOCK_HOLD);
    } else if (c->phase == CLOCK_HOLD && c->live > 0) {
        const bool long_gone = now.ns - c->hold_since.ns > HOLD_REACQUIRE_NS;
        if (long_gone || (c->track_peers == 0 && !awaited)) {
            clock_acquire_again(c);
        } else {
            clock_set_phase(c, CLOCK_TRACK);
        }
    }
}

static void run_phase(struct clock *c, struct nic_time now, double dt_s)
{
    switch (c->phase) {
    case CLOCK_COLD:
        coarse_round(c, now);
        break;
    case CLOCK_ACQUIRE:
        acquire_round(c, now);
        break;
    case CLOCK_TRACK:
        track(c, now, dt_s);
        break;
    case CLOCK_HOLD:
        bank_predict(&c->bank, dt_s, true);
        break;
    }
}

void clock_tick(struct clock *c, struct nic_time now)
{
    const int64_t elapsed = now.ns - c->ticked.ns;

    if (elapsed < 0) {
        c->now = now;
        c->ticked = now;
        clock_on_fault(c, now, CLOCK_FAULT_STEP);
        return;
    }
    const double dt_s = (double)elapsed * 1e-9;
    c->now = now;
    c->ticked = now;
    consensus_count(c);
    rates_tick(c, dt_s);
    run_phase(c, now, dt_s);
    follow_steer(c);
    update_hold(c, now);
    timeline_tick(c, now);
    if (c->ever_tracked) {
        line_follow(c, now);
    }
    bound_tick(c, now);
    anchor_tick(c, now);
    update_status(c, now);
    c->publish = true;
    const bool fast = c->phase == CLOCK_COLD || c->phase == CLOCK_ACQUIRE;
    c->deadline.ns = now.ns + (fast ? CLOCK_COARSE_TICK_NS : CLOCK_TICK_NS);
}

struct nic_time clock_deadline(const struct clock *c)
{
    return c->deadline;
}
