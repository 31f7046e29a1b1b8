/* Every finding is one sentence with all its parts, and no buffer is too small for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock/clock.h"
#include "core/finding/finding.h"
#include "core/link/verbs_port.h"

static const char *nic_name(void *context, struct nic_id nic)
{
    return nic.index == 2 ? "host1/nic0" : nic.index == 10 ? "host5/nic0" : NULL;
}

static const char *host_name(void *context, struct host_id host)
{
    return host.index == 1 ? "host1" : host.index == 5 ? "host5" : NULL;
}

static const char *port_name(void *context, struct nic_id nic)
{
    return nic.index == 2 ? "leaf0 port 7" : NULL;
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
    const struct finding_names of_controller = {.receiver = "the controller's",
                                                .received_since_ns = 1795247001121727143};
    finding_text(&f, &of_controller, text, sizeof(text));
    assert_null(strstr(text, "UTC unknown"));
    assert_non_null(strstr(text, ": 11, since 2026-11-21 "));
    assert_non_null(strstr(text, " UTC by the controller's clock; "));
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

/* Each kind with its numbers, in the operators' words. */
static void the_sentence_of_each_kind(void **state)
{
    static const struct {
        enum finding_kind kind;
        int64_t numbers[4];
        const char *text;
    } cases[] = {
        {FINDING_LINK_DOWN, {7}, "link is down (7 times since the agent started)"},
        {FINDING_LINK_FLAPPING,
         {7, 8200, 3},
         "link has flapped more than 3 times within the past 8200 s: 7"},
        {FINDING_LINK_SPEED,
         {400, 400, 4, 2},
         "link speed went from 400 to 400 Mbit/s, width from 4 to 2 lanes"},
        {FINDING_LINK_SPEED, {400, 200, 4, 4}, "link speed went from 400 to 200 Mbit/s"},
        {FINDING_LINK_ERRORS, {7, 60}, "link has 7 errors within 60 s"},
        {FINDING_NIC_GONE, {0}, "NIC is gone"},
        {FINDING_RDMA_PORT, {VERBS_V1_ONLY}, "RDMA port has GIDs of RoCE v1 only"},
        {FINDING_RDMA_PORT, {VERBS_MTU, 1024, 4096}, "MTU of the RDMA port is 1024, expected 4096"},
        {FINDING_RDMA_PORT,
         {VERBS_CABLE, 12},
         "RDMA port has 12 errors of its cable within a minute"},
        {FINDING_RDMA_PORT,
         {VERBS_GID_MOVED, 6, 5},
         "GID of the RDMA port moved from index 5 to 6"},
        {FINDING_RDMA_PORT,
         {VERBS_CLASS, 5300000, 310000, 104},
         "RDMA packets of the job's class (DSCP 26) take 5.300 ms, unmarked ones between the same "
         "ports 0.310 ms"},
        {FINDING_RDMA_PORT,
         {VERBS_CLASS, -1, 310000, 104},
         "RDMA packets of the job's class (DSCP 26) don't come, unmarked ones do"},
        {FINDING_RDMA_PORT, {-1}, "RDMA port has a trouble of a newer agent"},
        {FINDING_RDMA_PORT, {99}, "RDMA port has a trouble of a newer agent"},
        {FINDING_PATH_DEAD, {0, 1, 1}, "silent black hole"},
        {FINDING_PATH_DEAD, {1, 1, 1}, "silent black hole (1 probe proven lost)"},
        {FINDING_PATH_DEAD,
         {7, 82, 3},
         "silent black hole (7 probes proven lost), 82 paths of 3 NIC pairs"},
        {FINDING_PATH_DEAD, {7, 82, 1}, "silent black hole (7 probes proven lost), 82 paths"},
        {FINDING_PATH_DEAD, {7, 1, 3}, "silent black hole (7 probes proven lost) of 3 NIC pairs"},
        {FINDING_PATH_LOSSY, {0, 0, 1, 1}, "packets are lost"},
        {FINDING_PATH_LOSSY,
         {7, 8200, 3, 4},
         "packets are lost, 7 of 8200 probes (0.1 %), 3 paths of 4 NIC pairs"},
        {FINDING_PATH_SLOW,
         {7, 8200, -3, 4},
         "one-way delay went from 0.007 to 8.200 us, the other direction by "
         "-0.003 us (clock bound 0.004 us)"},
        {FINDING_PATH_NARROW,
         {180800, 10100, 12, 3},
         "a link has only some 10 Mb/s: packets sent back to back arrive 180.800 us apart, usually "
         "10.100, 12 paths of 3 NIC pairs"},
        {FINDING_PATH_FLAPPING, {7, 8200}, "path was dead 7 times within 8200 s"},
        {FINDING_PEER_SILENT, {7}, "nothing is heard for 7 ms"},
        {FINDING_CLOCK_DISRUPTED, {0}, "clock is disrupted, its time must not be used"},
        {FINDING_CLOCK_DISRUPTED,
         {0, 0, CLOCK_FAULT_SUSPEND},
         "clock is disrupted, its time must not be used: the host was suspended"},
        {FINDING_CLOCK_DISRUPTED,
         {4, 8200, CLOCK_FAULT_GUARD},
         "clock is disrupted, its time must not be used: another clock of this host contradicts it "
         "(8.200 us)"},
        {FINDING_CLOCK_DISRUPTED,
         {3},
         "clock is disrupted, its time must not be used"}, /* of an old agent */
        {FINDING_CLOCK_DISRUPTED, {0, 0, 77}, "clock is disrupted, its time must not be used"},
        {FINDING_CLOCK_STEP, {-7}, "clock stepped by -0.007 us"},
        {FINDING_CLOCK_STEP,
         {5000200000, 1},
         "clock stood still for 5000.200 ms, as if this virtual machine had been paused or moved"},
        {FINDING_CLOCK_LIAR,
         {7, 8, 9},
         "clock is wrong by +0.007 us, as 8 of 9 neighbours measure it"},
        {FINDING_CLOCK_ASYMMETRY, {7000}, "path is asymmetric by about 7.000 us"},
        {FINDING_SENSING_LATE, {7}, "this agent was 7 ms late and judged nothing meanwhile"},
        {FINDING_STAMPS_MISSING, {7, 8200}, "7 of 8200 transmit stamps are missing"},
        {FINDING_STAMPS_MISSING,
         {70, 82, 1000},
         "70 stamps of 82 packets may be off by more than 1000 ns: they make no fleet time"},
        {FINDING_BAD_PACKETS, {7, 8200}, "8200 packets refused, the last one for its contents"},
        {FINDING_TWO_AGENTS, {0}, "another agent sends with this NIC's id"},
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

/* The hosts and elements of a finding: with the fleet file's names, without them, and with some of them. */
static void both_ends_by_their_names(void **state)
{
    static const struct finding_names none = {0}, all = {.nic = nic_name, .host = host_name};
    const struct {
        struct nic_id from, to;
        struct host_id from_host, to_host;
        const struct finding_names *names;
        const char *text;
    } cases[] = {
        {{2}, {10}, {1}, {5}, &all, "host1/nic0 -> host5/nic0: "},
        {NIC_NONE, NIC_NONE, {1}, {5}, &all, "host1 -> host5: "},
        {NIC_NONE, {3}, {1}, {7}, &all, "host1 -> nic 3: "},
        {{3}, NIC_NONE, {1}, {7}, &all, "nic 3 -> host 7: "},
        {NIC_NONE, NIC_NONE, {1}, {5}, NULL, "host 1 -> host 5: "},
        {NIC_NONE, NIC_NONE, {1}, {5}, &none, "host 1 -> host 5: "},
        {{2}, {10}, {1}, {5}, &none, "nic 2 -> nic 10: "},
        {NIC_NONE, NIC_NONE, HOST_NONE, HOST_NONE, &all, "this host: "},
        {NIC_NONE, NIC_NONE, {1}, HOST_NONE, &all, "host1: "},
        {NIC_NONE, {10}, HOST_NONE, HOST_NONE, &all, "this host -> host5/nic0: "},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct finding f;
        char text[300];
        finding_init(&f, FINDING_PATH_DEAD, (struct mono){5});
        f.from = cases[i].from;
        f.to = cases[i].to;
        f.from_host = cases[i].from_host;
        f.to_host = cases[i].to_host;
        finding_text(&f, cases[i].names, text, sizeof(text));
        assert_memory_equal(text, cases[i].text, strlen(cases[i].text));
    }
}

/* Boxes by name, by number, by address, or nearly unknown. */
static void suspects_in_words(void **state)
{
    static const struct finding_names names = {
        .nic = nic_name, .host = host_name, .port = port_name};
    static const struct {
        struct element e;
        const char *text;
    } cases[] = {
        {{.kind = ELEMENT_UNKNOWN}, "unknown"},
        {{.kind = 99}, "unknown"},
        {{.kind = ELEMENT_HOST, .a = {PLACE_HOST, 1, {0}}}, "host1"},
        {{.kind = ELEMENT_HOST, .a = {PLACE_HOST, 9, {0}}}, "host 9"},
        {{.kind = ELEMENT_HOST, .a = {PLACE_HOST, UINT32_MAX, {0}}}, "host"},
        {{.kind = ELEMENT_NIC, .a = {PLACE_NIC, 2, {0}}}, "host1/nic0 or its link"},
        {{.kind = ELEMENT_NIC, .a = {PLACE_NIC, 9, {0}}}, "nic 9 or its link"},
        {{.kind = ELEMENT_NIC, .a = {PLACE_NIC, UINT32_MAX, {0}}}, "nic or its link"},
        {{.kind = ELEMENT_LEAF, .a = {PLACE_LEAF, 3, {0}}}, "leaf3"},
        {{.kind = ELEMENT_SPINE, .a = {PLACE_SPINE, 0, {0}}}, "spine0"},
        {{.kind = ELEMENT_ROUTER, .a = {PLACE_NONE, 4, {0}}}, "somewhere"},
        {{.kind = ELEMENT_TRUNK, .a = {PLACE_LEAF, 3, {0}}, .b = {PLACE_SPINE, UINT32_MAX, {0}}},
         "trunk leaf3 - spine"},
    };
    struct finding f;
    char text[600];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        element_text(&cases[i].e, &names, text, sizeof(text));
        assert_string_equal(text, cases[i].text);
    }
    /* the switch port of a NIC, if it is known; an unknown one is shown as unknown */
    finding_init(&f, FINDING_LINK_ERRORS, (struct mono){5});
    f.suspect = (struct element){.kind = ELEMENT_NIC, .a = {PLACE_NIC, 2, {0}}};
    f.advice = ADVICE_CHECK_CABLE;
    finding_text(&f, &names, text, sizeof(text));
    assert_non_null(strstr(text, "; suspect: host1/nic0 or its link (leaf0 port 7); check cable"));
    f.suspect.a.number = 9; /* its port isn't known */
    finding_text(&f, &names, text, sizeof(text));
    assert_non_null(strstr(text, "; suspect: nic 9 or its link; check cable"));
    finding_text(&f, NULL, text, sizeof(text));
    assert_non_null(strstr(text, "; suspect: nic 9 or its link; check cable"));
    f.suspect = (struct element){.kind = ELEMENT_HOST, .a = {PLACE_HOST, 2, {0}}};
    finding_text(&f, &names, text, sizeof(text)); /* number 2 is a host here, and has no port */
    assert_non_null(strstr(text, "; suspect: host 2; check cable"));
    f.suspect.kind = ELEMENT_UNKNOWN;
    f.advice = ADVICE_NONE;
    finding_text(&f, &names, text, sizeof(text));
    assert_string_equal(strstr(text, "; suspect"), "; suspect: unknown");
    for (uint32_t n = 0; n < ELEMENT_ONE_OF + 1; n++) {
        static const char *const words[] = {
            "unknown, one of spine0 and others", "unknown, one of spine0 and spine1",
            "unknown, one of spine0, spine1 and spine2",
            "unknown, one of spine0, spine1, spine2 and spine3",
            "unknown, one of spine0, spine1, spine2, spine3 and others"};
        struct element e = {.kind = ELEMENT_SPINE, .a = {PLACE_SPINE, n, {0}}};
        element_choice_add(&f.choice, &e);
        e.direction = DIRECTION_IN; /* the same thing */
        element_choice_add(&f.choice, &e);
        f.choice.total += n == 0;
        finding_text(&f, &names, text, sizeof(text));
        assert_string_equal(strstr(text, "; suspect") + 11, words[n]);
        f.choice.total -= n == 0;
    }
    f.choice = (struct element_choice){0};
    f.advice = ADVICE_CHECK_CABLE;
    f.phase = FINDING_CLOSED; /* nothing is left to do */
    finding_text(&f, &names, text, sizeof(text));
    assert_string_equal(strstr(text, "; suspect"), "; suspect: unknown");
}

/* The other direction of elements that have one, and only of those. */
static void the_other_direction(void **state)
{
    static const char *const words[] = {"unknown", "fine", "lossy", "dead", "unknown"};
    char text[600], expected[64];

    for (uint8_t other = 0; other < sizeof(words) / sizeof(words[0]); other++) {
        for (uint8_t direction = DIRECTION_NONE; direction <= DIRECTION_BOTH; direction++) {
            struct finding f = dead_path();
            f.other = other;
            f.direction = direction;
            finding_text(&f, NULL, text, sizeof(text));
            snprintf(expected, sizeof(expected), "; the other direction: %s; ", words[other]);
            assert_int_equal(strstr(text, expected) != NULL,
                             direction == DIRECTION_OUT || direction == DIRECTION_IN);
            assert_int_equal(strstr(text, "the other direction") != NULL,
                             direction == DIRECTION_OUT || direction == DIRECTION_IN);
            assert_int_equal(strstr(text, " <-> ") != NULL, direction == DIRECTION_BOTH);
        }
    }
}

/* Without UTC fleet time is shown, without both the host's clock. */
static void since_by_the_best_clock_there_is(void **state)
{
    struct finding f = dead_path();
    char text[600];

    f.since_utc_ns = FINDING_NO_TIME;
    f.since_fleet_ns = 7 * NS_PER_S + 5;
    finding_text(&f, NULL, text, sizeof(text));
    assert_non_null(strstr(text, ", since: UTC unknown (fleet time 7.000000005);"));
    f.since_fleet_ns = FINDING_NO_TIME;
    finding_text(&f, NULL, text, sizeof(text));
    assert_non_null(strstr(text, ", since: UTC unknown (host clock 5.000000000);"));
    f.since_utc_ns = 86400 * NS_PER_S;
    finding_text(&f, NULL, text, sizeof(text));
    assert_non_null(strstr(text, ", since 1970-01-02 00:00:00.000000 UTC;"));
}

/* Kinds and advice of a newer agent, in the words of an older one. */
static void numbers_of_later_versions(void **state)
{
    struct finding f;
    char text[300];

    assert_string_equal(finding_kind_word(FINDING_KIND_COUNT), "unknown");
    assert_string_equal(finding_kind_word(UINT32_MAX), "unknown");
    assert_string_equal(finding_advice_text(ADVICE_CHECK_SOURCE + 1), "");
    assert_string_equal(finding_advice_text(UINT32_MAX), "");
    finding_init(&f, FINDING_NONE, (struct mono){5});
    f.kind = FINDING_KIND_COUNT + 5;
    finding_what_text(&f, text, sizeof(text));
    assert_memory_equal(text, "unknown finding ", 16);
    f.rules_out = 0xffff;
    finding_text(&f, NULL, text, sizeof(text));
    assert_non_null(strstr(text, ", clock, network; suspect: unknown"));
    finding_init(&f, FINDING_LINK_DOWN, (struct mono){5});
    assert_int_equal(f.suspect.a.number, UINT32_MAX); /* nothing is known of the suspect yet */
    assert_int_equal(f.suspect.b.number, UINT32_MAX);
}

static void a_closed_one_tells_how_long(void **state)
{
    struct finding f = dead_path();
    char text[512];

    f.phase = FINDING_CLOSED;
    f.ended_ns = f.since.ns + 1500 * NS_PER_MS;
    finding_text(&f, NULL, text, sizeof(text));
    assert_non_null(strstr(text, "123456 UTC, over after 1.500 s; the other"));
    f.length_error_ns = 45 * NS_PER_MS;
    finding_text(&f, NULL, text, sizeof(text));
    assert_non_null(strstr(text, "123456 UTC, over after 1.500 s ± 0.045 s; the other"));
    f.suspect.kind = ELEMENT_TRUNK;
    finding_text(&f, NULL, text, sizeof(text));
    assert_non_null(strstr(text, "nic 2 -> nic 10, path 2 of 4"));
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
        cmocka_unit_test(the_sentence_of_each_kind),
        cmocka_unit_test(both_ends_by_their_names),
        cmocka_unit_test(suspects_in_words),
        cmocka_unit_test(the_other_direction),
        cmocka_unit_test(since_by_the_best_clock_there_is),
        cmocka_unit_test(numbers_of_later_versions),
        cmocka_unit_test(a_closed_one_tells_how_long),
        cmocka_unit_test(days_of_the_calendar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
