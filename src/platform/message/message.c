/* message.c: arena, zstd, protobuf. */
#include "platform/message/message.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum { PACK_LEVEL = 3 };

/* One context for all calls of a thread: creating one costs more than packing a small body. */
static _Thread_local ZSTD_CCtx *packer;
static _Thread_local ZSTD_DCtx *unpacker;

void message_thread_done(void)
{
    ZSTD_freeCCtx(packer);
    ZSTD_freeDCtx(unpacker);
    packer = NULL;
    unpacker = NULL;
}

static void *arena_alloc(void *context, size_t size)
{
    return message_arena_take(context, size);
}

static void arena_no_free(void *context, void *pointer)
{
}

int message_arena_init(struct message_arena *arena, size_t size)
{
    *arena = (struct message_arena){.memory = malloc(size), .size = size};
    arena->allocator = (ProtobufCAllocator){arena_alloc, arena_no_free, arena};
    return arena->memory == NULL ? -ENOMEM : 0;
}

void message_arena_done(struct message_arena *arena)
{
    free(arena->memory);
    *arena = (struct message_arena){0};
}

void message_arena_reset(struct message_arena *arena)
{
    arena->used = 0;
}

void *message_arena_take(struct message_arena *arena, size_t size)
{
    if (size > arena->size - arena->used) {
        return NULL;
    }
    const size_t rounded = (size + 15) & ~(size_t)15;
    void *memory = arena->memory + arena->used;
    arena->used = rounded > arena->size - arena->used ? arena->size : arena->used + rounded;
    memset(memory, 0, size);
    return memory;
}

void *message_decode(struct message_arena *arena, const ProtobufCMessageDescriptor *descriptor,
                     const void *bytes, size_t size)
{
    return protobuf_c_message_unpack(descriptor, &arena->allocator, size, bytes);
}

void message_buffer_done(struct message_buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct message_buffer){0};
}

int message_buffer_reserve(struct message_buffer *buffer, size_t capacity)
{
    if (capacity <= buffer->capacity) {
        return 0;
    }
    uint8_t *larger = realloc(buffer->bytes, capacity + capacity / 4 + 64);
    if (larger == NULL) {
        return -ENOMEM;
    }
    buffer->bytes = larger;
    buffer->capacity = capacity + capacity / 4 + 64;
    return 0;
}

int message_encode(const ProtobufCMessage *message, struct message_buffer *ret)
{
    const size_t size = protobuf_c_message_get_packed_size(message);
    const int r = message_buffer_reserve(ret, size + 1);
    if (r < 0) {
        return r;
    }
    ret->size = protobuf_c_message_pack(message, ret->bytes);
    return 0;
}

static int make_packer(size_t size, struct message_buffer *ret)
{
    if (packer == NULL) {
        packer = ZSTD_createCCtx();
    }
    return packer == NULL ? -ENOMEM : message_buffer_reserve(ret, ZSTD_compressBound(size));
}

int message_pack(const void *bytes, size_t size, struct message_buffer *ret)
{
    const int r = make_packer(size, ret);
    if (r < 0) {
        return r;
    }
    const size_t n = ZSTD_compressCCtx(packer, ret->bytes, ret->capacity, bytes, size, PACK_LEVEL);
    if (ZSTD_isError(n)) {
        return -ENOMEM;
    }
    ret->size = n;
    return 0;
}

int message_pack_alike(const struct message_buffer *base, const void *bytes, size_t size,
                       struct message_buffer *ret)
{
    const int r = base == NULL ? message_pack(bytes, size, ret) : make_packer(size, ret);
    if (r < 0 || base == NULL) {
        return r;
    }
    ZSTD_CCtx_reset(packer, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(packer, ZSTD_c_compressionLevel, PACK_LEVEL);
    ZSTD_CCtx_refPrefix(packer, base->bytes, base->size);
    const size_t n = ZSTD_compress2(packer, ret->bytes, ret->capacity, bytes, size);
    ZSTD_CCtx_reset(packer,
                    ZSTD_reset_session_and_parameters); /* also after an error no base is left */
    if (ZSTD_isError(n)) {
        return -ENOMEM;
    }
    ret->size = n;
    return 0;
}

int message_unpack(const void *bytes, size_t size, size_t limit, struct message_buffer *ret)
{
    return message_unpack_alike(NULL, bytes, size, limit, ret);
}

/* Unpacks in pieces, because the size in the frame's head is not trusted. */
int message_unpack_alike(const struct message_buffer *base, const void *bytes, size_t size,
                         size_t limit, struct message_buffer *ret)
{
    if (unpacker == NULL) {
        unpacker = ZSTD_createDCtx();
        if (unpacker == NULL ||
            ZSTD_isError(ZSTD_DCtx_setParameter(unpacker, ZSTD_d_windowLogMax, 23))) {
            return -ENOMEM;
        }
    }
    ZSTD_DCtx_reset(unpacker, ZSTD_reset_session_only);
    /* also without a base: a call that failed leaves its base behind */
    if (ZSTD_isError(ZSTD_DCtx_refPrefix(unpacker, base != NULL ? base->bytes : NULL,
                                         base != NULL ? base->size : 0))) {
        return -ENOMEM;
    }
    ZSTD_inBuffer in = {bytes, size, 0};
    ret->size = 0;
    for (;;) {
        const size_t want = ret->size + (ret->size < 65536 ? 65536 : ret->size);
        const int r = message_buffer_reserve(ret, want < limit + 1 ? want : limit + 1);
        if (r < 0) {
            return r;
        }
        ZSTD_outBuffer out = {ret->bytes, ret->capacity, ret->size};
        const size_t before = in.pos;
        const size_t n = ZSTD_decompressStream(unpacker, &out, &in);
        if (ZSTD_isError(n)) {
            return -EBADMSG;
        }
        const bool stuck = out.pos == ret->size && in.pos == before;
        ret->size = out.pos;
        if (ret->size > limit) {
            return -EMSGSIZE;
        }
        if (n == 0 && in.pos == in.size) {
            return 0; /* another frame may follow a frame */
        }
        if (stuck || (in.pos == in.size && out.pos < out.size)) {
            return -EBADMSG;
        }
    }
}
