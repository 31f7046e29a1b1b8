/* watch_judge.c: silence. Each look adds the time that was really observed;
 * then lanes are judged against each other. */
#include "core/failover/watch_internal.h"

#define LOOK_MIN_NS  NS_PER_MS
#define LIMIT        4 /* T */
#define LIMIT_RC     2
#define LIMIT_MIN_NS (150 * NS_PER_MS)
#define PING_NS      (100 * NS_PER_MS)
#define ASK_NS       (100 * NS_PER_MS)
#define TRIAL_PINGS  16
#define PARTED_NS    NS_PER_S
#define PARTED_RETRY (100 * NS_PER_MS)
#define ALONE_RETRY  (10 * NS_PER_MS)
#define DEAD_NS      (500 * NS_PER_MS)
#define OBSERVED_MAX NS_PER_S /* of one look, for patience */

struct span watch_timeout(const struct watch *w, const struct wlane *x)
{
    int64_t t = w->config.timeout_max.ns;

    if (x->sampled) {
        t = 4 * (x->srtt_ns + 4 * x->rttvar_ns) + x->backlog_ns;
        t = t > w->config.timeout_min.ns ? t : w->config.timeout_min.ns;
        t = t < w->config.timeout_max.ns ? t : w->config.timeout_max.ns;
    }
    return span_ns(t);
}

void watch_ping(struct watch *w, struct mono now, uint32_t lane)
{
    struct wlane *x = &w->lanes[lane];

    if (!watch_waiting(x)) {
        x->silent_ns = 0;
        x->others_at = w->progress;
        x->progress_at = x->progress;
    }
    x->pinged = true;
    x->ping_at = now;
    x->sequence++;
    watch_push(w, (struct watch_action){.kind = WATCH_PING,
                                        .lane = (uint8_t)lane,
                                        .epoch = x->epoch,
                                        .sequence = x->sequence});
}

/* Progress of others since this lane fell silent: on any lane; on one of
 * another NIC pair only. */
static bool others_progress(const struct watch *w, const struct wlane *x)
{
    return w->progress - x->others_at > x->progress - x->progress_at;
}

static bool same_pair(const struct wlane *a, const struct wlane *b)
{
    return a->own_nic == b->own_nic && a->peer_nic == b->peer_nic;
}

/* All lanes of its NIC pair that owe something are as silent as this one, and
 * the pair has had no progress. */
static bool pair_silent(const struct watch *w, const struct wlane *x, int64_t t)
{
    uint32_t silent = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *y = &w->lanes[i];
        if (!y->used || !lane_connected(y->state) || !same_pair(x, y)) {
            continue;
        }
        if (!watch_waiting(y) || y->silent_ns < t / 2) {
            return false;
        }
        silent++;
    }
    return silent > 1;
}

static void pair_suspect(struct watch *w, struct mono now, const struct wlane *x)
{
    const uint8_t own = x->own_nic, peer = x->peer_nic;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *y = &w->lanes[i];
        if (y->used && lane_connected(y->state) && y->own_nic == own && y->peer_nic == peer &&
            y->state != LANE_DRAINING) {
            watch_event(w, now, i, LANE_EVENT_T, LANE_REASON_TIMEOUT);
        }
    }
}

/* Ask whoever hasn't been asked: standbys first of all, they run over other
 * NICs. */
static void ping_all(struct watch *w, struct mono now)
{
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *y = &w->lanes[i];
        if (y->used && lane_connected(y->state) && !watch_waiting(y)) {
            watch_ping(w, now, i);
        }
    }
}

/* T of a lane that owes a pong and nothing else is the longest: what its delay was when it was asked last says
 * nothing of now, for other lanes may have filled its path since; and nothing is lost while it is waited for. */
static int64_t judged_by(const struct watch *w, const struct wlane *x)
{
    return x->left == 0 || x->state == LANE_TRIAL ? w->config.timeout_max.ns
                                                  : watch_timeout(w, x).ns;
}

/* To doubt a lane costs some bytes that go twice, so it is done early, at T. To kill it costs a connection and
 * damping: a queue that fills at once (many begin to send to one) is silence, too, but not for that long. */
static int64_t limit_of(const struct watch *w, int64_t t)
{
    const int64_t limit = (w->config.queue_pairs ? LIMIT_RC : LIMIT) * t;

    return limit > LIMIT_MIN_NS || w->config.queue_pairs ? limit : LIMIT_MIN_NS;
}

static void judge(struct watch *w, struct mono now, uint32_t lane)
{
    struct wlane *x = &w->lanes[lane];
    const int64_t t = judged_by(w, x);
    const int64_t limit = limit_of(w, t);
    const bool others = others_progress(w, x);

    if (x->silent_ns < t / 2) {
        return;
    }
    if (mono_sub(now, x->asked_at).ns >= t / 2 && !w->config.queue_pairs) {
        x->asked_at = now;
        watch_push(w, (struct watch_action){
                          .kind = WATCH_ASK_KERNEL, .lane = (uint8_t)lane, .epoch = x->epoch});
    }
    if (!others) {
        ping_all(w, now);
        /* Nobody says anything: the peer may be stopped. One at a time, never the
     * last. */
        if (x->silent_ns >= limit && mono_sub(now, w->forced_at).ns >= limit &&
            (x->state == LANE_SUSPECT || x->state == LANE_ACTIVE)) {
            w->forced_at = now;
            watch_event(w, now, lane, LANE_EVENT_LIMIT, LANE_REASON_TIMEOUT);
        }
        return;
    }
    if (x->silent_ns >= t && pair_silent(w, x, t)) {
        pair_suspect(w, now, x);
    }
    if (x->silent_ns >= limit) {
        watch_event(w, now, lane, LANE_EVENT_LIMIT, LANE_REASON_TIMEOUT);
    } else if (x->silent_ns >= t && x->state != LANE_DRAINING) { /* that one is left anyway */
        watch_event(w, now, lane, LANE_EVENT_T, LANE_REASON_TIMEOUT);
    }
}

