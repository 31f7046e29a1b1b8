/* locate.c: the inference's life, its routes, and the times of its looks. */
#include "core/fleet/locate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/fleet/locate_private.h"

#define ELEMENTS_PER_PATH                                                                          \
    3 /* at most, on average, elements with no other path: all NICs with their links, and trunks */
#define ELEMENTS_LEAST 256

static uint32_t table_size(uint32_t elements)
{
    uint32_t size = 1024;

    while (size < 2 * elements) {
        size *= 2;
    }
    return size;
}

struct locate *locate_free(struct locate *l)
{
    if (l) {
        free(l->paths);
        free(l->suspects);
        free(l->table);
        free(l->crossings);
        free(l->lossy);
        free(l->path_stamp);
        free(l->sent);
        free(l->lost);
        free(l->mask);
        free(l->touched);
        free(l->marked);
        free(l->element_sent);
        free(l->element_lost);
        free(l->sort);
        free(l->moments);
        free(l);
    }
    return NULL;
}

struct locate *locate_new(const struct locate_config *config)
{
    struct locate *l = calloc(1, sizeof(*l));
    const size_t paths = config->path_limit;
    const size_t elements = config->element_limit > 0 ? config->element_limit
                                                      : ELEMENTS_LEAST + paths * ELEMENTS_PER_PATH;

    if (!l) {
        return NULL;
    }
    l->config = *config;
    l->config.element_limit = (uint32_t)elements;
    l->table_mask = table_size((uint32_t)elements) - 1;
    l->paths = calloc(paths, sizeof(*l->paths));
    l->suspects = calloc(elements, sizeof(*l->suspects));
    l->table = calloc((size_t)l->table_mask + 1, sizeof(*l->table));
    l->crossings = calloc(paths * PATH_ELEMENT_MAX, sizeof(*l->crossings));
    l->lossy = calloc(paths, sizeof(*l->lossy));
    l->path_stamp = calloc(paths, sizeof(*l->path_stamp));
    l->sent = calloc(paths, sizeof(*l->sent));
    l->lost = calloc(paths, sizeof(*l->lost));
    l->mask = calloc(paths, sizeof(*l->mask));
    l->touched = calloc(paths, sizeof(*l->touched));
    l->marked = calloc(elements, sizeof(*l->marked));
    l->element_sent = calloc(elements, sizeof(*l->element_sent));
    l->element_lost = calloc(elements, sizeof(*l->element_lost));
    l->sort = calloc(elements, sizeof(*l->sort));
    l->moments = calloc(MOMENT_MAX, sizeof(*l->moments));
    if (!l->paths || !l->suspects || !l->table || !l->crossings || !l->lossy || !l->path_stamp ||
        !l->sent || !l->lost || !l->mask || !l->touched || !l->marked || !l->element_sent ||
        !l->element_lost || !l->sort || !l->moments) {
        return locate_free(l);
    }
    for (uint32_t i = 0; i < QUIETS; i++) {
        l->quiets[i] = (struct quiet){.background = 0.01, .dispersion = 1};
    }
    l->background = config->background > 0 ? config->background : l->quiets[0].background;
    l->dispersion = 1;
    l->next = l->told_first = MONO_NEVER;
    l->muted = HOST_NONE;
    return l;
}

static bool route_equal(const struct locate_route *x, const struct locate_route *y)
{
    bool r = host_id_equal(x->from_host, y->from_host) && host_id_equal(x->to_host, y->to_host) &&
             nic_id_equal(x->from, y->from) && nic_id_equal(x->to, y->to) &&
             host_id_equal(x->teller, y->teller) && x->box_count == y->box_count;

    for (uint32_t i = 0; i < x->box_count && r; i++) {
        r = x->boxes[i].key == y->boxes[i].key && x->boxes[i].kind == y->boxes[i].kind;
    }
    return r;
}

static void unlist(struct locate *l, struct path *p)
{
    if (p->lossy != 0) {
        const uint32_t last = l->lossy[--l->lossy_count];
        l->lossy[p->lossy - 1] = last;
        l->paths[last].lossy = p->lossy;
        p->lossy = 0;
    }
}

void locate_trials_clear(struct locate *l, uint32_t path)
{
    struct path *p = &l->paths[path];

    ASSERT(path < l->config.path_limit);
    if (p->used && p->seen.ns != MONO_NEVER.ns) {
        locate_observe(l, path, false);
        unlist(l, p);
        locate_rings_clear(p);
        l->told++;
    }
}

