/* test_rdma.c: the transport's queue pairs (io_rdma.h) over a fake libibverbs, whose wire is UDP on the loopback. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../rdma/fake.h"
#include "base/limits.h"
#include "transport/descriptor.h"
#include "transport/rdma.h"

#define CELLS     8
#define CELL_SIZE 8192
#define PATIENCE  120 /* seconds, for events that must happen */

static struct rdma *driver;
static struct io_rdma *rdma;
static struct fake_control *fake;
static fake_event_function send_event;
static atomic_int kicks;

/* ---- the outside world ---- */

static atomic_int_fast64_t still_ns; /* the driver's time stands still there; 0: it runs */

static struct mono now(struct io *io)
{
    struct timespec t;
    const int64_t still = io != NULL ? atomic_load(&still_ns) : 0;
    if (still != 0) {
        return (struct mono){.ns = still};
    }
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (struct mono){.ns = (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec};
}

static struct io_stamp stamp(struct io *io)
{
    return (struct io_stamp){.at = {.ns = now(io).ns}, .half_ns = 5};
}

static void some_bytes(struct io *io, void *bytes, size_t size)
{
    (void)io;
    memset(bytes, 0x5b, size);
}

static void kick(struct io *io)
{
    (void)io;
    atomic_fetch_add(&kicks, 1);
}

static struct io io = {.now = now, .stamp = stamp, .random = some_bytes, .kick = kick};

static const char *library(void)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/libfake-verbs-whole.so", getenv("FOLIOT_FAKE_VERBS"));
    return path;
}

static void find(void *handle, const char *name, void *ret)
{
    void *found = dlsym(handle, name);
    assert_non_null(found);
    memcpy(ret, &found, sizeof(found));
}

/* roce1 is beside eth1, as in the kernel's files. */
static const char *sysfs(void)
{
    static char root[64];
    char path[256];

    if (root[0] == 0) {
        static const char *const steps[] = {"class",  "infiniband", "roce1",
                                            "device", "net",        "eth1"};
        strcpy(root, "/tmp/test_rdma_XXXXXX");
        assert_non_null(mkdtemp(root));
        strcpy(path, root);
        for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
            strcat(strcat(path, "/"), steps[i]);
            assert_int_equal(mkdir(path, 0700), 0);
        }
    }
    return root;
}

static int begin(void **state)
{
    const struct rdma_config config = {.library = library(), .sysfs = sysfs(), .io = &io};
    fake_control_function control;
    char why[256];
    (void)state;
    void *handle = dlopen(library(), RTLD_NOW);
    assert_non_null(handle);
    find(handle, "fake_control", &control);
    find(handle, "fake_event", &send_event);
    fake = control();
    *fake = (struct fake_control){0};
    assert_int_equal(rdma_open(&driver, &config, why, sizeof(why)), 0);
    rdma = rdma_io(driver);
    return 0;
}

static int end(void **state)
{
    (void)state;
    rdma_close(driver);
    /* It waits for its threads, but no longer than for a library that hangs: they may get no processor. */
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    while (__atomic_load_n(&fake->open, __ATOMIC_SEQ_CST) > 0 && now(NULL).ns < until) {
    }
    assert_int_equal(fake->open, 0);
    return 0;
}

/* ---- two ends ---- */

struct half {
    int qp;
    struct io_qp_end end;
    struct io_qp_cells cells;
    uint32_t sent, done, got; /* messages posted, completed, received */
};

static struct io_qp_timeouts timeouts = {
    .timeout = 14, .retries = 6, .rnr_timer = 12, .rnr_retries = 7};

static int await_opened(struct half *h)
{
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    int r;

    while ((r = rdma->opened(rdma, h->qp, &h->end, &h->cells)) == -EAGAIN) {
        assert_true(now(NULL).ns < until);
    }
    return r;
}

static bool writes; /* for those that are opened */

static const char *const ib_names[] = {"ib8",  "ib9",  "ib10", "ib11",
                                       "ib12", "ib13", "ib14", "ib15"};
static uint8_t traffic_class, sl; /* likewise */
static bool luck;
static uint16_t offered_pkey;

static int open_half(struct half *h, uint8_t octet, uint32_t path)
{
    const struct io_qp_config config = {
        .nic = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = octet}},
        .device = octet == 1                 ? "eth1"
                  : octet >= 8 && octet < 16 ? ib_names[octet - 8]
                                             : NULL,
        .sends = CELLS,
        .receives = CELLS,
        .cell_size = CELL_SIZE,
        .path = path,
        .luck = luck,
        .traffic_class = traffic_class,
        .sl = sl,
        .pkey = offered_pkey,
        .writes = writes};

    *h = (struct half){.qp = -1};
    assert_int_equal(rdma->open(rdma, &config, &h->qp), 0);
    return await_opened(h);
}

static int connect_half(const struct half *h, const struct half *peer)
{
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    int r = rdma->connect(rdma, h->qp, &peer->end, &timeouts);

    while (r == 0 && (r = rdma->connected(rdma, h->qp)) == -EAGAIN) {
        assert_true(now(NULL).ns < until);
        r = 0;
    }
    return r;
}

static void join_over(struct half h[2], uint8_t a, uint8_t b, uint32_t path)
{
    assert_int_equal(open_half(&h[0], a, path), 0);
    assert_int_equal(open_half(&h[1], b, path), 0);
    assert_int_equal(connect_half(&h[0], &h[1]), 0);
    assert_int_equal(connect_half(&h[1], &h[0]), 0);
}

static void join(struct half h[2])
{
    join_over(h, 1, 2, 7);
}

static void part(struct half h[2])
{
    rdma->close(rdma, h[0].qp, false);
    rdma->close(rdma, h[1].qp, false);
}

static uint32_t size_of(uint32_t number)
{
    return number % 5 == 0 ? CELL_SIZE : number % 7 == 0 ? 0 : number * 37 % 4000;
}

static void fill(uint8_t *cell, uint32_t number)
{
    for (uint32_t i = 0; i < size_of(number); i++) {
        cell[i] = (uint8_t)(number * 31 + i * 7);
    }
}

static void check(const uint8_t *cell, uint32_t number, uint32_t size)
{
    assert_int_equal(size, size_of(number));
    for (uint32_t i = 0; i < size; i++) {
        assert_int_equal(cell[i], (uint8_t)(number * 31 + i * 7));
    }
}

static void post(struct half *h)
{
    const uint32_t cell = h->sent % CELLS;
    fill(h->cells.send + (size_t)cell * CELL_SIZE, h->sent);
    assert_int_equal(rdma->send(rdma, h->qp, cell, size_of(h->sent), NULL), 0);
    h->sent++;
}

/* Polls; all completions must be good. Returns their number. */
static int poll_well(struct half *h)
{
    struct io_qp_done done[4];
    const int count = rdma->poll(rdma, h->qp, done, 4);

    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        assert_int_equal(done[i].status, IO_QP_OK);
        if (!done[i].receive) {
            assert_int_equal(done[i].cell, h->done++ % CELLS);
            continue;
        }
        assert_true(done[i].stamp.half_ns == 5 && done[i].stamp.at.ns > 0);
        assert_int_equal(done[i].cell, h->got % CELLS);
        check(h->cells.receive + (size_t)done[i].cell * CELL_SIZE, h->got++, done[i].bytes);
        assert_int_equal(rdma->receive(rdma, h->qp, done[i].cell), 0);
    }
    return count;
}

/* In both directions, never more than the peer has cells for. */
static void exchange(struct half h[2], uint32_t messages)
{
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    const uint32_t last[2] = {h[0].sent + messages, h[1].sent + messages};

    while (h[0].done < last[0] || h[1].done < last[1] || h[0].got < last[1] || h[1].got < last[0]) {
        assert_true(now(NULL).ns < until);
        for (int i = 0; i < 2; i++) {
            struct half *o = &h[i], *peer = &h[1 - i];
            if (o->sent < last[i] && o->sent < o->done + CELLS && o->sent < peer->got + CELLS) {
                post(o);
            }
            (void)poll_well(o);
        }
    }
}

/* The first completion that isn't good, and the receives that are flushed after it. */
static enum io_qp_status last_words(struct half *h, uint32_t *ret_receives, bool *ret_in_order)
{
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    enum io_qp_status first = IO_QP_OK;
    uint32_t next = h->got;

    *ret_receives = 0;
    *ret_in_order = true;
    while (first == IO_QP_OK || *ret_receives < CELLS) {
        struct io_qp_done done[3];
        const int count = rdma->poll(rdma, h->qp, done, 3);
        assert_true(now(NULL).ns < until);
        for (int i = 0; i < count; i++) {
            first = first == IO_QP_OK ? done[i].status : first;
            if (done[i].receive) {
                assert_int_equal(done[i].status, IO_QP_FLUSHED);
                *ret_in_order = *ret_in_order && done[i].cell == next++ % CELLS;
                ++*ret_receives;
            }
        }
    }
    return first;
}

