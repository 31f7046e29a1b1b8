/* The whole fleet's reports give each fault one name: fabrics by seeds, each path's state as its receiver reports it each ten
 * seconds, faults of every kind; and hosts that lie, or whose clocks are wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../sanitized.h"
#include "base/prng.h"
#include "core/fleet/inquiry.h"

enum { PATHS = 65536, PORTS = 4, PEERS = 6, SPINE_KEY = 100, REPORT_S = 10 };

struct way {
    struct inquiry_path p;
    double loss; /* from the faults that it crosses */
};
static struct world {
    uint32_t hosts, leaves, spines, count, liar;
    struct way ways[PATHS];
    uint32_t first[512]; /* the first way that arrives at each host */
    struct inquiry *q;
    struct prng prng;
    int64_t now_ms;
    struct locate_element faults[4];
    double shares[4];
    uint32_t fault_count;
} w;

static bool through(const struct locate_route *r, const struct locate_element *e)
{
    bool is = false;

    switch ((enum element_kind)e->kind) {
    case ELEMENT_NIC:
        return (e->direction != DIRECTION_IN && r->from.index == e->a) ||
               (e->direction != DIRECTION_OUT && r->to.index == e->a);
    case ELEMENT_HOST:
        return r->from_host.index == e->a || r->to_host.index == e->a;
    case ELEMENT_TRUNK:
        for (uint32_t i = 1; i < r->box_count; i++) {
            const uint64_t a = r->boxes[i - 1].key, b = r->boxes[i].key;
            is = is || (a == e->a && b == e->b) ||
                 (e->direction == DIRECTION_BOTH && a == e->b && b == e->a);
        }
        return is;
    default:
        for (uint32_t i = 0; i < r->box_count; i++) {
            is = is || r->boxes[i].key == e->a;
        }
        return is;
    }
}

static void add_ways(uint32_t to)
{
    const uint32_t leaf = to % w.leaves;

    w.first[to] = w.count;
    for (uint32_t k = 0; k < PEERS * PORTS; k++) {
        const uint32_t step = k / PORTS == 0   ? 1
                              : k / PORTS == 1 ? w.leaves
                                               : 1 + prng_below(&w.prng, w.hosts - 1);
        const uint32_t from = (to + (step % w.hosts == 0 ? 1 : step)) % w.hosts,
                       other = from % w.leaves;
        struct locate_route r = {
            .from_host = {from}, .to_host = {to}, .from = {from}, .to = {to}, .teller = {to}};

        r.boxes[r.box_count++] = (struct locate_box){1 + other, ELEMENT_LEAF};
        if (leaf != other) {
            r.boxes[r.box_count++] =
                (struct locate_box){SPINE_KEY + prng_below(&w.prng, w.spines), ELEMENT_SPINE};
            r.boxes[r.box_count++] = (struct locate_box){1 + leaf, ELEMENT_LEAF};
        }
        w.ways[w.count++] = (struct way){.p = {.route = r, .port = (uint16_t)(7000 + k)}};
    }
}

static void world_new(uint64_t seed, uint32_t hosts, uint32_t leaves, uint32_t spines)
{
    inquiry_free(w.q);
    memset(&w, 0, sizeof(w));
    w.hosts = hosts;
    w.leaves = leaves;
    w.spines = spines;
    w.liar = UINT32_MAX;
    w.now_ms = 1000000;
    w.q = inquiry_new(8192, span_s(REPORT_S));
    assert_non_null(w.q);
    prng_init(&w.prng, seed);
    for (uint32_t h = 0; h < hosts; h++) {
        add_ways(h);
    }
    w.first[hosts] = w.count;
}

static void fault(struct locate_element e, double share)
{
    w.faults[w.fault_count] = e;
    w.shares[w.fault_count++] = share;
    for (uint32_t i = 0; i < w.count; i++) {
        if (through(&w.ways[i].p.route, &e)) {
            w.ways[i].loss = w.ways[i].loss > share ? w.ways[i].loss : share;
        }
    }
}

static void heal(void)
{
    w.fault_count = 0;
    for (uint32_t i = 0; i < w.count; i++) {
        w.ways[i].loss = 0;
    }
}

static struct mono now(void)
{
    return (struct mono){w.now_ms * NS_PER_MS};
}

