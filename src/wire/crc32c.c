/* crc32c.c: Castagnoli's CRC in three ways. With 512-bit registers: 256 bytes at a time by carry-less multiplication (Gopal et
 * al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel 2009). By the processor's own
 * instruction: three streams at a time, joined by a multiplication with a power of x (the same, "Fast CRC Computation for iSCSI
 * Polynomial Using CRC32 Instruction", Intel 2011). By eight tables ("slicing by 8", Kounavis and Berry 2005). */
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

/* Two threads may do this at once: both write the same values. */
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

/* The earlier sum, moved on by D bits, is added to the present one: its one 64 bits times x^(63 + D), the other 64 times x^(D -
 * 1). (One less than D, because a product of two reflected words is one bit lower than the sum of their places.) Both are mod P,
 * reflected, and in the upper half of the word. */
#define FOLD_2048 0xe9a5d8be00000000ll, 0x1426a81500000000ll
#define FOLD_512  0x1c19243b00000000ll, 0x75bba45b00000000ll
#define FOLD_128  0x3743f7bd00000000ll, 0x3171d43000000000ll

#define WIDE     64
#define AHEAD    2048 /* the processor's own prefetching stops at each page's end */
#define WIDE_MIN 1024 /* for fewer bytes the setup costs more than it saves */
#define AVX512   "avx512f,avx512vl,avx512dq,vpclmulqdq,pclmul,sse4.2"

__attribute__((target(AVX512))) static __m512i folded(__m512i before, __m512i by, __m512i onto)
{
    const __m512i first = _mm512_clmulepi64_epi128(before, by, 0x00);
    const __m512i second = _mm512_clmulepi64_epi128(before, by, 0x11);

    return _mm512_ternarylogic_epi64(first, second, onto, 0x96); /* the sum of all three */
}

__attribute__((target(AVX512))) static __m512i pair(long long first, long long second)
{
    return _mm512_set_epi64(second, first, second, first, second, first, second, first);
}

/* The remainder of 64 bytes. */
__attribute__((target(AVX512))) static uint32_t narrow(__m512i wide)
{
    const __m512i by = pair(FOLD_128);
    __m128i sum = _mm512_castsi512_si128(wide);
    const __m128i parts[3] = {_mm512_extracti64x2_epi64(wide, 1),
                              _mm512_extracti64x2_epi64(wide, 2),
                              _mm512_extracti64x2_epi64(wide, 3)};

    for (int i = 0; i < 3; i++) {
        sum = _mm_xor_si128(
            parts[i], _mm_xor_si128(_mm_clmulepi64_si128(sum, _mm512_castsi512_si128(by), 0x00),
                                    _mm_clmulepi64_si128(sum, _mm512_castsi512_si128(by), 0x11)));
    }
    return (uint32_t)_mm_crc32_u64(_mm_crc32_u64(0, (uint64_t)_mm_extract_epi64(sum, 0)),
                                   (uint64_t)_mm_extract_epi64(sum, 1));
}

__attribute__((target(AVX512))) static uint32_t wide(uint32_t start, const uint8_t *p, size_t size)
{
    const __m512i by_2048 = pair(FOLD_2048), by_512 = pair(FOLD_512);
    __m512i sums[4];

    for (int i = 0; i < 4; i++, p += WIDE, size -= WIDE) {
        sums[i] = _mm512_loadu_si512(p);
    }
    sums[0] = _mm512_xor_si512(sums[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~start)));
    for (; size >= 4 * WIDE; p += 4 * WIDE, size -= 4 * WIDE) {
        for (int i = 0; i < 4; i++) {
            _mm_prefetch((const char *)p + AHEAD + i * WIDE, _MM_HINT_T0);
            sums[i] = folded(sums[i], by_2048, _mm512_loadu_si512(p + i * WIDE));
        }
    }
    for (int i = 1; i < 4; i++) {
        sums[i] = folded(sums[i - 1], by_512, sums[i]);
    }
    for (; size >= WIDE; p += WIDE, size -= WIDE) {
        sums[3] = folded(sums[3], by_512, _mm512_loadu_si512(p));
    }
    return fast(~narrow(sums[3]), p, size);
}

enum way { WAY_UNKNOWN, WAY_WIDE, WAY_FAST, WAY_PORTABLE };

static enum way find_way(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("sse4.2") || !__builtin_cpu_supports("pclmul")) {
        return WAY_PORTABLE;
    }
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("vpclmulqdq")
               ? WAY_WIDE
               : WAY_FAST;
}

static enum way way_known(void)
{
    static atomic_int known;
    int way = atomic_load_explicit(&known, memory_order_relaxed);

    if (way == WAY_UNKNOWN) {
        way = find_way();
        atomic_store_explicit(&known, way, memory_order_relaxed);
    }
    return (enum way)way;
}

uint32_t crc32c_instruction(uint32_t crc, const void *bytes, size_t size)
{
    return way_known() != WAY_PORTABLE ? fast(crc, bytes, size) : crc32c_portable(crc, bytes, size);
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
    return size >= WIDE_MIN && way_known() == WAY_WIDE ? wide(crc, bytes, size)
                                                       : crc32c_instruction(crc, bytes, size);
}

#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>

uint32_t crc32c_instruction(uint32_t crc, const void *bytes, size_t size)
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

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
    return crc32c_instruction(crc, bytes, size);
}

#else

uint32_t crc32c_instruction(uint32_t crc, const void *bytes, size_t size)
{
    return crc32c_portable(crc, bytes, size);
}

uint32_t crc32c(uint32_t crc, const void *bytes, size_t size)
{
    return crc32c_portable(crc, bytes, size);
}

#endif
