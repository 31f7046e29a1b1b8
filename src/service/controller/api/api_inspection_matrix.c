/* api_inspection_matrix.c: the full matrix of the last audit that measured it: every NIC with every NIC; sums of each NIC, and
 * cells. */
#include <stdio.h>

#include "core/fleet/delay_code.h"
#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/audit/matrix.h"
#include "service/controller/fleet/fleet.h"

enum { CELLS_SHOWN = 512 }; /* NICs */

static const struct fleet_host *host_of(struct api_call *call, const struct audit_matrix *x,
                                        uint32_t place)
{
    return x->places[place].id != 0 ? scope_host(call, x->hosts[place / x->plan.rails]) : NULL;
}

static void add_cell(const struct matrix_cell *c, bool out, struct matrix_nic *sum)
{
    sum->cells++;
    if (c->why != MATRIX_FINE && (c->why != MATRIX_CLOCK || c->heard == 0)) {
        sum->unmeasured++;
        return;
    }
    sum->sent_out += out ? c->sent : 0;
    *(out ? &sum->lost_out : &sum->lost_in) += (uint32_t)(c->sent - c->heard);
    *(out ? &sum->dead_out : &sum->dead_in) += c->heard == 0;
}

/* A tenant's sums count only cells with NICs of its own; not even the number of others is shown. false: the cells are no
 * longer kept. */
static bool sum_of(struct api_call *call, const struct audit_matrix *x, uint32_t place,
                   struct matrix_nic *ret)
{
    struct matrix_nic sum = {0};
    *ret = x->m.nics[place];
    if (call->visible == NULL || x->m.delay == NULL) {
        return call->visible == NULL;
    }
    for (uint32_t other = 0; other < x->m.count; other++) {
        if (matrix_two_hosts(&x->m, place, other) && host_of(call, x, other) != NULL) {
            const struct matrix_cell out = matrix_cell_of(&x->m, place, other),
                                     in = matrix_cell_of(&x->m, other, place);
            add_cell(&out, true, &sum);
            add_cell(&in, false, &sum);
        }
    }
    *ret = sum;
    return true;
}

static void put_nic(struct api_call *call, const struct audit_matrix *x, uint32_t place,
                    const struct fleet_host *h)
{
    const struct matrix_nic *n = &x->m.nics[place];
    struct matrix_nic sum;
    const bool known = sum_of(call, x, place, &sum);
    const char *note = x->notes[place / x->plan.rails];
    struct json_writer *j = call->j;
    json_put_object(j, NULL);
    json_put_uint(j, "nic", x->places[place].id - 1);
    json_put_string(j, "host", h->name);
    json_put_string(j, "name", x->places[place].name);
    json_put_string(j, "leaf", n->leaf != MATRIX_LEAF_NONE ? x->leaves.names[n->leaf] : NULL);
    json_put_string(j, "leaf_found",
                    n->leaf_found != MATRIX_LEAF_NONE ? x->leaves.names[n->leaf_found] : NULL);
    json_put_int_if(j, "cells", known, sum.cells);
    json_put_int_if(j, "unmeasured", known, sum.unmeasured);
    json_put_int_if(j, "sent", known, sum.sent_out);
    json_put_int_if(j, "lost_out", known, sum.lost_out);
    json_put_int_if(j, "lost_in", known, sum.lost_in);
    json_put_int_if(j, "dead_out", known, sum.dead_out);
    json_put_int_if(j, "dead_in", known, sum.dead_in);
    json_put_int_if(j, "late_cells", call->visible == NULL, n->late_cells);
    json_put_int_if(j, "out_ns", n->delay_known, n->out_ns);
    json_put_int_if(j, "in_ns", n->delay_known, n->in_ns);
    json_put_int_if(j, "bound_ns", n->delay_known, n->bound_ns);
    json_put_string(j, "note", note[0] != 0 ? note : NULL);
    json_put_end(j);
}

/* One NIC's row of sent packets: ns; -1: lost; null: not measured, or the delay is not known. */
static void put_row(struct api_call *call, const struct audit_matrix *x, uint32_t from, bool why)
{
    json_put_array(call->j, NULL);
    for (uint32_t to = 0; to < x->m.count; to++) {
        if (host_of(call, x, to) == NULL) {
            continue;
        }
        const struct matrix_cell cell = matrix_cell_of(&x->m, from, to);
        if (why) {
            json_put_string(call->j, NULL,
                            cell.why == MATRIX_FINE ? NULL : matrix_why_name(cell.why));
        } else if (cell.sent > 0 && cell.heard == 0 && cell.why == MATRIX_FINE) {
            json_put_int(call->j, NULL, -1);
        } else {
            json_put_int_if(call->j, NULL, cell.delay != DELAY_CODE_NONE, delay_decode(cell.delay));
        }
    }
    json_put_end(call->j);
}

static void put_cells(struct api_call *call, const struct audit_matrix *x, const char *key,
                      bool why)
{
    json_put_array(call->j, key);
    for (uint32_t from = 0; from < x->m.count; from++) {
        if (host_of(call, x, from) != NULL) {
            put_row(call, x, from, why);
        }
    }
    json_put_end(call->j);
}

static void put_sums(struct api_call *call, const struct audit_matrix *x)
{
    struct json_writer *j = call->j;
    const bool all = call->visible == NULL; /* the other fields cover all tenants together */
    json_put_int(j, "began_fleet_ns", x->plan.begin_ns);
    json_put_int_if(j, "rounds", all, matrix_rounds(&x->plan));
    json_put_int_if(j, "round_us", all, x->plan.round_ns / NS_PER_US);
    json_put_int_if(j, "family", x->family != 0, x->family);
    if (all) {
        json_put_uint(j, "cells", x->m.cells);
        json_put_uint(j, "measured", x->m.measured);
        json_put_object(j, "unmeasured");
        for (int why = MATRIX_FINE + 1; why < MATRIX_WHY_COUNT; why++) {
            if (x->m.unmeasured[why] > 0) {
                json_put_uint(j, matrix_why_name((enum matrix_why)why), x->m.unmeasured[why]);
            }
        }
        json_put_end(j);
    }
    json_put_int_if(j, "near_ns", all && x->m.near_ns != INT64_MIN, x->m.near_ns);
    json_put_int_if(j, "far_ns", all && x->m.far_ns != INT64_MIN, x->m.far_ns);
    json_put_int_if(j, "limit_ns", all, x->m.limit_ns);
}

void api_answer_audit_matrix(struct api_call *call, int64_t run)
{
    const struct audit_matrix *x = call->c->audits->matrix;
    struct json_writer *j = call->j;
    if (x == NULL || x->run != run) {
        api_error(call, 404, "no-matrix",
                  "this audit measured no matrix of all NICs, or a later audit has replaced it");
        return;
    }
    json_put_object(j, NULL);
    put_sums(call, x);
    json_put_array(j, "nics");
    for (uint32_t i = 0; i < x->m.count; i++) {
        const struct fleet_host *h = host_of(call, x, i);
        if (h != NULL) {
            put_nic(call, x, i, h);
        }
    }
    json_put_end(j);
    if (x->m.delay != NULL && x->m.count <= CELLS_SHOWN) {
        put_cells(call, x, "delay_ns", false);
        put_cells(call, x, "why", true);
    }
    json_put_end(j);
    api_answer(call);
}
