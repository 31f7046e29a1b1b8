/* trial.c: see trial.h. */
#include "platform/rdma/trial.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define CELLS       96
#define CELL_SIZE   64
#define SOURCES     8 /* buffers with different bytes, so that each write is visible */
#define IN_FLIGHT   16
#define MARKER_NS   1000000000
#define ROUNDS_KEPT 4096 /* times of this many rounds are kept and sorted */

struct trial {
    const struct rdma_trial_config *config;
    struct rdma_trial *result;
    struct rdma_device *device;
    struct rdma_cq *cq_out, *cq_in;
    struct rdma_qp *out, *in;
    struct rdma_memory *from, *to, *cells;
    uint8_t *source, *target, *copy, (*cell)[CELL_SIZE];
    /* of receives: next_tag: to be posted; flushed_tag: last flushed */
    uint64_t next_tag, flushed_tag;
    uint32_t outstanding; /* posted receives */
    atomic_bool stop;
    /* receives that were posted again; the writer always leaves one posted receive unused: the marker */
    _Atomic uint64_t returned;
    int64_t *connect_ns, *marker_ns;
    uint32_t markers;
    uint32_t random;
};

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void pause_ns(int64_t ns)
{
    const struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};

    nanosleep(&t, NULL);
}

/* Notes an error. True: it is an error. */
static bool bad(struct trial *t, int r, const char *what)
{
    if (r < 0 && t->result->error == 0) {
        t->result->error = r;
        t->result->what = what;
    }
    return r < 0;
}

static void count_status(uint32_t counts[RDMA_STATUS_MAX], const struct rdma_done *done)
{
    counts[done->number < RDMA_STATUS_MAX ? done->number : RDMA_STATUS_MAX - 1]++;
}

/* ---- one round ---- */

static int post_receive(struct trial *t)
{
    const uint64_t tag = t->next_tag;
    const int r = rdma_qp_receive(t->in, tag, t->cell[tag % CELLS], CELL_SIZE,
                                  rdma_memory_key(t->cells, false));

    if (r == 0) {
        t->next_tag++;
        t->outstanding++;
    }
    return r;
}

static bool make_pair(struct trial *t)
{
    const struct rdma_trial_config *c = t->config;
    const int pkey = rdma_device_pkey_index(t->device, c->port, 0);
    const struct rdma_qp_config config = {.port = c->port,
                                          .pkey_index = pkey > 0 ? (uint16_t)pkey : 0,
                                          .sends = 2 * IN_FLIGHT + 2,
                                          .receives = CELLS,
                                          .inline_size = CELL_SIZE,
                                          .remote_write = true};
    const struct rdma_timeouts timeouts = {
        .timeout = 14, .retries = 6, .rnr_timer = 12, .rnr_retries = 6};
    struct rdma_path path = {
        .lid = c->lid, .global = c->global, .own_gid_index = c->gid_index, .mtu = c->mtu, .psn = 1};

    memcpy(path.gid, c->gid, sizeof(path.gid));
    t->outstanding = 0;
    t->returned = 0;
    t->next_tag = t->flushed_tag = CELLS;
    if (bad(t, rdma_cq_open(t->device, 4 * IN_FLIGHT, 0, &t->cq_out),
            "making a completion queue") ||
        bad(t, rdma_cq_open(t->device, 2 * CELLS, 0, &t->cq_in), "making a completion queue") ||
        bad(t, rdma_qp_open(t->device, t->cq_out, &config, &t->out), "making a queue pair") ||
        bad(t, rdma_qp_open(t->device, t->cq_in, &config, &t->in), "making a queue pair")) {
        return false;
    }
    for (int i = 0; i < CELLS; i++) {
        if (bad(t, post_receive(t), "posting a receive")) {
            return false;
        }
    }
    path.qp = rdma_qp_number(t->in);
    if (bad(t, rdma_qp_connect(t->out, 1, &path, &timeouts), "connecting a queue pair")) {
        return false;
    }
    path.qp = rdma_qp_number(t->out);
    return !bad(t, rdma_qp_connect(t->in, 1, &path, &timeouts), "connecting a queue pair");
}

