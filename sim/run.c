/* run.c: `foliot sim run`: scenarios, seeds, a progress bar, and a verdict for each bound. */
#include "base/bug.h"
#include "platform/config/command_line.h"
#include "sim/check.h"
#include "sim/sim.h"
#include "sim/world.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct run_options {
    bool seed_given, json, quiet, findings;
    uint64_t first, last;
    int record_host;
    const char *record_file; /* NULL: none */
};

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void progress(const struct world *w, double began)
{
    const double share = (double)w->now / (double)w->scenario->duration_ns;
    const int width = 30, full = (int)(share * width);

    fprintf(stderr, "\r[%.*s%*s] %3.0f %%  %.0f s simulated in %.0f s  ", full,
            "##############################", width - full, "", share * 100, (double)w->now * 1e-9,
            seconds_now() - began);
    if (share >= 1) {
        fprintf(stderr, "\r%78s\r", "");
    }
    fflush(stderr);
}

static const char *relation(const struct scenario_bound *b)
{
    return b->relation == BOUND_BELOW ? "<=" : b->relation == BOUND_ABOVE ? ">=" : "=";
}

static void number(double value, char *ret, size_t size)
{
    if (isnan(value)) {
        snprintf(ret, size, "nothing measured");
    } else if (isinf(value)) {
        snprintf(ret, size, "never");
    } else {
        snprintf(ret, size, "%.6g", value);
    }
}

static bool print_bounds(struct world *w, const struct run_options *o)
{
    const struct scenario *s = w->scenario;
    bool all = true;

    for (int i = 0; i < s->bound_count; i++) {
        const struct scenario_bound *b = &s->bound[i];
        char text[40], window[48] = "";
        if ((b->world & SCENARIO_SIM) == 0) {
            continue;
        }
        const double value = check_value(w, i);
        const bool holds = check_holds(b, value);
        all = all && holds;
        if (o->json) {
            printf("%s{\"what\":\"%s\",\"relation\":\"%s\",\"limit\":%g,\"value\":",
                   i > 0 ? "," : "", b->what, relation(b), b->limit);
            printf(isfinite(value) ? "%.9g" : "null", value);
            printf(",\"holds\":%s,\"line\":%d}", holds ? "true" : "false", b->line);
            continue;
        }
        number(value, text, sizeof(text));
        if (b->from_ns > 0 || b->until_ns < s->duration_ns) {
            snprintf(window, sizeof(window), " in %g..%g s", (double)b->from_ns * 1e-9,
                     (double)b->until_ns * 1e-9);
        }
        if (!o->quiet || !holds) {
            printf("  %s  %-32s %16s  %s %g%s\n", holds ? "holds " : "BROKEN", b->what, text,
                   relation(b), b->limit, window);
        }
    }
    return all;
}

static void print_findings(const struct world *w)
{
    for (size_t i = 0; i < w->finding_count; i++) {
        const struct world_finding *f = &w->findings[i];
        char text[1024];
        finding_text(&f->finding, NULL, text, sizeof(text));
        printf("  %10.4f s  host %d  %s  [%s]%s\n", (double)f->at * 1e-9, f->host, text,
               f->finding.phase == FINDING_OPENED   ? "opened"
               : f->finding.phase == FINDING_CLOSED ? "closed"
                                                    : "updated",
               f->finding.phase == FINDING_OPENED && check_explained((struct world *)w, f) < 0
                   ? "  (no fault explains it)"
                   : "");
    }
}

/* ---- JSON ---- */
static void print_place(const char *key, const struct place *p)
{
    printf(",\"%s\":", key);
    if (p->kind == PLACE_NONE || p->number == UINT32_MAX) {
        printf("null");
    } else {
        printf("{\"kind\":\"%s\",\"number\":%" PRIu32 "}", place_kind_word(p->kind), p->number);
    }
}

static void print_element(const struct element *e)
{
    const char *direction = direction_word(e->direction);

    printf("{\"kind\":\"%s\",\"direction\":", element_kind_word(e->kind));
    printf(direction != NULL ? "\"%s\"" : "null", direction);
    print_place("a", &e->a);
    print_place("b", &e->b);
    printf("}");
}

static void print_index(const char *key, uint32_t index, uint32_t none)
{
    printf(index == none ? ",\"%s\":null" : ",\"%s\":%" PRIu32, key, index);
}

