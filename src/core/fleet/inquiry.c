/* inquiry.c: selects the paths that are worth examining, and keeps the elements that explain their losses. */
#include "core/fleet/inquiry.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash_index.h"
#include "base/prng.h"

/* the value of one report of a path: so many trials distinguish 4 % from nothing */
#define TRIALS     25
#define AGE_NS     (60 * NS_PER_S)
#define NOTED      16384 /* NICs, trunks and hosts with a count */
#define WORDS      32    /* reports of hosts that are sure, before a name is known */
#define TOLD_SHARE 4     /* of the time in which all hosts report, until their paths were passed */
#define SLOT_NONE  UINT32_MAX

struct slot { /* an examined path; the index is its number in locate */
    struct locate_route route;
    uint16_t port;
    bool used;
    bool lost;     /* it counts as lost */
    bool dead;     /* by its last report */
    uint32_t rest; /* of lost trials, in millionths */
    uint32_t next; /* the next free one */
    struct mono at, lost_at;
};
struct noted {
    uint64_t key;
    uint32_t count; /* lost paths of a host; clean paths of an element */
};
struct known {
    struct locate_case c;
    uint32_t shown; /* which of its elements is shown, to all callers */
    bool worded;    /* a host is sure that it is this one */
    struct mono over;
};
struct word { /* the element of which a host was sure, for a fault since then */
    struct locate_element element;
    struct mono since;
};
struct inquiry {
    struct locate *locate;
    struct span report;
    uint32_t path_max, path_count; /* path_count: those in use */
    uint32_t slot_top, slot_free;  /* slot_top: the highest number in use so far */
    struct slot *slots;
    struct hash_index by_path; /* into slots */
    struct noted *noted;
    uint32_t noted_count;
    struct hash_index by_key; /* into noted */
    struct known known[INQUIRY_KNOWN];
    uint32_t known_count;
    struct word words[WORDS]; /* a ring */
    uint32_t word_count;
    bool wants;
    struct mono began;  /* the time of the first tick; MONO_NEVER: none yet */
    bool asked_all;     /* when the last round began, all hosts had reported since then */
    struct mono lost;   /* the newest loss */
    struct mono sorted; /* the last time when old paths were removed */
    uint32_t round, version;
    uint64_t refused;
};

struct inquiry *inquiry_free(struct inquiry *q)
{
    if (q != NULL) {
        locate_free(q->locate);
        free(q->slots);
        free(q->noted);
        hash_index_done(&q->by_path);
        hash_index_done(&q->by_key);
        free(q);
    }
    return NULL;
}

struct inquiry *inquiry_new(uint32_t paths, struct span report)
{
    struct inquiry *q = calloc(1, sizeof(*q));

    ASSERT(paths > 0);
    if (q == NULL) {
        return NULL;
    }
    q->path_max = paths;
    q->slot_free = SLOT_NONE;
    q->report = report;
    q->began = MONO_NEVER;
    q->locate = locate_new(&(struct locate_config){.path_limit = paths, .own = HOST_NONE});
    q->slots = calloc(paths, sizeof(*q->slots));
    q->noted = calloc(NOTED, sizeof(*q->noted));
    if (q->locate == NULL || q->slots == NULL || q->noted == NULL ||
        hash_index_room(&q->by_path, paths) < 0 || hash_index_room(&q->by_key, NOTED) < 0) {
        return inquiry_free(q);
    }
    return q;
}

/* ---- counts ------------------------------------------------------------------------------------------------------ */

static uint64_t element_key(uint32_t kind, uint32_t direction, uint64_t a, uint64_t b)
{
    return hash_u64(hash_u64((uint64_t)kind << 8 | direction, a), b);
}

static struct noted *noted_find(const struct inquiry *q, uint64_t key)
{
    for (uint32_t at = hash_index_first(&q->by_key, key), i;
         (i = hash_index_entry(&q->by_key, at)) != HASH_INDEX_NONE;
         at = hash_index_next(&q->by_key, at)) {
        if (q->noted[i].key == key) {
            return &q->noted[i];
        }
    }
    return NULL;
}

/* NULL: no room. */
static struct noted *note(struct inquiry *q, uint64_t key, bool *ret_new)
{
    struct noted *n = noted_find(q, key);

    *ret_new = n == NULL;
    if (n == NULL && q->noted_count < NOTED) {
        hash_index_put(&q->by_key, key, q->noted_count);
        n = &q->noted[q->noted_count++];
        *n = (struct noted){.key = key};
    }
    return n;
}

