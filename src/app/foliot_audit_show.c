/* foliot_audit_show.c: results, for people and programs; the gate's one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_audit.h"
#include "app/foliot_foreign.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"
#include "core/audit/gate.h"
#include "platform/json/json.h"
#include "service/audit/result_json.h"

enum { TEXT_MAX = 512 << 20, SHOWN_MOST = 200 };

static enum colour colour_of(enum audit_status status)
{
    static const enum colour colours[] = {COLOUR_BAD, COLOUR_WARN, COLOUR_WARN, COLOUR_GOOD,
                                          COLOUR_DIM};

    return colours[status];
}

static void print_json(const struct audit *a, const uint32_t counts[AUDIT_STATUS_COUNT],
                       enum audit_status worst, bool all)
{
    struct json_writer j;
    const char *text;
    size_t size;

    json_writer_init(&j, TEXT_MAX);
    json_put_object(&j, NULL);
    json_put_int(&j, "version", 1);
    json_put_string(&j, "kind", "audit");
    json_put_int(&j, "hosts", a->sheet_count);
    json_put_string(&j, "status", audit_status_name(worst));
    result_write_counts(&j, "counts", counts);
    json_put_array(&j, "results");
    for (uint32_t i = 0; i < a->count; i++) {
        if (all || a->results[i].status < AUDIT_PASS) {
            result_write(&j, a, &a->results[i]);
        }
    }
    json_put_end(&j);
    json_put_end(&j);
    if (json_writer_finish(&j, &text, &size) == 0) {
        fwrite(text, 1, size, stdout);
    } else {
        fputs("foliot audit: too many results for one answer\n", stderr);
    }
    json_writer_done(&j);
}

/* ---- for people ---- */

static void print_tree(const struct audit *a)
{
    static const char *const titles[] = {"", ">FAIL", ">UNKNOWN", ">WARN", ">PASS", ">SKIP", NULL};
    struct libscols_table *table = table_new(titles);
    uint32_t counts[AUDIT_STATUS_COUNT] = {0};
    unsigned group = 0;

    for (uint32_t i = 0; table != NULL && i < a->count;) {
        const struct check *first = a->results[i].check;
        struct libscols_line *line;
        memset(counts, 0, sizeof(counts));
        if (first->group != group) {
            group = first->group;
            line = table_line(table);
            table_put(line, 0, text_format("%u %s", group, check_group_name(group)).text);
        }
        for (; i < a->count && check_part_name(a->results[i].check) == check_part_name(first);
             i++) {
            counts[a->results[i].status]++;
        }
        line = table_line(table);
        table_put(line, 0, text_format("    %s", check_part_name(first)).text);
        for (int k = 0; k < AUDIT_STATUS_COUNT; k++) {
            table_put(line, (size_t)k + 1, counts[k] > 0 ? text_format("%u", counts[k]).text : "·");
        }
    }
    if (table != NULL) {
        table_show(table, stdout);
    }
}

static void print_result(const struct audit *a, const struct audit_result *r)
{
    const struct fact *shown = audit_shown(r);

    printf("\n%s%s%s %s%s  %s%s%s  (%s)\n", colour_begin(stdout, colour_of(r->status)),
           r->suspect ? "suspect" : audit_status_name(r->status), colour_end(stdout), r->check->id,
           r->overridden ? " (set in audit.yaml)" : "", a->sheets[r->sheet].host,
           r->subject[0] != '\0' ? " " : "", r->subject, check_severity_name(r->severity));
    printf("  found     %s\n", r->found);
    if (r->expected[0] != '\0') {
        printf("  expected  %s%s%s\n", r->expected, r->basis[0] != '\0' ? ", " : "", r->basis);
    }
    if (r->note[0] != '\0') {
        printf("  note      %s\n", r->note);
    }
    if (shown != NULL) {
        printf("  source    %s\n", shown->source);
    }
    printf("  why       %s\n  do        %s\n", r->check->why, r->check->remedy);
}

static int print_some(const struct audit *a, enum audit_status status, int room)
{
    int left = room;

    for (uint32_t i = 0; i < a->count; i++) {
        if (a->results[i].status == status && left-- > 0) {
            print_result(a, &a->results[i]);
        }
    }
    if (left < 0) {
        printf("\n… and %d more: --json has all\n", -left);
    }
    return left > 0 ? left : 0;
}

