/* test_perf.c: tests of bandwidth and of collectives in worlds of drawn hosts. A slow host is named and no other, whatever any
 * host reports. The groups of a step have no host in common, and at least two hosts each. A busy host ends no test of others. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/audit/perf.h"

enum { HOSTS_MAX = 70, NOBODY = HOSTS_MAX };
#define NIC_RATE 50e6

struct world {
    uint32_t count, nics;
    uint32_t nics_of[HOSTS_MAX];
    double share[HOSTS_MAX][4]; /* of the NIC's rate */
    uint8_t outcome[HOSTS_MAX]; /* of all of a host's tests; 0: done */
    uint32_t pair[2];           /* slow only together; equal: none */
    uint32_t liar;              /* reports the same rate for all its tests */
    double liar_tells;
    uint32_t worker;               /* works longer before each second meeting */
    uint32_t wrong, wrong_nic;     /* all that this NIC sends is wrong */
    uint32_t dead_nics[HOSTS_MAX]; /* bit n: NIC n carries nothing */
    double lost;                   /* share of groups that fail */
    struct prng prng;
    double noise;
    double spread; /* instead: Student's t with three degrees, with this robust spread */
    uint16_t kind[HOSTS_MAX];
    double practical;
    bool no_ways;
    uint32_t ways;   /* steps of them, so far */
    uint32_t rounds; /* of the search */
    double far; /* first tests between leaves carry less by up to this share: they meet on trunks */
    bool misses;    /* of the first plan all tests of the last NIC fail */
    uint32_t plans; /* so far */
    bool heals;     /* after the second plan this host is well */
    uint32_t healing;
    bool incast; /* hosts can be in one, but for this one */
    uint32_t no_incast;
    bool starves; /* this one is slow in rings alone: it has no processor for them */
    uint32_t starved;
    struct
        death { /* of a host, in the ring of that number, over all plans; `after`: before it tells of it */
        uint32_t host, ring;
        bool after;
        uint8_t tells; /* from then on; 0: nothing */
    } deaths[6];
    uint32_t death_count, rings;
};

static const struct perf_part *part_of(const struct perf *p, uint32_t step, uint32_t host)
{
    return perf_part_of(p, step, host);
}

static double heavy(struct world *w)
{
    double squares = 0;
    for (int i = 0; i < 3; i++) {
        const double z = prng_normal(&w->prng);
        squares += z * z;
    }
    return w->spread / 1.4826 / 0.764892 * prng_normal(&w->prng) / sqrt(squares / 3);
}

static double noisy(struct world *w, double rate)
{
    if (w->spread > 0) {
        return rate * fmax(1 + heavy(w), 0.01);
    }
    return rate * (1 - w->noise * prng_uniform(&w->prng));
}

static bool uses(const struct perf_step *s, uint32_t nic)
{
    return s->nic == PERF_NOBODY ? nic < s->nics : s->nic == nic;
}

/* True if the members are on different leaves. */
static bool spans(const struct world *w, const struct perf *p, uint32_t step, uint32_t group)
{
    uint32_t leaves = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        leaves |= part_of(p, step, i)->group == group ? 1u << p->hosts[i].leaf[0] : 0;
    }
    return (leaves & (leaves - 1)) != 0;
}

/* A ring is as fast as its slowest member. */
static double group_rate(struct world *w, const struct perf *p, uint32_t step, uint32_t group)
{
    const struct perf_step *s = &p->steps[step];
    double least = 1e18;
    bool has[2] = {false, false};
    for (uint32_t i = 0; i < w->count; i++) {
        if (part_of(p, step, i)->group != group) {
            continue;
        }
        double slowest = 1;
        for (uint32_t n = 0; n < w->nics_of[i]; n++) {
            slowest = uses(s, n) && w->share[i][n] < slowest ? w->share[i][n] : slowest;
        }
        const double rate = NIC_RATE * slowest * (s->nic == PERF_NOBODY ? s->nics : 1);
        least = rate < least ? rate : least;
        if (w->starves && i == w->starved && s->kind >= PERF_RING) {
            least = 0.5 * rate < least ? 0.5 * rate : least;
        }
        has[0] = has[0] || i == w->pair[0];
        has[1] = has[1] || i == w->pair[1];
    }
    if (w->far > 0 && s->kind == PERF_PAIR && spans(w, p, step, group)) {
        least *= 1 - w->far * prng_uniform(&w->prng);
    }
    return noisy(w, least) * (w->pair[0] != w->pair[1] && has[0] && has[1] ? 0.5 : 1);
}

static bool needs_dead_nic(const struct world *w, const struct perf *p, uint32_t step, uint32_t i)
{
    for (uint32_t n = 0; n < w->nics_of[i]; n++) {
        if ((w->dead_nics[i] & 1u << n) != 0 && uses(&p->steps[step], n)) {
            return true;
        }
    }
    return false;
}

/* True if a member reports nothing or has a dead NIC: that spoils the tests of its group. */
static bool spoiled(const struct world *w, const struct perf *p, uint32_t step, uint32_t group)
{
    for (uint32_t i = 0; i < w->count; i++) {
        if (part_of(p, step, i)->group == group &&
            (w->outcome[i] != 0 || needs_dead_nic(w, p, step, i))) {
            return true;
        }
    }
    return false;
}

