/* test_job_traffic.c: traffic control of the real transport in a simulated network (sim/job_world.h): its gain, and that it holds
 * no job up and costs no job that doesn't need it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/time.h"
#include "sanitized.h"
#include "sim/job_net.h"
#include "sim/job_world.h"

/* All lanes use queue pairs, and NICs write: the same must hold. Except for the brown-out: there a flow whose lanes stay on the
 * slow trunk holds nothing up, 0.73 of the remaining rate against 0.86. */
static bool over_pairs;

static int begin_pairs(void **state)
{
    (void)state;
    over_pairs = true;
    return 0;
}

static int end_pairs(void **state)
{
    (void)state;
    over_pairs = false;
    return 0;
}

#define OVER_PAIRS(test)                                                                           \
    {                                                                                              \
        .name = #test "_over_pairs", .test_func = test, .setup_func = begin_pairs,                 \
        .teardown_func = end_pairs                                                                 \
    }

static void play(const struct job_world_config *config, struct job_world_result *ret)
{
    struct job_world_config own = *config;

    own.rdma = own.direct = over_pairs;
    job_world_run(&own, ret);
    if (ret->wrong != NULL) {
        fail_msg("%s %s", ret->wrong, ret->detail);
    }
}

/* Seven send to one: they share its link. */
static struct job_world_config incast(void)
{
    return (struct job_world_config){
        .seed = 1,
        .hosts = 8,
        .nics = 1,
        .leaves = 2,
        .spines = 4,
        .host_bps = 1000000000LL,
        .trunk_bps = 1000000000LL,
        .delay_ns = 5 * NS_PER_US,
        .pattern = JOB_INCAST,
        .comms = 1,
        .lanes = 4,
        .patience_ns = 10 * NS_PER_S,
        .messages = 100,
        .size_max = 1u << 18,
        .whole = true,
        .depth = 4,
        .poll_ns = 50 * NS_PER_US,
        .run_ns = 600 * NS_PER_MS,
        .warm_ns = 200 * NS_PER_MS,
        .rto_min_ns = 200 * NS_PER_MS,
    };
}

static double goodput(const struct job_world_config *config, const struct job_world_result *result)
{
    return (double)result->chaos_bytes * 8e9 / (double)(config->run_ns - config->warm_ns) /
           (double)config->host_bps;
}

static void test_incast(void **state)
{
    struct job_world_config config = incast();
    struct job_world_result with, without;

    (void)state;
    play(&config, &with);
    config.no_credit = true;
    play(&config, &without);
    print_message("with credit and without: goodput %.3f and %.3f of the link; delay p50 %.2f and "
                  "%.2f ms, p99 %.2f "
                  "and %.2f ms; packets lost %llu and %llu\n",
                  goodput(&config, &with), goodput(&config, &without),
                  (double)with.owd_ns_p50 / 1e6, (double)without.owd_ns_p50 / 1e6,
                  (double)with.owd_ns_p99 / 1e6, (double)without.owd_ns_p99 / 1e6,
                  (unsigned long long)with.lost, (unsigned long long)without.lost);
    assert_true(with.credits > 0 && with.credit_harms == 0 && without.credits == 0);
    assert_true(goodput(&config, &with) >= 0.95 * 1448 / 1514); /* of what the link can carry */
    assert_true((double)with.owd_ns_p99 <= 0.25 * (double)without.owd_ns_p99);
    assert_true((double)with.owd_ns_p50 <= 0.5 * (double)without.owd_ns_p50);
}

/* Every other process has the version before. */
static void test_versions_mixed(void **state)
{
    struct job_world_config config = incast();
    struct job_world_result result;

    (void)state;
    config.old_every = 2;
    config.run_ns = 300 * NS_PER_MS;
    play(&config, &result);
    assert_true(result.credits > 0 && result.failed == 0);
}

/* A sender that has its receiver alone is not limited. */
static void test_no_incast(void **state)
{
    struct job_world_config config = incast();
    struct job_world_result result;

    (void)state;
    config.pattern = JOB_RING;
    config.hosts = 4;
    config.run_ns = 100 * NS_PER_MS;
    config.warm_ns = 0;
    play(&config, &result);
    assert_true(result.credits == 0 && result.messages > 0);
}

/* Two jobs send all to all over the same NICs, as fast as trunks and NICs allow. Each sender divides its link among as many
 * receivers as a receiver has senders. So all of them together fill the receiver's link and no more, and limits would only let it
 * run dry. */
