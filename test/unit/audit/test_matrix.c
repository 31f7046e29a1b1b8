/* test_matrix.c: every NIC with every NIC: the rounds, one host's part in them, and the results from all cells. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "base/time.h"
#include "core/audit/matrix_again.h"
#include "core/fleet/delay_code.h"

enum { PACKETS = 5, HOSTS = 8, RAILS = 2, NICS = HOSTS * RAILS };
#define BEGIN (1000 * NS_PER_S)

static struct matrix_plan plan_of(uint32_t hosts, uint32_t rails)
{
    return (struct matrix_plan){.hosts = hosts,
                                .rails = rails,
                                .packets = PACKETS,
                                .begin_ns = BEGIN,
                                .round_ns = 100 * NS_PER_MS,
                                .gap_ns = 10 * NS_PER_MS,
                                .seed = 7};
}

/* ---- partners ---- */

static void pairs_once(uint32_t hosts, uint32_t rails)
{
    const struct matrix_plan p = plan_of(hosts, rails);
    const uint32_t n = hosts * rails, rounds = matrix_rounds(&p);
    uint8_t *met = calloc(n, n);
    assert_non_null(met);
    for (uint32_t k = 0; k < rounds; k++) {
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t other = matrix_partner(&p, k, i);
            if (other != MATRIX_NONE) {
                assert_int_not_equal(other, i);
                assert_int_equal(matrix_partner(&p, k, other), i); /* of each other: no NIC twice */
                assert_int_equal(matrix_round_of(&p, i, other), k);
                assert_true(k < matrix_rail_rounds(&p) ? i % rails == other % rails
                                                       : i % rails != other % rails);
                met[i * n + other]++;
            }
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < n; j++) {
            assert_int_equal(met[i * n + j],
                             i != j && (i / rails != j / rails || i % rails != j % rails));
        }
    }
    free(met);
}

static void test_each_pair_once(void **state)
{
    static const uint32_t grids[][2] = {{8, 2}, {16, 4}, {17, 3}, {12, 8},
                                        {2, 1}, {3, 1},  {2, 2},  {5, 5}};
    for (size_t i = 0; i < sizeof(grids) / sizeof(grids[0]); i++) {
        pairs_once(grids[i][0], grids[i][1]);
    }
}

/* In a tenth of the rounds each host meets all others about equally often. */
static void test_even_sample(void **state)
{
    const struct matrix_plan p = plan_of(64, 4);
    uint32_t shifts[8] = {0};
    const uint32_t some = (matrix_rounds(&p) - matrix_rail_rounds(&p)) / 8;
    for (uint32_t k = 0; k < some; k++) {
        const uint32_t other = matrix_partner(&p, matrix_rail_rounds(&p) + k, 0);
        shifts[other / 4 / 8]++;
    }
    for (int i = 0; i < 8; i++) {
        assert_in_range(shifts[i], 1, some / 4);
    }
}

#define HOSTS_WRONG   "it is for two hosts at least and 16,384 NICs at most"
#define PACKETS_WRONG "2 to 7 packets of a pair are sent"
#define ROUND_WRONG   "a round takes 5 ms to 1 s, and its packets fit into it"
#define ROUNDS_WRONG  "all rounds take half an hour at most"

/* Each limit alone, with its own reason, and the last plan that is accepted. */
static void test_plans_refused(void **state)
{
    const struct matrix_plan good = plan_of(8, 2);
    const struct {
        const char *why; /* NULL: it is good */
        uint32_t hosts, rails, packets;
        int64_t round_ns, gap_ns, begin_ns;
    } plans[] = {
        {.why = NULL},
        {.why = HOSTS_WRONG, .hosts = 1, .rails = 2},
        {.why = HOSTS_WRONG, .hosts = 8, .rails = UINT32_MAX},
        {.why = HOSTS_WRONG, .hosts = 1 << 15, .rails = 1},
        {.why = HOSTS_WRONG, .hosts = UINT32_MAX, .rails = UINT32_MAX},
        {.why = NULL, .packets = 2},
        {.why = PACKETS_WRONG, .packets = 1},
        {.why = NULL, .packets = MATRIX_PACKETS_MAX},
        {.why = PACKETS_WRONG, .packets = MATRIX_PACKETS_MAX + 1, .round_ns = NS_PER_S},
        {.why = NULL, .round_ns = MATRIX_ROUND_NS_MIN, .gap_ns = NS_PER_MS, .packets = 2},
        {.why = ROUND_WRONG,
         .round_ns = MATRIX_ROUND_NS_MIN - 1,
         .gap_ns = NS_PER_MS,
         .packets = 2},
        {.why = NULL, .round_ns = NS_PER_S},
        {.why = ROUND_WRONG, .round_ns = NS_PER_S + 1},
        {.why = ROUND_WRONG, .gap_ns = NS_PER_MS - 1},
        {.why = ROUND_WRONG, .gap_ns = 30 * NS_PER_MS}, /* five of them don't fit */
        {.why = ROUNDS_WRONG, .begin_ns = -1},
        {.why = ROUNDS_WRONG, .hosts = 16000, .rails = 1, .round_ns = NS_PER_S},
        {.why = ROUNDS_WRONG, .hosts = 16000, .rails = 1, .round_ns = 150 * NS_PER_MS},
    };

    for (size_t i = 0; i < sizeof(plans) / sizeof(plans[0]); i++) {
        struct matrix_plan p = good;
        p.hosts = plans[i].hosts != 0 ? plans[i].hosts : p.hosts;
        p.rails = plans[i].rails != 0 ? plans[i].rails : p.rails;
        p.packets = plans[i].packets != 0 ? plans[i].packets : p.packets;
        p.round_ns = plans[i].round_ns != 0 ? plans[i].round_ns : p.round_ns;
        p.gap_ns = plans[i].gap_ns != 0 ? plans[i].gap_ns : p.gap_ns;
        p.begin_ns = plans[i].begin_ns != 0 ? plans[i].begin_ns : p.begin_ns;
        const char *why = matrix_plan_wrong(&p);
        if ((why == NULL) != (plans[i].why == NULL) ||
            (why != NULL && strcmp(why, plans[i].why) != 0)) {
            fail_msg("plan %zu: %s", i, why != NULL ? why : "it is taken");
        }
    }
    struct matrix_plan empty = good;
    empty.rails = 0;
    assert_string_equal(matrix_plan_wrong(&empty), HOSTS_WRONG);
    empty = good;
    empty.begin_ns = 0;
    assert_string_equal(matrix_plan_wrong(&empty), ROUNDS_WRONG);
}

