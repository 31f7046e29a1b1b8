/* test_rules_agent.c: rules about an agent's reports, and about tests that somebody ran: each verdict on both sides of its
 * limit. */
#include "rule_kit.h"

static void test_agent_and_its_clock(void **state)
{
#define CLOCK "clock.status=SYNCED|clock.stamps="
    static const struct rule_case cases[] = {
        {UNKNOWN, "node.agent", "", "agent=running|agent.version=1.2", "1.2", COMPARED},
        {FAIL, "node.agent", "", "agent=silent|agent.version=1.2", "it does not answer"},
        {PASS, "cfg.time.bound", "", CLOCK "hardware|clock.bound=1000", "1000 ns, hardware stamps"},
        {FAIL, "cfg.time.bound", "", CLOCK "hardware|clock.bound=1001",
         .expected = "at most 1000 ns"},
        {PASS, "cfg.time.bound", "", CLOCK "software|clock.bound=20000"},
        {FAIL, "cfg.time.bound", "", CLOCK "software|clock.bound=20001",
         .expected = "at most 20000 ns"},
        {PASS, "cfg.time.bound", "", CLOCK "hardware|clock.bound=0"},
        {UNKNOWN, "cfg.time.bound", "", CLOCK "hardware|clock.bound=-1", .why = "clock"},
        {UNKNOWN, "cfg.time.bound", "", "clock.status=HOLDOVER|clock.stamps=hardware|clock.bound=9",
         .why = "clock"},
        {PASS, "cfg.time.utc", "", "clock.utc=50000", "50.000 ms from fleet time"},
        {WARN, "cfg.time.utc", "", "clock.utc=50001", .expected = "at most 50 ms"},
        {WARN, "cfg.time.utc", "", "clock.utc=-50001", "-50.001 ms from fleet time", ""},
        {WARN, "cfg.time.utc", "", "clock.utc=1000000"},
        {FAIL, "cfg.time.utc", "", "clock.utc=-1000001", .expected = "at most 1000 ms"},
        {FAIL, "cfg.time.utc", "", "clock.utc=-37000000",
         .why = "37 s: one of both is atomic time"},
        {UNKNOWN, "cfg.time.utc", "", "clock.utc=unknown", .why = "clock"},
        {UNKNOWN, "cfg.time.freq", "", "clock.rate=50000", "50000", COMPARED},
        {UNKNOWN, "cfg.time.freq", "", "clock.rate=-50000", "-50000", COMPARED},
        {FAIL, "cfg.time.freq", "", "clock.rate=50001", "50.001 ppm", .expected = "at most 50 ppm"},
        {FAIL, "cfg.time.freq", "", "clock.rate=-50001", "-50.001 ppm"},
        {UNKNOWN, "cfg.time.freq", "", "clock.rate=unknown", .why = "clock"},
    };
    (void)state;
    RULES_TRY(cases);
}

#define EDGE "eth1 p eth1"
#define PATHS(kind, hops, paths, alive, dead)                                                      \
    "edge@" EDGE "=" kind ", hops " hops ", paths " paths ", alive " alive ", dead " dead          \
    ", sent 200000, lost 0"
#define TIMED(hops, delays)                                                                        \
    "edge@" EDGE "=rail, hops " hops ", paths 4, alive 4, dead 0 out 0 in, sent 200000, lost 0, "  \
    "least " delays
#define LOST(lost, sent)                                                                           \
    "edge@" EDGE "=rail, hops 3, paths 4, alive 4, dead 0 out 0 in, sent " sent ", lost " lost

