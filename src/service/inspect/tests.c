/* tests.c: results of tests that people ran, kept in /var/lib/foliot/tests. NAME.txt is the output of a program of nccl-tests
 * (one or several runs). dcgm.json is the output of `dcgmi diag -j`. `values` has lines "NAME NUMBER UNIT". */
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"
#include "service/inspect/collect.h"

#define FOLDER "/var/lib/foliot/tests"

enum { RUNS_MAX = 256, RANKS_MAX = 1 << 24 };

struct runs {
    int count, wrong; /* wrong: values out of bounds, in all */
    int ranks;        /* that took part; 0: not known */
    int checked;      /* runs that reported their number of wrong values */
    double busbw[RUNS_MAX];
    char network[32];
    double init_s; /* the longest; < 0: not known */
};

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Lines of nccl-tests: "#  Rank  7 Group  0 …", "# Avg bus bandwidth    : 185.3", "# Out of bounds values : 0 OK"; of NCCL's log:
 * "Using network IB", "Init timings - … nranks 8 total 1.35 (…)". False: the line begins like one of these, but is damaged. */
static bool take_line(struct runs *r, const char *line)
{
    const char *at;
    double value;
    int wrong, ranks;

    if (sscanf(line, "# Rank %d", &ranks) == 1) {
        r->ranks = ranks >= r->ranks && ranks < RANKS_MAX ? ranks + 1 : r->ranks;
    } else if ((at = strstr(line, "# Avg bus bandwidth")) != NULL) {
        at = strchr(at, ':');
        if (at == NULL || sscanf(at, ": %lf", &value) != 1 || !(value >= 0 && value < 1e6) ||
            r->count == RUNS_MAX) {
            return false;
        }
        r->busbw[r->count++] = value;
    } else if ((at = strstr(line, "# Out of bounds values")) != NULL) {
        at = strchr(at, ':');
        if (at == NULL || sscanf(at, ": %d", &wrong) != 1 || wrong < 0) {
            return false;
        }
        r->wrong += wrong;
        r->checked++;
    } else if ((at = strstr(line, "Using network ")) != NULL) {
        char name[32] = "";
        if (sscanf(at, "Using network %31s", name) != 1) {
            return false;
        }
        if (r->network[0] == '\0' || strcmp(name, "Socket") == 0) {
            memcpy(r->network, name, sizeof(name)); /* the slowest network of all ranks */
        }
    } else if ((at = strstr(line, "Init timings")) != NULL) {
        at = strstr(at, " total ");
        if (at == NULL || sscanf(at, " total %lf", &value) != 1 || !(value >= 0 && value < 1e6)) {
            return false;
        }
        r->init_s = fmax(r->init_s, value);
        at = strstr(line, " nranks ");
        if (at != NULL && sscanf(at, " nranks %d", &ranks) == 1 && ranks > r->ranks &&
            ranks <= RANKS_MAX) {
            r->ranks = ranks;
        }
    }
    return true;
}

static void put_runs(struct collector *c, const char *name, struct runs *r, const char *path)
{
    double sum = 0, squares = 0;

    qsort(r->busbw, (size_t)r->count, sizeof(r->busbw[0]), compare);
    for (int i = 0; i < r->count; i++) {
        sum += r->busbw[i];
        squares += r->busbw[i] * r->busbw[i];
    }
    const double mean = sum / r->count, variance = fmax(squares / r->count - mean * mean, 0);
    put_number(c, FACT_TEST_RATE, name, llround(r->busbw[r->count / 2] * 1000), path);
    put_number(c, FACT_TEST_RUNS, name, r->count, path);
    put_number(c, FACT_TEST_RANKS, name, r->ranks > 0 ? r->ranks : -1, path);
    put_number(c, FACT_TEST_SPREAD, name, mean > 0 ? llround(sqrt(variance) / mean * 1e4) : 0,
               path);
    /* Wrong values are a result. No wrong values are one only if every run was checked. */
    put_number(c, FACT_TEST_WRONG, name, r->wrong > 0 || r->checked >= r->count ? r->wrong : -1,
               path);
    put(c, FACT_TEST_NETWORK, name, r->network[0] != '\0' ? r->network : "none", path);
    put_number(c, FACT_TEST_INIT, name, r->init_s < 0 ? -1 : llround(r->init_s * 1000), path);
}

static void read_runs(struct collector *c, const char *name, const char *path)
{
    struct runs runs = {.init_s = -1};
    char *cursor = NULL;
    int r = collect_file(c, path);

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        r = take_line(&runs, line) ? r : -EBADMSG;
    }
    r = r >= 0 && runs.count == 0 ? -EBADMSG : r;
    if (r >= 0) {
        put_runs(c, name, &runs, path);
        return;
    }
    static const uint16_t facts[] = {FACT_TEST_RATE,   FACT_TEST_RUNS,  FACT_TEST_RANKS,
                                     FACT_TEST_SPREAD, FACT_TEST_WRONG, FACT_TEST_NETWORK,
                                     FACT_TEST_INIT};
    for (size_t i = 0; i < ARRAY_COUNT(facts); i++) {
        put_error(c, facts[i], name, r, path);
    }
}