static void await_event(uint64_t tag)
{
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    struct io_event events[4];
    int count;

    while ((count = rdma->events(rdma, events, 4)) == 0) {
        assert_true(now(NULL).ns < until);
    }
    assert_int_equal(count, 1);
    assert_int_equal(events[0].tag, tag);
    assert_int_equal(events[0].events, IO_IN);
}

static void told(const char *words)
{
    char text[512] = "";
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;

    while (strstr(text, words) == NULL) {
        (void)rdma->trouble(rdma, text, sizeof(text));
        if (now(NULL).ns > until) {
            fail_msg("expected a line with '%s', found '%s'", words, text);
        }
    }
}

/* ---- tests ---- */

static void bytes_come_whole_and_in_order(void **state)
{
    struct half h[2];
    (void)state;
    join(h);
    assert_int_equal(h[0].end.mtu_shift, 12);
    assert_int_equal(h[0].end.lid, 0);
    exchange(h, 400);
    fake->loss = 300; /* 3 % of all packets */
    exchange(h, 100);
    fake->loss = 0;
    part(h);
    join_over(h, 8, 9, 3); /* InfiniBand */
    assert_int_equal(h[0].end.lid >> 2, 8);
    exchange(h, 50);
    part(h);
}

static void what_is_armed_is_told_once(void **state)
{
    const struct io_qp_config config = {
        .nic = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}},
        .sends = CELLS,
        .receives = CELLS,
        .cell_size = CELL_SIZE};
    struct io_event events[4];
    struct half h[2];
    (void)state;
    assert_int_equal(rdma->open(rdma, &config, &h[0].qp), 0);
    assert_int_equal(rdma->arm(rdma, h[0].qp, 11), 0);
    await_event(11); /* it is ready */
    assert_true(atomic_load(&kicks) > 0);
    assert_int_equal(rdma->opened(rdma, h[0].qp, &h[0].end, &h[0].cells), 0);
    rdma->close(rdma, h[0].qp, false);
    join(h);
    assert_int_equal(rdma->arm(rdma, h[1].qp, 12), 0);
    assert_int_equal(rdma->events(rdma, events, 4), 0);
    post(&h[0]);
    await_event(12);
    while (poll_well(&h[1]) == 0) {
    }
    post(&h[0]);
    while (h[0].done < 2) { /* the peer's NIC has it, so it arrives */
        (void)poll_well(&h[0]);
    }
    assert_int_equal(rdma->arm(rdma, h[1].qp, 13), 0);
    await_event(13);
    assert_int_equal(rdma->arm(rdma, h[1].qp, 14), 0); /* still there */
    await_event(14);
    assert_int_equal(poll_well(&h[1]), 1);
    assert_int_equal(rdma->arm(rdma, h[1].qp, 15), 0);
    part(h);
    assert_int_equal(rdma->events(rdma, events, 4), 0);
}

/* Tag 0 is that of the first set's first lane. A queue pair that was never armed removes no other's event when it is closed. */
static void an_event_outlives_others_that_were_never_armed(void **state)
{
    struct half h[2], other;
    struct io_event events[4];

    (void)state;
    join(h);
    assert_int_equal(rdma->arm(rdma, h[1].qp, 0), 0);
    assert_int_equal(rdma->events(rdma, events, 4), 0);
    const int armed = atomic_load(&kicks);
    post(&h[0]);
    while (atomic_load(&kicks) == armed) { /* an event is waiting to be taken */
    }
    assert_int_equal(open_half(&other, 1, 9), 0);
    rdma->close(rdma, other.qp, false);
    assert_int_equal(rdma->events(rdma, events, 4), 1);
    assert_int_equal(events[0].tag, 0);
    part(h);
}

/* Paths whose source port ends in 01 are dead: queue pairs that send there get an error, and end. */
static void a_dead_path_ends_its_queue_pair(void **state)
{
    struct half dead[2], well[2];
    uint32_t receives;
    bool in_order;
    (void)state;
    join_over(dead, 1, 2, 1);
    join_over(well, 1, 2, 2);
    exchange(dead, 20);
    exchange(well, 20);
    fake->black_hole = 1 << 1;
    post(&dead[0]);
    post(&dead[0]);
    assert_int_equal(rdma->arm(rdma, dead[0].qp, 21), 0);
    exchange(well, 20);
    await_event(21);
    assert_int_equal(last_words(&dead[0], &receives, &in_order), IO_QP_RETRIES);
    assert_true(in_order);
    assert_int_equal(receives, CELLS);
    fake->black_hole = 0;
    part(dead);
    exchange(well, 20);
    part(well);
}

static void each_error_is_told_by_its_kind(void **state)
{
    static const struct {
        int theirs;
        enum io_qp_status ours;
    } all[] = {{IBV_WC_RETRY_EXC_ERR, IO_QP_RETRIES},   {IBV_WC_RNR_RETRY_EXC_ERR, IO_QP_RNR},
               {IBV_WC_REM_INV_REQ_ERR, IO_QP_REFUSED}, {IBV_WC_REM_ACCESS_ERR, IO_QP_REFUSED},
               {IBV_WC_LOC_PROT_ERR, IO_QP_BROKEN},     {IBV_WC_FATAL_ERR, IO_QP_BROKEN},
               {IBV_WC_WR_FLUSH_ERR, IO_QP_FLUSHED},    {99, IO_QP_BROKEN}};
    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct half h[2];
        struct io_qp_done done;
        int r;
        join(h);
        fake->status = all[i].theirs;
        post(&h[0]);
        while ((r = rdma->poll(rdma, h[1].qp, &done, 1)) == 0) {
        }
        assert_int_equal(r, 1); /* garbage except for its tag, which is ours */
        assert_true(done.receive && done.cell == 0 && done.bytes == 0);
        assert_int_equal(done.status, all[i].ours);
        part(h);
    }
}

/* A port that can't carry a lane gets none, with the reason. */
static void what_cannot_be_is_refused_in_words(void **state)
{
    struct half h[2];
    (void)state;
    assert_int_equal(open_half(&h[0], 77, 0), -ENODEV);
    rdma->close(rdma, h[0].qp, false);
    assert_int_equal(open_half(&h[0], 3, 0), -ENODEV);
    rdma->close(rdma, h[0].qp, false);
    told("old3/1 has its address as a GID of RoCE v1 only");
    assert_int_equal(open_half(&h[0], 1, 0), 0);
    assert_int_equal(open_half(&h[1], 9, 0), 0);
    assert_int_equal(connect_half(&h[0], &h[1]), -EINVAL);
    told("roce1 is RoCE, the peer's port is InfiniBand");
    assert_int_equal(connect_half(&h[1], &h[0]), -EINVAL);
    part(h);
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
    assert_int_equal(
        setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){.rlim_cur = 65536, .rlim_max = limit.rlim_max}),
        0);
    fake->memlock = 65536;
    assert_int_equal(open_half(&h[0], 1, 0), -ENOMEM);
    rdma->close(rdma, h[0].qp, false);
    told("roce1 can't register memory: expected a `ulimit -l` of unlimited, found 64 KiB");
    fake->memlock = 0;
    limit.rlim_cur = limit.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    fake->no_gids = true;
    assert_int_equal(open_half(&h[0], 1, 0), -ENODEV);
    rdma->close(rdma, h[0].qp, false);
    told("roce1 has no GID with the address of eth1");
    fake->no_gids = false;
    strcpy(fake->refuse, "create_qp"); /* no number is left */
    fake->refuse_nth = 1;
    fake->refuse_errno = ENOMEM;
    assert_int_equal(open_half(&h[0], 4, 0), -ENOMEM);
    rdma->close(rdma, h[0].qp, false);
    told(limit.rlim_cur == RLIM_INFINITY ? "roce4 has no room for another queue pair or its memory"
                                         : "roce4 can't register memory");
    strcpy(fake->refuse, "create_cq"); /* and any other error */
    fake->refuse_nth = 1;
    fake->refuse_errno = EPERM;
    assert_int_equal(open_half(&h[0], 1, 0), -EPERM);
    rdma->close(rdma, h[0].qp, false);
    told("roce1 makes no queue pair: Operation not permitted");
    fake->refuse[0] = 0;
    assert_int_equal(open_half(&h[0], 1, 0), 0);
    assert_int_equal(open_half(&h[1], 2, 0), 0);
    struct half strange = h[1];
    strange.end.mtu_shift = 40; /* from the network */
    assert_int_equal(connect_half(&h[0], &strange), -EINVAL);
    part(h);
    assert_int_equal(open_half(&h[0], 8, 0), 0);
    assert_int_equal(open_half(&h[1], 9, 0), 0);
    strange = h[1];
    strange.end.lid = 0xc001; /* a multicast group */
    assert_int_equal(connect_half(&h[0], &strange), -EINVAL);
    part(h);
}

