/* get.c: walks the tree, and reads values with their types. */
#include "platform/config/tree.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum config_kind config_kind(const struct config_node *node)
{
    return node->kind;
}

unsigned config_line(const struct config_node *node)
{
    return node->line;
}

unsigned config_column(const struct config_node *node)
{
    return node->column;
}

const char *config_file(const struct config_node *node)
{
    return config_name(node->config);
}

size_t config_count(const struct config_node *node)
{
    return node->count;
}

const struct config_node *config_first(const struct config_node *node)
{
    return node->first;
}

const struct config_node *config_next(const struct config_node *node)
{
    return node->next;
}

const char *config_key(const struct config_node *node)
{
    return node->key;
}

const char *config_text(const struct config_node *node)
{
    return node->text;
}

const struct config_node *config_get(const struct config_node *map, const char *key)
{
    if (map == NULL || map->kind != CONFIG_MAP) {
        return NULL;
    }
    for (const struct config_node *n = map->first; n != NULL; n = n->next) {
        if (strcmp(n->key, key) == 0) {
            return n;
        }
    }
    return NULL;
}

/* Describes the value at a node in a few words. */
static void describe(const struct config_node *node, char *text, size_t size)
{
    switch (node->kind) {
    case CONFIG_LIST:
        snprintf(text, size, "a list of %zu", node->count);
        break;
    case CONFIG_MAP:
        snprintf(text, size, "a map of %zu", node->count);
        break;
    case CONFIG_SCALAR:
        if (node->text[0] == 0 && !node->quoted) {
            snprintf(text, size, "nothing");
        } else {
            snprintf(text, size, "'%.60s'", node->text);
        }
        break;
    }
}

int config_fail(const struct config_node *node, struct config_error *error, const char *format, ...)
{
    char message[sizeof(error->text)];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    return config_say(error, config_file(node), node->line, node->column, "%s", message);
}

int config_expected(const struct config_node *node, struct config_error *error,
                    const char *expected, ...)
{
    char want[384], found[80];
    va_list arguments;
    va_start(arguments, expected);
    vsnprintf(want, sizeof(want), expected, arguments);
    va_end(arguments);
    describe(node, found, sizeof(found));
    return config_fail(node, error, "expected %s, found %s", want, found);
}

int config_allow(const struct config_node *map, const char *const *keys, struct config_error *error)
{
    if (map->kind != CONFIG_MAP) {
        return config_expected(map, error, "a map");
    }
    for (const struct config_node *n = map->first; n != NULL; n = n->next) {
        size_t i = 0;
        while (keys[i] != NULL && strcmp(keys[i], n->key) != 0) {
            i++;
        }
        if (keys[i] != NULL) {
            continue;
        }
        char list[384] = "";
        for (i = 0; keys[i] != NULL; i++) {
            const size_t used = strlen(list);
            snprintf(list + used, sizeof(list) - used, "%s%s", i == 0 ? "" : " ", keys[i]);
        }
        return config_say(error, config_file(n), n->key_line, n->key_column,
                          "expected one of the keys: %s, found '%.60s'", list, n->key);
    }
    return 0;
}

int config_require(const struct config_node *map, const char *key, const struct config_node **ret,
                   struct config_error *error)
{
    const struct config_node *node = config_get(map, key);
    if (node == NULL) {
        return config_expected(map, error, "a map with the key '%s'", key);
    }
    *ret = node;
    return 0;
}

/* Gets a scalar that is not empty; else writes the error. */
static int scalar(const struct config_node *node, const char *expected, const char **ret,
                  struct config_error *error)
{
    if (node->kind != CONFIG_SCALAR || (node->text[0] == 0 && !node->quoted)) {
        return config_expected(node, error, "%s", expected);
    }
    *ret = node->text;
    return 0;
}

int config_node_string(const struct config_node *node, const char **value,
                       struct config_error *error)
{
    return scalar(node, "text", value, error);
}

int config_node_int(const struct config_node *node, int64_t minimum, int64_t maximum,
                    int64_t *value, struct config_error *error)
{
    const char *text = NULL;
    const int r = scalar(node, "a whole number", &text, error);
    if (r < 0) {
        return r;
    }
    char *end = NULL;
    errno = 0;
    const long long n = strtoll(text, &end, 0);
    if (end == text || *end != 0 || errno != 0 || n < minimum || n > maximum ||
        isspace((unsigned char)text[0])) {
        return config_expected(node, error, "a whole number from %" PRId64 " to %" PRId64, minimum,
                               maximum);
    }
    *value = n;
    return 0;
}

