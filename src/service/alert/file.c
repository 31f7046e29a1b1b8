/* file.c: parses alerts.yaml into structs; file_rule.c parses rules. */
#include "service/alert/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "service/alert/file_internal.h"

#define YEAR_NS (366LL * 86400 * NS_PER_S)

int file_span(const struct config_node *map, const char *key, struct span *value,
              struct config_error *error)
{
    return config_span(map, key, span_ns(0), span_ns(YEAR_NS), value, error);
}

/* Reads a secret from the first line of a file. No message shows the secret. */
static int secret(const struct config_node *map, const char *key, char *text, size_t size,
                  struct config_error *error)
{
    const char *path = NULL;
    int r = config_string(map, key, &path, error);

    if (r < 0 || path == NULL) {
        return r;
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    ssize_t n = fd < 0 ? -1 : read(fd, text, size);
    r = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (n < 0) {
        return config_fail(config_get(map, key), error,
                           "expected a readable file, found '%.100s': %s", path, strerror(r));
    }
    if ((size_t)n == size) {
        explicit_bzero(text, size);
        return config_fail(config_get(map, key), error, "expected a file of less than %zu bytes",
                           size);
    }
    text[n] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (text[0] == '\0') {
        return config_fail(config_get(map, key), error,
                           "expected a secret in '%.100s', found an empty line", path);
    }
    return 0;
}

static int either(const struct config_node *map, const char *key, const char *file_key, char *text,
                  size_t size, struct config_error *error)
{
    if (config_get(map, key) != NULL && config_get(map, file_key) != NULL) {
        return config_fail(config_get(map, file_key), error,
                           "expected one of '%s' and '%s', found both", key, file_key);
    }
    return config_get(map, file_key) != NULL ? secret(map, file_key, text, size, error)
                                             : config_copy(map, key, text, size, error);
}

/* ---- receivers -------------------------------------------------------------------------------------------------- */

static int check_url(const struct config_node *map, const struct alert_receiver *r,
                     const char *const *schemes, const char *words, struct config_error *error)
{
    for (; *schemes != NULL; schemes++) {
        if (strncmp(r->url, *schemes, strlen(*schemes)) == 0 && strlen(r->url) > strlen(*schemes)) {
            return 0;
        }
    }
    return config_fail(map, error, "expected %s, found %s", words,
                       r->url[0] == '\0' ? "none" : "a URL of another kind");
}

static int load_http(const struct config_node *map, struct alert_receiver *receiver,
                     struct config_error *error)
{
    static const char *const keys[] = {"url",       "url_file", "authorization_file",
                                       "authority", "timeout",  NULL};
    static const char *const schemes[] = {"http://", "https://", NULL};
    int r = config_allow(map, keys, error);

    r = r < 0 ? r : either(map, "url", "url_file", receiver->url, sizeof(receiver->url), error);
    r = r < 0 ? r
              : check_url(map, receiver, schemes, "a 'url' or 'url_file' with http:// or https://",
                          error);
    r = r < 0 ? r
              : secret(map, "authorization_file", receiver->authorization,
                       sizeof(receiver->authorization), error);
    r = r < 0 ? r
              : config_copy(map, "authority", receiver->authority, sizeof(receiver->authority),
                            error);
    return r < 0
               ? r
               : config_span(map, "timeout", span_ms(100), span_s(300), &receiver->timeout, error);
}

/* The address goes into SMTP commands and a header. So it may hold no character that ends either. */
static int check_address(const struct config_node *node, const char *text,
                         struct config_error *error)
{
    const char *at = strchr(text, '@');

    if (at == NULL || at == text || at[1] == '\0' || strpbrk(text, " \t\r\n<>,;\"") != NULL) {
        return config_expected(node, error, "an address like ops@example.org");
    }
    return 0;
}

static int load_email(const struct config_node *map, struct alert_receiver *receiver,
                      struct config_error *error)
{
    static const char *const keys[] = {"server",        "from",      "to",      "user",
                                       "password_file", "authority", "timeout", NULL};
    static const char *const schemes[] = {"smtp://", "smtps://", NULL};
    const struct config_node *to = NULL, *from = NULL;
    int r = config_allow(map, keys, error);

