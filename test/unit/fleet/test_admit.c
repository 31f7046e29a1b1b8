/* May this host join? What is bad is said, what isn't the host's own fault isn't, and what nobody measured is unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/bug.h"
#include "core/fleet/admit.h"

#define PEERS 6

/* Two NICs, PEERS peers, two ports: both directions of all; and paths among the peers. */
static struct admit_path paths[400];
static uint32_t count;
static int64_t scratch[ARRAY_COUNT(paths)];
static struct admit_reason reasons[64];
static size_t reason_count;

static void add(bool own, uint32_t nic, bool out, int64_t p50)
{
    paths[count++] = (struct admit_path){.nic = nic,
                                         .own = own,
                                         .out = out,
                                         .measured = true,
                                         .sent = 100,
                                         .answered = 100,
                                         .bound_ns = 300,
                                         .owd_ns_p50 = p50,
                                         .owd_ns_p99 = p50 + 3000};
}

static void fill(void)
{
    count = 0;
    for (uint32_t peer = 0; peer < PEERS; peer++) {
        for (uint32_t k = 0; k < 8; k++) {
            add(true, k & 1, k & 2, 4000 + 50 * peer);
        }
        for (uint32_t k = 0; k < 4; k++) {
            add(false, 0, false, 4100 + 40 * peer + 10 * k);
        }
    }
}

static enum admit_answer judge(void)
{
    return admit_judge(paths, count, 2, scratch, reasons, ARRAY_COUNT(reasons), &reason_count);
}

static const struct admit_reason *said(enum admit_kind kind)
{
    for (size_t i = 0; i < reason_count; i++) {
        if (reasons[i].kind == kind) {
            return &reasons[i];
        }
    }
    return NULL;
}

/* Of own paths of this NIC and direction. */
#define EACH_OWN(n, o)                                                                             \
    for (struct admit_path *p = paths; p < paths + count; p++)                                     \
        if (p->own && p->nic == (n) && p->out == (o))

static void a_host_like_the_others_may(void **state)
{
    fill();
    assert_int_equal(judge(), ADMIT_YES);
    assert_int_equal(reason_count, 4);
    assert_non_null(said(ADMIT_WELL));
}

static void a_slow_direction_is_named(void **state)
{
    fill();
    EACH_OWN(1, true)
    {
        p->owd_ns_p50 += 90000;
        p->owd_ns_p99 += 90000;
    }
    assert_int_equal(judge(), ADMIT_NO);
    const struct admit_reason *r = said(ADMIT_SLOW);
    assert_non_null(r);
    assert_int_equal(r->nic, 1);
    assert_true(r->out);
    assert_int_equal(r->paths_bad, 2 * PEERS);
    assert_in_range(r->value, 94000, 95000);
    assert_in_range(r->cohort, 4100, 4400);
    assert_null(said(ADMIT_TAIL)); /* the same thing isn't said twice */
    assert_int_equal(reason_count, 4);
}

static void a_slow_tail_is_another_thing(void **state)
{
    fill();
    EACH_OWN(0, false)
    {
        p->owd_ns_p99 += 200000;
    }
    assert_int_equal(judge(), ADMIT_NO);
    assert_null(said(ADMIT_SLOW));
    assert_non_null(said(ADMIT_TAIL));
}

/* As much slower, but so is everybody; or by less than the clocks can tell. */
static void who_is_as_slow_as_all_is_not_blamed(void **state)
{
    fill();
    for (uint32_t i = 0; i < count; i++) {
        paths[i].owd_ns_p50 += 90000;
    }
    assert_int_equal(judge(), ADMIT_YES);
    fill();
    EACH_OWN(0, true)
    {
        p->owd_ns_p50 += 90000;
        p->bound_ns = 100000;
    }
    assert_int_equal(judge(), ADMIT_YES);
    fill(); /* three of the cohort's 24 paths are as slow: that it has such paths is its own */
    uint32_t slow = 0;
    for (uint32_t i = 0; i < count && slow < 3; i++) {
        if (!paths[i].own) {
            paths[i].owd_ns_p50 += 90000;
            slow++;
        }
    }
    EACH_OWN(0, true)
    {
        p->owd_ns_p50 += 80000;
    }
    assert_int_equal(judge(), ADMIT_YES);
}

