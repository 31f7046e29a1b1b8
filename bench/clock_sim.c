/* clock_sim.c: the clock's rows from a simulation: 1024 clocks, true time known, every figure simulated.
 *
 *     build/bench/clock_sim [--quick | --soak] [--members=N] [--seed=N] [ROW-PREFIX]
 *
 * One process per processor. Without an option it measures errors, faults, starts, and the comparison with NTP and PTP.
 * --quick: 128 members, all scenarios in a minute. --soak: all scenarios, with enough blocks for the statistical bound in each.
 * --seed: the first world's seed, to use other worlds. ROW-PREFIX: only scenarios whose rows begin with it (clock.sim,
 * clock.liar …). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "parallel.h"
#include "report.h"
#include "sim/clock_world.h"

#define LOADED .queue_share = 0.6, .queue_ns = 5000
/* If none of so many blocks is outside, the share is at most 1e-4. */
#define BLOCKS_ENOUGH 30000
#define SOAK_SEEDS    5
#define LONG_S        550 /* of a soak's worlds: enough blocks for a few outside */

/* The code below runs twice. The first pass collects the worlds. Then they are simulated in parallel, and the second pass
 * makes their rows. So the worlds must not depend on the results of other worlds. */
#define WORLDS_MAX 512
struct asked {
    struct clock_world_config config;
    struct clock_world_result result;
};
static struct asked *worlds;
static int world_count;
static bool planning;

static struct report report;
static const char *wanted = "";
static int members = 1024;
static uint64_t seed = 1; /* of the first world */
static bool soak, quick;
static double worst_outside, hard_judged, hard_violations;

static bool chosen(const char *prefix)
{
    return strncmp(prefix, wanted, strlen(wanted)) == 0 ||
           strncmp(prefix, wanted, strlen(prefix)) == 0;
}

/* Many worlds, or long ones: asked for by name or by --soak, else `make bench` takes too long. */
static bool chosen_long(const char *prefix)
{
    return (soak || quick || wanted[0] != 0) && chosen(prefix);
}

static void row(const char *id, double value, const char *unit, double must, double aim,
                enum report_better better, const char *note)
{
    if (planning) {
        return;
    }
    char text[160];

    snprintf(text, sizeof(text), "simulated%s%s", note[0] != 0 ? "; " : "", note);
    report_one(&report, id, value, unit, must, aim, better, text);
    fprintf(stderr, "%-44s %12.4g %s\n", id, value, unit);
}

/* The base of all scenarios: "idle" has 30 % of its packets queued, exponential, mean 1 us. */
static struct clock_world_config idle(void)
{
    return (struct clock_world_config){.seed = seed,
                                       .members = members,
                                       .degree = 16,
                                       .seconds = 40,
                                       .judge_from_s = 25,
                                       .noise_ns = 20,
                                       .queue_share = 0.3,
                                       .queue_ns = 1000,
                                       .delay_min_ns = 2000,
                                       .delay_max_ns = 10000,
                                       .paths = 4,
                                       .wander_ppb = 10,
                                       .rate_ppm = 50,
                                       .start_ns = 1e6,
                                       .edge_limit_ns = 12000,
                                       .hops = 4};
}

static struct clock_world_config loaded(void)
{
    struct clock_world_config g = idle();

    g.queue_share = 0.6;
    g.queue_ns = 5000;
    return g;
}

/* The 95 % upper limit of the share outside, over blocks of (member, 10 s): three divided by the blocks if none was outside. A
 * world too short for that counts with its measured share. */
static double upper_limit(const struct clock_world_result *r)
{
    const double blocks = r->blocks > 0 ? (double)r->blocks : 1;

    if (r->blocks < BLOCKS_ENOUGH) {
        return r->blocks_outside / blocks;
    }
    return r->blocks_outside > 0 ? (r->blocks_outside + 2 * sqrt(r->blocks_outside) + 3) / blocks
                                 : 3 / blocks;
}

static void simulate(int index)
{
    clock_world_run(&worlds[index].config, &worlds[index].result);
}

