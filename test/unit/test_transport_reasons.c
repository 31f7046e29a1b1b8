/* test_transport_reasons.c: calls that fail give the true reason. Bytes that a peer leaves in a handle have no effect. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/failover/sender_internal.h"
#include "transport_pair.h"

/* An impossible request. It closes nothing. */
static void what_cannot_be_asked(void **state)
{
    struct transport_request *request = NULL;
    struct pair pair;

    (void)state;
    pair_open(&pair);
    assert_int_equal(
        transport_send(pair.out, out_bytes, TRANSPORT_BYTES_MAX + 1, 7, NULL, &request), -EINVAL);
    assert_non_null(strstr(transport_why(), "expected up to 1 GiB"));
    assert_int_equal(transport_receive(pair.out, out_bytes, 100, 7, false, NULL, &request),
                     -EINVAL);
    assert_non_null(strstr(transport_why(), "expected up to 1 GiB"));
    exchange(&pair, 100, 100, true, 1);
    pair_close(&pair);
}

/* A failure without a text of its own must not have that of an earlier one. */
static void each_failure_has_its_own_reason(void **state)
{
    static uint64_t states[SET_COMMS_MAX + 8];
    uint8_t handle[TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listener;
    struct transport_comm *comm = NULL;
    struct pair pair;
    uint64_t none = 0;
    int r = 0;

    (void)state;
    pair_open(&pair);
    assert_int_equal(transport_listen(pair.receiver.transport, 0, handle, &listener), 0);
    assert_int_equal(transport_connect(pair.sender.transport, 5, handle, &none, &comm), -EINVAL);
    assert_string_equal(transport_why(), "there is no device 5");
    for (int i = 0; r == 0 && i < SET_COMMS_MAX + 8; i++) {
        r = transport_connect(pair.sender.transport, 0, handle, &states[i], &comm);
    }
    assert_int_equal(r, -ENOBUFS);
    assert_non_null(strstr(transport_why(), "communicators to this one (1,024)"));
    transport_close_listener(listener);
    pair_close(&pair);
}

/* The state of a connect is in the handle's scratch, and the handle comes from the peer: bytes that the peer left there must not
 * name another communicator of ours. */
static void a_handle_names_no_other_connect(void **state)
{
    uint8_t handles[2][TRANSPORT_HANDLE_SIZE];
    struct transport_listener *listeners[2];
    struct transport_comm *out[2] = {NULL, NULL}, *in = NULL;
    uint64_t states[2] = {0};
    struct pair pair;
    struct handle words;

    (void)state;
    pair_open(&pair);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(transport_listen(pair.receiver.transport, 0, handles[i], &listeners[i]),
                         0);
    }
    assert_int_equal(transport_connect(pair.sender.transport, 0, handles[0], &states[0], &out[0]),
                     0);
    assert_null(out[0]);
    states[1] = states[0]; /* they count from 1, and are easily guessed */
    for (int i = 0; i < STEPS_MAX && (out[0] == NULL || out[1] == NULL); i++) {
        for (int k = 1; k >= 0; k--) {
            assert_int_equal(out[k] != NULL ? 0
                                            : transport_connect(pair.sender.transport, 0,
                                                                handles[k], &states[k], &out[k]),
                             0);
        }
        serve(&pair);
    }
    for (int k = 0; k < 2; k++) {
        assert_non_null(out[k]);
        assert_int_equal(handle_decode(handles[k], &words), LANE_ERROR_NONE);
        assert_int_equal(out[k]->cookie, words.cookie);
        transport_close(out[k]);
        assert_int_equal(transport_accept(listeners[k], &in), 0);
        transport_close(in);
        transport_close_listener(listeners[k]);
    }
    pair_close(&pair);
}

/* An invariant of the sender is broken: nothing goes on, and waiting requests fail. */
static void a_senders_bug_is_told(void **state)
{
    struct transport_request *send = NULL, *receive = NULL;
    struct pair pair;
    bool done = false;
    int r = 0;

    (void)state;
    pair_open(&pair);
    assert_int_equal(transport_send(pair.out, out_bytes, sizeof(out_bytes), 7, NULL, &send),
                     0); /* more than fits at once */
    (void)bug_noted(&pair.out->set->sender->bug, "planted", __FILE__, __LINE__);
    assert_int_equal(
        transport_receive(pair.in, in_bytes, sizeof(in_bytes), 7, false, NULL, &receive), 0);
    for (int i = 0; i < 1000 && r == 0; i++) { /* without waiting for the patience */
        skip_ms(1);
        serve(&pair);
        r = transport_test(send, &done, NULL);
        assert_false(done);
    }
    assert_int_equal(r, -ENOTRECOVERABLE);
    assert_non_null(strstr(transport_why(), "a bug of Foliot's own: planted does not hold"));
    pair_close(&pair);
    pair_open(&pair); /* and at once, if a send finds it */
    (void)bug_noted(&pair.out->set->sender->bug, "planted", __FILE__, __LINE__);
    assert_int_equal(transport_send(pair.out, out_bytes, 100, 7, NULL, &send), -ENOTRECOVERABLE);
    assert_non_null(strstr(transport_why(), "planted"));
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_asked),
        cmocka_unit_test(each_failure_has_its_own_reason),
        cmocka_unit_test(a_handle_names_no_other_connect),
        cmocka_unit_test(a_senders_bug_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
