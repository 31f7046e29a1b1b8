/* All downs of a port are counted, however late and few the events are. Messages are damped; the count never is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/link/link.h"

static struct link *port;
static struct link_facts facts;

static void start(void)
{
    link_free(port);
    port = link_new(0, (struct mono){0});
    assert_non_null(port);
    facts = (struct link_facts){.present = 1,
                                .carrier = 1,
                                .carrier_down_count = 5,
                                .carrier_up_count = 6,
                                .speed_mbps = 400000,
                                .width = 4};
    link_on_facts(port, (struct mono){0}, &facts);
}

static void look(int64_t at_ns, bool carrier, uint32_t downs)
{
    facts.at.ns = at_ns;
    facts.carrier_up_count += downs + (carrier && !facts.carrier) - (!carrier && facts.carrier);
    facts.carrier = carrier;
    facts.carrier_down_count += downs;
    link_on_facts(port, facts.at, &facts);
}

/* Drains the messages, and counts those of each kind. */
static int drained[LINK_MESSAGE_BACK + 1];
static void drain(void)
{
    struct link_message m;

    memset(drained, 0, sizeof(drained));
    while (link_next_message(port, &m)) {
        drained[m.kind]++;
    }
}

static struct link_report report(int64_t at_ns)
{
    struct link_report r;

    link_report_get(port, (struct mono){at_ns}, &r);
    return r;
}

static void a_down_is_said_at_once_and_closed(void **state)
{
    start();
    drain();
    assert_int_equal(drained[LINK_MESSAGE_DOWN], 0);
    look(NS_PER_S, false, 1);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_DOWN], 1);
    assert_int_equal(report(NS_PER_S).state, LINK_DOWN);
    look(2 * NS_PER_S, true, 0);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_UP], 1);
    assert_int_equal(report(2 * NS_PER_S).downs, 1);
    assert_int_equal(report(2 * NS_PER_S).since.ns, 2 * NS_PER_S);
}

static void downs_between_two_looks_count(void **state)
{
    start();
    look(NS_PER_S, true, 3); /* carrier was and is up: only the counter shows it */
    drain();
    assert_int_equal(report(NS_PER_S).downs, 3);
    assert_int_equal(drained[LINK_MESSAGE_DOWN], 1);
    assert_int_equal(drained[LINK_MESSAGE_UP], 1);
}

static void a_thousand_flaps_are_a_thousand_and_few_messages(void **state)
{
    int said = 0;

    start();
    for (int i = 0; i < 1000; i++) {
        look(NS_PER_S + i * 20 * NS_PER_MS, false, 1);
        look(NS_PER_S + i * 20 * NS_PER_MS + 10 * NS_PER_MS, true, 0);
        drain();
        said += drained[LINK_MESSAGE_DOWN] + drained[LINK_MESSAGE_FLAPPING];
    }
    assert_int_equal(report(21 * NS_PER_S).downs, 1000);
    assert_int_equal(report(21 * NS_PER_S).ups, 1000);
    assert_int_equal(report(21 * NS_PER_S).flaps_hour, 1000);
    assert_int_equal(report(21 * NS_PER_S).flaps_minute, 1000);
    assert_int_equal(report(100 * NS_PER_S).flaps_minute, 0);
    assert_true(report(21 * NS_PER_S).flapping);
    assert_in_range(said, 9, 16);
}

static void more_than_eight_in_the_hour(void **state)
{
    start();
    for (int i = 0; i < 8; i++) {
        look((1 + i) * 60 * NS_PER_S, true, 1);
    }
    drain();
    assert_int_equal(drained[LINK_MESSAGE_FLAPPING], 0);
    look(10 * 60 * NS_PER_S, true, 1);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_FLAPPING], 1);
    link_tick(port, (struct mono){2 * 3600 * NS_PER_S});
    drain();
    assert_int_equal(drained[LINK_MESSAGE_CALM], 1);
    assert_int_equal(report(2 * 3600 * NS_PER_S).flaps_day, 9);
}

static void a_lasting_down_is_said_even_while_flapping(void **state)
{
    start();
    look(NS_PER_S, true, 20);
    drain();
    look(2 * NS_PER_S, false, 1);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_DOWN], 0);
    assert_true(link_deadline(port).ns <= 4 * NS_PER_S);
    link_tick(port, link_deadline(port));
    drain();
    assert_int_equal(drained[LINK_MESSAGE_DOWN], 1);
}

