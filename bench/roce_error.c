/* roce_error.c: how well a queue pair's own error shows that a path is dead. It writes from one RDMA device to another all the
 * time. Each time that the queue pair gives up, it prints two readings of CLOCK_MONOTONIC in ns: of the last acknowledged
 * write, and of the error. Then it goes on with another queue pair. lab/roce-vm/table runs it and cuts the path. Timeout and
 * retries are those of Foliot's lanes.
 *
 * usage: roce_error DEVICE ADDRESS DEVICE ADDRESS FLOW_LABEL */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "now.h"
#include "platform/rdma/ports.h"
#include "platform/rdma/verbs.h"

#define SIZE     4096u
#define CELLS    32u
#define EVERY_NS 2000000

struct end {
    struct rdma_device *device;
    struct rdma_cq *cq;
    struct rdma_qp *qp;
    struct rdma_memory *memory;
    uint8_t gid[16], *bytes; /* CELLS headers, then the written bytes */
    int gid_index;
    uint32_t mtu;
};

/* Ends the program if r is an error. */
static int need(int r, const char *what)
{
    if (r < 0) {
        fprintf(stderr, "roce_error: %s: %s\n", what, strerror(-r));
        exit(1);
    }
    return r;
}

static void open_end(struct rdma_verbs *verbs, struct end *e, const char *device,
                     const char *address)
{
    struct rdma_port_now port;

    memset(e->gid, 0, 10);
    e->gid[10] = e->gid[11] = 0xff;
    need(inet_pton(AF_INET, address, e->gid + 12) == 1 ? 0 : -EINVAL, address);
    need(rdma_device_open(verbs, device, &e->device), device);
    need(rdma_device_port(e->device, 1, &port), device);
    e->gid_index =
        need(rdma_device_gid_index(e->device, 1, e->gid, RDMA_GID_ROCE_V2), "finding the GID");
    e->mtu = port.active_mtu;
    e->bytes = aligned_alloc(SIZE, 2 * (size_t)SIZE);
    need(e->bytes != NULL ? 0 : -ENOMEM, "claiming memory");
    memset(e->bytes, 0, 2 * (size_t)SIZE);
    need(rdma_memory_add(e->device, e->bytes, 2 * (size_t)SIZE, true, &e->memory),
         "registering memory");
}

static void post_receive(const struct end *e, uint64_t cell)
{
    need(rdma_qp_receive(e->qp, cell, e->bytes + cell * 64, 64, rdma_memory_key(e->memory, false)),
         "posting a receive");
}

static void make_qp(struct end *e)
{
    const struct rdma_qp_config config = {
        .port = 1, .sends = 2 * CELLS, .receives = CELLS, .inline_size = 64, .remote_write = true};

    need(rdma_cq_open(e->device, 4 * CELLS, 0, &e->cq), "making a completion queue");
    need(rdma_qp_open(e->device, e->cq, &config, &e->qp), "making a queue pair");
}

static void connect_to(const struct end *e, const struct end *peer, uint32_t label)
{
    const struct rdma_timeouts timeouts = {
        .timeout = 14, .retries = 6, .rnr_timer = 12, .rnr_retries = 6};
    struct rdma_path path = {.global = true,
                             .own_gid_index = (uint8_t)e->gid_index,
                             .flow_label = label,
                             .mtu = e->mtu,
                             .qp = rdma_qp_number(peer->qp),
                             .psn = 1};

    memcpy(path.gid, peer->gid, sizeof(path.gid));
    need(rdma_qp_connect(e->qp, 1, &path, &timeouts), "connecting a queue pair");
}

static void end_qp(struct end *e)
{
    (void)rdma_qp_close(e->qp);
    (void)rdma_cq_close(e->cq);
}

/* Posts received cells again. */
static void take(const struct end *to)
{
    struct rdma_done done[16];
    const int count = rdma_cq_poll(to->cq, done, 16);

    for (int i = 0; i < count; i++) {
        if (done[i].status == RDMA_OK) {
            post_receive(to, done[i].tag);
        }
    }
}

/* Writes until the queue pair gives up. Returns the error's time; *ret_last: the time of the last acknowledged write. */
static int64_t write_on(const struct end *from, const struct end *to, int64_t *ret_last)
{
    const struct rdma_piece write = {.from = from->bytes + SIZE,
                                     .size = SIZE,
                                     .key = rdma_memory_key(from->memory, false)},
                            header = {.from = from->bytes, .size = 8};
    const struct timespec pause = {.tv_nsec = EVERY_NS};
    uint32_t in_flight = 0;

    *ret_last = now_ns(CLOCK_MONOTONIC);
    for (uint64_t n = 0;;) {
        struct rdma_done done[16];
        if (in_flight < CELLS / 2 &&
            rdma_qp_send(from->qp, n, &write, (uintptr_t)(to->bytes + SIZE),
                         rdma_memory_key(to->memory, true), &header) == 0) {
            in_flight++;
            n++;
        }
        nanosleep(&pause, NULL);
        take(to);
        const int count = need(rdma_cq_poll(from->cq, done, 16), "reading completions");
        for (int i = 0; i < count; i++) {
            if (done[i].status != RDMA_OK) {
                return now_ns(CLOCK_MONOTONIC);
            }
            in_flight--;
            *ret_last = now_ns(CLOCK_MONOTONIC);
        }
    }
}

int main(int argc, char *argv[])
{
    static struct end from, to;
    struct rdma_verbs *verbs;
    char why[256];

    if (argc != 6) {
        fputs("usage: roce_error DEVICE ADDRESS DEVICE ADDRESS FLOW_LABEL\n", stderr);
        return 2;
    }
    if (rdma_verbs_open(&verbs, NULL, why, sizeof(why)) < 0) {
        fprintf(stderr, "roce_error: %s\n", why);
        return 1;
    }
    const uint32_t label = (uint32_t)strtoul(argv[5], NULL, 0);
    open_end(verbs, &from, argv[1], argv[2]);
    open_end(verbs, &to, argv[3], argv[4]);
    for (;;) {
        int64_t last;
        make_qp(&from);
        make_qp(&to);
        for (uint64_t cell = 0; cell < CELLS; cell++) {
            post_receive(&to, cell);
        }
        connect_to(&from, &to, label);
        connect_to(&to, &from, label);
        const int64_t error = write_on(&from, &to, &last);
        printf("%" PRId64 " %" PRId64 "\n", last, error);
        fflush(stdout);
        end_qp(&from);
        end_qp(&to);
    }
}
