/* A node's clocks without a world: NICs' clocks, read by brackets; missing stamps; which neighbours are asked about which
 * member. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/clock/clock_private.h"
#include "node_kit.h"

/* ---- NICs with clocks of their own ---- */

/* NICs 0 and 1 each have a clock, 5 s and 7 s behind the host's. */
static struct node_config hardware(void)
{
    struct node_config c = kit_config();
    c.nics[0].stamps = c.nics[1].stamps = STAMP_HARDWARE;
    c.nics[0].domain = 1;
    c.nics[1].domain = 2;
    c.wall_minus_ns = 1795000000LL * NS_PER_S;
    return c;
}

static void read_nic(uint32_t local)
{
    const struct node_bracket b = {.before = {now.ns},
                                   .nic = {now.ns - (local == 0 ? 5 : 7) * NS_PER_S},
                                   .after = {now.ns + 1000},
                                   .local = local};
    node_on_bracket(node, now, &b);
    kit_check();
}

static uint32_t clock_edges(uint32_t member)
{
    struct node_edge e;
    uint32_t count = 0;

    for (uint32_t i = 0; i < node_edge_count(node); i++) {
        count += node_edge_get(node, i, now, &e) && e.member == member && e.member_edge < 1000;
    }
    return count;
}

static void a_nics_clock_begins_when_it_is_read(void **state)
{
    const struct node_config c = hardware();
    struct nic_time at;

    kit_start_with(&c);
    assert_int_equal(node_member_count(node), 2);
    assert_int_equal(node_host_member(node), UINT32_MAX);
    assert_null(node_member_clock(node, 0));
    assert_false(node_member_time(node, 0, now, &at));
    assert_int_equal(clock_edges(0), 0);
    kit_tick();
    read_nic(0);
    assert_non_null(node_member_clock(node, 0));
    assert_null(node_member_clock(node, 1));
    assert_true(clock_edges(0) > 0);
    assert_int_equal(clock_edges(1), 0);
    assert_true(node_member_time(node, 0, now, &at));
    assert_in_range(at.ns - (now.ns - 5 * NS_PER_S) + 2000, 0, 4000);
    const uint32_t before = clock_edges(0);
    read_nic(1);
    assert_non_null(node_member_clock(node, 1));
    assert_int_equal(clock_edges(0), before);
    assert_int_equal(clock_edges(1), before);
    assert_null(node_member_clock(node, 2));
}

static uint32_t edges_in_clock(uint32_t member)
{
    const struct clock *clock = node_member_clock(node, member);
    uint32_t count = 0;

    for (int i = 0; i < clock->capacity; i++) {
        count += clock->edges[i].used;
    }
    return count;
}

/* After a suspend the time of a NIC's clock is unknown. Edges that are removed meanwhile are removed from it. New edges reach it
 * once it is read. */
static void edges_change_while_a_nics_time_is_unknown(void **state)
{
    const struct node_clock_fact suspended = {.kind = CLOCK_FACT_SUSPENDED};
    const struct node_config c = hardware();
    struct mesh_fleet fewer = c.fleet;
    struct nic_time at;

    fewer.peer_count -= KIT_NICS;
    kit_start_with(&c);
    kit_tick();
    read_nic(0);
    const uint32_t before = clock_edges(0);
    assert_int_equal(edges_in_clock(0), before);
    node_on_clock_fact(node, now, &suspended);
    assert_false(node_member_time(node, 0, now, &at));
    assert_int_equal(node_on_peers(node, now, &fewer), 0);
    kit_tick();
    assert_true(clock_edges(0) < before);
    assert_int_equal(edges_in_clock(0), clock_edges(0));
    const uint32_t left = clock_edges(0);
    assert_int_equal(node_on_peers(node, now, &c.fleet), 0);
    kit_tick();
    assert_int_equal(clock_edges(0), left);
    now.ns += NS_PER_MS;
    read_nic(0);
    kit_tick();
    assert_int_equal(clock_edges(0), before);
    assert_int_equal(edges_in_clock(0), before);
}

