/* lldp.c: the switch port of each NIC, if the switch announces it by LLDP. The agent reads once a second; switches send every
 * 30 s. */
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "service/agent/agent.h"

#define TAKEN_A_SECOND 64

void agent_lldp_open(struct agent *a)
{
    const int r = lldp_open(&a->lldp);
    if (r < 0) {
        a->lldp.fd = -1;
        agent_say(LOG_INFO, "no LLDP: %s. Switch ports stay unknown", strerror(-r));
    }
}

static void take(struct agent *a, struct agent_nic *nic, const struct lldp *said)
{
    const bool other = strcmp(nic->neighbour.system, said->system) != 0 ||
                       strcmp(nic->neighbour.port, said->port) != 0;
    if (said->ttl_s > 0 && other) {
        agent_say(LOG_INFO, "%s is connected to %s, port %s",
                  link_monitor_get(a->links, nic->slot)->name, said->system, said->port);
    }
    nic->neighbour = *said;
    nic->neighbour_until_ns = a->now.ns + said->ttl_s * NS_PER_S;
}

const struct lldp *agent_lldp_of(const struct agent *a, uint32_t local)
{
    const struct agent_nic *nic = &a->nics[local];
    return nic->neighbour_until_ns > a->now.ns && nic->neighbour.system[0] != 0 ? &nic->neighbour
                                                                                : NULL;
}

/* Keeps the ports' names for sentences. */
static void keep_names(struct agent *a)
{
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        const struct lldp *l = agent_lldp_of(a, i);
        char *name = a->config->nics[i].port_name;
        const size_t size = sizeof(a->config->nics[i].port_name);
        snprintf(name, size, "%s%s%s", l != NULL ? l->system : "", l != NULL ? " port " : "",
                 l != NULL ? l->port : "");
    }
}

void agent_lldp_poll(struct agent *a)
{
    struct lldp said;
    uint32_t interface = 0;
    for (uint32_t i = 0; i < a->config->nic_count && a->lldp.fd >= 0; i++) {
        struct agent_nic *nic = &a->nics[i];
        const struct link_interface *l = link_monitor_get(a->links, nic->slot);
        if (l->present && nic->lldp_interface != (uint32_t)l->index &&
            lldp_listen(&a->lldp, (uint32_t)l->index) == 0) {
            nic->lldp_interface = (uint32_t)l->index;
        }
    }
    for (unsigned n = 0; n < TAKEN_A_SECOND && lldp_next(&a->lldp, &said, &interface); n++) {
        for (uint32_t i = 0; i < a->config->nic_count; i++) {
            if (a->nics[i].lldp_interface == interface) {
                take(a, &a->nics[i], &said);
            }
        }
    }
    keep_names(a);
}
