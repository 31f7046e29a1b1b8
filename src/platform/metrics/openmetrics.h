/* openmetrics.h: text for /metrics: one call per family, then its samples. Clients that ask for it, like Prometheus, get
 * OpenMetrics 1.0.0. Others get the older text format, which promtool and all others read.
 *
 * Names are given without "foliot_" and, for counters, without "_total"; both are added. The unit is the last word of the
 * name, as the format requires. Label values are escaped. Errors stick. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define METRICS_TYPE_OPEN  "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define METRICS_TYPE_PLAIN "text/plain; version=0.0.4; charset=utf-8"

struct metrics_text {
    char *bytes;
    size_t size, capacity;
    bool failed;      /* out of memory */
    bool plain;       /* the older format; set it before the first family */
    const char *host; /* not NULL: each sample has a label host="…"; the caller keeps the text */
};
struct metrics_label {
    const char *name, *value;
};

/* Chooses the format by the request's Accept (NULL: none): sets `plain`, returns the content type. */
const char *metrics_negotiate(struct metrics_text *t, const char *accept);

void metrics_done(struct metrics_text *t);
/* type: "gauge", "counter", "stateset"; unit may be NULL. */
void metrics_family(struct metrics_text *t, const char *name, const char *type, const char *unit,
                    const char *help);
/* A sample of the family. label NULL: no label. */
void metrics_sample(struct metrics_text *t, const char *name, const char *label, const char *value,
                    double number);
/* A sample with any number of labels. */
void metrics_sample_n(struct metrics_text *t, const char *name, const struct metrics_label *labels,
                      size_t count, double number);
/* A family with one sample. */
void metrics_counter(struct metrics_text *t, const char *name, const char *help, uint64_t number);
void metrics_gauge(struct metrics_text *t, const char *name, const char *unit, const char *help,
                   double number);
void metrics_end(struct metrics_text *t);
