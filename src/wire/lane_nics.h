/* lane_nics.h: NICS: once per connection a process sends its peer the list of its other NICs, and the number of its bounce slots
 * for the set.
 *
 * The handle that NCCL carries has room for one address. Standby lanes use other NICs, of both ends. So each end lists its own
 * after the handshake, over the lane that was just authenticated. The port is that of the process's listener (0: it doesn't
 * listen): new lanes connect to it, and its refusal shows that the process is dead.
 *
 *   0 u8 type   1 u8 count, <= LANE_NICS_MAX   2 u16 port   4 u32 down (version 2; else 0): bit k: the k-th has no carrier
 *   8 u8 small bounce slots, <= LANE_SMALL_SLOTS   9 u8 large ones, <= LANE_LARGE_SLOTS (version 4; else 0): what the other
 *     end may send before it is posted, by the slots' numbers: small ones from 0, large ones from LANE_SMALL_SLOTS
 * 10 u8 log2 of a large one's size (version 8; else 0); 0: LANE_LARGE_SIZE_MAX 11 u8[5] 0 16 count times, the rest 0: u8[16]
 * address (IPv4 mapped), char[16] name 272 u32 * 3: 0    284 u32 crc32c of bytes 0-283 */
#pragma once
#include "wire/lane.h"

#define LANE_NICS      0xcbu /* after enum lane_frame */
#define LANE_NICS_MAX  8
#define LANE_NICS_SIZE 288

struct lane_nics {
    uint16_t port;
    uint8_t count;
    uint32_t down;
    uint8_t small_slots, large_slots;
    uint8_t large_shift; /* 0, or at most LANE_CHUNK_SHIFT_MAX */
    struct {
        uint8_t address[16];
        char name[LANE_NIC_SIZE];
    } nics[LANE_NICS_MAX];
};

void lane_nics_encode(uint8_t bytes[static LANE_NICS_SIZE], const struct lane_nics *nics);
/* Total, like all decoders of lane.h. */
MUST_CHECK enum lane_error lane_nics_decode(const uint8_t *bytes, size_t size,
                                            struct lane_nics *ret);
