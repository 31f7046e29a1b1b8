/* cases_life.c: communicators open and close: nothing waits, and nothing is left over. */
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

/* Rounds of 50 ms for a thread that may get no processor: 10 s, times the scale. */
static int moments(const struct rank *r)
{
    return (int)(200 * r->options->timeout_scale);
}

static int entries(const char *folder)
{
    DIR *d = opendir(folder);
    int count = 0;

    while (d != NULL && readdir(d) != NULL) {
        count++;
    }
    if (d != NULL) {
        closedir(d);
    }
    return count;
}

static void little(struct rank *r, struct link *links, int count, uint64_t seed)
{
    const struct stream like = {.sizes = SIZES_SMALL, .count = 4, .seed = seed};
    struct stream streams[8];

    streams_run(r, streams, streams_of(r, links, count, &like, streams));
}

/* accept begins long before the connect; connect begins long before the accept. */
static void early(struct rank *r)
{
    struct link link = {.from = 0, .to = 1};

    rank_open(r, r->options->version);
    if (r->rank == 1) {
        link_listen(r, &link);
        for (int i = 0; i < 50; i++) {
            link_poll(r, &link);
            if (link.comm != NULL) {
                found(r, "accept gave a communicator before anybody had connected");
            }
        }
        mail_send(r, 0, link.handle, NCCL_HANDLE_SIZE);
        char byte;
        mail_receive(r, 0, &byte, 1); /* 50 polls of connect without one of accept */
    } else {
        link.rank = r;
        mail_receive(r, 1, link.handle, NCCL_HANDLE_SIZE);
        for (int i = 0; i < 50; i++) {
            link_poll(r, &link);
            sleep_ms(1);
        }
        mail_send(r, 1, "", 1);
    }
    while (link.comm == NULL) {
        link_poll(r, &link);
        usleep(100);
    }
    little(r, &link, 1, 11);
    barrier(r);
    link_close(r, &link);
    rank_close(r);
}

/* Both ends in one process, polled by one thread. */
static void self(struct rank *r)
{
    struct link receiver = {.from = 0, .to = 0}, sender = {.from = 0, .to = 0};
    struct stream streams[2] = {{.link = &sender, .sends = true, .seed = 12, .count = 50},
                                {.link = &receiver, .seed = 12, .count = 50}};

    rank_open(r, r->options->version);
    link_listen(r, &receiver);
    sender.rank = r;
    memcpy(sender.handle, receiver.handle, NCCL_HANDLE_SIZE);
    while (sender.comm == NULL || receiver.comm == NULL) {
        link_poll(r, &sender);
        link_poll(r, &receiver);
        usleep(100);
    }
    streams_run(r, streams, 2);
    link_close(r, &sender);
    link_close(r, &receiver);
    rank_close(r);
}

/* A listener without a connection is closed. So is a listener with a half-open connection. */
static void unused(struct rank *r)
{
    struct link link = {.from = 0, .to = 1};

    rank_open(r, r->options->version);
    for (int i = 0; i < 10; i++) {
        link = (struct link){.from = 0, .to = 1};
        if (r->rank == 1) {
            link_listen(r, &link);
            doing(r, "closeListen");
            must(r, net_close_listen(&r->net, link.listen_comm), "closeListen");
        }
    }
    rank_close(r);
}

struct left {
    int fds, threads;
    size_t memory;
};

static struct left look(void)
{
    const struct mallinfo2 m = mallinfo2();

    /* large blocks are mapped one by one, and mallinfo2 counts them separately */
    return (struct left){entries("/proc/self/fd"), entries("/proc/self/task"),
                         m.uordblks + m.hblkhd};
}

