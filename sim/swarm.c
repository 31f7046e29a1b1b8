/* swarm.c: `foliot sim swarm`: plays one world after another, judges each, prints the seeds of broken ones, counts them by
 * invariant, and shrinks them into a scenario file if asked. */
#include "sim/swarm.h"

#include "base/bug.h"
#include "platform/config/command_line.h"
#include "platform/json/json.h"
#include "sim/check.h"
#include "sim/invariant_private.h"
#include "sim/sim.h"
#include "sim/swarm_lab.h"
#include "sim/world.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define WORLDS_USUAL 100
#define SHRINK_TRIES 150
#define LINE_MOST    (1 << 20)         /* bytes of JSON */
#define SLICE_NS     (500 * NS_PER_MS) /* a broken world is noticed within this time */

/* ---- one world ---- */
static double cpu_s(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int swarm_play(const struct scenario *s, enum invariant until, struct swarm_result *ret)
{
    const double began = cpu_s();
    struct world *w = NULL;
    const int r = world_new(&w, s, s->seed);

    if (r < 0) {
        return r;
    }
    if (w->check->invariants == NULL) {
        world_free(w);
        return -ENOMEM;
    }
    for (int64_t at = 0; at < s->duration_ns;) {
        at = at + SLICE_NS < s->duration_ns ? at + SLICE_NS : s->duration_ns;
        world_run(w, at);
        if (until < INVARIANT_COUNT && invariant_broken(w->check->invariants, until) > 0) {
            break;
        }
    }
    check_end(w);
    const struct invariants *v = w->check->invariants;
    *ret = (struct swarm_result){
        .trace = world_trace(w), .probes = w->probes, .p99_ratio = v->p99_ratio};
    for (int i = 0; i < INVARIANT_COUNT; i++) {
        const char *text = "";
        ret->broken[i] = invariant_broken(v, (enum invariant)i);
        ret->first[i] = invariant_first(v, (enum invariant)i, &text);
        snprintf(ret->text[i], sizeof(ret->text[i]), "%s", text);
    }
    world_free(w);
    ret->seconds = cpu_s() - began;
    return 0;
}

/* ---- the command ---- */
struct swarm_options {
    uint64_t first, last;
    double minutes;
    int tries; /* for one shrinking; 0: the default */
    int nics;  /* larger worlds are left out; 0: none is */
    bool seeds_given, shrink, json, lab;
    bool judged[INVARIANT_COUNT];
    const char *only;   /* as given on the command line */
    const char *folder; /* for scenario files */
};

struct swarm_sum {
    uint64_t worlds, worlds_broken, clock_broken, probes;
    uint64_t broken[INVARIANT_COUNT]; /* worlds */
    double seconds, p99_ratio_worst;
};

static const char *short_name(int i)
{
    return invariant_name((enum invariant)i) + strlen("invariant.");
}

static bool write_file(const char *path, const struct scenario *s)
{
    FILE *to = fopen(path, "we");
    bool good = to != NULL && scenario_write(s, to) == 0;

    if (to != NULL && fclose(to) != 0) {
        good = false;
    }
    if (!good) {
        fprintf(stderr, "foliot sim swarm: %s can't be written: %s\n", path, strerror(errno));
    }
    return good;
}

/* Writes the smallest world that still breaks it as a file. */
static bool shrink_to_file(const struct scenario *drawn, enum invariant i,
                           const struct swarm_options *o, char *ret_path, size_t size)
{
    struct scenario *s = malloc(sizeof(*s));
    bool good = false;

    snprintf(ret_path, size, "%s/swarm-%s-%" PRIu64 ".yaml", o->folder, short_name((int)i),
             drawn->seed);
    if (s != NULL) {
        *s = *drawn;
        good = swarm_shrink(s, i, o->tries) >= 0 && write_file(ret_path, s);
    }
    free(s);
    return good;
}

static void print_json(struct json_writer *j)
{
    const char *text = "";
    size_t size = 0;

    if (json_writer_finish(j, &text, &size) < 0) {
        fprintf(stderr, "foliot sim swarm: no memory for a line of JSON\n");
    }
    (void)fwrite(text, 1, size, stdout);
    fflush(stdout);
    json_writer_done(j);
}

void swarm_json(const struct scenario *s, const struct swarm_result *r, const char *file,
                struct json_writer *j)
{
    json_put_object(j, NULL);
    json_put_uint(j, "seed", s->seed);
    json_put_int(j, "hosts", s->fabric.hosts);
    json_put_int(j, "nics_per_host", s->fabric.nics_per_host);
    json_put_int(j, "faults", s->fault_count);
    json_put_double(j, "simulated_s", (double)s->duration_ns * 1e-9);
    json_put_double(j, "seconds", r->seconds);
    json_put_double(j, "p99_ratio", r->p99_ratio);
    json_put_hex64(j, "trace", r->trace);
    json_put_object(j, "broken");
    for (int i = 0; i < INVARIANT_COUNT; i++) {
        if (r->broken[i] > 0) {
            json_put_object(j, short_name(i));
            json_put_uint(j, "count", r->broken[i]);
            json_put_double(j, "at_s", (double)r->first[i] * 1e-9);
            json_put_string(j, "text", r->text[i]);
            json_put_end(j);
        }
    }
    json_put_end(j);
    if (file[0] != '\0') {
        json_put_string(j, "file", file);
    }
    json_put_end(j);
}

static void print_world(const struct scenario *s, const struct swarm_result *r, const char *file,
                        const struct swarm_options *o)
{
    if (o->json) {
        struct json_writer j;
        json_writer_init(&j, LINE_MOST);
        swarm_json(s, r, file, &j);
        print_json(&j);
        return;
    }
    for (int i = 0; i < INVARIANT_COUNT; i++) {
        if (r->broken[i] > 0) {
            printf("seed %" PRIu64 "  %d x %d NICs, %d faults  %s at %.3f s: %s (%" PRIu64 ")\n",
                   s->seed, s->fabric.hosts, s->fabric.nics_per_host, s->fault_count, short_name(i),
                   (double)r->first[i] * 1e-9, r->text[i], r->broken[i]);
        }
    }
    if (file[0] != '\0') {
        printf("seed %" PRIu64 "  shrunk: %s\n", s->seed, file);
    }
    fflush(stdout);
}

static int one_world(uint64_t seed, const struct swarm_options *o, struct swarm_sum *sum)
{
    struct scenario *s = malloc(sizeof(*s));
    struct swarm_result result;
    char file[512] = "";
    int worst = INVARIANT_COUNT;
    bool clock = false;

    if (s == NULL) {
        return -ENOMEM;
    }
    swarm_draw(seed, s);
    if (o->nics > 0 && s->fabric.hosts * s->fabric.nics_per_host > o->nics) {
        free(s);
        return 0;
    }
    const int r = swarm_play(s, INVARIANT_COUNT, &result);
    if (r < 0) {
        free(s);
        return r;
    }
    for (int i = INVARIANT_COUNT - 1; i >= 0; i--) {
        result.broken[i] = o->judged[i] ? result.broken[i] : 0;
        if (result.broken[i] > 0) {
            worst = i;
            clock = clock || i < INVARIANT_CLOCK_END;
            sum->broken[i]++;
        }
    }
    sum->worlds++;
    sum->worlds_broken += worst < INVARIANT_COUNT;
    sum->clock_broken += clock;
    sum->probes += result.probes;
    sum->seconds += result.seconds;
    if (result.p99_ratio > sum->p99_ratio_worst) {
        sum->p99_ratio_worst = result.p99_ratio;
    }
    if (worst < INVARIANT_COUNT && o->shrink &&
        !shrink_to_file(s, (enum invariant)worst, o, file, sizeof(file))) {
        file[0] = '\0';
    }
    print_world(s, &result, file, o);
    free(s);
    return 0;
}

/* False: it couldn't be played, and no other world could. */
static bool lab_world(uint64_t seed, const struct swarm_options *o, struct swarm_sum *sum)
{
    const int r = swarm_lab_world(seed, o->folder);

    if (r != 0 && r != 1) {
        fprintf(stderr,
                "foliot sim swarm: the lab can't play the world of seed %" PRIu64
                ": expected root and the program foliot, found %s\n",
                seed, r < 0 ? strerror(-r) : "an error of foliot lab");
        return false;
    }
    sum->worlds++;
    sum->worlds_broken += (uint64_t)r;
    sum->clock_broken += (uint64_t)r;
    return true;
}

static void print_sum(const struct swarm_sum *sum, const struct swarm_options *o, uint64_t last)
{
    const double each = sum->worlds > 0 ? sum->seconds / (double)sum->worlds : 0;

    if (o->json) {
        struct json_writer j;
        json_writer_init(&j, LINE_MOST);
        json_put_object(&j, NULL);
        json_put_uint(&j, "worlds", sum->worlds);
        json_put_uint(&j, "first", o->first);
        json_put_uint(&j, "last", last);
        json_put_uint(&j, "broken", sum->worlds_broken);
        json_put_uint(&j, "clock_broken", sum->clock_broken);
        json_put_uint(&j, "probes", sum->probes);
        json_put_double(&j, "seconds", sum->seconds);
        json_put_object(&j, "by");
        for (int i = 0; i < INVARIANT_COUNT; i++) {
            json_put_uint(&j, short_name(i), sum->broken[i]);
        }
        json_put_end(&j);
        json_put_end(&j);
        print_json(&j);
        return;
    }
    printf("%" PRIu64 " worlds, seeds %" PRIu64 "..%" PRIu64 ": %" PRIu64 " broken, %" PRIu64
           " of them by the clock",
           sum->worlds, o->first, last, sum->worlds_broken, sum->clock_broken);
    if (o->lab) {
        printf("\n");
    } else {
        printf("; %.2f s of a processor each\n", each);
    }
    for (int i = 0; i < INVARIANT_COUNT; i++) {
        if (sum->broken[i] > 0) {
            printf("  %-10s %" PRIu64 "\n", short_name(i), sum->broken[i]);
        }
    }
}

static bool take_seeds(const char *text, void *to)
{
    struct swarm_options *o = to;
    char *end = NULL;

    errno = 0;
    o->first = strtoull(text, &end, 10);
    o->last = o->first;
    o->seeds_given = true;
    bool good = isdigit((unsigned char)text[0]); /* strtoull also takes a sign */
    if (strncmp(end, "..", 2) == 0) {
        good = good && isdigit((unsigned char)end[2]);
        o->last = strtoull(end + 2, &end, 10);
    }
    return good && *end == '\0' && errno == 0 && o->last >= o->first;
}

static bool take_only(const char *text, void *to)
{
    struct swarm_options *o = to;
    bool any = false;

    o->only = text;
    for (int i = 0; i < INVARIANT_COUNT; i++) {
        const bool clock = i < INVARIANT_CLOCK_END;
        o->judged[i] = strcmp(text, short_name(i)) == 0 || (clock && strcmp(text, "clock") == 0) ||
                       (!clock && strcmp(text, "findings") == 0);
        any = any || o->judged[i];
    }
    return any;
}

/* COMMAND_LINE_GOOD, or the exit status. */
static int take_options(int argc, char **argv, struct swarm_options *o)
{
    const struct option_entry entries[] = {
        {"seeds", 's', OPTION_OWN, o, .take = take_seeds, .value = "A..B",
         .expected = "seeds N or A..B",
         .help = "play a world of each of these seeds; without it new seeds: 100, or as many as "
                 "--minutes allow"},
        {"minutes", 'm', OPTION_NUMBER, &o->minutes, 1e-9, 1e9, .value = "M",
         .expected = "minutes above 0", .help = "end after this time"},
        {"only", 'c', OPTION_OWN, o, .take = take_only, .value = "NAME",
         .expected = "clock, findings or an invariant such as hard",
         .help = "judge by clock, findings or one invariant alone"},
        {"nics", 'n', OPTION_INT, &o->nics, 2, INT_MAX, .value = "N", .expected = "2 NICs or more",
         .help = "leave out worlds of more than N NICs"},
        {"shrink", 'k', OPTION_FLAG, &o->shrink,
         .help = "write a scenario file of the smallest world that still breaks it"},
        {"tries", 't', OPTION_INT, &o->tries, 1, INT_MAX, .value = "N",
         .expected = "tries of 1 or more", .help = "number of worlds for one shrinking (150)"},
        {"out", 'o', OPTION_TEXT, &o->folder, .value = "DIR", .expected = "a folder",
         .help = "folder for those files (here)"},
        {"lab", 'l', OPTION_FLAG, &o->lab,
         .help = "play with real packets, up to eight hosts; needs root"},
        {"json", 'j', OPTION_FLAG, &o->json,
         .help = "print one JSON object for each world, and one for all"},
        {"help", 'h', OPTION_HELP, .help = "this text"},
    };
    const struct option_set set = {
        .program = "foliot sim swarm",
        .usage =
            "usage: foliot sim swarm [OPTIONS]\n"
            "Plays random worlds and judges them by conditions that must hold in any world.\n\n",
        .after =
            "\nExit status: 0 all worlds hold, 1 a world is broken, 2 no world could be played.\n",
        .entries = entries,
        .count = ARRAY_COUNT(entries)};
    int first = 0;

    memset(o->judged, true, sizeof(o->judged));
    return command_line_read(&set, argc, argv, &first);
}

/* Errors are reported before the first world, not after the last. */
static int check_options(struct swarm_options *o)
{
    struct stat st;

    if (o->lab && (o->shrink || o->tries > 0 || o->nics > 0 || o->only != NULL)) {
        fprintf(stderr, "foliot sim swarm: expected --lab without --shrink, --tries, --nics and "
                        "--only: they are for simulated worlds\n");
        return -EINVAL;
    }
    if ((o->lab || o->shrink) && (stat(o->folder, &st) < 0 || access(o->folder, W_OK | X_OK) < 0)) {
        fprintf(stderr, "foliot sim swarm: --out %s: expected a folder to write to: %s\n",
                o->folder, strerror(errno));
        return -errno;
    }
    if ((o->lab || o->shrink) && !S_ISDIR(st.st_mode)) {
        fprintf(stderr, "foliot sim swarm: --out %s: expected a folder, found a file\n", o->folder);
        return -ENOTDIR;
    }
    o->tries = o->tries > 0 ? o->tries : SHRINK_TRIES;
    return 0;
}

int sim_swarm(int argc, char **argv)
{
    struct swarm_options o = {.folder = "."};
    struct swarm_sum sum = {0};
    struct timespec began, now;
    uint64_t seed;

    const int early = take_options(argc, argv, &o);
    if (early != COMMAND_LINE_GOOD) {
        return early;
    }
    if (check_options(&o) < 0) {
        return 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &began);
    if (!o.seeds_given) { /* new seeds, printed at the end */
        clock_gettime(CLOCK_REALTIME, &now);
        o.first = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
        o.last = o.minutes > 0 ? UINT64_MAX : o.first + WORLDS_USUAL - 1;
    }
    for (seed = o.first;; seed++) {
        if (o.lab && !lab_world(seed, &o, &sum)) {
            return 2;
        }
        if (!o.lab && one_world(seed, &o, &sum) < 0) {
            fprintf(stderr, "foliot sim swarm: no memory for the world of seed %" PRIu64 "\n",
                    seed);
            return 2;
        }
        clock_gettime(CLOCK_MONOTONIC, &now);
        const double took = (double)(now.tv_sec - began.tv_sec);
        if (seed == o.last || (o.minutes > 0 && took > 60 * o.minutes)) {
            break;
        }
    }
    if (sum.worlds == 0) {
        fprintf(stderr,
                "foliot sim swarm: expected a world of %d NICs or fewer among the seeds %" PRIu64
                "..%" PRIu64 ", found none: take more seeds or more NICs\n",
                o.nics, o.first, seed);
        return 2;
    }
    print_sum(&sum, &o, seed);
    return sum.worlds_broken > 0 ? 1 : 0;
}
