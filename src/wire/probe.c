/* probe.c: the probe packet to bytes and back. probe.h has the layout. */
#include "wire/probe.h"

#include <sodium.h>
#include <string.h>

#include "base/endian.h"
#include "base/limits.h"

#define MAGIC       0x4f46
#define LENGTH      144
#define TAG_OFFSET  LENGTH
#define ANCHOR_NONE UINT32_MAX

#define FLAG_HARDWARE 0x01
#define FLAG_OWN      0x02 /* own.first, gap are stamps */
#define FLAG_HEARD    0x04
#define FLAG_LATE     0x08
#define FLAG_PAIR     0x10 /* the tag is under the two hosts' key */
#define FLAGS_KNOWN   0x1f

#define STATE_MASK    0x07
#define STATE_SETTLED 0x20
#define STATE_TIGHT   0x40
#define STATE_CORE    0x80
#define STATE_KNOWN   0xe7

#define PATH_SECOND 0x80

#define QP_MASK     0xffffffu
#define KEY_MASK    0x7fffffffu
#define PORT_GLOBAL 0x01
#define PORT_STAMPS 0x02
#define PORT_FLAGS  0x03

_Static_assert(crypto_shorthash_siphashx24_BYTES == PROBE_SIZE - TAG_OFFSET, "tag size");
_Static_assert(crypto_shorthash_siphashx24_KEYBYTES == PROBE_KEY_SIZE, "key size");

static int64_t clamp(int64_t value, int64_t lowest, int64_t highest)
{
    return value < lowest ? lowest : value > highest ? highest : value;
}

static bool time_valid(int64_t ns)
{
    return ns >= -TIME_NS_MAX && ns <= TIME_NS_MAX;
}

static bool is_question(enum probe_type type)
{
    return type == PROBE_QUERY || type == PROBE_ANSWER;
}

static bool is_measure(enum probe_type type)
{
    return type == PROBE_MEASURE || type == PROBE_MEASURED || type == PROBE_ROUND;
}

/* True if offset 40 has an earlier packet's stamps, false for other contents. */
static bool has_stamps(enum probe_type type)
{
    return !is_question(type) && !is_measure(type) && type < PROBE_DIGEST;
}

/* Digests and packets about queue pairs have only fields of their own. */
static bool is_bare(enum probe_type type)
{
    return type >= PROBE_DIGEST;
}

/* -- encode
 * ---------------------------------------------------------------------------------------- */

static void put_stamps(uint8_t *at, const struct probe_stamps *stamps, int64_t gap_lowest)
{
    if (stamps->present) {
        le64_put(at, (uint64_t)clamp(stamps->first.ns, -TIME_NS_MAX, TIME_NS_MAX));
        le32_put(at + 8, (uint32_t)clamp(stamps->gap_ns, gap_lowest, PROBE_GAP_NS_MAX));
    }
    le32_put(at + 12, stamps->seq);
}

static void put_query(uint8_t *at, const struct probe_query *query)
{
    le32_put(at, query->subject.index);
    le32_put(at + 4, query->number);
    le32_put(at + 8, (uint32_t)query->level);
    le32_put(at + 12, query->noise);
    at[16] = (uint8_t)query->opinion;
}

static void put_measure(uint8_t *at, const struct probe_measure *measure)
{
    le32_put(at, measure->run);
    le32_put(at + 4, measure->packet);
    le64_put(at + 8, (uint64_t)clamp(measure->heard.ns, -TIME_NS_MAX, TIME_NS_MAX));
    le32_put(at + 16, measure->bound_ns);
    le32_put(at + 20, measure->count);
}

static void put_map(uint8_t *at, const struct probe_map *map)
{
    le64_put(at, (uint64_t)clamp(map->map.r, -TIME_NS_MAX, TIME_NS_MAX));
    le64_put(at + 8, (uint64_t)clamp(map->map.x, -TIME_NS_MAX, TIME_NS_MAX));
    le32_put(at + 16, map->map.x_fraction);
    le32_put(at + 20, (uint32_t)clamp(map->map.y, -INT32_MAX, INT32_MAX));
    le32_put(at + 24, map->seq);
    le32_put(at + 28, (uint32_t)clamp(map->line_minus_map, -PROBE_LINE_MAX, PROBE_LINE_MAX));
}