/* The first proposal for fleet time is the wall clock's time, by whichever clock it comes. */
static void what_a_nics_clock_proposes_is_the_wall(void **state)
{
    const struct node_config c = hardware();
    struct clock_terms terms;

    kit_start_with(&c);
    for (int i = 0; i < 300; i++) {
        read_nic(0);
        read_nic(1);
        now.ns += 10 * NS_PER_MS;
        kit_tick();
    }
    for (uint32_t m = 0; m < 2; m++) {
        clock_terms(node_member_clock(node, m), &terms);
        const int64_t proposed = terms.line.r.ns + terms.line.x_ns;
        const int64_t wall = terms.line.r.ns + (m == 0 ? 5 : 7) * NS_PER_S + c.wall_minus_ns;
        assert_in_range(proposed - wall + NS_PER_S, 0, 2 * NS_PER_S);
    }
    node_clock_page(node, &terms); /* it is alone: not in step with anybody */
    assert_int_not_equal(terms.status, CLOCK_SYNCED);
}

/* A member is ticked by its own clock. If that goes back, the member doesn't wait until the clock has caught up: it notices the
 * step. */
static void a_clock_that_goes_back_is_ticked_at_once(void **state)
{
    const struct node_config c = hardware();
    const struct clock *clock;
    struct nic_time at;

    kit_start_with(&c);
    for (int i = 0; i < 200; i++) {
        read_nic(0);
        now.ns += 10 * NS_PER_MS;
        kit_tick();
    }
    clock = node_member_clock(node, 0);
    assert_non_null(clock);
    assert_false(clock->fault_seen);
    for (int i = 0; i < 20; i++) {
        const struct node_bracket b = {
            .before = now, .nic = {now.ns - 6 * NS_PER_S}, .after = {now.ns + 1000}};
        node_on_bracket(node, now, &b);
        now.ns += 10 * NS_PER_MS;
        kit_tick();
    }
    assert_true(node_member_time(node, 0, now, &at));
    assert_in_range(at.ns - clock->ticked.ns, 0, 2 * CLOCK_TICK_NS);
    assert_true(clock->fault_seen && clock->fault == CLOCK_FAULT_STEP);
    (void)state;
}

/* Even a small step: its state and its readers' are void at once, not when the clock has caught up. */
static void a_hosts_clock_that_goes_back_a_little_is_seen_at_once(void **state)
{
    static const int64_t back_ns[] = {1000, 30 * NS_PER_MS, 90 * NS_PER_MS, 900 * NS_PER_MS};

    for (size_t i = 0; i < ARRAY_COUNT(back_ns); i++) {
        const struct node_config c = hardware();
        struct clock_terms terms;

        kit_start();
        for (int t = 0; t < 203; t++) {
            now.ns += 10 * NS_PER_MS;
            kit_tick();
        }
        const struct clock *clock = node_member_clock(node, 0);
        assert_non_null(clock);
        assert_false(clock->fault_seen);
        now.ns -= back_ns[i];
        kit_tick();
        assert_true(clock->fault_seen && clock->fault == CLOCK_FAULT_STEP);

        kit_start_with(&c); /* the NICs' clocks keep running, and keep their state */
        for (int t = 0; t < 203; t++) {
            read_nic(0);
            now.ns += 10 * NS_PER_MS;
            kit_tick();
        }
        clock = node_member_clock(node, 0);
        assert_non_null(clock);
        now.ns -= back_ns[i];
        kit_tick();
        node_clock_page(node, &terms);
        assert_int_equal(terms.status, CLOCK_UNKNOWN);
        assert_false(clock->fault_seen);
    }
    (void)state;
}

static void a_bracket_of_no_nic_or_no_clock_is_nothing(void **state)
{
    kit_start();
    read_nic(0); /* software stamps: the host's clock */
    const struct node_bracket nowhere = {.before = now, .after = now, .local = KIT_NICS};
    node_on_bracket(node, now, &nowhere);
    assert_int_equal(node_member_count(node), 1);
    assert_int_equal(node_host_member(node), 0);
    struct nic_time at;
    assert_true(node_member_time(node, 0, now, &at));
    assert_int_equal(at.ns, now.ns);
    assert_true(clock_edges(0) > 0);
}

