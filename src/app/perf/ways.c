/* ways.c: traces paths, sends trains of packets, and finds the hop where a train was slowed down. */
#include "app/perf/ways.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <math.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "app/perf/udp.h"

enum {
    FLOWS = 16, /* ports: with four paths, 99 % of them meet all four */
    TRIES = 3,  /* trains on each path */
    TRAIN = 100,
    SKIPPED = TRAIN / 4, /* shapers let the first packets pass at once */
    PAYLOAD = 1400,
    HEADERS = 42, /* of Ethernet, IPv4 and UDP */
    ROOM = 400 << 10,
    QUIET_NS = 60000000, /* without a packet for so long, the train is over */
    ANSWER_NS = 40000000,
    AGAIN = 4,        /* trains to each hop at most: the shortest of them met no other train */
    PASSES = 2,       /* trains to each hop at least, as long as LEAST_TRAIN allows */
    LEAST_TRAIN = 40, /* of fewer, most may be those that shapers let pass at once */
    APART_US = 10000, /* between them, when the last link has sent the one before */
    MAGIC = 0x77617973
};
#define SLOW_SHARE 0.8  /* of the NIC's best rate, equal to core/audit/perf.h */
#define FASTEST    1e13 /* bytes a second: no NIC is faster */
#define LONGER     1.4  /* a train that becomes so much longer at a link was slowed by it */

struct packet {
    uint32_t magic;
    uint16_t flow, round, number; /* number: packets with TRAIN or more expire on their way */
    uint16_t hop;
    uint8_t rest[PAYLOAD - 12];
};

struct card {
    uint8_t address[16];
    uint16_t ports[FLOWS]; /* in network byte order */
};

struct flow {
    int fd, hop_count;
    char hops[WAYS_HOPS][46];
    double told; /* bytes a second that arrived here of the other rank's flow with this number */
};

struct ways {
    struct meet *meet;
    int family;
    struct flow flows[FLOWS];
    int order[WAYS_MOST], count; /* the flows that are measured */
    uint16_t round;
};

/* ---- sockets ---- */

