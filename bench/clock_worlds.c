/* clock_worlds.c: rows over many drawn worlds (sim/swarm.h), each with one change. A world counts as the worst if something
 * couldn't be measured, or if a host wasn't SYNCED when it must be.
 *
 *     build/bench/clock_worlds [--soak | SECTION [WORLDS [FIRST]]]
 *
 * Sections: rate, suspend, fabrics, noclass, wander, saturated, partition. Without an argument it plays the quick ones
 * (fabrics and noclass), with --soak the others. WORLDS: the section's number of worlds. FIRST: the first world, to use other
 * worlds. One process per processor. All figures are simulated. */
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

#define NICS_MOST    20 /* of a world: larger ones only cost more */
#define RATE_FROM_NS (15 * NS_PER_S)
#define RATE_FOR_NS  (600 * NS_PER_S)
#define ASLEEP_AT_NS (20 * NS_PER_S)
#define AFTER_NS     (20 * NS_PER_S)
#define APART_AT_NS  (20 * NS_PER_S)
#define LONG_NS      (600 * NS_PER_S) /* a longer partition has a row of its own */
#define BACK_NS_MAX  100.0
#define LOADED_AT_NS (10 * NS_PER_S)

/* The result of one world; each section defines `value`. */
static struct result {
    uint64_t seed;
    double value[5];
    bool first_kind;
} * results;

/* ---- drawing ---- */
/* The next drawn world that is small enough, without load and faults. */
static uint64_t draw(uint64_t index, int nics, struct scenario *s)
{
    uint64_t seed = 1000 * index;

    do {
        swarm_draw(++seed, s);
    } while (s->fabric.hosts * s->fabric.nics_per_host > nics);
    s->fault_count = s->traffic_count = 0;
    return seed;
}

/* A world with switches. Its stamps have errors of `noise` and its clocks wander; nothing else is wrong. So the rest of the
 * error comes from the hosts. */
static uint64_t draw_plain(uint64_t index, double noise, double wander, struct scenario *s)
{
    uint64_t seed = 1000 * index;

    do {
        swarm_draw(++seed, s);
    } while (s->fabric.hosts * s->fabric.nics_per_host > NICS_MOST || s->fabric.hosts < 4 ||
             s->fabric.network != NETWORK_FABRIC);
    s->fault_count = s->traffic_count = 0;
    s->clocks.noise_ns = noise;
    s->clocks.wander = wander;
    s->clocks.jitter_ns = s->clocks.quantum_ns = 0;
    s->clocks.ramp_ppb_s = 0;
    s->clocks.nic_read_ns = 700;
    s->clocks.nic_read_noise_ns = 100;
    if (s->fabric.link_mbps < 1000) {
        s->fabric.link_mbps = 1000;
    }
    s->fabric.trunk_mbps = 0;
    return seed;
}

static double between(struct prng *p, double low, double high)
{
    return low * pow(high / low, prng_uniform(p));
}

static void measure(struct scenario *s, const char *what, int64_t from_ns)
{
    struct scenario_bound *b = &s->bound[s->bound_count++];

    *b = (struct scenario_bound){
        .from_ns = from_ns, .until_ns = s->duration_ns, .fault = -1, .world = SCENARIO_SIM};
    snprintf(b->what, sizeof(b->what), "%s", what);
}

/* Plays the world; r->value gets the values of its bounds. False: it couldn't be played. */
static bool play(struct scenario *s, struct result *r)
{
    struct world *w = NULL;

    for (int i = 0; i < s->bound_count; i++) {
        r->value[i] = NAN;
    }
    if (world_new(&w, s, s->seed) < 0) {
        return false;
    }
    world_run(w, s->duration_ns);
    check_end(w);
    for (int i = 0; i < s->bound_count; i++) {
        r->value[i] = check_value(w, i);
    }
    world_free(w);
    return true;
}

