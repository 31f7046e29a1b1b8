/* The token that agents get: an agent that can handle changes gets one with the time; for others it stays the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "service/controller/controller.h"
#include "service/controller/instance.h"

static char key[] = "the authority's";
static struct controller world;

/* A start that was so long ago. */
static void began(int64_t ago_ms)
{
    world = (struct controller){.authority_key = key};
    world.instance.starts[0] =
        (struct instance_start){.generation = (uint64_t)(controller_utc_ns() / NS_PER_MS - ago_ms),
                                .id = 0x1234567889abcdef};
    world.instance.count = 1;
}

/* The same start some time later: its generation is unchanged, and the clock has advanced. */
static uint32_t moment_of(bool moment, int64_t ago_ms)
{
    uint8_t token[INSTANCE_TOKEN_SIZE];
    uint32_t slots;
    began(ago_ms);
    assert_int_equal(instance_token(&world, moment, token), 0);
    memcpy(&slots, token + 12, sizeof(slots));
    assert_memory_equal(token + 8, "\xef\xcd\xab\x89", 4); /* it identifies the start, to both */
    assert_int_equal(instance_hear(&world, "h", token, sizeof(token), 1), INSTANCE_GO_ON);
    assert_false(world.instance.other_known);
    return slots;
}

static void an_agent_that_knows_moments_is_told_them(void **state)
{
    (void)state;
    for (int64_t i = 0; i < 5; i++) {
        const int64_t middle = INSTANCE_SLOT_MS / 2; /* of a slot: the test may take as long */
        assert_int_equal(moment_of(true, i * INSTANCE_SLOT_MS + middle), i);
    }
}

static void another_agent_is_told_the_start_alone(void **state)
{
    (void)state;
    for (int64_t i = 0; i < 5; i++) {
        assert_int_equal(moment_of(false, i * INSTANCE_SLOT_MS + 5000), 0);
    }
}

/* An old start that is reported late accuses no other controller: it may have ended when this one began. */
static void a_start_of_before_is_no_other_controller(void **state)
{
    uint8_t token[INSTANCE_TOKEN_SIZE];
    (void)state;
    began(7200 * 1000);
    assert_int_equal(instance_token(&world, false, token), 0);
    began(3600 * 1000);
    world.instance.starts[0].id++;
    world.instance.since.ns = controller_mono().ns - 3600 * NS_PER_S;
    assert_int_equal(instance_hear(&world, "h", token, sizeof(token), 1000), INSTANCE_GO_ON);
    assert_int_equal(instance_others(&world), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_agent_that_knows_moments_is_told_them),
        cmocka_unit_test(another_agent_is_told_the_start_alone),
        cmocka_unit_test(a_start_of_before_is_no_other_controller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