/* Reports all ways of a host. ahead: the error of its clock. */
static void tell(uint32_t host, int64_t ahead_ms)
{
    for (uint32_t i = w.first[host]; i < w.first[host + 1]; i++) {
        struct inquiry_path p = w.ways[i].p;
        uint32_t lost = 0;

        for (uint32_t n = 0; n < 100 && w.ways[i].loss < 1; n++) {
            lost += prng_uniform(&w.prng) < w.ways[i].loss;
        }
        p.dead = host == w.liar || w.ways[i].loss >= 1;
        p.loss_ppm = p.dead ? 0 : lost * 10000;
        p.lossy = !p.dead && lost > 2;
        inquiry_on_path(w.q, now(), (struct mono){(w.now_ms + ahead_ms) * NS_PER_MS}, &p);
    }
}

/* True if the element can't be told from one of the faults by the existing ways. */
static bool is_right(const struct locate_element *e)
{
    for (uint32_t f = 0; f < w.fault_count; f++) {
        bool alike = true;
        const struct locate_element *x = &w.faults[f];
        if (e->direction == DIRECTION_NONE && e->kind == x->kind &&
            ((e->a == x->a && e->b == x->b) || (e->a == x->b && e->b == x->a))) {
            return true; /* the direction isn't known yet */
        }
        for (uint32_t i = 0; i < w.count && alike; i++) {
            alike = through(&w.ways[i].p.route, e) == through(&w.ways[i].p.route, &w.faults[f]);
        }
        if (alike) {
            return true;
        }
    }
    return false;
}

struct verdict {
    uint32_t placed, unplaced, wrong;
};

/* Of the ways with losses. */
static struct verdict judge(void)
{
    struct verdict v = {0};

    for (uint32_t i = 0; i < w.count; i++) {
        struct locate_element e;
        if (w.ways[i].loss <= 0) {
            continue;
        }
        if (!inquiry_place(w.q, now(), &w.ways[i].p.route, NULL, &e)) {
            v.unplaced++;
        } else if (is_right(&e)) {
            v.placed++;
        } else {
            if (v.wrong++ == 0) {
                print_message("%d ms: kind %u, direction %u, %d, %d\n", (int)w.now_ms, e.kind,
                              e.direction, (int)e.a, (int)e.b);
            }
        }
    }
    return v;
}

/* Each host reports each ten seconds, at a time of its own. Returns how much was wrong at any moment. */
static uint32_t pass(int64_t seconds)
{
    uint32_t wrong = 0;

    for (const int64_t end = w.now_ms + seconds * 1000; w.now_ms < end; w.now_ms += 50) {
        for (uint32_t h = 0; h < w.hosts; h++) {
            if (hash_u64(h, 7) % (REPORT_S * 20) == (uint64_t)(w.now_ms / 50) % (REPORT_S * 20)) {
                tell(h, 0);
            }
        }
        if (w.now_ms % 250 == 0) {
            inquiry_tick(w.q, now());
        }
        if (w.now_ms % 1000 == 0 && w.fault_count > 0) {
            wrong += judge().wrong;
        }
    }
    return wrong;
}

static struct locate_element any_fault(uint32_t kind)
{
    const uint64_t host = prng_below(&w.prng, w.hosts), leaf = 1 + prng_below(&w.prng, w.leaves),
                   spine = SPINE_KEY + prng_below(&w.prng, w.spines);

    switch (kind) {
    case 0:
        return (struct locate_element){ELEMENT_NIC, DIRECTION_OUT, host, 0};
    case 1:
        return (struct locate_element){ELEMENT_NIC, DIRECTION_IN, host, 0};
    case 2:
        return (struct locate_element){ELEMENT_TRUNK, DIRECTION_OUT, leaf, spine};
    case 3:
        return (struct locate_element){ELEMENT_TRUNK, DIRECTION_OUT, spine, leaf};
    case 4:
        return (struct locate_element){ELEMENT_TRUNK, DIRECTION_BOTH, leaf, spine};
    default:
        return (struct locate_element){ELEMENT_SPINE, DIRECTION_BOTH, spine, 0};
    }
}

