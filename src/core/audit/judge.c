/* judge.c: see judge.h: which checks are for which subjects of which sheets, and the verdicts' further way. */
#include "core/audit/judge.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "core/audit/baseline.h"
#include "core/audit/mention.h"
#include "core/audit/pairs.h"
#include "core/audit/rule_list.h"

const struct audit_settings audit_usual = {
    .young_s = 600, .breaker_share = 0.05, .breaker_count = 2};

static const char *const statuses[] = {"fail", "unknown", "warn", "pass", "skip"};
static const char *const reasons[] = {"",          "no_source", "no_permission", "timeout",
                                      "stuck",     "stale",     "no_majority",   "small_cohort",
                                      "clock",     "preempted", "busy",          "not_run",
                                      "old_agent", "young"};
_Static_assert(ARRAY_COUNT(statuses) == AUDIT_STATUS_COUNT, "a name for each status");
_Static_assert(ARRAY_COUNT(reasons) == REASON_COUNT, "a name for each reason");

const char *audit_status_name(enum audit_status status)
{
    return statuses[status];
}

const char *audit_reason_name(enum audit_reason reason)
{
    return reasons[reason];
}

size_t audit_item_size(void)
{
    return sizeof(struct audit_item);
}

/* ---- who is compared with whom ---- */

static const char *product_alone(const struct sheet *s)
{
    const struct fact *product = sheet_find(s, FACT_OS_PRODUCT, "");

    return product != NULL && product->state == FACT_VALUE ? product->value : NULL;
}

const char *audit_declared_cohort(const struct audit_settings *s, const char *host)
{
    for (uint32_t i = 0; i < s->cohort_count; i++) {
        const char *of = s->cohorts[i].host;
        const size_t size = strlen(of);
        if (size > 0 && of[size - 1] == '*' ? strncmp(of, host, size - 1) == 0
                                            : strcmp(of, host) == 0) {
            return s->cohorts[i].name;
        }
    }
    return NULL;
}

const char *audit_kind(const struct audit *a, uint32_t sheet)
{
    return a->kinds != NULL ? a->kinds[sheet] : product_alone(&a->sheets[sheet]);
}

static void find_kinds(struct audit *a)
{
    for (uint32_t i = 0; a->kinds != NULL && i < a->sheet_count; i++) {
        const char *declared = audit_declared_cohort(a->settings, a->sheets[i].host);
        a->kinds[i] = declared != NULL ? declared : product_alone(&a->sheets[i]);
    }
}

static void find_managers(struct audit *a)
{
    a->manager_count = 0;
    for (uint32_t i = 0; i < a->sheet_count && a->manager_count < MANAGERS_MAX; i++) {
        const struct fact *routes = sheet_find(&a->sheets[i], FACT_IB_ROUTES, "");
        if (routes != NULL && routes->state != FACT_ABSENT) {
            a->managers[a->manager_count++] = i;
        }
    }
}

const char *audit_declares(const struct audit_settings *s, const struct check *c, const char *host)
{
    const struct check_setting *set = s->checks != NULL ? &s->checks[check_number(c)] : NULL;
    const char *cohort =
        set != NULL && set->declared_by_count > 0 ? audit_declared_cohort(s, host) : NULL;

    for (uint32_t i = 0; cohort != NULL && i < set->declared_by_count; i++) {
        if (strcmp(set->declared_by[i].cohort, cohort) == 0) {
            return set->declared_by[i].value;
        }
    }
    return set != NULL ? set->declared : NULL;
}

/* ---- functions that rules call ---- */

const char *judge_format(struct judging *j, const char *format, ...)
{
    struct audit *a = j->audit;
    char *to = a->text + a->text_used;
    const size_t room = a->text_size - a->text_used;
    va_list arguments;

    va_start(arguments, format);
    const int n = vsnprintf(to, room, format, arguments);
    va_end(arguments);
    if (n < 0 || (size_t)n >= room) {
        a->full = true;
        return "";
    }
    a->text_used += (size_t)n + 1;
    return to;
}

