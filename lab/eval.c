/* eval.c: `foliot lab eval`: its arguments and its output. */
#include "lab/eval.h"

#include "base/bug.h"
#include "lab/eval_judge.h"
#include "lab/eval_read.h"
#include "platform/config/command_line.h"
#include "platform/json/json.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BLOCK_MAX 4096

static const char usage[] =
    "Usage: foliot lab eval [OPTIONS]\n"
    "Reads the clocks of all hosts of a lab at the same instants, and judges them against the "
    "truth\n"
    "that only the lab knows: the differences of the clocks, and whether their bounds hold.\n"
    "\n";

static const char after[] =
    "\n"
    "Exit status: 0 no bound was broken, 1 a bound was broken, or nothing could be judged.\n";

struct options {
    double seconds, interval_ms, warmup, wait;
    const char *series, *excuse;
    bool json;
};

/* p99 of ten-second blocks: their spread shows how exact the p99 of the run is. */
struct blocks {
    size_t begin; /* of the running block, in the pair errors */
    int64_t start_ns;
    int64_t p99[BLOCK_MAX];
    int count;
};

struct run {
    const struct options *options;
    struct eval_reader reader;
    struct eval eval;
    struct blocks blocks;
    bool is_excused[EVAL_CLOCK_MAX];
    struct eval_reading readings[EVAL_CLOCK_MAX];
    FILE *series;
    int64_t start_raw_ns, all_synced_raw_ns;
};

static volatile sig_atomic_t stopped;

static void on_signal(int signal)
{
    (void)signal;
    stopped = 1;
}

static int read_options(struct options *o, int argc, char **argv)
{
    const struct option_entry entries[] = {
        {"seconds", 0, OPTION_NUMBER, &o->seconds, 0, 1e7, .value = "S",
         .help = "how long (default 10; 0: until interrupted)"},
        {"interval", 0, OPTION_NUMBER, &o->interval_ms, 0.1, 10000, .value = "MS",
         .help = "time between readings, randomly ±20 % (default 10)"},
        {"warmup", 0, OPTION_NUMBER, &o->warmup, 0, 1e6, .value = "S",
         .help = "judge from then on; status changes are kept from the start (default 0)"},
        {"wait", 0, OPTION_NUMBER, &o->wait, 0, 1e6, .value = "S",
         .help = "first wait until all hosts are SYNCED, at most so long (default 0)"},
        {"excuse", 0, OPTION_TEXT, &o->excuse, .value = "H,H…",
         .help = "do not judge these hosts: they have a fault"},
        {"series", 0, OPTION_TEXT, &o->series, .value = "FILE",
         .help = "write every reading as a line of CSV (own_ns: the oscillator's own offset)"},
        {"json", 0, OPTION_FLAG, &o->json, .help = "one JSON object"},
        {"help", 'h', OPTION_HELP, .help = "this text"},
    };
    const struct option_set set = {.program = "foliot lab eval",
                                   .usage = usage,
                                   .after = after,
                                   .entries = entries,
                                   .count = ARRAY_COUNT(entries)};
    int first = 0;
    return command_line_read(&set, argc, argv, &first);
}

static void excuse(struct run *r)
{
    int hosts = r->reader.lab->scenario.fabric.hosts;
    int nics = r->reader.lab->scenario.fabric.nics_per_host;
    const char *text = r->options->excuse;
    while (text != NULL && *text != '\0') {
        char *end;
        long h = strtol(text, &end, 10);
        if (end == text) {
            return;
        }
        if (h >= 0 && h < hosts) {
            r->is_excused[h] = true;
            for (int n = 0; r->reader.reads_nics && n < nics; n++) {
                r->is_excused[hosts + h * nics + n] = true;
            }
        }
        text = *end == ',' ? end + 1 : end;
    }
}

static void sleep_interval(const struct options *o, uint64_t *random)
{
    *random = *random * 6364136223846793005ULL + 1442695040888963407ULL;
    double share = 0.8 + 0.4 * (double)(*random >> 40) / (double)(1 << 24);
    int64_t ns = (int64_t)(o->interval_ms * 1e6 * share);
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    nanosleep(&t, NULL);
}

static void write_series(struct run *r, int64_t raw_ns)
{
    const struct eval *e = &r->eval;
    for (int i = 0; i < r->reader.clock_count; i++) {
        const struct eval_reading *x = &r->readings[i];
        char name[32];
        eval_clock_name(&r->reader, i, name);
        bool shown = x->status > EVAL_UNKNOWN;
        fprintf(r->series, "%lld,%s,%s,%u", (long long)raw_ns, name, eval_status_name(x->status),
                (unsigned)x->epoch);
        if (shown && e->centre_known) {
            fprintf(r->series, ",%lld,%lld,%lld", (long long)(x->time_ns - e->centre_ns),
                    (long long)x->hard_ns, (long long)x->statistical_ns);
        } else {
            fprintf(r->series, ",,,");
        }
        fprintf(r->series, ",%lld\n", (long long)eval_clock_own(&r->reader, i, raw_ns));
    }
}

