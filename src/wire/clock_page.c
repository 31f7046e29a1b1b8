/* clock_page.c: the sequence lock, and a reader's arithmetic. */
#include "wire/clock_page.h"

#include <math.h>
#include <string.h>

#include "wire/sequence_lock.h"

static uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

void clock_page_init(struct clock_page_memory *memory, uint64_t nonce)
{
    memset(memory->words, 0, sizeof(memory->words));
    __atomic_store_n(&memory->sequence, nonce & ~1ULL, __ATOMIC_RELEASE);
}

/* -- which values are accepted -- */

static bool within(double value, double lowest, double highest)
{
    return value >= lowest && value <= highest; /* false for NaN */
}

static bool time_valid(int64_t ns)
{
    return ns >= -TIME_NS_MAX && ns <= TIME_NS_MAX;
}

/* Only checks whole numbers: the arithmetic of clock_page_at() is safe with any doubles. */
static bool terms_valid(const struct clock_page_terms *t)
{
    return t->magic == CLOCK_PAGE_MAGIC && t->version == CLOCK_PAGE_VERSION &&
           t->status <= CLOCK_PAGE_DISRUPTED && time_valid(t->written) && time_valid(t->since);
}

bool clock_page_read_terms(const struct clock_page_memory *memory, struct clock_page_terms *ret)
{
    return sequence_lock_read(&memory->sequence, memory->words, ret, sizeof(*ret)) &&
           terms_valid(ret) && linear_map_valid(&ret->prior) && linear_map_valid(&ret->line) &&
           linear_map_valid(&ret->map);
}

bool clock_page_read(const struct clock_page_memory *memory, struct clock_page *ret)
{
    if (!sequence_lock_read(&memory->sequence, memory->words, ret, sizeof(*ret)) ||
        !terms_valid(&ret->terms) || !linear_map_valid(&ret->terms.prior) ||
        !linear_map_valid(&ret->terms.line) || !linear_map_valid(&ret->terms.map) ||
        ret->nic_count > HOST_NIC_MAX || !time_valid(ret->utc_minus_fleet_ns)) {
        return false;
    }
    for (uint32_t i = 0; i < ret->nic_count; i++) {
        const struct clock_page_nic *nic = &ret->nics[i];
        if (nic->status > CLOCK_PAGE_DISRUPTED || !linear_map_valid(&nic->map) ||
            !within(nic->h_ns, 0, 1e12) || !within(nic->statistical_ns, 0, 1e12) ||
            memchr(nic->name, 0, sizeof(nic->name)) == NULL) {
            return false;
        }
    }
    return true;
}

/* -- arithmetic -- */

/* How far a clock may be from its published rate after t seconds. */
static double drift_ns(const struct clock_page_terms *terms, double t)
{
    const double a = terms->rate_limit, b = terms->rate_drift;

    return b * t <= a ? 1e9 * a * t : 1e9 * (b * t * t + a * a / b) / 2;
}

static double statistical_ns(const struct clock_page_terms *terms, double t)
{
    return 1 + terms->shift_ns +
           6 * sqrt(terms->p00 + terms->spread2 +
                    t * (2 * terms->p01 + t * (terms->p11 + t * terms->q2 / 3)));
}

/* -- the writer prepares quick readings -- */

static struct clock_page_quick quick_of(const struct clock_page_terms *t)
{
    const double span = (double)(CLOCK_PAGE_BINS << CLOCK_PAGE_BIN_SHIFT) * 1e-9;
    const double guard_ns = t->guard != INT64_MAX ? t->guard_ns : 0;
    struct clock_page_quick quick = {0};
    double worst = 0;

