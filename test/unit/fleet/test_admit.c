/* May this host join? Bad values are reasons. Faults that aren't the host's own are none. What was not measured is unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bug.h"
#include "core/fleet/admit.h"

#define PEERS 6

/* Two NICs, PEERS peers, two ports: all of these in both directions, and paths among the peers. */
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

/* For each own path of this NIC in this direction. */
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
    assert_null(said(ADMIT_TAIL)); /* one reason isn't given twice */
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

/* The host is slower, but so are all others; or it is slower by less than the clocks can show. */
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
    fill(); /* three of the cohort's 24 paths are as slow: the host's own are still its fault */
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

/* If a quarter of everybody's ways are dead, it is the fabric. If nearly all of one NIC's are dead, it is that NIC. */
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
    assert_int_equal(reason_count, 5); /* compared with that it is well */
    turn = 0;
    EACH_OWN(0, true)
    {
        p->answered = turn++ % 4 == 0 ? 100 : 0;
    }
    assert_int_equal(judge(), ADMIT_NO);
    assert_int_equal(said(ADMIT_DEAD)->paths_bad, 9);
    assert_null(said(ADMIT_SHARED));
    fill(); /* across leaves all is well for others: dead paths within leaves are no excuse there */
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

/* Which path is the example, of paths in any order; and how many are alike. */
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
    /* a host that is well: the slowest of all its paths, within its leaf or not */
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

/* Near and far paths are judged separately: the limit of one kind doesn't apply to the other. */
static void near_paths_are_judged_by_near_ones(void **state)
{
    fill();
    for (uint32_t i = 0; i < 12; i++) {
        add(false, 0, false, 1000 + 10 * i);
        paths[count - 1].near = true;
    }
    EACH_OWN(1, true)
    {
        p->near = true; /* 4 us are well for a far path, and slow for a near one */
        p->owd_ns_p50 += 3000;
    }
    assert_int_equal(judge(), ADMIT_NO);
    assert_true(said(ADMIT_SLOW)->near);
    assert_in_range(said(ADMIT_SLOW)->cohort, 1000, 1120);
}

/* Sets all paths of the cohort alike, also those from the host's NIC 0. */
static void level_out(int64_t p50, int64_t p99)
{
    fill();
    for (uint32_t i = 0; i < count; i++) {
        paths[i].owd_ns_p50 = p50;
        paths[i].owd_ns_p99 = p99;
    }
}

static uint32_t reasons_of(uint32_t nic, bool out)
{
    uint32_t found = 0;
    for (size_t i = 0; i < reason_count; i++) {
        found += reasons[i].nic == nic && reasons[i].out == out;
    }
    return found;
}

/* A host may be half again as slow as the cohort, its tail three times, plus 2 and 20 us: up to there it is well. */
static void the_limit_itself_is_well(void **state)
{
    static const struct {
        int64_t p50, p99;
        enum admit_kind kind;
    } cases[] = {{7000, 7000, ADMIT_WELL},
                 {8000, 8000, ADMIT_WELL},
                 {8001, 8001, ADMIT_SLOW},
                 {4000, 41000, ADMIT_WELL},
                 {4000, 41001, ADMIT_TAIL}};
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        level_out(4000, 7000);
        EACH_OWN(0, true)
        {
            p->owd_ns_p50 = cases[i].p50;
            p->owd_ns_p99 = cases[i].p99;
        }
        assert_int_equal(judge(), admit_answer_of(cases[i].kind));
        assert_non_null(said(cases[i].kind));
    }
    uint32_t k = 0;
    level_out(4000, 7000); /* only paths beyond the limit count as slow */
    EACH_OWN(0, true)
    {
        p->owd_ns_p50 = k++ < 5 ? 8000 : 9000;
    }
    assert_int_equal(judge(), ADMIT_NO);
    assert_int_equal(said(ADMIT_SLOW)->paths_bad, k - 5);
    level_out(4000, 7000); /* what others' clocks can't show is no excuse */
    EACH_OWN(0, true)
    {
        p->bound_ns = 100000;
    }
    uint32_t widest = UINT32_MAX;
    EACH_OWN(1, true)
    {
        p->owd_ns_p50 = 90000;
        widest = widest == UINT32_MAX ? (uint32_t)(p - paths) : widest;
    }
    assert_int_equal(judge(), ADMIT_NO);
    paths[widest].bound_ns = 100000; /* its own can't show it: the widest counts */
    assert_int_equal(judge(), ADMIT_YES);
}

