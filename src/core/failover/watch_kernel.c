/* watch_kernel.c: the kernel's reports: that the path works, and that it loses. */
#include "core/failover/watch_internal.h"

#define LOSS_SEGMENTS 200 /* fewer show nothing */
#define LOSS_WINDOW   5000
#define LOSS_MANY     0.05
#define LOSS_SOME     0.02  /* of >= 1,000 segments */
#define LOSS_FEW      0.005 /* of >= 4,000 */
#define LOSS_NONE     0.001 /* a healthy sibling */
#define QUEUE_NS      (2 * NS_PER_MS)

/* The share sent twice since the lane's window began; < 0: too few. */
static double loss_now(const struct wlane *x)
{
    const uint64_t segments = x->seen_segments - x->segments;

    return segments < LOSS_SEGMENTS ? -1 : (double)(x->seen_resent - x->resent) / (double)segments;
}

/* True if too much is sent twice on this lane, without a queue, while its siblings are healthy: a path that loses a little. */
static bool lossy(const struct watch *w, uint32_t lane)
{
    const struct wlane *own = &w->lanes[lane];
    const uint64_t segments = own->seen_segments - own->segments;
    const double share = loss_now(own);
    bool sibling = false;

    if (!(share > LOSS_MANY) && !(segments >= 1000 && share > LOSS_SOME) &&
        !(segments >= 4000 && share > LOSS_FEW)) {
        return false;
    }
    if (own->rtt_ns > 2 * own->rtt_ns_min + QUEUE_NS) {
        return false; /* a long queue loses, too: that is congestion */
    }
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        const struct wlane *x = &w->lanes[i];
        if (i == lane || !x->used || !lane_usable(x->state)) {
            continue;
        }
        if (x->loss >= LOSS_NONE || loss_now(x) >= LOSS_NONE) {
            return false; /* all lanes lose: no path would be better */
        }
        sibling = sibling || x->loss >= 0 || loss_now(x) >= 0;
    }
    return sibling;
}

void watch_on_kernel(struct watch *w, struct mono now, uint32_t lane,
                     const struct watch_kernel *kernel)
{
    const uint64_t segments = kernel->segments, resent = kernel->resent;

    if (lane >= LANE_MAX || !w->lanes[lane].used || !lane_connected(w->lanes[lane].state)) {
        return;
    }
    struct wlane *x = &w->lanes[lane];
    x->kernel = kernel->known;
    x->rtt_ns = kernel->rtt.ns;
    x->rtt_ns_var = kernel->rtt_var.ns;
    x->resend_ns = kernel->acked || kernel->idle ? kernel->resend.ns : x->resend_ns;
    x->told = x->told && !kernel->empty;
    const bool settled = x->settled;
    x->settled = kernel->idle && kernel->empty;
    if (kernel->idle) { /* nothing is missing: a process is slow */
        /* Or it waits for the end of a frame with a damaged length. What is sent now completes that frame, its checksum is wrong,
         * and the lane is made anew. */
        if ((x->silent_ns > 0 || settled) && w->owing && watch_waiting(x) &&
            mono_sub(now, x->ping_at).ns >= PING_NS) {
            watch_ping(w, now, lane);
        }
    }
    if (kernel->acked) { /* the path lives */
        w->progress++;
        x->progress++;
        /* the length of its silence is noted, also if the peer has everything now */
        watch_came_back(w, x);
        if (x->state == LANE_SUSPECT && kernel->whole) {
            x->proven = true;
            watch_event(w, now, lane, LANE_EVENT_ACKED, LANE_REASON_NONE);
        }
    } else if (kernel->idle) {
        watch_quiet(w, x);
    } else {
        watch_judge(w, now, lane);
    }
    if (segments < x->segments || resent < x->resent) {
        return;
    }
    x->seen_segments = segments;
    x->seen_resent = resent;
    x->rtt_ns_min = kernel->rtt_min.ns;
    if (lossy(w, lane)) {
        watch_event(w, now, lane, LANE_EVENT_LOST, LANE_REASON_LOSS);
    } else if (segments - x->segments >= LOSS_WINDOW) {
        x->loss = (double)(resent - x->resent) / (double)(segments - x->segments);
        x->segments = segments;
        x->resent = resent;
    }
}
