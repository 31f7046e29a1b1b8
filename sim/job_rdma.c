/* job_rdma.c: io_rdma.h over the simulated fabric: RC queue pairs, as a NIC keeps them.
 *
 * Kept: a PSN a message, in order, a gap answered once (go-back-N), acknowledgements that are cumulative and may be lost,
 * timeouts of once to twice their nominal length and then IO_QP_RETRIES, receivers without a cell (RNR), messages that are too
 * long, the order of completions and of flushes, queue pairs whose peer is gone (nothing answers), packets whose ICRC is wrong
 * (dropped), neighbours that take a second to be resolved, devices that go. A window that a gap halves stands for congestion
 * control.
 *
 * What a queue pair in error has begun to execute goes on: for a drawn time its NIC still writes into posted cells, without a
 * completion; only then the receives are flushed. After close() it does so too, into memory that nobody should look at.
 *
 * Not kept: packets of less than a message (with the write before it), atomics, READs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job_private.h"

#define WAKE_NS    (5 * NS_PER_US)
#define PORT       4791
#define PSN_MASK   0xffffffu
#define WINDOW_MAX 64
#define RNR_NS     (640 * NS_PER_US)
#define LATE_NS    (3 * NS_PER_MS) /* that something executed goes on after an error */
#define LINGER_NS  (2 * NS_PER_S)
#define OPEN_NS    (2 * NS_PER_MS)
#define COLD_NS    NS_PER_S

enum pair_state { PAIR_OPENING, PAIR_INIT, PAIR_CONNECTING, PAIR_RTS, PAIR_ERROR };
enum pair_packet_kind { PAIR_SEND, PAIR_ACK, PAIR_GAP, PAIR_RNR, PAIR_REFUSE };

struct pair_packet {
    uint32_t pair, generation; /* that it goes to */
    enum pair_packet_kind kind;
    uint32_t psn; /* SEND: its own; else the one expected */
    uint32_t size;
    uint8_t *bytes; /* of the cell, then of the write before it */
    uint32_t written, key;
    uint8_t *to;
    struct job_train train;
};

struct memory {
    struct io_rdma_memory keys; /* must be first */
    uint8_t *data;
    size_t size;
    struct memory *next;
};

struct pair {
    bool used;   /* the NIC knows it */
    bool open;   /* the process does */
    bool linger; /* closed: what was posted still goes */
    uint32_t generation;
    enum pair_state state;
    int process;
    int error; /* opened(), connected(), poll() */
    uint32_t nic;
    uint16_t port;
    struct io_qp_config config;
    struct io_qp_timeouts timeouts;
    uint8_t *memory; /* cells to send from, then cells to receive into */
    uint32_t psn;    /* of its first message */
    uint32_t peer, peer_generation;
    int64_t ready_at; /* OPENING, CONNECTING: done then */
    /* out: messages [acked, posted), of which [acked, next) are on their way */
    uint64_t acked, next, posted;
    struct {
        uint32_t cell, size;
        struct io_rdma_write write; /* size 0: none */
    } * sends;                      /* by number modulo config.sends */
    uint32_t window;
    uint32_t tries, rnr_tries;
    int64_t timeout_at, rnr_until; /* 0: none */
    /* in */
    uint32_t expected; /* PSN */
    bool gap_told;
    uint32_t *posted_cells;
    uint32_t first_cell, cell_count;
    int64_t late_until; /* ERROR: until then the NIC writes */
    bool flushed;
    bool over; /* ERROR, and an event tells it before the receives are flushed */
    int64_t linger_until;
    /* completions */
    struct io_qp_done *done;
    uint32_t done_first, done_count;
    bool armed, queued;
    uint64_t tag;
    int64_t timer; /* queued for then; 0: not */
};

static struct pair *pair_at(struct job_world *w, uint32_t index)
{
    return w->pairs[index];
}

/* -- timers ----------------------------------------------------------------------------------- */

static int64_t earlier(int64_t a, int64_t b)
{
    return b != 0 && (a == 0 || b < a) ? b : a;
}

