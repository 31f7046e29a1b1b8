/* traffic.c: lanes leave contended paths: carries out the decisions of core/traffic.
 *
 *   delays in STATE ─► detector ─► repath: this lane ─► a new lane beside it, from another port ─► the old one drains
 *
 * A lane's path depends on its port by chance, so a new connection is a new draw. The new lane is made before the old one closes:
 * the old one takes chunks until the new one carries, then it empties and closes; nothing is sent twice. If all lanes wait alike,
 * the new one is only on trial: of the two the better one stays. There is one move at a time for each set.
 *
 * Only the end that connects can make a lane. The other end asks for it in STATE: suspect, because of its path. Such a request is
 * carried out without a trial, because only the sender can see which of two paths is better. */
#include "transport/internal.h"

#define FEED_NS    NS_PER_MS /* one sample per lane and millisecond is enough: judging costs time */
#define JUDGE_NS   (10 * NS_PER_MS)
#define SETTLE_NS  (100 * NS_PER_MS) /* until the new path has shown its quality */
#define GIVE_UP_NS (2 * NS_PER_S)

void traffic_init(struct lane_set *set, struct mono now)
{
    uint64_t seed;

    set->transport->io->random(set->transport->io, &seed, sizeof(seed));
    detector_init(&set->traffic.detector, now);
    repath_init(&set->traffic.repath, seed, now);
    gain_init(&set->traffic.gain, now);
    set->traffic.from = set->traffic.to = -1;
}

void traffic_on_lane(struct lane_set *set, struct mono now, uint32_t lane,
                     const struct lane_state_lane *seen)
{
    struct traffic *traffic = &set->traffic;

    if (seen->owd_ns == LANE_OWD_UNKNOWN || set->lane_nics[lane].standby ||
        mono_sub(now, traffic->fed[lane]).ns < FEED_NS) {
        return;
    }
    traffic->fed[lane] = now;
    detector_on_load(&traffic->detector, scheduler_unacked(&set->scheduler));
    detector_on_owd(&traffic->detector, now, lane, seen->owd_ns);
}

static void move_over(struct lane_set *set, struct mono now, int64_t excess_ns)
{
    repath_on_moved(&set->traffic.repath, now, excess_ns);
    set->traffic.asked = false;
    set->traffic.from = set->traffic.to = -1;
}

/* A free lane number: beyond the first ones, or of a lane that moved away. */
static int free_lane(const struct lane_set *set, struct mono now)
{
    const struct transport_config *config = &set->transport->config;

    for (uint32_t k = 0; k < LANE_MAX; k++) {
        const uint32_t i = (config->lanes + config->standbys + k) % LANE_MAX;
        struct watch_lane lane;
        watch_lane_get(set->watch, now, i, &lane);
        if (!lane.used && !set->lane_nics[i].standby) {
            return (int)i;
        }
    }
    return -1;
}

static bool alike(const struct lane_set *set)
{
    return !set->traffic.asked && set->traffic.repath.why == REPATH_ALIKE;
}

static void begin_move(struct lane_set *set, struct mono now, uint32_t from,
                       const struct detector_finding *finding)
{
    const struct watch_lane_config config = {.own_nic = set->lane_nics[from].own,
                                             .peer_nic = set->lane_nics[from].peer};
    const int to = free_lane(set, now);
    char text[PEER_TEXT];

    if (to >= 0) {
        set->lane_nics[to] = set->lane_nics[from];
    }
    if (to < 0 || watch_lane_add(set->watch, now, (uint32_t)to, &config) < 0) {
        move_over(set, now, -1);
        return;
    }
    set->traffic.from = (int)from;
    set->traffic.to = to;
    set->traffic.began = now;
    set->traffic.drained = false;
    gain_begin(&set->traffic.gain, now);
    if (alike(set)) {
        say(set->transport, TRANSPORT_TRACE,
            "lanes to %s are all congested (%.1f ms): lane %d tries another path than lane %u's",
            lane_set_peer(set, text), (double)finding->base_ns / 1e6, to, from);
        return;
    }
    say(set->transport, TRANSPORT_TRACE,
        "lane %u to %s is contended (%.1f ms over the best, %s): lane %d tries another path", from,
        lane_set_peer(set, text), (double)finding->excess_ns / 1e6,
        detector_verdict_name(finding->verdict), to);
}