/* Forged, late, or of another fleet: each is refused for its own reason, and for no other. */
static void test_offers_refused(void **state)
{
    enum { MEMBERS = 20, PLACES = 16 };
    uint32_t members[MEMBERS], nics[PLACES], places[HOST_NIC_MAX], own_at[HOST_NIC_MAX], count = 0;
    const uint32_t own[] = {107, 108};
    uint8_t seen[MEMBERS];
    for (uint32_t i = 0; i < MEMBERS; i++) {
        members[i] = 100 + i;
    }
    for (uint32_t i = 0; i < PLACES; i++) {
        nics[i] = 101 + i + 1; /* numbers + 1 */
    }
    const struct plan_host good = {7, true, BEGIN - NS_PER_S, members, MEMBERS, own, 2};
    const struct matrix_offer offer = {plan_of(8, 2), nics, PLACES, 7};
    struct plan_host h = good;
    struct matrix_offer o = offer;
#define WRONG()   matrix_offer_wrong(&o, &h, seen, places, own_at, &count)
#define IS(words) assert_string_equal(WRONG(), words), h = good, o = offer
    assert_null(WRONG());
    assert_true(count == 2 && places[0] == 6 && places[1] == 7 && own_at[0] == 0 && own_at[1] == 1);
    o.plan.packets = 1;
    IS(PACKETS_WRONG);
    o.nic_count = 15;
    IS("it has another number of NICs than its hosts and rails make");
    o.fleet_version = 8;
    IS("it is for another version of the fleet's list than this host has");
    h.in_step = false;
    IS("this host has no fleet time");
    h.now_ns = BEGIN;
    IS("it has begun already");
    h.now_ns = BEGIN - PLAN_AHEAD_NS - 1;
    IS("it begins too far ahead");
    h.member_count = 15; /* the last places are unknown */
    IS("one of these NICs is not in its list of members, or not yet");
    nics[0] = UINT32_MAX;
    IS("one of these NICs is not in its list of members, or not yet");
    nics[0] = nics[15]; /* somebody else's */
    IS("it has a NIC in two places");
    nics[0] = nics[6]; /* this host's own */
    IS("it has a NIC in two places");
    nics[6] = 100 + 1; /* own NICs at places 0 and 7: of two hosts */
    IS("it has NICs of this host as those of two hosts");
    nics[0] = nics[6] = nics[7] = 0;
    IS("no NIC of this host is in it");
    nics[7] = 108 + 1; /* holes, and one own NIC */
    assert_null(WRONG());
    assert_true(count == 1 && places[0] == 7 && own_at[0] == 1);
#undef IS
#undef WRONG
}

/* Each host's rows come after the other's, and all come within the time that is waited. */
static void test_answers_take_turns(void **state)
{
    const struct matrix_plan small = plan_of(8, 2), large = plan_of(2048, 8);
    assert_int_equal(matrix_answer_ns(&small, 0), matrix_end_ns(&small));
    assert_true(matrix_answer_ns(&small, 7) - matrix_end_ns(&small) < 50 * NS_PER_MS);
    for (uint32_t h = 1; h < 2048; h++) {
        assert_true(matrix_answer_ns(&large, h) - matrix_answer_ns(&large, h - 1) >= 8 * NS_PER_MS);
    }
    assert_true(matrix_answer_ns(&large, 2047) - matrix_end_ns(&large) < 40 * NS_PER_S);
}

/* ---- hosts that take part ---- */

struct world {
    struct matrix_plan plan;
    struct matrix_part part[HOSTS];
    void *memory[HOSTS];
    struct matrix m;
    void *cells;
    enum matrix_why why[HOSTS]; /* from half of the rounds on */
    bool stopped[HOSTS];        /* no turns in the second quarter */
    int64_t turns_ns;           /* period of the agents' turns */
    uint32_t deaf;              /* NIC that hears nothing; MATRIX_NONE */
    bool always;                /* and in all rounds */
    uint32_t parted;   /* from half of the rounds on, hosts before it hear no others; 0: all do */
    uint32_t wide;     /* host whose clock has a bound of 20 us */
    uint32_t thin[2];  /* from here to there source ports 1 and 3 lead nowhere; equal: none */
    uint32_t thin_too; /* and from here to this one; 0: none */
    bool trunk;        /* a fourth of all ports from leaf 0 to leaf 1 leads nowhere */
    uint32_t remarks_out, remarks_in; /* NICs; MATRIX_NONE */
    bool remarks_one;                 /* only packets to the NIC of the first host */
};

/* Leaves: hosts 0 to 3, hosts 4 to 7. NICs 5 and 13 are exchanged. */
static uint16_t declared(uint32_t nic)
{
    return nic / RAILS < HOSTS / 2 ? 0 : 1;
}

static uint16_t leaf(uint32_t nic)
{
    return nic == 5 || nic == 13 ? (uint16_t)!declared(nic) : declared(nic);
}

static int64_t truth(uint32_t from, uint32_t to)
{
    return (leaf(from) == leaf(to) ? 2000 : 5000) + (from == 6 ? 25000 : 0) + (to == 9 ? 9000 : 0);
}

static void setup_marked(struct world *w, uint8_t dscp)
{
    memset(w, 0, sizeof(*w));
    w->plan = plan_of(HOSTS, RAILS);
    w->plan.dscp = dscp;
    w->deaf = w->wide = w->remarks_out = w->remarks_in = MATRIX_NONE;
    w->turns_ns = 10 * NS_PER_MS;
    for (uint32_t h = 0; h < HOSTS; h++) {
        const uint32_t nics[RAILS] = {h * RAILS, h * RAILS + 1};
        w->memory[h] = malloc((size_t)matrix_rounds(&w->plan) * MATRIX_SEAT_BYTES * RAILS);
        assert_non_null(w->memory[h]);
        matrix_part_init(&w->part[h], &w->plan, nics, RAILS, w->memory[h]);
    }
    w->cells = malloc(matrix_size(&w->plan));
    assert_non_null(w->cells);
    matrix_init(&w->m, &w->plan, w->cells);
    for (uint32_t i = 0; i < NICS; i++) {
        w->m.nics[i].leaf = declared(i);
    }
}

static void setup_world(struct world *w)
{
    setup_marked(w, 0);
}

