/* truth_locate.c: faults in fabrics drawn at random, and the elements that core/fleet/locate names: locate.*, gray.*,
 * outage.*. The fates of all paths are known in one place, 0.1 to 0.3 s after the packet. The delays of agents and digests are
 * not included.
 *
 *   truth_locate [--soak] [--first=N] [SET …]   some sets only, by the first word of each line of `sets`; N: other seeds
 *   truth_locate --show SET SEED [N]    prints the named faults in one world, or N; fails if a healthy element is named */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "locate_world.h"
#include "parallel.h"
#include "report.h"
#include "stats/sample.h"

#define SET_COUNT ARRAY_COUNT(sets)

/* Worlds of one kind. */
static const struct set {
    const char *name;
    int worlds, soak; /* in make bench, in make soak */
    struct world_config config;
    bool drawn; /* the background is drawn from 0.01 to 1 %, and whether it comes in bursts */
} sets[] = {
    {"one", 300, 3000, {.faults = 1, .share = 1, .watch_s = 5}},
    {"two", 150, 1000, {.faults = 2, .share = 1, .watch_s = 5}},
    {"three", 100, 1000, {.faults = 3, .share = 1, .watch_s = 5}},
    {"background", 60, 1000, {.faults = 1, .share = 1, .watch_s = 5, .background = 0.01}},
    {"bursts",
     60,
     1000,
     {.faults = 1, .share = 1, .watch_s = 5, .background = 0.003, .burst_s = 0.01}},
    {"half", 60, 1000, {.faults = 1, .share = 1, .watch_s = 5, .heard = 0.5}},
    {"liar", 60, 1000, {.faults = 1, .share = 1, .watch_s = 5, .liar = true}},
    {"10pct",
     40,
     400,
     {.faults = 1,
      .share = 0.1,
      .watch_s = 5,
      .background = 1e-4,
      .directed = true,
      .hosts = 16,
      .nics = 2}},
    {"3pct",
     40,
     400,
     {.faults = 1,
      .share = 0.03,
      .watch_s = 8,
      .background = 1e-4,
      .directed = true,
      .hosts = 16,
      .nics = 2}},
    {"1pct",
     20,
     200,
     {.faults = 1,
      .share = 0.01,
      .watch_s = 24,
      .background = 1e-4,
      .directed = true,
      .hosts = 16,
      .nics = 2}},
    {"01pct",
     6,
     60,
     {.faults = 1,
      .share = 0.001,
      .watch_s = 100,
      .background = 2e-5,
      .trunks = true,
      .hosts = 16,
      .nics = 2,
      .leaves = 2,
      .spines = 4}},
    {"quiet", 4, 400, {.faults = 0, .watch_s = 300, .background = 1e-4}},
    {"lossy", 4, 400, {.faults = 0, .watch_s = 300, .background = 0.01, .swing = 2}},
    {"bursty",
     4,
     400,
     {.faults = 0, .watch_s = 300, .background = 0.003, .burst_s = 0.01, .swing = 2}},
    {"false", 8, 640, {.faults = 0, .watch_s = 300, .swing = 2}, .drawn = true},
    {"outage", 100, 1000, {.faults = 1, .share = 1, .watch_s = 6, .trunks = true, .length_s = 1}},
};
static const struct set *playing;
static uint64_t first_seed, later_by;
static struct world_result *results; /* of one set, shared */

static struct world_config config_of(const struct set *set, int index)
{
    struct world_config c = set->config;
    struct prng prng;

    c.seed = first_seed + (uint64_t)index;
    c.warm_s = strstr(set->name, "01pct") ? 60 : set->config.faults == 0 ? 0 : 8;
    if (set->config.length_s > 0) {
        prng_init(&prng, c.seed ^ 0x6f75746167);
        c.length_s = 0.02 + 0.98 * prng_uniform(&prng);
    }
    if (set->drawn) {
        prng_init(&prng, c.seed ^ 0x66616c7365);
        c.background = 1e-4 * pow(100, prng_uniform(&prng));
        c.burst_s = prng_below(&prng, 2) == 0 ? 0.01 : 0;
    }
    return c;
}

static void play_one(int index)
{
    const struct world_config c = config_of(playing, index);

    world_run(&c, &results[index]);
    if (results[index].wrong > 0) {
        printf("%s %llu: wrong: %s\n", playing->name, (unsigned long long)c.seed,
               results[index].text);
    }
}

