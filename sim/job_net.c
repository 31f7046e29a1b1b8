/* job_net.c: leaves and spines, and what happens to a packet in them. */
#include "sim/job_net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_NS (10 * NS_PER_MS)
#define HEADERS  66 /* of each packet with at most SEGMENT bytes */
#define SEGMENT  1448

int job_net_init(struct job_net *net, const struct job_net_config *config, uint64_t seed)
{
    const uint32_t nics = config->hosts * config->nics,
                   trunks = config->leaves * config->spines * 2;

    *net = (struct job_net){.config = *config};
    net->config.queue_ns = config->queue_ns > 0 ? config->queue_ns : QUEUE_NS;
    prng_init(&net->prng, seed);
    net->nics = calloc(nics, sizeof(*net->nics));
    net->trunks = calloc(trunks, sizeof(*net->trunks));
    if (net->nics == NULL || net->trunks == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < nics; i++) {
        struct job_nic *nic = &net->nics[i];
        nic->out = nic->in =
            (struct job_link){.rate_bps = config->host_bps, .delay_ns = config->delay_ns};
        /* Neighbours of one rail are on different leaves, and so are a host's NICs. */
        nic->leaf = (uint16_t)((i / config->nics + i % config->nics) % config->leaves);
        nic->carrier = true;
    }
    for (uint32_t i = 0; i < trunks; i++) {
        net->trunks[i] =
            (struct job_link){.rate_bps = config->trunk_bps, .delay_ns = config->delay_ns};
    }
    return 0;
}

void job_net_done(struct job_net *net)
{
    free(net->nics);
    free(net->trunks);
}

/* 10.host.host.nic */
int job_net_nic(const struct job_net *net, const struct io_address *address)
{
    const uint8_t *ip = address->ip + 12;
    const uint32_t host = (uint32_t)ip[1] << 8 | ip[2];

    return ip[0] == 10 && host < net->config.hosts && ip[3] < net->config.nics
               ? (int)(host * net->config.nics + ip[3])
               : -1;
}

struct io_address job_net_address(const struct job_net *net, uint32_t nic)
{
    const uint32_t host = nic / net->config.nics;

    return (struct io_address){.ip = {[10] = 0xff,
                                      [11] = 0xff,
                                      [12] = 10,
                                      [13] = (uint8_t)(host >> 8),
                                      [14] = (uint8_t)host,
                                      [15] = (uint8_t)(nic % net->config.nics)}};
}

struct job_link *job_net_trunk(struct job_net *net, uint32_t leaf, uint32_t spine, bool down)
{
    return &net->trunks[(leaf * net->config.spines + spine) * 2 + (down ? 1 : 0)];
}

uint32_t job_net_spine(const struct job_net *net, const struct job_way *way)
{
    const uint64_t ports = (uint64_t)way->from_port << 16 | way->to_port;
    const uint64_t hash = hash_u64((uint64_t)way->from << 32 | way->to, ports);
    uint32_t spine = (uint32_t)(hash % net->config.spines);

    /* Routing spreads a withdrawn spine's flows over the other spines. */
    for (uint32_t i = 1; (net->withdrawn >> spine & 1) != 0 && i <= net->config.spines; i++) {
        spine = (uint32_t)(hash_u64(hash, i) % net->config.spines);
    }
    return spine;
}

static bool by_chance(struct job_net *net, uint32_t ppm, uint32_t packets)
{
    return ppm != 0 && prng_below(&net->prng, 1000000) < (uint64_t)ppm * packets;
}

static struct job_link *link_of(struct job_net *net, const struct job_train *train)
{
    struct job_nic *from = &net->nics[train->way.from], *to = &net->nics[train->way.to];

    if (train->links == 0) {
        return &from->out;
    }
    if (from->leaf == to->leaf || train->links == 3) {
        return &to->in;
    }
    return train->links == 1 ? job_net_trunk(net, from->leaf, train->spine, false)
                             : job_net_trunk(net, to->leaf, train->spine, true);
}

static bool in_sieve(const struct job_sieve *sieve, const struct job_way *way)
{
    for (uint32_t i = 0; i < sieve->count; i++) {
        const struct job_way *x = &sieve->ways[i];
        if (x->from == way->from && x->to == way->to && x->from_port == way->from_port &&
            x->to_port == way->to_port) {
            return true;
        }
    }
    return false;
}

static uint32_t packets_of(const struct job_train *train)
{
    return 1 + train->bytes / SEGMENT;
}

static int64_t time_on(const struct job_link *link, const struct job_train *train)
{
    const int64_t bits = ((int64_t)train->bytes + (int64_t)packets_of(train) * HEADERS) * 8;

    return bits * NS_PER_S / link->rate_bps * (link->slow ? link->slow : 1);
}

int64_t job_net_forward(struct job_net *net, int64_t now, struct job_train *train)
{
    const uint32_t packets = packets_of(train);

    if (train->links == 0) {
        net->packets++;
        train->spine = job_net_spine(net, &train->way);
    }
    const bool sieved = train->links == 0 && in_sieve(&net->sieve, &train->way);
    struct job_link *link = link_of(net, train);
    const int64_t takes = time_on(link, train);
    const int64_t begin = now > link->busy_until ? now : link->busy_until;
    if (link->cut > 0 || begin - now > net->config.queue_ns * (link->slow ? link->slow : 1) ||
        by_chance(net, link->loss_ppm, packets) ||
        (sieved && by_chance(net, net->sieve.lost_ppm, 1))) {
        net->lost++;
        return -1;
    }
    if (by_chance(net, link->damage_ppm, packets) && !train->damaged) {
        train->damaged = true;
        net->damaged++;
    }
    link->busy_until = begin + takes;
    const int64_t delay = link->delay_ns + link->extra_ns + (sieved ? net->sieve.held_ns : 0);
    const int64_t first = begin + takes / packets + delay;
    train->last = begin + takes + delay;
    train->there = link == &net->nics[train->way.to].in;
    train->links++;
    if (train->there) {
        return train->last;
    }
    /* A faster link begins later, so that it has each packet when the packet's turn comes. */
    struct job_link *next = link_of(net, train);
    const int64_t faster = time_on(next, train);
    const int64_t ready = train->last + faster / packets - faster;
    return ready > first ? ready : first;
}
