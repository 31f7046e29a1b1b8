/* By pairs of probes a link at a fraction of its rate can be told from busy links, and the inference names it. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/fleet/locate.h"
#include "core/mesh/internal.h"

#define PROBE_BITS 1808.0 /* on the wire */
#define FRAME_BITS 12304.0
#define SENT_NS    10000.0
#define STEP_NS    (25 * NS_PER_MS) /* between pairs: four peers */
#define FULL_MOST                                                                                  \
    0.65 /* wide, of those that count, through three full ports whose frames have one size */
#define FULL_TWO 0.3 /* through two */
#define ROW_FEW                                                                                    \
    8 /* wide, of a thousand pairs behind a row of frames, beside those that narrow ones outweigh */

/* A port that a pair passes: in a class of its own behind the rest of a frame, or in the queue itself. */
struct port {
    double mbps, busy;
};

/* What a mesh knows of one direction, and its clock's error against the peer's. */
struct heard {
    struct prng prng;
    struct spread_watch watch;
    struct gaps gaps;
    struct gaps_share share;
    struct mono now;
    double off_ns;
    struct spread_clock clock;
    struct spread_watch back,
        other;             /* the other direction, and another path of this one, both idle */
    uint32_t wide, narrow; /* the counts that would be reported */
    uint32_t gaps_found;
};

static double port_pass(struct prng *p, const struct port *port, double at, double *free)
{
    double start = at;

    if (prng_uniform(p) < port->busy) {
        start += FRAME_BITS * 1e3 / port->mbps * prng_uniform(p);
    }
    start = fmax(start, *free);
    *free = start + PROBE_BITS * 1e3 / port->mbps;
    return *free;
}

static void count(struct heard *h, const struct spread_pair *pair)
{
    double slow_ns;
    const enum spread s = spread_weigh(&h->watch, gaps_judge(&h->gaps, pair, &slow_ns));

    h->wide += s == SPREAD_WIDE ? spread_worth(pair, slow_ns, h->gaps.least_ns) : 0;
    h->narrow += s == SPREAD_NARROW;
}

/* Reports a pair as the mesh would. */
static void hear(struct heard *h, double sent, double apart, double owd)
{
    struct spread_pair pair;

    h->now.ns += STEP_NS;
    const int64_t gap = (int64_t)SENT_NS, off = (int64_t)h->off_ns;
    if (spread_add(&h->back, h->now, 1, gap, gap, 50000 - off, false, &pair)) {
        spread_wait(&h->clock, h->now, false, &pair);
    }
    if (spread_add(&h->other, h->now, 1, gap, gap, 50000 + off, false, &pair)) {
        spread_wait(&h->clock, h->now, true, &pair);
    }
    if (!spread_add(&h->watch, h->now, 1, (int64_t)sent, (int64_t)apart, (int64_t)(owd + h->off_ns),
                    false, &pair)) {
        return;
    }
    spread_wait(&h->clock, h->now, true, &pair);
    gaps_add(&h->gaps, &h->share, &pair, false);
    const struct gap *found = gaps_look(&h->gaps, h->now, GAPS_FREE);
    if (found) {
        const struct spread_pair *kept;

        h->gaps_found++;
        for (uint32_t i = 0; (kept = gaps_pair(&h->gaps, i)) != NULL; i++) {
            if (kept->at.ns >= found->since.ns) {
                count(h, kept);
            }
        }
    } else {
        count(h, &pair);
    }
}

/* Sends pairs through so many ports. */
static void pairs_pass(struct heard *h, const struct port *ports, uint32_t count, uint32_t pairs)
{
    struct prng *p = &h->prng;

    for (uint32_t k = 0; k < pairs; k++) {
        const double sent = SENT_NS + 300 * prng_exponential(p);
        double first = 0, second = sent;

        for (uint32_t i = 0; i < count; i++) {
            double free = 0;
            first = port_pass(p, &ports[i], first, &free);
            second = port_pass(p, &ports[i], second, &free);
        }
        hear(h, sent, second - first + 20 * prng_normal(p), fmin(first, second - sent));
    }
}

/* Sends pairs before a change, and counts those after it. */
static void after_change(struct heard *h, const struct port *before, const struct port *after,
                         uint32_t pairs, uint64_t seed)
{
    *h = (struct heard){.now = {NS_PER_S}};
    prng_init(&h->prng, seed);
    pairs_pass(h, before, 3, 200);
    h->wide = h->narrow = h->gaps_found = 0;
    pairs_pass(h, after, 3, pairs);
}

