/* What proves a black hole, and what doesn't: queues that drop and delay, peers that restart. Meshes alone, connected to each
 * other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/fleet/locate.h"
#include "core/mesh/internal.h"

#define SIDES    3
#define FLIGHTS  65536
#define PATHS    4
#define ABOUT_MS 20 /* delay of everything */

struct flight {
    int64_t at;
    uint32_t to;
    int64_t delay;
    struct mesh_send send;
};
struct wire {
    struct mesh *meshes[SIDES];
    struct mesh_peer peers[SIDES];
    struct prng prng;
    int64_t now;
    struct flight *flights;
    uint32_t count;
    /* of packets from side 0 to side 1 */
    double loss[PATHS], full; /* a queue that is full for 40 ms, for this share of the time */
    int64_t single_delay[PATHS], delay[PATHS];
    bool cut;             /* side 0's link */
    bool timed;           /* side 1 gets the delay of each packet from side 0 */
    uint32_t dead[SIDES]; /* verdicts of each side, direction in */
    int64_t dead_at;
};
static struct wire w;

static void side_start(uint32_t side, uint64_t seed)
{
    const struct mesh_config config = {.nic_count = 1,
                                       .nics = {{side}},
                                       .fleet = {.seed = 1, .peers = w.peers, .peer_count = SIDES},
                                       .seed = seed,
                                       .port_base = 7000,
                                       .edge_limit = 8,
                                       .ring_peers = 4,
                                       .full_limit = 6,
                                       .path_limit = PATHS,
                                       .no_discovery = true,
                                       .interval = span_ms(100),
                                       .grid = span_ms(5),
                                       .late = span_ms(50)};

    mesh_free(w.meshes[side]);
    w.meshes[side] = mesh_new(&config, (struct mono){w.now});
    assert_non_null(w.meshes[side]);
}

static void wire_start(uint64_t seed)
{
    memset(&w, 0, sizeof(w));
    w.now = NS_PER_S;
    w.flights = calloc(FLIGHTS, sizeof(*w.flights));
    assert_non_null(w.flights);
    prng_init(&w.prng, seed);
    for (uint32_t i = 0; i < SIDES; i++) {
        w.peers[i] = (struct mesh_peer){.nic = {i}, .host = {i}, .leaf = LEAF_UNKNOWN};
    }
    for (uint32_t i = 0; i < SIDES; i++) {
        side_start(i, hash_u64(seed, i));
    }
}

static void wire_done(void)
{
    for (uint32_t i = 0; i < SIDES; i++) {
        mesh_free(w.meshes[i]);
    }
    free(w.flights);
}

static bool dropped(uint32_t from, const struct mesh_send *send)
{
    const uint32_t way = send->source_port % PATHS;
    const uint64_t turn = hash_u64((uint64_t)(w.now / (40 * NS_PER_MS)), way);

    if (from != 0 || send->peer.index != 1) {
        return false;
    }
    return prng_uniform(&w.prng) < w.loss[way] || (double)(turn >> 11) * 0x1p-53 < w.full;
}

static void side_send(uint32_t side)
{
    struct mesh_send send;
    int edge;

    while (mesh_next_send(w.meshes[side], (struct mono){w.now}, &send, &edge)) {
        const uint32_t way = send.source_port % PATHS;
        int64_t delay = ABOUT_MS * NS_PER_MS / 10;

        mesh_on_transmit(w.meshes[side], (struct mono){w.now}, send.token, 0,
                         (struct nic_time){w.now}, false);
        if ((w.cut && (side == 0 || send.peer.index == 0)) || dropped(side, &send)) {
            continue;
        }
        if (side == 0 && send.peer.index == 1) {
            delay += w.delay[way] + (send.net_class == NODE_CLASS_JOB ? w.single_delay[way] : 0);
        }
        assert_true(w.count < FLIGHTS);
        w.flights[w.count++] = (struct flight){w.now + delay, send.peer.index, delay, send};
    }
}

static void side_verdicts(uint32_t side)
{
    struct mesh_verdict v;

    while (mesh_next_verdict(w.meshes[side], &v)) {
        if (v.kind == MESH_PATH_STATE && v.state == PATH_DEAD && v.direction == DIRECTION_IN) {
            w.dead[side]++;
            w.dead_at = w.now;
        }
    }
}

