/* LLDP frames: names from good frames, nothing from others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "wire/lldp.h"

static uint8_t frame[400];
static size_t size;

static void begin(void)
{
    static const uint8_t head[14] = {0x01, 0x80, 0xc2, 0, 0, 0x0e, 2, 0, 0, 0, 0, 1, 0x88, 0xcc};
    memcpy(frame, head, sizeof(head));
    size = sizeof(head);
}

static void add(unsigned type, int subtype, const void *value, size_t length)
{
    const size_t whole = length + (subtype >= 0);
    frame[size++] = (uint8_t)(type << 1 | whole >> 8);
    frame[size++] = (uint8_t)whole;
    if (subtype >= 0) {
        frame[size++] = (uint8_t)subtype;
    }
    memcpy(frame + size, value, length);
    size += length;
}

static void usual(void)
{
    begin();
    add(1, 4, "\x02\xaa\xbb\xcc\xdd\x0e", 6);
    add(2, 5, "Ethernet1/4", 11);
    add(3, -1, "\0\x78", 2);
}

static void names_are_read(void **state)
{
    struct lldp l;
    usual();
    add(4, -1, "to gpu-1", 8);
    add(5, -1, "leaf3", 5);
    add(127, -1, "\0\x80\xc2\1", 4);
    add(0, -1, "", 0);
    memset(frame + size, 0, 20); /* padding of a frame */
    assert_true(lldp_decode(frame, size + 20, &l));
    assert_string_equal(l.system, "leaf3");
    assert_string_equal(l.port, "Ethernet1/4");
    assert_int_equal(l.ttl_s, 120);
    usual(); /* without a name: its address; without an end: the end of the frame */
    assert_true(lldp_decode(frame, size, &l));
    assert_string_equal(l.system, "02:aa:bb:cc:dd:0e");
    begin(); /* a port with an address and a description */
    add(1, 7, "leaf\x1b[31m\xff", 10);
    add(2, 3, "\1\2\3\4\5\6", 6);
    add(3, -1, "\0\0", 2);
    add(4, -1, "swp7", 4);
    assert_true(lldp_decode(frame, size, &l));
    assert_string_equal(l.system, "leaf?[31m?");
    assert_string_equal(l.port, "swp7");
    assert_int_equal(l.ttl_s, 0);
}

static void a_frame_that_is_no_lldp_is_refused(void **state)
{
    struct lldp l = {.system = "before"};
    usual();
    const size_t all = size;
    for (size_t cut = 0; cut < all; cut++) {
        assert_false(lldp_decode(frame, cut, &l));
    }
    frame[12] = 0x08;
    assert_false(lldp_decode(frame, all, &l));
    begin(); /* the first three in another order, twice, empty */
    add(2, 5, "x", 1);
    add(1, 7, "x", 1);
    add(3, -1, "\0\1", 2);
    assert_false(lldp_decode(frame, size, &l));
    usual();
    add(2, 5, "again", 5);
    assert_false(lldp_decode(frame, size, &l));
    begin();
    add(1, -1, "", 0);
    assert_false(lldp_decode(frame, size, &l));
    usual();
    frame[size++] = 5 << 1 | 1; /* longer than the frame */
    frame[size++] = 0xff;
    assert_false(lldp_decode(frame, size, &l));
    assert_string_equal(l.system, "before");
}

static void any_bytes(void **state)
{
    struct prng p;
    prng_init(&p, 7);
    for (int i = 0; i < 20000; i++) {
        struct lldp l;
        usual();
        add(5, -1, "a-rather-long-name-of-a-switch-that-is-cut-at-sixty-three-characters-or-so",
            74);
        for (int k = 0; k < 4; k++) {
            frame[14 + prng_below(&p, size - 14)] = (uint8_t)prng_u64(&p);
        }
        if (lldp_decode(frame, prng_below(&p, size + 1), &l)) {
            assert_true(strlen(l.system) < LLDP_TEXT_SIZE && strlen(l.port) < LLDP_TEXT_SIZE);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_read),
        cmocka_unit_test(a_frame_that_is_no_lldp_is_refused),
        cmocka_unit_test(any_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
