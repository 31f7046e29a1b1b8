/* server.c: libmicrohttpd under sd-event. */
#include "platform/http/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"

enum { SWEEP_MS = 1000, PATH_MAX_SIZE = 1024 };

enum stage { STAGE_ARRIVING, STAGE_HANDED, STAGE_WAITING, STAGE_ANSWERED, STAGE_STREAM };

struct connection { /* of TCP; a list of all */
    struct connection *next, **link;
    int fd;
    int64_t since_ns; /* it owes us a whole request since; 0: it doesn't */
    bool verified, good;
    struct tls_certificate identity;
    char peer[INET6_ADDRSTRLEN];
};

struct http_request {
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct connection *connection;
    struct http_request *next, **link; /* of all */
    enum stage stage;
    bool suspended, ending, gone_told;
    unsigned refused; /* status, before the handler saw it */
    char *method, *path;
    uint8_t *body;
    size_t size, capacity;
    struct MHD_Response *response;
    unsigned status;
    char *stream; /* waits to be sent */
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
    uint64_t armed_us; /* the timer's moment; 0: it isn't set */
    uint16_t port;
    bool closing, running;
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

/* ---- what a handler sees ---- */

const char *http_method(const struct http_request *r)
{
    return r->method;
}

const char *http_path(const struct http_request *r)
{
    return r->path;
}

const char *http_header(const struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->mhd, MHD_HEADER_KIND, name);
}

const char *http_query(const struct http_request *r, const char *name)
{
    return MHD_lookup_connection_value(r->mhd, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_peer(const struct http_request *r)
{
    return r->connection->peer;
}

const void *http_body(const struct http_request *r, size_t *ret_size)
{
    *ret_size = r->size;
    return r->body != NULL ? (const void *)r->body : "";
}

void http_set_context(struct http_request *r, void *context)
{
    r->context = context;
}

void *http_context(const struct http_request *r)
{
    return r->context;
}

const struct tls_certificate *http_identity(const struct http_request *r)
{
    struct connection *c = r->connection;
    if (!c->verified) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(r->mhd, MHD_CONNECTION_INFO_GNUTLS_SESSION);
        c->verified = true;
        c->good = r->server->config.trust != NULL && info != NULL && info->tls_session != NULL &&
                  tls_session_verify(info->tls_session, &c->identity) == 0;
    }
    return c->good ? &c->identity : NULL;
}

/* ---- answering ---- */

static void arm(struct http_server *s, uint64_t delay_us);

static void add_fields(struct MHD_Response *response, const char *type,
                       const struct http_header_field *fields)
{
    if (type != NULL) {
        (void)MHD_add_response_header(response, "Content-Type", type);
    }
    for (; fields != NULL && fields->name != NULL; fields++) {
        (void)MHD_add_response_header(response, fields->name, fields->value);
    }
}

static void wake(struct http_request *r)
{
    if (r->suspended) {
        r->suspended = false;
        MHD_resume_connection(r->mhd);
        arm(r->server, 0);
    }
}

void http_answer(struct http_request *r, unsigned status, const char *type, const void *body,
                 size_t size, const struct http_header_field *fields)
{
    ASSERT(r->stage == STAGE_HANDED || r->stage == STAGE_WAITING || r->stage == STAGE_ARRIVING);
    r->response =
        MHD_create_response_from_buffer(size, (void *)(uintptr_t)body, MHD_RESPMEM_MUST_COPY);
    r->status = status;
    r->stage = STAGE_ANSWERED;
    if (r->response != NULL) {
        add_fields(r->response, type, fields);
        r->server->counters.bytes_out += size;
    }
    wake(r);
}

void http_answer_text(struct http_request *r, unsigned status, const char *text)
{
    char line[512];
    const int n = snprintf(line, sizeof(line), "%s\n", text);
    http_answer(r, status, "text/plain; charset=utf-8", line,
                n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1, NULL);
}

/* ---- streams ---- */

static ssize_t stream_read(void *context, uint64_t position, char *out, size_t max)
{
    struct http_request *r = context;
    const size_t left = r->stream_size - r->stream_sent, n = left < max ? left : max;
    if (n > 0) {
        memcpy(out, r->stream + r->stream_sent, n);
        r->stream_sent += n;
        if (r->stream_sent == r->stream_size) {
            r->stream_sent = r->stream_size = 0;
        }
        r->server->counters.bytes_out += n;
        return (ssize_t)n;
    }
    if (r->ending || r->server->closing) {
        return MHD_CONTENT_READER_END_OF_STREAM;
    }
    r->suspended = true;
    MHD_suspend_connection(r->mhd);
    return 0;
}

void http_stream_open(struct http_request *r, const char *type,
                      const struct http_header_field *fields)
{
    r->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, stream_read, r, NULL);
    r->status = MHD_HTTP_OK;
    r->stage = STAGE_STREAM;
    if (r->response != NULL) {
        add_fields(r->response, type, fields);
    }
    wake(r);
}