static void deliver(void)
{
    for (uint32_t i = 0; i < w.count; i++) {
        const struct flight f = w.flights[i];
        struct mesh_heard heard;

        if (f.at > w.now) {
            continue;
        }
        w.flights[i--] = w.flights[--w.count];
        mesh_on_receive(w.meshes[f.to], (struct mono){w.now}, 0, f.send.source_port, true,
                        (struct nic_time){f.at}, &f.send.probe, &heard);
        if (w.timed && f.to == 1 && f.send.probe.src.index == 0 && heard.edge >= 0) {
            mesh_on_delay(w.meshes[1], (struct mono){w.now}, heard.edge, f.send.probe.path,
                          DIRECTION_IN, DELAY_OF_PAIR, f.delay);
        }
    }
}

static void run(int64_t ns)
{
    for (const int64_t end = w.now + ns; w.now < end; w.now += 5 * NS_PER_MS) {
        deliver();
        for (uint32_t i = 0; i < SIDES; i++) {
            mesh_tick(w.meshes[i], (struct mono){w.now});
            side_send(i);
            side_verdicts(i);
        }
    }
}

static void a_hole_is_proven_soon_where_nothing_else_is_lost(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        wire_start(seed);
        run(5 * NS_PER_S + (int64_t)seed * 37 * NS_PER_MS);
        const int64_t from = w.now;
        w.loss[2] = 1;
        run(2 * NS_PER_S);
        assert_int_equal(w.dead[1], 1);
        assert_int_equal(w.dead[0] + w.dead[2], 0);
        assert_in_range(w.dead_at - from, 1, 450 * NS_PER_MS);
        wire_done();
    }
}

/* A queue that drops 2 to 50 % of all packets, on one path or on all: it is no hole. A hole there is found nevertheless. */
static void a_queue_that_drops_is_no_hole(void **state)
{
    static const double losses[] = {0.02, 0.1, 0.3, 0.5};
    static const int64_t limit_ms[] = {1500, 2000, 4000, 7000};

    for (uint32_t i = 0; i < 8; i++) {
        wire_start(i + 1);
        run(3 * NS_PER_S);
        for (uint32_t p = 0; p < (i % 2 ? PATHS : 1); p++) {
            w.loss[p] = losses[i / 2];
        }
        run(60 * NS_PER_S);
        assert_int_equal(w.dead[0] + w.dead[1] + w.dead[2], 0);
        const int64_t from = w.now;
        w.loss[0] = 1;
        run(9 * NS_PER_S); /* bursts are few: with much loss the wait is longer */
        assert_int_equal(w.dead[1], 1);
        assert_in_range(w.dead_at - from, 1, limit_ms[i / 2] * NS_PER_MS);
        wire_done();
    }
}

/* All paths wait together now and then, so that the peer seems silent for a moment: what was missing before still is.
 */
static void a_hole_is_found_between_short_silences(void **state)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        int64_t from = 0;

        wire_start(seed);
        run(3 * NS_PER_S);
        for (int i = 0; i < 160; i++) {
            if (i == 100) {
                assert_int_equal(w.dead[0] + w.dead[1] + w.dead[2], 0);
                from = w.now;
            }
            for (uint32_t p = 0; p < PATHS; p++) {
                w.loss[p] = i >= 100 && p == 0 ? 1 : 0.08;
                w.delay[p] = i % 2 ? 80 * NS_PER_MS : 0;
            }
            run(150 * NS_PER_MS);
        }
        assert_int_equal(w.dead[1], 1);
        assert_in_range(w.dead_at - from, 1, 4000 * NS_PER_MS);
        wire_done();
    }
}

/* It fills and drains: losses come in runs. */
static void a_queue_that_fills_and_drains_is_no_hole(void **state)
{
    for (uint32_t i = 1; i <= 6; i++) {
        wire_start(i);
        run(3 * NS_PER_S);
        w.full = 0.05 * i;
        run(60 * NS_PER_S);
        assert_int_equal(w.dead[0] + w.dead[1] + w.dead[2], 0);
        wire_done();
    }
}

/* All ways of a load fill, and one of them overflows first: nothing was ever lost before, so the share is unknown. A hole that
 * begins then is found nevertheless. A hole without any waits beside it is found as soon as always. */