static struct clock_world_result run(const struct clock_world_config *g)
{
    ASSERT(world_count < WORLDS_MAX);
    struct asked *asked = &worlds[world_count++];
    if (planning) {
        asked->config = *g;
        return (struct clock_world_result){.p99_ns = 1};
    }
    const struct clock_world_result r = asked->result;
    hard_judged += (double)r.hard_judged;
    hard_violations += (double)r.hard_violations;
    worst_outside = fmax(worst_outside, upper_limit(&r));
    return r;
}

static double p99(const struct clock_world_config *g)
{
    return run(g).p99_ns;
}

static void errors(void)
{
    struct clock_world_config g = loaded();

    if (!chosen("clock.sim")) {
        return;
    }
    row("clock.sim.hw20.p99_ns", p99(&g), "ns", 13, 10, REPORT_LOWER, "60 % queued 5 us");
    g = idle();
    row("clock.sim.hw20.idle.p99_ns", p99(&g), "ns", 11, 7.5, REPORT_LOWER, "");
    g.noise_ns = 5;
    row("clock.sim.hw5.idle.p99_ns", p99(&g), "ns", 10, 5, REPORT_LOWER, "");
    g = loaded();
    g.noise_ns = 5;
    row("clock.sim.hw5.loaded.p99_ns", p99(&g), "ns", 15, 8, REPORT_LOWER, "");
    g = loaded();
    g.nics_per_host = 8;
    row("clock.sim.nic8.p99_ns", p99(&g), "ns", 50, 15, REPORT_LOWER,
        "8 NICs a host, own clocks, 60 % queued 5 us");
    g = idle();
    g.software = true;
    g.noise_ns = 500;
    g.edge_limit_ns = 50000;
    row("clock.sim.sw500.idle.p99_ns", p99(&g), "ns", 150, 60, REPORT_LOWER,
        "each stamp 500 ns late on average");
    g.queue_share = 0.6;
    g.queue_ns = 5000;
    row("clock.sim.sw500.loaded.p99_ns", p99(&g), "ns", 250, 110, REPORT_LOWER,
        "each stamp 500 ns late on average");
}

static void asymmetries(void)
{
    struct clock_world_config g = idle();

    if (!chosen_long("clock.sim")) {
        return;
    }
    g.asymmetric_ns = 500;
    g.asymmetric_share = 0.1;
    row("clock.sim.asymmetric10.p99_ns", p99(&g), "ns", 25, 10, REPORT_LOWER,
        "10 % of edges by 500 ns");
    g.asymmetric_share = 0.3;
    g.seconds = 45;
    g.judge_from_s = 30;
    const struct clock_world_result r = run(&g);
    row("clock.sim.asymmetric30.p99_ns", r.p99_all_ns, "ns", 30, 15, REPORT_LOWER,
        "30 % of edges by 500 ns; all pairs of honest hosts");
    row("clock.sim.asymmetric30.synced_p99_ns", r.p99_ns, "ns", REPORT_NONE, REPORT_NONE,
        REPORT_LOWER, "the same, of pairs that are both SYNCED");
    row("clock.sim.asymmetric30.synced_share", r.synced_share, "share", REPORT_NONE, REPORT_NONE,
        REPORT_HIGHER, "of hosts at the end");
    row("clock.sim.asymmetric30.width_over_p99", r.statistical_width_ns / r.p99_all_ns, "x", 8, 4,
        REPORT_LOWER, "median of latest - earliest, over p99");
    row("clock.sim.asymmetric30.falsely_named", (double)r.false_liars, "verdicts", 0, 0,
        REPORT_LOWER, "honest hosts in step called liars by a neighbour");
    row("clock.sim.asymmetric30.astray_named", (double)r.astray_named, "verdicts", REPORT_NONE,
        REPORT_NONE, REPORT_LOWER, "the same, of hosts that were off by more than 100 ns");
    g = idle();
    g.asymmetric_uniform_ns = 250;
    row("clock.sim.asymmetric_all.p99_ns", p99(&g), "ns", 200, 135, REPORT_LOWER,
        "every edge within 250 ns");
    if (soak) {
        g.asymmetric_paths = true;
        row("clock.sim.asymmetric_paths.p99_ns", p99(&g), "ns", REPORT_NONE, REPORT_NONE,
            REPORT_LOWER, "every path within 250 ns");
    }
}

