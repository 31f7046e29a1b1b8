/* lane_act.c: carries out the watch's decisions about a set's lanes. */
#include <errno.h>

#include "transport/internal.h"

/* Until it is silent, chunks don't move to other lanes, and its count isn't final. */
static bool is_silent(struct lane_set *set, uint32_t lane)
{
    struct stream *stream = set->streams[lane];

    if (stream->kind->silence == NULL) {
        return true;
    }
    if (!stream->fencing) {
        stream->fencing = stream->dead = true;
        stream->kind->silence(set, stream);
        if (set->sender != NULL) {
            sender_on_lane_down(set->sender, lane, stream->epoch);
        }
    }
    return stream->kind->silent(set, lane);
}

void lane_set_close_stream(struct lane_set *set, uint32_t lane, bool reset)
{
    struct stream *stream = set->streams[lane];

    if (stream == NULL) {
        return;
    }
    if (!is_silent(set, lane)) {
        set->any_dead = true;
        return;
    }
    lane_pair_lost(set, set->transport->io->now(set->transport->io), lane);
    set->streams[lane] = NULL;
    set->present &= ~(1u << lane);
    ceiling_closed(set->transport, stream);
    stream->kind->end(set, stream, reset);
    halves_lane_down(set->sender, set->ledger, lane, stream->epoch);
    set->report_urgent = set->report_urgent || (set->fenced && set->ledger != NULL);
    scheduler_lane_down(&set->scheduler, lane);
    detector_lane_down(&set->traffic.detector, lane);
    for (struct transport_comm *comm = set->comms; comm != NULL; comm = comm->next) {
        comm->opened_on &= ~(1u << lane);
    }
    stream_free(stream);
}

/* Is a lane needed: is there a communicator that neither end has closed, or a message under way? */
static bool missed(const struct lane_set *set)
{
    for (const struct transport_comm *comm = set->comms; comm != NULL; comm = comm->next) {
        if (!comm->released && ((comm->state != COMM_CLOSING && !comm->close_heard) ||
                                (comm->sending && !sender_comm_idle(set->sender, comm->number)))) {
            return true;
        }
    }
    return false;
}

void lane_set_lost(struct lane_set *set, struct mono now, uint32_t lane, enum lane_reason reason)
{
    struct stream *stream = set->streams[lane];

    if (stream != NULL && !stream->dead) {
        if (reason == LANE_REASON_RESET && stream->shaken && !missed(set)) {
            reason = LANE_REASON_CLOSE; /* a write may fail before the peer's CLOSE was read */
        }
        stream->dead = true;
        set->any_dead = true;
        watch_on_lost(set->watch, now, lane, stream->epoch, reason);
    }
}

enum lane_reason set_reason(int r)
{
    return r == -EBADMSG  ? LANE_REASON_DAMAGED
           : r == -EPROTO ? LANE_REASON_PROTOCOL
                          : LANE_REASON_RESET;
}

/* Lanes over the set's own NICs. A lane that is about to leave its path counts twice. */
static uint32_t own_lanes(const struct lane_set *set)
{
    const uint32_t most = set->transport->config.lanes;
    uint32_t count = 0;

    for (uint32_t own = set->present & ~lane_set_standbys(set); own != 0; own &= own - 1) {
        count += set->streams[__builtin_ctz(own)]->shaken;
    }
    return count < most ? count : most;
}

void lane_set_shaken(struct lane_set *set, struct mono now, uint32_t lane)
{
    struct stream *stream = set->streams[lane];
    char text[PEER_TEXT], own[IO_ADDRESS_TEXT];

    stream->shaken = true;
    set->carried[stream->own_nic] |= (uint16_t)(1u << stream->peer_nic);
    scheduler_one_way(&set->scheduler, peer_here(set->transport, &stream->peer));
    scheduler_on_lanes(&set->scheduler, own_lanes(set));
    /* The accepting end has no measurement. */
    watch_on_hello(set->watch, now, lane, stream->epoch,
                   set->connects ? mono_sub(now, stream->began) : span_ns(-1));
    say(set->transport, TRANSPORT_TRACE, "lane %u.%u of %s, %s: up", lane, stream->epoch,
        lane_set_peer(set, text), io_address_text(&stream->local, own));
}

static void ping(struct lane_set *set, const struct watch_action *action)
{
    struct stream *stream = set->streams[action->lane];
    struct io *io = set->transport->io;
    const struct io_stamp stamp = io->stamp(io);
    const struct lane_ping ping = {.lane = action->lane,
                                   .epoch = action->epoch,
                                   .sequence = action->sequence,
                                   .sent = stamp.at,
                                   .sent_bound_ns = stamp.half_ns};
    uint8_t bytes[LANE_PING_SIZE];

    if (stream != NULL && stream->shaken && !stream->dead) {
        lane_ping_encode(bytes, &ping);
        (void)stream_control(stream, bytes, sizeof(bytes));
        (void)stream_flush(
            set, stream); /* else nothing is lost; an error shows again at the next turn */
    }
}

static void ask_kernel(struct lane_set *set, struct mono now, uint32_t lane)
{
    struct stream *stream = set->streams[lane];
    struct io_info info;

    if (stream == NULL || stream->dead) {
        return;
    }
    stream->kind->info(set, stream, &info);
    const bool empty = info.unacked == 0 && info.notsent == 0;
    const struct watch_kernel kernel = {
        .known = info.known,
        .acked = info.bytes_acked > stream->acked,
        .idle = info.known && (empty || (info.unacked == 0 && info.shut)),
        .empty = empty && stream_idle(stream),
        .whole = info.known && info.bytes_acked >= stream->doubted_at,
        .segments = info.segments_out,
        .resent = info.retransmits,
        .rtt = span_ns(info.rtt_ns),
        .rtt_var = span_ns(info.rtt_var_ns),
        .rtt_min = span_ns(info.rtt_ns_min),
        .resend = span_ns(info.resend_ns),
    };
    watch_on_kernel(set->watch, now, lane, &kernel);
    stream->acked = info.bytes_acked;
}

