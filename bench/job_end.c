/* job_end.c: how long an end takes: the time from a peer's death until the others' requests fail; the time of an abort and of
 * a finalize with peers that are stopped, dead or not reachable.
 *
 *   job_end PLUGIN [ROUNDS [MOST]]
 *
 * Three ranks over the loopback: a victim, and two others with communicators to it and from it. The patience is NCCL's
 * default, so a rank that waits for it is noticed.
 *
 * killed     messages flow, and the victim is killed: both others must get an error. In every other round the victim has
 *            forked children
 * abort      requests are in flight. The victim is stopped or killed, or the loopback goes down (only root: in a network
 *            namespace of its own). Then the others close their communicators and finalize
 * done       the same, but all requests of the others are done, and the victim has never posted a receive
 *
 * MOST: the most seconds of any end, less than the patience. It is for tests that run in parallel with others and are not
 * timed. */
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "now.h"
#include "ranks.h"
#include "report.h"

#define OTHERS     2
#define SIZE       65536
#define ROUNDS_MAX 1000

enum what { KILLED, ABORT, DONE };
enum harm { STOPPED, DEAD, UNREACHED, HARMS };

struct round {
    enum what what;
    enum harm harm;
    bool children;
};

struct rank {
    struct net_client net;
    void *context;
    struct led me;
    struct {
        void *out, *in, *sent, *received;
        char bytes[2][SIZE];
    } links[OTHERS];
    int count;
};

/* -- ranks ------------------------------------------------------------------------------------ */

/* Makes one communicator to the peer and one from it. Both ends do the same. */
static void meet_peer(struct rank *r, int k, int fd)
{
    char own[NCCL_HANDLE_SIZE] = {0}, its[NCCL_HANDLE_SIZE];
    void *listener;

    if (net_listen(&r->net, r->context, 0, own, &listener) != NCCL_SUCCESS ||
        send(fd, own, sizeof(own), MSG_NOSIGNAL) != (ssize_t)sizeof(own) ||
        recv(fd, its, sizeof(its), MSG_WAITALL) != (ssize_t)sizeof(its)) {
        ranks_give_up("listen");
    }
    while (r->links[k].out == NULL || r->links[k].in == NULL) {
        if ((r->links[k].out == NULL &&
             net_connect(&r->net, r->context, 0, its, &r->links[k].out) != NCCL_SUCCESS) ||
            (r->links[k].in == NULL &&
             net_accept(&r->net, listener, &r->links[k].in) != NCCL_SUCCESS)) {
            ranks_give_up("connect");
        }
        (void)usleep(200);
    }
    (void)net_close_listen(&r->net, listener);
}

/* Keeps a request in flight on each communicator. false: an error. */
static bool keep_busy(struct rank *r, int k, size_t size)
{
    struct net_receive receive = {.count = 1, .data = {r->links[k].bytes[1]}, .sizes = {SIZE}};
    int done = 0, got;

    if (r->links[k].sent == NULL && net_isend(&r->net, r->links[k].out, r->links[k].bytes[0], size,
                                              0, NULL, &r->links[k].sent) != NCCL_SUCCESS) {
        return false;
    }
    if (r->links[k].received == NULL &&
        net_irecv(&r->net, r->links[k].in, &receive, &r->links[k].received) != NCCL_SUCCESS) {
        return false;
    }
    if (r->links[k].sent != NULL) {
        if (net_test(&r->net, r->links[k].sent, &done, &got) != NCCL_SUCCESS) {
            return false;
        }
        r->links[k].sent = done ? NULL : r->links[k].sent;
    }
    if (r->links[k].received != NULL) {
        if (net_test(&r->net, r->links[k].received, &done, &got) != NCCL_SUCCESS) {
            return false;
        }
        r->links[k].received = done ? NULL : r->links[k].received;
    }
    return true;
}

static _Noreturn void victim(struct rank *r, const struct round *round, const int *fds)
{
    for (int k = 0; k < OTHERS; k++) {
        meet_peer(r, k, fds[k]);
    }
    for (int i = 0; round->children && i < 2; i++) {
        if (fork() == 0) { /* a data loader: it lives for a while */
            close(r->me.fd);
            sleep(3);
            _exit(0);
        }
    }
    (void)!write(r->me.fd, "r", 1);
    while (round->what == KILLED) {
        for (int k = 0; k < OTHERS; k++) {
            (void)keep_busy(r, k, SIZE);
        }
        (void)usleep(100);
    }
    for (;;) {
        pause();
    }
}

/* Small sends: they are done at once, and never received. */
static void send_small(struct rank *r)
{
    for (int i = 0; i < 16; i++) {
        void *request = NULL;
        int done = 0;
        while (request == NULL) {
            if (net_isend(&r->net, r->links[0].out, r->links[0].bytes[0], 8, 0, NULL, &request) !=
                NCCL_SUCCESS) {
                ranks_give_up("isend");
            }
        }
        while (!done) {
            if (net_test(&r->net, request, &done, NULL) != NCCL_SUCCESS) {
                ranks_give_up("test");
            }
        }
    }
}

static _Noreturn void other(struct rank *r, const struct round *round, int fd)
{
    double answer = 0;

    meet_peer(r, 0, fd);
    if (round->what == DONE) {
        send_small(r);
    } else if (round->what == ABORT) {
        (void)keep_busy(r, 0, SIZE);
    }
    if (round->what == KILLED) {
        (void)!write(r->me.fd, "r", 1);
        while (keep_busy(r, 0, SIZE)) {
            (void)usleep(100);
        }
        answer = now_s(CLOCK_MONOTONIC); /* this time; all processes have the same clock */
    } else {
        ranks_meet(&r->me, 'r'); /* waits for the fault */
        const double begin = now_s(CLOCK_MONOTONIC);
        (void)net_close_send(&r->net, r->links[0].out);
        (void)net_close_receive(&r->net, r->links[0].in);
        (void)net_finalize(&r->net, r->context);
        answer = now_s(CLOCK_MONOTONIC) - begin;
    }
    (void)!write(r->me.fd, &answer, sizeof(answer));
    _exit(0);
}

