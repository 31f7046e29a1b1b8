/* search.c: halves, quarters across, and a second look. */
#include "core/audit/search.h"

#include <string.h>

enum kind {
    HALVES, /* `one` is slow */
    ACROSS, /* `one` and `other` are slow together, and each is fast: matching quarters are tested */
    CROSSED,  /* the same, after these were fast: the quarters that don't match */
    CONFIRM,  /* the members that are left, beside another partner */
    TWO_LEFT, /* a pair, beside another partner */
};

enum { SEEN_LEAST = 2, TRIES_MAX = 2 };

size_t search_size(uint32_t members)
{
    return (size_t)members * (sizeof(uint32_t) + 3);
}

static void add_set(struct search *s, enum kind kind, struct search_range one,
                    struct search_range other, uint8_t seen)
{
    if (s->set_count == SEARCH_SETS_MAX) {
        s->full = true;
        return;
    }
    s->sets[s->set_count++] = (struct search_set){
        .kind = (uint8_t)kind, .one = one, .other = other, .partner = SEARCH_NONE, .seen = seen};
}

static const struct search_range none = {0, 0};

void search_init(struct search *s, uint32_t count, void *memory)
{
    *s = (struct search){.count = count, .order = memory};
    s->good = (uint8_t *)memory + (size_t)count * sizeof(uint32_t);
    s->used = s->good + count;
    s->gone = s->used + count;
    memset(s->good, 0, (size_t)count * 3);
    for (uint32_t i = 0; i < count; i++) {
        s->order[i] = i;
    }
    add_set(s, HALVES, (struct search_range){0, count}, none, 1);
}

void search_know_good(struct search *s, uint32_t member)
{
    s->good[member] = 1;
}

void search_leave(struct search *s, uint32_t member)
{
    s->gone[member] = 1;
}

static void move_to(struct search *s, uint32_t at, uint32_t member)
{
    uint32_t from = at;
    while (from < s->count && s->order[from] != member) {
        from++;
    }
    if (from < s->count) { /* else it is in the list already */
        s->order[from] = s->order[at];
        s->order[at] = member;
    }
}

void search_begin_with(struct search *s, const uint32_t *suspects, uint32_t count)
{
    uint32_t well = 0, first = count;
    for (uint32_t k = 0; k < count; k++) {
        s->good[suspects[k]] = 0;
    }
    while (well < s->count && !(s->good[well] && !s->gone[well])) {
        well++;
    }
    first += count % 2;
    if (count == 0 || first * 2 >= s->count || (count % 2 == 1 && well == s->count)) {
        return;
    }
    for (uint32_t k = 0; k < count; k++) {
        move_to(s, k, suspects[k]);
    }
    if (count % 2 == 1) {
        move_to(s, count, well);
    }
    s->sets[0].first = first;
}

static struct search_range half(struct search_range r, bool second)
{
    const uint32_t first = r.count / 2;
    return second ? (struct search_range){r.first + first, r.count - first}
                  : (struct search_range){r.first, first};
}

/* ---- a round ---- */

static void use(struct search *s, struct search_range r)
{
    for (uint32_t i = 0; i < r.count; i++) {
        s->used[s->order[r.first + i]] = 1;
    }
}

/* A good member that is in no test of this round, if possible not the last partner. */
static uint32_t take_partner(struct search *s, uint32_t but)
{
    for (uint32_t k = 0; k < s->count; k++) {
        const uint32_t member = (s->next_partner + k) % s->count;
        if (s->good[member] && !s->gone[member] && !s->used[member] && member != but) {
            s->used[member] = 1;
            s->next_partner = member + 1;
            return member;
        }
    }
    return SEARCH_NONE;
}

/* One member alone can't be tested, and an odd number needs a partner. */
static struct search_test test_of(struct search *s, struct search_range one,
                                  struct search_range other, uint32_t but)
{
    struct search_test t = {.one = one, .other = other, .partner = SEARCH_NONE};
    if ((one.count + other.count) % 2 == 1) {
        t.partner = take_partner(s, but);
    }
    return t;
}

