/* scenario.c: reads a scenario with the tables of language.c. */
#include "service/scenario/fields.h"

#include "base/time.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool nic_fits(const struct scenario_fabric *f, struct scenario_nic nic)
{
    return nic.host < f->hosts && nic.nic < f->nics_per_host;
}

/* A target outside of the fabric is an error of the file. */
static int check_target(const struct config_node *node, const struct scenario_fabric *f,
                        const struct scenario_target *t, struct config_error *error)
{
    switch (t->kind) {
    case TARGET_HOSTS:
        if (t->share > 0 || t->last < f->hosts) {
            return 0;
        }
        return config_expected(node, error, "a host below %d", f->hosts);
    case TARGET_NIC:
        if (nic_fits(f, t->from)) {
            return 0;
        }
        return config_expected(node, error, "a NIC of %d hosts x %d NICs", f->hosts,
                               f->nics_per_host);
    case TARGET_EDGE:
        if (!nic_fits(f, t->from) || !nic_fits(f, t->to) || t->from.host == t->to.host) {
            return config_expected(node, error, "two NICs of different hosts (%d hosts x %d NICs)",
                                   f->hosts, f->nics_per_host);
        }
        if (t->path >= (f->network == NETWORK_FABRIC ? f->spines : f->paths)) {
            return config_expected(node, error, "a path below %d",
                                   f->network == NETWORK_FABRIC ? f->spines : f->paths);
        }
        return 0;
    case TARGET_LEAF:
        return t->first < f->leaves ? 0
                                    : config_expected(node, error, "a leaf below %d", f->leaves);
    case TARGET_SPINE:
        return t->first < f->spines ? 0
                                    : config_expected(node, error, "a spine below %d", f->spines);
    case TARGET_TRUNK:
        return t->first < f->leaves && t->last < f->spines
                   ? 0
                   : config_expected(node, error, "a trunk LEAF-SPINE of %d leaves and %d spines",
                                     f->leaves, f->spines);
    default:
        return 0;
    }
}

static int read_fault(const struct config_node *node, const struct scenario *s,
                      struct scenario_fault *ret, struct config_error *error)
{
    static const char *const extra[] = {"kind", NULL};
    struct scenario_fault f;
    const char *words[FAULT_KINDS + 1] = {0};
    const struct config_node *place = NULL;
    int kind = 0, r;

    for (int i = 0; i < FAULT_KINDS; i++) {
        words[i] = scenario_fault_name((enum scenario_fault_kind)i);
    }
    scenario_fault_init(&f);
    f.line = (int)config_line(node);
    r = scenario_fields_read(node, scenario_fault_fields, scenario_fault_field_count, extra, &f,
                             error);
    if (r == 0) {
        r = config_require(node, "kind", &place, error);
    }
    if (r == 0) {
        r = config_choice(node, "kind", words, &kind, error);
    }
    if (r == 0) {
        f.kind = (enum scenario_fault_kind)kind;
        r = config_require(node, "target", &place, error);
    }
    if (r == 0 && (scenario_fault_rules[kind].targets & (1u << f.target.kind)) == 0) {
        r = config_expected(place, error, "a target that a fault '%s' can have", words[kind]);
    }
    if (r == 0) {
        r = check_target(place, &s->fabric, &f.target, error);
    }
    if (r == 0 && scenario_fault_rules[kind].needs != NULL) {
        const struct config_node *unused = NULL;
        r = config_require(node, scenario_fault_rules[kind].needs, &unused, error);
    }
    if (r == 0 && f.at_ns > s->duration_ns) {
        r = config_expected(node, error, "a fault that begins before the scenario ends");
    }
    if (r == 0) {
        *ret = f;
    }
    return r;
}

/* ---- bounds ---- */
#define BOUND(member) offsetof(struct scenario_bound, member)
static const struct field bound_fields[] = {
    {"from", FIELD_SPAN, BOUND(from_ns), 0, SPAN_MAX},
    {"until", FIELD_SPAN, BOUND(until_ns), 0, SPAN_MAX},
    {"fault", FIELD_INT, BOUND(fault), 0, SCENARIO_FAULT_MAX - 1},
};
static const char *const world_words[] = {"none", "sim", "lab", "both", NULL};

