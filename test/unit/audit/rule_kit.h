/* rule_kit.h: one host, a few facts, one verdict: tries a rule of the catalogue, for tests. Facts are written
 * "name@subject=value" or "name@subject!state=value", with "|" between them. A fact that begins with "<" is of the day before.
 * Facts that most rules need are added if a case doesn't have them. */
#pragma once
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bug.h"
#include "judge_kit.h"
#include "service/audit/sheet.h"

enum { RULE_NOW_S = 1790000000, RULE_DAY_S = 86400 };
#define RULE_UP_10_DAYS "os.uptime=864000"

/* A host alone can't be compared with others: a rule that compares gives unknown, for this reason. */
#define COMPARED "small_cohort"
/* It fails by this host's word about itself and another one. Only a third host could tell which of the two is at fault. */
#define OF_PAIR AUDIT_STATUS_COUNT

struct rule_case {
    enum audit_status status;
    const char *check, *subject, *facts;
    const char *found;            /* NULL: whatever it is */
    const char *why;              /* if unknown: the reason's name; else in the note; NULL: any */
    const char *expected, *shown; /* in `expected`; the fact that is shown; NULL: any */
    const char *declared;         /* by the site; NULL: nothing */
    uint32_t cohort;              /* that it was compared with; 0: any */
};

static inline void rule_add(struct sheet *s, const char *text, size_t size)
{
    char name[512];
    const char *state = "value", *value = "", *subject = "";

    assert_true(size < sizeof(name));
    memcpy(name, text, size);
    name[size] = '\0';
    char *equals = strchr(name, '='), *at;
    if (equals != NULL) {
        *equals = '\0';
        value = equals + 1;
    }
    at = strchr(name, '!');
    if (at != NULL) {
        *at = '\0';
        state = at + 1;
    }
    at = strchr(name, '@');
    if (at != NULL) {
        *at = '\0';
        subject = at + 1;
    }
    const struct fact f = {.id = (uint16_t)fact_by_name(name),
                           .state = (uint8_t)fact_state_by_name(state),
                           .subject = subject,
                           .value = value,
                           .source = name};
    if (f.id >= FACT_COUNT || f.state >= FACT_STATE_COUNT ||
        (f.state == FACT_VALUE && !fact_fits((enum fact_id)f.id, value))) {
        fail_msg("this is no fact: %s %s", name, value);
    }
    sheet_add(s, &f);
}

static inline void rule_add_all(struct sheet *now, struct sheet *was, const char *facts)
{
    while (*facts != '\0') {
        const size_t size = strcspn(facts, "|");
        rule_add(*facts == '<' ? was : now, facts + (*facts == '<'), size - (*facts == '<'));
        facts += size + (facts[size] == '|');
    }
}

static inline void rule_fails(const struct rule_case *c, const struct audit_result *r)
{
    const struct fact *shown = audit_shown(r);

    fail_msg("%s of \"%s\" is %s (%s), found \"%s\", expected \"%s\", note \"%s\", shown %s",
             c->check, c->facts, audit_status_name(r->status), audit_reason_name(r->reason),
             r->found, r->expected, r->note,
             shown != NULL ? fact_name((enum fact_id)shown->id) : "nothing");
}

static inline bool rule_is_so(const struct rule_case *c, const struct audit_result *r)
{
    const struct fact *shown = audit_shown(r);
    const char *why = c->status == AUDIT_UNKNOWN ? audit_reason_name(r->reason) : r->note;

    const bool of_pair = r->status == AUDIT_UNKNOWN && r->reason == REASON_NO_MAJORITY;

    return (c->status == OF_PAIR ? of_pair : r->status == c->status) &&
           (c->found == NULL || strcmp(r->found, c->found) == 0) &&
           (c->why == NULL || (c->status == AUDIT_UNKNOWN ? strcmp(why, c->why) == 0
                                                          : strstr(why, c->why) != NULL)) &&
           (c->cohort == 0 || r->cohort == c->cohort) &&
           (c->expected == NULL || strstr(r->expected, c->expected) != NULL) &&
           (c->shown == NULL ||
            (shown != NULL && strcmp(fact_name((enum fact_id)shown->id), c->shown) == 0));
}

static inline void rule_try(const struct rule_case *c)
{
    const struct check *check = check_by_id(c->check);
    struct sheet *now = sheet_new(), *was = sheet_new();
    struct check_setting settings[CHECKS_MAX] = {{0}};
    struct audit_settings site = audit_usual;
    struct audit a;
    bool found = false;

    assert_true(check != NULL && now != NULL && was != NULL);
    now->host = "h";
    now->at_utc_ns = INT64_C(1000000000) * RULE_NOW_S;
    was->at_utc_ns = INT64_C(1000000000) * (RULE_NOW_S - RULE_DAY_S);
    rule_add_all(now, was, c->facts);
    rule_add_all(now, was, RULE_UP_10_DAYS "|os.product=Made up|os.virtual=0|agent=running");
    sheet_finish(now);
    sheet_finish(was);
    now->was = was->count > 0 ? was : NULL;
    settings[check_number(check)].declared = c->declared;
    site.checks = settings;
    judge_sheets(&a, now, 1);
    a.settings = &site;
    assert_int_equal(audit_judge(&a), 0);
    for (uint32_t i = 0; i < a.count; i++) {
        const struct audit_result *r = &a.results[i];
        if (r->check == check && strcmp(r->subject, c->subject) == 0) {
            found = true;
            if (!rule_is_so(c, r)) {
                rule_fails(c, r);
            }
        }
    }
    if (!found) {
        fail_msg("%s has no result of \"%s\"", c->check, c->subject);
    }
    judge_done(&a);
    if (now->was == NULL) { /* else it is freed with the other one */
        sheet_free(was);
    }
    sheet_free(now);
}

#define RULES_TRY(cases)                                                                           \
    for (size_t rule_at = 0; rule_at < ARRAY_COUNT(cases); rule_at++) {                            \
        rule_try(&(cases)[rule_at]);                                                               \
    }
#define PASS    AUDIT_PASS
#define WARN    AUDIT_WARN
#define FAIL    AUDIT_FAIL
#define SKIP    AUDIT_SKIP
#define UNKNOWN AUDIT_UNKNOWN
