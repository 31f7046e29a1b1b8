/* locate_case.c: answers that last become cases; cases get names, other names, and ends. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/fleet/locate_private.h"

#define UNKNOWN_LOOKS 5        /* looks after which an explanation without a name is reported */
#define RENAME_NS     NS_PER_S /* another name must be better for so long */
#define RUN_SHARE     0.8
/* ln of 100: an element that loses a share goes on losing */
#define OVER_LIMIT 4.6
#define TWIN_NS    (300 * NS_PER_MS) /* a path's packets are 200 ms apart */
#define MOMENT_NS  NS_PER_S          /* an element that still fails has lost more by then */
#define BEGAN_NS   (400 * NS_PER_MS) /* faults that began before the deciding window */

void locate_changed(struct locate *l, const struct locate_case *c)
{
    if (l->change_count == CHANGE_MAX) { /* no caller takes them: the oldest is dropped */
        l->change_head = (l->change_head + 1) % CHANGE_MAX;
        l->change_count--;
    }
    l->changes[(l->change_head + l->change_count++) % CHANGE_MAX] = *c;
}

bool locate_next_change(struct locate *l, struct locate_case *ret_case)
{
    if (l->change_count == 0) {
        return false;
    }
    *ret_case = l->changes[l->change_head];
    l->change_head = (l->change_head + 1) % CHANGE_MAX;
    l->change_count--;
    return true;
}

/* ---- a case's elements and paths --------------------------------------------------------------- */

bool locate_crosses(const struct path *p, uint32_t element)
{
    for (uint32_t i = 0; i < p->element_count; i++) {
        if (p->elements[i] == element) {
            return true;
        }
    }
    return false;
}

/* The indices of the case's first elements, if they are known here. */
static uint32_t elements_known(const struct locate *l, const struct locate_case *c, uint32_t first,
                               uint32_t ret_elements[static LOCATE_ONE_OF])
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->count && i < first; i++) {
        const uint32_t e = locate_element_find(l, &c->elements[i]);
        if (e != NONE) {
            ret_elements[count++] = e;
        }
    }
    return count;
}

/* For an unknown case, all its elements; for a name that has equals, the first one. */
uint32_t locate_case_elements(const struct locate *l, const struct locate_case *c,
                              uint32_t ret_elements[static LOCATE_ONE_OF])
{
    return elements_known(l, c, c->state == LOCATE_UNKNOWN ? c->count : 1, ret_elements);
}

bool locate_case_crosses(const struct path *p, const uint32_t *elements, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (locate_crosses(p, elements[i])) {
            return true;
        }
    }
    return false;
}

bool locate_explains(const struct locate *l, const struct locate_case *c, uint32_t path)
{
    uint32_t elements[LOCATE_ONE_OF];

    return path < l->config.path_limit && l->paths[path].used && !l->stale &&
           l->paths[path].seen.ns != MONO_NEVER.ns &&
           locate_case_crosses(&l->paths[path], elements, locate_case_elements(l, c, elements));
}

/* True if two outages may have begun together, or ended together: between the loss and the arrival beside it (MONO_NEVER: none is
 * known). These may be a second apart, because a peer reports only the last packets of a path. */
static bool together(struct mono lost, struct mono arrived, struct mono other_lost,
                     struct mono other_arrived)
{
    arrived = arrived.ns == MONO_NEVER.ns ? lost : arrived;
    other_arrived = other_arrived.ns == MONO_NEVER.ns ? other_lost : other_arrived;
    if (lost.ns == MONO_NEVER.ns || other_lost.ns == MONO_NEVER.ns) {
        return false;
    }
    return llabs((long long)mono_sub(lost, other_lost).ns) < TWIN_NS ||
           (mono_min(lost, arrived).ns <= mono_max(other_lost, other_arrived).ns &&
            mono_min(other_lost, other_arrived).ns <= mono_max(lost, arrived).ns);
}

bool locate_has_twin(const struct locate *l, const struct locate_case *c)
{
    uint32_t elements[LOCATE_ONE_OF];
    const uint32_t count = elements_known(l, c, c->count, elements);

    for (uint32_t i = 0; i < l->lossy_count && count > 0; i++) {
        const struct path *p = &l->paths[l->lossy[i]];

        if (together(p->lost_first, p->ok_before, c->began_high, c->began_low) &&
            together(p->lost_last, p->ok_after, c->ended_low, c->ended_high) &&
            p->lost_last.ns > p->lost_first.ns && !locate_case_crosses(p, elements, count)) {
            return true;
        }
    }
    return false;
}

