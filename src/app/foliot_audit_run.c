/* foliot_audit_run.c: prints one audit of a fleet: its tree, its failures, the hosts that were not read, and the differences
 * from an earlier audit. */
#include <stdio.h>
#include <string.h>

#include "app/foliot_api.h"
#include "app/foliot_audit.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"

enum { SHOWN_MOST = 200, ASKED_MOST = 1000, UNREAD_NAMED = 8, PATH_SIZE = 256 };

static void print_tree(const json_t *checks)
{
    static const char *const titles[] = {"", ">FAIL", ">UNKNOWN", ">WARN", ">PASS", ">SKIP", NULL};
    struct libscols_table *table = table_new(titles);
    const char *group = "";
    size_t i = 0;

    while (table != NULL && i < json_array_size(checks)) {
        const json_t *first = json_array_get(checks, i);
        struct libscols_line *line;
        int64_t counts[AUDIT_STATUS_COUNT] = {0};
        if (strcmp(group, api_text(first, "group")) != 0) {
            group = api_text(first, "group");
            line = table_line(table);
            table_put(line, 0, group);
        }
        for (; i < json_array_size(checks); i++) {
            const json_t *c = json_array_get(checks, i);
            if (strcmp(api_text(c, "part"), api_text(first, "part")) != 0 ||
                strcmp(api_text(c, "group"), group) != 0) {
                break;
            }
            for (int k = 0; k < AUDIT_STATUS_COUNT; k++) {
                counts[k] += json_integer_value(json_object_get(
                    json_object_get(c, "counts"), audit_status_name((enum audit_status)k)));
            }
        }
        line = table_line(table);
        table_put(line, 0, text_format("    %s", api_text(first, "part")).text);
        for (int k = 0; k < AUDIT_STATUS_COUNT; k++) {
            table_put(line, (size_t)k + 1,
                      counts[k] > 0 ? text_format("%lld", (long long)counts[k]).text : "·");
        }
    }
    if (table != NULL) {
        table_show(table, stdout);
    }
}

static void print_line(const char *what, const char *text)
{
    if (text[0] != '\0' && strcmp(text, "-") != 0) {
        printf("  %-9s %s\n", what, text);
    }
}

static bool has_host(const json_t *list, const char *host)
{
    size_t i;
    json_t *o;

    json_array_foreach(list, i, o)
    {
        if (strcmp(api_text(o, "host"), host) == 0) {
            return true;
        }
    }
    return false;
}

/* Asks for all results of a status, check by check. */
static int ask_results(struct api *api, const json_t *run, const char *status, json_t *results)
{
    const int64_t unread = (int64_t)json_array_size(audit_not_read(run));
    const bool unknown = strcmp(status, "unknown") == 0;
    char path[PATH_SIZE];
    size_t i;
    json_t *check, *items = NULL;

    json_array_foreach(json_object_get(run, "checks"), i, check)
    {
        const int64_t count =
            json_integer_value(json_object_get(json_object_get(check, "counts"), status));
        /* all of them are of hosts that were not read */
        if (count == 0 || (unknown && count <= unread)) {
            continue;
        }
        snprintf(path, sizeof(path),
                 "/api/v1/audit/runs/%.24s/results?limit=%d&check=%.60s&status=%s",
                 api_text(run, "run"), ASKED_MOST, api_text(check, "check"), status);
        const int result = api_ask(api, "GET", path, NULL);
        if (result != EXIT_WELL) {
            return result;
        }
        items = json_object_get(api->answer, "items");
        json_array_extend(results, items);
    }
    return EXIT_WELL;
}

static void drop_unread(const json_t *run, json_t *results)
{
    for (size_t i = json_array_size(results); i > 0; i--) {
        if (has_host(audit_not_read(run), api_text(json_array_get(results, i - 1), "host"))) {
            json_array_remove(results, i - 1);
        }
    }
}

