/* locate_world.c: see locate_world.h. */
#include "locate_world.h"
#include "now.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STEP_S    0.01
#define LATE_MAX  64 /* steps until the fate of a packet is known */
#define PEERS_MAX 28
#define TOUCH_S   0.1

/* One direction of a link. */
struct atom {
    double lost; /* share lost by a fault, now */
    double burst_from, burst_until, burst_next;
};
struct probe_path {
    uint32_t from, to; /* NICs */
    uint32_t edge;
    int spine; /* -1: both ends are on one leaf */
    uint32_t atoms[4], atom_count;
    bool heard;
};
struct probe_edge {
    uint32_t first, count, round;
    double next;
};
enum thing { NIC_UP, NIC_DOWN, NIC, TRUNK_UP, TRUNK_DOWN, TRUNK, SPINE, LEAF, HOST, THINGS };
static const char *const thing_words[] = {"NIC up", "NIC down", "NIC",  "trunk up", "trunk down",
                                          "trunk",  "spine",    "leaf", "host"};
struct fault {
    enum thing thing;
    uint32_t a, b; /* NIC, host, leaf; spine of a trunk */
    uint64_t *paths;
    double cost;
};
struct fate {
    uint32_t path;
    double sent;
    bool lost;
};
struct bin {
    struct fate *fates;
    uint32_t count, size;
};

struct drawn {
    const struct world_config *config;
    struct prng prng;
    uint32_t hosts, nics, leaves, spines, all; /* all: NICs */
    uint32_t leaf_of[1024];
    struct atom atoms[WORLD_ATOM_MAX];
    struct probe_path *paths;
    struct probe_edge *edges;
    uint32_t path_count, edge_count, words;
    bool deaf[1024]; /* hosts whose reports don't arrive */
    uint32_t liar;
    struct fault faults[WORLD_FAULT_MAX];
    struct bin bins[LATE_MAX];
    struct locate *locate;
    double now, fault_at, fault_end;
    uint64_t *sets[LOCATE_CASE_MAX], *joined, *other;
};

static uint32_t below(struct drawn *w, uint32_t end)
{
    return (uint32_t)prng_below(&w->prng, end);
}

static uint32_t nic_up(const struct drawn *w, uint32_t nic)
{
    (void)w;
    return 2 * nic;
}

static uint32_t trunk_up(const struct drawn *w, uint32_t leaf, uint32_t spine)
{
    return 2 * (w->all + leaf * w->spines + spine);
}

/* ---- the fabric ----------------------------------------------------------------------------- */

static void draw_fabric(struct drawn *w)
{
    const struct world_config *c = w->config;
    const bool rails = prng_uniform(&w->prng) < 0.5;

    w->leaves = c->leaves ? c->leaves : 2 + below(w, 3);
    w->spines = c->spines ? c->spines : 2 + below(w, 7);
    w->nics = c->nics ? c->nics : 1 + below(w, 4);
    w->hosts = c->hosts ? c->hosts : 4 + below(w, 17);
    w->all = w->hosts * w->nics;
    for (uint32_t nic = 0; nic < w->all; nic++) {
        w->leaf_of[nic] = (rails && w->nics > 1 ? nic % w->nics : nic / w->nics) % w->leaves;
    }
}

static void add_path(struct drawn *w, uint32_t edge, uint32_t from, uint32_t to, int spine)
{
    struct probe_path *p = &w->paths[w->path_count++];
    const uint32_t a = w->leaf_of[from], b = w->leaf_of[to];

    *p = (struct probe_path){.from = from, .to = to, .edge = edge, .spine = spine};
    p->heard = !w->deaf[to / w->nics];
    p->atoms[p->atom_count++] = nic_up(w, from);
    if (spine >= 0) {
        p->atoms[p->atom_count++] = trunk_up(w, a, (uint32_t)spine);
        p->atoms[p->atom_count++] = trunk_up(w, b, (uint32_t)spine) + 1;
    }
    p->atoms[p->atom_count++] = nic_up(w, to) + 1;
}

