/* answer_jobs.c: "jobs" and "lanes": what the pages of jobs on this host contain. */
#include "base/ip.h"
#include "service/agent/answers.h"

#include <arpa/inet.h>
#include <string.h>

static void put_ns(struct json_writer *j, const char *key, uint32_t ns)
{
    json_put_int_if(j, key, ns != JOB_PAGE_NS_NONE, ns);
}

static void put_address(struct json_writer *j, const char *key, const uint8_t address[16])
{
    char text[IP_TEXT_SIZE];

    json_put_string(j, key, ip_is_none(address) ? NULL : ip_text(address, text));
}

static void put_ends(struct json_writer *j, const struct job_page_lane *lane)
{
    json_put_uint(j, "lane", lane->lane);
    json_put_string(j, "direction", lane->sending ? "out" : "in");
    json_put_string(j, "own_nic", lane->own_nic);
    json_put_string(j, "peer_host", lane->peer_host);
    json_put_uint(j, "peer_pid", lane->peer_pid);
    json_put_string(j, "peer_nic", lane->peer_nic);
}

static void put_delays(struct json_writer *j, const struct job_page_lane *lane)
{
    const bool measured = !lane->sending;

    json_put_int_if(j, "owd_ns_floor", measured && lane->owd_ns_floor != JOB_PAGE_NS_NONE,
                    lane->owd_ns_floor);
    json_put_int_if(j, "owd_ns_mean", measured && lane->owd_ns_mean != JOB_PAGE_NS_NONE,
                    lane->owd_ns_mean);
    json_put_int_if(j, "owd_ns_max", measured && lane->owd_ns_max != JOB_PAGE_NS_NONE,
                    lane->owd_ns_max);
    put_ns(j, "owd_ns_p50", measured ? lane->owd_ns_p50 : JOB_PAGE_NS_NONE);
    put_ns(j, "owd_ns_p99", measured ? lane->owd_ns_p99 : JOB_PAGE_NS_NONE);
    put_ns(j, "bound_ns", measured ? lane->bound_ns : JOB_PAGE_NS_NONE);
    put_ns(j, "queued_ns_p50", measured ? lane->queued_ns_p50 : JOB_PAGE_NS_NONE);
    put_ns(j, "queued_ns_p99", measured ? lane->queued_ns_p99 : JOB_PAGE_NS_NONE);
    put_ns(j, "consumed_ns_p50", measured ? lane->consumed_ns_p50 : JOB_PAGE_NS_NONE);
    put_ns(j, "consumed_ns_p99", measured ? lane->consumed_ns_p99 : JOB_PAGE_NS_NONE);
}

static void put_lane(struct json_writer *j, const struct job_lane *l)
{
    const struct job_page_lane *lane = &l->page;

    json_put_object(j, NULL);
    json_put_uint(j, "set", lane->set);
    put_ends(j, lane);
    put_address(j, "own_address", lane->own_address);
    json_put_uint(j, "own_port", lane->own_port);
    put_address(j, "peer_address", lane->peer_address);
    json_put_uint(j, "peer_port", lane->peer_port);
    json_put_string(j, "state", lane_state_name((enum lane_state)lane->state));
    json_put_string(
        j, "reason",
        lane->reason == LANE_REASON_NONE ? NULL : lane_reason_name((enum lane_reason)lane->reason));
    json_put_int(j, "since_ns", (int64_t)lane->since_ms * NS_PER_MS);
    json_put_bool(j, "standby", lane->standby != 0);
    json_put_string(j, "carrier", lane->pair != 0 ? "queue-pair" : "tcp");
    json_put_int_if(j, "traffic_class", lane->sending != 0, lane->traffic_class);
    json_put_int_if(j, "service_level", lane->sending != 0 && lane->pair != 0,
                    lane->pair >> JOB_PAGE_SL_SHIFT);
    json_put_int_if(j, "path_port", lane->sending != 0 && (lane->pair & JOB_PAGE_PORT) != 0,
                    lane->path_port);
    json_put_uint(j, "epoch", lane->epoch);
    json_put_uint(j, "failovers", lane->failovers);
    json_put_uint(j, "chunks", lane->chunks);
    json_put_uint(j, "bytes", lane->bytes);
    json_put_uint(j, "resent", lane->resent);
    json_put_uint(j, "rate_bps", l->rate_bps);
    json_put_int_if(j, "capacity_bps", lane->sending && lane->rate_bps != 0,
                    lane->rate_bps < INT64_MAX ? (int64_t)lane->rate_bps : INT64_MAX);
    put_delays(j, lane);
    json_put_end(j);
}

