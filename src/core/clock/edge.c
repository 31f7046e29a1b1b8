/* edge.c: one edge, tracking: packets in, one error of the peer's map against our own out, once a
 * tick.
 *
 * Coded pairs: two packets leave back to back and their stamps say which of the two was held up
 * longer; that one is dropped. What is left is judged by its innovation against the path's known
 * delay m and the edge's known level, and counts with the score of the learned density (noise.h). m
 * is learned from both directions together, so the edge lives on when one direction is lost. */
#include "core/clock/clock_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/sample.h"

#define M_FORGET       0.03 /* an update; there are two or three a second */
#define LEARN_NS       (1200 * NS_PER_MS)
#define WINDOW_NS      (1 * NS_PER_S)
#define OUT_S_MAX      2.0
#define SHIFT_LOW      0.6   /* of the gate's lower end, about three sigma */
#define EXCESS_S_MAX   600.0 /* a longer way around, not a queue */
#define GAP_NS_MAX     (10 * NS_PER_MS)
#define UNSURE_LEARN_S 3
#define ROUND_NS       (300 * NS_PER_MS)
#define JUMP_NS        (250 * NS_PER_MS)
#define SHAPE_NS       (1 * NS_PER_S) /* the start's errors aren't the packets' */
#define STAMP_AGE_MAX  (4 * NS_PER_S)
#define HUSH_KEPT      0.95
#define FIND_NS        (1 * NS_PER_S)
#define EXCESS_GAIN    0.02
#define EXCESS_MAX     400
#define EXCESS_USUAL   1.5
#define COVERS         0.8
#define SHARE_GAIN     0.02 /* a packet: some seconds */
#define LATE_MOST      0.5
#define LATE_SOME      0.1 /* so many wait that others do, too */
#define EARLY_MOST     0.1 /* a clock that is off makes those of the other direction early */
#define STRAY_SIGMAS   3
#define STRAYED                                                                                    \
    4 /* times a packet's variance: what its density tells of such an innovation is nothing */
#define DELAY_SIGMAS 3 /* of stamps: the mean of a few low round trips, halved, is no lower */

bool edge_live(const struct clock *c, const struct clock_edge *e)
{
    return e->used && e->heard && c->now.ns - e->heard_at.ns < PEER_SILENT_NS &&
           c->now.ns - e->point_at.ns < PEER_SILENT_NS;
}

bool edge_elsewhere(const struct clock_edge *e)
{
    return e->level_known && fabs(e->expected_ns) > ELSEWHERE_NS;
}

bool edge_on_the_move(const struct clock *c, const struct clock_edge *e)
{
    return c->regained || e->returned;
}

void edge_move(const struct clock *c, struct clock_edge *e, double moved_ns)
{
    e->expected_ns += moved_ns;
    if (edge_on_the_move(c, e) || e->sparse) {
        e->level_ns += moved_ns;
    }
    contain_move(e, moved_ns);
}

void edge_begin_level(struct clock_edge *e)
{
    e->level_known = false;
    e->level_ns = e->expected_ns = e->level_weight = 0;
    memset(e->raw_seen, 0, sizeof(e->raw_seen));
}

bool edge_against(const struct clock_edge *e)
{
    const bool out = e->out_since_s >= 1;

    return (e->parked || (out && !e->silent)) && !e->unsure;
}

bool edge_held_up(const struct clock_edge *e)
{
    return fmax(e->late[0], e->late[1]) > LATE_MOST && fmax(e->early[0], e->early[1]) < EARLY_MOST;
}

bool edge_covered(const struct clock_edge *e)
{
    double sum = 0;
    int count = 0;

    for (int i = 0; i < e->config.path_count; i++) {
        sum += e->paths[i].known ? e->paths[i].excess_ns : 0;
        count += e->paths[i].known;
    }
    return count > 0 && sum >= COVERS * count * fabs(e->level_ns);
}

bool edge_vouches(const struct clock_edge *e)
{
    return e->in_gate || (e->level_known && e->bounded && e->lower_ns <= 0 && e->upper_ns >= 0);
}

/* A clock that is off makes packets of one direction early and those of the other late, by as much.
 * A queue makes late only, and one that stood while the path was learned and is gone makes early
 * only: so the smaller of the two is what a queue can't explain. */