/* By the queue there, and by its speed. The new lane carries most of the data, so it may wait as long as the old one. Then the
 * set as a whole has to carry more. */
static int both_better(struct lane_set *set, struct mono now)
{
    const uint32_t to = (uint32_t)set->traffic.to, from = (uint32_t)set->traffic.from;
    const int queue = detector_better(&set->traffic.detector, to, from);
    const int rate = scheduler_better(&set->scheduler, to, from);

    return queue == 0 && rate > 0 ? gain_seen(&set->traffic.gain, now)
           : queue < rate         ? queue
                                  : rate;
}

/* May the old lane close? 1: yes, the new one carries. If it was not known whether there is a better path, the new one must also
 * be better as long as the old one works; 0: it isn't better. -1: not known yet. */
static int new_is_better(struct lane_set *set, struct mono now, const struct watch_lane *lane)
{
    const struct traffic *traffic = &set->traffic;
    struct watch_lane old;

    watch_lane_get(set->watch, now, (uint32_t)traffic->from, &old);
    if (!alike(set) || !lane_usable(old.state)) {
        return lane_usable(lane->state) ? 1 : -1;
    }
    return lane->state != LANE_ACTIVE || mono_sub(now, lane->since).ns < SETTLE_NS
               ? -1
               : both_better(set, now);
}

/* The new lane isn't wanted: data on it still arrives, if it can. */
static void leave_new(struct lane_set *set, struct mono now, enum lane_state state)
{
    const uint32_t to = (uint32_t)set->traffic.to;

    if (state == LANE_ACTIVE || state == LANE_SUSPECT) {
        watch_lane_repath(set->watch, now, to);
    } else {
        watch_lane_close(set->watch, now, to);
    }
    set->traffic.retired |= 1u << to;
    move_over(set, now, -1);
}

static void go_on(struct lane_set *set, struct mono now, const struct detector_finding *finding)
{
    struct traffic *traffic = &set->traffic;
    const uint32_t to = (uint32_t)traffic->to;
    const int64_t waited = mono_sub(now, traffic->began).ns;
    struct watch_lane lane;

    if (traffic->drained) {
        if (waited > SETTLE_NS) {
            const int64_t queue = detector_queue_ns(&traffic->detector, to);
            move_over(set, now, queue < 0 || alike(set) ? 0 : queue - finding->base_ns);
        }
        return;
    }
    watch_lane_get(set->watch, now, to, &lane);
    int better = new_is_better(set, now, &lane);
    if (better > 0) {
        watch_lane_repath(set->watch, now, (uint32_t)traffic->from);
        traffic->retired |= 1u << traffic->from;
        traffic->drained = true;
        traffic->moves++;
        traffic->began = now;
    } else if (better == 0 || lane.state == LANE_DOWN || waited > GIVE_UP_NS) {
        leave_new(set, now, lane.state);
    }
}

/* Lanes that have moved away: their numbers are free again once they are closed and that was reported. */
static void retire(struct lane_set *set, struct mono now)
{
    for (uint32_t lanes = set->traffic.retired; lanes != 0; lanes &= lanes - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(lanes);
        struct watch_lane lane;
        watch_lane_get(set->watch, now, i, &lane);
        if (lane.state == LANE_ACTIVE) { /* it wasn't active when it was told to close */
            watch_lane_repath(set->watch, now, i);
        } else if (lane.state == LANE_DOWN) {
            watch_lane_close(set->watch, now, i);
        } else if (lane.state == LANE_CLOSED && mono_sub(now, lane.since).ns > SETTLE_NS) {
            watch_lane_remove(set->watch, i);
            set->traffic.retired &= ~(1u << i);
        }
    }
}

