/* in.c: the receiving end of a set. The ledger decides where each byte goes, and when something is done. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/internal.h"
#include "transport/lane_pair.h"
#include "wire/crc32c.h"

#define REPORT_CHUNKS     2
#define REPORT_BYTES      (256u << 10)
#define REPORT_BYTES_HERE (512u << 10) /* for a process of this machine: its chunks are larger */
#define REPORT_EAGER      8 /* small messages: reported when there is nothing else to do for this */
#define REPORT_POLLS      3 /* many polls: the process that got one may be about to answer; */
#define REPORT_EAGER_HERE 16
#define REPORT_EAGER_LATE 24 /* or before the sender lacks bounce slots */
#define REPORT_COPIED                                                                              \
    (LANE_LARGE_SLOTS - 1) /* the same for larger ones, whose senders are done, too */
#define REPORT_COPIED_LATE LANE_LARGE_SLOTS
#define REPORT_SOON_SIZE                                                                           \
    65536 /* done, up to this size: the next may be here already, and both are reported together */
/* for small ones to this machine: their senders are done already */
#define REPORT_HERE_NS NS_PER_MS
#define REPORT_RTTS    4 /* round trips of the NIC, for small ones over a queue pair; */
#define REPORT_SLOW_NS (4 * NS_PER_MS) /* at most this: the ledger repeats a report after 10 */
#define REPORT_CREDIT                                                                              \
    2 /* large messages that the sender may begin: more can wait for the next report */

_Static_assert(LANE_LARGE_SIZE_MAX <= 1u << LANE_CHUNK_SHIFT_MAX, "it comes in one chunk");

/* -- requests --------------------------------------------------------------------------------- */

void in_harvest(struct lane_set *set)
{
    struct ledger_done done;

    while (!set->gpu_failed && ledger_next_done(set->ledger, &done)) {
        struct transport_request *request = (struct transport_request *)(uintptr_t)done.cookie;
        request->size = done.sizes[0];
        lane_set_request_done(set, request);
        /* Between machines the lane's estimate waits for it, too. */
        set->report_urgent =
            set->report_urgent || (done.sizes[0] > REPORT_SOON_SIZE && !set->scheduler.one_way);
        set->report_soon = set->report_soon || done.sizes[0] > lane_set_kept(set);
        set->report_copied +=
            done.sizes[0] > LANE_EAGER_SIZE_MAX && done.sizes[0] <= lane_set_kept(set);
        set->report_urgent = set->report_urgent || set->report_copied >= REPORT_COPIED_LATE;
    }
}

void in_misfit(struct lane_set *set)
{
    struct ledger_misfit misfit;
    char text[PEER_TEXT];

    if (!ledger_next_misfit(set->ledger, &misfit)) {
        return;
    }
    struct transport_comm *comm = comm_find(set, false, misfit.comm);
    if (comm == NULL || comm->error != 0) {
        return;
    }
    comm->error = -EMSGSIZE;
    if (asprintf(&comm->why,
                 "message %llu of %u bytes came for a receive of %u, from %s: do both ends run the "
                 "same program?",
                 (unsigned long long)misfit.message, misfit.size, misfit.room,
                 lane_set_peer(set, text)) < 0) {
        comm->why = NULL;
    }
    say(set->transport, TRANSPORT_WARN, "%s", comm->why != NULL ? comm->why : "no memory");
    const int lane = lane_set_any_lane(set);
    if (lane >= 0) {
        comm_unknown(set, (uint32_t)lane, false, comm->number, LANE_CLOSE_ABORT);
    }
}

/* By stores of 8 bytes in ascending order, for a reader that reads at the same time. */
static void copy_ordered(uint8_t *to, const uint8_t *from, size_t size)
{
    size_t k = 0;

    if (((uintptr_t)to & 7) == 0) {
        for (; k + 8 <= size; k += 8) {
            uint64_t word;
            memcpy(&word, from + k, 8);
            __atomic_store_n((uint64_t *)(void *)(to + k), word, __ATOMIC_RELEASE);
        }
    }
    for (; k < size; k++) {
        __atomic_store_n(to + k, from[k], __ATOMIC_RELEASE);
    }
}

