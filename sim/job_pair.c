/* job_pair.c: RC queue pairs over the simulated fabric, as a NIC keeps them.
 *
 * Modelled: a PSN for each message, in order; a gap answered once (go-back-N); acknowledgements that are cumulative and may be
 * lost; timeouts of once to twice their nominal length, then IO_QP_RETRIES; receivers without a cell (RNR); messages that are
 * too long; the order of completions and of flushes; queue pairs without a peer (no answer); packets with a wrong ICRC
 * (dropped); neighbours that take a second to be resolved; devices that disappear. A window that a gap halves stands for
 * congestion control.
 *
 * A queue pair in error finishes what it has begun: for a drawn time its NIC still writes into posted cells, without a
 * completion. Only then the receives are flushed. After close() it does so too, into memory that must not be used any more.
 *
 * Not modelled: packets smaller than a message (with the write before it), atomics, READs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job_pair.h"

#define WAKE_NS (5 * NS_PER_US)
#define RNR_NS  (640 * NS_PER_US)
#define LATE_NS (3 * NS_PER_MS) /* something that was executed goes on for so long after an error */

enum pair_packet_kind { PAIR_SEND, PAIR_ACK, PAIR_GAP, PAIR_RNR, PAIR_REFUSE };

struct pair_packet {
    uint32_t pair, generation; /* its destination */
    enum pair_packet_kind kind;
    uint32_t psn; /* SEND: its own PSN; else the expected one */
    uint32_t size;
    uint8_t *bytes; /* of the cell, then of the write before it */
    uint32_t written, key;
    uint8_t *to;
    struct job_train train;
};

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

void pair_set_timer(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);
    const int64_t at = due_at(x);

    if (at != 0 && (x->timer == 0 || at < x->timer)) {
        x->timer = at;
        world_add(w, at > w->now ? at : w->now + 1, EVENT_PAIR, index);
    }
}

/* -- events for the process ------------------------------------------------------------------ */

bool pair_has_news(const struct pair *x)
{
    return x->done_count > 0 || (x->state == PAIR_ERROR && (x->flushed || x->over)) ||
           (x->state != PAIR_OPENING && x->error != 0) ||
           ((x->state == PAIR_INIT || x->state == PAIR_RTS) && x->ready_at != 0);
}

void pair_tell(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);
    struct process *p = &w->processes[x->process];

    if (!x->open || p->killed) {
        return;
    }
    if (x->armed && pair_has_news(x) && !x->queued) {
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
    pair_tell(w, index);
}

/* -- end -------------------------------------------------------------------------------------- */

static void forget_memory(const struct pair *x)
{
    free(x->memory);
    free(x->sends);
    free(x->posted_cells);
    free(x->done);
}

void pair_forget(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);

    forget_memory(x);
    *x = (struct pair){.generation = x->generation + 1};
    w->pair_free[w->pair_free_count++] = index;
}

/* The process gets an event for all of its sends. It gets those of receives only when the NIC has stopped writing. */
void pair_fail(struct job_world *w, uint32_t index, enum io_qp_status status)
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
    pair_set_timer(w, index);
}

void pair_flush(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);

    for (; x->cell_count > 0; x->cell_count--) {
        const uint32_t cell = x->posted_cells[x->first_cell++ % x->config.receives];
        complete(w, index,
                 &(struct io_qp_done){.receive = true, .status = IO_QP_FLUSHED, .cell = cell});
    }
    x->flushed = true;
    pair_tell(w, index);
    if (!x->open) {
        pair_forget(w, index);
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
        .way = {.from = x->nic, .to = peer->nic, .from_port = x->port, .to_port = PAIR_PORT},
        .bytes = packet.size};
    w->pair_packets[at] = packet;
    forward(w, at);
}

/* -- sending ---------------------------------------------------------------------------------- */

static void start_timeout(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);
    const int64_t nominal = 4096LL << x->timeouts.timeout;

    x->timeout_at = w->now + nominal + (int64_t)prng_below(&w->prng, (uint64_t)nominal);
    pair_set_timer(w, index);
}

