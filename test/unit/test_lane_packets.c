/* test_lane_packets.c: the cost of a message on lanes that write: writes, and cells for headers and reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

#include "lane_pairs.h"
#include "transport/lane_pair.h"

#define MESSAGES 20
#define SIZE     65536
#define PACKET   4096
#define DEPTH    8
#define SLOW     0.001 /* bytes per ns */
#define FAST     10

struct cost {
    uint32_t cells;   /* for headers and reports, that both ends sent */
    uint32_t chunks;  /* each is a write */
    uint32_t packets; /* of writes */
    uint64_t epochs;  /* over all lanes: a lane that was made again counts from 0 */
};

static void add(const struct transport *t, struct cost *cost)
{
    struct sender_counters counters;

    for (uint32_t i = 0; i < t->set_count; i++) {
        if (t->sets[i] != NULL && t->sets[i]->sender != NULL) {
            sender_counters_get(t->sets[i]->sender, &counters);
            cost->chunks += (uint32_t)counters.chunks;
        }
        for (uint32_t lane = 0; t->sets[i] != NULL && lane < LANE_MAX; lane++) {
            const struct stream *stream = t->sets[i]->streams[lane];
            cost->epochs += stream != NULL ? stream->epoch : 0;
            cost->cells += stream != NULL && stream->qp != NULL ? stream->qp->sent : 0;
        }
    }
}

static struct cost cost_of(const struct pair *pair)
{
    struct cost cost = {.packets = (uint32_t)fake->writes};

    add(pair->sender.transport, &cost);
    add(pair->receiver.transport, &cost);
    return cost;
}

static void set_rates(struct lane_set *set, double rate)
{
    for (uint32_t lane = 0; lane < LANE_MAX; lane++) {
        set->scheduler.lanes[lane].rate = rate;
    }
}

/* Packets that soft-RoCE makes of so many messages, where each write and each cell has an acknowledgement of its own; 0: a lane
 * was lost, or something was copied. */
static uint32_t packets_since(const struct pair *pair, const struct cost *before, uint32_t messages,
                              uint32_t size)
{
    const struct cost now = cost_of(pair);
    const uint32_t data = messages * (size / PACKET);

    return now.epochs == before->epochs && now.packets - before->packets == data
               ? data + (now.chunks - before->chunks) + 2 * (now.cells - before->cells)
               : 0;
}

/* The fewest packets of a message, by lanes of that rate. A busy machine adds some. */
static uint32_t fewest_of_one(uint32_t size, double rate, bool post_first)
{
    uint32_t fewest = UINT32_MAX;
    struct pair pair;

    direct = true;
    pair_open(&pair);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        wait_for(&pair, LANES, LANES);
        set_rates(pair.out->set, rate);
        const struct cost before = cost_of(&pair);
        exchange(&pair, size, size, post_first, i);
        const uint32_t count = packets_since(&pair, &before, 1, size);
        fewest = count > 0 && count < fewest ? count : fewest;
    }
    pair_close(&pair);
    direct = false;
    return fewest;
}

/* ib_write_bw has 17 packets, and the acknowledgement is one of them. */
static void slow_lanes_need_few_packets(void **state)
{
    (void)state;
    assert_in_range(fewest_of_one(SIZE, SLOW, true), 17, 26);
}

/* A message of one chunk, whose receive is posted later, would fit a bounce slot. It isn't copied there. */
static void a_message_waits_for_its_place(void **state)
{
    (void)state;
    assert_in_range(fewest_of_one(SIZE, FAST, false), 17, 24);
    assert_in_range(fewest_of_one(SIZE / 2, SLOW, false), 9, 16);
}

struct transfer {
    struct transport_request *request;
    bool done;
};

/* Up to eight, as many as NCCL has on their way. */
static void begin(struct pair *pair, uint8_t *from, uint8_t *to,
                  struct transfer transfers[2 * DEPTH])
{
    set_rates(pair->out->set, SLOW);
    for (size_t i = 0; i < DEPTH; i++) {
        transfers[2 * i] = transfers[2 * i + 1] = (struct transfer){0};
        assert_int_equal(transport_receive(pair->in, to + i * SIZE, SIZE, 7, false, NULL,
                                           &transfers[2 * i].request),
                         0);
        assert_int_equal(transport_send(pair->out, from + i * SIZE, SIZE, 7, NULL,
                                        &transfers[2 * i + 1].request),
                         0);
    }
}

/* Both ends write to each other. Returns the pair of the other direction. */
static struct pair open_both_ways(struct pair *pair)
{
    direct = true;
    pair_open(pair);
    struct pair back = {.sender = pair->receiver, .receiver = pair->sender};
    connect_comm(&back);
    return back;
}

