/* job_net.c: leaves and spines, and what becomes of a packet that is sent into them. */
#include "sim/job_net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_NS (10 * NS_PER_MS)
#define HEADERS  66 /* of each packet of at most SEGMENT bytes */
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
        /* Neighbours of one rail on different leaves, and a host's NICs, too. */
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

    /* Routing spreads what a withdrawn spine had over the others. */
    for (uint32_t i = 1; (net->withdrawn >> spine & 1) != 0 && i <= net->config.spines; i++) {
        spine = (uint32_t)(hash_u64(hash, i) % net->config.spines);
    }
    return spine;
}

static bool by_chance(struct job_net *net, uint32_t ppm, uint32_t packets)
{
    return ppm != 0 && prng_below(&net->prng, 1000000) < (uint64_t)ppm * packets;
}

/* Nobody comes before now any more. */
static void forget_idle(struct job_link *link, int64_t now)
{
    uint32_t past = 0;

    while (past < link->idle_count && link->idle[past].until <= now) {
        past++;
    }
    link->idle_count -= past;
    memmove(link->idle, link->idle + past, link->idle_count * sizeof(link->idle[0]));
}

static void remove_idle(struct job_link *link, uint32_t k)
{
    link->idle_count--;
    memmove(&link->idle[k], &link->idle[k + 1], (link->idle_count - k) * sizeof(link->idle[0]));
}

/* After the k-th. If there is no room the last one is forgotten: who comes soon must find what is idle soon. */
static void add_idle(struct job_link *link, uint32_t k, struct job_idle idle)
{
    if (link->idle_count == JOB_IDLE_MAX) {
        if (k + 1 == JOB_IDLE_MAX) {
            return;
        }
        remove_idle(link, JOB_IDLE_MAX - 1);
    }
    memmove(&link->idle[k + 2], &link->idle[k + 1],
            (link->idle_count - k - 1) * sizeof(link->idle[0]));
    link->idle[k + 1] = idle;
    link->idle_count++;
}

/* When a packet that comes then and takes so long would be through: it uses whatever time the link has from then on. */
static int64_t through(const struct job_link *link, int64_t at, int64_t takes)
{
    for (uint32_t k = 0; k < link->idle_count; k++) {
        const int64_t from = link->idle[k].from > at ? link->idle[k].from : at;
        const int64_t room = link->idle[k].until - from;
        if (room >= takes) {
            return from + takes;
        }
        takes -= room > 0 ? room : 0;
    }
    return (at > link->busy_until ? at : link->busy_until) + takes;
}

/* It does; what is idle from `at` to `end` is no longer. */
static void occupy(struct job_link *link, int64_t now, int64_t at, int64_t end)
{
    forget_idle(link, now);
    for (uint32_t k = link->idle_count; k-- > 0;) {
        struct job_idle *idle = &link->idle[k];
        const struct job_idle rest = {end, idle->until};
        if (idle->until <= at || idle->from >= end) {
            continue;
        }
        if (idle->from < at) {
            idle->until = at;
            if (rest.from < rest.until) {
                add_idle(link, k, rest);
            }
        } else if (rest.from < rest.until) {
            *idle = rest;
        } else {
            remove_idle(link, k);
        }
    }
    if (at > link->busy_until) {
        const struct job_idle before = {link->busy_until > now ? link->busy_until : now, at};
        if (before.from < before.until) {
            add_idle(link, link->idle_count - 1, before);
        }
    }
    link->busy_until = end > link->busy_until ? end : link->busy_until;
}

int64_t job_net_send(struct job_net *net, int64_t now, const struct job_way *way, uint32_t bytes,
                     bool *ret_damaged)
{
    struct job_nic *from = &net->nics[way->from], *to = &net->nics[way->to];
    const uint32_t packets = 1 + bytes / SEGMENT;
    const int64_t bits = ((int64_t)bytes + (int64_t)packets * HEADERS) * 8;
    struct job_link *links[4];
    int64_t at = now;
    int count = 0;

    *ret_damaged = false;
    net->packets++;
    links[count++] = &from->out;
    if (from->leaf != to->leaf) {
        const uint32_t spine = job_net_spine(net, way);
        links[count++] = job_net_trunk(net, from->leaf, spine, false);
        links[count++] = job_net_trunk(net, to->leaf, spine, true);
    }
    links[count++] = &to->in;
    for (int i = 0; i < count; i++) {
        struct job_link *link = links[i];
        const int64_t slow = link->slow ? link->slow : 1;
        const int64_t takes = bits * NS_PER_S / link->rate_bps * slow;
        const int64_t end = through(link, at, takes);
        if (link->cut > 0 || end - takes - at > net->config.queue_ns * slow ||
            by_chance(net, link->loss_ppm, packets)) {
            net->lost++;
            return -1;
        }
        *ret_damaged = *ret_damaged || by_chance(net, link->damage_ppm, packets);
        occupy(link, now, at, end);
        at = end + link->delay_ns + link->extra_ns;
    }
    net->damaged += *ret_damaged;
    return at;
}
