/* job_world.c: the agenda of simulated jobs, and a run from beginning to end. */
#include "sim/job_world.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job_private.h"

#define RUN_GAP_NS  (2 * NS_PER_US) /* a process does only one thing at a time */
#define QUIET_NS    (3 * NS_PER_S)
#define BUFFER_LOG2 20
#define BURST_NS    (260 * NS_PER_US) /* of one packet on a trunk, as with segmentation offload */
#define BURST_MAX   32768
#define BURST_MIN   1448

/* -- helpers ---------------------------------------------------------------------------------- */

void world_add(struct job_world *w, int64_t at, enum event_kind kind, uint32_t subject)
{
    agenda_add(&w->agenda, at, kind, subject);
}

void world_wrong(struct job_world *w, const char *wrong, const char *format, ...)
{
    va_list arguments;

    if (w->result->wrong != NULL) {
        return; /* the first error is the cause */
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
        if (w->hurry > 0) { /* while there is a fault, the job rests only shortly */
            w->hurry--;
            world_add(w, w->now + (NS_PER_MS << (2 * (8 - w->hurry))), EVENT_STEP, 0);
        }
    }
}

/* A fault must come while messages are under way, so a step begins just before. */
void world_fault_step(struct job_world *w)
{
    w->hurry = 8;
    if (w->step_began + 20 * NS_PER_US < w->now) {
        next_step(w);
    }
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
        r = process_start(w, i);
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
        process_run(w, &w->processes[item->subject]);
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

/* Called after every event: the first process that wasn't at rest is checked first. */
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
        process_end(w, &w->processes[i]);
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

/* Advances time, even if no event happens. */
void world_until(struct job_world *w, int64_t until)
{
    run_until(w, until, NULL);
    w->now = w->now < until ? until : w->now;
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

/* Runs until all communicators are closed. The time needed depends on rates, so only a job that stands still is stuck. */
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
        processes_forget(w);
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
    processes_read(w);
    fault_heal_all(w);
    for (uint32_t i = 0; i < config->hosts; i++) {
        world_wake(w, &w->processes[i], w->now);
    }
    if (config->step_ns != 0) { /* the last step, unless it is the first */
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
