/* job_tcp.c: connections, as a kernel keeps them: TCP in bytes, without options.
 *
 * Modelled: handshakes and lost SYNs, finite buffers at both ends, windows, congestion control (halved at a gap, one segment
 * after a timeout), cumulative acknowledgements, retransmission timeouts that double, TCP_USER_TIMEOUT, resets (received,
 * sent, lost), orderly ends, bytes lost at a close with unread input, TCP_NOTSENT_LOWAT. So a connection over a path that
 * drops everything stays silent until the timeout, and goes on in order if the path comes back earlier. Not modelled:
 * selective acknowledgements (all bytes after a gap are sent again), delayed acknowledgements, keep-alive. A process's calls
 * are in job_socket.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job_private.h"

#define SEGMENT      TCP_SEGMENT
#define WINDOW_FIRST (10 * SEGMENT)
#define ACK_BYTES    0u
#define SYN_RTO_NS   NS_PER_S
#define USER_TIMEOUT (2 * NS_PER_S)
#define ORPHAN_NS    (60 * NS_PER_S)
#define RTO_MAX_NS   (120 * NS_PER_S)

struct conn *tcp_conn(struct job_world *w, uint32_t conn)
{
    return w->conns[conn];
}

/* -- packets ---------------------------------------------------------------------------------- */

static uint32_t new_packet(struct job_world *w)
{
    if (w->packet_free_count > 0) {
        return w->packet_free[--w->packet_free_count];
    }
    if ((w->packet_count & (w->packet_count + 1)) == 0 || w->packet_count == 0) {
        const size_t capacity = w->packet_count == 0 ? 2 : ((size_t)w->packet_count + 1) * 2;
        w->packets = realloc(w->packets, capacity * sizeof(*w->packets));
        w->packet_free = realloc(w->packet_free, capacity * sizeof(*w->packet_free));
        if (w->packets == NULL || w->packet_free == NULL) {
            abort();
        }
    }
    return w->packet_count++;
}

/* Sends the packet over the next link. */
static void forward(struct job_world *w, uint32_t index)
{
    const int64_t at = job_net_forward(&w->net, w->now, &w->packets[index].train);

    if (at >= 0) {
        world_add(w, at, EVENT_PACKET, index);
    } else {
        w->packet_free[w->packet_free_count++] = index;
    }
}

/* Sends a packet from that end to the other one. */
void tcp_transmit(struct job_world *w, uint32_t conn, uint8_t from, struct packet packet)
{
    const struct conn *c = w->conns[conn];
    const struct end *a = &c->ends[from], *b = &c->ends[!from];
    const uint32_t index = new_packet(w);

    packet.conn = conn;
    packet.generation = c->generation;
    packet.to = !from;
    packet.train = (struct job_train){
        .way = {.from = a->nic, .to = b->nic, .from_port = a->port, .to_port = b->port},
        .bytes = packet.length};
    w->packets[index] = packet;
    forward(w, index);
}

void tcp_acknowledge(struct job_world *w, uint32_t conn, uint8_t from, bool gap, int64_t sent_at)
{
    struct end *end = &w->conns[conn]->ends[from];

    end->advertised = end->read + w->buffer_bytes / 2;
    tcp_transmit(w, conn, from,
                 (struct packet){.kind = PACKET_ACK,
                                 .gap = gap,
                                 .fin = end->fin_taken,
                                 .sequence = end->received,
                                 .edge = end->advertised,
                                 .length = ACK_BYTES,
                                 .sent_at = sent_at});
}

void tcp_send_reset(struct job_world *w, uint32_t conn, uint8_t from)
{
    tcp_transmit(w, conn, from, (struct packet){.kind = PACKET_RESET});
}

/* -- birth and end ---------------------------------------------------------------------------- */

uint32_t tcp_new_conn(struct job_world *w)
{
    uint32_t index;

    if (w->conn_free_count > 0) {
        index = w->conn_free[--w->conn_free_count];
    } else {
        index = w->conn_count++;
        if ((index & (index - 1)) == 0) {
            const size_t capacity = index == 0 ? 1 : (size_t)index * 2;
            w->conns = realloc(w->conns, capacity * sizeof(struct conn *));
            w->conn_free = realloc(w->conn_free, capacity * sizeof(*w->conn_free));
        }
        w->conns[index] = calloc(1, sizeof(struct conn));
    }
    struct conn *c = w->conns[index];
    *c = (struct conn){.used = true, .generation = c->generation + 1};
    for (int i = 0; i < 2; i++) {
        c->ends[i].fd = -1;
        c->ends[i].window = WINDOW_FIRST;
        c->ends[i].threshold = w->buffer_bytes;
        c->ends[i].edge = WINDOW_FIRST;
        c->ends[i].advertised = WINDOW_FIRST;
    }
    return index;
}

