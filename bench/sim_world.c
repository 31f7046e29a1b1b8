/* sim_world.c: rows measured with whole nodes in the simulated world: queues of a fabric, one-way delays, faults
 * found. All figures are simulated. */
#include "report.h"
#include "sim/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct wanted {
    const char *id, *what, *unit;
    double must, aim, from_s;
};

static struct scenario scenario;

static void run(struct report *report, const struct wanted *wanted, int count)
{
    struct world *w = NULL;

    scenario.bound_count = 0;
    for (int i = 0; i < count; i++) {
        struct scenario_bound *b = &scenario.bound[scenario.bound_count++];
        *b = (struct scenario_bound){.from_ns = (int64_t)(wanted[i].from_s * 1e9),
                                     .until_ns = scenario.duration_ns,
                                     .fault = -1,
                                     .world = SCENARIO_SIM};
        snprintf(b->what, sizeof(b->what), "%s", wanted[i].what);
    }
    if (world_new(&w, &scenario, scenario.seed) < 0) {
        return;
    }
    world_run(w, scenario.duration_ns);
    check_end(w);
    for (int i = 0; i < count; i++) {
        const double value = check_value(w, i);
        struct report_row row = {.value = isfinite(value) ? value : REPORT_NONE,
                                 .must = wanted[i].must,
                                 .aim = wanted[i].aim,
                                 .better = REPORT_LOWER,
                                 .runs = 1,
                                 .spread = REPORT_NONE};
        snprintf(row.id, sizeof(row.id), "%s", wanted[i].id);
        snprintf(row.unit, sizeof(row.unit), "%s", wanted[i].unit);
        snprintf(row.note, sizeof(row.note), "simulated, whole nodes, %d hosts x %d NICs, %s%s",
                 w->host_count, w->nics_per_host, scenario.name,
                 isfinite(value) ? "" : ": not measured");
        report_add(report, &row);
    }
    world_free(w);
}

static void fabric(struct report *report, enum scenario_traffic_kind kind, double load,
                   const char *name, const char *id)
{
    const struct wanted wanted[] = {{id, "clock.nic_error.p99_ns", "ns", 50, 15, 7}};

    scenario_init(&scenario);
    snprintf(scenario.name, sizeof(scenario.name), "%s", name);
    scenario.fabric.hosts = 64;
    scenario.fabric.nics_per_host = 8;
    scenario.fabric.leaves = 16;
    scenario.fabric.spines = 32;
    scenario.fabric.link_mbps = scenario.fabric.trunk_mbps = 100000;
    scenario.clocks.stamps = STAMPS_NIC;
    scenario.duration_ns = 12 * NS_PER_S;
    scenario.traffic_count = 1;
    scenario.traffic[0] = (struct scenario_traffic){.kind = kind,
                                                    .load = load,
                                                    .fan = 8,
                                                    .burst_bytes = 1 << 20,
                                                    .end_ns = scenario.duration_ns,
                                                    .from.kind = TARGET_ALL,
                                                    .to.kind = TARGET_ALL};
    run(report, wanted, 1);
}

static void file(struct report *report, const char *name, const struct wanted *wanted, int count)
{
    struct config_error error;
    char path[256];

    snprintf(path, sizeof(path), "scenarios/%s.yaml", name);
    if (scenario_load(path, &scenario, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        return;
    }
    run(report, wanted, count);
}

int main(int argc, char **argv)
{
    static const struct wanted owd[] = {
        {"owd.sim.median_ns", "owd.error.median_ns", "ns", 20, 5, 0},
        {"owd.sim.p99_ns", "owd.error.p99_ns", "ns", 60, 15, 0},
    };
    static const struct wanted step[] = {
        {"clock.fault.step.marked_ms", "clock.fault.marked_ms", "ms", 1000, 200, 0},
        {"clock.fault.step.back_ms", "clock.fault.back_ms", "ms", 5000, 1000, 0},
        {"clock.fault.step.others", "clock.fault.others", "count", 0, 0, 0},
    };
    static const struct wanted freq[] = {
        {"clock.fault.freq.late", "clock.fault.late", "count", 0, 0, 0}};
    static const struct wanted suspend[] = {
        {"clock.fault.suspend.late", "clock.fault.late", "count", 0, 0, 0}};
    static const struct wanted hole[] = {
        {"mesh.sim.blackhole_ms", "fault.detect_ms", "ms", 2000, 300, 0}};
    static struct report report;

    report_init(&report, "sim", argc, argv);
    fabric(&report, TRAFFIC_INCAST, 0.6, "incast 60 %", "clock.sim.fabric.incast.nic_p99_ns");
    fabric(&report, TRAFFIC_ALL_TO_ALL, 0.8, "all-to-all 80 %", "clock.sim.fabric.all.nic_p99_ns");
    file(&report, "clock-idle", owd, 2);
    file(&report, "clock-step", step, 3);
    file(&report, "clock-freq", freq, 1);
    file(&report, "clock-suspend", suspend, 1);
    file(&report, "blackhole-one-way", hole, 1);
    return report_finish(&report) < 0 ? 1 : 0;
}
