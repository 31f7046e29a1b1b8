/* The controller's rules: reports exactly once and in order; a silent host is never healthy; delays in two bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bug.h"
#include "base/prng.h"
#include "core/fleet/delay_code.h"
#include "core/fleet/freshness.h"
#include "core/fleet/level.h"
#include "core/fleet/member.h"
#include "core/fleet/report.h"
#include "core/fleet/rollout.h"

static void takes_each_once_in_order(void **state)
{
    struct report_cursor c = {0};
    uint64_t missing = 99;
    assert_int_equal(report_judge(&c, 7, 1, 1, &missing), REPORT_TAKE);
    assert_int_equal(missing, 0);
    assert_int_equal(report_judge(&c, 7, 2, 1, &missing), REPORT_TAKE);
    assert_int_equal(report_judge(&c, 7, 2, 1, NULL), REPORT_DUPLICATE);
    assert_int_equal(report_judge(&c, 7, 1, 1, NULL), REPORT_DUPLICATE);
    assert_int_equal(report_judge(&c, 7, 4, 3, NULL),
                     REPORT_AHEAD); /* 3 is there, and must come first */
    assert_int_equal(c.number, 2);
    assert_int_equal(report_judge(&c, 7, 6, 6, &missing), REPORT_TAKE_GAP);
    assert_int_equal(missing, 3);
    assert_int_equal(report_judge(&c, 8, 5, 3, NULL), REPORT_AHEAD);
    assert_int_equal(report_judge(&c, 8, 1, 1, &missing), REPORT_TAKE);
    struct report_cursor late = {.stream = 7, .number = 6}; /* a new stream, its first ones gone */
    assert_int_equal(report_judge(&late, 9, 5, 5, &missing), REPORT_TAKE_GAP);
    assert_int_equal(missing, 4);
    assert_int_equal(report_judge(&c, 0, 1, 1, NULL), REPORT_BAD);
    assert_int_equal(report_judge(&c, 8, 0, 0, NULL), REPORT_BAD);
    assert_int_equal(report_judge(&c, 8, 1, 2, NULL), REPORT_BAD);
    assert_int_equal(c.stream, 8);
}

/* An agent over a line that loses, repeats and cuts messages: reports 1..n are taken, each once. */
static void any_line_gives_the_same_history(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct report_cursor c = {0};
        uint64_t h = seed, taken = 0, acknowledged = 0, made = 0;
        while (taken < 300) {
            h = hash_u64(h, 1);
            made += h % 3;
            const uint64_t oldest = acknowledged + 1;
            for (uint64_t n = oldest; n <= made && n < oldest + (h >> 8) % 20; n++) {
                const enum report_verdict v = report_judge(&c, 5, n, oldest, NULL);
                if (v == REPORT_TAKE) {
                    assert_int_equal(n, taken + 1);
                    taken = n;
                } else {
                    assert_int_equal(v, REPORT_DUPLICATE);
                }
            }
            if ((h >> 20) % 3 != 0) { /* else the acknowledgement is lost */
                acknowledged = c.number;
            }
        }
    }
}