static const struct death *death_of(const struct world *w, const struct perf *p, uint32_t host)
{
    for (uint32_t k = 0; k < w->death_count; k++) {
        if (p->stage == PERF_RINGS && w->deaths[k].host == host && w->rings >= w->deaths[k].ring) {
            return &w->deaths[k];
        }
    }
    return NULL;
}

/* True if a host dies in this ring: that ends it. If it dies after the ring, only its report is missing. */
static bool is_broken(const struct world *w, const struct perf *p, uint32_t step)
{
    bool broken = false;
    for (uint32_t i = 0; i < w->count; i++) {
        const struct death *d = death_of(w, p, i);
        broken = broken || (part_of(p, step, i)->ranks > 0 && d != NULL &&
                            !(d->after && d->ring == w->rings));
    }
    return broken;
}

static bool sends_wrong(const struct world *w, const struct perf *p, uint32_t step, uint32_t group)
{
    return w->wrong != NOBODY && part_of(p, step, w->wrong)->group == group &&
           uses(&p->steps[step], w->wrong_nic);
}

struct group {
    double rate;
    uint32_t members;
    bool failed;
};

/* Checks that each group has its ranks once, and one leader that is rank 0. */
static void find_groups(struct world *w, struct perf *p, uint32_t step, struct group *groups)
{
    memset(groups, 0, HOSTS_MAX * sizeof(*groups));
    for (uint32_t i = 0; i < w->count; i++) {
        const struct perf_part *part = part_of(p, step, i);
        if (part->group == PERF_NOBODY) {
            assert_int_equal(part->ranks, 0);
            continue;
        }
        assert_true(part->group < w->count && part->ranks >= 2 && part->rank < part->ranks);
        assert_true(p->steps[step].kind > PERF_WAYS || part->ranks == 2);
        assert_true(p->steps[step].nic == PERF_NOBODY ? w->nics_of[i] >= p->steps[step].nics
                                                      : w->nics_of[i] > p->steps[step].nic);
        assert_int_equal(part_of(p, step, part->leader)->group, part->group);
        assert_int_equal(part_of(p, step, part->leader)->rank, 0);
        groups[part->group].members++;
        if (part->rank == 0) {
            assert_int_equal(part->leader, i);
            groups[part->group].rate = group_rate(w, p, step, part->group);
            groups[part->group].failed =
                prng_uniform(&w->prng) < w->lost ||
                (w->misses && w->plans == 0 && p->steps[step].nic == w->nics - 1);
        }
    }
}

static bool is_candidate(const struct perf *p, uint32_t host, uint32_t nic)
{
    return p->nic[host * HOST_NIC_MAX + nic].verdict == PERF_SCREENED;
}

/* Checks that each pair of retests is of one kind, and that beside candidates runs a pair without one. */
static void look_at_retests(const struct world *w, const struct perf *p, uint32_t step)
{
    uint32_t of[PERF_KINDS_MAX] = {0}, beside[PERF_KINDS_MAX] = {0};
    for (uint32_t i = 0; i < w->count; i++) {
        const struct perf_part *part = part_of(p, step, i);
        if (part->ranks == 0 || part->rank != 1) {
            continue;
        }
        const uint32_t nic = p->steps[step].nic, candidates = (uint32_t)is_candidate(p, i, nic) +
                                                              is_candidate(p, part->leader, nic);
        assert_int_equal(w->kind[i], w->kind[part->leader]);
        assert_true(candidates < 2);
        of[w->kind[i]] += candidates;
        beside[w->kind[i]] += candidates == 0;
    }
    for (uint32_t k = 0; k < PERF_KINDS_MAX; k++) {
        assert_true((of[k] > 0) == (beside[k] > 0));
    }
}

static void play_step(struct world *w, struct perf *p, uint32_t step)
{
    struct group groups[HOSTS_MAX];
    const bool broken = is_broken(w, p, step);
    bool any = false;
    find_groups(w, p, step, groups);
    w->ways += p->steps[step].kind == PERF_WAYS;
    if (p->steps[step].kind == PERF_RETEST) {
        look_at_retests(w, p, step);
    }
    for (uint32_t i = 0; i < w->count; i++) {
        const struct perf_part *part = part_of(p, step, i);
        if (part->group == PERF_NOBODY) {
            continue;
        }
        const struct group *g = &groups[part->group];
        const struct death *dead = death_of(w, p, i);
        assert_int_equal(g->members, part->ranks);
        any = true;
        if (dead != NULL && dead->tells == 0) {
            continue;
        }
        struct perf_result r = {
            .outcome = dead != NULL                                    ? dead->tells
                       : broken                                        ? PERF_FAILED
                       : w->outcome[i] != 0                            ? w->outcome[i]
                       : spoiled(w, p, step, part->group) || g->failed ? PERF_FAILED
                                                                       : PERF_DONE,
            .rate = i == w->liar ? w->liar_tells : g->rate,
            .wrong = sends_wrong(w, p, step, part->group) && i != w->wrong ? 7 : 0,
            .sent = 2000,
            .came = 1000,
            .marked = i,
            .arrivals = PERF_ARRIVALS};
        for (uint32_t k = 0; k < PERF_ARRIVALS; k++) {
            r.work[k] = (uint16_t)(100 + prng_below(&w->prng, 50) +
                                   (i == w->worker && k % 2 == 1 ? 200 : 0));
        }
        perf_take(p, step, i, &r);
    }
    w->rings += p->stage == PERF_RINGS;
    assert_true(any);
}

