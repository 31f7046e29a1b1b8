/* size.c: one size of `foliot perf`: fills buffers, runs and times the plan, checks every element. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "app/perf/rank.h"
#include "stats/sample.h"

struct shape {
    size_t count, input, output; /* elements: of a block; of both buffers */
    size_t total;                /* bytes, as nccl-tests counts them */
    bool blocks;                 /* one block for each rank */
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int number)
{
    (void)number;
    interrupted = 1;
}

void perf_catch_interrupt(void)
{
    const struct sigaction action = {.sa_handler = on_interrupt,
                                     .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};

    (void)sigaction(SIGINT, &action, NULL);
}

static bool collects(enum perf_operation operation)
{
    return operation == ALL_GATHER || operation == GATHER;
}

static struct shape shape_of(const struct perf_options *o, size_t bytes)
{
    const size_t element = perf_type_size(o->type), n = (size_t)o->ranks;
    struct shape s = {.count = bytes / element};

    s.blocks =
        collects(o->operation) || o->operation == REDUCE_SCATTER || o->operation == ALL_TO_ALL;
    if (s.blocks) {
        s.count = s.count / n & ~(16 / element - 1);
    }
    s.input = s.count * (s.blocks && !collects(o->operation) ? n : 1);
    s.output = s.count * (s.blocks && o->operation != REDUCE_SCATTER ? n : 1);
    s.total = (s.input > s.output ? s.input : s.output) * element;
    return s;
}

static bool has_in_place(enum perf_operation operation)
{
    return operation != ALL_TO_ALL && operation != SEND_RECEIVE && operation != PING_PONG;
}

/* The places of input and output. */
static void place(struct rank *r, const struct shape *s, bool in_place)
{
    const size_t mine = (size_t)r->options->rank * s->count * r->engine.element;

    r->engine.input = r->buffers[0];
    r->engine.output = r->buffers[1];
    if (!in_place || !has_in_place(r->options->operation)) {
        return;
    }
    if (collects(r->options->operation)) {
        r->engine.input = r->buffers[1] + mine;
    } else if (r->options->operation == REDUCE_SCATTER) {
        r->engine.output = r->buffers[0] + mine;
    } else {
        r->engine.input = r->buffers[1];
    }
}

/* Copies the part of its own data that a rank keeps. This needs no network. */
static void copy_own(struct rank *r, const struct shape *s)
{
    struct engine *e = &r->engine;
    const size_t size = s->count * e->element, mine = (size_t)r->options->rank * size;
    const enum perf_operation op = r->options->operation;
    const char *from = op == ALL_TO_ALL ? e->input + mine : e->input;
    char *to = op == ALL_TO_ALL || collects(op) ? e->output + mine : e->output;
    const bool own = op == ALL_TO_ALL || collects(op) || r->options->ranks == 1 ||
                     (op == BROADCAST && r->options->rank == r->options->root);

    if (own && to != from) {
        memcpy(to, from, size);
    }
}

static int play(struct rank *r, const struct shape *s)
{
    copy_own(r, s);
    enum nccl_result result = engine_run(&r->engine);
    if (result != NCCL_SUCCESS) {
        rank_say(r, "transfer", net_result_name(result));
        return -EIO;
    }
    return 0;
}

