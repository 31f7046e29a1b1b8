/* request.c: messages from above: isend, irecv, test. Each byte takes this way, so it is kept short. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/internal.h"

#define SLOTS_MANY 20 /* used bounce slots of the receiver: it has reported by then */

static struct mono polled(struct lane_set *set)
{
    struct io *io = set->transport->io;
    const struct mono now = io->now(io);

    __atomic_store_n(&set->polled_ns, now.ns, __ATOMIC_RELAXED);
    return now;
}

static struct mono enter(struct lane_set *set)
{
    pthread_mutex_lock(&set->lock);
    return polled(set);
}

static int leave(const struct transport_comm *comm, int r)
{
    struct lane_set *set = comm->set;

    if (r < 0) {
        comm_why(comm, r);
    }
    /* the call may have taken milliseconds: the polling thread gets its time from now on */
    if (set->posted) {
        set->posted = false;
        (void)polled(set);
    }
    pthread_mutex_unlock(&set->lock);
    return r;
}

static int error_of(const struct transport_comm *comm)
{
    const struct lane_set *set = comm->set;

    return comm->error != 0  ? comm->error
           : set->error != 0 ? set->error
           : set->leaving    ? -ECONNABORTED /* the peer's process closed everything and left */
                             : 0;
}

/* A flush needs nothing of the peer or of lanes: the receives that it is for are done. */
static int flush_error(const struct lane_set *set)
{
    return set->gpu_failed ? set->error : 0;
}

static int request_error(const struct transport_request *request)
{
    return request->flush != NULL ? flush_error(request->comm->set) : error_of(request->comm);
}

static struct transport_request *claim(struct transport_comm *comm, struct mono now,
                                       const void *data, size_t size, void *parent)
{
    const uint32_t index = (uint32_t)__builtin_ctz(~comm->used);
    struct transport_request *request = &comm->requests[index];

    comm->used |= 1u << index;
    comm->set->large += size > LANE_EAGER_SIZE_MAX;
    comm->set->awaited++;
    __atomic_fetch_add(&comm->set->transport->awaited, 1, __ATOMIC_RELAXED);
    *request = (struct transport_request){
        .comm = comm, .data = data, .size = size, .room = size, .posted = now, .parent = parent};
    return request;
}

static void unclaim(struct transport_request *request)
{
    gpu_flush_end(request);
    request->comm->set->large -= request->room > LANE_EAGER_SIZE_MAX;
    lane_set_request_done(request->comm->set, request);
    request->comm->used &= ~(1u << (request - request->comm->requests));
}

/* -- sending ---------------------------------------------------------------------------------- */

static struct outgoing *free_outgoing(struct transport_comm *comm)
{
    for (uint32_t i = 0; i < COMM_REQUESTS_MAX; i++) {
        if (!comm->outgoing[i].used) {
            return &comm->outgoing[i];
        }
    }
    return NULL;
}

static int unreadable(struct transport_comm *comm, int error)
{
    comm_blame(comm, error,
               error == -ENOMEM ? "there is no room for a copy of a message in memory of a GPU"
                                : "memory of a GPU can't be read by any RDMA device of this host: "
                                  "expected a port that is up");
    return error;
}

static int send_message(struct transport_comm *comm, struct mono now, const void *data, size_t size,
                        int tag, void *parent, struct transport_request **ret_request)
{
    struct lane_set *set = comm->set;
    struct outgoing *outgoing = free_outgoing(comm);
    struct sender_message message = {.source = data, .size = (uint32_t)size, .tag = tag};
    uint64_t number;

    *ret_request = NULL;
    if (outgoing == NULL || comm->used == UINT32_MAX) {
        lane_set_progress(set, now, false); /* acknowledgements make room */
        return error_of(comm);
    }
    const bool gpu = memory_is_gpus(set->transport, data, size);
    /* such small messages are not written by a NIC */
    if (gpu && size <= lane_set_copies_idle(set)) {
        const int fetched = gpu_fetch_small(set, outgoing, data, size);
        if (fetched < 0) {
            return unreadable(comm, fetched);
        }
        message.source = data = outgoing->fetched;
    }
    const bool copied = size <= LANE_EAGER_SIZE_MAX && copies_room(outgoing, size);
    message.cookie = (uintptr_t)outgoing;
    outgoing->gpu = gpu && outgoing->fetched == NULL;
    const int r = sender_send(set->sender, now, comm->number, &message, &number);
    if (r < 0) {
        copies_back(set, outgoing);
    }
    if (r == -EIO) { /* it sends no more */
        lane_set_fail_bug(set, sender_bug(set->sender));
        return set->error;
    }
    if (r == -EAGAIN) {
        lane_set_progress(set, now, false);
        return error_of(comm);
    }
    if (r < 0) {
        return r;
    }
    *ret_request = claim(comm, now, data, size, parent);
    if (copied) {
        lane_set_request_done(set, *ret_request);
    }
    outgoing->used = true;
    outgoing->request = copied ? NULL : *ret_request;
    set->sends_awaited += !copied;
    (void)out_pump(set, now); /* the rest goes with the next look */
    if (copied) {
        copies_fill(set, comm->number, number, data, size, outgoing);
    }
    const bool reported =
        set->scheduler.one_way ? sender_slots(set->sender) >= SLOTS_MANY : (number & 7) == 7;
    if (__builtin_popcount(comm->used) > 8 || reported) {
        lane_set_progress(set, now, false); /* small ones are done at once: nobody polls for them */
    } else {
        lane_set_act(set, now);
        lane_set_note_unattended(set);
    }
    return 0;
}