void in_copy(struct lane_set *set, const struct ledger_copy *copy)
{
    const uint8_t *from;

    if (!copy->wanted) {
        return;
    }
    from = copy->staging ? set->streams[copy->lane]->staging : slots_at(set, copy->slot);
    uint8_t *to = copy->to != NULL ? copy->to /* else it came early, over a second lane */
                                   : slots_at(set, copy->slot);
    if (copy->to != NULL && gpu_store(set, to, from, copy->size)) {
        return;
    }
    const bool timed = !copy->staging && copy->size > LANE_LARGE_SIZE_MAX;
    const struct mono began = timed ? set->transport->io->now(set->transport->io) : MONO_NEVER;
    if (copy->ordered) {
        copy_ordered(to, from, copy->size);
    } else {
        memcpy(to, from, copy->size);
    }
    if (timed) {
        slots_copied(set, began, copy->size);
    }
}

/* -- chunks ----------------------------------------------------------------------------------- */

static int broken(struct lane_set *set)
{
    const struct bug_note *bug = ledger_bug(set->ledger);
    char text[PEER_TEXT];

    if (bug != NULL) {
        lane_set_fail_bug(set, bug);
    } else {
        lane_set_fail(
            set, -EBADMSG,
            "%s sends what doesn't belong to the receives posted here: do both ends run the "
            "same program?",
            lane_set_peer(set, text));
    }
    return -EPROTO;
}

static int verdict_of(struct lane_set *set, enum ledger_verdict verdict)
{
    return verdict == LEDGER_OK ? 0 : verdict == LEDGER_LANE_DOWN ? -EPROTO : broken(set);
}

int in_target(struct lane_set *set, uint32_t lane, uint8_t **ret_to, uint32_t *ret_left)
{
    struct stream *stream = set->streams[lane];
    struct ledger_target target;
    const int r = verdict_of(set, ledger_target(set->ledger, lane, stream->epoch, &target));

    if (r < 0) {
        return r;
    }
    if (target.place == LEDGER_STAGING && stream->staging == NULL) {
        stream->staging = malloc(1u << LANE_CHUNK_SHIFT_MAX);
        if (stream->staging == NULL) {
            return -ENOMEM;
        }
    }
    if (target.place == LEDGER_SLOT ||
        (target.place != LEDGER_BIN && (stream->chunk.flags & LANE_CHUNK_EAGER) != 0)) {
        const int ready = slots_ready(set, stream->chunk.slot, target.place != LEDGER_BUFFER);
        if (ready < 0) {
            return ready;
        }
    }
    set->slots_touched = set->slots_touched || target.place == LEDGER_SLOT;
    stream->place = target.place;
    *ret_left = target.left;
    *ret_to = target.place == LEDGER_BUFFER    ? target.to
              : target.place == LEDGER_STAGING ? stream->staging + target.at
              : target.place == LEDGER_SLOT    ? slots_at(set, target.slot) + target.at
                                               : NULL;
    return 0;
}

/* Their sender is done already. If a round trip of the NIC takes long, the report takes as long; and our answer, with which the
 * report can go, isn't sent before some round trips have passed. */
static int64_t report_small_ns(const struct lane_set *set)
{
    const struct stream *stream = set->streams[set->hot];
    const int64_t rtts =
        stream != NULL && stream->qp != NULL ? REPORT_RTTS * stream->qp->rtt_ns : 0;

    return set->scheduler.one_way  ? REPORT_HERE_NS
           : rtts < REPORT_NS      ? REPORT_NS
           : rtts < REPORT_SLOW_NS ? rtts
                                   : REPORT_SLOW_NS;
}

/* awaited: the sender may wait for this report; else only room for its copies and slots hangs on it. */
static void report_within(struct lane_set *set, struct mono now, bool awaited)
{
    const int64_t ns = awaited ? REPORT_NS : report_small_ns(set);

    set->report_by = mono_min(set->report_by, mono_add(now, span_ns(ns)));
}

/* After this many small messages their sender may lack slots. */
static uint32_t eager_late(const struct lane_set *set)
{
    const uint32_t late = set->small_slots * REPORT_EAGER_LATE / LANE_SMALL_SLOTS;

    return late > 0 ? late : REPORT_EAGER_LATE;
}

/* A small message's sender is done already; it may only run out of bounce slots. The sender of large messages waits for each
 * report, and so does its estimate of the lane. */
