/* test_perf_facts.c: from an audit's tests to checks of each host. A failed test is neither a pass nor a skip. One host's report
 * fails no other host. These results come before those of files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/audit/gate.h"
#include "judge_kit.h"
#include "service/audit/sheet.h"
#include "service/controller/audit/perf.h"

enum { HOSTS = 6, NIC_RATE = 25000000 };

struct world {
    struct audit_perf x;
    struct perf_host hosts[HOSTS];
    struct audit_perf_host who[HOSTS];
    struct sheet *sheets[HOSTS];
    struct audit audit;
    struct sheet judged[HOSTS];
    uint8_t ring_outcome[HOSTS], pair_outcome[HOSTS]; /* 0: done */
    uint8_t alltoall_outcome;                         /* of host 2; 0: done */
    double fabric_share;  /* host 2's share of the NIC's rate in permutations; 0: all */
    bool old_agents;      /* they have no all-to-all */
    bool wrong[HOSTS];    /* its values in rings are wrong */
    uint32_t sender;      /* its partners in pairs have wrong values */
    uint32_t hosts_there; /* 0: all */
    uint64_t nic_rate;    /* 0: the usual */
    bool incast; /* it takes part; so many packets were marked, at that share of the NIC's rate */
    uint64_t came, marked;
    double incast_share;
    const char *port_rate;  /* NULL: not known */
    bool slow_host;         /* host 2's pairs */
    double slow_share;      /* they carry this share; 0: two thirds */
    double quiet_gain;      /* of retests, where few run at one time; 0: none */
    bool slow_gains;        /* host 2's, too */
    uint8_t retest_outcome; /* of its retests; 0: done */
    uint32_t dies;          /* this host reports nothing from a step on; 0: none */
    uint32_t dies_in;       /* that is this ring, from 1; 0: it is the second step */
    bool leaves;            /* it has left the fleet */
    double liar_tells;      /* host 1's rate in all of its tests; 0: no liar */
    double ring_share;      /* share of the pairs' rate in collectives; 0: all */
    double busy;            /* reported for processors there, */
    double pair_busy;       /* and in pairs */
    uint32_t spread;        /* of host 2's runs in rings, */
    uint16_t waited[HOSTS]; /* and how long hosts waited for processors in the slow runs, 1/10000 */
    bool tell_parts;
    bool memory;         /* hosts measure their memory, */
    double memory_share; /* and host 2 has that share of the others' rate; 0: it fails, */
    double memory_busy;  /* and other work has its processors for so much of it */
    const char *kept;    /* what a file has for all; NULL: there is none */
    double paths[3]; /* what hosts 0 and 1 tell of each other's, over a spine each; first 0: none */
    bool
        bad_spine; /* hosts have as many NICs as they may, each with leaves of its own, and one of two spines is slow */
};

static void tell_spines(struct perf *p, uint32_t step, uint32_t host)
{
    for (uint32_t spine = 0; spine < 2; spine++) {
        struct way way = {.rate = spine == 0 ? 10e9 : 2e9, .hop_count = 3};
        snprintf(way.hops[0], sizeof(way.hops[0]), "leaf-of-some-row-and-rack-%u",
                 p->steps[step].nic);
        snprintf(way.hops[1], sizeof(way.hops[1]), "spine-of-some-row-and-rack-%u", spine);
        snprintf(way.hops[2], sizeof(way.hops[2]), "leaf-of-another-row-and-rack-%u",
                 p->steps[step].nic);
        perf_take_way(p, step, host, &way);
    }
}

static void tell_paths(struct world *w, uint32_t step, uint32_t host)
{
    struct perf *p = &w->x.core;

    if (w->bad_spine && p->steps[step].kind == PERF_WAYS) {
        tell_spines(p, step, host);
    }
    if (p->steps[step].kind != PERF_WAYS || host > 1 || w->paths[0] == 0 ||
        perf_part_of(p, step, 0)->group != perf_part_of(p, step, 1)->group) {
        return;
    }
    for (uint32_t k = 0; k < 3; k++) {
        struct way way = {.rate = w->paths[k], .hop_count = 3, .hops = {"leaf0", "", "leaf1"}};
        snprintf(way.hops[1], sizeof(way.hops[1]), "spine%u", k);
        perf_take_way(p, step, host, &way);
    }
}

static double rate_of(const struct world *w, const struct perf_step *step, bool slow, uint32_t nics)
{
    const bool again = step->kind == PERF_RETEST;
    if (step->kind == PERF_RING && w->ring_share > 0) {
        return NIC_RATE * nics * w->ring_share;
    }
    if (step->kind == PERF_PERMUTATION) {
        return NIC_RATE * nics * (slow && w->fabric_share > 0 ? w->fabric_share : 1);
    }
    double rate = slow              ? NIC_RATE * (w->slow_share > 0 ? w->slow_share : 2.0 / 3)
                  : w->nic_rate > 0 ? (double)w->nic_rate
                                    : NIC_RATE;
    rate *= again && w->quiet_gain > 0 && (!slow || w->slow_gains) ? w->quiet_gain : 1;
    return step->kind == PERF_INCAST ? w->incast_share * NIC_RATE
           : step->kind <= PERF_WAYS ? rate
                                     : rate * nics;
}