struct lane_sums {
    uint32_t usable, down, peers;
    uint32_t p50_most, p99_most;
    /* largest p99 above the lane's own floor; NULL: no lane is measured */
    const struct job_page_lane *worst;
};

static bool same_peer(const struct job_page_lane *x, const struct job_page_lane *y)
{
    return x->peer_pid == y->peer_pid &&
           memcmp(x->peer_host, y->peer_host, sizeof(x->peer_host)) == 0;
}

/* In a host's pages, lanes to the same peer are neighbours in the list. A peer may have lanes in both directions. Each
 * direction is counted separately, so that a peer counts once. */
static struct lane_sums sum_lanes(const struct job_process *p)
{
    struct lane_sums sums = {.p50_most = JOB_PAGE_NS_NONE, .p99_most = JOB_PAGE_NS_NONE};
    uint32_t peers[2] = {0, 0};
    int64_t worst_ns = -1;

    for (uint32_t i = 0; i < p->lane_count; i++) {
        const struct job_page_lane *lane = &p->lanes[i].page;
        sums.usable += lane->state == LANE_ACTIVE || lane->state == LANE_TRIAL;
        sums.down += lane->state == LANE_DOWN || lane->state == LANE_SUSPECT;
        peers[lane->sending != 0] += i == 0 || lane->sending != p->lanes[i - 1].page.sending ||
                                     !same_peer(lane, &p->lanes[i - 1].page);
        if (!lane->sending && lane->owd_ns_p99 != JOB_PAGE_NS_NONE &&
            (int64_t)lane->owd_ns_p99 - lane->owd_ns_floor > worst_ns) {
            worst_ns = (int64_t)lane->owd_ns_p99 - lane->owd_ns_floor;
            sums.worst = lane;
        }
    }
    sums.peers = peers[0] > peers[1] ? peers[0] : peers[1];
    return sums;
}

static void put_worst(struct json_writer *j, const struct job_page_lane *worst)
{
    if (worst == NULL) {
        json_put_null(j, "worst");
        return;
    }
    json_put_object(j, "worst");
    put_ends(j, worst);
    put_delays(j, worst);
    json_put_end(j);
}

static const char *mode_name(uint8_t mode)
{
    static const char *const names[] = {"observe", "failover", "full"};

    return mode < ARRAY_COUNT(names) ? names[mode] : NULL;
}

static void put_counts(struct agent *a, struct json_writer *j, const struct job_process *p)
{
    const struct lane_sums sums = sum_lanes(p);

    json_put_uint(j, "comms", p->header.comms);
    json_put_uint(j, "sets", p->header.sets);
    json_put_uint(j, "peers", sums.peers);
    json_put_uint(j, "lanes", p->header.lane_count);
    json_put_uint(j, "lanes_usable", sums.usable);
    json_put_uint(j, "lanes_down", sums.down);
    json_put_bool(j, "lanes_cut", p->lanes_cut);
    json_put_uint(j, "bytes_out", p->header.bytes_out);
    json_put_uint(j, "bytes_in", p->header.bytes_in);
    json_put_uint(j, "rate_out_bps", p->rate_out_bps);
    json_put_uint(j, "rate_in_bps", p->rate_in_bps);
    json_put_uint(j, "resent", p->header.resent);
    json_put_uint(j, "failovers", p->header.failovers);
    json_put_uint(j, "repaths", p->header.repaths);
    json_put_uint(j, "parted", p->header.parted);
    json_put_int(j, "stalled_ns", p->header.stalled_ns);
    put_worst(j, sums.worst);
    json_put_int_if(j, "ended_ns", p->fd < 0, mono_sub(a->now, p->ended).ns);
}