/* UTC comes by the host's clock. It is kept in terms of the NIC's clock, as exactly as brackets connect the two. The host's clock
 * may have stepped since the last bracket, so the next one is needed. */
static void a_nics_clock_learns_utc_by_the_next_bracket(void **state)
{
    const struct node_config c = hardware();
    const int64_t step = 442 * NS_PER_MS;

    kit_start_with(&c);
    read_nic(0);
    now.ns += 100 * NS_PER_MS;
    read_nic(0);
    const struct clock *clock = node_member_clock(node, 0);
    struct node_anchor a = {.at = now, .utc_ns = 1795 * NS_PER_S, .bound_ns = 1000, .trusted = 1};
    node_on_anchor(node, now, &a);
    assert_false(clock->own_utc_known);
    now.ns += 100 * NS_PER_MS;
    read_nic(0);
    assert_true(clock->own_utc_known);
    assert_true(clock->own_utc_ns == a.utc_ns);
    assert_in_range(clock->own_utc_at.ns - (a.at.ns - 5 * NS_PER_S) + 2000, 0, 4000);
    assert_in_range((int64_t)clock->own_utc_bound_ns, 1000 + 500, 1000 + 500000);
    assert_null(node_member_clock(node, 1)); /* not read yet: it has no clock to learn with */

    now.ns += step;
    a = (struct node_anchor){
        .at = now, .utc_ns = a.utc_ns + NS_PER_S, .bound_ns = 1000, .trusted = 1};
    node_on_anchor(node, now, &a);
    const struct node_bracket b = {
        .before = now, .nic = {now.ns - step - 5 * NS_PER_S}, .after = {now.ns + 1000}};
    node_on_bracket(node, now, &b);
    kit_check();
    assert_true(clock->own_utc_ns == 1795 * NS_PER_S); /* the stepped clock's UTC is void */
}

/* A member is identified by the lowest NIC that its clock stamps. A peer's is identified by the first NIC of its host, or by each
 * NIC. */
static void members_are_numbered_by_their_lowest_nic(void **state)
{
    struct node_config c = kit_config();
    const struct node_nic first = c.nics[0];

    c.nics[0] = c.nics[1]; /* in another order than in the list */
    c.nics[1] = first;
    kit_start_with(&c);
    assert_int_equal(node->members[0].number, 0);
    for (uint32_t i = 0; i < node_edge_count(node); i++) {
        struct node_edge e;
        if (node_edge_get(node, i, now, &e)) {
            assert_int_equal(node->links[i].peer,
                             e.host.index * KIT_NICS); /* software: the host's */
        }
    }
    c = hardware();
    kit_start_with(&c);
    assert_int_equal(node->members[1].number, 1);
    read_nic(0);
    for (uint32_t i = 0; i < node_edge_count(node); i++) {
        struct node_edge e;
        if (node_edge_get(node, i, now, &e) && e.member == 0) {
            assert_int_equal(node->links[i].peer, e.peer.index);
        }
    }
}