static void a_slow_link_spreads_pairs_alike(void **state)
{
    static const double shares[] = {0.05, 0.2, 0.5};
    static struct heard h;

    for (uint32_t i = 0; i < 3; i++) {
        for (double busy = 0; busy < 0.8; busy += 0.35) {
            const struct port good[] = {{200, 0.1}, {200, 0.1}, {200, busy}},
                              slow[] = {{200, 0.1}, {200 * shares[i], 0.1}, {200, busy}};
            const double gap = PROBE_BITS * 1e3 / 200 / shares[i];

            after_change(&h, good, slow, 200, 7 + i); /* five seconds */
            assert_true(spread_alike(gaps_of(&h.gaps, 0), gap));
            assert_true(h.wide > 12);
            assert_true(h.narrow <= (1 - NARROW_SHARE) * (h.wide + h.narrow));
        }
    }
}

/* Half of the rate is 9 us: if a clock is off by a part of that, no pair becomes narrow by it. */
static void a_clock_that_is_off_hides_nothing(void **state)
{
    const struct port good[] = {{200, 0.1}, {200, 0.1}, {200, 0.1}},
                      slow[] = {{200, 0.1}, {100, 0.1}, {200, 0.1}};
    static struct heard h;

    for (int off = -8000; off <= 8000; off += 1000) {
        h = (struct heard){.now = {NS_PER_S}};
        prng_init(&h.prng, 21);
        pairs_pass(&h, good, 3, 500);
        for (int i = 0; i < 100; i++) { /* gradually */
            h.off_ns = off * i / 100.0;
            pairs_pass(&h, good, 3, 4);
        }
        pairs_pass(&h, slow, 3, 200);
        assert_true(h.wide > 50);
        assert_int_equal(h.narrow, 0);
    }
}

/* Ports are full, and become full, for ten minutes: equal gaps are equal by chance. */
static void busy_links_agree_on_no_gap(void **state)
{
    static struct heard h;
    const uint32_t pairs = 10 * 60 * 40;

    for (uint32_t ports = 1; ports <= 3; ports++) {
        for (double busy = 0.4; busy <= 1.01; busy += 0.3) {
            const struct port idle[] = {{200, 0}, {200, 0}, {200, 0}};
            struct port full[] = {{200, 0}, {200, 0}, {200, 0}};

            for (uint32_t i = 0; i < ports; i++) {
                full[i].busy = fmin(1, busy);
            }
            after_change(&h, idle, full, pairs, 3 + ports);
            assert_true(h.gaps_found < 40);
            assert_true(h.wide < FULL_MOST * (h.wide + h.narrow + 1));
        }
    }
}

/* A port that always has a frame to send (0: never), all of one length. If both packets of a pair meet the same frame, they leave
 * one behind the other. Otherwise they are as far apart as one frame takes. */
static void full_port_pass(struct prng *p, double frame_ns, double probe_ns, double *first,
                           double *second)
{
    const double gone = *first + frame_ns * prng_uniform(p) + probe_ns,
                 after =
                     frame_ns > 0 ? ceil((*second - gone) / frame_ns) * frame_ns : *second - gone;

    *second = gone + fmax(after, 0) + probe_ns;
    *first = gone;
}

static double wide_share(double frame_ns, double probe_ns, uint32_t ports)
{
    static struct heard h;

    h = (struct heard){.now = {NS_PER_S}};
    prng_init(&h.prng, 11);
    for (int i = 0; i < 4000; i++) {
        double first = 0, second = SENT_NS;
        for (uint32_t k = 0; k < ports; k++) {
            full_port_pass(&h.prng, i < 60 ? 0 : frame_ns, probe_ns, &first, &second);
        }
        hear(&h, SENT_NS, second - first, fmin(first, second - SENT_NS));
    }
    return h.wide / (double)(h.wide + h.narrow + 1);
}

/* Many pairs through ports that are full of frames of one size are as far apart as one frame takes, or are pushed together. A
 * frame that takes about twice the pair's gap looks most like a slow link. */