/* One fault: all ways that it takes have one name, the right one. None had another at any moment. */
static void one_fault_has_one_name(void **state)
{
    uint32_t named = 0, worlds = 0;

    for (uint64_t seed = 1; seed <= DRAWS(24); seed++) {
        world_new(seed, 12 + (uint32_t)seed % 30, 2 + (uint32_t)seed % 3,
                  2 + (uint32_t)(seed / 3) % 3);
        pass(12);
        fault(any_fault((uint32_t)seed % 6), 1);
        assert_int_equal(pass(26), 0);
        const struct verdict v = judge();
        if (v.placed + v.unplaced < 4) {
            continue; /* hardly any host sees it */
        }
        worlds++;
        named += v.unplaced == 0;
        if (v.unplaced > 0) {
            print_message("seed %d: %u of %u without a name\n", (int)seed, v.unplaced,
                          v.placed + v.unplaced);
        }
    }
    print_message("%u of %u named\n", named, worlds);
    assert_true(SANITIZED || (worlds > 20 && named >= worlds - 3));
}

/* A new controller gets reports of losses before those of other ways through the same leaf. */
static void nothing_is_named_before_all_have_reported(void **state)
{
    for (uint64_t seed = 1; seed <= DRAWS(8); seed++) {
        world_new(seed, 24, 3, 3);
        fault(any_fault(2 + (uint32_t)seed % 3), 1);
        assert_int_equal(pass(REPORT_S - 1), 0);
        assert_int_equal(judge().placed, 0);
        assert_int_equal(pass(20), 0);
        assert_true(judge().placed > 0);
    }
}

/* Hosts with new losses report at once, and so do hosts whose losses ended. */
static void tell_now(void)
{
    for (uint32_t h = 0; h < w.hosts; h++) {
        bool misses = false;
        for (uint32_t i = w.first[h]; i < w.first[h + 1]; i++) {
            misses = misses || w.ways[i].loss > 0;
        }
        if (misses) {
            tell(h, 0);
        }
    }
}

/* A NIC dies in both directions while all reports still concern the fault before. Its losses have that one name all the time,
 * although windows still have much of the earlier time. */
static void the_next_fault_has_one_name(void **state)
{
    for (uint64_t seed = 1; seed <= DRAWS(3); seed++) {
        world_new(seed, 64, 4, 4);
        pass(12);
        fault((struct locate_element){ELEMENT_NIC, DIRECTION_BOTH, prng_below(&w.prng, 64), 0}, 1);
        tell_now();
        pass(40);
        heal();
        pass(11);
        fault((struct locate_element){ELEMENT_NIC, DIRECTION_BOTH, prng_below(&w.prng, 64), 0}, 1);
        tell_now();
        assert_int_equal(pass(25), 0);
        assert_int_equal(judge().unplaced, 0);
    }
}

/* The losses of NIC 5 that remain are the trunk's, and there are some. */
static void assert_of_trunk(struct mono began)
{
    uint32_t both = 0;
    for (uint32_t i = 0; i < w.count; i++) {
        const struct locate_route *r = &w.ways[i].p.route;
        struct locate_element e;
        if (w.ways[i].loss > 0 && r->from.index == 5) {
            assert_true(inquiry_place(w.q, began, r, NULL, &e));
            assert_int_equal(e.kind, ELEMENT_TRUNK);
            both++;
        }
    }
    assert_true(both > 0);
}

/* One fault ends as another begins, and some ways cross both: their losses belong to the present one. */
static void what_is_over_explains_nothing_new(void **state)
{
    world_new(1, 64, 4, 4);
    pass(12);
    fault((struct locate_element){ELEMENT_NIC, DIRECTION_BOTH, 5, 0}, 1);
    tell_now();
    pass(30);
    heal();
    const struct mono began = now();
    fault((struct locate_element){ELEMENT_TRUNK, DIRECTION_OUT, 1 + 5 % 4, SPINE_KEY}, 1);
    w.now_ms += 1000;
    for (uint32_t h = 0; h < w.hosts; h++) {
        tell(h, 0);
    }
    pass(25);
    assert_of_trunk(began);
}

/* Two overlap, and the older one ends. The remaining losses are explained by the other one, so all ask again. */
static void what_goes_on_is_asked_anew(void **state)
{
    const struct locate_element trunk = {ELEMENT_TRUNK, DIRECTION_OUT, 1 + 5 % 4, SPINE_KEY};

    world_new(1, 64, 4, 4);
    pass(12);
    const struct mono began = now();
    fault((struct locate_element){ELEMENT_NIC, DIRECTION_BOTH, 5, 0}, 1);
    tell_now();
    pass(30);
    fault(trunk, 1);
    tell_now();
    pass(30);
    const uint32_t version = inquiry_version(w.q);
    heal();
    fault(trunk, 1);
    pass(25);
    assert_int_not_equal(inquiry_version(w.q), version);
    assert_of_trunk(began);
}

