/* power_cuts.c: the store under a thousand power cuts, or more: acknowledged data may not be lost, and nothing may be stored
 * twice. The disk is simulated (test/unit/power_disk.h): it drops, tears and reorders data that wasn't synced.
 *
 * usage: power_cuts [CUTS [SEED]] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "power_world.h"
#include "report.h"

int main(int argc, char **argv)
{
    static struct report report;
    struct power_world_result r;
    if (argc > 1 && strcmp(argv[1], "--help") == 0) {
        puts("usage: power_cuts [CUTS [SEED]]\n\nPower cuts below the store: "
             "build/bench/controller-power.json.");
        return 0;
    }
    const uint64_t cuts = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000,
                   seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    report_init(&report, "controller-power", argc, argv);
    power_world_run(seed, cuts, false, &r);
    struct report_row row = {.id = "controller.power_cuts",
                             .value = (double)r.cuts,
                             .unit = "cuts",
                             .must = 1000,
                             .aim = REPORT_NONE,
                             .runs = 1,
                             .spread = REPORT_NONE,
                             .better = REPORT_HIGHER};
    snprintf(row.note, sizeof(row.note),
             "%llu commits, %llu of %llu under way kept, %llu checkpoints, %llu seals",
             (unsigned long long)r.commits, (unsigned long long)r.in_doubt_kept,
             (unsigned long long)r.in_doubt, (unsigned long long)r.checkpoints,
             (unsigned long long)r.seals);
    report_add(&report, &row);
    row = (struct report_row){.id = "controller.power_lost_or_doubled",
                              .value = r.words[0] != 0,
                              .unit = "",
                              .must = 0,
                              .aim = REPORT_NONE,
                              .runs = 1,
                              .spread = REPORT_NONE};
    snprintf(row.note, sizeof(row.note), "%.120s", r.words);
    report_add(&report, &row);
    const int rc = report_finish(&report);
    return rc != 0 || r.words[0] != 0;
}
