/* plan.c: a collective as a list of transfers per connection. Both ends of a connection compute the same list.
 *
 * Rings are NCCL's. The data are cut into one piece per channel. A piece goes round its ring in steps. Each step has two
 * messages, so that one is sent while the other is processed. */
#include <errno.h>
#include <stdlib.h>

#include "app/perf/perf.h"

#define SLICES 2

static int add(struct line *line, const struct transfer *transfer)
{
    if (line->count == line->capacity) {
        const int capacity = line->capacity == 0 ? 64 : line->capacity * 2;
        void *grown = realloc(line->transfers, sizeof(*transfer) * (size_t)capacity);
        if (grown == NULL) {
            return -ENOMEM;
        }
        line->transfers = grown;
        line->capacity = capacity;
    }
    line->transfers[line->count] = *transfer;
    return line->count++;
}

static bool is_ring(enum perf_operation operation)
{
    return operation != ALL_TO_ALL && operation != PING_PONG && operation != GATHER;
}

/* True if rank a connects to rank b. */
static bool talks(const struct plan_wish *w, int a, int b)
{
    if (a == b) {
        return false;
    }
    switch (w->operation) {
    case ALL_TO_ALL:
        return true;
    case GATHER:
        return b == w->root;
    case PING_PONG:
        return a < 2 && b < 2;
    case BROADCAST:
        return (a + 1) % w->ranks == b && b != w->root;
    default:
        return (a + 1) % w->ranks == b;
    }
}

int plan_init(struct plan *plan, const struct plan_wish *w)
{
    const int peers = is_ring(w->operation) ? 1 : w->ranks;

    *plan = (struct plan){.line_count = 2 * peers * w->channels};
    plan->lines = calloc((size_t)plan->line_count, sizeof(*plan->lines));
    if (plan->lines == NULL) {
        return -ENOMEM;
    }
    struct line *line = plan->lines;
    for (int channel = 0; channel < w->channels; channel++) {
        for (int p = 0; p < peers; p++, line += 2) {
            const int to = is_ring(w->operation) ? (w->rank + 1) % w->ranks : p;
            const int from = is_ring(w->operation) ? (w->rank + w->ranks - 1) % w->ranks : p;
            line[0] = (struct line){.peer = talks(w, w->rank, to) ? to : -1, .channel = channel};
            line[1] =
                (struct line){.peer = talks(w, from, w->rank) ? from : -1, .channel = channel};
            line[0].sends = true;
        }
    }
    return 0;
}

void plan_done(struct plan *plan)
{
    for (int i = 0; i < plan->line_count; i++) {
        free(plan->lines[i].transfers);
    }
    free(plan->lines);
    *plan = (struct plan){0};
}

/* -- rings */

/* One turn of a channel round the ring: the place of its piece in each block. */
struct turn {
    const struct plan_wish *wish;
    struct line *send, *receive;
    /* block b begins at base + b * stride; it has `size` bytes, cut at `end` */
    size_t base, stride, size;
    /* the end of the data: the last blocks of an all-reduce may be short or empty */
    size_t end;
};

static size_t block_size(const struct turn *t, int block)
{
    const size_t begin = t->base + (size_t)block * t->stride;

    return begin >= t->end ? 0 : t->end - begin < t->size ? t->end - begin : t->size;
}

/* The offset and the size of a block's message k; false: the block has no such message. */
static bool slice(const struct turn *t, int block, int k, size_t *ret_offset, size_t *ret_size)
{
    const size_t size = block_size(t, block), message = t->wish->message;
    const size_t begin = (size_t)k * message;

    *ret_offset = t->base + (size_t)block * t->stride + begin;
    *ret_size = begin >= size ? 0 : size - begin < message ? size - begin : message;
    return *ret_size > 0;
}

static int wrap(const struct turn *t, int block)
{
    const int n = t->wish->ranks;

    return ((block % n) + n) % n;
}

/* What a rank does in one step of its ring. */
static enum transfer_kind receive_kind(const struct plan_wish *w, int step)
{
    if (w->operation == ALL_GATHER || (w->operation == ALL_REDUCE && step >= w->ranks - 1)) {
        return RECEIVE_OUTPUT;
    }
    return step == w->ranks - 2 ? RECEIVE_FINISH : RECEIVE_REDUCE;
}

static int send_block(const struct turn *t, int step)
{
    const struct plan_wish *w = t->wish;

    if (w->operation == REDUCE_SCATTER) {
        return wrap(t, w->rank - step - 1);
    }
    if (w->operation == ALL_REDUCE && step >= w->ranks - 1) {
        return wrap(t, w->rank + 1 - (step - (w->ranks - 1)));
    }
    return wrap(t, w->rank - step);
}

