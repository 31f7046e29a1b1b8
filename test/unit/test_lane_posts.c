/* test_lane_posts.c: how often a sender gets the places of its messages: once, and then repeated now and then. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

#include "lane_pairs.h"

#define SIZE       20000
#define POST_BYTES 64 /* at least */
#define TURNS      30 /* of 10 ms: a repeated report may wait for a device without a processor */

static uint64_t bytes_of(const struct lane_set *set)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < LANE_MAX; i++) {
        sum += set->streams[i] != NULL ? set->streams[i]->bytes_out : 0;
    }
    return sum;
}

static uint64_t epochs(const struct pair *pair)
{
    return epochs_of(pair->sender.transport) + epochs_of(pair->receiver.transport);
}

/* From here on lanes are watched. Returns a value that identifies them. */
static uint64_t watch_lanes(const struct pair *pair)
{
    said_words = "doubted";
    said_count = 0;
    return epochs(pair);
}

/* True if they are the same lanes, and none was doubted. If the device's thread gets no processor, a lane may be given up, with
 * its bytes. Then places are sent again. */
static bool are_the_same(const struct pair *pair, uint64_t then)
{
    return epochs(pair) == then && said_count == 0 && over_pairs(pair->sender.transport) == LANES &&
           over_pairs(pair->receiver.transport) == LANES;
}

/* Repeats a play until its lanes were the same to the end: then it is judged. */
static void until_judged(bool (*play)(void))
{
    bool judged = false;

    for (int tries = 0; tries < 10 && !judged; tries++) {
        judged = play();
    }
    assert_true(judged);
}

/* Polls so often, each 100 us. Returns how many bytes were sent meanwhile. */
static uint64_t poll_for(struct pair *pair, struct transport_request *receive, int polls)
{
    const uint64_t before = bytes_of(pair->in->set);
    bool done = false;

    for (int i = 0; i < polls; i++) {
        trouble_skipped_ns += 100000;
        assert_int_equal(transport_test(receive, &done, NULL), 0);
        assert_false(done);
        if (i % 8 == 0) {
            usleep(100);
            serve(pair);
        }
    }
    return bytes_of(pair->in->set) - before;
}

/* True if all places of its receives were sent. */
static bool is_told(const struct transport_comm *comm)
{
    uint64_t placed, posted;

    assert_true(ledger_comm_progress(comm->set->ledger, comm->number, &placed, &posted));
    return comm->posts_told == posted && !comm->posts_left;
}

/* As many receives as a communicator may have wait for a sender that has nothing to send yet. */
static bool play_one(void)
{
    struct transport_request *receives[TRANSPORT_REQUEST_MAX] = {0};
    struct pair pair;

    direct = true;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    const uint64_t then = watch_lanes(&pair);
    for (int i = 0; i < TRANSPORT_REQUEST_MAX; i++) {
        assert_int_equal(transport_receive(pair.in, in_bytes + (size_t)i * SIZE, SIZE, 7, false,
                                           NULL, &receives[i]),
                         0);
        assert_non_null(receives[i]);
    }
    (void)poll_for(&pair, receives[0], 500);
    const uint64_t told = poll_for(&pair, receives[0], 1000);
    for (int i = 0; i < TURNS && !is_told(pair.in); i++) {
        (void)poll_for(&pair, receives[0], 100);
    }
    const bool judged = are_the_same(&pair, then);
    if (judged) {
        assert_true(told < 12 * TRANSPORT_REQUEST_MAX * POST_BYTES);
        assert_true(is_told(pair.in));
    }
    pair_close(&pair);
    direct = false;
    return judged;
}

static void places_of_one(void **state)
{
    (void)state;
    until_judged(play_one);
}

/* The same with many communicators of eight receives each: sending their places takes longer than the 5 ms after which they would
 * be repeated. */
static bool play_many(void)
{
    enum { COMMS = 150, EACH = 8 };
    static struct transport_comm *in[COMMS], *out[COMMS];
    struct transport_request *receive = NULL;
    struct pair pair;
    int whole = 0;

    direct = true;
    pair_open(&pair);
    struct transport_comm *first_in = pair.in, *first_out = pair.out;
    for (int i = 0; i < COMMS; i++) {
        connect_comm(&pair);
        in[i] = pair.in;
        out[i] = pair.out;
    }
    pair.in = first_in;
    pair.out = first_out;
    wait_for(&pair, 4, 4);
    const uint64_t then = watch_lanes(&pair);
    for (int i = 0; i < COMMS * EACH; i++) {
        assert_int_equal(transport_receive(in[i / EACH], in_bytes + i % EACH * SIZE, SIZE, 7, false,
                                           NULL, &receive),
                         0);
        assert_non_null(receive);
    }
    (void)poll_for(&pair, receive, 3000);
    for (int i = 0; i < TURNS && whole < COMMS; i++) {
        (void)poll_for(&pair, receive, 100);
        whole = 0;
        for (int k = 0; k < COMMS; k++) {
            whole += is_told(in[k]);
        }
    }
    const uint64_t told = poll_for(&pair, receive, 1000);
    const bool judged = are_the_same(&pair, then);
    if (judged) {
        assert_int_equal(whole, COMMS);
        /* Each place once in 100 ms: as often as the ledger repeats a report by then. */
        assert_true(told < 3ull * COMMS * EACH * POST_BYTES);
    }
    for (int i = 0; i < COMMS; i++) {
        transport_close(in[i]);
        transport_close(out[i]);
    }
    pair_close(&pair);
    direct = false;
    return judged;
}

static void places_of_many(void **state)
{
    (void)state;
    until_judged(play_many);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(places_of_one),
                                       cmocka_unit_test(places_of_many)};

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, pairs_begin, NULL);
}
