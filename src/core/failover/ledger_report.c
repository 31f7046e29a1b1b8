/* ledger_report.c: the reports to the sender, and their times. All counts are cumulative, so any report may be lost. */
#include <string.h>

#include "core/failover/ledger_internal.h"

#define REPEAT_MAX_NS (100 * NS_PER_MS)

void ledger_report_init(struct ledger *l)
{
    struct ledger_config *c = &l->config;

    c->report_chunks = c->report_chunks != 0 ? c->report_chunks : 2;
    c->report_bytes = c->report_bytes != 0 ? c->report_bytes : 256 << 10;
    c->report_delay.ns = c->report_delay.ns > 0 ? c->report_delay.ns : 500 * NS_PER_US;
    c->fence_repeat.ns = c->fence_repeat.ns > 0 ? c->fence_repeat.ns : 2 * NS_PER_MS;
    c->report_repeat.ns = c->report_repeat.ns > 0 ? c->report_repeat.ns : 10 * NS_PER_MS;
    l->repeat_at = MONO_NEVER;
}

void ledger_report_all(struct ledger *l)
{
    for (uint32_t i = 0; i < LANE_MAX; i++) {
        l->lanes[i].taken_reported = UINT64_MAX;
    }
    for (uint32_t i = 0; i < l->open_count; i++) {
        l->open[i]->news = true;
    }
    l->news = true;
}

void ledger_fence_tell(struct ledger *l, uint32_t lane)
{
    struct in_lane *x = &l->lanes[lane];

    l->fences |= 1u << lane;
    x->fence_at = (struct mono){INT64_MIN};
    x->fence_gap = l->config.fence_repeat;
}

void ledger_fence_heard(struct ledger *l, uint32_t lane)
{
    l->fences &= ~(1u << lane);
}

void ledger_report_again(struct ledger *l)
{
    ledger_report_all(l);
}

void ledger_report_chunk(struct ledger *l, struct mono now, uint32_t lane, uint32_t bytes)
{
    struct in_lane *x = &l->lanes[lane];

    if (x->unreported_chunks == 0) {
        x->unreported_since = now;
    }
    x->unreported_chunks++;
    x->unreported_bytes += bytes;
}

/* The limit of bytes in flight is a window above the bytes that have arrived. */
void ledger_window_update(struct ledger *l, struct in_comm *c)
{
    const uint64_t granted =
        c->window > UINT64_MAX - c->unique ? UINT64_MAX : c->unique + c->window;

    /* reported when half of a window is used up, not for every chunk */
    if (c->window == UINT64_MAX ? c->granted != granted
                                : granted >= c->granted + c->window / 2 || granted < c->granted) {
        c->granted = granted;
        c->news = l->news = true;
    }
}

void ledger_comm_window(struct ledger *l, uint32_t comm, uint64_t bytes)
{
    struct in_comm *c = ledger_comm_find(l, comm);

    if (c != NULL && c->window != bytes) {
        c->window = bytes;
        ledger_window_update(l, c);
    }
}

bool ledger_comm_arrived(const struct ledger *l, uint32_t comm, uint64_t *ret_bytes)
{
    const struct in_comm *c = ledger_comm_find(l, comm);

    if (c == NULL) {
        return false;
    }
    *ret_bytes = c->unique;
    return true;
}

static bool lane_due(const struct ledger *l, const struct in_lane *x, struct mono now)
{
    return x->unreported_chunks > 0 &&
           (x->unreported_chunks >= l->config.report_chunks ||
            x->unreported_bytes >= l->config.report_bytes ||
            !mono_before(now, mono_add(x->unreported_since, l->config.report_delay)));
}

/* Repeats for receives that get nothing: the report that announced them may be lost. */
static void repeats(struct ledger *l, struct mono now)
{
    struct mono next = MONO_NEVER;

    for (uint32_t i = 0; i < l->open_count; i++) {
        struct in_comm *c = l->open[i];
        if (c->repeat_at.ns == INT64_MAX) {
            continue;
        }
        if (c->placed == c->posted) {
            c->repeat_at = MONO_NEVER;
            continue;
        }
        if (!mono_before(now, c->repeat_at)) {
            c->news = l->news = true;
            c->lane = -1; /* any other lane, because that one may be the reason */
            c->repeat.ns = c->repeat.ns * 2 < REPEAT_MAX_NS ? c->repeat.ns * 2 : REPEAT_MAX_NS;
            c->repeat_at = mono_add(now, c->repeat);
        }
        next = mono_min(next, c->repeat_at);
    }
    l->repeat_at = next;
}