static int64_t due_at(const struct pair *x)
{
    int64_t at = x->state == PAIR_OPENING || x->state == PAIR_CONNECTING ? x->ready_at : 0;

    at = earlier(at, x->timeout_at);
    at = earlier(at, x->rnr_until);
    at = earlier(at, x->state == PAIR_ERROR && !x->flushed ? x->late_until : 0);
    return earlier(at, x->linger ? x->linger_until : 0);
}

static void set_timer(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);
    const int64_t at = due_at(x);

    if (at != 0 && (x->timer == 0 || at < x->timer)) {
        x->timer = at;
        world_add(w, at > w->now ? at : w->now + 1, EVENT_PAIR, index);
    }
}

/* -- what the process is told ----------------------------------------------------------------- */

static bool has_news(const struct pair *x)
{
    return x->done_count > 0 || (x->state == PAIR_ERROR && (x->flushed || x->over)) ||
           (x->state != PAIR_OPENING && x->error != 0) ||
           ((x->state == PAIR_INIT || x->state == PAIR_RTS) && x->ready_at != 0);
}

static void tell(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);
    struct process *p = &w->processes[x->process];

    if (!x->open || p->killed) {
        return;
    }
    if (x->armed && has_news(x) && !x->queued) {
        x->queued = true;
        world_wake(w, p, w->now + WAKE_NS);
    } else if (w->config.poll_ns < NS_PER_MS) {
        world_wake(w, p, w->now + WAKE_NS);
    }
}

static void complete(struct job_world *w, uint32_t index, const struct io_qp_done *done)
{
    struct pair *x = pair_at(w, index);
    const uint32_t capacity = x->config.sends + x->config.receives;

    if (x->done_count == capacity) {
        world_wrong(w, "a completion queue overflows", "process %d", x->process);
        return;
    }
    x->done[(x->done_first + x->done_count++) % capacity] = *done;
    tell(w, index);
}

/* -- end -------------------------------------------------------------------------------------- */

static void forget_memory(const struct pair *x)
{
    free(x->memory);
    free(x->sends);
    free(x->posted_cells);
    free(x->done);
}

static void forget(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);

    forget_memory(x);
    *x = (struct pair){.generation = x->generation + 1};
    w->pair_free[w->pair_free_count++] = index;
}

/* Whoever posted is told of all of it; receives only when the NIC has stopped to write. */
static void fail(struct job_world *w, uint32_t index, enum io_qp_status status)
{
    struct pair *x = pair_at(w, index);

    if (x->state == PAIR_ERROR) {
        return;
    }
    x->state = PAIR_ERROR;
    x->timeout_at = x->rnr_until = 0;
    x->late_until =
        w->now + 1 +
        (int64_t)prng_below(&w->prng,
                            w->config.late_dma_ns != 0 ? (uint64_t)w->config.late_dma_ns : LATE_NS);
    for (; x->acked < x->posted; x->acked++) {
        complete(w, index,
                 &(struct io_qp_done){.status = status,
                                      .cell = x->sends[x->acked % x->config.sends].cell});
        status = IO_QP_FLUSHED;
    }
    set_timer(w, index);
}

static void flush(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);

    for (; x->cell_count > 0; x->cell_count--) {
        const uint32_t cell = x->posted_cells[x->first_cell++ % x->config.receives];
        complete(w, index,
                 &(struct io_qp_done){.receive = true, .status = IO_QP_FLUSHED, .cell = cell});
    }
    x->flushed = true;
    tell(w, index);
    if (!x->open) {
        forget(w, index);
    }
}

/* -- packets ---------------------------------------------------------------------------------- */

static uint32_t new_packet(struct job_world *w)
{
    if (w->pair_packet_free_count > 0) {
        return w->pair_packet_free[--w->pair_packet_free_count];
    }
    if (w->pair_packet_count == w->pair_packet_capacity) {
        const uint32_t capacity = w->pair_packet_capacity == 0 ? 64 : w->pair_packet_capacity * 2;
        w->pair_packets = realloc(w->pair_packets, capacity * sizeof(*w->pair_packets));
        w->pair_packet_free = realloc(w->pair_packet_free, capacity * sizeof(uint32_t));
        if (w->pair_packets == NULL || w->pair_packet_free == NULL) {
            abort();
        }
        w->pair_packet_capacity = capacity;
    }
    return w->pair_packet_count++;
}