static int ring_step(const struct turn *t, int step, int k, int *after)
{
    const struct plan_wish *w = t->wish;
    const int out = send_block(t, step), in = wrap(t, out - 1);
    struct transfer x = {.after = -1};
    int r = 0;

    if (slice(t, out, k, &x.offset, &x.size)) {
        x.after = step > 0 ? *after : -1;
        x.kind = step == 0                                     ? SEND_INPUT
                 : receive_kind(w, step - 1) == RECEIVE_REDUCE ? SEND_SLOT
                                                               : SEND_OUTPUT;
        if (w->operation == ALL_GATHER && step == 0) {
            x.offset -= (size_t)w->rank * t->stride; /* the input is one block */
        }
        r = add(t->send, &x);
    }
    if (r >= 0 && slice(t, in, k, &x.offset, &x.size)) {
        x.kind = receive_kind(w, step);
        x.after = -1;
        x.to = x.offset - (w->operation == REDUCE_SCATTER ? (size_t)w->rank * t->stride : 0);
        r = *after = add(t->receive, &x);
    }
    return r;
}

static int ring_turn(const struct turn *t)
{
    const struct plan_wish *w = t->wish;
    const int steps = w->operation == ALL_REDUCE ? 2 * (w->ranks - 1) : w->ranks - 1;
    int after[SLICES] = {-1, -1};

    for (int step = 0; step < steps; step++) {
        for (int k = 0; k < SLICES; k++) {
            const int r = ring_step(t, step, k, &after[k]);
            if (r < 0) {
                return r;
            }
        }
    }
    return 0;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The bytes of a channel's piece if `rest` is left for `parts`: equal shares, in whole 16-byte words. */
static size_t piece_of(const struct plan_wish *w, size_t rest, size_t parts)
{
    const size_t each = ((rest + parts - 1) / parts + 15) / 16 * 16;

    return smaller(each, w->message * SLICES);
}

static int fill_ring(struct plan *plan, const struct plan_wish *w)
{
    const bool whole = w->operation == ALL_REDUCE; /* its blocks are cut anew in each turn */
    const size_t parts = (size_t)w->channels * (whole ? (size_t)w->ranks : 1);

    for (size_t at = 0; at < w->bytes;) {
        const size_t piece = piece_of(w, w->bytes - at, parts);
        for (int c = 0; c < w->channels; c++) {
            struct turn t = {w, &plan->lines[2 * c], &plan->lines[2 * c + 1], 0, 0, piece, 0};
            t.base = at + (size_t)c * piece * (whole ? (size_t)w->ranks : 1);
            t.stride = whole ? piece : w->bytes;
            t.end = whole ? w->bytes : SIZE_MAX;
            if (!whole && t.base < w->bytes) {
                t.size = smaller(piece, w->bytes - t.base);
            }
            const int r = t.base < w->bytes ? ring_turn(&t) : 0;
            if (r < 0) {
                return r;
            }
        }
        at += piece * parts;
    }
    return 0;
}

/* -- the other operations: a sequence of messages from one rank to another */

static int fill_run(struct line *line, const struct transfer *like, const struct plan_wish *w,
                    int channel)
{
    const size_t each = w->bytes / (size_t)w->channels / 16 * 16;
    const size_t begin = each * (size_t)channel;
    const size_t end = channel == w->channels - 1 ? w->bytes : begin + each;
    struct transfer x = *like;

    for (size_t at = begin; line->peer >= 0 && at < end; at += w->message) {
        x.offset = like->offset + at;
        x.size = smaller(w->message, end - at);
        if (like->after >= 0) {
            /* each message waits for the neighbour's message of the same number */
            x.after = line->count;
        }
        const int r = add(line, &x);
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

/* The kind and order of a send: broadcast forwards, and rank 1 of ping-pong answers. */
static struct transfer send_like(const struct plan_wish *w, int peer)
{
    struct transfer like = {.kind = SEND_INPUT, .after = -1};

    if (w->operation == ALL_TO_ALL) {
        like.offset = (size_t)peer * w->bytes;
    } else if (w->operation == BROADCAST && w->rank != w->root) {
        like = (struct transfer){.kind = SEND_OUTPUT, .after = 0};
    } else if (w->operation == PING_PONG && w->rank == 1) {
        like.after = 0;
    }
    return like;
}

static int fill_runs(struct plan *plan, const struct plan_wish *w)
{
    for (int i = 0; i < plan->line_count; i++) {
        struct line *line = &plan->lines[i];
        struct transfer like = {.kind = RECEIVE_OUTPUT, .after = -1};
        if (line->sends) {
            like = send_like(w, line->peer);
        } else if (w->operation == ALL_TO_ALL || w->operation == GATHER) {
            like.offset = (size_t)line->peer * w->bytes;
        }
        const int r = line->peer >= 0 ? fill_run(line, &like, w, line->channel) : 0;
        if (r < 0) {
            return r;
        }
    }
    return 0;
}

int plan_fill(struct plan *plan, const struct plan_wish *w)
{
    for (int i = 0; i < plan->line_count; i++) {
        plan->lines[i].count = 0;
    }
    if (w->ranks < 2) {
        return 0;
    }
    return w->operation == ALL_REDUCE || w->operation == ALL_GATHER ||
                   w->operation == REDUCE_SCATTER
               ? fill_ring(plan, w)
               : fill_runs(plan, w);
}