/* Lanes that carry and may be moved. */
static uint32_t movable(const struct lane_set *set, struct mono now)
{
    uint32_t lanes = watch_carriers(set->watch, now) & ~set->traffic.retired;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        lanes &= set->lane_nics[i].standby ? ~(1u << i) : ~0u;
    }
    return lanes;
}

/* The accepting end: the peer moves the lane, or doesn't for reasons of its own. */
static void ask_move(struct lane_set *set, struct mono now, uint32_t lane,
                     const struct detector_finding *finding)
{
    struct lane_report report = {.comm = LANE_COMM_NONE};
    const bool all = set->traffic.repath.why == REPATH_ALIKE;
    char text[PEER_TEXT];

    set->traffic.from = (int)lane;
    set->traffic.from_epoch = set->streams[lane] != NULL ? set->streams[lane]->epoch : 0;
    set->traffic.asked = true;
    set->traffic.drained = false;
    set->traffic.began = now;
    say(set->transport, TRANSPORT_TRACE,
        all ? "lanes to %s are all congested (%.1f ms): it is asked to move lane %u"
            : "a lane to %s is contended (%.1f ms over the best): it is asked to move lane %u",
        lane_set_peer(set, text), (double)(all ? finding->base_ns : finding->excess_ns) / 1e6,
        lane);
    lane_set_tell(set, &report, -1);
}

bool traffic_asks(const struct lane_set *set, uint32_t lane)
{
    return !set->connects && set->traffic.asked && set->traffic.from == (int)lane &&
           set->streams[lane] != NULL && set->streams[lane]->epoch == set->traffic.from_epoch;
}

static void await_move(struct lane_set *set, struct mono now,
                       const struct detector_finding *finding)
{
    struct traffic *traffic = &set->traffic;
    const int64_t waited = mono_sub(now, traffic->began).ns;

    if (!traffic->drained && !traffic_asks(set, (uint32_t)traffic->from)) {
        traffic->drained = true;
        traffic->began = now;
    } else if (traffic->drained ? waited > SETTLE_NS : waited > GIVE_UP_NS) {
        const int64_t excess = traffic->repath.why != REPATH_ALIKE ? finding->excess_ns
                               : finding->risen || finding->waits  ? -1
                                                                   : 0;
        move_over(set, now, traffic->drained ? excess : -1);
    }
}

void traffic_on_asked(struct lane_set *set, struct mono now, uint32_t lane, uint32_t epoch)
{
    const struct stream *stream = set->streams[lane];

    if (set->mode == TRANSPORT_FULL && set->traffic.to < 0 && set->traffic.from < 0 &&
        stream != NULL && stream->epoch == epoch && !stream->parting &&
        (movable(set, now) >> lane & 1) != 0 && ceiling_standbys(set->transport)) {
        set->traffic.asked = true;
        begin_move(set, now, lane, &(struct detector_finding){.verdict = DETECTOR_CONTENTION});
    }
}

void traffic_look(struct lane_set *set, struct mono now)
{
    struct traffic *traffic = &set->traffic;
    const struct detector_context context = {.peers = 1};
    struct detector_finding finding;

    if (mono_sub(now, traffic->judged).ns < JUDGE_NS) {
        return;
    }
    traffic->judged = now;
    retire(set, now);
    detector_judge(&traffic->detector, now, &context, &finding);
    if (traffic->to >= 0) {
        go_on(set, now, &finding);
        return;
    }
    if (!set->connects && traffic->from >= 0) {
        await_move(set, now, &finding);
        return;
    }
    /* To a process of this machine there is only one path. With too many connections no further one is made. */
    const bool may = !set->scheduler.one_way && ceiling_standbys(set->transport);
    finding.risen = finding.risen && may;
    finding.alike = finding.alike && may;
    if (set->mode == TRANSPORT_FULL && !set->transport->config.no_repath) {
        const int lane = repath_decide(&traffic->repath, now, &finding, movable(set, now));
        if (lane >= 0 && !set->connects) {
            ask_move(set, now, (uint32_t)lane, &finding);
        } else if (lane >= 0) {
            begin_move(set, now, (uint32_t)lane, &finding);
        }
    }
}
