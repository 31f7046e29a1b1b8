/* test_transport_memory.c: memory that is given back: it isn't touched any more, a request that still waited for it fails, and no
 * other does. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "lane_pairs.h"

#define SIZE 500000

static uint8_t *map(size_t size)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    assert_true(bytes != MAP_FAILED);
    return bytes;
}

/* Chooses a way: connections, queue pairs that copy, or queue pairs that write. */
static void way(int number)
{
    queue_pairs = number > 0;
    direct = number > 1;
}

static void open_way(struct pair *pair, int number)
{
    way(number);
    pair_open(pair);
    if (number > 0) {
        wait_for(pair, 4, 4);
    }
}

static void close_way(struct pair *pair)
{
    pair_close(pair);
    way(1);
}

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

static void serve_some(struct pair *pair)
{
    for (int i = 0; i < 200; i++) {
        skip_ms(1);
        serve(pair);
    }
}

/* As in an abort: memory is given back, then its pages; the communicator is closed last. Another communicator of the same
 * processes goes on. */
static void given_back_under(int number, bool sends, bool matched)
{
    struct transport_request *request = NULL, *others = NULL;
    struct transport_memory *memory;
    struct pair pair;

    open_way(&pair, number);
    struct pair second = pair;
    connect_comm(&second);
    uint8_t *bytes = map(SIZE);
    struct transport *t = sends ? pair.sender.transport : pair.receiver.transport;
    assert_int_equal(transport_memory_add(t, bytes, SIZE, &memory), 0);
    if (sends) {
        assert_int_equal(transport_send(pair.out, bytes, SIZE, 7, NULL, &request), 0);
        if (matched) { /* it is on its way, and no receive takes it */
            assert_int_equal(transport_receive(pair.in, in_bytes, SIZE, 7, false, NULL, &others),
                             0);
        }
    } else {
        assert_int_equal(transport_receive(pair.in, bytes, SIZE, 7, false, NULL, &request), 0);
        if (matched) {
            assert_int_equal(transport_send(pair.out, out_bytes, SIZE, 7, NULL, &others), 0);
        }
    }
    for (int i = 0; i < 3; i++) {
        bool done = false;
        assert_int_equal(transport_test(request, &done, NULL), 0);
        assert_false(done);
    }
    transport_memory_remove(t, memory);
    munmap(bytes, SIZE);
    serve_some(&pair);
    await_failure(&pair, request, -ECANCELED);
    assert_non_null(strstr(transport_why(), "memory was given back"));
    exchange(&second, 100000, 100000, true, 1);
    transport_close(sends ? pair.out : pair.in);
    if (others != NULL) {
        await_failure(&pair, others, -ECONNABORTED);
    }
    transport_close(sends ? pair.in : pair.out);
    exchange(&second, 200000, 200000, false, 2);
    close_way(&second);
}

static void test_given_back_under_sends(void **state)
{
    (void)state;
    for (int number = 0; number < 3; number++) {
        given_back_under(number, true, false);
        given_back_under(number, true, true);
    }
}

static void test_given_back_under_receives(void **state)
{
    (void)state;
    for (int number = 0; number < 3; number++) {
        given_back_under(number, false, false);
        given_back_under(number, false, true);
    }
}

/* Memory beside a request's, memory that is also registered a second time or within a larger range, memory of completed
 * requests. */
