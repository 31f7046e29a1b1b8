/* connection.c: the connections: time limits, and which connection is closed if there are too many.
 *
 * A new connection is never refused because there are too many. Instead, the connection is closed that has waited longest
 * without a complete request; unknown clients first. So a new client that sends a request at once gets an answer, however many
 * idle connections there are, also if all come from one address, as behind a proxy. A connection that has not read its answer
 * counts as waiting, too. Streams, and requests that wait for the handler, are never closed for others: their owners limit
 * them. */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/time.h"
#include "platform/http/server_internal.h"

enum {
    POLL_AT_ONCE = 64,
    TAKEN_A_SECOND = 64 << 10, /* of an answer: the slowest rate that a reader may have */
};

static void name_peer(struct MHD_Connection *mhd, char text[INET6_ADDRSTRLEN])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    snprintf(text, INET6_ADDRSTRLEN, "local");
    if (info == NULL || info->client_addr == NULL) {
        return;
    }
    if (info->client_addr->sa_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)info->client_addr;
        inet_ntop(AF_INET, &in->sin_addr, text, INET6_ADDRSTRLEN);
    } else if (info->client_addr->sa_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)info->client_addr;
        inet_ntop(AF_INET6, &in->sin6_addr, text, INET6_ADDRSTRLEN);
    }
}

static void cut(struct connection *c)
{
    c->cut = true;
    if (c->request != NULL) {
        http_connection_over(c->request);
    }
    (void)shutdown(c->fd, SHUT_RDWR);
}

/* The connection waits for the client: closing it loses nothing. */
static bool is_idle(const struct connection *c)
{
    return !c->cut && (c->request == NULL || c->request->stage == STAGE_ARRIVING);
}

/* The client has not read its answer yet. */
static bool takes(const struct connection *c)
{
    return !c->cut && c->request != NULL && c->request->stage == STAGE_ANSWERED;
}

/* When the connection began to wait for the client: for the next request, for the rest of a request, or for reading the
 * answer. */
static int64_t waits_since(const struct connection *c, enum stage stage)
{
    return stage == STAGE_ARRIVING ? c->since_ns : c->idle_ns;
}

/* Unknown clients first, then the one that has waited longest. */
static bool goes_before(const struct connection *a, const struct connection *b, enum stage stage)
{
    return b == NULL ||
           (a->known != b->known ? !a->known : waits_since(a, stage) < waits_since(b, stage));
}

static void make_room(struct http_server *s, const struct connection *newcomer)
{
    const struct http_server_config *config = &s->config;
    struct connection *of_address = NULL, *of_all = NULL;
    unsigned count = 0;
    if (config->address_max == 0 && s->counters.connections_now <= config->connection_max) {
        return;
    }
    for (struct connection *c = s->connections; c != NULL; c = c->next) {
        if (c == newcomer || (!is_idle(c) && !takes(c))) {
            continue;
        }
        of_all = goes_before(c, of_all, STAGE_ANSWERED) ? c : of_all;
        if (is_idle(c) && strcmp(c->peer, newcomer->peer) == 0) {
            count++;
            of_address = goes_before(c, of_address, STAGE_ANSWERED) ? c : of_address;
        }
    }
    struct connection *goes = s->counters.connections_now > config->connection_max      ? of_all
                              : config->address_max > 0 && count >= config->address_max ? of_address
                                                                                        : NULL;
    if (goes != NULL) {
        s->counters.refused_crowd++;
        cut(goes);
    }
}

static void begin(struct http_server *s, struct MHD_Connection *mhd, void **socket_context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct connection *c = calloc(1, sizeof(*c));
    *socket_context = c;
    if (c == NULL) {
        return;
    }
    c->fd = info != NULL ? info->connect_fd : -1;
    c->since_ns = c->idle_ns = http_now_ns();
    name_peer(mhd, c->peer);
    c->next = s->connections;
    c->link = &s->connections;
    if (s->connections != NULL) {
        s->connections->link = &c->next;
    }
    s->connections = c;
    s->counters.connections_now++;
    s->counters.connections++;
    make_room(s, c);
}