/* True if some path with recent losses crosses both. */
static bool overlap(struct locate *l, const struct locate_case *c, uint32_t element)
{
    uint32_t elements[LOCATE_ONE_OF];
    const uint32_t count = locate_case_elements(l, c, elements);

    for (uint32_t i = 0; i < l->lossy_count; i++) {
        const struct path *p = &l->paths[l->lossy[i]];

        locate_count(l, l->lossy[i]);
        if (l->lost[l->lossy[i]] > 0 && locate_crosses(p, element) &&
            locate_case_crosses(p, elements, count)) {
            return true;
        }
    }
    return false;
}

/* Losses within a moment are one event, however many: a queue overflows, a link trains. Nothing distinguishes that from a fault
 * that has just begun, until more is lost. So the evidence for an element must suffice without its worst moment, too. A moment
 * without later losses is forgotten; otherwise longer windows would find it, if its packets aren't known one by one. */
struct beside {
    bool name, tell; /* the rest suffices to name it; to report an unknown */
};
static struct beside beside_moment(struct locate *l, const struct explanation *x, uint32_t index)
{
    const struct suspect *e = &l->suspects[x->elements[index]];
    struct moment worst;

    if (!locate_moment_find(l, x->elements[index], l->now, &worst)) {
        return (struct beside){true, true};
    }
    const double gain = locate_gain_beside(l, x, index, worst);
    const struct beside r = {locate_margin_beside(l, x, index, worst) > 0, gain >= LOCATE_LIMIT};
    locate_window_begin(l, l->now, l->window, HOST_NONE);
    for (uint32_t k = 0; k < e->count && gain <= 0 && mono_sub(l->now, worst.until).ns > MOMENT_NS;
         k++) {
        locate_forget(l, l->crossings[e->first + k], worst.from, worst.until, false);
    }
    return r;
}

/* ---- cases ---------------------------------------------------------------------------------- */

/* Nearly all its recent losses are one run. */
bool locate_is_outage(const struct run *run)
{
    return run->lost >= 3 && run->lost >= RUN_SHARE * run->lost_all;
}

static void note_began(struct locate *l, struct locate_case *c, uint32_t element)
{
    const struct suspect *e = &l->suspects[element];
    struct mono low = {INT64_MIN}, high = MONO_NEVER;
    struct run run;

    locate_run_find(l, element, l->now, &run);
    if (locate_is_outage(&run)) {
        c->share = fmax(c->share, OUTAGE_SHARE); /* a longer window contains time without it */
    }
    if (locate_is_outage(&run) && run.low.ns != MONO_NEVER.ns) {
        c->began_low = run.low;
        c->began_high = run.first;
        return;
    }
    for (uint32_t k = 0; k < e->count; k++) {
        const struct path *p = &l->paths[l->crossings[e->first + k]];

        if (p->lost_first.ns == MONO_NEVER.ns || p->lost_last.ns < c->began_low.ns) {
            continue;
        }
        high = mono_min(high, p->lost_first);
        low = p->ok_before.ns != MONO_NEVER.ns && p->ok_before.ns > low.ns ? p->ok_before : low;
    }
    if (high.ns == MONO_NEVER.ns) {
        return;
    }
    /* gray loss: some packets arrived after the first lost one */
    c->began_high = high;
    c->began_low = low.ns == INT64_MIN || low.ns > high.ns ? high : low;
}

bool locate_outage(struct locate *l, struct mono now, uint32_t path, struct outage *ret_outage)
{
    const struct path *p = &l->paths[path];
    uint32_t most = 0;

    for (uint32_t i = 0; i < p->element_count && p->used && !l->stale; i++) {
        struct run run;

        if (!l->suspects[p->elements[i]].atom) {
            continue;
        }
        locate_run_find(l, p->elements[i], now, &run);
        if (locate_is_outage(&run) && run.lost > most && run.low.ns != MONO_NEVER.ns) {
            most = run.lost;
            *ret_outage = (struct outage){run.low, run.first, run.last, run.high};
        }
    }
    return most > 0;
}

