/* out.c: the sending end of a set: opens comms, and binds chunks to lanes as late as it can. */
#include <errno.h>
#include <string.h>

#include "transport/internal.h"
#include "transport/lane_pair.h"
#include "wire/crc32c.h"

#define QUICK_SIZE  LANE_EAGER_SIZE_MAX
#define QUICK_BYTES 32768
#define QUICK_BYTES_HERE                                                                           \
    (LANE_EAGER_SLOTS_MAX * LANE_EAGER_SIZE_MAX) /* to this machine: as much as the slots allow */
#define TOGETHER_SIZE 65536
#define TOGETHER_NS   (100 * NS_PER_US)
#define HEDGE_ASK_NS  (2 * NS_PER_MS)
/* the watch's word on the lanes is valid for so long, if there is no newer one */
#define SEEN_NS     50000
#define HEDGE_TIMES 8
#define HEDGE_RTTS  3 /* as the kernel measures them; a chunk isn't late before its queue is, */
#define HEDGE_HEARD (20 * NS_PER_MS) /* if the peer's kernel was heard within this time */
/* What came is read and reported again after posts that took so long. */
#define POSTS_NS REPORT_NS

/* -- the receiver's reports ------------------------------------------------------------------- */

struct span out_life(const struct lane_set *set, struct mono now, struct mono sent,
                     int64_t least_ns)
{
    struct io *io = set->transport->io;
    const struct span life = mono_sub(now, sent);

    return life.ns >= least_ns && life.ns >= 0 ? life : mono_sub(io->now(io), sent);
}

/* by_itself: the report came over the lane that it is about. back_ns: 0 from the lane on that shows that a clock was set. */
static struct sender_acked on_taken(struct lane_set *set, struct mono now,
                                    const struct lane_state_lane *lane, bool by_itself,
                                    int64_t *back_ns)
{
    struct sender_acked acked = {0};
    const int r = sender_on_state(set->sender, now, lane, &acked);
    char text[PEER_TEXT];

    if (r < 0) {
        lane_set_fail(set, -ENOTRECOVERABLE, "%s claims to have taken what was never sent",
                      lane_set_peer(set, text));
        return (struct sender_acked){0};
    }
    if (acked.chunks > 0) {
        const struct span life = out_life(set, now, acked.sent, *back_ns);
        /* A report can't be on its way for longer than its chunk and itself. If it seems to, a clock was set. One that was set by
         * less than that isn't found: the way back then counts up to the chunk's life. */
        if (*back_ns > life.ns) {
            least_init(&set->back_ns, now);
            *back_ns = 0;
        }
        scheduler_on_acked(&set->scheduler, now, lane->lane,
                           &(struct scheduler_acked){.chunks = acked.chunks,
                                                     .bytes = acked.bytes,
                                                     .sent = acked.sent,
                                                     .load = acked.load,
                                                     .alone = acked.alone,
                                                     .back_ns = *back_ns});
        repath_on_acked(&set->traffic.repath, lane->lane, acked.chunks);
        gain_on_acked(&set->traffic.gain, now, acked.bytes);
        watch_on_acked(set->watch, now, lane->lane, acked.chunks, life,
                       scheduler_backlog(&set->scheduler, lane->lane), by_itself);
    }
    return acked;
}

/* Asks only if the message may be cut, because it needs the rates of all lanes. */
static uint32_t wanted_size(const struct lane_set *set)
{
    const uint64_t pending = sender_pending_bytes(set->sender);

    return pending <= LANE_EAGER_SIZE_MAX
               ? LANE_EAGER_SIZE_MAX
               : yield_chunk_size(set, scheduler_chunk_size(&set->scheduler, pending));
}

/* Clocks without steering drift apart by up to 200 ppm, over the time for which the least is remembered. */
#define BACK_DRIFT_NS (2 * DELAY_BUCKET_NS / 5000)

