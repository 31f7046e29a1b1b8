/* api_stream.c: live events: their readers, and how many there may be.
 *
 * A reader takes one of CONTROLLER_STREAM_MAX places. One token takes at most STREAM_TOKEN_MAX of them, all tenants together
 * half, all viewers together three quarters. So operators and admins always find a place. A reader that got nothing for
 * STREAM_QUIET_S gets a comment. It keeps the connection open in proxies, and a reader that has gone is noticed.
 *
 * A reader is *behind* if it comes back, or if more events came at once than memory keeps. Then its events are read from the
 * store, a few at a time, each time that it has taken the last ones. So a slow reader loses no event. When it has read them
 * all it gets events as they come. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/api/api.h"
#include "service/controller/api/live.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/state.h"
#include "service/controller/trust/trust.h"

enum {
    STREAM_TOKEN_MAX = 32,
    STREAM_TENANTS_MAX = CONTROLLER_STREAM_MAX / 2,
    STREAM_VIEWERS_MAX = CONTROLLER_STREAM_MAX * 3 / 4,
    STREAM_QUIET_S = 15,
    REPLAY_ROWS = 200,       /* rows read at a time, some 1 ms of the loop … */
    REPLAY_BYTES = 64 << 10, /* … if the rows are small */
};

struct replay {
    struct controller *c;
    struct event_reader *reader;
    struct json_writer json;
    unsigned rows;
    bool full;
};

static int replay_event(void *context, const struct store_event *e)
{
    struct replay *p = context;
    const char *json = NULL;
    size_t size = 0;
    char head[96];
    struct http_request *request = p->reader->request;
    p->rows++;
    p->reader->seen = e->id;
    if (!scope_sees_event(p->c, p->reader->scope, e->kind, e->host, e->body)) {
        return 0;
    }
    json_writer_reset(&p->json);
    state_put_event(p->c, &p->json, e);
    if (json_writer_finish(&p->json, &json, &size) < 0) {
        return -ENOMEM;
    }
    const int n =
        snprintf(head, sizeof(head), "id: %lld\nevent: %s\ndata: ", (long long)e->id, e->kind);
    p->full = !http_stream_write(request, head, (size_t)n) ||
              !http_stream_write(request, json, size) || !http_stream_write(request, "\n", 1) ||
              http_stream_waiting(request) >= REPLAY_BYTES;
    return p->full;
}

/* Sends some of the events that a reader behind has missed. Only committed events are sent. */
static void replay_some(struct controller *c, struct event_reader *reader)
{
    const struct mono begin = controller_mono();
    struct api_call call = {.c = c};
    struct replay replay = {.c = c, .reader = reader};
    if (!api_limit_works(c, reader->token)) {
        return; /* tried again in a second */
    }
    int r = scope_open(&call, reader->scope);
    const struct store_event_filter f = {
        .after_id = reader->seen,
        .before_id = c->recent_count > c->recent_committed ? c->recent_from : 0,
        .hosts = call.host_ids,
        .limit = REPLAY_ROWS};
    json_writer_init(&replay.json, 1 << 20);
    r = r < 0 ? r : store_events(c->store, &f, replay_event, &replay);
    json_writer_done(&replay.json);
    scope_close(&call);
    reader->behind = replay.full || replay.rows == REPLAY_ROWS;
    reader->written = begin;
    api_limit_worked(c, reader->token, mono_sub(controller_mono(), begin).ns);
    if (r < 0) {
        http_stream_end(reader->request); /* the client connects again */
    }
}

/* The newest event on the disk; 0: none. */
static int newest(void *context, const struct store_event *e)
{
    *(int64_t *)context = e->id;
    return 1;
}

/* A free place. NULL: none for this caller; the error was answered. */
static struct event_reader *find_place(struct api_call *call)
{
    struct event_reader *free_place = NULL;
    unsigned own = 0, tenants = 0, viewers = 0;
    for (size_t i = 0; i < CONTROLLER_STREAM_MAX; i++) {
        struct event_reader *r = &call->c->streams[i];
        free_place = r->request == NULL && free_place == NULL ? r : free_place;
        own += r->request != NULL && r->token == call->token;
        tenants += r->request != NULL && r->scope[0] != 0;
        viewers += r->request != NULL && r->viewer;
    }
    if (own >= STREAM_TOKEN_MAX) {
        api_error(call, 429, "too-many-streams", "this token reads %u streams already", own);
        return NULL;
    }
    if (free_place == NULL || (call->scope[0] != 0 && tenants >= STREAM_TENANTS_MAX) ||
        (call->role == ROLE_VIEWER && viewers >= STREAM_VIEWERS_MAX)) {
        api_error(call, 503, "too-many-streams",
                  "no place is left for a stream of this role: close some, or poll "
                  "/api/v1/events");
        return NULL;
    }
    return free_place;
}

