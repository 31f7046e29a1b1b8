/* watch.c: facts about lanes, NICs and the peer, and the consequences of a change of state. watch_judge.c judges silence. */
#include "core/failover/watch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/failover/watch_internal.h"

#define PATIENCE_NS    (60 * NS_PER_S)
#define TIMEOUT_MIN_NS (5 * NS_PER_MS)
#define TIMEOUT_MAX_NS (200 * NS_PER_MS)
#define CONNECT_MIN_NS (50 * NS_PER_MS)
#define CONNECT_MAX_NS NS_PER_S
#define TRIAL_NS       (200 * NS_PER_MS)
#define TRIAL_CHUNKS   32
#define TRIAL_PINGS    16
#define REGAIN_ACKS    8
#define SILENT_TOO_NS  (10 * NS_PER_MS)
#define MISTAKE_NS     (500 * NS_PER_MS)
#define SAME_PATH      2 /* tries */
#define SAME_FAULT_NS  NS_PER_S

struct watch *watch_new(const struct watch_config *config, struct mono now)
{
    struct watch *w = calloc(1, sizeof(*w));

    if (w == NULL) {
        return NULL;
    }
    w->config = *config;
    struct watch_config *c = &w->config;
    c->patience.ns = c->patience.ns > 0 ? c->patience.ns : PATIENCE_NS;
    c->timeout_min.ns = c->timeout_min.ns > 0 ? c->timeout_min.ns : TIMEOUT_MIN_NS;
    c->timeout_max.ns = c->timeout_max.ns > 0 ? c->timeout_max.ns : TIMEOUT_MAX_NS;
    w->looked = w->heard = w->mistaken_at = now;
    w->forced_at = (struct mono){INT64_MIN / 2};
    return w;
}

void watch_free(struct watch *w)
{
    free(w);
}

const struct bug_note *watch_bug(const struct watch *w)
{
    return w->bug.condition != NULL ? &w->bug : NULL;
}

void watch_push(struct watch *w, struct watch_action action)
{
    /* the caller takes the actions after each call */
    if (HOLDS(&w->bug, w->action_count < ACTIONS)) {
        w->actions[(w->action_head + w->action_count++) % ACTIONS] = action;
    }
}

bool watch_next_action(struct watch *w, struct watch_action *ret_action)
{
    if (w->action_count > 0) {
        *ret_action = w->actions[w->action_head];
        w->action_head = (w->action_head + 1) % ACTIONS;
        w->action_count--;
        return true;
    }
    if (w->tell) { /* once, after all actions that it reports */
        w->tell = false;
        *ret_action = (struct watch_action){.kind = WATCH_TELL};
        return true;
    }
    return false;
}

/* ---- a change of state
 * ------------------------------------------------------------------------ */

bool watch_waiting(const struct wlane *x)
{
    return x->used && lane_connected(x->state) && (watch_left(x) > 0 || x->pinged || x->told);
}

bool watch_cut(const struct watch *w, const struct wlane *x)
{
    const struct wnic *own = &w->own[x->own_nic], *peer = &w->peer[x->peer_nic];

    /* the peer's reports come over lanes: without any lane, the last one may be outdated */
    return (own->known && !own->up) || (peer->known && !peer->up && !w->parted);
}

bool watch_held(const struct watch *w, struct mono now, const struct wlane *x)
{
    return damping_held(&x->damping, now) || damping_held(&w->own[x->own_nic].damping, now) ||
           damping_held(&w->peer[x->peer_nic].damping, now);
}

static bool another_usable(const struct watch *w, const struct wlane *but)
{
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        if (&w->lanes[i] != but && w->lanes[i].used && lane_usable(w->lanes[i].state)) {
            return true;
        }
    }
    return false;
}

static bool another_left(const struct watch *w, const struct wlane *but)
{
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *x = &w->lanes[i];
        if (x != but && x->used && (lane_connected(x->state) || x->state == LANE_CONNECTING)) {
            return true;
        }
    }
    return false;
}

