/* page.c: joins the clock's lines into a page on which time never goes back. */
#include "core/page/page.h"

#include <math.h>
#include <string.h>

#include "base/bug.h"

static struct linear_map map_from(int64_t r, int64_t f_ns, double fraction, double rate)
{
    const double whole = floor(fraction);

    return (struct linear_map){.r = r,
                               .x = f_ns - r + (int64_t)whole,
                               .y = linear_map_y(rate * 1e9),
                               .x_fraction = (uint32_t)((fraction - whole) * 4294967296.0)};
}

/* F_a - F_b at c, ns with fraction; the two are close to each other. */
static double difference(const struct linear_map *a, const struct linear_map *b, int64_t c)
{
    const double y = 1.0 / (double)LINEAR_MAP_Y_ONE;

    return (double)(a->x - b->x) + ((double)a->x_fraction - (double)b->x_fraction) / 4294967296.0 +
           (double)a->y * y * (double)(c - a->r) - (double)b->y * y * (double)(c - b->r);
}

/* The same line from another instant: its value is kept to 2^-32 ns. */
static struct linear_map moved_to(const struct linear_map *map, int64_t r)
{
    __extension__ typedef __int128 int128;
    const int128 part = (int128)map->y * (r - map->r) + ((int64_t)map->x_fraction << 10);
    struct linear_map ret = *map;

    ret.r = r;
    ret.x = map->x + (int64_t)(part >> 42);
    ret.x_fraction = (uint32_t)((uint64_t)(part & (LINEAR_MAP_Y_ONE - 1)) >> 10);
    return ret;
}

void page_line_maps(const struct clock_line *line, struct linear_map *ret_slewing,
                    struct linear_map *ret_after)
{
    *ret_slewing = map_from(line->r.ns, line->r.ns + line->x_ns, line->x_fraction,
                            line->y + (line->until.ns > line->r.ns ? line->slew : 0));
    struct linear_map end =
        line->until.ns > line->r.ns ? moved_to(ret_slewing, line->until.ns) : *ret_slewing;
    end.y = linear_map_y(line->y * 1e9);
    *ret_after = end;
}

/* The piece of the page that gives time at raw c. */
static struct linear_map piece_at(const struct clock_page_terms *t, int64_t c)
{
    return c >= t->map_from ? t->map : c >= t->line_from ? t->line : t->prior;
}

static int64_t shown_at(const struct clock_page_terms *t, int64_t c)
{
    const struct linear_map piece = piece_at(t, c);

    return linear_map_at(&piece, c);
}

/* A number that no reader has seen on this timeline: the second of fleet time from which on all times are later again. */
static uint32_t raised_epoch(const struct page_maker *maker)
{
    const int64_t second = maker->latest / NS_PER_S + 1;
    const int64_t next = (int64_t)maker->page.terms.epoch + 1;
    const int64_t epoch = second > next ? second : next;

    return epoch > UINT32_MAX ? UINT32_MAX : (uint32_t)epoch;
}

/* The page begins with the clock's present line. If that is behind what readers have seen of this timeline, it is another
 * epoch. */
static void start_afresh(struct page_maker *maker, const struct clock_line *line, int64_t now)
{
    struct clock_page_terms *t = &maker->page.terms;

    page_line_maps(line, &t->line, &t->map);
    t->prior = t->line;
    t->since = t->line_from = now;
    t->map_from = line->until.ns > now ? line->until.ns : now;
    if (shown_at(t, now) < maker->latest) {
        t->epoch = raised_epoch(maker);
    }
}

#define JOIN_RATE 4500e-6          /* twice the clock's fastest slew, and a little more */
#define JOIN_NS   (10 * NS_PER_MS) /* lines that are further apart are not one timeline any more */

/* One piece for now and `from`. If the page turns between the two, the piece of `from` may begin behind what readers see now.
 * Then it leads from there to the same value at `from`, which is nowhere behind the page. */
static struct linear_map bridge(const struct clock_page_terms *t, int64_t now, int64_t from)
{
    const struct linear_map seen = piece_at(t, now), next = piece_at(t, from);
    struct linear_map ret = moved_to(&next, from);
    const double behind = difference(&seen, &next, now);

    if (behind > 0) {
        ret.y -= (int64_t)(behind / (double)(from - now) * (double)LINEAR_MAP_Y_ONE);
    }
    return ret;
}

