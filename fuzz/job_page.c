/* job_page.c: a job's page of any bytes. Another user writes it, and the agent reads it. */
#include "wire/job_page.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "wire/lane.h"

/* The bytes are the page's beginning. The rest is zero, as in a file whose room was claimed. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct job_page_memory memory;
    struct job_page_header header;
    struct job_page_lane lane;

    size = size < sizeof(memory) ? size : sizeof(memory);
    memset(&memory, 0, sizeof(memory));
    memcpy(&memory, data, size);
    memory.sequence &= ~1ULL; /* torn entries are only slow */
    ASSERT(!job_page_read_header(&memory, sizeof(memory) - 1, &header));
    if (job_page_read_header(&memory, sizeof(memory), &header)) {
        ASSERT(header.lane_count <= JOB_PAGE_LANES_MAX);
        ASSERT(memchr(header.host, 0, sizeof(header.host)) != NULL);
        ASSERT(memchr(header.job, 0, sizeof(header.job)) != NULL);
    }
    for (uint32_t i = 0; i < size / sizeof(memory.lanes[0]) + 2; i++) {
        memory.lanes[i % JOB_PAGE_LANES_MAX].sequence &= ~1ULL;
        if (job_page_read_lane(&memory, sizeof(memory), i, &lane)) {
            ASSERT(i < JOB_PAGE_LANES_MAX && lane.state < LANE_STATE_COUNT &&
                   lane.reason < LANE_REASON_COUNT);
            ASSERT(memchr(lane.own_nic, 0, sizeof(lane.own_nic)) != NULL);
            ASSERT(memchr(lane.peer_nic, 0, sizeof(lane.peer_nic)) != NULL);
            ASSERT(memchr(lane.peer_host, 0, sizeof(lane.peer_host)) != NULL);
        }
    }
    return 0;
}
