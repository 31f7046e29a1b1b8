/* job_socket.c: a process's calls on its connections: connect, send, receive, close, poll; and calls of others. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job_private.h"

/* A source port that puts the connection on the wanted spine. */
static uint16_t port_for(struct job_world *w, const struct process *p, uint32_t from, uint32_t to,
                         uint16_t to_port)
{
    const bool wanted = p->index < w->config.drawn &&
                        w->net.nics[from].leaf != w->net.nics[to].leaf &&
                        w->now < START_NS + w->config.brown_ns;
    struct job_way out = {.from = from, .to = to, .to_port = to_port};
    struct job_way back = {.from = to, .to = from, .from_port = to_port};

    do {
        out.from_port = back.to_port = (uint16_t)(32768 + prng_below(&w->prng, 28000));
    } while (wanted && (job_net_spine(&w->net, &out) != w->config.spine_out ||
                        job_net_spine(&w->net, &back) != w->config.spine_back));
    return out.from_port;
}

int sim_connect(struct job_world *w, struct process *p, const struct io_connect *to,
                uint32_t *ret_conn)
{
    const int from_nic = job_net_nic(&w->net, &to->from), to_nic = job_net_nic(&w->net, &to->to);

    if (from_nic < 0 || to_nic < 0) {
        return -EADDRNOTAVAIL;
    }
    if (!w->net.nics[from_nic].carrier && prng_below(&w->prng, 4) == 0) {
        return -ENETUNREACH; /* the route may have gone with the carrier */
    }
    uint32_t conn = tcp_new_conn(w);
    struct end *e = &w->conns[conn]->ends[0];
    e->state = END_OPENING;
    e->process = (int)p->index;
    e->nic = (uint32_t)from_nic;
    e->port = port_for(w, p, (uint32_t)from_nic, (uint32_t)to_nic, to->to.port);
    e->port = to->from.port != 0 ? to->from.port : e->port;
    e->waiting_since = w->now;
    w->conns[conn]->ends[1].nic = (uint32_t)to_nic;
    w->conns[conn]->ends[1].port = to->to.port;
    tcp_set_timer(w, conn, 0);
    tcp_transmit(w, conn, 0, (struct packet){.kind = PACKET_SYN});
    *ret_conn = conn;
    return 0;
}

bool sim_stranger(struct job_world *w, uint32_t process)
{
    struct process *p = &w->processes[process],
                   *from = &w->processes[(process + 1) % w->config.hosts];
    struct io_connect to = {
        .from = job_net_address(&w->net, from->index / pattern_sharing(w) * w->config.nics),
        .to = job_net_address(&w->net, process / pattern_sharing(w) * w->config.nics)};
    uint32_t conn;

    to.to.port = p->port;
    if (p->listener < 0 || sim_connect(w, from, &to, &conn) < 0) {
        return false;
    }
    struct end *e = &w->conns[conn]->ends[0];
    e->closed = false;
    e->written = prng_below(&w->prng, 2) == 0 ? 0 : prng_below(&w->prng, 400);
    e->ring = e->written > 0 ? malloc(w->buffer_bytes) : NULL;
    for (uint64_t i = 0; i < e->written; i++) {
        e->ring[i] = i == 0 ? LANE_HELLO : (uint8_t)prng_u64(&w->prng);
    }
    e->fin = prng_below(&w->prng, 2) == 0;
    return true;
}

static int error_of(struct end *e)
{
    const int error = e->error != 0 ? e->error : -EPIPE;

    e->error = 0; /* reported only once */
    return error;
}

static uint64_t room(const struct job_world *w, const struct end *e)
{
    const uint64_t queued = e->written - e->acked, unsent = e->written - e->next;
    const uint64_t buffer = w->buffer_bytes / 2;

    if (queued >= buffer || unsent >= NOTSENT_BYTES) {
        return 0;
    }
    return buffer - queued < NOTSENT_BYTES - unsent ? buffer - queued : NOTSENT_BYTES - unsent;
}

static void copy_ring(const struct job_world *w, uint8_t *ring, uint64_t at, uint8_t *bytes,
                      size_t size, bool in)
{
    while (size > 0) {
        const size_t offset = at & (w->buffer_bytes - 1);
        const size_t part = size < w->buffer_bytes - offset ? size : w->buffer_bytes - offset;
        if (in) {
            memcpy(ring + offset, bytes, part);
        } else {
            memcpy(bytes, ring + offset, part);
        }
        at += part;
        bytes += part;
        size -= part;
    }
}

