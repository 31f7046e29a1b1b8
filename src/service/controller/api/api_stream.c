/* api_stream.c: live events: who reads them, and how many may.
 *
 * A reader is a place of CONTROLLER_STREAM_MAX. One token takes STREAM_TOKEN_MAX at most, all
 * tenants half of the places, all viewers three quarters: operators and admins find room whatever
 * others do. A comment goes to each reader that has heard nothing for STREAM_QUIET_S: proxies keep
 * the connection, and a reader's host that is gone is noticed. */
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
};

struct replay {
    struct controller *c;
    struct http_request *request;
    const char *scope;
    struct json_writer json;
    int rc;
};

static int replay_event(void *context, const struct store_event *e)
{
    struct replay *p = context;
    const char *json = NULL;
    size_t size = 0;
    char head[96];
    if (!scope_sees_event(p->c, p->scope, e->kind, e->host, e->body)) {
        return 0;
    }
    json_writer_reset(&p->json);
    state_put_event(p->c, &p->json, e);
    if (json_writer_finish(&p->json, &json, &size) < 0) {
        return -ENOMEM;
    }
    const int n =
        snprintf(head, sizeof(head), "id: %lld\nevent: %s\ndata: ", (long long)e->id, e->kind);
    return http_stream_write(p->request, head, (size_t)n) &&
                   http_stream_write(p->request, json, size) &&
                   http_stream_write(p->request, "\n", 1)
               ? 0
               : 1;
}

/* A free place; NULL: none for this caller, answered. */
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
                  "all places for streams of this role are taken: close some, or poll "
                  "/api/v1/events");
        return NULL;
    }
    return free_place;
}

/* Server-sent events. Last-Event-ID (or ?after=): first what was missed since, at most 1,000. */
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
    call->answered = true;
    *reader = (struct event_reader){.request = call->request,
                                    .token = call->token,
                                    .viewer = call->role == ROLE_VIEWER,
                                    .written = controller_mono()};
    snprintf(reader->scope, sizeof(reader->scope), "%s", call->scope);
    http_stream_open(call->request, "text/event-stream", fields);
    (void)http_stream_write(call->request, "retry: 1000\n\n", 13);
    if (after >= 0) {
        struct replay replay = {.c = c, .request = call->request, .scope = call->scope};
        const struct store_event_filter f = {
            .after_id = after, .hosts = call->host_ids, .limit = API_PAGE_MAX};
        json_writer_init(&replay.json, 1 << 20);
        if (store_events(c->store, &f, replay_event, &replay) < 0) {
            http_stream_end(call->request);
        }
        json_writer_done(&replay.json);
    }
}

void api_stream_event(struct controller *c, const struct recent_event *event)
{
    for (size_t i = 0; event->text != NULL && i < CONTROLLER_STREAM_MAX; i++) {
        struct event_reader *reader = &c->streams[i];
        if (reader->request != NULL &&
            scope_sees_event(c, reader->scope, event->kind, event->host, event->body)) {
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
        } else if (mono_sub(now, reader->written).ns >= STREAM_QUIET_S * NS_PER_S) {
            (void)http_stream_write(reader->request, comment, sizeof(comment) - 1);
            reader->written = now;
        }
    }
}

void api_stream_gone(struct controller *c, const struct http_request *request)
{
    for (size_t i = 0; i < CONTROLLER_STREAM_MAX; i++) {
        if (c->streams[i].request == request) {
            c->streams[i] = (struct event_reader){0};
        }
    }
}
