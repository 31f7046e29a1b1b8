/* fabric.c: switches and trunks, out of the ways that hosts tell of. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/ip.h"
#include "base/prng.h"
#include "core/fleet/delay_code.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fabric.h"
#include "service/controller/fleet/fleet.h"

enum { TRUNKS_FIRST = 256 };

int fabric_open(struct controller *c)
{
    struct fabric *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        return -ENOMEM;
    }
    c->fabric = f;
    f->switches = calloc(FABRIC_SWITCH_MAX, sizeof(*f->switches));
    f->trunks = calloc(TRUNKS_FIRST, sizeof(*f->trunks));
    f->trunk_capacity = TRUNKS_FIRST;
    f->looked = f->dropped = (struct mono){INT64_MIN / 2};
    if (f->switches == NULL || f->trunks == NULL ||
        hash_index_room(&f->by_name, FABRIC_SWITCH_MAX) < 0) {
        return -ENOMEM;
    }
    return hash_index_room(&f->by_ends, TRUNKS_FIRST);
}

void fabric_close(struct controller *c)
{
    if (c->fabric != NULL) {
        free(c->fabric->switches);
        hash_index_done(&c->fabric->by_name);
        free(c->fabric->trunks);
        hash_index_done(&c->fabric->by_ends);
        free(c->fabric);
        c->fabric = NULL;
    }
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
    const unsigned long number = strtoul(name + length, &end, 10);
    *ret_number = (uint32_t)number;
    return *end == 0 && number < UINT32_MAX;
}

/* As agents mean it in findings: leaves and spines of their configuration by number, others by address. */
static struct place place_of(const char *name, const char *said)
{
    struct place p = {.kind = PLACE_ROUTER, .number = UINT32_MAX};
    uint32_t number;
    if (numbered(name, "leaf", &number)) {
        return (struct place){.kind = PLACE_LEAF, .number = number};
    }
    if (numbered(name, "spine", &number)) {
        return (struct place){.kind = PLACE_SPINE, .number = number};
    }
    return ip_parse(said, p.address) ? p : (struct place){.kind = PLACE_NONE, .number = UINT32_MAX};
}

uint32_t fabric_find_place(const struct fabric *f, const struct place *place)
{
    for (uint32_t i = 0; i < f->switch_count && place->kind != PLACE_NONE; i++) {
        const struct place *p = &f->switches[i].place;
        if (p->kind == place->kind && p->number == place->number &&
            (p->number != UINT32_MAX || memcmp(p->address, place->address, 16) == 0)) {
            return i + 1;
        }
    }
    return 0;
}

/* Its number + 1; 0: there are too many, this host has named too many, or it has no name. */
static uint32_t switch_of(struct fabric *f, struct fleet_host *h, const char *name,
                          const char *said)
{
    if (name[0] == 0 || strlen(name) >= sizeof(f->switches[0].name)) {
        return 0;
    }
    const uint32_t known = fabric_find_switch(f, name);
    if (known != 0 || f->switch_count == FABRIC_SWITCH_MAX) {
        return known;
    }
    if (h->switches_named >= FABRIC_SWITCH_HOST_MAX) {
        if (!h->switches_told) {
            h->switches_told = true;
            controller_say(LOG_WARNING,
                           "host %s names more than %d switches that no other host has named: "
                           "the rest of them is left out",
                           h->name, FABRIC_SWITCH_HOST_MAX);
        }
        return 0;
    }
    h->switches_named++;
    memcpy(f->switches[f->switch_count].name, name, strlen(name) + 1);
    f->switches[f->switch_count].place = place_of(name, said);
    hash_index_put(&f->by_name, hash_text(name), f->switch_count);
    return ++f->switch_count;
}

static bool is_address(const char *name)
{
    uint8_t bytes[16];
    return inet_pton(AF_INET, name, bytes) == 1 || inet_pton(AF_INET6, name, bytes) == 1;
}

/* The name of a switch: its own, or that of the leaf on which `beside` hangs. */
static const char *name_of(const char *said, const struct fleet_nic *beside)
{
    const char *leaf = beside == NULL              ? ""
                       : beside->leaf[0] != 0      ? beside->leaf
                       : beside->neighbour[0] != 0 ? beside->neighbour
                                                   : "";
    return leaf[0] != 0 && is_address(said) ? leaf : said;
}