static void add_name(struct locate *l, struct locate_case *c, uint32_t element)
{
    for (uint32_t i = 0; i < c->count; i++) {
        if (locate_element_find(l, &c->elements[i]) == element) {
            return;
        }
    }
    c->total++;
    if (c->count < LOCATE_ONE_OF) {
        c->elements[c->count++] = l->suspects[element].name;
    }
}

/* Adds all elements that its paths can't distinguish from it: likeliest first, equals in the order that every host has. */
static void add_class(struct locate *l, struct locate_case *c, uint32_t element)
{
    const struct suspect *e = &l->suspects[element];
    const struct path *p = &l->paths[l->crossings[e->first]];
    uint32_t list[PATH_ELEMENT_MAX], count = 0;

    for (uint32_t k = 0; k < e->count && !p->observed; k++) {
        p = &l->paths[l->crossings[e->first + k]];
    }
    for (uint32_t i = 0; i < p->element_count; i++) {
        const struct suspect *other = &l->suspects[p->elements[i]];
        uint32_t at = count;

        if (other->class != e->class || other->name.kind == ELEMENT_UNKNOWN) {
            continue;
        }
        for (; at > 0 && locate_before(other, &l->suspects[list[at - 1]]); at--) {
            list[at] = list[at - 1];
        }
        list[at] = p->elements[i];
        count++;
    }
    for (uint32_t i = 0; i < count; i++) {
        add_name(l, c, list[i]);
    }
    c->alike = c->alike || count > 1;
}

static void fill(struct locate *l, struct locate_case *c, const struct explanation *x,
                 uint32_t index, const struct tellers *t)
{
    const struct suspect *e = &l->suspects[x->elements[index]];

    c->class = e->class;
    c->single = e->observed == 1;
    c->count = 0;
    c->total = 0;
    c->alike = false;
    add_class(l, c, x->elements[index]);
    if (c->state == LOCATE_UNKNOWN || x->alike[index]) {
        c->alike = x->alike[index];
        for (uint32_t i = 0; i < LOCATE_ONE_OF && x->others[index][i] != NONE; i++) {
            add_name(l, c, x->others[index][i]);
        }
    }
    c->paths = c->sent = c->lost = 0;
    for (uint32_t k = 0; k < e->count; k++) {
        const uint32_t path = l->crossings[e->first + k];
        locate_count(l, path);
        c->sent += l->sent[path];
        c->lost += l->lost[path];
        c->paths += l->lost[path] > 0;
    }
    c->share = x->shares[index];
    c->margin = x->margins[index];
    c->witnesses = t->count;
}

static struct locate_case *open_case(struct locate *l, struct mono now)
{
    if (l->case_count == LOCATE_CASE_MAX) {
        return NULL;
    }
    const struct span window =
        l->window < WINDOW_COUNT ? locate_window_span(l->window) : mono_sub(now, l->from);
    l->doubted[l->case_count] = MONO_NEVER;
    struct locate_case *c = &l->cases[l->case_count++];
    *c = (struct locate_case){.state = LOCATE_UNKNOWN,
                              .serial = ++l->case_serial,
                              .opened = now,
                              .named = MONO_NEVER,
                              .ended_low = MONO_NEVER,
                              .ended_high = MONO_NEVER,
                              .began_low = {now.ns - BEGAN_NS - window.ns}};
    return c;
}

static struct streak *streak_of(struct locate *l, uint64_t class)
{
    struct streak *oldest = &l->streaks[0];

    for (uint32_t i = 0; i < STREAK_MAX; i++) {
        if (l->streaks[i].class == class) {
            return &l->streaks[i];
        }
        oldest = l->streaks[i].look < oldest->look ? &l->streaks[i] : oldest;
    }
    *oldest = (struct streak){.class = class};
    return oldest;
}

static struct streak *step(struct locate *l, const struct explanation *x, uint32_t index)
{
    struct streak *s = streak_of(l, l->suspects[x->elements[index]].class);
    const bool running = s->look + 1 == l->look;

    s->seen = running ? s->seen + 1 : 1;
    s->named = x->margins[index] >= LOCATE_LIMIT ? (running ? s->named : 0) + 1 : 0;
    s->look = l->look;
    return s;
}

