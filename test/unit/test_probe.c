/* The probe codec: a decoded packet equals the encoded one. Everything else that arrives is refused and counted by its reason. */
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/endian.h"
#include "base/limits.h"
#include "base/prng.h"
#include "wire/probe.h"
#include "wire/probe_field.h"

static const struct probe_key key = {.id = 7, .bytes = "0123456789abcde"};
static const struct probe_key other = {.id = 8, .bytes = "fedcba987654321"};

static struct probe sample(uint64_t seed)
{
    struct prng p;
    struct probe probe = {.version = PROBE_VERSION, .version_lowest = PROBE_VERSION_LOWEST};

    prng_init(&p, seed);
    probe.type = (enum probe_type)(PROBE_PAIR + prng_below(&p, 8));
    probe.state = (enum probe_state)prng_below(&p, 4);
    probe.settled = prng_below(&p, 2);
    probe.tight = prng_below(&p, 2);
    probe.core = prng_below(&p, 2);
    probe.hardware = prng_below(&p, 2);
    probe.late = prng_below(&p, 2);
    probe.wanted = (uint8_t)prng_u64(&p);
    probe.dead = (uint8_t)prng_u64(&p);
    probe.second = probe.type == PROBE_PAIR && prng_below(&p, 2);
    probe.path = (uint8_t)prng_below(&p, 128);
    probe.src.index = (uint32_t)prng_below(&p, FLEET_NIC_MAX - 1);
    probe.dst.index = probe.src.index + 1;
    probe.key_id = key.id;
    probe.timeline = prng_u64(&p);
    probe.epoch = (uint32_t)prng_u64(&p);
    probe.timeline_age_s = (uint32_t)prng_u64(&p);
    if (probe.type == PROBE_QUERY || probe.type == PROBE_ANSWER) {
        probe.query = (struct probe_query){.subject = {(uint32_t)prng_below(&p, FLEET_NIC_MAX)},
                                           .number = 3,
                                           .level = -17,
                                           .noise = 4,
                                           .opinion = PROBE_OPINION_PARKED};
    } else if (probe.type >= PROBE_MEASURE) {
        const bool heard = probe.type != PROBE_MEASURE && prng_below(&p, 2);
        probe.measure = (struct probe_measure){
            .run = (uint32_t)prng_u64(&p),
            .packet = (uint32_t)prng_u64(&p),
            .heard.ns = heard ? 1790000000000000000 : 0,
            .bound_ns = heard ? 300 : PROBE_BOUND_NONE,
            .count = probe.type != PROBE_MEASURE ? (uint32_t)prng_u64(&p) : 0};
    } else {
        probe.own = (struct probe_stamps){
            .present = true, .path = 3, .seq = 12, .first = {-5}, .gap_ns = 10001};
        probe.heard = (struct probe_stamps){.present = prng_below(&p, 2), .path = 127, .seq = 99};
        if (probe.heard.present) {
            probe.heard.first.ns = 1790000000000000000;
            probe.heard.gap_ns = -20;
        }
    }
    probe.map.map = (struct linear_map){.r = (int64_t)(prng_u64(&p) >> 3),
                                        .x = -(int64_t)(prng_u64(&p) >> 3),
                                        .x_fraction = (uint32_t)prng_u64(&p),
                                        .y = (int32_t)prng_u64(&p)};
    probe.map.seq = (uint32_t)prng_u64(&p);
    probe.map.line_minus_map = (int32_t)(prng_u64(&p) % PROBE_LINE_MAX) - PROBE_LINE_MAX / 2;
    probe.sqrt_p00 = (uint16_t)prng_u64(&p);
    probe.scale = (uint16_t)prng_u64(&p);
    probe.h_ns = (uint32_t)prng_u64(&p);
    probe.anchor = (struct probe_anchor){.nic = NIC_NONE};
    if (prng_below(&p, 2)) {
        probe.anchor = (struct probe_anchor){
            .nic = {5}, .bound_ns = 77, .utc_minus_fleet_ns = -3, .age_ms = 8};
    }
    probe.seq = (uint32_t)prng_u64(&p);
    probe.received = (uint32_t)prng_u64(&p);
    return probe;
}

/* Seals a packet again that a key holder has changed. */
static void seal(uint8_t *bytes)
{
    crypto_shorthash_siphashx24(bytes + 144, bytes, 144, key.bytes);
}

