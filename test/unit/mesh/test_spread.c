/* Pairs of probes tell a link at a fraction of its rate from links that are busy, and the inference names it. */
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
#define BUSY_MOST  0.4  /* wide, of pairs through three full ports that tell something */
#define FULL_MOST  0.75 /* the same where all frames are of one size; evidence grows from 0.77 on */

/* A port that a pair passes: in a class of its own behind the rest of a frame, or through the queue itself. */
struct port {
    double mbps, busy;
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

/* Through so many ports; the watch is told as the mesh would. */
static enum spread pair_pass(struct prng *p, struct spread_watch *w, const struct port *ports,
                             uint32_t count, double floor_ns)
{
    const double sent = SENT_NS + 300 * prng_exponential(p);
    double first = 0, second = sent;

    for (uint32_t i = 0; i < count; i++) {
        double free = 0;
        first = port_pass(p, &ports[i], first, &free);
        second = port_pass(p, &ports[i], second, &free);
    }
    const double noise = 20 * prng_normal(p);
    const double faster = fmin(first, second - sent);
    return spread_add(w, 1, (int64_t)sent, (int64_t)(second - first + noise),
                      (int64_t)(faster - floor_ns));
}

static double floor_of(const struct port *ports, uint32_t count)
{
    double sum = 0;

    for (uint32_t i = 0; i < count; i++) {
        sum += PROBE_BITS * 1e3 / ports[i].mbps;
    }
    return sum;
}

struct counts {
    double wide, narrow;
};

static struct counts count_after(const struct port *before, const struct port *after,
                                 uint32_t count, uint32_t pairs, uint64_t seed)
{
    struct spread_watch w = {0};
    struct counts c = {0, 0};
    struct prng p;
    const double floor_ns = floor_of(before, count);

    prng_init(&p, seed);
    for (int i = 0; i < 60; i++) {
        pair_pass(&p, &w, before, count, floor_ns);
    }
    for (uint32_t i = 0; i < pairs; i++) {
        const enum spread s = pair_pass(&p, &w, after, count, floor_ns);
        c.wide += s == SPREAD_WIDE;
        c.narrow += s == SPREAD_NARROW;
    }
    return c;
}

static void a_slow_link_spreads_all_pairs(void **state)
{
    static const double shares[] = {0.05, 0.2, 0.5};

    for (uint32_t i = 0; i < 3; i++) {
        for (double busy = 0; busy <= 1; busy += 0.5) {
            const struct port good[] = {{200, 0.1}, {200, 0.1}, {200, busy}},
                              slow[] = {{200, 0.1}, {200, 0.1}, {200 * shares[i], busy}};
            const struct counts c = count_after(good, slow, 3, 1000, 7 + i);

            assert_true(c.wide > 150);
            assert_true(c.narrow <= (1 - NARROW_SHARE) * (c.wide + c.narrow));
        }
    }
}

/* Ports that are full, and become full: what is wide is wide by chance. */
static void busy_links_spread_few_alike(void **state)
{
    for (uint32_t ports = 1; ports <= 3; ports++) {
        for (double busy = 0.3; busy <= 1.01; busy += 0.1) {
            const struct port idle[] = {{200, 0}, {200, 0}, {200, 0}};
            struct port full[] = {{200, 0}, {200, 0}, {200, 0}};

            for (uint32_t i = 0; i < ports; i++) {
                full[i].busy = fmin(1, busy);
            }
            const struct counts onset = count_after(idle, full, 3, 20000, 3),
                                always = count_after(full, full, 3, 20000, 4);
            assert_true(onset.narrow > 1000 && always.narrow > 1000);
            assert_true(onset.wide < BUSY_MOST * (onset.wide + onset.narrow));
            assert_true(always.wide < BUSY_MOST * (always.wide + always.narrow));
        }
    }
}

/* A port that always has a frame to send (0: never one), all of one length: those of a pair that meet the same frame leave one
 * behind the other, all others as far apart as one frame takes. */
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
    struct spread_watch w = {0};
    struct counts c = {0, 0};
    struct prng p;

    prng_init(&p, 11);
    for (int i = 0; i < 2000; i++) {
        double first = 0, second = SENT_NS;
        for (uint32_t k = 0; k < ports; k++) {
            full_port_pass(&p, i < 60 ? 0 : frame_ns, probe_ns, &first, &second);
        }
        const double wait = fmin(first, second - SENT_NS) - ports * probe_ns;
        const enum spread s =
            spread_add(&w, 1, (int64_t)SENT_NS, (int64_t)(second - first), (int64_t)wait);
        c.wide += s == SPREAD_WIDE;
        c.narrow += s == SPREAD_NARROW;
    }
    return c.wide / (c.wide + c.narrow);
}