    r = r < 0 ? r : config_copy(map, "server", receiver->url, sizeof(receiver->url), error);
    r = r < 0 ? r : check_url(map, receiver, schemes, "a 'server' with smtp:// or smtps://", error);
    r = r < 0 ? r : config_require(map, "from", &from, error);
    r = r < 0 ? r : config_copy(map, "from", receiver->from, sizeof(receiver->from), error);
    r = r < 0 ? r : check_address(from, receiver->from, error);
    r = r < 0 ? r : config_require(map, "to", &to, error);
    if (r == 0 && (config_kind(to) != CONFIG_LIST || config_count(to) == 0 ||
                   config_count(to) > ALERT_ADDRESS_MAX)) {
        r = config_expected(to, error, "a list of 1 to %d addresses", ALERT_ADDRESS_MAX);
    }
    for (const struct config_node *n = r == 0 ? config_first(to) : NULL; n != NULL && r == 0;
         n = config_next(n)) {
        const char *text = NULL;
        r = config_node_string(n, &text, error);
        r = r < 0 ? r : check_address(n, text, error);
        if (r == 0) {
            snprintf(receiver->to[receiver->to_count++], sizeof(receiver->to[0]), "%.255s", text);
        }
    }
    r = r < 0 ? r : config_copy(map, "user", receiver->user, sizeof(receiver->user), error);
    r = r < 0 ? r
              : secret(map, "password_file", receiver->password, sizeof(receiver->password), error);
    r = r < 0 ? r
              : config_copy(map, "authority", receiver->authority, sizeof(receiver->authority),
                            error);
    return r < 0
               ? r
               : config_span(map, "timeout", span_ms(100), span_s(300), &receiver->timeout, error);
}

static int load_command(const struct config_node *node, struct alert_receiver *receiver,
                        struct config_error *error)
{
    if (config_kind(node) != CONFIG_LIST || config_count(node) == 0 ||
        config_count(node) > ALERT_ARGUMENT_MAX) {
        return config_expected(node, error, "a list of a program and its arguments, at most %d",
                               ALERT_ARGUMENT_MAX);
    }
    for (const struct config_node *n = config_first(node); n != NULL; n = config_next(n)) {
        const char *text = NULL;
        const int r = config_node_string(n, &text, error);
        if (r < 0) {
            return r;
        }
        if (strlen(text) >= sizeof(receiver->arguments[0]) ||
            (receiver->argument_count == 0 && text[0] != '/')) {
            return config_expected(n, error,
                                   receiver->argument_count == 0
                                       ? "a program's whole path"
                                       : "an argument of at most 255 characters");
        }
        snprintf(receiver->arguments[receiver->argument_count++], sizeof(receiver->arguments[0]),
                 "%s", text);
    }
    return 0;
}

static int load_receiver(struct alert_file *file, const struct config_node *map,
                         struct config_error *error)
{
    static const char *const keys[] = {"name",  "webhook", "alertmanager", "email",
                                       "slack", "command", "resolved",     NULL};
    static const char *const kinds[] = {"webhook", "alertmanager", "email", "slack", "command"};
    struct alert_receiver *receiver = &file->receivers[file->receiver_count];
    const struct config_node *name = NULL, *found = NULL;
    int r = config_allow(map, keys, error);

    memset(receiver, 0, sizeof(*receiver));
    receiver->timeout = span_s(10);
    receiver->resolved = true;
    r = r < 0 ? r : config_require(map, "name", &name, error);
    r = r < 0 ? r : config_copy(map, "name", receiver->name, sizeof(receiver->name), error);
    r = r < 0 ? r : config_bool(map, "resolved", &receiver->resolved, error);
    for (size_t k = 0; k < file->receiver_count && r == 0; k++) {
        if (strcmp(file->receivers[k].name, receiver->name) == 0) {
            r = config_expected(name, error, "a name that no other receiver has");
        }
    }
    for (uint32_t k = 0; k < ARRAY_COUNT(kinds) && r == 0; k++) {
        const struct config_node *node = config_get(map, kinds[k]);
        if (node != NULL && found != NULL) {
            return config_fail(node, error, "expected one kind of receiver, found '%s' and '%s'",
                               config_key(found), kinds[k]);
        }
        if (node != NULL) {
            found = node;
            receiver->kind = k;
        }
    }
    if (r == 0 && found == NULL) {
        r = config_expected(map, error,
                            "a receiver with one of: webhook alertmanager email slack command");
    }
    if (r < 0) {
        return r;
    }
    r = receiver->kind == RECEIVER_COMMAND ? load_command(found, receiver, error)
        : receiver->kind == RECEIVER_EMAIL ? load_email(found, receiver, error)
                                           : load_http(found, receiver, error);
    file->receiver_count += r == 0;
    return r;
}

/* ---- routes ----------------------------------------------------------------------------------------------------- */

static int receivers_in(const struct alert_file *file, const struct config_node *map, uint32_t *ret,
                        struct config_error *error)
{
    const struct config_node *list = NULL;
    int r = config_require(map, "to", &list, error);

