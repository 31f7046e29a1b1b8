/* server.h: an HTTP/1.1 server on the caller's sd-event loop, with or without TLS.
 *
 * A request is handed over whole: method, path, query, body. The handler answers with http_answer,
 * at once or later (the connection waits, at no cost); or it opens a stream, to which text is
 * written until either side ends it. With `on_head` a request can be refused before its body is
 * taken. A head that two readers could read in two ways is refused (framing.c), and so are chunks.
 *
 * Ceilings: bodies, header size, connections in all and idle ones per address (the one that has
 * waited longest makes room), the time that a request may take to arrive (a slow client is cut
 * off), idle time between requests, bytes that wait in a stream for a slow reader (then it is cut
 * off), the time that an answer may take to be read (idle_s, and a second for each 64 KiB), bytes of
 * bodies that have not come whole and of answers that nobody has read (the slowest one is cut off).
 * A stream or waiting request whose other side has closed ends within a second. Whoever shows
 * a client certificate is verified once per connection, by us (tls_session_verify).
 *
 * Lifetime: a request lives until it is answered (http_answer) or, for a stream, until on_gone. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

#include "base/bug.h"
#include "platform/tls/tls.h"

#define HTTP_HEADER_MAX 8   /* of an answer */
#define HTTP_RETRY_S    "5" /* come again then: with 429 and 503 */

struct http_server;
struct http_request;

struct http_server_config {
    sd_event *loop;
    const char
        *address; /* "ADDRESS:PORT", "[::1]:PORT"; port 0: any; or the path of a Unix socket */
    int socket;   /* 0: opened by `address`; else that listening socket, ours from now on */
    const char *key, *certificate; /* PEM; NULL: plain HTTP */
    const char *trust;          /* PEM: authorities of client certificates; NULL: not asked for */
    size_t body_max;            /* as sent */
    unsigned connection_max;    /* in all */
    unsigned address_max;       /* idle ones of one address; 0: no limit */
    unsigned head_ms;           /* for the first head to come; 0: arrive_ms */
    unsigned arrive_ms, idle_s; /* for a whole request to come; between two */
    bool web; /* for browsers, too: answers are packed, over TLS they are told to stay with it */
    size_t stream_max;   /* bytes that may wait for a stream's reader */
    size_t arriving_max; /* bytes of bodies that have not come whole, in all; 0: no limit */
    size_t untaken_max;  /* bytes of answers that are not read yet, in all; 0: no limit */
    /* NULL, or: 0 go on; else an HTTP status, which is answered with its standard words. */
    unsigned (*on_head)(void *context, struct http_request *request);
    void (*on_request)(void *context, struct http_request *request);
    void (*on_gone)(void *context, struct http_request *stream); /* of a stream: forget it */
    /* NULL, or: all that was written to a stream is on its way; more may be written, from within this, too. */
    void (*on_drained)(void *context, struct http_request *stream);
    void *context;
};

/* -EADDRINUSE, -EINVAL (address, key or certificate), … */
MUST_CHECK int http_server_open(const struct http_server_config *config,
                                struct http_server **ret_server);
/* NULL is fine. All requests end; the handler gets no more. */
void http_server_close(struct http_server *server);
/* The same server on the same socket with another certificate and other authorities; connections end. After an error
 * it is closed, and *server is NULL. */
MUST_CHECK int http_server_reopen(struct http_server **server, const char *certificate,
                                  const char *trust);
uint16_t http_server_port(const struct http_server *server);

const char *http_method(const struct http_request *request);
const char *http_path(const struct http_request *request);
const char *http_header(const struct http_request *request, const char *name); /* NULL: none */
const char *http_query(const struct http_request *request, const char *name);  /* NULL: none */
/* words: "|a|b|"; NULL: there are none. */
bool http_among(const char *words, const char *word);
/* The first parameter that isn't among names ("|a|b|"), has no value or is there twice. NULL: there is none. */
const char *http_query_wrong(const struct http_request *request, const char *names);
const char *http_peer(const struct http_request *request); /* its address, as text; "local" */
/* Of a Unix socket: the user whose process is at the other end. -ENOTSUP: it isn't one. */
MUST_CHECK int http_peer_user(const struct http_request *request, uid_t *ret_user);
/* By Accept-Encoding. */
bool http_accepts(const struct http_request *request, const char *encoding);
/* Whoever it is, is known: goes after strangers when there are too many connections. */
void http_set_known(struct http_request *request);
const void *http_body(const struct http_request *request, size_t *ret_size);
/* The verified client certificate; NULL: none, or a bad one. */
const struct tls_certificate *http_identity(const struct http_request *request);

struct http_header_field {
    const char *name, *value;
};
/* Copies the body. `fields` may be NULL, else ends with a NULL name. The request is gone then. */
void http_answer(struct http_request *request, unsigned status, const char *type, const void *body,
                 size_t size, const struct http_header_field *fields);
/* One line of text. 429 and 503 tell when to come again. */
void http_answer_text(struct http_request *request, unsigned status, const char *text);

/* Answers 200 and keeps the connection for http_stream_write. */
void http_stream_open(struct http_request *request, const char *type,
                      const struct http_header_field *fields);
/* false: its reader is too slow; it is being cut off. */
bool http_stream_write(struct http_request *stream, const void *bytes, size_t size);
/* Bytes that its reader has not taken yet. */
size_t http_stream_waiting(const struct http_request *stream);
void http_stream_end(struct http_request *stream); /* after what was written; on_gone follows */
/* The caller's own pointer on a request that waits or a stream. */
void http_set_context(struct http_request *request, void *context);
void *http_context(const struct http_request *request);

struct http_counters {
    uint64_t requests, refused_body, refused_slow, refused_crowd, connections_now, connections;
    uint64_t bytes_in, bytes_out;
};
void http_server_counters(const struct http_server *server, struct http_counters *ret);