struct played {
    struct perf p;
    struct perf_host hosts[HOSTS_MAX];
    void *memory;
};

static void play(struct world *w, struct played *x)
{
    for (uint32_t i = 0; i < w->count; i++) {
        x->hosts[i] = (struct perf_host){.nics = w->nics_of[i],
                                         .there = true,
                                         .kind = w->kind[i],
                                         .incast = w->incast && i != w->no_incast};
        for (uint32_t n = 0; n < w->nics; n++) {
            x->hosts[i].leaf[n] = (uint16_t)(i * 4 / w->count);
        }
    }
    x->memory = malloc(perf_size(w->count));
    assert_non_null(x->memory);
    const struct perf_config config = {.hosts = x->hosts,
                                       .count = w->count,
                                       .wants_rings = true,
                                       .no_ways = w->no_ways,
                                       .practical = w->practical};
    assert_int_equal(perf_init(&x->p, &config, x->memory), 0);
    w->rounds = w->plans = 0;
    do {
        assert_true(x->p.step_count > 0 && x->p.step_count <= PERF_STEPS_MAX);
        for (uint32_t step = 0; step < x->p.step_count; step++) {
            play_step(w, &x->p, step);
        }
        w->rounds += x->p.stage == PERF_SEARCHING;
        if (w->heals && w->plans == 1) {
            w->share[w->healing][0] = 1;
        }
        w->plans++;
        assert_true(w->rounds < 64);
    } while (perf_next(&x->p));
}

static struct world world_of(uint32_t count, uint32_t nics, uint64_t seed)
{
    struct world w = {.count = count,
                      .nics = nics,
                      .noise = 0.07,
                      .liar = NOBODY,
                      .worker = NOBODY,
                      .wrong = NOBODY};
    prng_init(&w.prng, seed);
    for (uint32_t i = 0; i < count; i++) {
        w.nics_of[i] = nics;
        for (uint32_t n = 0; n < nics; n++) {
            w.share[i][n] = 1;
        }
    }
    return w;
}

static bool is_named(const struct perf *p, uint32_t host)
{
    for (uint32_t k = 0; k < p->search.named_count; k++) {
        if (p->ring[1][p->search.named[k].member] == host ||
            (p->search.named[k].with != SEARCH_NONE &&
             p->ring[1][p->search.named[k].with] == host)) {
            return true;
        }
    }
    return false;
}

static const struct perf_nic *nic_of(const struct perf *p, uint32_t host, uint32_t nic)
{
    return &p->nic[host * HOST_NIC_MAX + nic];
}

static void nothing_is_slow(void **state)
{
    for (uint32_t count = 2; count <= 64; count++) {
        struct world w = world_of(count, 1 + count % 4, count);
        struct played x;
        play(&w, &x);
        assert_false(x.p.slow);
        assert_int_equal(w.rounds, 0);
        assert_true(x.p.best > 0);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(perf_truth_of(&x.p, i), PERF_RIGHT);
        }
        free(x.memory);
    }
}

static void the_slow_host_alone_is_named(void **state)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct world w = world_of(4 + (uint32_t)(seed % 61), 1 + (uint32_t)(seed % 4), seed);
        const uint32_t bad = (uint32_t)(prng_u64(&w.prng) % w.count);
        struct played x;
        w.share[bad][prng_u64(&w.prng) % w.nics] = 0.6;
        play(&w, &x);
        assert_true(x.p.slow && x.p.searched);
        assert_int_equal(x.p.search.named_count, 1);
        assert_true(is_named(&x.p, bad));
        assert_true(x.p.named_rate[bad] > 0);
        for (uint32_t i = 0; i < w.count; i++) {
            assert_true(i == bad || perf_cleared(&x.p, i));
        }
        free(x.memory);
    }
}

/* With any number of hosts, also odd ones, only the slow NIC is slow: each of its partners has another partner. */
static void a_slow_nic_is_judged_by_different_partners(void **state)
{
    for (uint32_t count = 3; count <= 17; count++) {
        for (uint64_t seed = 1; seed <= 40; seed++) {
            struct world w = world_of(count, 1 + (uint32_t)(seed % 4), seed);
            const uint32_t bad = (uint32_t)prng_below(&w.prng, count),
                           nic = (uint32_t)prng_below(&w.prng, w.nics);
            struct played x;
            w.share[bad][nic] = 0.5;
            play(&w, &x);
            for (uint32_t i = 0; i < count; i++) {
                for (uint32_t n = 0; n < w.nics; n++) {
                    const struct perf_nic *is = nic_of(&x.p, i, n);
                    assert_true(is->tried >= 2 && is->partners[0] != is->partners[1]);
                    assert_true(i == bad && n == nic ? is->rate < 0.6 * NIC_RATE
                                                     : is->rate > 0.9 * NIC_RATE);
                }
            }
            free(x.memory);
        }
    }
}