double edge_shift(const double low[2], double reference)
{
    const double forward = low[1] - reference, backward = low[0] + reference;
    const double ahead = fmin(forward, -backward), behind = fmin(backward, -forward);

    return ahead > 0 ? ahead : behind > 0 ? -behind : 0;
}

bool edge_usable(const struct clock *c, const struct clock_edge *e)
{
    return edge_live(c, e) && e->peer.phase == CLOCK_TRACK;
}

double edge_peer_variance(const struct clock *c, const struct clock_edge *e)
{
    const double p = c->p_limit_ns > 0 ? fmin(c->p_limit_ns, e->peer.sqrt_p_ns) : e->peer.sqrt_p_ns;

    return p * p;
}

double edge_m_mean(const struct clock_edge *e)
{
    double sum = 0;
    int count = 0;

    for (int i = 0; i < e->config.path_count; i++) {
        if (e->paths[i].known) {
            sum += e->paths[i].m_ns;
            count++;
        }
    }
    return count > 0 ? sum / count : 0;
}

/* p or p': one way between the two maps, queueing positive. */
static double one_way(const struct clock *c, const struct clock_edge *e, int64_t local_ns,
                      int64_t remote_ns, bool forward)
{
    const double ahead = clock_map_difference(&e->peer.map, (struct nic_time){remote_ns}, &c->map,
                                              (struct nic_time){local_ns});

    return forward ? ahead : -ahead;
}

static void remember(struct clock *c, struct clock_edge *e, int64_t local_ns, int64_t remote_ns,
                     uint8_t path, bool forward)
{
    e->ring[e->written % RING_PACKETS] = (struct packet){local_ns, remote_ns, path, forward};
    e->written++;
    if (e->written - e->consumed > RING_PACKETS) {
        e->consumed = e->written - RING_PACKETS;
    }
    e->coarse_local[forward] = local_ns;
    e->coarse_remote[forward] = remote_ns;
    e->coarse_seen[forward] = true;
    const int64_t slack = c->config.stamp_error_ns - e->config.delay_ns_min;
    drift_add(&e->drift, local_ns, remote_ns - local_ns + (forward ? slack : -slack), forward);
    if (!e->heard) {
        return;
    }
    /* the hard bound keeps the fastest packet of each 200 ms, whatever the filter thinks of it */
    const int64_t slot = local_ns / BOUND_BUCKET_NS;
    struct bucket *b = &e->buckets[(uint64_t)slot % BOUND_BUCKETS];
    const double p = one_way(c, e, local_ns, remote_ns, forward);
    if (b->slot != slot) {
        *b = (struct bucket){.slot = slot};
    }
    if (!b->seen[forward] || p < b->p_ns[forward]) {
        b->seen[forward] = true;
        b->p_ns[forward] = p;
        b->local_ns[forward] = local_ns;
        b->remote_ns[forward] = remote_ns;
    }
}

bool edge_take_point(struct clock *c, struct clock_edge *e, const struct clock_point *p)
{
    const int64_t age = c->now.ns - p->local.ns;
    const bool pair = p->local_gap_ns != 0 || p->remote_gap_ns != 0;

    if (p->path >= e->config.path_count || age > STAMP_AGE_MAX || age < -STAMP_AGE_MAX ||
        llabs((long long)p->local_gap_ns) > GAP_NS_MAX ||
        llabs((long long)p->remote_gap_ns) > GAP_NS_MAX ||
        (pair && (p->local_gap_ns <= 0 || p->remote_gap_ns <= 0))) {
        return false;
    }
    e->points++;
    e->point_at = c->now;
    if (!pair) {
        remember(c, e, p->local.ns, p->remote.ns, p->path, p->forward);
        return true;
    }
    const double held = p->forward ? (double)p->remote_gap_ns - p->local_gap_ns
                                   : (double)p->local_gap_ns - p->remote_gap_ns;
    const double epsilon = fmax(30, -0.8 * noise_low_ns(&c->noise));
    noise_add_gap(&c->noise, held);
    e->pairs++;
    e->pairs_pure += fabs(held) < epsilon;
    if (held > -epsilon) {
        remember(c, e, p->local.ns, p->remote.ns, p->path, p->forward);
    }
    if (held < epsilon) {
        remember(c, e, p->local.ns + p->local_gap_ns, p->remote.ns + p->remote_gap_ns, p->path,
                 p->forward);
    }
    return true;
}

