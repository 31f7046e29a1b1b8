/* element.h: writes an element (core/finding/element.h) as JSON, and reads it:
 *
 *   {"kind":"trunk","direction":"out","name":"trunk leaf0 - spine1",
 *    "places":[{"kind":"leaf","number":0,"name":"leaf0"},{"kind":"spine","number":1,"name":"spine1"}]}
 *
 * The place of a host or a NIC has "host", its name. A NIC's place has "nic", its number in the fleet. The place of a switch
 * has "number", or "address" if only that is known. direction null: not known. */
#pragma once
#include <jansson.h>

#include "core/finding/element.h"
#include "platform/json/json.h"

/* name: its name in the JSON; NULL: that of element_text. */
void json_put_element(struct json_writer *j, const char *key, const struct element *e,
                      const struct finding_names *names, const char *name);
/* An invalid object gives an unknown element. host: returns the number of a host by its name; UINT32_MAX: no such host. */
struct element json_read_element(const json_t *object,
                                 uint32_t (*host)(void *context, const char *name), void *context);
/* The suspects of an unknown element: "one_of":[elements],"others":true if it may also be something else. */
void json_put_choice(struct json_writer *j, const struct element_choice *choice,
                     const struct finding_names *names);
/* Reads both from their object. Invalid elements count as others. */
struct element_choice json_read_choice(const json_t *object,
                                       uint32_t (*host)(void *context, const char *name),
                                       void *context);
/* Iterates over the hosts of its places; false at the end. Start with *cursor 0. *ret_host NULL: a host without a name. */
bool json_next_element_host(const json_t *object, size_t *cursor, const char **ret_host);
