/* locate_evidence.c: trials by the time of sending. The loss of a healthy fabric: locate_background.c. */
#include <math.h>
#include <string.h>

#include "core/fleet/locate_private.h"
#include "stats/sample.h"

#define LONG_NS   (300 * NS_PER_S) /* in this time, the memory of the background halves */
#define RUN_NS    (4 * NS_PER_S)
#define MOMENT_US 40000 /* a queue that overflows, a link that trains: healthy elements do that */
#define RUN_STRAY 4     /* one arrival cancels a run like so many losses: packets stray through */

static const int64_t slot_ns[RING_LEVELS] = {50 * NS_PER_MS, 400 * NS_PER_MS, 3200 * NS_PER_MS};
/* Windows: a ring and its number of slots, 0.4 s to 102 s. */
static const struct {
    uint8_t level, slots;
} windows[WINDOW_COUNT] = {{0, 8}, {0, 16}, {0, 32}, {1, 12}, {1, 32}, {2, 12}, {2, 32}};

struct span locate_window_span(uint32_t window)
{
    return span_ns(slot_ns[windows[window].level] * windows[window].slots);
}

void locate_rings_clear(struct path *p)
{
    memset(p->rings, 0, sizeof(p->rings));
    p->history = (struct history){.valid = 0};
    for (uint32_t level = 0; level < RING_LEVELS; level++) {
        p->rings[level].head = INT64_MIN / 2;
    }
    p->seen = p->ok_last = p->ok_before = p->lost_first = p->lost_last = p->ok_after = MONO_NEVER;
    p->long_sent = p->long_lost = 0;
}

static int64_t slot_of(struct mono at, uint32_t level)
{
    return at.ns >= 0 ? at.ns / slot_ns[level] : (at.ns + 1) / slot_ns[level] - 1;
}

static void ring_add(struct ring *r, int64_t slot, uint32_t count, uint32_t lost)
{
    const uint32_t at = (uint64_t)slot % RING_SLOTS;

    if (slot <= r->head - RING_SLOTS) {
        return; /* older than the ring */
    }
    if (slot >= r->head + RING_SLOTS) {
        memset(r->sent, 0, sizeof(r->sent));
        memset(r->lost, 0, sizeof(r->lost));
        r->head = slot;
    }
    for (; r->head < slot; r->head++) {
        r->sent[(uint64_t)(r->head + 1) % RING_SLOTS] = 0;
        r->lost[(uint64_t)(r->head + 1) % RING_SLOTS] = 0;
    }
    if (r->sent[at] + count <= UINT8_MAX) {
        r->sent[at] = (uint8_t)(r->sent[at] + count);
        r->lost[at] = (uint8_t)(r->lost[at] + lost);
    }
}

static void ring_sum(const struct ring *r, int64_t now, uint32_t slots, uint16_t *ret_sent,
                     uint16_t *ret_lost)
{
    uint32_t sent = 0, lost = 0;
    const int64_t oldest = r->head - RING_SLOTS + 1;
    int64_t first = now - (int64_t)slots + 1;

    first = first > oldest ? first : oldest;
    for (int64_t slot = first; slot <= r->head && slot <= now; slot++) {
        sent += r->sent[(uint64_t)slot % RING_SLOTS];
        lost += r->lost[(uint64_t)slot % RING_SLOTS];
    }
    *ret_sent = (uint16_t)sent;
    *ret_lost = (uint16_t)lost;
}

static uint32_t us_of(struct mono at)
{
    return (uint32_t)(at.ns / NS_PER_US);
}

static void note_history(struct history *h, struct mono sent, bool lost)
{
    const uint16_t bit = (uint16_t)(1u << h->next);

    h->at_us[h->next] = us_of(sent);
    h->valid |= bit;
    h->lost = (uint16_t)(lost ? h->lost | bit : h->lost & ~bit);
    h->next = (uint8_t)((h->next + 1) % HISTORY);
}

static void history_sum(const struct history *h, struct mono from, struct mono until,
                        uint16_t *ret_sent, uint16_t *ret_lost)
{
    const uint32_t first = us_of(from), span = us_of(until) - first;
    uint16_t sent = 0, lost = 0;

    for (uint32_t i = 0; i < HISTORY; i++) {
        if ((h->valid & (1u << i)) != 0 && h->at_us[i] - first <= span) {
            sent++;
            lost = (uint16_t)(lost + ((h->lost & (1u << i)) != 0));
        }
    }
    *ret_sent = sent;
    *ret_lost = lost;
}

