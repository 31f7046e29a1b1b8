/* lane_pairs.c: see lane_pairs.h. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "lane_pairs.h"
#include "transport/lane_pair.h"

struct fake_control *fake;
fake_event_function fake_event;

int pairs_begin(void **state)
{
    setenv("FOLIOT_FAKE_VERBS_WIRE", verbs_devices, 1);
    void *library = dlopen(verbs_library(), RTLD_NOW);
    fake_control_function control;

    (void)state;
    assert_non_null(library);
    void *found = dlsym(library, "fake_control"), *also = dlsym(library, "fake_event");
    assert_true(found != NULL && also != NULL);
    memcpy(&control, &found, sizeof(control));
    memcpy(&fake_event, &also, sizeof(fake_event));
    fake = control();
    *fake = (struct fake_control){0};
    queue_pairs = true;
    return 0;
}

uint32_t over_pairs(const struct transport *t)
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

uint64_t epochs_of(const struct transport *t)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < t->set_count; i++) {
        for (uint32_t lane = 0; t->sets[i] != NULL && lane < LANE_MAX; lane++) {
            const struct stream *stream = t->sets[i]->streams[lane];
            sum += stream != NULL ? stream->epoch : 0;
        }
    }
    return sum;
}

void wait_for(struct pair *pair, uint32_t least, uint32_t most)
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
        if (i % 64 == 0) { /* so that dead lanes are noticed, and closed ones are made again */
            exchange(pair, 100, 100, true, (uint64_t)i);
        }
        serve(pair);
        (void)nanosleep(&pause, NULL);
    }
    fail_msg("%u and %u lanes over queue pairs, wanted %u to %u", out, in, least, most);
}

bool received(struct pair *pair, struct transport_request *receive, int ms)
{
    bool done = false;

    for (int i = 0; i < ms && !done; i++) {
        serve(pair);
        usleep(1000);
        assert_int_equal(transport_test(receive, &done, NULL), 0);
    }
    return done;
}
