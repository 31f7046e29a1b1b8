/* watch_judge.c: judges silence. Each look adds the time that was really observed; then lanes are judged against each other. */
#include "core/failover/watch_internal.h"

#define HELLO_NS     (5 * NS_PER_S)
#define LOOK_MIN_NS  NS_PER_MS
#define SEEN_MAX_NS  (20 * NS_PER_MS) /* for one look, if the kernel saw the rest of the time */
#define DOUBT_MIN_NS (40 * NS_PER_MS)
#define LIMIT_NS     NS_PER_S
#define LIMIT_RC     2 /* D */
#define FORCED_NS    (200 * NS_PER_MS)
#define ASK_NS       (100 * NS_PER_MS)
#define ASK_SOON_NS  (5 * NS_PER_MS)
#define TRIAL_PINGS  16
#define CAUTION_NS   (10 * NS_PER_S)
#define PARTED_NS    NS_PER_S
#define PARTED_RETRY (100 * NS_PER_MS)
#define ALONE_RETRY  (2 * NS_PER_MS)
#define DEAD_NS      (10 * NS_PER_MS) /* refused for so long, and nothing heard */
#define OBSERVED_MAX NS_PER_S         /* for one look, for patience; and a quarter of that */
#define KEPT_SHARE   8
#define KEPT_MAX_NS  (5 * NS_PER_S)

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
        watch_quiet(w, x);
    }
    x->settled = false;
    x->pinged = true;
    x->ping_at = now;
    x->sequence++;
    watch_push(w, (struct watch_action){.kind = WATCH_PING,
                                        .lane = (uint8_t)lane,
                                        .epoch = x->epoch,
                                        .sequence = x->sequence});
}

/* True if another lane has brought something back since this one fell silent. */
static bool others_progress(const struct watch *w, const struct wlane *x)
{
    return w->progress - x->others_at > x->progress - x->progress_at;
}

/* Pings all lanes that have no ping open: their answers show which share the silent lane's path or NIC. */
static void ping_all(struct watch *w, struct mono now)
{
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *y = &w->lanes[i];
        if (y->used && lane_connected(y->state) && !watch_waiting(y)) {
            watch_ping(w, now, i);
        }
    }
}

/* Without the kernel's report. T of a lane that only owes a pong is the longest: its last measured delay shows nothing about now,
 * because other lanes may have filled its path since. And waiting for it loses nothing. */
static int64_t doubt_by_chunks(const struct watch *w, const struct wlane *x)
{
    return watch_left(x) == 0 || x->state == LANE_TRIAL ? w->config.timeout_max.ns
                                                        : watch_timeout(w, x).ns;
}

/* D, not doubled. */
static int64_t doubt_plain(const struct watch *w, const struct wlane *x)
{
    const int64_t d = 2 * x->rtt_ns + 4 * x->rtt_ns_var, most = w->config.timeout_max.ns;

    return d < DOUBT_MIN_NS ? DOUBT_MIN_NS : d < most ? d : most;
}

int64_t watch_longest_doubt(const struct watch *w, const struct wlane *x)
{
    const int64_t d = x->kernel ? doubt_plain(w, x) << CAUTION_MAX : w->config.timeout_max.ns;

    return d < w->config.timeout_max.ns ? d : w->config.timeout_max.ns;
}

/* D: the allowed silence. */
static int64_t doubt_after(const struct watch *w, const struct wlane *x)
{
    const int64_t most = w->config.timeout_max.ns;

    if (!x->kernel) {
        return doubt_by_chunks(w, x);
    }
    const int64_t d = doubt_plain(w, x) << w->caution;
    return x->state != LANE_TRIAL && d < most ? d : most;
}

static void double_once(struct watch *w, uint32_t lane)
{
    struct wlane *x = &w->lanes[lane];

    if (!x->doubled) {
        x->doubled = true;
        watch_push(w, (struct watch_action){
                          .kind = WATCH_DOUBLE, .lane = (uint8_t)lane, .epoch = x->epoch});
    }
}

/* Doubts all lanes that have been silent for nearly as long as this one, although they may have been pinged only half-way.
 * Otherwise its chunks would try one lane after another of the same path or NIC. */
static void doubt(struct watch *w, struct mono now, uint32_t lane)
{
    const int64_t silent = w->lanes[lane].silent_ns;

    if (w->lanes[lane].state == LANE_DRAINING) { /* that lane is being left anyway */
        double_once(w, lane);
    } else {
        watch_event(w, now, lane, LANE_EVENT_T, LANE_REASON_TIMEOUT);
    }
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *y = &w->lanes[i];
        if (i != lane && y->state == LANE_ACTIVE && watch_waiting(y) &&
            y->silent_ns >= silent / 3 && 2 * y->silent_ns >= 3 * y->rtt_ns) {
            watch_event(w, now, i, LANE_EVENT_T, LANE_REASON_TIMEOUT);
            watch_silent_since(&w->lanes[i], silent); /* it may have owed nothing until the ping */
        }
    }
}