/* The clock gets each edge with its member, its distance, and whether UTC may come from there. */
static void an_edge_is_told_with_what_the_list_has(void **state)
{
    static struct mesh_peer peers[KIT_PEERS];
    struct node_config c = kit_config();

    memcpy(peers, c.fleet.peers, sizeof(peers));
    for (uint32_t i = 0; i < KIT_PEERS; i++) {
        peers[i].leaf =
            (uint16_t)(i == 5 || i == 7 ? 3 : i / 4); /* host 2 and 3: rail 1 elsewhere */
        peers[i].anchor = peers[i].host.index == 2;
    }
    c.fleet.peers = peers;
    c.delay_floor_ns = 123;
    kit_start_with(&c);
    const struct clock *clock = node_member_clock(node, 0);
    uint32_t told = 0;
    for (uint32_t i = 0; i < node_edge_count(node); i++) {
        struct node_edge e;
        if (!node_edge_get(node, i, now, &e)) {
            continue;
        }
        assert_int_equal(node->links[i].generation > 0, true);
        const struct clock_edge_config *k = &clock->edges[e.member_edge].config;
        const uint32_t peer = e.peer.index, own = e.local.index;
        assert_int_equal(k->peer, e.host.index * KIT_NICS);
        assert_int_equal(k->host, 1 + e.host.index * KIT_NICS);
        assert_int_equal(k->local_nic.index, own);
        assert_int_equal(k->peer_nic.index, peer);
        assert_int_equal(k->anchor, e.host.index == 2);
        assert_int_equal(k->delay_ns_min, 123);
        assert_true(k->chosen);
        assert_int_equal(k->distance, peers[peer].rail == peers[own].rail   ? 0
                                      : peers[peer].leaf == peers[own].leaf ? 1
                                                                            : 2);
        told++;
    }
    assert_true(told >= 6);
}

/* The saved state of NICs' clocks is used when they are first read. */
static void nic_clocks_are_restored_when_they_are_read(void **state)
{
    static uint8_t bytes[1 << 19];
    struct node_config c = hardware();

    kit_start_with(&c);
    for (int i = 0; i < 50; i++) {
        read_nic(0);
        read_nic(1);
        now.ns += 10 * NS_PER_MS;
        kit_tick();
    }
    const size_t size = node_saved_size(node);
    assert_in_range(size, 1, sizeof(bytes));
    node_save(node, now, bytes);
    const struct mono later = now;
    kit_start_with(&c);
    now = later;
    assert_int_equal(node_restore(node, now, bytes, size), 0); /* they may follow */
    assert_non_null(node->saved);
    read_nic(0);
    assert_non_null(node_member_clock(node, 0));
}

/* ---- content of packets ---- */

static void packets_carry_the_clock_that_stamps_them(void **state)
{
    const struct node_config c = hardware();
    struct node_action a;
    unsigned seen[KIT_NICS] = {0};

    kit_start_with(&c);
    for (int i = 0; i < 200; i++) {
        now = node_deadline(node);
        read_nic(0);
        node_tick(node, now);
        while (node_next_action(node, &a)) {
            if (a.kind == NODE_SEND) {
                const struct probe *p = &a.send.probe;
                assert_true(p->hardware);
                assert_int_equal(p->src.index, a.send.local);
                assert_int_equal(p->anchor.nic.index, NIC_NONE.index);
                seen[a.send.local]++;
                if (a.send.local == 1) { /* never read: cold, no timeline */
                    assert_int_equal(p->h_ns, UINT32_MAX);
                    assert_int_equal(p->timeline, 0);
                }
            }
        }
    }
    assert_true(seen[0] > 0 && seen[1] > 0);
    kit_start();
    while (node_next_action(node, &a)) {
        assert_true(a.kind != NODE_SEND || !a.send.probe.hardware);
    }
}

