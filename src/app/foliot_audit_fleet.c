/* foliot_audit_fleet.c: `foliot audit` of a whole fleet, through its controller: runs, their results, the node table, the
 * gate. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "app/foliot_api.h"
#include "app/foliot_audit.h"
#include "app/foliot_foreign.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"
#include "base/time.h"

enum { BAR = 30, LOOK_MS = 200, PATH_SIZE = 256 };

struct fleet_options {
    bool fleet, matrix, bandwidth, nccl;
    unsigned format;
    int ip; /* 4, 6; 0: any */
    struct audit_files files;
    struct audit_options tried; /* of `test` */
    int64_t since_ns;
};

/* The same order as for sheets: unknown comes before a warning. A run that was stopped counts as unknown. */
static int exit_of_run(const json_t *run)
{
    const json_t *counts = json_object_get(run, "counts");

    return json_integer_value(json_object_get(counts, "fail")) > 0      ? EXIT_NOT_WELL
           : strcmp(api_text(run, "state"), "stopped") == 0             ? EXIT_UNREACHABLE
           : json_integer_value(json_object_get(counts, "unknown")) > 0 ? EXIT_UNREACHABLE
           : json_integer_value(json_object_get(counts, "warn")) > 0    ? EXIT_NOT_WELL
           : json_integer_value(json_object_get(counts, "pass")) > 0    ? EXIT_WELL
                                                                        : EXIT_UNREACHABLE;
}

/* The run with all its results, in one answer. */
static int print_json(struct api *api, json_t *run)
{
    json_t *items = NULL;
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "/api/v1/audit/runs/%.24s/results?limit=1000",
             api_text(run, "run"));
    const int status = json_object_get(run, "counts") != NULL ? api_ask_pages(api, path, &items)
                                                              : EXIT_UNREACHABLE;
    if (status == EXIT_WELL) {
        json_object_set_new(run, "results", items);
    }
    json_dumpf(run, stdout, JSON_COMPACT);
    putchar('\n');
    return status;
}

static int ask_list(struct api *api, const json_t *run, const char *what, json_t *report,
                    const char *key)
{
    char path[PATH_SIZE];
    json_t *items = NULL;

    snprintf(path, sizeof(path), "/api/v1/audit/runs/%.24s/%s?limit=1000", api_text(run, "run"),
             what);
    const int status = api_ask_pages(api, path, &items);
    if (status == EXIT_WELL) {
        json_object_set_new(report, key, items);
    }
    return status;
}

/* Writes the files that foliot_audit_report.h describes. */
static int write_files(struct api *api, const struct audit_files *files, const json_t *run)
{
    json_t *report = json_object(), *ids = json_array(), *c;
    size_t i;

    if (files->junit == NULL && files->html == NULL) {
        json_decref(ids);
        json_decref(report);
        return EXIT_WELL;
    }
    json_array_foreach(json_object_get(run, "checks"), i, c)
    {
        json_array_append_new(ids, json_string(api_text(c, "check")));
    }
    json_object_set_new(report, "checks", ids);
    json_object_set_new(report, "title",
                        json_sprintf("audit of %s hosts, %s", api_number_text(run, "hosts").text,
                                     field_time(run, "started_utc_ns").text));
    json_object_set(report, "not_read", audit_not_read(run));
    int status = ask_list(api, run, "nodes", report, "hosts");
    const json_t *first = json_array_get(json_object_get(report, "hosts"), 0);
    if (status == EXIT_WELL && first != NULL && json_object_get(first, "marks") == NULL) {
        fputs("foliot audit: --junit and --html need a controller of this release; this one does "
              "not report each check of each host\n",
              stderr);
        status = EXIT_UNREACHABLE;
    }
    status = status == EXIT_WELL ? ask_list(api, run, "results", report, "results") : status;
    status = status == EXIT_WELL ? audit_report_write(files, report) : status;
    json_decref(report);
    return status;
}

