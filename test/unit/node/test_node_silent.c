/* Three hosts, one of which becomes silent in one way or another: its neighbours' findings, and the words about paths of two
 * hosts once they agree on the time. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "node_world.h"

static struct world w;

static int begin(void **state)
{
    world_init(&w, 11, 3, 2);
    for (uint32_t h = 0; h < 3; h++) {
        world_start(&w, h);
    }
    world_run(&w, 3 * NS_PER_S);
    return 0;
}

static int end(void **state)
{
    world_done(&w);
    return 0;
}

/* The only open finding of silence at host 0, and how many there were. */
static struct finding only_silence(uint32_t *ret_opened)
{
    const struct world_host *h = &w.hosts[0];
    struct finding found = {0};
    uint32_t open = 0;

    *ret_opened = 0;
    for (uint32_t i = 0; i < h->finding_count; i++) {
        const struct finding *f = &h->findings[i].finding;
        if (f->kind == FINDING_PEER_SILENT) {
            *ret_opened += f->phase == FINDING_OPENED;
            open += f->phase == FINDING_OPENED;
            open -= f->phase == FINDING_CLOSED;
            found = *f;
        }
    }
    assert_in_range(open, 0, 1);
    return found;
}

static void set_loss(uint32_t host, uint32_t nic, int way, double loss)
{
    w.host_loss[host][nic][way] = loss;
}

static void a_silent_host_is_one_sentence(void **state)
{
    uint32_t opened;

    set_loss(1, 0, 0, 1);
    set_loss(1, 1, 0, 1);
    const int64_t at = world_mono(&w, 0).ns;
    world_run(&w, 4 * NS_PER_S);
    const struct finding f = only_silence(&opened);
    assert_int_equal(opened, 1);
    assert_int_equal(f.phase, FINDING_OPENED);
    assert_int_equal(f.from_host.index, 1);
    assert_int_equal(f.to_host.index, 0);
    assert_true(f.from.index == 2 || f.from.index == 3);
    assert_true(f.to.index < 2);
    assert_int_equal(f.direction, DIRECTION_IN);
    assert_int_equal(f.suspect.kind, ELEMENT_HOST);
    assert_int_equal(f.suspect.a.number, 1);
    assert_int_equal(f.advice, ADVICE_CHECK_PEER_HOST);
    assert_int_equal(f.rules_out, RULES_OUT_OWN_HOST | RULES_OUT_OWN_NIC); /* host 2 is heard */
    assert_in_range(f.numbers[0], 1900, 2300);
    assert_in_range(f.since.ns - at + NS_PER_S, 0, 2 * NS_PER_S);
    set_loss(1, 0, 0, 0);
    set_loss(1, 1, 0, 0);
    world_run(&w, 3 * NS_PER_S);
    assert_int_equal(only_silence(&opened).phase, FINDING_CLOSED);
    assert_int_equal(node_finding_count(w.hosts[0].node), 0);
}

static void a_silent_nic_of_a_host_that_lives(void **state)
{
    uint32_t opened;

    set_loss(1, 1, 0, 1);
    world_run(&w, 4 * NS_PER_S);
    const struct finding f = only_silence(&opened);
    assert_int_equal(opened, 1);
    assert_int_equal(f.from.index, 3);
    assert_int_equal(f.suspect.kind, ELEMENT_NIC);
    assert_int_equal(f.suspect.a.number, 3);
    assert_int_equal(f.suspect.direction, DIRECTION_OUT);
    assert_int_equal(f.advice, ADVICE_CHECK_CABLE);
    assert_int_equal(f.rules_out, RULES_OUT_PEER_HOST | RULES_OUT_OWN_HOST);
}

