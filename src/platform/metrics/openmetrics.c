/* openmetrics.c: the text format. */
#include "platform/metrics/openmetrics.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/plain.h"

static void put(struct metrics_text *t, const char *text, size_t size)
{
    if (t->failed) {
        return;
    }
    if (t->size + size + 1 > t->capacity) {
        const size_t capacity = (t->capacity + size) * 2 + 4096;
        char *larger = realloc(t->bytes, capacity);
        if (larger == NULL) {
            t->failed = true;
            return;
        }
        t->bytes = larger;
        t->capacity = capacity;
    }
    memcpy(t->bytes + t->size, text, size);
    t->size += size;
    t->bytes[t->size] = 0;
}

static void put_text(struct metrics_text *t, const char *text)
{
    put(t, text, strlen(text));
}

static void put_label(struct metrics_text *t, const char *label, const char *value)
{
    put_text(t, label);
    put_text(t, "=\"");
    for (size_t n; *value != 0; value += n) {
        char shown[16];
        n = plain_length(value);
        if (*value == '"' || *value == '\\') {
            put(t, "\\", 1);
        }
        if (n > 0) {
            put(t, value, n);
        } else { /* no UTF-8, or a control character: scrapers would refuse the whole page */
            n = plain_character(value, shown);
            put(t, "\\", 1);
            put_text(t, shown);
        }
    }
    put_text(t, "\"");
}

static void put_number(struct metrics_text *t, double number)
{
    char text[40];
    snprintf(text, sizeof(text),
             number == floor(number) && fabs(number) < 9e15 ? " %.0f\n" : " %.12g\n", number);
    put_text(t, isnan(number) ? " NaN\n" : text);
}

void metrics_done(struct metrics_text *t)
{
    free(t->bytes);
    *t = (struct metrics_text){0};
}

static void put_line(struct metrics_text *t, const char *word, const char *name, const char *text)
{
    put_text(t, "# ");
    put_text(t, word);
    put_text(t, " foliot_");
    put_text(t, name);
    put_text(t, " ");
    put_text(t, text);
    put_text(t, "\n");
}

void metrics_family(struct metrics_text *t, const char *name, const char *type, const char *unit,
                    const char *help)
{
    char total[96];
    if (t->plain) {
        /* in the older format a counter's family has the name of its samples; stateset and unit do not exist */
        snprintf(total, sizeof(total), "%s%s", name, strcmp(type, "counter") == 0 ? "_total" : "");
        put_line(t, "HELP", total, help);
        put_line(t, "TYPE", total, strcmp(type, "stateset") == 0 ? "gauge" : type);
        return;
    }
    put_line(t, "TYPE", name, type);
    if (unit != NULL) {
        put_line(t, "UNIT", name, unit);
    }
    put_line(t, "HELP", name, help);
}

void metrics_sample_n(struct metrics_text *t, const char *name, const struct metrics_label *labels,
                      size_t count, double number)
{
    const struct metrics_label host = {"host", t->host};
    const size_t own = t->host != NULL;

    put_text(t, "foliot_");
    put_text(t, name);
    for (size_t i = 0; i < own + count; i++) {
        const struct metrics_label *label = i < own ? &host : &labels[i - own];
        put_text(t, i == 0 ? "{" : ",");
        put_label(t, label->name, label->value);
    }
    put_text(t, own + count > 0 ? "}" : "");
    put_number(t, number);
}

void metrics_sample(struct metrics_text *t, const char *name, const char *label, const char *value,
                    double number)
{
    const struct metrics_label one = {label, value};
    metrics_sample_n(t, name, &one, label != NULL, number);
}

void metrics_counter(struct metrics_text *t, const char *name, const char *help, uint64_t number)
{
    char total[96];
    snprintf(total, sizeof(total), "%s_total", name);
    metrics_family(t, name, "counter", NULL, help);
    metrics_sample(t, total, NULL, NULL, (double)number);
}

void metrics_gauge(struct metrics_text *t, const char *name, const char *unit, const char *help,
                   double number)
{
    metrics_family(t, name, "gauge", unit, help);
    metrics_sample(t, name, NULL, NULL, number);
}

void metrics_end(struct metrics_text *t)
{
    if (!t->plain) {
        put_text(t, "# EOF\n");
    }
}

const char *metrics_negotiate(struct metrics_text *t, const char *accept)
{
    t->plain = accept == NULL || strstr(accept, "application/openmetrics-text") == NULL;
    return t->plain ? METRICS_TYPE_PLAIN : METRICS_TYPE_OPEN;
}
