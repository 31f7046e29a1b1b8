/* test_job_page.c: the job page and the NICS frame: a reader gets what was written, and no bytes do harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "base/prng.h"
#include "wire/crc32c.h"
#include "wire/job_page.h"
#include "wire/lane_nics.h"

static void a_page_is_read_as_written(void **state)
{
    struct job_page_memory *memory = calloc(1, sizeof(*memory));
    struct job_page_header header = {.pid = 7, .lane_count = 1, .bytes_in = 99, .host = "h\x1b[1m"};
    struct job_page_lane lane = {
        .generation = 3, .owd_ns = 12345, .peer_host = "host4", .peer_nic = "e\x1b[2J\n0"};

    (void)state;
    job_page_init(memory, 12346);
    assert_false(job_page_read_header(memory, sizeof(*memory), &header)); /* nothing written yet */
    job_page_write_header(memory, &header);
    job_page_write_lane(memory, 5, &lane);
    memset(&header, 0, sizeof(header));
    memset(&lane, 0, sizeof(lane));
    assert_true(job_page_read_header(memory, sizeof(*memory), &header));
    assert_int_equal(header.pid, 7);
    assert_int_equal(header.bytes_in, 99);
    assert_string_equal(header.host, "h?[1m"); /* no terminal codes from a job's page */
    assert_true(job_page_read_lane(memory, sizeof(*memory), 5, &lane));
    assert_int_equal(lane.owd_ns, 12345);
    assert_string_equal(lane.peer_host, "host4");
    assert_string_equal(lane.peer_nic, "e?[2J?0");
    assert_false(job_page_read_lane(memory, sizeof(*memory), JOB_PAGE_LANES_MAX, &lane));
    assert_false(job_page_read_header(memory, sizeof(*memory) - 1, &header));
    free(memory);
}

static void any_bytes_are_safe(void **state)
{
    struct job_page_memory *memory = calloc(1, sizeof(*memory));
    struct job_page_header header = {.lane_count = 1};
    struct job_page_lane lane;
    struct prng prng;

    (void)state;
    prng_init(&prng, 1);
    job_page_init(memory, 2);
    job_page_write_header(memory, &header);
    for (int i = 0; i < 2000; i++) {
        ((uint8_t *)memory)[prng_below(&prng, 1024)] = (uint8_t)prng_u64(&prng);
        if (job_page_read_header(memory, sizeof(*memory), &header)) {
            assert_true(header.lane_count <= JOB_PAGE_LANES_MAX);
            assert_true(memchr(header.job, 0, sizeof(header.job)) != NULL);
        }
        if (job_page_read_lane(memory, sizeof(*memory), 2, &lane)) {
            assert_true(lane.state < LANE_STATE_COUNT);
            assert_true(memchr(lane.peer_host, 0, sizeof(lane.peer_host)) != NULL);
        }
        memory->sequence &= ~1ULL;
        memory->lanes[2].sequence &= ~1ULL;
    }
    free(memory);
}

static void nics_come_as_sent(void **state)
{
    struct lane_nics nics = {.port = 4791, .count = 2}, got;
    uint8_t bytes[LANE_NICS_SIZE];

    (void)state;
    nics.nics[0].address[15] = 1;
    strcpy(nics.nics[0].name, "eth0");
    nics.nics[1].address[15] = 2;
    strcpy(nics.nics[1].name, "eth1");
    lane_nics_encode(bytes, &nics);
    assert_int_equal(lane_nics_decode(bytes, sizeof(bytes), &got), LANE_ERROR_NONE);
    assert_memory_equal(&nics, &got, sizeof(nics));
    assert_int_equal(lane_nics_decode(bytes, sizeof(bytes) - 1, &got), LANE_ERROR_SHORT);
    for (size_t bit = 8; bit < sizeof(bytes) * 8; bit++) { /* one wrong bit is noticed */
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_not_equal(lane_nics_decode(bytes, sizeof(bytes), &got), LANE_ERROR_NONE);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    memset(nics.nics[1].name, 'x', sizeof(nics.nics[1].name)); /* without an end: it gets one */
    lane_nics_encode(bytes, &nics);
    assert_int_equal(lane_nics_decode(bytes, sizeof(bytes), &got), LANE_ERROR_NONE);
    assert_string_equal(got.nics[1].name, "xxxxxxxxxxxxxxx");
    bytes[16 + 2 * 32 - 1] = 'x'; /* the last of the second entry */
    le32_put(bytes + sizeof(bytes) - 4,
             crc32c(0, bytes, sizeof(bytes) - 4)); /* and is refused so */
    assert_int_equal(lane_nics_decode(bytes, sizeof(bytes), &got), LANE_ERROR_RANGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_page_is_read_as_written),
        cmocka_unit_test(any_bytes_are_safe),
        cmocka_unit_test(nics_come_as_sent),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