static int play(const struct set *set, bool soak)
{
    const int count = soak ? set->soak : set->worlds;

    playing = set;
    results = parallel_memory((size_t)count * sizeof(*results));
    if (!results || parallel_run(count, play_one) > 0) {
        fprintf(stderr, "truth_locate: worlds of '%s' died\n", set->name);
        return 0;
    }
    return count;
}

struct sums {
    int right, wrong, unknown, apart;
    double p50, p90, p99, look_us, hours;
    uint32_t named;
};

static struct sums sum_up(int count)
{
    struct sums s = {0};
    double *times = malloc((size_t)count * sizeof(*times));

    for (int i = 0; i < count; i++) {
        const struct world_result *r = &results[i];

        s.wrong += r->wrong > 0;
        s.unknown += !r->right && r->tellable;
        s.apart += !r->right && !r->tellable;
        s.look_us += r->look_us / count;
        s.hours += r->path_hours;
        s.named += r->named;
        if (r->right) {
            times[s.right++] = r->right_s;
        }
    }
    qsort(times, (size_t)s.right, sizeof(*times), sample_order);
    s.p50 = sample_quantile(times, (size_t)s.right, 0.5);
    s.p90 = sample_quantile(times, (size_t)s.right, 0.9);
    s.p99 = sample_quantile(times, (size_t)s.right, 0.99);
    free(times);
    return s;
}

static void row(struct report *report, const char *id, double value, const char *unit, double must,
                double aim, enum report_better better, int runs, const char *note)
{
    struct report_row r = {.value = value,
                           .must = must,
                           .aim = aim,
                           .better = better,
                           .runs = runs,
                           .spread = REPORT_NONE};

    snprintf(r.id, sizeof(r.id), "%s", id);
    snprintf(r.unit, sizeof(r.unit), "%s", unit);
    snprintf(r.note, sizeof(r.note), "simulated; %s", note);
    report_add(report, &r);
}

static double share_of(const struct sums *s, int part, int count)
{
    return count > s->apart ? 100.0 * part / (count - s->apart) : 0;
}

static void black_holes(struct report *report, const struct set *set, int count)
{
    const struct sums s = sum_up(count);
    const bool one = strcmp(set->name, "one") == 0, two = strcmp(set->name, "two") == 0;
    char id[64], note[120];

    snprintf(note, sizeof(note), "%d worlds that rest on one host's word aside", s.apart);
    snprintf(id, sizeof(id), one ? "locate.right" : "locate.%s", set->name);
    row(report, id, share_of(&s, s.right, count), "%",
        two                       ? 97
        : set->config.faults == 3 ? 90
                                  : 99,
        two                       ? 99
        : set->config.faults == 3 ? 96
                                  : REPORT_NONE,
        REPORT_HIGHER, count, note);
    snprintf(id, sizeof(id), one ? "locate.wrong" : "locate.%s_wrong", set->name);
    row(report, id, s.wrong, "worlds", 0, 0, REPORT_LOWER, count,
        "a healthy element named, at any moment");
    snprintf(id, sizeof(id), one ? "locate.unknown" : "locate.%s_unknown", set->name);
    row(report, id, share_of(&s, s.unknown, count), "%", one ? 1 : REPORT_NONE, REPORT_NONE,
        REPORT_LOWER, count, "unknown where several hosts could tell");
    if (one) {
        row(report, "locate.s.p50", s.p50, "s", 0.8, 0.4, REPORT_LOWER, s.right,
            "to the right name, one inference of all");
        row(report, "locate.s.p99", s.p99, "s", 2, 1, REPORT_LOWER, s.right,
            "to the right name, one inference of all");
        row(report, "locate.look_us", s.look_us, "us", REPORT_NONE, REPORT_NONE, REPORT_LOWER,
            count, "processor time of a look while something is lost");
    }
}

static void gray(struct report *report, const struct set *set, int count)
{
    static const struct {
        const char *name;
        double must, aim;
    } goals[] = {{"10pct", 1.5, 0.8}, {"3pct", 3, 1.2}, {"1pct", 12, 4}, {"01pct", 60, 30}};
    const struct sums s = sum_up(count);
    char id[64], note[120];

    for (size_t i = 0; i < ARRAY_COUNT(goals); i++) {
        if (strcmp(goals[i].name, set->name) == 0) {
            const double told = s.right >= 0.9 * (count - s.apart) ? s.p90 : set->config.watch_s;
            snprintf(id, sizeof(id), "gray.s.%s", set->name);
            snprintf(note, sizeof(note), "p90; named right in time %d of %d, on one host's word %d",
                     s.right, count, s.apart);
            row(report, id, told, "s", goals[i].must, goals[i].aim, REPORT_LOWER, count, note);
            snprintf(id, sizeof(id), "gray.wrong.%s", set->name);
            row(report, id, s.wrong, "worlds", 0, 0, REPORT_LOWER, count,
                "a healthy element named, at any moment");
        }
    }
}

