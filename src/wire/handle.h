/* handle.h: the 128 bytes that NCCL carries from a receiver's listen to the sender's connect.
 *
 * offset  type    field
 *   0     [28]    sockaddr_in or _in6 of the listener, in the kernel's layout (28-31: 0)
 * 32     u64     cookie of this listen: in the same place as the magic of NCCL's own socket transport 40     u32     magic: the
 * handle is ours 44     u8      newest version (wire/lane.h)   45 u8 lowest   46 u8 flags   47 u8 group_max 48     u64
 * context: the receiver's process and device 56     u8*16   the job's key for lanes to that context 72     u8*16   nonce: a
 * HELLO's tag covers it 88     u64     job, a name for people; 0: not known 96     u32     pid      100 u32 crc32c of bytes 0-99
 * 104     u8*24   free for the side that connects: NCCL passes the same bytes at each poll
 *
 * The key is as open as NCCL's rendezvous: it keeps other jobs, port scanners and stale connections out, but not a program that
 * reads the bootstrap.
 *
 * A cookie's first byte is never a lane frame's type. A foreign plugin that connects to our listener begins with our cookie, as
 * NCCL's own does, and is recognised by it. If our plugin connects to a foreign listener, the missing magic shows that before a
 * byte is sent. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "wire/lane.h"

#define HANDLE_SIZE           128
#define HANDLE_ADDRESS_SIZE   28
#define HANDLE_COOKIE_OFFSET  32
#define HANDLE_SCRATCH_OFFSET 104
#define HANDLE_MAGIC          0x54494c46u /* "FLIT" */

struct handle {
    uint8_t address[HANDLE_ADDRESS_SIZE]; /* a struct sockaddr_in or sockaddr_in6 */
    uint64_t cookie;                      /* handle_cookie() of 64 random bits */
    uint8_t newest, lowest;
    uint8_t group_max; /* 1..COMM_GROUP_MAX: buffers that one receive of this comm may have */
    uint64_t context;
    uint8_t key[LANE_KEY_SIZE], nonce[LANE_NONCE_SIZE];
    uint64_t job;
    uint32_t pid;
};

/* Turns random bits into a cookie: sets the first byte to one with which no frame begins. */
uint64_t handle_cookie(uint64_t random);
/* Writes HANDLE_SIZE bytes, the free ones as 0. */
void handle_encode(uint8_t bytes[static HANDLE_SIZE], const struct handle *handle);
/* LANE_ERROR_MAGIC: another plugin's. LANE_ERROR_VERSION: ours, but without a common version: *ret is then set, too, so that a
 * message can name both. The free bytes are ignored. */
MUST_CHECK enum lane_error handle_decode(const uint8_t bytes[static HANDLE_SIZE],
                                         struct handle *ret);
