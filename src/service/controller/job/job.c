/* job.c: turns reports of jobs into their present, their past, and events. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fleet/blame.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/quota.h"
#include "service/controller/fleet/state.h"
#include "service/controller/job/job.h"
#include "service/controller/trust/tenant.h"

struct jobs_state {
    struct fleet_job *list[JOB_MAX];
    uint32_t count;
    struct fleet_job *slots[JOB_MAX]; /* the same jobs by their slot in the store; NULL: free */
};

void job_free(struct fleet_job *job)
{
    free(job->host_list);
    free(job);
}

int job_open(struct controller *c)
{
    c->jobs = calloc(1, sizeof(*c->jobs));
    return c->jobs == NULL ? -ENOMEM : 0;
}

void job_close(struct controller *c)
{
    for (uint32_t i = 0; c->jobs != NULL && i < c->jobs->count; i++) {
        job_free(c->jobs->list[i]);
    }
    free(c->jobs);
    c->jobs = NULL;
}

void job_forget_host(struct fleet_host *h)
{
    free(h->jobs);
    h->jobs = NULL;
    h->job_count = 0;
}

uint32_t job_count(const struct controller *c)
{
    return c->jobs != NULL ? c->jobs->count : 0;
}

const struct fleet_job *job_get(const struct controller *c, uint32_t index)
{
    ASSERT(index < c->jobs->count);
    return c->jobs->list[index];
}

struct fleet_job *job_at(struct controller *c, uint32_t index)
{
    ASSERT(index < c->jobs->count);
    return c->jobs->list[index];
}

void job_restore(struct controller *c, struct fleet_job *job)
{
    struct jobs_state *s = c->jobs;
    uint32_t at = s->count++;

    ASSERT(at < JOB_MAX);
    for (; at > 0 && s->list[at - 1]->first_ns > job->first_ns; at--) { /* sorted by age */
        s->list[at] = s->list[at - 1];
    }
    s->list[at] = job;
    s->slots[job->slot] = job;
}

/* ---- names ---- */

static void take_text(char *to, size_t size, const char *from)
{
    size_t n = 0;

    for (; from[n] != 0 && n + 1 < size; n++) {
        to[n] = from[n] >= ' ' && from[n] <= '~' ? from[n] : '?';
    }
    to[n] = 0;
}

static void name_of(char *to, size_t size, const char *job, uint32_t pid,
                    const struct fleet_host *h)
{
    if (job[0] != 0) {
        snprintf(to, size, "%s", job);
    } else {
        snprintf(to, size, "%u@%s", pid, h->name);
    }
}

static bool lists(const struct fleet_job *job, uint32_t host)
{
    uint32_t i = job->host_count;

    while (i > 0 && job->host_list[i - 1] != host) {
        i--;
    }
    return i > 0;
}

/* ---- the book ---- */

/* Makes room for one more job. It removes the job that ended first, of the host that reported most jobs. So a host that
 * invents jobs can't push out the jobs of others. */
static int make_room(struct controller *c)
{
    struct jobs_state *s = c->jobs;
    uint32_t *told = calloc(c->host_count, sizeof(*told)), most = 0, oldest = UINT32_MAX;

    if (told == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        const uint32_t n = s->list[i]->host_count > 0 ? ++told[s->list[i]->host_list[0]] : 0;
        most = n > most ? n : most;
    }
    for (uint32_t i = 0; i < s->count; i++) {
        const struct fleet_job *job = s->list[i];
        if ((job->host_count == 0 || told[job->host_list[0]] == most) &&
            (oldest == UINT32_MAX || job->last_ns < s->list[oldest]->last_ns)) {
            oldest = i;
        }
    }
    free(told);
    s->slots[s->list[oldest]->slot] = NULL;
    job_free(s->list[oldest]);
    memmove(&s->list[oldest], &s->list[oldest + 1], (s->count - oldest - 1) * sizeof(s->list[0]));
    s->count--;
    return 0;
}

/* A host stays with a job that it reported, even if its tenant changes. Another host joins the job only if it has the same
 * tenant. */