static void test_paths_to_a_neighbour(void **state)
{
    static const struct rule_case cases[] = {
        {PASS, "be.conn.matrix", EDGE, PATHS("rail", "3", "4", "4", "0 out 0 in"), "4 paths"},
        {PASS, "be.conn.matrix", EDGE, PATHS("rail", "3", "4", "1", "3 out 3 in")},
        {OF_PAIR, "be.conn.matrix", EDGE, PATHS("rail", "3", "4", "0", "4 out 0 in"),
         "nothing arrives there"},
        {OF_PAIR, "be.conn.matrix", EDGE, PATHS("rail", "3", "4", "0", "1 out 4 in"),
         "nothing arrives from there"},
        {OF_PAIR, "be.conn.matrix", EDGE, PATHS("rail", "3", "4", "0", "4 out 4 in"),
         "nothing arrives, either way"},
        {UNKNOWN, "be.conn.matrix", EDGE, PATHS("rail", "3", "4", "0", "0 out 0 in"),
         .why = "not_run"},
        {UNKNOWN, "be.conn.matrix", EDGE, PATHS("rail", "3", "0", "0", "0 out 0 in"),
         .why = "not_run"},
        {SKIP, "be.conn.matrix", EDGE, PATHS("cross", "3", "4", "4", "0 out 0 in"),
         .why = "be.conn.cross"},
        {SKIP, "be.conn.cross", EDGE, PATHS("rail", "3", "4", "4", "0 out 0 in"),
         .why = "be.conn.matrix"},
        {PASS, "be.conn.cross", EDGE, PATHS("cross", "3", "4", "4", "0 out 0 in")},
        {UNKNOWN, "be.conn.matrix", EDGE, "edge@" EDGE "=strange", .why = "no_source"},
        {PASS, "be.conn.paths", EDGE, PATHS("rail", "3", "4", "4", "0 out 0 in"),
         "0 of 4 paths dead"},
        {OF_PAIR, "be.conn.paths", EDGE, PATHS("rail", "3", "4", "3", "1 out 0 in"),
         "1 of 4 paths dead"},
        {OF_PAIR, "be.conn.paths", EDGE, PATHS("rail", "3", "4", "1", "1 out 3 in"),
         "3 of 4 paths dead"},
        {OF_PAIR, "be.conn.paths", EDGE, PATHS("rail", "3", "4", "1", "3 out 1 in"),
         "3 of 4 paths dead"},
        {SKIP, "be.conn.paths", EDGE, PATHS("rail", "3", "4", "0", "4 out 0 in"),
         .why = "nothing arrives on any path"},
        {SKIP, "be.conn.paths", EDGE, PATHS("rail", "3", "4", "0", "0 out 4 in"),
         .why = "nothing arrives on any path"},
        {UNKNOWN, "be.conn.paths", EDGE, PATHS("rail", "3", "0", "0", "0 out 0 in"),
         .why = "not_run"},
        {UNKNOWN, "be.topo.path_count", EDGE, PATHS("rail", "-1", "4", "4", "0 out 0 in"),
         .why = "not_run"},
        {UNKNOWN, "be.topo.path_count", EDGE, PATHS("rail", "0", "4", "4", "0 out 0 in"), "4 paths",
         COMPARED},
        /* one of twenty, three of twenty */
        {PASS, "be.conn.mtu", EDGE, LOST("0", "9") "|edge.full@" EDGE "=lost 0 of 8",
         "0 of 8 lost"},
        {PASS, "be.conn.mtu", EDGE, LOST("0", "9") "|edge.full@" EDGE "=lost 1 of 20"},
        {WARN, "be.conn.mtu", EDGE, LOST("0", "9") "|edge.full@" EDGE "=lost 1 of 19"},
        {WARN, "be.conn.mtu", EDGE, LOST("0", "9") "|edge.full@" EDGE "=lost 3 of 20"},
        {OF_PAIR, "be.conn.mtu", EDGE, LOST("0", "9") "|edge.full@" EDGE "=lost 4 of 20",
         "4 of 20 lost"},
        {OF_PAIR, "be.conn.mtu", EDGE, LOST("0", "9") "|edge.full@" EDGE "=lost 8 of 8"},
        {UNKNOWN, "be.conn.mtu", EDGE, LOST("0", "9") "|edge.full@" EDGE "=lost 7 of 7",
         .why = "not_run"},
        {UNKNOWN, "be.conn.mtu", EDGE, LOST("0", "9") "|edge.full@" EDGE "=lost 0 of 0",
         .why = "not_run"},
        {UNKNOWN, "be.conn.mtu", EDGE, LOST("0", "9") "|edge.full@" EDGE "=lost 9 of 8",
         .why = "old_agent"},
        {UNKNOWN, "be.conn.mtu", EDGE, LOST("0", "9") "|edge.full@" EDGE "=lost -1 of 8",
         .why = "old_agent"},
        /* one of a hundred thousand, ten of them */
        {PASS, "be.conn.loss", EDGE, LOST("1", "100000"), "1 of 100000"},
        {WARN, "be.conn.loss", EDGE, LOST("2", "100000"), .expected = "at most 1.0e-05"},
        {WARN, "be.conn.loss", EDGE, LOST("10", "100000")},
        {OF_PAIR, "be.conn.loss", EDGE, LOST("11", "100000"), .expected = "at most 1.0e-04"},
        {UNKNOWN, "be.conn.loss", EDGE, LOST("11", "99999"), .why = "not_run"},
        {UNKNOWN, "be.conn.loss", EDGE, LOST("-1", "100000"), .why = "not_run"},
        {PASS, "be.conn.loss", EDGE, LOST("0", "100000")},
    };
    (void)state;
    RULES_TRY(cases);
}