static void wanders(void)
{
    static const struct {
        const char *id;
        double wander, ramp;
    } cases[] = {{"clock.sim.wander1e-9.ratio", 1, 0},
                 {"clock.sim.wander1e-8.ratio", 10, 0},
                 {"clock.sim.wander1e-7.ratio", 100, 0},
                 {"clock.sim.temperature.ratio", 10, 50}};

    const uint64_t seeds = soak ? SOAK_SEEDS : 1;
    char note[128];

    if (!chosen_long("clock.sim.wander") && !chosen_long("clock.sim.temperature")) {
        return;
    }
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct clock_world_config g = idle();
        double worst = 0;
        g.members = soak ? members : members / 4;
        g.wander_ppb = cases[i].wander;
        g.temperature_ppb_s = cases[i].ramp;
        for (g.seed = seed; g.seed < seed + seeds; g.seed++) {
            double best = INFINITY;
            g.told_wander_ppb = 0;
            const double unknown = p99(&g);
            for (double told = cases[i].wander; told <= (cases[i].ramp > 0 ? 64 : cases[i].wander);
                 told *= 2) {
                g.told_wander_ppb = told;
                best = fmin(best, p99(&g));
            }
            worst = fmax(worst, unknown / best);
        }
        snprintf(note, sizeof(note), "%d members, worst of %d seeds; %s", g.members, (int)seeds,
                 cases[i].ramp > 0 ? "50 ppb/s up and down on a quarter; against the best fixed "
                                     "filter"
                                   : "against the filter that knows");
        row(cases[i].id, worst, "x", 1.5, 1.1, REPORT_LOWER, note);
    }
}

static void bounds(void)
{
    struct clock_world_config g = idle();

    if (!chosen_long("clock.bound")) {
        return;
    }
    g.delay_min_ns = g.delay_max_ns = 5000;
    g.edge_limit_ns = 0;
    struct clock_world_result r = run(&g);
    row("clock.bound.hard.median_width_ns", r.hard_width_ns, "ns", 30000, 15000, REPORT_LOWER,
        "5 us paths, floor not told, the product's own W and H");
    g.known_delay_ns = 3500;
    r = run(&g);
    row("clock.bound.hard.known_floor.median_width_ns", r.hard_width_ns, "ns", REPORT_NONE,
        REPORT_NONE, REPORT_LOWER,
        "5 us paths, known to take 3.5 us at least, the product's own W");
    g.known_delay_ns = 0;
    g.place_ns = 2400; /* as much as paths of 5 us can hide: two members differ by up to 4.8 us */
    r = run(&g);
    row("clock.bound.hard.hidden.violations", (double)r.hard_violations, "samples", 0, 0,
        REPORT_LOWER, "every member off by up to 2.4 us, which no packet can show");
    row("clock.bound.hard.hidden.tenth_violations", (double)r.hard_tenth_violations, "samples", 1,
        REPORT_NONE, REPORT_HIGHER, "the same, were each hard bound a tenth: it must break");
    g = loaded();
    g.seconds = soak ? LONG_S : quick ? 30 : 60;
    r = run(&g);
    row("clock.bound.statistical.width_over_p99", r.statistical_width_ns / r.p99_ns, "x", 8, 4,
        REPORT_LOWER, "median of latest - earliest, over p99");
    if (soak) {
        g.temperature_ppb_s = 50;
        (void)run(&g);
        g = loaded();
        g.seconds = LONG_S;
        g.wander_ppb = 100;
        (void)run(&g);
        g.wander_ppb = 10;
        g.asymmetric_uniform_ns = 250;
        (void)run(&g);
        g = idle();
        g.seconds = LONG_S;
        g.asymmetric_ns = 500;
        g.asymmetric_share = 0.3;
        (void)run(&g);
    }
}