static enum probe_error decode(const uint8_t *bytes, struct probe *ret)
{
    return probe_decode(bytes, PROBE_SIZE, &key, 1, ret);
}

static void a_written_probe_is_read_back(void **state)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        const struct probe probe = sample(seed);
        struct probe read;
        uint8_t bytes[PROBE_SIZE], again[PROBE_SIZE];

        probe_encode(bytes, &probe, &key);
        assert_int_equal(decode(bytes, &read), PROBE_OK);
        probe_encode(again, &read, &key);
        assert_memory_equal(bytes, again, PROBE_SIZE);
        assert_int_equal(read.type, probe.type);
        assert_int_equal(read.src.index, probe.src.index);
        assert_true(read.own.first.ns == probe.own.first.ns);
        assert_true(read.heard.gap_ns == probe.heard.gap_ns);
        assert_true(read.map.map.x == probe.map.map.x && read.map.map.y == probe.map.map.y);
        assert_int_equal(read.anchor.nic.index, probe.anchor.nic.index);
        assert_int_equal(read.query.opinion, probe.query.opinion);
        assert_int_equal(read.key_id, key.id);
    }
}

static void either_of_two_keys_opens(void **state)
{
    const struct probe_key keys[2] = {key, other};
    struct probe probe = sample(1), read;
    uint8_t bytes[PROBE_SIZE];

    probe_encode(bytes, &probe, &other);
    assert_int_equal(probe_decode(bytes, PROBE_SIZE, keys, 2, &read), PROBE_OK);
    assert_int_equal(read.key_id, other.id);
    assert_int_equal(probe_decode(bytes, PROBE_SIZE, &key, 1, &read), PROBE_ERROR_KEY);
    assert_int_equal(probe_decode(bytes, PROBE_SIZE, NULL, 0, &read), PROBE_ERROR_KEY);
}

