/* relay.c: the relay's loop: one FIFO. It spins for the last microseconds before a packet is due. */
#include "lab/relay.h"
#include "lab/machine.h"

#include "base/prng.h"
#include "base/time.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/if_packet.h>
#include <linux/net_tstamp.h>
#include <linux/virtio_net.h>
#include <math.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RELAY_MARK   0xf0110717U
#define FRAME_MAX    (65536 + 64)
#define HELD_MAX     4096
#define STAMP_RING   1024
#define SPIN_NS      60000
#define RELAY_BUFFER (8 << 20)

struct frame {
    struct frame *next;
    int64_t come_real_ns;
    int64_t due_raw_ns;
    bool is_probe;
    size_t size;
    uint8_t bytes[]; /* virtio header and frame */
};

struct relay {
    struct relay_log *log;
    int in_fd, out_fd;
    struct frame *first, **last;
    unsigned held;
    struct prng prng;
    uint32_t stamp_id;           /* of the next stamped packet */
    int64_t come_ns[STAMP_RING]; /* by stamp id */
};

static void veth_names(int id, const struct lab_spot *spot, char ret_near[16], char ret_far[16])
{
    /* Each direction of a port may have its own relay. */
    char side = spot->hook == HOOK_INGRESS ? 'i' : 'e';
    snprintf(ret_near, 16, "ra%d%c", id, side);
    snprintf(ret_far, 16, "rb%d%c", id, side);
}

/* Opens a packet socket on an interface; with protocol 0 it only sends. */
static int packet_socket(const char *interface, bool is_reader)
{
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    int one = 1;
    int size = RELAY_BUFFER;
    int mark = (int)RELAY_MARK;
    int stamping = SOF_TIMESTAMPING_SOFTWARE | SOF_TIMESTAMPING_OPT_ID |
                   SOF_TIMESTAMPING_OPT_TSONLY | (is_reader ? SOF_TIMESTAMPING_RX_SOFTWARE : 0);
    struct sockaddr_ll address = {.sll_family = AF_PACKET,
                                  .sll_protocol = is_reader ? htons(ETH_P_ALL) : 0,
                                  .sll_ifindex = (int)if_nametoindex(interface)};
    if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)) < 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0 ||
        setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPING, &stamping, sizeof(stamping)) < 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        int r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

/* The message's software stamp; 0: none. */
static int64_t stamp_of(struct msghdr *m, uint32_t *ret_id)
{
    int64_t stamp_ns = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_TIMESTAMPING) {
            struct timespec t[3];
            memcpy(t, CMSG_DATA(c), sizeof(t));
            stamp_ns = t[0].tv_sec * NS_PER_S + t[0].tv_nsec;
        } else if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_TX_TIMESTAMP &&
                   ret_id != NULL) {
            struct sock_extended_err e;
            memcpy(&e, CMSG_DATA(c), sizeof(e));
            *ret_id = e.ee_data;
        }
    }
    return stamp_ns;
}

static bool frame_is_probe(const uint8_t *bytes, size_t size)
{
    const uint8_t *p = bytes + sizeof(struct virtio_net_hdr);
    if (size < sizeof(struct virtio_net_hdr) + 60 || size > 400) {
        return false;
    }
    return (p[12] == 0x08 && p[13] == 0x00 && (p[15] & 0xfc) == 0xc0) ||
           (p[12] == 0x86 && p[13] == 0xdd && (p[14] & 0x0f) == 0x0c && (p[15] & 0xc0) == 0);
}