/* NICs and trunks on a path, each with its direction, and the hosts and routers that they belong to. */
struct crossed {
    uint64_t keys[4 + 2 * PATH_HOP_MAX];
    uint32_t count;
};

static struct crossed crossed_by(const struct locate_route *r)
{
    struct crossed c = {.count = 4};

    c.keys[0] = element_key(ELEMENT_NIC, DIRECTION_OUT, r->from.index, 0);
    c.keys[1] = element_key(ELEMENT_NIC, DIRECTION_IN, r->to.index, 0);
    c.keys[2] = element_key(ELEMENT_HOST, DIRECTION_BOTH, r->from_host.index, 0);
    c.keys[3] = element_key(ELEMENT_HOST, DIRECTION_BOTH, r->to_host.index, 0);
    for (uint32_t i = 0; i < r->box_count; i++) {
        c.keys[c.count++] = element_key(r->boxes[i].kind, DIRECTION_BOTH, r->boxes[i].key, 0);
    }
    for (uint32_t i = 1; i < r->box_count; i++) {
        c.keys[c.count++] =
            element_key(ELEMENT_TRUNK, DIRECTION_OUT, r->boxes[i - 1].key, r->boxes[i].key);
    }
    return c;
}

/* The opposite way: arrivals over it distinguish an element from one of its directions. */
static struct locate_route turn(const struct locate_route *r)
{
    struct locate_route back = {.from_host = r->to_host,
                                .to_host = r->from_host,
                                .from = r->to,
                                .to = r->from,
                                .box_count = r->box_count};

    for (uint32_t i = 0; i < r->box_count; i++) {
        back.boxes[i] = r->boxes[r->box_count - 1 - i];
    }
    return back;
}

/* ---- selection of paths ------------------------------------------------------------------------------------------ */

static uint64_t path_hash(struct nic_id from, struct nic_id to, uint16_t port)
{
    return hash_u64((uint64_t)from.index << 32 | to.index, port);
}

static uint32_t slot_find(const struct inquiry *q, struct nic_id from, struct nic_id to,
                          uint16_t port)
{
    for (uint32_t at = hash_index_first(&q->by_path, path_hash(from, to, port)), i;
         (i = hash_index_entry(&q->by_path, at)) != HASH_INDEX_NONE;
         at = hash_index_next(&q->by_path, at)) {
        const struct slot *s = &q->slots[i];
        if (s->route.from.index == from.index && s->route.to.index == to.index && s->port == port) {
            return i;
        }
    }
    return SLOT_NONE;
}

bool inquiry_has(const struct inquiry *q, struct nic_id from, struct nic_id to, uint16_t port)
{
    return slot_find(q, from, to, port) != SLOT_NONE;
}

static uint32_t slot_add(struct inquiry *q, const struct inquiry_path *p)
{
    if (q->path_count == q->path_max) {
        q->refused++;
        return SLOT_NONE;
    }
    const uint32_t at = q->slot_free != SLOT_NONE ? q->slot_free : q->slot_top++;
    q->slot_free = q->slot_free != SLOT_NONE ? q->slots[at].next : SLOT_NONE;
    q->path_count++;
    q->slots[at] =
        (struct slot){.route = p->route, .port = p->port, .used = true, .at = {INT64_MIN}};
    hash_index_put(&q->by_path, path_hash(p->route.from, p->route.to, p->port), at);
    return at;
}

/* The path lost something, and so may others that share an element with it. False: its host has too many. */
static bool note_lost(struct inquiry *q, const struct locate_route *route)
{
    const struct locate_route turned = turn(route);
    const struct crossed crossed = crossed_by(route), back = crossed_by(&turned);
    bool fresh, news = false;
    struct noted *by = note(q, element_key(ELEMENT_HOST, 0, route->teller.index, 0), &fresh);

    if (by == NULL || by->count >= INQUIRY_TELLER) {
        q->refused++;
        return false;
    }
    by->count++;
    for (uint32_t i = 0; i < crossed.count; i++) {
        (void)note(q, crossed.keys[i], &fresh);
        news = news || fresh;
        (void)note(q, back.keys[i], &fresh);
        news = news || fresh;
    }
    q->round += news;
    return true;
}

/* The path is clean: it acquits elements for which there are too few clean ones. */
static bool note_clean(struct inquiry *q, const struct locate_route *route)
{
    const struct crossed crossed = crossed_by(route);
    bool wanted = false;

    for (uint32_t i = 0; i < crossed.count && !wanted; i++) {
        const struct noted *n = noted_find(q, crossed.keys[i]);
        wanted = n != NULL && n->count < INQUIRY_CLEAN;
    }
    for (uint32_t i = 0; i < crossed.count && wanted; i++) {
        struct noted *n = noted_find(q, crossed.keys[i]);
        if (n != NULL) {
            n->count++;
        }
    }
    return wanted;
}

