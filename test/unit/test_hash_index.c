/* test_hash_index.c: entries are found, with any hash; other keys aren't. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/hash_index.h"
#include "base/prng.h"

static uint32_t times(const struct hash_index *x, uint64_t hash, uint32_t entry)
{
    uint32_t count = 0;

    for (uint32_t at = hash_index_first(x, hash), i;
         (i = hash_index_entry(x, at)) != HASH_INDEX_NONE; at = hash_index_next(x, at)) {
        count += i == entry;
    }
    return count;
}

static void each_is_found_once(void **state)
{
    struct prng random;

    (void)state;
    prng_init(&random, 11);
    for (int round = 0; round < 100; round++) {
        const uint32_t entries = (uint32_t)prng_below(&random, 300);
        const uint64_t kinds = 1 + prng_below(&random, 400); /* few: they collide */
        struct hash_index x = {0};
        uint64_t hashes[300];

        assert_int_equal(hash_index_room(&x, entries), 0);
        for (int again = 0; again < 2; again++) {
            for (uint32_t i = 0; i < entries; i++) {
                hashes[i] = prng_below(&random, kinds) * 64 * (round % 2 + 1);
                hash_index_put(&x, hashes[i], i);
            }
            for (uint32_t i = 0; i < entries; i++) {
                assert_int_equal(times(&x, hashes[i], i), 1);
            }
            assert_int_equal(times(&x, 5, entries), 0);
            hash_index_clear(&x);
            assert_int_equal(times(&x, hashes[0], 0), 0);
        }
        hash_index_done(&x);
        hash_index_done(&x);
    }
}

static void an_empty_one_holds_nothing(void **state)
{
    const struct hash_index x = {0};

    (void)state;
    assert_int_equal(hash_index_entry(&x, hash_index_first(&x, 99)), HASH_INDEX_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_is_found_once),
        cmocka_unit_test(an_empty_one_holds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
