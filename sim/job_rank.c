/* job_rank.c: the application of simulated jobs, and the check of what it receives.
 *
 * A flow is a chain of communicators from one process to another: listen, connect, accept, a number of messages, close at both
 * ends, and again. The content and the size of message k of communicator c depend only on (c, k, place) (job_content.c), so
 * the receiver knows both. A buffer is filled with a pattern before it is posted. When its receive is done, it is filled with
 * another pattern, as if its owner used it. So a late write is found when the buffer is posted again. A send's buffer is
 * overwritten when the send is done. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/job_rank.h"

#define SLACK      64 /* bytes after each buffer */
#define PAGE       4096
#define REGISTERED 32 /* one in so many posts registers its buffer again */

static uint64_t seed_of(const struct flow *f, uint32_t message)
{
    return hash_u64((uint64_t)f->index << 32 | f->generation, message);
}

static uint32_t size_of(const struct job_world *w, const struct flow *f, uint32_t message)
{
    return w->config.step_ns != 0 || w->config.whole
               ? w->config.size_max
               : content_size(hash_u64(seed_of(f, message), w->config.seed), w->config.size_max);
}

static void fill(struct slot *slot, uint32_t size)
{
    slot->pattern = (uint8_t)(slot->pattern * 5 + 77);
    memset(slot->bytes, slot->pattern, size);
    slot->filled = size;
}

/* Registers a free buffer. Memory that NICs write is registered again now and then, as for communicators that come and go. A
 * device that was removed has lost its keys for good. */
static void register_bytes(struct job_world *w, uint32_t process, struct slot *slot)
{
    struct process *p = &w->processes[process];

    if (slot->memory != NULL &&
        (!w->config.direct || w->config.keys_last ||
         hash_u64(w->config.seed, (uint64_t)process << 32 | slot->message) % REGISTERED != 0)) {
        return;
    }
    if (slot->memory != NULL) {
        transport_memory_remove(p->transport, slot->memory);
    }
    if (transport_memory_add(p->transport, slot->bytes, (size_t)w->config.size_max + 2 * SLACK,
                             &slot->memory) < 0) {
        slot->memory = NULL;
    }
}

static struct slot *slot_of(struct job_world *w, uint32_t process, struct side *side,
                            uint32_t message)
{
    struct slot *slot = &side->slots[message % w->config.depth];

    if (slot->bytes == NULL) { /* on its own pages, because pages are registered */
        slot->bytes =
            aligned_alloc(PAGE, ((size_t)w->config.size_max + 2 * SLACK + PAGE - 1) / PAGE * PAGE);
        if (slot->bytes == NULL) {
            abort();
        }
    }
    if (slot->request == NULL) {
        register_bytes(w, process, slot);
    }
    return slot;
}

/* A buffer that isn't posted must be as its owner left it. */
static void check_rest(struct job_world *w, const struct flow *f, const struct slot *slot)
{
    if (slot->bytes != NULL && !content_is_pattern(slot->bytes, slot->filled, slot->pattern)) {
        world_wrong(w, "late: a buffer changed after its receive was done",
                    "flow %u, communicator %u, after message %u", f->index, f->generation,
                    slot->message);
    }
}

/* -- ends of a communicator ------------------------------------------------------------------- */

static struct transport *of(struct job_world *w, uint32_t process)
{
    return w->processes[process].transport;
}

/* The process closed one of the flows that it sends on. */
static void closed_late(struct job_world *w, struct process *p)
{
    if (w->config.late_ns != 0 && --p->sending == 0) {
        p->paused_until = w->now + w->config.freeze_ns;
        p->late_until = w->now + w->config.late_ns;
    }
}

/* Closes one side; its posted buffers belong to their owner again. */
static void side_close(struct job_world *w, struct flow *f, struct side *side)
{
    if (side->comm != NULL) {
        transport_close(side->comm);
    }
    side->comm = NULL;
    side->state = SIDE_OVER;
    if (side == &f->out) {
        closed_late(w, &w->processes[f->from]);
    }
    for (uint32_t i = 0; i < w->config.depth; i++) {
        struct slot *slot = &side->slots[i];
        if (slot->request != NULL || slot->filled == UINT32_MAX) {
            fill(slot, slot->room + SLACK);
            slot->request = NULL;
        }
    }
    if (side == &f->in && f->listening) {
        transport_close_listener(f->listener);
        f->listening = false;
    }
}