static int show_run_of(struct api *api, const struct audit_files *files, const char *id)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "/api/v1/audit/runs/%.24s", id);
    int status = api_ask(api, "GET", path, NULL);
    if (status != EXIT_WELL) {
        return status;
    }
    json_t *run = json_incref(api->answer);
    status = write_files(api, files, run);
    if (status == EXIT_WELL) {
        status = api->json ? print_json(api, run) : audit_print_run(api, run);
        status = status == EXIT_WELL ? exit_of_run(run) : status;
    }
    json_decref(run);
    return status;
}

/* ---- progress ---- */

static void show_progress(const json_t *run)
{
    const bool tests = strcmp(api_text(run, "state"), "testing") == 0;
    const int64_t all = json_integer_value(json_object_get(run, tests ? "tests_planned" : "hosts")),
                  left = tests ? all - json_integer_value(json_object_get(run, "tests_done"))
                               : json_integer_value(json_object_get(run, "unanswered"));
    /* the end of a matrix, or of a part of the tests, is known; an older controller does not report it */
    int64_t left_ns = 0, stage_ns = 0;
    const bool timed = field_get(run, "left_ns", &left_ns) &&
                       field_get(run, "stage_ns", &stage_ns) && stage_ns > 0;
    const int64_t past_ns = left_ns < stage_ns ? stage_ns - left_ns : 0;
    const int done = timed     ? (int)(past_ns * BAR / stage_ns)
                     : all > 0 ? (int)((all - left) * BAR / all)
                               : 0;
    char bar[BAR + 1];

    for (int i = 0; i < BAR; i++) {
        bar[i] = i < done ? '#' : '.';
    }
    bar[BAR] = '\0';
    fprintf(stderr, "\r[%s] %s: ", bar, api_text(run, "state"));
    if (!timed || tests) {
        fprintf(stderr, "%lld of %lld %s, ", (long long)(all - left), (long long)all,
                tests ? "results have come" : "hosts have answered");
    }
    if (timed) {
        fprintf(stderr, "%s left%s, ", text_age(left_ns).text, tests ? " of this part" : "");
    }
    fprintf(stderr, "look %s   ", api_number_text(run, "look").text);
}

static bool under_way(const json_t *run)
{
    return strcmp(api_text(run, "state"), "reading") == 0 ||
           strcmp(api_text(run, "state"), "measuring") == 0 ||
           strcmp(api_text(run, "state"), "testing") == 0 ||
           strcmp(api_text(run, "state"), "judging") == 0;
}

static int follow(struct api *api, const char *id)
{
    const bool bar = isatty(STDERR_FILENO) && !api->json;
    const struct timespec pause = {0, LOOK_MS * 1000000L};
    char path[PATH_SIZE];
    int status = EXIT_WELL;

    snprintf(path, sizeof(path), "/api/v1/audit/runs/%s", id);
    while (status == EXIT_WELL && under_way(api->answer)) {
        if (bar) {
            show_progress(api->answer);
        }
        nanosleep(&pause, NULL);
        status = api_ask(api, "GET", path, NULL);
    }
    if (bar) {
        fprintf(stderr, "\r%*s\r", BAR + 70, "");
    }
    return status;
}

/* Prints what the run takes, before it begins: packets and load are no surprise. An older controller does not report it.
 * It is for all hosts, so not for a run of some. */
static void print_cost(struct api *api, const struct fleet_options *o)
{
    if ((!o->matrix && !o->bandwidth && !o->nccl) || api->json) {
        return;
    }
    api->silent = true;
    const int status = api_ask(api, "GET", "/api/v1/audit/cost", NULL);
    api->silent = false;
    if (status != EXIT_WELL) {
        return;
    }
    const json_t *matrix = json_object_get(api->answer, "matrix"),
                 *tests = json_object_get(api->answer, o->nccl ? "nccl" : "bandwidth");
    if (o->matrix && json_is_object(matrix)) {
        fprintf(stderr, "every NIC with every NIC: %s, and each of %s NICs sends %s packets\n",
                field_ns(matrix, "ns").text, api_number_text(api->answer, "nics").text,
                api_number_text(matrix, "packets").text);
    }
    if ((o->bandwidth || o->nccl) && json_is_object(tests)) {
        fprintf(stderr, "full load on hosts without a job: %s for pairs, %s for the fabric",
                field_ns(tests, "pairs_ns").text, field_ns(tests, "fabric_ns").text);
        if (o->nccl) {
            fprintf(stderr, ", %s for all hosts, %s for each round of a search",
                    field_ns(tests, "rings_ns").text, field_ns(tests, "round_ns").text);
        }
        fprintf(stderr, "; more for NICs that stand out; agents wait %s before each\n",
                field_ns(api->answer, "lead_ns").text);
    }
}

