/* acquire.c: brings a member from no knowledge to a microsecond. First come coarse rounds on whole clocks. Then each edge's
 * offset and rate are fitted from its raw stamps. Then rounds of robust averaging bring the fleet's maps together. */
#include "core/clock/clock_private.h"

#include <math.h>
#include <stdlib.h>

#include "stats/sample.h"

#define SPAN_S_MIN    0.8
#define POINTS_MIN    4
#define RATE_USUAL    300e-6
#define CRYSTAL_USUAL 50e-6
#define RATE_MAX      1000e-6 /* two clocks, each wrong by as much as a map can express */
/* the share of a direction's packets that is kept: the lowest ones, because most may have queued */
#define KEEP           0.4
#define GROUPS         (2 * CLOCK_PATH_MAX)
#define BELIEVE_NS     150.0 /* how far an edge's own offset may differ from the fleet's */
#define MEDIAN_ROUNDS  4
#define GOOD_NS        20.0
#define GOOD_SIGMA     1.5
#define SPREAD_NS      150.0
#define PATIENT_ROUNDS 40
#define RATE_AGREED    300e-9

struct sample {
    double t, d, residual; /* s; ns off the first packet's difference; ns, positive for queueing */
    int group;             /* 2 path + forward */
    bool kept;
};

struct fit {
    struct sample s[RING_PACKETS];
    int count;
    int64_t local0, difference0;
    double rate; /* ns/s */
    double tt;   /* s^2, over the kept packets, about the means of their groups */
    double intercept[GROUPS];
    int kept[GROUPS];
};

static double later(const struct sample *s)
{
    return (s->group & 1) != 0
               ? 1
               : -1; /* a delayed forward packet raises d, a delayed backward one lowers it */
}

/* The line with the widest margin: the gap between forward and backward packets is concave in the rate. Its maximum is found by
 * golden section. Differences of microseconds between paths are ignored here; the trimmed passes correct for them. */
static double margin(const struct fit *f, double rate)
{
    double lowest = INFINITY, highest = -INFINITY;

    for (int i = 0; i < f->count; i++) {
        const double d = f->s[i].d - rate * f->s[i].t;
        if ((f->s[i].group & 1) != 0) {
            lowest = fmin(lowest, d);
        } else {
            highest = fmax(highest, d);
        }
    }
    return lowest - highest;
}

static double widest_margin(const struct fit *f, double most)
{
    const double golden = 0.6180339887498949;
    double a = -most * 1e9, b = most * 1e9;
    double u = b - golden * (b - a), v = a + golden * (b - a);
    double mu = margin(f, u), mv = margin(f, v);

    while (b - a > 50) { /* ns/s */
        if (mu >= mv) {
            b = v;
            v = u;
            mv = mu;
            u = b - golden * (b - a);
            mu = margin(f, u);
        } else {
            a = u;
            u = v;
            mu = mv;
            v = a + golden * (b - a);
            mv = margin(f, v);
        }
    }
    return (a + b) / 2;
}

/* Keeps the lowest residuals of every group. False: a group that is needed is empty. */
static void trim(struct fit *f)
{
    for (int g = 0; g < GROUPS; g++) {
        double r[RING_PACKETS];
        int count = 0;
        for (int i = 0; i < f->count; i++) {
            if (f->s[i].group != g) {
                continue;
            }
            sample_insert(r, (size_t)count++, f->s[i].residual);
        }
        const int keep = count == 0                    ? 0
                         : (int)ceil(KEEP * count) < 2 ? (count < 2 ? count : 2)
                                                       : (int)ceil(KEEP * count);
        f->kept[g] = keep;
        for (int i = 0; i < f->count; i++) {
            if (f->s[i].group == g) {
                f->s[i].kept = f->s[i].residual <= r[keep - 1];
            }
        }
    }
}

