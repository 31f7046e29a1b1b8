/* Do packets of full size reach another host? Answers to short packets are no evidence for that. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/time.h"
#include "service/agent/reach.h"

enum { PACKETS_MAX = 16 };

/* A host that gives the ordered answers, and a host that tries to reach it. */
struct world {
    struct agent_reach reach;
    int other;
    int64_t now;
    struct sockaddr_in from[PACKETS_MAX]; /* of short packets */
    uint32_t count, full;
};

static void begin(struct world *w)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    struct reach_peer *p = &w->reach.peers[0];

    *w = (struct world){.now = NS_PER_S, .reach.count = 1};
    w->other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_true(w->other >= 0);
    assert_int_equal(bind(w->other, (struct sockaddr *)&at, size), 0);
    assert_int_equal(getsockname(w->other, (struct sockaddr *)&at, &size), 0);
    strcpy(p->host, "other");
    memcpy(&p->to, &at, sizeof(at));
    p->size = sizeof(at);
    reach_begin(&w->reach, w->now);
}

/* Lets time pass. Reads the packets that have come to the other host by then. */
static bool pass(struct world *w, int64_t ms)
{
    static char packet[65536];
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    ssize_t n;

    w->now += ms * NS_PER_MS;
    const bool ended = reach_look(&w->reach, w->now);
    while ((n = recvfrom(w->other, packet, sizeof(packet), 0, (struct sockaddr *)&from, &size)) >=
           0) {
        if (n > 100) {
            w->full++;
        } else {
            assert_true(w->count < PACKETS_MAX);
            w->from[w->count++] = from;
        }
    }
    return ended;
}

static void answer(const struct world *w, uint32_t packet)
{
    (void)!sendto(w->other, "x", 1, 0, (const struct sockaddr *)&w->from[packet],
                  sizeof(w->from[packet]));
}

static void end(struct world *w)
{
    for (int i = 0; i < 100 && !pass(w, 100); i++) {
    }
    assert_true(reach_look(&w->reach, w->now));
    assert_string_equal(w->reach.peers[0].reached, "reached"); /* a reset: no program listens */
    close(w->other);
}

/* A second short packet is sent because the answer to the first one is late. Both answers come. No full packet is answered. */
static void late_answers_are_none_to_full_packets(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    pass(&w, 0);
    pass(&w, 300);
    assert_int_equal(w.count, 2);
    answer(&w, 0);
    pass(&w, 10);
    answer(&w, 1);
    pass(&w, 10);
    answer(&w, 1);
    end(&w);
    assert_int_equal(w.full, 3);
    assert_non_null(strstr(w.reach.peers[0].path, "full "));
    assert_non_null(strstr(w.reach.peers[0].path, " lost"));
    reach_stop(&w.reach);
}

static void answered_full_packets_came(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    pass(&w, 0);
    answer(&w, 0);
    pass(&w, 10);
    pass(&w, 10);
    assert_int_equal(w.full, 1);
    close(w.other); /* from now on its kernel answers */
    w.other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    end(&w);
    assert_non_null(strstr(w.reach.peers[0].path, " came"));
    reach_stop(&w.reach);
}

static void a_silent_peer_is_not_tried_with_full_packets(void **state)
{
    struct world w;

    (void)state;
    begin(&w);
    end(&w);
    assert_int_equal(w.count, 3);
    assert_int_equal(w.full, 0);
    assert_string_equal(w.reach.peers[0].path, "short lost");
    reach_stop(&w.reach);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_answers_are_none_to_full_packets),
        cmocka_unit_test(answered_full_packets_came),
        cmocka_unit_test(a_silent_peer_is_not_tried_with_full_packets),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
