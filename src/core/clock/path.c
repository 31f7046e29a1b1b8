/* path.c: the delay m of each path of an edge. It is learned from the packets in the ring, and then followed.
 *
 * m is half of a round trip, so theta is not part of it. A new path uses its lowest round trips; later the scores of both
 * directions together are used. A path that waits in a queue, or became longer or shorter, is learned anew. */
#include "core/clock/clock_private.h"

#include <math.h>
#include <stdlib.h>

#include "stats/sample.h"

#define M_FORGET       0.03 /* per update; there are two or three a second */
#define AHEAD_GAIN     0.3  /* a second or two: theta follows as fast */
#define LEARN_NS       (1200 * NS_PER_MS)
#define WINDOW_NS      (1 * NS_PER_S)
#define OUT_S_MAX      2.0
#define EXCESS_S_MAX   600.0 /* it is a longer route, not a queue */
#define UNSURE_LEARN_S 3
#define ROUND_NS       (300 * NS_PER_MS)
#define LATE_SOME      0.1 /* if so many packets wait, others do, too */
#define FLOOR_NS       (300 * NS_PER_S)
#define SETTLE_NS      (10 * NS_PER_S) /* as long as m remembers; its first packets are few then */
#define DELAY_SIGMAS   3 /* of stamps: half of the mean of a few low round trips is not lower */

/* The mean of the lowest fifths; it sorts. */
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

/* What one path's recent packets took, by direction, relative to the delay that is to be learned. */
struct ways {
    double way[2][RING_PACKETS];
    int64_t at[2][RING_PACKETS];
    int count[2];
};

/* The mean low round trip, halved: each forward packet with its nearest backward packet in time. The lowest packets of either
 * direction alone come from different moments. If the two clocks' rates differ, each direction then favours another end: a
 * difference of 0.5 ppm, as after a partition, made paths 0.2 us too short. The two directions wait independently, so fewer round
 * trips are as low. */
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

/* A member that tracks undisturbed knows the time better than one path's first second shows it. This is false while parts of the
 * fleet meet again. */
static bool knows_time(const struct clock *c, const struct clock_edge *e)
{
    return c->narrow && !c->disrupted && c->peers_in_gate >= c->needed && e->peer.settled &&
           !e->parked && !edge_on_the_move(c, e);
}

/* The floor of a path between those two NICs: the fastest of its predecessor and the other paths. 0: not known. */
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
        const double way = edge_one_way(c, e, p->local_ns, p->remote_ns, p->forward);
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

/* True if both maps have not changed their rates since. Otherwise theta moved, and the lowest packets of one direction are the
 * first ones, those of the other direction the last ones: together they take less than the path. */
static bool rates_stood(const struct clock *c, const struct clock_edge *e, struct nic_time since)
{
    return c->own_rate.since.ns <= since.ns && e->peer_rate.since.ns <= since.ns;
}

/* m isn't settled while it rests on the first packets. */
static void forget_floor(struct path *path, struct nic_time now)
{
    path->floor_ns[0] = path->floor_ns[1] = INFINITY;
    path->ahead_ns = 0;
    path->floor_since.ns = now.ns + SETTLE_NS;
}

static void note_floor(struct path *path, struct nic_time now)
{
    if (path->floor_since.ns == 0) {
        forget_floor(path, now);
    }
    if (now.ns < path->floor_since.ns) {
        return;
    }
    if (now.ns - path->floor_since.ns >= FLOOR_NS) {
        path->floor_ns[1] = path->floor_ns[0];
        path->floor_ns[0] = INFINITY;
        path->floor_since = now;
    }
    path->floor_ns[0] = fmin(path->floor_ns[0], path->m_ns);
}

double path_risen_ns(const struct path *path)
{
    const double least = fmin(path->floor_ns[0], path->floor_ns[1]);
    const bool settled = path->floor_since.ns != 0 && isfinite(least);

    return path->known ? path->ahead_ns + (settled ? path->m_ns - least : 0) : 0;
}

/* Learns the delay of a path from the packets in the ring, when there are enough. If one direction takes longer than the other
 * and the time is known, packets wait in that direction, most likely in a queue. Then the faster direction gives the path's
 * delay. Half of the round trip would turn the queue into an error of time for as long as it stands, and into the opposite error
 * when it ends. */
