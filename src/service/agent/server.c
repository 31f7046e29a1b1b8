/* server.c: questions on the Unix socket. Each question and each answer is one JSON object per line (docs/json.md). */
#include "service/agent/agent.h"

#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <syslog.h>
#include <unistd.h>

#include "service/agent/request.h"

enum {
    CLIENT_MAX = 64,
    REQUEST_SIZE_MAX = 4096,
    WAITING_SIZE_MAX = 1 << 20, /* for a watcher that doesn't read */
    ANSWER_SIZE_MAX = 64 << 20,
    REQUESTS_A_TURN = 4, /* then other work of the loop has its turn */
};
#define IDLE_NS_MAX (30 * NS_PER_S) /* for a client that doesn't watch */

struct client {
    struct agent_server *server;
    sd_event_source *source;
    int fd;
    uid_t user;
    bool allowed;    /* false: each request is answered with a refusal */
    int64_t used_ns; /* CLOCK_MONOTONIC: last time that it sent or read something */
    bool watches_findings, watches_links, closing;
    char request[REQUEST_SIZE_MAX + 1];
    size_t request_size;
    char *waiting; /* bytes to be sent */
    size_t waiting_size, waiting_sent;
    struct recording recording; /* sent after `waiting`; fd < 0: none */
    int64_t recording_sent;
};

struct agent_server {
    struct agent *agent;
    sd_event_source *source;
    int fd;
    char path[AGENT_PATH_SIZE + 16];
    gid_t group; /* its members may ask; looked up at the start and at a reload */
    bool group_found;
    struct client *clients[CLIENT_MAX];
    struct json_writer json;
};

static void drop(struct client *c)
{
    struct agent_server *s = c->server;
    for (size_t i = 0; i < CLIENT_MAX; i++) {
        if (s->clients[i] == c) {
            s->clients[i] = NULL;
        }
    }
    sd_event_source_disable_unref(c->source);
    if (c->recording.fd >= 0) {
        close(c->recording.fd);
    }
    close(c->fd);
    free(c->waiting);
    free(c);
}

/* The client has not read all of its last answer. Until then no new request is read. So a client can't make the agent keep
 * more than one answer (for watchers WAITING_SIZE_MAX), nor put bytes into the middle of a recording. */
static bool busy(const struct client *c)
{
    return c->waiting_size > 0 || c->recording.fd >= 0;
}

/* Sends as much as the socket takes. False: the client is gone. */
static bool push(struct client *c)
{
    while (c->recording_sent == 0 && c->waiting_sent < c->waiting_size) {
        const ssize_t n = send(c->fd, c->waiting + c->waiting_sent,
                               c->waiting_size - c->waiting_sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0) {
            if (errno == EAGAIN || errno == EINTR) {
                sd_event_source_set_io_events(c->source, EPOLLOUT);
                return true;
            }
            return false;
        }
        c->waiting_sent += (size_t)n;
        c->used_ns = c->server->agent->now.ns;
    }
    if (c->recording_sent == 0) {
        free(c->waiting);
        c->waiting = NULL;
        c->waiting_size = c->waiting_sent = 0;
    }
    while (c->recording.fd >= 0 && c->recording_sent < c->recording.size) {
        off_t offset = c->recording_sent;
        const ssize_t n =
            sendfile(c->fd, c->recording.fd, &offset, (size_t)(c->recording.size - offset));
        if (n <= 0) {
            sd_event_source_set_io_events(c->source, EPOLLOUT);
            return n < 0 && errno == EAGAIN;
        }
        c->recording_sent = offset;
        c->used_ns = c->server->agent->now.ns;
    }
    if (c->recording.fd >= 0) {
        close(c->recording.fd);
        c->recording.fd = -1;
        c->recording_sent = 0;
        if (c->waiting_size > 0) {
            return push(c); /* findings that came meanwhile */
        }
    }
    sd_event_source_set_io_events(c->source, EPOLLIN);
    return !c->closing;
}

/* False: the client is gone, or the caller should drop it. */
static bool answer_bytes(struct client *c, const char *text, size_t size, size_t limit)
{
    if (c->waiting_size - c->waiting_sent + size > limit) {
        return false;
    }
    char *larger = realloc(c->waiting, c->waiting_size + size);
    if (larger == NULL) {
        return false;
    }
    memcpy(larger + c->waiting_size, text, size);
    c->waiting = larger;
    c->waiting_size += size;
    return c->recording_sent > 0 || push(c); /* nothing is sent in the middle of a recording */
}

