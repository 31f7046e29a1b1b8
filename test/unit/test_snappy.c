/* Snappy: packed bytes unpack to the same, by a reader written from the format's description. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "platform/metrics/snappy.h"

static size_t unpack(const uint8_t *at, size_t size, uint8_t *out, size_t room)
{
    const uint8_t *end = at + size;
    size_t length = 0, n = 0;
    for (unsigned shift = 0;; shift += 7) {
        assert_true(at < end && shift < 35);
        length |= (size_t)(*at & 0x7f) << shift;
        if (*at++ < 0x80) {
            break;
        }
    }
    assert_true(length <= room);
    while (at < end) {
        const uint8_t tag = *at++;
        size_t count = (tag >> 2) + 1u, offset = 0;
        if ((tag & 3) == 0) {
            if (count > 60) {
                const size_t more = count - 60;
                count = 0;
                assert_true((size_t)(end - at) >= more);
                for (size_t i = 0; i < more; i++) {
                    count |= (size_t)*at++ << (8 * i);
                }
                count++;
            }
            assert_true((size_t)(end - at) >= count && n + count <= length);
            memcpy(out + n, at, count);
            at += count;
            n += count;
            continue;
        }
        assert_int_equal(tag & 3, 2);
        assert_true(end - at >= 2);
        offset = (size_t)(at[0] | at[1] << 8);
        at += 2;
        assert_true(offset > 0 && offset <= n && n + count <= length);
        for (size_t i = 0; i < count; i++, n++) {
            out[n] = out[n - offset];
        }
    }
    assert_int_equal(n, length);
    return n;
}

static void unpacks_to_the_same(void **state)
{
    enum { MAX = 300000 };
    uint8_t *in = malloc(MAX), *packed = malloc(snappy_bound(MAX)), *out = malloc(MAX);
    uint64_t h = 5;
    assert_true(in != NULL && packed != NULL && out != NULL);
    for (unsigned round = 0; round < 120; round++) {
        h = hash_u64(h, round);
        const size_t size = round < 20 ? round : h % (round < 60 ? 3000 : MAX);
        const unsigned kind = round % 4; /* noise, few letters, repeats near, repeats far */
        for (size_t i = 0; i < size; i++) {
            h = hash_u64(h, i);
            in[i] = (uint8_t)(kind == 0   ? h
                              : kind == 1 ? h % 3
                              : kind == 2 ? (i % 97 == 0 ? h : i % 97)
                                          : (i >= 70000 && h % 50 != 0 ? in[i - 65000] : h));
        }
        const size_t n = snappy_pack(in, size, packed);
        assert_true(n <= snappy_bound(size));
        assert_int_equal(unpack(packed, n, out, MAX), size);
        assert_memory_equal(out, in, size);
        if (kind == 2 && size > 2000) {
            assert_true(n < size / 2);
        }
    }
    free(in);
    free(packed);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(unpacks_to_the_same)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