/* ---- rate: [0] ppm ---- */
static void play_rate(int index, struct scenario *s, struct result *r)
{
    r->seed = draw((uint64_t)index, NICS_MOST, s);
    s->duration_ns = RATE_FROM_NS + RATE_FOR_NS;
    s->bound_count = 0;
    measure(s, "clock.rate.common_ppm", RATE_FROM_NS);
    (void)play(s, r);
    r->value[0] = fabs(r->value[0]);
}

/* The worst of value[k]; NAN counts as the worst. kind: 1 or 0: only worlds with or without first_kind; < 0: all. */
static double worst_of(const struct result *r, int count, int k, int kind, uint64_t *ret_seed)
{
    double worst = -INFINITY;

    for (int i = 0; i < count; i++) {
        if ((kind < 0 || r[i].first_kind == (kind == 1)) && !(r[i].value[k] <= worst)) {
            worst = isnan(r[i].value[k]) ? INFINITY : r[i].value[k];
            *ret_seed = r[i].seed;
        }
    }
    return worst;
}

static double sum_of(const struct result *r, int count, int k)
{
    double sum = 0;

    for (int i = 0; i < count; i++) {
        sum += isnan(r[i].value[k]) ? INFINITY : r[i].value[k];
    }
    return sum;
}

/* A row of the worst value; null if that is infinite. */
static void worst_row(struct report *report, const char *id, double value, const char *unit,
                      double must, double aim, const char *note, uint64_t seed)
{
    char text[160];

    if (value <= 0) {
        snprintf(text, sizeof(text), "%s", note); /* no world is worse than another */
    } else {
        snprintf(text, sizeof(text), "%s; worst: seed %" PRIu64 "%s", note, seed,
                 isfinite(value) ? "" : ", which never got there");
    }
    report_simulated(report, id, isfinite(value) ? value : REPORT_NONE, unit, must, aim,
                     REPORT_LOWER, text);
}

static void rows_rate(struct report *report, const struct result *r, int count)
{
    uint64_t seed = 0;
    char note[80];
    const double worst = worst_of(r, count, 0, -1, &seed);

    snprintf(note, sizeof(note), "%d drawn fabrics, 10 minutes each", count);
    worst_row(report, "clock.rate.common_ppm", worst, "ppm", 1, 0.1, note, seed);
}

/* ---- suspend: one host sleeps, or its agent stands still, for 0.1 s to 10 minutes. [0] late, [1] others' bounds ---- */
static void play_suspend(int index, struct scenario *s, struct result *r)
{
    struct swarm_result played;
    struct prng p;

    r->seed = draw((uint64_t)index, NICS_MOST, s);
    prng_init(&p, hash_u64(s->seed, 0x736c656570));
    struct scenario_fault *f = &s->fault[s->fault_count++];
    scenario_fault_init(f);
    r->first_kind = index % 2 == 0;
    f->kind = r->first_kind ? FAULT_SUSPEND : FAULT_AGENT_STOP;
    f->at_ns = ASLEEP_AT_NS + (int64_t)prng_below(&p, (uint64_t)NS_PER_S);
    f->for_ns = (int64_t)(0.1e9 * pow(6000, prng_uniform(&p)));
    f->target = (struct scenario_target){.kind = TARGET_HOSTS, .path = -1};
    s->duration_ns = f->at_ns + f->for_ns + AFTER_NS;
    for (int i = 0; i < s->bound_count; i++) {
        s->bound[i].until_ns = s->duration_ns;
    }
    r->value[0] = NAN;
    if (swarm_play(s, INVARIANT_COUNT, &played) == 0) {
        r->value[0] = (double)(played.broken[INVARIANT_LATE] + played.broken[INVARIANT_STALE]);
        r->value[1] = (double)played.broken[INVARIANT_HARD];
    }
}