static void tell_memory(const struct world *w, uint32_t step, uint32_t host, struct perf_result *r)
{
    if (w->x.core.steps[step].kind == PERF_MEMORY) {
        const bool fails = host == 2 && w->memory_share == 0;
        *r = (struct perf_result){.outcome = fails ? PERF_FAILED : PERF_DONE,
                                  .rate = 400e9 * (host == 2 ? w->memory_share : 1),
                                  .runs = 5,
                                  .busy = fails ? w->memory_busy : 0};
        snprintf(r->words, sizeof(r->words), "%s", fails ? "other work" : "");
    }
}

static void play(struct world *w, bool rings)
{
    w->x = (struct audit_perf){.hosts = w->hosts, .who = w->who, .count = HOSTS};
    const uint32_t nics = w->bad_spine ? HOST_NIC_MAX : 1;
    for (uint32_t i = 0; i < HOSTS; i++) {
        w->hosts[i] = (struct perf_host){.incast = w->incast,
                                         .memory = w->memory && i != 4,
                                         .alltoall = !w->old_agents,
                                         .nics = nics,
                                         .there = w->hosts_there == 0 || i < w->hosts_there};
        w->who[i] = (struct audit_perf_host){.id = i + 1, .nic_count = nics};
        for (uint32_t nic = 0; nic < nics; nic++) {
            snprintf(w->who[i].names[nic], IF_NAMESIZE, "eth%u", nic);
        }
    }
    w->x.memory = malloc(perf_size(HOSTS));
    const struct perf_config config = {
        .hosts = w->hosts, .count = HOSTS, .wants_rings = rings, .no_memory = !w->memory};
    assert_int_equal(perf_init(&w->x.core, &config, w->x.memory), 0);
    struct perf *p = &w->x.core;
    uint32_t steps = 0, rings_begun = 0;
    do {
        for (uint32_t step = 0; step < p->step_count; step++, steps++) {
            rings_begun += p->stage == PERF_RINGS;
            const bool due = w->dies_in == 0 ? steps > 0 : rings_begun >= w->dies_in;
            if (w->leaves && due && w->hosts[w->dies].there) {
                audit_perf_leave(&w->x, w->dies + 1, "it has left the fleet meanwhile");
            }
            for (uint32_t i = 0; i < HOSTS; i++) {
                const struct perf_part *part = perf_part_of(p, step, i);
                const bool dead =
                    w->dies > 0 && due && perf_part_of(p, step, w->dies)->group == part->group;
                const bool pair = p->steps[step].kind <= PERF_WAYS;
                if (part->ranks == 0 || (dead && i == w->dies)) {
                    continue;
                }
                const bool slow =
                    (p->steps[step].kind == PERF_PERMUTATION || (pair && w->slow_host)) &&
                    perf_part_of(p, step, 2)->group == part->group;
                const uint8_t outcome =
                    dead                                         ? PERF_FAILED
                    : slow && p->steps[step].kind == PERF_RETEST ? w->retest_outcome
                    : pair                                       ? w->pair_outcome[i]
                    : p->steps[step].kind == PERF_ALLTOALL    ? (i == 2 ? w->alltoall_outcome : 0)
                    : p->steps[step].kind == PERF_PERMUTATION ? 0
                                                              : w->ring_outcome[i];
                const bool beside = pair && w->sender < HOSTS && w->sender != i &&
                                    perf_part_of(p, step, w->sender)->group == part->group;
                struct perf_result r = {.outcome = outcome != 0 ? outcome : PERF_DONE,
                                        .rate = i == 1 && w->liar_tells > 0
                                                    ? w->liar_tells
                                                    : rate_of(w, &p->steps[step], slow, nics),
                                        .sent = 2 * w->came,
                                        .came = w->came,
                                        .marked = w->marked,
                                        .runs = 5,
                                        .wrong = beside || (!pair && w->wrong[i]) ? 9 : 0,
                                        .network = "foliot",
                                        .arrivals = PERF_ARRIVALS};
                snprintf(r.words, sizeof(r.words), "%s", outcome == PERF_FAILED ? "no way" : "");
                r.busy = p->steps[step].kind >= PERF_RING ? w->busy : w->pair_busy;
                r.spread = !pair && i == 2 ? w->spread : 0;
                r.parts = !pair && w->tell_parts ? PERF_PARTS : 0;
                for (uint32_t k = 0; k < r.parts; k++) {
                    r.part_rate[k] = k % 2 == 0 ? 10000 : 8500;
                    r.part_waited[k] = k % 2 == 0 ? 0 : w->waited[i];
                }
                tell_memory(w, step, i, &r);
                tell_paths(w, step, i);
                perf_take(p, step, i, &r);
            }
        }
    } while (audit_perf_sum_up(&w->x));
    assert_int_equal(audit_perf_judge(&w->x), 0);
}