int config_node_double(const struct config_node *node, double minimum, double maximum,
                       double *value, struct config_error *error)
{
    const char *text = NULL;
    const int r = scalar(node, "a number", &text, error);
    if (r < 0) {
        return r;
    }
    char *end = NULL;
    const double x = strtod(text, &end);
    if (end == text || *end != 0 || !isfinite(x) || x < minimum || x > maximum) {
        return config_expected(node, error, "a number from %g to %g", minimum, maximum);
    }
    *value = x;
    return 0;
}

static const struct unit {
    const char *name;
    double ns;
} units[] = {
    {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}, {"h", 3600e9}, {"d", 86400e9},
};

static bool span_from_text(const char *text, double *ret_ns)
{
    char *end = NULL;
    const double x = strtod(text, &end);
    if (end == text || !isfinite(x)) {
        return false;
    }
    while (*end == ' ') {
        end++;
    }
    if (*end == 0 && x == 0) {
        *ret_ns = 0;
        return true;
    }
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        if (strcmp(end, units[i].name) == 0) {
            *ret_ns = x * units[i].ns;
            return fabs(*ret_ns) < 9e18;
        }
    }
    return false;
}

static const char *span_text(struct span s, char *text, size_t size)
{
    size_t i = 0;
    while (i + 1 < ARRAY_COUNT(units) && fabs((double)s.ns) >= units[i + 1].ns) {
        i++;
    }
    snprintf(text, size, "%g%s", (double)s.ns / units[i].ns, units[i].name);
    return text;
}

int config_node_span(const struct config_node *node, struct span minimum, struct span maximum,
                     struct span *value, struct config_error *error)
{
    char from[32], to[32];
    double ns = 0;
    if (node->kind != CONFIG_SCALAR || !span_from_text(node->text, &ns) ||
        llround(ns) < minimum.ns || llround(ns) > maximum.ns) {
        return config_expected(
            node, error, "a time with its unit (ns us ms s min h d) from %s to %s",
            span_text(minimum, from, sizeof(from)), span_text(maximum, to, sizeof(to)));
    }
    *value = (struct span){llround(ns)};
    return 0;
}

int config_string(const struct config_node *map, const char *key, const char **value,
                  struct config_error *error)
{
    const struct config_node *node = config_get(map, key);
    return node == NULL ? 0 : config_node_string(node, value, error);
}

int config_int(const struct config_node *map, const char *key, int64_t minimum, int64_t maximum,
               int64_t *value, struct config_error *error)
{
    const struct config_node *node = config_get(map, key);
    return node == NULL ? 0 : config_node_int(node, minimum, maximum, value, error);
}

int config_double(const struct config_node *map, const char *key, double minimum, double maximum,
                  double *value, struct config_error *error)
{
    const struct config_node *node = config_get(map, key);
    return node == NULL ? 0 : config_node_double(node, minimum, maximum, value, error);
}

int config_span(const struct config_node *map, const char *key, struct span minimum,
                struct span maximum, struct span *value, struct config_error *error)
{
    const struct config_node *node = config_get(map, key);
    return node == NULL ? 0 : config_node_span(node, minimum, maximum, value, error);
}

int config_choice(const struct config_node *map, const char *key, const char *const *choices,
                  int *value, struct config_error *error)
{
    const struct config_node *node = config_get(map, key);
    if (node == NULL) {
        return 0;
    }
    char list[300] = "";
    for (int i = 0; choices[i] != NULL; i++) {
        if (node->kind == CONFIG_SCALAR && strcmp(choices[i], node->text) == 0) {
            *value = i;
            return 0;
        }
        const size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", i == 0 ? "" : " ", choices[i]);
    }
    return config_expected(node, error, "one of: %s", list);
}

int config_copy(const struct config_node *map, const char *key, char *text, size_t size,
                struct config_error *error)
{
    const char *value = NULL;
    const int r = config_string(map, key, &value, error);
    if (r < 0 || value == NULL) {
        return r;
    }
    if (value[0] == 0 || strlen(value) >= size) {
        return config_expected(config_get(map, key), error, "a text of 1 to %zu characters",
                               size - 1);
    }
    snprintf(text, size, "%s", value);
    return 0;
}

int config_bool(const struct config_node *map, const char *key, bool *value,
                struct config_error *error)
{
    static const char *const words[] = {"false", "true", "no", "yes", "off", "on", NULL};
    int index = *value;
    const int r = config_choice(map, key, words, &index, error);
    if (r == 0) {
        *value = index % 2 == 1;
    }
    return r;
}