/* Each lane between two ports gets a way of its own, in both directions, as long as one is free. */
static void each_lid_of_a_port_is_a_way(void **state)
{
    struct half h[4][2], fifth[2];
    uint32_t there = 0, back = 0;
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        join_over(h[i], 8, 9, i * 0x10400 + 7); /* the same by chance */
        there |= 1u << (h[i][1].end.lid & 3);
        back |= 1u << (h[i][0].end.lid & 3);
        assert_true(h[i][0].end.lid >> 2 == 8 && h[i][1].end.lid >> 2 == 9);
    }
    assert_int_equal(there, 0xf);
    assert_int_equal(back, 0xf);
    for (uint32_t i = 0; i < 4; i++) { /* each NIC accepts packets from the LID that it was given */
        exchange(h[i], 20);
    }
    const uint16_t lid = h[1][0].end.lid;
    part(h[1]);
    assert_int_equal(open_half(&fifth[0], 8, 7), 0); /* a way that was given back is used again */
    assert_int_equal(fifth[0].end.lid, lid);
    luck = true; /* or at random */
    assert_int_equal(open_half(&fifth[1], 8, lid + 1u), 0);
    luck = false;
    assert_int_equal(fifth[1].end.lid & 3, (lid + 1) & 3);
    part(fifth);
    part(h[0]);
    part(h[2]);
    part(h[3]);
}

/* This end's packets are marked as configured, or else as the peer's port asks. */
static void packets_are_marked_as_wanted(void **state)
{
    struct half h[2];
    (void)state;
    traffic_class = 106;
    sl = 1 + 3;
    join(h);
    assert_int_equal(fake->traffic_class, 106);
    assert_int_equal(fake->sl, 3);
    exchange(h, 10);
    part(h);
    join_over(h, 8, 9, 1);
    assert_int_equal(fake->sl, 3);
    assert_int_equal(h[0].end.sl, 3);
    part(h);
    sl = 0; /* the other end's port has one */
    traffic_class = 0;
    assert_int_equal(open_half(&h[0], 8, 0), 0);
    assert_int_equal(open_half(&h[1], 9, 0), 0);
    assert_int_equal(h[0].end.sl, 0);
    h[1].end.sl = 5;
    assert_int_equal(connect_half(&h[0], &h[1]), 0);
    assert_int_equal(fake->sl, 5);
    part(h);
}

static void reopen(uint16_t partition, uint16_t pkey_nth)
{
    const struct rdma_config config = {.library = library(),
                                       .sysfs = sysfs(),
                                       .partition = partition,
                                       .pkey_nth = pkey_nth,
                                       .io = &io};
    char why[256];

    rdma_close(driver);
    assert_int_equal(rdma_open(&driver, &config, why, sizeof(why)), 0);
    rdma = rdma_io(driver);
}

/* P_Keys are compared by value. Two ends that can't hear each other get the reason before they try. */
static void partitions_at_odds_are_told(void **state)
{
    struct half h[2], peer;
    (void)state;
    assert_int_equal(open_half(&h[0], 10, 0), 0); /* the full member, not the default partition */
    assert_int_equal(h[0].end.pkey, 0x8005);
    assert_int_equal(open_half(&h[1], 11, 0), 0); /* a limited member of both: the first */
    assert_int_equal(h[1].end.pkey, 0x7fff);
    assert_int_equal(connect_half(&h[0], &h[1]), -EINVAL);
    told("ib10/1 has the P_Key 0x8005, the peer's port 0x7fff: expected the same partition");
    part(h);
    reopen(5, 0);
    join_over(h, 10, 11, 3); /* a full member and a limited one hear each other */
    assert_true(h[0].end.pkey == 0x8005 && h[1].end.pkey == 0x0005);
    exchange(h, 10);
    part(h);
    assert_int_equal(open_half(&h[0], 11, 0), 0);
    peer = h[0];
    assert_int_equal(open_half(&h[1], 11, 1), 0);
    assert_int_equal(connect_half(&h[1], &peer), -EINVAL); /* two limited ones don't */
    told("ib11/1 has the P_Key 0x0005, the peer's port 0x0005");
    part(h);
    assert_int_equal(open_half(&h[0], 12, 0), -ENODEV);
    rdma->close(rdma, h[0].qp, false);
    told("ib12/1 is no member of partition 0x0005 (FOLIOT_IB_PKEY)");
    join(h); /* RoCE has no choice */
    exchange(h, 10);
    part(h);
    reopen(0, 1 + 1); /* NCCL_IB_PKEY=1 */
    assert_int_equal(open_half(&h[0], 12, 0), 0);
    assert_int_equal(h[0].end.pkey, 0x8006);
    rdma->close(rdma, h[0].qp, false);
    assert_int_equal(open_half(&h[0], 8, 0), -ENODEV);
    rdma->close(rdma, h[0].qp, false);
    told("ib8/1 has no P_Key at index 1 (NCCL_IB_PKEY)");
    reopen(0, 0);
    assert_int_equal(open_half(&h[0], 10, 0), 0);
    assert_int_equal(open_half(&h[1], 11, 0), 0);
    peer = h[0];
    peer.end.pkey = 0; /* an older release doesn't send it: nothing arrives */
    assert_int_equal(connect_half(&h[1], &peer), 0);
    part(h);
    assert_int_equal(open_half(&h[0], 8, 0), 0);
    offered_pkey =
        h[0].end.pkey; /* the answering end uses the offered partition, also as a limited member */
    assert_int_equal(open_half(&h[1], 10, 1), 0);
    assert_true(h[0].end.pkey == 0xffff && h[1].end.pkey == 0x7fff);
    assert_int_equal(connect_half(&h[0], &h[1]), 0);
    assert_int_equal(connect_half(&h[1], &h[0]), 0);
    exchange(h, 10);
    part(h);
    offered_pkey = 0x8123; /* it is no member of that */
    assert_int_equal(open_half(&h[1], 10, 1), 0);
    assert_int_equal(h[1].end.pkey, 0x8005);
    rdma->close(rdma, h[1].qp, false);
    offered_pkey = 0;
    strcpy(fake->refuse, "query_pkey"); /* none can be read: the first one, without a check */
    fake->refuse_nth = 1;
    fake->refuse_errno = EIO;
    join_over(h, 8, 9, 3);
    assert_true(h[0].end.pkey == 0 && h[1].end.pkey == 0xffff);
    exchange(h, 10);
    fake->refuse[0] = 0;
    part(h);
}

/* The entries before the default partition don't matter, whether they are empty or another partition's. */
static void a_p_key_is_good_at_any_index(void **state)
{
    struct half h[2];
    (void)state;
    join_over(h, 13, 14, 3);
    assert_true(h[0].end.pkey == 0xffff && h[1].end.pkey == 0xffff);
    assert_int_equal(fake->pkey_index, 1);
    exchange(h, 10);
    part(h);
    join_over(h, 13, 8, 3); /* at index 1, and at 0 */
    exchange(h, 10);
    part(h);
    join_over(h, 5, 1, 3); /* RoCE: also there NICs drop packets of another partition */
    exchange(h, 10);
    part(h);
}

/* Any call refuses with any error: the queue pair isn't made, the reason is reported, and nothing is left. */
static void a_refusal_is_told_and_leaves_nothing(void **state)
{
    static const char *const functions[] = {"reg_mr",    "create_cq",  "create_qp",
                                            "modify_qp", "query_port", "query_gid_table",
                                            "post_recv"};
    (void)state;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        int r = -1, refused = 0;
        for (int nth = 1; r != 0 && nth < 40; nth += nth < 4 ? 1 : 7) {
            struct half h;
            strcpy(fake->refuse, functions[i]);
            fake->refuse_nth = nth;
            fake->refuse_errno = EPERM;
            r = open_half(&h, 1, 0);
            fake->refuse[0] = 0;
            assert_true(r <= 0);
            refused += r < 0;
            rdma->close(rdma, h.qp, false);
        }
        assert_int_equal(r, 0);
        assert_true(refused > 0 ||
                    strcmp(functions[i], "modify_qp") == 0); /* one that retires may use it */
    }
}

