/* job_slow.c: all-to-all while one NIC carries a small part of its rate, in both directions. It measures the rate that the job
 * still reaches.
 *
 * The bound is a cut: each host sends and receives its share over all its NICs. All ranks wait for each other, so the slow
 * host's NICs limit the whole job. Links between switches must not limit it: the world has enough of them. */
#include "sim/job_private.h"

#include "base/prng.h"

#define PAYLOAD (1448.0 / 1514)

static void slow_down(struct job_world *w, uint32_t by)
{
    struct job_nic *nic = &w->net.nics[w->config.nics - 1];

    nic->in.slow = nic->out.slow = by;
}

/* The bytes that all hosts receive per ns, if one of them has only so many NICs. */
static double bound(const struct job_world *w, double nics)
{
    return nics * w->net.config.hosts * (double)w->config.host_bps / 8e9 * PAYLOAD;
}

/* The share of the bound from the first time to the second. */
static double share(struct job_world *w, int64_t from, int64_t to, double nics)
{
    const int64_t begin = START_NS + from, end = START_NS + to;

    world_until(w, begin);
    const uint64_t before = w->result->bytes;
    world_until(w, end);
    return (double)(w->result->bytes - before) / (double)(to - from) / bound(w, nics);
}

void slow_run(struct job_world *w)
{
    const struct job_world_config *c = &w->config;
    const int64_t until = c->slow_until_ns > 0 ? c->slow_until_ns : c->run_ns;

    w->result->slow_before = share(w, c->slow_ns / 2, c->slow_ns, c->nics);
    slow_down(w, c->slow_nic);
    w->result->slow_settled =
        share(w, c->slow_ns + NS_PER_S, until, c->nics - 1 + 1.0 / c->slow_nic);
    if (until < c->run_ns) {
        slow_down(w, 0);
        w->result->slow_healed = share(w, until + NS_PER_S, c->run_ns, c->nics);
    }
}

void job_world_slow(struct job_world_config *ret_config, uint64_t seed)
{
    static const int64_t rates[] = {50000000, 200000000, 1000000000};
    struct prng prng, *p = &prng;

    prng_init(p, hash_u64(seed, 79));
    const uint32_t hosts = 2 + (uint32_t)prng_below(p, 3), nics = 2 + (uint32_t)prng_below(p, 2),
                   spines = 2 + (uint32_t)prng_below(p, 5), depth = 3 + (uint32_t)prng_below(p, 6);
    const int64_t rate = rates[prng_below(p, 3)];
    *ret_config = (struct job_world_config){
        .seed = seed,
        .hosts = hosts,
        .nics = nics,
        .leaves = 2,
        .spines = spines,
        .host_bps = rate,
        /* Upward links have once to twice the rate of all hosts of a leaf. */
        .trunk_bps = (int64_t)((1 + prng_uniform(p)) * (double)(hosts * nics) / 2 * (double)rate /
                               (double)spines),
        .delay_ns = (2 + (int64_t)prng_below(p, 40)) * NS_PER_US,
        .queue_ns = (5 + (int64_t)prng_below(p, 40)) * NS_PER_MS,
        .pattern = JOB_PAIRS,
        .comms = nics,
        .lanes = 4,
        .standbys = 2,
        .checksum = true,
        .patience_ns = 60 * NS_PER_S,
        .messages = UINT32_MAX / 2,
        .size_max = rate < 1000000000 ? 65536 : 262144,
        .whole = true,
        .depth = depth,
        .chain = depth,
        .poll_ns = 100 * NS_PER_US,
        .rto_min_ns = 5 * NS_PER_MS,
        .slow_nic = 5 + (uint32_t)prng_below(p, 36),
        .slow_ns = NS_PER_S,
        .slow_until_ns = 4 * NS_PER_S,
        .run_ns = 7 * NS_PER_S,
    };
}
