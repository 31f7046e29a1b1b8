/* scope.c: what a tenant's token sees: hosts that match its patterns, and the paths between them. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform/json/element.h"
#include "service/controller/api/api.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"

/* Patterns with * and ?, separated by commas; empty: all hosts. */
bool scope_sees_name(const char *scope, const char *name)
{
    char pattern[TOKEN_SCOPE_SIZE];
    if (scope[0] == 0) {
        return true;
    }
    while (*scope != 0) {
        const size_t length = strcspn(scope, ",");
        memcpy(pattern, scope, length);
        pattern[length] = 0;
        if (alert_glob(pattern, name)) {
            return true;
        }
        scope += length + (scope[length] == ',');
    }
    return false;
}

bool scope_good(const char *scope)
{
    return strlen(scope) < TOKEN_SCOPE_SIZE &&
           strspn(scope, "abcdefghijklmnopqrstuvwxyz0123456789.-*?,") == strlen(scope) &&
           scope[0] != ',' && strstr(scope, ",,") == NULL &&
           (scope[0] == 0 || scope[strlen(scope) - 1] != ',');
}

int scope_open(struct api_call *call, const char *scope)
{
    const struct controller *c = call->c;
    call->scope = scope;
    if (scope[0] == 0) {
        return 0;
    }
    call->visible = calloc(c->host_count + 1, sizeof(*call->visible));
    call->host_ids = calloc(c->host_count + 1, 21);
    if (call->visible == NULL || call->host_ids == NULL) {
        scope_close(call);
        return -ENOMEM;
    }
    char *at = call->host_ids;
    for (uint32_t i = 0; i < c->host_count; i++) {
        call->visible[i] = scope_sees_name(scope, c->hosts[i]->name);
        if (call->visible[i]) {
            at += snprintf(at, 21, "%c%lld", at == call->host_ids ? '[' : ',',
                           (long long)c->hosts[i]->id);
        }
    }
    snprintf(at, 3, "%s", at == call->host_ids ? "[]" : "]");
    return 0;
}

void scope_close(struct api_call *call)
{
    free(call->visible);
    free(call->host_ids);
    call->visible = NULL;
    call->host_ids = NULL;
}

bool api_sees(const struct api_call *call, const struct fleet_host *h)
{
    return call->visible == NULL || (h != NULL && call->visible[h->index]);
}

bool api_sees_nic(const struct api_call *call, uint32_t nic)
{
    const struct fleet_nic *n = fleet_find_nic(call->c, nic);
    return call->visible == NULL || (n != NULL && api_sees(call, n->host));
}

struct scope_paths scope_paths(const struct api_call *call, const struct fleet_host *h)
{
    struct scope_paths sum = {h->path_count, h->paths_dead, h->paths_lossy};
    if (call->visible != NULL) {
        sum = (struct scope_paths){0};
        for (uint32_t i = 0; i < h->path_count; i++) {
            const struct fleet_path *p = &h->paths[i];
            const bool seen = api_sees_nic(call, p->peer);
            sum.all += seen;
            sum.dead += seen && p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD;
            sum.lossy += seen && p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_LOSSY;
        }
    }
    return sum;
}

static bool finding_end_seen(const struct api_call *call, uint32_t host)
{
    return host == FINDING_END_NONE || (host < call->c->host_count && call->visible[host]);
}

uint32_t scope_findings(const struct api_call *call, const struct fleet_host *h)
{
    uint32_t count = 0;
    for (uint32_t i = 0; call->visible != NULL && i < h->finding_count; i++) {
        count += finding_end_seen(call, h->findings[i].from) &&
                 finding_end_seen(call, h->findings[i].to);
    }
    return call->visible != NULL ? count : h->finding_count;
}

const struct fleet_host *scope_host(const struct api_call *call, int64_t host)
{
    const struct fleet_host *h = fleet_host_by_id(call->c, host);
    return api_sees(call, h) ? h : NULL;
}

bool scope_hides(const struct api_call *call, const char *name)
{
    const struct fleet_host *h = name != NULL ? fleet_find_host(call->c, name) : NULL;
    return call->visible != NULL && name != NULL && (h == NULL || !api_sees(call, h));
}

/* ---- stored rows ---- */

/* True if the scope sees all hosts of an element. All tenants see the fabric. */
static bool element_seen(const char *scope, const json_t *element)
{
    const char *host = NULL;
    size_t cursor = 0;
    while (json_next_element_host(element, &cursor, &host)) {
        if (host == NULL || !scope_sees_name(scope, host)) {
            return false;
        }
    }
    return true;
}

