/* foliot_audit_text.c: prints results of an audit, of this host or of a fleet. Equal results of many hosts are one block that
 * names the hosts. Failures that keep jobs off a host come first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app/foliot_audit.h"
#include "app/foliot_show.h"
#include "app/foliot_text.h"

enum { NAMED = 8, KEY_SIZE = 2048, LIST_SIZE = 1024 };

/* ---- lists of names ---- */

/* Names in order, each once: "h1, h2 and 3 more". */
struct names {
    json_t *seen; /* as keys */
    size_t count;
    char text[LIST_SIZE];
};

static void names_init(struct names *n)
{
    *n = (struct names){.seen = json_object()};
}

static void names_add(struct names *n, const char *name)
{
    const size_t used = strlen(n->text);

    if (json_object_get(n->seen, name) != NULL) {
        return;
    }
    json_object_set_new(n->seen, name, json_true());
    if (n->count++ < NAMED) {
        snprintf(n->text + used, sizeof(n->text) - used, "%s%s", used > 0 ? ", " : "", name);
    }
}

static void names_end(struct names *n)
{
    const size_t used = strlen(n->text);

    if (n->count > NAMED) {
        snprintf(n->text + used, sizeof(n->text) - used, " and %zu more", n->count - NAMED);
    }
    json_decref(n->seen);
}

/* ---- blocks ---- */

/* The key is the same for results that differ only in their place. All results of a suspect check have one key. */
static void key_of(const json_t *r, char key[KEY_SIZE])
{
    const bool suspect = field_true(r, "suspect");

    snprintf(key, KEY_SIZE, "%.80s\n%d\n%d\n%.600s\n%.600s\n%.600s", field_string(r, "check"),
             suspect, field_true(r, "overridden"), suspect ? "" : field_string(r, "found"),
             suspect ? "" : field_string(r, "expected"), suspect ? "" : field_string(r, "note"));
}

/* Arrays of results, in the order of each array's first result. The caller owns them. */
static json_t *blocks_of(const json_t *results, const char *status)
{
    json_t *blocks = json_array(), *places = json_object(), *r;
    char key[KEY_SIZE];
    size_t i;

    json_array_foreach(results, i, r)
    {
        if (strcmp(field_string(r, "status"), status) != 0) {
            continue;
        }
        key_of(r, key);
        const json_t *place = json_object_get(places, key);
        if (place == NULL) {
            json_object_set_new(places, key, json_integer((json_int_t)json_array_size(blocks)));
            json_array_append_new(blocks, json_array());
            place = json_object_get(places, key);
        }
        json_array_append(json_array_get(blocks, (size_t)json_integer_value(place)), r);
    }
    json_decref(places);
    return blocks;
}

static enum colour colour_of_audit(const char *status)
{
    return strcmp(status, "fail") == 0   ? COLOUR_BAD
           : strcmp(status, "pass") == 0 ? COLOUR_GOOD
           : strcmp(status, "skip") == 0 ? COLOUR_DIM
                                         : COLOUR_WARN;
}

static void print_line(const char *what, const char *text)
{
    if (text[0] != '\0') {
        printf("  %-9s %s\n", what, text);
    }
}

static void print_where(const json_t *block)
{
    struct names hosts, subjects;
    size_t i;
    json_t *r;

    names_init(&hosts);
    names_init(&subjects);
    json_array_foreach(block, i, r)
    {
        names_add(&hosts, field_string(r, "host"));
        if (field_string(r, "subject")[0] != '\0') {
            names_add(&subjects, field_string(r, "subject"));
        }
    }
    names_end(&hosts);
    names_end(&subjects);
    const char *device = field_string(json_array_get(block, 0), "device");
    if (hosts.count == 1) {
        const bool one = subjects.count == 1 && device[0] != '\0';
        printf("%s%s%s%s%s%s", hosts.text, subjects.text[0] != '\0' ? " " : "", subjects.text,
               one ? " (" : "", one ? device : "", one ? ")" : "");
    } else {
        printf("%zu hosts: %s", hosts.count, hosts.text);
    }
}

static void print_block(const json_t *block)
{
    const json_t *r = json_array_get(block, 0);
    const char *status = field_string(r, "status"), *id = field_string(r, "check"),
               *basis = field_string(r, "basis");
    const bool suspect = field_true(r, "suspect");
    const struct check *c = check_by_id(id);
    char text[LIST_SIZE];

    printf("\n%s%s%s %s%s  ", colour_begin(stdout, colour_of_audit(status)),
           suspect ? "suspect" : status, colour_end(stdout), id,
           field_true(r, "overridden") ? " (set in audit.yaml)" : "");
    print_where(block);
    printf("  (%s)\n", field_string(r, "severity"));
    print_line("found", field_string(r, "found"));
    snprintf(text, sizeof(text), "%s%s%s", field_string(r, "expected"),
             basis[0] != '\0' ? ", " : "", basis);
    print_line("expected", text);
    print_line("note", field_string(r, "note"));
    print_line("source", audit_report_source(r));
    if (json_is_integer(json_object_get(r, "at_utc_ns"))) {
        print_line("read", field_time(r, "at_utc_ns").text);
    }
    print_line("why", c != NULL ? c->why : "");
    if (suspect) {
        snprintf(text, sizeof(text), "Look at the check first: foliot audit explain %s", id);
    }
    print_line("do", suspect ? text : field_string(r, "remedy"));
}