/* True if the path of this source port works. */
static bool arrives(const struct world *w, uint32_t from, uint32_t to, uint8_t port)
{
    return !(w->thin[0] != w->thin[1] && from == w->thin[0] &&
             (to == w->thin[1] || (w->thin_too > 0 && to == w->thin_too)) &&
             (port == 1 || port == 3)) &&
           !(w->trunk && declared(from) == 0 && declared(to) == 1 && (from + to + port) % 4 == 0);
}

static uint8_t class_of(const struct world *w, uint32_t from, uint32_t to, uint8_t dscp)
{
    const bool another =
        (from == w->remarks_out && (!w->remarks_one || to / RAILS == 0)) || to == w->remarks_in;
    return another ? 0 : dscp;
}

static void deliver(struct world *w, struct matrix_packet *p, uint32_t from, int64_t left)
{
    const uint32_t to = p->other;
    struct matrix_packet q = *p;
    q.seat = to % RAILS;
    q.other = from;
    const bool cut = (w->always || left > (BEGIN + matrix_end_ns(&w->plan)) / 2) &&
                     (from / RAILS < w->parted) != (to / RAILS < w->parted);
    q.dscp_came = class_of(w, from, to, p->dscp);
    if (to != w->deaf && !cut && arrives(w, from, to, p->port)) {
        assert_true(matrix_part_on_packet(&w->part[to / RAILS], &q, left + truth(from, to), 60));
        assert_false(matrix_part_on_packet(&w->part[to / RAILS], &q, left, 60)); /* a copy */
    }
}

static void play(struct world *w)
{
    const int64_t end = matrix_end_ns(&w->plan), half = (BEGIN + end) / 2;
    for (int64_t now = BEGIN - 50 * NS_PER_MS; now < end + 150 * NS_PER_MS; now += w->turns_ns) {
        for (uint32_t h = 0; h < HOSTS; h++) {
            struct matrix_packet p, stamps[RAILS * PACKETS];
            int count = 0;
            if (w->stopped[h] && now < half && now > (BEGIN + half) / 2) {
                continue;
            }
            matrix_part_turn(&w->part[h], now, now > half ? w->why[h] : MATRIX_FINE);
            while (matrix_part_next(&w->part[h], &p)) {
                const uint32_t from = h * RAILS + p.seat;
                deliver(w, &p, from, now);
                if (p.packet != MATRIX_TELLS) {
                    stamps[count++] = p;
                }
            }
            for (int i = 0; i < count; i++) { /* the kernel's stamp comes later */
                matrix_part_on_stamp(&w->part[h], stamps[i].seat, stamps[i].round, stamps[i].packet,
                                     now, h == w->wide ? 20000 : 40);
            }
        }
    }
    for (uint32_t i = 0; i < NICS; i++) {
        const struct matrix_part *part = &w->part[i / RAILS];
        const struct matrix_seat *s = &part->seats[i % RAILS];
        assert_true(part->over);
        assert_int_equal(
            matrix_take(&w->m, i, s->sent, s->heard, s->delay, part->rounds, matrix_seat_bound(s)),
            0);
        assert_true(matrix_take(&w->m, i, s->sent, s->heard, s->delay, part->rounds, 0) < 0);
    }
    matrix_judge(&w->m, NULL);
}

static void end_world(struct world *w)
{
    for (uint32_t h = 0; h < HOSTS; h++) {
        free(w->memory[h]);
    }
    free(w->cells);
}

/* A wide bound of one host's clock makes that host's delays unsure, and no other's: theirs are medians over all. */
static void test_a_wide_clock_is_its_own(void **state)
{
    struct world w;
    setup_world(&w);
    w.wide = 2;
    play(&w);
    for (uint32_t i = 0; i < NICS; i++) {
        assert_int_equal(w.m.nics[i].bound_ns, i / RAILS == 2 ? 100 : 111);
    }
    end_world(&w);
}

static void test_bounds_of_a_seat(void **state)
{
    static struct matrix_part part;
    const uint32_t nics[1] = {0};
    uint32_t least = 0;
    struct matrix_plan plan = plan_of(HOSTS, RAILS);
    void *memory = malloc((size_t)matrix_rounds(&plan) * MATRIX_SEAT_BYTES);
    assert_non_null(memory);
    for (uint64_t ns = 0; ns <= UINT32_MAX; ns += 1 + ns / 5) {
        matrix_part_init(&part, &plan, nics, 1, memory);
        struct matrix_seat *s = &part.seats[0];
        uint32_t sure = 0;
        for (uint32_t k = 0; k < part.rounds; k++) {
            const uint32_t other = matrix_partner(&part.plan, k, 0);
            const int64_t at = BEGIN + k * plan.round_ns;
            if (other != MATRIX_NONE) {
                /* every fourth bound is the largest possible */
                const uint32_t bound = sure % 4 == 3 ? UINT32_MAX : (uint32_t)ns;
                sure++;
                for (uint8_t n = 0; n < 2; n++) {
                    assert_true(matrix_part_on_packet(
                        &part,
                        &(struct matrix_packet){
                            .round = k, .packet = n, .left_ns = n * at, .other = other},
                        at + 1, bound));
                }
            }
        }
        const uint32_t told = matrix_seat_bound(s);
        assert_true(told >= ns && told <= ns + ns / 4 + 1 && told >= least);
        least = told;
    }
    free(memory);
}

static void test_all_measured(void **state)
{
    struct world w;
    setup_world(&w);
    play(&w);
    assert_int_equal(w.m.cells, NICS * (NICS - RAILS));
    assert_int_equal(w.m.measured, w.m.cells);
    for (uint32_t i = 0; i < NICS; i++) {
        const struct matrix_nic *n = &w.m.nics[i];
        for (uint32_t j = 0; j < NICS; j++) {
            const struct matrix_cell c = matrix_cell_of(&w.m, i, j);
            if (i / RAILS != j / RAILS) {
                assert_int_equal(c.why, MATRIX_FINE);
                assert_int_equal(c.sent, PACKETS);
                assert_int_equal(c.heard, PACKETS);
                assert_int_equal(c.delay, delay_encode(truth(i, j)));
            } else {
                assert_int_equal(c.why, MATRIX_SAME_HOST);
            }
        }
        /* NIC 6 sends late, 9 receives late, 5 and 13 are exchanged; all others are well */
        assert_int_equal(n->out_ns > w.m.limit_ns, i == 6);
        assert_int_equal(n->in_ns > w.m.limit_ns, i == 9);
        assert_int_equal(n->leaf_found, leaf(i));
        assert_int_equal(n->late_cells, 0);
        assert_int_equal(n->bound_ns, 100);
        assert_int_equal(n->unmeasured + n->dead_out + n->dead_in + n->lost_in, 0);
    }
    assert_in_range(w.m.nics[6].out_ns, 24000, 26000);
    static const char *const names[] = {"leaf0", "leaf1"};
    char words[MATRIX_WORDS_SIZE];
    assert_non_null(strstr(matrix_words(&w.m, 5, names, words), "leaf leaf1, declared leaf0"));
    end_world(&w);
}