static bool gone(const struct end *end)
{
    return end->state == END_NONE || (end->state == END_DEAD && end->fd < 0 && !end->backlogged);
}

/* Frees the connection once both ends are done. Its packets under way are dropped. */
void tcp_maybe_free(struct job_world *w, uint32_t conn)
{
    struct conn *c = w->conns[conn];

    if (c->used && gone(&c->ends[0]) && gone(&c->ends[1])) {
        free(c->ends[0].ring);
        free(c->ends[1].ring);
        c->ends[0].ring = c->ends[1].ring = NULL;
        c->used = false;
        c->generation++;
        w->conn_free[w->conn_free_count++] = conn;
    }
}

void tcp_die(struct job_world *w, uint32_t conn, uint8_t end, int error)
{
    struct end *e = &w->conns[conn]->ends[end];

    if (e->state == END_DEAD || e->state == END_NONE) {
        return;
    }
    e->state = END_DEAD;
    e->error = error;
    e->timer = 0;
    process_ready(w, conn, end);
    tcp_maybe_free(w, conn);
}

/* -- timers ----------------------------------------------------------------------------------- */

int64_t tcp_rto(const struct job_world *w, const struct end *e)
{
    int64_t base = e->srtt_ns == 0 ? 200 * NS_PER_MS : e->srtt_ns + 4 * e->var_ns;

    base = e->srtt_ns != 0 && base < w->config.rto_min_ns ? w->config.rto_min_ns : base;
    base = e->state == END_OPENING ? SYN_RTO_NS : base;
    base <<= e->backoff < 12 ? e->backoff : 12;
    return base < RTO_MAX_NS ? base : RTO_MAX_NS;
}

void tcp_set_timer(struct job_world *w, uint32_t conn, uint8_t end)
{
    struct end *e = &w->conns[conn]->ends[end];

    e->timer = w->now + tcp_rto(w, e);
    if (!e->timer_queued) {
        e->timer_queued = true;
        world_add(w, e->timer, EVENT_TIMER, conn * 2 + end);
    }
}

/* -- sending ---------------------------------------------------------------------------------- */

static bool fin_waits(const struct end *e, const struct end *peer)
{
    return e->fin && !peer->fin_taken;
}

static void burst(struct job_world *w, uint32_t conn, uint8_t end)
{
    struct end *e = &w->conns[conn]->ends[end];
    uint64_t limit = e->acked + e->window;

    limit = limit < e->edge ? limit : e->edge;
    while (e->state == END_OPEN && e->next < e->written && e->next < limit) {
        uint64_t length = e->written - e->next;
        length = length < limit - e->next ? length : limit - e->next;
        length = length < w->burst_bytes ? length : w->burst_bytes;
        if (length < SEGMENT && e->next + length < e->written && e->next > e->acked) {
            break; /* no silly windows */
        }
        e->segments += 1 + length / SEGMENT;
        tcp_transmit(w, conn, end,
                     (struct packet){.kind = PACKET_DATA,
                                     .sequence = e->next,
                                     .length = (uint32_t)length,
                                     .sent_at = w->now});
        e->next += length;
    }
    if (e->state == END_OPEN && e->fin && e->next == e->written) {
        tcp_transmit(w, conn, end,
                     (struct packet){.kind = PACKET_DATA, .sequence = e->next, .fin = true});
    }
}

/* Sends as much as it may, and starts the timer for unacknowledged bytes. */
void tcp_pump(struct job_world *w, uint32_t conn, uint8_t end)
{
    struct end *e = &w->conns[conn]->ends[end];

    burst(w, conn, end);
    if (e->state != END_OPEN) {
        return;
    }
    if (e->written > e->acked || fin_waits(e, &w->conns[conn]->ends[!end])) {
        e->waiting_since = e->waiting_since != 0 ? e->waiting_since : w->now;
        if (e->timer == 0) {
            tcp_set_timer(w, conn, end);
        }
    } else {
        e->waiting_since = 0;
        e->timer = 0;
    }
}

