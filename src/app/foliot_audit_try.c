/* foliot_audit_try.c: `foliot audit test`: a check's limits tried on sheets that were kept, of one time each: who would have
 * been failed. Both ways are judged by the same code as an audit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_audit.h"
#include "app/foliot_command.h"
#include "app/foliot_foreign.h"

/* A number and nothing else. */
static bool read_limit(const char *text, double *ret)
{
    char *end = NULL;

    *ret = strtod(text, &end);
    return end != text && *end == '\0' && *ret >= -1e15 && *ret <= 1e15;
}

/* What the options change of the check. */
static int set_limits(const struct audit_options *o, const struct check *c, struct check_setting *s)
{
    const struct {
        const char *option, *text;
        bool *has;
        double *value;
    } limits[] = {{"--fail", o->fail, &s->has_fail, &s->fail},
                  {"--warn", o->warn, &s->has_warn, &s->warn}};

    if (o->fail == NULL && o->warn == NULL && o->declared == NULL) {
        fprintf(stderr, "foliot audit test: nothing is to be tried: --fail, --warn, --declared\n");
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        if (limits[i].text == NULL) {
            continue;
        }
        if (c->unit == NULL || !read_limit(limits[i].text, limits[i].value)) {
            fprintf(stderr, "foliot audit test: %s: %s\n", limits[i].option,
                    c->unit == NULL ? "this check has no limit that can be set"
                                    : "expected a number");
            return EXIT_USAGE;
        }
        *limits[i].has = true;
    }
    if (o->declared != NULL && (c->compare & COMPARE_DECLARED) == 0) {
        fprintf(stderr, "foliot audit test: %s compares with nothing that could be declared\n",
                c->id);
        return EXIT_USAGE;
    }
    s->declared = o->declared != NULL ? o->declared : s->declared;
    return EXIT_WELL;
}

struct tried {
    uint32_t was[AUDIT_STATUS_COUNT], is[AUDIT_STATUS_COUNT];
    json_t *changed;
};

static const struct audit_result *next_of(const struct audit *a, const struct check *c, uint32_t *i)
{
    while (*i < a->count && a->results[*i].check != c) {
        (*i)++;
    }
    return *i < a->count ? &a->results[(*i)++] : NULL;
}

/* Of the same sheets both have the same subjects, in the same order. */
static void compare(const struct audit *was, const struct audit *is, const struct check *c,
                    struct tried *t)
{
    uint32_t i = 0, k = 0;
    const struct audit_result *a, *b;

    while ((a = next_of(was, c, &i)) != NULL && (b = next_of(is, c, &k)) != NULL) {
        t->was[a->status]++;
        t->is[b->status]++;
        if (a->status != b->status) {
            json_array_append_new(
                t->changed, json_pack("{ss ss ss ss ss}", "host", was->sheets[a->sheet].host,
                                      "subject", a->subject, "was", audit_status_name(a->status),
                                      "is", audit_status_name(b->status), "found", b->found));
        }
    }
}

static int try_one(const char *path, const struct check *c, const struct audit_settings *settings,
                   const struct audit_settings *other, struct tried *t)
{
    struct audit_sheets sheets = {0};
    struct audit was = {0}, is = {0};
    int status = sheets_load(&sheets, path);

    if (status == EXIT_WELL) {
        status = audited(&was, &sheets, settings);
    }
    if (status == EXIT_WELL) {
        status = audited(&is, &sheets, other);
        if (status == EXIT_WELL) {
            compare(&was, &is, c, t);
            audited_done(&is);
        }
        audited_done(&was);
    }
    sheets_done(&sheets);
    return status;
}

/* ---- shown ---- */

static json_t *counts_of(const uint32_t counts[AUDIT_STATUS_COUNT])
{
    json_t *object = json_object();

    for (int i = 0; i < AUDIT_STATUS_COUNT; i++) {
        json_object_set_new(object, audit_status_name(i), json_integer(counts[i]));
    }
    return object;
}

static void print_counts(const char *what, const uint32_t counts[AUDIT_STATUS_COUNT])
{
    printf("  %-7s", what);
    for (int i = 0; i < AUDIT_STATUS_COUNT; i++) {
        printf(" %s %u%s", audit_status_name(i), counts[i],
               i + 1 < AUDIT_STATUS_COUNT ? "," : "\n");
    }
}

static void print_one(const char *path, const struct tried *t)
{
    size_t i;
    json_t *r;

    printf("%s\n", foreign_text(path).text);
    print_counts("now", t->was);
    print_counts("tried", t->is);
    json_array_foreach(t->changed, i, r)
    {
        const char *subject = json_string_value(json_object_get(r, "subject"));
        printf("  %s%s%s: %s, would be %s  %s\n",
               foreign_text(json_string_value(json_object_get(r, "host"))).text,
               subject[0] != '\0' ? " " : "", foreign_text(subject).text,
               json_string_value(json_object_get(r, "was")),
               json_string_value(json_object_get(r, "is")),
               foreign_text(json_string_value(json_object_get(r, "found"))).text);
    }
}

static int try_all(const struct audit_options *o, const struct check *c, struct audit_file *file,
                   const struct audit_settings *other, int count, char *paths[])
{
    json_t *all = json_array();
    int status = EXIT_WELL;
    bool changed = false;

    for (int i = 0; i < count && status == EXIT_WELL; i++) {
        struct tried t = {.changed = json_array()};
        status = try_one(paths[i], c, &file->settings, other, &t);
        changed = changed || json_array_size(t.changed) > 0;
        if (status == EXIT_WELL && !o->json) {
            print_one(paths[i], &t);
        }
        json_array_append_new(all,
                              json_pack("{ss so so so}", "path", paths[i], "was", counts_of(t.was),
                                        "is", counts_of(t.is), "changed", t.changed));
    }
    if (status == EXIT_WELL && o->json) {
        json_t *answer = json_pack("{ss sI ss sO}", "kind", "audit-test", "version", (json_int_t)1,
                                   "check", c->id, "paths", all);
        json_dumpf(answer, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(answer);
    }
    json_decref(all);
    return status != EXIT_WELL ? status : changed ? EXIT_NOT_WELL : EXIT_WELL;
}

int audit_try(const struct audit_options *o, struct audit_file *file, int count, char *words[])
{
    const struct check *c = check_by_id(words[0]);
    struct check_setting settings[CHECKS_MAX];
    struct audit_settings other = file->settings;

    if (c == NULL) {
        fprintf(stderr, "foliot audit test: %s: no such check: foliot audit checks\n",
                foreign_text(words[0]).text);
        return EXIT_USAGE;
    }
    memcpy(settings, file->checks, sizeof(settings));
    other.checks = settings;
    const int status = set_limits(o, c, &settings[check_number(c)]);
    return status == EXIT_WELL ? try_all(o, c, file, &other, count - 1, words + 1) : status;
}
