/* How much may be sent: credit against incast, pacing, low priority that yields, goodput. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/traffic/credit.h"
#include "core/traffic/goodput.h"
#include "core/traffic/pacing.h"
#include "core/traffic/priority.h"

#define CHUNK  32768u
#define RTT_NS (100 * NS_PER_US)

/* Senders to one link of 10 Gb/s: each has as much on its way as allowed, or `greed`. Reported once a millisecond. */
struct incast {
    struct credit credit;
    double rate;        /* of the link, bytes per ns */
    double queue_bytes; /* before it, of all senders */
    int64_t now;
    uint32_t interval;  /* the interval in which the senders were counted */
    uint64_t bytes;     /* that came in all */
    double queue_worst; /* ns, of late */
};

static void incast_play(struct incast *x, uint32_t senders, double greed, int64_t ns)
{
    x->queue_worst = 0;
    for (const int64_t end = x->now + ns; x->now < end; x->now += NS_PER_MS) {
        const uint64_t window = credit_window(&x->credit);
        const double wish = window == CREDIT_UNLIMITED ? greed : (double)window;
        const double most = x->rate * 1e6; /* in a millisecond */
        /* All bytes on their way stand before the link, except those that a round trip holds. */
        const double offered = wish * senders - x->rate * (double)RTT_NS;
        const double came = senders > 0 && wish * senders / (double)RTT_NS < x->rate
                                ? wish * senders / (double)RTT_NS * 1e6
                            : senders > 0 ? most
                                          : 0;
        x->queue_bytes = offered > 0 ? offered : 0;
        const int64_t queue_ns = (int64_t)(x->queue_bytes / x->rate);
        x->queue_worst = (double)queue_ns > x->queue_worst ? (double)queue_ns : x->queue_worst;
        credit_tick(&x->credit, (struct mono){x->now});
        const bool first = x->interval != x->credit.interval;
        x->interval = x->credit.interval;
        for (uint32_t i = 0; i < senders; i++) {
            const struct credit_arrivals a = {.bytes = (uint64_t)(came / senders),
                                              .queue_ns = queue_ns,
                                              .chunk = CHUNK,
                                              .comms = first,
                                              .first = first};
            credit_on_arrivals(&x->credit, (struct mono){x->now}, &a);
        }
        x->bytes += (uint64_t)came;
    }
}

static void incast_begin(struct incast *x)
{
    *x = (struct incast){.rate = 1.25};
    credit_init(&x->credit, (struct mono){0});
    credit_on_rtt(&x->credit, span_ns(RTT_NS));
}

static void test_credit(void **state)
{
    struct incast x;

    (void)state;
    incast_begin(&x);
    incast_play(&x, 7, 4096, 100 * NS_PER_MS);
    assert_true(credit_window(&x.credit) == CREDIT_UNLIMITED); /* no queue, no limit */
    incast_play(&x, 1, 4e6, 100 * NS_PER_MS);
    assert_true(credit_window(&x.credit) == CREDIT_UNLIMITED); /* one's own queue is no incast */
    incast_play(&x, 7, 4e6, 100 * NS_PER_MS);                  /* 22 ms of queue */
    x.bytes = 0;
    incast_play(&x, 7, 4e6, 500 * NS_PER_MS);
    assert_true(x.queue_worst < 1e6 && (double)x.bytes >= 0.98 * 1.25 * 500e6);
    assert_true(credit_window(&x.credit) >= CHUNK && x.credit.harms == 0);
    assert_true(credit_window(&x.credit) * 7 < 1.25 * 1e6);
    incast_play(&x, 0, 0, 500 * NS_PER_MS); /* all is over */
    assert_true(credit_window(&x.credit) == CREDIT_UNLIMITED);
}