void sim_timer(struct job_world *w, uint32_t subject)
{
    const uint32_t conn = subject / 2;
    const uint8_t end = subject & 1;
    struct conn *c = w->conns[conn];
    struct end *e = &c->ends[end];

    if (!e->timer_queued) {
        return; /* the timer of a connection that is gone */
    }
    e->timer_queued = false;
    if (!c->used || e->timer == 0) {
        return;
    }
    if (e->timer > w->now) { /* moved meanwhile */
        e->timer_queued = true;
        world_add(w, e->timer, EVENT_TIMER, subject);
        return;
    }
    e->timer = 0;
    if (e->waiting_since == 0) { /* the process has closed it, and the peer never ended its side */
        tcp_die(w, conn, end, 0);
        return;
    }
    if (w->now - e->waiting_since >= USER_TIMEOUT) {
        tcp_die(w, conn, end, -ETIMEDOUT);
        return;
    }
    e->backoff++;
    e->resent++;
    if (e->state == END_OPENING) {
        tcp_transmit(w, conn, end, (struct packet){.kind = PACKET_SYN});
    } else if (e->next > e->acked || e->edge > e->acked) {
        /* lost, or not begun yet: one segment is sent */
        e->threshold = e->window / 2 > 2 * SEGMENT ? e->window / 2 : 2 * SEGMENT;
        e->window = SEGMENT;
        e->recover = e->next;
        e->next = e->acked;
        burst(w, conn, end);
    } else { /* a probe: is the window still shut? */
        tcp_transmit(w, conn, end,
                     (struct packet){.kind = PACKET_DATA, .sequence = e->acked, .sent_at = 0});
    }
    tcp_set_timer(w, conn, end);
    /* The user timeout comes first if the timer has doubled beyond it. */
    if (e->timer > e->waiting_since + USER_TIMEOUT) {
        e->timer = e->waiting_since + USER_TIMEOUT;
        world_add(w, e->timer, EVENT_TIMER, subject);
    }
}

/* -- arrivals --------------------------------------------------------------------------------- */

/* The host's process that listens at that port; if none does, any. */
static struct process *listener_of(struct job_world *w, const struct end *e)
{
    const uint32_t sharing = pattern_sharing(w);
    struct process *first = &w->processes[e->nic / w->net.config.nics * sharing];

    for (uint32_t i = 0; i < sharing; i++) {
        if (first[i].listener >= 0 && first[i].port == e->port) {
            return &first[i];
        }
    }
    return first;
}

static void on_syn(struct job_world *w, uint32_t conn)
{
    struct conn *c = w->conns[conn];
    struct end *e = &c->ends[1];
    struct process *p = listener_of(w, e);

    if (e->state == END_OPEN) { /* the answer was lost */
        tcp_transmit(w, conn, 1, (struct packet){.kind = PACKET_SYN_ACK});
        return;
    }
    if (e->state == END_DEAD) {
        tcp_send_reset(w, conn, 1);
        return;
    }
    if (p->killed || p->listener < 0 || p->port != e->port) {
        tcp_send_reset(w, conn, 1);
        return;
    }
    e->state = END_OPEN;
    e->half = true;
    e->process = (int)p->index;
    if (p->backlog_count == p->backlog_capacity) {
        p->backlog_capacity = p->backlog_capacity == 0 ? 16 : p->backlog_capacity * 2;
        p->backlog = realloc(p->backlog, p->backlog_capacity * sizeof(*p->backlog));
    }
    p->backlog[p->backlog_count++] = conn;
    e->backlogged = true;
    if (p->listener_armed) {
        world_wake(w, p, w->now + 10 * NS_PER_US);
    }
    tcp_transmit(w, conn, 1, (struct packet){.kind = PACKET_SYN_ACK});
}

/* Takes new bytes; *ret_gap: some bytes before them are missing. */
static void take(struct job_world *w, struct end *e, struct end *peer, const struct packet *packet,
                 bool *ret_gap)
{
    const uint64_t end = packet->sequence + packet->length;
    const uint64_t before = e->received;

    *ret_gap = packet->sequence > e->received;
    if (*ret_gap || end > e->read + w->buffer_bytes / 2) {
        return;
    }
    if (end > e->received) {
        e->received = end;
        e->arrived_at = w->now;
        if (packet->train.damaged) {
            const uint64_t at = before + prng_below(&w->prng, end - before);
            peer->ring[at & (w->buffer_bytes - 1)] ^= (uint8_t)(1u << prng_below(&w->prng, 8));
        }
    }
    e->fin_taken = e->fin_taken || (packet->fin && e->received == end);
}

static void on_data(struct job_world *w, uint32_t conn, uint8_t to, const struct packet *packet)
{
    struct end *e = &w->conns[conn]->ends[to], *peer = &w->conns[conn]->ends[!to];
    const uint64_t before = e->received;
    const bool fin_before = e->fin_taken;
    bool gap;

    if (e->state == END_OPENING) {
        return;
    }
    if (e->state != END_OPEN || (e->closed && packet->length > 0)) {
        tcp_send_reset(w, conn, to);
        tcp_die(w, conn, to, -ECONNRESET);
        return;
    }
    take(w, e, peer, packet, &gap);
    tcp_acknowledge(w, conn, to, gap, packet->sent_at);
    if (e->received != before || e->fin_taken != fin_before) {
        process_ready(w, conn, to);
    }
    if (e->closed && e->fin_taken && e->acked == e->written && peer->fin_taken) {
        tcp_die(w, conn, to, 0); /* TIME-WAIT is not modelled */
    }
}

