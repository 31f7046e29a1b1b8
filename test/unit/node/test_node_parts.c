/* A node without a world: what it refuses, what it counts, its deadlines, and the state that survives it. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "node_kit.h"

/* ---- refusals ---- */

static int made(const struct node_config *config)
{
    struct node *n = NULL;
    const int r = node_new(&n, config, now);
    assert_int_equal(r == 0, n != NULL);
    node_free(n);
    return r;
}

static void limits_hold_to_the_last_one(void **state)
{
    static const struct {
        uint16_t edge_limit, ring_peers, full_limit, path_limit;
        uint32_t interval_ms;
        uint16_t port_base;
        int r;
    } cases[] = {
        {NIC_EDGE_MAX, 0, 0, 0, 0, 0, 0},
        {NIC_EDGE_MAX + 1, 0, 0, 0, 0, 0, -EINVAL},
        {NIC_EDGE_MAX, 32, 0, 0, 0, 0, 0},
        {NIC_EDGE_MAX, 34, 0, 0, 0, 0, -EINVAL},
        {0, 15, 0, 0, 0, 0, -EINVAL},
        {0, 4, 0, 0, 0, 0, 0},
        {0, 2, 0, 0, 0, 0, -EINVAL}, /* one ring is as wide as half of the fleet */
        {20, 16, 20, 0, 0, 0, 0},
        {19, 16, 19, 0, 0, 0, -EINVAL},
        {24, 0, 24, 0, 0, 0, 0},
        {24, 0, 25, 0, 0, 0, -EINVAL},
        {0, 0, 0, EDGE_PATH_MAX, 0, 0, 0},
        {0, 0, 0, EDGE_PATH_MAX + 1, 0, 0, -EINVAL},
        {0, 0, 0, 0, 10000, 0, 0},
        {0, 0, 0, 0, 10001, 0, -EINVAL},
        {0, 0, 0, 0, 0, UINT16_MAX - NODE_PORT_COUNT, 0},
        {0, 0, 0, 0, 0, UINT16_MAX - NODE_PORT_COUNT + 1, -EINVAL},
    };

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct node_config c = kit_config();
        c.edge_limit = cases[i].edge_limit;
        c.ring_peers = cases[i].ring_peers;
        c.full_limit = cases[i].full_limit;
        c.path_limit = cases[i].path_limit;
        c.interval_ms = cases[i].interval_ms;
        c.port_base = cases[i].port_base;
        assert_int_equal(made(&c), cases[i].r);
    }
    struct node_config c = kit_config();
    c.nic_count = 0;
    assert_int_equal(made(&c), -EINVAL);
    c.nic_count = HOST_NIC_MAX + 1;
    assert_int_equal(made(&c), -EINVAL);
}

static void a_list_that_contradicts_itself_is_refused(void **state)
{
    struct mesh_peer wrong[KIT_PEERS];
    struct node_config c = kit_config();

    c.fleet.peer_count = FLEET_NIC_MAX + 1;
    assert_int_equal(made(&c), -EINVAL);
    c = kit_config();
    c.fleet.peers = NULL;
    assert_int_equal(made(&c), -EINVAL);
    c = kit_config();
    c.fleet.router_count = 1;
    assert_int_equal(made(&c), -EINVAL);
    c = kit_config();
    memcpy(wrong, c.fleet.peers, sizeof(wrong));
    c.fleet.peers = wrong;
    assert_int_equal(made(&c), 0);
    wrong[KIT_PEERS - 1].nic.index = FLEET_NIC_MAX;
    assert_int_equal(made(&c), -EINVAL);
    wrong[KIT_PEERS - 1].nic.index = FLEET_NIC_MAX - 1;
    assert_int_equal(made(&c), 0);
    wrong[3].nic.index = wrong[2].nic.index; /* twice */
    assert_int_equal(made(&c), -EINVAL);
    wrong[3].nic.index = wrong[2].nic.index - 1; /* not ascending */
    assert_int_equal(made(&c), -EINVAL);
    memcpy(wrong, kit_config().fleet.peers, sizeof(wrong));
    wrong[1].host.index = 1; /* a NIC of ours is another host's */
    assert_int_equal(made(&c), -EINVAL);
    memcpy(wrong, kit_config().fleet.peers, sizeof(wrong));
    c.fleet.peers = wrong + 1; /* one of ours is missing */
    c.fleet.peer_count--;
    assert_int_equal(made(&c), -EINVAL);

    /* a new list is refused, too, while it runs: the old one stays */
    kit_start();
    memcpy(wrong, kit_config().fleet.peers, sizeof(wrong));
    wrong[3].nic.index = wrong[2].nic.index;
    const struct mesh_fleet bad = {.peers = wrong, .peer_count = KIT_PEERS, .seed = 7};
    assert_int_equal(node_on_peers(node, now, &bad), -EINVAL);
    assert_ptr_equal(node_fleet(node)->peers, kit_config().fleet.peers);
    const struct mesh_fleet fewer = {.peers = kit_config().fleet.peers, .peer_count = 4, .seed = 7};
    const uint32_t before = kit_edges();
    assert_int_equal(node_on_peers(node, now, &fewer), 0);
    assert_int_equal(node_fleet(node)->peer_count, 4);
    assert_true(kit_edges() < before);
}

