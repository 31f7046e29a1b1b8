/* lane.c: frames of a lane to bytes and back, without the greetings (lane_hello.c). lane.h has the layouts. */
#include "wire/lane.h"

#include <string.h>

#include "base/endian.h"
#include "wire/crc32c.h"

#define TIME_LIMIT_NS (INT64_MAX / 4) /* so that the difference of two doesn't overflow */

_Static_assert(LANE_MAX <= UINT8_MAX, "STATE counts lanes in a byte");
_Static_assert(LANE_EAGER_SLOTS_MAX <= UINT8_MAX, "CHUNK names a slot in a byte");
_Static_assert(LANE_STATE_SIZE_MAX == 560, "as lane.h says");

static bool all_zero(const uint8_t *bytes, size_t size)
{
    uint8_t any = 0;

    for (size_t i = 0; i < size; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

static bool time_valid(int64_t ns)
{
    return ns >= -TIME_LIMIT_NS && ns <= TIME_LIMIT_NS;
}

/* A control frame ends with the CRC of all bytes before. */
static void seal(uint8_t *bytes, size_t size)
{
    le32_put(bytes + size - 4, crc32c(0, bytes, size - 4));
}

static enum lane_error sealed(const uint8_t *bytes, size_t size, size_t wanted, uint8_t type)
{
    if (size < wanted) {
        return LANE_ERROR_SHORT;
    }
    if (bytes[0] != type) {
        return LANE_ERROR_TYPE;
    }
    return le32_get(bytes + wanted - 4) == crc32c(0, bytes, wanted - 4) ? LANE_ERROR_NONE
                                                                        : LANE_ERROR_CRC;
}

size_t lane_frame_size(const uint8_t *bytes, size_t size)
{
    static const size_t sizes[] = {
        LANE_HELLO_SIZE, LANE_HELLO_SIZE, LANE_NO_SIZE,   LANE_OPEN_SIZE, LANE_CHUNK_SIZE, 0,
        LANE_POST_SIZE,  LANE_PING_SIZE,  LANE_PING_SIZE, LANE_CLOSE_SIZE};

    if (size < 2 || bytes[0] < LANE_HELLO || bytes[0] > LANE_CLOSE) {
        return 0;
    }
    if (bytes[0] == LANE_STATE) {
        return bytes[1] <= LANE_MAX ? LANE_STATE_HEAD_SIZE + (size_t)bytes[1] * LANE_STATE_LANE_SIZE
                                    : 0;
    }
    return sizes[bytes[0] - LANE_HELLO];
}

/* ---- CHUNK
 * ---------------------------------------------------------------------------------
 */

static uint8_t chunk_flags_known(uint8_t version)
{
    return LANE_CHUNK_LAST | LANE_CHUNK_PAYLOAD_CRC | LANE_CHUNK_RESENT | LANE_CHUNK_EAGER |
           (version >= 4 ? LANE_CHUNK_KEPT : 0) |
           (version >= LANE_POST_VERSION ? LANE_CHUNK_WRITTEN : 0);
}

void lane_chunk_encode(uint8_t bytes[static LANE_CHUNK_SIZE], const struct lane_chunk *chunk,
                       uint8_t version)
{
    const bool last = (uint64_t)chunk->offset + chunk->length == chunk->size;

    bytes[0] = LANE_CHUNK;
    bytes[1] = (uint8_t)((chunk->flags & chunk_flags_known(version) & ~LANE_CHUNK_LAST) |
                         (last ? LANE_CHUNK_LAST : 0));
    le16_put(bytes + 2, chunk->lane);
    le32_put(bytes + 4, chunk->epoch);
    le32_put(bytes + 8, chunk->comm);
    le32_put(bytes + 12, (uint32_t)chunk->tag);
    le64_put(bytes + 16, chunk->message);
    le32_put(bytes + 24, chunk->offset);
    le32_put(bytes + 28, chunk->length);
    le32_put(bytes + 32, chunk->size);
    le32_put(bytes + 36, version >= 2 ? chunk->queued_ns : 0);
    le64_put(bytes + 40, (uint64_t)chunk->sent.ns);
    le32_put(bytes + 48, chunk->sent_bound_ns);
    bytes[52] = chunk->buffer;
    bytes[53] = chunk->slot;
    bytes[54] = chunk->grid;
    bytes[55] = 0;
    le32_put(bytes + 56, chunk->flags & LANE_CHUNK_PAYLOAD_CRC ? chunk->payload_crc : 0);
    seal(bytes, LANE_CHUNK_SIZE);
}

/* The chunk is on its message's grid, and no field is set that must not be. */
static bool chunk_consistent(const struct lane_chunk *c, uint8_t version)
{
    const uint32_t eager_max = version >= LANE_SLOTS_VERSION ? 1u << LANE_CHUNK_SHIFT_MAX
                               : version >= 3                ? LANE_LARGE_SIZE_MAX
                                                             : LANE_EAGER_SIZE_MAX;
    const uint64_t end = (uint64_t)c->offset + c->length;
    const bool eager = c->flags & LANE_CHUNK_EAGER;

    if (c->size > LANE_MESSAGE_SIZE_MAX || c->grid < LANE_CHUNK_SHIFT_MIN ||
        c->grid > LANE_CHUNK_SHIFT_MAX ||
        lane_chunk_count(c->size, c->grid) > LANE_MESSAGE_CHUNKS_MAX) {
        return false;
    }
    const uint32_t chunk_size = 1u << c->grid, offset = c->offset;
    if (offset % chunk_size != 0 || end > c->size || (offset == c->size && c->size != 0)) {
        return false;
    }
    if (c->length != (c->size - offset < chunk_size ? c->size - offset : chunk_size)) {
        return false;
    }
    if (((c->flags & LANE_CHUNK_LAST) != 0) != (end == c->size)) {
        return false;
    }
    if ((c->flags & LANE_CHUNK_WRITTEN) &&
        (eager || c->length == 0 || (c->flags & LANE_CHUNK_PAYLOAD_CRC))) {
        return false;
    }
    return c->lane < LANE_MAX && c->epoch != 0 && c->comm != LANE_COMM_NONE &&
           c->buffer < COMM_GROUP_MAX &&
           (eager ? c->size <= eager_max && c->length == c->size &&
                        c->slot < LANE_EAGER_SLOTS_MAX && c->buffer == 0
                  : c->slot == 0);
}

enum lane_error lane_chunk_decode(const uint8_t *bytes, size_t size, uint8_t version,
                                  struct lane_chunk *ret)
{
    const enum lane_error error = sealed(bytes, size, LANE_CHUNK_SIZE, LANE_CHUNK);

    if (error != LANE_ERROR_NONE) {
        return error;
    }
    struct lane_chunk c = {
        .flags = bytes[1],
        .buffer = bytes[52],
        .slot = bytes[53],
        .grid = bytes[54],
        .lane = le16_get(bytes + 2),
        .epoch = le32_get(bytes + 4),
        .comm = le32_get(bytes + 8),
        .tag = (int32_t)le32_get(bytes + 12),
        .message = le64_get(bytes + 16),
        .offset = le32_get(bytes + 24),
        .length = le32_get(bytes + 28),
        .size = le32_get(bytes + 32),
        .queued_ns = le32_get(bytes + 36),
        .sent.ns = (int64_t)le64_get(bytes + 40),
        .sent_bound_ns = le32_get(bytes + 48),
        .payload_crc = le32_get(bytes + 56),
    };
    if ((bytes[1] & ~chunk_flags_known(version)) != 0 || bytes[55] != 0 ||
        (version < 2 && c.queued_ns != 0) ||
        (!(c.flags & LANE_CHUNK_PAYLOAD_CRC) && c.payload_crc != 0)) {
        return LANE_ERROR_RESERVED;
    }
    if (!time_valid(c.sent.ns) || !chunk_consistent(&c, version)) {
        return LANE_ERROR_RANGE;
    }
    *ret = c;
    return LANE_ERROR_NONE;
}

/* ---- STATE
 * ---------------------------------------------------------------------------------
 */

size_t lane_report_encode(uint8_t bytes[static LANE_STATE_SIZE_MAX],
                          const struct lane_report *report, uint8_t version)
{
    const uint8_t count = report->lane_count <= LANE_MAX ? report->lane_count : LANE_MAX;
    const bool comm = report->comm != LANE_COMM_NONE;
    const size_t size = LANE_STATE_HEAD_SIZE + (size_t)count * LANE_STATE_LANE_SIZE;

    memset(bytes, 0, size);
    bytes[0] = LANE_STATE;
    bytes[1] = count;
    le16_put(bytes + 2, version >= 2 ? report->receivers : 0);
    le32_put(bytes + 4, report->sequence);
    le64_put(bytes + 8, comm ? report->placed : 0);
    le64_put(bytes + 16, comm ? report->posted : 0);
    le64_put(bytes + 24, comm ? report->granted : 0);
    le64_put(bytes + 32, (uint64_t)report->now.ns);
    le32_put(bytes + 40, report->comm);
    for (uint32_t i = 0; i < count; i++) {
        const struct lane_state_lane *lane = &report->lanes[i];
        uint8_t *at = bytes + LANE_STATE_HEAD_SIZE + i * LANE_STATE_LANE_SIZE;
        le16_put(at, lane->lane);
        at[2] = (uint8_t)lane->state;
        at[3] = (uint8_t)lane->reason;
        le32_put(at + 4, lane->epoch);
        le64_put(at + 8, lane->taken);
        le32_put(at + 16, version >= 2 ? lane->owd_min_ns : 0);
        le32_put(at + 20, version >= 2 ? lane->owd_ns : 0);
        le32_put(at + 24, version >= LANE_FENCE_VERSION ? lane->fenced_below : 0);
    }
    uint32_t crc = crc32c(0, bytes, 44);
    crc = crc32c(crc, bytes + LANE_STATE_HEAD_SIZE, size - LANE_STATE_HEAD_SIZE);
    le32_put(bytes + 44, crc);
    return size;
}

static enum lane_error get_state_lane(const uint8_t *at, uint8_t version,
                                      struct lane_state_lane *lane)
{
    *lane = (struct lane_state_lane){
        .lane = le16_get(at),
        .state = (enum lane_state)at[2],
        .reason = (enum lane_reason)at[3],
        .epoch = le32_get(at + 4),
        .taken = le64_get(at + 8),
        .owd_min_ns = version >= 2 ? le32_get(at + 16) : LANE_OWD_UNKNOWN,
        .owd_ns = version >= 2 ? le32_get(at + 20) : LANE_OWD_UNKNOWN,
        .fenced_below = le32_get(at + 24),
    };
    if (!all_zero(at + 28, 4) || (version < LANE_FENCE_VERSION && lane->fenced_below != 0) ||
        (version < 2 && !all_zero(at + 16, 8))) {
        return LANE_ERROR_RESERVED;
    }
    return lane->lane < LANE_MAX && at[2] < LANE_STATE_COUNT && at[3] < LANE_REASON_COUNT &&
                   (lane->fenced_below == 0 || lane->epoch < lane->fenced_below)
               ? LANE_ERROR_NONE
               : LANE_ERROR_RANGE;
}

enum lane_error lane_report_decode(const uint8_t *bytes, size_t size, uint8_t version,
                                   struct lane_report *ret)
{
    enum lane_error error = LANE_ERROR_NONE;
    uint32_t seen = 0, crc;

    if (size < LANE_STATE_HEAD_SIZE) {
        return LANE_ERROR_SHORT;
    }
    size_t wanted = lane_frame_size(bytes, size);
    if (bytes[0] != LANE_STATE || wanted == 0) {
        return LANE_ERROR_TYPE;
    }
    if (size < wanted) {
        return LANE_ERROR_SHORT;
    }
    crc = crc32c(0, bytes, 44);
    crc = crc32c(crc, bytes + LANE_STATE_HEAD_SIZE, wanted - LANE_STATE_HEAD_SIZE);
    if (crc != le32_get(bytes + 44)) {
        return LANE_ERROR_CRC;
    }
    struct lane_report r = {
        .receivers = le16_get(bytes + 2),
        .sequence = le32_get(bytes + 4),
        .placed = le64_get(bytes + 8),
        .posted = le64_get(bytes + 16),
        .granted = le64_get(bytes + 24),
        .now.ns = (int64_t)le64_get(bytes + 32),
        .comm = le32_get(bytes + 40),
        .lane_count = bytes[1],
    };
    if (version < 2 && r.receivers != 0) {
        return LANE_ERROR_RESERVED;
    }
    if (!time_valid(r.now.ns) || r.placed > r.posted ||
        (r.comm == LANE_COMM_NONE && !all_zero(bytes + 8, 24))) {
        return LANE_ERROR_RANGE;
    }
    for (uint32_t i = 0; i < r.lane_count && error == LANE_ERROR_NONE; i++) {
        error = get_state_lane(bytes + LANE_STATE_HEAD_SIZE + i * LANE_STATE_LANE_SIZE, version,
                               &r.lanes[i]);
        if (error == LANE_ERROR_NONE) {
            error = seen >> r.lanes[i].lane & 1 ? LANE_ERROR_RANGE : LANE_ERROR_NONE;
            seen |= 1u << r.lanes[i].lane;
        }
    }
    if (error == LANE_ERROR_NONE) {
        *ret = r;
    }
    return error;
}

/* ---- POST, OPEN, PING, CLOSE, HELLO_NO
 * ----------------------------------------------------- */

void lane_post_encode(uint8_t bytes[static LANE_POST_SIZE], const struct lane_post *post,
                      uint8_t version)
{
    memset(bytes, 0, LANE_POST_SIZE);
    bytes[0] = LANE_POST;
    bytes[1] = post->index;
    bytes[2] = post->count;
    bytes[3] = post->keys.count;
    le32_put(bytes + 4, post->comm);
    le64_put(bytes + 8, post->first);
    le64_put(bytes + 16, post->address);
    le32_put(bytes + 24, post->size);
    le32_put(bytes + 28, (uint32_t)post->tag);
    for (uint32_t i = 0; i < LANE_POST_KEYS && i < post->keys.count; i++) {
        le32_put(bytes + 32 + i * 4, post->keys.rkeys[i]);
        bytes[48 + i] = version >= LANE_KEYS_VERSION ? post->keys.devices[i] : 0;
    }
    seal(bytes, LANE_POST_SIZE);
}

/* Each device at most once: else two readers could take different keys for one device. */
static bool keys_decode(const uint8_t *bytes, uint8_t version, struct lane_keys *ret)
{
    uint32_t seen = 0;

    *ret = (struct lane_keys){.count = bytes[3]};
    for (uint32_t i = 0; i < ret->count; i++) {
        ret->devices[i] = version >= LANE_KEYS_VERSION ? bytes[48 + i] : (uint8_t)i;
        ret->rkeys[i] = le32_get(bytes + 32 + i * 4);
        if (ret->devices[i] >= LANE_DEVICES_MAX || (seen >> ret->devices[i] & 1) != 0) {
            return false;
        }
        seen |= 1u << ret->devices[i];
    }
    return all_zero(bytes + 32 + ret->count * 4, (size_t)(LANE_POST_KEYS - ret->count) * 4);
}

enum lane_error lane_post_decode(const uint8_t *bytes, size_t size, uint8_t version,
                                 struct lane_post *ret)
{
    const enum lane_error error = sealed(bytes, size, LANE_POST_SIZE, LANE_POST);

    if (error != LANE_ERROR_NONE) {
        return error;
    }
    struct lane_post p = {
        .index = bytes[1],
        .count = bytes[2],
        .comm = le32_get(bytes + 4),
        .first = le64_get(bytes + 8),
        .address = le64_get(bytes + 16),
        .size = le32_get(bytes + 24),
        .tag = (int32_t)le32_get(bytes + 28),
    };
    if (bytes[3] > LANE_POST_KEYS) {
        return LANE_ERROR_RANGE;
    }
    const uint32_t named = version >= LANE_KEYS_VERSION ? bytes[3] : 0;
    if (!all_zero(bytes + 48 + named, LANE_POST_KEYS - named)) {
        return LANE_ERROR_RESERVED;
    }
    if (p.count == 0 || p.count > COMM_GROUP_MAX || p.index >= p.count ||
        p.comm == LANE_COMM_NONE || p.size > LANE_MESSAGE_SIZE_MAX ||
        p.first > UINT64_MAX - COMM_GROUP_MAX || !keys_decode(bytes, version, &p.keys)) {
        return LANE_ERROR_RANGE;
    }
    *ret = p;
    return LANE_ERROR_NONE;
}

void lane_open_encode(uint8_t bytes[static LANE_OPEN_SIZE], const struct lane_open *open)
{
    memset(bytes, 0, LANE_OPEN_SIZE);
    bytes[0] = LANE_OPEN;
    bytes[1] = open->group_max;
    bytes[2] = open->traffic_class;
    le32_put(bytes + 4, open->comm);
    le64_put(bytes + 8, open->cookie);
    le64_put(bytes + 16, open->job);
    le32_put(bytes + 24, open->rank);
    seal(bytes, LANE_OPEN_SIZE);
}

enum lane_error lane_open_decode(const uint8_t *bytes, size_t size, struct lane_open *ret)
{
    const enum lane_error error = sealed(bytes, size, LANE_OPEN_SIZE, LANE_OPEN);

    if (error != LANE_ERROR_NONE) {
        return error;
    }
    struct lane_open o = {
        .group_max = bytes[1],
        .traffic_class = bytes[2],
        .comm = le32_get(bytes + 4),
        .cookie = le64_get(bytes + 8),
        .job = le64_get(bytes + 16),
        .rank = le32_get(bytes + 24),
    };
    if (bytes[3] != 0 || !all_zero(bytes + 28, 32)) {
        return LANE_ERROR_RESERVED;
    }
    if (o.group_max == 0 || o.group_max > COMM_GROUP_MAX || o.traffic_class > 2 ||
        o.comm == LANE_COMM_NONE) {
        return LANE_ERROR_RANGE;
    }
    *ret = o;
    return LANE_ERROR_NONE;
}

void lane_ping_encode(uint8_t bytes[static LANE_PING_SIZE], const struct lane_ping *ping)
{
    memset(bytes, 0, LANE_PING_SIZE);
    bytes[0] = ping->answer ? LANE_PONG : LANE_PING;
    le16_put(bytes + 2, ping->lane);
    le32_put(bytes + 4, ping->epoch);
    le32_put(bytes + 8, ping->sequence);
    le32_put(bytes + 12, ping->sent_bound_ns);
    le64_put(bytes + 16, (uint64_t)ping->sent.ns);
    if (ping->answer) {
        le64_put(bytes + 24, (uint64_t)ping->received.ns);
        le32_put(bytes + 32, ping->received_bound_ns);
    }
    seal(bytes, LANE_PING_SIZE);
}

enum lane_error lane_ping_decode(const uint8_t *bytes, size_t size, struct lane_ping *ret)
{
    const uint8_t type = size > 0 && bytes[0] == LANE_PONG ? LANE_PONG : LANE_PING;
    const enum lane_error error = sealed(bytes, size, LANE_PING_SIZE, type);

    if (error != LANE_ERROR_NONE) {
        return error;
    }
    struct lane_ping p = {
        .answer = type == LANE_PONG,
        .lane = le16_get(bytes + 2),
        .epoch = le32_get(bytes + 4),
        .sequence = le32_get(bytes + 8),
        .sent.ns = (int64_t)le64_get(bytes + 16),
        .received.ns = (int64_t)le64_get(bytes + 24),
        .sent_bound_ns = le32_get(bytes + 12),
        .received_bound_ns = le32_get(bytes + 32),
    };
    if (bytes[1] != 0 || (!p.answer && !all_zero(bytes + 24, 12))) {
        return LANE_ERROR_RESERVED;
    }
    if (p.lane >= LANE_MAX || p.epoch == 0 || !time_valid(p.sent.ns) ||
        !time_valid(p.received.ns)) {
        return LANE_ERROR_RANGE;
    }
    *ret = p;
    return LANE_ERROR_NONE;
}

#define CLOSE_FLAGS_KNOWN (LANE_CLOSE_ABORT | LANE_CLOSE_ECHO | LANE_CLOSE_SENDER)

void lane_close_encode(uint8_t bytes[static LANE_CLOSE_SIZE], const struct lane_close *close)
{
    memset(bytes, 0, LANE_CLOSE_SIZE);
    bytes[0] = LANE_CLOSE;
    bytes[1] = close->flags & CLOSE_FLAGS_KNOWN;
    bytes[2] = (uint8_t)close->reason;
    le32_put(bytes + 4, close->comm);
    le64_put(bytes + 8, close->messages);
    le64_put(bytes + 16, close->placed);
    seal(bytes, LANE_CLOSE_SIZE);
}

enum lane_error lane_close_decode(const uint8_t *bytes, size_t size, struct lane_close *ret)
{
    const enum lane_error error = sealed(bytes, size, LANE_CLOSE_SIZE, LANE_CLOSE);

    if (error != LANE_ERROR_NONE) {
        return error;
    }
    if ((bytes[1] & ~CLOSE_FLAGS_KNOWN) != 0 || bytes[3] != 0 || !all_zero(bytes + 24, 4)) {
        return LANE_ERROR_RESERVED;
    }
    if (bytes[2] >= LANE_REASON_COUNT || le64_get(bytes + 16) > le64_get(bytes + 8)) {
        return LANE_ERROR_RANGE;
    }
    *ret = (struct lane_close){
        .flags = bytes[1],
        .reason = (enum lane_reason)bytes[2],
        .comm = le32_get(bytes + 4),
        .messages = le64_get(bytes + 8),
        .placed = le64_get(bytes + 16),
    };
    return LANE_ERROR_NONE;
}

void lane_refusal_encode(uint8_t bytes[static LANE_NO_SIZE], const struct lane_refusal *refusal)
{
    memset(bytes, 0, LANE_NO_SIZE);
    bytes[0] = LANE_HELLO_NO;
    bytes[1] = refusal->newest;
    bytes[2] = refusal->lowest;
    bytes[3] = (uint8_t)refusal->reason;
    le32_put(bytes + 4, LANE_MAGIC);
    le64_put(bytes + 8, refusal->context);
    seal(bytes, LANE_NO_SIZE);
}

/* Reserved bytes are ignored, and an unknown reason is reported as such: the frame may be from a far newer version. */
enum lane_error lane_refusal_decode(const uint8_t *bytes, size_t size, struct lane_refusal *ret)
{
    const enum lane_error error = sealed(bytes, size, LANE_NO_SIZE, LANE_HELLO_NO);

    if (error != LANE_ERROR_NONE) {
        return error;
    }
    if (le32_get(bytes + 4) != LANE_MAGIC) {
        return LANE_ERROR_MAGIC;
    }
    if (bytes[3] == 0 || bytes[3] >= LANE_NO_COUNT || bytes[2] > bytes[1]) {
        return LANE_ERROR_RANGE;
    }
    *ret = (struct lane_refusal){
        .newest = bytes[1],
        .lowest = bytes[2],
        .reason = (enum lane_no)bytes[3],
        .context = le64_get(bytes + 8),
    };
    return LANE_ERROR_NONE;
}

/* ---- the grid
 * -------------------------------------------------------------------------------
 */

uint8_t lane_grid(uint32_t message_size, uint32_t wanted_chunk_size)
{
    uint8_t grid = LANE_CHUNK_SHIFT_MIN;

    while (grid < LANE_CHUNK_SHIFT_MAX && (2u << grid) <= wanted_chunk_size) {
        grid++;
    }
    while (grid < LANE_CHUNK_SHIFT_MAX &&
           lane_chunk_count(message_size, grid) > LANE_MESSAGE_CHUNKS_MAX) {
        grid++;
    }
    return grid;
}
