/* From verdicts to findings, without a world: what is reported, when, how often, and what ends it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/link/verbs_port.h"
#include "node_kit.h"

static struct finding said[512];
static uint32_t said_count;

static void listen_to_it(void)
{
    struct node_action a;

    kit_check();
    said_count = 0;
    while (node_next_action(node, &a)) {
        if (a.kind == NODE_FINDING) {
            said[said_count++] = a.finding;
        }
    }
}

/* Lets time pass until `ns` after the start, with a tick at each deadline. The reports are in said[]. */
static void until(int64_t ns)
{
    const int64_t end = 1000 * NS_PER_S + ns;
    struct node_action a;

    said_count = 0;
    while (now.ns < end) {
        const int64_t due = node_deadline(node).ns;
        now.ns = due < end ? due : end;
        node_tick(node, now);
        kit_check();
        while (node_next_action(node, &a)) {
            if (a.kind == NODE_FINDING) {
                said[said_count++] = a.finding;
            }
        }
    }
}

/* ---- links ---- */

static void link_says(uint32_t local, enum link_message_kind kind, int64_t n0, int64_t n1)
{
    const struct link_message m = {.kind = kind, .since = {now.ns - 7}, .numbers = {n0, n1, 3, 4}};

    node_finding_link(node, now, local, &m);
    listen_to_it();
}

static void links_open_update_and_close(void **state)
{
    static const struct {
        enum link_message_kind begins, ends;
        enum finding_kind kind;
        enum finding_advice advice;
    } cases[] = {
        {LINK_MESSAGE_DOWN, LINK_MESSAGE_UP, FINDING_LINK_DOWN, ADVICE_CHECK_CABLE},
        {LINK_MESSAGE_FLAPPING, LINK_MESSAGE_CALM, FINDING_LINK_FLAPPING, ADVICE_CHECK_CABLE},
        {LINK_MESSAGE_ERRORS, LINK_MESSAGE_ERRORS_END, FINDING_LINK_ERRORS, ADVICE_CHECK_CABLE},
        {LINK_MESSAGE_GONE, LINK_MESSAGE_BACK, FINDING_NIC_GONE, ADVICE_CHECK_DRIVER},
    };

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        kit_start();
        link_says(1, cases[i].ends, 0, 0);
        assert_int_equal(said_count, 0);
        link_says(1, cases[i].begins, 5, 6);
        assert_int_equal(said_count, 1);
        const struct finding opened = said[0];
        assert_int_equal(opened.kind, cases[i].kind);
        assert_int_equal(opened.phase, FINDING_OPENED);
        assert_int_equal(opened.advice, cases[i].advice);
        assert_int_equal(opened.from.index, 1);
        assert_int_equal(opened.from_host.index, 0);
        assert_int_equal(opened.since.ns, now.ns - 7);
        assert_int_equal(opened.suspect.kind, ELEMENT_NIC);
        assert_int_equal(opened.suspect.a.number, 1);
        assert_int_equal(opened.numbers[0], 5);
        assert_int_equal(opened.numbers[1], 6);
        assert_int_equal(node_finding_count(node), 1);
        link_says(0, cases[i].begins, 1, 1); /* another NIC's is another finding */
        assert_int_equal(said[0].number, opened.number + 1);
        link_says(0, cases[i].begins, 2, 2);
        assert_int_equal(said[0].phase, FINDING_UPDATED);
        assert_int_equal(said[0].number, opened.number + 1);
        link_says(1, cases[i].begins, 8, 9);
        assert_int_equal(said_count, 1);
        assert_int_equal(said[0].phase, FINDING_UPDATED);
        assert_int_equal(said[0].number, opened.number);
        assert_int_equal(said[0].numbers[0], 8);
        assert_int_equal(said[0].since.ns, opened.since.ns);
        link_says(1, cases[i].ends, 0, 0);
        assert_int_equal(said_count, 1);
        assert_int_equal(said[0].phase, FINDING_CLOSED);
        assert_int_equal(said[0].number, opened.number);
        assert_int_equal(said[0].ended_ns, now.ns);
        assert_int_equal(node_finding_count(node), 1);
        assert_int_equal(node_finding_get(node, 0)->from.index, 0);
        assert_null(node_finding_get(node, 1));
    }
}

/* A port beside one of our NICs belongs to that NIC, others to the host. Each trouble is one finding, however often it is
 * reported. */
