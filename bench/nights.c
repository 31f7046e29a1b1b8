/* nights.c: see nights.h. */
#include "nights.h"
#include "now.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void count(struct nights *n, const struct night *night)
{
    n->path_hours += night->path_hours;
    n->wrong += night->wrong;
    if (night->wrong > 0) {
        snprintf(n->wrong_in, sizeof(n->wrong_in), "%.56s, seed %d", night->scenario,
                 (int)night->seed);
    }
    if (night->seed > 0) {
        n->done[night->seed % NIGHT_SEEDS] |= night->seed < NIGHT_SEEDS;
        return;
    }
    for (int i = 0; i < n->count; i++) {
        if (strcmp(n->scenarios[i], night->scenario) == 0) {
            n->held[i] = night->holds;
        }
    }
}

/* ---- the journal: a line per night ---- */
static void journal_read(struct nights *n)
{
    FILE *f = n->journal != NULL ? fopen(n->journal, "re") : NULL;
    struct night night;
    char line[256], code[64];

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "%63s %63s %" SCNu64 " %lf %lf %d", code, night.scenario, &night.seed,
                   &night.path_hours, &night.wrong, &night.holds) == 6 &&
            strcmp(code, n->code) == 0) {
            count(n, &night);
        }
    }
    if (f != NULL) {
        fclose(f);
    }
}

static void journal_add(const struct nights *n, const struct night *night)
{
    FILE *f = n->journal != NULL ? fopen(n->journal, "ae") : NULL;

    if (f != NULL) {
        fprintf(f, "%s %s %" PRIu64 " %.6f %.0f %d\n", n->code, night->scenario, night->seed,
                night->path_hours, night->wrong, night->holds);
        fclose(f);
    }
}

/* ---- processes ---- */
/* False: there is no further night, or none is needed. */
static bool next(struct nights *n, const char **ret_scenario, uint64_t *ret_seed)
{
    while (!n->seeds_only && n->begun < n->count) {
        const int i = n->begun++;
        if (n->held[i] < 0) {
            *ret_scenario = n->scenarios[i];
            *ret_seed = 0;
            return true;
        }
    }
    while (n->seed < NIGHT_SEEDS && n->done[n->seed]) {
        n->seed++;
    }
    if (n->seed > n->last || n->path_hours >= n->enough) {
        return false;
    }
    *ret_scenario = n->scenarios[n->count - 1];
    *ret_seed = n->seed++;
    return true;
}

static bool begin(struct night (*play)(const char *, uint64_t), const char *scenario, uint64_t seed,
                  int fd)
{
    const pid_t child = fork();

    if (child == 0) {
        const struct night night = play(scenario, seed);
        _exit(write(fd, &night, sizeof(night)) == (ssize_t)sizeof(night) ? 0 : 1);
    }
    return child > 0;
}

static void say(const struct nights *n, const struct night *night, double began)
{
    fprintf(stderr, "%6.0f s  %s", now_s(CLOCK_MONOTONIC) - began, night->scenario);
    if (night->seed > 0) {
        fprintf(stderr, ", seed %d", (int)night->seed);
    }
    fprintf(stderr, ": %.0f wrong verdicts%s; %.0f path-hours so far, %.0f wrong verdicts\n",
            night->wrong, night->holds ? "" : ", bounds BROKEN", n->path_hours, n->wrong);
}

void nights_run(struct nights *n, struct night (*play)(const char *scenario, uint64_t seed),
                void (*told)(const struct nights *n))
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const double began = now_s(CLOCK_MONOTONIC);
    const char *scenario;
    uint64_t seed;
    long running = 0;
    int fds[2];

    memset(n->held, 0xff, sizeof(n->held)); /* -1 */
    journal_read(n);
    if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) < 0) {
        return;
    }
    while (true) {
        struct night night;
        int status;

        while (running < processors && next(n, &scenario, &seed) &&
               begin(play, scenario, seed, fds[1])) {
            running++;
        }
        if (running == 0 || wait(&status) < 0) {
            break;
        }
        running--;
        if (read(fds[0], &night, sizeof(night)) != (ssize_t)sizeof(night) ||
            night.path_hours <= 0) {
            fprintf(stderr, "a night ended without a result\n");
            n->begun = n->count;
            n->enough = 0;
            continue;
        }
        count(n, &night);
        journal_add(n, &night);
        say(n, &night, began);
        if (told != NULL) {
            told(n);
        }
    }
    close(fds[0]);
    close(fds[1]);
}
