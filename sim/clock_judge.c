/* clock_judge.c: compares the members' readers with the truth. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sim/clock_world_private.h"
#include "sim/reader_terms.h"
#include "stats/sample.h"

#define BLOCK_NS     (10 * NS_PER_S)
#define ASTRAY_NS    100
#define ASTRAY_S     5    /* an accusation may rest on observations of so long ago */
#define PAIRS_SYNCED 0.75 /* below this share the errors are of a few members only */

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void append(struct clock_world_values *v, double value)
{
    if (v->count == v->capacity) {
        v->capacity = v->capacity > 0 ? 2 * v->capacity : 4096;
        v->values = realloc(v->values, v->capacity * sizeof(v->values[0]));
        ASSERT(v->values != NULL);
    }
    v->values[v->count++] = value;
}

double clock_world_quantile(struct clock_world_values *v, double share)
{
    if (v->count == 0) {
        return 0;
    }
    qsort(v->values, v->count, sizeof(v->values[0]), sample_order);
    return sample_quantile(v->values, v->count, share);
}

void judge_init(struct clock_world *w)
{
    w->lines = calloc((size_t)w->config.members, sizeof(w->lines[0]));
    w->readings = calloc((size_t)w->config.members, sizeof(w->readings[0]));
    ASSERT(w->lines != NULL && w->readings != NULL);
    prng_init(&w->judge_prng, w->config.seed + 77);
    w->cpu_start_s = cpu_s();
    w->last_above_s = -1;
    w->result.event_unsynced_s = w->result.event_back_s = w->result.synced_s = -1;
    w->event_last_bad_s = -1;
}

void judge_done(struct clock_world *w)
{
    free(w->lines);
    free(w->readings);
    free(w->errors.values);
    free(w->all_errors.values);
    free(w->ntp.values);
    free(w->ptp.values);
    free(w->hard_widths.values);
    free(w->statistical_widths.values);
}

static bool honest(const struct clock_world *w, int i)
{
    return !w->members[i].liar && w->members[i].asleep_until_ns <= w->t_ns;
}

static void close_blocks(struct clock_world *w)
{
    for (int i = 0; i < w->config.members; i++) {
        struct member *m = &w->members[i];
        if (m->block_judged > 0) {
            w->result.blocks++;
            w->result.blocks_outside += (double)m->block_outside / m->block_judged;
        }
        m->block_judged = m->block_outside = 0;
    }
}

/* Intervals that meet pairwise share a point: so every hard interval must reach the common part of all others. */
static void judge_bounds(struct clock_world *w, double mean)
{
    double lowest_top = INFINITY, highest_bottom = -INFINITY;
    double tenth_top = INFINITY, tenth_bottom = -INFINITY;
    const double since_event = (double)w->t_ns * 1e-9 - w->config.event_s;

    for (int i = 0; i < w->config.members; i++) {
        const struct clock_reading *r = &w->readings[i];
        if (honest(w, i) && r->status == CLOCK_SYNCED && i >= w->config.event_count) {
            lowest_top = fmin(lowest_top, w->lines[i] + r->hard_ns);
            highest_bottom = fmax(highest_bottom, w->lines[i] - r->hard_ns);
            tenth_top = fmin(tenth_top, w->lines[i] + r->hard_ns / 10);
            tenth_bottom = fmax(tenth_bottom, w->lines[i] - r->hard_ns / 10);
        }
    }
    for (int i = 0; i < w->config.members; i++) {
        const struct clock_reading *r = &w->readings[i];
        struct member *m = &w->members[i];
        if (!honest(w, i) || r->status != CLOCK_SYNCED) {
            continue;
        }
        const bool broken =
            w->lines[i] - r->hard_ns > lowest_top || w->lines[i] + r->hard_ns < highest_bottom;
        if (i < w->config.event_count && since_event >= -0.1) {
            w->result.event_violations += broken;
            continue;
        }
        const bool outside = fabs(w->lines[i] - mean) > r->statistical_ns;
        w->result.hard_judged++;
        w->result.hard_violations += broken;
        w->result.hard_tenth_violations += w->lines[i] - r->hard_ns / 10 > tenth_top ||
                                           w->lines[i] + r->hard_ns / 10 < tenth_bottom;
        w->result.statistical_judged++;
        w->result.statistical_outside += outside;
        m->block_judged++;
        m->block_outside += outside;
    }
}

