/* edge.c: one edge while tracking: packets go in, and each tick one error of the peer's map against the own map comes out.
 *
 * Coded pairs: two packets leave back to back, and their stamps show which of them was delayed longer. That one is dropped. The
 * other is judged by its innovation against the path's known delay m and the edge's known level, and counts with the score of the
 * learned density (noise.h). m is learned from both directions together, so the edge survives the loss of one direction. */
#include "core/clock/clock_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GAP_NS_MAX    (10 * NS_PER_MS)
#define JUMP_NS       (250 * NS_PER_MS)
#define SHAPE_NS      (1 * NS_PER_S) /* errors of the start are not errors of packets */
#define STAMP_AGE_MAX (4 * NS_PER_S)
#define HUSH_KEPT     0.95
#define FIND_NS       (1 * NS_PER_S)
#define EXCESS_GAIN   0.02
#define EXCESS_MAX    400
#define EXCESS_USUAL  1.5
#define COVERS        0.8
#define SHARE_GAIN    0.02 /* per packet: some seconds */
#define LATE_MOST     0.5
#define EARLY_MOST    0.1 /* a clock that is off makes packets of the other direction early */
#define STRAY_SIGMAS  3
#define STRAYED                                                                                    \
    4 /* times a packet's variance: for such an innovation, the density of packets shows nothing */

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
    if (edge_on_the_move(c, e) || e->sparse || e->alike) {
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

    return e->false_rate != 0 || ((e->parked || (out && !e->silent)) && !e->unsure);
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
    return e->false_rate == 0 &&
           (e->in_gate || (e->level_known && e->bounded && e->lower_ns <= 0 && e->upper_ns >= 0));
}

/* A clock that is off makes packets of one direction early and those of the other direction late, by the same amount. A queue
 * only makes packets late. A queue that stood while the path was learned, and is gone, only makes them early. So no queue
 * explains the smaller of the two shifts. */
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

/* p or p': the one-way delay between the two maps, positive for queueing. */
double edge_one_way(const struct clock *c, const struct clock_edge *e, int64_t local_ns,
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
    /* the hard bound keeps the fastest packet of each 200 ms, even if the filter rejects it */
    const int64_t slot = local_ns / BOUND_BUCKET_NS;
    struct bucket *b = &e->buckets[(uint64_t)slot % BOUND_BUCKETS];
    const double p = edge_one_way(c, e, local_ns, remote_ns, forward);
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

struct sums {
    double score[2], age;
    int count[2];
    double wait[2]; /* packets that wait as all do: their sums beyond the mean */
    int waited[2];
};

/* Behind full queues packets in time are seconds apart. Meanwhile both clocks wander, and their maps follow the members that they
 * still hear. */
static void note_stray(const struct clock *c, struct clock_edge *e, struct nic_time now)
{
    const double t = fmax(0, (double)(now.ns - e->told_at.ns) * 1e-9);

    const bool alike = waits_alike(c, e);
    if (alike && !e->alike) { /* the edge showed little, but was not gone */
        e->hush_s = 0;
        e->hushed = false;
    }
    e->alike = alike;
    e->sparse = c->sparse && !e->alike && e->told_at.ns != 0 && e->hush_s >= SILENT_S;
    e->stray2 = e->sparse ? e->theta_var + 2 * t * t * (c->rate_var + c->wander2 * t / 3) : 0;
}

/* Then an innovation shows theta rather than noise and delays. */
bool edge_strayed(const struct clock *c, const struct clock_edge *e)
{
    return e->stray2 * c->noise.info > STRAYED;
}

/* Theta by this tick's packets, relative to the expected value, within the possible drift. */
struct place {
    double by_ns, variance, age;
    int count;
};

static void place_packet(const struct clock *c, struct place *p, double innovation, bool forward,
                         double age)
{
    double by, left;

    noise_locate(&c->noise, innovation - (forward ? p->by_ns : -p->by_ns), p->variance, &by, &left);
    if (left < p->variance) { /* otherwise it may have waited, or not */
        p->by_ns += forward ? by : -by;
        p->variance = left;
        p->age += age;
        p->count++;
    }
}

/* Sets a pseudo-measurement that, combined with the expected value, gives the same place. */
static void take_place(struct clock_edge *e, const struct place *p)
{
    const double share = 1 - p->variance / e->stray2;

    e->has_e = true;
    e->e_info = share / p->variance;
    e->e_ns = contain_theta(e, e->expected_ns + p->by_ns / share);
    e->e_age_s = p->age / p->count;
}

/* The level moved at once, and so did the reference of all its paths' lowest innovations. */
void edge_shift_level(struct clock_edge *e, double shift)
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

    edge_shift_level(e, gain * (e->e_ns - e->expected_ns));
    e->theta_var = gain / e->e_info;
    e->gap2 = e->stray2;
}

