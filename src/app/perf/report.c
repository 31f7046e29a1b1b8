/* report.c: nccl-tests' table, character for character, so that programs that parse it also parse this one; and its JSON. Our
 * additional figures are under one key, "foliot". */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/perf/perf.h"
#include "platform/json/json.h"

static const char *const programs[PERF_OPERATIONS] = {
    "all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "alltoall_perf",
    "broadcast_perf",  "sendrecv_perf",   "pingpong_perf",       "gather_perf"};

static void now_text(char *text, size_t size)
{
    const time_t now = time(NULL);
    struct tm parts;

    localtime_r(&now, &parts);
    strftime(text, size, "%Y-%m-%d %H:%M:%S", &parts);
}

static const char *reduction_of(const struct perf_options *o)
{
    return o->operation == ALL_REDUCE || o->operation == REDUCE_SCATTER
               ? perf_reduction_names[o->reduction]
               : "none";
}

static int root_of(const struct perf_options *o)
{
    return o->operation == BROADCAST || o->operation == GATHER ? o->root : -1;
}

double report_bus_factor(const struct perf_options *o)
{
    const double n = o->ranks;

    switch (o->operation) {
    case ALL_REDUCE:
        return 2 * (n - 1) / n;
    case ALL_GATHER:
    case REDUCE_SCATTER:
    case ALL_TO_ALL:
    case GATHER:
        return (n - 1) / n;
    default:
        return 1;
    }
}

void report_perf_begin(struct perf_report *report, const struct perf_member *members)
{
    const struct perf_options *o = report->options;
    FILE *out = report->out;

    now_text(report->start, sizeof(report->start));
    if (o->json) {
        return;
    }
    fprintf(out, "# nccl-tests version %s nccl-headers=%d nccl-library=%d\n",
            "foliot-" FOLIOT_VERSION, 0, 0);
    fprintf(out, "# Collective test starting: %s\n", programs[o->operation]);
    fprintf(out,
            "# nThread %d nGpus %d minBytes %ld maxBytes %ld step: %ld(%s) warmup iters: %d iters: "
            "%d agg iters: %d validation: %d graph: %d unalign: %d\n",
            1, 1, (long)o->bytes_min, (long)o->bytes_max,
            (long)(o->step_factor > 1 ? o->step_factor : o->step_bytes),
            o->step_factor > 1 ? "factor" : "bytes", o->warmups, o->iterations, 1, o->check, 0, 0);
    fputs("#\n# Using devices\n", out);
    for (int i = 0; i < o->ranks; i++) {
        const struct perf_member *m = &members[i];
        fprintf(out, "#  Rank %2d Group %2d Pid %6d on %10s device %2d [%04x:%02x:%02x] %s\n", i,
                o->job, m->pid, m->host, m->device, 0, 0, 0, m->nic);
    }
    fprintf(
        out,
        "#\n# %10s  %12s  %8s  %6s  %6s           out-of-place                       in-place\n",
        "", "", "", "", "");
    fprintf(out, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "size",
            "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw",
            "busbw", "#wrong");
    fprintf(out, "# %10s  %12s  %8s  %6s  %6s  %7s  %6s  %6s  %6s  %7s  %6s  %6s  %6s\n", "(B)",
            "(elements)", "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)",
            "");
    fflush(out);
}

/* Fewer decimals for larger values, so that columns keep their width: nccl-tests' rule by the number of digits. */
static void put_figure(FILE *out, double value, int width)
{
    int digits = 0;

    for (double power = 1; value >= power; power *= 10) {
        digits++;
    }
    if (digits < width - 2) {
        fprintf(out, "  %*.2f", width, value);
    } else if (digits < width - 1) {
        fprintf(out, "  %*.1f", width, value);
    } else if (digits < width + 1) {
        fprintf(out, "  %*.0f", width, value);
    } else {
        fprintf(out, "  %*.*e", width, width >= 7 ? 1 : 0, value);
    }
}

struct rates {
    double algorithm, bus;
};

static struct rates rates_of(const struct perf_report *report, const struct perf_row *row, int k)
{
    const double time = row->figures[k].time_us;
    struct rates r = {0};

    r.algorithm = time > 0 ? (double)row->size * 1e-3 / time : 0;
    r.bus = r.algorithm * report_bus_factor(report->options);
    return r;
}

int report_perf_row(struct perf_report *report, const struct perf_row *row)
{
    const struct perf_options *o = report->options;
    FILE *out = report->out;

    if (report->row_count == report->row_capacity) {
        const int capacity = report->row_capacity * 2 + 16;
        void *grown = realloc(report->rows, sizeof(*row) * (size_t)capacity);
        if (grown == NULL) {
            return -ENOMEM;
        }
        report->rows = grown;
        report->row_capacity = capacity;
    }
    report->rows[report->row_count++] = *row;
    for (int k = 0; k < 2; k++) {
        if (row->figures[k].time_us > 0) {
            report->bandwidth_sum += rates_of(report, row, k).bus;
            report->bandwidth_count++;
        }
        report->wrong += row->figures[k].wrong > 0 ? (uint64_t)row->figures[k].wrong : 0;
    }
    if (o->json) {
        return 0;
    }
    fprintf(out, "%12li  %12li  %8s  %6s  %6i", (long)row->size, (long)row->count,
            perf_type_names[o->type], reduction_of(o), root_of(o));
    for (int k = 0; k < 2; k++) {
        const struct rates r = rates_of(report, row, k);
        put_figure(out, row->figures[k].time_us, 7);
        put_figure(out, r.algorithm, 6);
        put_figure(out, r.bus, 6);
        if (row->figures[k].wrong >= 0) {
            fprintf(out, "  %6g", row->figures[k].wrong);
        } else {
            fputs("     N/A", out);
        }
    }
    fputc('\n', out);
    fflush(out);
    return 0;
}

