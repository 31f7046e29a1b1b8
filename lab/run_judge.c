/* run_judge.c: judges readings, faults and values. run_finding.c judges findings. */
#include "lab/run_judge.h"

#include "base/time.h"
#include "lab/spot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STALE_NS     (2200 * NS_PER_MS)
#define START_P99_NS 2000

int run_judge_init(struct run_judge *j, const struct lab *lab)
{
    const struct scenario *s = &lab->scenario;
    *j = (struct run_judge){.lab = lab, .good_from_ns = -1};
    int r = eval_init(&j->second, s->fabric.hosts);
    for (int i = 0; i < s->bound_count && r == 0; i++) {
        struct run_window *w = &j->window[i];
        w->from_ns = s->bound[i].from_ns;
        w->until_ns = s->bound[i].until_ns > 0 ? s->bound[i].until_ns : s->duration_ns;
        w->synced_share_min = 1.0;
        r = eval_init(&w->eval, s->fabric.hosts);
    }
    for (int i = 0; i < s->fault_count; i++) {
        int host[LAB_HOST_MAX];
        struct run_fault *f = &j->fault[i];
        *f = (struct run_fault){
            .on_ns = -1, .off_ns = -1, .detected_ns = -1, .marked_ns = -1, .back_ns = -1};
        enum scenario_target_kind kind = s->fault[i].target.kind;
        int count = kind == TARGET_HOSTS || kind == TARGET_NIC || kind == TARGET_ALL
                        ? lab_target_hosts(lab, &s->fault[i].target, host)
                        : 0;
        while (count-- > 0) {
            f->is_hit[host[count]] = true;
        }
    }
    return r;
}

void run_judge_done(struct run_judge *j)
{
    eval_done(&j->second);
    for (int i = 0; i < SCENARIO_BOUND_MAX; i++) {
        eval_done(&j->window[i].eval);
    }
    while (j->unexplained_count > 0) {
        free(j->unexplained[--j->unexplained_count]);
    }
}

/* ---- faults ---- */

static bool breaks_clock(const struct scenario_fault *s)
{
    return s->kind == FAULT_CLOCK_STEP || s->kind == FAULT_CLOCK_FREQ || s->kind == FAULT_SUSPEND;
}

void run_judge_fault(struct run_judge *j, int64_t now_ns, int index, bool is_on)
{
    struct run_fault *f = &j->fault[index];
    if (is_on && f->on_ns < 0) {
        f->on_ns = now_ns;
    } else if (!is_on) {
        f->off_ns = now_ns;
    }
}

/* A host with a faulty clock is judged only by its own status, until its clock is good again. */
static bool is_excused(const struct run_judge *j, int host)
{
    for (int i = 0; i < j->lab->scenario.fault_count; i++) {
        const struct run_fault *f = &j->fault[i];
        if (breaks_clock(&j->lab->scenario.fault[i]) && f->is_hit[host] && f->on_ns >= 0 &&
            f->back_ns < 0) {
            return true;
        }
    }
    return false;
}

static bool is_inside(const struct eval *e, const struct eval_reading *r)
{
    int64_t off_ns = r->time_ns - e->centre_ns;
    return e->centre_known && (off_ns < 0 ? -off_ns : off_ns) <= r->hard_ns;
}

static void judge_clock_faults(struct run_judge *j, int64_t now_ns,
                               const struct eval_reading *readings, uint64_t broken)
{
    for (int i = 0; i < j->lab->scenario.fault_count; i++) {
        struct run_fault *f = &j->fault[i];
        if (!breaks_clock(&j->lab->scenario.fault[i]) || f->on_ns < 0) {
            continue;
        }
        for (int h = 0; h < j->lab->scenario.fabric.hosts; h++) {
            const struct eval_reading *r = &readings[h];
            if (!f->is_hit[h]) {
                continue;
            }
            bool is_good = r->status == EVAL_SYNCED && is_inside(&j->second, r);
            if (r->status != EVAL_SYNCED && f->marked_ns < 0) {
                f->marked_ns = now_ns;
            }
            f->late += r->status == EVAL_SYNCED && j->second.centre_known && !is_good;
            if (is_good && f->marked_ns >= 0 && f->back_ns < 0) {
                f->back_ns = now_ns;
            } else if (!is_good && f->back_ns >= 0 && r->status == EVAL_SYNCED) {
                f->back_ns = -1; /* the clock was good only for a while */
            }
        }
        f->others += f->back_ns < 0 || now_ns - f->back_ns < NS_PER_S ? broken : 0;
    }
}