/* Most pairs through ports that are full of large frames are as far apart as one frame takes, or pushed together. A frame that
 * takes about twice as long as the two are apart looks most like a slow link. */
static void full_ports_are_no_evidence(void **state)
{
    static const double sizes[] = {1538, 4134, 9254}; /* bytes on the wire */

    for (uint32_t f = 0; f < ARRAY_COUNT(sizes); f++) {
        for (uint32_t ports = 1; ports <= 3; ports++) {
            for (double frame = 1.2 * SENT_NS; frame < 40 * SENT_NS; frame *= 1.1) {
                assert_true(wide_share(frame, frame * PROBE_BITS / 8 / sizes[f], ports) <
                            FULL_MOST);
            }
        }
    }
}

/* A fabric whose trunks are slower than its NICs, and one whose senders are. */
static void what_was_always_so_is_not_wide(void **state)
{
    const struct port trunks[] = {{200, 0.2}, {60, 0.2}, {60, 0.2}, {200, 0.2}};
    const struct counts c = count_after(trunks, trunks, 4, 20000, 5);
    struct spread_watch w = {0};

    assert_true(c.wide < NARROW_NULL * (c.wide + c.narrow));
    for (int i = 0; i < 40; i++) { /* the sender began to pause between the two */
        const int64_t sent = i < 20 ? 10000 : 90000;
        assert_int_not_equal(spread_add(&w, 1, sent, sent + 40, 100), SPREAD_WIDE);
    }
}

/* Behind a queue anything may have come between them. */
static void what_waited_in_a_queue_tells_nothing(void **state)
{
    struct spread_watch w = {0};

    for (int i = 0; i < 20; i++) {
        spread_add(&w, 1, 10000, 10040, 100);
    }
    for (int i = 0; i < 20; i++) {
        assert_int_equal(spread_add(&w, 1, 10000, 60000, 2000000), SPREAD_NOTHING);
    }
    assert_int_equal(spread_add(&w, 1, 10000, 60000, 2000), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, 10000, 60000, 2000), SPREAD_WIDE);
    assert_int_equal(spread_add(&w, 1, 10000, 10020, 2000), SPREAD_NARROW);
    assert_int_equal(spread_add(&w, 1, 10000, 60000, 2000), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 2, 10000, 60000, 2000), SPREAD_NOTHING); /* another way */
    assert_int_equal(spread_add(&w, 2, 10000, 60000, 2000), SPREAD_NOTHING);
}

/* So many pairs, sent 1,000 ns apart, that came as far apart. */
static struct spread_watch learned(void)
{
    struct spread_watch w = {0};

    for (int i = 0; i < SPREAD_LEARN - 1; i++) {
        assert_int_equal(spread_add(&w, 1, 1000, 1000, 0), SPREAD_NOTHING);
    }
    assert_int_equal(spread_add(&w, 1, 1000, 1000, 0), SPREAD_NARROW);
    return w;
}

/* One and a half times as far apart is narrow yet; two wide ones agree to an eighth; twelve times as far needs no other. */
static void limits_of_a_wide_pair(void **state)
{
    struct spread_watch w = learned();

    assert_int_equal(spread_add(&w, 1, 1000, 1500, 0), SPREAD_NARROW);
    w = learned();
    assert_int_equal(spread_add(&w, 1, 1000, 1501, 0), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, 1000, 1501, 0), SPREAD_WIDE);
    for (int i = 0; i < 4; i++) {
        static const int64_t second[] = {4500, 4501, 3500, 3499};
        w = learned();
        assert_int_equal(spread_add(&w, 1, 1000, 4000, 0), SPREAD_NOTHING);
        assert_int_equal(spread_add(&w, 1, 1000, second[i], 0),
                         i % 2 == 0 ? SPREAD_WIDE : SPREAD_NOTHING);
    }
    w = learned();
    assert_int_equal(spread_add(&w, 1, 1000, 12000, 0), SPREAD_NOTHING);
    w = learned();
    assert_int_equal(spread_add(&w, 1, 1000, 12001, 0), SPREAD_WIDE);
    /* by the narrowest since the last narrow one */
    w = learned();
    assert_int_equal(spread_add(&w, 1, 1000, 4000, 0), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, 1000, 8000, 0), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, 1000, 4000, 0), SPREAD_WIDE);
    assert_int_equal(spread_add(&w, 1, 1000, 8000, 0), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, 1000, 2000, 0), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, 1000, 4000, 0), SPREAD_NOTHING);
}