static void test_given_back_to_nobodys_harm(void **state)
{
    struct transport_request *send = NULL, *receive = NULL;
    struct transport_memory *memory[5];
    struct pair pair;
    bool sent = false, came = false;

    (void)state;
    for (int number = 0; number < 3; number++) {
        open_way(&pair, number);
        struct transport *t = pair.sender.transport;
        uint8_t *bytes = map((size_t)4 * SIZE);
        sent = came = false;
        assert_int_equal(transport_memory_add(t, bytes, SIZE, &memory[0]), 0);
        assert_int_equal(transport_memory_add(t, bytes, SIZE, &memory[1]), 0);
        assert_int_equal(transport_memory_add(t, bytes, (size_t)2 * SIZE, &memory[2]), 0);
        assert_int_equal(transport_memory_add(t, bytes + SIZE, SIZE, &memory[3]), 0);
        assert_int_equal(transport_memory_add(t, bytes + 3 * SIZE, SIZE, &memory[4]), 0);
        fill(bytes, SIZE, 5);
        assert_int_equal(transport_send(pair.out, bytes, SIZE, 7, NULL, &send), 0);
        for (int i = 4; i > 0; i--) { /* the first one still holds it */
            transport_memory_remove(t, memory[i]);
        }
        assert_int_equal(transport_receive(pair.in, in_bytes, SIZE, 7, false, NULL, &receive), 0);
        while (!sent || !came) {
            assert_int_equal(sent ? 0 : transport_test(send, &sent, NULL), 0);
            assert_int_equal(came ? 0 : transport_test(receive, &came, NULL), 0);
            serve(&pair);
        }
        fill(bytes, SIZE, 5);
        assert_memory_equal(bytes, in_bytes, SIZE);
        receive = NULL;
        assert_int_equal(transport_receive(pair.in, in_bytes, SIZE, 7, false, NULL, &receive), 0);
        transport_memory_remove(t, memory[0]); /* the request in it is done */
        munmap(bytes, (size_t)4 * SIZE);
        assert_int_equal(transport_test(receive, &came, NULL), 0);
        assert_int_equal(transport_send(pair.out, out_bytes, SIZE, 7, NULL, &send), 0);
        for (came = false; !came; serve(&pair)) {
            assert_int_equal(transport_test(receive, &came, NULL), 0);
        }
        for (sent = false; !sent; serve(&pair)) {
            assert_int_equal(transport_test(send, &sent, NULL), 0);
        }
        close_way(&pair);
    }
}

static uint64_t drawn(uint64_t *seed, uint64_t below)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % below;
}

/* Buffers of very many communicators, some within others, come and go in any order: a look-up gives the same as a search of all
 * of them. */
static void test_many_ranges(void **state)
{
    enum { COUNT = 4500, PAGE = 4096, PAGES = 3 * COUNT, LARGE = 200, ASKED = 2000 };
    static struct transport_memory *known[COUNT];
    static uint8_t *at[COUNT];
    static size_t sizes[COUNT];
    uint8_t *all = map((size_t)PAGES * PAGE);
    struct io_rdma_memory keys;
    struct pair pair;
    uint64_t seed = 7;

    (void)state;
    open_way(&pair, 2);
    struct transport *t = pair.sender.transport;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            if (known[i] == NULL) {
                sizes[i] = (i % 500 == 0 ? LARGE : 1 + drawn(&seed, 2)) * PAGE;
                at[i] = all + drawn(&seed, PAGES - LARGE) * PAGE;
                assert_int_equal(transport_memory_add(t, at[i], sizes[i], &known[i]), 0);
            }
        }
        for (int i = 0; i < COUNT; i++) { /* a third of them goes, a different one each time */
            if (i % 3 == round) {
                transport_memory_remove(t, known[i]);
                known[i] = NULL;
            }
        }
        for (int i = 0; i < ASKED; i++) {
            const uint8_t *data = all + drawn(&seed, PAGES - LARGE) * PAGE + 100;
            const size_t size = 1 + drawn(&seed, 2 * PAGE);
            bool held = false;
            for (int k = 0; k < COUNT && !held; k++) {
                held = known[k] != NULL && data >= at[k] && data + size <= at[k] + sizes[k];
            }
            assert_int_equal(memory_keys(t, data, size, &keys), held);
        }
    }
    for (int i = COUNT - 1; i >= 0; i--) {
        transport_memory_remove(t, known[i]);
    }
    assert_false(memory_keys(t, all, 1, &keys));
    close_way(&pair);
    munmap(all, (size_t)PAGES * PAGE);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_given_back_under_sends),
        cmocka_unit_test(test_given_back_under_receives),
        cmocka_unit_test(test_given_back_to_nobodys_harm),
        cmocka_unit_test(test_many_ranges),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, pairs_begin, NULL);
}
