/* A port's downs are all counted, however late and few the events; messages are damped, counting
 * never. */
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

/* Drains; how many messages of each kind. */
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
    look(NS_PER_S, true, 3); /* carrier was and is up: the counter alone tells */
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

/* A port sends into nothing while its cable is cut, and drops what finds a queue full: neither is a bad cable. */
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
    };
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);

    link_free(port);
    return failed;
}
