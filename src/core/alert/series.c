/* series.c: turns samples into conditions: thresholds, increases of counters over sliding windows, absence, and combined values
 * of many members. A healthy subject costs one comparison. Only counters, and values that are waited for, need memory. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/alert/internal.h"

bool series_init(struct alerts *a)
{
    a->watch_max = a->config.watch_max;
    a->window_max = a->watch_max / 4 + 64;
    a->window_free = NONE;
    a->round_max = a->watch_max / 16 + 64;
    a->round_free = NONE;
    a->watches = calloc(a->watch_max, sizeof(*a->watches));
    a->windows = calloc(a->window_max, sizeof(*a->windows));
    a->rounds = calloc(a->round_max, sizeof(*a->rounds));
    a->watch_free = NONE;
    return a->watches != NULL && a->windows != NULL && a->rounds != NULL &&
           hash_init(&a->watch_hash, a->watch_max) && hash_init(&a->round_hash, a->round_max);
}

/* ---- the state of a subject ------------------------------------------------------------------------------------------ */

static struct watch *watch_find(const struct alerts *a, uint64_t key)
{
    uint32_t at = a->watch_hash.heads[key & a->watch_hash.mask];

    while (at != NONE && a->watches[at].key != key) {
        at = a->watches[at].chain;
    }
    return at != NONE ? &a->watches[at] : NULL;
}

static struct watch *watch_new(struct alerts *a, uint64_t key)
{
    uint32_t at = a->watch_free;

    if (at != NONE) {
        a->watch_free = a->watches[at].chain;
    } else if (a->watch_top < a->watch_max) {
        at = a->watch_top++;
    } else {
        a->counters.watches_dropped++;
        return NULL;
    }
    struct watch *w = &a->watches[at];
    *w = (struct watch){.key = key, .used = true, .window = NONE, .last = a->now};
    w->chain = a->watch_hash.heads[key & a->watch_hash.mask];
    a->watch_hash.heads[key & a->watch_hash.mask] = at;
    a->counters.watches++;
    return w;
}

static void window_forget(struct alerts *a, struct watch *w)
{
    if (w->window != NONE) {
        a->windows[w->window].used = false;
        a->windows[w->window].watch = a->window_free;
        a->window_free = w->window;
        w->window = NONE;
    }
}

static void watch_forget(struct alerts *a, uint32_t at)
{
    struct watch *w = &a->watches[at];
    uint32_t *link = &a->watch_hash.heads[w->key & a->watch_hash.mask];

    while (*link != at) {
        link = &a->watches[*link].chain;
    }
    *link = w->chain;
    window_forget(a, w);
    w->used = false;
    w->chain = a->watch_free;
    a->watch_free = at;
    ASSERT(a->counters.watches > 0);
    a->counters.watches--;
}

static uint64_t host_key(uint32_t host)
{
    return hash_u64(hash_u64(HOST_RULE, 0x686f7374ULL), host);
}

void series_host_seen(struct alerts *a, uint32_t host)
{
    if (host == ALERT_NO_ID) {
        return;
    }
    a->host_seen = a->now;
    struct watch *w = watch_find(a, host_key(host));
    if (w == NULL) {
        w = watch_new(a, host_key(host));
        if (w == NULL) {
            return;
        }
        w->rule = HOST_RULE;
        w->host = host;
        w->back = a->now;
    }
    if (mono_sub(a->now, w->last).ns > a->config.silent.ns) {
        w->back = a->now;
    }
    w->last = a->now;
}

bool host_is_silent(const struct alerts *a, uint32_t host)
{
    const struct watch *w = watch_find(a, host_key(host));

    return w != NULL && mono_sub(a->now, w->last).ns > a->config.silent.ns;
}

bool host_is_back(const struct alerts *a, uint32_t host)
{
    const struct watch *w = watch_find(a, host_key(host));

    return !host_is_silent(a, host) && (w == NULL || mono_sub(a->now, w->back).ns > GONE_NS);
}

static void round_forget(struct alerts *a, uint32_t at)
{
    struct round *r = &a->rounds[at];
    uint32_t *link = &a->round_hash.heads[r->key & a->round_hash.mask];

    while (*link != at) {
        link = &a->rounds[*link].chain;
    }
    *link = r->chain;
    *r = (struct round){.used = false, .chain = a->round_free};
    a->round_free = at;
}

