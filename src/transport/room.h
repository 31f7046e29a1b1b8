/* room.h: memory that messages are copied to.
 *
 * Its first use costs one page fault for each 4 KiB. A virtual machine takes up to 15 us for one, ten times as long as to copy
 * 4 KiB. So what is used as a whole, between processes of one machine, lies in huge pages if the kernel has any. It is no heap's:
 * what goes is the kernel's again at once, and its setting with it. A huge page costs up to 700 us when it is touched first, and
 * a job rests between two steps for seconds: so it is kept for longer than those. */
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

/* At least so much, from the beginning of a huge page on; room_free() ends it. NULL: there is none. */
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
    (void)munmap(all + before + rounded, ROOM_HUGE_SIZE - before); /* `before` is less than that */
    return all + before;
}

/* It is used as a whole. */
static inline void room_whole(uint8_t *room, size_t size)
{
    (void)madvise(room, room_rounded(size), MADV_HUGEPAGE); /* a help, no need */
}

static inline void room_free(uint8_t *room, size_t size)
{
    if (room != NULL) {
        (void)munmap(room, room_rounded(size));
    }
}
