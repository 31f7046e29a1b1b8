/* Lane frames and the rendezvous handle: a decoded frame equals the encoded one. A flipped bit, a short frame, a stranger, and
 * another job or version are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "base/prng.h"
#include "wire/crc32c.h"
#include "wire/handle.h"
#include "wire/lane.h"
#include "wire/lane_nics.h"
#include "wire/lane_qp.h"

static const uint8_t key[LANE_KEY_SIZE] = "job key 0123456",
                     other_key[LANE_KEY_SIZE] = "another job    ";
static const uint8_t nonce[LANE_NONCE_SIZE] = "nonce of handle",
                     other_nonce[LANE_NONCE_SIZE] = "other          ";

static struct lane_chunk sample(struct prng *p)
{
    struct lane_chunk c = {
        .lane = (uint16_t)prng_below(p, LANE_MAX),
        .epoch = 1 + (uint32_t)prng_below(p, 1000),
        .comm = (uint32_t)prng_below(p, 1000),
        .tag = (int32_t)prng_u64(p),
        .message = prng_u64(p),
        .sent.ns = 1790000000000000000 + (int64_t)prng_below(p, 1000000),
        .sent_bound_ns = 120,
        .queued_ns = 77,
    };

    c.size = (uint32_t)prng_below(p, prng_below(p, 2) ? 10000 : LANE_MESSAGE_SIZE_MAX + 1ULL);
    c.grid = lane_grid(c.size, 1u << (10 + prng_below(p, 12)));
    c.offset = (uint32_t)prng_below(p, lane_chunk_count(c.size, c.grid)) << c.grid;
    c.length = c.size - c.offset < 1u << c.grid ? c.size - c.offset : 1u << c.grid;
    c.flags = c.offset + c.length == c.size ? LANE_CHUNK_LAST : 0;
    if (prng_below(p, 2)) {
        c.flags |= LANE_CHUNK_PAYLOAD_CRC;
        c.payload_crc = (uint32_t)prng_u64(p);
    }
    if (c.size <= LANE_EAGER_SIZE_MAX && prng_below(p, 2)) {
        c.flags |= LANE_CHUNK_EAGER;
        c.slot = (uint8_t)prng_below(p, LANE_EAGER_SLOTS_MAX);
    }
    return c;
}

static void test_crc(void **state)
{
    static uint8_t bytes[8000];
    struct prng p;

    prng_init(&p, 1);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)prng_u64(&p);
    }
    assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283u); /* RFC 3720's check value */
    for (int i = 0; i < 500; i++) {
        const size_t at = prng_below(&p, 64), size = prng_below(&p, sizeof(bytes) - 64);
        const size_t cut = prng_below(&p, size + 1);
        const uint32_t whole = crc32c_portable(0, bytes + at, size);
        assert_int_equal(crc32c(0, bytes + at, size), whole);
        assert_int_equal(crc32c_instruction(0, bytes + at, size), whole);
        assert_int_equal(crc32c(crc32c(0, bytes + at, cut), bytes + at + cut, size - cut), whole);
    }
}

static void test_chunk(void **state)
{
    uint8_t bytes[LANE_CHUNK_SIZE];
    struct lane_chunk c, read;
    struct prng p;

    prng_init(&p, 2);
    for (int i = 0; i < 2000; i++) {
        c = sample(&p);
        lane_chunk_encode(bytes, &c, 2);
        assert_int_equal(lane_frame_size(bytes, 2), LANE_CHUNK_SIZE);
        memset(&read, 0, sizeof(read));
        assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 2, &read), LANE_ERROR_NONE);
        assert_true(read.message == c.message && read.offset == c.offset &&
                    read.length == c.length && read.size == c.size && read.grid == c.grid &&
                    read.flags == c.flags && read.comm == c.comm && read.tag == c.tag &&
                    read.epoch == c.epoch && read.lane == c.lane && read.slot == c.slot &&
                    read.queued_ns == 77 && read.sent.ns == c.sent.ns &&
                    read.payload_crc == c.payload_crc);
        lane_chunk_encode(bytes, &c, 1); /* an older peer */
        assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 1, &read), LANE_ERROR_NONE);
        assert_int_equal(read.queued_ns, 0);
        bytes[prng_below(&p, sizeof(bytes))] ^= (uint8_t)(1 << prng_below(&p, 8));
        assert_int_not_equal(lane_chunk_decode(bytes, sizeof(bytes), 1, &read), LANE_ERROR_NONE);
    }
    assert_int_equal(lane_chunk_decode(bytes, LANE_CHUNK_SIZE - 1, 2, &read), LANE_ERROR_SHORT);
}

