/* Real nodes in a small world: they find each other, fall onto one timeline, and see their paths.
 */
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "core/clock/clock.h"
#include "node_world.h"

static struct world w;

static void start_all(uint64_t seed, uint32_t hosts, uint32_t nics, bool hops)
{
    world_init(&w, seed, hosts, nics);
    w.trace_hops = hops;
    for (uint32_t i = 0; i < hosts; i++) {
        world_start(&w, i);
    }
}

static int64_t fleet_of(uint32_t host)
{
    struct fleet_time t = {0};

    assert_true(node_fleet_time(w.hosts[host].node, world_mono(&w, host), &t));
    return t.ns;
}

static uint32_t count_kind(uint32_t kind)
{
    uint32_t count = 0;

    for (uint32_t h = 0; h < w.host_count; h++) {
        for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
            count += w.hosts[h].findings[i].finding.kind == kind;
        }
    }
    return count;
}

static void print_findings(void)
{
    char text[512];

    for (uint32_t h = 0; h < w.host_count; h++) {
        for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
            finding_text(&w.hosts[h].findings[i].finding, NULL, text, sizeof text);
            printf("%6.3f host %u: %s\n", (double)w.hosts[h].findings[i].at / 1e9, h, text);
        }
    }
}

static void two_hosts_share_a_timeline(void **state)
{
    struct path_report out, in;
    struct node_edge edge;
    int seen = 0;

    start_all(1, 2, 2, false);
    world_run(&w, 25 * NS_PER_S);
    assert_true(llabs(fleet_of(0) - fleet_of(1)) < 2000);
    for (uint32_t e = 0; e < node_edge_count(w.hosts[0].node); e++) {
        if (!node_edge_get(w.hosts[0].node, e, world_mono(&w, 0), &edge)) {
            continue;
        }
        for (uint8_t p = 0; p < 4; p++) {
            assert_true(
                node_path_get(w.hosts[0].node, e, p, DIRECTION_OUT, world_mono(&w, 0), &out));
            assert_true(node_path_get(w.hosts[0].node, e, p, DIRECTION_IN, world_mono(&w, 0), &in));
            assert_int_equal(out.state, PATH_ALIVE);
            assert_int_equal(in.state, PATH_ALIVE);
            assert_true(out.owd_count > 20 && in.owd_count > 20);
            assert_true(llabs(out.owd_ns_p50 - 4000) < 1000);
            assert_true(llabs(in.owd_ns_p50 - 4000) < 1000);
            seen++;
        }
    }
    assert_int_equal(seen, 16);
    if (count_kind(FINDING_PATH_DEAD)) {
        print_findings();
    }
    assert_int_equal(count_kind(FINDING_PATH_DEAD), 0);
    world_done(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_hosts_share_a_timeline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
