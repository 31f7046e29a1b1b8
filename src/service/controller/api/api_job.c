/* api_job.c: the fleet's jobs: their present, their past, and the faults that they survived. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/rows.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/job/job.h"

static const char *state_word(uint32_t state)
{
    static const char *const words[] = {"unknown", "running", "idle", "parted", "ended", "killed"};

    return state < ARRAY_COUNT(words) ? words[state] : "unknown";
}

static const char *mode_word(uint32_t mode)
{
    static const char *const words[] = {NULL, "off", "observe", "failover", "full"};

    return mode < ARRAY_COUNT(words) ? words[mode] : NULL;
}

/* ---- sums ---- */

struct job_sums {
    const struct fleet_host *host; /* the host that was counted last */
    uint32_t processes, hosts, silent, state;
    uint64_t bytes, rate_bps, failovers, repaths, parted, stalled_ns, lanes, lanes_usable;
    uint32_t owd_p50_ns;
    const struct fleet_job_flow *worst;
    const struct fleet_host *worst_host;
    const struct fleet_job_process *worst_process;
};

/* The worse of two states of processes: it becomes the job's state. */
static uint32_t worse(uint32_t a, uint32_t b)
{
    static const uint8_t worry[] = {
        [FOLIOT__V1__JOB_STATE__JOB_UNKNOWN] = 0, [FOLIOT__V1__JOB_STATE__JOB_ENDED] = 1,
        [FOLIOT__V1__JOB_STATE__JOB_KILLED] = 2,  [FOLIOT__V1__JOB_STATE__JOB_IDLE] = 3,
        [FOLIOT__V1__JOB_STATE__JOB_RUNNING] = 4, [FOLIOT__V1__JOB_STATE__JOB_PARTED] = 5};

    return worry[a] >= worry[b] ? a : b;
}

static void add_flows(struct job_sums *s, const struct fleet_host *h,
                      const struct fleet_job_process *p)
{
    for (uint32_t i = 0; i < p->flow_count; i++) {
        const struct fleet_job_flow *f = &p->flows[i];
        if (!f->sending && f->owd_p99_ns != 0 &&
            (s->worst == NULL || (int64_t)f->owd_p99_ns - f->owd_floor_ns >
                                     (int64_t)s->worst->owd_p99_ns - s->worst->owd_floor_ns)) {
            s->worst = f;
            s->worst_host = h;
            s->worst_process = p;
        }
    }
}

static void add_process(struct job_sums *s, const struct fleet_host *h,
                        const struct fleet_job_process *p)
{
    s->hosts += s->host != h;
    s->host = h;
    s->processes++;
    s->state = worse(s->state, p->state);
    s->bytes += p->bytes_out;
    s->rate_bps += p->rate_out_bps;
    s->failovers += p->failovers;
    s->repaths += p->repaths;
    s->parted += p->parted;
    s->lanes += p->lanes;
    s->lanes_usable += p->lanes_usable;
    s->stalled_ns = p->stalled_ns > s->stalled_ns ? p->stalled_ns : s->stalled_ns;
    s->owd_p50_ns = p->owd_p50_ns > s->owd_p50_ns ? p->owd_p50_ns : s->owd_p50_ns;
    add_flows(s, h, p);
}

/* Sums of all jobs, by slot, in one pass over all processes. NULL: out of memory. */
static struct job_sums *add_up(const struct controller *c)
{
    const struct mono now = controller_mono();
    struct job_sums *sums = calloc(JOB_MAX, sizeof(*sums));

    for (uint32_t i = 0; sums != NULL && i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        const bool current = h->member && fleet_current(c, h, now);
        for (uint32_t k = 0; k < h->job_count; k++) {
            const struct fleet_job *job = job_of(c, h, &h->jobs[k]);
            if (job == NULL) {
                continue;
            }
            if (current) {
                add_process(&sums[job->slot], h, &h->jobs[k]);
            } else { /* a silent host's last report is not its present state */
                sums[job->slot].silent++;
            }
        }
    }
    return sums;
}