static struct lane_guards guards(const struct watch *w, struct mono now, const struct wlane *x)
{
    return (struct lane_guards){
        .only = !another_usable(w, x),
        .parted = w->parted && another_left(w, x),
        .first = x->first,
        .passed = x->trial_pongs >= TRIAL_PINGS &&
                  (x->acked >= TRIAL_CHUNKS || mono_sub(now, x->since).ns >= TRIAL_NS),
        .regained = x->proven,
        .empty = watch_left(x) == 0,
        .held = watch_held(w, now, x),
        .cut = watch_cut(w, x),
    };
}

void watch_quiet(struct watch *w, struct wlane *x)
{
    x->silent_ns = x->alone_ns = 0;
    x->others_at = w->progress;
    x->progress_at = x->progress;
}

/* It brought something back by itself. */
void watch_came_back(struct watch *w, struct wlane *x)
{
    if (x->state == LANE_SUSPECT) {
        const int64_t silence = x->silent_before_ns + x->silent_ns;
        x->silence_ns = silence > x->silence_ns ? silence : x->silence_ns;
        x->silent_before_ns = 0;
    }
    if (x->alone_ns > 0) {
        least_add(&x->stalls, w->looked, span_ns(WATCH_STALLS_NS), -x->alone_ns);
    }
    watch_quiet(w, x);
}

static void nic_failed(struct wnic *nic, struct mono now)
{
    if (!nic->counted) {
        nic->counted = true;
        damping_on_failover(&nic->damping, now);
    }
}

static void went_down(struct watch *w, struct mono now, uint32_t lane, enum lane_state was)
{
    struct wlane *x = &w->lanes[lane];

    watch_push(
        w, (struct watch_action){
               .kind = WATCH_CLOSE, .lane = (uint8_t)lane, .epoch = x->epoch, .reason = x->reason});
    x->pinged = x->told = false;
    x->first = false;
    x->retry_at = now;
    if (was == LANE_CONNECTING) { /* no failover: it carried nothing */
        x->connect_limit.ns =
            x->connect_limit.ns * 2 < CONNECT_MAX_NS ? x->connect_limit.ns * 2 : CONNECT_MAX_NS;
        x->retry_at = mono_add(now, span_ns(x->connect_limit.ns / 2));
        return;
    }
    /* a lane that the peer closes properly hasn't failed */
    x->failovers += x->reason != LANE_REASON_CLOSE;
    x->same_path = x->reason == LANE_REASON_CARRIER ? SAME_PATH : 0;
    damping_on_failover(&x->damping, now);
    const struct wnic *own = &w->own[x->own_nic];
    /* otherwise it was the peer's carrier */
    if (x->reason == LANE_REASON_CARRIER && own->known && !own->up) {
        nic_failed(&w->own[x->own_nic], now);
    }
}

/* The kernel's counts were those of the last connection: the next one's begin at zero. */
static void new_connection(struct wlane *x)
{
    x->sampled = x->kernel = x->settled = false;
    x->alone_ns = 0;
    x->stalls = (struct least){.values = {LEAST_NONE, LEAST_NONE}};
    x->loss = -1;
    x->segments = x->resent = x->seen_segments = x->seen_resent = 0;
}

static void connect_now(struct watch *w, uint32_t lane)
{
    struct wlane *x = &w->lanes[lane];
    const int64_t rtts = x->sampled ? 4 * x->srtt_ns : 0;

    x->epoch++;
    if (x->connect_limit.ns < CONNECT_MIN_NS) {
        x->connect_limit.ns = rtts > CONNECT_MIN_NS ? rtts : CONNECT_MIN_NS;
    }
    x->answered = false;
    new_connection(x);
    watch_push(w, (struct watch_action){.kind = WATCH_CONNECT,
                                        .lane = (uint8_t)lane,
                                        .epoch = x->epoch,
                                        .same_path = x->same_path > 0});
    x->same_path -= x->same_path > 0;
}

/* A lane is usable that wasn't when these lanes were doubted. */
static void redouble(struct watch *w, uint32_t but)
{
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *x = &w->lanes[i];
        if (i != but && x->used && x->state == LANE_SUSPECT) {
            watch_push(w, (struct watch_action){
                              .kind = WATCH_DOUBLE, .lane = (uint8_t)i, .epoch = x->epoch});
        }
    }
}