static uint32_t put_tests(struct search *s, struct search_set *set, struct search_test *tests)
{
    uint32_t n = 0;
    switch ((enum kind)set->kind) {
    case HALVES: {
        const uint32_t first = set->first > 0 ? set->first : set->one.count / 2;
        tests[n++] = test_of(s, (struct search_range){set->one.first, first}, none, SEARCH_NONE);
        tests[n++] =
            test_of(s, (struct search_range){set->one.first + first, set->one.count - first}, none,
                    SEARCH_NONE);
        break;
    }
    case ACROSS:
    case CROSSED:
        for (int k = 0; k < 2; k++) {
            const struct search_range one = half(set->one, k == 1),
                                      other = half(set->other, (k == 1) != (set->kind == CROSSED));
            if (one.count > 0 && other.count > 0) {
                tests[n++] = test_of(s, one, other, SEARCH_NONE);
            }
        }
        break;
    case CONFIRM:
        tests[n++] = test_of(s, set->one, none, set->partner);
        break;
    case TWO_LEFT:
        tests[n++] = test_of(s, set->one, set->other, SEARCH_NONE);
        break;
    }
    return n;
}

uint32_t search_round(struct search *s, struct search_test tests[2 * SEARCH_SETS_MAX])
{
    uint32_t n = 0;
    memset(s->used, 0, s->count);
    for (uint32_t i = 0; i < s->set_count; i++) {
        use(s, s->sets[i].one);
        use(s, s->sets[i].other);
    }
    for (uint32_t i = 0; i < s->set_count; i++) {
        n += put_tests(s, &s->sets[i], tests + n);
    }
    s->rounds += n > 0;
    return n;
}

/* ---- results ---- */

static void name(struct search *s, uint32_t member, uint32_t with)
{
    if (s->named_count == SEARCH_NAMED_MAX) {
        s->full = true;
    } else {
        s->named[s->named_count++] = (struct search_named){member, with};
        s->good[member] = 0; /* it can't be a partner any more, however good it was before */
        if (with != SEARCH_NONE) {
            s->good[with] = 0;
        }
    }
}

static void note_good(struct search *s, struct search_range r, uint8_t how)
{
    for (uint32_t i = 0; i < r.count; i++) {
        uint8_t *good = &s->good[s->order[r.first + i]];
        *good = *good > how ? *good : how;
    }
}

/* The test was slow, or had no answer. */
static void go_on(struct search *s, const struct search_test *t, uint8_t answer)
{
    const bool alone = t->one.count == 1 && t->other.count == 0,
               two = t->one.count == 1 && t->other.count == 1;
    const uint32_t before = s->set_count, member = s->order[t->one.first];
    if (alone && answer == SEARCH_UNKNOWN && (s->good[member] || s->gone[member])) {
        s->unproven += !s->good[member]; /* it may be a partner again, or has left */
        return;
    }
    add_set(s,
            alone                ? CONFIRM
            : two                ? TWO_LEFT
            : t->other.count > 0 ? ACROSS
                                 : HALVES,
            t->one, t->other, answer == SEARCH_SLOW);
    if (s->set_count > before) {
        s->sets[before].partner = t->partner;
    }
}

/* The set was seen slow, but no part of it that was tested is. Two of its members in different parts may be slow together; that
 * is not tested any more. */
static void count_unproven(struct search *s, const struct search_set *set, uint32_t count,
                           const uint8_t *answers)
{
    bool slow = false, unknown = false;
    for (uint32_t k = 0; k < count; k++) {
        slow = slow || answers[k] == SEARCH_SLOW;
        unknown = unknown || answers[k] == SEARCH_UNKNOWN;
    }
    s->unproven += set->seen > 0 && unknown && !slow;
}