void judge_end(struct judging *j, enum audit_status status, const char *found, const char *expected)
{
    j->result->status = (uint8_t)status;
    j->result->reason = REASON_NONE;
    j->result->found = found != NULL ? found : "";
    j->result->expected = expected != NULL ? expected : "";
}

void judge_skip(struct judging *j, const char *why)
{
    judge_end(j, AUDIT_SKIP, NULL, NULL);
    j->result->note = why;
}

static enum audit_reason reason_of(enum fact_state state)
{
    return state == FACT_NO_PERMISSION ? REASON_NO_PERMISSION
           : state == FACT_TIMEOUT     ? REASON_TIMEOUT
           : state == FACT_STUCK       ? REASON_STUCK
                                       : REASON_NO_SOURCE;
}

void judge_unknown(struct judging *j, const struct fact *fact)
{
    judge_end(j, AUDIT_UNKNOWN, fact != NULL ? fact->value : NULL, NULL);
    j->result->reason = (uint8_t)(fact != NULL ? reason_of(fact->state) : REASON_NO_SOURCE);
    j->result->note = fact == NULL                  ? "the sheet does not have it"
                      : fact->state == FACT_GARBLED ? "this is not what the file should look like"
                                                    : fact_state_name(fact->state);
}

void judge_rest(struct judging *j, const struct fact *fact)
{
    struct audit_result *r = j->result;

    for (int i = 0; i < r->fact_count; i++) {
        if (r->facts[i] == fact) {
            return;
        }
    }
    if (r->fact_count < RESULT_FACTS_MAX) {
        r->facts[r->fact_count++] = fact;
    }
}

const struct fact *judge_look(struct judging *j, enum fact_id id, const char *subject)
{
    const struct fact *fact = sheet_find(j->sheet, id, subject);

    if (fact == NULL) { /* its reader gave one reason for all subjects */
        fact = sheet_find(j->sheet, id, "");
        fact = fact != NULL && fact->state > FACT_ABSENT ? fact : NULL;
    }
    if (fact != NULL) {
        judge_rest(j, fact);
    }
    return fact;
}

const char *judge_text(struct judging *j, enum fact_id id, const char *subject)
{
    const struct fact *fact = judge_look(j, id, subject);

    if (fact == NULL || fact->state != FACT_VALUE) {
        judge_unknown(j, fact);
        return NULL;
    }
    return fact->value;
}

bool judge_number(struct judging *j, enum fact_id id, const char *subject, int64_t *ret_number)
{
    const char *text = judge_text(j, id, subject);

    /* a value of a number's form is a number */
    return text != NULL && fact_number(text, ret_number);
}

const char *judge_declared(struct judging *j)
{
    if (j->setting == NULL || j->setting->declared == NULL) {
        judge_skip(j, "nothing is declared: checks: in audit.yaml");
        return NULL;
    }
    return j->setting->declared;
}

void judge_join(struct judging *j, const char *key, const char *value, double number)
{
    struct audit *a = j->audit;
    const char *kind = audit_kind(a, (uint32_t)(j->sheet - a->sheets));

    judge_end(j, AUDIT_PASS, value, NULL);
    /* a declared value comes before the values of others */
    if (j->setting != NULL && j->setting->declared != NULL) {
        const bool same = strcmp(j->setting->declared, value) == 0;
        judge_end(j, same ? AUDIT_PASS : AUDIT_FAIL, value, j->setting->declared);
        return;
    }
    if (a->settings->rules_alone && (j->check->compare & COMPARE_RULE) != 0) {
        j->result->note = "not compared with others: none are at hand";
        return;
    }
    if (kind == NULL) {
        judge_unknown(j, sheet_find(j->sheet, FACT_OS_PRODUCT, ""));
        j->result->note = "without the product's name its cohort is not known";
        return;
    }
    if (a->item_count == a->item_capacity) {
        a->full = true;
        return;
    }
    a->items[a->item_count++] = (struct audit_item){.result = (uint32_t)(j->result - a->results),
                                                    .product = kind,
                                                    .key = key,
                                                    .value = value,
                                                    .number = number};
}

