/* foliot_changes.c: `foliot changes`: the fleet's events, oldest first, from the controller's history.
 *
 * Events that belong together are one line: if many hosts have the same event within seconds, one line names them all.
 * Findings are left out, because their incident is listed; --all lists everything. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/foliot_api.h"
#include "app/foliot_foreign.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"
#include "base/time.h"

enum { EVENTS_MAX = 20000, NAMED_MAX = 16 };
#define TOGETHER_NS (5 * NS_PER_S)

/* ---- one event in words ---- */

struct words {
    char text[640];
};

static const char *string_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

/* Appends " by admin: a lower limit is tried". */
static void who_and_why(struct words *w, const json_t *detail)
{
    const size_t used = strlen(w->text);
    const char *who = string_of(detail, "who"), *why = string_of(detail, "why");
    snprintf(w->text + used, sizeof(w->text) - used, "%s%s%s%s", *who != 0 ? " by " : "", who,
             *why != 0 ? ": " : "", why);
}

/* Appends ": flap_limit: 6, beat: 1s". */
static void settings_of(struct words *w, const json_t *detail, const json_t *versions)
{
    size_t i, used = strlen(w->text);
    json_t *v;
    json_array_foreach(versions, i, v)
    {
        if (!json_equal(json_object_get(v, "version"), json_object_get(detail, "version"))) {
            continue;
        }
        const char *separator = "; settings: ";
        for (const char *line = string_of(v, "text"); *line != 0;) {
            const size_t size = strcspn(line, "\n");
            if (size > 0 && line[0] != '#' && used < sizeof(w->text)) {
                used += (size_t)snprintf(w->text + used, sizeof(w->text) - used, "%s%.*s",
                                         separator, (int)size, line);
                separator = ", ";
            }
            line += size + (line[size] != 0);
        }
    }
}

static void controller_words(struct words *w, const char *word, const json_t *detail,
                             const json_t *versions)
{
    static const char *const config[][2] = {
        {"config-applied", "was applied"},
        {"config-tried", "is on trial on some hosts"},
        {"config-taken-back", "was taken back"},
    };
    for (size_t i = 0; i < 3; i++) {
        if (strcmp(word, config[i][0]) == 0) {
            snprintf(w->text, sizeof(w->text), "configuration, version %s, %s",
                     api_number_text(detail, "version").text, config[i][1]);
            who_and_why(w, detail);
            settings_of(w, detail, versions);
            return;
        }
    }
    if (strncmp(word, "level-", 6) == 0) {
        snprintf(w->text, sizeof(w->text), "service level %s: %s", string_of(detail, "level"),
                 word + 6);
    } else if (strncmp(word, "observe-", 8) == 0) {
        snprintf(w->text, sizeof(w->text), "observe was switched %s", word + 8);
        who_and_why(w, detail);
    } else {
        snprintf(w->text, sizeof(w->text), "%s %s %s", word, string_of(detail, "kind"),
                 string_of(detail, "host"));
    }
}

static void host_words(struct words *w, const char *word, const json_t *detail)
{
    static const char *const plain[][2] = {
        {"removed", "was removed from the fleet"},
        {"agent-started", "its agent started"},
        {"silent", "fell silent"},
        {"heard", "reports again"},
        {"history-gap", "some of its reports are missing"},
        {"reports-lost", "some of its reports were lost"},
        {"report-refused", "one of its reports was refused"},
        {"over-quota", "it sends more than its quota"},
    };
    snprintf(w->text, sizeof(w->text), "%s", word);
    for (size_t i = 0; i < ARRAY_COUNT(plain); i++) {
        if (strcmp(word, plain[i][0]) == 0) {
            snprintf(w->text, sizeof(w->text), "%s", plain[i][1]);
        }
    }
    if (strcmp(word, "fact-changed") == 0) {
        const char *subject = string_of(detail, "subject"), *was = string_of(detail, "was"),
                   *is = string_of(detail, "is");
        snprintf(w->text, sizeof(w->text), "%s%s%s: %.200s → %.200s", string_of(detail, "fact"),
                 *subject != 0 ? " " : "", subject, *was != 0 ? was : "none",
                 *is != 0 ? is : "none");
    }
    if (strcmp(word, "joined") == 0) {
        snprintf(w->text, sizeof(w->text), "joined the fleet, with %s NICs",
                 api_number_text(detail, "nics").text);
    }
}