/* Called after all scenarios. */
static void bounds_over_all(void)
{
    char note[96];

    if (!chosen_long("clock.bound") || hard_judged == 0) {
        return;
    }
    snprintf(note, sizeof(note), "of %.3g judged samples, all scenarios", hard_judged);
    row("clock.bound.hard.violations", hard_violations, "samples", 0, 0, REPORT_LOWER, note);
    row("clock.bound.hard.judged", hard_judged, "samples", 1e7, REPORT_NONE, REPORT_HIGHER, "");
    if (soak) {
        row("clock.bound.statistical.outside", worst_outside, "share", 1e-4, 1e-5, REPORT_LOWER,
            "worst scenario, 95 % upper limit over blocks of 10 s");
    }
}

/* The effect of liars of one kind on a fleet, over some seeds: the worst of each. */
struct lied {
    double ratio, violations, named_s, unnamed, falsely_named, early;
    int beyond;
};

static struct lied lied(struct clock_world_config g, enum clock_world_lie kind, uint64_t seeds)
{
    struct lied l = {0};

    for (g.seed = seed; g.seed < seed + seeds; g.seed++) {
        g.lie = LIE_COLLUDING; /* without a lie: the same hosts, all honest */
        g.lie_ns = 0;
        const double clean = p99(&g);
        g.lie = kind;
        g.lie_ns = kind == LIE_RANDOM ? 20000 : 60;
        g.lie_ramp_s = 10;
        const struct clock_world_result r = run(&g);
        l.ratio = fmax(l.ratio, r.p99_ns / clean);
        l.named_s = fmax(l.named_s, r.named_p95_s);
        l.violations += (double)r.hard_violations;
        l.unnamed += r.liars_unnamed;
        l.falsely_named += (double)r.false_liars;
        l.early += (double)r.early_liars;
        l.beyond += r.liars_beyond;
    }
    return l;
}

static void liar_row(const char *kind, const char *what, double value, const char *unit,
                     double must, double aim, const char *note)
{
    char id[64], text[200];

    snprintf(id, sizeof(id), "clock.liar.%s.%s", kind, what);
    snprintf(text, sizeof(text), "%d members, %d seed%s%s%s", soak ? members : members / 4,
             soak ? SOAK_SEEDS : 1, soak ? "s" : "", note[0] != 0 ? "; " : "", note);
    row(id, value, unit, must, aim, REPORT_LOWER, text);
}

static void liar_rows(const char *kind, const struct lied *l, bool drifting)
{
    char note[96];

    liar_row(kind, "ratio", l->ratio, "x", 1.2, 1.05, "p99 of the honest, against no liars");
    liar_row(kind, "violations", l->violations, "samples", 0, 0, "");
    liar_row(kind, "named_s", l->named_s, "s", 10, 3,
             drifting ? "95 % of all liars, from the first ns of a lie that takes 10 s to grow"
                      : "95 % of all liars");
    snprintf(note, sizeof(note), "within 20 s; beside %d of whose 16 neighbours more than 4 lie",
             l->beyond);
    liar_row(kind, "unnamed", l->unnamed, "hosts", 0, 0, note);
    liar_row(kind, "falsely_named", l->falsely_named, "hosts", 0, 0, "");
    if (drifting) {
        liar_row(kind, "named_early", l->early, "verdicts", REPORT_NONE, 0,
                 "while stamps still hid the lie: neither in time nor false");
    }
}