static bool answer_json(struct client *c, size_t limit)
{
    const char *text = NULL;
    size_t size = 0;
    return json_writer_finish(&c->server->json, &text, &size) == 0 &&
           answer_bytes(c, text, size, limit);
}

static bool answer_error(struct client *c, const char *code, const char *text)
{
    struct json_writer *j = &c->server->json;
    json_writer_reset(j);
    json_put_object(j, NULL);
    json_put_int(j, "version", 1);
    json_put_string(j, "kind", "error");
    json_put_string(j, "error", code);
    json_put_string(j, "message", text);
    json_put_end(j);
    return answer_json(c, ANSWER_SIZE_MAX);
}

static bool answer_record(struct client *c)
{
    struct agent *a = c->server->agent;
    struct json_writer *j = &c->server->json;
    if (c->recording.fd >= 0) {
        return answer_error(c, "busy", "the last recording is still on its way");
    }
    const int r = recorder_save(a->recorder, &c->recording);
    if (r < 0) {
        char text[160];
        c->recording.fd = -1;
        snprintf(text, sizeof(text), "nothing is recorded: %s", strerror(-r));
        return answer_error(c, "not-ready", text);
    }
    c->recording_sent = 0;
    json_writer_reset(j);
    agent_answer_head(a, j, "record");
    json_put_int(j, "size_bytes", c->recording.size);
    json_put_int(j, "oldest_mono_ns", c->recording.oldest.ns);
    json_put_int(j, "newest_mono_ns", c->recording.newest.ns);
    json_put_int(j, "events", c->recording.events);
    json_put_end(j);
    return answer_json(c, ANSWER_SIZE_MAX);
}

static bool watch_findings(struct client *c)
{
    struct agent *a = c->server->agent;
    bool ok = true;
    c->watches_findings = true;
    for (uint32_t i = 0; ok && i < node_finding_count(a->node); i++) {
        json_writer_reset(&c->server->json);
        agent_answer_finding(a, &c->server->json, NULL, node_finding_get(a->node, i));
        ok = answer_json(c, WAITING_SIZE_MAX);
    }
    return ok;
}

static bool watch_links(struct client *c)
{
    struct json_writer *j = &c->server->json;
    c->watches_links = true;
    json_writer_reset(j);
    return agent_answer(c->server->agent, j, "links") && answer_json(c, WAITING_SIZE_MAX);
}

static bool answer_get(struct client *c, const char *what)
{
    struct agent_refusal refusal;
    json_writer_reset(&c->server->json);
    if (agent_answer(c->server->agent, &c->server->json, what)) {
        return answer_json(c, ANSWER_SIZE_MAX);
    }
    agent_request_unknown(what, &refusal);
    return answer_error(c, refusal.code, refusal.text);
}

static bool refuse_user(struct client *c)
{
    char text[300];
    snprintf(text, sizeof(text),
             "expected root or a member of group %s, found user %u. As root: groupadd -f %s && "
             "usermod -aG %s USER && systemctl reload foliot-agent",
             c->server->agent->config->socket_group, (unsigned)c->user,
             c->server->agent->config->socket_group, c->server->agent->config->socket_group);
    return answer_error(c, "not-allowed", text);
}

static bool answer(struct client *c, const char *line, size_t size)
{
    struct agent_request request;
    struct agent_refusal refusal;
    if (!c->allowed) {
        return refuse_user(c);
    }
    if (!agent_request_parse(line, size, &request, &refusal)) {
        return answer_error(c, refusal.code, refusal.text);
    }
    switch (request.kind) {
    case AGENT_REQUEST_RECORD:
        return answer_record(c);
    case AGENT_REQUEST_WATCH_FINDINGS:
        return watch_findings(c);
    case AGENT_REQUEST_WATCH_LINKS:
        return watch_links(c);
    case AGENT_REQUEST_GET:
        break;
    }
    return answer_get(c, request.what);
}

/* Answers the complete lines that have arrived. False: drop the client. */
static bool take_lines(struct client *c)
{
    char *end = NULL;
    int answered = 0;
    while (!busy(c) && (end = memchr(c->request, '\n', c->request_size)) != NULL) {
        if (answered++ == REQUESTS_A_TURN) {
            /* the event comes again at once */
            sd_event_source_set_io_events(c->source, EPOLLIN | EPOLLOUT);
            return true;
        }
        const bool ok = answer(c, c->request, (size_t)(end - c->request));
        const size_t used = (size_t)(end + 1 - c->request);
        if (!ok) {
            return false;
        }
        memmove(c->request, c->request + used, c->request_size - used);
        c->request_size -= used;
    }
    if (!busy(c) && end == NULL && c->request_size == REQUEST_SIZE_MAX) {
        c->closing = true;
        answer_error(c, "too-long", "expected a request of at most 4096 bytes");
        return false;
    }
    return true;
}

