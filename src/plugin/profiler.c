/* profiler.c: the profiler's tables, v4 to v6. The callbacks run in NCCL's progress threads: no lock, no allocation. */
#include "plugin/profiler.h"

#include <stddef.h>
#include <time.h>

#include "plugin/abi_profiler.h"

#define EXPORT __attribute__((visibility("default")))
#define EVENTS 8192 /* steps under way at a time; more aren't counted */
#define TRIES  16

struct event {
    uint32_t used; /* atomic */
    int state;     /* < 0: none yet */
    int64_t since_ns;
};

static struct event events[EVENTS];
static uint32_t turn;                              /* atomic: where to look for a free one */
static uint64_t steps, waits[PROFILER_WAIT_COUNT]; /* atomic */
static char context;
/* NCCL 2.27 starts the steps of an operation only if the operation has a handle. No data is kept for operations. */
static char operation;

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void profiler_sums_get(struct profiler_sums *ret)
{
    ret->steps = __atomic_load_n(&steps, __ATOMIC_RELAXED);
    for (int i = 0; i < PROFILER_WAIT_COUNT; i++) {
        ret->wait_ns[i] = __atomic_load_n(&waits[i], __ATOMIC_RELAXED);
    }
}

static int wait_of(int state)
{
    switch (state) {
    case NCCL_STEP_SEND_GPU_WAIT:
    case NCCL_STEP_RECEIVE_GPU_WAIT:
    case NCCL_STEP_RECEIVE_FLUSH_WAIT:
        return PROFILER_WAIT_GPU;
    case NCCL_STEP_SEND_PEER_WAIT:
        return PROFILER_WAIT_PEER;
    case NCCL_STEP_SEND_WAIT:
    case NCCL_STEP_RECEIVE_WAIT:
        return PROFILER_WAIT_NETWORK;
    default:
        return -1;
    }
}

/* Adds the time since the last change to the state before. */
static void enter(struct event *event, int state)
{
    const int64_t now = now_ns();
    const int wait = wait_of(event->state);

    if (wait >= 0 && now > event->since_ns) {
        __atomic_fetch_add(&waits[wait], (uint64_t)(now - event->since_ns), __ATOMIC_RELAXED);
    }
    event->state = state;
    event->since_ns = now;
}

static enum nccl_result start(uint64_t type, void **handle)
{
    *handle = type == NCCL_EVENT_PROXY_OPERATION ? &operation : NULL;
    if (type != NCCL_EVENT_PROXY_STEP) {
        return NCCL_SUCCESS;
    }
    for (int i = 0; i < TRIES; i++) {
        const uint32_t place = __atomic_fetch_add(&turn, 1, __ATOMIC_RELAXED) % EVENTS;
        uint32_t expected = 0;
        if (__atomic_compare_exchange_n(&events[place].used, &expected, 1, false, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            events[place].state = -1;
            events[place].since_ns = 0;
            __atomic_fetch_add(&steps, 1, __ATOMIC_RELAXED);
            *handle = &events[place];
            return NCCL_SUCCESS;
        }
    }
    return NCCL_SUCCESS;
}

static enum nccl_result start_v4(void *of, void **handle,
                                 struct nccl_event_descriptor_v4 *descriptor)
{
    (void)of;
    return start(descriptor->type, handle);
}

static enum nccl_result start_v5(void *of, void **handle,
                                 struct nccl_event_descriptor_v5 *descriptor)
{
    (void)of;
    return start(descriptor->type, handle);
}

static enum nccl_result start_v6(void *of, void **handle,
                                 struct nccl_event_descriptor_v6 *descriptor)
{
    (void)of;
    return start(descriptor->type, handle);
}

static enum nccl_result stop(void *handle)
{
    struct event *event = handle;

    if (handle != NULL && handle != &operation) {
        enter(event, -1);
        __atomic_store_n(&event->used, 0, __ATOMIC_RELEASE);
    }
    return NCCL_SUCCESS;
}

static enum nccl_result record(void *handle, int state, union nccl_event_state_arguments *arguments)
{
    (void)arguments;
    if (handle != NULL && handle != &operation) {
        enter(handle, state);
    }
    return NCCL_SUCCESS;
}

static enum nccl_result init_v4(void **ret_context, int *mask, const char *name, uint64_t hash,
                                int nodes, int ranks, int rank, nccl_logger logger)
{
    (void)name;
    (void)hash;
    (void)nodes;
    (void)ranks;
    (void)rank;
    (void)logger;
    *ret_context = &context;
    *mask = NCCL_EVENT_PROXY_OPERATION | NCCL_EVENT_PROXY_STEP;
    return NCCL_SUCCESS;
}

static enum nccl_result init_v5(void **ret_context, uint64_t id, int *mask, const char *name,
                                int nodes, int ranks, int rank, nccl_logger logger)
{
    return init_v4(ret_context, mask, name, id, nodes, ranks, rank, logger);
}

static enum nccl_result finalize(void *of)
{
    (void)of;
    return NCCL_SUCCESS;
}

EXPORT extern const struct nccl_profiler_v4 ncclProfiler_v4;
EXPORT extern const struct nccl_profiler_v5 ncclProfiler_v5;
EXPORT extern const struct nccl_profiler_v6 ncclProfiler_v6;

const struct nccl_profiler_v4 ncclProfiler_v4 = {.name = "Foliot",
                                                 .init = init_v4,
                                                 .start_event = start_v4,
                                                 .stop_event = stop,
                                                 .record_event_state = record,
                                                 .finalize = finalize};
const struct nccl_profiler_v5 ncclProfiler_v5 = {.name = "Foliot",
                                                 .init = init_v5,
                                                 .start_event = start_v5,
                                                 .stop_event = stop,
                                                 .record_event_state = record,
                                                 .finalize = finalize};
const struct nccl_profiler_v6 ncclProfiler_v6 = {.name = "Foliot",
                                                 .init = init_v5,
                                                 .start_event = start_v6,
                                                 .stop_event = stop,
                                                 .record_event_state = record,
                                                 .finalize = finalize};