/* Mean of the lowest fifths; sorts. */
static double low_mean(double *values, int count, int fifths)
{
    const int keep = count * fifths / 5 > 2 ? count * fifths / 5 : count < 2 ? count : 2;
    double sum = 0;

    sample_sort(values, (size_t)count);
    for (int i = 0; i < keep; i++) {
        sum += values[i];
    }
    return sum / keep;
}

/* What one path's packets took lately, by direction, off the delay that is to be learned. */
struct ways {
    double way[2][RING_PACKETS];
    int64_t at[2][RING_PACKETS];
    int count[2];
};

/* The mean low round trip, halved: each forward packet with the backward one next to it in time. The lowest of either direction
 * alone are of other moments, and while the two clocks' rates differ each then takes from the other's end: by 0.5 ppm, as after a
 * partition, that made paths 0.2 us too short. Two directions wait independently, so fewer rounds are as low. */
static double low_round(const struct ways *w)
{
    double half[RING_PACKETS];

    for (int i = 0; i < w->count[1]; i++) {
        int64_t nearest = INT64_MAX;
        for (int k = 0; k < w->count[0]; k++) {
            const int64_t apart = llabs((long long)(w->at[1][i] - w->at[0][k]));
            if (apart < nearest) {
                nearest = apart;
                half[i] = (w->way[1][i] + w->way[0][k]) / 2;
            }
        }
    }
    return low_mean(half, w->count[1], 1);
}

/* Who tracks undisturbed knows the time better than one path's first second; not while parts of the fleet meet again. */
static bool knows_time(const struct clock *c, const struct clock_edge *e)
{
    return c->narrow && !c->disrupted && c->peers_in_gate >= c->needed && e->peer.settled &&
           !e->parked && !edge_on_the_move(c, e);
}

/* What a path between those two NICs takes: the fastest of the one before it and the others. 0: not known. */
static double known_floor(const struct clock_edge *e, int index)
{
    double least = e->paths[index].was_m_ns;

    for (int i = 0; i < e->config.path_count; i++) {
        const struct path *p = &e->paths[i];
        if (i != index && p->known && !p->unsure && (least == 0 || p->m_ns < least)) {
            least = p->m_ns;
        }
    }
    return least;
}

double edge_delay_least(const struct clock *c, const struct clock_edge *e)
{
    return (double)e->config.delay_ns_min - DELAY_SIGMAS * c->config.stamp_noise_ns;
}

static void gather_ways(const struct clock *c, const struct clock_edge *e, int index,
                        int64_t since_ns, struct ways *w)
{
    const uint32_t first = e->written > RING_PACKETS ? e->written - RING_PACKETS : 0;

    w->count[0] = w->count[1] = 0;
    for (uint32_t i = first; i < e->written; i++) {
        const struct packet *p = &e->ring[i % RING_PACKETS];
        if (p->path != index || c->now.ns - p->local_ns > 2 * LEARN_NS || p->local_ns < since_ns) {
            continue;
        }
        const double way = one_way(c, e, p->local_ns, p->remote_ns, p->forward);
        w->at[p->forward][w->count[p->forward]] = p->local_ns;
        w->way[p->forward][w->count[p->forward]++] =
            way + (p->forward ? -e->expected_ns : e->expected_ns);
    }
}

bool edge_round(const struct clock *c, const struct clock_edge *e, int index, double *ret_m)
{
    struct ways w;

    gather_ways(c, e, index, INT64_MIN, &w);
    if (w.count[0] < 2 || w.count[1] < 2) {
        return false;
    }
    *ret_m = low_round(&w);
    return true;
}

/* Both maps of now are those of then, too. Else theta moved meanwhile, and the lowest packets one way are the first, the other
 * way the last: together they take less than the path. */
static bool rates_stood(const struct clock *c, const struct clock_edge *e, struct nic_time since)
{
    return c->own_rate.since.ns <= since.ns && e->peer_rate.since.ns <= since.ns;
}