static int run(struct api *api, int count, char *words[], const struct fleet_options *o)
{
    json_t *body = json_object(), *hosts = json_array();
    char id[24];

    for (int i = 0; i < count; i++) {
        json_array_append_new(hosts, json_string(words[i]));
    }
    if (count > 0) {
        json_object_set(body, "hosts", hosts);
    }
    json_decref(hosts);
    if (o->matrix) {
        json_object_set_new(body, "matrix", json_true());
    }
    if (o->bandwidth) {
        json_object_set_new(body, "bandwidth", json_true());
    }
    if (o->nccl) {
        json_object_set_new(body, "nccl", json_true());
    }
    if (o->ip != 0) {
        json_object_set_new(body, "family", json_integer(o->ip));
    }
    if (count == 0) {
        print_cost(api, o);
    }
    int status = api_ask_json(api, "POST", "/api/v1/audit/runs", body);
    if (status != EXIT_WELL) {
        return status;
    }
    snprintf(id, sizeof(id), "%s", api_text(api->answer, "run"));
    status = follow(api, id);
    return status == EXIT_WELL ? show_run_of(api, &o->files, id) : status;
}

/* ---- nodes, runs, differences ---- */

/* The status: a smaller number is worse. AUDIT_STATUS_COUNT: no status. */
static int status_of(const json_t *object, const char *key)
{
    int status = 0;

    while (status < AUDIT_STATUS_COUNT &&
           strcmp(api_text(object, key), audit_status_name((enum audit_status)status)) != 0) {
        status++;
    }
    return status;
}

/* Prints hosts that may not take a job first, each kind in the controller's order, and then the counts. */
static void print_nodes(const json_t *items, const char *const titles[], const char *const keys[],
                        size_t key_count)
{
    struct libscols_table *table = table_new(titles);
    size_t counts[AUDIT_STATUS_COUNT + 1] = {0}, i;
    const char *between = "";
    json_t *n;

    for (int rank = 0; table != NULL && rank <= AUDIT_STATUS_COUNT; rank++) {
        json_array_foreach(items, i, n)
        {
            struct libscols_line *line = status_of(n, "gate") == rank ? table_line(table) : NULL;
            for (size_t k = 0; line != NULL && k < key_count; k++) {
                /* the audit has not looked: the mesh tells how it is now */
                const bool now = strcmp(keys[k], "connectivity") == 0 &&
                                 json_is_true(json_object_get(n, "connectivity_now"));
                table_put(line, k,
                          text_format("%s%s", api_text(n, keys[k]), now ? " now" : "").text);
            }
            counts[rank] += line != NULL;
        }
    }
    if (table != NULL) {
        table_show(table, stdout);
    }
    printf("gate, may a host take a job:");
    for (int rank = 0; rank < AUDIT_STATUS_COUNT; rank++) {
        if (counts[rank] > 0) {
            printf("%s %zu %s", between, counts[rank], audit_status_name((enum audit_status)rank));
            between = ",";
        }
    }
    puts("");
}

static int nodes(struct api *api, const char *id)
{
    static const char *const titles[] = {"HOST",        "STATUS", "AGENT NOW", "NIC",
                                         "INITIALIZED", "ACTIVE", "GID INDEX", "CONNECTIVITY",
                                         "GATE",        NULL};
    static const char *const keys[] = {"host",   "status",    "agent",        "nic", "initialized",
                                       "active", "gid_index", "connectivity", "gate"};
    json_t *items = NULL;
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "/api/v1/audit/runs/%.24s/nodes?limit=1000", id);
    const int status = api_ask_pages(api, path, &items);
    if (status == EXIT_WELL && api->json) {
        json_dumpf(items, stdout, JSON_COMPACT);
        putchar('\n');
    } else if (status == EXIT_WELL) {
        print_nodes(items, titles, keys, sizeof(keys) / sizeof(keys[0]));
    }
    json_decref(items);
    return status;
}

