/* crc32c.h: the Castagnoli CRC (iSCSI, RFC 3720 B.4): polynomial 0x1edc6f41, reflected, all ones in
 * and out. Guards each lane frame and, unless turned off, each payload.
 *
 * Uses the processor's instruction where there is one (SSE4.2 in three interleaved streams, ARMv8
 * CRC), else tables. The first call finds out which; calling from several threads is fine. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Goes on from `crc`, the value for all bytes before; 0 to begin. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t size);
/* By tables, on any machine: what the fast ways are tested against. */
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t size);
