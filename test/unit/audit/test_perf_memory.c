/* test_perf_memory.c: hosts measure their memory, each alone and all at once. A host that looks slow measures again, and the
 * better result counts. Older agents are not asked. Also the size of the arrays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "app/perf/memory.h"
#include "core/audit/perf.h"
#include "platform/sysfs/sysfs.h"

#include "../file_tree.h"

enum { HOSTS = 8, OLD = 3, ODD = 5 };
#define NIC_RATE 50e6
#define MEMORY   400e9

struct world {
    double first, second; /* host ODD's share of the others' rate; 0: it fails then */
    uint8_t outcome;      /* of its first test; 0: done, or failed */
    bool off, goes;       /* goes: a job begins there after the first test */
    struct perf p;
    struct perf_host hosts[HOSTS];
    void *memory;
    uint32_t steps, asked[HOSTS];
    enum perf_outcome missing; /* of host ODD, in the first plan */
};

static void take(struct world *w, uint32_t step, uint32_t host)
{
    const struct perf_part *part = perf_part_of(&w->p, step, host);
    const bool memory = w->p.steps[step].kind == PERF_MEMORY;
    struct perf_result r = {.outcome = PERF_DONE, .rate = memory ? MEMORY : NIC_RATE, .runs = 5};
    if (part->ranks == 0) {
        return;
    }
    assert_true(memory ? part->ranks == 1 && part->rank == 0 && part->leader == host
                       : part->ranks >= 2);
    w->asked[host] += memory;
    if (memory && host == ODD) {
        const double share = w->asked[host] == 1 ? w->first : w->second;
        r.rate *= share;
        r.outcome = w->asked[host] == 1 && w->outcome != 0 ? w->outcome
                    : share > 0                            ? PERF_DONE
                                                           : PERF_FAILED;
    } else if (host == ODD && w->goes && w->p.stage == PERF_PAIRS) {
        r.outcome = PERF_BUSY;
    }
    perf_take(&w->p, step, host, &r);
}

static void play(struct world *w)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        w->hosts[i] = (struct perf_host){.nics = 1, .there = true, .memory = i != OLD};
    }
    w->memory = malloc(perf_size(HOSTS));
    const struct perf_config config = {
        .hosts = w->hosts, .count = HOSTS, .no_ways = true, .no_memory = w->off};
    assert_int_equal(perf_init(&w->p, &config, w->memory), 0);
    do {
        for (uint32_t step = 0; step < w->p.step_count; step++) {
            w->steps += w->p.steps[step].kind == PERF_MEMORY;
            for (uint32_t i = 0; i < HOSTS; i++) {
                take(w, step, i);
            }
        }
        w->missing = w->p.stage == PERF_PAIRS ? perf_missing(&w->p, ODD) : w->missing;
    } while (perf_next(&w->p));
}

static void each_measures_its_own(void **state)
{
    struct world w = {.first = 0.95};
    play(&w);
    assert_int_equal(w.steps, 1);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(w.asked[i], i != OLD);
        assert_int_equal(w.p.memory[i].best.outcome, i != OLD ? PERF_DONE : PERF_NOT_RUN);
        assert_int_equal(w.p.memory[i].runs, i != OLD ? 5 : 0);
        assert_false(perf_memory_doubted(&w.p, i));
    }
    free(w.memory);
}

static void a_slow_result_is_measured_again(void **state)
{
    static const struct {
        double second, best;
        bool doubted;
    } cases[] = {{0.8, 0.8, false}, {0.7, 0.8, false}, {1, 1, false}, {0, 0.8, true}};
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct world w = {.first = 0.8, .second = cases[c].second};
        play(&w);
        assert_int_equal(w.steps, 2);
        for (uint32_t i = 0; i < HOSTS; i++) {
            assert_int_equal(w.asked[i], i == OLD ? 0 : i == ODD ? 2 : 1);
        }
        assert_true(w.p.memory[ODD].best.rate == cases[c].best * MEMORY);
        assert_int_equal(w.p.memory[ODD].runs, cases[c].doubted ? 5 : 10);
        assert_int_equal(perf_memory_doubted(&w.p, ODD), cases[c].doubted);
        free(w.memory);
    }
}

