/* file_rule.c: one rule of alerts.yaml. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/finding/finding.h"
#include "service/alert/file_internal.h"

static const char *const conditions[] = {"finding", "value", "rate", "count", "absent"};
static const uint8_t condition_of[] = {ALERT_ON_FINDING, ALERT_ON_THRESHOLD, ALERT_ON_RATE,
                                       ALERT_ON_COUNT, ALERT_ON_ABSENCE};

/* ---- values with units ------------------------------------------------------------------------------------------ */

struct unit {
    const char *name;
    double factor;
};
static const struct unit ns_units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {NULL, 0}};
static const struct unit ppm_units[] = {{"ppm", 1}, {"%", 1e4}, {NULL, 0}};
static const struct unit byte_units[] = {
    {"B", 1}, {"KiB", 1024}, {"MiB", 1048576}, {"GiB", 1073741824}, {NULL, 0}};
static const struct unit speed_units[] = {{"Mbit/s", 1}, {"Gbit/s", 1e3}, {NULL, 0}};
static const struct unit day_units[] = {{"d", 1}, {NULL, 0}};
static const struct unit no_units[] = {{NULL, 0}};

static const struct unit *units_of(uint32_t unit, const char **ret_words)
{
    static const char *const words[] = {"a number",
                                        "a time with its unit (ns us ms s)",
                                        "a share with its unit (ppm %)",
                                        "a size with its unit (B KiB MiB GiB)",
                                        "a rate with its unit (Mbit/s Gbit/s)",
                                        "a number of days (d)"};
    static const struct unit *const units[] = {no_units,   ns_units,    ppm_units,
                                               byte_units, speed_units, day_units};

    *ret_words = words[unit];
    return units[unit];
}

static int load_value(const struct config_node *map, const char *key, uint32_t unit, double *value,
                      struct config_error *error)
{
    const struct config_node *node = config_get(map, key);
    const char *words, *text;
    const struct unit *u = units_of(unit, &words);
    const bool bare = u->name == NULL;
    char *end = NULL;

    if (node == NULL) {
        return 0;
    }
    text = config_kind(node) == CONFIG_SCALAR ? config_text(node) : "";
    double x = strtod(text, &end);
    if (end == text || !isfinite(x)) {
        return config_expected(node, error, "%s", words);
    }
    while (*end == ' ') {
        end++;
    }
    if (*end == '\0' && (bare || x == 0)) {
        *value = x;
        return 0;
    }
    for (; u->name != NULL; u++) {
        if (strcmp(u->name, end) == 0) {
            *value = x * u->factor;
            return 0;
        }
    }
    return config_expected(node, error, "%s", words);
}

/* ---- lists of words --------------------------------------------------------------------------------------------- */

static int word_bit(const struct config_node *node, const char *const *words, size_t count,
                    const char *what, uint64_t *bits, struct config_error *error)
{
    const char *text = NULL;
    const int r = config_node_string(node, &text, error);

    for (size_t k = 0; r == 0 && k < count; k++) {
        if (words[k] != NULL && strcmp(words[k], text) == 0) {
            *bits |= 1ULL << k;
            return 0;
        }
    }
    return r < 0 ? r : config_expected(node, error, "%s", what);
}

/* One word, or a list of them. */
static int word_bits(const struct config_node *node, const char *const *words, size_t count,
                     const char *what, uint64_t *bits, struct config_error *error)
{
    int r = 0;

    if (config_kind(node) != CONFIG_LIST) {
        return word_bit(node, words, count, what, bits, error);
    }
    if (config_count(node) == 0) {
        return config_expected(node, error, "%s", what);
    }
    for (const struct config_node *n = config_first(node); n != NULL && r == 0;
         n = config_next(n)) {
        r = word_bit(n, words, count, what, bits, error);
    }
    return r;
}

static int load_finding(const struct config_node *map, const struct config_node *node,
                        struct alert_rule *rule, struct config_error *error)
{
    static const char *const elements[] = {"unknown", "host",   "nic",  "leaf",
                                           "spine",   "router", "trunk"};
    const struct config_node *suspects = config_get(map, "suspects");
    const char *kinds[FINDING_KIND_COUNT] = {NULL};
    uint64_t bits = 0;

    for (uint32_t k = FINDING_NONE + 1; k < FINDING_KIND_COUNT; k++) {
        kinds[k] = finding_kind_word(k);
    }
    rule->findings = 0;
    int r = word_bits(node, kinds, FINDING_KIND_COUNT,
                      "a kind of finding, as in foliot findings (link-down, path-dead, …)",
                      &rule->findings, error);
    if (r == 0 && suspects != NULL) {
        r = word_bits(suspects, elements, ARRAY_COUNT(elements),
                      "one of: unknown host nic leaf spine router trunk", &bits, error);
    }
    rule->suspects = (uint32_t)bits;
    rule->scope = ALERT_PER_PATH;
    return r < 0 ? r : config_bool(map, "confident", &rule->confident, error);
}

/* ---- series ----------------------------------------------------------------------------------------------------- */

static int load_limit(const struct config_node *map, const struct alert_metric_info *metric,
                      struct alert_rule *rule, struct config_error *error)
{
    const struct config_node *above = config_get(map, "above"), *below = config_get(map, "below");

