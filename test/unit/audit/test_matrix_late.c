/* test_matrix_late.c: delays of a matrix that no NIC alone explains: between two leaves, and between two NICs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/audit/matrix_again.h"
#include "core/fleet/delay_code.h"

enum { HOSTS = 16, RAILS = 2, NICS = HOSTS * RAILS, LEAF_HOSTS = 4, BLOCK = 64 };

struct world {
    struct matrix m;
    void *memory;
    struct matrix_late late[MATRIX_LATE_MOST];
    int64_t more[NICS][NICS]; /* the planted delay */
};

static uint32_t leaf(uint32_t nic)
{
    return nic / RAILS / LEAF_HOSTS;
}

static struct world *begin(void)
{
    struct world *w = calloc(1, sizeof(*w));
    assert_non_null(w);
    return w;
}

/* 2 us within a leaf, 5 between leaves, and some noise. */
static uint32_t judge(struct world *w)
{
    const struct matrix_plan plan = {.hosts = HOSTS, .rails = RAILS, .packets = 5};
    uint64_t h = 7;
    w->memory = malloc(matrix_size(&plan));
    assert_non_null(w->memory);
    matrix_init(&w->m, &plan, w->memory);
    for (uint32_t i = 0; i < NICS; i++) {
        w->m.nics[i].leaf = (uint16_t)leaf(i);
        w->m.nics[i].told = true;
        w->m.nics[i].bound_ns = 100;
        for (uint32_t j = 0; j < NICS; j++) {
            if (i / RAILS != j / RAILS) {
                h = hash_u64(h, 3);
                const int64_t ns =
                    (leaf(i) == leaf(j) ? 2000 : 5000) + (int64_t)(h % 150) + w->more[i][j];
                w->m.sent[i * NICS + j] = w->m.heard[i * NICS + j] = 5;
                w->m.delay[i * NICS + j] = delay_encode(ns);
            }
        }
    }
    matrix_judge(&w->m, NULL);
    return matrix_late(&w->m, w->late);
}

static void done(struct world *w)
{
    free(w->memory);
    free(w);
}

static void test_nothing_is_late(void **state)
{
    struct world *w = begin();
    assert_int_equal(judge(w), 0);
    done(w);
}

static void plant_block(struct world *w, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < NICS; i++) {
        for (uint32_t j = 0; j < NICS; j++) {
            w->more[i][j] += leaf(i) == from && leaf(j) == to ? 6000 : 0;
        }
    }
}

static void test_a_block(void **state)
{
    struct world *w = begin();
    plant_block(w, 1, 2);
    assert_int_equal(judge(w), 1);
    const struct matrix_late *l = &w->late[0];
    assert_true(l->block);
    assert_int_equal(l->from, 1);
    assert_int_equal(l->to, 2);
    assert_int_equal(l->late, BLOCK);
    assert_int_equal(l->cells, BLOCK);
    assert_in_range(l->ns, 5500, 6500);
    assert_int_equal(l->from_late, 1);
    assert_int_equal(l->from_blocks, 3);
    assert_int_equal(l->to_late, 1);
    /* measured again: hosts of both leaves */
    bool doubted[HOSTS] = {false}, hosts[HOSTS];
    doubted[LEAF_HOSTS] = true;
    assert_true(matrix_again(&w->m, doubted, w->late, 1, hosts) >= 8);
    for (uint32_t h = LEAF_HOSTS; h < 3 * LEAF_HOSTS; h++) {
        assert_true(hosts[h]);
    }
    done(w);
}

/* Both directions of one pair of leaves: two blocks. */
static void test_both_ways(void **state)
{
    struct world *w = begin();
    plant_block(w, 0, 3);
    plant_block(w, 3, 0);
    assert_int_equal(judge(w), 2);
    assert_true(w->late[0].block && w->late[1].block);
    assert_int_equal(w->late[0].from, 0);
    assert_int_equal(w->late[1].from, 3);
    done(w);
}

static void test_a_cell(void **state)
{
    struct world *w = begin();
    w->more[5][20] = 30000;
    w->more[9][28] = 20000;
    assert_int_equal(judge(w), 2);
    assert_false(w->late[0].block || w->late[1].block);
    assert_int_equal(w->late[0].from, 5); /* the latest first */
    assert_int_equal(w->late[0].to, 20);
    assert_in_range(w->late[0].ns, 29000, 31000);
    assert_int_equal(w->late[1].from, 9);
    done(w);
}

/* One receiver reports that all packets of a leaf are late: that is one host's word. */
static void test_one_host_makes_no_block(void **state)
{
    struct world *w = begin();
    for (uint32_t i = 0; i < NICS; i++) {
        for (uint32_t j = 16; j < 18; j++) {
            w->more[i][j] = leaf(i) == 1 ? 6000 : 0;
        }
    }
    const uint32_t count = judge(w);
    assert_int_equal(count, MATRIX_LATE_CELLS);
    for (uint32_t k = 0; k < count; k++) {
        assert_false(w->late[k].block);
        assert_int_equal(w->late[k].to / RAILS, 8);
    }
    done(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_late), cmocka_unit_test(test_a_block),
        cmocka_unit_test(test_both_ways), cmocka_unit_test(test_a_cell),
        cmocka_unit_test(test_one_host_makes_no_block)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