static void judge_by(struct world *w, const struct audit_settings *settings)
{
    const struct fact facts[] = {
        {FACT_OS_PRODUCT, FACT_VALUE, "", "Made up", "/sys/class/dmi/id/product_name"},
        {FACT_OS_UPTIME, FACT_VALUE, "", "99999", "/proc/uptime"},
        {FACT_PORT, FACT_VALUE, "mlx5_0/1", "1", "/sys/class/infiniband"},
        {FACT_PORT_LAYER, FACT_VALUE, "mlx5_0/1", "Ethernet", "/sys/class/infiniband"},
        {FACT_PORT_NET, FACT_VALUE, "mlx5_0/1", "eth0", "/sys/class/infiniband"},
        {FACT_PORT_RATE, w->port_rate != NULL ? FACT_VALUE : FACT_ABSENT, "mlx5_0/1",
         w->port_rate != NULL ? w->port_rate : "", "/sys/class/infiniband"},
        {FACT_NET_SPEED, FACT_VALUE, "eth0", "-1", "/sys/class/net"},
        {FACT_TEST, FACT_ABSENT, "", "", "/var/lib/foliot/tests"},
        {FACT_TEST_INIT, FACT_ABSENT, "", "", "/var/lib/foliot/tests"},
        {FACT_TEST_WRONG, FACT_ABSENT, "", "", "/var/lib/foliot/tests"},
        {FACT_TEST_NETWORK, FACT_ABSENT, "", "", "/var/lib/foliot/tests"}};
    enum { COUNT = sizeof(facts) / sizeof(facts[0]) };
    for (uint32_t i = 0; i < HOSTS; i++) {
        struct sheet own = {.facts = calloc(1, sizeof(struct fact)), .host = "host"};
        assert_int_equal(audit_perf_facts(&w->x, i + 1, false, &own), 0);
        own.facts = realloc(own.facts, (own.count + COUNT + 1) * sizeof(struct fact));
        memcpy(own.facts + own.count, facts, sizeof(facts));
        own.count += COUNT;
        if (w->kept != NULL) {
            own.facts[own.count++] =
                (struct fact){FACT_TEST_RATE, FACT_VALUE, "mem_bw", w->kept, "a file"};
        }
        own.capacity = own.count;
        assert_int_equal(audit_perf_facts(&w->x, i + 1, true, &own), 0);
        sheet_finish(&own);
        w->judged[i] = own;
    }
    judge_sheets(&w->audit, w->judged, HOSTS);
    w->audit.settings = settings;
    assert_int_equal(audit_judge(&w->audit), 0);
}

static void judge(struct world *w)
{
    judge_by(w, &audit_usual);
}

static void done(struct world *w)
{
    for (uint32_t i = 0; i < HOSTS; i++) {
        free(w->judged[i].facts);
        free(w->who[i].facts);
        free(w->who[i].text);
    }
    judge_done(&w->audit);
    free(w->x.memory);
}

/* The worst result of the check at the host, of all subjects. */
static const struct audit_result *worst(const struct world *w, const char *check, uint32_t host)
{
    const struct audit_result *found = NULL;
    for (uint32_t i = 0; i < w->audit.count; i++) {
        const struct audit_result *r = &w->audit.results[i];
        if (strcmp(r->check->id, check) == 0 && r->sheet == host &&
            (found == NULL || r->status < found->status)) {
            found = r;
        }
    }
    assert_non_null(found);
    return found;
}

static const char *const of_tests[] = {
    "be.bw.pair",     "nccl.init",      "nccl.transport", "nccl.correct",   "nccl.repeat",
    "nccl.busbw.q1",  "nccl.busbw.q2",  "nccl.busbw.q4",  "nccl.busbw.q8",  "nccl.busbw.q1h",
    "nccl.busbw.q2h", "nccl.busbw.q4h", "nccl.busbw.q8h", "nccl.straggler", "nccl.bisect"};
enum { CHECKS = sizeof(of_tests) / sizeof(of_tests[0]) };

static void all_is_well(void **state)
{
    struct world w = {.sender = HOSTS};
    play(&w, true);
    judge(&w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        for (size_t k = 0; k < CHECKS; k++) {
            if (worst(&w, of_tests[k], i)->status != AUDIT_PASS) {
                fail_msg("%s of %u: %s", of_tests[k], i,
                         audit_status_name(worst(&w, of_tests[k], i)->status));
            }
        }
    }
    done(&w);
}

/* For any reason of failure: the checks of a failed test are unknown, with that reason. If a host is gone by then, only its own
 * are: the others' tests run again without it. */
static void checks_of_a_failed_test_are_unknown(void **state)
{
    static const struct {
        uint8_t outcome;
        enum audit_reason reason;
    } cases[] = {{PERF_FAILED, REASON_NOT_RUN},
                 {PERF_SILENT, REASON_TIMEOUT},
                 {PERF_REFUSED, REASON_NOT_RUN},
                 {PERF_BUSY, REASON_BUSY},
                 {PERF_PREEMPTED, REASON_PREEMPTED}};
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct world w = {.sender = HOSTS, .ring_outcome = {[2] = cases[c].outcome}};
        play(&w, true);
        judge(&w);
        for (uint32_t i = 0; i < HOSTS; i++) {
            for (size_t k = 1; k < CHECKS; k++) {
                const struct audit_result *r = worst(&w, of_tests[k], i);
                if (i != 2 && cases[c].outcome != PERF_FAILED) {
                    assert_int_equal(r->status, AUDIT_PASS);
                    continue;
                }
                assert_int_equal(r->status, AUDIT_UNKNOWN);
                assert_true(r->note[0] != '\0');
                if (i == 2) {
                    assert_int_equal(r->reason, cases[c].reason);
                }
            }
            assert_int_equal(worst(&w, "be.bw.pair", i)->status, AUDIT_PASS);
        }
        done(&w);
    }
}