static int on_client(sd_event_source *source, int fd, uint32_t events, void *context)
{
    struct client *c = context;
    if ((events & EPOLLOUT) != 0 && !push(c)) {
        drop(c);
        return 0;
    }
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !busy(c) &&
        memchr(c->request, '\n', c->request_size) ==
            NULL) { /* requests that arrived before the end are answered first */
        const ssize_t n = recv(fd, c->request + c->request_size, REQUEST_SIZE_MAX - c->request_size,
                               MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
            drop(c);
            return 0;
        }
        c->request_size += n > 0 ? (size_t)n : 0;
        c->used_ns = n > 0 ? c->server->agent->now.ns : c->used_ns;
    }
    if (!take_lines(c)) {
        drop(c);
    }
    return 0;
}

static bool watches(const struct client *c)
{
    return c->watches_findings || c->watches_links;
}

static int clients_of(const struct agent_server *s, uid_t user)
{
    int count = 0;
    for (size_t i = 0; i < CLIENT_MAX; i++) {
        count += s->clients[i] != NULL && s->clients[i]->user == user;
    }
    return count;
}

/* Which client is dropped if all places are taken: one of the user who has most clients; of these one that doesn't watch; of
 * these the one that was idle for longest. So no user can lock out another user. */
static bool leaves_before(const struct agent_server *s, const struct client *x,
                          const struct client *y)
{
    const int of_x = clients_of(s, x->user), of_y = clients_of(s, y->user);
    return of_x != of_y               ? of_x > of_y
           : watches(x) != watches(y) ? watches(y)
                                      : x->used_ns < y->used_ns;
}

static void make_room(struct agent_server *s)
{
    struct client *first = NULL;
    size_t count = 0;
    for (size_t i = 0; i < CLIENT_MAX; i++) {
        struct client *c = s->clients[i];
        if (c != NULL && !watches(c) && s->agent->now.ns - c->used_ns > IDLE_NS_MAX) {
            drop(c);
        }
    }
    for (size_t i = 0; i < CLIENT_MAX; i++) {
        struct client *c = s->clients[i];
        count += c != NULL;
        first = c != NULL && (first == NULL || leaves_before(s, c, first)) ? c : first;
    }
    if (count == CLIENT_MAX) {
        drop(first);
    }
}

/* True if the process is in the group. Checks the groups that it had when it connected. */
static bool in_group(int fd, gid_t own, gid_t wanted)
{
    enum { GROUP_MAX = 1024 };
    gid_t groups[GROUP_MAX];
    socklen_t size = sizeof(groups);
    if (own == wanted) {
        return true;
    }
    if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0) {
        return false;
    }
    for (size_t i = 0; i < size / sizeof(groups[0]); i++) {
        if (groups[i] == wanted) {
            return true;
        }
    }
    return false;
}

/* Answers contain all users' jobs and all hosts of the fleet, and a recording takes 64 MiB. So only a group may ask. But any
 * user may connect, and gets the reason of the refusal. */
static bool may_ask(const struct agent_server *s, int fd, const struct ucred *peer)
{
    return peer->uid == 0 || peer->uid == geteuid() ||
           strcmp(s->agent->config->socket_group, "*") == 0 ||
           (s->group_found && in_group(fd, peer->gid, s->group));
}

/* A directory service may take seconds to answer. So this is never called for a user's connection. */
void agent_server_group(struct agent *a)
{
    enum { TEXT_SIZE_MAX = 16 << 20 }; /* room for a group with all its members' names */
    struct agent_server *s = a->server;
    const char *name = a->config->socket_group;
    struct group group, *found = NULL;
    if (s == NULL) {
        return;
    }
    s->group_found = false;
    if (strcmp(name, "*") == 0) {
        return;
    }
    char *text = NULL;
    int r = ERANGE;
    for (size_t size = 8192; r == ERANGE && size <= TEXT_SIZE_MAX; size *= 2) {
        free(text);
        text = malloc(size);
        r = text == NULL ? ENOMEM : getgrnam_r(name, &group, text, size, &found);
    }
    if (r == 0 && found != NULL) {
        s->group = found->gr_gid;
        s->group_found = true;
    } else if (r != 0) {
        agent_say(LOG_WARNING, "group %s can't be looked up: %s: root alone may ask until a reload",
                  name, strerror(r));
    }
    free(text);
}