/* By how much its way back took longer than the least of recent reports. */
static int64_t late_back(struct lane_set *set, struct mono now, const struct lane_report *report)
{
    struct io *io = set->transport->io;

    if (set->scheduler.one_way) {
        return 0;
    }
    const struct io_stamp stamp = io->stamp(io);
    const int64_t ns = fleet_time_sub(stamp.at, report->now).ns;
    least_add(&set->back_ns, now, span_ns(DELAY_BUCKET_NS), ns);
    return ns - least_get(&set->back_ns) - (stamp.half_ns == IO_HALF_UNKNOWN ? BACK_DRIFT_NS : 0);
}

void out_on_state(struct lane_set *set, struct mono now, uint32_t lane,
                  const struct lane_report *report)
{
    int64_t back_ns = late_back(set, now, report);
    char text[PEER_TEXT];

    for (uint32_t k = 0; k < report->lane_count; k++) {
        const struct lane_state_lane *seen = &report->lanes[k];
        const struct sender_acked acked = on_taken(set, now, seen, seen->lane == lane, &back_ns);
        traffic_on_lane(set, now, seen->lane, seen);
        yield_on_lane(set, now, seen, &acked);
    }
    if (report->comm != LANE_COMM_NONE && sender_on_report(set->sender, now, report) < 0) {
        lane_set_fail(set, -ENOTRECOVERABLE, "%s claims to have placed what was never sent",
                      lane_set_peer(set, text));
    }
    out_harvest(set);
}

int out_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
              size_t size)
{
    struct stream *stream = set->streams[lane];

    if (!stream->shaken) {
        return out_hello(set, now, lane, frame, size);
    }
    if (frame[0] == LANE_POST && set->sender != NULL) {
        struct lane_post post;
        return lane_post_decode(frame, size, set->version, &post) == LANE_ERROR_NONE &&
                       sender_on_post(set->sender, &post) == 0
                   ? 0
                   : -EPROTO;
    }
    return -EPROTO;
}

/* Messages that are placed: their requests are done, their copies free. */
void out_harvest(struct lane_set *set)
{
    struct sender_done done;

    while (sender_next_done(set->sender, &done)) {
        struct outgoing *outgoing = (struct outgoing *)(uintptr_t)done.cookie;
        if (outgoing->request != NULL) {
            lane_set_request_done(set, outgoing->request);
        }
        copies_back(set, outgoing);
    }
}

/* -- comms and chunks ------------------------------------------------------------------------- */

/* OPEN is sent once on each new connection until the receiver has answered for the comm. It is sent again if that connection is
 * gone and messages wait: a posted receive may not have been reported, and the comm may have been given up without a word. */
static bool wants_open(const struct lane_set *set, const struct mono now,
                       struct transport_comm *comm)
{
    /* It must not wait, either, for something that the receiver forgot while a lane that lives on was dead in one direction. */
    if (comm->state != COMM_OPENING && mono_sub(now, comm->opened_at).ns >= NS_PER_S) {
        comm->opened_on = 0;
    }
    return comm->state == COMM_OPENING || (comm->opened_on == 0 && !comm->book_closed &&
                                           !sender_comm_idle(set->sender, comm->number));
}

static void send_open(struct lane_set *set, struct mono now, struct transport_comm *comm)
{
    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        struct stream *stream = set->streams[lane];
        const struct lane_open open = {.group_max = 1,
                                       .traffic_class = set->transport->config.priority,
                                       .comm = comm->number,
                                       .cookie = comm->cookie,
                                       .rank = LANE_RANK_UNKNOWN};
        uint8_t bytes[LANE_OPEN_SIZE];
        if (stream == NULL || !stream->shaken || stream->dead ||
            (comm->opened_on & (1u << lane)) != 0) {
            continue;
        }
        lane_open_encode(bytes, &open);
        if (stream_control(stream, bytes, sizeof(bytes))) {
            comm->opened_on |= 1u << lane;
            comm->opened_at = now;
            const int r = stream_flush(set, stream);
            if (r < 0 && r != -EAGAIN) {
                lane_set_lost(set, now, lane, LANE_REASON_RESET);
            }
        }
        return; /* one lane is enough; another one if that is lost */
    }
}

