/* crc32c.c: Castagnoli's CRC by the processor's instruction, three streams at a
 * time, joined by a multiplication with a power of x (Gopal et al., "Fast CRC
 * Computation for iSCSI Polynomial Using CRC32 Instruction", Intel 2011); or by
 * eight tables ("slicing by 8", Kounavis and Berry 2005). */
#include "wire/crc32c.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/endian.h"

#define POLYNOMIAL 0x82f63b78u /* reflected */

/* ---- by tables
 * ----------------------------------------------------------------------------
 */

static uint32_t table[8][256];
static atomic_bool table_ready;

/* Two threads may do this at once: they write the same. */
static void table_make(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) {
            crc = crc & 1 ? crc >> 1 ^ POLYNOMIAL : crc >> 1;
        }
        table[0][i] = crc;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int k = 1; k < 8; k++) {
            table[k][i] = table[k - 1][i] >> 8 ^ table[0][table[k - 1][i] & 0xff];
        }
    }
    atomic_store_explicit(&table_ready, true, memory_order_release);
}

uint32_t crc32c_portable(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *p = bytes;

    if (!atomic_load_explicit(&table_ready, memory_order_acquire)) {
        table_make();
    }
    crc = ~crc;
    for (; size >= 8; size -= 8, p += 8) {
        const uint32_t low = le32_get(p) ^ crc, high = le32_get(p + 4);
        crc = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
              table[4][low >> 24] ^ table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^
              table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
    }
    for (; size > 0; size--, p++) {
        crc = crc >> 8 ^ table[0][(crc ^ *p) & 0xff];
    }
    return ~crc;
}

/* ---- by instruction
 * ------------------------------------------------------------------------ */

#if defined(__x86_64__)
#include <immintrin.h>

#define LONG  1024 /* bytes of each of three streams */
#define SHORT 128

/* x^(8 n - 33) mod P: a product with it, reduced by the instruction, moves a
 * CRC n bytes on. */
#define MOVE_128  0x0d3b6092u
#define MOVE_256  0xb9e02b86u
#define MOVE_1024 0x170076fau
#define MOVE_2048 0xa51b6135u

static inline uint64_t word(const uint8_t *p)
{
    uint64_t value;

    memcpy(&value, p, sizeof(value));
    return value;
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t moved(uint64_t crc, uint32_t move)
{
    const __m128i product = _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
                                                 _mm_cvtsi64_si128((long long)move), 0);

    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

__attribute__((target("sse4.2,pclmul"))) static uint64_t
three(uint64_t crc, const uint8_t *p, size_t block, uint32_t move, uint32_t move_twice)
{
    uint64_t second = 0, third = 0;

    for (size_t i = 0; i < block; i += 8) {
        crc = _mm_crc32_u64(crc, word(p + i));
        second = _mm_crc32_u64(second, word(p + block + i));
        third = _mm_crc32_u64(third, word(p + 2 * block + i));
    }
    return moved(crc, move_twice) ^ moved(second, move) ^ third;
}

__attribute__((target("sse4.2,pclmul"))) static uint32_t fast(uint32_t start, const uint8_t *p,
                                                              size_t size)
{
    uint64_t crc = (uint32_t)~start;

    for (; size >= 3 * (size_t)LONG; size -= 3 * (size_t)LONG, p += 3 * (size_t)LONG) {
        crc = three(crc, p, LONG, MOVE_1024, MOVE_2048);
    }
    for (; size >= 3 * (size_t)SHORT; size -= 3 * (size_t)SHORT, p += 3 * (size_t)SHORT) {
        crc = three(crc, p, SHORT, MOVE_128, MOVE_256);
    }
    for (; size >= 8; size -= 8, p += 8) {
        crc = _mm_crc32_u64(crc, word(p));
    }
    for (; size > 0; size--, p++) {
        crc = _mm_crc32_u8((uint32_t)crc, *p);
    }
    return ~(uint32_t)crc;
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
    static atomic_int way; /* 0: not asked yet */
    int known = atomic_load_explicit(&way, memory_order_relaxed);

    if (known == 0) {
        __builtin_cpu_init();
        known = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul") ? 1 : 2;
        atomic_store_explicit(&way, known, memory_order_relaxed);
    }
    return known == 1 ? fast(crc, bytes, size) : crc32c_portable(crc, bytes, size);
}

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *p = bytes;

    crc = ~crc;
    for (; size >= 8; size -= 8, p += 8) {
        crc = __crc32cd(crc, le64_get(p));
    }
    for (; size > 0; size--, p++) {
        crc = __crc32cb(crc, *p);
    }
    return ~crc;
}

#else

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
    return crc32c_portable(crc, bytes, size);
}

#endif
