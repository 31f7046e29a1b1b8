/* test_meet.c: how ranks of `foliot perf` meet. Strangers, and ranks with another secret, are refused and hold no rank up. Sums
 * and letters reach the right ranks. Ranks are threads here, over TCP on loopback. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "app/perf/perf.h"
#include "own_network.h"

enum {
    RANKS = 5,
    TIMEOUT_S = 120, /* a thread may get no processor for long */
    HEARD_S = 10     /* a thread may get no processor before another one has connected */
};

static char where[64];
static struct sockaddr_in address;

/* A socket at that address, beside one that only holds the port. */
static int shared_socket(struct sockaddr_in *at)
{
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)at, sizeof(*at)), 0);
    return fd;
}

/* A free port that stays free for rank 0: the kernel gives a bound port to no other process. */
static void find_port(void)
{
    static int keeper = -1;
    socklen_t size = sizeof(address);

    close(keeper);
    address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    keeper = shared_socket(&address);
    assert_int_equal(getsockname(keeper, (struct sockaddr *)&address, &size), 0);
    snprintf(where, sizeof(where), "127.0.0.1:%d", ntohs(address.sin_port));
}

struct member {
    int rank, r, timeout_s;
    uint8_t secret[MEET_SECRET_SIZE];
    struct meet meet;
    void (*work)(struct member *);
    const char *where;
    pthread_t thread;
};

static void *run(void *context)
{
    struct member *m = context;
    m->r = meet_open(&m->meet, m->where, m->rank, RANKS, m->timeout_s, m->secret);
    if (m->r == 0 && m->work != NULL) {
        m->work(m);
    }
    return NULL;
}

static void begin(struct member *members, void (*work)(struct member *))
{
    for (int i = 0; i < RANKS; i++) {
        members[i] =
            (struct member){.rank = i, .timeout_s = TIMEOUT_S, .where = where, .work = work};
        memset(members[i].secret, 7, sizeof(members[i].secret));
    }
}

static void start(struct member *m)
{
    assert_int_equal(pthread_create(&m->thread, NULL, run, m), 0);
}

static void end(struct member *m)
{
    pthread_join(m->thread, NULL);
    meet_close(&m->meet);
}

static void sums(struct member *m)
{
    const double mine[2] = {m->rank, -m->rank};
    double sum[2], max[2];
    m->r = meet_sum(&m->meet, mine, 2, sum, max);
    m->r = m->r < 0                                                                  ? m->r
           : sum[0] == RANKS * (RANKS - 1) / 2 && max[0] == RANKS - 1 && max[1] == 0 ? 0
                                                                                     : -1;
    m->r = m->r < 0 ? m->r : meet_barrier(&m->meet);
}

/* Letters to the next rank on two channels, and from every rank to rank 0. */
static void letters(struct member *m)
{
    struct meet_letter out[3] = {{.to = (m->rank + 1) % RANKS, .channel = 0},
                                 {.to = (m->rank + 1) % RANKS, .channel = 1},
                                 {.to = 0, .channel = 2}},
                       in[2 + RANKS];
    const int expected = m->rank == 0 ? 2 + RANKS : 2, before = (m->rank + RANKS - 1) % RANKS;
    int right = 0;
    for (int i = 0; i < 3; i++) {
        snprintf(out[i].handle, sizeof(out[i].handle), "%d/%d", m->rank, i);
    }
    m->r = meet_post(&m->meet, out, 3, in, expected);
    for (int i = 0; m->r == 0 && i < expected; i++) {
        char text[32];
        snprintf(text, sizeof(text), "%d/%d", in[i].from, in[i].channel);
        right += strcmp(text, in[i].handle) == 0 && in[i].to == m->rank &&
                 (in[i].channel == 2 || in[i].from == before);
    }
    m->r = m->r < 0 ? m->r : right == expected ? 0 : -1;
}

static void all_meet(void (*work)(struct member *))
{
    struct member members[RANKS];
    find_port();
    begin(members, work);
    for (int i = RANKS - 1; i >= 0; i--) {
        start(&members[i]);
    }
    for (int i = 0; i < RANKS; i++) {
        end(&members[i]);
        assert_int_equal(members[i].r, 0);
    }
}

