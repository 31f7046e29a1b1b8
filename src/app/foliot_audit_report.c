/* foliot_audit_report.c: see foliot_audit_report.h. JUnit: a suite for each host, a case for each check. An unknown result is
 * an error, so that a pipeline does not count it as a pass. HTML: one file without scripts, which loads nothing. */
#include "app/foliot_audit_report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/foliot_api.h"
#include "app/foliot_foreign.h"
#include "app/foliot_text.h"
#include "core/audit/gate.h"
#include "platform/json/json.h"
#include "service/audit/result_json.h"

enum { TEXT_MAX = 512 << 20, PATH_SIZE = 4096 };

static const char mark_letters[] = "FUWPS";

/* ---- a report from this program's results ---- */

static void put_hosts(struct json_writer *j, const struct audit *a)
{
    char marks[CHECKS_MAX + 1], line[GATE_LINE_SIZE];

    json_put_array(j, "hosts");
    for (uint32_t s = 0; s < a->sheet_count; s++) {
        const struct gate gate = gate_of(a, s);
        memset(marks, ' ', CATALOGUE_COUNT);
        marks[CATALOGUE_COUNT] = '\0';
        for (uint32_t i = 0; i < a->count; i++) {
            const struct audit_result *r = &a->results[i];
            char *mark = &marks[check_number(r->check)];
            if (r->sheet == s &&
                (*mark == ' ' || strchr(mark_letters, *mark) - mark_letters > r->status)) {
                *mark = mark_letters[r->status];
            }
        }
        json_put_object(j, NULL);
        json_put_string(j, "host", a->sheets[s].host);
        json_put_string(j, "gate", audit_status_name(gate.status));
        json_put_string(j, "gate_text", gate_line(&gate, line));
        json_put_string(j, "marks", marks);
        json_put_end(j);
    }
    json_put_end(j);
}

json_t *audit_report_of(const struct audit *a)
{
    struct json_writer j;
    const char *text;
    size_t size;
    char title[64];
    json_t *report = NULL;

    snprintf(title, sizeof(title), "audit of %u host%s", a->sheet_count,
             a->sheet_count == 1 ? "" : "s");
    json_writer_init(&j, TEXT_MAX);
    json_put_object(&j, NULL);
    json_put_string(&j, "title", title);
    json_put_array(&j, "checks");
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        json_put_string(&j, NULL, check_at(i)->id);
    }
    json_put_end(&j);
    put_hosts(&j, a);
    json_put_array(&j, "results");
    for (uint32_t i = 0; i < a->count; i++) {
        if (a->results[i].status < AUDIT_PASS) {
            result_write(&j, a, &a->results[i]);
        }
    }
    json_put_end(&j);
    json_put_end(&j);
    if (json_writer_finish(&j, &text, &size) == 0) {
        report = json_loadb(text, size, 0, NULL);
    }
    json_writer_done(&j);
    return report;
}

/* ---- common to both formats ---- */

