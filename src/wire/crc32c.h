/* crc32c.h: the Castagnoli CRC (iSCSI, RFC 3720 B.4): polynomial 0x1edc6f41, reflected, all ones in and out. It guards each lane
 * frame and, unless turned off, each payload.
 *
 * It uses the best way that the processor has: from 1 KiB on carry-less multiplication in 512 bit registers (about 50 GB/s in
 * cache), else the CRC instruction (SSE4.2 in three interleaved streams, about 27 GB/s; ARMv8), else tables. The first call finds
 * out which one. Several threads may call it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Continues from `crc`, the value for all bytes before; 0 at the beginning. */
uint32_t crc32c(uint32_t crc, const void *bytes, size_t size);
/* Only by the instruction, or by tables if there is none: for short texts. */
uint32_t crc32c_instruction(uint32_t crc, const void *bytes, size_t size);
/* By tables, on any machine: the tests compare the fast ways with it. */
uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t size);
