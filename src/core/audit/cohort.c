/* cohort.c: hosts that should be alike: majorities, medians, and values that must be unique. All members of one check's cohorts
 * are known when this begins. Votes are by host, not by part: a host with many GPUs, true or not, decides no more than the
 * others. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/rule_list.h"

static int compare_groups(const struct audit_item *x, const struct audit_item *y)
{
    const int product = strcmp(x->product, y->product);

    return product != 0 ? product : strcmp(x->key, y->key);
}

static int compare_results(const struct audit_item *x, const struct audit_item *y)
{
    return (x->result > y->result) - (x->result < y->result);
}

/* Orders by host: results are in the order of sheets. */
static int compare_hosts(const void *a, const void *b)
{
    const struct audit_item *x = a, *y = b;
    const int group = compare_groups(x, y);

    return group != 0 ? group : compare_results(x, y);
}

static int compare_values(const void *a, const void *b)
{
    const struct audit_item *x = a, *y = b;
    const int group = compare_groups(x, y), value = strcmp(x->value, y->value);

    return group != 0 ? group : value != 0 ? value : compare_results(x, y);
}

static int compare_numbers(const void *a, const void *b)
{
    const struct audit_item *x = a, *y = b;
    const int group = compare_groups(x, y);

    return group != 0               ? group
           : x->number != y->number ? (x->number > y->number ? 1 : -1)
                                    : compare_results(x, y);
}

/* A check's limits, as the site has set them. */
struct limits {
    const struct check *check;
    double fail, warn;
};

static struct limits limits_of(const struct audit *a, const struct check *c)
{
    const struct check_setting *s =
        a->settings->checks != NULL ? &a->settings->checks[check_number(c)] : NULL;

    return (struct limits){c, s != NULL && s->has_fail ? s->fail : c->fail,
                           s != NULL && s->has_warn ? s->warn : c->warn};
}

/* For texts that belong to no call of a rule. */
static const char *words(struct audit *a, const char *format, const char *one, uint32_t count,
                         uint32_t of)
{
    struct judging j = {.audit = a};
    const char *text = judge_format(&j, format, one, count, of);

    return text;
}

static void unknown(struct audit_result *r, enum audit_reason reason, const char *note)
{
    r->status = AUDIT_UNKNOWN;
    r->reason = (uint8_t)reason;
    r->note = note;
}

/* How many items from `i` on have the same value as item `i`. */
static uint32_t run_of(const struct audit_item *items, uint32_t i, uint32_t count)
{
    uint32_t n = 1;

    while (i + n < count && strcmp(items[i + n].value, items[i].value) == 0) {
        n++;
    }
    return n;
}

/* Each value with the number of its items: "512 (11), 4096 (7)". */
static const char *variants(struct audit *a, const struct audit_item *items, uint32_t count)
{
    char text[256] = "";
    size_t used = 0;

    for (uint32_t i = 0, n; i < count && used + 1 < sizeof(text); i += n) {
        n = run_of(items, i, count);
        const int added = snprintf(text + used, sizeof(text) - used, "%s%.60s (%u)",
                                   used > 0 ? ", " : "", items[i].value, n);
        used += added > 0 ? (size_t)added : 0;
    }
    return words(a, "%s", text, 0, 0);
}

/* The vote of one host, in fractions. */
#define WHOLE_VOTE (UINT64_C(1) << 20)

static uint64_t votes_of(const struct audit_item *items, uint32_t count)
{
    uint64_t votes = 0;

    for (uint32_t i = 0; i < count; i++) {
        votes += items[i].vote;
    }
    return votes;
}

/* items: sorted by host. The parts of a host share its vote. */
static void share_votes(struct audit *a)
{
    struct audit_item *items = a->items;
    uint32_t n;

    for (uint32_t i = 0; i < a->item_count; i += n) {
        const uint32_t sheet = a->results[items[i].result].sheet;
        for (n = 1; i + n < a->item_count && a->results[items[i + n].result].sheet == sheet &&
                    compare_groups(&items[i], &items[i + n]) == 0;) {
            n++;
        }
        for (uint32_t k = i; k < i + n; k++) {
            items[k].vote = WHOLE_VOTE / n;
        }
    }
}

/* items: sorted by value. A minority of one host of five or more, of at most a tenth of all, or of a single part fails. A
 * minority of up to a third is a warning. */
