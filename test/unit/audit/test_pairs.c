/* test_pairs.c: which host is at fault if hosts judge each other by pairs: one neighbour's fault is not all others'. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/audit/reach.h"
#include "judge_kit.h"
#include "service/audit/sheet.h"

enum { HOSTS = 7, PEERS = 4 };

struct world {
    struct sheet *sheets[HOSTS];
    char names[HOSTS][8];
    bool lost[HOSTS][HOSTS]; /* packets of full size, from … to … */
    bool dead[HOSTS][HOSTS]; /* all packets */
    bool deaf[HOSTS];        /* nothing arrives there: its agent knows nothing about its paths */
    const char *near[HOSTS]; /* the hosts' neighbours, a digit each; NULL: the two on either side */
    int lane_ns[HOSTS][HOSTS]; /* of a job's messages, from … to …; 0: it has no such lane */
    struct sheet copies[HOSTS];
    struct audit audit;
};

static void add_edge(struct world *w, int host, int peer)
{
    char subject[64], edge[200], full[64];
    const int paths = 4, dead_out = w->dead[host][peer] || w->deaf[peer] ? paths : 0,
              dead_in = w->dead[peer][host] ? paths : 0,
              alive = w->deaf[host] ? 0 : 2 * paths - dead_out - dead_in;

    snprintf(subject, sizeof(subject), "eth0 %s eth0", w->names[peer]);
    snprintf(edge, sizeof(edge),
             "rail, hops 1, paths %d, alive %d, dead %d out %d in, sent 400000, lost 0, least 4000 "
             "out 4000 in, late 2000, bound 300",
             paths, alive, dead_out, dead_in);
    snprintf(full, sizeof(full), "lost %d of 16", w->lost[host][peer] ? 16 : 0);
    sheet_add(w->sheets[host], &(struct fact){FACT_EDGE, FACT_VALUE, subject, edge, ""});
    sheet_add(w->sheets[host], &(struct fact){FACT_EDGE_FULL, FACT_VALUE, subject, full, ""});
}

static bool is_near(const struct world *w, int hosts, int host, int peer)
{
    const int apart = (peer - host + hosts) % hosts;

    return w->near[host] != NULL ? strchr(w->near[host], '0' + peer) != NULL
                                 : apart != 0 && (apart <= PEERS / 2 || apart >= hosts - PEERS / 2);
}

static void add_lane(struct world *w, int host, int peer)
{
    char subject[64], text[16];

    if (w->lane_ns[peer][host] > 0) {
        snprintf(subject, sizeof(subject), "eth0 %s eth0", w->names[peer]);
        snprintf(text, sizeof(text), "%d", w->lane_ns[peer][host]);
        sheet_add(w->sheets[host], &(struct fact){FACT_LANE, FACT_VALUE, subject, text, ""});
    }
}

static void judge_world(struct world *w, int hosts)
{
    for (int i = 0; i < hosts; i++) {
        snprintf(w->names[i], sizeof(w->names[i]), "h%d", i);
    }
    for (int i = 0; i < hosts; i++) {
        w->sheets[i] = sheet_new();
        sheet_add(w->sheets[i], &(struct fact){FACT_OS_PRODUCT, FACT_VALUE, "", "Made up", ""});
        for (int k = 0; k < hosts; k++) {
            if (is_near(w, hosts, i, k)) {
                add_edge(w, i, k);
            }
            add_lane(w, i, k);
        }
        sheet_finish(w->sheets[i]);
        w->copies[i] = *w->sheets[i];
        w->copies[i].host = w->names[i];
    }
    judge_sheets(&w->audit, w->copies, (uint32_t)hosts);
}

static void world_done(struct world *w, int hosts)
{
    judge_done(&w->audit);
    for (int i = 0; i < hosts; i++) {
        sheet_free(w->sheets[i]);
    }
}

static enum audit_status worst(const struct world *w, const char *check, int host)
{
    uint32_t counts[AUDIT_STATUS_COUNT];

    return audit_worst(&w->audit, check, (uint32_t)host, counts);
}

/* A NIC with a too small MTU takes no packet of full size; its own packets arrive. If only one side were judged, its four
 * neighbours would fail, and it would pass. */
