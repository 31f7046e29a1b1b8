/* test_one_liar.c: one host of a small fleet lies in each field of its reports of a matrix, of tests, and of pairs. The liar may
 * fail; no other host does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/prng.h"
#include "core/fleet/delay_code.h"
#include "judge_kit.h"
#include "service/audit/sheet.h"
#include "service/controller/audit/matrix.h"
#include "service/controller/audit/perf.h"

enum { HOSTS_MAX = 8, RAILS_MAX = 4, PACKETS = 5, DSCP = 26, SEEDS = 1000 };

static const char *const names[HOSTS_MAX] = {"h0", "h1", "h2", "h3", "h4", "h5", "h6", "h7"};

/* All fleets are judged in the same memory. */
static struct audit *judged(struct sheet *sheets, uint32_t count,
                            const struct audit_settings *settings)
{
    static struct audit a;
    if (a.results == NULL) {
        judge_sheets(&a, sheets, 0);
    }
    a.sheets = sheets;
    a.sheet_count = count;
    a.settings = settings;
    assert_int_equal(audit_judge(&a), 0);
    return &a;
}

/* Only the liar may fail these checks. "be.matrix." stands for all checks that begin so. */
static void only_the_liar_fails(const struct audit *a, uint32_t liar, const char *const *checks,
                                const char *what, uint64_t seed)
{
    for (uint32_t i = 0; i < a->count; i++) {
        const struct audit_result *r = &a->results[i];
        bool of_these = false;
        for (const char *const *c = checks; *c != NULL; c++) {
            of_these = of_these || strncmp(r->check->id, *c, strlen(*c)) == 0;
        }
        if (of_these && r->status == AUDIT_FAIL && r->sheet != liar) {
            fail_msg(
                "%s, seed %llu: host %u of %u fails %s of '%s' by the word of host %u: %s (%s)",
                what, (unsigned long long)seed, r->sheet, a->sheet_count, r->check->id, r->subject,
                liar, r->found, r->note);
        }
    }
}

/* ---- a matrix ---- */

enum lie {
    HEARD_NOTHING,
    HEARD_LESS,
    SENT_NONE, /* but reports that it did */
    LATE,
    EARLY,
    MARK_LOST,
    MARK_SKIPPED, /* it did not mark, but reports that it did */
    ANY_BYTES,
    LIES
};
static const char *const lies[LIES] = {"heard nothing", "heard less", "sent none",    "late",
                                       "early",         "mark lost",  "mark skipped", "any bytes"};

struct fleet {
    struct prng prng;
    uint32_t hosts, rails, nics_of[HOSTS_MAX];
    uint32_t leaves; /* 0: none are known; 1: one of each half of the hosts; 2: one of each rail */
    uint32_t liar;
    bool silent[HOSTS_MAX]; /* its report is missing */
    bool victim[HOSTS_MAX][RAILS_MAX];
    enum lie lie;
    double share; /* share of rounds with a victim in which it lies */
};

static uint16_t leaf_of(const struct fleet *f, uint32_t host, uint32_t rail)
{
    return f->leaves == 1 ? (uint16_t)(host * 2 / f->hosts) : (uint16_t)rail;
}

static struct fleet draw_fleet(uint64_t seed)
{
    struct fleet f = {.share = 1};
    prng_init(&f.prng, seed);
    f.hosts = 2 + (uint32_t)prng_below(&f.prng, HOSTS_MAX - 1);
    f.rails = 1 + (uint32_t)prng_below(&f.prng, RAILS_MAX);
    f.leaves = (uint32_t)prng_below(&f.prng, 3);
    f.liar = (uint32_t)prng_below(&f.prng, f.hosts);
    f.lie = (enum lie)prng_below(&f.prng, LIES);
    f.share = prng_below(&f.prng, 2) == 0 ? 1 : prng_uniform(&f.prng);
    const bool uneven = prng_below(&f.prng, 3) == 0;
    for (uint32_t h = 0; h < f.hosts; h++) {
        f.nics_of[h] = uneven ? 1 + (uint32_t)prng_below(&f.prng, f.rails) : f.rails;
        f.silent[h] = h != f.liar && prng_below(&f.prng, 8) == 0;
        for (uint32_t r = 0; r < f.rails; r++) {
            f.victim[h][r] = prng_below(&f.prng, 2) == 0;
        }
    }
    f.nics_of[f.liar] = f.rails; /* it reports more NICs than others have */
    return f;
}