static void judge_event(struct clock_world *w)
{
    const double since = (double)w->t_ns * 1e-9 - w->config.event_s;

    if (w->config.event_count == 0 || since < 0.05) {
        return;
    }
    if (w->members[0].asleep_until_ns > w->t_ns) {
        return;
    }
    if (w->readings[0].status != CLOCK_SYNCED) {
        if (w->result.event_unsynced_s < 0) {
            w->result.event_unsynced_s = since;
        }
        w->event_last_bad_s = since;
    } else if (w->result.event_unsynced_s >= 0) {
        w->result.event_back_s = w->event_last_bad_s;
    }
}

static void judge_pairs(struct clock_world *w, double after_s)
{
    const int n = w->config.members;
    const bool counted = (double)w->t_ns * 1e-9 >= w->config.judge_from_s;
    const int shift = 1 + (int)prng_below(&w->judge_prng, (uint64_t)(n > 1 ? n - 1 : 1));
    int above = 0, pairs = 0, synced = 0, judged = 0;

    for (int i = 0; i < n; i++) {
        const int j = (i + shift) % n;
        if (!honest(w, i) || !honest(w, j)) {
            continue;
        }
        const double error = fabs(w->lines[i] - w->lines[j]);
        judged++;
        synced += w->readings[i].status == CLOCK_SYNCED;
        pairs++;
        above += error > 100;
        const bool event = i < w->config.event_count || j < w->config.event_count;
        if (!counted || event) {
            continue;
        }
        w->pairs_counted++;
        append(&w->all_errors, error);
        if (w->readings[i].status != CLOCK_SYNCED || w->readings[j].status != CLOCK_SYNCED) {
            continue;
        }
        append(&w->errors, error);
        if (w->config.baselines) {
            append(&w->ntp,
                   fabs(clock_world_baseline_ns(w, i, &w->members[i].baseline.ntp, after_s) -
                        clock_world_baseline_ns(w, j, &w->members[j].baseline.ntp, after_s)));
            append(&w->ptp,
                   fabs(clock_world_baseline_ns(w, i, &w->members[i].baseline.ptp, after_s) -
                        clock_world_baseline_ns(w, j, &w->members[j].baseline.ptp, after_s)));
        }
        append(&w->statistical_widths, 2 * w->readings[i].statistical_ns);
        append(&w->hard_widths, 2 * w->readings[i].hard_ns);
    }
    const double t_s = (double)w->t_ns * 1e-9;
    if (100 * above > pairs) {
        w->last_above_s = t_s;
    }
    w->result.synced_share = judged > 0 ? (double)synced / judged : 0;
    if (!w->synced_once && w->result.synced_share >= 0.99) {
        w->synced_once = true;
        w->result.synced_s = t_s;
    }
}

void judge_slot(struct clock_world *w, double after_s)
{
    double sum = 0;
    int count = 0;

    for (int i = 0; i < w->config.members; i++) {
        struct clock_terms terms;
        w->lines[i] = clock_world_line_ns(w, i, after_s);
        clock_terms(w->members[i].clock, &terms);
        w->readings[i] = reader_terms(&terms, clock_world_now(w, i, after_s));
        if (honest(w, i) && w->readings[i].status == CLOCK_SYNCED && i >= w->config.event_count) {
            sum += w->lines[i];
            count++;
        }
    }
    const double mean = count > 0 ? sum / count : 0;
    for (int i = 0; i < w->config.members; i++) {
        if (fabs(w->lines[i] - mean) > ASTRAY_NS) {
            w->members[i].astray_s = (double)w->t_ns * 1e-9;
        }
    }
    judge_bounds(w, mean);
    judge_event(w);
    if (w->t_ns / (10 * NS_PER_MS) % 10 == 5) {
        judge_pairs(w, after_s);
        if ((double)w->t_ns * 1e-9 >= w->config.judge_from_s) {
            for (int i = w->config.event_count; i < w->config.members && w->config.event_count > 0;
                 i++) {
                if (honest(w, i)) {
                    w->result.others_max_ns =
                        fmax(w->result.others_max_ns, fabs(w->lines[i] - mean));
                }
            }
        }
    }
    if (w->t_ns / BLOCK_NS != (w->t_ns + 10 * NS_PER_MS) / BLOCK_NS) {
        close_blocks(w);
    }
}

