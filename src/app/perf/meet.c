/* meet.c: a star of stream sockets round rank 0: out of band, as NCCL's bootstrap is. Blocking: nothing
 * is measured while ranks meet. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/perf/perf.h"

#define MEET_MAGIC 0x666f6c706d656574ull

struct join {
    uint64_t magic;
    int32_t rank, ranks;
};

struct place {
    struct sockaddr_storage address;
    socklen_t size;
    bool is_unix;
};

static int find_place(const char *where, struct place *ret)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
    struct sockaddr_un *local = (struct sockaddr_un *)&ret->address;
    struct addrinfo *found;
    const char *colon = strrchr(where, ':');
    char host[128];

    *ret = (struct place){0};
    if (strncmp(where, "unix:", 5) == 0) {
        local->sun_family = AF_UNIX;
        ret->is_unix = true;
        ret->size = sizeof(*local);
        return (size_t)snprintf(local->sun_path, sizeof(local->sun_path), "%s", where + 5) <
                       sizeof(local->sun_path)
                   ? 0
                   : -ENAMETOOLONG;
    }
    if (colon == NULL || (size_t)(colon - where) >= sizeof(host)) {
        return -EINVAL;
    }
    snprintf(host, sizeof(host), "%.*s", (int)(colon - where), where);
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
        return -EADDRNOTAVAIL;
    }
    memcpy(&ret->address, found->ai_addr, found->ai_addrlen);
    ret->size = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int move_all(int fd, void *data, size_t size, bool out)
{
    for (size_t at = 0; at < size;) {
        const ssize_t n = out ? send(fd, (char *)data + at, size - at, MSG_NOSIGNAL)
                              : recv(fd, (char *)data + at, size - at, 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n == 0 ? -ECONNRESET : -errno;
        }
        at += (size_t)n;
    }
    return 0;
}

static int wait_for_all(struct meet *m, int listener, int64_t end_ns)
{
    for (int missing = m->ranks - 1; missing > 0;) {
        struct pollfd p = {listener, POLLIN, 0};
        const int64_t left_ms = (end_ns - perf_now_ns()) / 1000000;
        struct join join;
        if (left_ms <= 0 || poll(&p, 1, (int)left_ms) == 0) {
            return -ETIMEDOUT;
        }
        const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd < 0) {
            continue;
        }
        const struct timeval patience = {2, 0};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
        if (move_all(fd, &join, sizeof(join), false) < 0 || join.magic != MEET_MAGIC ||
            join.ranks != m->ranks || join.rank < 1 || join.rank >= m->ranks ||
            m->sockets[join.rank] >= 0) {
            close(fd); /* a stranger */
            continue;
        }
        const struct timeval none = {0, 0};
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
        m->sockets[join.rank] = fd;
        missing--;
    }
    return 0;
}

