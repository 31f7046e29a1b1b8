/* baseline.c: see baseline.h. */
#include "core/audit/baseline.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/audit/rule_list.h"

enum { SPREADS = 6, DEVIATIONS = 3, BOUNDS = 3, RUNS_LEAST = 3 };

/* One sheet's measurement for a result. bound: the bound of its error: a share for a rate, else in the unit of the value. like: a
 * second value that must be equal: the hops and the rail of a delay, the number of hosts of a test; < 0: not known. */
struct measure {
    const struct fact *fact;
    double value, bound;
    int64_t like;
};

static bool is_rate(const struct check *c)
{
    return c->rule == rule_test_rate;
}

static bool rate_of(const struct check *c, const struct sheet *s, struct measure *ret)
{
    const struct fact *rate = sheet_find(s, FACT_TEST_RATE, c->words),
                      *spread = sheet_find(s, FACT_TEST_SPREAD, c->words),
                      *ranks = sheet_find(s, FACT_TEST_RANKS, c->words);
    int64_t thousandths, ten_thousandths, like = 0; /* it stays 0 for a test of one host alone */

    if (rate == NULL || rate->state != FACT_VALUE || !fact_number(rate->value, &thousandths) ||
        thousandths <= 0) {
        return false;
    }
    const bool known = spread != NULL && spread->state == FACT_VALUE &&
                       fact_number(spread->value, &ten_thousandths) && ten_thousandths > 0;
    if (ranks != NULL && (ranks->state != FACT_VALUE || !fact_number(ranks->value, &like))) {
        like = -1;
    }
    *ret = (struct measure){.fact = rate,
                            .value = (double)thousandths / 1000,
                            .like = like,
                            .bound = known ? DEVIATIONS * (double)ten_thousandths / 10000 : 0};
    return true;
}

static bool clock_rate_of(const struct sheet *s, struct measure *ret)
{
    const struct fact *rate = sheet_find(s, FACT_CLOCK_RATE, "");
    int64_t ppb;

    if (rate == NULL || rate->state != FACT_VALUE || !fact_number(rate->value, &ppb)) {
        return false;
    }
    *ret = (struct measure){.fact = rate, .value = (double)ppb};
    return true;
}

static bool delay_of(const struct sheet *s, const char *subject, struct measure *ret)
{
    const struct fact *edge = sheet_find(s, FACT_EDGE, subject);
    struct edge_delay d;

    if (edge == NULL || edge->state != FACT_VALUE || !edge_delay_of(edge->value, &d)) {
        return false;
    }
    *ret = (struct measure){.fact = edge,
                            .value = (double)d.least_ns,
                            .bound = BOUNDS * (double)d.bound_ns,
                            .like = 2 * d.hops + d.rail};
    return true;
}

static bool measure_of(const struct check *c, const struct sheet *s, const char *subject,
                       struct measure *ret)
{
    return c->rule == rule_test_rate    ? rate_of(c, s, ret)
           : c->rule == rule_clock_rate ? clock_rate_of(s, ret)
           : c->rule == rule_delay      ? delay_of(s, subject, ret)
                                        : false;
}

static bool alike(const struct measure *x, const struct measure *y)
{
    return x->like >= 0 && x->like == y->like;
}

static struct judging judging_of(struct audit *a, uint32_t result)
{
    struct audit_result *r = &a->results[result];
    const uint32_t n = check_number(r->check);
    struct judging j = {.audit = a,
                        .check = r->check,
                        .setting = a->settings->checks != NULL ? &a->settings->checks[n] : NULL,
                        .sheet = &a->sheets[r->sheet],
                        .subject = r->subject,
                        .result = r};

    judge_limits(&j);
    return j;
}

/* True if there is a measurement of now and one of then. If the site declares a value, the past doesn't count. */
static bool both(const struct judging *j, struct measure *now, struct measure *then)
{
    return j->result->status != AUDIT_SKIP && j->sheet->accepted != NULL &&
           audit_declares(j->audit->settings, j->check, j->sheet->host) == NULL &&
           measure_of(j->check, j->sheet, j->subject, now) &&
           measure_of(j->check, j->sheet->accepted, j->subject, then) && alike(now, then);
}

static int by_group(const struct audit_item *x, const struct audit_item *y)
{
    const int product = strcmp(x->product, y->product);

    return product != 0 ? product : (x->least > y->least) - (x->least < y->least);
}

