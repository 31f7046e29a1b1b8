/* clock_page.c: a clock page of any bytes. No reading may overflow, loop, or give a bound that is none. */
#include "wire/clock_page.h"

#include <string.h>

#include "fuzz.h"

static void check(const struct clock_page_reading *r)
{
    ASSERT(r->status <= CLOCK_PAGE_DISRUPTED);
    ASSERT(r->status == CLOCK_PAGE_UNKNOWN ||
           (r->hard_ns >= 0 && r->hard_ns <= CLOCK_PAGE_HARD_NS_MAX && r->statistical_ns >= 0 &&
            r->statistical_ns <= r->hard_ns));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct clock_page_memory memory;
    static const int64_t times[] = {INT64_MIN, -TIME_NS_MAX, -1, 0, 1, TIME_NS_MAX, INT64_MAX};
    struct clock_page page;
    struct clock_page_terms terms;
    struct clock_page_reading reading, direct;
    struct clock_page_head head;

    memset(&memory, 0, sizeof(memory));
    memcpy(&memory, data, size < sizeof(memory) ? size : sizeof(memory));
    if (memory.sequence & 1) {
        memory.sequence++; /* the unit test has torn pages: here they would only be slow */
    }
    const bool whole = clock_page_read(&memory, &page);
    const bool some = clock_page_read_terms(&memory, &terms);
    ASSERT(!whole || some);
    for (size_t i = 0; i < ARRAY_COUNT(times) + 3; i++) {
        const int64_t c = i < ARRAY_COUNT(times) ? times[i]
                          : !some                ? 0
                          : i % 3 == 0           ? terms.written
                          : i % 3 == 1           ? terms.since
                                                 : terms.map_from;
        if (some) {
            reading = clock_page_at(&terms, c, c);
            check(&reading);
            ASSERT(clock_page_read_at(&memory, c, c, &head, &direct));
            check(&direct);
            ASSERT(direct.status == CLOCK_PAGE_UNKNOWN || reading.status == CLOCK_PAGE_UNKNOWN ||
                   direct.estimate_ns == reading.estimate_ns);
        } else if (clock_page_read_at(&memory, c, c, &head, &direct)) {
            check(&direct);
        }
        for (uint32_t k = 0; whole && k <= page.nic_count; k++) {
            reading = clock_page_nic_at(&page, k % HOST_NIC_MAX, c, c);
            check(&reading);
        }
    }
    return 0;
}