static void drop_packet(struct job_world *w, uint32_t packet)
{
    free(w->pair_packets[packet].bytes);
    w->pair_packets[packet].bytes = NULL;
    w->pair_packet_free[w->pair_packet_free_count++] = packet;
}

static void forward(struct job_world *w, uint32_t packet)
{
    const int64_t at = job_net_forward(&w->net, w->now, &w->pair_packets[packet].train);

    if (at >= 0) {
        world_add(w, at, EVENT_PAIR_PACKET, packet);
    } else {
        drop_packet(w, packet);
    }
}

static void transmit(struct job_world *w, uint32_t index, struct pair_packet packet)
{
    const struct pair *x = pair_at(w, index), *peer = pair_at(w, x->peer);
    const uint32_t at = new_packet(w);

    packet.pair = x->peer;
    packet.generation = x->peer_generation;
    packet.train = (struct job_train){
        .way = {.from = x->nic, .to = peer->nic, .from_port = x->port, .to_port = PORT},
        .bytes = packet.size};
    w->pair_packets[at] = packet;
    forward(w, at);
}

/* -- out -------------------------------------------------------------------------------------- */

static void start_timeout(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);
    const int64_t nominal = 4096LL << x->timeouts.timeout;

    x->timeout_at = w->now + nominal + (int64_t)prng_below(&w->prng, (uint64_t)nominal);
    set_timer(w, index);
}

/* That process has memory of that key which holds all of it. */
static bool registered(const struct job_world *w, int process, uint32_t key, const void *at,
                       uint32_t size)
{
    const struct memory *m = w->processes[process].memories;

    while (m != NULL && (m->keys.remote[0] != key || (const uint8_t *)at < m->data ||
                         (const uint8_t *)at + size > m->data + m->size)) {
        m = m->next;
    }
    return m != NULL;
}

static void pump(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);

    while (x->state == PAIR_RTS && x->rnr_until == 0 && x->next < x->posted &&
           x->next - x->acked < x->window) {
        const uint32_t k = (uint32_t)(x->next % x->config.sends);
        struct pair_packet packet = {.kind = PAIR_SEND,
                                     .psn = (x->psn + (uint32_t)x->next) & PSN_MASK,
                                     .size = x->sends[k].size,
                                     .written = x->sends[k].write.size,
                                     .key = x->sends[k].write.remote_key,
                                     .to = (uint8_t *)(uintptr_t)x->sends[k].write.to,
                                     .bytes = malloc(x->config.cell_size + x->sends[k].write.size)};
        if (packet.bytes == NULL) {
            abort();
        }
        memcpy(packet.bytes, x->memory + (size_t)x->sends[k].cell * x->config.cell_size,
               packet.size);
        if (packet.written > 0 && registered(w, x->process, x->sends[k].write.key,
                                             x->sends[k].write.from, packet.written)) {
            memcpy(packet.bytes + packet.size, x->sends[k].write.from, packet.written);
            packet.size += packet.written;
        } else if (packet.written > 0) {
            free(packet.bytes);
            fail(w, index, IO_QP_BROKEN);
            return;
        }
        x->next++;
        transmit(w, index, packet);
    }
    if (x->state == PAIR_RTS && x->acked < x->next && x->timeout_at == 0) {
        start_timeout(w, index);
    }
}

static void again(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);

    x->window = x->window > 2 ? x->window / 2 : 1;
    x->next = x->acked;
    pump(w, index);
}

static void on_timeout(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);

    x->timeout_at = 0;
    if (++x->tries > x->timeouts.retries) {
        fail(w, index, IO_QP_RETRIES);
        return;
    }
    again(w, index);
}