/* Packets are as large as the smaller port allows, in both directions. Each end reports once what its administrator can do. */
static void ends_of_two_mtus_agree(void **state)
{
    struct half h[2];
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    (void)state;
    strcpy(fake->small, "roce4");
    for (h[1].end.mtu_shift = 0; h[1].end.mtu_shift != 10;) { /* until the port is seen as it is */
        join_over(h, 1, 4, 7);
        exchange(h, 10);
        part(h);
        assert_true(now(NULL).ns < until);
    }
    assert_int_equal(h[0].end.mtu_shift, 12);
    told(
        "roce1/1 has an RDMA MTU of 4096, a peer's port one of 1024, and packets between them have "
        "1024 bytes");
    told("roce4/1 has an RDMA MTU of 1024, a peer's port one of 4096");
    join_over(h, 4, 1, 7);
    exchange(h, 40);
    part(h);
    assert_false(rdma->trouble(rdma, (char[512]){0}, 512));
    fake->small[0] = 0;
}

static void an_index_that_moves_does_no_harm(void **state)
{
    struct half h[2];
    (void)state;
    assert_int_equal(open_half(&h[0], 1, 0), 0);
    assert_int_equal(open_half(&h[1], 2, 0), 0);
    fake->gid_shift = 3; /* between the looks */
    assert_int_equal(connect_half(&h[0], &h[1]), 0);
    assert_int_equal(connect_half(&h[1], &h[0]), 0);
    exchange(h, 10);
    part(h);
    join(h);
    exchange(h, 10);
    part(h);
}

static void a_device_may_go_and_come_back(void **state)
{
    struct half h[2], other[2];
    struct io_qp_done done;
    int r;
    (void)state;
    join(h);
    exchange(h, 10);
    assert_int_equal(rdma->arm(rdma, h[0].qp, 31), 0);
    strcpy(fake->gone, "roce1");
    send_event("roce1", IBV_EVENT_DEVICE_FATAL, 1, 0);
    await_event(31);
    while ((r = rdma->poll(rdma, h[0].qp, &done, 1)) == 0) {
    }
    assert_int_equal(r, -ENODEV);
    told("RDMA device roce1 is gone");
    assert_int_equal(open_half(&other[0], 1, 0), -ENODEV);
    rdma->close(rdma, other[0].qp, false);
    part(h);
    join_over(other, 2, 4, 1); /* the others stay */
    exchange(other, 10);
    part(other);
    fake->gone[0] = 0;
    told("RDMA device roce1 is back");
    join(h);
    exchange(h, 10);
    part(h);
}

/* An error of the queue pair, or of its completion queue, which gives no more events then. */
static void a_fatal_event_ends_one_queue_pair(void **state)
{
    static const int events[] = {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR,
                                 IBV_EVENT_CQ_ERR};
    struct half h[2];
    struct io_qp_done done;
    int r;
    (void)state;
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        join(h);
        assert_int_equal(rdma->arm(rdma, h[1].qp, 51), 0);
        send_event(NULL, events[i], 0, h[1].end.qp);
        await_event(51);
        while ((r = rdma->poll(rdma, h[1].qp, &done, 1)) == 0) {
        }
        assert_int_equal(r, -EIO);
        assert_int_equal(rdma->poll(rdma, h[0].qp, &done, 1), 0);
        part(h);
    }
}

static const struct io_address own_nic = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}};

/* A device's report about a port concerns the NIC beside it, and no other. */
static void a_port_that_goes_down_is_told(void **state)
{
    const struct io_address other = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2}};
    struct half h[2];
    uint32_t downs = 9;
    (void)state;
    assert_int_equal(rdma->carrier(rdma, &own_nic, "eth1", &downs), -ENODEV);
    join(h);
    assert_int_equal(rdma->carrier(rdma, &own_nic, "eth1", &downs), 1);
    assert_int_equal(downs, 0);
    for (uint32_t i = 1; i <= 2; i++) {
        send_event("roce1", IBV_EVENT_PORT_ERR, 1, 0);
        await_event(IO_TAG_LINKS);
        assert_int_equal(rdma->carrier(rdma, &own_nic, "eth1", &downs), 0);
        assert_int_equal(downs, i);
        assert_int_equal(rdma->carrier(rdma, &other, "", &downs), 1);
        assert_int_equal(downs, 0);
        if (i == 1) {
            send_event("roce1", IBV_EVENT_PORT_ACTIVE, 1, 0);
            await_event(IO_TAG_LINKS);
            assert_int_equal(rdma->carrier(rdma, &own_nic, "eth1", &downs), 1);
        }
    }
    part(h);
    strcpy(fake->gone,
           "roce1"); /* no event of a removed device reports that its port is up again */
    send_event("roce1", IBV_EVENT_DEVICE_FATAL, 1, 0);
    await_event(IO_TAG_LINKS);
    assert_int_equal(rdma->carrier(rdma, &own_nic, "eth1", &downs), 1);
    fake->gone[0] = 0;
    told("RDMA device roce1 is back");
}

/* Live queue pairs go on. The next one reads its port's present state. */
static void await_carrier(bool up)
{
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    uint32_t downs;

    while (rdma->carrier(rdma, &own_nic, "eth1", &downs) != up) {
        assert_true(now(NULL).ns < until);
    }
}

/* The port goes down after a new queue pair has read that it is up: first with a known NIC, then with a new one. */
static void a_port_event_goes_before_an_older_reading(void **state)
{
    struct half h[2], late;
    uint32_t downs = 9;
    (void)state;
    join(h);
    for (int i = 0; i < 2; i++) {
        const struct io_qp_config config = {.nic = own_nic,
                                            .device = i == 0 ? "eth1" : "eth1.7",
                                            .sends = CELLS,
                                            .receives = CELLS,
                                            .cell_size = CELL_SIZE};
        late = (struct half){.qp = -1};
        fake->hung = 0;
        strcpy(fake->hang, "query_gid_table"); /* after the port's state */
        assert_int_equal(rdma->open(rdma, &config, &late.qp), 0);
        const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
        while (__atomic_load_n(&fake->hung, __ATOMIC_SEQ_CST) == 0) {
            assert_true(now(NULL).ns < until);
        }
        send_event("roce1", IBV_EVENT_PORT_ERR, 1, 0);
        await_carrier(false);
        fake->hang[0] = 0;
        assert_int_equal(await_opened(&late), 0);
        assert_int_equal(rdma->carrier(rdma, &own_nic, config.device, &downs), 0);
        rdma->close(rdma, late.qp, false);
        await_event(IO_TAG_LINKS);

        assert_int_equal(open_half(&late, 1, 7), 0); /* a newer reading */
        assert_int_equal(rdma->carrier(rdma, &own_nic, "eth1", &downs), 1);
        rdma->close(rdma, late.qp, false);
        await_event(IO_TAG_LINKS);
    }
    part(h);
}

static void addresses_that_change_end_nothing(void **state)
{
    static const int events[] = {IBV_EVENT_PKEY_CHANGE, IBV_EVENT_GID_CHANGE, IBV_EVENT_LID_CHANGE,
                                 IBV_EVENT_SM_CHANGE, IBV_EVENT_CLIENT_REREGISTER};
    struct half h[2];
    uint32_t downs;
    (void)state;
    join(h);
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        send_event(NULL, events[i], 1, 0);
        exchange(h, 10);
    }
    send_event("roce1", IBV_EVENT_PORT_ERR, 1, 0); /* events come in order: those were handled */
    await_event(IO_TAG_LINKS);
    assert_int_equal(rdma->carrier(rdma, &own_nic, "eth1", &downs), 0);
    exchange(h, 10);
    part(h);
    fake->gid_shift = 3;
    join(h); /* its port is read, and is up */
    assert_int_equal(rdma->carrier(rdma, &own_nic, "eth1", &downs), 1);
    exchange(h, 10);
    part(h);
}

static void what_was_posted_is_still_sent(void **state)
{
    const struct io_qp_timeouts before = timeouts;
    struct half h[2];
    (void)state;
    timeouts.timeout = 18; /* it hasn't given up when the wait is over, although that takes 5 s */
    join(h);
    timeouts = before;
    fake->black_hole = 0xf; /* for a while: nothing is acknowledged */
    for (int i = 0; i < CELLS; i++) {
        post(&h[0]);
    }
    rdma->close(rdma, h[0].qp, true);
    fake->black_hole = 0;
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    while (h[1].got < CELLS) {
        assert_true(now(NULL).ns < until);
        (void)poll_well(&h[1]);
    }
    rdma->close(rdma, h[1].qp, false);
}

