/* fields.h: the inside of the scenario reader: a table row per key says what it holds and where it
 * goes. */
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

/* Refuses keys outside `fields` and `extra` (NULL-ended, may be NULL), reads the fields of `map`
 * into `base`. A missing key leaves what is there. */
MUST_CHECK int scenario_fields_read(const struct config_node *map, const struct field *fields,
                                    size_t count, const char *const *extra, void *base,
                                    struct config_error *error);