static void test_delays_of_a_neighbour(void **state)
{
    static const struct rule_case cases[] = {
        /* half a microsecond, and three bounds */
        {PASS, "be.lat.asym", EDGE, TIMED("3", "2650 out 2000 in, late 9, bound 50"),
         "2650 ns out, 2000 ns in", .expected = "at most 650 ns apart"},
        {OF_PAIR, "be.lat.asym", EDGE, TIMED("3", "2651 out 2000 in, late 9, bound 50")},
        {PASS, "be.lat.asym", EDGE, TIMED("3", "2000 out 2650 in, late 9, bound 50")},
        {OF_PAIR, "be.lat.asym", EDGE, TIMED("3", "2000 out 2651 in, late 9, bound 50")},
        {PASS, "be.lat.asym", EDGE, TIMED("3", "2500 out 2000 in, late 9, bound 0")},
        {UNKNOWN, "be.lat.asym", EDGE, TIMED("3", "2651 out 2000 in, late 9, bound -1"),
         .why = "clock"},
        {UNKNOWN, "be.lat.asym", EDGE, LOST("0", "9"), .why = "clock"},
        {PASS, "be.lat.jitter", EDGE, TIMED("3", "1 out 1 in, late 20000, bound 0"), "20.0 us",
         .expected = "at most 20 us"},
        {OF_PAIR, "be.lat.jitter", EDGE, TIMED("3", "1 out 1 in, late 20001, bound 0")},
        {UNKNOWN, "be.lat.base", EDGE, TIMED("3", "1001 out 1002 in, late 1, bound 0"), "1001 ns",
         COMPARED},
        {UNKNOWN, "be.lat.base", EDGE, TIMED("3", "1002 out 1001 in, late 1, bound 0"), "1001 ns",
         COMPARED},
        {UNKNOWN, "be.lat.base", EDGE, TIMED("-1", "1002 out 1001 in, late 1, bound 0"), "",
         "not_run"},
        {UNKNOWN, "be.lat.base", EDGE, TIMED("0", "1002 out 1001 in, late 1, bound 0"), "1001 ns",
         COMPARED},
        /* messages compared with probes of the same way; else with those of the interface's longest way */
        {UNKNOWN, "be.lat.inband", EDGE,
         "lane@" EDGE "=3000|" TIMED("3", "9000 out 2000 in, late 1, bound 0"),
         "1.5 times the probes' delay", COMPARED},
        {SKIP, "be.lat.inband", EDGE,
         "lane@" EDGE "=3000|" TIMED("3", "9000 out 0 in, late 1, bound 0"),
         .why = "within the clocks' error"},
        {UNKNOWN, "be.lat.inband", EDGE,
         "lane@" EDGE "=3000|" TIMED("3", "9000 out 1 in, late 1, bound -1"), "", "clock"},
        {UNKNOWN, "be.lat.inband", "eth1 x eth1",
         "lane@eth1 x eth1=3000|edge@eth10 a eth1=rail, hops 3, paths 4, alive 4, dead 0 out 0 in, "
         "sent 9, lost 0, least 1 out "
         "9000 in, late 1, bound 0|edge@eth1 b eth1=rail, hops 3, paths 4, alive 4, dead 0 out 0 "
         "in, sent 9, lost 0, least 1 "
         "out 1000 in, late 1, bound 0|" TIMED("3", "1 out 1500 in, late 1, bound 0"),
         "2.0 times the probes' delay", COMPARED},
        {UNKNOWN, "be.lat.inband", "eth1 x eth1",
         "lane@eth1 x eth1=3000|edge@eth1 b eth1=rail, hops 3, paths 4, alive 4, dead 0 out 0 in, "
         "sent 9, lost 0, least 1 out "
         "1800 in, late 1, bound -1|edge@eth1 z eth1=rail, hops 3, paths 4, alive 4, dead 0 out 0 "
         "in, sent 9, lost 0, least 1 "
         "out 1000 in, late 1, bound 0|" TIMED("3", "1 out 1500 in, late 1, bound 0"),
         "2.0 times the probes' delay", COMPARED},
    };
    (void)state;
    RULES_TRY(cases);
}