static int read_relation(const struct config_node *node, struct scenario_bound *b,
                         struct config_error *error)
{
    static const char *const words[] = {"below", "above", "equals"};
    int found = 0;

    for (unsigned i = 0; i < ARRAY_COUNT(words); i++) {
        if (config_get(node, words[i]) != NULL) {
            const int r = config_double(node, words[i], -1e18, 1e18, &b->limit, error);
            if (r < 0) {
                return r;
            }
            b->relation = (enum scenario_relation)i;
            found++;
        }
    }
    return found == 1
               ? 0
               : config_fail(node, error,
                             "expected one of below, above, equals in this bound, found %d", found);
}

static int read_bound(const struct config_node *node, const struct scenario *s,
                      struct scenario_bound *ret, struct config_error *error)
{
    static const char *const extra[] = {"what", "below", "above", "equals", "world", NULL};
    struct scenario_bound b = {
        .until_ns = s->duration_ns, .fault = -1, .world = s->world, .line = (int)config_line(node)};
    const struct config_node *place = NULL;
    const struct scenario_metric *metric = NULL;
    int world = (int)s->world;

    int r = scenario_fields_read(node, bound_fields, ARRAY_COUNT(bound_fields), extra, &b, error);
    if (r == 0) {
        r = config_require(node, "what", &place, error);
    }
    if (r == 0) {
        const char *text = config_text(place);
        metric = text != NULL ? scenario_metric_find(text) : NULL;
        if (metric == NULL) {
            return config_expected(place, error, "a metric that docs/scenarios.md lists");
        }
        snprintf(b.what, sizeof(b.what), "%s", text);
        r = read_relation(node, &b, error);
    }
    if (r == 0 && config_get(node, "world") != NULL) {
        r = config_choice(node, "world", world_words, &world, error);
    }
    if (r < 0) {
        return r;
    }
    b.world = (unsigned)world & s->world & metric->world;
    if (b.world == 0) {
        return config_expected(node, error, "a metric of a world that this scenario is for");
    }
    if (b.fault >= s->fault_count) {
        return config_expected(node, error, "a fault below %d", s->fault_count);
    }
    *ret = b;
    return 0;
}

/* ---- lists ---- */
static int read_traffic(const struct config_node *node, const struct scenario *s,
                        struct scenario_traffic *ret, struct config_error *error)
{
    struct scenario_traffic t;
    const struct config_node *unused = NULL;

    scenario_traffic_init(&t, s);
    int r = scenario_fields_read(node, scenario_traffic_fields, scenario_traffic_field_count, NULL,
                                 &t, error);

    if (r == 0) {
        r = config_require(node, "kind", &unused, error);
    }
    if (r == 0) {
        r = check_target(node, &s->fabric, &t.from, error);
    }
    if (r == 0) {
        r = check_target(node, &s->fabric, &t.to, error);
    }
    if (r == 0) {
        *ret = t;
    }
    return r;
}

static int open_list(const struct config_node *root, const char *key, size_t ceiling,
                     const struct config_node **ret_first, struct config_error *error)
{
    const struct config_node *list = config_get(root, key);

    *ret_first = NULL;
    if (list == NULL) {
        return 0;
    }
    if (config_kind(list) != CONFIG_LIST) {
        return config_expected(list, error, "a list of %s", key);
    }
    if (config_count(list) > ceiling) {
        return config_expected(list, error, "at most %zu %s", ceiling, key);
    }
    *ret_first = config_first(list);
    return 0;
}

static int read_lists(const struct config_node *root, struct scenario *s,
                      struct config_error *error)
{
    const struct config_node *n = NULL;
    int r = open_list(root, "traffic", SCENARIO_TRAFFIC_MAX, &n, error);

    for (; r == 0 && n != NULL; n = config_next(n)) {
        r = read_traffic(n, s, &s->traffic[s->traffic_count], error);
        s->traffic_count++;
    }
    if (r == 0) {
        r = open_list(root, "faults", SCENARIO_FAULT_MAX, &n, error);
    }
    for (; r == 0 && n != NULL; n = config_next(n)) {
        r = read_fault(n, s, &s->fault[s->fault_count], error);
        s->fault_count++;
    }
    if (r == 0) {
        r = open_list(root, "bounds", SCENARIO_BOUND_MAX, &n, error);
    }
    for (; r == 0 && n != NULL; n = config_next(n)) {
        r = read_bound(n, s, &s->bound[s->bound_count], error);
        s->bound_count++;
    }
    return r;
}