static int runs(struct api *api)
{
    static const char *const titles[] = {"RUN",    "BEGAN",     "STATE", "WHO",
                                         ">HOSTS", ">NOT READ", NULL};
    size_t i;
    json_t *r;
    const int status = api_ask(api, "GET", "/api/v1/audit/runs", NULL);

    if (status != EXIT_WELL || api->json) {
        if (status == EXIT_WELL) {
            api_print(api);
        }
        return status;
    }
    struct libscols_table *table = table_new(titles);
    json_array_foreach(json_object_get(api->answer, "items"), i, r)
    {
        struct libscols_line *line = table != NULL ? table_line(table) : NULL;
        if (line != NULL) {
            table_put(line, 0, api_text(r, "run"));
            table_put(line, 1, field_time(r, "started_utc_ns").text);
            table_put(line, 2, api_text(r, "state"));
            table_put(line, 3, api_text(r, "who"));
            table_put(line, 4, api_number_text(r, "hosts").text);
            table_put(line, 5, text_format("%zu", json_array_size(audit_not_read(r))).text);
        }
    }
    if (table != NULL) {
        table_show(table, stdout);
    }
    return status;
}

/* ---- the full matrix ---- */

static void print_sums(const json_t *m)
{
    const char *word;
    json_t *count;
    if (!json_is_integer(json_object_get(m, "rounds"))) { /* a tenant does not get all fields */
        return;
    }
    printf("%s of %s cells measured, %s rounds of %.0f ms", api_number_text(m, "measured").text,
           api_number_text(m, "cells").text, api_number_text(m, "rounds").text,
           (double)json_integer_value(json_object_get(m, "round_us")) / 1000);
    json_object_foreach(json_object_get(m, "unmeasured"), word, count)
    {
        printf("; %lld %s", (long long)json_integer_value(count), word);
    }
    puts("");
}

static struct cell delay_text(const json_t *nic, const char *key)
{
    const json_t *ns = json_object_get(nic, key);
    return json_is_integer(ns) ? text_format("%+.2f us", (double)json_integer_value(ns) / 1000)
                               : text_format("-");
}

static int matrix(struct api *api, const char *id)
{
    static const char *const titles[] = {"HOST",        "NIC",       "LEAF",     "AS NEAR AS",
                                         ">UNMEASURED", ">LOST OUT", ">LOST IN", ">SENDING",
                                         ">RECEIVING",  NULL};
    char path[PATH_SIZE];
    json_t *n;
    size_t i;

    snprintf(path, sizeof(path), "/api/v1/audit/runs/%.24s/matrix", id);
    const int status = api_ask(api, "GET", path, NULL);
    if (status != EXIT_WELL || api->json) {
        if (status == EXIT_WELL) {
            api_print(api);
        }
        return status;
    }
    print_sums(api->answer);
    struct libscols_table *table = table_new(titles);
    json_array_foreach(json_object_get(api->answer, "nics"), i, n)
    {
        struct libscols_line *line = table != NULL ? table_line(table) : NULL;
        if (line != NULL) {
            table_put(line, 0, api_text(n, "host"));
            table_put(line, 1, api_text(n, "name"));
            table_put(line, 2, api_text(n, "leaf"));
            table_put(line, 3, api_text(n, "leaf_found"));
            table_put(line, 4, api_number_text(n, "unmeasured").text);
            table_put(line, 5, api_number_text(n, "lost_out").text);
            table_put(line, 6, api_number_text(n, "lost_in").text);
            table_put(line, 7, delay_text(n, "out_ns").text);
            table_put(line, 8, delay_text(n, "in_ns").text);
        }
    }
    if (table != NULL) {
        table_show(table, stdout);
    }
    return status;
}

/* ---- the baseline ---- */