static void test_who_takes_none_fails_alone(void **state)
{
    struct world w = {0};

    for (int i = 0; i < HOSTS; i++) {
        w.lost[i][3] = true;
    }
    judge_world(&w, HOSTS);
    for (int i = 0; i < HOSTS; i++) {
        const bool neighbour = i != 3 && i >= 1 && i <= 5;
        assert_int_equal(worst(&w, "be.conn.mtu", i), i == 3      ? AUDIT_FAIL
                                                      : neighbour ? AUDIT_WARN
                                                                  : AUDIT_PASS);
    }
    for (uint32_t i = 0; i < w.audit.count; i++) {
        const struct audit_result *r = &w.audit.results[i];
        if (strcmp(r->check->id, "be.conn.mtu") == 0 && r->status == AUDIT_FAIL) {
            assert_string_equal(r->found, "4 of 4 neighbours find it here");
            assert_string_equal(r->expected, "they come as short ones do");
            assert_false(r->by_peer);
        }
        assert_true(r->by_peer == (strcmp(r->check->id, "be.conn.mtu") == 0 &&
                                   r->status == AUDIT_WARN)); /* they are asked again, too */
    }
    world_done(&w, HOSTS);
}

/* Nothing reaches a NIC: its host can't judge it, and its neighbours' reports fail it. It used to be unknown, and its neighbours
 * got a warning. */
static void test_who_is_deaf_fails_by_others(void **state)
{
    struct world w = {0};

    w.deaf[3] = true;
    judge_world(&w, HOSTS);
    for (int i = 0; i < HOSTS; i++) {
        const bool neighbour = i != 3 && i >= 1 && i <= 5;
        assert_int_equal(worst(&w, "be.conn.matrix", i), i == 3      ? AUDIT_FAIL
                                                         : neighbour ? AUDIT_WARN
                                                                     : AUDIT_PASS);
    }
    world_done(&w, HOSTS);
}

/* Its own packets of full size are lost: it fails by its own report, and no other host is blamed. */
static void test_who_sends_none_fails_alone(void **state)
{
    struct world w = {0};

    for (int i = 0; i < HOSTS; i++) {
        w.lost[3][i] = true;
    }
    judge_world(&w, HOSTS);
    for (int i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(&w, "be.conn.mtu", i), i == 3 ? AUDIT_FAIL : AUDIT_PASS);
    }
    world_done(&w, HOSTS);
}

/* Two neighbours both take none: each fails, in either order of judging. What one reports about the other is a warning. */
static void test_two_who_take_none_both_fail(void **state)
{
    for (int bad = 0; bad < HOSTS; bad++) {
        struct world w = {0};
        for (int i = 0; i < HOSTS; i++) {
            w.lost[i][bad] = w.lost[i][(bad + 1) % HOSTS] = true;
        }
        judge_world(&w, HOSTS);
        for (int i = 0; i < HOSTS; i++) {
            const int apart = (i - bad + HOSTS) % HOSTS;
            assert_int_equal(worst(&w, "be.conn.mtu", i), apart < 2                ? AUDIT_FAIL
                                                          : apart < 4 || apart > 4 ? AUDIT_WARN
                                                                                   : AUDIT_PASS);
        }
        world_done(&w, HOSTS);
    }
}

/* A host that fails by others' reports makes no report by that: hosts 0 and 1 have none about host 2, and so has no other
 * host. */
static void test_who_fails_by_others_accuses_nobody(void **state)
{
    struct world w = {.near = {"234", "256", "013", "024", "03", "16", "15"}};

    for (int i = 3; i < HOSTS; i++) {
        w.lost[i][0] = w.lost[i][1] = true;
    }
    judge_world(&w, HOSTS);
    assert_int_equal(worst(&w, "be.conn.mtu", 0), AUDIT_FAIL);
    assert_int_equal(worst(&w, "be.conn.mtu", 1), AUDIT_FAIL);
    assert_int_equal(worst(&w, "be.conn.mtu", 2), AUDIT_PASS);
    world_done(&w, HOSTS);
}

/* Only its neighbours report about a dead host: they themselves take jobs. */
static void test_a_dead_neighbour_blocks_nobody_else(void **state)
{
    struct world w = {0};

    for (int i = 0; i < HOSTS; i++) {
        w.dead[i][3] = w.dead[3][i] = true;
    }
    judge_world(&w, HOSTS);
    for (int i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(&w, "be.conn.matrix", i), i == 3             ? AUDIT_FAIL
                                                         : i >= 1 && i <= 5 ? AUDIT_WARN
                                                                            : AUDIT_PASS);
    }
    judge_done(&w.audit);
    w.copies[3] = (struct sheet){.host = "h3", .missing = REASON_NOT_RUN};
    judge_sheets(&w.audit, w.copies, HOSTS);
    for (int i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(&w, "be.conn.matrix", i), i == 3             ? AUDIT_UNKNOWN
                                                         : i >= 1 && i <= 5 ? AUDIT_WARN
                                                                            : AUDIT_PASS);
    }
    for (uint32_t i = 0; i < w.audit.count; i++) {
        assert_false(w.audit.results[i].by_peer); /* no host fails by it, so none is asked again */
    }
    world_done(&w, HOSTS);
}