static void a_queue_that_begins_to_drop_is_no_hole(void **state)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        wire_start(seed);
        w.timed = true;
        run(5 * NS_PER_S + (int64_t)seed * 37 * NS_PER_MS);
        for (uint32_t p = 0; p < PATHS; p++) {
            w.delay[p] = 20 * NS_PER_MS;
        }
        run(40 * NS_PER_MS);
        w.loss[seed % PATHS] = 1;
        run(350 * NS_PER_MS);
        w.loss[seed % PATHS] = 0.5;
        run(5 * NS_PER_S);
        assert_int_equal(w.dead[0] + w.dead[1] + w.dead[2], 0);
        for (uint32_t p = 0; p < PATHS; p++) {
            w.delay[p] = 0;
            w.loss[p] = 0;
        }
        run(40 * NS_PER_S);
        const int64_t from = w.now;
        w.loss[2] = 1;
        run(2 * NS_PER_S);
        assert_int_equal(w.dead[1], 1);
        assert_in_range(w.dead_at - from, 1, 450 * NS_PER_MS);
        wire_done();
    }
}

/* Singles wait in the job's queue. Meanwhile the peer's agent restarts, and counts from another number. */
static void a_peer_that_begins_anew_has_no_hole(void **state)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        wire_start(seed);
        for (uint32_t p = 0; p < PATHS; p++) {
            w.single_delay[p] = (int64_t)(60 + 20 * p) * NS_PER_MS;
        }
        run(2 * NS_PER_S);
        for (uint32_t i = 0; i < 4; i++) {
            side_start(0, hash_u64(seed + 100, i));
            run(600 * NS_PER_MS + (int64_t)prng_below(&w.prng, 800) * NS_PER_MS);
        }
        assert_int_equal(w.dead[0] + w.dead[1] + w.dead[2], 0);
        const int64_t from = w.now;
        w.loss[3] = 1; /* and it isn't blind from then on */
        run(2 * NS_PER_S);
        assert_int_equal(w.dead[1], 1);
        assert_in_range(w.dead_at - from, 1, NS_PER_S);
        wire_done();
    }
}

/* ---- delays ---- */

/* Side 1 gets delays of its paths, 2.5 times a second: from side 0, from side 2, and back. */
static uint32_t tell_delays(double seconds, int64_t from_0, int64_t from_2, int64_t back)
{
    uint32_t slow = 0;
    const int edges[2] = {mesh_edge_find(w.meshes[1], 0, (struct nic_id){0}),
                          mesh_edge_find(w.meshes[1], 0, (struct nic_id){2})};

    for (const int64_t end = w.now + (int64_t)(seconds * 1e9); w.now < end;) {
        for (uint8_t p = 0; p < PATHS; p++) {
            const struct mono now = {w.now};
            const int64_t noise = (int64_t)prng_below(&w.prng, 100);
            struct mesh_verdict v;

            mesh_watch_delay(w.meshes[1], now, edges[0], p, DIRECTION_IN, 20000 + from_0 + noise,
                             50);
            mesh_watch_delay(w.meshes[1], now, edges[0], p, DIRECTION_OUT, 20000 + back + noise,
                             50);
            mesh_watch_delay(w.meshes[1], now, edges[1], p, DIRECTION_IN, 20000 + from_2 + noise,
                             50);
            while (mesh_next_verdict(w.meshes[1], &v)) {
                slow += v.kind == MESH_PATH_SLOW;
                assert_true(v.kind != MESH_PATH_SLOW ||
                            (v.direction == DIRECTION_IN && v.edge == edges[0]));
            }
        }
        for (uint32_t i = 0; i < 80; i++) {
            deliver();
            for (uint32_t side = 0; side < SIDES; side++) {
                mesh_tick(w.meshes[side], (struct mono){w.now});
                side_send(side);
            }
            w.now += 5 * NS_PER_MS;
        }
    }
    return slow;
}

/* A path is slow if its delay moved, and neither the way back nor others' ways did. */
static void only_a_path_is_slow(void **state)
{
    static const struct {
        int64_t from_0, from_2, back;
        uint32_t slow;
    } cases[] = {
        {50000, 0, 0, PATHS},      /* that way */
        {50000, 0, 50000, 0},      /* a queue at the sender, whose clock took half of it for time */
        {50000, 0, -50000, 0},     /* the sender's clock */
        {50000, 50000, -50000, 0}, /* its own clock */
        {50000, 50000, 0, 0},      /* a queue at its own port */
        {-50000, 0, 0, 0},
    };

    for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        wire_start(i + 1);
        run(3 * NS_PER_S);
        assert_int_equal(tell_delays(20, 0, 0, 0), 0);
        const uint32_t slow = tell_delays(8, cases[i].from_0, cases[i].from_2, cases[i].back);
        if (slow != cases[i].slow) {
            printf("case %u: %u\n", i, slow);
        }
        assert_int_equal(slow, cases[i].slow);
        wire_done();
    }
}