/* The host that took no part is unknown, and the others' tests ran. */
static void a_busy_host_alone_is_unknown(void **state)
{
    struct world w = {.sender = HOSTS, .pair_outcome = {[4] = PERF_BUSY}};
    play(&w, true);
    judge(&w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        for (size_t k = 0; k < CHECKS; k++) {
            const struct audit_result *r = worst(&w, of_tests[k], i);
            if (i == 4) {
                assert_int_equal(r->status, AUDIT_UNKNOWN);
                assert_int_equal(r->reason, REASON_BUSY);
            } else {
                assert_int_equal(r->status, AUDIT_PASS);
            }
        }
    }
    done(&w);
}

/* A host that dies or leaves after the first step ends no test of others. */
static void a_dead_host_alone_is_unknown(void **state)
{
    for (uint32_t dies = 1; dies < HOSTS; dies++) {
        for (int leaves = 0; leaves < 2; leaves++) {
            struct world w = {.sender = HOSTS, .dies = dies, .leaves = leaves == 1};
            play(&w, true);
            judge(&w);
            for (uint32_t i = 0; i < HOSTS; i++) {
                assert_int_equal(worst(&w, "be.bw.pair", i)->status, AUDIT_PASS);
                for (size_t k = 1; k < CHECKS; k++) {
                    const struct audit_result *r = worst(&w, of_tests[k], i);
                    const bool right = strcmp(of_tests[k], "nccl.correct") == 0;
                    if (i != dies) {
                        assert_int_equal(r->status, AUDIT_PASS);
                    } else if (!right) { /* its only pair was right */
                        assert_int_equal(r->status, AUDIT_UNKNOWN);
                        assert_int_equal(r->reason, leaves ? REASON_NOT_RUN : REASON_TIMEOUT);
                        assert_true(!leaves || strstr(r->note, "left the fleet") != NULL);
                    }
                }
            }
            done(&w);
        }
    }
}

/* A host dies or leaves while a ring runs: its results of the earlier rings stay, its others are unknown, and the others have all
 * of theirs. No other host keeps a note about what failed meanwhile. */
static void a_host_that_dies_in_a_ring_alone_is_unknown(void **state)
{
    for (uint32_t dies = 1; dies < HOSTS; dies++) {
        for (uint32_t in = 1; in <= PERF_ROWS; in++) {
            struct world w = {
                .sender = HOSTS, .dies = dies, .dies_in = in, .leaves = (dies + in) % 2 == 0};
            play(&w, true);
            judge(&w);
            for (uint32_t i = 0; i < HOSTS; i++) {
                assert_true(i == dies || (w.who[i].outcome == PERF_DONE && w.who[i].note[0] == 0));
                for (size_t k = 0; k < CHECKS; k++) {
                    const struct audit_result *r = worst(&w, of_tests[k], i);
                    const bool row = strncmp(of_tests[k], "nccl.busbw.q", 12) == 0,
                               last = strcmp(of_tests[k], "nccl.busbw.q8h") == 0,
                               first = strcmp(of_tests[k], "nccl.busbw.q1") == 0;
                    if (i != dies || k == 0 || (first && in > 1)) {
                        assert_int_equal(r->status, AUDIT_PASS);
                    } else if (last || (row && in == 1) ||
                               strcmp(of_tests[k], "nccl.bisect") == 0) {
                        assert_int_equal(r->status, AUDIT_UNKNOWN);
                        assert_int_equal(r->reason, w.leaves ? REASON_NOT_RUN : REASON_TIMEOUT);
                        assert_true(!w.leaves || strstr(r->note, "left the fleet") != NULL);
                    }
                }
            }
            done(&w);
        }
    }
}

/* It also costs a slow host none of its retests: it is no partner any more, and runs beside no pair. */
static void a_dead_host_costs_no_other_retests(void **state)
{
    for (uint32_t dies = 1; dies < HOSTS; dies++) {
        struct world w = {.sender = HOSTS, .slow_host = true, .slow_share = 0.6, .dies = dies};
        if (dies == 2) {
            continue;
        }
        play(&w, false);
        judge(&w);
        for (uint32_t i = 0; i < HOSTS; i++) {
            assert_int_equal(worst(&w, "be.bw.pair", i)->status,
                             i == 2      ? AUDIT_FAIL
                             : i == dies ? worst(&w, "be.bw.pair", i)->status
                                         : AUDIT_PASS);
        }
        assert_int_equal(w.x.core.retest_plans, 2);
        done(&w);
    }
}

/* Tests of pairs alone are no tests of collectives, and no host is held back for collectives. */
static void collectives_that_nobody_asked_for_are_skips(void **state)
{
    struct world w = {.sender = HOSTS, .pair_outcome = {[1] = PERF_FAILED}};
    play(&w, false);
    judge(&w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        for (size_t k = 1; k < CHECKS; k++) {
            assert_int_equal(worst(&w, of_tests[k], i)->status, AUDIT_SKIP);
        }
    }
    assert_int_equal(worst(&w, "be.bw.pair", 1)->status, AUDIT_UNKNOWN);
    done(&w);
}

