/* foliot_alerts.c: `foliot alerts`: incidents, acknowledgements and silences, through the controller's API. It also checks and
 * exports rule files, and tries rules on the past. */
#include "app/foliot_alerts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_show.h"
#include "app/foliot_text.h"
#include "base/time.h"

bool alerts_load(const struct alerts_call *c, struct alert_file *ret)
{
    struct config_error error;
    const int r = c->file != NULL ? alert_file_load(c->file, ret, &error)
                                  : alert_file_parse("the default rules", NULL, 0, ret, &error);

    if (r < 0) {
        fprintf(stderr, "foliot alerts: %s\n", error.text);
    }
    return r == 0;
}

/* ---- views ------------------------------------------------------------------------------------------------------ */

static const char *text_at(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));

    return text != NULL ? text : "–";
}

static int print_json(const struct alerts_call *c, int status)
{
    api_print(&c->api);
    return status;
}

static void put_incident(struct libscols_table *table, const json_t *i)
{
    struct libscols_line *line = table_line(table);
    const json_t *since = json_object_get(i, "since_utc_ns");
    const char *by = json_string_value(json_object_get(i, "acknowledged_by"));

    table_put(
        line, 0,
        text_format("%lld", (long long)json_integer_value(json_object_get(i, "incident"))).text);
    table_put_status(line, 1, text_at(i, "severity"));
    table_put(line, 2,
              json_is_true(json_object_get(i, "silenced")) ? "silenced" : text_at(i, "state"));
    table_put(line, 3, json_is_integer(since) ? text_time(json_integer_value(since)).text : "–");
    table_put(
        line, 4,
        text_format("%lld", (long long)json_integer_value(json_object_get(i, "alerts"))).text);
    table_put(line, 5, by != NULL ? by : "–");
    table_put(line, 6, text_at(i, "cause"));
}

/* Exit status 1: an open incident is neither silenced nor acknowledged. */
static int list(struct alerts_call *c, bool all, bool json)
{
    static const char *const titles[] = {">INCIDENT", "SEVERITY", "STATE", "SINCE",
                                         ">ALERTS",   "ACK BY",   "CAUSE", NULL};
    int status =
        api_ask(&c->api, "GET", all ? "/api/v1/incidents" : "/api/v1/incidents?open=true", NULL);
    size_t index;
    json_t *i;

    if (status != EXIT_WELL || json) {
        return status != EXIT_WELL ? status : print_json(c, status);
    }
    struct libscols_table *table = table_new(titles);
    if (table == NULL) {
        return EXIT_UNREACHABLE;
    }
    json_array_foreach(json_object_get(c->api.answer, "items"), index, i)
    {
        const char *state = text_at(i, "state");
        put_incident(table, i);
        if (!json_is_true(json_object_get(i, "silenced")) && strcmp(state, "resolved") != 0 &&
            strcmp(state, "merged") != 0 && json_is_null(json_object_get(i, "acknowledged_by"))) {
            status = EXIT_NOT_WELL;
        }
    }
    table_show(table, stdout);
    json_array_foreach(json_object_get(c->api.answer, "items"), index, i)
    {
        printf("%lld: %s\n", (long long)json_integer_value(json_object_get(i, "incident")),
               text_at(i, "text"));
    }
    return status;
}

static int acknowledge(struct alerts_call *c, const char *number, bool json)
{
    char path[64], *end = NULL;
    const unsigned long long id = strtoull(number, &end, 10);

    if (*end != '\0' || number[0] < '0' || number[0] > '9') {
        fprintf(stderr, "foliot alerts ack: expected an incident's number, found '%s'\n", number);
        return EXIT_USAGE;
    }
    snprintf(path, sizeof(path), "/api/v1/incidents/%llu", id);
    int status = api_ask(&c->api, "POST", path, "{\"acknowledge\":true}");
    if (status == EXIT_WELL && json) {
        return print_json(c, status);
    }
    if (status == EXIT_WELL) {
        printf("incident %llu is acknowledged by %s: repeats and escalation end\n", id,
               text_at(c->api.answer, "acknowledged_by"));
    }
    return status;
}

struct silence_options {
    const char *rule, *host, *element, *why;
    int64_t for_ns;
    bool maintenance;
};

