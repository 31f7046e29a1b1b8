/* test_traffic_plan.c: no pattern gives a link or a trunk more than its load. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "lab/traffic_plan.h"

#include <errno.h>
#include <math.h>

#define NICS 16

static struct traffic_nic nics[NICS];
static struct traffic_flow flows[4096];

static struct traffic_fabric fabric_by(int (*leaf_of)(int host, int nic))
{
    for (int i = 0; i < NICS; i++) {
        nics[i] = (struct traffic_nic){i / 2, i % 2, leaf_of(i / 2, i % 2)};
    }
    return (struct traffic_fabric){
        .nics = nics, .nic_count = NICS, .spines = 4, .link_mbps = 200, .trunk_mbps = 200};
}

static int by_host(int host, int nic)
{
    (void)nic;
    return host / 4;
}

static int by_rail(int host, int nic)
{
    (void)host;
    return nic;
}

static int one_leaf(int host, int nic)
{
    (void)host;
    (void)nic;
    return 0;
}

struct loads {
    double out[NICS], in[NICS], up[2];
};

static struct loads load_of(int count)
{
    struct loads l = {0};
    for (int i = 0; i < count; i++) {
        double mbps = flows[i].rate_bps * 1e-6 / TRAFFIC_PAYLOAD_SHARE;
        l.out[flows[i].source] += mbps;
        l.in[flows[i].sink] += mbps;
        if (nics[flows[i].source].leaf != nics[flows[i].sink].leaf) {
            l.up[nics[flows[i].source].leaf] += mbps;
        }
        assert_int_not_equal(nics[flows[i].source].host, nics[flows[i].sink].host);
    }
    return l;
}

static void test_fill(void **state)
{
    (void)state;
    struct traffic_wish w = {.pattern = TRAFFIC_PATTERN_FILL, .load = 0.8, .flows = 4};
    struct traffic_fabric f = fabric_by(by_host);
    int n = traffic_plan(&f, &w, flows, 4096);
    assert_int_equal(n, NICS * 8);
    struct loads l = load_of(n);
    for (int i = 0; i < NICS; i++) {
        assert_true(fabs(l.out[i] - 160) < 0.01 && fabs(l.in[i] - 160) < 0.01);
    }
    assert_true(fabs(l.up[0] - 640) < 0.01 && fabs(l.up[1] - 640) < 0.01);
}

static void test_no_pattern_overloads(void **state)
{
    (void)state;
    int (*const wirings[])(int, int) = {by_host, by_rail};
    for (int wiring = 0; wiring < 2; wiring++) {
        struct traffic_fabric f = fabric_by(wirings[wiring]);
        for (int p = 0; p <= TRAFFIC_PATTERN_ONE; p++) {
            struct traffic_wish w = {
                .pattern = (enum traffic_pattern)p, .load = 0.95, .flows = 2, .to = 9};
            int n = traffic_plan(&f, &w, flows, 4096);
            assert_true(n > 0);
            struct loads l = load_of(n);
            for (int i = 0; i < NICS; i++) {
                assert_true(l.out[i] < 190.01 && l.in[i] < 190.01);
            }
            assert_true(l.up[0] < 760.01 && l.up[1] < 760.01);
        }
    }
}

static void test_refusals(void **state)
{
    (void)state;
    struct traffic_fabric f = fabric_by(one_leaf);
    struct traffic_wish w = {.pattern = TRAFFIC_PATTERN_CROSS, .load = 0.8, .flows = 1};
    assert_int_equal(traffic_plan(&f, &w, flows, 4096), -EINVAL);
    w.pattern = TRAFFIC_PATTERN_ALL_TO_ALL;
    assert_int_equal(traffic_plan(&f, &w, flows, 10), -ENOSPC);
    w.pattern = TRAFFIC_PATTERN_INCAST;
    w.to = NICS;
    assert_int_equal(traffic_plan(&f, &w, flows, 4096), -EINVAL);
    w.to = 0;
    w.load = 0;
    assert_int_equal(traffic_plan(&f, &w, flows, 4096), -EINVAL);
    w.greedy = true;
    assert_int_equal(traffic_plan(&f, &w, flows, 4096), 14);
    assert_true(flows[0].rate_bps == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_no_pattern_overloads),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
