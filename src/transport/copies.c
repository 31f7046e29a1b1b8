/* copies.c: a sender's copies, so that the message's owner needn't wait for the network. Copies of small messages belong to a
 * communicator's sends. Copies of larger ones, only to this machine, are in memory that all sets share, as long as any set uses
 * it. */
#include <stdlib.h>
#include <string.h>

#include "transport/internal.h"
#include "transport/room.h"

#define SIZE_MIN 512
#define FEW      4 /* places that a set gets while there is any; the limits for more */
/* so many must be left for other sets: peers that stand still must not block others */
#define LEFT 8

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

/* A sender with nothing else under way awaits an answer: it has the time. A larger copy would displace too much in the caches,
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

/* Under copies_lock. False: there is no room. */
static bool have_room(struct transport *t, bool here)
{
    if (t->copies == NULL) {
        t->copies = room_new(COPY_PLACES * COPY_HERE_MAX);
    }
    if (t->copies != NULL && here && !t->copies_whole) {
        room_whole(t->copies, COPY_PLACES * COPY_HERE_MAX);
        t->copies_whole = true;
    }
    return t->copies != NULL;
}

/* Adjacent free places for one copy: the lowest ones, which may still be in the caches. 0: there are none. */
static uint32_t find_places(uint32_t used, size_t size)
{
    const uint32_t count = (uint32_t)((size + COPY_HERE_MAX - 1) / COPY_HERE_MAX);
    const uint32_t wanted = (1u << count) - 1;

    for (uint32_t i = 0; i + count <= COPY_PLACES; i++) {
        if ((used >> i & wanted) == 0) {
            return wanted << i;
        }
    }
    return 0;
}

static uint32_t take_places(struct lane_set *set, struct mono now, size_t size)
{
    struct transport *t = set->transport;
    uint32_t places = 0;

    pthread_mutex_lock(&t->copies_lock);
    if (have_room(t, set->scheduler.one_way)) {
        places = find_places(t->copies_used, size);
        if (__builtin_popcount(set->copies_used | places) > FEW &&
            __builtin_popcount(t->copies_used | places) > COPY_PLACES - LEFT) {
            places = 0;
        }
        t->copies_used |= places;
        t->copies_at = now;
    }
    pthread_mutex_unlock(&t->copies_lock);
    return places;
}

static void give_back(struct lane_set *set, uint32_t places)
{
    struct transport *t = set->transport;

    if (places != 0) {
        pthread_mutex_lock(&t->copies_lock);
        t->copies_used &= ~places;
        pthread_mutex_unlock(&t->copies_lock);
        set->copies_used &= ~places;
    }
}

struct outgoing *copies_take(struct lane_set *set, struct mono now,
                             const struct sender_chunk *chunk)
{
    struct outgoing *outgoing = (struct outgoing *)(uintptr_t)chunk->cookie;

    if (chunk->length < chunk->size || outgoing->request == NULL || outgoing->gpu ||
        chunk->size > size_max(set) || __builtin_popcount(set->copies_used) >= COPIES_MAX) {
        return NULL;
    }
    outgoing->places = take_places(set, now, chunk->size);
    if (outgoing->places == 0) {
        return NULL;
    }
    set->copies_used |= outgoing->places;
    set->sends_awaited--;
    return outgoing;
}

void copies_fill(struct lane_set *set, uint32_t comm, uint64_t message, const uint8_t *data,
                 size_t size, struct outgoing *outgoing)
{
    uint8_t *copy =
        outgoing->places != 0
            ? set->transport->copies + (size_t)__builtin_ctz(outgoing->places) * COPY_HERE_MAX
            : outgoing->copy;

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
    give_back(set, outgoing->places);
    outgoing->places = 0;
}

void copies_look(struct transport *t, struct mono now)
{
    pthread_mutex_lock(&t->copies_lock);
    if (t->copies_used == 0 && mono_sub(now, t->copies_at).ns >= ROOM_KEPT_NS) {
        copies_free(t);
    }
    pthread_mutex_unlock(&t->copies_lock);
}

void copies_end(struct lane_set *set)
{
    give_back(set, set->copies_used);
}

void copies_free(struct transport *t)
{
    room_free(t->copies, COPY_PLACES * COPY_HERE_MAX);
    t->copies = NULL;
    t->copies_whole = false;
}
