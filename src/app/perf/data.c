/* data.c: element types, reductions, and patterns whose result any rank can compute by itself. */
#include <string.h>

#include "app/perf/perf.h"

/* NCCL's default element: sums of it on the host are what is measured. */
#define REAL32 __typeof__(1.0F)

const char *const perf_type_names[PERF_TYPES + 1] = {"int8",  "uint8",  "int32", "uint32",
                                                     "int64", "uint64", "float", "double"};
const char *const perf_reduction_names[PERF_REDUCTIONS + 1] = {"sum", "prod", "max", "min"};

size_t perf_type_size(enum perf_type type)
{
    static const uint8_t sizes[PERF_TYPES] = {1, 1, 4, 4, 8, 8, 4, 8};

    return sizes[type];
}

#define LOOP(T, expression)                                                                        \
    for (size_t i = 0; i < count; i++) {                                                           \
        const T a = ((const T *)to)[i], b = ((const T *)from)[i];                                  \
        ((T *)to)[i] = (T)(expression);                                                            \
    }                                                                                              \
    break
#define REDUCE(T)                                                                                  \
    do {                                                                                           \
        switch (op) {                                                                              \
        case SUM:                                                                                  \
            LOOP(T, a + b);                                                                        \
        case PROD:                                                                                 \
            LOOP(T, a *b);                                                                         \
        case MAX:                                                                                  \
            LOOP(T, a > b ? a : b);                                                                \
        default:                                                                                   \
            LOOP(T, a < b ? a : b);                                                                \
        }                                                                                          \
    } while (0)

/* Whole numbers are summed and multiplied as unsigned: the bits are the same, and overflow is defined. max and min need the
 * sign. */
void perf_reduce(enum perf_type type, enum perf_reduction op, void *to, const void *from,
                 size_t count)
{
    const bool wraps = op == SUM || op == PROD;

    switch (type) {
    case FLOAT32:
        REDUCE(REAL32);
        break;
    case FLOAT64:
        REDUCE(double);
        break;
    case INT8:
        if (!wraps) {
            REDUCE(int8_t);
            break;
        }
        REDUCE(uint8_t);
        break;
    case UINT8:
        REDUCE(uint8_t);
        break;
    case INT32:
        if (!wraps) {
            REDUCE(int32_t);
            break;
        }
        REDUCE(uint32_t);
        break;
    case UINT32:
        REDUCE(uint32_t);
        break;
    case INT64:
        if (!wraps) {
            REDUCE(int64_t);
            break;
        }
        REDUCE(uint64_t);
        break;
    default:
        REDUCE(uint64_t);
        break;
    }
}

static inline uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

void perf_fill(const struct perf_pattern *p, void *to, int rank, size_t first, size_t count)
{
    const size_t size = perf_type_size(p->type);
    const uint64_t base = mix(p->seed ^ (uint64_t)(uint32_t)rank << 32);

    for (size_t i = 0; i < count; i++) {
        uint64_t bits = mix(base + first + i);
        if (!p->raw) {
            /* prod: each is 1 or 2; otherwise 12 bits, so the sum over PERF_RANK_MAX ranks is exact in 24 bits */
            bits = p->op == PROD ? 1 + (bits & 1) : bits & 0xfff;
        }
        if (!p->raw && p->type == FLOAT32) {
            ((REAL32 *)to)[i] = (REAL32)bits;
        } else if (!p->raw && p->type == FLOAT64) {
            ((double *)to)[i] = (double)bits;
        } else {
            memcpy((char *)to + i * size, &bits,
                   size); /* little endian, as all machines with NCCL */
        }
    }
}

uint64_t perf_wrong(const struct perf_pattern *p, const void *data, int rank, int ranks,
                    size_t first, size_t count)
{
    enum { BLOCK = 512 };
    _Alignas(16) char expected[BLOCK * 8], other[BLOCK * 8];
    const size_t size = perf_type_size(p->type);
    uint64_t wrong = 0;

    for (size_t at = 0; at < count; at += BLOCK) {
        const size_t n = count - at < BLOCK ? count - at : BLOCK;
        const char *found = (const char *)data + at * size;
        perf_fill(p, expected, rank < 0 ? 0 : rank, first + at, n);
        for (int r = 1; rank < 0 && r < ranks; r++) {
            perf_fill(p, other, r, first + at, n);
            perf_reduce(p->type, p->op, expected, other, n);
        }
        if (memcmp(found, expected, n * size) == 0) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            wrong += memcmp(found + i * size, expected + i * size, size) != 0;
        }
    }
    return wrong;
}