static int open_flow(struct ways *w, int k, struct sockaddr_storage own, struct card *card)
{
    const int one = 1, room = ROOM;
    socklen_t size = sizeof(own);
    struct flow *f = &w->flows[k];

    f->fd = socket(w->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (f->fd < 0) {
        return -errno;
    }
    *udp_port(&own) = 0;
    setsockopt(f->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    setsockopt(f->fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
    if (setsockopt(f->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one)) < 0 ||
        (w->family == AF_INET
             ? setsockopt(f->fd, IPPROTO_IP, IP_RECVERR, &one, sizeof(one))
             : setsockopt(f->fd, IPPROTO_IPV6, IPV6_RECVERR, &one, sizeof(one))) < 0 ||
        bind(f->fd, (struct sockaddr *)&own, udp_size(w->family)) < 0 ||
        getsockname(f->fd, (struct sockaddr *)&own, &size) < 0) {
        return -errno;
    }
    card->ports[k] = *udp_port(&own);
    memcpy(card->address, udp_bytes(&own), w->family == AF_INET ? 4 : 16);
    return 0;
}

/* Opens the flows: flow k goes from this rank's port k to the other rank's port k. */
static int open_flows(struct ways *w, const char *nic, const struct sockaddr_storage *leader)
{
    struct card cards[2] = {0}, mine = {0};
    struct sockaddr_storage known = *leader, own = {0};
    int r = udp_address(nic, w->family, &own);

    /* the interface may have several addresses; rank 1 uses this one */
    own = r == 0 && w->meet->rank == 0 ? known : own;
    for (int k = 0; k < FLOWS && r == 0; k++) {
        r = open_flow(w, k, own, &mine);
    }
    /* a rank that failed still reports a card without ports, so that the other rank need not wait */
    const int met = meet_exchange(w->meet, &mine, sizeof(mine), cards);
    struct card *other = &cards[1 - w->meet->rank];
    r = met < 0 ? met : r;
    if (w->meet->rank == 1) {
        memcpy(other->address, udp_bytes(&known), w->family == AF_INET ? 4 : 16);
    } else if (r == 0 && other->ports[0] != 0 &&
               !udp_may_be_nic(w->family, mine.address, other->address)) {
        r = -EBADMSG;
    }
    for (int k = 0; k < FLOWS && r == 0; k++) {
        memcpy(udp_bytes(&own), other->address, w->family == AF_INET ? 4 : 16);
        *udp_port(&own) = other->ports[k];
        r = other->ports[k] == 0 ? -ENOTCONN : 0;
        r = r == 0 && connect(w->flows[k].fd, (struct sockaddr *)&own, udp_size(w->family)) < 0
                ? -errno
                : r;
    }
    return r;
}

/* ---- packets ---- */

/* Sends one packet. The call may return the error of an earlier packet instead: then it is repeated. */
static int send_one(struct ways *w, int k, uint16_t number, int hop)
{
    struct packet packet = {MAGIC, (uint16_t)k, w->round, number, (uint16_t)hop, {0}};
    struct iovec part = {&packet, sizeof(packet)};
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

    if (hop > 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = w->family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
        c->cmsg_type = w->family == AF_INET ? IP_TTL : IPV6_HOPLIMIT;
        c->cmsg_len = CMSG_LEN(sizeof(hop));
        memcpy(CMSG_DATA(c), &hop, sizeof(hop));
    }
    for (int i = 0; i < 200; i++) {
        struct pollfd p = {w->flows[k].fd, POLLOUT, 0};
        if (sendmsg(w->flows[k].fd, &message, MSG_NOSIGNAL) >= 0) {
            return 0;
        }
        if (errno == EAGAIN || errno == ENOBUFS) {
            (void)poll(&p, 1, 1);
        }
    }
    return -EIO;
}

/* 1: a router answered that a packet of this flow expired there. 0: another error. Negative: nothing is waiting. */
static int read_answer(struct ways *w, int k, char address[46], int *ret_hop)
{
    struct packet quoted = {0};
    struct iovec part = {&quoted, sizeof(quoted)};
    char control[512];
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = 512};
    const ssize_t n = recvmsg(w->flows[k].fd, &message, MSG_ERRQUEUE | MSG_DONTWAIT);

    for (struct cmsghdr *c = n >= 0 ? CMSG_FIRSTHDR(&message) : NULL; c != NULL;
         c = CMSG_NXTHDR(&message, c)) {
        struct sock_extended_err error;
        if ((c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_RECVERR) &&
            (c->cmsg_level != IPPROTO_IPV6 || c->cmsg_type != IPV6_RECVERR)) {
            continue;
        }
        memcpy(&error, CMSG_DATA(c), sizeof(error));
        const bool expired =
            (error.ee_origin == SO_EE_ORIGIN_ICMP && error.ee_type == ICMP_TIME_EXCEEDED) ||
            (error.ee_origin == SO_EE_ORIGIN_ICMP6 && error.ee_type == ICMP6_TIME_EXCEEDED);
        struct sockaddr_storage by;
        memcpy(&by, CMSG_DATA(c) + sizeof(error), udp_size(w->family));
        /* 0: the answer quotes too little of the packet */
        *ret_hop = n >= 12 && quoted.magic == MAGIC ? quoted.hop : 0;
        return expired && inet_ntop(w->family, udp_bytes(&by), address, 46) != NULL;
    }
    return n >= 0 ? 0 : -errno;
}

/* Waits for the answer of hop `hop`, and ignores other hops' answers if they can be recognised. False: none in time. */
static bool await_answer(struct ways *w, int k, int hop, int64_t until, char address[46])
{
    for (;;) {
        char by[46];
        int of = 0;
        const int r = read_answer(w, k, by, &of);
        if (r > 0 && (of == 0 || of == hop)) {
            memcpy(address, by, sizeof(by));
            return true;
        }
        const int64_t left = until - perf_now_ns();
        if (left <= 0) {
            return false;
        }
        struct pollfd p = {w->flows[k].fd, 0, 0};
        if (r < 0) {
            (void)poll(&p, 1, (int)(left / 1000000) + 1);
        }
    }
}

/* ---- traces ---- */

static void trace(struct ways *w)
{
    bool any = true;
    for (int hop = 1; hop <= WAYS_HOPS && any; hop++) {
        bool has[FLOWS] = {false};
        any = false;
        for (int attempt = 0; attempt < 2; attempt++) {
            for (int k = 0; k < FLOWS; k++) {
                if (!has[k]) {
                    (void)send_one(w, k, TRAIN, hop);
                }
            }
            const int64_t until = perf_now_ns() + ANSWER_NS;
            for (int k = 0; k < FLOWS; k++) {
                struct flow *f = &w->flows[k];
                if (!has[k] && await_answer(w, k, hop, until, f->hops[hop - 1])) {
                    has[k] = any = true;
                    f->hop_count = hop;
                }
            }
        }
    }
    for (int k = 0; k < FLOWS; k++) {
        for (int hop = 0; hop < w->flows[k].hop_count; hop++) {
            char *name = w->flows[k].hops[hop];
            memcpy(name, name[0] == '\0' ? "-" : name, name[0] == '\0' ? 2 : 0);
        }
    }
}

static bool same_way(const struct flow *a, const struct flow *b)
{
    bool same = a->hop_count == b->hop_count;
    for (int hop = 0; same && hop < a->hop_count; hop++) {
        same = strcmp(a->hops[hop], b->hops[hop]) == 0;
    }
    return same;
}

/* Chooses one flow of each path, then a second one of each, and so on. */
static void choose(struct ways *w)
{
    bool taken[FLOWS] = {false};
    for (int each = 1; each <= FLOWS && w->count < WAYS_MOST; each++) {
        for (int k = 0; k < FLOWS && w->count < WAYS_MOST; k++) {
            int like = 0;
            for (int i = 0; i < w->count; i++) {
                like += same_way(&w->flows[w->order[i]], &w->flows[k]);
            }
            if (!taken[k] && like < each) {
                taken[k] = true;
                w->order[w->count++] = k;
            }
        }
    }
}

/* ---- trains ---- */

struct train {
    int flow, came;
    int64_t first_ns, last_ns; /* of the packets that count */
};

/* Reads one packet and the kernel's time stamp of its arrival. */
static bool read_packet(struct ways *w, int k, struct packet *packet, int64_t *ret_ns)
{
    struct iovec part = {packet, sizeof(*packet)};
    char control[256];
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = 256};

    for (;;) {
        const ssize_t n = recvmsg(w->flows[k].fd, &message, MSG_DONTWAIT);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            continue; /* an error message about an earlier packet */
        }
        struct cmsghdr *c = n == (ssize_t)sizeof(*packet) ? CMSG_FIRSTHDR(&message) : NULL;
        if (c == NULL || c->cmsg_type != SCM_TIMESTAMPNS) {
            return false;
        }
        struct timespec at;
        memcpy(&at, CMSG_DATA(c), sizeof(at));
        *ret_ns = at.tv_sec * 1000000000LL + at.tv_nsec;
        return true;
    }
}