/* Both partners of a NIC are slow: a third one, known to be good, decides. */
static void a_nic_with_two_slow_partners_meets_a_third(void **state)
{
    for (uint64_t seed = 1; seed <= 300; seed++) {
        struct world w = world_of(8 + (uint32_t)(seed % 20), 1 + (uint32_t)(seed % 2), seed);
        struct played x;
        const uint32_t one = (uint32_t)prng_below(&w.prng, w.count),
                       other = (uint32_t)prng_below(&w.prng, w.count);
        w.share[one][0] = w.share[other][0] = 0.5;
        play(&w, &x);
        for (uint32_t i = 0; i < w.count; i++) {
            const double rate = nic_of(&x.p, i, 0)->rate;
            const bool slow = i == one || i == other;
            assert_true(slow ? rate < 0.6 * NIC_RATE : rate > 0.88 * NIC_RATE);
            assert_int_equal(nic_of(&x.p, i, 0)->verdict == PERF_SLOWER, slow);
        }
        free(x.memory);
    }
}

static void two_slow_hosts_and_a_pair(void **state)
{
    struct world w = world_of(32, 2, 9);
    struct played x;
    w.share[3][0] = w.share[30][1] = 0.5;
    play(&w, &x);
    assert_int_equal(x.p.search.named_count, 2);
    assert_true(is_named(&x.p, 3) && is_named(&x.p, 30));
    free(x.memory);
    w = world_of(32, 2, 10);
    w.pair[0] = 2;
    w.pair[1] = 21;
    play(&w, &x);
    assert_int_equal(x.p.search.named_count, 1);
    assert_true(is_named(&x.p, 2) && is_named(&x.p, 21));
    free(x.memory);
}

/* One slow host in each half of four: the partners are hosts that were well in pairs. */
static void two_slow_hosts_of_four(void **state)
{
    struct world w = world_of(4, 2, 12);
    struct played x;
    w.share[0][1] = w.share[2][1] = 0.6;
    play(&w, &x);
    assert_int_equal(x.p.search.named_count, 2);
    assert_true(is_named(&x.p, 0) && is_named(&x.p, 2));
    free(x.memory);
}

/* One host reports too little or too much about its tests: no host counts as slow by that. */
static void a_liar_names_nobody(void **state)
{
    static const double tells[] = {1e3, 0.5 * NIC_RATE, 1.5 * NIC_RATE, 1e18};
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct world w = world_of(3 + (uint32_t)(seed % 30), 1 + (uint32_t)(seed % 3), seed);
        struct played x;
        w.liar = (uint32_t)prng_below(&w.prng, w.count);
        w.liar_tells = tells[seed / 30 % 4];
        play(&w, &x);
        assert_false(x.p.slow);
        for (uint32_t i = 0; i < w.count; i++) {
            for (uint32_t n = 0; n < w.nics; n++) {
                assert_true(nic_of(&x.p, i, n)->rate > 0.9 * NIC_RATE);
                assert_true(nic_of(&x.p, i, n)->rate > (1 - PERF_PRACTICAL) * x.p.usual[n]);
                assert_true(nic_of(&x.p, i, n)->rate <= NIC_RATE);
            }
        }
        free(x.memory);
    }
}

/* A host that reports too little about all its tests hides no slow NIC, also not one that has the same partners. */
static void a_liar_hides_nobody(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct world w = world_of(8 + (uint32_t)(seed % 20), 1, seed);
        struct played x;
        const uint32_t bad = (uint32_t)prng_below(&w.prng, w.count);
        w.share[bad][0] = 0.5;
        w.liar = (bad + w.count / 2 + 1) % w.count;
        w.liar_tells = 1e3;
        play(&w, &x);
        assert_true(nic_of(&x.p, bad, 0)->rate < 0.6 * NIC_RATE);
        assert_true(nic_of(&x.p, bad, 0)->rate < (1 - PERF_PRACTICAL) * x.p.usual[0]);
        free(x.memory);
    }
}

/* Hosts report how long they worked: the host that works longer is late, and no other. */
static void a_host_that_works_longer_is_late(void **state)
{
    struct world w = world_of(9, 1, 5);
    struct played x;
    w.worker = 4;
    play(&w, &x);
    for (uint32_t i = 0; i < w.count; i++) {
        uint32_t late = 0, of = 0;
        for (uint32_t row = 0; row < PERF_ROWS; row++) {
            late += x.p.rows[row * w.count + i].late;
            of += x.p.rows[row * w.count + i].arrivals;
        }
        assert_int_equal(of, PERF_ROWS * PERF_ARRIVALS);
        assert_int_equal(late, i == 4 ? of / 2 : 0);
    }
    free(x.memory);
}

/* Everything that a NIC sends is wrong: its partners have wrong values, and that NIC's host is named. */
static void partners_name_a_sender_of_wrong_values(void **state)
{
    for (uint64_t seed = 1; seed <= 200; seed++) {
        struct world w = world_of(3 + (uint32_t)(seed % 15), 1 + (uint32_t)(seed % 3), seed);
        struct played x;
        w.wrong = (uint32_t)prng_below(&w.prng, w.count);
        w.wrong_nic = (uint32_t)prng_below(&w.prng, w.nics);
        play(&w, &x);
        for (uint32_t i = 0; i < w.count; i++) {
            assert_int_equal(perf_truth_of(&x.p, i), i == w.wrong ? PERF_WRONG : PERF_RIGHT);
        }
        assert_int_equal(perf_row_wrong(&x.p, 0), w.count - 1);
        free(x.memory);
    }
}