/* The receiver has all messages, and has posted more receives than there will be. */
static bool only_surplus(const struct job_world *w, const struct flow *f, const struct side *side)
{
    uint32_t k = side->over;

    while (k < w->config.messages && side->slots[k % w->config.depth].done) {
        k++;
    }
    return side == &f->in && f->out.state == SIDE_OVER && k >= w->config.messages;
}

static void on_error(struct job_world *w, struct flow *f, struct side *side, int r)
{
    if (r == -EMFILE && w->result->by_kind[JOB_FAULT_FILES] > 0 && side->comm == NULL) {
        f->excused = true; /* no communicator was made, and the reason was reported */
        r = -ECONNABORTED;
    }
    f->excused = f->excused || only_surplus(w, f, side);
    if (!f->excused) {
        world_wrong(w, "an error while a path was left",
                    "flow %u (%u to %u), communicator %u, %s: %d, %s", f->index, f->from, f->to,
                    f->generation, side == &f->out ? "sender" : "receiver", r, transport_why());
    }
    if (r != -ECONNABORTED && f->excused) {
        world_wrong(w, "not the proper error", "%d", r);
    }
    w->result->failed++;
    w->result->error_ns = w->last_came ? w->now - w->last_at : 0;
    f->excused = true;
    side_close(w, f, side);
}

static void again(struct job_world *w, struct flow *f)
{
    const bool more = !w->calm && !w->processes[f->from].killed && !w->processes[f->to].killed &&
                      w->config.step_ns == 0 && w->config.late_ns == 0 &&
                      !(w->last_came && f->excused);

    if (f->out.state != SIDE_OVER || f->in.state != SIDE_OVER || f->over) {
        return;
    }
    w->result->comms++;
    if (!more) {
        f->over = true;
        w->flows_over++;
        return;
    }
    f->generation++;
    f->excused = false;
    f->surplus = (seed_of(f, UINT32_MAX) & 3) == 0;
    f->out.state = f->in.state = SIDE_BEGIN;
    f->out.next = f->out.over = f->in.next = f->in.over = 0;
    f->out.connecting = 0;
    world_wake(w, &w->processes[f->to], w->now);
}

/* -- sending ---------------------------------------------------------------------------------- */

static void send_next(struct job_world *w, struct flow *f, struct side *side)
{
    struct process *p = &w->processes[f->from];

    while (side->state == SIDE_OPEN && side->next < w->config.messages &&
           side->next - side->over < w->config.depth && order_send(w, f)) {
        struct slot *slot = slot_of(w, f->from, side, side->next);
        const uint32_t size = size_of(w, f, side->next);
        /* not prepared by an earlier attempt */
        if (slot->message != side->next || slot->filled != UINT32_MAX) {
            content_make(slot->bytes, size, seed_of(f, side->next));
            slot->filled = UINT32_MAX;
            slot->room = size;
            slot->message = side->next;
        }
        int r = transport_send(side->comm, slot->bytes, size, 0, NULL, &slot->request);
        if (r < 0) {
            on_error(w, f, side, r);
            return;
        }
        if (slot->request == NULL) {
            return;
        }
        slot->size = slot->room = size;
        slot->done = false;
        if (w->config.drowsy_ns != 0 && w->processes[f->to].paused_until == 0) {
            w->processes[f->to].paused_until = w->now + w->config.drowsy_ns;
        }
        f->sent_at[side->next % w->config.depth] = w->now;
        side->next++;
        if (w->config.gap_ns > 0) {
            side->not_before =
                w->now + (int64_t)(prng_exponential(&p->prng) * (double)w->config.gap_ns);
        }
    }
}