/* -- JSON */

static void put_side(struct json_writer *j, const struct perf_report *report,
                     const struct perf_row *row, int k)
{
    const struct perf_figure *f = &row->figures[k];
    const struct rates r = rates_of(report, row, k);

    if (f->time_us <= 0) {
        json_put_null(j, k == 0 ? "out_of_place" : "in_place");
        return;
    }
    json_put_object(j, k == 0 ? "out_of_place" : "in_place");
    json_put_double(j, "time", f->time_us);
    json_put_double(j, "alg_bw", r.algorithm);
    json_put_double(j, "bus_bw", r.bus);
    if (f->wrong >= 0) {
        json_put_double(j, "nwrong", f->wrong);
    } else {
        json_put_null(j, "nwrong");
    }
    json_put_object(j, "foliot");
    json_put_double(j, "p50_us", f->p50_us);
    json_put_double(j, "p99_us", f->p99_us);
    json_put_double(j, "cpu_s_per_gb", f->cpu_s_per_gb);
    json_put_double(j, "receive_gap_ms", f->gap_ms);
    json_put_end(j);
    json_put_end(j);
}

static void put_members(struct json_writer *j, const struct perf_report *report,
                        const struct perf_member *members)
{
    json_put_array(j, "devices");
    for (int i = 0; i < report->options->ranks; i++) {
        json_put_object(j, NULL);
        json_put_int(j, "rank", i);
        json_put_int(j, "group", report->options->job);
        json_put_int(j, "pid", members[i].pid);
        json_put_string(j, "hostname", members[i].host);
        json_put_int(j, "device", members[i].device);
        json_put_string(j, "device_hex", "0000:00:00");
        json_put_string(j, "device_info", members[i].nic);
        json_put_end(j);
    }
    json_put_end(j);
}

static void put_rows(struct json_writer *j, const struct perf_report *report)
{
    const struct perf_options *o = report->options;
    char root[16];

    snprintf(root, sizeof(root), "%6i", root_of(o));
    json_put_array(j, "results");
    for (int i = 0; i < report->row_count; i++) {
        const struct perf_row *row = &report->rows[i];
        json_put_object(j, NULL);
        json_put_uint(j, "size", row->size);
        json_put_uint(j, "count", row->count);
        json_put_string(j, "type", perf_type_names[o->type]);
        json_put_string(j, "redop", reduction_of(o));
        json_put_string(j, "root", root);
        put_side(j, report, row, 0);
        put_side(j, report, row, 1);
        json_put_int(j, "actual_iterations", o->iterations);
        json_put_string(j, "experiment_name", programs[o->operation]);
        json_put_end(j);
    }
    json_put_end(j);
}

static int write_json(const struct perf_report *report, const struct perf_member *members,
                      FILE *out)
{
    const double average =
        report->bandwidth_count > 0 ? report->bandwidth_sum / report->bandwidth_count : 0;
    struct json_writer j;
    const char *text;
    char end[32];
    size_t size;

    now_text(end, sizeof(end));
    json_writer_init(&j, 64 << 20);
    json_put_object(&j, NULL);
    json_put_int(&j, "version", 2);
    json_put_string(&j, "start_time", report->start);
    json_put_array(&j, "args");
    for (int i = 0; i < report->argc; i++) {
        json_put_string(&j, NULL, report->argv[i]);
    }
    json_put_end(&j);
    json_put_int(&j, "nccl_version", 0);
    put_members(&j, report, members);
    put_rows(&j, report);
    json_put_object(&j, "out_of_bounds");
    json_put_uint(&j, "count", report->wrong);
    json_put_string(&j, "okay", report->wrong == 0 ? "true" : "false");
    json_put_end(&j);
    json_put_object(&j, "average_bus_bandwidth");
    json_put_double(&j, "bandwidth", average);
    json_put_end(&j);
    json_put_string(&j, "end_time", end);
    json_put_end(&j);
    int r = json_writer_finish(&j, &text, &size);
    if (r == 0) {
        fwrite(text, 1, size, out);
    }
    json_writer_done(&j);
    return r;
}

int report_perf_end(struct perf_report *report, const struct perf_member *members)
{
    const struct perf_options *o = report->options;
    int r = 0;

    if (o->json) {
        r = write_json(report, members, report->out);
    } else {
        fprintf(report->out, "# %-20s : %d %s\n", "Out of bounds values", (int)report->wrong,
                report->wrong == 0 ? "OK" : "FAILED");
        fprintf(report->out, "# %-20s : %g %s\n", "Avg bus bandwidth",
                report->bandwidth_count > 0 ? report->bandwidth_sum / report->bandwidth_count : 0,
                "");
        fprintf(report->out, "#\n# Collective test concluded: %s\n", programs[o->operation]);
    }
    if (o->json_file != NULL) {
        FILE *f = fopen(o->json_file, "we");
        r = f == NULL ? -errno : write_json(report, members, f);
        if (f == NULL || fclose(f) != 0) {
            fprintf(stderr, "foliot perf: %s: %s\n", o->json_file, strerror(errno));
            r = r < 0 ? r : -EIO;
        }
    }
    fflush(report->out);
    free(report->rows);
    return r < 0 || report->wrong > 0 ? 1 : 0;
}