/* The rank of the flow's other end, plus 1. 0: it isn't known, or two processes with that number in containers of one host
 * have different ranks. */
static uint32_t peer_rank(const struct controller *c, const struct fleet_job *job,
                          const struct fleet_job_flow *f)
{
    const struct fleet_host *h = fleet_find_host(c, f->peer_host);
    uint32_t rank = 0;

    for (uint32_t k = 0; h != NULL && k < h->job_count; k++) {
        const struct fleet_job_process *p = &h->jobs[k];
        if (p->pid == f->peer_pid && job_of(c, h, p) == job) {
            if (rank != 0 && rank != p->rank) {
                return 0;
            }
            rank = p->rank;
        }
    }
    return rank;
}

static void put_flow(const struct controller *c, const struct fleet_job *job, struct json_writer *j,
                     const char *key, const struct fleet_host *h, const struct fleet_job_process *p,
                     const struct fleet_job_flow *f)
{
    const uint32_t other = peer_rank(c, job, f), from = f->sending ? p->rank : other,
                   to = f->sending ? other : p->rank;

    json_put_object(j, key);
    json_put_string(j, "from_host", f->sending ? h->name : f->peer_host);
    json_put_string(j, "from_nic", f->sending ? f->own_nic : f->peer_nic);
    json_put_int_if(j, "from_rank", from != 0, (int64_t)from - 1);
    json_put_string(j, "to_host", f->sending ? f->peer_host : h->name);
    json_put_string(j, "to_nic", f->sending ? f->peer_nic : f->own_nic);
    json_put_int_if(j, "to_rank", to != 0, (int64_t)to - 1);
    json_put_uint(j, "lane", f->lane);
    json_put_string(j, "state", f->state);
    json_put_string(j, "reason", f->reason[0] != 0 ? f->reason : NULL);
    json_put_uint(j, "rate_bps", f->rate_bps);
    json_put_int_if(j, "owd_ns_p50", f->owd_p50_ns != 0, f->owd_p50_ns);
    json_put_int_if(j, "owd_ns_p99", f->owd_p99_ns != 0, f->owd_p99_ns);
    json_put_int_if(j, "owd_ns_floor", f->owd_floor_ns != 0, f->owd_floor_ns);
    json_put_int_if(j, "queued_ns_p50", f->owd_p50_ns != 0, f->queued_p50_ns);
    json_put_int_if(j, "consumed_ns_p50", f->owd_p50_ns != 0, f->consumed_p50_ns);
    json_put_int_if(j, "bound_ns", f->bound_ns != 0, f->bound_ns);
    json_put_end(j);
}

/* True if the element belongs to the fabric, or to a host of the job. */
static bool of_job(const struct controller *c, const struct fleet_job *job, const struct element *e)
{
    const struct fleet_nic *n = e->kind == ELEMENT_NIC ? fleet_find_nic(c, e->a.number) : NULL;
    const uint32_t host = n != NULL                 ? n->host->index
                          : e->kind == ELEMENT_HOST ? e->a.number
                                                    : UINT32_MAX;

    for (uint32_t i = 0; i < job->host_count && host != UINT32_MAX; i++) {
        if (job->host_list[i] == host) {
            return true;
        }
    }
    return e->kind >= ELEMENT_LEAF && e->kind <= ELEMENT_TRUNK;
}

static bool may_have_hurt(const struct controller *c, const struct fleet_job *job,
                          const struct alert_incident *incident)
{
    bool may = of_job(c, job, &incident->element);

    for (uint32_t k = 0; k < incident->choice.count; k++) {
        may = may || of_job(c, job, &incident->choice.one_of[k]);
    }
    return may;
}

