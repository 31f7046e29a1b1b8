/* fleet_file.h: the controller's list of members as the file that the agent's configuration names
 * (`fleet_file:`): written whole, read by agent_config_load like a person's list. The hosts' keys lie beside it
 * (FLEET_KEYS_SUFFIX). */
#pragma once
#include <foliot.pb-c.h>

#include "base/bug.h"

/* Written beside, synced, renamed. Names are checked: what isn't a name of ours is refused, -EINVAL
 * with words. */
MUST_CHECK int fleet_file_write(const char *path, const Foliot__V1__Fleet *fleet,
                                char ret_words[200]);
