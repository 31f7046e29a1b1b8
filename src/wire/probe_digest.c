/* probe_digest.c: writes observations into a digest and reads them. probe.h has the layout. */
#include <string.h>

#include "base/endian.h"
#include "wire/probe.h"

#define HEAD        10 /* bytes of an observation without its hops */
#define HOPS_COUNT  0x0007
#define HOPS_ANSWER 0x0008

_Static_assert(PATH_HOP_MAX == 6, "two bits each, of sixteen");
_Static_assert(PROBE_OBSERVATION_MAX == PROBE_OBSERVATION_BYTES / (HEAD + 4), "one hop each");

bool probe_digest_put(struct probe_digest *digest, const struct probe_observation *o)
{
    const size_t size = HEAD + 4u * o->hop_count;
    uint8_t *at = digest->bytes + digest->used;
    uint16_t hops = (uint16_t)(o->hop_count | (o->answered ? HOPS_ANSWER : 0));

    ASSERT(o->hop_count >= 1 && o->hop_count <= PATH_HOP_MAX && o->to.index < FLEET_NIC_MAX);
    if (digest->used + size > sizeof(digest->bytes)) {
        return false;
    }
    for (uint32_t i = 0; i < o->hop_count; i++) {
        hops |= (uint16_t)((o->hops[i].kind & 3u) << (4 + 2 * i));
        le32_put(at + HEAD + 4u * i, o->hops[i].name);
    }
    le32_put(at, o->to.index);
    at[4] = o->path & PROBE_PATH_MAX;
    at[5] = o->answered ? 0 : o->lost;
    le16_put(at + 6, o->age_ms);
    le16_put(at + 8, hops);
    digest->used = (uint16_t)(digest->used + size);
    digest->count++;
    return true;
}

bool probe_digest_next(const struct probe_digest *digest, uint16_t *at,
                       struct probe_observation *ret)
{
    const uint8_t *from = digest->bytes + *at;

    memset(ret, 0, sizeof(*ret));
    if (*at > digest->used || digest->used > sizeof(digest->bytes) || digest->used - *at < HEAD) {
        return false;
    }
    const uint16_t hops = le16_get(from + 8);
    const uint8_t count = hops & HOPS_COUNT;
    const size_t size = HEAD + 4u * count;
    if (count == 0 || count > PATH_HOP_MAX || size > (size_t)(digest->used - *at) ||
        hops >> (4 + 2 * count) != 0) {
        return false;
    }
    *ret = (struct probe_observation){.to.index = le32_get(from),
                                      .path = from[4],
                                      .lost = from[5],
                                      .answered = (hops & HOPS_ANSWER) != 0,
                                      .hop_count = count,
                                      .age_ms = le16_get(from + 6)};
    for (uint32_t i = 0; i < count; i++) {
        ret->hops[i].kind = hops >> (4 + 2 * i) & 3;
        ret->hops[i].name = le32_get(from + HEAD + 4u * i);
        if (ret->hops[i].kind > PROBE_HOP_SPINE) {
            return false;
        }
    }
    if (ret->to.index >= FLEET_NIC_MAX || nic_id_equal(ret->to, digest->from) ||
        ret->path > PROBE_PATH_MAX || (ret->answered && ret->lost != 0)) {
        return false;
    }
    *at = (uint16_t)(*at + size);
    return true;
}