/* The cause of the severest open incident that fits. A tenant doesn't get it, because the cause may be another tenant's. */
static const char *cause_of(const struct api_call *call, const struct fleet_job *job)
{
    struct alert_incident incident;
    const char *cause = NULL;
    uint32_t severity = 0;
    size_t cursor = 0;

    if (call->c->alerting == NULL || (call->scope != NULL && call->scope[0] != 0)) {
        return NULL;
    }
    while (alerts_next_incident(alerting_engine(call->c->alerting), &cursor, &incident)) {
        const bool open = incident.state == INCIDENT_NEW || incident.state == INCIDENT_OPEN;
        if (open && (cause == NULL || incident.severity > severity) &&
            may_have_hurt(call->c, job, &incident)) {
            cause = incident.cause;
            severity = incident.severity;
        }
    }
    return cause;
}

static void put_job_fields(const struct api_call *call, struct json_writer *j,
                           const struct fleet_job *job, const struct job_sums *sums)
{
    const struct controller *c = call->c;
    const struct job_sums s = sums[job->slot];
    const bool known = s.processes > 0;

    json_put_string(j, "job", job->name);
    json_put_uint(j, "user", job->user);
    json_put_string(j, "state", state_word(s.state));
    json_put_int(j, "since_utc_ns", job->first_ns);
    json_put_int(j, "heard_utc_ns", job->last_ns);
    json_put_int_if(j, "ranks", job->ranks != 0, job->ranks);
    json_put_uint(j, "processes", s.processes);
    json_put_uint(j, "processes_silent", s.silent);
    json_put_uint(j, "hosts", s.hosts);
    json_put_int_if(j, "rate_bps", known, s.rate_bps < INT64_MAX ? (int64_t)s.rate_bps : INT64_MAX);
    json_put_int_if(j, "bytes", known, s.bytes < INT64_MAX ? (int64_t)s.bytes : INT64_MAX);
    json_put_int_if(j, "lanes", known, (int64_t)s.lanes);
    json_put_int_if(j, "lanes_usable", known, (int64_t)s.lanes_usable);
    json_put_int_if(j, "failovers", known, (int64_t)s.failovers);
    json_put_int_if(j, "repaths", known, (int64_t)s.repaths);
    json_put_int_if(j, "parted", known, (int64_t)s.parted);
    json_put_int_if(j, "stalled_ns", known,
                    s.stalled_ns < INT64_MAX ? (int64_t)s.stalled_ns : INT64_MAX);
    json_put_int_if(j, "owd_ns_p50", s.owd_p50_ns != 0, s.owd_p50_ns);
    if (s.worst != NULL) {
        put_flow(c, job, j, "worst", s.worst_host, s.worst_process, s.worst);
    } else {
        json_put_null(j, "worst");
    }
    job_put_blame(c, j, job, cause_of(call, job));
}

/* A tenant sees a job only if it sees all of its hosts. */
static bool sees_job(const struct api_call *call, const struct fleet_job *job)
{
    for (uint32_t i = 0; i < job->host_count; i++) {
        if (job->host_list[i] >= call->c->host_count ||
            !api_sees(call, call->c->hosts[job->host_list[i]])) {
            return false;
        }
    }
    return true;
}

void api_get_jobs(struct api_call *call)
{
    struct json_writer *j = call->j;
    int64_t limit, cursor, count = 0, seen = 0, next = -1;
    const uint32_t all = job_count(call->c);
    const char *state = http_query(call->request, "state");
    char text[24];

    if (!api_page(call, &limit, &cursor)) {
        return;
    }
    struct job_sums *sums = add_up(call->c);
    if (sums == NULL) {
        api_store_error(call, -ENOMEM);
        return;
    }
    json_put_object(j, NULL);
    json_put_array(j, "items");
    for (uint32_t i = 0; i < all && next < 0; i++) {
        const struct fleet_job *job = job_get(call->c, all - 1 - i); /* newest first */
        /* the cursor counts jobs that the caller sees */
        if (!sees_job(call, job) || seen++ < cursor) {
            continue;
        }
        if (count == limit) {
            next = seen - 1;
            continue;
        }
        if (state != NULL && strcmp(state, state_word(sums[job->slot].state)) != 0) {
            continue;
        }
        json_put_object(j, NULL);
        put_job_fields(call, j, job, sums);
        json_put_end(j);
        count++;
    }
    free(sums);
    json_put_end(j);
    snprintf(text, sizeof(text), "%lld", (long long)next);
    json_put_string(j, "next", next >= 0 ? text : NULL);
    json_put_end(j);
    api_answer(call);
}

