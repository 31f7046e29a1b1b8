/* The results of an audit are kept, also if one host's facts are more than the store takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/audit/part.h"
#include "service/controller/audit/audit.h"
#include "service/controller/audit/past.h"
#include "service/controller/controller.h"

enum { RUN = 7, FACTS = 3000, LIAR = 1, OTHER = 2 };

static char folder[64];
static struct controller world;

static int begin(void **state)
{
    char path[96], words[256];
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/foliot-kept-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/s.db", folder);
    world = (struct controller){.store = NULL};
    const struct store_options options = {.path = path, .create = true};
    assert_int_equal(store_open(&options, &world.store, words), 0);
    return 0;
}

static int end(void **state)
{
    static const char *const names[] = {"s.db", "s.db-wal", "s.db-shm", "s.db.lock"};
    char path[96];
    (void)state;
    store_close(world.store);
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    return rmdir(folder);
}

static void add_found(struct audit_outcome *o, int64_t host, const struct sheet *s)
{
    struct audit_found *f = &o->found[o->count++];
    *f = (struct audit_found){
        .host = host, .at_ns = RUN, .line = strdup("well"), .results = strdup("[]"), .size = 2};
    memset(f->marks, 'P', o->check_count);
    assert_int_equal(audit_past_pack(s, &f->past), 0);
}

static int see_host(void *context, const struct store_audit_host *h)
{
    *(uint32_t *)context |= 1u << h->host;
    return 0;
}

/* A host may report 8192 facts with 2 kB of text each. */
static void one_host_keeps_out_no_results(void **state)
{
    static struct fact facts[FACTS];
    static char text[FACT_VALUE_MAX];
    uint32_t seen = 0;
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    for (uint32_t i = 0; i < FACTS; i++) {
        facts[i] = (struct fact){FACT_OS_BOOT_ID, FACT_VALUE, "", text, text};
    }
    const struct sheet large = {.host = "liar", .facts = facts, .count = FACTS},
                       small = {.host = "other", .facts = facts, .count = 1};
    assert_true(sheet_part_encode(&large, PART_NOW, NULL, 0) > STORE_BODY_MAX);
    struct audit_outcome *o = audit_outcome_new(RUN, 2);
    assert_non_null(o);
    add_found(o, LIAR, &large);
    add_found(o, OTHER, &small);
    assert_int_equal(audit_outcome_save(&world, o), 0);
    assert_int_equal(store_commit(world.store), 0);
    assert_int_equal(store_audit_hosts(world.store, RUN, see_host, &seen), 0);
    assert_int_equal(seen, 1u << LIAR | 1u << OTHER);
    assert_int_equal(store_part_now_is(world.store, LIAR, RUN, RUN), 0);
    assert_int_equal(store_part_now_is(world.store, OTHER, RUN, RUN), 1);
    audit_outcome_free(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_host_keeps_out_no_results, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