int transport_send(struct transport_comm *comm, const void *data, size_t size, int tag,
                   void *parent, struct transport_request **ret_request)
{
    struct lane_set *set = comm->set;
    if (is_childs(set->transport)) {
        return why_child();
    }
    const struct mono now = enter(set);
    int r = error_of(comm);

    if (r == 0 && (!comm->sending || size > TRANSPORT_BYTES_MAX)) {
        r = -EINVAL;
    }
    if (r == 0) {
        r = send_message(comm, now, data, size, tag, parent, ret_request);
        lane_set_touch(set);
    }
    r = leave(comm, r);
    /* data that came is reported after the call that it was for */
    lane_set_attend(comm->set->transport);
    return r;
}

/* -- receiving -------------------------------------------------------------------------------- */

int transport_receive(struct transport_comm *comm, void *data, size_t size, int tag, bool staged,
                      void *parent, struct transport_request **ret_request)
{
    struct lane_set *set = comm->set;
    if (is_childs(set->transport)) {
        return why_child();
    }
    const struct mono now = enter(set);
    struct ledger_receive receive = {.count = 1, .staged = staged};
    struct transport_request *request = NULL;
    struct ledger_copy copy;
    uint64_t first;
    int r = error_of(comm);

    *ret_request = NULL;
    if (r == 0 && comm->sending) {
        r = -EINVAL;
    }
    if (r == 0 && comm->used != UINT32_MAX) {
        /* A receive that is read while it fills goes to a GPU by way of staging. In fenced sets all receives do that. A NIC may
         * write to memory that is read at the same time: it writes only the right bytes. */
        if (memory_is_gpus(set->transport, data, size)) {
            receive.staged = !set->fenced;
        }
        request = claim(comm, now, data, size, parent);
        receive.cookie = (uintptr_t)request;
        receive.buffers[0] = (struct ledger_buffer){
            .data = data,
            .size = size < TRANSPORT_BYTES_MAX ? (uint32_t)size : (uint32_t)TRANSPORT_BYTES_MAX,
            .tag = tag};
        r = ledger_post(set->ledger, now, comm->number, &receive, &first, &copy);
        if (r < 0) {
            unclaim(request);
            request = NULL;
            in_misfit(set);
            r = r == -EAGAIN ? 0 : r;
        } else {
            in_copy(set, &copy);
            in_harvest(set);
            in_posted(set, now, comm, size); /* reported at the next look: several at once */
            if (request->done) {             /* it came early: no look is needed for it */
                in_reports(set, now, false, true);
                lane_set_note_unattended(set);
            }
        }
        lane_set_touch(set);
    }
    *ret_request = request;
    return leave(comm, r);
}

int transport_flush(struct transport_comm *comm, const void *data, size_t size,
                    struct transport_request **ret_request)
{
    struct lane_set *set = comm->set;

    *ret_request = NULL;
    if (is_childs(set->transport)) {
        return why_child();
    }
    const struct mono now = enter(set);
    struct transport_memory *memory = memory_of_gpu(set->transport, data, size);
    int r = memory != NULL ? flush_error(set) : 0;

    if (r == 0 && memory != NULL) {
        r = comm->sending || comm->used == UINT32_MAX ? -EINVAL : 0;
    }
    if (r == 0 && memory != NULL) {
        *ret_request = claim(comm, now, NULL, 0, NULL);
        r = gpu_flush_begin(*ret_request, memory_driven(memory), data);
        if (r < 0) {
            unclaim(*ret_request);
            *ret_request = NULL;
        }
    }
    memory_of_gpu_end(set->transport, memory);
    return leave(comm, r);
}

/* -- done? ------------------------------------------------------------------------------------ */

int transport_test(struct transport_request *request, bool *ret_done, size_t *ret_size)
{
    struct transport_comm *comm = request->comm;
    struct lane_set *set = comm->set;
    struct transport *t = set->transport;
    struct mono now = {0};
    int r = 0;

    if (is_childs(set->transport)) {
        return why_child();
    }
    pthread_mutex_lock(&set->lock);
    if (!request->done) { /* else not even the clock is read: small sends are done at once */
        r = request_error(request);
        now = polled(set);
        if (r == 0 && request->flush != NULL) {
            gpu_flush_look(request, now);
        }
        if (r == 0) {
            lane_set_progress(set, now, false);
            r = request->done ? 0 : request_error(request);
        }
    }
    *ret_done = r == 0 && request->done;
    if (*ret_done) {
        if (ret_size != NULL) {
            *ret_size = request->size;
        }
        unclaim(request);
    }
    r = leave(comm, r);
    if (now.ns != 0) {
        lane_set_attend(t);
    }
    return r;
}