/* Text for XML and HTML: markup is escaped; a character that is not allowed becomes a question mark. */
static void put_text(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        const unsigned char c = (unsigned char)*text;
        switch (c) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        case 0xef: /* XML forbids U+FFFE and U+FFFF */
            if (strncmp(text, "\xef\xbf\xbe", 3) == 0 || strncmp(text, "\xef\xbf\xbf", 3) == 0) {
                fputc('?', out);
                text += 2;
                break;
            }
            fputc(c, out);
            break;
        default:
            fputc((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?' : c, out);
        }
    }
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

/* "found 512, expected 4096, as 11 of 12 have it; note" */
static void put_finding(FILE *out, const json_t *r)
{
    const char *found = text_of(r, "found"), *expected = text_of(r, "expected"),
               *basis = text_of(r, "basis"), *note = text_of(r, "note"),
               *reason = text_of(r, "reason");
    const char *between = "";

    if (text_of(r, "subject")[0] != '\0') {
        put_text(out, text_of(r, "subject"));
        if (text_of(r, "device")[0] != '\0') {
            fputs(" (", out);
            put_text(out, text_of(r, "device"));
            fputs(")", out);
        }
        between = ": ";
    }
    if (found[0] != '\0') {
        fprintf(out, "%sfound ", between);
        put_text(out, found);
        between = ", ";
    }
    if (expected[0] != '\0') {
        fprintf(out, "%sexpected ", between);
        put_text(out, expected);
        fputs(basis[0] != '\0' ? ", " : "", out);
        put_text(out, basis);
        between = "; ";
    }
    if (note[0] != '\0') {
        fputs(between, out);
        put_text(out, note);
        between = " ";
    }
    if (reason[0] != '\0') {
        fprintf(out, "%s(%s)", between, reason);
    }
}

static bool is_of(const json_t *r, const char *host, const char *check)
{
    return strcmp(text_of(r, "host"), host) == 0 && strcmp(text_of(r, "check"), check) == 0;
}

/* ---- JUnit ---- */

/* All results of one check of one host, one on each line. */
static void put_lines(FILE *out, const json_t *results, const char *host, const char *check)
{
    size_t i;
    json_t *r;

    json_array_foreach(results, i, r)
    {
        if (is_of(r, host, check)) {
            fprintf(out, "%s ", text_of(r, "status"));
            put_finding(out, r);
            fputc('\n', out);
        }
    }
    const struct check *c = check_by_id(check);
    if (c != NULL) {
        put_text(out, c->remedy);
    }
}

static void put_case(FILE *out, char mark, const char *host, const char *check,
                     const json_t *results)
{
    fputs("  <testcase classname=\"", out);
    put_text(out, host);
    fputs("\" name=\"", out);
    put_text(out, check);
    fputs("\">", out);
    if (mark == 'F' || mark == 'U') {
        fprintf(out, "<%s message=\"%s\">", mark == 'F' ? "failure" : "error",
                mark == 'F' ? "fail" : "unknown");
        put_lines(out, results, host, check);
        fprintf(out, "</%s>", mark == 'F' ? "failure" : "error");
    } else if (mark == 'W') {
        fputs("<system-out>", out);
        put_lines(out, results, host, check);
        fputs("</system-out>", out);
    } else if (mark == 'S') {
        fputs("<skipped/>", out);
    }
    fputs("</testcase>\n", out);
}

/* Groups results by host in an object: they come in the order of hosts or of checks. */
static json_t *results_by_host(const json_t *results)
{
    json_t *all = json_object(), *r;
    size_t i;

    json_array_foreach(results, i, r)
    {
        json_t *own = json_object_get(all, text_of(r, "host"));
        if (own == NULL) {
            own = json_array();
            json_object_set_new(all, text_of(r, "host"), own);
        }
        json_array_append(own, r);
    }
    return all;
}

static void write_junit(FILE *out, const json_t *report)
{
    const json_t *checks = json_object_get(report, "checks");
    json_t *results = results_by_host(json_object_get(report, "results")), *h;
    size_t i;

    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"foliot audit\">\n", out);
    json_array_foreach(json_object_get(report, "hosts"), i, h)
    {
        const char *host = text_of(h, "host"), *marks = text_of(h, "marks");
        size_t of[5] = {0}, all = 0;
        for (const char *m = marks; *m != '\0'; m++) {
            const char *letter = strchr(mark_letters, *m);
            if (letter != NULL) {
                of[letter - mark_letters]++;
                all++;
            }
        }
        fputs(" <testsuite name=\"", out);
        put_text(out, host);
        fprintf(out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\">\n", all,
                of[AUDIT_FAIL], of[AUDIT_UNKNOWN], of[AUDIT_SKIP]);
        const json_t *own = json_object_get(results, host);
        for (size_t k = 0; k < json_array_size(checks) && k < strlen(marks); k++) {
            if (strchr(mark_letters, marks[k]) != NULL) {
                put_case(out, marks[k], host, json_string_value(json_array_get(checks, k)), own);
            }
        }
        fputs(" </testsuite>\n", out);
    }
    fputs("</testsuites>\n", out);
    json_decref(results);
}

