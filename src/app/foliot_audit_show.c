/* foliot_audit_show.c: prints results for people and for programs, and the gate's line. */
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

enum { TEXT_MAX = 512 << 20, SHOWN_MOST = 200, TOLD_MOST = 20000 };

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

/* Results of that status, as in the JSON output; the caller owns them. */
static json_t *results_of(const struct audit *a, enum audit_status status)
{
    struct json_writer j;
    const char *text;
    size_t size;
    json_t *results = NULL;

    json_writer_init(&j, TEXT_MAX);
    json_put_array(&j, NULL);
    for (uint32_t i = 0, count = 0; i < a->count && count < TOLD_MOST; i++) {
        if (a->results[i].status == status) {
            result_write(&j, a, &a->results[i]);
            count++;
        }
    }
    json_put_end(&j);
    if (json_writer_finish(&j, &text, &size) == 0) {
        results = json_loadb(text, size, 0, NULL);
    }
    json_writer_done(&j);
    foreign_show(results, NULL);
    return results;
}

static void print_some(const struct audit *a, enum audit_status status, int *room)
{
    json_t *results = results_of(a, status);

    audit_print_blocks(results, audit_status_name(status), room);
    json_decref(results);
}

static void print_unknown(const struct audit *a)
{
    json_t *results = results_of(a, AUDIT_UNKNOWN);

    audit_print_unknown(results);
    json_decref(results);
}

/* Prints the counts of hosts by status, and the hosts that may not take a job. A few hosts are no cohort. Then the gate uses
 * only rules that need no other host, so a result that is unknown here may pass there. */
static void print_hosts(const struct audit *a)
{
    uint32_t hosts[AUDIT_STATUS_COUNT] = {0}, counts[AUDIT_STATUS_COUNT];
    json_t *gates = json_array();

    for (uint32_t s = 0; s < a->sheet_count; s++) {
        hosts[audit_worst(a, "", s, counts)]++;
        const enum audit_status gate = gate_of(a, s).status;
        if (gate == AUDIT_FAIL || a->sheet_count >= COHORT_LEAST) {
            json_array_append_new(gates, json_pack("{s:s, s:s}", "host", a->sheets[s].host, "gate",
                                                   audit_status_name(gate)));
        }
    }
    if (a->sheet_count > 1) {
        printf("hosts: %u fail, %u unknown, %u warn, %u pass\n", hosts[AUDIT_FAIL],
               hosts[AUDIT_UNKNOWN], hosts[AUDIT_WARN], hosts[AUDIT_PASS]);
    }
    foreign_show(gates, NULL);
    audit_print_closed(gates);
    json_decref(gates);
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
    int room = SHOWN_MOST, passes = SHOWN_MOST * 10;
    printf("audit of %u host%s: %s\n", a->sheet_count, a->sheet_count == 1 ? "" : "s",
           audit_status_name(worst));
    print_hosts(a);
    puts("");
    print_tree(a);
    print_some(a, AUDIT_FAIL, &room);
    print_some(a, AUDIT_WARN, &room);
    if (o->all) {
        print_some(a, AUDIT_PASS, &passes);
    }
    print_unknown(a);
    print_switched_off(settings);
    return exit_of(worst);
}

/* ---- the gate ---- */

enum format { FORMAT_TEXT, FORMAT_JSON, FORMAT_SLURM, FORMAT_NAGIOS, FORMAT_NPD };

/* 0 pass, 1 warn, 2 fail, 3 unknown, as in Nagios. npd: 0 good, 1 bad, 2 unknown. Slurm: 0 for pass and warn, 1 for all else. */
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