void judge_join_apart(struct judging *j, const char *key, const char *value, double number,
                      double least)
{
    struct audit *a = j->audit;
    const uint32_t before = a->item_count;

    judge_join(j, key, value, number);
    if (a->item_count > before) {
        a->items[before].least = least;
    }
}

/* ---- one check ---- */

/* Is the check for this subject? If not, the result is set. */
static bool applies(struct judging *j)
{
    const struct check_applies *when = &j->check->applies;
    const struct fact *fact;

    if (when->is == NULL) {
        return true;
    }
    fact = judge_look(j, when->fact, j->subject);
    if (fact == NULL && j->subject[0] != '\0') {
        fact = judge_look(j, when->fact, "");
    }
    if (fact == NULL || fact->state != FACT_VALUE) {
        judge_unknown(j, fact);
        return false;
    }
    if ((strcmp(fact->value, when->is) == 0) == when->not ) {
        judge_skip(j, when->reason);
        return false;
    }
    return true;
}

void judge_limits(struct judging *j)
{
    const struct check_setting *setting = j->setting;

    j->fail = setting != NULL && setting->has_fail ? setting->fail : j->check->fail;
    j->warn = setting != NULL && setting->has_warn ? setting->warn : j->check->warn;
}

static void begin(struct judging *j, const char *subject)
{
    struct audit *a = j->audit;
    const struct check *c = j->check;
    const struct check_setting *setting = j->setting;

    j->subject = subject;
    j->result = &a->results[a->count];
    *j->result = (struct audit_result){.check = c,
                                       .sheet = (uint32_t)(j->sheet - a->sheets),
                                       .severity = c->severity,
                                       .subject = subject,
                                       .found = "",
                                       .expected = "",
                                       .basis = "",
                                       .note = ""};
    judge_limits(j);
    if (setting != NULL) {
        j->result->severity = setting->has_severity ? setting->severity : c->severity;
        j->result->overridden = setting->has_fail || setting->has_warn || setting->has_severity ||
                                setting->declared != NULL;
    }
}

/* One result for this subject. There must be room for it. */
static void judge_subject(struct judging *j, const struct fact *listed, const char *subject)
{
    begin(j, subject);
    if (listed != NULL) {
        j->result->facts[j->result->fact_count++] = listed;
    }
    if (applies(j)) {
        j->check->rule(j);
    }
    j->audit->count++;
}

const char *audit_host_off(const struct audit_settings *s, const char *host)
{
    for (uint32_t i = 0; i < s->hosts_off_count; i++) {
        if (strcmp(s->hosts_off[i].host, host) == 0) {
            return s->hosts_off[i].by;
        }
    }
    return NULL;
}

/* Why it is switched off: the check itself, its class, or the host; NULL: all are on. */
static const char *switched_off(const struct judging *j)
{
    const struct audit_settings *s = j->audit->settings;

    return j->setting != NULL && j->setting->off != NULL ? j->setting->off
           : s->class_off[j->check->cost] != NULL        ? s->class_off[j->check->cost]
                                                         : audit_host_off(s, j->sheet->host);
}

/* Reasons of the whole sheet, before any fact is looked up. */
static bool sheet_is_out(struct judging *j)
{
    const struct audit_settings *s = j->audit->settings;
    const char *why = NULL;
    enum audit_reason reason = REASON_STALE;

    begin(j, "");
    if (switched_off(j) != NULL) {
        judge_skip(j, judge_format(j, "off by %s", switched_off(j)));
    } else if (s->rules_alone && (j->check->compare & COMPARE_RULE) == 0 &&
               (j->setting == NULL || j->setting->declared == NULL)) {
        judge_skip(j, "it compares hosts, and no others are at hand");
    } else {
        if (j->sheet->missing != REASON_NONE) {
            why = j->sheet->missing_note != NULL ? j->sheet->missing_note : "";
            reason = j->sheet->missing;
        } else if (s->stale_ns > 0 && s->now_utc_ns - j->sheet->at_utc_ns > s->stale_ns) {
            why = "the sheet is too old";
        } else if (j->sheet->left_out > 0) {
            why = "the sheet had no room for all facts";
            reason = REASON_NO_SOURCE;
        }
        if (why == NULL) {
            return false;
        }
        judge_end(j, AUDIT_UNKNOWN, NULL, NULL);
        j->result->reason = (uint8_t)reason;
        j->result->note = why;
    }
    j->audit->count++;
    return true;
}

