/* test_rules_host.c: rules of processors, memory, kernel, disks, programs: each verdict on both sides of its limit. */
#include "rule_kit.h"

static void test_memory(void **state)
{
    static const struct rule_case cases[] = {
        /* a hundred corrected a day, over ten days; less than a day counts as one */
        {PASS, "cfg.mem.ecc", "mc0", "mem.controller@mc0=mc0|mem.ue@mc0=0|mem.ce@mc0=1000",
         "0 uncorrected since boot, 1000 corrected in 10.0 days since boot", .shown = "mem.ce"},
        {WARN, "cfg.mem.ecc", "mc0", "mem.controller@mc0=mc0|mem.ue@mc0=0|mem.ce@mc0=1001",
         .shown = "mem.ce"},
        {PASS, "cfg.mem.ecc", "mc0",
         "mem.controller@mc0=mc0|mem.ue@mc0=0|mem.ce@mc0=100|os.uptime=43200"},
        {WARN, "cfg.mem.ecc", "mc0",
         "mem.controller@mc0=mc0|mem.ue@mc0=0|mem.ce@mc0=101|os.uptime=43200"},
        {FAIL, "cfg.mem.ecc", "mc0", "mem.controller@mc0=mc0|mem.ue@mc0=1|mem.ce@mc0=5",
         .shown = "mem.ue"},
        {PASS, "cfg.mem.ecc", "mc0", "mem.controller@mc0=mc0|mem.ue@mc0=0|mem.ce@mc0=0",
         .shown = "mem.ue"},
        /* eighty percent */
        {PASS, "cfg.mem.free", "", "mem.total=1024000|mem.available=819200", "80 %",
         .expected = "at least 80 % of 1000 MiB"},
        {FAIL, "cfg.mem.free", "", "mem.total=1024000|mem.available=819199"},
        {PASS, "cfg.mem.free", "", "mem.total=1000|mem.available=1000", "100 %"},
        {FAIL, "cfg.mem.free", "", "mem.total=1000|mem.available=0", "0 %"},
        {UNKNOWN, "cfg.mem.free", "", "mem.total=1000|mem.available=1001", .why = "no_source"},
        {UNKNOWN, "cfg.mem.free", "", "mem.total=1000|mem.available=-1", .why = "no_source"},
        {UNKNOWN, "cfg.mem.free", "", "mem.total=0|mem.available=0", .why = "no_source"},
        {FAIL, "cfg.mem.fragment", "node0", "mem.node@node0=node0|mem.blocks@node0=-1"},
        {WARN, "cfg.mem.fragment", "node0", "mem.node@node0=node0|mem.blocks@node0=0",
         .expected = "at least 1"},
        {PASS, "cfg.mem.fragment", "node0", "mem.node@node0=node0|mem.blocks@node0=1"},
        {PASS, "cfg.mem.swap", "", "mem.swaps=0", "0 (swap areas in use)"},
        {FAIL, "cfg.mem.swap", "", "mem.swaps=1", .expected = "at most 0"},
        {PASS, "cfg.mem.shm", "", "mem.shm=100", .declared = "100",
         .expected = "at least 100, as declared"},
        {FAIL, "cfg.mem.shm", "", "mem.shm=99", .declared = "100"},
        {SKIP, "cfg.mem.shm", "", "mem.shm=99", .declared = "much", .why = "no number"},
        {SKIP, "cfg.mem.shm", "", "mem.shm=99", .why = "nothing is declared"},
    };
    (void)state;
    RULES_TRY(cases);
}

