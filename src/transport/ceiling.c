/* ceiling.c: how many connections a process may have: 4,096 ranks that all talk to each other must fit.
 *
 * A set has all its lanes and standbys while less than three eighths of the ceiling are used, two lanes up to half, then one: so
 * the first lanes of 4,096 peers, all at once, still fit. A lane carries both directions. A set without standbys opens them when
 * it has no lane left. The sender begins with no more than that. The receiver refuses further lanes, each once: a sender with
 * another lane then drops the refused one, and a sender that insists has no other lane. Above the ceiling sets give lanes up,
 * standbys first, down to one each: a sender does so by itself, a receiver by asking (it reports the lane as draining). One lane
 * per peer is never refused: the limit after that is the kernel's (EMFILE). */
#include <errno.h>
#include <sys/resource.h>

#include "base/limits.h"
#include "transport/internal.h"

#define TRIM_SETS 256 /* sets for each look */

uint32_t ceiling_of(const struct transport_config *config)
{
    return config->sockets != 0 ? config->sockets : PROCESS_LANES_MAX;
}

/* Without those that are about to close. */
static uint32_t used(const struct transport *t)
{
    return __atomic_load_n(&t->sockets, __ATOMIC_RELAXED) -
           __atomic_load_n(&t->parting, __ATOMIC_RELAXED);
}

void ceiling_opened(struct transport *t)
{
    __atomic_fetch_add(&t->sockets, 1, __ATOMIC_RELAXED);
}

void ceiling_left(struct transport *t)
{
    __atomic_fetch_sub(&t->sockets, 1, __ATOMIC_RELAXED);
}

void ceiling_closed(struct transport *t, const struct stream *stream)
{
    ceiling_left(t);
    if (stream->parting) {
        __atomic_fetch_sub(&t->parting, 1, __ATOMIC_RELAXED);
    }
}

uint32_t ceiling_lanes(const struct transport *t)
{
    const uint32_t max = t->config.sockets, lanes = t->config.lanes;

    if (ceiling_standbys(t)) {
        return lanes;
    }
    return used(t) < max / 2 && lanes >= 2 ? 2 : 1;
}

bool ceiling_standbys(const struct transport *t)
{
    return used(t) < (t->config.sockets + 1) * 3 / 8;
}

void ceiling_look(struct lane_set *set, struct mono now)
{
    struct watch_lane lane;

    if (!set->standbys_late) {
        return;
    }
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        watch_lane_get(set->watch, now, i, &lane);
        if (lane.used && lane_usable(lane.state)) {
            return;
        }
    }
    standby_start(set, now);
}

int ceiling_refused(struct lane_set *set, int r)
{
    struct rlimit limit = {0};
    char text[PEER_TEXT];

    if ((r != -EMFILE && r != -ENFILE) || set->version != 0 || watch_connected(set->watch) != 0) {
        return 0; /* it had lanes: it tries again later */
    }
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    lane_set_fail(
        set, r,
        "no descriptor left for a lane to %s: %u lanes in use, FOLIOT_LANES %u, open files at "
        "most %llu (ulimit -n)",
        lane_set_peer(set, text), used(set->transport), set->transport->config.sockets,
        (unsigned long long)limit.rlim_cur);
    return r;
}

/* Lanes that stay: connected, and not asked to close. */
static uint32_t staying(const struct lane_set *set)
{
    uint32_t lanes = watch_connected(set->watch) & ~set->traffic.retired;

    for (uint32_t left = lanes; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        if (set->streams[i] == NULL || set->streams[i]->parting) {
            lanes &= ~(1u << i);
        }
    }
    return lanes;
}

/* Closes the lane for good. A standby that was saved is opened when no lane is left. */
static void give_up(struct lane_set *set, uint32_t lane)
{
    set->traffic.retired |= 1u << lane;
    if (set->lane_nics[lane].standby) {
        set->standbys_late = true;
        set->standbys_added = false;
    }
}

