/* api_rows.c: rows of history for the API. A thread searches them, the loop shows them.
 *
 * A filter that matches little makes the store read everything, at 2 million events a second. So the thread does that, and
 * copies the rows that it finds. Only the loop knows what a caller may see. It gets a limited number of rows at a time, so
 * that nobody waits for it. The thread sees only committed rows. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/api/api.h"
#include "service/controller/api/rows.h"
#include "service/controller/api/scope.h"

enum { ROWS_JSON_MAX = 64 << 20 };

struct row { /* a copy; its texts follow it */
    struct store_event event;
    struct store_finding finding;
};

static int keep_row(struct api_rows *rows, const struct row *from, const char *texts[3])
{
    size_t sizes[3], all = 0;
    for (size_t i = 0; i < 3; i++) {
        sizes[i] = texts[i] != NULL ? strlen(texts[i]) + 1 : 0;
        all += sizes[i];
    }
    struct row *row = rows->count < rows->capacity ? malloc(sizeof(*row) + all) : NULL;
    if (row == NULL) {
        return -ENOMEM;
    }
    *row = *from;
    char *at = (char *)(row + 1);
    for (size_t i = 0; i < 3; i++) {
        if (sizes[i] > 0) {
            memcpy(at, texts[i], sizes[i]);
            texts[i] = at;
        }
        at += sizes[i];
    }
    row->event.kind = row->finding.kind = texts[0];
    row->event.word = texts[1];
    row->event.body = row->finding.body = texts[2];
    rows->list[rows->count++] = row;
    return 0;
}

static int keep_event(void *context, const struct store_event *e)
{
    const char *texts[3] = {e->kind, e->word, e->body};
    return keep_row(context, &(struct row){.event = *e}, texts);
}

static int keep_finding(void *context, const struct store_finding *f)
{
    const char *texts[3] = {f->kind, NULL, f->body};
    return keep_row(context, &(struct row){.finding = *f}, texts);
}

static void forget_rows(struct api_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        free(rows->list[i]);
    }
    free(rows->list);
    rows->list = NULL;
    rows->count = 0;
}

static void run_rows(struct worker_job *job, struct store *store)
{
    struct api_rows *rows = (struct api_rows *)job;
    const bool events = rows->on_event != NULL;
    rows->capacity = (size_t)(events ? rows->events.limit : rows->findings.limit);
    rows->list = calloc(rows->capacity, sizeof(*rows->list));
    rows->rc = rows->list == NULL ? -ENOMEM
               : events           ? store_events(store, &rows->events, keep_event, rows)
                                  : store_findings(store, &rows->findings, keep_finding, rows);
}

static void end_rows(struct worker_job *job);

static void look_again(struct api_rows *rows)
{
    forget_rows(rows);
    rows->rc = -ECANCELED;
    rows->task.job = (struct worker_job){.run = run_rows, .done = end_rows};
    api_task_begin(&rows->call, &rows->task);
}

static void free_rows(struct api_rows *rows)
{
    forget_rows(rows);
    if (rows->on_free != NULL) {
        rows->on_free(rows);
    }
    json_writer_done(&rows->json);
    free(rows->kind);
    free(rows->word);
    free(rows->hosts);
    free(rows);
}

/* Returns true to query again. */
static bool show_rows(struct api_rows *rows)
{
    struct api_call *call = &rows->call;
    int r = rows->rc;
    r = r < 0 ? r : scope_open(call, rows->scope);
    for (size_t i = 0; r == 0 && i < rows->count; i++) {
        r = rows->on_event != NULL ? rows->on_event(rows, &rows->list[i]->event)
                                   : rows->on_finding(rows, &rows->list[i]->finding);
    }
    const bool again = r == 0 && rows->more(rows);
    scope_close(call);
    if (r < 0) {
        api_store_error(call, r);
    } else if (!again) {
        rows->finish(rows);
    }
    return again;
}

static void end_rows(struct worker_job *job)
{
    struct api_rows *rows = (struct api_rows *)job;
    if (api_task_back(&rows->task) && show_rows(rows)) {
        look_again(rows);
    } else {
        free_rows(rows);
    }
}

void *api_rows_new(struct api_call *call, size_t size)
{
    struct api_rows *rows = api_task_new(call, size);
    if (rows != NULL) {
        snprintf(rows->scope, sizeof(rows->scope), "%s", call->scope);
        rows->call = (struct api_call){.c = call->c,
                                       .request = call->request,
                                       .j = &rows->json,
                                       .token = call->token,
                                       .role = call->role,
                                       .scope = rows->scope};
        json_writer_init(&rows->json, ROWS_JSON_MAX);
    }
    return rows;
}

static const char *keep_text(const char *text, char **ret_copy, bool *good)
{
    *ret_copy = text != NULL ? strdup(text) : NULL;
    *good = *good && (text == NULL) == (*ret_copy == NULL);
    return *ret_copy;
}

void api_rows_begin(struct api_call *call, struct api_rows *rows)
{
    bool good = true;
    const bool events = rows->on_event != NULL;
    const char *kind =
        keep_text(events ? rows->events.kind : rows->findings.kind, &rows->kind, &good);
    rows->events.kind = rows->findings.kind = kind;
    rows->events.word = keep_text(rows->events.word, &rows->word, &good);
    rows->events.hosts = rows->findings.hosts = keep_text(call->host_ids, &rows->hosts, &good);
    if (!good) {
        api_error(call, 503, "memory", "out of memory");
        free_rows(rows);
        return;
    }
    look_again(rows);
    call->answered = true;
}
