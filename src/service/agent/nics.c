/* nics.c: sockets and links of the host's own NICs. A NIC may vanish, return, get another name or another address. */
#include "service/agent/agent.h"

#include "platform/journal/journal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

enum { RETRY_NS = 1000000000, LINKS_UNREAD_FAILURES = 3 };

uint8_t agent_nic_stamps(const struct agent *a, uint32_t local)
{
    return a->nics[local].hardware || time_source_lab_nic_stamps(a->source) ? STAMP_HARDWARE
                                                                            : STAMP_SOFTWARE;
}

int agent_nics_open(struct agent *a)
{
    int r = link_monitor_open(&a->links);
    if (r < 0) {
        return r;
    }
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        const struct agent_peer *own = &a->config->more[a->config->nics[i].peer];
        char name[IF_NAMESIZE];
        snprintf(name, sizeof(name), "%s", a->config->nics[i].name);
        /* the list's name does not exist, but another interface has its address: it has another name on this host */
        if (if_nametoindex(name) == 0 && link_find_address(&own->address4, &own->address6, name)) {
            agent_say(LOG_NOTICE,
                      "%s: no such interface, but %s has its address: the agent uses it",
                      a->config->nics[i].name, name);
        }
        r = link_monitor_watch(a->links, name);
        if (r < 0) {
            return r;
        }
        a->nics[i].slot = (unsigned)r;
    }
    r = hop_open(&a->hops);
    a->hops_allowed = r == 0;
    if (r < 0) {
        agent_say(LOG_WARNING, AGENT_HOPS_REFUSED "; paths differ only by their delay (%s)",
                  strerror(-r));
    }
    agent_nics_poll(a);
    return 0;
}

void agent_nics_close(struct agent *a)
{
    for (uint32_t i = 0; i < HOST_NIC_MAX; i++) {
        a->nics[i].endpoint = endpoint_close(a->nics[i].endpoint);
    }
    hop_close(&a->hops);
    a->links = link_monitor_close(a->links);
}

bool agent_links_unread(const struct agent *a)
{
    return a->links_failures >= LINKS_UNREAD_FAILURES;
}

void agent_nics_poll(struct agent *a)
{
    const int r = link_monitor_poll(a->links, true);
    if (r < 0) {
        a->links_failures++;
        if (a->links_failures == LINKS_UNREAD_FAILURES) {
            agent_say(LOG_WARNING, AGENT_LINKS_UNREAD ": %s", strerror(-r));
        }
        return;
    }
    if (agent_links_unread(a)) {
        agent_say(LOG_NOTICE, "link state can be read again");
    }
    a->links_failures = 0;
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        link_monitor_look(a->links, a->nics[i].slot);
    }
}

/* Chooses the addresses to bind to: the list's address if the interface has it, else any address of the interface. */
static void choose_addresses(const struct link_interface *l, const struct agent_peer *own,
                             struct in_addr *ret4, struct in6_addr *ret6)
{
    *ret4 = (struct in_addr){0};
    *ret6 = (struct in6_addr){0};
    for (unsigned i = 0; i < l->count4 && own->address4.s_addr != 0; i++) {
        if (ret4->s_addr == 0 || l->addresses4[i].s_addr == own->address4.s_addr) {
            *ret4 = l->addresses4[i];
        }
    }
    for (unsigned i = 0; i < l->count6 && !IN6_IS_ADDR_UNSPECIFIED(&own->address6); i++) {
        const bool wanted = memcmp(&l->addresses6[i], &own->address6, 16) == 0;
        if (wanted ||
            (IN6_IS_ADDR_UNSPECIFIED(ret6) && !IN6_IS_ADDR_LINKLOCAL(&l->addresses6[i]))) {
            *ret6 = l->addresses6[i];
        }
    }
}

/* Logs a trouble once, until the trouble changes. */
static void trouble(struct agent *a, uint32_t local, const char *text)
{
    struct agent_nic *nic = &a->nics[local];
    if (strcmp(nic->trouble, text) != 0) {
        snprintf(nic->trouble, sizeof(nic->trouble), "%s", text);
        if (text[0] != 0) {
            const char *name = link_monitor_get(a->links, nic->slot)->name;
            journal_about("FOLIOT_NIC", name);
            agent_say(LOG_WARNING, "%s: %s", name, text);
            journal_about("FOLIOT_NIC", NULL);
        }
    }
}

static void explain(const struct agent *a, int error, const char *what, char *text, size_t size)
{
    if (error == -EADDRINUSE) {
        snprintf(text, size,
                 "UDP port %u of this address is taken: expected it free; another foliot-agent on "
                 "this host?",
                 a->config->port);
    } else if (strcmp(what, "stamps") == 0) {
        snprintf(
            text, size,
            "the kernel refuses packet stamps (SO_TIMESTAMPING): %s; expected Linux 5.4 or later",
            strerror(-error));
    } else if (error == -EPERM || error == -EACCES) {
        snprintf(text, size,
                 "no permission (%s): expected root, or CAP_NET_RAW and CAP_NET_BIND_SERVICE",
                 what);
    } else {
        snprintf(text, size, "can't be probed from (%s): %s", what, strerror(-error));
    }
}

