/* live.h: the API's two ports, its live events, and links that sign in once. */
#pragma once
#include "base/time.h"
#include "service/controller/trust/trust.h"

#define CONTROLLER_STREAM_MAX 256 /* readers of live events */
#define CONTROLLER_RECENT     1024
#define CONTROLLER_CODES_MAX  64

struct controller;
struct http_request;

struct event_reader {             /* of live events */
    struct http_request *request; /* NULL: free */
    int64_t token;
    bool viewer;
    struct mono written; /* last */
    int64_t seen;        /* the last event that was considered for it */
    bool behind;         /* later events are read from the store, as fast as it reads */
    char scope[TOKEN_SCOPE_SIZE];
};

struct sign_in_code { /* of a link that signs in once */
    uint8_t hash[STORE_HASH_SIZE];
    int64_t id; /* the token's */
    char token[TOKEN_TEXT_SIZE];
    struct mono expires; /* 0: free */
};

struct recent_event {
    int64_t id, host;
    char kind[16];
    char *body; /* the detail, as JSON */
    char *text; /* for the event stream: "id: …\nevent: …\ndata: …\n\n" */
};

unsigned api_on_head(void *context, struct http_request *request);
void api_on_request(void *context, struct http_request *request);
void api_on_gone(void *context, struct http_request *request);
void api_stream_event(struct controller *c, const struct recent_event *event);
/* More events were committed than c->recent keeps: readers get them from the store. */
void api_stream_overflow(struct controller *c);
void api_stream_drained(void *context, struct http_request *request);
/* Once a second, and when a token is revoked: ends the streams of tokens that no longer exist, and sends a comment to quiet
 * streams. */
void api_watch_streams(struct controller *c);
