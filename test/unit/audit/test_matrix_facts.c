/* test_matrix_facts.c: two matrices of an audit become facts of each host, by which it is judged. A host fails if both matrices
 * show the same fault to two or more partners. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "judge_kit.h"
#include "service/audit/sheet.h"
#include "service/controller/audit/matrix.h"

enum { PACKETS = 5, HOSTS = 8, RAILS = 2, LEAF_HOSTS = 4, VICTIM = 2, STRAY = 6, LIAR = 7 };

/* Of the packets from the victim to these hosts so many are lost on the first rail. */
static struct audit_matrix *matrix_of(const uint32_t *hosts, uint32_t count,
                                      const uint8_t lost[HOSTS])
{
    struct audit_matrix *x = calloc(1, sizeof(*x));
    assert_non_null(x);
    x->plan = (struct matrix_plan){.hosts = count,
                                   .rails = RAILS,
                                   .packets = PACKETS,
                                   .begin_ns = NS_PER_S,
                                   .round_ns = 100 * NS_PER_MS,
                                   .gap_ns = 10 * NS_PER_MS,
                                   .seed = 7};
    matrix_plan_ready(&x->plan);
    assert_int_equal(audit_matrix_claim(x), 0);
    const uint32_t rounds = matrix_rounds(&x->plan);
    uint8_t *sent = calloc(rounds, 1), *heard = calloc(rounds, 1);
    int16_t *delay = calloc(rounds, sizeof(*delay));
    assert_true(sent != NULL && heard != NULL && delay != NULL);
    for (uint32_t i = 0; i < count * RAILS; i++) {
        const uint32_t host = hosts[i / RAILS], rail = i % RAILS;
        x->hosts[i / RAILS] = 100 + host;
        snprintf(x->names[i / RAILS], sizeof(x->names[0]), "host%u", host);
        x->places[i].id = 1 + host * RAILS + rail;
        snprintf(x->places[i].name, sizeof(x->places[i].name), "nic%u", rail);
        x->m.nics[i].there = true;
        x->m.nics[i].leaf = audit_leaf_number(&x->leaves, host < LEAF_HOSTS ? "leaf0" : "leaf1");
        for (uint32_t k = 0; k < rounds; k++) {
            const uint32_t other = matrix_partner(&x->plan, k, i);
            const bool hit = rail == 0 && other != MATRIX_NONE && other % RAILS == 0 &&
                             hosts[other / RAILS] == VICTIM;
            sent[k] = PACKETS;
            heard[k] = (uint8_t)(PACKETS - (hit ? lost[host] : 0));
            delay[k] = 100;
        }
        assert_int_equal(matrix_take(&x->m, i, sent, heard, delay, rounds, 0), 0);
    }
    free(sent);
    free(heard);
    free(delay);
    return x;
}

/* Each host's facts from the first matrix, or from the second one where that decides. */
static void judge_look(struct audit *a, struct sheet sheets[HOSTS],
                       const struct audit_matrix *first, const struct audit_matrix *second,
                       const bool measured[HOSTS])
{
    for (uint32_t h = 0; h < HOSTS; h++) {
        sheets[h] = (struct sheet){.host = first->names[h]};
        assert_int_equal(
            audit_matrix_facts(measured[h] ? second : first, first->hosts[h], &sheets[h]), 0);
        sheet_finish(&sheets[h]);
    }
    judge_sheets(a, sheets, HOSTS);
}

static void end_look(struct audit *a, struct sheet sheets[HOSTS])
{
    for (uint32_t h = 0; h < HOSTS; h++) {
        free(sheets[h].facts);
    }
    judge_done(a);
}

/* Counts failures of the victim, and of all others, by a path that both looks measured. */
static void two_looks(uint8_t lost[2][HOSTS], uint32_t *ret_victim, uint32_t *ret_others)
{
    static const uint32_t all[HOSTS] = {0, 1, 2, 3, 4, 5, 6, 7},
                          some[] = {0, VICTIM, 5, STRAY, LIAR};
    static const bool looked[HOSTS] = {true, true, true, true, true, true, true, true};
    struct audit_matrix *first = matrix_of(all, HOSTS, lost[0]),
                        *second = matrix_of(some, 5, lost[1]);
    bool measured[HOSTS] = {false};
    struct sheet sheets[2][HOSTS];
    struct audit a, b;
    uint32_t count = 0;
    assert_int_equal(audit_matrix_judge(first, NULL), 0);
    assert_int_equal(audit_matrix_judge_again(second, first), 0);
    judge_look(&a, sheets[0], first, NULL, measured);
    struct audit_failure *failures = calloc(a.count + 1, sizeof(*failures));
    assert_non_null(failures);
    for (uint32_t i = 0; i < a.count; i++) {
        if (audit_failure_of(&a.results[i], &failures[count])) {
            measured[a.results[i].sheet] = true;
            count++;
        }
    }
    assert_true(measured[VICTIM]);
    judge_look(&b, sheets[1], first, second, measured);
    audit_confirm_first(&b, failures, count, &(struct audit_again){looked, measured});
    *ret_victim = *ret_others = 0;
    for (uint32_t i = 0; i < b.count; i++) {
        const struct audit_result *r = &b.results[i];
        assert_true(r->status != AUDIT_FAIL || strcmp(r->check->id, "be.matrix.path") == 0);
        *ret_victim += r->status == AUDIT_FAIL && r->sheet == VICTIM;
        *ret_others += r->status == AUDIT_FAIL && r->sheet != VICTIM;
    }
    free(failures);
    end_look(&a, sheets[0]);
    end_look(&b, sheets[1]);
    audit_matrix_free(first);
    audit_matrix_free(second);
}

/* One host reports a dead path of the victim in both looks. If one packet to another host is lost by chance, in one look, the
 * victim must not fail. If a second host has the same in both looks, it must. */
static void test_two_looks(void **state)
{
    static const struct {
        uint8_t liar, stray[2];
        uint32_t fails;
    } cases[] = {{4, {0, 0}, 0}, {4, {1, 0}, 0}, {4, {0, 1}, 0}, {1, {1, 1}, 2}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        uint8_t lost[2][HOSTS] = {{0}, {0}};
        uint32_t victim, others;
        for (int look = 0; look < 2; look++) {
            lost[look][LIAR] = cases[k].liar;
            lost[look][STRAY] = cases[k].stray[look];
        }
        two_looks(lost, &victim, &others);
        assert_int_equal(victim, cases[k].fails);
        assert_int_equal(others, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_two_looks)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