/* A header with a right checksum and a wrong place. */
static void test_chunk_off_grid(void **state)
{
    const struct lane_chunk good = {
        .lane = 1, .epoch = 1, .grid = 13, .offset = 8192, .length = 8192, .size = 20000};
    struct lane_chunk bad, read;
    uint8_t bytes[LANE_CHUNK_SIZE];

    for (int i = 0; i < 10; i++) {
        bad = good;
        switch (i) {
        case 1:
            bad.offset = 8000;
            break;
        case 2:
            bad.length = 8191;
            break;
        case 3:
            bad.size = LANE_MESSAGE_SIZE_MAX + 1;
            break;
        case 4:
            bad.grid = 12;
            break;
        case 5:
            bad.offset = 24576;
            bad.length = 0;
            break;
        case 6:
            bad.offset = UINT32_MAX - 8191;
            break;
        case 7:
            bad.lane = LANE_MAX;
            break;
        case 8:
            bad.slot = 1;
            break;
        case 9:
            bad.flags = LANE_CHUNK_EAGER;
            break;
        default:
            break;
        }
        lane_chunk_encode(bytes, &bad, 2);
        assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 2, &read),
                         i == 0 ? LANE_ERROR_NONE : LANE_ERROR_RANGE);
    }
}

/* Fields that an older receiver doesn't have aren't sent to it. */
static void test_kept(void **state)
{
    struct lane_chunk chunk = {.flags = LANE_CHUNK_KEPT, .epoch = 1, .grid = 13, .length = 9}, read;
    uint8_t bytes[LANE_CHUNK_SIZE];

    (void)state;
    chunk.size = chunk.length;
    lane_chunk_encode(bytes, &chunk, 4);
    assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 4, &read), LANE_ERROR_NONE);
    assert_int_equal(read.flags, LANE_CHUNK_KEPT | LANE_CHUNK_LAST);
    assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 3, &read), LANE_ERROR_RESERVED);
    lane_chunk_encode(bytes, &chunk, 3);
    assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 3, &read), LANE_ERROR_NONE);
    assert_int_equal(read.flags, LANE_CHUNK_LAST);
}

/* Since version 3 large messages may come early, complete. */
static void test_large_eager(void **state)
{
    struct lane_chunk chunk = {.flags = LANE_CHUNK_EAGER,
                               .epoch = 1,
                               .grid = 16,
                               .length = LANE_LARGE_SIZE_MAX,
                               .size = LANE_LARGE_SIZE_MAX},
                      read;
    uint8_t bytes[LANE_CHUNK_SIZE];

    lane_chunk_encode(bytes, &chunk, 3);
    assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 3, &read), LANE_ERROR_NONE);
    assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 2, &read), LANE_ERROR_RANGE);
    chunk.grid = 15;
    chunk.length = 1u << 15;
    lane_chunk_encode(bytes, &chunk, 3);
    assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 3, &read), LANE_ERROR_RANGE);
    chunk.grid = 17;
    chunk.size = chunk.length = LANE_LARGE_SIZE_MAX + 1;
    lane_chunk_encode(bytes, &chunk, 3);
    assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 3, &read), LANE_ERROR_RANGE);
}

/* Since version 8 also those of a whole chunk, but no part of one. */
static void test_whole_chunk_eager(void **state)
{
    struct lane_chunk chunk = {.flags = LANE_CHUNK_EAGER,
                               .epoch = 1,
                               .grid = LANE_CHUNK_SHIFT_MAX,
                               .length = 1u << LANE_CHUNK_SHIFT_MAX,
                               .size = 1u << LANE_CHUNK_SHIFT_MAX},
                      read;
    uint8_t bytes[LANE_CHUNK_SIZE];

    (void)state;
    lane_chunk_encode(bytes, &chunk, 8);
    assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 8, &read), LANE_ERROR_NONE);
    assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 7, &read), LANE_ERROR_RANGE);
    chunk.size++;
    lane_chunk_encode(bytes, &chunk, 8);
    assert_int_equal(lane_chunk_decode(bytes, sizeof(bytes), 8, &read), LANE_ERROR_RANGE);
}