/* A quarter of the room is reserved for lost paths. */
static bool room_for_clean(const struct inquiry *q)
{
    return q->path_count < q->path_max - q->path_max / 4;
}

static uint32_t take_clean(struct inquiry *q, const struct inquiry_path *p)
{
    return room_for_clean(q) && note_clean(q, &p->route) ? slot_add(q, p) : SLOT_NONE;
}

static void slot_drop(struct inquiry *q, uint32_t at)
{
    locate_path_clear(q->locate, at);
    q->slots[at] = (struct slot){.used = false, .next = q->slot_free};
    q->slot_free = at;
    q->path_count--;
}

/* Losses go on for as long as one element is broken. Paths that are no longer reported, and clean paths that acquit no accused
 * element, make room. A path that was lost before and isn't any more counts as clean. */
static void let_go(struct inquiry *q, struct mono now)
{
    q->sorted = now;
    q->noted_count = 0;
    hash_index_clear(&q->by_path);
    hash_index_clear(&q->by_key);
    for (int lost = 1; lost >= 0; lost--) { /* the lost paths decide which clean ones are wanted */
        for (uint32_t i = 0; i < q->slot_top; i++) {
            struct slot *s = &q->slots[i];
            if (!s->used || s->lost != lost) {
                continue;
            }
            const bool old = mono_sub(now, lost ? s->lost_at : s->at).ns > INQUIRY_CALM_NS;
            if (lost && old && room_for_clean(q)) {
                s->lost = false; /* the second round checks it */
                continue;
            }
            if (old || !(lost ? note_lost(q, &s->route) : note_clean(q, &s->route))) {
                slot_drop(q, i);
            } else {
                hash_index_put(&q->by_path, path_hash(s->route.from, s->route.to, s->port), i);
            }
        }
    }
}

static void forget_all(struct inquiry *q)
{
    for (uint32_t i = 0; i < q->slot_top; i++) {
        locate_path_clear(q->locate, i);
    }
    q->path_count = q->slot_top = q->noted_count = q->word_count = 0;
    q->slot_free = SLOT_NONE;
    hash_index_clear(&q->by_path);
    hash_index_clear(&q->by_key);
    q->wants = false;
}

bool inquiry_wants(const struct inquiry *q, uint32_t *ret_round)
{
    *ret_round = q->round;
    return q->wants;
}

void inquiry_on_path(struct inquiry *q, struct mono now, struct mono at,
                     const struct inquiry_path *p)
{
    const bool lost = p->dead || p->lossy;
    const int64_t age = mono_sub(now, at).ns;
    uint32_t slot = slot_find(q, p->route.from, p->route.to, p->port);

    if ((lost && p->route.box_count == 0) || (!lost && !q->wants)) {
        return;
    }
    if (age < 0 || age > AGE_NS) {
        q->refused++;
        return;
    }
    if (lost && (slot == SLOT_NONE || !q->slots[slot].lost) && !note_lost(q, &p->route)) {
        return;
    }
    if (slot == SLOT_NONE) {
        slot = lost ? slot_add(q, p) : take_clean(q, p);
    }
    if (slot == SLOT_NONE || at.ns <= q->slots[slot].at.ns) {
        return;
    }
    struct slot *s = &q->slots[slot];
    if (p->dead && !s->dead) { /* reports are too rare for a window to separate before and after */
        locate_path_clear(q->locate, slot);
    }
    s->dead = p->dead;
    const uint64_t part = (uint64_t)(p->dead ? 1000000 : p->loss_ppm) * TRIALS + s->rest;
    const uint32_t gone = (uint32_t)(part / 1000000);
    s->at = at;
    s->lost = s->lost || lost;
    s->lost_at = lost ? now : s->lost_at;
    s->rest = (uint32_t)(part % 1000000);
    s->route = p->route;
    locate_path_set(q->locate, slot, &p->route);
    locate_on_trials(q->locate, slot, at, TRIALS, gone < TRIALS ? gone : TRIALS);
    if (lost) {
        q->lost = now;
        q->round += !q->wants;
        q->sorted = q->wants ? q->sorted : now;
        q->wants = true;
    }
}

/* ---- named elements ---------------------------------------------------------------------------------------------- */

/* Makes room for another one: the oldest of those that are over is removed, never an open one. */
static struct known *known_add(struct inquiry *q)
{
    struct known *oldest = NULL;