static void note_chunk(struct lane_set *set, struct mono now, const struct lane_chunk *chunk)
{
    set->peer_keeps = (chunk->flags & LANE_CHUNK_KEPT) != 0;
    if (chunk->size <= LANE_EAGER_SIZE_MAX) {
        set->report_eager++;
    } else {
        set->report_chunks++;
        set->report_bytes += chunk->length;
        set->whole =
            chunk->size <= slots_large_size(set) ? chunk->length == chunk->size : set->whole;
    }
    set->report_urgent = set->report_urgent || set->report_eager >= eager_late(set) ||
                         (set->scheduler.one_way ? set->report_bytes >= REPORT_BYTES_HERE
                                                 : set->report_chunks >= REPORT_CHUNKS ||
                                                       set->report_bytes >= REPORT_BYTES);
    report_within(set, now,
                  chunk->size > LANE_EAGER_SIZE_MAX &&
                      !(set->scheduler.one_way && set->peer_keeps));
}

void in_posted(struct lane_set *set, struct mono now, struct transport_comm *comm, size_t size)
{
    uint64_t placed = 0, posted = 0;

    /* Messages that fit a bounce slot don't wait for this. */
    const size_t early =
        set->large_shift != 0 || (set->version >= 3 && set->whole && set->large_slots > 0)
            ? post_early(set, slots_large_size(set))
        : set->small_slots > 0 ? LANE_EAGER_SIZE_MAX
                               : 0;
    if (size > early && ledger_comm_progress(set->ledger, comm->number, &placed, &posted) &&
        comm->posted_told < placed + REPORT_CREDIT) {
        /* A process that posts a receive is often about to post another one from the same peer, or to send. */
        set->report_posted = set->report_posted || set->scheduler.one_way;
        set->report_urgent = set->report_urgent || !set->scheduler.one_way;
    }
    /* A sender whose messages come in parts may wait for this. */
    report_within(set, now,
                  size > (set->scheduler.one_way && set->whole ? early : LANE_EAGER_SIZE_MAX));
}

/* The chunk is counted, or refused. */
static int settled(struct lane_set *set, struct mono now, uint32_t lane,
                   enum ledger_verdict verdict, const struct ledger_copy *copy,
                   const struct io_stamp *stamp)
{
    const struct stream *stream = set->streams[lane];

    if (verdict != LEDGER_OK) {
        return verdict_of(set, verdict);
    }
    delay_on_chunk(set, now, lane, &stream->chunk, stamp);
    set->hot = (uint8_t)lane;
    note_chunk(set, now, &stream->chunk);
    in_copy(set, copy);
    in_misfit(set);
    in_harvest(set);
    return 0;
}

static int finish_chunk(struct lane_set *set, struct mono now, uint32_t lane,
                        const struct io_stamp *stamp)
{
    struct stream *stream = set->streams[lane];
    const bool fits = (stream->chunk.flags & LANE_CHUNK_PAYLOAD_CRC) == 0 ||
                      stream->crc == stream->chunk.payload_crc;
    struct ledger_copy copy;
    const enum ledger_verdict verdict =
        ledger_end(set->ledger, now, lane, stream->epoch, fits, &copy);

    stream->reading = false;
    return verdict == LEDGER_LANE_DOWN && !fits ? -EBADMSG
                                                : settled(set, now, lane, verdict, &copy, stamp);
}

int in_got(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *at, uint32_t size,
           const struct io_stamp *stamp)
{
    struct stream *stream = set->streams[lane];

    if (size > 0) {
        const int r = verdict_of(set, ledger_got(set->ledger, lane, stream->epoch, size));
        if (r < 0) {
            return r;
        }
        if (at != NULL && (stream->chunk.flags & LANE_CHUNK_PAYLOAD_CRC) != 0) {
            stream->crc = crc32c(stream->crc, at, size);
        }
        stream->got += size;
    }
    return stream->got == stream->chunk.length ? finish_chunk(set, now, lane, stamp) : 0;
}

/* A chunk of a comm that existed before, or of a set that was forgotten (a sender sends none before it was told that the comm is
 * open): it is thrown away, and the sender is told why. */
static void note_unknown(struct lane_set *set, uint32_t lane, uint32_t number)
{
    if (ledger_comm_progress(set->ledger, number, NULL, NULL)) {
        return;
    }
    if (ledger_comm_open(set->ledger, number, 1) == 0) {
        ledger_comm_close(set->ledger, number);
    }
    if (comm_find(set, false, number) == NULL) { /* else the comm's own CLOSE is on its way */
        comm_unknown(set, lane, false, number, 0);
    }
}

