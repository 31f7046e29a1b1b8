/* Digests: which hosts get them, how many, and what a host takes from others' digests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/mesh/internal.h"

#define PORT_BASE 7640
#define HOSTS     5
#define NICS      2
#define SPINES    2

static struct mesh *m;
static struct mono now;
static struct mesh_peer peers[HOSTS * NICS];
static struct mesh_router routers[2 + SPINES];

/* Hosts 0 and 1 are at leaf 0, the others at leaf 1. */
static uint32_t leaf_of(uint32_t nic)
{
    return nic / NICS / 2 > 0;
}

static int begin(void **state)
{
    now = (struct mono){1000 * NS_PER_S};
    for (uint32_t i = 0; i < HOSTS * NICS; i++) {
        peers[i] = (struct mesh_peer){.nic = {i}, .host = {i / NICS}, .leaf = (uint16_t)leaf_of(i)};
    }
    for (uint32_t i = 0; i < 2 + SPINES; i++) {
        routers[i] = (struct mesh_router){.address = {10, (uint8_t)i},
                                          .place = i < 2 ? PLACE_LEAF : PLACE_SPINE,
                                          .number = i < 2 ? i : i - 2};
    }
    const struct mesh_config config = {.nic_count = NICS,
                                       .nics = {{0}, {1}},
                                       .fleet = {.seed = 7,
                                                 .peers = peers,
                                                 .peer_count = HOSTS * NICS,
                                                 .routers = routers,
                                                 .router_count = 2 + SPINES},
                                       .seed = 3,
                                       .port_base = PORT_BASE,
                                       .edge_limit = 28,
                                       .ring_peers = 16,
                                       .full_limit = 20,
                                       .path_limit = SPINES,
                                       .no_discovery = true,
                                       .interval = span_ms(100),
                                       .grid = span_ms(5),
                                       .late = span_ms(25)};
    m = mesh_new(&config, now);
    if (!m) {
        return 1;
    }
    for (int edge = 0; edge < m->edge_capacity; edge++) { /* all is well and known */
        struct mesh_edge *e = &m->edges[edge];

        e->fresh = true;
        e->version = PROBE_VERSION;
        e->heard = now;
        for (uint8_t p = 0; e->used && p < SPINES; p++) {
            struct path_out *out = &e->out[p];
            out->half.state = e->in[p].half.state = PATH_ALIVE;
            out->half.heard = e->in[p].half.heard = now;
            out->signature = hash_u64(p, leaf_of(e->nic.index)) | 1;
            out->hops[out->hop_count++] = (uint16_t)mesh_router(m, routers[0].address);
            if (leaf_of(e->nic.index) != 0) {
                out->hops[out->hop_count++] = (uint16_t)mesh_router(m, routers[2 + p].address);
                out->hops[out->hop_count++] = (uint16_t)mesh_router(m, routers[1].address);
            }
        }
    }
    return 0;
}

static int end(void **state)
{
    mesh_free(m);
    return 0;
}

/* Lets time pass while every working path is heard. */
static void pass(int64_t ns)
{
    now = mono_add(now, span_ns(ns));
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        struct mesh_edge *e = &m->edges[edge];

        e->heard = now;
        for (uint8_t p = 0; e->used && p < SPINES; p++) {
            e->out[p].half.heard = e->out[p].half.state == PATH_ALIVE ? now : e->out[p].half.heard;
        }
    }
}

/* Digests of one look, counted by receiving host. All other packets are dropped. */
static uint32_t digests(uint32_t to[static HOSTS], struct probe_digest *first)
{
    struct mesh_send send;
    uint32_t count = 0;
    int edge;

    memset(to, 0, HOSTS * sizeof(*to));
    digest_tick(m, now);
    while (mesh_next_send(m, now, &send, &edge)) {
        if (send.probe.type == PROBE_DIGEST) {
            assert_int_equal(send.probe.version, PROBE_VERSION_DIGEST);
            if (count++ == 0 && first) {
                *first = send.probe.digest;
            }
            to[send.peer.index / NICS]++;
        }
    }
    return count;
}

