/* report.c: the mesh's results for callers, and the delays that callers pass in. */
#include "core/mesh/internal.h"

int mesh_edge_capacity(const struct mesh *m)
{
    return m->edge_capacity;
}

uint32_t mesh_generation(const struct mesh *m)
{
    return m->generation;
}

bool mesh_edge_info(const struct mesh *m, struct mono now, int edge,
                    struct mesh_edge_info *ret_info)
{
    const struct mesh_edge *e = &m->edges[edge];

    (void)now;
    if (edge < 0 || edge >= m->edge_capacity || !e->used) {
        return false;
    }
    const int64_t low = e->owd_min[0] < e->owd_min[1] ? e->owd_min[0] : e->owd_min[1];
    *ret_info = (struct mesh_edge_info){.local = e->local,
                                        .peer = e->peer,
                                        .nic = e->nic,
                                        .host = e->host,
                                        .reason = e->reason,
                                        .path_count = e->path_count,
                                        .peer_path_count = e->peer_path_count,
                                        .silent = e->silent,
                                        .talks = e->talks,
                                        .version = e->version,
                                        .heard = e->heard,
                                        .rtt_ns_min = low == INT64_MAX ? -1 : low,
                                        .full_tried = e->full_past_len,
                                        .full_lost = e->full_lost,
                                        .generation = e->generation};
    return true;
}

bool mesh_path_brief(const struct mesh *m, struct mono now, int edge, uint8_t path,
                     enum finding_direction direction, struct path_report *ret_report)
{
    const struct mesh_edge *e = &m->edges[edge];
    const bool out = direction == DIRECTION_OUT;
    const struct path_half *half = out ? &e->out[path].half : &e->in[path].half;

    if (!e->used || path >= m->config.path_limit ||
        (out ? path >= e->path_count : !e->in[path].known)) {
        return false;
    }
    const struct fates recent = path_half_recent(half, now);
    const bool timed =
        half->brief_count > 0 && delay_is_fresh(half->delay, now, span_ns(OWD_WINDOW_NS));
    *ret_report = (struct path_report){
        .state = half->state,
        .source_port = half->port,
        .hop_count = out ? e->out[path].hop_count : 0,
        .signature = out ? e->out[path].signature : 0,
        .since = half->since,
        .heard = half->heard,
        .sent = half->sent,
        .lost = half->lost,
        .reordered = half->reordered,
        .lost_recent = recent.lost,
        .sent_recent = recent.sent,
        .deaths = half->deaths,
        .owd_ns_last = timed ? half->delay->last : INT64_MIN,
        .owd_ns_min = timed ? half->brief_min : INT64_MIN,
        .owd_ns_p50 = timed ? half->brief_p50 : INT64_MIN,
        .owd_ns_p99 = INT64_MIN,
        .owd_ns_max = INT64_MIN,
        .owd_count = timed ? half->brief_count : 0,
        .owd_ns_p50_long = INT64_MIN,
        .job_ns_p50 = INT64_MIN,
        .job_ns_max = INT64_MIN,
        .bound_ns = INT64_MIN,
        .hard_ns = INT64_MIN,
    };
    return true;
}

bool mesh_path_report(const struct mesh *m, struct mono now, int edge, uint8_t path,
                      enum finding_direction direction, struct path_report *ret_report)
{
    const struct delay_window *d;

    if (!mesh_path_brief(m, now, edge, path, direction, ret_report)) {
        return false;
    }
    d = direction == DIRECTION_OUT ? m->edges[edge].out[path].half.delay
                                   : m->edges[edge].in[path].half.delay;
    ret_report->owd_ns_p50_long = delay_quantile_longer(d, 0.5);
    if (!delay_is_fresh(d, now, span_ns(OWD_WINDOW_NS))) {
        return true;
    }
    ret_report->owd_ns_min = delay_quantile(d, 0);
    ret_report->owd_ns_p50 = delay_quantile(d, 0.5);
    ret_report->owd_ns_p99 = delay_quantile(d, 0.99);
    ret_report->owd_ns_max = delay_quantile(d, 1);
    ret_report->owd_count = (int64_t)(d->now.head.count + d->before.head.count);
    delay_singles(d, &ret_report->job_ns_p50, &ret_report->job_ns_max);
    return true;
}

static void edge_minima(struct mesh_edge *e, struct mono now)
{
    if (mono_sub(now, e->min_start).ns < OWD_WINDOW_NS / 2) {
        return;
    }
    e->out_min[1] = e->out_min[0];
    e->in_min[1] = e->in_min[0];
    e->owd_min[1] = e->owd_min[0];
    e->out_min[0] = e->in_min[0] = e->owd_min[0] = INT64_MAX;
    e->min_start = now;
}

void mesh_on_delay(struct mesh *m, struct mono now, int edge, uint8_t path,
                   enum finding_direction direction, enum delay_of of, int64_t owd_ns)
{
    struct mesh_edge *e = &m->edges[edge];
    struct path_half *half = path_half_of(e, path, direction == DIRECTION_OUT);
    int64_t *low = direction == DIRECTION_OUT ? e->out_min : e->in_min;

    if (!e->used || path >= m->config.path_limit) {
        return;
    }
    if (direction == DIRECTION_OUT) {
        trial_on_delay(m, now, edge, path, of != DELAY_OF_JOB, owd_ns);
    } else if (half->brief_count > 0) {
        const bool waited = owd_ns - half->brief_min > m->config.queue_ns[e->local];
        loss_share_add(&m->nics[e->local].waits, now, span_ns(SHARE_NIC_NS), waited, 1);
    }
    if (of == DELAY_OF_PROBE) {
        return;
    }
    if (of == DELAY_OF_JOB) {
        delay_add_single(half->delay, owd_ns);
        return;
    }
    edge_minima(e, now);
    low[0] = owd_ns < low[0] ? owd_ns : low[0];
    if (e->out_min[0] != INT64_MAX && e->in_min[0] != INT64_MAX) {
        e->owd_min[0] = e->out_min[0] + e->in_min[0];
    }
    delay_add(half->delay, now, span_ns(OWD_WINDOW_NS), owd_ns);
    if (half->brief_count == 0 || mono_sub(now, half->brief_at).ns >= NS_PER_S) {
        half->brief_at = now;
        half->brief_p50 = delay_quantile(half->delay, 0.5);
        half->brief_min = delay_quantile(half->delay, 0);
        half->brief_count = (int64_t)(half->delay->now.head.count + half->delay->before.head.count);
    }
}

void mesh_stamps_get(const struct mesh *m, uint32_t local, uint64_t *ret_stamped,
                     uint64_t *ret_missing)
{
    *ret_stamped = m->nics[local].stamped;
    *ret_missing = m->nics[local].stamps_missing;
}

void mesh_counters_get(const struct mesh *m, struct mesh_counters *ret_counters)
{
    *ret_counters = m->counters;
}