/* Each field that a member publishes, in the packet. */
static void a_header_is_what_the_member_published(void **state)
{
    struct probe p = {0};

    kit_start();
    node->members[0].published = (struct clock_published){
        .phase = CLOCK_TRACK,
        .settled = true,
        .core = true,
        .timeline = 0x1234500007,
        .epoch = 77,
        .timeline_age_s = 88,
        .map = {.r = {1001}, .x_ns = -2002, .x_fraction = 0.25, .y = 1e-6},
        .map_seq = 99,
        .line_minus_map_ns = -1.5,
        .sqrt_p_ns = 12.34,
        .scale_ns = 1e9,
        .h_ns = 4242,
        .anchor = {.member = 5, .bound_ns = 6, .utc_minus_ns = -7, .age_ms = 8}};
    node_clock_fill(node, 0, &p);
    assert_int_equal(p.state, CLOCK_TRACK);
    assert_true(p.settled && p.core && !p.tight && !p.hardware);
    assert_int_equal(p.timeline, 0x1234500007);
    assert_int_equal(p.epoch, 77);
    assert_int_equal(p.timeline_age_s, 88);
    assert_int_equal(p.map.map.r, 1001);
    assert_int_equal(p.map.map.x, -2002);
    assert_int_equal(p.map.map.x_fraction, 1U << 30);
    assert_int_equal(p.map.map.y, (int64_t)(1e-6 * (double)LINEAR_MAP_Y_ONE));
    assert_int_equal(p.map.seq, 99);
    assert_int_equal(p.map.line_minus_map, -24);
    assert_int_equal(p.sqrt_p00, 123);
    assert_int_equal(p.scale, UINT16_MAX);
    assert_int_equal(p.h_ns, 4242);
    assert_int_equal(p.anchor.nic.index, 5);
    assert_int_equal(p.anchor.bound_ns, 6);
    assert_int_equal(p.anchor.utc_minus_fleet_ns, -7);
    assert_int_equal(p.anchor.age_ms, 8);
    node->members[0].published.tight = true;
    node->members[0].published.scale_ns = -1;
    node->members[0].published.sqrt_p_ns = 0.05; /* the step is a tenth: rounded */
    node->members[0].published.line_minus_map_ns = 1e9;
    node->members[0].published.anchor.member = FLEET_NIC_MAX; /* none */
    node_clock_fill(node, 1, &p);
    assert_true(p.tight);
    assert_int_equal(p.scale, 0);
    assert_int_equal(p.sqrt_p00, 1);
    assert_int_equal(p.map.line_minus_map, PROBE_LINE_MAX);
    assert_int_equal(p.anchor.nic.index, NIC_NONE.index);
    node->members[0].published.line_minus_map_ns = -1e9;
    node_clock_fill(node, 1, &p);
    assert_int_equal(p.map.line_minus_map, -PROBE_LINE_MAX);
}

/* ---- stamps ---- */

static uint32_t stamps_off_ns; /* error of each stamp */
/* Runs ten seconds. Of the sent packets each `every`th has no stamp (0: none). Returns the number of findings. */
static unsigned ten_seconds(unsigned every, struct finding *ret)
{
    const int64_t end = now.ns + 10 * NS_PER_S;
    struct node_action a;
    unsigned sent[KIT_NICS] = {0}, told = 0;

    while (now.ns < end) {
        now.ns += 5 * NS_PER_MS;
        node_tick(node, now);
        while (node_next_action(node, &a)) {
            if (a.kind == NODE_FINDING && a.finding.kind == FINDING_STAMPS_MISSING) {
                *ret = a.finding;
                told++;
            }
            if (a.kind == NODE_SEND) {
                const bool none =
                    every > 0 && sent[a.send.local]++ % every == 0 && a.send.local == 0;
                const struct node_transmit t = {.token = a.send.token,
                                                .local = a.send.local,
                                                .tx = {now.ns},
                                                .outcome =
                                                    none ? TRANSMIT_NO_STAMP : TRANSMIT_STAMPED,
                                                .error_ns = stamps_off_ns,
                                                .stamps = STAMP_SOFTWARE};
                node_on_transmit(node, now, &t);
            }
        }
    }
    return told;
}

static void a_nic_without_stamps_is_told_and_over_when_they_come(void **state)
{
    struct finding f;

    kit_start();
    assert_int_equal(ten_seconds(0, &f), 0);
    assert_int_equal(ten_seconds(20, &f), 0); /* one in twenty */
    assert_int_equal(ten_seconds(3, &f), 1);
    assert_int_equal(f.phase, FINDING_OPENED);
    assert_int_equal(f.from.index, 0);
    assert_int_equal(f.advice, ADVICE_CHECK_DRIVER);
    assert_in_range(f.numbers[1], 2 * f.numbers[0],
                    4 * f.numbers[0]); /* of these ten seconds alone */
    const int64_t all = f.numbers[1];
    assert_int_equal(ten_seconds(3, &f), 0); /* it is open; its numbers are those of the last ten */
    assert_in_range(node_finding_get(node, 0)->numbers[1], all - all / 10, all + all / 10);
    assert_int_equal(ten_seconds(0, &f), 1);
    assert_int_equal(f.phase, FINDING_CLOSED);
}