/* Every second world counts its devices down from the last one that can be named. These can't be reported to an older peer. */
uint32_t sim_device(const struct job_world *w, uint32_t nic)
{
    nic = nic % w->config.nics % IO_RDMA_DEVICES;
    return w->config.seed % 2 == 0 ? nic : IO_RDMA_DEVICES - 1 - nic;
}

uint32_t pair_device(const struct job_world *w, const struct pair *x)
{
    return sim_device(w, x->nic);
}

/* The registered memory of the queue pair's process with that key and device that holds all of the range. */
static const struct memory *registered(const struct job_world *w, const struct pair *x,
                                       uint32_t key, const void *at, uint32_t size)
{
    const struct memory *m = w->processes[x->process].memories;
    const uint32_t device = pair_device(w, x);

    while (m != NULL && (m->keys.remote[device] != key || (const uint8_t *)at < m->data ||
                         (const uint8_t *)at + size > m->data + m->size)) {
        m = m->next;
    }
    return m;
}

void pair_pump(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);

    while (x->state == PAIR_RTS && x->rnr_until == 0 && x->next < x->posted &&
           x->next - x->acked < x->window) {
        const uint32_t k = (uint32_t)(x->next % x->config.sends);
        struct pair_packet packet = {.kind = PAIR_SEND,
                                     .psn = (x->psn + (uint32_t)x->next) & PAIR_PSN_MASK,
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
        if (packet.written > 0 && registered(w, x, x->sends[k].write.key, x->sends[k].write.from,
                                             packet.written) != NULL) {
            memcpy(packet.bytes + packet.size, x->sends[k].write.from, packet.written);
            packet.size += packet.written;
        } else if (packet.written > 0) {
            free(packet.bytes);
            pair_fail(w, index, IO_QP_BROKEN);
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
    pair_pump(w, index);
}

static void on_timeout(struct job_world *w, uint32_t index)
{
    struct pair *x = pair_at(w, index);

    x->timeout_at = 0;
    if (++x->tries > x->timeouts.retries) {
        pair_fail(w, index, IO_QP_RETRIES);
        return;
    }
    again(w, index);
}

/* All messages before that PSN have arrived. */
static void on_acked(struct job_world *w, uint32_t index, uint32_t psn)
{
    struct pair *x = pair_at(w, index);
    const uint32_t first = (x->psn + (uint32_t)x->acked) & PAIR_PSN_MASK;
    const uint64_t count = (psn - first) & PAIR_PSN_MASK;

    if (count == 0 || count > x->next - x->acked) { /* an old acknowledgement */
        return;
    }
    for (uint64_t i = 0; i < count; i++, x->acked++) {
        complete(w, index, &(struct io_qp_done){.cell = x->sends[x->acked % x->config.sends].cell});
    }
    x->tries = x->rnr_tries = 0;
    x->timeout_at = 0;
    x->window += x->window < PAIR_WINDOW_MAX;
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
            pair_fail(w, index, IO_QP_RNR);
        }
    } else if (packet->kind == PAIR_REFUSE) {
        pair_fail(w, index, IO_QP_REFUSED);
    }
    pair_pump(w, index);
    pair_set_timer(w, index);
}

/* -- receiving -------------------------------------------------------------------------------- */

static void answer(struct job_world *w, uint32_t index, enum pair_packet_kind kind)
{
    transmit(w, index,
             (struct pair_packet){.kind = kind, .psn = pair_at(w, index)->expected, .size = 0});
}

uint8_t *pair_receive_cell(const struct pair *x, uint32_t cell)
{
    return x->memory + ((size_t)x->config.sends + cell) * x->config.cell_size;
}

