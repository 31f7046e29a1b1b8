/* config.h: a YAML file as a small tree that keeps line and column, so that every error has its place.
 *
 * All errors have one form: "FILE:LINE:COLUMN: expected X, found Y". The tree is read-only and owns all of its strings. Nodes
 * live as long as the tree. Anchors, aliases, tags and several documents are refused, so the file means what a person reads in
 * it. Depth, size and number of nodes are limited.
 *
 * Typical use:
 *
 *     struct config_error error;
 *     struct config *config = NULL;
 *     r = config_load("lab.yaml", &config, &error);
 *
 *     r = config_allow(map, (const char *const[]){"hosts", "seed", NULL}, &error);
 *
 *     int64_t hosts = 8;
 *     r = config_int(map, "hosts", 1, 64, &hosts, &error);
 *
 * r < 0: error.text has the place and the reason. If a key is missing, the value stays (the default). The children of a list:
 * config_first(list), then config_next(n) until NULL. */
#pragma once
#include "base/bug.h"
#include "base/time.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum config_kind {
    CONFIG_SCALAR, /* a value; a missing one ("key:") is an empty, unquoted scalar */
    CONFIG_LIST,
    CONFIG_MAP
};

struct config;      /* a file */
struct config_node; /* a place in the file */

struct config_error {
    char text[512];
};

/* Reads a file. -EINVAL: the contents are wrong (text has the place); other -Exxx: it can't be read (text has the reason). An
 * empty file is an empty map. */
MUST_CHECK int config_load(const char *path, struct config **ret, struct config_error *error);
/* Reads the file's text, with a 0 after it. The caller frees it. Errors as for config_load. */
MUST_CHECK int config_read(const char *path, char **ret_text, size_t *ret_size,
                           struct config_error *error);
/* The same from memory. `name` is used as the file name in errors. */
MUST_CHECK int config_parse(const char *name, const char *text, size_t size, struct config **ret,
                            struct config_error *error);
struct config *config_free(struct config *config); /* accepts NULL, returns NULL */

const struct config_node *config_root(const struct config *config);
enum config_kind config_kind(const struct config_node *node);
unsigned config_line(const struct config_node *node);   /* counts from 1 */
unsigned config_column(const struct config_node *node); /* counts from 1 */
const char *config_file(const struct config_node *node);
size_t config_count(const struct config_node *node); /* children of a list or map; 0 for a scalar */
/* The children of a list or map, in the file's order. */
const struct config_node *config_first(const struct config_node *node);
const struct config_node *config_next(const struct config_node *node);
const char *config_key(const struct config_node *node);  /* of a child of a map; NULL elsewhere */
const char *config_text(const struct config_node *node); /* of a scalar; NULL for a list or map */
/* The value of `key` in a map. NULL: the key is missing, or `map` is no map. */
const struct config_node *config_get(const struct config_node *map, const char *key);

/* Write "FILE:LINE:COLUMN: expected EXPECTED, found FOUND" and return -EINVAL. config_expected() describes the value at `node`
 * itself; config_fail() takes any words. */
int config_expected(const struct config_node *node, struct config_error *error,
                    const char *expected, ...) __attribute__((format(printf, 3, 4)));
int config_fail(const struct config_node *node, struct config_error *error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Refuses a node that is no map, or that has a key outside the NULL-ended list. */
MUST_CHECK int config_allow(const struct config_node *map, const char *const *keys,
                            struct config_error *error);
/* Like config_get, but a missing key is an error ("expected key 'x' in this map, found …"). */
MUST_CHECK int config_require(const struct config_node *map, const char *key,
                              const struct config_node **ret, struct config_error *error);

/* Typed values of a map's keys. If the key is missing, *value stays. If the value is wrong, the result is -EINVAL with the
 * place, and *value stays. The tree owns strings. */
MUST_CHECK int config_string(const struct config_node *map, const char *key, const char **value,
                             struct config_error *error);
/* The same into an array: 1 to size - 1 characters. */
MUST_CHECK int config_copy(const struct config_node *map, const char *key, char *text, size_t size,
                           struct config_error *error);
MUST_CHECK int config_bool(const struct config_node *map, const char *key, bool *value,
                           struct config_error *error); /* true false yes no on off */
MUST_CHECK int config_int(const struct config_node *map, const char *key, int64_t minimum,
                          int64_t maximum, int64_t *value, struct config_error *error);
MUST_CHECK int config_double(const struct config_node *map, const char *key, double minimum,
                             double maximum, double *value, struct config_error *error);
/* A number and a unit: ns us ms s min h d ("300ms", "-50 us", "1.5s"); a plain 0 needs none. */
MUST_CHECK int config_span(const struct config_node *map, const char *key, struct span minimum,
                           struct span maximum, struct span *value, struct config_error *error);
/* One word of a NULL-ended list; *value: its index. */
MUST_CHECK int config_choice(const struct config_node *map, const char *key,
                             const char *const *choices, int *value, struct config_error *error);
/* The same for a node itself (an element of a list). */
MUST_CHECK int config_node_string(const struct config_node *node, const char **value,
                                  struct config_error *error);
MUST_CHECK int config_node_int(const struct config_node *node, int64_t minimum, int64_t maximum,
                               int64_t *value, struct config_error *error);
MUST_CHECK int config_node_double(const struct config_node *node, double minimum, double maximum,
                                  double *value, struct config_error *error);
MUST_CHECK int config_node_span(const struct config_node *node, struct span minimum,
                                struct span maximum, struct span *value,
                                struct config_error *error);
