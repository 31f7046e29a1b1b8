/* lane_nics.c: NICS to bytes and back. */
#include "wire/lane_nics.h"

#include <string.h>

#include "base/endian.h"
#include "wire/crc32c.h"

#define ENTRY     16
#define ENTRY_ONE 32
#define CRC       284

_Static_assert(ENTRY + LANE_NICS_MAX * ENTRY_ONE == 272 && LANE_NICS_SIZE <= LANE_FRAME_SIZE_MAX,
               "the layout in lane_nics.h");

void lane_nics_encode(uint8_t bytes[static LANE_NICS_SIZE], const struct lane_nics *nics)
{
    const uint8_t count = nics->count < LANE_NICS_MAX ? nics->count : LANE_NICS_MAX;

    memset(bytes, 0, LANE_NICS_SIZE);
    bytes[0] = LANE_NICS;
    bytes[1] = count;
    le16_put(bytes + 2, nics->port);
    le32_put(bytes + 4, nics->down & ((1u << count) - 1));
    bytes[8] = nics->small_slots;
    bytes[9] = nics->large_slots;
    bytes[10] = nics->large_shift;
    for (uint8_t i = 0; i < count; i++) {
        memcpy(bytes + ENTRY + i * ENTRY_ONE, nics->nics[i].address, 16);
        lane_put_text(bytes + ENTRY + i * ENTRY_ONE + 16, nics->nics[i].name, LANE_NIC_SIZE);
    }
    le32_put(bytes + CRC, crc32c(0, bytes, CRC));
}

/* Printable and terminated, because logs show it. */
static bool name_valid(const char name[LANE_NIC_SIZE])
{
    size_t i = 0;

    while (i < LANE_NIC_SIZE && name[i] > ' ' && name[i] < 0x7f) {
        i++;
    }
    if (i == LANE_NIC_SIZE) {
        return false;
    }
    while (i < LANE_NIC_SIZE && name[i] == 0) {
        i++;
    }
    return i == LANE_NIC_SIZE;
}

enum lane_error lane_nics_decode(const uint8_t *bytes, size_t size, struct lane_nics *ret)
{
    struct lane_nics nics = {0};

    if (size < LANE_NICS_SIZE) {
        return LANE_ERROR_SHORT;
    }
    if (bytes[0] != LANE_NICS) {
        return LANE_ERROR_TYPE;
    }
    if (le32_get(bytes + CRC) != crc32c(0, bytes, CRC)) {
        return LANE_ERROR_CRC;
    }
    if (bytes[1] > LANE_NICS_MAX) {
        return LANE_ERROR_RANGE;
    }
    nics.down = le32_get(bytes + 4);
    nics.small_slots = bytes[8];
    nics.large_slots = bytes[9];
    nics.large_shift = bytes[10];
    if (nics.down >> bytes[1] != 0 || nics.small_slots > LANE_SMALL_SLOTS ||
        nics.large_slots > LANE_LARGE_SLOTS ||
        (nics.large_shift != 0 && (nics.large_shift > LANE_CHUNK_SHIFT_MAX ||
                                   1u << nics.large_shift <= LANE_LARGE_SIZE_MAX))) {
        return LANE_ERROR_RANGE;
    }
    for (size_t i = 11; i < CRC; i++) {
        const bool entry = i >= ENTRY && i < ENTRY + (size_t)bytes[1] * ENTRY_ONE;
        if (!entry && bytes[i] != 0) {
            return LANE_ERROR_RESERVED;
        }
    }
    nics.port = le16_get(bytes + 2);
    nics.count = bytes[1];
    for (uint8_t i = 0; i < nics.count; i++) {
        memcpy(nics.nics[i].address, bytes + ENTRY + i * ENTRY_ONE, 16);
        memcpy(nics.nics[i].name, bytes + ENTRY + i * ENTRY_ONE + 16, LANE_NIC_SIZE);
        if (!name_valid(nics.nics[i].name)) {
            return LANE_ERROR_RANGE;
        }
    }
    *ret = nics;
    return LANE_ERROR_NONE;
}
