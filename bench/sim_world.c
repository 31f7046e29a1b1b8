/* sim_world.c: rows measured with whole nodes in the simulated world: queues of a fabric, one-way delays, faults
 * found, cost as the fleet grows, wrong verdicts. All figures are simulated.
 *
 *     build/bench/sim_world [--soak PATH-HOURS SCENARIO...]
 *     build/bench/sim_world --nights FIRST-LAST SCENARIO
 *
 * One process per processor.
 * --soak: these scenarios, then the last of them with other seeds, until PATH-HOURS are reached. An interrupted run is
 * continued if FOLIOT_DECIDES is the same as then (nights.h). Its rows are written after each night.
 * --nights: these seeds of one scenario, without rows. */
#include "nights.h"
#include "now.h"
#include "parallel.h"
#include "report.h"
#include "sim/check.h"
#include "sim/sim.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct wanted {
    const char *id, *what, *unit;
    double must, aim, from_s, until_s; /* 0: to the end */
};

static struct report report;
static struct scenario scenario;
static double path_hours, wrong_verdicts; /* of all runs */
static char wrong_in[80];                 /* the last run with a wrong verdict */
static double began;

static void add(const char *id, double value, const char *unit, double must, double aim,
                const char *note)
{
    const bool share = strcmp(unit, "share") == 0; /* share of healthy hosts */
    report_one(&report, id, value, unit, must, aim, share ? REPORT_HIGHER : REPORT_LOWER, note);
    fprintf(stderr, "%6.0f s  %-40s %12.5g %s\n", now_s(CLOCK_MONOTONIC) - began, id, value, unit);
}

/* ---- whole nodes ---- */
/* Counts the paths that some host judges: each direction belongs to its sender. */
static double paths(const struct world *w)
{
    double count = 0;

    for (int i = 0; i < w->host_count; i++) {
        const struct node *n = w->hosts[i].node;
        const struct mono now = {w->hosts[i].due};
        struct node_edge edge;
        for (uint32_t k = 0; n != NULL && k < node_edge_count(n); k++) {
            count += node_edge_get(n, k, now, &edge) ? edge.path_count : 0;
        }
    }
    return count;
}

/* Plays the scenario to its end, in parts, and counts path-hours. */
static void play(struct world *w)
{
    const int64_t part = 10 * NS_PER_S;

    for (int64_t at = 0; at < scenario.duration_ns;) {
        const int64_t until = at + part < scenario.duration_ns ? at + part : scenario.duration_ns;
        world_run(w, until);
        path_hours += paths(w) * (double)(until - at) / 3600e9;
        at = until;
    }
    check_end(w);
    const struct check_window *all = &w->check->windows[0];
    const uint64_t wrong = all->false_path + all->false_link + all->false_step + all->false_liar;
    if (wrong > 0) {
        wrong_verdicts += (double)wrong;
        snprintf(wrong_in, sizeof(wrong_in), "%s", scenario.name);
    }
}

static void run(const struct wanted *wanted, int count)
{
    struct world *w = NULL;

    scenario.bound_count = 0;
    for (int i = 0; i < count; i++) {
        struct scenario_bound *b = &scenario.bound[scenario.bound_count++];
        *b = (struct scenario_bound){.from_ns = (int64_t)(wanted[i].from_s * 1e9),
                                     .until_ns = wanted[i].until_s > 0
                                                     ? (int64_t)(wanted[i].until_s * 1e9)
                                                     : scenario.duration_ns,
                                     .fault = -1,
                                     .world = SCENARIO_SIM};
        snprintf(b->what, sizeof(b->what), "%s", wanted[i].what);
    }
    if (world_new(&w, &scenario, scenario.seed) < 0) {
        fprintf(stderr, "%s: no world\n", scenario.name);
        return;
    }
    play(w);
    for (int i = 0; i < count; i++) {
        const bool seconds = strcmp(wanted[i].unit, "s") == 0; /* metrics are in ms */
        const double value = check_value(w, i) * (seconds ? 1e-3 : 1);
        char note[160];
        snprintf(note, sizeof(note), "simulated, whole nodes, %d hosts x %d NICs, %s%s",
                 w->host_count, w->nics_per_host, scenario.name,
                 isfinite(value) ? "" : ": not measured");
        add(wanted[i].id, isfinite(value) ? value : REPORT_NONE, wanted[i].unit, wanted[i].must,
            wanted[i].aim, note);
    }
    world_free(w);
}

