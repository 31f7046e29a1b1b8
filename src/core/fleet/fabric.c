/* fabric.c: switches and trunks, from the ways that hosts report. */
#include "core/fleet/fabric.h"

#include <stdlib.h>
#include <string.h>

#include "base/ip.h"
#include "base/prng.h"
#include "core/fleet/delay_code.h"

#define DROP_NS (60 * NS_PER_S)

enum {
    CONTRADICTION_LOOKS = 32, /* of one table: each needs a search over all switches */
    /* of a full switch's addresses, those that one host reported first, or named */
    ADDRESS_SHARE = 4,
    /* the bits of the place + 1 in a way's number; the bits above are the place's life */
    ADDRESS_PLACE_BITS = 5
};

struct fabric *fabric_free(struct fabric *f)
{
    if (f != NULL) {
        free(f->switches);
        hash_index_done(&f->by_name);
        free(f->trunks);
        hash_index_done(&f->by_ends);
        free(f);
    }
    return NULL;
}

struct fabric *fabric_new(void)
{
    struct fabric *f = calloc(1, sizeof(*f));

    if (f == NULL) {
        return NULL;
    }
    f->switches = calloc(FABRIC_SWITCH_MAX, sizeof(*f->switches));
    f->trunks = calloc(FABRIC_TRUNK_MAX, sizeof(*f->trunks));
    f->looked = f->dropped = f->made_room = (struct mono){INT64_MIN / 2};
    if (f->switches == NULL || f->trunks == NULL ||
        hash_index_room(&f->by_name, FABRIC_SWITCH_MAX) < 0 ||
        hash_index_room(&f->by_ends, FABRIC_TRUNK_MAX) < 0) {
        return fabric_free(f);
    }
    return f;
}

/* ---- switches ---- */

uint32_t fabric_find_switch(const struct fabric *f, const char *name)
{
    for (uint32_t at = hash_index_first(&f->by_name, hash_text(name)), i;
         (i = hash_index_entry(&f->by_name, at)) != HASH_INDEX_NONE;
         at = hash_index_next(&f->by_name, at)) {
        if (strcmp(f->switches[i].name, name) == 0) {
            return i + 1;
        }
    }
    return 0;
}

static bool numbered(const char *name, const char *word, uint32_t *ret_number)
{
    const size_t length = strlen(word);
    char *end = NULL;
    if (strncmp(name, word, length) != 0 || name[length] < '0' || name[length] > '9') {
        return false;
    }
    const unsigned long long number = strtoull(name + length, &end, 10);
    *ret_number = (uint32_t)number;
    return *end == 0 && number < UINT32_MAX;
}

/* As agents use it in findings: leaves and spines of their configuration by number, others by address. */
static struct place place_of(const char *name)
{
    uint32_t number;
    if (numbered(name, "leaf", &number)) {
        return (struct place){.kind = PLACE_LEAF, .number = number};
    }
    if (numbered(name, "spine", &number)) {
        return (struct place){.kind = PLACE_SPINE, .number = number};
    }
    return (struct place){.kind = PLACE_NONE, .number = UINT32_MAX};
}

static struct fabric_address *find_address(struct fabric_switch *s, const uint8_t address[16])
{
    for (uint8_t i = 0; i < s->address_count; i++) {
        if (memcmp(s->addresses[i].address, address, 16) == 0) {
            return &s->addresses[i];
        }
    }
    return NULL;
}

/* The reporter of a way gives the address, the host beside the switch gives its name: neither can outvote others alone. */
static uint32_t votes(const struct fabric_address *a)
{
    uint32_t both = 0;
    for (uint64_t left = a->namers; left != 0 && both < a->hosts; left &= left - 1) {
        both++;
    }
    return both;
}

/* Sets the address with the most votes; with equal votes the first one. */
static void settle(struct fabric_switch *s)
{
    const struct fabric_address *best = NULL;
    for (uint8_t i = 0; i < s->address_count; i++) {
        best = best == NULL || votes(&s->addresses[i]) > votes(best) ? &s->addresses[i] : best;
    }
    if (best != NULL && (s->place.kind == PLACE_NONE || s->place.kind == PLACE_ROUTER)) {
        s->place = (struct place){.kind = PLACE_ROUTER, .number = UINT32_MAX};
        memcpy(s->place.address, best->address, 16);
    }
}

