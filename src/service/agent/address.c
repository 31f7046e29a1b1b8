/* address.c: a peer's NIC sends from another address than the members list has. Probes follow it to the new address, but only
 * after the new address has answered a question. The question has a random number. A packet alone is no proof: an attacker can
 * copy it on its way and send it from another address. */
#include <string.h>
#include <sys/random.h>
#include <syslog.h>

#include "base/ip.h"
#include "service/agent/agent.h"

#define ASK_AGAIN_NS NS_PER_S
#define FORGET_NS    (10 * NS_PER_S)

static const uint8_t prefix4[12] = {[10] = 0xff, [11] = 0xff};

bool agent_address_same(const struct agent_peer *peer, const uint8_t from[static 16])
{
    return memcmp(from, prefix4, sizeof(prefix4)) == 0 ? memcmp(&peer->address4, from + 12, 4) == 0
                                                       : memcmp(&peer->address6, from, 16) == 0;
}

static struct agent_move *find_move(struct agent *a, const struct agent_receive *r)
{
    for (uint32_t i = 0; i < AGENT_MOVE_MAX; i++) {
        struct agent_move *m = &a->moves[i];
        if (m->number != 0 && nic_id_equal(m->nic, r->event.probe.src) &&
            memcmp(m->address, r->from, sizeof(m->address)) == 0) {
            return m;
        }
    }
    return NULL;
}

/* Returns a free entry, or NULL if all entries wait for answers. */
static struct agent_move *free_move(struct agent *a)
{
    for (uint32_t i = 0; i < AGENT_MOVE_MAX; i++) {
        struct agent_move *m = &a->moves[i];
        if (m->number == 0 || mono_sub(a->now, m->asked).ns > FORGET_NS) {
            m->number = 0;
            return m;
        }
    }
    return NULL;
}

/* Sends a query about this host's own NIC. Every version answers such a query: the answer repeats the number and goes to the
 * address that the peer's list has for this host. */
static void ask(struct agent *a, const struct agent_receive *r, const struct agent_move *m)
{
    const struct nic_id own = a->config->peers[a->config->nics[r->event.local].peer].nic;
    const struct probe question = {.version = r->event.probe.version,
                                   .version_lowest = PROBE_VERSION_LOWEST,
                                   .type = PROBE_QUERY,
                                   .src = own,
                                   .dst = m->nic,
                                   .h_ns = UINT32_MAX,
                                   .anchor.nic = NIC_NONE,
                                   .query = {.subject = own, .number = m->number}};
    struct endpoint *e = a->nics[r->event.local].endpoint;
    struct endpoint_packet p = {.source_port = r->event.source_port};

    if (e != NULL) {
        memcpy(p.peer, m->address, sizeof(p.peer));
        probe_encode(p.bytes, &question, agent_pair_key(a, m->nic));
        endpoint_queue(e, &p);
    }
}

static void moved(struct agent *a, const struct agent_receive *r, struct agent_peer *peer)
{
    const uint32_t index = (uint32_t)(peer - a->config->more);

    if (memcmp(r->from, prefix4, sizeof(prefix4)) == 0) {
        memcpy(&peer->address4, r->from + 12, 4);
    } else {
        memcpy(&peer->address6, r->from, 16);
    }
    agent_say(
        LOG_NOTICE,
        "NIC %u (host %s) sends from another address than the peers list has: probes follow it",
        r->event.probe.src.index, agent_config_host_name(a->config, a->config->peers[index].host));
}

bool agent_address_on_packet(struct agent *a, const struct agent_receive *r)
{
    const struct probe *probe = &r->event.probe;
    uint32_t index = 0;

    if (!agent_config_find(a->config, probe->src, &index) ||
        agent_address_same(&a->config->more[index], r->from)) {
        return false;
    }
    struct agent_move *m = find_move(a, r);
    if (m != NULL && probe->type == PROBE_ANSWER && probe->query.number == m->number) {
        m->number = 0;
        moved(a, r, &a->config->more[index]);
        return true;
    }
    if (m == NULL && (m = free_move(a)) == NULL) {
        return false;
    }
    if (m->number == 0 || mono_sub(a->now, m->asked).ns >= ASK_AGAIN_NS) {
        *m = (struct agent_move){.nic = probe->src, .asked = a->now};
        memcpy(m->address, r->from, sizeof(m->address));
        if (getrandom(&m->number, sizeof(m->number), GRND_NONBLOCK) == sizeof(m->number) &&
            m->number != 0) {
            ask(a, r, m);
        }
    }
    return false;
}
