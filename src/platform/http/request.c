/* request.c: one request, from its head to the last byte of its answer. */
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "platform/http/server_internal.h"

#define STRICT_FOR "max-age=604800" /* a week */
enum {
    PATH_MAX_SIZE = 1024,
    /* a stream without acknowledged bytes for this time: the client's host is gone */
    STREAM_SILENT_MS = 60000,
};

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

bool http_among(const char *words, const char *word)
{
    char marked[48];

    snprintf(marked, sizeof(marked), "|%s|", word); /* a word that was cut equals none of them */
    return words != NULL && strchr(word, '|') == NULL && strstr(words, marked) != NULL;
}

struct query_look {
    const struct http_request *request;
    const char *names, *wrong;
};

static enum MHD_Result look_at_parameter(void *context, enum MHD_ValueKind kind, const char *name,
                                         const char *value)
{
    struct query_look *look = context;

    (void)kind;
    if (!http_among(look->names, name) || value == NULL ||
        value != http_query(look->request, name)) {
        look->wrong = name;
    }
    return look->wrong == NULL ? MHD_YES : MHD_NO;
}

const char *http_query_wrong(const struct http_request *r, const char *names)
{
    struct query_look look = {.request = r, .names = names};
    MHD_get_connection_values(r->mhd, MHD_GET_ARGUMENT_KIND, look_at_parameter, &look);
    return look.wrong;
}

const char *http_peer(const struct http_request *r)
{
    return r->connection->peer;
}

