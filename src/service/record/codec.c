/* codec.c: packs events. */
#include "service/record/codec.h"

#include "base/prng.h"
#include "service/record/pack.h"

#include <errno.h>
#include <string.h>

enum { SEGMENT_END_BYTE = 0, RECORD_END_BYTE = 253, FINDING_BYTE = 254, DRAIN_BYTE = 255 };

_Static_assert((int)NODE_EVENT_KIND_COUNT < (int)RECORD_END_BYTE, "kinds and marks stay apart");

_Static_assert(sizeof(struct finding) <= 8 * CODEC_WORD_MAX, "a finding fits");

_Static_assert(sizeof(struct node_receive) <= 8 * CODEC_WORD_MAX, "an event fits");
_Static_assert(sizeof(struct node_link) <= 8 * CODEC_WORD_MAX, "an event fits");

void codec_init(struct codec *c)
{
    memset(c, 0, sizeof(*c));
}

static size_t word_count(enum node_event_kind kind)
{
    return kind == NODE_EVENT_PEERS ? 0 : (node_event_size(kind) + 7) / 8;
}

/* Memory of the last similar event. Receive events have several slots, by sender, path and type. The decoder does not know
 * these fields yet, so the slot is written with the event. */
static uint64_t *memory_of(struct codec *c, enum node_event_kind kind, uint8_t slot)
{
    return kind == NODE_EVENT_RECEIVE ? c->receive[slot] : c->last[kind];
}

static uint8_t slot_of(enum node_event_kind kind, const void *event)
{
    if (kind != NODE_EVENT_RECEIVE) {
        return 0;
    }
    const struct node_receive *r = event;
    return (uint8_t)hash_u64(r->probe.src.index, (uint64_t)r->probe.path << 8 |
                                                     (uint64_t)r->probe.type << 1 |
                                                     r->probe.second);
}

size_t codec_encode_drain(uint8_t *bytes)
{
    bytes[0] = DRAIN_BYTE;
    return 1;
}

size_t codec_encode_finding(const struct finding *finding, uint8_t *bytes)
{
    bytes[0] = FINDING_BYTE;
    memcpy(bytes + 1, finding, sizeof(*finding));
    return 1 + sizeof(*finding);
}

void codec_encode_end(bool last, uint64_t sum, uint8_t *bytes)
{
    bytes[0] = last ? RECORD_END_BYTE : SEGMENT_END_BYTE;
    memcpy(bytes + 1, &sum, sizeof(sum));
}

int codec_decode_end(const uint8_t *bytes, size_t size, uint64_t sum, bool *ret_last)
{
    if (size < CODEC_END_SIZE) {
        return -ENODATA;
    }
    if ((bytes[0] != RECORD_END_BYTE && bytes[0] != SEGMENT_END_BYTE) ||
        memcmp(bytes + 1, &sum, sizeof(sum)) != 0) {
        return -EPROTO;
    }
    *ret_last = bytes[0] == RECORD_END_BYTE;
    return 0;
}

size_t codec_encode(struct codec *c, enum node_event_kind kind, struct mono now, const void *event,
                    uint8_t *bytes)
{
    const size_t words = word_count(kind);
    uint64_t copy[CODEC_WORD_MAX] = {0};
    size_t n = 0;
    bytes[n++] = (uint8_t)(kind + 1);
    n += pack_varint(bytes + n, pack_signed((int64_t)((uint64_t)now.ns - (uint64_t)c->now_ns)));
    c->now_ns = now.ns;
    if (words == 0) {
        return n;
    }
    const uint8_t slot = slot_of(kind, event);
    if (kind == NODE_EVENT_RECEIVE) {
        bytes[n++] = slot;
    }
    memcpy(copy, event, node_event_size(kind));
    n += pack_words(memory_of(c, kind, slot), copy, words, bytes + n);
    return n;
}

long codec_decode(struct codec *c, const uint8_t *bytes, size_t size,
                  enum node_event_kind *ret_kind, struct mono *ret_now,
                  uint64_t ret_event[CODEC_WORD_MAX])
{
    uint64_t value = 0;
    if (size > 0 && bytes[0] == DRAIN_BYTE) {
        *ret_kind = CODEC_DRAIN;
        *ret_now = (struct mono){c->now_ns};
        return 1;
    }
    if (size > 0 && bytes[0] == FINDING_BYTE) {
        if (size < 1 + sizeof(struct finding)) {
            return -ENODATA;
        }
        memcpy(ret_event, bytes + 1, sizeof(struct finding));
        *ret_kind = (enum node_event_kind)CODEC_FINDING;
        *ret_now = (struct mono){c->now_ns};
        return 1 + (long)sizeof(struct finding);
    }
    if (size == 0) {
        return -ENODATA;
    }
    if (bytes[0] == SEGMENT_END_BYTE || bytes[0] == RECORD_END_BYTE) {
        return 0;
    }
    if (bytes[0] > NODE_EVENT_KIND_COUNT) {
        return -EPROTO;
    }
    const enum node_event_kind kind = (enum node_event_kind)(bytes[0] - 1);
    const size_t words = word_count(kind);
    size_t n = 1;
    long used = unpack_varint(bytes + n, size - n, &value);
    if (used < 0) {
        return used;
    }
    n += (size_t)used;
    const int64_t now_ns = (int64_t)((uint64_t)c->now_ns + (uint64_t)unpack_signed(value));
    if (now_ns < -TIME_NS_MAX || now_ns > TIME_NS_MAX) {
        return -EPROTO;
    }
    const uint8_t slot = kind == NODE_EVENT_RECEIVE && n < size ? bytes[n++] : 0;
    used = unpack_words(memory_of(c, kind, slot), words, bytes + n, size - n);
    if (used < 0) {
        return used;
    }
    n += (size_t)used;
    memcpy(ret_event, memory_of(c, kind, slot), words * sizeof(ret_event[0]));
    c->now_ns = now_ns;
    *ret_kind = kind;
    *ret_now = (struct mono){now_ns};
    return (long)n;
}

