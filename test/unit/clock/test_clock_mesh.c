/* Fleets in which every host probes every other: the hard bounds of any two meet, whichever hosts are within whose reach.
 *
 * The world has one clock for each host and real delays, in and out of each host and between any two. If a delay is longer in one
 * direction, no clock can find that: the clocks agree on times that are apart by half of it, and the bounds have to cover that.
 * The judge has the true time and reads the terms by its own arithmetic.
 *
 * `test_clock_mesh COUNT [FIRST]` draws so many fleets, of those seeds. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
/* cmocka needs those first */
#include <cmocka.h>

#include "base/prng.h"
#include "core/clock/clock.h"

#define HOSTS    12
#define WIDTH_NS 8000
#define TICK_NS  (50 * NS_PER_MS)
#define START_NS (1000 * NS_PER_S)
#define FLEETS   40
#define CALM_S   18 /* rates have held for as long as bounds look back */
#define CHANGES  4
#define CHANGE_S 2.0

struct pending { /* an own packet, whose stamp at the peer comes with the peer's next packet */
    int64_t sent, arrived;
    bool known;
};

struct host {
    struct clock *clock;
    int64_t origin_ns; /* its clock's reading at true time 0 */
    double rate;
    int64_t in_ns, out_ns; /* waits of packets on their way in and out */
    bool away;
    int lives;
};

struct fleet {
    struct prng random;
    int count;
    int64_t now;
    struct host hosts[HOSTS];
    int64_t cable_ns[HOSTS][HOSTS]; /* one way */
    bool cut[HOSTS][HOSTS];
    struct pending pending[HOSTS][HOSTS];
    /* the judge */
    uint64_t pairs, broken;
    double worst_ns; /* gap by which two bounds don't meet */
    double widest_ns;
    int synced; /* number of hosts in the end */
};

static int64_t local(const struct host *h, int64_t true_ns)
{
    return true_ns + h->origin_ns + (int64_t)(h->rate * (double)(true_ns - START_NS));
}

static int edge_of(int host, int peer)
{
    return peer < host ? peer : peer - 1;
}

static void boot(struct fleet *f, int host)
{
    struct host *h = &f->hosts[host];

    clock_free(h->clock);
    h->lives++;
    h->origin_ns = (int64_t)prng_below(&f->random, 1000 * NS_PER_S);
    h->rate = (prng_uniform(&f->random) - 0.5) * 60e-6;
    const struct nic_time now = {local(h, f->now)};
    const struct clock_config config = {
        .member = (uint32_t)host,
        .edge_capacity = HOSTS,
        .edge_limit_ns = WIDTH_NS,
        .hops = 1,
        .seed = prng_u64(&f->random),
        .wall_minus_ns = f->now - now.ns + (int64_t)prng_below(&f->random, 2 * NS_PER_MS)};
    h->clock = clock_new(&config, now);
    assert_non_null(h->clock);
    for (int peer = 0; peer < f->count; peer++) {
        const struct clock_edge_config edge = {.peer = (uint32_t)peer,
                                               .host = (uint32_t)peer + 1,
                                               .local_nic = {(uint32_t)host},
                                               .peer_nic = {(uint32_t)peer},
                                               .path_count = 1,
                                               .chosen = true};
        if (peer != host) {
            assert_int_equal(clock_edge_add(h->clock, now, &edge), edge_of(host, peer));
        }
        f->pending[host][peer].known = f->pending[peer][host].known = false;
    }
}

static void begin(struct fleet *f, uint64_t seed, int count)
{
    *f = (struct fleet){.count = count, .now = START_NS};
    prng_init(&f->random, seed);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < count; k++) {
            f->cable_ns[i][k] = 200;
        }
    }
}

static void boot_all(struct fleet *f)
{
    for (int i = 0; i < f->count; i++) {
        boot(f, i);
    }
}

static void end(struct fleet *f)
{
    for (int i = 0; i < f->count; i++) {
        clock_free(f->hosts[i].clock);
    }
}

/* One packet, with the stamp of the last one in the other direction. */
static void carry(struct fleet *f, int from, int to, int64_t sent)
{
    struct host *a = &f->hosts[from], *b = &f->hosts[to];
    const int64_t noise = (int64_t)(50 * prng_exponential(&f->random));
    const int64_t way = a->out_ns + f->cable_ns[from][to] + b->in_ns + noise;
    const struct nic_time tx = {local(a, sent)}, rx = {local(b, sent + way)};
    const int edge = edge_of(to, from);
    struct clock_published header;

    clock_published(a->clock, tx, &header);
    clock_on_peer(b->clock, rx, edge, &header);
    const struct clock_point point = {.edge = edge, .local = rx, .remote = tx};
    clock_on_point(b->clock, rx, &point);
    struct pending *p = &f->pending[to][from];
    if (p->known) {
        const struct clock_point own = {
            .edge = edge, .forward = true, .local = {p->sent}, .remote = {p->arrived}};
        clock_on_point(b->clock, rx, &own);
        p->known = false;
    }
    f->pending[from][to] = (struct pending){tx.ns, rx.ns, true};
}