/* Fits one slope for all groups, and an intercept for each, to the kept packets. Returns the mean square of the residuals. */
static double least_squares(struct fit *f)
{
    double n[GROUPS] = {0}, st[GROUPS] = {0}, sd[GROUPS] = {0}, tt = 0, td = 0, square = 0;
    int kept = 0;

    for (int i = 0; i < f->count; i++) {
        const struct sample *s = &f->s[i];
        if (s->kept) {
            n[s->group]++;
            st[s->group] += s->t;
            sd[s->group] += s->d;
        }
    }
    for (int i = 0; i < f->count; i++) {
        const struct sample *s = &f->s[i];
        if (s->kept) {
            const double t = s->t - st[s->group] / n[s->group];
            tt += t * t;
            td += t * (s->d - sd[s->group] / n[s->group]);
        }
    }
    f->tt = tt;
    if (tt > 1e-6) {
        f->rate = td / tt;
    }
    for (int g = 0; g < GROUPS; g++) {
        f->intercept[g] = n[g] > 0 ? (sd[g] - f->rate * st[g]) / n[g] : 0;
    }
    for (int i = 0; i < f->count; i++) {
        struct sample *s = &f->s[i];
        s->residual = later(s) * (s->d - f->rate * s->t - f->intercept[s->group]);
        if (s->kept) {
            square += s->residual * s->residual;
            kept++;
        }
    }
    return kept > 2 ? square / (kept - 2) : INFINITY;
}

static bool load(struct fit *f, const struct clock_edge *e, int64_t since_local_ns)
{
    const uint32_t first = e->written > RING_PACKETS ? e->written - RING_PACKETS : 0;
    double span[2][2] = {{INFINITY, -INFINITY}, {INFINITY, -INFINITY}};
    int count[2] = {0, 0};

    f->count = 0;
    for (uint32_t i = first; i < e->written; i++) {
        const struct packet *p = &e->ring[i % RING_PACKETS];
        if (p->local_ns < since_local_ns) {
            continue;
        }
        if (f->count == 0) {
            f->local0 = p->local_ns;
            f->difference0 = p->remote_ns - p->local_ns;
        }
        struct sample *s = &f->s[f->count++];
        s->t = (double)(p->local_ns - f->local0) * 1e-9;
        s->d = (double)(p->remote_ns - p->local_ns - f->difference0);
        s->group = 2 * p->path + p->forward;
        s->kept = true;
        span[p->forward][0] = fmin(span[p->forward][0], s->t);
        span[p->forward][1] = fmax(span[p->forward][1], s->t);
        count[p->forward]++;
    }
    return count[0] >= POINTS_MIN && count[1] >= POINTS_MIN &&
           span[0][1] - span[0][0] >= SPAN_S_MIN && span[1][1] - span[1][0] >= SPAN_S_MIN;
}

bool acquire_solve(const struct clock_edge *e, int64_t since_local_ns, struct solved *solved)
{
    struct fit f;
    double square = INFINITY, offset = 0, weight = 0;

    if (!load(&f, e, since_local_ns)) {
        return false;
    }
    f.rate = widest_margin(&f, RATE_USUAL);
    if (fabs(f.rate) > 0.99 * RATE_USUAL * 1e9) {
        f.rate = widest_margin(&f, RATE_MAX);
    }
    if (fabs(f.rate) > 0.99 * RATE_MAX * 1e9) {
        return false; /* no clock has such a rate */
    }
    for (int i = 0; i < f.count;
         i++) { /* against any line of that rate: only the order within a group matters */
        f.s[i].residual = later(&f.s[i]) * (f.s[i].d - f.rate * f.s[i].t);
    }
    for (int pass = 0; pass < 4; pass++) {
        trim(&f);
        square = least_squares(&f);
    }
    const double t = f.s[f.count - 1].t;
    *solved = (struct solved){.valid = true, .rate = f.rate * 1e-9, .noise_ns = sqrt(square)};
    solved->rate_sigma = sqrt(square / fmax(1e-6, f.tt)) * 1e-9;
    for (int path = 0; path < CLOCK_PATH_MAX; path++) {
        const int u = f.kept[2 * path + 1], l = f.kept[2 * path];
        if (u < 2 || l < 2) {
            continue;
        }
        const double w = (double)u * l / (u + l);
        offset += w * (f.intercept[2 * path + 1] + f.intercept[2 * path]) / 2;
        weight += w;
        solved->m_ns[path] = (f.intercept[2 * path + 1] - f.intercept[2 * path]) / 2;
        solved->m_known[path] = true;
    }
    if (weight == 0) {
        return false;
    }
    const double ahead = offset / weight + f.rate * t;
    solved->local.ns = f.local0 + (int64_t)(t * 1e9);
    solved->remote.ns = solved->local.ns + f.difference0 + (int64_t)floor(ahead);
    solved->fraction = ahead - floor(ahead);
    solved->sigma_ns = sqrt(square / (2 * weight));
    return true;
}

