/* traffic_run.c: one epoll loop over all flows. */
#include "lab/traffic_run.h"

#include "lab/machine.h"
#include "lab/traffic_port.h"
#include "lab/traffic_socket.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RECEIVE_SIZE  (256 * 1024)
#define DATAGRAM_SIZE 1400
#define SEGMENTS_MAX  44 /* of one UDP burst, which is below 64 KiB */

struct flow {
    struct traffic_flow plan;
    struct traffic_flow_state state;
    int out, in; /* sockets */
    int64_t sent_ever, received_ever;
    int64_t goal;  /* job: the flow stops sending there */
    double credit; /* UDP: bytes that may be sent now */
};

struct traffic {
    struct traffic_config config;
    struct flow *flows;
    int poll, pattern_fd;
    uint8_t *pattern; /* stored twice, so that any window is contiguous */
    uint8_t *scratch;
    int64_t last_tick_ns;
    int unfinished; /* job: flows that haven't arrived in full */
    int error;
};

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static size_t position(int flow, int64_t byte)
{
    return (size_t)((byte + (int64_t)flow * 104729) % TRAFFIC_PATTERN_SIZE);
}

/* ---- sending ---- */

/* After its goal a flow sends nothing until the next job. */
static void send_stream(struct traffic *t, int index)
{
    struct flow *f = &t->flows[index];
    while (true) { /* edge triggered: send until there is no room */
        int64_t left = t->config.job_bytes > 0 ? f->goal - f->sent_ever : INT64_MAX;
        off_t offset = (off_t)position(index, f->sent_ever);
        int64_t size = TRAFFIC_PATTERN_SIZE - (int64_t)offset;
        size = size < left ? size : left;
        if (size <= 0) {
            return;
        }
        ssize_t n = sendfile(f->out, t->pattern_fd, &offset, (size_t)size);
        if (n < 0) {
            if (errno != EAGAIN && errno != EINTR) {
                t->error = -errno;
            }
            return;
        }
        f->sent_ever += n;
        f->state.sent += n;
    }
}

static void send_bursts(struct traffic *t, int index, int64_t elapsed_ns)
{
    struct flow *f = &t->flows[index];
    double rate = f->plan.rate_bps > 0 ? f->plan.rate_bps : 10e9;
    double most = rate / 8e9 * 4 * TRAFFIC_TICK_NS; /* a late turn catches up at most this much */
    f->credit += rate / 8e9 * (double)elapsed_ns;
    f->credit = f->credit < most ? f->credit : most;
    while (f->credit >= DATAGRAM_SIZE) {
        int segments = (int)(f->credit / DATAGRAM_SIZE);
        segments = segments < SEGMENTS_MAX ? segments : SEGMENTS_MAX;
        size_t size = (size_t)segments * DATAGRAM_SIZE;
        ssize_t n = send(f->out, t->pattern, size, MSG_DONTWAIT);
        if (n < 0) {
            return; /* no room: UDP loses these datagrams */
        }
        f->credit -= (double)n;
        f->state.sent += n;
    }
}

/* ---- receiving ---- */

static void check_bytes(struct traffic *t, int index, const uint8_t *bytes, size_t size)
{
    struct flow *f = &t->flows[index];
    size_t at = position(index, f->received_ever);
    /* The pattern is stored twice, and size is below its length, so one comparison suffices. */
    if (memcmp(bytes, t->pattern + at, size) != 0) {
        for (size_t k = 0; k < size; k++) {
            f->state.bad += bytes[k] != t->pattern[at + k];
        }
    }
}

static void receive(struct traffic *t, int index)
{
    struct flow *f = &t->flows[index];
    int flags = MSG_DONTWAIT | (t->config.check ? 0 : MSG_TRUNC);
    for (int turn = 0; turn < 4; turn++) {
        ssize_t n = recv(f->in, t->scratch, RECEIVE_SIZE, flags);
        if (n <= 0) {
            if (n == 0 && !t->config.udp) {
                t->error = -ECONNRESET;
            } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
                t->error = -errno;
            }
            return;
        }
        if (t->config.check && !t->config.udp) {
            check_bytes(t, index, t->scratch, (size_t)n);
        }
        bool before = f->received_ever < f->goal;
        f->received_ever += n;
        f->state.received += n;
        if (t->config.job_bytes > 0 && before && f->received_ever >= f->goal) {
            t->unfinished--;
        }
        if (!t->config.udp && n < RECEIVE_SIZE) {
            return;
        }
    }
}

/* ---- the loop ---- */

static void udp_tick(struct traffic *t)
{
    int64_t now = now_ns(), elapsed = now - t->last_tick_ns;
    if (elapsed < TRAFFIC_TICK_NS) {
        return;
    }
    t->last_tick_ns = now;
    for (int i = 0; i < t->config.flow_count; i++) {
        send_bursts(t, i, elapsed);
    }
}

int traffic_run(struct traffic *t, int64_t duration_ns, const volatile sig_atomic_t *stop)
{
    int64_t end = duration_ns > 0 ? now_ns() + duration_ns : INT64_MAX;
    t->last_tick_ns = now_ns();
    t->unfinished = t->config.flow_count;
    for (int i = 0; i < t->config.flow_count; i++) {
        t->flows[i].goal += t->config.job_bytes;
        if (t->config.job_bytes > 0) {
            send_stream(t, i); /* edge triggered: a socket reports room only once */
        }
    }
    while (!*stop && t->error == 0 && (t->config.job_bytes == 0 || t->unfinished > 0)) {
        int64_t left = (end - now_ns()) / 1000000;
        int wait = t->config.udp ? TRAFFIC_TICK_NS / 1000000 : 200;
        struct epoll_event events[64];
        if (left <= 0) {
            return t->config.job_bytes > 0 ? -ETIMEDOUT : 0;
        }
        int n = epoll_wait(t->poll, events, 64, left < wait ? (int)left : wait);
        for (int i = 0; i < n; i++) {
            int index = (int)(events[i].data.u32 >> 1);
            if (events[i].data.u32 & 1) {
                receive(t, index);
            } else {
                send_stream(t, index);
            }
        }
        if (t->config.udp) {
            udp_tick(t);
        }
    }
    return t->error;
}

