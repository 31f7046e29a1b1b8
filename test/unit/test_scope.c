/* What a tenant's token sees in a fleet of two tenants: its own hosts, everything between those, and nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"

enum { HOSTS = 4 };
static const char *const names[HOSTS] = {"red-1", "blue-1", "red-2", "blue-2"};
static struct fleet_host hosts[HOSTS];
static struct fleet_nic nics[HOSTS];
static struct fleet_host *host_list[HOSTS];
static struct fleet_nic *nic_list[HOSTS];
static struct controller world;

static int begin(void **state)
{
    (void)state;
    world = (struct controller){
        .hosts = host_list, .nics = nic_list, .host_count = HOSTS, .nic_count = HOSTS};
    for (uint32_t i = 0; i < HOSTS; i++) {
        hosts[i] = (struct fleet_host){.id = 10 + i, .index = i, .member = true};
        snprintf(hosts[i].name, sizeof(hosts[i].name), "%s", names[i]);
        nics[i] = (struct fleet_nic){.id = i, .host = &hosts[i]};
        host_list[i] = &hosts[i];
        nic_list[i] = &nics[i];
    }
    const int r = hash_index_room(&world.host_names, HOSTS);
    for (uint32_t i = 0; r == 0 && i < HOSTS; i++) {
        hash_index_put(&world.host_names, hash_text(names[i]), i);
    }
    return r;
}

static int end(void **state)
{
    (void)state;
    hash_index_done(&world.host_names);
    return 0;
}

static void patterns_see_what_they_name(void **state)
{
    static const struct {
        const char *scope, *name;
        bool seen;
    } cases[] = {
        {"", "anything", true},
        {"red-*", "red-1", true},
        {"red-*", "blue-1", false},
        {"red-*", "infrared-1", false},
        {"red-?", "red-12", false},
        {"red-1,blue-2", "red-1", true},
        {"red-1,blue-2", "blue-2", true},
        {"red-1,blue-2", "blue-1", false},
        {"red-1,blue-2", "red-1,blue-2", false},
        {"red-1", "red-10", false},
        {"red-1", "red", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(scope_sees_name(cases[i].scope, cases[i].name), cases[i].seen);
    }
}

static void a_scope_that_could_see_all_by_mistake_is_refused(void **state)
{
    static const char *const good[] = {"", "red-*", "a,b", "rack?.example"};
    static const char *const bad[] = {",",     "red-*,", ",red-*", "a,,b",
                                      "Red-*", "a b",    "a\nb",   "a;b"};
    char longest[TOKEN_SCOPE_SIZE + 1];

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(scope_good(good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(scope_good(bad[i]));
    }
    memset(longest, 'a', TOKEN_SCOPE_SIZE);
    longest[TOKEN_SCOPE_SIZE] = 0;
    assert_false(scope_good(longest));
    longest[TOKEN_SCOPE_SIZE - 1] = 0;
    assert_true(scope_good(longest));
}

/* For each host, for each NIC, and in queries of the store. */
static void a_tenant_sees_its_own_hosts(void **state)
{
    struct api_call call = {.c = &world};

    (void)state;
    assert_int_equal(scope_open(&call, "red-*"), 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(api_sees(&call, &hosts[i]), i % 2 == 0);
        assert_int_equal(api_sees_nic(&call, i), i % 2 == 0);
    }
    assert_false(api_sees(&call, NULL)); /* of no host: the fabric's, the controller's */
    assert_false(api_sees_nic(&call, 99));
    assert_string_equal(call.host_ids, "[10,12]");
    scope_close(&call);
    assert_int_equal(scope_open(&call, "green-*"), 0);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_false(api_sees(&call, &hosts[i]));
    }
    assert_string_equal(call.host_ids, "[]");
    scope_close(&call);
    assert_int_equal(scope_open(&call, ""), 0); /* the operator */
    assert_null(call.host_ids);
    assert_true(api_sees(&call, &hosts[1]) && api_sees(&call, NULL) && api_sees_nic(&call, 1));
    scope_close(&call);
}

