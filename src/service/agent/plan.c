/* plan.c: this host's facts that plans of an audit are checked against. */
#include <errno.h>
#include <stdlib.h>

#include "service/agent/agent.h"

int agent_plan_host(struct agent *a, struct agent_plan_host *ret)
{
    const struct agent_config *config = a->config;
    uint32_t *members = calloc(config->peer_count + 1, sizeof(*members));
    if (members == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < config->peer_count; i++) {
        members[i] = config->peers[i].nic.index;
    }
    for (uint32_t i = 0; i < config->nic_count; i++) {
        ret->own[i] = config->peers[config->nics[i].peer].nic.index;
    }
    ret->members = members;
    ret->host = (struct plan_host){.fleet_version = config->fleet_version,
                                   .members = members,
                                   .member_count = config->peer_count,
                                   .own = ret->own,
                                   .own_count = config->nic_count};
    ret->host.in_step = agent_fleet_ns(a, a->now, &ret->host.now_ns);
    return 0;
}