static void troubles_of_rdma_ports_open_and_close(void **state)
{
    const struct node_verbs of_nic = {
        .local = 1, .trouble = VERBS_MTU, .has = 1, .found = 1024, .expected = 4096};
    const struct node_verbs of_host = {.local = UINT32_MAX, .trouble = VERBS_NO_MANAGER, .has = 1};

    (void)state;
    kit_start();
    for (int i = 0; i < 2; i++) {
        node_on_verbs(node, now, &of_nic);
        listen_to_it();
        assert_int_equal(said_count, 1 - i);
    }
    node_on_verbs(node, now, &of_host);
    listen_to_it();
    assert_int_equal(said[0].kind, FINDING_RDMA_PORT);
    assert_int_equal(said[0].suspect.kind, ELEMENT_HOST);
    assert_int_equal(said[0].suspect.a.number, 0);
    assert_true(nic_id_equal(said[0].from, NIC_NONE));
    assert_int_equal(node_finding_count(node), 2);
    const struct finding *f = node_finding_get(node, 0);
    assert_int_equal(f->suspect.kind, ELEMENT_NIC);
    assert_int_equal(f->from.index, 1);
    assert_int_equal(f->numbers[1], 1024);
    assert_int_equal(f->numbers[2], 4096);
    const struct node_verbs other = {
        .local = 1, .trouble = VERBS_MTU, .has = 1, .found = 2048, .expected = 4096};
    node_on_verbs(node, now, &other);
    listen_to_it();
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].phase, FINDING_UPDATED);
    assert_int_equal(said[0].numbers[1], 2048);
    assert_int_equal(node_finding_count(node), 2);
    node_on_verbs(node, now, &(struct node_verbs){.local = 1, .trouble = VERBS_MTU});
    listen_to_it();
    assert_int_equal(said[0].phase, FINDING_CLOSED);
    assert_int_equal(node_finding_count(node), 1);
}

static void a_nic_that_is_gone_has_no_link_that_is_down(void **state)
{
    kit_start();
    link_says(1, LINK_MESSAGE_DOWN, 1, 0);
    link_says(1, LINK_MESSAGE_GONE, 0, 0);
    assert_int_equal(said_count, 2);
    assert_int_equal(said[0].kind, FINDING_LINK_DOWN);
    assert_int_equal(said[0].phase, FINDING_CLOSED);
    assert_int_equal(said[1].kind, FINDING_NIC_GONE);
    link_says(0, LINK_MESSAGE_SPEED, 100, 25); /* reported once, and never open */
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].advice, ADVICE_CHECK_CABLE);
    assert_int_equal(said[0].since.ns, now.ns - 7);
    assert_int_equal(said[0].numbers[0], 100);
    link_says(0, LINK_MESSAGE_SPEED, 25, 100);
    assert_int_equal(said[0].advice, ADVICE_NONE);
    link_says(0, LINK_MESSAGE_SPEED, 25, 25);
    assert_int_equal(said[0].advice, ADVICE_NONE);
    assert_int_equal(node_finding_count(node), 1);
}

/* ---- the clock ---- */

static void clock_says(struct clock_action a)
{
    node_finding_clock(node, now, 0, &a);
    node_finding_tick(node, now);
    listen_to_it();
}

static void a_disrupted_clock_is_said_once(void **state)
{
    kit_start();
    clock_says((struct clock_action){
        .kind = CLOCK_ACTION_STATUS, .status = CLOCK_DISRUPTED, .fault = CLOCK_FAULT_GUARD});
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_CLOCK_DISRUPTED);
    assert_int_equal(said[0].numbers[0], 4); /* in the words of older controllers */
    assert_int_equal(said[0].numbers[2], CLOCK_FAULT_GUARD);
    assert_int_equal(said[0].advice, ADVICE_WAIT);
    clock_says((struct clock_action){.kind = CLOCK_ACTION_STATUS, .status = CLOCK_DISRUPTED});
    clock_says((struct clock_action){.kind = CLOCK_ACTION_STATUS, .status = CLOCK_HOLDOVER});
    assert_int_equal(said_count, 0);
    assert_int_equal(node_finding_count(node), 1);
    clock_says((struct clock_action){.kind = CLOCK_ACTION_STATUS, .status = CLOCK_SYNCED});
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].phase, FINDING_CLOSED);
    clock_says((struct clock_action){.kind = CLOCK_ACTION_STEP, .value_ns = -1234});
    assert_int_equal(said[0].kind, FINDING_CLOCK_STEP);
    assert_int_equal(said[0].numbers[0], -1234);
    assert_int_equal(said[0].rules_out, RULES_OUT_NETWORK);
    assert_int_equal(said[0].advice, ADVICE_CHECK_CLOCK);
    assert_int_equal(node_finding_count(node), 0);
}

/* No program can set a host's own clock, but a hypervisor can stop it. Many programs set a NIC's clock. */
static void a_clock_that_stood_still_is_told_as_that(void **state)
{
    const struct {
        bool host;
        double by_ns;
        bool stood;
    } cases[] = {{true, 5e9, true}, {true, 0.9e6, false}, {true, -5e9, false}, {false, 5e9, false}};

    kit_start();
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct clock_action step = {.kind = CLOCK_ACTION_STEP, .value_ns = cases[i].by_ns};
        node->has_leaf = !cases[i].host; /* else one of its members is the host's clock */
        node->members[0].domain = !cases[i].host;
        node_finding_clock(node, now, 0, &step);
        node->has_leaf = false;
        node->members[0].domain = 0;
        listen_to_it();
        assert_int_equal(said[0].kind, FINDING_CLOCK_STEP);
        assert_int_equal(said[0].numbers[0], (int64_t)cases[i].by_ns);
        assert_int_equal(said[0].numbers[1], cases[i].stood);
        assert_int_equal(said[0].advice, cases[i].stood ? ADVICE_SHOW_PAUSES : ADVICE_CHECK_CLOCK);
    }
}

