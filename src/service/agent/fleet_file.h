/* fleet_file.h: a list of members as YAML: what a host that has just joined begins with, and what `foliot-agent members` prints.
 * Read by agent_config_load like a person's list, by agents of before, too. The hosts' keys lie beside it
 * (FLEET_KEYS_SUFFIX). */
#pragma once
#include <foliot.pb-c.h>

#include "base/bug.h"

struct agent_config;

/* Written beside, synced, renamed. Names are checked: what isn't a name of ours is refused, -EINVAL
 * with words. */
MUST_CHECK int fleet_file_write(const char *path, const Foliot__V1__Fleet *fleet,
                                char ret_words[200]);
/* The list that a configuration has, on stdout. */
void fleet_file_print(const struct agent_config *config);