static void all_meet_and_add(void **state)
{
    all_meet(sums);
}

/* Fewer descriptors than rank 0 needs: a shell's soft limit is raised. If the hard limit is too low, that is reported. */
static void the_limit_of_descriptors_is_raised(void **state)
{
    struct rlimit before;
    int status = -1;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    struct rlimit limit = {.rlim_cur = 64, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    all_meet(sums);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        struct meet m;
        limit.rlim_max = 64;
        const int r = setrlimit(RLIMIT_NOFILE, &limit) == 0
                          ? meet_open(&m, where, 0, 1000, TIMEOUT_S, NULL)
                          : -1;
        _exit(r == -EMFILE ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void letters_come_to_whom_they_are_for(void **state)
{
    all_meet(letters);
}

static int call(void)
{
    for (int i = 0; i < 6000; i++) {
        const int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0) {
            return fd;
        }
        close(fd);
        usleep(10000);
    }
    return -1;
}

/* More strangers than there is room for. Most send nothing, and some send nonsense. */
static void strangers_hold_nobody_up(void **state)
{
    struct member members[RANKS];
    int strangers[150];
    find_port();
    begin(members, sums);
    start(&members[0]);
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
        strangers[i] = call();
        assert_true(strangers[i] >= 0);
        if (i % 3 == 0) {
            const char nothing[200] = {1};
            (void)!send(strangers[i], nothing, sizeof(nothing), MSG_NOSIGNAL);
        }
    }
    for (int i = 1; i < RANKS; i++) {
        start(&members[i]);
    }
    for (int i = 0; i < RANKS; i++) {
        end(&members[i]);
        assert_int_equal(members[i].r, 0);
    }
    for (size_t i = 0; i < sizeof(strangers) / sizeof(strangers[0]); i++) {
        close(strangers[i]);
    }
}

/* Neither end accepts the other one: the rank with another secret doesn't come in, and its place stays free for one with the
 * right secret. */
static void another_secret_is_turned_away(void **state)
{
    struct member members[RANKS], liar;
    find_port();
    begin(members, sums);
    liar = members[2];
    liar.secret[3] ^= 1;
    liar.timeout_s = 2;
    liar.work = NULL;
    for (int i = 0; i < RANKS; i++) {
        if (i != 2) {
            start(&members[i]);
        }
    }
    start(&liar);
    end(&liar);
    assert_true(liar.r < 0);
    start(&members[2]);
    for (int i = 0; i < RANKS; i++) {
        end(&members[i]);
        assert_int_equal(members[i].r, 0);
    }
}

/* Passes on what a rank and rank 0 send each other, for three seconds. */
static void *relay(void *context)
{
    const int listener = *(const int *)context;
    struct pollfd p[3] = {{listener, POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}};
    for (int round = 0; round < 300; round++) {
        char text[256];
        (void)poll(p, 3, 10);
        if (p[0].revents != 0) {
            close(p[1].fd);
            close(p[2].fd);
            p[1].fd = accept(listener, NULL, NULL);
            p[2].fd = call();
            p[1].revents = p[2].revents = 0;
        }
        for (int k = 1; k < 3; k++) {
            const ssize_t n = p[k].revents != 0 ? recv(p[k].fd, text, sizeof(text), 0) : 0;
            (void)!send(p[3 - k].fd, text, n > 0 ? (size_t)n : 0, MSG_NOSIGNAL);
            p[k].fd = p[k].revents != 0 && n <= 0 ? -1 : p[k].fd;
        }
    }
    close(p[1].fd);
    close(p[2].fd);
    return NULL;
}

/* A process between two ranks that have the secret proves nothing with their proofs. */
static void a_process_that_hands_proofs_on_does_not_come_in(void **state)
{
    struct member members[RANKS], led;
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(own);
    char there[64];
    pthread_t between;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&own, sizeof(own)), 0);
    assert_int_equal(listen(listener, 5), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&own, &size), 0);
    snprintf(there, sizeof(there), "127.0.0.1:%d", ntohs(own.sin_port));
    find_port();
    begin(members, sums);
    led = members[2];
    led.where = there;
    led.timeout_s = 2;
    led.work = NULL;
    for (int i = 0; i < RANKS; i++) {
        if (i != 2) {
            start(&members[i]);
        }
    }
    assert_int_equal(pthread_create(&between, NULL, relay, &listener), 0);
    start(&led);
    end(&led);
    assert_true(led.r < 0);
    pthread_join(between, NULL);
    start(&members[2]);
    for (int i = 0; i < RANKS; i++) {
        end(&members[i]);
        assert_int_equal(members[i].r, 0);
    }
    close(listener);
}