static struct led start(const struct round *round, const char *plugin, int k, int pairs[][2])
{
    static struct rank r; /* large; the child's */
    int fds[OTHERS];

    r.me = ranks_fork();
    if (r.me.pid != 0) {
        return r.me;
    }
    for (int i = 0; i < OTHERS; i++) {
        fds[i] = pairs[i][k > 0];
    }
    ranks_open(&r.net, plugin, &r.context);
    if (k == 0) {
        victim(&r, round, fds);
    }
    other(&r, round, fds[k - 1]);
}

/* -- the leader ------------------------------------------------------------------------------- */

static bool loopback(bool up)
{
    struct ifreq lo = {.ifr_name = "lo", .ifr_flags = (short)(up ? IFF_UP : 0)};
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool good = fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &lo) == 0;

    if (fd >= 0) {
        close(fd);
    }
    return good;
}

static void harm(const struct led *led, enum harm how)
{
    if (how == UNREACHED) {
        (void)loopback(false);
    } else {
        (void)kill(led->pid, how == STOPPED ? SIGSTOP : SIGKILL);
    }
}

/* The longest time of the two others, s; < 0: something else failed. */
static double play(const struct round *round, const char *plugin)
{
    struct led ranks[1 + OTHERS];
    int pairs[OTHERS][2];
    double worst = -1, began, one;
    bool good = true;
    char byte;

    for (int i = 0; i < OTHERS; i++) {
        good = good && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pairs[i]) == 0;
    }
    for (int k = 0; good && k <= OTHERS; k++) {
        ranks[k] = start(round, plugin, k, pairs);
    }
    for (int i = 0; i < OTHERS; i++) {
        close(pairs[i][0]);
        close(pairs[i][1]);
    }
    for (int k = 0; k <= OTHERS; k++) {
        good = good && ranks_hear(&ranks[k], &byte, 1);
    }
    (void)usleep(50000); /* messages flow */
    began = now_s(CLOCK_MONOTONIC);
    harm(&ranks[0], round->what == KILLED ? DEAD : round->harm);
    (void)usleep(round->what == KILLED ? 0 : 20000);
    for (int k = 1; k <= OTHERS; k++) {
        good = good && (round->what == KILLED || ranks_go_on(&ranks[k]));
    }
    for (int k = 1; good && k <= OTHERS; k++) {
        good = ranks_hear(&ranks[k], &one, sizeof(one));
        one -= good && round->what == KILLED ? began : 0;
        worst = good && one > worst ? one : worst;
    }
    for (int k = 0; k <= OTHERS; k++) {
        ranks_end(&ranks[k]);
    }
    if (round->harm == UNREACHED) {
        (void)loopback(true);
    }
    return good ? worst : -1;
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double quantile(const double *values, int count, double q)
{
    const int k = (int)(q * count);

    return count == 0 ? REPORT_NONE : values[k < count ? k : count - 1];
}

/* p99 over the rounds, in `unit` seconds; a failed round counts as endless. */
static bool row(struct report *report, const char *id, const char *unit, double scale,
                const struct round *rounds, int kinds, int count, const char *plugin, double must,
                double aim)
{
    static double values[ROUNDS_MAX];
    char note[160];

    for (int i = 0; i < count; i++) {
        const double s = play(&rounds[i % kinds], plugin);
        values[i] = s < 0 ? 1e9 : s * scale;
    }
    qsort(values, (size_t)count, sizeof(values[0]), by_value);
    snprintf(note, sizeof(note), "p99 of %d rounds; p50 %.3g, worst %.3g", count,
             quantile(values, count, 0.5), values[count - 1]);
    report_one(report, id, quantile(values, count, 0.99), unit, must, aim, REPORT_LOWER, note);
    return quantile(values, count, 0.99) <= must;
}

int main(int argc, char *argv[])
{
    const int rounds = argc > 2 ? atoi(argv[2]) : 100;
    const double most_s = argc > 3 ? atof(argv[3]) : 0;
    const double killed_ms = most_s > 0 ? most_s * 1e3 : 50, abort_s = most_s > 0 ? most_s : 1;
    const bool root = unshare(CLONE_NEWNET) == 0 && loopback(true);
    const int harms = root ? HARMS : UNREACHED;
    const struct round killed[] = {{.what = KILLED}},
                       forked[] = {{.what = KILLED, .children = true}};
    struct round ends[2 * HARMS];
    static struct report report;

    if (argc < 2 || rounds < 1 || rounds > ROUNDS_MAX) {
        fprintf(stderr, "usage: job_end PLUGIN [ROUNDS [MOST]]\n");
        return EXIT_FAILURE;
    }
    for (int i = 0; i < 2 * harms; i++) {
        ends[i] = (struct round){.what = i < harms ? ABORT : DONE, .harm = (enum harm)(i % harms)};
    }
    report_init(&report, "job_end", argc, argv);
    bool good = row(&report, "job.killed_ms", "ms", 1e3, killed, 1, rounds, argv[1], killed_ms, 10);
    good &=
        row(&report, "job.killed_ms.forked", "ms", 1e3, forked, 1, rounds, argv[1], killed_ms, 10);
    good &= row(&report, "job.abort_s", "s", 1, ends, 2 * harms, rounds, argv[1], abort_s, 0.2);
    return report_finish(&report) == 0 && good ? EXIT_SUCCESS : EXIT_FAILURE;
}
