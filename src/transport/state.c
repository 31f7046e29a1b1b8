/* state.c: STATE to the peer: what was taken, placed and posted, and the lanes' states. */
#include <errno.h>

#include "transport/internal.h"

/* CLOSED means that nothing is asked of the lane any more. */
static bool awaits_word(const struct lane_set *set, uint32_t lane)
{
    struct sender_lane_info info = {.held = false};

    if (set->fenced && set->sender != NULL) {
        sender_lane_info(set->sender, lane, &info);
    }
    return info.held || info.open; /* open: it is about to be closed */
}

/* The state that is sent to the peer. A lane that should close from here is draining, whatever its state is. */
static void add_state(struct lane_set *set, const struct watch_lane *lane,
                      struct lane_state_lane *ret_lane)
{
    const struct stream *stream = set->streams[ret_lane->lane];
    const bool parting = stream != NULL && stream->parting && lane_usable(lane->state);

    ret_lane->state = parting ? LANE_DRAINING : lane->used ? lane->state : LANE_CLOSED;
    ret_lane->reason = parting ? LANE_REASON_REPATH : lane->used ? lane->reason : LANE_REASON_NONE;
    if (ret_lane->state == LANE_CLOSED && awaits_word(set, ret_lane->lane)) {
        ret_lane->state = LANE_DOWN;
    }
    if (ret_lane->state == LANE_ACTIVE && traffic_asks(set, ret_lane->lane)) {
        ret_lane->state = LANE_SUSPECT;
        ret_lane->reason = LANE_REASON_REPATH;
    }
    delay_report(set, ret_lane->lane, ret_lane);
}

static void add_lanes(struct lane_set *set, struct mono now, struct lane_report *report)
{
    struct watch_lane lane;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        uint32_t k = 0;
        watch_lane_get(set->watch, now, i, &lane);
        while (k < report->lane_count && report->lanes[k].lane != i) {
            k++;
        }
        if (!lane.used) {
            continue;
        }
        if (k < report->lane_count && report->lanes[k].fenced_below != 0) {
            continue; /* its last count is still needed */
        }
        if (k == report->lane_count) {
            report->lanes[k] = (struct lane_state_lane){.lane = (uint16_t)i,
                                                        .epoch = lane.epoch,
                                                        .owd_min_ns = LANE_OWD_UNKNOWN,
                                                        .owd_ns = LANE_OWD_UNKNOWN};
            report->lanes[k].taken = halves_taken(set->ledger, i, lane.epoch);
            report->lane_count++;
        }
        add_state(set, &lane, &report->lanes[k]);
    }
}

/* One comm's progress: the lanes that the ledger counted, with their states. */
static void name_lanes(struct lane_set *set, struct mono now, struct lane_report *report)
{
    struct watch_lane lane;

    for (uint32_t k = 0; k < report->lane_count; k++) {
        watch_lane_get(set->watch, now, report->lanes[k].lane, &lane);
        add_state(set, &lane, &report->lanes[k]);
    }
}

/* Writes the data that waits on that lane. */
static void flush_lane(struct lane_set *set, struct mono now, uint32_t lane)
{
    const int r = stream_flush(set, set->streams[lane]);

    if (r < 0 && r != -EAGAIN) {
        lane_set_lost(set, now, lane, set_reason(r));
    }
}

uint32_t lane_set_say(struct lane_set *set, struct mono now, struct lane_report *report, int lane)
{
    struct io *io = set->transport->io;
    uint8_t bytes[LANE_STATE_SIZE_MAX];
    uint32_t said = 0;

    if (lane < 0) {
        add_lanes(set, now, report);
    } else {
        name_lanes(set, now, report);
    }
    report->sequence = ++set->sequence;
    report->receivers = set->sender != NULL ? credit_receivers(set, now) : 0;
    report->now = io->stamp(io).at;
    size_t size = lane_report_encode(bytes, report, set->version);
    for (uint32_t lanes = set->present & (lane < 0 ? UINT32_MAX : 1u << lane); lanes != 0;
         lanes &= lanes - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(lanes);
        struct stream *stream = set->streams[i];
        if (!stream->shaken || stream->dead) {
            continue;
        }
        if (!stream_control(stream, bytes, size)) {
            flush_lane(set, now, i);
            (void)stream_control(stream, bytes, size); /* full: the frame may be lost */
        }
        if (set->ledger != NULL) {
            watch_on_told(set->watch, i);
        }
        said |= 1u << i;
    }
    return said;
}

void lane_set_flush(struct lane_set *set, struct mono now, uint32_t lanes)
{
    for (; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        if (set->streams[lane] != NULL && !set->streams[lane]->dead) {
            flush_lane(set, now, lane);
        }
    }
}

void lane_set_tell(struct lane_set *set, struct lane_report *report, int lane)
{
    const struct mono now = set->transport->io->now(set->transport->io);

    lane_set_flush(set, now, lane_set_say(set, now, report, lane));
}

/* The accepting end never removes a lane: an unknown lane will become known. And one lane is enough: the last count comes again
 * until an answer has arrived. */
void lane_set_heard_fences(struct lane_set *set, const struct lane_report *report)
{
    const struct mono now = set->transport->io->now(set->transport->io);
    struct lane_report answer = {.comm = LANE_COMM_NONE};
    struct watch_lane lane;

    for (uint32_t k = 0; set->connects && set->fenced && k < report->lane_count; k++) {
        const struct lane_state_lane *told = &report->lanes[k];
        watch_lane_get(set->watch, now, told->lane, &lane);
        if (told->fenced_below == 0 || lane.used || awaits_word(set, told->lane)) {
            continue;
        }
        answer.lanes[answer.lane_count++] =
            (struct lane_state_lane){.lane = told->lane,
                                     .epoch = told->epoch,
                                     .state = LANE_CLOSED,
                                     .taken = halves_taken(set->ledger, told->lane, told->epoch),
                                     .owd_min_ns = LANE_OWD_UNKNOWN,
                                     .owd_ns = LANE_OWD_UNKNOWN};
    }
    const int by = answer.lane_count > 0 ? lane_set_any_lane(set) : -1;
    if (by >= 0) {
        lane_set_tell(set, &answer, by);
    }
}