/* The fleet time that a host's readers get, minus true time. False: not in step. */
static bool read_host(const struct fleet *f, int host, uint64_t *ret_timeline, double *ret_error,
                      double *ret_hard)
{
    const struct host *h = &f->hosts[host];
    struct clock_terms t;

    clock_terms(h->clock, &t);
    if (h->away || t.status != CLOCK_SYNCED || t.h_ns < 0) {
        return false;
    }
    const int64_t at = local(h, f->now), since = at - t.line.r.ns;
    const int64_t slewed = at < t.line.until.ns ? since : t.line.until.ns - t.line.r.ns;
    *ret_timeline = t.timeline;
    *ret_error = (double)(at + t.line.x_ns - f->now) + t.line.x_fraction +
                 t.line.y * (double)since + t.line.slew * (double)slewed;
    *ret_hard = t.h_ns + t.rate_limit * fabs((double)since);
    return true;
}

static void judge(struct fleet *f)
{
    double error[HOSTS], hard[HOSTS];
    uint64_t timeline[HOSTS];
    bool told[HOSTS];

    f->synced = 0;
    for (int i = 0; i < f->count; i++) {
        told[i] = read_host(f, i, &timeline[i], &error[i], &hard[i]);
        f->synced += told[i];
        for (int k = 0; told[i] && k < i; k++) {
            if (!told[k] || timeline[i] != timeline[k]) {
                continue;
            }
            const double beyond = fabs(error[i] - error[k]) - hard[i] - hard[k];
            f->pairs++;
            f->broken += beyond > 1;
            f->worst_ns = fmax(f->worst_ns, beyond);
        }
        f->widest_ns = told[i] ? fmax(f->widest_ns, hard[i]) : f->widest_ns;
    }
}

/* A packet in each direction between any two in a tick, one after the other. */
static void carry_all(struct fleet *f)
{
    const int n = f->count, first_host = (int)prng_below(&f->random, (uint64_t)n);
    const int64_t apart = (TICK_NS - 2 * NS_PER_MS) / (n * (n - 1));
    int64_t sent = f->now + NS_PER_MS;

    for (int turn = 1; turn < n; turn++) {
        for (int i = 0; i < n; i++, sent += apart) {
            const int from = (first_host + i) % n, to = (from + turn) % n;
            if (!f->cut[from][to] && !f->hosts[from].away && !f->hosts[to].away) {
                carry(f, from, to, sent);
            }
        }
    }
}

static void run(struct fleet *f, double seconds)
{
    for (const int64_t until = f->now + (int64_t)(seconds * 1e9); f->now < until;) {
        carry_all(f);
        f->now += TICK_NS;
        for (int i = 0; i < f->count; i++) {
            const struct nic_time now = {local(&f->hosts[i], f->now)};
            struct clock_action action;
            if (f->hosts[i].away) {
                continue;
            }
            clock_on_guard(f->hosts[i].clock, now, 0,
                           0); /* no allowance for rates hides an error */
            clock_tick(f->hosts[i].clock, now);
            while (clock_next_action(f->hosts[i].clock, &action)) {
            }
        }
        judge(f);
    }
}

/* Packets to host 0, and those from host 1, wait 14 us. To all others the middle of a round trip is 7.2 us, and between the two
 * it is 14.2. So the two are 14 us apart, and neither can see it. */
static void two_that_are_apart_have_bounds_that_meet(void **state)
{
    for (int count = 4; count <= HOSTS; count++) {
        struct fleet f;
        begin(&f, (uint64_t)count, count);
        f.hosts[0].in_ns = f.hosts[1].out_ns = 14000;
        boot_all(&f);
        run(&f, CALM_S);
        print_message("%d hosts, %d in step: bounds miss each other by %.0f ns, %d of %d times\n",
                      count, f.synced, f.worst_ns, (int)f.broken, (int)f.pairs);
        assert_int_equal(f.synced, count);
        assert_int_equal(f.broken, 0);
        end(&f);
    }
    (void)state;
}

/* A host that has all others within reach has no wider bound, also beside one that boots. For a dead host all others' bounds are
 * wider by what two hops may be, and by no more with time: it may be dead only for them. */