/* Comms that aren't open yet, and those that are in use: so an idle comm costs a poll nothing. */
void out_openings(struct lane_set *set, struct mono now)
{
    for (struct transport_comm *comm = set->opening > 0 ? set->comms : NULL; comm != NULL;
         comm = comm->next) {
        if (!comm->sending) {
            continue;
        }
        if (comm->state == COMM_OPENING && sender_comm_confirmed(set->sender, comm->number)) {
            comm->state = COMM_OPEN;
            set->opening--;
        } else if (comm->state == COMM_OPENING && wants_open(set, now, comm)) {
            send_open(set, now, comm);
        }
    }
    for (uint32_t i = 0; i < sender_busy_count(set->sender); i++) {
        struct transport_comm *comm = comm_find(set, true, sender_busy_comm(set->sender, i));
        if (comm != NULL && comm->state != COMM_OPENING && wants_open(set, now, comm)) {
            send_open(set, now, comm);
        }
    }
}

static void ask_watch(struct lane_set *set, struct mono now)
{
    struct scheduler_choice *seen = &set->seen;

    *seen = (struct scheduler_choice){
        .usable = mode_lanes(set, watch_carriers(set->watch, now), watch_connected(set->watch)),
        .spare = set->mode == TRANSPORT_FULL && !set->scheduler.one_way
                     ? watch_spares(set->watch, now)
                     : 0,
        .apart = lane_set_standbys(set)};
    seen->usable |= seen->spare;
    for (uint32_t lanes = seen->usable; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        struct watch_lane state;
        watch_lane_get(set->watch, now, lane, &state);
        seen->weights[lane] = seen->spare >> lane & 1 ? 1 : state.weight;
        seen->one |= state.probe_only ? 1u << lane : 0;
    }
    set->seen_until = mono_add(now, span_ns(SEEN_NS));
}

/* Lists the lanes for the scheduler. Returns those that can take a chunk at once. */
static uint32_t look_at_lanes(struct lane_set *set, struct mono now)
{
    struct scheduler_choice *seen = &set->seen;

    if (now.ns >= set->seen_until.ns) {
        ask_watch(set, now);
    }
    seen->room = 0;
    for (uint32_t lanes = seen->usable & set->present; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        const struct stream *stream = set->streams[lane];
        struct sender_lane_info info;
        sender_lane_info(set->sender, lane, &info);
        if (stream->shaken && !stream->dead && stream_room(stream) && info.open &&
            info.chunks < SENDER_LANE_CHUNKS) {
            seen->room |= 1u << lane;
        }
    }
    return seen->room;
}

static void write_chunk(struct lane_set *set, struct mono now, uint32_t lane,
                        const struct sender_chunk *chunk, struct lane_chunk *header)
{
    struct io *io = set->transport->io;
    struct stream *stream = set->streams[lane];
    const struct io_stamp stamp = io->stamp(io);
    const int64_t queued = now.ns - chunk->queued.ns;

    header->sent = stamp.at;
    header->sent_bound_ns = stamp.half_ns;
    header->queued_ns = queued < 0 ? 0 : queued < UINT32_MAX ? (uint32_t)queued : UINT32_MAX;
    if (set->scheduler.one_way && set->sends_awaited == 0) {
        header->flags |= LANE_CHUNK_KEPT;
    }
    watch_on_sent(set->watch, now, lane, 1, scheduler_backlog(&set->scheduler, lane));
    if (set->ledger != NULL) {
        in_reports_along(set, now, lane);
    }
    credit_tell_along(set, now, lane);
    set->sent[lane].chunks++;
    set->sent[lane].bytes += chunk->length;
    set->sent[lane].resent += chunk->resent;
    if (lane_pair_write(set, lane, chunk, header)) {
        return;
    }
    struct sender_chunk fetched;
    if (((const struct outgoing *)(uintptr_t)chunk->cookie)->gpu) {
        chunk = gpu_fetch(set, lane, chunk, &fetched);
        if (chunk == NULL) {
            return;
        }
    }
    /* To this machine it is a copy in memory. */
    if (set->transport->config.checksum > (set->scheduler.one_way ? 1 : 0) && chunk->length > 0) {
        header->flags |= LANE_CHUNK_PAYLOAD_CRC;
        header->payload_crc = crc32c(0, chunk->source, chunk->length);
    }
    stream_chunk(stream, chunk, header, set->version);
    const int r = stream_flush(set, stream);
    if (r < 0 && r != -EAGAIN) {
        lane_set_lost(set, now, lane, LANE_REASON_RESET);
    }
}

