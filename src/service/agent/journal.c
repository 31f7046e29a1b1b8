/* journal.c: what the agent writes for people. */
#include "service/agent/agent.h"

#include "platform/journal/journal.h"

#include <stdio.h>
#include <string.h>
#include <syslog.h>

static const char *host_name(void *context, struct host_id host)
{
    return agent_config_host_name(context, host);
}

static const char *nic_name(void *context, struct nic_id nic)
{
    struct agent_config *c = context;
    uint32_t index = 0;
    if (!agent_config_find(c, nic, &index)) {
        return NULL;
    }
    const char *host = agent_config_host_name(c, c->peers[index].host);
    char *name = c->said[c->said_turn++ % ARRAY_COUNT(c->said)];
    snprintf(name, sizeof(c->said[0]), "%s/%s", host != NULL ? host : "?", c->more[index].nic_name);
    return name;
}

static const char *host_of(void *context, struct nic_id nic)
{
    const struct agent_config *c = context;
    uint32_t index = 0;
    return agent_config_find(c, nic, &index) ? agent_config_host_name(c, c->peers[index].host)
                                             : NULL;
}

const char *agent_interface_name(const struct agent *a, struct nic_id nic)
{
    uint32_t index = 0;
    return agent_config_find(a->config, nic, &index) ? a->config->more[index].nic_name : NULL;
}

/* The switch port of an own NIC, from recent LLDP: agent_lldp_poll keeps it. */
static const char *port_name(void *context, struct nic_id nic)
{
    const struct agent_config *c = context;
    for (uint32_t i = 0; i < c->nic_count; i++) {
        if (nic_id_equal(c->peers[c->nics[i].peer].nic, nic) && c->nics[i].port_name[0] != 0) {
            return c->nics[i].port_name;
        }
    }
    return NULL;
}

struct finding_names agent_names(const struct agent *a)
{
    return (struct finding_names){.host = host_name,
                                  .nic = nic_name,
                                  .context = a->config,
                                  .host_of = host_of,
                                  .port = port_name};
}

bool agent_fleet_ns(const struct agent *a, struct mono at, int64_t *ret_ns)
{
    struct fleet_time fleet;
    if (!node_fleet_time(a->node, at, &fleet)) {
        return false;
    }
    *ret_ns = fleet.ns;
    return true;
}

bool agent_utc_ns(struct agent *a, struct mono at, int64_t *ret_ns)
{
    struct clock_terms terms;
    node_clock_page(a->node, &terms);
    const struct clock_reading reading = clock_terms_read(&terms, (struct nic_time){at.ns});
    if (terms.utc_known && reading.status != CLOCK_UNKNOWN) {
        *ret_ns = reading.time.ns + terms.utc_minus_ns;
        return true;
    }
    if (a->anchor.trusted == 0) { /* no trusted anchor: CLOCK_REALTIME may be wrong */
        return false;
    }
    *ret_ns = a->anchor.utc_ns + mono_sub(at, a->anchor.at).ns;
    return true;
}

void agent_say_finding(struct agent *a, const struct finding *f)
{
    char text[1024];
    const struct finding_names names = agent_names(a);
    recorder_finding(a->recorder, f);
    finding_text(f, &names, text, sizeof(text));
    journal_about("FOLIOT_FINDING", finding_kind_word(f->kind));
    agent_say(f->phase == FINDING_CLOSED ? LOG_NOTICE : LOG_WARNING, "%s", text);
    journal_about("FOLIOT_FINDING", NULL);
    if (f->phase == FINDING_CLOSED) {
        a->closed[a->closed_count++ % AGENT_CLOSED_KEPT] = *f;
    }
    agent_server_finding(a, f);
    agent_uplink_finding(a, f);
}

static struct agent_event *new_event(struct agent *a, uint32_t local, const char *event)
{
    struct agent_event *e = &a->events[a->event_count++ % AGENT_EVENT_KEPT];

    *e = (struct agent_event){.nic = local, .event = event, .at = a->now};
    if (!agent_fleet_ns(a, a->now, &e->fleet_ns)) {
        e->fleet_ns = FINDING_NO_TIME;
    }
    if (!agent_utc_ns(a, a->now, &e->utc_ns)) {
        e->utc_ns = FINDING_NO_TIME;
    }
    return e;
}

void agent_link_event(struct agent *a, uint32_t local, const char *event, const char *text)
{
    struct agent_event *e = new_event(a, local, event);
    const struct link_interface *l = link_monitor_get(a->links, a->nics[local].slot);
    struct link_report report;
    e->down_count = l->down_count;
    node_link_get(a->node, local, a->now, &report);
    e->flaps_hour = report.flaps_hour;
    snprintf(e->text, sizeof(e->text), "%s: %s", l->name, text);
    agent_server_link(a, e);
    agent_uplink_link(a, e);
}

void agent_verbs_event(struct agent *a, uint32_t local, const char *device, const char *event,
                       const char *text)
{
    if (local != UINT32_MAX) {
        agent_link_event(a, local, event, text);
        return;
    }
    struct agent_event *e = new_event(a, local, event);
    snprintf(e->port, sizeof(e->port), "%s", device);
    snprintf(e->text, sizeof(e->text), "%s", text);
    agent_server_link(a, e); /* the controller does not list such a NIC */
}

void agent_link_news(struct agent *a, uint32_t local, const struct link_facts *before,
                     const struct link_facts *now)
{
    char text[120];
    const uint32_t downs = now->carrier_down_count - before->carrier_down_count;
    const uint32_t seen = before->carrier && !now->carrier;
    if (!before->present || !now->present) {
        return;
    }
    if (downs > seen && downs < UINT32_MAX / 2) {
        snprintf(text, sizeof(text), "went down and up %u time%s between two looks", downs - seen,
                 downs - seen == 1 ? "" : "s");
        agent_link_event(a, local, "flap", text);
    }
    if (before->carrier != now->carrier) {
        agent_link_event(a, local, now->carrier ? "up" : "down",
                         now->carrier ? "carrier is up" : "carrier is lost");
    }
    if (before->speed_mbps != now->speed_mbps) {
        snprintf(text, sizeof(text), "speed changed from %u to %u Mbit/s", before->speed_mbps,
                 now->speed_mbps);
        agent_link_event(a, local, "speed", text);
    }
    if (before->width != now->width) {
        snprintf(text, sizeof(text), "width changed from x%u to x%u", before->width, now->width);
        agent_link_event(a, local, "width", text);
    }
    if (now->rx_errors > before->rx_errors || now->tx_errors > before->tx_errors) {
        snprintf(text, sizeof(text), "%llu more receive and %llu more transmit errors",
                 (unsigned long long)(now->rx_errors - before->rx_errors),
                 (unsigned long long)(now->tx_errors - before->tx_errors));
        agent_link_event(a, local, "errors", text);
    }
}