static int on_connect(sd_event_source *source, int fd, uint32_t events, void *context)
{
    struct agent_server *s = context;
    const int client_fd = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client_fd < 0) {
        return 0;
    }
    struct ucred peer = {.uid = (uid_t)-1, .gid = (gid_t)-1};
    socklen_t peer_size = sizeof(peer);
    (void)getsockopt(client_fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size);
    make_room(s);
    size_t i = 0;
    while (i < CLIENT_MAX && s->clients[i] != NULL) {
        i++;
    }
    struct client *c = i < CLIENT_MAX ? calloc(1, sizeof(*c)) : NULL;
    if (c == NULL) {
        close(client_fd);
        return 0;
    }
    c->server = s;
    c->fd = client_fd;
    c->user = peer.uid;
    c->allowed = may_ask(s, client_fd, &peer);
    c->used_ns = s->agent->now.ns;
    c->recording.fd = -1;
    if (sd_event_add_io(s->agent->loop, &c->source, client_fd, EPOLLIN, on_client, c) < 0) {
        close(client_fd);
        free(c);
        return 0;
    }
    s->clients[i] = c;
    return 0;
}

int agent_server_open(struct agent *a)
{
    static const char making[] = ".new";
    struct agent_server *s = calloc(1, sizeof(*s));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (s == NULL) {
        return -ENOMEM;
    }
    a->server = s;
    s->agent = a;
    json_writer_init(&s->json, ANSWER_SIZE_MAX);
    agent_server_group(a);
    snprintf(s->path, sizeof(s->path), "%s/agent.sock", a->config->runtime_dir);
    s->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (s->fd < 0) {
        return -errno;
    }
    if (strlen(s->path) + sizeof(making) > sizeof(address.sun_path)) {
        agent_say(LOG_ERR, "%s: expected a path of at most %zu characters (a Unix socket's limit)",
                  s->path, sizeof(address.sun_path) - sizeof(making));
        return -ENAMETOOLONG;
    }
    /* The socket gets its final name when it already listens. So no client is refused meanwhile. A socket of that name belongs
     * to a dead agent, because this agent holds the lock. */
    snprintf(address.sun_path, sizeof(address.sun_path), "%s%s", s->path, making);
    unlink(address.sun_path);
    if (bind(s->fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ||
        chmod(address.sun_path, 0666) < 0 || listen(s->fd, 16) < 0 ||
        rename(address.sun_path, s->path) < 0) { /* replaces a dead agent's socket */
        const int r = -errno;
        agent_say(LOG_ERR, "%s: %s", s->path, strerror(-r));
        return r;
    }
    const int r = sd_event_add_io(a->loop, &s->source, s->fd, EPOLLIN, on_connect, s);
    return r < 0 ? r : 0;
}

void agent_server_close(struct agent *a)
{
    struct agent_server *s = a->server;
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < CLIENT_MAX; i++) {
        if (s->clients[i] != NULL) {
            drop(s->clients[i]);
        }
    }
    if (s->fd >= 0) {
        sd_event_source_disable_unref(s->source);
        close(s->fd);
        unlink(s->path);
    }
    json_writer_done(&s->json);
    free(s);
    a->server = NULL;
}

void agent_server_finding(struct agent *a, const struct finding *f)
{
    for (size_t i = 0; a->server != NULL && i < CLIENT_MAX; i++) {
        struct client *c = a->server->clients[i];
        if (c != NULL && c->watches_findings) {
            json_writer_reset(&a->server->json);
            agent_answer_finding(a, &a->server->json, NULL, f);
            if (!answer_json(c, WAITING_SIZE_MAX)) {
                drop(c);
            }
        }
    }
}

void agent_server_link(struct agent *a, const struct agent_event *e)
{
    for (size_t i = 0; a->server != NULL && i < CLIENT_MAX; i++) {
        struct client *c = a->server->clients[i];
        if (c != NULL && c->watches_links) {
            json_writer_reset(&a->server->json);
            agent_answer_link_event(a, &a->server->json, e);
            if (!answer_json(c, WAITING_SIZE_MAX)) {
                drop(c);
            }
        }
    }
}