/* No subject was listed: there is none, or the list could not be read. */
static void judge_none(struct judging *j, const struct fact *listed)
{
    begin(j, listed != NULL ? listed->subject : "");
    if (listed != NULL) {
        j->result->facts[j->result->fact_count++] = listed;
    }
    if (listed == NULL && (j->check->flags & CHECK_MATRIX) != 0) {
        judge_skip(j, "not measured: foliot audit run --fleet --matrix does");
    } else if (listed == NULL && (j->check->flags & CHECK_TESTED) != 0) {
        judge_skip(j, "not tested: foliot audit run --fleet --nccl does");
    } else if (listed == NULL && (j->check->flags & CHECK_FLEET) != 0) {
        judge_skip(j, "not known here: foliot audit run --fleet asks the controller");
    } else if (listed != NULL && listed->state == FACT_TIMEOUT &&
               (sheet_find(j->sheet, FACT_PERF, "") != NULL ||
                ((j->check->flags & CHECK_MATRIX) != 0 && listed->value[0] != '\0'))) {
        rule_not_measured(j, listed->value);
    } else if (listed != NULL && listed->state == FACT_ABSENT && listed->subject[0] == '\0') {
        judge_skip(j, judge_format(j, "none on this host: %s", fact_what(j->check->each)));
    } else {
        judge_unknown(j, listed);
    }
    j->audit->count++;
}

static void judge_sheet(struct judging *j)
{
    struct audit *a = j->audit;
    uint32_t count = 1;
    const struct fact *listed = NULL;

    if (j->check->each != FACT_COUNT) {
        listed = sheet_first(j->sheet, j->check->each, &count);
    }
    if (a->capacity - a->count < count + 1) {
        a->full = true;
        return;
    }
    if (sheet_is_out(j)) {
        return;
    }
    if (listed == NULL && (j->check->flags & (CHECK_MATRIX | CHECK_TESTED | CHECK_FLEET)) != 0) {
        judge_none(j, NULL);
        return;
    }
    if (listed == NULL) {
        judge_subject(j, NULL, "");
        return;
    }
    if ((j->check->flags & CHECK_LIST) != 0) {
        judge_subject(j, NULL, "");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (listed[i].state == FACT_VALUE && (j->check->flags & CHECK_ONCE) != 0) {
            judge_subject(j, &listed[i], "");
            return;
        }
        if (listed[i].state == FACT_VALUE) {
            judge_subject(j, &listed[i], listed[i].subject);
        } else if ((j->check->flags & CHECK_LIST) == 0 || listed[i].subject[0] != '\0') {
            judge_none(j, &listed[i]);
        }
    }
    if (count == 0) {
        judge_none(j, NULL);
    }
}

/* ---- after the verdicts: failures ---- */

static void excuse_young(struct audit *a, uint32_t from)
{
    for (uint32_t i = from; i < a->count; i++) {
        struct audit_result *r = &a->results[i];
        const struct fact *up = sheet_find(&a->sheets[r->sheet], FACT_OS_UPTIME, "");
        int64_t seconds;
        if ((r->status == AUDIT_FAIL || r->status == AUDIT_WARN) && up != NULL &&
            up->state == FACT_VALUE && fact_number(up->value, &seconds) &&
            (double)seconds < a->settings->young_s) {
            r->status = AUDIT_UNKNOWN;
            r->reason = REASON_YOUNG;
            r->note = "the host has just booted: look again in some minutes";
        }
    }
}

