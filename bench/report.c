/* report.c: prints a table on stdout, and writes an array of rows into a file. */
#include "report.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "stats/sample.h"

static const char *const better_names[] = {
    [REPORT_LOWER] = "lower",
    [REPORT_HIGHER] = "higher",
};

void report_init(struct report *report, const char *name, int argc, char *const *argv)
{
    size_t used = 0;

    memset(report, 0, sizeof(*report));
    snprintf(report->name, sizeof(report->name), "%s", name);
    for (int i = 0; i < argc && used < sizeof(report->command); i++) {
        used += (size_t)snprintf(report->command + used, sizeof(report->command) - used, "%s%s",
                                 i > 0 ? " " : "", argv[i]);
    }
}

void report_add(struct report *report, const struct report_row *row)
{
    ASSERT(report->count < REPORT_ROW_MAX);
    report->rows[report->count++] = *row;
}

void report_one(struct report *report, const char *id, double value, const char *unit, double must,
                double aim, enum report_better better, const char *note)
{
    struct report_row row = {.value = value,
                             .must = must,
                             .aim = aim,
                             .better = better,
                             .runs = 1,
                             .spread = REPORT_NONE};

    snprintf(row.id, sizeof(row.id), "%s", id);
    snprintf(row.unit, sizeof(row.unit), "%s", unit);
    snprintf(row.note, sizeof(row.note), "%s", note);
    report_add(report, &row);
}

void report_simulated(struct report *report, const char *id, double value, const char *unit,
                      double must, double aim, enum report_better better, const char *note)
{
    char text[sizeof(((struct report_row *)0)->note)];

    snprintf(text, sizeof(text), "simulated; %s", note);
    report_one(report, id, value, unit, must, aim, better, text);
}

void report_add_runs(struct report *report, const struct report_row *row, const double *values,
                     int count)
{
    struct report_row filled = *row;
    double *sorted = calloc((size_t)count, sizeof(double));

    ASSERT(sorted != NULL && count > 0);
    memcpy(sorted, values, (size_t)count * sizeof(double));
    qsort(sorted, (size_t)count, sizeof(double), sample_order);
    filled.value = sample_median(sorted, (size_t)count);
    filled.spread = count > 1 ? sorted[count - 1] - sorted[0] : REPORT_NONE;
    filled.runs = count;
    free(sorted);
    report_add(report, &filled);
}

static bool reached(const struct report_row *row, double goal)
{
    return row->better == REPORT_LOWER    ? row->value <= goal
           : row->better == REPORT_HIGHER ? row->value >= goal
                                          : fabs(row->value - goal) < 1e-9;
}

static const char *verdict(const struct report_row *row)
{
    if (isnan(row->value)) {
        return "not measured";
    }
    if (!isnan(row->must) && !reached(row, row->must)) {
        return "MUST MISSED";
    }
    if (!isnan(row->aim)) {
        return reached(row, row->aim) ? "aim reached" : "must ok, aim missed";
    }
    return isnan(row->must) ? "" : "must ok";
}

static const char *number(char *text, size_t size, double value, const char *none)
{
    if (isnan(value) || isinf(value)) {
        snprintf(text, size, "%s", none);
    } else {
        snprintf(text, size, "%.9g", value);
    }
    return text;
}

static void print_table(const struct report *report)
{
    printf("%-40s %12s %-8s %10s %10s %5s %10s\n", "id", "value", "unit", "must", "aim", "runs",
           "spread");
    for (int i = 0; i < report->count; i++) {
        const struct report_row *row = &report->rows[i];
        char value[32], must[32], aim[32], spread[32];
        printf("%-40s %12s %-8s %10s %10s %5d %10s  %s%s%s\n", row->id,
               number(value, sizeof(value), row->value, "-"), row->unit,
               number(must, sizeof(must), row->must, "-"), number(aim, sizeof(aim), row->aim, "-"),
               row->runs, number(spread, sizeof(spread), row->spread, "-"), verdict(row),
               row->note[0] ? "; " : "", row->note);
    }
}

static void write_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text != 0; text++) {
        if (*text == '"' || *text == '\\') {
            fprintf(f, "\\%c", *text);
        } else if ((unsigned char)*text < 0x20) {
            fprintf(f, "\\u%04x", (unsigned)*text);
        } else {
            fputc(*text, f);
        }
    }
    fputc('"', f);
}

static void write_row(FILE *f, const struct report *report, const struct report_row *row)
{
    char text[32];

    fprintf(f, "  {\"id\": ");
    write_string(f, row->id);
    fprintf(f, ", \"value\": %s", number(text, sizeof(text), row->value, "null"));
    fprintf(f, ", \"unit\": ");
    write_string(f, row->unit);
    fprintf(f, ", \"must\": %s", number(text, sizeof(text), row->must, "null"));
    fprintf(f, ", \"aim\": %s", number(text, sizeof(text), row->aim, "null"));
    fprintf(f, ", \"better\": \"%s\", \"runs\": %d", better_names[row->better], row->runs);
    fprintf(f, ", \"spread\": %s", number(text, sizeof(text), row->spread, "null"));
    fprintf(f, ", \"command\": ");
    write_string(f, report->command);
    if (row->note[0]) {
        fprintf(f, ", \"note\": ");
        write_string(f, row->note);
    }
    fputc('}', f);
}

int report_write(const struct report *report)
{
    const char *dir = getenv("FOLIOT_BENCH");
    char path[512];

    if (dir == NULL) {
        dir = "build/bench";
        (void)mkdir("build", 0755);
    }
    (void)mkdir(dir, 0755);
    snprintf(path, sizeof(path), "%s/%s.json", dir, report->name);
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        const int r = -errno;
        fprintf(stderr, "%s: %s\n", path, strerror(-r));
        return r;
    }
    fputs("[\n", f);
    for (int i = 0; i < report->count; i++) {
        write_row(f, report, &report->rows[i]);
        fputs(i + 1 < report->count ? ",\n" : "\n", f);
    }
    fputs("]\n", f);
    return fclose(f) == 0 ? 0 : -errno;
}

int report_finish(const struct report *report)
{
    print_table(report);
    return report_write(report);
}

bool report_wanted(const char *name, int argc, char *const argv[])
{
    bool any = false;

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], name) == 0) {
            return true;
        }
        any = any || argv[i][0] != '-';
    }
    return !any;
}