/* Server-sent events. With Last-Event-ID (or ?after=) the events missed since then are sent first. */
void api_get_event_stream(struct api_call *call)
{
    static const struct http_header_field fields[] = {{"Cache-Control", "no-store"},
                                                      {"X-Accel-Buffering", "no"},
                                                      {"X-Content-Type-Options", "nosniff"},
                                                      {NULL, NULL}};
    struct controller *c = call->c;
    const char *last = http_header(call->request, "Last-Event-ID");
    int64_t after = last != NULL ? strtoll(last, NULL, 10) : -1;
    if (!api_number(call, "after", 0, INT64_MAX, &after)) {
        return;
    }
    struct event_reader *reader = find_place(call);
    if (reader == NULL) {
        return;
    }
    int64_t seen = after;
    const struct store_event_filter last_one = {
        .before_id = c->recent_count > c->recent_committed ? c->recent_from : 0,
        .newest_first = true,
        .limit = 1};
    const int r = after >= 0 ? 0 : store_events(c->store, &last_one, newest, &seen);
    if (r < 0) {
        api_store_error(call, r);
        return;
    }
    call->answered = true;
    *reader = (struct event_reader){.request = call->request,
                                    .token = call->token,
                                    .viewer = call->role == ROLE_VIEWER,
                                    .seen = seen > 0 ? seen : 0,
                                    .behind = after >= 0,
                                    .written = controller_mono()};
    snprintf(reader->scope, sizeof(reader->scope), "%s", call->scope);
    http_stream_open(call->request, "text/event-stream", fields);
    (void)http_stream_write(call->request, "retry: 1000\n\n", 13);
}

void api_stream_drained(void *context, struct http_request *request)
{
    struct controller *c = context;
    for (size_t i = 0; i < CONTROLLER_STREAM_MAX; i++) {
        if (c->streams[i].request == request && c->streams[i].behind) {
            replay_some(c, &c->streams[i]);
        }
    }
}

/* Serves readers behind that have taken everything: there was no time left for them, or none of the events read was for them. */
static void replay_idle(struct controller *c)
{
    for (size_t i = 0; i < CONTROLLER_STREAM_MAX; i++) {
        struct event_reader *reader = &c->streams[i];
        if (reader->request != NULL && reader->behind &&
            http_stream_waiting(reader->request) == 0) {
            replay_some(c, reader);
        }
    }
}

void api_stream_overflow(struct controller *c)
{
    for (size_t i = 0; i < CONTROLLER_STREAM_MAX; i++) {
        c->streams[i].behind = c->streams[i].request != NULL;
    }
    replay_idle(c);
}

void api_stream_event(struct controller *c, const struct recent_event *event)
{
    if (event->text == NULL) { /* out of memory */
        api_stream_overflow(c);
    }
    for (size_t i = 0; event->text != NULL && i < CONTROLLER_STREAM_MAX; i++) {
        struct event_reader *reader = &c->streams[i];
        if (reader->request == NULL || reader->behind || event->id <= reader->seen) {
            continue;
        }
        reader->seen = event->id;
        if (scope_sees_event(c, reader->scope, event->kind, event->host, event->body)) {
            (void)http_stream_write(reader->request, event->text, strlen(event->text));
            reader->written = controller_mono();
        }
    }
}

void api_watch_streams(struct controller *c)
{
    static const char comment[] = ": nothing new\n\n";
    const struct mono now = controller_mono();
    for (size_t i = 0; i < CONTROLLER_STREAM_MAX; i++) {
        struct event_reader *reader = &c->streams[i];
        if (reader->request == NULL) {
            continue;
        }
        if (reader->token != 0 && token_by_id(c, reader->token) == NULL) {
            http_stream_end(reader->request);
            *reader = (struct event_reader){0};
        } else if (!reader->behind &&
                   mono_sub(now, reader->written).ns >= STREAM_QUIET_S * NS_PER_S) {
            (void)http_stream_write(reader->request, comment, sizeof(comment) - 1);
            reader->written = now;
        }
    }
    replay_idle(c);
}

void api_stream_gone(struct controller *c, const struct http_request *request)
{
    for (size_t i = 0; i < CONTROLLER_STREAM_MAX; i++) {
        if (c->streams[i].request == request) {
            c->streams[i] = (struct event_reader){0};
        }
    }
}