static void liars(void)
{
    static const char *const names[] = {"",       "colluding", "drifting", "two_faced",
                                        "random", "oldest",    "denies"};
    struct clock_world_config g = idle();
    char id[64];

    if (!chosen_long("clock.liar")) {
        return;
    }
    g.members = soak ? members : members / 4;
    g.lie_from_s = 25;
    g.judge_from_s = 28;
    g.seconds = 45;
    for (int kind = LIE_COLLUDING; kind < LIE_FIELD; kind++) {
        g.liar_share = 0.1;
        const struct lied l = lied(g, (enum clock_world_lie)kind, soak ? SOAK_SEEDS : 1);
        liar_rows(names[kind], &l, kind == LIE_DRIFTING);
        if (!soak) {
            continue;
        }
        g.liar_share = 0.2;
        const struct lied many = lied(g, (enum clock_world_lie)kind, 1);
        snprintf(id, sizeof(id), "clock.liar20.%s.ratio", names[kind]);
        row(id, many.ratio, "x", REPORT_NONE, 2.5, REPORT_LOWER,
            "p99 of the honest, against no liars");
        snprintf(id, sizeof(id), "clock.liar20.%s.violations", names[kind]);
        row(id, many.violations, "samples", REPORT_NONE, 0, REPORT_LOWER, "");
    }
}

/* A tenth of the hosts lie in one field that they send, each field in turn. */
static void lying_fields(void)
{
    struct clock_world_config g = idle();
    const char *worst = "", *unnamed = "";
    double ratio = 0, accused = 0, named = 1;

    if (!chosen_long("liar.fields")) {
        return;
    }
    g.members = soak ? members : members / 4;
    g.lie_from_s = 12;
    g.judge_from_s = 14;
    g.seconds = 34;
    g.liar_share = 0.1;
    g.lie = LIE_COLLUDING; /* without a lie: the same hosts, all honest */
    const struct clock_world_result clean = run(&g);
    g.lie = LIE_FIELD;
    for (int i = 0; clock_lie_field(i) != NULL; i++) {
        g.lie_field = i;
        const struct clock_world_result r = run(&g);
        const double share = (double)r.liars_unnamed / (g.members * g.liar_share);
        accused += (double)(r.false_liars + r.astray_named);
        if (r.p99_ns > ratio * clean.p99_ns) {
            ratio = r.p99_ns / clean.p99_ns;
            worst = clock_lie_field(i);
        }
        if (r.max_ns > clean.max_ns + 10 && 1 - share < named) {
            named = 1 - share;
            unnamed = clock_lie_field(i);
        }
    }
    row("liar.fields.ratio", ratio, "x", 1.2, 1.05, REPORT_LOWER, worst);
    row("liar.fields.accused", accused, "verdicts", 0, 0, REPORT_LOWER, "honest hosts, all fields");
    row("liar.fields.named", named, "share", 0.99, 1, REPORT_HIGHER, unnamed);
}

static void faults(void)
{
    struct clock_world_config g = idle();

    if (!chosen("clock.fault")) {
        return;
    }
    g.members = members / 4;
    g.event_count = 1;
    g.event_s = 18;
    g.judge_from_s = 16;
    g.step_ns = 1e6;
    struct clock_world_result r = run(&g);
    row("clock.fault.step.marked_s", r.event_unsynced_s, "s", 1, 0.2, REPORT_LOWER, "1 ms forward");
    row("clock.fault.step.back_s", r.event_back_s, "s", 5, 1, REPORT_LOWER, "SYNCED again");
    row("clock.fault.step.others_violations", (double)r.hard_violations, "samples", 0, 0,
        REPORT_LOWER, "bounds of the other hosts");
    g.step_ns = 0;
    g.jump_ppm = 50;
    r = run(&g);
    row("clock.fault.jump.late_marks", (double)r.event_violations, "samples", 0, 0, REPORT_LOWER,
        "50 ppm: SYNCED with the truth outside");
    g.unguarded = true;
    r = run(&g);
    row("clock.fault.jump_unguarded.late_marks", (double)r.event_violations, "samples", 0, 0,
        REPORT_LOWER, "no second clock: peers' points alone");
    g.unguarded = false;
    g.jump_ppm = 0;
    g.suspend_s = 3;
    r = run(&g);
    row("clock.fault.suspend.late_marks", (double)r.event_violations, "samples", 0, 0, REPORT_LOWER,
        "3 s");
}