static int by_value(const void *a, const void *b)
{
    const struct audit_item *x = a, *y = b;
    const int group = by_group(x, y);

    return group != 0               ? group
           : x->number != y->number ? (x->number > y->number ? 1 : -1)
                                    : (x->result > y->result) - (x->result < y->result);
}

static int by_result(const void *a, const void *b)
{
    const struct audit_item *x = a, *y = b;
    const int group = by_group(x, y);

    return group != 0 ? group : (x->result > y->result) - (x->result < y->result);
}

/* values: sorted. Returns 1.4826 times the median distance from their median; 0 for few values. */
static double spread_of(const struct audit_item *items, uint32_t count)
{
    const uint32_t middle = count / 2;
    uint32_t left = middle, right = middle + 1;
    double distance = 0;

    for (uint32_t taken = 1; count >= COHORT_LEAST && taken * 2 <= count; taken++) {
        const double below = left > 0 ? items[middle].number - items[left - 1].number : INFINITY,
                     above = right < count ? items[right].number - items[middle].number : INFINITY;
        distance = fmin(below, above);
        left -= below < above;
        right += below >= above;
    }
    return 1.4826 * distance;
}

/* ret_worse: by how much it is worse than it was. ret_limit: up to this, a change means nothing. */
static void compare(const struct judging *j, const struct measure *now, const struct measure *then,
                    double spread, double *ret_worse, double *ret_limit)
{
    const bool rate = is_rate(j->check), clock = j->check->rule == rule_clock_rate;
    const double more = now->value - then->value,
                 worse = rate    ? -more / then->value
                         : clock ? fabs(more)
                                 : more,
                 matters = clock ? j->warn * 1000 : j->fail,
                 wide = SPREADS * (rate ? spread / then->value : spread),
                 error = rate ? hypot(now->bound, then->bound) : fmax(now->bound, then->bound);

    *ret_worse = worse;
    *ret_limit = fmax(matters, fmax(wide, error));
}

/* It was measured once, or beside other hosts without a retest. A first sight is no failure. */
static bool is_first_sight(const struct judging *j)
{
    const struct fact *runs = sheet_find(j->sheet, FACT_TEST_RUNS, j->check->words);
    uint32_t count;
    int64_t n;

    return is_rate(j->check) && (runs == NULL || !fact_number(runs->value, &n) || n < RUNS_LEAST ||
                                 (strcmp(j->check->words, "pair_bw") == 0 &&
                                  sheet_first(j->sheet, FACT_PERF_NIC, &count) != NULL));
}

static void put_value(const struct check *c, double value, char *ret, size_t size)
{
    if (is_rate(c)) {
        snprintf(ret, size, "%.3f", value);
    } else {
        snprintf(ret, size, "%.0f %s", value, c->rule == rule_clock_rate ? "ppb" : "ns");
    }
}

static void tell(struct judging *j, const struct measure *then, double worse, double limit,
                 uint32_t moved, uint32_t hosts)
{
    struct audit_result *r = j->result;
    const bool shared = hosts >= COHORT_LEAST && moved * 2 > hosts;
    const bool small = r->status == AUDIT_UNKNOWN && r->reason == REASON_SMALL_COHORT;
    char before[48], most[48];

    judge_rest(j, then->fact);
    r->baseline = j->sheet->accepted->run;
    if (!small && (r->status != AUDIT_PASS || worse <= limit)) {
        return;
    }
    put_value(j->check, then->value, before, sizeof(before));
    put_value(j->check, limit, most, sizeof(most));
    const bool fails = hosts >= COHORT_LEAST && !shared && !is_first_sight(j);
    r->status = worse <= limit ? AUDIT_PASS : fails ? AUDIT_FAIL : AUDIT_WARN;
    r->reason = REASON_NONE;
    r->expected = is_rate(j->check) ? judge_format(j, "%s, less %.1f %%", before, limit * 100)
                                    : judge_format(j, "%s, and at most %s off", before, most);
    r->basis = j->sheet->accepted->run;
    r->note = worse <= limit         ? ""
              : shared               ? judge_format(j,
                                                    "%u of %u hosts of its kind are worse than then: what "
                                                                  "they share has changed",
                                                    moved, hosts)
              : fails                ? "it alone is worse than then"
              : hosts < COHORT_LEAST ? "too few others to tell whether it alone is worse"
                                     : "measured once: run it again, three times or more";
}

