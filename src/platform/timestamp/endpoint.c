/* endpoint.c: sockets with stamps. */
#include "platform/timestamp/endpoint.h"

#include "base/ip.h"
#include "platform/timestamp/transmit_ring.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <linux/filter.h>
#include <linux/net_tstamp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    BUFFER_SIZE = 1 << 20,
    CONTROL_SIZE = 128,
    DONE_SIZE = 4 * ENDPOINT_BATCH,     /* results that wait for endpoint_next_stamp */
    SETTLE_NS = 2000000000,             /* the kernel enables receive stamps with a delay */
    SLOT_COUNT = 2 * ENDPOINT_PORT_MAX, /* source ports × families */
};

struct sender {
    int fd;
    unsigned waiting; /* stamps that are still expected */
    struct transmit_ring ring;
};

struct endpoint {
    struct endpoint_config config;
    int receive_fd[2]; /* IPv4, IPv6; -1: none */
    unsigned receive_turn;
    int64_t opened_ns;
    struct sender *senders[SLOT_COUNT]; /* [2 * port + family] */
    size_t stamp_turn;                  /* the sender that endpoint_next_stamp looks at */
    struct endpoint_packet queue[ENDPOINT_BATCH];
    size_t queued;
    struct endpoint_stamp done[DONE_SIZE];
    size_t done_first, done_count;
    struct endpoint_counters counters;
};

struct batch {
    uint8_t payload[ENDPOINT_BATCH][ENDPOINT_PAYLOAD_SIZE + 1];
    _Alignas(struct cmsghdr) uint8_t control[ENDPOINT_BATCH][CONTROL_SIZE];
    struct sockaddr_in6 address[ENDPOINT_BATCH];
    struct iovec vector[ENDPOINT_BATCH][2];
    struct mmsghdr message[ENDPOINT_BATCH];
};
/* One pair for all endpoints of the process: they are used one at a time. */
static struct batch output, input;

static int64_t realtime_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void push_done(struct endpoint *e, uint64_t token, enum endpoint_outcome outcome,
                      bool hardware, int64_t ns, int64_t called_ns)
{
    switch (outcome) {
    case ENDPOINT_STAMPED:
        e->counters.stamps++;
        break;
    case ENDPOINT_NO_STAMP:
        e->counters.stamps_missing++;
        break;
    case ENDPOINT_NOT_SENT:
        e->counters.not_sent++;
        break;
    }
    if (e->done_count == DONE_SIZE) { /* not collected in time: the oldest is dropped */
        e->done_first = (e->done_first + 1) % DONE_SIZE;
        e->done_count--;
    }
    e->done[(e->done_first + e->done_count++) % DONE_SIZE] =
        (struct endpoint_stamp){token, outcome, hardware, ns, called_ns};
}

/* ---- opening ---- */

static int set_stamps(int fd, const struct endpoint_config *config, bool sends, bool with_id)
{
    unsigned flags = SOF_TIMESTAMPING_SOFTWARE;
    if (sends) {
        flags |= SOF_TIMESTAMPING_OPT_TSONLY | SOF_TIMESTAMPING_OPT_CMSG |
                 (with_id ? SOF_TIMESTAMPING_OPT_ID : 0);
    } else {
        flags |= SOF_TIMESTAMPING_RX_SOFTWARE;
    }
    if (config->hardware) {
        flags |= SOF_TIMESTAMPING_RAW_HARDWARE | (sends ? 0 : SOF_TIMESTAMPING_RX_HARDWARE);
    }
    return setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &flags, sizeof(flags)) < 0 ? -errno : 0;
}

static int bind_address(int fd, const struct endpoint_config *config, int family, uint16_t port)
{
    if (family == AF_INET) {
        const struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_port = htons(port), .sin_addr = config->address4};
        return bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
    }
    const struct sockaddr_in6 address = {.sin6_family = AF_INET6,
                                         .sin6_port = htons(port),
                                         .sin6_addr = config->address6,
                                         .sin6_scope_id = config->scope};
    return bind(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 ? -errno : 0;
}

static int refuse_input(int fd)
{
    struct sock_filter drop = {.code = BPF_RET | BPF_K, .k = 0};
    const struct sock_fprog program = {.len = 1, .filter = &drop};
    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) < 0 ? -errno : 0;
}

