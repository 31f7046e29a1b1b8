/* test_job_world.c: jobs over the real transport in a simulated network (sim/job_world.h): some seeds, and whether the checker is
 * sharp: it must notice a broken rule in ledger or sender.
 *
 * The planted bugs are between the transport and its ledger: the linker wraps these functions (test/meson.build). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/time.h"
#include "core/failover/ledger.h"
#include "core/failover/sender.h"
#include "sanitized.h"
#include "sim/job_world.h"

static enum { NONE, NO_SECOND_LOOK, DEAD_LANES_KEEP, UNVERIFIED, EVERY_LANE } planted;

/* After an error a world ends with open communicators, and a transport doesn't touch their memory: that is no leak of ours. */
__attribute__((weak)) void __lsan_disable(void);
__attribute__((weak)) void __lsan_enable(void);

static void leaks_count(bool do_they)
{
    if (do_they && __lsan_enable != NULL) {
        __lsan_enable();
    } else if (!do_they && __lsan_disable != NULL) {
        __lsan_disable();
    }
}

/* -- planted bugs ----------------------------------------------------------------------------- */

enum ledger_verdict __real_ledger_target(struct ledger *l, uint32_t lane, uint32_t epoch,
                                         struct ledger_target *ret_target);
enum ledger_verdict __wrap_ledger_target(struct ledger *l, uint32_t lane, uint32_t epoch,
                                         struct ledger_target *ret_target);
enum ledger_verdict __real_ledger_end(struct ledger *l, struct mono now, uint32_t lane,
                                      uint32_t epoch, bool crc_fits, struct ledger_copy *ret_copy);
enum ledger_verdict __wrap_ledger_end(struct ledger *l, struct mono now, uint32_t lane,
                                      uint32_t epoch, bool crc_fits, struct ledger_copy *ret_copy);
void __real_sender_on_lane_down(struct sender *s, uint32_t lane, uint32_t epoch);
void __wrap_sender_on_lane_down(struct sender *s, uint32_t lane, uint32_t epoch);
bool __real_ledger_next_report(struct ledger *l, struct mono now, struct lane_report *ret_report,
                               int *ret_lane);
bool __wrap_ledger_next_report(struct ledger *l, struct mono now, struct lane_report *ret_report,
                               int *ret_lane);

/* Half a chunk goes to where its first half went, whatever happened to the message meanwhile: there is no fence. */
enum ledger_verdict __wrap_ledger_target(struct ledger *l, uint32_t lane, uint32_t epoch,
                                         struct ledger_target *ret_target)
{
    static struct {
        const struct ledger *ledger;
        struct ledger_target target;
    } seen[64], *last;
    const enum ledger_verdict verdict = __real_ledger_target(l, lane, epoch, ret_target);

    last = &seen[((uintptr_t)l / 64 + lane) % 64];
    if (planted != NO_SECOND_LOOK || verdict != LEDGER_OK) {
        return verdict;
    }
    if (ret_target->place == LEDGER_BUFFER) {
        last->ledger = l;
        last->target = *ret_target;
    } else if (ret_target->place == LEDGER_BIN && last->ledger == l &&
               last->target.left > ret_target->left) {
        ret_target->place = LEDGER_BUFFER;
        ret_target->to = last->target.to + (last->target.left - ret_target->left);
    }
    return verdict;
}

/* Everything that came counts. */
enum ledger_verdict __wrap_ledger_end(struct ledger *l, struct mono now, uint32_t lane,
                                      uint32_t epoch, bool crc_fits, struct ledger_copy *ret_copy)
{
    return __real_ledger_end(l, now, lane, epoch, crc_fits || planted == UNVERIFIED, ret_copy);
}

/* The chunks of a dead lane are never sent again. */
void __wrap_sender_on_lane_down(struct sender *s, uint32_t lane, uint32_t epoch)
{
    if (planted != DEAD_LANES_KEEP) {
        __real_sender_on_lane_down(s, lane, epoch);
    }
}