/* Joins the clock's line to the page's; the further apart they are, the later they meet. False: too far. */
static bool join(struct clock_page_terms *t, const struct clock_line *line, int64_t now)
{
    const int64_t from = now + PAGE_LEAD_NS;
    const struct linear_map prior = bridge(t, now, from);
    struct linear_map slewing, after;

    page_line_maps(line, &slewing, &after);
    struct linear_map start = moved_to(&prior, from);
    const double apart = difference(&after, &prior, from);
    int64_t meet = from + 1 + (int64_t)fmin((double)PAGE_MEET_NS, fabs(apart) / PAGE_MEET_RATE);
    if (meet < line->until.ns) {
        meet = line->until.ns;
    }
    if (!(fabs(apart) < JOIN_RATE * (double)(meet - from))) {
        if (!(fabs(apart) < JOIN_NS)) {
            return false;
        }
        meet = from + (int64_t)(fabs(apart) / JOIN_RATE);
    }
    ASSERT(meet > from); /* they meet after they part: a rate exists, and pieces are in order */
    double rate = difference(&after, &prior, meet) / (double)(meet - from);
    start.y += (int64_t)(rate * (double)LINEAR_MAP_Y_ONE);
    if (start.y > LINEAR_MAP_Y_MAX || start.y < -LINEAR_MAP_Y_MAX) {
        return false;
    }
    t->prior = prior;
    t->line = start;
    t->line_from = from;
    /* From the line's own value at that time, not from the clock's: the rounding of y would be a step. */
    t->map = moved_to(&start, meet);
    t->map.y = after.y;
    t->map_from = meet;
    return true;
}

static bool same_line(const struct clock_line *a, const struct clock_line *b)
{
    return a->r.ns == b->r.ns && a->x_ns == b->x_ns && a->until.ns == b->until.ns &&
           !(a->x_fraction < b->x_fraction) && !(a->x_fraction > b->x_fraction) && !(a->y < b->y) &&
           !(a->y > b->y);
}

/* The largest distance between the page and the clock's own line from now on. Both are straight between the instants at which one
 * of them turns, and equal after the last one, so the maximum is at one of these. */
static double apart_ns(const struct clock_page_terms *t, const struct clock_line *line, int64_t now)
{
    const int64_t turns[] = {now, t->line_from, t->map_from, line->until.ns};
    struct linear_map slewing, after;
    double worst = 0;

    page_line_maps(line, &slewing, &after);
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        const int64_t c = turns[i] > now ? turns[i] : now;
        const struct linear_map piece = piece_at(t, c);
        const double apart = difference(c < line->until.ns ? &slewing : &after, &piece, c);
        worst = fmax(worst, fabs(apart));
    }
    return worst;
}

static double clamp(double value, double lowest, double highest)
{
    return value > highest ? highest : value >= lowest ? value : lowest; /* NaN: lowest */
}

static void fill_bounds(struct clock_page_terms *t, const struct clock_terms *terms, double apart)
{
    ASSERT(apart >= 0 && terms->h_ns >= 0); /* smaller bounds would be wrong */
    t->h_ns = clamp(terms->h_ns + apart, 0, 1e12);
    t->rate_limit = clamp(terms->rate_limit, 0, 1);
    t->rate_drift = clamp(terms->rate_drift, 0, 1);
    t->p00 = clamp(terms->p00, 0, 1e24);
    t->p01 = clamp(terms->p01, -1e24, 1e24);
    t->p11 = clamp(terms->p11, 0, 1e24);
    t->q2 = clamp(terms->q2, 0, 1e24);
    t->spread2 = clamp(terms->spread2_ns, 0, 1e24);
    t->shift_ns = clamp(terms->shift_ns + apart, 0, 1e12);
    t->guard = terms->guarded ? terms->guard.ns : INT64_MAX;
    t->guard_ns = clamp(terms->guard_ns, 0, 1e12);
    t->guard_rate = clamp(terms->guard_rate, 0, 1);
}

void page_maker_init(struct page_maker *maker)
{
    memset(maker, 0, sizeof(*maker));
    maker->page.terms.void_after = INT64_MAX;
    maker->page.terms.guard = INT64_MAX;
    maker->page.utc_bound_ns = -1;
    maker->page.realtime_since = INT64_MIN;
    maker->latest = INT64_MIN;
}