static int open_socket(struct endpoint *e, int family, uint16_t port, bool sends, int *ret_fd,
                       const char **ret_what)
{
    const struct endpoint_config *config = &e->config;
    const int one = 1, size = BUFFER_SIZE;
    *ret_what = "socket";
    const int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP);
    if (fd < 0) {
        return -errno;
    }
    int r = 0;
    if (family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) < 0) {
        r = -errno;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size,
               sizeof(size)); /* the kernel's ceiling may be lower */
    if (config->device != NULL && config->device[0] != 0) {
        /* Old kernels refuse this without CAP_NET_RAW. Then the routing table chooses the NIC. */
        setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, config->device,
                   (socklen_t)strlen(config->device));
    }
    if (r == 0 && sends) {
        *ret_what = "filter";
        r = refuse_input(fd);
    }
    if (r == 0 && sends) {
        /* otherwise an MTU that a router reports would make the kernel fragment later packets */
        const int whole = family == AF_INET ? IP_PMTUDISC_PROBE : IPV6_PMTUDISC_PROBE;
        *ret_what = "whole packets";
        r = setsockopt(fd, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
                       family == AF_INET ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &whole,
                       sizeof(whole)) < 0
                ? -errno
                : 0;
    }
    if (r == 0 && !sends) {
        *ret_what = "class of arrivals";
        r = setsockopt(fd, family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
                       family == AF_INET ? IP_RECVTOS : IPV6_RECVTCLASS, &one, sizeof(one)) < 0
                ? -errno
                : 0;
    }
    if (r == 0) {
        *ret_what = "stamps";
        r = set_stamps(fd, config, sends, true);
    }
    if (r == 0) {
        *ret_what = "bind";
        r = bind_address(fd, config, family, port);
    }
    if (r < 0) {
        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

int endpoint_open(struct endpoint **ret_endpoint, const struct endpoint_config *config,
                  const char **ret_what)
{
    struct endpoint *e = calloc(1, sizeof(*e));
    *ret_what = "memory";
    if (e == NULL) {
        return -ENOMEM;
    }
    e->config = *config;
    e->config.device = config->device != NULL ? strdup(config->device) : NULL;
    e->receive_fd[0] = e->receive_fd[1] = -1;
    e->opened_ns = realtime_ns();
    int r = config->device != NULL && e->config.device == NULL ? -ENOMEM : 0;
    if (r == 0 && config->address4.s_addr != 0) {
        r = open_socket(e, AF_INET, config->port, false, &e->receive_fd[0], ret_what);
    }
    if (r == 0 && !IN6_IS_ADDR_UNSPECIFIED(&config->address6)) {
        r = open_socket(e, AF_INET6, config->port, false, &e->receive_fd[1], ret_what);
    }
    if (r < 0) {
        endpoint_close(e);
        return r;
    }
    *ret_endpoint = e;
    return 0;
}

struct endpoint *endpoint_close(struct endpoint *e)
{
    if (e == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < SLOT_COUNT; i++) {
        if (e->senders[i] != NULL) {
            close(e->senders[i]->fd);
            free(e->senders[i]);
        }
    }
    for (size_t i = 0; i < 2; i++) {
        if (e->receive_fd[i] >= 0) {
            close(e->receive_fd[i]);
        }
    }
    free((void *)(uintptr_t)e->config.device);
    free(e);
    return NULL;
}

void endpoint_counters_get(const struct endpoint *e, struct endpoint_counters *ret_counters)
{
    *ret_counters = e->counters;
}

/* The socket for a packet. NULL: there is none (no such address family, port out of range, or no descriptor left). */
static struct sender *sender_for(struct endpoint *e, const struct endpoint_packet *p)
{
    const unsigned port = (unsigned)p->source_port - e->config.port_base;
    const unsigned family = ip_is_v4(p->peer) ? 0 : 1;
    if (port >= ENDPOINT_PORT_MAX || e->receive_fd[family] < 0) {
        e->counters.last_error = EAFNOSUPPORT;
        return NULL;
    }
    struct sender **slot = &e->senders[2 * port + family];
    if (*slot == NULL) {
        const char *what = NULL;
        int fd = -1;
        const int r =
            open_socket(e, family == 0 ? AF_INET : AF_INET6, p->source_port, true, &fd, &what);
        struct sender *sender = r < 0 ? NULL : calloc(1, sizeof(*sender));
        if (sender == NULL) {
            e->counters.last_error = r < 0 ? -r : ENOMEM;
            if (r == 0) {
                close(fd);
            }
            return NULL;
        }
        sender->fd = fd;
        *slot = sender;
    }
    return *slot;
}

/* ---- sending ---- */

static size_t add_control(uint8_t *control, size_t used, int level, int type, const void *value,
                          size_t size)
{
    struct cmsghdr *c = (struct cmsghdr *)(void *)(control + used);
    c->cmsg_level = level;
    c->cmsg_type = type;
    c->cmsg_len = CMSG_LEN(size);
    memcpy(CMSG_DATA(c), value, size);
    return used + CMSG_SPACE(size);
}

static void fill_message(const struct endpoint *e, size_t i, const struct endpoint_packet *p)
{
    const bool is4 = ip_is_v4(p->peer);
    struct msghdr *m = &output.message[i].msg_hdr;
    if (is4) {
        struct sockaddr_in *to = (struct sockaddr_in *)(void *)&output.address[i];
        *to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(e->config.port)};
        memcpy(&to->sin_addr, p->peer + 12, 4);
    } else {
        output.address[i] =
            (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(e->config.port)};
        memcpy(&output.address[i].sin6_addr, p->peer, 16);
        if (IN6_IS_ADDR_LINKLOCAL(&output.address[i].sin6_addr)) {
            output.address[i].sin6_scope_id = e->config.scope;
        }
    }
    static uint8_t zeros[ENDPOINT_FULL_SIZE - ENDPOINT_PAYLOAD_SIZE];
    const size_t more = p->size > sizeof(p->bytes) ? p->size - sizeof(p->bytes) : 0;
    ASSERT(more <= sizeof(zeros));
    output.vector[i][0] = (struct iovec){(void *)(uintptr_t)p->bytes, sizeof(p->bytes)};
    output.vector[i][1] = (struct iovec){zeros, more};
    *m = (struct msghdr){.msg_name = &output.address[i],
                         .msg_namelen =
                             is4 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6),
                         .msg_iov = output.vector[i],
                         .msg_iovlen = more > 0 ? 2 : 1,
                         .msg_control = output.control[i]};
    size_t used = 0;
    if (p->traffic_class != 0) {
        const int value = p->traffic_class;
        used = add_control(output.control[i], used, is4 ? IPPROTO_IP : IPPROTO_IPV6,
                           is4 ? IP_TOS : IPV6_TCLASS, &value, sizeof(value));
    }
    if (p->ttl != 0) {
        const int value = p->ttl;
        used = add_control(output.control[i], used, is4 ? IPPROTO_IP : IPPROTO_IPV6,
                           is4 ? IP_TTL : IPV6_HOPLIMIT, &value, sizeof(value));
    }
    if (p->want_stamp) {
        const uint32_t flags =
            e->config.hardware ? SOF_TIMESTAMPING_TX_HARDWARE : SOF_TIMESTAMPING_TX_SOFTWARE;
        used = add_control(output.control[i], used, SOL_SOCKET, SO_TIMESTAMPING, &flags,
                           sizeof(flags));
    }
    m->msg_controllen = used;
    if (used == 0) {
        m->msg_control = NULL;
    }
}