/* Random pairs of all hosts at once, and an all-to-all: a host that carries less gets a warning. A failed test is unknown, and
 * blocks no job. */
static void a_host_that_carries_less_gets_a_warning(void **state)
{
    static const struct {
        double share;
        uint8_t outcome;
        bool old;
        enum audit_status permutation, alltoall, of_others;
    } cases[] = {{0, 0, false, AUDIT_PASS, AUDIT_PASS, AUDIT_PASS},
                 {0.6, 0, false, AUDIT_WARN, AUDIT_PASS, AUDIT_PASS},
                 {0.8, 0, false, AUDIT_PASS, AUDIT_PASS, AUDIT_PASS},
                 {0, PERF_FAILED, false, AUDIT_PASS, AUDIT_UNKNOWN, AUDIT_UNKNOWN},
                 {0, 0, true, AUDIT_PASS, AUDIT_UNKNOWN, AUDIT_UNKNOWN}};
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct world w = {.sender = HOSTS,
                          .fabric_share = cases[c].share,
                          .alltoall_outcome = cases[c].outcome,
                          .old_agents = cases[c].old};
        play(&w, true);
        judge(&w);
        for (uint32_t i = 0; i < HOSTS; i++) {
            assert_int_equal(worst(&w, "be.bw.permutation", i)->status,
                             i == 2 ? cases[c].permutation : AUDIT_PASS);
            assert_int_equal(worst(&w, "nccl.alltoall", i)->status,
                             i == 2 ? cases[c].alltoall : cases[c].of_others);
            for (size_t k = 0; k < CHECKS; k++) {
                assert_int_equal(worst(&w, of_tests[k], i)->status, AUDIT_PASS);
            }
        }
        done(&w);
    }
}

/* Wrong values in a ring belong to one of its hosts, but it isn't known which. Pairs show it. */
static void wrong_values(void **state)
{
    struct world w = {.sender = 3, .wrong = {true, true, false, true, true, true}};
    play(&w, true);
    judge(&w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        const struct audit_result *r = worst(&w, "nccl.correct", i);
        assert_int_equal(r->status, i == 3 ? AUDIT_FAIL : i == 2 ? AUDIT_PASS : AUDIT_UNKNOWN);
    }
    done(&w);
    /* the host before it in the ring can cause that: it is not this host's fault, and no pass */
    w = (struct world){.sender = HOSTS, .wrong = {[5] = true}};
    play(&w, true);
    judge(&w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(&w, "nccl.correct", i)->status, i == 5 ? AUDIT_UNKNOWN : AUDIT_PASS);
    }
    done(&w);
}

/* One of six hosts reports any amount: no other host is drained for it. */
static void one_word_drains_nobody(void **state)
{
    static const double tells[] = {1, 0.5 * NIC_RATE, 1.3 * NIC_RATE, 1e15};
    for (size_t k = 0; k < sizeof(tells) / sizeof(tells[0]); k++) {
        struct world w = {.sender = HOSTS, .liar_tells = tells[k]};
        play(&w, true);
        judge(&w);
        for (uint32_t i = 0; i < HOSTS; i++) {
            assert_int_equal(worst(&w, "be.bw.pair", i)->status, AUDIT_PASS);
            assert_int_equal(worst(&w, "nccl.bisect", i)->status, AUDIT_PASS);
        }
        done(&w);
    }
}

/* The rate of a host is declared. A single slow pair fails neither of its hosts, and a fast one passes both. With three hosts
 * each has two partners: there it is reported, but the breaker doesn't let so many fail. */
static void two_hosts_alone_fail_neither(void **state)
{
    struct check_setting *settings = calloc(CATALOGUE_COUNT, sizeof(*settings));
    struct audit_settings declared = audit_usual;
    for (uint32_t k = 0; k < CATALOGUE_COUNT; k++) {
        settings[k].declared = strcmp(check_at(k)->id, "be.bw.pair") == 0 ? "0.4" : NULL;
    }
    declared.checks = settings;
    for (uint32_t count = 2; count <= 3; count++) {
        for (int slow = 0; slow < 2; slow++) {
            const uint64_t rate = slow ? NIC_RATE : 2 * NIC_RATE; /* 0.2, 0.4 Gbit/s */
            struct world w = {.sender = HOSTS, .hosts_there = count, .nic_rate = rate};
            play(&w, false);
            judge_by(&w, &declared);
            for (uint32_t i = 0; i < count; i++) {
                const struct audit_result *r = worst(&w, "be.bw.pair", i);
                assert_int_equal(r->status, !slow        ? AUDIT_PASS
                                            : count == 2 ? AUDIT_UNKNOWN
                                                         : AUDIT_WARN);
            }
            done(&w);
        }
    }
    free(settings);
}

