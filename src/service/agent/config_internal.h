/* config_internal.h: shared by config.c and config_peers.c. Errors are -EINVAL or others, with error->text set. */
#pragma once
#include "service/agent/config.h"

/* Reads `peers`, and `hosts` if there is one, into config, sorted by ascending id. */
MUST_CHECK int config_load_peers(struct agent_config *config, const struct config_node *root,
                                 struct config_error *error);
/* As config_copy(), but the key must be there. */
MUST_CHECK int config_require_copy(const struct config_node *map, const char *key, char *text,
                                   size_t size, struct config_error *error);
/* "leaf3" and "3" are number 3; other names have none. */
bool config_place_number(const char *name, unsigned *ret_number);