/* The silence was shorter than the longest limit that this path may have: with that there would have been no doubt, so the limit
 * is too short for these paths. The correction wears off. A longer silence shows nothing about the limit: the path was dead for a
 * while, and a longer limit would only find the next such fault later. */
static void mistaken(struct watch *w, struct mono now)
{
    w->mistakes++;
    if (mono_sub(now, w->mistaken_at).ns >= MISTAKE_NS && w->caution < CAUTION_MAX) {
        w->caution++;
    }
    w->mistaken_at = now;
}

/* A doubted lane carries again. Chunks on lanes that are still doubted may now be sent over it. */
static void believed(struct watch *w, uint32_t lane)
{
    watch_push(w, (struct watch_action){
                      .kind = WATCH_TRUST, .lane = (uint8_t)lane, .epoch = w->lanes[lane].epoch});
    redouble(w, lane);
}

static void entered(struct watch *w, struct mono now, uint32_t lane, enum lane_state was)
{
    struct wlane *x = &w->lanes[lane];

    w->tell = true;
    /* in a fenced set, the limit of a doubted lane counts from the beginning of its silence */
    if (!w->fenced || x->state != LANE_SUSPECT) {
        watch_quiet(w, x);
    }
    x->acked = 0;
    x->proven = x->doubled = false;
    switch (x->state) {
    case LANE_CONNECTING:
        connect_now(w, lane);
        break;
    case LANE_TRIAL:
        x->trial_pings = x->trial_pongs = 0;
        x->connect_limit.ns = 0;
        break;
    case LANE_ACTIVE:
        x->reason = LANE_REASON_NONE;
        x->connect_limit.ns = 0;
        if (was != LANE_SUSPECT) {
            x->active_at = now;
            redouble(w, lane);
        } else {
            believed(w, lane);
        }
        w->own[x->own_nic].counted = false;
        w->peer[x->peer_nic].counted = false;
        break;
    case LANE_SUSPECT:
        w->doubts++;
        watch_push(w, (struct watch_action){
                          .kind = WATCH_DOUBLE, .lane = (uint8_t)lane, .epoch = x->epoch});
        if (!watch_waiting(x)) { /* so that it can show that it works */
            watch_ping(w, now, lane);
        }
        break;
    case LANE_DOWN:
        went_down(w, now, lane, was);
        break;
    case LANE_CLOSED:
        watch_push(w, (struct watch_action){.kind = WATCH_CLOSE,
                                            .lane = (uint8_t)lane,
                                            .epoch = x->epoch,
                                            .reason = x->reason,
                                            .closed = true});
        x->pinged = x->told = false;
        break;
    default:
        break;
    }
}

void watch_loads(struct watch *w, const struct lane_load *loads)
{
    w->loads = loads;
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        w->lanes[i].load = &loads[i];
    }
}

void watch_observe(struct watch *w, bool on)
{
    w->observe = on;
}

void watch_fenced(struct watch *w)
{
    w->fenced = true;
}

/* In observe mode only the connection itself decides, not a judgement about it. */
static bool only_watched(const struct watch *w, const struct wlane *x, enum lane_event event,
                         enum lane_reason reason)
{
    return w->observe && lane_connected(x->state) &&
           (event == LANE_EVENT_T || event == LANE_EVENT_LIMIT || event == LANE_EVENT_HINT ||
            event == LANE_EVENT_TRIAL_LOSS ||
            (event == LANE_EVENT_LOST &&
             (reason == LANE_REASON_CARRIER || reason == LANE_REASON_TIMEOUT ||
              reason == LANE_REASON_LOSS || reason == LANE_REASON_HINT)));
}

void watch_event(struct watch *w, struct mono now, uint32_t lane, enum lane_event event,
                 enum lane_reason reason)
{
    if (only_watched(w, &w->lanes[lane], event, reason)) {
        return;
    }
    struct wlane *x = &w->lanes[lane];
    const enum lane_state was = x->state;
    const enum lane_state next = lane_next(was, event, guards(w, now, x));

