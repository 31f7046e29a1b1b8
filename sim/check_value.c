/* check_value.c: the measured values, by the names that bounds use. */
#include "sim/check.h"

#include <math.h>
#include <string.h>

#define MS(ns) ((double)(ns) / 1e6)

static uint64_t different_epochs(const struct world *w)
{
    uint64_t count = 0;

    for (int i = 0; i < w->host_count; i++) {
        bool first = w->check->hosts[i].judged;
        for (int k = 0; k < i && first; k++) {
            first =
                !w->check->hosts[k].judged || w->check->hosts[k].epoch != w->check->hosts[i].epoch;
        }
        count += first;
    }
    return count;
}

void check_end(struct world *w)
{
    struct check *c = w->check;
    uint64_t seen[16];
    int count = 0;

    c->epochs_at_end = different_epochs(w);
    for (int i = 0; i < w->host_count; i++) {
        bool known = !c->hosts[i].judged;
        for (int k = 0; k < count && !known; k++) {
            known = seen[k] == c->hosts[i].timeline;
        }
        if (!known && count < 16) {
            seen[count++] = c->hosts[i].timeline;
        }
        struct world_host *h = &w->hosts[i];
        if (h->node != NULL && h->generation > 1 && h->started >= 0) {
            c->restarts++;
            c->restart_back = INT64_MAX;
        }
        if (h->node == NULL || h->generation > 1) {
            continue; /* its counters began at zero */
        }
        uint64_t counted = 0;
        for (int k = 0; k < w->nics_per_host; k++) {
            struct link_report report;
            const struct mono now = {world_raw(w, i, w->now)};
            counted += node_link_get(h->node, (uint32_t)k, now, &report)->downs;
        }
        c->flaps_missed += h->downs > counted ? h->downs - counted : 0;
    }
    c->timelines = (uint64_t)count;
    if (c->invariants != NULL) {
        invariant_end(c->invariants, w);
    }
}

/* ---- values ---- */
static double at_fault(struct world *w, const struct scenario_bound *b, int i)
{
    const struct check_fault *f = &w->check->faults[i];
    const char *what = b->what;

    if (strcmp(what, "fault.detect_ms") == 0) {
        return f->detected >= 0 ? MS(f->detected - f->on) : INFINITY;
    }
    if (strcmp(what, "fault.sure_ms") == 0) {
        return f->sure >= 0 ? MS(f->sure - f->on) : INFINITY;
    }
    if (strcmp(what, "fault.missed") == 0) {
        return f->detected < 0;
    }
    if (strcmp(what, "fault.wrong") == 0) {
        return f->wrong;
    }
    if (strcmp(what, "clock.fault.marked_ms") == 0) {
        return f->marked >= 0 ? MS(f->marked - f->on) : INFINITY;
    }
    if (strcmp(what, "clock.fault.back_ms") == 0) {
        return f->back >= 0 ? MS(f->back - f->on) : INFINITY;
    }
    if (strcmp(what, "clock.fault.late") == 0) {
        return (double)f->late;
    }
    if (strcmp(what, "clock.fault.others") == 0) {
        return (double)f->others;
    }
    if (strcmp(what, "liar.named_ms") == 0) {
        return f->named == f->named_wanted ? MS(f->named_at - f->on) : INFINITY;
    }
    if (strcmp(what, "liar.unnamed") == 0) {
        return f->named_wanted - f->named;
    }
    return NAN;
}

/* The faults that a metric covers, if the bound names none. */
static bool fits(const char *what, enum scenario_fault_kind kind)
{
    const bool clock = kind == FAULT_CLOCK_STEP || kind == FAULT_CLOCK_FREQ ||
                       kind == FAULT_SUSPEND || kind == FAULT_REBOOT || kind == FAULT_NIC_STEER;
    const bool net = kind == FAULT_CARRIER || kind == FAULT_FLAP || kind == FAULT_BLACKHOLE ||
                     kind == FAULT_LOSS || kind == FAULT_DELAY || kind == FAULT_TRUNK ||
                     kind == FAULT_SPINE || kind == FAULT_NIC_VANISH || kind == FAULT_BROWNOUT;

    if (strncmp(what, "clock.fault", 11) == 0) {
        return clock;
    }
    if (strncmp(what, "liar", 4) == 0) {
        return kind == FAULT_LIAR;
    }
    return net || kind == FAULT_CLOCK_STEP;
}

