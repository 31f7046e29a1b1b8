/* job_blame.c: is a job slow because of the network? It gathers the ranks' reports, asks core/fleet/blame.h, and writes the
 * answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/finding/finding.h"
#include "core/fleet/blame.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/job/job.h"

struct gathering {
    struct blame_book book;
    const struct fleet_host *down_host; /* of the first lane that is down */
    const struct fleet_job_flow *down;
    const char *cause; /* NULL: no open incident fits */
};

static void gather_flow(struct gathering *g, const struct fleet_host *h,
                        const struct fleet_job_flow *f)
{
    const struct blame_flow flow = {.sending = f->sending,
                                    .active = strcmp(f->state, "active") == 0,
                                    .down = strcmp(f->state, "down") == 0 ||
                                            strcmp(f->state, "suspect") == 0,
                                    .network_ns = f->owd_p50_ns,
                                    .floor_ns = f->owd_floor_ns,
                                    .sender_ns = f->queued_p50_ns,
                                    .receiver_ns = f->consumed_p50_ns};

    if (blame_on_flow(&g->book, &flow)) {
        g->down = f;
        g->down_host = h;
    }
}

static void gather(const struct controller *c, const struct fleet_job *job, struct gathering *g)
{
    const struct mono now = controller_mono();

    blame_begin(&g->book, job->ranks, job->faults,
                span_ns(controller_utc_ns() - job->fault_last_ns));
    for (uint32_t i = 0; i < job->host_count; i++) {
        const struct fleet_host *h = c->hosts[job->host_list[i]];
        for (uint32_t k = 0; k < h->job_count; k++) {
            const struct fleet_job_process *p = &h->jobs[k];
            const bool lives = p->state == FOLIOT__V1__JOB_STATE__JOB_RUNNING ||
                               p->state == FOLIOT__V1__JOB_STATE__JOB_IDLE ||
                               p->state == FOLIOT__V1__JOB_STATE__JOB_PARTED;
            if (!lives || job_of(c, h, p) != job || !h->member || !fleet_current(c, h, now)) {
                continue;
            }
            blame_on_rank(&g->book, p->state == FOLIOT__V1__JOB_STATE__JOB_PARTED);
            for (uint32_t f = 0; f < p->flow_count; f++) {
                gather_flow(g, h, &p->flows[f]);
            }
        }
    }
}

static void say_broken(const struct gathering *g, char *to, size_t size)
{
    const struct blame_signals *s = &g->book.signals;
    const struct fleet_job_flow *f = g->down;

    if (s->ranks_parted > 0) {
        snprintf(to, size, "the network: %u of its ranks have no path left to a peer",
                 s->ranks_parted);
        return;
    }
    if (g->cause != NULL) {
        snprintf(to, size,
                 "the network: some of its lanes are down, and others carry their traffic; open "
                 "incident: %s",
                 g->cause);
        return;
    }
    snprintf(to, size,
             "the network: some of its lanes are down, and others carry their traffic; one of the "
             "lanes: %s/%s -> %s/%s%s%s",
             g->down_host->name, f->own_nic, f->peer_host, f->peer_nic,
             f->reason[0] != 0 ? ": " : "", f->reason);
}

static void say_hurt(const struct gathering *g, const struct fleet_job *job, char *to, size_t size)
{
    char first[40], last[40];

    finding_time_text(job->fault_first_ns, first, sizeof(first));
    finding_time_text(job->fault_last_ns, last, sizeof(last));
    snprintf(to, size,
             "the network: lanes failed %u times from %s UTC to %s UTC; none is down now, and "
             "lanes with "
             "a dead path use another path; %s%s",
             g->book.signals.faults, first, last,
             g->cause != NULL ? "open incident: " : "see the alerts of that time",
             g->cause != NULL ? g->cause : "");
}

static void say(const struct gathering *g, const struct fleet_job *job, enum blame blame, char *to,
                size_t size)
{
    const struct blame_signals *s = &g->book.signals;
    const double us = 1e-3;

    switch (blame) {
    case BLAME_BROKEN:
        say_broken(g, to, size);
        break;
    case BLAME_HURT:
        say_hurt(g, job, to, size);
        break;
    case BLAME_LOADED:
        snprintf(to, size,
                 "the network, because it is loaded: no lane is down, but messages of its slowest "
                 "flows wait %.0f us in the network, %.0f us at senders, %.0f us at receivers "
                 "(medians): its links are full of its own traffic or of other traffic",
                 (double)(s->network_ns - s->floor_ns) * us, (double)s->sender_ns * us,
                 (double)s->receiver_ns * us);
        break;
    case BLAME_NOT:
        snprintf(to, size,
                 "not the network: no lane is down, and messages of its slowest flows take %.0f us "
                 "in the network, %.0f us at senders, %.0f us at receivers (medians)",
                 (double)s->network_ns * us, (double)s->sender_ns * us,
                 (double)s->receiver_ns * us);
        break;
    case BLAME_UNTIMED:
        snprintf(to, size,
                 "not known: no lane is down, but no flow's delay is known: there is too little "
                 "traffic, or clocks aren't synchronised");
        break;
    case BLAME_UNHEARD:
        if (s->ranks_heard == 0) {
            snprintf(to, size, "not known: none of its ranks reports now");
        } else {
            snprintf(to, size, "not known: only %u of its %u ranks report, and these are well",
                     s->ranks_heard, s->ranks);
        }
        break;
    }
}

void job_put_blame(const struct controller *c, struct json_writer *j, const struct fleet_job *job,
                   const char *cause)
{
    struct gathering *g = calloc(1, sizeof(*g));
    enum blame blame = BLAME_UNHEARD;
    char text[460] = "not known: out of memory";

    if (g != NULL) {
        gather(c, job, g);
        g->cause = cause;
        blame = blame_end(&g->book);
        say(g, job, blame, text, sizeof(text));
        free(g);
    }
    json_put_object(j, "network");
    json_put_string(j, "answer", blame_answer(blame));
    json_put_string(j, "why", blame_word(blame));
    json_put_string(j, "sentence", text);
    json_put_end(j);
}
