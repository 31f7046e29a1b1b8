/* message.c: bodies between agents and controller: zstd, then protobuf, out of a bounded arena. The first byte chooses the
 * message, and whether it is packed. */
#include "platform/message/message.h"

#include <foliot.pb-c.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const ProtobufCMessageDescriptor *const kinds[] = {
        &foliot__v1__batch__descriptor,         &foliot__v1__report__descriptor,
        &foliot__v1__join_request__descriptor,  &foliot__v1__join_reply__descriptor,
        &foliot__v1__renew_request__descriptor, &foliot__v1__renew_reply__descriptor,
        &foliot__v1__batch_reply__descriptor,   &foliot__v1__path_table__descriptor};
    static struct message_arena arena;
    static struct message_buffer unpacked, encoded;
    enum { LIMIT = 1 << 20 };

    if (size < 1 || (arena.memory == NULL && message_arena_init(&arena, 4 << 20) < 0)) {
        return 0;
    }
    const ProtobufCMessageDescriptor *kind = kinds[data[0] % ARRAY_COUNT(kinds)];
    const uint8_t *bytes = data + 1;
    size_t n = size - 1;
    if ((data[0] & 0x80) != 0) {
        const int r = message_unpack(bytes, n, LIMIT, &unpacked);
        ASSERT(unpacked.capacity <= 3 * (size_t)LIMIT);
        if (r < 0) {
            return 0;
        }
        ASSERT(unpacked.size <= LIMIT);
        bytes = unpacked.bytes;
        n = unpacked.size;
    }
    message_arena_reset(&arena);
    const ProtobufCMessage *message = message_decode(&arena, kind, bytes, n);
    ASSERT(arena.used <= arena.size);
    if (message != NULL) {
        ASSERT(message_encode(message, &encoded) == 0);
    }
    return 0;
}
