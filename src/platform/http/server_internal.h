/* server_internal.h: shared by server.c (the loop), connection.c (connections) and request.c (one request). */
#pragma once

#include <microhttpd.h>
#include <netinet/in.h>

#include "platform/http/server.h"

enum stage { STAGE_ARRIVING, STAGE_HANDED, STAGE_WAITING, STAGE_ANSWERED, STAGE_STREAM };

struct connection { /* a TCP connection; all are in a list */
    struct connection *next, **link;
    int fd;
    /* the client must send a whole request since this time; 0: it need not */
    int64_t since_ns;
    int64_t idle_ns;              /* time of the connection's start, or of the last answer */
    int64_t take_ns;              /* the answer must be read by this time */
    struct http_request *request; /* the present request, or NULL */
    bool verified, good, known, cut;
    struct tls_certificate identity;
    char peer[INET6_ADDRSTRLEN];
};

struct http_request {
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct connection *connection;
    struct http_request *next, **link; /* list of all requests */
    enum stage stage;
    bool suspended, ending;
    unsigned refused; /* HTTP status; refused before the handler got it */
    char *method, *path;
    uint8_t *body;
    size_t size, capacity;
    struct MHD_Response *response;
    unsigned status;
    size_t answer_size; /* counted in `untaken` */
    size_t arrived;     /* bytes of the body, counted in `arriving` */
    char *stream;       /* bytes to be sent */
    size_t stream_size, stream_sent;
    void *context;
};

struct http_server {
    struct http_server_config config;
    struct MHD_Daemon *daemon;
    sd_event_source *io, *timer, *sweep;
    struct connection *connections;
    struct http_request *requests;
    struct http_counters counters;
    size_t arriving;   /* bytes of incomplete bodies */
    size_t untaken;    /* bytes of answers that are not read yet */
    uint64_t armed_us; /* the timer's time; 0: not set */
    uint16_t port;
    bool closing, running;
};

int64_t http_now_ns(void);

/* Opens a socket at the address of http_server_config, and listens. */
MUST_CHECK int http_listen(const char *address);

/* The loop calls libmicrohttpd again after this time at the latest. */
void http_server_arm(struct http_server *s, uint64_t delay_us);

/* Judges a head: 0, or the status that refuses it. method, version: the pointers from libmicrohttpd's handler. */
unsigned http_judge_framing(struct MHD_Connection *mhd, const char *method, const char *version);

/* True if such an answer is compressed for clients that accept it. */
bool http_is_packable(const struct http_request *r, unsigned status, const char *type);
/* The body in an encoding that the client accepts, from malloc, and the encoding's name. NULL: unchanged. */
const char *http_pack(const struct http_request *r, const void *body, size_t size,
                      uint8_t **ret_packed, size_t *ret_size);

/* The client is gone: the request ends, and on_gone follows. */
void http_request_cut(struct http_request *r);

/* More bytes of its body have arrived. If there are too many in all, the slowest other senders are closed. */
void http_connection_arrives(struct http_request *r, size_t size);
/* An answer of this size will be sent. If there are too many bytes in all, the slowest other readers are closed. */
void http_connection_answers(struct http_request *r, size_t size);
/* Body and answer are complete: their bytes no longer count. */
void http_connection_over(struct http_request *r);

/* Called once a second: closes connections that are too slow, or whose client is gone. */
void http_connections_watch(struct http_server *s);

/* libmicrohttpd's callbacks; the context is the server. */
enum MHD_Result http_request_on_access(void *context, struct MHD_Connection *mhd, const char *url,
                                       const char *method, const char *version, const char *data,
                                       size_t *size, void **request);
void http_request_on_completed(void *context, struct MHD_Connection *mhd, void **request,
                               enum MHD_RequestTerminationCode code);
void http_connection_on_change(void *context, struct MHD_Connection *mhd, void **socket_context,
                               enum MHD_ConnectionNotificationCode code);