/* Any flipped bit and any other length is refused; *ret stays untouched. */
static void damage_is_refused(void **state)
{
    const struct probe probe = sample(2);
    struct probe read;
    uint8_t bytes[PROBE_SIZE + 1] = {0};

    memset(&read, 0x5a, sizeof(read));
    struct probe before = read;
    probe_encode(bytes, &probe, &key);
    for (int bit = 0; bit < PROBE_SIZE * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_not_equal(decode(bytes, &read), PROBE_OK);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    for (size_t size = 0; size <= PROBE_SIZE + 1; size++) {
        assert_int_equal(probe_decode(bytes, size, &key, 1, &read),
                         size == PROBE_SIZE ? PROBE_OK : PROBE_ERROR_SIZE);
        if (size == PROBE_SIZE) {
            read = before;
        }
    }
    assert_memory_equal(&read, &before, sizeof(read));
}

/* Nonsense from a key holder: each field's limit, and the counted reason. */
static void every_reason_is_told(void **state)
{
    static const struct {
        int offset;
        int size;
        uint64_t value;
        enum probe_error error;
        enum probe_type type;
    } cases[] = {
        {0, 2, 0, PROBE_ERROR_MAGIC, PROBE_PAIR},
        {2, 1, PROBE_VERSION + 1, PROBE_ERROR_VERSION_NEWER, PROBE_PAIR},
        {2, 1, 0, PROBE_ERROR_VERSION_OLDER, PROBE_PAIR},
        {3, 1, PROBE_VERSION + 1, PROBE_ERROR_VERSION_OLDER, PROBE_PAIR},
        {4, 1, 0, PROBE_ERROR_TYPE, PROBE_PAIR},
        {4, 1, PROBE_UD + 1, PROBE_ERROR_TYPE, PROBE_PAIR},
        {5, 1, 0x80, PROBE_ERROR_RESERVED, PROBE_PAIR},
        {6, 1, 0x08, PROBE_ERROR_RESERVED, PROBE_PAIR},
        {6, 1, 0x04, PROBE_ERROR_STATE, PROBE_PAIR},
        {7, 1, 0x80, PROBE_ERROR_TYPE, PROBE_SINGLE},
        {8, 2, 143, PROBE_ERROR_LENGTH, PROBE_PAIR},
        {10, 2, 1, PROBE_ERROR_RESERVED, PROBE_PAIR},
        {12, 4, 6, PROBE_ERROR_KEY, PROBE_PAIR},
        {16, 4, FLEET_NIC_MAX, PROBE_ERROR_NIC, PROBE_PAIR},
        {20, 4, UINT32_MAX, PROBE_ERROR_NIC, PROBE_PAIR},
        {20, 4, 1, PROBE_ERROR_NIC, PROBE_PAIR}, /* = src */
        {40, 8, (uint64_t)TIME_NS_MAX + 1, PROBE_ERROR_STAMP, PROBE_PAIR},
        {48, 4, PROBE_GAP_NS_MAX + 1, PROBE_ERROR_STAMP, PROBE_PAIR},
        {48, 4, UINT32_MAX, PROBE_ERROR_STAMP, PROBE_PAIR}, /* own gap -1 */
        {56, 8, 1, PROBE_ERROR_STAMP, PROBE_PAIR},          /* stamp given though absent */
        {64, 4, 1, PROBE_ERROR_STAMP, PROBE_PAIR},
        {40, 4, FLEET_NIC_MAX, PROBE_ERROR_NIC, PROBE_QUERY},
        {56, 1, 3, PROBE_ERROR_TYPE, PROBE_ANSWER},
        {57, 1, 1, PROBE_ERROR_RESERVED, PROBE_ANSWER},
        {140, 1, 1, PROBE_ERROR_RESERVED, PROBE_ANSWER},
        {48, 8, 1, PROBE_ERROR_STAMP, PROBE_MEASURE},
        {56, 4, 300, PROBE_ERROR_STAMP, PROBE_MEASURE},
        {60, 4, 1, PROBE_ERROR_STAMP, PROBE_MEASURE},
        {48, 8, INT64_MAX, PROBE_ERROR_STAMP, PROBE_MEASURED},
        {64, 1, 1, PROBE_ERROR_RESERVED, PROBE_MEASURED},
        {56, 4, 300, PROBE_OK, PROBE_ROUND},
        {48, 8, INT64_MAX, PROBE_ERROR_STAMP, PROBE_ROUND},
        {64, 1, 1, PROBE_ERROR_RESERVED, PROBE_ROUND},
        {71, 1, 1, PROBE_ERROR_RESERVED, PROBE_MEASURE},
        {72, 8, (uint64_t)INT64_MIN, PROBE_ERROR_MAP, PROBE_PAIR},
        {80, 8, (uint64_t)INT64_MAX, PROBE_ERROR_MAP, PROBE_PAIR},
        {100, 4, PROBE_LINE_MAX + 1, PROBE_ERROR_MAP, PROBE_PAIR},
        {112, 4, FLEET_NIC_MAX, PROBE_ERROR_NIC, PROBE_PAIR},
        {116, 4, 1, PROBE_ERROR_ANCHOR, PROBE_PAIR}, /* absent, but with a bound */
        {140, 1, 0x80, PROBE_ERROR_RESERVED, PROBE_PAIR},
    };

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct probe probe = {.version = PROBE_VERSION,
                              .version_lowest = 1,
                              .type = cases[i].type,
                              .src = {1},
                              .dst = {2},
                              .anchor.nic = NIC_NONE,
                              .own.present = true};
        struct probe read;
        uint8_t bytes[PROBE_SIZE];

        if (probe.type >= PROBE_MEASURE) {
            probe.measure.bound_ns = PROBE_BOUND_NONE;
        }
        probe_encode(bytes, &probe, &key);
        assert_int_equal(decode(bytes, &read), PROBE_OK);
        for (int k = 0; k < cases[i].size; k++) {
            bytes[cases[i].offset + k] = (uint8_t)(cases[i].value >> 8 * k);
        }
        seal(bytes);
        if (decode(bytes, &read) != cases[i].error) {
            fail_msg("offset %d: %s, expected %s", cases[i].offset,
                     probe_error_name(decode(bytes, &read)), probe_error_name(cases[i].error));
        }
    }
}

