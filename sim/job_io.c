/* job_io.c: the simulated kernel's functions for io.h: descriptors, epoll, clocks, carriers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job_private.h"

#define WAKE_NS      (5 * NS_PER_US) /* from an interrupt to the process */
#define FLEET_BASE   1700000000000000000LL
#define FIRST_FILE   3
#define WAIT_STEP_NS (100 * NS_PER_MS) /* in a dead process's own time */

/* -- clocks ----------------------------------------------------------------------------------- */

/* How far the raw clock is ahead by then. */
static int64_t drift(const struct process *p, int64_t at)
{
    return at / NS_PER_S * p->raw_ppb + at % NS_PER_S * p->raw_ppb / NS_PER_S;
}

int64_t process_raw(const struct process *p, int64_t at)
{
    return p->raw_offset + at + drift(p, at) + p->dying_ns;
}

int64_t process_true(const struct process *p, int64_t raw)
{
    const int64_t at = raw - p->raw_offset - p->dying_ns;

    /* Rounded up: a little too late does no harm, one ns too early wakes the process twice. */
    return at - drift(p, at - drift(p, at)) + 2;
}

static struct mono io_now(struct io *io)
{
    const struct process *p = io->driver;

    return (struct mono){process_raw(p, p->world->now)};
}

struct io_stamp process_stamp(const struct process *p, int64_t at, bool kernel)
{
    if (p->fleet_half == IO_HALF_UNKNOWN) {
        return (struct io_stamp){.at = {process_raw(p, at) + p->fleet_offset},
                                 .half_ns = IO_HALF_UNKNOWN,
                                 .kernel = kernel};
    }
    return (struct io_stamp){.at = {FLEET_BASE + at + p->fleet_error},
                             .half_ns = p->fleet_half,
                             .epoch = p->fleet_epoch,
                             .kernel = kernel};
}

static struct io_stamp io_stamp_now(struct io *io)
{
    const struct process *p = io->driver;

    return process_stamp(p, p->world->now, false);
}

static void io_random(struct io *io, void *bytes, size_t size)
{
    struct process *p = io->driver;
    uint8_t *to = bytes;

    for (size_t i = 0; i < size; i++) {
        to[i] = (uint8_t)prng_u64(&p->prng);
    }
}

/* -- descriptors ------------------------------------------------------------------------------ */

/* The lowest free descriptor, as in a kernel: numbers are used again at once. */
int process_file(struct process *p, uint32_t conn, uint8_t end)
{
    uint32_t i = p->file_low;

    if (p->no_files || p->file_used >= p->file_max) {
        return -EMFILE;
    }
    while (i < p->file_count && p->files[i].used) {
        i++;
    }
    if (i == p->file_count) {
        const uint32_t count = p->file_count == 0 ? 16 : p->file_count * 2;
        p->files = realloc(p->files, count * sizeof(*p->files));
        memset(p->files + p->file_count, 0, (count - p->file_count) * sizeof(*p->files));
        p->file_count = count;
    }
    p->files[i] = (struct descriptor){.used = true, .conn = conn, .end = end};
    p->file_low = i + 1;
    p->file_used++;
    return (int)i + FIRST_FILE;
}

static struct descriptor *file_of(struct process *p, int fd)
{
    return &p->files[fd - FIRST_FILE];
}

static void file_free(struct process *p, int fd)
{
    const uint32_t i = (uint32_t)(fd - FIRST_FILE);

    p->files[i].used = false;
    p->file_used--;
    p->file_low = i < p->file_low ? i : p->file_low;
}

/* -- calls ------------------------------------------------------------------------------------ */

/* Listens at all addresses of the process, whatever address was asked for. Listeners after the first are descriptors only. */
static int io_listen(struct io *io, const struct io_address *at, uint16_t low, uint16_t high,
                     int *ret_conn, uint16_t *ret_port)
{
    struct process *p = io->driver;
    const uint32_t sharing = pattern_sharing(p->world);
    const int fd = process_file(p, SIM_CONN_NONE, 0);

    (void)at;
    (void)low;
    (void)high;
    if (fd < 0) {
        return fd;
    }
    if (p->listener < 0) {
        p->listener = fd;
        p->port = (uint16_t)(20000 + prng_below(&p->prng, 10000));
        p->port = (uint16_t)(p->port - p->port % sharing + p->index % sharing);
    }
    *ret_port = p->port;
    *ret_conn = fd;
    return 0;
}

