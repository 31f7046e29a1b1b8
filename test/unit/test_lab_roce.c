/* test_lab_roce.c: the parts of a lab with RDMA devices, the hosts of its job, and its refusals. No machine boots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/time.h"
#include "lab/engine.h"
#include "lab/job.h"
#include "lab/roce.h"
#include "lab/spot.h"

#include <stdlib.h>
#include <string.h>

static struct lab lab;
static char why[LAB_ROCE_WHY_SIZE];

static int begin(void **state)
{
    (void)state;
    memset(&lab, 0, sizeof(lab));
    strcpy(lab.name, "lab");
    scenario_init(&lab.scenario);
    lab.scenario.world = SCENARIO_BOTH;
    lab.has_engines = true;
    return 0;
}

static struct scenario_fault *add_fault(enum scenario_fault_kind kind,
                                        struct scenario_target target)
{
    struct scenario_fault *f = &lab.scenario.fault[lab.scenario.fault_count++];
    f->kind = kind;
    f->target = target;
    f->line = 10 + lab.scenario.fault_count;
    return f;
}

static struct scenario_target nic_target(int host, int nic)
{
    return (struct scenario_target){.kind = TARGET_NIC, .from = {host, nic}};
}

/* ---- the engines ---- */

static char *list(void (*write)(const struct lab *lab, FILE *to))
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    assert_non_null(to);
    write(&lab, to);
    fclose(to);
    return text;
}

static int count_of(const char *text, const char *part)
{
    int count = 0;
    while ((text = strstr(text, part)) != NULL) {
        text++;
        count++;
    }
    return count;
}

static void test_each_nic_has_an_engine(void **state)
{
    (void)state;
    char *links = list(lab_engines_links), *devices = list(lab_engines_devices);
    assert_int_equal(count_of(links, "link add "), 16);
    assert_int_equal(count_of(devices, "type rxe"), 16);
    assert_non_null(strstr(devices, "link add h5n1 type rxe netdev h5n1\n"));
    assert_non_null(
        strstr(links, "link add h5n1 address 02:00:00:05:01:02 type veth peer name rdma1 netns "
                      "foliot-lab-host5\n"
                      "address add 10.5.1.2/30 dev h5n1\nlink set h5n1 up\n"
                      "neigh replace 10.5.1.1 lladdr 02:00:00:05:01:01 dev h5n1 nud permanent\n"
                      "route replace default via 10.5.1.1 dev h5n1 src 10.5.1.2 table 1081\n"));
    free(links);
    free(devices);
}

/* The local table would keep packets between two NICs inside. So it comes last, and only received packets use it first. */
static void test_packets_between_engines_leave(void **state)
{
    (void)state;
    char *rules = list(lab_engines_rules);
    const char *first = "rule add pref 10 not iif lo lookup local\n";
    const char *last = "rule add pref 30 lookup local\nrule del pref 0\n";
    assert_memory_equal(rules, first, strlen(first));
    assert_string_equal(rules + strlen(rules) - strlen(last), last);
    assert_int_equal(count_of(rules, "pref 20 oif "), 16);
    assert_int_equal(count_of(rules, "pref 21 iif lo from "), 16);
    assert_non_null(strstr(rules, "rule add pref 20 oif h5n1 lookup 1081\n"
                                  "rule add pref 21 iif lo from 10.5.1.2 lookup 1081\n"));
    free(rules);
}

static void test_a_cable_is_the_rdma_ports_too(void **state)
{
    (void)state;
    static struct lab_port port[LAB_SPOT_MAX];
    const struct scenario_fault *cut = add_fault(FAULT_CARRIER, nic_target(1, 1));
    assert_int_equal(lab_link_ports(&lab, cut, port), 2);
    assert_string_equal(port[0].space, "foliot-lab-leaf0");
    assert_string_equal(port[0].interface, "h1n1");
    assert_string_equal(port[1].space, "foliot-lab-host1");
    assert_string_equal(port[1].interface, "rdma1");
    lab.has_engines = false;
    assert_int_equal(lab_link_ports(&lab, cut, port), 1);
}

/* ---- the job ---- */

static void assert_hosts(int count, const int *expected)
{
    int host[LAB_JOB_RANK_MAX];
    assert_int_equal(lab_job_hosts(&lab, host), count);
    for (int i = 0; i < count; i++) {
        assert_int_equal(host[i], expected[i]);
    }
}

static void test_the_job_is_where_the_fault_is(void **state)
{
    (void)state;
    assert_hosts(2, (const int[]){0, 4}); /* a host of each leaf */
    add_fault(FAULT_SPINE, (struct scenario_target){.kind = TARGET_SPINE, .first = 2});
    assert_hosts(2, (const int[]){0, 4});
    add_fault(FAULT_CARRIER, nic_target(6, 0));
    assert_hosts(3, (const int[]){0, 4, 6});
    add_fault(FAULT_BLACKHOLE,
              (struct scenario_target){.kind = TARGET_EDGE, .from = {7, 0}, .to = {3, 1}});
    assert_hosts(4, (const int[]){0, 3, 6, 7}); /* hosts with faults come first */
    add_fault(FAULT_CARRIER, nic_target(2, 0));
    add_fault(FAULT_CARRIER, nic_target(1, 0));
    assert_hosts(4, (const int[]){2, 3, 6, 7});
}