static struct fleet_job *find(const struct controller *c, const char *name, uint32_t user,
                              const struct fleet_host *h)
{
    const struct jobs_state *s = c->jobs;
    struct fleet_job *found = NULL;

    for (uint32_t i = 0; i < s->count; i++) {
        struct fleet_job *job = s->list[i];
        if (job->user != user || strcmp(job->name, name) != 0) {
            continue;
        }
        if (lists(job, h->index)) {
            return job;
        }
        found = job->tenant == h->tenant ? job : found;
    }
    return found;
}

const struct fleet_job *job_of(const struct controller *c, const struct fleet_host *h,
                               const struct fleet_job_process *p)
{
    const struct fleet_job *job = c->jobs != NULL ? c->jobs->slots[p->slot] : NULL;
    char name[sizeof(job->name)];

    if (job == NULL || job->user != p->user) {
        return NULL;
    }
    name_of(name, sizeof(name), p->job, p->pid, h);
    return strcmp(name, job->name) == 0 ? job : NULL;
}

static struct fleet_job *find_or_add(struct controller *c, const char *name, uint32_t user,
                                     const struct fleet_host *h, int64_t at_ns)
{
    struct jobs_state *s = c->jobs;
    struct fleet_job *job = find(c, name, user, h);

    if (job != NULL) {
        return job;
    }
    job = s->count < JOB_MAX || make_room(c) == 0 ? calloc(1, sizeof(*job)) : NULL;
    if (job == NULL) {
        return NULL;
    }
    snprintf(job->name, sizeof(job->name), "%s", name);
    job->user = user;
    job->tenant = h->tenant;
    job->first_ns = job->last_ns = at_ns;
    job->slot_ns = JOB_SLOT_NS;
    job->past_from_ns = at_ns - at_ns % JOB_SLOT_NS;
    while (s->slots[job->slot] != NULL) {
        job->slot++;
    }
    s->slots[job->slot] = job;
    s->list[s->count++] = job;
    return job;
}

void job_on_tenants(struct controller *c)
{
    for (uint32_t i = 0; c->jobs != NULL && i < c->jobs->count; i++) {
        struct fleet_job *job = c->jobs->list[i];
        job->tenant = job->host_count > 0 ? c->hosts[job->host_list[0]]->tenant : TENANT_NONE;
    }
}

/* A job's tenant depends on all of its hosts. */
int job_add_host(struct fleet_job *job, uint32_t host)
{
    uint32_t *grown;

    for (uint32_t i = job->host_count; i-- > 0;) {
        if (job->host_list[i] == host) {
            return 0;
        }
    }
    /* the list is full: it grows to the next power of two */
    if ((job->host_count & (job->host_count - 1)) == 0) {
        const size_t capacity = job->host_count == 0 ? 1 : 2 * (size_t)job->host_count;
        grown = realloc(job->host_list, capacity * sizeof(*grown));
        if (grown == NULL) {
            return -ENOMEM;
        }
        job->host_list = grown;
    }
    job->host_list[job->host_count++] = host;
    return 0;
}

static struct fleet_job_sample both(const struct fleet_job_sample *a,
                                    const struct fleet_job_sample *b)
{
    return (struct fleet_job_sample){
        .bytes = a->bytes + b->bytes,
        .heard_ns = a->heard_ns + b->heard_ns,
        .owd_p50_ns = a->owd_p50_ns > b->owd_p50_ns ? a->owd_p50_ns : b->owd_p50_ns,
        .owd_p99_ns = a->owd_p99_ns > b->owd_p99_ns ? a->owd_p99_ns : b->owd_p99_ns,
    };
}

