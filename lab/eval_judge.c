/* eval_judge.c: computes how far clocks differ. */
#include "lab/eval_judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "stats/sample.h"

const char *eval_status_name(enum eval_status status)
{
    static const char *const names[] = {"ABSENT", "UNKNOWN", "SYNCED", "HOLDOVER", "DISRUPTED"};
    return (size_t)status < ARRAY_COUNT(names) ? names[status] : "?";
}

int eval_series_add(struct eval_series *s, int64_t value)
{
    if (s->count == EVAL_SAMPLES_MAX) {
        s->truncated = true;
        return 0;
    }
    if (s->count == s->capacity) {
        size_t capacity = s->capacity > 0 ? 2 * s->capacity : 1024;
        int64_t *values = realloc(s->values, capacity * sizeof(*values));
        if (values == NULL) {
            return -ENOMEM;
        }
        s->values = values;
        s->capacity = capacity;
    }
    s->values[s->count++] = value;
    return 0;
}

int64_t eval_quantile(struct eval_series *s, double p)
{
    if (s->count == 0) {
        return 0;
    }
    qsort(s->values, s->count, sizeof(*s->values), sample_order_int);
    return sample_quantile_int(s->values, s->count, p);
}

int eval_init(struct eval *e, int clock_count)
{
    ASSERT(clock_count > 0 && clock_count <= EVAL_CLOCK_MAX);
    *e = (struct eval){.clock_count = clock_count};
    e->last = calloc((size_t)clock_count, sizeof(*e->last));
    e->scratch = calloc((size_t)clock_count, sizeof(*e->scratch));
    return e->last == NULL || e->scratch == NULL ? -ENOMEM : 0;
}

void eval_done(struct eval *e)
{
    free(e->pair_error.values);
    free(e->hard_width.values);
    free(e->statistical_width.values);
    free(e->centre_error.values);
    free(e->changes);
    free(e->last);
    free(e->scratch);
    *e = (struct eval){0};
}

static int64_t magnitude(int64_t a)
{
    return a < 0 ? -a : a;
}

static int note_change(struct eval *e, int64_t raw_ns, int clock, const struct eval_reading *r)
{
    if (e->change_count == e->change_capacity) {
        size_t capacity = e->change_capacity > 0 ? 2 * e->change_capacity : 64;
        struct eval_change *changes = realloc(e->changes, capacity * sizeof(*changes));
        if (changes == NULL) {
            return -ENOMEM;
        }
        e->changes = changes;
        e->change_capacity = capacity;
    }
    e->changes[e->change_count++] = (struct eval_change){raw_ns, clock, r->status, r->epoch};
    return 0;
}

static int note_changes(struct eval *e, int64_t raw_ns, const struct eval_reading *readings)
{
    for (int i = 0; i < e->clock_count; i++) {
        const struct eval_reading *r = &readings[i], *was = &e->last[i];
        bool shown = r->status != EVAL_ABSENT && r->status != EVAL_UNKNOWN;
        bool was_shown = was->status != EVAL_ABSENT && was->status != EVAL_UNKNOWN;
        bool first = e->change_count < (size_t)e->clock_count && r->status == EVAL_ABSENT;
        if (shown && was_shown && r->epoch == was->epoch && r->timeline == was->timeline &&
            r->time_ns < was->time_ns) {
            e->backwards++;
        }
        if (first || r->status != was->status || (shown && r->epoch != was->epoch)) {
            int rc = note_change(e, raw_ns, i, r);
            if (rc < 0) {
                return rc;
            }
        }
        e->last[i] = *r;
    }
    return 0;
}

static bool is_judged(const struct eval_reading *r)
{
    return r->status == EVAL_SYNCED && !r->is_excused;
}

/* A clock in holdover has a valid hard bound, too. */
static bool is_bounded(const struct eval_reading *r)
{
    return is_judged(r) || (r->status == EVAL_HOLDOVER && !r->is_excused);
}

static int judge_pair(struct eval *e, const struct eval_reading *a, const struct eval_reading *b)
{
    int64_t apart = magnitude(a->time_ns - b->time_ns);
    int64_t excess = apart - a->hard_ns - b->hard_ns;
    e->hard_judged++;
    e->hard_broken += excess > 0;
    e->hard_excess_ns = excess > e->hard_excess_ns ? excess : e->hard_excess_ns;
    return is_judged(a) && is_judged(b) ? eval_series_add(&e->pair_error, apart) : 0;
}

static int judge_pairs(struct eval *e, const struct eval_reading *r)
{
    int rc = 0;
    for (int i = 0; i < e->clock_count; i++) {
        for (int j = i + 1; is_bounded(&r[i]) && j < e->clock_count && rc == 0; j++) {
            if (is_bounded(&r[j]) && r[i].timeline == r[j].timeline) {
                rc = judge_pair(e, &r[i], &r[j]);
            }
        }
    }
    return rc;
}

static int judge_clock(struct eval *e, const struct eval_reading *r)
{
    int64_t off = magnitude(r->time_ns - e->centre_ns);
    e->statistical_judged++;
    e->statistical_broken += off > r->statistical_ns;
    double share = r->statistical_ns > 0 ? (double)off / (double)r->statistical_ns : 0;
    if (share > e->statistical_share_worst) {
        e->statistical_share_worst = share;
    }
    int rc = eval_series_add(&e->centre_error, off);
    rc = rc < 0 ? rc : eval_series_add(&e->hard_width, 2 * r->hard_ns);
    return rc < 0 ? rc : eval_series_add(&e->statistical_width, 2 * r->statistical_ns);
}

int eval_on_readings(struct eval *e, int64_t raw_ns, const struct eval_reading *readings)
{
    int r = note_changes(e, raw_ns, readings);
    int count = 0;
    bool split = false;
    const struct eval_reading *first = NULL;
    for (int i = 0; i < e->clock_count; i++) {
        if (is_judged(&readings[i])) {
            first = first != NULL ? first : &readings[i];
            split |= readings[i].timeline != first->timeline;
            e->scratch[count++] = readings[i].time_ns;
        }
    }
    e->split += split;
    e->centre_known = count > 0 && !split;
    if (r < 0 || count < 2) {
        return r;
    }
    e->instants++;
    e->complete += count == e->clock_count;
    r = judge_pairs(e, readings);
    if (r < 0 || split) {
        return r;
    }
    qsort(e->scratch, (size_t)count, sizeof(*e->scratch), sample_order_int);
    /* The mean of the middle two, without overflow. */
    int64_t low = e->scratch[(count - 1) / 2], high = e->scratch[count / 2];
    e->centre_ns = low + (high - low) / 2;
    for (int i = 0; i < e->clock_count && r == 0; i++) {
        if (is_judged(&readings[i])) {
            r = judge_clock(e, &readings[i]);
        }
    }
    return r;
}