/* All before that PSN has arrived. */
static void on_acked(struct job_world *w, uint32_t index, uint32_t psn)
{
    struct pair *x = pair_at(w, index);
    const uint32_t first = (x->psn + (uint32_t)x->acked) & PSN_MASK;
    const uint64_t count = (psn - first) & PSN_MASK;

    if (count == 0 || count > x->next - x->acked) { /* an old one */
        return;
    }
    for (uint64_t i = 0; i < count; i++, x->acked++) {
        complete(w, index, &(struct io_qp_done){.cell = x->sends[x->acked % x->config.sends].cell});
    }
    x->tries = x->rnr_tries = 0;
    x->timeout_at = 0;
    x->window += x->window < WINDOW_MAX;
    if (x->linger && x->acked == x->posted) {
        x->linger_until = w->now;
    }
}

static void on_answer(struct job_world *w, uint32_t index, const struct pair_packet *packet)
{
    struct pair *x = pair_at(w, index);

    if (x->state != PAIR_RTS) {
        return;
    }
    on_acked(w, index, packet->psn);
    if (packet->kind == PAIR_GAP && x->next > x->acked) {
        x->timeout_at = 0;
        again(w, index);
    } else if (packet->kind == PAIR_RNR) {
        w->result->rnrs++;
        x->timeout_at = 0;
        x->next = x->acked;
        x->rnr_until = w->now + RNR_NS;
        if (x->timeouts.rnr_retries < 7 && ++x->rnr_tries > x->timeouts.rnr_retries) {
            fail(w, index, IO_QP_RNR);
        }
    } else if (packet->kind == PAIR_REFUSE) {
        fail(w, index, IO_QP_REFUSED);
    }
    pump(w, index);
    set_timer(w, index);
}

/* -- in --------------------------------------------------------------------------------------- */

static void answer(struct job_world *w, uint32_t index, enum pair_packet_kind kind)
{
    transmit(w, index,
             (struct pair_packet){.kind = kind, .psn = pair_at(w, index)->expected, .size = 0});
}

static uint8_t *receive_cell(const struct pair *x, uint32_t cell)
{
    return x->memory + ((size_t)x->config.sends + cell) * x->config.cell_size;
}

/* False: the key or the place is wrong. */
static bool write_there(struct job_world *w, const struct pair *x, const struct pair_packet *packet)
{
    if (packet->written == 0) {
        return true;
    }
    if (!x->config.writes || !registered(w, x->process, packet->key, packet->to, packet->written)) {
        return false;
    }
    memcpy(packet->to, packet->bytes + packet->size - packet->written, packet->written);
    w->result->writes++;
    return true;
}

/* It was being executed when the queue pair erred: it goes on, and nobody is told. */
static void land_late(struct job_world *w, struct pair *x, const struct pair_packet *packet)
{
    /* What was executed before isn't executed again, nor what comes out of order. */
    const bool next = w->now < x->late_until && packet->psn == x->expected;

    x->expected = (x->expected + next) & PSN_MASK;
    w->result->late_writes += next && packet->written > 0 && write_there(w, x, packet);
    if (x->cell_count > 0 && w->now < x->late_until && packet->written == 0 &&
        packet->size <= x->config.cell_size) {
        memcpy(receive_cell(x, x->posted_cells[x->first_cell % x->config.receives]), packet->bytes,
               packet->size);
        w->result->late_writes++;
    }
}

static void on_send(struct job_world *w, uint32_t index, const struct pair_packet *packet)
{
    struct pair *x = pair_at(w, index);
    const uint32_t ahead = (packet->psn - x->expected) & PSN_MASK;
    const struct process *p = &w->processes[x->process];

    if (ahead > PSN_MASK / 2) { /* once more: our answer was lost */
        answer(w, index, PAIR_ACK);
        return;
    }
    if (ahead > 0) {
        if (!x->gap_told) {
            x->gap_told = true;
            answer(w, index, PAIR_GAP);
        }
        return;
    }
    x->gap_told = false;
    if (packet->size - packet->written > x->config.cell_size ||
        (!x->linger && !write_there(w, x, packet))) {
        answer(w, index, PAIR_REFUSE);
        fail(w, index, IO_QP_BROKEN);
        return;
    }
    if (x->linger) { /* nobody reads it */
        x->expected = (x->expected + 1) & PSN_MASK;
        answer(w, index, PAIR_ACK);
        return;
    }
    if (x->cell_count == 0) {
        answer(w, index, PAIR_RNR);
        return;
    }
    const uint32_t cell = x->posted_cells[x->first_cell++ % x->config.receives];
    x->cell_count--;
    w->result->full += x->cell_count == 1;
    memcpy(receive_cell(x, cell), packet->bytes, packet->size - packet->written);
    x->expected = (x->expected + 1) & PSN_MASK;
    answer(w, index, PAIR_ACK);
    complete(w, index,
             &(struct io_qp_done){.receive = true,
                                  .cell = cell,
                                  .bytes = packet->size - packet->written,
                                  .stamp = process_stamp(p, w->now, true)});
}

