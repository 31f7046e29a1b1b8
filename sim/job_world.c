/* job_world.c: the agenda of simulated jobs, their processes, and a run from beginning to end. */
#include "sim/job_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job_private.h"

#define RUN_GAP_NS  (2 * NS_PER_US) /* a process does no two things at once */
#define QUIET_NS    (3 * NS_PER_S)
#define BUFFER_LOG2 20
#define BURST_NS                                                                                   \
    (260 * NS_PER_US) /* of a link between switches, in one packet: as segmentation offload does */
#define BURST_MAX 32768
#define BURST_MIN 1448
#define FILES     60000

/* -- small things ----------------------------------------------------------------------------- */

void world_add(struct job_world *w, int64_t at, enum event_kind kind, uint32_t subject)
{
    agenda_add(&w->agenda, at, kind, subject);
}

void world_wrong(struct job_world *w, const char *wrong, const char *format, ...)
{
    va_list arguments;

    if (w->result->wrong != NULL) {
        return; /* the first is the cause */
    }
    w->result->wrong = wrong;
    const int n = snprintf(w->result->detail, sizeof(w->result->detail),
                           "at %.6f s: ", (double)(w->now - START_NS) / 1e9);
    va_start(arguments, format);
    vsnprintf(w->result->detail + n, sizeof(w->result->detail) - (size_t)n, format, arguments);
    va_end(arguments);
}

void world_trace(struct job_world *w, uint64_t a, uint64_t b)
{
    w->result->trace = hash_u64(w->result->trace ^ a, b ^ (uint64_t)w->now);
}

static int64_t starve(struct process *p)
{
    const uint64_t k = prng_below(&p->prng, 1000);

    return k < 900   ? (int64_t)prng_below(&p->prng, 100 * NS_PER_US)
           : k < 998 ? (int64_t)prng_below(&p->prng, 50 * NS_PER_MS)
                     : (int64_t)prng_below(&p->prng, 700 * NS_PER_MS);
}

void world_wake(struct job_world *w, struct process *p, int64_t at)
{
    at = at < p->ran_at + RUN_GAP_NS ? p->ran_at + RUN_GAP_NS : at;
    if (p->killed || at >= p->wake) {
        return;
    }
    p->wake = at;
    world_add(w, at, EVENT_RUN, p->index);
}

/* -- steps ------------------------------------------------------------------------------------ */

static void next_step(struct job_world *w)
{
    if (w->calm || w->stepped < w->flow_count * (w->step > 0) || w->step >= w->config.messages) {
        return;
    }
    w->step++;
    w->stepped = 0;
    w->step_began = w->now;
    for (uint32_t i = 0; i < w->config.hosts; i++) {
        world_wake(w, &w->processes[i], w->now + (int64_t)prng_below(&w->prng, 100 * NS_PER_US));
    }
}

static bool step_over(struct job_world *w)
{
    return w->stepped == w->flow_count;
}

void world_stepped(struct job_world *w)
{
    if (++w->stepped == w->flow_count) {
        const int64_t took = w->now - w->step_began;
        w->steady = true;
        w->result->steps++;
        w->result->steps_ns += took;
        w->result->step_ns_max = took > w->result->step_ns_max ? took : w->result->step_ns_max;
        if (w->hurry > 0) { /* while something is wrong, the job doesn't rest for long */
            w->hurry--;
            world_add(w, w->now + (NS_PER_MS << (2 * (8 - w->hurry))), EVENT_STEP, 0);
        }
    }
}

/* A fault comes while messages are under way: a step began just before. */
void world_fault_step(struct job_world *w)
{
    w->hurry = 8;
    if (w->step_began + 20 * NS_PER_US < w->now) {
        next_step(w);
    }
}

/* -- processes -------------------------------------------------------------------------------- */

static void say_line(void *context, enum transport_level level, const char *text)
{
    const struct process *p = context;

    p->world->result->repaths += strstr(text, "is contended") != NULL;
    p->world->result->garbled +=
        strstr(text, "down (damaged)") != NULL || strstr(text, "down (protocol)") != NULL;
    if (p->world->config.say) {
        fprintf(stderr, "%12.6f %u: [%d] %s\n", (double)(p->world->now - START_NS) / 1e9, p->index,
                level, text);
    }
}