/* A spare host must be as near as the site asks, within the clocks' bounds. */
static void test_spares(void **state)
{
#define NEAR "be.topo.spare", EDGE
    static const struct rule_case cases[] = {
        {PASS, NEAR, TIMED("3", "12000 out 9000 in, late 1, bound 0"), "3 hops, 12.0 us",
         .declared = "hops 3 us 12"},
        {OF_PAIR, NEAR, TIMED("3", "12001 out 9000 in, late 1, bound 0"),
         .declared = "hops 3 us 12"},
        {OF_PAIR, NEAR, TIMED("3", "9000 out 12001 in, late 1, bound 0"),
         .declared = "hops 3 us 12"},
        {PASS, NEAR, TIMED("3", "13000 out 9000 in, late 1, bound 1000"), .declared = "us 12"},
        {OF_PAIR, NEAR, TIMED("3", "13001 out 9000 in, late 1, bound 1000"), .declared = "us 12"},
        {OF_PAIR, NEAR, TIMED("4", "1 out 1 in, late 1, bound 0"), .declared = "hops 3 us 12"},
        {PASS, NEAR, TIMED("-1", "1 out 1 in, late 1, bound 0"), .declared = "us 12"},
        {UNKNOWN, NEAR, TIMED("-1", "1 out 1 in, late 1, bound 0"), .declared = "hops 3 us 12",
         .why = "not_run"},
        {UNKNOWN, NEAR, LOST("0", "9"), .declared = "hops 3 us 12", .why = "clock"},
        {PASS, NEAR, LOST("0", "9"), "3 hops", .declared = "hops 3"},
        {OF_PAIR, NEAR, LOST("0", "9"), "3 hops", .declared = "hops 2"},
        {PASS, NEAR, PATHS("rail", "0", "4", "4", "0 out 0 in"), "0 hops", .declared = "hops 0"},
        {SKIP, NEAR, LOST("0", "9"), .declared = "near", .why = "is not like"},
        {SKIP, NEAR, LOST("0", "9"), .why = "nothing is declared"},
    };
    (void)state;
    RULES_TRY(cases);
}