static void take(struct ways *w, struct train *t)
{
    struct packet packet;
    int64_t at;
    for (int k = 0; k < FLOWS; k++) {
        while (read_packet(w, k, &packet, &at)) {
            if (packet.magic != MAGIC || packet.round != w->round || packet.number < SKIPPED ||
                packet.number >= TRAIN) {
                continue;
            }
            t->first_ns = t->came == 0 ? at : t->first_ns;
            t->last_ns = at;
            t->flow = k;
            t->came++;
        }
    }
}

/* Sends one train and receives the other rank's. flow < 0: sends nothing. */
static void run_train(struct ways *w, int flow)
{
    struct train t = {.flow = -1};
    int64_t quiet = perf_now_ns() + QUIET_NS;

    for (uint16_t i = 0; flow >= 0 && i < TRAIN; i++) {
        (void)send_one(w, flow, i, 0);
    }
    while (t.came < TRAIN - SKIPPED && perf_now_ns() < quiet) {
        struct pollfd polls[FLOWS];
        const int before = t.came;
        for (int k = 0; k < FLOWS; k++) {
            polls[k] = (struct pollfd){w->flows[k].fd, POLLIN, 0};
        }
        (void)poll(polls, FLOWS, 5);
        take(w, &t);
        quiet = t.came > before ? perf_now_ns() + QUIET_NS : quiet;
    }
    if (t.came > (TRAIN - SKIPPED) / 2 && t.last_ns > t.first_ns) {
        const double rate =
            (t.came - 1) * (double)(PAYLOAD + HEADERS) * 1e9 / (double)(t.last_ns - t.first_ns);
        struct flow *f = &w->flows[t.flow];
        f->told = rate > f->told ? rate : f->told;
    }
}