/* A trunk that others fill as well: they get what we leave. */
static void test_credit_does_no_harm(void **state)
{
    struct incast x;

    (void)state;
    incast_begin(&x);
    incast_play(&x, 7, 4e6, 20 * NS_PER_MS);
    assert_true(credit_window(&x.credit) != CREDIT_UNLIMITED);
    for (int i = 0; i < 1000 && x.credit.harms == 0; i++) {
        x.now += NS_PER_MS; /* the queue stays, and little arrives */
        credit_tick(&x.credit, (struct mono){x.now});
        const bool first = x.interval != x.credit.interval;
        const struct credit_arrivals a = {.bytes = 100000,
                                          .queue_ns = 5 * NS_PER_MS,
                                          .chunk = CHUNK,
                                          .comms = first,
                                          .first = first};
        x.interval = x.credit.interval;
        credit_on_arrivals(&x.credit, (struct mono){x.now}, &a);
        credit_on_arrivals(&x.credit, (struct mono){x.now}, &a);
    }
    assert_true(x.credit.harms == 1 && credit_window(&x.credit) == CREDIT_UNLIMITED);
    incast_play(&x, 7, 4e6, 500 * NS_PER_MS);
    assert_true(credit_window(&x.credit) == CREDIT_UNLIMITED); /* not before a second has passed */
    incast_play(&x, 7, 4e6, NS_PER_S);
    assert_true(credit_window(&x.credit) != CREDIT_UNLIMITED);
    (void)HOLDS(&x.credit.bug, x.now < 0);
    assert_true(credit_bug(&x.credit) != NULL && credit_window(&x.credit) == CREDIT_UNLIMITED);
}

static void test_pacing(void **state)
{
    struct pacing p;
    uint64_t bytes = 0;

    pacing_init(&p, (struct mono){0}, 0.1, CHUNK);
    for (int64_t now = 0; now < 100 * NS_PER_MS;) {
        if (pacing_take(&p, (struct mono){now}, CHUNK)) {
            bytes += CHUNK;
        } else {
            assert_true(pacing_deadline(&p, (struct mono){now}).ns > now);
            now = pacing_deadline(&p, (struct mono){now}).ns;
        }
    }
    assert_true(fabs((double)bytes / 10e6 - 1) < 0.02);
    pacing_rate(&p, (struct mono){NS_PER_S}, 0);
    assert_true(pacing_take(&p, (struct mono){NS_PER_S}, 1u << 30));
}

/* One of low priority beside one that doesn't yield and takes `other` of the link. Bytes beyond the link's rate queue. Returns
 * the share of the low one in the second half. */
static double beside(struct priority *low, double other, int64_t *now, double *ret_queue_ns)
{
    const double link = 1.25;
    double queue = 0, sent = 0;

    for (int64_t end = *now + 2 * NS_PER_S, half = *now + NS_PER_S; *now < end;
         *now += 100 * NS_PER_US) {
        const int64_t life = 100 * NS_PER_US + (int64_t)(queue / link);
        const double window = (double)priority_window(low) * (CHUNK / 4) / (double)life;
        const double rate = priority_rate(low) > 0 ? priority_rate(low) : window;
        const double wish = rate < link ? rate : link;
        const double mine = wish / (wish + other * link); /* share of a full link */
        queue += (wish + other * link - link) * 100e3;
        queue = queue < 0 ? 0 : queue < 4e6 ? queue : 4e6; /* it is limited */
        const struct priority_sample sample = {.sent = {*now - life},
                                               .queue_ns = (int64_t)(queue / link),
                                               .life_ns_min = 100 * NS_PER_US,
                                               .goodput = link,
                                               .chunk = CHUNK / 4,
                                               .lanes = 1};
        priority_on_delay(low, (struct mono){*now}, &sample);
        sent += *now >= half ? (queue > 0 ? link * mine : wish) * 100e3 : 0;
    }
    *ret_queue_ns = queue / link;
    return sent / (link * 1e9);
}

static void test_priority(void **state)
{
    struct priority low;
    double queue_ns;
    int64_t now = 0;

    (void)state;
    priority_init(&low, (struct mono){0});
    assert_true(beside(&low, 0, &now, &queue_ns) >= 0.95); /* alone: all of it */
    const double left = beside(&low, 0.6, &now, &queue_ns);
    assert_true(left >= 0.8 * 0.4 && left <= 0.4 &&
                queue_ns < 2e6); /* what is left, and little delay */
    const double full = beside(&low, 1.0, &now, &queue_ns);
    assert_true(full >= 0.01 && full <= 0.1);              /* little is left, but never nothing */
    assert_true(beside(&low, 0, &now, &queue_ns) >= 0.95); /* and all of it again */
    (void)HOLDS(&low.bug, now < 0);
    assert_non_null(priority_bug(&low));
    assert_int_equal(priority_window(&low), PRIORITY_WINDOW_MAX); /* off: no limit */
}

