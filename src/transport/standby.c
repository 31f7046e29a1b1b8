/* standby.c: lanes over other NICs, which carry when the set's own can't.
 *
 * Not every NIC reaches every other: a management NIC, rails that aren't joined, firewalls. So pairs of NICs are tried in the
 * order of their chances: another NIC at both ends, of the same name (the same rail), of the same network. A standby that can't
 * be made over its pair tries the next one, round after round, each time less often. If any pair of NICs connects two processes,
 * one of their standbys finds it. The first standby, once it was up, stays with its pair while the set has any other way. The
 * second one comes home when the first one is alive there: if all stayed where a fault sends them, the next fault would find all
 * of them on one NIC. */
#include <string.h>

#include "base/prng.h"
#include "transport/internal.h"

#define TRIES       3 /* of one pair, in a row */
#define HOME_NS     (20 * NS_PER_S)
#define SETTLED_NS  NS_PER_S
#define STRANDED_NS (200 * NS_PER_MS) /* if no lane is usable: another pair, each time */
#define HOME_NS_MAX (1000 * NS_PER_S)
#define PAIRS_MAX   (HOST_NIC_MAX * WATCH_NIC_MAX)

struct pair {
    uint8_t own, peer;
    uint8_t score;
};

/* The first two bytes of the part of the address that names a network. */
static const uint8_t *network(const struct io_address *address)
{
    return io_address_is_v4(address) ? address->ip + 12 : address->ip;
}

static uint8_t score(const struct lane_set *set, uint32_t own, uint32_t peer)
{
    const struct transport_nic *nic = &set->transport->nics[own].config;
    const struct peer_nic *other = &set->peers[peer];
    uint8_t sum = 0;

    sum += own != set->nic ? 8 : 0;
    sum += peer != 0 ? 8 : 0;
    sum += strncmp(nic->name, other->name, sizeof(other->name)) == 0 ? 4 : 0;
    sum += network(&nic->address)[0] == network(&other->address)[0] ? 2 : 0;
    sum += network(&nic->address)[1] == network(&other->address)[1] ? 1 : 0;
    return sum;
}

/* All pairs except the set's own, the best first; ret_best: how many share the best score. */
static uint32_t list(const struct lane_set *set, struct pair pairs[static PAIRS_MAX],
                     uint32_t *ret_best)
{
    uint32_t count = 0;

    for (uint32_t own = 0; own < set->transport->config.nic_count; own++) {
        for (uint32_t peer = 0; peer < set->peer_count; peer++) {
            const struct pair pair = {(uint8_t)own, (uint8_t)peer, score(set, own, peer)};
            uint32_t k = count;
            if (own == set->nic && peer == 0) {
                continue;
            }
            for (; k > 0 && pairs[k - 1].score < pair.score; k--) {
                pairs[k] = pairs[k - 1];
            }
            pairs[k] = pair;
            count++;
        }
    }
    *ret_best = 0;
    while (*ret_best < count && pairs[*ret_best].score == pairs[0].score) {
        ++*ret_best;
    }
    return count;
}

static int add(struct lane_set *set, struct mono now, uint32_t lane, const struct pair *pair)
{
    const struct watch_lane_config config = {
        .own_nic = pair->own, .peer_nic = pair->peer, .standby = true};

    set->lane_nics[lane].own = pair->own;
    set->lane_nics[lane].peer = pair->peer;
    set->lane_nics[lane].standby = true;
    set->lane_nics[lane].tries = 0;
    set->lane_nics[lane].was_up = false;
    return watch_lane_add(set->watch, now, lane, &config);
}

void standby_start(struct lane_set *set, struct mono now)
{
    const struct transport_config *config = &set->transport->config;
    const uint64_t hash = hash_u64(set->own_context, set->peer_context);
    struct pair pairs[PAIRS_MAX];
    uint32_t best;

    if (set->standbys_added || config->mode == TRANSPORT_OBSERVE || list(set, pairs, &best) == 0) {
        return;
    }
    if (!set->standbys_late && !ceiling_standbys(set->transport)) {
        set->standbys_late = true; /* until it has no lane left */
        return;
    }
    if ((set->traffic.retired >> config->lanes & ((1u << config->standbys) - 1)) != 0) {
        return; /* the end of the last ones is still to be reported */
    }
    set->standbys_late = false;
    set->standbys_added = true;
    for (uint32_t i = 0; i < config->standbys; i++) {
        if (add(set, now, config->lanes + i, &pairs[(hash + i) % best]) < 0) {
            return;
        }
    }
}