static void test_kernel(void **state)
{
#define LOG "os.log=5|os.log_lost=0|"
    static const struct rule_case cases[] = {
        {PASS, "cfg.kern.net_buf", "", "os.rmem_max=1000|os.wmem_max=1000",
         "rmem_max 1000, wmem_max 1000", .declared = "1000"},
        {FAIL, "cfg.kern.net_buf", "", "os.rmem_max=999|os.wmem_max=1000", .declared = "1000",
         .shown = "os.rmem_max"},
        {FAIL, "cfg.kern.net_buf", "", "os.rmem_max=1000|os.wmem_max=999", .declared = "1000",
         .shown = "os.wmem_max"},
        {SKIP, "cfg.kern.net_buf", "", "os.rmem_max=1000|os.wmem_max=999", .declared = "many",
         .why = "no number"},
        {SKIP, "cfg.kern.net_buf", "", "os.rmem_max=1000|os.wmem_max=999",
         .why = "nothing is declared"},
        {SKIP, "cfg.sw.nic_driver", "ice", "os.module@ice=ice|os.module_build@ice!absent",
         .why = "comes with the kernel"},
        {UNKNOWN, "cfg.sw.nic_driver", "ice", "os.module@ice=ice|os.module_build@ice!timeout",
         .why = "timeout"},
        {UNKNOWN, "cfg.sw.nic_driver", "ice", "os.module@ice=ice", .why = "no_source"},
        {UNKNOWN, "cfg.sw.nic_driver", "ice", "os.module@ice=ice|os.module_build@ice=1.2", "1.2",
         COMPARED},
        {PASS, "cfg.kern.cstate", "", "cpu.cstate_us=10"},
        {WARN, "cfg.kern.cstate", "", "cpu.cstate_us=11", .expected = "at most 10"},
        {PASS, "cfg.kern.log", "", LOG "os.log_lockup=0|os.log_mce=0|os.log_nic=0|os.log_power=0",
         "none"},
        {FAIL, "cfg.kern.log", "", LOG "os.log_lockup=1|os.log_mce=0|os.log_nic=0|os.log_power=0",
         "1 lockups or hung tasks"},
        {FAIL, "cfg.kern.log", "", LOG "os.log_lockup=0|os.log_mce=2|os.log_nic=0|os.log_power=0",
         "2 machine checks"},
        {FAIL, "cfg.kern.log", "", LOG "os.log_lockup=0|os.log_mce=0|os.log_nic=3|os.log_power=0",
         "3 errors of a NIC"},
        {FAIL, "cfg.kern.log", "", LOG "os.log_lockup=0|os.log_mce=0|os.log_nic=0|os.log_power=4",
         "4 reports of too little PCIe power"},
        /* the log's beginning is lost: no error in it is unknown, an error in it still counts */
        {UNKNOWN, "cfg.kern.log", "",
         "os.log=5|os.log_lost=1|os.log_lockup=0|os.log_mce=0|os.log_nic=0|os.log_power=0",
         .why = "stale"},
        {UNKNOWN, "cfg.kern.log", "",
         "os.log=0|os.log_lost=0|os.log_lockup=0|os.log_mce=0|os.log_nic=0|os.log_power=0",
         .why = "stale"},
        {FAIL, "cfg.kern.log", "",
         "os.log=5|os.log_lost=1|os.log_lockup=0|os.log_mce=1|os.log_nic=0|os.log_power=0"},
        {PASS, "node.uptime", "", "os.kernel=6.1.0|os.kernel_newest=6.1.0", "6.1.0"},
        {WARN, "node.uptime", "", "os.kernel=6.1.0|os.kernel_newest=6.1.1", "6.1.0",
         "a restart is pending"},
    };
    (void)state;
    RULES_TRY(cases);
}

