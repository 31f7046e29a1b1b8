/* meet.c: ranks meet over stream sockets, in a star with rank 0 at its centre. It is out of band, as NCCL's bootstrap is. Calls
 * block, because nothing is measured meanwhile. The traffic grows with the number of ranks, not with its square: rank 0 adds up
 * figures, and forwards each letter to one rank.
 *
 * Rank 0 and each other rank prove to each other that they have the same secret. A proof is a keyed hash of both ranks' random
 * numbers and of both ends of their connection. The secret itself is never sent, and a forwarded proof proves nothing. So with a
 * secret, no address may be translated between ranks. Without a secret, the key and the ends are all zeros. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "app/perf/perf.h"

#define MEET_MAGIC                                                                                 \
    0x666f6c706d656534ull /* the last byte changes whenever the messages or the proof change */
#define GUEST_NS     2000000000LL /* the time that a guest has to prove itself */
#define STRANGER_MAX 64           /* waiting guests, beside the expected ranks */
#define OTHERS_MAX   256          /* other descriptors that a process has */

enum { NONCE_SIZE = 16, END_SIZE = 18, PROOF_SIZE = crypto_shorthash_siphashx24_BYTES };
_Static_assert(crypto_shorthash_siphashx24_KEYBYTES == MEET_SECRET_SIZE, "the secret is the key");

struct hello {
    uint64_t magic;
    int32_t rank, ranks;
    uint8_t nonce[NONCE_SIZE];
};
struct welcome {
    uint8_t nonce[NONCE_SIZE], proof[PROOF_SIZE];
};

/* A process that has connected and has not yet proved to be a rank. */
struct guest {
    int fd;
    bool welcomed;
    size_t got; /* bytes of hello, then of proof */
    struct hello hello;
    struct welcome welcome;
    uint8_t proof[PROOF_SIZE];
    int64_t until_ns;
};

struct place {
    struct sockaddr_storage address;
    socklen_t size;
    bool is_unix;
};

static int find_place(const char *where, struct place *ret)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG};
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
    int r = getaddrinfo(host, colon + 1, &hints, &found);
    /* a host whose only address of a family is loopback's counts as one without that family */
    if (r != 0) {
        hints.ai_flags = 0;
        r = getaddrinfo(host, colon + 1, &hints, &found);
    }
    if (r != 0) {
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

/* Address and port; zeros for a local socket. */
static void put_end(bool known, const struct sockaddr_storage *s, uint8_t to[END_SIZE])
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)s;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)s;

    memset(to, 0, END_SIZE);
    if (known && s->ss_family == AF_INET) {
        memset(to + 10, 0xff, 2); /* as in an IPv6 socket */
        memcpy(to + 12, &four->sin_addr, 4);
        memcpy(to + 16, &four->sin_port, 2);
    } else if (known && s->ss_family == AF_INET6) {
        memcpy(to, &six->sin6_addr, 16);
        memcpy(to + 16, &six->sin6_port, 2);
    }
}

/* The proof for this rank's connection to the other one: of the leader, or of the rank that comes to it. */
static void prove(const struct meet *m, int fd, bool leads, const struct hello *hello,
                  const uint8_t *nonce, uint8_t ret_proof[PROOF_SIZE])
{
    uint8_t text[sizeof(*hello) + NONCE_SIZE + 2 * END_SIZE + 1];
    uint8_t *ends = text + sizeof(*hello) + NONCE_SIZE;
    struct sockaddr_storage own = {0}, other = {0};
    socklen_t own_size = sizeof(own), other_size = sizeof(other);

    memcpy(text, hello, sizeof(*hello));
    memcpy(text + sizeof(*hello), nonce, NONCE_SIZE);
    /* rank 0's end comes first */
    put_end(m->has_secret && getsockname(fd, (struct sockaddr *)&own, &own_size) == 0, &own,
            ends + (m->rank == 0 ? 0 : END_SIZE));
    put_end(m->has_secret && getpeername(fd, (struct sockaddr *)&other, &other_size) == 0, &other,
            ends + (m->rank == 0 ? END_SIZE : 0));
    text[sizeof(text) - 1] = leads;
    crypto_shorthash_siphashx24(ret_proof, text, sizeof(text), m->secret);
}

static int draw(uint8_t nonce[NONCE_SIZE])
{
    return getrandom(nonce, NONCE_SIZE, 0) == NONCE_SIZE ? 0 : -EIO;
}

/* ---- rank 0 ---- */

static void turn_away(struct guest *g)
{
    close(g->fd);
    g->fd = -1;
}