/* A host that has a job, or refuses, is in no ring. The ring runs without it. */
static void an_absent_host_ends_no_other_test(void **state)
{
    static const uint8_t outcomes[] = {PERF_BUSY, PERF_PREEMPTED, PERF_REFUSED};
    for (size_t k = 0; k < sizeof(outcomes); k++) {
        struct world w = world_of(12, 2, 11 + k);
        struct played x;
        w.outcome[4] = outcomes[k];
        play(&w, &x);
        assert_int_equal(x.p.ring_count, 11);
        assert_false(perf_in_rings(&x.p, 4));
        assert_true(x.p.best > 0);
        assert_false(x.p.slow);
        assert_int_equal(x.p.rows[4].outcome, PERF_NOT_RUN);
        free(x.memory);
    }
}

static bool dies(const struct world *w, uint32_t host)
{
    for (uint32_t k = 0; k < w->death_count; k++) {
        if (w->deaths[k].host == host) {
            return true;
        }
    }
    return false;
}

/* One host or two, of drawn fleets, die or get a job in drawn rings: the others have all rows, the dead ones the earlier rows. */
static void only_the_dead_hosts_rows_are_missing(void **state)
{
    uint32_t again = 0;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        struct world w = world_of(4 + (uint32_t)(seed % 30), 1 + (uint32_t)(seed % 3), seed);
        struct played x;
        w.death_count = 1 + (uint32_t)prng_below(&w.prng, 2);
        for (uint32_t k = 0; k < w.death_count; k++) {
            w.deaths[k] = (struct death){
                .host = (uint32_t)((prng_below(&w.prng, w.count / 2) * 2 + k) % w.count),
                .ring = (uint32_t)prng_below(&w.prng, PERF_ROWS + 2),
                .after = prng_below(&w.prng, 4) == 0,
                .tells = prng_below(&w.prng, 4) == 0 ? PERF_PREEMPTED : 0};
        }
        play(&w, &x);
        again += x.p.ring_plans - 1;
        assert_true(x.p.ring_plans <= 1 + w.death_count);
        assert_false(x.p.slow);
        for (uint32_t row = 0; row < PERF_ROWS; row++) {
            assert_int_equal(x.p.together[row].outcome, PERF_DONE);
            assert_true(x.p.together[row].hosts >= w.count - w.death_count);
            for (uint32_t i = 0; i < w.count; i++) {
                const struct perf_result *r = &x.p.rows[row * w.count + i];
                assert_true(
                    r->outcome == PERF_DONE ||
                    (dies(&w, i) && (r->outcome == PERF_SILENT || r->outcome == PERF_PREEMPTED ||
                                     r->outcome == PERF_FAILED || r->outcome == PERF_NOT_RUN)));
                assert_true(r->outcome != PERF_DONE || r->rate == x.p.together[row].rate ||
                            dies(&w, i));
            }
        }
        for (uint32_t i = 0; i < w.count; i++) {
            assert_true(perf_in_rings(&x.p, i) || dies(&w, i));
        }
        free(x.memory);
    }
    assert_true(again > 300);
}

/* The results of a host's rings before its death count for it. The rest keeps the reason. */
static void rings_before_a_death_stay(void **state)
{
    struct world w = world_of(9, 2, 3);
    struct played x;
    w.death_count = 1;
    w.deaths[0] = (struct death){.host = 4, .ring = 3};
    play(&w, &x);
    assert_int_equal(x.p.ring_plans, 2);
    assert_int_equal(w.rings, PERF_ROWS + PERF_ROWS - 3);
    for (uint32_t row = 0; row < PERF_ROWS; row++) {
        assert_int_equal(x.p.rows[row * 9 + 4].outcome, row < 3 ? PERF_DONE : PERF_SILENT);
        assert_int_equal(x.p.together[row].hosts, row < 3 ? 9 : 8);
    }
    assert_false(perf_in_rings(&x.p, 4));
    free(x.memory);
}

/* A host dies in the first ring of each plan: that comes to an end, and tests that were not run keep the reason. */
static void rings_end_however_many_die(void **state)
{
    struct world w = world_of(20, 1, 4);
    struct played x;
    w.death_count = 6;
    for (uint32_t k = 0; k < w.death_count; k++) {
        w.deaths[k] = (struct death){.host = 3 * k, .ring = k * PERF_ROWS};
    }
    play(&w, &x);
    assert_int_equal(x.p.ring_plans, PERF_RING_PLANS);
    assert_true(x.p.best < 0);
    for (uint32_t row = 0; row < PERF_ROWS; row++) {
        assert_int_equal(x.p.rows[row * 20 + 1].outcome, PERF_FAILED);
        assert_int_equal(x.p.rows[row * 20].outcome, PERF_SILENT);
    }
    free(x.memory);
}

/* The ring of two can't run again without one of them. */
static void a_ring_of_one_is_none(void **state)
{
    struct world w = world_of(2, 1, 4);
    struct played x;
    w.death_count = 1;
    w.deaths[0] = (struct death){.host = 1, .ring = 2};
    play(&w, &x);
    assert_int_equal(x.p.ring_plans, 1);
    assert_int_equal(x.p.rows[2].outcome, PERF_DONE);
    assert_int_equal(x.p.rows[PERF_ROWS].outcome, PERF_FAILED);
    free(x.memory);
}

/* A host with fewer NICs than most is in no ring; the rings use all NICs of the others. A host with more NICs uses as many as the
 * others. */
