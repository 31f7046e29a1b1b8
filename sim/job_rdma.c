/* job_rdma.c: io_rdma.h for simulated queue pairs (job_pair.c): the calls of a process, and their cost. Making a queue pair
 * takes milliseconds, connecting up to a second, and one of 64 finds no memory. A registration may be refused, and ends with
 * its device. Wrong use of a cell or of a queue pair makes the world wrong. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job_pair.h"

#define LINGER_NS (2 * NS_PER_S)
#define OPEN_NS   (2 * NS_PER_MS)
#define COLD_NS   NS_PER_S
#define REFUSED   32 /* one registration of so many is refused */

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

    if (nic < 0 || p->killed || w->net.nics[nic].removed > 0 ||
        (w->config.front && (uint32_t)nic % w->config.nics == w->config.nics - 1)) {
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
                       .psn = (uint32_t)prng_below(&p->prng, PAIR_PSN_MASK + 1),
                       .window = PAIR_WINDOW_MAX / 4,
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
        prng_below(&p->prng, 64) == 0 ? -ENOMEM : 0; /* memlock, when the driver needs memory */
    pair_set_timer(w, index);
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
    x->ready_at = 0; /* reported */
    const struct io_address own = job_net_address(&p->world->net, x->nic);
    *ret_own = (struct io_qp_end){
        .qp = (x->generation & 0xfffu) << 12 | (uint32_t)qp, .psn = x->psn, .mtu_shift = 12};
    memcpy(ret_own->gid, own.ip, 16);
    *ret_cells = (struct io_qp_cells){x->memory, pair_receive_cell(x, 0), pair_device(p->world, x)};
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
        x->peer_generation--; /* its peer is gone: nothing answers */
    }
    x->expected = peer->psn;
    x->timeouts = *timeouts;
    x->state = PAIR_CONNECTING;
    x->ready_at = w->now + 1 +
                  (prng_below(&p->prng, 16) == 0
                       ? (int64_t)prng_below(&p->prng, COLD_NS)
                       : (int64_t)(prng_exponential(&p->prng) * (double)(OPEN_NS / 4)));
    pair_set_timer(w, (uint32_t)qp);
    return 0;
}

static int rdma_connected(struct io_rdma *rdma, int qp)
{
    const struct process *p = rdma->driver;
    struct pair *x = mine(rdma, qp);

    if (x->state == PAIR_RTS) {
        x->ready_at = 0; /* reported */
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
    pair_pump(w, (uint32_t)qp);
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
    if (!p->killed && pair_has_news(x)) {
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
        return; /* its NIC no longer has it */
    }
    if (linger && x->state == PAIR_RTS && x->acked < x->posted) {
        x->linger = true;
        x->linger_until = w->now + LINGER_NS;
        pair_set_timer(w, (uint32_t)qp);
        return;
    }
    pair_fail(w, (uint32_t)qp, IO_QP_FLUSHED);
    x->done_count = 0;
    if (x->flushed) {
        pair_forget(w, (uint32_t)qp);
    }
}

static int rdma_silence(struct io_rdma *rdma, int qp)
{
    const struct process *p = rdma->driver;

    if (!p->killed) {
        pair_fail(p->world, (uint32_t)(mine(rdma, qp) != NULL ? qp : 0), IO_QP_FLUSHED);
    }
    return 0;
}

/* A destroyed queue pair is silent when the call returns. */
static int rdma_fence(struct io_rdma *rdma, int qp, bool wait)
{
    const struct process *p = rdma->driver;
    struct pair *x = mine(rdma, qp);

    (void)wait;
    if (!p->killed) {
        pair_fail(p->world, (uint32_t)qp, IO_QP_FLUSHED);
        if (!x->flushed) {
            pair_flush(p->world, (uint32_t)qp);
        }
    }
    return 0;
}

/* A driver refuses some memory: on all devices, or on one. A device that is away gives no key. */
static int memory_add(struct io_rdma *rdma, const struct io_rdma_range *range,
                      struct io_rdma_memory **ret_memory)
{
    struct process *p = rdma->driver;
    const struct job_world *w = p->world;
    const uint32_t first = p->index / pattern_sharing(w) * w->config.nics;
    const uint64_t luck = hash_u64(w->config.seed, (uint64_t)p->index << 32 | ++p->keys);
    struct memory *m = w->config.keys_last || luck % REFUSED != 0 ? calloc(1, sizeof(*m)) : NULL;

    if (m == NULL) {
        return -ENOMEM;
    }
    *m = (struct memory){.data = range->data, .size = range->size, .next = p->memories};
    for (uint32_t i = 0; i < w->config.nics; i++) {
        const uint32_t device = sim_device(w, first + i);
        if (w->config.keys_last ||
            (w->net.nics[first + i].removed == 0 && (luck >> (8 + i)) % REFUSED != 0)) {
            m->keys.local[device] = m->keys.remote[device] =
                p->keys << 12 | device << 8 | (p->index + 1);
        }
    }
    p->memories = m;
    *ret_memory = &m->keys;
    return 0;
}

void sim_keys_die(struct job_world *w, uint32_t nic)
{
    const uint32_t device = sim_device(w, nic), sharing = pattern_sharing(w);

    for (uint32_t i = 0; i < sharing && !w->config.keys_last; i++) {
        struct process *p = &w->processes[nic / w->config.nics * sharing + i];
        for (struct memory *m = p->memories; m != NULL; m = m->next) {
            w->result->dead_keys += m->keys.local[device] != 0;
            m->keys.local[device] = m->keys.remote[device] = 0;
        }
    }
}

/* A device that is back registers its memory again, with other keys, or refuses it. */
void sim_keys_return(struct job_world *w, uint32_t nic)
{
    const uint32_t device = sim_device(w, nic), sharing = pattern_sharing(w);

    for (uint32_t i = 0; i < sharing && !w->config.keys_last; i++) {
        struct process *p = &w->processes[nic / w->config.nics * sharing + i];
        for (struct memory *m = p->memories; m != NULL; m = m->next) {
            const uint64_t luck = hash_u64(w->config.seed, (uint64_t)p->index << 32 | ++p->keys);
            if (m->keys.local[device] == 0 && luck % REFUSED != 0) {
                m->keys.local[device] = m->keys.remote[device] =
                    p->keys << 12 | device << 8 | (p->index + 1);
                m->renewed |= 1u << device;
                w->result->renewed_keys++;
            }
        }
    }
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