/* A chunk of 8 KiB with a queue before it, sent after the last change. */
static uint32_t window_after(struct priority *low, struct priority_sample *sample, int64_t queue_ns)
{
    sample->sent.ns += NS_PER_MS;
    sample->queue_ns = queue_ns;
    priority_on_delay(low, mono_add(sample->sent, span_us(500)), sample);
    return priority_window(low);
}

static void test_priority_steps_aside_at_once(void **state)
{
    struct priority_sample sample = {
        .goodput = 0.00819, .life_ns_min = 3 * NS_PER_MS, .chunk = 8192, .lanes = 4};
    const int64_t target = 5 * NS_PER_MS; /* about five chunks at that goodput */
    struct priority low;

    (void)state;
    priority_init(&low, (struct mono){0});
    for (int i = 0; i < 10; i++) {
        assert_int_equal(window_after(&low, &sample, target - 100000),
                         2); /* what the path holds, and 1.5 */
    }
    for (int i = 0; i < 3; i++) { /* one sample in order, and counting begins anew */
        assert_int_equal(window_after(&low, &sample, target + 100000), 1);
        assert_int_equal(window_after(&low, &sample, target + 100000), 1);
        assert_int_equal(window_after(&low, &sample, target - 100000), 2);
    }
    assert_int_equal(window_after(&low, &sample, target + 100000), 1); /* step by step */
    assert_int_equal(window_after(&low, &sample, target + 100000), 1);
    assert_int_equal(window_after(&low, &sample, target + 100000), 0);
    assert_true(fabs(priority_rate(&low) / (0.05 * sample.goodput / 4) - 1) < 1e-9);
    assert_int_equal(window_after(&low, &sample, target + 100000), 0);
    assert_int_equal(window_after(&low, &sample, 0), 1); /* back */
    assert_true(priority_rate(&low) <= 0);
    assert_int_equal(window_after(&low, &sample, 3 * target), 0); /* at once */
    sample.sent.ns -= NS_PER_MS; /* sent before that: it doesn't count */
    sample.queue_ns = 0;
    priority_on_delay(&low, mono_add(sample.sent, span_us(2000)), &sample);
    assert_int_equal(priority_window(&low), 0);
    sample.goodput = 50; /* a long path */
    for (int i = 0; i < 2 * PRIORITY_WINDOW_MAX; i++) {
        (void)window_after(&low, &sample, 0);
    }
    assert_int_equal(priority_window(&low), PRIORITY_WINDOW_MAX);
    sample.goodput = 0; /* nothing is known: still a chunk in 200 ms */
    assert_int_equal(window_after(&low, &sample, 3 * target), 0);
    assert_true(fabs(priority_rate(&low) * 200e6 / 8192 - 1) < 1e-9);
}

/* The rate of a burst isn't what a path carries, and neither is the rate while we held back. */
static void test_goodput(void **state)
{
    struct goodput g;
    int64_t now = 0;

    (void)state;
    goodput_init(&g, (struct mono){0});
    for (int i = 0; i < 100; i++) { /* 1 MB/s, heaps of 2 within a microsecond each 2 ms */
        goodput_on_arrived(&g, (struct mono){now += 2 * NS_PER_MS - 1000}, 1000, span_us(500),
                           false);
        goodput_on_arrived(&g, (struct mono){now += 1000}, 1000, span_us(500), false);
    }
    assert_true(fabs(g.best - 0.001) < 0.00011);
    const double before = g.best;
    for (int i = 0; i < 1000; i++) {
        goodput_on_arrived(&g, (struct mono){now += 20 * NS_PER_MS}, 1, span_us(500), true);
    }
    assert_true(g.best >= before);
    for (int i = 0; i < 1000; i++) {
        goodput_on_arrived(&g, (struct mono){now += 20 * NS_PER_MS}, 1, span_us(500), false);
    }
    assert_true(g.best < 0.5 * before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_credit),
        cmocka_unit_test(test_credit_does_no_harm),
        cmocka_unit_test(test_pacing),
        cmocka_unit_test(test_priority),
        cmocka_unit_test(test_priority_steps_aside_at_once),
        cmocka_unit_test(test_goodput),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