/* Prints failures, warnings and unknown results. It fetches all first, because one block may name many hosts. */
static int print_results(struct api *api, const json_t *run)
{
    static const char *const statuses[] = {"fail", "warn", "unknown"};
    int room = SHOWN_MOST, result = EXIT_WELL;

    for (size_t k = 0; result == EXIT_WELL && k < 3; k++) {
        json_t *results = json_array();
        result = ask_results(api, run, statuses[k], results);
        if (result == EXIT_WELL && k < 2) {
            audit_print_blocks(results, statuses[k], &room);
        } else if (result == EXIT_WELL) {
            drop_unread(run, results);
            audit_print_unknown(results);
        }
        json_decref(results);
    }
    return result;
}

json_t *audit_not_read(const json_t *run)
{
    json_t *all = json_object_get(run, "not_read");

    return all != NULL ? all : json_object_get(run, "left_out");
}

static void print_unread(const json_t *run)
{
    const json_t *all = audit_not_read(run);
    const size_t count = json_array_size(all);

    for (size_t i = 0; i < count && i < UNREAD_NAMED; i++) {
        const json_t *o = json_array_get(all, i);
        printf("  not read  %s (%s): %s\n", api_text(o, "host"), api_text(o, "reason"),
               api_text(o, "note"));
    }
    if (count > UNREAD_NAMED) {
        printf("  not read  %zu more: --json has all\n", count - UNREAD_NAMED);
    }
}

void audit_print_covered(const json_t *run)
{
    static const struct {
        const char *key, *what;
    } stages[] = {{"sheets", "sheets"}, {"cells", "cells of the matrix"}, {"tests", "tests"}};
    const json_t *covered = json_object_get(run, "covered");
    const char *before = "  covered   ";

    for (size_t i = 0; strcmp(api_text(run, "state"), "stopped") == 0 && i < 3; i++) {
        const json_t *stage = json_object_get(covered, stages[i].key);
        if (json_is_object(stage)) {
            printf("%s%s of %s %s", before, api_number_text(stage, "done").text,
                   api_number_text(stage, "of").text, stages[i].what);
            before = ", ";
        }
    }
    fputs(before[0] == ',' ? "\n" : "", stdout);
}

int audit_print_run(struct api *api, json_t *run)
{
    const json_t *counts = json_object_get(run, "counts");
    char path[PATH_SIZE];
    json_t *nodes = NULL;

    printf("audit %s of %s host%s, %s: %s\n", api_text(run, "run"),
           api_number_text(run, "hosts").text,
           json_integer_value(json_object_get(run, "hosts")) == 1 ? "" : "s",
           field_time(run, "started_utc_ns").text, api_text(run, "state"));
    print_line("why", api_text(run, "why"));
    audit_print_covered(run);
    print_line("no matrix", api_text(run, "matrix_why"));
    print_line("no tests", api_text(run, "tests_why"));
    if (counts == NULL) {
        return EXIT_WELL;
    }
    printf("hosts: %s fail, %s unknown, %s warn, %s pass\n", api_number_text(counts, "fail").text,
           api_number_text(counts, "unknown").text, api_number_text(counts, "warn").text,
           api_number_text(counts, "pass").text);
    snprintf(path, sizeof(path), "/api/v1/audit/runs/%.24s/nodes?limit=%d", api_text(run, "run"),
             ASKED_MOST);
    int status = api_ask_pages(api, path, &nodes);
    if (status == EXIT_WELL) {
        audit_print_closed(nodes);
    }
    json_decref(nodes);
    print_unread(run);
    puts("");
    print_tree(json_object_get(run, "checks"));
    audit_print_tests(json_object_get(run, "tests"));
    return status == EXIT_WELL ? print_results(api, run) : status;
}

/* ---- differences ---- */

static bool is_unread(const json_t *run, const char *host)
{
    return has_host(audit_not_read(run), host);
}

static const char *or_none(const json_t *change, const char *key)
{
    const char *text = json_string_value(json_object_get(change, key));

    return text == NULL || text[0] == '\0' ? "none" : text;
}

