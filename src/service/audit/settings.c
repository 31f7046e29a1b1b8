/* settings.c: see settings.h. */
#include "service/audit/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/bug.h"

#define EVERY_LEAST_NS   INT64_C(2000000000)
#define RETURNS_LEAST_NS INT64_C(1000000000)
#define EVERY_MOST_NS    INT64_C(31536000000000000)

static const char *const severities[] = {"block", "drain", "ticket", "info", NULL};

/* Reads a limit. A limit for a check without limits is refused. */
static int read_limit(const struct config_node *node, const char *key, const struct check *c,
                      bool *ret_has, double *ret, struct config_error *error)
{
    if (config_get(node, key) == NULL) {
        return 0;
    }
    if (c->unit == NULL) {
        return config_fail(config_get(node, key), error, "%s has no limit that can be set", c->id);
    }
    *ret_has = true;
    return config_double(node, key, -1e15, 1e15, ret, error);
}

/* A map's keys are cohorts of this file. */
static int read_declared_by(const struct config_node *map, struct audit_file *f,
                            struct check_setting *s, struct config_error *error)
{
    struct audit_declared *by = &f->declared[f->declared_count];
    int r = 0;

    if (config_first(map) == NULL) {
        return config_expected(map, error, "a value, or a map of cohorts with a value each");
    }
    for (const struct config_node *n = config_first(map); n != NULL && r == 0; n = config_next(n)) {
        bool known = false;
        for (uint32_t i = 0; i < f->settings.cohort_count; i++) {
            known = known || strcmp(f->cohorts[i].name, config_key(n)) == 0;
        }
        if (!known) {
            return config_fail(n, error, "expected a cohort of 'cohorts', found '%s'",
                               config_key(n));
        }
        by[s->declared_by_count].cohort = config_key(n);
        r = config_string(map, config_key(n), &by[s->declared_by_count++].value, error);
        f->declared_count++;
    }
    s->declared_by = by;
    return r;
}

static int read_declared(const struct config_node *node, struct audit_file *f,
                         const struct check *c, struct check_setting *s, struct config_error *error)
{
    const struct config_node *declared = config_get(node, "declared");

    if (declared == NULL) {
        return 0;
    }
    if ((c->compare & COMPARE_DECLARED) == 0) {
        return config_fail(declared, error, "%s does not compare with a declared value", c->id);
    }
    if (config_kind(declared) != CONFIG_MAP) {
        return config_string(node, "declared", &s->declared, error);
    }
    if (strcmp(c->id, "be.roce.dscp_path") == 0) { /* all hosts of a matrix send alike */
        return config_fail(declared, error, "%s has one value for the whole fleet", c->id);
    }
    return read_declared_by(declared, f, s, error);
}

static int read_check(const struct config_node *node, struct audit_file *f,
                      struct config_error *error)
{
    struct check_setting *s = f->checks;
    static const char *const keys[] = {"off", "declared", "fail", "warn", "severity", NULL};
    const struct check *c = check_by_id(config_key(node));
    int severity = -1, r;

    if (c == NULL) {
        return config_fail(node, error, "expected a check of `foliot audit checks`, found '%s'",
                           config_key(node));
    }
    s += check_number(c);
    r = config_allow(node, keys, error);
    if (r == 0) {
        r = config_string(node, "off", &s->off, error);
    }
    if (r == 0) {
        r = read_declared(node, f, c, s, error);
    }
    if (r == 0) {
        r = read_limit(node, "fail", c, &s->has_fail, &s->fail, error);
    }
    if (r == 0) {
        r = read_limit(node, "warn", c, &s->has_warn, &s->warn, error);
    }
    if (r == 0) {
        r = config_choice(node, "severity", severities, &severity, error);
    }
    if (r == 0 && severity >= 0) {
        s->has_severity = true;
        s->severity = (uint8_t)severity;
    }
    return r;
}

/* ---- what is switched off ---- */