static void liars_and_asymmetry_are_each_their_own(void **state)
{
    struct clock_action liar = {.kind = CLOCK_ACTION_LIAR,
                                .peer = 4,
                                .edge = 3,
                                .value_ns = 5000,
                                .against = 7,
                                .asked = 9},
                        skew = {.kind = CLOCK_ACTION_ASYMMETRY,
                                .peer = 4,
                                .edge = 3,
                                .value_ns = -2000};

    kit_start();
    clock_says(liar);
    assert_int_equal(said_count, 1);
    const struct finding l = said[0];
    assert_int_equal(l.kind, FINDING_CLOCK_LIAR);
    assert_int_equal(l.from_host.index, 2);
    assert_int_equal(l.from.index, NIC_NONE.index);
    assert_int_equal(l.numbers[0], 5000);
    assert_int_equal(l.numbers[1], 7);
    assert_int_equal(l.numbers[2], 9);
    assert_int_equal(l.rules_out, RULES_OUT_NETWORK | RULES_OUT_OWN_HOST);
    assert_int_equal(l.advice, ADVICE_CHECK_CLOCK);
    assert_int_equal(l.suspect.kind, ELEMENT_HOST);
    assert_int_equal(l.suspect.a.number, 2);
    clock_says(liar);
    assert_int_equal(said_count, 0);
    clock_says(skew);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_CLOCK_ASYMMETRY);
    assert_int_equal(said[0].from.index, 4);
    assert_int_equal(said[0].suspect.kind, ELEMENT_UNKNOWN);
    assert_int_equal(said[0].rules_out, 0);
    assert_int_equal(said[0].advice, ADVICE_NONE);
    skew.edge++; /* the same peer by another edge */
    clock_says(skew);
    assert_int_equal(said_count, 1);
    clock_says((struct clock_action){.kind = CLOCK_ACTION_CLEARED, .peer = 4, .edge = 3});
    assert_int_equal(said_count, 2);
    assert_int_equal(node_finding_count(node), 1);
    liar.peer = 1 << 19; /* not in the list */
    clock_says(liar);
    assert_int_equal(said[0].from_host.index, HOST_NONE.index);
}

/* Nanoseconds of asymmetry are everywhere: the stamps decide how many are worth a finding. */
static void small_asymmetries_are_nobodys_business(void **state)
{
    static const struct {
        uint8_t stamps;
        double value_ns;
        bool told;
    } cases[] = {{STAMP_SOFTWARE, 1999, false},
                 {STAMP_SOFTWARE, 2000, true},
                 {STAMP_HARDWARE, 199, false},
                 {STAMP_HARDWARE, -200, true}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        struct node_config c = kit_config();
        c.nics[0].stamps = c.nics[1].stamps = cases[i].stamps;
        kit_start_with(&c);
        clock_says((struct clock_action){
            .kind = CLOCK_ACTION_ASYMMETRY, .peer = 2, .edge = 1, .value_ns = cases[i].value_ns});
        assert_int_equal(said_count, cases[i].told);
    }
}

/* ---- the agent itself ---- */

static uint32_t late(int64_t at_ms, int64_t by_ms)
{
    now.ns = 1000 * NS_PER_S + at_ms * NS_PER_MS;
    node->now = now;
    node_finding_late(node, now, span_ms(by_ms));
    listen_to_it();
    return said_count;
}

static void a_tenth_of_ten_seconds_is_told_once(void **state)
{
    kit_start();
    assert_int_equal(late(100, 999), 0);
    assert_int_equal(late(9900, 1), 1); /* 1 s within these ten */
    assert_int_equal(said[0].numbers[0], 1000);
    assert_int_equal(said[0].advice, ADVICE_GIVE_CPU);
    assert_int_equal(said[0].rules_out, RULES_OUT_NETWORK);
    assert_int_equal(late(9999, 5000), 0); /* already reported */
    assert_int_equal(late(10000, 999), 0); /* ten new ones */
    assert_int_equal(late(20000, 999), 0);
    assert_int_equal(late(29999, 1), 1);
    assert_int_equal(said[0].number, 2);
}

static void bad_packets(uint32_t count, uint32_t error)
{
    const struct node_bad_packet bad = {.count = count, .error = error};
    node_on_bad_packet(node, now, &bad);
}

