/* check.c: compares fleet time with the truth. check_finding.c judges findings. */
#include "sim/check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/sample.h"

#define RATE_NS     (2 * NS_PER_S)
#define UTC_RATE    200e-6
#define UTC_MARK_NS (1 * NS_PER_S)  /* a step without a second clock must be marked by then */
#define SLEPT_NS    (1 * NS_PER_MS) /* a sleep that readers notice: src/clocklib */

/* ---- life ---- */
static int window_of(struct check *c, int64_t from, int64_t until)
{
    for (int i = 0; i < c->window_count; i++) {
        if (c->windows[i].from == from && c->windows[i].until == until) {
            return i;
        }
    }
    if (c->window_count == CHECK_WINDOWS) {
        return -1;
    }
    struct check_window *w = &c->windows[c->window_count];
    w->from = from;
    w->until = until;
    w->synced_share_min = 1;
    return c->window_count++;
}

int check_new(struct check **ret, struct world *w)
{
    struct check *c = calloc(1, sizeof(*c));

    if (c == NULL) {
        return -ENOMEM;
    }
    c->hosts = calloc((size_t)w->host_count, sizeof(*c->hosts));
    c->values = calloc((size_t)w->host_count, sizeof(*c->values));
    if (c->hosts == NULL || c->values == NULL) {
        check_free(c);
        return -ENOMEM;
    }
    prng_init(&c->random, hash_u64(w->seed, 0x6368));
    window_of(c, 0, w->scenario->duration_ns);
    for (int i = 0; i < w->scenario->bound_count; i++) {
        const struct scenario_bound *b = &w->scenario->bound[i];
        c->bound_window[i] = window_of(c, b->from_ns, b->until_ns);
        if (c->invariants == NULL && invariant_named(b->what)) {
            c->invariants = invariant_new(w);
        }
        if (c->bound_window[i] < 0) {
            check_free(c);
            return -E2BIG;
        }
    }
    for (int i = 0; i < SCENARIO_FAULT_MAX; i++) {
        c->faults[i] = (struct check_fault){.on = -1,
                                            .off = -1,
                                            .detected = -1,
                                            .sure = -1,
                                            .told = -1,
                                            .marked = -1,
                                            .back = -1,
                                            .named_at = -1};
    }
    for (int i = 0; i < w->host_count; i++) {
        c->hosts[i].watched_fault = -1;
    }
    c->first_good = -1;
    c->start_limit_ns = 100;
    *ret = c;
    return 0;
}

void check_free(struct check *c)
{
    if (c != NULL) {
        invariant_free(c->invariants);
        free(c->hosts);
        free(c->values);
        free(c);
    }
}

/* ---- hosts that are judged ---- */
static bool cut_off(const struct world *w, int host)
{
    for (unsigned i = 0; i < w->network.active_count; i++) {
        const struct network_fault *nf = &w->network.faults[w->network.active[i]];
        if (nf->fault->kind == FAULT_PARTITION && nf->hosts[host] != 0) {
            return true;
        }
    }
    return false;
}

/* True if programs on that host can read the clock: the host isn't asleep. */
bool check_awake(const struct world *w, int host)
{
    for (int i = 0; i < w->scenario->fault_count; i++) {
        const struct scenario_fault *f = &w->scenario->fault[i];
        if ((f->kind == FAULT_SUSPEND || f->kind == FAULT_REBOOT) && w->fault_hosts[i][host] != 0 &&
            w->now >= f->at_ns && w->now <= f->at_ns + f->for_ns) {
            return false;
        }
    }
    return true;
}

/* Reads as libfoliot-clock does: it compares the host's time asleep with the page's. */
struct reading check_read(const struct world *w, int host, int64_t raw)
{
    const struct world_host *h = &w->hosts[host];
    struct reading r = reader_read(&h->page.page.terms, raw);

    if (h->suspended_ns > SLEPT_NS) {
        r.status = CLOCK_PAGE_DISRUPTED;
    }
    return r;
}

