/* job_process.c: the processes of simulated jobs: each with a transport and an application, run when it is time. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job_private.h"

#define FILES 60000

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

int process_start(struct job_world *w, uint32_t index)
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
        .large_early = w->config.large_early,
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

/* In-band delays as receivers measured them, over all lanes. */
void processes_read(struct job_world *w)
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

void processes_forget(struct job_world *w)
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

static int64_t starve(struct process *p)
{
    const uint64_t k = prng_below(&p->prng, 1000);

    return k < 900   ? (int64_t)prng_below(&p->prng, 100 * NS_PER_US)
           : k < 998 ? (int64_t)prng_below(&p->prng, 50 * NS_PER_MS)
                     : (int64_t)prng_below(&p->prng, 700 * NS_PER_MS);
}

void process_run(struct job_world *w, struct process *p)
{
    if (p->killed || p->wake != w->now) {
        return; /* it ran earlier, and has nothing to do now */
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
    rank_killed(w, p->index); /* its memory goes, too; that is not part of the world */
    if (transport_free(p->transport) != TRANSPORT_GONE) {
        world_wrong(w, "memory of a closed transport is in use", "process %u", p->index);
    }
    p->transport = NULL;
}

void process_end(struct job_world *w, struct process *p)
{
    if (p->transport != NULL) {
        for (uint32_t i = 0; i < p->transport->set_count; i++) {
            if (p->transport->sets[i] != NULL && w->result->wrong == NULL &&
                w->config.step_ns == 0) {
                world_wrong(w, "a set is left after all was closed", "process %u", p->index);
            }
        }
        add_up(w, p);
        p->killed = true; /* it gets no more events */
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