/* ---- readings ---- */

static void judge_start(struct run_judge *j, int64_t now_ns)
{
    if (now_ns - j->second_ns < NS_PER_S) {
        return;
    }
    bool is_good =
        j->second.pair_error.count > 0 && eval_quantile(&j->second.pair_error, 0.99) < START_P99_NS;
    j->good_from_ns = !is_good ? -1 : j->good_from_ns < 0 ? now_ns : j->good_from_ns;
    j->second.pair_error.count = 0;
    j->second.centre_error.count = 0;
    j->second.hard_width.count = 0;
    j->second.statistical_width.count = 0;
    j->second_ns = now_ns;
}

static void judge_statuses(struct run_judge *j, struct run_window *w, int64_t now_ns,
                           const struct eval_reading *readings)
{
    int hosts = j->lab->scenario.fabric.hosts;
    int running = 0;
    int synced = 0;
    for (int h = 0; h < hosts; h++) {
        bool is_synced = readings[h].status == EVAL_SYNCED;
        running += j->is_running[h];
        synced += j->is_running[h] && is_synced;
        w->stale += !j->is_running[h] && is_synced && now_ns - j->stopped_ns[h] > STALE_NS;
        w->epochs += is_synced && j->was_synced[h] && readings[h].epoch != j->epoch[h];
    }
    w->synced += (uint64_t)synced;
    w->running += (uint64_t)running;
    if (running > 0) {
        double share = (double)synced / running;
        w->synced_share_min = share < w->synced_share_min ? share : w->synced_share_min;
    }
}

/* The number of different timelines, or epochs, among hosts that are SYNCED. */
static uint64_t count_different(int hosts, const struct eval_reading *readings, bool epochs)
{
    uint64_t count = 0;
    for (int h = 0; h < hosts; h++) {
        bool is_new = readings[h].status == EVAL_SYNCED;
        for (int k = 0; k < h; k++) {
            is_new = is_new && !(readings[k].status == EVAL_SYNCED &&
                                 (epochs ? readings[k].epoch == readings[h].epoch
                                         : readings[k].timeline == readings[h].timeline));
        }
        count += is_new;
    }
    return count;
}

int run_judge_readings(struct run_judge *j, int64_t now_ns, struct eval_reading *readings)
{
    int hosts = j->lab->scenario.fabric.hosts;
    for (int h = 0; h < hosts; h++) {
        readings[h].is_excused = is_excused(j, h);
    }
    int64_t gap_ns = now_ns - j->last_ns;
    j->longest_gap_ns = j->last_ns > 0 && gap_ns > j->longest_gap_ns ? gap_ns : j->longest_gap_ns;
    j->last_ns = now_ns;
    uint64_t broken_before = j->second.hard_broken;
    int r = eval_on_readings(&j->second, now_ns, readings);
    judge_clock_faults(j, now_ns, readings, j->second.hard_broken - broken_before);
    judge_start(j, now_ns);
    for (int i = 0; i < j->lab->scenario.bound_count && r == 0; i++) {
        struct run_window *w = &j->window[i];
        if (now_ns >= w->from_ns && now_ns <= w->until_ns) {
            judge_statuses(j, w, now_ns, readings);
            r = eval_on_readings(&w->eval, now_ns, readings);
        }
    }
    for (int h = 0; h < hosts; h++) {
        j->epoch[h] = readings[h].status == EVAL_SYNCED ? readings[h].epoch : j->epoch[h];
        j->was_synced[h] |= readings[h].status == EVAL_SYNCED;
    }
    j->timelines = count_different(hosts, readings, false);
    j->epochs_at_end = count_different(hosts, readings, true);
    return r;
}

/* ---- values ---- */

static double ms_since(int64_t at_ns, int64_t on_ns)
{
    return at_ns < 0 ? INFINITY : (double)(at_ns - on_ns) / 1e6;
}

static double at_fault(const struct run_fault *f, const char *what)
{
    return f->on_ns < 0                                 ? NAN
           : strcmp(what, "fault.detect_ms") == 0       ? ms_since(f->detected_ns, f->on_ns)
           : strcmp(what, "fault.missed") == 0          ? f->detected_ns < 0
           : strcmp(what, "fault.wrong") == 0           ? f->is_wrong
           : strcmp(what, "clock.fault.marked_ms") == 0 ? ms_since(f->marked_ns, f->on_ns)
           : strcmp(what, "clock.fault.back_ms") == 0   ? ms_since(f->back_ns, f->on_ns)
           : strcmp(what, "clock.fault.late") == 0      ? (double)f->late
           : strcmp(what, "clock.fault.others") == 0    ? (double)f->others
                                                        : NAN;
}