static void bad_packets_are_told_with_what_to_do(void **state)
{
    static const struct {
        enum probe_error error;
        enum finding_advice advice;
    } cases[] = {{PROBE_ERROR_VERSION_NEWER, ADVICE_UPGRADE},
                 {PROBE_ERROR_VERSION_OLDER, ADVICE_UPGRADE},
                 {PROBE_ERROR_KEY, ADVICE_CHECK_KEYS},
                 {PROBE_ERROR_TAG, ADVICE_CHECK_KEYS},
                 {PROBE_ERROR_SIZE, ADVICE_FIND_SENDER}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        kit_start();
        bad_packets(9, cases[i].error);
        until(10 * NS_PER_S); /* nine within ten seconds are normal */
        assert_int_equal(said_count, 0);
        bad_packets(10, cases[i].error);
        until(19 * NS_PER_S);
        assert_int_equal(said_count, 0);
        until(20 * NS_PER_S);
        assert_int_equal(said_count, 1);
        assert_int_equal(said[0].kind, FINDING_BAD_PACKETS);
        assert_int_equal(said[0].numbers[0], cases[i].error);
        assert_int_equal(said[0].numbers[1], 10);
        assert_int_equal(said[0].advice, cases[i].advice);
        assert_int_equal(said[0].since.ns, 1010 * NS_PER_S);
        bad_packets(50, cases[i].error);
        until(30 * NS_PER_S);
        assert_int_equal(said_count, 0); /* it is open */
        assert_int_equal(node_finding_get(node, 0)->numbers[1], 50);
        until(40 * NS_PER_S);
        assert_int_equal(said_count, 1);
        assert_int_equal(said[0].phase, FINDING_CLOSED);
    }
}

/* If packets have a NIC's own number, there is another agent. It is reported after three times within ten seconds. */
static void another_agent_of_the_same_number_is_told(void **state)
{
    for (int times = 2; times <= 3; times++) {
        kit_start();
        for (int i = 0; i < times; i++) {
            const struct node_receive own = {
                .local = 0, .probe = {.src = {0}, .dst = {0}, .type = PROBE_SINGLE}};
            node_on_receive(node, now, &own);
        }
        assert_int_equal(kit_counters().own_id, times);
        until(10 * NS_PER_S);
        assert_int_equal(said_count, times == 3);
        if (times == 3) {
            assert_int_equal(said[0].kind, FINDING_TWO_AGENTS);
            assert_int_equal(said[0].advice, ADVICE_STOP_OTHER_AGENT);
        }
    }
}

/* ---- room ---- */

static void nobody_listens_for_long(void **state)
{
    kit_start();
    for (int64_t i = 0; i < FINDING_QUEUE + 5; i++) {
        const struct link_message m = {.kind = LINK_MESSAGE_SPEED, .numbers = {i, 0, 0, 0}};
        node_finding_link(node, now, 0, &m);
    }
    assert_int_equal(kit_counters().actions_dropped, 5);
    assert_int_equal(kit_counters().findings, FINDING_QUEUE + 5);
    listen_to_it();
    assert_int_equal(said_count, FINDING_QUEUE); /* the oldest one was dropped */
    for (int64_t i = 0; i < FINDING_QUEUE; i++) {
        assert_int_equal(said[i].numbers[0], i + 5);
    }
}

static void there_are_as_many_open_as_people_can_read(void **state)
{
    kit_start();
    for (uint64_t i = 0; i < FINDING_OPEN_MAX; i++) {
        struct open_finding *o = node_finding_open(node, i, FINDING_SENSING_LATE, now, now);
        assert_non_null(o);
        o->said = i != 7;
        o->quiet = i == 9;
    }
    assert_null(node_finding_open(node, 1 << 20, FINDING_SENSING_LATE, now, now));
    assert_int_equal(kit_counters().actions_dropped, 1);
    assert_int_equal(node_finding_count(node), FINDING_OPEN_MAX - 2);
    assert_int_equal(node_finding_get(node, 6)->number, 7);
    assert_int_equal(node_finding_get(node, 7)->number, 9);
    assert_int_equal(node_finding_get(node, 8)->number, 11);
    assert_null(node_finding_get(node, FINDING_OPEN_MAX - 2));
    node_finding_close_at(node, now, 3); /* the others stay, in their order */
    assert_int_equal(node->open_count, FINDING_OPEN_MAX - 1);
    for (uint32_t i = 0; i < node->open_count; i++) {
        assert_int_equal(node->open[i].key, i < 3 ? i : i + 1);
    }
    node_finding_close_at(node, now, 6); /* 7, which was never reported, and 9, which is quiet */
    node_finding_close_at(node, now, 7);
    listen_to_it();
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].number, 4);
}

/* ---- paths ---- */

static void path_is(int edge, uint8_t path, enum finding_direction direction, enum path_state is,
                    int64_t since_ms)
{
    const struct mesh_verdict v = {.kind = MESH_PATH_STATE,
                                   .edge = edge,
                                   .path = path,
                                   .direction = (uint8_t)direction,
                                   .state = (uint8_t)is,
                                   .proof = 6,
                                   .since = {now.ns + since_ms * NS_PER_MS}};

    node->now = now;
    node_finding_path(node, now, &v);
    kit_check();
}