static void add_edge(struct drawn *w, uint32_t from, uint32_t to)
{
    struct probe_edge *e = &w->edges[w->edge_count];
    uint32_t spines[64];

    e->first = w->path_count;
    e->next = prng_uniform(&w->prng) * TOUCH_S;
    e->round = below(w, 4);
    if (w->leaf_of[from] == w->leaf_of[to]) {
        add_path(w, w->edge_count, from, to, -1);
    } else {
        for (uint32_t i = 0; i < w->spines; i++) {
            spines[i] = i;
        }
        for (uint32_t i = 0; i < 4 && i < w->spines; i++) {
            const uint32_t k = i + below(w, w->spines - i), swap = spines[i];
            spines[i] = spines[k];
            spines[k] = swap;
            add_path(w, w->edge_count, from, to, (int)spines[i]);
        }
    }
    e->count = w->path_count - e->first;
    w->edge_count++;
}

static void draw_edges(struct drawn *w)
{
    const double share = fmin(1, (double)PEERS_MAX / (w->all - w->nics));

    for (uint32_t a = 0; a < w->all; a++) {
        for (uint32_t b = a + 1; b < w->all; b++) {
            if (a / w->nics == b / w->nics || prng_uniform(&w->prng) >= share ||
                w->path_count + 8 > WORLD_PATH_MAX) {
                continue;
            }
            add_edge(w, a, b);
            add_edge(w, b, a);
        }
    }
    w->words = (w->path_count + 63) / 64;
}

static struct locate_box box(const struct drawn *w, bool spine, uint32_t number)
{
    (void)w;
    return (struct locate_box){.key = spine ? 1000 + number : 1 + number,
                               .kind = spine ? ELEMENT_SPINE : ELEMENT_LEAF};
}

static void tell_routes(struct drawn *w)
{
    for (uint32_t i = 0; i < w->path_count; i++) {
        const struct probe_path *p = &w->paths[i];
        struct locate_route r = {.from_host = {p->from / w->nics},
                                 .to_host = {p->to / w->nics},
                                 .from = {p->from},
                                 .to = {p->to},
                                 .teller = {p->to / w->nics}};

        r.boxes[r.box_count++] = box(w, false, w->leaf_of[p->from]);
        if (p->spine >= 0) {
            r.boxes[r.box_count++] = box(w, true, (uint32_t)p->spine);
            r.boxes[r.box_count++] = box(w, false, w->leaf_of[p->to]);
        }
        locate_path_set(w->locate, i, &r);
    }
}

/* ---- elements and their paths --------------------------------------------------------------- */

static bool thing_has(const struct drawn *w, const struct fault *f, uint32_t atom)
{
    const uint32_t link = atom / 2, up = atom % 2 == 0;

    if (link < w->all) {
        return ((f->thing == NIC || (f->thing == NIC_UP && up) || (f->thing == NIC_DOWN && !up)) &&
                link == f->a) ||
               (f->thing == HOST && link / w->nics == f->a) ||
               (f->thing == LEAF && w->leaf_of[link] == f->a);
    }
    const uint32_t leaf = (link - w->all) / w->spines, spine = (link - w->all) % w->spines;

    return ((f->thing == TRUNK || (f->thing == TRUNK_UP && up) ||
             (f->thing == TRUNK_DOWN && !up)) &&
            leaf == f->a && spine == f->b) ||
           (f->thing == LEAF && leaf == f->a) || (f->thing == SPINE && spine == f->a);
}

static double thing_cost(enum thing thing)
{
    return thing == NIC || thing == TRUNK    ? 8.5
           : thing == SPINE || thing == LEAF ? 10
           : thing == HOST                   ? 9.5
                                             : 9;
}

/* The fault's observed paths; returns how many. */
static uint32_t thing_paths(const struct drawn *w, const struct fault *f, uint64_t *set)
{
    uint32_t count = 0;

    memset(set, 0, w->words * sizeof(*set));
    for (uint32_t i = 0; i < w->path_count; i++) {
        const struct probe_path *p = &w->paths[i];
        bool in = false;

        for (uint32_t k = 0; k < p->atom_count; k++) {
            in = in || thing_has(w, f, p->atoms[k]);
        }
        if (in && p->heard && !(w->config->liar && p->to / w->nics == w->liar)) {
            set[i / 64] |= 1ull << (i % 64);
            count++;
        }
    }
    return count;
}

static bool is_own(const struct drawn *w, const struct fault *f, uint32_t host)
{
    return (f->thing <= NIC && host == f->a / w->nics) || (f->thing == HOST && host == f->a);
}

