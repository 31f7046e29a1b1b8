/* comm.c: NCCL's communicators on a set: their life from OPEN to the echo of CLOSE.
 *
 * Closing leaves a debt that is paid in the background. A sender first waits until all of its messages are placed; then it
 * repeats CLOSE until it is echoed. A receiver sends CLOSE at once, with the last `placed`. A debt has no time limit. It ends
 * when it is paid, when the peer closes, or with the set, which fails once the peer wasn't heard for the patience. A comm that is
 * closed with requests in flight (an abort) owes nothing. Each CLOSE gets an echo, also for a comm that was forgotten: so either
 * end may forget first. An end that forgot without an echo sends CLOSE when the peer refers to that comm again: by OPEN, a chunk,
 * or a receive that waits. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/internal.h"

#define CLOSE_GAP_NS     (10 * NS_PER_MS)
#define CLOSE_GAP_NS_MAX (200 * NS_PER_MS)
#define ABORT_NS         (2 * NS_PER_S) /* so long an abort is repeated to the peer */

struct transport_comm *comm_find(const struct lane_set *set, bool sending, uint32_t number)
{
    struct transport_comm *comm = set->by_number[number % COMM_PLACES];

    while (comm != NULL && (comm->number != number || comm->sending != sending || comm->released)) {
        comm = comm->next_place;
    }
    return comm;
}

struct transport_comm *comm_new(struct lane_set *set, bool sending, uint32_t number)
{
    struct transport_comm *comm = calloc(1, sizeof(*comm));

    if (comm == NULL) {
        return NULL;
    }
    comm->set = set;
    comm->number = number;
    comm->sending = sending;
    comm->next = set->comms;
    set->comms = comm;
    comm->next_place = set->by_number[number % COMM_PLACES];
    set->by_number[number % COMM_PLACES] = comm;
    set->comm_count++;
    set->had_comms = true;
    set->opening += comm->sending;
    return comm;
}

void comm_free(struct transport_comm *comm)
{
    struct transport_comm **at = &comm->set->by_number[comm->number % COMM_PLACES];

    while (*at != comm) {
        at = &(*at)->next_place;
    }
    *at = comm->next_place;
    for (uint32_t i = 0; i < COMM_REQUESTS_MAX; i++) {
        copies_back(comm->set, &comm->outgoing[i]);
        free(comm->outgoing[i].copy);
    }
    free(comm->why);
    free(comm);
}

/* Half-written frames of its messages can't continue, because their memory is its owner's again. If the message is placed, or the
 * peer throws it away, the rest may be any bytes. Else the lane is closed. */
static void cut_frames(struct transport_comm *comm, struct mono now)
{
    struct lane_set *set = comm->set;
    uint32_t reading = 0; /* their NICs read that memory, and send what they find there */

    if (!comm->sending) {
        return;
    }
    for (uint32_t lane = 0; !comm->close_heard && lane < LANE_MAX; lane++) {
        const struct stream *stream = set->streams[lane];
        if (stream != NULL && lane_pair_reads(set, stream, comm->number)) {
            reading |= 1u << lane;
        }
    }
    lane_pair_fence(set, reading);
    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        struct stream *stream = set->streams[lane];
        if (stream == NULL || stream->payload_left == 0 || stream->payload_comm != comm->number) {
            continue;
        }
        if (comm->close_heard ||
            sender_placed(set->sender, comm->number, stream->payload_message)) {
            stream->payload_void = true;
        } else {
            lane_set_lost(set, now, lane, LANE_REASON_CLOSE);
        }
    }
}

/* The peer has the places of its receives, and may be writing there. All direct lanes are closed and made anew. */
static void fence_receives(struct transport_comm *comm)
{
    struct lane_set *set = comm->set;

    if (!ledger_comm_idle(set->ledger, comm->number)) {
        lane_pair_fence(set, set->present);
    }
}

/* For a receiver: data that came and was never asked for is dropped now, because the sender takes our CLOSE as free bounce
 * slots. */
static void receive_no_more(struct transport_comm *comm)
{
    struct lane_set *set = comm->set;

    (void)ledger_comm_progress(set->ledger, comm->number, &comm->last_placed, &comm->last_posted);
    fence_receives(comm);
    ledger_comm_close(set->ledger, comm->number);
}

static void close_book(struct transport_comm *comm, struct mono now)
{
    struct lane_set *set = comm->set;

    if (comm->book_closed) {
        return;
    }
    comm->book_closed = true;
    cut_frames(comm, now);
    for (uint32_t i = 0; i < TRANSPORT_REQUEST_MAX; i++) {
        if ((comm->used & (1u << i)) != 0) {
            set->large -= comm->requests[i].room > LANE_EAGER_SIZE_MAX;
            lane_set_request_done(set, &comm->requests[i]);
            gpu_flush_end(&comm->requests[i]);
        }
    }
    comm->used = 0;
    if (!comm->sending) {
        receive_no_more(comm);
        return;
    }
    sender_comm_close(set->sender, comm->number);
}

