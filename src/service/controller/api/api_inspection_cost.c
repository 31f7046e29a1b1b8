/* api_inspection_cost.c: what an audit of the fleet would cost, and how far the present stage of one is. */
#include <stdlib.h>

#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/audit/cost.h"
#include "service/controller/fleet/fleet.h"

/* A part that is not possible in this fleet is null. */
static void put_matrix(struct json_writer *j, const struct audit_cost *cost)
{
    if (cost->matrix_ns == 0) {
        json_put_null(j, "matrix");
        return;
    }
    json_put_object(j, "matrix");
    json_put_int(j, "ns", cost->matrix_ns);
    json_put_uint(j, "packets", cost->packets);
    json_put_end(j);
}

static void put_tests(struct json_writer *j, const struct audit_cost *cost, bool nccl)
{
    const char *key = nccl ? "nccl" : "bandwidth";
    if (cost->pairs_ns == 0) {
        json_put_null(j, key);
        return;
    }
    json_put_object(j, key);
    json_put_int(j, "pairs_ns", cost->pairs_ns);
    json_put_int(j, "fabric_ns", nccl ? cost->fabric_nccl_ns : cost->fabric_ns);
    if (nccl) {
        json_put_int(j, "rings_ns", cost->rings_ns);
        json_put_int(j, "round_ns", cost->round_ns);
    }
    json_put_end(j);
}

void api_get_audit_cost(struct api_call *call)
{
    struct controller *c = call->c;
    struct audit_cost cost;
    uint32_t *nics = calloc(c->host_count + 1, sizeof(*nics)), hosts = 0;
    if (nics == NULL) {
        api_error(call, 503, "memory", "out of memory");
        return;
    }
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (c->hosts[i]->member && api_sees(call, c->hosts[i])) {
            nics[hosts++] = c->hosts[i]->nic_count;
        }
    }
    audit_cost_of(nics, hosts, c->config.beat_ms, &cost);
    free(nics);
    json_put_object(call->j, NULL);
    json_put_uint(call->j, "hosts", cost.hosts);
    json_put_uint(call->j, "nics", cost.nics);
    json_put_int(call->j, "lead_ns", cost.lead_ns);
    put_matrix(call->j, &cost);
    put_tests(call->j, &cost, false);
    put_tests(call->j, &cost, true);
    json_put_end(call->j);
    api_answer(call);
}

void api_put_audit_left(struct api_call *call, const struct audit_run *run)
{
    int64_t left = 0, stage = 0;
    /* the time tells how many other hosts there are, so a tenant doesn't see it */
    const bool known =
        run != NULL && call->visible == NULL && audit_left(call->c, run, &left, &stage);
    json_put_int_if(call->j, "left_ns", known, left);
    json_put_int_if(call->j, "stage_ns", known, stage);
}
