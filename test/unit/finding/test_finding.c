/* Every finding is one sentence with all its parts, and no buffer is too small for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/finding/finding.h"

static const char *nic_name(void *context, struct nic_id nic)
{
    return nic.index == 2 ? "host1/nic0" : nic.index == 10 ? "host5/nic0" : NULL;
}

static struct finding dead_path(void)
{
    struct finding f;

    finding_init(&f, FINDING_PATH_DEAD, (struct mono){5 * NS_PER_S});
    f.from = (struct nic_id){2};
    f.to = (struct nic_id){10};
    f.direction = DIRECTION_OUT;
    f.other = OTHER_FINE;
    f.path = 1;
    f.path_count = 4;
    f.source_port = 7641;
    f.signature = 0xabc;
    f.since_utc_ns = 1795231321LL * NS_PER_S + 123456789;
    f.since_fleet_ns = f.since_utc_ns + 5;
    f.rules_out = RULES_OUT_OWN_NIC | RULES_OUT_PEER_HOST;
    f.numbers[0] = 6;
    f.suspect.kind = ELEMENT_TRUNK;
    f.suspect.a = (struct place){.kind = PLACE_LEAF, .number = 0};
    f.suspect.b = (struct place){.kind = PLACE_SPINE, .number = 2};
    f.confident = 1;
    f.advice = ADVICE_CHECK_TRUNK;
    return f;
}

static void the_sentence(void **state)
{
    const struct finding_names names = {.nic = nic_name};
    const struct finding f = dead_path();
    char text[512];

    assert_true(finding_text(&f, &names, text, sizeof(text)) == strlen(text));
    assert_string_equal(
        text, "host1/nic0 -> host5/nic0, path 2 of 4 (port 7641, signature 0000000000000abc): "
              "silent black hole (6 probes proven lost), since 2026-11-21 03:22:01.123456 UTC; "
              "the other direction: fine; "
              "rules out: own NIC, peer host; suspect: trunk leaf0 - spine2; "
              "check optics and counters of the trunk at both ends");
}

static void unknown_is_said(void **state)
{
    struct finding f;
    char text[512];

    finding_init(&f, FINDING_LINK_FLAPPING, (struct mono){1});
    f.from = (struct nic_id){3};
    f.numbers[0] = 11;
    f.numbers[1] = 3600;
    f.numbers[2] = 8;
    finding_text(&f, NULL, text, sizeof(text));
    assert_non_null(
        strstr(text, "nic 3: link has flapped more than 8 times within the past hour: 11"));
    assert_non_null(strstr(text, ", since: UTC unknown (host clock 0.000000001);"));
    char placed[512], cut[40];
    (void)finding_text_by_receiver(text, 1795247001121727143, "the controller's", placed,
                                   sizeof(placed));
    assert_null(strstr(placed, "UTC unknown"));
    assert_non_null(strstr(placed, ": 11, since 2026-11-21 "));
    assert_non_null(strstr(placed, " UTC by the controller's clock; "));
    assert_non_null(strstr(placed, "suspect: unknown"));
    (void)finding_text_by_receiver(placed, 0, "nobody's", text, sizeof(text));
    assert_string_equal(text, placed); /* one that has its time keeps it */
    (void)finding_text_by_receiver(text, 0, "nobody's", cut, sizeof(cut));
    assert_int_equal(strlen(cut), sizeof(cut) - 1);
    assert_non_null(strstr(text, "suspect: unknown"));
}

static void every_kind_has_words_and_fits_any_size(void **state)
{
    char whole[1024], cut[1024];

    for (uint32_t kind = 0; kind < FINDING_KIND_COUNT + 2; kind++) {
        struct finding f = dead_path();
        f.kind = kind;
        const size_t length = finding_text(&f, NULL, whole, sizeof(whole));
        assert_true(length > 40 && length < sizeof(whole));
        for (size_t size = 0; size <= length + 1; size++) {
            memset(cut, '#', sizeof(cut));
            assert_true(finding_text(&f, NULL, cut, size) == length);
            assert_true(cut[size] == '#');
            if (size > 0) {
                assert_true(strncmp(cut, whole, size - 1) == 0 && cut[size - 1] == '\0');
            }
        }
    }
    for (uint32_t kind = 1; kind < FINDING_KIND_COUNT; kind++) {
        for (uint32_t other = 0; other < kind; other++) {
            assert_string_not_equal(finding_kind_word(kind), finding_kind_word(other));
        }
    }
}

static void addresses_name_routers_without_numbers(void **state)
{
    struct element e = {.kind = ELEMENT_ROUTER, .a = {.kind = PLACE_ROUTER, .number = UINT32_MAX}};
    char text[128];

    memcpy(e.a.address, (uint8_t[16]){0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 4, 1}, 16);
    element_text(&e, NULL, text, sizeof(text));
    assert_string_equal(text, "router 10.0.4.1");
}