static double cpu_seconds(void)
{
    struct rusage u;

    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Pauses, as a job that computes. */
static void rest(const struct rank *r)
{
    const struct timespec t = {r->options->pause_ms / 1000, r->options->pause_ms % 1000 * 1000000L};
    if (r->options->pause_ms > 0) {
        (void)nanosleep(&t, NULL);
    }
}

static int repeat(struct rank *r, const struct shape *s, int count, int *samples)
{
    for (int i = 0; i < count; i++) {
        const int64_t begin = perf_now_ns();
        const int rc = play(r, s);
        if (rc < 0) {
            return rc;
        }
        if (*samples < SAMPLE_MAX) {
            r->samples[(*samples)++] = (double)(perf_now_ns() - begin) * 1e-3;
        }
        rest(r);
    }
    return 0;
}

/* The timed part: n iterations, or batches until rank 0's time is over or a signal interrupts it. */
static int run_timed(struct rank *r, const struct shape *s, int *ret_iterations, int *samples)
{
    const int64_t begin = perf_now_ns();
    int batch = r->options->iterations, rc = repeat(r, s, batch, samples);
    double go = 1, sum = 1, max;

    *ret_iterations = batch;
    while (rc == 0 && r->options->duration_s > 0) {
        const double elapsed = (double)(perf_now_ns() - begin) * 1e-9;
        go = r->options->rank == 0 && elapsed < r->options->duration_s && !interrupted;
        rc = meet_sum(&r->meet, &go, 1, &sum, &max);
        if (rc < 0 || sum == 0) {
            break;
        }
        rc = repeat(r, s, batch, samples);
        *ret_iterations += batch;
    }
    return rc;
}

static int measure(struct rank *r, const struct shape *s, struct perf_figure *f)
{
    int iterations = 0, samples = 0, warm = 0, rc;
    double cpu, mine[3], sum[3], max[3];

    r->engine.gap_ns = r->engine.last_receive_ns = 0;
    rc = repeat(r, s, r->options->warmups, &warm);
    rc = rc < 0 ? rc : meet_barrier(&r->meet);
    r->engine.gap_ns = r->engine.last_receive_ns = 0;
    const int64_t begin = perf_now_ns(), waited = r->engine.waited_ns;
    cpu = cpu_seconds();
    rc = rc < 0 ? rc : run_timed(r, s, &iterations, &samples);
    const int64_t took = perf_now_ns() - begin;
    mine[0] = (double)took * 1e-3 / iterations;
    mine[1] = (cpu_seconds() - cpu) / ((double)s->total * iterations * 1e-9);
    mine[2] = (double)r->engine.gap_ns * 1e-6;
    rc = rc < 0 ? rc : meet_sum(&r->meet, mine, 3, sum, max);
    if (rc < 0) {
        return rc;
    }
    qsort(r->samples, (size_t)samples, sizeof(double), sample_order);
    const double half = r->options->operation == PING_PONG ? 0.5 : 1;
    /* the other ranks of a ping-pong have nothing to do */
    f->time_us = half * (half < 1 ? max[0] : sum[0] / r->options->ranks);
    f->own_us = mine[0];
    f->own_late = 1 - (double)(r->engine.waited_ns - waited) / (double)took;
    f->cpu_s_per_gb = sum[1];
    f->gap_ms = max[2];
    f->p50_us = half * sample_quantile(r->samples, (size_t)samples, 0.5);
    f->p99_us = half * sample_quantile(r->samples, (size_t)samples, 0.99);
    return 0;
}

/* -- the check of the data */

static bool reduces(enum perf_operation operation)
{
    return operation == ALL_REDUCE || operation == REDUCE_SCATTER;
}

static uint64_t count_wrong(struct rank *r, const struct shape *s, const struct perf_pattern *p)
{
    const struct perf_options *o = r->options;
    const size_t mine = (size_t)o->rank * s->count;
    uint64_t wrong = 0;

    switch (o->operation) {
    case ALL_REDUCE:
        return perf_wrong(p, r->engine.output, -1, o->ranks, 0, s->count);
    case REDUCE_SCATTER:
        return perf_wrong(p, r->engine.output, -1, o->ranks, mine, s->count);
    case BROADCAST:
        return perf_wrong(p, r->engine.output, o->root, 0, 0, s->count);
    case GATHER:
        if (o->rank != o->root) {
            return 0;
        } /* fall through */
    case ALL_GATHER:
    case ALL_TO_ALL:
        for (int k = 0; k < o->ranks; k++) {
            wrong += perf_wrong(p, r->engine.output + (size_t)k * s->count * r->engine.element, k,
                                0, collects(o->operation) ? 0 : mine, s->count);
        }
        return wrong;
    case SEND_RECEIVE:
        return perf_wrong(p, r->engine.output, (o->rank + o->ranks - 1) % o->ranks, 0, 0, s->count);
    default:
        return o->rank < 2 ? perf_wrong(p, r->engine.output, 1 - o->rank, 0, 0, s->count) : 0;
    }
}

static int check(struct rank *r, const struct shape *s, uint64_t seed, struct perf_figure *f)
{
    struct perf_pattern p = {r->options->type, r->options->reduction,
                             !reduces(r->options->operation), seed};
    double mine, sum, max;
    int rc;

    f->wrong = f->own_wrong = -1;
    if (r->options->check == 0) {
        return 0;
    }
    f->wrong = f->own_wrong = 0;
    for (int round = 0; round < r->options->check; round++, p.seed += 77) {
        memset(r->engine.output, 0xa5, s->output * r->engine.element);
        perf_fill(&p, r->engine.input, r->options->rank, 0, s->input);
        rc = meet_barrier(&r->meet);
        rc = rc < 0 ? rc : play(r, s);
        mine = rc < 0 ? 0 : (double)count_wrong(r, s, &p);
        rc = rc < 0 ? rc : meet_sum(&r->meet, &mine, 1, &sum, &max);
        if (rc < 0) {
            return rc;
        }
        f->wrong += sum;
        f->own_wrong += mine;
        rest(r);
    }
    return 0;
}

int rank_run_size(struct rank *r, size_t bytes, struct perf_row *ret_row)
{
    const struct perf_options *o = r->options;
    const struct shape s = shape_of(o, bytes);
    const size_t element = perf_type_size(o->type);
    const struct plan_wish wish = {o->operation, o->rank,           o->ranks,  o->channels,
                                   o->root,      s.count * element, o->message};
    struct perf_row row = {.size = s.total, .count = s.count};
    int rc = plan_fill(&r->plan, &wish);

    for (int in_place = 0; rc == 0 && in_place < 2; in_place++) {
        if (in_place && o->duration_s > 0) {
            row.figures[1] = (struct perf_figure){.wrong = -1};
            break;
        }
        place(r, &s, in_place);
        rc = measure(r, &s, &row.figures[in_place]);
        if (rc == 0 && (!in_place || has_in_place(o->operation))) {
            rc = check(r, &s, bytes * 2 + (uint64_t)in_place, &row.figures[in_place]);
        } else {
            row.figures[in_place].wrong = -1;
        }
    }
    *ret_row = row;
    return rc;
}
