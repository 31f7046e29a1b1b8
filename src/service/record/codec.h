/* codec.h: events packed against the last one alike: most bytes of a packet's event repeat from
 * packet to packet.
 *
 * An event is: a byte (kind + 1; 255, alone: the driver took the node's actions here; 254: a
 * finding follows as it is; 0 and 253 end a segment, see codec_encode_end), the time since the last
 * event as a signed varint, then its data as 64-bit words (zero padded): a bit map of the words that
 * differ from the last event of that kind and key (receive: the sender and path; others: the kind
 * alone), and the differences as signed varints. Peers lists follow as they are. Both ends keep the
 * same memory of last events; it is emptied at the start of each segment, so that a segment can be
 * read alone. Little endian.
 *
 * Decoding is total: any bytes give an event whose fields the node accepts, or -EPROTO, or -ENODATA
 * where the bytes end too early. */
#pragma once
#include "base/bug.h"
#include "core/node/node.h"

#include <stddef.h>
#include <stdint.h>

/* As a kind: the driver drained the node's actions. No data. */
#define CODEC_DRAIN NODE_EVENT_KIND_COUNT
#define CODEC_FINDING                                                                              \
    (NODE_EVENT_KIND_COUNT + 1) /* a struct finding: what a replay is compared with */
#define CODEC_SLOTS     256
#define CODEC_END_SIZE  9
#define CODEC_WORD_MAX  56 /* words of the largest event */
#define CODEC_EVENT_MAX (16 + 6 + CODEC_WORD_MAX * 10)

struct codec {
    int64_t now_ns;
    uint64_t last[NODE_EVENT_KIND_COUNT][CODEC_WORD_MAX];
    uint64_t receive[CODEC_SLOTS][CODEC_WORD_MAX];
};

void codec_init(struct codec *c); /* start of a segment */
/* Writes at most CODEC_EVENT_MAX bytes (not for NODE_EVENT_PEERS); returns how many. */
size_t codec_encode(struct codec *c, enum node_event_kind kind, struct mono now, const void *event,
                    uint8_t *bytes);
size_t codec_encode_drain(uint8_t *bytes);
size_t codec_encode_finding(const struct finding *finding,
                            uint8_t *bytes); /* 1 + sizeof(*finding) bytes */
/* The segment's end, or the whole recording's: one byte, then the sum of the segment's bytes before
 * it. Writes CODEC_END_SIZE bytes. Without it nobody could tell a recording from its first part. */
void codec_encode_end(bool last, uint64_t sum, uint8_t *bytes);
/* -ENODATA: the bytes end too early; -EPROTO: not an end, or not of these bytes. */
MUST_CHECK int codec_decode_end(const uint8_t *bytes, size_t size, uint64_t sum, bool *ret_last);
/* Of nothing; hash_bytes() goes on from there. */
#define CODEC_SUM_EMPTY 0xcbf29ce484222325ULL
/* Reads one event from bytes[0 … size). *ret_event holds words for the event's struct. Returns the
 * bytes used; 0: an end (codec_decode_end); -EPROTO, -ENODATA. For NODE_EVENT_PEERS no data is read:
 * the list of peers follows. */
MUST_CHECK long codec_decode(struct codec *c, const uint8_t *bytes, size_t size,
                             enum node_event_kind *ret_kind, struct mono *ret_now,
                             uint64_t ret_event[CODEC_WORD_MAX]);
/* The fields of a decoded event are such as the node takes: -EPROTO if not. */
MUST_CHECK int codec_check(const struct node_config *config, enum node_event_kind kind,
                           const void *event);

/* A number that changes with the layout of what is recorded: recordings are for the build that made
 * them. */
uint64_t codec_layout(void);
