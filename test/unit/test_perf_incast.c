/* test_perf_incast.c: many ranks send to one: arriving packets are counted, and marked packets separately. */
#include <arpa/inet.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/perf/incast.h"
#include "own_network.h"

enum { RANKS = 5, RUN_MS = 200, PATIENCE_S = 60, TRIES = 40 };

struct rank {
    const char *where, *nic;
    int number, family, r;
    struct incast_found found;
};

static void *run(void *context)
{
    static const uint8_t secret[MEET_SECRET_SIZE] = {7};
    struct rank *me = context;
    struct meet meet;

    me->r = meet_open(&meet, me->where, me->number, RANKS, PATIENCE_S, secret);
    if (me->r == 0) {
        me->r = incast_test(&meet, me->nic, me->family == AF_INET ? "127.0.0.1" : "::1", RUN_MS, 26,
                            &me->found);
        meet_close(&meet);
    }
    return NULL;
}

/* Runs all ranks; returns rank 0's result. */
static int play(const char *nic, int family, struct rank ranks[RANKS])
{
    pthread_t threads[RANKS];
    char where[64];
    int r = 0;

    snprintf(where, sizeof(where), "unix:/tmp/foliot-incast-%d", (int)getpid());
    for (int i = 0; i < RANKS; i++) {
        ranks[i] = (struct rank){.where = where, .nic = nic, .number = i, .family = family};
        if (pthread_create(&threads[i], NULL, run, &ranks[i]) != 0) {
            abort();
        }
    }
    for (int i = 0; i < RANKS; i++) {
        pthread_join(threads[i], NULL);
        r = ranks[i].r < 0 ? ranks[i].r : r;
    }
    return r;
}

/* Sends packets as a switch would have marked them, to all sockets of this network: rank 0's is among them. */
static void *mark(void *context)
{
    const int *over = context, marked = 3, fd = socket(AF_INET, SOCK_DGRAM, 0);
    char line[256];

    setsockopt(fd, IPPROTO_IP, IP_TOS, &marked, sizeof(marked));
    while (!__atomic_load_n(over, __ATOMIC_ACQUIRE)) {
        FILE *sockets = fopen("/proc/net/udp", "re");
        unsigned port;
        while (sockets != NULL && fgets(line, sizeof(line), sockets) != NULL) {
            if (sscanf(line, " %*d: 0100007F:%x", &port) == 1) {
                const struct sockaddr_in to = {.sin_family = AF_INET,
                                               .sin_port = htons((uint16_t)port),
                                               .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
                (void)sendto(fd, "marked", 6, MSG_DONTWAIT, (const void *)&to, sizeof(to));
            }
        }
        if (sockets != NULL) {
            fclose(sockets);
        }
        usleep(1000);
    }
    close(fd);
    return NULL;
}

/* Repeats until a sender and the receiver had a processor at the same time. All ranks get the same. */
static int counts(int family, bool marks)
{
    struct rank ranks[RANKS];
    const struct incast_found *f = &ranks[0].found;

    for (int i = 0; i < TRIES; i++) {
        if (play("lo", family, ranks) != 0) {
            return 1;
        }
        for (int k = 1; k < RANKS; k++) {
            if (memcmp(&ranks[k].found, f, sizeof(*f)) != 0) {
                return 2;
            }
        }
        if (f->marked > f->came || (!marks && (f->came > f->sent || f->marked > 0))) {
            return 3;
        }
        if (f->came > 100 && f->rate > 0 && f->marked < f->came && (!marks || f->marked > 0)) {
            return 0;
        }
    }
    return 4;
}

static int where_nothing_marks(void)
{
    return counts(AF_INET, false) + 10 * counts(AF_INET6, false);
}

static int where_some_are_marked(void)
{
    pthread_t thread;
    int over = 0;

    if (pthread_create(&thread, NULL, mark, &over) != 0) {
        return 9;
    }
    const int r = counts(AF_INET, true);
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    return r;
}

static void nothing_is_marked_by_itself(void **state)
{
    (void)state;
    in_own_network("ip link set lo up", where_nothing_marks);
}

/* Packets that support marks are distinguished from marked ones. */
static void what_is_marked_is_counted(void **state)
{
    (void)state;
    in_own_network("ip link set lo up", where_some_are_marked);
}

/* A rank without the interface fails, and so do all others: none waits for it. */
static void who_has_no_such_interface_fails_all(void **state)
{
    struct rank ranks[RANKS];
    (void)state;
    assert_true(play("nosuch", AF_INET, ranks) < 0);
    for (int i = 0; i < RANKS; i++) {
        assert_true(ranks[i].r < 0);
    }
}

struct liar {
    const char *where;
    uint16_t port;
};

/* Rank 0 reports an address that isn't its own. An older program accepted that. */
static void *lie(void *context)
{
    static const uint8_t secret[MEET_SECRET_SIZE] = {7};
    const struct liar *me = context;
    struct {
        uint8_t address[16];
        uint16_t port, reserved;
    } card = {.address = {127, 0, 0, 2}, .port = me->port}, cards[2];
    struct incast_found none = {0}, all[2];
    struct meet meet;

    if (meet_open(&meet, me->where, 0, 2, PATIENCE_S, secret) == 0) {
        int r = meet_exchange(&meet, &card, sizeof(card), cards);
        r = r < 0 ? r : meet_barrier(&meet);
        r = r < 0 ? r : meet_exchange(&meet, &none, sizeof(none), all);
        assert_int_equal(r, 0);
        meet_close(&meet);
    }
    return NULL;
}

static int where_rank_0_lies(void)
{
    static const uint8_t secret[MEET_SECRET_SIZE] = {7};
    struct sockaddr_in victim = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000002)};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    socklen_t size = sizeof(victim);
    struct incast_found found;
    struct meet meet;
    pthread_t thread;
    char where[64], byte;

    if (bind(fd, (const void *)&victim, sizeof(victim)) != 0 ||
        getsockname(fd, (void *)&victim, &size) != 0) {
        return 1;
    }
    snprintf(where, sizeof(where), "unix:/tmp/foliot-incast-%d", (int)getpid());
    struct liar liar = {where, victim.sin_port};
    if (pthread_create(&thread, NULL, lie, &liar) != 0) {
        return 2;
    }
    int r = meet_open(&meet, where, 1, 2, PATIENCE_S, secret) == 0 ? 0 : 3;
    if (r == 0) {
        r = incast_test(&meet, "lo", "127.0.0.1", RUN_MS, 26, &found) == 0 ? 0 : 4;
        meet_close(&meet);
    }
    pthread_join(thread, NULL);
    r = r == 0 && recv(fd, &byte, 1, 0) >= 0 ? 5 : r;
    close(fd);
    return r;
}

static void nobody_is_sent_elsewhere(void **state)
{
    (void)state;
    in_own_network("ip link set lo up", where_rank_0_lies);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_marked_by_itself),
        cmocka_unit_test(what_is_marked_is_counted),
        cmocka_unit_test(who_has_no_such_interface_fails_all),
        cmocka_unit_test(nobody_is_sent_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
