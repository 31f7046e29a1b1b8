/* fleet_file.h: a list of members as YAML. A host that has just joined starts with such a list, and `foliot-agent members`
 * prints one. agent_config_load reads it like a list that a person wrote; older agents can read it too. The hosts' keys are in
 * a file beside it (FLEET_KEYS_SUFFIX). */
#pragma once
#include <foliot.pb-c.h>

#include "base/bug.h"

struct agent_config;

/* Writes a new file, syncs it, and renames it. Names are checked: an invalid name is refused with -EINVAL and words. */
MUST_CHECK int fleet_file_write(const char *path, const Foliot__V1__Fleet *fleet,
                                char ret_words[200]);
/* Prints the list of a configuration on stdout. */
void fleet_file_print(const struct agent_config *config);
