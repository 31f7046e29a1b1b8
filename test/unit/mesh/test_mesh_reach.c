/* Answers of hops and of the peer's end: which of them count for a search, and which for nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mesh/internal.h"

#define PORT_BASE 7640

static struct mesh *m;
static struct mono now = {1000 * NS_PER_S};
static struct mesh_peer peers[4];

static int begin(void **state)
{
    for (uint32_t i = 0; i < 4; i++) {
        peers[i] = (struct mesh_peer){.nic = {i}, .host = {i}};
    }
    const struct mesh_config config = {.nic_count = 1,
                                       .nics = {{0}},
                                       .fleet = {.seed = 7, .peers = peers, .peer_count = 4},
                                       .seed = 3,
                                       .port_base = PORT_BASE,
                                       .edge_limit = 28,
                                       .ring_peers = 16,
                                       .full_limit = 20,
                                       .path_limit = 4,
                                       .interval = span_ms(100),
                                       .grid = span_ms(5),
                                       .late = span_ms(25)};
    m = mesh_new(&config, now);
    return m == NULL;
}

static int end(void **state)
{
    mesh_free(m);
    return 0;
}

static int edge_to(uint32_t nic)
{
    const int edge = mesh_edge_find(m, 0, (struct nic_id){nic});
    assert_true(edge >= 0);
    return edge;
}

/* A probe of discovery: generation, port and hop limit in its number. */
static uint32_t number(int edge, uint32_t port, uint32_t ttl)
{
    return (m->edges[edge].generation & 0xffff) << 16 | port << 8 | ttl;
}

static void the_least_hop_limit_that_reached_the_peer_counts(void **state)
{
    const int edge = edge_to(1), other = edge_to(2);
    struct discovery *d = &m->nics[0].discovery;

    d->edge = edge;
    d->reached = 0;
    discovery_reached(m, now, edge, number(edge, 1, 4));
    assert_int_equal(d->reached, 4);
    discovery_reached(m, now, edge, number(edge, 2, 5));
    assert_int_equal(d->reached, 4);
    discovery_reached(m, now, edge, number(edge, 3, 3));
    assert_int_equal(d->reached, 3);
    /* not for anything that this edge asked */
    discovery_reached(m, now, edge, number(edge, 1, 2) + (1U << 16)); /* its generation before */
    discovery_reached(m, now, other, number(other, 1, 2));
    discovery_reached(m, now, edge, number(edge, 1, 0));
    discovery_reached(m, now, edge, number(edge, 1, 2) | TRACE_FLAG);
    discovery_reached(m, now, edge, number(edge, 1, 2) | VERIFY_FLAG);
    discovery_reached(m, now, edge, number(edge, MESH_PORT_COUNT, 2));
    assert_int_equal(d->reached, 3);
    d->reached = 0;
    discovery_reached(m, now, edge, number(edge, 1, MESH_HOP_MAX + 1));
    assert_int_equal(d->reached, 0);
    discovery_reached(m, now, edge, number(edge, MESH_PORT_COUNT - 1, MESH_HOP_MAX));
    assert_int_equal(d->reached, MESH_HOP_MAX);
}

static uint64_t unmatched(void)
{
    struct mesh_counters c;
    mesh_counters_get(m, &c);
    return c.hops_unmatched;
}