static bool has_rdma(const struct job_world *w, uint32_t index)
{
    return w->config.rdma && (w->config.no_rdma_every == 0 ||
                              index % w->config.no_rdma_every != w->config.no_rdma_every - 1);
}

static int start_process(struct job_world *w, uint32_t index)
{
    struct process *p = &w->processes[index];
    const bool old = w->config.old_every != 0 && index % w->config.old_every == 0;
    struct transport_nic nics[JOB_NIC_MAX];
    struct transport_config config = {
        .io = &p->io,
        .rdma = has_rdma(w, index) ? &p->rdma : NULL,
        .direct = w->config.direct,
        .nics = nics,
        .nic_count = w->config.nics,
        .mode = w->config.failover_only ? TRANSPORT_FAILOVER : TRANSPORT_FULL,
        .lanes = w->config.lanes,
        .standbys = w->config.standbys,
        .sockets = w->config.sockets,
        .no_credit = w->config.no_credit,
        .no_repath = w->config.no_repath,
        .priority = pattern_low(w, index) ? PRIORITY_LOW : PRIORITY_NORMAL,
        .patience = span_ns(w->config.patience_ns),
        .checksum = w->config.checksum,
        .fenced = w->config.fenced,
        .version = old ? LANE_VERSION - 1 : 0,
        .say = say_line,
        .say_context = p,
    };

    p->world = w;
    p->index = index;
    p->wake = INT64_MAX;
    p->ran_at = INT64_MIN / 2;
    p->listener = -1;
    p->file_max = FILES;
    p->fleet_half = 1000;
    prng_init(&p->prng, hash_u64(w->config.seed, index));
    if (w->config.skewed) {
        p->raw_offset = (int64_t)prng_below(&p->prng, 1000000) * NS_PER_S;
        p->raw_ppb = (int64_t)prng_below(&p->prng, 100000) - 50000;
        p->fleet_half = prng_below(&p->prng, 4) == 0 ? IO_HALF_UNKNOWN : 1000;
        p->fleet_offset = (int64_t)prng_u64(&p->prng) >> 8;
        p->fleet_error = (int64_t)prng_below(&p->prng, 2000) - 1000;
    }
    process_io(p);
    process_rdma(p);
    for (uint32_t i = 0; i < w->config.nics; i++) {
        nics[i] = (struct transport_nic){
            .address = job_net_address(&w->net, index / pattern_sharing(w) * w->config.nics + i),
            .bind_device = true};
        snprintf(nics[i].name, sizeof(nics[i].name), "nic%u", i);
    }
    return transport_new(&p->transport, &config);
}

static void add_up(struct job_world *w, struct process *p)
{
    struct transport_summary sum;

    transport_summary(p->transport, &sum);
    w->result->resent += sum.resent;
    w->result->failovers += sum.failovers;
    w->result->parted += sum.parted;
}

/* In-band delays as the receivers saw them, all lanes alike. */
static void read_delays(struct job_world *w)
{
    struct {
        struct histogram head;
        uint16_t counters[HISTOGRAM_BUCKETS(3, 24)];
    } all;

    histogram_init(&all.head, SPREAD_SHAPE);
    for (uint32_t i = 0; i < w->config.hosts; i++) {
        const struct transport *t = w->processes[i].transport;
        for (uint32_t k = 0; t != NULL && k < t->set_count; k++) {
            for (uint32_t lane = 0; t->sets[k] != NULL && lane < LANE_MAX; lane++) {
                const struct lane_spread *spread = t->sets[k]->delays[lane].spread;
                if (spread != NULL) {
                    histogram_merge(&all.head, &spread->stages[STAGE_OWD].head);
                }
            }
        }
        for (uint32_t k = 0; t != NULL && k < w->config.nics; k++) {
            w->result->credits += t->nics[k].credit.begins;
            w->result->credit_harms += t->nics[k].credit.harms;
            w->result->limited += t->nics[k].credit.window > 0;
        }
    }
    w->result->owd_ns_p50 = histogram_quantile(&all.head, 0.5);
    w->result->owd_ns_p99 = histogram_quantile(&all.head, 0.99);
    w->result->owd_ns_p50 *= w->result->owd_ns_p50 > 0 ? SPREAD_UNIT_NS : 1;
    w->result->owd_ns_p99 *= w->result->owd_ns_p99 > 0 ? SPREAD_UNIT_NS : 1;
    w->result->chaos_bytes = w->result->bytes - w->warm_bytes;
}

