/* Our HTTP server and clients that send or read slowly: which one is cut off for another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "platform/http/server.h"

enum {
    LARGE = 16 << 20, /* more than a kernel keeps for both sides */
    CLIENTS = 5
};

struct world {
    sd_event *loop;
    struct http_server *server;
    char *large;
    int clients[CLIENTS];
};

static void on_request(void *context, struct http_request *request)
{
    const struct world *w = context;
    if (strcmp(http_path(request), "/large") == 0) {
        http_answer(request, 200, "text/plain", w->large, LARGE, NULL);
    } else {
        http_answer_text(request, 200, "heard");
    }
}

static int set_up(void **state)
{
    static struct world world;
    struct world *w = &world;
    *w = (struct world){.large = calloc(1, LARGE)};
    assert_non_null(w->large);
    assert_int_equal(sd_event_new(&w->loop), 0);
    const struct http_server_config config = {.loop = w->loop,
                                              .address = "127.0.0.1:0",
                                              .body_max = 4096,
                                              .connection_max = 3,
                                              .arriving_max = 1500,
                                              .untaken_max = 2 * LARGE + LARGE / 2,
                                              .arrive_ms = 60000,
                                              .idle_s = 60,
                                              .stream_max = 1000,
                                              .on_request = on_request,
                                              .context = w};
    assert_int_equal(http_server_open(&config, &w->server), 0);
    for (int i = 0; i < CLIENTS; i++) {
        w->clients[i] = -1;
    }
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < CLIENTS; i++) {
        if (w->clients[i] >= 0) {
            close(w->clients[i]);
        }
    }
    http_server_close(w->server);
    sd_event_unref(w->loop);
    free(w->large);
    return 0;
}

static void begin(struct world *w, int i)
{
    const int room = 4096;
    const struct sockaddr_in to = {.sin_family = AF_INET,
                                   .sin_port = htons(http_server_port(w->server)),
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    w->clients[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(w->clients[i] >= 0);
    assert_int_equal(setsockopt(w->clients[i], SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
    assert_int_equal(connect(w->clients[i], (const struct sockaddr *)&to, sizeof(to)), 0);
}

static void say(const struct world *w, int i, const char *text, size_t more)
{
    static const char body[4096];
    assert_int_equal(send(w->clients[i], text, strlen(text), MSG_NOSIGNAL), strlen(text));
    assert_int_equal(send(w->clients[i], body, more, MSG_NOSIGNAL), more);
}

static struct http_counters counters(const struct world *w)
{
    struct http_counters c;
    http_server_counters(w->server, &c);
    return c;
}

static void turn(const struct world *w)
{
    assert_true(sd_event_run(w->loop, 10000) >= 0);
}

/* Reads until the end, or until so many bytes. Meanwhile the server has its turns. */
static size_t take(const struct world *w, int i, size_t most)
{
    static char bytes[1 << 16];
    size_t all = 0;
    while (all < most) {
        const ssize_t n = recv(w->clients[i], bytes, sizeof(bytes), MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN)) {
            break;
        }
        all += n > 0 ? (size_t)n : 0;
        if (n < 0) {
            turn(w);
        }
    }
    return all;
}

static const char head[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
                  large[] = "GET /large HTTP/1.1\r\nHost: x\r\n\r\n";

/* A client that has sent only a part of its body makes room for one that sends. */
static void test_bodies_that_do_not_come(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 2; i++) {
        begin(w, i);
        say(w, i, head, 900);
        while (counters(w).bytes_in < 900 * (unsigned)(i + 1)) {
            turn(w);
        }
    }
    assert_int_equal(counters(w).refused_slow, 1);
    assert_int_equal(take(w, 0, 1), 0);
    say(w, 1, "", 100);
    assert_in_range(take(w, 1, 12), 12, 1024);
}

static void ask_for_large(struct world *w, int i)
{
    const uint64_t before = counters(w).bytes_out;
    begin(w, i);
    say(w, i, large, 0);
    while (counters(w).bytes_out == before) {
        turn(w);
    }
}

/* There is room for two of three answers that aren't read: the oldest is cut off. A client that reads gets everything. */
static void test_answers_that_are_not_taken(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 3; i++) {
        ask_for_large(w, i);
        assert_int_equal(counters(w).refused_slow, i == 2);
    }
    assert_in_range(take(w, 0, SIZE_MAX), 1, LARGE - 1);
    assert_in_range(take(w, 1, LARGE), LARGE, LARGE + 1024);
    assert_in_range(take(w, 2, LARGE), LARGE, LARGE + 1024);
    assert_int_equal(counters(w).refused_slow, 1);
}

/* A client that doesn't read its answer has no more right to a place than one that sends nothing. */
static void test_places_of_those_who_take_nothing(void **state)
{
    struct world *w = *state;
    for (int i = 0; i < 2; i++) {
        ask_for_large(w, i);
    }
    for (int i = 2; i < 4; i++) {
        begin(w, i);
    }
    while (counters(w).connections < 4) {
        turn(w);
    }
    assert_int_equal(counters(w).refused_crowd, 1);
    assert_in_range(take(w, 0, SIZE_MAX), 1, LARGE - 1);
    say(w, 3, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0);
    assert_in_range(take(w, 3, 12), 12, 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_bodies_that_do_not_come, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_answers_that_are_not_taken, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_places_of_those_who_take_nothing, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