/* For a pair of one rail two of five ports lead nowhere: that direction is named, at both ends, and counts as no NIC's loss. If
 * two NICs of a leaf don't get such packets, both are witnesses about the sending NIC. The sending NIC is the only witness about
 * each of them. */
static void test_a_dead_path(void **state)
{
    static const uint32_t too[] = {0, 14, 4}; /* none; one of the same leaf; one of another leaf */
    for (size_t k = 0; k < sizeof(too) / sizeof(too[0]); k++) {
        struct world w;
        struct matrix_thin t;
        setup_world(&w);
        w.thin[0] = 2;
        w.thin[1] = 12;
        w.thin_too = too[k];
        play(&w);
        for (uint32_t i = 0; i < NICS; i++) {
            uint32_t at = 0, count = 0;
            while (matrix_next_thin(&w.m, NULL, i, &at, &t)) {
                assert_true(t.from == 2 && (t.to == 12 || t.to == too[k]));
                assert_true(t.sent == PACKETS && t.heard == PACKETS - 2);
                assert_int_equal(t.partners, i == 2 && too[k] == 14 ? 2 : 1);
                count++;
            }
            assert_int_equal(count, i == 2                 ? 1 + (too[k] > 0)
                                    : i == 12              ? 1
                                    : i > 0 && i == too[k] ? 1
                                                           : 0);
            assert_int_equal(w.m.nics[i].dead_out + w.m.nics[i].dead_in, 0);
        }
        end_world(&w);
    }
}

/* Clears all counts and judges again. */
static void judge_anew(struct world *w)
{
    for (uint32_t i = 0; i < w->m.count; i++) {
        struct matrix_nic *n = &w->m.nics[i];
        *n = (struct matrix_nic){.host = n->host,
                                 .rail = n->rail,
                                 .there = n->there,
                                 .why = n->why,
                                 .leaf = n->leaf,
                                 .told = n->told,
                                 .bound_ns = n->bound_ns,
                                 .steady_s = n->steady_s,
                                 .leaf_found = MATRIX_LEAF_NONE};
    }
    w->m.cells = w->m.measured = 0;
    memset(w->m.unmeasured, 0, sizeof(w->m.unmeasured));
    matrix_judge(&w->m, NULL);
}

/* The last host reports for each NIC of six others that it heard one packet less of three: it is the only witness of each. */
static void test_one_host_proves_no_path(void **state)
{
    struct world w;
    struct matrix_thin t;
    uint32_t named = 0;
    setup_world(&w);
    play(&w);
    for (uint32_t k = 0; k < 6; k++) {
        const uint32_t rail = k / 3;
        w.m.heard[(k * RAILS + rail) * NICS + NICS - RAILS + rail]--;
    }
    judge_anew(&w);
    for (uint32_t i = 0; i < NICS - RAILS; i++) {
        uint32_t at = 0;
        while (matrix_next_thin(&w.m, NULL, i, &at, &t)) {
            assert_true(t.from == i && t.to >= NICS - RAILS);
            assert_int_equal(t.partners, 1);
            named++;
        }
    }
    assert_int_equal(named, 6);
    end_world(&w);
}

/* The partners of the first NIC in the second matrix. Hosts 0 and 1 have changed places there. */
static uint32_t partners_of_second(struct world *first, struct world *second, bool in_both)
{
    uint32_t places[NICS], partners = UINT32_MAX, at = 0;
    struct matrix_thin t;
    for (uint32_t i = 0; i < NICS; i++) {
        places[i] = i < 2 * RAILS ? i ^ RAILS : i;
    }
    places[10] = MATRIX_NONE; /* this NIC is not in both */
    judge_anew(first);
    judge_anew(second);
    while (matrix_next_thin(&second->m, in_both ? &(struct matrix_first){&first->m, places} : NULL,
                            0, &at, &t)) {
        assert_true(t.from == 0);
        assert_true(partners == UINT32_MAX || partners == t.partners);
        partners = t.partners;
    }
    return partners;
}

/* A host reports in both matrices that it heard one packet less. A packet that is lost by chance to a NIC of the host's leaf, in
 * one of the two, makes no second witness. The same NIC in both does. */
static void test_chance_is_no_second_witness(void **state)
{
    enum { LIAR = 14, STRAY = 12, NEW = 10 };
    static const struct {
        uint32_t stray;
        bool first, second;
        uint32_t partners;
    } cases[] = {{STRAY, false, false, 1},
                 {STRAY, true, false, 1},
                 {STRAY, false, true, 1},
                 {STRAY, true, true, 2},
                 {NEW, true, true, 1}};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct world first, second;
        setup_world(&first);
        setup_world(&second);
        play(&first);
        play(&second);
        first.m.heard[RAILS * NICS + LIAR]--;
        second.m.heard[LIAR]--;
        first.m.heard[RAILS * NICS + cases[k].stray] -= cases[k].first;
        second.m.heard[cases[k].stray] -= cases[k].second;
        assert_int_equal(partners_of_second(&first, &second, false), 1 + cases[k].second);
        assert_int_equal(partners_of_second(&first, &second, true), cases[k].partners);
        end_world(&first);
        end_world(&second);
    }
}

/* Between two rails all packets leave by one port, so a loss there belongs to no path. */
static void test_other_rails_have_one_port(void **state)
{
    const struct matrix_plan p = plan_of(HOSTS, RAILS);
    for (uint32_t round = 0; round < matrix_rounds(&p); round++) {
        for (uint32_t k = 0; k < PACKETS; k++) {
            assert_int_equal(matrix_port(&p, round, k), round < matrix_rail_rounds(&p) ? k : 0);
            assert_false(matrix_is_marked(&p, round, k));
        }
    }
}

