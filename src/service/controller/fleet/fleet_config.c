/* fleet_config.c: versions of the fleet's configuration: apply, try, take back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/prng.h"
#include "core/brain/brain.h"
#include "core/fleet/rollout.h"
#include "core/mesh/peers.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/fleet_config.h"
#include "service/controller/fleet/fleet_config_store.h"
#include "service/controller/fleet/state.h"
#include "wire/switch_page.h"

/* ---- the text ---- */

static int load_ms(const struct config_node *root, const char *key, struct span min,
                   struct span max, uint32_t *ret, struct config_error *error)
{
    struct span s = {*ret * NS_PER_MS};
    const int r = config_span(root, key, min, max, &s, error);
    *ret = (uint32_t)(s.ns / NS_PER_MS);
    return r;
}

/* Only the first error is reported. */
static void keep_first(int *r, struct config_error *ret, int one, const struct config_error *error)
{
    if (one < 0 && *r == 0) {
        *r = one;
        *ret = *error;
    }
}

/* Each valid value is set, even if others are invalid. */
static int load_root(const struct config_node *root, struct fleet_settings *s,
                     struct config_error *ret)
{
    static const char *const keys[] = {"report", "beat", "mode", "ring_peers", "flap_limit", NULL};
    static const char *const modes[] = {"unset", "off", "observe", "failover", "full", NULL};
    int64_t ring = 0, flaps = 0;
    int mode = SWITCH_UNSET;
    struct config_error error;
    int r = config_allow(root, keys, ret);
    keep_first(&r, ret, load_ms(root, "report", span_s(1), span_s(60), &s->report_ms, &error),
               &error);
    keep_first(&r, ret, load_ms(root, "beat", span_ms(200), span_s(10), &s->beat_ms, &error),
               &error);
    keep_first(&r, ret, config_choice(root, "mode", modes, &mode, &error), &error);
    keep_first(&r, ret, config_int(root, "ring_peers", PEERS_LEAST, PEERS_MOST, &ring, &error),
               &error);
    keep_first(&r, ret, config_int(root, "flap_limit", 1, 100000, &flaps, &error), &error);
    if (ring % 2 != 0) {
        keep_first(&r, ret,
                   config_expected(config_get(root, "ring_peers"), &error, "an even number"),
                   &error);
        ring = 0;
    }
    s->mode = (uint32_t)mode;
    s->ring_peers = (uint32_t)ring;
    s->flap_limit = (uint32_t)flaps;
    return r;
}

int fleet_config_parse(const char *text, struct fleet_settings *ret, char words[512])
{
    struct config_error error;
    struct config *tree = NULL;
    *ret = (struct fleet_settings){0};
    int r = config_parse("the configuration", text, strlen(text), &tree, &error);
    r = r < 0 ? r : load_root(config_root(tree), ret, &error);
    config_free(tree);
    if (r < 0) {
        snprintf(words, 512, "%s", error.text);
        return -EINVAL;
    }
    return 0;
}

/* ---- finding ---- */

const char *fleet_config_state_word(enum fleet_config_state state)
{
    static const char *const words[] = {"active", "tried", "replaced", "taken-back"};
    return words[state];
}

struct fleet_config_version *fleet_config_find(const struct controller *c, uint64_t version)
{
    const struct fleet_config *f = c->fleet_config;
    for (size_t i = 0; i < f->count; i++) {
        if (f->versions[i].version == version) {
            return &f->versions[i];
        }
    }
    return NULL;
}

static struct fleet_canary *canary_of(const struct controller *c, const struct fleet_host *h)
{
    const struct fleet_config *f = c->fleet_config;
    for (size_t i = 0; f->tried != NULL && h->canary && i < f->canary_count; i++) {
        if (f->canaries[i].host == h->id) {
            return &f->canaries[i];
        }
    }
    return NULL;
}