static void halved(struct search *s, const struct search_set *set, const struct search_test *t,
                   const uint8_t *answers)
{
    const bool fast = answers[0] == SEARCH_FAST && answers[1] == SEARCH_FAST;
    count_unproven(s, set, 2, answers);
    for (int k = 0; k < 2; k++) {
        if (answers[k] != SEARCH_FAST) {
            go_on(s, &t[k], answers[k]);
        }
    }
    if (fast && set->seen > 0) { /* else the set was never seen slow */
        add_set(s, set->one.count == 2 ? TWO_LEFT : ACROSS, t[0].one, t[1].one, set->seen);
    }
}

static void crossed(struct search *s, const struct search_set *set, const struct search_test *t,
                    uint32_t count, const uint8_t *answers)
{
    bool any = false;
    count_unproven(s, set, count, answers);
    for (uint32_t k = 0; k < count; k++) {
        if (answers[k] != SEARCH_FAST) {
            go_on(s, &t[k], answers[k]);
            any = true;
        }
    }
    if (!any && set->kind == ACROSS) {
        add_set(s, CROSSED, set->one, set->other, set->seen);
    } else if (!any) {
        s->not_seen_again++;
    }
}

/* One or two members that are left were tested again. */
static void confirmed(struct search *s, const struct search_set *set, const struct search_test *t,
                      uint8_t answer)
{
    struct search_set again = *set;
    const bool pair = set->kind == TWO_LEFT;
    again.partner = answer == SEARCH_SLOW ? t->partner : set->partner;
    again.seen += answer == SEARCH_SLOW;
    again.tries += answer == SEARCH_UNKNOWN;
    if (answer == SEARCH_FAST) {
        s->not_seen_again++;
    } else if (again.seen >= SEEN_LEAST) {
        name(s, s->order[set->one.first], pair ? s->order[set->other.first] : SEARCH_NONE);
    } else if (again.tries >= TRIES_MAX) {
        s->unproven++;
    } else if (s->set_count < SEARCH_SETS_MAX) {
        s->sets[s->set_count++] = again;
    } else {
        s->full = true;
    }
}

/* The state of a fast part of a set. 2, good: the other part was seen slow. 0, unknown: both are fast, or the other one was not
 * tested; then one member of each may be slow together. 1: a single member that is fast now may be a partner; with its former
 * partner, or one that was not tested, it may still be slow. */
static uint8_t how_good(const struct search_set *set, const uint8_t *answers)
{
    const bool explained =
        set->kind == HALVES && (answers[0] == SEARCH_SLOW || answers[1] == SEARCH_SLOW);
    return explained ? 2 : set->kind == CONFIRM;
}

void search_results(struct search *s, const struct search_test *tests, const uint8_t *answers)
{
    struct search_set sets[SEARCH_SETS_MAX];
    const uint32_t count = s->set_count;
    uint32_t at = 0;
    memcpy(sets, s->sets, sizeof(sets));
    s->set_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct search_set *set = &sets[i];
        uint32_t n = 1;
        if (set->kind == HALVES) {
            n = 2;
            halved(s, set, tests + at, answers + at);
        } else if (set->kind == ACROSS || set->kind == CROSSED) {
            const bool first = half(set->one, false).count > 0 &&
                               half(set->other, set->kind == CROSSED).count > 0,
                       second = half(set->one, true).count > 0 &&
                                half(set->other, set->kind != CROSSED).count > 0;
            n = (uint32_t)first + second;
            crossed(s, set, tests + at, n, answers + at);
        } else {
            confirmed(s, set, &tests[at], answers[at]);
        }
        const uint8_t good = how_good(set, answers + at);
        for (uint32_t k = 0; k < n; k++) {
            if (answers[at + k] == SEARCH_FAST) {
                note_good(s, tests[at + k].one, good);
            }
        }
        at += n;
    }
}