void fabric_name_ways(struct controller *c, struct fleet_host *h, const Foliot__V1__PathTable *t,
                      struct fleet_hops *hops)
{
    size_t places = 0, at = 0;
    for (size_t i = 0; i < t->n_out_hops; i++) {
        places += t->out_hops[i];
    }
    if (places != t->n_out_router) {
        return;
    }
    for (size_t i = 0; i < t->n_out_hops; at += t->out_hops[i++]) {
        const uint32_t count = t->out_hops[i];
        const struct fleet_nic *own = fleet_find_nic(c, t->out_local[i]);
        if (own == NULL || own->host != h || count > PATH_HOP_MAX) {
            continue;
        }
        for (uint32_t k = 0; k < count; k++) {
            const uint32_t number = t->out_router[at + k];
            const char *said = number > 0 && number <= t->n_router ? t->router[number - 1] : "";
            const struct fleet_nic *beside = k == 0           ? own
                                             : k + 1 == count ? fleet_find_nic(c, t->out_peer[i])
                                                              : NULL;
            hops[i].switches[k] = (uint16_t)switch_of(c->fabric, h, name_of(said, beside), said);
        }
    }
}

const char *fabric_switch_name(const struct fabric *f, uint32_t number)
{
    return number != 0 ? f->switches[number - 1].name : NULL;
}

bool fabric_names_way(const struct fleet_hops *way)
{
    for (uint32_t k = 0; way != NULL && k < way->hops && way->hops <= PATH_HOP_MAX; k++) {
        if (way->switches[k] != 0) {
            return true;
        }
    }
    return false;
}

const char *fabric_first_switch(const struct controller *c, const struct fleet_nic *nic)
{
    const struct fleet_host *h = nic->host;
    for (uint32_t i = 0; i < h->hop_count; i++) {
        if (h->hops[i].local == nic->id && h->hops[i].switches[0] != 0) {
            return fabric_switch_name(c->fabric, h->hops[i].switches[0]);
        }
    }
    return NULL;
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

/* Those gone for long. What looks through all trunks isn't done for each host's table, but when they are looked at, and
 * where there is no room: once a minute, lest a fabric with too many looks for room with each way. */
static void drop_gone(struct fabric *f)
{
    const struct mono now = controller_mono();
    const int64_t before_ns = controller_utc_ns() - FABRIC_GONE_NS;
    uint32_t kept = 0;
    if (mono_sub(now, f->dropped).ns < 60 * NS_PER_S) {
        return;
    }
    f->dropped = now;
    for (uint32_t i = 0; i < f->trunk_count; i++) {
        if (f->trunks[i].ways > 0 || f->trunks[i].gone_utc_ns >= before_ns) {
            f->trunks[kept++] = f->trunks[i];
        }
    }
    if (kept < f->trunk_count) {
        f->trunk_count = kept;
        index_trunks(f);
    }
}

static bool grow(struct fabric *f)
{
    const uint32_t capacity = f->trunk_capacity * 2;
    if (capacity > FABRIC_TRUNK_MAX) {
        return false;
    }
    struct fabric_trunk *trunks = realloc(f->trunks, capacity * sizeof(*trunks));
    f->trunks = trunks != NULL ? trunks : f->trunks;
    if (trunks == NULL || hash_index_room(&f->by_ends, capacity) < 0) {
        return false;
    }
    f->trunk_capacity = capacity;
    index_trunks(f);
    return true;
}

/* NULL: there are too many; what isn't known isn't drawn. */
static struct fabric_trunk *trunk_add(struct fabric *f, uint32_t from, uint32_t to)
{
    struct fabric_trunk *t = trunk_find(f, from, to);
    if (t == NULL && f->trunk_count == FABRIC_TRUNK_MAX) {
        drop_gone(f);
    }
    if (t != NULL || (f->trunk_count == f->trunk_capacity && !grow(f))) {
        return t;
    }
    hash_index_put(&f->by_ends, hash_u64(from, to), f->trunk_count);
    t = &f->trunks[f->trunk_count++];
    *t = (struct fabric_trunk){.from = (uint16_t)from, .to = (uint16_t)to};
    return t;
}

static bool way_known(const struct fleet_hops *way)
{
    bool known = way->hops > 0 && way->hops <= PATH_HOP_MAX;
    for (uint32_t k = 0; known && k < way->hops; k++) {
        known = way->switches[k] != 0;
    }
    return known;
}

void fabric_add_ways(struct controller *c, const struct fleet_hops *hops, uint32_t count)
{
    struct fabric *f = c->fabric;
    f->ways += count;
    for (uint32_t i = 0; i < count; i++) {
        const struct fleet_hops *way = &hops[i];
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
            s->tier = whole && tier > s->tier ? (uint8_t)tier : s->tier;
            const uint32_t before = k > 0 ? way->switches[k - 1] : 0;
            struct fabric_trunk *t =
                before != 0 && before != here ? trunk_add(f, before - 1, here - 1) : NULL;
            if (t != NULL) {
                t->ways++;
                t->gone_utc_ns = 0;
            }
        }
    }
}