static void test_front_end_and_history(void **state)
{
    static const struct rule_case cases[] = {
        {PASS, "fe.reach", "p", "fe.peer@p=reached"},
        {WARN, "fe.reach", "p", "fe.peer@p=refused", "refused", "with this host alone"},
        {PASS, "fe.path_mtu", "p", "fe.path@p=full 1500 came", "packets of 1500 bytes: came"},
        {WARN, "fe.path_mtu", "p", "fe.path@p=full 1500 lost", "packets of 1500 bytes: lost"},
        {UNKNOWN, "fe.path_mtu", "p", "fe.path@p=short 64 lost", .why = "timeout"},
        {UNKNOWN, "fe.path_mtu", "p", "fe.path@p=full 1500 not known", .why = "no_source"},
        {UNKNOWN, "fe.path_mtu", "p", "fe.path@p=strange", .why = "no_source"},
        {UNKNOWN, "node.history", "", "history=incidents 1, score 900", "1 incident in 30 days",
         COMPARED},
        {UNKNOWN, "node.history", "", "history=incidents 2, score 900", "2 incidents in 30 days",
         COMPARED},
        {UNKNOWN, "node.history", "", "history=strange", .why = "no_source"},
        {SKIP, "node.history", "", "", .why = "foliot audit run --fleet asks the controller"},
        {SKIP, "nccl.straggler", "", "", .why = "not tested: foliot audit run --fleet --nccl does"},
        {SKIP, "be.matrix.reach", "", "", .why = "foliot audit run --fleet --matrix does"},
    };
    (void)state;
    RULES_TRY(cases);
}