void audit_print_blocks(const json_t *results, const char *status, int *room)
{
    json_t *blocks = blocks_of(results, status), *block;
    size_t i, cut = 0;

    for (int severity = 0; severity < SEVERITY_COUNT; severity++) {
        json_array_foreach(blocks, i, block)
        {
            const json_t *first = json_array_get(block, 0);
            if (strcmp(field_string(first, "severity"),
                       check_severity_name((enum check_severity)severity)) != 0) {
                continue;
            }
            if (*room > 0) {
                print_block(block);
                --*room;
            } else {
                cut++;
            }
        }
    }
    if (cut > 0) {
        printf("\n… and %zu more with status %s: --json has all\n", cut, status);
    }
    json_decref(blocks);
}

/* ---- unknown results ---- */

/* The reason of an unknown result. If the source has no value, `found` is the reason; otherwise `found` is a value of this
 * host, and is left out. */
static void why_of(const json_t *r, char why[LIST_SIZE])
{
    const char *note = field_string(r, "note"), *reason = field_string(r, "reason"),
               *found = strcmp(reason, "no_source") == 0 || strcmp(reason, "stuck") == 0
                            ? field_string(r, "found")
                            : "";

    snprintf(why, LIST_SIZE, "%.100s%s%.60s", note, note[0] != '\0' && found[0] != '\0' ? ": " : "",
             found);
}

/* Groups the results by check and reason, with their hosts. Then rows with the same hosts and reason become one. */
static json_t *rows_of(const json_t *results)
{
    json_t *by_check = json_object(), *rows = json_object(), *r, *hosts;
    char key[KEY_SIZE], why[LIST_SIZE];
    const char *name;
    size_t i;

    json_array_foreach(results, i, r)
    {
        if (strcmp(field_string(r, "status"), "unknown") != 0) {
            continue;
        }
        why_of(r, why);
        snprintf(key, sizeof(key), "%.80s\n%.20s\n%s", field_string(r, "check"),
                 field_string(r, "reason"), why);
        hosts = json_object_get(by_check, key);
        if (hosts == NULL) {
            hosts = json_object();
            json_object_set_new(by_check, key, hosts);
        }
        json_object_set_new(hosts, field_string(r, "host"), json_true());
    }
    json_object_foreach(by_check, name, hosts)
    {
        char *list = json_dumps(hosts, JSON_COMPACT | JSON_SORT_KEYS);
        const char *rest = strchr(name, '\n') + 1; /* reason and why */
        const size_t size = strlen(rest) + strlen(list != NULL ? list : "") + 2;
        char *place = malloc(size);
        if (place != NULL && list != NULL) {
            snprintf(place, size, "%s\n%s", rest, list);
            if (json_object_get(rows, place) == NULL) {
                json_object_set_new(rows, place,
                                    json_pack("{s:[], s:O}", "checks", "hosts", hosts));
            }
            json_array_append_new(json_object_get(json_object_get(rows, place), "checks"),
                                  json_stringn(name, (size_t)(rest - 1 - name)));
        }
        free(place);
        free(list);
    }
    json_decref(by_check);
    return rows;
}

static void put_row(struct libscols_table *table, const char *key, const json_t *row)
{
    const char *why = strchr(key, '\n') + 1, *host;
    const json_t *checks = json_object_get(row, "checks");
    const size_t more = json_array_size(checks) - 1;
    struct names hosts;
    json_t *name;

    names_init(&hosts);
    json_object_foreach(json_object_get(row, "hosts"), host, name)
    {
        names_add(&hosts, host);
    }
    names_end(&hosts);
    struct libscols_line *line = table_line(table);
    if (line != NULL) {
        const char *first = json_string_value(json_array_get(checks, 0));
        table_put(line, 0, more > 0 ? text_format("%s and %zu more", first, more).text : first);
        table_put(line, 1, text_format("%.*s", (int)strcspn(key, "\n"), key).text);
        table_put(line, 2, text_format("%.*s", (int)strcspn(why, "\n"), why).text);
        table_put(line, 3, hosts.text);
    }
}

void audit_print_unknown(const json_t *results)
{
    static const char *const titles[] = {"NOT KNOWN", "REASON", "WHY", "HOSTS", NULL};
    json_t *rows = rows_of(results), *row;
    struct libscols_table *table = json_object_size(rows) > 0 ? table_new(titles) : NULL;
    const char *key;

    json_object_foreach(rows, key, row)
    {
        if (table != NULL) {
            put_row(table, key, row);
        }
    }
    if (table != NULL) {
        puts("");
        table_show(table, stdout);
    }
    json_decref(rows);
}

/* ---- hosts that may not take a job ---- */

void audit_print_closed(const json_t *hosts)
{
    static const char *const closed[] = {"fail", "unknown"};
    size_t i;
    json_t *h;

    for (size_t k = 0; k < 2; k++) {
        struct names names;
        names_init(&names);
        json_array_foreach(hosts, i, h)
        {
            if (strcmp(field_string(h, "gate"), closed[k]) == 0) {
                names_add(&names, field_string(h, "host"));
            }
        }
        names_end(&names);
        if (names.count > 0) {
            printf("no job may begin on %zu host%s (%s): %s\n", names.count,
                   names.count == 1 ? "" : "s",
                   k == 0 ? "a blocking check fails" : "a blocking check is unknown", names.text);
        }
    }
}