    if (r == 0 && (config_kind(list) != CONFIG_LIST || config_count(list) == 0)) {
        r = config_expected(list, error, "a list of receivers");
    }
    for (const struct config_node *n = r == 0 ? config_first(list) : NULL; n != NULL && r == 0;
         n = config_next(n)) {
        const char *name = NULL;
        size_t k = 0;
        r = config_node_string(n, &name, error);
        while (r == 0 && k < file->receiver_count && strcmp(file->receivers[k].name, name) != 0) {
            k++;
        }
        if (r == 0 && k == file->receiver_count) {
            r = config_expected(n, error, "the name of a receiver above");
        }
        *ret |= r == 0 ? 1u << k : 0;
    }
    return r;
}

static int load_route(struct alert_file *file, const struct config_node *map,
                      struct config_error *error)
{
    static const char *const keys[] = {"severity", "to", "repeat", "escalate", NULL};
    static const char *const step_keys[] = {"after", "to", NULL};
    static const char *const severities[] = {"info", "warning", "page", NULL};
    struct alert_route *route = &file->routes[file->route_count];
    const struct config_node *steps = config_get(map, "escalate");
    int severity = ALERT_WARNING;
    int r = config_allow(map, keys, error);

    memset(route, 0, sizeof(*route));
    r = r < 0 ? r : config_choice(map, "severity", severities, &severity, error);
    r = r < 0 ? r : receivers_in(file, map, &route->receivers, error);
    r = r < 0 ? r : file_span(map, "repeat", &route->repeat, error);
    route->severity = (uint32_t)severity;
    if (r == 0 && steps != NULL &&
        (config_kind(steps) != CONFIG_LIST || config_count(steps) > ALERT_STEP_MAX)) {
        r = config_expected(steps, error, "a list of at most %d steps", ALERT_STEP_MAX);
    }
    for (const struct config_node *n = r == 0 && steps != NULL ? config_first(steps) : NULL;
         n != NULL && r == 0; n = config_next(n)) {
        struct span after = {0};
        const struct config_node *place = NULL;
        r = config_allow(n, step_keys, error);
        r = r < 0 ? r : config_require(n, "after", &place, error);
        r = r < 0 ? r : config_span(n, "after", span_s(1), span_ns(YEAR_NS), &after, error);
        r = r < 0 ? r : receivers_in(file, n, &route->steps[route->step_count].receivers, error);
        if (r == 0 && route->step_count > 0 &&
            after.ns <= route->steps[route->step_count - 1].after.ns) {
            r = config_expected(place, error, "a time after the step before");
        }
        if (r == 0) {
            route->steps[route->step_count++].after = after;
        }
    }
    file->route_count += r == 0;
    return r;
}

/* ---- maintenance ------------------------------------------------------------------------------------------------ */

/* "2026-11-24T02:00:00Z", or without seconds. */
static bool parse_utc(const char *text, int64_t *ret_ns)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M", &tm);

    if (rest != NULL && *rest == ':') {
        rest = strptime(rest, ":%S", &tm);
    }
    if (rest == NULL || strcmp(rest, "Z") != 0 || tm.tm_year < 100 || tm.tm_year > 300) {
        return false;
    }
    const struct tm said = tm;
    *ret_ns = (int64_t)timegm(&tm) * NS_PER_S;
    return tm.tm_mon == said.tm_mon && tm.tm_mday == said.tm_mday; /* refuses 31 February */
}

static int load_window(struct alert_file *file, const struct config_node *map,
                       struct config_error *error)
{
    static const char *const keys[] = {"name", "hosts", "elements", "rules",
                                       "from", "lasts", "every",    NULL};
    struct alert_silence *w = &file->windows[file->window_count];
    char *name = file->window_names[file->window_count];
    const struct config_node *from = NULL, *lasts = NULL;
    const char *text = NULL;
    struct span length = {0};
    int r = config_allow(map, keys, error);