static int welcome(struct meet *m, struct guest *g)
{
    const struct hello *h = &g->hello;

    m->saw_other |= h->magic != MEET_MAGIC && h->magic >> 8 == MEET_MAGIC >> 8;
    if (h->magic != MEET_MAGIC || h->ranks != m->ranks || h->rank < 1 || h->rank >= m->ranks ||
        m->sockets[h->rank] >= 0 || draw(g->welcome.nonce) < 0) {
        return -EPERM;
    }
    prove(m, g->fd, true, h, g->welcome.nonce, g->welcome.proof);
    g->welcomed = true;
    g->got = 0;
    return send(g->fd, &g->welcome, sizeof(g->welcome), MSG_NOSIGNAL | MSG_DONTWAIT) ==
                   sizeof(g->welcome)
               ? 0
               : -EPERM;
}

/* 1: the guest is one of our ranks and has its place. 0: it may still be one. */
static int hear(struct meet *m, struct guest *g)
{
    const uint8_t taken = 1;
    uint8_t expected[PROOF_SIZE];
    char *to = g->welcomed ? (char *)g->proof : (char *)&g->hello;
    const size_t size = g->welcomed ? sizeof(g->proof) : sizeof(g->hello);
    const ssize_t n = recv(g->fd, to + g->got, size - g->got, MSG_DONTWAIT);

    if (n <= 0) {
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -ECONNRESET;
    }
    g->got += (size_t)n;
    if (g->got < size) {
        return 0;
    }
    if (!g->welcomed) {
        return welcome(m, g);
    }
    prove(m, g->fd, false, &g->hello, g->welcome.nonce, expected);
    if (sodium_memcmp(expected, g->proof, sizeof(expected)) != 0 ||
        m->sockets[g->hello.rank] >= 0 ||
        send(g->fd, &taken, sizeof(taken), MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof(taken)) {
        return -EPERM;
    }
    m->sockets[g->hello.rank] = g->fd;
    g->fd = -1;
    return 1;
}

static void take_guest(int listener, struct guest *guests, int room, int64_t now)
{
    const int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    struct guest *place = &guests[0];

    if (fd < 0) {
        return;
    }
    /* if no place is free, the oldest guest is dropped */
    for (int i = 0; i < room && place->fd >= 0; i++) {
        place = guests[i].fd < 0 || guests[i].until_ns < place->until_ns ? &guests[i] : place;
    }
    if (place->fd >= 0) {
        turn_away(place);
    }
    *place = (struct guest){.fd = fd, .until_ns = now + GUEST_NS};
}

static int hear_all(struct meet *m, struct guest *guests, const struct pollfd *polls, int room)
{
    const int64_t now = perf_now_ns();
    int came = 0;

    for (int i = 0; i < room; i++) {
        int r = 0;
        if (guests[i].fd >= 0 && guests[i].fd == polls[i].fd && polls[i].revents != 0) {
            r = hear(m, &guests[i]);
        } else if (guests[i].fd >= 0 && now > guests[i].until_ns) {
            r = -ETIMEDOUT;
        }
        if (r < 0) {
            turn_away(&guests[i]);
        }
        came += r > 0;
    }
    return came;
}

static int wait_for_all(struct meet *m, int listener, int64_t end_ns)
{
    const int room = m->ranks + STRANGER_MAX;
    struct guest *guests = calloc((size_t)room, sizeof(*guests));
    struct pollfd *polls = calloc((size_t)room + 1, sizeof(*polls));
    int r = guests == NULL || polls == NULL ? -ENOMEM : 0, missing = m->ranks - 1;

    for (int i = 0; r == 0 && i < room; i++) {
        guests[i].fd = -1;
    }
    while (r == 0 && missing > 0) {
        const int64_t left_ms = (end_ns - perf_now_ns()) / 1000000;
        for (int i = 0; i < room; i++) {
            polls[i] = (struct pollfd){guests[i].fd, POLLIN, 0};
        }
        polls[room] = (struct pollfd){listener, POLLIN, 0};
        if (left_ms <= 0) {
            r = m->saw_other ? -EPROTONOSUPPORT : -ETIMEDOUT;
            break;
        }
        if (poll(polls, (nfds_t)room + 1, left_ms < 500 ? (int)left_ms : 500) < 0) {
            continue;
        }
        missing -= hear_all(m, guests, polls, room);
        if (polls[room].revents != 0) {
            take_guest(listener, guests, room, perf_now_ns());
        }
    }
    for (int i = 0; guests != NULL && i < room; i++) {
        if (guests[i].fd >= 0) {
            turn_away(&guests[i]);
        }
    }
    free(guests);
    free(polls);
    return r;
}

/* A shell sets the limit to 1,024 and lets a process raise it. */
static int allow_descriptors(int ranks)
{
    const rlim_t needed = (rlim_t)ranks + STRANGER_MAX + OTHERS_MAX;
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0) {
        return -errno;
    }
    if (limit.rlim_cur >= needed) {
        return 0;
    }
    limit.rlim_cur = needed;
    return limit.rlim_max < needed ? -EMFILE : setrlimit(RLIMIT_NOFILE, &limit) < 0 ? -errno : 0;
}

