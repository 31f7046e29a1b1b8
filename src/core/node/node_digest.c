/* node_digest.c: the times in digests: fleet time in packets, this host's clock here. */
#include "core/node/internal.h"

#define DIGEST_AGE_NS   (2 * NS_PER_S)
#define DIGEST_AHEAD_NS (50 * NS_PER_MS) /* between clocks of two hosts that are in step */

bool node_digest_fill(const struct node *n, uint32_t local, struct probe *probe)
{
    const struct member *m = &n->members[n->member_of[local]];

    if (!m->clock || m->published.phase != CLOCK_TRACK ||
        !node_fleet_time(n, n->now, &probe->digest.made)) {
        return false;
    }
    probe->state = (enum probe_state)m->published.phase;
    probe->timeline = m->published.timeline;
    probe->epoch = m->published.epoch;
    probe->timeline_age_s = m->published.timeline_age_s;
    return true;
}

void node_digest_heard(struct node *n, struct mono now, const struct node_receive *event)
{
    const struct probe *probe = &event->probe;
    const struct member *m = &n->members[n->member_of[event->local]];
    struct fleet_time fleet;

    if (!m->clock || m->published.phase != CLOCK_TRACK ||
        m->published.timeline != probe->timeline || m->published.epoch != probe->epoch ||
        !node_fleet_time(n, now, &fleet)) {
        return;
    }
    const int64_t age = fleet.ns - probe->digest.made.ns; /* both are within TIME_NS_MAX */
    if (age > DIGEST_AGE_NS || age < -DIGEST_AHEAD_NS) {
        n->counters.stale++;
        return;
    }
    if (mesh_on_digest(n->mesh, now, event->local, probe, mono_add(now, span_ns(-age)))) {
        node_incident_news(n, now);
    }
}