static int edge_to(uint32_t local, uint32_t nic)
{
    const int edge = mesh_edge_find(m, local, (struct nic_id){nic});
    assert_true(edge >= 0);
    return edge;
}

static void kill_path(uint32_t local, uint32_t nic, uint8_t path)
{
    path_half_move(m, now, edge_to(local, nic), path, DIRECTION_OUT, PATH_PROVEN, 6);
}

static void a_quiet_fleet_tells_nothing(void **state)
{
    uint32_t to[HOSTS];

    for (uint32_t i = 0; i < 100; i++) {
        pass(100 * NS_PER_MS);
        assert_int_equal(digests(to, NULL), 0);
    }
}

static void a_death_is_told_to_every_host_and_lost_ones_first(void **state)
{
    struct probe_digest first;
    struct probe_observation o;
    uint32_t to[HOSTS], rounds = 0;
    uint16_t at = 0;

    kill_path(0, 4, 1);
    pass(600 * NS_PER_MS);
    assert_true(digests(to, &first) > 0);
    assert_true(to[0] == 0 && to[1] > 0 && to[2] > to[1] && to[3] > 0); /* its own ways are added */
    assert_true(probe_digest_next(&first, &at, &o));
    while (first.count > 0 && o.lost == 0 && probe_digest_next(&first, &at, &o)) {
    }
    assert_true(o.to.index == 4 && o.path == 1 && o.lost == 3 && o.age_ms == 600 &&
                o.hop_count == 3);
    for (uint32_t i = 0; i < 100; i++) {
        pass(100 * NS_PER_MS);
        rounds += digests(to, NULL) > 0;
    }
    assert_in_range(rounds, 4, 7); /* one each half second, then it is known */
}

static void who_can_not_read_them_gets_none(void **state)
{
    uint32_t to[HOSTS];

    for (uint32_t nic = 4; nic < 6; nic++) {
        m->edges[edge_to(0, nic)].version = m->edges[edge_to(1, nic)].version =
            PROBE_VERSION_DIGEST - 1;
    }
    kill_path(0, 6, 1);
    pass(NS_PER_S);
    assert_true(digests(to, NULL) > 0);
    assert_true(to[2] == 0 && to[1] > 0 && to[3] > 0);
}

/* A question goes also to hosts that were never heard: older agents must be able to read it. */
static void a_question_is_asked_in_the_version_before(void **state)
{
    const struct probe_query query = {.subject = {4}, .number = 1};
    struct mesh_send send;
    int edge;

    m->nics[0].burst_credit = NS_PER_S;
    assert_true(mesh_query(m, 0, (struct nic_id){6}, &query, false));
    assert_true(mesh_next_send(m, now, &send, &edge));
    assert_int_equal(send.probe.type, PROBE_QUERY);
    assert_int_equal(send.probe.version, PROBE_VERSION - 1);
}

static void what_is_told_has_a_ceiling(void **state)
{
    uint32_t to[HOSTS], count = 0;

    for (uint32_t i = 0; i < 200; i++) { /* something dies all the time */
        const uint32_t nic = 2 + i % 6;
        struct path_half *half = &m->edges[edge_to(i % 2, nic)].out[i % SPINES].half;
        half->state = PATH_ALIVE;
        kill_path(i % 2, nic, (uint8_t)(i % SPINES));
        pass(100 * NS_PER_MS);
        count += digests(to, NULL);
    }
    assert_in_range(count, 200, NICS * (80 + 40 * 20));
}

/* ---- others' digests ---- */

static struct probe told_by(uint32_t host, const struct probe_observation *o)
{
    struct probe probe = {.type = PROBE_DIGEST,
                          .version = PROBE_VERSION,
                          .src = {host * NICS},
                          .dst = {0},
                          .digest = {.from = {host * NICS}}};
    assert_true(probe_digest_put(&probe.digest, o));
    return probe;
}