static void end_pair(struct trial *t)
{
    if (t->out != NULL) {
        bad(t, rdma_qp_close(t->out), "closing a queue pair");
    }
    if (t->in != NULL) {
        bad(t, rdma_qp_close(t->in), "closing a queue pair");
    }
    if (t->cq_out != NULL) {
        bad(t, rdma_cq_close(t->cq_out), "closing a completion queue");
    }
    if (t->cq_in != NULL) {
        bad(t, rdma_cq_close(t->cq_in), "closing a completion queue");
    }
    t->out = t->in = NULL;
    t->cq_out = t->cq_in = NULL;
}

/* Writes without pause, until it is told to stop, or until the other end is silent. */
static void *write_on(void *of)
{
    struct trial *t = of;
    const uint32_t size = t->config->size;
    uint32_t in_flight = 0;
    bool alive = true;

    for (uint64_t n = 0; alive && !t->stop;) {
        struct rdma_done done[8];
        const uint8_t *from = t->source + n % SOURCES * size;
        const uint8_t header[8] = {from[0]};
        const struct rdma_piece write = {
            .from = from, .size = size, .key = rdma_memory_key(t->from, false)};
        const struct rdma_piece send = {.from = header, .size = sizeof(header)};
        if (in_flight < IN_FLIGHT && n < t->returned + CELLS - 1 &&
            rdma_qp_send(t->out, n, &write, (uintptr_t)t->target, rdma_memory_key(t->to, true),
                         &send) == 0) {
            in_flight++;
            n++;
        }
        const int count = rdma_cq_poll(t->cq_out, done, 8);
        alive = count >= 0;
        for (int i = 0; i < count; i++) {
            count_status(t->result->sends, &done[i]);
            alive = alive && done[i].status == RDMA_OK;
            in_flight--;
        }
    }
    return NULL;
}

/* Counts completions. False: the queue is broken. */
static bool take(struct trial *t, bool again)
{
    struct rdma_done done[16];
    const int count = rdma_cq_poll(t->cq_in, done, 16);

    if (bad(t, count, "reading completions")) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        t->outstanding--;
        count_status(t->result->receives, &done[i]);
        if (done[i].status == RDMA_OK) {
            t->result->writes++;
        } else if (done[i].status == RDMA_FLUSHED) {
            t->result->out_of_order += done[i].tag < t->flushed_tag;
            t->flushed_tag = done[i].tag;
        }
        if (again && done[i].status == RDMA_OK) {
            if (bad(t, post_receive(t), "posting a receive")) {
                return false;
            }
            t->returned++;
        }
    }
    return true;
}

static uint32_t next_random(struct trial *t)
{
    t->random = t->random * 1664525u + 1013904223u;
    return t->random >> 8;
}

/* Number of bytes that differ from the copy. */
static uint64_t moved(const struct trial *t)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < t->config->size; i++) {
        count += ((const volatile uint8_t *)t->target)[i] != t->copy[i];
    }
    return count;
}

static void fence(struct trial *t)
{
    struct rdma_trial *r = t->result;
    const int64_t begin = now_ns();

    if (bad(t, rdma_qp_silence(t->in), "silencing a queue pair")) {
        return;
    }
    memcpy(t->copy, t->target, t->config->size);
    while (t->outstanding > 0 && now_ns() - begin < MARKER_NS) {
        if (!take(t, false)) {
            return;
        }
    }
    const int64_t took = now_ns() - begin;
    r->moved_after_return += moved(t) > 0;
    if (t->outstanding > 0) {
        r->no_marker++;
        return;
    }
    memcpy(t->copy, t->target, t->config->size);
    pause_ns((int64_t)t->config->watch_ms * 1000000);
    const uint64_t late = moved(t);
    r->moved_after_marker += late > 0;
    r->bytes_after_marker += late;
    if (t->markers < ROUNDS_KEPT) {
        t->marker_ns[t->markers++] = took;
    }
}