static void measure(struct end *e, int64_t rtt)
{
    if (e->srtt_ns == 0) {
        e->srtt_ns = rtt;
        e->var_ns = rtt / 2;
    } else {
        const int64_t error = rtt - e->srtt_ns;
        e->var_ns += ((error < 0 ? -error : error) - e->var_ns) / 4;
        e->srtt_ns += error / 8;
    }
    e->rtt_min_ns = e->rtt_min_ns == 0 || rtt < e->rtt_min_ns ? rtt : e->rtt_min_ns;
}

static void grow(const struct job_world *w, struct end *e, uint64_t acked)
{
    const uint64_t more = e->window < e->threshold ? acked : acked * SEGMENT / e->window + 1;

    e->window += (uint32_t)(more < e->window ? more : e->window);
    e->window = e->window < w->buffer_bytes ? e->window : w->buffer_bytes;
}

static void on_ack(struct job_world *w, uint32_t conn, uint8_t to, const struct packet *packet)
{
    struct end *e = &w->conns[conn]->ends[to], *peer = &w->conns[conn]->ends[!to];
    const uint64_t room_before = e->acked;

    if (e->state != END_OPEN) {
        return;
    }
    if (packet->sequence > e->acked) {
        grow(w, e, packet->sequence - e->acked);
        e->acked = packet->sequence;
        e->next = e->next > e->acked ? e->next : e->acked;
        e->waiting_since = w->now;
        e->backoff = 0;
        e->timer = 0;
        if (packet->sent_at != 0 && e->recover <= e->acked) {
            measure(e, w->now - packet->sent_at);
        }
    } else if (packet->gap && e->recover <= e->acked && e->next > e->acked) {
        e->threshold = e->window / 2 > 2 * SEGMENT ? e->window / 2 : 2 * SEGMENT;
        e->window = e->threshold;
        e->recover = e->next;
        e->resent += 1 + (e->next - e->acked) / SEGMENT;
        e->next = e->acked;
    }
    if (packet->edge > e->edge) {
        if (e->edge <= e->acked) {
            e->waiting_since = w->now; /* the window was shut */
            e->backoff = 0;
        }
        e->edge = packet->edge;
    }
    if (e->written > e->acked || !packet->fin) {
        tcp_pump(w, conn, to);
    } else {
        e->waiting_since = 0;
        e->timer = 0;
    }
    if (e->acked > room_before && e->state == END_OPEN) {
        process_ready(w, conn, to);
    }
    if (e->closed && packet->fin && e->acked == e->written &&
        (e->fin_taken || peer->state == END_DEAD)) {
        tcp_die(w, conn, to, 0);
    } else if (e->closed && packet->fin && e->acked == e->written) {
        e->timer = w->now + ORPHAN_NS;
        world_add(w, e->timer, EVENT_TIMER, conn * 2 + to);
        e->timer_queued = true;
    }
}

void sim_packet(struct job_world *w, uint32_t index)
{
    const struct packet packet = w->packets[index];
    struct conn *c = w->conns[packet.conn];

    if (!packet.train.there) {
        forward(w, index);
        return;
    }
    w->packet_free[w->packet_free_count++] = index;
    if (!c->used || c->generation != packet.generation) {
        return;
    }
    world_trace(w, (uint64_t)packet.conn << 8 | (uint64_t)packet.kind << 1 | packet.to,
                packet.sequence + packet.length);
    struct end *e = &c->ends[packet.to];
    e->half = e->half && packet.kind == PACKET_SYN;
    switch ((enum packet_kind)packet.kind) {
    case PACKET_SYN:
        on_syn(w, packet.conn);
        break;
    case PACKET_SYN_ACK:
        if (e->state == END_OPENING) {
            e->state = END_OPEN;
            e->timer = 0;
            e->backoff = 0;
            e->waiting_since = 0;
            process_ready(w, packet.conn, packet.to);
            tcp_pump(w, packet.conn, packet.to);
        }
        break;
    case PACKET_DATA:
        on_data(w, packet.conn, packet.to, &packet);
        break;
    case PACKET_ACK:
        on_ack(w, packet.conn, packet.to, &packet);
        break;
    case PACKET_RESET:
        if (e->state == END_OPEN && prng_below(&w->prng, 2) == 0) {
            e->received = e->read; /* unread bytes may be lost, too */
        }
        tcp_die(w, packet.conn, packet.to, e->state == END_OPENING ? -ECONNREFUSED : -ECONNRESET);
        break;
    }
}
