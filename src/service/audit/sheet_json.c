/* sheet_json.c: see sheet_json.h. */
#include "service/audit/sheet_json.h"

#include <errno.h>
#include <string.h>

void sheet_write(struct json_writer *j, const struct sheet *s)
{
    json_put_object(j, NULL);
    json_put_int(j, "version", 1);
    json_put_string(j, "kind", "audit-facts");
    json_put_string(j, "host", s->host);
    json_put_int(j, "at_utc_ns", s->at_utc_ns);
    json_put_int(j, "left_out", s->left_out);
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

int sheet_read(const json_t *tree, struct sheet *ret_sheet, const char **ret_why)
{
    const json_t *facts = json_object_get(tree, "facts"), *fact;
    const char *host = json_string_value(json_object_get(tree, "host"));
    size_t i;

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
    ret_sheet->at_utc_ns = json_integer_value(json_object_get(tree, "at_utc_ns"));
    json_array_foreach(facts, i, fact)
    {
        read_fact(fact, ret_sheet);
    }
    ret_sheet->left_out += (uint32_t)json_integer_value(json_object_get(tree, "left_out"));
    sheet_finish(ret_sheet);
    return 0;
}
