/* api_latency.c: the latency matrix at the API. The present one comes from the loop's state. The history thread reads past
 * ones from the store. JSON is for people and scripts. The dashboard gets columns of bytes: a fifth of the size, and no
 * parsing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/fleet/delay_code.h"
#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/latency.h"
#include "service/controller/fleet/measure.h"

enum { LATENCY_JSON_MAX = 512 << 20 };

static void put_words(struct json_writer *j)
{
    static const char *const columns[] = {"from",     "to",    "owd_ns_p50", "owd_ns_p99",
                                          "loss_ppm", "state", "paths",      "paths_dead"};
    json_put_array(j, "columns");
    for (size_t i = 0; i < ARRAY_COUNT(columns); i++) {
        json_put_string(j, NULL, columns[i]);
    }
    json_put_end(j);
    json_put_array(j, "states");
    for (uint32_t i = 0; i < 5; i++) {
        json_put_string(j, NULL, api_path_word(i));
    }
    json_put_end(j);
}

static void put_matrix(struct json_writer *j, const struct latency_matrix *m, int64_t at_ns)
{
    json_put_object(j, NULL);
    json_put_int_if(j, "at_utc_ns", at_ns != 0, at_ns);
    json_put_int_if(j, "step_ns", m->step_ns != 0, m->step_ns);
    put_words(j);
    json_put_array(j, "nics");
    for (uint32_t i = 0; i < m->nic_count; i++) {
        json_put_array(j, NULL);
        json_put_uint(j, NULL, m->nics[i].id);
        json_put_string(j, NULL, m->nics[i].host);
        json_put_string(j, NULL, m->nics[i].name);
        json_put_end(j);
    }
    json_put_end(j);
    json_put_array(j, "cells");
    for (size_t i = 0; i < m->count; i++) {
        const struct latency_cell *cell = &m->cells[i];
        json_put_array(j, NULL);
        json_put_uint(j, NULL, m->nics[cell->from].id);
        json_put_uint(j, NULL, m->nics[cell->to].id);
        json_put_int_if(j, NULL, cell->p50 != DELAY_CODE_NONE, delay_decode(cell->p50));
        json_put_int_if(j, NULL, cell->p99 != DELAY_CODE_NONE, delay_decode(cell->p99));
        json_put_int_if(j, NULL, cell->state != 0, cell->loss_ppm);
        json_put_uint(j, NULL, cell->state);
        json_put_int_if(j, NULL, cell->state != 0, cell->paths);
        json_put_int_if(j, NULL, cell->state != 0, cell->paths_dead);
        json_put_end(j);
    }
    json_put_end(j);
    json_put_end(j);
}

/* binary: the version of bytes that was asked for; 0: JSON, into `j`. Returns 0 or -ENOMEM. */
static int write_matrix(struct json_writer *j, struct message_buffer *bytes, int binary,
                        struct latency_matrix *m, int64_t at_ns)
{
    const int r = latency_order(m);
    if (r < 0 || binary != 0) {
        return r < 0 ? r : latency_encode(m, binary, at_ns, bytes);
    }
    put_matrix(j, m, at_ns);
    return 0;
}

static void answer_matrix(struct api_call *call, const struct message_buffer *bytes, int binary,
                          int r)
{
    if (r < 0) {
        api_store_error(call, r);
    } else if (binary != 0) {
        api_answer_bytes(call, "application/octet-stream", bytes->bytes, bytes->size);
    } else {
        api_answer(call);
    }
}

static void refuse_measurement(struct api_call *call)
{
    api_error(call, 404, "no-such-measurement", "no matrix with that number is kept");
}

/* measured: a full matrix on demand; NULL: the mesh's continuous measurement. */
static void answer_now(struct api_call *call, int binary, const struct measurement *measured)
{
    const struct controller *c = call->c;
    const struct mono now = controller_mono();
    struct latency_matrix m;
    struct message_buffer bytes = {0};
    int r = latency_init(&m, c, call->visible);
    if (r == 0 && measured != NULL) {
        measurement_fill_matrix(measured, &m);
    }
    for (uint32_t i = 0; r == 0 && measured == NULL && i < c->host_count; i++) {
        if (api_sees(call, c->hosts[i])) {
            latency_add_host(&m, c->hosts[i], fleet_current(c, c->hosts[i], now));
        }
    }
    if (r == 0 && measured != NULL && call->visible != NULL && m.count == 0) {
        refuse_measurement(call); /* a tenant sees no matrix of other tenants' hosts only */
        latency_done(&m);
        return;
    }
    r = r < 0 ? r : write_matrix(call->j, &bytes, binary, &m, 0);
    answer_matrix(call, &bytes, binary, r);
    latency_done(&m);
    message_buffer_done(&bytes);
}