/* No lane answers: the peer may be stopped. One at a time, never the last. */
static void force(struct watch *w, struct mono now, uint32_t lane, int64_t limit)
{
    const struct wlane *x = &w->lanes[lane];

    if (x->silent_ns >= limit && mono_sub(now, w->forced_at).ns >= FORCED_NS &&
        (x->state == LANE_SUSPECT || x->state == LANE_ACTIVE)) {
        w->forced_at = now;
        watch_event(w, now, lane, LANE_EVENT_LIMIT, LANE_REASON_TIMEOUT);
    }
}

/* The longest recent time that another lane was silent alone and came back by itself: this machine does that to good paths. The
 * lane's own silences don't count, because they may be its fault. */
static int64_t stall_of_others(const struct watch *w, const struct wlane *x)
{
    int64_t least = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *y = &w->lanes[i];
        if (y != x && y->used && lane_connected(y->state)) {
            const int64_t stall = least_at(&y->stalls, w->looked, span_ns(WATCH_STALLS_NS));
            least = stall < least ? stall : least;
        }
    }
    return -least;
}

/* A lane of a fenced set is given up after so long a silence beside lanes that are heard. A lane on trial without chunks delays
 * nothing: it gets the same time as in other sets. */
static int64_t fenced_limit(const struct watch *w, const struct wlane *x)
{
    const bool idle_trial = x->state == LANE_TRIAL && watch_left(x) == 0;
    const int64_t d = idle_trial  ? w->config.timeout_max.ns
                      : x->kernel ? doubt_plain(w, x)
                                  : doubt_by_chunks(w, x);
    const int64_t noise = stall_of_others(w, x) > d ? stall_of_others(w, x) : d;
    const int64_t limit = d + (x->resend_ns > noise ? x->resend_ns : noise);

    return limit < LIMIT_NS ? limit : LIMIT_NS;
}

static bool beyond_limit(const struct watch *w, const struct wlane *x, int64_t after)
{
    return x->silent_ns >= (w->config.queue_pairs ? LIMIT_RC * after : LIMIT_NS) ||
           (w->fenced && x->alone_ns >= fenced_limit(w, x));
}

void watch_judge(struct watch *w, struct mono now, uint32_t lane)
{
    struct wlane *x = &w->lanes[lane];
    const int64_t after = doubt_after(w, x);
    const int64_t late = w->config.queue_pairs ? LIMIT_RC * after : LIMIT_NS;

    if (!watch_waiting(x) || x->silent_ns < after / 2) {
        return;
    }
    ping_all(w, now);
    if (!others_progress(w, x)) {
        /* perhaps its host stands still; but doubting the last lanes costs nothing, and makes others be tried */
        if (x->kernel && x->silent_ns >= after + after / 2 && x->state == LANE_ACTIVE) {
            doubt(w, now, lane);
        }
        force(w, now, lane, late);
    } else if (beyond_limit(w, x, after)) {
        watch_event(w, now, lane, LANE_EVENT_LIMIT, LANE_REASON_TIMEOUT);
    } else if (x->silent_ns >= after && x->state != LANE_SUSPECT) {
        doubt(w, now, lane);
    }
}

/* Time to ask the kernel: how much it sends twice; and, for a lane that seems silent, whether it is. */
static bool ask_due(const struct watch *w, struct mono now, const struct wlane *x)
{
    const int64_t since = mono_sub(now, x->asked_at).ns;

    return !w->config.queue_pairs && watch_waiting(x) && !(x->settled && !w->owing) &&
           since >= (x->silent_ns >= ASK_SOON_NS ? ASK_SOON_NS : ASK_NS);
}

/* The part of the time since the last look that counts. */
static int64_t seen(const struct watch *w, const struct wlane *x, int64_t gap)
{
    const int64_t t = watch_timeout(w, x).ns;
    const int64_t most = x->kernel ? SEEN_MAX_NS : t / 16 > LOOK_MIN_NS ? t / 16 : LOOK_MIN_NS;

    return gap < most ? gap : most;
}

/* True if they brought something back just now, or within the time of an answer: if all stand still, the machine does. */
static bool others_heard(const struct watch *w, struct wlane *x, int64_t gap)
{
    const uint64_t others = w->progress - x->progress;

    x->hushed_ns = others != x->others ? 0 : x->hushed_ns + gap;
    x->others = others;
    return x->hushed_ns <= SEEN_MAX_NS + x->rtt_ns;
}

