/* test_history.c: the incidents of each host, from the store: of a month, at half weight after two weeks, and only if the cause
 * is one host's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/time.h"
#include "core/audit/fact.h"
#include "service/audit/sheet.h"
#include "service/controller/audit/audit.h"
#include "service/controller/audit/history.h"

#define NOW (INT64_C(1790000000) * NS_PER_S)
#define DAY (86400 * NS_PER_S)

static struct store *store;

static void put(int64_t at_ns, const char *kind, const char *word, const char *body)
{
    int64_t id;
    const struct store_event e = {.at_ns = at_ns, .kind = kind, .word = word, .body = body};

    assert_int_equal(store_event_put(store, &e, &id), 0);
}

static void opened(int64_t at_ns, const char *kind, const char *places)
{
    char body[300];

    snprintf(body, sizeof(body), "{\"incident\":7,\"element\":{\"kind\":\"%s\",\"places\":[%s]}}",
             kind, places);
    put(at_ns, "incident", "opened", body);
}

static void assert_fact(struct audit_history *h, const char *host, const char *text)
{
    struct sheet s = {0};

    assert_int_equal(audit_history_fact(h, host, &s), 0);
    assert_int_equal(s.count, 1);
    assert_int_equal(s.facts[0].id, FACT_HISTORY);
    assert_string_equal(s.facts[0].value, text);
    assert_true(fact_fits(FACT_HISTORY, text));
    free(s.facts);
}

static void test_score(void **state)
{
    struct audit_history *h;

    for (int i = 0; i < 3; i++) {
        opened(NOW - i * 14 * DAY, "nic", "{\"kind\":\"nic\",\"host\":\"h1\",\"nic\":3}");
    }
    opened(NOW - 31 * DAY, "host", "{\"kind\":\"host\",\"host\":\"h1\"}"); /* too long ago */
    opened(NOW - DAY, "host", "{\"kind\":\"host\",\"host\":\"h2\"}");
    opened(NOW + DAY, "host",
           "{\"kind\":\"host\",\"host\":\"h2\"}"); /* by a clock that was set back */
    opened(NOW, "path",
           "{\"kind\":\"nic\",\"host\":\"h3\",\"nic\":1},{\"kind\":\"nic\",\"host\":\"h1\",\"nic\":"
           "3}");
    opened(NOW, "leaf", "{\"kind\":\"leaf\",\"number\":0,\"name\":\"leaf0\"}");
    opened(NOW, "unknown", "");
    put(NOW, "incident", "repeated",
        "{\"element\":{\"kind\":\"host\",\"places\":[{\"kind\":\"host\",\"host\":\"h3\"}]}}");
    put(NOW, "finding", "opened",
        "{\"element\":{\"kind\":\"host\",\"places\":[{\"kind\":\"host\",\"host\":\"h3\"}]}}");
    put(NOW, "incident", "opened", "{\"element\":[1]}");
    put(NOW, "incident", "opened", "{\"element\":{\"places\":[{\"host\":5}]}}");
    put(NOW, "incident", "opened", "not JSON");
    assert_int_equal(store_commit(store), 0);
    assert_int_equal(audit_history_new(store, NOW, &h), 0);
    assert_fact(h, "h1", "incidents 3, score 1750");
    assert_fact(h, "h2", "incidents 2, score 1952");
    assert_fact(h, "h3", "incidents 0, score 0");
    audit_history_free(h);
}

/* Facts that only a controller has are not taken from a host: of two facts with one name the first would count. */
static void test_no_host_tells_its_own(void **state)
{
    static const char now[] = "history\tvalue\t\tincidents 0, score 0\tits own word\n"
                              "matrix\tvalue\teth0\twell\tits own word\n"
                              "perf.search\tvalue\t\twell\tits own word\n"
                              "os.zombies\tvalue\t\t3\t/proc\n";
    const struct store_look look = {
        .host = 1, .at_ns = NOW, .refused = "", .now = now, .now_size = sizeof(now) - 1};
    struct sheet *s;

    assert_int_equal(store_look_put(store, &look), 0);
    assert_int_equal(store_commit(store), 0);
    assert_int_equal(audit_sheet(store, 1, "h1", NOW, &s), 0);
    assert_int_equal(s->count, 1);
    assert_int_equal(s->facts[0].id, FACT_OS_ZOMBIES);
    sheet_free(s);
}

static int open_it(void **state)
{
    static char folder[32];
    char path[64], words[256];

    strcpy(folder, "/tmp/foliot-history-XXXXXX");
    if (mkdtemp(folder) == NULL) {
        return -1;
    }
    snprintf(path, sizeof(path), "%s/s.db", folder);
    const struct store_options options = {.path = path, .create = true};
    *state = folder;
    return store_open(&options, &store, words);
}

static int close_it(void **state)
{
    static const char *const names[] = {"s.db", "s.db-wal", "s.db-shm", "s.db.lock"};
    char path[64];

    store_close(store);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", (char *)*state, names[i]);
        unlink(path);
    }
    return rmdir(*state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_score, open_it, close_it),
        cmocka_unit_test_setup_teardown(test_no_host_tells_its_own, open_it, close_it)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