/* The first edge between these two NICs. */
static int edge_of(uint32_t local, uint32_t peer)
{
    struct node_edge e;

    for (uint32_t i = 0; i < node_edge_count(node); i++) {
        if (node_edge_get(node, i, now, &e) && e.local.index == local && e.peer.index == peer) {
            return (int)i;
        }
    }
    fail_msg("no edge");
    return -1;
}

/* An outgoing path is traced first. An incoming one waits for its sender. A slow one waits for the others' windows. */
static void paths_are_said_when_enough_is_known(void **state)
{
    kit_start();
    path_is(edge_of(0, 2), 1, DIRECTION_OUT, PATH_DEAD, -50);
    until(165 * NS_PER_MS);
    assert_int_equal(said_count, 0);
    until(180 * NS_PER_MS);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_PATH_DEAD);
    assert_int_equal(said[0].path, 1);
    assert_int_equal(said[0].direction, DIRECTION_OUT);
    assert_int_equal(said[0].from.index, 0);
    assert_int_equal(said[0].to.index, 2);
    assert_int_equal(said[0].from_host.index, 0);
    assert_int_equal(said[0].to_host.index, 1);
    assert_int_equal(said[0].numbers[0], 6);
    assert_int_equal(said[0].since.ns, 1000 * NS_PER_S - 50 * NS_PER_MS);

    kit_start();
    path_is(edge_of(0, 2), 1, DIRECTION_IN, PATH_LOSSY, 0);
    until(445 * NS_PER_MS);
    assert_int_equal(said_count, 0);
    until(460 * NS_PER_MS);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_PATH_LOSSY);
    assert_int_equal(said[0].from.index, 2);
    assert_int_equal(said[0].to.index, 0);
    assert_int_equal(said[0].from_host.index, 1);
    assert_int_equal(said[0].to_host.index, 0);

    kit_start();
    const struct mesh_verdict slow = {.kind = MESH_PATH_SLOW,
                                      .edge = edge_of(0, 2),
                                      .path = 2,
                                      .direction = DIRECTION_OUT,
                                      .since = now,
                                      .before_ns = 1000,
                                      .after_ns = 9000,
                                      .other_ns = -1999,
                                      .bound_ns = 77};
    node_finding_path(node, now, &slow);
    until(995 * NS_PER_MS);
    assert_int_equal(said_count, 0);
    until(1010 * NS_PER_MS);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_PATH_SLOW);
    assert_int_equal(said[0].numbers[0], 1000);
    assert_int_equal(said[0].numbers[1], 9000);
    assert_int_equal(said[0].numbers[2], -1999);
    assert_int_equal(said[0].numbers[3], 77);
    assert_true(said[0].rules_out & RULES_OUT_CLOCK);
}

/* The other direction moved by a quarter of it or more: a clock may be the reason. */
static void a_shift_both_ways_may_be_a_clock(void **state)
{
    static const struct {
        int64_t other_ns;
        bool clock_is_out;
    } cases[] = {{1999, true}, {2000, false}, {-1999, true}, {-2000, false}, {0, true}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        kit_start();
        const struct mesh_verdict slow = {.kind = MESH_PATH_SLOW,
                                          .edge = edge_of(0, 2),
                                          .path = 2,
                                          .direction = DIRECTION_OUT,
                                          .since = now,
                                          .before_ns = 1000,
                                          .after_ns = 9000,
                                          .other_ns = cases[i].other_ns};
        node_finding_path(node, now, &slow);
        until(2 * NS_PER_S);
        assert_int_equal(said_count, 1);
        assert_int_equal((said[0].rules_out & RULES_OUT_CLOCK) != 0, cases[i].clock_is_out);
    }
}

/* Paths that die within a second and a half, without a better suspect, are one finding. Its last path ends it. */
static void paths_of_one_moment_are_one_finding(void **state)
{
    static const struct {
        int64_t apart_ms;
        enum finding_direction direction;
        uint32_t findings;
    } cases[] = {{0, DIRECTION_OUT, 1},    {1400, DIRECTION_OUT, 1},  {1600, DIRECTION_OUT, 1},
                 {9900, DIRECTION_OUT, 1}, {10100, DIRECTION_OUT, 2}, {9900, DIRECTION_IN, 1},
                 {10100, DIRECTION_IN, 2}, {-1400, DIRECTION_OUT, 1}, {-1600, DIRECTION_OUT, 2}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        kit_start();
        const int first = edge_of(0, 2), second = edge_of(0, 4);
        path_is(first, 1, DIRECTION_OUT, PATH_DEAD, 0);
        until(300 * NS_PER_MS);
        assert_int_equal(said_count, 1);
        path_is(second, 2, cases[i].direction, PATH_DEAD, cases[i].apart_ms - 300);
        until(900 * NS_PER_MS);
        assert_int_equal(said_count, cases[i].findings - 1);
        assert_int_equal(node_finding_count(node), cases[i].findings);
        path_is(first, 1, DIRECTION_OUT, PATH_ALIVE, 0);
        listen_to_it();
        assert_int_equal(said_count, cases[i].findings - 1); /* the first one has no path left */
        path_is(second, 2, cases[i].direction, PATH_ALIVE, 0);
        listen_to_it();
        assert_int_equal(said_count, 1);
        assert_int_equal(said[0].phase, FINDING_CLOSED);
        assert_int_equal(node_finding_count(node), 0);
    }
}