    memset(w, 0, sizeof(*w));
    w->id = (1ULL << 53) - 1 - file->window_count; /* people's silences have other ids */
    w->maintenance = true;
    r = r < 0 ? r : config_copy(map, "name", name, ALERT_NAME_MAX, error);
    r = r < 0 ? r : config_copy(map, "hosts", w->match.host, sizeof(w->match.host), error);
    r = r < 0 ? r : config_copy(map, "elements", w->match.element, sizeof(w->match.element), error);
    r = r < 0 ? r : config_copy(map, "rules", w->match.rule, sizeof(w->match.rule), error);
    if (r == 0 && w->match.host[0] == '\0' && w->match.element[0] == '\0' &&
        w->match.rule[0] == '\0') {
        r = config_expected(map, error, "a window with hosts, elements or rules (\"*\": all)");
    }
    r = r < 0 ? r : config_require(map, "from", &from, error);
    r = r < 0 ? r : config_node_string(from, &text, error);
    if (r == 0 && !parse_utc(text, &w->from_utc_ns)) {
        r = config_expected(from, error, "a time like 2026-11-24T02:00Z");
    }
    r = r < 0 ? r : config_require(map, "lasts", &lasts, error);
    r = r < 0 ? r : config_span(map, "lasts", span_s(1), span_ns(YEAR_NS), &length, error);
    r = r < 0 ? r : file_span(map, "every", &w->every, error);
    if (r == 0 && w->every.ns > 0 && w->every.ns < length.ns) {
        r = config_expected(config_get(map, "every"), error, "a time that is longer than 'lasts'");
    }
    w->until_utc_ns = w->from_utc_ns + length.ns;
    file->window_count += r == 0;
    return r;
}

/* ---- the file --------------------------------------------------------------------------------------------------- */

typedef int (*load_function)(struct alert_file *file, const struct config_node *map,
                             struct config_error *error);

static int load_list(struct alert_file *file, const struct config_node *root, const char *key,
                     size_t max, load_function load, struct config_error *error)
{
    const struct config_node *list = config_get(root, key);
    int r = 0;

    if (list == NULL) {
        return 0;
    }
    if (config_kind(list) != CONFIG_LIST || config_count(list) > max) {
        return config_expected(list, error, "a list of at most %zu", max);
    }
    for (const struct config_node *n = config_first(list); n != NULL && r == 0;
         n = config_next(n)) {
        r = config_kind(n) == CONFIG_MAP ? load(file, n, error)
                                         : config_expected(n, error, "a map");
    }
    return r;
}

/* A rule replaces the default rule of its name. Two rules of one name in a file are an error. */
static int check_rule_names(const struct config_node *list, struct config_error *error)
{
    for (const struct config_node *n = list != NULL ? config_first(list) : NULL; n != NULL;
         n = config_next(n)) {
        const struct config_node *name = config_get(n, "name");
        for (const struct config_node *k = config_first(list); k != n; k = config_next(k)) {
            if (strcmp(config_text(config_get(k, "name")), config_text(name)) == 0) {
                return config_fail(name, error, "expected each rule once, found '%s' again",
                                   config_text(name));
            }
        }
    }
    return 0;
}

static int load_engine(struct alert_file *file, const struct config_node *root,
                       struct config_error *error)
{
    static const char *const keys[] = {"keep",   "reopen", "repage",  "together", "grace",
                                       "silent", "blind",  "promote", NULL};
    const struct config_node *map = config_get(root, "engine");
    int64_t promote = 0;

    if (map == NULL) {
        return 0;
    }
    int r = config_allow(map, keys, error);
    r = r < 0 ? r : file_span(map, "keep", &file->keep, error);
    r = r < 0 ? r : file_span(map, "reopen", &file->reopen, error);
    r = r < 0 ? r : file_span(map, "repage", &file->repage, error);
    r = r < 0 ? r : file_span(map, "together", &file->together, error);
    r = r < 0 ? r : file_span(map, "grace", &file->grace, error);
    r = r < 0 ? r : file_span(map, "silent", &file->silent, error);
    r = r < 0 ? r : file_span(map, "blind", &file->blind, error);
    r = r < 0 ? r : config_int(map, "promote", 2, 1000, &promote, error);
    file->promote = (uint32_t)promote;
    return r;
}