static void open_endpoint(struct agent *a, uint32_t local)
{
    struct agent_nic *nic = &a->nics[local];
    const struct link_interface *l = link_monitor_get(a->links, nic->slot);
    const struct agent_peer *own = &a->config->more[a->config->nics[local].peer];
    struct endpoint_config config = {.device = l->name,
                                     .scope = (uint32_t)l->index,
                                     .port = a->config->port,
                                     .port_base = NODE_PORT_BASE_DEFAULT,
                                     .hardware = nic->hardware};
    char text[160] = "";
    choose_addresses(l, own, &config.address4, &config.address6);
    nic->retry_ns = a->now.ns + RETRY_NS;
    if (config.address4.s_addr == 0 && IN6_IS_ADDR_UNSPECIFIED(&config.address6)) {
        trouble(a, local,
                "expected an address of the kind that the peers list has for it, found none");
        return;
    }
    if (nic->hardware && phc_enable(l->name) < 0) { /* a device that came back has lost its setup */
        trouble(a, local,
                "refuses the hardware stamps that it gave before: restart the agent to do without");
        return;
    }
    const char *what = NULL;
    const int r = endpoint_open(&nic->endpoint, &config, &what);
    if (r < 0) {
        explain(a, r, what, text, sizeof(text));
        trouble(a, local, text);
        return;
    }
    nic->address4 = config.address4;
    nic->address6 = config.address6;
    if (own->address4.s_addr != 0 && config.address4.s_addr != own->address4.s_addr &&
        config.address4.s_addr != 0) {
        snprintf(text, sizeof(text),
                 "has another address than the peers list has: peers follow it, new ones can't");
    }
    trouble(a, local, text);
}

static void give_facts(struct agent *a, uint32_t local)
{
    struct agent_nic *nic = &a->nics[local];
    const struct link_interface *l = link_monitor_get(a->links, nic->slot);
    struct node_link event = {.local = local};
    event.facts = (struct link_facts){.present = l->present,
                                      .carrier = l->carrier,
                                      .width = l->width,
                                      .carrier_down_count = l->down_count,
                                      .carrier_up_count = l->up_count,
                                      .speed_mbps = l->speed_mbps,
                                      .rx_errors = l->rx_errors,
                                      .tx_errors = l->tx_errors,
                                      .rx_drops = l->rx_drops,
                                      .tx_drops = l->tx_drops};
    nic->said.at = (struct mono){0};
    const bool news = memcmp(&nic->said, &event.facts, sizeof(event.facts)) != 0;
    const struct link_facts before = nic->said;
    nic->said = event.facts;
    event.facts.at = a->now;
    if (news || a->now.ns - nic->facts_ns > 5 * NS_PER_S) {
        nic->facts_ns = a->now.ns;
        agent_feed(a, NODE_EVENT_LINK, &event);
    }
    if (news && nic->facts_known) {
        agent_link_news(a, local, &before, &nic->said);
    }
    if (!nic->facts_known || before.carrier != nic->said.carrier) {
        nic->down_since = a->now;
    }
    nic->facts_known = true;
}

static void follow(struct agent *a, uint32_t local)
{
    struct agent_nic *nic = &a->nics[local];
    const struct link_interface *l = link_monitor_get(a->links, nic->slot);
    const unsigned changes = link_monitor_changes(a->links, nic->slot);
    struct in_addr address4;
    struct in6_addr address6;
    choose_addresses(l, &a->config->more[a->config->nics[local].peer], &address4, &address6);
    const bool moved =
        address4.s_addr != nic->address4.s_addr || memcmp(&address6, &nic->address6, 16) != 0;
    if (nic->endpoint != NULL && (!l->present || moved || (changes & LINK_CHANGE_RENAMED) != 0 ||
                                  (changes & LINK_CHANGE_RETURNED) != 0)) {
        nic->endpoint = endpoint_close(nic->endpoint);
        nic->retry_ns = 0;
    }
    if (nic->started) {
        if ((changes & LINK_CHANGE_VANISHED) != 0) {
            agent_link_event(a, local, "vanished", "the device is gone");
        }
        if ((changes & LINK_CHANGE_RETURNED) != 0) {
            agent_link_event(a, local, "returned", "the device is back");
        }
        if ((changes & LINK_CHANGE_RENAMED) != 0) {
            char text[64];
            snprintf(text, sizeof(text), "is now called %s", l->name);
            agent_link_event(a, local, "renamed", text);
        }
        if ((changes & LINK_CHANGE_ADDRESS) != 0 && moved && l->present) {
            agent_link_event(a, local, "address", "its address changed");
        }
    }
    nic->started = true;
    if (nic->endpoint == NULL) {
        if (!l->present) {
            trouble(a, local, "expected this interface, found none of that name, MAC or address");
        } else if (a->now.ns >= nic->retry_ns || moved || nic->retry_ns - a->now.ns > RETRY_NS) {
            open_endpoint(a, local);
        }
    }
    give_facts(a, local);
}

/* If another program holds a source port, one path is missing. This is logged once. It is no fault of the network. */
static void note_refused_ports(struct agent *a, uint32_t local)
{
    struct agent_nic *nic = &a->nics[local];
    struct endpoint_counters counters;
    if (nic->endpoint == NULL || nic->ports_said) {
        return;
    }
    endpoint_counters_get(nic->endpoint, &counters);
    if (counters.last_error == EADDRINUSE || counters.last_error == EMFILE ||
        counters.last_error == EPERM || counters.last_error == EACCES) {
        nic->ports_said = true;
        agent_say(LOG_WARNING,
                  "%s: a packet could not be sent: %s; expected UDP ports %u to %u free to send "
                  "from, and "
                  "no firewall rule against it",
                  link_monitor_get(a->links, nic->slot)->name, strerror(counters.last_error),
                  NODE_PORT_BASE_DEFAULT, NODE_PORT_BASE_DEFAULT + NODE_PORT_COUNT - 1);
    }
}

void agent_nics_follow(struct agent *a)
{
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        follow(a, i);
        note_refused_ports(a, i);
    }
}
