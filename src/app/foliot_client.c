/* foliot_client.c: sends one request to one agent over its Unix socket. */
#include "app/foliot_client.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/foliot_foreign.h"

#define ANSWER_MAX (64U << 20) /* a mesh of 16 NICs, 64 peers and 8 paths is 4 MiB */
#define TIMEOUT_MS 10000       /* on a host whose processors are all busy the agent waits, too */

int client_open(struct client *client, const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int r;

    if (strlen(path) >= sizeof(address.sun_path)) {
        return -ENAMETOOLONG;
    }
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        r = -errno;
        close(fd);
        return r;
    }
    *client = (struct client){.fd = fd};
    return 0;
}

void client_close(struct client *client)
{
    if (client->fd >= 0) {
        close(client->fd);
    }
    free(client->buffer);
    *client = (struct client){.fd = -1};
}

static int wait_for(int fd, short events, int timeout_ms)
{
    struct pollfd p = {.fd = fd, .events = events};
    int r;

    do {
        r = poll(&p, 1, timeout_ms);
    } while (r < 0 && errno == EINTR && timeout_ms >= 0);
    return r < 0 ? -errno : r == 0 ? -ETIMEDOUT : 0;
}

int client_send(struct client *client, const char *verb, const char *what)
{
    char line[256];
    size_t sent = 0, size;
    int r;

    size = (size_t)snprintf(line, sizeof(line), "{\"%s\":\"%s\",\"version\":1}\n", verb, what);
    ASSERT(size < sizeof(line));
    while (sent < size) {
        const ssize_t n = send(client->fd, line + sent, size - sent, MSG_NOSIGNAL);
        if (n > 0) {
            sent += (size_t)n;
        } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
            return -errno;
        } else {
            r = wait_for(client->fd, POLLOUT, TIMEOUT_MS);
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

/* Reads more bytes into the buffer: > 0, or negative errno. */
static ssize_t fill(struct client *client, int timeout_ms)
{
    if (client->size == client->capacity) {
        const size_t capacity = client->capacity == 0 ? 65536 : client->capacity * 2;
        char *grown = capacity <= ANSWER_MAX ? realloc(client->buffer, capacity) : NULL;
        if (grown == NULL) {
            return -EMSGSIZE;
        }
        client->buffer = grown;
        client->capacity = capacity;
    }
    int r = wait_for(client->fd, POLLIN, timeout_ms);
    if (r < 0) {
        return r;
    }
    ssize_t n = recv(client->fd, client->buffer + client->size, client->capacity - client->size, 0);
    if (n == 0) {
        return -ECONNRESET;
    }
    if (n < 0) {
        return errno == EAGAIN || errno == EINTR ? -EAGAIN : -errno;
    }
    client->size += (size_t)n;
    return n;
}

static void drop_front(struct client *client, size_t size)
{
    client->size -= size;
    memmove(client->buffer, client->buffer + size, client->size);
}

static int parse(const char *line, size_t size, bool raw, json_t **ret_answer)
{
    json_error_t error;
    json_t *answer = json_loadb(line, size, 0, &error);
    const char *kind;

    if (answer == NULL) {
        fprintf(stderr, "foliot: the agent's answer is no JSON (column %d: %s)\n", error.column,
                foreign_text(error.text).text);
        return -EPROTO;
    }
    kind = json_string_value(json_object_get(answer, "kind"));
    if (kind == NULL || strcmp(kind, "error") == 0) {
        foreign_show(answer, NULL);
        const char *message = json_string_value(json_object_get(answer, "message"));
        fprintf(stderr, "foliot: the agent refuses the request: %s\n",
                message != NULL ? message : "no reason given");
        json_decref(answer);
        return -EPROTO;
    }
    if (!raw) {
        foreign_show(answer, NULL);
    }
    *ret_answer = answer;
    return 0;
}

int client_receive(struct client *client, int timeout_ms, json_t **ret_answer)
{
    size_t looked = 0;

    for (;;) {
        const char *end = client->size > looked
                              ? memchr(client->buffer + looked, '\n', client->size - looked)
                              : NULL;

        if (end != NULL) {
            const size_t size = (size_t)(end - client->buffer);
            const int r = parse(client->buffer, size, client->raw, ret_answer);
            drop_front(client, size + 1);
            return r;
        }
        looked = client->size;
        ssize_t n = fill(client, timeout_ms);
        if (n < 0 && n != -EAGAIN) {
            return (int)n;
        }
    }
}

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        }
    }
    return 0;
}

int client_copy(struct client *client, size_t size, int timeout_ms, int to_fd)
{
    while (size > 0) {
        const size_t part = client->size < size ? client->size : size;
        int r;

        if (part > 0) {
            r = write_all(to_fd, client->buffer, part);
            if (r < 0) {
                return r;
            }
            drop_front(client, part);
            size -= part;
            continue;
        }
        ssize_t n = fill(client, timeout_ms);
        if (n < 0 && n != -EAGAIN) {
            return (int)n;
        }
    }
    return 0;
}

int client_ask(const char *path, const char *what, bool raw, json_t **ret_answer)
{
    struct client client;
    int r = client_open(&client, path);

    if (r < 0) {
        return r;
    }
    client.raw = raw;
    r = client_send(&client, "get", what);
    if (r == 0 || r == -EPIPE) { /* an agent that hung up may have sent the reason */
        r = client_receive(&client, TIMEOUT_MS, ret_answer);
    }
    client_close(&client);
    return r;
}

void client_explain(const struct target *target, int r)
{
    const char *who = target->name[0] != '\0' ? target->name : "this host";

    switch (r) {
    case -ENOENT:
    case -ECONNREFUSED:
        fprintf(stderr, "foliot: no agent answers on %s (%s: %s)\n", who, target->path,
                strerror(-r));
        fputs(
            target->name[0] != '\0'
                ? "  foliot lab status, foliot status --lab LAB: the hosts of a lab\n"
                : "  this host:       systemctl start foliot-agent\n"
                  "  a lab:           add --lab NAME\n"
                  "  the whole fleet: foliot alerts, changes, host list; foliot jobs --controller "
                  "URL\n",
            stderr);
        break;
    case -EACCES:
    case -EPERM:
        fprintf(stderr,
                "foliot: no permission to ask the agent of %s (%s): run as root or as a member of "
                "group foliot\n",
                who, target->path);
        break;
    case -ETIMEDOUT:
        fprintf(stderr,
                "foliot: the agent of %s does not answer within %d s: it hangs or is stopped\n",
                who, TIMEOUT_MS / 1000);
        break;
    case -EPROTO:
        break; /* printed where it was found */
    default:
        fprintf(stderr, "foliot: the agent of %s (%s): %s\n", who, target->path, strerror(-r));
        break;
    }
}

size_t client_ask_all(const struct options *options, const char *what, bool loud,
                      json_t **ret_answers)
{
    size_t answered = 0;

    for (size_t i = 0; i < options->target_count; i++) {
        const int r = client_ask(options->targets[i].path, what, options->json, &ret_answers[i]);
        if (r < 0) {
            ret_answers[i] = NULL;
            if (loud) {
                client_explain(&options->targets[i], r);
            }
        } else {
            answered++;
        }
    }
    return answered;
}