static bool has_its_share(const struct fabric_switch *s, const struct fabric_teller *by)
{
    uint32_t told = 0, named = 0;
    for (uint8_t i = 0; i < s->address_count; i++) {
        told += s->addresses[i].first.host == by->host;
        named += s->addresses[i].first.namer == by->namer;
    }
    return told >= ADDRESS_SHARE || named >= ADDRESS_SHARE;
}

/* A place for another address: a free one; or else, for a reporter without its share, a place with one vote: the oldest of those
 * with the fewest votes. NULL: none. */
static struct fabric_address *free_place(const struct fabric *f, struct fabric_switch *s,
                                         const struct fabric_teller *by)
{
    struct fabric_address *best = NULL;
    for (uint8_t i = 0; i < s->address_count; i++) {
        struct fabric_address *a = &s->addresses[i];
        const bool may = a->put != f->turn && votes(a) < 2; /* not one from this table */
        if (may && (best == NULL || votes(a) < votes(best) ||
                    (votes(a) == votes(best) && f->turn - a->put > f->turn - best->put))) {
            best = a;
        }
    }
    if (best != NULL && best->hosts == 0) {
        return best;
    }
    return s->address_count < FABRIC_ADDRESS_MAX ? &s->addresses[s->address_count++]
           : has_its_share(s, by)                ? NULL
                                                 : best;
}

static struct fabric_address *put_address(struct fabric *f, struct fabric_switch *s,
                                          const uint8_t address[16], const struct fabric_teller *by)
{
    struct fabric_address *a = find_address(s, address);
    if (a != NULL && (a->hosts > 0 || a->put == f->turn)) {
        return a; /* some host reports it */
    }
    a = a != NULL ? a : free_place(f, s, by);
    if (a != NULL) {
        *a = (struct fabric_address){.life = a->life + 1, .put = f->turn, .first = *by};
        memcpy(a->address, address, 16);
        settle(s);
    }
    return a;
}

/* The address of a way's number; NULL: the place belonged to another address, or there was none. */
static struct fabric_address *address_at(const struct fabric *f, uint32_t number, uint16_t kept)
{
    const uint32_t at = kept & ((1U << ADDRESS_PLACE_BITS) - 1);
    struct fabric_address *a =
        number > 0 && at > 0 ? &f->switches[number - 1].addresses[at - 1] : NULL;
    return a != NULL && (uint16_t)(a->life << ADDRESS_PLACE_BITS | at) == kept ? a : NULL;
}

/* Counts a host once if its table has the address, however often. comes: the table is added, otherwise removed. */
static void count_teller(struct fabric *f, uint32_t number, uint16_t kept, bool comes)
{
    struct fabric_address *a = address_at(f, number, kept);
    if (a != NULL && a->turn != f->turn) {
        a->turn = f->turn;
        a->hosts = comes ? a->hosts + 1 : a->hosts > 0 ? a->hosts - 1 : 0;
        a->namers = a->hosts > 0 ? a->namers : 0;
        settle(&f->switches[number - 1]);
    }
}

uint16_t fabric_on_address(struct fabric *f, uint32_t number, const char *said,
                           struct fabric_teller by)
{
    uint8_t address[16];
    if (number == 0 || !ip_parse(said, address)) {
        return 0;
    }
    struct fabric_switch *s = &f->switches[number - 1];
    struct fabric_address *a = put_address(f, s, address, &by);
    if (a == NULL) {
        return 0;
    }
    a->namers |= 1ULL << by.namer % 64;
    return (uint16_t)(a->life << ADDRESS_PLACE_BITS | (uint32_t)(a - s->addresses + 1));
}

uint32_t fabric_find_place(const struct fabric *f, const struct place *place)
{
    uint32_t best = 0, most = 0;
    for (uint32_t i = 0; i < f->switch_count && place->kind != PLACE_NONE; i++) {
        const struct place *p = &f->switches[i].place;
        if (p->kind != place->kind || p->number != place->number) {
            continue;
        }
        if (p->number != UINT32_MAX) {
            return i + 1;
        }
        const struct fabric_address *a = find_address(&f->switches[i], place->address);
        if (a != NULL && (best == 0 || votes(a) > most)) {
            best = i + 1;
            most = votes(a);
        }
    }
    return best;
}