static void draw_fault(struct drawn *w, struct fault *f)
{
    static const enum thing directed[] = {NIC_UP, NIC_DOWN, TRUNK_UP, TRUNK_DOWN};

    do {
        f->thing = w->config->trunks     ? directed[2 + below(w, 2)]
                   : w->config->directed ? directed[below(w, 4)]
                                         : (enum thing)below(w, THINGS);
        f->a = below(w, f->thing == SPINE  ? w->spines
                        : f->thing == HOST ? w->hosts
                        : f->thing <= NIC  ? w->all
                                           : w->leaves);
        f->b = below(w, w->spines);
        f->cost = thing_cost(f->thing);
    } while (thing_paths(w, f, f->paths) == 0 || (w->config->liar && is_own(w, f, w->liar)));
}

/* Translates the element of an answer into this file's terms. false: no such element exists. */
static bool thing_named(const struct drawn *w, const struct locate_element *e, struct fault *ret)
{
    const bool up = e->direction == DIRECTION_OUT;
    const uint64_t leaf = (e->a < 1000 ? e->a : e->b) - 1,
                   spine = (e->a < 1000 ? e->b : e->a) - 1000;

    *ret = (struct fault){.a = (uint32_t)e->a};
    switch (e->kind) {
    case ELEMENT_NIC:
        ret->thing = e->direction == DIRECTION_BOTH ? NIC : up ? NIC_UP : NIC_DOWN;
        break;
    case ELEMENT_HOST:
        ret->thing = HOST;
        break;
    case ELEMENT_LEAF:
        ret->thing = LEAF;
        ret->a = (uint32_t)e->a - 1;
        break;
    case ELEMENT_SPINE:
        ret->thing = SPINE;
        ret->a = (uint32_t)e->a - 1000;
        break;
    case ELEMENT_TRUNK:
        ret->thing = e->direction == DIRECTION_BOTH ? TRUNK : e->a < 1000 ? TRUNK_UP : TRUNK_DOWN;
        ret->a = (uint32_t)leaf;
        ret->b = (uint32_t)spine;
        break;
    default:
        return false;
    }
    ret->cost = thing_cost(ret->thing);
    (void)w;
    return true;
}

/* ---- probes --------------------------------------------------------------------------------- */

static bool burst_at(struct drawn *w, struct atom *a, double rate, double at)
{
    const double apart = w->config->burst_s * (1 - rate) / rate;

    if (a->burst_next <=
        0) { /* the first burst is as far away as any: bursts don't all begin with the world */
        a->burst_next = prng_exponential(&w->prng) * apart;
    }
    while (a->burst_next < at) {
        a->burst_from = a->burst_next;
        a->burst_until = a->burst_from + w->config->burst_s;
        a->burst_next = a->burst_until + prng_exponential(&w->prng) * apart;
    }
    return at >= a->burst_from && at < a->burst_until;
}

static double background_at(const struct drawn *w)
{
    const double swing = w->config->swing;
    const double turn = sin(w->now / 3600 * 2 * 3.14159265);

    return w->config->background * (swing > 1 ? pow(swing, 0.5 * turn) : 1);
}

static bool is_lost(struct drawn *w, const struct probe_path *p, double at)
{
    const double b = background_at(w) / p->atom_count;
    bool lost = false;

    for (uint32_t i = 0; i < p->atom_count; i++) {
        struct atom *a = &w->atoms[p->atoms[i]];

        lost = lost || (a->lost > 0 && at >= w->fault_at && at < w->fault_end &&
                        prng_uniform(&w->prng) < a->lost);
        if (b > 0) {
            lost = (w->config->burst_s > 0 ? burst_at(w, a, b, at) : prng_uniform(&w->prng) < b) ||
                   lost;
        }
    }
    return lost;
}

static void push_fate(struct drawn *w, uint32_t step, const struct fate *fate)
{
    struct bin *b = &w->bins[step % LATE_MAX];

    if (b->count == b->size) {
        b->size = b->size ? 2 * b->size : 256;
        b->fates = realloc(b->fates, b->size * sizeof(*b->fates));
    }
    b->fates[b->count++] = *fate;
}