static void forget_delays(struct job_world *w)
{
    for (uint32_t i = 0; i < w->config.hosts; i++) {
        const struct transport *t = w->processes[i].transport;
        for (uint32_t k = 0; t != NULL && k < t->set_count; k++) {
            for (uint32_t lane = 0; t->sets[k] != NULL && lane < LANE_MAX; lane++) {
                struct lane_spread *spread = t->sets[k]->delays[lane].spread;
                if (spread != NULL) {
                    histogram_init(&spread->stages[STAGE_OWD].head, SPREAD_SHAPE);
                }
            }
        }
    }
    w->warm_bytes = w->result->bytes;
    w->result->low_bytes = 0;
}

static void run_process(struct job_world *w, struct process *p)
{
    if (p->killed || p->wake != w->now) {
        return; /* it ran earlier, and found nothing to be done now */
    }
    p->wake = INT64_MAX;
    if (p->paused_until > w->now) {
        world_wake(w, p, p->paused_until);
        return;
    }
    p->ran_at = w->now;
    w->result->runs++;
    int64_t next = rank_run(w, p);
    struct mono deadline = transport_serve(p->transport, (struct mono){0});
    if (deadline.ns != INT64_MAX) {
        const int64_t at =
            deadline.ns <= process_raw(p, w->now) ? w->now : process_true(p, deadline.ns);
        next = at < next ? at : next;
    }
    if (p->ready_count > 0 || (p->listener_armed && p->backlog_count > 0)) {
        next = w->now;
    }
    w->result->sockets_max = p->transport->sockets > w->result->sockets_max
                                 ? p->transport->sockets
                                 : w->result->sockets_max;
    int64_t late = w->config.starved ? starve(p) : 0;
    if (next != INT64_MAX) {
        world_wake(w, p, (next > w->now ? next : w->now) + late);
    }
}

void process_kill(struct job_world *w, struct process *p)
{
    add_up(w, p);
    for (uint32_t i = 0; i < p->file_count; i++) {
        if (p->files[i].used && p->files[i].conn != SIM_CONN_NONE) {
            sim_close(w, p->files[i].conn, p->files[i].end, true);
        }
    }
    for (uint32_t i = 0; i < p->backlog_count; i++) {
        tcp_conn(w, p->backlog[i])->ends[1].backlogged = false;
        sim_close(w, p->backlog[i], 1, true);
    }
    p->backlog_count = 0;
    p->killed = true;
    sim_pairs_kill(w, p->index);
    rank_killed(w, p->index); /* its memory goes, too: that is no part of the world */
    if (transport_free(p->transport) != TRANSPORT_GONE) {
        world_wrong(w, "memory of a closed transport is in use", "process %u", p->index);
    }
    p->transport = NULL;
}

static void end_process(struct job_world *w, struct process *p)
{
    if (p->transport != NULL) {
        for (uint32_t i = 0; i < p->transport->set_count; i++) {
            if (p->transport->sets[i] != NULL && w->result->wrong == NULL &&
                w->config.step_ns == 0) {
                world_wrong(w, "a set is left after all was closed", "process %u", p->index);
            }
        }
        add_up(w, p);
        p->killed = true; /* it can't be heard any more */
        if (transport_free(p->transport) != TRANSPORT_GONE && w->result->wrong == NULL) {
            world_wrong(w, "memory of a closed transport is in use", "process %u", p->index);
        }
        if (p->pairs > 0 && w->result->wrong == NULL) {
            world_wrong(w, "queue pairs are left after all was closed", "process %u: %u", p->index,
                        p->pairs);
        }
        if (p->file_used > 0 && w->result->wrong == NULL) {
            world_wrong(w, "descriptors are left after all was closed", "process %u: %u", p->index,
                        p->file_used);
        }
    }
    free(p->files);
    free(p->backlog);
    free(p->ready);
    free(p->flows);
}

/* -- the run ---------------------------------------------------------------------------------- */

