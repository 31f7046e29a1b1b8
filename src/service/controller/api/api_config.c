/* api_config.c: the fleet's configuration at the API. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/fleet_config.h"
#include "service/controller/fleet/fleet_config_store.h"
#include "wire/switch_page.h"

/* ---- reading ---- */

static void put_settings(struct json_writer *j, const char *key, const struct fleet_settings *s)
{
    json_put_object(j, key);
    json_put_int_if(j, "report_ms", s->report_ms != 0, s->report_ms);
    json_put_int_if(j, "beat_ms", s->beat_ms != 0, s->beat_ms);
    json_put_string(j, "mode", switch_mode_word((enum switch_mode)s->mode));
    json_put_int_if(j, "ring_peers", s->ring_peers != 0, s->ring_peers);
    json_put_int_if(j, "flap_limit", s->flap_limit != 0, s->flap_limit);
    json_put_end(j);
}

static void put_version(const struct controller *c, struct json_writer *j, const char *key,
                        const struct fleet_config_version *v)
{
    uint32_t hosts = 0;
    if (v == NULL) {
        json_put_null(j, key);
        return;
    }
    for (uint32_t i = 0; i < c->host_count; i++) {
        hosts += c->hosts[i]->member && c->hosts[i]->config_version == v->version;
    }
    json_put_object(j, key);
    json_put_uint(j, "version", v->version);
    json_put_string(j, "state", fleet_config_state_word(v->state));
    json_put_int(j, "at_utc_ns", v->at_ns);
    json_put_int_if(j, "ended_utc_ns", v->ended_ns != 0, v->ended_ns);
    json_put_string(j, "who", v->who);
    json_put_string(j, "why", v->why[0] != 0 ? v->why : NULL);
    json_put_string(j, "ended_why", v->end_why[0] != 0 ? v->end_why : NULL);
    json_put_uint(j, "hosts", hosts);
    put_settings(j, "settings", &v->settings);
    json_put_string(j, "text", v->text);
    json_put_end(j);
}

static void put_trial(const struct controller *c, struct json_writer *j)
{
    const struct fleet_config *f = c->fleet_config;
    size_t confirmed = 0;
    if (f->tried == NULL) {
        json_put_null(j, "trial");
        return;
    }
    json_put_object(j, "trial");
    put_version(c, j, "version", f->tried);
    json_put_int(j, "percent_ppm", (int64_t)(f->percent * 1e4));
    json_put_int(j, "until_utc_ns", f->tried_ns + f->watch_ns);
    json_put_array(j, "hosts");
    for (size_t i = 0; i < f->canary_count; i++) {
        const struct fleet_host *h = fleet_host_by_id(c, f->canaries[i].host);
        json_put_string(j, NULL, h != NULL ? h->name : NULL);
        confirmed += f->canaries[i].is.confirmed;
    }
    json_put_end(j);
    json_put_uint(j, "confirmed", confirmed);
    json_put_end(j);
}

void api_get_config(struct api_call *call)
{
    const struct controller *c = call->c;
    const struct fleet_config *f = c->fleet_config;
    struct json_writer *j = call->j;
    uint32_t behind = 0, observing = 0, refused = 0;
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        Foliot__V1__Settings told = FOLIOT__V1__SETTINGS__INIT;
        fleet_config_of(c, h, &told);
        behind += h->member && (h->config_version != told.config_version ||
                                (told.mode != 0 && (h->mode == 0 || h->mode > told.mode)));
        observing += h->member && h->mode != 0 && h->mode <= SWITCH_OBSERVE;
        refused += h->member && h->refused[0] != 0;
    }
    json_put_object(j, NULL);
    put_version(c, j, "active", f->active);
    put_trial(c, j);
    json_put_bool(j, "observe", f->observe);
    json_put_int_if(j, "observe_since_utc_ns", f->observe, f->observe_ns);
    json_put_string(j, "observe_by", f->observe ? f->observe_by : NULL);
    json_put_bool(j, "rolled_back", f->rolled_back);
    json_put_uint(j, "hosts_behind", behind);
    json_put_uint(j, "hosts_observing", observing);
    json_put_uint(j, "hosts_refusing", refused);
    json_put_end(j);
    api_answer(call);
}