/* Both ranks run the same number of trains. Rank 0's clock ends them. */
static int run_trains(struct ways *w, int run_ms)
{
    const int64_t until = perf_now_ns() + run_ms * 1000000LL;
    double count = w->count, over = 0, most, sum;
    int r = meet_sum(w->meet, &count, 1, &sum, &most);

    for (int try = 0; try < TRIES && r == 0; try++) {
        for (int i = 0; i < (int)most && r == 0; i++) {
            w->round++;
            over = try > 0 && w->meet->rank == 0 && perf_now_ns() > until;
            r = meet_sum(w->meet, &over, 1, &sum, &over);
            if (r < 0 || over > 0) {
                return r;
            }
            run_train(w, i < w->count ? w->order[i] : -1);
        }
    }
    return r;
}

/* ---- the narrow hop ---- */

/* On a slow link a whole train takes so long that there is time for one to each hop, and one alone may be late by chance. */
struct ways_look ways_look_of(int hops, double rate, int64_t span_ns)
{
    const double packet_ns = (PAYLOAD + HEADERS) * 1e9 / rate,
                 each_ns = (double)span_ns / (PASSES * (hops > 0 ? hops : 1)) - APART_US * 1e3,
                 packets = fmin(fmax(each_ns / packet_ns, LEAST_TRAIN), TRAIN);
    return (struct ways_look){(int)packets, (int64_t)fmin(packets * packet_ns, ANSWER_NS)};
}

static void sleep_until(int64_t until)
{
    const int64_t left = until - perf_now_ns();
    if (left > 0) {
        const struct timespec t = {left / 1000000000, left % 1000000000};
        (void)nanosleep(
            &t, NULL); /* an early wake-up is harmless: at worst its trains meet the other rank's */
    }
}

/* The time from the train's begin until a hop answers a packet behind the train. 0: no answer. The links behind that hop are
 * still busy then. The next train waits until they aren't, so that no two trains meet. */
static int64_t time_to(struct ways *w, int flow, int hop, const struct ways_look *by)
{
    char address[46];
    int of;
    while (read_answer(w, flow, address, &of) >= 0) {
    }
    const int64_t began = perf_now_ns();
    for (uint16_t k = 0; k < by->packets; k++) {
        (void)send_one(w, flow, k, 0);
    }
    (void)send_one(w, flow, TRAIN + 1, hop);
    const bool came = await_answer(w, flow, hop, began + 2 * ANSWER_NS, address);
    const int64_t took = perf_now_ns() - began;
    sleep_until(began + by->busy_ns);
    usleep(APART_US);
    return came ? took : 0;
}