static struct probe_observation lost_one(uint32_t to)
{
    return (struct probe_observation){.to = {to},
                                      .path = 1,
                                      .lost = 4,
                                      .hop_count = 1,
                                      .age_ms = 800,
                                      .hops = {{router_name(PLACE_LEAF, 1, 0), PROBE_HOP_LEAF}}};
}

static uint32_t told_count(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < TOLD_MAX; i++) {
        count += digest_told(m, now, i) != NULL;
    }
    return count;
}

static bool hear(const struct probe *probe)
{
    return mesh_on_digest(m, now, 0, probe, now);
}

static void only_own_paths_of_a_known_host_count(void **state)
{
    const struct probe_observation o = lost_one(6);
    struct probe probe = told_by(2, &o);

    assert_true(hear(&probe));
    assert_int_equal(told_count(), 1);
    probe.digest.from.index = 2; /* a NIC of host 1 */
    assert_false(hear(&probe));
    probe = told_by(2, &o);
    probe.dst.index = 1; /* to another NIC: a replay */
    assert_false(hear(&probe));
    probe = told_by(2, &o);
    m->edges[edge_to(0, 4)].fresh = false; /* the sender doesn't know us: it may be a replay */
    assert_false(hear(&probe));
    assert_int_equal(m->counters.digests_refused, 3);
    m->edges[edge_to(0, 4)].fresh = true;
    struct probe_observation other = lost_one(5); /* from one of its NICs to another */
    probe = told_by(2, &other);
    (void)hear(&probe);
    other = lost_one(900); /* no member */
    probe = told_by(2, &other);
    (void)hear(&probe);
    other = lost_one(7);
    other.hops[0].name++; /* an unknown router */
    probe = told_by(2, &other);
    (void)hear(&probe);
    assert_int_equal(told_count(), 1);
}

static void an_older_digest_changes_nothing(void **state)
{
    const struct probe_observation o = lost_one(6);
    struct probe_observation well = o;

    well.lost = 0;
    const struct probe before = told_by(2, &o), after = told_by(2, &well);
    assert_true(mesh_on_digest(m, now, 0, &after, now) == false);
    const uint32_t version = m->told_version;
    assert_int_equal(digest_told(m, now, 0)->lost, 0);
    assert_false(mesh_on_digest(m, now, 0, &before, mono_add(now, span_ns(-1))));
    assert_false(mesh_on_digest(m, now, 0, &before, now));
    assert_int_equal(digest_told(m, now, 0)->lost, 0);
    assert_int_equal(m->told_version, version);
    assert_true(mesh_on_digest(m, now, 0, &before, mono_add(now, span_ns(1))));
    assert_int_equal(digest_told(m, now, 0)->lost, 4);
    pass(6 * NS_PER_S); /* and it ages */
    assert_int_equal(told_count(), 0);
}

static void one_host_fills_its_own_share_only(void **state)
{
    struct probe_observation o = lost_one(6);
    struct probe probe = told_by(1, &o);

    (void)hear(&probe);
    for (uint32_t i = 0; i < 128; i++) {
        o.path = (uint8_t)i;
        probe = told_by(2, &o);
        now = mono_add(now, span_ms(1));
        (void)hear(&probe);
    }
    assert_int_equal(told_count(), 1 + TOLD_HOST_MAX);
    assert_int_equal(m->told_top, told_count()); /* no search looks further */
}

/* So many hosts that all room is full: another host's digest gets a place of the host that holds most. */
static void who_holds_most_makes_room(void **state)
{
    struct probe_observation o = lost_one(6);

    for (uint32_t i = 0; i < TOLD_MAX; i++) {
        m->told[i] = (struct told_path){.used = true,
                                        .host = {100 + i / TOLD_HOST_MAX},
                                        .made = mono_add(now, span_ms(i % 7)),
                                        .path = (uint8_t)i};
    }
    m->told_top = TOLD_MAX;
    for (uint32_t i = 0; i < TOLD_HOST_MAX / 2; i++) {
        uint32_t its = 0;
        o.path = (uint8_t)i;
        struct probe probe = told_by(2, &o);
        now = mono_add(now, span_ms(100));
        (void)hear(&probe);
        for (uint32_t k = 0; k < TOLD_MAX; k++) {
            const struct told_path *t = digest_told(m, now, k);
            its += t && t->host.index == 2;
        }
        assert_int_equal(its, i + 1);
    }
    assert_int_equal(told_count(), TOLD_MAX);
}

