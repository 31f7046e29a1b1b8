/* gpu.c: messages in memory of GPUs, which the processor doesn't touch.
 *
 *   by a write   as from and to memory of this host (lane_pair_write): no difference
 *   as bytes     a NIC of the host makes the copies for the sender's reads and the receiver's stores (io_rdma.gpu_copy):
 *                so each lane can carry them, of any kind and to any peer
 *   done         not yet seen by the GPU: bytes that a NIC has written may still be on their way there. transport_flush()
 *                makes each NIC that wrote read from there. A lane that is over is silent only after such a read
 *
 * A NIC that can't read any more (its port is down, or it is gone) is given a second: what it has written has arrived by then. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "transport/internal.h"

#define GPU_SETTLE_NS NS_PER_S

struct gpu_flush {
    uint32_t devices; /* bits: devices that have yet to read */
    uint64_t tickets[IO_RDMA_DEVICES];
    /* the time of the request: what it had written by then is there in time, whatever happens to it */
    struct mono at[IO_RDMA_DEVICES];
};

static void fail(struct lane_set *set, int error)
{
    set->gpu_failed = true;
    lane_set_fail(set, error,
                  "memory of a GPU can't be reached: no RDMA device of this host copies to or from "
                  "it; expected a port that is up");
}

/* -- as bytes --------------------------------------------------------------------------------- */

static int fetch(struct lane_set *set, const void *data, size_t size, uint8_t *to)
{
    struct transport *t = set->transport;
    struct transport_memory *memory = memory_of_gpu(t, data, size);
    uint32_t device;
    const int r = memory == NULL
                      ? -ECANCELED
                      : t->rdma->gpu_copy(t->rdma, memory_driven(memory), (void *)(uintptr_t)data,
                                          to, size, false, &device);

    memory_of_gpu_end(t, memory);
    return r;
}

const struct sender_chunk *gpu_fetch(struct lane_set *set, uint32_t lane,
                                     const struct sender_chunk *chunk, struct sender_chunk *ret)
{
    struct stream *stream = set->streams[lane];

    if (stream->fetched == NULL) {
        stream->fetched = malloc(1u << LANE_CHUNK_SHIFT_MAX);
    }
    const int r = stream->fetched == NULL
                      ? -ENOMEM
                      : fetch(set, chunk->source, chunk->length, stream->fetched);
    if (r < 0) {
        fail(set, r);
        return NULL;
    }
    *ret = *chunk;
    ret->source = stream->fetched;
    return ret;
}

int gpu_fetch_small(struct lane_set *set, struct outgoing *outgoing, const void *data, size_t size)
{
    outgoing->fetched = malloc(size);
    const int r = outgoing->fetched == NULL ? -ENOMEM : fetch(set, data, size, outgoing->fetched);

    if (r < 0) {
        free(outgoing->fetched);
        outgoing->fetched = NULL;
    }
    return r;
}

bool gpu_store(struct lane_set *set, uint8_t *to, const uint8_t *from, size_t size)
{
    struct transport *t = set->transport;
    struct transport_memory *memory = memory_of_gpu(t, to, size);
    uint32_t device;

    if (memory == NULL) {
        return false;
    }
    const int r = t->rdma->gpu_copy(t->rdma, memory_driven(memory), to, (void *)(uintptr_t)from,
                                    size, true, &device);
    memory_of_gpu_end(t, memory);
    if (r < 0) {
        fail(set, r);
    } else {
        __atomic_fetch_add(&t->gpu_copied[device], 1, __ATOMIC_SEQ_CST);
    }
    return true;
}

/* -- until the GPU sees it -------------------------------------------------------------------- */

void gpu_written(struct lane_set *set, uint32_t lane, uint32_t number)
{
    const uint32_t device = lane_pair_device(set->streams[lane]);
    struct transport_comm *comm = __atomic_load_n(&set->transport->gpu_count, __ATOMIC_RELAXED) > 0
                                      ? comm_find(set, false, number)
                                      : NULL;

    if (comm != NULL && device < IO_RDMA_DEVICES) {
        comm->gpu[device].written++;
    }
}

/* Each device that wrote since its last read reads once more. Reads that others have asked for since are waited for, too. */
static void ask(struct transport_comm *comm, struct mono now, struct gpu_flush *flush,
                struct io_rdma_memory *memory, const void *at)
{
    struct transport *t = comm->set->transport;

    for (uint32_t i = 0; i < IO_RDMA_DEVICES; i++) {
        const uint64_t written =
            comm->gpu[i].written + __atomic_load_n(&t->gpu_copied[i], __ATOMIC_SEQ_CST);
        if (written == 0) {
            continue;
        }
        if (written > comm->gpu[i].asked) {
            comm->gpu[i].asked = written;
            comm->gpu[i].at = now;
            if (t->rdma->gpu_read(t->rdma, i, memory, at, &comm->gpu[i].ticket) < 0) {
                comm->gpu[i].ticket = UINT64_MAX; /* it can't read: it is given its time */
            }
        }
        flush->tickets[i] = comm->gpu[i].ticket;
        flush->at[i] = comm->gpu[i].at;
        flush->devices |= 1u << i;
    }
}

void gpu_flush_look(struct transport_request *request, struct mono now)
{
    struct transport *t = request->comm->set->transport;
    struct gpu_flush *flush = request->flush;

    for (uint32_t left = flush->devices; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(left);
        const int r = flush->tickets[i] == UINT64_MAX
                          ? -EIO
                          : t->rdma->gpu_done(t->rdma, i, flush->tickets[i]);
        if (r == 0 || (r != -EAGAIN && mono_sub(now, flush->at[i]).ns >= GPU_SETTLE_NS)) {
            flush->devices &= ~(1u << i);
        }
    }
    if (flush->devices == 0) {
        lane_set_request_done(request->comm->set, request);
    }
}

void gpu_flush_end(struct transport_request *request)
{
    free(request->flush);
    request->flush = NULL;
}

int gpu_flush_begin(struct transport_request *request, struct io_rdma_memory *memory,
                    const void *at)
{
    request->flush = calloc(1, sizeof(*request->flush));
    if (request->flush == NULL) {
        return -ENOMEM;
    }
    ask(request->comm, request->posted, request->flush, memory, at);
    return 0;
}

bool gpu_settled(struct lane_set *set, uint32_t device, struct gpu_wait *wait)
{
    struct transport *t = set->transport;
    const struct mono now = t->io->now(t->io);

    if (device >= IO_RDMA_DEVICES || __atomic_load_n(&t->gpu_count, __ATOMIC_RELAXED) == 0) {
        return true;
    }
    if (!wait->asked) {
        wait->asked = true;
        wait->since = now;
        wait->reads = t->rdma->gpu_read(t->rdma, device, NULL, NULL, &wait->ticket) == 0;
    }
    const int r = wait->reads ? t->rdma->gpu_done(t->rdma, device, wait->ticket) : -EIO;
    return r == 0 || (r != -EAGAIN && mono_sub(now, wait->since).ns >= GPU_SETTLE_NS);
}