/* The header of a chunk that is in its place already. The NIC has checked its bytes. */
static int on_written(struct lane_set *set, struct mono now, uint32_t lane)
{
    struct stream *stream = set->streams[lane];
    struct ledger_copy copy;

    if (!lane_pair_takes_writes(stream)) {
        return -EPROTO;
    }
    gpu_written(set, lane, stream->chunk.comm);
    const enum ledger_verdict verdict =
        ledger_on_written(set->ledger, now, lane, stream->epoch, &stream->chunk, true, &copy);
    return settled(set, now, lane, verdict, &copy, lane_pair_stamp(stream));
}

static int on_chunk(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
                    size_t size)
{
    struct stream *stream = set->streams[lane];
    struct ledger_target target;
    const enum lane_error error = lane_chunk_decode(frame, size, set->version, &stream->chunk);

    if (error != LANE_ERROR_NONE) {
        return error == LANE_ERROR_CRC ? -EBADMSG : -EPROTO;
    }
    if (stream->chunk.lane != lane || stream->chunk.epoch != stream->epoch) {
        return -EPROTO;
    }
    note_unknown(set, lane, stream->chunk.comm);
    if ((stream->chunk.flags & LANE_CHUNK_WRITTEN) != 0) {
        return on_written(set, now, lane);
    }
    const int r = verdict_of(
        set, ledger_begin(set->ledger, now, lane, stream->epoch, &stream->chunk, &target));
    in_misfit(set);
    if (r == 0) {
        stream->reading = true;
        stream->chunk_at = now;
        stream->looks = 0;
        stream->crc = 0;
        stream->got = 0;
    }
    return r;
}

/* -- comms ------------------------------------------------------------------------------------ */

/* Gives the comm to the listener that it is for. False: there is no such listener, or the comm existed before. */
static bool hand_over(struct transport *t, struct transport_comm *comm)
{
    const struct lane_set *set = comm->set;

    pthread_mutex_lock(&t->listen_lock);
    struct transport_listener *listener = t->listeners;
    while (listener != NULL && listener->cookie != comm->cookie) {
        listener = listener->next;
    }
    if (listener != NULL && listener->last.any && listener->last.connects == set->connects &&
        listener->last.context == set->peer_context && listener->last.set == set->number &&
        listener->last.comm == comm->number) {
        listener = NULL;
    }
    if (listener != NULL) {
        listener->last.any = true;
        listener->last.connects = set->connects;
        listener->last.context = set->peer_context;
        listener->last.set = set->number;
        listener->last.comm = comm->number;
        *listener->ready_end = comm;
        listener->ready_end = &comm->next_ready;
    }
    pthread_mutex_unlock(&t->listen_lock);
    return listener != NULL;
}

/* The first chunk against the direction of the connect. The number of slots is sent before anything is confirmed. */
static int begin_ledger(struct lane_set *set)
{
    int r = 0;

    if (set->ledger == NULL) {
        r = lane_set_add_ledger(set);
        if (r == 0) {
            slots_promise(set, set->scheduler.one_way);
        }
        for (uint32_t lanes = r == 0 ? set->present : 0; lanes != 0; lanes &= lanes - 1) {
            struct stream *stream = set->streams[__builtin_ctz(lanes)];
            if (stream->shaken && !stream->dead) {
                lane_set_tell_nics(set, stream);
            }
        }
    }
    return r;
}

static int on_open(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
                   size_t size)
{
    struct lane_open open;
    struct transport_comm *comm;
    struct lane_report report = {0};

    if (lane_open_decode(frame, size, &open) != LANE_ERROR_NONE || begin_ledger(set) < 0) {
        return -EPROTO;
    }
    int r = ledger_comm_open(set->ledger, open.comm, open.group_max);
    if (r == 0) {
        comm = comm_new(set, false, open.comm);
        if (comm != NULL) {
            comm->cookie = open.cookie;
        }
        if (comm == NULL || !hand_over(set->transport, comm)) {
            if (comm != NULL) {
                comm->released = true; /* no caller knows it */
                set->parting_comms++;
            }
            ledger_comm_close(set->ledger, open.comm);
            comm_unknown(set, lane, false, open.comm, LANE_CLOSE_ABORT);
            return 0;
        }
    } else if (r != -EALREADY) {
        comm_unknown(set, lane, false, open.comm, LANE_CLOSE_ABORT);
        return 0;
    }
    report.comm = open.comm;
    if (ledger_comm_progress(set->ledger, open.comm, &report.placed, &report.posted)) {
        report.granted = UINT64_MAX;
        lane_set_tell(set, &report, (int)lane);
    } else if (comm_find(set, false, open.comm) == NULL) {
        comm_unknown(set, lane, false, open.comm,
                     LANE_CLOSE_ABORT); /* it existed, and was forgotten */
    }
    (void)now;
    return 0;
}

