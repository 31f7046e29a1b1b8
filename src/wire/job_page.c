/* job_page.c: a job's page in shared memory, one sequence lock per entry. */
#include "wire/job_page.h"

#include <string.h>

#include "wire/lane.h"
#include "wire/sequence_lock.h"

void job_page_init(struct job_page_memory *memory, uint64_t nonce)
{
    memset(memory, 0, sizeof(*memory));
    memory->sequence = nonce & ~1ULL;
    for (uint32_t i = 0; i < JOB_PAGE_LANES_MAX; i++) {
        memory->lanes[i].sequence = nonce & ~1ULL;
    }
}

void job_page_write_header(struct job_page_memory *memory, const struct job_page_header *header)
{
    struct job_page_header copy = *header;

    copy.magic = JOB_PAGE_MAGIC;
    copy.version = JOB_PAGE_VERSION;
    copy.lane_capacity = JOB_PAGE_LANES_MAX;
    sequence_lock_write(&memory->sequence, memory->header, &copy, sizeof(copy));
}

void job_page_write_lane(struct job_page_memory *memory, uint32_t index,
                         const struct job_page_lane *lane)
{
    if (index < JOB_PAGE_LANES_MAX) {
        sequence_lock_write(&memory->lanes[index].sequence, memory->lanes[index].words, lane,
                            sizeof(*lane));
    }
}

/* Readers print the texts. */
static void printable(char *text, size_t size)
{
    text[size - 1] = 0;
    for (char *c = text; *c != 0; c++) {
        if (*c < ' ' || *c > '~') {
            *c = '?';
        }
    }
}

bool job_page_read_header(const struct job_page_memory *memory, size_t size,
                          struct job_page_header *ret)
{
    struct job_page_header header;

    if (size < sizeof(*memory) ||
        !sequence_lock_read(&memory->sequence, memory->header, &header, sizeof(header)) ||
        header.magic != JOB_PAGE_MAGIC || header.version != JOB_PAGE_VERSION ||
        header.lane_capacity != JOB_PAGE_LANES_MAX || header.lane_count > JOB_PAGE_LANES_MAX) {
        return false;
    }
    printable(header.host, sizeof(header.host));
    printable(header.job, sizeof(header.job));
    *ret = header;
    return true;
}

bool job_page_read_lane(const struct job_page_memory *memory, size_t size, uint32_t index,
                        struct job_page_lane *ret)
{
    struct job_page_lane lane;

    if (index >= JOB_PAGE_LANES_MAX || size < sizeof(*memory) ||
        !sequence_lock_read(&memory->lanes[index].sequence, memory->lanes[index].words, &lane,
                            sizeof(lane)) ||
        lane.state >= LANE_STATE_COUNT || lane.reason >= LANE_REASON_COUNT) {
        return false;
    }
    printable(lane.own_nic, sizeof(lane.own_nic));
    printable(lane.peer_nic, sizeof(lane.peer_nic));
    printable(lane.peer_host, sizeof(lane.peer_host));
    *ret = lane;
    return true;
}
