/* host_send.c: sends a host's packets: the round queues them; they are stamped and launched when they depart. */
#include "sim/world.h"

#include <math.h>
#include <stdlib.h>

#define SEND_COST_NS 2000 /* time for one packet in sendmmsg */

static void lie(struct world *w, struct world_host *h, struct mesh_send *send)
{
    const struct scenario_fault *f = h->lie;
    int64_t by = 0;

    switch (f->lie) {
    case LIE_RANDOM:
        by = (int64_t)((2 * prng_uniform(&h->random) - 1) * (double)f->size_ns);
        break;
    case LIE_COLLUDING:
        by = f->size_ns;
        break;
    case LIE_DRIFTING: {
        const double drift = f->rate_ppb * 1e-9 * (double)(w->now - h->lie_since);
        by = (int64_t)(fabs(drift) < (double)f->size_ns ? drift
                                                        : copysign((double)f->size_ns, drift));
        break;
    }
    case LIE_TWO_FACED:
        by = (hash_u64(3, send->peer.index / (uint32_t)w->nics_per_host) & 1) != 0 ? f->size_ns
                                                                                   : -f->size_ns;
        break;
    case LIE_OLDEST:
        by = f->size_ns;
        send->probe.timeline = 0x6c696172;
        send->probe.timeline_age_s = 1000000000;
        send->probe.settled = true;
        send->probe.state = PROBE_TRACK;
        break;
    case LIE_UTC:
        send->probe.anchor = (struct probe_anchor){
            .nic = {(uint32_t)prng_below(&h->random, 8)},
            .bound_ns = 144000,
            .utc_minus_fleet_ns = send->probe.anchor.utc_minus_fleet_ns + f->size_ns};
        break;
    default: /* this lie exists only in bytes */
        break;
    }
    send->probe.map.map.x += by;
}

/* Changes a probe into one that an agent of an older wire version writes. */
static void age(struct mesh_send *send, uint8_t version)
{
    send->probe.version = version < send->probe.version ? version : send->probe.version;
    send->probe.version_lowest = 1;
    if (send->probe.version < 2) {
        send->probe.anchor = (struct probe_anchor){.nic = NIC_NONE};
    }
}

static int64_t put_on_wire(struct world *w, int host, const struct mesh_send *send, uint32_t packet,
                           int64_t stamped)
{
    struct world_host *h = &w->hosts[host];
    const struct scenario_clocks *c = &w->scenario->clocks;
    struct world_nic *nic = &h->nics[send->local];
    struct packet *p = &w->packets[packet];
    const double noise = c->noise_ns * prng_normal(&h->random);
    const double jitter = world_jitter_ns(w, host);
    const double late = jitter > 0 ? jitter * prng_exponential(&h->random) : 0;

    *p = (struct packet){.token = send->token, .stage = TRANSMIT_STAMPED};
    p->receive.rx.ns = host_stamp(w, host, send->local, stamped) + (int64_t)noise;
    if (c->quantum_ns > 1) {
        p->receive.rx.ns -= p->receive.rx.ns % (int64_t)c->quantum_ns;
    }
    p->receive.local = send->local;
    p->receive.stamps = world_nics_stamp(w, host) ? STAMP_HARDWARE : STAMP_SOFTWARE;
    p->receive.error_ns = (uint32_t)(8.5 * c->noise_ns + c->quantum_ns + 10);
    if (c->one_tx_stamp && stamped < nic->tx_busy) {
        p->stage = TRANSMIT_NO_STAMP;
    } else {
        nic->tx_busy = stamped + 50000;
    }
    world_deliver(w, host, stamped + 30000, INBOX_TRANSMIT, packet);
    return stamped + (int64_t)late;
}

static void launch(struct world *w, int host, const struct mesh_send *send, int64_t sent)
{
    const uint32_t i = world_packet_new(w);
    struct packet *p = &w->packets[i];
    const int peer = (int)send->peer.index / w->nics_per_host;

    p->token = send->token;
    p->src = world_nic(w, host, (int)send->local);
    p->dst = send->peer.index;
    p->source_port = send->source_port;
    p->ttl = send->ttl;
    p->size = send->size;
    p->high = w->scenario->fabric.probe_class && send->net_class == NODE_CLASS_CLOCK;
    p->sent = sent;
    p->receive = (struct node_receive){.probe = send->probe};
    p->encoded = false;
    if (send->size > PROBE_SIZE && w->hosts[peer].version < PROBE_VERSION_DIGEST) {
        world_packet_free(w, i); /* an older agent refuses it */
        return;
    }
    if (w->scenario->wire || w->hosts[peer].version < PROBE_VERSION ||
        world_lies_in_field(&w->hosts[host])) {
        world_wire(w, i, peer);
    } else {
        world_launch(w, i);
    }
}

static void send_one(struct world *w, int host, struct mesh_send *send, int64_t *at, int64_t *first)
{
    struct world_host *h = &w->hosts[host];

    *at += SEND_COST_NS + (int64_t)(300 * prng_exponential(&h->random));
    if (send->pair != 0 && send->probe.second) {
        const int64_t wanted = *first + NODE_PAIR_GAP_NS;
        *at = *at > wanted ? *at : wanted + (int64_t)(200 * prng_exponential(&h->random));
    }
    struct world_nic *nic = &h->nics[send->local];
    /* after the packets that the NIC already sends */
    *at = *at > nic->tx_free ? *at : nic->tx_free;
    nic->tx_free =
        *at + (int64_t)(network_wire_bytes(send->size) * 8000.0 / w->scenario->fabric.link_mbps);
    *first = *at;
    if (h->lie != NULL && !world_lies_in_field(h)) {
        lie(w, h, send);
    }
    if (h->version < PROBE_VERSION) {
        age(send, (uint8_t)h->version);
    }
    h->sent++;
    int64_t sent = *at;
    if (send->want_stamp != 0) {
        sent = put_on_wire(w, host, send, world_packet_new(w), *at);
    }
    launch(w, host, send, sent);
}

void host_queue(struct world_host *h, int64_t now, const struct mesh_send *send)
{
    if (h->outbox_count == h->outbox_capacity) {
        h->outbox_capacity = h->outbox_capacity == 0 ? 32 : 2 * h->outbox_capacity;
        h->outbox = realloc(h->outbox, h->outbox_capacity * sizeof(*h->outbox));
        ASSERT(h->outbox != NULL);
    }
    h->outbox[h->outbox_count++] =
        (struct outbox_item){.at = now + send->hold_us * NS_PER_US, .send = *send};
}

int64_t host_depart(struct world *w, int host)
{
    struct world_host *h = &w->hosts[host];
    int64_t at = w->now + 5000, first = 0, next = INT64_MAX;
    size_t kept = 0;

    for (size_t i = 0; i < h->outbox_count; i++) {
        struct outbox_item *item = &h->outbox[i];
        if (item->at <= w->now) {
            send_one(w, host, &item->send, &at, &first);
        } else {
            next = item->at < next ? item->at : next;
            h->outbox[kept++] = *item;
        }
    }
    h->outbox_count = kept;
    return next;
}