/* After a cable was cut: earlier measurements don't count as present ones. */
static void what_nobody_hears_has_no_delay(void **state)
{
    struct path_report report;

    wire_start(1);
    run(3 * NS_PER_S);
    int edge = mesh_edge_find(w.meshes[1], 0, (struct nic_id){0});
    for (int i = 0; i < 60; i++) {
        mesh_on_delay(w.meshes[1], (struct mono){w.now}, edge, 0, DIRECTION_IN, DELAY_OF_PAIR,
                      20000);
        run(200 * NS_PER_MS);
    }
    assert_true(
        mesh_path_report(w.meshes[1], (struct mono){w.now}, edge, 0, DIRECTION_IN, &report));
    assert_int_equal(report.owd_ns_p50, 20000);
    assert_true(report.owd_count > 0 && report.sent_recent > 0);
    w.cut = true;
    for (int s = 5; s <= 65; s += 5) {
        const struct mono now = {w.now + 5 * NS_PER_S};
        struct path_report brief;

        run(5 * NS_PER_S);
        assert_true(mesh_path_report(w.meshes[1], now, edge, 0, DIRECTION_IN, &report));
        assert_true(mesh_path_brief(w.meshes[1], now, edge, 0, DIRECTION_IN, &brief));
        assert_int_equal(report.owd_ns_p50 == INT64_MIN, brief.owd_ns_p50 == INT64_MIN);
        assert_int_equal(report.owd_ns_p50 == INT64_MIN, report.owd_count == 0);
        assert_true(s > 5 || report.owd_ns_p50 == 20000);
        assert_true(s < 20 || (report.owd_ns_p50 == INT64_MIN && report.owd_ns_p99 == INT64_MIN &&
                               report.owd_ns_last == INT64_MIN && report.job_ns_p50 == INT64_MIN));
        assert_true(s < 60 || report.sent_recent == 0);
    }
    wire_done();
}

/* From now on the peer sends from another port: losses and delays of its old way don't count for the new one. */
static void what_comes_another_way_has_no_past(void **state)
{
    struct path_report r;

    wire_start(6);
    run(3 * NS_PER_S);
    w.timed = true;
    w.loss[1] = 0.3;
    run(20 * NS_PER_S);
    w.loss[1] = 0;
    const int to = mesh_edge_find(w.meshes[0], 0, (struct nic_id){1}),
              edge = mesh_edge_find(w.meshes[1], 0, (struct nic_id){0});
    assert_true(mesh_path_report(w.meshes[1], (struct mono){w.now}, edge, 1, DIRECTION_IN, &r));
    assert_true(r.lost_recent > 10 && r.owd_ns_min == ABOUT_MS * NS_PER_MS / 10);
    w.meshes[0]->edges[to].out[1].half.port += PATHS;
    w.delay[1] = 5 * NS_PER_MS;
    run(2 * NS_PER_S);
    assert_true(mesh_path_report(w.meshes[1], (struct mono){w.now}, edge, 1, DIRECTION_IN, &r));
    assert_int_equal(r.state, PATH_ALIVE);
    assert_int_equal(r.lost_recent, 0);
    assert_true(r.sent_recent > 5);
    assert_true(r.owd_ns_min > 5 * NS_PER_MS);
    wire_done();
}

/* Two ways from NIC 0 to NIC 1, each over a spine. The second one loses so many in ten. */
static void tell_ways(struct locate *l, uint32_t first, uint32_t count, uint32_t tenths)
{
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t p = 0; p < 8; p++) {
            locate_on_trial(l, first + p, (struct mono){w.now}, p >= 4 && i % 10 < tenths);
        }
        w.now += LOCATE_PERIOD;
        mesh_tick(w.meshes[0], (struct mono){w.now});
    }
}