static void cut(struct http_request *r)
{
    r->ending = true;
    (void)shutdown(r->connection->fd, SHUT_RDWR);
    wake(r);
}

bool http_stream_write(struct http_request *r, const void *bytes, size_t size)
{
    if (r->ending) {
        return false;
    }
    const size_t waiting = r->stream_size - r->stream_sent;
    if (waiting + size > r->server->config.stream_max) {
        cut(r);
        return false;
    }
    if (waiting > 0) {
        memmove(r->stream, r->stream + r->stream_sent, waiting);
    }
    char *larger = realloc(r->stream, waiting + size + 1);
    if (larger == NULL) {
        cut(r);
        return false;
    }
    memcpy(larger + waiting, bytes, size);
    r->stream = larger;
    r->stream_size = waiting + size;
    r->stream_sent = 0;
    wake(r);
    return true;
}

void http_stream_end(struct http_request *r)
{
    r->ending = true;
    wake(r);
}

/* ---- libmicrohttpd's callbacks ---- */

static struct http_request *new_request(struct http_server *s, struct MHD_Connection *mhd,
                                        const char *url, const char *method)
{
    struct http_request *r = calloc(1, sizeof(*r));
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    if (r == NULL || info == NULL || info->socket_context == NULL) {
        free(r);
        return NULL;
    }
    r->server = s;
    r->mhd = mhd;
    r->connection = info->socket_context;
    r->method = strdup(method);
    r->path = strdup(url);
    if (r->method == NULL || r->path == NULL) {
        free(r->method);
        free(r->path);
        free(r);
        return NULL;
    }
    r->next = s->requests;
    r->link = &s->requests;
    if (s->requests != NULL) {
        s->requests->link = &r->next;
    }
    s->requests = r;
    s->counters.requests++;
    r->connection->since_ns = now_ns();
    return r;
}

static const char *standard_words(unsigned status)
{
    return status == 400   ? "malformed"
           : status == 401 ? "who are you? a valid credential is needed"
           : status == 403 ? "not allowed"
           : status == 404 ? "no such thing"
           : status == 413 ? "too large"
           : status == 429 ? "too often"
                           : "not now";
}

/* Before the body: too large by its own word, or refused by the owner. */
static void judge_head(struct http_request *r)
{
    const struct http_server_config *c = &r->server->config;
    const char *length = http_header(r, "Content-Length");
    if (strlen(r->path) > PATH_MAX_SIZE) {
        r->refused = 414;
    } else if (length != NULL && strtoull(length, NULL, 10) > c->body_max) {
        r->refused = 413;
        r->server->counters.refused_body++;
    } else if (c->on_head != NULL) {
        r->refused = c->on_head(c->context, r);
    }
}

static enum MHD_Result take_body(struct http_request *r, const char *data, size_t *size)
{
    const size_t n = *size;
    *size = 0;
    r->server->counters.bytes_in += n;
    if (r->refused != 0) {
        return MHD_YES; /* swallowed */
    }
    if (r->size + n > r->server->config.body_max) {
        r->refused = 413;
        r->server->counters.refused_body++;
        return MHD_YES;
    }
    if (r->size + n > r->capacity) {
        const size_t capacity = (r->size + n) * 2;
        uint8_t *larger = realloc(r->body, capacity + 1);
        if (larger == NULL) {
            return MHD_NO;
        }
        r->body = larger;
        r->capacity = capacity;
    }
    memcpy(r->body + r->size, data, n);
    r->size += n;
    return MHD_YES;
}