/* A NIC's report of a round. liar, partner: its own host, or its partner's, is the liar. */
static void tell_round(struct fleet *f, bool rail, bool liar, bool partner, bool lied,
                       uint8_t *sent, uint8_t *heard, int16_t *delay)
{
    const uint8_t mark = rail ? MATRIX_MARK : 0;
    *sent = PACKETS | mark;
    *heard = PACKETS | mark;
    if (partner && lied && f->lie == SENT_NONE) {
        *heard = 0;
        *delay = DELAY_CODE_NONE;
    } else if (partner && lied && f->lie == MARK_SKIPPED) {
        *heard = PACKETS;
    }
    if (!liar || !lied) {
        return;
    }
    switch (f->lie) {
    case HEARD_NOTHING:
        *heard = 0;
        *delay = DELAY_CODE_NONE;
        break;
    case HEARD_LESS:
        *heard = (uint8_t)(1 + prng_below(&f->prng, PACKETS - 1)) | mark;
        break;
    case LATE:
        *delay = (int16_t)delay_encode(delay_decode(*delay) + 40000);
        break;
    case EARLY:
        *delay = (int16_t)delay_encode(delay_decode(*delay) - 40000);
        break;
    case MARK_LOST:
        *heard = PACKETS;
        break;
    case ANY_BYTES:
        *sent = (uint8_t)prng_u64(&f->prng);
        *heard = (uint8_t)prng_u64(&f->prng);
        *delay = (int16_t)prng_u64(&f->prng);
        break;
    case SENT_NONE:
    case MARK_SKIPPED:
    case LIES:
        break;
    }
}

/* Whether the liar lies about a pair: the same dice for both ends' reports. */
static bool is_lied(const struct fleet *f, uint32_t a, uint32_t b)
{
    const uint32_t other = a / f->rails == f->liar ? b : a;
    struct prng p;
    prng_init(&p, (uint64_t)a * 64 + b + (uint64_t)(f->share * 1e6));
    return f->victim[other / f->rails][other % f->rails] && prng_uniform(&p) < f->share;
}

static void tell_nic(struct fleet *f, struct audit_matrix *x, uint32_t nic)
{
    enum { ROUNDS_MOST = 128 };
    uint8_t sent[ROUNDS_MOST], heard[ROUNDS_MOST];
    int16_t delay[ROUNDS_MOST];
    const uint32_t rounds = matrix_rounds(&x->plan), host = nic / f->rails, rail = nic % f->rails;
    assert_true(rounds <= ROUNDS_MOST);
    for (uint32_t k = 0; k < rounds; k++) {
        const uint32_t other = matrix_partner(&x->plan, k, nic);
        sent[k] = heard[k] = MATRIX_ALONE << 4;
        delay[k] = DELAY_CODE_NONE;
        if (other == MATRIX_NONE || !x->m.nics[other].there || other / f->rails == host) {
            continue;
        }
        const uint32_t far = other / f->rails, low = nic < other ? nic : other;
        const bool near =
            f->leaves != 0 && leaf_of(f, host, rail) == leaf_of(f, far, other % f->rails);
        delay[k] = (int16_t)delay_encode((near ? 2000 : 5000) + (int64_t)prng_below(&f->prng, 60));
        tell_round(f, rail == other % f->rails, host == f->liar, far == f->liar,
                   is_lied(f, low, nic + other - low), &sent[k], &heard[k], &delay[k]);
    }
    assert_int_equal(matrix_take(&x->m, nic, sent, heard, delay, rounds, 200), 0);
}