static bool is_unnamed(const struct fabric *f, uint32_t number)
{
    uint8_t address[16];
    return ip_parse(f->switches[number - 1].name, address);
}

uint32_t fabric_contradicted(const struct fabric *f, uint32_t host, const struct fabric_way *ways,
                             uint32_t count, uint32_t *at, uint32_t *ret_other)
{
    const struct fabric_address *last[PATH_HOP_MAX] = {NULL}; /* ways through one NIC are alike */
    const uint32_t places = count * PATH_HOP_MAX;
    uint32_t looks = 0;
    for (uint32_t i = 0; i < places && looks < CONTRADICTION_LOOKS; i++) {
        *at = *at + 1 < places ? *at + 1 : 0;
        const uint32_t k = *at % PATH_HOP_MAX;
        const struct fabric_way *way = &ways[*at / PATH_HOP_MAX];
        const uint32_t here = way->switches[k];
        const struct fabric_address *a = address_at(f, here, way->addresses[k]);
        if (a == NULL || a == last[k] || votes(a) > 1 || a->first.namer != host ||
            is_unnamed(f, here)) {
            continue;
        }
        last[k] = a;
        looks++;
        struct place place = {.kind = PLACE_ROUTER, .number = UINT32_MAX};
        memcpy(place.address, a->address, 16);
        const uint32_t other = fabric_find_place(f, &place);
        if (other != 0 && other != here && !is_unnamed(f, other) &&
            votes(find_address(&f->switches[other - 1], a->address)) > 1) {
            *ret_other = other;
            return here;
        }
    }
    return 0;
}

uint32_t fabric_on_switch(struct fabric *f, const char *name, uint32_t *named, bool *ret_refused)
{
    *ret_refused = false;
    if (name[0] == 0 || strlen(name) >= sizeof(f->switches[0].name)) {
        return 0;
    }
    const uint32_t known = fabric_find_switch(f, name);
    if (known != 0 || f->switch_count == FABRIC_SWITCH_MAX) {
        return known;
    }
    if (*named >= FABRIC_SWITCH_HOST_MAX) {
        *ret_refused = true;
        return 0;
    }
    ++*named;
    memcpy(f->switches[f->switch_count].name, name, strlen(name) + 1);
    f->switches[f->switch_count].place = place_of(name);
    hash_index_put(&f->by_name, hash_text(name), f->switch_count);
    return ++f->switch_count;
}

const char *fabric_name_of(const char *said, const char *leaf)
{
    uint8_t address[16];

    return leaf[0] != 0 && ip_parse(said, address) ? leaf : said;
}

const char *fabric_switch_name(const struct fabric *f, uint32_t number)
{
    return number != 0 ? f->switches[number - 1].name : NULL;
}

bool fabric_names_way(const struct fabric_way *way)
{
    for (uint32_t k = 0; way != NULL && k < way->hops && way->hops <= PATH_HOP_MAX; k++) {
        if (way->switches[k] != 0) {
            return true;
        }
    }
    return false;
}

/* ---- trunks ---- */

static struct fabric_trunk *trunk_find(const struct fabric *f, uint32_t from, uint32_t to)
{
    for (uint32_t at = hash_index_first(&f->by_ends, hash_u64(from, to)), i;
         (i = hash_index_entry(&f->by_ends, at)) != HASH_INDEX_NONE;
         at = hash_index_next(&f->by_ends, at)) {
        if (f->trunks[i].from == from && f->trunks[i].to == to) {
            return &f->trunks[i];
        }
    }
    return NULL;
}

static void index_trunks(struct fabric *f)
{
    hash_index_clear(&f->by_ends);
    for (uint32_t i = 0; i < f->trunk_count; i++) {
        hash_index_put(&f->by_ends, hash_u64(f->trunks[i].from, f->trunks[i].to), i);
    }
}

/* Removes trunks that have been gone for so long. A search over all trunks isn't made for each host's table, but when trunks are
 * listed or no room is left, and at most once a minute each (`last`). Otherwise a fabric with too many trunks would search with
 * each way. */