void series_forget_host(struct alerts *a, uint32_t host)
{
    for (uint32_t at = 0; at < a->watch_top; at++) {
        const struct watch *w = &a->watches[at];
        const bool path = w->rule != HOST_RULE && a->rules[w->rule].scope == ALERT_PER_PATH;
        if (w->used && (w->host == host || (path && nic_is_gone(a, w->peer)))) {
            watch_forget(a, at);
        }
    }
    for (uint32_t at = 0; at < a->round_top; at++) {
        if (a->rounds[at].used && a->rounds[at].subject.host == host) {
            round_forget(a, at);
        }
    }
}

static void forget_job(struct alerts *a, uint64_t job)
{
    for (uint32_t at = 0; at < a->round_top; at++) {
        if (a->rounds[at].used && a->rules[a->rounds[at].rule].scope == ALERT_PER_JOB &&
            a->rounds[at].subject.job == job) {
            round_forget(a, at);
        }
    }
}

/* ---- raising and lowering --------------------------------------------------------------------------------------- */

static void judge(struct alerts *a, uint32_t rule, const struct subject *s, uint32_t said_by,
                  double value, int beyond)
{
    struct instance *i;

    if (beyond <= 0 && a->rule_states[rule].active == 0) {
        return;
    }
    uint64_t key = subject_key(a, rule, s);
    if (beyond > 0) {
        i = instance_raise(a, rule, key, said_by, MONO_NEVER);
    } else {
        i = instance_find(a, key);
        if (i != NULL &&
            (beyond < 0 || i->state == ALERT_PENDING)) { /* 0: between clear and limit */
            instance_lower(a, i);
            return;
        }
    }
    if (i == NULL) {
        return;
    }
    i->seen = a->now;
    i->stale = false;
    i->value = value;
    if (i->cause_count == 0) {
        i->said_by = said_by;
        i->host = s->host;
        i->nic = s->nic;
        i->peer = s->peer;
        i->port = a->rules[rule].scope == ALERT_PER_RAIL ? s->rail : s->port;
        i->job = s->job;
        causes_of_subject(a, i, s);
    }
    /* the text describes the moment of firing; later values change only `value` */
    if (i->state == ALERT_PENDING) {
        text_of_series(a, i);
    }
    instance_consider(a, i);
}

/* 1: beyond the limit; -1: back inside the point where the condition ends; 0: between the two. */
static int compare(const struct alert_rule *r, double value)
{
    const double clear = isnan(r->clear) ? r->limit : r->clear;

    if (r->below ? value < r->limit : value > r->limit) {
        return 1;
    }
    return (r->below ? value >= clear : value <= clear) ? -1 : 0;
}

/* ---- counters --------------------------------------------------------------------------------------------------- */

static int64_t bucket_ns(const struct alert_rule *r)
{
    return r->within.ns / WINDOW_BUCKETS > 0 ? r->within.ns / WINDOW_BUCKETS : 1;
}

/* Moves the window to `now` and returns the sum of its content. */
static double window_slide(const struct alerts *a, struct window *w, const struct alert_rule *r)
{
    const int64_t number = a->now.ns / bucket_ns(r);
    double sum = 0;

    for (int64_t n = w->newest + 1; n <= number && n <= w->newest + WINDOW_BUCKETS; n++) {
        w->buckets[n % WINDOW_BUCKETS] = 0;
    }
    w->newest = number > w->newest ? number : w->newest;
    for (int b = 0; b < WINDOW_BUCKETS; b++) {
        sum += w->buckets[b];
    }
    return sum;
}

static struct window *window_of(struct alerts *a, struct watch *w)
{
    if (w->window == NONE) {
        uint32_t at = a->window_free;
        if (at != NONE) {
            a->window_free = a->windows[at].watch;
        } else if (a->window_top < a->window_max) {
            at = a->window_top++;
        } else {
            a->counters.watches_dropped++;
            return NULL;
        }
        a->windows[at] = (struct window){.used = true, .watch = (uint32_t)(w - a->watches)};
        a->windows[at].newest = a->now.ns / bucket_ns(&a->rules[w->rule]);
        w->window = at;
    }
    return &a->windows[w->window];
}

static double measure(const struct alert_rule *r, double sum)
{
    return r->condition == ALERT_ON_RATE ? sum / ((double)r->within.ns * 1e-9) : sum;
}

static void watch_place(struct watch *w, uint32_t rule, const struct subject *s)
{
    w->rule = rule;
    w->host = s->host;
    w->nic = s->nic;
    w->peer = s->peer;
    w->port = s->port;
}

static struct subject subject_of_watch(const struct watch *w)
{
    return (struct subject){
        .host = w->host, .nic = w->nic, .peer = w->peer, .port = w->port, .rail = ALERT_NO_ID};
}

