/* cases_trouble.c: peers that die or stop, strangers, no descriptors. Errors are allowed; a hang or a crash isn't. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host.h"

#define BUSY_MS 60000 /* how much later than promised on a busy machine */

static struct link links[LINKS_MAX];
static struct stream streams[LINKS_MAX];

static int all_pairs(int ranks)
{
    int n = 0;

    memset(links, 0, sizeof(links));
    for (int from = 0; from < ranks; from++) {
        for (int to = 0; to < ranks; to++) {
            if (from != to) {
                links[n++] = (struct link){.from = from, .to = to};
            }
        }
    }
    return n;
}

/* Rank 1 is killed in the middle: its peers get an error, and can close. */
static void killed(struct rank *r)
{
    const int count = all_pairs(r->ranks);
    const struct stream like = {.sizes = SIZES_MIXED, .count = 1000000, .seed = 21};

    rank_open(r, r->options->version);
    links_open(r, links, count);
    const int n = streams_of(r, links, count, &like, streams);
    barrier(r);
    if (r->rank == 1) {
        for (int i = 0; i < n; i++) {
            streams[i].count = streams[i].sends ? 200 : 150;
        }
        streams_run(r, streams, n);
        r->world->rank[1].dies = true;
        raise(SIGKILL);
    }
    int toward_dead = 0; /* only the links with rank 1 count here */
    for (int i = 0; i < n; i++) {
        if (streams[i].link->from == 1 || streams[i].link->to == 1) {
            streams[toward_dead++] = streams[i];
        }
    }
    int64_t begin = now_ms();
    enum nccl_result result = streams_run_to_error(r, streams, toward_dead);
    if (result == NCCL_SUCCESS || result == NCCL_INTERNAL_ERROR) {
        found(r, "the peer was killed: the plugin says %s", net_result_name(result));
    }
    if (now_ms() - begin > r->options->patience_s * 1000 + BUSY_MS) {
        found(r, "the peer was killed: it took %lld ms to say so", (long long)(now_ms() - begin));
    }
    for (int i = 0; i < count; i++) {
        if (links[i].from == r->rank || links[i].to == r->rank) {
            link_close(r, &links[i]);
        }
    }
    rank_close(r);
}

/* Rank 1 is stopped for two seconds and goes on: nothing is lost. */
static void stopped(struct rank *r)
{
    const int count = all_pairs(r->ranks);
    const struct stream like = {.sizes = SIZES_MIXED, .count = 1500, .seed = 22};
    pid_t pid = getpid();

    rank_open(r, r->options->version);
    links_open(r, links, count);
    const int n = streams_of(r, links, count, &like, streams);
    if (r->rank == 1) {
        mail_send(r, 0, &pid, sizeof(pid));
    } else {
        mail_receive(r, 1, &pid, sizeof(pid));
        if (fork() == 0) {
            for (int i = 0; i < 2; i++) {
                sleep_ms(30);
                kill(pid, SIGSTOP);
                sleep_ms(1000);
                kill(pid, SIGCONT);
            }
            _exit(0);
        }
    }
    streams_run(r, streams, n);
    quarantine_drain(r);
    if (r->rank == 0) {
        wait(NULL);
    }
    barrier(r);
    for (int i = 0; i < count; i++) {
        link_close(r, &links[i]);
    }
    rank_close(r);
}

/* -- strangers on the port */

/* The ports on which this process listens. */
static int listening_ports(uint16_t *ports, struct sockaddr_storage *addresses, int capacity)
{
    int count = 0;

    for (int fd = 3; fd < 1024 && count < capacity; fd++) {
        struct sockaddr_storage address;
        socklen_t size = sizeof(address), yes_size = sizeof(int);
        int yes = 0;
        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &yes, &yes_size) < 0 || !yes ||
            getsockname(fd, (struct sockaddr *)&address, &size) < 0 ||
            (address.ss_family != AF_INET && address.ss_family != AF_INET6)) {
            continue;
        }
        if (address.ss_family == AF_INET6) {
            struct sockaddr_in6 *six = (struct sockaddr_in6 *)&address;
            if (IN6_IS_ADDR_UNSPECIFIED(&six->sin6_addr)) {
                six->sin6_addr = in6addr_loopback;
            }
            ports[count] = six->sin6_port;
        } else {
            ports[count] = ((struct sockaddr_in *)&address)->sin_port;
        }
        addresses[count++] = address;
    }
    return count;
}