/* The number of hosts, and of those that are worse than they were. A host is worse if most of its results of this kind are: so
 * one neighbour that is further away than before makes no other host worse. */
struct shift {
    uint32_t hosts, moved, sheet, results, worse;
};

static void count_host(struct shift *s, uint32_t sheet)
{
    s->hosts += s->results > 0;
    s->moved += s->worse * 2 > s->results;
    *s = (struct shift){.hosts = s->hosts, .moved = s->moved, .sheet = sheet};
}

/* Settles one cohort. */
static void settle(struct audit *a, struct audit_item *items, uint32_t count)
{
    const double spread = spread_of(items, count);
    struct shift s = {.sheet = UINT32_MAX};

    qsort(items, count, sizeof(*items), by_result);
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < count; i++) {
            struct judging j = judging_of(a, items[i].result);
            struct measure now, then;
            double worse, limit;
            if (!both(&j, &now, &then)) {
                continue;
            }
            compare(&j, &now, &then, spread, &worse, &limit);
            if (pass == 1) {
                tell(&j, &then, worse, limit, s.moved, s.hosts);
                continue;
            }
            if (j.result->sheet != s.sheet) {
                count_host(&s, j.result->sheet);
            }
            s.results++;
            s.worse += worse > limit;
        }
        if (pass == 0) {
            count_host(&s, UINT32_MAX);
        }
    }
}

void baseline_settle(struct audit *a, const struct check *c, uint32_t from)
{
    uint32_t n;

    a->item_count = 0;
    for (uint32_t i = from; i < a->count && (c->compare & COMPARE_BASELINE) != 0; i++) {
        struct judging j = judging_of(a, i);
        struct measure now, then;
        const char *kind = audit_kind(a, j.result->sheet);
        if (both(&j, &now, &then)) {
            if (a->item_count == a->item_capacity) {
                a->full = true;
                return;
            }
            a->items[a->item_count++] = (struct audit_item){.result = i,
                                                            .product = kind != NULL ? kind : "",
                                                            .least = then.like,
                                                            .number = then.value};
        }
    }
    if (a->item_count > 0) {
        qsort(a->items, a->item_count, sizeof(*a->items), by_value);
    }
    for (uint32_t i = 0; i < a->item_count; i += n) {
        for (n = 1; i + n < a->item_count && by_group(&a->items[i], &a->items[i + n]) == 0;) {
            n++;
        }
        settle(a, &a->items[i], n);
    }
    a->item_count = 0;
}

/* ---- two audits ---- */

/* Did this check of a host change by more than noise, to the better or to the worse? */
static bool differs(const struct check *c, const struct sheet *was, const struct sheet *is,
                    const char *subject, struct measured_change *ret)
{
    const struct judging j = {.check = c, .fail = c->fail, .warn = c->warn};
    struct measure before, after;
    double worse, limit;

    *ret = (struct measured_change){.check = c, .subject = subject};
    if (c->rule == rule_matrix_drift) {
        return matrix_delays_differ(c, sheet_find(was, FACT_MATRIX, subject),
                                    sheet_find(is, FACT_MATRIX, subject), ret->was, ret->is);
    }
    if (!measure_of(c, was, subject, &before) || !measure_of(c, is, subject, &after) ||
        !alike(&before, &after)) {
        return false;
    }
    compare(&j, &after, &before, 0, &worse, &limit);
    put_value(c, before.value, ret->was, sizeof(ret->was));
    put_value(c, after.value, ret->is, sizeof(ret->is));
    return fabs(worse) > limit;
}

bool measured_diff_next(struct measured_diff *d, struct measured_change *ret)
{
    for (; d->check < CATALOGUE_COUNT; d->check++, d->at = 0) {
        const struct check *c = check_at(d->check);
        uint32_t count = 1;
        const struct fact *each =
            c->each != FACT_COUNT ? sheet_first(d->is, (enum fact_id)c->each, &count) : NULL;
        while ((c->compare & COMPARE_BASELINE) != 0 && d->at < count) {
            const char *subject = each != NULL ? each[d->at].subject : "";
            d->at++;
            if (differs(c, d->was, d->is, subject, ret)) {
                return true;
            }
        }
    }
    return false;
}
