/* test_farewell.c: the paragraph at a job's end states what happened, and nothing that isn't known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/farewell.h"

static char text[FAREWELL_SIZE];

static void a_quiet_job(void **state)
{
    const struct transport_summary sum = {
        .bytes_out = 1500000000, .bytes_in = 2500000000, .ran_ns = 90000000000};
    const struct profiler_sums waits = {0};

    (void)state;
    farewell_write(&sum, &waits, text);
    assert_string_equal(text, "after 90 s: 1.500 GB sent, 2.500 GB received; no lane failed");
}

static void what_nics_wrote(void **state)
{
    const struct transport_summary sum = {.bytes_out = 2000000000,
                                          .bytes_in = 2500000000,
                                          .written = 1500000000,
                                          .ran_ns = 90000000000};
    const struct profiler_sums waits = {0};

    (void)state;
    farewell_write(&sum, &waits, text);
    assert_string_equal(text,
                        "after 90 s: 2.000 GB sent (75 % of it written by NICs directly to its "
                        "place), 2.500 GB received; no lane failed");
}

static void a_job_that_was_hit(void **state)
{
    struct transport_summary sum = {.failovers = 3,
                                    .parted = 1,
                                    .parted_ns = 1250000000,
                                    .ran_ns = 7200 * (int64_t)1000000000,
                                    .saved_ns = 3600 * (int64_t)1000000000,
                                    .slowest_ns = 94000};
    const struct profiler_sums waits = {.steps = 9, .wait_ns = {50, 30, 20}};

    (void)state;
    strcpy(sum.slowest, "lane 2 from host4 NIC eth1 (pid 9) to host0 NIC eth0");
    farewell_write(&sum, &waits, text);
    assert_non_null(strstr(text, "after 2.0 h"));
    assert_non_null(strstr(text, "survived: 3 failures of a lane"));
    assert_non_null(strstr(text, "saved since then: 60 min"));
    assert_non_null(strstr(text, "lost: 1.25 s in 1 time without any way to a peer"));
    assert_non_null(strstr(text, "waited for the GPU 50 %, peers 30 %, the network 20 %"));
    assert_non_null(
        strstr(text, "slowest: lane 2 from host4 NIC eth1 (pid 9) to host0 NIC eth0, 94 us above"));
}

static void it_is_cut_and_not_written_beyond(void **state)
{
    struct transport_summary sum = {
        .slowest_ns = 1, .failovers = UINT32_MAX, .saved_ns = INT64_MAX};
    const struct profiler_sums waits = {0};

    (void)state;
    memset(sum.slowest, 'x', sizeof(sum.slowest) - 1);
    farewell_write(&sum, &waits, text);
    assert_true(strlen(text) < FAREWELL_SIZE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quiet_job),
        cmocka_unit_test(what_nics_wrote),
        cmocka_unit_test(a_job_that_was_hit),
        cmocka_unit_test(it_is_cut_and_not_written_beyond),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