static enum MHD_Result queue(struct http_request *r)
{
    if (r->response == NULL) {
        return MHD_NO;
    }
    const enum MHD_Result result = MHD_queue_response(r->mhd, r->status, r->response);
    MHD_destroy_response(r->response);
    r->response = NULL;
    return result;
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *mhd, const char *url,
                                 const char *method, const char *version, const char *data,
                                 size_t *size, void **request)
{
    struct http_server *s = context;
    struct http_request *r = *request;
    if (r == NULL) {
        *request = r = new_request(s, mhd, url, method);
        if (r == NULL) {
            return MHD_NO;
        }
        judge_head(r);
        if (r->refused != 0) {
            http_answer_text(r, r->refused, standard_words(r->refused));
            return queue(r); /* before the body: libmicrohttpd closes the connection after it */
        }
        return MHD_YES;
    }
    if (*size > 0) {
        return take_body(r, data, size);
    }
    if (r->stage == STAGE_ARRIVING) {
        r->stage = STAGE_HANDED;
        r->connection->since_ns = 0;
        if (r->refused != 0) {
            http_answer_text(r, r->refused, standard_words(r->refused));
        } else {
            s->config.on_request(s->config.context, r);
        }
    }
    if (r->response != NULL) {
        return queue(r);
    }
    if (r->stage == STAGE_HANDED || r->stage == STAGE_WAITING) {
        if (s->closing) {
            return MHD_NO;
        }
        r->stage = STAGE_WAITING;
        r->suspended = true;
        MHD_suspend_connection(mhd);
        return MHD_YES;
    }
    return MHD_NO;
}

static void on_completed(void *context, struct MHD_Connection *mhd, void **request,
                         enum MHD_RequestTerminationCode code)
{
    struct http_server *s = context;
    struct http_request *r = *request;
    if (r == NULL) {
        return;
    }
    if (s->config.on_gone != NULL && (r->stage == STAGE_STREAM || r->stage == STAGE_WAITING)) {
        s->config.on_gone(s->config.context, r);
    }
    *r->link = r->next;
    if (r->next != NULL) {
        r->next->link = r->link;
    }
    if (r->response != NULL) {
        MHD_destroy_response(r->response);
    }
    free(r->method);
    free(r->path);
    free(r->body);
    free(r->stream);
    free(r);
    *request = NULL;
}

static void name_peer(struct MHD_Connection *mhd, char text[INET6_ADDRSTRLEN])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    snprintf(text, INET6_ADDRSTRLEN, "?");
    if (info != NULL && info->client_addr->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)info->client_addr;
        inet_ntop(AF_INET, &in->sin_addr, text, INET6_ADDRSTRLEN);
    } else if (info != NULL && info->client_addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)info->client_addr;
        inet_ntop(AF_INET6, &in->sin6_addr, text, INET6_ADDRSTRLEN);
    }
}

static void on_connection(void *context, struct MHD_Connection *mhd, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = context;
    struct connection *c = *socket_context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
        c = calloc(1, sizeof(*c));
        *socket_context = c;
        if (c == NULL) {
            return;
        }
        c->fd = info != NULL ? info->connect_fd : -1;
        c->since_ns = now_ns();
        name_peer(mhd, c->peer);
        c->next = s->connections;
        c->link = &s->connections;
        if (s->connections != NULL) {
            s->connections->link = &c->next;
        }
        s->connections = c;
        s->counters.connections_now++;
        s->counters.connections++;
        return;
    }
    if (c != NULL) {
        *c->link = c->next;
        if (c->next != NULL) {
            c->next->link = c->link;
        }
        s->counters.connections_now--;
        free(c);
        *socket_context = NULL;
    }
}