static const char *product_of(const struct audit *a, uint32_t sheet)
{
    const char *kind = audit_kind(a, sheet);

    return kind != NULL ? kind : "";
}

/* Of one product: hosts that were judged, and those that failed. */
static void count_hosts(const struct audit *a, uint32_t from, const char *product,
                        uint32_t *ret_judged, uint32_t *ret_failed)
{
    uint32_t judged = UINT32_MAX, failed = UINT32_MAX;

    *ret_judged = *ret_failed = 0;
    for (uint32_t i = from; i < a->count; i++) {
        const struct audit_result *r = &a->results[i];
        if (r->status == AUDIT_SKIP || r->status == AUDIT_UNKNOWN ||
            strcmp(product_of(a, r->sheet), product) != 0) {
            continue;
        }
        *ret_judged += r->sheet != judged;
        judged = r->sheet;
        if (r->status == AUDIT_FAIL) {
            *ret_failed += r->sheet != failed;
            failed = r->sheet;
        }
    }
}

static void break_off(struct audit *a, uint32_t from, const char *product)
{
    for (uint32_t i = from; i < a->count; i++) {
        struct audit_result *r = &a->results[i];
        if (r->status == AUDIT_FAIL && strcmp(product_of(a, r->sheet), product) == 0) {
            r->status = AUDIT_WARN;
            r->suspect = true;
            r->severity = SEVERITY_TICKET;
            r->note = "so many hosts of its kind would fail that the check itself is suspect";
        }
    }
}

/* Products with few failures, of those that were counted so far. */
struct spared {
    const char *product[64];
    uint32_t count;
};

static bool is_spared(const struct spared *s, const char *product)
{
    const uint32_t count =
        s->count < ARRAY_COUNT(s->product) ? s->count : (uint32_t)ARRAY_COUNT(s->product);

    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(s->product[i], product) == 0) {
            return true;
        }
    }
    return false;
}

/* Counts each product once, in any order of hosts. */
static void mind_breaker(struct audit *a, uint32_t from)
{
    const struct audit_settings *s = a->settings;
    struct spared spared = {.count = 0};
    uint32_t judged, failed;

    for (uint32_t i = from; i < a->count; i++) {
        const struct audit_result *r = &a->results[i];
        const char *product = product_of(a, r->sheet);
        if (r->status != AUDIT_FAIL || is_spared(&spared, product)) {
            continue;
        }
        count_hosts(a, from, product, &judged, &failed);
        if (judged >= BREAKER_WHOLE ? (double)failed > s->breaker_share * (double)judged
                                    : failed > s->breaker_count) {
            break_off(a, from, product);
        } else {
            spared.product[spared.count++ % ARRAY_COUNT(spared.product)] = product;
        }
    }
}

void audit_room(struct audit *a)
{
    a->capacity = a->item_capacity = 1;
    a->mention_capacity = audit_mention_room(a);
    for (uint32_t n = 0; n < CATALOGUE_COUNT; n++) {
        uint32_t most = 0, count;
        for (uint32_t i = 0; i < a->sheet_count; i++) {
            count = 1;
            if (check_at(n)->each != FACT_COUNT) {
                (void)sheet_first(&a->sheets[i], check_at(n)->each, &count);
            }
            /* one more, for an empty list; and one for a list that is judged itself */
            most += count + 1 + ((check_at(n)->flags & CHECK_LIST) != 0);
        }
        a->capacity += most;
        a->item_capacity = most > a->item_capacity ? most : a->item_capacity;
    }
}