/* The clocks that are compared: hosts' own clocks, with stamps as fine as hardware's; or NICs' own clocks, 8 for each host. */
static const struct fabric_members {
    const char *row, *prefix, *what;
    int hosts, nics_per_host;
    enum scenario_stamps stamps;
    double must, aim;
} members[] = {{"p99_ns", "", "clock.error.p99_ns", 128, 1, STAMPS_SOFTWARE, 30, 10},
               {"nic_p99_ns", "nic_", "clock.nic_error.p99_ns", 64, 8, STAMPS_NIC, 50, 15}};

/* The longest first. The load is there from the first second on. */
static const struct fabric_load {
    enum scenario_traffic_kind kind;
    int percent;
    bool probe_class;
    const char *word; /* a part of the row's id */
    const struct fabric_members *members;
} loads[] = {
    {TRAFFIC_ALL_TO_ALL, 80, true, "all", &members[1]},
    {TRAFFIC_INCAST, 60, true, "incast", &members[1]},
    {TRAFFIC_ALL_TO_ALL, 40, true, "all40", &members[0]},
    {TRAFFIC_ALL_TO_ALL, 60, true, "all60", &members[0]},
    {TRAFFIC_ALL_TO_ALL, 80, true, "all", &members[0]},
    {TRAFFIC_INCAST, 60, true, "incast", &members[0]},
    {TRAFFIC_INCAST, 80, true, "incast80", &members[0]},
    {TRAFFIC_INCAST, 95, true, "incast95", &members[0]},
    {TRAFFIC_ALL_TO_ALL, 40, false, "noclass.all40", &members[0]},
    {TRAFFIC_ALL_TO_ALL, 60, false, "noclass.all60", &members[0]},
    {TRAFFIC_ALL_TO_ALL, 80, false, "noclass.all", &members[0]},
    {TRAFFIC_INCAST, 60, false, "noclass.incast", &members[0]},
    {TRAFFIC_INCAST, 80, false, "noclass.incast80", &members[0]},
    {TRAFFIC_INCAST, 95, false, "noclass.incast95", &members[0]},
};

/* Any two clocks of a fabric with queues. They are judged once all members have parked edges that stand out (8 s after they
 * began to track), as in the other rows. The note has the value before that, and the hard bound over all time. */
static void fabric(const struct fabric_load *l)
{
    const struct fabric_members *m = l->members;
    const double must = l->probe_class ? m->must : 2000, aim = l->probe_class ? m->aim : 200;
    char id[80], early[80], outside[80], synced[80], width[80];
    const struct wanted wanted[] = {
        {id, m->what, "ns", must, aim, 14, 0},
        {early, m->what, "ns", REPORT_NONE, REPORT_NONE, 7, 12},
        {outside, "clock.hard.outside", "readings", 0, 0, 0, 0},
        {synced, "clock.synced_mean", "share", l->probe_class ? 1 : 0.99, 1, 14, 0},
        {width, "clock.hard.width_ns", "ns", REPORT_NONE, REPORT_NONE, 14, 0}};

    snprintf(id, sizeof(id), "clock.sim.fabric.%s.%s", l->word, m->row);
    snprintf(early, sizeof(early), "clock.sim.fabric.%s.early_%s", l->word, m->row);
    snprintf(outside, sizeof(outside), "clock.sim.fabric.%s.%soutside", l->word, m->prefix);
    snprintf(synced, sizeof(synced), "clock.sim.fabric.%s.%ssynced", l->word, m->prefix);
    snprintf(width, sizeof(width), "clock.sim.fabric.%s.%swidth_ns", l->word, m->prefix);
    scenario_init(&scenario);
    snprintf(scenario.name, sizeof(scenario.name), "%s %d %%%s",
             l->kind == TRAFFIC_INCAST ? "incast" : "all-to-all", l->percent,
             l->probe_class ? "" : " and no class for probes");
    scenario.fabric.hosts = m->hosts;
    scenario.fabric.nics_per_host = m->nics_per_host;
    scenario.fabric.leaves = 16;
    scenario.fabric.spines = 32;
    scenario.fabric.link_mbps = scenario.fabric.trunk_mbps = 100000;
    scenario.fabric.probe_class = l->probe_class;
    scenario.clocks.stamps = m->stamps;
    scenario.duration_ns = 20 * NS_PER_S;
    scenario.traffic_count = 1;
    scenario.traffic[0] = (struct scenario_traffic){.kind = l->kind,
                                                    .load = l->percent / 100.0,
                                                    .fan = 8,
                                                    .burst_bytes = 1 << 20,
                                                    .end_ns = scenario.duration_ns,
                                                    .from.kind = TARGET_ALL,
                                                    .to.kind = TARGET_ALL};
    run(wanted, (int)ARRAY_COUNT(wanted));
}