/* One host's NIC carries two thirds, in its first tests and its retests: it alone fails, with the figures of the retests. */
static void a_slow_nic_fails_by_its_retests(void **state)
{
    struct world w = {.sender = HOSTS, .slow_host = true};
    play(&w, false);
    judge(&w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        const struct audit_result *r = worst(&w, "be.bw.pair", i);
        assert_int_equal(r->status, i == 2 ? AUDIT_FAIL : AUDIT_PASS);
        assert_int_equal(r->cohort, HOSTS);
        assert_string_equal(r->expected, "0.200");
        assert_true(i != 2 || strstr(r->note, "eth0: 0.1") != NULL);
        assert_true(i != 2 || strstr(r->note, "in 3 retests") != NULL);
    }
    done(&w);
}

/* However little it carries, and however much faster others are where few run at one time: it fails with its own rate, and is in
 * the rings. */
static void the_slowest_fail(void **state)
{
    static const double shares[] = {0.001, 0.01, 0.05, 0.1, 0.2, 0.3},
                        gains[] = {1, 1.002, 1.1, 1.35, 1.5, 3};
    for (size_t s = 0; s < sizeof(shares) / sizeof(shares[0]); s++) {
        for (size_t g = 0; g < sizeof(gains) / sizeof(gains[0]); g++) {
            struct world w = {.sender = HOSTS,
                              .slow_host = true,
                              .slow_share = shares[s],
                              .quiet_gain = gains[g]};
            play(&w, true);
            judge(&w);
            const double rate = w.x.core.nic[2 * HOST_NIC_MAX].rate, is = shares[s] / gains[g];
            assert_true(rate > 0.99 * is * NIC_RATE && rate < 1.01 * is * NIC_RATE);
            for (uint32_t i = 0; i < HOSTS; i++) {
                assert_int_equal(worst(&w, "be.bw.pair", i)->status,
                                 i == 2 ? AUDIT_FAIL : AUDIT_PASS);
                assert_int_equal(worst(&w, "nccl.bisect", i)->status, AUDIT_PASS);
            }
            done(&w);
        }
    }
}

/* 6 % slower is below the limit, however fast all are where few run at one time. */
static void a_share_is_of_those_beside_it(void **state)
{
    struct world w = {.sender = HOSTS,
                      .slow_host = true,
                      .slow_share = 0.94,
                      .quiet_gain = 2,
                      .slow_gains = true};
    play(&w, false);
    judge(&w);
    assert_true(w.x.core.nic[2 * HOST_NIC_MAX].retest.count >= OUTLIER_RETESTS_LEAST);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(&w, "be.bw.pair", i)->status, AUDIT_PASS);
    }
    done(&w);
}

/* It was slow in its first tests, and no retest of it was done: the result is unknown, and no failure. */
static void without_retests_nobody_fails(void **state)
{
    struct world w = {.sender = HOSTS, .slow_host = true, .retest_outcome = PERF_FAILED};
    play(&w, false);
    judge(&w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(&w, "be.bw.pair", i)->status, i == 2 ? AUDIT_UNKNOWN : AUDIT_PASS);
    }
    assert_non_null(strstr(worst(&w, "be.bw.pair", 2)->note, "tested again"));
    done(&w);
}

/* Five of six send to the first, as fast as its port takes them, for most of a second. If no packet is marked, ECN is off there.
 * If no queue stood, it is unknown; also on a port that is faster than the processors, however slow the pairs were. A host that
 * did not receive is not judged. */
static void an_incast_without_marks_fails(void **state)
{
    enum { SECOND = NIC_RATE / PERF_INCAST_BYTES };
    static const struct {
        uint64_t marked, came;
        double share;
        const char *port_rate;
        enum audit_status status;
        enum audit_reason reason;
    } cases[] = {{3, SECOND / 3, 0.3, "0.2 Gb/sec (1X)", AUDIT_PASS, REASON_NONE},
                 {3, SECOND / 3, 0.3, NULL, AUDIT_PASS, REASON_NONE},
                 {0, SECOND * 9 / 10, 0.95, "0.2 Gb/sec (1X)", AUDIT_FAIL, REASON_NONE},
                 {0, SECOND / 3, 0.3, "0.2 Gb/sec (1X)", AUDIT_UNKNOWN, REASON_NOT_RUN},
                 {0, SECOND * 9 / 10, 0.95, "400 Gb/sec (4X NDR)", AUDIT_UNKNOWN, REASON_NOT_RUN},
                 {0, SECOND / 3, 0.95, "0.2 Gb/sec (1X)", AUDIT_UNKNOWN, REASON_NOT_RUN},
                 {0, 64, 40, "0.2 Gb/sec (1X)", AUDIT_UNKNOWN, REASON_NOT_RUN},
                 {0, SECOND * 9 / 10, 0.95, NULL, AUDIT_UNKNOWN, REASON_NO_SOURCE}};
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct world w = {.sender = HOSTS,
                          .incast = true,
                          .came = cases[c].came,
                          .marked = cases[c].marked,
                          .incast_share = cases[c].share,
                          .port_rate = cases[c].port_rate};
        play(&w, false);
        judge(&w);
        const struct audit_result *r = worst(&w, "be.roce.ecn_live", 0);
        assert_int_equal(r->status, cases[c].status);
        assert_int_equal(r->reason, cases[c].reason);
        assert_true(r->status != AUDIT_UNKNOWN || r->note[0] != 0);
        assert_int_equal(worst(&w, "be.roce.ecn_live", 1)->status, AUDIT_SKIP);
        done(&w);
    }
}