void comm_why(const struct transport_comm *comm, int error)
{
    const struct lane_set *set = comm->set;

    if (error == comm->error && comm->why != NULL) {
        why("%s", comm->why);
    } else if (error == set->error && set->why[0] != 0) {
        why("%s", set->why);
    } else {
        (void)why_error(error);
    }
}

void comm_blame(struct transport_comm *comm, int error, const char *why)
{
    comm->error = comm->error != 0 ? comm->error : error;
    comm->why = comm->why != NULL ? comm->why : strdup(why);
}

void comm_give_up(struct transport_comm *comm, struct mono now, int error, const char *why)
{
    comm_blame(comm, error, why);
    if (!comm->sending) {
        receive_no_more(comm);
        return;
    }
    cut_frames(comm, now);
    sender_comm_close(comm->set->sender, comm->number);
}

/* Up to version 3 a set has one direction, so its number is enough. */
static uint8_t flags_of(const struct lane_set *set, bool sending)
{
    return lane_set_both(set) ? halves_close_flag(sending) : 0;
}

static void tell_close(struct transport_comm *comm)
{
    struct lane_set *set = comm->set;
    struct lane_close close = {.flags = flags_of(set, comm->sending) |
                                        (comm->abort ? LANE_CLOSE_ABORT : 0),
                               .reason = LANE_REASON_CLOSE,
                               .comm = comm->number};
    const int lane = lane_set_any_lane(set);
    uint8_t bytes[LANE_CLOSE_SIZE];

    if (comm->sending) {
        (void)sender_comm_progress(set->sender, comm->number, &close.messages, &close.placed);
    } else {
        close.placed = comm->last_placed;
        close.messages = comm->last_posted;
    }
    lane_close_encode(bytes, &close);
    if (lane >= 0 && stream_control(set->streams[lane], bytes, sizeof(bytes))) {
        comm->told = true;
        (void)stream_flush(set, set->streams[lane]);
    }
}

/* Its messages come first; CLOSE follows the last of them. */
static bool owes_messages(const struct transport_comm *comm)
{
    return comm->sending && !comm->book_closed && !comm->close_heard &&
           !sender_comm_idle(comm->set->sender, comm->number);
}

static void pay(struct transport_comm *comm, struct mono now)
{
    struct lane_set *set = comm->set;

    if (set->error != 0 || set->leaving || (comm->abort && now.ns >= comm->close_until.ns)) {
        comm->released = true;
        return;
    }
    if (owes_messages(comm)) {
        return;
    }
    if (now.ns >= comm->close_next.ns) {
        tell_close(comm);
        comm->close_next = mono_add(now, comm->close_gap);
        comm->close_gap.ns =
            comm->close_gap.ns * 2 < CLOSE_GAP_NS_MAX ? comm->close_gap.ns * 2 : CLOSE_GAP_NS_MAX;
    }
}

void comm_closings(struct lane_set *set, struct mono now)
{
    struct transport_comm *comm = set->parting_comms > 0 ? set->comms : NULL;

    for (; comm != NULL; comm = comm->next) {
        if (comm->state == COMM_CLOSING && !comm->released) {
            pay(comm, now);
        }
        if (comm->released) {
            close_book(comm, now);
        }
    }
}

void comm_write_off(struct lane_set *set, struct mono now)
{
    for (struct transport_comm *comm = set->comms; comm != NULL; comm = comm->next) {
        if (comm->state == COMM_CLOSING) {
            comm->released = true;
            close_book(comm, now);
        }
    }
}

struct mono comm_deadline(const struct lane_set *set)
{
    struct mono deadline = MONO_NEVER;

    for (const struct transport_comm *comm = set->comms; comm != NULL; comm = comm->next) {
        if (comm->released) {
            return (struct mono){0};
        }
        if (comm->state == COMM_CLOSING) {
            deadline = comm->abort ? mono_min(deadline, comm->close_until) : deadline;
            deadline = owes_messages(comm) ? deadline : mono_min(deadline, comm->close_next);
        }
    }
    return deadline;
}

static void echo(struct lane_set *set, uint32_t lane, bool sending, const struct lane_close *close)
{
    struct lane_close answer = {.flags = flags_of(set, sending) | LANE_CLOSE_ECHO,
                                .reason = LANE_REASON_CLOSE,
                                .comm = close->comm};
    uint8_t bytes[LANE_CLOSE_SIZE];

    lane_close_encode(bytes, &answer);
    (void)stream_control(set->streams[lane], bytes, sizeof(bytes));
}