/* Unknown ones by check and reason: a line each. */
static void print_unknown(const struct audit *a)
{
    static const char *const titles[] = {"NOT KNOWN", "REASON", ">HOSTS", "WHY", NULL};
    struct libscols_table *table = NULL;

    for (uint32_t i = 0, next; i < a->count; i = next) {
        const struct audit_result *first = &a->results[i];
        uint32_t hosts[REASON_COUNT] = {0}, last[REASON_COUNT];
        const struct audit_result *example[REASON_COUNT] = {0};
        memset(last, 0xff, sizeof(last));
        for (next = i; next < a->count && a->results[next].check == first->check; next++) {
            const struct audit_result *r = &a->results[next];
            if (r->status == AUDIT_UNKNOWN) {
                hosts[r->reason] += r->sheet != last[r->reason];
                last[r->reason] = r->sheet;
                example[r->reason] = example[r->reason] != NULL ? example[r->reason] : r;
            }
        }
        for (int k = 0; k < REASON_COUNT; k++) {
            if (example[k] == NULL) {
                continue;
            }
            table = table != NULL ? table : table_new(titles);
            struct libscols_line *line = table != NULL ? table_line(table) : NULL;
            if (line != NULL) {
                const struct audit_result *r = example[k];
                table_put(line, 0, r->check->id);
                table_put(line, 1, audit_reason_name(k));
                table_put(line, 2, text_format("%u", hosts[k]).text);
                table_put(
                    line, 3,
                    text_format("%.60s%s%.30s", r->note, r->found[0] != '\0' ? ": " : "", r->found)
                        .text);
            }
        }
    }
    if (table != NULL) {
        puts("");
        table_show(table, stdout);
    }
}

static void print_switched_off(const struct audit_settings *settings)
{
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        if (settings->checks != NULL && settings->checks[i].off != NULL) {
            printf("switched off: %s by %s\n", check_at(i)->id,
                   foreign_text(settings->checks[i].off).text);
        }
    }
}

static int exit_of(enum audit_status worst)
{
    return worst == AUDIT_FAIL || worst == AUDIT_WARN ? EXIT_NOT_WELL
           : worst == AUDIT_UNKNOWN                   ? EXIT_UNREACHABLE
                                                      : EXIT_WELL;
}

static int write_files(const struct audit_options *o, const struct audit *a)
{
    int status = EXIT_WELL;

    if (o->files.junit != NULL || o->files.html != NULL) {
        json_t *report = audit_report_of(a);
        status = audit_report_write(&o->files, report);
        json_decref(report);
    }
    return status;
}

int audit_show(const struct audit_options *o, const struct audit *a,
               const struct audit_settings *settings)
{
    uint32_t counts[AUDIT_STATUS_COUNT];
    const enum audit_status worst = audit_worst(a, "", UINT32_MAX, counts);
    const int written = write_files(o, a);

    if (written != EXIT_WELL) {
        return written;
    }
    if (o->json) {
        print_json(a, counts, worst, o->all);
        return exit_of(worst);
    }
    printf("audit of %u host%s: %s\n\n", a->sheet_count, a->sheet_count == 1 ? "" : "s",
           audit_status_name(worst));
    print_tree(a);
    const int room = print_some(a, AUDIT_FAIL, SHOWN_MOST);
    print_some(a, AUDIT_WARN, room);
    if (o->all) {
        print_some(a, AUDIT_PASS, SHOWN_MOST * 10);
    }
    print_unknown(a);
    print_switched_off(settings);
    return exit_of(worst);
}

/* ---- the gate ---- */

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_SLURM, FORMAT_NAGIOS, FORMAT_NPD };

/* 0 pass, 1 warn, 2 fail, 3 unknown: as Nagios counts. npd: 0 good, 1 bad, 2 unknown. Slurm: 0, or 1 for all that is no pass. */
int audit_gate_exit(const struct audit_gate_line *g)
{
    const enum audit_status status = g->status;
    const unsigned format = g->format;
    const int nagios = status == AUDIT_FAIL      ? 2
                       : status == AUDIT_UNKNOWN ? 3
                       : status == AUDIT_WARN    ? 1
                                                 : 0;

    return format == FORMAT_SLURM ? nagios >= 2
           : format == FORMAT_NPD ? (nagios == 3 ? 2 : nagios == 2)
                                  : nagios;
}

void audit_gate_print(const struct audit_gate_line *g)
{
    static const char *const nagios[] = {"CRITICAL", "UNKNOWN", "WARNING", "OK", "UNKNOWN"};

    if (g->format == FORMAT_NAGIOS) {
        printf("FOLIOT %s - %s: %s\n", nagios[g->status], g->host, g->text);
    } else {
        printf("%s: %s: %s\n", g->host, audit_status_name(g->status), g->text);
    }
}

int audit_gate(const struct audit_options *o, const struct audit *a, uint32_t sheet)
{
    const struct gate g = gate_of(a, sheet);
    char text[GATE_LINE_SIZE];
    const struct audit_gate_line shown = {o->format, g.status, a->sheets[sheet].host,
                                          gate_line(&g, text)};

    if (o->format == FORMAT_JSON) {
        struct json_writer j;
        const char *line;
        size_t size;
        json_writer_init(&j, 1 << 16);
        json_put_object(&j, NULL);
        json_put_int(&j, "version", 1);
        json_put_string(&j, "kind", "audit-gate");
        json_put_string(&j, "host", a->sheets[sheet].host);
        json_put_string(&j, "status", audit_status_name(g.status));
        json_put_string(&j, "check",
                        g.worst != NULL && g.status != AUDIT_PASS ? g.worst->check->id : NULL);
        json_put_string(&j, "text", text);
        result_write_counts(&j, "counts", g.counts);
        json_put_end(&j);
        if (json_writer_finish(&j, &line, &size) == 0) {
            fwrite(line, 1, size, stdout);
        }
        json_writer_done(&j);
    } else {
        audit_gate_print(&shown);
    }
    return audit_gate_exit(&shown);
}