/* Random bytes, sealed with the right key: refused or in range, and nothing else. */
static void authentic_noise(void **state)
{
    struct prng p;

    prng_init(&p, 5);
    for (int i = 0; i < 20000; i++) {
        const struct probe probe = sample((uint64_t)i % 50);
        struct probe read;
        uint8_t bytes[PROBE_SIZE];

        probe_encode(bytes, &probe, &key);
        for (int k = 0; k < 3; k++) {
            bytes[prng_below(&p, 144)] = (uint8_t)prng_u64(&p);
        }
        seal(bytes);
        if (decode(bytes, &read) == PROBE_OK) {
            assert_true(read.src.index < FLEET_NIC_MAX && read.dst.index < FLEET_NIC_MAX);
            assert_true(linear_map_valid(&read.map.map));
            assert_in_range(read.type, PROBE_PAIR, PROBE_UD);
        }
    }
}

/* A peer of the first version: no anchor, everything else the same. */
static void the_first_version(void **state)
{
    struct probe probe = sample(3), read;
    uint8_t bytes[PROBE_SIZE];

    probe.version = probe.version_lowest = 1;
    probe.anchor = (struct probe_anchor){.nic = {5}, .bound_ns = 1};
    probe_encode(bytes, &probe, &key);
    assert_int_equal(decode(bytes, &read), PROBE_OK);
    assert_int_equal(read.version, 1);
    assert_int_equal(read.anchor.nic.index, NIC_NONE.index);
    bytes[113] = 1;
    seal(bytes);
    assert_int_equal(decode(bytes, &read), PROBE_ERROR_RESERVED);
}

/* ---- digests ---- */
static struct probe_observation observation(struct prng *p, uint8_t hops)
{
    struct probe_observation o = {.to = {(uint32_t)prng_below(p, 100) + 2000},
                                  .path = (uint8_t)prng_below(p, 128),
                                  .answered = prng_below(p, 2),
                                  .hop_count = hops,
                                  .age_ms = (uint16_t)prng_u64(p)};
    o.lost = o.answered ? 0 : (uint8_t)prng_u64(p);
    for (uint32_t i = 0; i < hops; i++) {
        o.hops[i].name = (uint32_t)prng_u64(p);
        o.hops[i].kind = (uint8_t)prng_below(p, 3);
    }
    return o;
}

static struct probe digest_of(uint64_t seed, struct probe_observation *list)
{
    struct prng p;
    struct probe probe = {.version = PROBE_VERSION,
                          .version_lowest = PROBE_VERSION_LOWEST,
                          .type = PROBE_DIGEST,
                          .state = PROBE_TRACK,
                          .src = {1},
                          .dst = {2},
                          .timeline = 77,
                          .epoch = 3};

    prng_init(&p, seed);
    probe.digest = (struct probe_digest){.made = {1790000000000000000}, .from = {1}};
    for (uint32_t i = 0; i < PROBE_OBSERVATION_MAX; i++) {
        list[i] = observation(&p, (uint8_t)(1 + prng_below(&p, PATH_HOP_MAX)));
        if (!probe_digest_put(&probe.digest, &list[i])) {
            break;
        }
    }
    return probe;
}

static void a_digest_is_read_as_it_was_made(void **state)
{
    for (uint64_t seed = 0; seed < 500; seed++) {
        struct probe_observation list[PROBE_OBSERVATION_MAX], o;
        const struct probe probe = digest_of(seed, list);
        struct probe read;
        uint8_t bytes[PROBE_SIZE];
        uint16_t at = 0;

        probe_encode(bytes, &probe, &key);
        assert_int_equal(decode(bytes, &read), PROBE_OK);
        assert_int_equal(read.type, PROBE_DIGEST);
        assert_true(read.digest.made.ns == probe.digest.made.ns);
        assert_int_equal(read.digest.from.index, 1);
        assert_int_equal(read.digest.count, probe.digest.count);
        assert_in_range(read.digest.count, 2, PROBE_OBSERVATION_MAX);
        assert_true(read.timeline == 77 && read.epoch == 3);
        for (uint32_t i = 0; i < read.digest.count; i++) {
            assert_true(probe_digest_next(&read.digest, &at, &o));
            assert_true(o.to.index == list[i].to.index && o.path == list[i].path &&
                        o.lost == list[i].lost && o.answered == list[i].answered &&
                        o.age_ms == list[i].age_ms && o.hop_count == list[i].hop_count);
            for (uint32_t k = 0; k < o.hop_count; k++) {
                assert_int_equal(o.hops[k].name, list[i].hops[k].name);
                assert_int_equal(o.hops[k].kind, list[i].hops[k].kind);
            }
        }
        assert_false(probe_digest_next(&read.digest, &at, &o));
    }
}