static void gone_and_back_is_no_flap(void **state)
{
    start();
    facts.present = 0;
    link_on_facts(port, (struct mono){NS_PER_S}, &facts);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_GONE], 1);
    assert_int_equal(report(NS_PER_S).state, LINK_GONE);
    facts.present = 1;
    facts.carrier_down_count = 1;
    link_on_facts(port, (struct mono){2 * NS_PER_S}, &facts);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_BACK], 1);
    assert_int_equal(report(2 * NS_PER_S).downs, 0);
    assert_int_equal(report(2 * NS_PER_S).state, LINK_UP);
}

static void speed_loss_and_errors_are_news(void **state)
{
    start();
    facts.speed_mbps = 200000;
    facts.rx_errors = 50;
    look(NS_PER_S, true, 0);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_SPEED], 1);
    assert_int_equal(drained[LINK_MESSAGE_ERRORS], 1);
    assert_int_equal(report(NS_PER_S).rx_errors, 50);
    facts.speed_mbps = 400000;
    look(90 * NS_PER_S, true, 0);
    look(155 * NS_PER_S, true, 0);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_SPEED], 1);
    assert_int_equal(drained[LINK_MESSAGE_ERRORS_END], 1);
}

/* A port's packets are lost while its cable is cut, and it drops packets at a full queue: neither is a bad cable. */
static void errors_while_down_and_drops_are_not(void **state)
{
    start();
    look(NS_PER_S, true, 0);
    look(2 * NS_PER_S, false, 1);
    facts.tx_errors = 500;
    look(3 * NS_PER_S, false, 1);
    facts.tx_errors = 1000;
    look(4 * NS_PER_S, true, 1);
    facts.rx_drops = facts.tx_drops = 100000;
    look(5 * NS_PER_S, true, 1);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_ERRORS], 0);
    assert_int_equal(report(5 * NS_PER_S).tx_errors, 1000);
    facts.tx_errors = 1010;
    look(6 * NS_PER_S, true, 1);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_ERRORS], 1);
}

/* Drains up to the last message of this kind. */
static struct link_message last_of(enum link_message_kind kind)
{
    struct link_message m, last = {.kind = UINT32_MAX};

    while (link_next_message(port, &m)) {
        last = m.kind == kind ? m : last;
    }
    assert_int_equal(last.kind, kind);
    return last;
}

static void the_windows_slide(void **state)
{
    link_free(port);
    port = link_new(0, (struct mono){0});
    assert_int_equal(link_deadline(port).ns, MONO_NEVER.ns);
    start();
    look(10 * NS_PER_S, true, 1);
    look(30 * NS_PER_S, true, 2);
    look(65 * NS_PER_S, true, 1);
    assert_int_equal(report(66 * NS_PER_S).flaps_minute, 4);
    assert_int_equal(report(70 * NS_PER_S - 1).flaps_minute, 4);
    assert_int_equal(report(70 * NS_PER_S).flaps_minute, 3);
    assert_int_equal(report(90 * NS_PER_S).flaps_minute, 1);
    assert_int_equal(report(125 * NS_PER_S).flaps_minute, 0);
    assert_int_equal(report(3629 * NS_PER_S).flaps_hour, 3);
    assert_int_equal(report(3665 * NS_PER_S).flaps_hour, 0);
    assert_int_equal(report(86429 * NS_PER_S).flaps_day, 3);
    assert_int_equal(report(86465 * NS_PER_S).flaps_day, 0);
}

/* More than are kept one by one: for the hour and the day the counts of each minute are used. */
static void ten_thousand_flaps_count_by_the_minute(void **state)
{
    start();
    for (int minute = 0; minute < 100; minute++) {
        look((minute * 60 + 30) * NS_PER_S, true, 100);
    }
    const int64_t end = 99 * 60 * NS_PER_S + 40 * NS_PER_S;
    assert_int_equal(report(end).flaps_minute, 100);
    assert_int_equal(report(end).flaps_hour, 6000);
    assert_int_equal(report(end).flaps_day, 10000);
    /* two days later, by a clock that jumps: one flap is one */
    look(end + 3 * 86400 * NS_PER_S, true, 1);
    assert_int_equal(report(end + 3 * 86400 * NS_PER_S).flaps_hour, 1);
    assert_int_equal(report(end + 3 * 86400 * NS_PER_S).flaps_day, 1);
    assert_int_equal(report(end + 3 * 86400 * NS_PER_S).downs, 10001);
}

