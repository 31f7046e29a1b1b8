/* map.h: the agent's clock page in this process: found, mapped, and found again when the agent was
 * restarted.
 *
 * A restarted agent makes a new file, which is mapped beside the old one. Readers may still be in
 * the middle of the old one, and nobody counts them; so a mapping is never taken away. After
 * PAGE_MAP_SLOTS restarts the oldest is mapped over in place: a reader that slept in it for so long
 * sees another sequence and tries again (wire/clock_page.h).
 * Opening is guarded by a try-lock that holds the process id, so that a fork() in the middle of
 * another thread's opening doesn't leave the child locked out. */
#pragma once
#include <stdint.h>

#include "platform/oscillator/oscillator.h"
#include "wire/clock_page.h"

#define PAGE_MAP_SLOTS 16

struct page_map {
    const struct clock_page_memory *memory; /* NULL: not opened yet; atomic */
    int64_t tried_ns;                       /* kernel's raw time of the last attempt; atomic */
    int32_t owner;                          /* pid that is opening; 0: nobody; atomic */
    /* Under the lock, or constant once memory is set: */
    void *slots[PAGE_MAP_SLOTS];
    uint32_t opened; /* slots used so far, modulo PAGE_MAP_SLOTS the next */
    uint64_t device, inode;
    int64_t mono_offset_ns, boot_offset_ns; /* of a time namespace */
    struct oscillator oscillator;           /* host NULL: no lab */
};

extern struct page_map page_map;

/* Opens, or opens anew if the file is another one by now. 0, or why not (foliot_clock_open). -EBUSY:
 * somebody else is at it. */
int page_map_refresh(struct page_map *map);
/* The same, at most ten times a second. */
void page_map_retry(struct page_map *map, int64_t raw_ns);