static void read_host(struct world *w, int host)
{
    struct check_host *c = &w->check->hosts[host];
    struct world_host *h = &w->hosts[host];

    c->judged = c->claims = false;
    c->synced = false;
    c->last.status = CLOCK_PAGE_UNKNOWN;
    if (!h->page_valid || !check_awake(w, host)) {
        return;
    }
    c->last_raw = world_raw(w, host, w->now);
    c->last = check_read(w, host, c->last_raw);
    c->epoch = h->page.page.terms.epoch;
    c->timeline = h->page.page.terms.timeline;
    c->synced = c->last.status == CLOCK_PAGE_SYNCED;
    c->claims = c->synced && h->lie == NULL;
    c->judged = c->claims && (c->watched_fault < 0 || c->back >= 0);
}

/* The fleet's centre: the median of fleet time - true time over the judged hosts. c->values gets ret_count errors, relative to
 * the first one. */
static int errors(struct world *w, int64_t *ret_base)
{
    struct check *c = w->check;
    int count = 0;
    int64_t base = 0;

    for (int i = 0; i < w->host_count; i++) {
        struct check_host *h = &c->hosts[i];
        const int64_t offset = h->last.fleet_ns - w->now;
        if (!h->claims || cut_off(w, i)) {
            continue;
        }
        base = base == 0 ? offset : base;
        h->error_ns = (double)(offset - base) + h->last.fraction;
        if (h->judged) {
            c->values[count++] = h->error_ns;
        }
    }
    *ret_base = base;
    return count;
}

static void centre(struct world *w, int count, int64_t base)
{
    struct check *c = w->check;

    if (count == 0) {
        c->centre_known = false;
        return;
    }
    qsort(c->values, (size_t)count, sizeof(c->values[0]), sample_order);
    const double median = sample_median(c->values, (size_t)count);
    const int64_t was = c->centre_ns;
    c->centre_ns = base + (int64_t)llround(median);
    c->centre_rate = c->centre_known && w->now > c->centre_at
                         ? (double)(c->centre_ns - was) / (double)(w->now - c->centre_at)
                         : 0;
    c->centre_at = w->now;
    c->centre_known = true;
    for (int i = 0; i < w->host_count; i++) {
        c->hosts[i].error_ns -= median;
    }
    for (int i = 0; i < count; i++) {
        c->values[i] -= median;
    }
}

/* ---- bounds ---- */
/* Counts hosts whose hard interval has no point in common with the others'. The smaller side counts. */
static uint64_t torn(struct world *w, double *ret_low, double *ret_high)
{
    struct check *c = w->check;
    double low = -INFINITY, high = INFINITY;
    uint64_t above = 0, below = 0;

    for (int i = 0; i < w->host_count; i++) {
        const struct check_host *h = &c->hosts[i];
        if (h->judged && !cut_off(w, i)) {
            low = fmax(low, h->error_ns - h->last.hard_ns);
            high = fmin(high, h->error_ns + h->last.hard_ns);
        }
    }
    *ret_low = low;
    *ret_high = high;
    if (low <= high) {
        return 0;
    }
    for (int i = 0; i < w->host_count; i++) {
        const struct check_host *h = &c->hosts[i];
        if (h->judged && !cut_off(w, i)) {
            above += h->error_ns - h->last.hard_ns > high;
            below += h->error_ns + h->last.hard_ns < low;
        }
    }
    return above < below ? above : below;
}

/* Counts a faulty clock's readings SYNCED with the truth outside the bound, and other hosts without a common point meanwhile. */
static void judge_faults(struct world *w, uint64_t torn_now)
{
    struct check *c = w->check;

    for (int i = 0; i < w->host_count; i++) {
        struct check_host *h = &c->hosts[i];
        if (h->watched_fault < 0) {
            continue;
        }
        struct check_fault *f = &c->faults[h->watched_fault];
        const bool inside = h->claims && fabs(h->error_ns) <= h->last.hard_ns;
        if (h->claims && !inside && w->now > f->on) { /* nothing shows a step at once */
            f->late++;
        }
        if (inside && h->marked >= 0 && h->back < 0) {
            h->back = w->now;
            f->back = w->now > f->back ? w->now : f->back;
        } else if (h->back >= 0 && !inside) {
            h->back = -1; /* it was good only for a while */
        }
        f->others += torn_now;
    }
}

