/* jobs_change.c: compares two looks at a process's page: rates, and the events between the looks. */
#include <string.h>

#include "service/agent/jobs_internal.h"

#define SEARCH_MAX 256

static struct job_event *note(struct jobs *jobs, const struct job_process *p,
                              const struct job_page_header *header, enum job_event_kind kind,
                              struct mono at)
{
    struct job_event *e = &jobs->events[jobs->event_count++ % JOB_EVENT_KEPT];

    *e = (struct job_event){.at = at,
                            .kind = kind,
                            .user = p->user,
                            .pid = header->pid,
                            .rank = header->rank,
                            .ranks = header->ranks,
                            .stalled_ns = header->stalled_ns,
                            .lane = UINT32_MAX,
                            .count = 1};
    memcpy(e->job, header->job, sizeof(e->job));
    memcpy(e->host, header->host, sizeof(e->host));
    return e;
}

static void note_lane(struct jobs *jobs, const struct job_process *p,
                      const struct job_page_header *header, enum job_event_kind kind,
                      const struct job_page_lane *lane, uint32_t count, struct mono now)
{
    const int64_t ago_ns = (int64_t)lane->since_ms * NS_PER_MS;
    /* `since` is the start of the present state. If it changed several times, the times between the two looks are not known. */
    const bool dated = count == 1 && ago_ns < mono_sub(now, p->changed).ns + 2 * NS_PER_S;
    struct job_event *e = note(jobs, p, header, kind, dated ? (struct mono){now.ns - ago_ns} : now);

    e->lane = lane->lane;
    e->count = count;
    e->reason = (enum lane_reason)lane->reason;
    memcpy(e->own_nic, lane->own_nic, sizeof(e->own_nic));
    memcpy(e->peer_nic, lane->peer_nic, sizeof(e->peer_nic));
    memcpy(e->peer_host, lane->peer_host, sizeof(e->peer_host));
    e->peer_pid = lane->peer_pid;
}

static bool carries(uint8_t state)
{
    return state == LANE_TRIAL || state == LANE_ACTIVE || state == LANE_SUSPECT;
}

/* Compares one lane before and now. Both ends have the lane; the events come from the sending end. */
static void compare_lane(struct jobs *jobs, const struct job_process *p,
                         const struct job_page_header *header, const struct job_page_lane *before,
                         const struct job_page_lane *lane, struct mono now)
{
    if (!lane->sending) {
        return;
    }
    if (lane->failovers > before->failovers) {
        note_lane(jobs, p, header, JOB_EVENT_FAILOVER, lane, lane->failovers - before->failovers,
                  now);
    }
    if (lane->epoch != before->epoch && lane->failovers == before->failovers &&
        lane->reason == LANE_REASON_REPATH) {
        note_lane(jobs, p, header, JOB_EVENT_REPATH, lane, 1, now);
    }
    if (lane->state == LANE_ACTIVE && lane->failovers > 0 &&
        (!carries(before->state) || lane->failovers > before->failovers)) {
        note_lane(jobs, p, header, JOB_EVENT_FAILBACK, lane, 1, now);
    }
}

static const struct job_lane *find_lane(const struct job_process *p, const struct job_lane *lane,
                                        uint32_t guess)
{
    /* Entries move when a set is closed. The search is short, because the page's contents are not trusted. */
    for (uint32_t k = 0; k < p->lane_count && k < SEARCH_MAX; k++) {
        const struct job_lane *old = &p->lanes[(guess + k) % p->lane_count];
        if (old->page.generation == lane->page.generation && old->page.lane == lane->page.lane &&
            old->page.sending == lane->page.sending) {
            return old;
        }
    }
    return NULL;
}

static uint64_t rate(uint64_t before, uint64_t now, int64_t ns)
{
    const double bps = now > before ? (double)(now - before) * 8e9 / (double)ns : 0;

    return bps < 1e18 ? (uint64_t)bps : 0; /* no NIC is so fast: the page is wrong */
}

void jobs_compare(struct jobs *jobs, struct job_process *p, const struct job_page_header *header,
                  struct job_lane *fresh, uint32_t count, struct mono now)
{
    const int64_t elapsed_ns = p->known && header->written > p->header.written &&
                                       header->written < INT64_MAX / 2 &&
                                       p->header.written > INT64_MIN / 2
                                   ? header->written - p->header.written
                                   : 0;

    if (!p->known) {
        note(jobs, p, header, JOB_EVENT_STARTED, now);
    }
    p->rate_in_bps = p->rate_out_bps = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct job_lane *before = find_lane(p, &fresh[i], i);
        fresh[i].rate_bps = 0;
        if (before == NULL || elapsed_ns <= 0) {
            continue;
        }
        fresh[i].rate_bps = rate(before->page.bytes, fresh[i].page.bytes, elapsed_ns);
        *(fresh[i].page.sending ? &p->rate_out_bps : &p->rate_in_bps) += fresh[i].rate_bps;
        compare_lane(jobs, p, header, &before->page, &fresh[i].page, now);
    }
    if (p->known && header->parted > p->header.parted) {
        note(jobs, p, header, JOB_EVENT_PARTED, now)->count =
            (uint32_t)(header->parted - p->header.parted);
    }
}

void jobs_note_end(struct jobs *jobs, const struct job_process *p, struct mono now)
{
    note(jobs, p, &p->header, p->state == JOB_KILLED ? JOB_EVENT_KILLED : JOB_EVENT_ENDED, now);
}

uint64_t jobs_events(const struct jobs *jobs, uint64_t *ret_first)
{
    *ret_first = jobs->event_count > JOB_EVENT_KEPT ? jobs->event_count - JOB_EVENT_KEPT : 0;
    return jobs->event_count;
}

const struct job_event *jobs_event(const struct jobs *jobs, uint64_t number)
{
    return &jobs->events[number % JOB_EVENT_KEPT];
}

const char *job_state_name(enum job_state state)
{
    static const char *const names[] = {"running", "idle", "parted", "ended", "killed"};

    return (size_t)state < ARRAY_COUNT(names) ? names[state] : "unknown";
}

const char *job_event_name(enum job_event_kind kind)
{
    static const char *const names[] = {"started", "failover", "failback", "repath",
                                        "parted",  "ended",    "killed"};

    return (size_t)kind < ARRAY_COUNT(names) ? names[kind] : "unknown";
}