static void put_anchor(uint8_t *at, const struct probe_anchor *anchor)
{
    if (anchor->nic.index >= FLEET_NIC_MAX) {
        le32_put(at, ANCHOR_NONE);
        return;
    }
    le32_put(at, anchor->nic.index);
    le32_put(at + 4, anchor->bound_ns);
    le64_put(at + 8, (uint64_t)clamp(anchor->utc_minus_fleet_ns, -TIME_NS_MAX, TIME_NS_MAX));
    le32_put(at + 16, anchor->age_ms);
}

static void put_digest(uint8_t *at, const struct probe_digest *digest)
{
    le64_put(at, (uint64_t)clamp(digest->made.ns, -TIME_NS_MAX, TIME_NS_MAX));
    le32_put(at + 8, digest->from.index);
    at[12] = digest->count;
    memcpy(at + 16, digest->bytes, sizeof(digest->bytes));
}

static void put_port(uint8_t *at, const struct probe_port *port)
{
    memcpy(at, port->gid, sizeof(port->gid));
    le32_put(at + 16, port->qp & QP_MASK);
    le32_put(at + 20, port->key & KEY_MASK);
    le16_put(at + 24, port->lid);
    at[26] = (uint8_t)((port->global ? PORT_GLOBAL : 0) | (port->stamps ? PORT_STAMPS : 0));
    le32_put(at + 28, port->echo.seq);
    at[32] = port->echo.path & PROBE_PATH_MAX;
}

static void put_ud(uint8_t *at, const struct probe_ud *ud)
{
    const bool moment = ud->bound_ns != PROBE_BOUND_NONE;

    le32_put(at, ud->exchange);
    at[4] = ud->step;
    at[5] = ud->way;
    le64_put(at + 8, moment ? (uint64_t)clamp(ud->earliest.ns, -TIME_NS_MAX, TIME_NS_MAX) : 0);
    le32_put(at + 16, moment ? ud->width_ns : 0);
    le32_put(at + 20, ud->bound_ns);
    le32_put(at + 24, ud->from_key & KEY_MASK);
    le32_put(at + 28, ud->to_key & KEY_MASK);
}

void probe_seal(uint8_t bytes[static PROBE_SIZE], const struct probe_key *key)
{
    bytes[5] = (uint8_t)((bytes[5] & ~FLAG_PAIR) | (key->pair ? FLAG_PAIR : 0));
    le32_put(bytes + 12, key->id);
    crypto_shorthash_siphashx24(bytes + TAG_OFFSET, bytes, LENGTH, key->bytes);
}

void probe_encode(uint8_t bytes[static PROBE_SIZE], const struct probe *probe,
                  const struct probe_key *key)
{
    const bool stamps = has_stamps(probe->type);

    ASSERT(probe->src.index < FLEET_NIC_MAX && probe->dst.index < FLEET_NIC_MAX);
    memset(bytes, 0, PROBE_SIZE);
    le16_put(bytes, MAGIC);
    bytes[2] = probe->version;
    bytes[3] = probe->version_lowest;
    bytes[4] = (uint8_t)probe->type;
    bytes[5] = (uint8_t)((probe->hardware ? FLAG_HARDWARE : 0) |
                         (stamps && probe->own.present ? FLAG_OWN : 0) |
                         (stamps && probe->heard.present ? FLAG_HEARD : 0) |
                         (probe->late ? FLAG_LATE : 0));
    bytes[6] = (uint8_t)((probe->state & STATE_MASK) | (probe->settled ? STATE_SETTLED : 0) |
                         (probe->tight ? STATE_TIGHT : 0) | (probe->core ? STATE_CORE : 0));
    bytes[7] = (uint8_t)((probe->path & PROBE_PATH_MAX) | (probe->second ? PATH_SECOND : 0));
    le16_put(bytes + 8, LENGTH);
    le32_put(bytes + 16, probe->src.index);
    le32_put(bytes + 20, probe->dst.index);
    le64_put(bytes + 24, probe->timeline);
    le32_put(bytes + 32, probe->epoch);
    le32_put(bytes + 36, probe->timeline_age_s);
    if (is_bare(probe->type)) {
        if (probe->type == PROBE_DIGEST) {
            put_digest(bytes + 40, &probe->digest);
        } else if (probe->type == PROBE_PORT) {
            put_port(bytes + 40, &probe->port);
        } else {
            put_ud(bytes + 40, &probe->ud);
        }
        probe_seal(bytes, key);
        return;
    }
    if (is_question(probe->type)) {
        put_query(bytes + 40, &probe->query);
    } else if (is_measure(probe->type)) {
        put_measure(bytes + 40, &probe->measure);
    } else {
        put_stamps(bytes + 40, &probe->own, 0);
        put_stamps(bytes + 56, &probe->heard, -PROBE_GAP_NS_MAX);
        bytes[140] = probe->own.path & PROBE_PATH_MAX;
        bytes[141] = probe->heard.path & PROBE_PATH_MAX;
    }
    put_map(bytes + 72, &probe->map);
    le16_put(bytes + 104, probe->sqrt_p00);
    le16_put(bytes + 106, probe->scale);
    le32_put(bytes + 108, probe->h_ns);
    if (probe->version >= 2) {
        put_anchor(bytes + 112, &probe->anchor);
    }
    le32_put(bytes + 132, probe->seq);
    le32_put(bytes + 136, probe->received);
    bytes[142] = probe->wanted;
    bytes[143] = probe->dead;
    probe_seal(bytes, key);
}