static void two_faults_have_two(void **state)
{
    uint32_t named = 0, worlds = 0;

    for (uint64_t seed = 1; seed <= DRAWS(10); seed++) {
        world_new(seed, 30, 3 + (uint32_t)seed % 2, 4);
        pass(12);
        fault(any_fault((uint32_t)seed % 2), 1);
        fault(any_fault(2 + (uint32_t)seed % 2), 1);
        assert_int_equal(pass(30), 0);
        worlds++;
        named += judge().unplaced == 0;
    }
    print_message("%u of %u named\n", named, worlds);
    assert_true(SANITIZED || named >= worlds - 3);
}

static void gray_loss_is_named(void **state)
{
    uint32_t named = 0;

    for (uint64_t seed = 1; seed <= DRAWS(8); seed++) {
        world_new(seed, 30, 3, 4);
        pass(12);
        fault(any_fault((uint32_t)seed % 4), 0.1);
        assert_int_equal(pass(60), 0);
        named += judge().unplaced == 0;
    }
    print_message("%u of %u named\n", named, DRAWS(8));
    assert_true(named + 1 >= DRAWS(8));
}

/* Without losses nothing is kept. After a fault its name stays for findings that close late, and is then dropped. */
static void it_begins_and_ends(void **state)
{
    struct locate_case cases[INQUIRY_KNOWN];
    struct locate_element e;
    uint32_t round;

    world_new(3, 30, 3, 4);
    assert_int_equal(pass(30), 0);
    assert_false(inquiry_wants(w.q, &round));
    fault((struct locate_element){ELEMENT_NIC, DIRECTION_OUT, 5, 0}, 1);
    const struct mono began = now();
    pass(15);
    assert_true(inquiry_wants(w.q, &round));
    assert_int_equal(inquiry_cases(w.q, cases), 1);
    struct locate_route r = w.ways[0].p.route;
    for (uint32_t i = 0; i < w.count; i++) {
        r = w.ways[i].loss > 0 ? w.ways[i].p.route : r;
    }
    heal();
    pass(60);
    assert_int_equal(inquiry_cases(w.q, cases), 1);
    assert_int_equal(cases[0].state, LOCATE_ENDED);
    assert_true(inquiry_place(w.q, began, &r, NULL, &e));
    assert_false(inquiry_place(w.q, now(), &r, NULL, &e)); /* a fault now is another one */
    pass(200);
    assert_int_equal(inquiry_cases(w.q, cases), 0);
    assert_false(inquiry_wants(w.q, &round));
    assert_false(inquiry_place(w.q, began, &r, NULL, &e));
}

/* One host reports that nothing arrives: that accuses itself, and no other host. Another host reports times in the future: that
 * blinds no host. */
static void liars_accuse_nobody_else(void **state)
{
    struct locate_case cases[INQUIRY_KNOWN];

    world_new(4, 30, 3, 4);
    w.liar = 7;
    pass(60);
    for (uint32_t i = inquiry_cases(w.q, cases); i-- > 0;) {
        const struct locate_element *e = &cases[i].elements[0];
        assert_true((e->kind == ELEMENT_NIC || e->kind == ELEMENT_HOST) && e->a == 7);
    }
    w.liar = UINT32_MAX;
    pass(200);
    uint64_t refused = inquiry_refused(w.q);
    for (uint32_t h = 8; h < 30; h++) {
        tell(h, 3600000);
        tell(h, -3600000);
    }
    fault((struct locate_element){ELEMENT_NIC, DIRECTION_OUT, 5, 0}, 1);
    for (uint32_t h = 8; h < 30; h++) {
        tell(h, 3600000);
        tell(h, INT64_MAX / NS_PER_MS - w.now_ms);
    }
    assert_int_equal(pass(15), 0);
    assert_int_equal(judge().unplaced, 0);
    assert_true(inquiry_refused(w.q) > refused);
}