static void silence_is_never_health(void **state)
{
    const struct span beat = span_ms(2000), report = span_ms(10000);
    const struct mono heard = {1000};
    const struct {
        int64_t age_ms;
        enum freshness expected;
    } cases[] = {{0, FRESHNESS_LIVE},     {6000, FRESHNESS_LIVE},   {6001, FRESHNESS_LATE},
                 {30000, FRESHNESS_LATE}, {30001, FRESHNESS_STALE}, {9000000, FRESHNESS_STALE}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(
            freshness_of(mono_add(heard, span_ms(cases[i].age_ms)), heard, beat, report),
            cases[i].expected);
    }
    assert_int_equal(freshness_of((struct mono){5}, MONO_NEVER, beat, report), FRESHNESS_NEVER);
    /* beats that are slower than reports: three beats may be missed nevertheless */
    assert_int_equal(freshness_of(mono_add(heard, span_ms(30000)), heard, report, beat),
                     FRESHNESS_LIVE);
    assert_int_equal(freshness_of(mono_add(heard, span_ms(30001)), heard, report, beat),
                     FRESHNESS_STALE);
    assert_string_equal(freshness_word((enum freshness)(FRESHNESS_STALE + 1)), "never");
    assert_string_equal(health_word((enum health)(HEALTH_BAD + 1)), "unknown");
    struct health_facts f = {.freshness = FRESHNESS_LIVE, .reported = true, .clock_synced = true};
    assert_int_equal(health_of(&f), HEALTH_OK);
    f.findings = 1;
    assert_int_equal(health_of(&f), HEALTH_WARN);
    f.ports_down = 1;
    assert_int_equal(health_of(&f), HEALTH_BAD);
    f = (struct health_facts){
        .freshness = FRESHNESS_LIVE, .reported = true, .clock_synced = true, .nics_unwatched = 1};
    assert_int_equal(health_of(&f), HEALTH_WARN); /* unwatched is not well */
    for (enum freshness s = FRESHNESS_NEVER; s <= FRESHNESS_STALE; s++) {
        struct health_facts silent = {.freshness = s, .reported = true, .clock_synced = true};
        if (s == FRESHNESS_NEVER || s == FRESHNESS_STALE) {
            assert_int_equal(health_of(&silent), HEALTH_UNKNOWN);
        }
        silent.reported = false;
        assert_int_equal(health_of(&silent), HEALTH_UNKNOWN);
    }
    f = (struct health_facts){.freshness = FRESHNESS_LIVE, .reported = true};
    assert_int_equal(health_of(&f), HEALTH_UNKNOWN); /* an unknown clock is not well */
    f.clock_holdover = true;
    assert_int_equal(health_of(&f), HEALTH_WARN);
}

static void delays_keep_their_order_and_size(void **state)
{
    uint64_t h = 3;
    int32_t before = INT32_MIN;
    for (int64_t ns = -70; ns <= 200; ns++) {
        const int32_t code = delay_encode(ns);
        assert_int_not_equal(code, DELAY_CODE_NONE);
        assert_true(code >= before);
        before = code;
        if (ns > -64 && ns < 128) {
            assert_int_equal(delay_decode(code), ns);
        }
    }
    for (int i = 0; i < 200000; i++) {
        h = hash_u64(h, 2);
        const int64_t ns = (int64_t)(h >> (24 + h % 40)) * (h & 1 ? 1 : -1);
        const int64_t back = delay_decode(delay_encode(ns));
        const int64_t off = back > ns ? back - ns : ns - back, size = ns < 0 ? -ns : ns;
        assert_true(off * 64 <= size);
        assert_int_equal(delay_encode(back), delay_encode(ns));
    }
    assert_int_equal(delay_encode(INT64_MAX), DELAY_CODE_MAX);
    assert_int_equal(delay_encode(INT64_MIN), -DELAY_CODE_MAX);
    assert_true(delay_decode(INT32_MAX) > 0); /* any value from outside stays a number */
    assert_true(delay_decode(INT32_MIN) < 0);
}

static enum level_verdict round_of(struct level_state *s, int64_t second, int64_t value)
{
    static const struct level level = {
        .kind = LEVEL_OWD_P99, .limit = 10000, .hold = {30 * NS_PER_S}};
    level_begin(s);
    (void)level_add(s, &level, &(struct level_path){1, 2, 7640, value});
    (void)level_add(s, &level, &(struct level_path){3, 4, 7640, value < 0 ? -1 : 5000});
    (void)level_end(s, &level, (struct mono){second * NS_PER_S});
    return s->verdict;
}

static void a_level_is_met_or_broken_or_unknown(void **state)
{
    struct level_state s = {0};
    assert_int_equal(round_of(&s, 1, -1), LEVEL_UNKNOWN);
    assert_int_equal(round_of(&s, 2, 10000), LEVEL_MET);  /* a value at the limit is good */
    assert_int_equal(round_of(&s, 10, 10001), LEVEL_MET); /* a moment */
    assert_int_equal(round_of(&s, 20, 9000), LEVEL_MET);
    assert_int_equal(round_of(&s, 30, 94000), LEVEL_MET);
    assert_int_equal(round_of(&s, 59, 94000), LEVEL_MET);
    assert_int_equal(round_of(&s, 60, 94000), LEVEL_BROKEN);
    assert_int_equal(s.since.ns, 30 * NS_PER_S); /* since it began, not since its report */
    assert_int_equal(s.worst, 94000);
    assert_int_equal(s.worst_from, 1);
    assert_int_equal(s.beyond, 1);
    assert_int_equal(round_of(&s, 61, 100), LEVEL_BROKEN);
    assert_int_equal(round_of(&s, 91, 100), LEVEL_MET);
    assert_int_equal(round_of(&s, 92, -1), LEVEL_UNKNOWN); /* without reports it is never met */
    assert_int_equal(s.unmeasured, 2);
    assert_int_equal(round_of(&s, 93, 94000), LEVEL_BROKEN);
}

