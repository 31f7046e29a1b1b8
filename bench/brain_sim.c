/* brain_sim.c: the fleet's brain over simulated days of a large fleet (sim/fleet_world.h): what it told that isn't so, told twice
 * or didn't tell, and what that took. usage: brain_sim [HOSTS SECONDS SEEDS] */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "report.h"
#include "sim/fleet_world.h"

static double cpu_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    const uint32_t hosts = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 10000,
                   seconds = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 3600,
                   seeds = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 1;
    struct fleet_world_result all = {0};
    struct report report;
    struct rusage usage;
    char note[160];

    report_init(&report, "brain_sim", argc, argv);
    const double begin = cpu_s();
    for (uint32_t seed = 1; seed <= seeds; seed++) {
        const struct fleet_world_config c = {
            .seed = seed, .hosts = hosts, .seconds = seconds, .faults = 40};
        const struct fleet_world_result r = fleet_world_run(&c);
        all.wrong += r.wrong;
        all.doubled += r.doubled;
        all.forgotten += r.forgotten;
        all.faults += r.faults;
        if (r.first[0] != '\0') {
            fprintf(stderr, "%s\n", r.first);
        }
    }
    const double took = cpu_s() - begin;
    getrusage(RUSAGE_SELF, &usage);
    snprintf(note, sizeof(note),
             "%u hosts, %u seeds of %u s, %llu faults; doubled and forgotten in it", hosts, seeds,
             seconds, (unsigned long long)all.faults);
    report_simulated(&report, "brain.sim.wrong", (double)(all.wrong + all.doubled + all.forgotten),
                     "", 0, REPORT_NONE, REPORT_LOWER, note);
    report_simulated(&report, "brain.sim.cpu_s_hour", took * 3600 / ((double)seconds * seeds), "s",
                     REPORT_NONE, REPORT_NONE, REPORT_LOWER,
                     "CPU of an hour of that fleet, world and judge in it");
    report_simulated(&report, "brain.sim.memory_mib", (double)usage.ru_maxrss / 1024, "MiB",
                     REPORT_NONE, REPORT_NONE, REPORT_LOWER, "world and judge in it");
    return report_finish(&report) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
