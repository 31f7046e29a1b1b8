/* memory.h: registered memory (memory.c), and messages in memory of GPUs (gpu.c). */
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
/* The keys of the range that holds those bytes; false: it isn't registered. */
bool memory_keys(struct transport *t, const void *data, size_t size, struct io_rdma_memory *ret);
/* The GPU's range that holds all these bytes; NULL: there is none. It isn't removed before memory_of_gpu_end(). */
struct transport_memory *memory_of_gpu(struct transport *t, const void *data, size_t size);
void memory_of_gpu_end(struct transport *t, struct transport_memory *memory); /* accepts NULL */
bool memory_is_gpus(struct transport *t, const void *data, size_t size);
/* the driver's handle */
struct io_rdma_memory *memory_driven(const struct transport_memory *memory);
/* False: the driver hasn't returned from a call. What that call may still touch stays: the transport, and its driver. */
bool memory_end(struct transport *t);

/* -- gpu.c */
/* For a chunk that is sent as bytes: where it can be read. NULL: nowhere, and the set has failed. */
const struct sender_chunk *gpu_fetch(struct lane_set *set, uint32_t lane,
                                     const struct sender_chunk *chunk, struct sender_chunk *ret);
/* Copies a small message into our memory, which copies_back() frees. -EIO, -ENOMEM, -ECANCELED. */
MUST_CHECK int gpu_fetch_small(struct lane_set *set, struct outgoing *outgoing, const void *data,
                               size_t size);
/* True: the place is a GPU's; the bytes are stored there, or the set has failed. */
bool gpu_store(struct lane_set *set, uint8_t *to, const uint8_t *from, size_t size);
/* A NIC wrote a chunk of the communicator. */
void gpu_written(struct lane_set *set, uint32_t lane, uint32_t comm);
/* Sets request->done if the flush is done. */
void gpu_flush_look(struct transport_request *request, struct mono now);
MUST_CHECK int gpu_flush_begin(struct transport_request *request, struct io_rdma_memory *memory,
                               const void *at);
void gpu_flush_end(struct transport_request *request);
/* Waits until the writes of a silent queue pair to GPUs have arrived; the state is zero at first. */
struct gpu_wait {
    bool asked, reads;
    uint64_t ticket;
    struct mono since;
};
bool gpu_settled(struct lane_set *set, uint32_t device, struct gpu_wait *wait);
