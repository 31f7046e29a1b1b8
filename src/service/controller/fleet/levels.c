/* levels.c: the file of service levels, and the round over all paths. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "core/fleet/delay_code.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/levels.h"
#include "service/controller/fleet/state.h"

#define HOLD_NS (30 * NS_PER_S)

/* 0: none. */
static uint32_t pod_of(const struct levels *v, const char *leaf)
{
    for (uint32_t i = 0; i < v->leaf_count && leaf[0] != 0; i++) {
        if (strcmp(v->leaves[i].leaf, leaf) == 0) {
            return v->leaves[i].pod;
        }
    }
    return 0;
}

/* ---- the file ---- */

/* One of owd_p50, owd_p99 (a time), loss (a percentage), hops. */
static int load_limit(const struct config_node *node, struct level *l, struct config_error *error)
{
    struct span span = {-1};
    const char *loss = NULL;
    int64_t hops = -1;
    const int set = (config_get(node, "owd_p50") != NULL) + (config_get(node, "owd_p99") != NULL) +
                    (config_get(node, "loss") != NULL) + (config_get(node, "hops") != NULL);
    if (set != 1) {
        return config_expected(node, error, "one of owd_p50, owd_p99, loss, hops");
    }
    int r = config_span(node, "owd_p50", span_ns(1), span_s(10), &span, error);
    l->kind = config_get(node, "owd_p50") != NULL ? LEVEL_OWD_P50 : LEVEL_OWD_P99;
    r = r < 0 ? r : config_span(node, "owd_p99", span_ns(1), span_s(10), &span, error);
    r = r < 0 ? r : config_string(node, "loss", &loss, error);
    r = r < 0 ? r : config_int(node, "hops", 1, 32, &hops, error);
    l->limit = span.ns;
    if (r == 0 && loss != NULL) {
        char *end = NULL;
        const double percent = strtod(loss, &end);
        if (end == loss || strcmp(end, "%") != 0 || !(percent >= 0 && percent <= 100)) {
            return config_expected(config_get(node, "loss"), error, "a percentage, as 0.1%%");
        }
        l->kind = LEVEL_LOSS;
        l->limit = (int64_t)(percent * 1e4);
    } else if (r == 0 && hops >= 0) {
        l->kind = LEVEL_HOPS;
        l->limit = hops;
    }
    return r;
}

static int load_level(struct levels *v, const struct config_node *node, struct config_error *error)
{
    static const char *const keys[] = {"name", "owd_p50", "owd_p99", "loss",
                                       "hops", "within",  "for",     NULL};
    static const char *const within[] = {"leaf", "pod", "rail", "fleet", NULL};
    const char *name = NULL;
    int choice = LEVEL_FLEET;
    if (v->count == LEVELS_MAX) {
        return config_expected(node, error, "at most %d levels", LEVELS_MAX);
    }
    struct level *l = &v->entries[v->count].level;
    *l = (struct level){.hold = span_ns(HOLD_NS)};
    int r = config_allow(node, keys, error);
    r = r < 0 ? r : config_string(node, "name", &name, error);
    r = r < 0 ? r : config_choice(node, "within", within, &choice, error);
    r = r < 0 ? r : config_span(node, "for", span_ns(0), span_s(86400), &l->hold, error);
    if (r == 0 && (name == NULL || !tls_name_good(name) || strlen(name) >= LEVEL_NAME_MAX)) {
        r = config_expected(node, error, "a name of 1 to %d of [a-z0-9.-]", LEVEL_NAME_MAX - 1);
    }
    r = r < 0 ? r : load_limit(node, l, error);
    l->within = (enum level_within)choice;
    if (r == 0 && l->within == LEVEL_POD && v->leaf_count == 0) {
        r = config_fail(node, error, "expected 'pods' for a level within a pod, found none");
    }
    for (uint32_t i = 0; r == 0 && i < v->count; i++) {
        if (strcmp(v->entries[i].level.name, name) == 0) {
            r = config_fail(node, error, "expected each name once, found '%s' again", name);
        }
    }
    if (r == 0) {
        snprintf(l->name, sizeof(l->name), "%s", name);
        v->count++;
    }
    return r;
}

static int load_leaf(struct levels *v, const struct config_node *node, uint32_t pod,
                     struct config_error *error)
{
    const char *leaf = NULL;
    const int r = config_node_string(node, &leaf, error);
    if (r < 0) {
        return r;
    }
    if (v->leaf_count == LEVELS_POD_LEAF_MAX || leaf[0] == 0 || strlen(leaf) >= 64) {
        return config_expected(node, error, "at most %d leaves, with names of 1 to 63",
                               LEVELS_POD_LEAF_MAX);
    }
    if (pod_of(v, leaf) != 0) {
        return config_fail(node, error, "expected each leaf in one pod, found '%s' again", leaf);
    }
    snprintf(v->leaves[v->leaf_count].leaf, 64, "%s", leaf);
    v->leaves[v->leaf_count++].pod = pod;
    return 0;
}

