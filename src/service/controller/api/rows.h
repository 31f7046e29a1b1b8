/* rows.h: events or findings as the history thread finds them, shown by the loop (api_rows.c). */
#pragma once
#include "service/controller/api/api.h"

/* Events or findings as the history thread finds them, shown by the loop. First member of what a route keeps meanwhile;
 * the route fills in a filter, on_event or on_finding, more, finish. */
struct api_rows {
    struct api_task task;
    struct api_call call; /* for what follows: the first one is over */
    struct json_writer json;
    struct store_event_filter events;
    struct store_finding_filter findings;
    /* One row; > 0: no more are wanted, < 0: an error. NULL: findings are looked for. */
    int (*on_event)(struct api_rows *rows, const struct store_event *e);
    int (*on_finding)(struct api_rows *rows, const struct store_finding *f);
    bool (*more)(struct api_rows *rows);    /* after all rows: look again, by a changed filter? */
    void (*finish)(struct api_rows *rows);  /* answers */
    void (*on_free)(struct api_rows *rows); /* may be NULL */
    /* its own */
    char scope[TOKEN_SCOPE_SIZE], *kind, *word, *hosts;
    struct row **list;
    size_t count, capacity;
    int rc;
};
/* Zeroed but for its own; NULL: answered. */
MUST_CHECK void *api_rows_new(struct api_call *call, size_t size);
/* Owns rows from now on; the scope is the caller's. */
void api_rows_begin(struct api_call *call, struct api_rows *rows);