static void rows_suspend(struct report *report, const struct result *r, int count)
{
    uint64_t seed = 0;
    char note[80];

    (void)worst_of(r, count, 0, -1, &seed);
    snprintf(note, sizeof(note), "%d suspends and pauses of 0.1 s to 10 min", count);
    worst_row(report, "clock.suspend.late", sum_of(r, count, 0), "readings", 0, REPORT_NONE, note,
              seed);
    report_simulated(report, "clock.suspend.others_hard", sum_of(r, count, 1), "instants", 0,
                     REPORT_NONE, REPORT_LOWER,
                     "sound hosts whose hard bounds have no common point");
}

/* ---- fabrics: 20 ns stamps, wander 3 to 60. [0] p99, [1] share SYNCED, [2] over must, [3] over aim ---- */
static void play_fabric(int index, struct scenario *s, struct result *r)
{
    struct prng p;

    prng_init(&p, hash_u64((uint64_t)index, 0x66616272));
    const double wander = 3 + 57 * prng_uniform(&p);
    r->seed = draw_plain((uint64_t)index, 20, wander, s);
    r->first_kind = index % 3 != 2; /* the others: links of 200 Mb/s */
    s->fabric.link_mbps = r->first_kind ? s->fabric.link_mbps : 200;
    s->duration_ns = 75 * NS_PER_S;
    s->bound_count = 0;
    measure(s, "clock.error.p99_ns", 15 * NS_PER_S);
    measure(s, "clock.synced_mean", 15 * NS_PER_S);
    (void)play(s, r);
    r->value[0] = r->value[1] >= 1 ? r->value[0] : INFINITY;
    r->value[2] = r->value[0] / (20 + 0.6 * wander);
    r->value[3] = r->value[0] / (12 + 0.3 * wander);
}

static void rows_fabrics(struct report *report, const struct result *r, int count)
{
    uint64_t seed = 0;
    char note[96];

    snprintf(note, sizeof(note), "%d fabrics of 1 Gb/s and more, all hosts SYNCED from 15 s on",
             count - count / 3);
    double worst = worst_of(r, count, 0, 1, &seed);
    worst_row(report, "clock.fabrics.p99_ns", worst, "ns", REPORT_NONE, REPORT_NONE, note, seed);
    worst = worst_of(r, count, 2, 1, &seed);
    worst_row(report, "clock.fabrics.p99", worst, "x (20 + 0.6 w)", 1, REPORT_NONE, note, seed);
    worst = worst_of(r, count, 3, 1, &seed);
    worst_row(report, "clock.fabrics.p99_aim", worst, "x (12 + 0.3 w)", REPORT_NONE, 1, note, seed);
    snprintf(note, sizeof(note), "%d fabrics", count / 3);
    worst = worst_of(r, count, 0, 0, &seed);
    worst_row(report, "clock.fabrics.200mbps.p99_ns", worst, "ns", 100, 40, note, seed);
}

/* ---- loads: [0] share SYNCED, [1] p99, [2] width, [3] hard bounds left ---- */
static void play_loaded(struct scenario *s, struct result *r, int64_t for_ns)
{
    const int64_t from = LOADED_AT_NS + 15 * NS_PER_S;

    s->clocks.stamps = STAMPS_NIC;
    s->duration_ns = LOADED_AT_NS + for_ns;
    s->bound_count = 0;
    measure(s, "clock.synced_mean", from);
    measure(s, "clock.error.p99_ns", from);
    measure(s, "clock.hard.width_ns", from);
    measure(s, "clock.hard.outside", 0);
    (void)play(s, r);
    r->value[0] = -r->value[0]; /* the least is the worst */
    r->value[2] *= 1e-3;
}

static struct scenario_traffic *add_load(struct scenario *s, enum scenario_traffic_kind kind,
                                         double load)
{
    struct scenario_traffic *t = &s->traffic[s->traffic_count++];

    scenario_traffic_init(t, s);
    t->kind = kind;
    t->load = load;
    t->start_ns = LOADED_AT_NS;
    t->end_ns = INT64_MAX;
    return t;
}