static int read_classes_off(const struct config_node *node, struct audit_file *f,
                            struct config_error *error)
{
    const char *keys[COST_COUNT + 1] = {NULL};

    for (int cost = 0; cost < COST_COUNT; cost++) {
        keys[cost] = check_cost_name(cost);
    }
    int r = config_allow(node, keys, error);
    for (int cost = 0; cost < COST_COUNT && r == 0; cost++) {
        r = config_string(node, keys[cost], &f->settings.class_off[cost], error);
    }
    return r;
}

static int read_hosts_off(const struct config_node *node, struct audit_file *f,
                          struct config_error *error)
{
    uint32_t count = 0;
    int r = 0;

    if (config_kind(node) != CONFIG_MAP) {
        return config_expected(node, error, "a map of hosts, each with by whom and since when");
    }
    for (const struct config_node *n = config_first(node); n != NULL; n = config_next(n)) {
        count++;
    }
    f->hosts_off = calloc(count + 1, sizeof(*f->hosts_off));
    if (f->hosts_off == NULL) {
        return config_fail(node, error, "out of memory");
    }
    f->settings.hosts_off = f->hosts_off;
    for (const struct config_node *n = config_first(node); n != NULL && r == 0;
         n = config_next(n)) {
        struct audit_host_off *off = &f->hosts_off[f->settings.hosts_off_count++];
        off->host = config_key(n);
        r = config_string(node, off->host, &off->by, error);
    }
    return r;
}

static int read_off(const struct config_node *root, struct audit_file *f,
                    struct config_error *error)
{
    static const char *const keys[] = {"classes", "hosts", "fleet", NULL};
    const struct config_node *off = config_get(root, "off"), *node;
    int r = off != NULL ? config_allow(off, keys, error) : 0;

    if (off == NULL || r < 0) {
        return r;
    }
    r = config_string(off, "fleet", &f->fleet_off, error);
    node = config_get(off, "classes");
    r = r < 0 || node == NULL ? r : read_classes_off(node, f, error);
    node = config_get(off, "hosts");
    return r < 0 || node == NULL ? r : read_hosts_off(node, f, error);
}

/* ---- cohorts ---- */

/* Reads one cohort. A name may be in one cohort only. Names with a star are tried in their order. */
static int read_cohort(const struct config_node *cohort, struct audit_file *f,
                       struct config_error *error)
{
    if (config_kind(cohort) != CONFIG_LIST || config_first(cohort) == NULL) {
        return config_expected(cohort, error, "a list of hosts; a star may end a name");
    }
    for (const struct config_node *n = config_first(cohort); n != NULL; n = config_next(n)) {
        const char *host = config_text(n);
        if (host == NULL || host[0] == '\0') {
            return config_expected(n, error, "the name of a host");
        }
        for (uint32_t i = 0; i < f->settings.cohort_count; i++) {
            if (strcmp(f->cohorts[i].host, host) == 0) {
                return config_fail(n, error, "'%s' is in two cohorts: %s and %s", host,
                                   f->cohorts[i].name, config_key(cohort));
            }
        }
        f->cohorts[f->settings.cohort_count++] = (struct audit_cohort){host, config_key(cohort)};
    }
    return 0;
}

static int read_cohorts(const struct config_node *root, struct audit_file *f,
                        struct config_error *error)
{
    const struct config_node *cohorts = config_get(root, "cohorts");
    size_t count = 0;
    int r = 0;

    if (cohorts == NULL) {
        return 0;
    }
    if (config_kind(cohorts) != CONFIG_MAP) {
        return config_expected(cohorts, error, "a map of cohorts, each with a list of hosts");
    }
    for (const struct config_node *n = config_first(cohorts); n != NULL; n = config_next(n)) {
        count += config_count(n);
    }
    f->cohorts = calloc(count + 1, sizeof(*f->cohorts));
    if (f->cohorts == NULL) {
        return config_fail(cohorts, error, "out of memory");
    }
    f->settings.cohorts = f->cohorts;
    for (const struct config_node *n = config_first(cohorts); n != NULL && r == 0;
         n = config_next(n)) {
        r = read_cohort(n, f, error);
    }
    return r;
}