    /* Ageing must still be a straight line, and the numbers must not overflow the reader's products. */
    if (!within(t->rate_limit, 0, 1e-3) || !within(t->rate_drift * span, 0, t->rate_limit) ||
        !within(t->guard_rate, 0, 1e-3) || !within(t->h_ns + guard_ns, 0, 1e9)) {
        return quick;
    }
    quick.hard_ns = (int64_t)ceil(t->h_ns + guard_ns) + 2;
    quick.drift = (int64_t)ceil(t->rate_limit * (double)LINEAR_MAP_Y_ONE);
    quick.guard_rate = (int64_t)ceil(t->guard_rate * (double)LINEAR_MAP_Y_ONE);
    for (int i = 0; i < CLOCK_PAGE_BINS; i++) {
        const double end = span * (i + 1) / CLOCK_PAGE_BINS;
        worst = fmax(worst,
                     fmax(statistical_ns(t, end), statistical_ns(t, end - span / CLOCK_PAGE_BINS)));
        if (!within(worst, 0, 1e9)) {
            return quick;
        }
        quick.likely_ns[i] = (int64_t)ceil(worst);
    }
    quick.valid = 1;
    return quick;
}

void clock_page_write(struct clock_page_memory *memory, const struct clock_page *page)
{
    struct clock_page copy = *page;

    copy.terms.magic = CLOCK_PAGE_MAGIC;
    copy.terms.version = CLOCK_PAGE_VERSION;
    copy.terms.quick = quick_of(&copy.terms);
    sequence_lock_write(&memory->sequence, memory->words, &copy, sizeof(copy));
}

/* -- the reader -- */

static const struct clock_page_reading unknown = {
    .status = CLOCK_PAGE_UNKNOWN, .hard_ns = INT64_MAX, .statistical_ns = INT64_MAX};

/* The status, by the page's age and the hard bound. */
static inline enum clock_page_status status_at(const struct clock_page_terms *terms, int64_t now,
                                               double hard_ns)
{
    const int64_t age = now - terms->written;

    if (terms->status == CLOCK_PAGE_UNKNOWN || age > CLOCK_PAGE_UNKNOWN_NS ||
        !(hard_ns >= 0 && hard_ns <= CLOCK_PAGE_HARD_NS_MAX)) { /* NaN: not known */
        return CLOCK_PAGE_UNKNOWN;
    }
    if (now > terms->void_after || terms->status == CLOCK_PAGE_DISRUPTED) {
        return CLOCK_PAGE_DISRUPTED;
    }
    return age > CLOCK_PAGE_HOLDOVER_NS ? CLOCK_PAGE_HOLDOVER
                                        : (enum clock_page_status)terms->status;
}

/* `prior` may slew. So times long before line_from are off by so much more than the clock itself may be. */
static inline double slewed_ns(const struct clock_page_terms *terms, int64_t c)
{
    const double slew = ((double)terms->prior.y - (double)terms->map.y) / (double)LINEAR_MAP_Y_ONE;

    return c < terms->line_from ? fabs(slew) * ((double)terms->line_from - (double)c) : 0;
}

/* Everything except the choice of the line. All doubles may have any value. */
static inline struct clock_page_reading reading_at(const struct clock_page_terms *terms,
                                                   const struct linear_map *line, int64_t c,
                                                   int64_t now)
{
    struct clock_page_reading ret;

    if (!time_valid(c) || !time_valid(now) || c < terms->since ||
        now < terms->written - CLOCK_PAGE_EARLY_NS) {
        return unknown;
    }
    double t = 1e-9 * fabs((double)(c - terms->written));
    const double slewed = slewed_ns(terms, c);
    double hard = terms->h_ns + drift_ns(terms, t) + slewed + 1;
    if (terms->guard != INT64_MAX) {
        /* Unsigned, because a page may have any value. A pass time that is too early only widens the bound. */
        const int64_t age = (int64_t)((uint64_t)c - (uint64_t)terms->guard);
        hard += terms->guard_ns + (age > 0 ? terms->guard_rate * (double)age : 0);
    }
    ret.status = status_at(terms, now, hard);
    if (ret.status == CLOCK_PAGE_UNKNOWN) {
        return unknown;
    }
    double statistical = statistical_ns(terms, t) + slewed;
    ret.estimate_ns = linear_map_at(line, c);
    ret.hard_ns = (int64_t)hard;
    ret.statistical_ns = (int64_t)(statistical >= 0 && statistical < hard ? statistical : hard);
    return ret;
}

struct clock_page_reading clock_page_at(const struct clock_page_terms *terms, int64_t c,
                                        int64_t now)
{
    return reading_at(terms,
                      c >= terms->map_from    ? &terms->map
                      : c >= terms->line_from ? &terms->line
                                              : &terms->prior,
                      c, now);
}