/* Tests a request. Requests may be tested in any order, and each may be done at any time. */
static bool ask(struct job_world *w, struct flow *f, struct side *side, struct slot *slot,
                size_t *ret_size)
{
    bool done = false;

    if (slot->request == NULL) {
        return false;
    }
    int r = transport_test(slot->request, &done, ret_size);
    if (r < 0) {
        on_error(w, f, side, r);
        return false;
    }
    if (done) {
        slot->request = NULL;
        slot->done = true;
    }
    return done;
}

static void sends_done(struct job_world *w, struct flow *f, struct side *side)
{
    for (uint32_t k = side->over; side->state == SIDE_OPEN && k < side->next; k++) {
        struct slot *slot = &side->slots[k % w->config.depth];
        if (ask(w, f, side, slot, NULL)) {
            fill(slot, slot->size); /* as if its owner used it */
        } else if (k - side->over > 1) {
            break;
        }
    }
    while (side->over < side->next && side->slots[side->over % w->config.depth].done) {
        side->over++;
    }
}

static void run_sender(struct job_world *w, struct flow *f)
{
    struct side *side = &f->out;
    int r;

    if (side->state == SIDE_BEGIN && f->listening) {
        side->state = SIDE_OPENING;
    } else if (side->state == SIDE_BEGIN && f->in.state == SIDE_OVER) {
        side->state = SIDE_OVER; /* the receiver died before it listened */
    }
    if (side->state == SIDE_OPENING) {
        r = transport_connect(of(w, f->from), f->from_nic, f->handle, &side->connecting,
                              &side->comm);
        if (r < 0) {
            on_error(w, f, side, r);
        } else if (side->comm != NULL) {
            side->state = SIDE_OPEN;
        }
    }
    if (side->state == SIDE_OPEN) {
        sends_done(w, f, side);
        send_next(w, f, side);
    }
    if (side->state == SIDE_OPEN && side->over == w->config.messages) {
        side_close(w, f, side);
    }
}

/* -- receiving -------------------------------------------------------------------------------- */

static void post_next(struct job_world *w, struct flow *f, struct side *side)
{
    const uint32_t wanted = w->config.messages + (f->surplus ? 2 : 0);

    while (side->state == SIDE_OPEN && side->next < wanted && order_receive(w, f) &&
           side->next - side->over < w->config.depth) {
        struct slot *slot = slot_of(w, f->to, side, side->next);
        const uint32_t size = size_of(w, f, side->next);
        const uint32_t room = size + (uint32_t)(seed_of(f, side->next) >> 32) % SLACK;
        check_rest(w, f, slot);
        fill(slot, room + SLACK);
        int r = transport_receive(side->comm, slot->bytes, room, 0,
                                  (seed_of(f, side->next) & 7) == 0, NULL, &slot->request);
        if (r < 0) {
            on_error(w, f, side, r);
            return;
        }
        if (slot->request == NULL) {
            return;
        }
        slot->message = side->next;
        slot->size = size;
        slot->room = room;
        slot->done = false;
        slot->at = w->now;
        side->next++;
    }
}

static void check_received(struct job_world *w, struct flow *f, struct slot *slot, size_t size)
{
    const int64_t sent = f->sent_at[slot->message % w->config.depth];
    const int64_t took = w->now - (sent > slot->at ? sent : slot->at);

    if (slot->message >= f->out.next) {
        world_wrong(w, "doubled: done, and never sent", "flow %u, communicator %u, message %u",
                    f->index, f->generation, slot->message);
    } else if (size != slot->size ||
               !content_is(slot->bytes, slot->size, seed_of(f, slot->message))) {
        world_wrong(w, "corrupted: not what was sent",
                    "flow %u, communicator %u, message %u, %zu of %u bytes", f->index,
                    f->generation, slot->message, size, slot->size);
    } else if (!content_is_pattern(slot->bytes + slot->size, slot->room + SLACK - slot->size,
                                   slot->pattern)) {
        world_wrong(w, "written beyond the message", "flow %u, communicator %u, message %u",
                    f->index, f->generation, slot->message);
    }
    w->result->messages++;
    gap_received(w);
    w->result->bytes += slot->size;
    w->result->low_bytes += !w->over && pattern_low(w, f->from) ? slot->size : 0;
    w->result->worst_ns = took > w->result->worst_ns ? took : w->result->worst_ns;
    world_trace(w, (uint64_t)f->index << 32 | slot->message, (uint64_t)w->now);
    fill(slot, slot->room + SLACK);
}