/* Rows of old releases have no element. They name the kind of a thing, but not its host. */
static bool suspect_seen(const char *scope, const json_t *o)
{
    const json_t *element = json_object_get(o, "element"), *one_of = json_object_get(o, "one_of");
    const char *kind = json_string_value(json_object_get(json_object_get(o, "suspect"), "kind"));
    const uint32_t known = kind != NULL ? element_kind_of(kind) : ELEMENT_UNKNOWN;
    for (size_t i = 0; i < json_array_size(one_of); i++) {
        if (!element_seen(scope, json_array_get(one_of, i))) {
            return false;
        }
    }
    return element != NULL ? element_seen(scope, element)
                           : known != ELEMENT_HOST && known != ELEMENT_NIC;
}

static bool end_seen(const char *scope, const json_t *end)
{
    const char *host = json_string_value(json_object_get(end, "host"));
    return json_is_null(end) || end == NULL || (host != NULL && scope_sees_name(scope, host));
}

bool scope_sees_finding(const struct controller *c, const char *scope, int64_t host,
                        const char *body)
{
    const struct fleet_host *h = fleet_host_by_id(c, host);
    if (scope[0] == 0) {
        return true;
    }
    if (h == NULL || !scope_sees_name(scope, h->name)) {
        return false;
    }
    json_t *o = json_loads(body, 0, NULL);
    const bool seen = o != NULL && end_seen(scope, json_object_get(o, "from")) &&
                      end_seen(scope, json_object_get(o, "to")) && suspect_seen(scope, o);
    json_decref(o);
    return seen;
}

/* A process's event may name its peer's host, too. */
static bool job_event_seen(const char *scope, const struct fleet_host *h, const char *body)
{
    json_t *o = json_loads(body, 0, NULL);
    const char *peer = json_string_value(json_object_get(o, "peer_host"));
    const bool seen = o != NULL && h != NULL && scope_sees_name(scope, h->name) &&
                      (peer == NULL || scope_sees_name(scope, peer));
    json_decref(o);
    return seen;
}

/* Incidents and the controller's own events concern several tenants' hosts. */
bool scope_sees_event(const struct controller *c, const char *scope, const char *kind, int64_t host,
                      const char *body)
{
    const struct fleet_host *h = host != 0 ? fleet_host_by_id(c, host) : NULL;
    if (scope[0] == 0) {
        return true;
    }
    if (strcmp(kind, "finding") == 0) {
        return scope_sees_finding(c, scope, host, body);
    }
    if (strcmp(kind, "job") == 0) {
        return job_event_seen(scope, h, body);
    }
    return (strcmp(kind, "link") == 0 || strcmp(kind, "host") == 0) && h != NULL &&
           scope_sees_name(scope, h->name);
}

/* ---- alerts ---- */

bool scope_sees_alert(void *context, const struct alert *a)
{
    const struct api_call *call = context;
    const struct controller *c = call->c;
    return call->visible == NULL || (a->host < c->host_count && call->visible[a->host] &&
                                     (a->nic == ALERT_NO_ID || api_sees_nic(call, a->nic)) &&
                                     (a->peer == ALERT_NO_ID || api_sees_nic(call, a->peer)));
}

static bool place_seen(const struct api_call *call, const struct place *p)
{
    const struct controller *c = call->c;
    return p->kind == PLACE_HOST  ? p->number < c->host_count && api_sees(call, c->hosts[p->number])
           : p->kind == PLACE_NIC ? api_sees_nic(call, p->number)
                                  : true;
}

/* True if the tenant sees all alerts of the incident. Without an open alert it is not shown, because its hosts are no longer
 * known. */
bool scope_sees_incident(void *context, const struct alert_incident *i)
{
    struct api_call *call = context;
    struct alert alert;
    size_t cursor = 0;
    uint32_t seen = 0;
    if (call->visible == NULL) {
        return true;
    }
    while (alerts_next_alert(alerting_engine(call->c->alerting), &cursor, &alert)) {
        if (alert.incident == i->id) {
            if (!scope_sees_alert(call, &alert)) {
                return false;
            }
            seen++;
        }
    }
    for (uint32_t k = 0; k < i->choice.count; k++) {
        const struct element *e = &i->choice.one_of[k];
        if (!place_seen(call, &e->a) || !place_seen(call, &e->b)) {
            return false;
        }
    }
    return seen > 0 && place_seen(call, &i->element.a) && place_seen(call, &i->element.b);
}
