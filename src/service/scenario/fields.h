/* fields.h: internals of the scenario reader: a table has one row per key, with its type and its place in the struct. */
#pragma once
#include "platform/config/config.h"
#include "service/scenario/scenario.h"

enum field_kind {
    FIELD_INT,         /* int */
    FIELD_BYTES,       /* int64_t */
    FIELD_NUMBER,      /* double */
    FIELD_SHARE,       /* double, 0..1; "5%" too */
    FIELD_BOOL,        /* bool */
    FIELD_SPAN,        /* int64_t ns; "20us" */
    FIELD_SPAN_DOUBLE, /* double ns; "20.5ns" */
    FIELD_CHOICE,      /* an enum */
    FIELD_TARGET,      /* struct scenario_target */
};

struct field {
    const char *key;
    enum field_kind kind;
    size_t offset;
    double minimum, maximum; /* of a number */
    const char *const *choices;
};

#define SPAN_MAX 1e18

/* language.c */
extern const struct field scenario_fabric_fields[], scenario_clocks_fields[],
    scenario_traffic_fields[], scenario_fault_fields[];
extern const size_t scenario_fabric_field_count, scenario_clocks_field_count,
    scenario_traffic_field_count, scenario_fault_field_count;

/* The targets that a fault may have (bits of enum scenario_target_kind), and the field that it needs. */
struct fault_rule {
    unsigned targets;
    const char *needs; /* NULL: none */
};
extern const struct fault_rule scenario_fault_rules[FAULT_KINDS];

/* Refuses keys outside `fields` and `extra` (NULL-ended, may be NULL), then reads the fields of `map` into `base`. If a key is
 * missing, the value in `base` stays. */
MUST_CHECK int scenario_fields_read(const struct config_node *map, const struct field *fields,
                                    size_t count, const char *const *extra, void *base,
                                    struct config_error *error);