static bool load(const char *name)
{
    struct config_error error;
    char path[256];

    snprintf(path, sizeof(path), "scenarios/%s.yaml", name);
    if (scenario_load(path, &scenario, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return false;
    }
    return true;
}

/* ---- cost ---- */
static bool fits_in_memory(int hosts, double kib_per_host)
{
    FILE *f = fopen("/proc/meminfo", "re");
    char line[128];
    long available = 0;

    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "MemAvailable: %ld", &available) == 1) {
            break;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return 1.2 * hosts * kib_per_host < (double)available;
}

static void cost_row(const char *what, const char *unit, double value, double must,
                     const char *note)
{
    char id[80], simulated[160];

    snprintf(id, sizeof(id), "cost.scale.sim.%s", what);
    snprintf(simulated, sizeof(simulated), "simulated; %s", note);
    add(id, value, unit, must, REPORT_NONE, simulated);
}

static void cost(void)
{
    static const int hosts[] = {100, 1000, 10000};
    struct sim_scale_point first = {0}, last = {0};
    char name[64], note[100] = "";

    for (unsigned i = 0; i < ARRAY_COUNT(hosts); i++) {
        if (i > 0 && !fits_in_memory(hosts[i], last.memory_kib_per_host)) {
            snprintf(note, sizeof(note), "%d hosts don't fit in this machine's memory; ", hosts[i]);
            break;
        }
        if (sim_scale_measure(hosts[i], 1, &last) < 0) {
            break;
        }
        first = i == 0 ? last : first;
        snprintf(name, sizeof(name), "packets.%d", hosts[i]);
        cost_row(name, "1/s", last.packets_per_host_s, REPORT_NONE, "a host with one NIC");
        snprintf(name, sizeof(name), "cpu_us.%d", hosts[i]);
        cost_row(name, "us/s", last.cpu_us_per_host_s, REPORT_NONE,
                 "a host, the simulator itself and its cache misses included");
    }
    if (first.hosts == 0 || last.hosts == first.hosts) {
        return;
    }
    snprintf(note + strlen(note), sizeof(note) - strlen(note), "%d hosts against %d", last.hosts,
             first.hosts);
    cost_row("packets_ratio", "x", last.packets_per_host_s / first.packets_per_host_s, 1.1, note);
    cost_row("events_ratio", "x", last.events_per_host_s / first.events_per_host_s, 1.1, note);
    cost_row("cpu_ratio", "x", last.cpu_us_per_host_s / first.cpu_us_per_host_s, REPORT_NONE,
             "process CPU: all hosts share one machine's caches here, one each in a fleet");
}

/* ---- wrong verdicts ---- */
/* hours_wanted 0: not the soak. */
static void false_rows(double hours_wanted, const char *code)
{
    const char *soak = hours_wanted > 0 ? "soak." : "";
    const double hours = hours_wanted > 0 ? hours_wanted : REPORT_NONE;
    char id[64], note[160];

    snprintf(id, sizeof(id), "false.sim.%sverdicts", soak);
    snprintf(note, sizeof(note), "simulated, in %.0f path-hours%s%s", path_hours,
             wrong_in[0] != 0 ? "; the last in " : "", wrong_in);
    report_one(&report, id, wrong_verdicts, "count", 0, 0, REPORT_LOWER, note);
    snprintf(id, sizeof(id), "false.sim.%spath_hours", soak);
    snprintf(note, sizeof(note), "simulated%s%s", code[0] != 0 ? ", all by code " : "", code);
    report_one(&report, id, path_hours, "path-h", hours, hours, REPORT_HIGHER, note);
}

/* ---- nights: many seeds, many processors ---- */
static void say_wrong(struct world *w, uint64_t seed)
{
    for (size_t i = 0; i < w->finding_count; i++) {
        const struct world_finding *f = &w->findings[i];
        char text[1024];

        if (f->finding.phase == FINDING_OPENED && check_explained(w, f) < 0) {
            finding_text(&f->finding, NULL, text, sizeof(text));
            fprintf(stderr, "seed %d, %.3f s, host %d: %s\n", (int)seed, (double)f->at * 1e-9,
                    f->host, text);
        }
    }
}

