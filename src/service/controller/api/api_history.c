/* api_history.c: the past: findings, events, series. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"
#include "core/finding/finding.h"
#include "core/fleet/delay_code.h"
#include "platform/store/chunk.h"
#include "service/controller/api/api.h"
#include "service/controller/api/live.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/rows.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/state.h"
#include "service/controller/history/series.h"

enum { TASKS_MAX = 256, SERIES_JSON_MAX = 4 << 20 };

/* A page has `limit` rows that the caller sees, or it is the last page. Rows that the caller may not see affect neither the
 * page nor its cursor. */
struct listing {
    struct api_rows rows;
    int64_t limit, shown, last_shown;
    int64_t scanned, last; /* rows of one query of the store */
    bool scoped;
};

static bool page_full(const struct listing *l)
{
    return l->shown == l->limit;
}

/* Notes one row; > 0: the page is full. */
static int note_row(struct listing *l, int64_t id, bool shown)
{
    l->scanned++;
    l->last = id;
    l->shown += shown;
    l->last_shown = shown ? id : l->last_shown;
    return page_full(l) ? 1 : 0;
}

/* The number of rows to read in one query. */
static int look(const struct listing *l)
{
    return l->scoped ? API_PAGE_MAX : (int)l->limit;
}

static bool goes_on(struct listing *l)
{
    const bool on = !page_full(l) && l->scanned == look(l);
    l->scanned = 0;
    return on;
}

static void finish_page(struct api_rows *rows)
{
    struct listing *l = (struct listing *)rows;
    char text[24];
    snprintf(text, sizeof(text), "%lld", (long long)l->last_shown);
    json_put_end(&rows->json);
    json_put_string(&rows->json, "next", page_full(l) ? text : NULL);
    json_put_end(&rows->json);
    api_answer(&rows->call);
}

static void begin_page(struct api_call *call, struct listing *l)
{
    l->scoped = call->visible != NULL;
    l->rows.finish = finish_page;
    l->rows.events.limit = l->rows.findings.limit = look(l);
    json_put_object(&l->rows.json, NULL);
    json_put_array(&l->rows.json, "items");
    api_rows_begin(call, &l->rows);
}

void api_store_error(struct api_call *call, int r)
{
    api_error(call, 503, "store", "the store can't be read: %s", strerror(-r));
}

/* ---- findings ---- */

static int put_finding(struct api_rows *rows, const struct store_finding *f)
{
    struct json_writer *j = &rows->json;
    const struct controller *c = rows->call.c;
    const struct fleet_host *h = fleet_host_by_id(c, f->host);
    const bool seen = scope_sees_finding(c, rows->scope, f->host, f->body);
    if (seen) {
        json_put_object(j, NULL);
        json_put_int(j, "id", f->id);
        json_put_string(j, "host", h != NULL ? h->name : NULL);
        json_put_bool(j, "open", f->closed_ns == 0);
        json_put_int(j, "since_utc_ns", f->opened_ns);
        json_put_int(j, "updated_utc_ns", f->updated_ns);
        json_put_int_if(j, "until_utc_ns", f->closed_ns != 0, f->closed_ns);
        json_put_string(j, "kind", f->kind);
        json_put_raw(j, "detail", f->body);
        json_put_end(j);
    }
    return note_row((struct listing *)rows, f->id, seen);
}

static bool more_findings(struct api_rows *rows)
{
    struct listing *l = (struct listing *)rows;
    rows->findings.before_id = l->last;
    return goes_on(l);
}

/* Refuses an unknown kind, because it would find nothing. */
static bool kind_good(struct api_call *call, const char *kind)
{
    char text[400];
    struct strbuf all = strbuf_init(text, sizeof(text));
    bool good = kind == NULL;
    for (uint32_t i = FINDING_NONE + 1; i < FINDING_KIND_COUNT && !good; i++) {
        good = strcmp(kind, finding_kind_word(i)) == 0;
        strbuf_add(&all, "%s%s", i > FINDING_NONE + 1 ? "|" : "", finding_kind_word(i));
    }
    if (!good) {
        api_error(call, 400, "bad-filter", "kind: expected one of %s", text);
    }
    return good;
}

