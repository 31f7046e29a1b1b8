/* fields.c: reads one map of a scenario by a table. */
#include "service/scenario/fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- one value ---- */
static int read_span(const struct config_node *node, const struct field *f, void *place,
                     struct config_error *error)
{
    const char *text = config_text(node);
    int64_t ns = 0;

    if (text == NULL || scenario_duration(text, &ns) < 0) {
        return config_expected(node, error, "a time such as 20s, 1.5ms or 300ns for '%s'", f->key);
    }
    if ((double)ns < f->minimum || (double)ns > f->maximum) {
        return config_expected(node, error, "'%s' between %g ns and %g ns", f->key, f->minimum,
                               f->maximum);
    }
    if (f->kind == FIELD_SPAN_DOUBLE) {
        *(double *)place = (double)ns;
    } else {
        *(int64_t *)place = ns;
    }
    return 0;
}

static int read_share(const struct config_node *node, const struct field *f, double *ret,
                      struct config_error *error)
{
    const char *text = config_text(node);
    char *end = NULL;
    double value = text != NULL ? strtod(text, &end) : 0;

    if (text == NULL || end == text || (strcmp(end, "%") != 0 && *end != '\0')) {
        return config_expected(node, error, "a share such as 5%% or 0.05 for '%s'", f->key);
    }
    value = *end == '%' ? value / 100 : value;
    if (!(value >= f->minimum && value <= f->maximum)) {
        return config_expected(node, error, "'%s' between %g%% and %g%%", f->key, f->minimum * 100,
                               f->maximum * 100);
    }
    *ret = value;
    return 0;
}

static int read_target(const struct config_node *node, struct scenario_target *ret,
                       struct config_error *error)
{
    const char *text = config_text(node);
    if (text == NULL || scenario_target_parse(text, ret) < 0) {
        return config_expected(
            node, error,
            "a target: all, host 3, hosts 0-3, hosts 10%%, nic 3.1, leaf 0, "
            "spine 2, trunk 0-2, edge 0.0>5.1 [path 2], edge 0.0-5.1, edges 10%%");
    }
    return 0;
}

static int read_field(const struct config_node *map, const struct field *f, void *base,
                      struct config_error *error)
{
    void *place = (char *)base + f->offset;
    const struct config_node *node = config_get(map, f->key);
    int64_t number = 0;
    int r;

    if (node == NULL) {
        return 0;
    }
    switch (f->kind) {
    case FIELD_INT:
        r = config_int(map, f->key, (int64_t)f->minimum, (int64_t)f->maximum, &number, error);
        if (r == 0) {
            *(int *)place = (int)number;
        }
        return r;
    case FIELD_BYTES:
        return config_int(map, f->key, (int64_t)f->minimum, (int64_t)f->maximum, place, error);
    case FIELD_NUMBER:
        return config_double(map, f->key, f->minimum, f->maximum, place, error);
    case FIELD_BOOL:
        return config_bool(map, f->key, place, error);
    case FIELD_CHOICE: {
        int choice = 0;
        r = config_choice(map, f->key, f->choices, &choice, error);
        if (r == 0) {
            *(unsigned *)place = (unsigned)choice;
        }
        return r;
    }
    case FIELD_SHARE:
        return read_share(node, f, place, error);
    case FIELD_TARGET:
        return read_target(node, place, error);
    case FIELD_SPAN:
    case FIELD_SPAN_DOUBLE:
        return read_span(node, f, place, error);
    }
    return -EINVAL;
}

/* Refuses keys outside `fields` and `extra`, then reads the fields. */
int scenario_fields_read(const struct config_node *map, const struct field *fields, size_t count,
                         const char *const *extra, void *base, struct config_error *error)
{
    const char *keys[64];
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        keys[n++] = fields[i].key;
    }
    for (; extra != NULL && *extra != NULL; extra++) {
        keys[n++] = *extra;
    }
    ASSERT(n < ARRAY_COUNT(keys));
    keys[n] = NULL;
    int r = config_allow(map, keys, error);
    for (size_t i = 0; i < count && r == 0; i++) {
        r = read_field(map, &fields[i], base, error);
    }
    return r;
}