static void print_baseline(const json_t *b)
{
    const char *name = api_text(b, "name");
    /* an older controller does not report it */
    const json_t *measured = json_object_get(b, "measured");
    const bool all = measured == NULL || json_integer_value(measured) >=
                                             json_integer_value(json_object_get(b, "hosts"));

    printf("audit %s of %s, %s hosts%s%s%s, accepted by %s, %s%s%s\n", api_text(b, "run"),
           field_time(b, "started_utc_ns").text, api_number_text(b, "hosts").text,
           all ? "" : " (measurements of ", all ? "" : api_number_text(b, "measured").text,
           all ? "" : " are kept)", api_text(b, "who"), field_time(b, "accepted_utc_ns").text,
           name[0] != '\0' ? ", as " : "", name);
}

static int list_baselines(struct api *api)
{
    size_t i;
    json_t *b;

    if (api->json) {
        api_print(api);
        return EXIT_WELL;
    }
    json_array_foreach(json_object_get(api->answer, "items"), i, b)
    {
        print_baseline(b);
    }
    return EXIT_WELL;
}

/* accept RUN [NAME] | remove RUN | list; without a word: the changes since the baseline. */
static int baseline(struct api *api, int count, char *words[])
{
    static const char path[] = "/api/v1/audit/baselines";
    const char *word = count > 0 ? words[0] : "";
    char one[PATH_SIZE];
    int status;

    if (strcmp(word, "accept") == 0 && (count == 2 || count == 3)) {
        json_t *body = json_pack("{s:s, s:s}", "run", words[1], "name", count == 3 ? words[2] : "");
        status = api_ask_json(api, "POST", path, body);
        return status == EXIT_WELL ? list_baselines(api) : status;
    }
    if (strcmp(word, "remove") == 0 && count == 2) {
        snprintf(one, sizeof(one), "%s/%.24s", path, words[1]);
        status = api_ask(api, "DELETE", one, NULL);
        return status == EXIT_WELL ? list_baselines(api) : status;
    }
    if (count > 1 || (count == 1 && strcmp(word, "list") != 0)) {
        return command_wrong_words("audit", count + 1, words - 1);
    }
    status = api_ask(api, "GET", path, NULL);
    if (status != EXIT_WELL || count == 1) {
        return status == EXIT_WELL ? list_baselines(api) : status;
    }
    const json_t *newest = json_array_get(json_object_get(api->answer, "items"), 0);
    if (newest == NULL) {
        fputs(
            "foliot audit: no audit is accepted; to accept one: foliot audit baseline accept RUN\n",
            stderr);
        return EXIT_UNREACHABLE;
    }
    if (!api->json) {
        print_baseline(newest);
    }
    return audit_print_diff(api, "baseline", "latest");
}

static int stop(struct api *api, const char *id)
{
    char path[PATH_SIZE];

    snprintf(path, sizeof(path), "/api/v1/audit/runs/%.24s", id);
    int status = api_ask(api, "DELETE", path, NULL);
    snprintf(path, sizeof(path), "%.24s", status == EXIT_WELL ? api_text(api->answer, "run") : "");
    /* also after a stop: its results are judged */
    status = status == EXIT_WELL ? follow(api, path) : status;
    if (status == EXIT_WELL && api->json) {
        api_print(api);
    } else if (status == EXIT_WELL) {
        const char *why = json_string_value(json_object_get(api->answer, "why"));
        printf("audit %s: %s\n", api_text(api->answer, "run"),
               why != NULL ? why : "it had ended already");
        audit_print_covered(api->answer);
    }
    return status;
}

static int gate(struct api *api, const char *host, unsigned format)
{
    char path[PATH_SIZE];
    struct audit_gate_line line = {.format = format, .status = AUDIT_UNKNOWN};

    snprintf(path, sizeof(path), "/api/v1/audit/hosts/%.80s/gate", host);
    if (api_ask(api, "GET", path, NULL) != EXIT_WELL) {
        return audit_gate_exit(&line); /* without an answer no host passes */
    }
    if (api->json) {
        api_print(api);
    }
    const int status = status_of(api->answer, "status");
    line.status = status < AUDIT_STATUS_COUNT ? (enum audit_status)status : AUDIT_UNKNOWN;
    line.host = api_text(api->answer, "host");
    line.text = api_text(api->answer, "text");
    if (!api->json) {
        audit_gate_print(&line);
    }
    return audit_gate_exit(&line);
}