/* Xid codes that stop a job are 48, 64, 74, 79, 95 and 119. A code is a whole word. */
static void test_xid(void **state)
{
    static const struct rule_case cases[] = {
        {PASS, "cfg.gpu.xid", "", "gpu@gpu0=gpu0|os.log_lost=0|os.log_xid=none", "none"},
        {UNKNOWN, "cfg.gpu.xid", "", "gpu@gpu0=gpu0|os.log_lost=1|os.log_xid=none", .why = "stale"},
        {FAIL, "cfg.gpu.xid", "", "gpu@gpu0=gpu0|os.log_lost=0|os.log_xid=48", "48"},
        {FAIL, "cfg.gpu.xid", "", "gpu@gpu0=gpu0|os.log_lost=1|os.log_xid=13 119"},
        {FAIL, "cfg.gpu.xid", "", "gpu@gpu0=gpu0|os.log_lost=0|os.log_xid=13 79 31"},
        {WARN, "cfg.gpu.xid", "", "gpu@gpu0=gpu0|os.log_lost=0|os.log_xid=13 31", "13 31"},
        {WARN, "cfg.gpu.xid", "", "gpu@gpu0=gpu0|os.log_lost=1|os.log_xid=4"},
        {WARN, "cfg.gpu.xid", "", "gpu@gpu0=gpu0|os.log_lost=0|os.log_xid=480 148"},
    };
    (void)state;
    RULES_TRY(cases);
}

static void test_disks_and_programs(void **state)
{
    static const struct rule_case cases[] = {
        {PASS, "node.disk", "/", "disk@/=ext4|disk.used@/=85"},
        {WARN, "node.disk", "/", "disk@/=ext4|disk.used@/=86", .expected = "at most 85"},
        {WARN, "node.disk", "/", "disk@/=ext4|disk.used@/=90"},
        {FAIL, "node.disk", "/", "disk@/=ext4|disk.used@/=91", .expected = "at most 90"},
        {PASS, "node.disk", "nvme0", "disk@nvme0=nvme0|nvme.state@nvme0=live", "live"},
        {FAIL, "node.disk", "nvme0", "disk@nvme0=nvme0|nvme.state@nvme0=dead", "dead"},
        {PASS, "node.procs", "", "os.zombies=50|os.blocked=8", "50 zombies, 8 blocked"},
        {WARN, "node.procs", "", "os.zombies=50|os.blocked=9"},
        {FAIL, "node.procs", "", "os.zombies=51|os.blocked=8", .expected = "at most 50 and 8"},
        {WARN, "cfg.time.one_steer", "", "time.steers=none"},
        {PASS, "cfg.time.one_steer", "", "time.steers=chronyd"},
        {FAIL, "cfg.time.one_steer", "", "time.steers=chronyd ntpd", "chronyd ntpd"},
        {PASS, "node.mounts", "/data", "mount@/data=nfs|mount.answers@/data=1", "answers"},
        {FAIL, "node.mounts", "/data", "mount@/data=nfs|mount.answers@/data=0", "an error"},
        {FAIL, "node.mounts", "/data", "mount@/data=nfs|mount.answers@/data!timeout", "timeout"},
        {FAIL, "node.mounts", "/data", "mount@/data=nfs|mount.answers@/data!stuck", "stuck"},
        {UNKNOWN, "node.mounts", "/data", "mount@/data=nfs|mount.answers@/data!no_permission",
         .why = "no_permission"},
        {UNKNOWN, "node.mounts", "/data", "mount@/data=nfs", .why = "no_source"},
        {PASS, "node.mounts", "", "mount@/data=nfs|mount@/users=nfs4|mount@/x=nfs", "3 are there",
         .declared = "/data /users", .shown = "mount"},
        {FAIL, "node.mounts", "", "mount@/users=nfs4", "/data is not mounted",
         .declared = "/data /users", .expected = "/data /users", .shown = "mount"},
        {FAIL, "node.mounts", "", "mount!absent", "/data is not mounted", .declared = "/data"},
        {FAIL, "node.mounts", "", "mount@/data=nfs", "/data/x is not mounted",
         .declared = "/data/x"},
        /* what autofs mounts on demand is there */
        {PASS, "node.mounts", "", "mount@/users=autofs", .declared = "/users/anna/x /users"},
        {FAIL, "node.mounts", "", "mount@/users=autofs|mount@/users/anna=nfs4",
         "/users/anna/x is not mounted", .declared = "/users/anna/x"},
        {UNKNOWN, "node.mounts", "", "mount!timeout", .why = "timeout", .declared = "/data"},
        {UNKNOWN, "node.mounts", "", "", .why = "no_source", .declared = "/data"},
        {UNKNOWN, "node.mounts", "", "mount@/data=nfs|mount.answers@/data=1", .why = COMPARED},
        {SKIP, "node.mounts", "", "mount!absent", .why = "none on this host"},
        {PASS, "node.command", "x", "site@x=x|site.status@x=0|site.output@x=fine", "fine"},
        {WARN, "node.command", "x", "site@x=x|site.status@x=1|site.output@x=so so", "so so"},
        {FAIL, "node.command", "x", "site@x=x|site.status@x=2|site.output@x=bad", "bad"},
        {UNKNOWN, "node.command", "x", "site@x=x|site.status@x=3", "", "no_source"},
        {UNKNOWN, "node.command", "x", "site@x=x|site.status@x=-1", "", "no_source"},
        {PASS, "cfg.sw.services", "", "os.service@slurmd=slurmd|os.service@sshd=sshd",
         "2 are there", .declared = "slurmd !firewalld"},
        {FAIL, "cfg.sw.services", "", "os.service@sshd=sshd", "slurmd is not there",
         .declared = "slurmd !firewalld"},
        {FAIL, "cfg.sw.services", "", "os.service@slurmd=slurmd|os.service@firewalld=firewalld",
         "firewalld is there", .declared = "slurmd !firewalld"},
        {UNKNOWN, "cfg.sw.services", "", "os.service!timeout", .why = "timeout",
         .declared = "slurmd"},
        {UNKNOWN, "cfg.sw.services", "", "", .why = "no_source", .declared = "slurmd"},
    };
    (void)state;
    RULES_TRY(cases);
}