static void take_stamps(struct endpoint *e, struct sender *s);

/* The kernel's count of this socket is uncertain: restart it at 0. */
static void restart_count(struct endpoint *e, struct sender *s)
{
    uint64_t token = 0;
    take_stamps(e, s);
    while (transmit_ring_expire(&s->ring, 0, true, &token)) {
        push_done(e, token, ENDPOINT_NO_STAMP, false, 0, 0);
    }
    s->waiting = 0;
    s->ring.next = s->ring.oldest = 0;
    e->counters.count_resets++;
    /* clearing the flag and setting it again zeroes the count (net/core/sock.c) */
    if (set_stamps(s->fd, &e->config, true, false) < 0 ||
        set_stamps(s->fd, &e->config, true, true) < 0) {
        e->counters.last_error = errno;
    }
}

static void note_sent(struct endpoint *e, struct sender *s, const struct endpoint_packet *p,
                      int64_t called_ns)
{
    uint64_t lost = 0;
    e->counters.sent++;
    if (!p->want_stamp) {
        return;
    }
    if (transmit_ring_add(&s->ring, p->token, called_ns, &lost)) {
        push_done(e, lost, ENDPOINT_NO_STAMP, false, 0, 0);
    } else {
        s->waiting++;
    }
}

/* The route was refused before the kernel counted the packet. */
static bool refused_early(int error)
{
    return error == ENETUNREACH || error == EHOSTUNREACH || error == ENETDOWN || error == EINVAL ||
           error == ENODEV || error == EADDRNOTAVAIL;
}

