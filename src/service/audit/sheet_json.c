/* sheet_json.c: see sheet_json.h. */
#include "service/audit/sheet_json.h"

#include <errno.h>
#include <string.h>

#include "service/audit/sheet.h"

static void put_facts(struct json_writer *j, const struct sheet *s)
{
    json_put_array(j, "facts");
    for (uint32_t i = 0; i < s->count; i++) {
        const struct fact *f = &s->facts[i];
        json_put_object(j, NULL);
        json_put_string(j, "fact", fact_name(f->id));
        json_put_string(j, "section", fact_section_name(fact_section(f->id)));
        json_put_string(j, "subject", f->subject);
        if (f->state != FACT_VALUE) {
            json_put_string(j, "state", fact_state_name(f->state));
        }
        json_put_string(j, "value", f->value);
        json_put_string(j, "source", f->source);
        json_put_end(j);
    }
    json_put_end(j);
}

/* Writes a sheet of an earlier time that is kept beside another one. */
static void put_beside(struct json_writer *j, const char *key, const struct sheet *s)
{
    if (s != NULL) {
        json_put_object(j, key);
        if (s->run != NULL) {
            json_put_string(j, "run", s->run);
        }
        json_put_int(j, "at_utc_ns", s->at_utc_ns);
        put_facts(j, s);
        json_put_end(j);
    }
}

void sheet_write(struct json_writer *j, const struct sheet *s)
{
    json_put_object(j, NULL);
    json_put_int(j, "version", 1);
    json_put_string(j, "kind", "audit-facts");
    json_put_string(j, "host", s->host);
    json_put_int(j, "at_utc_ns", s->at_utc_ns);
    json_put_int(j, "left_out", s->left_out);
    put_facts(j, s);
    put_beside(j, "was", s->was);
    put_beside(j, "accepted", s->accepted);
    json_put_end(j);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text != NULL ? text : "";
}

static void read_fact(const json_t *object, struct sheet *s)
{
    const char *state = json_string_value(json_object_get(object, "state"));
    const struct fact f = {.id = (uint16_t)fact_by_name(text_of(object, "fact")),
                           .state =
                               (uint8_t)(state == NULL ? FACT_VALUE : fact_state_by_name(state)),
                           .subject = text_of(object, "subject"),
                           .value = text_of(object, "value"),
                           .source = text_of(object, "source")};

    if (f.id < FACT_COUNT && f.state < FACT_STATE_COUNT) {
        sheet_add(s, &f);
    }
}

/* Reads the facts of a sheet. */
static void read_facts(const json_t *tree, struct sheet *s)
{
    const json_t *fact;
    size_t i;

    s->at_utc_ns = json_integer_value(json_object_get(tree, "at_utc_ns"));
    json_array_foreach(json_object_get(tree, "facts"), i, fact)
    {
        read_fact(fact, s);
    }
    s->left_out += (uint32_t)json_integer_value(json_object_get(tree, "left_out"));
    sheet_finish(s);
}

/* *ret NULL: there is none. -ENOMEM. */
static int read_beside(const json_t *tree, const struct sheet **ret)
{
    struct sheet *s = json_is_object(tree) ? sheet_new() : NULL;

    if (s != NULL) {
        s->run = json_object_get(tree, "run") != NULL ? sheet_keep(s, text_of(tree, "run")) : NULL;
        read_facts(tree, s);
        sheet_shrink(s);
    }
    *ret = s;
    return json_is_object(tree) && s == NULL ? -ENOMEM : 0;
}

int sheet_read(const json_t *tree, struct sheet *ret_sheet, const char **ret_why)
{
    const json_t *facts = json_object_get(tree, "facts");
    const char *host = json_string_value(json_object_get(tree, "host"));

    if (strcmp(text_of(tree, "kind"), "audit-facts") != 0 ||
        json_integer_value(json_object_get(tree, "version")) != 1) {
        *ret_why = "expected \"kind\": \"audit-facts\" and \"version\": 1";
        return -EINVAL;
    }
    if (host == NULL || host[0] == '\0' || !json_is_array(facts)) {
        *ret_why = "expected \"host\" and \"facts\"";
        return -EINVAL;
    }
    ret_sheet->host = sheet_keep(ret_sheet, host);
    read_facts(tree, ret_sheet);
    const int r = read_beside(json_object_get(tree, "was"), &ret_sheet->was);
    return r < 0 ? r : read_beside(json_object_get(tree, "accepted"), &ret_sheet->accepted);
}