/* A loss is reported, taken back and reported again: rounds end, and begin again only after that host was quiet. */
static void a_loss_that_is_toggled_keeps_nobody_busy(void **state)
{
    struct probe_observation o = lost_one(6);
    uint32_t to[HOSTS], rounds = 0;

    for (uint32_t i = 0; i < 300; i++) { /* 30 s */
        o.lost = i % 2 == 0 ? 4 : 0;
        struct probe probe = told_by(2, &o);
        pass(100 * NS_PER_MS);
        (void)hear(&probe);
        rounds += digests(to, NULL) > 0;
    }
    assert_in_range(rounds, 4, 30); /* of 120: 3 s at once, and a tenth of the time */
    pass(60 * NS_PER_S);
    o.lost = 4;
    struct probe probe = told_by(2, &o);
    (void)hear(&probe);
    pass(200 * NS_PER_MS);
    assert_true(digests(to, NULL) > 0);
}

/* However many packets one host sends, only few are read. Another host's are read. */
static void what_one_host_sends_has_a_ceiling(void **state)
{
    struct probe_observation o = lost_one(6);

    for (uint32_t i = 0; i < 1000; i++) { /* in a second */
        o.path = (uint8_t)(i % 2);
        struct probe probe = told_by(2, &o);
        probe.src.index = probe.digest.from.index = 4 + i % 2;
        now = mono_add(now, span_ms(1));
        (void)hear(&probe);
    }
    assert_in_range(m->counters.digests_heard, 50, 150);
    assert_int_equal(m->counters.digests_heard + m->counters.digests_refused, 1000);
    const uint64_t heard = m->counters.digests_heard;
    struct probe probe = told_by(1, &o);
    (void)hear(&probe);
    assert_int_equal(m->counters.digests_heard, heard + 1);
}

/* Also if its share is full: replayed digests replace nothing. */
static void an_older_digest_drives_out_nothing(void **state)
{
    struct probe_observation o = lost_one(6);
    struct probe probe;

    for (uint32_t i = 0; i < TOLD_HOST_MAX; i++) {
        o.path = (uint8_t)i;
        probe = told_by(2, &o);
        (void)hear(&probe);
    }
    const uint32_t version = m->told_version;
    o.path = TOLD_HOST_MAX;
    probe = told_by(2, &o);
    (void)mesh_on_digest(m, now, 0, &probe, mono_add(now, span_ms(-100)));
    assert_int_equal(m->told_version, version);
    for (uint32_t i = 0; i < TOLD_HOST_MAX; i++) {
        assert_int_equal(digest_told(m, now, i)->path, i);
    }
    (void)mesh_on_digest(m, now, 0, &probe, mono_add(now, span_ms(1)));
    assert_int_equal(m->told_version, version + 1);
}

/* Only news makes a host send its own: two hosts can't keep each other busy. */
static void what_is_no_news_starts_no_round(void **state)
{
    const struct probe_observation o = lost_one(6);
    const struct probe probe = told_by(2, &o);
    uint32_t to[HOSTS], rounds = 0;

    assert_true(hear(&probe));
    for (uint32_t i = 0; i < 100; i++) {
        pass(100 * NS_PER_MS);
        (void)hear(&probe);
        rounds += digests(to, NULL) > 0;
    }
    assert_in_range(rounds, 1, 5);
}

