/* detector.c: see detector.h. */
#include "core/traffic/detector.h"

#include <string.h>

#include "stats/sample.h"

#define BUCKET_NS    (5 * NS_PER_S)
#define THETA_MIN_NS (20 * NS_PER_US)
#define HELD         8 /* chunks */
#define FEW          4 /* samples of a lane before it is judged */
#define RECENT_NS    (100 * NS_PER_MS)
#define STARVED      3 /* queues of the best lane */
#define RISEN        4 /* times the usual */
#define USUAL_NS     (30 * NS_PER_S)
#define LEARN_NS     NS_PER_S
#define LOAD_GAIN    (1.0 / 16) /* a few samples of each lane */

void detector_init(struct detector *d, struct mono now)
{
    (void)now;
    memset(d, 0, sizeof(*d));
    d->theta_ns = THETA_MIN_NS;
}

void detector_lane_open(struct detector *d, struct mono now, uint32_t lane)
{
    if (lane < LANE_MAX) {
        d->lanes[lane] = (struct detector_lane){.open = true, .over_since = now};
        least_init(&d->lanes[lane].floor_ns, now);
    }
}

void detector_lane_down(struct detector *d, uint32_t lane)
{
    if (lane < LANE_MAX) {
        d->lanes[lane].open = false;
    }
}

void detector_on_rtt(struct detector *d, struct span rtt)
{
    if (rtt.ns > 0 && (d->rtt_floor_ns == 0 || rtt.ns < d->rtt_floor_ns)) {
        d->rtt_floor_ns = rtt.ns;
    }
}

/* The median absolute deviation of the lane's last samples: its own noise. */
static int64_t noise(const struct detector_lane *x)
{
    int64_t sorted[DETECTOR_WINDOW];
    const uint32_t n = x->count;

    if (n == 0) {
        return 0;
    }
    memcpy(sorted, x->q_ns, n * sizeof(sorted[0]));
    sample_sort_int(sorted, n);
    int64_t median = sorted[n / 2];
    for (uint32_t i = 0; i < n; i++) {
        sorted[i] = sorted[i] > median ? sorted[i] - median : median - sorted[i];
    }
    sample_sort_int(sorted, n);
    return sorted[n / 2];
}

/* The least of the lanes' queues: their common part. The threshold: the noise of the quietest lane. */
static void base_update(struct detector *d)
{
    int64_t least = INT64_MAX, mad = INT64_MAX, owd = INT64_MAX, floor = INT64_MAX, theta;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct detector_lane *x = &d->lanes[i];
        if (x->open && x->count >= FEW) {
            const int64_t own = x->noise_ns, empty = least_get(&x->floor_ns);
            owd = x->smooth_ns + empty < owd ? x->smooth_ns + empty : owd;
            floor = empty < floor ? empty : floor;
            least = x->smooth_ns < least ? x->smooth_ns : least;
            mad = own < mad ? own : mad;
        }
    }
    if (least == INT64_MAX) {
        return;
    }
    theta = 4 * mad > d->rtt_floor_ns / 2 ? 4 * mad : d->rtt_floor_ns / 2;
    d->theta_ns = theta > THETA_MIN_NS ? theta : THETA_MIN_NS;
    d->base_ns = least;
    d->bare_ns = owd - floor;
}

/* The factor by which the queue has fewer bytes than usual: the usual number would wait so much longer. */
static double shrunk(const struct detector *d)
{
    return d->load_bytes > 0 && d->load_bytes < d->usual_bytes ? d->usual_bytes / d->load_bytes : 1;
}

static bool risen(const struct detector *d)
{
    const double least = (double)(d->rtt_floor_ns > THETA_MIN_NS ? d->rtt_floor_ns : THETA_MIN_NS);
    const double usual = d->usual_ns > least ? d->usual_ns : least, now = (double)d->bare_ns;

    return now > usual && now * shrunk(d) > RISEN * usual;
}

/* The mean of earlier values, over up to USUAL_NS. A risen value becomes usual only after that time. Pauses don't count. */
static void usual_update(struct detector *d, struct mono now)
{
    const int64_t since = mono_sub(now, d->usual_at).ns;
    const int64_t elapsed = since < RECENT_NS ? since : RECENT_NS;
    const bool learning = d->usual_age_ns < LEARN_NS || !risen(d);

    if (d->usual_at.ns != 0 && elapsed > 0) {
        d->usual_age_ns += elapsed;
        const double over =
            (double)(d->usual_age_ns < USUAL_NS && learning ? d->usual_age_ns : USUAL_NS);
        d->usual_ns += ((double)d->bare_ns - d->usual_ns) * (double)elapsed / over;
        d->usual_bytes += (d->load_bytes - d->usual_bytes) * (double)elapsed / over;
    }
    d->usual_at = now;
}

void detector_on_load(struct detector *d, uint64_t bytes)
{
    d->load_bytes += ((double)bytes - d->load_bytes) * (d->load_bytes > 0 ? LOAD_GAIN : 1);
}