/* Minutes without flaps push the old ones out. A minute may have more flaps than are kept. */
static void minutes_without_flaps_pass_too(void **state)
{
    start();
    for (int minute = 0; minute < 100; minute++) {
        look((minute * 60 + 30) * NS_PER_S, true, 100);
    }
    assert_int_equal(report((100 * 60 + 40) * NS_PER_S).flaps_hour, 5900);
    assert_int_equal(report((109 * 60 + 40) * NS_PER_S).flaps_hour, 5000);
    start();
    look(10 * NS_PER_S, true, 5000);
    assert_int_equal(report(15 * NS_PER_S).flaps_minute, 5000);
    assert_int_equal(report(15 * NS_PER_S).flaps_hour, 5000);
}

/* Each up after a down is counted, too, as the kernel does. */
static void ups_are_counted_with_the_downs(void **state)
{
    static const struct {
        bool carrier;
        uint32_t downs;
        uint64_t downs_after, ups_after;
    } looks[] = {
        {true, 3, 3, 3},   /* down and up three times between two looks */
        {false, 1, 4, 3},  /* gone */
        {false, 2, 6, 5},  /* up twice, and down again */
        {true, 0, 6, 6},   /* back */
        {false, 3, 9, 8},  /* down, up, down, up, down */
        {true, 2, 11, 11}, /* up, and twice more */
    };

    start();
    for (size_t i = 0; i < sizeof(looks) / sizeof(looks[0]); i++) {
        const int64_t at = (int64_t)(i + 1) * NS_PER_S;
        look(at, looks[i].carrier, looks[i].downs);
        assert_int_equal(report(at).downs, looks[i].downs_after);
        assert_int_equal(report(at).ups, looks[i].ups_after);
    }
}

/* Drivers that don't count, and devices that were made again between two looks and count from 0. */
static void downs_without_the_kernels_count(void **state)
{
    start();
    look(NS_PER_S, false, 0); /* the carrier goes, the count stays */
    assert_int_equal(report(NS_PER_S).downs, 1);
    look(2 * NS_PER_S, true, 0);
    assert_int_equal(report(2 * NS_PER_S).downs, 1);
    facts.carrier_down_count = 2; /* of 5: another device; the old one went, this one did twice */
    look(3 * NS_PER_S, true, 0);
    assert_int_equal(report(3 * NS_PER_S).downs, 4);
    look(4 * NS_PER_S, false, 1);
    facts.carrier_down_count = 2; /* it was down already */
    look(5 * NS_PER_S, false, 0);
    assert_int_equal(report(5 * NS_PER_S).downs, 7);
}

/* Down and up again within the two seconds: nothing lasts, and nothing is reported later. */
static void a_short_down_of_a_flapping_port_is_not_said(void **state)
{
    start();
    look(NS_PER_S, true, 9);
    drain();
    look(10 * NS_PER_S, false, 1);
    look(11 * NS_PER_S, true, 0);
    link_tick(port, (struct mono){15 * NS_PER_S});
    drain();
    assert_int_equal(drained[LINK_MESSAGE_DOWN], 0);
}

/* Half of the limit is calm. */
static void half_the_limit_is_calm(void **state)
{
    start();
    look(NS_PER_S, true, 5);
    look(30 * NS_PER_S, true, 4);
    drain();
    link_tick(port, (struct mono){90 * NS_PER_S});
    assert_true(link_deadline(port).ns > 90 * NS_PER_S); /* looked at, not to be looked at again */
    link_tick(port, (struct mono){3601 * NS_PER_S});     /* four of eight are left */
    assert_int_equal(last_of(LINK_MESSAGE_CALM).numbers[0], 4);
}

/* An agent that starts late: times count from its start, not from the host's. */
static void times_begin_with_the_agent(void **state)
{
    const int64_t begin = 5000 * NS_PER_S;

    link_free(port);
    port = link_new(0, (struct mono){begin});
    assert_int_equal(report(begin).since.ns, begin);
    facts = (struct link_facts){.present = 1, .carrier = 1, .at = {begin}};
    link_on_facts(port, (struct mono){begin}, &facts);
    facts.rx_errors = 10;
    look(begin + 3 * NS_PER_S, true, 0);
    const struct link_message m = last_of(LINK_MESSAGE_ERRORS);
    assert_int_equal(m.since.ns, begin);
    assert_int_equal(m.numbers[1], 4);
}

/* A removed device has no errors, but that doesn't mean that it is well. */
static void errors_of_what_is_gone_do_not_end(void **state)
{
    start();
    facts.rx_errors = 100;
    look(NS_PER_S, true, 0);
    facts.present = 0;
    link_on_facts(port, (struct mono){2 * NS_PER_S}, &facts);
    drain();
    for (int minute = 1; minute < 5; minute++) {
        link_tick(port, (struct mono){minute * 60 * NS_PER_S + NS_PER_S});
    }
    drain();
    assert_int_equal(drained[LINK_MESSAGE_ERRORS_END], 0);
}