/* The paths that count, their number, and the named path. No loss and no hop are values like others. */
static void a_round_of_a_level_is_told(void **state)
{
    static const struct level level = {.kind = LEVEL_LOSS, .limit = 100, .hold = {0}};
    static const struct level_path paths[] = {
        {1, 2, 7640, 0}, {3, 4, 7641, 101}, {5, 6, 7642, 101}, {7, 8, 7643, -1}};
    static const bool beyond[] = {false, true, true, false};
    struct level_state s = {0};
    level_begin(&s);
    for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
        assert_int_equal(level_add(&s, &level, &paths[i]), beyond[i]);
    }
    assert_true(level_end(&s, &level, (struct mono){1}));
    assert_int_equal(s.verdict, LEVEL_BROKEN);
    assert_int_equal(s.paths, 4);
    assert_int_equal(s.unmeasured, 1);
    assert_int_equal(s.beyond, 2);
    assert_int_equal(s.worst_from, 3); /* the first of equal ones, the same in each round */
    assert_int_equal(s.worst_to, 4);
    assert_int_equal(s.worst_port, 7641);
    assert_false(level_end(&s, &level, (struct mono){2})); /* no news */
    assert_int_equal(s.since.ns, 1);
    level_begin(&s);
    assert_false(level_add(&s, &level, &paths[0]));
    assert_true(level_end(&s, &level, (struct mono){3}));
    assert_int_equal(s.verdict, LEVEL_MET); /* nothing was lost */
    assert_int_equal(s.paths, 1);
    assert_int_equal(s.unmeasured, 0);
    assert_int_equal(s.worst, 0);
}

static enum rollout_verdict judge(struct rollout_facts facts)
{
    const char *why = NULL;
    const enum rollout_verdict verdict = rollout_judge(&facts, &why);
    assert_int_equal(verdict == ROLLOUT_BAD, why != NULL);
    return verdict;
}

/* Another version draws others. The same version draws the same, in any order of the questions. */
static void canaries_are_drawn_by_version(void **state)
{
    struct rollout_lot one[40], other[40], again[40];
    uint32_t same = 0;

    for (uint32_t i = 0; i < 40; i++) {
        one[i] = other[i] = (struct rollout_lot){.id = 100 + i, .host = i};
        again[39 - i] = one[i];
    }
    assert_int_equal(rollout_draw(one, 40, 7, 10), 4);
    assert_int_equal(rollout_draw(other, 40, 8, 10), 4);
    assert_int_equal(rollout_draw(again, 40, 7, 10), 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(one[i].host, again[i].host);
        same += one[i].host == other[i].host;
    }
    assert_true(same < 4);
}

/* Each sign counts once. A worse state counts after a moment. If the state before was unknown, it isn't worse. A host that wasn't
 * heard since the start is neither worse nor restarted. A host without a report yet isn't worse. */