void fabric_take_ways(struct controller *c, const struct fleet_hops *hops, uint32_t count)
{
    struct fabric *f = c->fabric;
    f->ways -= count;
    for (uint32_t i = 0; i < count; i++) {
        const struct fleet_hops *way = &hops[i];
        f->ways_known -= way_known(way);
        for (uint32_t k = 0; k < way->hops && k < PATH_HOP_MAX; k++) {
            const uint32_t here = way->switches[k], before = k > 0 ? way->switches[k - 1] : 0;
            struct fabric_trunk *t =
                here != 0 && before != 0 ? trunk_find(f, before - 1, here - 1) : NULL;
            if (here != 0) {
                f->switches[here - 1].ways--;
            }
            if (t != NULL && t->ways > 0 && --t->ways == 0) {
                t->gone_utc_ns = controller_utc_ns();
            }
        }
    }
}

/* ---- what is on them ---- */

static void count_path(struct fabric_trunk *t, const struct fleet_path *p)
{
    const bool best = p->p99 != DELAY_CODE_NONE && p->p50 != DELAY_CODE_NONE &&
                      (t->owd_p99 == DELAY_CODE_NONE || p->p99 < t->owd_p99);
    switch (p->state) {
    case FOLIOT__V1__PATH_STATE__PATH_STATE_ALIVE:
    case FOLIOT__V1__PATH_STATE__PATH_STATE_SUSPECT:
        t->alive++;
        break;
    case FOLIOT__V1__PATH_STATE__PATH_STATE_LOSSY:
        t->lossy++;
        break;
    case FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD:
        t->dead++;
        return;
    default:
        return;
    }
    t->loss_ppm = p->loss_ppm < t->loss_ppm ? p->loss_ppm : t->loss_ppm;
    if (best) {
        t->owd_p50 = p->p50;
        t->owd_p99 = p->p99;
    }
}

static void look_at(const struct controller *c, const struct fleet_path *p)
{
    const struct fleet_hops *way = fleet_way(c, p->peer, p->local, p->port);
    for (uint32_t k = 1; way != NULL && k < way->hops && k < PATH_HOP_MAX; k++) {
        const uint32_t from = way->switches[k - 1], to = way->switches[k];
        struct fabric_trunk *t =
            from != 0 && to != 0 ? trunk_find(c->fabric, from - 1, to - 1) : NULL;
        if (t != NULL) {
            count_path(t, p);
        }
    }
}

void fabric_look(struct controller *c)
{
    const struct mono now = controller_mono();
    struct fabric *f = c->fabric;
    uint64_t paths = 0, seen = 0;
    if (mono_sub(now, f->looked).ns < (int64_t)c->config.report_ms * NS_PER_MS) {
        return;
    }
    f->looked = now;
    drop_gone(f);
    for (uint32_t i = 0; i < f->trunk_count; i++) {
        struct fabric_trunk *t = &f->trunks[i];
        t->alive = t->lossy = t->dead = 0;
        t->owd_p50 = t->owd_p99 = DELAY_CODE_NONE;
        t->loss_ppm = UINT32_MAX;
    }
    for (uint32_t i = 0; i < c->host_count; i++) {
        paths += c->hosts[i]->path_count;
    }
    const uint64_t each = paths / FABRIC_LOOK_PATHS + 1;
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        const bool known = h->member && fleet_current(c, h, now);
        for (uint32_t k = 0; known && k < h->path_count; k++) {
            const struct fleet_path *p = &h->paths[k];
            const bool bad = p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD ||
                             p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_LOSSY;
            if (bad || seen++ % each == 0) {
                look_at(c, p);
            }
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