static int load_pods(struct levels *v, const struct config_node *pods, struct config_error *error)
{
    uint32_t pod = 0;
    int r = 0;
    if (pods == NULL) {
        return 0;
    }
    if (config_kind(pods) != CONFIG_MAP) {
        return config_expected(pods, error, "pods, each with a list of its leaves");
    }
    for (const struct config_node *p = config_first(pods); p != NULL && r == 0;
         p = config_next(p)) {
        pod++;
        if (config_kind(p) != CONFIG_LIST) {
            r = config_expected(p, error, "a list of leaves");
        }
        for (const struct config_node *n = config_first(p); n != NULL && r == 0;
             n = config_next(n)) {
            r = load_leaf(v, n, pod, error);
        }
    }
    return r;
}

static int load_tree(struct levels *v, const struct config_node *root, struct config_error *error)
{
    static const char *const keys[] = {"levels", "pods", NULL};
    int r = config_allow(root, keys, error);
    const struct config_node *list = config_get(root, "levels");
    r = r < 0 ? r : load_pods(v, config_get(root, "pods"), error);
    if (r == 0 && list != NULL && config_kind(list) != CONFIG_LIST) {
        r = config_expected(list, error, "a list of levels");
    }
    for (const struct config_node *n = r < 0 || list == NULL ? NULL : config_first(list);
         r == 0 && n != NULL; n = config_next(n)) {
        r = load_level(v, n, error);
    }
    return r;
}

int levels_parse(const char *name, const char *text, struct levels *ret, struct config_error *error)
{
    struct config *tree = NULL;
    int r = config_parse(name, text, strlen(text), &tree, error);
    r = r < 0 ? r : load_tree(ret, config_root(tree), error);
    config_free(tree);
    return r;
}

static int load_file(struct levels *v, const char *path, struct config_error *error)
{
    struct config *tree = NULL;
    int r = config_load(path, &tree, error);
    r = r < 0 ? r : load_tree(v, config_root(tree), error);
    config_free(tree);
    return r;
}

/* What a level was stays known as long as it says the same. */
static void keep_states(struct levels *fresh, const struct levels *before)
{
    for (uint32_t i = 0; before != NULL && i < fresh->count; i++) {
        for (uint32_t k = 0; k < before->count; k++) {
            const struct level *a = &fresh->entries[i].level, *b = &before->entries[k].level;
            if (strcmp(a->name, b->name) == 0 && a->kind == b->kind && a->limit == b->limit &&
                a->within == b->within) {
                fresh->entries[i].state = before->entries[k].state;
                fresh->entries[i].since_utc_ns = before->entries[k].since_utc_ns;
            }
        }
    }
}

int levels_load(struct controller *c)
{
    const char *own = c->config.levels;
    const char *path = own[0] != 0 ? own : LEVELS_DEFAULT;
    struct config_error error = {""};
    struct levels *fresh = calloc(1, sizeof(*fresh));
    if (fresh == NULL) {
        return -ENOMEM;
    }
    const int r = own[0] != 0 || access(path, F_OK) == 0 ? load_file(fresh, path, &error) : 0;
    if (r < 0) {
        controller_say(LOG_ERR, "%s", error.text);
        if (c->levels != NULL) {
            snprintf(c->levels->error, sizeof(c->levels->error), "%s", error.text);
        }
        free(fresh);
        return r;
    }
    keep_states(fresh, c->levels);
    free(c->levels);
    c->levels = fresh;
    c->revision++;
    return 0;
}

void levels_free(struct controller *c)
{
    free(c->levels);
    c->levels = NULL;
}

/* ---- the round ---- */

bool levels_about(const struct controller *c, const struct level *level, const struct fleet_nic *a,
                  const struct fleet_nic *b)
{
    switch (level->within) {
    case LEVEL_LEAF:
        return a->leaf[0] != 0 && strcmp(a->leaf, b->leaf) == 0;
    case LEVEL_POD:
        return pod_of(c->levels, a->leaf) != 0 &&
               pod_of(c->levels, a->leaf) == pod_of(c->levels, b->leaf);
    case LEVEL_RAIL:
        return a->rail == b->rail;
    default:
        return true;
    }
}