static void test_a_job_has_two_ranks_at_least(void **state)
{
    (void)state;
    lab.scenario.fabric.leaves = 1;
    assert_hosts(2, (const int[]){0, 1});
}

static void test_the_job_fits_into_the_time(void **state)
{
    (void)state;
    lab.scenario.duration_ns = 38 * NS_PER_S;
    const int rounds = lab_job_rounds(&lab.scenario);
    assert_true(rounds > 100 && rounds * LAB_JOB_PAUSE_MS < 38000);
    lab.scenario.duration_ns = NS_PER_S;
    assert_int_equal(lab_job_rounds(&lab.scenario), 10);
    lab.scenario.duration_ns = 3600 * NS_PER_S;
    assert_int_equal(lab_job_rounds(&lab.scenario), 1000); /* as many as perf can check */
}

static void test_what_makes_a_job_well(void **state)
{
    (void)state;
    struct lab_job_result r = {.wrong = 0, .pairs = 4};
    assert_true(lab_job_is_well(&r));
    r.pairs = 0; /* it went over TCP */
    assert_false(lab_job_is_well(&r));
    r.pairs = 4;
    r.wrong = 1;
    assert_false(lab_job_is_well(&r));
    r.wrong = -1; /* nothing was checked */
    assert_false(lab_job_is_well(&r));
    r.wrong = 0;
    r.status = 1;
    assert_false(lab_job_is_well(&r));
}

/* ---- refusals ---- */

static void assert_refused(const char *words)
{
    assert_false(lab_roce_can(&lab.scenario, why));
    if (strstr(why, words) == NULL) {
        fail_msg("expected '%s' to have '%s'", why, words);
    }
}

static void test_the_default_fabric_and_its_faults_are_taken(void **state)
{
    (void)state;
    for (int kind = FAULT_CARRIER; kind <= FAULT_CLOCK_FREQ; kind++) {
        add_fault((enum scenario_fault_kind)kind, nic_target(0, 0));
    }
    assert_true(lab_roce_can(&lab.scenario, why));
    assert_string_equal(why, "");
}

static void test_refusals_have_the_name_and_the_line(void **state)
{
    (void)state;
    add_fault(FAULT_CARRIER, nic_target(0, 0));
    add_fault(FAULT_SUSPEND, (struct scenario_target){.kind = TARGET_HOSTS});
    assert_refused("fault suspend in line 12: ");
    begin(NULL);
    lab.scenario.bound_count = 1;
    lab.scenario.bound[0] =
        (struct scenario_bound){.what = "cost.cpu_share", .world = SCENARIO_LAB, .line = 7};
    assert_refused("bound cost.cpu_share in line 7: ");
    lab.scenario.bound[0].world = SCENARIO_SIM;
    assert_true(lab_roce_can(&lab.scenario, why));
    strcpy(lab.scenario.bound[0].what, "harm.throughput");
    lab.scenario.bound[0].world = SCENARIO_BOTH;
    assert_refused("bound harm.throughput in line 7: ");
}

static void test_what_a_fabric_may_have(void **state)
{
    (void)state;
    lab.scenario.fabric.hosts = 1;
    assert_refused("one host");
    lab.scenario.fabric.hosts = 16;
    assert_true(lab_roce_can(&lab.scenario, why));
    lab.scenario.fabric.hosts = 17;
    assert_refused("34 NICs");
    begin(NULL);
    lab.scenario.fabric.ip = IP_V6;
    assert_refused("ip: 6");
    lab.scenario.fabric.ip = IP_BOTH;
    assert_true(lab_roce_can(&lab.scenario, why));
    lab.scenario.traffic_count = 1;
    lab.scenario.traffic[0].load = 0.3;
    assert_true(lab_roce_can(&lab.scenario, why));
    lab.scenario.traffic[0].greedy = true;
    assert_refused("greedy");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_each_nic_has_an_engine, begin),
        cmocka_unit_test_setup(test_packets_between_engines_leave, begin),
        cmocka_unit_test_setup(test_a_cable_is_the_rdma_ports_too, begin),
        cmocka_unit_test_setup(test_the_job_is_where_the_fault_is, begin),
        cmocka_unit_test_setup(test_a_job_has_two_ranks_at_least, begin),
        cmocka_unit_test_setup(test_the_job_fits_into_the_time, begin),
        cmocka_unit_test_setup(test_what_makes_a_job_well, begin),
        cmocka_unit_test_setup(test_the_default_fabric_and_its_faults_are_taken, begin),
        cmocka_unit_test_setup(test_refusals_have_the_name_and_the_line, begin),
        cmocka_unit_test_setup(test_what_a_fabric_may_have, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