int http_peer_user(const struct http_request *r, uid_t *ret_user)
{
    struct ucred peer;
    socklen_t size = sizeof(peer);
    if (r->server->config.address == NULL || r->server->config.address[0] != '/') {
        return -ENOTSUP;
    }
    if (getsockopt(r->connection->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0) {
        return -errno;
    }
    *ret_user = peer.uid;
    return 0;
}

const void *http_body(const struct http_request *r, size_t *ret_size)
{
    *ret_size = r->size;
    return r->body != NULL ? (const void *)r->body : "";
}

void http_set_known(struct http_request *r)
{
    r->connection->known = true;
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

/* Not for localhost: the header would apply to all servers on any port of it. */
static void add_strict(struct http_request *r)
{
    const struct http_server_config *config = &r->server->config;
    const char *host = http_header(r, "Host");
    if (config->web && config->key != NULL && host != NULL && strncmp(host, "localhost", 9) != 0) {
        (void)MHD_add_response_header(r->response, "Strict-Transport-Security", STRICT_FOR);
    }
}

static bool has_field(const struct http_header_field *fields, const char *name)
{
    for (; fields != NULL && fields->name != NULL; fields++) {
        if (strcmp(fields->name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void wake(struct http_request *r)
{
    if (r->suspended) {
        r->suspended = false;
        MHD_resume_connection(r->mhd);
        http_server_arm(r->server, 0);
    }
}

void http_answer(struct http_request *r, unsigned status, const char *type, const void *body,
                 size_t size, const struct http_header_field *fields)
{
    ASSERT(r->stage == STAGE_HANDED || r->stage == STAGE_WAITING || r->stage == STAGE_ARRIVING);
    uint8_t *packed = NULL;
    const bool packable =
        http_is_packable(r, status, type) && !has_field(fields, "Content-Encoding");
    const char *encoding = packable ? http_pack(r, body, size, &packed, &size) : NULL;
    r->response =
        encoding != NULL
            ? MHD_create_response_from_buffer(size, packed, MHD_RESPMEM_MUST_FREE)
            : MHD_create_response_from_buffer(size, (void *)(uintptr_t)body, MHD_RESPMEM_MUST_COPY);
    r->status = status;
    r->stage = STAGE_ANSWERED;
    http_connection_answers(r, size);
    if (r->response != NULL) {
        add_fields(r->response, type, fields);
        add_strict(r);
        if (packable) {
            (void)MHD_add_response_header(r->response, "Vary", "Accept-Encoding");
        }
        if (encoding != NULL) {
            (void)MHD_add_response_header(r->response, "Content-Encoding", encoding);
        }
        r->server->counters.bytes_out += size;
    }
    wake(r);
}

void http_answer_text(struct http_request *r, unsigned status, const char *text)
{
    char line[512];
    const int n = snprintf(line, sizeof(line), "%s\n", text);
    const struct http_header_field fields[] = {
        {status == 429 || status == 503 ? "Retry-After" : NULL, HTTP_RETRY_S}, {NULL, NULL}};
    http_answer(r, status, "text/plain; charset=utf-8", line,
                n < (int)sizeof(line) ? (size_t)n : sizeof(line) - 1, fields);
}

/* ---- streams ---- */

size_t http_stream_waiting(const struct http_request *r)
{
    return r->stream_size - r->stream_sent;
}

static ssize_t stream_read(void *context, uint64_t position, char *out, size_t max)
{
    struct http_request *r = context;
    const struct http_server_config *config = &r->server->config;
    if (http_stream_waiting(r) == 0 && !r->ending && !r->server->closing &&
        config->on_drained != NULL) {
        config->on_drained(config->context, r);
    }
    const size_t left = http_stream_waiting(r), n = left < max ? left : max;
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
    const unsigned silent_ms = STREAM_SILENT_MS;
    r->response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, stream_read, r, NULL);
    r->status = MHD_HTTP_OK;
    r->stage = STAGE_STREAM;
    (void)setsockopt(r->connection->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms,
                     sizeof(silent_ms));
    if (r->response != NULL) {
        add_fields(r->response, type, fields);
    }
    wake(r);
}

void http_request_cut(struct http_request *r)
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
    const size_t waiting = http_stream_waiting(r);
    if (waiting + size > r->server->config.stream_max) {
        http_request_cut(r);
        return false;
    }
    if (waiting > 0) {
        memmove(r->stream, r->stream + r->stream_sent, waiting);
    }
    char *larger = realloc(r->stream, waiting + size + 1);
    if (larger == NULL) {
        http_request_cut(r);
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

/* ---- as it arrives: libmicrohttpd's callbacks ---- */

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
    r->connection->since_ns = http_now_ns();
    r->connection->request = r;
    return r;
}

static const char *standard_words(unsigned status)
{
    return status == 400   ? "malformed: expected one way to read it, each line ending in CR LF"
           : status == 401 ? "a valid credential is needed"
           : status == 403 ? "not allowed"
           : status == 404 ? "no such thing"
           : status == 411 ? "expected a Content-Length"
           : status == 413 ? "too large"
           : status == 429 ? "too often"
                           : "not now";
}

/* Refuses a request before its body: too large by its Content-Length, or refused by the owner. */
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
        return MHD_YES; /* dropped */
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
    http_connection_arrives(r, n);
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

enum MHD_Result http_request_on_access(void *context, struct MHD_Connection *mhd, const char *url,
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
        r->refused = http_judge_framing(mhd, method, version);
        if (r->refused == 0) {
            judge_head(r);
        }
        if (r->refused != 0) {
            http_answer_text(r, r->refused, standard_words(r->refused));
            if (r->response != NULL) { /* the end of its body can't be found */
                (void)MHD_add_response_header(r->response, "Connection", "close");
            }
            return queue(r);
        }
        return MHD_YES;
    }
    if (*size > 0) {
        return take_body(r, data, size);
    }
    if (r->stage == STAGE_ARRIVING) {
        if (s->closing) { /* the handler's own state may be gone already */
            return MHD_NO;
        }
        r->stage = STAGE_HANDED;
        r->connection->since_ns = 0;
        http_connection_over(r); /* the body is complete */
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
        if (s->closing || r->ending) {
            return MHD_NO;
        }
        r->stage = STAGE_WAITING;
        r->suspended = true;
        MHD_suspend_connection(mhd);
        return MHD_YES;
    }
    return MHD_NO;
}

void http_request_on_completed(void *context, struct MHD_Connection *mhd, void **request,
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
    http_connection_over(r);
    r->connection->request = NULL;
    r->connection->idle_ns = http_now_ns();
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