/* A communicator that isn't closed above, or whose messages are still under way. */
static bool in_use(const struct lane_set *set)
{
    for (const struct transport_comm *comm = set->comms; comm != NULL; comm = comm->next) {
        if (comm->state != COMM_CLOSING ||
            (comm->sending && !comm->abort && !sender_comm_idle(set->sender, comm->number))) {
            return true;
        }
    }
    return false;
}

static void gave_up(struct lane_set *set, const struct watch_action *action)
{
    char text[PEER_TEXT];

    if (!in_use(set)) { /* closed here; only an echo was missing */
        set->leaving = true;
        return;
    }
    lane_set_fail(set, -ECONNABORTED,
                  action->dead ? "%s is gone: its lanes ended and no process answers there"
                               : "%s: not reached over any lane for the whole patience",
                  lane_set_peer(set, text));
}

static void close_lane(struct lane_set *set, struct mono now, const struct watch_action *action)
{
    struct stream *stream = set->streams[action->lane];
    char text[PEER_TEXT];

    if (stream != NULL && stream->epoch == action->epoch) {
        const bool wanted = action->closed || action->reason == LANE_REASON_CLOSE ||
                            action->reason == LANE_REASON_REPATH || !stream->shaken;
        int64_t none = 0;
        if (!wanted && in_use(set)) {
            set->failed_for[action->lane] = (uint8_t)action->reason;
            __atomic_compare_exchange_n(&set->transport->first_fault_ns, &none, now.ns, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
        say(set->transport, wanted ? TRANSPORT_TRACE : TRANSPORT_INFO,
            "lane %u.%u %s %s, NIC %s: down (%s)%s", action->lane, action->epoch,
            set->connects ? "to" : "from", lane_set_peer(set, text),
            set->transport->nics[stream->own_nic].config.name, lane_reason_name(action->reason),
            why_lane(stream, (char[LANE_WHY_SIZE]){0}));
        if (action->closed && stream_idle(stream)) {
            /* It is empty, and the peer is told in order: it reads this before the end of the connection, so it is no fault. */
            struct lane_report report = {.comm = LANE_COMM_NONE};
            lane_set_tell(set, &report, -1);
            lane_set_close_stream(set, action->lane, false);
            return;
        }
        lane_set_close_stream(set, action->lane, true);
    }
}

/* Sends what hangs on the lane over another one as well; or stops that if there is no need. */
static void doubt(struct lane_set *set, const struct watch_action *action)
{
    const bool doubted = action->kind == WATCH_DOUBLE;
    char text[PEER_TEXT];

    if (doubted && set->streams[action->lane] != NULL) {
        set->streams[action->lane]->doubted_at = set->streams[action->lane]->bytes_out;
    }
    say(set->transport, TRANSPORT_TRACE, "lane %u.%u %s %s: %s", action->lane, action->epoch,
        set->connects ? "to" : "from", lane_set_peer(set, text),
        doubted ? "doubted" : "trusted again");
    if (set->ledger != NULL && doubted) {
        ledger_report_again(set->ledger);
        set->report_urgent = true;
    }
    if (set->sender == NULL) {
        return;
    }
    if (!doubted) {
        sender_on_trusted(set->sender, action->lane);
    } else if (set->mode != TRANSPORT_OBSERVE) {
        (void)sender_on_suspect(set->sender, action->lane);
    }
}

void lane_set_act(struct lane_set *set, struct mono now)
{
    struct watch_action action;
    bool tell = false;

    while (watch_next_action(set->watch, &action)) {
        set->seen_until.ns = INT64_MIN;
        switch (action.kind) {
        case WATCH_CONNECT:
            if (set->connects && set->error == 0) {
                out_connect(set, now, &action);
            }
            break;
        case WATCH_CLOSE:
            close_lane(set, now, &action);
            break;
        case WATCH_PING:
            ping(set, &action);
            break;
        case WATCH_DOUBLE:
        case WATCH_TRUST:
            doubt(set, &action);
            break;
        case WATCH_TELL:
            tell = true;
            break;
        case WATCH_ASK_KERNEL:
            ask_kernel(set, now, action.lane);
            break;
        case WATCH_PARTED:
            set->parted++;
            set->parted_at = now;
            say(set->transport, TRANSPORT_INFO, "no way to %s left: trying all of them",
                lane_set_peer(set, (char[PEER_TEXT]){0}));
            break;
        case WATCH_REJOINED:
            set->parted_ns += set->parted_at.ns == INT64_MAX ? 0 : mono_sub(now, set->parted_at).ns;
            set->parted_at = MONO_NEVER;
            say(set->transport, TRANSPORT_INFO, "%s is reached again",
                lane_set_peer(set, (char[PEER_TEXT]){0}));
            break;
        case WATCH_FAIL:
            gave_up(set, &action);
            break;
        }
    }
    const bool any_dead = set->any_dead;
    set->any_dead = false;
    for (uint32_t lane = 0; any_dead && lane < LANE_MAX; lane++) {
        if (set->streams[lane] != NULL && set->streams[lane]->dead) {
            lane_set_close_stream(set, lane, true);
        }
    }
    if (tell) {
        struct lane_report report = {.comm = LANE_COMM_NONE};
        lane_set_tell(set, &report, -1);
    }
}