void locate_path_clear(struct locate *l, uint32_t path)
{
    locate_trials_clear(l, path);
    if (l->paths[path].used) {
        l->paths[path].used = false;
        l->told++;
        l->stale = true;
    }
}

void locate_path_set(struct locate *l, uint32_t path, const struct locate_route *route)
{
    struct path *p = &l->paths[path];

    ASSERT(path < l->config.path_limit && route->box_count <= PATH_HOP_MAX);
    if (p->used && route_equal(&p->route, route)) {
        return;
    }
    locate_path_clear(l, path);
    p->route = *route;
    p->used = true;
    p->element_count = 0;
    locate_rings_clear(p);
    l->stale = true;
}

/* Forgets losses that no window contains any more. */
static void forget_old(struct locate *l, struct mono now)
{
    const struct span all = locate_window_span(WINDOW_COUNT - 1);

    for (uint32_t i = l->lossy_count; i > 0; i--) {
        struct path *p = &l->paths[l->lossy[i - 1]];
        if (mono_sub(now, p->lost_last).ns > all.ns) {
            unlist(l, p);
        }
    }
}

double locate_decided(const struct explanation *x)
{
    double sum = 0;

    for (uint32_t i = 0; i < x->count; i++) {
        sum += fmin(x->margins[i], 2 * LOCATE_LIMIT);
    }
    return sum;
}

bool locate_all_decided(const struct explanation *x)
{
    for (uint32_t i = 0; i < x->count; i++) {
        if (x->margins[i] < LOCATE_LIMIT) {
            return false;
        }
    }
    return x->count > 0;
}

static struct explanation look_once(struct locate *l, struct mono now, uint32_t *ret_window)
{
    struct explanation best = {.count = 0};

    *ret_window = 0;
    for (uint32_t w = 0; w < WINDOW_COUNT; w++) {
        struct explanation x;

        locate_window_begin(l, now, w, HOST_NONE);
        locate_explain(l, &x);
        locate_explain_margins(l, &x);
        if (locate_decided(&x) > locate_decided(&best)) {
            best = x;
            *ret_window = w;
        }
    }
    if (!locate_all_decided(&best) && locate_outage_explain(l, now, &best)) {
        *ret_window = WINDOW_OUTAGE;
    }
    return best;
}

/* True if nothing that counts is left without a name. */
static bool is_calm(const struct locate *l, const struct explanation *x)
{
    for (uint32_t i = 0; i < x->count; i++) {
        bool named = false;

        for (uint32_t k = 0; k < l->case_count; k++) {
            named = named || (l->cases[k].state == LOCATE_NAMED &&
                              l->cases[k].class == l->suspects[x->elements[i]].class);
        }
        if (!named && fmax(x->margins[i], x->gains[i]) >= LOCATE_LIMIT) {
            return false;
        }
    }
    return true;
}

static bool look(struct locate *l, struct mono now)
{
    uint32_t window;

    if (l->muted_until.ns <= now.ns) {
        l->muted = HOST_NONE;
    }
    struct explanation best = look_once(l, now, &window);
    if (!locate_all_decided(&best) && locate_liar_find(l, now)) {
        best = look_once(l, now, &window);
    }
    l->look++;
    locate_window_begin(l, now, window, HOST_NONE);
    locate_cases_update(l, now, &best);
    return is_calm(l, &best);
}

void locate_tick(struct locate *l, struct mono now)
{
    if (l->next.ns > now.ns) {
        return;
    }
    if (l->stale) {
        locate_elements_build(l);
        locate_bursts_forget(l, now);
    }
    forget_old(l, now);
    locate_background_learn(l, now);
    if (l->lossy_count == 0 && l->case_count == 0) {
        l->next = MONO_NEVER;
        return;
    }
    /* otherwise less is visible than before */
    if (!l->calm || l->lost_since || l->case_count > 0) {
        l->lost_since = false;
        l->calm = look(l, now);
    }
    const bool rare = l->calm && l->config.calm.ns > 0;
    l->next = mono_add(now, rare ? l->config.calm : span_ns(LOCATE_PERIOD));
}

struct mono locate_deadline(const struct locate *l)
{
    return l->next;
}

uint32_t locate_case_count(const struct locate *l)
{
    return l->case_count;
}

const struct locate_case *locate_case_get(const struct locate *l, uint32_t index)
{
    return index < l->case_count ? &l->cases[index] : NULL;
}

double locate_background(const struct locate *l)
{
    return l->background;
}
