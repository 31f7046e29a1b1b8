/* lane.c: all decoders of a lane's frames, and the handle's. They get the bytes as they are. Then they get them with a checksum
 * and a tag that fit, so that the fuzzer gets past these. What is accepted encodes to the same bytes. */
#include "wire/lane.h"

#include <sodium.h>
#include <string.h>

#include "base/endian.h"
#include "fuzz.h"
#include "wire/crc32c.h"
#include "wire/handle.h"
#include "wire/lane_nics.h"
#include "wire/lane_qp.h"

static const uint8_t key[LANE_KEY_SIZE] = "fuzz fuzz fuzz ", nonce[LANE_NONCE_SIZE] = "nonce";

static void chunk(const uint8_t *bytes, size_t size)
{
    uint8_t again[LANE_CHUNK_SIZE];
    struct lane_chunk c;

    for (uint8_t version = LANE_VERSION_LOWEST; version <= LANE_VERSION; version++) {
        if (lane_chunk_decode(bytes, size, version, &c) == LANE_ERROR_NONE) {
            ASSERT((uint64_t)c.offset + c.length <= c.size && c.size <= LANE_MESSAGE_SIZE_MAX);
            ASSERT(c.offset >> c.grid < LANE_MESSAGE_CHUNKS_MAX && c.lane < LANE_MAX);
            lane_chunk_encode(again, &c, version);
            ASSERT(memcmp(again, bytes, sizeof(again)) == 0);
        }
    }
}

static void report(const uint8_t *bytes, size_t size)
{
    uint8_t again[LANE_STATE_SIZE_MAX];
    struct lane_report r;

    if (lane_report_decode(bytes, size, LANE_VERSION, &r) == LANE_ERROR_NONE) {
        ASSERT(r.lane_count <= LANE_MAX && r.placed <= r.posted);
        ASSERT(memcmp(again, bytes, lane_report_encode(again, &r, LANE_VERSION)) == 0);
    }
}

static void control(const uint8_t *bytes, size_t size)
{
    struct lane_refusal refusal;
    struct lane_close close;
    struct lane_ping ping;
    struct lane_open open;
    struct lane_post post;
    uint8_t again[64];

    for (uint8_t version = LANE_POST_VERSION; version <= LANE_VERSION; version++) {
        if (lane_post_decode(bytes, size, version, &post) == LANE_ERROR_NONE) {
            lane_post_encode(again, &post, version);
            ASSERT(memcmp(again, bytes, LANE_POST_SIZE) == 0);
        }
    }
    if (lane_open_decode(bytes, size, &open) == LANE_ERROR_NONE) {
        lane_open_encode(again, &open);
        ASSERT(memcmp(again, bytes, LANE_OPEN_SIZE) == 0);
    }
    if (lane_ping_decode(bytes, size, &ping) == LANE_ERROR_NONE) {
        lane_ping_encode(again, &ping);
        ASSERT(memcmp(again, bytes, LANE_PING_SIZE) == 0);
    }
    if (lane_close_decode(bytes, size, &close) == LANE_ERROR_NONE) {
        lane_close_encode(again, &close);
        ASSERT(memcmp(again, bytes, LANE_CLOSE_SIZE) == 0);
    }
    if (lane_refusal_decode(bytes, size, &refusal) == LANE_ERROR_NONE) {
        ASSERT(refusal.reason > 0 && refusal.reason < LANE_NO_COUNT);
    }
}

static void hello(const uint8_t *bytes, size_t size)
{
    uint8_t again[LANE_HELLO_SIZE], version[2];
    struct lane_hello h;
    uint64_t context;

    (void)!lane_hello_context(bytes, size, &context);
    if (lane_hello_decode(bytes, size, nonce, key, &h, version) == LANE_ERROR_NONE) {
        ASSERT(h.lane < LANE_MAX && strlen(h.host) < LANE_HOST_SIZE &&
               strlen(h.nic) < LANE_NIC_SIZE);
        lane_hello_encode(again, &h, nonce, key);
        ASSERT(memcmp(again, bytes, LANE_HELLO_SIZE) == 0);
    }
}