/* A fault that killed two paths was over when the first of them worked again, if the other one soon did. Losses now and then on
 * two paths end with the last of them. */
static void what_was_dead_ended_with_its_first_path(void **state)
{
    static const struct {
        enum path_state is;
        int64_t later_ms;
        bool first;
    } cases[] = {{PATH_DEAD, 400, true},
                 {PATH_DEAD, 1400, true},
                 {PATH_DEAD, 1600, false},
                 {PATH_LOSSY, 400, false}};

    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        kit_start();
        const int first = edge_of(0, 2), second = edge_of(0, 4);
        path_is(first, 1, DIRECTION_OUT, cases[i].is, 0);
        path_is(second, 2, DIRECTION_OUT, cases[i].is, 0);
        until(5 * NS_PER_S);
        assert_int_equal(node_finding_count(node), 1);
        path_is(first, 1, DIRECTION_OUT, PATH_ALIVE, 0);
        const int64_t back_ns = now.ns;
        until(5 * NS_PER_S + cases[i].later_ms * NS_PER_MS);
        path_is(second, 2, DIRECTION_OUT, PATH_ALIVE, 0);
        listen_to_it();
        assert_int_equal(said_count, 1);
        assert_int_equal(said[0].phase, FINDING_CLOSED);
        assert_int_equal(said[0].ended_ns, cases[i].first ? back_ns : now.ns);
    }
}

static void what_is_dead_is_not_called_slow(void **state)
{
    struct mesh_verdict v = {.direction = DIRECTION_OUT, .path = 1, .since = now};

    kit_start();
    v.edge = edge_of(0, 2);
    path_is(v.edge, 1, DIRECTION_OUT, PATH_DEAD, 0);
    until(300 * NS_PER_MS);
    v.kind = MESH_PATH_SLOW;
    node_finding_path(node, now, &v);
    v.kind = MESH_PATH_PACE;
    node_finding_path(node, now, &v); /* the delay is not its fault */
    until(3 * NS_PER_S);
    assert_int_equal(said_count, 0);
    assert_int_equal(node_finding_get(node, 0)->kind, FINDING_PATH_DEAD);
    path_is(v.edge, 1, DIRECTION_OUT, PATH_ALIVE, 0);
    v.kind = MESH_PATH_SLOW;
    node_finding_path(node, now, &v);
    path_is(v.edge, 1, DIRECTION_OUT, PATH_ALIVE, 0); /* it was alive all the time */
    until(5 * NS_PER_S);
    assert_int_equal(node_finding_get(node, 0)->kind, FINDING_PATH_SLOW);
    v.kind = MESH_PATH_PACE;
    node_finding_path(node, now, &v);
    assert_int_equal(node_finding_count(node), 0);
    node_finding_path(node, now, &v); /* once more changes nothing */
    v.edge = -1;
    node_finding_path(node, now, &v); /* nor does one of no edge */
    listen_to_it();
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].phase, FINDING_CLOSED);
    path_is(edge_of(0, 2), 1, DIRECTION_OUT, PATH_DEAD, 0);
    path_is(edge_of(0, 2), 1, DIRECTION_OUT, PATH_LOSSY, 0); /* before the report: only one thing */
    until(6 * NS_PER_S);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_PATH_LOSSY);
    node_incident_forget(node, now, edge_of(0, 2));
    kit_check();
    assert_int_equal(node_finding_count(node), 0);
}

/* ---- a path that dies over and over ---- */

static void deaths_are_counted_until_it_is_calm(void **state)
{
    struct path_flaps f = {0};

    node_flap_died(&f, (struct mono){5 * NS_PER_S});
    node_flap_died(&f, (struct mono){125 * NS_PER_S}); /* 120 s after the last: goes on */
    assert_int_equal(f.count, 2);
    assert_int_equal(f.first.ns, 5 * NS_PER_S);
    assert_int_equal(f.last.ns, 125 * NS_PER_S);
    f.number = 9;
    node_flap_died(&f, (struct mono){245 * NS_PER_S + 1}); /* and one more: a new one */
    assert_int_equal(f.count, 1);
    assert_int_equal(f.number, 0);
    assert_int_equal(f.first.ns, 245 * NS_PER_S + 1);
}

