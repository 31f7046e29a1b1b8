/* file_internal.h: what file.c and file_rule.c share. */
#pragma once
#include "service/alert/file.h"

int file_span(const struct config_node *map, const char *key, struct span *value,
              struct config_error *error);
/* Loads one rule of the list: adds it, or replaces the rule of the same name. */
int file_load_rule(struct alert_file *file, const struct config_node *map,
                   struct config_error *error);
