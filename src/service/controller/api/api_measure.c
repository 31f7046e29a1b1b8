/* api_measure.c: measurements on demand at the API: start, watch, stop. It has the host check and the full matrix. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/measure.h"

/* ---- one measurement as JSON ---- */

static void put_measurement(const struct api_call *call, const struct measurement *m)
{
    static const char *const states[] = {"running", "done", "stopped"};
    struct json_writer *j = call->j;
    uint32_t rows_measured = 0;
    for (size_t i = 0; i < (size_t)m->pair_count * m->plan.ports; i++) {
        rows_measured += m->rows[i].measured;
    }
    json_put_uint(j, "id", m->id);
    json_put_string(j, "kind", m->kind == MEASUREMENT_CHECK ? "host-check" : "matrix");
    json_put_string(j, "host", m->host != NULL ? m->host->name : NULL);
    json_put_string(j, "state", states[m->state]);
    json_put_string(j, "why", m->why[0] != 0 ? m->why : NULL);
    json_put_string(j, "who", m->who);
    json_put_int(j, "started_utc_ns", m->started_ns);
    json_put_int_if(j, "ended_utc_ns", m->ended_ns != 0, m->ended_ns);
    json_put_int(j, "left_ns", measurement_left_ns(call->c, m));
    json_put_uint(j, "packets", measurement_packets(m));
    json_put_uint(j, "packets_sent", measurement_packets_sent(m));
    json_put_uint(j, "packets_per_path", m->plan.packets);
    json_put_uint(j, "rate_per_host", m->plan.rate);
    json_put_uint(j, "pairs", m->pair_count);
    json_put_uint(j, "paths_all", (uint64_t)m->pair_count * m->plan.ports);
    json_put_uint(j, "paths_measured", rows_measured);
    json_put_int_if(j, "bound_ns", m->bound_ns != 0, m->bound_ns);
    json_put_array(j, "hosts");
    for (uint32_t i = 0; i < m->asker_count; i++) {
        const struct measurement_asker *a = &m->askers[i];
        json_put_object(j, NULL);
        json_put_string(j, "host", a->host->name);
        json_put_uint(j, "pairs", a->asks.count);
        json_put_uint(j, "pairs_done", a->asks.next);
        json_put_string(j, "trouble", a->trouble[0] != 0 ? a->trouble : NULL);
        json_put_end(j);
    }
    json_put_end(j);
    json_put_array(j, "skipped");
    for (uint32_t i = 0; i < m->skipped_count; i++) {
        json_put_string(j, NULL, m->skipped[i]);
    }
    json_put_end(j);
}

static void answer_one(struct api_call *call, const struct measurement *m)
{
    json_writer_reset(call->j); /* writing an event may have used the writer */
    json_put_object(call->j, NULL);
    put_measurement(call, m);
    if (m->kind == MEASUREMENT_CHECK && check_put(call->c, call->j, m) < 0) {
        json_writer_reset(call->j);
        api_error(call, 503, "memory", "out of memory");
        return;
    }
    json_put_end(call->j);
    api_answer(call);
}

static struct measurement *find(struct api_call *call)
{
    char *end = NULL;
    const unsigned long id = strtoul(call->rest, &end, 10);
    struct measurement *m =
        *end == 0 && id <= UINT32_MAX ? measurement_find(call->c, (uint32_t)id) : NULL;
    if (m == NULL) {
        api_error(call, 404, "no-such-measurement",
                  "no such measurement: only the last %d are kept, until the controller restarts",
                  MEASUREMENT_KEPT);
    }
    return m;
}

void api_get_measurements(struct api_call *call)
{
    json_put_object(call->j, NULL);
    json_put_array(call->j, "items");
    for (uint32_t i = 0; i < MEASUREMENT_KEPT; i++) {
        if (call->c->measures->kept[i] != NULL) {
            json_put_object(call->j, NULL);
            put_measurement(call, call->c->measures->kept[i]);
            json_put_end(call->j);
        }
    }
    json_put_end(call->j);
    json_put_null(call->j, "next");
    json_put_end(call->j);
    api_answer(call);
}

void api_get_measurement(struct api_call *call)
{
    const struct measurement *m = find(call);
    if (m != NULL) {
        answer_one(call, m);
    }
}

void api_delete_measurement(struct api_call *call)
{
    struct measurement *m = find(call);
    char detail[64];
    if (m == NULL) {
        return;
    }
    snprintf(detail, sizeof(detail), "measurement %u", m->id);
    if (api_audit(call, "measurement.stop", detail)) {
        char why[100];
        snprintf(why, sizeof(why), "%.60s stopped it", call->who);
        measurement_stop(call->c, m, why);
        answer_one(call, m);
    }
}

/* ---- starting a measurement ---- */

static bool number(struct api_call *call, const char *name, int64_t min, int64_t max,
                   int64_t *value)
{
    const json_t *v = json_object_get(call->body, name);
    if (v == NULL || json_is_null(v)) {
        return true;
    }
    if (!json_is_integer(v) || json_integer_value(v) < min || json_integer_value(v) > max) {
        api_error(call, 400, "bad-body", "%s: expected a number from %lld to %lld", name,
                  (long long)min, (long long)max);
        return false;
    }
    *value = json_integer_value(v);
    return true;
}