static void settle_same(struct audit *a, const struct audit_item *items, uint32_t count)
{
    const uint64_t all = votes_of(items, count);
    uint32_t best = 0, alike = 0;
    uint64_t most = 0;

    for (uint32_t i = 0, n; i < count; i += n) {
        n = run_of(items, i, count);
        const uint64_t votes = votes_of(&items[i], n);
        if (votes > most) {
            best = i;
            alike = n;
            most = votes;
        }
    }
    const bool majority = most * 3 >= all * 2;
    const uint64_t others = all - most;
    const bool few = count - alike <= 1 || others * 10 <= all ||
                     (others <= WHOLE_VOTE && all > (COHORT_LEAST - 1) * WHOLE_VOTE);
    const char *basis =
        majority && alike < count ? words(a, "%sas %u of %u have it", "", alike, count) : "";
    const char *differ = majority ? NULL : variants(a, items, count);
    for (uint32_t i = 0; i < count; i++) {
        struct audit_result *r = &a->results[items[i].result];
        r->cohort = count;
        if (!majority) {
            unknown(r, REASON_NO_MAJORITY, differ);
        } else if (strcmp(items[i].value, items[best].value) != 0) {
            r->status = few ? AUDIT_FAIL : AUDIT_WARN;
            r->expected = items[best].value;
            r->basis = basis;
        } else {
            r->expected = items[best].value;
        }
    }
}

/* items: sorted by number. Returns the item in the middle of all votes; if the middle is between two, the greater one. */
static uint32_t middle_of(const struct audit_item *items, uint32_t count)
{
    const uint64_t all = votes_of(items, count);
    uint64_t votes = 0;
    uint32_t i = 0;

    for (; i + 1 < count; i++) {
        votes += items[i].vote;
        if (votes * 2 > all) {
            break;
        }
    }
    return i;
}

/* items: sorted by number. If the middle is between two, it takes the lesser one: then half of the votes can't make the others
 * slow. */
static void settle_near(struct audit *a, const struct audit_item *items, uint32_t count,
                        double share)
{
    const uint64_t all = votes_of(items, count);
    const struct audit_item *middle = items;
    uint64_t votes = items[0].vote;
    while (votes * 2 < all) {
        middle++;
        votes += middle->vote;
    }
    const char *basis = words(a, "%sthe median of %u", "", count, 0);

    for (uint32_t i = 0; i < count; i++) {
        struct audit_result *r = &a->results[items[i].result];
        r->cohort = count;
        r->expected = middle->value;
        r->basis = basis;
        if (items[i].number < middle->number * (1 - share)) {
            r->status = items[i].once ? AUDIT_WARN : AUDIT_FAIL;
            r->seen_once = items[i].once;
            r->note = items[i].once ? "measured once: run it again, three times or more" : r->note;
        }
    }
}

/* items: sorted by number. Returns the median distance from their median. The next nearest item is on the left or on the
 * right. */
static double spread_of(const struct audit_item *items, uint32_t count, uint32_t median)
{
    const double middle = items[median].number;
    const uint64_t all = votes_of(items, count);
    uint64_t taken = items[median].vote;
    uint32_t left = median, right = median + 1;
    double distance = 0;

    while (taken * 2 <= all && (left > 0 || right < count)) {
        const double below = left > 0 ? middle - items[left - 1].number : INFINITY,
                     above = right < count ? items[right].number - middle : INFINITY;
        distance = below < above ? below : above;
        taken += below < above ? items[--left].vote : items[right++].vote;
    }
    return 1.4826 * distance;
}

/* items: sorted by number. A member fails if it is more than six spreads from the median, and by more than the least that
 * matters. */
static void settle_apart(struct audit *a, const struct limits *l, const struct audit_item *items,
                         uint32_t count)
{
    enum { SPREADS = 6 };
    const uint32_t median = middle_of(items, count);
    const struct audit_item *middle = &items[median];
    const bool both = l->check->rule == rule_clock_rate, warns = l->check->rule == rule_optics;
    const double matters = both || warns ? l->warn * 1000 : l->fail,
                 spread = spread_of(items, count, median);
    const char *basis = words(a, "%sthe median of %u", "", count, 0);

    for (uint32_t i = 0; i < count; i++) {
        struct audit_result *r = &a->results[items[i].result];
        const double off = items[i].number - middle->number,
                     distance = off < 0 && both ? -off : off;
        r->cohort = count;
        r->expected = middle->value;
        r->basis = basis;
        if (distance > SPREADS * spread && distance > matters && distance > items[i].least) {
            r->status = warns ? AUDIT_WARN : AUDIT_FAIL;
        }
    }
}

/* Members share one value. Returns the host that has had it for longest, if all others got it later: that host is the original.
 * UINT32_MAX: not known. */
static uint32_t first_owner(const struct audit *a, const struct audit_item *items, uint32_t count)
{
    uint32_t first = UINT32_MAX;
    int64_t since = INT64_MAX, second = INT64_MAX;

    for (uint32_t i = 0; i < count; i++) {
        const uint32_t sheet = a->results[items[i].result].sheet;
        const int64_t its = a->sheets[sheet].own_since_ns;
        if (its == 0) {
            return UINT32_MAX;
        }
        if (sheet != first && its < since) {
            second = since;
            since = its;
            first = sheet;
        } else if (sheet != first && its < second) {
            second = its;
        }
    }
    return second != INT64_MAX && second - since > OWNER_APART_NS ? first : UINT32_MAX;
}