/* A lane for a message that would hardly arrive sooner over another one: the last message's lane, so that one read gets both and
 * one report answers both. -1: there is none. */
static int pick_together(const struct lane_set *set, const struct sender_chunk *chunk,
                         const struct scheduler_choice *choice, uint32_t good)
{
    int64_t expected[LANE_MAX], least = INT64_MAX;

    for (uint32_t lanes = good; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        expected[lane] = choice->weights[lane] >= 1
                             ? scheduler_expected(&set->scheduler, lane, chunk->length).ns
                             : INT64_MAX;
        least = expected[lane] < least ? expected[lane] : least;
    }
    for (uint32_t lanes = good; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        if (expected[lane] <= TOGETHER_NS && expected[lane] <= 2 * least) {
            return (int)lane;
        }
    }
    return -1;
}

/* Small messages stay together on one lane while it is nearly empty, because the receiver looks at that one first. So do somewhat
 * larger ones if lanes are fast. All others take the lane on which they should arrive first. */
static int pick(struct lane_set *set, struct mono now, const struct sender_chunk *chunk,
                const struct scheduler_choice *choice)
{
    const uint32_t good =
        choice->usable & choice->room & ~choice->one &
        (set->scheduler.away && choice->spare != 0 ? choice->spare : ~choice->spare);

    set->scheduler.slow = false;

    for (uint32_t lanes = chunk->eager && chunk->size <= QUICK_SIZE ? good : 0; lanes != 0;
         lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        struct sender_lane_info info;
        sender_lane_info(set->sender, lane, &info);
        if (choice->weights[lane] >= 1 &&
            info.bytes <= (set->scheduler.one_way ? QUICK_BYTES_HERE : QUICK_BYTES)) {
            return (int)lane;
        }
    }
    int together = chunk->size <= TOGETHER_SIZE && !set->scheduler.one_way
                       ? pick_together(set, chunk, choice, good)
                       : -1;
    return together >= 0 ? together : scheduler_pick(&set->scheduler, now, chunk->length, choice);
}

/* Returns the time that this took, ns; over TCP 0. A post to a NIC takes well below a microsecond. On soft-RoCE it takes the time
 * of the chunk: the processor of the caller sends its packets. All chunks that lanes have room for would take milliseconds in
 * which the peer hears nothing, and has nothing more to send: the ends would carry in turns. */
static int64_t write_timed(struct lane_set *set, struct mono now, uint32_t lane,
                           const struct sender_chunk *chunk, struct lane_chunk *header)
{
    struct io *io = set->transport->io;
    const struct stream *stream = set->streams[lane];
    const bool posts = stream->qp != NULL && lane_pair_writes(stream, stream->qp);
    const struct mono began = posts ? io->now(io) : now;

    write_chunk(set, now, lane, chunk, header);
    return posts ? mono_sub(io->now(io), began).ns : 0;
}

