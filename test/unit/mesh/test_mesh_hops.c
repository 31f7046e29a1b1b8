/* Lists of hops: which ways differ, and the common order in which both ends of an edge use them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/mesh/hops.h"

enum { LEAVES = 2, SPINES = 4, NAMELESS = 3, ROUTERS = LEAVES + SPINES + NAMELESS };

/* Routers 1 to 2 are leaves, 3 to 6 spines 3, 2, 1, 0, and 7 to 9 have no name. */
static struct mesh *made(struct router routers[static ROUTERS])
{
    struct mesh *m = calloc(1, sizeof(*m));

    assert_non_null(m);
    for (uint32_t i = 0; i < ROUTERS; i++) {
        const bool leaf = i < LEAVES, spine = !leaf && i < LEAVES + SPINES;
        routers[i] = (struct router){.hash = (uint64_t)(100 - i) << 41,
                                     .place = leaf ? PLACE_LEAF : PLACE_SPINE,
                                     .number = UINT32_MAX};
        if (leaf || spine) {
            routers[i].number = leaf ? i : LEAVES + SPINES - 1 - i;
        } else {
            routers[i].place = PLACE_LEAF + PLACE_SPINE + 1;
        }
    }
    m->routers = routers;
    m->router_count = ROUTERS;
    return m;
}

static void a_list_is_as_long_as_its_last_known_hop(void **state)
{
    uint16_t hops[MESH_HOP_MAX] = {0};

    assert_int_equal(hops_length(hops), 0);
    for (uint8_t i = 0; i < MESH_HOP_MAX; i++) {
        memset(hops, 0, sizeof(hops));
        hops[i] = 1;
        assert_int_equal(hops_length(hops), i + 1);
        hops[0] = 1;
        assert_int_equal(hops_length(hops), i + 1);
    }
}

/* The peer reports its distance. Until then one more router may be there. */
static void a_list_that_ends_early_is_no_way(void **state)
{
    struct discovery *d = calloc(1, sizeof(*d));

    assert_non_null(d);
    for (uint8_t least = 0; least <= MESH_HOP_MAX; least++) {
        d->reached = 0;
        assert_int_equal(hops_before_peer(d, least),
                         least < MESH_HOP_MAX ? least + 1 : MESH_HOP_MAX);
        d->reached = (uint8_t)(least + 1);
        assert_int_equal(hops_before_peer(d, least), least);
        d->reached = 4;
        assert_int_equal(hops_before_peer(d, least), least < 3 ? 3 : least);
    }
    free(d);
}

/* Other routers, another order, or another place of one: another way. Without knowledge: 0. */
static void ways_that_differ_have_other_signatures(void **state)
{
    static const uint16_t ways[][MESH_HOP_MAX] = {{1},    {2},       {0, 1},    {1, 3},   {3, 1},
                                                  {1, 4}, {1, 0, 3}, {1, 3, 2}, {1, 4, 2}};
    const uint16_t none[MESH_HOP_MAX] = {0};
    struct router routers[ROUTERS];
    struct mesh *m = made(routers);

    assert_true(hops_signature(m, none) == 0);
    for (size_t i = 0; i < ARRAY_COUNT(ways); i++) {
        assert_true(hops_signature(m, ways[i]) != 0);
        assert_true(hops_signature(m, ways[i]) == hops_signature(m, ways[i]));
        for (size_t k = 0; k < i; k++) {
            assert_true(hops_signature(m, ways[i]) != hops_signature(m, ways[k]));
        }
    }
    free(m);
}

/* One port for each way. An unknown hop of a list is assumed to be the same as others'. A list that ends early gives no way. */
static void each_way_has_one_port(void **state)
{
    struct discovery *d = calloc(1, sizeof(*d));
    uint8_t ports[MESH_PORT_COUNT];
    static const uint16_t hops[][3] = {{1, 3, 2}, {1, 4, 2}, {1, 3, 2}, {1, 0, 2},
                                       {1, 5, 0}, {0, 6, 2}, {1, 6, 2}, {1, 5, 2}};

    assert_non_null(d);
    assert_int_equal(hops_distinct_ports(d, MESH_PORT_COUNT, ports, MESH_PORT_COUNT), 0);
    for (size_t i = 0; i < ARRAY_COUNT(hops); i++) {
        memcpy(d->hops[i], hops[i], sizeof(hops[i]));
    }
    assert_int_equal(hops_distinct_ports(d, ARRAY_COUNT(hops), ports, MESH_PORT_COUNT), 4);
    const uint8_t expected[] = {0, 1, 5, 7};
    assert_memory_equal(ports, expected, sizeof(expected));
    assert_int_equal(hops_distinct_ports(d, ARRAY_COUNT(hops), ports, 3), 3);
    assert_memory_equal(ports, expected, 3);
    assert_int_equal(hops_distinct_ports(d, 2, ports, MESH_PORT_COUNT), 2);
    free(d);
}

