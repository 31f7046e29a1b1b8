/* join.h: a host becomes a member: `foliot-agent join ADDRESS TOKEN`.
 *
 * Makes a key, gets the controller's signature for it, and writes what the agent needs: identity, fleet key, list of members,
 * and agent.yaml if there is none. It is safe to run it again with the same key on the disk: then the controller gives a lost
 * answer again. */
#pragma once
#include "base/limits.h"

struct join_options {
    const char *address; /* "ADDRESS" or "ADDRESS:PORT" */
    const char *token;
    const char *config_path, *state_dir;
    const char *host; /* NULL: the machine's name */
    const char *nics[HOST_NIC_MAX + 1];
    unsigned nic_count; /* 0: join finds them */
    /* The switches of the NICs. None: not known. One: the switch of all NICs. Else one for each of `nics`. */
    const char *leaves[HOST_NIC_MAX + 1];
    unsigned leaf_count;
};
/* Returns the exit status. Errors are printed on stderr. */
int agent_join(const struct join_options *options);