void path_learn(struct clock *c, struct clock_edge *e, int index, struct nic_time now)
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
    /* If other paths of this edge wait, this one does, too. */
    const bool held = fmax(e->late[0], e->late[1]) > LATE_SOME;
    if (knows_time(c, e) && (held || rates_stood(c, e, path->learning_since)) &&
        path->m_ns > (forward + backward) / 2 + high) {
        /* no round trip was free of waits, but single directions were */
        path->m_ns = (forward + backward) / 2;
    }
    /* few packets behind one queue scatter little */
    const bool waited = scatter > high || (held && path->m_ns > floor_ns + high);
    const bool waits = floor_ns > 0 && waited;
    if (path->m_ns < edge_delay_least(c, e)) {
        return; /* some packets came before a clock stepped, or a map's rate is far wrong */
    }
    path->known = true;
    if (waits && path->m_ns > floor_ns) {
        /* no two packets took so little time: the path's own floor isn't known */
        path->m_ns = floor_ns;
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
    forget_floor(path, now);
    if (!e->level_known) {
        e->unsure = path->unsure;
        e->level_ns = e->expected_ns = path->unsure ? 0 : (forward - backward) / 2;
        e->level_known = true;
        e->level_weight = 1;
    }
}

/* The path becomes sure if its floor has been seen, if both directions wait alike by now, which does no harm, or if it has been
 * so for long: then one direction has a longer route. */
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

/* A second's lowest innovations of both directions show a standing queue, a shorter route, or a shift of theta. Queued packets
 * reach into the gate, so an edge that is off by more than the gate could look right. But then one direction's lowest value is as
 * much too low as the other's is too high, and their sum has not grown. */
void path_close_window(struct clock *c, struct clock_edge *e, struct path *path,
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
        /* if all packets wait for frames, the excess is those waits, however long they last */
        path->excess_since_s = excess > high && !e->alike ? path->excess_since_s + 1 : 0;
        if (path->unsure) {
            grow_sure(c, path, excess, shift);
        } else if (excess < low || path->excess_since_s > EXCESS_S_MAX) {
            path->known = false;
            path->shrunk = true;
            path->learning_since = now;
        } else if (excess <= 0 && fabs(shift) > -SHIFT_LOW * low) {
            edge_shift_level(e, shift);
        } else if (e->out_since_s > OUT_S_MAX && excess < high) {
            edge_shift_level(e, shift);
        }
    }
    path->low[0] = path->low[1] = INFINITY;
    path->window = now;
    note_floor(path, now);
}

/* The newest packet on that path in the other direction before the i-th one; NULL: none. */
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

/* The round trip of these two packets allows at most `most`. Of two round trips below m the longer one counts, if they share no
 * packet. */
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

/* No path takes longer than half of a round trip over it. So a delay that was learned behind a queue ends with the first packets
 * without one, however certain it was, and however wide the density. Between the two packets theta moved by at most what stamps
 * allow, or a clock stepped. So two round trips of different packets are needed. */
void paths_shorten(const struct clock *c, struct clock_edge *e)
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
        const double round = edge_one_way(c, e, p->local_ns, p->remote_ns, p->forward) +
                             edge_one_way(c, e, back->local_ns, back->remote_ns, back->forward);
        const double most = (round + rate * (double)apart) / 2 + slack;
        take_most(c, &e->paths[p->path], most, p, back);
    }
}

/* With the previous packet in the other direction, if that was recent, it makes a round trip. */
void path_take_round(struct clock *c, struct path *path, const struct packet *p, double way)
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

/* The first seconds of a path whose faster direction alone gives its delay: theta counts as known, so an error of that direction
 * is an error of m. */
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

/* m from both directions together. The news of one direction alone can't be separated from theta, so it waits for the other. */
void path_learn_m(const struct clock *c, const struct clock_edge *e, struct path *path,
                  const double score[2], const int count[2])
{
    for (int d = 0; d < 2; d++) {
        path->score[d] += score[d];
        path->count[d] += count[d];
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

    path->ahead_ns += AHEAD_GAIN * (sum - path->ahead_ns);
    path->info = path->info * (1 - M_FORGET) + info;
    path->m_ns += fmin(most, fmax(-most, sum)) * info / path->info;
    path->m_ns = fmax(path->m_ns, edge_delay_least(c, e));
    path->score[0] = path->score[1] = 0;
    path->count[0] = path->count[1] = 0;
}
