/* The controller that an agent heard last, and how long ago: over restarts, and with a clock that is behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "service/agent/controller_seen.h"

static char folder[64];

static int make(void **state)
{
    snprintf(folder, sizeof(folder), "/tmp/foliot-seen-XXXXXX");
    return mkdtemp(folder) == NULL ? -1 : 0;
}

static int gone(void **state)
{
    char path[96];
    snprintf(path, sizeof(path), "%s/controller.seen", folder);
    unlink(path);
    return rmdir(folder);
}

static const int64_t now = 1000 * NS_PER_S;

static void what_was_heard_is_kept(void **state)
{
    struct controller_seen s, again;
    const time_t begin = time(NULL);

    controller_seen_open(&s, folder, now);
    assert_int_equal(controller_seen_ago_ms(&s, now), 0); /* not known */
    assert_int_equal(controller_seen_take(&s, "token", 5, now), 0);
    assert_int_equal(controller_seen_save(&s, now + 90 * NS_PER_S), 0);
    controller_seen_open(&again, folder, now);
    assert_int_equal(again.size, 5);
    assert_memory_equal(again.token, "token", 5);
    const uint64_t ago_ms = controller_seen_ago_ms(&again, now);
    assert_in_range(ago_ms, 90000, 92000 + 1000 * (time(NULL) - begin));
}

/* A host that boots with an old clock: "just now" would accuse a controller that was gone when this one began. */
static void a_clock_that_is_behind_accuses_nobody(void **state)
{
    struct controller_seen s;
    char path[96];

    snprintf(path, sizeof(path), "%s/controller.seen", folder);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "%lld 746f6b656e", (long long)time(NULL) + 86400);
    assert_int_equal(fclose(file), 0);
    controller_seen_open(&s, folder, now);
    assert_int_equal(s.size, 5);
    assert_true(controller_seen_ago_ms(&s, now) > 365 * 86400 * 1000ULL);
    assert_int_equal(controller_seen_take(&s, "token", 5, now), 0); /* it answers again */
    assert_int_equal(controller_seen_ago_ms(&s, now + 5 * NS_PER_S), 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_was_heard_is_kept, make, gone),
        cmocka_unit_test_setup_teardown(a_clock_that_is_behind_accuses_nobody, make, gone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
