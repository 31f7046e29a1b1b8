/* foliot_audit_run.c: one audit of a fleet, for people: its tree, what isn't well, who was not read; and what is another than in
 * an earlier one. */
#include <stdio.h>
#include <string.h>

#include "app/foliot_api.h"
#include "app/foliot_audit.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"

enum { SHOWN_MOST = 200, HOSTS_NAMED = 4, UNREAD_NAMED = 8, PATH_SIZE = 256 };

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

static void print_found(const json_t *r)
{
    print_line("found", api_text(r, "found"));
    print_line("expected", api_text(r, "expected"));
    print_line("", api_text(r, "basis"));
    print_line("note", api_text(r, "note"));
}

static void print_result(const json_t *r)
{
    const char *status = api_text(r, "status"), *subject = api_text(r, "subject");
    const enum colour colour = strcmp(status, "fail") == 0 ? COLOUR_BAD : COLOUR_WARN;

    printf("\n%s%s%s %s  %s%s%s  (%s)\n", colour_begin(stdout, colour), status, colour_end(stdout),
           api_text(r, "check"), api_text(r, "host"), subject[0] != '\0' ? " " : "", subject,
           api_text(r, "severity"));
    print_found(r);
    print_line("source", audit_report_source(r));
    print_line("do", api_text(r, "remedy"));
}

static bool is_suspect(const json_t *run, const char *check)
{
    size_t i;
    json_t *id;

    json_array_foreach(json_object_get(run, "suspect"), i, id)
    {
        if (strcmp(json_string_value(id) != NULL ? json_string_value(id) : "", check) == 0) {
            return true;
        }
    }
    return false;
}

static int ask_results(struct api *api, const json_t *run, const char *check, const char *status,
                       int limit)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "/api/v1/audit/runs/%.24s/results?limit=%d&check=%.60s%s%s",
             api_text(run, "run"), limit, check, status != NULL ? "&status=" : "",
             status != NULL ? status : "");
    return api_ask(api, "GET", path, NULL);
}

/* Results of one status, check by check. A suspect check is told apart, by print_suspect. */
static int print_results(struct api *api, const json_t *run, const char *status, int *room)
{
    size_t i, k;
    json_t *check, *r;
    int result = EXIT_WELL;
    bool more = false;

    json_array_foreach(json_object_get(run, "checks"), i, check)
    {
        const char *id = api_text(check, "check");
        const json_t *counts = json_object_get(check, "counts");
        if (json_integer_value(json_object_get(counts, status)) == 0 || is_suspect(run, id)) {
            continue;
        }
        if (*room == 0) {
            more = true;
            break;
        }
        result = ask_results(api, run, id, status, *room);
        if (result != EXIT_WELL) {
            return result;
        }
        json_array_foreach(json_object_get(api->answer, "items"), k, r)
        {
            print_result(r);
            *room -= *room > 0;
        }
        more = more || json_is_string(json_object_get(api->answer, "next"));
    }
    if (more) {
        printf("\n… and more with status %s: --json has all\n", status);
    }
    return result;
}

/* A check that would condemn so many hosts that it is more likely wrong itself: one block for all of them. */
static int print_suspect(struct api *api, const json_t *run, const char *check)
{
    const char *host = "";
    int named = 0;
    size_t i;
    json_t *r;
    const int result = ask_results(api, run, check, NULL, SHOWN_MOST);
    const json_t *items = json_object_get(api->answer, "items");

    if (result != EXIT_WELL || json_array_size(items) == 0) {
        return result;
    }
    printf("\n%ssuspect%s %s  on", colour_begin(stdout, COLOUR_WARN), colour_end(stdout), check);
    json_array_foreach(items, i, r)
    {
        if (strcmp(host, api_text(r, "host")) != 0 && named++ < HOSTS_NAMED) {
            printf("%s %s", named > 1 ? "," : "", api_text(r, "host"));
        }
        host = api_text(r, "host");
    }
    printf("%s  (%s)\n", named > HOSTS_NAMED ? " and more hosts" : "",
           api_text(json_array_get(items, 0), "severity"));
    print_found(json_array_get(items, 0));
    printf("  do        Look at the check first: foliot audit explain %s\n", check);
    return result;
}

static int print_suspects(struct api *api, const json_t *run)
{
    int result = EXIT_WELL;
    size_t i;
    json_t *id;

    json_array_foreach(json_object_get(run, "suspect"), i, id)
    {
        result = result == EXIT_WELL && json_is_string(id)
                     ? print_suspect(api, run, json_string_value(id))
                     : result;
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

int audit_print_run(struct api *api, json_t *run)
{
    const json_t *counts = json_object_get(run, "counts");
    int status = EXIT_WELL, room = SHOWN_MOST;

    printf("audit %s of %s host%s, %s: %s\n", api_text(run, "run"),
           api_number_text(run, "hosts").text,
           json_integer_value(json_object_get(run, "hosts")) == 1 ? "" : "s",
           field_time(run, "started_utc_ns").text, api_text(run, "state"));
    print_line("why", api_text(run, "why"));
    print_line("no matrix", api_text(run, "matrix_why"));
    print_line("no tests", api_text(run, "tests_why"));
    if (counts == NULL) {
        return EXIT_WELL;
    }
    printf("hosts: %s fail, %s unknown, %s warn, %s pass\n", api_number_text(counts, "fail").text,
           api_number_text(counts, "unknown").text, api_number_text(counts, "warn").text,
           api_number_text(counts, "pass").text);
    print_unread(run);
    puts("");
    print_tree(json_object_get(run, "checks"));
    audit_print_tests(json_object_get(run, "tests"));
    status = print_results(api, run, "fail", &room);
    status = status == EXIT_WELL ? print_results(api, run, "warn", &room) : status;
    return status == EXIT_WELL ? print_suspects(api, run) : status;
}

/* ---- what is another ---- */

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

static bool is_unread(const json_t *run, const char *host)
{
    return has_host(audit_not_read(run), host);
}

static const char *or_none(const json_t *change, const char *key)
{
    const char *text = json_string_value(json_object_get(change, key));

    return text == NULL || text[0] == '\0' ? "none" : text;
}

/* What of a host that only one of both audits has read is not known in the other is no change of the host. */
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

/* Hosts of both audits that this one did not read, and the other one did. */
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
                     results = json_array_size(json_object_get(api->answer, "results"));
        if (api->json) {
            api_print(api);
        } else {
            const size_t told = print_changes(api->answer, before, after);
            const size_t unread = print_unread_since(api->answer, after, before, "second") +
                                  print_unread_since(api->answer, before, after, "first");
            printf("%s hosts are in both audits: %zu fact%s and %zu result%s differ",
                   api_number_text(api->answer, "hosts").text, facts, facts == 1 ? "" : "s", told,
                   told == 1 ? "" : "s");
            printf(unread > 0 ? "; %zu host%s read in one of them only\n" : "\n", unread,
                   unread == 1 ? " was" : "s were");
        }
        status = facts + results > 0 ? EXIT_NOT_WELL : EXIT_WELL;
    }
    json_decref(before);
    json_decref(after);
    return status;
}
