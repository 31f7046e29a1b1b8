/* test_lane_gpu.c: messages in memory of GPUs, from end to end. That memory is a file here, and only the fake library can map it
 * by the GPU's address: any other access crashes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lane_pairs.h"

static struct gpu_memory gpu_out, gpu_in;
static struct transport_memory *known_out, *known_in; /* what they are registered as */

static void gpus_open(struct pair *pair)
{
    gpus = true;
    pair_open(pair);
    gpu_out = gpu_new(1 << 20);
    gpu_in = gpu_new(1 << 20);
    assert_int_equal(transport_memory_add_gpu(pair->sender.transport, gpu_out.at, gpu_out.size,
                                              gpu_out.fd, 0, &known_out),
                     0);
    assert_int_equal(transport_memory_add_gpu(pair->receiver.transport, gpu_in.at, gpu_in.size,
                                              gpu_in.fd, 0, &known_in),
                     0);
}

static void gpus_close(struct pair *pair)
{
    pair_close(pair); /* memory that is still registered is given back */
    gpu_free(&gpu_out);
    gpu_free(&gpu_in);
    gpus = false;
}

static void await_flush(struct pair *pair, void *at, size_t size)
{
    struct transport_request *flush;

    assert_int_equal(transport_flush(pair->in, at, size, &flush), 0);
    for (bool done = flush == NULL; !done; serve(pair)) {
        assert_int_equal(transport_test(flush, &done, NULL), 0);
    }
}

/* One message from a GPU (or from the host) to a GPU (or to the host): it is done, and not yet flushed. */
static void transfer_gpu(struct pair *pair, size_t size, bool from_gpu, bool to_gpu, uint64_t seed)
{
    struct transport_request *send = NULL, *receive = NULL;
    uint8_t *from = from_gpu ? gpu_out.seen : out_bytes;
    void *to_at = to_gpu ? gpu_in.at : in_bytes;
    bool sent = false, received = false;
    size_t came = 0;

    fill(from, size, seed);
    memset(to_gpu ? gpu_in.seen : in_bytes, 0x5a, size);
    if (seed % 2 == 0) {
        assert_int_equal(transport_receive(pair->in, to_at, size, 7, false, NULL, &receive), 0);
    }
    while (!sent || !received) {
        if (send == NULL && !sent) {
            assert_int_equal(
                transport_send(pair->out, from_gpu ? gpu_out.at : out_bytes, size, 7, NULL, &send),
                0);
        } else if (!sent) {
            assert_int_equal(transport_test(send, &sent, NULL), 0);
        }
        if (receive == NULL && !received) {
            assert_int_equal(transport_receive(pair->in, to_at, size, 7, false, NULL, &receive), 0);
        } else if (!received) {
            assert_int_equal(transport_test(receive, &received, &came), 0);
        }
        serve(pair);
        usleep(20); /* the device is a thread */
    }
    assert_int_equal(came, size);
}

/* The same, and then compares what the receiver's GPU sees after the flush. */
static void exchange_gpu(struct pair *pair, size_t size, bool from_gpu, bool to_gpu, uint64_t seed)
{
    transfer_gpu(pair, size, from_gpu, to_gpu, seed);
    await_flush(pair, to_gpu ? gpu_in.at : in_bytes, size);
    assert_memory_equal(to_gpu ? gpu_in.seen : in_bytes, from_gpu ? gpu_out.seen : out_bytes, size);
}

static void exchange_all(struct pair *pair, uint64_t seed)
{
    static const size_t sizes[] = {0, 1, 100, 8192, 16384, 16385, 70000, 500000};

    for (uint64_t i = 0; i < 3 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        const uint64_t way = i / (sizeof(sizes) / sizeof(sizes[0]));
        exchange_gpu(pair, sizes[i % (sizeof(sizes) / sizeof(sizes[0]))], way != 1, way != 2,
                     seed + i);
    }
}

/* No code touches it (an access would crash), and no byte is late: over connections, over queue pairs that write, and while they
 * die. */
static void test_gpu_messages(void **state)
{
    struct pair pair;

    (void)state;
    direct = true;
    fake->gpu_lag = 8;
    gpus_open(&pair);
    exchange_all(&pair, 0); /* over TCP, then over queue pairs */
    wait_for(&pair, 4, 4);
    const int writes = fake->writes, reads = fake->gpu_reads;
    exchange_all(&pair, 100);
    exchange_all(&pair, 201);
    assert_true(fake->writes - writes > 12);
    assert_true(fake->gpu_reads - reads >= 32);
    for (uint64_t i = 0; i < 3; i++) {
        wait_for(&pair, 4, 4);
        fake->drop = true;
        exchange_gpu(&pair, 500000, true, true, 300 + i);
        fake->drop = false;
    }
    fake->gpu_lag = 0;
    gpus_close(&pair);
    direct = false;
}

/* A peer without queue pairs, and a peer whose sets aren't fenced: everything goes as bytes. */
static void test_gpu_and_older_peers(void **state)
{
    struct pair pair;

    (void)state;
    direct = true;
    for (version = 4; version <= LANE_VERSION; version += LANE_VERSION - 4) {
        sender_without = false;
        gpus_open(&pair);
        exchange_all(&pair, 10 * version);
        gpus_close(&pair);
    }
    version = 0;
    direct = false;
}

