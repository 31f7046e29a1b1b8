/* report.h: a bench program's measurements, as a table for people and as JSON for `make bench`.
 *
 * A row is one figure with an id (docs/bench.md lists them), the limit that it must reach, and its aim. report_finish() prints
 * the table and writes $FOLIOT_BENCH/<name>.json (build/bench without it): an array of
 *
 *   {"id": "api.now.median_ns", "value": 41.2, "unit": "ns", "must": 60, "aim": 40, "better": "lower",
 *    "runs": 9, "spread": 1.3, "command": "build/bench/api_now", "note": "..."}
 *
 * value null: not measured, and note says why. better: "lower" or "higher" (yes or no is 1 or 0).
 * spread: largest minus smallest of the runs, null for one run. A must that is missed is shown as
 * missed; it is not an error of the program. */
#pragma once
#include "base/bug.h"

#define REPORT_ROW_MAX 256
#define REPORT_NONE    (0.0 / 0.0) /* no must, aim, spread or value: null */

enum report_better {
    REPORT_LOWER,
    REPORT_HIGHER,
};

struct report_row {
    char id[64];
    double value;
    char unit[16];
    double must, aim;
    enum report_better better;
    int runs;
    double spread;
    char note[160]; /* may be empty; a figure of the simulator says "simulated" */
};

struct report {
    char name[64];
    char command[512];
    int count;
    struct report_row rows[REPORT_ROW_MAX];
};

/* argv: as in main(), for the rows' command. */
void report_init(struct report *report, const char *name, int argc, char *const *argv);
/* True if a set of that name is wanted: argv names it, or names none. */
bool report_wanted(const char *name, int argc, char *const argv[]);
void report_add(struct report *report, const struct report_row *row);
/* A row of one run. report_simulated() puts "simulated" before the note. */
void report_one(struct report *report, const char *id, double value, const char *unit, double must,
                double aim, enum report_better better, const char *note);
void report_simulated(struct report *report, const char *id, double value, const char *unit,
                      double must, double aim, enum report_better better, const char *note);
/* Adds a row of several runs: value is their median, runs their number, spread the largest minus the smallest. */
void report_add_runs(struct report *report, const struct report_row *row, const double *values,
                     int count);
/* Writes the rows so far, so that an interrupted program leaves them. */
MUST_CHECK int report_write(const struct report *report);
/* Prints and writes. -errno: the file couldn't be written. */
MUST_CHECK int report_finish(const struct report *report);