/* A path whose delay isn't known: from what the ring holds of it, once there is enough. If one
 * direction takes longer than the other and the time is known, then something waits there, a queue
 * most likely: the faster direction is what the way takes. Half of the round trip would make the
 * queue an error of time for as long as it stands, and one the other way when it ends. */
static void learn_path(struct clock *c, struct clock_edge *e, int index, struct nic_time now)
{
    struct path *path = &e->paths[index];
    struct ways w;

    if (path->learning_since.ns == 0) {
        path->learning_since = now;
    }
    gather_ways(c, e, index, path->learning_since.ns, &w);
    if (w.count[0] < 4 || w.count[1] < 4 || now.ns - path->learning_since.ns < LEARN_NS) {
        return;
    }
    path->m_ns = low_round(&w);
    const double forward = low_mean(w.way[1], w.count[1], 2);
    const double backward = low_mean(w.way[0], w.count[0], 2);
    const double scatter = fmax(forward - w.way[1][0], backward - w.way[0][0]); /* sorted */
    const double floor_ns = known_floor(e, index), high = noise_high_ns(&c->noise);
    /* Where others of this edge wait, these do as well. */
    const bool held = fmax(e->late[0], e->late[1]) > LATE_SOME;
    if (knows_time(c, e) && (held || rates_stood(c, e, path->learning_since)) &&
        path->m_ns > (forward + backward) / 2 + high) {
        path->m_ns =
            (forward + backward) / 2; /* no round trip was free of waits; single ways were */
    }
    /* few packets behind one queue scatter little */
    const bool waited = scatter > high || (held && path->m_ns > floor_ns + high);
    const bool waits = floor_ns > 0 && waited;
    if (path->m_ns < edge_delay_least(c, e)) {
        return; /* some packets are of before a clock stepped, or a map's rate is far off */
    }
    path->known = true;
    if (waits && path->m_ns > floor_ns) {
        path->m_ns = floor_ns; /* no two packets took as long: this path's own floor isn't seen */
    }
    path->unsure = !path->shrunk && !waits && knows_time(c, e) &&
                   fabs(forward - backward) / 2 > noise_high_ns(&c->noise) &&
                   fmin(forward, backward) >= edge_delay_least(c, e);
    path->unsure_s = 0;
    path->shrunk = false;
    if (path->unsure) {
        path->m_ns = fmin(forward, backward);
    }
    path->info = 4 * c->noise.info;
    path->score[0] = path->score[1] = 0;
    path->count[0] = path->count[1] = 0;
    path->window = now;
    path->low[0] = path->low[1] = INFINITY;
    path->excess_ns = path->excess_since_s = 0;
    if (!e->level_known) {
        e->unsure = path->unsure;
        e->level_ns = e->expected_ns = path->unsure ? 0 : (forward - backward) / 2;
        e->level_known = true;
        e->level_weight = 1;
    }
}

struct sums {
    double score[2], age;
    int count[2];
};

/* Behind full queues packets in time are seconds apart. Meanwhile both clocks wander, and their maps follow whom they still
 * hear. */
static void note_stray(const struct clock *c, struct clock_edge *e, struct nic_time now)
{
    const double t = fmax(0, (double)(now.ns - e->told_at.ns) * 1e-9);

    e->sparse = c->sparse && e->told_at.ns != 0 && e->hush_s >= SILENT_S;
    e->stray2 = e->sparse ? e->theta_var + 2 * t * t * (c->rate_var + c->wander2 * t / 3) : 0;
}

/* Then an innovation tells of theta, and not of noise and delays. */
bool edge_strayed(const struct clock *c, const struct clock_edge *e)
{
    return e->stray2 * c->noise.info > STRAYED;
}

/* Where theta is by what this tick's packets tell, from where it was expected, as far as it may have strayed. */
struct place {
    double by_ns, variance, age;
    int count;
};

static void place_packet(const struct clock *c, struct place *p, double innovation, bool forward,
                         double age)
{
    double by, left;

    noise_locate(&c->noise, innovation - (forward ? p->by_ns : -p->by_ns), p->variance, &by, &left);
    if (left < p->variance) { /* else it may have waited, or not */
        p->by_ns += forward ? by : -by;
        p->variance = left;
        p->age += age;
        p->count++;
    }
}