static void on_counter(struct alerts *a, uint32_t rule, const struct subject *s, double value)
{
    const struct alert_rule *r = &a->rules[rule];
    const uint64_t key = subject_key(a, rule, s);
    struct watch *w = watch_find(a, key);

    if (w == NULL) {
        w = watch_new(a, key);
        if (w != NULL) {
            watch_place(w, rule, s);
            w->value = value;
        }
        return;
    }
    /* smaller: the counter restarted, and the time of its counts is unknown */
    double grown = value - w->value;
    w->value = value;
    w->last = a->now;
    if (!(grown > 0)) {
        return; /* the sweep removes what slides out of the window */
    }
    struct window *window = window_of(a, w);
    if (window == NULL) {
        return;
    }
    (void)window_slide(a, window, r);
    window->buckets[window->newest % WINDOW_BUCKETS] += grown;
    double sum = measure(r, window_slide(a, window, r));
    judge(a, rule, s, s->host, sum, compare(r, sum));
}

static void sweep_windows(struct alerts *a)
{
    for (uint32_t k = 0; k < a->window_top; k++) {
        struct window *window = &a->windows[k];
        if (window->used) {
            struct watch *w = &a->watches[window->watch];
            const struct alert_rule *r = &a->rules[w->rule];
            const double sum = window_slide(a, window, r);
            const struct subject s = subject_of_watch(w);
            if (a->rule_states[w->rule].active > 0) {
                judge(a, w->rule, &s, w->host, measure(r, sum), compare(r, measure(r, sum)));
            }
            if (sum <= 0) {
                window_forget(a, w);
            }
        }
    }
}

/* ---- absence ---------------------------------------------------------------------------------------------------- */

static void on_presence(struct alerts *a, uint32_t rule, const struct subject *s)
{
    const uint64_t key = subject_key(a, rule, s);
    struct watch *w = watch_find(a, key);

    if (w == NULL) {
        w = watch_new(a, key);
        if (w == NULL) {
            return;
        }
        watch_place(w, rule, s);
    }
    w->last = a->now;
    if (w->silent) {
        w->silent = false;
        judge(a, rule, s, ALERT_NO_ID, 0, -1);
    }
}

static void sweep_absence(struct alerts *a)
{
    for (uint32_t at = 0; at < a->watch_top; at++) {
        struct watch *w = &a->watches[at];
        if (!w->used || w->rule == HOST_RULE || a->rules[w->rule].condition != ALERT_ON_ABSENCE) {
            continue;
        }
        const struct alert_rule *r = &a->rules[w->rule];
        const int64_t missed_ns = mono_sub(a->now, w->last).ns - r->within.ns;
        const struct subject s = subject_of_watch(w);
        if (missed_ns > GONE_NS && r->scope <= ALERT_PER_LINK && host_is_back(a, w->host)) {
            /* the path has another port now, or no longer exists */
            judge(a, w->rule, &s, ALERT_NO_ID, 0, -1);
            watch_forget(a, at);
        } else if (missed_ns > 0) {
            w->silent = true;
            judge(a, w->rule, &s, ALERT_NO_ID, (double)mono_sub(a->now, w->last).ns * 1e-9, 1);
        }
    }
}

/* ---- combined values ------------------------------------------------------------------------------------------------- */

/* Of a member's place, the part that the whole scope has. */
static struct subject subject_of_scope(uint32_t scope, const struct subject *s)
{
    const bool path = scope == ALERT_PER_PATH, link = path || scope == ALERT_PER_LINK;

    return (struct subject){.host = link || scope == ALERT_PER_HOST ? s->host : ALERT_NO_ID,
                            .nic = link ? s->nic : ALERT_NO_ID,
                            .peer = path ? s->peer : ALERT_NO_ID,
                            .port = path ? s->port : ALERT_NO_ID,
                            .rail = s->rail,
                            .job = scope == ALERT_PER_JOB ? s->job : 0};
}

static struct round *round_of(struct alerts *a, uint32_t rule, const struct subject *s)
{
    const uint64_t key = subject_key(a, rule, s);
    uint32_t at = a->round_hash.heads[key & a->round_hash.mask];

    while (at != NONE && a->rounds[at].key != key) {
        at = a->rounds[at].chain;
    }
    if (at == NONE) {
        if (a->round_free != NONE) {
            at = a->round_free;
            a->round_free = a->rounds[at].chain;
        } else if (a->round_top < a->round_max) {
            at = a->round_top++;
        } else {
            a->counters.watches_dropped++;
            return NULL;
        }
        a->rounds[at] = (struct round){.key = key,
                                       .chain = a->round_hash.heads[key & a->round_hash.mask],
                                       .rule = rule,
                                       .subject = subject_of_scope(a->rules[rule].scope, s),
                                       .used = true,
                                       .start = a->now};
        a->round_hash.heads[key & a->round_hash.mask] = at;
    }
    return &a->rounds[at];
}