void page_maker_resume(struct page_maker *maker, const struct clock_page_terms *shown)
{
    maker->shown = *shown;
}

/* Continues an earlier agent's page at its present value; before that nothing is known, as on a fresh start. */
static bool resume(struct page_maker *maker, const struct clock_terms *terms, int64_t now)
{
    struct clock_page_terms *t = &maker->page.terms;
    const struct clock_page_terms *shown = &maker->shown;
    struct clock_page_terms joined = *t;

    joined.prior = shown->prior;
    joined.line = shown->line;
    joined.map = shown->map;
    joined.line_from = shown->line_from;
    joined.map_from = shown->map_from;
    joined.since = now;
    if (!join(&joined, &terms->line, now)) {
        return false;
    }
    *t = joined;
    return true;
}

void page_maker_realtime_set(struct page_maker *maker, struct mono now)
{
    maker->page.realtime_since = now.ns;
}

/* What readers have seen by now, on the clock's timeline; another timeline needs no continuation. */
static void note_shown(struct page_maker *maker, uint64_t timeline, int64_t now)
{
    const struct clock_page_terms *t = &maker->page.terms;
    const struct clock_page_terms *old = t->status != CLOCK_PAGE_UNKNOWN ? t : &maker->shown;

    if (old->status != CLOCK_PAGE_UNKNOWN && old->timeline == timeline) {
        const int64_t latest = shown_at(old, now + PAGE_LEAD_NS);
        maker->latest = latest > maker->latest ? latest : maker->latest;
    }
}

/* The line continues what was shown, or starts afresh. */
static void follow(struct page_maker *maker, const struct clock_terms *terms, int64_t now)
{
    struct clock_page_terms *t = &maker->page.terms;
    const struct clock_page_terms *shown = &maker->shown;
    const bool goes_on = t->status != CLOCK_PAGE_UNKNOWN && t->timeline == terms->timeline &&
                         maker->restarts == terms->epoch;
    const bool resumes = t->status == CLOCK_PAGE_UNKNOWN && shown->status != CLOCK_PAGE_UNKNOWN &&
                         shown->timeline == terms->timeline;

    if (resumes) {
        t->epoch = shown->epoch;
    }
    if (!(goes_on && (same_line(&maker->line, &terms->line) || join(t, &terms->line, now))) &&
        !(resumes && resume(maker, terms, now))) {
        start_afresh(maker, &terms->line, now);
    }
    if (shown_at(t, now) / NS_PER_S >= (int64_t)t->epoch) {
        t->epoch = 0;
    }
}

void page_maker_update(struct page_maker *maker, const struct clock_terms *terms, struct mono now)
{
    static const enum clock_page_status status[] = {
        [CLOCK_UNKNOWN] = CLOCK_PAGE_UNKNOWN,
        [CLOCK_SYNCED] = CLOCK_PAGE_SYNCED,
        [CLOCK_HOLDOVER] = CLOCK_PAGE_HOLDOVER,
        [CLOCK_DISRUPTED] = CLOCK_PAGE_DISRUPTED,
    };
    struct clock_page_terms *t = &maker->page.terms;
    const bool known = terms->status != CLOCK_UNKNOWN && terms->h_ns >= 0;
    t->written = known ? terms->line.r.ns : now.ns;
    if (t->timeline != terms->timeline) {
        t->epoch = 0;
        maker->latest = INT64_MIN;
    }
    note_shown(maker, terms->timeline, now.ns);
    if (known) {
        follow(maker, terms, now.ns);
    }
    t->timeline = terms->timeline;
    t->status = known ? status[terms->status] : CLOCK_PAGE_UNKNOWN;
    const double apart = known ? apart_ns(t, &terms->line, now.ns) : 0;
    maker->page.utc_minus_fleet_ns = terms->utc_known ? terms->utc_minus_ns : 0;
    maker->page.utc_bound_ns =
        terms->utc_known ? (int64_t)clamp(ceil(terms->utc_bound_ns + apart), 0, 1e18) : -1;
    if (!known) {
        return;
    }
    maker->shown.status = CLOCK_PAGE_UNKNOWN;
    maker->line = terms->line;
    maker->restarts = terms->epoch;
    ASSERT(t->since <= t->line_from && t->line_from <= t->map_from); /* readers rely on this */
    fill_bounds(t, terms, apart);
}