int64_t levels_value(const struct controller *c, const struct level *level,
                     const struct fleet_path *p, bool known)
{
    uint32_t hops = 0;
    int64_t delay = -1;
    const int32_t code = level->kind == LEVEL_OWD_P50 ? p->p50 : p->p99;
    if (!known || p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_UNKNOWN) {
        return -1;
    }
    switch (level->kind) {
    case LEVEL_LOSS:
        return fleet_path_loss_ppm(p);
    case LEVEL_HOPS:
        hops = fleet_path_hops(c, p->peer, p->local, p->port);
        return hops != 0 ? (int64_t)hops : -1;
    default: /* below 0: less than the clocks' bound, not nothing */
        delay = code != DELAY_CODE_NONE ? delay_decode(code) : -1;
        return code != DELAY_CODE_NONE && delay < 0 ? 0 : delay;
    }
}

static void find_offenders(struct level_entry *e, const uint32_t *broken, uint32_t count)
{
    e->offender_count = 0;
    for (uint32_t nic = 0; nic < count; nic++) {
        uint32_t at = e->offender_count;
        if (broken[nic] == 0) {
            continue;
        }
        while (at > 0 && e->offenders[at - 1].paths < broken[nic]) {
            at--;
        }
        if (at < LEVELS_OFFENDERS) {
            const uint32_t last =
                e->offender_count < LEVELS_OFFENDERS ? e->offender_count++ : LEVELS_OFFENDERS - 1;
            memmove(&e->offenders[at + 1], &e->offenders[at],
                    (last - at) * sizeof(e->offenders[0]));
            e->offenders[at] = (struct level_offender){nic, broken[nic]};
        }
    }
}

static int tell(struct controller *c, const struct level_entry *e)
{
    char body[256];
    snprintf(body, sizeof(body), "{\"level\":\"%s\",\"paths\":%llu,\"beyond\":%llu}", e->level.name,
             (unsigned long long)e->state.paths, (unsigned long long)e->state.beyond);
    const struct store_event event = {.at_ns = controller_utc_ns(),
                                      .kind = "controller",
                                      .word = e->state.verdict == LEVEL_BROKEN ? "level-broken"
                                              : e->state.verdict == LEVEL_MET  ? "level-met"
                                                                               : "level-unknown",
                                      .body = body};
    return state_event(c, &event);
}

static void judge(struct controller *c, struct level_entry *e, uint32_t *broken, struct mono now)
{
    memset(broken, 0, c->nic_count * sizeof(*broken));
    level_begin(&e->state);
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        const enum freshness f = fleet_freshness(c, h, now);
        const bool known = h->reported && (f == FRESHNESS_LIVE || f == FRESHNESS_LATE);
        for (uint32_t k = 0; h->member && k < h->path_count; k++) {
            const struct fleet_path *p = &h->paths[k];
            const struct fleet_nic *to = fleet_find_nic(c, p->local),
                                   *from = fleet_find_nic(c, p->peer);
            if (to == NULL || from == NULL || !levels_about(c, &e->level, from, to)) {
                continue;
            }
            const struct level_path path = {p->peer, p->local, p->port,
                                            levels_value(c, &e->level, p, known)};
            if (level_add(&e->state, &e->level, &path)) {
                broken[p->peer]++;
                broken[p->local]++;
            }
        }
    }
    find_offenders(e, broken, c->nic_count);
    if (level_end(&e->state, &e->level, now)) {
        e->since_utc_ns = controller_utc_ns() - mono_sub(now, e->state.since).ns;
        controller_say(e->state.verdict == LEVEL_BROKEN ? LOG_WARNING : LOG_NOTICE,
                       "service level %s is %s", e->level.name,
                       level_verdict_word(e->state.verdict));
        if (tell(c, e) < 0) {
            controller_say(LOG_WARNING, "service level %s: its event can't be stored",
                           e->level.name);
        }
    }
}

void levels_watch(struct controller *c)
{
    const struct mono now = controller_mono();
    struct levels *v = c->levels;
    uint32_t *broken = NULL;
    if (v == NULL || v->count == 0 || c->store_broken ||
        mono_sub(now, v->judged).ns < (int64_t)c->config.report_ms * NS_PER_MS ||
        (broken = calloc(c->nic_count + 1, sizeof(*broken))) == NULL) {
        return;
    }
    v->judged = now;
    for (uint32_t i = 0; i < v->count; i++) {
        judge(c, &v->entries[i], broken, now);
    }
    c->revision++;
    free(broken);
}

uint32_t levels_broken(const struct controller *c)
{
    uint32_t count = 0;
    for (uint32_t i = 0; c->levels != NULL && i < c->levels->count; i++) {
        count += c->levels->entries[i].state.verdict == LEVEL_BROKEN;
    }
    return count;
}