static void close_block(struct run *r, int64_t raw_ns)
{
    struct blocks *b = &r->blocks;
    struct eval_series *all = &r->eval.pair_error;
    if (b->start_ns == 0) {
        b->start_ns = raw_ns;
    }
    if (raw_ns - b->start_ns < 10000000000 || b->count == BLOCK_MAX) {
        return;
    }
    struct eval_series part = {.values = all->values + b->begin, .count = all->count - b->begin};
    if (part.count > 0) {
        b->p99[b->count++] = eval_quantile(&part, 0.99);
    }
    b->begin = all->count;
    b->start_ns = raw_ns;
}

static bool all_synced(const struct run *r)
{
    for (int i = 0; i < r->reader.clock_count; i++) {
        if (r->readings[i].status != EVAL_SYNCED && !r->is_excused[i]) {
            return false;
        }
    }
    return true;
}

static int measure(struct run *r)
{
    const struct options *o = r->options;
    uint64_t random = 1;
    int64_t begin = 0, warm = 0;
    bool waits = o->wait > 0;
    while (!stopped) {
        int64_t raw_ns = eval_read(&r->reader, r->readings);
        if (r->reader.is_gone) {
            fprintf(stderr, "foliot lab eval: the lab was removed meanwhile\n");
            return -ENOENT;
        }
        r->start_raw_ns = r->start_raw_ns == 0 ? raw_ns : r->start_raw_ns;
        if (r->all_synced_raw_ns == 0 && all_synced(r)) {
            r->all_synced_raw_ns = raw_ns;
        }
        waits = waits && r->all_synced_raw_ns == 0 &&
                (double)(raw_ns - r->start_raw_ns) < o->wait * 1e9;
        if (!waits && begin == 0) {
            begin = raw_ns;
            warm = raw_ns + (int64_t)(o->warmup * 1e9);
        }
        for (int i = 0; i < r->reader.clock_count; i++) {
            r->readings[i].is_excused = r->is_excused[i] || waits || raw_ns < warm;
        }
        int rc = eval_on_readings(&r->eval, raw_ns, r->readings);
        if (rc < 0) {
            fprintf(stderr, "foliot lab eval: the readings can't be written: %s\n", strerror(-rc));
            return rc;
        }
        close_block(r, raw_ns);
        if (r->series != NULL) {
            write_series(r, raw_ns);
        }
        if (!waits && o->seconds > 0 && (double)(raw_ns - warm) >= o->seconds * 1e9) {
            break;
        }
        sleep_interval(o, &random);
    }
    return 0;
}

/* ---- reports ---- */

static void json_series(struct json_writer *j, const char *key, struct eval_series *s)
{
    json_put_object(j, key);
    json_put_uint(j, "count", s->count);
    if (s->count > 0) {
        json_put_int(j, "p50", eval_quantile(s, 0.5));
        json_put_int(j, "p99", eval_quantile(s, 0.99));
        json_put_int(j, "p999", eval_quantile(s, 0.999));
        json_put_int(j, "max", eval_quantile(s, 1));
    }
    json_put_bool(j, "truncated", s->truncated);
    json_put_end(j);
}

static void json_changes(struct json_writer *j, const struct run *r)
{
    json_put_array(j, "changes");
    for (size_t i = 0; i < r->eval.change_count && i < 100000; i++) {
        const struct eval_change *c = &r->eval.changes[i];
        char name[32];
        eval_clock_name(&r->reader, c->clock, name);
        json_put_object(j, NULL);
        json_put_int(j, "raw_ns", c->raw_ns);
        json_put_string(j, "clock", name);
        json_put_string(j, "status", eval_status_name(c->status));
        json_put_uint(j, "epoch", c->epoch);
        json_put_end(j);
    }
    json_put_end(j);
}

static int print_json(struct run *r)
{
    struct json_writer j;
    struct eval *e = &r->eval;
    json_writer_init(&j, 64 << 20);
    json_put_object(&j, NULL);
    json_put_int(&j, "version", 1);
    json_put_int(&j, "clocks", r->reader.clock_count);
    json_put_int(&j, "start_raw_ns", r->start_raw_ns);
    json_put_int_if(&j, "all_synced_raw_ns", r->all_synced_raw_ns != 0, r->all_synced_raw_ns);
    json_put_uint(&j, "instants", e->instants);
    json_put_uint(&j, "complete_instants", e->complete);
    json_put_array(&j, "pair_error_p99_ns_blocks");
    for (int i = 0; i < r->blocks.count; i++) {
        json_put_int(&j, NULL, r->blocks.p99[i]);
    }
    json_put_end(&j);
    json_series(&j, "pair_error_ns", &e->pair_error);
    json_series(&j, "centre_error_ns", &e->centre_error);
    json_put_object(&j, "hard");
    json_put_uint(&j, "judged", e->hard_judged);
    json_put_uint(&j, "broken", e->hard_broken);
    json_put_int(&j, "worst_excess_ns", e->hard_excess_ns);
    json_series(&j, "width_ns", &e->hard_width);
    json_put_end(&j);
    json_put_object(&j, "statistical");
    json_put_uint(&j, "judged", e->statistical_judged);
    json_put_uint(&j, "broken", e->statistical_broken);
    json_put_double(&j, "worst_share", e->statistical_share_worst);
    json_series(&j, "width_ns", &e->statistical_width);
    json_put_end(&j);
    json_put_uint(&j, "backwards", e->backwards);
    json_put_uint(&j, "split_instants", e->split);
    json_changes(&j, r);
    json_put_end(&j);
    const char *text;
    size_t size;
    int rc = json_writer_finish(&j, &text, &size);
    if (rc == 0) {
        fwrite(text, 1, size, stdout);
    }
    json_writer_done(&j);
    return rc;
}