/* No bug: all reports go over every lane, as final reports about lanes do. */
bool __wrap_ledger_next_report(struct ledger *l, struct mono now, struct lane_report *ret_report,
                               int *ret_lane)
{
    const bool any = __real_ledger_next_report(l, now, ret_report, ret_lane);

    *ret_lane = any && planted == EVERY_LANE ? LEDGER_EVERY_LANE : *ret_lane;
    return any;
}

/* -- worlds ----------------------------------------------------------------------------------- */

static void play(uint64_t seed, int64_t run_ns, struct job_world_result *ret)
{
    struct job_world_config config;

    job_world_chance(&config, seed);
    config.run_ns = run_ns;
    config.last_ns = config.last != 0 ? run_ns / 2 : 0;
    job_world_run(&config, ret);
}

static void test_seeds(void **state)
{
    struct job_world_result one, sum = {0};

    (void)state;
    planted = NONE;
    for (uint64_t seed = 1; seed <= DRAWS(10); seed++) {
        play(seed, 300 * NS_PER_MS, &one);
        if (one.wrong != NULL) {
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, one.wrong, one.detail);
        }
        sum.faults += one.faults;
        sum.messages += one.messages;
        sum.failovers += one.failovers;
        sum.comms += one.comms;
        sum.failed += one.failed;
    }
    /* The worlds were hard enough. */
    assert_true(SANITIZED ||
                (sum.faults > 300 && sum.messages > 500 && sum.failovers > 50 && sum.comms > 50));
}

/* Fifteen seconds' worth over a slow link: nothing fails, and nothing stands still for the patience. */
static void test_slow_is_not_stuck(void **state)
{
    const struct job_world_config config = {.seed = 1,
                                            .hosts = 2,
                                            .nics = 1,
                                            .leaves = 2,
                                            .spines = 1,
                                            .host_bps = 1000000,
                                            .trunk_bps = 1000000,
                                            .delay_ns = 5 * NS_PER_US,
                                            .queue_ns = NS_PER_S,
                                            .pattern = JOB_INCAST,
                                            .comms = 1,
                                            .lanes = 1,
                                            .patience_ns = 2 * NS_PER_S,
                                            .messages = 100,
                                            .size_max = 16384,
                                            .whole = true,
                                            .depth = 2,
                                            .poll_ns = 10 * NS_PER_MS,
                                            .run_ns = 100 * NS_PER_MS,
                                            .rto_min_ns = 200 * NS_PER_MS};
    struct job_world_result one;

    (void)state;
    planted = NONE;
    job_world_run(&config, &one);
    if (one.wrong != NULL) {
        fail_msg("%s %s", one.wrong, one.detail);
    }
    assert_true(one.messages == 100 && one.virtual_ns > 4 * config.patience_ns);
}

/* A dead lane's chunks wait for the receiver's final report, which may be lost with whatever carries it. */
static void test_fenced_sets(void **state)
{
    struct job_world_result one;
    uint64_t failovers = 0, resent = 0;

    (void)state;
    planted = NONE;
    for (uint64_t seed = 1; seed <= DRAWS(10); seed++) {
        struct job_world_config config;
        job_world_chance(&config, seed);
        config.fenced = true;
        config.old_every = 0;
        config.run_ns = 300 * NS_PER_MS;
        config.last_ns = config.last != 0 ? config.run_ns / 2 : 0;
        job_world_run(&config, &one);
        if (one.wrong != NULL) {
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, one.wrong, one.detail);
        }
        failovers += one.failovers;
        resent += one.resent;
    }
    assert_true(SANITIZED || (failovers > 20 && resent > 20));
}

/* No NIC was without a cell, and no lane ended because of a message on it. */
static void cells_suffice(uint64_t seed, const struct job_world_result *one)
{
    if (one->rnrs != 0 || one->garbled != 0) {
        fail_msg("seed %llu: %llu times without a cell, %llu lanes garbled",
                 (unsigned long long)seed, (unsigned long long)one->rnrs,
                 (unsigned long long)one->garbled);
    }
}