int in_frame(struct lane_set *set, struct mono now, uint32_t lane, const uint8_t *frame,
             size_t size)
{
    if (frame[0] == LANE_CHUNK && set->ledger != NULL) {
        return on_chunk(set, now, lane, frame, size);
    }
    return frame[0] == LANE_OPEN && (!set->connects || lane_set_both(set))
               ? on_open(set, now, lane, frame, size)
               : -EPROTO;
}

/* Reports that nobody waits for are sent when there is nothing else to do, because the process that got data is about to answer.
 * The next call does that, for whichever set (lane_set_attend). There is such a call while any request is awaited. */
static bool report_due(const struct lane_set *set, struct mono now, bool came)
{
    const int64_t by = set->report_by.ns;

    return set->report_urgent || (set->report_posted && !came && set->empty_polls > 0) ||
           (set->report_soon &&
            (!came || __atomic_load_n(&set->transport->awaited, __ATOMIC_RELAXED) == 0)) ||
           (now.ns >= by && (!came || now.ns - REPORT_NS >= by)) ||
           (set->empty_polls >= REPORT_POLLS &&
            (set->report_copied >= REPORT_COPIED ||
             set->report_eager >= (set->scheduler.one_way ? REPORT_EAGER_HERE : REPORT_EAGER) ||
             set->report_eager >= eager_late(set)));
}

/* Sends all reports, each by the lane that the ledger names, or all by `along` (-1: no such lane). Returns the lanes that still
 * have to write them. */
static uint32_t say_reports(struct lane_set *set, struct mono now, int along)
{
    struct lane_report report;
    uint32_t said = 0;
    int lane;

    set->reported_at = now;
    set->report_urgent = set->report_soon = set->report_posted = false;
    set->report_eager = set->report_chunks = set->report_copied = set->report_bytes = 0;
    while (ledger_next_report(set->ledger, now, &report, &lane)) {
        const bool every = lane == LEDGER_EVERY_LANE;
        if (every) {
            lane = -1; /* for all of them, by lane_set_say */
        } else if (along >= 0) {
            lane = along;
        } else if (lane < 0 || set->streams[lane] == NULL || !set->streams[lane]->shaken ||
                   set->streams[lane]->dead || (watch_doubted(set->watch) >> lane & 1) != 0) {
            lane = lane_set_any_lane(set);
        } else if (report.lane_count == 0 && said != 0) {
            lane = __builtin_ctz(said); /* together with another one */
        }
        if (lane < 0 && !every) {
            break;
        }
        if (report.comm != LANE_COMM_NONE) {
            struct transport_comm *comm = comm_find(set, false, report.comm);
            if (comm != NULL) {
                comm->posted_told = report.posted;
            }
            const int by = lane >= 0 ? lane : lane_set_any_lane(set);
            if (comm != NULL && by >= 0 && post_needed(set)) {
                post_tell(set, now, comm, (uint32_t)by);
                said |= 1u << by;
            }
        }
        said |= lane_set_say(set, now, &report, lane);
    }
    said |= post_tell_left(set, now);
    /* Also reports that aren't due yet: the housekeeping never serves a set that is polled all the time, and nothing else may
     * come. */
    set->report_by = ledger_deadline(set->ledger);
    return said;
}

void in_reports(struct lane_set *set, struct mono now, bool all, bool came)
{
    if (all || report_due(set, now, came)) {
        lane_set_flush(set, now, say_reports(set, now, -1));
    }
}

void in_reports_along(struct lane_set *set, struct mono now, uint32_t lane)
{
    /* The answer takes long: a report by itself would cost as much as a message. */
    const int64_t each = set->scheduler.one_way ? REPORT_HERE_NS : REPORT_NS;
    const bool late = set->report_eager > 0 && mono_sub(now, set->reported_at).ns >= each;
    const bool any = set->report_urgent || set->report_soon || set->report_posted ||
                     set->report_chunks > 0 || set->report_eager >= REPORT_EAGER || late;

    /* The lane that delivered last: data that comes back over it shows that it is healthy. */
    if (any && (lane == set->hot || set->scheduler.one_way)) {
        (void)say_reports(set, now, (int)lane);
    }
}
