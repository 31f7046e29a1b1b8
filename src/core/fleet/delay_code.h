/* delay_code.h: a one-way delay in two bytes: log-linear, exact below 128 ns, otherwise within 1.6 %.
 *
 * 0: not measured. A delay d >= 0 is 1 + code, a negative one is -(1 + code of -d). Codes ascend with delays. The range is 2^40
 * ns (18 minutes); larger delays have the highest code. */
#pragma once
#include <stdint.h>

#define DELAY_CODE_NONE 0
#define DELAY_CODE_MAX  2240

static inline int32_t delay_encode(int64_t ns)
{
    uint64_t v = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    int32_t code;
    if (v < 64) {
        code = (int32_t)v;
    } else {
        const int shift = 63 - __builtin_clzll(v) - 6; /* v >> shift: 64..127 */
        code = shift > 33 ? DELAY_CODE_MAX - 1 : (shift + 1) * 64 + (int32_t)((v >> shift) & 63);
    }
    return ns < 0 ? -(1 + code) : 1 + code;
}

/* The middle of the code's range; 0 for DELAY_CODE_NONE: check that before. */
static inline int64_t delay_decode(int32_t code)
{
    const int64_t magnitude = (code < 0 ? -(int64_t)code : code) - 1;
    int64_t v = magnitude;
    if (code == DELAY_CODE_NONE) {
        return 0;
    }
    if (magnitude >= 64) {
        const int64_t shift = magnitude / 64 - 1 > 33 ? 33 : magnitude / 64 - 1;
        v = ((64 + magnitude % 64) << shift) + (((int64_t)1 << shift) >> 1);
    }
    return code < 0 ? -v : v;
}
