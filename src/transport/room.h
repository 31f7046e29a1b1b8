/* room.h: memory for copies of messages.
 *
 * Its first use costs one page fault for each 4 KiB. In a virtual machine that takes up to 15 us, ten times as long as copying 4
 * KiB. So memory that is used as a whole, between processes of one machine, is in huge pages if the kernel has any. It belongs to
 * no heap: what is freed is the kernel's again at once, with its settings. A huge page costs up to 700 us at the first touch, and
 * a job may rest for seconds between two steps: so it is kept for longer than that. */
#pragma once
#include <stdint.h>
#include <sys/mman.h>

#include "base/time.h"

#define ROOM_KEPT_NS   (60 * NS_PER_S) /* without use */
#define ROOM_HUGE_SIZE ((size_t)2 << 20)

static inline size_t room_rounded(size_t size)
{
    return (size + ROOM_HUGE_SIZE - 1) / ROOM_HUGE_SIZE * ROOM_HUGE_SIZE;
}

/* At least so many bytes, from the beginning of a huge page on; room_free() frees them. NULL: there are none. */
static inline uint8_t *room_new(size_t size)
{
    const size_t rounded = room_rounded(size);
    uint8_t *all = mmap(NULL, rounded + ROOM_HUGE_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (all == MAP_FAILED) {
        return NULL;
    }
    const size_t before = -(uintptr_t)all % ROOM_HUGE_SIZE;
    if (before > 0) {
        (void)munmap(all, before);
    }
    /* `before` is smaller than that */
    (void)munmap(all + before + rounded, ROOM_HUGE_SIZE - before);
    return all + before;
}

/* Call it if the memory is used as a whole. */
static inline void room_whole(uint8_t *room, size_t size)
{
    (void)madvise(room, room_rounded(size), MADV_HUGEPAGE); /* it helps, but isn't necessary */
}

static inline void room_free(uint8_t *room, size_t size)
{
    if (room != NULL) {
        (void)munmap(room, room_rounded(size));
    }
}
