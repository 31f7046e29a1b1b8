/* clock_worlds.c: rows over many drawn worlds (sim/swarm.h), each with one thing done to it: the fleet's common rate over
 * minutes without load and fault; suspends and pauses of any length.
 *
 *     build/bench/clock_worlds [FABRICS [SUSPENDS]]        60 and 200 without
 *
 * One process per processor. All figures are simulated. */
#include "base/prng.h"
#include "parallel.h"
#include "report.h"
#include "sim/check.h"
#include "sim/swarm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NICS_MOST    20 /* of a world: larger ones cost more and show no more */
#define RATE_FROM_NS (15 * NS_PER_S)
#define RATE_FOR_NS  (600 * NS_PER_S)
#define ASLEEP_AT_NS (20 * NS_PER_S)
#define AFTER_NS     (20 * NS_PER_S)

static struct result {
    uint64_t seed;
    double common_ppm;   /* NAN: not measured */
    uint64_t late, hard; /* readings */
    bool nic_stamps, suspended;
} * results;
static int fabrics = 60;

/* The next drawn world that is small enough, without load and fault. */
static void draw(uint64_t *seed, struct scenario *s)
{
    do {
        swarm_draw(++*seed, s);
    } while (s->fabric.hosts * s->fabric.nics_per_host > NICS_MOST);
    s->fault_count = s->traffic_count = 0;
}

static void measure(struct scenario *s, const char *what)
{
    struct scenario_bound *b = &s->bound[s->bound_count++];

    *b = (struct scenario_bound){
        .from_ns = RATE_FROM_NS, .until_ns = s->duration_ns, .fault = -1, .world = SCENARIO_SIM};
    snprintf(b->what, sizeof(b->what), "%s", what);
}

static void one_fabric(const struct scenario *drawn, struct result *r)
{
    struct scenario *s = malloc(sizeof(*s));
    struct world *w = NULL;

    ASSERT(s != NULL);
    *s = *drawn;
    s->duration_ns = RATE_FROM_NS + RATE_FOR_NS;
    s->bound_count = 0;
    measure(s, "clock.rate.common_ppm");
    r->common_ppm = NAN;
    if (world_new(&w, s, s->seed) == 0) {
        world_run(w, s->duration_ns);
        check_end(w);
        r->common_ppm = fabs(check_value(w, 0));
        world_free(w);
    }
    free(s);
}

/* One host sleeps, or its agent stands still, for 0.1 s to 10 minutes. */
static void one_suspend(const struct scenario *drawn, struct result *r, uint64_t index)
{
    struct scenario *s = malloc(sizeof(*s));
    struct swarm_result played;
    struct prng p;

    ASSERT(s != NULL);
    *s = *drawn;
    prng_init(&p, hash_u64(s->seed, 0x736c656570));
    struct scenario_fault *f = &s->fault[s->fault_count++];
    scenario_fault_init(f);
    r->suspended = index % 2 == 0;
    f->kind = r->suspended ? FAULT_SUSPEND : FAULT_AGENT_STOP;
    f->at_ns = ASLEEP_AT_NS + (int64_t)prng_below(&p, (uint64_t)NS_PER_S);
    f->for_ns = (int64_t)(0.1e9 * pow(6000, prng_uniform(&p)));
    f->target = (struct scenario_target){.kind = TARGET_HOSTS, .path = -1};
    s->duration_ns = f->at_ns + f->for_ns + AFTER_NS;
    for (int i = 0; i < s->bound_count; i++) {
        s->bound[i].until_ns = s->duration_ns;
    }
    if (swarm_play(s, INVARIANT_COUNT, &played) == 0) {
        r->late = played.broken[INVARIANT_LATE] + played.broken[INVARIANT_STALE];
        r->hard = played.broken[INVARIANT_HARD];
    } else {
        r->late = UINT64_MAX;
    }
    free(s);
}

static void job(int index)
{
    struct scenario *s = malloc(sizeof(*s));
    struct result *r = &results[index];
    uint64_t seed = 1000 * (uint64_t)index;

    ASSERT(s != NULL);
    draw(&seed, s);
    r->seed = seed;
    r->nic_stamps = s->clocks.stamps == STAMPS_NIC;
    if (index < fabrics) {
        one_fabric(s, r);
    } else {
        one_suspend(s, r, (uint64_t)index);
    }
    free(s);
}

static void rows(struct report *report, int suspends)
{
    double worst = 0, hard = 0;
    uint64_t worst_seed = 0, late = 0, late_seed = 0;
    int nic = 0, slept = 0;
    char note[128];

    for (int i = 0; i < fabrics; i++) {
        if (!(results[i].common_ppm <= worst)) { /* not measured is worst */
            worst = isfinite(results[i].common_ppm) ? results[i].common_ppm : INFINITY;
            worst_seed = results[i].seed;
        }
    }
    if (fabrics > 0) {
        snprintf(note, sizeof(note), "worst of %d drawn fabrics, 10 minutes each; seed %" PRIu64,
                 fabrics, worst_seed);
        report_simulated(report, "clock.rate.common_ppm", worst, "ppm", 1, 0.1, REPORT_LOWER, note);
    }
    for (int i = fabrics; i < fabrics + suspends; i++) {
        late_seed = results[i].late > 0 && late == 0 ? results[i].seed : late_seed;
        late += results[i].late;
        hard += (double)results[i].hard;
        nic += results[i].nic_stamps;
        slept += results[i].suspended;
    }
    if (suspends > 0) {
        snprintf(note, sizeof(note),
                 "%d suspends, %d pauses of 0.1 s to 10 min; %d with NIC stamps%s", slept,
                 suspends - slept, nic, late > 0 ? "; first seed " : "");
        if (late > 0) {
            snprintf(note + strlen(note), sizeof(note) - strlen(note), "%" PRIu64, late_seed);
        }
        report_simulated(report, "clock.suspend.late", (double)late, "readings", 0, REPORT_NONE,
                         REPORT_LOWER, note);
        report_simulated(report, "clock.suspend.others_hard", hard, "instants", 0, REPORT_NONE,
                         REPORT_LOWER, "sound hosts whose hard bounds have no common point");
    }
}

int main(int argc, char **argv)
{
    static struct report report;
    int suspends = 200;

    if (argc > 3 || (argc > 1 && strtol(argv[1], NULL, 10) < 0)) {
        fputs("usage: clock_worlds [FABRICS [SUSPENDS]]\n", stderr);
        return 2;
    }
    fabrics = argc > 1 ? atoi(argv[1]) : fabrics;
    suspends = argc > 2 ? atoi(argv[2]) : suspends;
    report_init(&report, "clock-worlds", argc, argv);
    results = parallel_memory((size_t)(fabrics + suspends) * sizeof(*results));
    if (results == NULL) {
        fputs("no memory\n", stderr);
        return 1;
    }
    const int died = parallel_run(fabrics + suspends, job);
    if (died > 0) {
        fprintf(stderr, "%d of %d worlds died\n", died, fabrics + suspends);
        return 1;
    }
    rows(&report, suspends);
    return report_finish(&report) < 0;
}