/* Runs one round. False: no more rounds. */
static bool round_of(struct trial *t, uint32_t number)
{
    const uint64_t writes = t->result->writes;
    const int64_t begin = now_ns();
    pthread_t writer;

    if (!make_pair(t)) {
        end_pair(t);
        return false;
    }
    t->connect_ns[number % ROUNDS_KEPT] = now_ns() - begin;
    t->stop = false;
    if (bad(t, -pthread_create(&writer, NULL, write_on, t), "starting a thread")) {
        end_pair(t);
        return false;
    }
    const int64_t moment = now_ns() + 1000000 + next_random(t) % 10000 * 1000;
    bool good = true;
    while (good &&
           (now_ns() < moment || (t->result->writes == writes && now_ns() < moment + MARKER_NS))) {
        good = take(t, true);
    }
    if (good && t->result->writes > writes) {
        t->result->rounds++;
        fence(t);
    } else if (good) {
        bad(t, -ETIMEDOUT, "writing from one queue pair to another of this port");
    }
    t->stop = true;
    pthread_join(writer, NULL);
    end_pair(t);
    return t->result->error == 0;
}

/* ---- all of them ---- */

static bool claim(struct trial *t)
{
    const uint32_t size = t->config->size;

    t->source = aligned_alloc(4096, (size_t)SOURCES * size);
    t->target = aligned_alloc(4096, size);
    t->copy = malloc(size);
    t->cell = aligned_alloc(4096, (size_t)(CELLS * CELL_SIZE + 4095) / 4096 * 4096);
    t->connect_ns = calloc(ROUNDS_KEPT, sizeof(*t->connect_ns));
    t->marker_ns = calloc(ROUNDS_KEPT, sizeof(*t->marker_ns));
    if (t->source == NULL || t->target == NULL || t->copy == NULL || t->cell == NULL ||
        t->connect_ns == NULL || t->marker_ns == NULL) {
        return !bad(t, -ENOMEM, "claiming memory");
    }
    for (int i = 0; i < SOURCES; i++) {
        memset(t->source + (size_t)i * size, i + 1, size);
    }
    memset(t->target, 0, size);
    return !bad(t, rdma_memory_add(t->device, t->source, (size_t)SOURCES * size, false, &t->from),
                "registering memory") &&
           !bad(t, rdma_memory_add(t->device, t->target, size, true, &t->to),
                "registering memory") &&
           !bad(t, rdma_memory_add(t->device, t->cell, CELLS * CELL_SIZE, false, &t->cells),
                "registering memory");
}

static void give_up(struct trial *t)
{
    struct rdma_memory *const all[] = {t->from, t->to, t->cells};

    for (int i = 0; i < 3; i++) {
        if (all[i] != NULL) {
            bad(t, rdma_memory_remove(all[i]), "giving memory back");
        }
    }
    free(t->source);
    free(t->target);
    free(t->copy);
    free(t->cell);
    free(t->connect_ns);
    free(t->marker_ns);
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void sum_up(int64_t *ns, uint32_t count, int64_t *ret_p50, int64_t *ret_max)
{
    if (count > 0) {
        qsort(ns, count, sizeof(*ns), compare);
        *ret_p50 = ns[count / 2];
        *ret_max = ns[count - 1];
    }
}

void rdma_trial_fence(struct rdma_device *device, const struct rdma_trial_config *config,
                      struct rdma_trial *ret_trial)
{
    struct trial t = {
        .config = config, .result = ret_trial, .device = device, .random = config->seed};
    uint32_t made = 0;

    *ret_trial = (struct rdma_trial){0};
    if (claim(&t)) {
        while (made < config->rounds && round_of(&t, made)) {
            made++;
        }
        sum_up(t.connect_ns, made < ROUNDS_KEPT ? made : ROUNDS_KEPT, &ret_trial->connect_ns_p50,
               &ret_trial->connect_ns_max);
        sum_up(t.marker_ns, t.markers, &ret_trial->marker_ns_p50, &ret_trial->marker_ns_max);
    }
    give_up(&t);
}
