/* search.c: halves, quarters across, and a second look. */
#include "core/audit/search.h"

#include <string.h>

enum kind {
    HALVES, /* `one` is slow */
    ACROSS, /* `one` and `other` are slow together, and each is fast: matching quarters are tested */
    CROSSED,  /* the same, and these were fast: the quarters that don't match */
    CONFIRM,  /* what is left, beside another partner */
    TWO_LEFT, /* a pair, beside another partner */
};

size_t search_size(uint32_t members)
{
    return (size_t)members * (sizeof(uint32_t) + 2);
}

static void add_set(struct search *s, enum kind kind, struct search_range one,
                    struct search_range other, uint32_t partner)
{
    if (s->set_count == SEARCH_SETS_MAX) {
        s->full = true;
        return;
    }
    s->sets[s->set_count++] =
        (struct search_set){.kind = (uint8_t)kind, .one = one, .other = other, .partner = partner};
}

static const struct search_range none = {0, 0};

void search_init(struct search *s, uint32_t count, void *memory)
{
    *s = (struct search){.count = count, .order = memory};
    s->good = (uint8_t *)memory + (size_t)count * sizeof(uint32_t);
    s->used = s->good + count;
    memset(s->good, 0, (size_t)count * 2);
    for (uint32_t i = 0; i < count; i++) {
        s->order[i] = i;
    }
    add_set(s, HALVES, (struct search_range){0, count}, none, SEARCH_NONE);
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

/* A good member that is in no test of this round; another one than the last time. */
static uint32_t take_partner(struct search *s, uint32_t but)
{
    for (uint32_t k = 0; k < s->count; k++) {
        const uint32_t member = (s->next_partner + k) % s->count;
        if (s->good[member] && !s->used[member] && member != but) {
            s->used[member] = 1;
            s->next_partner = member + 1;
            return member;
        }
    }
    return SEARCH_NONE;
}

/* One alone can't be tested, and an odd one needs somebody. */
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
    case HALVES:
        tests[n++] = test_of(s, half(set->one, false), none, SEARCH_NONE);
        tests[n++] = test_of(s, half(set->one, true), none, SEARCH_NONE);
        break;
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
    }
}

static void note_good(struct search *s, struct search_range r)
{
    for (uint32_t i = 0; i < r.count; i++) {
        s->good[s->order[r.first + i]] = 1;
    }
}

static void go_on(struct search *s, const struct search_test *t)
{
    if (t->one.count == 1 && t->other.count == 0) {
        add_set(s, CONFIRM, t->one, none, t->partner);
    } else if (t->one.count == 1 && t->other.count == 1) {
        add_set(s, TWO_LEFT, t->one, t->other, SEARCH_NONE);
    } else {
        add_set(s, t->other.count > 0 ? ACROSS : HALVES, t->one, t->other, SEARCH_NONE);
    }
}

static void halved(struct search *s, const struct search_set *set, const struct search_test *t,
                   const bool *slow)
{
    for (int k = 0; k < 2; k++) {
        if (slow[k]) {
            go_on(s, &t[k]);
        }
    }
    if (!slow[0] && !slow[1] && set->one.count == 2) {
        add_set(s, TWO_LEFT, t[0].one, t[1].one, SEARCH_NONE);
    } else if (!slow[0] && !slow[1]) {
        add_set(s, ACROSS, t[0].one, t[1].one, SEARCH_NONE);
    }
}

static void crossed(struct search *s, const struct search_set *set, const struct search_test *t,
                    uint32_t count, const bool *slow)
{
    bool any = false;
    for (uint32_t k = 0; k < count; k++) {
        if (slow[k]) {
            go_on(s, &t[k]);
            any = true;
        }
    }
    if (!any && set->kind == ACROSS) {
        add_set(s, CROSSED, set->one, set->other, SEARCH_NONE);
    } else if (!any) {
        s->not_seen_again++;
    }
}

static void confirmed(struct search *s, const struct search_set *set, bool slow)
{
    const uint32_t member = s->order[set->one.first];
    if (!slow) {
        s->not_seen_again++;
    } else {
        name(s, member, set->kind == TWO_LEFT ? s->order[set->other.first] : SEARCH_NONE);
    }
}

/* Members of a set whose parts are both fast are good beside anybody but each other: they stay unknown. */
static bool tells_good(const struct search_set *set, const bool *slow)
{
    return set->kind == CONFIRM || (set->kind == HALVES && slow[0] != slow[1]);
}

void search_results(struct search *s, const struct search_test *tests, const bool *slow)
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
            halved(s, set, tests + at, slow + at);
        } else if (set->kind == ACROSS || set->kind == CROSSED) {
            const bool first = half(set->one, false).count > 0 &&
                               half(set->other, set->kind == CROSSED).count > 0,
                       second = half(set->one, true).count > 0 &&
                                half(set->other, set->kind != CROSSED).count > 0;
            n = (uint32_t)first + second;
            crossed(s, set, tests + at, n, slow + at);
        } else {
            confirmed(s, set, slow[at]);
        }
        for (uint32_t k = 0; k < n && tells_good(set, slow + at); k++) {
            if (!slow[at + k]) {
                note_good(s, tests[at + k].one);
            }
        }
        at += n;
    }
}