void api_get_config_versions(struct api_call *call)
{
    const struct fleet_config *f = call->c->fleet_config;
    json_put_object(call->j, NULL);
    json_put_array(call->j, "items");
    for (size_t i = f->count; i-- > 0;) {
        put_version(call->c, call->j, NULL, &f->versions[i]);
    }
    json_put_end(call->j);
    json_put_null(call->j, "next");
    json_put_end(call->j);
    api_answer(call);
}

/* ---- changing ---- */

/* The change and its audit line are committed together, or both are dropped: then memory is read from the disk again. */
static void finish(struct api_call *call, int r, const char *what, const char *detail)
{
    struct controller *c = call->c;
    if (r < 0) {
        controller_store_failed(c, r, "the fleet's configuration");
        api_error(call, 503, "not-stored", "the fleet's configuration can't be stored: %s",
                  strerror(-r));
    }
    if (r < 0 || !api_audit(call, what, detail)) {
        fleet_config_reload(c);
        return;
    }
    controller_say(LOG_NOTICE, "%s by %s", detail, call->who);
    json_writer_reset(call->j);
    api_get_config(call);
}

static void answer_words(struct api_call *call, int r, const char *words)
{
    if (r == -EBUSY) {
        api_error(call, 409, "trial",
                  "configuration %llu is being tried: wait for it, or take it back first",
                  (unsigned long long)call->c->fleet_config->tried->version);
    } else if (r == -ENODEV) {
        api_error(call, 409, "no-canary", "no host is live to try it");
    } else {
        api_error(call, 400, "bad-config", "%s", words);
    }
}

static void put_change(struct json_writer *j, const char *key, int64_t from, int64_t to)
{
    if (from != to) {
        json_put_object(j, NULL);
        json_put_string(j, "key", key);
        json_put_int_if(j, "from", from != 0, from);
        json_put_int_if(j, "to", to != 0, to);
        json_put_end(j);
    }
}

/* Answers with the differences from the active configuration. */
static void dry_run(struct api_call *call, const char *text)
{
    static const struct fleet_settings none;
    const struct fleet_config *f = call->c->fleet_config;
    const struct fleet_settings *from = f->active != NULL ? &f->active->settings : &none;
    struct fleet_settings to;
    char words[512] = "";
    const int r = fleet_config_parse(text, &to, words);
    if (r < 0) {
        answer_words(call, r, words);
        return;
    }
    json_put_object(call->j, NULL);
    json_put_array(call->j, "changes");
    put_change(call->j, "report_ms", from->report_ms, to.report_ms);
    put_change(call->j, "beat_ms", from->beat_ms, to.beat_ms);
    put_change(call->j, "ring_peers", from->ring_peers, to.ring_peers);
    put_change(call->j, "flap_limit", from->flap_limit, to.flap_limit);
    if (from->mode != to.mode) {
        json_put_object(call->j, NULL);
        json_put_string(call->j, "key", "mode");
        json_put_string(call->j, "from", switch_mode_word((enum switch_mode)from->mode));
        json_put_string(call->j, "to", switch_mode_word((enum switch_mode)to.mode));
        json_put_end(call->j);
    }
    json_put_end(call->j);
    json_put_end(call->j);
    api_answer(call);
}

static bool body_number(struct api_call *call, const char *key, double min, double max, double *ret)
{
    const json_t *v = json_object_get(call->body, key);
    const double value = json_number_value(v);
    if (v != NULL && (!json_is_number(v) || !(value >= min && value <= max))) {
        api_error(call, 400, "bad-body", "%s: expected a number from %g to %g", key, min, max);
        return false;
    }
    *ret = v != NULL ? value : *ret;
    return true;
}