/* Trunks are offered twice their rate for ten minutes; probes have their own class. */
static void play_saturated(int index, struct scenario *s, struct result *r)
{
    r->seed = draw_plain((uint64_t)index, 20, 10, s);
    r->first_kind = index % 2 == 0;
    s->fabric.link_mbps = r->first_kind ? 10000 : 100000;
    s->fabric.leaves = s->fabric.leaves < 2 ? 2 : s->fabric.leaves;
    s->fabric.probe_class = true;
    s->fabric.wiring = WIRING_HOST;
    const double nics = s->fabric.hosts * s->fabric.nics_per_host, leaves = s->fabric.leaves;
    const double offered = 0.8 * s->fabric.link_mbps * nics / leaves * (1 - 1 / leaves);
    s->fabric.trunk_mbps = offered / 2 / s->fabric.spines;
    (void)add_load(s, TRAFFIC_ALL_TO_ALL, 0.8);
    play_loaded(s, r, 600 * NS_PER_S);
}

/* Probes wait in the jobs' queues. */
static void play_noclass(int index, struct scenario *s, struct result *r)
{
    struct prng p;

    prng_init(&p, hash_u64((uint64_t)index, 0x6e6f636c));
    r->seed = draw_plain((uint64_t)index, 20, 10, s);
    r->first_kind = index % 2 == 0;
    s->fabric.link_mbps = 10000;
    s->fabric.probe_class = false;
    s->fabric.buffer_bytes = (int64_t)between(&p, 1e5, 1e6);
    struct scenario_traffic *t = add_load(s, r->first_kind ? TRAFFIC_ALL_TO_ALL : TRAFFIC_INCAST,
                                          r->first_kind ? 0.8 : 0.95);
    t->fan = 8;
    t->burst_bytes = 1 << 20;
    play_loaded(s, r, 120 * NS_PER_S);
}

/* The common rows of the loads: AREA.synced and AREA.outside. */
static void rows_loaded(struct report *report, const struct result *r, int count, const char *area,
                        double synced_must, const char *note)
{
    uint64_t seed = 0;
    char id[64];
    const double least = -worst_of(r, count, 0, -1, &seed);

    snprintf(id, sizeof(id), "%s.synced", area);
    report_simulated(report, id, isfinite(least) ? least : REPORT_NONE, "share of time",
                     synced_must, 1, REPORT_HIGHER, note);
    snprintf(id, sizeof(id), "%s.outside", area);
    report_simulated(report, id, sum_of(r, count, 3), "readings", 0, 0, REPORT_LOWER,
                     "hard bounds that the truth left");
}

static void rows_saturated(struct report *report, const struct result *r, int count)
{
    uint64_t seed = 0;
    char note[96];

    snprintf(note, sizeof(note), "%d fabrics, 10 and 100 Gb/s, 15 s to 10 min of load", count);
    rows_loaded(report, r, count, "clock.saturated", 1, note);
    double worst = worst_of(r, count, 1, -1, &seed);
    worst_row(report, "clock.saturated.p99_ns", worst, "ns", 100, 40, note, seed);
    worst = worst_of(r, count, 2, -1, &seed);
    worst_row(report, "clock.saturated.width_us", worst, "us", 60, 35, note, seed);
}

static void rows_noclass(struct report *report, const struct result *r, int count)
{
    uint64_t seed = 0;
    char note[96];

    snprintf(note, sizeof(note), "%d fabrics of 10 Gb/s, buffers of 0.1 to 1 MB", count);
    rows_loaded(report, r, count, "clock.noclass", 0.99, note);
    double worst = worst_of(r, count, 1, 1, &seed);
    worst_row(report, "clock.noclass.p99_ns", worst, "ns", 2000, 200, "all-to-all 80 %", seed);
    worst = worst_of(r, count, 1, 0, &seed);
    worst_row(report, "clock.noclass.incast.p99_ns", worst, "ns", 2000, 200, "incast 95 %", seed);
}

