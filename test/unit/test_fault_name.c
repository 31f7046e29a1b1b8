/* The name of a fault in the store: if the store refused it, or a rollback removed it, it is stored again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/brain/brain.h"
#include "platform/store/sql.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fault.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/state.h"

enum { RUN = 3, NUMBER = 4 };

static char folder[64];
static struct controller world;
static struct fleet_host host;
static struct fleet_host *host_list[] = {&host};
static const struct alert_finding dead = {
    .run = RUN, .number = NUMBER, .suspect = {.kind = ELEMENT_HOST, .a = {.kind = PLACE_HOST}}};

static int begin(void **state)
{
    char path[96], words[256];
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/foliot-name-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/s.db", folder);
    world = (struct controller){.hosts = host_list, .host_count = 1};
    world.brain = brain_new();
    assert_non_null(world.brain);
    assert_true(fault_open(&world) >= 0);
    const struct store_options options = {.path = path, .create = true};
    const struct store_finding row = {
        .host = 1, .run = RUN, .number = NUMBER, .kind = "path-dead", .body = "{}"};
    assert_int_equal(store_open(&options, &world.store, words), 0);
    assert_int_equal(store_finding_put(world.store, &row, NULL), 0);
    assert_int_equal(store_commit(world.store), 0);
    host = (struct fleet_host){.id = 1, .member = true, .name = "h1", .finding_count = 1};
    host.findings[0] = (struct open_finding){.run = RUN, .number = NUMBER};
    return 0;
}

static int end(void **state)
{
    static const char *const names[] = {"s.db", "s.db-wal", "s.db-shm", "s.db.lock"};
    char path[96];
    (void)state;
    fault_close(&world);
    brain_delete(world.brain);
    store_close(world.store);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static int see_name(void *context, const struct store_finding *f)
{
    *(bool *)context = f->named[0] != 0;
    return 0;
}

static bool named(void)
{
    bool is = false;
    const struct store_finding_filter all = {.open = -1, .limit = 10};
    assert_int_equal(store_findings(world.store, &all, see_name, &is), 0);
    return is;
}

static void commit(bool ok)
{
    if (ok) {
        assert_int_equal(store_commit(world.store), 0);
        state_committed(&world, true);
    } else {
        controller_store_failed(&world, -ENOSPC, "a commit");
    }
}

static void a_rollback_loses_no_name(void **state)
{
    (void)state;
    fault_keep_name(&world, &host, &dead, true);
    assert_true(named());
    commit(false);
    assert_false(named());
    fault_keep_name(&world, &host, &dead, true); /* it is reported once more */
    commit(true);
    assert_true(named());
    fault_keep_name(&world, &host, &dead, false); /* and it had none in the end */
    commit(false);
    assert_true(named());
    fault_keep_name(&world, &host, &dead, false);
    commit(true);
    assert_false(named());
}

static void a_refused_name_is_stored_later(void **state)
{
    (void)state;
    sqlite3_exec(world.store->db, "PRAGMA query_only = 1", NULL, NULL, NULL);
    fault_keep_name(&world, &host, &dead, true);
    sqlite3_exec(world.store->db, "PRAGMA query_only = 0", NULL, NULL, NULL);
    assert_false(named());
    fault_keep_name(&world, &host, &dead, true);
    assert_true(named());
}

/* A name that is on the disk is not written with each report. */
static void a_name_is_stored_once(void **state)
{
    (void)state;
    fault_keep_name(&world, &host, &dead, true);
    commit(true);
    commit(false); /* of others */
    fault_keep_name(&world, &host, &dead, true);
    assert_false(store_dirty(world.store));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_rollback_loses_no_name, begin, end),
        cmocka_unit_test_setup_teardown(a_refused_name_is_stored_later, begin, end),
        cmocka_unit_test_setup_teardown(a_name_is_stored_once, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