/* -- decode
 * ---------------------------------------------------------------------------------------- */

static enum probe_error check_tag(const uint8_t *bytes, const struct probe_key *keys, size_t count)
{
    const uint32_t id = le32_get(bytes + 12);
    const bool pair = (bytes[5] & FLAG_PAIR) != 0;

    for (size_t i = 0; i < count; i++) {
        uint8_t tag[crypto_shorthash_siphashx24_BYTES];
        if (keys[i].id != id || keys[i].pair != pair) {
            continue;
        }
        crypto_shorthash_siphashx24(tag, bytes, LENGTH, keys[i].bytes);
        return sodium_memcmp(tag, bytes + TAG_OFFSET, sizeof(tag)) == 0 ? PROBE_OK
                                                                        : PROBE_ERROR_TAG;
    }
    return PROBE_ERROR_KEY;
}

static bool all_zero(const uint8_t *bytes, size_t size)
{
    uint8_t any = 0;

    for (size_t i = 0; i < size; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

/* Bits and bytes that must be 0 in this version and type. */
static bool reserved_zero(const uint8_t *bytes)
{
    const enum probe_type kind = (enum probe_type)bytes[4];
    const size_t used = is_measure(kind) ? 24 : 17; /* of the 32 bytes at 40 */
    const bool flags = (bytes[5] & ~FLAGS_KNOWN) == 0 && (bytes[6] & ~STATE_KNOWN) == 0;
    const bool always = all_zero(bytes + 10, 2);

    if (is_bare(kind)) {
        const bool own = kind == PROBE_DIGEST ? all_zero(bytes + 53, 3)
                         : kind == PROBE_PORT
                             ? all_zero(bytes + 67, 1) && all_zero(bytes + 73, 71) &&
                                   (bytes[66] & ~PORT_FLAGS) == 0 && bytes[72] <= PROBE_PATH_MAX &&
                                   (le32_get(bytes + 56) & ~QP_MASK) == 0 &&
                                   (le32_get(bytes + 60) & ~KEY_MASK) == 0
                             : all_zero(bytes + 46, 2) && all_zero(bytes + 72, 72) &&
                                   ((le32_get(bytes + 64) | le32_get(bytes + 68)) & ~KEY_MASK) == 0;
        return flags && always && own && (bytes[5] & (FLAG_OWN | FLAG_HEARD)) == 0;
    }
    const bool version = bytes[2] >= 2 || all_zero(bytes + 112, 20);
    const bool type = has_stamps(kind)
                          ? ((bytes[140] | bytes[141]) & PATH_SECOND) == 0
                          : (bytes[5] & (FLAG_OWN | FLAG_HEARD)) == 0 &&
                                all_zero(bytes + 40 + used, 32 - used) && all_zero(bytes + 140, 2);

    return flags && always && version && type;
}

static bool get_stamps(const uint8_t *at, bool present, uint8_t path, int32_t gap_lowest,
                       struct probe_stamps *stamps)
{
    stamps->present = present;
    stamps->path = path;
    stamps->first.ns = (int64_t)le64_get(at);
    stamps->gap_ns = (int32_t)le32_get(at + 8);
    stamps->seq = le32_get(at + 12);
    if (!present) {
        return stamps->first.ns == 0 && stamps->gap_ns == 0;
    }
    return time_valid(stamps->first.ns) && stamps->gap_ns >= gap_lowest &&
           stamps->gap_ns <= PROBE_GAP_NS_MAX;
}

static enum probe_error get_query(const uint8_t *at, struct probe_query *query)
{
    query->subject.index = le32_get(at);
    query->number = le32_get(at + 4);
    query->level = (int32_t)le32_get(at + 8);
    query->noise = le32_get(at + 12);
    query->opinion = (enum probe_opinion)at[16];
    if (query->subject.index >= FLEET_NIC_MAX) {
        return PROBE_ERROR_NIC;
    }
    return at[16] <= PROBE_OPINION_PARKED ? PROBE_OK : PROBE_ERROR_TYPE;
}

static bool get_measure(const uint8_t *at, enum probe_type type, struct probe_measure *measure)
{
    *measure = (struct probe_measure){.run = le32_get(at),
                                      .packet = le32_get(at + 4),
                                      .heard.ns = (int64_t)le64_get(at + 8),
                                      .bound_ns = le32_get(at + 16),
                                      .count = le32_get(at + 20)};
    const bool answers = type != PROBE_MEASURE;
    return time_valid(measure->heard.ns) && (answers || measure->count == 0) &&
           ((answers && measure->bound_ns != PROBE_BOUND_NONE) || measure->heard.ns == 0) &&
           (answers || measure->bound_ns == PROBE_BOUND_NONE);
}

static bool get_map(const uint8_t *at, struct probe_map *map)
{
    map->map = (struct linear_map){
        .r = (int64_t)le64_get(at),
        .x = (int64_t)le64_get(at + 8),
        .x_fraction = le32_get(at + 16),
        .y = (int32_t)le32_get(at + 20),
    };
    map->seq = le32_get(at + 24);
    map->line_minus_map = (int32_t)le32_get(at + 28);
    return linear_map_valid(&map->map) && map->map.y >= -INT32_MAX &&
           map->line_minus_map >= -PROBE_LINE_MAX && map->line_minus_map <= PROBE_LINE_MAX;
}

static enum probe_error get_anchor(const uint8_t *at, uint8_t version, struct probe_anchor *anchor)
{
    *anchor = (struct probe_anchor){.nic = NIC_NONE};
    if (version < 2) {
        return PROBE_OK;
    }
    if (le32_get(at) == ANCHOR_NONE) {
        return all_zero(at + 4, 16) ? PROBE_OK : PROBE_ERROR_ANCHOR;
    }
    anchor->nic.index = le32_get(at);
    anchor->bound_ns = le32_get(at + 4);
    anchor->utc_minus_fleet_ns = (int64_t)le64_get(at + 8);
    anchor->age_ms = le32_get(at + 16);
    if (anchor->nic.index >= FLEET_NIC_MAX) {
        return PROBE_ERROR_NIC;
    }
    return time_valid(anchor->utc_minus_fleet_ns) ? PROBE_OK : PROBE_ERROR_ANCHOR;
}

static enum probe_error get_digest(const uint8_t *at, struct probe_digest *digest)
{
    struct probe_observation o;
    uint16_t used = 0;
    uint32_t count = 0;

    *digest = (struct probe_digest){.made = {(int64_t)le64_get(at)},
                                    .from = {le32_get(at + 8)},
                                    .count = at[12],
                                    .used = PROBE_OBSERVATION_BYTES};
    memcpy(digest->bytes, at + 16, sizeof(digest->bytes));
    if (!time_valid(digest->made.ns) || digest->from.index >= FLEET_NIC_MAX) {
        return PROBE_ERROR_DIGEST;
    }
    while (count < digest->count && probe_digest_next(digest, &used, &o)) {
        count++;
    }
    if (count == 0 || count < digest->count ||
        !all_zero(digest->bytes + used, sizeof(digest->bytes) - used)) {
        return PROBE_ERROR_DIGEST;
    }
    digest->used = used;
    return PROBE_OK;
}

static void get_port(const uint8_t *at, struct probe_port *port)
{
    *port = (struct probe_port){.qp = le32_get(at + 16),
                                .key = le32_get(at + 20),
                                .lid = le16_get(at + 24),
                                .global = at[26] & PORT_GLOBAL,
                                .stamps = at[26] & PORT_STAMPS,
                                .echo = {le32_get(at + 28), at[32]}};
    memcpy(port->gid, at, sizeof(port->gid));
}

static enum probe_error get_ud(const uint8_t *at, struct probe_ud *ud)
{
    *ud = (struct probe_ud){.exchange = le32_get(at),
                            .step = at[4],
                            .way = at[5],
                            .earliest = {(int64_t)le64_get(at + 8)},
                            .width_ns = le32_get(at + 16),
                            .bound_ns = le32_get(at + 20),
                            .from_key = le32_get(at + 24),
                            .to_key = le32_get(at + 28)};
    const bool moment = ud->bound_ns != PROBE_BOUND_NONE;
    if (ud->step > PROBE_UD_LEFT || ud->way > PROBE_WAY_JOB) {
        return PROBE_ERROR_TYPE;
    }
    return time_valid(ud->earliest.ns) && (!moment || ud->step >= PROBE_UD_ANSWER) &&
                   (moment || (ud->earliest.ns == 0 && ud->width_ns == 0))
               ? PROBE_OK
               : PROBE_ERROR_STAMP;
}

/* The fields that every kind of packet has. */
static enum probe_error get_own(const uint8_t *bytes, struct probe *probe)
{
    if (probe->type == PROBE_DIGEST) {
        return get_digest(bytes + 40, &probe->digest);
    }
    if (probe->type == PROBE_PORT) {
        get_port(bytes + 40, &probe->port);
        return PROBE_OK;
    }
    return get_ud(bytes + 40, &probe->ud);
}

/* The fixed fields of the header. The caller has checked reserved bits. */
static enum probe_error get_header(const uint8_t *bytes, struct probe *probe)
{
    *probe = (struct probe){
        .version = bytes[2],
        .version_lowest = bytes[3],
        .type = (enum probe_type)bytes[4],
        .state = (enum probe_state)(bytes[6] & STATE_MASK),
        .settled = bytes[6] & STATE_SETTLED,
        .tight = bytes[6] & STATE_TIGHT,
        .core = bytes[6] & STATE_CORE,
        .hardware = bytes[5] & FLAG_HARDWARE,
        .late = bytes[5] & FLAG_LATE,
        .pair = bytes[5] & FLAG_PAIR,
        .wanted = bytes[142],
        .dead = bytes[143],
        .second = bytes[7] & PATH_SECOND,
        .path = bytes[7] & PROBE_PATH_MAX,
        .key_id = le32_get(bytes + 12),
        .src.index = le32_get(bytes + 16),
        .dst.index = le32_get(bytes + 20),
        .timeline = le64_get(bytes + 24),
        .epoch = le32_get(bytes + 32),
        .timeline_age_s = le32_get(bytes + 36),
        .sqrt_p00 = le16_get(bytes + 104),
        .scale = le16_get(bytes + 106),
        .h_ns = le32_get(bytes + 108),
        .seq = le32_get(bytes + 132),
        .received = le32_get(bytes + 136),
    };
    if (is_bare(probe->type)) { /* fields of its own are there */
        probe->wanted = probe->dead = 0;
        probe->sqrt_p00 = probe->scale = 0;
        probe->h_ns = UINT32_MAX;
        probe->seq = probe->received = 0;
        probe->anchor.nic = NIC_NONE;
    }
    if ((bytes[6] & STATE_MASK) > PROBE_HOLDOVER) {
        return PROBE_ERROR_STATE;
    }
    if (probe->src.index >= FLEET_NIC_MAX || probe->dst.index >= FLEET_NIC_MAX ||
        nic_id_equal(probe->src, probe->dst)) {
        return PROBE_ERROR_NIC;
    }
    return probe->second && probe->type != PROBE_PAIR ? PROBE_ERROR_TYPE : PROBE_OK;
}

/* The sender has the key; the fields may still be out of range. */
static enum probe_error get_fields(const uint8_t *bytes, struct probe *probe)
{
    const enum probe_type type = (enum probe_type)bytes[4];

    if (le16_get(bytes + 8) != LENGTH) {
        return PROBE_ERROR_LENGTH;
    }
    if (bytes[4] < PROBE_PAIR || bytes[4] > (bytes[2] >= PROBE_VERSION_PORT     ? PROBE_UD
                                             : bytes[2] >= PROBE_VERSION_DIGEST ? PROBE_DIGEST
                                                                                : PROBE_ROUND)) {
        return PROBE_ERROR_TYPE;
    }
    if (!reserved_zero(bytes)) {
        return PROBE_ERROR_RESERVED;
    }
    enum probe_error error = get_header(bytes, probe);
    if (is_bare(type)) {
        return error == PROBE_OK ? get_own(bytes, probe) : error;
    }
    if (error == PROBE_OK && is_question(type)) {
        error = get_query(bytes + 40, &probe->query);
    } else if (error == PROBE_OK && is_measure(type)) {
        error = get_measure(bytes + 40, type, &probe->measure) ? PROBE_OK : PROBE_ERROR_STAMP;
    } else if (error == PROBE_OK &&
               (!get_stamps(bytes + 40, bytes[5] & FLAG_OWN, bytes[140], 0, &probe->own) ||
                !get_stamps(bytes + 56, bytes[5] & FLAG_HEARD, bytes[141], -PROBE_GAP_NS_MAX,
                            &probe->heard))) {
        error = PROBE_ERROR_STAMP;
    }
    if (error == PROBE_OK && !get_map(bytes + 72, &probe->map)) {
        error = PROBE_ERROR_MAP;
    }
    return error != PROBE_OK ? error : get_anchor(bytes + 112, bytes[2], &probe->anchor);
}

enum probe_error probe_decode(const uint8_t *bytes, size_t size, const struct probe_key *keys,
                              size_t key_count, struct probe *ret)
{
    struct probe probe;

    if (size != PROBE_SIZE) {
        return PROBE_ERROR_SIZE;
    }
    if (le16_get(bytes) != MAGIC) {
        return PROBE_ERROR_MAGIC;
    }
    if (bytes[2] > PROBE_VERSION) {
        return PROBE_ERROR_VERSION_NEWER;
    }
    if (bytes[2] < PROBE_VERSION_LOWEST || bytes[3] > bytes[2]) {
        return PROBE_ERROR_VERSION_OLDER;
    }
    enum probe_error error = check_tag(bytes, keys, key_count);
    if (error == PROBE_OK) {
        error = get_fields(bytes, &probe);
    }
    if (error == PROBE_OK) {
        *ret = probe;
    }
    return error;
}

bool probe_claim_read(const uint8_t *bytes, size_t size, struct probe_claim *ret)
{
    if (size != PROBE_SIZE || le16_get(bytes) != MAGIC) {
        return false;
    }
    *ret = (struct probe_claim){.src.index = le32_get(bytes + 16),
                                .dst.index = le32_get(bytes + 20),
                                .pair = bytes[5] & FLAG_PAIR};
    return true;
}

const char *probe_error_name(enum probe_error error)
{
    static const char *const names[PROBE_ERROR_COUNT] = {
        [PROBE_OK] = "ok",
        [PROBE_ERROR_SIZE] = "size",
        [PROBE_ERROR_MAGIC] = "magic",
        [PROBE_ERROR_VERSION_NEWER] = "version_newer",
        [PROBE_ERROR_VERSION_OLDER] = "version_older",
        [PROBE_ERROR_KEY] = "unknown_key",
        [PROBE_ERROR_TAG] = "bad_tag",
        [PROBE_ERROR_LENGTH] = "length",
        [PROBE_ERROR_RESERVED] = "reserved",
        [PROBE_ERROR_TYPE] = "type",
        [PROBE_ERROR_STATE] = "state",
        [PROBE_ERROR_NIC] = "nic",
        [PROBE_ERROR_STAMP] = "stamp",
        [PROBE_ERROR_MAP] = "map",
        [PROBE_ERROR_ANCHOR] = "anchor",
        [PROBE_ERROR_DIGEST] = "digest",
    };

    return error < PROBE_ERROR_COUNT ? names[error] : "unknown";
}