static struct measurement *plan_check(struct api_call *call)
{
    const char *name = json_string_value(json_object_get(call->body, "host"));
    struct fleet_host *h = name != NULL ? fleet_find_host(call->c, name) : NULL;
    int64_t seconds = CHECK_S_DEFAULT;
    const char *code = NULL;
    char words[200];
    if (name == NULL) {
        api_error(call, 400, "bad-body", "host: expected the name of a host");
        return NULL;
    }
    if (h == NULL || !h->member) {
        api_error(call, 404, "no-such-host", "%.63s is no host of this fleet", name);
        return NULL;
    }
    if (!number(call, "seconds", 1, CHECK_S_MAX, &seconds)) {
        return NULL;
    }
    struct measurement *m = check_plan(call->c, h, call->who, (uint32_t)seconds, &code, words);
    if (m == NULL) {
        api_error(call, strcmp(code, "memory") == 0 ? 503 : 409, code, "%s", words);
    }
    return m;
}

/* Adds the pairs from one host to all others, beginning with the next host. So at any moment the hosts send to different
 * hosts. */
static int add_row_of_matrix(struct controller *c, struct measurement *m, uint32_t i, int64_t rail,
                             const bool *fit)
{
    struct fleet_host *from = c->hosts[i];
    int r = 0;
    for (uint32_t d = 1; d < c->host_count && r == 0; d++) {
        const uint32_t k = (i + d) % c->host_count;
        const struct fleet_host *to = c->hosts[k];
        for (uint32_t pair = 0; fit[k] && pair < from->nic_count * to->nic_count && r == 0;
             pair++) {
            const struct fleet_nic *a = c->nics[from->nics[pair / to->nic_count]],
                                   *b = c->nics[to->nics[pair % to->nic_count]];
            if (rail < 0 || (a->rail == rail && b->rail == rail)) {
                r = measurement_add(m, from, a->id, b->id);
            }
        }
    }
    return r;
}

static struct measurement *plan_matrix(struct api_call *call)
{
    struct controller *c = call->c;
    int64_t rail = -1;
    uint32_t nics = 0;
    if (!number(call, "rail", 0, UINT16_MAX, &rail)) {
        return NULL;
    }
    for (uint32_t i = 0; i < c->nic_count; i++) {
        const struct fleet_nic *n = fleet_find_nic(c, i);
        nics += n != NULL && (rail < 0 || n->rail == rail);
    }
    if (nics > MEASUREMENT_NIC_MAX) {
        api_error(call, 409, "too-large", "%u NICs: at most %d at once; measure one rail", nics,
                  MEASUREMENT_NIC_MAX);
        return NULL;
    }
    struct measurement *m = measurement_new(MEASUREMENT_MATRIX, call->who);
    bool *fit = calloc(c->host_count + 1, sizeof(*fit));
    int r = m == NULL || fit == NULL ? -ENOMEM : 0;
    for (uint32_t i = 0; i < c->host_count && r == 0; i++) {
        const char *why = measure_unfit(c, c->hosts[i]);
        fit[i] = why == NULL;
        r = why == NULL || !c->hosts[i]->member ? 0 : measurement_skip(m, c->hosts[i], why);
    }
    for (uint32_t i = 0; i < c->host_count && r == 0; i++) {
        r = fit[i] ? add_row_of_matrix(c, m, i, rail, fit) : 0;
    }
    free(fit);
    if (r < 0) {
        api_error(call, 503, "memory", "out of memory");
        return measurement_free(m);
    }
    m->plan.ports = 1;
    m->plan.packets = MATRIX_PACKETS;
    return m;
}

void api_post_measurement(struct api_call *call)
{
    const char *kind = json_string_value(json_object_get(call->body, "kind"));
    const struct measurement *other = measurement_running(call->c);
    const bool check = kind != NULL && strcmp(kind, "host-check") == 0;
    char detail[160];
    if (!check && (kind == NULL || strcmp(kind, "matrix") != 0)) {
        api_error(call, 400, "bad-body", "kind: expected host-check or matrix");
        return;
    }
    if (other != NULL) {
        api_error(
            call, 409, "busy",
            "measurement %u of %s runs for some %lld s more: only one runs at a time, so that "
            "measuring puts little load on the network",
            other->id, other->who, (long long)(measurement_left_ns(call->c, other) / NS_PER_S) + 1);
        return;
    }
    struct measurement *m = check ? plan_check(call) : plan_matrix(call);
    if (m == NULL) {
        return;
    }
    snprintf(detail, sizeof(detail), "%s%s%.63s: %u pairs", kind, m->host != NULL ? " of " : "",
             m->host != NULL ? m->host->name : "", m->pair_count);
    const int r = measurement_begin(call->c, m);
    if (r < 0) {
        api_error(call, r == -ENOMEM ? 503 : 409, r == -ENOMEM ? "memory" : "nobody",
                  r == -ENOMEM ? "out of memory" : "no two hosts can measure: check their agents");
        return;
    }
    if (api_audit(call, "measurement.start", detail)) {
        answer_one(call, m);
    } else {
        measurement_stop(call->c, m, "the audit trail could not be written");
    }
}