static void hosts_with_other_numbers_of_nics(void **state)
{
    struct world w = world_of(10, 4, 3);
    struct played x;
    for (uint32_t i = 0; i < 10; i++) {
        w.nics_of[i] = i == 2 ? 1 : i == 7 ? 4 : 3;
    }
    play(&w, &x);
    assert_int_equal(x.p.ring_nics, 3);
    assert_int_equal(x.p.ring_count, 9);
    assert_false(perf_in_rings(&x.p, 2));
    assert_true(perf_in_rings(&x.p, 7));
    assert_false(x.p.slow);
    free(x.memory);
}

/* One NIC of a host is dead, also the first one: rings are without that host, and use all NICs of the others. */
static void a_host_with_a_dead_nic_ends_no_ring(void **state)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct world w = world_of(4 + (uint32_t)(seed % 20), 2 + (uint32_t)(seed % 3), seed);
        struct played x;
        const uint32_t host = (uint32_t)prng_below(&w.prng, w.count);
        w.dead_nics[host] = 1u << prng_below(&w.prng, w.nics);
        play(&w, &x);
        assert_int_equal(x.p.ring_nics, w.nics);
        assert_int_equal(x.p.ring_count, w.count - 1);
        assert_false(perf_in_rings(&x.p, host));
        assert_false(x.p.slow);
        for (uint32_t row = 0; row < PERF_ROWS; row++) {
            assert_int_equal(x.p.together[row].outcome, PERF_DONE);
            assert_int_equal(x.p.together[row].hosts, w.count - 1);
        }
        free(x.memory);
    }
}

/* A rail is dead at all hosts but one: rings use the NICs before it. If no NIC is left, there are no rings. */
static void rings_are_of_nics_that_work(void **state)
{
    for (uint32_t rail = 0; rail < 3; rail++) {
        struct world w = world_of(9, 3, 5 + rail);
        struct played x;
        for (uint32_t i = 1; i < w.count; i++) {
            w.dead_nics[i] = 1u << rail;
        }
        play(&w, &x);
        assert_int_equal(x.p.ring_nics, rail);
        assert_int_equal(x.p.ring_count, rail > 0 ? w.count : 0);
        assert_true(rail > 0 ? x.p.best > 0 && !x.p.slow : x.p.best < 0);
        free(x.memory);
    }
}

/* Most hosts carry nothing: the others run their rings. */
static void few_good_hosts_have_a_ring(void **state)
{
    struct world w = world_of(10, 2, 3);
    struct played x;
    for (uint32_t i = 0; i < w.count; i++) {
        w.dead_nics[i] = i == 4 || i == 5 ? 0 : 3;
    }
    play(&w, &x);
    assert_int_equal(x.p.ring_nics, 2);
    assert_int_equal(x.p.ring_count, 2);
    assert_true(x.p.best > 0);
    free(x.memory);
}

/* Tests that did not run, in any stage, name no host. After a search they also make no host well. */
static void tests_that_fail_name_nobody(void **state)
{
    uint32_t named = 0;
    for (uint64_t seed = 1; seed <= 500; seed++) {
        struct world w = world_of(4 + (uint32_t)(seed % 30), 2, seed);
        const uint32_t bad = (uint32_t)prng_below(&w.prng, w.count);
        struct played x;
        w.share[bad][1] = 0.6;
        w.lost = 0.3;
        play(&w, &x);
        for (uint32_t i = 0; i < w.count; i++) {
            assert_true(i == bad || !is_named(&x.p, i));
            for (uint32_t n = 0; n < w.nics; n++) {
                const struct perf_nic *is = nic_of(&x.p, i, n);
                assert_true((i == bad && n == 1) || is->tried < 2 || is->rate > 0.9 * NIC_RATE ||
                            is->partners[0] == is->partners[1]);
            }
        }
        assert_true(!x.p.slow || x.p.search.named_count == 1 || !perf_cleared(&x.p, bad));
        named += x.p.search.named_count;
        free(x.memory);
    }
    assert_true(named > 100);
}

/* For a while no host had a processor: tests that failed then are repeated once, and a slow host is still named. */
static void tests_that_failed_for_all_are_repeated(void **state)
{
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct world w = world_of(8 + (uint32_t)(seed % 20), 2, seed);
        const uint32_t bad = (uint32_t)prng_below(&w.prng, w.count);
        struct played x;
        w.noise = 0.01;
        w.misses = true;
        w.share[bad][1] = 0.8;
        play(&w, &x);
        assert_int_equal(w.ways, 2);
        for (uint32_t i = 0; i < w.count; i++) {
            assert_true(perf_in_rings(&x.p, i));
            assert_true(nic_of(&x.p, i, 1)->tried >= 2);
            assert_int_equal(nic_of(&x.p, i, 1)->verdict == PERF_SLOWER, i == bad);
            assert_int_equal(nic_of(&x.p, i, 0)->verdict == PERF_SLOWER, 0);
        }
        free(x.memory);
    }
}

static uint32_t count_slower(const struct played *x, const struct world *w, uint32_t but)
{
    uint32_t slower = 0;
    for (uint32_t i = 0; i < w->count; i++) {
        for (uint32_t n = 0; n < w->nics_of[i] && i != but; n++) {
            slower += nic_of(&x->p, i, n)->verdict == PERF_SLOWER;
        }
    }
    return slower;
}