static void probe(struct drawn *w, uint32_t step, struct probe_edge *e)
{
    const double at = e->next;

    for (uint32_t i = 0; i < e->count; i++) {
        const bool touched = i == e->round % e->count || i == (e->round + e->count / 2) % e->count;
        const struct probe_path *p = &w->paths[e->first + i];
        struct fate f = {.path = e->first + i, .sent = at};

        if (!touched || !p->heard || prng_uniform(&w->prng) < 0.005) {
            continue; /* not sent, not reported, or not known by anybody */
        }
        f.lost = is_lost(w, p, at);
        if (w->config->liar && p->to / w->nics == w->liar && at >= w->fault_at) {
            f.lost = p->spine >= 0 && p->spine % 2 == 0;
        }
        push_fate(w, step + 10 + below(w, 20), &f);
    }
    e->round++;
    e->next += TOUCH_S * (0.9 + 0.2 * prng_uniform(&w->prng));
}

/* ---- the judge ------------------------------------------------------------------------------ */

/* True if some of the true faults equal e together with some other named faults: they have the same paths, and cost no less. */
static bool is_told(const struct drawn *w, const struct fault *named, uint32_t count, uint32_t e)
{
    for (uint32_t some = 1; some < 1u << w->config->faults; some++) {
        for (uint32_t with = 0; with < 1u << count; with++) {
            double truth = 0, said = 0;
            bool same = true;

            if ((with & (1u << e)) == 0) {
                continue;
            }
            memset(w->joined, 0, w->words * sizeof(*w->joined));
            memset(w->other, 0, w->words * sizeof(*w->other));
            for (uint32_t i = 0; i < w->config->faults; i++) {
                truth += (some & (1u << i)) != 0 ? w->faults[i].cost : 0;
                for (uint32_t k = 0; k < w->words && (some & (1u << i)) != 0; k++) {
                    w->joined[k] |= w->faults[i].paths[k];
                }
            }
            for (uint32_t i = 0; i < count; i++) {
                said += (with & (1u << i)) != 0 ? named[i].cost : 0;
                for (uint32_t k = 0; k < w->words && (with & (1u << i)) != 0; k++) {
                    w->other[k] |= named[i].paths[k];
                }
            }
            for (uint32_t k = 0; k < w->words && same; k++) {
                same = w->joined[k] == w->other[k];
            }
            if (same && said <= truth + 0.6) { /* one or both directions cost about the same */
                return true;
            }
        }
    }
    return false;
}

static bool all_told(const struct drawn *w, const struct fault *named, uint32_t count)
{
    for (uint32_t k = 0; k < w->words; k++) {
        uint64_t truth = 0, said = 0;

        for (uint32_t i = 0; i < w->config->faults; i++) {
            truth |= w->faults[i].paths[k];
        }
        for (uint32_t i = 0; i < count; i++) {
            said |= named[i].paths[k];
        }
        if (truth != said) {
            return false;
        }
    }
    return w->config->faults > 0;
}

/* True if the two can't be distinguished without that host's reports. */
static bool is_same_without(const struct drawn *w, const uint64_t *x, const uint64_t *y,
                            uint32_t host)
{
    for (uint32_t i = 0; i < w->path_count; i++) {
        if (((x[i / 64] ^ y[i / 64]) & (1ull << (i % 64))) != 0 &&
            w->paths[i].to / w->nics != host) {
            return false;
        }
    }
    return true;
}

/* True if several hosts can see the fault: without any single host (other than the fault's own) it still differs from other
 * faults, and from no fault. */
static bool is_tellable(struct drawn *w, const struct fault *f)
{
    struct fault g;

    for (uint32_t host = 0; host < w->hosts; host++) {
        memset(w->joined, 0, w->words * sizeof(*w->joined));
        if (is_own(w, f, host)) {
            continue;
        }
        if (is_same_without(w, f->paths, w->joined, host)) {
            return false;
        }
        for (uint32_t thing = 0; thing < THINGS; thing++) {
            const uint32_t as = thing == SPINE  ? w->spines
                                : thing == HOST ? w->hosts
                                : thing <= NIC  ? w->all
                                                : w->leaves;
            const bool trunk = thing == TRUNK || thing == TRUNK_UP || thing == TRUNK_DOWN;

            for (uint32_t i = 0; i < as * (trunk ? w->spines : 1); i++) {
                g = (struct fault){.thing = (enum thing)thing, .a = i % as, .b = i / as};
                if (thing_cost(g.thing) < f->cost + 0.6 && thing_paths(w, &g, w->other) > 0 &&
                    memcmp(w->other, f->paths, w->words * sizeof(*w->other)) != 0 &&
                    is_same_without(w, w->other, f->paths, host)) {
                    return false;
                }
            }
        }
    }
    return true;
}

