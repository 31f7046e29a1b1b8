/* The agent's spool: in order, bounded, over restarts and damage. No number is used twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service/agent/spool.h"

static char path[64];

static int make(void **state)
{
    snprintf(path, sizeof(path), "/tmp/foliot-spool-XXXXXX");
    const int fd = mkstemp(path);
    return fd < 0 ? -1 : close(fd);
}

static int gone(void **state)
{
    return unlink(path);
}

static struct spool *open_spool(uint64_t boot)
{
    struct spool *s = NULL;
    assert_int_equal(spool_open(path, boot, &s), 0);
    return s;
}

static void append(struct spool *s, unsigned n)
{
    char text[32];
    const int size = snprintf(text, sizeof(text), "report %u", n);
    assert_int_equal(spool_append(s, text, (size_t)size), 0);
}

static void expect(const struct spool *s, size_t i, uint64_t number, unsigned n)
{
    char text[32];
    struct spool_report r;
    const int size = snprintf(text, sizeof(text), "report %u", n);
    assert_true(spool_get(s, i, &r));
    assert_int_equal(r.number, number);
    assert_int_equal(r.size, size);
    assert_memory_equal(r.bytes, text, (size_t)size);
}

static void goes_on_after_a_restart(void **state)
{
    struct spool *s = open_spool(1);
    const uint64_t stream = spool_stream(s);
    assert_int_equal(spool_oldest(s), 1);
    for (unsigned n = 1; n <= 5; n++) {
        append(s, n);
    }
    spool_acknowledge(s, 2);
    spool_close(s); /* as after kill -9: nothing is written here */
    s = open_spool(1);
    assert_int_equal(spool_stream(s), stream);
    assert_int_equal(spool_count(s), 3);
    expect(s, 0, 3, 3);
    append(s, 6);
    expect(s, 3, 6, 6);
    spool_close(s);
    s = open_spool(1); /* twice */
    assert_int_equal(spool_count(s), 4);
    expect(s, 3, 6, 6);
    spool_acknowledge(s, 6);
    assert_int_equal(spool_count(s), 0);
    spool_close(s);
    s = open_spool(1);
    append(s, 7);
    expect(s, 0, 7, 7); /* although the file was empty */
    spool_close(s);
}

static void leaps_after_another_boot(void **state)
{
    struct spool *s = open_spool(1);
    append(s, 1);
    append(s, 2);
    spool_close(s);
    s = open_spool(2);
    expect(s, 0, 1, 1);
    append(s, 3);
    expect(s, 2, 3 + SPOOL_LEAP, 3); /* a 3 may have been delivered before the crash */
    spool_close(s);
}

static void a_torn_tail_costs_no_more(void **state)
{
    struct stat st;
    struct spool *s = open_spool(1);
    for (unsigned n = 1; n <= 4; n++) {
        append(s, n);
    }
    spool_close(s);
    assert_int_equal(stat(path, &st), 0);
    for (off_t size = st.st_size - 1; size > st.st_size - 20; size--) {
        assert_int_equal(truncate(path, size), 0);
        s = open_spool(1);
        assert_true(spool_count(s) == 3);
        append(s, 9);
        struct spool_report r;
        assert_true(spool_get(s, 3, &r) && r.number > 4);
        spool_close(s);
        s = open_spool(1); /* put the original back */
        spool_acknowledge(s, UINT64_MAX);
        spool_close(s);
        assert_int_equal(unlink(path), 0);
        s = open_spool(1);
        for (unsigned n = 1; n <= 4; n++) {
            append(s, n);
        }
        spool_close(s);
    }
    const int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, "nonsense", 8, 0), 8); /* not our head: it begins anew */
    close(fd);
    s = open_spool(1);
    assert_int_equal(spool_count(s), 0);
    spool_close(s);
}

static void is_bounded(void **state)
{
    static uint8_t body[64 << 10];
    struct spool *s = open_spool(1);
    for (unsigned n = 0; n < 400; n++) {
        assert_int_equal(spool_append(s, body, sizeof(body)), 0);
    }
    struct stat st;
    assert_true(spool_bytes(s) <= SPOOL_BYTES_MAX);
    assert_int_equal(spool_lost(s) + spool_count(s), 400);
    assert_int_equal(spool_oldest(s), spool_lost(s) + 1);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size <= (off_t)4 * SPOOL_BYTES_MAX);
    assert_int_equal(spool_append(s, body, SPOOL_BYTES_MAX), -EMSGSIZE);
    spool_acknowledge(s, UINT64_MAX);
    for (unsigned n = 0; n < SPOOL_COUNT_MAX + 10; n++) {
        append(s, n);
    }
    assert_int_equal(spool_count(s), SPOOL_COUNT_MAX);
    spool_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(goes_on_after_a_restart, make, gone),
        cmocka_unit_test_setup_teardown(leaps_after_another_boot, make, gone),
        cmocka_unit_test_setup_teardown(a_torn_tail_costs_no_more, make, gone),
        cmocka_unit_test_setup_teardown(is_bounded, make, gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