static void who_reaches_all_pays_nothing(void **state)
{
    for (int count = 4; count <= HOSTS; count += 4) {
        struct fleet f;
        begin(&f, (uint64_t)count, count);
        for (int i = 0; i < count; i++) {
            f.hosts[i].in_ns = f.hosts[i].out_ns = 2000;
        }
        boot_all(&f);
        run(&f, CALM_S);
        f.widest_ns = 0;
        run(&f, 2);
        const double healthy = f.widest_ns;
        boot(&f, 0);
        f.widest_ns = 0;
        run(&f, 0.5);
        const double booting = f.widest_ns;
        run(&f, 6);
        f.hosts[0].away = true;
        run(&f, 5);
        f.widest_ns = 0;
        run(&f, 20);
        print_message("%d hosts: half a width of %.0f ns, %.0f while one boots, %.0f without it\n",
                      count, healthy, booting, f.widest_ns);
        assert_true(healthy < WIDTH_NS / 2 + 1);
        assert_true(booting < WIDTH_NS / 2 + 1);
        assert_int_equal(f.synced,
                         count > 4 ? count - 1 : 0); /* of three others two aren't enough */
        assert_true(f.widest_ns < (pow(2, 0.75) - 0.5) * WIDTH_NS + 1);
        assert_int_equal(f.broken, 0);
        end(&f);
    }
    (void)state;
}

/* ---- drawn ---- */

static int64_t below(struct fleet *f, int64_t most)
{
    return (int64_t)prng_below(&f->random, (uint64_t)most + 1);
}

static bool chance(struct fleet *f, double share)
{
    return prng_uniform(&f->random) < share;
}

/* Half of it is within reach, or just beyond. */
static void draw_queue(struct fleet *f, int host)
{
    const int64_t wait = chance(f, 0.7) ? WIDTH_NS + below(f, WIDTH_NS) : below(f, WIDTH_NS / 2);
    const int where = (int)below(f, 2);

    f->hosts[host].in_ns = where == 0 ? wait : 0;
    f->hosts[host].out_ns = where == 1 ? wait : 0;
}

static void draw_cut(struct fleet *f, bool cut)
{
    const int a = (int)below(f, f->count - 1), b = (int)below(f, f->count - 1);

    f->cut[a][b] = f->cut[b][a] = cut;
}

static void draw(struct fleet *f, uint64_t seed)
{
    begin(f, seed, 4);
    f->count = 4 + (int)below(f, HOSTS - 4);
    const double far = fmax(0, prng_uniform(&f->random) - 0.6);
    const double asymmetric = fmax(0, prng_uniform(&f->random) - 0.6);
    const double queued = prng_uniform(&f->random);
    const int64_t near = below(f, WIDTH_NS / 2);
    for (int i = 0; i < f->count; i++) {
        for (int k = 0; k < i; k++) {
            f->cable_ns[i][k] = f->cable_ns[k][i] =
                200 + below(f, chance(f, far) ? 3 * WIDTH_NS : near);
            if (chance(f, asymmetric)) {
                f->cable_ns[i][k] = 200 + below(f, 3 * WIDTH_NS);
            }
        }
        if (chance(f, queued)) {
            draw_queue(f, i);
        }
    }
    for (int i = (int)below(f, f->count / 2); i > 0; i--) {
        draw_cut(f, true);
    }
    boot_all(f);
}

/* Something that happens to hosts and networks now and then. */
static void change(struct fleet *f)
{
    const int host = (int)below(f, f->count - 1);

    switch (below(f, 5)) {
    case 0:
        draw_queue(f, host);
        break;
    case 1:
        boot(f, host);
        break;
    case 2:
        f->hosts[host].away = !f->hosts[host].away;
        break;
    case 3:
        draw_cut(f, false);
        break;
    default:
        draw_cut(f, true);
        break;
    }
}

static uint64_t play(uint64_t seed, struct fleet *f)
{
    draw(f, seed);
    run(f, CALM_S);
    for (int i = 0; i < CHANGES; i++) {
        change(f);
        run(f, CHANGE_S * prng_exponential(&f->random));
    }
    end(f);
    if (f->broken > 0) {
        print_message("seed %d: %d hosts, bounds miss each other by %.0f ns, %d of %d times\n",
                      (int)seed, f->count, f->worst_ns, (int)f->broken, (int)f->pairs);
    }
    return f->broken;
}

static uint64_t first = 1, fleets = FLEETS;

static void bounds_of_drawn_fleets_meet(void **state)
{
    uint64_t pairs = 0, broken = 0;

    (void)state;
    for (uint64_t seed = first; seed < first + fleets; seed++) {
        struct fleet f;
        broken += play(seed, &f) > 0;
        pairs += f.pairs;
    }
    print_message("%d fleets, %.0f pairs judged: %d fleets broken\n", (int)fleets, (double)pairs,
                  (int)broken);
    assert_true(pairs > 1000 * fleets);
    assert_int_equal(broken, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_that_are_apart_have_bounds_that_meet),
        cmocka_unit_test(who_reaches_all_pays_nothing),
        cmocka_unit_test(bounds_of_drawn_fleets_meet),
    };

    fleets = argc > 1 ? strtoull(argv[1], NULL, 10) : FLEETS;
    first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