/* Measures each hop as often as time allows. Returns the narrow hop, from 1; 0: none, or too few answers. */
static int find_narrow(struct ways *w, int flow, double rate, int64_t until)
{
    const int hops = w->flows[flow].hop_count;
    int64_t least[WAYS_HOPS] = {0}, before = 0;
    const struct ways_look by = ways_look_of(hops, rate, until - perf_now_ns());
    for (int i = 0; i < AGAIN * hops && perf_now_ns() < until; i++) {
        const int64_t took = time_to(w, flow, i % hops + 1, &by), is = least[i % hops];
        least[i % hops] = took > 0 && (is == 0 || took < is) ? took : is;
    }
    for (int hop = 0; hop < hops; hop++) {
        if (least[hop] > 0 && before > 0 && (double)least[hop] > LONGER * (double)before) {
            return hop + 1;
        }
        before = least[hop];
    }
    return 0;
}

/* The flow with the lowest rate, if it is below SLOW_SHARE of the best; -1: none is. */
static int find_slow(const double rates[FLOWS])
{
    double best = 0;
    int slow = -1;
    for (int k = 0; k < FLOWS; k++) {
        best = rates[k] > best ? rates[k] : best;
        slow = rates[k] > 0 && (slow < 0 || rates[k] < rates[slow]) ? k : slow;
    }
    return slow >= 0 && rates[slow] < SLOW_SHARE * best ? slow : -1;
}

/* told: by rank, the rates at which the other rank's flows arrived there. */
static int look(struct ways *w, double told[2][FLOWS], const struct ways_turn *turn, int *ret_flow)
{
    const int rank = w->meet->rank, slow[2] = {find_slow(told[1]), find_slow(told[0])};
    const int64_t half = turn->length_ns / 2, begin = turn->begin_ns + rank * half;
    int narrow = 0;
    *ret_flow = slow[rank];
    w->round++; /* the trains from here on do not count */
    if (slow[rank] >= 0) {
        sleep_until(begin);
        narrow = find_narrow(w, slow[rank], told[1 - rank][slow[rank]], begin + half);
    }
    /* the other rank's trains arrive here; a closed socket would answer them */
    if (slow[1 - rank] >= 0) {
        sleep_until(turn->begin_ns + (2 - rank) * half);
    }
    return narrow;
}

static int tell(struct ways *w, const struct ways_turn *turn, struct way_found *ways)
{
    double told[2][FLOWS] = {{0}}, mine[FLOWS];
    int flow;

    for (int k = 0; k < FLOWS; k++) {
        mine[k] = w->flows[k].told;
    }
    const int r = meet_exchange(w->meet, mine, sizeof(mine), told);
    if (r < 0) {
        return r;
    }
    /* the other rank reported it: it may be any number, or none */
    for (int k = 0; k < FLOWS; k++) {
        double *rate = &told[1 - w->meet->rank][k];
        *rate = *rate > 0 && *rate < FASTEST ? *rate : 0;
    }
    const int narrow = look(w, told, turn, &flow);
    for (int i = 0; i < w->count; i++) {
        const struct flow *f = &w->flows[w->order[i]];
        ways[i] = (struct way_found){.hop_count = f->hop_count,
                                     .rate = told[1 - w->meet->rank][w->order[i]],
                                     .narrow = w->order[i] == flow ? narrow : 0};
        memcpy(ways[i].hops, f->hops, sizeof(f->hops));
    }
    return 0;
}

int ways_test(struct meet *m, const char *nic, const char *leader, int run_ms,
              const struct ways_turn *turn, struct way_found ways[WAYS_MOST], int *ret_count)
{
    struct sockaddr_storage of_leader;
    int r = udp_parse(leader, &of_leader);
    struct ways w = {.meet = m, .family = of_leader.ss_family};

    for (int k = 0; k < FLOWS; k++) {
        w.flows[k].fd = -1;
    }
    r = r < 0 ? r : open_flows(&w, nic, &of_leader);
    r = r < 0 ? r : meet_barrier(m);
    if (r == 0) {
        trace(&w);
        choose(&w);
        r = run_trains(&w, run_ms);
    }
    r = r < 0 ? r : tell(&w, turn, ways);
    for (int k = 0; k < FLOWS; k++) {
        if (w.flows[k].fd >= 0) {
            close(w.flows[k].fd);
        }
    }
    *ret_count = w.count;
    return r;
}
