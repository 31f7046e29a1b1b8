/* api_now.c: the cost of a call of foliot_now() through the shared library, as in a program, while an agent's writer works
 * every 5 ms. For comparison it also measures the vDSO's raw clock alone.
 *
 * Each call is timed alone with the time stamp counter. The counter's own cost is measured the same way, and subtracted. Runs
 * of the library and of the bare clock alternate, so that both have the same machine. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "foliot/clock.h"
#include "now.h"
#include "report.h"
#include "stats/sample.h"
#include "wire/clock_page.h"

#define RUNS  9
#define CALLS 200000

static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
    uint32_t low, high;
    /* Ordered: everything before has ended, and nothing after has begun. */
    __asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high)::"memory");
    return (uint64_t)high << 32 | low;
#else
    return (uint64_t)now_ns(CLOCK_MONOTONIC_RAW);
#endif
}

static double ticks_per_ns(void)
{
    const int64_t begin = now_ns(CLOCK_MONOTONIC_RAW);
    const uint64_t first = ticks();

    usleep(200000);
    return (double)(ticks() - first) / (double)(now_ns(CLOCK_MONOTONIC_RAW) - begin);
}

/* -- an agent's writer */

struct writer {
    struct clock_page_memory *memory;
    struct clock_page page;
    int stop;
};

static void *write_pages(void *arg)
{
    struct writer *w = arg;

    while (!__atomic_load_n(&w->stop, __ATOMIC_RELAXED)) {
        w->page.terms.written = w->page.terms.pass_raw = now_ns(CLOCK_MONOTONIC_RAW);
        w->page.terms.guard = w->page.terms.written;
        w->page.terms.pass_coarse = now_ns(CLOCK_REALTIME_COARSE);
        clock_page_write(w->memory, &w->page);
        usleep(5000);
    }
    return NULL;
}

static void read_boot_id(uint8_t *id)
{
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    int digits = 0, c;

    while (f != NULL && digits < 32 && (c = fgetc(f)) != EOF) {
        if (c != '-') {
            const int digit = c >= 'a' ? c - 'a' + 10 : c - '0';
            id[digits / 2] = (uint8_t)(id[digits / 2] << 4 | digit);
            digits++;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
}

static void fill_page(struct clock_page *page)
{
    const int64_t now = now_ns(CLOCK_MONOTONIC_RAW);
    const struct linear_map map = {.r = now, .x = 1790000000 * NS_PER_S, .y = 12345};

    *page = (struct clock_page){
        .terms = {.status = CLOCK_PAGE_SYNCED,
                  .written = now,
                  .since = now - NS_PER_S,
                  .void_after = INT64_MAX,
                  .line_from = now,
                  .map_from = now,
                  .prior = map,
                  .line = map,
                  .map = map,
                  .h_ns = 5000,
                  .rate_limit = 2e-6,
                  .rate_drift = 1e-7,
                  .p00 = 100,
                  .q2 = 25,
                  .guard = now,
                  .guard_ns = 500,
                  .guard_rate = 6e-5,
                  .pass_suspended = now_ns(CLOCK_BOOTTIME) - now_ns(CLOCK_MONOTONIC)}};
    read_boot_id(page->boot_id);
}

static struct clock_page_memory *make_page(const char *path)
{
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || ftruncate(fd, CLOCK_PAGE_SIZE) < 0) {
        return NULL;
    }
    struct clock_page_memory *memory =
        mmap(NULL, CLOCK_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

/* -- measuring */

enum what {
    NOTHING,
    RAW,
    NOW,
};

static void measure(enum what what, double *costs)
{
    struct foliot_time now;
    struct timespec t;

    for (int i = 0; i < CALLS; i++) {
        const uint64_t begin = ticks();
        if (what == NOW) {
            foliot_now(&now);
        } else if (what == RAW) {
            clock_gettime(CLOCK_MONOTONIC_RAW, &t);
        }
        costs[i] = (double)(ticks() - begin);
    }
    qsort(costs, CALLS, sizeof(*costs), sample_order);
}

static int measure_all(struct report *report)
{
    static double costs[CALLS];
    double median[3][RUNS], p999[3][RUNS], mean[RUNS];
    const double rate = ticks_per_ns();
    const struct report_row row = {.unit = "ns", .must = REPORT_NONE, .aim = REPORT_NONE};
    struct report_row named;

    for (int run = 0; run < RUNS; run++) {
        for (int what = NOTHING; what <= NOW; what++) {
            measure((enum what)what, costs);
            const double none = what == NOTHING ? 0 : median[NOTHING][run];
            median[what][run] = sample_quantile(costs, CALLS, 0.5) / rate - none;
            p999[what][run] = sample_quantile(costs, CALLS, 0.999) / rate - none;
        }
        const int64_t begin = now_ns(CLOCK_MONOTONIC_RAW);
        for (int i = 0; i < CALLS; i++) {
            struct foliot_time now;
            foliot_now(&now);
        }
        mean[run] = (double)(now_ns(CLOCK_MONOTONIC_RAW) - begin) / CALLS;
    }
#define ROW(name, goal, wish, text)                                                                \
    (named = row, snprintf(named.id, sizeof(named.id), "%s", name),                                \
     snprintf(named.note, sizeof(named.note), "%s", text), named.must = (goal),                    \
     named.aim = (wish), &named)
    report_add_runs(report, ROW("api.now.median_ns", 60, 40, ""), median[NOW], RUNS);
    report_add_runs(report, ROW("api.now.p999_ns", 500, 100, ""), p999[NOW], RUNS);
    report_add_runs(report, ROW("api.now.mean_ns", REPORT_NONE, REPORT_NONE, "back to back"), mean,
                    RUNS);
    report_add_runs(
        report, ROW("api.raw.median_ns", REPORT_NONE, REPORT_NONE, "the vDSO's raw clock alone"),
        median[RAW], RUNS);
    report_add_runs(report,
                    ROW("api.raw.p999_ns", REPORT_NONE, REPORT_NONE, "the vDSO's raw clock alone"),
                    p999[RAW], RUNS);
    return report_finish(report);
}

int main(int argc, char **argv)
{
    static struct report report;
    static struct writer writer;
    char dir[] = "/tmp/foliot-bench-XXXXXX", path[64];
    struct foliot_time now;
    pthread_t thread;
    int r = 1;

    if (argc > 1) {
        FILE *out = strcmp(argv[1], "--help") == 0 ? stdout : stderr;
        fputs("usage: api_now\n\nMeasures the cost of foliot_now(): a table, and "
              "build/bench/api.json.\n",
              out);
        return out == stdout ? 0 : 2;
    }
    if (mkdtemp(dir) == NULL) {
        perror("mkdtemp");
        return 1;
    }
    snprintf(path, sizeof(path), "%s/%s", dir, CLOCK_PAGE_NAME);
    setenv("FOLIOT_RUNTIME_DIR", dir, 1);
    unsetenv("FOLIOT_LAB_OSCILLATOR");
    writer.memory = make_page(path);
    if (writer.memory != NULL) {
        fill_page(&writer.page);
        clock_page_init(writer.memory, 2);
        clock_page_write(writer.memory, &writer.page);
        report_init(&report, "api", argc, argv);
        if (foliot_now(&now) == FOLIOT_SYNCED &&
            pthread_create(&thread, NULL, write_pages, &writer) == 0) {
            r = measure_all(&report) < 0;
            __atomic_store_n(&writer.stop, 1, __ATOMIC_RELAXED);
            pthread_join(thread, NULL);
        }
    }
    unlink(path);
    rmdir(dir);
    return r;
}