/* Eight percent less than declared fail; half of that is a warning. */
static void test_rates(void **state)
{
#define RATE "be.bw.pair", "", "test.rate@pair_bw="
#define NIC(name, rate, partners, verdict)                                                         \
    "|perf.nic@" name "=" rate " of 100.000 Gbit/s with " partners " partners: " verdict           \
    ", of 9, 3 retests, 12.5 % slower"
    static const struct rule_case cases[] = {
        {PASS, RATE "96000", "96.000", .declared = "100"},
        {WARN, RATE "95999", .declared = "100"},
        {WARN, RATE "92000", .declared = "100"},
        {FAIL, RATE "91999", "91.999", .declared = "100",
         .expected = "100.000, as declared, less 8 %"},
        {SKIP, RATE "91999", .declared = "0", .why = "no number"},
        {SKIP, RATE "91999", .declared = "much", .why = "no number"},
        {UNKNOWN, RATE "96000", "96.000", COMPARED},
        /* of two hosts it isn't known which one it is */
        {UNKNOWN, RATE "95999|perf=done" NIC("e1", "95.9", "1", "fine"), .declared = "100",
         .why = "not_run"},
        {PASS, RATE "96000|perf=done" NIC("e1", "95.9", "1", "fine"), .declared = "100"},
        {WARN, RATE "95999|perf=done" NIC("e1", "95.9", "2", "fine"), .declared = "100"},
        /* with this audit's own tests: the slower host, else the slowest */
        {PASS, RATE "1|perf=done" NIC("e1", "95.9", "2", "fine") NIC("e2", "95.8", "3", "fine"),
         "0.001", "e2: 95.800 of 100.000 Gbit/s with 3 partners", "100.000"},
        {FAIL,
         RATE "1|perf=done" NIC("e1", "70", "2", "fine") NIC("e2", "88", "3", "slower")
             NIC("e3", "60", "2", "unproven"),
         .why = "e2: 88.000 of 100.000 Gbit/s with 3 partners; 12.5 % slower than those beside it "
                "in 3 retests"},
        {FAIL, RATE "1|perf=done" NIC("e1", "88", "2", "slower") NIC("e2", "87", "3", "slower"),
         .why = "e2: 87.000"},
        {WARN, RATE "1|perf=done" NIC("e1", "88", "2", "unproven"),
         .why = "12.5 % slower in 3 retests, and so are others", .cohort = 9},
        {UNKNOWN, RATE "1|perf=done" NIC("e1", "88", "2", "not compared"), .why = COMPARED},
        {UNKNOWN, RATE "1|perf=done" NIC("e1", "88", "2", "not told apart"), .why = "not_run",
         .expected = "100.000"},
        {FAIL,
         RATE "1|perf=done" NIC("e1", "80", "2", "not told apart") NIC("e2", "88", "2", "slower"),
         .why = "e2: 88.000 of 100.000 Gbit/s", .cohort = 9},
        {UNKNOWN, RATE "1|perf=done|perf.nic@e1=strange", .why = COMPARED},
        /* it is not there */
        {UNKNOWN, "be.bw.pair", "", "test!timeout", .why = "timeout"},
        {SKIP, "be.bw.pair", "", "test!absent", .why = "no results of tests are kept here"},
        {UNKNOWN, "be.bw.pair", "", "", .why = "not_run"},
        {UNKNOWN, "be.bw.pair", "", "perf=done|test.rate@pair_bw!timeout=busy", .why = "busy"},
        {UNKNOWN, "be.bw.pair", "", "perf=done|test.rate@pair_bw!timeout=preempted",
         .why = "preempted"},
        {UNKNOWN, "be.bw.pair", "", "perf=done|test.rate@pair_bw!timeout=silent", .why = "timeout"},
        {UNKNOWN, "be.bw.pair", "", "perf=done|test.rate@pair_bw!timeout=clock", .why = "clock"},
        {UNKNOWN, "be.bw.pair", "", "perf=done|test.rate@pair_bw!timeout=old-agent",
         .why = "old_agent"},
        {UNKNOWN, "be.bw.pair", "", "perf=done|test.rate@pair_bw!timeout=stopped",
         .why = "not_run"},
        {PASS, "nccl.qp_gain", "", "test.rate@allreduce-q1=1000|test.rate@allreduce-q8=1250",
         "1.25", ""},
        {FAIL, "nccl.qp_gain", "", "test.rate@allreduce-q1=1000|test.rate@allreduce-q8=1251",
         .why = "meet on one path"},
        {PASS, "nccl.qp_gain", "", "test.rate@allreduce-q1=1000|test.rate@allreduce-q8=950",
         "0.95"},
        {FAIL, "nccl.qp_gain", "", "test.rate@allreduce-q1=1000|test.rate@allreduce-q8=949",
         .why = "cost more"},
        {SKIP, "nccl.qp_gain", "", "test.rate@allreduce-q1=0|test.rate@allreduce-q8=949",
         .why = "carried nothing"},
        {UNKNOWN, "nccl.qp_gain", "",
         "perf=done|perf.late!timeout=clock|test.rate@allreduce-q1=1000|test.rate@allreduce-q8=950",
         .why = "clock"},
        {PASS, "nccl.repeat", "", "test.runs@allreduce-q1=3|test.spread@allreduce-q1=300",
         "3.00 % of 3 runs"},
        {FAIL, "nccl.repeat", "", "test.runs@allreduce-q1=3|test.spread@allreduce-q1=301",
         .expected = "at most 3 %"},
        {FAIL, "nccl.repeat", "",
         "test.runs@allreduce-q1=5|test.spread@allreduce-q1=900|perf.waited=9.00 % left without "
         "its waiting and that of two others, 9.00 % without that of one"},
        {UNKNOWN, "nccl.repeat", "",
         "test.runs@allreduce-q1=5|test.spread@allreduce-q1=900|perf.waited=3.00 % left without "
         "its waiting and that of two others, 2.00 % without that of one",
         .why = "busy"},
        {FAIL, "nccl.repeat", "",
         "test.runs@allreduce-q1=5|test.spread@allreduce-q1=900|perf.waited=3.01 % left without "
         "its waiting and that of two others, 3.01 % without that of one"},
        /* nor does that word take away what two others excuse */
        {UNKNOWN, "nccl.repeat", "",
         "test.runs@allreduce-q1=5|test.spread@allreduce-q1=900|perf.waited=2.00 % left without "
         "its waiting and that of two others, 3.50 % without that of one",
         .why = "busy"},
        /* one other host alone may lie: nobody goes without a verdict by its word */
        {WARN, "nccl.repeat", "",
         "test.runs@allreduce-q1=5|test.spread@allreduce-q1=900|perf.waited=3.01 % left without "
         "its waiting and that of two others, 3.00 % without that of one",
         .why = "one other host"},
        {WARN, "nccl.repeat", "",
         "test.runs@allreduce-q1=5|test.spread@allreduce-q1=900|perf.waited=9.00 % left without "
         "its waiting and that of two others, 0.00 % without that of one"},
        {PASS, "nccl.repeat", "",
         "test.runs@allreduce-q1=5|test.spread@allreduce-q1=300|perf.waited=0.00 % left without "
         "its waiting and that of two others, 0.00 % without that of one"},
        {FAIL, "nccl.repeat", "",
         "test.runs@allreduce-q1=5|test.spread@allreduce-q1=900|perf.waited=not a word"},
        {UNKNOWN, "nccl.repeat", "", "test.runs@allreduce-q1=2|test.spread@allreduce-q1=0",
         .why = "not_run"},
    };
    (void)state;
    RULES_TRY(cases);
}