static int begin(struct job_world *w)
{
    const struct job_net_config net = {.hosts = w->config.hosts / pattern_sharing(w),
                                       .nics = w->config.nics,
                                       .leaves = w->config.leaves,
                                       .spines = w->config.spines,
                                       .host_bps = w->config.host_bps,
                                       .trunk_bps = w->config.trunk_bps,
                                       .delay_ns = w->config.delay_ns,
                                       .queue_ns = w->config.queue_ns};
    int r = job_net_init(&w->net, &net, hash_u64(w->config.seed, 1));

    w->processes = calloc(w->config.hosts, sizeof(*w->processes));
    w->pairs = calloc(JOB_PAIRS_MAX, sizeof(struct pair *));
    w->pair_free = calloc(JOB_PAIRS_MAX, sizeof(*w->pair_free));
    r = w->processes == NULL || w->pairs == NULL || w->pair_free == NULL ? -ENOMEM : r;
    for (uint32_t i = 0; r == 0 && i < w->config.hosts; i++) {
        r = start_process(w, i);
    }
    r = r == 0 ? rank_start(w) : r;
    r = r == 0 ? fault_begin(w) : r;
    gap_stall_next(w);
    for (uint32_t i = 0; i < w->config.hosts; i++) {
        world_wake(w, &w->processes[i], w->now + (int64_t)prng_below(&w->prng, NS_PER_MS));
    }
    if (w->config.last_ns > 0) {
        world_add(w, w->now + w->config.last_ns, EVENT_LAST, 0);
    }
    if (w->config.step_ns > 0) {
        world_add(w, w->now + w->config.step_ns, EVENT_STEP, 1);
    }
    return r;
}

static void happen(struct job_world *w, const struct agenda_item *item)
{
    struct process *p;

    switch ((enum event_kind)item->kind) {
    case EVENT_RUN:
        run_process(w, &w->processes[item->subject]);
        break;
    case EVENT_PACKET:
        sim_packet(w, item->subject);
        break;
    case EVENT_TIMER:
        sim_timer(w, item->subject);
        break;
    case EVENT_FAULT:
        fault_next(w);
        break;
    case EVENT_HEAL:
        fault_heal(w, item->subject);
        break;
    case EVENT_CARRIER:
        for (uint32_t i = 0; i < pattern_sharing(w); i++) {
            p = &w->processes[item->subject * pattern_sharing(w) + i];
            p->links_changed = true;
            world_wake(w, p, w->now);
        }
        break;
    case EVENT_PAIR:
        sim_pair(w, item->subject);
        break;
    case EVENT_PAIR_PACKET:
        sim_pair_packet(w, item->subject);
        break;
    case EVENT_LAST:
        fault_last(w);
        break;
    case EVENT_STALL:
        gap_stall(w);
        break;
    case EVENT_STEP:
        next_step(w);
        if (item->subject != 0) {
            world_add(w, w->now + w->config.step_ns, EVENT_STEP, 1);
        }
        break;
    }
}

static void run_until(struct job_world *w, int64_t until, bool (*enough)(struct job_world *))
{
    struct agenda_item item;

    while (w->result->wrong == NULL && w->agenda.count > 0 && w->agenda.items[0].at <= until &&
           (enough == NULL || !enough(w)) && agenda_next(&w->agenda, &item)) {
        w->now = item.at;
        happen(w, &item);
    }
}

/* Asked after every event: whoever wasn't at rest is asked first. */
static bool at_rest(struct job_world *w)
{
    for (; w->rested < w->config.hosts; w->rested++) {
        const struct transport *t = w->processes[w->rested].transport;
        for (uint32_t k = 0; t != NULL && k < t->set_count; k++) {
            if (t->sets[k] != NULL) {
                return false;
            }
        }
    }
    return true;
}

static void finish(struct job_world *w)
{
    const struct job_world_config *c = &w->config;

    run_until(w, w->now + 2 * c->patience_ns + 2 * QUIET_NS, at_rest);
    for (uint32_t i = 0; i < c->hosts; i++) {
        end_process(w, &w->processes[i]);
    }
    rank_done(w);
    w->result->virtual_ns = w->now - START_NS;
    w->result->packets = w->net.packets;
    w->result->lost = w->net.lost;
    w->result->damaged = w->net.damaged;
    for (uint32_t i = 0; i < w->conn_count; i++) {
        free(w->conns[i]->ends[0].ring);
        free(w->conns[i]->ends[1].ring);
        free(w->conns[i]);
    }
    free(w->conns);
    free(w->conn_free);
    free(w->packets);
    free(w->packet_free);
    sim_pairs_done(w);
    free(w->slots);
    free(w->processes);
    agenda_done(&w->agenda);
    job_net_done(&w->net);
}

void world_until(struct job_world *w, int64_t until)
{
    run_until(w, until, NULL);
}