/* A path that is slow, or that little came over, is no pass if too few paths show which trunk it is. */
static void a_slow_path_of_one_pair_is_no_pass(void **state)
{
    static const struct {
        double rates[3];
        enum audit_status status;
    } cases[] = {{{10e9, 10e9, 10e9}, AUDIT_PASS},
                 {{10e9, 10e9, 2e9}, AUDIT_UNKNOWN},
                 {{10e9, 10e9, 0}, AUDIT_UNKNOWN}};

    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct world w = {.sender = HOSTS, .hosts_there = 2};
        memcpy(w.paths, cases[c].rates, sizeof(w.paths));
        play(&w, false);
        judge(&w);
        for (uint32_t i = 0; i < 2; i++) {
            assert_int_equal(worst(&w, "be.bw.path", i)->status, cases[c].status);
        }
        done(&w);
    }
}

/* A slow spine is on 32 trunks of a host with 16 NICs. They take no room from other checks. */
static void many_slow_trunks_hide_nothing(void **state)
{
    struct world w = {.sender = HOSTS, .bad_spine = true};

    play(&w, true);
    assert_int_equal(w.x.core.ways.trunk_count, 2 * HOST_NIC_MAX);
    judge(&w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        uint32_t slow = 0;
        for (uint32_t k = 0; k < w.audit.count; k++) {
            const struct audit_result *r = &w.audit.results[k];
            slow +=
                r->sheet == i && r->status == AUDIT_FAIL && strcmp(r->check->id, "be.bw.path") == 0;
        }
        assert_int_equal(slow, 2 * HOST_NIC_MAX);
        for (size_t k = 0; k < CHECKS; k++) {
            assert_int_equal(worst(&w, of_tests[k], i)->status, AUDIT_PASS);
        }
    }
    done(&w);
}

/* All collectives are slow, and processors may be the reason: no host is named. Without the hosts' reports about processors the
 * search would begin, as with older agents. */
static void slow_processors_name_no_host(void **state)
{
    for (int told = 0; told < 2; told++) {
        struct world w = {.sender = HOSTS, .ring_share = 0.6, .busy = told == 1 ? 0.4 : 0};
        play(&w, true);
        judge(&w);
        for (uint32_t i = 0; i < HOSTS; i++) {
            const struct audit_result *r = worst(&w, "nccl.bisect", i);
            assert_int_equal(r->status, told == 1 ? AUDIT_UNKNOWN : AUDIT_WARN);
            assert_int_equal(r->reason, told == 1 ? REASON_BUSY : REASON_NONE);
            assert_true(told == 0 || strstr(r->note, "processors") != NULL);
            assert_int_equal(worst(&w, "be.bw.pair", i)->status, AUDIT_PASS);
        }
        done(&w);
    }
}

/* A NIC that carries less than declared fails, unless processors may be the reason. */
static void processors_excuse_what_is_declared(void **state)
{
    static struct check_setting set[CHECKS_MAX];
    struct audit_settings settings = audit_usual;
    char rate[32];
    settings.checks = set;
    snprintf(rate, sizeof(rate), "%.3f", NIC_RATE * 8e-9);
    set[check_number(check_by_id("be.bw.pair"))].declared = rate;
    for (int busy = 0; busy < 3; busy++) {
        struct world w = {.sender = HOSTS, .slow_host = true, .pair_busy = 0.2 * busy};
        play(&w, false);
        judge_by(&w, &settings);
        for (uint32_t i = 0; i < HOSTS; i++) {
            const struct audit_result *r = worst(&w, "be.bw.pair", i);
            assert_int_equal(r->status, i != 2      ? AUDIT_PASS
                                        : busy == 2 ? AUDIT_UNKNOWN
                                                    : AUDIT_FAIL);
            assert_int_equal(r->reason, i == 2 && busy == 2 ? REASON_BUSY : REASON_NONE);
            assert_true(i != 2 || busy < 2 || strstr(r->note, "processors") != NULL);
        }
        done(&w);
    }
}

/* Host 4 has an older agent. The audit's own measurement counts before the file's; without one the file's counts. */
static void memory_is_that_of_the_others(void **state)
{
    static const struct {
        double share, busy;
        const char *kept;
        enum audit_status of_2, of_4;
        enum audit_reason reason;
    } cases[] = {{1, 0, NULL, AUDIT_PASS, AUDIT_UNKNOWN, REASON_NONE},
                 {0.95, 0, NULL, AUDIT_PASS, AUDIT_UNKNOWN, REASON_NONE},
                 {0.8, 0, NULL, AUDIT_FAIL, AUDIT_UNKNOWN, REASON_NONE},
                 {0.8, 0, "400000", AUDIT_FAIL, AUDIT_PASS, REASON_NONE},
                 {0, 0, NULL, AUDIT_UNKNOWN, AUDIT_UNKNOWN, REASON_NOT_RUN},
                 {0, 0.3, NULL, AUDIT_UNKNOWN, AUDIT_UNKNOWN, REASON_BUSY},
                 {0, 0.3, "400000", AUDIT_PASS, AUDIT_PASS, REASON_NONE}};
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct world w = {.sender = HOSTS,
                          .memory = true,
                          .memory_share = cases[c].share,
                          .memory_busy = cases[c].busy,
                          .kept = cases[c].kept};
        play(&w, false);
        judge(&w);
        for (uint32_t i = 0; i < HOSTS; i++) {
            const struct audit_result *r = worst(&w, "node.mem_bw", i);
            const bool few = cases[c].share == 0 && cases[c].kept == NULL; /* four have a result */
            assert_int_equal(r->status, i == 2   ? cases[c].of_2
                                        : i == 4 ? cases[c].of_4
                                        : few    ? AUDIT_UNKNOWN
                                                 : AUDIT_PASS);
            if (i == 2) {
                assert_int_equal(r->reason, cases[c].reason);
            } else if (i == 4 && cases[c].kept == NULL) {
                assert_int_equal(r->reason, REASON_OLD_AGENT);
            }
            assert_int_equal(worst(&w, "be.bw.pair", i)->status, AUDIT_PASS);
        }
        done(&w);
    }
}