/* The slot of that time in the past; the past gets coarser until the time fits. NULL: the time is before its beginning. */
static struct fleet_job_sample *slot_of(struct fleet_job *job, int64_t at_ns)
{
    if (at_ns < job->past_from_ns) {
        return NULL;
    }
    while ((at_ns - job->past_from_ns) / job->slot_ns >= JOB_PAST) {
        for (uint32_t i = 0; i < JOB_PAST / 2; i++) {
            job->past[i] = both(&job->past[2 * i], &job->past[2 * i + 1]);
        }
        memset(&job->past[JOB_PAST / 2], 0, JOB_PAST / 2 * sizeof(job->past[0]));
        job->slot_ns *= 2;
    }
    return &job->past[(at_ns - job->past_from_ns) / job->slot_ns];
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Spreads the bytes sent from begin to end over the slots between. So each byte counts once, however often a host reports. */
static void add_bytes(struct fleet_job *job, uint64_t bytes, int64_t begin_ns, int64_t end_ns)
{
    if (end_ns <= begin_ns || slot_of(job, end_ns) == NULL) { /* slot_of() makes room */
        return;
    }
    for (int64_t at = most(begin_ns, job->past_from_ns), next; at < end_ns; at = next) {
        struct fleet_job_sample *slot = slot_of(job, at);
        const int64_t own_end = at - (at - job->past_from_ns) % job->slot_ns + job->slot_ns;
        next = own_end < end_ns ? own_end : end_ns;
        slot->bytes +=
            (uint64_t)((double)bytes * (double)(next - at) / (double)(end_ns - begin_ns));
        slot->heard_ns += most(0, next - most(at, job->heard_to_ns));
    }
    job->heard_to_ns = most(job->heard_to_ns, end_ns);
}

/* The same process in the rollup before. */
static const struct fleet_job_process *before(const struct fleet_host *h,
                                              const struct fleet_job_process *p)
{
    for (uint32_t i = 0; i < h->job_count; i++) {
        const struct fleet_job_process *old = &h->jobs[i];
        if (old->pid == p->pid && old->user == p->user && strcmp(old->job, p->job) == 0 &&
            old->bytes_out <= p->bytes_out) {
            return old;
        }
    }
    return NULL;
}

/* h still has the jobs of the rollup before. */
static void add_to_past(struct fleet_job *job, const struct fleet_host *h,
                        const struct fleet_job_process *p, int64_t at_ns, int64_t covers_ns)
{
    const struct fleet_job_process *old = before(h, p);
    const int64_t age_ns = (int64_t)(p->age_ms & INT32_MAX) * NS_PER_MS;
    if (old != NULL) {
        add_bytes(job, p->bytes_out - old->bytes_out, h->jobs_at_ns, at_ns);
    } else if (age_ns > 0 && age_ns <= covers_ns) {
        add_bytes(job, p->bytes_out, at_ns - age_ns, at_ns);
    } else {
        /* the process is older than its first report: its bytes were not sent in these seconds */
        const double seconds = (double)covers_ns * 1e-9;
        add_bytes(job, (uint64_t)((double)p->rate_out_bps / 8 * seconds), at_ns - covers_ns, at_ns);
    }
    job->covers_ns = most(job->covers_ns, covers_ns);
    struct fleet_job_sample *slot = slot_of(job, at_ns);
    if (slot == NULL) {
        return;
    }
    slot->owd_p50_ns = p->owd_p50_ns > slot->owd_p50_ns ? p->owd_p50_ns : slot->owd_p50_ns;
    for (uint32_t i = 0; i < p->flow_count; i++) {
        if (p->flows[i].owd_p99_ns > slot->owd_p99_ns) {
            slot->owd_p99_ns = p->flows[i].owd_p99_ns;
        }
    }
}

int64_t job_rate_bps(const struct fleet_job *job, uint32_t slot, int64_t now_ns)
{
    const struct fleet_job_sample *s = &job->past[slot];
    const int64_t end_ns = job->past_from_ns + (slot + 1) * job->slot_ns;
    if (s->heard_ns == 0 || end_ns + job->covers_ns > now_ns) {
        return -1;
    }
    const double rate = (double)s->bytes * 8e9 / (double)s->heard_ns;
    return rate < 9e18 ? (int64_t)rate : INT64_MAX;
}

/* ---- reports ---- */

static void take_flow(struct fleet_job_flow *f, const Foliot__V1__JobFlow *m)
{
    take_text(f->peer_host, sizeof(f->peer_host), m->peer_host);
    take_text(f->own_nic, sizeof(f->own_nic), m->own_nic);
    take_text(f->peer_nic, sizeof(f->peer_nic), m->peer_nic);
    take_text(f->state, sizeof(f->state), m->state);
    take_text(f->reason, sizeof(f->reason), m->reason);
    f->peer_pid = m->peer_pid;
    f->lane = m->lane;
    f->sending = m->sending != 0;
    f->rate_bps = m->rate_bps;
    f->owd_p50_ns = m->owd_p50_ns;
    f->owd_p99_ns = m->owd_p99_ns;
    f->owd_floor_ns = m->owd_floor_ns;
    f->queued_p50_ns = m->queued_p50_ns;
    f->consumed_p50_ns = m->consumed_p50_ns;
    f->bound_ns = m->bound_ns;
}

static void take_process(struct fleet_job_process *p, const Foliot__V1__JobProcess *m)
{
    *p = (struct fleet_job_process){
        .rank = m->rank,
        .ranks = m->ranks,
        .pid = m->pid,
        .user = m->user,
        .state = m->state <= FOLIOT__V1__JOB_STATE__JOB_KILLED ? m->state : 0,
        .mode = m->mode,
        .peers = m->peers,
        .lanes = m->lanes,
        .lanes_usable = m->lanes_usable,
        .owd_p50_ns = m->owd_p50_ns,
        .fleet_time = m->fleet_time != 0,
        .bytes_out = m->bytes_out,
        .bytes_in = m->bytes_in,
        .rate_out_bps = m->rate_out_bps,
        .rate_in_bps = m->rate_in_bps,
        .resent = m->resent,
        .failovers = m->failovers,
        .repaths = m->repaths,
        .parted = m->parted,
        .stalled_ns = m->stalled_ns,
        .age_ms = m->age_ms,
    };
    take_text(p->job, sizeof(p->job), m->job);
    for (size_t i = 0; i < m->n_flows && i < JOB_FLOW_MAX; i++) {
        take_flow(&p->flows[p->flow_count++], m->flows[i]);
    }
}

static bool lives(const struct fleet_job_process *p)
{
    return p->state != FOLIOT__V1__JOB_STATE__JOB_ENDED &&
           p->state != FOLIOT__V1__JOB_STATE__JOB_KILLED;
}

static int take_job(struct controller *c, const struct fleet_host *h, struct fleet_job_process *p,
                    int64_t at_ns, int64_t covers_ns)
{
    char name[sizeof(((struct fleet_job *)NULL)->name)];

    name_of(name, sizeof(name), p->job, p->pid, h);
    const int64_t age_ns = (int64_t)(p->age_ms & INT32_MAX) * NS_PER_MS;
    struct fleet_job *job =
        find_or_add(c, name, p->user, h, at_ns - (age_ns < covers_ns ? age_ns : covers_ns));
    if (job == NULL || job_add_host(job, h->index) < 0) {
        return -ENOMEM;
    }
    p->slot = job->slot;
    job->ranks = p->ranks > job->ranks ? p->ranks : job->ranks;
    job->changed = true;
    if (lives(p)) {
        job->last_ns = most(job->last_ns, at_ns);
        add_to_past(job, h, p, at_ns, covers_ns);
        return 0;
    }
    const struct fleet_job_process *old = before(h, p);
    if (old != NULL && lives(old)) { /* the process's last bytes */
        add_bytes(job, p->bytes_out - old->bytes_out, h->jobs_at_ns, at_ns);
    }
    return 0;
}

int job_on_report(struct controller *c, struct fleet_host *h, const Foliot__V1__Report *report,
                  int64_t at_ns)
{
    const int64_t covers_ns = (int64_t)(report->covers_ms & INT32_MAX) * NS_PER_MS;
    const uint32_t count = report->n_jobs < JOB_HOST_MAX ? (uint32_t)report->n_jobs : JOB_HOST_MAX;
    struct fleet_job_process *list = count > 0 ? calloc(count, sizeof(*list)) : NULL;

    if (count > 0 && list == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < count; i++) {
        take_process(&list[i], report->jobs[i]);
        const int r = take_job(c, h, &list[i], at_ns, covers_ns);
        if (r < 0) {
            free(list);
            return r;
        }
    }
    job_forget_host(h);
    h->jobs = list;
    h->job_count = count;
    h->jobs_at_ns = at_ns;
    return 0;
}

/* ---- events ---- */

static const char *word_of(const char *text)
{
    static const char *const words[] = {"started", "failover", "failback", "repath",
                                        "parted",  "ended",    "killed"};

    for (size_t i = 0; i < ARRAY_COUNT(words); i++) {
        if (strcmp(words[i], text) == 0) {
            return words[i];
        }
    }
    return "unknown";
}

static void put_body(struct json_writer *j, const struct fleet_host *h, const Foliot__V1__Event *e)
{
    const Foliot__V1__JobEvent *m = e->job;
    char name[72], text[64];

    take_text(text, sizeof(text), m->job);
    name_of(name, sizeof(name), text, m->pid, h);
    json_put_object(j, NULL);
    json_put_string(j, "job", name);
    json_put_uint(j, "user", m->user);
    json_put_int_if(j, "rank", m->rank != 0, (int64_t)m->rank - 1);
    json_put_int_if(j, "ranks", m->ranks != 0, m->ranks);
    json_put_uint(j, "pid", m->pid);
    json_put_int_if(j, "lane", m->lane != 0, (int64_t)m->lane - 1);
    take_text(text, sizeof(text), m->reason);
    json_put_string(j, "reason", text[0] != 0 ? text : NULL);
    take_text(text, sizeof(text), m->own_nic);
    json_put_string(j, "own_nic", text[0] != 0 ? text : NULL);
    take_text(text, sizeof(text), m->peer_host);
    json_put_string(j, "peer_host", text[0] != 0 ? text : NULL);
    take_text(text, sizeof(text), m->peer_nic);
    json_put_string(j, "peer_nic", text[0] != 0 ? text : NULL);
    json_put_uint(j, "count", m->count);
    json_put_uint(j, "stalled_ns", m->stalled_ns);
    json_put_string(j, "text", e->text);
    json_put_end(j);
}

bool job_reason_fatal(const char *reason)
{
    static const char *const reasons[] = {"carrier", "reset", "timeout", "peer", "damaged"};

    for (size_t i = 0; i < ARRAY_COUNT(reasons); i++) {
        if (strcmp(reasons[i], reason) == 0) {
            return true;
        }
    }
    return false;
}

/* Notes a fault of the network, for job_blame.c. */
static void note_fault(struct controller *c, const struct fleet_host *h, const Foliot__V1__Event *e,
                       int64_t at_ns)
{
    char name[72], text[64];

    if (strcmp(e->word, "failover") != 0 || !job_reason_fatal(e->job->reason)) {
        return;
    }
    take_text(text, sizeof(text), e->job->job);
    name_of(name, sizeof(name), text, e->job->pid, h);
    struct fleet_job *job = find(c, name, e->job->user, h);
    if (job != NULL) {
        const bool anew = job->faults == 0 || at_ns - job->fault_last_ns > BLAME_FAULT_NS;
        job->fault_first_ns = anew ? at_ns : job->fault_first_ns;
        job->faults = (anew ? 0 : job->faults) + (e->job->count > 0 ? e->job->count : 1);
        job->fault_last_ns = most(job->fault_last_ns, at_ns);
        job->changed = true;
    }
}

int job_on_event(struct controller *c, struct fleet_host *h, const Foliot__V1__Event *e,
                 int64_t at_ns)
{
    const char *body = NULL;
    size_t size = 0;

    note_fault(c, h, e, at_ns);
    if (!state_keeps_event(c, h, quota_keeps_job_events(h))) {
        return 0;
    }
    json_writer_reset(&c->json);
    put_body(&c->json, h, e);
    int r = json_writer_finish(&c->json, &body, &size);
    char *copy = r < 0 ? NULL : strndup(body, size - 1);
    if (copy == NULL) {
        return -ENOMEM;
    }
    const struct store_event event = {.at_ns = at_ns,
                                      .fleet_ns = e->at_fleet,
                                      .host = h->id,
                                      .kind = "job",
                                      .word = word_of(e->word),
                                      .body = copy};
    r = state_event(c, &event);
    quota_job_row(h);
    free(copy);
    return r;
}