/* Lanes change to queue pairs and back to TCP. Some hosts have none, some are of an older version. Devices go and come, queue
 * pairs fail by themselves, neighbours take a second to be resolved. Everything that holds in a world without them must hold.
 * No NIC is ever without a cell, and no lane ends because of a message on it. And cells were written after their queue pair's
 * end. */
static void test_queue_pairs(void **state)
{
    struct job_world_result one, sum = {0};

    (void)state;
    planted = NONE;
    for (uint64_t seed = 1; seed <= DRAWS(20); seed++) {
        struct job_world_config config;
        job_world_chance(&config, seed);
        config.rdma = true;
        config.no_rdma_every = seed % 8 == 1 ? 2 : 0;
        config.fault_mask &= ~(1u << JOB_FAULT_DAMAGE);
        if (seed % 4 == 0) { /* a receiver that isn't served for a while: its cells are full */
            config.size_max = 1u << 20;
            config.whole = config.starved = true;
            config.messages = 1000;
            config.gap_ns = 0;
        }
        config.run_ns = 300 * NS_PER_MS;
        config.last_ns = config.last != 0 ? config.run_ns / 2 : 0;
        job_world_run(&config, &one);
        if (one.wrong != NULL) {
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, one.wrong, one.detail);
        }
        cells_suffice(seed, &one);
        sum.failovers += one.failovers;
        sum.cells += one.cells;
        sum.late_writes += one.late_writes;
        sum.by_kind[JOB_FAULT_PAIR] += one.by_kind[JOB_FAULT_PAIR];
        sum.by_kind[JOB_FAULT_DEVICE] += one.by_kind[JOB_FAULT_DEVICE];
    }
    assert_true(SANITIZED ||
                (sum.failovers > 50 && sum.cells > 20000 && sum.late_writes > 20 &&
                 sum.by_kind[JOB_FAULT_PAIR] > 20 && sum.by_kind[JOB_FAULT_DEVICE] > 20));
}

/* Processes that send whole messages over queue pairs, to as many others as they have cells for. */
static struct job_world_config whole_messages(uint64_t seed)
{
    return (struct job_world_config){.seed = seed,
                                     .nics = 1,
                                     .leaves = 2,
                                     .spines = 2,
                                     .host_bps = 10000000000LL,
                                     .delay_ns = 5 * NS_PER_US,
                                     .patience_ns = 20 * NS_PER_S,
                                     .whole = true,
                                     .poll_ns = 100 * NS_PER_US,
                                     .rdma = true,
                                     .rdma_lasts = true,
                                     .no_credit = true,
                                     .checksum = true,
                                     .rto_min_ns = 200 * NS_PER_MS};
}

/* Receivers that aren't served for long, and senders that have enough for them: a lane's cells are used up. Yet no NIC is without
 * one, and everything arrives. */
static void test_queue_pairs_full(void **state)
{
    struct job_world_result one, sum = {0};

    (void)state;
    planted = NONE;
    for (uint64_t seed = 1; seed <= (SANITIZED ? 2 : 6); seed++) {
        struct job_world_config config = whole_messages(seed);

        config.hosts = 2;
        config.trunk_bps = 10000000000LL;
        config.pattern = JOB_PAIRS;
        config.comms = 2;
        config.lanes = 1;
        config.messages = 10;
        config.size_max = 1u << 22;
        config.depth = 8;
        config.fault_gap_ns = 8 * NS_PER_MS;
        config.fault_ns = 2 * NS_PER_MS;
        config.fault_mask = 1u << JOB_FAULT_PAUSE;
        config.run_ns = 400 * NS_PER_MS;
        job_world_run(&config, &one);
        if (one.wrong != NULL) {
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, one.wrong, one.detail);
        }
        cells_suffice(seed, &one);
        sum.full += one.full;
        sum.cells += one.cells;
    }
    assert_true(sum.full > 0 && (SANITIZED || (sum.full > 10 && sum.cells > 100000)));
}

