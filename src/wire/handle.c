/* handle.c: NCCL's rendezvous handle to bytes and back. */
#include "wire/handle.h"

#include <string.h>

#include "base/endian.h"
#include "wire/crc32c.h"

#define SEALED 100

_Static_assert(HANDLE_ADDRESS_SIZE <= HANDLE_COOKIE_OFFSET, "the address ends before the cookie");
_Static_assert(SEALED + 4 == HANDLE_SCRATCH_OFFSET, "layout");

uint64_t handle_cookie(uint64_t random)
{
    return random | 0xff; /* in little endian this is the first byte; no frame begins with it */
}

void handle_encode(uint8_t bytes[static HANDLE_SIZE], const struct handle *handle)
{
    memset(bytes, 0, HANDLE_SIZE);
    memcpy(bytes, handle->address, HANDLE_ADDRESS_SIZE);
    le64_put(bytes + HANDLE_COOKIE_OFFSET, handle->cookie);
    le32_put(bytes + 40, HANDLE_MAGIC);
    bytes[44] = handle->newest;
    bytes[45] = handle->lowest;
    bytes[47] = handle->group_max;
    le64_put(bytes + 48, handle->context);
    memcpy(bytes + 56, handle->key, LANE_KEY_SIZE);
    memcpy(bytes + 72, handle->nonce, LANE_NONCE_SIZE);
    le64_put(bytes + 88, handle->job);
    le32_put(bytes + 96, handle->pid);
    le32_put(bytes + SEALED, crc32c(0, bytes, SEALED));
}

enum lane_error handle_decode(const uint8_t bytes[static HANDLE_SIZE], struct handle *ret)
{
    if (le32_get(bytes + 40) != HANDLE_MAGIC) {
        return LANE_ERROR_MAGIC;
    }
    if (le32_get(bytes + SEALED) != crc32c(0, bytes, SEALED)) {
        return LANE_ERROR_CRC;
    }
    struct handle h = {
        .cookie = le64_get(bytes + HANDLE_COOKIE_OFFSET),
        .newest = bytes[44],
        .lowest = bytes[45],
        .group_max = bytes[47],
        .context = le64_get(bytes + 48),
        .job = le64_get(bytes + 88),
        .pid = le32_get(bytes + 96),
    };
    memcpy(h.address, bytes, HANDLE_ADDRESS_SIZE);
    memcpy(h.key, bytes + 56, LANE_KEY_SIZE);
    memcpy(h.nonce, bytes + 72, LANE_NONCE_SIZE);
    if (lane_version_agree(h.newest, h.lowest) == 0) {
        *ret = h; /* fields of another version: only the versions and the pid are valid */
        return LANE_ERROR_VERSION;
    }
    if (bytes[46] != 0 || bytes[28] != 0 || bytes[29] != 0 || bytes[30] != 0 || bytes[31] != 0) {
        return LANE_ERROR_RESERVED;
    }
    if (h.group_max == 0 || h.group_max > COMM_GROUP_MAX || (h.cookie & 0xff) != 0xff) {
        return LANE_ERROR_RANGE;
    }
    *ret = h;
    return LANE_ERROR_NONE;
}