static void settings_have_limits_and_zero_is_as_at_the_start(void **state)
{
    kit_start();
    assert_int_equal(node_on_settings(node, now, &(struct node_settings){.ring_peers = 7}),
                     -EINVAL);
    assert_int_equal(node_on_settings(node, now, &(struct node_settings){.ring_peers = 26}),
                     -EINVAL);
    assert_int_equal(node->config.ring_peers, 16);
    assert_int_equal(node_on_settings(node, now, &(struct node_settings){24, 3}), 0);
    assert_int_equal(node->config.ring_peers, 24);
    assert_int_equal(node->config.flap_limit, 3);
    assert_int_equal(node_on_settings(node, now, &(struct node_settings){2, 0}), -EINVAL);
    assert_int_equal(node->config.ring_peers, 24);
    assert_int_equal(node_on_settings(node, now, &(struct node_settings){4, 0}), 0);
    assert_int_equal(node->config.flap_limit, LINK_FLAP_LIMIT_DEFAULT);
    assert_int_equal(node->config.ring_peers, 4);
    assert_int_equal(node_on_settings(node, now, &(struct node_settings){0}), 0);
    assert_int_equal(node->config.ring_peers, 16);
    const struct mesh_member own = {.peer = kit_config().fleet.peers[1], .gone = true};
    assert_int_equal(node_on_member(node, now, &own), -EINVAL); /* we don't leave */
}

/* H, on which the hard bound rests. */
static void hops_follow_the_graph(void **state)
{
    static struct mesh_peer many[40];
    struct node_config c = kit_config();

    for (uint32_t i = 0; i < ARRAY_COUNT(many); i++) {
        many[i] = (struct mesh_peer){.nic = {i}, .host = {i / KIT_NICS}};
    }
    const struct mesh_fleet few = c.fleet;
    const struct mesh_fleet all = {.peers = many, .peer_count = ARRAY_COUNT(many), .seed = 7};
    c.fleet = all;
    kit_start_with(&c);
    const struct clock *clock = node_member_clock(node, 0);
    assert_int_equal(clock->config.hops, peers_hops(ARRAY_COUNT(many), 16, 20));
    assert_int_equal(node_on_settings(node, now, &(struct node_settings){4, 0}), 0);
    assert_int_equal(clock->config.hops, peers_hops(ARRAY_COUNT(many), 4, 20));
    assert_int_equal(node_on_settings(node, now, &(struct node_settings){0}), 0);
    assert_int_equal(clock->config.hops, peers_hops(ARRAY_COUNT(many), 16, 20));
    assert_int_equal(node_on_peers(node, now, &few), 0);
    assert_int_equal(clock->config.hops, 1);
    c.diameter = 9;
    kit_start_with(&c);
    assert_int_equal(node_member_clock(node, 0)->config.hops, 9);
}

/* ---- deadlines ---- */

static void deadlines_keep_to_the_grid(void **state)
{
    static const struct {
        uint8_t grid_ms;
        int64_t step_ns;
    } cases[] = {{0, 5 * NS_PER_MS}, {7, 7 * NS_PER_MS}, {255, 1}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct node_config c = kit_config();
        c.grid_ms = cases[i].grid_ms;
        kit_start_with(&c);
        for (int k = 0; k < 200; k++) {
            const struct mono due = node_deadline(node);
            assert_true(due.ns > now.ns);
            assert_int_equal(due.ns % cases[i].step_ns, 0);
            if (k ==
                0) { /* what is due at once is at the next place of the grid, not the one after */
                assert_true(due.ns - now.ns <= cases[i].step_ns);
            }
            now = due;
            kit_tick();
        }
    }
}

