/* server_internal.h: what server.c (the loop), connection.c (who is connected) and request.c (one
 * request) share. */
#pragma once

#include <microhttpd.h>
#include <netinet/in.h>

#include "platform/http/server.h"

enum stage { STAGE_ARRIVING, STAGE_HANDED, STAGE_WAITING, STAGE_ANSWERED, STAGE_STREAM };

struct connection { /* of TCP; a list of all */
    struct connection *next, **link;
    int fd;
    int64_t since_ns;             /* it owes us a whole request since; 0: it doesn't */
    int64_t idle_ns;              /* it came, or its last request was answered, then */
    int64_t take_ns;              /* it must have taken its answer by then */
    struct http_request *request; /* under way; NULL */
    bool verified, good, known, cut;
    struct tls_certificate identity;
    char peer[INET6_ADDRSTRLEN];
};

struct http_request {
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct connection *connection;
    struct http_request *next, **link; /* of all */
    enum stage stage;
    bool suspended, ending;
    unsigned refused; /* status, before the handler saw it */
    char *method, *path;
    uint8_t *body;
    size_t size, capacity;
    struct MHD_Response *response;
    unsigned status;
    size_t answer_size; /* counted in untaken */
    size_t arrived;     /* of the body, counted in arriving */
    char *stream;       /* waits to be sent */
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
    size_t arriving;   /* bytes of bodies that have not come whole */
    size_t untaken;    /* bytes of answers that are not taken yet */
    uint64_t armed_us; /* the timer's moment; 0: it isn't set */
    uint16_t port;
    bool closing, running;
};

int64_t http_now_ns(void);

/* Opens a socket at http_server_config's address, and listens. */
MUST_CHECK int http_listen(const char *address);

/* The loop looks at libmicrohttpd again after so long, at the latest. */
void http_server_arm(struct http_server *s, uint64_t delay_us);

/* Of a head: 0, or the status that refuses it. As libmicrohttpd's handler has method and version. */
unsigned http_judge_framing(struct MHD_Connection *mhd, const char *method, const char *version);

/* Is an answer of that kind packed for those who take it? */
bool http_is_packable(const struct http_request *r, unsigned status, const char *type);
/* The body as the reader takes it, by malloc, and the encoding's name; NULL: as it is. */
const char *http_pack(const struct http_request *r, const void *body, size_t size,
                      uint8_t **ret_packed, size_t *ret_size);

/* Its other side has gone: it ends, on_gone follows. */
void http_request_cut(struct http_request *r);

/* So much more of its body has come: whoever sends another most slowly makes room. */
void http_connection_arrives(struct http_request *r, size_t size);
/* An answer of that size is to be sent: whoever takes others most slowly makes room. */
void http_connection_answers(struct http_request *r, size_t size);
/* Neither is under way any more. */
void http_connection_over(struct http_request *r);

/* Once a second: ends what is too slow, and what has gone. */
void http_connections_watch(struct http_server *s);

/* libmicrohttpd's callbacks; the context is the server. */
enum MHD_Result http_request_on_access(void *context, struct MHD_Connection *mhd, const char *url,
                                       const char *method, const char *version, const char *data,
                                       size_t *size, void **request);
void http_request_on_completed(void *context, struct MHD_Connection *mhd, void **request,
                               enum MHD_RequestTerminationCode code);
void http_connection_on_change(void *context, struct MHD_Connection *mhd, void **socket_context,
                               enum MHD_ConnectionNotificationCode code);
