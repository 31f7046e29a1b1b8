/* test_diff.c: the differences of two sheets of a host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/audit/diff.h"
#include "service/audit/sheet.h"

static void add(struct sheet *s, enum fact_state state, const char *subject, const char *value)
{
    sheet_add(s, &(struct fact){FACT_DISK, (uint8_t)state, subject, value, "storage"});
}

/* Counts the changes between the disks of two sheets, in both directions. */
static int changes(struct sheet *was, struct sheet *is)
{
    struct fact_change change;
    int count = 0;

    sheet_finish(was);
    sheet_finish(is);
    for (struct sheet_diff d = {.was = was, .is = is}; sheet_diff_next(&d, &change);) {
        count++;
    }
    for (struct sheet_diff d = {.was = is, .is = was}; sheet_diff_next(&d, &change);) {
        count++;
    }
    sheet_free(was);
    sheet_free(is);
    return count;
}

static struct sheet *two_disks(void)
{
    struct sheet *s = sheet_new();

    assert_non_null(s);
    add(s, FACT_VALUE, "nvme0", "nvme0");
    add(s, FACT_VALUE, "/", "ext4");
    return s;
}

static struct sheet *none(enum fact_state state)
{
    struct sheet *s = sheet_new();

    assert_non_null(s);
    add(s, state, "", "no answer in time");
    return s;
}

static void a_disk_that_went_is_one_change(void **state)
{
    struct sheet *one = sheet_new();

    (void)state;
    assert_non_null(one);
    add(one, FACT_VALUE, "/", "ext4");
    assert_int_equal(changes(two_disks(), one), 2);
    assert_int_equal(changes(two_disks(), two_disks()), 0);
    assert_int_equal(changes(two_disks(), none(FACT_ABSENT)), 4); /* read: there are no disks */
}

/* The reader had no answer in time, or stopped: that is no evidence that a disk is gone. */
static void disks_that_were_not_read_are_no_change(void **state)
{
    (void)state;
    assert_int_equal(changes(two_disks(), none(FACT_TIMEOUT)), 0);
    assert_int_equal(changes(two_disks(), none(FACT_STUCK)), 0);
    assert_int_equal(changes(two_disks(), none(FACT_UNREADABLE)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disk_that_went_is_one_change),
        cmocka_unit_test(disks_that_were_not_read_are_no_change),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