static bool is_in(const struct locate *l, const struct locate_case *c, const struct explanation *x)
{
    uint32_t elements[LOCATE_ONE_OF];
    const uint32_t count = locate_case_elements(l, c, elements);

    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < x->count; k++) {
            if (x->elements[k] == elements[i] ||
                l->suspects[x->elements[k]].class == l->suspects[elements[i]].class) {
                return true;
            }
        }
    }
    return false;
}

/* The case of this answer: it has the same name, or a name that this answer doubts. */
static struct locate_case *case_of(struct locate *l, const struct explanation *x, uint32_t index,
                                   bool *ret_doubted)
{
    const struct explanation one = {.count = 1, .elements = {x->elements[index]}};

    *ret_doubted = false;
    for (uint32_t i = 0; i < l->case_count; i++) {
        if (is_in(l, &l->cases[i], &one)) {
            return &l->cases[i];
        }
    }
    for (uint32_t i = 0; i < l->case_count; i++) {
        if (!is_in(l, &l->cases[i], x) && overlap(l, &l->cases[i], x->elements[index])) {
            *ret_doubted = true;
            return &l->cases[i];
        }
    }
    return NULL;
}

/* Among elements that nobody can distinguish, the one that gave the name comes first, in any direction: a trunk that recovers in
 * one direction is still the same trunk. */
static void keep_thing(struct locate_case *c, const struct locate_element *was)
{
    for (uint32_t i = 1; i < c->count && c->alike && !locate_same_thing(&c->elements[0], was);
         i++) {
        if (locate_same_thing(&c->elements[i], was)) {
            const struct locate_element first = c->elements[0];
            c->elements[0] = c->elements[i];
            c->elements[i] = first;
        }
    }
}

static void name(struct locate *l, struct mono now, struct locate_case *c,
                 const struct explanation *x, uint32_t index, const struct tellers *t)
{
    const struct locate_element was = c->elements[0];
    const bool again = c->state == LOCATE_NAMED;

    c->state = LOCATE_NAMED;
    c->named = now;
    fill(l, c, x, index, t);
    if (again) {
        keep_thing(c, &was);
    }
    note_began(l, c, x->elements[index]);
    c->number = locate_case_number(&c->elements[0], c->began_high);
    l->doubted[c - l->cases] = MONO_NEVER;
    locate_changed(l, c);
}

/* The element lost a share for a moment, and then nothing. Elements don't fail like that: several failed, or the fabric was
 * partitioned. A total loss for a moment is an outage. Losses from other hosts' reports have only the reports' times, which show
 * no moment. */
static bool was_a_moment(struct locate *l, uint32_t element)
{
    const struct suspect *e = &l->suspects[element];
    uint32_t lost = 0;
    struct run run;

    if (l->config.own.index == HOST_NONE.index || l->config.share > 0 ||
        l->window >= WINDOW_COUNT || locate_seems_over(l, element) < OVER_LIMIT) {
        return false;
    }
    for (uint32_t k = 0; k < e->count; k++) {
        locate_count(l, l->crossings[e->first + k]);
        lost += l->lost[l->crossings[e->first + k]];
    }
    locate_run_find(l, element, l->now, &run);
    /* it has no losses beside those that are known one by one */
    return !locate_is_outage(&run) || run.lost_all < lost;
}

/* The named cases that the explanation leaves out would explain just as much in place of that element. So they can no longer be
 * distinguished from it, because another fault hides the evidence. They were distinct when they got their names, so the names
 * hold. all: all left-out cases together; otherwise c alone. */
static bool holds(struct locate *l, const struct locate_case *c, const struct explanation *x,
                  uint32_t index, bool all)
{
    uint32_t left[SET_MAX], count = 0;

    for (uint32_t i = 0; i < l->case_count && count < SET_MAX; i++) {
        const struct locate_case *other = &l->cases[i];
        uint32_t elements[LOCATE_ONE_OF];

        if ((other == c || all) && other->state == LOCATE_NAMED && !is_in(l, other, x) &&
            locate_case_elements(l, other, elements) > 0) {
            left[count++] = elements[0];
        }
    }
    return count > 0 && locate_is_alike(l, x, index, left, count);
}