static void part(struct lane_set *set, uint32_t lane)
{
    set->streams[lane]->parting = true;
    __atomic_fetch_add(&set->transport->parting, 1, __ATOMIC_RELAXED);
}

/* For the end that connects: the lane's data still arrives, then it closes. The caller calls lane_set_act. */
static void let_go(struct lane_set *set, struct mono now, uint32_t lane)
{
    part(set, lane);
    watch_lane_repath(set->watch, now, lane);
    give_up(set, lane);
}

bool ceiling_admits(const struct transport *t, struct lane_set *set, const struct lane_hello *hello,
                    uint32_t waiting)
{
    const uint32_t lanes =
        set != NULL ? staying(set) & ~(1u << hello->lane) & ~watch_doubted(set->watch) : 0;
    const uint32_t others = (uint32_t)__builtin_popcount(lanes) + waiting;
    const bool fits =
        others == 0 || ceiling_standbys(t) || (!hello->standby && others < ceiling_lanes(t));

    if (set == NULL) {
        return fits;
    }
    if (fits || (set->turned_away >> hello->lane & 1) != 0) {
        set->turned_away &= ~(1u << hello->lane);
        return true;
    }
    set->turned_away |= 1u << hello->lane;
    return false;
}

void ceiling_turned_away(struct lane_set *set, struct mono now, uint32_t lane)
{
    const uint32_t others =
        set->present & ~set->traffic.retired & ~watch_doubted(set->watch) & ~(1u << lane);

    /* Others may still be coming: the last one of them is never given up, and it insists. */
    if (set->traffic.to < 0 && others != 0) {
        watch_lane_close(set->watch, now, lane);
        give_up(set, lane);
    }
}

void ceiling_asked(struct lane_set *set, struct mono now, uint32_t lane, uint32_t epoch)
{
    const struct stream *stream = lane < LANE_MAX ? set->streams[lane] : NULL;
    uint32_t others = staying(set) & ~watch_doubted(set->watch) & ~(1u << (lane % LANE_MAX));

    if (stream == NULL || stream->epoch != epoch || stream->parting || set->traffic.to >= 0) {
        return;
    }
    others &= set->lane_nics[lane].standby ? ~0u : ~lane_set_standbys(set);
    if (others != 0 && (staying(set) >> lane & 1) != 0) {
        let_go(set, now, lane);
    }
}

/* Gives up one lane of the set, if it has another. */
static void give_up_one(struct lane_set *set, struct mono now)
{
    const uint32_t lanes = staying(set);
    struct lane_report report = {.comm = LANE_COMM_NONE};
    struct watch_lane lane;
    int worst = -1;

    if (set->traffic.to >= 0 || __builtin_popcount(lanes) < 2) {
        return;
    }
    for (uint32_t i = 0, standby = 0; i < LANE_MAX; i++) {
        watch_lane_get(set->watch, now, i, &lane);
        if ((lanes >> i & 1) != 0 && lane.standby >= standby) {
            standby = lane.standby;
            worst = (int)i;
        }
    }
    if (set->connects) {
        let_go(set, now, (uint32_t)worst);
        lane_set_act(set, now);
    } else {
        part(set, (uint32_t)worst);
        lane_set_tell(set, &report, -1);
    }
}

void ceiling_trim(struct transport *t, struct mono now)
{
    const uint32_t count = __atomic_load_n(&t->set_count, __ATOMIC_ACQUIRE);

    for (uint32_t k = 0; k < TRIM_SETS && k < count && used(t) > t->config.sockets; k++) {
        struct lane_set *set = __atomic_load_n(&t->sets[t->trim_turn++ % count], __ATOMIC_ACQUIRE);
        if (set != NULL) {
            pthread_mutex_lock(&set->lock);
            give_up_one(set, now);
            pthread_mutex_unlock(&set->lock);
            lane_set_touch(set);
        }
    }
}
