/* slots.c: bounce slots of receiving sets: messages that come before their receive is posted wait there.
 *
 * A sender may use as many slots as the set was promised when it began (NICS has the number), and no promise is taken back. All
 * promises of a process stay within PROCESS_SLOT_BYTES_MAX. Below half of that a set gets all slots; up to three quarters, eight
 * small ones; then two; then none: messages then wait until they are posted. The memory exists only while a set uses it. Peers of
 * version 3 and less rely on all slots: all are promised to them, whatever the sum is.
 *
 * Below a quarter, the large slots for a peer on this machine hold a whole chunk. Its sender then writes messages of up to 256
 * KiB at once. Mostly no slot is touched: the bytes stay in the socket until the receive is posted (slots_wait). */
#include <errno.h>
#include <stdlib.h>

#include "transport/internal.h"
#include "transport/room.h"

/* Time without use: the next message costs an allocation. In huge pages: ROOM_KEPT_NS. */
#define KEPT_NS       NS_PER_S
#define SMALL_SOME    8
#define SMALL_LEAST   2
#define COPY_KNOWN_NS (5 * NS_PER_S)

static size_t bytes_of(uint32_t small, uint32_t large, uint32_t large_size)
{
    return small * LANE_EAGER_SIZE_MAX + large * large_size;
}

static size_t bytes_of_set(const struct lane_set *set)
{
    return bytes_of(set->small_slots, set->large_slots, slots_large_size(set));
}

void slots_share(size_t promised, uint8_t *ret_small, uint8_t *ret_large)
{
    const size_t max = PROCESS_SLOT_BYTES_MAX;

    *ret_small = *ret_large = 0;
    if (promised + bytes_of(LANE_SMALL_SLOTS, LANE_LARGE_SLOTS, LANE_LARGE_SIZE_MAX) <= max / 2) {
        *ret_small = LANE_SMALL_SLOTS;
        *ret_large = LANE_LARGE_SLOTS;
    } else if (promised + bytes_of(SMALL_SOME, 0, 0) <= max / 4 * 3) {
        *ret_small = SMALL_SOME;
    } else if (promised + bytes_of(SMALL_LEAST, 0, 0) <= max) {
        *ret_small = SMALL_LEAST;
    }
}

void slots_promise(struct lane_set *set, bool here)
{
    const bool whole = here || set->transport->config.large_early;
    size_t *all = &set->transport->slot_bytes, before = __atomic_load_n(all, __ATOMIC_RELAXED);

    do { /* promises by several threads are made one after the other */
        set->small_slots = LANE_SMALL_SLOTS;
        set->large_slots = LANE_LARGE_SLOTS;
        if (set->version >= 4) {
            slots_share(before, &set->small_slots, &set->large_slots);
        }
        set->large_shift = LANE_CHUNK_SHIFT_MAX;
        if (!whole || set->fenced || set->version < LANE_SLOTS_VERSION || set->large_slots == 0 ||
            before + bytes_of_set(set) > PROCESS_SLOT_BYTES_MAX / 4) {
            set->large_shift = 0;
        }
    } while (!__atomic_compare_exchange_n(all, &before, before + bytes_of_set(set), false,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    ledger_slots_hold(set->ledger, slots_large_size(set));
}

/* Slots that hold a whole chunk are used by a peer on this machine. That was decided when they were promised. */
static void make(struct lane_set *set)
{
    const size_t size = bytes_of_set(set);

    if (set->large_shift == 0) {
        set->slots = malloc(size);
        return;
    }
    set->slots = room_new(size);
    if (set->slots != NULL) {
        room_whole(set->slots, size);
    }
}

static void unmake(struct lane_set *set)
{
    if (set->large_shift == 0) {
        free(set->slots);
    } else {
        room_free(set->slots, bytes_of_set(set));
    }
    set->slots = NULL;
}

void slots_free(struct lane_set *set)
{
    __atomic_fetch_sub(&set->transport->slot_bytes, bytes_of_set(set), __ATOMIC_RELAXED);
    unmake(set);
}

int slots_ready(struct lane_set *set, uint32_t slot, bool needed)
{
    if (slot < LANE_SMALL_SLOTS ? slot >= set->small_slots
                                : slot - LANE_SMALL_SLOTS >= set->large_slots) {
        return -EPROTO;
    }
    if (set->slots == NULL && needed) {
        make(set);
    }
    return set->slots != NULL || !needed ? 0 : -ENOMEM;
}

uint8_t *slots_at(const struct lane_set *set, uint32_t slot)
{
    return set->slots +
           (slot < LANE_SMALL_SLOTS
                ? bytes_of(slot, 0, 0)
                : bytes_of(set->small_slots, slot - LANE_SMALL_SLOTS, slots_large_size(set)));
}

void slots_copied(struct lane_set *set, struct mono began, uint32_t size)
{
    struct io *io = set->transport->io;
    const struct mono now = io->now(io);

    least_add(&set->slot_copy_ns, now, span_ns(COPY_KNOWN_NS),
              mono_sub(now, began).ns * (int64_t)slots_large_size(set) / size);
}

bool slots_wait(const struct lane_set *set, struct stream *stream, struct mono now)
{
    const int64_t copy_ns = least_get(&set->slot_copy_ns);

    if (stream->place != LEDGER_SLOT || stream->chunk.length <= LANE_LARGE_SIZE_MAX ||
        copy_ns == LEAST_NONE || mono_sub(now, stream->chunk_at).ns >= LOOK_NS) {
        return false;
    }
    /* A thread that does something else meanwhile looks less often, and isn't waiting. */
    stream->looks++;
    return stream->looks * EMPTY_NS * (int64_t)slots_large_size(set) <
           copy_ns * (int64_t)stream->chunk.length;
}

void slots_look(struct lane_set *set, struct mono now)
{
    if (set->slots == NULL || ledger_slots_used(set->ledger) || set->slots_touched) {
        set->slots_at = now;
        set->slots_touched = false;
    } else if (mono_sub(now, set->slots_at).ns >=
               (set->large_shift == 0 ? KEPT_NS : ROOM_KEPT_NS)) {
        unmake(set);
    }
}