static void test_report(void **state)
{
    const struct lane_report r = {.receivers = 3,
                                  .sequence = 9,
                                  .comm = 4,
                                  .placed = 5,
                                  .posted = 7,
                                  .granted = UINT64_MAX,
                                  .now.ns = 12,
                                  .lane_count = 2,
                                  .lanes = {{.lane = 3,
                                             .state = LANE_DOWN,
                                             .reason = LANE_REASON_CARRIER,
                                             .epoch = 8,
                                             .taken = 1ULL << 40,
                                             .owd_min_ns = 5000,
                                             .owd_ns = 6000},
                                            {.lane = 0, .state = LANE_ACTIVE, .epoch = 1}}};
    uint8_t bytes[LANE_STATE_SIZE_MAX];
    struct lane_report read, twice = r;
    size_t size = lane_report_encode(bytes, &r, 2);

    assert_int_equal(size, LANE_STATE_HEAD_SIZE + 2 * LANE_STATE_LANE_SIZE);
    assert_int_equal(lane_frame_size(bytes, size), size);
    assert_int_equal(lane_report_decode(bytes, size, 2, &read), LANE_ERROR_NONE);
    assert_true(read.placed == 5 && read.posted == 7 && read.comm == 4 &&
                read.granted == UINT64_MAX && read.receivers == 3);
    assert_true(read.lanes[0].lane == 3 && read.lanes[0].state == LANE_DOWN &&
                read.lanes[0].taken == 1ULL << 40 && read.lanes[0].owd_ns == 6000);
    assert_int_equal(lane_report_decode(bytes, size - 1, 2, &read), LANE_ERROR_SHORT);
    for (size_t i = 0; i < size; i++) {
        bytes[i] ^= 4;
        assert_int_not_equal(lane_report_decode(bytes, size, 2, &read), LANE_ERROR_NONE);
        bytes[i] ^= 4;
    }
    size = lane_report_encode(bytes, &r, 1);
    assert_int_equal(lane_report_decode(bytes, size, 1, &read), LANE_ERROR_NONE);
    assert_true(read.receivers == 0 && read.lanes[0].owd_ns == LANE_OWD_UNKNOWN);
    twice.lanes[1].lane = 3;
    size = lane_report_encode(bytes, &twice, 2);
    assert_int_equal(lane_report_decode(bytes, size, 2, &read), LANE_ERROR_RANGE);
    twice = r;
    twice.lanes[0].fenced_below = 9; /* the final report, which a peer of version 4 doesn't get */
    size = lane_report_encode(bytes, &twice, 4);
    assert_int_equal(lane_report_decode(bytes, size, 4, &read), LANE_ERROR_NONE);
    assert_int_equal(read.lanes[0].fenced_below, 0);
    size = lane_report_encode(bytes, &twice, LANE_FENCE_VERSION);
    assert_int_equal(lane_report_decode(bytes, size, 4, &read), LANE_ERROR_RESERVED);
    assert_int_equal(lane_report_decode(bytes, size, LANE_FENCE_VERSION, &read), LANE_ERROR_NONE);
    assert_int_equal(read.lanes[0].fenced_below, 9);
    twice.lanes[0].fenced_below = 8; /* of an epoch that isn't below */
    size = lane_report_encode(bytes, &twice, LANE_FENCE_VERSION);
    assert_int_equal(lane_report_decode(bytes, size, LANE_FENCE_VERSION, &read), LANE_ERROR_RANGE);
    twice = r;
    twice.placed = 8; /* beyond posted */
    size = lane_report_encode(bytes, &twice, 2);
    assert_int_equal(lane_report_decode(bytes, size, 2, &read), LANE_ERROR_RANGE);
}