    if (q->known_count < INQUIRY_KNOWN) {
        return &q->known[q->known_count++];
    }
    for (uint32_t i = 0; i < q->known_count; i++) {
        struct known *k = &q->known[i];
        if (k->over.ns != MONO_NEVER.ns && (oldest == NULL || mono_before(k->over, oldest->over))) {
            oldest = k;
        }
    }
    return oldest;
}

static struct known *known_find(struct inquiry *q, const struct locate_case *c)
{
    for (uint32_t i = 0; i < q->known_count; i++) {
        if (q->known[i].c.number == c->number && q->known[i].over.ns == MONO_NEVER.ns) {
            return &q->known[i];
        }
    }
    return NULL;
}

/* A case that ended a moment ago is the same fault, seen better now: its direction became known, or it came back. */
static void replace(struct inquiry *q, const struct locate_case *c)
{
    for (uint32_t i = q->known_count; i-- > 0;) {
        const struct known *k = &q->known[i];
        bool same = false;
        for (uint32_t e = 0; e < k->c.count; e++) {
            same = same || locate_same_thing(&k->c.elements[e], &c->elements[0]);
        }
        if (same && k->over.ns != MONO_NEVER.ns &&
            mono_sub(c->opened, k->over).ns < 2 * q->report.ns) {
            q->known[i] = q->known[--q->known_count];
        }
    }
}

/* True if all hosts have reported since the start, and their clean paths were passed. Earlier, mostly hosts with losses have
 * reported: a leaf seems to explain two faults on it until hosts report what came through it. */
static bool heard_all(const struct inquiry *q, struct mono now)
{
    return q->began.ns != MONO_NEVER.ns &&
           mono_sub(now, q->began).ns >= q->report.ns + q->report.ns / TOLD_SHARE;
}

/* Hosts that reported after the first round haven't been asked for clean paths yet. */
static void ask_all(struct inquiry *q, struct mono now)
{
    if (!q->asked_all && mono_sub(now, q->began).ns >= q->report.ns) {
        q->asked_all = true;
        q->round += q->wants;
    }
}

/* A name counts with reports of more than one host; or with one host's report about its own element, which no other contradicted
 * in the time in which all hosts report. */
static bool counts(const struct inquiry *q, struct mono now, const struct locate_case *c)
{
    return c->state == LOCATE_NAMED && heard_all(q, now) &&
           (c->witnesses > 1 || mono_sub(now, c->opened).ns > q->report.ns);
}

static const struct locate_case *open_case(const struct inquiry *q, uint64_t number)
{
    for (uint32_t n = 0; n < locate_case_count(q->locate); n++) {
        const struct locate_case *c = locate_case_get(q->locate, n);
        if (c->number == number && c->state == LOCATE_NAMED) {
            return c;
        }
    }
    return NULL;
}

/* The index of the case's element that a host means, whatever direction it reports; count: none. */
static uint32_t meant(const struct locate_case *c, const struct locate_element *word)
{
    uint32_t i = 0;

    while (i < c->count && !locate_same_thing(&c->elements[i], word)) {
        i++;
    }
    return i;
}

static bool take_word(struct known *k, const struct locate_element *word)
{
    const uint32_t at = k->c.alike && !k->worded ? meant(&k->c, word) : k->c.count;

    if (at == k->c.count) {
        return false;
    }
    k->shown = at;
    k->worded = true;
    return true;
}

/* A host may have been sure before the reports of all gave a name. */
static void recall_words(const struct inquiry *q, struct known *k)
{
    for (uint32_t i = 0; i < q->word_count && i < WORDS; i++) {
        const int64_t apart = mono_sub(q->words[i].since, k->c.began_low).ns;

        if (apart < INQUIRY_SINCE_NS && apart > -INQUIRY_SINCE_NS) {
            (void)take_word(k, &q->words[i].element);
        }
    }
}

/* An element whose case has another name now explains nothing any more. */
static void follow(struct inquiry *q, struct mono now)
{
    struct locate_case c;

    while (locate_next_change(q->locate, &c)) {
        struct known *k = c.state == LOCATE_ENDED ? known_find(q, &c) : NULL;
        if (k != NULL) {
            k->c = c;
            k->over = now;
            q->version++; /* what is still lost there is lost by something else */
        }
    }
    for (uint32_t i = q->known_count; i-- > 0;) {
        if (q->known[i].over.ns == MONO_NEVER.ns && open_case(q, q->known[i].c.number) == NULL) {
            q->known[i] = q->known[--q->known_count];
            q->version++;
        }
    }
    for (uint32_t n = 0; n < locate_case_count(q->locate); n++) {
        const struct locate_case *one = locate_case_get(q->locate, n);
        struct known *k = known_find(q, one);
        if (k != NULL || !counts(q, now, one)) {
            continue;
        }
        replace(q, one);
        k = known_add(q);
        if (k != NULL) {
            *k = (struct known){.c = *one, .over = MONO_NEVER};
            recall_words(q, k);
            q->version++;
        }
    }
}

