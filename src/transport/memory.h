/* memory.h: memory that is registered (memory.c), and messages that lie in memory of GPUs (gpu.c). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/time.h"
#include "transport/io_rdma.h"

struct transport;
struct transport_memory;
struct transport_request;
struct lane_set;
struct outgoing;
struct sender_chunk;

/* -- memory.c */
/* The keys of what those bytes lie in; false: nobody registered them. */
bool memory_keys(struct transport *t, const void *data, size_t size, struct io_rdma_memory *ret);
/* Of the GPU's memory that these bytes lie in as a whole; NULL: they lie in none. It isn't removed before memory_of_gpu_end(). */
struct transport_memory *memory_of_gpu(struct transport *t, const void *data, size_t size);
void memory_of_gpu_end(struct transport *t, struct transport_memory *memory); /* accepts NULL */
bool memory_is_gpus(struct transport *t, const void *data, size_t size);
struct io_rdma_memory *memory_driven(const struct transport_memory *memory); /* the driver's */
/* False: the driver hasn't returned from a call; what that call may yet touch stays: the transport, and its driver. */
bool memory_end(struct transport *t);

/* -- gpu.c */
/* A chunk that goes as bytes: where it can be read. NULL: nowhere, and the set has failed. */
const struct sender_chunk *gpu_fetch(struct lane_set *set, uint32_t lane,
                                     const struct sender_chunk *chunk, struct sender_chunk *ret);
/* A small message: to memory of ours, which copies_back() frees. -EIO, -ENOMEM, -ECANCELED. */
MUST_CHECK int gpu_fetch_small(struct lane_set *set, struct outgoing *outgoing, const void *data,
                               size_t size);
/* True: the place is a GPU's; it is there, or the set has failed. */
bool gpu_store(struct lane_set *set, uint8_t *to, const uint8_t *from, size_t size);
/* A NIC wrote a chunk of the communicator's. */
void gpu_written(struct lane_set *set, uint32_t lane, uint32_t comm);
/* Sets request->done if it is. */
void gpu_flush_look(struct transport_request *request, struct mono now);
MUST_CHECK int gpu_flush_begin(struct transport_request *request, struct io_rdma_memory *memory,
                               const void *at);
void gpu_flush_end(struct transport_request *request);
/* What a queue pair that is silent wrote to GPUs is there: `wait` remembers, zero at first. */
struct gpu_wait {
    bool asked, reads;
    uint64_t ticket;
    struct mono since;
};
bool gpu_settled(struct lane_set *set, uint32_t device, struct gpu_wait *wait);