/* ---- one job ---- */

static void put_past(struct json_writer *j, const struct fleet_job *job)
{
    const int64_t now = controller_utc_ns();
    uint32_t count = 0;

    for (uint32_t i = 0; i < JOB_PAST; i++) {
        count = job->past[i].heard_ns > 0 ? i + 1 : count;
    }
    json_put_object(j, "past");
    json_put_int(j, "from_utc_ns", job->past_from_ns);
    json_put_int(j, "step_ns", job->slot_ns);
    json_put_array(j, "rate_bps");
    for (uint32_t i = 0; i < count; i++) {
        const int64_t rate = job_rate_bps(job, i, now);
        json_put_int_if(j, NULL, rate >= 0, rate);
    }
    json_put_end(j);
    json_put_array(j, "owd_ns_p50");
    for (uint32_t i = 0; i < count; i++) {
        json_put_int_if(j, NULL, job->past[i].owd_p50_ns > 0, job->past[i].owd_p50_ns);
    }
    json_put_end(j);
    json_put_array(j, "owd_ns_p99");
    for (uint32_t i = 0; i < count; i++) {
        json_put_int_if(j, NULL, job->past[i].owd_p99_ns > 0, job->past[i].owd_p99_ns);
    }
    json_put_end(j);
    json_put_end(j);
}

static void put_process(struct json_writer *j, const struct fleet_host *h,
                        const struct fleet_job_process *p, bool known)
{
    json_put_object(j, NULL);
    json_put_string(j, "host", h->name);
    json_put_uint(j, "pid", p->pid);
    json_put_int_if(j, "rank", p->rank != 0, (int64_t)p->rank - 1);
    json_put_string(j, "state", known ? state_word(p->state) : "unknown");
    json_put_string(j, "mode", mode_word(p->mode));
    json_put_bool(j, "fleet_time", p->fleet_time);
    json_put_int_if(j, "rate_out_bps", known, (int64_t)(p->rate_out_bps & INT64_MAX));
    json_put_int_if(j, "rate_in_bps", known, (int64_t)(p->rate_in_bps & INT64_MAX));
    json_put_uint(j, "lanes", p->lanes);
    json_put_uint(j, "lanes_usable", p->lanes_usable);
    json_put_uint(j, "failovers", p->failovers);
    json_put_uint(j, "repaths", p->repaths);
    json_put_uint(j, "resent", p->resent);
    json_put_uint(j, "stalled_ns", p->stalled_ns);
    json_put_int_if(j, "owd_ns_p50", p->owd_p50_ns != 0, p->owd_p50_ns);
    json_put_end(j);
}

/* The processes, or their flows, of each host that has any. */
static void put_parts(const struct controller *c, struct json_writer *j,
                      const struct fleet_job *job, bool flows)
{
    const struct mono now = controller_mono();

    json_put_array(j, flows ? "flows" : "process_list");
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        for (uint32_t k = 0; k < h->job_count; k++) {
            const struct fleet_job_process *p = &h->jobs[k];
            if (job_of(c, h, p) != job) {
                continue;
            }
            if (!flows) {
                put_process(j, h, p, h->member && fleet_current(c, h, now));
            }
            for (uint32_t f = 0;
                 flows && h->member && fleet_current(c, h, now) && f < p->flow_count; f++) {
                put_flow(c, job, j, NULL, h, p, &p->flows[f]);
            }
        }
    }
    json_put_end(j);
}