/* The middle of the shortest interval that holds `keep` of the values: a mean that a minority can't shift. It sorts. */
double shortest_half(double *values, int count, int keep)
{
    double best = INFINITY, sum = 0;
    int at = 0;

    sample_sort(values, (size_t)count);
    for (int i = 0; i + keep <= count; i++) {
        if (values[i + keep - 1] - values[i] < best) {
            best = values[i + keep - 1] - values[i];
            at = i;
        }
    }
    for (int i = at; i < at + keep; i++) {
        sum += values[i];
    }
    return sum / keep;
}

/* The number of values to drop at either end: as many as may lie. */
static int trim_of(int count)
{
    const int third = (count - 1) / 3;

    return third < 4 ? third : 4;
}

static double trimmed_mean(double *values, int count, int cut)
{
    double sum = 0;

    (void)shortest_half(values, count, count); /* sorts */
    for (int i = cut; i < count - cut; i++) {
        sum += values[i];
    }
    return sum / (count - 2 * cut);
}

/* The width of that interval. The values must be sorted. */
static double shortest_width(const double *values, int count, int keep)
{
    double best = INFINITY;

    for (int i = 0; i + keep <= count; i++) {
        best = fmin(best, values[i + keep - 1] - values[i]);
    }
    return best;
}

static int keep_of(int count)
{
    return (10 * count + 16) / 17;
}

/* How far the peer's fleet time is ahead, in whole clocks, as exact as a packet's delay allows. */
static bool coarse_theta(const struct clock *c, const struct clock_edge *e, int64_t *ret_ns)
{
    int64_t sum = 0;
    int count = 0;

    for (int d = 0; d < 2; d++) {
        if (e->coarse_seen[d]) {
            sum += clock_map_apply(&e->peer.map, (struct nic_time){e->coarse_remote[d]}).ns -
                   clock_map_apply(&c->map, (struct nic_time){e->coarse_local[d]}).ns;
            count++;
        }
    }
    *ret_ns = count == 2 ? sum / 2 : sum;
    return count > 0;
}

void coarse_round(struct clock *c, struct nic_time now)
{
    int count = 0;
    bool settled = false;
    int settled_count = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        settled_count += edge_live(c, e) && !e->config.witness && e->peer.settled &&
                         e->peer.phase == CLOCK_TRACK;
    }
    settled = settled_count >= 3 || (settled_count > 0 && 2 * settled_count >= c->edge_count);
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        int64_t theta;
        if (!edge_live(c, e) || e->config.witness || (settled && !e->peer.settled) ||
            !coarse_theta(c, e, &theta)) {
            continue;
        }
        c->values[count++] = (double)theta;
    }
    const bool enough = count >= 3 || (count > 0 && now.ns - c->started.ns > NS_PER_S / 2) ||
                        (count > 0 && count == c->edge_count);
    if (!enough) {
        return;
    }
    if (!settled) {
        c->values[count++] = 0; /* this member's own value */
    }
    double move;
    if (c->rounds < MEDIAN_ROUNDS) {
        (void)shortest_half(c->values, count, count);
        move = (c->values[(count - 1) / 2] + c->values[count / 2]) / 2;
    } else {
        move = shortest_half(c->values, count, keep_of(count));
    }
    clock_jump(c, (int64_t)move);
    c->rounds++;
    c->calm = fabs(move) < 1e6 ? c->calm + 1 : 0;
    if (c->rounds >= MEDIAN_ROUNDS && c->calm >= 2) {
        clock_set_phase(c, CLOCK_ACQUIRE);
    }
}