/* Prints changes. If only one audit has read a host, its results are no changes of the host. */
static size_t print_changes(const json_t *answer, const json_t *was, const json_t *is)
{
    size_t i, told = 0;
    json_t *c;

    json_array_foreach(json_object_get(answer, "facts"), i, c)
    {
        const char *subject = api_text(c, "subject");
        printf("%s: %s%s%s: %s → %s\n", api_text(c, "host"), api_text(c, "fact"),
               subject[0] != '\0' ? " " : "", subject, or_none(c, "was"), or_none(c, "is"));
    }
    json_array_foreach(json_object_get(answer, "measured"), i, c)
    {
        const char *subject = api_text(c, "subject");
        printf("%s: measured: %s%s%s: %s → %s\n", api_text(c, "host"), api_text(c, "check"),
               subject[0] != '\0' ? " " : "", subject, api_text(c, "was"), api_text(c, "is"));
    }
    json_array_foreach(json_object_get(answer, "results"), i, c)
    {
        const char *host = api_text(c, "host");
        if (!is_unread(was, host) && !is_unread(is, host)) {
            printf("%s: %s: %s → %s\n", host, api_text(c, "check"), api_text(c, "was"),
                   api_text(c, "is"));
            told++;
        }
    }
    return told;
}

/* Prints hosts of both audits that only the other audit has read. */
static size_t print_unread_since(const json_t *answer, const json_t *run, const json_t *other,
                                 const char *when)
{
    size_t i, count = 0;
    json_t *o;

    json_array_foreach(audit_not_read(run), i, o)
    {
        const char *host = api_text(o, "host");
        if (!is_unread(other, host) && has_host(json_object_get(answer, "results"), host) &&
            count++ < UNREAD_NAMED) {
            printf("%s: was not read in the %s audit (%s): %s\n", api_text(o, "host"), when,
                   api_text(o, "reason"), api_text(o, "note"));
        }
    }
    if (count > UNREAD_NAMED) {
        printf("%zu more hosts were not read in the %s audit\n", count - UNREAD_NAMED, when);
    }
    return count;
}

static json_t *run_of(struct api *api, const char *id, int *status)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "/api/v1/audit/runs/%.24s", id);
    *status = *status == EXIT_WELL ? api_ask(api, "GET", path, NULL) : *status;
    return *status == EXIT_WELL ? json_incref(api->answer) : NULL;
}

int audit_print_diff(struct api *api, const char *was, const char *is)
{
    char path[PATH_SIZE];
    int status = EXIT_WELL;
    json_t *before = api->json ? NULL : run_of(api, was, &status);
    json_t *after = api->json ? NULL : run_of(api, is, &status);

    snprintf(path, sizeof(path), "/api/v1/audit/runs/%.24s/diff?with=%.24s", is, was);
    status = status == EXIT_WELL ? api_ask(api, "GET", path, NULL) : status;
    if (status == EXIT_WELL) {
        const size_t facts = json_array_size(json_object_get(api->answer, "facts")),
                     measured = json_array_size(json_object_get(api->answer, "measured")),
                     results = json_array_size(json_object_get(api->answer, "results"));
        if (api->json) {
            api_print(api);
        } else {
            printf("first: audit %s of %s; second: audit %s of %s\n", api_text(before, "run"),
                   field_time(before, "started_utc_ns").text, api_text(after, "run"),
                   field_time(after, "started_utc_ns").text);
            const size_t told = print_changes(api->answer, before, after);
            const size_t unread = print_unread_since(api->answer, after, before, "second") +
                                  print_unread_since(api->answer, before, after, "first");
            printf("%s hosts are in both audits", api_number_text(api->answer, "hosts").text);
            if (unread > 0) {
                printf(", %zu of them %s read in one audit only", unread,
                       unread == 1 ? "was" : "were");
            }
            printf(": %zu fact%s, %zu measurement%s and %zu result%s differ\n", facts,
                   facts == 1 ? "" : "s", measured, measured == 1 ? "" : "s", told,
                   told == 1 ? "" : "s");
        }
        status = facts + measured + results > 0 ? EXIT_NOT_WELL : EXIT_WELL;
    }
    json_decref(before);
    json_decref(after);
    return status;
}
