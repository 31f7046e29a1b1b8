/* test_rdma_many.c: a host with virtual functions has more RDMA devices than can be used: the first ones are used, the others are
 * named. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/time.h"
#include "transport/rdma.h"

static struct mono now(struct io *io)
{
    struct timespec t;

    (void)io;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (struct mono){.ns = (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec};
}

static void kick(struct io *io)
{
    (void)io;
}

static void the_first_devices_are_used(void **state)
{
    static struct io io = {.now = now, .kick = kick};
    char path[512], why[256] = "";
    struct rdma *rdma = NULL;

    (void)state;
    snprintf(path, sizeof(path), "%s/libfake-verbs-whole.so", getenv("FOLIOT_FAKE_VERBS"));
    const struct rdma_config config = {.library = path, .sysfs = "/nowhere", .io = &io};
    assert_int_equal(rdma_open(&rdma, &config, why, sizeof(why)), 0);
    struct io_rdma *table = rdma_io(rdma);
    assert_true(table->trouble(table, why, sizeof(why)));
    assert_string_equal(
        why,
        "this host has 20 RDMA devices, and the first 16 are used: not vf17, vf18, vf19, vf20");
    assert_false(table->trouble(table, why, sizeof(why))); /* once */
    rdma_close(rdma);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_devices_are_used)};
    char wire[1024] = "";
    size_t used = 0;

    for (int i = 1; i <= 20; i++) {
        used += (size_t)snprintf(wire + used, sizeof(wire) - used, "%svf%d=127.0.0.%d",
                                 i > 1 ? " " : "", i, i);
    }
    setenv("FOLIOT_FAKE_VERBS_WIRE", wire, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