static struct words words_of(const json_t *event, const json_t *versions)
{
    const json_t *detail = json_object_get(event, "detail");
    const char *kind = string_of(event, "kind"), *word = string_of(event, "word");
    const char *text = string_of(detail, "text");
    struct words w = {""};
    if (strcmp(kind, "incident") == 0) {
        snprintf(w.text, sizeof(w.text), "incident %s (%s) %s: %s",
                 api_number_text(detail, "incident").text, string_of(detail, "severity"), word,
                 string_of(detail, "cause"));
    } else if (strcmp(kind, "finding") == 0) {
        snprintf(w.text, sizeof(w.text), "%s: %s", string_of(detail, "phase"), text);
    } else if (strcmp(kind, "host") == 0) {
        host_words(&w, word, detail);
    } else if (*text != 0) {
        snprintf(w.text, sizeof(w.text), "%s", text);
    } else if (strcmp(kind, "controller") == 0) {
        controller_words(&w, word, detail, versions);
    } else {
        snprintf(w.text, sizeof(w.text), "%s", word);
    }
    return w;
}

/* ---- several events on one line ---- */

/* Events with the same text here are shown together; NULL: this one is shown alone. */
static const char *together_by(const json_t *event)
{
    const char *kind = string_of(event, "kind");
    return strcmp(kind, "host") == 0  ? ""
           : strcmp(kind, "job") == 0 ? string_of(json_object_get(event, "detail"), "job")
                                      : NULL;
}

static bool within(const json_t *a, const json_t *b)
{
    return b == NULL || json_integer_value(json_object_get(b, "at_utc_ns")) -
                                json_integer_value(json_object_get(a, "at_utc_ns")) <=
                            TOGETHER_NS;
}

static bool is_same(const json_t *a, const json_t *b)
{
    const char *by = together_by(a), *other = together_by(b);
    return by != NULL && other != NULL && strcmp(by, other) == 0 &&
           strcmp(string_of(a, "kind"), string_of(b, "kind")) == 0 &&
           strcmp(string_of(a, "word"), string_of(b, "word")) == 0;
}