int audit_judge(struct audit *a)
{
    find_kinds(a);
    find_managers(a);
    a->count = 0;
    a->text_used = 0;
    a->full = false;
    audit_mentions_find(a);
    for (uint32_t n = 0; n < CATALOGUE_COUNT && !a->full; n++) {
        const uint32_t from = a->count;
        a->item_count = 0;
        for (uint32_t i = 0; i < a->sheet_count && !a->full; i++) {
            struct check_setting own =
                a->settings->checks != NULL ? a->settings->checks[n] : (struct check_setting){0};
            own.declared = audit_declares(a->settings, check_at(n), a->sheets[i].host);
            struct judging j = {.audit = a,
                                .check = check_at(n),
                                .setting = a->settings->checks != NULL ? &own : NULL,
                                .sheet = &a->sheets[i]};
            judge_sheet(&j);
        }
        cohort_settle(a, check_at(n));
        baseline_settle(a, check_at(n), from);
        pairs_settle(a, check_at(n), from);
        excuse_young(a, from);
        if ((check_at(n)->flags & CHECK_OF_LINKS) == 0) {
            mind_breaker(a, from);
        }
    }
    return a->full ? -28 /* ENOSPC */ : 0;
}

static void seen_once(struct audit_result *r, const char *note)
{
    r->status = AUDIT_WARN;
    r->seen_once = true;
    r->note = note;
}

static void nobody_denies(struct audit_result *r, enum audit_reason reason, const char *note)
{
    r->status = AUDIT_UNKNOWN;
    r->reason = (uint8_t)reason;
    r->note = note;
}

static const struct audit_result *same_of(const struct audit *a, const struct audit_result *r)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const struct audit_result *s = &a->results[i];
        if (s->check == r->check && s->sheet == r->sheet && strcmp(s->subject, r->subject) == 0) {
            return s;
        }
    }
    return NULL;
}

static const char it_left[] = "it failed, and a second look has nothing of it",
                  could_not_tell[] = "it failed, and a second look could not tell",
                  stopped_before[] =
                      "it failed at the first look, and the audit was stopped before the second";

void audit_confirm(struct audit *a, const struct audit *second)
{
    for (uint32_t i = 0; i < a->count; i++) {
        struct audit_result *r = &a->results[i];
        const struct audit_result *s = r->status == AUDIT_FAIL ? same_of(second, r) : NULL;
        if (r->status != AUDIT_FAIL || (s != NULL && s->status == AUDIT_FAIL)) {
            continue;
        }
        if (s == NULL) {
            nobody_denies(r, REASON_NO_SOURCE, it_left);
        } else if (s->status == AUDIT_UNKNOWN || s->status == AUDIT_SKIP) {
            nobody_denies(r, s->status == AUDIT_SKIP ? REASON_NOT_RUN : s->reason, could_not_tell);
        } else {
            seen_once(r, "seen once: a second look did not find it");
        }
    }
}

/* The order of results: by check, then by sheet, then by subject. */
static int failure_order(const struct audit_failure *f, const struct audit_result *r)
{
    if (f->check != r->check) {
        return check_number(f->check) < check_number(r->check) ? -1 : 1;
    }
    if (f->sheet != r->sheet) {
        return f->sheet < r->sheet ? -1 : 1;
    }
    return strcmp(f->subject, r->subject);
}

/* A device that is gone. If the second look found no device of its kind, that result takes the failure. Else one result is added,
 * at most one a check and host; there always is room for it (audit_room). */
static void add_left(struct audit *a, const struct audit_failure *f,
                     const struct audit_again *again)
{
    const struct check_setting *setting =
        a->settings->checks != NULL ? &a->settings->checks[check_number(f->check)] : NULL;

    if (f->witness || a->sheets[f->sheet].missing != REASON_NONE) {
        return; /* without a sheet each check is unknown anyway */
    }
    if ((f->check->flags & CHECK_VANISHES) != 0 && again->measured[f->sheet]) {
        return;
    }
    for (uint32_t i = 0; i < a->count; i++) {
        struct audit_result *r = &a->results[i];
        if (r->check == f->check && r->sheet == f->sheet && r->note == it_left) {
            return;
        }
        if (r->check == f->check && r->sheet == f->sheet && r->subject[0] == '\0' &&
            (f->check->flags & CHECK_LIST) == 0) { /* else it is the list's own result */
            nobody_denies(r, REASON_NO_SOURCE, it_left);
            return;
        }
    }
    ASSERT(a->count < a->capacity);
    a->results[a->count] = (struct audit_result){
        .check = f->check,
        .sheet = f->sheet,
        .severity =
            setting != NULL && setting->has_severity ? setting->severity : f->check->severity,
        .subject = f->subject,
        .found = "",
        .expected = "",
        .basis = ""};
    nobody_denies(&a->results[a->count++], REASON_NO_SOURCE, it_left);
}

