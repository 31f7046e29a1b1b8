/* direction.c: a set's halves: the sender or the ledger with which it began, and the other one, if it is needed. It also decides
 * which of two sets stays if both ends began one at once. */
#include <errno.h>

#include "transport/internal.h"

#define YOUNG_NS (5 * NS_PER_S)
#define CROSSING_NS                                                                                \
    (1 * NS_PER_S) /* by then everything has come that was begun before the peer knew our set */

/* True if each lane of such a set may continue over a queue pair that writes. */
static enum ledger_way way_of(const struct lane_set *set)
{
    return post_needed(set) && set->transport->config.direct ? LEDGER_WRITES : LEDGER_READS;
}

int lane_set_open_lane(struct lane_set *set, struct mono now, uint32_t lane, uint32_t epoch,
                       struct span rtt)
{
    const int r = halves_lane_open(set->sender, set->ledger, lane, epoch, way_of(set));

    if (r == 0 && set->sender != NULL) {
        scheduler_lane_open(&set->scheduler, now, lane, rtt);
        detector_lane_open(&set->traffic.detector, now, lane);
        detector_on_rtt(&set->traffic.detector, rtt);
    }
    return r;
}

/* The end that accepted asks its kernel. */
static struct span round_trip(const struct lane_set *set, const struct stream *stream)
{
    struct io_info info = {.known = false};

    stream->kind->info(set, stream, &info);
    return span_ns(info.known && info.rtt_ns_min != 0 ? (int64_t)info.rtt_ns_min : -1);
}

void lane_set_grant(struct lane_set *set)
{
    if (set->version >= 4) {
        sender_slots_granted(set->sender, set->peer_small_slots, set->peer_large_slots);
        sender_slots_hold(set->sender,
                          post_early(set, set->peer_large_shift != 0 ? 1u << set->peer_large_shift
                                                                     : LANE_LARGE_SIZE_MAX));
    } else if (set->version == 3) {
        sender_slots_granted(set->sender, LANE_SMALL_SLOTS, LANE_LARGE_SLOTS);
    }
}

int lane_set_add_sender(struct lane_set *set, struct mono now)
{
    const struct sender_config config = {.slots = LANE_EAGER_SLOTS_MAX,
                                         .large = LANE_LARGE_SLOTS,
                                         .comms = SET_COMMS_MAX,
                                         .fenced = set->fenced,
                                         .posts = post_needed(set)};
    struct sender *sender = set->sender == NULL ? sender_new(&config) : NULL;
    int r = set->sender == NULL && sender == NULL ? -ENOMEM : 0;

    for (uint32_t lanes = sender != NULL ? set->present : 0; r == 0 && lanes != 0;
         lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        const struct stream *stream = set->streams[lane];
        if (stream->shaken && !stream->dead) {
            r = sender_lane_open(sender, lane, stream->epoch);
        }
    }
    if (r < 0 || sender == NULL) {
        sender_free(sender);
        return r;
    }
    set->sender = sender;
    watch_loads(set->watch, sender_loads(sender));
    scheduler_loads(&set->scheduler, sender_loads(sender));
    lane_set_grant(set);
    for (uint32_t lanes = set->present; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        if (set->streams[lane]->shaken && !set->streams[lane]->dead) {
            scheduler_lane_open(&set->scheduler, now, lane, round_trip(set, set->streams[lane]));
            detector_lane_open(&set->traffic.detector, now, lane);
        }
    }
    return 0;
}

int lane_set_add_ledger(struct lane_set *set)
{
    const struct ledger_config config = {.slots = LANE_EAGER_SLOTS_MAX,
                                         .large = LANE_LARGE_SLOTS,
                                         .comms = SET_COMMS_MAX,
                                         .fenced = set->fenced};
    struct ledger *ledger = set->ledger == NULL ? ledger_new(&config) : NULL;
    int r = set->ledger == NULL && ledger == NULL ? -ENOMEM : 0;

    for (uint32_t lanes = ledger != NULL ? set->present : 0; r == 0 && lanes != 0;
         lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        const struct stream *stream = set->streams[lane];
        if (stream->shaken && !stream->dead) {
            r = ledger_lane_open(ledger, lane, stream->epoch, way_of(set));
        }
    }
    if (r < 0) {
        ledger_free(ledger);
        return r;
    }
    set->ledger = ledger != NULL ? ledger : set->ledger;
    return 0;
}

bool lane_set_stays(const struct lane_set *set, struct mono now)
{
    if (!set->connects || set->error != 0 || set->leaving || !lane_set_used(set, now)) {
        return false;
    }
    return set->version == 0
               ? set->own_context < set->peer_context && mono_sub(now, set->began).ns < YOUNG_NS
               : lane_set_both(set) && mono_sub(now, set->joined).ns < CROSSING_NS;
}

bool lane_set_used(const struct lane_set *set, struct mono now)
{
    if (!set->connects && !set->had_comms && mono_sub(now, set->began).ns < YOUNG_NS) {
        return true; /* the connecting end has one, of which no word has come yet */
    }
    for (const struct transport_comm *comm = set->comms; comm != NULL; comm = comm->next) {
        if (!comm->released && comm->state != COMM_CLOSING && !comm->close_heard) {
            return true;
        }
    }
    return false;
}