static void churn(struct rank *r)
{
    const int rounds = r->options->churn;
    struct left before = {0}, after = {0};

    rank_open(r, r->options->version);
    for (int i = 0; i < rounds; i++) {
        struct link links[2] = {{.from = 0, .to = 1}, {.from = 1, .to = 0}};
        links_open(r, links, 2);
        little(r, links, 2, 13 + (uint64_t)i);
        barrier(r);
        link_close(r, &links[0]);
        link_close(r, &links[1]);
        if (i == rounds / 5) {
            quarantine_drain(r);
            before = look();
        }
    }
    quarantine_drain(r);
    /* connections that still say goodbye may need a moment */
    const int made = rounds - rounds / 5 - 1;
    const size_t memory = before.memory + (size_t)made * 100 + 65536;
    for (int i = 0; i < moments(r); i++) {
        after = look();
        if (after.fds <= before.fds && after.threads <= before.threads && after.memory <= memory) {
            break;
        }
        sleep_ms(50);
    }
    if (after.fds > before.fds + made / 20) {
        found(r, "%d descriptors left by %d communicators", after.fds - before.fds, 2 * made);
    }
    if (after.threads > before.threads + 1) {
        found(r, "%d threads left by %d communicators", after.threads - before.threads, 2 * made);
    }
    if (after.memory > memory) {
        found(r, "%zu bytes left by %d communicators", after.memory - before.memory, 2 * made);
    }
    rank_close(r);
}

/* -- abort */

/* Requests are posted and none is matched. Both ends close, in turn. */
static void abort_case(struct rank *r)
{
    enum { COUNT = 6 };
    struct box boxes[COUNT];

    rank_open(r, r->options->version);
    for (int round = 0; round < 10; round++) {
        struct link links[2] = {{.from = 0, .to = 1}, {.from = 1, .to = 0}};
        links_open(r, links, 2);
        for (int i = 0; i < COUNT; i++) {
            struct link *link = &links[i % 2];
            const bool sends = link->listen_comm == NULL;
            struct net_receive receive = {.count = 1, .tags = {0}};
            void *request = NULL;
            boxes[i] = box_new(300000, sends ? SENT_BYTE : EMPTY_BYTE);
            receive.data[0] = box_data(&boxes[i]);
            receive.sizes[0] = boxes[i].capacity;
            /* in odd rounds rank 1 sends nothing, so rank 0's receives stay open */
            if (sends && (round % 2 == 0 || r->rank == 0)) {
                doing(r, "isend");
                must(r,
                     net_isend(&r->net, link->comm, box_data(&boxes[i]), boxes[i].capacity, 0, NULL,
                               &request),
                     "isend");
            } else if (!sends && round % 3 != 0) {
                doing(r, "irecv");
                must(r, net_irecv(&r->net, link->comm, &receive, &request), "irecv");
            }
        }
        barrier(r); /* calls may fail after the peer has closed */
        const int late = round % 2 == r->rank;
        sleep_ms(late ? 5 : 0);
        link_close(r, &links[r->rank]);
        link_close(r, &links[1 - r->rank]);
        for (int i = 0; i < COUNT; i++) {
            box_fill(&boxes[i], REUSED_BYTE);
        }
        barrier(r);
        sleep_ms(20);
        for (int i = 0; i < COUNT; i++) {
            if (!box_is(&boxes[i], REUSED_BYTE)) {
                found(r, "late write: into a buffer whose communicator was closed");
            }
            box_free(&boxes[i]);
        }
    }
    rank_close(r);
}

/* NCCL's order at an abort (recvProxyFree and sendProxyFree): it deregisters its buffers, frees them, and closes the communicator
 * last. The peer's thread goes on. A thread of the plugin may be at work meanwhile: it must not touch deregistered memory. */
static void abort_memory(struct rank *r)
{
    enum { SIZE = 300000 };

    rank_open(r, r->options->version);
    for (int round = 0; round < 6; round++) {
        struct link links[2] = {{.from = 0, .to = 1}, {.from = 1, .to = 0}};
        const bool sends = round % 2 == 1; /* rank 1, which aborts */
        struct link *link = &links[sends];
        char *memory = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        void *mhandle = NULL, *request = NULL;
        struct net_receive receive = {.count = 1, .sizes = {SIZE}, .data = {memory}};
        links_open(r, links, 2);
        must(r, net_register(&r->net, link->comm, memory, SIZE, &mhandle), "regMr");
        receive.mhandles[0] = mhandle;
        const bool sender = sends == (r->rank == 1);
        if (r->rank == 0) {
            barrier(r);
        }
        doing(r, "a request that is given up");
        enum nccl_result result =
            sender ? net_isend(&r->net, link->comm, memory, SIZE, 0, mhandle, &request)
                   : net_irecv(&r->net, link->comm, &receive, &request);
        if (r->rank == 1) {
            must(r, result, "isend or irecv");
            sleep_ms(20);
            doing(r, "between deregMr and close");
            must(r, net_deregister(&r->net, link->comm, mhandle), "deregMr");
            munmap(memory, SIZE);
            barrier(r);
            sleep_ms(100); /* other buffers are freed */
        } else {
            int done = 0;
            for (int i = 0; i < 1000 && result == NCCL_SUCCESS && request != NULL && !done; i++) {
                result = net_test(&r->net, request, &done, NULL);
                usleep(200);
            }
        }
        barrier(r);
        link_close(r, &links[r->rank]);
        link_close(r, &links[1 - r->rank]);
        if (r->rank == 0) {
            must(r, net_deregister(&r->net, link->comm, mhandle), "deregMr");
            munmap(memory, SIZE);
        }
        barrier(r);
    }
    rank_close(r);
}