/* The limit is five degrees below critical. A management controller has states of its own. */
static void test_sensors(void **state)
{
#define SENSOR "sensor@cpu/1=cpu|"
#define BMC    "sensor@bmc/fan1=fan|sensor.state@bmc/fan1="
    static const struct rule_case cases[] = {
        {PASS, "node.thermal", "cpu/1",
         SENSOR "sensor.reading@cpu/1=94999|sensor.limit@cpu/1=100000", "95.0 °C"},
        {WARN, "node.thermal", "cpu/1",
         SENSOR "sensor.reading@cpu/1=95000|sensor.limit@cpu/1=100000"},
        {WARN, "node.thermal", "cpu/1",
         SENSOR "sensor.reading@cpu/1=99999|sensor.limit@cpu/1=100000"},
        {FAIL, "node.thermal", "cpu/1",
         SENSOR "sensor.reading@cpu/1=100000|sensor.limit@cpu/1=100000",
         .expected = "5 °C below 100.0 °C"},
        {SKIP, "node.thermal", "cpu/1", SENSOR "sensor.reading@cpu/1=40000|sensor.limit@cpu/1=0",
         .why = "no critical"},
        {SKIP, "node.thermal", "cpu/1", SENSOR "sensor.reading@cpu/1=40000|sensor.limit@cpu/1=-1",
         .why = "no critical"},
        {FAIL, "node.thermal", "cpu/1", SENSOR "sensor.reading@cpu/1=1|sensor.limit@cpu/1=1"},
        {PASS, "node.thermal", "bmc/fan1", BMC "ok", "ok"},
        {FAIL, "node.thermal", "bmc/fan1", BMC "failed", "failed"},
        {FAIL, "node.thermal", "bmc/fan1", BMC "critical"},
        {FAIL, "node.thermal", "bmc/fan1", BMC "no-input"},
        {WARN, "node.thermal", "bmc/fan1", BMC "near-limit", "near-limit"},
        {WARN, "node.thermal", "bmc/fan1", BMC "not-redundant"},
        {WARN, "node.thermal", "bmc/fan1", BMC "full"},
        {SKIP, "node.thermal", "bmc/fan1", BMC "absent", .why = "nothing is fitted"},
        {UNKNOWN, "node.thermal", "bmc/fan1", BMC "fail", "fail", "no_source"},
    };
    (void)state;
    RULES_TRY(cases);
}