/* The element's trials that are known one by one, into l->moments, in order: us before now, times two, minus one if the trial was
 * lost. */
static uint32_t moments_of(struct locate *l, const struct suspect *e, struct mono now)
{
    uint32_t count = 0;

    for (uint32_t k = 0; k < e->count; k++) {
        const struct path *p = &l->paths[l->crossings[e->first + k]];

        if (!p->observed || mono_sub(now, p->seen).ns > RUN_NS || count + HISTORY > MOMENT_MAX) {
            continue;
        }
        for (uint32_t i = 0; i < HISTORY; i++) {
            const uint32_t ago = us_of(now) - p->history.at_us[i];
            if ((p->history.valid & (1u << i)) != 0 && ago <= RUN_NS / NS_PER_US) {
                l->moments[count++] =
                    -2 * (int64_t)ago - ((p->history.lost & (1u << i)) != 0 ? 1 : 0);
            }
        }
    }
    sample_sort_int(l->moments, count);
    return count;
}

void locate_run_find(struct locate *l, uint32_t element, struct mono now, struct run *ret_run)
{
    const uint32_t count = moments_of(l, &l->suspects[element], now);
    uint32_t best = 0, best_start = 0, best_end = 0, start = 0, lost = 0, lost_here = 0;
    int32_t sum = 0, most = 0;

    for (uint32_t i = 0; i < count; i++) {
        const bool is_lost = (l->moments[i] & 1) != 0;

        if (sum <= 0) {
            sum = 0;
            start = i;
            lost_here = 0;
        }
        sum += is_lost ? 1 : -RUN_STRAY;
        lost += is_lost;
        lost_here += is_lost;
        if (sum > most) {
            most = sum;
            best = lost_here;
            best_start = start;
            best_end = i;
        }
    }
    *ret_run = (struct run){
        .lost = best, .lost_all = lost, .known = count, .low = MONO_NEVER, .high = MONO_NEVER};
    if (best == 0) {
        return;
    }
    const int64_t now_us = now.ns / NS_PER_US;

    ret_run->first.ns = (now_us + (l->moments[best_start] + 1) / 2) * NS_PER_US;
    ret_run->last.ns = (now_us + (l->moments[best_end] + 1) / 2) * NS_PER_US;
    if (best_start > 0) {
        ret_run->low.ns = (now_us + l->moments[best_start - 1] / 2) * NS_PER_US;
    }
    if (best_end + 1 < count) {
        ret_run->high.ns = (now_us + l->moments[best_end + 1] / 2) * NS_PER_US;
    }
}

bool locate_moment_find(struct locate *l, uint32_t element, struct mono now,
                        struct moment *ret_moment)
{
    const uint32_t count = moments_of(l, &l->suspects[element], now);
    const int64_t now_us = now.ns / NS_PER_US;
    uint32_t first = 0, lost = 0, most = 1;

    for (uint32_t i = 0; i < count; i++) {
        lost += (uint32_t)(l->moments[i] & 1);
        for (; l->moments[i] - l->moments[first] > 2 * MOMENT_US; first++) {
            lost -= (uint32_t)(l->moments[first] & 1);
        }
        if (lost > most) {
            most = lost;
            ret_moment->from.ns = (now_us + l->moments[first] / 2) * NS_PER_US;
            ret_moment->until.ns = (now_us + (l->moments[i] + 1) / 2) * NS_PER_US;
        }
    }
    return most > 1;
}

/* Notes the beginning and the end of the last run of losses, as exactly as the path's own trials show them. */
static void note_run(struct path *p, struct mono sent, bool lost)
{
    const bool open = p->lost_first.ns != MONO_NEVER.ns;

    if (!lost) {
        if (p->ok_last.ns == MONO_NEVER.ns || sent.ns > p->ok_last.ns) {
            p->ok_last = sent;
        }
        if (open && sent.ns > p->lost_last.ns) {
            p->ok_after = mono_min(p->ok_after, sent);
        }
        if (open && sent.ns < p->lost_first.ns &&
            (p->ok_before.ns == MONO_NEVER.ns || sent.ns > p->ok_before.ns)) {
            p->ok_before = sent;
        }
        return;
    }
    if (!open || (p->ok_after.ns != MONO_NEVER.ns && sent.ns > p->ok_after.ns)) {
        p->lost_first = p->lost_last = sent;
        p->ok_before =
            p->ok_last.ns != MONO_NEVER.ns && p->ok_last.ns < sent.ns ? p->ok_last : MONO_NEVER;
        p->ok_after =
            p->ok_last.ns != MONO_NEVER.ns && p->ok_last.ns > sent.ns ? p->ok_last : MONO_NEVER;
        return;
    }
    p->lost_first = mono_min(p->lost_first, sent);
    p->lost_last = sent.ns > p->lost_last.ns ? sent : p->lost_last;
}