/* ---- HTML ---- */

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;"
    "color:#1c2128;background:#fff}table{border-collapse:collapse;margin:1rem "
    "0}td,th{padding:.2rem "
    ".8rem .2rem 0;text-align:left;vertical-align:top;border-bottom:1px solid "
    "#d8dee4}.n{text-align:"
    "right}.fail{color:#b3261e;font-weight:600}.unknown{color:#7a4b00;font-weight:600}.warn{color:"
    "#7a4b00}.pass{color:#1a6b2f}.skip{color:#57606a}dt{font-weight:600}dd{margin:0 0 .3rem}";

static void put_counts_of_parts(FILE *out, const json_t *report)
{
    const json_t *checks = json_object_get(report, "checks");
    const char *part = "";
    size_t k = 0;

    fputs("<h2>By part</h2><table><tr><th></th><th class=n>fail</th><th class=n>unknown</th><th "
          "class=n>warn</th><th class=n>pass</th><th class=n>skip</th></tr>\n",
          out);
    while (k < json_array_size(checks)) {
        size_t of[5] = {0}, next = k, i;
        json_t *h;
        const struct check *first = check_by_id(json_string_value(json_array_get(checks, k)));
        part = first != NULL ? check_part_name(first) : "of another release";
        for (; next < json_array_size(checks); next++) {
            const struct check *c = check_by_id(json_string_value(json_array_get(checks, next)));
            if (strcmp(c != NULL ? check_part_name(c) : "of another release", part) != 0 ||
                (c != NULL && first != NULL && c->group != first->group)) {
                break;
            }
            json_array_foreach(json_object_get(report, "hosts"), i, h)
            {
                const char *marks = text_of(h, "marks"),
                           *letter =
                               next < strlen(marks) ? strchr(mark_letters, marks[next]) : NULL;
                if (letter != NULL) {
                    of[letter - mark_letters]++;
                }
            }
        }
        fprintf(out, "<tr><td>%s%s", first != NULL ? check_group_name(first->group) : "",
                first != NULL ? ": " : "");
        put_text(out, part);
        for (unsigned s = 0; s < 5; s++) {
            fprintf(out, "<td class=\"n %s\">%zu", of[s] > 0 ? audit_status_name(s) : "skip",
                    of[s]);
        }
        fputs("</tr>\n", out);
        k = next;
    }
    fputs("</table>\n", out);
}

const char *audit_report_source(const json_t *r)
{
    const json_t *evidence = json_object_get(r, "evidence");

    return json_object_get(r, "source") != NULL
               ? text_of(r, "source")
               : text_of(json_array_get(evidence, json_array_size(evidence) - 1), "source");
}

/* The time when the host was read. */
static void put_time(FILE *out, const json_t *r)
{
    if (json_is_integer(json_object_get(r, "at_utc_ns"))) {
        fprintf(out, ", %s", field_time(r, "at_utc_ns").text);
    }
}

static void put_result(FILE *out, const json_t *r)
{
    const struct check *c = check_by_id(text_of(r, "check"));
    const char *source = audit_report_source(r);
    const bool suspect = json_is_true(json_object_get(r, "suspect"));

    fprintf(out, "<details open><summary><span class=%s>%s</span> ", text_of(r, "status"),
            suspect ? "suspect" : text_of(r, "status"));
    put_text(out, text_of(r, "host"));
    fputs(" <code>", out);
    put_text(out, text_of(r, "check"));
    fprintf(out, "</code> (%s)</summary><dl><dt>Found<dd>", text_of(r, "severity"));
    put_finding(out, r);
    if (source[0] != '\0') {
        fputs("<dt>Source<dd>", out);
        put_text(out, source);
        put_time(out, r);
    }
    if (c != NULL) {
        fputs("<dt>Why<dd>", out);
        put_text(out, c->why);
        fputs("<dt>Do<dd>", out);
        put_text(out, c->remedy);
    }
    fputs("</dl></details>\n", out);
}