/* The limit is one in a thousand. If a day has less than a thousand segments, all since boot count. */
static void test_sent_again(void **state)
{
    static const struct rule_case cases[] = {
        {PASS, "fe.loss", "", "os.segments=1000|os.retrans=1", "0.100 % in 10.0 days since boot"},
        {WARN, "fe.loss", "", "os.segments=1000|os.retrans=2", .why = "chance"},
        {WARN, "fe.loss", "", "os.segments=1000|os.retrans=4", .expected = "at most 0.1 %"},
        {FAIL, "fe.loss", "", "os.segments=1000|os.retrans=5", .expected = "at most 0.1 %"},
        {SKIP, "fe.loss", "", "os.segments=999|os.retrans=500", .why = "fewer than 1,000"},
        {PASS, "fe.loss", "", "<os.segments=9000|<os.retrans=900|os.segments=10000|os.retrans=901",
         "0.100 % in the last 24.0 hours"},
        {FAIL, "fe.loss", "", "<os.segments=9001|<os.retrans=900|os.segments=10000|os.retrans=900",
         "9.000 % in 10.0 days since boot"},
    };
    (void)state;
    RULES_TRY(cases);
}

static void test_what_jobs_are_given(void **state)
{
    static const struct rule_case cases[] = {
        {SKIP, "cfg.sw.nccl_env", "", "job.setting!absent", .why = "no /etc/nccl.conf"},
        {UNKNOWN, "cfg.sw.nccl_env", "", "job.setting!no_permission", .why = "no_permission"},
        {UNKNOWN, "cfg.sw.nccl_env", "", "", .why = "no_source"},
        {UNKNOWN, "cfg.sw.nccl_env", "", "job.setting@NCCL_A=1|job.setting@NCCL_B=2",
         "NCCL_A=1 NCCL_B=2", COMPARED},
        {FAIL, "cfg.sw.nccl_env", "", "job.setting@NCCL_A=1|job.setting@NCCL_IB_DISABLE=1",
         "NCCL_IB_DISABLE=1"},
        {FAIL, "cfg.sw.nccl_env", "", "job.setting@NCCL_P2P_DISABLE=1", "NCCL_P2P_DISABLE=1"},
        {UNKNOWN, "cfg.sw.nccl_env", "", "job.setting@NCCL_IB_DISABLE=0", "NCCL_IB_DISABLE=0",
         COMPARED},
        {SKIP, "fe.bootstrap", "", "job.sockets!absent", .why = "is not set"},
        {FAIL, "fe.bootstrap", "", "job.sockets=none"},
        {UNKNOWN, "fe.bootstrap", "", "job.sockets=eth0", "eth0", COMPARED},
        {SKIP, "cfg.sw.nccl", "", "job.nccl!absent", .why = "jobs bring their own"},
        {UNKNOWN, "cfg.sw.nccl", "", "job.nccl=2.21", "2.21", COMPARED},
        {SKIP, "cfg.sw.plugin", "", "job.plugin!absent", .why = "is not set"},
        {UNKNOWN, "cfg.sw.plugin", "", "job.plugin!timeout", .why = "timeout"},
        {UNKNOWN, "cfg.sw.plugin", "", "", .why = "no_source"},
        {FAIL, "cfg.sw.plugin", "", "job.plugin=missing libx.so"},
        {PASS, "cfg.sw.plugin", "", "job.plugin=libx.so", "libx.so"},
    };
    (void)state;
    RULES_TRY(cases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory),
                                       cmocka_unit_test(test_kernel),
                                       cmocka_unit_test(test_xid),
                                       cmocka_unit_test(test_disks_and_programs),
                                       cmocka_unit_test(test_sensors),
                                       cmocka_unit_test(test_sent_again),
                                       cmocka_unit_test(test_what_jobs_are_given)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