/* A finding is seen if all its hosts are: both ends, and the suspect, which may be another tenant's. */
static void a_finding_is_seen_whole_or_not(void **state)
{
#define END(host) "{\"host\":\"" host "\"}"
#define NIC_OF(host)                                                                               \
    "{\"kind\":\"nic\",\"places\":[{\"kind\":\"nic\",\"host\":" host ",\"nic\":1}]}"
    static const struct {
        int64_t host;
        const char *body;
        bool seen;
    } cases[] = {
        {10, "{\"from\":" END("red-2") ",\"to\":" END("red-1") "}", true},
        {10, "{\"from\":" END("blue-1") ",\"to\":" END("red-1") "}", false},
        {10, "{\"from\":" END("red-1") ",\"to\":" END("blue-1") "}", false},
        {11, "{\"from\":" END("red-2") ",\"to\":" END("red-1") "}", false},
        {99, "{\"from\":" END("red-2") ",\"to\":" END("red-1") "}", false},
        {10, "{\"to\":" END("red-1") ",\"element\":" NIC_OF("\"red-1\"") "}", true},
        {10, "{\"to\":" END("red-1") ",\"element\":" NIC_OF("\"blue-1\"") "}", false},
        {10, "{\"to\":" END("red-1") ",\"element\":" NIC_OF("\"blue-9\"") "}", false}, /* gone */
        {10, "{\"to\":" END("red-1") ",\"element\":" NIC_OF("null") "}",
         false}, /* the tenant is unknown */
        {10,
         "{\"to\":" END(
             "red-1") ",\"element\":{\"kind\":\"trunk\",\"places\":[{\"kind\":\"leaf\",\"name\":"
                      "\"leaf0\"},{\"kind\":\"spine\",\"name\":\"blue-1\"}]}}",
         true},
        /* older rows: they have the kind, but no owner */
        {10, "{\"to\":" END("red-1") ",\"suspect\":{\"kind\":\"nic\",\"name\":\"red-1/nic0\"}}",
         false},
        {10, "{\"to\":" END("red-1") ",\"suspect\":{\"kind\":\"host\",\"name\":\"blue-9\"}}",
         false},
        {10, "{\"to\":" END("red-1") ",\"suspect\":{\"kind\":\"spine\",\"name\":\"spine2\"}}",
         true},
        {10, "{\"from\":null,\"to\":" END("red-1") "}", true},
        {10, "{\"from\":{},\"to\":" END("red-1") "}", false},
        {10, "no json", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(scope_sees_finding(&world, "red-*", cases[i].host, cases[i].body),
                         cases[i].seen);
        assert_int_equal(scope_sees_event(&world, "red-*", "finding", cases[i].host, cases[i].body),
                         cases[i].seen);
        assert_true(scope_sees_finding(&world, "", cases[i].host, cases[i].body));
    }
}

static void events_of_others_are_not_seen(void **state)
{
    static const struct {
        const char *kind;
        int64_t host;
        const char *body;
        bool seen;
    } cases[] = {
        {"link", 10, "{}", true},
        {"link", 11, "{}", false},
        {"host", 12, "{}", true},
        {"host", 13, "{}", false},
        {"host", 0, "{}", false},
        {"job", 10, "{}", true},
        {"job", 11, "{}", false},
        {"job", 10, "{\"peer_host\":\"red-2\"}", true},
        {"job", 10, "{\"peer_host\":\"blue-2\"}", false},
        {"job", 10, "no json", false},
        {"incident", 10, "{}", false}, /* about several tenants' hosts */
        {"controller", 0, "{}", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            scope_sees_event(&world, "red-*", cases[i].kind, cases[i].host, cases[i].body),
            cases[i].seen);
        assert_true(scope_sees_event(&world, "", cases[i].kind, cases[i].host, cases[i].body));
    }
}

/* A result about another tenant's host names neither that host nor which device of its own host it is about. */
static void results_about_others_name_nothing(void **state)
{
    static const struct {
        const char *scope, *peer;
        bool hidden;
    } cases[] = {
        {"red-*", "\"peer\":\"blue-1\",", true},
        {"red-*", "\"peer\":\"red-2\",", false},
        {"red-*", "", true}, /* of an older release */
        {"", "\"peer\":\"blue-1\",", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct api_call call = {.c = &world};
        char text[256];
        snprintf(text, sizeof(text),
                 "{\"check\":\"be.conn.matrix\",\"status\":\"fail\",\"subject\":\"mlx5_0/1\","
                 "\"device\":\"slot 3\",%s\"source\":\"x\",\"evidence\":[1]}",
                 cases[i].peer);
        json_t *result = json_loads(text, 0, NULL);
        assert_non_null(result);
        assert_int_equal(scope_open(&call, cases[i].scope), 0);
        api_hide_audit_result(&call, result);
        assert_string_equal(json_string_value(json_object_get(result, "subject")),
                            cases[i].hidden ? "" : "mlx5_0/1");
        assert_int_equal(json_is_null(json_object_get(result, "device")), cases[i].hidden);
        scope_close(&call);
        json_decref(result);
    }
}

static void alerts_of_others_are_not_seen(void **state)
{
    static const struct {
        uint32_t host, nic, peer;
        bool seen;
    } cases[] = {
        {0, ALERT_NO_ID, ALERT_NO_ID, true},
        {1, ALERT_NO_ID, ALERT_NO_ID, false},
        {0, 0, 2, true},
        {0, 0, 1, false},
        {0, 3, ALERT_NO_ID, false},
        {ALERT_NO_ID, ALERT_NO_ID, ALERT_NO_ID, false},
        {HOSTS, ALERT_NO_ID, ALERT_NO_ID, 0},
    };
    struct api_call tenant = {.c = &world}, overseer = {.c = &world};

    (void)state;
    assert_int_equal(scope_open(&tenant, "red-*"), 0);
    assert_int_equal(scope_open(&overseer, ""), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct alert a = {.host = cases[i].host, .nic = cases[i].nic, .peer = cases[i].peer};
        assert_int_equal(scope_sees_alert(&tenant, &a), cases[i].seen);
        assert_true(scope_sees_alert(&overseer, &a));
    }
    scope_close(&tenant);
    scope_close(&overseer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(patterns_see_what_they_name, begin, end),
        cmocka_unit_test_setup_teardown(a_scope_that_could_see_all_by_mistake_is_refused, begin,
                                        end),
        cmocka_unit_test_setup_teardown(a_tenant_sees_its_own_hosts, begin, end),
        cmocka_unit_test_setup_teardown(a_finding_is_seen_whole_or_not, begin, end),
        cmocka_unit_test_setup_teardown(events_of_others_are_not_seen, begin, end),
        cmocka_unit_test_setup_teardown(results_about_others_name_nothing, begin, end),
        cmocka_unit_test_setup_teardown(alerts_of_others_are_not_seen, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
