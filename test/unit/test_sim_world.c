/* The simulated world as a whole: one seed, one trace; recordings that replay; warm starts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* cmocka needs those first */
#include <cmocka.h>

#include "service/record/record.h"
#include "sim/check.h"

/* Four hosts, two NICs each; `restart`: host 1's agent is restarted in the middle. */
static struct scenario *small(bool restart)
{
    struct scenario *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    scenario_init(s);
    s->fabric.hosts = 4;
    s->fabric.nics_per_host = 2;
    s->fabric.leaves = s->fabric.spines = 2;
    s->duration_ns = 8 * NS_PER_S;
    if (restart) {
        s->fault_count = 1;
        s->fault[0] =
            (struct scenario_fault){.kind = FAULT_AGENT_RESTART,
                                    .at_ns = 5 * NS_PER_S,
                                    .for_ns = 500 * NS_PER_MS,
                                    .every_ns = NS_PER_S,
                                    .target = {.kind = TARGET_HOSTS, .first = 1, .last = 1}};
    }
    return s;
}

static uint64_t trace_of(const struct scenario *s, uint64_t seed)
{
    struct world *w = NULL;

    assert_int_equal(world_new(&w, s, seed), 0);
    world_run(w, s->duration_ns);
    assert_true(w->probes > 1000);
    const uint64_t trace = world_trace(w);
    world_free(w);
    return trace;
}

static void one_seed_one_trace(void **state)
{
    (void)state;
    struct scenario *s = small(true);
    const uint64_t first = trace_of(s, 1);

    assert_true(trace_of(s, 1) == first);
    assert_true(trace_of(s, 2) != first);
    free(s);
}

static void on_action(void *context, struct mono now, const struct node_action *action)
{
    uint64_t *trace = context;
    *trace = world_trace_action(*trace, now, action);
}

/* The inputs of `host` since its agent last started, and its decisions since then. */
static struct record *record_of(const struct scenario *s, int host, uint64_t *ret_trace)
{
    struct world *w = NULL;
    struct recording recording;
    struct record *record = NULL;

    assert_int_equal(world_new(&w, s, 1), 0);
    assert_int_equal(recorder_open(&w->recorder, "/tmp", 1 << 26), 0);
    w->record_host = host;
    world_run(w, s->duration_ns);
    assert_int_equal(recorder_save(w->recorder, &recording), 0);
    uint8_t *bytes = malloc((size_t)recording.size);
    assert_non_null(bytes);
    assert_int_equal(pread(recording.fd, bytes, (size_t)recording.size, 0), recording.size);
    assert_int_equal(record_open_memory(&record, bytes, (size_t)recording.size), 0);
    free(bytes);
    close(recording.fd);
    *ret_trace = w->hosts[host].trace;
    w->recorder = recorder_close(w->recorder);
    world_free(w);
    return record;
}

static void replays(bool restart)
{
    struct scenario *s = small(restart);
    struct record_outcome outcome = {0};
    struct node *node = NULL;
    uint64_t recorded = 0, replayed = 0;
    struct record *r = record_of(s, 1, &recorded);

    assert_int_equal(record_play(r, false, on_action, &replayed, &node, &outcome), 0);
    assert_true(outcome.actions > 500);
    assert_int_equal(outcome.different, 0);
    assert_true(replayed == recorded);
    node_free(node);
    record_close(r);
    free(s);
}

static void a_recorded_host_decides_the_same_again(void **state)
{
    (void)state;
    replays(false);
}

static void so_does_one_that_began_with_a_saved_state(void **state)
{
    (void)state;
    replays(true);
}

static double back_ms(bool warm)
{
    struct scenario *s = small(true);
    struct world *w = NULL;

    s->clocks.warm_start = warm;
    s->bound_count = 1;
    s->bound[0] = (struct scenario_bound){
        .what = "clock.restart.back_ms", .until_ns = s->duration_ns, .fault = -1};
    assert_int_equal(world_new(&w, s, 1), 0);
    world_run(w, s->duration_ns);
    check_end(w);
    const double value = check_value(w, 0);
    world_free(w);
    free(s);
    return value;
}

static void a_restarted_agent_is_soon_useful(void **state)
{
    (void)state;
    const double warm = back_ms(true), cold = back_ms(false);

    assert_true(warm <= 2000);
    assert_true(warm < cold);
}

/* Counts paths of all hosts whose ways aren't known, and pairs of NICs of two leaves that use another number of ways than
 * exist. */
static void count_ways(struct world *w, uint32_t ways, uint32_t *ret_unknown, uint32_t *ret_other)
{
    *ret_unknown = *ret_other = 0;
    for (int host = 0; host < w->host_count; host++) {
        const struct node *n = w->hosts[host].node;
        const struct mono now = {world_raw(w, host, w->now)};

        for (uint32_t edge = 0; edge < node_edge_count(n); edge++) {
            uint8_t hops[MESH_HOP_MAX][16];
            struct path_report report;
            struct node_edge e;

            if (!node_edge_get(n, edge, now, &e)) {
                continue;
            }
            for (uint8_t p = 0; p < e.path_count; p++) {
                assert_true(node_path_get(n, edge, p, DIRECTION_OUT, now, &report));
                *ret_unknown += report.signature == 0;
            }
            *ret_other += node_path_hops(n, edge, 0, hops) > 1 && e.path_count != ways;
        }
    }
}

/* A fabric with fewer ways than agents look for: nine hosts on three leaves, three spines. */
static void ways_are_learnt_within_a_minute(void **state)
{
    struct scenario *s = small(false);
    struct world *w = NULL;
    uint32_t unknown, other;

    s->fabric.hosts = 9;
    s->fabric.leaves = s->fabric.spines = 3;
    s->duration_ns = 50 * NS_PER_S;
    assert_int_equal(world_new(&w, s, 1), 0);
    world_run(w, s->duration_ns);
    count_ways(w, 3, &unknown, &other);
    world_free(w);
    free(s);
    assert_int_equal(unknown, 0);
    assert_int_equal(other, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_seed_one_trace),
        cmocka_unit_test(a_recorded_host_decides_the_same_again),
        cmocka_unit_test(so_does_one_that_began_with_a_saved_state),
        cmocka_unit_test(a_restarted_agent_is_soon_useful),
        cmocka_unit_test(ways_are_learnt_within_a_minute),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