static double over_faults(struct world *w, const struct scenario_bound *b)
{
    const bool worst = strstr(b->what, "_ms") != NULL;
    double value = NAN;

    for (int i = 0; i < w->scenario->fault_count; i++) {
        if (b->fault >= 0 ? i != b->fault : !fits(b->what, w->scenario->fault[i].kind)) {
            continue;
        }
        const double v = at_fault(w, b, i);
        if (isnan(value)) {
            value = v;
        } else {
            value = worst ? fmax(value, v) : value + v;
        }
    }
    return value;
}

static double common_ppm(const struct check_window *win)
{
    if (win->then.at == 0 || win->now.at <= win->last.at) {
        return NAN;
    }
    const double first =
        (double)(win->then.ns - win->first.ns) / (double)(win->then.at - win->first.at);
    const double last = (double)(win->now.ns - win->last.ns) / (double)(win->now.at - win->last.at);
    return fabs(last - first) * 1e6;
}

static double in_window(struct world *w, const char *what, const struct check_window *win)
{
    const double seconds = (double)(win->until - win->from) * 1e-9;
    const struct {
        const char *name;
        double value;
    } values[] = {
        {"clock.error.p50_ns", tally_quantile(&win->pair, 0.5)},
        {"clock.error.p99_ns", tally_quantile(&win->pair, 0.99)},
        {"clock.error.max_ns", win->pair.head.count > 0 ? win->pair_ns_max : NAN},
        {"clock.nic_error.p99_ns", tally_quantile(&win->nic_pair, 0.99)},
        {"clock.rate.common_ppm", common_ppm(win)},
        {"clock.hard.outside", (double)win->hard_outside},
        {"clock.hard.width_ns", tally_quantile(&win->hard_width, 0.5)},
        {"clock.statistical.outside_share",
         win->judged > 0 ? (double)win->statistical_outside / (double)win->judged : NAN},
        {"clock.statistical.width_ns", tally_quantile(&win->statistical_width, 0.5)},
        {"clock.judged", (double)win->judged},
        {"clock.synced_share", win->synced_share_min},
        {"clock.synced_mean", win->running > 0 ? (double)win->synced / (double)win->running : NAN},
        {"clock.backwards", (double)win->backwards},
        {"clock.stale", (double)win->stale},
        {"clock.epochs", (double)win->epochs},
        {"clock.utc_error_ns", win->utc_error_ns},
        {"clock.utc_outside", (double)win->utc_outside},
        {"owd.error.median_ns", tally_quantile(&win->owd, 0.5)},
        {"owd.error.p99_ns", tally_quantile(&win->owd, 0.99)},
        {"false.path", (double)win->false_path},
        {"false.link", (double)win->false_link},
        {"false.step", (double)win->false_step},
        {"false.liar", (double)win->false_liar},
        {"false.any",
         (double)(win->false_path + win->false_link + win->false_step + win->false_liar)},
        {"probes.refused", (double)win->refused},
        {"probes.per_nic_s", (double)win->probes / seconds / (w->host_count * w->nics_per_host)},
    };
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        if (strcmp(values[i].name, what) == 0) {
            return values[i].value;
        }
    }
    return NAN;
}

double check_value(struct world *w, int bound)
{
    const struct scenario_bound *b = &w->scenario->bound[bound];
    const struct check *c = w->check;
    const struct scenario_metric *m = scenario_metric_find(b->what);

    if (m != NULL && m->at_fault && strcmp(b->what, "link.flaps_missed") != 0) {
        return over_faults(w, b);
    }
    if (strcmp(b->what, "link.flaps_missed") == 0) {
        return (double)c->flaps_missed;
    }
    if (strcmp(b->what, "clock.start_s") == 0) {
        return c->first_good >= 0 ? (double)c->first_good * 1e-9 : INFINITY;
    }
    if (strcmp(b->what, "clock.restart.back_ms") == 0) {
        return c->restarts == 0               ? NAN
               : c->restart_back == INT64_MAX ? INFINITY
                                              : MS(c->restart_back);
    }
    if (strcmp(b->what, "clock.timelines") == 0) {
        return (double)c->timelines;
    }
    if (strcmp(b->what, "clock.epochs_at_end") == 0) {
        return (double)c->epochs_at_end;
    }
    if (strcmp(b->what, "clock.utc_known_share") == 0) {
        return c->utc_known_share;
    }
    if (c->invariants != NULL && invariant_named(b->what)) {
        return (double)invariant_count(c->invariants, b->what);
    }
    return in_window(w, b->what, &c->windows[c->bound_window[bound]]);
}

bool check_holds(const struct scenario_bound *b, double value)
{
    if (isnan(value)) {
        return false; /* without a measurement no bound holds */
    }
    switch (b->relation) {
    case BOUND_BELOW:
        return value <= b->limit;
    case BOUND_ABOVE:
        return value >= b->limit;
    default:
        return value == b->limit;
    }
}