/* The same in whole numbers. False: not the usual case, use reading_at(). It is safe with any bytes in `quick`. */
static inline bool quick_at(const struct clock_page_terms *terms,
                            const struct clock_page_quick *quick, const struct linear_map *line,
                            int64_t c, struct clock_page_reading *ret)
{
    const uint64_t age = (uint64_t)c - (uint64_t)terms->written;
    uint64_t guard_age = (uint64_t)c - (uint64_t)terms->guard;

    if (terms->guard == INT64_MAX || (int64_t)guard_age < 0) {
        guard_age = 0;
    }
    /* If a page was rewritten after c was read, its age is negative: then the slow way is taken, now and then. */
    if (quick->valid != 1 || age >> CLOCK_PAGE_BIN_SHIFT >= CLOCK_PAGE_BINS ||
        guard_age >> 30 != 0 || !time_valid(c) || c < terms->since || c < terms->line_from ||
        c > terms->void_after || terms->status == CLOCK_PAGE_UNKNOWN || quick->drift >> 32 != 0 ||
        quick->guard_rate >> 32 != 0 || quick->hard_ns < 0 ||
        quick->hard_ns > CLOCK_PAGE_HARD_NS_MAX || quick->likely_ns[0] < 0) {
        return false;
    }
    int64_t hard = quick->hard_ns + (int64_t)((age * (uint64_t)quick->drift) >> 42) +
                   (int64_t)((guard_age * (uint64_t)quick->guard_rate) >> 42);
    if (hard > CLOCK_PAGE_HARD_NS_MAX) {
        return false;
    }
    *ret = (struct clock_page_reading){
        .status = (enum clock_page_status)terms->status,
        .estimate_ns = linear_map_at(line, c),
        .hard_ns = hard,
        .statistical_ns = quick->likely_ns[0] < hard ? quick->likely_ns[0] : hard,
    };
    return true;
}

/* Loads word `k` of the page into field. */
#define LOAD(terms, memory, field)                                                                 \
    do {                                                                                           \
        const uint64_t word_ =                                                                     \
            load(&(memory)->words[offsetof(struct clock_page_terms, field) / 8]);                  \
        memcpy(&(terms)->field, &word_, 8);                                                        \
    } while (0)

/* The values that each reading and its caller need, in registers; likely_ns[0] is that of c's bin. */
static inline void load_head(const struct clock_page_memory *memory, struct clock_page_terms *t)
{
    const uint64_t version_status =
        load(&memory->words[offsetof(struct clock_page_terms, version) / 8]);
    const uint64_t epoch_guard = load(&memory->words[offsetof(struct clock_page_terms, epoch) / 8]);

    memcpy(&t->version, &version_status, 4);
    memcpy(&t->status, (const char *)&version_status + 4, 4);
    memcpy(&t->epoch, &epoch_guard, 4);
    LOAD(t, memory, magic);
    LOAD(t, memory, timeline);
    LOAD(t, memory, written);
    LOAD(t, memory, since);
    LOAD(t, memory, void_after);
    LOAD(t, memory, line_from);
    LOAD(t, memory, map_from);
    LOAD(t, memory, guard);
    LOAD(t, memory, pass_raw);
    LOAD(t, memory, pass_coarse);
    LOAD(t, memory, pass_suspended);
    LOAD(t, memory, quick.valid);
    LOAD(t, memory, quick.hard_ns);
    LOAD(t, memory, quick.drift);
    LOAD(t, memory, quick.guard_rate);
}

static inline void load_doubles(const struct clock_page_memory *memory, struct clock_page_terms *t)
{
    LOAD(t, memory, h_ns);
    LOAD(t, memory, rate_limit);
    LOAD(t, memory, rate_drift);
    LOAD(t, memory, p00);
    LOAD(t, memory, p01);
    LOAD(t, memory, p11);
    LOAD(t, memory, q2);
    LOAD(t, memory, spread2);
    LOAD(t, memory, shift_ns);
    LOAD(t, memory, guard_ns);
    LOAD(t, memory, guard_rate);
    LOAD(t, memory, prior.y);
    LOAD(t, memory, map.y);
}