/* Authentic, but with nonsense in one field each. An older version has no digests at all. */
static void a_digest_out_of_range_is_refused(void **state)
{
    static const struct {
        uint8_t offset, value;
        enum probe_error error;
    } cases[] = {
        {2, PROBE_VERSION_DIGEST - 1, PROBE_ERROR_TYPE},
        {5, 0x02, PROBE_ERROR_RESERVED}, /* stamps, which it doesn't have */
        {53, 1, PROBE_ERROR_RESERVED},
        {47, 0x7f, PROBE_ERROR_DIGEST}, /* made in a far future */
        {51, 0xff, PROBE_ERROR_DIGEST}, /* a NIC that no list has */
        {52, 0, PROBE_ERROR_DIGEST},    /* no observation */
        {52, 3, PROBE_ERROR_DIGEST},    /* more than there are */
        {52, 1, PROBE_ERROR_DIGEST},    /* fewer */
        {59, 0xff, PROBE_ERROR_DIGEST}, /* to a NIC that no list has */
        {60, 0x80, PROBE_ERROR_DIGEST}, /* a path that no packet has */
        {64, 0x00, PROBE_ERROR_DIGEST}, /* no hops */
        {64, 0x07, PROBE_ERROR_DIGEST}, /* more than a way has */
        {64, 0x3a, PROBE_ERROR_DIGEST}, /* answered, and lost */
        {65, 0xc0, PROBE_ERROR_DIGEST}, /* kinds of hops after the last one */
        {143, 1, PROBE_ERROR_DIGEST},   /* after the last observation */
    };
    const struct probe_observation o = {
        .to = {2}, .lost = 3, .hop_count = 2, .hops = {{5, PROBE_HOP_LEAF}, {6, PROBE_HOP_SPINE}}};
    struct probe probe = {.version = PROBE_VERSION,
                          .version_lowest = PROBE_VERSION_LOWEST,
                          .type = PROBE_DIGEST,
                          .src = {1},
                          .dst = {2},
                          .digest.from = {1}};
    uint8_t bytes[PROBE_SIZE];
    struct probe read;

    assert_true(probe_digest_put(&probe.digest, &o) && probe_digest_put(&probe.digest, &o));
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        probe_encode(bytes, &probe, &key);
        assert_int_equal(decode(bytes, &read), PROBE_OK);
        bytes[cases[i].offset] = cases[i].value;
        seal(bytes);
        assert_int_equal(decode(bytes, &read), cases[i].error);
    }
    probe_encode(bytes, &probe, &key); /* to itself */
    bytes[56] = 1;
    seal(bytes);
    assert_int_equal(decode(bytes, &read), PROBE_ERROR_DIGEST);
}