static struct audit_matrix *matrix_of(struct fleet *f)
{
    struct audit_matrix *x = calloc(1, sizeof(*x));
    assert_non_null(x);
    x->plan = (struct matrix_plan){.hosts = f->hosts,
                                   .rails = f->rails,
                                   .packets = PACKETS,
                                   .dscp = DSCP,
                                   .begin_ns = NS_PER_S,
                                   .round_ns = 100 * NS_PER_MS,
                                   .gap_ns = 10 * NS_PER_MS,
                                   .seed = 7};
    matrix_plan_ready(&x->plan);
    assert_int_equal(audit_matrix_claim(x), 0);
    for (uint32_t i = 0; i < f->hosts * f->rails; i++) {
        const uint32_t host = i / f->rails, rail = i % f->rails;
        char leaf[16];
        x->hosts[host] = 100 + host;
        snprintf(x->names[host], sizeof(x->names[0]), "%s", names[host]);
        x->m.nics[i].there = rail < f->nics_of[host];
        x->places[i].id = x->m.nics[i].there ? 1 + i : 0;
        snprintf(x->places[i].name, sizeof(x->places[i].name), "nic%u", rail);
        snprintf(leaf, sizeof(leaf), "leaf%u", leaf_of(f, host, rail));
        x->m.nics[i].leaf = f->leaves == 0 ? MATRIX_LEAF_NONE : audit_leaf_number(&x->leaves, leaf);
    }
    for (uint32_t i = 0; i < f->hosts * f->rails; i++) {
        if (x->m.nics[i].there && !f->silent[i / f->rails]) {
            tell_nic(f, x, i);
        }
    }
    return x;
}

static void add_ports(const struct fleet *f, uint32_t host, struct sheet *s)
{
    static const char *const ports[RAILS_MAX] = {"rdma0/1", "rdma1/1", "rdma2/1", "rdma3/1"},
                             *const nics[RAILS_MAX] = {"nic0", "nic1", "nic2", "nic3"};
    for (uint32_t r = 0; r < f->nics_of[host]; r++) {
        const struct fact facts[] = {{FACT_PORT, FACT_VALUE, ports[r], "1", ""},
                                     {FACT_PORT_LAYER, FACT_VALUE, ports[r], "Ethernet", ""},
                                     {FACT_PORT_NET, FACT_VALUE, ports[r], nics[r], ""}};
        s->facts = realloc(s->facts, (s->count + 3) * sizeof(*s->facts));
        memcpy(s->facts + s->count, facts, sizeof(facts));
        s->count += 3;
        s->capacity = s->count;
    }
}

static void a_liar_in_a_matrix(void **state)
{
    static const char *const checks[] = {"be.matrix.", "be.topo.inferred", "be.roce.dscp_path",
                                         "be.lat.drift", NULL};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct fleet f = draw_fleet(seed);
        struct audit_matrix *x = matrix_of(&f);
        struct sheet sheets[HOSTS_MAX];
        assert_int_equal(audit_matrix_judge(x, NULL), 0);
        for (uint32_t h = 0; h < f.hosts; h++) {
            sheets[h] = (struct sheet){.host = names[h]};
            assert_int_equal(audit_matrix_facts(x, 100 + h, &sheets[h]), 0);
            add_ports(&f, h, &sheets[h]);
            sheet_finish(&sheets[h]);
        }
        only_the_liar_fails(judged(sheets, f.hosts, &audit_usual), f.liar, checks, lies[f.lie],
                            seed);
        for (uint32_t h = 0; h < f.hosts; h++) {
            free(sheets[h].facts);
        }
        audit_matrix_free(x);
    }
}

/* ---- tests ---- */

struct tests {
    struct audit_perf x;
    struct perf_host hosts[HOSTS_MAX];
    struct audit_perf_host who[HOSTS_MAX];
    struct prng prng;
    uint32_t count, nics, liar;
    uint32_t field; /* the field with the lie; 7: all of them */
};
#define RATE 50e6

static double any_rate(struct prng *p)
{
    static const double rates[] = {0, 1, 0.5 * RATE, 0.9 * RATE, 1.5 * RATE, 1e18};
    return rates[prng_below(p, 6)];
}