void detector_on_owd(struct detector *d, struct mono now, uint32_t lane, int64_t owd_ns)
{
    if (lane >= LANE_MAX || !d->lanes[lane].open || d->off) {
        return;
    }
    struct detector_lane *x = &d->lanes[lane];
    least_add(&x->floor_ns, now, span_ns(BUCKET_NS), owd_ns);
    int64_t q = owd_ns - least_get(&x->floor_ns);
    x->owd_ns = owd_ns;
    x->at = now;
    x->q_ns[x->next] = q;
    x->next = (x->next + 1) % DETECTOR_WINDOW;
    x->count += x->count < DETECTOR_WINDOW;
    x->smooth_ns = x->count == 1 ? q : x->smooth_ns + (q - x->smooth_ns) / 4;
    x->noise_ns = noise(x);
    base_update(d);
    usual_update(d, now);
    if (x->smooth_ns - d->base_ns > d->theta_ns) {
        x->over_since = x->over == 0 ? now : x->over_since;
        x->over++;
    } else {
        x->over = 0;
    }
    if (d->base_ns > d->theta_ns) {
        d->base_since = d->base_over == 0 ? now : d->base_since;
        d->base_over++;
    } else {
        d->base_over = 0;
    }
}

bool detector_base_over(const struct detector *d)
{
    return d->base_over >= HELD;
}

static bool another_faster(const struct detector *d, struct mono now, const struct detector_lane *x)
{
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct detector_lane *y = &d->lanes[i];
        if (y != x && y->open && y->count > 0 && mono_before(x->over_since, y->at) &&
            mono_sub(now, y->at).ns <= RECENT_NS && x->owd_ns - y->owd_ns > d->theta_ns) {
            return true;
        }
    }
    return false;
}

/* The least bare delay of the lanes. The floor of a lane that never saw its path empty hides the queue. */
static int64_t best_owd(const struct detector *d, struct mono now)
{
    int64_t best = INT64_MAX;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct detector_lane *x = &d->lanes[i];
        if (x->open && x->count >= FEW && mono_sub(now, x->at).ns <= RECENT_NS &&
            x->smooth_ns + least_get(&x->floor_ns) < best) {
            best = x->smooth_ns + least_get(&x->floor_ns);
        }
    }
    return best;
}

static bool lane_over(const struct detector *d, struct mono now, const struct detector_lane *x)
{
    return x->open && x->over >= HELD && mono_sub(now, x->over_since).ns >= 2 * d->rtt_floor_ns &&
           another_faster(d, now, x);
}

static enum detector_verdict verdict_of(bool some, bool base, const struct detector_context *c)
{
    const bool all_peers = c->peers > 1 && c->peers_over >= c->peers;
    const bool rack = c->rack_peers > 1 && c->rack_over >= c->rack_peers && !all_peers;

    if (!base) {
        return some ? DETECTOR_CONTENTION : DETECTOR_CLEAR;
    }
    if (rack) {
        return DETECTOR_CONGESTION;
    }
    if (some) {
        return DETECTOR_BOTH;
    }
    if (all_peers) {
        return DETECTOR_OWN_HOST;
    }
    return c->receiver_slow ? DETECTOR_SLOW_RECEIVER : DETECTOR_INCAST;
}

void detector_judge(const struct detector *d, struct mono now,
                    const struct detector_context *context, struct detector_finding *ret_finding)
{
    struct detector_finding f = {.worst = -1,
                                 .risen = risen(d) && mono_sub(now, d->usual_at).ns <= RECENT_NS,
                                 .base_ns = d->base_ns,
                                 .theta_ns = d->theta_ns};
    const int64_t best = best_owd(d, now);
    const int64_t queue = d->base_ns > d->theta_ns ? d->base_ns : d->theta_ns;
    uint32_t known = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct detector_lane *x = &d->lanes[i];
        const int64_t excess = x->smooth_ns - d->base_ns;
        if (!x->open || x->count < FEW) {
            continue;
        }
        known++;
        if (f.worst < 0 || excess > f.excess_ns) {
            f.worst = (int)i;
            f.excess_ns = excess;
        }
        if (lane_over(d, now, x)) {
            f.contended |= 1u << i;
            f.starved |=
                x->smooth_ns + least_get(&x->floor_ns) - best > STARVED * queue ? 1u << i : 0;
        }
    }
    f.alike = known > 0 && f.contended == 0 && detector_base_over(d) &&
              mono_sub(now, d->usual_at).ns <= RECENT_NS;
    f.waits = known > 0 && d->bare_ns > d->theta_ns && mono_sub(now, d->usual_at).ns <= RECENT_NS;
    f.verdict = known == 0 || d->off ? DETECTOR_UNKNOWN
                                     : verdict_of(f.contended != 0, detector_base_over(d), context);
    *ret_finding = f;
}

int detector_better(const struct detector *d, uint32_t lane, uint32_t than)
{
    const struct detector_lane *x = &d->lanes[lane < LANE_MAX ? lane : 0];
    const struct detector_lane *y = &d->lanes[than < LANE_MAX ? than : 0];
    const int64_t most = y->smooth_ns / 2, queue = most > d->theta_ns ? most : d->theta_ns;

    if (!x->open || x->count < HELD || !y->open || y->count < FEW) {
        return -1;
    }
    return x->smooth_ns + least_get(&x->floor_ns) + queue < y->smooth_ns + least_get(&y->floor_ns);
}

int64_t detector_queue_ns(const struct detector *d, uint32_t lane)
{
    return lane < LANE_MAX && d->lanes[lane].open && d->lanes[lane].count > 0
               ? d->lanes[lane].smooth_ns
               : -1;
}

const char *detector_verdict_name(enum detector_verdict verdict)
{
    static const char *const names[DETECTOR_VERDICT_COUNT] = {
        "clear",         "unknown",  "contention", "incast",
        "slow_receiver", "own_host", "both",       "congestion"};

    return (unsigned)verdict < DETECTOR_VERDICT_COUNT ? names[verdict] : "unknown";
}