void sim_pair_packet(struct job_world *w, uint32_t at)
{
    if (!w->pair_packets[at].train.there) {
        forward(w, at);
        return;
    }
    struct pair_packet packet = w->pair_packets[at];
    struct pair *x = pair_at(w, packet.pair);
    w->pair_packets[at].bytes = NULL;
    drop_packet(w, at);
    if (x->used && x->generation == packet.generation && !packet.train.damaged) {
        world_trace(w, (uint64_t)packet.pair << 8 | (uint64_t)packet.kind, packet.psn);
        if (packet.kind != PAIR_SEND) {
            on_answer(w, packet.pair, &packet);
        } else if (x->state == PAIR_RTS) {
            on_send(w, packet.pair, &packet);
        } else if (x->state == PAIR_ERROR) {
            land_late(w, x, &packet);
        }
    }
    free(packet.bytes);
}

void sim_pair(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);

    if (!x->used || x->timer == 0 || x->timer > w->now) {
        return; /* of one that is gone; or moved */
    }
    x->timer = 0;
    if ((x->state == PAIR_OPENING || x->state == PAIR_CONNECTING) && x->ready_at <= w->now) {
        x->state = x->state == PAIR_OPENING ? PAIR_INIT : PAIR_RTS;
        tell(w, index);
    }
    if (x->timeout_at != 0 && x->timeout_at <= w->now) {
        on_timeout(w, index);
    }
    if (x->rnr_until != 0 && x->rnr_until <= w->now) {
        x->rnr_until = 0;
        pump(w, index);
    }
    if (x->linger && x->linger_until <= w->now) {
        fail(w, index, IO_QP_FLUSHED);
        x->linger = false;
    }
    if (x->state == PAIR_ERROR && !x->flushed && x->late_until <= w->now) {
        flush(w, index);
    }
    if (x->used) {
        set_timer(w, index);
    }
}

/* -- the table -------------------------------------------------------------------------------- */

static struct pair *mine(struct io_rdma *rdma, int qp)
{
    const struct process *p = rdma->driver;
    struct pair *x = pair_at(p->world, (uint32_t)qp);

    if (!x->open || x->process != (int)p->index) {
        world_wrong(p->world, "a queue pair is used that isn't open", "process %u", p->index);
    }
    return x;
}