/* ---- wander: whole drawn worlds, faults and loads of theirs, without liars. [0] accused ---- */
static void play_wander(int index, struct scenario *s, struct result *r)
{
    struct swarm_result played;
    struct prng p;
    uint64_t seed = 1000 * (uint64_t)index;

    do {
        swarm_draw(++seed, s);
    } while (s->fabric.hosts * s->fabric.nics_per_host > NICS_MOST / 2);
    prng_init(&p, hash_u64(seed, 0x77616e64));
    s->clocks.wander = between(&p, 3, 100);
    s->clocks.noise_ns = between(&p, 5, 100);
    for (int i = 0; i < s->fault_count; i++) {
        if (s->fault[i].kind == FAULT_LIAR) {
            s->fault[i--] = s->fault[--s->fault_count];
        }
    }
    r->seed = seed;
    r->value[0] = swarm_play(s, INVARIANT_COUNT, &played) == 0
                      ? (double)played.broken[INVARIANT_ACCUSED]
                      : NAN;
}

static void rows_wander(struct report *report, const struct result *r, int count)
{
    uint64_t seed = 0;
    char note[96];

    snprintf(note, sizeof(note),
             "%d worlds, wander 3 to 100 ppb per root second, noise 5 to 100 ns", count);
    (void)worst_of(r, count, 0, -1, &seed);
    worst_row(report, "clock.wander.accused", sum_of(r, count, 0), "verdicts", 0, 0, note, seed);
}

/* ---- partition: [0] s until all are SYNCED and within 100 ns for good, [1] accused ---- */
/* True if 99 of 100 pairs of hosts are within the limit, and all hosts are SYNCED. */
static bool together(const struct world *w)
{
    int out = 0, pairs = 0;

    for (int i = 0; i < w->host_count; i++) {
        const struct check_host *a = &w->check->hosts[i];
        if (!a->synced) {
            return false;
        }
        for (int k = 0; k < i; k++) {
            out += !(fabs(a->error_ns - w->check->hosts[k].error_ns) <= BACK_NS_MAX);
            pairs++;
        }
    }
    return 100 * out <= pairs;
}

static void play_partition(int index, struct scenario *s, struct result *r)
{
    const double longest = index % 8 == 7 ? 6 : 1;
    struct world *w = NULL;
    struct prng p;

    prng_init(&p, hash_u64((uint64_t)index, 0x70617274));
    r->seed = draw_plain((uint64_t)index, 5 + 15 * prng_uniform(&p), between(&p, 3, 60), s);
    r->first_kind = longest <= 1;
    const bool sliver = index % 2 == 1;
    struct scenario_fault *f = &s->fault[s->fault_count++];
    scenario_fault_init(f);
    f->kind = FAULT_PARTITION;
    f->at_ns = APART_AT_NS;
    f->for_ns = longest > 1 ? (int64_t)between(&p, (double)LONG_NS, longest * (double)LONG_NS)
                            : (int64_t)between(&p, 1e9, (double)LONG_NS);
    f->target = (struct scenario_target){
        .kind = TARGET_HOSTS, .last = sliver ? 0 : s->fabric.hosts / 2 - 1, .path = -1};
    const int64_t healed = f->at_ns + f->for_ns;
    s->duration_ns = healed + AFTER_NS;
    s->bound_count = 0;
    r->value[0] = r->value[1] = NAN;
    if (world_new(&w, s, s->seed) < 0) {
        return;
    }
    world_run(w, healed);
    r->value[0] = 0;
    for (int64_t at = healed; at < s->duration_ns; at += NS_PER_S / 10) {
        world_run(w, at + NS_PER_S / 10);
        r->value[0] = together(w) ? r->value[0] : (double)(at + NS_PER_S / 10 - healed) * 1e-9;
    }
    check_end(w);
    r->value[0] = together(w) ? r->value[0] : INFINITY;
    r->value[1] = (double)w->check->windows[0].false_liar;
    world_free(w);
}