void api_get_findings(struct api_call *call)
{
    const char *open = http_query(call->request, "open");
    struct store_finding_filter f = {.open = open == NULL                ? -1
                                             : strcmp(open, "true") == 0 ? 1
                                                                         : 0,
                                     .kind = http_query(call->request, "kind")};
    int64_t limit;
    struct fleet_host *host = NULL;
    if (!api_page(call, &limit, &f.before_id) || !api_host(call, "host", &host) ||
        !kind_good(call, f.kind) || !api_number(call, "since_utc_ns", 0, INT64_MAX, &f.since_ns) ||
        !api_number(call, "until_utc_ns", 0, INT64_MAX, &f.until_ns)) {
        return;
    }
    f.host = host != NULL ? host->id : 0;
    struct listing *l = api_rows_new(call, sizeof(*l));
    if (l == NULL) {
        return;
    }
    l->limit = limit;
    l->rows.findings = f;
    l->rows.on_finding = put_finding;
    l->rows.more = more_findings;
    begin_page(call, l);
}

/* ---- events ---- */

static int put_event(struct api_rows *rows, const struct store_event *e)
{
    struct controller *c = rows->call.c;
    const bool seen = scope_sees_event(c, rows->scope, e->kind, e->host, e->body);
    if (seen) {
        state_put_event(c, &rows->json, e);
    }
    return note_row((struct listing *)rows, e->id, seen);
}

static bool more_events(struct api_rows *rows)
{
    struct listing *l = (struct listing *)rows;
    *(rows->events.newest_first ? &rows->events.before_id : &rows->events.after_id) = l->last;
    return goes_on(l);
}

/* Newest first; cursor: events older than that one. With `after`: oldest first, events newer than that one. */
void api_get_events(struct api_call *call)
{
    struct store_event_filter f = {.kind = http_query(call->request, "kind"),
                                   .word = http_query(call->request, "word"),
                                   .newest_first = http_query(call->request, "after") == NULL};
    int64_t limit, cursor;
    struct fleet_host *host = NULL;
    if (!api_page(call, &limit, &cursor) || !api_host(call, "host", &host) ||
        !api_number(call, "after", 0, INT64_MAX, &f.after_id) ||
        !api_number(call, "since_utc_ns", 0, INT64_MAX, &f.since_ns) ||
        !api_number(call, "until_utc_ns", 0, INT64_MAX, &f.until_ns)) {
        return;
    }
    if (f.newest_first) {
        f.before_id = cursor;
    } else {
        f.after_id = cursor > f.after_id ? cursor : f.after_id;
    }
    f.host = host != NULL ? host->id : 0;
    struct listing *l = api_rows_new(call, sizeof(*l));
    if (l == NULL) {
        return;
    }
    l->limit = limit;
    l->rows.events = f;
    l->rows.on_event = put_event;
    l->rows.more = more_events;
    begin_page(call, l);
}

/* ---- work of the history thread ---- */

void *api_task_new(struct api_call *call, size_t size)
{
    if (!api_limit_task(call)) {
        return NULL;
    }
    const bool room = worker_waiting(call->c->history) < TASKS_MAX;
    void *task = room ? calloc(1, size) : NULL;
    if (task == NULL) {
        api_error(call, 503, room ? "memory" : "too-busy",
                  room ? "out of memory" : "too much of history is asked for at once");
    }
    return task;
}

/* The loop's work on the answer counts as the token's time, too. */
static void end_task(struct worker_job *job)
{
    const struct api_task *task = (struct api_task *)job;
    struct controller *c = task->c;
    const int64_t token = task->token;
    const struct mono begin = controller_mono();
    task->done(job); /* the task is freed then */
    api_limit_worked(c, token, mono_sub(controller_mono(), begin).ns);
}

void api_task_begin(struct api_call *call, struct api_task *task)
{
    task->done = task->job.done;
    task->job.done = end_task;
    task->c = call->c;
    task->request = call->request;
    task->token = call->token;
    api_limit_task_begins(call->c, call->token);
    http_set_context(call->request, task);
    call->answered = true;
    worker_add(call->c->history, &task->job, false);
}

void api_on_gone(void *context, struct http_request *request)
{
    struct api_task *task = http_context(request);
    api_stream_gone(context, request);
    if (task != NULL) {
        task->request = NULL;
    }
}