static void test_exchange(void **state)
{
    struct job_world_config config = incast();
    struct job_world_result result;

    (void)state;
    config.hosts = 8;
    config.sharing = 2;
    config.nics = config.comms = 2;
    config.host_bps = 45000000;
    config.trunk_bps = 30000000;
    config.queue_ns = 27 * NS_PER_MS;
    config.pattern = JOB_PAIRS;
    config.standbys = 2;
    config.messages = UINT32_MAX / 2;
    config.size_max = 65536;
    config.depth = 8;
    config.operation = 16;
    config.poll_ns = NS_PER_MS;
    config.run_ns = 3 * NS_PER_S;
    config.warm_ns = NS_PER_S;
    play(&config, &result);
    assert_true(result.credits == 0 && result.chaos_bytes > 0);
}

/* Three send to each of three others, in one direction: no receiver has more than one link's worth, and sets that only send
 * report that, too. Then all of them send to one: that is an incast, whatever they reported before. */
static void test_exchange_then_incast(void **state)
{
    static const enum job_pattern patterns[] = {JOB_HALVES, JOB_PAIRS};
    struct job_world_config config = incast();
    struct job_world_result before, result, without;

    (void)state;
    for (size_t i = 0; i < (SANITIZED ? 1 : ARRAY_COUNT(patterns)); i++) {
        config = incast();
        config.pattern = patterns[i];
        config.hosts = 6;
        play(&config, &before);
        config.gather_ns = config.run_ns;
        config.warm_ns = config.gather_ns + 300 * NS_PER_MS; /* earlier reports have expired */
        config.run_ns = 1200 * NS_PER_MS;
        play(&config, &result);
        config.no_credit = true;
        play(&config, &without);
        print_message("%s: limits at %u NICs, then in the incast at %u; goodput %.3f of the link; "
                      "delay p50 %.2f ms, without limits %.2f ms\n",
                      patterns[i] == JOB_HALVES ? "one way" : "all to all", before.limited,
                      result.limited, goodput(&config, &result), (double)result.owd_ns_p50 / 1e6,
                      (double)without.owd_ns_p50 / 1e6);
        assert_int_equal(before.limited, 0);
        assert_true(result.limited == 1 && result.credit_harms == 0);
        assert_true(goodput(&config, &result) >= 0.9 * 1448 / 1514);
        assert_true((double)result.owd_ns_p50 <= 0.5 * (double)without.owd_ns_p50);
    }
}

/* Two send to a third, over one link: the one with low priority, alone, uses all of it. */
static void test_priority(void **state)
{
    struct job_world_config config = incast();
    struct job_world_result alone, beside, equal;

    (void)state;
    config.hosts = 2;
    config.low_every = 1;
    play(&config, &alone);
    config.hosts = 3;
    config.no_credit = true;
    config.low_every = 2;
    play(&config, &beside);
    config.low_every = 0;
    play(&config, &equal);
    const double low = (double)beside.low_bytes / (double)beside.chaos_bytes;
    print_message("low priority: alone %.3f of the link, beside another %.3f of %.3f (without "
                  "priorities %.3f)\n",
                  goodput(&config, &alone), low, goodput(&config, &beside),
                  goodput(&config, &equal));
    assert_true(alone.low_bytes > 0 && equal.low_bytes == 0);
    assert_true((double)alone.chaos_bytes >= 0.8 * (double)equal.chaos_bytes);
    assert_true(low > 0.005 && low < 0.2); /* the other is hardly affected, and it isn't starved */
    assert_true(goodput(&config, &beside) >= 0.95 * goodput(&config, &equal));
}

/* Two rings over the same trunk, at about the speeds of the lab's bench (bench/lab/priority.py). The important one computes
 * between its all-reduces. One trunk in each direction, so that no job has luckier ports. */
static struct job_world_config bursts(void)
{
    struct job_world_config config = incast();

    config.pattern = JOB_RING;
    config.spines = 1;
    config.host_bps = 75000000;
    config.trunk_bps = 80000000;
    config.queue_ns = 100 * NS_PER_MS; /* nothing is lost: retransmissions are not judged here */
    config.jobs = 2;
    config.low_every = 2;
    config.messages = UINT32_MAX / 2;
    config.size_max = 65536;
    config.depth = 8;
    config.chain = 4;
    config.burst = 24;
    config.rest_ns = 400 * NS_PER_MS;
    config.run_ns = 6 * NS_PER_S;
    config.warm_ns = NS_PER_S;
    return config;
}