static void note_long(struct path *p, struct mono sent, bool lost)
{
    const uint32_t epoch = (uint32_t)(sent.ns / LONG_NS);
    const int32_t behind = (int32_t)(epoch - p->long_epoch);

    if (behind != 0 && p->long_sent > 0) {
        const double keep = behind > 0 ? ldexp(1, -behind) : 1;
        p->long_sent *= keep;
        p->long_lost *= keep;
    }
    p->long_epoch = behind > 0 || p->long_sent <= 0 ? epoch : p->long_epoch;
    p->long_sent += 1;
    p->long_lost += lost;
}

/* A late trial counts with the newest ones: times of 0.8 s are long compared with the delay. */
static void note_burst(struct suspect *e, int64_t slot, int64_t from)
{
    if (e->burst_slots <= 0) {
        e->burst_slots = slot > from ? (double)(slot - from) : 1;
        e->burst_slot = slot;
    } else if (slot > e->burst_slot) {
        e->burst_sum += e->burst_lost;
        e->burst_square += (double)e->burst_lost * e->burst_lost;
        e->burst_slots += (double)(slot - e->burst_slot);
        e->burst_slot = slot;
        e->burst_lost = 0;
    }
    e->burst_lost++;
}

void locate_on_trial(struct locate *l, uint32_t path, struct mono sent, bool lost)
{
    locate_on_trials(l, path, sent, 1, lost);
}

void locate_on_trials(struct locate *l, uint32_t path, struct mono sent, uint32_t count,
                      uint32_t lost)
{
    struct path *p = &l->paths[path];

    ASSERT(path < l->config.path_limit && lost <= count);
    if (!p->used) {
        return;
    }
    l->told++;
    if (l->told_first.ns == MONO_NEVER.ns) {
        l->told_first = sent;
        l->burst_from = sent.ns / BURST_NS;
        l->burst_last = l->burst_from - 1;
    }
    for (uint32_t level = 0; level < RING_LEVELS; level++) {
        ring_add(&p->rings[level], slot_of(sent, level), count, lost);
    }
    if (count == 1) {
        note_history(&p->history, sent, lost > 0);
    }
    note_run(p, sent, lost > 0);
    note_long(p, sent, lost > 0);
    p->seen = p->seen.ns == MONO_NEVER.ns || sent.ns > p->seen.ns ? sent : p->seen;
    if (!p->observed) {
        locate_observe(l, path, true);
    }
    if (lost == 0) {
        return;
    }
    if (p->lossy == 0) {
        l->lossy[l->lossy_count++] = path;
        p->lossy = l->lossy_count;
    }
    l->burst_times += sent.ns / BURST_NS > l->burst_last;
    l->burst_last = sent.ns / BURST_NS > l->burst_last ? sent.ns / BURST_NS : l->burst_last;
    for (uint32_t i = 0; i < p->element_count && !l->stale; i++) {
        if (l->suspects[p->elements[i]].atom) {
            note_burst(&l->suspects[p->elements[i]], sent.ns / BURST_NS, l->burst_from);
        }
    }
    l->lost_since = true;
    if (l->next.ns == MONO_NEVER.ns) {
        l->next = sent; /* at once */
    }
}

/* All trials of an element, by the last slots of a level. Returns the number of losses. */
static uint32_t slots_of(const struct locate *l, const struct suspect *e, uint32_t level,
                         uint32_t slots, uint32_t sent[static RING_SLOTS],
                         uint32_t lost[static RING_SLOTS])
{
    const int64_t first = slot_of(l->now, level) - slots + 1;
    uint32_t sum = 0;

    memset(sent, 0, RING_SLOTS * sizeof(*sent));
    memset(lost, 0, RING_SLOTS * sizeof(*lost));
    for (uint32_t k = 0; k < e->count; k++) {
        const struct ring *r = &l->paths[l->crossings[e->first + k]].rings[level];

        for (uint32_t i = 0; i < slots; i++) {
            const int64_t slot = first + i;
            const bool held = slot <= r->head && slot > r->head - RING_SLOTS;
            sent[i] += held ? r->sent[(uint64_t)slot % RING_SLOTS] : 0;
            lost[i] += held ? r->lost[(uint64_t)slot % RING_SLOTS] : 0;
            sum += held ? r->lost[(uint64_t)slot % RING_SLOTS] : 0;
        }
    }
    return sum;
}

