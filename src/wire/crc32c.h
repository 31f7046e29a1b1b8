/* crc32c.h: the Castagnoli CRC (iSCSI, RFC 3720 B.4): polynomial 0x1edc6f41, reflected, all ones in
 * and out. Guards each lane frame and, unless turned off, each payload.
 *
 * Uses what the processor has: from 1 KiB on carry-less multiplication in 512 bit registers (about 50 GB/s in cache), else its
 * CRC instruction (SSE4.2 in three interleaved streams, about 27 GB/s; ARMv8), else tables. The first
 * call finds out which; calling from several threads is fine. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Goes on from `crc`, the value for all bytes before; 0 to begin. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t size);
/* By the instruction alone, or by tables where there is none: the way of short ones. */
uint32_t crc32c_instruction(uint32_t crc, const void *bytes, size_t size);
/* By tables, on any machine: what the fast ways are tested against. */
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t size);