    if (rule->condition == ALERT_ON_ABSENCE) {
        return above == NULL && below == NULL
                   ? 0
                   : config_fail(above != NULL ? above : below, error,
                                 "expected no limit: an absence has none");
    }
    if ((above == NULL) == (below == NULL)) {
        return config_expected(map, error,
                               above == NULL ? "a rule with 'above' or 'below'"
                                             : "a rule with one of 'above' and 'below'");
    }
    if (below != NULL && rule->condition != ALERT_ON_THRESHOLD) {
        return config_fail(below, error, "expected 'above': a counter only grows");
    }
    rule->below = below != NULL;
    int r = load_value(map, rule->below ? "below" : "above", metric->unit, &rule->limit, error);
    return r < 0 ? r : load_value(map, "clear", metric->unit, &rule->clear, error);
}

static int load_series(const struct config_node *map, const struct config_node *node,
                       struct alert_rule *rule, struct config_error *error)
{
    static const char *const scopes[] = {"path", "link", "host", "job", "rail", "fleet", NULL};
    static const char *const aggregates[] = {"each", "max", "min", "mean", "share", NULL};
    const struct alert_metric_info *metric;
    const char *name = NULL;
    double share = rule->share * 1e6;
    int scope, aggregate = ALERT_EACH;
    int r = config_node_string(node, &name, error);

    if (r < 0) {
        return r;
    }
    rule->metric = (uint8_t)alert_metric_find(name);
    metric = alert_metric_info(rule->metric);
    if (metric == NULL) {
        return config_expected(node, error, "a metric (foliot alerts metrics lists them)");
    }
    scope = metric->scope;
    r = config_choice(map, "per", scopes, &scope, error);
    r = r < 0 ? r : config_choice(map, "of", aggregates, &aggregate, error);
    rule->scope = (uint8_t)scope;
    rule->aggregate = (uint8_t)aggregate;
    r = r < 0 ? r : load_limit(map, metric, rule, error);
    r = r < 0 ? r : load_value(map, "share", ALERT_PPM, &share, error);
    rule->share = share * 1e-6;
    if (r == 0 && (share < 0 || share > 1e6)) {
        r = config_expected(config_get(map, "share"), error, "a share from 0 to 100 %%");
    }
    return r < 0 ? r : file_span(map, "within", &rule->within, error);
}

/* ---- a rule ----------------------------------------------------------------------------------------------------- */

static int find_condition(const struct config_node *map, const struct config_node **ret,
                          uint32_t *ret_index, struct config_error *error)
{
    *ret = NULL;
    for (uint32_t k = 0; k < ARRAY_COUNT(conditions); k++) {
        const struct config_node *node = config_get(map, conditions[k]);
        if (node != NULL && *ret != NULL) {
            return config_fail(node, error, "expected one condition, found '%s' and '%s'",
                               config_key(*ret), conditions[k]);
        }
        if (node != NULL) {
            *ret = node;
            *ret_index = k;
        }
    }
    return *ret != NULL
               ? 0
               : config_expected(map, error, "a rule with one of: finding value rate count absent");
}

static int load_rule(const struct config_node *map, struct alert_rule *rule,
                     struct config_error *error)
{
    static const char *const keys[] = {
        "name",  "enabled", "finding", "suspects", "confident", "value",  "rate",
        "count", "absent",  "per",     "of",       "share",     "above",  "below",
        "clear", "within",  "for",     "wait",     "severity",  "advice", NULL};
    static const char *const severities[] = {"info", "warning", "page", NULL};
    const struct config_node *condition = NULL;
    uint32_t index = 0;
    int severity = rule->severity;
    int r = config_allow(map, keys, error);

    r = r < 0 ? r : find_condition(map, &condition, &index, error);
    if (r < 0) {
        return r;
    }
    rule->condition = condition_of[index];
    r = config_choice(map, "severity", severities, &severity, error);
    rule->severity = (uint8_t)severity;
    r = r < 0 ? r : file_span(map, "for", &rule->hold, error);
    r = r < 0 ? r : config_span(map, "wait", span_ns(0), span_s(3600), &rule->wait, error);
    r = r < 0 ? r : config_copy(map, "advice", rule->advice, sizeof(rule->advice), error);
    if (r < 0) {
        return r;
    }
    return rule->condition == ALERT_ON_FINDING ? load_finding(map, condition, rule, error)
                                               : load_series(map, condition, rule, error);
}

int file_load_rule(struct alert_file *file, const struct config_node *map,
                   struct config_error *error)
{
    const struct config_node *name = NULL;
    struct alert_rule rule;
    bool enabled = true;
    int r = config_require(map, "name", &name, error);

    alert_rule_init(&rule);
    r = r < 0 ? r : config_copy(map, "name", rule.name, sizeof(rule.name), error);
    r = r < 0 ? r : config_bool(map, "enabled", &enabled, error);
    if (r < 0) {
        return r;
    }
    int at = alert_file_find(file, rule.name);
    if (enabled ||
        config_count(map) > 2) { /* a map of only "name" and "enabled: no" removes a default rule */
        r = load_rule(map, &rule, error);
        if (r == 0 && alert_rule_check(&rule) != NULL) {
            r = config_fail(map, error, "rule '%s': %s", rule.name, alert_rule_check(&rule));
        }
        if (r < 0) {
            return r;
        }
    }
    if (!enabled) {
        if (at >= 0) {
            memmove(&file->rules[at], &file->rules[at + 1],
                    (file->rule_count - (size_t)at - 1) * sizeof(file->rules[0]));
            file->rule_count--;
        }
        return 0;
    }
    if (at < 0 && file->rule_count == ALERT_RULE_MAX) {
        return config_expected(map, error, "at most %d rules, the default ones too",
                               ALERT_RULE_MAX);
    }
    file->rules[at >= 0 ? (size_t)at : file->rule_count++] = rule;
    return 0;
}