static void a_hop_counts_where_it_was_asked(void **state)
{
    static const uint8_t router[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3};
    struct discovery *d = &m->nics[0].discovery;
    const struct nic_id peer = {1}, stranger = {77};

    d->edge = edge_to(1);
    mesh_on_hop(m, now, 0, peer, PORT_BASE + 2, 0, 1, router);
    assert_int_not_equal(d->hops[2][0], 0);
    assert_int_equal(unmatched(), 0);
    mesh_on_hop(m, now, 0, peer, PORT_BASE + MESH_PORT_COUNT - 1, 0, MESH_HOP_MAX, router);
    assert_int_equal(d->hops[MESH_PORT_COUNT - 1][MESH_HOP_MAX - 1],
                     d->hops[2][0]); /* the same router */
    mesh_on_hop(m, now, 0, stranger, PORT_BASE, 0, 1, router);
    mesh_on_hop(m, now, 0, peer, PORT_BASE + MESH_PORT_COUNT, 0, 1, router);
    mesh_on_hop(m, now, 0, peer, PORT_BASE - 1, 0, 1, router);
    mesh_on_hop(m, now, 0, peer, PORT_BASE, 0, MESH_HOP_MAX + 1, router);
    mesh_on_hop(m, now, 0, (struct nic_id){2}, PORT_BASE, 0, 1, router); /* not in a search */
    assert_int_equal(unmatched(), 5);
    /* a quote too short to contain its hop limit: it counts for the last one that was sent, by that port only */
    d->last_port = 3;
    d->last_ttl = 2;
    mesh_on_hop(m, now, 0, peer, PORT_BASE + 3, 0, 0, router);
    assert_int_not_equal(d->hops[3][1], 0);
    mesh_on_hop(m, now, 0, peer, PORT_BASE + 4, 0, 0, router);
    assert_int_equal(unmatched(), 6);
}

/* Leaf, spine, leaf: 10.tier.number. */
static void set_way(struct path_out *out, uint8_t leaf, uint8_t spine, uint8_t far)
{
    const uint8_t numbers[3] = {leaf, spine, far};

    for (uint32_t hop = 0; hop < 3; hop++) {
        const uint8_t router[16] = {
            [10] = 0xff, [11] = 0xff, [12] = 10, [13] = hop == 1 ? 2 : 1, [14] = numbers[hop]};
        out->hops[hop] = (uint16_t)mesh_router(m, router);
    }
    out->hop_count = 3;
    out->verified = now;
}

/* The fabric rerouted around a spine: ways over its leaves must be seen again. A way over neither, of another rail, need not. */
static void a_reroute_is_news_of_the_ways_beside_it(void **state)
{
    static const uint8_t spine_7[16] = {[10] = 0xff, [11] = 0xff, [12] = 10, [13] = 2, [14] = 7};
    struct mesh_edge *e = &m->edges[edge_to(1)], *other = &m->edges[edge_to(2)];
    const uint64_t token = 99;

    set_way(&e->out[0], 0, 0, 1);
    set_way(&e->out[1], 0, 1, 1);     /* the same leaves, which may spread all packets anew */
    set_way(&other->out[0], 5, 0, 6); /* the same spine */
    set_way(&other->out[1], 5, 1, 6); /* none of them */
    now.ns += NS_PER_S;
    m->pending[token & m->pending_mask] =
        (struct pending){.token = token,
                         .seq = discovery_seq(e->generation, 0, 2, VERIFY_FLAG),
                         .path = MESH_PATH_PROBE};
    assert_true(discovery_way_holds(&e->out[0]));
    mesh_on_hop(m, now, 0, (struct nic_id){1}, PORT_BASE, token, 2, spine_7);
    assert_false(discovery_way_holds(&e->out[0]));
    assert_false(discovery_way_holds(&e->out[1]));
    assert_false(discovery_way_holds(&other->out[0]));
    assert_true(discovery_way_holds(&other->out[1]));
    other->out[0].verified = now;
    assert_true(discovery_way_holds(&other->out[0]));
}

