/* tree.h: internals of struct config, shared by parser and getters. */
#pragma once
#include "platform/config/config.h"

struct config_node {
    enum config_kind kind;
    bool quoted;
    unsigned line, column;
    unsigned key_line, key_column; /* only for a child of a map */
    size_t count;
    const char *key;
    const char *text;
    const struct config *config;
    struct config_node *first, *last, *next;
};

/* Writes "NAME:LINE:COLUMN: " and the message, cut to fit. Returns -EINVAL. */
int config_say(struct config_error *error, const char *name, unsigned line, unsigned column,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
const char *config_name(const struct config *config);
