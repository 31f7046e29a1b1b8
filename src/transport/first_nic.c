/* first_nic.c: the NIC by which a set's lanes leave until the first of them is up.
 *
 * It is the NIC that NCCL named, as long as there is evidence for it. NCCL chooses by distance to the GPU and doesn't know
 * routes: rails may not be joined, a firewall may block, a peer may listen on another network. So if the kernel reports that the
 * peer can't be reached from there, or nothing answers, all lanes try the host's next NIC, round after round, each round for
 * longer. First comes the NIC whose address has the most leading bits in common with the peer's (the same subnet, if there is
 * one), then the NICs that may have a route. Once a lane was up the set stays on its NIC, and standby.c handles lanes over other
 * NICs. */
#include <errno.h>
#include <stdio.h>

#include "transport/internal.h"

#define TRIES     3
#define SILENT_NS (3 * NS_PER_S) /* SYNs may be lost when thousands connect at once */
#define REFUSED_NS                                                                                 \
    NS_PER_S /* over another NIC the peer's process seemed gone: this NIC is tried to be certain */
#define UNROUTED_NS (5 * NS_PER_S)
#define ROUNDS_MAX  4

/* The number of leading bits that two addresses have in common. */
static uint32_t common_bits(const struct io_address *a, const struct io_address *b)
{
    for (uint32_t i = 0; i < sizeof(a->ip); i++) {
        const uint32_t differ = a->ip[i] ^ b->ip[i];
        if (differ != 0) {
            return 8 * i + (uint32_t)__builtin_clz(differ) - 24;
        }
    }
    return 8 * sizeof(a->ip);
}

/* Bit k: NIC k could be tried as well. */
static uint32_t others(const struct lane_set *set)
{
    const struct transport *t = set->transport;
    const struct io_address *peer = &set->peers[0].address;
    uint32_t nics = 0;

    for (uint32_t i = 0; i < t->config.nic_count; i++) {
        if (i != set->nic && t->nics[i].carrier != 0 &&
            io_address_is_v4(&t->nics[i].config.address) == io_address_is_v4(peer)) {
            nics |= 1u << i;
        }
    }
    return nics;
}

/* NCCL's own NIC got no answer so far: an answer to another NIC needn't come from the peer's host. */
static bool named_is_silent(const struct lane_set *set)
{
    uint32_t named = 0;

    while (set->transport->nics[named].context != set->own_context) {
        named++;
    }
    return ((set->first.refusals | set->first.unrouted) >> named & 1) == 0;
}

bool first_nic_undecided(const struct lane_set *set)
{
    const bool untried = set->first.rounds == 0 && (others(set) & ~set->first.tried) != 0;

    return set->version == 0 && (untried || named_is_silent(set));
}

/* This host has no route to the peer from any NIC: most likely a wrong choice of NICs. Patience is for causes that may pass. */
static void no_route(struct lane_set *set, struct mono now)
{
    const uint32_t nics = others(set) | 1u << set->nic;
    const struct transport_nic *nic = &set->transport->nics[set->nic].config;
    char peer[PEER_TEXT], own[IO_ADDRESS_TEXT], more[32] = "";

    if ((nics & ~set->first.unrouted) != 0) {
        set->first.unrouted_since.ns = 0;
    } else if (set->first.unrouted_since.ns == 0) {
        set->first.unrouted_since = now;
    } else if (mono_sub(now, set->first.unrouted_since).ns > UNROUTED_NS) {
        const int count = __builtin_popcount(nics);
        if (count > 1) {
            snprintf(more, sizeof(more), " and %d other%s", count - 1, count > 2 ? "s" : "");
        }
        lane_set_fail(set, -ENETUNREACH,
                      "no route from NIC %s (%s)%s to %s: name NICs that reach each other, at both "
                      "ends (FOLIOT_NIC or NCCL_SOCKET_IFNAME)",
                      nic->name, io_address_text(&nic->address, own), more,
                      lane_set_peer(set, peer));
    }
}

void first_nic_on_connect(struct lane_set *set, struct mono now, int r)
{
    if (set->version != 0) {
        return;
    }
    set->first.told = set->first.told || r < 0;
    set->first.refusals |= r == -ECONNREFUSED ? 1u << set->nic : 0;
    if (r == -ENETUNREACH) {
        set->first.unrouted |= 1u << set->nic;
    } else {
        set->first.unrouted &= ~(1u << set->nic);
    }
    no_route(set, now);
}

/* Has the NIC had enough time? Not while the peer's kernel has accepted a connection and its process has yet to answer. */
static bool in_vain(const struct lane_set *set, struct mono now)
{
    const int64_t silent = set->first.refusals != 0 ? REFUSED_NS : SILENT_NS << set->first.rounds;
    bool any = false;

    for (uint32_t i = 0; i < set->lanes; i++) {
        const struct stream *stream = set->streams[i];
        struct watch_lane lane;
        watch_lane_get(set->watch, now, i, &lane);
        if (stream != NULL && !stream->connecting) {
            return false;
        }
        any = any || (lane.used && lane.state == LANE_DOWN &&
                      (lane.cut || set->lane_nics[i].tries >= TRIES ||
                       (set->first.told && set->first.refusals != 0)));
    }
    return any && (set->first.told || set->transport->nics[set->nic].carrier == 0 ||
                   mono_sub(now, set->first.since).ns >= silent);
}

static uint32_t best(const struct lane_set *set, uint32_t nics)
{
    uint32_t found = set->nic, most = 0;

    for (; nics != 0; nics &= nics - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(nics);
        const uint32_t bits =
            common_bits(&set->transport->nics[i].config.address, &set->peers[0].address);
        if (found == set->nic || bits > most) {
            found = i;
            most = bits;
        }
    }
    return found;
}

static void move_to(struct lane_set *set, struct mono now, uint32_t nic)
{
    const struct transport_nic *from = &set->transport->nics[set->nic].config;
    const struct transport_nic *to = &set->transport->nics[nic].config;
    const struct watch_lane_config lane = {.own_nic = (uint8_t)nic};
    char peer[PEER_TEXT];

    say(set->transport, set->first.rounds == 0 ? TRANSPORT_INFO : TRANSPORT_TRACE,
        "NIC %s doesn't reach %s: trying NIC %s", from->name, lane_set_peer(set, peer), to->name);
    set->nic = nic;
    set->first.since = now;
    set->first.told = false;
    for (uint32_t i = 0; i < set->lanes; i++) {
        watch_lane_close(set->watch, now, i);
        lane_set_act(set, now);
        watch_lane_remove(set->watch, i);
        set->lane_nics[i].own = (uint8_t)nic;
        set->lane_nics[i].tries = 0;
        set->lane_nics[i].port = 0;
        if (watch_lane_add(set->watch, now, i, &lane) < 0) {
            break;
        }
    }
    lane_set_act(set, now);
}

void first_nic_look(struct lane_set *set, struct mono now)
{
    const uint32_t nics = others(set);

    if (set->version != 0 || set->error != 0 || set->leaving || nics == 0 || !in_vain(set, now)) {
        return;
    }
    set->first.tried |= 1u << set->nic;
    if ((nics & ~set->first.tried) == 0) {
        set->first.rounds += set->first.rounds < ROUNDS_MAX;
        set->first.tried = 1u << set->nic;
    }
    move_to(set, now, best(set, nics & ~set->first.tried));
}