/* Each key belongs to the device named beside it. In version 6 the k-th key is the k-th device's. */
static void test_keys(void **state)
{
    const struct lane_post post = {.count = 1, .size = 77, .keys = {2, {15, 3}, {1, 2}}};
    struct lane_post twice = post, beyond = post, many = post, read;
    uint8_t bytes[LANE_POST_SIZE];

    lane_post_encode(bytes, &post, LANE_KEYS_VERSION);
    assert_int_equal(lane_post_decode(bytes, sizeof(bytes), LANE_KEYS_VERSION, &read),
                     LANE_ERROR_NONE);
    assert_int_equal(lane_key_of(&read.keys, 15), 1);
    assert_int_equal(lane_key_of(&read.keys, 3), 2);
    assert_int_equal(lane_key_of(&read.keys, 0), 0);
    assert_int_equal(lane_post_decode(bytes, sizeof(bytes), LANE_POST_VERSION, &read),
                     LANE_ERROR_RESERVED);
    lane_post_encode(bytes, &post, LANE_POST_VERSION);
    assert_int_equal(lane_post_decode(bytes, sizeof(bytes), LANE_POST_VERSION, &read),
                     LANE_ERROR_NONE);
    assert_int_equal(lane_key_of(&read.keys, 0), 1);
    assert_int_equal(lane_key_of(&read.keys, 1), 2);
    assert_int_equal(lane_key_of(&read.keys, 15), 0);
    twice.keys.devices[1] = 15;
    beyond.keys.devices[1] = LANE_DEVICES_MAX;
    many.keys.count = LANE_POST_KEYS + 1;
    const struct lane_post *const bad[] = {&twice, &beyond, &many};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        lane_post_encode(bytes, bad[i], LANE_KEYS_VERSION);
        assert_int_equal(lane_post_decode(bytes, sizeof(bytes), LANE_KEYS_VERSION, &read),
                         LANE_ERROR_RANGE);
    }
    (void)state;
}

static void test_others(void **state)
{
    const struct lane_post post = {.index = 1,
                                   .count = 3,
                                   .comm = 5,
                                   .first = 9,
                                   .address = 1ULL << 45,
                                   .size = 77,
                                   .tag = -4,
                                   .keys = {2, {15, 3}, {1, 2}}};
    const struct lane_open open = {
        .group_max = 8, .traffic_class = 2, .comm = 6, .cookie = 7, .job = 8, .rank = 9};
    const struct lane_ping pong = {
        .answer = true, .lane = 2, .epoch = 3, .sequence = 4, .sent.ns = 5, .received.ns = 6};
    const struct lane_close close = {.flags = LANE_CLOSE_ABORT | LANE_CLOSE_SENDER,
                                     .reason = LANE_REASON_CLOSE,
                                     .comm = 1,
                                     .messages = 9,
                                     .placed = 8};
    const struct lane_refusal no = {
        .newest = 2, .lowest = 1, .reason = LANE_NO_YOURS, .context = 99};
    uint8_t bytes[LANE_FRAME_SIZE_MAX];
    struct lane_post post_read;
    struct lane_open open_read;
    struct lane_ping ping_read;
    struct lane_close close_read;
    struct lane_refusal no_read;

    lane_post_encode(bytes, &post, LANE_VERSION);
    assert_int_equal(lane_post_decode(bytes, LANE_POST_SIZE, LANE_VERSION, &post_read),
                     LANE_ERROR_NONE);
    assert_true(post_read.address == post.address && post_read.tag == -4);
    bytes[1] = 3;
    assert_int_equal(lane_post_decode(bytes, LANE_POST_SIZE, LANE_VERSION, &post_read),
                     LANE_ERROR_CRC);
    lane_open_encode(bytes, &open);
    assert_int_equal(lane_open_decode(bytes, LANE_OPEN_SIZE, &open_read), LANE_ERROR_NONE);
    assert_true(open_read.cookie == 7 && open_read.rank == 9 && open_read.group_max == 8);
    lane_ping_encode(bytes, &pong);
    assert_int_equal(lane_ping_decode(bytes, LANE_PING_SIZE, &ping_read), LANE_ERROR_NONE);
    assert_true(ping_read.answer && ping_read.sequence == 4 && ping_read.received.ns == 6);
    lane_close_encode(bytes, &close);
    assert_int_equal(lane_close_decode(bytes, LANE_CLOSE_SIZE, &close_read), LANE_ERROR_NONE);
    assert_true(close_read.flags == (LANE_CLOSE_ABORT | LANE_CLOSE_SENDER) &&
                close_read.messages == 9);
    lane_refusal_encode(bytes, &no);
    assert_int_equal(lane_refusal_decode(bytes, LANE_NO_SIZE, &no_read), LANE_ERROR_NONE);
    assert_true(no_read.reason == LANE_NO_YOURS && no_read.context == 99);
    assert_int_equal(lane_frame_size((const uint8_t *)"GET / HTTP", 10), 0);
}