/* A clock source that is slow to read, as in some virtual machines: no fleet time, and the reason is reported. */
static void stamps_that_are_too_rough_are_told(void **state)
{
    struct finding f;

    kit_start();
    assert_int_equal(ten_seconds(0, &f), 0);
    stamps_off_ns = 1001;
    assert_int_equal(ten_seconds(0, &f), 1);
    assert_int_equal(f.phase, FINDING_OPENED);
    assert_int_equal(f.from.index, NIC_NONE.index);
    assert_in_range(f.numbers[0], f.numbers[1] - f.numbers[1] / 20,
                    f.numbers[1]); /* some are on their way */
    assert_int_equal(f.numbers[2], 1000);
    assert_int_equal(f.advice, ADVICE_CHECK_SOURCE);
    stamps_off_ns = 1000;
    assert_int_equal(ten_seconds(0, &f), 1);
    assert_int_equal(f.phase, FINDING_CLOSED);
    stamps_off_ns = 0;
}

/* ---- neighbours that are asked ---- */

/* Other hosts that probe a member are asked about it: not this host, at most fifteen, and only listed ones. */
static void neighbours_of_the_member_are_asked(void **state)
{
    static struct mesh_peer many[120];
    struct node_config c = kit_config();

    for (uint32_t i = 0; i < ARRAY_COUNT(many); i++) {
        many[i] = (struct mesh_peer){.nic = {i}, .host = {i / 2}, .rail = (uint16_t)(i % 2)};
    }
    for (int big = 0; big < 2; big++) {
        if (big) {
            c.fleet.peers = many;
            c.fleet.peer_count = ARRAY_COUNT(many);
        }
        kit_start_with(&c);
        now.ns += NS_PER_S; /* and there is room to send */
        kit_tick();
        const uint32_t before = node->query_number;
        node_clock_ask(node, now, 0, 4);
        const uint32_t asked = node->query_number - before;
        assert_in_range(asked, 1, 15);
        uint64_t seen[2] = {0};
        for (uint32_t k = 1; k <= asked; k++) {
            const struct node_query *q = &node->queries[(before + k) % QUERY_MAX];
            assert_int_equal(q->number, before + k);
            assert_int_equal(q->subject.index, 4);
            assert_int_equal(q->about, 4);
            assert_int_equal(q->at.ns, now.ns);
            assert_true(q->asked.index >= 2 && q->asked.index < c.fleet.peer_count);
            assert_int_equal(seen[q->asked.index / 64] >> q->asked.index % 64 & 1, 0);
            seen[q->asked.index / 64] |= 1ULL << q->asked.index % 64;
            assert_false(q->triangle);
        }
        node_clock_ask(node, now, 0, 1 << 19); /* not in the list */
        assert_int_equal(node->query_number - before, asked);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, kit_end)
    const struct CMUnitTest tests[] = {
        T(a_nics_clock_begins_when_it_is_read),
        T(what_a_nics_clock_proposes_is_the_wall),
        T(a_clock_that_goes_back_is_ticked_at_once),
        T(a_hosts_clock_that_goes_back_a_little_is_seen_at_once),
        T(edges_change_while_a_nics_time_is_unknown),
        T(a_nics_clock_learns_utc_by_the_next_bracket),
        T(a_bracket_of_no_nic_or_no_clock_is_nothing),
        T(members_are_numbered_by_their_lowest_nic),
        T(an_edge_is_told_with_what_the_list_has),
        T(nic_clocks_are_restored_when_they_are_read),
        T(packets_carry_the_clock_that_stamps_them),
        T(a_header_is_what_the_member_published),
        T(a_nic_without_stamps_is_told_and_over_when_they_come),
        T(stamps_that_are_too_rough_are_told),
        T(neighbours_of_the_member_are_asked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