static void run_brown(struct job_world *w)
{
    const int64_t end = START_NS + w->config.run_ns;

    run_until(w, START_NS + w->config.brown_ns / 2, NULL);
    if (brown_warm(w) < 0) {
        world_wrong(w, "the world can't go on", "no memory");
        return;
    }
    run_until(w, START_NS + w->config.brown_ns, NULL);
    brown_begin(w);
    for (int64_t at = START_NS + w->config.brown_ns + BROWN_WINDOW_NS; at <= end;
         at += BROWN_WINDOW_NS) {
        run_until(w, at, NULL);
        brown_look(w);
    }
    brown_end(w);
}

/* Until all communicators are closed. How long that takes is a question of rates: only a job that stands is stuck. */
static void run_out(struct job_world *w)
{
    uint64_t before;

    do {
        before = w->result->messages + w->result->comms;
        run_until(w, w->now + 2 * w->config.patience_ns, rank_over);
    } while (!rank_over(w) && w->result->wrong == NULL &&
             w->result->messages + w->result->comms > before);
}

static uint32_t burst_of(const struct job_world_config *config)
{
    const int64_t bytes = config->trunk_bps / 8 * BURST_NS / NS_PER_S;

    return bytes < BURST_MIN ? BURST_MIN : bytes < BURST_MAX ? (uint32_t)bytes : BURST_MAX;
}

void job_world_run(const struct job_world_config *config, struct job_world_result *ret_result)
{
    struct job_world world = {.config = *config, .result = ret_result, .now = START_NS},
                     *w = &world;

    w->config.rdma = config->rdma || getenv("FOLIOT_SIM_QUEUE_PAIRS") != NULL;
    *ret_result = (struct job_world_result){.trace = config->seed};
    w->buffer_bytes = 1u << (config->buffer_log2 != 0 ? config->buffer_log2 : BUFFER_LOG2);
    w->burst_bytes = burst_of(config);
    agenda_init(&w->agenda);
    prng_init(&w->prng, config->seed);
    if (begin(w) < 0) {
        world_wrong(w, "the world can't begin", "no memory, or bad numbers");
    }
    if (config->warm_ns > 0) {
        run_until(w, START_NS + config->warm_ns, NULL);
        forget_delays(w);
    }
    if (config->brown_ns > 0) {
        run_brown(w);
    }
    if (config->slow_nic > 0) {
        slow_run(w);
    }
    if (config->gap_faults > 0) {
        gap_run(w);
        w->config.run_ns = w->now - START_NS;
    }
    run_until(w, START_NS + w->config.run_ns, NULL);
    w->over = true;
    w->now = START_NS + w->config.run_ns;
    read_delays(w);
    fault_heal_all(w);
    for (uint32_t i = 0; i < config->hosts; i++) {
        world_wake(w, &w->processes[i], w->now);
    }
    if (config->step_ns != 0) { /* the last one, if it isn't the first */
        w->calm = w->step > 0;
        next_step(w);
        w->calm = true;
        run_until(w, w->now + 2 * config->patience_ns, step_over);
        w->config.messages = step_over(w) ? w->step : w->config.messages;
        for (uint32_t i = 0; i < config->hosts; i++) {
            world_wake(w, &w->processes[i], w->now);
        }
    }
    if (config->chain != 0 || config->operation != 0) {
        rank_last(w);
    }
    run_out(w);
    if (!rank_over(w)) {
        rank_stuck(w);
    }
    finish(w);
}

/* -- late receivers --------------------------------------------------------------------------- */