/* items: sorted by value, all of one cohort. */
static void settle_unique(struct audit *a, const struct audit_item *items, uint32_t count)
{
    for (uint32_t i = 0, n; i < count; i += n) {
        n = run_of(items, i, count);
        const uint32_t owner = n > 1 ? first_owner(a, &items[i], n) : UINT32_MAX;
        for (uint32_t k = i; k < i + n; k++) {
            struct audit_result *r = &a->results[items[k].result];
            r->cohort = count;
            r->expected = "nobody else has it";
            if (n > 1) {
                const struct audit_result *other = &a->results[items[k == i ? i + 1 : i].result];
                r->status = r->sheet == owner && other->sheet != owner ? AUDIT_WARN : AUDIT_FAIL;
                r->note = words(a, r->status == AUDIT_WARN ? "so has %s, since later" : "so has %s",
                                a->sheets[other->sheet].host, 0, 0);
            }
        }
    }
}

/* items: sorted by number. It names one host of a hundred, or of fewer hosts the one with most. If many reach the same level, it
 * names none. */
static void settle_history(struct audit *a, const struct limits *l, const struct audit_item *items,
                           uint32_t count)
{
    const uint32_t most = count > 100 ? count / 100 : 1;
    const char *basis = words(a, "%sthe worst %u of %u", "", most, count);

    for (uint32_t i = 0; i < count; i++) {
        struct audit_result *r = &a->results[items[i].result];
        uint32_t first = i; /* the first of those with the same number */
        r->cohort = count;
        r->basis = basis;
        if (items[i].number < l->warn * 1000) {
            continue;
        }
        while (first > 0 && items[first - 1].number == items[i].number) {
            first--;
        }
        r->status = count - first <= most ? AUDIT_WARN : AUDIT_PASS;
    }
}

static bool is_near(const struct check *c)
{
    return c->rule == rule_near || c->rule == rule_test_rate;
}

/* Such items are sorted by number, too. */
static bool is_apart(const struct check *c)
{
    return c->rule == rule_delay || c->rule == rule_clock_rate || c->rule == rule_history ||
           c->rule == rule_inband || c->rule == rule_optics;
}

static void settle_group(struct audit *a, const struct check *c, const struct audit_item *items,
                         uint32_t count)
{
    const uint32_t least = c->rule == rule_unique ? 2 : COHORT_LEAST;
    const struct limits limits = limits_of(a, c);

    if (c->rule == rule_mount) {
        mounts_settle(a, items, count, least);
    } else if (count < least) {
        for (uint32_t i = 0; i < count; i++) {
            struct audit_result *r = &a->results[items[i].result];
            r->cohort = count;
            unknown(r, REASON_SMALL_COHORT, "too few others to compare it with");
        }
    } else if (c->rule == rule_history) {
        settle_history(a, &limits, items, count);
    } else if (is_apart(c)) {
        settle_apart(a, &limits, items, count);
    } else if (is_near(c)) {
        settle_near(a, items, count, limits.fail);
    } else if (c->rule == rule_unique) {
        settle_unique(a, items, count);
    } else {
        settle_same(a, items, count);
    }
}

void cohort_settle(struct audit *a, const struct check *c)
{
    uint32_t n;

    if (a->item_count > 0) {
        qsort(a->items, a->item_count, sizeof(*a->items), compare_hosts);
        share_votes(a);
        qsort(a->items, a->item_count, sizeof(*a->items),
              is_near(c) || is_apart(c) ? compare_numbers : compare_values);
    }
    for (uint32_t i = 0; i < a->item_count; i += n) {
        for (n = 1; i + n < a->item_count && compare_groups(&a->items[i], &a->items[i + n]) == 0;) {
            n++;
        }
        settle_group(a, c, &a->items[i], n);
    }
}

void rule_same(struct judging *j)
{
    const struct check *c = j->check;
    const char *value = judge_text(j, c->facts[0], j->subject), *key = "";

    if (value == NULL) {
        return;
    }
    if (c->by == BY_SUBJECT) {
        key = j->subject;
    } else if (c->by == BY_FACT) {
        key = judge_text(j, c->by_fact, j->subject);
        if (key == NULL) {
            return;
        }
    }
    judge_join(j, key, value, 0);
}

void rule_near(struct judging *j)
{
    const char *value = judge_text(j, j->check->facts[0], j->subject);
    int64_t number;

    if (value != NULL && judge_number(j, j->check->facts[0], j->subject, &number)) {
        judge_join(j, j->check->by == BY_SUBJECT ? j->subject : "", value, (double)number);
        if (j->result->status == AUDIT_PASS) { /* still a pass: the join set no other status */
            j->result->found = judge_counted(j, number);
        }
    }
}

void rule_unique(struct judging *j)
{
    const char *value = judge_text(j, j->check->facts[0], j->subject);
    struct audit *a = j->audit;
    const uint32_t before = a->item_count;

    if (value != NULL) {
        judge_join(j, "", value, 0);
        if (a->item_count > before) {
            a->items[before].product = ""; /* all products together */
        }
    }
}