static void false_alarms(struct report *report, const struct set *set, int count)
{
    const struct sums s = sum_up(count);
    char id[64], note[140];

    if (set->drawn) {
        snprintf(id, sizeof(id), "gray.false");
        snprintf(
            note, sizeof(note),
            "%.3g path-hours, background 0.01 to 1 %% that changes by 2 within the hour, half in "
            "bursts of 10 ms",
            s.hours);
    } else {
        snprintf(id, sizeof(id), "gray.false.%s", set->name);
        snprintf(note, sizeof(note), "%.3g path-hours, background %g, bursts of %g ms", s.hours,
                 set->config.background, set->config.burst_s * 1e3);
    }
    row(report, id, s.wrong, "worlds", 0, 0, REPORT_LOWER, count, note);
}

static void outages(struct report *report, int count)
{
    double least = 0, errors[4096];
    size_t told = 0;
    int apart = 0;
    char note[120];

    for (int i = 0; i < count; i++) {
        const struct world_result *r = &results[i];
        const double length = config_of(playing, i).length_s;

        if (r->told == 0 && !r->tellable) {
            apart++;
        } else if (r->told == 0 && r->rate > 0) {
            least = fmax(least, (length - 0.06) * r->rate);
        } else if (told < ARRAY_COUNT(errors)) {
            errors[told++] = r->length_error_s * r->rate;
        }
    }
    qsort(errors, told, sizeof(*errors), sample_order);
    snprintf(
        note, sizeof(note),
        "longest not named: (length - 60 ms) x trials a second across it; %d worlds that rest on "
        "one host's word aside",
        apart);
    row(report, "outage.trials", least, "trials", 5, REPORT_NONE, REPORT_LOWER, count, note);
    row(report, "outage.length_trials", sample_quantile(errors, told, 0.99), "trials", 9, 7,
        REPORT_LOWER, (int)told, "error of the length, p99, x trials a second");
}

static int show(char *const argv[], int argc)
{
    bool wrong = false;

    for (size_t i = 0; i < SET_COUNT; i++) {
        if (strcmp(sets[i].name, argv[2]) == 0) {
            for (int k = 0; k < (argc > 4 ? atoi(argv[4]) : 1); k++) {
                struct world_result r;
                first_seed = strtoull(argv[3], NULL, 10);
                struct world_config c = config_of(&sets[i], k);
                c.show = true;
                world_run(&c, &r);
                printf("  %s%s, %.2f s%s%s\n", r.right ? "right" : "not right",
                       r.tellable ? "" : ", on one host's word", r.right_s,
                       r.wrong ? ", wrong: " : "", r.text);
                wrong = wrong || r.wrong > 0;
                if (c.length_s > 0) {
                    printf("  %.3f s at %.0f trials/s: told %u, off by %.3f s\n", c.length_s,
                           r.rate, r.told, r.length_error_s);
                }
            }
            return wrong ? 1 : 0;
        }
    }
    fprintf(stderr, "truth_locate: no set '%s'\n", argv[2]);
    return 1;
}

int main(int argc, char *argv[])
{
    static struct report report;
    const bool soak = argc > 1 && strcmp(argv[1], "--soak") == 0;

    if (argc > 3 && strcmp(argv[1], "--show") == 0) {
        return show(argv, argc);
    }
    for (int i = 1; i < argc; i++) {
        later_by =
            strncmp(argv[i], "--first=", 8) == 0 ? strtoull(argv[i] + 8, NULL, 10) : later_by;
    }
    report_init(&report, soak ? "truth-locate-soak" : "truth-locate", argc, argv);
    for (size_t i = 0; i < SET_COUNT; i++) {
        const struct set *set = &sets[i];
        first_seed = 1000 * (i + 1) + later_by;
        const int count = report_wanted(set->name, argc, argv) ? play(set, soak) : 0;

        if (count > 0 && set->config.length_s > 0) {
            outages(&report, count);
        } else if (count > 0 && set->config.faults == 0) {
            false_alarms(&report, set, count);
        } else if (count > 0 && set->config.share < 1) {
            gray(&report, set, count);
        } else if (count > 0) {
            black_holes(&report, set, count);
        }
        if (report_write(&report) < 0) {
            fprintf(stderr, "truth_locate: the rows so far couldn't be written\n");
        }
    }
    return report_finish(&report) < 0;
}