/* The limit for making a connection. After the peer's kernel has answered, only its process is missing. */
static struct span connect_limit(const struct wlane *x)
{
    return x->answered && x->connect_limit.ns < HELLO_NS ? span_ns(HELLO_NS) : x->connect_limit;
}

static void look_at(struct watch *w, struct mono now, uint32_t lane, int64_t gap)
{
    struct wlane *x = &w->lanes[lane];
    const int64_t since_ping = mono_sub(now, x->ping_at).ns;

    if (x->state == LANE_CONNECTING) {
        if (mono_sub(now, x->since).ns >= connect_limit(x).ns) {
            watch_event(w, now, lane, LANE_EVENT_LIMIT, LANE_REASON_TIMEOUT);
        }
        return;
    }
    if (x->state == LANE_DOWN) {
        /* without any lane, each path may be tried: damping only chooses among working ones */
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
    if (x->state == LANE_TRIAL && x->trial_pings < TRIAL_PINGS &&
        since_ping >= NS_PER_MS) { /* asking one after the other would take as many round trips */
        x->trial_pings++;
        watch_ping(w, now, lane);
    } else if (x->state == LANE_TRIAL) {
        watch_event(w, now, lane, LANE_EVENT_ACKED, LANE_REASON_NONE); /* its 200 ms may be over */
    }
    if (w->owing && !watch_waiting(x) && since_ping >= PING_NS) {
        watch_ping(w, now, lane);
    }
    if (watch_waiting(x) && !x->settled) {
        x->silent_ns += seen(w, x, gap);
        x->alone_ns += others_heard(w, x, gap) ? seen(w, x, gap) : 0;
        if (w->config.queue_pairs) {
            watch_judge(w, now, lane);
        }
    }
    if (ask_due(w, now, x)) {
        x->asked_at = now;
        watch_push(w, (struct watch_action){
                          .kind = WATCH_ASK_KERNEL, .lane = (uint8_t)lane, .epoch = x->epoch});
    }
}

/* The time of a ping if nothing is owed. */
static struct mono keep_at(const struct watch *w)
{
    const int64_t share = w->config.patience.ns / KEPT_SHARE;

    return w->kept && !w->owing
               ? mono_add(w->kept_at, span_ns(share < KEPT_MAX_NS ? share : KEPT_MAX_NS))
               : MONO_NEVER;
}

/* The next lane in turn: if the peer is dead, any of them shows it. It may also be a lane whose last ping a stopped process still
 * owes: its kernel's answer shows whether the peer exists. */
static void keep(struct watch *w, struct mono now)
{
    w->kept_at = now;
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const uint32_t lane = ++w->kept_turn % LANE_MAX;
        const struct wlane *x = &w->lanes[lane];
        if (x->used && lane_connected(x->state) && (!watch_waiting(x) || x->settled)) {
            watch_ping(w, now, lane);
            return;
        }
    }
}

static void look_whole(struct watch *w, struct mono now, int64_t gap)
{
    const int64_t quarter = w->config.patience.ns / 4;
    const int64_t most = quarter < OBSERVED_MAX ? quarter : OBSERVED_MAX;
    const int64_t seen = gap < most ? gap : most;
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
    if (w->caution > 0 && mono_sub(now, w->mistaken_at).ns >= CAUTION_NS) {
        w->caution--;
        w->mistaken_at = now;
    }
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        if (w->lanes[i].used) {
            look_at(w, now, i, gap);
        }
    }
    if (!mono_before(now, keep_at(w))) {
        keep(w, now);
    }
    look_whole(w, now, gap);
}

struct mono watch_deadline(const struct watch *w)
{
    struct mono at =
        w->owing || w->unusable_ns > 0 ? mono_add(w->looked, span_ms(100)) : MONO_NEVER;

    at = mono_min(at, keep_at(w));
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *x = &w->lanes[i];
        const int64_t t = watch_timeout(w, x).ns;
        if (!x->used || x->state == LANE_CLOSED) {
            continue;
        }
        if (x->state == LANE_CONNECTING) {
            at = mono_min(at, mono_add(x->since, connect_limit(x)));
        } else if (x->state == LANE_DOWN) {
            at = w->config.accepts ? at : mono_min(at, mono_add(w->looked, span_ms(10)));
        } else if (x->state == LANE_TRIAL) {
            at = mono_min(at, mono_add(w->looked, span_ms(1)));
        } else if (watch_waiting(x) && !x->settled) {
            at =
                mono_min(at, mono_add(w->looked, span_ns(x->kernel ? ASK_SOON_NS : seen(w, x, t))));
        }
    }
    return at;
}