bool api_task_back(struct api_task *task)
{
    api_limit_task_ends(task->c, task->token, task->job.took_ns);
    if (task->request == NULL) {
        return false;
    }
    http_set_context(task->request, NULL);
    return true;
}

void api_task_answer(struct api_task *task, struct json_writer *j, int r)
{
    struct api_call call = {.c = task->c, .request = task->request, .j = j};
    if (!api_task_back(task)) {
        return;
    }
    if (r == 0) {
        api_answer(&call);
    } else {
        json_writer_reset(j);
        api_store_error(&call, r);
    }
}

/* ---- series ---- */

static const struct metric {
    const char *name, *of; /* "path", "host", "nic" */
    uint32_t metric;
    bool coded;
} metrics[] = {
    {"owd_ns_p50", "path", METRIC_OWD_P50, true},
    {"owd_ns_p99", "path", METRIC_OWD_P99, true},
    {"loss_ppm", "path", METRIC_LOSS_PPM, false},
    {"path_state", "path", METRIC_PATH_STATE, false},
    {"clock_hard_ns", "host", METRIC_CLOCK_HARD_NS, false},
    {"clock_statistical_ns", "host", METRIC_CLOCK_STATISTICAL_NS, false},
    {"clock_status", "host", METRIC_CLOCK_STATUS, false},
    {"agent_cpu_ppm", "host", METRIC_AGENT_CPU_PPM, false},
    {"agent_memory_bytes", "host", METRIC_AGENT_MEMORY, false},
    {"agent_reports_lost_count", "host", METRIC_AGENT_REPORTS_LOST, false},
    {"agent_late_ticks_count", "host", METRIC_AGENT_LATE_TICKS, false},
    {"agent_bad_packets_count", "host", METRIC_AGENT_BAD_PACKETS, false},
    {"agent_stamps_missing_ppm", "host", METRIC_AGENT_STAMPS_MISSING, false},
    {"rx_bps", "nic", METRIC_PORT_RX_BPS, false},
    {"tx_bps", "nic", METRIC_PORT_TX_BPS, false},
    {"port_state", "nic", METRIC_PORT_STATE, false},
    {"carrier_down_count", "nic", METRIC_PORT_DOWNS, false},
    {"speed_mbps", "nic", METRIC_PORT_SPEED, false},
    {"rx_errors_count", "nic", METRIC_PORT_RX_ERRORS, false},
    {"tx_errors_count", "nic", METRIC_PORT_TX_ERRORS, false},
    {"rx_drops_count", "nic", METRIC_PORT_RX_DROPS, false},
    {"tx_drops_count", "nic", METRIC_PORT_TX_DROPS, false},
};

static const struct metric *find_metric(struct api_call *call)
{
    const char *name = http_query(call->request, "metric");
    for (size_t i = 0; name != NULL && i < ARRAY_COUNT(metrics); i++) {
        if (strcmp(metrics[i].name, name) == 0) {
            return &metrics[i];
        }
    }
    api_error(call, 400, "bad-argument", "metric: expected one of docs/openapi.yaml's");
    return NULL;
}

/* The subject of the series: fills the key. */
static bool find_subject(struct api_call *call, const struct metric *m, struct series_query *q,
                         const struct fleet_host **ret_host)
{
    struct fleet_host *host = NULL;
    int64_t from = -1, to = -1, port = -1, nic = -1;
    if (!api_number(call, "from", 0, FLEET_NIC_MAX, &from) ||
        !api_number(call, "to", 0, FLEET_NIC_MAX, &to) ||
        !api_number(call, "port", 0, UINT16_MAX, &port) ||
        !api_number(call, "nic", 0, FLEET_NIC_MAX, &nic) || !api_host(call, "host", &host)) {
        return false;
    }
    q->key = (struct chunk_key){.metric = m->metric, .local = CHUNK_HOST};
    if (strcmp(m->of, "host") == 0) {
        if (host == NULL) {
            api_error(call, 400, "bad-argument", "host: which?");
        }
        *ret_host = host;
        return host != NULL;
    }
    const bool path = strcmp(m->of, "path") == 0;
    if (path ? from < 0 || to < 0 || port < 0 : nic < 0) {
        api_error(call, 400, "bad-argument",
                  path ? "from, to, port: expected all three" : "nic: expected a NIC");
        return false;
    }
    const struct fleet_nic *n = fleet_find_nic(call->c, (uint32_t)(path ? to : nic));
    if (n == NULL || !api_sees(call, n->host) || (path && !api_sees_nic(call, (uint32_t)from))) {
        api_error(call, 404, "no-such-nic", "no such NIC");
        return false;
    }
    *ret_host = n->host;
    q->key.local = n->id;
    q->key.peer = path ? (uint32_t)from : 0;
    q->key.port = path ? (uint32_t)port : 0;
    return true;
}