static void drop_gone(struct fabric *f, int64_t gone_ns, struct mono *last, struct mono now)
{
    uint32_t kept = 0;

    if (mono_sub(now, *last).ns < DROP_NS) {
        return;
    }
    *last = now;
    for (uint32_t i = 0; i < f->trunk_count; i++) {
        if (f->trunks[i].ways > 0 || mono_sub(now, f->trunks[i].gone).ns <= gone_ns) {
            f->trunks[kept++] = f->trunks[i];
        }
    }
    if (kept < f->trunk_count) {
        f->trunk_count = kept;
        index_trunks(f);
    }
}

/* NULL: there are too many trunks; this one isn't shown. */
static struct fabric_trunk *trunk_add(struct fabric *f, uint32_t from, uint32_t to, struct mono now)
{
    struct fabric_trunk *t = trunk_find(f, from, to);

    if (t == NULL && f->trunk_count == FABRIC_TRUNK_MAX) {
        drop_gone(f, 0, &f->made_room,
                  now); /* a trunk that no host reports must not keep out an existing one */
    }
    if (t != NULL || f->trunk_count == FABRIC_TRUNK_MAX) {
        return t;
    }
    hash_index_put(&f->by_ends, hash_u64(from, to), f->trunk_count);
    t = &f->trunks[f->trunk_count++];
    *t = (struct fabric_trunk){.from = (uint16_t)from, .to = (uint16_t)to};
    return t;
}

static bool way_known(const struct fabric_way *way)
{
    bool known = way->hops > 0 && way->hops <= PATH_HOP_MAX;
    for (uint32_t k = 0; known && k < way->hops; k++) {
        known = way->switches[k] != 0;
    }
    return known;
}

void fabric_on_ways(struct fabric *f, const struct fabric_way *ways, uint32_t count,
                    struct mono now)
{
    f->ways += count;
    f->turn++;
    for (uint32_t i = 0; i < count; i++) {
        const struct fabric_way *way = &ways[i];
        const bool whole = way_known(way);
        f->ways_known += whole;
        for (uint32_t k = 0; k < way->hops && k < PATH_HOP_MAX; k++) {
            const uint32_t here = way->switches[k],
                           tier = k < way->hops - 1 - k ? k : way->hops - 1 - k;
            if (here == 0) {
                continue;
            }
            struct fabric_switch *s = &f->switches[here - 1];
            s->ways++;
            count_teller(f, here, way->addresses[k], true);
            s->tier = whole && tier > s->tier ? (uint8_t)tier : s->tier;
            const uint32_t before = k > 0 ? way->switches[k - 1] : 0;
            struct fabric_trunk *t =
                before != 0 && before != here ? trunk_add(f, before - 1, here - 1, now) : NULL;
            if (t != NULL) {
                t->ways++;
            }
        }
    }
}

void fabric_on_ways_gone(struct fabric *f, const struct fabric_way *ways, uint32_t count,
                         struct mono now)
{
    f->ways -= count;
    f->turn++;
    for (uint32_t i = 0; i < count; i++) {
        const struct fabric_way *way = &ways[i];
        f->ways_known -= way_known(way);
        for (uint32_t k = 0; k < way->hops && k < PATH_HOP_MAX; k++) {
            const uint32_t here = way->switches[k], before = k > 0 ? way->switches[k - 1] : 0;
            struct fabric_trunk *t =
                here != 0 && before != 0 ? trunk_find(f, before - 1, here - 1) : NULL;
            if (here != 0) {
                f->switches[here - 1].ways--;
                count_teller(f, here, way->addresses[k], false);
            }
            if (t != NULL && t->ways > 0 && --t->ways == 0) {
                t->gone = now;
            }
        }
    }
}

/* ---- figures of trunks ---- */

static bool is_bad(enum fabric_path_state state)
{
    return state == FABRIC_PATH_DEAD || state == FABRIC_PATH_LOSSY;
}

bool fabric_look(struct fabric *f, uint64_t paths, struct span age, struct mono now)
{
    if (mono_sub(now, f->looked).ns < age.ns) {
        return false;
    }
    f->looked = now;
    f->each = paths / FABRIC_LOOK_PATHS + 1;
    f->seen = 0;
    drop_gone(f, FABRIC_GONE_NS, &f->dropped, now);
    for (uint32_t i = 0; i < f->trunk_count; i++) {
        struct fabric_trunk *t = &f->trunks[i];
        t->alive = t->lossy = t->dead = 0;
        t->owd_p50 = t->owd_p99 = DELAY_CODE_NONE;
        t->loss_ppm = UINT32_MAX;
    }
    return true;
}