static void die_and_live(int edge, int64_t at_ms)
{
    until(at_ms * NS_PER_MS);
    path_is(edge, 1, DIRECTION_OUT, PATH_DEAD, 0);
    until((at_ms + 400) * NS_PER_MS);
    path_is(edge, 1, DIRECTION_OUT, PATH_ALIVE, 0);
}

/* Two deaths are reported as such. From the third on there is one finding with a count. It ends after two minutes without a
 * death. */
static void the_third_death_is_a_flap(void **state)
{
    kit_start();
    const int edge = edge_of(0, 2);
    die_and_live(edge, 20000);
    die_and_live(edge, 40000);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_PATH_DEAD);
    die_and_live(edge, 60000);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_PATH_FLAPPING);
    assert_int_equal(said[0].phase, FINDING_OPENED);
    assert_int_equal(said[0].numbers[0], 3);
    assert_int_equal(said[0].numbers[1], 41); /* s, from the first to the last */
    const uint32_t number = said[0].number;
    die_and_live(edge, 80000);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].phase, FINDING_UPDATED);
    assert_int_equal(said[0].number, number);
    assert_int_equal(said[0].numbers[0], 4);
    assert_int_equal(said[0].since.ns, 1020 * NS_PER_S);
    until(100000 * NS_PER_MS); /* a death that lasts is a finding of its own, after five seconds */
    path_is(edge, 1, DIRECTION_OUT, PATH_DEAD, 0);
    until(105100 * NS_PER_MS);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_PATH_FLAPPING);
    until(105300 * NS_PER_MS);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_PATH_DEAD);
    assert_int_equal(node_finding_count(node), 2);
    path_is(edge, 1, DIRECTION_OUT, PATH_ALIVE, 0);
    until(219900 * NS_PER_MS);
    assert_int_equal(node_finding_count(node), 1);
    until(220100 * NS_PER_MS);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_PATH_FLAPPING);
    assert_int_equal(said[0].phase, FINDING_CLOSED);
    assert_int_equal(node_finding_count(node), 0);
}

/* Two paths that flap together are one finding. Either may go on alone, and it stays the same finding. */
static void paths_that_flap_together_are_one_finding(void **state)
{
    kit_start();
    const int first = edge_of(0, 2), second = edge_of(0, 4);
    for (int64_t at_s = 20; at_s <= 60; at_s += 20) {
        until(at_s * NS_PER_S);
        path_is(first, 1, DIRECTION_OUT, PATH_DEAD, 0);
        path_is(second, 1, DIRECTION_OUT, PATH_DEAD, 0);
        until(at_s * NS_PER_S + 400 * NS_PER_MS);
        path_is(first, 1, DIRECTION_OUT, PATH_ALIVE, 0);
        path_is(second, 1, DIRECTION_OUT, PATH_ALIVE, 0);
    }
    assert_int_equal(node_finding_count(node), 1);
    const uint32_t number = node_finding_get(node, 0)->number;
    assert_int_equal(node_finding_get(node, 0)->kind, FINDING_PATH_FLAPPING);
    assert_int_equal(node_finding_get(node, 0)->numbers[0], 3);
    until(80 * NS_PER_S);
    path_is(second, 1, DIRECTION_OUT, PATH_DEAD, 0);
    until(81 * NS_PER_S);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_PATH_FLAPPING);
    assert_int_equal(said[0].phase, FINDING_UPDATED);
    assert_int_equal(said[0].number, number);
    assert_int_equal(said[0].numbers[0], 4);
}

/* A link went down at that moment: that is another finding, and paths are no part of it. */
static void paths_join_paths_only(void **state)
{
    kit_start();
    link_says(0, LINK_MESSAGE_DOWN, 1, 0);
    path_is(0, 0, DIRECTION_IN, PATH_DEAD, 0); /* the first free place */
    until(500 * NS_PER_MS);
    assert_int_equal(said_count, 1);
    assert_int_equal(said[0].kind, FINDING_PATH_DEAD);
    assert_int_equal(node_finding_count(node), 2);
}

/* An incoming path can't be traced: for ten seconds it may be the echo of a fault with a suspect. An outgoing path may not. */
static void only_what_comes_in_is_an_echo(void **state)
{
    for (int in = 0; in < 2; in++) {
        kit_start();
        path_is(edge_of(0, 2), 1, DIRECTION_OUT, PATH_DEAD, 0);
        until(300 * NS_PER_MS);
        node->open[0].finding.suspect.kind = ELEMENT_TRUNK;
        until(5 * NS_PER_S);
        path_is(edge_of(0, 4), 1, in ? DIRECTION_IN : DIRECTION_OUT, PATH_DEAD, 0);
        until(6 * NS_PER_S);
        assert_int_equal(node_finding_count(node), in ? 1 : 2);
    }
}