/* Sends `count` packets of the queue, from `first` on, with one socket. */
static void send_run(struct endpoint *e, struct sender *s, size_t first, size_t count)
{
    const struct endpoint_packet *packets = &e->queue[first];
    for (size_t i = 0; i < count; i++) {
        fill_message(e, i, &packets[i]);
    }
    for (size_t done = 0; done < count;) {
        const int64_t called_ns = realtime_ns();
        const int n = sendmmsg(s->fd, &output.message[done], (unsigned)(count - done), 0);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        for (int i = 0; i < n; i++) {
            note_sent(e, s, &packets[done++], called_ns);
        }
        if (n <= 0) {
            e->counters.last_error = errno;
            push_done(e, packets[done].token, ENDPOINT_NOT_SENT, false, 0, 0);
            if (packets[done++].want_stamp && !refused_early(e->counters.last_error)) {
                restart_count(e, s);
            }
        }
    }
}

void endpoint_flush(struct endpoint *e)
{
    for (size_t first = 0; first < e->queued;) {
        struct sender *s = sender_for(e, &e->queue[first]);
        size_t count = 1;
        if (s == NULL) {
            push_done(e, e->queue[first].token, ENDPOINT_NOT_SENT, false, 0, 0);
            first++;
            continue;
        }
        while (first + count < e->queued && sender_for(e, &e->queue[first + count]) == s) {
            count++;
        }
        send_run(e, s, first, count);
        first += count;
    }
    e->queued = 0;
}

void endpoint_queue(struct endpoint *e, const struct endpoint_packet *packet)
{
    if (e->queued == ENDPOINT_BATCH) {
        endpoint_flush(e);
    }
    e->queue[e->queued++] = *packet;
}

bool endpoint_waits(const struct endpoint *e)
{
    return e->queued > 0;
}

/* ---- receiving ---- */

static int64_t timespec_ns(const struct timespec *t)
{
    return t->tv_sec * 1000000000LL + t->tv_nsec;
}

static void read_stamps(struct msghdr *m, int64_t *ret_software_ns, int64_t *ret_hardware_ns,
                        const struct sock_extended_err **ret_error)
{
    *ret_software_ns = *ret_hardware_ns = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING) {
            struct scm_timestamping stamps;
            memcpy(&stamps, CMSG_DATA(c), sizeof(stamps));
            *ret_software_ns = timespec_ns(&stamps.ts[0]);
            *ret_hardware_ns = timespec_ns(&stamps.ts[2]);
        } else if (ret_error != NULL &&
                   ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
                    (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))) {
            *ret_error = (const struct sock_extended_err *)(const void *)CMSG_DATA(c);
        }
    }
}

/* IPv4 has a byte, IPv6 an int. */
static uint8_t read_class(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        int class = 0;
        if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) {
            return *CMSG_DATA(c);
        }
        if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS) {
            memcpy(&class, CMSG_DATA(c), sizeof(class));
            return (uint8_t) class;
        }
    }
    return 0;
}

/* Prepares all of `input`; only the entries of the last call have changed. */
static void prepare_input(size_t used)
{
    static bool once;
    for (size_t i = 0; i < (once ? used : ENDPOINT_BATCH); i++) {
        input.vector[i][0] = (struct iovec){input.payload[i], sizeof(input.payload[i])};
        input.message[i].msg_hdr = (struct msghdr){.msg_name = &input.address[i],
                                                   .msg_namelen = sizeof(input.address[i]),
                                                   .msg_iov = input.vector[i],
                                                   .msg_iovlen = 1,
                                                   .msg_control = input.control[i],
                                                   .msg_controllen = CONTROL_SIZE};
    }
    once = true;
}

static int receive_input(int fd, int flags)
{
    static size_t used;
    prepare_input(used);
    const int n = recvmmsg(fd, input.message, ENDPOINT_BATCH, MSG_DONTWAIT | flags, NULL);
    used = n > 0 ? (size_t)n + 1 : 1; /* the kernel may change the entry after the last packet */
    used = used < ENDPOINT_BATCH ? used : ENDPOINT_BATCH;
    return n;
}