static void test_hello(void **state)
{
    struct lane_hello hello = {.newest = LANE_VERSION,
                               .lowest = 1,
                               .lane = 2,
                               .joined = true,
                               .lanes = 6,
                               .epoch = 3,
                               .own_context = 11,
                               .peer_context = 12,
                               .set = 13,
                               .host = "node7",
                               .nic = "eth2",
                               .pid = 4242,
                               .rank = 5};
    uint8_t bytes[LANE_HELLO_SIZE], version[2];
    struct lane_hello read;
    uint64_t context;

    lane_hello_encode(bytes, &hello, nonce, key);
    assert_int_equal(lane_hello_context(bytes, sizeof(bytes), &context), LANE_ERROR_NONE);
    assert_int_equal(context, 12);
    assert_int_equal(lane_hello_decode(bytes, sizeof(bytes), nonce, key, &read, version),
                     LANE_ERROR_NONE);
    assert_true(read.epoch == 3 && read.lanes == 6 && read.pid == 4242);
    assert_true(read.joined && !read.standby);
    assert_string_equal(read.host, "node7");
    assert_int_equal(lane_hello_decode(bytes, sizeof(bytes), nonce, other_key, &read, version),
                     LANE_ERROR_TAG);
    assert_int_equal(lane_hello_decode(bytes, sizeof(bytes), other_nonce, key, &read, version),
                     LANE_ERROR_TAG); /* replayed */
    for (size_t i = 8; i < sizeof(bytes); i++) {
        bytes[i] ^= 1;
        assert_int_equal(lane_hello_decode(bytes, sizeof(bytes), nonce, key, &read, version),
                         LANE_ERROR_TAG);
        bytes[i] ^= 1;
    }
    hello.last_epoch = 2; /* the lane's earlier result: only for peers that agreed on version 5 */
    hello.last_taken = 1ULL << 33;
    lane_hello_encode(bytes, &hello, nonce, key);
    assert_int_equal(lane_hello_decode(bytes, sizeof(bytes), nonce, key, &read, version),
                     LANE_ERROR_NONE);
    assert_true(read.last_epoch == 2 && read.last_taken == 1ULL << 33 && !read.fenced);
    hello.last_epoch = 3; /* the one that it asks for */
    lane_hello_encode(bytes, &hello, nonce, key);
    assert_int_equal(lane_hello_decode(bytes, sizeof(bytes), nonce, key, &read, version),
                     LANE_ERROR_RANGE);
    hello.last_epoch = 0;
    hello.newest = 9; /* much newer, but it still supports ours */
    hello.lowest = 2;
    lane_hello_encode(bytes, &hello, nonce, key);
    assert_int_equal(lane_hello_decode(bytes, sizeof(bytes), nonce, key, &read, version),
                     LANE_ERROR_NONE);
    assert_int_equal(lane_version_agree(read.newest, read.lowest), LANE_VERSION);
    hello.lowest = LANE_VERSION + 1; /* and one that doesn't */
    lane_hello_encode(bytes, &hello, nonce, key);
    assert_int_equal(lane_hello_decode(bytes, sizeof(bytes), nonce, key, &read, version),
                     LANE_ERROR_VERSION);
    assert_true(version[0] == 9 && version[1] == LANE_VERSION + 1);
    assert_int_equal(lane_version_agree(1, 1), 1);
    assert_int_equal(lane_version_agree(1, 2), 0);
}

/* Names of a host and its interfaces may be anything: its greeting is read nevertheless. */
static void test_names(void **state)
{
    struct lane_hello hello = {.newest = LANE_VERSION,
                               .lowest = 1,
                               .lanes = 4,
                               .epoch = 1,
                               .host = "h\xc3\xb6st",
                               .nic = "d\x1b[2J\t0123456789"};
    struct lane_nics nics = {.count = 1, .nics = {{.name = "v\xff\n"}}};
    uint8_t bytes[LANE_HELLO_SIZE], all[LANE_NICS_SIZE];
    struct lane_hello read;
    struct lane_nics others;

    (void)state;
    lane_hello_encode(bytes, &hello, nonce, key);
    assert_int_equal(lane_hello_decode(bytes, sizeof(bytes), nonce, key, &read, NULL),
                     LANE_ERROR_NONE);
    assert_string_equal(read.host, "h??st");
    assert_string_equal(read.nic, "d?[2J?012345678");
    lane_nics_encode(all, &nics);
    assert_int_equal(lane_nics_decode(all, sizeof(all), &others), LANE_ERROR_NONE);
    assert_string_equal(others.nics[0].name, "v??");
}

