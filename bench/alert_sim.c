/* alert_sim.c: the default alert rules over simulated fleets: a healthy week of 500 hosts with 8 NICs each, and the faults
 * that must cause one page each. It also measures the cost of one sample. */
#include <time.h>

#include "alert_world.h"
#include "now.h"
#include "report.h"

static struct world world;
static int wrong; /* scenarios with a wrong number of pages */

static void add(struct report *report, const char *id, double value, const char *unit, double must,
                const char *note)
{
    report_simulated(report, id, value, unit, must, REPORT_NONE, REPORT_LOWER, note);
}

static bool begin(uint32_t hosts, uint64_t seed)
{
    if (!world_init(&world, hosts, seed)) {
        fprintf(stderr, "alert_sim: no fleet\n");
        return false;
    }
    return true;
}

static void week(struct report *report, int days)
{
    const double start = now_s(CLOCK_PROCESS_CPUTIME_ID);
    struct alert_counters counters;
    char note[120];

    if (!begin(500, 20)) {
        return;
    }
    for (int minute = 0; minute < days * 1440; minute++) {
        world_minute(&world, true);
    }
    alerts_counters(world.engine, &counters);
    snprintf(note, sizeof(note), "%d days, 500 x 8; incidents told (none a page): %llu", days,
             (unsigned long long)world.opened);
    add(report, "alert.sim.week_pages", (double)world.pages, "pages", 0, note);
    add(report, "alert.sim.sample_ns",
        (now_s(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e9 / (double)world.samples, "ns", REPORT_NONE,
        "CPU of the whole run by samples judged, the simulated fleet's own cost in it");
    world_done(&world);
}

static void spine(struct report *report)
{
    if (!begin(125, 21)) {
        return;
    }
    world_minute(&world, false);
    for (uint32_t k = 0; k < 400; k++) {
        const uint32_t from = (uint32_t)prng_below(&world.prng, 1000),
                       to = (uint32_t)prng_below(&world.prng, 1000);
        char trunk[64];
        snprintf(trunk, sizeof(trunk), "trunk leaf%u - spine1", k % 64);
        world_finding(&world, to / WORLD_NICS, FINDING_PATH_DEAD, from, to, ELEMENT_TRUNK, trunk,
                      k % 2, 600);
        world_run(&world, mono_add(world.now, span_ms(8)));
    }
    world_minute(&world, false);
    wrong += world.pages != 1 || strcmp(world.page_cause, "spine1") != 0;
    add(report, "alert.sim.dead_spine_pages", (double)world.pages, "pages", REPORT_NONE,
        "64 links, 400 findings, half of them guesses");
    world_done(&world);
}

static void two_faults(struct report *report)
{
    if (!begin(125, 22)) {
        return;
    }
    world_minute(&world, false);
    for (uint32_t k = 0; k < 64; k++) {
        char trunk[64];
        snprintf(trunk, sizeof(trunk), "trunk leaf%u - spine1", k);
        world_finding(&world, k, FINDING_PATH_DEAD, k * 8, (k + 40) * 8 % 1000, ELEMENT_TRUNK,
                      trunk, true, 900);
        if (k == 30) {
            world_finding(&world, 100, FINDING_LINK_DOWN, 805, ALERT_NO_ID, ELEMENT_NIC, NULL, true,
                          900);
        }
        world_run(&world, mono_add(world.now, span_ms(20)));
    }
    for (int minute = 0; minute < 5; minute++) {
        world_minute(&world, false);
    }
    wrong += world.pages != 2;
    add(report, "alert.sim.two_faults_pages", (double)world.pages, "pages", 2,
        "a spine, and a link elsewhere");
    world_done(&world);
}

static void flaps(struct report *report)
{
    if (!begin(8, 23)) {
        return;
    }
    for (int k = 0; k < 50; k++) {
        world.downs[5]++;
        world_finding(&world, 0, FINDING_LINK_DOWN, 5, ALERT_NO_ID, ELEMENT_NIC, NULL, true, 5);
        world_minute(&world, false);
    }
    wrong += world.pages != 1;
    add(report, "alert.sim.fifty_flaps_pages", (double)world.pages, "pages", REPORT_NONE,
        "one a minute");
    world_done(&world);
}

int main(int argc, char *argv[])
{
    static struct report report;

    report_init(&report, "alert-sim", argc, argv);
    spine(&report);
    two_faults(&report);
    flaps(&report);
    add(&report, "alert.sim.groupings_wrong", wrong, "of 3", 0,
        "1 page naming the spine; 2 for two faults; 1 for 50 flaps");
    week(&report, argc > 1 && strcmp(argv[1], "--day") == 0 ? 1 : 7);
    return report_finish(&report) < 0;
}