static void starts(void)
{
    struct clock_world_config g = idle();

    if (!chosen("clock.start")) {
        return;
    }
    g.seconds = 20;
    struct clock_world_result r = run(&g);
    row("clock.start.idle_s", r.p99_100ns_s < 0 ? INFINITY : r.p99_100ns_s, "s", 5, 3, REPORT_LOWER,
        "from then on p99 <= 100 ns");
    g = loaded();
    g.seconds = 20;
    r = run(&g);
    row("clock.start.loaded_s", r.p99_100ns_s < 0 ? INFINITY : r.p99_100ns_s, "s", 10, 5,
        REPORT_LOWER, "from then on p99 <= 100 ns");
    g = idle();
    g.start_ns = 3600e9;
    g.seconds = 20;
    r = run(&g);
    row("clock.start.hours_apart_s", r.p99_100ns_s < 0 ? INFINITY : r.p99_100ns_s, "s", REPORT_NONE,
        REPORT_NONE, REPORT_LOWER, "clocks an hour apart");
}

static void side_by_side(void)
{
    static const struct {
        const char *name;
        bool software;
        double noise;
        bool loaded;
    } cases[] = {{"hw20.idle", false, 20, false},
                 {"hw20.loaded", false, 20, true},
                 {"sw500.idle", true, 500, false},
                 {"sw500.loaded", true, 500, true}};
    char id[64];

    if (!chosen("clock.vs")) {
        return;
    }
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct clock_world_config g = cases[i].loaded ? loaded() : idle();
        g.members = members / 4;
        g.baselines = true;
        g.software = cases[i].software;
        g.noise_ns = cases[i].noise;
        g.edge_limit_ns = cases[i].software ? 50000 : 12000;
        const struct clock_world_result r = run(&g);
        snprintf(id, sizeof(id), "clock.vs.ntp.%s.ratio", cases[i].name);
        row(id, r.ntp_p99_ns / r.p99_ns, "x", 1, 10, REPORT_HIGHER,
            "its p99 over ours, same packets");
        snprintf(id, sizeof(id), "clock.vs.ptp.%s.ratio", cases[i].name);
        row(id, r.ptp_p99_ns / r.p99_ns, "x", 1, 10, REPORT_HIGHER,
            "its p99 over ours, same packets");
    }
}

static void sections(void)
{
    errors();
    asymmetries();
    wanders();
    bounds();
    liars();
    lying_fields();
    faults();
    starts();
    side_by_side();
}

int main(int argc, char **argv)
{
    int asked = 0;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0) {
            puts("usage: clock_sim [--quick | --soak] [--members=N] [--seed=N] "
                 "[ROW-PREFIX]\n\nThe clock's figures, simulated: a table, and "
                 "build/bench/clock-sim.json.");
            return 0;
        }
        soak |= strcmp(argv[i], "--soak") == 0;
        quick |= strcmp(argv[i], "--quick") == 0;
        if (strncmp(argv[i], "--members=", 10) == 0) {
            asked = atoi(argv[i] + 10);
        }
        if (strncmp(argv[i], "--seed=", 7) == 0) {
            seed = strtoull(argv[i] + 7, NULL, 10);
        }
        if (argv[i][0] != '-') {
            wanted = argv[i];
        }
    }
    members = quick ? 128 : asked > 0 ? asked : 1024;
    report_init(&report, soak ? "clock-soak" : "clock-sim", argc, argv);
    worlds = parallel_memory(WORLDS_MAX * sizeof(*worlds));
    if (worlds == NULL) {
        fprintf(stderr, "no memory\n");
        return 1;
    }
    planning = true;
    sections();
    const int died = parallel_run(world_count, simulate);
    if (died > 0) {
        fprintf(stderr, "%d of %d worlds died\n", died, world_count);
        return 1;
    }
    planning = false;
    world_count = 0;
    sections();
    bounds_over_all();
    return report_finish(&report) < 0;
}