/* No thread waits for it: neither the one that closes it, nor the next one. */
static void one_may_be_closed_at_any_time(void **state)
{
    struct half h[2];
    (void)state;
    for (int i = 0; i < 6; i++) {
        assert_int_equal(open_half(&h[0], 1, 0), 0);
        assert_int_equal(open_half(&h[1], 2, 0), 0);
        fake->connect_ms = 20;
        assert_int_equal(rdma->connect(rdma, h[0].qp, &h[1].end, &timeouts), 0);
        struct timespec some = {.tv_nsec = i * 6000000L};
        nanosleep(&some, NULL);
        part(h);
        fake->connect_ms = 0;
    }
    join(h);
    exchange(h, 10);
    part(h);
}

/* The library doesn't return from a call of the driver: the thread that called goes on. */
static void nobody_waits_for_the_library(void **state)
{
    static const char *const functions[] = {"query_port", "destroy_qp", "open_device"};
    struct half h[2], other;
    struct io_event events[4];
    struct io_qp_done done;
    char text[256];
    (void)state;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        join(h);
        fake->hung = 0;
        strcpy(fake->hang, functions[i]);
        if (i == 2) { /* it is looked for */
            strcpy(fake->gone, "roce1");
            send_event("roce1", IBV_EVENT_DEVICE_FATAL, 1, 0);
            told("RDMA device roce1 is gone");
            part(h);
            fake->gone[0] = 0;
        }
        const struct io_qp_config config = {
            .nic = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 2}},
            .sends = CELLS,
            .receives = CELLS,
            .cell_size = CELL_SIZE};
        assert_int_equal(rdma->open(rdma, &config, &other.qp), 0);
        if (i == 1) {
            await_opened(&other);
            rdma->close(rdma, other.qp, false);
            assert_int_equal(rdma->open(rdma, &config, &other.qp), 0);
        }
        const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
        while (__atomic_load_n(&fake->hung, __ATOMIC_SEQ_CST) == 0) {
            assert_true(now(NULL).ns < until);
        }
        if (i < 2) {
            exchange(h, 20);
            assert_int_equal(rdma->arm(rdma, h[0].qp, 41), 0);
            part(h);
        }
        (void)rdma->arm(rdma, other.qp, 42);
        (void)rdma->opened(rdma, other.qp, &other.end, &other.cells);
        (void)rdma->poll(rdma, other.qp, &done, 1);
        (void)rdma->events(rdma, events, 4);
        (void)rdma->trouble(rdma, text, sizeof(text));
        rdma->close(rdma, other.qp, false);
        fake->hang[0] = 0;
        if (i == 2) {
            told("RDMA device roce1 is back");
        }
    }
}

static void *add_memory(void *unused)
{
    static uint8_t bytes[8192];
    struct io_rdma_memory *memory;

    const struct io_rdma_range range = {.data = bytes, .size = sizeof(bytes)};

    assert_int_equal(rdma->memory_add(rdma, &range, &memory), 0);
    rdma->memory_remove(rdma, memory);
    return unused;
}

/* A removed device is closed, and found again, while another device doesn't return from registering memory. */
static void a_registration_that_hangs_stops_nobody(void **state)
{
    pthread_t thread;
    struct half h[2];
    (void)state;
    fake->hung = 0;
    strcpy(fake->hang, "reg_mr");
    assert_int_equal(pthread_create(&thread, NULL, add_memory, NULL), 0);
    while (__atomic_load_n(&fake->hung, __ATOMIC_SEQ_CST) == 0) {
    }
    strcpy(fake->gone, "roce2");
    send_event("roce2", IBV_EVENT_DEVICE_FATAL, 1, 0);
    told("RDMA device roce2 is gone");
    fake->gone[0] = 0;
    told("RDMA device roce2 is back");
    fake->hang[0] = 0;
    pthread_join(thread, NULL);
    join(h);
    exchange(h, 10);
    part(h);
}

/* True if all receives were flushed, including the last one. */
static bool is_silent(const struct half *h)
{
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    struct io_qp_done done;
    int flushed = 0;

    while (flushed < CELLS && now(NULL).ns < until) {
        const int count = rdma->poll(rdma, h->qp, &done, 1);
        flushed += count == 1 && done.receive && done.status == IO_QP_FLUSHED;
    }
    return flushed == CELLS;
}

/* The driver of one device doesn't return from moving a queue pair into the error state, nor from destroying one. The thread that
 * asked goes on. Other devices' queue pairs become silent as always, and so does this one once the driver returns. */
static void a_queue_pair_that_hangs_holds_nobody(void **state)
{
    static const char *const functions[] = {"silence", "destroy_qp"};
    struct half h[2], other[2];
    (void)state;
    writes = true;
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        join_over(h, 1, 2, 7);
        join_over(other, 4, 2, 7);
        exchange(h, 10);
        fake->hung = 0;
        fake->hang_most = 1;
        strcpy(fake->hang, functions[i]);
        alarm(PATIENCE); /* of the thread that waits */
        assert_int_equal(i == 0 ? rdma->silence(rdma, h[0].qp) : rdma->fence(rdma, h[0].qp, false),
                         i == 0 ? 0 : -EAGAIN);
        while (__atomic_load_n(&fake->hung, __ATOMIC_SEQ_CST) == 0) {
        }
        assert_int_equal(rdma->fence(rdma, h[0].qp, false), -EAGAIN);
        assert_int_equal(rdma->fence(rdma, h[0].qp, true), -EAGAIN);
        if (i == 0) { /* it is reported once */
            told("roce1 doesn't end a queue pair");
        }
        exchange(other, 10);
        assert_int_equal(rdma->silence(rdma, other[0].qp), 0);
        assert_true(is_silent(&other[0]));
        assert_int_equal(rdma->fence(rdma, other[0].qp, true), 0);
        alarm(0);
        fake->hang[0] = 0;
        fake->hang_most = 0;
        while (rdma->fence(rdma, h[0].qp, true) == -EAGAIN) {
        }
        assert_int_equal(rdma->fence(rdma, h[0].qp, true), 0);
        part(h);
        part(other);
    }
    writes = false;
}

/* It is given up while its driver still connects it, which takes a while if the neighbour isn't known: it is destroyed later. */
static void one_that_connects_is_silent_later(void **state)
{
    struct half h[2];
    (void)state;
    writes = true;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_half(&h[0], 1, 0), 0);
        assert_int_equal(open_half(&h[1], 2, 0), 0);
        fake->connect_ms = 100;
        fake->calls = 0;
        assert_int_equal(rdma->connect(rdma, h[0].qp, &h[1].end, &timeouts), 0);
        while (__atomic_load_n(&fake->calls, __ATOMIC_SEQ_CST) < 2) { /* the port, its GIDs */
        }
        assert_int_equal(rdma->silence(rdma, h[0].qp), 0);
        if (i == 1) { /* closed before any thread began with it */
            part(h);
            continue;
        }
        while (rdma->fence(rdma, h[0].qp, false) == -EAGAIN) {
        }
        assert_int_equal(rdma->fence(rdma, h[0].qp, true), 0);
        part(h);
    }
    fake->connect_ms = 0;
    writes = false;
}

/* If a child could get the pages that a NIC writes, no NIC may write; the reason is reported once. */
static void nothing_is_written_where_children_take_pages(void **state)
{
    struct rdma_config config = {
        .library = library(), .sysfs = "/nowhere", .io = &io, .direct = true, .release = "5.4.0-1"};
    struct rdma *other;
    char why[256], text[256] = "";
    (void)state;
    assert_int_equal(rdma_open(&other, &config, why, sizeof(why)), 0);
    assert_null(rdma_io(other)->memory_add);
    assert_true(rdma_io(other)->trouble(rdma_io(other), text, sizeof(text)));
    assert_non_null(strstr(text, "expected Linux 5.12 or newer"));
    assert_false(rdma_io(other)->trouble(rdma_io(other), text, sizeof(text)));
    rdma_close(other);
    config.release = "5.12.0";
    assert_int_equal(rdma_open(&other, &config, why, sizeof(why)), 0);
    assert_non_null(rdma_io(other)->memory_add);
    assert_false(rdma_io(other)->trouble(rdma_io(other), text, sizeof(text)));
    rdma_close(other);
}

/* Sends one cell with a write before it, and waits until both ends have it. */
static void write_one(struct half h[2], const struct io_rdma_write *write)
{
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    const uint32_t wanted = h[1].got + 1;

    fill(h[0].cells.send + (size_t)(h[0].sent % CELLS) * CELL_SIZE, h[0].sent);
    assert_int_equal(rdma->send(rdma, h[0].qp, h[0].sent % CELLS, size_of(h[0].sent), write), 0);
    h[0].sent++;
    while (h[0].done < h[0].sent || h[1].got < wanted) {
        assert_true(now(NULL).ns < until);
        (void)poll_well(&h[0]);
        (void)poll_well(&h[1]);
    }
}