static void look_at(struct watch *w, struct mono now, uint32_t lane, int64_t gap)
{
    struct wlane *x = &w->lanes[lane];
    const int64_t t = watch_timeout(w, x).ns;
    const int64_t most = t / 16 > LOOK_MIN_NS ? t / 16 : LOOK_MIN_NS;
    const int64_t since_ping = mono_sub(now, x->ping_at).ns;

    if (x->state == LANE_CONNECTING) {
        if (mono_sub(now, x->since).ns >= x->connect_limit.ns) {
            watch_event(w, now, lane, LANE_EVENT_LIMIT, LANE_REASON_TIMEOUT);
        }
        return;
    }
    if (x->state == LANE_DOWN) {
        /* With nothing left any path may be tried: damping is for choosing among those that work. */
        const bool retry = w->parted            ? mono_sub(now, x->since).ns >= PARTED_RETRY
                           : w->unusable_ns > 0 ? mono_sub(now, x->since).ns >= ALONE_RETRY
                                                : !watch_held(w, now, x);
        if (retry && !mono_before(now, x->retry_at)) {
            watch_event(w, now, lane, LANE_EVENT_HOLD_OVER, x->reason);
        }
        return;
    }
    if (!lane_connected(x->state)) {
        return;
    }
    if (x->state == LANE_TRIAL && x->trial_pings < TRIAL_PINGS && since_ping >= NS_PER_MS &&
        !x->pinged) {
        x->trial_pings++;
        watch_ping(w, now, lane);
    } else if (x->state == LANE_TRIAL) {
        watch_event(w, now, lane, LANE_EVENT_ACKED, LANE_REASON_NONE); /* its 200 ms may be over */
    }
    if (w->owing && !watch_waiting(x) && since_ping >= PING_NS) {
        watch_ping(w, now, lane);
    }
    if (x->left > 0 && mono_sub(now, x->asked_at).ns >= ASK_NS && !w->config.queue_pairs) {
        x->asked_at = now; /* how much it sends twice */
        watch_push(w, (struct watch_action){
                          .kind = WATCH_ASK_KERNEL, .lane = (uint8_t)lane, .epoch = x->epoch});
    }
    if (watch_waiting(x)) {
        x->silent_ns += gap < most ? gap : most;
        judge(w, now, lane);
    }
}

static void look_whole(struct watch *w, struct mono now, int64_t gap)
{
    const int64_t seen = gap < OBSERVED_MAX ? gap : OBSERVED_MAX;
    bool usable = false, any = false;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        any |= w->lanes[i].used && w->lanes[i].state != LANE_CLOSED;
        usable |= w->lanes[i].used && lane_usable(w->lanes[i].state);
    }
    w->unusable_ns = usable || !any ? 0 : w->unusable_ns + seen;
    if (w->unusable_ns >= PARTED_NS && !w->parted) {
        w->parted = true;
        watch_push(w, (struct watch_action){.kind = WATCH_PARTED});
    } else if (usable && w->parted) {
        w->parted = false;
        watch_push(w, (struct watch_action){.kind = WATCH_REJOINED});
    }
    w->untaken_ns = w->on_their_way && w->owing ? w->untaken_ns + seen : 0;
    w->unheard_ns = w->owing ? w->unheard_ns + seen : 0;
    if (w->failed || !w->owing) {
        return;
    }
    if (w->unheard_ns >= w->config.patience.ns || w->untaken_ns >= w->config.patience.ns ||
        (w->dead && mono_sub(now, w->dead_at).ns >= DEAD_NS && !usable)) {
        w->failed = true;
        watch_push(w, (struct watch_action){
                          .kind = WATCH_FAIL, .reason = LANE_REASON_TIMEOUT, .dead = w->dead});
    }
}

void watch_look(struct watch *w, struct mono now)
{
    const int64_t gap = mono_sub(now, w->looked).ns > 0 ? mono_sub(now, w->looked).ns : 0;

    w->looked = now;
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        if (w->lanes[i].used) {
            look_at(w, now, i, gap);
        }
    }
    look_whole(w, now, gap);
}

struct mono watch_deadline(const struct watch *w)
{
    struct mono at =
        w->owing || w->unusable_ns > 0 ? mono_add(w->looked, span_ms(100)) : MONO_NEVER;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *x = &w->lanes[i];
        const int64_t t = watch_timeout(w, x).ns;
        if (!x->used || x->state == LANE_CLOSED) {
            continue;
        }
        if (x->state == LANE_CONNECTING) {
            at = mono_min(at, mono_add(x->since, x->connect_limit));
        } else if (x->state == LANE_DOWN) {
            at = w->config.receiver ? at : mono_min(at, mono_add(w->looked, span_ms(10)));
        } else if (x->state == LANE_TRIAL) {
            at = mono_min(at, mono_add(w->looked, span_ms(1)));
        } else if (watch_waiting(x)) {
            at = mono_min(
                at, mono_add(w->looked, span_ns(t / 16 > LOOK_MIN_NS ? t / 16 : LOOK_MIN_NS)));
        }
    }
    return at;
}
