/* page.h: what the clock publishes (struct clock_terms) as the page that readers map (wire/clock_page.h).
 *
 * The whole difficulty is that time must not run backwards for a reader who uses the old page just
 * before and the new one just after. So the new line doesn't begin where the clock computed it, but
 * PAGE_LEAD_NS after the moment of publication, at the very value that the old page shows for that
 * instant, and from there meets the clock's own line at PAGE_MEET_NS or when that has finished
 * slewing, whichever is later. How far the two lie apart meanwhile (nanoseconds, for a clock in
 * step) is added to both bounds. Only a clock that has begun a line of its own anew (its `epoch` counts that), a
 * line so far off that slewing would take seconds, another timeline or a first page start afresh: then
 * `since` is that moment, and nothing is known of times before it.
 *
 * The page's epoch is the fleet's, 0, unless a fresh line begins behind what readers have seen of this timeline. Then
 * it is the second of fleet time that is past all they have seen, and when the line has got there the epoch is
 * 0 again. So within an epoch time goes forward only; a host that stepped can be compared with the others
 * again as soon as that is possible; and an agent that takes over a page needs to know no more than its epoch.
 *
 * Pure; the caller takes `now` (the host's raw clock) right before, writes the page right after, and
 * fills in what isn't the clock's: boot_id, marker, agent, nics, and the kernel clocks of the pass. */
#pragma once
#include <stdbool.h>

#include "base/time.h"
#include "core/clock/clock.h"
#include "wire/clock_page.h"

#define PAGE_LEAD_NS (200 * NS_PER_US)
#define PAGE_MEET_NS (150 * NS_PER_MS)

struct page_maker {
    struct clock_page page; /* the last one made; the caller may set its other fields at any time */
    struct clock_line line; /* what it was made of */
    uint32_t restarts;      /* and the clock's epoch at it */
    int64_t latest;         /* fleet time that readers may have seen on this timeline */
    struct clock_page_terms shown; /* by an earlier agent; status UNKNOWN: nothing */
};

/* A page of status UNKNOWN. */
void page_maker_init(struct page_maker *maker);
/* An earlier agent of this boot left this page: readers may have used it until now. The first known
 * line of the same timeline and epoch begins at what it shows, if they can meet by slewing. */
void page_maker_resume(struct page_maker *maker, const struct clock_page_terms *shown);
/* Again with the same terms (a guard pass): the lines stay, bounds and guard follow. */
void page_maker_update(struct page_maker *maker, const struct clock_terms *terms, struct mono now);
/* CLOCK_REALTIME was just seen to have been set: readers can't convert its stamps from before `now`. */
void page_maker_realtime_set(struct page_maker *maker, struct mono now);
/* A line of the clock as integers: before and after `until`. */
void page_line_maps(const struct clock_line *line, struct linear_map *ret_slewing,
                    struct linear_map *ret_after);