/* An audit of one host: the others' reports of an hour before are no evidence against it. */
static void test_old_words_fail_nobody(void **state)
{
    struct world w = {0};

    for (int i = 0; i < HOSTS; i++) {
        w.lost[i][3] = true;
    }
    judge_world(&w, HOSTS);
    judge_done(&w.audit);
    for (int i = 0; i < HOSTS; i++) {
        w.copies[i].at_utc_ns = INT64_C(1790000000000000000) - (i != 3) * INT64_C(3600000000000);
    }
    judge_sheets(&w.audit, w.copies, HOSTS);
    assert_int_equal(worst(&w, "be.conn.mtu", 3), AUDIT_PASS);
    judge_done(&w.audit);
    for (int i = 0; i < HOSTS; i++) {
        w.copies[i].at_utc_ns = INT64_C(1790000000000000000) - (i != 3) * INT64_C(60000000000);
    }
    judge_sheets(&w.audit, w.copies, HOSTS);
    assert_int_equal(worst(&w, "be.conn.mtu", 3), AUDIT_FAIL);
    world_done(&w, HOSTS);
}

/* Over the front end one pair is a warning. A host fails if it reaches no other, or if no other reaches it. */
static void test_front_end(void **state)
{
    struct sheet *sheets[HOSTS], copies[HOSTS];
    char names[HOSTS][8];
    struct audit a;
    uint32_t peers[REACH_PEERS], counts[AUDIT_STATUS_COUNT];

    for (int fault = 0; fault < 4; fault++) { /* none, one pair, host 3 outwards, host 3 inwards */
        for (int i = 0; i < HOSTS; i++) {
            snprintf(names[i], sizeof(names[i]), "h%d", i);
        }
        for (int i = 0; i < HOSTS; i++) {
            sheets[i] = sheet_new();
            const uint32_t n = reach_peers(7, HOSTS, (uint32_t)i, peers);
            for (uint32_t k = 0; k < n; k++) {
                const int peer = (int)peers[k];
                const bool bad = fault == 1   ? i == 3 && k == 0
                                 : fault == 2 ? i == 3
                                              : fault == 3 && peer == 3;
                sheet_add(sheets[i], &(struct fact){FACT_FE_PEER, FACT_VALUE, names[peer],
                                                    bad ? "silent" : "reached", ""});
                sheet_add(sheets[i], &(struct fact){FACT_FE_PATH, FACT_VALUE, names[peer],
                                                    bad ? "full 9000 lost" : "full 9000 came", ""});
            }
            sheet_finish(sheets[i]);
            copies[i] = *sheets[i];
            copies[i].host = names[i];
        }
        judge_sheets(&a, copies, HOSTS);
        for (int i = 0; i < HOSTS; i++) {
            static const char *const checks[] = {"fe.reach", "fe.path_mtu"};
            for (int k = 0; k < 2; k++) {
                const enum audit_status s = audit_worst(&a, checks[k], (uint32_t)i, counts);
                if (i == 3) {
                    assert_int_equal(s, fault == 0   ? AUDIT_PASS
                                        : fault == 1 ? AUDIT_WARN
                                                     : AUDIT_FAIL);
                } else {
                    assert_true(s == AUDIT_PASS || (fault == 3 && s == AUDIT_WARN));
                }
            }
        }
        judge_done(&a);
        for (int i = 0; i < HOSTS; i++) {
            sheet_free(sheets[i]);
        }
    }
}

/* Two hosts alone that don't reach each other: there are no others. */
static void test_front_end_of_two(void **state)
{
    struct sheet *sheets[2], copies[2];
    static const char *const names[] = {"h0", "h1"};
    struct audit a;

    for (int i = 0; i < 2; i++) {
        sheets[i] = sheet_new();
        sheet_add(sheets[i], &(struct fact){FACT_FE_PEER, FACT_VALUE, names[1 - i], "silent", ""});
        sheet_finish(sheets[i]);
        copies[i] = *sheets[i];
        copies[i].host = names[i];
    }
    judge_sheets(&a, copies, 2);
    uint32_t warned = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        if (strcmp(a.results[i].check->id, "fe.reach") == 0) {
            assert_int_equal(a.results[i].status, AUDIT_WARN);
            assert_string_equal(a.results[i].note, "with this host alone: no other one was tried");
            warned++;
        }
    }
    assert_int_equal(warned, 2);
    judge_done(&a);
    sheet_free(sheets[0]);
    sheet_free(sheets[1]);
}