/* Both ends send. */
static void so_they_do_with_many_on_their_way(void **state)
{
    static struct transfer all[4 * DEPTH];
    uint32_t fewest = UINT32_MAX;
    struct pair pair;

    (void)state;
    struct pair back = open_both_ways(&pair);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        wait_for(&pair, LANES, LANES);
        const struct cost before = cost_of(&pair);
        begin(&pair, out_bytes, in_bytes, all);
        begin(&back, in_bytes + DEPTH * SIZE, out_bytes + DEPTH * SIZE, all + 2 * DEPTH);
        for (bool done = false; !done; serve(&pair)) {
            done = true;
            for (int k = 0; k < 4 * DEPTH; k++) {
                if (!all[k].done) {
                    assert_int_equal(transport_test(all[k].request, &all[k].done, NULL), 0);
                }
                done = done && all[k].done;
            }
        }
        const uint32_t count = packets_since(&pair, &before, 2 * DEPTH, SIZE);
        fewest = count > 0 && count < fewest ? count : fewest;
    }
    assert_in_range(fewest, 2 * DEPTH * 17, 2 * DEPTH * 26);
    transport_close(back.out);
    transport_close(back.in);
    pair_close(&pair);
    direct = false;
}

/* -- posts that take long, as on soft-RoCE, where the caller's processor does the work of the NIC */

static struct {
    int (*send)(struct io_rdma *, int qp, uint32_t cell, uint32_t size,
                const struct io_rdma_write *);
    struct pair *back;
    const struct transport_request *receive; /* of the sender, for a message of the other end */
    struct transport_request *answer;        /* which the other end sends during the second write */
    uint32_t writes, after;                  /* in all; since that message was reported */
    bool reported;
} slow;

static int post_slowly(struct io_rdma *rdma, int qp, uint32_t cell, uint32_t size,
                       const struct io_rdma_write *write)
{
    const int r = slow.send(rdma, qp, cell, size, write);

    slow.reported = slow.reported || (write == NULL && slow.receive->done);
    slow.after += write != NULL && slow.reported;
    slow.writes += write != NULL;
    if (slow.writes == 2 && slow.answer == NULL) {
        assert_int_equal(
            transport_send(slow.back->out, in_bytes + DEPTH * SIZE, SIZE, 7, NULL, &slow.answer),
            0);
    }
    usleep(write != NULL ? 1000 : 0);
    return r;
}

static void finish(struct pair *pair, struct transfer *all, int count)
{
    for (bool done = false; !done; serve(pair)) {
        done = true;
        for (int k = 0; k < count; k++) {
            if (!all[k].done) {
                assert_int_equal(transport_test(all[k].request, &all[k].done, NULL), 0);
            }
            done = done && all[k].done;
        }
    }
}

/* Eight messages wait for their places. The sender gets one message while it posts them in one call: how many of its writes go
 * after its report. */
static uint32_t writes_after_report(struct pair *pair, struct pair *back)
{
    struct transfer all[2 * DEPTH + 2] = {0};
    struct io_rdma *rdma = pair->out->set->transport->rdma;

    set_rates(pair->out->set, FAST);
    assert_int_equal(transport_receive(back->in, out_bytes + DEPTH * SIZE, SIZE, 7, false, NULL,
                                       &all[0].request),
                     0);
    for (size_t i = 0; i < DEPTH; i++) {
        assert_int_equal(
            transport_send(pair->out, out_bytes + i * SIZE, SIZE, 7, NULL, &all[2 + i].request), 0);
    }
    for (int i = 0; i < 20; i++) { /* the other end hears of the place */
        serve(pair);
        usleep(200);
    }
    for (size_t i = 0; i < DEPTH; i++) {
        assert_int_equal(transport_receive(pair->in, in_bytes + i * SIZE, SIZE, 7, false, NULL,
                                           &all[2 + DEPTH + i].request),
                         0);
    }
    assert_int_equal(transport_test(all[2 + DEPTH].request, &all[2 + DEPTH].done, NULL), 0);
    usleep(5000); /* the places are at the sender's NIC */
    slow.send = rdma->send;
    slow.back = back;
    slow.receive = all[0].request;
    slow.answer = NULL;
    slow.writes = slow.after = 0;
    slow.reported = false;
    rdma->send = post_slowly;
    while (slow.writes == 0) {
        assert_int_equal(transport_test(all[2].request, &all[2].done, NULL), 0);
    }
    rdma->send = slow.send;
    all[1].request = slow.answer;
    if (slow.answer == NULL) { /* not two writes in that call: its receive still waits */
        assert_int_equal(
            transport_send(back->out, in_bytes + DEPTH * SIZE, SIZE, 7, NULL, &all[1].request), 0);
    }
    finish(pair, all, 2 * DEPTH + 2);
    return slow.after;
}

static void what_comes_is_reported_between_slow_posts(void **state)
{
    uint32_t most = 0;
    struct pair pair;

    (void)state;
    struct pair back = open_both_ways(&pair);
    for (int i = 0; i < MESSAGES && most == 0; i++) { /* a busy machine may be late */
        wait_for(&pair, LANES, LANES);
        most = writes_after_report(&pair, &back);
    }
    assert_true(most > 0);
    transport_close(back.out);
    transport_close(back.in);
    pair_close(&pair);
    direct = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_lanes_need_few_packets),
        cmocka_unit_test(a_message_waits_for_its_place),
        cmocka_unit_test(so_they_do_with_many_on_their_way),
        cmocka_unit_test(what_comes_is_reported_between_slow_posts),
    };

    return cmocka_run_group_tests(tests, pairs_begin, NULL);
}