void job_world_late(struct job_world_config *ret_config, uint64_t seed)
{
    struct prng prng, *p = &prng;

    prng_init(p, hash_u64(seed, 78));
    const bool faults = prng_below(p, 4) == 0;
    const int64_t patience = (faults ? 4 : 1) * NS_PER_S; /* a lost SYN goes again after a second */
    *ret_config = (struct job_world_config){
        .seed = seed,
        .hosts = 2 + (uint32_t)prng_below(p, 2),
        .nics = 1 + (uint32_t)prng_below(p, 2),
        .leaves = 2,
        .spines = 2,
        .host_bps = 10000000000LL,
        .trunk_bps = 10000000000LL,
        .delay_ns = 5 * NS_PER_US,
        .pattern = JOB_INCAST,
        .comms = 1 + (uint32_t)prng_below(p, 4),
        .lanes = 1 + (uint32_t)prng_below(p, 4),
        .old_every = prng_below(p, 4) == 0 ? 2 : 0,
        .checksum = prng_below(p, 2) == 0,
        .patience_ns = patience,
        .messages = 1 + (uint32_t)prng_below(p, 32),
        .size_max = prng_below(p, 2) == 0 ? 8 : 8192,
        .whole = prng_below(p, 2) == 0,
        .depth = 1 + (uint32_t)prng_below(p, 16),
        .poll_ns = 20 * NS_PER_MS,
        .buffer_log2 = 15 + (uint32_t)prng_below(p, 2) * 2,
        .fault_gap_ns = faults ? 100 * NS_PER_MS : 0,
        .fault_ns = 20 * NS_PER_MS,
        .fault_mask = 1u << JOB_FAULT_RESET | 1u << JOB_FAULT_LOSS | 1u << JOB_FAULT_TRUNK_HOLE |
                      1u << JOB_FAULT_STRANGER,
        .run_ns = 3 * patience,
        .rto_min_ns = 5 * NS_PER_MS,
        .late_ns = patience + patience / 2 + (int64_t)prng_below(p, NS_PER_S),
        .freeze_ns = prng_below(p, 2) == 0 ? 0 : patience + patience / 4,
        .drowsy_ns = prng_below(p, 2) == 0 ? 0 : patience / 2,
    };
}

/* -- what anybody may try --------------------------------------------------------------------- */

void job_world_chance(struct job_world_config *ret_config, uint64_t seed)
{
    struct prng prng, *p = &prng;
    const uint64_t chaos = (1ull << JOB_FAULT_KILL) - 1;
    static const int64_t gaps[] = {1, 2, 5, 10, 20}; /* ms */

    prng_init(p, hash_u64(seed, 77));
    *ret_config = (struct job_world_config){
        .seed = seed,
        .hosts = 2 + (uint32_t)prng_below(p, 3),
        .nics = 1 + (uint32_t)prng_below(p, 4),
        .leaves = 2,
        .spines = 2 + (uint32_t)prng_below(p, 3),
        .host_bps = 2000000000LL << prng_below(p, 4),
        .trunk_bps = 2000000000LL << prng_below(p, 3),
        .delay_ns = NS_PER_US << prng_below(p, 6),
        .pattern = prng_below(p, 2) == 0 ? JOB_PAIRS : JOB_RING,
        .comms = 1 + (uint32_t)prng_below(p, 3),
        .lanes = 1 + (uint32_t)prng_below(p, 4),
        .standbys = (uint32_t)prng_below(p, 3),
        .failover_only = prng_below(p, 4) == 0,
        .old_every = prng_below(p, 3) == 0 ? 2 : 0,
        .fenced = seed % 4 == 3,
        .checksum = true,
        .patience_ns = 20 * NS_PER_S,
        .messages = 1 + (uint32_t)prng_below(p, 200),
        .size_max = 1u << (12 + prng_below(p, 8)),
        .depth = 1 + (uint32_t)prng_below(p, 8),
        .gap_ns = 200 * NS_PER_US << prng_below(p, 7),
        .poll_ns = prng_below(p, 4) == 0 ? 20 * NS_PER_MS : 100 * NS_PER_US << prng_below(p, 4),
        .fault_gap_ns = gaps[prng_below(p, 5)] * NS_PER_MS,
        .fault_ns = 10 * NS_PER_MS << prng_below(p, 7),
        .fault_mask = prng_below(p, 3) == 0 ? chaos : chaos & prng_u64(p),
        .run_ns = 4 * NS_PER_S,
        .rto_min_ns = prng_below(p, 2) == 0 ? 5 * NS_PER_MS : 200 * NS_PER_MS,
        .carrier_late_ns = prng_below(p, 2) == 0 ? 0 : NS_PER_S,
        .carrier_unknown = prng_below(p, 8) == 0,
        .starved = prng_below(p, 6) == 0,
        .skewed = prng_below(p, 2) == 0,
    };
    ret_config->fault_mask = ret_config->fault_mask == 0 ? chaos : ret_config->fault_mask;
    if (prng_below(p, 8) == 0) {
        ret_config->last = prng_below(p, 2) == 0 ? JOB_FAULT_KILL : JOB_FAULT_PART;
        ret_config->last_ns = 3 * NS_PER_S;
    }
}