static int io_accept(struct io *io, int listener, int *ret_conn, struct io_address *ret_local,
                     struct io_address *ret_peer)
{
    struct process *p = io->driver;
    struct job_world *w = p->world;

    if (p->killed || listener != p->listener || p->backlog_count == 0) {
        return -EAGAIN;
    }
    const int fd = process_file(p, p->backlog[0], 1);
    if (fd < 0) {
        return fd;
    }
    struct conn *c = tcp_conn(w, p->backlog[0]);
    c->ends[1].fd = fd;
    c->ends[1].backlogged = false;
    *ret_local = job_net_address(&w->net, c->ends[1].nic);
    ret_local->port = c->ends[1].port;
    *ret_peer = job_net_address(&w->net, c->ends[0].nic);
    ret_peer->port = c->ends[0].port;
    memmove(p->backlog, p->backlog + 1, --p->backlog_count * sizeof(*p->backlog));
    *ret_conn = fd;
    return 0;
}

static void io_carry(struct io *io, int conn, const struct io_connect *how)
{
    (void)io; /* its sockets have none of these */
    (void)conn;
    (void)how;
}

static int io_connect_to(struct io *io, const struct io_connect *connect, int *ret_conn)
{
    struct process *p = io->driver;
    struct job_world *w = p->world;
    uint32_t conn;

    if (p->killed) {
        return -EHOSTUNREACH;
    }
    int fd = process_file(p, SIM_CONN_NONE, 0);
    if (fd < 0) {
        return fd;
    }
    int r = sim_connect(w, p, connect, &conn);
    if (r < 0) {
        file_free(p, fd);
        return r;
    }
    *file_of(p, fd) = (struct descriptor){.used = true, .conn = conn, .end = 0};
    tcp_conn(w, conn)->ends[0].fd = fd;
    w->result->connections++;
    w->result->late_connections += w->steady;
    *ret_conn = fd;
    return 0;
}

static int io_connected(struct io *io, int conn, struct io_address *ret_local)
{
    struct process *p = io->driver;
    const struct descriptor *file = file_of(p, conn);
    struct end *e = p->killed ? NULL : &tcp_conn(p->world, file->conn)->ends[0];

    if (e == NULL || e->state == END_DEAD) {
        return e == NULL || e->error == 0 ? -ECONNRESET : e->error;
    }
    if (e->state == END_OPENING) {
        return -EAGAIN;
    }
    *ret_local = job_net_address(&p->world->net, e->nic);
    ret_local->port = e->port;
    return 0;
}

static ssize_t io_send(struct io *io, int conn, const struct iovec *parts, int count)
{
    struct process *p = io->driver;
    const struct descriptor *file = file_of(p, conn);

    return p->killed ? -ECONNRESET : sim_send(p->world, file->conn, file->end, parts, count);
}

static ssize_t io_receive(struct io *io, int conn, const struct iovec *parts, int count,
                          struct io_stamp *ret_stamp)
{
    struct process *p = io->driver;
    const struct descriptor *file = file_of(p, conn);

    if (p->killed) {
        return -ECONNRESET;
    }
    ssize_t n = sim_receive(p->world, file->conn, file->end, parts, count);
    if (n > 0 && ret_stamp != NULL) {
        *ret_stamp =
            process_stamp(p, tcp_conn(p->world, file->conn)->ends[file->end].arrived_at, true);
    }
    return n;
}

static void io_close(struct io *io, int conn, bool reset)
{
    struct process *p = io->driver;
    const struct descriptor file = *file_of(p, conn);

    if (conn == p->listener) {
        p->listener = -1;
        p->listener_armed = false;
    }
    file_free(p, conn);
    if (!p->killed && file.conn != SIM_CONN_NONE) {
        sim_close(p->world, file.conn, file.end, reset);
    }
}

static void io_info(struct io *io, int conn, struct io_info *ret)
{
    struct process *p = io->driver;
    const struct descriptor *file = file_of(p, conn);

    *ret = (struct io_info){0};
    if (!p->killed) {
        sim_info(p->world, file->conn, file->end, ret);
    }
}

static void io_pace(struct io *io, int conn, uint64_t bytes_per_s)
{
    (void)io;
    (void)conn;
    (void)bytes_per_s;
}

/* -- waiting ---------------------------------------------------------------------------------- */