uint32_t audit_file_off_count(const struct audit_file *f)
{
    uint32_t count = f->settings.hosts_off_count + (f->fleet_off != NULL);

    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        count += f->checks[i].off != NULL;
    }
    for (int cost = 0; cost < COST_COUNT; cost++) {
        count += f->settings.class_off[cost] != NULL;
    }
    return count;
}

static int read_checks(const struct config_node *checks, struct audit_file *f,
                       struct config_error *error)
{
    size_t by_cohort = 0;
    int r = 0;

    if (config_kind(checks) != CONFIG_MAP) {
        return config_expected(checks, error, "a map of checks");
    }
    for (const struct config_node *n = config_first(checks); n != NULL; n = config_next(n)) {
        const struct config_node *declared = config_get(n, "declared");
        by_cohort += declared != NULL ? config_count(declared) : 0;
    }
    f->declared = calloc(by_cohort + 1, sizeof(*f->declared));
    if (f->declared == NULL) {
        return config_fail(checks, error, "out of memory");
    }
    for (const struct config_node *n = config_first(checks); n != NULL && r == 0;
         n = config_next(n)) {
        r = read_check(n, f, error);
    }
    return r;
}

static int read_all(const struct config_node *root, struct audit_file *f,
                    struct config_error *error)
{
    static const char *const keys[] = {"version", "young", "checks",  "every", "matrix",
                                       "returns", "off",   "cohorts", NULL};
    const struct config_node *checks = config_get(root, "checks");
    struct span young = {.ns = (int64_t)(audit_usual.young_s * 1e9)};
    int64_t version = 1;
    int r = config_allow(root, keys, error);

    if (r == 0) {
        r = config_int(root, "version", 1, 1, &version, error);
    }
    if (r == 0) {
        r = config_span(root, "young", (struct span){0},
                        (struct span){.ns = INT64_C(86400000000000)}, &young, error);
    }
    f->settings.young_s = (double)young.ns / 1e9;
    if (r == 0 && config_get(root, "every") != NULL) {
        struct span every = {0};
        r = config_span(root, "every", (struct span){.ns = EVERY_LEAST_NS},
                        (struct span){.ns = EVERY_MOST_NS}, &every, error);
        f->every_ns = every.ns;
    }
    r = r < 0 ? r : config_bool(root, "matrix", &f->matrix, error);
    if (r == 0 && f->matrix && f->every_ns == 0) {
        r = config_fail(config_get(root, "matrix"), error,
                        "matrix is of the audits that `every` begins, and there is no `every`");
    }
    if (r == 0 && config_get(root, "returns") != NULL) {
        struct span returns = {0};
        r = config_span(root, "returns", (struct span){.ns = RETURNS_LEAST_NS},
                        (struct span){.ns = EVERY_MOST_NS}, &returns, error);
        f->returns_ns = returns.ns;
    }
    r = r < 0 ? r : read_off(root, f, error);
    r = r < 0 ? r : read_cohorts(root, f, error);
    return r < 0 || checks == NULL ? r : read_checks(checks, f, error);
}

int audit_file_load(const char *path, struct audit_file *ret_file, struct config_error *error)
{
    *ret_file = (struct audit_file){.settings = audit_usual};
    ret_file->settings.checks = ret_file->checks;
    if (path == NULL) {
        return 0;
    }
    int r = config_load(path, &ret_file->config, error);
    if (r == 0) {
        r = read_all(config_root(ret_file->config), ret_file, error);
    }
    if (r < 0) {
        audit_file_done(ret_file);
    }
    return r;
}

void audit_file_done(struct audit_file *f)
{
    f->config = config_free(f->config);
    free(f->hosts_off);
    free(f->cohorts);
    free(f->declared);
    f->hosts_off = NULL;
    f->cohorts = NULL;
    f->declared = NULL;
}