static bool frame_take(struct relay *r)
{
    static uint8_t buffer[FRAME_MAX];
    char control[256];
    struct iovec iov = {buffer, sizeof(buffer)};
    struct msghdr m = {.msg_iov = &iov,
                       .msg_iovlen = 1,
                       .msg_control = control,
                       .msg_controllen = sizeof(control)};
    ssize_t size = recvmsg(r->in_fd, &m, 0);
    if (size <= (ssize_t)sizeof(struct virtio_net_hdr)) {
        return false;
    }
    struct frame *f = r->held < HELD_MAX ? malloc(sizeof(*f) + (size_t)size) : NULL;
    if (f == NULL) {
        return true; /* dropped, as by a full queue */
    }
    int64_t real_ns = machine_clock_ns(CLOCK_REALTIME);
    int64_t raw_ns = machine_clock_ns(CLOCK_MONOTONIC_RAW);
    int64_t stamp_ns = stamp_of(&m, NULL);
    f->come_real_ns = stamp_ns != 0 ? stamp_ns : real_ns;
    f->size = (size_t)size;
    memcpy(f->bytes, buffer, f->size);
    f->is_probe = frame_is_probe(f->bytes, f->size);
    int64_t hold_ns = __atomic_load_n(&r->log->delay_ns, __ATOMIC_RELAXED);
    int64_t jitter_ns = __atomic_load_n(&r->log->jitter_ns, __ATOMIC_RELAXED);
    if (jitter_ns > 0) {
        hold_ns += (int64_t)(prng_exponential(&r->prng) * (double)jitter_ns);
    }
    f->due_raw_ns = hold_ns > 0 ? raw_ns - (real_ns - f->come_real_ns) + hold_ns : raw_ns;
    f->next = NULL;
    *r->last = f;
    r->last = &f->next;
    r->held++;
    return true;
}

static void frame_send(struct relay *r, const struct frame *f)
{
    char control[CMSG_SPACE(sizeof(uint32_t))] = {0};
    struct iovec iov = {(void *)f->bytes, f->size};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
    if (f->is_probe) {
        uint32_t flags = SOF_TIMESTAMPING_TX_SOFTWARE;
        m.msg_control = control;
        m.msg_controllen = sizeof(control);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SO_TIMESTAMPING;
        c->cmsg_len = CMSG_LEN(sizeof(flags));
        memcpy(CMSG_DATA(c), &flags, sizeof(flags));
        r->come_ns[r->stamp_id % STAMP_RING] = f->come_real_ns;
    }
    if (sendmsg(r->out_fd, &m, 0) >= 0) {
        r->stamp_id += f->is_probe;
        r->log->packets++;
    }
}

/* Sends the packets that are due. Returns the time until the next one; -1: no packet is held. */
static int64_t send_due(struct relay *r)
{
    while (r->first != NULL) {
        int64_t wait_ns = r->first->due_raw_ns - machine_clock_ns(CLOCK_MONOTONIC_RAW);
        if (wait_ns > 0) {
            return wait_ns;
        }
        struct frame *f = r->first;
        r->first = f->next;
        if (r->first == NULL) {
            r->last = &r->first;
        }
        r->held--;
        frame_send(r, f);
        free(f);
    }
    return -1;
}

static void read_stamps(struct relay *r)
{
    for (;;) {
        char control[512];
        char byte[64];
        uint32_t id = 0;
        struct iovec iov = {byte, sizeof(byte)};
        struct msghdr m = {.msg_iov = &iov,
                           .msg_iovlen = 1,
                           .msg_control = control,
                           .msg_controllen = sizeof(control)};
        if (recvmsg(r->out_fd, &m, MSG_ERRQUEUE) < 0) {
            return;
        }
        int64_t leave_ns = stamp_of(&m, &id);
        if (leave_ns == 0 || r->stamp_id - id > STAMP_RING) {
            continue;
        }
        struct relay_log *log = r->log;
        log->sample[log->sample_count % RELAY_SAMPLE_MAX] =
            (struct relay_sample){.raw_ns = leave_ns - machine_clock_ns(CLOCK_REALTIME) +
                                            machine_clock_ns(CLOCK_MONOTONIC_RAW),
                                  .delay_ns = leave_ns - r->come_ns[id % STAMP_RING]};
        __atomic_store_n(&log->sample_count, log->sample_count + 1, __ATOMIC_RELEASE);
    }
}

