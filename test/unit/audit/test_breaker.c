/* test_breaker.c: if a check would fail too many hosts of a kind, it fails none of them, whatever other kinds there are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/audit/judge.h"
#include "service/audit/judged.h"

enum { FACTS = 3, EACH = 700, FAULTY = 33, LAST = 30, HOSTS = 2 * EACH + LAST };

struct host {
    char name[16];
    struct fact facts[FACTS];
};

static void make(struct sheet *s, struct host *h, int number, const char *product, bool wrong)
{
    snprintf(h->name, sizeof(h->name), "h%d", number);
    h->facts[0] = (struct fact){FACT_OS_PRODUCT, FACT_VALUE, "", product, ""};
    h->facts[1] = (struct fact){FACT_OS_UPTIME, FACT_VALUE, "", "99999", ""};
    h->facts[2] = (struct fact){FACT_OS_NUMA_BALANCING, FACT_VALUE, "", wrong ? "1" : "0", ""};
    *s = (struct sheet){.host = h->name, .facts = h->facts, .count = FACTS, .capacity = FACTS};
    sheet_finish(s);
}

static enum audit_status status_of(const struct audit *a, uint32_t sheet, bool *ret_suspect)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const struct audit_result *r = &a->results[i];
        if (r->sheet == sheet && strcmp(r->check->id, "cfg.kern.numa_balancing") == 0) {
            *ret_suspect = r->suspect;
            return r->status;
        }
    }
    return AUDIT_STATUS_COUNT;
}

/* Hosts of two kinds in turn, of which few fail. After them hosts of a third kind, which all fail. */
static void kinds_that_alternate(void **state)
{
    (void)state;
    struct sheet *sheets = calloc(HOSTS, sizeof(*sheets));
    struct host *hosts = calloc(HOSTS, sizeof(*hosts));
    struct audit audit;
    bool suspect = true;
    assert_non_null(sheets);
    assert_non_null(hosts);
    for (int i = 0; i < 2 * EACH; i++) {
        make(&sheets[i], &hosts[i], i, i % 2 == 0 ? "one" : "other", i < 2 * FAULTY);
    }
    for (int i = 2 * EACH; i < HOSTS; i++) {
        make(&sheets[i], &hosts[i], i, "third", true);
    }
    assert_int_equal(judged(&audit, sheets, HOSTS, &audit_usual), 0);
    assert_int_equal(status_of(&audit, 0, &suspect), AUDIT_FAIL);
    assert_int_equal(status_of(&audit, 1, &suspect), AUDIT_FAIL);
    assert_int_equal(status_of(&audit, 2 * FAULTY, &suspect), AUDIT_PASS);
    for (uint32_t i = 2 * EACH; i < HOSTS; i++) {
        assert_int_equal(status_of(&audit, i, &suspect), AUDIT_WARN);
        assert_true(suspect);
    }
    judged_done(&audit);
    free(sheets);
    free(hosts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kinds_that_alternate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