/* Each tries both ways, no peer twice, and never itself. */
static void test_who_tries_whom(void **state)
{
    for (uint32_t count = 0; count < 60; count++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            uint32_t peers[REACH_PEERS], back[REACH_PEERS];
            for (uint32_t i = 0; i < count; i++) {
                const uint32_t n = reach_peers(seed, count, i, peers);
                assert_true(n >= (count > 4 ? 3u : count == 0 ? 0u : count - 1) && n <= 4);
                for (uint32_t k = 0; k < n; k++) {
                    assert_true(peers[k] < count && peers[k] != i);
                    bool found = false;
                    const uint32_t m = reach_peers(seed, count, peers[k], back);
                    for (uint32_t x = 0; x < m; x++) {
                        found |= back[x] == i;
                    }
                    assert_true(found);
                    for (uint32_t x = 0; x < k; x++) {
                        assert_true(peers[x] != peers[k]);
                    }
                }
            }
        }
    }
}

/* With one pair, or with two hosts, it can't be told which host is at fault. A host that reaches others gets a warning. A host
 * without others is unknown. */
static void test_without_witnesses_nobody_fails(void **state)
{
    struct world w = {0}, two = {0};

    w.dead[2][3] = w.dead[3][2] = two.dead[0][1] = two.dead[1][0] = true;
    judge_world(&w, HOSTS);
    judge_world(&two, 2);
    for (int i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(&w, "be.conn.matrix", i),
                         i == 2 || i == 3 ? AUDIT_WARN : AUDIT_PASS);
    }
    for (uint32_t i = 0; i < two.audit.count; i++) {
        const struct audit_result *r = &two.audit.results[i];
        assert_true(strcmp(r->check->id, "be.conn.matrix") != 0 ||
                    (r->status == AUDIT_UNKNOWN && r->reason == REASON_NO_MAJORITY));
    }
    world_done(&w, HOSTS);
    world_done(&two, 2);
}

/* Nothing arrives between host 3 and two of its neighbours, and these are well with all others: host 3 fails, they get a
 * warning. */
static void test_two_partners_fail_one(void **state)
{
    struct world w = {0};

    w.dead[3][1] = w.dead[1][3] = w.dead[3][2] = w.dead[2][3] = true;
    judge_world(&w, HOSTS);
    for (int i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(&w, "be.conn.matrix", i), i == 3             ? AUDIT_FAIL
                                                         : i == 1 || i == 2 ? AUDIT_WARN
                                                                            : AUDIT_PASS);
    }
    world_done(&w, HOSTS);
}

/* Neighbours that don't answer: one may be off; two are the interface's own fault. If there is only one, it isn't known. */
static void test_neighbours_that_do_not_answer(void **state)
{
    static const struct {
        int failed, resolved;
        enum audit_status status;
    } cases[] = {{1, 2, AUDIT_WARN}, {2, 2, AUDIT_FAIL}, {1, 0, AUDIT_UNKNOWN}, {0, 2, AUDIT_PASS}};
    for (size_t c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
        struct sheet *own[5], copies[5];
        struct audit a;
        uint32_t counts[AUDIT_STATUS_COUNT];
        for (int i = 0; i < 5; i++) {
            char text[32];
            own[i] = sheet_new();
            snprintf(text, sizeof(text), "10.0.0.%d", i);
            sheet_add(own[i], &(struct fact){FACT_NET_ADDRESS, FACT_VALUE, text, "eth0", ""});
            for (int k = 1; i == 0 && k <= cases[c].failed + cases[c].resolved; k++) {
                snprintf(text, sizeof(text), "10.0.0.%d eth0", k);
                sheet_add(own[i], &(struct fact){FACT_NET_NEIGHBOUR, FACT_VALUE, text,
                                                 k <= cases[c].failed ? "failed" : "resolved", ""});
            }
            sheet_finish(own[i]);
            copies[i] = *own[i];
            copies[i].host = "h";
        }
        judge_sheets(&a, copies, 5);
        assert_int_equal(audit_worst(&a, "be.roce.neigh", 0, counts), cases[c].status);
        judge_done(&a);
        for (int i = 0; i < 5; i++) {
            sheet_free(own[i]);
        }
    }
}