static void await_key(const uint32_t *key, bool wanted)
{
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;

    while ((__atomic_load_n(key, __ATOMIC_RELAXED) != 0) != wanted) {
        assert_true(now(NULL).ns < until);
    }
}

/* A device that is back has lost all memory: it is registered again, also later additions, and has other keys. */
static void a_device_that_is_back_knows_memory_again(void **state)
{
    const struct rdma_config config = {
        .library = library(), .sysfs = sysfs(), .direct = true, .release = "6.1.0", .io = &io};
    static uint8_t bytes[4][8192] __attribute__((aligned(4096)));
    struct io_rdma_memory *memory[4];
    struct half h[2];
    char why[256];
    (void)state;
    rdma_close(driver);
    assert_int_equal(rdma_open(&driver, &config, why, sizeof(why)), 0);
    rdma = rdma_io(driver);
    for (int i = 0; i < 3; i++) {
        const struct io_rdma_range range = {.data = bytes[i], .size = sizeof(bytes[i])};
        assert_int_equal(rdma->memory_add(rdma, &range, &memory[i]), 0);
    }
    const uint32_t old = memory[0]->remote[0];
    assert_true(old != 0);
    strcpy(fake->gone, "roce1");
    send_event("roce1", IBV_EVENT_DEVICE_FATAL, 1, 0);
    await_key(&memory[0]->remote[0], false);
    await_key(&memory[2]->remote[0], false);
    const struct io_rdma_range range = {.data = bytes[3], .size = sizeof(bytes[3])};
    assert_int_equal(rdma->memory_add(rdma, &range, &memory[3]), 0);
    assert_int_equal(memory[3]->remote[0], 0);
    fake->hung = 0;
    strcpy(fake->hang, "reg_mr"); /* one whose registration is under way may be given back */
    fake->gone[0] = 0;
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    while (__atomic_load_n(&fake->hung, __ATOMIC_SEQ_CST) == 0) {
        assert_true(now(NULL).ns < until);
    }
    rdma->memory_remove(rdma, memory[3]);
    rdma->memory_remove(rdma, memory[2]);
    fake->hang[0] = 0;
    await_key(&memory[0]->remote[0], true);
    await_key(&memory[1]->remote[0], true);
    assert_int_not_equal(memory[0]->remote[0], old);

    writes = true;
    join_over(h, 2, 1, 7);
    writes = false;
    memset(bytes[1], 0x3c, sizeof(bytes[1]));
    const struct io_rdma_write write = {.from = bytes[1],
                                        .size = sizeof(bytes[1]),
                                        .key = memory[1]->local[1],
                                        .to = (uintptr_t)bytes[0],
                                        .remote_key = memory[0]->remote[0]};
    write_one(h, &write);
    assert_memory_equal(bytes[0], bytes[1], sizeof(bytes[0]));
    part(h);
    rdma->memory_remove(rdma, memory[0]);
    rdma->memory_remove(rdma, memory[1]);
}

/* Waits until the worker has nothing else to do. */
static void let_it_work(void)
{
    for (int i = 0; i < 20; i++) {
        struct half h;
        assert_int_equal(open_half(&h, 2, 7), 0);
        rdma->close(rdma, h.qp, false);
    }
}

/* roce1 is removed and comes back, while the driver's time advances by a minute. */
static void lose_and_find(const uint32_t *key)
{
    strcpy(fake->gone, "roce1");
    send_event("roce1", IBV_EVENT_DEVICE_FATAL, 1, 0);
    await_key(key, false);
    fake->gone[0] = 0;
    atomic_fetch_add(&still_ns, 60 * NS_PER_S);
    struct half h;
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    while (open_half(&h, 1, 7) != 0) {
        rdma->close(rdma, h.qp, false);
        assert_true(now(NULL).ns < until);
    }
    rdma->close(rdma, h.qp, false);
}

static void offers_go_before_memory(void **state)
{
    const struct rdma_config config = {
        .library = library(), .sysfs = sysfs(), .direct = true, .release = "6.1.0", .io = &io};
    static uint8_t bytes[3][8192] __attribute__((aligned(4096)));
    struct io_rdma_memory *memory[3];
    struct half h[2];
    char why[256];
    (void)state;
    rdma_close(driver);
    assert_int_equal(rdma_open(&driver, &config, why, sizeof(why)), 0);
    rdma = rdma_io(driver);
    for (int i = 0; i < 3; i++) {
        const struct io_rdma_range range = {.data = bytes[i], .size = sizeof(bytes[i])};
        assert_int_equal(rdma->memory_add(rdma, &range, &memory[i]), 0);
    }
    atomic_store(&still_ns, now(NULL).ns);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(open_half(&h[0], 2, 7), 0); /* offered, and not yet answered */
        lose_and_find(&memory[2]->remote[0]);
        let_it_work();
        for (int k = 0; k < 3; k++) {
            assert_int_equal(memory[k]->remote[0], 0);
        }
        if (i == 0) { /* it is given up, */
            rdma->close(rdma, h[0].qp, false);
        } else if (i == 1) { /* or answered, */
            assert_int_equal(open_half(&h[1], 2, 7), 0);
            assert_int_equal(connect_half(&h[0], &h[1]), 0);
            assert_int_equal(connect_half(&h[1], &h[0]), 0);
            part(h);
        } else { /* or has had its time */
            atomic_fetch_add(&still_ns, 11 * NS_PER_S);
            let_it_work();
        }
        for (int k = 0; k < 3; k++) {
            await_key(&memory[k]->remote[0], true);
        }
    }
    rdma->close(rdma, h[0].qp, false);
    for (int k = 0; k < 3; k++) {
        rdma->memory_remove(rdma, memory[k]);
    }
    atomic_store(&still_ns, 0);
}

static struct rdma_config for_gpus(void)
{
    return (struct rdma_config){.library = library(),
                                .sysfs = "/nowhere",
                                .io = &io,
                                .direct = true,
                                .gpu = true,
                                .release = "6.1.0"};
}

/* A GPU's memory: its bytes are in a file, and any access by its address crashes. */
struct gpu {
    struct io_rdma_range range;
    uint8_t *seen;
};

static struct gpu gpu_make(size_t size)
{
    struct gpu g = {.range = {.size = size, .gpu = true, .fd = memfd_create("gpu", MFD_CLOEXEC)}};

    assert_int_equal(ftruncate(g.range.fd, (off_t)size), 0);
    g.range.data = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    g.seen = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, g.range.fd, 0);
    return g;
}

static void gpu_end(const struct gpu *g)
{
    munmap(g->range.data, g->range.size);
    munmap(g->seen, g->range.size);
    close(g->range.fd);
}

static void a_gpu_is_reached_by_devices_alone(void **state)
{
    const struct rdma_config config = for_gpus();
    static uint8_t own[300000], again[300000];
    const size_t size = 1 << 19;
    struct io_rdma_memory *memory;
    struct rdma *other;
    uint32_t device = 99;
    uint64_t ticket;
    char why[256];
    int r;
    (void)state;
    const struct gpu g = gpu_make(size);
    const struct io_rdma_range range = g.range;
    uint8_t *const at = g.range.data, *const seen = g.seen;

    fake->no_dmabuf = true;
    assert_int_equal(rdma_open(&other, &config, why, sizeof(why)), 0);
    assert_null(rdma_io(other)->gpu_copy);
    assert_true(rdma_io(other)->trouble(rdma_io(other), why, sizeof(why)));
    assert_non_null(strstr(why, "to take DMA-BUFs"));
    assert_int_equal(rdma_io(other)->memory_add(rdma_io(other), &range, &memory), -EOPNOTSUPP);
    rdma_close(other);
    fake->no_dmabuf = false;

    assert_int_equal(rdma_open(&other, &config, why, sizeof(why)), 0);
    struct io_rdma *x = rdma_io(other);
    assert_int_equal(x->memory_add(x, &range, &memory), 0);
    for (size_t i = 0; i < sizeof(own); i++) {
        own[i] = (uint8_t)(i * 7 + i / 251);
    }
    assert_int_equal(x->gpu_copy(x, memory, at + 1000, own, sizeof(own), true, &device), 0);
    assert_int_equal(device, 0);
    assert_memory_equal(seen + 1000, own, sizeof(own));
    assert_int_equal(x->gpu_copy(x, memory, at + 1000, again, sizeof(own), false, &device), 0);
    assert_memory_equal(again, own, sizeof(own));

    fake->gpu_lag = 8;            /* the device acknowledges writes that aren't there yet */
    for (int i = 0; i < 3; i++) { /* read at the place, at any place, by a waiting thread */
        memset(seen, 0, 4096);
        assert_int_equal(x->gpu_copy(x, memory, at, own, 4096, true, &device), 0);
        assert_int_equal(seen[1], 0);
        if (i == 2) {
            x->gpu_settle(x, device);
        } else {
            assert_int_equal(x->gpu_read(x, device, i == 0 ? memory : NULL, at + size - 3, &ticket),
                             0);
            while ((r = x->gpu_done(x, device, ticket)) == -EAGAIN) {
            }
            assert_int_equal(r, 0);
        }
        assert_memory_equal(seen, own, 4096);
    }
    fake->gpu_lag = 0;

    /* Ports are down: that is reported. When one is up again, there is a way again. Earlier requests are known to be lost. */
    fake->no_loopback = true;
    assert_int_equal(x->gpu_read(x, 0, memory, at, &ticket), 0);
    while ((r = x->gpu_done(x, 0, ticket)) == -EAGAIN) {
    }
    assert_int_equal(r, -EIO);
    assert_int_equal(x->gpu_copy(x, memory, at, own, 4096, true, &device), -EIO);
    fake->no_loopback = false;
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    while (x->gpu_copy(x, memory, at, own, 4096, true, &device) != 0) {
        assert_true(now(NULL).ns < until);
    }
    assert_int_equal(x->gpu_done(x, 0, ticket), -EIO);
    x->memory_remove(x, memory);

    /* The memory of a process without more descriptors is registered nevertheless. */
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    r = x->memory_add(x, &range, &memory);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(r, 0);
    assert_int_equal(x->gpu_copy(x, memory, at, own, 4096, true, &device), 0);
    x->memory_remove(x, memory);
    rdma_close(other);
    gpu_end(&g);
}