static bool first_of_peer(const struct clock *c, int edge)
{
    for (int i = 0; i < edge; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (edge_live(c, e) && !e->config.witness && e->peer.phase == CLOCK_TRACK &&
            e->config.peer == c->edges[edge].config.peer) {
            return false;
        }
    }
    return true;
}

/* True if there are enough edges whose peers track: then one round suffices to join. Enough is three peers, with any number of
 * edges to each, or half of the edges. */
static bool join_trackers(const struct clock *c)
{
    int tracking = 0, peers = 0, live = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (!edge_live(c, e) || e->config.witness) {
            continue;
        }
        live++;
        if (e->peer.phase == CLOCK_TRACK) {
            tracking++;
            peers += peers < 3 && first_of_peer(c, i);
        }
    }
    return peers >= 3 || (tracking > 0 && 2 * tracking >= live);
}

/* A path's delay from the fit is wrong by the rate's error over a second, because the lowest packets of the two directions came
 * at different moments. Behind queues that is microseconds. Round trips are wrong only by stamps, so they are used instead. The
 * weight of such a path follows from the scatter of its packets. */
static void start_path(const struct clock *c, struct clock_edge *e, int index, struct nic_time now)
{
    struct path *path = &e->paths[index];
    const double least = edge_delay_least(c, e), fit = e->solved.m_ns[index];
    const bool blurred = e->solved.rate_sigma * NS_PER_S > c->config.stamp_noise_ns;
    double round;

    path->known = e->solved.m_known[index] && fit >= least;
    path->m_ns =
        path->known && blurred && edge_round(c, e, index, &round) ? fmax(round, least) : fit;
    path->info = c->noise.info;
    if (blurred) {
        path->info = fmin(path->info, 1 / (e->solved.noise_ns * e->solved.noise_ns));
    }
    path->window = now;
    path->low[0] = path->low[1] = INFINITY;
}

static void start_tracking(struct clock *c, struct nic_time now)
{
    int count = 0;

    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        e->consumed = e->written;
        e->level_known = false;
        e->level_ns = e->expected_ns = 0;
        e->level_weight = 0;
        if (!e->used || !e->solved.valid) {
            continue;
        }
        c->values[count++] = e->solved.noise_ns;
        for (int p = 0; p < e->config.path_count; p++) {
            start_path(c, e, p, now);
        }
        const double ahead =
            clock_map_difference(&e->peer.map, e->solved.remote, &c->map, e->solved.local) +
            e->solved.fraction;
        if (edge_usable(c, e) || e->peer.phase == CLOCK_ACQUIRE) {
            e->level_known = true;
            e->level_ns = e->expected_ns =
                fabs(ahead) < 3000 && fabs(ahead) > BELIEVE_NS ? ahead : 0;
        }
    }
    if (count > 0) {
        /* the best quarter of the edges shows the noise of stamps, because the residuals come from the low end of a
         * distribution */
        (void)shortest_half(c->values, count, count);
        const double guess = c->config.stamp_noise_ns;
        noise_found(&c->noise, fmax(guess / 30, 1.4 * c->values[count / 4]));
    }
    bank_start(&c->bank, 50.0 * 50.0, 300.0 * 300.0);
    clock_set_phase(c, CLOCK_TRACK);
    line_rejoin(c, now);
}