static int lead(struct meet *m, const struct place *place, int64_t end_ns)
{
    const int one = 1;
    const int fd = socket(place->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int r = 0;

    if (fd < 0) {
        return -errno;
    }
    if (place->is_unix) {
        unlink(((const struct sockaddr_un *)&place->address)->sun_path);
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    }
    if (bind(fd, (const struct sockaddr *)&place->address, place->size) < 0 ||
        listen(fd, m->ranks) < 0) {
        r = -errno;
    }
    r = r < 0 ? r : wait_for_all(m, fd, end_ns);
    close(fd);
    if (place->is_unix) {
        unlink(((const struct sockaddr_un *)&place->address)->sun_path);
    }
    return r;
}

static int follow(struct meet *m, const struct place *place, int64_t end_ns)
{
    struct join join = {MEET_MAGIC, m->rank, m->ranks};

    while (perf_now_ns() < end_ns) {
        const int fd = socket(place->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            return -errno;
        }
        if (connect(fd, (const struct sockaddr *)&place->address, place->size) == 0) {
            m->sockets[0] = fd;
            return move_all(fd, &join, sizeof(join), true);
        }
        close(fd);
        usleep(20000);
    }
    return -ETIMEDOUT;
}

int meet_open(struct meet *m, const char *where, int rank, int ranks, int timeout_s)
{
    const int64_t end_ns = perf_now_ns() + timeout_s * 1000000000LL;
    struct place place;

    *m = (struct meet){rank, ranks, calloc((size_t)ranks, sizeof(int))};
    if (m->sockets == NULL) {
        return -ENOMEM;
    }
    for (int i = 0; i < ranks; i++) {
        m->sockets[i] = -1;
    }
    if (ranks == 1) {
        return 0;
    }
    int r = find_place(where, &place);
    if (r < 0) {
        return r;
    }
    r = rank == 0 ? lead(m, &place, end_ns) : follow(m, &place, end_ns);
    for (int i = 0; i < ranks && !place.is_unix; i++) {
        const int one = 1;
        if (m->sockets[i] >= 0) {
            setsockopt(m->sockets[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        }
    }
    return r;
}

int meet_exchange(struct meet *m, const void *mine, size_t size, void *all)
{
    char *place = all;
    int r = 0;

    memcpy(place + (size_t)m->rank * size, mine, size);
    if (m->rank != 0) {
        r = move_all(m->sockets[0], place + (size_t)m->rank * size, size, true);
        return r < 0 ? r : move_all(m->sockets[0], all, size * (size_t)m->ranks, false);
    }
    for (int i = 1; i < m->ranks && r == 0; i++) {
        r = move_all(m->sockets[i], place + (size_t)i * size, size, false);
    }
    for (int i = 1; i < m->ranks && r == 0; i++) {
        r = move_all(m->sockets[i], all, size * (size_t)m->ranks, true);
    }
    return r;
}

int meet_barrier(struct meet *m)
{
    char all[PERF_RANK_MAX], mine = 1;

    return meet_exchange(m, &mine, 1, all);
}

/* Arrivals by the clock of rank 0. */
static int await_all(struct meet *m, int64_t *at_ns)
{
    struct pollfd *polls = calloc((size_t)m->ranks, sizeof(*polls));
    int r = polls == NULL ? -ENOMEM : 0;

    for (int i = 0; r == 0 && i < m->ranks; i++) {
        polls[i] = (struct pollfd){i == 0 ? -1 : m->sockets[i], POLLIN, 0};
    }
    for (int missing = m->ranks - 1; r == 0 && missing > 0;) {
        r = poll(polls, (nfds_t)m->ranks, -1) < 0 && errno != EINTR ? -errno : 0;
        const int64_t now = perf_now_ns();
        for (int i = 1; r == 0 && i < m->ranks; i++) {
            char byte;
            if (polls[i].fd >= 0 && polls[i].revents != 0) {
                r = move_all(polls[i].fd, &byte, 1, false);
                at_ns[i] = now;
                polls[i].fd = -1;
                missing--;
            }
        }
    }
    free(polls);
    return r;
}

static int by_time(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

struct late {
    int32_t rank;
    int64_t after_ns;
};

static int find_last(struct meet *m, struct late *ret)
{
    int64_t at_ns[PERF_RANK_MAX] = {perf_now_ns()};
    const int r = await_all(m, at_ns);

    *ret = (struct late){0};
    for (int i = 1; r == 0 && i < m->ranks; i++) {
        ret->rank = at_ns[i] > at_ns[ret->rank] ? i : ret->rank;
    }
    const int64_t last_ns = at_ns[ret->rank];
    qsort(at_ns, (size_t)m->ranks, sizeof(*at_ns), by_time);
    ret->after_ns = last_ns - at_ns[m->ranks / 2];
    return r;
}

int meet_last(struct meet *m, int *ret_rank, int64_t *ret_after_ns)
{
    struct late late = {0};
    const char byte = 1;
    int r = 0;

    if (m->rank == 0) {
        r = find_last(m, &late);
    } else {
        r = move_all(m->sockets[0], (void *)(uintptr_t)&byte, 1, true);
        r = r < 0 ? r : move_all(m->sockets[0], &late, sizeof(late), false);
    }
    for (int i = 1; m->rank == 0 && i < m->ranks && r == 0; i++) {
        r = move_all(m->sockets[i], &late, sizeof(late), true);
    }
    *ret_rank = late.rank;
    *ret_after_ns = late.after_ns;
    return r;
}

void meet_close(struct meet *m)
{
    for (int i = 0; m->sockets != NULL && i < m->ranks; i++) {
        if (m->sockets[i] >= 0) {
            close(m->sockets[i]);
        }
    }
    free(m->sockets);
    *m = (struct meet){0};
}