/* ---- queue pairs ---- */
static struct probe port_of(void)
{
    return (struct probe){.version = PROBE_VERSION,
                          .version_lowest = PROBE_VERSION_LOWEST,
                          .type = PROBE_PORT,
                          .src = {1},
                          .dst = {2},
                          .port = {.gid = {[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7},
                                   .qp = 0xabcdef,
                                   .key = 0x7fffffff,
                                   .lid = 0xc123,
                                   .global = true,
                                   .echo = {0xfedcba98, PROBE_PATH_MAX}}};
}

static struct probe ud_of(uint8_t step)
{
    struct probe probe = {.version = PROBE_VERSION,
                          .version_lowest = PROBE_VERSION_LOWEST,
                          .type = PROBE_UD,
                          .src = {1},
                          .dst = {2},
                          .timeline = 77,
                          .ud = {.exchange = 0x12345678,
                                 .step = step,
                                 .way = PROBE_WAY_JOB,
                                 .from_key = 0x7fffffff,
                                 .to_key = 0x2345678,
                                 .bound_ns = PROBE_BOUND_NONE}};
    if (step >= PROBE_UD_ANSWER) {
        probe.ud.earliest.ns = 1790000000000000000;
        probe.ud.width_ns = 250;
        probe.ud.bound_ns = 900;
    }
    return probe;
}

static void queue_pairs_are_read_as_they_were_told(void **state)
{
    struct probe probe = port_of(), read;
    uint8_t bytes[PROBE_SIZE];

    probe_encode(bytes, &probe, &key);
    assert_int_equal(decode(bytes, &read), PROBE_OK);
    assert_int_equal(read.type, PROBE_PORT);
    assert_memory_equal(read.port.gid, probe.port.gid, 16);
    assert_true(read.port.qp == 0xabcdef && read.port.key == 0x7fffffff &&
                read.port.lid == 0xc123 && read.port.global && !read.port.stamps &&
                read.port.echo.seq == 0xfedcba98 && read.port.echo.path == PROBE_PATH_MAX);
    for (uint8_t step = PROBE_UD_HERALD; step <= PROBE_UD_LEFT; step++) {
        probe = ud_of(step);
        probe_encode(bytes, &probe, &key);
        assert_int_equal(decode(bytes, &read), PROBE_OK);
        assert_int_equal(read.timeline, 77);
        assert_true(read.ud.exchange == 0x12345678 && read.ud.step == step &&
                    read.ud.way == PROBE_WAY_JOB && read.ud.width_ns == probe.ud.width_ns &&
                    read.ud.bound_ns == probe.ud.bound_ns && read.ud.from_key == 0x7fffffff &&
                    read.ud.to_key == 0x2345678 && read.ud.earliest.ns == probe.ud.earliest.ns);
    }
}

/* Authentic, but with nonsense in one place each. An older version has none of it. */
static void queue_pairs_out_of_range_are_refused(void **state)
{
    static const struct {
        uint8_t ud, offset, value;
        enum probe_error error;
    } cases[] = {
        {0, 2, PROBE_VERSION_PORT - 1, PROBE_ERROR_TYPE},
        {0, 5, 0x02, PROBE_ERROR_RESERVED},
        {0, 59, 1, PROBE_ERROR_RESERVED},    /* a number of more than 24 bits */
        {0, 63, 0x80, PROBE_ERROR_RESERVED}, /* a key that only the kernel may use */
        {0, 66, 0x04, PROBE_ERROR_RESERVED},
        {0, 67, 1, PROBE_ERROR_RESERVED},
        {0, 72, 0x80, PROBE_ERROR_RESERVED},
        {0, 73, 1, PROBE_ERROR_RESERVED},
        {0, 143, 1, PROBE_ERROR_RESERVED},
        {1, 2, PROBE_VERSION_PORT - 1, PROBE_ERROR_TYPE},
        {1, 44, PROBE_UD_LEFT + 1, PROBE_ERROR_TYPE},
        {1, 44, PROBE_UD_HERALD, PROBE_ERROR_STAMP}, /* it has no time */
        {1, 45, PROBE_WAY_JOB + 1, PROBE_ERROR_TYPE},
        {1, 46, 1, PROBE_ERROR_RESERVED},
        {1, 55, 0x7f, PROBE_ERROR_STAMP},    /* in a far future */
        {1, 67, 0x80, PROBE_ERROR_RESERVED}, /* keys that only the kernel may use */
        {1, 71, 0x80, PROBE_ERROR_RESERVED},
        {1, 72, 1, PROBE_ERROR_RESERVED},
        {1, 143, 1, PROBE_ERROR_RESERVED},
    };
    struct probe read;
    uint8_t bytes[PROBE_SIZE];

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct probe probe = cases[i].ud != 0 ? ud_of(PROBE_UD_ANSWER) : port_of();
        probe_encode(bytes, &probe, &key);
        bytes[cases[i].offset] = cases[i].value;
        seal(bytes);
        assert_int_equal(decode(bytes, &read), cases[i].error);
    }
    const struct probe probe = ud_of(PROBE_UD_ANSWER); /* a moment without a bound */
    probe_encode(bytes, &probe, &key);
    memset(bytes + 60, 0xff, 4);
    seal(bytes);
    assert_int_equal(decode(bytes, &read), PROBE_ERROR_STAMP);
}

static void every_error_has_a_name(void **state)
{
    for (int i = 0; i < PROBE_ERROR_COUNT; i++) {
        assert_string_not_equal(probe_error_name((enum probe_error)i), "unknown");
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(probe_error_name((enum probe_error)i),
                                    probe_error_name((enum probe_error)k));
        }
    }
}

