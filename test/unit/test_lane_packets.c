/* test_lane_packets.c: the cost of a message on lanes that write: writes, and cells for headers and reports. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

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

/* Both ends send. */
static void so_they_do_with_many_on_their_way(void **state)
{
    static struct transfer all[4 * DEPTH];
    uint32_t fewest = UINT32_MAX;
    struct pair pair;

    (void)state;
    direct = true;
    pair_open(&pair);
    struct pair back = {.sender = pair.receiver, .receiver = pair.sender};
    connect_comm(&back);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slow_lanes_need_few_packets),
        cmocka_unit_test(a_message_waits_for_its_place),
        cmocka_unit_test(so_they_do_with_many_on_their_way),
    };

    return cmocka_run_group_tests(tests, pairs_begin, NULL);
}
