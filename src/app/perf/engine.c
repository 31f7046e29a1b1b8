/* engine.c: runs a plan over a plugin, as NCCL's proxy runs its operations: up to eight transfers in flight per connection, each
 * polled in turn. No call blocks. */
#include <sched.h>
#include <string.h>
#include <time.h>

#include "app/perf/perf.h"

#define TRACE_FLUSH_NS 100000000

int64_t perf_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static char *slot_of(const struct engine *e, const struct engine_line *line, int index)
{
    return line->slots + (size_t)(index % PERF_STEPS) * e->options->message;
}

/* Another receive finished: updates the trace and the longest gap. */
static void note_receive(struct engine *e, const struct line *plan, size_t size)
{
    const int64_t now = perf_now_ns();

    if (e->last_receive_ns != 0 && now - e->last_receive_ns > e->gap_ns) {
        e->gap_ns = now - e->last_receive_ns;
    }
    e->last_receive_ns = now;
    e->received_bytes += size;
    e->message_count++;
    if (e->trace != NULL) {
        const struct {
            int64_t ns;
            uint32_t bytes;
            uint16_t channel, peer;
        } record = {now, (uint32_t)size, (uint16_t)plan->channel, (uint16_t)plan->peer};
        fwrite(&record, sizeof(record), 1, e->trace);
        /* the reader of the trace sees progress */
        if (now - e->trace_flushed_ns > TRACE_FLUSH_NS) {
            e->trace_flushed_ns = now;
            fflush(e->trace);
        }
    }
}

/* Another send finished: records the time from isend to done. */
static void note_send(const struct engine *e, const struct line *plan, int64_t posted_ns)
{
    const int64_t us = (perf_now_ns() - posted_ns) / 1000;
    const struct {
        int64_t ns;
        uint32_t us;
        uint16_t channel, peer;
    } record = {posted_ns, us < UINT32_MAX ? (uint32_t)us : UINT32_MAX, (uint16_t)plan->channel,
                (uint16_t)plan->peer};

    fwrite(&record, sizeof(record), 1, e->sends);
}

/* Processes received data before a send may use them. */
static void consume(struct engine *e, struct engine_line *line, int index, const struct transfer *x)
{
    char *slot = slot_of(e, line, index);
    const size_t count = x->size / e->element;
    const enum perf_type type = e->options->type;

    if (x->kind == RECEIVE_REDUCE) {
        perf_reduce(type, e->options->reduction, slot, e->input + x->offset, count);
        return; /* the slot becomes free when its content was sent on */
    }
    if (x->kind == RECEIVE_FINISH) {
        char *to = e->output + x->to;
        if (to == e->input + x->offset) {
            perf_reduce(type, e->options->reduction, to, slot, count);
        } else {
            perf_reduce(type, e->options->reduction, slot, e->input + x->offset, count);
            memcpy(to, slot, x->size);
        }
    }
    line->slot_busy[index % PERF_STEPS] = false;
}

static enum nccl_result post_receive(struct engine *e, const struct line *plan,
                                     struct engine_line *line, bool *moved)
{
    const int i = line->posted;
    const struct transfer *x = &plan->transfers[i];
    const bool direct = x->kind == RECEIVE_OUTPUT;
    struct net_receive receive = {.count = 1, .sizes = {x->size}, .tags = {0}};
    void *request = NULL;

    if (line->slot_busy[i % PERF_STEPS]) {
        return NCCL_SUCCESS;
    }
    receive.data[0] = direct ? e->output + x->offset : slot_of(e, line, i);
    receive.mhandles[0] = line->mhandles[direct ? 1 : 2];
    enum nccl_result result = net_irecv(e->net, line->comm, &receive, &request);
    if (result == NCCL_SUCCESS && request != NULL) {
        line->requests[i % PERF_STEPS] = request;
        line->slot_busy[i % PERF_STEPS] = true;
        line->posted++;
        *moved = true;
    }
    return result;
}

static enum nccl_result progress_receive(struct engine *e, const struct line *plan,
                                         struct engine_line *line, bool *moved)
{
    while (line->posted < plan->count && line->posted - line->done < PERF_STEPS) {
        const int before = line->posted;
        const enum nccl_result result = post_receive(e, plan, line, moved);
        if (result != NCCL_SUCCESS) {
            return result;
        }
        if (line->posted == before) {
            break;
        }
    }
    while (line->done < line->posted) {
        const struct transfer *x = &plan->transfers[line->done];
        int done = 0, size = -1;
        const enum nccl_result result =
            net_test(e->net, line->requests[line->done % PERF_STEPS], &done, &size);
        if (result != NCCL_SUCCESS || !done) {
            return result;
        }
        if ((size_t)size != x->size) {
            return NCCL_INTERNAL_ERROR;
        }
        note_receive(e, plan, x->size);
        consume(e, line, line->done, x);
        line->done++;
        *moved = true;
    }
    return NCCL_SUCCESS;
}