static int rdma_open(struct io_rdma *rdma, const struct io_qp_config *config, int *ret_qp)
{
    struct process *p = rdma->driver;
    struct job_world *w = p->world;
    const int nic = job_net_nic(&w->net, &config->nic);
    uint32_t index;

    if (nic < 0 || p->killed || w->net.nics[nic].removed > 0) {
        return -ENODEV;
    }
    if (w->pair_free_count > 0) {
        index = w->pair_free[--w->pair_free_count];
    } else if (w->pair_count == JOB_PAIRS_MAX) {
        return -ENOSPC;
    } else {
        index = w->pair_count++;
        w->pairs[index] = calloc(1, sizeof(struct pair));
    }
    struct pair *x = w->pairs[index];
    *x = (struct pair){.used = true,
                       .open = true,
                       .generation = x->generation,
                       .process = (int)p->index,
                       .nic = (uint32_t)nic,
                       .port = (uint16_t)(0xc000u | (config->path & 0x3fffu)),
                       .config = *config,
                       .psn = (uint32_t)prng_below(&p->prng, PSN_MASK + 1),
                       .window = WINDOW_MAX / 4,
                       .memory = calloc(config->sends + config->receives, config->cell_size),
                       .sends = calloc(config->sends, sizeof(*x->sends)),
                       .posted_cells = calloc(config->receives, sizeof(uint32_t)),
                       .done = calloc(config->sends + config->receives, sizeof(*x->done))};
    if (x->memory == NULL || x->sends == NULL || x->posted_cells == NULL || x->done == NULL) {
        abort();
    }
    for (uint32_t i = 0; i < config->receives; i++) {
        x->posted_cells[i] = i;
    }
    x->cell_count = config->receives;
    x->ready_at = w->now + 1 + (int64_t)(prng_exponential(&p->prng) * (double)OPEN_NS);
    x->error =
        prng_below(&p->prng, 64) == 0 ? -ENOMEM : 0; /* memlock, when the driver comes to it */
    set_timer(w, index);
    p->pairs++;
    *ret_qp = (int)index;
    return 0;
}

static int rdma_opened(struct io_rdma *rdma, int qp, struct io_qp_end *ret_own,
                       struct io_qp_cells *ret_cells)
{
    struct process *p = rdma->driver;
    struct pair *x = mine(rdma, qp);

    if (p->killed || x->state == PAIR_OPENING || x->error != 0) {
        return p->killed ? -ENODEV : x->state == PAIR_OPENING ? -EAGAIN : x->error;
    }
    x->ready_at = 0; /* told */
    const struct io_address own = job_net_address(&p->world->net, x->nic);
    *ret_own = (struct io_qp_end){
        .qp = (x->generation & 0xfffu) << 12 | (uint32_t)qp, .psn = x->psn, .mtu_shift = 12};
    memcpy(ret_own->gid, own.ip, 16);
    *ret_cells = (struct io_qp_cells){x->memory, receive_cell(x, 0),
                                      x->nic % p->world->config.nics % IO_RDMA_DEVICES};
    return 0;
}

static int rdma_connect(struct io_rdma *rdma, int qp, const struct io_qp_end *peer,
                        const struct io_qp_timeouts *timeouts)
{
    struct process *p = rdma->driver;
    struct job_world *w = p->world;
    struct pair *x = mine(rdma, qp);
    const uint32_t index = peer->qp & 0xfffu;

    if (p->killed || x->state != PAIR_INIT) {
        return -ENODEV;
    }
    if (index >= w->pair_count) {
        return -EINVAL;
    }
    x->peer = index;
    x->peer_generation = pair_at(w, index)->generation;
    if ((x->peer_generation & 0xfffu) != peer->qp >> 12) {
        x->peer_generation--; /* gone by now: nothing answers */
    }
    x->expected = peer->psn;
    x->timeouts = *timeouts;
    x->state = PAIR_CONNECTING;
    x->ready_at = w->now + 1 +
                  (prng_below(&p->prng, 16) == 0
                       ? (int64_t)prng_below(&p->prng, COLD_NS)
                       : (int64_t)(prng_exponential(&p->prng) * (double)(OPEN_NS / 4)));
    set_timer(w, (uint32_t)qp);
    return 0;
}

static int rdma_connected(struct io_rdma *rdma, int qp)
{
    const struct process *p = rdma->driver;
    struct pair *x = mine(rdma, qp);

    if (x->state == PAIR_RTS) {
        x->ready_at = 0; /* told */
    }
    return p->killed || x->state == PAIR_ERROR ? -ENODEV : x->state == PAIR_RTS ? 0 : -EAGAIN;
}