/* One trunk of four is dead: all NICs of its leaf lose a part. It is no NIC's loss, and no single path. */
static void test_a_dead_trunk_is_no_nics_loss(void **state)
{
    struct world w;
    struct matrix_thin t;
    static const char *const names[] = {"leaf0", "leaf1"};
    char words[MATRIX_WORDS_SIZE];
    setup_world(&w);
    w.trunk = true;
    play(&w);
    for (uint32_t i = 0; i < NICS; i++) {
        uint32_t at = 0;
        const struct matrix_nic *n = &w.m.nics[i];
        assert_false(matrix_next_thin(&w.m, NULL, i, &at, &t));
        assert_int_equal(n->own_lost_out + n->own_lost_in, 0);
        assert_true(n->shared_lost > 0); /* with two leaves it isn't known which one it is */
    }
    assert_non_null(strstr(matrix_words(&w.m, 0, names, words), ", shared "));
    end_world(&w);
}

/* A NIC loses packets on all paths: that loss is the NIC's own, and no path is named for it. */
static void test_a_lossy_nic_has_no_dead_path(void **state)
{
    struct world w;
    struct matrix_thin t;
    setup_world(&w);
    play(&w);
    for (uint32_t j = 0; j < NICS; j++) {
        if (j / RAILS != 2 && j % RAILS == 0) { /* NIC 4 of host 2 */
            w.m.heard[4 * w.m.count + j] -= 1;
        }
    }
    judge_anew(&w);
    assert_int_equal(w.m.nics[4].own_lost_out, HOSTS - 2); /* except those with one host */
    for (uint32_t i = 0; i < NICS; i++) {
        uint32_t at = 0;
        assert_false(matrix_next_thin(&w.m, NULL, i, &at, &t));
    }
    end_world(&w);
}

/* For each NIC of the first host the last host reports that it heard one packet of five, or that one and four more. No other host
 * confirms it, so it is no loss of these NICs. */
static void test_one_host_proves_no_loss(void **state)
{
    for (uint32_t hosts = 1; hosts <= 5; hosts++) {
        struct world w;
        setup_world(&w);
        play(&w);
        for (uint32_t i = 0; i < hosts * RAILS; i++) {
            for (uint32_t j = NICS - RAILS; j < NICS; j++) {
                w.m.heard[i * NICS + j] -= PACKETS - 1;
            }
        }
        judge_anew(&w);
        for (uint32_t i = 0; i < NICS; i++) {
            const struct matrix_nic *n = &w.m.nics[i];
            assert_true(i >= NICS - RAILS || n->own_lost_out + n->own_lost_in == 0);
            assert_int_equal(n->pair_lost, hosts == 1 && (i < RAILS || i >= NICS - RAILS)
                                               ? RAILS * (PACKETS - 1)
                                               : 0);
        }
        end_world(&w);
    }
}

/* The same for one NIC that also loses packets to other hosts: by chance, which hides nothing, or as with that host. */
static void test_a_pairs_loss_beside_others(void **state)
{
    for (uint32_t others = 0; others < HOSTS - 1; others++) {
        struct world w;
        setup_world(&w);
        play(&w);
        const bool chance = others <= 2;
        for (uint32_t j = NICS - RAILS; j < NICS; j++) {
            w.m.heard[j] -= PACKETS - 1;
        }
        for (uint32_t h = 1; h <= others; h++) {
            w.m.heard[h * RAILS] -= chance ? 1 : PACKETS - 1;
        }
        judge_anew(&w);
        assert_int_equal(w.m.nics[0].own_lost_out, others * (chance ? 1 : PACKETS - 1));
        for (uint32_t i = 0; i < NICS; i++) {
            const struct matrix_nic *n = &w.m.nics[i];
            const bool one = i == 0, last = i >= NICS - RAILS;
            assert_true(one || n->own_lost_out + n->own_lost_in == 0);
            assert_int_equal(n->pair_lost, !chance || (!one && !last) ? 0
                                           : one                      ? RAILS * (PACKETS - 1)
                                                                      : PACKETS - 1);
        }
        end_world(&w);
    }
}

/* If a NIC's leaf port rewrites marks, in either direction, that is counted for the NIC. If only some ways do, it counts for
 * none. */
static void test_marks(void **state)
{
    enum { KEPT, OUT, IN, SOME, CASES };
    for (int k = KEPT; k < CASES; k++) {
        struct world w;
        setup_marked(&w, 26);
        w.remarks_out = k == OUT || k == SOME ? 6 : MATRIX_NONE;
        w.remarks_in = k == IN ? 6 : MATRIX_NONE;
        w.remarks_one = k == SOME;
        play(&w);
        for (uint32_t i = 0; i < NICS; i++) {
            const struct matrix_nic *n = &w.m.nics[i];
            assert_int_equal(n->marks_out.came, HOSTS - 1);
            assert_int_equal(n->marks_in.came, HOSTS - 1);
            assert_int_equal(n->marked, 2 * (HOSTS - 1));
            assert_int_equal(n->marks_out.own, k == OUT && i == 6 ? HOSTS - 1 : 0);
            assert_int_equal(n->marks_in.own, k == IN && i == 6 ? HOSTS - 1 : 0);
            assert_int_equal(n->changed_elsewhere, k == SOME && (i == 6 || i == 0));
        }
        end_world(&w);
    }
}

/* A fleet of one rail. of_leaf: hosts for each leaf; 0: leaves are unknown. */
struct marking {
    const char *what;
    uint32_t hosts, of_leaf;
    bool (*changes)(uint32_t from, uint32_t to); /* its mark */
    bool lossy;                                  /* a packet of each pair is lost */
    struct {
        uint32_t out, in, elsewhere, within, across;
    } first, last; /* host */
};
enum { OF_LEAF = 4 };

static bool all_change(uint32_t from, uint32_t to)
{
    return from != to;
}

static bool none_changes(uint32_t from, uint32_t to)
{
    return from == to;
}

static bool across_changes(uint32_t from, uint32_t to)
{
    return from / OF_LEAF != to / OF_LEAF;
}

static bool first_leaf_changes(uint32_t from, uint32_t to)
{
    return from < OF_LEAF || to < OF_LEAF;
}

static bool first_sends_another(uint32_t from, uint32_t to)
{
    return from == 0 && to != 0;
}

static bool first_says_so(uint32_t from, uint32_t to)
{
    return from != 0 && to == 0;
}