/* The present size of that liar's lie; 0: it doesn't lie yet. */
static double lie_ns(const struct clock_world *w, uint32_t liar)
{
    const struct clock_world_config *g = &w->config;
    const double since_s = (double)w->t_ns * 1e-9 - g->lie_from_s;

    if (!w->members[liar].liar || since_s < 0) {
        return 0;
    }
    return g->lie == LIE_DRIFTING ? g->lie_ns * fmin(1, since_s / g->lie_ramp_s)
           : g->lie == LIE_OLDEST || g->lie == LIE_FIELD ? INFINITY
                                                         : fabs(g->lie_ns);
}

/* A lie smaller than the noise of stamps: two seconds of an edge, 20 pairs each way, leave this much open with odds of 10^4. */
static double hidden_ns(const struct clock_world *w)
{
    return 4 * w->config.noise_ns / sqrt(20);
}

static void judge_liar(struct clock_world *w, uint32_t peer)
{
    const double lie = lie_ns(w, peer), t_s = (double)w->t_ns * 1e-9;

    if (lie == 0 && t_s - w->members[peer].astray_s < ASTRAY_S) {
        w->result.astray_named++;
    } else if (lie == 0) { /* before its lie begins, a liar counts as honest */
        w->result.false_liars += (int)peer >= w->config.event_count;
    } else if (lie < hidden_ns(w)) {
        w->result.early_liars++;
    } else if (w->members[peer].named_s < 0) {
        w->members[peer].named_s = t_s - w->config.lie_from_s;
    }
}

void judge_action(struct clock_world *w, int i, const struct clock_action *a)
{
    if (w->members[i].liar) {
        return;
    }
    switch (a->kind) {
    case CLOCK_ACTION_LIAR:
        judge_liar(w, a->peer);
        break;
    case CLOCK_ACTION_STEP:
        w->result.step_count++;
        w->result.false_steps += i >= w->config.event_count;
        break;
    case CLOCK_ACTION_ASYMMETRY:
        w->result.asymmetries++;
        break;
    default:
        break;
    }
}

/* More of its neighbours lie than a member's fault model allows (clock.h), so they support each other. */
static bool beyond_model(const struct clock_world *w, const struct member *m)
{
    int liars = 0;

    for (int k = 0; k < m->degree; k++) {
        liars += w->members[m->peers[k]].liar;
    }
    return liars > (m->degree - 1) / 3 || liars > 4;
}

void clock_world_result(struct clock_world *w, struct clock_world_result *r)
{
    struct clock_world_values named = {0};
    int liars = 0, caught = 0;

    for (int i = 0; i < w->config.members; i++) {
        const struct member *m = &w->members[i];
        if (!m->liar) {
            continue;
        }
        const bool known = m->named_s >= 0, beyond = beyond_model(w, m);
        liars++;
        caught += known;
        w->result.liars_beyond += !known && beyond;
        w->result.liars_unnamed += !known && !beyond;
        append(&named, known ? m->named_s : INFINITY);
    }
    w->result.p50_ns = clock_world_quantile(&w->errors, 0.5);
    w->result.p99_ns = clock_world_quantile(&w->errors, 0.99);
    w->result.max_ns = clock_world_quantile(&w->errors, 1);
    w->result.p99_all_ns = clock_world_quantile(&w->all_errors, 0.99);
    w->result.pairs_synced =
        w->pairs_counted > 0 ? (double)w->errors.count / (double)w->pairs_counted : 0;
    /* too few members are in step, so the error counts as infinite */
    if (w->result.pairs_synced < PAIRS_SYNCED) {
        w->result.p50_ns = w->result.p99_ns = w->result.max_ns = INFINITY;
    }
    w->result.ntp_p99_ns = clock_world_quantile(&w->ntp, 0.99);
    w->result.ptp_p99_ns = clock_world_quantile(&w->ptp, 0.99);
    w->result.hard_width_ns = clock_world_quantile(&w->hard_widths, 0.5);
    w->result.statistical_width_ns = clock_world_quantile(&w->statistical_widths, 0.5);
    w->result.liars_named_share = liars > 0 ? (double)caught / liars : 0;
    w->result.named_median_s = clock_world_quantile(&named, 0.5);
    w->result.named_p95_s = clock_world_quantile(&named, 0.95);
    w->result.p99_100ns_s =
        w->last_above_s >= (double)w->t_ns * 1e-9 - 0.2 ? -1 : w->last_above_s + 0.1;
    w->result.packets = w->packets;
    w->result.host_seconds_cpu_s =
        (cpu_s() - w->cpu_start_s) / w->config.members / fmax(1e-9, (double)w->t_ns * 1e-9);
    free(named.values);
    *r = w->result;
}