static void rows_partition(struct report *report, const struct result *r, int count)
{
    uint64_t seed = 0;
    int late = 0, never = 0;
    char note[96];

    for (int i = 0; i < count; i++) {
        late += r[i].value[0] > (r[i].first_kind ? 5 : 8);
        never += !isfinite(r[i].value[0]);
    }
    snprintf(note, sizeof(note), "%d worlds, 1 s to 10 min, halves and slivers", count - count / 8);
    double worst = worst_of(r, count, 0, 1, &seed);
    worst_row(report, "clock.partition.back_s", worst, "s", 5, 3, note, seed);
    snprintf(note, sizeof(note), "%d worlds, 10 min to 1 h", count / 8);
    worst = worst_of(r, count, 0, 0, &seed);
    worst_row(report, "clock.partition.hour.back_s", worst, "s", 8, 3, note, seed);
    snprintf(note, sizeof(note), "of %d; %d not within 20 s", count, never);
    report_simulated(report, "clock.partition.late", late, "worlds", REPORT_NONE, 0, REPORT_LOWER,
                     note);
    report_simulated(report, "clock.partition.accused", sum_of(r, count, 1), "verdicts", 0, 0,
                     REPORT_LOWER, "honest hosts called liars");
}

/* ---- sections ---- */
static const struct section {
    const char *name;
    int worlds;
    bool soak; /* it takes too long for `make bench` */
    void (*play)(int index, struct scenario *s, struct result *r);
    void (*rows)(struct report *report, const struct result *r, int count);
} sections[] = {{"rate", 60, true, play_rate, rows_rate},
                {"suspend", 200, true, play_suspend, rows_suspend},
                {"fabrics", 90, false, play_fabric, rows_fabrics},
                {"noclass", 20, false, play_noclass, rows_noclass},
                {"wander", 1000, true, play_wander, rows_wander},
                {"saturated", 8, true, play_saturated, rows_saturated},
                {"partition", 200, true, play_partition, rows_partition}};
static const struct section *section;

static int first_world;

static void job(int index)
{
    struct scenario *s = malloc(sizeof(*s));

    ASSERT(s != NULL);
    section->play(first_world + index, s, &results[index]);
    free(s);
}

static bool measured(struct report *report, int count)
{
    results = parallel_memory((size_t)count * sizeof(*results));
    if (results == NULL) {
        fputs("no memory\n", stderr);
        return false;
    }
    const int died = parallel_run(count, job);
    if (died > 0) {
        fprintf(stderr, "%d of %d worlds died\n", died, count);
        return false;
    }
    section->rows(report, results, count);
    return true;
}

int main(int argc, char **argv)
{
    static struct report report;
    const bool soak = argc == 2 && strcmp(argv[1], "--soak") == 0;
    const char *wanted = argc > 1 && !soak ? argv[1] : NULL;
    bool known = false, good = true;

    first_world = argc > 3 ? atoi(argv[3]) : 0;
    report_init(&report,
                wanted != NULL ? "clock-worlds-part"
                : soak         ? "clock-worlds-soak"
                               : "clock-worlds",
                argc, argv);
    for (size_t i = 0; i < ARRAY_COUNT(sections) && good; i++) {
        section = &sections[i];
        if (wanted != NULL ? strcmp(wanted, section->name) != 0 : section->soak != soak) {
            continue;
        }
        known = true;
        const int asked = argc > 2 ? atoi(argv[2]) : section->worlds;
        good = asked > 0 && measured(&report, asked);
        if (report_write(&report) < 0) {
            good = false;
        }
    }
    if (!known || argc > 4) {
        fputs("usage: clock_worlds [--soak | SECTION [WORLDS [FIRST]]]\n", stderr);
        return 2;
    }
    return !good || report_finish(&report) < 0;
}