/* The finding of a link stays open until its end is reported, also when no path crosses it any more. */
static void a_fault_ends_when_its_paths_go_another_way(void **state)
{
    const uint32_t first = 6 * PATHS; /* of two edges that don't exist */
    struct mesh_fault f;
    uint32_t ends = 0;

    for (uint32_t k = 0; k < 3; k++) {
        wire_start(21 + k);
        run(NS_PER_S);
        struct locate *l = k == 0 ? w.meshes[0]->trials : w.meshes[0]->pairs[k - 1];
        while (mesh_next_fault(w.meshes[0], &f)) {
        }
        for (uint32_t p = 0; p < 8; p++) {
            const struct locate_route route = {.from_host = {0},
                                               .to_host = {1 + p % 4},
                                               .from = {0},
                                               .to = {1 + p % 4},
                                               .teller = {0},
                                               .box_count = 1,
                                               .boxes = {{100 + p / 4, ELEMENT_SPINE}}};
            locate_path_set(l, first + p, &route);
        }
        tell_ways(l, first, 400, k == 0 ? 5 : 9);
        assert_true(locate_case_count(l) > 0);
        for (uint32_t p = 4; p < 8; p++) {
            locate_path_clear(l, first + p);
        }
        tell_ways(l, first, 400, 0);
        assert_int_equal(locate_case_count(l), 0);
        for (ends = 0; mesh_next_fault(w.meshes[0], &f);) {
            ends += f.ended && f.narrow == (k > 0) && f.edge < 0;
        }
        assert_int_equal(ends, 1);
        wire_done();
    }
}

/* Nothing came for long: earlier losses are no losses of the last minute, neither then nor when packets come again. */
static void old_losses_are_not_recent(void **state)
{
    struct path_half half = {.recent_start = {NS_PER_S}};

    for (uint32_t i = 0; i < 100; i++) {
        path_half_trial(&half, (struct mono){NS_PER_S}, i % 2);
    }
    assert_int_equal(path_half_recent(&half, (struct mono){50 * NS_PER_S}).lost, 50);
    assert_int_equal(path_half_recent(&half, (struct mono){61 * NS_PER_S}).lost, 0);
    assert_int_equal(path_half_recent(&half, (struct mono){61 * NS_PER_S}).sent, 0);
    path_half_trial(&half, (struct mono){3600 * NS_PER_S}, false);
    assert_int_equal(path_half_recent(&half, (struct mono){3600 * NS_PER_S}).lost, 0);
    assert_int_equal(path_half_recent(&half, (struct mono){3600 * NS_PER_S}).sent, 1);
    assert_int_equal(half.lost, 50);
}

/* Packets that overtake each other are missing for a while. Neither count has any of them as lost. */
static void what_comes_late_was_not_lost(void **state)
{
    uint64_t reordered = 0;

    wire_start(4);
    run(2 * NS_PER_S);
    for (uint32_t i = 0; i < 20; i++) {
        for (uint32_t p = 0; p < PATHS; p++) {
            w.delay[p] = i % 2 ? 150 * NS_PER_MS : 0;
        }
        run(150 * NS_PER_MS);
    }
    run(NS_PER_S);
    const int edge = mesh_edge_find(w.meshes[1], 0, (struct nic_id){0});
    assert_true(edge >= 0);
    for (uint8_t p = 0; p < PATHS; p++) {
        struct path_report r;
        assert_true(mesh_path_brief(w.meshes[1], (struct mono){w.now}, edge, p, DIRECTION_IN, &r));
        reordered += r.reordered;
        assert_int_equal(r.lost, 0);
        assert_int_equal(r.lost_recent, 0);
    }
    assert_true(reordered > 0);
    wire_done();
}

static void proof_grows_with_loss(void **state)
{
    uint32_t packets = 0;

    for (double share = 0; share <= 1; share += 0.01) {
        const struct proof_wanted wanted = proof_wanted(share);

        assert_true(wanted.packets >= packets && wanted.packets >= PROOF_PACKETS);
        assert_in_range(wanted.time.ns, 0, 2 * NS_PER_S);
        packets = wanted.packets;
    }
    assert_int_equal(proof_wanted(0.004).packets, PROOF_PACKETS);
    assert_int_equal(proof_wanted(0.004).time.ns, 0);
    assert_int_equal(proof_wanted(0.5).packets, 30);                  /* 2^-30 < 1e-9 */
    assert_int_equal(proof_wanted(0.02).time.ns, 7 * PROOF_EPOCH_NS); /* 0.05^7 < 1e-9 */
    assert_int_equal(proof_wanted(0.5).time.ns, PROOF_EPOCHS * PROOF_EPOCH_NS);
}

/* If every tenth is lost, ten packets in a row are proof. But five pairs count as five, and so do five bursts. */
static void what_is_sent_together_is_lost_together(void **state)
{
    double pairs = 0, bursts = 0, alone = 0;

    for (int i = 0; i < 6; i++) {
        const int64_t since = i == 0 ? INT64_MAX : 200 * NS_PER_MS;
        pairs += proof_evidence(0.1, since) + proof_evidence(0.1, 10 * NS_PER_US);
        bursts += proof_evidence(0.1, since);
        for (int k = 0; k < 4; k++) {
            bursts += proof_evidence(0.1, 4 * NS_PER_MS);
        }
        alone += 2 * proof_evidence(0.1, since);
    }
    assert_true(pairs < PROOF_ENOUGH && bursts < PROOF_ENOUGH && alone > PROOF_ENOUGH);
    assert_true(proof_evidence(0.1, 0) == 0 && proof_evidence(0.1, -1) == 0);
    assert_true(proof_evidence(0, INT64_MAX) > proof_evidence(0.3, INT64_MAX));
}