/* Runs that differ because a host had no processor are unknown. By its own word a host excuses itself, and by that of two others;
 * the word of one other host, which may lie, leaves a warning. */
static void runs_that_had_no_processor_are_unknown(void **state)
{
    /* runs that waited for 15 % of their time lost what they lack */
    static const struct {
        uint16_t waited[HOSTS];
        bool old;
        enum audit_status status;
    } cases[] = {{{0}, true, AUDIT_FAIL},
                 {{10000, 10000, 10000, 10000, 10000, 10000}, true, AUDIT_FAIL},
                 {{0}, false, AUDIT_FAIL},
                 {{[2] = 1500}, false, AUDIT_UNKNOWN},
                 {{[2] = 10000}, false, AUDIT_UNKNOWN},
                 {{[2] = 300}, false, AUDIT_FAIL},
                 {{[0] = 1500}, false, AUDIT_WARN},
                 {{[0] = 10000}, false, AUDIT_WARN},
                 {{[0] = 10000, [1] = 100}, false, AUDIT_WARN},
                 /* one of both may be false: 7.5 % is confirmed, and 15 % are not */
                 {{[0] = 750, [3] = 750}, false, AUDIT_WARN},
                 {{[0] = 750, [3] = 750, [4] = 750}, false, AUDIT_UNKNOWN},
                 {{[0] = 10000, [3] = 10000}, false, AUDIT_UNKNOWN},
                 {{[0] = 500, [3] = 500, [2] = 500}, false, AUDIT_UNKNOWN}};
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct world w = {.sender = HOSTS, .spread = 784, .tell_parts = !cases[c].old};
        memcpy(w.waited, cases[c].waited, sizeof(w.waited));
        play(&w, true);
        judge(&w);
        for (uint32_t i = 0; i < HOSTS; i++) {
            const struct audit_result *r = worst(&w, "nccl.repeat", i);
            assert_int_equal(r->status, i == 2 ? cases[c].status : AUDIT_PASS);
            if (r->status == AUDIT_UNKNOWN) {
                assert_int_equal(r->reason, REASON_BUSY);
            }
        }
        done(&w);
    }
}

/* Of two facts with one name the first that was added is kept, wherever their texts lie. */
static void the_first_of_two_facts_is_kept(void **state)
{
    char text[2][16] = {"pair_bw", "pair_bw"};
    for (int k = 0; k < 2; k++) {
        struct fact facts[2] = {{FACT_TEST_RATE, FACT_VALUE, text[k], "1", "this audit's tests"},
                                {FACT_TEST_RATE, FACT_VALUE, text[1 - k], "2", "a file"}};
        struct sheet s = {.facts = facts, .count = 2, .capacity = 2};
        sheet_finish(&s);
        assert_int_equal(s.count, 1);
        assert_string_equal(s.facts[0].value, "1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_well),
        cmocka_unit_test(checks_of_a_failed_test_are_unknown),
        cmocka_unit_test(a_busy_host_alone_is_unknown),
        cmocka_unit_test(a_dead_host_alone_is_unknown),
        cmocka_unit_test(a_host_that_dies_in_a_ring_alone_is_unknown),
        cmocka_unit_test(a_dead_host_costs_no_other_retests),
        cmocka_unit_test(collectives_that_nobody_asked_for_are_skips),
        cmocka_unit_test(a_host_that_carries_less_gets_a_warning),
        cmocka_unit_test(wrong_values),
        cmocka_unit_test(one_word_drains_nobody),
        cmocka_unit_test(two_hosts_alone_fail_neither),
        cmocka_unit_test(a_slow_nic_fails_by_its_retests),
        cmocka_unit_test(the_slowest_fail),
        cmocka_unit_test(a_share_is_of_those_beside_it),
        cmocka_unit_test(without_retests_nobody_fails),
        cmocka_unit_test(an_incast_without_marks_fails),
        cmocka_unit_test(a_slow_path_of_one_pair_is_no_pass),
        cmocka_unit_test(many_slow_trunks_hide_nothing),
        cmocka_unit_test(slow_processors_name_no_host),
        cmocka_unit_test(processors_excuse_what_is_declared),
        cmocka_unit_test(memory_is_that_of_the_others),
        cmocka_unit_test(runs_that_had_no_processor_are_unknown),
        cmocka_unit_test(the_first_of_two_facts_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