/* A receive is given up: its NIC has acknowledged writes that the GPU can't see yet. They land before the close returns. */
static void test_gpu_closed_receives(void **state)
{
    const size_t size = 1 << 19;
    struct pair pair;

    (void)state;
    direct = true;
    gpus_open(&pair);
    wait_for(&pair, 4, 4);
    for (int round = 0; round < 4; round++) {
        struct transport_request *send = NULL, *receive = NULL;
        const int before = fake->writes;
        fake->gpu_lag = 4;
        assert_int_equal(transport_receive(pair.in, gpu_in.at, size, 7, false, NULL, &receive), 0);
        assert_int_equal(transport_send(pair.out, gpu_out.at, size, 7, NULL, &send), 0);
        for (int i = 0; i < STEPS_MAX && fake->writes - before < 2; i++) {
            serve(&pair);
        }
        transport_close(pair.in);
        memset(gpu_in.seen, 0x77, size);
        fake->gpu_lag = 0;
        for (int i = 0; i < 2000; i++) {
            serve(&pair);
        }
        for (size_t i = 0; i < size; i++) {
            assert_int_equal(gpu_in.seen[i], 0x77);
        }
        transport_close(pair.out);
        connect_comm(&pair);
        wait_for(&pair, 4, 4);
    }
    gpus_close(&pair);
    direct = false;
}

/* Ended lanes: their chunks aren't sent again before the device has read from the GPU. No other read is made there: the message
 * comes from memory of the host. */
static void test_gpu_is_read_behind_lanes(void **state)
{
    struct pair pair;

    (void)state;
    direct = true;
    fake->gpu_lag = 8;
    gpus_open(&pair);
    wait_for(&pair, 4, 4);
    const int before = fake->gpu_reads;
    fake->drop = true;
    transfer_gpu(&pair, 500000, false, true, 1);
    assert_true(fake->gpu_reads - before >= 1);
    fake->drop = false;
    fake->gpu_lag = 0;
    gpus_close(&pair);
    direct = false;
}

/* No device reaches itself any more (their ports are down): written bytes have a second to land. A message that must be copied
 * ends its communicator, and none of these receives is done. */
static void test_gpu_without_ways(void **state)
{
    struct transport_request *send, *receive, *flush;
    struct pair pair;
    bool done = false;

    (void)state;
    direct = true;
    gpus_open(&pair);
    wait_for(&pair, 4, 4);
    exchange_gpu(&pair, 500000, true, true, 1);
    fake->no_loopback = true;
    assert_int_equal(transport_receive(pair.in, gpu_in.at, 500000, 7, false, NULL, &receive), 0);
    assert_int_equal(transport_send(pair.out, gpu_out.at, 500000, 7, NULL, &send), 0);
    if (received(&pair, receive, PATIENCE_MS)) {
        struct io *io = pair.receiver.transport->io;
        const struct mono asked = io->now(io);
        assert_int_equal(transport_flush(pair.in, gpu_in.at, 500000, &flush), 0);
        while (!done) {
            serve(&pair);
            assert_int_equal(transport_test(flush, &done, NULL), 0);
        }
        assert_true(mono_sub(io->now(io), asked).ns >= NS_PER_S);
        assert_int_equal(transport_flush(pair.in, gpu_in.at, 500000, &flush), 0);
        serve(&pair);
        assert_int_equal(transport_test(flush, &done, NULL), 0);
        assert_true(done); /* nothing was written since */
    }
    for (int i = 0; i < 2; i++) { /* the peer isn't the reason */
        assert_int_equal(transport_send(pair.out, gpu_out.at, 100, 7, NULL, &send), -EIO);
        assert_non_null(strstr(transport_why(), "expected a port that is up"));
    }
    fake->no_loopback = false;
    gpus_close(&pair);
    direct = false;
}

/* The milliseconds that a close takes while lanes of a device write a receive and the writes get nowhere. -1: there was nothing
 * to wait for, because the message had come completely, or a busy machine had lost a lane. */
static int64_t settled_ms(void)
{
    struct transport_request *send, *receive;
    struct timespec asked, closed;
    struct pair pair;

    direct = true;
    gpus_open(&pair);
    wait_for(&pair, 4, 4);
    const int before = fake->writes;
    assert_int_equal(transport_receive(pair.in, gpu_in.at, 500000, 7, false, NULL, &receive), 0);
    assert_int_equal(transport_send(pair.out, gpu_out.at, 500000, 7, NULL, &send), 0);
    for (int i = 0; i < STEPS_MAX && fake->writes - before < 2; i++) {
        serve(&pair);
    }
    const bool waits = !ledger_comm_idle(pair.in->set->ledger, pair.in->number) &&
                       over_pairs(pair.receiver.transport) == LANES;
    fake->no_loopback = true;
    clock_gettime(CLOCK_MONOTONIC, &asked); /* the driver's */
    transport_close(pair.in);
    clock_gettime(CLOCK_MONOTONIC, &closed);
    fake->no_loopback = false;
    transport_close(pair.out);
    connect_comm(&pair);
    gpus_close(&pair);
    direct = false;
    const int64_t took_ms =
        (closed.tv_sec - asked.tv_sec) * 1000 + (closed.tv_nsec - asked.tv_nsec) / 1000000;
    return waits ? took_ms : -1;
}

