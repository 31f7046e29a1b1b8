/* job_keep.c: keeps the book of jobs over a restart. The store has one text for each job, under "job.SLOT": a line of JSON,
 * then the past as plain numbers. Plain numbers are read ten times as fast, and all agents wait while a controller starts. A
 * running job is stored every five minutes and when the controller ends. So after kill -9 its past has a gap of at most five
 * minutes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/history/document.h"
#include "service/controller/job/job.h"

#define KEEP_NS     (300 * NS_PER_S)
#define SLOT_MAX    (JOB_SLOT_NS << 24) /* 512 of these slots span centuries */
#define TEXT_MAX    (1 << 20)
#define EACH_TURN   4 /* jobs a second: so all are stored within KEEP_NS */
#define SAVED_KIND  1
#define SAMPLE_SIZE 64 /* four numbers as text: 20 + 20 + 10 + 10, and separators */

/* Writes four numbers for each sample, and a 0 at the end. */
static size_t put_samples(const struct fleet_job *job, char *text)
{
    char *at = text;
    uint32_t count = JOB_PAST;
    while (count > 0 && job->past[count - 1].heard_ns == 0) {
        count--;
    }
    *at = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct fleet_job_sample *s = &job->past[i];
        at += snprintf(at, SAMPLE_SIZE + 1, "%llu %lld %u %u ", (unsigned long long)s->bytes,
                       (long long)s->heard_ns, s->owd_p50_ns, s->owd_p99_ns);
    }
    return (size_t)(at - text) + 1;
}

static int put(struct controller *c, const struct fleet_job *job, struct json_writer *j)
{
    const char *head = NULL;
    char name[32], *text = NULL;
    size_t size = 0;
    int r = json_writer_finish(j, &head, &size); /* the text ends with a newline */
    text = r < 0 ? NULL : malloc(size + JOB_PAST * SAMPLE_SIZE + 1);
    if (text == NULL) {
        return r < 0 ? r : -ENOMEM;
    }
    memcpy(text, head, size);
    size += put_samples(job, text + size);
    snprintf(name, sizeof(name), "job.%u", job->slot);
    r = store_put(c->store, name, text, size);
    free(text);
    return r;
}

static int keep(struct controller *c, struct fleet_job *job)
{
    struct json_writer j;
    json_writer_init(&j, TEXT_MAX);
    json_put_object(&j, NULL);
    json_put_int(&j, "version", SAVED_KIND);
    json_put_string(&j, "job", job->name);
    json_put_uint(&j, "user", job->user);
    json_put_uint(&j, "ranks", job->ranks);
    json_put_int(&j, "first_ns", job->first_ns);
    json_put_int(&j, "last_ns", job->last_ns);
    json_put_int(&j, "fault_first_ns", job->fault_first_ns);
    json_put_int(&j, "fault_last_ns", job->fault_last_ns);
    json_put_uint(&j, "faults", job->faults);
    json_put_int(&j, "past_from_ns", job->past_from_ns);
    json_put_int(&j, "slot_ns", job->slot_ns);
    json_put_int(&j, "heard_to_ns", job->heard_to_ns);
    json_put_int(&j, "covers_ns", job->covers_ns);
    json_put_array(&j, "hosts");
    for (uint32_t i = 0; i < job->host_count; i++) {
        json_put_int(&j, NULL, c->hosts[job->host_list[i]]->id);
    }
    json_put_end(&j);
    json_put_end(&j);
    const int r = put(c, job, &j);
    json_writer_done(&j);
    if (r == 0) {
        job->changed = false;
        job->kept_ns = controller_mono().ns;
        controller_touch(c);
    }
    return r;
}

static void keep_some(struct controller *c, uint32_t most, int64_t age_ns)
{
    const int64_t now = controller_mono().ns;
    for (uint32_t i = 0; i < job_count(c) && most > 0 && !c->store_broken; i++) {
        struct fleet_job *job = job_at(c, i);
        if (!job->changed || (job->kept_ns != 0 && now - job->kept_ns < age_ns)) {
            continue;
        }
        const int r = keep(c, job);
        if (r < 0) {
            controller_say(LOG_WARNING, "job %s can't be kept: %s", job->name, strerror(-r));
            return;
        }
        most--;
    }
}

void job_keep_second(struct controller *c)
{
    keep_some(c, EACH_TURN, KEEP_NS);
}

void job_keep_all(struct controller *c)
{
    keep_some(c, JOB_MAX, 0);
}

