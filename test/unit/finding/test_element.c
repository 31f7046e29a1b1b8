/* Elements stay the same on their way: to JSON and back, and once in words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/finding/finding.h"
#include "platform/json/element.h"

static const char *host_name(void *context, struct host_id host)
{
    static char text[32];
    (void)context;
    snprintf(text, sizeof(text), "clock of spine%u", host.index); /* names may have any form */
    return text;
}
static const char *host_of(void *context, struct nic_id nic)
{
    return host_name(context, (struct host_id){nic.index / 8});
}
static uint32_t host_number(void *context, const char *name)
{
    unsigned number = UINT32_MAX;
    (void)context;
    return sscanf(name, "clock of spine%u", &number) == 1 ? number : UINT32_MAX;
}
static const struct finding_names names = {.host = host_name, .host_of = host_of};

static struct place any_place(struct prng *p, uint32_t kind)
{
    struct place place = {.kind = kind, .number = prng_below(p, 1000)};

    if (kind >= PLACE_LEAF && prng_below(p, 2) == 0) {
        place.number = UINT32_MAX;
        for (size_t k = 0; k < sizeof(place.address); k++) {
            place.address[k] = (uint8_t)(1 + prng_below(p, 255));
        }
    }
    return place;
}

static struct element any_element(struct prng *p)
{
    static const uint32_t places[] = {PLACE_NONE,   PLACE_HOST, PLACE_NIC, PLACE_LEAF, PLACE_SPINE,
                                      PLACE_ROUTER, PLACE_LEAF, PLACE_NIC, PLACE_HOST, PLACE_HOST};
    struct element e = element_unknown();

    e.kind = ELEMENT_HOST + prng_below(p, ELEMENT_AGENT);
    e.direction = prng_below(p, 4);
    e.a = any_place(p, places[e.kind]);
    if (e.kind == ELEMENT_TRUNK || e.kind == ELEMENT_PATH) {
        e.b = any_place(p, e.kind == ELEMENT_PATH ? PLACE_NIC : PLACE_SPINE);
    }
    return e;
}

static void a_written_element_is_read_back(void **state)
{
    struct prng p;
    struct json_writer j;

    prng_init(&p, 17);
    json_writer_init(&j, 1 << 12);
    for (int turn = 0; turn < 10000; turn++) {
        const struct element e = any_element(&p);
        const char *text = NULL;
        size_t size = 0;
        json_writer_reset(&j);
        json_put_element(&j, NULL, &e, &names, turn % 2 == 0 ? "whatever it is called" : NULL);
        assert_int_equal(json_writer_finish(&j, &text, &size), 0);
        json_t *o = json_loads(text, 0, NULL);
        const struct element back = json_read_element(o, host_number, NULL);
        assert_true(element_same(&e, &back));
        json_decref(o);
    }
    json_writer_done(&j);
}

static void unreadable_text_is_an_unknown_element(void **state)
{
    static const char *const bad[] = {
        "{}",
        "[]",
        "{\"kind\":\"cable\"}",
        "{\"kind\":\"nic\",\"places\":[]}",
        "{\"kind\":\"nic\",\"places\":[{\"kind\":\"nic\",\"nic\":-1}]}",
        "{\"kind\":\"nic\",\"places\":[{\"kind\":\"nic\",\"nic\":4294967295}]}",
        "{\"kind\":\"host\",\"places\":[{\"kind\":\"host\",\"host\":\"nobody\"}]}",
        "{\"kind\":\"trunk\",\"places\":[{\"kind\":\"leaf\",\"number\":1}]}",
        "{\"kind\":\"leaf\",\"places\":[{\"kind\":\"leaf\",\"address\":\"10.0.0\"}]}",
    };

    for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++) {
        json_t *o = json_loads(bad[k], 0, NULL);
        const struct element e = json_read_element(o, host_number, NULL), none = element_unknown();
        assert_true(element_same(&e, &none));
        json_decref(o);
    }
}

static void words_of_kinds_are_numbers_of_kinds(void **state)
{
    for (uint32_t k = 0; k < ELEMENT_KIND_COUNT; k++) {
        assert_int_equal(element_kind_of(element_kind_word(k)), k);
    }
    for (uint32_t k = 0; k < PLACE_KIND_COUNT; k++) {
        assert_int_equal(place_kind_of(place_kind_word(k)), k);
    }
    for (uint32_t k = DIRECTION_OUT; k <= DIRECTION_BOTH; k++) {
        assert_int_equal(direction_of(direction_word(k)), k);
    }
    assert_null(element_kind_word(ELEMENT_KIND_COUNT));
    assert_null(direction_word(DIRECTION_NONE));
    assert_int_equal(element_kind_of("cable"), ELEMENT_UNKNOWN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_element_is_read_back),
        cmocka_unit_test(unreadable_text_is_an_unknown_element),
        cmocka_unit_test(words_of_kinds_are_numbers_of_kinds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
