/* test_lane_copy.c: lanes over queue pairs, from end to end: two transports, libibverbs' functions and a device of our own whose
 * wire is UDP on the loopback (test/rdma/fake.h). The simulator's worlds have the faults; here the drivers are real. */
#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../rdma/fake.h"
#include "transport/lane_pair.h"
#include "transport_pair.h"

#define PATIENCE_MS 60000 /* for what must happen, on a machine that has little time for us */

static struct fake_control *fake;

static int begin(void **state)
{
    setenv("FOLIOT_FAKE_VERBS_WIRE", "lo1=127.0.0.1 lo2=127.0.0.2", 1);
    void *library = dlopen(verbs_library(), RTLD_NOW);
    fake_control_function control;

    (void)state;
    assert_non_null(library);
    void *found = dlsym(library, "fake_control");
    assert_non_null(found);
    memcpy(&control, &found, sizeof(control));
    fake = control();
    *fake = (struct fake_control){0};
    queue_pairs = true;
    return 0;
}

/* How many lanes write to a queue pair and read from it. */
static uint32_t over_pairs(const struct transport *t)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < t->set_count; i++) {
        for (uint32_t lane = 0; t->sets[i] != NULL && lane < LANE_MAX; lane++) {
            const struct stream *stream = t->sets[i]->streams[lane];
            count += stream != NULL && stream->qp != NULL && stream->qp->in &&
                     lane_pair_writes(stream, stream->qp);
        }
    }
    return count;
}

/* Serves until so many lanes of both ends do. */
static void wait_for(struct pair *pair, uint32_t least, uint32_t most)
{
    const struct timespec pause = {
        .tv_nsec = 200000}; /* the device is a thread: it needs a processor, too */
    uint32_t out = 0, in = 0;

    for (int i = 0; i < PATIENCE_MS * 5; i++) {
        out = over_pairs(pair->sender.transport);
        in = over_pairs(pair->receiver.transport);
        if (out >= least && out <= most && in >= least && in <= most) {
            return;
        }
        if (i % 64 == 0) { /* so that dead lanes are noticed, and those that are down made anew */
            exchange(pair, 100, 100, true, (uint64_t)i);
        }
        serve(pair);
        (void)nanosleep(&pause, NULL);
    }
    fail_msg("%u and %u lanes over queue pairs, wanted %u to %u", out, in, least, most);
}

static void test_messages(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair);
    exchange(&pair, 100000, 100000, true, 1); /* over TCP: nothing waits for queue pairs */
    wait_for(&pair, 4, 4);
    for (uint64_t i = 0; i < 40; i++) {
        exchange(&pair, i % 3 == 0 ? i : i * 20011, i * 20011 + 8, i % 2 == 0, i);
    }
    wait_for(&pair, 4, 4);
    pair_close(&pair);
}

/* Every path that carries queue pairs swallows all: the lanes come back over TCP, and go home afterwards. */
static void test_dead_paths(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    fake->drop = true;
    exchange(&pair, 500000, 500000, true, 7);
    wait_for(&pair, 0, 0);
    exchange(&pair, 500000, 500000, true, 8);
    fake->drop = false;
    wait_for(&pair, 4, 4);
    exchange(&pair, 500000, 500000, true, 9);
    pair_close(&pair);
}

/* A receiver that can't register memory refuses; a sender that can't doesn't offer. The lanes stay what they are. */
static void test_refused(void **state)
{
    struct pair pair;

    (void)state;
    fake->memlock = 4096;
    pair_open(&pair);
    for (uint64_t i = 0; i < 40; i++) {
        exchange(&pair, i * 20011, i * 20011, i % 2 == 0, i);
    }
    assert_int_equal(over_pairs(pair.sender.transport), 0);
    pair_close(&pair);
    fake->memlock = 0;
}

static void test_older_peer(void **state)
{
    struct pair pair;

    (void)state;
    version = 4;
    pair_open(&pair);
    for (uint64_t i = 0; i < 40; i++) {
        exchange(&pair, i * 20011, i * 20011, i % 2 == 0, i);
    }
    assert_int_equal(over_pairs(pair.sender.transport), 0);
    pair_close(&pair);
    version = 0;
}

/* The device goes, with all its queue pairs. */
static void test_device_gone(void **state)
{
    struct pair pair;

    (void)state;
    pair_open(&pair);
    wait_for(&pair, 4, 4);
    snprintf(fake->gone, sizeof(fake->gone), "*");
    exchange(&pair, 500000, 500000, true, 7);
    wait_for(&pair, 0, 0);
    exchange(&pair, 500000, 500000, true, 8);
    pair_close(&pair);
    fake->gone[0] = '\0';
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages),    cmocka_unit_test(test_dead_paths),
        cmocka_unit_test(test_refused),     cmocka_unit_test(test_older_peer),
        cmocka_unit_test(test_device_gone),
    };

    return cmocka_run_group_tests(tests, begin, NULL);
}