static struct mono fences_due(const struct ledger *l)
{
    struct mono at = MONO_NEVER;

    for (uint32_t lanes = l->fences; lanes != 0; lanes &= lanes - 1) {
        at = mono_min(at, l->lanes[__builtin_ctz(lanes)].fence_at);
    }
    return at;
}

/* A fence is reported until it is heard: its lane's chunks wait for that, and the sender does not ask. */
static void tell_fences(struct ledger *l, struct mono now, struct lane_report *report)
{
    for (uint32_t lanes = l->fences; lanes != 0; lanes &= lanes - 1) {
        const uint32_t lane = (uint32_t)__builtin_ctz(lanes);
        struct in_lane *x = &l->lanes[lane];
        report->lanes[report->lane_count++] =
            (struct lane_state_lane){.lane = (uint16_t)lane,
                                     .state = LANE_DOWN,
                                     .epoch = x->epoch,
                                     .taken = x->taken,
                                     .fenced_below = x->barred,
                                     .owd_min_ns = LANE_OWD_UNKNOWN,
                                     .owd_ns = LANE_OWD_UNKNOWN};
        x->fence_at = mono_add(now, x->fence_gap);
        x->fence_gap.ns = x->fence_gap.ns * 2 < REPEAT_MAX_NS ? x->fence_gap.ns * 2 : REPEAT_MAX_NS;
    }
}

static struct in_comm *comm_with_news(struct ledger *l)
{
    for (uint32_t i = 0; l->news && i < l->open_count; i++) {
        struct in_comm *c = l->open[(l->report_turn + i) % l->open_count];
        if (c->news) {
            l->report_turn = c->place;
            return c;
        }
    }
    l->news = false;
    return NULL;
}

bool ledger_next_report(struct ledger *l, struct mono now, struct lane_report *ret_report,
                        int *ret_lane)
{
    const bool fences = !mono_before(now, fences_due(l));
    bool due = fences;

    if (!mono_before(now, l->repeat_at)) {
        repeats(l, now);
    }
    struct in_comm *c = comm_with_news(l);
    *ret_lane = c != NULL ? c->lane : -1;
    for (uint32_t lanes = l->lanes_open; lanes != 0; lanes &= lanes - 1) {
        const int i = __builtin_ctz(lanes);
        if (lane_due(l, &l->lanes[i], now)) {
            due = true;
            *ret_lane = *ret_lane < 0 ? i : *ret_lane;
        }
    }
    if (c == NULL && !due) {
        return false;
    }
    *ret_report = (struct lane_report){.comm = LANE_COMM_NONE, .sequence = ++l->sequence};
    if (c != NULL) {
        c->news = false;
        ret_report->comm = c->number;
        ret_report->placed = c->placed;
        ret_report->posted = c->posted;
        ret_report->granted = c->granted;
    }
    for (uint32_t lanes = l->lanes_open; lanes != 0; lanes &= lanes - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(lanes);
        struct in_lane *x = &l->lanes[i];
        if (x->taken == x->taken_reported) {
            continue;
        }
        ret_report->lanes[ret_report->lane_count++] =
            (struct lane_state_lane){.lane = (uint16_t)i,
                                     .state = LANE_ACTIVE,
                                     .epoch = x->epoch,
                                     .taken = x->taken,
                                     .owd_min_ns = LANE_OWD_UNKNOWN,
                                     .owd_ns = LANE_OWD_UNKNOWN};
        x->taken_reported = x->taken;
        x->unreported_chunks = 0;
        x->unreported_bytes = 0;
        x->unreported_since = MONO_NEVER;
    }
    if (*ret_lane >= 0 && !l->lanes[*ret_lane].open) {
        *ret_lane = -1;
    }
    if (fences) {
        tell_fences(l, now, ret_report);
        *ret_lane = LEDGER_EVERY_LANE;
    }
    return true;
}

struct mono ledger_deadline(const struct ledger *l)
{
    struct mono at = mono_min(l->repeat_at, fences_due(l));

    if (l->news) {
        return (struct mono){INT64_MIN};
    }
    for (uint32_t lanes = l->lanes_open; lanes != 0; lanes &= lanes - 1) {
        const struct in_lane *x = &l->lanes[__builtin_ctz(lanes)];
        if (x->unreported_chunks == 0) {
            continue;
        }
        if (x->unreported_chunks >= l->config.report_chunks ||
            x->unreported_bytes >= l->config.report_bytes) {
            return (struct mono){INT64_MIN};
        }
        at = mono_min(at, mono_add(x->unreported_since, l->config.report_delay));
    }
    return at;
}