/* As if measured: together with what was expected it comes to the same place. */
static void take_place(struct clock_edge *e, const struct place *p)
{
    const double share = 1 - p->variance / e->stray2;

    e->has_e = true;
    e->e_info = share / p->variance;
    e->e_ns = contain_theta(e, e->expected_ns + p->by_ns / share);
    e->e_age_s = p->age / p->count;
}

/* The level moved at once: so did what all its paths' lowest innovations were taken against. */
static void shift_level(struct clock_edge *e, double shift)
{
    e->expected_ns += shift;
    e->level_ns = e->expected_ns;
    e->out_since_s = 0;
    for (int i = 0; i < e->config.path_count; i++) {
        e->paths[i].low[1] -= shift;
        e->paths[i].low[0] += shift;
    }
}

void edge_follow(struct clock_edge *e)
{
    const double gain = e->stray2 / (e->stray2 + 1 / e->e_info);

    shift_level(e, gain * (e->e_ns - e->expected_ns));
    e->theta_var = gain / e->e_info;
    e->gap2 = e->stray2;
}

/* The path's floor has been seen, or both directions wait alike by now, which no longer matters, or
 * it has been so for long: a longer way in one direction. */
static void grow_sure(const struct clock *c, struct path *path, double excess, double shift)
{
    const double high = noise_high_ns(&c->noise);

    path->unsure_s += (double)WINDOW_NS * 1e-9;
    if (excess < high && fabs(shift) < high) {
        path->unsure = false;
    } else if (fabs(shift) < high || path->unsure_s > EXCESS_S_MAX) {
        path->unsure = path->known = false;
        path->shrunk = true;
        path->learning_since = c->now;
    }
}

/* A second's lowest innovations of both directions: a standing queue, a shorter way, or a shift.
 * Queued packets reach into the gate, so an edge that is off by more than the gate would look as if
 * it were on: but then one direction's lowest is as much too low as the other's is too high, and
 * their sum is no larger than ever. */
static void close_window(struct clock *c, struct clock_edge *e, struct path *path,
                         struct nic_time now)
{
    if (now.ns - path->window.ns < WINDOW_NS) {
        return;
    }
    const bool both = isfinite(path->low[0]) && isfinite(path->low[1]);
    const double low = noise_low_ns(&c->noise), high = noise_high_ns(&c->noise);
    if (both) {
        const double excess = (path->low[0] + path->low[1]) / 2;
        const double shift = (path->low[1] - path->low[0]) / 2;
        path->excess_ns = fmax(0, excess);
        path->excess_since_s = excess > high ? path->excess_since_s + 1 : 0;
        if (path->unsure) {
            grow_sure(c, path, excess, shift);
        } else if (excess < low || path->excess_since_s > EXCESS_S_MAX) {
            path->known = false;
            path->shrunk = true;
            path->learning_since = now;
        } else if (excess <= 0 && fabs(shift) > -SHIFT_LOW * low) {
            shift_level(e, shift);
        } else if (e->out_since_s > OUT_S_MAX && excess < high) {
            shift_level(e, shift);
        }
    }
    path->low[0] = path->low[1] = INFINITY;
    path->window = now;
}

/* The newest packet on that path the other way before the i-th; NULL: none. */
static const struct packet *answered(const struct clock_edge *e, uint32_t i)
{
    const struct packet *p = &e->ring[i % RING_PACKETS];
    const uint32_t first = e->written > RING_PACKETS ? e->written - RING_PACKETS : 0;

    while (i-- > first) {
        const struct packet *other = &e->ring[i % RING_PACKETS];
        if (other->path == p->path && other->forward != p->forward) {
            return other;
        }
    }
    return NULL;
}

static void shorten(const struct clock *c, struct path *path, double by_ns)
{
    path->m_ns -= by_ns;
    path->info = c->noise.info; /* it rests on two round trips */
    for (int d = 0; d < 2; d++) {
        path->low[d] += by_ns;
        path->way_ns[d] += by_ns;
        path->score[d] = 0;
        path->count[d] = 0;
    }
}

/* A round trip of these two packets leaves room for no more than `most`. Of two that are below m the longer one counts, if they
 * share no packet. */
