/* report_jobs.c: what the pages of jobs on this host contain, for the controller. */
#include <errno.h>
#include <foliot.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/message/message.h"
#include "service/agent/agent.h"

#define PROCESS_MAX 64
#define FLOW_MAX    8
#define ILL_MAX     4 /* of the flows: at most this many sending lanes that are down or suspect */

static char *copy_text(struct message_arena *arena, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = message_arena_take(arena, size);

    if (copy == NULL) {
        return (char *)(uintptr_t)protobuf_c_empty_string;
    }
    memcpy(copy, text, size);
    return copy;
}

static uint32_t or_0(uint32_t ns)
{
    return ns == JOB_PAGE_NS_NONE ? 0 : ns;
}

/* ---- flows ---- */

static int64_t above_floor(const struct job_page_lane *lane)
{
    return lane->sending || lane->owd_ns_p99 == JOB_PAGE_NS_NONE
               ? -1
               : (int64_t)lane->owd_ns_p99 - lane->owd_ns_floor;
}

static bool ill(const struct job_page_lane *lane)
{
    return lane->sending && (lane->state == LANE_DOWN || lane->state == LANE_SUSPECT);
}

/* Chooses the worst few lanes, by index. */
static uint32_t choose(const struct job_process *p, uint32_t chosen[FLOW_MAX])
{
    uint32_t count = 0, ill_count = 0;

    for (uint32_t i = 0; i < p->lane_count && ill_count < ILL_MAX; i++) {
        if (ill(&p->lanes[i].page)) {
            chosen[count++] = i;
            ill_count++;
        }
    }
    for (uint32_t i = 0; i < p->lane_count; i++) {
        const int64_t ns = above_floor(&p->lanes[i].page);
        uint32_t at = count;
        if (ns < 0) {
            continue;
        }
        while (at > ill_count && above_floor(&p->lanes[chosen[at - 1]].page) < ns) {
            if (at < FLOW_MAX) {
                chosen[at] = chosen[at - 1];
            }
            at--;
        }
        if (at < FLOW_MAX) {
            chosen[at] = i;
            count += count < FLOW_MAX;
        }
    }
    return count;
}

static Foliot__V1__JobFlow *make_flow(struct message_arena *arena, const struct job_lane *l)
{
    Foliot__V1__JobFlow *f = message_arena_take(arena, sizeof(*f));
    const struct job_page_lane *lane = &l->page;

    if (f == NULL) {
        return NULL;
    }
    foliot__v1__job_flow__init(f);
    f->peer_host = copy_text(arena, lane->peer_host);
    f->peer_pid = lane->peer_pid;
    f->own_nic = copy_text(arena, lane->own_nic);
    f->peer_nic = copy_text(arena, lane->peer_nic);
    f->lane = lane->lane;
    f->sending = lane->sending != 0;
    f->state = copy_text(arena, lane_state_name((enum lane_state)lane->state));
    f->reason = copy_text(arena, lane->reason != LANE_REASON_NONE
                                     ? lane_reason_name((enum lane_reason)lane->reason)
                                     : "");
    f->rate_bps = l->rate_bps;
    if (!lane->sending) {
        f->owd_p50_ns = or_0(lane->owd_ns_p50);
        f->owd_p99_ns = or_0(lane->owd_ns_p99);
        f->owd_floor_ns = or_0(lane->owd_ns_floor);
        f->queued_p50_ns = or_0(lane->queued_ns_p50);
        f->consumed_p50_ns = or_0(lane->consumed_ns_p50);
        f->bound_ns = or_0(lane->bound_ns);
    }
    return f;
}

static int by_ns(const void *x, const void *y)
{
    const uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

    return (a > b) - (a < b);
}

static uint32_t median_p50(const struct job_process *p)
{
    static uint32_t values[JOB_PAGE_LANES_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->lane_count && count < JOB_PAGE_LANES_MAX; i++) {
        const struct job_page_lane *lane = &p->lanes[i].page;
        if (!lane->sending && lane->owd_ns_p50 != JOB_PAGE_NS_NONE) {
            values[count++] = lane->owd_ns_p50;
        }
    }
    if (count == 0) {
        return 0;
    }
    qsort(values, count, sizeof(values[0]), by_ns);
    return values[count / 2];
}

/* ---- processes ---- */

static void count_lanes(const struct job_process *p, Foliot__V1__JobProcess *m)
{
    uint32_t peers[2] = {0, 0};

    for (uint32_t i = 0; i < p->lane_count; i++) {
        const struct job_page_lane *lane = &p->lanes[i].page;
        const struct job_page_lane *before = i > 0 ? &p->lanes[i - 1].page : NULL;
        m->lanes_usable += lane->state == LANE_ACTIVE || lane->state == LANE_TRIAL;
        peers[lane->sending != 0] +=
            before == NULL || before->set != lane->set || before->sending != lane->sending;
    }
    m->peers = peers[0] > peers[1] ? peers[0] : peers[1];
}

