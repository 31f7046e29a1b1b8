/* levels.h: service levels of the fleet: levels.yaml, and all paths told to core/fleet/levels.h each rollup interval. */
#pragma once
#include "core/fleet/levels.h"
#include "service/controller/controller.h"

#define LEVELS_DEFAULT "/etc/foliot/levels.yaml"

/* Into an empty one. -EINVAL: error has the place, `name` stands for the file's. */
MUST_CHECK int levels_parse(const char *name, const char *text, struct levels *ret,
                            struct config_error *error);
/* -EINVAL: the file (said): levels as before. A missing file that nobody asked for: none. */
int levels_load(struct controller *c);
void levels_free(struct controller *c);
void levels_watch(struct controller *c); /* once a second */
/* A path as levels are told of it. false: an end of it is no member's. */
bool levels_path_of(const struct controller *c, const struct fleet_path *p, bool known,
                    struct levels_path *ret);
