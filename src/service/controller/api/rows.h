/* rows.h: events or findings: the history thread finds them, the loop shows them (api_rows.c). */
#pragma once
#include "service/controller/api/api.h"

/* The first member of a route's own struct. The route fills in a filter, on_event or on_finding, more and finish. */
struct api_rows {
    struct api_task task;
    struct api_call call; /* a new call for the answer: the first one has ended */
    struct json_writer json;
    struct store_event_filter events;
    struct store_finding_filter findings;
    /* Takes one row. > 0: no more rows are wanted; < 0: an error. NULL: findings are searched. */
    int (*on_event)(struct api_rows *rows, const struct store_event *e);
    int (*on_finding)(struct api_rows *rows, const struct store_finding *f);
    /* after all rows: true to query again with a changed filter */
    bool (*more)(struct api_rows *rows);
    void (*finish)(struct api_rows *rows);  /* answers */
    void (*on_free)(struct api_rows *rows); /* may be NULL */
    /* its own */
    char scope[TOKEN_SCOPE_SIZE], *kind, *word, *hosts;
    struct row **list;
    size_t count, capacity;
    int rc;
};
/* Zeroed, except for its own fields. NULL: the error was answered. */
MUST_CHECK void *api_rows_new(struct api_call *call, size_t size);
/* Takes over rows. The caller keeps the scope. */
void api_rows_begin(struct api_call *call, struct api_rows *rows);