static void print_text(struct run *r)
{
    struct eval *e = &r->eval;
    printf("%llu instants, %llu of them with all %d clocks synchronised\n",
           (unsigned long long)e->instants, (unsigned long long)e->complete, r->reader.clock_count);
    if (r->all_synced_raw_ns != 0) {
        printf("all synchronised after     %.2f s\n",
               (double)(r->all_synced_raw_ns - r->start_raw_ns) * 1e-9);
    }
    printf("any two clocks apart by    p50 %lld, p99 %lld, max %lld ns\n",
           (long long)eval_quantile(&e->pair_error, 0.5),
           (long long)eval_quantile(&e->pair_error, 0.99),
           (long long)eval_quantile(&e->pair_error, 1));
    printf("hard bound                 broken %llu of %llu, width p50 %lld, p99 %lld ns\n",
           (unsigned long long)e->hard_broken, (unsigned long long)e->hard_judged,
           (long long)eval_quantile(&e->hard_width, 0.5),
           (long long)eval_quantile(&e->hard_width, 0.99));
    printf("statistical bound          broken %llu of %llu, width p50 %lld, worst use %.0f %%\n",
           (unsigned long long)e->statistical_broken, (unsigned long long)e->statistical_judged,
           (long long)eval_quantile(&e->statistical_width, 0.5), 100 * e->statistical_share_worst);
    printf("ran backwards              %llu times\n", (unsigned long long)e->backwards);
    printf("status changes             %zu\n", e->change_count);
    size_t shown = e->change_count < 64 ? e->change_count : 64;
    for (size_t i = 0; i < shown; i++) {
        const struct eval_change *c = &e->changes[i];
        char name[32];
        eval_clock_name(&r->reader, c->clock, name);
        printf("  %8.3f s  %-8s %s\n", (double)(c->raw_ns - r->start_raw_ns) * 1e-9, name,
               eval_status_name(c->status));
    }
}

static int evaluate(struct run *r)
{
    if (r->options->series != NULL) {
        r->series = fopen(r->options->series, "we");
        if (r->series == NULL) {
            fprintf(stderr, "foliot lab eval: %s: %s\n", r->options->series, strerror(errno));
            return 1;
        }
        fprintf(r->series, "raw_ns,clock,status,epoch,error_ns,hard_ns,statistical_ns,"
                           "own_ns\n");
    }
    int rc = measure(r);
    if (r->series != NULL) {
        fclose(r->series);
    }
    if (rc == 0 && r->options->json) {
        rc = print_json(r);
        if (rc < 0) {
            fprintf(stderr, "foliot lab eval: the report can't be written: %s\n", strerror(-rc));
        }
    } else if (rc == 0) {
        print_text(r);
    }
    return rc < 0 || r->eval.instants == 0 || r->eval.hard_broken > 0 ? 1 : 0;
}

int lab_eval_main(const char *name, int argc, char **argv)
{
    static struct lab lab;
    static struct run run;
    struct options o = {.seconds = 10, .interval_ms = 10};
    const int early = read_options(&o, argc, argv);
    if (early != COMMAND_LINE_GOOD) {
        return early;
    }
    if (lab_open(&lab, name) < 0) {
        fprintf(stderr,
                "foliot lab eval: there is no lab '%s': `foliot lab --name %s up` makes one\n",
                name, name);
        return 1;
    }
    signal(SIGINT, on_signal);
    signal(SIGTERM, on_signal);
    run.options = &o;
    const char *step = "the lab's oscillators can't be read";
    int r = eval_reader_open(&run.reader, &lab);
    if (r == 0) {
        step = "no memory for the readings";
        r = eval_init(&run.eval, run.reader.clock_count);
    }
    if (r < 0) {
        fprintf(stderr, "foliot lab eval: %s: %s\n", step, strerror(-r));
        return 1;
    }
    excuse(&run);
    int status = evaluate(&run);
    eval_done(&run.eval);
    eval_reader_close(&run.reader);
    return status;
}
