/* The clock to which an edge leads, in a fleet with stamps of both kinds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/clock/clock_private.h"
#include "node_kit.h"

/* The number for the clock and the node. */
static uint32_t number_of(uint32_t edge)
{
    struct node_edge e;

    assert_true(node_edge_get(node, edge, now, &e));
    const uint32_t number = node_member_clock(node, 0)->edges[e.member_edge].config.peer;
    assert_int_equal(node->links[edge].peer, number);
    return number;
}

/* In a fleet with stamps of both kinds a peer's packets show to which clock an edge leads. */
static void an_edge_leads_to_the_clock_that_its_packets_tell(void **state)
{
    kit_start();
    const struct clock *clock = node_member_clock(node, 0);
    for (uint32_t round = 0; round < 3; round++) {
        const bool software = round == 2;
        for (uint32_t i = 0; i < node_edge_count(node); i++) {
            struct node_edge e;
            if (!node_edge_get(node, i, now, &e)) {
                continue;
            }
            node_clock_follow_stamps(node, now, (int)i, software);
            kit_check();
            assert_true(node_edge_get(node, i, now, &e));
            const struct clock_edge_config *k = &clock->edges[e.member_edge].config;
            assert_int_equal(k->host, 1 + e.host.index * KIT_NICS);
            assert_int_equal(k->peer_nic.index, e.peer.index);
        }
        for (uint32_t i = 0; i < node_edge_count(node); i++) {
            struct node_edge e;
            assert_true(!node_edge_get(node, i, now, &e) ||
                        number_of(i) == (software ? e.host.index * KIT_NICS : e.peer.index));
        }
        assert_int_equal(clock->edge_count, kit_edges());
    }
}

/* Sends packets on each edge to that NIC of its host. */
static uint32_t tell_stamps(uint32_t nic_of_host, bool software)
{
    uint32_t told = 0;

    for (uint32_t i = 0; i < node_edge_count(node); i++) {
        struct node_edge e;
        if (node_edge_get(node, i, now, &e) && e.peer.index % KIT_NICS == nic_of_host) {
            node_clock_follow_stamps(node, now, (int)i, software);
            kit_check();
            told++;
        }
    }
    return told;
}

/* A host's first NIC has a clock of its own, its second doesn't: two clocks, which must not have one number. */
static void a_hosts_clock_is_not_numbered_by_a_nic_with_a_clock(void **state)
{
    kit_start();
    assert_true(tell_stamps(1, true) > 0);
    for (uint32_t round = 0; round < 4; round++) {
        const bool software = round % 2 != 0;
        assert_true(tell_stamps(0, software) > 0);
        for (uint32_t i = 0; i < node_edge_count(node); i++) {
            struct node_edge e;
            if (node_edge_get(node, i, now, &e)) {
                const uint32_t first = e.host.index * KIT_NICS;
                assert_int_equal(number_of(i),
                                 software || e.peer.index == first ? first : first + 1);
            }
        }
        assert_int_equal(node_member_clock(node, 0)->edge_count, kit_edges());
    }
}

/* An edge's state belongs to one clock: with another clock it begins anew, even with the same number. */
static void an_edge_to_another_clock_knows_nothing(void **state)
{
    struct node_edge e;
    uint32_t i = 0;

    kit_start();
    while (!node_edge_get(node, i, now, &e) || e.peer.index % KIT_NICS != 0) {
        i++;
    }
    struct clock_edge *edge = &node->members[0].clock->edges[e.member_edge];
    edge->points = 77;
    node_clock_follow_stamps(node, now, (int)i, true); /* as was assumed */
    assert_int_equal(edge->points, 77);
    node_clock_follow_stamps(node, now, (int)i, false);
    assert_int_equal(number_of(i), e.peer.index);
    assert_true(node_edge_get(node, i, now, &e));
    assert_int_equal(node->members[0].clock->edges[e.member_edge].points, 0);
}

/* The state of an edge to a clock of the other kind survives a restart. */
static void an_edge_to_a_clock_of_the_other_kind_is_restored(void **state)
{
    struct clock_saved *saved = calloc(1, sizeof(*saved));
    struct node_edge e;
    uint32_t i = 0;

    kit_start();
    while (!node_edge_get(node, i, now, &e) || e.peer.index % KIT_NICS != 1) {
        i++;
    }
    node->saved = saved;
    saved->edge_count = 1;
    saved->edges[0] = (struct clock_saved_edge){
        .peer = e.peer.index + 7, .local_nic = e.local.index, .peer_nic = e.peer.index};
    assert_true(node_clock_restore(node, now, 0, (struct nic_time){now.ns}) < 0); /* no timeline */
    assert_int_equal(number_of(i), e.host.index * KIT_NICS);
    saved->edges[0].peer = e.peer.index;
    assert_true(node_clock_restore(node, now, 0, (struct nic_time){now.ns}) < 0);
    assert_int_equal(number_of(i), e.peer.index);
    node_clock_follow_stamps(node, now, (int)i, false);
    assert_int_equal(number_of(i), e.peer.index);
    kit_check();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define T(f) cmocka_unit_test_teardown(f, kit_end)
        T(an_edge_leads_to_the_clock_that_its_packets_tell),
        T(a_hosts_clock_is_not_numbered_by_a_nic_with_a_clock),
        T(an_edge_to_another_clock_knows_nothing),
        T(an_edge_to_a_clock_of_the_other_kind_is_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