static void make_ready(struct process *p, uint32_t conn, uint8_t end)
{
    struct end *e = &tcp_conn(p->world, conn)->ends[end];

    if (e->queued) {
        return;
    }
    if (p->ready_count == p->ready_capacity) {
        p->ready_capacity = p->ready_capacity == 0 ? 16 : p->ready_capacity * 2;
        p->ready = realloc(p->ready, p->ready_capacity * sizeof(*p->ready));
    }
    e->queued = true;
    p->ready[p->ready_count++] = (struct ready){conn, tcp_conn(p->world, conn)->generation, end};
}

void process_ready(struct job_world *w, uint32_t conn, uint8_t end)
{
    struct end *e = &tcp_conn(w, conn)->ends[end];
    struct process *p = &w->processes[e->process];

    if (e->fd < 0 || p->killed) {
        return;
    }
    if ((e->armed & sim_poll(w, conn, end)) != 0) {
        make_ready(p, conn, end);
        world_wake(w, p, w->now + WAKE_NS);
    } else if (w->config.poll_ns < NS_PER_MS) {
        /* a process that polls all the time notices it now */
        world_wake(w, p, w->now + WAKE_NS);
    }
}

static int io_arm(struct io *io, int conn, uint64_t tag, uint32_t events)
{
    struct process *p = io->driver;
    const struct descriptor *file = file_of(p, conn);

    if (p->killed) {
        return 0;
    }
    if (conn == p->listener) {
        p->listener_tag = tag;
        p->listener_armed = events != 0;
        return 0;
    }
    if (file->conn == SIM_CONN_NONE) {
        return 0;
    }
    struct end *e = &tcp_conn(p->world, file->conn)->ends[file->end];
    e->armed = events;
    e->tag = tag;
    if ((events & sim_poll(p->world, file->conn, file->end)) != 0) {
        make_ready(p, file->conn, file->end);
    }
    return 0;
}

/* It never waits: the world runs the process when it is time. */
static int io_wait(struct io *io, struct mono until, struct io_event *ret_events, int capacity)
{
    struct process *p = io->driver;
    uint32_t seen = 0;
    int count = 0;

    if (p->killed) { /* it runs in its own time, to give its memory back */
        p->dying_ns += WAIT_STEP_NS;
        return 0;
    }
    (void)until;
    if (p->links_changed && count < capacity) {
        p->links_changed = false;
        ret_events[count++] = (struct io_event){.tag = IO_TAG_LINKS};
    }
    if (p->listener_armed && p->backlog_count > 0 && count < capacity) {
        p->listener_armed = false;
        ret_events[count++] = (struct io_event){.tag = p->listener_tag, .events = IO_IN};
    }
    for (; seen < p->ready_count && count < capacity; seen++) {
        const struct ready *r = &p->ready[seen];
        struct conn *c = tcp_conn(p->world, r->conn);
        if (!c->used || c->generation != r->generation) {
            continue;
        }
        struct end *e = &c->ends[r->end];
        const uint32_t events = e->armed & sim_poll(p->world, r->conn, r->end);
        e->queued = false;
        if (events != 0 && e->fd >= 0) {
            e->armed = 0;
            ret_events[count++] = (struct io_event){.tag = e->tag, .events = events};
        }
    }
    if (seen > 0) {
        p->ready_count -= seen;
        memmove(p->ready, p->ready + seen, p->ready_count * sizeof(*p->ready));
    }
    return count;
}

static void io_kick(struct io *io)
{
    struct process *p = io->driver;

    if (!p->killed) {
        world_wake(p->world, p, p->world->now);
    }
}

static int io_carrier(struct io *io, const char *device, uint32_t *ret_downs)
{
    const struct process *p = io->driver;
    const struct job_net *net = &p->world->net;
    const uint32_t nic =
        p->index / pattern_sharing(p->world) * net->config.nics + (uint32_t)(device[3] - '0');

    if (p->world->config.carrier_unknown) {
        return -ENOENT;
    }
    *ret_downs = net->nics[nic].downs;
    return net->nics[nic].carrier;
}

void process_io(struct process *p)
{
    p->io = (struct io){.driver = p,
                        .now = io_now,
                        .stamp = io_stamp_now,
                        .random = io_random,
                        .listen = io_listen,
                        .accept = io_accept,
                        .carry = io_carry,
                        .connect = io_connect_to,
                        .connected = io_connected,
                        .send = io_send,
                        .receive = io_receive,
                        .close = io_close,
                        .info = io_info,
                        .pace = io_pace,
                        .arm = io_arm,
                        .wait = io_wait,
                        .kick = io_kick,
                        .carrier = io_carrier};
}