static int rdma_send(struct io_rdma *rdma, int qp, uint32_t cell, uint32_t size,
                     const struct io_rdma_write *write)
{
    struct process *p = rdma->driver;
    struct job_world *w = p->world;
    struct pair *x = mine(rdma, qp);

    if (p->killed || x->state != PAIR_RTS) {
        return p->killed ? -ENODEV : -EIO;
    }
    for (uint64_t k = x->acked; k < x->posted; k++) {
        if (x->sends[k % x->config.sends].cell == cell) {
            world_wrong(w, "a cell is sent from that is on its way", "process %u", p->index);
        }
    }
    if (x->posted - x->acked == x->config.sends || size > x->config.cell_size) {
        world_wrong(w, "more is posted than there are cells", "process %u", p->index);
        return -EIO;
    }
    x->sends[x->posted % x->config.sends].cell = cell;
    x->sends[x->posted % x->config.sends].size = size;
    x->sends[x->posted % x->config.sends].write =
        write != NULL ? *write : (struct io_rdma_write){.size = 0};
    x->posted++;
    w->result->cells++;
    pump(w, (uint32_t)qp);
    return 0;
}

static int rdma_receive(struct io_rdma *rdma, int qp, uint32_t cell)
{
    const struct process *p = rdma->driver;
    struct pair *x = mine(rdma, qp);

    if (p->killed || x->state == PAIR_ERROR) {
        return -EIO;
    }
    if (x->cell_count == x->config.receives) {
        world_wrong(p->world, "more cells are posted than there are", "process %u", p->index);
        return -EIO;
    }
    x->posted_cells[(x->first_cell + x->cell_count++) % x->config.receives] = cell;
    return 0;
}

static int rdma_poll(struct io_rdma *rdma, int qp, struct io_qp_done *ret_done, int capacity)
{
    const struct process *p = rdma->driver;
    struct pair *x = mine(rdma, qp);
    int count = 0;

    if (p->killed) {
        return -ENODEV;
    }
    for (; count < capacity && x->done_count > 0; count++, x->done_count--) {
        ret_done[count] = x->done[x->done_first++ % (x->config.sends + x->config.receives)];
    }
    return count > 0 || x->state != PAIR_ERROR || !(x->flushed || x->over) ? count
           : x->error != 0                                                 ? x->error
                                                                           : -EIO;
}

static int rdma_arm(struct io_rdma *rdma, int qp, uint64_t tag)
{
    struct process *p = rdma->driver;
    struct pair *x = mine(rdma, qp);

    x->armed = true;
    x->tag = tag;
    x->queued = false;
    if (!p->killed && has_news(x)) {
        x->queued = true;
        world_wake(p->world, p, p->world->now);
    }
    return 0;
}

static void rdma_close(struct io_rdma *rdma, int qp, bool linger)
{
    struct process *p = rdma->driver;
    struct job_world *w = p->world;
    struct pair *x = mine(rdma, qp);

    x->open = x->armed = x->queued = false;
    x->done_first = x->done_count = 0;
    p->pairs--;
    if (p->killed) {
        return; /* its NIC has forgotten it */
    }
    if (linger && x->state == PAIR_RTS && x->acked < x->posted) {
        x->linger = true;
        x->linger_until = w->now + LINGER_NS;
        set_timer(w, (uint32_t)qp);
        return;
    }
    fail(w, (uint32_t)qp, IO_QP_FLUSHED);
    x->done_count = 0;
    if (x->flushed) {
        forget(w, (uint32_t)qp);
    }
}

static int rdma_silence(struct io_rdma *rdma, int qp)
{
    const struct process *p = rdma->driver;

    if (!p->killed) {
        fail(p->world, (uint32_t)(mine(rdma, qp) != NULL ? qp : 0), IO_QP_FLUSHED);
    }
    return 0;
}

/* A destroyed one is silent when the call returns. */
static int rdma_fence(struct io_rdma *rdma, int qp)
{
    const struct process *p = rdma->driver;
    struct pair *x = mine(rdma, qp);

    if (!p->killed) {
        fail(p->world, (uint32_t)qp, IO_QP_FLUSHED);
        if (!x->flushed) {
            flush(p->world, (uint32_t)qp);
        }
    }
    return 0;
}

static int memory_add(struct io_rdma *rdma, void *data, size_t size,
                      struct io_rdma_memory **ret_memory)
{
    struct process *p = rdma->driver;
    struct memory *m = calloc(1, sizeof(*m));