static void settle(struct locate *l, struct mono now, const struct explanation *x, uint32_t index)
{
    const struct streak *s = step(l, x, index);
    bool doubted;
    struct locate_case *c = case_of(l, x, index, &doubted);
    const struct tellers t = locate_tellers_of(l, x->elements[index]);

    if (l->suspects[x->elements[index]].name.kind == ELEMENT_UNKNOWN) {
        return; /* one path alone: no element is at fault */
    }
    if (c && doubted && c->state == LOCATE_NAMED &&
        (holds(l, c, x, index, false) || holds(l, c, x, index, true))) {
        l->doubted[c - l->cases] = MONO_NEVER;
        return;
    }
    if (c && doubted && c->state == LOCATE_NAMED) {
        struct mono *since = &l->doubted[c - l->cases];
        *since = since->ns == MONO_NEVER.ns ? now : *since;
        if (mono_sub(now, *since).ns < RENAME_NS) {
            return;
        }
    } else if (c && c->state == LOCATE_NAMED) {
        l->doubted[c - l->cases] = MONO_NEVER;
        c->margin = x->margins[index];
        c->share = fmax(c->share, x->shares[index]); /* longer windows contain time without it */
        c->single = l->suspects[x->elements[index]].observed == 1;
        return;
    }
    const bool named = s->named >= LOCATE_LOOKS,
               seen = !c && s->seen >= UNKNOWN_LOOKS && x->gains[index] >= LOCATE_LIMIT;
    if (!named && !seen) {
        return;
    }
    struct tellers all = t;
    locate_tellers_add(l, &all);
    const struct beside beside = beside_moment(l, x, index);
    const bool sure = named && beside.name && !was_a_moment(l, x->elements[index]) &&
                      locate_stands(l, x, index, &all);
    if (sure) {
        c = c ? c : open_case(l, now);
        if (c) {
            name(l, now, c, x, index, &t);
        }
        return;
    }
    if (seen && beside.tell) {
        c = open_case(l, now);
        if (c) {
            fill(l, c, x, index, &t);
            note_began(l, c, x->elements[index]);
            c->number = locate_case_number(&c->elements[0], c->began_high);
            locate_changed(l, c);
        }
    }
}

/* ---- without a case ------------------------------------------------------------------------- */

#define ANSWER_WINDOW     2 /* 1.6 s */
#define ANSWER_DISPERSION 1

static void answer_all(struct locate *l, struct mono now, double background)
{
    struct answer *a = &l->answer;

    if (a->told == l->told && a->now.ns == now.ns) {
        return;
    }
    if (l->stale) {
        locate_elements_build(l);
    }
    l->background = background;
    l->dispersion = ANSWER_DISPERSION;
    *a = (struct answer){.told = l->told, .now = now};
    locate_window_begin(l, now, ANSWER_WINDOW, HOST_NONE);
    locate_explain(l, &a->explanation);
    locate_explain_margins(l, &a->explanation);
    for (uint32_t i = 0; i < a->explanation.count; i++) {
        const struct tellers t = locate_tellers_of(l, a->explanation.elements[i]);
        a->named[i] =
            a->explanation.margins[i] >= LOCATE_LIMIT && locate_stands(l, &a->explanation, i, &t);
    }
}

bool locate_answer(struct locate *l, struct mono now, double background, uint32_t path,
                   struct locate_case *ret_case)
{
    const struct explanation *x = &l->answer.explanation;
    uint32_t best = NONE;

    answer_all(l, now, background);
    for (uint32_t i = 0; i < x->count && l->paths[path].used; i++) {
        if (locate_crosses(&l->paths[path], x->elements[i]) &&
            (best == NONE || x->shares[i] > x->shares[best])) {
            best = i;
        }
    }
    if (best == NONE) {
        return false;
    }
    const struct tellers t = locate_tellers_of(l, x->elements[best]);
    *ret_case =
        (struct locate_case){.state = l->answer.named[best] ? LOCATE_NAMED : LOCATE_UNKNOWN};
    fill(l, ret_case, x, best, &t);
    return ret_case->count > 0;
}

void locate_cases_update(struct locate *l, struct mono now, const struct explanation *x)
{
    for (uint32_t i = 0; i < x->count; i++) {
        settle(l, now, x, i);
    }
    locate_cases_end(l, now);
}