/* The time of the important job's all-reduce: its ranks rest after each. */
static double burst_ns(const struct job_world_config *config, const struct job_world_result *result,
                       uint32_t ranks)
{
    const double bytes = (double)(result->chaos_bytes - result->low_bytes) / ranks;

    return (double)(config->run_ns - config->warm_ns) * config->burst * config->size_max / bytes -
           (double)config->rest_ns;
}

static void test_priority_beside_bursts(void **state)
{
    struct job_world_config config = bursts();
    struct job_world_result beside, equal, low, normal, high;

    (void)state;
    play(&config, &beside);
    if (SANITIZED) {
        return; /* the other four are for comparison */
    }
    config.low_every = 0;
    play(&config, &equal);
    config.jobs = 0;
    config.hosts = 4;
    play(&config, &high);
    config.burst = 0;
    play(&config, &normal);
    config.low_every = 1;
    play(&config, &low);
    config = bursts();
    const double alone = burst_ns(&config, &high, 4);
    const double slow = burst_ns(&config, &beside, 4) / alone;
    const double left =
        (double)normal.chaos_bytes - (double)(beside.chaos_bytes - beside.low_bytes);
    const double share = (double)beside.low_bytes / left;
    const double without = burst_ns(&config, &equal, 8) / alone;
    print_message(
        "beside a job of low priority an all-reduce takes %.3f of its %.0f ms alone "
        "(without priorities %.3f); that job has %.3f of what is left, alone %.3f of what "
        "a normal one has\n",
        slow, alone / 1e6, without, share, (double)low.chaos_bytes / (double)normal.chaos_bytes);
    assert_true(without >= 1.05 && without > slow + 0.05); /* else nothing is shown */
    /* One seed: far from the values of ten seeds (alone 0.80 to 0.99). The bench judges, with 1.15 and 0.8. */
    assert_true(slow <= 1.25);
    assert_true(share >= 0.6);
    assert_true((double)low.chaos_bytes >= 0.65 * (double)normal.chaos_bytes);
}

/* A ring on the lab's fabric while clocks are set and lose the fleet's time. Returns its rate, of that without. */
static double clocks_set(uint64_t seed, uint32_t low_every)
{
    struct job_world_config config = bursts();
    struct job_world_result alone, set;

    config.seed = seed;
    config.low_every = low_every;
    config.hosts = 4;
    config.jobs = config.burst = 0;
    config.nics = config.comms = config.standbys = 2;
    config.spines = 4;
    config.trunk_bps = 50000000;
    config.queue_ns = 32 * NS_PER_MS;
    config.poll_ns = 200 * NS_PER_US;
    config.run_ns = 3 * NS_PER_S;
    play(&config, &alone);
    config.fault_mask = 1u << JOB_FAULT_CLOCK;
    config.fault_gap_ns = 200 * NS_PER_MS;
    config.fault_ns = NS_PER_MS;
    play(&config, &set);
    const double rate = (double)set.chaos_bytes / (double)alone.chaos_bytes;
    print_message("%llu clocks set: %.3f of the rate without, %llu packets lost\n",
                  (unsigned long long)set.faults, rate, (unsigned long long)set.lost);
    assert_true(set.faults >= 10 && alone.lost == 0);
    assert_int_equal(set.lost, 0);
    return rate;
}

/* The times of reports' way back are then of no clock, and lanes that took them for a full way back filled every queue. A job of
 * low priority took such a time for a queue, and went aside. */
static void test_clocks_that_are_set(void **state)
{
    (void)state;
    assert_true(clocks_set(1, 0) >= 0.95);
    assert_true(clocks_set(3, 1) >= 0.9);
}

#define TRAINS 21

struct flight {
    struct job_train train;
    int64_t at; /* < 0: lost */
};

/* Sends all at once, in that order, through the fabric. Returns when the last one arrives. */
static int64_t fly(struct job_net *net, struct flight *flights, int count)
{
    int64_t last = 0;

    for (struct flight *next = flights; next != NULL;) {
        next->at = job_net_forward(net, next->at, &next->train);
        next = NULL;
        for (int i = 0; i < count; i++) {
            struct flight *f = &flights[i];
            if (f->at >= 0 && !f->train.there && (next == NULL || f->at < next->at)) {
                next = f;
            }
            last = f->train.there && f->at > last ? f->at : last;
        }
    }
    return last;
}