void fleet_config_of(const struct controller *c, const struct fleet_host *h,
                     Foliot__V1__Settings *m)
{
    static const struct fleet_settings none;
    const struct fleet_config *f = c->fleet_config;
    const struct fleet_config_version *v = f->tried != NULL && h->canary ? f->tried : f->active;
    const struct fleet_settings *s = v != NULL ? &v->settings : &none;
    m->report_ms = s->report_ms != 0 ? s->report_ms : c->config.report_ms;
    m->beat_ms = s->beat_ms != 0 ? s->beat_ms : c->config.beat_ms;
    m->mode = f->observe ? switch_lesser(SWITCH_OBSERVE, (enum switch_mode)s->mode) : s->mode;
    m->ring_peers = s->ring_peers;
    m->flap_limit = s->flap_limit;
    m->config_version = v != NULL ? v->version : 0;
    uint64_t hash = hash_u64(m->config_version, m->mode);
    hash = hash_u64(hash, (uint64_t)m->report_ms << 32 | m->beat_ms);
    m->version = hash_u64(hash, (uint64_t)m->ring_peers << 32 | m->flap_limit) | 1;
}

void fleet_config_heard(struct controller *c, struct fleet_host *h, const Foliot__V1__Batch *b)
{
    const struct fleet_config_version *v = fleet_config_find(c, b->config_version);
    struct fleet_canary *canary = canary_of(c, h);
    Foliot__V1__Settings told = FOLIOT__V1__SETTINGS__INIT;
    fleet_config_of(c, h, &told);
    if (h->config_version != b->config_version || h->mode != b->mode || h->run != b->run) {
        c->revision++;
    }
    h->config_version = b->config_version;
    h->mode = b->mode <= SWITCH_FULL ? b->mode : 0;
    h->run = b->run;
    snprintf(h->refused, sizeof(h->refused), "%s",
             b->settings_version == told.version ? b->settings_refused : "");
    h->report_ms = v != NULL && v->settings.report_ms != 0 ? v->settings.report_ms : 0;
    h->beat_ms = v != NULL && v->settings.beat_ms != 0 ? v->settings.beat_ms : 0;
    if (canary != NULL && b->config_version == c->fleet_config->tried->version &&
        b->settings_version == told.version && h->refused[0] == 0) {
        canary->is.confirmed = true;
    }
}

/* ---- changes: memory first, back when the store refuses ---- */

static int tell(struct controller *c, const char *word, const struct fleet_config_version *v,
                const char *who, const char *why)
{
    struct json_writer j;
    const char *body = NULL;
    size_t size = 0;
    json_writer_init(&j, 4096);
    json_put_object(&j, NULL);
    json_put_int_if(&j, "version", v != NULL, v != NULL ? (int64_t)v->version : 0);
    json_put_string(&j, "who", who);
    json_put_string(&j, "why", why[0] != 0 ? why : NULL);
    json_put_uint(&j, "canaries",
                  v != NULL && v == c->fleet_config->tried ? c->fleet_config->canary_count : 0);
    json_put_end(&j);
    int r = json_writer_finish(&j, &body, &size);
    char *copy = r < 0 ? NULL : strndup(body, size - 1);
    const struct store_event event = {
        .at_ns = controller_utc_ns(), .kind = "controller", .word = word, .body = copy};
    r = copy == NULL ? -ENOMEM : state_event(c, &event);
    free(copy);
    json_writer_done(&j);
    c->revision++;
    return r;
}

static void forget_version(struct fleet_config *f, size_t at)
{
    free(f->versions[at].text);
    memmove(&f->versions[at], &f->versions[at + 1], (f->count - at - 1) * sizeof(*f->versions));
    f->count--;
}

/* Adds a version and forgets the oldest ones that no host runs. Pointers into the list are updated. */
static struct fleet_config_version *add_version(struct fleet_config *f,
                                                const struct fleet_config_version *v)
{
    const uint64_t active = f->active != NULL ? f->active->version : 0;
    struct fleet_config_version *larger =
        realloc(f->versions, (f->count + 1) * sizeof(*f->versions));
    if (larger == NULL) {
        return NULL;
    }
    f->versions = larger;
    f->versions[f->count++] = *v;
    for (size_t i = 0; i < f->count && f->count > FLEET_CONFIG_KEPT; i++) {
        if (f->versions[i].version != active && f->versions[i].version != v->version) {
            forget_version(f, i--);
        }
    }
    f->active = NULL;
    for (size_t i = 0; i < f->count; i++) {
        f->active = f->versions[i].version == active ? &f->versions[i] : f->active;
    }
    return &f->versions[f->count - 1];
}