static void lie_in_tests(struct tests *t, struct perf_result *r)
{
    const bool all = t->field == 7;
    if (t->field == 0 || all) {
        r->rate = any_rate(&t->prng);
    }
    if (t->field == 1 || all) {
        r->wrong = prng_below(&t->prng, 2) * 9;
    }
    for (uint32_t k = 0; (t->field == 2 || all) && k < PERF_ARRIVALS; k++) {
        r->work[k] = prng_below(&t->prng, 2) == 0 ? 0 : UINT16_MAX;
    }
    if (t->field == 3 || all) {
        r->runs = (uint32_t)prng_below(&t->prng, 9);
        r->spread = (uint32_t)prng_below(&t->prng, 9000);
        r->parts = (uint8_t)prng_below(&t->prng, PERF_PARTS + 1);
        for (uint32_t k = 0; k < r->parts; k++) {
            r->part_rate[k] = (uint16_t)prng_below(&t->prng, 10001);
            r->part_waited[k] = (uint16_t)prng_below(&t->prng, 10001);
        }
    }
    if (t->field == 4 || all) {
        snprintf(r->network, sizeof(r->network), "%s",
                 prng_below(&t->prng, 2) == 0 ? "Socket" : "x");
        r->init_ms = UINT32_MAX;
    }
    if (t->field == 5 || all) {
        r->sent = r->came = prng_below(&t->prng, 1000000);
        r->marked = 0;
    }
    if (t->field == 6 || all) {
        r->outcome = (uint8_t)(PERF_DONE + prng_below(&t->prng, PERF_OUTCOME_COUNT - PERF_DONE));
    }
}

static void tell_way(struct tests *t, uint32_t step, uint32_t host)
{
    struct way way = {.rate = host == t->liar ? any_rate(&t->prng) : 10e9, .hop_count = 3};
    snprintf(way.hops[0], WAY_NAME_SIZE, "leaf%u", host * 2 / t->count);
    snprintf(way.hops[1], WAY_NAME_SIZE, "spine%u", (uint32_t)prng_below(&t->prng, 2));
    snprintf(way.hops[2], WAY_NAME_SIZE, "leaf%u", 1 - host * 2 / t->count);
    way.narrow = host == t->liar ? (uint8_t)prng_below(&t->prng, 4) : 0;
    perf_take_way(&t->x.core, step, host, &way);
}

static void play_tests(struct tests *t)
{
    struct perf *p = &t->x.core;
    do {
        for (uint32_t step = 0; step < p->step_count; step++) {
            for (uint32_t i = 0; i < t->count; i++) {
                const struct perf_step *s = &p->steps[step];
                if (perf_part_of(p, step, i)->ranks == 0) {
                    continue;
                }
                struct perf_result r = {.outcome = PERF_DONE,
                                        .rate = RATE * (s->nic == PERF_NOBODY ? s->nics : 1) *
                                                (1 - 0.02 * prng_uniform(&t->prng)),
                                        .runs = 5,
                                        .spread = 100,
                                        .network = "foliot",
                                        .sent = 2000,
                                        .came = 1000,
                                        .marked = 10,
                                        .arrivals = PERF_ARRIVALS};
                for (uint32_t k = 0; k < PERF_ARRIVALS; k++) {
                    r.work[k] = (uint16_t)(100 + prng_below(&t->prng, 50));
                }
                if (i == t->liar) {
                    lie_in_tests(t, &r);
                }
                perf_take(p, step, i, &r);
                for (int k = 0; s->kind == PERF_WAYS && k < 4; k++) {
                    tell_way(t, step, i);
                }
            }
        }
    } while (audit_perf_sum_up(&t->x));
}

static void setup_tests(struct tests *t, uint64_t seed)
{
    *t = (struct tests){.x = {.hosts = t->hosts, .who = t->who}};
    prng_init(&t->prng, seed);
    t->count = t->x.count = 2 + (uint32_t)prng_below(&t->prng, HOSTS_MAX - 1);
    t->nics = 1 + (uint32_t)prng_below(&t->prng, 3);
    t->liar = (uint32_t)prng_below(&t->prng, t->count);
    t->field = (uint32_t)prng_below(&t->prng, 8);
    for (uint32_t i = 0; i < t->count; i++) {
        t->hosts[i] = (struct perf_host){.nics = t->nics, .there = true, .incast = true};
        t->who[i] = (struct audit_perf_host){.id = i + 1, .nic_count = t->nics};
        for (uint32_t n = 0; n < t->nics; n++) {
            t->hosts[i].leaf[n] = (uint16_t)(i * 2 / t->count);
            snprintf(t->who[i].names[n], IF_NAMESIZE, "nic%u", n);
        }
    }
    t->x.memory = malloc(perf_size(t->count));
    const struct perf_config config = {.hosts = t->hosts, .count = t->count, .wants_rings = true};
    assert_int_equal(perf_init(&t->x.core, &config, t->x.memory), 0);
}