static void play_marks(const struct marking *x, struct matrix *m, void **cells)
{
    struct matrix_plan p = plan_of(x->hosts, 1);
    p.dscp = 26;
    *cells = malloc(matrix_size(&p));
    assert_non_null(*cells);
    matrix_init(m, &p, *cells);
    for (uint32_t i = 0; i < x->hosts; i++) {
        m->nics[i].told = true;
        m->nics[i].leaf = x->of_leaf > 0 ? (uint16_t)(i / x->of_leaf) : MATRIX_LEAF_NONE;
        for (uint32_t j = 0; j < x->hosts; j++) {
            const size_t at = (size_t)i * x->hosts + j;
            m->sent[at] = PACKETS | MATRIX_MARK;
            m->heard[at] = (uint8_t)((PACKETS - x->lossy) | (x->changes(i, j) ? 0 : MATRIX_MARK));
            m->delay[at] = i == j ? 0 : 100;
        }
    }
    matrix_judge(m, NULL);
}

/* For any number of hosts: a change within a leaf is the leaf's, and a change only between leaves is no host's. One partner's
 * report fails no host. */
static void test_whose_mark_it_is(void **state)
{
    static const struct marking all[] = {
        {"two on a leaf that changes all",
         2,
         4,
         all_change,
         false,
         {0, 0, 2, 2, 0},
         {0, 0, 2, 2, 0}},
        {"three on a leaf that changes all", 3, 4, all_change, false, {2, 2}, {2, 2}},
        {"four on a leaf that changes all", 4, 4, all_change, false, {3, 3}, {3, 3}},
        {"a spine that changes all", 8, 4, across_changes, false, {0, 0, 8, 0, 8}, {0, 0, 8, 0, 8}},
        {"it, no leaf known", 8, 0, across_changes, false, {0, 0, 8, 0, 0}, {0, 0, 8, 0, 0}},
        {"one leaf of two", 8, 4, first_leaf_changes, false, {7, 7}, {0}},
        {"one leaf of three", 12, 4, first_leaf_changes, false, {11, 11}, {0}},
        {"two, each on its leaf", 2, 1, all_change, false, {0, 0, 2, 0, 2}, {0, 0, 2, 0, 2}},
        {"a port of three, each on its leaf", 3, 1, first_sends_another, false, {2}, {0}},
        {"a port of many", 8, 4, first_sends_another, false, {7}, {0}},
        {"one says so of two", 2, 4, first_says_so, false, {0, 0, 1, 1, 0}, {0, 0, 1, 1, 0}},
        {"one says so of many", 8, 4, first_says_so, false, {0, 7}, {0}},
        {"none", 3, 4, none_changes, false, {0}, {0}},
        {"none is known", 3, 4, all_change, true, {0}, {0}},
    };
    for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
        const struct marking *x = &all[k];
        static const char *const names[] = {"leaf0", "leaf1", "leaf2"};
        struct matrix m;
        void *cells;
        char words[MATRIX_WORDS_SIZE], is[128];
        play_marks(x, &m, &cells);
        for (uint32_t i = 0; i < x->hosts; i += x->hosts - 1) {
            snprintf(is, sizeof(is),
                     ", marked %u, remarked_out %u, remarked_in %u, elsewhere %u, within %u, "
                     "across %u",
                     x->lossy ? 0 : 2 * (x->hosts - 1), i == 0 ? x->first.out : x->last.out,
                     i == 0 ? x->first.in : x->last.in,
                     i == 0 ? x->first.elsewhere : x->last.elsewhere,
                     i == 0 ? x->first.within : x->last.within,
                     i == 0 ? x->first.across : x->last.across);
            if (strstr(matrix_words(&m, i, names, words), is) == NULL) {
                fail_msg("%s: host %u: %s, not %s", x->what, i, words, is);
            }
        }
        free(cells);
    }
}

/* Names of leaves and figures that are as long as they may be. */
static void test_words_have_room(void **state)
{
    char name[64], words[MATRIX_WORDS_SIZE];
    const char *const names[] = {name};
    const struct matrix_plan p = plan_of(2, 1);
    void *cells = malloc(matrix_size(&p));
    struct matrix m;
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    matrix_init(&m, &p, cells);
    struct matrix_nic *n = &m.nics[0];
    memset(n, 0xff, sizeof(*n));
    n->leaf = n->leaf_found = 0;
    n->steady_s = UINT32_MAX - 1;
    n->out_ns = n->in_ns = n->drift_out_ns = n->drift_in_ns = INT64_MIN;
    n->there = n->told = n->delay_known = n->drift_known = n->late_by_one = m.parted = true;
    m.limit_ns = m.near_ns = m.far_ns = INT64_MIN;
    memset(n->why_not, 0, sizeof(n->why_not));
    (void)matrix_words(&m, 0, names, words);
    assert_true(strlen(words) < MATRIX_WORDS_SIZE - 1);
    assert_non_null(strstr(words, ", drift_out "));
    free(cells);
}

/* An older agent marks nothing: so nothing is known of marks, and none counts as rewritten. */
static void test_without_marks(void **state)
{
    struct world w;
    static const char *const names[] = {"leaf0", "leaf1"};
    char words[MATRIX_WORDS_SIZE];
    setup_world(&w);
    play(&w);
    for (uint32_t i = 0; i < NICS; i++) {
        assert_int_equal(w.m.nics[i].marks_out.came + w.m.nics[i].marked, 0);
        assert_null(strstr(matrix_words(&w.m, i, names, words), "marked"));
    }
    w.m.plan.dscp = 26; /* the plan asked for marks */
    assert_non_null(strstr(matrix_words(&w.m, 0, names, words), ", unmarked 14"));
    end_world(&w);
}

/* One turn a round: all packets leave at once. Delays are still measured. */
static void test_late_agents(void **state)
{
    struct world w;
    setup_world(&w);
    w.turns_ns = 95 * NS_PER_MS;
    play(&w);
    assert_int_equal(w.m.unmeasured[MATRIX_CLOCK], 0);
    assert_true(w.m.measured * 10 > w.m.cells * 9);
    end_world(&w);
}