/* The line in integers: exact at r, monotone, and its rate right to 1 ns over an hour. */
static void linear_map_is_exact_and_monotone(void **state)
{
    struct prng p;

    prng_init(&p, 4);
    for (int i = 0; i < 2000; i++) {
        const struct linear_map map = {.r = (int64_t)(prng_u64(&p) >> 3),
                                       .x = (int64_t)(prng_u64(&p) >> 3) - (1LL << 60),
                                       .y = linear_map_y(200e3 * (prng_uniform(&p) - 0.5)),
                                       .x_fraction = (uint32_t)prng_u64(&p)};
        const int64_t hour = 3600 * NS_PER_S;
        const double expected = linear_map_ppb(map.y) * 3600;
        int64_t before = INT64_MIN;

        assert_true(linear_map_valid(&map));
        assert_true(linear_map_at(&map, map.r) == map.r + map.x);
        for (int k = -5; k < 5; k++) {
            const int64_t f = linear_map_at(&map, map.r + k);
            assert_true(f >= before);
            before = f;
        }
        const double seen = (double)(linear_map_at(&map, map.r + hour) - map.r - hour - map.x);
        assert_true(seen - expected <= 1.01 && seen - expected >= -1.01);
        assert_true(linear_map_at(&map, TIME_NS_MAX) > linear_map_at(&map, -TIME_NS_MAX));
    }
}

/* If the encoder writes a field that isn't in the table, no simulated liar lies in it. So every byte before the tag belongs to
 * one field, frames the packet, or must be 0. */
static void the_table_of_fields_is_complete(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        const struct probe probe = seed % 20 == 0   ? port_of()
                                   : seed % 20 == 1 ? ud_of(PROBE_UD_LEFT)
                                                    : sample(seed);
        uint8_t bytes[PROBE_SIZE], owners[PROBE_SIZE] = {0};
        struct probe read;
        probe_encode(bytes, &probe, &key);
        for (unsigned i = 0; i < PROBE_FIELD_COUNT; i++) {
            for (unsigned k = 0; k < probe_fields[i].size; k++) {
                owners[probe_fields[i].offset + k] =
                    (uint8_t)(owners[probe_fields[i].offset + k] +
                              ((probe_fields[i].in & probe_field_kind(probe.type)) != 0));
            }
        }
        for (unsigned i = 2; i < PROBE_SIZE - 16; i++) {
            if (owners[i] == 1 || i == 8 || i == 9 || (i >= 12 && i < 16)) {
                continue;
            }
            assert_int_equal(owners[i], 0);
            bytes[i] ^= 1;
            probe_seal(bytes, &key);
            assert_int_equal(probe_decode(bytes, sizeof(bytes), &key, 1, &read),
                             PROBE_ERROR_RESERVED);
            bytes[i] ^= 1;
        }
    }
}

static void a_field_is_read_as_it_was_put(void **state)
{
    struct probe probe = sample(5), read;
    uint8_t bytes[PROBE_SIZE];
    (void)state;

    probe_encode(bytes, &probe, &key);
    for (unsigned i = 0; i < PROBE_FIELD_COUNT; i++) {
        if (strcmp(probe_fields[i].name, "sqrt_p00") == 0) {
            probe_field_put(bytes, &probe_fields[i], 0x12345);
            assert_int_equal(probe_field_get(bytes, &probe_fields[i]), 0x2345);
        }
    }
    probe_seal(bytes, &other);
    assert_int_equal(probe_decode(bytes, sizeof(bytes), &key, 1, &read), PROBE_ERROR_KEY);
    assert_int_equal(probe_decode(bytes, sizeof(bytes), &other, 1, &read), PROBE_OK);
    assert_int_equal(read.sqrt_p00, 0x2345);
    assert_int_equal(read.scale, probe.scale);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_written_probe_is_read_back),
        cmocka_unit_test(either_of_two_keys_opens),
        cmocka_unit_test(damage_is_refused),
        cmocka_unit_test(every_reason_is_told),
        cmocka_unit_test(authentic_noise),
        cmocka_unit_test(the_first_version),
        cmocka_unit_test(a_digest_is_read_as_it_was_made),
        cmocka_unit_test(a_digest_out_of_range_is_refused),
        cmocka_unit_test(queue_pairs_are_read_as_they_were_told),
        cmocka_unit_test(queue_pairs_out_of_range_are_refused),
        cmocka_unit_test(every_error_has_a_name),
        cmocka_unit_test(linear_map_is_exact_and_monotone),
        cmocka_unit_test(the_table_of_fields_is_complete),
        cmocka_unit_test(a_field_is_read_as_it_was_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
