/* job_gap.c: one of two lanes has a fault, again and again. It measures the longest time without a received message, with and
 * without the fault.
 *
 * The faults are those of lab/roce-vm/table: packets held for 300 ms, a black hole, lost acknowledgements, both, 30 % loss.
 * They affect one lane's packets, on any path, for 0.3 s or 1.5 s in turn. Between two faults the job runs for as long without
 * one. */
#include "core/failover/ledger_internal.h"
#include "sim/job_pair.h"

#define BEGIN_NS  NS_PER_S
#define WINDOW_NS (2 * NS_PER_S)
#define SHORT_NS  (300 * NS_PER_MS)
#define LONG_NS   (1500 * NS_PER_MS)
#define HELD_NS   (300 * NS_PER_MS)
#define LOST_PPM  300000
#define BACK_NS   (100 * NS_PER_MS) /* two lanes are looked for so often, … */
#define BACK_MAX  300               /* … so many times */

void gap_received(struct job_world *w)
{
    const int64_t gap = w->now - w->received_at;

    w->gap_ns = gap > w->gap_ns ? gap : w->gap_ns;
    w->received_at = w->now;
}

static void begin_window(struct job_world *w)
{
    w->gap_ns = 0;
    w->received_at = w->now;
}

static int64_t end_window(struct job_world *w)
{
    gap_received(w);
    return w->gap_ns;
}

/* The paths of a lane, there and back. */
struct lane_ways {
    struct job_way there, back;
};

static struct lane_ways ways(uint32_t from, uint32_t to, const uint16_t ports[4])
{
    return (struct lane_ways){{from, to, ports[0], ports[1]}, {to, from, ports[2], ports[3]}};
}

/* The lanes of process 0, at most two. */
static uint32_t find_lanes(struct job_world *w, struct lane_ways *ret_lanes)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < w->pair_count && count < 2; i++) {
        const struct pair *x = pair_at(w, i), *peer = pair_at(w, x->peer);
        if (x->used && x->open && x->process == 0 && x->state == PAIR_RTS && peer->used) {
            ret_lanes[count++] =
                ways(x->nic, peer->nic, (uint16_t[]){x->port, PAIR_PORT, peer->port, PAIR_PORT});
        }
    }
    for (uint32_t i = 0; !w->config.rdma && i < w->conn_count && count < 2; i++) {
        const struct end *x = &w->conns[i]->ends[0], *peer = &w->conns[i]->ends[1];
        if (w->conns[i]->used && x->process == 0 && x->state == END_OPEN &&
            peer->state == END_OPEN && x->fd >= 0 && peer->fd >= 0) {
            ret_lanes[count++] =
                ways(x->nic, peer->nic, (uint16_t[]){x->port, peer->port, peer->port, x->port});
        }
    }
    return count;
}

static void spoil(struct job_world *w, enum job_gap_kind kind, const struct lane_ways *lane)
{
    w->net.sieve =
        (struct job_sieve){.count = kind == JOB_GAP_BOTH ? 2 : 1,
                           .ways = {kind == JOB_GAP_ACKS ? lane->back : lane->there, lane->back},
                           .lost_ppm = kind == JOB_GAP_HELD   ? 0
                                       : kind == JOB_GAP_LOSS ? LOST_PPM
                                                              : 1000000,
                           .held_ns = kind == JOB_GAP_HELD ? HELD_NS : 0};
}

static bool both_lanes(struct job_world *w, struct lane_ways *ret_lanes)
{
    for (int i = 0; i < BACK_MAX && w->result->wrong == NULL; i++) {
        if (find_lanes(w, ret_lanes) == 2) {
            return true;
        }
        world_until(w, w->now + BACK_NS);
    }
    return false;
}

/* Lanes of process 0 over queue pairs. */
static uint32_t count_pairs(struct job_world *w)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < w->pair_count; i++) {
        const struct pair *x = pair_at(w, i);
        count += x->used && x->open && x->process == 0 && x->state == PAIR_RTS &&
                 pair_at(w, x->peer)->used;
    }
    return count;
}

/* True if all lanes of the set's own rail are over queue pairs again, and write. */
static bool are_home(struct job_world *w)
{
    const uint64_t writes = w->result->writes;

    for (int i = 0; i < BACK_MAX && w->result->wrong == NULL; i++) {
        world_until(w, w->now + BACK_NS);
        if (count_pairs(w) >= w->config.lanes && w->result->writes > writes) {
            return true;
        }
    }
    world_wrong(w, "lanes don't come home", "%u over queue pairs", count_pairs(w));
    return false;
}

static void cut_rails(struct job_world *w, uint32_t host, enum job_fault kind, int by)
{
    for (uint32_t i = 0; i + 1 < w->config.nics; i++) {
        sim_nic_cut(w, host * w->config.nics + i, kind, by);
    }
}

/* All rails of one end fail, and the job goes on over connections between the front ends. */
static void lose_rails(struct job_world *w, uint32_t k)
{
    const enum job_fault kind = k % 2 != 0 ? JOB_FAULT_NIC_HOLE : JOB_FAULT_NIC_DOWN;
    const uint32_t host = k / 2 % 2;
    struct job_gap *gap = &w->result->gaps[k];
    const uint64_t bytes = w->result->bytes;

    gap->kind = JOB_GAP_RAILS;
    gap->lasts_ns = WINDOW_NS;
    cut_rails(w, host, kind, 1);
    begin_window(w);
    world_until(w, w->now + WINDOW_NS);
    gap->failed_over = w->result->bytes > bytes && count_pairs(w) == 0;
    gap->fault_ns = end_window(w);
    cut_rails(w, host, kind, -1);
    begin_window(w);
    w->result->gap_count += are_home(w);
    const int64_t after_ns = end_window(w);
    gap->fault_ns = after_ns > gap->fault_ns ? after_ns : gap->fault_ns;
}