/* Of what was sent or heard out of order nothing is learned; a pair may have waited for eight frames of its own length. */
static void limits_of_what_tells_something(void **state)
{
    struct spread_watch w = learned();

    assert_int_equal(spread_add(&w, 1, 1, 1, 0), SPREAD_NARROW);
    assert_int_equal(spread_add(&w, 1, 0, 1000, 0), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, -1000, 1000, 0), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, 1000, 0, 0), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, 1000, -1000, 0), SPREAD_NOTHING);
    w = learned();
    assert_int_equal(spread_add(&w, 1, 1000, 1200, 8 * 1200), SPREAD_NARROW);
    assert_int_equal(spread_add(&w, 1, 1000, 1200, 8 * 1201), SPREAD_NOTHING);
    /* pushed together, beside wide ones that are more than twelve of it apart: by frames of 9,216 bytes */
    w = learned();
    assert_int_equal(spread_add(&w, 1, 1000, 9601, 0), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, 1000, 800, 9 * 801), SPREAD_NARROW);
    w = learned();
    assert_int_equal(spread_add(&w, 1, 1000, 9600, 0), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, 1000, 800, 9 * 801), SPREAD_NOTHING);
    w = learned();
    assert_int_equal(spread_add(&w, 1, 1000, 11990, 0), SPREAD_NOTHING);
    assert_int_equal(spread_add(&w, 1, 1000, 999, 123 * 999), SPREAD_NARROW);
    assert_int_equal(spread_add(&w, 1, 1000, 999, 123 * 1000), SPREAD_NOTHING);
}

/* What is usual is learned slowly upwards and fast downwards: what is further apart now and then is not usual. */
static void what_is_usual_is_a_low_one(void **state)
{
    struct spread_watch w = {0};

    (void)spread_add(&w, 1, 1000, 3200, 0);
    assert_float_equal(w.usual_ns, 3200, 1e-9);
    (void)spread_add(&w, 1, 1000, 4800, 0);
    assert_float_equal(w.usual_ns, 3300, 1e-9);
    (void)spread_add(&w, 1, 1000, 1300, 0);
    assert_float_equal(w.usual_ns, 2300, 1e-9);
    for (int i = 3; i < SPREAD_LEARN; i++) {
        (void)spread_add(&w, 1, 1000, 2300, 0);
    }
    (void)spread_add(&w, 1, 1000, 2940, 0);
    assert_float_equal(w.usual_ns, 2310, 1e-9);
    (void)spread_add(&w, 1, 1000, 1510, 0);
    assert_float_equal(w.usual_ns, 2210, 1e-9);
    (void)spread_add(&w, 1, 1000, 999, 0); /* pushed together */
    assert_float_equal(w.usual_ns, 2210, 1e-9);
    (void)spread_add(&w, 1, 1000, 9000, 0); /* wide */
    assert_float_equal(w.usual_ns, 2210, 1e-9);
}

/* ---- which link ---- */
enum { HOSTS = 9, SPINES = 3, WAYS = (HOSTS - 1) * SPINES, STEPS_S = 10 };

struct slow {
    int spine, host; /* that trunk up from leaf 0; that NIC, receiving; -1: none */
    double busy;     /* of all ports: chance that a pair which counts is wide */
};

/* Host 0's pairs to eight others, two of them on its own leaf: each peer hears one in 0.1 s. */
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

    for (double busy = 0; busy < 0.31; busy += 0.3) {
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

/* As much as three full ports make wide, for an hour. */
static void busy_links_are_not_named(void **state)
{
    double named;
    struct locate *l = inference();

    assert_null(play(l, (struct slow){-1, -1, BUSY_MOST}, 3600, 10, &named));
    assert_true(isinf(named));
    locate_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_link_spreads_all_pairs),
        cmocka_unit_test(busy_links_spread_few_alike),
        cmocka_unit_test(full_ports_are_no_evidence),
        cmocka_unit_test(what_was_always_so_is_not_wide),
        cmocka_unit_test(what_waited_in_a_queue_tells_nothing),
        cmocka_unit_test(limits_of_a_wide_pair),
        cmocka_unit_test(limits_of_what_tells_something),
        cmocka_unit_test(what_is_usual_is_a_low_one),
        cmocka_unit_test(the_slow_link_is_named),
        cmocka_unit_test(busy_links_are_not_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
