/* message.h: bodies between agents and controller: protobuf-c out of a bounded block, zstd with a
 * ceiling.
 *
 * A decoded message lies in its arena, strings and all, until the next message_arena_reset: nothing
 * is freed one by one. Any bytes are safe to decode. */
#pragma once
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define MESSAGE_PROTOCOL        2 /* ours */
#define MESSAGE_PROTOCOL_OLDEST 1 /* understood: ours and the one before (core/fleet/protocol.h) */
#define MESSAGE_BODY_MAX        (1u << 20) /* of a request as sent */
#define MESSAGE_BODY_UNPACKED   (8u << 20)
#define MESSAGE_REPORT_MAX      (256u << 10) /* of one sealed report */
#define MESSAGE_REPORT_UNPACKED                                                                    \
    (2u << 20) /* the largest of 16 NICs with all their paths: 1.3 MiB */
#define MESSAGE_BATCH_REPORT_MAX 256
#define MESSAGE_REPEATED_MAX     16  /* of a field without a ceiling of its own */
#define MESSAGE_TEXT_MAX         255 /* bytes of a text without one */

struct message_arena {
    uint8_t *memory;
    size_t size, used;
    ProtobufCAllocator allocator;
};

/* -ENOMEM. size: all that one message may take, decoded. */
MUST_CHECK int message_arena_init(struct message_arena *arena, size_t size);
void message_arena_done(struct message_arena *arena);
void message_arena_reset(struct message_arena *arena);
/* Zeroed memory out of the arena; NULL: it is full. */
void *message_arena_take(struct message_arena *arena, size_t size);
/* NULL: malformed, or more than the arena holds. */
void *message_decode(struct message_arena *arena, const ProtobufCMessageDescriptor *descriptor,
                     const void *bytes, size_t size);

/* How often a field may repeat, or how many bytes a text or block of bytes may have; count texts of a repeated one by
 * `size`. What has no entry: 16 times, 255 bytes. */
struct message_ceiling {
    const ProtobufCMessageDescriptor *message;
    const char *field;
    uint32_t count, size; /* 0: as what has no entry */
};
/* The message and all within it. false: ret_words says what is too much: "Report: 60000 events, at most 256". */
MUST_CHECK bool message_within(const ProtobufCMessage *m, const struct message_ceiling *ceilings,
                               size_t ceiling_count, char ret_words[160]);

/* A buffer that grows and is used again. */
struct message_buffer {
    uint8_t *bytes;
    size_t size, capacity;
};
/* Frees the bytes and leaves it empty; of {0}, too. */
void message_buffer_done(struct message_buffer *buffer);
/* At least so many bytes; what it holds stays. -ENOMEM: it is as it was. */
MUST_CHECK int message_buffer_reserve(struct message_buffer *buffer, size_t capacity);

/* -ENOMEM. */
MUST_CHECK int message_encode(const ProtobufCMessage *message, struct message_buffer *ret);
/* What a thread other than the first calls before it ends. */
void message_thread_done(void);
/* zstd. -EMSGSIZE: it would unpack to more than `limit`. -EBADMSG: not zstd, or cut short. */
MUST_CHECK int message_pack(const void *bytes, size_t size, struct message_buffer *ret);
MUST_CHECK int message_unpack(const void *bytes, size_t size, size_t limit,
                              struct message_buffer *ret);
