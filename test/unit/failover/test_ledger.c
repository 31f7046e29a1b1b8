/* test_ledger.c: if a peer does something that our sender never does, that is the peer's error, not a bug of ours. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/failover/ledger.h"

static const struct mono now = {1000};

static struct ledger *ledger_begun(bool fenced)
{
    const struct ledger_config config = {.slots = LANE_EAGER_SLOTS_MAX,
                                         .large = LANE_LARGE_SLOTS,
                                         .comms = SET_COMMS_MAX,
                                         .fenced = fenced};
    struct ledger *l = ledger_new(&config);

    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(ledger_lane_open(l, i, 1, fenced ? LEDGER_WRITES : LEDGER_READS), 0);
    }
    assert_int_equal(ledger_comm_open(l, 0, 1), 0);
    return l;
}

static struct lane_chunk eager(uint32_t lane, uint64_t message, uint8_t slot)
{
    return (struct lane_chunk){.flags = LANE_CHUNK_EAGER | LANE_CHUNK_LAST,
                               .lane = (uint16_t)lane,
                               .epoch = 1,
                               .message = message,
                               .length = 100,
                               .size = 100,
                               .grid = LANE_CHUNK_SHIFT_MIN,
                               .slot = slot};
}

/* A sender uses a bounce slot for another message before the first one was placed: that lane is closed. */
static void a_slot_used_twice(void **state)
{
    struct ledger *l = ledger_begun(false);
    struct ledger_target target;
    struct ledger_copy copy;
    struct lane_chunk c = eager(0, 5, 3);

    (void)state;
    assert_int_equal(ledger_begin(l, now, 0, 1, &c, &target), LEDGER_OK);
    assert_int_equal(target.place, LEDGER_SLOT);
    c = eager(1, 5, 3);
    assert_int_equal(ledger_begin(l, now, 1, 1, &c, &target), LEDGER_OK);
    assert_int_equal(target.place, LEDGER_STAGING);
    ledger_lane_down(l, 0, 1);
    c = eager(2, 6, 3);
    assert_int_equal(ledger_begin(l, now, 2, 1, &c, &target), LEDGER_OK);
    assert_int_equal(ledger_got(l, 1, 1, 100), LEDGER_OK);
    assert_int_equal(ledger_end(l, now, 1, 1, true, &copy), LEDGER_LANE_DOWN);
    assert_null(ledger_bug(l));
    assert_false(ledger_broken(l));
    ledger_free(l);
}

/* A sender writes a chunk that was there already: its NIC must not write there, so nothing more is delivered. */
static void a_chunk_written_twice(void **state)
{
    static uint8_t to[20000];
    struct lane_chunk c = {.flags = LANE_CHUNK_WRITTEN,
                           .epoch = 1,
                           .length = 8192,
                           .size = sizeof(to),
                           .grid = LANE_CHUNK_SHIFT_MIN};
    const struct ledger_receive receive = {
        .cookie = 1, .count = 1, .buffers = {{.data = to, .size = sizeof(to)}}};
    struct ledger_copy copy;
    uint64_t first;

    (void)state;
    for (int whole = 0; whole < 2; whole++) { /* of the completed message, and of one that isn't */
        struct ledger *l = ledger_begun(true);
        c.flags = LANE_CHUNK_WRITTEN | (whole ? LANE_CHUNK_LAST : 0);
        c.size = whole ? c.length : sizeof(to);
        assert_int_equal(ledger_post(l, now, 0, &receive, &first, &copy), 0);
        assert_int_equal(ledger_on_written(l, now, 0, 1, &c, true, &copy), LEDGER_OK);
        assert_int_equal(ledger_on_written(l, now, 0, 1, &c, true, &copy), LEDGER_BROKEN);
        assert_null(ledger_bug(l));
        assert_true(ledger_broken(l));
        ledger_free(l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_slot_used_twice),
                                       cmocka_unit_test(a_chunk_written_twice)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