static enum admit_kind dead_of(uint32_t cohort_dead, uint32_t own_dead)
{
    level_out(4000, 7000);
    for (uint32_t i = 0; i < count; i++) {
        if (!paths[i].own && cohort_dead > 0) {
            paths[i].answered = 0;
            cohort_dead--;
        }
    }
    EACH_OWN(0, true)
    {
        p->answered = own_dead > 0 ? 0 : 100;
        own_dead -= own_dead > 0;
    }
    (void)judge();
    for (size_t i = 0; i < reason_count; i++) {
        if (reasons[i].kind == ADMIT_DEAD || reasons[i].kind == ADMIT_SHARED) {
            assert_false(reasons[i].near);
            return reasons[i].kind;
        }
    }
    return ADMIT_WELL;
}

/* Dead paths are its own fault beyond three times its cohort's share plus three, or beyond half of the ways that work for
 * others. */
static void how_many_dead_paths_are_its_own(void **state)
{
    static const struct {
        uint32_t cohort, own;
        enum admit_kind kind;
    } cases[] = {
        {0, 0, ADMIT_WELL},  {0, 1, ADMIT_DEAD},    {1, 4, ADMIT_SHARED}, /* 1 of 24: 4.5 of 12 */
        {1, 5, ADMIT_DEAD},  {12, 8, ADMIT_SHARED},                       /* half: 9 of 12 */
        {12, 9, ADMIT_DEAD}, {24, 12, ADMIT_DEAD},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(dead_of(cases[i].cohort, cases[i].own), cases[i].kind);
    }
    assert_int_equal(dead_of(0, 8), ADMIT_DEAD);
    EACH_OWN(0, true)
    {
        p->owd_ns_p50 = p->answered == 0 ? 90000 : 4000; /* of a round before: doesn't count */
    }
    assert_int_equal(judge(), ADMIT_NO);
    assert_null(said(ADMIT_SLOW));
    assert_int_equal(reasons_of(0, true), 1); /* and it isn't called well, too */
}

static void lose(uint32_t sent, int32_t own, int32_t cohort)
{
    level_out(4000, 7000);
    for (uint32_t i = 0; i < count; i++) {
        paths[i].sent = sent;
        paths[i].lost = paths[i].own ? 0 : cohort;
    }
    EACH_OWN(0, true)
    {
        p->lost = own;
    }
}

/* Three lost packets, more than one in a thousand, and more than twice the others' loss. */
static void how_much_loss_is_its_own(void **state)
{
    lose(100, 0, 0);
    paths[2].lost = ADMIT_LOST_MIN;
    assert_int_equal(judge(), ADMIT_NO);
    assert_int_equal(reason_count, 4); /* lossy, and not called well, too */
    lose(1000, 1, 0);                  /* 1000 ppm */
    assert_int_equal(judge(), ADMIT_YES);
    lose(999, 1, 0);
    assert_int_equal(judge(), ADMIT_NO);
    lose(100, 2, 1);
    assert_int_equal(judge(), ADMIT_YES);
    lose(100, 3, 1);
    assert_int_equal(judge(), ADMIT_NO);
    lose(100, 0, 0);
    paths[2].lost = -1; /* not known */
    assert_int_equal(judge(), ADMIT_YES);
    paths[2].measured = false; /* and what wasn't measured is not called anything */
    paths[2].lost = 50;
    assert_int_equal(judge(), ADMIT_UNKNOWN);
    assert_null(said(ADMIT_LOSSY));
}