/* True if the pattern matches one item's `key`, or both of its keys as "host/name". */
static bool fits_one(const json_t *items, const char *key, const char *other, const char *pattern)
{
    size_t i;
    json_t *item;

    json_array_foreach(items, i, item)
    {
        char name[256];
        snprintf(name, sizeof(name), "%s%s%s", field_string(item, key), other != NULL ? "/" : "",
                 other != NULL ? field_string(item, other) : "");
        if (alert_glob(pattern, name)) {
            return true;
        }
    }
    return false;
}

/* Warns of a silence that matches nothing: the person who set it expects no notices. */
static void warn_of_nothing(struct api *api, const char *what, const char *pattern,
                            const char *const lists[][3])
{
    bool fits = pattern == NULL;

    for (size_t k = 0; !fits && lists[k][0] != NULL; k++) {
        json_t *items = NULL;
        /* the API failed: no warning */
        fits = api_ask_pages(api, lists[k][0], &items) != EXIT_WELL ||
               fits_one(items, lists[k][1], lists[k][2], pattern);
        json_decref(items);
    }
    if (!fits) {
        fprintf(stderr,
                "foliot alerts silence: warning: no %s fits '%s' now: the silence is set and "
                "matches nothing\n",
                what, pattern);
    }
}

static void warn_of_nothings(struct api *api, const struct silence_options *o)
{
    static const char *const rules[][3] = {{"/api/v1/alert-rules?", "name", NULL}, {NULL}};
    static const char *const hosts[][3] = {{"/api/v1/hosts?limit=1000", "name", NULL}, {NULL}};
    static const char *const elements[][3] = {{"/api/v1/hosts?limit=1000", "name", NULL},
                                              {"/api/v1/nics?limit=1000", "host", "name"},
                                              {"/api/v1/nics?limit=1000", "leaf", NULL},
                                              {"/api/v1/incidents?", "cause", NULL},
                                              {NULL}};
    warn_of_nothing(api, "rule", o->rule, rules);
    warn_of_nothing(api, "host", o->host, hosts);
    warn_of_nothing(api, "element", o->element, elements);
}

static int silence(struct alerts_call *c, const struct silence_options *o, bool json)
{
    json_t *body = json_pack("{s:I,s:b}", "minutes",
                             (json_int_t)((o->for_ns + 60 * NS_PER_S - 1) / (60 * NS_PER_S)),
                             "maintenance", (int)o->maintenance);
    const char *const keys[] = {"rule", "host", "element", "why"};
    const char *const values[] = {o->rule, o->host, o->element, o->why};

    if (o->rule == NULL && o->host == NULL && o->element == NULL) {
        json_decref(body);
        fputs("foliot alerts silence: expected at least one of --host, --element, --rule, found "
              "none\n",
              stderr);
        return EXIT_USAGE;
    }
    for (size_t k = 0; k < ARRAY_COUNT(keys); k++) {
        if (values[k] != NULL) {
            json_object_set_new(body, keys[k], json_string(values[k]));
        }
    }
    char *text = json_dumps(body, JSON_COMPACT);
    json_decref(body);
    int status =
        text != NULL ? api_ask(&c->api, "POST", "/api/v1/silences", text) : EXIT_UNREACHABLE;
    free(text);
    if (status == EXIT_WELL && json) {
        return print_json(c, status);
    }
    if (status == EXIT_WELL) {
        printf("silence %lld, until %s\n",
               (long long)json_integer_value(json_object_get(c->api.answer, "id")),
               text_time(json_integer_value(json_object_get(c->api.answer, "until_utc_ns"))).text);
        warn_of_nothings(&c->api, o);
    }
    return status;
}

static int silences(struct alerts_call *c, bool json)
{
    const int status = api_ask(&c->api, "GET", "/api/v1/silences", NULL);
    size_t index;
    json_t *s;

    if (status != EXIT_WELL || json) {
        return status != EXIT_WELL ? status : print_json(c, status);
    }
    json_array_foreach(json_object_get(c->api.answer, "items"), index, s)
    {
        printf("%lld: rule %s, host %s, element %s, until %s, by %s: %s\n",
               (long long)json_integer_value(json_object_get(s, "id")), text_at(s, "rule"),
               text_at(s, "host"), text_at(s, "element"),
               text_time(json_integer_value(json_object_get(s, "until_utc_ns"))).text,
               text_at(s, "by"), text_at(s, "why"));
    }
    return status;
}