static void full_ports_are_no_evidence(void **state)
{
    static const double sizes[] = {1538, 4134, 9254}; /* bytes on the wire */

    for (uint32_t f = 0; f < ARRAY_COUNT(sizes); f++) {
        for (uint32_t ports = 1; ports <= 3; ports++) {
            for (double frame = 1.2 * SENT_NS; frame < 40 * SENT_NS; frame *= 1.1) {
                assert_true(wide_share(frame, frame * PROBE_BITS / 8 / sizes[f], ports) <
                            (ports < 3 ? FULL_TWO : FULL_MOST));
            }
        }
    }
}

/* Probes have no class of their own, and a row of frames of one size stands before them at a full port. Some pairs get a frame
 * between them, all others leave one right behind the other. The worst case is a frame between nearly half of them. */
static void a_standing_queue_is_no_evidence(void **state)
{
    static const uint32_t rows[] = {2, 5, 20};
    static struct heard h;

    for (uint32_t r = 0; r < ARRAY_COUNT(rows); r++) {
        for (double frame = 2.4 * SENT_NS; frame < 40 * SENT_NS; frame *= 1.1) {
            const double probe_ns = frame * PROBE_BITS / FRAME_BITS;

            h = (struct heard){.now = {NS_PER_S}};
            prng_init(&h.prng, 12);
            for (int i = 0; i < 1000; i++) {
                const double row = i < 60 ? 0 : (rows[r] - prng_uniform(&h.prng)) * frame;
                const bool between = i >= 60 && prng_uniform(&h.prng) < SENT_NS / frame;
                const double first = row + probe_ns,
                             second = fmax(first + (between ? frame : 0), SENT_NS) + probe_ns;

                hear(&h, SENT_NS, second - first, fmin(first, second - SENT_NS));
            }
            assert_true(h.wide < FULL_MOST * (h.wide + h.narrow) + ROW_FEW);
        }
    }
}

/* Half of a rate of 200 Mb/s: twice as far apart, 9 us later. A pair that waited longer also met a queue. Four times as far
 * counts as far. */
static void a_pair_that_met_the_slow_link_alone_counts_twice(void **state)
{
    static const struct {
        int32_t wait;
        uint32_t heard, worth;
    } cases[] = {{8600, 18080, 2},    {9040, 18080, 2},   {9500, 18080, 2},  {9700, 18080, 1},
                 {15000, 18080, 1},   {80000, 18080, 1},  {34000, 41000, 1}, {32100, 41000, 2},
                 {170000, 180800, 2}, {250000, 180800, 2}};

    for (uint32_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct spread_pair pair = {.sent_ns = 10000,
                                         .usual_ns = 10300,
                                         .heard_ns = cases[i].heard,
                                         .wait_ns = cases[i].wait};

        assert_int_equal(spread_worth(&pair, cases[i].heard, 9040), cases[i].worth);
    }
}

/* Close pairs take back later wide ones of such a wait, and no others. */
static void a_close_pair_takes_wide_ones_back(void **state)
{
    struct spread_watch w = {0};

    assert_int_equal(spread_weigh(&w, SPREAD_WIDE_LATE), SPREAD_WIDE);
    assert_int_equal(spread_weigh(&w, SPREAD_CLOSE_LATE), SPREAD_NOTHING);
    assert_int_equal(spread_weigh(&w, SPREAD_WIDE), SPREAD_WIDE);
    assert_int_equal(spread_weigh(&w, SPREAD_NARROW), SPREAD_NARROW);
    for (int i = 0; i < SPREAD_CLOSE; i++) {
        assert_int_equal(spread_weigh(&w, SPREAD_WIDE_LATE), SPREAD_NOTHING);
    }
    assert_int_equal(spread_weigh(&w, SPREAD_WIDE_LATE), SPREAD_WIDE);
    for (int i = 0; i < 1000; i++) { /* an old queue doesn't hide a slow link for long */
        assert_int_equal(spread_weigh(&w, SPREAD_CLOSE_LATE), SPREAD_NOTHING);
    }
    for (int i = 0; i < SPREAD_CLOSE_MOST; i++) {
        assert_int_equal(spread_weigh(&w, SPREAD_WIDE_LATE), SPREAD_NOTHING);
    }
    assert_int_equal(spread_weigh(&w, SPREAD_WIDE_LATE), SPREAD_WIDE);
}

