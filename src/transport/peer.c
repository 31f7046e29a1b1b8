/* peer.c: the other end: its name for people, its NICs, and whether its process still lives.
 *
 * Each end reports its NICs, and which of them have no carrier, over each new lane and whenever that changes. So a lane that
 * can't come up isn't tried, and one that can again is tried at once. A sender that can't connect learns from a refusal that
 * nobody listens there any more. A receiver waits for connections. With no lane left it knocks: it connects to the peer's
 * listener now and then, and closes the connection again if it is accepted. Refusals count only where a lane was up. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "transport/internal.h"

/* The time between two knocks, and the limit for one: the first value, twice as long each time, up to the last. A process that is
 * killed may close its lanes before its listener: then the listener still accepts, and refuses a moment later. */
#define KNOCK_NS     (4 * NS_PER_MS)
#define KNOCK_MAX_NS (250 * NS_PER_MS)

const char *lane_set_peer(const struct lane_set *set, char text[static PEER_TEXT])
{
    char address[IO_ADDRESS_TEXT] = "?";

    if (set->peer_count > 0) {
        io_address_text(&set->peers[0].address, address);
    }
    if (set->host[0] == 0) {
        snprintf(text, PEER_TEXT, "%s, process %u", address, set->pid);
    } else {
        snprintf(text, PEER_TEXT, "host %s, NIC %s (%s), process %u", set->host, set->peer_device,
                 address, set->pid);
    }
    return text;
}

/* -- NICs ------------------------------------------------------------------------------------- */

void lane_set_tell_nics(struct lane_set *set, struct stream *stream)
{
    const struct transport *t = set->transport;
    struct lane_nics nics = {.port = __atomic_load_n(&t->port, __ATOMIC_RELAXED)};
    uint8_t bytes[LANE_NICS_SIZE];

    for (uint32_t i = 0; i < t->config.nic_count && nics.count < LANE_NICS_MAX; i++) {
        if (set->version >= 2 && t->nics[i].carrier == 0) {
            nics.down |= 1u << nics.count;
        }
        memcpy(nics.nics[nics.count].address, t->nics[i].config.address.ip, 16);
        memcpy(nics.nics[nics.count].name, t->nics[i].config.name, LANE_NIC_SIZE);
        nics.count++;
    }
    if (set->version >= 4) {
        nics.small_slots = set->small_slots;
        nics.large_slots = set->large_slots;
        nics.large_shift = set->large_shift;
    }
    lane_nics_encode(bytes, &nics);
    (void)stream_control(stream, bytes, sizeof(bytes));
}

int lane_set_on_nics(struct lane_set *set, struct mono now, const uint8_t *frame, size_t size)
{
    struct lane_nics nics;

    if (lane_nics_decode(frame, size, &nics) != LANE_ERROR_NONE) {
        return -EPROTO;
    }
    set->peer_small_slots = nics.small_slots;
    set->peer_large_slots = nics.large_slots;
    set->peer_large_shift = nics.large_shift;
    if (set->sender != NULL) {
        lane_set_grant(set);
    }
    for (uint8_t i = 0; i < nics.count; i++) {
        struct peer_nic peer = {.address.port = nics.port};
        uint32_t k = 0;
        memcpy(peer.address.ip, nics.nics[i].address, 16);
        memcpy(peer.name, nics.nics[i].name, sizeof(peer.name));
        while (k < set->peer_count && !io_address_same_ip(&set->peers[k].address, &peer.address)) {
            k++;
        }
        if (k == WATCH_NIC_MAX) {
            continue;
        }
        if (k == set->peer_count) {
            set->peer_count++;
        } else if (set->connects) {
            peer.address.port = set->peers[k].address.port; /* the handle's port counts */
        }
        set->peers[k] = peer;
        if (set->version >= 2) {
            watch_on_carrier(set->watch, now, false, k, (nics.down >> i & 1) == 0, 0);
        }
    }
    if (set->connects && !set->standbys_late) { /* else ceiling_look decides when */
        standby_start(set, now);
    }
    return 0;
}

uint32_t lane_set_standbys(const struct lane_set *set)
{
    uint32_t standbys = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        standbys |= set->lane_nics[i].standby ? 1u << i : 0;
    }
    return standbys;
}

