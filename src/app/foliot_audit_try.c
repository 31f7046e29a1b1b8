/* foliot_audit_try.c: `foliot audit test`: tries a check's limits on kept sheets, from files or from the controller, one audit
 * at a time. The same code as in an audit judges them with both limits, and the hosts that would change are printed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "app/foliot_api.h"
#include "app/foliot_audit.h"
#include "app/foliot_command.h"
#include "app/foliot_foreign.h"
#include "app/foliot_text.h"
#include "base/time.h"

/* Reads a number; nothing may follow it. */
static bool read_limit(const char *text, double *ret)
{
    char *end = NULL;

    *ret = strtod(text, &end);
    return end != text && *end == '\0' && *ret >= -1e15 && *ret <= 1e15;
}

/* Sets the check's limits from the options. */
static int set_limits(const struct audit_options *o, const struct check *c, struct check_setting *s)
{
    const struct {
        const char *option, *text;
        bool *has;
        double *value;
    } limits[] = {{"--fail", o->fail, &s->has_fail, &s->fail},
                  {"--warn", o->warn, &s->has_warn, &s->warn}};

    if (o->fail == NULL && o->warn == NULL && o->declared == NULL) {
        fprintf(stderr, "foliot audit test: expected at least one of --fail, --warn and "
                        "--declared, found none\n");
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
        fprintf(stderr, "foliot audit test: %s does not compare with a declared value\n", c->id);
        return EXIT_USAGE;
    }
    if (o->declared != NULL) {
        s->declared = o->declared;
        s->declared_by_count = 0;
    }
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

/* Compares both judgements. From the same sheets they have the same subjects in the same order. */
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

/* A trial, and its results so far. */
struct trial {
    const struct check *check;
    struct audit_file *file;
    struct check_setting checks[CHECKS_MAX];
    struct audit_settings other;
    json_t *all; /* one for each audit */
    bool changed, json;
};

/* ---- output ---- */

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

/* Judges the sheets of one audit. name: of the audit. */
static int try_sheets(struct trial *y, const struct audit_sheets *sheets, const char *name)
{
    struct audit was = {0}, is = {0};
    struct tried t = {.changed = json_array()};
    int status = audited(&was, sheets, &y->file->settings);

    if (status == EXIT_WELL) {
        status = audited(&is, sheets, &y->other);
        if (status == EXIT_WELL) {
            compare(&was, &is, y->check, &t);
            audited_done(&is);
        }
        audited_done(&was);
    }
    y->changed = y->changed || json_array_size(t.changed) > 0;
    if (status == EXIT_WELL && !y->json) {
        print_one(name, &t);
    }
    json_array_append_new(y->all, json_pack("{ss so so so}", "path", name, "was", counts_of(t.was),
                                            "is", counts_of(t.is), "changed", t.changed));
    return status;
}

static int begin(struct trial *y, const struct audit_options *o, struct audit_file *file,
                 const char *check)
{
    *y = (struct trial){.check = check_by_id(check), .file = file, .json = o->json};
    if (y->check == NULL) {
        fprintf(stderr, "foliot audit test: %s: no such check: foliot audit checks\n",
                foreign_text(check).text);
        return EXIT_USAGE;
    }
    memcpy(y->checks, file->checks, sizeof(y->checks));
    y->other = file->settings;
    y->other.checks = y->checks;
    y->all = json_array();
    return set_limits(o, y->check, &y->checks[check_number(y->check)]);
}

static int end(struct trial *y, int status)
{
    if (status == EXIT_WELL && y->json) {
        json_t *answer = json_pack("{ss sI ss sO}", "kind", "audit-test", "version", (json_int_t)1,
                                   "check", y->check->id, "paths", y->all);
        json_dumpf(answer, stdout, JSON_COMPACT);
        putchar('\n');
        json_decref(answer);
    }
    json_decref(y->all);
    return status != EXIT_WELL ? status : y->changed ? EXIT_NOT_WELL : EXIT_WELL;
}

int audit_try(const struct audit_options *o, struct audit_file *file, int count, char *words[])
{
    struct trial y;
    int status = begin(&y, o, file, words[0]);

    for (int i = 1; i < count && status == EXIT_WELL; i++) {
        struct audit_sheets sheets = {0};
        status = sheets_load(&sheets, words[i]);
        status = status == EXIT_WELL ? try_sheets(&y, &sheets, words[i]) : status;
        sheets_done(&sheets);
    }
    return end(&y, status);
}

/* ---- audits that the controller has kept ---- */

/* Tries one audit. If its sheets are no longer kept, it is left out. */
static int try_run(struct trial *y, struct api *api, const json_t *run)
{
    struct audit_sheets sheets = {0};
    json_t *items = NULL, *sheet;
    char path[96], name[160];
    size_t i;

    snprintf(path, sizeof(path), "/api/v1/audit/runs/%.24s/facts?limit=100", api_text(run, "run"));
    snprintf(name, sizeof(name), "audit %.24s of %s", api_text(run, "run"),
             field_time(run, "started_utc_ns").text);
    int status = api_ask_pages(api, path, &items);
    json_array_foreach(items, i, sheet)
    {
        status = status == EXIT_WELL ? sheets_add_json(&sheets, sheet, name) : status;
    }
    if (status == EXIT_WELL && sheets.count > 0) {
        status = try_sheets(y, &sheets, name);
    }
    sheets_done(&sheets);
    json_decref(items);
    return status;
}

int audit_try_fleet(struct api *api, const struct audit_options *o, int64_t since_ns,
                    const char *check)
{
    struct audit_file *file = calloc(1, sizeof(*file));
    struct trial y = {.check = NULL};
    json_t *runs = NULL;
    int status = file == NULL ? EXIT_UNREACHABLE : audit_settings_of(o, file);

    if (status != EXIT_WELL) {
        free(file);
        return status;
    }
    status = begin(&y, o, file, check);
    status =
        status == EXIT_WELL ? api_ask_pages(api, "/api/v1/audit/runs?limit=1000", &runs) : status;
    const int64_t from_ns = (int64_t)time(NULL) * NS_PER_S - since_ns;
    for (size_t i = json_array_size(runs); i > 0 && status == EXIT_WELL; i--) { /* oldest first */
        const json_t *run = json_array_get(runs, i - 1);
        if (strcmp(api_text(run, "state"), "done") == 0 &&
            json_integer_value(json_object_get(run, "started_utc_ns")) >= from_ns) {
            status = try_run(&y, api, run);
        }
    }
    if (status == EXIT_WELL && json_array_size(y.all) == 0) {
        fputs("foliot audit test: the controller has no sheets of audits of that time\n", stderr);
        status = EXIT_UNREACHABLE;
    }
    status = end(&y, status);
    json_decref(runs);
    audit_file_done(file);
    free(file);
    return status;
}