void traffic_mark(struct traffic *t)
{
    for (int i = 0; i < t->config.flow_count; i++) {
        t->flows[i].state.sent = t->flows[i].state.received = 0;
    }
}

const struct traffic_flow_state *traffic_flow_state(const struct traffic *t, int flow)
{
    return &t->flows[flow].state;
}

/* ---- setting up ---- */

static int watch(struct traffic *t, int fd, int index, bool in)
{
    struct epoll_event e = {.events = in ? EPOLLIN : EPOLLOUT | EPOLLET,
                            .data.u32 = (uint32_t)index << 1 | (in ? 1 : 0)};
    return epoll_ctl(t->poll, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int open_flow(struct traffic *t, int index, struct traffic_ports *ports)
{
    const struct traffic_config *c = &t->config;
    struct flow *f = &t->flows[index];
    struct traffic_link link = {
        .lab = c->lab,
        .source = &c->nics[f->plan.source],
        .sink = &c->nics[f->plan.sink],
        .sink_port = (uint16_t)(TRAFFIC_PORT_BASE + index),
        .udp = c->udp,
        .ipv6 = c->ipv6,
        .high_class = c->high_class,
        .ends = c->job_bytes > 0,
        .rate_bps = f->plan.rate_bps,
    };
    f->in = f->out = -1;
    int r = c->any_port ? 0 : traffic_ports_choose(ports, &link, &f->state.trunk);
    if (r == 0) {
        r = traffic_link_open(&link, &f->out, &f->in);
    }
    f->state.port = link.source_port;
    if (r == 0) {
        r = watch(t, f->in, index, true);
    }
    if (r == 0 && !c->udp) {
        r = watch(t, f->out, index, false);
    }
    return r;
}

static int make_pattern(struct traffic *t)
{
    size_t size = 2 * (size_t)TRAFFIC_PATTERN_SIZE;
    uint64_t x = 0x9e3779b97f4a7c15ULL;
    t->pattern_fd = memfd_create("foliot-traffic", MFD_CLOEXEC);
    if (t->pattern_fd < 0 || ftruncate(t->pattern_fd, (off_t)size) < 0) {
        return -errno;
    }
    t->pattern = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, t->pattern_fd, 0);
    if (t->pattern == MAP_FAILED) {
        t->pattern = NULL;
        return -errno;
    }
    for (size_t i = 0; i < TRAFFIC_PATTERN_SIZE; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        t->pattern[i] = t->pattern[i + TRAFFIC_PATTERN_SIZE] = (uint8_t)(x >> 32);
    }
    return 0;
}

static int open_all(struct traffic *t)
{
    struct traffic_ports *ports = traffic_ports_new();
    int r = ports == NULL ? -ENOMEM : 0;
    for (int i = 0; i < t->config.flow_count && r == 0; i++) {
        r = open_flow(t, i, ports);
        if (r < 0) {
            const struct traffic_nic *a = &t->config.nics[t->flows[i].plan.source],
                                     *b = &t->config.nics[t->flows[i].plan.sink];
            fprintf(stderr, "foliot lab traffic: from %d.%d to %d.%d: %s\n", a->host, a->nic,
                    b->host, b->nic, strerror(-r));
        }
    }
    traffic_ports_free(ports);
    /* Stays in one of the lab's namespaces: `down` finds the lab's processes by them. */
    char space[64];
    lab_space(t->config.lab, NODE_HOST, 0, space);
    int rc_enter = machine_enter_network(space);
    return r < 0 ? r : rc_enter;
}

struct traffic *traffic_new(const struct traffic_config *config)
{
    struct traffic *t = calloc(1, sizeof(*t));
    if (t == NULL) {
        return NULL;
    }
    t->config = *config;
    t->pattern_fd = -1;
    t->poll = epoll_create1(EPOLL_CLOEXEC);
    t->flows = calloc((size_t)config->flow_count, sizeof(*t->flows));
    t->scratch = malloc(RECEIVE_SIZE);
    int r = t->poll < 0 || t->flows == NULL || t->scratch == NULL ? -ENOMEM : make_pattern(t);
    if (r == 0) {
        for (int i = 0; i < config->flow_count; i++) {
            t->flows[i].plan = config->flows[i];
            t->flows[i].in = t->flows[i].out = -1;
        }
        r = open_all(t);
    }
    if (r < 0) {
        traffic_free(t);
        return NULL;
    }
    return t;
}

void traffic_free(struct traffic *t)
{
    if (t == NULL) {
        return;
    }
    for (int i = 0; t->flows != NULL && i < t->config.flow_count; i++) {
        if (t->flows[i].out >= 0) {
            close(t->flows[i].out);
        }
        if (t->flows[i].in >= 0) {
            close(t->flows[i].in);
        }
    }
    if (t->pattern != NULL) {
        munmap(t->pattern, 2 * (size_t)TRAFFIC_PATTERN_SIZE);
    }
    if (t->pattern_fd >= 0) {
        close(t->pattern_fd);
    }
    if (t->poll >= 0) {
        close(t->poll);
    }
    free(t->flows);
    free(t->scratch);
    free(t);
}
