/* job_gap.c: the longest time without a received message while one of two lanes has a fault (sim/job_gap.c), in random worlds.
 * The virtual machine measures it in one world (lab/roce-vm/table gaps), this program in many.
 *
 *   job_gap [WORLDS [FIRST [tcp]]]   tcp: lanes are TCP connections, and no set is fenced */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "parallel.h"
#include "report.h"
#include "sim/job_world.h"

#define SLICES  8
#define LONG_NS (400 * NS_PER_MS) /* such gaps are printed */

static struct {
    uint64_t worlds, first;
    bool tcp;
} asked;
static struct shared {
    _Atomic uint32_t wrong;
    uint32_t counts[4096]; /* faults in each world */
    struct job_gap gaps[4096][JOB_GAPS_MAX];
} * shared; /* with the processes */

static const char *const kinds[] = {"held", "hole", "acks", "both", "loss"};

static void print_long(uint64_t seed, const struct job_gap *gap)
{
    if (gap->fault_ns > LONG_NS || gap->quiet_ns > LONG_NS) {
        printf("seed %llu: %s for %.1f s: %.0f ms, %.0f before%s%s\n", (unsigned long long)seed,
               kinds[gap->kind], (double)gap->lasts_ns / 1e9, (double)gap->fault_ns / 1e6,
               (double)gap->quiet_ns / 1e6, gap->left ? "; a lane was left before" : "",
               gap->failed_over ? "" : "; no lane was left");
    }
}

static void slice(struct report *report, int part)
{
    static struct job_world_result one;

    (void)report;
    for (uint64_t k = (uint64_t)part; k < asked.worlds; k += SLICES) {
        const uint64_t seed = asked.first + k;
        struct job_world_config config;
        job_world_gap(&config, seed, !asked.tcp);
        job_world_run(&config, &one);
        memcpy(shared->gaps[k], one.gaps, sizeof(one.gaps));
        shared->counts[k] = one.gap_count;
        if (one.wrong != NULL) {
            shared->wrong++;
            printf("seed %llu: %s %s\n", (unsigned long long)seed, one.wrong, one.detail);
        } else if (one.gap_count < config.gap_faults) {
            printf("seed %llu: after %u faults no second lane\n", (unsigned long long)seed,
                   one.gap_count);
        }
        for (uint32_t i = 0; i < one.gap_count; i++) {
            print_long(seed, &one.gaps[i]);
        }
        fflush(stdout);
    }
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static double quantile_ms(int64_t *values, uint32_t count, double p)
{
    const uint32_t at = (uint32_t)(p * count);

    qsort(values, count, sizeof(*values), compare);
    return count == 0 ? NAN : (double)values[at < count ? at : count - 1] / 1e6;
}

/* Rows of one kind, or of all (-1). */
static void rows(struct report *report, int kind, const char *name)
{
    static int64_t fault[4096 * JOB_GAPS_MAX], quiet[4096 * JOB_GAPS_MAX];
    uint32_t count = 0, left = 0;
    char id[64], note[160];

    for (uint64_t k = 0; k < asked.worlds; k++) {
        for (uint32_t i = 0; i < shared->counts[k]; i++) {
            const struct job_gap *gap = &shared->gaps[k][i];
            if (kind < 0 || gap->kind == (enum job_gap_kind)kind) {
                fault[count] = gap->fault_ns;
                quiet[count++] = gap->quiet_ns;
                left += gap->left;
            }
        }
    }
    snprintf(note, sizeof(note),
             "%u faults of a lane of two in %llu worlds: longest gap, p99; p50 %.1f, max %.1f; "
             "without a fault p99 %.1f; lanes left without one %u",
             count, (unsigned long long)asked.worlds, quantile_ms(fault, count, 0.5),
             quantile_ms(fault, count, 1), quantile_ms(quiet, count, 0.99), left);
    snprintf(id, sizeof(id), "sim.gap.%s%s", asked.tcp ? "tcp." : "", name);
    report_simulated(report, id, quantile_ms(fault, count, 0.99), "ms", REPORT_NONE, REPORT_NONE,
                     REPORT_LOWER, note);
    if (kind < 0) {
        snprintf(id, sizeof(id), "sim.gap.%sratio", asked.tcp ? "tcp." : "");
        report_simulated(report, id,
                         quantile_ms(fault, count, 0.99) / quantile_ms(quiet, count, 0.99), "times",
                         asked.tcp ? REPORT_NONE : 2.5, asked.tcp ? REPORT_NONE : 1.3, REPORT_LOWER,
                         "p99 with a fault / p99 without");
    }
}

int main(int argc, char **argv)
{
    static struct report report;

    asked.worlds = argc > 1 ? strtoull(argv[1], NULL, 10) : 64;
    asked.first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    asked.tcp = argc > 3 && strcmp(argv[3], "tcp") == 0;
    report_init(&report, "job-gap", argc, argv);
    shared = parallel_memory(sizeof(*shared));
    if (shared == NULL || asked.worlds > sizeof(shared->counts) / sizeof(*shared->counts)) {
        return 1;
    }
    const int died = parallel_report(&report, SLICES, slice);
    for (int kind = 0; kind < JOB_GAP_KINDS; kind++) {
        rows(&report, kind, kinds[kind]);
    }
    rows(&report, -1, "p99");
    return report_finish(&report) < 0 || died > 0 || shared->wrong > 0;
}