/* Ten of 0.8 ms each. */
static int send_ten(struct flight *flights, uint32_t from, uint32_t to)
{
    for (int i = 0; i < 10; i++) {
        flights[i] =
            (struct flight){.train = {.way = {.from = from, .to = to, .from_port = 1, .to_port = 2},
                                      .bytes = 94000}};
    }
    return 10;
}

/* One of four trunks, or of two between two hosts, falls to a tenth of its rate under a ring. */
static struct job_world_config brown_out(uint64_t seed, uint32_t hosts, uint32_t lanes)
{
    struct job_world_config config = incast();

    config.seed = seed;
    config.pattern = JOB_RING;
    config.hosts = hosts;
    config.spines = hosts > 2 ? 4 : 2;
    config.lanes = lanes;
    config.host_bps = 1500000000LL;
    config.delay_ns = NS_PER_US;
    config.messages = UINT32_MAX / 2;
    config.depth = config.chain = 8;
    config.checksum = true;
    config.warm_ns = 0;
    config.brown_ns = NS_PER_S;
    config.run_ns = 3 * NS_PER_S;
    return config;
}

/* Where a flow's lanes are when the trunk becomes slow, which isn't left to the seed; and the least share of the remaining rate
 * of all links that the jobs get. held: such a flow holds all others up if its lanes stay. */
struct draw {
    const char *what;
    uint32_t hosts, drawn, out, back, seeds;
    double least;
    bool held;
};

static double mean_rate(const struct draw *draw, bool no_repath)
{
    const uint32_t seeds = SANITIZED ? 1 : draw->seeds;
    double sum = 0;

    for (uint64_t seed = 1; seed <= seeds; seed++) {
        struct job_world_config config = brown_out(seed, draw->hosts, 4);
        struct job_world_result result;
        config.drawn = draw->drawn;
        config.spine_out = draw->out;
        config.spine_back = draw->back;
        config.no_repath = no_repath;
        play(&config, &result);
        sum += result.brown_rate;
    }
    return sum / seeds;
}

/* No message waits long for the slow lane, and a lane without another one to compare with leaves it, too. Single worlds differ by
 * a factor of two, so means are judged, far from the values of a flow that is held (0.09 to 0.18). */
#define DRAWS_MAX (SANITIZED ? 1 : SIZE_MAX)

static void test_brown_out(void **state)
{
    static const struct draw draws[] = {
        {"lanes by chance", 8, 0, 0, 0, 3, 0.65, false},
        {"a flow's four lanes on it", 8, 1, 0, 1, 3, 0.3, true},
        {"a flow's four lanes on a good one, which others fill", 8, 1, 1, 1, 2, 0.5, false},
        {"all that who accepted sends on it", 2, 2, 1, 0, 6, 0.2, true},
    };
    double alone = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(draws) / sizeof(draws[0]) && i < DRAWS_MAX; i++) {
        const double rate = mean_rate(&draws[i], false);
        const double held = draws[i].held ? mean_rate(&draws[i], true) : 0;
        print_message("a trunk at a tenth, %s: %.2f of what is left", draws[i].what, rate);
        print_message(draws[i].held ? " (without repath %.2f)\n" : "\n", held);
        assert_true(SANITIZED || rate >= draws[i].least);
        assert_true(!draws[i].held || rate >= 2 * held);
    }
    for (uint64_t seed = 1; seed <= 3 && seed <= DRAWS_MAX; seed++) {
        const struct job_world_config config = brown_out(seed, 8, 1);
        struct job_world_result result;
        play(&config, &result);
        alone += result.brown_share / 3;
    }
    print_message("one lane by itself has %.3f there\n", alone);
    assert_true(alone <=
                0.15); /* ten seeds: 0 to 0.19, 0.08 on average; an even share is a fourth */
}

/* No path over a NIC that carries a twentieth is better than another: other NICs stand in for it, in any fabric, and it gets its
 * traffic back when it is well. Two worlds of the bench (job_sim). */