static void calm_ends_it_and_it_may_begin_again(void **state)
{
    start();
    for (int turn = 0; turn < 2; turn++) {
        const int64_t begin = (1 + turn * 7200) * NS_PER_S;
        look(begin, true, 9);
        struct link_message m = last_of(LINK_MESSAGE_FLAPPING);
        assert_int_equal(m.numbers[0], 9);
        assert_int_equal(m.numbers[1], 3600);
        assert_int_equal(m.numbers[2], LINK_FLAP_LIMIT_DEFAULT);
        look(begin + 5 * NS_PER_S, true, 8); /* 17: the next is at 18 */
        drain();
        assert_int_equal(drained[LINK_MESSAGE_FLAPPING], 0);
        look(begin + 6 * NS_PER_S, true, 1);
        assert_int_equal(last_of(LINK_MESSAGE_FLAPPING).numbers[0], 18);
        link_tick(port, (struct mono){begin + 3604 * NS_PER_S}); /* 9 are left: more than half */
        drain();
        assert_int_equal(drained[LINK_MESSAGE_CALM], 0);
        link_tick(port, (struct mono){begin + 3606 * NS_PER_S + 60 * NS_PER_S});
        assert_int_equal(last_of(LINK_MESSAGE_CALM).numbers[0], 0);
        assert_false(report(begin + 3670 * NS_PER_S).flapping);
    }
}

static void a_change_is_told_whole(void **state)
{
    start();
    facts.speed_mbps = 200000;
    facts.width = 2;
    look(NS_PER_S, true, 0);
    struct link_message m = last_of(LINK_MESSAGE_SPEED);
    assert_int_equal(m.since.ns, NS_PER_S);
    assert_int_equal(m.numbers[0], 400000);
    assert_int_equal(m.numbers[1], 200000);
    assert_int_equal(m.numbers[2], 4);
    assert_int_equal(m.numbers[3], 2);
    facts.width = 1;
    look(2 * NS_PER_S, true, 0);
    m = last_of(LINK_MESSAGE_SPEED);
    assert_int_equal(m.numbers[0], 200000);
    assert_int_equal(m.numbers[1], 200000);
    assert_int_equal(m.numbers[2], 2);
    assert_int_equal(m.numbers[3], 1);
    facts.speed_mbps = facts.width = 0; /* an unknown value is no change */
    look(3 * NS_PER_S, true, 0);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_SPEED], 0);
    assert_int_equal(report(3 * NS_PER_S).speed_changes, 2);
    assert_int_equal(report(3 * NS_PER_S).speed_mbps, 200000);
    assert_int_equal(report(3 * NS_PER_S).width, 1);
}

/* Messages that are not drained: the newest sixteen stay, in order. */
static void the_oldest_messages_give_way(void **state)
{
    struct link_message m;

    start();
    drain();
    for (int i = 1; i <= 20; i++) {
        facts.speed_mbps = (uint32_t)i * 1000;
        look(i * NS_PER_S, true, 0);
    }
    for (int i = 5; i <= 20; i++) {
        assert_true(link_next_message(port, &m));
        assert_int_equal(m.numbers[1], i * 1000);
    }
    assert_false(link_next_message(port, &m));
}

static void few_errors_a_minute_are_no_news_and_many_are_each_time(void **state)
{
    start();
    for (int minute = 0; minute < 10; minute++) {
        facts.rx_errors += 5;
        facts.tx_errors += 4;
        look((minute * 60 + 5) * NS_PER_S, true, 0);
        link_tick(port, (struct mono){link_deadline(port).ns});
    }
    drain();
    assert_int_equal(drained[LINK_MESSAGE_ERRORS], 0);
    for (int turn = 0; turn < 2; turn++) {
        const int64_t begin = (1000 + turn * 1000) * NS_PER_S;
        look(begin, true, 0);
        facts.rx_errors += 10;
        look(begin + 3 * NS_PER_S, true, 0);
        struct link_message m = last_of(LINK_MESSAGE_ERRORS);
        assert_int_equal(m.since.ns, begin);
        assert_int_equal(m.numbers[0], 10);
        assert_int_equal(m.numbers[1], 4);
        link_tick(port, (struct mono){begin + 60 * NS_PER_S});
        drain();
        assert_int_equal(drained[LINK_MESSAGE_ERRORS_END], 0); /* a minute with ten of them */
        link_tick(port, (struct mono){begin + 120 * NS_PER_S});
        assert_int_equal(last_of(LINK_MESSAGE_ERRORS_END).numbers[0], 0);
    }
}