static void the_mesh_page_is_due_ten_times_a_second(void **state)
{
    struct node_action a;
    unsigned pages = 0;

    kit_start();
    for (int64_t end = now.ns + NS_PER_S; now.ns < end; now.ns += NS_PER_MS) {
        node_tick(node, now);
        while (node_next_action(node, &a)) {
            pages += a.kind == NODE_PUBLISH_MESH;
            assert_true(a.kind != NODE_PUBLISH_MESH || a.changed <= 1);
        }
    }
    assert_in_range(pages, 10, 11);
}

/* ---- events by number, as replay gives them ---- */

static void events_have_the_size_of_what_they_carry(void **state)
{
    assert_int_equal(node_event_size(NODE_EVENT_TICK), 0);
    assert_int_equal(node_event_size(NODE_EVENT_RECEIVE), sizeof(struct node_receive));
    assert_int_equal(node_event_size(NODE_EVENT_MEMBER), sizeof(struct mesh_member));
    assert_int_equal(node_event_size(NODE_EVENT_KIND_COUNT), 0);
    assert_int_equal(node_event_size((enum node_event_kind)(NODE_EVENT_KIND_COUNT + 1)), 0);
    for (int k = NODE_EVENT_RECEIVE; k < NODE_EVENT_KIND_COUNT; k++) {
        assert_true(node_event_size((enum node_event_kind)k) > 0);
    }
    kit_start();
    assert_int_equal(node_on_event(node, now, NODE_EVENT_KIND_COUNT, NULL), -EINVAL);
    const struct node_bad_packet bad = {.count = 3, .error = PROBE_ERROR_TAG};
    assert_int_equal(node_on_event(node, now, NODE_EVENT_BAD_PACKET, &bad), 0);
    assert_int_equal(kit_counters().bad_packets, 3);
    assert_int_equal(node_on_event(node, now, NODE_EVENT_SETTINGS, &(struct node_settings){4, 0}),
                     0);
    assert_int_equal(node->config.ring_peers, 4);
    now.ns += 10 * NS_PER_S;
    assert_int_equal(node_on_event(node, now, NODE_EVENT_TICK, NULL), 0);
    assert_int_equal(node->now.ns, now.ns);
    /* a number that names no NIC of ours has no effect */
    const struct node_link nowhere = {.local = KIT_NICS};
    assert_int_equal(node_on_event(node, now, NODE_EVENT_LINK, &nowhere), 0);
    const struct node_receive strange = {.local = KIT_NICS};
    assert_int_equal(node_on_event(node, now, NODE_EVENT_RECEIVE, &strange), 0);
    const struct node_hop hop = {.local = KIT_NICS, .kind = HOP_NO_ROUTE};
    assert_int_equal(node_on_event(node, now, NODE_EVENT_HOP, &hop), 0);
    node_expect(node, &strange);
    assert_int_equal(kit_counters().received, 0);
}

/* ---- the state that survives a restart ---- */

static void a_saved_state_is_taken_whole_or_not(void **state)
{
    static uint64_t bytes[1 << 16];
    uint32_t *header = (uint32_t *)bytes; /* magic, version, size, members, edges */

    kit_start();
    const size_t size = node_saved_size(node);
    assert_in_range(size, 24, sizeof(bytes));
    node_save(node, now, bytes);
    assert_int_not_equal(node_restore(node, now, bytes, size), -ENOMEM);
    for (int field = 0; field < 5; field++) {
        header[field]++;
        assert_int_equal(node_restore(node, now, bytes, size), -EINVAL);
        header[field]--;
    }
    assert_int_equal(node_restore(node, now, bytes, size - 1), -EINVAL);
    assert_int_equal(node_restore(node, now, bytes, 23), -EINVAL);
    assert_int_equal(node_restore(node, now, bytes, 0), -EINVAL);
}

/* ---- questions ---- */

static void an_answer_counts_once_and_from_who_was_asked(void **state)
{
    static const struct {
        uint32_t number, asked, subject;
        int64_t age_ns;
        uint64_t refused;
    } cases[] = {
        {5, 2, 4, NS_PER_S, 0},
        {5, 2, 4, 5 * NS_PER_S, 0},
        {5, 2, 4, 5 * NS_PER_S + 1, 1},
        {5 + QUERY_MAX, 2, 4, 0, 1},
        {5, 3, 4, 0, 1},
        {5, 2, 3, 0, 1},
        {0, 2, 4, 0, 1},
    };

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        kit_start();
        const struct node_receive answer = {
            .local = 0,
            .probe = {.type = PROBE_ANSWER,
                      .src = {cases[i].asked},
                      .dst = {0},
                      .query = {.subject = {cases[i].subject}, .number = cases[i].number}}};
        node->queries[5] =
            (struct node_query){.number = 5, .subject = {4}, .asked = {2}, .about = 4, .at = now};
        now.ns += cases[i].age_ns;
        node_clock_query(node, now, &answer);
        assert_int_equal(node->counters.replayed, cases[i].refused);
        assert_int_equal(node->queries[5].number, cases[i].refused ? 5 : 0);
        node_clock_query(node, now, &answer); /* again: nobody asked */
        assert_int_equal(node->counters.replayed, cases[i].refused + 1);
    }
}

