/* fleet_config_store.c: reads and writes the versions, the trial and the switch: one JSON text in the store. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/fleet_config_store.h"
#include "service/controller/history/document.h"

#define STORED_NAME "config"
#define STORED_MAX  (8 << 20)

static void put_version(struct json_writer *j, const struct fleet_config_version *v)
{
    json_put_object(j, NULL);
    json_put_uint(j, "version", v->version);
    json_put_uint(j, "state", v->state);
    json_put_int(j, "at_ns", v->at_ns);
    json_put_int(j, "ended_ns", v->ended_ns);
    json_put_string(j, "who", v->who);
    json_put_string(j, "why", v->why);
    json_put_string(j, "end_why", v->end_why);
    json_put_string(j, "text", v->text);
    json_put_end(j);
}

int fleet_config_save(struct controller *c)
{
    const struct fleet_config *f = c->fleet_config;
    struct json_writer j;
    json_writer_init(&j, STORED_MAX);
    json_put_object(&j, NULL);
    json_put_uint(&j, "last", f->last);
    json_put_bool(&j, "observe", f->observe);
    json_put_int(&j, "observe_ns", f->observe_ns);
    json_put_string(&j, "observe_by", f->observe_by);
    json_put_bool(&j, "rolled_back", f->rolled_back);
    json_put_int(&j, "percent_ppm", (int64_t)(f->percent * 1e4));
    json_put_int(&j, "tried_ns", f->tried_ns);
    json_put_int(&j, "watch_ns", f->watch_ns);
    json_put_array(&j, "canaries");
    for (size_t i = 0; i < f->canary_count; i++) {
        json_put_object(&j, NULL);
        json_put_int(&j, "host", f->canaries[i].host);
        json_put_uint(&j, "run", f->canaries[i].is.run);
        json_put_uint(&j, "health", f->canaries[i].is.health);
        json_put_end(&j);
    }
    json_put_end(&j);
    json_put_array(&j, "versions");
    for (size_t i = 0; i < f->count; i++) {
        put_version(&j, &f->versions[i]);
    }
    json_put_end(&j);
    json_put_end(&j);
    return document_save(c, STORED_NAME, &j);
}

/* ---- back ---- */

static int64_t number(const json_t *o, const char *key)
{
    return json_integer_value(json_object_get(o, key));
}

static int load_version(struct fleet_config *f, const json_t *o)
{
    struct fleet_config_version *v = &f->versions[f->count];
    const char *text = json_string_value(json_object_get(o, "text"));
    char why_not[512];
    const int64_t state = number(o, "state");
    if (text == NULL || state < FLEET_CONFIG_ACTIVE || state > FLEET_CONFIG_BACK) {
        return -EUCLEAN;
    }
    *v = (struct fleet_config_version){.version = (uint64_t)number(o, "version"),
                                       .state = (enum fleet_config_state)state,
                                       .at_ns = number(o, "at_ns"),
                                       .ended_ns = number(o, "ended_ns"),
                                       .text = strdup(text)};
    document_words(o, "who", v->who, sizeof(v->who));
    document_words(o, "why", v->why, sizeof(v->why));
    document_words(o, "end_why", v->end_why, sizeof(v->end_why));
    if (v->text == NULL) {
        return -ENOMEM;
    }
    /* Another version of Foliot stored this text. Values that this version does not accept are ignored; the others are used. */
    if (fleet_config_parse(text, &v->settings, why_not) < 0) {
        controller_say(LOG_WARNING,
                       "configuration %llu was stored by another version of Foliot: %s: the rest "
                       "of it is in force; apply one that holds",
                       (unsigned long long)v->version, why_not);
    }
    f->count++;
    return 0;
}

static uint8_t health_kept(int64_t health)
{
    return health > HEALTH_UNKNOWN && health <= HEALTH_BAD ? (uint8_t)health : HEALTH_UNKNOWN;
}

static int load_canaries(struct controller *c, const json_t *list)
{
    struct fleet_config *f = c->fleet_config;
    size_t i;
    json_t *o;
    f->canaries = calloc(json_array_size(list) + 1, sizeof(*f->canaries));
    if (f->canaries == NULL) {
        return -ENOMEM;
    }
    json_array_foreach(list, i, o)
    {
        struct fleet_host *h = fleet_host_by_id(c, number(o, "host"));
        if (h != NULL && h->member) {
            h->canary = true;
            f->canaries[f->canary_count++] =
                (struct fleet_canary){.host = h->id,
                                      .is = {.run = (uint32_t)number(o, "run"),
                                             .health = health_kept(number(o, "health")),
                                             .worse = MONO_NEVER}};
        }
    }
    return 0;
}

static int load_all(struct controller *c, const json_t *root)
{
    struct fleet_config *f = c->fleet_config;
    const json_t *versions = json_object_get(root, "versions");
    size_t i;
    json_t *o;
    int r = 0;
    f->versions = calloc(json_array_size(versions) + 1, sizeof(*f->versions));
    f->last = (uint64_t)number(root, "last");
    f->observe = json_is_true(json_object_get(root, "observe"));
    f->observe_ns = number(root, "observe_ns");
    document_words(root, "observe_by", f->observe_by, sizeof(f->observe_by));
    f->rolled_back = json_is_true(json_object_get(root, "rolled_back"));
    f->percent = (double)number(root, "percent_ppm") * 1e-4;
    f->tried_ns = number(root, "tried_ns");
    f->watch_ns = number(root, "watch_ns");
    const int64_t age_ns = controller_utc_ns() - f->tried_ns;
    f->tried_at = (struct mono){controller_mono().ns - (age_ns > 0 ? age_ns : 0)};
    json_array_foreach(versions, i, o)
    {
        r = r < 0 || f->versions == NULL ? -ENOMEM : load_version(f, o);
        if (r < 0) {
            return r;
        }
    }
    for (i = 0; i < f->count; i++) {
        struct fleet_config_version *v = &f->versions[i];
        f->active = v->state == FLEET_CONFIG_ACTIVE ? v : f->active;
        f->tried = v->state == FLEET_CONFIG_TRIED ? v : f->tried;
    }
    return f->tried != NULL ? load_canaries(c, json_object_get(root, "canaries")) : 0;
}

int fleet_config_load(struct controller *c)
{
    json_t *root;
    c->fleet_config = calloc(1, sizeof(*c->fleet_config));
    if (c->fleet_config == NULL) {
        return -ENOMEM;
    }
    int r = document_load(c, STORED_NAME, &root);
    if (r == -ENOENT) {
        return 0;
    }
    r = r < 0 ? r : load_all(c, root);
    json_decref(root);
    return r;
}

void fleet_config_reload(struct controller *c)
{
    for (uint32_t i = 0; i < c->host_count; i++) {
        c->hosts[i]->canary = false;
    }
    fleet_config_free(c);
    const int r = fleet_config_load(c);
    if (r < 0) {
        controller_say(LOG_ERR,
                       "the fleet's configuration can't be read: %s: the controller starts again",
                       strerror(-r));
        c->exit_code = EXIT_FAILURE;
        sd_event_exit(c->loop, EXIT_FAILURE);
    }
}

void fleet_config_free(struct controller *c)
{
    struct fleet_config *f = c->fleet_config;
    for (size_t i = 0; f != NULL && i < f->count; i++) {
        free(f->versions[i].text);
    }
    if (f != NULL) {
        free(f->versions);
        free(f->canaries);
    }
    free(f);
    c->fleet_config = NULL;
}