static void take_most(const struct clock *c, struct path *path, double most, const struct packet *p,
                      const struct packet *back)
{
    const int64_t first = p->local_ns < back->local_ns ? p->local_ns : back->local_ns;
    const int64_t last = p->local_ns < back->local_ns ? back->local_ns : p->local_ns;
    const bool before = path->round_at != 0 && last - path->round_at < DRIFT_SLOTS * NS_PER_S;

    if (most >= path->m_ns || (before && first <= path->round_at)) {
        return;
    }
    if (before) {
        shorten(c, path, path->m_ns - fmax(most, path->round_ns));
    }
    path->round_ns = before ? fmin(most, path->round_ns) : most;
    path->round_at = last;
}

/* No path takes longer than half of a round trip over it. So what was learned behind a queue ends with the first packets that
 * find none, however sure and however wide the density was that it was learned by. Between the two packets theta moved by
 * no more than stamps prove, or a clock stepped: so two round trips have to say it, of other packets. */
static void shorten_paths(const struct clock *c, struct clock_edge *e)
{
    const double rate = fmax(fabs(e->rate_lower), fabs(e->rate_upper));
    const double slack = DELAY_SIGMAS * c->config.stamp_noise_ns;

    for (uint32_t i = e->consumed; i != e->written && e->proven; i++) {
        const struct packet *p = &e->ring[i % RING_PACKETS];
        const struct packet *back = e->paths[p->path].known ? answered(e, i) : NULL;
        const int64_t apart =
            back == NULL ? ROUND_NS : llabs((long long)(p->local_ns - back->local_ns));
        if (apart >= ROUND_NS) {
            continue;
        }
        const double round = one_way(c, e, p->local_ns, p->remote_ns, p->forward) +
                             one_way(c, e, back->local_ns, back->remote_ns, back->forward);
        const double most = (round + rate * (double)apart) / 2 + slack;
        take_most(c, &e->paths[p->path], most, p, back);
    }
}

/* This tick's packets, against the paths' delays. */
struct batch {
    double way[RING_PACKETS];
    const struct packet *packet[RING_PACKETS];
    int count;
    double low[2];
};

static void load_batch(const struct clock *c, struct clock_edge *e, struct batch *b,
                       struct nic_time now)
{
    b->count = 0;
    b->low[0] = b->low[1] = INFINITY;
    for (; e->consumed < e->written; e->consumed++) {
        const struct packet *p = &e->ring[e->consumed % RING_PACKETS];
        const struct path *path = &e->paths[p->path];
        if (!path->known) {
            continue;
        }
        const double way = one_way(c, e, p->local_ns, p->remote_ns, p->forward) - path->m_ns;
        b->way[b->count] = way;
        b->packet[b->count++] = p;
        b->low[p->forward] = fmin(b->low[p->forward], way);
    }
    for (int d = 0; d < 2; d++) {
        if (isfinite(b->low[d])) {
            e->raw_low[d] = b->low[d];
            e->raw_seen[d] = true;
            e->raw_at[d] = now;
        }
    }
}

/* Heard again after a silence, it may be anywhere: the score is flat out there, and would take seconds to find it. The paths'
 * delays are known, so the first packets both ways tell, to half of what they waited. */
static void find_level(const struct clock *c, struct clock_edge *e)
{
    const double most = noise_high_ns(&c->noise);
    const double waited = (e->raw_low[0] + e->raw_low[1]) / 2;
    const bool patient = !e->returned || c->now.ns - e->returned_at.ns < FIND_NS;

    if (!e->raw_seen[0] || !e->raw_seen[1] || (waited > most && patient)) {
        return;
    }
    e->level_known = true;
    shift_level(e, waited > most ? 0 : (e->raw_low[1] - e->raw_low[0]) / 2);
}

/* Far from where it was expected, both directions say the same, and neither queued: the score would
 * find it, but slowly, for its slope is flat out there. So far that this member's own clock may have
 * stepped, that is found first, before such an error moves anything. */