static void loops_are_summed_up_by_their_middle_and_worst(void **state)
{
    struct node_triangles t;

    kit_start();
    node_triangles(node, &t);
    assert_int_equal(t.count, 0);
    for (int i = 0; i < 5; i++) {
        node->triangle.residuals[i] = (double)((i * 3) % 5) * 10; /* 0 30 10 40 20 */
    }
    node->triangle.count = 5;
    node_triangles(node, &t);
    assert_int_equal(t.count, 5);
    assert_true(t.residual_ns_p50 > 19 && t.residual_ns_p50 < 21);
    assert_true(t.residual_ns_max > 39 && t.residual_ns_max < 41);
    node->triangle.count = TRIANGLE_MAX + 1; /* a ring */
    node_triangles(node, &t);
    assert_int_equal(t.count, TRIANGLE_MAX);
}

/* ---- a second clock ---- */

/* Readings 10 ms apart, at a rate of 20 ppm. The last one jumps by so much. Returns whether the lines were dropped. */
static bool jump_is_seen(uint32_t count, int64_t jump_ns, int64_t width_ns)
{
    struct node_guard g = {.source = 1};

    kit_start();
    for (uint32_t i = 0; i <= count; i++) {
        const int64_t jump = i == count ? jump_ns : 0;
        now.ns += 10 * NS_PER_MS;
        g.before.ns = now.ns;
        g.after.ns = now.ns + width_ns;
        g.other_ns = now.ns + width_ns / 2 + (int64_t)i * 200 + 123456 + jump;
        node_on_guard(node, now, &g);
    }
    return node->guards[0].source == 0;
}

static void a_second_clock_shows_a_jump(void **state)
{
    assert_false(jump_is_seen(200, 0, 1000));
    assert_false(jump_is_seen(200, 900, 1000)); /* 500 + half the width + 150 for its age */
    assert_true(jump_is_seen(200, 1400, 1000));
    assert_true(jump_is_seen(200, -1400, 1000));
    assert_false(jump_is_seen(200, 1400, 4000));     /* read less sharply */
    assert_false(jump_is_seen(60, 1000000, 1000));   /* its line isn't known yet */
    assert_false(jump_is_seen(200, 1000000, 50001)); /* too wide to show anything */
    assert_true(jump_is_seen(200, 1000000, 50000));
    assert_true(jump_is_seen(200, 1400, 0));
    assert_false(jump_is_seen(200, 1000000, -1)); /* read backwards */
    const struct node_guard none = {.source = 0, .before = {1}, .after = {2}};
    kit_start();
    node_on_guard(node, now, &none);
    for (uint32_t i = 0; i < GUARD_SOURCES; i++) {
        assert_int_equal(node->guards[i].count, 0);
    }
    for (uint32_t i = 1; i <= GUARD_SOURCES + 1; i++) { /* one more than there is room for */
        const struct node_guard g = {.source = i, .before = now, .after = now, .other_ns = 5};
        node_on_guard(node, now, &g);
        assert_int_equal(node->guards[i <= GUARD_SOURCES ? i - 1 : 0].source,
                         i <= GUARD_SOURCES ? i : 1);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, kit_end)
    const struct CMUnitTest tests[] = {
        T(limits_hold_to_the_last_one),
        T(a_list_that_contradicts_itself_is_refused),
        T(settings_have_limits_and_zero_is_as_at_the_start),
        T(hops_follow_the_graph),
        T(deadlines_keep_to_the_grid),
        T(the_mesh_page_is_due_ten_times_a_second),
        T(events_have_the_size_of_what_they_carry),
        T(a_saved_state_is_taken_whole_or_not),
        T(an_answer_counts_once_and_from_who_was_asked),
        T(loops_are_summed_up_by_their_middle_and_worst),
        T(a_second_clock_shows_a_jump),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