void comm_unknown(struct lane_set *set, uint32_t lane, bool sending, uint32_t number, uint8_t flags)
{
    const struct lane_close close = {
        .flags = flags_of(set, sending) | flags, .reason = LANE_REASON_CLOSE, .comm = number};
    uint8_t bytes[LANE_CLOSE_SIZE];

    lane_close_encode(bytes, &close);
    (void)stream_control(set->streams[lane], bytes, sizeof(bytes));
}

static void fail_comm(struct transport_comm *comm)
{
    char text[PEER_TEXT];

    if (comm->error == 0) {
        comm->error = -ECONNABORTED;
        say(comm->set->transport, TRANSPORT_WARN, "%s closed a communicator that we still use",
            lane_set_peer(comm->set, text));
    }
}

/* For its messages only: a flush needs nothing from the peer. */
static bool in_flight(const struct transport_comm *comm)
{
    for (uint32_t i = 0; i < TRANSPORT_REQUEST_MAX; i++) {
        if ((comm->used & (1u << i)) != 0 && !comm->requests[i].done &&
            comm->requests[i].flush == NULL) {
            return true;
        }
    }
    return false;
}

/* The peer will not answer for that comm any more. */
static void on_close_of(struct transport_comm *comm, struct mono now,
                        const struct lane_close *close)
{
    struct lane_set *set = comm->set;
    const bool abort = (close->flags & LANE_CLOSE_ABORT) != 0;
    uint64_t posted = 0, placed = 0;

    comm->close_heard = true;
    if (comm->sending) {
        sender_on_peer_close(set->sender, comm->number);
    }
    if (comm->book_closed) {
        return;
    }
    if (comm->sending) {
        if (sender_comm_progress(set->sender, comm->number, NULL, &placed) &&
            close->placed > placed) {
            /* if it claims more than was sent, that is refused, which doesn't matter any more */
            (void)!sender_on_progress(set->sender, now, comm->number, close->placed, close->placed,
                                      0);
            out_harvest(set);
        }
        if (abort || !sender_comm_idle(set->sender, comm->number)) {
            fail_comm(comm);
        }
    } else if (abort || (ledger_comm_progress(set->ledger, comm->number, &placed, &posted) &&
                         posted > close->messages && posted > placed)) {
        fail_comm(comm);
    }
}

void comm_on_close(struct lane_set *set, struct mono now, uint32_t lane,
                   const struct lane_close *close)
{
    const bool sending = lane_set_both(set) ? halves_of_close(close) == HALF_SENDER : set->connects;
    struct transport_comm *comm;

    if ((close->flags & LANE_CLOSE_ECHO) == 0) {
        echo(set, lane, sending, close);
    }
    if (close->comm == LANE_COMM_NONE) {
        set->leaving = true;
        for (comm = set->comms; comm != NULL; comm = comm->next) {
            /* For a comm that it closed before, with nothing under way, this is not an error. */
            const bool elsewhere = comm->state == COMM_OPENING && comm->sending && !set->connects;
            if (!comm->released && comm->state != COMM_CLOSING && !elsewhere &&
                (!comm->close_heard || in_flight(comm))) {
                fail_comm(comm);
            }
        }
        return;
    }
    comm = comm_find(set, sending, close->comm);
    if (comm == NULL) {
        if (sending && set->sender != NULL && (close->flags & LANE_CLOSE_ECHO) == 0) {
            /* its bounce slots are forgotten here */
            sender_on_peer_close(set->sender, close->comm);
        }
        return;
    }
    if ((close->flags & LANE_CLOSE_ECHO) != 0) {
        comm->released = comm->released || (comm->state == COMM_CLOSING && comm->told);
    } else {
        on_close_of(comm, now, close);
    }
}

/* -- calls from above ------------------------------------------------------------------------- */

void transport_close(struct transport_comm *comm)
{
    if (comm == NULL || is_childs(comm->set->transport)) {
        return;
    }
    struct lane_set *set = comm->set;
    pthread_mutex_lock(&set->lock);
    struct mono now = set->transport->io->now(set->transport->io);
    comm->abort = in_flight(comm) || comm->state == COMM_OPENING || comm->error != 0;
    set->opening -= comm->sending && comm->state == COMM_OPENING;
    set->parting_comms++;
    comm->state = COMM_CLOSING;
    comm->close_next = now;
    comm->close_gap = span_ns(CLOSE_GAP_NS);
    comm->close_until = mono_add(now, span_ns(ABORT_NS));
    if (!comm->sending || comm->abort) {
        close_book(comm, now);
    }
    if (comm->abort) {
        lane_set_act(set, now);
    }
    lane_set_progress(set, now, true);
    lane_set_touch(set);
    pthread_mutex_unlock(&set->lock);
}
