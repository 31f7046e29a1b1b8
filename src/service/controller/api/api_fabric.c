/* api_fabric.c: switches and the trunks between them at the API, together with the declared ones. */
#include <stdlib.h>
#include <string.h>

#include "core/fleet/delay_code.h"
#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/topology.h"
#include "service/controller/fleet/ways.h"

static void put_switch(struct json_writer *j, const char *name, uint32_t tier, uint32_t ways,
                       const char *declared)
{
    json_put_object(j, NULL);
    json_put_string(j, "name", name);
    json_put_uint(j, "tier", tier);
    json_put_uint(j, "ways", ways);
    json_put_string(j, "declared", declared);
    json_put_end(j);
}

/* Puts the switches that trunks or NICs name, now or lately, and those that are only declared. */
static void put_switches(const struct controller *c, struct json_writer *j, const uint8_t *wanted)
{
    const struct topology *t = &c->declared->now;
    const struct fabric *f = c->fabric;
    json_put_array(j, "switches");
    for (uint32_t i = 0; i < f->switch_count; i++) {
        const struct fabric_switch *s = &f->switches[i];
        if (s->ways > 0 || wanted[i]) {
            const bool leaf = topology_find(t->leaves, t->leaf_count, s->name) < t->leaf_count,
                       spine = topology_find(t->spines, t->spine_count, s->name) < t->spine_count;
            put_switch(j, s->name, spine && s->tier == 0 ? 1 : s->tier, s->ways,
                       leaf    ? "leaf"
                       : spine ? "spine"
                               : NULL);
        }
    }
    for (uint32_t k = 0; k < t->leaf_count + t->spine_count; k++) {
        const bool leaf = k < t->leaf_count;
        const char *name = leaf ? t->leaves[k].name : t->spines[k - t->leaf_count].name;
        const uint32_t number = fabric_find_switch(f, name);
        if (number == 0 || (f->switches[number - 1].ways == 0 && !wanted[number - 1])) {
            put_switch(j, name, leaf ? 0 : 1, 0, leaf ? "leaf" : "spine");
        }
    }
    json_put_end(j);
}

static void put_trunk(const struct fabric *f, struct json_writer *j, const struct fabric_trunk *t)
{
    const bool timed = t->owd_p99 != DELAY_CODE_NONE, passed = t->alive + t->lossy > 0;
    json_put_object(j, NULL);
    json_put_string(j, "from", f->switches[t->from].name);
    json_put_string(j, "to", f->switches[t->to].name);
    json_put_string(j, "state", fabric_trunk_state(t));
    json_put_int_if(j, "gone_utc_ns", t->ways == 0,
                    controller_utc_ns() - mono_sub(controller_mono(), t->gone).ns);
    json_put_uint(j, "ways", t->ways);
    json_put_uint(j, "paths_alive", t->alive);
    json_put_uint(j, "paths_lossy", t->lossy);
    json_put_uint(j, "paths_dead", t->dead);
    json_put_int_if(j, "owd_ns_p50", timed, timed ? delay_decode(t->owd_p50) : 0);
    json_put_int_if(j, "owd_ns_p99", timed, timed ? delay_decode(t->owd_p99) : 0);
    json_put_int_if(j, "loss_ppm", passed, t->loss_ppm);
    json_put_end(j);
}

/* Puts at most `limit` trunks, unhealthy ones first; returns how many were left out. */
static uint32_t put_trunks(const struct fabric *f, struct json_writer *j, int64_t limit)
{
    int64_t left = limit;
    json_put_array(j, "trunks");
    for (int good = 0; good < 2; good++) {
        for (uint32_t i = 0; i < f->trunk_count && left > 0; i++) {
            if ((strcmp(fabric_trunk_state(&f->trunks[i]), "good") == 0) == (good == 1)) {
                put_trunk(f, j, &f->trunks[i]);
                left--;
            }
        }
    }
    json_put_end(j);
    return f->trunk_count - (uint32_t)(limit - left);
}

void api_get_fabric(struct api_call *call)
{
    struct controller *c = call->c;
    struct json_writer *j = call->j;
    struct fabric *f = c->fabric;
    int64_t limit = API_PAGE_MAX;
    if (!api_number(call, "limit", 1, FABRIC_TRUNK_MAX, &limit)) {
        return;
    }
    uint8_t *wanted = calloc(f->switch_count + 1, 1);
    if (wanted == NULL) {
        api_error(call, 503, "memory", "out of memory");
        return;
    }
    ways_look(c);
    for (uint32_t i = 0; i < f->trunk_count; i++) {
        wanted[f->trunks[i].from] = wanted[f->trunks[i].to] = 1;
    }
    json_put_object(j, NULL);
    json_put_uint(j, "ways", f->ways);
    json_put_uint(j, "ways_known", f->ways_known);
    put_switches(c, j, wanted);
    const uint32_t more = put_trunks(f, j, limit);
    json_put_uint(j, "trunks_more", more);
    json_put_end(j);
    free(wanted);
    api_answer(call);
}