/* The same, and receives are given up: the device has its second once, not for each of its four lanes. Two devices take two. If
 * the machine pauses for so long, the test is repeated. */
static void test_gpu_settles_once(void **state)
{
    int64_t took_ms = -1;

    (void)state;
    for (int tries = 0; tries < 10 && (took_ms < 0 || took_ms >= 2000); tries++) {
        took_ms = settled_ms();
        assert_true(took_ms < 0 || took_ms >= 999);
    }
    assert_in_range(took_ms, 999, 1999);
}

/* It is never done: it fails with that error. */
static void await_failure(struct pair *pair, struct transport_request *request, int error)
{
    bool done = false;
    int r = 0;

    while (r == 0) {
        serve(pair);
        r = transport_test(request, &done, NULL);
        assert_false(done);
    }
    assert_int_equal(r, error);
}

/* The peer is gone. Its earlier messages are flushed nevertheless. */
static void test_gpu_flushes_without_peer(void **state)
{
    struct transport_request *receive;
    struct pair pair;

    (void)state;
    direct = true;
    fake->gpu_lag = 8;
    gpus_open(&pair);
    wait_for(&pair, 4, 4);
    transfer_gpu(&pair, 500000, true, true, 1);
    assert_int_equal(transport_receive(pair.in, gpu_in.at, 100, 7, false, NULL, &receive), 0);
    transport_close(pair.out);
    await_failure(&pair, receive, -ECONNABORTED);
    await_flush(&pair, gpu_in.at, 500000);
    assert_memory_equal(gpu_in.seen, gpu_out.seen, 500000);
    fake->gpu_lag = 0;
    transport_close(pair.in);
    connect_comm(&pair);
    gpus_close(&pair);
    direct = false;
}

/* The receiver gives its GPU's memory back while a message is on its way there: no access is made to it, and only that
 * communicator fails. */
static void test_gpu_memory_given_back(void **state)
{
    struct transport_request *send, *receive;
    struct pair pair;

    (void)state;
    direct = true;
    for (int writes = 0; writes < 2; writes++) {
        gpus_open(&pair);
        if (writes) {
            wait_for(&pair, 4, 4);
        }
        assert_int_equal(transport_receive(pair.in, gpu_in.at, 500000, 7, false, NULL, &receive),
                         0);
        memset(gpu_in.seen, 0x77, 500000);
        transport_memory_remove(pair.receiver.transport, known_in);
        assert_int_equal(transport_send(pair.out, out_bytes, 500000, 7, NULL, &send), 0);
        await_failure(&pair, receive, -ECANCELED);
        assert_non_null(strstr(transport_why(), "was given back"));
        for (size_t i = 0; i < 500000; i++) {
            assert_int_equal(gpu_in.seen[i], 0x77);
        }
        transport_close(pair.in);
        transport_close(pair.out);
        connect_comm(&pair); /* of the same sets */
        transfer_gpu(&pair, 500000, true, false, 1);
        gpus_close(&pair);
    }
    direct = false;
}

/* The sender does: no byte is sent that could not be read, and only that communicator fails. */
static void test_gpu_memory_given_back_by_sender(void **state)
{
    struct transport_request *send, *receive;
    struct pair pair;

    (void)state;
    direct = true;
    for (int writes = 0; writes < 2; writes++) {
        gpus_open(&pair);
        if (writes) {
            wait_for(&pair, 4, 4);
        }
        fill(gpu_out.seen, gpu_out.size, 1);
        assert_int_equal(transport_send(pair.out, gpu_out.at, gpu_out.size, 7, NULL, &send), 0);
        transport_memory_remove(pair.sender.transport, known_out);
        assert_int_equal(
            transport_receive(pair.in, in_bytes, gpu_out.size, 7, false, NULL, &receive), 0);
        await_failure(&pair, send, -ECANCELED);
        assert_non_null(strstr(transport_why(), "was given back"));
        transport_close(pair.out);
        await_failure(&pair, receive, -ECONNABORTED);
        transport_close(pair.in);
        connect_comm(&pair); /* of the same sets */
        transfer_gpu(&pair, 500000, false, true, 1);
        gpus_close(&pair);
    }
    direct = false;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gpu_messages),
        cmocka_unit_test(test_gpu_and_older_peers),
        cmocka_unit_test(test_gpu_closed_receives),
        cmocka_unit_test(test_gpu_is_read_behind_lanes),
        cmocka_unit_test(test_gpu_without_ways),
        cmocka_unit_test(test_gpu_settles_once),
        cmocka_unit_test(test_gpu_flushes_without_peer),
        cmocka_unit_test(test_gpu_memory_given_back),
        cmocka_unit_test(test_gpu_memory_given_back_by_sender),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, pairs_begin, NULL);
}