static void read_packet(const struct endpoint *e, size_t i, int64_t called_ns,
                        struct endpoint_received *r)
{
    *r = (struct endpoint_received){.size = (uint16_t)input.message[i].msg_len,
                                    .bytes = input.payload[i]};
    read_stamps(&input.message[i].msg_hdr, &r->software_ns, &r->hardware_ns, NULL);
    r->traffic_class = read_class(&input.message[i].msg_hdr);
    /* Until the kernel has enabled stamps, it makes the stamp when the packet is read: it may be late by any time. */
    if (r->software_ns > called_ns && called_ns - e->opened_ns < SETTLE_NS) {
        r->software_ns = 0;
    }
    if (input.address[i].sin6_family == AF_INET) {
        const struct sockaddr_in *from =
            (const struct sockaddr_in *)(const void *)&input.address[i];
        r->from[10] = r->from[11] = 0xff;
        memcpy(r->from + 12, &from->sin_addr, 4);
        r->source_port = ntohs(from->sin_port);
    } else {
        memcpy(r->from, &input.address[i].sin6_addr, 16);
        r->source_port = ntohs(input.address[i].sin6_port);
    }
}

size_t endpoint_receive(struct endpoint *e, struct endpoint_received *ret_packets)
{
    for (unsigned tries = 0; tries < 2; tries++) {
        const int fd = e->receive_fd[e->receive_turn & 1];
        if (fd >= 0) {
            const int64_t called_ns = realtime_ns();
            const int n = receive_input(fd, 0);
            if (n > 0) {
                for (int i = 0; i < n; i++) {
                    read_packet(e, (size_t)i, called_ns, &ret_packets[i]);
                }
                e->counters.received += (uint64_t)n;
                return (size_t)n;
            }
        }
        e->receive_turn++;
    }
    return 0;
}

static void take_stamp(struct endpoint *e, struct sender *s, struct msghdr *m, int64_t now_ns)
{
    int64_t software_ns = 0, hardware_ns = 0, called_ns = 0;
    const struct sock_extended_err *error = NULL;
    uint64_t token = 0;
    read_stamps(m, &software_ns, &hardware_ns, &error);
    if (error == NULL || error->ee_errno != ENOMSG ||
        error->ee_origin != SO_EE_ORIGIN_TIMESTAMPING || error->ee_info != SCM_TSTAMP_SND) {
        return;
    }
    if (e->config.hardware) {
        if (hardware_ns != 0 &&
            transmit_ring_take_hardware(&s->ring, error->ee_data, &token, &called_ns)) {
            s->waiting -= s->waiting > 0;
            push_done(e, token, ENDPOINT_STAMPED, true, hardware_ns, called_ns);
            return;
        }
    } else if (transmit_ring_take(&s->ring, error->ee_data, software_ns, now_ns, &token)) {
        s->waiting -= s->waiting > 0;
        push_done(e, token, ENDPOINT_STAMPED, false, software_ns, 0);
        return;
    }
    e->counters.stamps_unmatched++;
}

/* Reads one socket's error queue, and gives up on stamps that are too old. */
static void take_stamps(struct endpoint *e, struct sender *s)
{
    int n = 0;
    do {
        n = receive_input(s->fd, MSG_ERRQUEUE);
        const int64_t now_ns = realtime_ns();
        for (int i = 0; i < n; i++) {
            take_stamp(e, s, &input.message[i].msg_hdr, now_ns);
        }
        uint64_t token = 0;
        while (transmit_ring_expire(&s->ring, now_ns, false, &token)) {
            s->waiting -= s->waiting > 0;
            push_done(e, token, ENDPOINT_NO_STAMP, false, 0, 0);
        }
    } while (n == ENDPOINT_BATCH);
}

bool endpoint_next_stamp(struct endpoint *e, struct endpoint_stamp *ret_stamp)
{
    while (e->done_count == 0) {
        while (e->stamp_turn < SLOT_COUNT &&
               (e->senders[e->stamp_turn] == NULL || e->senders[e->stamp_turn]->waiting == 0)) {
            e->stamp_turn++;
        }
        if (e->stamp_turn == SLOT_COUNT) {
            e->stamp_turn = 0;
            return false;
        }
        take_stamps(e, e->senders[e->stamp_turn++]);
    }
    *ret_stamp = e->done[e->done_first];
    e->done_first = (e->done_first + 1) % DONE_SIZE;
    e->done_count--;
    return true;
}