/* A device that was made again counts from 0: earlier counts stay in the sums. */
static void sums_outlive_the_device(void **state)
{
    start();
    facts.rx_errors = 1, facts.tx_errors = 2, facts.rx_drops = 30, facts.tx_drops = 40;
    look(NS_PER_S, true, 0);
    facts.present = 0;
    link_on_facts(port, (struct mono){2 * NS_PER_S}, &facts);
    facts.present = 1;
    facts.rx_errors = 3, facts.tx_errors = 1, facts.rx_drops = 7, facts.tx_drops = 2;
    look(3 * NS_PER_S, true, 0);
    struct link_report r = report(3 * NS_PER_S);
    assert_int_equal(r.rx_errors, 1);
    assert_int_equal(r.tx_errors, 2);
    assert_int_equal(r.rx_drops, 30);
    assert_int_equal(r.tx_drops, 40);
    facts.rx_errors = 5, facts.tx_errors = 3, facts.rx_drops = 8, facts.tx_drops = 6;
    look(4 * NS_PER_S, true, 0);
    r = report(4 * NS_PER_S);
    assert_int_equal(r.rx_errors, 3);
    assert_int_equal(r.tx_errors, 4);
    assert_int_equal(r.rx_drops, 31);
    assert_int_equal(r.tx_drops, 44);
    facts.rx_errors = 0, facts.tx_errors = 0, facts.rx_drops = 0,
    facts.tx_drops = 1; /* without an event */
    look(5 * NS_PER_S, true, 0);
    r = report(5 * NS_PER_S);
    assert_int_equal(r.rx_errors, 3);
    assert_int_equal(r.tx_drops, 44);
}

/* Counts from before the agent's start don't belong to it. */
static void only_what_came_since_the_start_counts(void **state)
{
    link_free(port);
    port = link_new(0, (struct mono){0});
    facts = (struct link_facts){.present = 1, .carrier = 1, .carrier_down_count = 5};
    facts.rx_errors = 11, facts.tx_errors = 22, facts.rx_drops = 33, facts.tx_drops = 44;
    link_on_facts(port, (struct mono){0}, &facts);
    facts.rx_errors++, facts.tx_errors += 2, facts.rx_drops += 3, facts.tx_drops += 4;
    look(NS_PER_S, true, 0);
    drain();
    assert_int_equal(drained[LINK_MESSAGE_ERRORS], 0);
    assert_int_equal(report(NS_PER_S).rx_errors, 1);
    assert_int_equal(report(NS_PER_S).tx_errors, 2);
    assert_int_equal(report(NS_PER_S).rx_drops, 3);
    assert_int_equal(report(NS_PER_S).tx_drops, 4);
    assert_int_equal(report(NS_PER_S).downs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_down_is_said_at_once_and_closed),
        cmocka_unit_test(downs_between_two_looks_count),
        cmocka_unit_test(a_thousand_flaps_are_a_thousand_and_few_messages),
        cmocka_unit_test(more_than_eight_in_the_hour),
        cmocka_unit_test(a_lasting_down_is_said_even_while_flapping),
        cmocka_unit_test(gone_and_back_is_no_flap),
        cmocka_unit_test(speed_loss_and_errors_are_news),
        cmocka_unit_test(errors_while_down_and_drops_are_not),
        cmocka_unit_test(the_windows_slide),
        cmocka_unit_test(ten_thousand_flaps_count_by_the_minute),
        cmocka_unit_test(minutes_without_flaps_pass_too),
        cmocka_unit_test(ups_are_counted_with_the_downs),
        cmocka_unit_test(downs_without_the_kernels_count),
        cmocka_unit_test(a_short_down_of_a_flapping_port_is_not_said),
        cmocka_unit_test(half_the_limit_is_calm),
        cmocka_unit_test(times_begin_with_the_agent),
        cmocka_unit_test(errors_of_what_is_gone_do_not_end),
        cmocka_unit_test(calm_ends_it_and_it_may_begin_again),
        cmocka_unit_test(a_change_is_told_whole),
        cmocka_unit_test(the_oldest_messages_give_way),
        cmocka_unit_test(few_errors_a_minute_are_no_news_and_many_are_each_time),
        cmocka_unit_test(sums_outlive_the_device),
        cmocka_unit_test(only_what_came_since_the_start_counts),
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);

    link_free(port);
    return failed;
}