static bool bounds_hold(struct world *w)
{
    bool holds = true;

    for (int i = 0; i < scenario.bound_count; i++) {
        const struct scenario_bound *b = &scenario.bound[i];
        if ((b->world & SCENARIO_SIM) != 0 && !check_holds(b, check_value(w, i))) {
            fprintf(stderr, "%s, seed %d: %s broken: %g\n", scenario.name, (int)w->seed, b->what,
                    check_value(w, i));
            holds = false;
        }
    }
    return holds;
}

/* Runs in its own process. */
static struct night night_play(const char *name, uint64_t seed)
{
    struct night night = {.seed = seed};
    struct world *w = NULL;

    snprintf(night.scenario, sizeof(night.scenario), "%s", name);
    path_hours = wrong_verdicts = 0; /* the parent's other nights don't count here */
    if (load(name) && world_new(&w, &scenario, seed == 0 ? scenario.seed : seed) == 0) {
        play(w);
        if (wrong_verdicts > 0) {
            say_wrong(w, w->seed);
        }
        night.holds = bounds_hold(w);
        night.path_hours = path_hours;
        night.wrong = wrong_verdicts;
        world_free(w);
    }
    return night;
}

/* Writes all rows again after each night: an interrupted run counts for what it has done. */
static void soak_rows(const struct nights *n)
{
    report.count = 0;
    for (int i = 0; i < n->count; i++) {
        char id[80];
        snprintf(id, sizeof(id), "scenario.sim.%s", n->scenarios[i]);
        report_one(&report, id, n->held[i] < 0 ? REPORT_NONE : n->held[i], "held", 1, 1,
                   REPORT_HIGHER, "simulated: 1: all bounds of the scenario held");
    }
    path_hours = n->path_hours;
    wrong_verdicts = n->wrong;
    snprintf(wrong_in, sizeof(wrong_in), "%s", n->wrong_in);
    false_rows(n->enough, n->code);
    if (report_write(&report) < 0) {
        fprintf(stderr, "the rows couldn't be written\n");
    }
}

/* Only nights of known code are kept in the journal. */
static void soak(double hours_wanted, char *const *slow, int slow_count)
{
    const char *dir = getenv("FOLIOT_BENCH"), *code = getenv("FOLIOT_DECIDES");
    static struct nights n;
    char journal[512];

    snprintf(journal, sizeof(journal), "%s/sim-soak.nights", dir != NULL ? dir : "build/bench");
    n = (struct nights){.scenarios = slow,
                        .count = slow_count < NIGHT_SCENARIOS ? slow_count : NIGHT_SCENARIOS,
                        .seed = 2,
                        .last = UINT64_MAX,
                        .enough = hours_wanted,
                        .journal = code != NULL ? journal : NULL,
                        .code = code != NULL ? code : "not told"};
    nights_run(&n, night_play, soak_rows);
    n.enough = hours_wanted;
    soak_rows(&n);
}

static int seeds(uint64_t first, uint64_t last, char *const *name)
{
    static struct nights n;

    n = (struct nights){.scenarios = name,
                        .count = 1,
                        .seeds_only = true,
                        .seed = first,
                        .last = last,
                        .enough = INFINITY,
                        .code = ""};
    nights_run(&n, night_play, NULL);
    return n.wrong > 0 ? 1 : 0;
}