static void follow_jump(const struct clock *c, struct clock_edge *e, const struct batch *b)
{
    if (!isfinite(b->low[0]) || !isfinite(b->low[1])) {
        return;
    }
    const double low = noise_low_ns(&c->noise);
    const double excess = (b->low[0] + b->low[1]) / 2;
    const double shift = (b->low[1] - b->low[0]) / 2 - e->expected_ns;
    const bool far = disturbance_watched(c) && fabs(shift) > disturbance_step_limit(c);
    if (!far) {
        e->jump_at = c->now;
    }
    if (excess > 0 || excess < (far ? low : -INFINITY) || fabs(shift) < -SHIFT_LOW * low ||
        (far && c->now.ns - e->jump_at.ns < JUMP_NS)) {
        return;
    }
    e->expected_ns += shift;
    for (int i = 0; i < e->config.path_count; i++) {
        e->paths[i].low[1] -= shift;
        e->paths[i].low[0] += shift;
    }
}

/* The packet before it the other way, if it wasn't long ago, makes a round trip. */
static void take_round(struct clock *c, struct path *path, const struct packet *p, double way)
{
    const int back = !p->forward;

    path->way_ns[p->forward] = way;
    path->way_at[p->forward] = p->local_ns;
    if (path->way_at[back] != 0 &&
        llabs((long long)(p->local_ns - path->way_at[back])) < ROUND_NS) {
        noise_add_round(&c->noise, (way + path->way_ns[back]) / 2);
        path->way_at[back] = 0;
    }
}

static void take_packet(struct clock *c, struct clock_edge *e, const struct packet *p, double way,
                        struct nic_time now, double extra, struct sums path_sums[CLOCK_PATH_MAX],
                        struct place *place)
{
    struct path *path = &e->paths[p->path];
    const double innovation = way + (p->forward ? -e->expected_ns : e->expected_ns);

    take_round(c, path, p, way);
    path->low[p->forward] = fmin(path->low[p->forward], innovation);
    const bool early = innovation < noise_low_ns(&c->noise) - extra;
    const bool late = innovation > noise_high_ns(&c->noise) + extra;
    e->early[p->forward] += SHARE_GAIN * (early - e->early[p->forward]);
    e->late[p->forward] += SHARE_GAIN * (late - e->late[p->forward]);
    if (early || late) {
        e->packets_out++;
        return;
    }
    e->packets_in_gate++;
    const double age = (double)(now.ns - p->local_ns) * 1e-9;
    if (e->sparse) {
        place_packet(c, place, innovation, p->forward, age);
    }
    if (edge_strayed(c, e)) {
        return;
    }
    path_sums[p->path].score[p->forward] += noise_score(&c->noise, innovation);
    path_sums[p->path].count[p->forward]++;
    path_sums[p->path].age += age;
    if (!e->parked && now.ns - c->phase_since.ns > SHAPE_NS) {
        noise_add(&c->noise, innovation);
    }
}

/* The first seconds of a path whose faster direction alone tells its delay: theta is held to be
 * known, so what that direction is off by is m's. */
static void learn_m_one_way(const struct clock *c, struct path *path)
{
    const int fast = path->count[0] == 0;
    const double info = path->count[fast] * c->noise.info;
    const double most = 2 * noise_sigma_ns(&c->noise);
    const double sum = info > 0 ? path->score[fast] / info : 0;

    if (info > 0 && path->unsure_s <= UNSURE_LEARN_S) {
        path->info += info;
        path->m_ns += fmin(most, fmax(-most, sum)) * info / path->info;
    }
    path->score[fast] = 0;
    path->count[fast] = 0;
}

/* m from both directions together; what only one says can't be told from theta, so it waits for the
 * other. */
static void learn_m(const struct clock *c, const struct clock_edge *e, struct path *path,
                    const struct sums *s)
{
    for (int d = 0; d < 2; d++) {
        path->score[d] += s->score[d];
        path->count[d] += s->count[d];
    }
    if (path->count[0] == 0 || path->count[1] == 0) {
        if (path->unsure) {
            learn_m_one_way(c, path);
        }
        return;
    }
    const double n0 = path->count[0], n1 = path->count[1];
    const double info = 4 * n0 * n1 / (n0 + n1) * c->noise.info;
    const double sum = (path->score[0] / n0 + path->score[1] / n1) / 2 / c->noise.info;
    const double most = 2 * noise_sigma_ns(&c->noise);

    path->info = path->info * (1 - M_FORGET) + info;
    path->m_ns += fmin(most, fmax(-most, sum)) * info / path->info;
    path->m_ns = fmax(path->m_ns, edge_delay_least(c, e));
    path->score[0] = path->score[1] = 0;
    path->count[0] = path->count[1] = 0;
}