static void judge_window(struct world *w, struct check_window *win, int count)
{
    struct check *c = w->check;

    for (int n = 0; n < 4 * count && count > 1; n++) {
        const double a = c->values[prng_below(&c->random, (uint64_t)count)];
        const double b = c->values[prng_below(&c->random, (uint64_t)count)];
        tally_add(&win->pair, fabs(a - b));
    }
    if (count > 1) {
        win->pair_ns_max = fmax(win->pair_ns_max, c->values[count - 1] - c->values[0]);
    }
    for (int i = 0; i < w->host_count; i++) {
        const struct check_host *h = &c->hosts[i];
        if (!h->judged || cut_off(w, i)) {
            continue;
        }
        win->judged++;
        win->statistical_outside += fabs(h->error_ns) > h->last.statistical_ns;
        tally_add(&win->hard_width, 2 * h->last.hard_ns);
        tally_add(&win->statistical_width, 2 * h->last.statistical_ns);
    }
}

static void judge_synced(struct world *w, struct check_window *win)
{
    int running = 0, synced = 0;

    for (int i = 0; i < w->host_count; i++) {
        if (w->hosts[i].node == NULL || w->hosts[i].lie != NULL || !check_awake(w, i)) {
            continue;
        }
        running++;
        synced += w->check->hosts[i].synced;
    }
    win->synced += (uint64_t)synced;
    win->running += (uint64_t)running;
    if (running > 0) {
        win->synced_share_min = fmin(win->synced_share_min, (double)synced / running);
    }
}

/* Counts hosts that are SYNCED on a page so old that the time can't be known. */
static uint64_t stale(const struct world *w)
{
    uint64_t count = 0;

    for (int i = 0; i < w->host_count; i++) {
        const struct check_host *h = &w->check->hosts[i];
        if (h->synced && h->last_raw - w->hosts[i].page.page.terms.written > 2200 * NS_PER_MS) {
            count++;
        }
    }
    return count;
}

/* Judges NIC clocks by the lines that their members publish. */
static void judge_nics(struct world *w, struct check_window *win)
{
    double values[256];
    int count = 0;

    if (w->scenario->clocks.stamps == STAMPS_SOFTWARE || !w->check->centre_known) {
        return;
    }
    for (int n = 0; n < 256; n++) {
        const int host = (int)prng_below(&w->check->random, (uint64_t)w->host_count);
        const int nic = (int)prng_below(&w->check->random, (uint64_t)w->nics_per_host);
        struct world_host *h = &w->hosts[host];
        if (h->node == NULL || h->lie != NULL || !w->check->hosts[host].synced ||
            !world_nics_stamp(w, host)) {
            continue;
        }
        const struct clock *clock = node_member_clock(h->node, (uint32_t)nic);
        struct clock_terms terms;
        if (clock == NULL) {
            continue; /* the agent has just begun; the page is of the one before */
        }
        clock_terms(clock, &terms);
        if (terms.status != CLOCK_SYNCED) {
            continue;
        }
        double fraction = 0;
        const int64_t c = crystal_read(&h->nics[nic].crystal, w->now, &fraction);
        const int64_t t = c - terms.line.r.ns, slewed = terms.line.until.ns - terms.line.r.ns;
        const double line = terms.line.x_fraction + terms.line.y * (double)t +
                            terms.line.slew * (double)(t < slewed ? t : slewed);
        values[count++] =
            (double)(c + terms.line.x_ns - w->now - w->check->centre_ns) + line + fraction;
    }
    for (int i = 0; i + 1 < count; i += 2) {
        tally_add(&win->nic_pair, fabs(values[i] - values[i + 1]));
    }
}

