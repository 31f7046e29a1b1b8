/* settings.c: see settings.h. */
#include "service/audit/settings.h"

#include <math.h>
#include <string.h>

#include "base/bug.h"

static const char *const severities[] = {"block", "drain", "ticket", "info", NULL};

/* A limit that is set; one of a check without limits is refused. */
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

static int read_check(const struct config_node *node, struct check_setting *s,
                      struct config_error *error)
{
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
        r = config_string(node, "declared", &s->declared, error);
    }
    if (r == 0 && s->declared != NULL && (c->compare & COMPARE_DECLARED) == 0) {
        r = config_fail(config_get(node, "declared"), error,
                        "%s compares with nothing that could be declared", c->id);
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

static int read_all(const struct config_node *root, struct audit_file *f,
                    struct config_error *error)
{
    static const char *const keys[] = {"version", "young", "checks", NULL};
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
    if (r == 0 && checks != NULL && config_kind(checks) != CONFIG_MAP) {
        return config_expected(checks, error, "a map of checks");
    }
    for (const struct config_node *n = r == 0 && checks != NULL ? config_first(checks) : NULL;
         n != NULL && r == 0; n = config_next(n)) {
        r = read_check(n, f->checks, error);
    }
    return r;
}

int audit_file_load(const char *path, struct audit_file *ret_file, struct config_error *error)
{
    int r;

    *ret_file = (struct audit_file){.settings = audit_usual};
    ret_file->settings.checks = ret_file->checks;
    if (path == NULL) {
        return 0;
    }
    r = config_load(path, &ret_file->config, error);
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
}