struct runs {
    uint16_t rate[PERF_PARTS], waited[PERF_PARTS];
};

/* What nccl.repeat says of each host. Frees t. */
static void judge_runs(struct tests *t, const struct runs *runs, enum audit_status *ret)
{
    struct sheet sheets[HOSTS_MAX];
    t->field = UINT32_MAX; /* no lie in anything else */
    play_tests(t);
    for (uint32_t i = 0; i < t->count; i++) {
        struct perf_result *r = &t->x.core.rows[i];
        r->spread = 2000;
        r->parts = PERF_PARTS;
        memcpy(r->part_rate, runs[i].rate, sizeof(r->part_rate));
        memcpy(r->part_waited, runs[i].waited, sizeof(r->part_waited));
    }
    assert_int_equal(audit_perf_judge(&t->x), 0);
    for (uint32_t i = 0; i < t->count; i++) {
        sheets[i] = (struct sheet){.host = names[i], .facts = calloc(1, sizeof(struct fact))};
        sheets[i].facts[0] = (struct fact){FACT_OS_UPTIME, FACT_VALUE, "", "99999", ""};
        sheets[i].count = sheets[i].capacity = 1;
        assert_int_equal(audit_perf_facts(&t->x, i + 1, false, &sheets[i]), 0);
        sheet_finish(&sheets[i]);
        ret[i] = AUDIT_STATUS_COUNT;
    }
    const struct audit *a = judged(sheets, t->count, &audit_usual);
    for (uint32_t k = 0; k < a->count; k++) {
        const struct audit_result *r = &a->results[k];
        if (strcmp(r->check->id, "nccl.repeat") == 0) {
            ret[r->sheet] = r->status;
        }
    }
    for (uint32_t i = 0; i < t->count; i++) {
        free(sheets[i].facts);
        free(t->who[i].facts);
        free(t->who[i].text);
    }
    free(t->x.memory);
}

/* Runs differ, and nobody waited for a processor. By one host's word that it did, no other host goes without a verdict. */
static void a_liar_excuses_nobody_else(void **state)
{
    struct prng draw;
    prng_init(&draw, 71);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct tests t;
        struct runs runs[HOSTS_MAX];
        enum audit_status status[HOSTS_MAX];
        setup_tests(&t, seed);
        for (uint32_t i = 0; i < t.count; i++) {
            for (uint32_t k = 0; k < PERF_PARTS; k++) {
                runs[i].rate[k] = k % 2 == 0 ? 10000 : (uint16_t)(5000 + prng_below(&draw, 3000));
                runs[i].waited[k] = i == t.liar ? (uint16_t)prng_below(&draw, 10001) : 0;
            }
        }
        judge_runs(&t, runs, status);
        for (uint32_t i = 0; i < t.count; i++) {
            if (i != t.liar && status[i] != AUDIT_FAIL && status[i] != AUDIT_WARN) {
                fail_msg("seed %u: host %u is %s", (unsigned)seed, i, audit_status_name(status[i]));
            }
        }
    }
}

/* Runs differ because two hosts waited for a processor. Whatever a liar reports of its own waits, no host whose verdict these two
 * have made unknown fails, or is warned of. */