static void knock(const struct sockaddr_storage *address, int how, int *ret_fd)
{
    static const char web[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    const socklen_t size =
        address->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    char noise[4096];
    const int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    *ret_fd = -1;
    if (fd < 0 || connect(fd, (const struct sockaddr *)address, size) < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return;
    }
    pattern_fill((uint64_t)how * 99991, noise, sizeof(noise));
    switch (how % 5) {
    case 0: /* a scanner */
        close(fd);
        return;
    case 1:
        (void)!send(fd, web, sizeof(web), MSG_NOSIGNAL);
        break;
    case 2:
        (void)!send(fd, noise, sizeof(noise), MSG_NOSIGNAL);
        break;
    case 3: /* a part of a word */
        (void)!send(fd, noise, 3, MSG_NOSIGNAL);
        break;
    default: /* silence */
        break;
    }
    *ret_fd = fd;
}

static void strangers(struct rank *r)
{
    struct link link = {.from = 0, .to = 1};
    const struct stream like = {.sizes = SIZES_MIXED, .count = 200, .seed = 23};
    struct sockaddr_storage addresses[16];
    uint16_t ports[16];
    int fds[80], count = 0;

    rank_open(r, r->options->version);
    if (r->rank == 1) {
        link_listen(r, &link);
        const int listening = listening_ports(ports, addresses, 16);
        if (listening == 0) {
            found(r, "no listening socket found");
        }
        for (int i = 0; i < 40; i++) {
            knock(&addresses[i % listening], i, &fds[count++]);
            link_poll(r, &link);
        }
        mail_send(r, 0, link.handle, NCCL_HANDLE_SIZE);
    } else {
        link.rank = r;
        mail_receive(r, 1, link.handle, NCCL_HANDLE_SIZE);
    }
    while (link.comm == NULL) {
        link_poll(r, &link);
        usleep(200);
    }
    streams_run(r, streams, streams_of(r, &link, 1, &like, streams));
    barrier(r);
    for (int i = 0; i < count; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    link_close(r, &link);
    rank_close(r);
}

/* A handle of another plugin: an error, in good time. */
static void foreign_handle(struct rank *r)
{
    rank_open(r, r->options->version);
    for (int kind = 0; kind < 3; kind++) {
        struct link link = {.from = 0, .to = 0, .rank = r};
        enum nccl_result result = NCCL_SUCCESS;
        const int64_t begin = now_ms();
        if (kind > 0) {
            pattern_fill((uint64_t)kind, link.handle, NCCL_HANDLE_SIZE);
        }
        if (kind == 2) { /* looks like a socket address, but has no listener */
            const struct sockaddr_in nobody = {
                .sin_family = AF_INET, .sin_port = htons(9), .sin_addr = {htonl(INADDR_LOOPBACK)}};
            memcpy(link.handle, &nobody, sizeof(nobody));
        }
        doing(r, "connect with somebody else's handle");
        while (result == NCCL_SUCCESS && link.comm == NULL && now_ms() - begin < BUSY_MS) {
            result = net_connect(&r->net, r->context, 0, link.handle, &link.comm);
            usleep(1000);
        }
        if (result == NCCL_SUCCESS) {
            found(r, "connect with somebody else's handle: no error within 60 s");
        }
    }
    rank_close(r);
}

/* -- no descriptors left */

static void no_descriptors(struct rank *r)
{
    struct rlimit old;
    struct link link = {.from = 0, .to = 0, .rank = r};
    int fds[64], count = 0;

    rank_open(r, r->options->version);
    getrlimit(RLIMIT_NOFILE, &old);
    struct rlimit few = old;
    few.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &few);
    while (count < 64 && (fds[count] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        count++;
    }
    doing(r, "listen without descriptors");
    enum nccl_result result = net_listen(&r->net, r->context, 0, link.handle, &link.listen_comm);
    if (result == NCCL_SUCCESS) { /* it may have got a descriptor */
        void *comm = NULL;
        for (int i = 0; i < 200 && result == NCCL_SUCCESS && comm == NULL; i++) {
            doing(r, "connect without descriptors");
            result = net_connect(&r->net, r->context, 0, link.handle, &comm);
            usleep(1000);
        }
        if (comm != NULL) {
            (void)net_close_send(&r->net, comm);
        }
        (void)net_close_listen(&r->net, link.listen_comm);
    }
    while (count > 0) {
        close(fds[--count]);
    }
    setrlimit(RLIMIT_NOFILE, &old);
    /* now it works again */
    struct link receiver = {.from = 0, .to = 0}, sender = {.from = 0, .to = 0, .rank = r};
    struct stream two[2] = {{.link = &sender, .sends = true, .seed = 24, .count = 20},
                            {.link = &receiver, .seed = 24, .count = 20}};
    link_listen(r, &receiver);
    memcpy(sender.handle, receiver.handle, NCCL_HANDLE_SIZE);
    while (sender.comm == NULL || receiver.comm == NULL) {
        link_poll(r, &sender);
        link_poll(r, &receiver);
        usleep(100);
    }
    streams_run(r, two, 2);
    link_close(r, &sender);
    link_close(r, &receiver);
    rank_close(r);
}

const struct test_case trouble_cases[] = {
    {"killed", 3, 90, killed, "kill -9 of a rank: an error at its peers, in good time"},
    {"stopped", 2, 40, stopped, "SIGSTOP of a rank for a second, twice: nothing lost"},
    {"strangers", 2, 30, strangers, "scanners, garbage and silence on the port"},
    {"foreign-handle", 1, 200, foreign_handle, "a handle of another plugin: an error"},
    {"no-descriptors", 1, 30, no_descriptors, "no file descriptors left, and again some"},
};
const int trouble_case_count = ARRAY_COUNT(trouble_cases);