static void shares_forget(void **state)
{
    struct loss_share share = {0};

    for (int64_t i = 0; i < 100; i++) {
        loss_share_add(&share, (struct mono){i * NS_PER_S / 10}, span_ms(1000), i % 4 == 0, 1);
    }
    assert_true(loss_share_get(&share) > 0.12 && loss_share_get(&share) < 0.3);
    for (int64_t i = 100; i < 200; i++) {
        loss_share_add(&share, (struct mono){i * NS_PER_S / 10}, span_ms(1000), 0, 1);
    }
    assert_true(loss_share_get(&share) < 0.001);
    loss_share_add(&share, (struct mono){0}, span_ms(1000), -5, 0);
    assert_true(loss_share_get(&share) == 0);
}

/* If a NIC loses its power, all paths die in one tick. */
static void all_paths_may_change_at_once(void **state)
{
    enum { NICS_ALL = 8, HOSTS_ALL = 29, EDGES = 28 };
    static struct mesh_peer peers[NICS_ALL * HOSTS_ALL];
    struct mesh_config config = {
        .nic_count = NICS_ALL,
        .fleet = {.seed = 1, .peers = peers, .peer_count = ARRAY_COUNT(peers)},
        .port_base = 7000,
        .edge_limit = EDGES,
        .ring_peers = EDGES - 4,
        .full_limit = 4,
        .path_limit = PATHS,
        .no_discovery = true,
        .interval = span_ms(100),
        .grid = span_ms(5),
        .late = span_ms(50)};
    const struct mono now = {NS_PER_S};
    struct mesh_counters counters;
    struct mesh_verdict v;
    uint32_t died = 0, told = 0;

    (void)state;
    for (uint32_t i = 0; i < ARRAY_COUNT(peers); i++) {
        peers[i] = (struct mesh_peer){.nic = {i}, .host = {i / NICS_ALL}, .leaf = LEAF_UNKNOWN};
    }
    for (uint32_t i = 0; i < NICS_ALL; i++) {
        config.nics[i] = (struct nic_id){i};
    }
    struct mesh *m = mesh_new(&config, now);
    assert_non_null(m);
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        for (uint8_t p = 0; m->edges[edge].used && p < PATHS; p++) {
            m->edges[edge].out[p].half.state = m->edges[edge].in[p].half.state = PATH_ALIVE;
            path_half_move(m, now, edge, p, DIRECTION_OUT, PATH_PROVEN, 6);
            path_half_move(m, now, edge, p, DIRECTION_IN, PATH_PROVEN, 6);
            died += 2;
        }
    }
    assert_true(died > 1000);
    while (mesh_next_verdict(m, &v)) {
        told += v.kind == MESH_PATH_STATE && v.state == PATH_DEAD;
    }
    assert_int_equal(told, died);
    mesh_counters_get(m, &counters);
    assert_int_equal(counters.verdicts_dropped, 0);
    mesh_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hole_is_proven_soon_where_nothing_else_is_lost),
        cmocka_unit_test(a_queue_that_drops_is_no_hole),
        cmocka_unit_test(a_hole_is_found_between_short_silences),
        cmocka_unit_test(a_queue_that_fills_and_drains_is_no_hole),
        cmocka_unit_test(a_queue_that_begins_to_drop_is_no_hole),
        cmocka_unit_test(a_peer_that_begins_anew_has_no_hole),
        cmocka_unit_test(only_a_path_is_slow),
        cmocka_unit_test(what_nobody_hears_has_no_delay),
        cmocka_unit_test(what_comes_another_way_has_no_past),
        cmocka_unit_test(a_fault_ends_when_its_paths_go_another_way),
        cmocka_unit_test(old_losses_are_not_recent),
        cmocka_unit_test(what_comes_late_was_not_lost),
        cmocka_unit_test(proof_grows_with_loss),
        cmocka_unit_test(what_is_sent_together_is_lost_together),
        cmocka_unit_test(shares_forget),
        cmocka_unit_test(all_paths_may_change_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