static void test_missing_has_its_reason(void **state)
{
    struct world w;
    setup_world(&w);
    w.why[0] = MATRIX_CLOCK; /* from the middle on */
    w.why[1] = MATRIX_BUSY;
    w.stopped[2] = true;
    w.deaf = 7;
    play(&w);
    assert_true(w.m.measured < w.m.cells);
    assert_true(w.m.unmeasured[MATRIX_CLOCK] > 0 && w.m.unmeasured[MATRIX_BUSY] > 0 &&
                w.m.unmeasured[MATRIX_LATE] > 0);
    assert_int_equal(w.m.unmeasured[MATRIX_SILENT], 0);
    for (uint32_t i = 0; i < NICS; i++) {
        for (uint32_t j = 0; j < NICS; j++) {
            const struct matrix_cell c = matrix_cell_of(&w.m, i, j);
            const uint32_t a = i / RAILS, b = j / RAILS;
            if (a != b && c.why != MATRIX_FINE) { /* no other hosts' cells */
                assert_true(a < 3 || b < 3);
            } else if (a != b) {
                assert_int_equal(c.heard, j == 7 ? 0 : c.sent);
            }
        }
    }
    assert_true(w.m.nics[7].dead_in > 8 && w.m.nics[7].dead_out == 0);
    assert_int_equal(w.m.nics[15].dead_in, 0);
    end_world(&w);
}

/* The fabric falls apart in the middle. Earlier measurements stay. If it falls into halves, no NIC has failed. If one host is cut
 * off, its NICs have. */
static void test_parted(void **state)
{
    static const struct {
        uint32_t first;
        bool whole; /* in all rounds */
    } cases[] = {{HOSTS / 2, true}, {HOSTS / 2, false}, {1, true}};
    static const char *const names[] = {"leaf0", "leaf1"};
    for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct world w;
        char words[MATRIX_WORDS_SIZE];
        uint32_t dead = 0;
        setup_world(&w);
        w.always = cases[k].whole;
        w.parted = cases[k].first;
        play(&w);
        assert_int_equal(w.m.measured, w.m.cells);
        for (uint32_t i = 0; i < NICS; i++) {
            const struct matrix_nic *n = &w.m.nics[i];
            const bool alone = cases[k].first == 1 && i < RAILS;
            assert_int_equal(n->own_dead_in > 0 && n->own_dead_out > 0, alone);
            assert_int_equal(strstr(matrix_words(&w.m, i, names, words), ", parted") != NULL,
                             cases[k].first > 1 && cases[k].whole);
            dead += n->partners > 0;
        }
        assert_true(cases[k].first == 1 ? dead == 0 : dead == NICS);
        end_world(&w);
    }
}

/* A NIC that never reported has its host's reason. Its packets that arrived are known at the other end. */
static void test_silent(void **state)
{
    struct world w;
    setup_world(&w);
    w.m.nics[3].why = MATRIX_OLD;
    w.m.nics[3].told = true; /* even so its report is not taken */
    const struct matrix_seat *s = &w.part[0].seats[0];
    assert_true(matrix_take(&w.m, 3, s->sent, s->heard, s->delay, w.part[0].rounds, 0) < 0);
    assert_true(matrix_take(&w.m, 0, s->sent, s->heard, s->delay, w.part[0].rounds - 1, 0) < 0);
    assert_true(matrix_take(&w.m, NICS, s->sent, s->heard, s->delay, w.part[0].rounds, 0) < 0);
    assert_int_equal(matrix_cell_of(&w.m, 3, 8).why, MATRIX_OLD);
    assert_int_equal(matrix_cell_of(&w.m, 8, 3).why, MATRIX_SILENT);
    matrix_judge(&w.m, NULL);
    assert_int_equal(w.m.measured, 0);
    end_world(&w);
}

/* Bytes of a host that lies, or of a later release: they give no values beyond the known ones. */
static void test_any_bytes(void **state)
{
    struct world w;
    struct prng g;
    prng_init(&g, 9);
    setup_world(&w);
    for (uint32_t i = 0; i < NICS; i++) {
        uint8_t sent[256], heard[256];
        int16_t delay[256];
        for (int k = 0; k < 256; k++) {
            sent[k] = (uint8_t)prng_u64(&g);
            heard[k] = (uint8_t)prng_u64(&g);
            delay[k] = (int16_t)prng_u64(&g);
        }
        assert_int_equal(
            matrix_take(&w.m, i, sent, heard, delay, w.part[0].rounds, (uint32_t)prng_u64(&g)), 0);
    }
    matrix_judge(&w.m, NULL);
    uint64_t sum = 0;
    for (int why = 0; why < MATRIX_WHY_COUNT; why++) {
        sum += w.m.unmeasured[why];
    }
    assert_int_equal(sum, w.m.cells);
    for (uint32_t i = 0; i < NICS; i++) {
        for (uint32_t j = 0; j < NICS; j++) {
            const struct matrix_cell c = matrix_cell_of(&w.m, i, j);
            assert_true(c.why < MATRIX_WHY_COUNT && c.heard <= c.sent);
        }
    }
    end_world(&w);
}

static void test_drift(void **state)
{
    struct world a, b;
    setup_world(&a);
    setup_world(&b);
    play(&a);
    play(&b);
    for (uint32_t j = 0; j < NICS; j++) {
        int16_t *delay = &b.m.delay[4 * NICS + j];
        *delay = *delay != 0 ? (int16_t)delay_encode(delay_decode(*delay) + 600) : 0;
    }
    matrix_judge(&b.m, &a.m);
    for (uint32_t i = 0; i < NICS; i++) {
        assert_true(b.m.nics[i].drift_known);
        assert_int_equal(b.m.nics[i].drift_out_ns > 400, i == 4);
        assert_int_equal(b.m.nics[i].drift_in_ns, 0);
    }
    end_world(&a);
    end_world(&b);
}