static void a_liar_takes_no_excuse(void **state)
{
    struct prng draw;
    uint32_t excused = 0;
    prng_init(&draw, 72);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct tests t;
        struct runs runs[HOSTS_MAX] = {0};
        enum audit_status before[HOSTS_MAX], after[HOSTS_MAX];
        const uint32_t waited = 500 + (uint32_t)prng_below(&draw, 2500);
        setup_tests(&t, seed);
        for (uint32_t i = 0; i < t.count; i++) {
            for (uint32_t k = 0; k < PERF_PARTS; k++) {
                const uint32_t rate = k == 0 ? 10000 : 9250 + (uint32_t)prng_below(&draw, 200);
                runs[i].rate[k] = (uint16_t)(k == 4 ? rate * (10000 - waited) / 10000 : rate);
            }
        }
        runs[(t.liar + 1) % t.count].waited[4] = (uint16_t)waited;
        runs[(t.liar + 2) % t.count].waited[4] = (uint16_t)waited;
        memset(runs[t.liar].waited, 0, sizeof(runs[t.liar].waited));
        const uint32_t liar = t.liar, count = t.count;
        judge_runs(&t, runs, before);
        for (uint32_t k = 0; k < PERF_PARTS; k++) {
            const uint64_t any = prng_below(&draw, 10001);
            runs[liar].waited[k] = (uint16_t)(any % 3 == 0 ? 0 : any % 3 == 1 ? 10000 : any);
        }
        setup_tests(&t, seed);
        judge_runs(&t, runs, after);
        for (uint32_t i = 0; i < count; i++) {
            const bool unknown = i != liar && before[i] == AUDIT_UNKNOWN;
            excused += unknown;
            if (unknown && after[i] != AUDIT_UNKNOWN) {
                fail_msg("seed %u: host %u is %s", (unsigned)seed, i, audit_status_name(after[i]));
            }
        }
    }
    assert_true(excused > SEEDS); /* of 2 to 8 hosts each */
}

/* Also with rates that the site declares: then none need be alike. */
static void a_liar_in_tests(void **state)
{
    static const char *const checks[] = {"be.bw.", "nccl.", "be.roce.ecn_live", NULL};
    static struct check_setting set[CHECKS_MAX];
    struct audit_settings declared = audit_usual;
    char rate[32], all[32];
    struct fleet ports = {.rails = RAILS_MAX};
    declared.checks = set;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        static struct tests t;
        struct sheet sheets[HOSTS_MAX];
        setup_tests(&t, seed);
        play_tests(&t);
        assert_int_equal(audit_perf_judge(&t.x), 0);
        snprintf(rate, sizeof(rate), "%.3f", RATE * 8e-9);
        snprintf(all, sizeof(all), "%.3f", RATE * t.nics * 1e-9);
        for (uint32_t n = 0; n < CATALOGUE_COUNT; n++) {
            const bool busbw = strncmp(check_at(n)->id, "nccl.busbw", 10) == 0;
            set[n].declared = busbw                                        ? all
                              : strcmp(check_at(n)->id, "be.bw.pair") == 0 ? rate
                                                                           : NULL;
        }
        for (uint32_t i = 0; i < t.count; i++) {
            sheets[i] = (struct sheet){.host = names[i], .facts = calloc(2, sizeof(struct fact))};
            sheets[i].facts[0] = (struct fact){FACT_OS_PRODUCT, FACT_VALUE, "", "Made up", ""};
            sheets[i].facts[1] = (struct fact){FACT_OS_UPTIME, FACT_VALUE, "", "99999", ""};
            sheets[i].count = sheets[i].capacity = 2;
            assert_int_equal(audit_perf_facts(&t.x, i + 1, false, &sheets[i]), 0);
            ports.nics_of[i] = t.nics;
            add_ports(&ports, i, &sheets[i]);
            sheet_finish(&sheets[i]);
        }
        only_the_liar_fails(judged(sheets, t.count, &audit_usual), t.liar, checks, "tests", seed);
        only_the_liar_fails(judged(sheets, t.count, &declared), t.liar, checks,
                            "tests, with what is declared", seed);
        for (uint32_t i = 0; i < t.count; i++) {
            free(sheets[i].facts);
            free(t.who[i].facts);
            free(t.who[i].text);
        }
        free(t.x.memory);
    }
}

/* ---- pairs ---- */