/* "host0, host1 and 6 more" */
static void name_hosts(const char *const hosts[], size_t count, FILE *out)
{
    for (size_t i = 0; i < count && i < NAMED_MAX; i++) {
        fprintf(out, "%s%s", i > 0 ? ", " : "", hosts[i]);
    }
    if (count > NAMED_MAX) {
        fprintf(out, " and %zu more", count - NAMED_MAX);
    }
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static size_t hosts_of(json_t *const events[], size_t count, const char *ret_hosts[])
{
    size_t hosts = 0;
    for (size_t i = 0; i < count; i++) {
        const char *host = string_of(events[i], "host");
        bool known = *host == 0;
        for (size_t k = 0; k < hosts; k++) {
            known = known || strcmp(ret_hosts[k], host) == 0;
        }
        if (!known) {
            ret_hosts[hosts++] = host;
        }
    }
    qsort(ret_hosts, hosts, sizeof(ret_hosts[0]), by_name);
    return hosts;
}

static void print_group(json_t *const events[], size_t count, const json_t *versions)
{
    static const char *hosts[EVENTS_MAX];
    const char *job = string_of(json_object_get(events[0], "detail"), "job");
    const size_t host_count = hosts_of(events, count, hosts);
    const bool of_job = strcmp(string_of(events[0], "kind"), "job") == 0;
    struct words w = words_of(events[0], versions);
    printf("%s%s%s  ", colour_begin(stdout, COLOUR_DIM),
           text_time(json_integer_value(json_object_get(events[0], "at_utc_ns"))).text,
           colour_end(stdout));
    if (of_job && count > 1) {
        printf("job %s: %zu times %s, on ", job, count, string_of(events[0], "word"));
        name_hosts(hosts, host_count, stdout);
        printf("; the first: %s", w.text);
    } else if (host_count > 1) {
        name_hosts(hosts, host_count, stdout);
        printf(": %s", w.text);
    } else {
        printf("%s%s%s", of_job || host_count == 0 ? "" : hosts[0],
               of_job || host_count == 0 ? "" : ": ", w.text);
    }
    putchar('\n');
}

/* ---- the command ---- */

struct wishes {
    int64_t since_ns;
    const char *host;
    bool all;
};

/* True if an incident covers the event, or if nothing changed. */
static bool is_detail(const json_t *event)
{
    const char *word = string_of(event, "word"), *kind = string_of(event, "kind");
    return strcmp(kind, "finding") == 0 ||
           (strcmp(kind, "controller") == 0 && strncmp(word, "measure", 7) == 0) ||
           (strcmp(kind, "incident") == 0 &&
            (strcmp(word, "repeated") == 0 || strcmp(word, "absorbed") == 0));
}

/* Collects events, newest first, as the API sends them. */
static int collect(struct api *a, const struct wishes *w, json_t *all)
{
    char path[300], cursor[32] = "";
    struct timespec now;
    int status = EXIT_WELL;
    clock_gettime(CLOCK_REALTIME, &now);
    const int64_t since = (int64_t)now.tv_sec * NS_PER_S - w->since_ns;
    for (bool more = true; more && status == EXIT_WELL && json_array_size(all) < EVENTS_MAX;) {
        snprintf(path, sizeof(path), "/api/v1/events?limit=1000&since_utc_ns=%lld%s%.20s%s%.64s",
                 (long long)(since > 0 ? since : 0), cursor[0] != 0 ? "&cursor=" : "", cursor,
                 w->host != NULL ? "&host=" : "", w->host != NULL ? w->host : "");
        status = api_ask(a, "GET", path, NULL);
        const char *next = json_string_value(json_object_get(a->answer, "next"));
        json_array_extend(all, json_object_get(a->answer, "items"));
        more = next != NULL;
        snprintf(cursor, sizeof(cursor), "%.20s", more ? next : "");
    }
    return status;
}

static void print_all(json_t *all, const struct wishes *w, const json_t *versions)
{
    static json_t *shown[EVENTS_MAX], *group[EVENTS_MAX];
    size_t count = 0;
    for (size_t i = json_array_size(all); i-- > 0 && count < EVENTS_MAX;) {
        json_t *event = json_array_get(all, i);
        if (w->all || !is_detail(event)) {
            shown[count++] = event;
        }
    }
    for (size_t i = 0; i < count; i++) {
        size_t size = 0;
        if (shown[i] == NULL) {
            continue; /* printed already */
        }
        for (size_t k = i; k < count && (k == i || within(shown[i], shown[k])); k++) {
            if (k == i || (!w->all && shown[k] != NULL && is_same(shown[i], shown[k]))) {
                group[size++] = shown[k];
                shown[k] = k == i ? shown[k] : NULL;
            }
        }
        print_group(group, size, versions);
    }
    if (count == 0) {
        puts("nothing changed during this time");
    }
}

static bool has_config(const json_t *all)
{
    size_t i;
    json_t *event;
    json_array_foreach(all, i, event)
    {
        if (strncmp(string_of(event, "word"), "config-", 7) == 0) {
            return true;
        }
    }
    return false;
}

/* Refuses an unknown host: a typing error would look like a quiet host. */
static int check_host(struct api *a, const char *host)
{
    const size_t known =
        strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
    char path[128];
    int status = EXIT_USAGE;

    if (*host != 0 && host[known] == 0) {
        snprintf(path, sizeof(path), "/api/v1/hosts/%.64s", host);
        status = api_ask(a, "GET", path, NULL);
    }
    if (status == EXIT_USAGE) {
        fprintf(stderr,
                "foliot changes: --host: expected a host of the fleet, found '%s'; foliot host "
                "list has them\n",
                host);
    }
    return status;
}

static int show(struct api *a, const struct wishes *w)
{
    json_t *all = json_array();
    int status = w->host != NULL ? check_host(a, w->host) : EXIT_WELL;
    status = status == EXIT_WELL ? collect(a, w, all) : status;
    if (status == EXIT_WELL && a->json) {
        json_t *whole = json_pack("{s:O,s:n}", "items", all, "next");
        foreign_print(whole, stdout);
        json_decref(whole);
    } else if (status == EXIT_WELL) {
        /* a tenant may not see the versions: then their texts are left out */
        a->lines = "text";
        const bool fleet =
            has_config(all) && api_ask(a, "GET", "/api/v1/config/versions", NULL) == EXIT_WELL;
        print_all(all, w, fleet ? json_object_get(a->answer, "items") : NULL);
    }
    json_decref(all);
    return status;
}

int command_changes(int argc, char *argv[])
{
    struct wishes w = {.since_ns = 3600 * NS_PER_S};
    struct api api;
    api_init(&api, "changes");
    const int r = api_parse(&api,
                            (const struct option_entry[]){API_SPAN("since", &w.since_ns),
                                                          {"host", 0, OPTION_TEXT, &w.host},
                                                          {"all", 0, OPTION_FLAG, &w.all},
                                                          {0}},
                            argc, argv);
    if (r != 0) {
        return r == COMMAND_HELPED ? EXIT_WELL : r;
    }
    if (api.first < argc) {
        return command_wrong_words("changes", argc - api.first, argv + api.first);
    }
    const int status = show(&api, &w);
    api_done(&api);
    return status;
}