static void test_other_results(void **state)
{
#define DCGM "test.dcgm=pass 5, fail "
    static const struct rule_case cases[] = {
        {SKIP, "nccl.correct", "x", "test.wrong@x=-1", .why = "was not compared"},
        {PASS, "nccl.correct", "x", "test.wrong@x=0", "0 wrong values"},
        {FAIL, "nccl.correct", "x", "test.wrong@x=1", "1 wrong values"},
        {SKIP, "nccl.transport", "x", "test.network@x=none", .why = "without NCCL's log"},
        {FAIL, "nccl.transport", "x", "test.network@x=Socket", "sockets"},
        {UNKNOWN, "nccl.transport", "x", "test.network@x=IB", "IB", COMPARED},
        {SKIP, "nccl.init", "x", "test.init@x=-1", .why = "without NCCL's log"},
        {PASS, "nccl.init", "x", "test.init@x=0"},
        {PASS, "nccl.init", "x", "test.init@x=60000", "60.0 s"},
        {FAIL, "nccl.init", "x", "test.init@x=60001", .expected = "at most 60 s"},
        {PASS, "node.dcgm", "", DCGM "0, warn 0, skip 0, other 0"},
        {UNKNOWN, "node.dcgm", "", DCGM "0, warn 0, skip 1, other 0", .why = "not_run"},
        {UNKNOWN, "node.dcgm", "", DCGM "0, warn 0, skip 0, other 1", .why = "not_run"},
        {WARN, "node.dcgm", "", DCGM "0, warn 1, skip 1, other 0"},
        {FAIL, "node.dcgm", "", DCGM "1, warn 0, skip 1, other 0"},
        {FAIL, "node.dcgm", "", DCGM "1, warn 1, skip 0, other 0"},
        {UNKNOWN, "node.dcgm", "", "test.dcgm=strange", .why = "no_source"},
        {PASS, "nccl.straggler", "", "perf=done|perf.late=3 of 10", .expected = "at most 30 %"},
        {FAIL, "nccl.straggler", "", "perf=done|perf.late=4 of 10",
         "last and more than 1 ms late 4 times of 10"},
        {FAIL, "nccl.straggler", "", "perf=done|perf.late=10 of 10"},
        {UNKNOWN, "nccl.straggler", "", "perf=done|perf.late=11 of 10", .why = "no_source"},
        {UNKNOWN, "nccl.straggler", "", "perf=done|perf.late=0 of 0", .why = "no_source"},
        {UNKNOWN, "nccl.straggler", "", "perf=done|perf.late!timeout=busy", .why = "busy"},
        {SKIP, "nccl.straggler", "", "perf=done", .why = "made no tests of collectives"},
        {PASS, "be.bw.path", "a b", "perf.path@a b=well, 3 paths", "3 paths"},
        {FAIL, "be.bw.path", "a b", "perf.path@a b=80 of 100 Gbit/s", "80.000 Gbit/s",
         "from this trunk on"},
        {FAIL, "be.bw.path", "a b", "perf.path@a b=80 of 100 Gbit/s, or another",
         .why = "it, or another trunk"},
        {SKIP, "be.bw.path", "a b", "perf.path@a b=none", .why = "cross no trunk"},
        {UNKNOWN, "be.bw.path", "a b", "perf.path@a b=strange", .why = "no_source"},
        {PASS, "nccl.bisect", "", "perf=done|perf.search=well 10 of 12 GB/s", "10.000 GB/s", ""},
        {PASS, "nccl.bisect", "", "perf=done|perf.search=others 10 of 12 GB/s",
         .why = "slow by others"},
        {FAIL, "nccl.bisect", "", "perf=done|perf.search=alone 10 of 12 GB/s",
         .expected = "12.000 GB/s"},
        {WARN, "nccl.bisect", "", "perf=done|perf.search=pair 10 of 12 GB/s",
         .why = "one other host"},
        {WARN, "nccl.bisect", "", "perf=done|perf.search=nobody 10 of 12 GB/s",
         .why = "no part of them is"},
        {UNKNOWN, "nccl.bisect", "", "perf=done|perf.search=open 10 of 12 GB/s", .why = "not_run"},
        {UNKNOWN, "nccl.bisect", "", "perf=done|perf.search=strange", .why = "no_source"},
    };
    (void)state;
    RULES_TRY(cases);
}