static void proof(const uint8_t *bytes, size_t size)
{
    static const uint8_t greeting[LANE_HELLO_SIZE] = {LANE_HELLO, LANE_VERSION, 1};
    uint8_t again[LANE_PROOF_SIZE];
    bool fenced;

    if (lane_proof_decode(bytes, size, greeting, nonce, key, &fenced) == LANE_ERROR_NONE) {
        lane_proof_encode(again, greeting, nonce, key, fenced);
        ASSERT(memcmp(again, bytes, sizeof(again)) == 0);
    }
}

static void nics(const uint8_t *bytes, size_t size)
{
    uint8_t again[LANE_NICS_SIZE];
    struct lane_nics n;

    if (lane_nics_decode(bytes, size, &n) == LANE_ERROR_NONE) {
        ASSERT(n.count <= LANE_NICS_MAX && (n.down >> n.count) == 0);
        ASSERT(n.small_slots <= LANE_SMALL_SLOTS && n.large_slots <= LANE_LARGE_SLOTS);
        ASSERT(n.large_shift <= LANE_CHUNK_SHIFT_MAX);
        for (uint8_t i = 0; i < n.count; i++) {
            ASSERT(strnlen(n.nics[i].name, LANE_NIC_SIZE) < LANE_NIC_SIZE);
        }
        lane_nics_encode(again, &n);
        ASSERT(memcmp(again, bytes, sizeof(again)) == 0);
    }
}

static void qp(const uint8_t *bytes, size_t size)
{
    uint8_t again[LANE_QP_SIZE];
    struct lane_cell_header cell;
    struct lane_qp q;

    if (lane_qp_decode(bytes, size, &q) == LANE_ERROR_NONE) {
        ASSERT(q.lane < LANE_MAX && q.qp <= LANE_QP_MASK && q.cells <= LANE_QP_CELLS_MAX);
        lane_qp_encode(again, &q);
        ASSERT(memcmp(again, bytes, sizeof(again)) == 0);
    }
    if (lane_cell_decode(bytes, size, &cell) == LANE_ERROR_NONE) {
        lane_cell_encode(again, &cell);
        ASSERT(memcmp(again, bytes, LANE_CELL_SIZE) == 0);
    }
}

static void all(const uint8_t *bytes, size_t size)
{
    nics(bytes, size);
    qp(bytes, size);
    chunk(bytes, size);
    report(bytes, size);
    control(bytes, size);
    hello(bytes, size);
    proof(bytes, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[LANE_FRAME_SIZE_MAX] = {0}, tagged[LANE_NONCE_SIZE + 240];
    const size_t used = size < sizeof(bytes) ? size : sizeof(bytes);
    struct handle handle;

    all(data, size);
    if (used < 2) {
        return 0;
    }
    memcpy(bytes, data, used);
    if (used >= HANDLE_SIZE) {
        le32_put(bytes + 100, crc32c(0, bytes, 100));
        if (handle_decode(bytes, &handle) == LANE_ERROR_NONE) {
            ASSERT(handle.group_max > 0 && handle.group_max <= COMM_GROUP_MAX);
            ASSERT(lane_version_agree(handle.newest, handle.lowest) != 0);
        }
        memcpy(bytes, data, used);
    }
    size_t frame = bytes[0] == LANE_NICS ? LANE_NICS_SIZE
                   : bytes[0] == LANE_QP ? LANE_QP_SIZE
                                         : lane_frame_size(bytes, used);
    if (frame == 0) {
        return 0;
    }
    if (bytes[0] == LANE_HELLO || bytes[0] == LANE_HELLO_OK) {
        memcpy(tagged, nonce, LANE_NONCE_SIZE);
        memcpy(tagged + LANE_NONCE_SIZE, bytes, 240);
        crypto_shorthash_siphashx24(bytes + 240, tagged, sizeof(tagged), key);
    } else if (bytes[0] == LANE_STATE) {
        const uint32_t head = crc32c(0, bytes, 44);
        le32_put(bytes + 44,
                 crc32c(head, bytes + LANE_STATE_HEAD_SIZE, frame - LANE_STATE_HEAD_SIZE));
    } else {
        le32_put(bytes + frame - 4, crc32c(0, bytes, frame - 4));
    }
    all(bytes, frame);
    return 0;
}