/* Host 2 stops sending over one path, and reports that this path crosses a trunk that no other path crosses. */
static void a_false_way_names_nothing(void **state)
{
    const struct mono cut = now;
    struct mesh_location where;

    pass(3 * NS_PER_S);
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        struct mesh_edge *e = &m->edges[edge];

        e->peer_path_count = SPINES;
        for (uint8_t p = 0; e->used && p < SPINES; p++) {
            const bool dead = (e->nic.index == 4 || e->nic.index == 5) && p == 1;
            e->in[p].half.heard = dead ? cut : now;
            e->in[p].half.state = dead ? PATH_DEAD : PATH_ALIVE;
            e->in[p].half.since = cut;
        }
    }
    for (uint32_t src = 4; src < 8; src++) {
        for (uint32_t to = 0; to < 2; to++) {
            for (uint8_t path = 0; path < 2; path++) {
                const bool dead = src < 6 && path == 1;
                struct probe_observation o = {.to = {to},
                                              .path = path,
                                              .lost = dead ? 8 : 0,
                                              .hop_count = dead ? 4 : 3,
                                              .age_ms = dead ? 3000 : 0};
                uint32_t k = 0;
                o.hops[k].name = router_name(PLACE_LEAF, 1, 0);
                o.hops[k++].kind = PROBE_HOP_LEAF;
                o.hops[k].name = router_name(PLACE_SPINE, path, 0);
                o.hops[k++].kind = PROBE_HOP_SPINE;
                if (dead) {
                    o.hops[k].name = router_name(PLACE_SPINE, 0, 0);
                    o.hops[k++].kind = PROBE_HOP_SPINE;
                }
                o.hops[k].name = router_name(PLACE_LEAF, 0, 0);
                o.hops[k++].kind = PROBE_HOP_LEAF;
                struct probe probe = told_by(src / 2, &o);
                probe.src.index = probe.digest.from.index = src;
                (void)hear(&probe);
            }
        }
    }
    assert_int_equal(told_count(), 16);
    mesh_locate(m, now, edge_to(0, 4), 1, DIRECTION_IN, true, &where);
    assert_int_equal(where.suspect.kind, ELEMENT_UNKNOWN);
}

/* NIC 4 sends nothing. Its host reports the ways that its packets would take, the others report their own. */
static void nic_4_is_mute(struct mono cut)
{
    for (int edge = 0; edge < m->edge_capacity; edge++) {
        struct mesh_edge *e = &m->edges[edge];

        e->peer_path_count = SPINES;
        e->unsorted = true; /* it isn't known here over which way its packets come */
        for (uint8_t p = 0; e->used && p < SPINES; p++) {
            const bool dead = e->nic.index == 4;
            e->in[p].half.heard = dead ? cut : now;
            e->in[p].half.state = dead ? PATH_DEAD : PATH_ALIVE;
            e->in[p].half.since = cut;
        }
    }
    for (uint32_t src = 4; src < 8; src++) {
        for (uint32_t k = 0; k < 2 * SPINES; k++) {
            const bool dead = src == 4;
            struct probe_observation o = {
                .to = {k / SPINES},
                .path = (uint8_t)(k % SPINES),
                .lost = dead ? 8 : 0,
                .hop_count = 3,
                .age_ms = dead ? 3000 : 0,
                .hops = {{router_name(PLACE_LEAF, 1, 0), PROBE_HOP_LEAF},
                         {router_name(PLACE_SPINE, k % SPINES, 0), PROBE_HOP_SPINE},
                         {router_name(PLACE_LEAF, 0, 0), PROBE_HOP_LEAF}}};
            struct probe probe = told_by(src / NICS, &o);
            probe.src.index = probe.digest.from.index = src;
            (void)hear(&probe);
        }
    }
}

/* A name by others' reports counts from the second look on, however late that look is: no packet came over that path
 * meanwhile. */
static void a_name_stands_though_looks_are_rare(void **state)
{
    static const int64_t apart_ms[] = {250, 1000, 1010, 3000};
    struct mesh_location where;

    for (uint32_t i = 0; i < ARRAY_COUNT(apart_ms); i++) {
        const struct mono cut = now;
        pass(3 * NS_PER_S);
        for (int64_t ms = 0; ms < 2 * apart_ms[i] || ms < 600; ms += apart_ms[i]) {
            nic_4_is_mute(cut);
            mesh_locate(m, now, edge_to(0, 4), 1, DIRECTION_IN, true, &where);
            assert_true(ms > 0 || where.suspect.kind == ELEMENT_UNKNOWN); /* it died again */
            pass(apart_ms[i] * NS_PER_MS);
        }
        assert_int_equal(where.suspect.kind, ELEMENT_NIC);
        assert_int_equal(where.suspect.a.number, 4);
    }
}