/* A fabric whose trunks are slower than its NICs, and one whose senders are slower. */
static void what_was_always_so_is_not_wide(void **state)
{
    const struct port trunks[] = {{200, 0.2}, {60, 0.2}, {200, 0.2}};
    static struct heard h;

    after_change(&h, trunks, trunks, 20000, 5);
    assert_true(h.wide < NARROW_NULL * (h.wide + h.narrow + 1));
    h = (struct heard){.now = {NS_PER_S}};
    for (int i = 0; i < 400; i++) { /* the sender began to pause between the two */
        const double sent = i < 200 ? SENT_NS : 9 * SENT_NS;
        hear(&h, sent, sent + 40, 50000);
    }
    assert_int_equal(h.wide, 0);
}

/* Nine pairs of a way show its usual gap, and another way begins again. */
static void another_way_begins_anew(void **state)
{
    struct spread_watch w = {0};
    struct spread_pair pair;

    for (int i = 0; i < 20; i++) {
        assert_int_equal(spread_add(&w, (struct mono){i}, 1, 10000, 10040, 100, false, &pair),
                         i >= 8);
    }
    assert_false(spread_add(&w, (struct mono){20}, 2, 10000, 60000, 100, false, &pair));
}

/* A slow link is known for ten minutes. Then for a moment it isn't known what the path crosses. */
static void a_floor_that_is_kept_outlasts_a_moment(void **state)
{
    struct spread_watch w = {0};
    struct spread_pair pair = {.wait_ns = 0};
    struct mono now = {NS_PER_S};

    for (int i = 0; i < 600 * 10; i++, now.ns += 100 * NS_PER_MS) {
        const bool slow = i > 300;

        (void)spread_add(&w, now, 1, 10000, slow ? 36000 : 10000, slow ? 76000 : 50000,
                         slow && i % 80 != 0, &pair);
        if (slow) {
            assert_int_equal(pair.wait_ns, 26000);
        }
    }
}

/* If waits fall in one direction only, its floor may have been too high. A clock's error moves both directions. */
static void one_direction_alone_shows_no_clock(void **state)
{
    enum { UNKNOWN = INT32_MAX };
    /* the least wait of either direction, that of a pair which is wide by its gap, and the result */
    static const struct {
        int32_t in, out, wait;
        enum spread is;
    } cases[] = {{-8000, 0, 9000, SPREAD_NOTHING},
                 {-8000, 8000, 9000, SPREAD_NARROW},
                 {0, -8000, 5000, SPREAD_NOTHING},
                 {8000, -8000, 1000, SPREAD_WIDE},
                 {UNKNOWN, -8000, 1000, SPREAD_NOTHING},
                 {0, 0, 1000, SPREAD_NARROW},
                 {0, 0, 9000, SPREAD_WIDE}};

    for (uint32_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct spread_clock c = {{0}};
        struct spread_pair in = {.wait_ns = cases[i].in}, out = {.wait_ns = cases[i].out},
                           wide = {.sent_ns = 10000,
                                   .usual_ns = 10000,
                                   .heard_ns = 18000,
                                   .wait_ns = cases[i].wait};

        if (cases[i].in != UNKNOWN) {
            spread_wait(&c, (struct mono){0}, false, &in);
        }
        spread_wait(&c, (struct mono){0}, true, &out);
        spread_wait(&c, (struct mono){0}, true, &wide);
        assert_int_equal(spread_judge(&wide, 18000, 9000), cases[i].is);
    }
}

/* The usual gap is learned slowly upwards and fast downwards: a gap that is larger now and then isn't usual. */
static void what_is_usual_is_a_low_one(void **state)
{
    /* gaps as they came, and the usual gap then */
    static const double heard[][2] = {{3200, 3200}, {4800, 3300}, {1300, 2300},
                                      {2300, 2300}, {2300, 2300}, {2300, 2300},
                                      {2300, 2300}, {2300, 2300}, {2300, 2300},
                                      {2940, 2310}, {1510, 2210}, {999, 2210} /* pushed together */,
                                      {9000, 2210} /* wide */};
    struct spread_watch w = {0};
    struct spread_pair pair;

    for (int i = 0; i < (int)ARRAY_COUNT(heard); i++) {
        (void)spread_add(&w, (struct mono){i}, 1, 1000, (int64_t)heard[i][0], 100, false, &pair);
        assert_float_equal(w.usual_ns, heard[i][1], 1e-9);
    }
}

/* ---- which link ---- */
enum { HOSTS = 9, SPINES = 3, WAYS = (HOSTS - 1) * SPINES, STEPS_S = 10 };