bool audit_failure_of(const struct audit_result *r, struct audit_failure *ret)
{
    const bool failed = r->status == AUDIT_FAIL ||
                        (r->status == AUDIT_WARN && (r->check->flags & CHECK_VANISHES) != 0);
    *ret = (struct audit_failure){r->check, r->sheet, r->subject, r->by_peer && !failed};
    return failed || r->by_peer;
}

static void confirm_one(struct audit_result *r, bool before, const struct audit_again *again)
{
    struct audit_failure is;
    const bool of_matrix = (r->check->flags & CHECK_MATRIX) != 0;
    const bool seen = of_matrix ? again->measured[r->sheet] : again->looked[r->sheet];

    if (r->status == AUDIT_FAIL && before && !seen && again->stopped) {
        nobody_denies(r, REASON_NOT_RUN, stopped_before);
    } else if (r->status == AUDIT_FAIL && before && of_matrix && !seen) {
        nobody_denies(r, REASON_NOT_RUN, "it failed, and was not measured again");
    } else if (r->status == AUDIT_FAIL && before && !seen) {
        nobody_denies(r, REASON_TIMEOUT, "it failed, and no second look came");
    } else if (!before && audit_failure_of(r, &is) && !is.witness) {
        seen_once(r, "seen once: the first look did not find it");
    } else if (r->status == AUDIT_PASS && before) {
        seen_once(r, "seen once: a second look did not find it");
    } else if (r->status == AUDIT_WARN && before && r->note[0] == '\0') {
        r->note = "it failed at the first look, and is less bad at the second";
    } else if (r->status == AUDIT_UNKNOWN && before) {
        r->note = could_not_tell;
    } else if (r->status == AUDIT_SKIP && before) {
        nobody_denies(r, REASON_NOT_RUN, could_not_tell);
    }
}

void audit_confirm_first(struct audit *a, const struct audit_failure *first, uint32_t count,
                         const struct audit_again *again)
{
    const uint32_t judged = a->count;
    uint32_t k = 0;

    for (uint32_t i = 0; i < judged; i++) {
        struct audit_result *r = &a->results[i];
        while (k < count && (first[k].witness || failure_order(&first[k], r) < 0)) {
            add_left(a, &first[k++], again);
        }
        const bool before = k < count && failure_order(&first[k], r) == 0;
        confirm_one(r, before, again);
        k += before;
    }
    while (k < count) {
        add_left(a, &first[k++], again);
    }
}

void audit_unconfirmed(struct audit *a)
{
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->results[i].status == AUDIT_FAIL) {
            nobody_denies(&a->results[i], REASON_NOT_RUN, stopped_before);
        }
    }
}

enum audit_status audit_worst(const struct audit *a, const char *prefix, uint32_t sheet,
                              uint32_t ret_counts[AUDIT_STATUS_COUNT])
{
    enum audit_status worst = AUDIT_SKIP;

    memset(ret_counts, 0, AUDIT_STATUS_COUNT * sizeof(*ret_counts));
    for (uint32_t i = 0; i < a->count; i++) {
        const struct audit_result *r = &a->results[i];
        if ((sheet == UINT32_MAX || r->sheet == sheet) &&
            strncmp(r->check->id, prefix, strlen(prefix)) == 0) {
            ret_counts[r->status]++;
            worst = r->status < worst ? r->status : worst;
        }
    }
    return worst;
}