/* Hosts 2, 3 and 4 report that their packets over spine 1 are lost since `cut`. The liar reports that some came until later. */
static struct mono began_with(struct mono cut, uint32_t liar, uint32_t later_ms)
{
    struct mesh_location where;

    for (int edge = 0; edge < m->edge_capacity; edge++) {
        struct mesh_edge *e = &m->edges[edge];

        e->peer_path_count = SPINES;
        for (uint8_t p = 0; e->used && p < SPINES; p++) {
            const bool dead = leaf_of(e->nic.index) == 1 && p == 1;
            e->in[p].half.heard = dead ? cut : now;
            e->in[p].half.state = dead ? PATH_DEAD : PATH_ALIVE;
            e->in[p].half.since = cut;
        }
    }
    for (uint32_t src = 4; src < NICS * HOSTS; src++) {
        for (uint32_t k = 0; k < 2 * SPINES; k++) {
            const bool dead = k % SPINES == 1;
            struct probe_observation o = {
                .to = {k / SPINES},
                .path = (uint8_t)(k % SPINES),
                .lost = dead ? 8 : 0,
                .hop_count = 3,
                .age_ms = (uint16_t)(dead ? 3000 - (src / NICS == liar ? later_ms : 0) : 0),
                .hops = {{router_name(PLACE_LEAF, 1, 0), PROBE_HOP_LEAF},
                         {router_name(PLACE_SPINE, k % SPINES, 0), PROBE_HOP_SPINE},
                         {router_name(PLACE_LEAF, 0, 0), PROBE_HOP_LEAF}}};
            struct probe probe = told_by(src / NICS, &o);
            probe.src.index = probe.digest.from.index = src;
            (void)hear(&probe);
        }
    }
    mesh_locate(m, now, edge_to(0, 4), 1, DIRECTION_IN, true, &where);
    return where.began;
}

/* Otherwise one host could split a fault in two, by moving its begin by half a second. */
static void no_single_host_moves_the_begin(void **state)
{
    const struct mono cut = now;

    pass(3 * NS_PER_S);
    const struct mono honest = began_with(cut, UINT32_MAX, 0);
    assert_int_equal(honest.ns, cut.ns);
    for (uint32_t liar = 2; liar < HOSTS; liar++) {
        pass(NS_PER_MS);
        assert_in_range(began_with(cut, liar, 450).ns, cut.ns, cut.ns + 5 * NS_PER_MS);
    }
}

/* Of a round's packets: those of own paths to that NIC. */
static uint32_t own_ways_to(uint32_t nic)
{
    struct probe_observation o;
    uint32_t count = 0;

    for (uint32_t i = 0; i < m->digests.count; i++) {
        uint16_t at = 0;
        for (uint32_t k = 0; k < m->digests.packets[i].count; k++) {
            assert_true(probe_digest_next(&m->digests.packets[i], &at, &o));
            count += o.to.index == nic;
        }
    }
    return count;
}

/* For each hop of each path on which another host lost packets: an own path that crosses it and is well is reported. */
static void all_that_a_lost_path_crosses_is_asked_for(void **state)
{
    struct probe_observation beyond = lost_one(6), here = lost_one(7);
    uint32_t to[HOSTS];

    here.path = 0;
    here.hop_count = 3;
    here.hops[1].name = router_name(PLACE_SPINE, 0, 0);
    here.hops[1].kind = PROBE_HOP_SPINE;
    here.hops[2].name = router_name(PLACE_LEAF, 0, 0);
    here.hops[2].kind = PROBE_HOP_LEAF;
    struct probe probe = told_by(2, &beyond);
    assert_true(hear(&probe));
    pass(600 * NS_PER_MS);
    assert_true(digests(to, NULL) > 0);
    assert_true(own_ways_to(6) > 0 &&
                own_ways_to(2) == 0); /* one leaf's hosts cross nothing else */
    probe = told_by(2, &here);
    assert_true(hear(&probe));
    pass(NS_PER_S);
    assert_true(digests(to, NULL) > 0);
    assert_true(own_ways_to(2) > 0);
}