    if (next == was || (next == LANE_CONNECTING && w->config.accepts)) {
        return; /* the accepting end waits for HELLO */
    }
    const int64_t silent = x->silent_ns;
    x->state = next;
    x->since = now;
    if (next != LANE_ACTIVE) {
        x->reason = reason;
    } else if (was == LANE_SUSPECT && x->reason == LANE_REASON_TIMEOUT &&
               x->silence_ns < x->longest_ns) {
        mistaken(w, now);
    }
    entered(w, now, lane, was);
    if (next == LANE_SUSPECT) {
        x->longest_ns = watch_longest_doubt(w, x);
        x->silence_ns = 0;
        watch_silent_since(x, silent);
    }
}

/* ---- lanes are added and removed --------------------------------------------------------------------------- */

int watch_lane_add(struct watch *w, struct mono now, uint32_t lane,
                   const struct watch_lane_config *config)
{
    if (lane >= LANE_MAX || config->own_nic >= WATCH_NIC_MAX || config->peer_nic >= WATCH_NIC_MAX) {
        return -EINVAL;
    }
    struct wlane *x = &w->lanes[lane];
    if (x->used) {
        return -EEXIST;
    }
    uint32_t epoch = x->epoch;
    *x = (struct wlane){.used = true,
                        .first = epoch == 0,
                        .standby = config->standby,
                        .own_nic = config->own_nic,
                        .peer_nic = config->peer_nic,
                        .load = w->loads != NULL ? &w->loads[lane] : NULL,
                        .state = w->config.accepts ? LANE_DOWN : LANE_CONNECTING,
                        .epoch = epoch,
                        .since = now,
                        .loss = -1,
                        .stalls = {.values = {LEAST_NONE, LEAST_NONE}},
                        .asked_at = now,
                        .ping_at = now};
    if (!w->config.accepts) {
        connect_now(w, lane);
    }
    return 0;
}

void watch_lane_nics(struct watch *w, uint32_t lane, const struct watch_lane_config *config)
{
    if (lane < LANE_MAX && w->lanes[lane].used && config->own_nic < WATCH_NIC_MAX &&
        config->peer_nic < WATCH_NIC_MAX) {
        w->lanes[lane].own_nic = config->own_nic;
        w->lanes[lane].peer_nic = config->peer_nic;
    }
}

void watch_lane_repath(struct watch *w, struct mono now, uint32_t lane)
{
    if (lane < LANE_MAX && w->lanes[lane].used) {
        watch_event(w, now, lane, LANE_EVENT_REPATH, LANE_REASON_REPATH);
        /* takes effect if it is empty */
        watch_event(w, now, lane, LANE_EVENT_ACKED, LANE_REASON_REPATH);
    }
}

void watch_lane_close(struct watch *w, struct mono now, uint32_t lane)
{
    if (lane < LANE_MAX && w->lanes[lane].used) {
        watch_event(w, now, lane, LANE_EVENT_CLOSE, LANE_REASON_CLOSE);
    }
}

void watch_lane_remove(struct watch *w, uint32_t lane)
{
    if (lane < LANE_MAX && w->lanes[lane].state == LANE_CLOSED) {
        w->lanes[lane].used = false;
    }
}

/* ---- facts about lanes
 * ---------------------------------------------------------------------------
 */

static void sample(struct wlane *x, int64_t rtt)
{
    if (rtt < 0) {
        return;
    }
    if (!x->sampled) {
        x->sampled = true;
        x->srtt_ns = rtt;
        x->rttvar_ns = rtt / 2;
        return;
    }
    x->rttvar_ns += ((rtt > x->srtt_ns ? rtt - x->srtt_ns : x->srtt_ns - rtt) - x->rttvar_ns) / 4;
    x->srtt_ns += (rtt - x->srtt_ns) / 8;
}

static void alive(struct watch *w, struct mono now)
{
    w->heard = now;
    w->unheard_ns = 0;
    w->dead = false;
}

static void progress(struct watch *w, struct mono now, uint32_t lane)
{
    w->progress++;
    w->lanes[lane].progress++;
    watch_came_back(w, &w->lanes[lane]);
    alive(w, now);
}

void watch_on_answered(struct watch *w, uint32_t lane, uint32_t epoch)
{
    struct wlane *x = lane < LANE_MAX ? &w->lanes[lane] : NULL;

    if (x != NULL && x->used && x->state == LANE_CONNECTING && x->epoch == epoch) {
        x->answered = true;
    }
}