static void a_canary_gives_signs(void **state)
{
    const struct rollout_host well = {
        .heard = true, .judged = true, .run = 5, .freshness = FRESHNESS_LIVE, .health = HEALTH_OK};
    struct rollout_canary k = {.run = 5, .health = HEALTH_OK, .worse = MONO_NEVER};
    struct rollout_facts f = {.watch = span_s(60)};
    struct rollout_host is = well;

    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){0}));
    is.health = HEALTH_BAD;
    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){1 * NS_PER_S}));
    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){15 * NS_PER_S}));
    assert_true(rollout_on_canary(&f, &k, &is, (struct mono){16 * NS_PER_S}));
    is.health = HEALTH_OK;
    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){17 * NS_PER_S}));
    is.health = HEALTH_WARN; /* the moment begins again */
    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){20 * NS_PER_S}));
    assert_int_equal(f.worse, 1);
    is = well;
    is.freshness = FRESHNESS_STALE;
    is.health = HEALTH_UNKNOWN;
    assert_true(rollout_on_canary(&f, &k, &is, (struct mono){21 * NS_PER_S}));
    is = well;
    is.run = 6;
    assert_true(rollout_on_canary(&f, &k, &is, (struct mono){22 * NS_PER_S}));
    is.heard = is.judged = false;
    is.health = HEALTH_UNKNOWN;
    is.freshness = FRESHNESS_NEVER;
    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){90 * NS_PER_S}));
    is = well;
    is.refused = is.alerted = true;
    assert_true(rollout_on_canary(&f, &k, &is, (struct mono){91 * NS_PER_S}));
    assert_int_equal(f.hosts, 10);
    assert_int_equal(f.silent, 1);
    assert_int_equal(f.restarted, 1);
    assert_int_equal(f.refused, 1);
    assert_int_equal(f.alerted, 1);
    is = well; /* heard again by a controller that has just started */
    is.judged = false;
    is.health = HEALTH_UNKNOWN;
    const uint32_t unsure = f.unsure;
    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){91 * NS_PER_S}));
    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){150 * NS_PER_S}));
    assert_int_equal(f.unsure, unsure + 2);
    is.judged = true; /* the moment begins here */
    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){151 * NS_PER_S}));
    assert_int_equal(f.unsure, unsure + 3);
    assert_true(rollout_on_canary(&f, &k, &is, (struct mono){166 * NS_PER_S}));
    assert_int_equal(f.unsure, unsure + 3);
    is.health = HEALTH_OK;
    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){167 * NS_PER_S}));
    assert_int_equal(f.unsure, unsure + 3);
    k.health = HEALTH_UNKNOWN;
    is = well;
    is.health = HEALTH_BAD;
    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){92 * NS_PER_S}));
    assert_false(rollout_on_canary(&f, &k, &is, (struct mono){200 * NS_PER_S}));
}

static void canaries_decide(void **state)
{
    const struct rollout_facts good = {
        .hosts = 3, .confirmed = 3, .age = span_s(5), .watch = span_s(60)};
    struct rollout_facts f = good;
    assert_int_equal(judge(f), ROLLOUT_WAIT);
    f.confirmed = 0; /* it is early */
    assert_int_equal(judge(f), ROLLOUT_WAIT);
    f.age = f.watch; /* it is too late now */
    assert_int_equal(judge(f), ROLLOUT_BAD);
    f.confirmed = 3;
    assert_int_equal(judge(f), ROLLOUT_GOOD);
    f.unsure = 1; /* it may be worse */
    assert_int_equal(judge(f), ROLLOUT_WAIT);
    f.unsure = 0;
    for (int early = 0; early < 2; early++) {
        for (int sign = 0; sign < 6; sign++) {
            f = good;
            f.age = early ? span_s(0) : f.watch;
            uint32_t *const facts[] = {&f.refused, &f.silent, &f.restarted, &f.worse, &f.alerted};
            if (sign < 5) {
                *facts[sign] = 1;
            } else {
                f.hosts = f.confirmed = 0; /* all removed */
            }
            assert_int_equal(judge(f), ROLLOUT_BAD);
        }
    }
    assert_int_equal(rollout_count(0, 5), 0);
    assert_int_equal(rollout_count(3, 5), 1);
    assert_int_equal(rollout_count(100, 5), 5);
    assert_int_equal(rollout_count(101, 5), 6);
    assert_int_equal(rollout_count(7, 100), 7);
    assert_int_equal(rollout_count(12500, 0.001), 1);
}

static void refuse(struct member_nic nic, const char *why)
{
    char words[MEMBER_WORDS_SIZE] = "";
    assert_false(member_nic_good(&nic, words));
    assert_non_null(strstr(words, why));
    for (const char *p = words; *p != 0; p++) {
        assert_true(*p >= ' ' && *p <= '~');
    }
}