static void note_wrong(const struct drawn *w, struct world_result *r,
                       const struct locate_element *e)
{
    const size_t used = strlen(r->text);

    snprintf(r->text + used, sizeof(r->text) - used, "%s%.2f s: kind %u direction %u %llu-%llu",
             used ? "; " : "", w->now - w->fault_at, e->kind, e->direction,
             (unsigned long long)e->a, (unsigned long long)e->b);
}

static void judge(struct drawn *w, struct world_result *r)
{
    struct fault named[LOCATE_CASE_MAX];
    const struct locate_element *names[LOCATE_CASE_MAX];
    uint32_t count = 0;
    bool wrong = false;

    for (uint32_t i = 0; i < locate_case_count(w->locate); i++) {
        const struct locate_case *c = locate_case_get(w->locate, i);

        if (c->state == LOCATE_NAMED && thing_named(w, &c->elements[0], &named[count]) &&
            !(w->config->liar &&
              is_own(w, &named[count], w->liar))) { /* a liar may only harm itself */
            names[count] = &c->elements[0];
            named[count].paths = w->sets[count];
            thing_paths(w, &named[count], named[count].paths);
            count++;
        }
    }
    /* named as unknown, and reported */
    if (w->config->faults == 0 && locate_case_count(w->locate) > count) {
        wrong = true;
        if (r->wrong++ == 0) {
            note_wrong(w, r, &locate_case_get(w->locate, 0)->elements[0]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!is_told(w, named, count, i)) {
            wrong = true;
            r->wrong++;
            if (r->wrong == 1) {
                note_wrong(w, r, names[i]);
            }
        }
    }
    r->named = count > r->named ? count : r->named;
    r->right = count > 0 && !wrong && all_told(w, named, count);
    if (r->right && r->right_s < 0) {
        r->right_s = w->now - w->fault_at;
    } else if (!r->right) {
        r->right_s = -1;
    }
}

/* ---- a run ---------------------------------------------------------------------------------- */

static void show(const struct drawn *w, const struct locate_case *c)
{
    static const char *const states[] = {"unknown", "named", "ended"};

    printf("  %6.2f s %s%s, %.2g %% of %u on %u paths, %u witnesses, background %.2g, margin %.1f:",
           w->now - w->fault_at, states[c->state], c->alike ? ", alike" : "", c->share * 100,
           c->sent, c->paths, c->witnesses, locate_background(w->locate), c->margin);
    for (uint32_t i = 0; i < c->count; i++) {
        struct fault f;
        printf(" %s", thing_named(w, &c->elements[i], &f) ? thing_words[f.thing] : "path");
        printf(" %u %u", f.a, f.b);
    }
    printf("\n");
}

static bool changes(struct drawn *w, struct world_result *r)
{
    struct locate_case c;
    bool any = false;

    while (locate_next_change(w->locate, &c)) {
        if (w->config->show) {
            show(w, &c);
        }
        any = true;
        if (c.state == LOCATE_ENDED && c.named.ns != MONO_NEVER.ns && r->told++ == 0) {
            const double low =
                (double)(c.ended_low.ns + c.ended_high.ns - c.began_low.ns - c.began_high.ns) / 2e9;
            r->length_s = low;
            r->length_error_s = fabs(low - w->config->length_s);
            r->told_after_s = w->now - w->fault_end;
        }
    }
    return any;
}

static void step_world(struct drawn *w, uint32_t step, struct world_result *r, double *look_s,
                       uint32_t *looks)
{
    struct bin *b = &w->bins[step % LATE_MAX];
    const struct mono now = {(int64_t)(w->now * 1e9)};

    for (uint32_t i = 0; i < w->edge_count; i++) {
        if (w->edges[i].next <= w->now) {
            probe(w, step, &w->edges[i]);
        }
    }
    for (uint32_t i = 0; i < b->count; i++) {
        locate_on_trial(w->locate, b->fates[i].path,
                        (struct mono){(int64_t)(b->fates[i].sent * 1e9)}, b->fates[i].lost);
    }
    b->count = 0;
    if (locate_deadline(w->locate).ns <= now.ns) {
        const double start = now_s(CLOCK_PROCESS_CPUTIME_ID);
        locate_tick(w->locate, now);
        *look_s += now_s(CLOCK_PROCESS_CPUTIME_ID) - start;
        ++*looks;
        if (changes(w, r)) {
            judge(w, r);
        }
    }
}

static void draw_faults(struct drawn *w)
{
    w->liar = below(w, w->hosts);
    for (uint32_t i = 0; i < w->hosts; i++) {
        w->deaf[i] = w->config->heard > 0 && prng_uniform(&w->prng) >= w->config->heard;
    }
    draw_edges(w);
    for (uint32_t i = 0; i < w->config->faults; i++) {
        w->faults[i].paths = calloc(w->words, sizeof(uint64_t));
        draw_fault(w, &w->faults[i]);
        for (uint32_t a = 0; a < 2 * (w->all + w->leaves * w->spines); a++) {
            w->atoms[a].lost = thing_has(w, &w->faults[i], a) ? w->config->share : w->atoms[a].lost;
        }
    }
}

void world_run(const struct world_config *config, struct world_result *ret_result)
{
    struct drawn *w = calloc(1, sizeof(*w));
    struct world_result *r = ret_result;
    double look_s = 0;
    uint32_t looks = 0, step = 0;

    *r = (struct world_result){.right_s = -1};
    w->config = config;
    prng_init(&w->prng, config->seed);
    draw_fabric(w);
    w->paths = calloc(WORLD_PATH_MAX, sizeof(*w->paths));
    w->edges = calloc(WORLD_PATH_MAX, sizeof(*w->edges));
    draw_faults(w);
    for (uint32_t i = 0; i < LOCATE_CASE_MAX; i++) {
        w->sets[i] = calloc(w->words, sizeof(uint64_t));
    }
    if (config->show && config->background > 0) {
        printf("seed %llu: %u leaves, %u spines, %u hosts of %u: background %.2g, bursts of %g s\n",
               (unsigned long long)config->seed, w->leaves, w->spines, w->hosts, w->nics,
               config->background, config->burst_s);
    }
    for (uint32_t i = 0; i < config->faults && config->show; i++) {
        printf("seed %llu: %u leaves, %u spines, %u hosts of %u: %s %u %u\n",
               (unsigned long long)config->seed, w->leaves, w->spines, w->hosts, w->nics,
               thing_words[w->faults[i].thing], w->faults[i].a, w->faults[i].b);
    }
    w->joined = calloc(w->words, sizeof(uint64_t));
    w->other = calloc(w->words, sizeof(uint64_t));
    w->locate = locate_new(&(struct locate_config){.path_limit = w->path_count, .own = HOST_NONE});
    tell_routes(w);
    w->fault_at = config->warm_s + prng_uniform(&w->prng);
    w->fault_end = config->length_s > 0 ? w->fault_at + config->length_s : 1e18;
    for (; w->now < w->fault_at + config->watch_s; step++, w->now = step * STEP_S) {
        step_world(w, step, r, &look_s, &looks);
    }
    if (config->length_s <= 0) {
        judge(w, r);
    }
    r->paths = w->path_count;
    r->look_us = looks ? look_s / looks * 1e6 : 0;
    r->path_hours = w->path_count * w->now / 3600;
    r->tellable = true;
    for (uint32_t i = 0; i < config->faults; i++) {
        r->tellable = r->tellable && (r->right || is_tellable(w, &w->faults[i]));
        uint32_t paths = thing_paths(w, &w->faults[i], w->joined);
        r->rate += i == 0 ? paths * 5 : 0;
        free(w->faults[i].paths);
    }
    for (uint32_t i = 0; i < LOCATE_CASE_MAX; i++) {
        free(w->sets[i]);
    }
    for (uint32_t i = 0; i < LATE_MAX; i++) {
        free(w->bins[i].fates);
    }
    locate_free(w->locate);
    free(w->joined);
    free(w->other);
    free(w->paths);
    free(w->edges);
    free(w);
}
