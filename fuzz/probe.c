/* probe.c: the probe decoder. It gets the bytes as they are. Then it gets them with a tag that fits, so that the fuzzer gets
 * past it. What is accepted must be in range, and must encode to the same bytes. */
#include "wire/probe.h"

#include <sodium.h>
#include <string.h>

#include "base/limits.h"
#include "fuzz.h"

static const struct probe_key key = {.id = 1, .bytes = "fuzz fuzz fuzz "};

static void check_digest(const struct probe_digest *digest)
{
    struct probe_observation o;
    uint32_t count = 0;

    ASSERT(digest->from.index < FLEET_NIC_MAX);
    for (uint16_t at = 0; probe_digest_next(digest, &at, &o); count++) {
        ASSERT(o.to.index < FLEET_NIC_MAX && o.to.index != digest->from.index);
        ASSERT(o.hop_count >= 1 && o.hop_count <= PATH_HOP_MAX && o.path <= PROBE_PATH_MAX);
        ASSERT(!o.answered || o.lost == 0);
    }
    ASSERT(count == digest->count && count >= 1 && count <= PROBE_OBSERVATION_MAX);
}

static void check(const struct probe *probe)
{
    ASSERT(probe->src.index < FLEET_NIC_MAX && probe->dst.index < FLEET_NIC_MAX);
    ASSERT(probe->type >= PROBE_PAIR && probe->type <= PROBE_UD);
    if (probe->type == PROBE_DIGEST) {
        check_digest(&probe->digest);
        return;
    }
    if (probe->type == PROBE_PORT) {
        ASSERT(probe->port.qp < 1u << 24 && probe->port.key < 1u << 31);
        ASSERT(probe->port.echo.path <= PROBE_PATH_MAX);
        return;
    }
    if (probe->type == PROBE_UD) {
        ASSERT(probe->ud.step <= PROBE_UD_LEFT && probe->ud.way <= PROBE_WAY_JOB);
        ASSERT(probe->ud.earliest.ns >= -TIME_NS_MAX && probe->ud.earliest.ns <= TIME_NS_MAX);
        return;
    }
    ASSERT(linear_map_valid(&probe->map.map));
    ASSERT(linear_map_at(&probe->map.map, TIME_NS_MAX) >= linear_map_at(&probe->map.map, 0));
    ASSERT(!probe->own.present || probe->own.gap_ns >= 0);
    ASSERT(probe->anchor.nic.index == NIC_NONE.index || probe->anchor.nic.index < FLEET_NIC_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t bytes[PROBE_SIZE] = {0}, again[PROBE_SIZE];
    struct probe probe;

    ASSERT(probe_decode(data, size, &key, 1, &probe) < PROBE_ERROR_COUNT);
    memcpy(bytes, data, size < PROBE_SIZE ? size : PROBE_SIZE);
    bytes[12] = 1;
    memset(bytes + 13, 0, 3);
    crypto_shorthash_siphashx24(bytes + 144, bytes, 144, key.bytes);
    if (probe_decode(bytes, PROBE_SIZE, &key, 1, &probe) == PROBE_OK) {
        check(&probe);
        probe_encode(again, &probe, &key);
        ASSERT(memcmp(bytes, again, PROBE_SIZE) == 0);
    }
    return 0;
}
