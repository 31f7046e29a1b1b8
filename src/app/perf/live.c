/* live.c: `foliot perf --live`: prints each lane as its receiver reports it, once a second, from the ranks' own job pages. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/foliot_text.h"
#include "app/perf/perf.h"
#include "base/time.h"
#include "service/agent/jobs.h"

#define LOOK_NS NS_PER_S

struct perf_live {
    struct jobs *jobs;
    char folder[64];
    int64_t next_ns;
    bool redraw;
};

int perf_live_open(struct perf_live **ret_live)
{
    struct perf_live *live = calloc(1, sizeof(*live));
    const char *folders[1];
    int r = -ENOMEM;

    if (live != NULL) {
        snprintf(live->folder, sizeof(live->folder), "/tmp/foliot-perf-XXXXXX");
        r = mkdtemp(live->folder) == NULL ? -errno : 0;
        folders[0] = live->folder;
        r = r < 0 ? r : jobs_new(&live->jobs, folders, 1);
    }
    if (r < 0) {
        free(live);
        return r;
    }
    setenv("FOLIOT_JOB_DIR", live->folder, 1);
    live->next_ns = perf_now_ns() + LOOK_NS;
    live->redraw = isatty(STDERR_FILENO) != 0;
    *ret_live = live;
    return 0;
}

void perf_live_close(struct perf_live *live)
{
    const struct dirent *entry;

    if (live == NULL) {
        return;
    }
    jobs_free(live->jobs);
    DIR *folder = opendir(live->folder);
    /* pages of ranks that were killed */
    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        (void)unlinkat(dirfd(folder), entry->d_name, 0);
    }
    if (folder != NULL) {
        closedir(folder);
    }
    (void)rmdir(live->folder);
    free(live);
}

static struct cell text_end(const struct job_page_header *h, const char *nic, uint32_t pid)
{
    return h != NULL && h->ranks != 0 ? text_format("%s (rank %u)", nic, h->rank)
                                      : text_format("%s (pid %u)", nic, pid);
}

/* The peer's rank, if its page is among those read here. */
static const struct job_page_header *peer_of(const struct perf_live *live,
                                             const struct job_page_lane *lane)
{
    for (uint32_t i = 0; i < jobs_count(live->jobs); i++) {
        const struct job_process *p = jobs_get(live->jobs, i);
        if (p->known && p->header.pid == lane->peer_pid) {
            return &p->header;
        }
    }
    return NULL;
}

/* If the clocks aren't synchronised, only the excess above the least delay has a meaning. */
static struct cell text_delay(const struct job_page_lane *lane, uint32_t ns)
{
    if (lane->sending || ns == JOB_PAGE_NS_NONE) {
        return text_format("–");
    }
    return lane->bound_ns != JOB_PAGE_NS_NONE
               ? text_ns(ns)
               : text_format("+%s",
                             text_ns(ns > lane->owd_ns_floor ? ns - lane->owd_ns_floor : 0).text);
}

static void print_lane(const struct perf_live *live, const struct job_process *p,
                       const struct job_lane *l)
{
    const struct job_page_lane *lane = &l->page;
    const struct cell own = text_end(&p->header, lane->own_nic, p->header.pid);
    const struct cell peer = text_end(peer_of(live, lane), lane->peer_nic, lane->peer_pid);

    fprintf(stderr, "%-20s → %-20s %4u%s %-10s %8.1f Mbit/s  %10s %10s  %u\n",
            lane->sending ? own.text : peer.text, lane->sending ? peer.text : own.text, lane->lane,
            lane->standby ? "s" : " ", lane_state_name((enum lane_state)lane->state),
            (double)l->rate_bps / 1e6, text_delay(lane, lane->owd_ns_p50).text,
            text_delay(lane, lane->owd_ns_p99).text, lane->failovers);
}

/* Each lane once: from its receiver, which measures the delay. The sender's report is shown only if the lane is not well. */
static void print_frame(const struct perf_live *live)
{
    uint64_t first;
    const uint64_t events = jobs_events(live->jobs, &first);

    fprintf(stderr, "%s%-20s   %-20s %5s %-10s %15s  %10s %10s  %s\n",
            live->redraw ? "\033[H\033[J" : "\n", "FROM", "TO", "LANE", "STATE", "RATE",
            "DELAY p50", "p99", "FAILED");
    for (uint32_t i = 0; i < jobs_count(live->jobs); i++) {
        const struct job_process *p = jobs_get(live->jobs, i);
        for (uint32_t k = 0; p->known && p->fd >= 0 && k < p->lane_count; k++) {
            const struct job_page_lane *lane = &p->lanes[k].page;
            if (!lane->sending || lane->state != LANE_ACTIVE) {
                print_lane(live, p, &p->lanes[k]);
            }
        }
    }
    for (uint64_t i = events > first + 5 ? events - 5 : first; i < events; i++) {
        const struct job_event *e = jobs_event(live->jobs, i);
        if (e->lane != UINT32_MAX) {
            fprintf(stderr, "rank %u: lane %u, %s → %s: %s, %s\n", e->rank, e->lane, e->own_nic,
                    e->peer_nic, job_event_name(e->kind), lane_reason_name(e->reason));
        }
    }
}

void perf_live_look(struct perf_live *live)
{
    const int64_t now = perf_now_ns();

    if (live != NULL && now >= live->next_ns) {
        live->next_ns = now + LOOK_NS;
        jobs_look(live->jobs, (struct mono){now});
        print_frame(live);
    }
}