bool audit_means_fleet(int argc, char *argv[])
{
    static const char *const words[] = {"nodes", "runs", "stop", "diff", "matrix", "baseline"};

    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--fleet") == 0 || strncmp(argv[i], "--controller", 12) == 0) {
            return true;
        }
    }
    for (size_t k = 0; argc > 1 && k < sizeof(words) / sizeof(words[0]); k++) {
        if (strcmp(argv[1], words[k]) == 0) {
            return true;
        }
    }
    return false;
}

static int ask(struct api *api, int count, char *words[], const struct fleet_options *o)
{
    const char *word = count > 0 ? words[0] : "run";

    if (strcmp(word, "run") == 0) {
        return run(api, count > 0 ? count - 1 : 0, words + 1, o);
    }
    if (strcmp(word, "runs") == 0 && count == 1) {
        return runs(api);
    }
    if (strcmp(word, "show") == 0 && count <= 2) {
        return show_run_of(api, &o->files, count == 2 ? words[1] : "latest");
    }
    if (strcmp(word, "nodes") == 0 && count <= 2) {
        return nodes(api, count == 2 ? words[1] : "latest");
    }
    if (strcmp(word, "matrix") == 0 && count <= 2) {
        return matrix(api, count == 2 ? words[1] : "latest");
    }
    if (strcmp(word, "stop") == 0 && count == 2) {
        return stop(api, words[1]);
    }
    if (strcmp(word, "diff") == 0 && count == 3) {
        return audit_print_diff(api, words[1], words[2]);
    }
    if (strcmp(word, "baseline") == 0) {
        return baseline(api, count - 1, words + 1);
    }
    if (strcmp(word, "test") == 0 && count == 2) {
        struct audit_options tried = o->tried;
        tried.json = api->json;
        return audit_try_fleet(api, &tried, o->since_ns, words[1]);
    }
    if (strcmp(word, "gate") == 0 && count == 2) {
        return gate(api, words[1], o->format);
    }
    return command_wrong_words("audit", count, words);
}

int audit_fleet(int argc, char *argv[])
{
    static const char *const formats[] = {"text", "json", "slurm", "nagios", "npd", NULL};
    struct api api;
    /* the controller keeps sheets so long */
    struct fleet_options o = {.since_ns = 8 * 86400 * NS_PER_S};
    const struct option_entry own[] = {
        {"fleet", 0, OPTION_FLAG, &o.fleet},
        {"format", 0, OPTION_CHOICE, &o.format, .choices = formats},
        {"matrix", 0, OPTION_FLAG, &o.matrix},
        {"bandwidth", 0, OPTION_FLAG, &o.bandwidth},
        {"nccl", 0, OPTION_FLAG, &o.nccl},
        {"ip", 0, OPTION_INT, &o.ip, .least = 4, .most = 6},
        {"junit", 0, OPTION_TEXT, &o.files.junit, .expected = "a file"},
        {"html", 0, OPTION_TEXT, &o.files.html, .expected = "a file"},
        {"config", 0, OPTION_TEXT, &o.tried.config, .expected = "a file as audit.yaml"},
        {"fail", 0, OPTION_TEXT, &o.tried.fail, .expected = "a number"},
        {"warn", 0, OPTION_TEXT, &o.tried.warn, .expected = "a number"},
        {"declared", 0, OPTION_TEXT, &o.tried.declared, .expected = "what is declared"},
        API_SPAN("since", &o.since_ns),
        {0}};

    api_init(&api, "audit");
    const int r = api_parse(&api, own, argc, argv);
    if (r != 0) {
        return r == COMMAND_HELPED ? EXIT_WELL : r;
    }
    api.json = api.json || o.format == 1;
    const int status = ask(&api, argc - api.first, argv + api.first, &o);
    api_done(&api);
    return status;
}
