/* file_internal.h: what file.c and file_rule.c share. */
#pragma once
#include "service/alert/file.h"

int file_span(const struct config_node *map, const char *key, struct span *value,
              struct config_error *error);
/* One rule of the list: added, or in place of the one with its name. */
int file_load_rule(struct alert_file *file, const struct config_node *map,
                   struct config_error *error);
