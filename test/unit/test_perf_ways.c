/* test_perf_ways.c: the target of flows from one NIC to another: the address that the other rank reports, if a NIC may have
 * it. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/perf/ways.h"
#include "own_network.h"

enum { FLOWS = 16, PATIENCE_S = 60 };

/* The struct that ways.c sends. */
struct card {
    uint8_t address[16];
    uint16_t ports[FLOWS];
};

struct rank {
    const char *where;
    struct card card;
    int number, r;
};

/* Sends its card, and ends. */
static void *tell(void *context)
{
    static const uint8_t secret[MEET_SECRET_SIZE] = {9};
    struct rank *other = context;
    struct card cards[2];
    struct meet meet;

    other->r = meet_open(&meet, other->where, other->number, 2, PATIENCE_S, secret);
    if (other->r == 0) {
        other->r = meet_exchange(&meet, &other->card, sizeof(other->card), cards);
        if (other->r == 0 && other->number == 0) { /* the other one begins */
            other->r = meet_barrier(&meet);
            usleep(500000);
        }
        meet_close(&meet);
    }
    return NULL;
}

/* A socket on loopback that would get the flows. */
static int listener(const char *address, uint16_t *ret_port)
{
    struct sockaddr_in own = {.sin_family = AF_INET};
    socklen_t size = sizeof(own);
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

    assert_int_equal(inet_pton(AF_INET, address, &own.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&own, &size), 0);
    *ret_port = own.sin_port;
    return fd;
}

/* The result of this rank's test of its own NIC, if the other rank reports that address. *elsewhere: whether packets came
 * there. */
static int play(int number, const char *nic, int family, const char *leader, const char *told,
                bool *elsewhere)
{
    static const uint8_t secret[MEET_SECRET_SIZE] = {9};
    const struct ways_turn turn = {0};
    struct way_found ways[WAYS_MOST];
    char where[64];
    struct rank other = {.where = where, .number = 1 - number};
    struct meet meet;
    pthread_t thread;
    uint16_t port;
    int count;
    const int fd = listener(elsewhere != NULL ? told : "127.0.0.1", &port);

    snprintf(where, sizeof(where), "unix:/tmp/foliot-ways-%d", (int)getpid());
    assert_int_equal(inet_pton(family, told, other.card.address), 1);
    for (int k = 0; k < FLOWS; k++) {
        other.card.ports[k] = port;
    }
    assert_int_equal(pthread_create(&thread, NULL, tell, &other), 0);
    assert_int_equal(meet_open(&meet, where, number, 2, PATIENCE_S, secret), 0);
    const int r = ways_test(&meet, nic, leader, 10, &turn, ways, &count);
    meet_close(&meet);
    pthread_join(thread, NULL);
    assert_int_equal(other.r, 0);
    if (elsewhere != NULL) {
        char byte;
        *elsewhere = recv(fd, &byte, 1, 0) >= 0;
    }
    close(fd);
    return r;
}

static int answer(const char *nic, int family, const char *told)
{
    const bool is_lo = strcmp(nic, "lo") == 0;
    const char *own =
        family == AF_INET ? (is_lo ? "127.0.0.1" : "10.9.9.1") : (is_lo ? "::1" : "fd00:9::1");

    return play(0, nic, family, own, told, NULL);
}

static void no_nic_has_it(void **state)
{
    static const char *const strange[] = {"0.0.0.0",         "0.1.2.3",         "224.0.0.1",
                                          "239.255.255.250", "255.255.255.255", "240.0.0.1"};
    (void)state;
    for (size_t i = 0; i < sizeof(strange) / sizeof(strange[0]); i++) {
        assert_int_equal(answer("lo", AF_INET, strange[i]), -EBADMSG);
    }
}

/* The other rank has ended when the flows should begin: nothing else is wrong with its address. */
static void a_nic_may_have_it(void **state)
{
    (void)state;
    const int r = answer("lo", AF_INET, "127.0.0.1");
    assert_true(r < 0 && r != -EBADMSG);
}

/* Rank 0 is where the plan has it, whatever it reports. */
static void the_leader_sends_nobody_elsewhere(void **state)
{
    bool elsewhere = true;

    (void)play(1, "lo", AF_INET, "127.0.0.1", "127.0.0.2", &elsewhere);
    assert_false(elsewhere);
    (void)state;
}

static int on_a_nic(void)
{
    static const char *const four[] = {"127.0.0.1", "127.8.8.8", "224.0.0.1"},
                             *const six[] = {"::",      "::1",     "ff02::1",
                                             "ff0e::1", "fe80::1", "::ffff:7f00:1"};
    int wrong = answer("away", AF_INET, "10.9.9.255") >= 0; /* the kernel refuses a broadcast */

    for (size_t i = 0; i < sizeof(four) / sizeof(four[0]); i++) {
        wrong += answer("away", AF_INET, four[i]) != -EBADMSG;
    }
    for (size_t i = 0; i < sizeof(six) / sizeof(six[0]); i++) {
        wrong += answer("away", AF_INET6, six[i]) != -EBADMSG;
    }
    return wrong + (answer("away", AF_INET, "10.9.9.2") == -EBADMSG) +
           (answer("away", AF_INET6, "fd00:9::2") == -EBADMSG);
}

/* Loopback is this host's own: if a rank elsewhere reports it, flows would go to programs here. */
static void nobody_elsewhere_has_loopback(void **state)
{
    (void)state;
    in_own_network(
        "ip link set lo up && ip link add away type veth peer name there && "
        "ip addr add 10.9.9.1/24 brd + dev away && ip link set away up && ip link set there up && "
        "ip addr add fd00:9::1/64 dev away nodad",
        on_a_nic);
}

/* In half a turn (200 ms) trains to each of three hops are sent twice, also at 20 Mbit/s: a full train would take 58 ms. A fast
 * way gets full ones. No report of the other rank makes the test wait long. */
static void there_is_time_for_each_hop_twice(void **state)
{
    static const double any[] = {1e-300, 1, 1e13};
    (void)state;
    for (double rate = 2.5e6; rate < 1e11; rate *= 2) {
        const struct ways_look l = ways_look_of(3, rate, 200000000);
        const double ns = l.packets * 1442 * 1e9 / rate;
        assert_true(l.packets >= 40 && l.packets <= 100 && 2 * 3 * (ns + 10e6) <= 200.1e6);
        assert_true(l.busy_ns >= ns - 1 && l.busy_ns <= ns + ns / l.packets + 1);
    }
    assert_int_equal(ways_look_of(3, 6e9, 200000000).packets, 100);
    for (size_t i = 0; i < sizeof(any) / sizeof(any[0]); i++) {
        const struct ways_look l = ways_look_of(0, any[i], -1);
        assert_true(l.packets >= 40 && l.packets <= 100 && l.busy_ns >= 0 && l.busy_ns <= 40000000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_nic_has_it),
        cmocka_unit_test(a_nic_may_have_it),
        cmocka_unit_test(the_leader_sends_nobody_elsewhere),
        cmocka_unit_test(nobody_elsewhere_has_loopback),
        cmocka_unit_test(there_is_time_for_each_hop_twice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