static enum lane_error qp_error(struct lane_qp qp)
{
    uint8_t bytes[LANE_QP_SIZE];

    lane_qp_encode(bytes, &qp);
    return lane_qp_decode(bytes, sizeof(bytes), &(struct lane_qp){0});
}

/* An end of a queue pair, in range. A refusal or a switch has none. */
static void test_qp(void **state)
{
    struct lane_qp qp = {.step = LANE_QP_OFFER,
                         .lane = 3,
                         .epoch = 7,
                         .attempt = 2,
                         .qp = 0x123456,
                         .psn = 0xffffff,
                         .lid = 9,
                         .mtu_shift = 12,
                         .sl = 15,
                         .gid = {0xfe, 0x80, [15] = 1},
                         .cells = 32,
                         .cell_size = 8448,
                         .pkey = 0x8005};
    uint8_t bytes[LANE_QP_SIZE];
    struct lane_qp read;

    (void)state;
    lane_qp_encode(bytes, &qp);
    assert_int_equal(lane_qp_decode(bytes, sizeof(bytes), &read), LANE_ERROR_NONE);
    assert_true(read.step == LANE_QP_OFFER && read.lane == 3 && read.epoch == 7 &&
                read.attempt == 2 && read.qp == 0x123456 && read.psn == 0xffffff && read.lid == 9 &&
                read.mtu_shift == 12 && read.sl == 15 && read.cells == 32 &&
                read.cell_size == 8448 && read.pkey == 0x8005 && memcmp(read.gid, qp.gid, 16) == 0);
    assert_int_equal(lane_qp_decode(bytes, sizeof(bytes) - 1, &read), LANE_ERROR_SHORT);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] ^= 1;
        assert_int_not_equal(lane_qp_decode(bytes, sizeof(bytes), &read), LANE_ERROR_NONE);
        bytes[i] ^= 1;
    }
    for (int k = 0; k < 6; k++) {
        struct lane_qp wrong = qp;
        wrong.mtu_shift = k == 0 ? 13 : k == 1 ? 7 : 12;
        wrong.sl = k == 2 ? 16 : 0;
        wrong.cells = k == 3 ? LANE_QP_CELLS_MIN - 1 : LANE_QP_CELLS_MAX;
        wrong.cell_size = k == 4 ? LANE_QP_CELL_MAX + 1 : LANE_QP_CELL_MIN;
        wrong.lane = k == 5 ? LANE_MAX : 0;
        assert_int_equal(qp_error(wrong), LANE_ERROR_RANGE);
    }
    qp.step = LANE_QP_SWITCH; /* its end is no part of it */
    lane_qp_encode(bytes, &qp);
    assert_int_equal(lane_qp_decode(bytes, sizeof(bytes), &read), LANE_ERROR_NONE);
    assert_true(read.step == LANE_QP_SWITCH && read.qp == 0 && read.cells == 0);
    bytes[12] = 1;
    le32_put(bytes + 60, crc32c(0, bytes, 60));
    assert_int_equal(lane_qp_decode(bytes, sizeof(bytes), &read), LANE_ERROR_RESERVED);
    bytes[12] = 0;
    bytes[1] = LANE_QP_STEP_COUNT;
    le32_put(bytes + 60, crc32c(0, bytes, 60));
    assert_int_equal(lane_qp_decode(bytes, sizeof(bytes), &read), LANE_ERROR_RANGE);
}

static void test_cell(void **state)
{
    const struct lane_cell_header header = {LANE_CELL_CREDIT, 0xfffffff0u};
    uint8_t bytes[LANE_CELL_SIZE];
    struct lane_cell_header read;

    (void)state;
    lane_cell_encode(bytes, &header);
    assert_int_equal(lane_cell_decode(bytes, sizeof(bytes), &read), LANE_ERROR_NONE);
    assert_true(read.kind == LANE_CELL_CREDIT && read.returned == 0xfffffff0u);
    assert_int_equal(lane_cell_decode(bytes, sizeof(bytes) - 1, &read), LANE_ERROR_SHORT);
    bytes[0] = LANE_CELL_COUNT;
    assert_int_equal(lane_cell_decode(bytes, sizeof(bytes), &read), LANE_ERROR_RANGE);
    bytes[0] = 0;
    assert_int_equal(lane_cell_decode(bytes, sizeof(bytes), &read), LANE_ERROR_RANGE);
    bytes[0] = LANE_CELL_DATA;
    bytes[3] = 1;
    assert_int_equal(lane_cell_decode(bytes, sizeof(bytes), &read), LANE_ERROR_RESERVED);
}