static void apply(struct api_call *call, const struct fleet_config_change *change)
{
    char words[512] = "", detail[160];
    uint64_t version = 0;
    const int r = fleet_config_apply(call->c, change, words, &version);
    if (r == -EBUSY || r == -ENODEV || r == -EINVAL) {
        answer_words(call, r, words);
        return;
    }
    if (change->percent > 0) {
        snprintf(detail, sizeof(detail), "configuration %llu, tried by %zu hosts for %lld s",
                 (unsigned long long)version, call->c->fleet_config->canary_count,
                 (long long)change->watch_s);
    } else {
        snprintf(detail, sizeof(detail), "configuration %llu, for all hosts",
                 (unsigned long long)version);
    }
    finish(call, r, "config.apply", detail);
}

void api_post_config(struct api_call *call)
{
    const char *text = json_string_value(json_object_get(call->body, "text")),
               *why = json_string_value(json_object_get(call->body, "why"));
    double percent = 0, watch = FLEET_CONFIG_WATCH_S;
    if (text == NULL || strlen(text) > FLEET_CONFIG_TEXT_MAX ||
        (why != NULL && strlen(why) > 159)) {
        api_error(call, 400, "bad-body", "expected text (at most %d bytes), and why in 159 at most",
                  FLEET_CONFIG_TEXT_MAX);
        return;
    }
    if (json_is_true(json_object_get(call->body, "dry_run"))) {
        dry_run(call, text);
        return;
    }
    if (body_number(call, "canary_percent", 0, 100, &percent) &&
        body_number(call, "watch_s", 1, 86400, &watch)) {
        const struct fleet_config_change change = {.text = text,
                                                   .who = call->who,
                                                   .why = why != NULL ? why : "",
                                                   .percent = percent,
                                                   .watch_s = (int64_t)watch};
        apply(call, &change);
    }
}

/* The version that was in force before the present one; NULL: none. */
static const struct fleet_config_version *before(const struct fleet_config *f)
{
    const struct fleet_config_version *found = NULL;
    for (size_t i = 0; i < f->count && &f->versions[i] != f->active; i++) {
        found = f->versions[i].state == FLEET_CONFIG_REPLACED ? &f->versions[i] : found;
    }
    return found;
}

void api_post_config_rollback(struct api_call *call)
{
    struct controller *c = call->c;
    struct fleet_config *f = c->fleet_config;
    double number = 0;
    char detail[96], why[64];
    if (!body_number(call, "version", 1, 1e15, &number)) {
        return;
    }
    if (f->tried != NULL && number > 0) {
        answer_words(call, -EBUSY, "");
        return;
    }
    if (f->tried != NULL) {
        snprintf(detail, sizeof(detail), "configuration %llu, which was on trial, is taken back",
                 (unsigned long long)f->tried->version);
        finish(call, fleet_config_take_back(c, call->who, "by hand"), "config.take-back", detail);
        return;
    }
    const struct fleet_config_version *v =
        number > 0 ? fleet_config_find(c, (uint64_t)number) : before(f);
    if (v == NULL) {
        api_error(call, 404, "no-such-version", "there is no such version to go back to");
        return;
    }
    char *text = strdup(v->text); /* a new version moves the list */
    snprintf(why, sizeof(why), "back to version %llu", (unsigned long long)v->version);
    const struct fleet_config_change change = {
        .text = text != NULL ? text : "", .who = call->who, .why = why};
    if (text == NULL) {
        api_error(call, 503, "memory", "out of memory");
    } else {
        apply(call, &change);
    }
    free(text);
}

void api_post_config_observe(struct api_call *call)
{
    const json_t *on = json_object_get(call->body, "on");
    if (on == NULL) {
        api_error(call, 400, "bad-body", "expected on: true or false");
        return;
    }
    const int r = fleet_config_observe(call->c, json_is_true(on), call->who);
    finish(call, r, "config.observe",
           json_is_true(on) ? "observe: the whole fleet only measures" : "observe ends");
}
