/* http.c: any bytes to the HTTP server, in two pieces, over a real socket. Its handlers answer at once, later, by a stream, or
 * after the body only. */
#include "platform/http/server.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz.h"

enum { ROUNDS = 40, TURN_US = 200 };

static sd_event *loop;
static struct http_server *server;
static struct http_request *later;

static unsigned on_head(void *context, struct http_request *request)
{
    return strncmp(http_path(request), "/no", 3) == 0 ? 403 : 0;
}

static void on_request(void *context, struct http_request *request)
{
    size_t size = 0, sum = 0;
    const char *body = http_body(request, &size), *wanted = http_query(request, "q"),
               *accept = http_header(request, "Accept");
    ASSERT(size <= 4096);
    for (size_t i = 0; i < size; i++) {
        sum += (uint8_t)body[i];
    }
    sum += strlen(http_method(request)) + strlen(http_path(request)) + strlen(http_peer(request));
    sum += (wanted != NULL ? strlen(wanted) : 0) + (accept != NULL ? strlen(accept) : 0);
    __asm__ volatile("" : : "r"(sum)); /* all of it was read */
    ASSERT(http_identity(request) == NULL);
    if (strcmp(http_path(request), "/stream") == 0) {
        http_stream_open(request, "text/event-stream", NULL);
        if (http_stream_write(request, "data: x\n\n", 9)) {
            http_stream_end(request);
        }
    } else if (strcmp(http_path(request), "/later") == 0 && later == NULL) {
        later = request;
    } else {
        http_answer_text(request, 200, http_path(request));
    }
}

static void on_gone(void *context, struct http_request *request)
{
    later = later == request ? NULL : later;
}

static void set_up(void)
{
    const struct http_server_config config = {.address = "127.0.0.1:0",
                                              .body_max = 4096,
                                              .connection_max = 64,
                                              .arrive_ms = 5000,
                                              .idle_s = 5,
                                              .stream_max = 1024,
                                              .on_head = on_head,
                                              .on_request = on_request,
                                              .on_gone = on_gone};
    struct http_server_config own = config;
    ASSERT(sd_event_new(&loop) >= 0);
    own.loop = loop;
    ASSERT(http_server_open(&own, &server) == 0);
}

static int connect_to(uint16_t port)
{
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    const struct linger at_once = {1, 0}; /* or thousands of ports wait for their end */
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT(fd >= 0 && connect(fd, (const struct sockaddr *)&to, sizeof(to)) == 0);
    ASSERT(setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)) == 0);
    return fd;
}

static bool turn(int fd, char first[5], size_t *got)
{
    char bytes[4096];
    ASSERT(sd_event_run(loop, TURN_US) >= 0);
    const ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
    for (ssize_t i = 0; i < n && *got < 5; i++) {
        first[(*got)++] = bytes[i];
    }
    return n != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char first[5] = "";
    size_t got = 0;
    if (server == NULL) {
        set_up();
    }
    const int fd = connect_to(http_server_port(server));
    const size_t half = size > 0 ? data[0] % size : 0;
    (void)send(fd, data, half, MSG_NOSIGNAL | MSG_DONTWAIT);
    bool open = true;
    for (unsigned i = 0; i < 3 && open; i++) {
        open = turn(fd, first, &got);
    }
    (void)send(fd, data + half, size - half, MSG_NOSIGNAL | MSG_DONTWAIT);
    for (unsigned i = 0; i < ROUNDS && open && got < 5; i++) {
        open = turn(fd, first, &got);
        if (i == 2 && later != NULL) {
            struct http_request *waiting = later;
            later = NULL;
            http_answer_text(waiting, 200, "later");
        }
        if (i == 4) {
            shutdown(fd, SHUT_WR);
        }
    }
    ASSERT(got < 5 || memcmp(first, "HTTP/", 5) == 0);
    close(fd);
    for (unsigned i = 0; i < 3; i++) { /* it notices */
        ASSERT(sd_event_run(loop, 0) >= 0);
    }
    return 0;
}
