/* An audit is stopped while the store can't be written: it ends nevertheless, and is kept once the store can be written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "platform/store/sql.h"
#include "service/controller/audit/audit.h"
#include "service/controller/controller.h"

enum { RUN = 7 };

static char folder[64];
static struct controller world;
static struct fleet_host host = {.id = 1, .member = true, .name = "h1"};
static struct fleet_host *host_list[] = {&host};

static int begin(void **state)
{
    char path[96], words[256];
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/foliot-stop-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/s.db", folder);
    world = (struct controller){.hosts = host_list, .host_count = 1};
    const struct store_options options = {.path = path, .create = true};
    assert_int_equal(store_open(&options, &world.store, words), 0);
    world.audits = calloc(1, sizeof(*world.audits));
    struct audit_run *run = calloc(1, sizeof(*run));
    assert_non_null(world.audits);
    assert_non_null(run);
    *run = (struct audit_run){.id = RUN, .state = AUDIT_READING, .count = 1, .unanswered = 1};
    run->settings = calloc(1, sizeof(*run->settings));
    run->members = calloc(1, sizeof(*run->members));
    assert_non_null(run->settings);
    assert_non_null(run->members);
    run->members[0] = (struct audit_member){.host = 1, .asked = true, .waits = true};
    world.audits->running = run;
    return 0;
}

static int end(void **state)
{
    static const char *const names[] = {"s.db", "s.db-wal", "s.db-shm", "s.db.lock"};
    char path[96];
    (void)state;
    audits_close(&world);
    store_close(world.store);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void let_store_refuse(bool refuse)
{
    const char *text = refuse ? "PRAGMA query_only = 1" : "PRAGMA query_only = 0";
    assert_int_equal(sqlite3_exec(world.store->db, text, NULL, NULL, NULL), SQLITE_OK);
}

static void pass(int64_t seconds)
{
    if (world.audits->running != NULL) {
        world.audits->running->stopped.ns -= seconds * NS_PER_S;
    }
    audit_watch(&world);
}

static int see_run(void *context, const struct store_audit_run *run)
{
    snprintf(context, 16, "%s", strstr(run->body, "\"stopped\"") != NULL ? "stopped" : "other");
    return 0;
}

static void ends_while_the_store_takes_nothing(void **state)
{
    char word[16] = "";
    (void)state;
    let_store_refuse(true);
    audit_stop(&world, "somebody has had enough");
    assert_true(world.store_broken);
    pass(AUDIT_STOP_S - 10); /* the store may work again */
    assert_non_null(world.audits->running);
    pass(20);
    assert_null(world.audits->running);
    assert_non_null(audit_in_memory(&world, RUN));
    let_store_refuse(false);
    world.audits->again = controller_mono();
    audit_save_end(&world);
    assert_int_equal(store_commit(world.store), 0);
    audit_on_commit(&world);
    assert_null(audit_in_memory(&world, RUN));
    assert_int_equal(store_audit_run_get(world.store, RUN, see_run, word), 0);
    assert_string_equal(word, "stopped");
}

/* It is judged by the content of the disk as soon as the disk can be written. */
static void waits_for_a_store_that_takes_all(void **state)
{
    (void)state;
    audit_stop(&world, "somebody has had enough");
    assert_false(world.store_broken);
    pass(3600);
    assert_non_null(world.audits->running);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ends_while_the_store_takes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(waits_for_a_store_that_takes_all, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