/* With two leaves the way up can't be told from the way down, unless a host asked the routers. Then all use its answer. */
static void a_host_that_asked_the_routers_chooses(void **state)
{
    const struct locate_element up = {ELEMENT_TRUNK, DIRECTION_OUT, 1, SPINE_KEY},
                                down = {ELEMENT_TRUNK, DIRECTION_OUT, SPINE_KEY, 2};

    for (int k = 0; k < 2; k++) {
        const struct locate_element *word = k == 0 ? &up : &down;
        struct locate_element e, all;
        const struct locate_route *r = NULL;

        world_new(5, 20, 2, 3);
        pass(12);
        fault(up, 1);
        assert_int_equal(pass(15), 0);
        for (uint32_t i = 0; i < w.count; i++) {
            r = w.ways[i].loss > 0 ? &w.ways[i].p.route : r;
        }
        assert_true(inquiry_place(w.q, now(), r, word, &e));
        assert_int_equal(e.a, word->a);
        assert_int_equal(e.b, word->b);
        assert_true(
            inquiry_place(w.q, now(), r, k == 0 ? &down : &up, &all)); /* later hosts follow */
        assert_memory_equal(&e, &all, sizeof(e));
    }
}

/* A host was certain before any name was given: its own name is the first, and no other trunk is accused meanwhile. */
static void a_host_may_be_sure_before_all_are(void **state)
{
    const struct locate_element up = {ELEMENT_TRUNK, DIRECTION_OUT, 1, SPINE_KEY},
                                down = {ELEMENT_TRUNK, DIRECTION_OUT, SPINE_KEY, 2};

    for (int k = 0; k < 2; k++) {
        const struct locate_element *word = k == 0 ? &up : &down;
        struct locate_element e;

        world_new(5, 20, 2, 3);
        pass(12);
        fault(up, 1);
        for (uint32_t i = 0; i < w.count; i++) {
            if (w.ways[i].loss > 0) {
                assert_false(inquiry_place(w.q, now(), &w.ways[i].p.route, word, &e));
            }
        }
        assert_int_equal(pass(15), 0);
        for (uint32_t i = 0; i < w.count; i++) {
            if (w.ways[i].loss > 0) {
                assert_true(inquiry_place(w.q, now(), &w.ways[i].p.route, NULL, &e));
                assert_int_equal(e.a, word->a);
                assert_int_equal(e.b, word->b);
            }
        }
    }
}

/* Hosts look for new ways now and then: the old ways are no longer reported. */
static void other_ports(void)
{
    for (uint32_t i = 0; i < w.count; i++) {
        w.ways[i].p.port = (uint16_t)(w.ways[i].p.port + 100);
    }
}

/* A NIC is dead for hours, so there are always losses. Other faults come and go meanwhile: the last one gets its name like the
 * first. */
static void a_lasting_fault_leaves_room_for_others(void **state)
{
    const struct locate_element lasting = {ELEMENT_NIC, DIRECTION_OUT, 5, 0};

    world_new(1, 64, 4, 4);
    inquiry_free(w.q);
    w.q = inquiry_new(4096, span_s(REPORT_S));
    assert_non_null(w.q);
    fault(lasting, 1);
    for (uint32_t n = 0; n < DRAWS(6); n++) {
        pass(30); /* the one before ends; its name stays for a while */
        assert_int_equal(pass(100), 0);
        fault(
            (struct locate_element){ELEMENT_TRUNK, DIRECTION_OUT, 1 + n % 4, SPINE_KEY + n / 4 % 4},
            1);
        tell_now();
        assert_int_equal(pass(25), 0);
        assert_int_equal(judge().unplaced, 0);
        heal();
        other_ports();
        fault(lasting, 1);
    }
}

/* As the controller reports it: a clean path only if it was asked for, or the first time. */
static void tell_way(const struct inquiry_path *p, bool first)
{
    const bool lost = p->dead || p->lossy;

    if (lost || first || inquiry_has(w.q, p->route.from, p->route.to, p->port)) {
        inquiry_on_path(w.q, now(), now(), p);
    }
}

/* Of one leaf. */
static void tell_short_way(uint32_t leaf, uint32_t from, uint32_t to, bool lost, bool first)
{
    struct inquiry_path p = {.route = {.from_host = {from},
                                       .to_host = {to},
                                       .from = {from},
                                       .to = {to},
                                       .teller = {to},
                                       .box_count = 1},
                             .port = 7000,
                             .dead = lost};

    p.route.boxes[0] = (struct locate_box){leaf, ELEMENT_LEAF};
    tell_way(&p, first);
}

