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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_sentence),
        cmocka_unit_test(unknown_is_said),
        cmocka_unit_test(every_kind_has_words_and_fits_any_size),
        cmocka_unit_test(addresses_name_routers_without_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