/* ---- loading ---- */

static int64_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

/* A job's hosts decide its tenant. If one of them is missing, nobody may see the job. */
static int take_hosts(const struct controller *c, struct fleet_job *job, const json_t *hosts)
{
    int r = json_array_size(hosts) > 0 ? 0 : -EUCLEAN;
    for (size_t i = 0; i < json_array_size(hosts) && r == 0; i++) {
        const struct fleet_host *h =
            fleet_host_by_id(c, json_integer_value(json_array_get(hosts, i)));
        r = h == NULL ? -EUCLEAN : job_add_host(job, h->index);
    }
    return r;
}

/* The next number of the text; 0: it is more than `most`, or no number. */
static uint64_t next(const char **at, uint64_t most)
{
    char *end = NULL;
    errno = 0;
    const uint64_t value = strtoull(*at, &end, 10);
    const bool good = end != *at && errno == 0 && value <= most;
    *at = end;
    return good ? value : 0;
}

static void take_samples(struct fleet_job *job, const char *at)
{
    for (size_t i = 0; at != NULL && *at != 0 && i < JOB_PAST; i++) {
        const uint64_t bytes = next(&at, UINT64_MAX);
        const int64_t heard_ns = (int64_t)next(&at, (uint64_t)job->slot_ns);
        const uint32_t p50_ns = (uint32_t)next(&at, UINT32_MAX);
        const uint32_t p99_ns = (uint32_t)next(&at, UINT32_MAX);
        at += *at == ' ';
        if (heard_ns > 0) {
            job->past[i] = (struct fleet_job_sample){bytes, heard_ns, p50_ns, p99_ns};
        }
    }
}

static int take(const struct controller *c, struct fleet_job *job, const json_t *o)
{
    document_words(o, "job", job->name, sizeof(job->name));
    job->user = (uint32_t)number(o, "user");
    job->ranks = (uint32_t)number(o, "ranks");
    job->first_ns = number(o, "first_ns");
    job->last_ns = number(o, "last_ns");
    job->fault_first_ns = number(o, "fault_first_ns");
    job->fault_last_ns = number(o, "fault_last_ns");
    job->faults = (uint32_t)number(o, "faults");
    job->past_from_ns = number(o, "past_from_ns");
    job->slot_ns = number(o, "slot_ns");
    job->heard_to_ns = number(o, "heard_to_ns");
    job->covers_ns = number(o, "covers_ns");
    if (number(o, "version") != SAVED_KIND || job->name[0] == 0 || job->slot_ns < JOB_SLOT_NS ||
        job->slot_ns > SLOT_MAX || job->past_from_ns < 0 ||
        job->past_from_ns > controller_utc_ns() || job->covers_ns < 0 ||
        job->covers_ns > INT32_MAX * (int64_t)NS_PER_MS) {
        return -EUCLEAN;
    }
    return take_hosts(c, job, json_object_get(o, "hosts"));
}

/* Loads the text under "job.SLOT". */
static int load(struct controller *c, uint32_t slot, const char *text, size_t size)
{
    const char *end = size > 0 && text[size - 1] == 0 ? strchr(text, '\n') : NULL;
    json_t *o = end != NULL ? json_loadb(text, (size_t)(end - text), 0, NULL) : NULL;
    struct fleet_job *job = calloc(1, sizeof(*job));
    int r = job == NULL ? -ENOMEM : o == NULL ? -EUCLEAN : take(c, job, o);
    json_decref(o);
    if (r == 0) {
        take_samples(job, end + 1);
        job->slot = slot;
        job_restore(c, job);
    } else if (job != NULL) {
        job_free(job);
    }
    return r;
}

int job_keep_load(struct controller *c)
{
    uint32_t refused = 0;
    int r = 0;
    for (uint32_t slot = 0; slot < JOB_MAX && r == 0; slot++) {
        char name[32], *text = NULL;
        size_t size = 0;
        snprintf(name, sizeof(name), "job.%u", slot);
        r = store_get(c->store, name, &text, &size);
        r = r < 0 ? r : load(c, slot, text, size);
        free(text);
        refused += r == -EUCLEAN;
        r = r == -ENOENT || r == -EUCLEAN ? 0 : r;
    }
    if (refused > 0) {
        controller_say(LOG_WARNING,
                       "%u stored jobs can't be read, or ran on hosts that are no longer members",
                       refused);
    }
    return r;
}