/* ---- DCGM ---- */

struct diagnosis {
    int pass, fail, warn, skip, other;
    char first[64]; /* that did not pass */
};

static void add_result(struct diagnosis *d, const char *test, const char *status)
{
    const bool pass = strcmp(status, "Pass") == 0 || strcmp(status, "PASS") == 0;

    if (pass) {
        d->pass++;
        return;
    }
    if (strncasecmp(status, "fail", 4) == 0) {
        d->fail++;
    } else if (strncasecmp(status, "warn", 4) == 0) {
        d->warn++;
    } else if (strncasecmp(status, "skip", 4) == 0) {
        d->skip++;
    } else {
        d->other++;
    }
    if (d->first[0] == '\0') {
        snprintf(d->first, sizeof(d->first), "%.60s", test);
    }
}

static void read_categories(struct diagnosis *d, const json_t *categories)
{
    const json_t *category, *test, *result;
    size_t i, k, n;

    json_array_foreach(categories, i, category)
    {
        json_array_foreach(json_object_get(category, "tests"), k, test)
        {
            const char *name = json_string_value(json_object_get(test, "name"));
            json_array_foreach(json_object_get(test, "results"), n, result)
            {
                const char *status = json_string_value(json_object_get(result, "status"));
                add_result(d, name != NULL ? name : "", status != NULL ? status : "");
            }
        }
    }
}

/* {"DCGM …": {"test_categories": [{"tests": [{"name": …, "results": [{"status": "Pass"}]}]}]}} */
static void read_dcgm(struct collector *c)
{
    static const char path[] = FOLDER "/dcgm.json";
    struct diagnosis d = {0};
    char text[160];
    const char *key;
    json_t *value;
    int r = collect_file(c, path);

    json_t *all = r >= 0 ? json_loads(c->text, 0, NULL) : NULL;
    json_object_foreach(all, key, value)
    {
        read_categories(&d, json_object_get(value, "test_categories"));
    }
    json_decref(all);
    if (r >= 0 && d.pass + d.fail + d.warn + d.skip + d.other == 0) {
        r = -EBADMSG;
    }
    if (r < 0) {
        put_error(c, FACT_TEST_DCGM, "", r, path);
        return;
    }
    snprintf(text, sizeof(text), "pass %d, fail %d, warn %d, skip %d, other %d%s%s", d.pass, d.fail,
             d.warn, d.skip, d.other, d.first[0] != '\0' ? ": " : "", d.first);
    put(c, FACT_TEST_DCGM, "", text, path);
}

/* ---- values ---- */

static void read_values(struct collector *c)
{
    static const char path[] = FOLDER "/values";
    char name[64], *cursor = NULL;
    double value;
    const int r = collect_file(c, path);

    for (char *line; r >= 0 && (line = next_line(c, &cursor)) != NULL;) {
        if (line[0] == '#' || line[0] == '\0') {
            continue;
        }
        if (sscanf(line, "%63s %lf", name, &value) != 2 || !(value >= 0 && value < 1e12)) {
            put_error(c, FACT_TEST_RATE, "", -EBADMSG, path);
            return;
        }
        put_number(c, FACT_TEST_RATE, name, llround(value * 1000), path);
    }
    if (r < 0 && state_of(r) != FACT_ABSENT) {
        put_error(c, FACT_TEST_RATE, "", r, path);
    }
}

/* Without results all facts that list tests get this error. */
static void put_none(struct collector *c, int error)
{
    static const uint16_t facts[] = {FACT_TEST, FACT_TEST_WRONG, FACT_TEST_NETWORK, FACT_TEST_INIT};

    for (size_t i = 0; i < ARRAY_COUNT(facts); i++) {
        put_error(c, facts[i], "", error, FOLDER);
    }
}

void collect_tests(struct collector *c)
{
    char path[SYSFS_PATH_SIZE], name[SYSFS_NAME_SIZE];
    struct names *files = names_of(c, FOLDER);
    int found = 0;

    if (files->count <= 0) {
        put_none(c, files->count < 0 ? files->count : -ENOENT);
    }
    for (int i = 0; i < files->count; i++) {
        const size_t size = strlen(files->name[i]);
        put(c, FACT_TEST, files->name[i], files->name[i], FOLDER);
        found++;
        if (size > 4 && strcmp(files->name[i] + size - 4, ".txt") == 0) {
            snprintf(name, sizeof(name), "%.*s", (int)size - 4, files->name[i]);
            read_runs(c, name, sysfs_path(path, FOLDER "/%s", files->name[i]));
        }
    }
    if (found > 0) {
        read_dcgm(c);
        read_values(c);
    }
    free(files);
}