/* What swallows a quarter of everybody's ways is the fabric; what swallows nearly all of one NIC's is that NIC. */
static void dead_paths_count_beside_the_cohorts(void **state)
{
    uint32_t turn = 0;
    fill();
    for (uint32_t i = 0; i < count; i++) {
        if (!paths[i].own && turn++ % 4 == 0) {
            paths[i].answered = 0;
        }
    }
    turn = 0;
    EACH_OWN(0, true)
    {
        p->answered = turn++ % 4 == 0 ? 0 : 100;
    }
    assert_int_equal(judge(), ADMIT_YES);
    assert_int_equal(said(ADMIT_SHARED)->paths_bad, 3);
    assert_int_equal(said(ADMIT_SHARED)->cohort, 250000);
    assert_int_equal(reason_count, 5); /* beside it, it is well */
    turn = 0;
    EACH_OWN(0, true)
    {
        p->answered = turn++ % 4 == 0 ? 100 : 0;
    }
    assert_int_equal(judge(), ADMIT_NO);
    assert_int_equal(said(ADMIT_DEAD)->paths_bad, 9);
    assert_null(said(ADMIT_SHARED));
    fill(); /* across leaves all is well for others: what is dead there isn't excused by what is dead on leaves */
    for (uint32_t i = 0; i < count; i++) {
        paths[i].near = !paths[i].own;
        paths[i].answered = paths[i].own ? 100 : 0;
    }
    add(false, 0, false, 4000);
    paths[0].answered = 0;
    assert_int_equal(judge(), ADMIT_NO);
    assert_int_equal(said(ADMIT_DEAD)->cohort, 0);
}

static void loss_counts_beside_the_cohorts(void **state)
{
    fill();
    EACH_OWN(0, false)
    {
        p->lost = 2;
        p->answered = 98;
    }
    assert_int_equal(judge(), ADMIT_NO);
    assert_int_equal(said(ADMIT_LOSSY)->value, 20000);
    assert_int_equal(said(ADMIT_LOSSY)->cohort, 0);
    for (uint32_t i = 0; i < count; i++) {
        paths[i].lost = 2;
    }
    assert_int_equal(judge(), ADMIT_YES);
    fill();
    paths[0].lost = ADMIT_LOST_MIN - 1; /* chance */
    assert_int_equal(judge(), ADMIT_YES);
}

/* Which path shows it, out of paths in no order; and how many are alike. */
static void the_worst_path_is_named(void **state)
{
    static const int64_t far_ns[] = {90000, 40000, 95000, 30000, 99000, 50000,
                                     97000, 60000, 98000, 20000, 96000, 10000};
    uint32_t k = 0, slowest = 0;
    fill();
    EACH_OWN(1, true)
    {
        p->owd_ns_p50 = far_ns[k];
        p->owd_ns_p99 = p->owd_ns_p50 + 3000;
        slowest = k == 4 ? (uint32_t)(p - paths) : slowest;
        k++;
    }
    assert_int_equal(k, ARRAY_COUNT(far_ns));
    assert_int_equal(judge(), ADMIT_NO);
    assert_int_equal(said(ADMIT_SLOW)->worst, slowest);
    assert_int_equal(said(ADMIT_SLOW)->paths, k);
    assert_int_equal(said(ADMIT_SLOW)->paths_bad, k);
    assert_in_range(said(ADMIT_SLOW)->value, 60000, 90000); /* the middle ones */
    fill();
    k = 0;
    EACH_OWN(0, true)
    {
        p->lost = (int32_t)(k == 3 ? 9 : k % 2);
        slowest = k == 3 ? (uint32_t)(p - paths) : slowest;
        k++;
    }
    assert_int_equal(judge(), ADMIT_NO);
    assert_int_equal(said(ADMIT_LOSSY)->worst, slowest);
    assert_int_equal(said(ADMIT_LOSSY)->paths, k);
    assert_int_equal(said(ADMIT_LOSSY)->paths_bad, k / 2);
    assert_int_equal(said(ADMIT_LOSSY)->value, (9 + k / 2 - 1) * 1000000 / (100 * k));
    /* a host that is well: the slowest of all its paths, on its own leaf or not */
    for (int near_is_slowest = 0; near_is_slowest < 2; near_is_slowest++) {
        fill();
        k = 0;
        EACH_OWN(0, true)
        {
            p->near = k < 4;
            p->owd_ns_p50 += near_is_slowest == (k == 2) && (k == 2 || k == 7) ? 900 : 0;
            slowest = k == (near_is_slowest ? 2 : 7) ? (uint32_t)(p - paths) : slowest;
            k++;
        }
        for (uint32_t i = 0; i < 6; i++) {
            add(false, 0, false, 4100);
            paths[count - 1].near = true;
        }
        assert_int_equal(judge(), ADMIT_YES);
        for (size_t i = 0; i < reason_count; i++) {
            if (reasons[i].nic == 0 && reasons[i].out) {
                assert_int_equal(reasons[i].kind, ADMIT_WELL);
                assert_int_equal(reasons[i].paths, k);
                assert_int_equal(reasons[i].worst, slowest);
                assert_int_equal(reasons[i].value, paths[slowest].owd_ns_p50);
            }
        }
    }
}