/* ---- the loop ---- */

/* Only ever earlier: a timer that fires for nothing costs less than setting it with each packet. */
static void arm(struct http_server *s, uint64_t delay_us)
{
    uint64_t now = 0;
    if (s->timer == NULL || sd_event_now(s->config.loop, CLOCK_MONOTONIC, &now) < 0) {
        return;
    }
    if (s->armed_us == 0 || now + delay_us < s->armed_us) {
        s->armed_us = now + delay_us;
        sd_event_source_set_time(s->timer, s->armed_us);
        sd_event_source_set_enabled(s->timer, SD_EVENT_ONESHOT);
    }
}

/* libmicrohttpd may have more to do than its epoll tells: it says so by its timeout. */
static void run(struct http_server *s)
{
    MHD_UNSIGNED_LONG_LONG timeout_ms = 0;
    if (s->running) {
        return;
    }
    s->running = true;
    MHD_run(s->daemon);
    s->running = false;
    if (MHD_get_timeout(s->daemon, &timeout_ms) == MHD_YES) {
        arm(s, timeout_ms * 1000);
    }
}

static int on_io(sd_event_source *source, int fd, uint32_t events, void *context)
{
    run(context);
    return 0;
}

static int on_timer(sd_event_source *source, uint64_t at, void *context)
{
    struct http_server *s = context;
    s->armed_us = 0;
    run(s);
    return 0;
}

/* Cuts off whoever owes a whole request for too long. */
static int on_sweep(sd_event_source *source, uint64_t at, void *context)
{
    struct http_server *s = context;
    const int64_t limit = now_ns() - (int64_t)s->config.arrive_ms * NS_PER_MS;
    for (struct connection *c = s->connections; c != NULL; c = c->next) {
        if (c->since_ns != 0 && c->since_ns < limit) {
            c->since_ns = 0;
            s->counters.refused_slow++;
            (void)shutdown(c->fd, SHUT_RDWR);
        }
    }
    sd_event_source_set_time(source, at + SWEEP_MS * 1000);
    sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
    run(s);
    return 0;
}

static int open_socket(const char *address)
{
    char host[256];
    const char *colon = strrchr(address, ':');
    if (colon == NULL || (size_t)(colon - address) >= sizeof(host)) {
        return -EINVAL;
    }
    size_t length = (size_t)(colon - address);
    const bool bracket = length >= 2 && address[0] == '[' && address[length - 1] == ']';
    snprintf(host, sizeof(host), "%.*s", (int)(length - 2 * bracket), address + bracket);
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICHOST | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    if (getaddrinfo(host[0] != 0 && strcmp(host, "*") != 0 ? host : NULL, colon + 1, &hints,
                    &list) != 0) {
        return -EINVAL;
    }
    const int one = 1;
    int r = -EADDRNOTAVAIL;
    const int fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) < 0 ||
        bind(fd, list->ai_addr, list->ai_addrlen) < 0 || listen(fd, 1024) < 0) {
        r = -errno;
        if (fd >= 0) {
            close(fd);
        }
    } else {
        r = fd;
    }
    freeaddrinfo(list);
    return r;
}

static int take_socket(int fd)
{
    return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : fd;
}

