/* element.c: writes an element as JSON, and reads it. */
#include <string.h>

#include "base/ip.h"
#include "platform/json/element.h"

static void put_host(struct json_writer *j, const struct place *p,
                     const struct finding_names *names)
{
    const char *name = NULL;
    if (p->kind == PLACE_HOST && names != NULL && names->host != NULL) {
        name = names->host(names->context, (struct host_id){p->number});
    } else if (p->kind == PLACE_NIC && names != NULL && names->host_of != NULL) {
        name = names->host_of(names->context, (struct nic_id){p->number});
    }
    json_put_string(j, "host", name);
}

static void put_place(struct json_writer *j, const struct place *p,
                      const struct finding_names *names, const char *name)
{
    static const uint8_t none[16];
    char text[160];
    if (p->kind == PLACE_NONE) {
        return;
    }
    place_text(p, names, text, sizeof(text));
    json_put_object(j, NULL);
    json_put_string(j, "kind", place_kind_word(p->kind));
    if (p->kind == PLACE_HOST || p->kind == PLACE_NIC) {
        put_host(j, p, names);
        if (p->kind == PLACE_NIC) {
            json_put_int_if(j, "nic", p->number != UINT32_MAX, p->number);
        }
    } else if (p->number != UINT32_MAX) {
        json_put_uint(j, "number", p->number);
    } else if (memcmp(p->address, none, sizeof(none)) != 0) {
        char address[IP_TEXT_SIZE];
        json_put_string(j, "address", ip_text(p->address, address));
    }
    json_put_string(j, "name", name != NULL ? name : text);
    json_put_end(j);
}

void json_put_element(struct json_writer *j, const char *key, const struct element *e,
                      const struct finding_names *names, const char *name)
{
    const char *kind = element_kind_word(e->kind);
    const bool box = e->kind >= ELEMENT_LEAF && e->kind <= ELEMENT_ROUTER;
    char text[320];
    element_text(e, names, text, sizeof(text));
    json_put_object(j, key);
    json_put_string(j, "kind", kind != NULL ? kind : "unknown");
    json_put_string(j, "direction", direction_word(e->direction));
    json_put_string(j, "name", name != NULL ? name : e->kind == ELEMENT_UNKNOWN ? NULL : text);
    json_put_array(j, "places");
    put_place(j, &e->a, names, box ? name : NULL);
    put_place(j, &e->b, names, NULL);
    json_put_end(j);
    json_put_end(j);
}

void json_put_choice(struct json_writer *j, const struct element_choice *choice,
                     const struct finding_names *names)
{
    json_put_array(j, "one_of");
    for (uint32_t i = 0; i < choice->count; i++) {
        json_put_element(j, NULL, &choice->one_of[i], names, NULL);
    }
    json_put_end(j);
    json_put_bool(j, "others", choice->total > choice->count);
}

/* ---- back --------------------------------------------------------------------------------------------------------- */

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static uint32_t number_of(const json_t *object, const char *key)
{
    const json_t *number = json_object_get(object, key);
    const json_int_t n = json_integer_value(number);
    return json_is_integer(number) && n >= 0 && n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

static bool read_place(const json_t *o, uint32_t (*host)(void *context, const char *name),
                       void *context, struct place *ret)
{
    const char *address = text_of(o, "address");
    *ret = (struct place){.kind = place_kind_of(text_of(o, "kind")), .number = UINT32_MAX};
    if (ret->kind == PLACE_HOST) {
        ret->number = host != NULL ? host(context, text_of(o, "host")) : UINT32_MAX;
        return ret->number != UINT32_MAX;
    }
    if (ret->kind == PLACE_NIC) {
        ret->number = number_of(o, "nic");
        return ret->number != UINT32_MAX;
    }
    ret->number = number_of(o, "number");
    return ret->kind != PLACE_NONE && (address[0] == 0 || ip_parse(address, ret->address));
}

struct element json_read_element(const json_t *object,
                                 uint32_t (*host)(void *context, const char *name), void *context)
{
    const json_t *places = json_object_get(object, "places");
    struct element e = element_unknown();
    e.kind = element_kind_of(text_of(object, "kind"));
    e.direction = direction_of(text_of(object, "direction"));
    if ((json_array_size(places) > 0 &&
         !read_place(json_array_get(places, 0), host, context, &e.a)) ||
        (json_array_size(places) > 1 &&
         !read_place(json_array_get(places, 1), host, context, &e.b))) {
        return element_unknown();
    }
    const bool two = e.kind == ELEMENT_TRUNK || e.kind == ELEMENT_PATH;
    const bool one = two || (e.kind > ELEMENT_UNKNOWN && e.kind < ELEMENT_PATH);
    return (one && e.a.kind == PLACE_NONE) || (two && e.b.kind == PLACE_NONE) ? element_unknown()
                                                                              : e;
}

struct element_choice json_read_choice(const json_t *object,
                                       uint32_t (*host)(void *context, const char *name),
                                       void *context)
{
    const json_t *list = json_object_get(object, "one_of");
    struct element_choice choice = {0};
    bool others = json_is_true(json_object_get(object, "others"));
    for (size_t i = 0; i < json_array_size(list) && i < ELEMENT_ONE_OF; i++) {
        const struct element e = json_read_element(json_array_get(list, i), host, context);
        others = others || e.kind == ELEMENT_UNKNOWN;
        if (e.kind != ELEMENT_UNKNOWN) {
            element_choice_add(&choice, &e);
        }
    }
    choice.total += others;
    return choice;
}

bool json_next_element_host(const json_t *object, size_t *cursor, const char **ret_host)
{
    const json_t *places = json_object_get(object, "places");
    while (*cursor < json_array_size(places)) {
        const json_t *place = json_array_get(places, (*cursor)++);
        const uint32_t kind = place_kind_of(text_of(place, "kind"));
        if (kind == PLACE_HOST || kind == PLACE_NIC) {
            *ret_host = json_string_value(json_object_get(place, "host"));
            return true;
        }
    }
    return false;
}