static void test_slow_nic(void **state)
{
    const uint64_t first = SANITIZED ? 7 : 6,
                   worlds = DRAWS(2); /* the seventh is the quicker one */
    double settled = 0, before = 0, healed = 0;

    (void)state;
    for (uint64_t seed = first; seed < first + worlds; seed++) {
        struct job_world_config config;
        struct job_world_result result;
        job_world_slow(&config, seed);
        play(&config, &result);
        before += result.slow_before / (double)worlds;
        settled += result.slow_settled / (double)worlds;
        healed += result.slow_healed / (double)worlds;
    }
    print_message(
        "a slow NIC: %.2f of what all links carry before, %.2f of what is left, %.2f when "
        "it is well again\n",
        before, settled, healed);
    assert_true(SANITIZED || settled >= 0.4); /* there one world */
    assert_true(SANITIZED || healed >= 0.5);  /* the earlier draws of ports */
}

/* A link that hosts behind two NICs share carries packets in the order of their arrival, at no more than its rate. As many bytes
 * wait for a slow NIC as for a fast one. A train's head doesn't wait for its tail. */
static void test_links(void **state)
{
    const struct job_net_config config = {.hosts = 4,
                                          .nics = 1,
                                          .leaves = 2,
                                          .spines = 1,
                                          .host_bps = 1000000000LL,
                                          .trunk_bps = 1000000000LL};
    struct flight flights[TRAINS];
    struct job_net net;

    (void)state;
    assert_int_equal(job_net_init(&net, &config, 1), 0);
    int count = send_ten(flights, 0, 1);
    flights[count++] = (struct flight){
        .train = {.way = {.from = 2, .to = 3, .from_port = 1, .to_port = 2}, .bytes = 1000}};
    count += send_ten(&flights[count], 2, 3);
    assert_in_range(fly(&net, flights, count), 15500 * NS_PER_US, 17 * NS_PER_MS);
    assert_in_range(flights[10].at, 1, NS_PER_MS);
    assert_in_range(flights[9].at, 14 * NS_PER_MS, 16 * NS_PER_MS); /* in turns */
    job_net_done(&net);
    assert_int_equal(job_net_init(&net, &config, 1), 0);
    count = send_ten(flights, 0, 1);
    assert_in_range(fly(&net, flights, 1), 750 * NS_PER_US, 850 * NS_PER_US); /* not four times */
    job_net_done(&net);
    assert_int_equal(job_net_init(&net, &config, 1), 0);
    job_net_trunk(&net, 0, 0, false)->slow = 10;
    count = send_ten(flights, 0, 1);
    assert_in_range(fly(&net, flights, count), 78 * NS_PER_MS, 84 * NS_PER_MS);
    job_net_done(&net);
}

/* Of the twins over queue pairs, which run the same code. They run only in the build without a sanitizer. */
enum { LONG = 4 };

/* PART OF: the tests with number PART, 1 to OF, of each OF, so that a busy machine can run them one by one. Without arguments
 * all; NAME: one. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_brown_out),
        cmocka_unit_test(test_slow_nic),
        cmocka_unit_test(test_incast),
        cmocka_unit_test(test_no_incast),
        cmocka_unit_test(test_versions_mixed),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_exchange_then_incast),
        cmocka_unit_test(test_clocks_that_are_set),
        cmocka_unit_test(test_priority_beside_bursts),
        cmocka_unit_test(test_priority),
        OVER_PAIRS(test_incast),
        OVER_PAIRS(test_no_incast),
        OVER_PAIRS(test_versions_mixed),
        OVER_PAIRS(test_priority),
        OVER_PAIRS(test_slow_nic), /* LONG ones from here */
        OVER_PAIRS(test_exchange),
        OVER_PAIRS(test_exchange_then_incast),
        OVER_PAIRS(test_priority_beside_bursts),
    };
    const size_t part = argc == 3 ? strtoul(argv[1], NULL, 10) : 1;
    const size_t of = argc == 3 ? strtoul(argv[2], NULL, 10) : 1;
    const size_t all = ARRAY_COUNT(tests) - (SANITIZED ? LONG : 0);
    struct CMUnitTest own[ARRAY_COUNT(tests)] = {0};
    size_t count = 0;

    for (size_t i = part - 1; of > 0 && i < all; i += of) {
        own[count++] = tests[i];
    }
    if (argc == 2) {
        cmocka_set_test_filter(argv[1]);
    }
    /* the macro counts an array's elements; a part has fewer */
    return count == 0 ? 1 : _cmocka_run_group_tests("tests", own, count, NULL, NULL);
}