/* What a host's agent reports of a neighbour. Half of it is that neighbour's word. */
static void add_pair(struct sheet *s, struct prng *p, const char *peer, bool lied)
{
    char subject[64], edge[240], text[64];
    const unsigned which = lied ? (unsigned)prng_below(p, 256) : 0;
    const int paths = which & 64 ? 2 : 4,
              dead_out = which & 1     ? paths
                         : which & 128 ? 1
                                       : 0,
              dead_in = which & 2 ? paths : 0;
    snprintf(subject, sizeof(subject), "nic0 %s nic0", peer);
    snprintf(
        edge, sizeof(edge),
        "%s, hops 1, paths %d, alive %d, dead %d out %d in, sent 400000, lost %d, least %d out "
        "%d in, late %d, bound 300",
        which & 32 ? "random" : "rail", paths, 2 * paths - dead_out - dead_in, dead_out, dead_in,
        which & 4 ? 90000 : 0, which & 8 ? 90000 : 4000, which & 16 ? 90000 : 4000,
        which & 8 ? 900000 : 2000);
    sheet_add(s, &(struct fact){FACT_EDGE, FACT_VALUE, subject, edge, ""});
    snprintf(text, sizeof(text), "lost %d of 16", which & 4 ? 16 : 0);
    sheet_add(s, &(struct fact){FACT_EDGE_FULL, FACT_VALUE, subject, text, ""});
    sheet_add(s,
              &(struct fact){FACT_LANE, FACT_VALUE, subject, which & 16 ? "900000" : "7000", ""});
    sheet_add(s,
              &(struct fact){FACT_FE_PEER, FACT_VALUE, peer, which & 1 ? "silent" : "reached", ""});
    sheet_add(s, &(struct fact){FACT_FE_PATH, FACT_VALUE, peer,
                                which & 2 ? "full 9000 lost" : "full 9000 came", ""});
    snprintf(subject, sizeof(subject), "10.0.0.%s nic0", peer + 1);
    sheet_add(s, &(struct fact){FACT_NET_NEIGHBOUR, FACT_VALUE, subject,
                                which & 1 ? "failed" : "resolved", ""});
}

static void a_liar_in_pairs(void **state)
{
    static const char *const checks[] = {"be.", "fe.", NULL};
    static struct check_setting set[CHECKS_MAX];
    struct audit_settings settings = audit_usual;
    settings.checks = set;
    set[check_number(check_by_id("be.topo.spare"))].declared = "hops 2 us 20";
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sheet *own[HOSTS_MAX], sheets[HOSTS_MAX];
        struct prng p;
        prng_init(&p, seed);
        const uint32_t hosts = 2 + (uint32_t)prng_below(&p, HOSTS_MAX - 1),
                       liar = (uint32_t)prng_below(&p, hosts),
                       near = 1 + (uint32_t)prng_below(&p, 3);
        for (uint32_t i = 0; i < hosts; i++) {
            char address[32];
            own[i] = sheet_new();
            sheet_add(own[i], &(struct fact){FACT_OS_PRODUCT, FACT_VALUE, "", "Made up", ""});
            snprintf(address, sizeof(address), "10.0.0.%u", i);
            sheet_add(own[i], &(struct fact){FACT_NET_ADDRESS, FACT_VALUE, address, "nic0", ""});
            for (uint32_t k = 0; k < hosts; k++) {
                const uint32_t apart = (k + hosts - i) % hosts;
                if (apart != 0 && (apart <= near || apart + near >= hosts)) {
                    add_pair(own[i], &p, names[k], i == liar || k == liar);
                }
            }
            sheet_finish(own[i]);
            sheets[i] = *own[i];
            sheets[i].host = names[i];
        }
        only_the_liar_fails(judged(sheets, hosts, &settings), liar, checks, "pairs", seed);
        for (uint32_t i = 0; i < hosts; i++) {
            sheet_free(own[i]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_liar_in_a_matrix), cmocka_unit_test(a_liar_in_tests),
        cmocka_unit_test(a_liar_excuses_nobody_else), cmocka_unit_test(a_liar_takes_no_excuse),
        cmocka_unit_test(a_liar_in_pairs)};

    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    judge_done(judged(NULL, 0, &audit_usual));
    return failed;
}