/* The doubted hosts, four partners on each leaf in question, and so many others that the doubted are a fifth. */
static void test_who_measures_again(void **state)
{
    enum { MANY = 200, LEAF_HOSTS = 10 };
    const struct matrix_plan p = plan_of(MANY, 2);
    struct matrix m;
    bool doubted[MANY] = {false}, hosts[MANY];
    void *memory = malloc(matrix_size(&p));
    assert_non_null(memory);
    matrix_init(&m, &p, memory);
    for (uint32_t i = 0; i < m.count; i++) {
        m.nics[i].leaf = (uint16_t)(i / 2 / LEAF_HOSTS);
        m.nics[i].told = i / 2 % LEAF_HOSTS != 3; /* one host of each leaf is silent */
    }
    assert_int_equal(matrix_again(&m, doubted, NULL, 0, hosts), 0);
    doubted[57] = true;
    m.nics[57 * 2].leaf_found = 11;
    uint32_t of_own = 0, of_other = 0, leaves = 0;
    assert_int_equal(matrix_again(&m, doubted, NULL, 0, hosts), 16);
    for (uint32_t h = 0, last = MANY; h < MANY; h++) {
        assert_true(!hosts[h] || h % LEAF_HOSTS != 3);
        of_own += hosts[h] && h / LEAF_HOSTS == 5 && h != 57;
        of_other += hosts[h] && h / LEAF_HOSTS == 11;
        leaves += hosts[h] && h / LEAF_HOSTS != last;
        last = hosts[h] ? h / LEAF_HOSTS : last;
    }
    assert_true(hosts[57] && of_own >= 4 && of_other >= 4 && leaves > 6);
    for (uint32_t h = 0; h < 30; h++) { /* silent ones, too: they are doubted themselves */
        doubted[h] = true;
    }
    assert_int_equal(matrix_again(&m, doubted, NULL, 0, hosts), 31 * 5);
    memset(doubted, true, sizeof(doubted));
    assert_int_equal(matrix_again(&m, doubted, NULL, 0, hosts), MANY);
    free(memory);
}

/* Packets that are not of the plan are dropped. */
static void test_strangers(void **state)
{
    struct world w;
    struct matrix_packet p = {.round = 0, .packet = 0, .seat = 0, .other = 0};
    setup_world(&w);
    struct matrix_part *part = &w.part[0];
    matrix_part_turn(part, BEGIN + 2 * NS_PER_MS, MATRIX_FINE);
    const uint32_t other = matrix_partner(&w.plan, 0, 0);
    for (uint32_t i = 0; i < NICS; i++) {
        p.other = i;
        assert_int_equal(matrix_part_on_packet(part, &p, BEGIN, 0), i == other);
    }
    p.other = other;
    p.packet = PACKETS + 1;
    assert_false(matrix_part_on_packet(part, &p, BEGIN, 0));
    p.packet = 1;
    p.round = 9; /* ahead */
    p.other = matrix_partner(&w.plan, 9, 0);
    assert_false(matrix_part_on_packet(part, &p, BEGIN, 0));
    p.round = UINT32_MAX;
    assert_false(matrix_part_on_packet(part, &p, BEGIN, 0));
    p.seat = RAILS;
    assert_false(matrix_part_on_packet(part, &p, BEGIN, 0));
    /* a job begins: the rest is left */
    matrix_part_end(part, MATRIX_BUSY);
    struct matrix_packet next;
    matrix_part_turn(part, BEGIN + 300 * NS_PER_MS, MATRIX_FINE);
    assert_false(matrix_part_next(part, &next));
    assert_int_equal(part->seats[0].sent[5] >> 4, MATRIX_BUSY);
    end_world(&w);
}

/* Hosts report unknown reasons, and more packets than the plan has: other hosts' results stay the same. */
static void test_liars(void **state)
{
    enum { NO_REASON = 4, TOO_MANY = 8, ROUNDS = HOSTS - 1 + HOSTS };
    struct world w;
    setup_world(&w);
    const uint32_t rounds = w.part[0].rounds;
    assert_int_equal(rounds, ROUNDS);
    uint8_t sent[ROUNDS], heard[ROUNDS];
    int16_t delay[ROUNDS];
    for (uint32_t i = 0; i < NICS; i++) {
        for (uint32_t k = 0; k < rounds; k++) {
            const uint8_t none = (uint8_t)((MATRIX_WHY_COUNT + k % (16 - MATRIX_WHY_COUNT)) << 4);
            sent[k] = i == NO_REASON ? none : i == TOO_MANY ? 15 : PACKETS;
            heard[k] = i == NO_REASON ? none : PACKETS;
            delay[k] = 100;
        }
        assert_int_equal(matrix_take(&w.m, i, sent, heard, delay, rounds, 0), 0);
    }
    matrix_judge(&w.m, NULL);
    uint64_t unmeasured = 0;
    for (int why = 0; why < MATRIX_WHY_COUNT; why++) {
        unmeasured += why != MATRIX_FINE ? w.m.unmeasured[why] : 0;
    }
    assert_int_equal(unmeasured, w.m.cells - w.m.measured);
    assert_int_equal(w.m.unmeasured[MATRIX_SILENT], 2 * (NICS - RAILS));
    for (uint32_t i = 0; i < NICS; i++) {
        const struct matrix_nic *n = &w.m.nics[i];
        assert_int_equal(n->why_not[MATRIX_SILENT], n->unmeasured);
        assert_int_equal(n->dead_out + n->dead_in + n->lost_out + n->lost_in, 0);
        assert_int_equal(n->sent_out, n->measured_out * PACKETS);
        assert_int_equal(n->sent_in, n->measured_in * PACKETS);
    }
    end_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_pair_once),
        cmocka_unit_test(test_even_sample),
        cmocka_unit_test(test_plans_refused),
        cmocka_unit_test(test_all_measured),
        cmocka_unit_test(test_a_wide_clock_is_its_own),
        cmocka_unit_test(test_bounds_of_a_seat),
        cmocka_unit_test(test_missing_has_its_reason),
        cmocka_unit_test(test_parted),
        cmocka_unit_test(test_silent),
        cmocka_unit_test(test_drift),
        cmocka_unit_test(test_a_dead_path),
        cmocka_unit_test(test_one_host_proves_no_path),
        cmocka_unit_test(test_chance_is_no_second_witness),
        cmocka_unit_test(test_other_rails_have_one_port),
        cmocka_unit_test(test_a_dead_trunk_is_no_nics_loss),
        cmocka_unit_test(test_a_lossy_nic_has_no_dead_path),
        cmocka_unit_test(test_one_host_proves_no_loss),
        cmocka_unit_test(test_a_pairs_loss_beside_others),
        cmocka_unit_test(test_marks),
        cmocka_unit_test(test_whose_mark_it_is),
        cmocka_unit_test(test_words_have_room),
        cmocka_unit_test(test_without_marks),
        cmocka_unit_test(test_late_agents),
        cmocka_unit_test(test_any_bytes),
        cmocka_unit_test(test_who_measures_again),
        cmocka_unit_test(test_offers_refused),
        cmocka_unit_test(test_answers_take_turns),
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_liars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