static bool fits(const char *what, const struct scenario_fault *s)
{
    if (strncmp(what, "clock.fault", 11) == 0) {
        return breaks_clock(s);
    }
    return s->kind == FAULT_CARRIER || s->kind == FAULT_FLAP || s->kind == FAULT_BLACKHOLE ||
           s->kind == FAULT_LOSS || s->kind == FAULT_DELAY || s->kind == FAULT_TRUNK ||
           s->kind == FAULT_SPINE || s->kind == FAULT_CLOCK_STEP;
}

static double over_faults(const struct run_judge *j, const struct scenario_bound *b)
{
    double value = NAN;
    bool is_worst = strstr(b->what, "_ms") != NULL;
    for (int i = 0; i < j->lab->scenario.fault_count; i++) {
        if (b->fault >= 0 ? i == b->fault : fits(b->what, &j->lab->scenario.fault[i])) {
            double v = at_fault(&j->fault[i], b->what);
            value = isnan(value) ? v : is_worst ? fmax(value, v) : value + v;
        }
    }
    return value;
}

static double quantile(struct eval_series *s, double p)
{
    return s->count == 0 ? NAN : (double)eval_quantile(s, p);
}

static double known(double value)
{
    return value < 0.0 ? NAN : value;
}

static double in_window(struct run_judge *j, struct run_window *w, const char *what)
{
    struct eval *e = &w->eval;
    const struct {
        const char *name;
        double value;
    } values[] = {
        {"clock.error.p50_ns", quantile(&e->pair_error, 0.5)},
        {"clock.error.p99_ns", quantile(&e->pair_error, 0.99)},
        {"clock.error.max_ns", quantile(&e->pair_error, 1.0)},
        {"clock.hard.outside", (double)e->hard_broken},
        {"clock.hard.width_ns", quantile(&e->hard_width, 0.5)},
        {"clock.statistical.outside_share",
         e->statistical_judged > 0 ? (double)e->statistical_broken / (double)e->statistical_judged
                                   : NAN},
        {"clock.statistical.width_ns", quantile(&e->statistical_width, 0.5)},
        {"clock.judged", (double)e->statistical_judged},
        {"clock.synced_share", w->synced_share_min},
        {"clock.synced_mean", w->running > 0 ? (double)w->synced / (double)w->running : NAN},
        {"clock.start_s", j->good_from_ns < 0 ? INFINITY : (double)j->good_from_ns * 1e-9},
        {"clock.backwards", (double)e->backwards},
        {"clock.stale", (double)w->stale},
        {"clock.epochs", (double)w->epochs},
        {"clock.epochs_at_end", (double)j->epochs_at_end},
        {"clock.timelines", (double)j->timelines},
        {"false.path", (double)w->false_path},
        {"false.link", (double)w->false_link},
        {"false.step", (double)w->false_step},
        {"false.liar", (double)w->false_liar},
        {"false.any", (double)(w->false_path + w->false_link + w->false_step + w->false_liar)},
        {"link.flaps_missed", known(j->totals.flaps_missed)},
        {"probes.refused", known(j->totals.probes_refused)},
        {"probes.per_nic_s", known(j->totals.probes_per_nic_s)},
        {"cost.cpu_share", known(j->totals.cpu_share)},
        {"cost.memory_mib", known(j->totals.memory_mib)},
    };
    for (size_t i = 0; i < ARRAY_COUNT(values); i++) {
        if (strcmp(values[i].name, what) == 0) {
            return values[i].value;
        }
    }
    return NAN;
}

double run_judge_value(struct run_judge *j, int bound)
{
    const struct scenario_bound *b = &j->lab->scenario.bound[bound];
    const struct scenario_metric *m = scenario_metric_find(b->what);
    if (m != NULL && m->at_fault && strcmp(b->what, "link.flaps_missed") != 0) {
        return over_faults(j, b);
    }
    return in_window(j, &j->window[bound], b->what);
}

bool run_judge_holds(const struct scenario_bound *b, double value)
{
    /* Without a measurement no bound holds. */
    return !isnan(value) && (b->relation == BOUND_BELOW   ? value <= b->limit
                             : b->relation == BOUND_ABOVE ? value >= b->limit
                                                          : value == b->limit);
}