/* Ends each connection at its first message, like rank 0 of another release, until the listener is shut down. */
static void *turn_away(void *context)
{
    const int listener = *(const int *)context;
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0;) {
        char text[64];
        (void)!recv(fd, text, sizeof(text), 0);
        close(fd);
    }
    return NULL;
}

/* A rank of another release: the reason is reported, not that no rank came. */
static void another_release_is_told(void **state)
{
    struct member members[RANKS];
    struct {
        uint64_t magic;
        int32_t rank, ranks;
        uint8_t nonce[16];
    } hello = {0x666f6c706d656533ull, 1, RANKS, {0}}; /* the earlier form */
    pthread_t other;
    char nothing, there[sizeof(where)];
    find_port();
    begin(members, NULL);
    members[0].timeout_s = members[1].timeout_s = HEARD_S;
    /* rank 1 has another rank 0 than the one here: both wait at the same time */
    int listener = shared_socket(&address);
    assert_int_equal(listen(listener, 5), 0);
    assert_int_equal(pthread_create(&other, NULL, turn_away, &listener), 0);
    memcpy(there, where, sizeof(there));
    members[1].where = there;
    start(&members[1]);
    find_port();
    start(&members[0]);
    int fd = call();
    assert_int_equal(send(fd, &hello, sizeof(hello), MSG_NOSIGNAL), sizeof(hello));
    end(&members[0]);
    assert_int_equal(members[0].r, -EPROTONOSUPPORT);
    assert_int_equal(recv(fd, &nothing, 1, MSG_DONTWAIT), 0); /* turned away */
    close(fd);
    end(&members[1]);
    assert_int_equal(members[1].r, -ECONNREFUSED);
    shutdown(listener, SHUT_RDWR);
    pthread_join(other, NULL);
    close(listener);
    begin(members, NULL); /* no rank comes */
    find_port();
    members[0].timeout_s = members[1].timeout_s = 1;
    for (int i = 0; i < 2; i++) {
        find_port();
        start(&members[i]);
        end(&members[i]);
        assert_int_equal(members[i].r, -ETIMEDOUT);
    }
}

static int meet_on_loopback(void)
{
    struct member members[RANKS];
    int wrong = 0;
    find_port();
    begin(members, sums);
    for (int i = 0; i < RANKS; i++) {
        members[i].timeout_s = 20;
        start(&members[i]);
    }
    for (int i = 0; i < RANKS; i++) {
        end(&members[i]);
        wrong += members[i].r != 0;
    }
    return wrong;
}

/* There is no IPv4 except loopback, and of IPv6 only a link's address. */
static void all_meet_where_there_is_no_network(void **state)
{
    (void)state;
    in_own_network("ip link set lo up && ip link add away type veth peer name there && ip link set "
                   "away up && ip link set there up",
                   meet_on_loopback);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_meet_where_there_is_no_network),
        cmocka_unit_test(all_meet_and_add),
        cmocka_unit_test(the_limit_of_descriptors_is_raised),
        cmocka_unit_test(letters_come_to_whom_they_are_for),
        cmocka_unit_test(strangers_hold_nobody_up),
        cmocka_unit_test(another_secret_is_turned_away),
        cmocka_unit_test(a_process_that_hands_proofs_on_does_not_come_in),
        cmocka_unit_test(another_release_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