/* By how much the own map's rate is too low, by this edge. Behind full queues a second of packets shows less about a rate than a
 * crystal's data sheet. If members took each other's errors for rates, the fleet's common rate would drift to the end of a map's
 * range, since nothing else holds it. So a measurement counts against the clock's earlier rate, or its nominal rate. */
static double rate_off(const struct clock *c, const struct clock_edge *e)
{
    const double off = (1 + e->peer.map.y) * (1 + e->solved.rate) - (1 + c->map.y);
    const double sigma = e->solved.rate_sigma / CRYSTAL_USUAL;
    const double share = 1 / (1 + sigma * sigma);

    return share * off + (1 - share) * (c->usual_y - c->map.y);
}

/* If stamps contradict each other, one of the two clocks stepped, and no line fits both parts. */
static void forget_contradictions(struct clock *c, struct nic_time now)
{
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (edge_live(c, e) && !e->config.witness &&
            !drift_judge(&e->drift, now.ns, bound_rate_change(c))) {
            clock_forget_stamps_of_peer(c, e);
        }
    }
}

void acquire_round(struct clock *c, struct nic_time now)
{
    const bool join = join_trackers(c);
    double sigma_sum = 0;
    int count = 0, live = 0;

    forget_contradictions(c, now);
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (!edge_live(c, e) || e->config.witness) {
            continue;
        }
        live++;
        if (e->written != e->solved_written) {
            const bool was = e->solved.valid;
            struct solved solved;
            if (acquire_solve(e, now.ns - 2 * NS_PER_S, &solved)) {
                e->solved = solved;
            } else if (!was) {
                e->solved.valid = false;
            }
            e->solved_written = e->written;
        }
        if (!e->solved.valid ||
            (join ? e->peer.phase != CLOCK_TRACK : e->peer.phase < CLOCK_ACQUIRE)) {
            continue;
        }
        c->values[count] =
            clock_map_difference(&e->peer.map, e->solved.remote, &c->map, e->solved.local) +
            e->solved.fraction;
        c->weights[count] = rate_off(c, e);
        sigma_sum += e->solved.sigma_ns;
        count++;
    }
    /* a member that joins tracking peers waits for nobody else: those that acquire may be waiting, too */
    if (count == 0 || (!join && 2 * count < live)) {
        return;
    }
    const int edges = count;
    if (!join) {
        c->values[count] = c->weights[count] = 0;
        count++;
    }
    /* The trimmed mean converges from any state. The shortest interval can leave separate islands, but liars below its share
     * can't hold it back. So the trimmed mean comes first, the shortest interval second. */
    const bool patient = c->rounds > PATIENT_ROUNDS;
    const int keep = keep_of(count), cut = join || patient ? (count - keep) / 2 : trim_of(count);
    const double gain = join ? 1 : 0.8;
    const double ahead = join || patient ? shortest_half(c->values, count, keep)
                                         : trimmed_mean(c->values, count, cut);
    const double faster = join || patient ? shortest_half(c->weights, count, keep)
                                          : trimmed_mean(c->weights, count, cut);
    const double width = patient || join ? shortest_width(c->values, count, keep)
                                         : c->values[count - 1 - cut] - c->values[cut];
    const double good_ns =
        GOOD_NS + GOOD_SIGMA * sigma_sum / edges + (patient ? fmin(SPREAD_NS, 0.5 * width) : 0);
    const bool agreed = patient || (width < 8 * good_ns && fabs(faster) < RATE_AGREED);

    if (fabs(ahead) > 5e6) {
        clock_jump(c, (int64_t)ahead);
        return;
    }
    clock_move(c, now, gain * ahead, gain * faster);
    c->rounds++;
    c->calm = fabs(ahead) < good_ns && agreed ? c->calm + 1 : 0;
    if (c->calm >= 3) {
        start_tracking(c, now);
    }
}