/* One process has so many lanes that each has fewer cells than its peers' lanes: its own cells stop it, not its peers'. */
static void test_queue_pairs_of_many(void **state)
{
    struct job_world_config config = whole_messages(1);
    struct job_world_result one;

    config.hosts = 20;
    config.trunk_bps = 100000000000LL;
    config.pattern = JOB_STAR;
    config.comms = 1;
    config.lanes = 4;
    config.messages = 20;
    config.size_max = 1u << 20;
    config.depth = 4;
    config.run_ns = 60 * NS_PER_MS;
    (void)state;
    planted = NONE;
    job_world_run(&config, &one);
    if (one.wrong != NULL) {
        fail_msg("%s %s", one.wrong, one.detail);
    }
    cells_suffice(config.seed, &one);
    assert_true(one.cells > 20000);
}

/* Lanes over queue pairs write directly into the receives. Whatever breaks, and however late a NIC continues: a completed receive
 * doesn't change. */
static void test_direct_lanes(void **state)
{
    struct job_world_result one, sum = {0};

    (void)state;
    planted = NONE;
    for (uint64_t seed = 1; seed <= (SANITIZED ? 5 : 16); seed++) {
        struct job_world_config config;
        job_world_chance(&config, seed);
        config.rdma = config.direct = true;
        config.old_every = seed % 8 == 5 ? 2 : 0;
        config.fault_mask &= ~(1u << JOB_FAULT_DAMAGE);
        config.size_max = 1u << (14 + seed % 4);
        config.messages = 1000;
        config.gap_ns = 300 * NS_PER_US;
        config.run_ns = 200 * NS_PER_MS;
        config.last_ns = config.last != 0 ? config.run_ns / 2 : 0;
        leaks_count(false);
        job_world_run(&config, &one);
        leaks_count(true);
        if (one.wrong != NULL) {
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, one.wrong, one.detail);
        }
        cells_suffice(seed, &one);
        sum.writes += one.writes;
        sum.late_writes += one.late_writes;
        sum.failovers += one.failovers;
        sum.dead_keys += one.dead_keys;
        sum.renewed_keys += one.renewed_keys;
        sum.renewed_writes += one.renewed_writes;
    }
    print_message(
        "writes %llu, late %llu, failovers %llu, dead keys %llu, renewed %llu, by them %llu\n",
        (unsigned long long)sum.writes, (unsigned long long)sum.late_writes,
        (unsigned long long)sum.failovers, (unsigned long long)sum.dead_keys,
        (unsigned long long)sum.renewed_keys, (unsigned long long)sum.renewed_writes);
    if (!SANITIZED) {
        assert_true(sum.dead_keys > 20); /* memory survives a device, its keys don't */
        assert_true(sum.renewed_keys > 20 && sum.renewed_writes > 20); /* it is back by others */
        assert_true(sum.writes > 5000 && sum.late_writes > 10 && sum.failovers > 100);
    }
}

/* The same, densely: two lanes, one of them sometimes over a slow way, and queue pairs that break with much on its way to them.
 * Here writes that a fence keeps out would land in completed receives. */
static void test_direct_lanes_dense(void **state)
{
    /* lane_copy_mutants.py: more of them, or only one */
    const char *more = getenv("FOLIOT_WORLDS"), *one_alone = getenv("FOLIOT_WORLD");
    const uint64_t first = one_alone != NULL ? strtoull(one_alone, NULL, 10) : 200;
    const uint64_t worlds = one_alone != NULL ? 1
                            : more != NULL    ? strtoull(more, NULL, 10)
                            : SANITIZED       ? 20
                                              : 60;
    struct job_world_result one, sum = {0};

    (void)state;
    planted = NONE;
    for (uint64_t seed = first; seed < first + worlds; seed++) {
        struct job_world_config config;
        job_world_chance(&config, seed);
        config.rdma = config.direct = true;
        config.old_every = config.no_rdma_every = 0;
        config.hosts = config.lanes = config.spines = 2;
        config.nics = 1;
        config.delay_ns = 2 * NS_PER_US;
        config.standbys = 0;
        config.run_ns = 200 * NS_PER_MS;
        config.patience_ns = 20 * NS_PER_S;
        config.last = 0;
        config.last_ns = 0;
        config.starved = false;
        config.size_max = 1u << 16;
        config.whole = true;
        config.gap_ns = 100 * NS_PER_US;
        config.messages = 50;
        config.depth = 2;
        config.comms = 2;
        config.poll_ns = 100 * NS_PER_US;
        config.fault_gap_ns = 8 * NS_PER_MS;
        config.late_dma_ns = 15 * NS_PER_MS;
        config.keys_last = true; /* so that writes go on */
        config.fault_ns = 20 * NS_PER_MS;
        config.fault_mask = 1u << JOB_FAULT_DELAY | (seed % 4 == 1 ? 1u << JOB_FAULT_ABORT : 0);
        leaks_count(false);
        job_world_run(&config, &one);
        leaks_count(true);
        if (one.wrong != NULL) {
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, one.wrong, one.detail);
        }
        sum.writes += one.writes;
        sum.late_writes += one.late_writes;
    }
    assert_true(worlds < 60 || (sum.writes > 3000 && sum.late_writes > 100));
}