static void judge_raw(const struct clock *c, struct clock_edge *e, struct nic_time now)
{
    const double low = noise_low_ns(&c->noise), high = noise_high_ns(&c->noise);
    bool known = false;

    for (int i = 0; i < e->config.path_count; i++) {
        known |= e->paths[i].known;
        e->unsure &= !e->paths[i].known || e->paths[i].unsure;
    }
    e->has_raw = e->raw_seen[0] && e->raw_seen[1] && now.ns - e->raw_at[0].ns < NS_PER_S / 2 &&
                 now.ns - e->raw_at[1].ns < NS_PER_S / 2;
    e->silent = !known;
    if (e->has_raw) {
        const double forward = e->raw_low[1] - e->expected_ns,
                     backward = e->raw_low[0] + e->expected_ns;
        e->raw_ns = edge_shift(e->raw_low, 0);
        e->silent |= fmin(forward, backward) > low && fmax(forward, backward) > high;
    }
}

/* How many times the variance of its errors is what the density of all packets makes of it. Behind a full port few
 * packets come within the gate, and those are the ones that waited least: they say less than others. */
static double edge_excess(const struct clock *c, struct clock_edge *e)
{
    const double off = e->e_ns - e->expected_ns;
    const double square =
        off * off /
        (1 / e->e_info + c->deviation_ns * c->deviation_ns + edge_peer_variance(c, e) + e->stray2);

    e->excess += EXCESS_GAIN * (fmin(EXCESS_MAX, square) - e->excess);
    return fmax(1, e->excess / EXCESS_USUAL);
}

void edge_track(struct clock *c, struct clock_edge *e, struct nic_time now)
{
    struct sums sums[CLOCK_PATH_MAX] = {0};
    struct sums all = {0};
    note_stray(c, e, now);
    const double extra = 5 * sqrt(c->deviation_ns * c->deviation_ns + edge_peer_variance(c, e)) +
                         STRAY_SIGMAS * sqrt(e->stray2);
    const uint32_t before = e->consumed;

    e->has_e = false;
    for (int i = 0; i < e->config.path_count; i++) {
        if (!e->paths[i].known) {
            learn_path(c, e, i, now);
        }
    }
    struct place place = {.variance = e->stray2};
    struct batch batch;
    shorten_paths(c, e);
    load_batch(c, e, &batch, now);
    if (!e->level_known) {
        find_level(c, e);
    }
    follow_jump(c, e, &batch);
    for (int i = 0; i < batch.count && e->level_known; i++) {
        take_packet(c, e, batch.packet[i], batch.way[i], now, extra, sums, &place);
    }
    for (int i = 0; i < e->config.path_count; i++) {
        learn_m(c, e, &e->paths[i], &sums[i]);
        if (e->paths[i].known) {
            close_window(c, e, &e->paths[i], now);
        }
        for (int d = 0; d < 2; d++) {
            all.score[d] += sums[i].score[d];
            all.count[d] += sums[i].count[d];
        }
        all.age += sums[i].age;
    }
    e->expected_ns = contain_theta(e, e->expected_ns);
    judge_raw(c, e, now);
    const int count = all.count[0] + all.count[1];
    if (e->sparse && place.count > 0) {
        take_place(e, &place);
    } else if (!e->sparse && count > 0) {
        e->has_e = true;
        e->e_info = count * c->noise.info;
        e->e_ns = contain_theta(e, e->expected_ns + (all.score[1] - all.score[0]) / e->e_info);
        e->e_age_s = all.age / count;
    }
    if (e->has_e) {
        e->e_info /= edge_excess(c, e);
        e->out_since_s = 0;
        e->hush_s *= HUSH_KEPT;
    } else if (e->consumed != before) {
        e->out_since_s += (double)CLOCK_TICK_NS * 1e-9;
        e->hush_s += (double)CLOCK_TICK_NS * 1e-9;
    }
    e->in_gate = e->level_known && e->out_since_s < 1 && !edge_elsewhere(e);
}