/* Ways from before a restart, from a file: all of a way, or nothing. */
static void what_is_saved_wrong_is_not_taken(void **state)
{
    static const uint8_t router[16] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 1, 2, 3};
    const int edge = edge_to(1);
    struct mesh_edge *e = &m->edges[edge];
    struct mesh_saved_edge good, bad, back;

    memset(&good, 0, sizeof(good));
    good.peer.index = 1;
    good.path_count = 2;
    for (uint8_t p = 0; p < 2; p++) {
        good.ports[p] = (uint16_t)(PORT_BASE + 5 + p);
        good.hop_counts[p] = 1;
        memcpy(good.hops[p][0], router, sizeof(router));
    }
    const uint8_t before = e->path_count;
    const uint16_t port = e->out[0].half.port;
    for (int what = 0; what < 5; what++) {
        bad = good;
        bad.path_count = what == 0 ? 0 : what == 1 ? m->config.path_limit + 1 : 2;
        bad.ports[1] = what == 2   ? PORT_BASE - 1
                       : what == 3 ? PORT_BASE + MESH_PORT_COUNT
                                   : bad.ports[1];
        bad.hop_counts[1] = what == 4 ? MESH_HOP_MAX + 1 : 1;
        mesh_restore_edge(m, now, &bad);
        assert_int_equal(e->path_count, before);
        assert_int_equal(e->out[0].half.port, port);
    }
    mesh_restore_edge(m, now, &good);
    assert_true(mesh_save_edge(m, edge, &back));
    assert_memory_equal(&back, &good, sizeof(good));
    assert_true(e->out[0].signature != 0 && e->out[0].signature == e->out[1].signature);
}

/* The result of the edge's search for ports 10 and 11: each over its own spine, as far as switches answered. */
static struct mesh_edge *learns(int edge, uint8_t answered, uint8_t reached)
{
    struct discovery *d = &m->nics[0].discovery;

    now.ns += NS_PER_S;
    *d = (struct discovery){.edge = edge,
                            .generation = m->edges[edge].generation,
                            .reached = reached,
                            .next = now,
                            .finish = now};
    for (uint8_t port = 10; port < 12; port++) {
        for (uint8_t hop = 0; hop < answered; hop++) {
            const uint8_t router[16] = {
                [10] = 0xff, [11] = 0xff, [12] = 10, [13] = hop, [14] = hop == 1 ? port : 1};
            d->hops[port][hop] = (uint16_t)mesh_router(m, router);
        }
    }
    discovery_tick(m, now, 0);
    return &m->edges[edge];
}

/* If switches answer rarely, lists end before the peer: such lists name no element. */
static void ways_end_where_the_peer_is(void **state)
{
    struct probe_observation o;
    const int edge = edge_to(1);
    struct mesh_edge *e = learns(edge, 1, 4);

    assert_int_equal(e->path_count, 4); /* it isn't known where ways differ */
    assert_int_equal(e->out[0].half.port, PORT_BASE);
    assert_int_equal(e->out[0].hop_count, 0);
    e = learns(edge, 2, 4);
    assert_int_equal(e->path_count, 2); /* the spines differ */
    assert_int_equal(e->out[0].hop_count, 3);
    assert_int_equal(e->out[0].hops[2], 0);
    e->out[0].half.state = PATH_ALIVE;
    e->out[0].half.heard = now;
    assert_false(digest_seen(m, now, edge, 0, &o));
    assert_false(mesh_ways_known(m, edge));
    e = learns(edge, 3, 0); /* the peer may be behind one more */
    assert_int_equal(e->out[0].hop_count, 4);
    e = learns(edge, 3, 4);
    assert_int_equal(e->out[0].hop_count, 3);
    e->out[0].half.heard = now;
    assert_true(digest_seen(m, now, edge, 0, &o));
    assert_true(mesh_ways_known(m, edge));
}