/* One of two lanes fails, and the job goes on over the other one: soon, if nothing else stands still. A lane that only a pause of
 * a machine held up isn't left. And the end of a lane that moved away isn't reported for ever. */
static void test_gaps(void **state)
{
    struct job_world_result one;
    uint32_t left = 0, failed_over = 0, faults = 0;

    (void)state;
    planted = NONE;
    for (uint64_t seed = 1; seed <= DRAWS(6); seed++) {
        struct job_world_config config;
        job_world_gap(&config, seed, true);
        config.stall_gap_ns = seed % 2 == 0 ? config.stall_gap_ns : 0;
        job_world_run(&config, &one);
        if (one.wrong != NULL) {
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, one.wrong, one.detail);
        }
        for (uint32_t i = 0; i < one.gap_count; i++, faults++) {
            const struct job_gap *gap = &one.gaps[i];
            left += gap->left;
            failed_over += gap->failed_over;
            /* of 240 faults p50 is 85 ms, p99 270 to 300 (build/bench/job_gap) */
            if (gap->fault_ns > (config.stall_gap_ns == 0 ? 300 : 500) * NS_PER_MS) {
                fail_msg("seed %llu, fault %u: %lld ms", (unsigned long long)seed, i,
                         (long long)(gap->fault_ns / NS_PER_MS));
            }
        }
    }
    assert_true(SANITIZED || (faults >= 50 && failed_over * 10 > faults * 7 && left <= 1));
}

/* All rails of a host are gone: the job goes on over connections between front ends, without an error, and returns to queue pairs
 * that write. 400 ms of silence end the last lane on a rail (docs/rdma.md). TCP's first retransmission takes 200 ms. */
static void test_rails_gone(void **state)
{
    struct job_world_result one;

    (void)state;
    planted = NONE;
    for (uint64_t seed = 1; seed <= DRAWS(4); seed++) {
        struct job_world_config config;
        job_world_rails(&config, seed);
        job_world_run(&config, &one);
        if (one.wrong != NULL) {
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, one.wrong, one.detail);
        }
        assert_int_equal(one.failed, 0);
        assert_int_equal(one.gap_count, config.gap_faults);
        for (uint32_t i = 0; i < one.gap_count; i++) {
            const struct job_gap *gap = &one.gaps[i];
            if (!gap->failed_over || gap->fault_ns > 1000 * NS_PER_MS) {
                fail_msg("seed %llu, fault %u: %lld ms, %s", (unsigned long long)seed, i,
                         (long long)(gap->fault_ns / NS_PER_MS),
                         gap->failed_over ? "over front ends" : "not over front ends");
            }
        }
    }
}

/* The place of a message is sent with reports that go over every lane, too. */
static void test_places_told(void **state)
{
    struct job_world_result one;
    struct job_world_config config;

    (void)state;
    planted = EVERY_LANE;
    job_world_gap(&config, 1, true);
    config.gap_faults = 2;
    job_world_run(&config, &one);
    planted = NONE;
    if (one.wrong != NULL) {
        fail_msg("%s %s", one.wrong, one.detail);
    }
    assert_true(one.messages > 1000);
}

