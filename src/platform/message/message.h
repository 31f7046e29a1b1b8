/* message.h: bodies between agents and controller: protobuf-c in a bounded block of memory, zstd with a limit.
 *
 * A decoded message, with its strings, is in its arena until the next message_arena_reset. Nothing is freed separately. Any
 * bytes are safe to decode. */
#pragma once
#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

#define MESSAGE_PROTOCOL        2 /* this release's version */
#define MESSAGE_PROTOCOL_OLDEST 1 /* the oldest supported version (core/fleet/protocol.h) */
#define MESSAGE_BODY_MAX        (1u << 20) /* of a request as it is sent */
#define MESSAGE_BODY_UNPACKED   (8u << 20)
#define MESSAGE_REPORT_MAX      (256u << 10) /* of one sealed report */
#define MESSAGE_REPORT_UNPACKED                                                                    \
    (2u << 20) /* the largest report, of 16 NICs with all their paths, is 1.3 MiB */
#define MESSAGE_BATCH_REPORT_MAX 256
#define MESSAGE_REPEATED_MAX     16  /* for a field without its own limit */
#define MESSAGE_TEXT_MAX         255 /* bytes, for a text without its own limit */

struct message_arena {
    uint8_t *memory;
    size_t size, used;
    ProtobufCAllocator allocator;
};

/* -ENOMEM. size: the memory that one decoded message may take. */
MUST_CHECK int message_arena_init(struct message_arena *arena, size_t size);
void message_arena_done(struct message_arena *arena);
void message_arena_reset(struct message_arena *arena);
/* Zeroed memory from the arena; NULL: it is full. */
void *message_arena_take(struct message_arena *arena, size_t size);
/* NULL: malformed, or too large for the arena. */
void *message_decode(struct message_arena *arena, const ProtobufCMessageDescriptor *descriptor,
                     const void *bytes, size_t size);

/* A field's limits: `count` repetitions, `size` bytes of a text or block of bytes (also of each repeated one). Fields without
 * an entry: 16 repetitions, 255 bytes. */
struct message_ceiling {
    const ProtobufCMessageDescriptor *message;
    const char *field;
    uint32_t count, size; /* 0: like a field without an entry */
};
/* Checks the message and all messages in it. false: ret_words describes the excess: "Report: 60000 events, at most 256". */
MUST_CHECK bool message_within(const ProtobufCMessage *m, const struct message_ceiling *ceilings,
                               size_t ceiling_count, char ret_words[160]);

/* A buffer that grows and is reused. */
struct message_buffer {
    uint8_t *bytes;
    size_t size, capacity;
};
/* Frees the bytes and leaves it empty. Accepts {0}. */
void message_buffer_done(struct message_buffer *buffer);
/* Makes room for at least this many bytes; the contents stay. -ENOMEM: unchanged. */
MUST_CHECK int message_buffer_reserve(struct message_buffer *buffer, size_t capacity);

/* -ENOMEM. */
MUST_CHECK int message_encode(const ProtobufCMessage *message, struct message_buffer *ret);
/* Each thread except the first calls this before it ends. */
void message_thread_done(void);
/* zstd. -EMSGSIZE: the unpacked data would exceed `limit`. -EBADMSG: no zstd, or incomplete. */
MUST_CHECK int message_pack(const void *bytes, size_t size, struct message_buffer *ret);
MUST_CHECK int message_unpack(const void *bytes, size_t size, size_t limit,
                              struct message_buffer *ret);
/* The same beside a text that both calls get: what the bytes have in common with it takes no room. base NULL: without one.
 * Unpacking with another base gives other bytes or -EBADMSG. -ENOMEM. */
MUST_CHECK int message_pack_alike(const struct message_buffer *base, const void *bytes, size_t size,
                                  struct message_buffer *ret);
MUST_CHECK int message_unpack_alike(const struct message_buffer *base, const void *bytes,
                                    size_t size, size_t limit, struct message_buffer *ret);
