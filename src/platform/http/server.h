/* server.h: an HTTP/1.1 server on the caller's sd-event loop, with or without TLS.
 *
 * The handler gets a whole request: method, path, query, body. It answers with http_answer, at once or later (a waiting
 * connection costs nothing). Or it opens a stream and writes text to it until one side ends it. With `on_head` a request can
 * be refused before its body is read. Heads that two readers could read in different ways are refused (framing.c), and so are
 * chunks.
 *
 * Limits:
 * - size of bodies and of heads;
 * - number of connections, and of idle ones per address (the one that has waited longest is closed);
 * - time for a request to arrive (a slow client is closed);
 * - idle time between requests;
 * - bytes that wait for a slow reader of a stream (then it is closed);
 * - time for an answer to be read (idle_s, and a second for each 64 KiB);
 * - bytes of incomplete bodies, and of answers that are not read (the slowest connection is closed).
 *
 * If the client of a stream or of a waiting request closes, the request ends within a second. A client certificate is verified
 * once per connection, by tls_session_verify.
 *
 * Lifetime: a request lives until it is answered (http_answer); a stream lives until on_gone. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/bug.h"
#include "platform/tls/tls.h"

#define HTTP_HEADER_MAX 8   /* per answer */
#define HTTP_RETRY_S    "5" /* sent with 429 and 503: try again after this time */

struct http_server;
struct http_request;

struct http_server_config {
    sd_event *loop;
    const char
        *address; /* "ADDRESS:PORT", "[::1]:PORT"; port 0: any; or the path of a Unix socket */
    int socket;   /* 0: open `address`; else this listening socket, owned by the server */
    const char *key, *certificate; /* PEM; NULL: plain HTTP */
    /* PEM: authorities of client certificates; NULL: no client certificates */
    const char *trust;
    size_t body_max;            /* as received */
    unsigned connection_max;    /* of all connections */
    unsigned address_max;       /* idle connections of one address; 0: no limit */
    unsigned head_ms;           /* for the first head to arrive; 0: arrive_ms */
    unsigned arrive_ms, idle_s; /* for a whole request to arrive; between two requests */
    /* for browsers, too: answers are compressed, and over TLS browsers are told to use only TLS */
    bool web;
    size_t stream_max;   /* bytes that may wait for a reader of a stream */
    size_t arriving_max; /* bytes of incomplete bodies, of all requests; 0: no limit */
    size_t untaken_max;  /* bytes of answers that are not read yet, of all requests; 0: no limit */
    /* NULL, or returns 0 to go on, or an HTTP status, which is answered with its standard text. */
    unsigned (*on_head)(void *context, struct http_request *request);
    void (*on_request)(void *context, struct http_request *request);
    /* of a stream: its pointer is no longer valid */
    void (*on_gone)(void *context, struct http_request *stream);
    /* NULL, or called when all bytes of a stream were sent. More may be written, also from this callback. */
    void (*on_drained)(void *context, struct http_request *stream);
    void *context;
};

/* -EADDRINUSE, -EINVAL (address, key or certificate), … */
MUST_CHECK int http_server_open(const struct http_server_config *config,
                                struct http_server **ret_server);
/* Accepts NULL. All requests end; the handler is not called any more. */
void http_server_close(struct http_server *server);
/* Opens the same server on the same socket with another certificate and other authorities. Connections end. After an error the
 * server is closed, and *server is NULL. */
MUST_CHECK int http_server_reopen(struct http_server **server, const char *certificate,
                                  const char *trust);
uint16_t http_server_port(const struct http_server *server);

const char *http_method(const struct http_request *request);
const char *http_path(const struct http_request *request);
const char *http_header(const struct http_request *request, const char *name); /* NULL: none */
const char *http_query(const struct http_request *request, const char *name);  /* NULL: none */
/* words: "|a|b|", or NULL for none. */
bool http_among(const char *words, const char *word);
/* The first parameter that is not in names ("|a|b|"), has no value, or stands twice. NULL: there is none. */
const char *http_query_wrong(const struct http_request *request, const char *names);
/* the client's address as text; "local" for a Unix socket */
const char *http_peer(const struct http_request *request);
/* The user of the process at the other end of a Unix socket. -ENOTSUP: it is no Unix socket. */
MUST_CHECK int http_peer_user(const struct http_request *request, uid_t *ret_user);
/* True if Accept-Encoding has this encoding. */
bool http_accepts(const struct http_request *request, const char *encoding);
/* The client is known: if there are too many connections, unknown clients are closed first. */
void http_set_known(struct http_request *request);
const void *http_body(const struct http_request *request, size_t *ret_size);
/* The verified client certificate. NULL: none, or an invalid one. */
const struct tls_certificate *http_identity(const struct http_request *request);

struct http_header_field {
    const char *name, *value;
};
/* Copies the body. `fields` may be NULL, else ends with a NULL name. The request is no longer valid after this. */
void http_answer(struct http_request *request, unsigned status, const char *type, const void *body,
                 size_t size, const struct http_header_field *fields);
/* One line of text. 429 and 503 have the time to try again. */
void http_answer_text(struct http_request *request, unsigned status, const char *text);

/* Answers 200 and keeps the connection for http_stream_write. */
void http_stream_open(struct http_request *request, const char *type,
                      const struct http_header_field *fields);
/* false: its reader is too slow; the stream is being closed. */
bool http_stream_write(struct http_request *stream, const void *bytes, size_t size);
/* Bytes that its reader has not read yet. */
size_t http_stream_waiting(const struct http_request *stream);
/* after the bytes written so far; on_gone follows */
void http_stream_end(struct http_request *stream);
/* The caller's own pointer, for a waiting request or a stream. */
void http_set_context(struct http_request *request, void *context);
void *http_context(const struct http_request *request);

struct http_counters {
    uint64_t requests, refused_body, refused_slow, refused_crowd, connections_now, connections;
    uint64_t bytes_in, bytes_out;
};
void http_server_counters(const struct http_server *server, struct http_counters *ret);
