/* page.h: turns the clock's output (struct clock_terms) into the page that readers map (wire/clock_page.h).
 *
 * The difficulty is that time must not run backwards for a reader who uses the old page just before and the new one just after.
 * So the new line doesn't begin where the clock computed it. It begins PAGE_LEAD_NS after the publication, at the very value
 * that the old page gives for that instant. From there it goes to the clock's own line at PAGE_MEET_RATE, or at the rate that
 * leads there within PAGE_MEET_NS. It doesn't arrive before the clock has finished slewing. Their distance meanwhile
 * (nanoseconds, for a clock in step) is added to both bounds. A fresh start happens only in four cases: the clock began a line
 * anew (its `epoch` counts that), slewing to the line would take seconds, the timeline is another one, or it is the first page.
 * Then `since` is that moment, and nothing is known of earlier times.
 *
 * The page's epoch is the fleet's, 0, unless a fresh line begins behind what readers have seen of this timeline. Then it is the
 * second of fleet time that is past all they have seen, and when the line has reached it the epoch is 0 again. So within an epoch
 * time only goes forward. A host that stepped can be compared with others again as soon as possible. An agent that takes over a
 * page only needs its epoch.
 *
 * Pure. The caller takes `now` (the host's raw clock) right before, writes the page right after, and fills in the other fields:
 * boot_id, marker, agent, nics, and the kernel clocks of the pass. */
#pragma once
#include <stdbool.h>

#include "base/time.h"
#include "core/clock/clock.h"
#include "wire/clock_page.h"

#define PAGE_LEAD_NS   (200 * NS_PER_US)
#define PAGE_MEET_NS   CLOCK_TICK_NS
#define PAGE_MEET_RATE 2e-6 /* as a clock's own rate may change */

struct page_maker {
    struct clock_page page; /* the last page; the caller may set its other fields at any time */
    struct clock_line line; /* its source */
    uint32_t restarts;      /* and the clock's epoch at that time */
    int64_t latest;         /* the latest fleet time that readers may have seen on this timeline */
    struct clock_page_terms shown; /* the page of an earlier agent; status UNKNOWN: none */
};

/* A page of status UNKNOWN. */
void page_maker_init(struct page_maker *maker);
/* An earlier agent of this boot left this page: readers may have used it until now. The first known line of the same timeline and
 * epoch begins at its value, if they can meet by slewing. */
void page_maker_resume(struct page_maker *maker, const struct clock_page_terms *shown);
/* Again with the same terms (after a guard pass): the lines stay, bounds and guard are updated. */
void page_maker_update(struct page_maker *maker, const struct clock_terms *terms, struct mono now);
/* CLOCK_REALTIME was just set: readers can't convert its stamps from before `now`. */
void page_maker_realtime_set(struct page_maker *maker, struct mono now);
/* The clock's line in integers: before and after `until`. */
void page_line_maps(const struct clock_line *line, struct linear_map *ret_slewing,
                    struct linear_map *ret_after);