/* The host's clock just broke, and its agent need not have noticed: its fleet time is off, and its UTC by the same amount. */
static bool unmarked(const struct world *w, const struct check_host *h)
{
    return h->watched_fault >= 0 && h->marked < 0 &&
           w->now - w->check->faults[h->watched_fault].on <= UTC_MARK_NS;
}

/* The bound of foliot_utc(): the page's bound, and more with every second since the page was written. */
static void judge_utc(struct world *w, struct check_window *win)
{
    int known = 0, running = 0;

    for (int i = 0; i < w->host_count && w->scenario->clocks.anchors > 0; i++) {
        const struct check_host *h = &w->check->hosts[i];
        const struct clock_page *page = &w->hosts[i].page.page;
        if (w->hosts[i].node == NULL || !h->synced || unmarked(w, h)) {
            continue;
        }
        running++;
        if (page->utc_bound_ns >= 0) {
            const int64_t utc = h->last.fleet_ns + page->utc_minus_fleet_ns;
            const double bound =
                (double)page->utc_bound_ns + UTC_RATE * (double)(h->last_raw - page->terms.written);
            known++;
            const double error = fabs((double)(utc - WORLD_UTC_NS - w->now));
            win->utc_error_ns = fmax(win->utc_error_ns, error);
            win->utc_outside += error > bound;
        }
    }
    w->check->utc_known_share = running > 0 ? (double)known / running : 0;
}

/* The fleet's rate: from the window's first and last two seconds. */
static void judge_rate(const struct world *w, struct check_window *win)
{
    const struct check_centre now = {w->now, w->check->centre_ns};

    if (!w->check->centre_known) {
        return;
    }
    if (win->first.at == 0) {
        win->first = win->last = now;
    } else if (win->then.at == 0 && now.at - win->first.at >= RATE_NS) {
        win->then = now;
    }
    if (now.at - win->now.at >= RATE_NS) {
        win->last = win->now.at != 0 ? win->now : now;
        win->now = now;
    }
}

static void note_start(struct world *w, int count)
{
    struct check *c = w->check;
    struct tally *t = calloc(1, sizeof(*t));
    int running = 0;

    ASSERT(t != NULL);
    for (int i = 0; i < w->host_count; i++) {
        running += w->hosts[i].node != NULL && w->hosts[i].lie == NULL;
    }
    for (int n = 0; n < 8 * count && count > 1; n++) {
        const double a = c->values[prng_below(&c->random, (uint64_t)count)];
        const double b = c->values[prng_below(&c->random, (uint64_t)count)];
        tally_add(t, fabs(a - b));
    }
    const bool good =
        count > 1 && count >= 0.99 * running && tally_quantile(t, 0.99) <= c->start_limit_ns;
    if (!good) {
        c->last_bad = w->now;
        c->first_good = -1;
    } else if (c->first_good < 0) {
        c->first_good = w->now;
    }
    free(t);
}

void check_instant(struct world *w)
{
    struct check *c = w->check;
    int64_t base = 0;
    double low, high;

    for (int i = 0; i < w->host_count; i++) {
        read_host(w, i);
    }
    const int count = errors(w, &base);
    centre(w, count, base);
    const uint64_t torn_now = count > 0 ? torn(w, &low, &high) : 0;
    const uint64_t stale_now = stale(w);
    note_start(w, count);
    judge_faults(w, torn_now);
    check_delays(w);
    if (c->invariants != NULL) {
        invariant_instant(c->invariants, w);
    }
    for (int i = 0; i < c->window_count; i++) {
        struct check_window *win = &c->windows[i];
        if (w->now < win->from || w->now > win->until) {
            continue;
        }
        if (!win->begun) {
            win->begun = true;
            win->probes_at_start = w->probes;
            win->refused_at_start = w->refused;
        }
        win->probes = w->probes - win->probes_at_start;
        win->refused = w->refused - win->refused_at_start;
        win->hard_outside += torn_now;
        win->stale += stale_now;
        judge_window(w, win, count);
        judge_synced(w, win);
        judge_nics(w, win);
        judge_rate(w, win);
        judge_utc(w, win);
    }
}

