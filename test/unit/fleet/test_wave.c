/* Measurements on demand, for one host: its waves, its patience, which of its answers are taken, and which hosts can't take
 * part. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/limits.h"
#include "core/fleet/delay_code.h"
#include "core/fleet/wave.h"

static struct mono at(int64_t s)
{
    return (struct mono){s * NS_PER_S};
}

/* No wave is larger than an agent takes. The same wave is sent until it is done; then the next one, to the last pair. */
static void waves_follow_each_other(void **state)
{
    const struct wave_plan plan = {.ports = 4, .packets = 100, .rate = 500};
    struct wave_asker a = {.count = 200};
    uint32_t run = 1;

    (void)state;
    for (uint32_t left = 200; left > 0;) {
        const uint32_t wave = wave_next(&a, &plan, run, at(0));
        assert_true(wave > 0 && wave <= MEASURE_PAIR_MAX);
        assert_true(wave * plan.ports * plan.packets <= MEASURE_PACKET_MAX);
        assert_int_equal(wave_next(&a, &plan, run + 9, at(50)), wave);
        assert_int_equal(a.run, run);
        assert_int_equal(wave_packets(&a, &plan), (200 - left) * 400);
        wave_on_progress(&a, &plan, 7);
        assert_int_equal(wave_packets(&a, &plan), (200 - left) * 400 + 7);
        wave_on_progress(&a, &plan, UINT32_MAX); /* no more than there are */
        assert_int_equal(wave_packets(&a, &plan), (200 - left + wave) * 400);
        wave_on_done(&a);
        left -= wave;
        run++;
    }
    assert_int_equal(wave_next(&a, &plan, run, at(0)), 0);
    assert_int_equal(wave_left(&a, &plan, span_s(1)).ns, 0);
    const struct wave_plan small = {.ports = 1, .packets = 1, .rate = 500};
    struct wave_asker many = {.count = 1000};
    assert_int_equal(wave_next(&many, &small, 1, at(0)), MEASURE_PAIR_MAX);
}

/* The time that its packets take, one second, and the patience; from the moment when it was sent. */
static void patience_ends(void **state)
{
    const struct wave_plan plan = {.ports = 4, .packets = 100, .rate = 400};
    struct wave_asker a = {.count = 10};

    (void)state;
    assert_false(wave_is_late(&a, at(1000)));
    assert_int_equal(wave_next(&a, &plan, 1, at(5)), 10);
    assert_int_equal(wave_left(&a, &plan, span_s(2)).ns, 13 * NS_PER_S);
    wave_on_progress(&a, &plan, 2000);
    assert_int_equal(wave_left(&a, &plan, span_s(2)).ns, 8 * NS_PER_S);
    assert_false(wave_is_late(&a, at(5 + 10 + 1 + 20)));
    assert_true(wave_is_late(&a, (struct mono){at(5 + 10 + 1 + 20).ns + 1}));
    wave_give_up(&a);
    assert_false(wave_is_late(&a, at(1000)));
    assert_int_equal(wave_next(&a, &plan, 2, at(1000)), 0);
}

/* There are never more answers than packets, nor more packets than asked for. An impossible value counts as unknown. */
static void answers_are_taken_as_far_as_they_can_be_true(void **state)
{
    static const struct {
        struct wave_told told;
        struct wave_row row;
    } cases[] = {
        {{10, 10, 0, 100, 200}, {100, 200, 10, 10, 0, true, true}},
        {{10, 9, 1, 100, 200}, {100, 200, 10, 9, 1, true, true}},
        {{9000, 9000, 0, 100, 200}, {100, 200, 10, 10, 0, true, true}},
        {{5, 9, 0, 100, 200}, {100, 200, 5, 5, 0, true, true}},
        {{10, 10, 11, 100, 200}, {100, 200, 10, 10, 0, true, false}},
        {{10, 10, -1, 100, 200}, {100, 200, 10, 10, 0, true, false}},
        {{10, 0, 10, 100, 200}, {100, 200, 10, 0, 0, true, false}},
        {{0, 0, 0, 0, 0}, {0, 0, 0, 0, 0, false, false}},
        {{10, 10, 0, INT32_MAX, INT32_MIN},
         {DELAY_CODE_NONE, DELAY_CODE_NONE, 10, 10, 0, true, true}},
    };
    const struct wave_plan plan = {.ports = 1, .packets = 10, .rate = 500};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct wave_row is = wave_row(&plan, &cases[i].told), *due = &cases[i].row;
        assert_int_equal(is.p50, due->p50);
        assert_int_equal(is.p99, due->p99);
        assert_int_equal(is.sent, due->sent);
        assert_int_equal(is.answered, due->answered);
        assert_int_equal(is.lost, due->lost);
        assert_int_equal(is.measured, due->measured);
        assert_int_equal(is.lost_known, due->lost_known);
    }
}

static void who_cannot_take_part(void **state)
{
    const struct wave_host fit = {true, true, true, true, FRESHNESS_LATE};
    struct wave_host h = fit;

    (void)state;
    assert_null(wave_unfit(&h));
    h.timed = false;
    assert_non_null(strstr(wave_unfit(&h), "not in step"));
    h.able = false;
    assert_non_null(strstr(wave_unfit(&h), "too old"));
    h.freshness = FRESHNESS_STALE;
    assert_string_equal(wave_unfit(&h), "it is silent");
    h.reported = false;
    assert_string_equal(wave_unfit(&h), "it was not heard yet");
    h.member = false;
    assert_string_equal(wave_unfit(&h), "it is no member any more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waves_follow_each_other),
        cmocka_unit_test(patience_ends),
        cmocka_unit_test(answers_are_taken_as_far_as_they_can_be_true),
        cmocka_unit_test(who_cannot_take_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