bool out_pump(struct lane_set *set, struct mono now)
{
    struct sender_chunk chunk;
    struct lane_chunk header;
    int64_t posts_ns = 0;

    for (;;) {
        if (!sender_waiting(set->sender)) { /* small messages show no rates: no look at the lanes */
            if (set->large > 0 && look_at_lanes(set, now) != 0) {
                scheduler_on_idle(&set->scheduler);
            }
            break;
        }
        const uint32_t ready = look_at_lanes(set, now);
        if (ready == 0) {
            break;
        }
        if (!sender_next(set->sender, ready, wanted_size(set), &chunk)) {
            scheduler_on_idle(&set->scheduler);
            break;
        }
        struct scheduler_choice choice = set->seen;
        const bool small = chunk.eager && chunk.size <= QUICK_SIZE;
        const uint32_t paced = chunk.resent || small ? 0 : yield_lanes(set, now);
        choice.usable &= ~(chunk.not_on | paced);
        choice.urgent = chunk.resent;
        const int lane = pick(set, now, &chunk, &choice);
        if (lane < 0 || sender_bind(set->sender, now, &chunk, (uint32_t)lane, &header) < 0) {
            if (paced != 0) { /* what they carry now is less than they could */
                scheduler_on_idle(&set->scheduler);
            }
            break;
        }
        yield_on_sent(set, now, (uint32_t)lane, chunk.length);
        scheduler_on_bound(&set->scheduler, now, (uint32_t)lane);
        struct outgoing *copied = copies_take(set, now, &chunk);
        posts_ns += write_timed(set, now, (uint32_t)lane, &chunk, &header);
        if (copied != NULL) {
            copies_fill(set, chunk.comm, chunk.message, chunk.source, chunk.size, copied);
        }
        /* A report must not delay its message. */
        if (set->scheduler.slow && paced == 0) {
            (void)sender_double(set->sender, (uint32_t)lane);
        }
        if (posts_ns >= POSTS_NS) {
            return true;
        }
    }
    return false;
}

/* Does the lane's oldest chunk hang on its path? Not if the peer's kernel has it, or takes nothing: then another path to the same
 * slow process doesn't help. Nor if it only queues: the lane's expected rate doesn't include a queue that others fill, and a
 * burst after a pause makes its rate look high. It asks at most once per HEDGE_ASK_NS. */
static bool hangs(struct lane_set *set, struct mono now, uint32_t lane,
                  const struct sender_lane_info *info)
{
    struct stream *stream = set->streams[lane];
    const uint64_t behind =
        info->bytes - info->oldest_bytes + (uint64_t)info->chunks * LANE_CHUNK_SIZE;
    const uint64_t unwritten = (uint64_t)stream->payload_left + stream->head_left;
    struct io_info kernel;

    if (mono_sub(now, stream->hedge_asked).ns < HEDGE_ASK_NS) {
        return false;
    }
    stream->hedge_asked = now;
    stream->kind->info(set, stream, &kernel);
    if (kernel.ack_age_ns > 0 && kernel.ack_age_ns < HEDGE_HEARD &&
        mono_sub(now, info->oldest).ns < HEDGE_RTTS * (int64_t)kernel.rtt_ns) {
        return false;
    }
    return !kernel.known ||
           (kernel.unacked > 0 && stream->bytes_out + unwritten - kernel.bytes_acked > behind);
}

/* Could another lane have carried that chunk many times over? Else all are slow: the network is full, and sending twice makes it
 * worse. */
static bool slow_alone(const struct lane_set *set, struct mono now, uint32_t lane,
                       const struct sender_lane_info *info)
{
    const uint32_t others =
        (watch_carriers(set->watch, now) | (set->scheduler.away ? set->scheduler.spare : 0)) &
        ~(1u << lane);
    const int64_t age = mono_sub(now, info->oldest).ns;

    for (uint32_t lanes = others; lanes != 0; lanes &= lanes - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(lanes);
        if (set->scheduler.lanes[i].rate > 0 &&
            age > HEDGE_TIMES * scheduler_expected(&set->scheduler, i, info->oldest_bytes).ns) {
            return true;
        }
    }
    return false;
}

void out_look(struct lane_set *set, struct mono now)
{
    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        struct sender_lane_info info;
        if (set->streams[lane] == NULL || !set->streams[lane]->shaken) {
            continue;
        }
        const struct mono before = scheduler_hedge_before(&set->scheduler, now, lane);
        sender_lane_info(set->sender, lane, &info);
        const bool left = set->scheduler.away && (set->scheduler.spare >> lane & 1) == 0;
        if (mono_before(info.oldest, before) && slow_alone(set, now, lane, &info) &&
            (left || hangs(set, now, lane, &info))) {
            (void)sender_hedge(set->sender, lane, before, left);
        }
    }
}
