/* job_alarm.c: figures of jobs for alert rules: the rate of all ranks, and the delay of the worst flow. They are computed
 * every few seconds from the hosts' last rollups. While a host of a job is silent, the job's state is not known, and it isn't
 * judged. Nor is a job judged that starts, until all of its ranks were reported: hosts report one after the other. */
#include <stdlib.h>

#include "base/prng.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/job/job.h"

#define EVERY   5  /* seconds */
#define START_S 60 /* a rank without a report by then has no agent: the job is judged without it */

struct sum {
    uint64_t id, rate_bps;
    uint32_t living, unheard, known, ranks, owd_p99_ns;
};

struct known {
    uint64_t id;
    uint32_t since; /* by job_alarm's count of seconds */
};

struct job_alarm {
    uint32_t second, known_count;
    struct known known[JOB_MAX]; /* jobs that run, or ran a moment ago */
};

/* The id of a job stays the same over a restart. */
static uint64_t id_of(const char *name, uint32_t user, uint64_t tenant)
{
    uint64_t id = hash_u64(user, 0x6a6f62);
    id = tenant != 0 ? hash_u64(id, tenant) : id;
    for (; *name != 0; name++) {
        id = hash_u64(id, (uint8_t)*name);
    }
    return id;
}

static uint64_t of_job(const struct fleet_job *job)
{
    return id_of(job->name, job->user, job->tenant);
}

const char *job_alarm_name(void *context, uint64_t id)
{
    const struct controller *c = context;
    for (uint32_t i = 0; i < job_count(c); i++) {
        if (of_job(job_get(c, i)) == id) {
            return job_get(c, i)->name;
        }
    }
    return NULL;
}

/* A job's processes are often neighbours in the list, so the search begins where it found the last one. */
static struct sum *find(struct sum *list, uint32_t count, uint64_t id, uint32_t *near)
{
    if (*near < count && list[*near].id == id) {
        return &list[*near];
    }
    for (*near = 0; *near < count; ++*near) {
        if (list[*near].id == id) {
            return &list[*near];
        }
    }
    return NULL;
}

static void add_process(struct sum *s, const struct fleet_job_process *p, bool silent)
{
    s->known++;
    s->ranks = p->ranks > s->ranks ? p->ranks : s->ranks;
    if (p->state == FOLIOT__V1__JOB_STATE__JOB_ENDED ||
        p->state == FOLIOT__V1__JOB_STATE__JOB_KILLED) {
        return;
    }
    s->living++;
    s->unheard += silent;
    s->rate_bps += p->rate_out_bps;
    for (uint32_t i = 0; i < p->flow_count; i++) {
        s->owd_p99_ns =
            p->flows[i].owd_p99_ns > s->owd_p99_ns ? p->flows[i].owd_p99_ns : s->owd_p99_ns;
    }
}

static void add_up(const struct controller *c, struct sum *list, uint32_t count)
{
    const struct mono now = controller_mono();
    uint32_t near = 0;
    for (uint32_t i = 0; i < count; i++) {
        list[i] = (struct sum){.id = of_job(job_get(c, i))};
    }
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        const bool silent = !h->member || fleet_freshness(c, h, now) == FRESHNESS_STALE;
        for (uint32_t k = 0; k < h->job_count; k++) {
            const struct fleet_job *job = job_of(c, h, &h->jobs[k]);
            struct sum *s = job != NULL ? find(list, count, of_job(job), &near) : NULL;
            if (s != NULL) {
                add_process(s, &h->jobs[k], silent);
            }
        }
    }
}

static void judge(struct brain *brain, const struct sum *s)
{
    struct alert_sample sample = {.metric = ALERT_JOB_THROUGHPUT,
                                  .host = ALERT_NO_ID,
                                  .nic = ALERT_NO_ID,
                                  .peer = ALERT_NO_ID,
                                  .port = ALERT_NO_ID,
                                  .job = s->id,
                                  .value = (double)s->rate_bps * 1e-6};
    brain_tell(brain, controller_mono(), BRAIN_SAMPLE, &sample, NULL);
    if (s->owd_p99_ns > 0) { /* 0: no clock is good enough */
        sample.metric = ALERT_JOB_DELAY_P99;
        sample.value = s->owd_p99_ns;
        brain_tell(brain, controller_mono(), BRAIN_SAMPLE, &sample, NULL);
    }
}

/* Ends the jobs that no process runs any more. */
static void end_others(struct job_alarm *a, struct brain *brain, struct sum *list, uint32_t count)
{
    uint32_t kept = 0, near = 0;
    for (uint32_t i = 0; i < a->known_count; i++) {
        const struct sum *s = find(list, count, a->known[i].id, &near);
        if (s != NULL && s->living > 0) {
            a->known[kept++] = a->known[i];
        } else {
            brain_tell(brain, controller_mono(), BRAIN_JOB_OVER,
                       &(struct brain_job){a->known[i].id}, NULL);
        }
    }
    a->known_count = kept;
}

/* How long the job has been known, in seconds. */
static uint32_t age_of(struct job_alarm *a, uint64_t id)
{
    uint32_t i = 0;
    while (i < a->known_count && a->known[i].id != id) {
        i++;
    }
    if (i == a->known_count && a->known_count < JOB_MAX) {
        a->known[a->known_count++] = (struct known){.id = id, .since = a->second};
    }
    return i < a->known_count ? a->second - a->known[i].since : 0;
}

void job_alarm_second(struct controller *c)
{
    c->job_alarm = c->job_alarm == NULL ? calloc(1, sizeof(*c->job_alarm)) : c->job_alarm;
    struct job_alarm *a = c->job_alarm;
    const uint32_t count = job_count(c);
    if (a == NULL || a->second++ % EVERY != 0 || (count == 0 && a->known_count == 0)) {
        return;
    }
    struct sum *list = calloc((size_t)count + 1, sizeof(*list));
    if (list == NULL) {
        return; /* the next turn tries again */
    }
    add_up(c, list, count);
    end_others(a, c->brain, list, count);
    for (uint32_t i = 0; i < count; i++) {
        if (list[i].living == 0) {
            continue;
        }
        const bool starts = age_of(a, list[i].id) < START_S && list[i].known < list[i].ranks;
        if (list[i].unheard == 0 && !starts) {
            judge(c->brain, &list[i]);
        }
    }
    free(list);
}

void job_alarm_close(struct controller *c)
{
    free(c->job_alarm);
    c->job_alarm = NULL;
}