/* ---- the kept state of a path ---- */

static uint32_t traced(int edge, uint8_t path)
{
    struct mesh_send send;
    uint32_t count = 0;

    discovery_trace(m, now, edge, path);
    while (mesh_next_send(m, now, &send, &edge)) {
        count += send.probe.type == PROBE_DISCOVERY;
    }
    return count;
}

/* All its hops, and once more. A look in between sends nothing. */
static void a_dead_path_is_traced_twice(void **state)
{
    const int edge = edge_to(0, 4);
    uint32_t rounds = 0;

    m->config.no_discovery = false;
    m->nics[0].probe_credit = 100 * NS_PER_S;
    for (int64_t ms = 0; ms < 1000; ms += 10) {
        const uint32_t sent = traced(edge, 1);
        rounds += sent > 0;
        assert_int_equal(sent, ms == 0 || ms == 110 ? 3 : 0);
        now = mono_add(now, span_ms(10));
    }
    assert_int_equal(rounds, 2);
    assert_int_equal(m->edges[edge].out[1].trace_rounds, 2);
}

/* Queues make a silence every half second: a hole beside them must still be proved. A long silence proves nothing about a
 * path. */
static void a_short_silence_keeps_what_is_missing(void **state)
{
    const int edge = edge_to(0, 4);
    struct path_in *in = &m->edges[edge].in[1];

    in->known = true;
    in->highest = 100;
    in->reported = 105;
    in->missed = 2;
    now = mono_add(now, span_ms(390));
    verdict_touched(m, now, edge, 0);
    assert_true(in->floor_wanted);
    assert_int_equal(in->missed, 7);
    in->floor_wanted = false;
    now = mono_add(now, span_ms(1000));
    verdict_touched(m, now, edge, 0);
    assert_int_equal(in->missed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_quiet_fleet_tells_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_death_is_told_to_every_host_and_lost_ones_first, begin,
                                        end),
        cmocka_unit_test_setup_teardown(who_can_not_read_them_gets_none, begin, end),
        cmocka_unit_test_setup_teardown(a_question_is_asked_in_the_version_before, begin, end),
        cmocka_unit_test_setup_teardown(what_is_told_has_a_ceiling, begin, end),
        cmocka_unit_test_setup_teardown(only_own_paths_of_a_known_host_count, begin, end),
        cmocka_unit_test_setup_teardown(an_older_digest_changes_nothing, begin, end),
        cmocka_unit_test_setup_teardown(one_host_fills_its_own_share_only, begin, end),
        cmocka_unit_test_setup_teardown(who_holds_most_makes_room, begin, end),
        cmocka_unit_test_setup_teardown(a_loss_that_is_toggled_keeps_nobody_busy, begin, end),
        cmocka_unit_test_setup_teardown(what_one_host_sends_has_a_ceiling, begin, end),
        cmocka_unit_test_setup_teardown(an_older_digest_drives_out_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_false_way_names_nothing, begin, end),
        cmocka_unit_test_setup_teardown(a_name_stands_though_looks_are_rare, begin, end),
        cmocka_unit_test_setup_teardown(no_single_host_moves_the_begin, begin, end),
        cmocka_unit_test_setup_teardown(what_is_no_news_starts_no_round, begin, end),
        cmocka_unit_test_setup_teardown(all_that_a_lost_path_crosses_is_asked_for, begin, end),
        cmocka_unit_test_setup_teardown(a_dead_path_is_traced_twice, begin, end),
        cmocka_unit_test_setup_teardown(a_short_silence_keeps_what_is_missing, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