/* If tests vary by more than the smallest effect that counts, the better of three is sometimes that slow by chance. No host
 * counts as slower by that, or as equal to the others without fresh tests. */
static void chance_makes_nobody_slower(void **state)
{
    uint32_t candidates = 0, by_three = 0, untold = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct world w = world_of(64, 2, seed);
        struct played x;
        w.spread = 0.06;
        play(&w, &x);
        assert_int_equal(count_slower(&x, &w, NOBODY), 0);
        candidates += x.p.candidates;
        for (uint32_t i = 0; i < w.count; i++) {
            const struct perf_nic *is = nic_of(&x.p, i, 0);
            const bool slow = is->rate < (1 - PERF_PRACTICAL) * x.p.usual[0];
            by_three += slow;
            untold += is->verdict == PERF_UNTOLD;
            assert_true(slow ? is->verdict != PERF_ALIKE : is->verdict != PERF_UNTOLD);
        }
        free(x.memory);
    }
    assert_true(candidates >= 10 && by_three >= 20 && untold >= 10);
}

/* One host of 64 is 12 % slower, at a robust spread of 1.5 % with heavy tails: 95 of 100 are found, and no other host. */
static void retests_find_who_is_slower(void **state)
{
    uint32_t found = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct world w = world_of(64, 1, seed);
        const uint32_t bad = (uint32_t)prng_below(&w.prng, w.count);
        struct played x;
        w.spread = 0.015;
        w.share[bad][0] = 0.88;
        play(&w, &x);
        assert_int_equal(count_slower(&x, &w, bad), 0);
        const struct perf_nic *is = nic_of(&x.p, bad, 0);
        assert_true(is->verdict != PERF_SLOWER || is->retest.count >= OUTLIER_RETESTS_LEAST);
        found += is->verdict == PERF_SLOWER;
        free(x.memory);
    }
    assert_true(found >= 95);
}

/* In how many of 100 fleets a NIC at 80 % of its rate is named, if first tests between leaves share trunks. */
static uint32_t found_at(double spread, uint32_t hosts, uint32_t sizes)
{
    uint32_t found = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct world w = world_of(hosts + 4 * (uint32_t)(seed % sizes), 1, seed);
        const uint32_t bad = (uint32_t)prng_below(&w.prng, w.count);
        struct played x;
        w.far = 0.6;
        w.spread = spread;
        w.share[bad][0] = 0.8;
        play(&w, &x);
        assert_int_equal(count_slower(&x, &w, bad), 0);
        found += nic_of(&x.p, bad, 0)->verdict == PERF_SLOWER;
        free(x.memory);
    }
    print_message("found %u of 100\n", found);
    return found;
}

/* If first tests between leaves share trunks, single tests vary by much, and the best of each NIC's by little. Few retests run at
 * one time, so they don't share trunks: their own spread decides. */
static void the_spread_of_retests_decides(void **state)
{
    assert_true(found_at(0.005, 8, 6) >= 98);
}

/* Retests vary by more than a quarter of the smallest effect that counts, and first tests between leaves by much more. So the
 * effect of chance is unknown, and the order of hosts that are tested in the same seconds decides. */
static void the_order_of_retests_tells(void **state)
{
    assert_true(found_at(0.03, 16, 4) >= 92);
}

/* Slow in the first tests, and well afterwards: such a host is not slower. */
static void fresh_tests_alone_tell(void **state)
{
    for (uint64_t seed = 1; seed <= 50; seed++) {
        struct world w = world_of(8 + (uint32_t)(seed % 20), 1, seed);
        const uint32_t host = (uint32_t)prng_below(&w.prng, w.count);
        struct played x;
        w.share[host][0] = 0.6;
        w.heals = true;
        w.healing = host;
        play(&w, &x);
        assert_int_equal(nic_of(&x.p, host, 0)->verdict, PERF_CLEARED);
        assert_true(nic_of(&x.p, host, 0)->rate > 0.9 * NIC_RATE);
        free(x.memory);
    }
}

/* All hosts of another kind carry half: they are no outliers. One of them that carries less than its kind is. */
static void each_kind_has_a_cohort_of_its_own(void **state)
{
    for (uint64_t seed = 1; seed <= 100; seed++) {
        struct world w = world_of(12 + (uint32_t)(seed % 30), 2, seed);
        const uint32_t bad = (uint32_t)(2 * prng_below(&w.prng, w.count / 2));
        struct played x;
        w.noise = 0.02;
        for (uint32_t i = 0; i < w.count; i++) {
            w.kind[i] = (uint16_t)(i % 2);
            w.share[i][0] = w.share[i][1] = i % 2 == 0 ? 0.5 : 1;
        }
        w.share[bad][1] = 0.4;
        play(&w, &x);
        assert_int_equal(nic_of(&x.p, bad, 1)->verdict, PERF_SLOWER);
        assert_int_equal(count_slower(&x, &w, bad), 0);
        free(x.memory);
    }
}

/* The site sets the smallest effect that counts. */
static void the_site_sets_the_smallest_effect(void **state)
{
    static const double practical[] = {0.03, 0.2};
    for (size_t k = 0; k < 2; k++) {
        struct world w = world_of(30, 1, 5);
        struct played x;
        w.noise = 0.004;
        w.share[7][0] = 0.9;
        w.practical = practical[k];
        play(&w, &x);
        assert_int_equal(nic_of(&x.p, 7, 0)->verdict == PERF_SLOWER, k == 0);
        free(x.memory);
    }
}