static void relay_loop(struct relay *r, int stop_fd)
{
    struct pollfd p[3] = {
        {.fd = r->in_fd, .events = POLLIN}, {.fd = r->out_fd}, {.fd = stop_fd, .events = POLLIN}};
    for (;;) {
        while (frame_take(r)) {
        }
        int64_t wait_ns = send_due(r);
        if (wait_ns >= 0 && wait_ns < SPIN_NS) {
            continue;
        }
        read_stamps(r);
        struct timespec t = {.tv_sec = (wait_ns - SPIN_NS) / NS_PER_S,
                             .tv_nsec = (wait_ns - SPIN_NS) % NS_PER_S};
        if (ppoll(p, 3, wait_ns < 0 ? NULL : &t, NULL) > 0 && (p[2].revents & POLLIN)) {
            return;
        }
    }
}

static int copy_mac(const char *from, const char *to)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(request.ifr_name, IFNAMSIZ, "%s", from);
    int r = fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request) < 0 ? -errno : 0;
    snprintf(request.ifr_name, IFNAMSIZ, "%s", to);
    r = r == 0 && ioctl(fd, SIOCSIFHWADDR, &request) < 0 ? -errno : r;
    if (fd >= 0) {
        close(fd);
    }
    return r;
}

static int veth_make(const struct lab_spot *spot, int id)
{
    char near[16];
    char far[16];
    veth_names(id, spot, near, far);
    const char *argv[] = {"ip", "link", "add", near, "type", "veth", "peer", "name", far, NULL};
    int r = machine_run(argv, NULL);
    /* A packet that the relay puts back arrives at `near`. So `near` must have the port's address. */
    r = r == 0 ? copy_mac(spot->port.interface, near) : r;
    r = r == 0 ? machine_link_set(near, true) : r;
    return r == 0 ? machine_link_set(far, true) : r;
}

void relay_clear(const struct lab_spot *spot, int id)
{
    char near[16];
    char far[16];
    veth_names(id, spot, near, far);
    const char *argv[] = {"ip", "link", "delete", near, NULL};
    (void)!machine_filter_delete(spot->port.interface, spot->hook, (uint16_t)id);
    if (if_nametoindex(near) != 0) {
        (void)!machine_run(argv, NULL);
    }
}

static int sockets_open(struct relay *r, const struct lab_spot *spot, const char *far)
{
    r->in_fd = packet_socket(far, true);
    if (r->in_fd < 0) {
        return r->in_fd;
    }
    r->out_fd = packet_socket(spot->hook == HOOK_EGRESS ? spot->port.interface : far, false);
    if (r->out_fd < 0) {
        close(r->in_fd);
        return r->out_fd;
    }
    return 0;
}

int relay_run(const struct lab_spot *spot, int id, struct relay_log *log, int stop_fd,
              void (*ready)(void *data), void *data)
{
    struct relay *r = calloc(1, sizeof(*r));
    char near[16];
    char far[16];
    veth_names(id, spot, near, far);
    int rc = r == NULL ? -ENOMEM : veth_make(spot, id);
    if (rc == 0) {
        r->log = log;
        r->last = &r->first;
        prng_init(&r->prng, (uint64_t)id);
        rc = sockets_open(r, spot, far);
    }
    if (rc == 0) {
        struct machine_filter f = {.match = spot->match,
                                   .probability = 1.0,
                                   .verdict = VERDICT_REDIRECT,
                                   .redirect_index = if_nametoindex(near),
                                   .skip_mark = spot->hook == HOOK_EGRESS ? RELAY_MARK : 0};
        f.match.is_transport_only = true;
        /* Late packets come only from this program. So it runs before all others, without slack in its timers. */
        struct sched_param priority = {.sched_priority = 10};
        sched_setscheduler(0, SCHED_FIFO, &priority);
        prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
        rc = machine_filter_add(spot->port.interface, spot->hook, (uint16_t)id, &f);
        if (rc == 0) {
            ready(data);
            relay_loop(r, stop_fd);
        }
        close(r->in_fd);
        close(r->out_fd);
    }
    relay_clear(spot, id);
    free(r);
    return rc;
}