/* Ordered by spine if spines have names: so ports whose lists begin with other switches at either end get one order. */
static void ports_are_in_the_order_of_their_spines(void **state)
{
    static const uint16_t hops[][3] = {{1, 4, 2}, {1, 3, 2}, {1, 6, 2}, {1, 5, 2}};
    struct discovery *d = calloc(1, sizeof(*d));
    struct router routers[ROUTERS];
    struct mesh *m = made(routers);
    uint8_t ports[] = {0, 1, 2, 3}, nameless[] = {4, 5, 6}, one[] = {3};

    assert_non_null(d);
    for (size_t i = 0; i < ARRAY_COUNT(hops); i++) {
        memcpy(d->hops[i], hops[i], sizeof(hops[i]));
    }
    for (uint16_t i = 0; i < NAMELESS; i++) {
        d->hops[4 + i][1] = (uint16_t)(7 + i); /* by address: of these the last has the lowest */
    }
    hops_sort_ports(m, d, ports, 4);
    const uint8_t expected[] = {2, 3, 0, 1}; /* spines 0, 1, 2, 3 */
    assert_memory_equal(ports, expected, sizeof(expected));
    hops_sort_ports(m, d, nameless, NAMELESS);
    const uint8_t by_address[] = {6, 5, 4};
    assert_memory_equal(nameless, by_address, sizeof(by_address));
    hops_sort_ports(m, d, one, 1);
    assert_int_equal(one[0], 3);
    free(d);
    free(m);
}

/* A switch answers from several addresses, but has one name. */
static void a_router_is_known_by_its_name(void **state)
{
    struct router routers[ROUTERS];
    struct mesh *m = made(routers);

    assert_true(hops_same_router(m, 3, 3));
    assert_true(hops_same_router(m, 8, 8));
    assert_false(hops_same_router(m, 3, 4));
    assert_false(hops_same_router(m, 7, 8)); /* neither has a name */
    routers[3].number = routers[2].number;
    assert_true(hops_same_router(m, 3, 4));
    routers[3].place = PLACE_LEAF; /* leaf 3 is not spine 3 */
    assert_false(hops_same_router(m, 3, 4));
    free(m);
}

/* All its edges between the same two routers, each way once: if one peer's search found all ways, the next one needs none. */
static void ways_of_other_edges_are_counted(void **state)
{
    enum { EDGES = 4 };
    static const uint16_t ways[EDGES][2][3] = {
        {{1, 3, 2}, {1, 4, 2}}, /* another peer behind the same two leaves */
        {{1, 4, 2}, {1, 5, 2}}, /* and one more: two ways are the same, three in all */
        {{1, 6, 1}, {2, 6, 1}}, /* between others */
        {{1, 6, 2}, {1, 0, 2}}, /* not yet searched; and not completely known */
    };
    const uint16_t asked[MESH_HOP_MAX] = {1, 3, 2};
    struct router routers[ROUTERS];
    struct mesh *m = made(routers);

    m->edge_capacity = EDGES;
    m->edges = calloc(EDGES, sizeof(*m->edges));
    assert_non_null(m->edges);
    assert_int_equal(hops_ways_between(m, asked, 3), 0);
    for (int i = 0; i < EDGES; i++) {
        struct mesh_edge *e = &m->edges[i];

        e->used = true;
        e->discovered = i != 3;
        e->path_count = 2;
        for (int p = 0; p < 2; p++) {
            memcpy(e->out[p].hops, ways[i][p], sizeof(ways[i][p]));
            e->out[p].hop_count = 3;
            e->out[p].signature = hops_signature(m, e->out[p].hops);
        }
    }
    assert_int_equal(hops_ways_between(m, asked, 3), 3);
    m->edges[3].discovered = true;
    assert_int_equal(hops_ways_between(m, asked, 3), 4);
    m->edges[0].used = m->edges[3].used = false;
    assert_int_equal(hops_ways_between(m, asked, 3), 2);
    assert_int_equal(hops_ways_between(m, asked, 2), 0);                             /* shorter */
    assert_int_equal(hops_ways_between(m, (uint16_t[MESH_HOP_MAX]){1, 0, 2}, 3), 0); /* unknown */
    free(m->edges);
    free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_is_as_long_as_its_last_known_hop),
        cmocka_unit_test(a_list_that_ends_early_is_no_way),
        cmocka_unit_test(ways_that_differ_have_other_signatures),
        cmocka_unit_test(each_way_has_one_port),
        cmocka_unit_test(ports_are_in_the_order_of_their_spines),
        cmocka_unit_test(a_router_is_known_by_its_name),
        cmocka_unit_test(ways_of_other_edges_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
