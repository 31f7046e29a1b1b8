/* element.h: an element (core/finding/element.h) as JSON and back:
 *
 *   {"kind":"trunk","direction":"out","name":"trunk leaf0 - spine1",
 *    "places":[{"kind":"leaf","number":0,"name":"leaf0"},{"kind":"spine","number":1,"name":"spine1"}]}
 *
 * A host's and a NIC's place has "host", its name; a NIC's has "nic", its number in the fleet; a box of the fabric has
 * "number", or "address" where only that is known. direction null: not known. */
#pragma once
#include <jansson.h>

#include "core/finding/element.h"
#include "platform/json/json.h"

/* name: what it is called; NULL: as element_text has it. */
void json_put_element(struct json_writer *j, const char *key, const struct element *e,
                      const struct finding_names *names, const char *name);
/* What isn't understood is an unknown element; host: a host's number by its name, UINT32_MAX: no such host. */
struct element json_read_element(const json_t *object,
                                 uint32_t (*host)(void *context, const char *name), void *context);
/* What an unknown element may be: "one_of":[elements],"others":whether it may be something else, too. */
void json_put_choice(struct json_writer *j, const struct element_choice *choice,
                     const struct finding_names *names);
/* Of the object that has both; what isn't understood counts as others. */
struct element_choice json_read_choice(const json_t *object,
                                       uint32_t (*host)(void *context, const char *name),
                                       void *context);
/* The hosts that its places name, or are of; false at the end. Start with *cursor 0. NULL: a host that isn't named. */
bool json_next_element_host(const json_t *object, size_t *cursor, const char **ret_host);
