/* The scenario language: what is read, what is refused, and the place in the error. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
/* cmocka needs those first */
#include <cmocka.h>

#include "base/time.h"
#include "service/scenario/scenario.h"

#include <errno.h>

static struct scenario scenario;
static struct config_error error;

static int parse(const char *text)
{
    memset(&error, 0, sizeof(error));
    return scenario_parse("test.yaml", text, strlen(text), &scenario, &error);
}

static void an_empty_file_is_the_default_lab(void **state)
{
    (void)state;
    assert_int_equal(parse(""), 0);
    assert_int_equal(scenario.fabric.hosts, 8);
    assert_int_equal(scenario.fabric.spines, 4);
    assert_int_equal(scenario.fault_count, 0);
    assert_true(scenario_trunk_mbps(&scenario.fabric) == 200);
}

static void a_whole_scenario_is_read(void **state)
{
    (void)state;
    assert_int_equal(
        parse("name: black-hole\n"
              "why: someone\n"
              "world: both\n"
              "duration: 30s\n"
              "fabric: {hosts: 4, link_mbps: 1000, probe_class: no}\n"
              "clocks: {stamps: nic, noise: 20ns, ppm: 50}\n"
              "traffic:\n"
              "  - {kind: incast, load: 60%, start: 5s}\n"
              "faults:\n"
              "  - {at: 10s, kind: blackhole, target: edge 0.0>3.1 path 2, for: 5s}\n"
              "  - {at: 12s, kind: liar, target: hosts 25%, lie: two-faced, size: 60ns}\n"
              "bounds:\n"
              "  - {what: fault.detect_ms, below: 2000, fault: 0}\n"
              "  - {what: clock.error.p99_ns, below: 100, from: 5s, world: sim}\n"),
        0);
    assert_int_equal(scenario.clocks.stamps, STAMPS_NIC);
    assert_true(scenario.clocks.noise_ns == 20);
    assert_false(scenario.fabric.probe_class);
    assert_true(scenario.traffic[0].load == 0.6);
    assert_int_equal(scenario.traffic[0].end_ns, 30 * NS_PER_S);
    const struct scenario_fault *f = &scenario.fault[0];
    assert_int_equal(f->target.to.host, 3);
    assert_int_equal(f->target.path, 2);
    assert_false(f->target.both_ways);
    assert_int_equal(f->line, 10);
    assert_int_equal(scenario.fault[1].lie, LIE_TWO_FACED);
    assert_int_equal(scenario.bound[0].world, SCENARIO_BOTH);
    assert_int_equal(scenario.bound[0].until_ns, 30 * NS_PER_S);
    assert_int_equal(scenario.bound[1].world, SCENARIO_SIM);
}

static void errors_name_their_place(void **state)
{
    (void)state;
    static const struct {
        const char *text, *place, *says;
    } cases[] = {
        {"fabric: {hosts: 0}\n", "test.yaml:1:", "from 1"},
        {"fabric:\n  hostss: 3\n", "test.yaml:2:", "hostss"},
        {"duration: fast\n", "test.yaml:1:", "fast"},
        {"faults:\n  - {kind: carrier, target: host 1}\n", "test.yaml:2:", "carrier"},
        {"faults:\n  - {kind: carrier, target: nic 9.0}\n", "test.yaml:2:", "8 hosts"},
        {"faults:\n  - {kind: nonsense, target: all}\n", "test.yaml:2:", "nonsense"},
        {"faults:\n  - {kind: loss, target: all}\n", "test.yaml:2:", "loss"},
        {"faults:\n  - {kind: spine, target: spine 4}\n", "test.yaml:2:", "spine"},
        {"faults:\n  - {kind: spine, target: spine 1, at: 31s}\n", "test.yaml:2:", "ends"},
        {"bounds:\n  - {what: clock.eror.p99_ns, below: 3}\n", "test.yaml:2:", "metric"},
        {"bounds:\n  - {what: false.any}\n", "test.yaml:2:", "below"},
        {"bounds:\n  - {what: false.any, below: 1, above: 0}\n", "test.yaml:2:", "found 2"},
        {"world: lab\nbounds:\n  - {what: liar.unnamed, equals: 0}\n", "test.yaml:3:", "world"},
        {"clocks: {noise: 20}\n", "test.yaml:1:", "noise"},
        {"traffic:\n  - {kind: flow, load: 120%}\n", "test.yaml:2:", "load"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(parse(cases[i].text), -EINVAL);
        if (strstr(error.text, cases[i].place) == NULL ||
            strstr(error.text, cases[i].says) == NULL) {
            fail_msg("case %zu: \"%s\"", i, error.text);
        }
    }
}

static void targets_survive_being_written(void **state)
{
    (void)state;
    static const char *const texts[] = {"all",
                                        "host 3",
                                        "hosts 0-3",
                                        "hosts 10%",
                                        "nic 3.1",
                                        "leaf 0",
                                        "spine 2",
                                        "trunk 0-2",
                                        "edge 0.0>5.1",
                                        "edges 10%",
                                        "edge 0.0-5.1 path 2"};
    for (size_t i = 0; i < ARRAY_COUNT(texts); i++) {
        struct scenario_target target;
        char text[64];
        assert_int_equal(scenario_target_parse(texts[i], &target), 0);
        scenario_target_text(&target, text, sizeof(text));
        assert_string_equal(text, texts[i]);
    }
}

static void wrong_targets_and_times_are_refused(void **state)
{
    (void)state;
    static const char *const targets[] = {"",
                                          "host",
                                          "host x",
                                          "hosts 3-1",
                                          "nic 3",
                                          "edge 0.0",
                                          "edge 0.0>1",
                                          "hosts 0%",
                                          "hosts 101%",
                                          "trunk 3",
                                          "edge 0.0>1.0 path",
                                          "edge 0.0>1.0 path 2 x"};
    static const char *const times[] = {"", "s", "3", "3 parsecs", "nan s", "1e30h"};
    struct scenario_target target;
    int64_t ns = 0;

    for (size_t i = 0; i < ARRAY_COUNT(targets); i++) {
        assert_int_equal(scenario_target_parse(targets[i], &target), -EINVAL);
    }
    for (size_t i = 0; i < ARRAY_COUNT(times); i++) {
        assert_int_equal(scenario_duration(times[i], &ns), -EINVAL);
    }
    assert_int_equal(scenario_duration("1.5ms", &ns), 0);
    assert_int_equal(ns, 1500000);
    assert_int_equal(scenario_duration("-3us", &ns), 0);
    assert_int_equal(ns, -3000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_file_is_the_default_lab),
        cmocka_unit_test(a_whole_scenario_is_read),
        cmocka_unit_test(errors_name_their_place),
        cmocka_unit_test(targets_survive_being_written),
        cmocka_unit_test(wrong_targets_and_times_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