ssize_t sim_send(struct job_world *w, uint32_t conn, uint8_t end, const struct iovec *parts,
                 int count)
{
    struct end *e = &w->conns[conn]->ends[end];
    ssize_t sum = 0;

    if (e->state == END_DEAD) {
        return error_of(e);
    }
    uint64_t left = e->state == END_OPEN ? room(w, e) : 0;
    if (left > 1 && prng_below(&w->prng, 16) == 0) {
        left = 1 + prng_below(&w->prng, left); /* a kernel may take less */
    }
    if (left == 0) {
        return -EAGAIN;
    }
    if (e->ring == NULL && (e->ring = malloc(w->buffer_bytes)) == NULL) {
        return -EAGAIN;
    }
    for (int i = 0; i < count && left > 0; i++) {
        const size_t part = parts[i].iov_len < left ? parts[i].iov_len : left;
        copy_ring(w, e->ring, e->written, parts[i].iov_base, part, true);
        e->written += part;
        left -= part;
        sum += (ssize_t)part;
    }
    tcp_pump(w, conn, end);
    return sum;
}

ssize_t sim_receive(struct job_world *w, uint32_t conn, uint8_t end, const struct iovec *parts,
                    int count)
{
    struct end *e = &w->conns[conn]->ends[end], *peer = &w->conns[conn]->ends[!end];
    uint64_t left = e->received - e->read;
    ssize_t sum = 0;

    if (left == 0) {
        return e->state == END_DEAD ? (e->fin_taken && e->error == 0 ? 0 : error_of(e))
               : e->fin_taken       ? 0
                                    : -EAGAIN;
    }
    if (left > 1 && prng_below(&w->prng, 16) == 0) {
        left = 1 + prng_below(&w->prng, left);
    }
    for (int i = 0; i < count && left > 0; i++) {
        const size_t part = parts[i].iov_len < left ? parts[i].iov_len : left;
        copy_ring(w, peer->ring, e->read, parts[i].iov_base, part, false);
        e->read += part;
        left -= part;
        sum += (ssize_t)part;
    }
    if (e->state == END_OPEN &&
        e->read + w->buffer_bytes / 2 > e->advertised + w->buffer_bytes / 4) {
        tcp_acknowledge(w, conn, end, false, 0); /* there is room again */
    }
    if (w->config.hosts > 16 &&
        e->read == peer->written) { /* with many connections, idle ones keep no memory */
        free(peer->ring);
        peer->ring = NULL;
    }
    return sum;
}

void sim_close(struct job_world *w, uint32_t conn, uint8_t end, bool reset)
{
    struct end *e = &w->conns[conn]->ends[end];

    e->fd = -1;
    e->armed = 0;
    if (e->half && e->state == END_OPEN && e->written == 0) {
        /* A kernel would not have accepted it yet, so the process could not have refused it: the SYN comes again. */
        e->state = END_NONE;
        e->half = false;
        tcp_maybe_free(w, conn);
        return;
    }
    e->closed = true;
    if (e->state == END_OPEN && !reset && e->received == e->read) {
        e->fin = true;
        tcp_pump(w, conn, end);
        if (e->fin_taken && w->conns[conn]->ends[!end].state == END_DEAD) {
            tcp_die(w, conn, end, 0);
        }
    } else if (e->state == END_OPEN) { /* a reset was asked for, or there is unread input */
        tcp_send_reset(w, conn, end);
        tcp_die(w, conn, end, 0);
    } else {
        e->state = END_DEAD;
        e->timer = 0;
    }
    if (w->conns[conn]->used) {
        tcp_maybe_free(w, conn);
    }
}

uint32_t sim_poll(struct job_world *w, uint32_t conn, uint8_t end)
{
    const struct end *e = &w->conns[conn]->ends[end];

    if (e->state == END_DEAD) {
        return IO_IN | IO_OUT;
    }
    return (e->received > e->read || e->fin_taken ? IO_IN : 0) |
           (e->state == END_OPEN && room(w, e) > 0 ? IO_OUT : 0);
}

void sim_reset(struct job_world *w, uint32_t conn)
{
    for (uint8_t end = 0; end < 2 && w->conns[conn]->used; end++) {
        tcp_die(w, conn, end, -ECONNRESET);
    }
}

void sim_info(struct job_world *w, uint32_t conn, uint8_t end, struct io_info *ret)
{
    const struct end *e = &w->conns[conn]->ends[end];

    *ret = (struct io_info){.known = true,
                            .shut = e->edge < e->acked + TCP_SEGMENT && e->backoff <= 2,
                            .segments_out = e->segments,
                            .retransmits = e->resent,
                            .bytes_acked = e->acked,
                            .rtt_ns = (uint32_t)e->srtt_ns,
                            .rtt_var_ns = (uint32_t)e->var_ns,
                            .rtt_ns_min = (uint32_t)e->rtt_min_ns,
                            .resend_ns = (uint32_t)tcp_rto(w, e),
                            .unacked =
                                (uint32_t)((e->next - e->acked + TCP_SEGMENT - 1) / TCP_SEGMENT),
                            .backoff = e->backoff,
                            .notsent = (uint32_t)(e->written - e->next)};
}
