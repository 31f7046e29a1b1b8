/* test_mention.c: the hosts of a fleet that have a fact with this text: the same as a search of all sheets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/audit/mention.h"
#include "service/audit/sheet.h"

enum { HOSTS = 40, NICS = 4, SWITCHES = 7 };

static struct sheet *sheet_of(struct prng *p)
{
    struct sheet *s = sheet_new();
    char subject[32], value[32];

    for (unsigned nic = 0; nic < NICS; nic++) {
        if (prng_below(p, 5) == 0) {
            continue;
        }
        snprintf(subject, sizeof(subject), "eth%u", nic);
        snprintf(value, sizeof(value), "leaf%u", (unsigned)prng_below(p, SWITCHES));
        sheet_add(s, &(struct fact){FACT_NET_SWITCH, FACT_VALUE, subject, value, ""});
        snprintf(subject, sizeof(subject), "10.0.0.%u", (unsigned)prng_below(p, SWITCHES));
        sheet_add(s, &(struct fact){FACT_NET_ADDRESS, FACT_VALUE, subject, "eth0", ""});
    }
    sheet_add(
        s, &(struct fact){FACT_OS_PRODUCT, FACT_VALUE, "", "leaf1", ""}); /* no search is for it */
    sheet_finish(s);
    return s;
}

static uint32_t walk(const struct sheet *sheets, enum fact_id id, const char *text)
{
    uint32_t found = 0;

    for (uint32_t i = 0; i < HOSTS; i++) {
        for (uint32_t k = 0; k < sheets[i].count; k++) {
            const struct fact *f = &sheets[i].facts[k];
            found +=
                f->id == id && strcmp(id == FACT_NET_SWITCH ? f->value : f->subject, text) == 0;
        }
    }
    return found;
}

static void as_a_walk_finds_it(void **state)
{
    struct audit_mention all[HOSTS * NICS * 2];
    struct sheet sheets[HOSTS], *own[HOSTS];
    struct prng p;
    uint32_t count;
    char text[32];

    (void)state;
    prng_init(&p, 19);
    for (uint32_t i = 0; i < HOSTS; i++) {
        own[i] = sheet_of(&p);
        sheets[i] = *own[i];
    }
    struct audit a = {.sheets = sheets, .sheet_count = HOSTS, .mentions = all};
    a.mention_capacity = audit_mention_room(&a);
    assert_true(a.mention_capacity <= HOSTS * NICS * 2);
    audit_mentions_find(&a);
    assert_false(a.full);
    for (unsigned n = 0; n <= SWITCHES; n++) { /* no host has the last one */
        snprintf(text, sizeof(text), "leaf%u", n);
        const struct audit_mention *m = audit_mentions_of(&a, FACT_NET_SWITCH, text, &count);
        assert_int_equal(count, walk(sheets, FACT_NET_SWITCH, text));
        assert_int_equal(m != NULL, n < SWITCHES);
        for (uint32_t i = 0; i < count; i++) {
            assert_string_equal(m[i].fact->value, text);
            assert_true(i == 0 || m[i - 1].sheet <= m[i].sheet);
            assert_ptr_equal(sheet_find(&sheets[m[i].sheet], FACT_NET_SWITCH, m[i].fact->subject),
                             m[i].fact);
        }
        snprintf(text, sizeof(text), "10.0.0.%u", n);
        (void)audit_mentions_of(&a, FACT_NET_ADDRESS, text, &count);
        assert_int_equal(count, walk(sheets, FACT_NET_ADDRESS, text));
    }
    a.mention_capacity--;
    audit_mentions_find(&a);
    assert_true(a.full); /* if there is no room, that is reported */
    for (uint32_t i = 0; i < HOSTS; i++) {
        sheet_free(own[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_a_walk_finds_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