/* A link counts as full from eighty percent of the port's rate. A queue stands if that lasts half a second. */
static void test_marks_of_a_full_link(void **state)
{
#define FULL "be.roce.ecn_live", "m/1"
#define PORT "port@m/1=m/1|port.layer@m/1=Ethernet|port.net@m/1=eth1|"
#define IS(marked, rate, ms)                                                                       \
    "perf.incast@eth1=marked " marked " of 1000, sent 2000, " rate " Gbit/s for " ms               \
    " ms, from 4 hosts"
#define OWN "port.rate@m/1=100 Gb/sec (4X EDR)|"
    static const struct rule_case cases[] = {
        {FAIL, FULL, PORT OWN IS("0", "80", "500"),
         "0 of 1000 packets marked, 80.000 Gbit/s for 500 ms"},
        {UNKNOWN, FULL, PORT OWN IS("0", "79.9", "500"), .why = "not_run"},
        {UNKNOWN, FULL, PORT OWN IS("0", "80", "499"), .why = "not_run"},
        {PASS, FULL, PORT OWN IS("1", "80", "500"),
         "1 of 1000 packets marked, 80.000 Gbit/s for 500 ms"},
        {PASS, FULL, PORT IS("1", "1", "1")},
        {UNKNOWN, FULL, PORT IS("0", "80", "500"), .why = "no_source"},
        {FAIL, FULL, PORT "net.speed@eth1=100000|" IS("0", "80", "500")},
        {UNKNOWN, FULL, PORT "net.speed@eth1=-1|" IS("0", "80", "500"), .why = "no_source"},
        /* of two reports the greater one counts */
        {UNKNOWN, FULL, PORT OWN "net.speed@eth1=200000|" IS("0", "80", "500"), .why = "not_run"},
        {FAIL, FULL, PORT OWN "net.speed@eth1=1000|" IS("0", "80", "500")},
        {SKIP, FULL, PORT "perf.incast@eth1=none", .why = "another host of its leaf received"},
        {SKIP, FULL, PORT, .why = "not tested"},
        {SKIP, FULL, PORT "perf=done", .why = "is in no such test"},
        {UNKNOWN, FULL, PORT "perf=done|perf.incast@eth1!timeout=busy", .why = "busy"},
        {UNKNOWN, FULL, PORT "perf.incast@eth1!stuck", .why = "stuck"},
        {UNKNOWN, FULL, PORT "perf.incast@eth1=strange", .why = "no_source"},
    };
    (void)state;
    RULES_TRY(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agent_and_its_clock),   cmocka_unit_test(test_paths_to_a_neighbour),
        cmocka_unit_test(test_delays_of_a_neighbour), cmocka_unit_test(test_spares),
        cmocka_unit_test(test_front_end_and_history), cmocka_unit_test(test_rates),
        cmocka_unit_test(test_other_results),         cmocka_unit_test(test_marks_of_a_full_link)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