static void a_member_is_what_agents_take(void **state)
{
    static const uint8_t good4[4] = {10, 0, 0, 1}, none4[4], group4[4] = {224, 0, 0, 1},
                         all4[4] = {255, 255, 255, 255}, last4[4] = {223, 255, 255, 254};
    static const uint8_t good6[16] = {0x20, 1, [15] = 1}, none6[16], group6[16] = {0xff, 2},
                         local6[16] = {0xfe, 0xbf}, beside6[16] = {0xfe, 0xc0},
                         mapped6[16] = {[10] = 0xff, 0xff, 10, 0, 0, 1};
    char words[MEMBER_WORDS_SIZE];
    struct member_nic nic = {.interface = "eth0", .leaf = "", .address4 = good4};
    assert_true(member_nic_good(&nic, words));
    nic = (struct member_nic){.interface = "enp129s0f0np0.1",
                              .leaf = "row-3_b@x:1+y.z",
                              .address4 = last4,
                              .address6 = beside6,
                              .rail = 65534};
    assert_true(member_nic_good(&nic, words));
    assert_true(member_address6_good(good6));
    const struct member_nic good = nic;
    const char *const leaves[] = {"rack 12", "a\"b", "\x1b[2J", "\n", "caf\xc3\xa9", "a/b"};
    for (size_t i = 0; i < ARRAY_COUNT(leaves); i++) {
        nic = good;
        nic.leaf = leaves[i];
        refuse(nic, "leaf");
        nic = good;
        nic.interface = leaves[i];
        refuse(nic, "interface");
    }
    const uint8_t *const bad4[] = {none4, group4, all4}, *const bad6[] = {none6, group6, local6,
                                                                          mapped6};
    for (size_t i = 0; i < ARRAY_COUNT(bad4); i++) {
        nic = good;
        nic.address4 = bad4[i];
        refuse(nic, "IPv4");
    }
    for (size_t i = 0; i < ARRAY_COUNT(bad6); i++) {
        nic = good;
        nic.address6 = bad6[i];
        refuse(nic, "IPv6");
    }
    nic = good;
    nic.rail = 65535;
    refuse(nic, "rail");
    nic = good;
    nic.address4 = nic.address6 = NULL;
    refuse(nic, "address");
    nic = good;
    nic.interface = "sixteen-letters-";
    refuse(nic, "interface");
    nic = good;
    nic.interface = "";
    refuse(nic, "interface");
}

/* The operator's text: the expected value, and the found value as far as it can be printed. */
static void a_refusal_tells_what_was_found(void **state)
{
    static const uint8_t good4[4] = {10, 0, 0, 1};
    char words[MEMBER_WORDS_SIZE];
    struct member_nic nic = {.interface = "a ~\x7f\x1b", .leaf = "", .address4 = good4};
    assert_false(member_nic_good(&nic, words));
    assert_string_equal(words,
                        "expected an interface of 1 to 15 of [A-Za-z0-9._-@+:], found 'a ~?\?'");
    nic = (struct member_nic){
        .interface = "eth0",
        .leaf = "0123456789012345678901234567890123456789 and much more than an operator reads",
        .address4 = good4};
    assert_false(member_nic_good(&nic, words));
    assert_string_equal(words, "NIC eth0: expected a leaf of 1 to 63 of [A-Za-z0-9._-@+:], found "
                               "'0123456789012345678901234567890123456789'");
    nic.leaf = "rack12";
    assert_true(member_nic_good(&nic, words));
    assert_string_equal(words, ""); /* everything is right now */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_each_once_in_order),
        cmocka_unit_test(any_line_gives_the_same_history),
        cmocka_unit_test(silence_is_never_health),
        cmocka_unit_test(delays_keep_their_order_and_size),
        cmocka_unit_test(canaries_decide),
        cmocka_unit_test(canaries_are_drawn_by_version),
        cmocka_unit_test(a_canary_gives_signs),
        cmocka_unit_test(a_member_is_what_agents_take),
        cmocka_unit_test(a_refusal_tells_what_was_found),
        cmocka_unit_test(a_round_of_a_level_is_told),
        cmocka_unit_test(a_level_is_met_or_broken_or_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