void inquiry_tick(struct inquiry *q, struct mono now)
{
    q->began = mono_min(q->began, now);
    ask_all(q, now);
    if (q->wants) {
        locate_tick(q->locate, now);
        follow(q, now);
        if (mono_sub(now, q->sorted).ns > INQUIRY_CALM_NS) {
            let_go(q, now);
        }
    }
    for (uint32_t i = q->known_count; i-- > 0;) {
        if (q->known[i].over.ns != MONO_NEVER.ns &&
            mono_sub(now, q->known[i].over).ns > INQUIRY_MEMORY_NS) {
            q->known[i] = q->known[--q->known_count];
        }
    }
    if (q->wants && mono_sub(now, q->lost).ns > INQUIRY_CALM_NS &&
        locate_case_count(q->locate) == 0) {
        forget_all(q);
    }
}

uint32_t inquiry_version(const struct inquiry *q)
{
    return q->version;
}

static bool passes(const struct locate_route *r, uint64_t a, uint64_t b)
{
    for (uint32_t i = 1; i < r->box_count; i++) {
        if (r->boxes[i - 1].key == a && r->boxes[i].key == b) {
            return true;
        }
    }
    return false;
}

static bool crosses(const struct locate_route *r, const struct locate_element *e)
{
    switch ((enum element_kind)e->kind) {
    case ELEMENT_NIC:
        return (e->direction != DIRECTION_IN && r->from.index == e->a) ||
               (e->direction != DIRECTION_OUT && r->to.index == e->a);
    case ELEMENT_HOST:
        return r->from_host.index == e->a || r->to_host.index == e->a;
    case ELEMENT_TRUNK:
        return passes(r, e->a, e->b) || (e->direction == DIRECTION_BOTH && passes(r, e->b, e->a));
    default:
        for (uint32_t i = 0; i < r->box_count; i++) {
            if (r->boxes[i].key == e->a) {
                return true;
            }
        }
        return false;
    }
}

/* True if its direction is known: for all reports so far, another direction explains less. */
static bool one_way(const struct locate_case *c, const struct locate_element *e)
{
    uint32_t ways = 0;

    for (uint32_t i = 0; i < c->count; i++) {
        ways += locate_same_thing(&c->elements[i], e);
    }
    return ways <= 1;
}

/* The element that explains it. An open case comes before one that is over: by reports, one's end and another's beginning are
 * seconds apart. */
static struct known *explains(struct inquiry *q, struct mono since,
                              const struct locate_route *route)
{
    struct known *best = NULL;

    for (uint32_t i = 0; i < q->known_count; i++) {
        struct known *k = &q->known[i];
        const bool over = k->over.ns != MONO_NEVER.ns;

        if (mono_sub(k->c.began_low, since).ns > INQUIRY_SINCE_NS ||
            (over && mono_sub(since, k->c.ended_high).ns > 0) ||
            !crosses(route, &k->c.elements[k->shown])) {
            continue;
        }
        if (!over) {
            return k;
        }
        best = best == NULL ? k : best;
    }
    return best;
}

bool inquiry_place(struct inquiry *q, struct mono since, const struct locate_route *route,
                   const struct locate_element *word, struct locate_element *ret)
{
    struct known *k = explains(q, since, route);

    if (k == NULL) {
        if (word != NULL) {
            q->words[q->word_count++ % WORDS] = (struct word){*word, since};
        }
        return false;
    }
    const uint32_t shown = k->shown;
    if (word != NULL && take_word(k, word)) {
        q->version += k->shown != shown;
    }
    *ret = k->c.elements[k->shown];
    ret->direction = one_way(&k->c, ret) ? ret->direction : DIRECTION_NONE;
    return true;
}

uint32_t inquiry_cases(const struct inquiry *q, struct locate_case ret[static INQUIRY_KNOWN])
{
    for (uint32_t i = 0; i < q->known_count; i++) {
        ret[i] = q->known[i].c;
    }
    return q->known_count;
}

uint64_t inquiry_refused(const struct inquiry *q)
{
    return q->refused;
}