/* A path was lost in the beginning and is clean since: that acquits its receiver, while another sender is dead for hours. Places
 * that no longer have losses make room. */
static void what_was_lost_once_acquits_too(void **state)
{
    world_new(1, 6, 1, 1);
    for (int turn = 0; turn < 60; turn++, w.now_ms += REPORT_S * 1000) {
        const bool first = turn == 0;
        tell_short_way(1, 5, 1, true, first);
        tell_short_way(1, 2, 1, first, first);
        tell_short_way(2, 3, 4, first, first);
        inquiry_tick(w.q, now());
        assert_true(inquiry_has(w.q, (struct nic_id){5}, (struct nic_id){1}, 7000));
        assert_true(inquiry_has(w.q, (struct nic_id){2}, (struct nic_id){1}, 7000));
    }
    assert_false(inquiry_has(w.q, (struct nic_id){3}, (struct nic_id){4}, 7000));
}

/* Two rails of three leaves each share their spines. NIC 2h of hosts 0 to 11 is on leaf h % 3, and their other NIC on leaf 3 + h
 * % 3. */
static void tell_rails(uint32_t dead_a, uint32_t dead_b, bool first)
{
    for (uint32_t to = 0; to < 24; to++) {
        for (uint32_t from = to % 2; from < 24; from += 2) {
            const uint32_t leaf = to % 2 * 3 + to / 2 % 3, other = to % 2 * 3 + from / 2 % 3;
            for (uint32_t spine = 0; spine < 2 && leaf != other; spine++) {
                const bool dead = spine == 0 && (leaf == dead_a || leaf == dead_b ||
                                                 other == dead_a || other == dead_b);
                const struct inquiry_path p = {
                    .route = {.from_host = {from / 2},
                              .to_host = {to / 2},
                              .from = {from},
                              .to = {to},
                              .teller = {to / 2},
                              .box_count = 3,
                              .boxes = {{1 + other, ELEMENT_LEAF},
                                        {SPINE_KEY + spine, ELEMENT_SPINE},
                                        {1 + leaf, ELEMENT_LEAF}}},
                    .port = (uint16_t)(7000 + spine),
                    .dead = dead};
                tell_way(&p, first);
            }
        }
    }
}

/* Two trunks of a spine are dead, and so are all ways of their rail that cross the spine. The other rail's ways share neither NIC
 * nor trunk with them, and acquit the spine. */
static void another_rail_acquits_a_spine(void **state)
{
    struct locate_case cases[INQUIRY_KNOWN];
    uint32_t trunks = 0;

    world_new(1, 6, 1, 1);
    for (int turn = 0; turn < 40; turn++, w.now_ms += 1000) {
        const bool dead = turn >= 8;
        tell_rails(dead ? 0 : UINT32_MAX, dead ? 1 : UINT32_MAX, false);
        if (turn == 8) { /* now it is asked for */
            tell_rails(0, 1, true);
        }
        for (uint32_t k = 0; k < 4; k++, w.now_ms += 250) {
            inquiry_tick(w.q, now());
        }
        const uint32_t count = inquiry_cases(w.q, cases);
        trunks = 0;
        for (uint32_t i = 0; i < count; i++) {
            assert_int_not_equal(cases[i].elements[0].kind, ELEMENT_SPINE);
            trunks += cases[i].elements[0].kind == ELEMENT_TRUNK;
        }
    }
    assert_int_equal(trunks, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_fault_has_one_name),
        cmocka_unit_test(nothing_is_named_before_all_have_reported),
        cmocka_unit_test(the_next_fault_has_one_name),
        cmocka_unit_test(what_is_over_explains_nothing_new),
        cmocka_unit_test(what_goes_on_is_asked_anew),
        cmocka_unit_test(two_faults_have_two),
        cmocka_unit_test(gray_loss_is_named),
        cmocka_unit_test(it_begins_and_ends),
        cmocka_unit_test(liars_accuse_nobody_else),
        cmocka_unit_test(a_host_that_asked_the_routers_chooses),
        cmocka_unit_test(a_host_may_be_sure_before_all_are),
        cmocka_unit_test(a_lasting_fault_leaves_room_for_others),
        cmocka_unit_test(what_was_lost_once_acquits_too),
        cmocka_unit_test(another_rail_acquits_a_spine),
    };
    const int r = cmocka_run_group_tests(tests, NULL, NULL);

    w.q = inquiry_free(w.q);
    return r;
}