/* Host 1 of three sends nothing for a while. Then one NIC sends again, and the other one `later_ms` after it. */
static void sleeps(uint32_t seed, int64_t ms, int64_t later_ms)
{
    world_done(&w);
    world_init(&w, seed, 3, 2);
    for (uint32_t h = 0; h < 3; h++) {
        world_start(&w, h);
    }
    world_run(&w, 3 * NS_PER_S);
    set_loss(1, 0, 0, 1);
    set_loss(1, 1, 0, 1);
    world_run(&w, ms * NS_PER_MS);
    set_loss(1, 0, 0, 0);
    world_run(&w, later_ms * NS_PER_MS);
    set_loss(1, 1, 0, 0);
    world_run(&w, 3 * NS_PER_S);
}

/* An agent that waited for a while sends from one NIC first, and from the other a moment later: no NIC was silent alone. */
static void a_host_that_speaks_again_has_no_silent_nic(void **state)
{
    for (uint32_t seed = 1; seed <= 8; seed++) {
        sleeps(seed, 1100, 300);
        for (uint32_t h = 0; h < 3; h += 2) {
            for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
                assert_int_not_equal(w.hosts[h].findings[i].finding.kind, FINDING_PEER_SILENT);
            }
        }
    }
}

/* The same after a sleep that is long enough to be reported: it wakes up when its silence is about to be explained. */
static void a_host_that_wakes_up_has_no_silent_nic(void **state)
{
    for (uint32_t seed = 1; seed <= 24; seed++) {
        sleeps(seed, 2000 + 20 * (int64_t)seed, 60);
        for (uint32_t h = 0; h < 3; h += 2) {
            for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
                assert_int_not_equal(w.hosts[h].findings[i].finding.suspect.kind, ELEMENT_NIC);
            }
        }
    }
}

/* Its host's clock goes back by ten seconds, as a copy of a virtual machine's may. It goes on sending at once. */
static void a_host_whose_clock_goes_back_is_not_silent(void **state)
{
    uint32_t told = 0;

    w.hosts[1].offset -= 10 * NS_PER_S;
    world_run(&w, 5 * NS_PER_S);
    for (uint32_t h = 0; h < 3; h += 2) {
        for (uint32_t i = 0; i < w.hosts[h].finding_count; i++) {
            told += w.hosts[h].findings[i].finding.kind == FINDING_PEER_SILENT;
        }
    }
    assert_int_equal(told, 0);
}

/* The newest finding of that host's silence at host 0. */
static const struct finding *silence_of(uint32_t host)
{
    const struct finding *found = NULL;

    for (uint32_t i = 0; i < w.hosts[0].finding_count; i++) {
        const struct finding *f = &w.hosts[0].findings[i].finding;
        found = f->kind == FINDING_PEER_SILENT && f->from_host.index == host ? f : found;
    }
    assert_non_null(found);
    return found;
}

static void four_hosts_for(uint64_t seed, bool ways, int64_t ns)
{
    world_done(&w);
    world_init(&w, seed, 4, 2);
    w.trace_hops = ways;
    for (uint32_t h = 0; h < 4; h++) {
        world_start(&w, h);
    }
    world_run(&w, ns);
}

static void four_hosts(uint64_t seed)
{
    four_hosts_for(seed, false, 3 * NS_PER_S);
}

/* Two hosts at the same moment: a fabric that fell into parts looks like that, and each part would accuse the other. */
static void hosts_that_fall_silent_at_once_are_not_named(void **state)
{
    uint32_t told = 0;

    four_hosts(12);
    for (uint32_t h = 1; h < 3; h++) { /* one of each leaf */
        set_loss(h, 0, 0, 1);
        set_loss(h, 1, 0, 1);
    }
    world_run(&w, 4 * NS_PER_S);
    for (uint32_t i = 0; i < w.hosts[0].finding_count; i++) {
        const struct finding *f = &w.hosts[0].findings[i].finding;

        if (f->kind == FINDING_PEER_SILENT) {
            told++;
            assert_int_equal(f->suspect.kind, ELEMENT_UNKNOWN);
            assert_in_range(f->from_host.index, 1, 2);
            assert_int_equal(f->choice.one_of[0].a.number, f->from_host.index);
            assert_int_equal(f->choice.total, f->choice.count + 1);
        }
    }
    assert_int_equal(told, 2);
}

