/* The switch's page: a reader gets what a writer wrote, a restart changes nothing, and nonsense is no order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/prng.h"
#include "platform/shm/shm.h"
#include "wire/switch_page.h"

static void the_lesser_counts(void **state)
{
    assert_int_equal(switch_lesser(SWITCH_UNSET, SWITCH_FULL), SWITCH_FULL);
    assert_int_equal(switch_lesser(SWITCH_OBSERVE, SWITCH_UNSET), SWITCH_OBSERVE);
    assert_int_equal(switch_lesser(SWITCH_FULL, SWITCH_OFF), SWITCH_OFF);
    assert_int_equal(switch_lesser(SWITCH_UNSET, SWITCH_UNSET), SWITCH_UNSET);
    assert_null(switch_mode_word(SWITCH_UNSET));
    assert_string_equal(switch_mode_word(SWITCH_OBSERVE), "observe");
}

/* A reader that mapped it once sees the values that a second writer writes after a restart. */
static void a_restart_writes_the_same_page(void **state)
{
    char folder[] = "/tmp/foliot-switch-XXXXXX", path[64];
    struct shm_page writer = {0}, reader = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/" SWITCH_PAGE_NAME, folder);
    assert_int_equal(shm_create(&writer, path, sizeof(struct switch_page), 0644), 0);
    switch_page_init(writer.memory);
    assert_int_equal(shm_publish(&writer), 0);
    assert_int_equal(shm_open_read(&reader, path, sizeof(struct switch_page)), 0);
    assert_int_equal(switch_page_read(reader.memory), SWITCH_UNSET);
    assert_true(switch_page_write(writer.memory, SWITCH_OBSERVE));
    assert_false(switch_page_write(writer.memory, SWITCH_OBSERVE));
    shm_close(&writer);
    assert_int_equal(switch_page_read(reader.memory),
                     SWITCH_OBSERVE); /* the writer is gone: the value stays */
    assert_int_equal(shm_open_write(&writer, path, sizeof(struct switch_page)), 0);
    switch_page_init(writer.memory);
    assert_int_equal(switch_page_read(reader.memory), SWITCH_OBSERVE);
    assert_true(switch_page_write(writer.memory, SWITCH_FULL));
    assert_int_equal(switch_page_read(reader.memory), SWITCH_FULL);
    shm_close(&writer);
    shm_close(&reader);
    unlink(path);
    rmdir(folder);
}

static void nonsense_is_no_order(void **state)
{
    struct switch_page page;
    for (uint64_t seed = 1; seed < 2000; seed++) {
        for (size_t i = 0; i < sizeof(page) / 8; i++) {
            ((uint64_t *)&page)[i] = hash_u64(seed, i);
        }
        assert_int_equal(switch_page_read(&page), SWITCH_UNSET);
        page.magic = SWITCH_PAGE_MAGIC;
        page.version = SWITCH_PAGE_VERSION + (seed & 1);
        page.word |= 0x80;
        assert_int_equal(switch_page_read(&page), SWITCH_UNSET);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lesser_counts),
        cmocka_unit_test(a_restart_writes_the_same_page),
        cmocka_unit_test(nonsense_is_no_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
