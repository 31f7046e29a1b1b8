/* fake_wire.c: RC over UDP for the fake library: packet numbers, cumulative acknowledgements, go-back-N, retries, RNR.
 *
 * A queue pair's number is the UDP port at which it receives (20000..32767: outside the range from which kernels choose). It
 * sends packets, also acknowledgements, from another socket, from the port of its flow label. One thread plays the NIC of the
 * process: it receives, acknowledges and sends again. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "fake_internal.h"

enum {
    FIRST_NUMBER = 20000,
    NUMBERS = 12768,
    WINDOW = 64, /* packets in flight */
    ACK_EACH = 16,
    LOOK_MS = 20,
    BUFFER = 4 << 20
};
static pthread_t nic;
static unsigned holders;
static bool stop;
static int epoll_fd = -1, ioctl_fd = -1;
static int64_t looked_ns;
static uint64_t dice = 1;

int64_t wire_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* a - b, for packet numbers of 24 bits. */
static int32_t ahead(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

static uint32_t mtu_of(enum ibv_mtu mtu)
{
    return 128u << mtu;
}

/* ---- devices ---- */

static void add_device(const char *name, const uint8_t ip[16], const char *flags)
{
    struct device *d = &devices[device_count];
    const char *pkey = strstr(flags, ",p"), *first = strstr(flags, ",q");

    if (device_count == DEVICES) {
        return;
    }
    *d = (struct device){.wire = true,
                         .roce = strstr(flags, ",ib") == NULL,
                         .v1_only = strstr(flags, ",v1") != NULL};
    memcpy(d->ip, ip, sizeof(d->ip));
    d->pkeys[0] = pkey != NULL ? 0x7fff : 0xffff;
    d->pkeys[1] = pkey != NULL ? (uint16_t)strtoul(pkey + 2, NULL, 16) : 0;
    if (first != NULL) {
        d->pkeys[0] = (uint16_t)strtoul(first + 2, NULL, 16);
        d->pkeys[1] = 0xffff;
    }
    strncpy(d->device.name, name, sizeof(d->device.name) - 1);
    device_count++;
}

static void map_v4(const struct in_addr *in, uint8_t ret_ip[16])
{
    memset(ret_ip, 0, 16);
    ret_ip[10] = ret_ip[11] = 0xff;
    memcpy(ret_ip + 12, in, 4);
}

static bool ip_of_text(const char *text, uint8_t ret_ip[16])
{
    struct in_addr in;

    if (inet_pton(AF_INET, text, &in) == 1) {
        map_v4(&in, ret_ip);
        return true;
    }
    return inet_pton(AF_INET6, text, ret_ip) == 1;
}

/* False: another family, or a link-local address. */
static bool ip_of_interface(const struct ifaddrs *i, uint8_t ret_ip[16])
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;

    if (i->ifa_addr == NULL) {
        return false;
    }
    if (i->ifa_addr->sa_family == AF_INET) {
        memcpy(&in, i->ifa_addr, sizeof(in));
        map_v4(&in.sin_addr, ret_ip);
        return true;
    }
    if (i->ifa_addr->sa_family == AF_INET6) {
        memcpy(&in6, i->ifa_addr, sizeof(in6));
        memcpy(ret_ip, &in6.sin6_addr, 16);
        return ret_ip[0] != 0xfe;
    }
    return false;
}

static void add_interfaces(bool v4)
{
    struct ifaddrs *all = NULL;
    char name[32];
    uint8_t ip[16];

    if (getifaddrs(&all) < 0) {
        return;
    }
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        if ((i->ifa_flags & IFF_LOOPBACK) == 0 && ip_of_interface(i, ip) && fake_is_v4(ip) == v4) {
            snprintf(name, sizeof(name), "fake_%s", i->ifa_name);
            add_device(name, ip, "");
        }
    }
    freeifaddrs(all);
}