void api_get_job(struct api_call *call)
{
    int64_t user = -1;
    const struct fleet_job *job = NULL;

    if (!api_number(call, "user", 0, UINT32_MAX, &user)) {
        return;
    }
    for (uint32_t i = job_count(call->c); i-- > 0 && job == NULL;) {
        const struct fleet_job *one = job_get(call->c, i);
        if (strcmp(one->name, call->rest) == 0 && (user < 0 || user == one->user) &&
            sees_job(call, one)) {
            job = one;
        }
    }
    if (job == NULL) {
        api_error(call, 404, "no-such-job", "no agent has reported such a job lately");
        return;
    }
    struct job_sums *sums = add_up(call->c);
    if (sums == NULL) {
        api_store_error(call, -ENOMEM);
        return;
    }
    json_put_object(call->j, NULL);
    put_job_fields(call, call->j, job, sums);
    free(sums);
    put_past(call->j, job);
    put_parts(call->c, call->j, job, false);
    put_parts(call->c, call->j, job, true);
    json_put_end(call->j);
    api_answer(call);
}

/* ---- savings ---- */

#define SAVING_MAX   4096
#define EVIDENCE_MAX 100
#define EVENTS_MAX   100000 /* most events read for one answer */
#define EVENTS_STEP  1000   /* … and in one step, some 5 ms of the loop */

struct saving {
    char job[72], month[8];
    uint64_t tenant;
    uint32_t user, ranks;
    uint32_t avoided, faults;
    int64_t last_ns, stalled_ns;
    int64_t evidence[EVIDENCE_MAX];
    uint32_t evidence_count;
};

struct adding {
    struct api_rows rows;
    struct saving *list;
    uint32_t count;
    int64_t seen, looked, last, minutes;
};

static struct saving *saving_of(struct adding *a, const char *job, uint32_t user, uint64_t tenant,
                                const char *month)
{
    for (uint32_t i = a->count; i-- > 0;) {
        struct saving *s = &a->list[i];
        if (s->user == user && s->tenant == tenant && strcmp(s->job, job) == 0 &&
            strcmp(s->month, month) == 0) {
            return s;
        }
    }
    if (a->count == SAVING_MAX) {
        return NULL;
    }
    a->list[a->count] = (struct saving){.user = user, .tenant = tenant, .last_ns = INT64_MIN / 2};
    snprintf(a->list[a->count].job, sizeof(a->list[0].job), "%s", job);
    snprintf(a->list[a->count].month, sizeof(a->list[0].month), "%s", month);
    return &a->list[a->count++];
}

/* Takes events, oldest first. Faults within JOB_RESTART_NS of each other would have caused one restart. */
static int add_event(struct api_rows *rows, const struct store_event *e)
{
    struct adding *a = (struct adding *)rows;
    json_t *body = json_loads(e->body, 0, NULL);
    const char *job = json_string_value(json_object_get(body, "job"));
    const char *reason = json_string_value(json_object_get(body, "reason"));
    const time_t at = (time_t)(e->at_ns / NS_PER_S);
    const bool seen = scope_sees_event(rows->call.c, rows->scope, e->kind, e->host, e->body);
    struct saving *s = NULL;
    struct tm tm;
    char month[8] = "";

    a->seen++;
    a->looked++;
    a->last = e->id;
    if (seen && job != NULL && gmtime_r(&at, &tm) != NULL &&
        strftime(month, sizeof(month), "%Y-%m", &tm) > 0) {
        const struct fleet_host *h = fleet_host_by_id(rows->call.c, e->host);
        s = saving_of(a, job, (uint32_t)json_integer_value(json_object_get(body, "user")),
                      h != NULL ? h->tenant : 0, month);
    }
    if (s != NULL) {
        const uint32_t ranks = (uint32_t)json_integer_value(json_object_get(body, "ranks"));
        const int64_t stalled = json_integer_value(json_object_get(body, "stalled_ns"));
        s->ranks = ranks > s->ranks ? ranks : s->ranks;
        s->stalled_ns = stalled > s->stalled_ns ? stalled : s->stalled_ns;
        if (strcmp(e->word, "failover") == 0 && reason != NULL && job_reason_fatal(reason)) {
            s->faults++;
            if (e->at_ns - s->last_ns > JOB_RESTART_NS) {
                s->avoided++;
                if (s->evidence_count < EVIDENCE_MAX) {
                    s->evidence[s->evidence_count++] = e->id;
                }
            }
            s->last_ns = e->at_ns;
        }
    }
    json_decref(body);
    return a->seen >= EVENTS_MAX ? 1 : 0;
}