static int lead(struct meet *m, const struct place *place, int64_t end_ns)
{
    const int one = 1;
    int r = allow_descriptors(m->ranks);

    if (r < 0) {
        return r;
    }
    const int fd = socket(place->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    if (place->is_unix) {
        unlink(((const struct sockaddr_un *)&place->address)->sun_path);
    } else {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    }
    if (bind(fd, (const struct sockaddr *)&place->address, place->size) < 0 ||
        listen(fd, SOMAXCONN) < 0) { /* strangers take no place in the queue of ranks */
        r = -errno;
    }
    r = r < 0 ? r : wait_for_all(m, fd, end_ns);
    close(fd);
    if (place->is_unix) {
        unlink(((const struct sockaddr_un *)&place->address)->sun_path);
    }
    return r;
}

/* ---- the others ---- */

static void wait_most(int fd, int64_t s)
{
    const struct timeval most = {s, 0};

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
}

/* -EPERM: the other end does not lead this meeting. -ECONNREFUSED: it closed the connection instead of answering. A proof may
 * arrive too late, so a rank has joined only when rank 0 has confirmed it. */
static int introduce(struct meet *m, int fd, int64_t end_ns)
{
    struct hello hello = {.magic = MEET_MAGIC, .rank = m->rank, .ranks = m->ranks};
    struct welcome answer;
    uint8_t proof[PROOF_SIZE], taken;
    int r = draw(hello.nonce);

    wait_most(fd, 2);
    r = r < 0 ? r : move_all(fd, &hello, sizeof(hello), true);
    r = r < 0 ? r : move_all(fd, &answer, sizeof(answer), false);
    r = r == -ECONNRESET ? -ECONNREFUSED : r;
    if (r == 0) {
        prove(m, fd, true, &hello, answer.nonce, proof);
        r = sodium_memcmp(proof, answer.proof, sizeof(proof)) == 0 ? 0 : -EPERM;
    }
    if (r == 0) {
        prove(m, fd, false, &hello, answer.nonce, proof);
        r = move_all(fd, proof, sizeof(proof), true);
    }
    if (r == 0) {
        const int64_t left_s = (end_ns - perf_now_ns()) / 1000000000;
        wait_most(fd, left_s > 0 ? left_s : 1);
        r = move_all(fd, &taken, sizeof(taken), false);
    }
    wait_most(fd, 0);
    return r;
}

static int follow(struct meet *m, const struct place *place, int64_t end_ns)
{
    bool refused = false;

    while (perf_now_ns() < end_ns) {
        const int fd = socket(place->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) {
            return -errno;
        }
        if (connect(fd, (const struct sockaddr *)&place->address, place->size) == 0) {
            const int r = introduce(m, fd, end_ns);
            if (r == 0) {
                m->sockets[0] = fd;
                return 0;
            }
            refused = refused || r == -ECONNREFUSED;
        }
        close(fd);
        usleep(20000);
    }
    return refused ? -ECONNREFUSED : -ETIMEDOUT;
}

int meet_open(struct meet *m, const char *where, int rank, int ranks, int timeout_s,
              const uint8_t *secret)
{
    const int64_t end_ns = perf_now_ns() + timeout_s * 1000000000LL;
    struct place place;

    *m = (struct meet){.rank = rank, .ranks = ranks, .sockets = calloc((size_t)ranks, sizeof(int))};
    if (m->sockets == NULL) {
        return -ENOMEM;
    }
    if (secret != NULL) {
        memcpy(m->secret, secret, sizeof(m->secret));
        m->has_secret = true;
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

/* ---- together ---- */

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

int meet_sum(struct meet *m, const double *mine, int count, double *ret_sum, double *ret_max)
{
    double both[2][MEET_SUM_MAX] = {{0}}, one[MEET_SUM_MAX];
    const size_t size = sizeof(double) * (size_t)count;
    int r = count > MEET_SUM_MAX ? -EINVAL : 0;

    memcpy(both[0], mine, r < 0 ? 0 : size);
    memcpy(both[1], mine, r < 0 ? 0 : size);
    if (m->rank != 0) {
        r = r < 0 ? r : move_all(m->sockets[0], both[0], size, true);
        r = r < 0 ? r : move_all(m->sockets[0], both, sizeof(both), false);
    }
    for (int i = 1; m->rank == 0 && i < m->ranks && r == 0; i++) {
        r = move_all(m->sockets[i], one, size, false);
        for (int k = 0; r == 0 && k < count; k++) {
            both[0][k] += one[k];
            both[1][k] = one[k] > both[1][k] ? one[k] : both[1][k];
        }
    }
    for (int i = 1; m->rank == 0 && i < m->ranks && r == 0; i++) {
        r = move_all(m->sockets[i], both, sizeof(both), true);
    }
    for (int k = 0; r == 0 && k < count; k++) {
        ret_sum[k] = both[0][k];
        ret_max[k] = both[1][k];
    }
    return r;
}

int meet_barrier(struct meet *m)
{
    double mine = 0, sum, max;

    return meet_sum(m, &mine, 1, &sum, &max);
}

/* ---- letters ---- */

struct post {
    struct meet_letter *letters;
    int count, capacity;
};

static int grow(struct post *p, int count)
{
    while (p->count + count > p->capacity) {
        p->capacity = p->capacity == 0 ? 256 : 2 * p->capacity;
        void *larger = realloc(p->letters, sizeof(*p->letters) * (size_t)p->capacity);
        if (larger == NULL) {
            return -ENOMEM;
        }
        p->letters = larger;
    }
    return 0;
}

/* Appends the letters of one rank. From here on, `rank` is the writer, and `to` the destination. */
static int collect(struct meet *m, struct post *p, int from, const struct meet_letter *out,
                   int count)
{
    int r = 0;

    if (from > 0) {
        r = move_all(m->sockets[from], &count, sizeof(count), false);
        r = r < 0 ? r : count < 0 || count > m->ranks * PERF_CHANNEL_MAX ? -EPROTO : 0;
    }
    r = r < 0 ? r : grow(p, count);
    if (r == 0 && count > 0) {
        struct meet_letter *to = &p->letters[p->count];
        const size_t size = sizeof(*to) * (size_t)count;
        if (from > 0) {
            r = move_all(m->sockets[from], to, size, false);
        } else {
            memcpy(to, out, size);
        }
    }
    for (int i = 0; r == 0 && i < count; i++) {
        struct meet_letter *l = &p->letters[p->count++];
        l->from = from;
        r = l->to < 0 || l->to >= m->ranks ? -EPROTO : 0;
    }
    return r;
}

static int by_receiver(const void *a, const void *b)
{
    const struct meet_letter *x = a, *y = b;

    return (x->to > y->to) - (x->to < y->to);
}

static int deliver(struct meet *m, const struct post *p, struct meet_letter *in, int expected)
{
    int at = 0, r = 0;

    for (int rank = 0; rank < m->ranks && r == 0; rank++) {
        const struct meet_letter *first = &p->letters[at];
        int count = 0;
        for (; at < p->count && p->letters[at].to == rank; at++) {
            count++;
        }
        const size_t size = sizeof(*first) * (size_t)count;
        if (rank == 0) {
            r = count == expected ? 0 : -EPROTO;
            memcpy(in, first, r < 0 ? 0 : size);
        } else {
            r = move_all(m->sockets[rank], &count, sizeof(count), true);
            r = r < 0 || count == 0
                    ? r
                    : move_all(m->sockets[rank], (void *)(uintptr_t)first, size, true);
        }
    }
    return r;
}

int meet_post(struct meet *m, const struct meet_letter *out, int count, struct meet_letter *in,
              int expected)
{
    struct post p = {0};
    int r = grow(&p, 1), came = 0;

    if (m->rank != 0) {
        r = r < 0 ? r : move_all(m->sockets[0], &count, sizeof(count), true);
        r = r < 0 || count == 0 ? r
                                : move_all(m->sockets[0], (void *)(uintptr_t)out,
                                           sizeof(*out) * (size_t)count, true);
        r = r < 0 ? r : move_all(m->sockets[0], &came, sizeof(came), false);
        r = r < 0 ? r : came == expected ? 0 : -EPROTO;
        r = r < 0 || came == 0 ? r : move_all(m->sockets[0], in, sizeof(*in) * (size_t)came, false);
    } else {
        for (int i = 0; i < m->ranks && r == 0; i++) {
            r = collect(m, &p, i, out, count);
        }
        if (r == 0) {
            qsort(p.letters, (size_t)p.count, sizeof(*p.letters), by_receiver);
            r = deliver(m, &p, in, expected);
        }
    }
    free(p.letters);
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