/* Draws canaries for this version, among live hosts. -ENODEV: there is none. */
static int choose_canaries(struct controller *c, uint64_t version, double percent)
{
    struct fleet_config *f = c->fleet_config;
    const struct mono now = controller_mono();
    struct rollout_lot *lots = calloc(c->host_count + 1, sizeof(*lots));
    uint32_t live = 0;
    if (lots == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < c->host_count; i++) {
        struct fleet_host *h = c->hosts[i];
        h->canary = false;
        if (h->member && fleet_freshness(c, h, now) == FRESHNESS_LIVE) {
            lots[live++] = (struct rollout_lot){.id = (uint64_t)h->id, .host = i};
        }
    }
    const uint32_t count = rollout_draw(lots, live, version, percent);
    struct fleet_canary *canaries = calloc(count + 1, sizeof(*canaries));
    int r = canaries == NULL ? -ENOMEM : count == 0 ? -ENODEV : 0;
    for (uint32_t i = 0; i < count && r == 0; i++) {
        struct fleet_host *h = c->hosts[lots[i].host];
        h->canary = true;
        canaries[i] = (struct fleet_canary){
            .host = h->id,
            .is = {.run = h->run, .health = (uint8_t)fleet_health(c, h, now), .worse = MONO_NEVER}};
    }
    free(lots);
    if (r < 0) {
        free(canaries);
        return r;
    }
    free(f->canaries);
    f->canaries = canaries;
    f->canary_count = count;
    return 0;
}

static void end_trial(struct controller *c)
{
    struct fleet_config *f = c->fleet_config;
    for (uint32_t i = 0; i < c->host_count; i++) {
        c->hosts[i]->canary = false;
    }
    free(f->canaries);
    f->canaries = NULL;
    f->canary_count = 0;
    f->tried = NULL;
}

static void make_active(struct controller *c, struct fleet_config_version *v)
{
    struct fleet_config *f = c->fleet_config;
    if (f->active != NULL) {
        f->active->state = FLEET_CONFIG_REPLACED;
        f->active->ended_ns = controller_utc_ns();
        snprintf(f->active->end_why, sizeof(f->active->end_why), "version %llu replaced it",
                 (unsigned long long)v->version);
    }
    v->state = FLEET_CONFIG_ACTIVE;
    f->active = v;
}

/* The hard bound depends on ring_peers. With two values in one fleet the bound of some hosts would be too narrow. */
static int ring_is_for_all(const struct fleet_config *f, const struct fleet_settings *s,
                           double percent, char words[512])
{
    const uint32_t now = f->active != NULL ? f->active->settings.ring_peers : 0;
    if (percent <= 0 || percent >= 100 || s->ring_peers == now) {
        return 0;
    }
    snprintf(
        words, 512,
        "expected the ring_peers that all hosts have now, found another value: the clocks' hard "
        "bound needs one value in the whole fleet. Apply this file without a canary");
    return -EINVAL;
}

int fleet_config_apply(struct controller *c, const struct fleet_config_change *change,
                       char words[512], uint64_t *ret_version)
{
    struct fleet_config *f = c->fleet_config;
    struct fleet_config_version v = {.version = f->last + 1, .at_ns = controller_utc_ns()};
    int r = f->tried != NULL ? -EBUSY : fleet_config_parse(change->text, &v.settings, words);
    r = r < 0 ? r : ring_is_for_all(f, &v.settings, change->percent, words);
    r = r < 0 || change->percent <= 0 ? r : choose_canaries(c, v.version, change->percent);
    if (r < 0) {
        return r;
    }
    v.text = strdup(change->text);
    snprintf(v.who, sizeof(v.who), "%s", change->who);
    snprintf(v.why, sizeof(v.why), "%s", change->why);
    struct fleet_config_version *added = v.text != NULL ? add_version(f, &v) : NULL;
    if (added == NULL) {
        free(v.text);
        end_trial(c);
        return -ENOMEM;
    }
    f->last = v.version;
    f->rolled_back = false;
    if (change->percent > 0) {
        added->state = FLEET_CONFIG_TRIED;
        f->tried = added;
        f->percent = change->percent;
        f->tried_ns = v.at_ns;
        f->tried_at = controller_mono();
        f->watch_ns = change->watch_s * NS_PER_S;
    } else {
        make_active(c, added);
    }
    *ret_version = v.version;
    r = fleet_config_save(c);
    r = r < 0 ? r
              : tell(c, change->percent > 0 ? "config-tried" : "config-applied", added, change->who,
                     change->why);
    return r;
}