/* Closed senders that were stopped, receivers that come after the patience: everything that was reported as done arrives. Also if
 * a message beyond the bounce slots waits for its POST. */
static void test_late_receivers(void **state)
{
    struct job_world_result one;
    uint64_t messages = 0, cells = 0;

    (void)state;
    planted = NONE;
    for (uint64_t seed = 1; seed <= 140; seed += SANITIZED ? 4 : 1) {
        struct job_world_config config;
        job_world_late(&config, seed);
        if (seed > 100) {
            config.rdma = config.direct = true;
            config.old_every = 0;
            config.comms = 4;
            config.messages = 32;
        }
        job_world_run(&config, &one);
        if (one.wrong != NULL) {
            fail_msg("seed %llu: %s %s", (unsigned long long)seed, one.wrong, one.detail);
        }
        messages += one.messages;
        cells += one.cells;
    }
    assert_true(SANITIZED || (messages > 3000 && cells > 3000));
}

static void test_one_seed_one_trace(void **state)
{
    struct job_world_result a, b, other;

    (void)state;
    planted = NONE;
    play(1, 200 * NS_PER_MS, &a);
    play(1, 200 * NS_PER_MS, &b);
    play(2, 200 * NS_PER_MS, &other);
    assert_true(a.trace == b.trace && a.packets == b.packets && a.messages == b.messages);
    assert_true(a.trace != other.trace);
}

/* A broken rule shows in at least one of some dense worlds. */
static void is_noticed(void **state)
{
    struct job_world_result one = {0}, healthy;
    struct job_world_config config;
    uint64_t seed = 0;

    planted = (unsigned)*(const int *)*state;
    for (; one.wrong == NULL && seed < 40; seed++) {
        job_world_chance(&config, seed);
        config.nics = config.lanes = 2;
        config.standbys = 1;
        config.run_ns = 300 * NS_PER_MS;
        config.patience_ns = 2 * NS_PER_S;
        config.last = 0;
        config.last_ns = 0;
        config.starved = false;
        config.size_max = 1u << 18;
        config.gap_ns = 300 * NS_PER_US;
        config.messages = 1000;
        config.poll_ns = 200 * NS_PER_US;
        config.fault_gap_ns = 2 * NS_PER_MS;
        config.fault_ns = 20 * NS_PER_MS;
        config.fault_mask = planted == UNVERIFIED       ? 1u << JOB_FAULT_DAMAGE
                            : planted == NO_SECOND_LOOK ? 1u << JOB_FAULT_SLOW
                                                        : 1u << JOB_FAULT_RESET;
        leaks_count(false);
        job_world_run(&config, &one);
        leaks_count(true);
    }
    planted = NONE;
    job_world_run(&config, &healthy);
    assert_null(healthy.wrong);
    if (one.wrong == NULL) {
        fail_msg("not noticed in %llu worlds", (unsigned long long)seed);
    }
    print_message("world %llu: %s\n", (unsigned long long)seed - 1, one.wrong);
}

/* With a pattern only those tests run (lane_copy_mutants.py). */
int main(int argc, char **argv)
{
    static int bugs[] = {NO_SECOND_LOOK, DEAD_LANES_KEEP, UNVERIFIED};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeds),
        cmocka_unit_test(test_slow_is_not_stuck),
        cmocka_unit_test(test_fenced_sets),
        cmocka_unit_test(test_queue_pairs),
        cmocka_unit_test(test_queue_pairs_full),
        cmocka_unit_test(test_queue_pairs_of_many),
        cmocka_unit_test(test_direct_lanes),
        cmocka_unit_test(test_direct_lanes_dense),
        cmocka_unit_test(test_gaps),
        cmocka_unit_test(test_rails_gone),
        cmocka_unit_test(test_places_told),
        cmocka_unit_test(test_late_receivers),
        cmocka_unit_test(test_one_seed_one_trace),
        cmocka_unit_test_prestate(is_noticed, &bugs[0]),
        cmocka_unit_test_prestate(is_noticed, &bugs[1]),
        cmocka_unit_test_prestate(is_noticed, &bugs[2]),
    };

    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