struct slow {
    int spine, host; /* that trunk up from leaf 0; that NIC, receiving; -1: none */
    double busy;     /* for all ports: chance that a pair which counts is wide */
};

/* Host 0's pairs to eight others, two of them on its own leaf. Each peer hears one in 0.1 s. */
static const struct locate_case *play(struct locate *l, struct slow slow, double seconds,
                                      uint64_t seed, double *ret_named_s)
{
    struct prng p;

    prng_init(&p, seed);
    *ret_named_s = INFINITY;
    for (uint32_t host = 1; host < HOSTS; host++) {
        for (uint32_t s = 0; s < SPINES; s++) {
            struct locate_route r = {.to_host = {host}, .to = {host}, .teller = {host}};

            r.boxes[r.box_count++] = (struct locate_box){1, ELEMENT_LEAF};
            if (host > 2) {
                r.boxes[r.box_count++] = (struct locate_box){100 + s, ELEMENT_SPINE};
                r.boxes[r.box_count++] = (struct locate_box){host > 5 ? 3 : 2, ELEMENT_LEAF};
            }
            locate_path_set(l, (host - 1) * SPINES + s, &r);
        }
    }
    for (int step = 0; step < (int)(seconds * STEPS_S); step++) {
        const struct mono now = {(step + 1) * 100 * NS_PER_MS};
        const bool on = now.ns > 30 * NS_PER_S;

        for (uint32_t host = 1; host < HOSTS; host++) {
            const uint32_t s = (uint32_t)step % SPINES;
            const bool is = on && ((int)host == slow.host || (host > 2 && (int)s == slow.spine));
            locate_on_trial(l, (host - 1) * SPINES + s, now,
                            prng_uniform(&p) < (is ? 0.99 : slow.busy));
        }
        locate_tick(l, now);
        const struct locate_case *c = locate_case_get(l, 0);
        if (c && c->named.ns != MONO_NEVER.ns && isinf(*ret_named_s)) {
            *ret_named_s = ((double)now.ns - 30e9) / 1e9;
        }
    }
    return locate_case_get(l, 0);
}

static struct locate *inference(void)
{
    struct locate *l = locate_new(&(struct locate_config){
        .path_limit = WAYS, .own = {0}, .background = NARROW_NULL, .share = NARROW_SHARE});
    assert_non_null(l);
    return l;
}

static void the_slow_link_is_named(void **state)
{
    double named;

    for (double busy = 0; busy < 0.11; busy += 0.1) {
        struct locate *l = inference();
        const struct locate_case *c = play(l, (struct slow){0, -1, busy}, 40, 9, &named);
        assert_non_null(c);
        assert_int_equal(c->elements[0].kind, ELEMENT_TRUNK);
        assert_true(c->elements[0].a == 1 && c->elements[0].b == 100);
        assert_true(named < 5);
        l = locate_free(l);
        l = inference();
        c = play(l, (struct slow){-1, 4, busy}, 40, 9, &named);
        assert_non_null(c);
        assert_int_equal(c->elements[0].kind, ELEMENT_NIC);
        assert_int_equal(c->elements[0].a, 4);
        assert_true(named < 5);
        locate_free(l);
    }
}

/* As much as two full ports make wide, for an hour. */
static void busy_links_are_not_named(void **state)
{
    double named;
    struct locate *l = inference();

    assert_null(play(l, (struct slow){-1, -1, FULL_TWO}, 3600, 10, &named));
    assert_true(isinf(named));
    locate_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_link_spreads_pairs_alike),
        cmocka_unit_test(a_clock_that_is_off_hides_nothing),
        cmocka_unit_test(busy_links_agree_on_no_gap),
        cmocka_unit_test(full_ports_are_no_evidence),
        cmocka_unit_test(a_standing_queue_is_no_evidence),
        cmocka_unit_test(a_pair_that_met_the_slow_link_alone_counts_twice),
        cmocka_unit_test(a_close_pair_takes_wide_ones_back),
        cmocka_unit_test(what_was_always_so_is_not_wide),
        cmocka_unit_test(another_way_begins_anew),
        cmocka_unit_test(a_floor_that_is_kept_outlasts_a_moment),
        cmocka_unit_test(one_direction_alone_shows_no_clock),
        cmocka_unit_test(what_is_usual_is_a_low_one),
        cmocka_unit_test(the_slow_link_is_named),
        cmocka_unit_test(busy_links_are_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