struct series_job {
    struct api_task task;
    const struct metric *metric;
    char host[TLS_NAME_MAX + 1];
    struct series_query query;
    struct json_writer json;
    int rc;
};

static void put_series(struct series_job *s, const struct series_result *result)
{
    struct json_writer *j = &s->json;
    const bool coded = s->metric->coded;
    json_put_object(j, NULL);
    json_put_string(j, "metric", s->metric->name);
    json_put_string(j, "host", s->host);
    json_put_int(j, "from_utc_ns", result->from_ns);
    json_put_int(j, "step_ns", result->step_ns);
    json_put_array(j, "values");
    for (size_t i = 0; i < result->count; i++) {
        const int64_t v = result->values[i];
        json_put_int_if(j, NULL, v != CHUNK_NONE && !(coded && v == DELAY_CODE_NONE),
                        coded && v != CHUNK_NONE ? delay_decode((int32_t)v) : v);
    }
    json_put_end(j);
    json_put_end(j);
}

static void run_series(struct worker_job *job, struct store *store)
{
    struct series_job *s = (struct series_job *)job;
    struct series_result result = {0};
    s->rc = series_read(store, &s->query, &result);
    if (s->rc == 0) {
        put_series(s, &result);
        free(result.values);
    }
}

static void end_series(struct worker_job *job)
{
    struct series_job *s = (struct series_job *)job;
    api_task_answer(&s->task, &s->json, s->rc);
    json_writer_done(&s->json);
    free(s);
}

/* A thread reads and writes it, because a day of one path has hundreds of chunks. */
static void begin_series(struct api_call *call, const struct metric *m, const char *host,
                         const struct series_query *q)
{
    struct series_job *s = api_task_new(call, sizeof(*s));
    if (s == NULL) {
        return;
    }
    *s = (struct series_job){.task = {.job = {.run = run_series, .done = end_series}},
                             .metric = m,
                             .query = *q,
                             .rc = -ECANCELED};
    snprintf(s->host, sizeof(s->host), "%s", host);
    json_writer_init(&s->json, SERIES_JSON_MAX);
    api_task_begin(call, &s->task);
}

void api_get_series(struct api_call *call)
{
    const int64_t now = controller_utc_ns(), slot = CONTROLLER_SLOT_NS;
    struct series_query q = {.from_ns = now - 3600 * NS_PER_S,
                             .to_ns = now,
                             .now_ns = now,
                             .keep_fine_ns = call->c->config.keep_fine_ns};
    const struct fleet_host *host = NULL;
    int64_t step_s = 0;
    const struct metric *m = find_metric(call);
    if (m == NULL || !api_number(call, "since_utc_ns", 0, INT64_MAX / 2, &q.from_ns) ||
        !api_number(call, "until_utc_ns", 0, INT64_MAX / 2, &q.to_ns) ||
        !api_number(call, "step_s", 10, 86400, &step_s) || !find_subject(call, m, &q, &host)) {
        return;
    }
    q.step_ns = step_s * NS_PER_S;
    if (q.step_ns == 0) { /* at most some thousand values */
        q.step_ns = (q.to_ns - q.from_ns) / 4000 / slot * slot;
        q.step_ns = q.step_ns < slot ? slot : q.step_ns;
    }
    if (q.to_ns <= q.from_ns || (q.to_ns - q.from_ns) / q.step_ns > 20000) {
        api_error(call, 400, "bad-argument", "expected a range of 1 to 20000 steps");
        return;
    }
    q.host = history_host(call->c, host);
    begin_series(call, m, host->name, &q);
}