/* ln of the odds against the hypothesis that an element still loses the share that it lost between the window's first loss and
 * its last. It uses the finest slots that contain all of them. Nothing was lost since. */
double locate_seems_over(const struct locate *l, uint32_t element)
{
    const struct suspect *e = &l->suspects[element];
    const uint32_t level = windows[l->window].level;
    uint32_t sent[RING_SLOTS], lost[RING_SLOTS];
    const uint32_t losses = slots_of(l, e, level, windows[l->window].slots, sent, lost);
    double between = 0, after = 0;
    bool any = false;

    for (uint32_t finer = 0; finer < level; finer++) {
        if (slots_of(l, e, finer, RING_SLOTS, sent, lost) == losses) {
            break;
        }
        slots_of(l, e, level, windows[l->window].slots, sent, lost);
    }
    for (uint32_t i = 0; i < RING_SLOTS; i++) {
        after += any || lost[i] > 0 ? sent[i] : 0;
        any = any || lost[i] > 0;
        between += lost[i] > 0 ? after : 0;
        after = lost[i] > 0 ? 0 : after;
    }
    return losses < 2 ? 0 : -after * log1p(-fmin(0.999, (losses - 1) / between)) / l->dispersion;
}

static bool is_left_out(const struct path *p, struct host_id host)
{
    return host.index != HOST_NONE.index && host_id_equal(p->route.teller, host);
}

/* Subtracts the trials of the left-out moment from the counts of a window. */
static void leave_moment(const struct locate *l, const struct path *p, uint16_t *sent,
                         uint16_t *lost)
{
    const bool own = l->window == WINDOW_OUTAGE;
    const struct mono from = own && l->from.ns > l->moment.from.ns ? l->from : l->moment.from;
    const struct mono until = own ? mono_min(l->until, l->moment.until) : l->moment.until;
    uint16_t sent_then, lost_then;

    if (until.ns < from.ns) {
        return;
    }
    history_sum(&p->history, from, until, &sent_then, &lost_then);
    *sent = (uint16_t)(*sent > sent_then ? *sent - sent_then : 0);
    *lost = (uint16_t)(*lost > lost_then ? *lost - lost_then : 0);
}

void locate_count(struct locate *l, uint32_t path)
{
    const struct path *p = &l->paths[path];

    if (l->path_stamp[path] == l->stamp) {
        return;
    }
    l->path_stamp[path] = l->stamp;
    if (is_left_out(p, l->without) || is_left_out(p, l->muted)) {
        l->sent[path] = l->lost[path] = 0;
        return;
    }
    if (l->window == WINDOW_OUTAGE) {
        history_sum(&p->history, l->from, l->until, &l->sent[path], &l->lost[path]);
    } else {
        const uint32_t level = windows[l->window].level;
        ring_sum(&p->rings[level], slot_of(l->now, level), windows[l->window].slots, &l->sent[path],
                 &l->lost[path]);
    }
    leave_moment(l, p, &l->sent[path], &l->lost[path]);
}

void locate_forget(struct locate *l, uint32_t path, struct mono from, struct mono until, bool fault)
{
    struct path *p = &l->paths[path];

    for (uint32_t level = 0; level < RING_LEVELS; level++) {
        struct ring *r = &p->rings[level];
        const int64_t oldest = r->head - RING_SLOTS + 1, low = slot_of(from, level);

        for (int64_t s = low > oldest ? low : oldest; s <= slot_of(until, level) && s <= r->head;
             s++) {
            r->sent[(uint64_t)s % RING_SLOTS] = r->lost[(uint64_t)s % RING_SLOTS] = 0;
        }
    }
    for (uint32_t i = 0; i < HISTORY; i++) {
        if (p->history.at_us[i] - us_of(from) <= us_of(until) - us_of(from)) {
            p->history.valid &= (uint16_t) ~(1u << i);
        }
    }
    p->long_lost = fault ? fmin(p->long_lost, p->long_sent * l->background) : p->long_lost;
}