static uint64_t failovers(const struct job_world *w)
{
    struct transport_summary sum;

    transport_summary(w->processes[0].transport, &sum);
    return sum.failovers;
}

/* The lanes that the process has, in any set. */
static uint32_t used_lanes(const struct job_world *w, const struct transport *t)
{
    uint32_t lanes = 0;
    struct watch_lane lane;

    for (uint32_t k = 0; k < t->set_count; k++) {
        for (uint32_t i = 0; t->sets[k] != NULL && i < LANE_MAX; i++) {
            watch_lane_get(t->sets[k]->watch, (struct mono){w->now}, i, &lane);
            lanes |= lane.used ? 1u << i : 0;
        }
    }
    return lanes;
}

/* After the faults the end of a lane that the sender no longer has must not be sent again and again. */
static void check_fences(struct job_world *w)
{
    const struct transport *t = w->processes[1].transport;

    world_until(w, w->now + WINDOW_NS);
    for (uint32_t k = 0; k < t->set_count; k++) {
        const struct ledger *l = t->sets[k] != NULL ? t->sets[k]->ledger : NULL;
        const uint32_t told = l != NULL ? l->fences & ~used_lanes(w, w->processes[0].transport) : 0;
        if (told != 0) {
            world_wrong(w, "the end of a lane that is no more is told for ever", "lanes %#x", told);
        }
    }
}

void gap_run(struct job_world *w)
{
    struct lane_ways lanes[2];

    world_until(w, START_NS + BEGIN_NS);
    for (uint32_t k = 0; k < w->config.gap_faults && k < JOB_GAPS_MAX; k++) {
        struct job_gap *gap = &w->result->gaps[k];
        uint64_t before = failovers(w);
        begin_window(w);
        world_until(w, w->now + WINDOW_NS);
        gap->quiet_ns = end_window(w);
        gap->left = failovers(w) != before;
        if (w->config.front) {
            lose_rails(w, k);
            continue;
        }
        if (!both_lanes(w, lanes)) {
            break;
        }
        gap->kind = (enum job_gap_kind)(k % JOB_GAP_KINDS);
        gap->lasts_ns = k / JOB_GAP_KINDS % 2 != 0 ? LONG_NS : SHORT_NS;
        before = failovers(w);
        begin_window(w);
        const int64_t end = w->now + WINDOW_NS;
        spoil(w, gap->kind, &lanes[prng_below(&w->prng, 2)]);
        world_until(w, w->now + gap->lasts_ns);
        w->net.sieve = (struct job_sieve){.count = 0};
        world_until(w, end);
        gap->fault_ns = end_window(w);
        gap->failed_over = failovers(w) != before;
        w->result->gap_count++;
    }
    check_fences(w);
}

/* Stops a process, or all of them, as if a machine stood still. */
void gap_stall(struct job_world *w)
{
    const int64_t until =
        w->now + (int64_t)(prng_exponential(&w->prng) * (double)w->config.stall_ns);
    const uint32_t one = (uint32_t)prng_below(&w->prng, w->config.hosts);

    for (uint32_t i = 0; i < w->config.hosts; i++) {
        if (w->config.stall_together || i == one) {
            w->processes[i].paused_until = until;
        }
    }
    if (!w->over) {
        gap_stall_next(w);
    }
}

void gap_stall_next(struct job_world *w)
{
    const double gap = prng_exponential(&w->prng) * (double)w->config.stall_gap_ns;

    if (w->config.stall_gap_ns > 0) {
        world_add(w, w->now + 1 + (int64_t)gap, EVENT_STALL, 0);
    }
}

void job_world_rails(struct job_world_config *ret_config, uint64_t seed)
{
    job_world_gap(ret_config, seed, true);
    ret_config->front = true;
    ret_config->nics = 3;
    ret_config->standbys = 2;
    ret_config->stall_gap_ns = 0;
    ret_config->gap_faults = 4;
}

void job_world_gap(struct job_world_config *ret_config, uint64_t seed, bool rdma)
{
    static const int64_t rates[] = {100000000, 300000000, 1000000000};
    struct prng prng, *p = &prng;

    prng_init(p, hash_u64(seed, 80));
    const int64_t rate = rates[prng_below(p, 3)];
    const bool stalls = prng_below(p, 3) != 0;
    *ret_config = (struct job_world_config){
        .seed = seed,
        .hosts = 2,
        .nics = 1,
        .leaves = 2,
        .spines = 2 + (uint32_t)prng_below(p, 3),
        .host_bps = rate,
        .trunk_bps = rate,
        .delay_ns = (5 << prng_below(p, 8)) * NS_PER_US,
        .queue_ns = 50 * NS_PER_MS,
        .pattern = JOB_HALVES,
        .comms = 1,
        .lanes = 2,
        .rdma = rdma,
        .rdma_lasts = true,
        .direct = rdma,
        .keys_last = true, /* a lane that copies makes gaps longer: that is not measured here */
        .patience_ns = 60 * NS_PER_S,
        .messages = UINT32_MAX / 2,
        .size_max = 65536,
        .whole = true,
        .depth = 2 << prng_below(p, 3),
        .chain = 1,
        .poll_ns = 100 * NS_PER_US << prng_below(p, 4),
        .rto_min_ns = 200 * NS_PER_MS,
        .stall_gap_ns = stalls ? 100 * NS_PER_MS << prng_below(p, 4) : 0,
        .stall_ns = 5 * NS_PER_MS << prng_below(p, 4),
        .stall_together = prng_below(p, 2) == 0,
        .gap_faults = 10,
        .run_ns = NS_PER_S,
    };
}