/* The number of paths that weren't measured, with an example, is the only reason for that NIC and direction. */
static void what_is_missing_is_counted(void **state)
{
    static const enum admit_kind kinds[] = {ADMIT_UNMEASURED, ADMIT_TIMELESS};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        uint32_t k = 0, first = 0;
        fill();
        EACH_OWN(1, false)
        {
            if (k == 3 || k == 5) {
                first = k == 3 ? (uint32_t)(p - paths) : first;
                p->measured = kinds[i] != ADMIT_UNMEASURED;
                p->owd_ns_p50 = ADMIT_NO_DELAY;
            }
            k++;
        }
        assert_int_equal(judge(), ADMIT_UNKNOWN);
        assert_int_equal(said(kinds[i])->paths, k);
        assert_int_equal(said(kinds[i])->paths_bad, 2);
        assert_int_equal(said(kinds[i])->worst, first);
        assert_int_equal(reasons_of(1, false), 1);
    }
    fill(); /* nothing was sent there, so a missing answer shows nothing */
    paths[0].sent = paths[0].answered = 0;
    assert_int_equal(judge(), ADMIT_UNKNOWN);
    assert_null(said(ADMIT_DEAD));
    uint32_t k = 0, slowest = 0;
    fill(); /* alone: the measured ones are reported */
    EACH_OWN(0, true)
    {
        p->near = true;
        p->owd_ns_p50 += k == 6 ? 900 : 0;
        slowest = k++ == 6 ? (uint32_t)(p - paths) : slowest;
    }
    assert_int_equal(judge(), ADMIT_UNKNOWN);
    assert_int_equal(said(ADMIT_ALONE)->paths, k);
    assert_int_equal(said(ADMIT_ALONE)->worst, slowest);
    assert_int_equal(reasons_of(0, true), 1);
}

/* The slowest path of a NIC and direction is one of its own, by its median and not by its tail. */
static void well_names_its_own_slowest(void **state)
{
    for (int near = 0; near < 2; near++) {
        uint32_t k = 0, slowest = 0;
        level_out(4000, 7000);
        for (uint32_t i = 0; i < count; i++) {
            paths[i].near = near;
        }
        paths[0].owd_ns_p50 = 4900; /* another's */
        EACH_OWN(1, true)
        {
            p->owd_ns_p50 = k == 4 ? 4500 : 4000;
            p->owd_ns_p99 = k == 7 ? 9000 : 7000;
            slowest = k++ == 4 ? (uint32_t)(p - paths) : slowest;
        }
        assert_int_equal(judge(), ADMIT_YES);
        for (size_t i = 0; i < reason_count; i++) {
            const struct admit_path *worst = &paths[reasons[i].worst];
            assert_true(worst->own && worst->nic == reasons[i].nic && worst->out == reasons[i].out);
            if (reasons[i].nic == 1 && reasons[i].out) {
                assert_int_equal(reasons[i].worst, slowest);
            }
        }
    }
}

static void no_more_reasons_than_there_is_room_for(void **state)
{
    fill();
    memset(reasons, 0x55, sizeof(reasons));
    const struct admit_reason untouched = reasons[1];
    paths[count - 1].measured = false;
    EACH_OWN(1, true)
    {
        p->answered = 0;
    }
    assert_int_equal(admit_judge(paths, count, 2, scratch, reasons, 1, &reason_count), ADMIT_NO);
    assert_int_equal(reason_count, 1);
    assert_memory_equal(&reasons[1], &untouched, sizeof(untouched));
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
    fill(); /* nobody to compare with: near paths, and others have only far ones */
    EACH_OWN(0, true)
    {
        p->near = true;
    }
    assert_int_equal(judge(), ADMIT_UNKNOWN);
    assert_non_null(said(ADMIT_ALONE));
    count = 0;
    assert_int_equal(judge(), ADMIT_UNKNOWN);
    fill();
    paths[0].measured = false; /* a no stays a no */
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
        cmocka_unit_test(the_limit_itself_is_well),
        cmocka_unit_test(how_many_dead_paths_are_its_own),
        cmocka_unit_test(how_much_loss_is_its_own),
        cmocka_unit_test(what_is_missing_is_counted),
        cmocka_unit_test(well_names_its_own_slowest),
        cmocka_unit_test(no_more_reasons_than_there_is_room_for),
        cmocka_unit_test(a_dead_path_is_a_no),
        cmocka_unit_test(what_nobody_measured_is_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