static void put_results(FILE *out, const json_t *report, const char *status, const char *heading)
{
    bool any = false;
    size_t i;
    json_t *r;

    json_array_foreach(json_object_get(report, "results"), i, r)
    {
        if (strcmp(text_of(r, "status"), status) == 0) {
            if (!any) {
                fprintf(out, "<h2>%s</h2>\n", heading);
            }
            any = true;
            put_result(out, r);
        }
    }
}

static void put_unknown(FILE *out, const json_t *report)
{
    size_t i;
    json_t *r, *o;

    fputs("<h2>Not known</h2><table><tr><th>host<th>check<th>why</tr>\n", out);
    json_array_foreach(json_object_get(report, "not_read"), i, o)
    {
        fputs("<tr><td>", out);
        put_text(out, text_of(o, "host"));
        fputs("<td>all<td>", out);
        put_text(out, text_of(o, "note"));
        fprintf(out, " (%s)</tr>\n", text_of(o, "reason"));
    }
    json_array_foreach(json_object_get(report, "results"), i, r)
    {
        if (strcmp(text_of(r, "status"), "unknown") == 0) {
            fputs("<tr><td>", out);
            put_text(out, text_of(r, "host"));
            fputs("<td><code>", out);
            put_text(out, text_of(r, "check"));
            fputs("</code><td>", out);
            put_finding(out, r);
            fputs("</tr>\n", out);
        }
    }
    fputs("</table>\n", out);
}

static void write_html(FILE *out, const json_t *report)
{
    size_t i;
    json_t *h;

    fputs("<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport "
          "content=\"width=device-width\"><title>",
          out);
    put_text(out, text_of(report, "title"));
    fprintf(out, "</title><style>%s</style>\n<h1>", style);
    put_text(out, text_of(report, "title"));
    fputs("</h1>\n<table><tr><th>host<th>may take a job<th></tr>\n", out);
    json_array_foreach(json_object_get(report, "hosts"), i, h)
    {
        fputs("<tr><td>", out);
        put_text(out, text_of(h, "host"));
        fprintf(out, "<td class=%s>%s<td>", text_of(h, "gate"), text_of(h, "gate"));
        put_text(out, text_of(h, "gate_text"));
        fputs("</tr>\n", out);
    }
    fputs("</table>\n", out);
    put_counts_of_parts(out, report);
    put_results(out, report, "fail", "Failed");
    put_results(out, report, "warn", "Warnings");
    put_unknown(out, report);
    fputs("</html>\n", out);
}

/* ---- files ---- */

static int write_file(const char *path, void (*write)(FILE *out, const json_t *report),
                      const json_t *report)
{
    char part[PATH_SIZE];
    FILE *out = NULL;
    bool whole = false;

    if (snprintf(part, sizeof(part), "%s.part", path) < (int)sizeof(part)) {
        out = fopen(part, "we");
    }
    if (out != NULL) {
        write(out, report);
        whole = ferror(out) == 0;
        whole = fclose(out) == 0 && whole && rename(part, path) == 0;
    }
    if (!whole) {
        fprintf(stderr, "foliot audit: %s: can't be written: %s\n", foreign_text(path).text,
                strerror(errno));
        (void)unlink(part);
    }
    return whole ? EXIT_WELL : EXIT_UNREACHABLE;
}

int audit_report_write(const struct audit_files *files, const json_t *report)
{
    int status = EXIT_WELL;

    if (files->junit != NULL) {
        status = write_file(files->junit, write_junit, report);
    }
    if (files->html != NULL && status == EXIT_WELL) {
        status = write_file(files->html, write_html, report);
    }
    return status;
}
