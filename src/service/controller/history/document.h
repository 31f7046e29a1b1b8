/* document.h: things that the controller keeps in its store as one JSON text under a name: the fleet's configuration, the
 * declared topology, open incidents. */
#pragma once
#include <jansson.h>
#include <stddef.h>

#include "platform/json/json.h"

struct controller;

/* The text under `name`, parsed; the caller releases it. -ENOENT: nothing is kept yet. -EUCLEAN: it isn't JSON. Else the
 * store's error. */
int document_load(struct controller *c, const char *name, json_t **ret_root);
/* Finishes the text in `j`, and stores it under `name`. `j` is ended even if that fails. */
int document_save(struct controller *c, const char *name, struct json_writer *j);
/* The string under `key`, cut to `size`; "" if there is none. */
void document_words(const json_t *o, const char *key, char *ret, size_t size);