/* False: the key or the address is wrong. */
static bool write_there(struct job_world *w, const struct pair *x, const struct pair_packet *packet)
{
    if (packet->written == 0) {
        return true;
    }
    const struct memory *m =
        x->config.writes ? registered(w, x, packet->key, packet->to, packet->written) : NULL;
    if (m == NULL) {
        return false;
    }
    w->result->renewed_writes += m->renewed >> pair_device(w, x) & 1;
    memcpy(packet->to, packet->bytes + packet->size - packet->written, packet->written);
    w->result->writes++;
    return true;
}

/* The message was being executed when the queue pair failed: it goes on, without an event. */
static void land_late(struct job_world *w, struct pair *x, const struct pair_packet *packet)
{
    /* Neither a message that was executed before nor one out of order is executed. */
    const bool next = w->now < x->late_until && packet->psn == x->expected;

    x->expected = (x->expected + next) & PAIR_PSN_MASK;
    w->result->late_writes += next && packet->written > 0 && write_there(w, x, packet);
    if (x->cell_count > 0 && w->now < x->late_until && packet->written == 0 &&
        packet->size <= x->config.cell_size) {
        memcpy(pair_receive_cell(x, x->posted_cells[x->first_cell % x->config.receives]),
               packet->bytes, packet->size);
        w->result->late_writes++;
    }
}

static void on_send(struct job_world *w, uint32_t index, const struct pair_packet *packet)
{
    struct pair *x = pair_at(w, index);
    const uint32_t ahead = (packet->psn - x->expected) & PAIR_PSN_MASK;
    const struct process *p = &w->processes[x->process];

    if (ahead > PAIR_PSN_MASK / 2) { /* a repetition: the answer was lost */
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
        pair_fail(w, index, IO_QP_BROKEN);
        return;
    }
    if (x->linger) { /* the process has closed it */
        x->expected = (x->expected + 1) & PAIR_PSN_MASK;
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
    memcpy(pair_receive_cell(x, cell), packet->bytes, packet->size - packet->written);
    x->expected = (x->expected + 1) & PAIR_PSN_MASK;
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
        return; /* the queue pair is gone, or the timer moved */
    }
    x->timer = 0;
    if ((x->state == PAIR_OPENING || x->state == PAIR_CONNECTING) && x->ready_at <= w->now) {
        x->state = x->state == PAIR_OPENING ? PAIR_INIT : PAIR_RTS;
        pair_tell(w, index);
    }
    if (x->timeout_at != 0 && x->timeout_at <= w->now) {
        on_timeout(w, index);
    }
    if (x->rnr_until != 0 && x->rnr_until <= w->now) {
        x->rnr_until = 0;
        pair_pump(w, index);
    }
    if (x->linger && x->linger_until <= w->now) {
        pair_fail(w, index, IO_QP_FLUSHED);
        x->linger = false;
    }
    if (x->state == PAIR_ERROR && !x->flushed && x->late_until <= w->now) {
        pair_flush(w, index);
    }
    if (x->used) {
        pair_set_timer(w, index);
    }
}

/* -- faults ----------------------------------------------------------------------------------- */

void sim_pairs_remove(struct job_world *w, uint32_t nic)
{
    for (uint32_t i = 0; i < w->pair_count; i++) {
        struct pair *x = pair_at(w, i);
        if (x->used && x->nic == nic) {
            x->error = -ENODEV;
            pair_fail(w, i, IO_QP_FLUSHED);
            pair_tell(w, i);
        }
    }
}

/* Bytes that its peer has sent, and that are not acknowledged. */
static uint64_t flying_to(struct job_world *w, uint32_t index)
{
    const struct pair *peer = pair_at(w, pair_at(w, index)->peer);

    return peer->next - peer->acked;
}

/* Breaks the queue pair with the most bytes on their way. */
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
    pair_fail(w, worst, IO_QP_BROKEN);
    pair_tell(w, worst);
    return true;
}

void sim_pairs_kill(struct job_world *w, uint32_t process)
{
    for (uint32_t i = 0; i < w->pair_count; i++) {
        struct pair *x = pair_at(w, i);
        if (x->used && x->process == (int)process) {
            x->generation++; /* packets for it are dropped; its memory goes with the process */
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