static bool time_fits(int64_t ns)
{
    return ns > -TIME_NS_MAX && ns < TIME_NS_MAX;
}

/* If a bool's byte is neither 0 nor 1, reading it as a bool would be undefined behaviour. */
static bool bools_fit(const struct probe *p)
{
    const bool *const flags[] = {&p->settled, &p->tight,  &p->core,        &p->hardware,
                                 &p->late,    &p->second, &p->own.present, &p->heard.present};
    const size_t count =
        ARRAY_COUNT(flags) - (p->type == PROBE_DIGEST ? 2 : 0); /* a digest lacks the last two */

    for (size_t i = 0; i < count; i++) {
        if (*(const uint8_t *)flags[i] > 1) {
            return false;
        }
    }
    return true;
}

static bool check_probe(const struct probe *p)
{
    if (p->state > PROBE_HOLDOVER || p->path > PROBE_PATH_MAX || p->src.index >= FLEET_NIC_MAX ||
        p->dst.index >= FLEET_NIC_MAX) {
        return false;
    }
    if (p->type == PROBE_DIGEST) {
        return p->digest.from.index < FLEET_NIC_MAX && time_fits(p->digest.made.ns) &&
               p->digest.used <= sizeof(p->digest.bytes);
    }
    return p->type >= PROBE_PAIR && p->type <= PROBE_ANSWER && p->own.path <= PROBE_PATH_MAX &&
           p->heard.path <= PROBE_PATH_MAX && time_fits(p->own.first.ns) &&
           time_fits(p->heard.first.ns) && linear_map_valid(&p->map.map) &&
           p->query.opinion <= PROBE_OPINION_PARKED;
}

int codec_check(const struct node_config *config, enum node_event_kind kind, const void *event)
{
    uint32_t local = 0;
    bool good = true;
    switch (kind) {
    case NODE_EVENT_RECEIVE: {
        const struct node_receive *r = event;
        local = r->local;
        good = bools_fit(&r->probe) && check_probe(&r->probe) && time_fits(r->rx.ns) &&
               r->stamps <= STAMP_HARDWARE;
        break;
    }
    case NODE_EVENT_TRANSMIT: {
        const struct node_transmit *t = event;
        local = t->local;
        good =
            time_fits(t->tx.ns) && t->outcome <= TRANSMIT_NOT_SENT && t->stamps <= STAMP_HARDWARE;
        break;
    }
    case NODE_EVENT_HOP:
        local = ((const struct node_hop *)event)->local;
        break;
    case NODE_EVENT_LINK:
        local = ((const struct node_link *)event)->local;
        break;
    case NODE_EVENT_BRACKET: {
        const struct node_bracket *b = event;
        local = b->local;
        good = time_fits(b->before.ns) && time_fits(b->after.ns) && time_fits(b->nic.ns);
        break;
    }
    case NODE_EVENT_GUARD: {
        const struct node_guard *g = event;
        good = time_fits(g->before.ns) && time_fits(g->after.ns) && time_fits(g->other_ns);
        break;
    }
    case NODE_EVENT_CLOCK_FACT: {
        const struct node_clock_fact *f = event;
        good = f->kind <= CLOCK_FACT_REALTIME_STEP;
        break;
    }
    case NODE_EVENT_ANCHOR: {
        const struct node_anchor *a = event;
        good = time_fits(a->at.ns) && time_fits(a->utc_ns);
        break;
    }
    case NODE_EVENT_BAD_PACKET: {
        const struct node_bad_packet *b = event;
        local = b->local;
        good = b->error < PROBE_ERROR_COUNT;
        break;
    }
    case NODE_EVENT_TICK:
    case NODE_EVENT_PEERS:
    case NODE_EVENT_MEMBER:
    case NODE_EVENT_VERBS:    /* all values have a text */
    case NODE_EVENT_SETTINGS: /* the node checks it */
        break;
    case NODE_EVENT_KIND_COUNT:
        good = false;
        break;
    }
    return good && local < config->nic_count ? 0 : -EPROTO;
}

uint64_t codec_layout(void)
{
    uint64_t h = hash_u64(sizeof(struct node_config), sizeof(struct finding));
    for (int kind = 0; kind < NODE_EVENT_KIND_COUNT; kind++) {
        h = hash_u64(h, node_event_size((enum node_event_kind)kind));
    }
    for (const char *v = FOLIOT_VERSION; *v != 0; v++) {
        h = hash_u64(h, (uint64_t)*v);
    }
    return h;
}