/* One of two that became silent at once is back: it was no partition, which would be over for both. */
static void who_stays_silent_is_named(void **state)
{
    four_hosts(12);
    for (uint32_t h = 1; h < 3; h++) {
        set_loss(h, 0, 0, 1);
        set_loss(h, 1, 0, 1);
    }
    world_run(&w, 6 * NS_PER_S);
    const uint32_t number = silence_of(1)->number;
    assert_int_equal(silence_of(1)->suspect.kind, ELEMENT_UNKNOWN);
    set_loss(2, 0, 0, 0);
    set_loss(2, 1, 0, 0);
    world_run(&w, NS_PER_S);
    assert_int_equal(silence_of(2)->phase, FINDING_CLOSED);
    assert_int_equal(silence_of(1)->suspect.kind, ELEMENT_UNKNOWN); /* it may come back, too */
    world_run(&w, 3 * NS_PER_S);
    assert_int_equal(silence_of(1)->phase, FINDING_UPDATED);
    assert_int_equal(silence_of(1)->number, number);
    assert_int_equal(silence_of(1)->suspect.kind, ELEMENT_HOST);
    assert_int_equal(silence_of(1)->suspect.a.number, 1);
    assert_int_equal(silence_of(1)->advice, ADVICE_CHECK_PEER_HOST);
    const uint32_t told = w.hosts[0].finding_count;
    world_run(&w, 5 * NS_PER_S); /* once */
    assert_int_equal(w.hosts[0].finding_count, told);
}

/* A NIC of another host becomes quiet while the silence of the first is still waited for: these are two faults. */
static void what_falls_silent_later_hides_nobody(void **state)
{
    four_hosts_for(13, true, 20 * NS_PER_S); /* ways are learnt */
    set_loss(1, 0, 0, 1);
    set_loss(1, 1, 0, 1);
    world_run(&w, 950 * NS_PER_MS);
    set_loss(2, 0, 0, 1);
    set_loss(2, 1, 0, 0);
    world_run(&w, 4 * NS_PER_S);
    assert_int_equal(silence_of(1)->suspect.kind, ELEMENT_HOST);
    assert_int_equal(silence_of(1)->suspect.a.number, 1);
    assert_int_equal(silence_of(2)->suspect.kind, ELEMENT_NIC);
    assert_int_equal(silence_of(2)->suspect.a.number, 4);
}

/* Across the fabric, over a few ports whose ways aren't known: all of them may cross one trunk. */
static void by_few_ports_a_trunk_may_hide_a_nic(void **state)
{
    for (int known = 0; known < 2; known++) {
        four_hosts_for(13, known == 1, known == 1 ? 20 * NS_PER_S : 3 * NS_PER_S);
        set_loss(2, 0, 0, 1);
        world_run(&w, 4 * NS_PER_S);
        const struct finding *f = silence_of(2);
        assert_int_equal(f->suspect.kind, known == 1 ? ELEMENT_NIC : ELEMENT_UNKNOWN);
        assert_int_equal(known == 1 ? f->suspect.a.number : f->choice.one_of[0].a.number, 4);
        assert_int_equal(f->choice.total, known == 1 ? 0 : 2);
    }
}

static void a_nic_of_ours_that_hears_nobody(void **state)
{
    uint32_t opened;

    set_loss(0, 1, 1, 1);
    world_run(&w, 4 * NS_PER_S);
    const struct finding f = only_silence(&opened);
    assert_int_equal(opened, 1);
    assert_int_equal(f.from.index, 1);
    assert_int_equal(f.from_host.index, 0);
    assert_int_equal(f.to.index, NIC_NONE.index);
    assert_int_equal(f.to_host.index, HOST_NONE.index);
    assert_int_equal(f.direction, DIRECTION_NONE);
    assert_int_equal(f.suspect.kind, ELEMENT_UNKNOWN); /* or its leaf, or all others */
    assert_int_equal(f.choice.count, 1);
    assert_int_equal(f.choice.total, 2);
    assert_int_equal(f.choice.one_of[0].kind, ELEMENT_NIC);
    assert_int_equal(f.choice.one_of[0].a.number, 1);
    assert_int_equal(f.choice.one_of[0].direction, DIRECTION_IN);
    assert_int_equal(f.advice, ADVICE_CHECK_OWN_HOST);
    set_loss(0, 1, 1, 0);
    world_run(&w, 4 * NS_PER_S);
    (void)only_silence(&opened);
    assert_int_equal(opened, 1); /* and its end is no news about others */
    assert_int_equal(node_finding_count(w.hosts[0].node), 0);
}