static void receives_done(struct job_world *w, struct flow *f, struct side *side)
{
    size_t size = 0;

    for (uint32_t k = side->over; side->state == SIDE_OPEN && k < side->next; k++) {
        struct slot *slot = &side->slots[k % w->config.depth];
        if (ask(w, f, side, slot, &size)) {
            check_received(w, f, slot, size);
        } else if (k - side->over > 1) {
            break;
        }
    }
    while (side->over < side->next && side->slots[side->over % w->config.depth].done) {
        side->over++;
        if (w->config.step_ns != 0 && side->over == w->step) {
            world_stepped(w);
        }
    }
}

static void run_receiver(struct job_world *w, struct flow *f)
{
    struct side *side = &f->in;
    int r;

    if (side->state == SIDE_BEGIN) {
        r = transport_listen(of(w, f->to), f->to_nic, f->handle, &f->listener);
        if (r == -EMFILE) {
            return; /* no descriptor is left: it is tried again */
        }
        if (r < 0) {
            on_error(w, f, side, r);
            return;
        }
        f->listening = true;
        side->state = SIDE_OPENING;
        world_wake(w, &w->processes[f->from], w->now + 10 * NS_PER_US);
    }
    if (side->state == SIDE_OPENING) {
        r = transport_accept(f->listener, &side->comm);
        if (r < 0 || (side->comm == NULL && f->out.state == SIDE_OVER && f->excused)) {
            on_error(w, f, side, r < 0 ? r : -ECONNABORTED);
        } else if (side->comm != NULL) {
            side->state = SIDE_OPEN;
            transport_close_listener(f->listener);
            f->listening = false;
        }
    }
    if (side->state == SIDE_OPEN) {
        receives_done(w, f, side);
        post_next(w, f, side);
    }
    if (side->state == SIDE_OPEN && side->over >= w->config.messages &&
        (!f->surplus || f->out.state == SIDE_OVER)) {
        f->excused = f->excused || f->surplus; /* it cancels receives without a message */
        side_close(w, f, side);
    }
}

/* -- all flows -------------------------------------------------------------------------------- */

static bool polls(const struct job_world *w, const struct side *side)
{
    if (side->state == SIDE_OPEN && w->config.step_ns != 0) {
        return side->over < side->next || side->next < w->step;
    }
    return side->state == SIDE_OPENING || side->state == SIDE_OPEN;
}

int64_t rank_run(struct job_world *w, struct process *p)
{
    bool any = false;

    for (uint32_t i = 0; i < p->flow_count; i++) {
        struct flow *f = &w->flows[p->flows[i]];
        if (f->over) {
            continue;
        }
        if (f->to == p->index) {
            run_receiver(w, f);
            any = any || polls(w, &f->in);
        } else {
            run_sender(w, f);
            any = any || polls(w, &f->out);
        }
        again(w, f);
        any = any || f->in.state == SIDE_BEGIN;
    }
    return any ? w->now + w->config.poll_ns / 2 +
                     (int64_t)prng_below(&p->prng, (uint64_t)w->config.poll_ns)
               : INT64_MAX;
}

static void take_part(struct process *p, uint32_t flow)
{
    if (p->flow_count == p->flow_capacity) {
        p->flow_capacity = p->flow_capacity == 0 ? 4 : p->flow_capacity * 2;
        p->flows = realloc(p->flows, p->flow_capacity * sizeof(*p->flows));
    }
    p->flows[p->flow_count++] = flow;
}