static int start_daemon(struct http_server *s, int fd)
{
    const struct http_server_config *c = &s->config;
    struct MHD_OptionItem options[16];
    int n = 0;
    options[n++] = (struct MHD_OptionItem){MHD_OPTION_LISTEN_SOCKET, fd, NULL};
    options[n++] = (struct MHD_OptionItem){MHD_OPTION_CONNECTION_LIMIT, c->connection_max, NULL};
    options[n++] = (struct MHD_OptionItem){MHD_OPTION_CONNECTION_TIMEOUT, c->idle_s, NULL};
    options[n++] = (struct MHD_OptionItem){MHD_OPTION_CONNECTION_MEMORY_LIMIT, 24 << 10, NULL};
    if (c->address_max > 0) {
        options[n++] =
            (struct MHD_OptionItem){MHD_OPTION_PER_IP_CONNECTION_LIMIT, c->address_max, NULL};
    }
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;
    if (c->key != NULL) {
        flags |= MHD_USE_TLS;
        options[n++] =
            (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)(uintptr_t)c->key};
        options[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0,
                                               (void *)(uintptr_t)c->certificate};
        options[n++] = (struct MHD_OptionItem){
            MHD_OPTION_HTTPS_PRIORITIES, 0,
            (void *)(uintptr_t) "SECURE128:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"};
        if (c->trust != NULL) {
            options[n++] =
                (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_TRUST, 0, (void *)(uintptr_t)c->trust};
        }
    }
    options[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_access, s, MHD_OPTION_ARRAY, options,
                                 MHD_OPTION_NOTIFY_COMPLETED, on_completed, s,
                                 MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
    return s->daemon == NULL ? -EINVAL : 0;
}

static int add_sources(struct http_server *s)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    uint64_t now = 0;
    if (info == NULL || info->epoll_fd < 0) {
        return -EINVAL;
    }
    int r = sd_event_now(s->config.loop, CLOCK_MONOTONIC, &now);
    r = r < 0 ? r : sd_event_add_io(s->config.loop, &s->io, info->epoll_fd, EPOLLIN, on_io, s);
    r = r < 0 ? r
              : sd_event_add_time(s->config.loop, &s->timer, CLOCK_MONOTONIC, now, 1, on_timer, s);
    r = r < 0 ? r
              : sd_event_add_time(s->config.loop, &s->sweep, CLOCK_MONOTONIC, now + SWEEP_MS * 1000,
                                  1, on_sweep, s);
    return r < 0 ? r : 0;
}

int http_server_open(const struct http_server_config *config, struct http_server **ret_server)
{
    struct http_server *s = calloc(1, sizeof(*s));
    struct sockaddr_storage bound;
    socklen_t size = sizeof(bound);
    if (s == NULL) {
        return -ENOMEM;
    }
    s->config = *config;
    const int fd = config->socket > 0 ? take_socket(config->socket) : open_socket(config->address);
    if (fd < 0) {
        free(s);
        return fd;
    }
    if (getsockname(fd, (struct sockaddr *)&bound, &size) == 0) {
        s->port = ntohs(bound.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port
                                                    : ((struct sockaddr_in *)&bound)->sin_port);
    }
    int r = start_daemon(s, fd);
    if (r < 0) {
        close(fd);
        free(s);
        return r;
    }
    r = add_sources(s);
    if (r < 0) {
        http_server_close(s);
        return r;
    }
    *ret_server = s;
    return 0;
}

void http_server_close(struct http_server *s)
{
    if (s == NULL) {
        return;
    }
    s->closing = true;
    for (struct http_request *r = s->requests; r != NULL; r = r->next) {
        if (r->suspended) {
            r->suspended = false;
            MHD_resume_connection(r->mhd);
        }
    }
    MHD_run(s->daemon);
    MHD_stop_daemon(s->daemon);
    sd_event_source_disable_unref(s->io);
    sd_event_source_disable_unref(s->timer);
    sd_event_source_disable_unref(s->sweep);
    free(s);
}

int http_server_reopen(struct http_server **server, const char *certificate, const char *trust)
{
    struct http_server *s = *server;
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_LISTEN_FD);
    struct http_server_config config = s->config;
    const struct http_counters counters = s->counters;
    const int fd = info != NULL ? fcntl(info->listen_fd, F_DUPFD_CLOEXEC, 3) : -1;
    if (fd < 0) {
        return -EBADF;
    }
    config.socket = fd;
    config.certificate = certificate;
    config.trust = trust;
    http_server_close(s);
    *server = NULL;
    const int r = http_server_open(&config, server);
    if (r == 0) {
        (*server)->counters = counters;
        (*server)->counters.connections_now = 0;
    }
    return r;
}

uint16_t http_server_port(const struct http_server *s)
{
    return s->port;
}

void http_server_counters(const struct http_server *s, struct http_counters *ret)
{
    *ret = s->counters;
}