/* In step: both directions of each path have a delay, with the bounds of both ends' clocks. */
static void paths_are_told_with_the_clocks_bound(void **state)
{
    const struct node *n = w.hosts[0].node;
    const struct mono now = world_mono(&w, 0);
    struct clock_report clock;
    struct clock_terms terms;
    struct nic_time at;
    struct fleet_time since;
    uint32_t told = 0;

    node_clock_page(n, &terms);
    assert_int_equal(terms.status, CLOCK_SYNCED);
    assert_true(node_fleet_time(n, now, &since));
    assert_true(node_member_time(n, 0, now, &at));
    clock_report(node_member_clock(n, 0), at, &clock);
    assert_int_equal(clock.status, CLOCK_SYNCED);
    assert_true(clock.statistical_ns > 0 && clock.hard_ns > clock.statistical_ns);
    for (uint32_t edge = 0; edge < node_edge_count(n); edge++) {
        struct node_edge e;
        struct path_report r;
        if (!node_edge_get(n, edge, now, &e)) {
            continue;
        }
        assert_true(e.host.index == 1 || e.host.index == 2);
        assert_false(e.silent);
        for (uint8_t path = 0; path < e.path_count; path++) {
            for (int out = 0; out < 2; out++) {
                assert_true(
                    node_path_get(n, edge, path, out ? DIRECTION_OUT : DIRECTION_IN, now, &r));
                assert_int_equal(r.state, PATH_ALIVE);
                assert_int_equal(r.bound_ns, (int64_t)ceil(2 * clock.statistical_ns));
                assert_int_equal(r.hard_ns, (int64_t)ceil(2 * clock.hard_ns));
                assert_true(r.owd_count > 0);
                assert_in_range(r.owd_ns_p50, 500, 60000);
                told++;
            }
        }
    }
    assert_true(told >= 16);
}

/* A neighbour was reported to be out of step. The finding is over when it is no longer heard, and also if this host is in
 * step. */
static void out_of_step_ends_with_the_neighbour(void **state)
{
    struct node *n = w.hosts[0].node;
    struct mono now = world_mono(&w, 0);
    static const uint32_t hosts[] = {9, 1};

    for (size_t i = 0; i < ARRAY_COUNT(hosts); i++) {
        struct open_finding *o = node_finding_open(n, i, FINDING_CLOCK_ASTRAY, now, now);
        o->finding.from_host.index = hosts[i];
        o->said = true;
        node_astray_check(n, now);
        assert_int_equal(n->open_count, 0);
    }
    struct open_finding *o = node_finding_open(n, 3, FINDING_CLOCK_STEP, now, now);
    o->finding.from_host.index = 9;
    node_astray_check(n, now); /* another kind doesn't matter */
    assert_int_equal(n->open_count, 1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        T(a_silent_host_is_one_sentence),
        T(a_silent_nic_of_a_host_that_lives),
        T(a_host_that_speaks_again_has_no_silent_nic),
        T(a_host_that_wakes_up_has_no_silent_nic),
        T(a_host_whose_clock_goes_back_is_not_silent),
        T(hosts_that_fall_silent_at_once_are_not_named),
        T(who_stays_silent_is_named),
        T(what_falls_silent_later_hides_nobody),
        T(by_few_ports_a_trunk_may_hide_a_nic),
        T(a_nic_of_ours_that_hears_nobody),
        T(paths_are_told_with_the_clocks_bound),
        T(out_of_step_ends_with_the_neighbour),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