/* ---- the whole ---- */
static int read_text(const struct config_node *root, const char *key, char *ret, size_t size,
                     struct config_error *error)
{
    const char *text = NULL;
    int r = config_string(root, key, &text, error);

    if (r < 0 || text == NULL) {
        return r;
    }
    if (strlen(text) >= size) {
        return config_expected(config_get(root, key), error, "'%s' of at most %zu bytes", key,
                               size - 1);
    }
    memcpy(ret, text, strlen(text) + 1);
    return 0;
}

static int read_head(const struct config_node *root, struct scenario *s, struct config_error *error)
{
    int64_t seed = (int64_t)s->seed;
    int world = (int)s->world;
    struct span duration = span_ns(s->duration_ns);
    int r = read_text(root, "name", s->name, sizeof(s->name), error);

    if (r == 0) {
        r = read_text(root, "why", s->why, sizeof(s->why), error);
    }
    if (r == 0) {
        r = config_choice(root, "world", world_words, &world, error);
    }
    if (r == 0 && world == 0) {
        r = config_expected(config_get(root, "world"), error, "sim, lab or both");
    }
    if (r == 0) {
        r = config_bool(root, "slow", &s->slow, error);
    }
    if (r == 0) {
        r = config_bool(root, "wire", &s->wire, error);
    }
    if (r == 0) {
        r = config_int(root, "seed", 0, INT64_MAX, &seed, error);
    }
    if (r == 0) {
        r = config_span(root, "duration", span_ms(1), span_s(30 * 86400), &duration, error);
    }
    s->seed = (uint64_t)seed;
    s->world = (unsigned)world;
    s->duration_ns = duration.ns;
    return r;
}

static int read_section(const struct config_node *root, const char *key, const struct field *fields,
                        size_t count, void *base, struct config_error *error)
{
    const struct config_node *section = config_get(root, key);
    return section == NULL ? 0 : scenario_fields_read(section, fields, count, NULL, base, error);
}

static int read_scenario(const struct config_node *root, struct scenario *s,
                         struct config_error *error)
{
    static const char *const keys[] = {"name",   "why",      "world",  "slow",   "wire",
                                       "seed",   "duration", "fabric", "clocks", "traffic",
                                       "faults", "bounds",   NULL};
    int r = config_allow(root, keys, error);

    if (r == 0) {
        r = read_head(root, s, error);
    }
    if (r == 0) {
        r = read_section(root, "fabric", scenario_fabric_fields, scenario_fabric_field_count,
                         &s->fabric, error);
    }
    if (r == 0) {
        r = read_section(root, "clocks", scenario_clocks_fields, scenario_clocks_field_count,
                         &s->clocks, error);
    }
    if (r == 0 && s->fabric.ip == 0) {
        r = config_fail(config_get(root, "fabric"), error, "expected ip 4, 6 or both, found none");
    }
    if (r == 0 && s->fabric.delay_ns_max < s->fabric.delay_ns_min) {
        r = config_fail(config_get(root, "fabric"), error,
                        "expected delay_min at most delay_max, found more");
    }
    return r == 0 ? read_lists(root, s, error) : r;
}

static int finish(int r, struct config *config, struct scenario *ret, struct config_error *error)
{
    struct scenario *s = NULL;

    if (r == 0) {
        s = malloc(sizeof(*s));
        r = s == NULL ? -ENOMEM : 0;
    }
    if (r == 0) {
        scenario_init(s);
        r = read_scenario(config_root(config), s, error);
    }
    if (r == 0) {
        *ret = *s;
    }
    free(s);
    config_free(config);
    return r;
}

int scenario_load(const char *path, struct scenario *ret, struct config_error *error)
{
    struct config *config = NULL;
    const int r = config_load(path, &config, error);

    return finish(r, config, ret, error);
}

int scenario_parse(const char *name, const char *text, size_t size, struct scenario *ret,
                   struct config_error *error)
{
    struct config *config = NULL;
    const int r = config_parse(name, text, size, &config, error);

    return finish(r, config, ret, error);
}
