/* api_level.c: service levels at the API. */
#include <stdio.h>
#include <string.h>

#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/levels.h"

static void put_nic(const struct controller *c, struct json_writer *j, const char *key,
                    uint32_t nic)
{
    const struct fleet_nic *n = fleet_find_nic(c, nic);
    char name[TLS_NAME_MAX + IF_NAMESIZE + 2];
    if (n == NULL) {
        json_put_null(j, key);
        return;
    }
    snprintf(name, sizeof(name), "%s/%s", n->host->name, n->name);
    json_put_string(j, key, name);
}

static void put_worst(const struct controller *c, struct json_writer *j,
                      const struct level_entry *e)
{
    if (e->state.worst < 0) {
        json_put_null(j, "worst");
        return;
    }
    json_put_object(j, "worst");
    put_nic(c, j, "from", e->state.worst_from);
    put_nic(c, j, "to", e->state.worst_to);
    json_put_uint(j, "from_nic", e->state.worst_from);
    json_put_uint(j, "to_nic", e->state.worst_to);
    json_put_uint(j, "port", e->state.worst_port);
    json_put_int(j, "value", e->state.worst);
    json_put_end(j);
}

void api_get_levels(struct api_call *call)
{
    static const char *const units[] = {"ns", "ns", "ppm", "hops"};
    const struct controller *c = call->c;
    struct json_writer *j = call->j;
    json_put_object(j, NULL);
    json_put_array(j, "items");
    for (uint32_t i = 0; i < c->levels->count; i++) {
        const struct level_entry *e = &c->levels->entries[i];
        json_put_object(j, NULL);
        json_put_string(j, "name", e->level.name);
        json_put_string(j, "measure", level_kind_word(e->level.kind));
        json_put_string(j, "unit", units[e->level.kind]);
        json_put_string(j, "within", level_within_word(e->level.within));
        json_put_int(j, "limit", e->level.limit);
        json_put_string(j, "state", level_verdict_word(e->state.verdict));
        json_put_int_if(j, "since_utc_ns", e->since_utc_ns != 0, e->since_utc_ns);
        json_put_uint(j, "paths", e->state.paths);
        json_put_uint(j, "paths_unmeasured", e->state.unmeasured);
        json_put_uint(j, "paths_beyond", e->state.beyond);
        put_worst(c, j, e);
        json_put_array(j, "by");
        for (uint32_t k = 0; k < e->offender_count; k++) {
            json_put_object(j, NULL);
            put_nic(c, j, "nic", e->offenders[k].nic);
            json_put_uint(j, "nic_id", e->offenders[k].nic);
            json_put_uint(j, "paths_beyond", e->offenders[k].paths);
            json_put_end(j);
        }
        json_put_end(j);
        json_put_end(j);
    }
    json_put_end(j);
    json_put_string(j, "error", c->levels->error[0] != 0 ? c->levels->error : NULL);
    json_put_null(j, "next");
    json_put_end(j);
    api_answer(call);
}