/* Valid for that HELLO and that answer to it, under that key. Each of its bits counts. */
static void test_proof(void **state)
{
    struct lane_hello hello = {
        .newest = LANE_VERSION, .lowest = 1, .lane = 2, .lanes = 4, .epoch = 3, .set = 5};
    uint8_t greeting[LANE_HELLO_SIZE], other[LANE_HELLO_SIZE], bytes[LANE_PROOF_SIZE];
    bool fenced = false;

    lane_hello_encode(greeting, &hello, nonce, key);
    hello.epoch = 4;
    lane_hello_encode(other, &hello, nonce, key);
    lane_proof_encode(bytes, greeting, nonce, key, true);
    assert_int_equal(lane_proof_decode(bytes, sizeof(bytes), greeting, nonce, key, &fenced),
                     LANE_ERROR_NONE);
    assert_true(fenced);
    assert_int_equal(lane_proof_decode(bytes, sizeof(bytes) - 1, greeting, nonce, key, &fenced),
                     LANE_ERROR_SHORT);
    assert_int_equal(lane_proof_decode(bytes, sizeof(bytes), other, nonce, key, &fenced),
                     LANE_ERROR_TAG);
    assert_int_equal(lane_proof_decode(bytes, sizeof(bytes), greeting, other_nonce, key, &fenced),
                     LANE_ERROR_TAG);
    assert_int_equal(lane_proof_decode(bytes, sizeof(bytes), greeting, nonce, other_key, &fenced),
                     LANE_ERROR_TAG);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] ^= 1;
        assert_int_not_equal(lane_proof_decode(bytes, sizeof(bytes), greeting, nonce, key, &fenced),
                             LANE_ERROR_NONE);
        bytes[i] ^= 1;
    }
    (void)state;
}

static void test_handle(void **state)
{
    struct handle handle = {.cookie = handle_cookie(0x1234567812345678),
                            .newest = 2,
                            .lowest = 1,
                            .group_max = 8,
                            .context = 77,
                            .job = 5,
                            .pid = 99},
                  read;
    uint8_t bytes[HANDLE_SIZE];

    memcpy(handle.key, key, sizeof(key));
    memset(handle.address, 7, sizeof(handle.address));
    handle_encode(bytes, &handle);
    assert_int_equal(handle_decode(bytes, &read), LANE_ERROR_NONE);
    assert_true(read.context == 77 && read.pid == 99 && memcmp(read.key, key, sizeof(key)) == 0);
    assert_int_equal(lane_frame_size(bytes + HANDLE_COOKIE_OFFSET, 8),
                     0); /* a cookie is no frame */
    memset(bytes + HANDLE_SCRATCH_OFFSET, 0xff,
           HANDLE_SIZE - HANDLE_SCRATCH_OFFSET); /* the connector's */
    assert_int_equal(handle_decode(bytes, &read), LANE_ERROR_NONE);
    bytes[60] ^= 1;
    assert_int_equal(handle_decode(bytes, &read), LANE_ERROR_CRC);
    bytes[40] ^= 1; /* another plugin's */
    assert_int_equal(handle_decode(bytes, &read), LANE_ERROR_MAGIC);
    handle.newest = handle.lowest = LANE_VERSION + 1;
    handle_encode(bytes, &handle);
    assert_int_equal(handle_decode(bytes, &read), LANE_ERROR_VERSION);
    assert_int_equal(read.newest, LANE_VERSION + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc),
        cmocka_unit_test(test_chunk),
        cmocka_unit_test(test_chunk_off_grid),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_large_eager),
        cmocka_unit_test(test_whole_chunk_eager),
        cmocka_unit_test(test_report),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_qp),
        cmocka_unit_test(test_cell),
        cmocka_unit_test(test_proof),
        cmocka_unit_test(test_handle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
