/* test_abi.c: the plugin tables as declared. Their sizes and offsets are asserted where they are declared, so compiling this is
 * most of the test. The rest is that a value passes through each kind of descriptor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/abi_net.h"
#include "plugin/abi_profiler.h"

/* The type is one byte up to v4 and eight from v5 on: a read of eight bytes from a v4 descriptor includes its padding. */
static void type_grows_in_v5(void **state)
{
    struct nccl_event_descriptor_v4 four;
    struct nccl_event_descriptor_v5 five;

    memset(&four, 0xaa, sizeof(four));
    memset(&five, 0xaa, sizeof(five));
    four.type = NCCL_EVENT_PROXY_STEP;
    five.type = NCCL_EVENT_PROXY_STEP;
    assert_int_equal(*(uint8_t *)&four, NCCL_EVENT_PROXY_STEP);
    assert_int_equal(((uint8_t *)&four)[1], 0xaa);
    assert_int_equal(((uint8_t *)&five)[1], 0);
}

/* Eight devices per merged NIC and the two 16-bit fields fill v12's properties exactly. */
static void v12_has_no_tail(void **state)
{
    assert_int_equal(offsetof(struct nccl_net_properties_v12, plane) + sizeof(int16_t),
                     sizeof(struct nccl_net_properties_v12));
    assert_int_equal(NCCL_DEVICES_PER_NIC_V12, 2 * NCCL_DEVICES_PER_NIC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(type_grows_in_v5),
        cmocka_unit_test(v12_has_no_tail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