/* This tick's packets, relative to the paths' delays. */
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
        const double way = edge_one_way(c, e, p->local_ns, p->remote_ns, p->forward) - path->m_ns;
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

/* Heard again after a silence, theta may have any value: far away the score is flat, and would need seconds to find it. The
 * paths' delays are known, so the first packets of both directions give theta, to half of their waiting time. */
static void find_level(const struct clock *c, struct clock_edge *e)
{
    const double most = noise_high_ns(&c->noise);
    const double waited = (e->raw_low[0] + e->raw_low[1]) / 2;
    const bool patient = !e->returned || c->now.ns - e->returned_at.ns < FIND_NS;

    if (!e->raw_seen[0] || !e->raw_seen[1] || (waited > most && patient)) {
        return;
    }
    e->level_known = true;
    edge_shift_level(e, waited > most ? 0 : (e->raw_low[1] - e->raw_low[0]) / 2);
}

/* Theta is far from the expected value, both directions agree, and neither queued. The score would find it, but slowly, because
 * its slope is flat there. If it is so far that this member's own clock may have stepped, that is checked first, before the error
 * moves anything. */
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

static void take_packet(struct clock *c, struct clock_edge *e, const struct packet *p, double way,
                        struct nic_time now, double extra, struct sums path_sums[CLOCK_PATH_MAX],
                        struct place *place)
{
    struct path *path = &e->paths[p->path];
    const double innovation = way + (p->forward ? -e->expected_ns : e->expected_ns);

    path_take_round(c, path, p, way);
    path->low[p->forward] = fmin(path->low[p->forward], innovation);
    const bool early = innovation < noise_low_ns(&c->noise) - extra;
    const bool late = innovation > noise_high_ns(&c->noise) + extra;
    e->early[p->forward] += SHARE_GAIN * (early - e->early[p->forward]);
    e->late[p->forward] += SHARE_GAIN * (late - e->late[p->forward]);
    const bool of_most = waits_add(e, innovation, p->forward, late);
    if (e->alike) {
        path_sums[p->path].wait[p->forward] +=
            of_most ? innovation - (e->wait_ns[0] + e->wait_ns[1]) / 2 : 0;
        path_sums[p->path].waited[p->forward] += of_most;
        path_sums[p->path].age += of_most ? (double)(now.ns - p->local_ns) * 1e-9 : 0;
        e->packets_alike += of_most;
        e->packets_out += !of_most;
        return;
    }
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
    if (!e->parked && e->false_rate == 0 && now.ns - c->phase_since.ns > SHAPE_NS) {
        noise_add(&c->noise, innovation);
    }
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

/* The variance of its errors over the value that the density of all packets predicts. Behind a full port few packets come within
 * the gate, and those waited least, so they show less than others. */
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
            path_learn(c, e, i, now);
        }
    }
    struct place place = {.variance = e->stray2};
    struct batch batch;
    paths_shorten(c, e);
    load_batch(c, e, &batch, now);
    if (!e->level_known) {
        find_level(c, e);
    }
    follow_jump(c, e, &batch);
    for (int i = 0; i < batch.count && e->level_known; i++) {
        take_packet(c, e, batch.packet[i], batch.way[i], now, extra, sums, &place);
    }
    for (int i = 0; i < e->config.path_count; i++) {
        path_learn_m(c, e, &e->paths[i], sums[i].score, sums[i].count);
        if (e->paths[i].known) {
            path_close_window(c, e, &e->paths[i], now);
        }
        for (int d = 0; d < 2; d++) {
            all.score[d] += sums[i].score[d];
            all.count[d] += sums[i].count[d];
            all.wait[d] += sums[i].wait[d];
            all.waited[d] += sums[i].waited[d];
        }
        all.age += sums[i].age;
    }
    e->expected_ns = contain_theta(e, e->expected_ns);
    judge_raw(c, e, now);
    const int count = all.count[0] + all.count[1];
    const int waited = all.waited[0] + all.waited[1];
    if (e->alike && waited > 0) {
        e->has_e = true;
        e->e_info = waited / e->wait_var;
        e->e_ns = contain_theta(e, e->expected_ns + (all.wait[1] - all.wait[0]) / waited);
        e->e_age_s = all.age / waited;
    } else if (e->sparse && place.count > 0) {
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
    e->in_gate = e->level_known && e->out_since_s < 1 && !edge_elsewhere(e) && e->false_rate == 0;
}