/* Another pair of NICs than last time, if there is one: all of that pair may be dead. First come lanes that are not doubted. */
int lane_set_any_lane(struct lane_set *set)
{
    const uint32_t connected = watch_connected(set->watch);
    const uint32_t good = connected & ~watch_doubted(set->watch);
    const struct stream *last = set->streams[set->lane_turn];
    const uint8_t own = last != NULL ? last->own_nic : UINT8_MAX;
    const uint8_t peer = last != NULL ? last->peer_nic : UINT8_MAX;

    for (uint32_t i = 0; i < 3 * LANE_MAX; i++) {
        const uint32_t lane = (set->lane_turn + 1 + i) % LANE_MAX;
        const struct stream *stream = set->streams[lane];
        const uint32_t from = i < 2 * LANE_MAX ? good : connected;
        if ((from >> lane & 1) == 0 || stream == NULL || !stream->shaken || stream->dead ||
            (i < LANE_MAX && stream->own_nic == own && stream->peer_nic == peer)) {
            continue;
        }
        set->lane_turn = lane;
        return (int)lane;
    }
    return -1;
}

/* -- is it there? ----------------------------------------------------------------------------- */

static void end_knock(struct lane_set *set)
{
    if (set->knock >= 0) {
        set->transport->io->close(set->transport->io, set->knock, true);
        set->knock = -1;
    }
}

bool peer_here(const struct transport *t, const struct io_address *peer)
{
    for (uint32_t i = 0; i < t->config.nic_count; i++) {
        if (io_address_same_ip(&t->nics[i].config.address, peer)) {
            return true;
        }
    }
    return false;
}

struct io_connect peer_connect(const struct transport *t, const struct io_address *from,
                               const struct io_address *to)
{
    return (struct io_connect){.from = *from,
                               .to = *to,
                               .notsent = NOTSENT_BYTES,
                               .traffic_class = t->config.traffic_class,
                               .here = peer_here(t, to)};
}

const char *peer_device(const struct lane_set *set, const struct own_nic *nic,
                        const struct io_address *to, uint32_t attempt)
{
    return nic->config.bind_device && (attempt & 1) != 0 && !peer_here(set->transport, to)
               ? nic->config.name
               : NULL;
}

bool peer_refuses(const struct lane_set *set, uint32_t own, uint32_t peer)
{
    const struct transport *t = set->transport;

    if (peer_here(t, &set->peers[peer].address) && !peer_here(t, &set->peers[0].address)) {
        /* another host has the same address as this one: this host's kernel refused */
        return false;
    }
    return (set->carried[own] >> peer & 1) != 0 || (set->connects && own == set->nic && peer == 0);
}

/* The next pair of NICs for which a refusal would mean something; false: there is none. */
static bool next_pair(struct lane_set *set, uint32_t *ret_own, uint32_t *ret_peer)
{
    const uint32_t nics = set->transport->config.nic_count;

    for (uint32_t i = 0; i < nics * set->peer_count; i++) {
        const uint32_t pair = set->knock_pair++ % (nics * set->peer_count);
        *ret_own = (set->nic + pair / set->peer_count) % nics;
        *ret_peer = pair % set->peer_count;
        if (peer_refuses(set, *ret_own, *ret_peer)) {
            return true;
        }
    }
    return false;
}

static void begin_knock(struct lane_set *set)
{
    struct transport *t = set->transport;
    uint32_t own, peer;

    if (!next_pair(set, &own, &peer)) {
        return;
    }
    set->knocks++;
    const struct own_nic *nic = &t->nics[own];
    const struct io_connect connect = {
        .from = nic->config.address,
        .to = set->peers[peer].address,
        .device = peer_device(set, nic, &set->peers[peer].address, set->knocks),
    };

    if (connect.to.port == 0) {
        return; /* it doesn't listen */
    }
    const int r = t->io->connect(t->io, &connect, &set->knock);
    if (r < 0) {
        set->knock = -1;
    }
}

void lane_set_knock(struct lane_set *set, struct mono now)
{
    struct io *io = set->transport->io;
    struct io_address local;

    if (set->connects || set->peer_count == 0 || watch_connected(set->watch) != 0 ||
        set->comm_count == 0 || set->error != 0 || set->leaving) {
        end_knock(set);
        set->knock_ns = 0;
        set->next_knock = now;
        return;
    }
    if (set->knock >= 0) {
        const int r = io->connected(io, set->knock, &local);
        if (r == -ECONNREFUSED) {
            watch_on_peer_dead(set->watch, now);
        } else if (r == 0) {
            watch_on_peer_there(set->watch);
        }
        if (r != -EAGAIN || now.ns >= set->next_knock.ns) {
            end_knock(set);
        }
        return;
    }
    if (now.ns >= set->next_knock.ns) {
        set->knock_ns = set->knock_ns == 0                 ? KNOCK_NS
                        : set->knock_ns < KNOCK_MAX_NS / 2 ? 2 * set->knock_ns
                                                           : KNOCK_MAX_NS;
        set->next_knock = mono_add(now, span_ns(set->knock_ns));
        begin_knock(set);
    }
}