void watch_on_hello(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                    struct span rtt)
{
    if (lane >= LANE_MAX || !w->lanes[lane].used || w->lanes[lane].state == LANE_CLOSED) {
        return;
    }
    struct wlane *x = &w->lanes[lane];
    if (w->config.accepts) {
        if (epoch <= x->epoch) {
            return;
        }
        if (x->state != LANE_DOWN) { /* the connecting end has given up the old one */
            watch_event(w, now, lane, LANE_EVENT_LOST, LANE_REASON_PEER);
        }
        x->epoch = epoch;
        x->leaving = false;
        new_connection(x);
        x->state = LANE_ACTIVE; /* the connecting end decides about the trial */
        x->since = now;
        entered(w, now, lane, LANE_CONNECTING);
    } else if (epoch != x->epoch || x->state != LANE_CONNECTING) {
        return;
    } else {
        watch_event(w, now, lane, LANE_EVENT_HELLO_OK, LANE_REASON_NONE);
    }
    x->sampled = false;
    sample(x, rtt.ns);
    x->ping_at = x->asked_at = now;
    progress(w, now, lane);
}

void watch_on_sent(struct watch *w, struct mono now, uint32_t lane, uint32_t chunks,
                   struct span backlog)
{
    (void)now;
    if (lane >= LANE_MAX || !w->lanes[lane].used) {
        return;
    }
    struct wlane *x = &w->lanes[lane];
    if (watch_left(x) <= chunks && !x->pinged &&
        !x->told) { /* it waited for nothing before these chunks */
        watch_quiet(w, x);
    }
    x->settled = false;
    x->backlog_ns = backlog.ns;
}

void watch_on_told(struct watch *w, uint32_t lane)
{
    if (lane < LANE_MAX && w->lanes[lane].used && !w->lanes[lane].told) {
        if (!watch_waiting(&w->lanes[lane])) {
            watch_quiet(w, &w->lanes[lane]);
        }
        w->lanes[lane].told = true;
    }
    if (lane < LANE_MAX) {
        w->lanes[lane].settled = false;
    }
}

void watch_on_acked(struct watch *w, struct mono now, uint32_t lane, uint32_t chunks,
                    struct span rtt, struct span backlog, bool by_itself)
{
    if (lane >= LANE_MAX || !w->lanes[lane].used) {
        return;
    }
    struct wlane *x = &w->lanes[lane];
    x->backlog_ns = backlog.ns;
    x->acked += chunks;
    w->untaken_ns = 0;
    sample(x, rtt.ns);
    if (by_itself || !x->kernel) {
        x->proven = x->proven || watch_left(x) == 0 || x->acked >= REGAIN_ACKS;
        progress(w, now, lane);
    } else { /* one direction may be dead: the kernel reports about the data in flight */
        x->told = true;
        alive(w, now);
    }
    watch_event(w, now, lane, LANE_EVENT_ACKED, LANE_REASON_NONE);
}

void watch_on_pong(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                   uint32_t sequence)
{
    if (lane >= LANE_MAX || !w->lanes[lane].used || w->lanes[lane].epoch != epoch) {
        return;
    }
    struct wlane *x = &w->lanes[lane];
    if (sequence == x->sequence && x->pinged) {
        x->pinged = false;
        x->proven = x->proven || !mono_before(x->ping_at, x->since);
        sample(x, mono_sub(now, x->ping_at).ns);
    }
    x->trial_pongs++;
    x->acked++;
    progress(w, now, lane);
    watch_event(w, now, lane, LANE_EVENT_ACKED, LANE_REASON_NONE);
}

void watch_on_heard(struct watch *w, struct mono now, uint32_t lane)
{
    (void)lane;
    alive(w, now);
}

void watch_on_lost(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                   enum lane_reason reason)
{
    if (lane < LANE_MAX && w->lanes[lane].used && w->lanes[lane].epoch == epoch) {
        if (w->lanes[lane].leaving) { /* it was announced: the lane has moved to another path */
            watch_event(w, now, lane, LANE_EVENT_CLOSE, LANE_REASON_REPATH);
            return;
        }
        watch_event(w, now, lane, LANE_EVENT_LOST, reason);
    }
}

