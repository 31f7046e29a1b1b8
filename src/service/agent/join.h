/* join.h: a host becomes a member: `foliot-agent join ADDRESS TOKEN`.
 *
 * Makes a key, has the controller sign it, and writes what the agent needs: identity, fleet key,
 * list of members, and agent.yaml if there is none. Running it again with the same key on the disk
 * is harmless: an answer that got lost is given again. */
#pragma once
#include "base/limits.h"

struct join_options {
    const char *address; /* "ADDRESS" or "ADDRESS:PORT" */
    const char *token;
    const char *config_path, *state_dir;
    const char *host; /* NULL: the machine's name */
    const char *nics[HOST_NIC_MAX + 1];
    unsigned nic_count; /* 0: found by themselves */
    /* The switches that the NICs hang on: none: not known; one: all on it; else one for each of `nics`. */
    const char *leaves[HOST_NIC_MAX + 1];
    unsigned leaf_count;
};
/* The exit status; troubles were said on stderr. */
int agent_join(const struct join_options *options);