static Foliot__V1__JobProcess *make_process(struct message_arena *arena,
                                            const struct job_process *p)
{
    static const uint32_t states[JOB_STATE_COUNT] = {
        FOLIOT__V1__JOB_STATE__JOB_RUNNING, FOLIOT__V1__JOB_STATE__JOB_IDLE,
        FOLIOT__V1__JOB_STATE__JOB_PARTED, FOLIOT__V1__JOB_STATE__JOB_ENDED,
        FOLIOT__V1__JOB_STATE__JOB_KILLED};
    Foliot__V1__JobProcess *m = message_arena_take(arena, sizeof(*m));
    Foliot__V1__JobFlow **flows = message_arena_take(arena, FLOW_MAX * sizeof(*flows));
    const struct job_page_header *h = &p->header;
    uint32_t chosen[FLOW_MAX];

    if (m == NULL || flows == NULL) {
        return NULL;
    }
    foliot__v1__job_process__init(m);
    m->job = copy_text(arena, h->job);
    m->rank = h->ranks != 0 && h->rank < h->ranks ? h->rank + 1 : 0;
    m->ranks = h->ranks;
    m->pid = h->pid;
    m->user = p->user;
    m->state = states[p->state];
    m->mode = FOLIOT__V1__MODE__MODE_OBSERVE + h->mode;
    m->fleet_time = h->synced != 0;
    m->lanes = h->lane_count;
    m->bytes_out = h->bytes_out;
    m->bytes_in = h->bytes_in;
    m->rate_out_bps = p->rate_out_bps;
    m->rate_in_bps = p->rate_in_bps;
    m->resent = h->resent;
    m->failovers = h->failovers;
    m->repaths = h->repaths;
    m->parted = h->parted;
    m->stalled_ns = h->stalled_ns > 0 ? (uint64_t)h->stalled_ns : 0;
    m->age_ms = h->started > 0 && h->written > h->started
                    ? (uint64_t)(h->written - h->started) / NS_PER_MS
                    : 0;
    m->owd_p50_ns = median_p50(p);
    count_lanes(p, m);
    m->flows = flows;
    for (uint32_t i = 0, count = choose(p, chosen); i < count; i++) {
        flows[i] = make_flow(arena, &p->lanes[chosen[i]]);
        if (flows[i] == NULL) {
            return NULL;
        }
        m->n_flows++;
    }
    return m;
}

int report_fill_jobs(struct message_arena *arena, struct agent *a, Foliot__V1__Report *report)
{
    Foliot__V1__JobProcess **list = message_arena_take(arena, PROCESS_MAX * sizeof(*list));

    if (list == NULL) {
        return -ENOMEM;
    }
    report->jobs = list;
    const struct job_process *chosen[PROCESS_MAX];
    const uint32_t count = jobs_fair(a->jobs, PROCESS_MAX, chosen);
    while (report->n_jobs < count) {
        Foliot__V1__JobProcess *m = make_process(arena, chosen[report->n_jobs]);
        if (m == NULL) {
            return -ENOMEM;
        }
        list[report->n_jobs++] = m;
    }
    return 0;
}

/* ---- events ---- */

static const char *words_of(enum job_event_kind kind)
{
    switch (kind) {
    case JOB_EVENT_FAILOVER:
        return "failed; its traffic went on over the others";
    case JOB_EVENT_FAILBACK:
        return "carries traffic again";
    case JOB_EVENT_REPATH:
        return "was moved to another path";
    case JOB_EVENT_PARTED:
        return "has no path to a peer left: it waits";
    case JOB_EVENT_STARTED:
        return "began";
    case JOB_EVENT_ENDED:
        return "ended";
    case JOB_EVENT_KILLED:
        return "ended without closing its page: killed, or crashed";
    case JOB_EVENT_KIND_COUNT:
        break;
    }
    return "";
}

static void write_sentence(const struct agent *a, const struct job_event *e, char *text,
                           size_t size)
{
    char who[160], times[32] = "";

    if (e->rank != UINT32_MAX && e->ranks != 0) {
        snprintf(who, sizeof(who), "job %s, rank %u on %s",
                 e->job[0] != 0 ? e->job : "without a name", e->rank, a->config->host);
    } else {
        snprintf(who, sizeof(who), "job %s, process %u on %s",
                 e->job[0] != 0 ? e->job : "without a name", e->pid, a->config->host);
    }
    if (e->count > 1) {
        snprintf(times, sizeof(times), " (%u times)", e->count);
    }
    if (e->lane != UINT32_MAX) {
        snprintf(text, size, "%s: lane %u, %s → %s/%s, %s%s%s%s", who, e->lane, e->own_nic,
                 e->peer_host, e->peer_nic, words_of(e->kind),
                 e->reason != LANE_REASON_NONE ? ": " : "",
                 e->reason != LANE_REASON_NONE ? lane_reason_name(e->reason) : "", times);
    } else {
        snprintf(text, size, "%s, %s%s", who, words_of(e->kind), times);
    }
}

Foliot__V1__JobEvent *report_job_event(struct message_arena *arena, const struct agent *a,
                                       const struct job_event *e, char *text, size_t size)
{
    Foliot__V1__JobEvent *m = message_arena_take(arena, sizeof(*m));

    write_sentence(a, e, text, size);
    if (m == NULL) {
        return NULL;
    }
    foliot__v1__job_event__init(m);
    m->job = copy_text(arena, e->job);
    m->rank = e->ranks != 0 && e->rank < e->ranks ? e->rank + 1 : 0;
    m->ranks = e->ranks;
    m->pid = e->pid;
    m->user = e->user;
    m->count = e->count;
    m->stalled_ns = e->stalled_ns > 0 ? (uint64_t)e->stalled_ns : 0;
    if (e->lane != UINT32_MAX) {
        m->lane = e->lane + 1;
        m->reason =
            copy_text(arena, e->reason != LANE_REASON_NONE ? lane_reason_name(e->reason) : "");
        m->own_nic = copy_text(arena, e->own_nic);
        m->peer_host = copy_text(arena, e->peer_host);
        m->peer_pid = e->peer_pid;
        m->peer_nic = copy_text(arena, e->peer_nic);
    }
    return m;
}
