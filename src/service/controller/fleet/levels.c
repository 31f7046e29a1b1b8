/* levels.c: the file of service levels, and the pass over all paths. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "core/brain/brain.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/levels.h"
#include "service/controller/fleet/state.h"

#define HOLD_NS (30 * NS_PER_S)

/* ---- the file ---- */

/* Reads one of owd_p50, owd_p99 (a time), loss (a percentage), hops. */
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
    if (levels_pod(v, leaf) != 0) {
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
    levels_keep(fresh, c->levels);
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

bool levels_path_of(const struct controller *c, const struct fleet_path *p, bool known,
                    struct levels_path *ret)
{
    const struct fleet_nic *to = fleet_find_nic(c, p->local), *from = fleet_find_nic(c, p->peer);
    if (to == NULL || from == NULL) {
        return false;
    }
    *ret = (struct levels_path){
        .from = p->peer,
        .to = p->local,
        .port = p->port,
        .sends = {from->leaf, from->rail},
        .receives = {to->leaf, to->rail},
        .known = known && p->state != FOLIOT__V1__PATH_STATE__PATH_STATE_UNKNOWN,
        .owd_p50 = p->p50,
        .owd_p99 = p->p99,
        .loss_ppm = fleet_path_loss_ppm(p),
    };
    return true;
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

static void say(struct controller *c, struct level_entry *e, struct mono now)
{
    e->since_utc_ns = controller_utc_ns() - mono_sub(now, e->state.since).ns;
    controller_say(e->state.verdict == LEVEL_BROKEN ? LOG_WARNING : LOG_NOTICE,
                   "service level %s is %s", e->level.name, level_verdict_word(e->state.verdict));
    if (tell(c, e) < 0) {
        controller_say(LOG_WARNING, "service level %s: its event can't be stored", e->level.name);
    }
}

static void judge(struct controller *c, struct level_entry *e, uint32_t *broken, struct mono now)
{
    levels_begin(e, broken, c->nic_count);
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        const bool current = fleet_current(c, h, now);
        for (uint32_t k = 0; h->member && k < h->path_count; k++) {
            struct levels_path path;
            if (!levels_path_of(c, &h->paths[k], current, &path)) {
                continue;
            }
            if (e->level.kind == LEVEL_HOPS &&
                levels_about(c->levels, &e->level, &path.sends, &path.receives)) {
                path.hops = fleet_path_hops(c, path.from, path.to, path.port);
            }
            levels_add(c->levels, e, &path, broken);
        }
    }
    levels_end(e, broken, c->nic_count);
    const struct brain_level told = {e->level, e->state};
    struct brain_answer answer;
    const bool changed = brain_tell(c->brain, now, BRAIN_LEVEL, &told, &answer) == 1;
    e->state = answer.level;
    if (changed) {
        say(c, e, now);
    }
}

void levels_watch(struct controller *c)
{
    const struct mono now = controller_mono();
    struct levels *v = c->levels;
    uint32_t *broken = NULL;
    if (v == NULL || c->store_broken || !levels_due(v, now, span_ms(c->config.report_ms)) ||
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