void watch_on_peer(struct watch *w, struct mono now, uint32_t lane, uint32_t epoch,
                   enum lane_state state, enum lane_reason reason)
{
    if (lane >= LANE_MAX || !w->lanes[lane].used || w->lanes[lane].epoch != epoch) {
        return;
    }
    w->lanes[lane].leaving = state == LANE_DRAINING;
    if (state == LANE_DOWN) {
        watch_event(w, now, lane, LANE_EVENT_LOST,
                    reason == LANE_REASON_CARRIER ? reason : LANE_REASON_PEER);
    } else if (state == LANE_CLOSED) {
        watch_event(w, now, lane, LANE_EVENT_CLOSE, LANE_REASON_CLOSE);
    } else if (state == LANE_SUSPECT && reason == LANE_REASON_TIMEOUT &&
               w->lanes[lane].state == LANE_ACTIVE && watch_waiting(&w->lanes[lane]) &&
               w->lanes[lane].silent_ns >= SILENT_TOO_NS) { /* both sources see the same */
        watch_event(w, now, lane, LANE_EVENT_T, LANE_REASON_TIMEOUT);
        watch_silent_since(&w->lanes[lane],
                           w->lanes[lane].longest_ns); /* the peer's limit, not ours */
    }
}

void watch_on_hint(struct watch *w, struct mono now, uint32_t lane)
{
    if (lane < LANE_MAX && w->lanes[lane].used && w->lanes[lane].silent_ns >= 10 * NS_PER_MS) {
        watch_event(w, now, lane, LANE_EVENT_HINT,
                    LANE_REASON_HINT); /* never against a fresh acknowledgement */
    }
}

/* ---- NICs and the peer
 * ----------------------------------------------------------------------------
 */

void watch_on_carrier(struct watch *w, struct mono now, bool own, uint32_t nic, bool up,
                      uint32_t down_count)
{
    if (nic >= WATCH_NIC_MAX) {
        return;
    }
    struct wnic *n = own ? &w->own[nic] : &w->peer[nic];
    bool flap = n->known && n->up && up && down_count != 0 && down_count != n->down_count;
    if (n->known && (n->up != up || down_count != n->down_count)) {
        damping_on_movement(&n->damping, now);
    }
    const bool came = n->known && !n->up && up, went = !up && (!n->known || n->up);
    n->known = true;
    n->up = up;
    n->down_count = down_count;
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        struct wlane *x = &w->lanes[i];
        if (!x->used || (own ? x->own_nic : x->peer_nic) != nic) {
            continue;
        }
        if (went && x->state == LANE_DOWN &&
            (x->reason == LANE_REASON_RESET || x->reason == LANE_REASON_PEER) &&
            mono_sub(now, x->since).ns < SAME_FAULT_NS) {
            x->same_path = SAME_PATH; /* the peer closed it before its report arrived */
        } else if (went) {
            watch_event(w, now, i, LANE_EVENT_LOST, LANE_REASON_CARRIER);
        } else if (came) {
            watch_event(w, now, i, LANE_EVENT_USABLE, LANE_REASON_CARRIER);
        } else if (flap) { /* it was down between two looks: its data may be lost */
            watch_event(w, now, i, LANE_EVENT_HINT, LANE_REASON_CARRIER);
        }
    }
}

void watch_on_peer_dead(struct watch *w, struct mono now)
{
    if (!w->dead) {
        w->dead = true;
        w->dead_at = now;
    }
}

void watch_on_peer_there(struct watch *w)
{
    w->dead = false;
}

void watch_on_owing(struct watch *w, struct mono now, bool owing)
{
    if (owing && !w->owing) {
        w->heard = now;
        w->unheard_ns = 0;
    }
    w->owing = owing;
}

void watch_on_kept(struct watch *w, bool kept)
{
    if (kept && !w->kept) {
        w->kept_at = w->looked;
    }
    w->kept = kept;
}

void watch_on_their_way(struct watch *w, bool any)
{
    w->on_their_way = any;
}