static int unsilence(struct alerts_call *c, const char *number)
{
    char path[96];

    if (strspn(number, "0123456789") != strlen(number) || strlen(number) > 20) {
        fprintf(stderr, "foliot alerts unsilence: expected a silence's number, found '%s'\n",
                number);
        return EXIT_USAGE;
    }
    snprintf(path, sizeof(path), "/api/v1/silences/%s", number);
    int status = api_ask(&c->api, "DELETE", path, NULL);
    if (status == EXIT_WELL) {
        printf("silence %s is over\n", number);
    }
    return status;
}

static int metrics(void)
{
    for (uint32_t m = ALERT_METRIC_NONE + 1; m < ALERT_METRIC_COUNT; m++) {
        const struct alert_metric_info *info = alert_metric_info(m);
        printf("%-26s per %-5s %-8s %s\n", info->name, alert_scope_word(info->scope),
               info->counter ? "counter" : "value", info->words);
    }
    return EXIT_WELL;
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

struct arguments {
    struct alerts_call call;
    struct silence_options silence;
    int64_t since_ns;
    bool all, prometheus;
};

static int run(struct arguments *a, int count, char **words)
{
    static struct alert_file file;
    struct alerts_call *c = &a->call;

    if (count == 0 || (count == 1 && strcmp(words[0], "list") == 0)) {
        return list(c, a->all, a->call.api.json);
    }
    if (count == 2 && strcmp(words[0], "ack") == 0) {
        return acknowledge(c, words[1], a->call.api.json);
    }
    if (count == 1 && strcmp(words[0], "silence") == 0) {
        return silence(c, &a->silence, a->call.api.json);
    }
    if (count == 1 && strcmp(words[0], "silences") == 0) {
        return silences(c, a->call.api.json);
    }
    if (count == 2 && strcmp(words[0], "unsilence") == 0) {
        return unsilence(c, words[1]);
    }
    if (count == 1 && strcmp(words[0], "metrics") == 0) {
        return metrics();
    }
    if (count == 2 && strcmp(words[0], "check") == 0) {
        c->file = words[1];
        if (!alerts_load(c, &file)) {
            return EXIT_NOT_WELL;
        }
        printf("%s: %zu rules, %zu receivers, %zu routes, %zu maintenance windows\n", words[1],
               file.rule_count, file.receiver_count, file.route_count, file.window_count);
        return EXIT_WELL;
    }
    if (count == 1 && strcmp(words[0], "export") == 0 && a->prometheus) {
        return alerts_load(c, &file) ? alerts_export(&file) : EXIT_NOT_WELL;
    }
    if (count == 2 && strcmp(words[0], "test") == 0) {
        return alerts_load(c, &file) ? alerts_test(c, &file, words[1], a->since_ns) : EXIT_NOT_WELL;
    }
    return command_wrong_words("alerts", count, words);
}

static int parse(struct arguments *a, int argc, char *argv[])
{
    const struct option_entry own[] = {{"all", 0, OPTION_FLAG, &a->all},
                                       {"prometheus", 0, OPTION_FLAG, &a->prometheus},
                                       {"maintenance", 0, OPTION_FLAG, &a->silence.maintenance},
                                       {"file", 0, OPTION_TEXT, &a->call.file},
                                       {"rule", 0, OPTION_TEXT, &a->silence.rule},
                                       {"host", 0, OPTION_TEXT, &a->silence.host},
                                       {"element", 0, OPTION_TEXT, &a->silence.element},
                                       {"why", 0, OPTION_TEXT, &a->silence.why},
                                       API_SPAN("for", &a->silence.for_ns),
                                       API_SPAN("since", &a->since_ns),
                                       {0}};

    return api_parse(&a->call.api, own, argc, argv);
}

int command_alerts(int argc, char *argv[])
{
    struct arguments a = {.silence.for_ns = 2 * 3600 * NS_PER_S, .since_ns = 86400 * NS_PER_S};
    api_init(&a.call.api, "alerts");
    int status = parse(&a, argc, argv);

    status = status < 0   ? EXIT_WELL
             : status > 0 ? status
                          : run(&a, argc - a.call.api.first, argv + a.call.api.first);
    api_done(&a.call.api);
    return status;
}