/* Each kind with its numbers, in the words that operators read. */
static void what_of_every_kind(void **state)
{
    static const struct {
        enum finding_kind kind;
        int64_t numbers[4];
        const char *text;
    } cases[] = {
        {FINDING_LINK_DOWN, {7}, "link is down (down number 7 since the agent started)"},
        {FINDING_LINK_FLAPPING,
         {7, 8200, 3},
         "link has flapped more than 3 times within the past 8200 s: 7"},
        {FINDING_LINK_SPEED,
         {400, 400, 4, 2},
         "link speed went from 400 to 400 Mbit/s, width from 4 to 2 lanes"},
        {FINDING_LINK_SPEED, {400, 200, 4, 4}, "link speed went from 400 to 200 Mbit/s"},
        {FINDING_LINK_ERRORS, {7, 60}, "link has 7 errors within 60 s"},
        {FINDING_NIC_GONE, {0}, "NIC is gone"},
        {FINDING_PATH_DEAD, {0, 1, 1}, "silent black hole"},
        {FINDING_PATH_DEAD, {1, 1, 1}, "silent black hole (1 probes proven lost)"},
        {FINDING_PATH_DEAD,
         {7, 82, 3},
         "silent black hole (7 probes proven lost), 82 paths of 3 NIC pairs"},
        {FINDING_PATH_LOSSY, {0, 0, 1, 1}, "gray loss"},
        {FINDING_PATH_LOSSY,
         {7, 8200, 3, 4},
         "gray loss, 7 of 8200 probes lost (0.1 %), 3 paths of 4 NIC pairs"},
        {FINDING_PATH_SLOW,
         {7, 8200, -3, 4},
         "one-way delay went from 0.007 to 8.200 us, the other direction by "
         "-0.003 us (clock bound 0.004 us)"},
        {FINDING_PATH_FLAPPING, {7, 8200}, "path was dead 7 times within 8200 s"},
        {FINDING_PEER_SILENT, {7}, "nothing is heard for 7 ms"},
        {FINDING_CLOCK_DISRUPTED, {1, 0}, "clock is disrupted, its time must not be used"},
        {FINDING_CLOCK_DISRUPTED,
         {7, 8200},
         "clock is disrupted, its time must not be used (8.200 us)"},
        {FINDING_CLOCK_STEP, {-7}, "clock stepped by -0.007 us"},
        {FINDING_CLOCK_LIAR,
         {7, 8, 9},
         "clock lies or is broken: +0.007 us, say 8 of 9 neighbours asked"},
        {FINDING_CLOCK_ASYMMETRY, {7000}, "path is asymmetric by about 7.000 us"},
        {FINDING_SENSING_LATE, {7}, "this agent was 7 ms late and judged nothing meanwhile"},
        {FINDING_STAMPS_MISSING, {7, 8200}, "7 of 8200 transmit stamps are missing"},
        {FINDING_BAD_PACKETS, {7, 8200}, "8200 packets refused, the last one for its contents"},
        {FINDING_TWO_AGENTS, {0}, "somebody else sends with this NIC's id"},
        {FINDING_CLOCK_ASTRAY,
         {7, 8, 9},
         "clock has not been in step with the fleet for 7 s, while 8 of 9 neighbours are"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct finding f;
        char text[300];
        finding_init(&f, cases[i].kind, (struct mono){5});
        memcpy(f.numbers, cases[i].numbers, sizeof(f.numbers));
        finding_what_text(&f, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
}

static void a_closed_one_tells_how_long(void **state)
{
    struct finding f = dead_path();
    char text[512];

    f.phase = FINDING_CLOSED;
    f.ended_ns = f.since.ns + 1500 * NS_PER_MS;
    finding_text(&f, NULL, text, sizeof(text));
    assert_non_null(strstr(text, "123456 UTC, over after 1.500 s; the other"));
    f.suspect.kind = ELEMENT_TRUNK;
    f.confident = 0;
    finding_text(&f, NULL, text, sizeof(text));
    assert_non_null(strstr(text, "nic 2 -> nic 10, path 2 of 4"));
    assert_null(
        strstr(text, "suspect: trunk leaf0 - spine2; check")); /* a guess is said to be one */
    finding_init(&f, FINDING_LINK_FLAPPING, (struct mono){1});
    f.phase = FINDING_CLOSED;
    f.numbers[0] = 2;
    f.numbers[1] = 3600;
    finding_what_text(&f, text, sizeof(text));
    assert_string_equal(text, "link no longer flaps: 2 times within the past hour");
}

static void days_of_the_calendar(void **state)
{
    static const struct {
        int64_t s;
        const char *text;
    } days[] = {
        {0, "1970-01-01 00:00:00.123456"},          {-1, "1969-12-31 23:59:59.123456"},
        {951782400, "2000-02-29 00:00:00.123456"},  {951868800, "2000-03-01 00:00:00.123456"},
        {1709164800, "2024-02-29 00:00:00.123456"}, {1072915200, "2004-01-01 00:00:00.123456"},
        {4107542399, "2100-02-28 23:59:59.123456"}, {4107542400, "2100-03-01 00:00:00.123456"},
    };

    for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++) {
        char text[64];
        finding_time_text(days[i].s * NS_PER_S + 123456789, text, sizeof(text));
        assert_string_equal(text, days[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sentence),
        cmocka_unit_test(unknown_is_said),
        cmocka_unit_test(every_kind_has_words_and_fits_any_size),
        cmocka_unit_test(addresses_name_routers_without_numbers),
        cmocka_unit_test(what_of_every_kind),
        cmocka_unit_test(a_closed_one_tells_how_long),
        cmocka_unit_test(days_of_the_calendar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