/* The next pair after the lane's one; after the end of the list, its first pair. */
static const struct pair *after(const struct lane_set *set, uint32_t lane, const struct pair *pairs,
                                uint32_t count)
{
    uint32_t k = 0;

    while (k < count && (pairs[k].own != set->lane_nics[lane].own ||
                         pairs[k].peer != set->lane_nics[lane].peer)) {
        k++;
    }
    return &pairs[k + 1 < count ? k + 1 : 0];
}

static void move_to(struct lane_set *set, struct mono now, uint32_t lane, const struct pair *pair)
{
    watch_lane_close(set->watch, now, lane);
    lane_set_act(set, now);
    watch_lane_remove(set->watch, lane);
    (void)!add(set, now, lane, pair);
    lane_set_act(set, now);
}

static bool is_home(const struct lane_set *set, uint32_t lane, const struct pair *pairs,
                    uint32_t best)
{
    for (uint32_t k = 0; k < best; k++) {
        if (pairs[k].own == set->lane_nics[lane].own &&
            pairs[k].peer == set->lane_nics[lane].peer) {
            return true;
        }
    }
    return false;
}

/* Has another standby been alive on one of the best pairs for a while? Then that pair is good again. */
static bool home_lives(const struct lane_set *set, struct mono now, const struct pair *pairs,
                       uint32_t best)
{
    struct watch_lane lane;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        watch_lane_get(set->watch, now, i, &lane);
        if (set->lane_nics[i].standby && lane.used && lane.state == LANE_ACTIVE &&
            mono_sub(now, lane.since).ns >= SETTLED_NS && is_home(set, i, pairs, best)) {
            return true;
        }
    }
    return false;
}

/* No lane is usable: those that are left are doubted, or down. */
static bool stranded(const struct lane_set *set, struct mono now)
{
    return (watch_carriers(set->watch, now) & ~watch_doubted(set->watch)) == 0;
}

/* Its attempts over its pair failed, or that pair is as dead as all others. */
static bool in_vain(const struct lane_set *set, struct mono now, uint32_t i,
                    const struct watch_lane *lane)
{
    const bool keeps = i == set->transport->config.lanes && set->lane_nics[i].was_up;

    if (lane->state == LANE_DOWN && set->lane_nics[i].tries >= TRIES) {
        return !keeps || stranded(set, now);
    }
    return lane->state == LANE_SUSPECT && i != set->transport->config.lanes &&
           mono_sub(now, lane->since).ns >= STRANDED_NS && stranded(set, now);
}

void standby_look(struct lane_set *set, struct mono now)
{
    const bool home = set->standbys_added && now.ns >= set->standby_home.ns;
    struct pair pairs[PAIRS_MAX];
    uint32_t count = 0, best = 0;

    if (home) {
        set->standby_gap.ns = set->standby_gap.ns == 0                ? HOME_NS
                              : set->standby_gap.ns * 2 < HOME_NS_MAX ? set->standby_gap.ns * 2
                                                                      : HOME_NS_MAX;
        set->standby_home = mono_add(now, set->standby_gap);
    }
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        struct watch_lane lane;
        if (!set->lane_nics[i].standby || (set->traffic.retired >> i & 1) != 0) {
            continue;
        }
        watch_lane_get(set->watch, now, i, &lane);
        if (!lane.used) {
            continue;
        }
        const bool vain = in_vain(set, now, i, &lane);
        if (!vain && !home && !set->lane_nics[i].strayed) {
            continue;
        }
        if (count == 0) {
            count = list(set, pairs, &best);
        }
        if (count > 1 && vain) {
            move_to(set, now, i, after(set, i, pairs, count));
            set->lane_nics[i].strayed = !is_home(set, i, pairs, best);
        } else if (count > 1 && set->lane_nics[i].strayed && lane.state == LANE_ACTIVE &&
                   lane.weight <= 0 && (home || home_lives(set, now, pairs, best))) {
            move_to(set, now, i, &pairs[(set->own_context + i) % best]);
            set->lane_nics[i].strayed = false;
        }
    }
}