/* ---- the rows of `make bench`: parts side by side ---- */
static const struct part_file {
    const char *name;
    struct wanted wanted[3];
    int count;
} files[] = {
    {"clock-idle",
     {{"owd.sim.median_ns", "owd.error.median_ns", "ns", 20, 5, 0, 0},
      {"owd.sim.p99_ns", "owd.error.p99_ns", "ns", 60, 15, 0, 0}},
     2},
    {"blackhole-one-way", {{"mesh.blackhole.sim_ms", "fault.detect_ms", "ms", 2000, 300, 0, 0}}, 1},
    {"size-hole", {{"size.blackhole.s", "fault.detect_ms", "s", 20, 5, 0, 0}}, 1},
    {"class-hole", {{"class.blackhole.s", "fault.detect_ms", "s", 20, 5, 0, 0}}, 1},
    {"carrier-flaps", {{"links.flaps.sim.missed", "link.flaps_missed", "count", 0, 0, 0, 0}}, 1},
    {"carrier-cut",
     {{"links.carrier.sim_ms", "fault.detect_ms", "ms", 2000, REPORT_NONE, 0, 0}},
     1},
    {"clock-step",
     {{"clock.step.sim.marked_ms", "clock.fault.marked_ms", "ms", 1000, 200, 0, 0},
      {"clock.step.sim.back_ms", "clock.fault.back_ms", "ms", 5000, 1000, 0, 0},
      {"clock.step.sim.others", "clock.fault.others", "count", 0, 0, 0, 0}},
     3},
    {"clock-freq", {{"clock.freq.sim.late", "clock.fault.late", "count", 0, 0, 0, 0}}, 1},
    {"clock-suspend", {{"clock.suspend.sim.late", "clock.fault.late", "count", 0, 0, 0, 0}}, 1},
    {"rolling-restart", {{"clock.start.restart_s", "clock.restart.back_ms", "s", 2, 0.5, 0, 0}}, 1},
    {"clock-utc-liar", {{"liar.utc", "clock.utc_outside", "readings", 0, 0, 0, 0}}, 1},
    {"quiet-night",
     {{"clock.night.sim.hard_outside", "clock.hard.outside", "count", 0, 0, 0, 0}},
     1},
};

#define PARTS (1 + (int)ARRAY_COUNT(loads) + (int)ARRAY_COUNT(files))
static struct part_tally {
    double path_hours, wrong_verdicts;
    char wrong_in[sizeof(wrong_in)];
} * tallies; /* shared with the processes that fill them */

/* Runs in its own process. */
static void part_measure(struct report *ret_report, int index)
{
    const int load_index = index - 1, file_index = load_index - (int)ARRAY_COUNT(loads);

    if (index == 0) {
        cost();
    } else if (file_index < 0) {
        fabric(&loads[load_index]);
    } else if (load(files[file_index].name)) {
        run(files[file_index].wanted, files[file_index].count);
    }
    *ret_report = report;
    report.count = 0; /* they are in the report now */
    tallies[index] =
        (struct part_tally){.path_hours = path_hours, .wrong_verdicts = wrong_verdicts};
    memcpy(tallies[index].wrong_in, wrong_in, sizeof(wrong_in));
}

/* The number of parts that couldn't be measured. */
static int short_rows(void)
{
    tallies = parallel_memory(PARTS * sizeof(*tallies));
    if (tallies == NULL) {
        return PARTS;
    }
    const int died = parallel_report(&report, PARTS, part_measure);

    for (int i = 0; i < PARTS; i++) {
        path_hours += tallies[i].path_hours;
        wrong_verdicts += tallies[i].wrong_verdicts;
        if (tallies[i].wrong_in[0] != 0) {
            memcpy(wrong_in, tallies[i].wrong_in, sizeof(wrong_in));
        }
    }
    false_rows(0, "");
    return died;
}

int main(int argc, char **argv)
{
    const bool is_soak = argc > 1 && strcmp(argv[1], "--soak") == 0;
    uint64_t first, last;
    int died = 0;

    began = now_s(CLOCK_MONOTONIC);
    if (argc == 4 && strcmp(argv[1], "--nights") == 0 &&
        sscanf(argv[2], "%" SCNu64 "-%" SCNu64, &first, &last) == 2 && load(argv[3])) {
        return seeds(first, last, argv + 3);
    }
    if (argc > 1 && !is_soak) {
        FILE *out = strcmp(argv[1], "--help") == 0 ? stdout : stderr;
        fputs("usage: sim_world [--soak PATH-HOURS SCENARIO... | --nights FIRST-LAST SCENARIO]\n\n"
              "Rows of whole nodes in the simulated world: a table, and build/bench/sim.json.\n"
              "--soak: no verdict may be wrong in so many path-hours; build/bench/sim-soak.json.\n"
              "        With FOLIOT_DECIDES an interrupted run is continued.\n"
              "--nights: these seeds of one scenario, one process per processor, and what was "
              "wrong; no rows.\n",
              out);
        return out == stdout ? 0 : 2;
    }
    report_init(&report, is_soak ? "sim-soak" : "sim", argc, argv);
    if (is_soak) {
        if (argc < 4) {
            fprintf(stderr, "sim_world --soak PATH-HOURS SCENARIO...\n");
            return 2;
        }
        soak(strtod(argv[2], NULL), argv + 3, argc - 3);
    } else {
        died = short_rows();
    }
    return report_finish(&report) < 0 || died > 0 ? 1 : 0;
}