int rank_start(struct job_world *w)
{
    const uint32_t hosts = w->config.hosts;
    const uint32_t pairs = w->config.pattern == JOB_PAIRS || w->config.pattern == JOB_HALVES
                               ? hosts * (hosts - 1)
                           : w->config.pattern == JOB_RING ? hosts
                                                           : 2 * (hosts - 1);

    w->flows = calloc((size_t)pairs * w->config.comms, sizeof(*w->flows));
    if (w->flows == NULL) {
        return -ENOMEM;
    }
    for (uint32_t from = 0; from < hosts; from++) {
        for (uint32_t to = w->config.pattern == JOB_RING ? pattern_next(w, from) : 0; to < hosts;
             to++) {
            for (uint32_t k = 0; pattern_talks(w, from, to) && k < w->config.comms; k++) {
                struct flow *f = &w->flows[w->flow_count];
                *f = (struct flow){.index = w->flow_count, .from = from, .to = to};
                f->from_nic = f->to_nic = k % (w->config.nics - w->config.front);
                w->processes[from].sending++;
                take_part(&w->processes[from], w->flow_count);
                take_part(&w->processes[to], w->flow_count);
                w->flow_count++;
            }
            if (w->config.pattern == JOB_RING) {
                break;
            }
        }
    }
    for (uint32_t i = 0; w->config.pattern == JOB_RING && i < w->flow_count; i++) {
        w->flows[pattern_next(w, i / w->config.comms) * w->config.comms + i % w->config.comms]
            .before = i;
    }
    return 0;
}

void rank_last(struct job_world *w)
{
    w->config.messages = 0;
    for (uint32_t i = 0; i < w->flow_count; i++) {
        const uint32_t next = w->flows[i].in.next;
        w->config.messages = next > w->config.messages ? next : w->config.messages;
    }
}

bool rank_abort(struct job_world *w)
{
    struct flow *f = &w->flows[prng_below(&w->prng, w->flow_count)];
    struct side *side = prng_below(&w->prng, 2) == 0 ? &f->out : &f->in;

    if (f->out.state != SIDE_OPEN || f->in.state != SIDE_OPEN) {
        return false;
    }
    f->excused = true;
    side_close(w, f, side);
    world_wake(w, &w->processes[side == &f->out ? f->from : f->to], w->now);
    return true;
}

void rank_excuse(struct job_world *w, uint32_t process)
{
    for (uint32_t i = 0; i < w->processes[process].flow_count; i++) {
        w->flows[w->processes[process].flows[i]].excused = true;
    }
}

/* Closes the ends of a process that is gone. */
void rank_killed(struct job_world *w, uint32_t process)
{
    for (uint32_t i = 0; i < w->processes[process].flow_count; i++) {
        struct flow *f = &w->flows[w->processes[process].flows[i]];
        struct side *side = f->from == process ? &f->out : &f->in;
        if (side->state == SIDE_OPENING && side->connecting != 0) { /* it fails after a while */
            while (transport_connect(of(w, process), f->from_nic, f->handle, &side->connecting,
                                     &side->comm) == 0) {
                (void)transport_serve(of(w, process), (struct mono){0});
            }
        }
        if (side->state != SIDE_OVER) {
            side_close(w, f, side);
        }
        again(w, f);
    }
}

bool rank_over(struct job_world *w)
{
    return w->flows_over == w->flow_count;
}

/* Reports the first flow that is not done. */
void rank_stuck(struct job_world *w)
{
    for (uint32_t i = 0; i < w->flow_count; i++) {
        const struct flow *f = &w->flows[i];
        if (!f->over) {
            world_wrong(
                w, "stuck: not done though the faults ended long ago",
                "flow %u (%u to %u), communicator %u: sender state %d, %u of %u done, receiver "
                "state %d, %u of %u done%s",
                i, f->from, f->to, f->generation, f->out.state, f->out.over, f->out.next,
                f->in.state, f->in.over, f->in.next, f->excused ? ", given up" : "");
            return;
        }
    }
}

void rank_done(struct job_world *w)
{
    for (uint32_t i = 0; i < w->flow_count; i++) {
        for (uint32_t k = 0; k < DEPTH_MAX; k++) {
            check_rest(w, &w->flows[i], &w->flows[i].in.slots[k]);
            free(w->flows[i].in.slots[k].bytes);
            free(w->flows[i].out.slots[k].bytes);
        }
    }
    free(w->flows);
}