/* Near and far paths are of two kinds: the one kind's limit says nothing of the other's paths. */
static void near_paths_are_judged_by_near_ones(void **state)
{
    fill();
    for (uint32_t i = 0; i < 12; i++) {
        add(false, 0, false, 1000 + 10 * i);
        paths[count - 1].near = true;
    }
    EACH_OWN(1, true)
    {
        p->near = true; /* 4 us are well beside far ones, and slow beside near ones */
        p->owd_ns_p50 += 3000;
    }
    assert_int_equal(judge(), ADMIT_NO);
    assert_true(said(ADMIT_SLOW)->near);
    assert_in_range(said(ADMIT_SLOW)->cohort, 1000, 1120);
}

static void a_dead_path_is_a_no(void **state)
{
    fill();
    paths[3].answered = 0;
    paths[3].lost = -1;
    paths[3].owd_ns_p50 = paths[3].owd_ns_p99 = ADMIT_NO_DELAY;
    assert_int_equal(judge(), ADMIT_NO);
    assert_int_equal(said(ADMIT_DEAD)->worst, 3);
    assert_int_equal(said(ADMIT_DEAD)->paths_bad, 1);
}

static void what_nobody_measured_is_unknown(void **state)
{
    fill();
    paths[0].measured = false;
    assert_int_equal(judge(), ADMIT_UNKNOWN);
    assert_non_null(said(ADMIT_UNMEASURED));
    fill();
    paths[0].owd_ns_p50 = ADMIT_NO_DELAY;
    assert_int_equal(judge(), ADMIT_UNKNOWN);
    assert_non_null(said(ADMIT_TIMELESS));
    fill(); /* a NIC without any path */
    assert_int_equal(
        admit_judge(paths, count, 3, scratch, reasons, ARRAY_COUNT(reasons), &reason_count),
        ADMIT_UNKNOWN);
    fill(); /* nobody to compare with: near ones among far ones */
    EACH_OWN(0, true)
    {
        p->near = true;
    }
    assert_int_equal(judge(), ADMIT_UNKNOWN);
    assert_non_null(said(ADMIT_ALONE));
    count = 0;
    assert_int_equal(judge(), ADMIT_UNKNOWN);
    fill();
    paths[0].measured = false; /* a no stays one */
    paths[1].answered = 0;
    assert_int_equal(judge(), ADMIT_NO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_host_like_the_others_may),
        cmocka_unit_test(a_slow_direction_is_named),
        cmocka_unit_test(a_slow_tail_is_another_thing),
        cmocka_unit_test(who_is_as_slow_as_all_is_not_blamed),
        cmocka_unit_test(dead_paths_count_beside_the_cohorts),
        cmocka_unit_test(loss_counts_beside_the_cohorts),
        cmocka_unit_test(the_worst_path_is_named),
        cmocka_unit_test(near_paths_are_judged_by_near_ones),
        cmocka_unit_test(a_dead_path_is_a_no),
        cmocka_unit_test(what_nobody_measured_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