static void put_process(struct agent *a, struct json_writer *j, const struct job_process *p,
                        bool lanes)
{
    const struct job_page_header *h = &p->header;

    json_put_object(j, NULL);
    json_put_string(j, "job", h->job[0] != 0 ? h->job : NULL);
    json_put_int_if(j, "rank", h->rank != UINT32_MAX && h->ranks != 0, h->rank);
    json_put_int_if(j, "ranks", h->ranks != 0, h->ranks);
    json_put_uint(j, "pid", h->pid);
    json_put_string(j, "host", h->host);
    json_put_uint(j, "user", p->user);
    json_put_string(j, "state", job_state_name(p->state));
    json_put_string(j, "mode", mode_name(h->mode));
    json_put_bool(j, "fleet_time", h->synced != 0);
    json_put_int_if(j, "age_ns", h->written > h->started && h->started > 0,
                    h->started > 0 ? h->written - h->started : 0);
    json_put_int(j, "silent_ns", mono_sub(a->now, p->changed).ns);
    put_counts(a, j, p);
    if (lanes) {
        json_put_array(j, "lane_list");
        for (uint32_t i = 0; i < p->lane_count; i++) {
            put_lane(j, &p->lanes[i]);
        }
        json_put_end(j);
    }
    json_put_end(j);
}

static void put_event(struct agent *a, struct json_writer *j, const struct job_event *e)
{
    int64_t fleet_ns = 0;

    json_put_object(j, NULL);
    json_put_string(j, "event", job_event_name(e->kind));
    json_put_string(j, "job", e->job[0] != 0 ? e->job : NULL);
    json_put_int_if(j, "rank", e->rank != UINT32_MAX, e->rank);
    json_put_uint(j, "pid", e->pid);
    json_put_string(j, "host", e->host);
    json_put_uint(j, "user", e->user);
    json_put_int(j, "at_mono_ns", e->at.ns);
    json_put_int_if(j, "at_fleet_ns", agent_fleet_ns(a, e->at, &fleet_ns), fleet_ns);
    answer_put_utc(a, j, "at_utc_ns", e->at);
    json_put_uint(j, "count", e->count);
    if (e->lane != UINT32_MAX) {
        json_put_uint(j, "lane", e->lane);
        json_put_string(j, "reason", lane_reason_name(e->reason));
        json_put_string(j, "own_nic", e->own_nic);
        json_put_string(j, "peer_host", e->peer_host);
        json_put_uint(j, "peer_pid", e->peer_pid);
        json_put_string(j, "peer_nic", e->peer_nic);
    } else {
        json_put_null(j, "lane");
    }
    json_put_end(j);
}

static void put_all(struct agent *a, struct json_writer *j, bool lanes)
{
    uint64_t first;
    const uint64_t end = jobs_events(a->jobs, &first);

    json_put_array(j, "processes");
    for (uint32_t i = 0; i < jobs_count(a->jobs); i++) {
        const struct job_process *p = jobs_get(a->jobs, i);
        if (p->known) {
            put_process(a, j, p, lanes);
        }
    }
    json_put_end(j);
    json_put_array(j, "events");
    for (uint64_t i = first; i < end; i++) {
        put_event(a, j, jobs_event(a->jobs, i));
    }
    json_put_end(j);
    json_put_uint(j, "pages_refused", jobs_refused(a->jobs));
}

void answer_jobs(struct agent *a, struct json_writer *j)
{
    put_all(a, j, false);
}

void answer_lanes(struct agent *a, struct json_writer *j)
{
    put_all(a, j, true);
}