static void print_findings_json(const struct world *w)
{
    static const char *const phases[] = {"opened", "updated", "closed"};

    printf(",\"findings\":[");
    for (size_t i = 0; i < w->finding_count; i++) {
        const struct finding *f = &w->findings[i].finding;

        printf("%s{\"at_s\":%.6f,\"host\":%d,\"number\":%" PRIu32
               ",\"kind\":\"%s\",\"phase\":\"%s\"",
               i > 0 ? "," : "", (double)w->findings[i].at * 1e-9, w->findings[i].host, f->number,
               finding_kind_word(f->kind), phases[f->phase]);
        print_index("from", f->from.index, NIC_NONE.index);
        print_index("to", f->to.index, NIC_NONE.index);
        print_index("from_host", f->from_host.index, HOST_NONE.index);
        print_index("to_host", f->to_host.index, HOST_NONE.index);
        printf(",\"suspect\":");
        print_element(&f->suspect);
        printf(",\"one_of\":[");
        for (uint32_t k = 0; k < f->choice.count; k++) {
            printf(k > 0 ? "," : "");
            print_element(&f->choice.one_of[k]);
        }
        printf("],\"one_of_total\":%" PRIu32 "}", f->choice.total);
    }
    printf("]");
}

/* ---- a recording of one host, as `foliot record` writes it ---- */
static int record_begin(struct world *w, const struct run_options *o)
{
    char folder[256];
    const char *slash = strrchr(o->record_file, '/');
    const int length = slash != NULL ? (int)(slash - o->record_file) + 1 : 2;

    if (o->record_host >= w->host_count) {
        return -EINVAL;
    }
    snprintf(folder, sizeof(folder), "%.*s", length, slash != NULL ? o->record_file : "./");
    w->record_host = o->record_host;
    return recorder_open(&w->recorder, folder, 1LL << 30);
}

static int record_end(struct world *w, const struct run_options *o)
{
    struct recording recording;
    int r = recorder_save(w->recorder, &recording);
    char buffer[65536];
    size_t n;

    if (r < 0) {
        return r;
    }
    FILE *from = fdopen(recording.fd, "rb"), *to = fopen(o->record_file, "wbe");
    r = from == NULL || to == NULL ? -errno : 0;
    while (r == 0 && (n = fread(buffer, 1, sizeof(buffer), from)) > 0) {
        r = fwrite(buffer, 1, n, to) == n ? 0 : -EIO;
    }
    if (from != NULL) {
        fclose(from);
    }
    if (to != NULL && fclose(to) != 0) {
        r = -EIO;
    }
    return r;
}

/* 0: all bounds hold, 1: a bound is broken, 2: it couldn't be run. */
static int run_once(const struct scenario *s, uint64_t seed, const struct run_options *o)
{
    const bool bar = !o->json && !o->quiet && isatty(STDERR_FILENO);
    const double began = seconds_now();
    struct world *w = NULL;
    const int r = world_new(&w, s, seed);

    if (r < 0) {
        fprintf(stderr, "foliot sim: %s: the world could not be made: %s\n", s->name, strerror(-r));
        return 2;
    }
    int recorded = o->record_file != NULL ? record_begin(w, o) : 0;
    for (int64_t at = 0; at < s->duration_ns && recorded == 0;) {
        at += s->duration_ns / 100 > 0 ? s->duration_ns / 100 : 1;
        world_run(w, at < s->duration_ns ? at : s->duration_ns);
        if (bar) {
            progress(w, began);
        }
    }
    if (w->recorder != NULL && recorded == 0) {
        recorded = record_end(w, o);
    }
    w->recorder = recorder_close(w->recorder);
    if (recorded < 0) {
        fprintf(stderr, "foliot sim: %s: host %d can't be recorded: %s\n", o->record_file,
                o->record_host, strerror(-recorded));
        world_free(w);
        return 2;
    }
    check_end(w);
    const double took = seconds_now() - began;
    if (o->json) {
        printf("{\"scenario\":\"%s\",\"simulated\":true,\"seed\":%" PRIu64 ",\"bounds\":[", s->name,
               seed);
    } else {
        printf("%s, seed %" PRIu64 ": %d hosts x %d NICs, %g s simulated in %.1f s\n", s->name,
               seed, w->host_count, w->nics_per_host, (double)s->duration_ns * 1e-9, took);
    }
    const bool holds = print_bounds(w, o);
    if (o->json) {
        printf("]");
        if (o->findings) {
            print_findings_json(w);
        }
        printf(",\"holds\":%s,\"trace\":\"%016" PRIx64 "\",\"probes\":%" PRIu64
               ",\"events\":%" PRIu64 ",\"seconds\":%.3f}\n",
               holds ? "true" : "false", world_trace(w), w->probes, w->events, took);
    } else {
        if (o->findings) {
            print_findings(w);
        }
        printf("  %s  trace %016" PRIx64 ", %" PRIu64 " probes, %.2f us each\n",
               holds ? "PASS" : "FAIL", world_trace(w), w->probes,
               w->probes > 0 ? took * 1e6 / (double)w->probes : 0);
    }
    world_free(w);
    return holds ? 0 : 1;
}