bool fabric_looks_at(struct fabric *f, enum fabric_path_state state)
{
    return is_bad(state) || f->seen++ % f->each == 0;
}

static void count_path(struct fabric_trunk *t, const struct fabric_path *p)
{
    const bool best = p->p99 != DELAY_CODE_NONE && p->p50 != DELAY_CODE_NONE &&
                      (t->owd_p99 == DELAY_CODE_NONE || p->p99 < t->owd_p99);

    t->alive += p->state == FABRIC_PATH_ALIVE;
    t->lossy += p->state == FABRIC_PATH_LOSSY;
    t->dead += p->state == FABRIC_PATH_DEAD;
    if (p->state != FABRIC_PATH_ALIVE && p->state != FABRIC_PATH_LOSSY) {
        return;
    }
    t->loss_ppm = p->loss_ppm < t->loss_ppm ? p->loss_ppm : t->loss_ppm;
    if (best) {
        t->owd_p50 = p->p50;
        t->owd_p99 = p->p99;
    }
}

void fabric_on_path(struct fabric *f, const struct fabric_way *way, const struct fabric_path *path)
{
    for (uint32_t k = 1; k < way->hops && k < PATH_HOP_MAX; k++) {
        const uint32_t from = way->switches[k - 1], to = way->switches[k];
        struct fabric_trunk *t = from != 0 && to != 0 ? trunk_find(f, from - 1, to - 1) : NULL;
        if (t != NULL) {
            count_path(t, path);
        }
    }
}

const char *fabric_trunk_state(const struct fabric_trunk *t)
{
    return t->ways == 0   ? "gone"
           : t->alive > 0 ? "good"
           : t->lossy > 0 ? "lossy"
           : t->dead > 0  ? "dead"
                          : "unknown";
}

/* ---- elements ---- */

void fabric_route(const struct fabric *f, const struct fabric_way *way, struct locate_route *route)
{
    route->box_count = 0;
    for (uint32_t k = 0; way != NULL && k < way->hops && way->hops <= PATH_HOP_MAX; k++) {
        const uint32_t number = way->switches[k];
        const uint32_t kind =
            number != 0 ? element_at(&f->switches[number - 1].place).kind : ELEMENT_UNKNOWN;
        if (kind == ELEMENT_UNKNOWN) {
            route->box_count = 0;
            return;
        }
        route->boxes[route->box_count++] = (struct locate_box){number, (uint8_t)kind};
    }
}

static struct place place_at(const struct fabric *f, uint64_t number)
{
    return number > 0 && number <= f->switch_count
               ? f->switches[number - 1].place
               : (struct place){.kind = PLACE_NONE, .number = UINT32_MAX};
}

struct element fabric_element(const struct fabric *f, const struct locate_element *e)
{
    struct element r;
    if (e->kind == ELEMENT_NIC || e->kind == ELEMENT_HOST) {
        r = element_of((enum element_kind)e->kind, e->kind == ELEMENT_NIC ? PLACE_NIC : PLACE_HOST,
                       (uint32_t)e->a);
    } else {
        const struct place a = place_at(f, e->a);
        r = element_at(&a);
        r.kind = e->kind;
    }
    r.direction = e->direction;
    if (e->kind == ELEMENT_TRUNK) {
        r.b = place_at(f, e->b);
        const bool swap = r.a.kind == PLACE_SPINE || (r.a.kind == r.b.kind && e->a > e->b);
        if (swap) {
            const struct place a = r.a;
            r.a = r.b;
            r.b = a;
            r.direction = r.direction == DIRECTION_OUT  ? DIRECTION_IN
                          : r.direction == DIRECTION_IN ? DIRECTION_OUT
                                                        : r.direction;
        }
    }
    return r;
}

bool fabric_locate(const struct fabric *f, const struct element *e, struct locate_element *ret)
{
    *ret = (struct locate_element){.kind = (uint8_t)e->kind, .a = e->a.number};
    if (e->kind == ELEMENT_NIC || e->kind == ELEMENT_HOST) {
        return true;
    }
    ret->a = fabric_find_place(f, &e->a);
    ret->b = e->kind == ELEMENT_TRUNK ? fabric_find_place(f, &e->b) : 0;
    return ret->a != 0 && (e->kind != ELEMENT_TRUNK || ret->b != 0);
}