/* Devices take a request and don't answer: nothing of it lands once another device has copied, or the caller got the error. */
static int open_descriptors(int below)
{
    int open = 0;

    for (int i = 0; i < below; i++) {
        open += fcntl(i, F_GETFD) >= 0;
    }
    return open;
}

/* An application has many buffers: copies that are kept for devices that come back leave it its descriptors. */
static void ranges_of_gpus_leave_descriptors(void **state)
{
    enum { MAY = 256, RANGES = MAY / 8 + 20 };
    const struct rdma_config config = for_gpus();
    struct io_rdma_memory *memory[RANGES];
    struct rlimit limit;
    struct rdma *other;
    char why[256];
    int status = -1;
    (void)state;
    const struct gpu g = gpu_make(1 << 16);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit few = {.rlim_cur = MAY, .rlim_max = limit.rlim_max};
    assert_int_equal(rdma_open(&other, &config, why, sizeof(why)), 0);
    struct io_rdma *x = rdma_io(other);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int round = 0; round < 2; round++) { /* what is given back may be had again */
        assert_int_equal(x->memory_add(x, &g.range, &memory[0]), 0);
        const int before = open_descriptors(MAY);
        for (int i = 1; i < RANGES; i++) {
            assert_int_equal(x->memory_add(x, &g.range, &memory[i]), 0);
        }
        assert_int_equal(open_descriptors(MAY), before + MAY / 8 - 1);
        for (int i = 0; round == 0 && i < RANGES; i++) {
            x->memory_remove(x, memory[i]);
        }
    }
    const pid_t child = fork();
    if (child == 0) { /* it has none of its parent's */
        _exit(descriptor_copy(0) < 0);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);

    strcpy(fake->gone, "roce1");
    send_event("roce1", IBV_EVENT_DEVICE_FATAL, 1, 0);
    for (int i = 0; i < RANGES; i++) {
        await_key(&memory[i]->remote[0], false);
    }
    fake->gone[0] = 0;
    for (int i = 0; i < MAY / 8; i++) {
        await_key(&memory[i]->remote[0], true);
    }
    assert_int_equal(memory[RANGES - 1]->remote[0], 0);
    assert_true(memory[RANGES - 1]->remote[1] != 0); /* by the others it is reached as before */
    for (int i = 0; i < RANGES; i++) {
        x->memory_remove(x, memory[i]);
    }
    rdma_close(other);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    gpu_end(&g);
}

/* For four seconds the first device takes requests and doesn't answer. Returns how many copies wait for it. -1: the second one
 * didn't make every copy, because it had no processor for a second, either. */
static int slow_copies(struct io_rdma *x, struct io_rdma_memory *memory, void *at, void *own,
                       size_t size)
{
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    bool by_second = true;
    uint32_t device = 99;
    int slow = 0;

    strcpy(fake->stuck, "roce1");
    for (const int64_t end = now(NULL).ns + 4 * NS_PER_S; by_second && now(NULL).ns < end;) {
        const int64_t begun = now(NULL).ns;
        by_second = x->gpu_copy(x, memory, at, own, size, true, &device) == 0 && device == 1;
        slow += now(NULL).ns - begun > 900 * NS_PER_MS;
        usleep(1000);
    }
    fake->stuck[0] = 0;
    while (x->gpu_copy(x, memory, at, own, size, true, &device) != 0 || device != 0) {
        assert_true(now(NULL).ns < until);
    }
    return by_second ? slow : -1;
}

static void a_gpu_is_written_by_one_device_at_a_time(void **state)
{
    const struct rdma_config config = for_gpus();
    static uint8_t own[4096], zeros[4096];
    const size_t size = 1 << 16;
    int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    struct io_rdma_memory *memory;
    struct rdma *other;
    uint32_t device = 99;
    uint64_t ticket;
    char why[256];
    int r, slow = 0;
    (void)state;
    const struct gpu g = gpu_make(size);
    const struct io_rdma_range range = g.range;
    uint8_t *const at = g.range.data, *const seen = g.seen;

    assert_int_equal(rdma_open(&other, &config, why, sizeof(why)), 0);
    struct io_rdma *x = rdma_io(other);
    assert_int_equal(x->memory_add(x, &range, &memory), 0);
    memset(own, 0x17, sizeof(own));

    /* The first one's pair is destroyed, with its open requests, before the second one copies. */
    strcpy(fake->stuck, "roce1");
    assert_int_equal(x->gpu_copy(x, memory, at, own, sizeof(own), true, &device), 0);
    assert_int_equal(device, 1);
    memset(seen, 0, size);
    fake->stuck[0] = 0;
    while (x->gpu_copy(x, memory, at + 8192, own, sizeof(own), true, &device) != 0 || device != 0) {
        assert_true(now(NULL).ns < until); /* it is made again */
    }
    assert_memory_equal(seen, zeros, sizeof(zeros));

    /* It still doesn't answer: one copy finds that out, and no later copy waits. If the machine pauses for a second, the test is
     * repeated. */
    for (int tries = 0; tries < 5 && slow != 1; tries++) {
        slow = slow_copies(x, memory, at, own, sizeof(own));
    }
    assert_int_equal(slow, 1);
    until = now(NULL).ns + PATIENCE * NS_PER_S;

    /* It can't be destroyed: the second one isn't used. */
    memset(seen, 0, size);
    strcpy(fake->stuck, "roce1");
    strcpy(fake->hang, "destroy_qp");
    assert_int_equal(x->gpu_copy(x, memory, at, own, sizeof(own), true, &device), -EIO);
    assert_memory_equal(seen, zeros, sizeof(zeros));
    assert_int_equal(fake->stuck_count, 1);
    fake->stuck[0] = fake->hang[0] = 0;
    while (x->gpu_copy(x, memory, at + 8192, own, sizeof(own), true, &device) != 0 || device != 0) {
        assert_true(now(NULL).ns < until);
    }
    assert_int_equal(fake->stuck_count, 0); /* it was destroyed before another was made */
    assert_memory_equal(seen + 8192, own, sizeof(own));

    /* A read without an answer is given up, even if no other is asked for. */
    strcpy(fake->stuck, "*");
    assert_int_equal(x->gpu_read(x, 0, memory, at, &ticket), 0);
    while ((r = x->gpu_done(x, 0, ticket)) == -EAGAIN) {
        assert_true(now(NULL).ns < until);
    }
    assert_int_equal(r, -EIO);
    fake->stuck[0] = 0;
    while (x->gpu_read(x, 0, memory, at, &ticket) != 0) {
        assert_true(now(NULL).ns < until);
    }

    /* Nor does anything wait for it once its device is gone. */
    strcpy(fake->stuck, "*");
    assert_int_equal(x->gpu_read(x, 1, memory, at, &ticket), 0);
    strcpy(fake->gone, "roce2");
    send_event("roce2", IBV_EVENT_DEVICE_FATAL, 1, 0);
    while ((r = x->gpu_done(x, 1, ticket)) == -EAGAIN) {
        assert_true(now(NULL).ns < until);
    }
    assert_int_equal(r, -EIO);
    assert_int_equal(x->gpu_read(x, 1, memory, at, &ticket), -EIO);
    fake->stuck[0] = fake->gone[0] = 0;
    while (!x->trouble(x, why, sizeof(why)) || strstr(why, "roce2 is back") == NULL) {
        assert_true(now(NULL).ns < until);
    }

    /* A device refuses to destroy its pair: no new one is made, and no other device copies for it. */
    strcpy(fake->refuse, "destroy_qp");
    fake->refuse_errno = EIO;
    strcpy(fake->stuck, "roce1");
    assert_int_equal(x->gpu_copy(x, memory, at, own, sizeof(own), true, &device), -EIO);
    fake->stuck[0] = fake->refuse[0] = 0;
    assert_int_equal(x->gpu_copy(x, memory, at, own, sizeof(own), true, &device), 0);
    assert_int_not_equal(device, 0);
    assert_int_equal(x->gpu_read(x, 0, memory, at, &ticket), -EIO);
    x->memory_remove(x, memory);
    rdma_close(other);
    gpu_end(&g);
    fake->stuck_count = 0;
    fake->open--; /* that pair */
}