/* One host's reports fail no other host, whatever they are. */
static void test_a_liar_fails_nobody(void **state)
{
    for (int mask = 0; mask < 1 << HOSTS; mask++) {
        struct world w = {0};
        for (int i = 0; i < HOSTS; i++) {
            w.lost[3][i] = (mask >> i & 1) != 0;
        }
        judge_world(&w, HOSTS);
        for (int i = 0; i < HOSTS; i++) {
            assert_true(i == 3 || worst(&w, "be.conn.mtu", i) == AUDIT_PASS);
        }
        world_done(&w, HOSTS);
    }
}

/* Random neighbours are near or far. Within a leaf there is one path, and others have no more there. */
static void test_paths_are_of_a_distance(void **state)
{
    for (int fewer = 0; fewer <= 2; fewer++) { /* how many neighbours of host 2 have fewer paths */
        struct sheet *own[HOSTS], copies[HOSTS];
        struct audit a;
        uint32_t counts[AUDIT_STATUS_COUNT];
        for (int i = 0; i < HOSTS; i++) {
            own[i] = sheet_new();
            sheet_add(own[i], &(struct fact){FACT_OS_PRODUCT, FACT_VALUE, "", "Made up", ""});
            for (int k = 0; k < 4; k++) {
                char subject[32], edge[160];
                const int paths = k == 0 ? 1 : i == 2 && k + fewer > 3 ? 3 : 4;
                snprintf(subject, sizeof(subject), "eth0 p%d eth0", k);
                snprintf(
                    edge, sizeof(edge),
                    "random, hops %d, paths %d, alive %d, dead 0 out 0 in, sent 9, lost 0, none",
                    k == 0 ? 1 : 3, paths, 2 * paths);
                sheet_add(own[i], &(struct fact){FACT_EDGE, FACT_VALUE, subject, edge, ""});
            }
            sheet_finish(own[i]);
            copies[i] = *own[i];
            copies[i].host = "h";
        }
        judge_sheets(&a, copies, HOSTS);
        for (int i = 0; i < HOSTS; i++) {
            assert_int_equal(audit_worst(&a, "be.topo.path_count", (uint32_t)i, counts),
                             i != 2 || fewer == 0 ? AUDIT_PASS
                             : fewer == 1         ? AUDIT_WARN
                                                  : AUDIT_FAIL);
        }
        judge_done(&a);
        for (int i = 0; i < HOSTS; i++) {
            sheet_free(own[i]);
        }
    }
}

/* A job's ring between hosts whose agents don't probe each other. One host's messages queue, in both directions: it alone
 * fails. */
static void test_a_slow_class_is_one_hosts(void **state)
{
    for (int slow = 0; slow <= 1; slow++) {
        struct world w = {0};
        for (int i = 0; i < HOSTS; i++) {
            for (int apart = 3; apart <= 4; apart++) {
                const int k = (i + apart) % HOSTS;
                w.lane_ns[i][k] = slow == 1 && (i == 3 || k == 3) ? 60000 : 24000;
            }
        }
        judge_world(&w, HOSTS);
        for (int i = 0; i < HOSTS; i++) {
            assert_int_equal(worst(&w, "be.lat.inband", i), slow == 0          ? AUDIT_PASS
                                                            : i == 3           ? AUDIT_FAIL
                                                            : i == 0 || i == 6 ? AUDIT_WARN
                                                                               : AUDIT_PASS);
        }
        world_done(&w, HOSTS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_slow_class_is_one_hosts),
                                       cmocka_unit_test(test_paths_are_of_a_distance),
                                       cmocka_unit_test(test_who_takes_none_fails_alone),
                                       cmocka_unit_test(test_who_is_deaf_fails_by_others),
                                       cmocka_unit_test(test_who_sends_none_fails_alone),
                                       cmocka_unit_test(test_two_who_take_none_both_fail),
                                       cmocka_unit_test(test_who_fails_by_others_accuses_nobody),
                                       cmocka_unit_test(test_a_dead_neighbour_blocks_nobody_else),
                                       cmocka_unit_test(test_without_witnesses_nobody_fails),
                                       cmocka_unit_test(test_a_liar_fails_nobody),
                                       cmocka_unit_test(test_two_partners_fail_one),
                                       cmocka_unit_test(test_neighbours_that_do_not_answer),
                                       cmocka_unit_test(test_old_words_fail_nobody),
                                       cmocka_unit_test(test_front_end),
                                       cmocka_unit_test(test_front_end_of_two),
                                       cmocka_unit_test(test_who_tries_whom)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