void wire_devices(const char *words)
{
    char text[1024], *rest = NULL;

    strncpy(text, words, sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    for (char *word = strtok_r(text, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        char *address = strchr(word, '='), *flags = strchr(word, ',');
        char some[128] = "";
        uint8_t ip[16];
        if (strcmp(word, "auto") == 0 || strcmp(word, "auto6") == 0) {
            add_interfaces(word[4] == 0);
            continue;
        }
        if (flags != NULL) {
            strncpy(some, flags, sizeof(some) - 1);
            *flags = 0;
        }
        if (address != NULL && ip_of_text(address + 1, ip)) {
            *address = 0;
            add_device(word, ip, some);
        }
    }
}

/* Finds the interface with the device's address. Like rxe it takes the largest MTU that leaves room for headers. */
void wire_look(struct device *d)
{
    struct ifaddrs *all = NULL;
    struct ifreq request = {0};

    d->state = IBV_PORT_DOWN;
    d->mtu = IBV_MTU_256;
    if (getifaddrs(&all) < 0) {
        return;
    }
    for (const struct ifaddrs *i = all; i != NULL; i = i->ifa_next) {
        uint8_t ip[16];
        if (!ip_of_interface(i, ip)) {
            continue;
        }
        const bool loopback =
            (i->ifa_flags & IFF_LOOPBACK) != 0 && fake_is_v4(d->ip) && d->ip[12] == IN_LOOPBACKNET;
        if (memcmp(ip, d->ip, sizeof(ip)) == 0 || loopback) {
            strncpy(request.ifr_name, i->ifa_name, IFNAMSIZ - 1);
            const bool up = (i->ifa_flags & IFF_UP) != 0 && (i->ifa_flags & IFF_RUNNING) != 0;
            d->state = up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
            break;
        }
    }
    freeifaddrs(all);
    strncpy(d->if_name, request.ifr_name, sizeof(d->if_name) - 1);
    const int fd = ioctl_fd >= 0 ? ioctl_fd : socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (d->if_name[0] != 0 && ioctl(fd, SIOCGIFMTU, &request) == 0) {
        while (d->mtu < IBV_MTU_4096 && (int)mtu_of(d->mtu + 1) + (int)sizeof(struct packet) +
                                                (fake_is_v4(d->ip) ? 28 : 48) <=
                                            request.ifr_mtu) {
            d->mtu++;
        }
    }
    if (fd != ioctl_fd) {
        close(fd);
    }
    if (strcmp(control->small, d->device.name) == 0 && d->mtu > IBV_MTU_1024) {
        d->mtu = IBV_MTU_1024;
    }
}

static void tell_ports(void)
{
    for (struct context *c = contexts; c != NULL; c = c->next) {
        struct device now = *c->device;
        if (!now.wire) {
            continue;
        }
        wire_look(&now);
        if (c->device->state != IBV_PORT_NOP && now.state != c->device->state) {
            const int event =
                now.state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR;
            for (struct context *all = contexts; all != NULL; all = all->next) {
                if (all->device == c->device) {
                    fake_tell(all, event, 1, NULL);
                }
            }
        }
        c->device->state = now.state;
        c->device->mtu = now.mtu;
    }
}

/* ---- sending ---- */

static void send_packet(struct pair *p, const struct packet *of, const void *bytes, size_t size)
{
    struct packet header = *of;
    struct iovec parts[2] = {{.iov_base = &header, .iov_len = sizeof(header)},
                             {.iov_base = (void *)(uintptr_t)bytes, .iov_len = size}};
    const struct msghdr message = {.msg_iov = parts, .msg_iovlen = size > 0 ? 2 : 1};

    header.pkey = fake_pkey(p->device, p->attr.pkey_index);
    header.slid = (uint16_t)(fake_lid(p->device) | p->attr.ah_attr.src_path_bits);
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    if (!control->drop && p->out_fd >= 0 &&
        (control->black_hole >> (p->source_port & 3) & 1) == 0 &&
        (dice >> 33) % 10000 >= control->loss) {
        /* a packet that the kernel refuses is lost, as on any network */
        (void)!sendmsg(p->out_fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
}

static void reply(struct pair *p, enum packet_kind kind, uint32_t number)
{
    const struct packet header = {.magic = MAGIC,
                                  .kind = (uint8_t)kind,
                                  .to_qp = p->attr.dest_qp_num,
                                  .from_qp = p->qp.qp_num,
                                  .number = number & 0xffffff};

    send_packet(p, &header, NULL, 0);
}

static struct request *request_at(struct pair *p, unsigned i)
{
    return &p->requests[(p->request_head + i) % p->sends];
}

static int64_t timeout_ns(const struct pair *p)
{
    return p->attr.timeout == 0 ? INT64_MAX / 2 : 4096LL << p->attr.timeout;
}

/* Sends packets from `next` on, as many as the window has room for. */
static void transmit(struct pair *p, int64_t now)
{
    const uint32_t mtu = mtu_of(p->attr.path_mtu);
    unsigned i = 0;

    if (p->attr.qp_state != IBV_QPS_RTS || now < p->pause_until_ns) {
        return;
    }
    while (i < p->request_count && ahead(p->next, p->unacked) < WINDOW) {
        const struct request *r = request_at(p, i);
        const uint32_t at = (uint32_t)ahead(p->next, r->first);
        if (at >= r->packets) {
            i++;
            continue;
        }
        const uint32_t offset = at * mtu;
        const struct packet header = {.magic = MAGIC,
                                      .kind = DATA,
                                      .write = r->write,
                                      .first = at == 0,
                                      .last = at + 1 == r->packets,
                                      .to_qp = p->attr.dest_qp_num,
                                      .from_qp = p->qp.qp_num,
                                      .number = p->next,
                                      .rkey = r->rkey,
                                      .to = r->to + offset};
        const uint8_t *from = r->is_inline ? r->inlined : r->from;
        send_packet(p, &header, from + offset, r->size - offset < mtu ? r->size - offset : mtu);
        p->next = (p->next + 1) & 0xffffff;
    }
    if (p->deadline_ns == 0 && p->unacked != p->next) {
        p->deadline_ns = now + timeout_ns(p);
    }
}

static void end_request(struct pair *p, int status)
{
    const struct request *r = request_at(p, 0);

    p->request_head = (p->request_head + 1) % p->sends;
    p->request_count--;
    if (status != IBV_WC_SUCCESS || r->signalled) {
        fake_complete(p, r->tag, status, r->write ? IBV_WC_RDMA_WRITE : IBV_WC_SEND, 0);
    }
}

static void fail(struct pair *p, int status)
{
    if (p->request_count > 0) {
        end_request(p, status);
    }
    fake_flush(p);
}

void wire_flush(struct pair *p)
{
    p->deadline_ns = 0;
    while (p->request_count > 0) {
        end_request(p, IBV_WC_WR_FLUSH_ERR);
    }
}

int wire_post(struct pair *p, const struct ibv_send_wr *w)
{
    const uint32_t size = w->num_sge > 0 ? w->sg_list->length : 0;
    struct request r = {.tag = w->wr_id,
                        .from = (const uint8_t *)(uintptr_t)(w->num_sge > 0 ? w->sg_list->addr : 0),
                        .size = size,
                        .write = w->opcode == IBV_WR_RDMA_WRITE,
                        .signalled = (w->send_flags & IBV_SEND_SIGNALED) != 0,
                        .is_inline = (w->send_flags & IBV_SEND_INLINE) != 0,
                        .rkey = w->wr.rdma.rkey,
                        .to = w->wr.rdma.remote_addr};

    if (p->request_count == p->sends) {
        return ENOMEM;
    }
    if (p->attr.qp_state == IBV_QPS_ERR) {
        fake_complete(p, r.tag, IBV_WC_WR_FLUSH_ERR, IBV_WC_SEND, 0);
        return 0;
    }
    if (p->attr.qp_state != IBV_QPS_RTS) {
        return EINVAL;
    }
    const struct memory *m =
        r.is_inline || size == 0 ? NULL : fake_memory(p, w->sg_list->lkey, r.from, size, 0);
    if (!r.is_inline && size > 0 && m == NULL) {
        fake_complete(p, r.tag, IBV_WC_LOC_PROT_ERR, IBV_WC_SEND, 0);
        fake_flush(p);
        return 0;
    }
    if (r.is_inline && size > 0) {
        memcpy(r.inlined, r.from, size);
    } else if (m != NULL) {
        r.from = fake_at(m, r.from);
    }
    const uint32_t mtu = mtu_of(p->attr.path_mtu);
    r.packets = size == 0 ? 1 : (size + mtu - 1) / mtu;
    r.first = p->end;
    p->end = (p->end + r.packets) & 0xffffff;
    *request_at(p, p->request_count++) = r;
    transmit(p, wire_now_ns());
    return 0;
}

static void acknowledged(struct pair *p, uint32_t up_to, int64_t now)
{
    if (ahead(up_to, p->unacked) <= 0) {
        return;
    }
    p->unacked = up_to;
    p->next = ahead(p->next, up_to) < 0 ? up_to : p->next;
    p->tries = p->rnr_tries = 0;
    p->deadline_ns = p->unacked == p->next ? 0 : now + timeout_ns(p);
    while (p->request_count > 0) {
        const struct request *r = request_at(p, 0);
        if (ahead(up_to, r->first + r->packets) < 0) {
            break;
        }
        end_request(p, IBV_WC_SUCCESS);
    }
}

static void on_reply(struct pair *p, const struct packet *h, int64_t now)
{
    if (ahead(h->number, p->unacked) < 0 || ahead(h->number, p->end) > 0) {
        return; /* an old packet */
    }
    acknowledged(p, h->kind == ACK ? (h->number + 1) & 0xffffff : h->number, now);
    if (p->attr.qp_state != IBV_QPS_RTS) {
        return;
    }
    if (h->kind == NAK_SEQUENCE) {
        p->next = h->number;
    } else if (h->kind == NAK_RNR) {
        if (p->attr.rnr_retry < 7 && p->rnr_tries++ >= p->attr.rnr_retry) {
            fail(p, IBV_WC_RNR_RETRY_EXC_ERR);
            return;
        }
        p->next = h->number;
        p->pause_until_ns = now + 640000;
    } else if (h->kind == NAK_ACCESS) {
        fail(p, IBV_WC_REM_ACCESS_ERR);
        return;
    } else if (h->kind == NAK_INVALID) {
        fail(p, IBV_WC_REM_INV_REQ_ERR);
        return;
    }
    transmit(p, now);
}

static void on_time(struct pair *p, int64_t now)
{
    if (p->attr.qp_state == IBV_QPS_ERR && (p->request_count > 0 || p->count > 0)) {
        fake_flush(p); /* a completion was made to fail */
    }
    if (p->attr.qp_state != IBV_QPS_RTS) {
        return;
    }
    if (p->deadline_ns != 0 && now >= p->deadline_ns) {
        if (p->tries++ >= p->attr.retry_cnt) {
            fail(p, IBV_WC_RETRY_EXC_ERR);
            return;
        }
        p->next = p->unacked;
        p->deadline_ns = 0;
    }
    if (p->next != p->end) {
        transmit(p, now);
    }
}

/* ---- receiving ---- */

/* Puts a packet into memory. Returns 0, or the kind of the answer. */
static enum packet_kind place(struct pair *p, const struct packet *h, const uint8_t *bytes,
                              uint32_t size)
{
    if (h->write) {
        return (p->attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE) != 0 &&
                       (size == 0 ||
                        fake_write(p, h->rkey, (uint8_t *)(uintptr_t)h->to, bytes, size))
                   ? DATA
                   : NAK_ACCESS;
    }
    p->offset = h->first ? 0 : p->offset;
    if (p->count == 0) {
        return NAK_RNR;
    }
    const struct receive *r = &p->receives[p->head];
    if (p->offset + size > r->size ||
        fake_memory(p, r->key, r->to, r->size, IBV_ACCESS_LOCAL_WRITE) == NULL) {
        return NAK_INVALID;
    }
    memcpy((uint8_t *)r->to + p->offset, bytes, size);
    p->offset += size;
    if (h->last) {
        p->head = (p->head + 1) % DEPTH;
        p->count--;
        fake_complete(p, r->tag, IBV_WC_SUCCESS, IBV_WC_RECV, p->offset);
    }
    return DATA;
}

static void on_data(struct pair *p, const struct packet *h, const uint8_t *bytes, uint32_t size)
{
    const int32_t off = ahead(h->number, p->expected);

    if (off < 0) {
        p->ack_due = true; /* our acknowledgement was lost */
        return;
    }
    if (off > 0) {
        if (!p->nak_sent) {
            p->nak_sent = true;
            reply(p, NAK_SEQUENCE, p->expected);
        }
        return;
    }
    const enum packet_kind answer =
        size > mtu_of(p->attr.path_mtu) ? NAK_INVALID : place(p, h, bytes, size);
    if (answer != DATA) {
        reply(p, answer, h->number);
        if (answer != NAK_RNR) {
            fake_flush(p);
        }
        return;
    }
    p->nak_sent = false;
    p->expected = (p->expected + 1) & 0xffffff;
    p->ack_due = true;
}

/* True if both ends have one partition, one of them is a full member, and the packet is for this LID. */
static bool is_expected(const struct pair *p, const struct packet *h)
{
    return fake_hears(fake_pkey(p->device, p->attr.pkey_index), h->pkey) &&
           (p->device->roce || h->slid == p->attr.ah_attr.dlid);
}

static void on_readable(struct pair *p, int64_t now)
{
    static uint8_t buffer[sizeof(struct packet) + 4096];
    struct packet h;

    for (int i = 0; i < WINDOW && p->used; i++) {
        const ssize_t size = recv(p->in_fd, buffer, sizeof(buffer), MSG_DONTWAIT);
        if (size < 0) {
            break;
        }
        memcpy(&h, buffer, sizeof(h));
        if (size >= (ssize_t)sizeof(h) && h.magic == MAGIC && h.kind == DATAGRAM && p->ud &&
            h.to_qp == p->qp.qp_num && !fake_gone(p->device) &&
            fake_hears(fake_pkey(p->device, p->attr.pkey_index), h.pkey)) {
            wire_on_datagram(p, &h, buffer + sizeof(h), (uint32_t)size - (uint32_t)sizeof(h), now);
            continue;
        }
        if (size < (ssize_t)sizeof(h) || h.magic != MAGIC || h.to_qp != p->qp.qp_num || p->ud ||
            h.from_qp != p->attr.dest_qp_num || p->attr.qp_state < IBV_QPS_RTR ||
            p->attr.qp_state > IBV_QPS_RTS || strcmp(control->gone, p->device->device.name) == 0 ||
            !is_expected(p, &h)) {
            continue;
        }
        if (h.kind != DATA) {
            on_reply(p, &h, now);
            continue;
        }
        on_data(p, &h, buffer + sizeof(h), (uint32_t)size - (uint32_t)sizeof(h));
        if (p->ack_due && i % ACK_EACH == ACK_EACH - 1) {
            reply(p, ACK, p->expected - 1);
            p->ack_due = false;
        }
    }
    if (p->ack_due) {
        reply(p, ACK, p->expected - 1);
        p->ack_due = false;
    }
}

static void *be_nic(void *nothing)
{
    struct epoll_event ready[64];

    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        const int count = epoll_wait(epoll_fd, ready, 64, 2);
        pthread_mutex_lock(&fake_lock);
        const int64_t now = wire_now_ns();
        for (int i = 0; i < count; i++) {
            struct pair *p = &pairs[ready[i].data.u32];
            if (p->used && p->in_fd >= 0) {
                on_readable(p, now);
            }
        }
        wire_deliver_late(now);
        for (int i = 0; i < QPS; i++) {
            if (pairs[i].used && pairs[i].in_fd >= 0) {
                on_time(&pairs[i], now);
            }
        }
        if (now - looked_ns > LOOK_MS * 1000000LL) {
            looked_ns = now;
            tell_ports();
            wire_read_late();
        }
        pthread_mutex_unlock(&fake_lock);
    }
    return nothing;
}

int wire_hold(void)
{
    int r = 0;

    pthread_mutex_lock(&fake_lock);
    if (holders == 0) {
        stop = false;
        dice = (uint64_t)wire_now_ns();
        epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        ioctl_fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        r = pthread_create(&nic, NULL, be_nic, NULL) == 0 ? 0 : -1;
    }
    holders += r == 0;
    pthread_mutex_unlock(&fake_lock);
    return r;
}

void wire_release(void)
{
    pthread_mutex_lock(&fake_lock);
    const bool last = --holders == 0;
    pthread_mutex_unlock(&fake_lock);
    if (last) {
        __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
        pthread_join(nic, NULL);
        close(epoll_fd);
        close(ioctl_fd);
        epoll_fd = ioctl_fd = -1;
    }
}

/* ---- queue pairs ---- */

struct wire_place wire_place_of(const uint8_t ip[16], uint16_t port)
{
    struct wire_place place = {.size = sizeof(struct sockaddr_in)};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    if (fake_is_v4(ip)) {
        memcpy(&in.sin_addr, ip + 12, 4);
        memcpy(&place.address, &in, sizeof(in));
    } else {
        memcpy(&in6.sin6_addr, ip, 16);
        memcpy(&place.address, &in6, sizeof(in6));
        place.size = sizeof(in6);
    }
    return place;
}

void wire_mark(int fd, const uint8_t ip[16], int traffic_class)
{
    const bool v4 = fake_is_v4(ip);

    (void)!setsockopt(fd, v4 ? IPPROTO_IP : IPPROTO_IPV6, v4 ? IP_TOS : IPV6_TCLASS, &traffic_class,
                      sizeof(traffic_class));
}

/* An InfiniBand port's address is derived from its LID. */
void wire_peer(const struct device *d, const struct ibv_ah_attr *ah, uint8_t ret_ip[16])
{
    memcpy(ret_ip, d->roce ? ah->grh.dgid.raw : d->ip, 16);
    if (!d->roce) {
        ret_ip[15] = (uint8_t)(ah->dlid >> 2);
    }
}

int wire_socket(const uint8_t ip[16], uint16_t port, bool shared)
{
    const struct wire_place own = wire_place_of(ip, port);
    const int fd = socket(own.address.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const int size = BUFFER, on = 1;

    if (fd < 0) {
        return -errno;
    }
    (void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    (void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
    (void)!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    if (shared) {
        (void)!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
        (void)!setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
    }
    if (bind(fd, (const struct sockaddr *)&own.address, own.size) < 0) {
        const int why = errno;
        close(fd);
        return -why;
    }
    return fd;
}

int wire_open(struct pair *p)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = (uint32_t)(p - pairs)};
    const uint32_t first = (uint32_t)(wire_now_ns() / 1000) % NUMBERS;

    p->requests = calloc(p->sends + 1, sizeof(*p->requests));
    for (uint32_t i = 0; p->requests != NULL && i < NUMBERS; i++) {
        const uint32_t number = FIRST_NUMBER + (first + i) % NUMBERS;
        p->in_fd = wire_socket(p->device->ip, (uint16_t)number, false);
        if (p->in_fd >= 0) {
            p->qp.qp_num = number;
            return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, p->in_fd, &event) < 0 ? -errno : 0;
        }
        if (p->in_fd != -EADDRINUSE) {
            return p->in_fd;
        }
    }
    return -ENOMEM;
}

int wire_connect(struct pair *p)
{
    const struct ibv_ah_attr *ah = &p->attr.ah_attr;
    uint8_t ip[16];

    wire_peer(p->device, ah, ip);
    if (p->device->roce) {
        if (!ah->is_global || fake_is_v4(ip) != fake_is_v4(p->device->ip)) {
            return EINVAL;
        }
        p->source_port = wire_port_of_label(
            ah->grh.flow_label != 0 ? ah->grh.flow_label : p->qp.qp_num * p->attr.dest_qp_num);
    } else {
        p->source_port = (uint16_t)(0xc000 | (ah->src_path_bits & 3) << 2 | (ah->dlid & 3));
    }
    const struct wire_place peer = wire_place_of(ip, (uint16_t)p->attr.dest_qp_num);
    p->out_fd = wire_socket(p->device->ip, p->source_port, true);
    if (p->out_fd < 0) {
        return -p->out_fd;
    }
    wire_mark(p->out_fd, p->device->ip, ah->grh.traffic_class);
    p->expected = p->attr.rq_psn;
    return connect(p->out_fd, (const struct sockaddr *)&peer.address, peer.size) < 0 ? errno : 0;
}

void wire_close(struct pair *p)
{
    if (p->in_fd >= 0) {
        close(p->in_fd);
    }
    if (p->out_fd >= 0) {
        close(p->out_fd);
    }
    free(p->requests);
    p->requests = NULL;
    p->in_fd = p->out_fd = -1;
}