/* -- fork and dlclose */

static void check_cloexec(struct rank *r)
{
    DIR *d = opendir("/proc/self/fd");
    const struct dirent *e;

    while (d != NULL && (e = readdir(d)) != NULL) {
        char path[300], target[64] = "";
        const int fd = (int)strtol(e->d_name, NULL, 10);
        bool mine = fd <= 2;
        for (int i = 0; i < r->ranks; i++) {
            mine |= fd == r->mail[i];
        }
        snprintf(path, sizeof(path), "/proc/self/fd/%s", e->d_name);
        if (e->d_name[0] == '.' || mine || readlink(path, target, sizeof(target) - 1) < 0) {
            continue;
        }
        const int flags = fcntl(fd, F_GETFD);
        if (strncmp(target, "socket:", 7) == 0 && flags >= 0 && (flags & FD_CLOEXEC) == 0) {
            found(r, "a socket stays open across exec");
        }
    }
    closedir(d);
}

/* As a data loader: a process is forked while the communicator lives. It stays and does nothing with it. */
static void fork_case(struct rank *r)
{
    struct link links[2] = {{.from = 0, .to = 1}, {.from = 1, .to = 0}};
    int status;

    rank_open(r, r->options->version);
    links_open(r, links, 2);
    little(r, links, 2, 14);
    check_cloexec(r);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 100 && getppid() != 1; i++) {
            sleep_ms(100);
        }
        _exit(0);
    }
    little(r, links, 2, 15);
    /* a child that ends by exit() runs the library's destructors */
    const pid_t other = fork();
    if (other == 0) {
        exit(7);
    }
    if (waitpid(other, &status, 0) != other || !WIFEXITED(status) || WEXITSTATUS(status) != 7) {
        found(r, "a forked child that calls exit() ended otherwise");
    }
    little(r, links, 2, 16);
    barrier(r);
    link_close(r, &links[0]);
    link_close(r, &links[1]);
    rank_close(r);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
}

static void unload(struct rank *r)
{
    const int threads = entries("/proc/self/task");

    for (int i = 0; i < 5; i++) {
        struct link links[2] = {{.from = 0, .to = 1}, {.from = 1, .to = 0}};
        rank_open(r, r->options->version);
        links_open(r, links, 2);
        little(r, links, 2, 17);
        barrier(r);
        link_close(r, &links[0]);
        link_close(r, &links[1]);
        rank_close(r);
        doing(r, "after dlclose");
        sleep_ms(30);
    }
    quarantine_drain(r);
    for (int i = 0; i < moments(r) && entries("/proc/self/task") > threads; i++) {
        sleep_ms(50);
    }
    if (entries("/proc/self/task") > threads) {
        found(r, "%d threads run on after dlclose", entries("/proc/self/task") - threads);
    }
}

const struct test_case life_cases[] = {
    {"early", 2, 15, early,
     "accept long before connect, connect long before accept: neither waits"},
    {"self", 1, 15, self, "both ends in one process and thread"},
    {"unused", 2, 15, unused, "listeners that nobody connects to"},
    {"churn", 2, 120, churn,
     "communicators made and destroyed: no descriptor, thread or memory left"},
    {"abort", 2, 30, abort_case,
     "closed with requests in flight: at once, and nothing written later"},
    {"abort-memory", 2, 30, abort_memory,
     "memory deregistered and freed before the communicator is closed: it isn't touched any more"},
    {"fork", 2, 30, fork_case, "a child forked while communicators live, and exec"},
    {"unload", 2, 30, unload, "dlclose and again"},
};
const int life_case_count = ARRAY_COUNT(life_cases);
