/* job_page.c: a job's own word in shared memory, one sequence lock per entry. */
#include "wire/job_page.h"

#include <string.h>

#include "wire/lane.h"

static void write_locked(uint64_t *sequence, uint64_t *words, const void *from, size_t size)
{
    const uint64_t before = __atomic_load_n(sequence, __ATOMIC_RELAXED);

    __atomic_store_n(sequence, before | 1, __ATOMIC_RELAXED);
    for (size_t k = 0; k < size / 8; k++) {
        uint64_t word;
        memcpy(&word, (const char *)from + 8 * k, 8);
        __atomic_store_n(&words[k], word, __ATOMIC_RELEASE);
    }
    __atomic_store_n(sequence, (before | 1) + 1, __ATOMIC_RELEASE);
}

static bool read_locked(const uint64_t *sequence, const uint64_t *words, void *ret, size_t size)
{
    for (int i = 0; i < JOB_PAGE_TRIES; i++) {
        const uint64_t before = __atomic_load_n(sequence, __ATOMIC_ACQUIRE);
        if (before & 1) {
            continue;
        }
        for (size_t k = 0; k < size / 8; k++) {
            const uint64_t word = __atomic_load_n(&words[k], __ATOMIC_ACQUIRE);
            memcpy((char *)ret + 8 * k, &word, 8);
        }
        if (__atomic_load_n(sequence, __ATOMIC_RELAXED) == before) {
            return true;
        }
    }
    return false;
}

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
    write_locked(&memory->sequence, memory->header, &copy, sizeof(copy));
}

void job_page_write_lane(struct job_page_memory *memory, uint32_t index,
                         const struct job_page_lane *lane)
{
    if (index < JOB_PAGE_LANES_MAX) {
        write_locked(&memory->lanes[index].sequence, memory->lanes[index].words, lane,
                     sizeof(*lane));
    }
}

/* A reader prints them. */
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
        !read_locked(&memory->sequence, memory->header, &header, sizeof(header)) ||
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
        !read_locked(&memory->lanes[index].sequence, memory->lanes[index].words, &lane,
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