/* A path takes another port: losses and delays of its former port don't count for the way that it takes now. */
static void a_new_port_has_no_past(void **state)
{
    struct probe_observation o;
    const int edge = edge_to(1);
    struct mesh_edge *e = &m->edges[edge];

    for (uint8_t p = 0; p < 4; p++) {
        e->out[p].half.state = p == 0 ? PATH_SUSPECT : PATH_ALIVE;
        e->out[p].half.heard = now;
        e->out[p].seq_next = 100;
        e->out[p].acked = 98;
        e->out[p].acked_any = true;
    }
    learns(edge, 3, 4);
    assert_int_equal(e->path_count, 2);
    assert_int_equal(e->out[0].half.state, PATH_UNKNOWN);
    for (uint8_t p = 0; p < 2; p++) {
        assert_int_equal(e->out[p].half.heard.ns, MONO_NEVER.ns);
        assert_int_equal(e->out[p].acked, 99); /* nor do answers to its earlier packets */
        assert_false(digest_seen(m, now, edge, p, &o));
    }
    verdict_ack(m, now, edge, 1);
    assert_true(digest_seen(m, now, edge, 1, &o));
    assert_int_equal(o.lost, 0);
    const struct mono moved = now;
    now.ns += NS_PER_S;
    path_half_move(m, now, edge, 0, DIRECTION_OUT, PATH_PROVEN, 6);
    assert_int_equal(e->out[0].half.since.ns, moved.ns);
    assert_true(digest_seen(m, now, edge, 0, &o));
    assert_int_equal(o.lost, 5);
    assert_int_equal(o.age_ms, 1000);
}

/* Slow is a verdict of this end alone: the way back, and others' ways to this NIC, keep their delays. */
static void feed(uint8_t path, uint32_t peer, enum finding_direction direction, int64_t owd_ns)
{
    mesh_watch_delay(m, now, edge_to(peer), path, direction, owd_ns, 100);
}

static uint32_t slow_verdicts(int64_t shift_ns, int64_t back_ns, int64_t others_ns,
                              uint32_t *ret_pace)
{
    struct mesh_verdict v;
    uint32_t slow = 0;

    *ret_pace = 0;
    for (int tick = 0; tick < 1200; tick++) {
        now.ns += 50 * NS_PER_MS;
        const bool shifted = tick >= 600 && tick < 900;
        for (uint32_t peer = 1; peer < 4; peer++) {
            for (uint8_t path = 0; path < 4; path++) {
                struct mesh_edge *e = &m->edges[edge_to(peer)];
                e->path_count = 4;
                e->in[path].half.state = e->out[path].half.state = PATH_ALIVE;
                const bool is = shifted && peer == 1 && path == 0;
                const int64_t noise = (tick * 7 + path) % 5;
                feed(path, peer, DIRECTION_IN,
                     5000 + noise +
                         (is                    ? shift_ns
                          : shifted && peer > 1 ? others_ns
                                                : 0));
                feed(path, peer, DIRECTION_OUT,
                     5000 + noise + (shifted && peer == 1 ? back_ns : 0));
            }
        }
        while (mesh_next_verdict(m, &v)) {
            slow += v.kind == MESH_PATH_SLOW && v.direction == DIRECTION_IN && v.path == 0;
            *ret_pace += v.kind == MESH_PATH_PACE;
            assert_true(v.kind != MESH_PATH_SLOW ||
                        (v.after_ns - v.before_ns > shift_ns / 2 && v.bound_ns == 100));
        }
    }
    return slow;
}

static void one_slow_path_is_told_and_its_end(void **state)
{
    uint32_t pace;

    assert_int_equal(slow_verdicts(40000, 0, 0, &pace), 1);
    assert_int_equal(pace, 1);
}

static void what_the_way_back_or_others_share_is_not_the_path(void **state)
{
    uint32_t pace;

    assert_int_equal(slow_verdicts(40000, 20000, 0, &pace), 0);
    end(NULL);
    begin(NULL);
    assert_int_equal(slow_verdicts(40000, 0, 20000, &pace), 0);
    end(NULL);
    begin(NULL);
    assert_int_equal(slow_verdicts(40000, 5000, 5000, &pace), 1); /* less than a quarter */
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        T(the_least_hop_limit_that_reached_the_peer_counts),
        T(a_hop_counts_where_it_was_asked),
        T(a_reroute_is_news_of_the_ways_beside_it),
        T(ways_end_where_the_peer_is),
        T(a_new_port_has_no_past),
        T(what_is_saved_wrong_is_not_taken),
        T(one_slow_path_is_told_and_its_end),
        T(what_the_way_back_or_others_share_is_not_the_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