static void on_member(struct alerts *a, uint32_t rule, const struct subject *s, double value,
                      double weight)
{
    struct round *r = round_of(a, rule, s);

    if (r == NULL) {
        return;
    }
    r->max = r->count == 0 || value > r->max ? value : r->max;
    r->min = r->count == 0 || value < r->min ? value : r->min;
    r->sum += value * weight;
    r->beyond += compare(&a->rules[rule], value) > 0 ? weight : 0;
    r->weight += weight;
    r->count++;
}

static void round_end(struct alerts *a, struct round *r)
{
    const struct alert_rule *rule = &a->rules[r->rule];
    const struct subject s = r->subject;
    double value = 0;

    ASSERT(r->count > 0 && r->weight > 0 && r->beyond <= r->weight && r->min <= r->max);
    switch ((enum alert_aggregate)rule->aggregate) {
    case ALERT_MIN:
        value = r->min;
        break;
    case ALERT_MEAN:
        value = r->sum / r->weight;
        break;
    case ALERT_SHARE:
        value = r->beyond / r->weight;
        break;
    default:
        value = r->max;
        break;
    }
    int beyond =
        rule->aggregate == ALERT_SHARE ? (value > rule->share ? 1 : -1) : compare(rule, value);
    judge(a, r->rule, &s, s.host, value, beyond);
    *r = (struct round){.key = r->key,
                        .chain = r->chain,
                        .rule = r->rule,
                        .subject = s,
                        .used = true,
                        .start = a->now};
}

static void sweep_rounds(struct alerts *a)
{
    for (uint32_t at = 0; at < a->round_top; at++) {
        struct round *r = &a->rounds[at];
        if (r->used && r->count > 0 && mono_sub(a->now, r->start).ns >= ROUND_NS) {
            round_end(a, r);
        } else if (r->used && r->count == 0 && mono_sub(a->now, r->start).ns > STALE_NS) {
            round_forget(a, at); /* the job is over, or the path no longer exists */
        }
    }
}

/* ---- entry ----------------------------------------------------------------------------------------------------------- */

static uint32_t rail_of(const struct alerts *a, uint32_t nic)
{
    struct alert_nic info;

    return a->config.fleet.nic != NULL && nic != ALERT_NO_ID &&
                   a->config.fleet.nic(a->config.fleet.context, nic, &info)
               ? info.rail
               : ALERT_NO_ID;
}

void series_on_sample(struct alerts *a, const struct alert_sample *sample)
{
    if (sample->metric >= ALERT_METRIC_COUNT || !isfinite(sample->value)) {
        return;
    }
    for (uint32_t k = 0; k < a->by_metric_count[sample->metric]; k++) {
        const uint32_t rule = a->by_metric[sample->metric][k];
        const struct alert_rule *r = &a->rules[rule];
        struct subject s = {.host = sample->host,
                            .nic = sample->nic,
                            .peer = sample->peer,
                            .port = sample->port,
                            .rail = ALERT_NO_ID,
                            .job = sample->job};

        a->rule_states[rule].last_input = a->now;
        a->rule_states[rule].had_input = true;
        if (r->scope == ALERT_PER_RAIL) {
            s.rail = rail_of(a, sample->nic);
            if (s.rail == ALERT_NO_ID) {
                continue;
            }
        }
        if (r->condition == ALERT_ON_ABSENCE) {
            on_presence(a, rule, &s);
        } else if (r->condition != ALERT_ON_THRESHOLD) {
            on_counter(a, rule, &s, sample->value);
        } else if (r->aggregate != ALERT_EACH) {
            on_member(a, rule, &s, sample->value, fmax(1, sample->weight));
        } else {
            judge(a, rule, &s, sample->host, sample->value, compare(r, sample->value));
        }
    }
}

void alerts_on_job_over(struct alerts *a, struct mono now, uint64_t job)
{
    a->now = now;
    forget_job(a, job);
    for (uint32_t at = a->instance_head; at != NONE;) {
        struct instance *i = &a->instances[at];
        at = i->after;
        if (a->rules[i->rule].scope == ALERT_PER_JOB && i->job == job) {
            instance_lower(a, i);
        }
    }
}

void series_sweep(struct alerts *a)
{
    sweep_absence(a);
    sweep_windows(a);
    sweep_rounds(a);
}