/* It has no result. Its other tests run nevertheless. */
static void a_failed_test_stops_no_other(void **state)
{
    struct world w = {.first = 0};
    play(&w);
    assert_int_equal(w.steps, 1);
    assert_int_equal(w.p.memory[ODD].best.outcome, PERF_FAILED);
    assert_int_equal(w.missing, PERF_DONE);
    assert_true(perf_is_measured(&w.p, ODD, 0));
    assert_false(w.p.gone[ODD]);
    free(w.memory);
}

static void a_host_that_left_is_not_asked(void **state)
{
    struct world busy = {.first = 1, .outcome = PERF_BUSY};
    play(&busy);
    assert_true(busy.p.gone[ODD]);
    assert_int_equal(busy.p.memory[ODD].best.outcome, PERF_BUSY);
    free(busy.memory);
    struct world goes = {.first = 0.5, .second = 1, .goes = true};
    play(&goes);
    assert_int_equal(goes.asked[ODD], 1);
    assert_true(perf_memory_doubted(&goes.p, ODD));
    free(goes.memory);
}

static void a_switched_off_check_is_not_measured(void **state)
{
    struct world w = {.first = 1, .off = true};
    play(&w);
    assert_int_equal(w.steps, 0);
    free(w.memory);
}

/* ---- size of the arrays ---- */

static void write_cache(const struct file_tree *t, int processor, int index, const char *level,
                        const char *size, const char *shared)
{
    const char *const names[] = {"level", "size", "shared_cpu_list"},
                      *values[] = {level, size, shared};
    for (int i = 0; i < 3; i++) {
        char path[128], text[32];
        snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", processor,
                 index, names[i]);
        snprintf(text, sizeof(text), "%s\n", values[i]);
        file_tree_put(t, path, text);
    }
}

/* Two sockets of two processors. A cache that several share counts once. Unknown sizes are not guessed. */
static void the_last_caches_count_once(void **state)
{
    static const int all[] = {0, 1, 2, 3}, two[] = {1, 3}, one[] = {2}, missing[] = {0, 4};
    struct file_tree t;
    struct sysfs tree;
    file_tree_begin(&t);
    assert_int_equal(sysfs_open(&tree, t.top), 0);
    for (int cpu = 0; cpu < 4; cpu++) {
        write_cache(&t, cpu, 0, "1", "32K", "0");
        write_cache(&t, cpu, 1, "2", "1024K", "0");
        write_cache(&t, cpu, 2, "3", "32768K", cpu < 2 ? "0-1" : "2-3");
    }
    assert_int_equal(memory_cache_bytes(&tree, all, 4), 64 << 20);
    assert_int_equal(memory_cache_bytes(&tree, two, 2), 64 << 20);
    assert_int_equal(memory_cache_bytes(&tree, one, 1), 32 << 20);
    assert_int_equal(memory_cache_bytes(&tree, missing, 2), 0);
    write_cache(&t, 1, 2, "3", "many", "0-1");
    assert_int_equal(memory_cache_bytes(&tree, all, 4), 0);
    sysfs_close(&tree);
    file_tree_end(&t);
}

static void arrays_are_larger_than_caches(void **state)
{
    assert_int_equal(memory_bytes(32 << 20), 256 << 20);
    assert_true(memory_bytes((uint64_t)2304 << 20) >= (size_t)4 * 2304 << 20);
    assert_int_equal(memory_bytes(0), 0);
    assert_int_equal(memory_bytes((uint64_t)1 << 40), 0);
    assert_int_equal(memory_bytes(UINT64_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_measures_its_own),
        cmocka_unit_test(a_slow_result_is_measured_again),
        cmocka_unit_test(a_failed_test_stops_no_other),
        cmocka_unit_test(a_host_that_left_is_not_asked),
        cmocka_unit_test(a_switched_off_check_is_not_measured),
        cmocka_unit_test(the_last_caches_count_once),
        cmocka_unit_test(arrays_are_larger_than_caches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