static inline void load_line(const uint64_t *words, struct linear_map *line)
{
    line->r = (int64_t)load(words);
    line->x = (int64_t)load(words + 1);
    line->y = (int64_t)load(words + 2);
    line->x_fraction = (uint32_t)load(words + 3); /* shared memory: one machine, little endian */
    line->reserved = 0;
}

/* The index of the line for c among the words. */
static inline size_t line_word(const struct clock_page_terms *t, int64_t c)
{
    return (c >= t->map_from    ? offsetof(struct clock_page_terms, map)
            : c >= t->line_from ? offsetof(struct clock_page_terms, line)
                                : offsetof(struct clock_page_terms, prior)) /
           8;
}

static inline size_t likely_word(const struct clock_page_terms *t, int64_t c)
{
    const uint64_t bin = ((uint64_t)c - (uint64_t)t->written) >> CLOCK_PAGE_BIN_SHIFT;

    return offsetof(struct clock_page_terms, quick.likely_ns) / 8 +
           (bin < CLOCK_PAGE_BINS ? bin : 0);
}

bool clock_page_read_at(const struct clock_page_memory *memory, int64_t c, int64_t now,
                        struct clock_page_head *ret_head, struct clock_page_reading *ret)
{
    for (int i = 0; i < SEQUENCE_LOCK_TRIES; i++) {
        const uint64_t before = load(&memory->sequence);
        struct clock_page_terms terms;
        struct linear_map line;

        if (__builtin_expect(before & 1, 0)) {
            continue;
        }
        load_head(memory, &terms);
        load_line(memory->words + line_word(&terms, c), &line);
        terms.quick.likely_ns[0] = (int64_t)load(&memory->words[likely_word(&terms, c)]);
        bool done = terms_valid(&terms) && linear_map_valid(&line);
        if (__builtin_expect(done, 1)) {
            done = now == c && quick_at(&terms, &terms.quick, &line, c, ret);
            if (__builtin_expect(!done, 0)) {
                load_doubles(memory, &terms);
                *ret = reading_at(&terms, &line, c, now);
                done = true;
            }
        }
        if (__builtin_expect(__atomic_load_n(&memory->sequence, __ATOMIC_RELAXED) != before, 0)) {
            continue;
        }
        *ret_head = (struct clock_page_head){.timeline = terms.timeline,
                                             .epoch = terms.epoch,
                                             .written = terms.written,
                                             .pass_raw = terms.pass_raw,
                                             .pass_coarse = terms.pass_coarse,
                                             .pass_suspended = terms.pass_suspended};
        return done;
    }
    return false;
}

struct clock_page_reading clock_page_nic_at(const struct clock_page *page, uint32_t index,
                                            int64_t stamp, int64_t now)
{
    const struct clock_page_nic *nic = &page->nics[index];
    struct clock_page_reading ret;

    if (index >= page->nic_count || nic->status == CLOCK_PAGE_UNKNOWN || !time_valid(stamp) ||
        !time_valid(now) || now < page->terms.written - CLOCK_PAGE_EARLY_NS) {
        return unknown;
    }
    double t = 1e-9 * fabs((double)(stamp - nic->map.r));
    double hard = nic->h_ns + drift_ns(&page->terms, t) + 1;
    ret.status = status_at(&page->terms, now, hard);
    if (ret.status == CLOCK_PAGE_UNKNOWN) {
        return unknown;
    }
    if (ret.status == CLOCK_PAGE_SYNCED) {
        ret.status = (enum clock_page_status)nic->status;
    }
    ret.estimate_ns = linear_map_at(&nic->map, stamp);
    ret.hard_ns = (int64_t)hard;
    ret.statistical_ns = nic->statistical_ns + drift_ns(&page->terms, t) < hard
                             ? (int64_t)(nic->statistical_ns + drift_ns(&page->terms, t))
                             : ret.hard_ns;
    /* Before `since` no time is known. The comparison is in fleet time, because the stamp is another clock's. */
    return ret.estimate_ns < linear_map_at(&page->terms.map, page->terms.since) ? unknown : ret;
}