static void a_death_at_that_moment_is_known(void **state)
{
    static const struct {
        int64_t apart_ms;
        bool known;
    } cases[] = {{0, true}, {1499, true}, {-1499, true}, {1500, false}, {-1500, false}};

    kit_start();
    path_is(edge_of(0, 2), 1, DIRECTION_OUT, PATH_DEAD, 0);
    const struct mono died = now;
    assert_false(node_incident_at(node, died)); /* not yet reported */
    until(300 * NS_PER_MS);
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        assert_int_equal(node_incident_at(node, mono_add(died, span_ms(cases[i].apart_ms))),
                         cases[i].known);
    }
    path_is(edge_of(0, 2), 1, DIRECTION_OUT, PATH_ALIVE, 0);
    assert_false(node_incident_at(node, died));
}

/* ---- outages ---- */

/* A fabric that fell into parts has an outage without a name. What else is dead, from before, does not report it. */
static void an_outage_without_a_name_is_told_beside_other_deaths(void **state)
{
    static const struct {
        bool named, parted;
        int32_t since_ms;
        bool told;
    } cases
        [] =
            {
                {true, true, -3600000, true}, /* a NIC that is dead for an hour */
                {false, true, -3600000, true},
                {true, false, -3600000, false}, /* an outage that nothing takes its name from */
                {true, true, -1499, false}, /* the fabric falls into parts, and paths die of it */
                {false, true, -1499, false},
                {true, true, 1499, false},
                {true, true, 1500, true},
                {false, true, 1500, false},
            };

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct mesh_fault f = {.ended = true,
                                     .parted = cases[i].parted,
                                     .began = now,
                                     .over = mono_add(now, span_ms(2000)),
                                     .where.key = 9};
        kit_start();
        node->deaths[node->death_count++] =
            (struct said_death){.since = mono_add(f.began, span_ms(cases[i].since_ms)),
                                .over = MONO_NEVER,
                                .cause = 7,
                                .number = 1,
                                .named = cases[i].named};
        assert_int_equal(node_incident_says(node, &f, f.over), !cases[i].told);
    }
}

/* ---- silent peers ---- */

static struct open_finding *silent(int edge, uint64_t cause, bool is_said)
{
    struct node_edge e;

    assert_true(node_edge_get(node, (uint32_t)edge, now, &e));
    struct open_finding *o =
        node_finding_open(node, node_finding_key(FINDING_PEER_SILENT, e.peer.index, 0, 0),
                          FINDING_PEER_SILENT, now, MONO_NEVER);
    o->cause = cause;
    o->said = is_said;
    return o;
}

/* The reported one is heard again: another one of its cause is reported in its place, and no other. */
static void one_of_those_that_stay_silent_is_said(void **state)
{
    for (int of_a_said_one = 0; of_a_said_one < 2; of_a_said_one++) {
        kit_start();
        (void)silent(edge_of(0, 2), 7, of_a_said_one);
        (void)silent(edge_of(0, 3), 7, !of_a_said_one);
        (void)silent(edge_of(0, 4), 8, false);
        const struct mesh_verdict heard = {.kind = MESH_PEER_HEARD, .edge = edge_of(0, 2)};
        node_finding_silent(node, now, &heard);
        assert_int_equal(node->open_count, 2);
        assert_int_equal(node->open[0].say.ns == now.ns + NS_PER_S, of_a_said_one);
        assert_int_equal(node->open[1].say.ns, MONO_NEVER.ns);
        const struct mesh_verdict never = {.kind = MESH_PEER_SILENT, .edge = edge_of(0, 5)};
        node_finding_silent(node, now, &never); /* a peer that was never heard is no news */
        assert_int_equal(node->open_count, 2);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_teardown(f, kit_end)
    const struct CMUnitTest tests[] = {
        T(links_open_update_and_close),
        T(troubles_of_rdma_ports_open_and_close),
        T(a_nic_that_is_gone_has_no_link_that_is_down),
        T(a_disrupted_clock_is_said_once),
        T(a_clock_that_stood_still_is_told_as_that),
        T(liars_and_asymmetry_are_each_their_own),
        T(small_asymmetries_are_nobodys_business),
        T(a_tenth_of_ten_seconds_is_told_once),
        T(bad_packets_are_told_with_what_to_do),
        T(another_agent_of_the_same_number_is_told),
        T(nobody_listens_for_long),
        T(there_are_as_many_open_as_people_can_read),
        T(paths_are_said_when_enough_is_known),
        T(a_shift_both_ways_may_be_a_clock),
        T(paths_of_one_moment_are_one_finding),
        T(what_was_dead_ended_with_its_first_path),
        T(what_is_dead_is_not_called_slow),
        T(deaths_are_counted_until_it_is_calm),
        T(the_third_death_is_a_flap),
        T(paths_that_flap_together_are_one_finding),
        T(paths_join_paths_only),
        T(only_what_comes_in_is_an_echo),
        T(a_death_at_that_moment_is_known),
        T(an_outage_without_a_name_is_told_beside_other_deaths),
        T(one_of_those_that_stay_silent_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
