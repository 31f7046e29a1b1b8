/* levels.h: service levels of the fleet: levels.yaml. In each rollup interval all paths go to core/fleet/levels.h. */
#pragma once
#include "core/fleet/levels.h"
#include "service/controller/controller.h"

#define LEVELS_DEFAULT "/etc/foliot/levels.yaml"

/* Parses into an empty struct. -EINVAL: error has the place; `name` is the file's name in it. */
MUST_CHECK int levels_parse(const char *name, const char *text, struct levels *ret,
                            struct config_error *error);
/* -EINVAL: the file is invalid (logged): the old levels stay. If the default file is missing, there are no levels. */
int levels_load(struct controller *c);
void levels_free(struct controller *c);
void levels_watch(struct controller *c); /* once a second */
/* Describes a path for levels. false: an end belongs to no member. */
bool levels_path_of(const struct controller *c, const struct fleet_path *p, bool known,
                    struct levels_path *ret);