static int run_file(const char *path, const struct run_options *o)
{
    struct scenario *s = calloc(1, sizeof(*s));
    struct config_error error = {0};
    int worst = 0;

    if (s == NULL) {
        return 2;
    }
    if (scenario_load(path, s, &error) < 0) {
        fprintf(stderr, "foliot sim: %s\n", error.text);
        free(s);
        return 2;
    }
    if ((s->world & SCENARIO_SIM) == 0) {
        fprintf(
            stderr,
            "foliot sim: %s: expected a scenario for the simulator, found one for the lab only\n",
            path);
        free(s);
        return 2;
    }
    const uint64_t first = o->seed_given ? o->first : s->seed;
    const uint64_t last = o->seed_given ? o->last : s->seed;
    if (!o->json && !o->quiet) {
        printf("%s: %s\n", s->name, s->why);
    }
    for (uint64_t seed = first; seed <= last; seed++) {
        const int r = run_once(s, seed, o);
        worst = r > worst ? r : worst;
    }
    free(s);
    return worst;
}

static bool take_seeds(const char *text, void *to)
{
    struct run_options *o = to;
    char *end = NULL;

    o->first = strtoull(text, &end, 10);
    o->last = o->first;
    o->seed_given = true;
    if (end != text && strncmp(end, "..", 2) == 0) {
        const char *second = end + 2;
        o->last = strtoull(second, &end, 10);
        return end != second && *end == '\0' && o->last >= o->first;
    }
    return end != text && *end == '\0';
}

static bool take_record(const char *text, void *to)
{
    struct run_options *o = to;
    char *end = NULL;
    const long host = strtol(text, &end, 10);

    o->record_host = (int)host;
    o->record_file = end + 1;
    return end != text && *end == ':' && end[1] != '\0' && host >= 0 && host < 100000;
}

int sim_run(int argc, char **argv)
{
    struct run_options o = {0};
    const struct option_entry entries[] = {
        {"seed", 's', OPTION_OWN, &o, .take = take_seeds, .value = "N",
         .expected = "a seed N or seeds A..B", .help = "use this seed instead of the scenario's"},
        {"seeds", 0, OPTION_OWN, &o, .take = take_seeds, .value = "A..B",
         .expected = "a seed N or seeds A..B", .help = "play a world of each of these seeds"},
        {"json", 'j', OPTION_FLAG, &o.json, .help = "print one JSON object for each world"},
        {"findings", 't', OPTION_FLAG, &o.findings,
         .help = "print each world's findings; with --json as data"},
        {"trace", 0, OPTION_FLAG, &o.findings}, /* the same */
        {"quiet", 'q', OPTION_FLAG, &o.quiet, .help = "print only broken bounds"},
        {"record", 'r', OPTION_OWN, &o, .take = take_record, .value = "HOST:FILE",
         .help = "record one host's inputs since its agent last started (at most ten minutes), for "
                 "replay"},
        {"help", 'h', OPTION_HELP, .help = "this text"},
    };
    const struct option_set set = {
        .program = "foliot sim run",
        .usage = "usage: foliot sim run [OPTIONS] SCENARIO...\n"
                 "Plays scenarios in a simulated world and judges their bounds.\n\n",
        .after = "\nExit status: 0 all bounds hold, 1 a bound is broken, 2 a scenario couldn't be "
                 "played.\n",
        .entries = entries,
        .count = ARRAY_COUNT(entries),
        .words_least = 1,
        .words_most = argc,
        .words = "a scenario file"};
    int worst = 0, first = 0;
    const int early = command_line_read(&set, argc, argv, &first);

    if (early != COMMAND_LINE_GOOD) {
        return early;
    }
    for (int i = first; i < argc; i++) {
        const int r = run_file(argv[i], &o);
        worst = r > worst ? r : worst;
    }
    return worst;
}