static enum nccl_result post_send(struct engine *e, const struct line *plan,
                                  struct engine_line *line, const struct engine_line *neighbour)
{
    const struct transfer *x = &plan->transfers[line->posted];
    char *data = x->kind == SEND_INPUT    ? e->input + x->offset
                 : x->kind == SEND_OUTPUT ? e->output + x->offset
                                          : slot_of(e, neighbour, x->after);
    /* input and output are registered for this comm; slots for both directions */
    void *mhandle = line->mhandles[x->kind == SEND_INPUT ? 0 : x->kind == SEND_OUTPUT ? 1 : 2];
    void *request = NULL;
    const int64_t began_ns = e->sends != NULL ? perf_now_ns() : 0;
    const enum nccl_result result =
        net_isend(e->net, line->comm, data, x->size, 0, mhandle, &request);

    if (result == NCCL_SUCCESS && request != NULL) {
        line->sent_ns[line->posted % PERF_STEPS] = began_ns;
        line->requests[line->posted++ % PERF_STEPS] = request;
    }
    return result;
}

static enum nccl_result progress_send(struct engine *e, const struct line *plan,
                                      struct engine_line *line, struct engine_line *neighbour,
                                      bool *moved)
{
    while (line->done < line->posted) {
        const struct transfer *x = &plan->transfers[line->done];
        int done = 0;
        const enum nccl_result result =
            net_test(e->net, line->requests[line->done % PERF_STEPS], &done, NULL);
        if (result != NCCL_SUCCESS) {
            return result;
        }
        if (!done) {
            break;
        }
        if (e->sends != NULL) {
            note_send(e, plan, line->sent_ns[line->done % PERF_STEPS]);
        }
        if (x->kind == SEND_SLOT) {
            neighbour->slot_busy[x->after % PERF_STEPS] = false;
        }
        line->done++;
        *moved = true;
    }
    while (line->posted < plan->count && line->posted - line->done < PERF_STEPS &&
           plan->transfers[line->posted].after < neighbour->done) {
        const int before = line->posted;
        const enum nccl_result result = post_send(e, plan, line, neighbour);
        if (result != NCCL_SUCCESS) {
            return result;
        }
        if (line->posted == before) {
            break;
        }
        *moved = true;
    }
    return NCCL_SUCCESS;
}

static enum nccl_result progress(struct engine *e, bool *moved, bool *finished)
{
    *finished = true;
    for (int i = 0; i < e->plan->line_count; i += 2) {
        const struct line *plan = &e->plan->lines[i];
        struct engine_line *line = &e->lines[i];
        enum nccl_result result = NCCL_SUCCESS;
        if (plan[1].peer >= 0) {
            result = progress_receive(e, &plan[1], &line[1], moved);
        }
        if (result == NCCL_SUCCESS && plan[0].peer >= 0) {
            result = progress_send(e, &plan[0], &line[0], &line[1], moved);
        }
        if (result != NCCL_SUCCESS) {
            return result;
        }
        *finished = *finished && line[0].done == plan[0].count && line[1].done == plan[1].count;
    }
    return NCCL_SUCCESS;
}

/* NCCL's progress thread yields. With --wait this thread sleeps instead, so that the processor time is the plugin's. */
static void idle(const struct engine *e)
{
    if (e->options->wait_us > 0) {
        const struct timespec t = {0, e->options->wait_us * 1000L};
        nanosleep(&t, NULL);
    } else {
        sched_yield();
    }
}

/* Two polls in a row found nothing to do: between them this rank waited for others. The time after the second poll does not
 * count: others may have been ready for a while, and this rank had no processor. */
static void note_wait(struct engine *e, int64_t *in_vain_ns)
{
    const int64_t now = perf_now_ns();
    e->waited_ns += *in_vain_ns != 0 ? now - *in_vain_ns : 0;
    *in_vain_ns = now;
}

enum nccl_result engine_run(struct engine *e)
{
    int64_t last_moved = perf_now_ns(), in_vain_ns = 0;
    bool finished = false;
    unsigned idles = 0;

    for (int i = 0; i < e->plan->line_count; i++) {
        e->lines[i].posted = e->lines[i].done = 0;
        memset(e->lines[i].slot_busy, 0, sizeof(e->lines[i].slot_busy));
    }
    while (!finished) {
        bool moved = false;
        const enum nccl_result result = progress(e, &moved, &finished);
        if (result != NCCL_SUCCESS) {
            return result;
        }
        if (moved) {
            idles = 0;
            in_vain_ns = 0;
            continue;
        }
        note_wait(e, &in_vain_ns);
        idle(e);
        if (idles++ == 0) {
            last_moved = perf_now_ns();
        } else if (idles % 1024 == 0 && e->options->timeout_s > 0 &&
                   perf_now_ns() - last_moved > e->options->timeout_s * 1000000000LL) {
            return NCCL_TIMEOUT;
        }
    }
    return NCCL_SUCCESS;
}