void http_connection_on_change(void *context, struct MHD_Connection *mhd, void **socket_context,
                               enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = context;
    struct connection *c = *socket_context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        begin(s, mhd, socket_context);
    } else if (c != NULL) {
        *c->link = c->next;
        if (c->next != NULL) {
            c->next->link = c->link;
        }
        s->counters.connections_now--;
        free(c);
        *socket_context = NULL;
    }
}

/* ---- bodies and answers ---- */

/* Closes other connections until the limit holds. Unknown clients first. */
static void cut_slowest(struct http_server *s, const struct connection *own, enum stage stage,
                        const size_t *bytes, size_t most)
{
    while (most > 0 && *bytes > most) {
        struct connection *goes = NULL;
        for (struct connection *c = s->connections; c != NULL; c = c->next) {
            if (c != own && !c->cut && c->request != NULL && c->request->stage == stage) {
                goes = goes_before(c, goes, stage) ? c : goes;
            }
        }
        if (goes == NULL) {
            return;
        }
        s->counters.refused_slow++;
        cut(goes);
    }
}

void http_connection_arrives(struct http_request *r, size_t size)
{
    struct http_server *s = r->server;
    r->arrived += size;
    s->arriving += size;
    cut_slowest(s, r->connection, STAGE_ARRIVING, &s->arriving, s->config.arriving_max);
}

void http_connection_answers(struct http_request *r, size_t size)
{
    struct http_server *s = r->server;
    r->answer_size = size;
    r->connection->idle_ns = http_now_ns();
    r->connection->take_ns = r->connection->idle_ns + s->config.idle_s * NS_PER_S +
                             (int64_t)(size / TAKEN_A_SECOND) * NS_PER_S;
    s->untaken += size;
    cut_slowest(s, r->connection, STAGE_ANSWERED, &s->untaken, s->config.untaken_max);
}

void http_connection_over(struct http_request *r)
{
    r->server->arriving -= r->arrived;
    r->server->untaken -= r->answer_size;
    r->arrived = r->answer_size = 0;
}

/* ---- once a second ---- */

/* Closes connections that exceed a time limit: for a whole request, for the head of the first request, or for reading the
 * answer. */
static void cut_slow(struct http_server *s)
{
    const int64_t now = http_now_ns(), head = (int64_t)s->config.head_ms * NS_PER_MS,
                  whole = (int64_t)s->config.arrive_ms * NS_PER_MS;
    for (struct connection *c = s->connections; c != NULL; c = c->next) {
        const int64_t limit = c->request == NULL && head > 0 ? head : whole;
        if ((c->since_ns != 0 && now - c->since_ns > limit) || (takes(c) && now > c->take_ns)) {
            c->since_ns = 0;
            s->counters.refused_slow++;
            cut(c);
        }
    }
}

/* libmicrohttpd does not watch connections that wait for the handler. It would notice a closed connection only with the next
 * written byte. */
static void find_gone(struct http_server *s)
{
    struct http_request *r = s->requests;
    while (r != NULL) {
        struct pollfd fds[POLL_AT_ONCE];
        struct http_request *of[POLL_AT_ONCE];
        nfds_t count = 0;
        for (; r != NULL && count < POLL_AT_ONCE; r = r->next) {
            if (r->suspended) {
                fds[count] = (struct pollfd){.fd = r->connection->fd, .events = POLLRDHUP};
                of[count++] = r;
            }
        }
        if (count > 0 && poll(fds, count, 0) > 0) {
            for (nfds_t i = 0; i < count; i++) {
                if (fds[i].revents != 0) {
                    http_request_cut(of[i]);
                }
            }
        }
    }
}

void http_connections_watch(struct http_server *s)
{
    cut_slow(s);
    find_gone(s);
}