/* ---- a past matrix ---- */

struct latency_task {
    struct api_task task;
    struct latency_moment moment;
    struct latency_matrix matrix;
    struct history_host *hosts;
    uint32_t host_count;
    int binary;
    struct json_writer json;
    struct message_buffer bytes;
    int rc;
};

static void run_latency(struct worker_job *job, struct store *store)
{
    struct latency_task *t = (struct latency_task *)job;
    t->rc = 0;
    for (uint32_t i = 0; i < t->host_count && t->rc == 0; i++) {
        t->rc = latency_read_host(&t->matrix, store, &t->hosts[i], &t->moment);
    }
    if (t->rc == 0) {
        t->rc = write_matrix(&t->json, &t->bytes, t->binary, &t->matrix, t->moment.at_ns);
    }
}

static void free_task(struct latency_task *t)
{
    latency_done(&t->matrix);
    json_writer_done(&t->json);
    message_buffer_done(&t->bytes);
    free(t->hosts);
    free(t);
}

static void end_latency(struct worker_job *job)
{
    struct latency_task *t = (struct latency_task *)job;
    struct api_call call = {.c = t->task.c, .request = t->task.request, .j = &t->json};
    if (api_task_back(&t->task)) {
        answer_matrix(&call, &t->bytes, t->binary, t->rc);
    }
    free_task(t);
}

static int take_hosts(struct latency_task *t, const struct api_call *call)
{
    const struct controller *c = call->c;
    uint32_t report_ms = c->config.report_ms;
    t->hosts = malloc((c->host_count + 1) * sizeof(*t->hosts));
    if (t->hosts == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        if (h->member && api_sees(call, h)) {
            t->hosts[t->host_count++] = history_host(c, h);
            report_ms = h->report_ms > report_ms ? h->report_ms : report_ms;
        }
    }
    const int64_t slots = (3 * report_ms * NS_PER_MS + CONTROLLER_SLOT_NS - 1) / CONTROLLER_SLOT_NS;
    t->moment.look_ns = (slots > 3 ? slots : 3) * CONTROLLER_SLOT_NS;
    return latency_init(&t->matrix, c, call->visible);
}

static void answer_then(struct api_call *call, int binary, int64_t at_ns)
{
    struct latency_task *t = api_task_new(call, sizeof(*t));
    if (t == NULL) {
        return;
    }
    *t = (struct latency_task){
        .task = {.job = {.run = run_latency, .done = end_latency}},
        .moment = {at_ns, controller_utc_ns(), call->c->config.keep_fine_ns, 0},
        .binary = binary,
        .rc = -ECANCELED};
    json_writer_init(&t->json, LATENCY_JSON_MAX);
    const int r = take_hosts(t, call);
    if (r < 0) {
        api_store_error(call, r);
        free_task(t);
        return;
    }
    api_task_begin(call, &t->task);
}

/* The version of the bytes; 0: JSON. -EINVAL. */
static int binary_of(const char *format)
{
    static const char *const formats[] = {"json", "binary", "binary2"};
    for (int i = 0; format != NULL && i < (int)ARRAY_COUNT(formats); i++) {
        if (strcmp(format, formats[i]) == 0) {
            return i;
        }
    }
    return format == NULL ? 0 : -EINVAL;
}

void api_get_latency(struct api_call *call)
{
    const struct measurement *measured = NULL;
    int64_t at_ns = 0, number = 0;
    const int binary = binary_of(http_query(call->request, "format"));
    if (binary < 0) {
        api_error(call, 400, "bad-argument", "format: expected json, binary or binary2");
        return;
    }
    if (!api_number(call, "at", 1, INT64_MAX / 2, &at_ns) ||
        !api_number(call, "measurement", 1, UINT32_MAX, &number)) {
        return;
    }
    if (number > 0) {
        measured = measurement_find(call->c, (uint32_t)number);
        if (measured == NULL || measured->kind != MEASUREMENT_MATRIX) {
            refuse_measurement(call);
            return;
        }
    }
    if (at_ns == 0 || measured != NULL) {
        answer_now(call, binary, measured);
    } else {
        answer_then(call, binary, at_ns);
    }
}