/* Nor does the thread that closes everything. What it left is given back when the library returns. */
static void a_library_that_hangs_is_left_to_itself(void **state)
{
    struct half h[2];
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;

    join(h);
    fake->hung = 0;
    strcpy(fake->hang, "destroy_qp");
    part(h);
    rdma_close(driver);
    assert_true(__atomic_load_n(&fake->hung, __ATOMIC_SEQ_CST) > 0);
    assert_true(fake->open > 0);
    fake->hang[0] = 0;
    while (__atomic_load_n(&fake->open, __ATOMIC_SEQ_CST) > 0) {
        assert_true(now(NULL).ns < until);
    }
    begin(state);
}

/* Closed pairs hold memory until they are destroyed: they count. */
static void closed_ones_count_while_they_hold_memory(void **state)
{
    const struct io_qp_config config = {
        .nic = {.ip = {[10] = 0xff, [11] = 0xff, [12] = 127, [15] = 1}},
        .sends = CELLS,
        .receives = CELLS,
        .cell_size = CELL_SIZE};
    int qp, r = 0;
    uint32_t count = 0;
    (void)state;
    fake->hung = 0;
    strcpy(fake->hang, "query_port");
    while (count < 2 * PROCESS_QUEUE_PAIRS_MAX && (r = rdma->open(rdma, &config, &qp)) == 0) {
        while (__atomic_load_n(&fake->hung, __ATOMIC_SEQ_CST) == 0) {
        }
        rdma->close(rdma, qp, false);
        count++;
    }
    assert_int_equal(r, -ENOSPC);
    assert_int_equal(count, PROCESS_QUEUE_PAIRS_MAX);
    fake->hang[0] = 0;
    const int64_t until = now(NULL).ns + PATIENCE * NS_PER_S;
    while ((r = rdma->open(rdma, &config, &qp)) == -ENOSPC) {
        assert_true(now(NULL).ns < until);
    }
    assert_int_equal(r, 0);
    rdma->close(rdma, qp, false);
}

/* The kernel's descriptors of a removed device stay readable for ever: nothing reads them any more. */
static void a_device_that_went_costs_nothing(void **state)
{
    const struct timespec some = {.tv_nsec = 100000000};
    struct half h[2];
    (void)state;
    join(h);
    strcpy(fake->gone, "roce1");
    send_event("roce1", IBV_EVENT_DEVICE_FATAL, 1, 0);
    told("RDMA device roce1 is gone");
    const int before = __atomic_load_n(&fake->calls, __ATOMIC_SEQ_CST);
    const int64_t begin = now(NULL).ns;
    (void)nanosleep(&some, NULL);
    const int calls = __atomic_load_n(&fake->calls, __ATOMIC_SEQ_CST) - before;
    assert_true(calls <
                50 * (1 + (now(NULL).ns - begin) / some.tv_nsec)); /* in a tenth of a second */
    part(h);
    fake->gone[0] = 0;
}

/* A data loader that outlives its killed parent holds no queue pair of it. */
static void children_hold_no_device(void **state)
{
    int status = -1;
    (void)state;
    const pid_t child = fork();
    if (child == 0) {
        int open = 0;
        for (int i = 0; i < 3; i++) {
            open += fcntl(fake->fds[i], F_GETFD) >= 0;
        }
        rdma_close(driver); /* its threads aren't here */
        _exit(open);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    for (int i = 0; i < 3; i++) {
        assert_true(fcntl(fake->fds[i], F_GETFD) >= 0);
    }
}

int main(int argc, char **argv)
{
    setenv("FOLIOT_FAKE_VERBS_WIRE",
           "roce1=127.0.0.1 roce2=127.0.0.2 old3=127.0.0.3,v1 roce4=127.0.0.4 ib8=127.0.0.8,ib "
           "ib9=127.0.0.9,ib ib10=127.0.0.10,ib,p8005 ib11=127.0.0.11,ib,p0005 "
           "ib12=127.0.0.12,ib,p8006 ib13=127.0.0.13,ib,q0 ib14=127.0.0.14,ib,q8005 "
           "roce5=127.0.0.5,q0",
           1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bytes_come_whole_and_in_order, begin, end),
        cmocka_unit_test_setup_teardown(what_is_armed_is_told_once, begin, end),
        cmocka_unit_test_setup_teardown(an_event_outlives_others_that_were_never_armed, begin, end),
        cmocka_unit_test_setup_teardown(a_dead_path_ends_its_queue_pair, begin, end),
        cmocka_unit_test_setup_teardown(each_error_is_told_by_its_kind, begin, end),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_refused_in_words, begin, end),
        cmocka_unit_test_setup_teardown(each_lid_of_a_port_is_a_way, begin, end),
        cmocka_unit_test_setup_teardown(packets_are_marked_as_wanted, begin, end),
        cmocka_unit_test_setup_teardown(partitions_at_odds_are_told, begin, end),
        cmocka_unit_test_setup_teardown(a_p_key_is_good_at_any_index, begin, end),
        cmocka_unit_test_setup_teardown(a_refusal_is_told_and_leaves_nothing, begin, end),
        cmocka_unit_test_setup_teardown(ends_of_two_mtus_agree, begin, end),
        cmocka_unit_test_setup_teardown(an_index_that_moves_does_no_harm, begin, end),
        cmocka_unit_test_setup_teardown(a_device_may_go_and_come_back, begin, end),
        cmocka_unit_test_setup_teardown(a_fatal_event_ends_one_queue_pair, begin, end),
        cmocka_unit_test_setup_teardown(a_port_that_goes_down_is_told, begin, end),
        cmocka_unit_test_setup_teardown(a_port_event_goes_before_an_older_reading, begin, end),
        cmocka_unit_test_setup_teardown(addresses_that_change_end_nothing, begin, end),
        cmocka_unit_test_setup_teardown(what_was_posted_is_still_sent, begin, end),
        cmocka_unit_test_setup_teardown(one_may_be_closed_at_any_time, begin, end),
        cmocka_unit_test_setup_teardown(nobody_waits_for_the_library, begin, end),
        cmocka_unit_test_setup_teardown(a_registration_that_hangs_stops_nobody, begin, end),
        cmocka_unit_test_setup_teardown(a_queue_pair_that_hangs_holds_nobody, begin, end),
        cmocka_unit_test_setup_teardown(one_that_connects_is_silent_later, begin, end),
        cmocka_unit_test_setup_teardown(nothing_is_written_where_children_take_pages, begin, end),
        cmocka_unit_test_setup_teardown(a_device_that_is_back_knows_memory_again, begin, end),
        cmocka_unit_test_setup_teardown(offers_go_before_memory, begin, end),
        cmocka_unit_test_setup_teardown(a_gpu_is_reached_by_devices_alone, begin, end),
        cmocka_unit_test_setup_teardown(ranges_of_gpus_leave_descriptors, begin, end),
        cmocka_unit_test_setup_teardown(a_gpu_is_written_by_one_device_at_a_time, begin, end),
        cmocka_unit_test_setup_teardown(a_library_that_hangs_is_left_to_itself, begin, end),
        cmocka_unit_test_setup_teardown(closed_ones_count_while_they_hold_memory, begin, end),
        cmocka_unit_test_setup_teardown(a_device_that_went_costs_nothing, begin, end),
        cmocka_unit_test_setup_teardown(children_hold_no_device, begin, end),
    };
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
