/* api_topology.c: the declared topology at the API: declares it, compares it with the fleet, lists its versions. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/topology.h"

static void put_version(struct json_writer *j, const char *key, const struct topology_version *v,
                        bool text)
{
    json_put_object(j, key);
    json_put_uint(j, "version", v->version);
    json_put_int(j, "at_utc_ns", v->at_ns);
    json_put_string(j, "who", v->who);
    json_put_string(j, "why", v->why[0] != 0 ? v->why : NULL);
    if (text) {
        json_put_string(j, "text", v->text);
    }
    json_put_end(j);
}

static void put_names(struct json_writer *j, const char *key, const struct topology_leaf *names,
                      uint32_t count)
{
    json_put_array(j, key);
    for (uint32_t i = 0; i < count; i++) {
        json_put_string(j, NULL, names[i].name);
    }
    json_put_end(j);
}

/* One NIC: as declared, as its host joined, as seen. n NULL: no host joined with it. d NULL: it is not declared. */
static void put_nic(const struct controller *c, struct json_writer *j,
                    const struct topology_view *v, const struct topology_nic *d,
                    const struct fleet_nic *n)
{
    const struct topology *t = &c->declared->now;
    const uint32_t seen = n != NULL ? v->seen[n->id] : UINT32_MAX;
    json_put_object(j, NULL);
    json_put_string(j, "name", d != NULL ? d->name : n->name);
    json_put_int_if(j, "nic", n != NULL, n != NULL ? n->id : 0);
    json_put_bool(j, "declared", d != NULL);
    json_put_int_if(j, "rail", d != NULL && d->rail >= 0, d != NULL ? d->rail : 0);
    json_put_int_if(j, "rail_joined", n != NULL, n != NULL ? n->rail : 0);
    json_put_string(j, "leaf", d != NULL && d->leaf != UINT32_MAX ? t->leaves[d->leaf].name : NULL);
    json_put_string(j, "leaf_joined", n != NULL && n->leaf[0] != 0 ? n->leaf : NULL);
    json_put_string(j, "leaf_seen", seen != UINT32_MAX ? t->leaves[seen].name : NULL);
    json_put_string(j, "port", d != NULL && d->port[0] != 0 ? d->port : NULL);
    const bool heard = n != NULL && n->neighbour[0] != 0;
    json_put_string(j, "switch", heard ? n->neighbour : NULL);
    json_put_string(j, "switch_port", heard ? n->neighbour_port : NULL);
    json_put_end(j);
}

static const struct fleet_nic *joined(const struct controller *c, const struct fleet_host *h,
                                      const char *name)
{
    for (uint32_t i = 0; h != NULL && h->member && i < h->nic_count; i++) {
        if (strcmp(c->nics[h->nics[i]]->name, name) == 0) {
            return c->nics[h->nics[i]];
        }
    }
    return NULL;
}

static void put_hosts(const struct controller *c, struct json_writer *j,
                      const struct topology_view *v)
{
    const struct topology *t = &c->declared->now;
    json_put_array(j, "hosts");
    for (uint32_t i = 0; i < t->host_count; i++) {
        const struct fleet_host *h = fleet_find_host(c, t->hosts[i].name);
        json_put_object(j, NULL);
        json_put_string(j, "host", t->hosts[i].name);
        json_put_bool(j, "member", h != NULL && h->member);
        json_put_array(j, "nics");
        for (uint32_t k = t->hosts[i].first; k < t->hosts[i].first + t->hosts[i].count; k++) {
            put_nic(c, j, v, &t->nics[k], joined(c, h, t->nics[k].name));
        }
        for (uint32_t k = 0; h != NULL && h->member && k < h->nic_count; k++) {
            if (v->of_nic[h->nics[k]] == UINT32_MAX) {
                put_nic(c, j, v, NULL, c->nics[h->nics[k]]);
            }
        }
        json_put_end(j);
        json_put_end(j);
    }
    json_put_end(j);
}

static void put_differences(struct json_writer *j, const struct topology_view *v)
{
    json_put_array(j, "differences");
    for (size_t i = 0; i < v->count; i++) {
        const struct difference *d = &v->differences[i];
        json_put_object(j, NULL);
        json_put_string(j, "difference", difference_word(d->kind));
        json_put_string(j, "host", d->host);
        json_put_string(j, "name", d->nic);
        json_put_int_if(j, "nic", d->id != UINT32_MAX, d->id);
        json_put_string(j, "declared", d->declared);
        json_put_string(j, "found", d->found);
        json_put_string(j, "text", d->text);
        json_put_end(j);
    }
    json_put_end(j);
}

static void answer_topology(struct api_call *call)
{
    const struct controller *c = call->c;
    const struct declared *d = c->declared;
    struct json_writer *j = call->j;
    struct topology_view v;
    if (topology_compare(c, &v) < 0) {
        api_error(call, 503, "memory", "out of memory");
        return;
    }
    json_writer_reset(j);
    json_put_object(j, NULL);
    if (d->count > 0) {
        put_version(j, "declared", &d->versions[0], false);
    } else {
        json_put_null(j, "declared");
    }
    put_names(j, "leaves", d->now.leaves, d->now.leaf_count);
    put_names(j, "spines", d->now.spines, d->now.spine_count);
    put_hosts(c, j, &v);
    put_differences(j, &v);
    json_put_end(j);
    topology_view_done(&v);
    api_answer(call);
}

void api_get_topology(struct api_call *call)
{
    answer_topology(call);
}

void api_get_topology_versions(struct api_call *call)
{
    const struct declared *d = call->c->declared;
    json_put_object(call->j, NULL);
    json_put_array(call->j, "items");
    for (uint32_t i = 0; i < d->count; i++) {
        put_version(call->j, NULL, &d->versions[i], true);
    }
    json_put_end(call->j);
    json_put_null(call->j, "next");
    json_put_end(call->j);
    api_answer(call);
}

void api_post_topology(struct api_call *call)
{
    const char *text = json_string_value(json_object_get(call->body, "text")),
               *why = json_string_value(json_object_get(call->body, "why"));
    struct config_error error = {""};
    char detail[80];
    if (text == NULL || strlen(text) > TOPOLOGY_TEXT_MAX || (why != NULL && strlen(why) > 159)) {
        api_error(call, 400, "bad-body", "expected text (at most %d bytes), and why in 159 at most",
                  TOPOLOGY_TEXT_MAX);
        return;
    }
    const int r = declared_put(call->c, text, call->who, why != NULL ? why : "", &error);
    if (r == -EINVAL) {
        api_error(call, 400, "bad-topology", "%s", error.text);
        return;
    }
    if (r < 0) {
        api_error(call, 503, "not-stored", "the declared topology can't be stored: %s",
                  strerror(-r));
        return;
    }
    snprintf(detail, sizeof(detail), "version %llu: %u hosts, %u NICs",
             (unsigned long long)call->c->declared->versions[0].version,
             call->c->declared->now.host_count, call->c->declared->now.nic_count);
    if (api_audit(call, "topology.declare", detail)) {
        answer_topology(call);
    }
}
