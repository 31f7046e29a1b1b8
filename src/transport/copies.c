/* copies.c: a sender's copies: their owner need not wait for the network. Small ones belong to a communicator's sends, larger
 * ones, to this machine only, to the set. They are there only while the set uses them. */
#include <stdlib.h>
#include <string.h>

#include "transport/internal.h"

#define SIZE_MIN 512
#define KEPT_NS  NS_PER_S

bool copies_room(struct outgoing *outgoing, size_t size)
{
    uint32_t wanted = SIZE_MIN;

    if (outgoing->copy_size >= size) {
        return true;
    }
    while (wanted < size) {
        wanted *= 2;
    }
    free(outgoing->copy);
    outgoing->copy = malloc(wanted);
    outgoing->copy_size = outgoing->copy != NULL ? wanted : 0;
    return outgoing->copy != NULL;
}

/* Who has nothing else on its way awaits an answer: it has the time. A larger copy takes more of the caches than that is worth,
 * unless nothing comes in meanwhile, either. */
static size_t size_max(const struct lane_set *set)
{
    if (set->copies_used > 0 || set->sends_awaited > 1) {
        return lane_set_copies(set);
    }
    return __atomic_load_n(&set->transport->awaited, __ATOMIC_RELAXED) == 1
               ? lane_set_copies_idle(set)
               : lane_set_copies_alone(set);
}

struct outgoing *copies_take(struct lane_set *set, struct mono now,
                             const struct sender_chunk *chunk)
{
    const uint32_t free_ones = ~set->copies_used & ((1u << COPIES_MAX) - 1);
    struct outgoing *outgoing = (struct outgoing *)(uintptr_t)chunk->cookie;

    if (chunk->length < chunk->size || outgoing->request == NULL || outgoing->gpu ||
        free_ones == 0) {
        return NULL;
    }
    if (chunk->size > size_max(set)) {
        return NULL;
    }
    const uint32_t i = (uint32_t)__builtin_ctz(free_ones);
    if (set->copy_sizes[i] < chunk->size) {
        free(set->copies[i]);
        set->copy_sizes[i] = chunk->size <= COPY_HERE_MAX    ? COPY_HERE_MAX
                             : chunk->size <= COPY_ALONE_MAX ? COPY_ALONE_MAX
                                                             : COPY_IDLE_MAX;
        set->copies[i] = malloc(set->copy_sizes[i]);
        set->copy_sizes[i] = set->copies[i] != NULL ? set->copy_sizes[i] : 0;
    }
    if (set->copies[i] == NULL) {
        return NULL;
    }
    set->copies_used |= 1u << i;
    set->copies_at = now;
    outgoing->large = (uint8_t)(i + 1);
    set->sends_awaited--;
    return outgoing;
}

void copies_fill(struct lane_set *set, uint32_t comm, uint64_t message, const uint8_t *data,
                 size_t size, struct outgoing *outgoing)
{
    uint8_t *copy = outgoing->large > 0 ? set->copies[outgoing->large - 1] : outgoing->copy;

    if (outgoing->request != NULL) {
        lane_set_request_done(set, outgoing->request);
        outgoing->request = NULL;
    }
    if (size == 0) {
        return;
    }
    memcpy(copy, data, size);
    (void)sender_source_moved(set->sender, comm, message, copy);
    for (uint32_t lanes = set->present; lanes != 0; lanes &= lanes - 1) {
        struct stream *stream = set->streams[__builtin_ctz(lanes)];
        if (stream->payload_left > 0 && stream->payload_comm == comm &&
            stream->payload_message == message) {
            stream->payload = copy + (stream->payload - data);
        }
    }
}

void copies_back(struct lane_set *set, struct outgoing *outgoing)
{
    set->sends_awaited -= outgoing->used && outgoing->request != NULL;
    outgoing->used = outgoing->gpu = false;
    outgoing->request = NULL;
    free(outgoing->fetched);
    outgoing->fetched = NULL;
    if (outgoing->large > 0) {
        set->copies_used &= ~(1u << (outgoing->large - 1));
        outgoing->large = 0;
    }
}

void copies_look(struct lane_set *set, struct mono now)
{
    if (set->copies_used == 0 && set->copies[0] != NULL &&
        mono_sub(now, set->copies_at).ns >= KEPT_NS) {
        copies_free(set);
    }
}

void copies_free(struct lane_set *set)
{
    for (uint32_t i = 0; i < COPIES_MAX; i++) {
        free(set->copies[i]);
        set->copies[i] = NULL;
        set->copy_sizes[i] = 0;
    }
}