int fleet_config_take_back(struct controller *c, const char *who, const char *why)
{
    struct fleet_config *f = c->fleet_config;
    struct fleet_config_version *v = f->tried;
    v->state = FLEET_CONFIG_BACK;
    v->ended_ns = controller_utc_ns();
    snprintf(v->end_why, sizeof(v->end_why), "%s", why);
    end_trial(c);
    const int r = fleet_config_save(c);
    return r < 0 ? r : tell(c, "config-taken-back", v, who, why);
}

int fleet_config_observe(struct controller *c, bool on, const char *who)
{
    struct fleet_config *f = c->fleet_config;
    f->observe = on;
    f->observe_ns = controller_utc_ns();
    snprintf(f->observe_by, sizeof(f->observe_by), "%s", who);
    const int r = fleet_config_save(c);
    return r < 0 ? r : tell(c, on ? "observe-on" : "observe-off", NULL, who, "");
}

/* ---- watching ---- */

static void gather(struct controller *c, struct rollout_facts *facts, char host[64])
{
    struct fleet_config *f = c->fleet_config;
    const struct mono now = controller_mono();
    for (size_t i = 0; i < f->canary_count; i++) {
        struct fleet_canary *k = &f->canaries[i];
        const struct fleet_host *h = fleet_host_by_id(c, k->host);
        struct brain_answer answer;
        if (h == NULL || !h->member) {
            continue;
        }
        const struct brain_canary told = {.host = h->index,
                                          .run = h->run,
                                          .heard = h->heard.ns != MONO_NEVER.ns,
                                          .refused = h->refused[0] != 0,
                                          .began = f->tried_at,
                                          .canary = k->is,
                                          .facts = *facts};
        if (brain_tell(c->brain, now, BRAIN_CANARY, &told, &answer) == 1) {
            snprintf(host, 64, "%s", h->name);
        }
        k->is = answer.trial.canary;
        *facts = answer.trial.facts;
    }
}

void fleet_config_watch(struct controller *c)
{
    struct fleet_config *f = c->fleet_config;
    const struct mono now = controller_mono();
    struct brain_answer answer;
    char host[64] = "", words[160];
    if (f->tried == NULL || c->store_broken) {
        return;
    }
    struct fleet_config_version *v = f->tried;
    struct rollout_facts facts = {.age = mono_sub(now, f->tried_at), .watch = span_ns(f->watch_ns)};
    gather(c, &facts, host);
    const int verdict = brain_tell(c->brain, now, BRAIN_TRIAL, &facts, &answer);
    int r = 0;
    if (verdict == ROLLOUT_BAD) {
        snprintf(words, sizeof(words), "%s%s%s", answer.why, host[0] != 0 ? ": " : "", host);
        controller_say(LOG_WARNING, "configuration %llu is taken back: %s",
                       (unsigned long long)v->version, words);
        f->rolled_back = true;
        r = fleet_config_take_back(c, "foliot-controller", words);
    } else if (verdict == ROLLOUT_GOOD) {
        controller_say(LOG_NOTICE,
                       "configuration %llu: %u canaries were well with it: now all hosts get it",
                       (unsigned long long)v->version, facts.hosts);
        make_active(c, v);
        end_trial(c);
        r = fleet_config_save(c);
        r = r < 0 ? r : tell(c, "config-applied", v, "foliot-controller", "its canaries were well");
    }
    if (r < 0) {
        controller_store_failed(c, r, "the fleet's configuration");
        fleet_config_reload(c);
    } else if (verdict != ROLLOUT_WAIT) {
        controller_touch(c);
    }
}