static void put_saving(struct json_writer *j, const struct saving *s, double hours)
{
    const double ranks = s->ranks > 0 ? s->ranks : 1;

    json_put_object(j, NULL);
    json_put_string(j, "month", s->month);
    json_put_string(j, "job", s->job);
    json_put_uint(j, "user", s->user);
    json_put_int_if(j, "ranks", s->ranks != 0, s->ranks);
    json_put_uint(j, "faults", s->faults);
    json_put_uint(j, "restarts_avoided", s->avoided);
    json_put_double(j, "gpu_hours_saved", s->avoided * hours * ranks);
    json_put_double(j, "gpu_hours_lost", (double)s->stalled_ns / 3.6e12 * ranks);
    json_put_array(j, "evidence");
    for (uint32_t i = 0; i < s->evidence_count; i++) {
        json_put_int(j, NULL, s->evidence[i]);
    }
    json_put_end(j);
    json_put_end(j);
}

static int fail_memory(struct api_rows *rows, const struct store_event *e)
{
    return -ENOMEM;
}

static bool more_savings(struct api_rows *rows)
{
    struct adding *a = (struct adding *)rows;
    const bool more = a->looked == EVENTS_STEP;
    rows->events.after_id = a->last;
    a->looked = 0;
    return more;
}

static void finish_savings(struct api_rows *rows)
{
    const struct adding *a = (struct adding *)rows;
    struct json_writer *j = &rows->json;
    json_put_object(j, NULL);
    json_put_array(j, "items");
    for (uint32_t i = a->count; i-- > 0;) { /* newest first */
        put_saving(j, &a->list[i], (double)a->minutes / 60);
    }
    json_put_end(j);
    json_put_bool(j, "whole", a->seen < EVENTS_MAX && a->count < SAVING_MAX);
    json_put_object(j, "assumed");
    json_put_int(j, "restart_minutes", a->minutes);
    json_put_int(j, "one_restart_within_ns", JOB_RESTART_NS);
    json_put_end(j);
    json_put_end(j);
    api_answer(&rows->call);
}

static void free_savings(struct api_rows *rows)
{
    free(((struct adding *)rows)->list);
}

void api_get_savings(struct api_call *call)
{
    struct store_event_filter f = {.kind = "job", .limit = EVENTS_STEP};
    int64_t minutes = (int64_t)(JOB_RESTART_HOURS * 60);
    if (!api_number(call, "restart_minutes", 0, 100000, &minutes) ||
        !api_number(call, "since_utc_ns", 0, INT64_MAX, &f.since_ns) ||
        !api_number(call, "until_utc_ns", 0, INT64_MAX, &f.until_ns)) {
        return;
    }
    struct adding *a = api_rows_new(call, sizeof(*a));
    if (a == NULL) {
        return;
    }
    a->list = calloc(SAVING_MAX, sizeof(*a->list));
    a->minutes = minutes;
    a->rows.events = f;
    a->rows.on_event = a->list != NULL ? add_event : fail_memory;
    a->rows.more = more_savings;
    a->rows.finish = finish_savings;
    a->rows.on_free = free_savings;
    api_rows_begin(call, &a->rows);
}
