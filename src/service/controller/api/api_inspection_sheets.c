/* api_inspection_sheets.c: an audit's sheets as they were judged. `foliot audit test --fleet` judges them again. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/audit/sheet.h"
#include "service/audit/sheet_json.h"
#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/audit/past.h"
#include "service/controller/fleet/fleet.h"

enum { SHEETS_USUAL = 20, SHEETS_MOST = 100, SHEETS_JSON_MAX = 128 << 20 };

struct sheets_host {
    int64_t host, at_ns;
    char name[TLS_NAME_MAX + 1];
};
struct sheets_job {
    struct api_task task;
    struct sheets_host *hosts; /* of this page */
    uint32_t count;
    char next[24]; /* "": there is none */
    struct json_writer json;
    int rc;
};

static int put_one(struct sheets_job *k, struct store *store, const struct audit_accepted *accepted,
                   const struct sheets_host *h)
{
    struct sheet *s = NULL;
    const int r = audit_past_whole(store, h->host, h->name, h->at_ns, accepted, &s);
    if (r == 0 && s != NULL) { /* NULL: the sheet is no longer kept */
        sheet_write(&k->json, s);
    }
    sheet_free(s);
    return r;
}

static void run_sheets(struct worker_job *job, struct store *store)
{
    struct sheets_job *k = (struct sheets_job *)job;
    struct audit_accepted accepted;
    k->rc = audit_accepted_newest(store, &accepted);
    json_put_object(&k->json, NULL);
    json_put_array(&k->json, "items");
    for (uint32_t i = 0; i < k->count && k->rc == 0; i++) {
        k->rc = put_one(k, store, &accepted, &k->hosts[i]);
    }
    json_put_end(&k->json);
    json_put_string(&k->json, "next", k->next[0] != 0 ? k->next : NULL);
    json_put_end(&k->json);
}

static void end_sheets(struct worker_job *job)
{
    struct sheets_job *k = (struct sheets_job *)job;
    api_task_answer(&k->task, &k->json, k->rc);
    json_writer_done(&k->json);
    free(k->hosts);
    free(k);
}

void api_answer_audit_sheets(struct api_call *call, int64_t id)
{
    const struct audit_outcome *o = NULL;
    int64_t limit = SHEETS_USUAL, cursor = 0;
    if (!api_number(call, "limit", 1, SHEETS_MOST, &limit) ||
        !api_number(call, "cursor", 0, UINT32_MAX, &cursor)) {
        return;
    }
    if (call->visible != NULL) { /* a sheet shows a whole host and its neighbours */
        api_error(call, 403, "not-a-tenants", "sheets are not for a tenant's token");
        return;
    }
    const int r = audit_outcome_get(call->c, id, &o);
    struct sheets_job *k = r < 0 ? NULL : api_task_new(call, sizeof(*k));
    if (k == NULL) {
        if (r < 0) {
            api_store_error(call, r);
        }
        return;
    }
    k->task.job = (struct worker_job){.run = run_sheets, .done = end_sheets};
    k->rc = -ECANCELED;
    k->hosts = calloc((size_t)limit, sizeof(*k->hosts));
    if (k->hosts == NULL) {
        free(k);
        api_error(call, 503, "memory", "out of memory");
        return;
    }
    uint32_t i = (uint32_t)cursor;
    for (; i < o->count && k->count < limit; i++) {
        const struct fleet_host *h = fleet_host_by_id(call->c, o->found[i].host);
        if (h != NULL && o->found[i].at_ns != 0) {
            struct sheets_host *one = &k->hosts[k->count++];
            *one = (struct sheets_host){o->found[i].host, o->found[i].at_ns, ""};
            snprintf(one->name, sizeof(one->name), "%s", h->name);
        }
    }
    if (i < o->count) {
        snprintf(k->next, sizeof(k->next), "%u", i);
    }
    json_writer_init(&k->json, SHEETS_JSON_MAX);
    api_task_begin(call, &k->task);
}
