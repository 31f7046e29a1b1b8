/* codec.h: packs events against the last similar event: from packet to packet, most bytes of an event are equal.
 *
 * The format of an event:
 * - a byte: kind + 1. 255 alone: the driver took the node's actions here. 254: a finding follows unpacked. 0 and 253 end a
 *   segment, see codec_encode_end;
 * - the time since the last event, as a signed varint;
 * - its data as 64-bit words (zero padded): a bit map of the words that differ from the last event of that kind and key, then
 *   the differences as signed varints. The key of a receive event is a hash of sender, path, type, and whether it is a second
 *   packet. Other events have no key;
 * - lists of peers follow unpacked.
 *
 * Both sides keep the same memory of last events. It is cleared at the start of each segment, so that a segment can be read
 * alone. Little endian.
 *
 * Decoding is total: any bytes give an event with fields that the node accepts, or -EPROTO, or -ENODATA if the bytes end too
 * early. */
#pragma once
#include "base/bug.h"
#include "core/node/node.h"

#include <stddef.h>
#include <stdint.h>

/* As a kind: the driver took the node's actions. No data. */
#define CODEC_DRAIN NODE_EVENT_KIND_COUNT
/* A struct finding: a replay is compared with it. */
#define CODEC_FINDING   (NODE_EVENT_KIND_COUNT + 1)
#define CODEC_SLOTS     256
#define CODEC_END_SIZE  9
#define CODEC_WORD_MAX  56 /* words of the largest event */
#define CODEC_EVENT_MAX (16 + 6 + CODEC_WORD_MAX * 10)

struct codec {
    int64_t now_ns;
    uint64_t last[NODE_EVENT_KIND_COUNT][CODEC_WORD_MAX];
    uint64_t receive[CODEC_SLOTS][CODEC_WORD_MAX];
};

void codec_init(struct codec *c); /* called at the start of a segment */
/* Writes at most CODEC_EVENT_MAX bytes (not for NODE_EVENT_PEERS); returns their number. */
size_t codec_encode(struct codec *c, enum node_event_kind kind, struct mono now, const void *event,
                    uint8_t *bytes);
size_t codec_encode_drain(uint8_t *bytes);
size_t codec_encode_finding(const struct finding *finding,
                            uint8_t *bytes); /* 1 + sizeof(*finding) bytes */
/* Writes the end of a segment, or of the whole recording: one byte, then the checksum of the segment's bytes before it:
 * CODEC_END_SIZE bytes. Without it, a cut recording would look like a complete one. */
void codec_encode_end(bool last, uint64_t sum, uint8_t *bytes);
/* -ENODATA: the bytes end too early; -EPROTO: no end, or the checksum is wrong. */
MUST_CHECK int codec_decode_end(const uint8_t *bytes, size_t size, uint64_t sum, bool *ret_last);
/* Checksum of no bytes; hash_bytes() continues from it. */
#define CODEC_SUM_EMPTY 0xcbf29ce484222325ULL
/* Reads one event from bytes[0 … size). *ret_event has words for the event's struct. Returns the bytes used; 0: an end
 * (codec_decode_end); -EPROTO, -ENODATA. For NODE_EVENT_PEERS no data is read: the list of peers follows. */
MUST_CHECK long codec_decode(struct codec *c, const uint8_t *bytes, size_t size,
                             enum node_event_kind *ret_kind, struct mono *ret_now,
                             uint64_t ret_event[CODEC_WORD_MAX]);
/* Checks that the node accepts the fields of a decoded event: -EPROTO if not. */
MUST_CHECK int codec_check(const struct node_config *config, enum node_event_kind kind,
                           const void *event);

/* A number that changes with the layout of the recorded structs: only the build that made a recording can read it. */
uint64_t codec_layout(void);