/* The search begins with a host that worked longer before the rings' meetings: three rounds, where halves take more. */
static void the_search_begins_with_who_came_last(void **state)
{
    for (int late = 0; late < 2; late++) {
        uint32_t rounds = 0;
        for (uint64_t seed = 1; seed <= 20; seed++) {
            struct world w = world_of(64, 1, seed);
            const uint32_t bad = (uint32_t)prng_below(&w.prng, w.count);
            struct played x;
            w.starved = bad;
            w.starves = true;
            w.worker = late == 1 ? bad : NOBODY;
            play(&w, &x);
            assert_true(x.p.slow && x.p.searched);
            assert_int_equal(x.p.search.named_count, 1);
            assert_true(is_named(&x.p, bad));
            assert_true(late == 0 || w.rounds == 3);
            rounds += w.rounds;
            free(x.memory);
        }
        assert_true(late == 1 || rounds > 20 * 4);
    }
}

/* Four hosts send to a fifth, in one group for each leaf if there are enough hosts. A host that can't take part is in no
 * group. */
static void many_send_to_one(void **state)
{
    static const uint32_t counts[] = {4, 5, 9, 20, 64, 70};
    for (size_t c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        struct world w = world_of(counts[c], 2, c);
        struct played x;
        uint32_t receivers = 0;
        w.incast = true;
        w.no_incast = counts[c] > 5 ? 3 : NOBODY;
        play(&w, &x);
        for (uint32_t i = 0; i < w.count; i++) {
            const struct perf_incast *is = &x.p.nic[i * HOST_NIC_MAX + 1].incast;
            receivers += is->senders > 0;
            assert_true(is->senders == 0 ||
                        (is->senders >= PERF_INCAST_LEAST - 1 && is->senders < PERF_INCAST_MOST &&
                         is->came == 1000 && is->marked == i && i != w.no_incast));
        }
        const uint32_t able = w.count - (w.no_incast != NOBODY);
        assert_int_equal(receivers, able < 5 ? 0 : able / 4 < 5 ? able / 5 : 4);
        free(x.memory);
    }
}

/* If no ways through the fabric are asked for, none is tested, and everything else is as before. */
static void no_ways_are_tested(void **state)
{
    for (uint32_t count = 2; count <= 9; count++) {
        for (int off = 0; off < 2; off++) {
            struct world w = world_of(count, 2, count);
            struct played x;
            w.no_ways = off == 1;
            play(&w, &x);
            assert_int_equal(w.ways, off == 1 ? 0 : 2);
            for (uint32_t i = 0; i < count; i++) {
                assert_int_equal(perf_truth_of(&x.p, i), PERF_RIGHT);
                assert_true(nic_of(&x.p, i, 1)->rate > 0);
            }
            free(x.memory);
        }
    }
}

static void fewer_than_two_are_refused(void **state)
{
    struct perf_host hosts[3] = {{.nics = 1, .there = true}, {.nics = 1}, {.there = true}};
    void *memory = malloc(perf_size(3));
    struct perf p;
    const struct perf_config config = {.hosts = hosts, .count = 3, .wants_rings = true};
    assert_int_equal(perf_init(&p, &config, memory), -ENODATA);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_slow),
        cmocka_unit_test(the_slow_host_alone_is_named),
        cmocka_unit_test(a_slow_nic_is_judged_by_different_partners),
        cmocka_unit_test(a_nic_with_two_slow_partners_meets_a_third),
        cmocka_unit_test(two_slow_hosts_and_a_pair),
        cmocka_unit_test(two_slow_hosts_of_four),
        cmocka_unit_test(a_liar_names_nobody),
        cmocka_unit_test(a_liar_hides_nobody),
        cmocka_unit_test(a_host_that_works_longer_is_late),
        cmocka_unit_test(partners_name_a_sender_of_wrong_values),
        cmocka_unit_test(an_absent_host_ends_no_other_test),
        cmocka_unit_test(only_the_dead_hosts_rows_are_missing),
        cmocka_unit_test(rings_before_a_death_stay),
        cmocka_unit_test(rings_end_however_many_die),
        cmocka_unit_test(a_ring_of_one_is_none),
        cmocka_unit_test(hosts_with_other_numbers_of_nics),
        cmocka_unit_test(a_host_with_a_dead_nic_ends_no_ring),
        cmocka_unit_test(rings_are_of_nics_that_work),
        cmocka_unit_test(few_good_hosts_have_a_ring),
        cmocka_unit_test(tests_that_fail_name_nobody),
        cmocka_unit_test(tests_that_failed_for_all_are_repeated),
        cmocka_unit_test(chance_makes_nobody_slower),
        cmocka_unit_test(retests_find_who_is_slower),
        cmocka_unit_test(the_spread_of_retests_decides),
        cmocka_unit_test(the_order_of_retests_tells),
        cmocka_unit_test(fresh_tests_alone_tell),
        cmocka_unit_test(each_kind_has_a_cohort_of_its_own),
        cmocka_unit_test(the_site_sets_the_smallest_effect),
        cmocka_unit_test(the_search_begins_with_who_came_last),
        cmocka_unit_test(many_send_to_one),
        cmocka_unit_test(no_ways_are_tested),
        cmocka_unit_test(fewer_than_two_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
