/* test_cost.c: what an audit costs, as told before it begins, is what the plans of matrix and tests then take. The documentation
 * has the same figures. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "base/time.h"
#include "core/audit/matrix_plan.h"
#include "service/controller/audit/cost.h"
#include "service/controller/audit/matrix.h"
#include "service/controller/audit/perf.h"

enum { BEAT_MS = 2000, HOSTS_MOST = 24 };

/* Steps of the core's first plan, or those of its fabric, for a fleet in which all hosts take part. */
static uint32_t first_steps(const uint32_t *nics, uint32_t hosts, bool roce)
{
    struct perf_host who[HOSTS_MOST] = {0};
    struct perf *p = calloc(1, sizeof(*p));
    void *memory = malloc(perf_size(hosts));
    for (uint32_t i = 0; i < hosts; i++) {
        who[i] = (struct perf_host){
            .nics = nics[i], .there = true, .alltoall = true, .incast = roce, .memory = true};
        for (uint32_t k = 0; k < nics[i]; k++) {
            who[i].leaf[k] = (uint16_t)(i / 4);
        }
    }
    const struct perf_config config = {.hosts = who, .count = hosts, .wants_rings = true};
    assert_non_null(memory);
    const int r = perf_init(p, &config, memory);
    const uint32_t steps = r < 0 ? 0 : p->step_count;
    free(memory);
    free(p);
    return steps;
}

static void test_the_first_plan(void **state)
{
    (void)state;
    struct prng prng;
    prng_init(&prng, 7);
    for (int trial = 0; trial < 300; trial++) {
        uint32_t nics[HOSTS_MOST], hosts = 2 + (uint32_t)prng_below(&prng, HOSTS_MOST - 1);
        struct audit_cost cost;
        for (uint32_t i = 0; i < hosts; i++) {
            nics[i] = 1 + (uint32_t)prng_below(&prng, trial % 2 == 0 ? 1 : 4);
        }
        audit_cost_of(nics, hosts, BEAT_MS, &cost);
        assert_int_equal(cost.pairs_ns, first_steps(nics, hosts, true) * PERF_STEP_MS * NS_PER_MS);
        assert_int_equal(cost.pairs_no_roce_ns,
                         first_steps(nics, hosts, false) * PERF_STEP_MS * NS_PER_MS);
    }
}

/* A plan as it is made when the audit runs: its end, and the last host's rows. */
static void test_the_matrix(void **state)
{
    (void)state;
    static const uint32_t fleets[][2] = {{2, 1}, {8, 8}, {9, 7}, {16, 4}, {500, 8}, {1024, 8}};
    for (size_t i = 0; i < sizeof(fleets) / sizeof(fleets[0]); i++) {
        const uint32_t hosts = fleets[i][0], rails = fleets[i][1];
        uint32_t *nics = calloc(hosts, sizeof(*nics));
        struct audit_cost cost;
        assert_non_null(nics);
        for (uint32_t h = 0; h < hosts; h++) {
            nics[h] = rails;
        }
        audit_cost_of(nics, hosts, BEAT_MS, &cost);
        free(nics);
        struct matrix_plan plan = {.hosts = hosts, .rails = rails};
        audit_matrix_times(&plan, 5 * NS_PER_S);
        assert_int_equal(cost.nics, hosts * rails);
        assert_int_equal(cost.packets, 5 * (hosts * rails - 1));
        assert_int_equal(cost.matrix_ns, matrix_answer_ns(&plan, hosts - 1) - 5 * NS_PER_S);
        assert_true(matrix_rounds(&plan) * plan.round_ns <= 240 * NS_PER_S);
    }
}

static void test_what_is_not_possible(void **state)
{
    (void)state;
    const uint32_t one[] = {2}, none[] = {0, 0, 0};
    struct audit_cost cost;
    audit_cost_of(one, 1, BEAT_MS, &cost);
    assert_true(cost.matrix_ns == 0 && cost.pairs_ns == 0 && cost.rings_ns == 0);
    audit_cost_of(none, 3, BEAT_MS, &cost);
    assert_true(cost.matrix_ns == 0 && cost.pairs_ns == 0 && cost.packets == 0);
    audit_cost_of(NULL, 0, BEAT_MS, &cost);
    assert_true(cost.hosts == 0 && cost.matrix_ns == 0 && cost.pairs_ns == 0);
}

static double seconds(int64_t ns)
{
    return (double)ns / (double)NS_PER_S;
}

/* docs/audit.md names the times of eight hosts with two NICs. */
static void test_the_documentation(void **state)
{
    const uint32_t nics[8] = {2, 2, 2, 2, 2, 2, 2, 2};
    char lines[4][120], *text = NULL;
    size_t size = 0;
    struct audit_cost cost;
    FILE *file = fopen(*state, "r");
    assert_non_null(file);
    assert_true(getdelim(&text, &size, 0, file) > 0);
    fclose(file);
    audit_cost_of(nics, 8, BEAT_MS, &cost);
    snprintf(lines[0], sizeof(lines[0]), "| memory and pairs | %.1f s; %.1f s without RoCE |",
             seconds(cost.pairs_ns), seconds(cost.pairs_no_roce_ns));
    snprintf(lines[1], sizeof(lines[1]), "| fabric | %.1f s; %.1f s without `--nccl` |",
             seconds(cost.fabric_nccl_ns), seconds(cost.fabric_ns));
    snprintf(lines[2], sizeof(lines[2]), "| all hosts | %.1f s |", seconds(cost.rings_ns));
    snprintf(lines[3], sizeof(lines[3]), "| each round of the search | %.1f s, with the wait |",
             seconds(cost.round_ns));
    for (int i = 0; i < 4; i++) {
        if (strstr(text, lines[i]) == NULL) {
            fail_msg("not in the documentation: %s", lines[i]);
        }
    }
    free(text);
}

int main(int argc, char *argv[])
{
    if (argc != 2) {
        fputs("usage: test_audit_cost docs/audit.md\n", stderr);
        return 2;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_the_first_plan),
                                       cmocka_unit_test(test_the_matrix),
                                       cmocka_unit_test(test_what_is_not_possible),
                                       cmocka_unit_test_prestate(test_the_documentation, argv[1])};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