/* ---- each publication ---- */
static void each_window(struct world *w, size_t offset, uint64_t amount)
{
    for (int i = 0; i < w->check->window_count; i++) {
        struct check_window *win = &w->check->windows[i];
        if (w->now >= win->from && w->now <= win->until) {
            *(uint64_t *)(void *)((char *)win + offset) += amount;
        }
    }
}

/* A reader may have read the old page until now. If the page comes back to its epoch, time must be later than then. */
static void judge_return(struct world *w, int host, const struct clock_page_terms *was)
{
    const struct clock_page_terms *now = &w->hosts[host].page.page.terms;
    const int64_t raw = world_raw(w, host, w->now);
    const struct reading before = reader_read(was, raw), after = reader_read(now, raw);
    struct check_host *h = &w->check->hosts[host];
    struct check_shown *left = NULL;

    for (int i = 0; i < CHECK_SHOWN; i++) {
        const struct check_shown *s = &h->shown[i];
        if (after.status != CLOCK_PAGE_UNKNOWN && s->timeline == now->timeline &&
            s->epoch == now->epoch && after.fleet_ns < s->latest_ns) {
            each_window(w, offsetof(struct check_window, backwards), 1);
        }
        if (s->timeline == was->timeline && s->epoch == was->epoch) {
            left = &h->shown[i];
        }
    }
    if (left == NULL) {
        left = &h->shown[h->shown_next++ % CHECK_SHOWN];
        *left = (struct check_shown){was->timeline, was->epoch, INT64_MIN};
    }
    if (before.status != CLOCK_PAGE_UNKNOWN && before.fleet_ns > left->latest_ns) {
        left->latest_ns = before.fleet_ns;
    }
}

/* A reader that read the old page a moment ago reads the new page now: time must not go backwards. */
static void judge_order(struct world *w, int host, const struct clock_page_terms *was)
{
    const struct clock_page_terms *now = &w->hosts[host].page.page.terms;
    const int64_t raw = world_raw(w, host, w->now);

    for (int64_t later = 0; later <= 60 * NS_PER_MS; later += 20 * NS_PER_MS) {
        const struct reading before = reader_read(was, raw);
        const struct reading after = reader_read(now, raw + later);
        if (before.status == CLOCK_PAGE_UNKNOWN || after.status == CLOCK_PAGE_UNKNOWN) {
            return;
        }
        if (after.fleet_ns + 1 < before.fleet_ns + later / 2) {
            each_window(w, offsetof(struct check_window, backwards), 1);
        }
    }
}

/* Measures how long a restarted agent needs until its own page is SYNCED. */
static void judge_restart(struct world *w, int host)
{
    struct world_host *h = &w->hosts[host];

    if (h->generation > 1 && h->started >= 0 &&
        reader_read(&h->page.page.terms, world_raw(w, host, w->now)).status == CLOCK_PAGE_SYNCED) {
        const int64_t took = w->now - h->started;
        w->check->restart_back = took > w->check->restart_back ? took : w->check->restart_back;
        w->check->restarts++;
        h->started = -1;
    }
}

void check_publish(struct world *w, int host, const struct clock_page_terms *was)
{
    struct check_host *h = &w->check->hosts[host];
    const struct clock_page_terms *now = &w->hosts[host].page.page.terms;

    if (was != NULL && was->timeline == now->timeline && was->epoch == now->epoch) {
        judge_order(w, host, was);
    } else if (was != NULL && was->status != CLOCK_PAGE_UNKNOWN) {
        each_window(w, offsetof(struct check_window, epochs), 1);
        judge_return(w, host, was);
    } else if (was == NULL) { /* the page of another agent, perhaps of another boot */
        memset(h->shown, 0, sizeof(h->shown));
    }
    judge_restart(w, host);
    if (h->watched_fault >= 0 && h->marked < 0 &&
        reader_read(now, world_raw(w, host, w->now)).status != CLOCK_PAGE_SYNCED) {
        struct check_fault *f = &w->check->faults[h->watched_fault];
        h->marked = w->now;
        f->marked = w->now > f->marked ? w->now : f->marked;
    }
}
