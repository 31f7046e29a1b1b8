/* ceiling.c: how many connections a process may have: 4,096 ranks that all talk to each other must fit.
 *
 * A new set has all its lanes and standbys while less than half of the ceiling is used, two lanes up to three quarters, then
 * one; without standbys it opens them when it has no lane left. Beyond the ceiling sets give lanes up, standbys first,
 * down to one each. One lane per peer is never refused: the limit after that is the kernel's (EMFILE). */
#include <errno.h>
#include <sys/resource.h>

#include "transport/internal.h"

#define SOCKETS_MAX 8192
#define TRIM_SETS   64 /* per look */

uint32_t ceiling_of(const struct transport_config *config)
{
    return config->sockets != 0 ? config->sockets : SOCKETS_MAX;
}

static uint32_t used(const struct transport *t)
{
    return __atomic_load_n(&t->sockets, __ATOMIC_RELAXED);
}

void ceiling_count(struct transport *t, int more)
{
    __atomic_fetch_add(&t->sockets, (uint32_t)more, __ATOMIC_RELAXED);
}

uint32_t ceiling_lanes(const struct transport *t)
{
    const uint32_t max = t->config.sockets, lanes = t->config.lanes;

    if (used(t) < max / 2) {
        return lanes;
    }
    return used(t) < max / 4 * 3 && lanes >= 2 ? 2 : 1;
}

bool ceiling_standbys(const struct transport *t)
{
    return used(t) < t->config.sockets / 2;
}

void ceiling_look(struct set *set, struct mono now)
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

int ceiling_refused(struct set *set, int rc)
{
    struct rlimit limit = {0};
    char text[PEER_TEXT];

    if ((rc != -EMFILE && rc != -ENFILE) || set->version != 0 || watch_connected(set->watch) != 0) {
        return 0; /* it had lanes: it tries again */
    }
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    set_fail(set, rc,
             "no descriptor left for a lane to %s: %u lanes in use, FOLIOT_LANES %u, open files at "
             "most %llu (ulimit -n)",
             set_peer(set, text), used(set->transport), set->transport->config.sockets,
             (unsigned long long)limit.rlim_cur);
    return rc;
}

/* One lane of the set goes, if it has another. */
static void give_up_one(struct set *set, struct mono now)
{
    const uint32_t connected = watch_connected(set->watch) & ~set->traffic.retired;

    if (!set->sending || set->traffic.to >= 0 || __builtin_popcount(connected) < 2) {
        return;
    }
    for (int standby = 1; standby >= 0; standby--) {
        for (int i = LANE_MAX - 1; i >= 0; i--) {
            if ((connected >> i & 1) != 0 && set->lane_nics[i].standby == (standby != 0)) {
                watch_lane_repath(set->watch, now, (uint32_t)i);
                set->traffic.retired |= 1u << i;
                set->standbys_late = set->standbys_late || standby;
                set->standbys_added = set->standbys_added && !standby;
                set_act(set, now);
                return;
            }
        }
    }
}

void ceiling_trim(struct transport *t, struct mono now)
{
    const uint32_t count = __atomic_load_n(&t->set_count, __ATOMIC_ACQUIRE);

    for (uint32_t k = 0; k < TRIM_SETS && k < count && used(t) > t->config.sockets; k++) {
        struct set *set = __atomic_load_n(&t->sets[t->trim_turn++ % count], __ATOMIC_ACQUIRE);
        if (set != NULL) {
            pthread_mutex_lock(&set->lock);
            give_up_one(set, now);
            pthread_mutex_unlock(&set->lock);
            set_touch(set);
        }
    }
}