    if (m == NULL) {
        abort();
    }
    *m = (struct memory){.data = data, .size = size, .next = p->memories};
    p->keys++;
    for (uint32_t i = 0; i < IO_RDMA_DEVICES; i++) {
        m->keys.local[i] = m->keys.remote[i] = p->keys << 8 | (p->index + 1);
    }
    p->memories = m;
    *ret_memory = &m->keys;
    return 0;
}

static void memory_remove(struct io_rdma *rdma, struct io_rdma_memory *memory)
{
    struct process *p = rdma->driver;
    struct memory **at = &p->memories;

    while (*at != (struct memory *)(void *)memory) {
        at = &(*at)->next;
    }
    *at = (*at)->next;
    free(memory);
}

static int rdma_events(struct io_rdma *rdma, struct io_event *ret_events, int capacity)
{
    const struct process *p = rdma->driver;
    struct job_world *w = p->world;
    int count = 0;

    for (uint32_t i = 0; !p->killed && i < w->pair_count && count < capacity; i++) {
        struct pair *x = pair_at(w, i);
        if (x->open && x->queued && x->process == (int)p->index) {
            x->armed = x->queued = false;
            ret_events[count++] = (struct io_event){.tag = x->tag, .events = IO_IN};
        }
    }
    return count;
}

void process_rdma(struct process *p)
{
    p->rdma = (struct io_rdma){.driver = p,
                               .open = rdma_open,
                               .opened = rdma_opened,
                               .connect = rdma_connect,
                               .connected = rdma_connected,
                               .send = rdma_send,
                               .receive = rdma_receive,
                               .poll = rdma_poll,
                               .arm = rdma_arm,
                               .close = rdma_close,
                               .silence = rdma_silence,
                               .fence = rdma_fence,
                               .memory_add = memory_add,
                               .memory_remove = memory_remove,
                               .events = rdma_events};
}

/* -- faults ----------------------------------------------------------------------------------- */

void sim_pairs_remove(struct job_world *w, uint32_t nic)
{
    for (uint32_t i = 0; i < w->pair_count; i++) {
        struct pair *x = pair_at(w, i);
        if (x->used && x->nic == nic) {
            x->error = -ENODEV;
            fail(w, i, IO_QP_FLUSHED);
            tell(w, i);
        }
    }
}

/* What its peer has sent, and doesn't know to have arrived. */
static uint64_t flying_to(struct job_world *w, uint32_t index)
{
    const struct pair *peer = pair_at(w, pair_at(w, index)->peer);

    return peer->next - peer->acked;
}

/* One to which much is on its way breaks rather than one that rests. */
bool sim_pair_break(struct job_world *w)
{
    uint32_t worst = UINT32_MAX;
    uint64_t most = 0;

    for (int tries = 0; tries < 8 && w->pair_count > 0; tries++) {
        const uint32_t i = (uint32_t)prng_below(&w->prng, w->pair_count);
        if (pair_at(w, i)->used && pair_at(w, i)->state == PAIR_RTS && flying_to(w, i) >= most) {
            most = flying_to(w, i) + 1;
            worst = i;
        }
    }
    if (worst == UINT32_MAX) {
        return false;
    }
    pair_at(w, worst)->over = prng_below(&w->prng, 2) == 0;
    fail(w, worst, IO_QP_BROKEN);
    tell(w, worst);
    return true;
}

void sim_pairs_kill(struct job_world *w, uint32_t process)
{
    for (uint32_t i = 0; i < w->pair_count; i++) {
        struct pair *x = pair_at(w, i);
        if (x->used && x->process == (int)process) {
            x->generation++; /* what comes for it goes nowhere; its memory goes with the process */
            x->used = false;
        }
    }
}

void sim_pairs_done(struct job_world *w)
{
    for (uint32_t i = 0; i < w->pair_count; i++) {
        forget_memory(w->pairs[i]);
        free(w->pairs[i]);
    }
    for (uint32_t i = 0; i < w->pair_packet_count; i++) {
        free(w->pair_packets[i].bytes);
    }
    free(w->pairs);
    free(w->pair_free);
    free(w->pair_packets);
    free(w->pair_packet_free);
}