static int load_deadman(struct alert_file *file, const struct config_node *root,
                        struct config_error *error)
{
    static const char *const keys[] = {"every", "to", NULL};
    const struct config_node *map = config_get(root, "deadman");

    if (map == NULL) {
        return 0;
    }
    int r = config_allow(map, keys, error);
    file->heartbeat = span_s(60);
    r = r < 0 ? r : config_span(map, "every", span_s(1), span_s(86400), &file->heartbeat, error);
    return r < 0 ? r : receivers_in(file, map, &file->heartbeat_receivers, error);
}

static int load_root(struct alert_file *file, const struct config_node *root,
                     struct config_error *error)
{
    static const char *const keys[] = {"version", "defaults", "link",        "rules",  "receivers",
                                       "routes",  "deadman",  "maintenance", "engine", NULL};
    int64_t version = 1;
    int r = config_allow(root, keys, error);

    r = r < 0 ? r : config_int(root, "version", 1, 1, &version, error);
    r = r < 0 ? r : config_copy(root, "link", file->link, sizeof(file->link), error);
    r = r < 0 ? r : load_list(file, root, "rules", ALERT_RULE_MAX, file_load_rule, error);
    r = r < 0 ? r : check_rule_names(config_get(root, "rules"), error);
    r = r < 0 ? r : load_list(file, root, "receivers", ALERT_RECEIVER_MAX, load_receiver, error);
    r = r < 0 ? r : load_list(file, root, "routes", ALERT_ROUTE_MAX, load_route, error);
    r = r < 0 ? r : load_list(file, root, "maintenance", ALERT_WINDOW_MAX, load_window, error);
    r = r < 0 ? r : load_engine(file, root, error);
    return r < 0 ? r : load_deadman(file, root, error);
}

static int load_defaults(struct alert_file *file, struct config_error *error)
{
    struct config *config = NULL;
    int r = config_parse("the default rules", alert_default_rules, alert_default_rules_size,
                         &config, error);

    r = r < 0 ? r : load_root(file, config_root(config), error);
    config_free(config);
    return r;
}

static int load_tree(const struct config *config, struct alert_file *ret,
                     struct config_error *error)
{
    bool defaults = true;
    int r = 0;

    memset(ret, 0, sizeof(*ret));
    if (config != NULL && config_kind(config_root(config)) != CONFIG_MAP) {
        return config_expected(config_root(config), error, "a map");
    }
    r = config != NULL ? config_bool(config_root(config), "defaults", &defaults, error) : 0;
    r = r < 0 || !defaults ? r : load_defaults(ret, error);
    return r < 0 || config == NULL ? r : load_root(ret, config_root(config), error);
}

int alert_file_parse(const char *name, const char *text, size_t size, struct alert_file *ret,
                     struct config_error *error)
{
    struct config *config = NULL;
    int r = text != NULL ? config_parse(name, text, size, &config, error) : 0;

    r = r < 0 ? r : load_tree(config, ret, error);
    config_free(config);
    return r;
}

int alert_file_load(const char *path, struct alert_file *ret, struct config_error *error)
{
    struct config *config = NULL;
    int r = config_load(path, &config, error);

    r = r < 0 ? r : load_tree(config, ret, error);
    config_free(config);
    return r;
}

void alert_file_config(const struct alert_file *file, struct alert_config *ret)
{
    *ret = (struct alert_config){
        .rules = file->rules,
        .rule_count = file->rule_count,
        .route_count = file->route_count,
        .keep = file->keep,
        .reopen = file->reopen,
        .repage = file->repage,
        .together = file->together,
        .grace = file->grace,
        .silent = file->silent,
        .blind = file->blind,
        .promote = file->promote,
        .heartbeat = file->heartbeat,
        .heartbeat_receivers = file->heartbeat_receivers,
    };
    memcpy(ret->routes, file->routes, sizeof(ret->routes));
}

int alert_file_find(const struct alert_file *file, const char *name)
{
    for (size_t k = 0; k < file->rule_count; k++) {
        if (strcmp(file->rules[k].name, name) == 0) {
            return (int)k;
        }
    }
    return -1;
}
