/* test_judge.c: from verdicts to results: small and large cohorts, the breaker, young hosts, a site's switches, the gate. Each
 * limit is tried on both sides. */
#include "core/audit/gate.h"
#include "rule_kit.h"

enum { MOST = 201 };

static struct sheet *sheets[MOST], all[MOST];
static char names[MOST][16];
static uint32_t hosts;
static struct audit a;
static struct audit_settings site;
static struct check_setting settings[CHECKS_MAX];

/* So many hosts of one kind, each with these facts. */
static void begin(uint32_t count, const char *facts)
{
    hosts = count;
    site = audit_usual;
    memset(settings, 0, sizeof(settings));
    site.checks = settings;
    for (uint32_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof(names[i]), "h%u", i);
        sheets[i] = sheet_new();
        assert_non_null(sheets[i]);
        sheets[i]->host = names[i];
        rule_add_all(sheets[i], sheets[i], facts);
    }
}

static void also(uint32_t host, const char *facts)
{
    rule_add_all(sheets[host], sheets[host], facts);
}

static void number(uint32_t host, const char *fact, long long value)
{
    char text[300];

    snprintf(text, sizeof(text), "%s=%lld", fact, value);
    also(host, text);
}

static void judge(void)
{
    for (uint32_t i = 0; i < hosts; i++) {
        also(i, RULE_UP_10_DAYS "|os.product=Made up|os.virtual=0|agent=running");
        sheet_finish(sheets[i]);
        all[i] = *sheets[i];
    }
    judge_sheets(&a, all, hosts);
    a.settings = &site;
    assert_int_equal(audit_judge(&a), 0);
}

static void end(void)
{
    judge_done(&a);
    for (uint32_t i = 0; i < hosts; i++) {
        sheet_free(sheets[i]);
    }
}

static struct audit_result *result(const char *check, uint32_t host)
{
    for (uint32_t i = 0; i < a.count; i++) {
        if (a.results[i].sheet == host && strcmp(a.results[i].check->id, check) == 0) {
            return &a.results[i];
        }
    }
    fail_msg("%s has no result of host %u", check, host);
    return NULL;
}

static struct check_setting *setting(const char *check)
{
    return &settings[check_number(check_by_id(check))];
}

/* `others` of `count` hosts have another BIOS. */
static enum audit_status differ(uint32_t count, uint32_t others, bool suspect)
{
    begin(count, "");
    for (uint32_t i = 0; i < count; i++) {
        also(i, i < others ? "os.bios=old" : "os.bios=new");
    }
    judge();
    const enum audit_status is = (enum audit_status)result("cfg.fw.bios", 0)->status;
    const enum audit_status last = (enum audit_status)result("cfg.fw.bios", count - 1)->status;
    assert_int_equal(result("cfg.fw.bios", 0)->cohort, count);
    assert_int_equal(last, is == AUDIT_UNKNOWN ? AUDIT_UNKNOWN : AUDIT_PASS);
    assert_int_equal(result("cfg.fw.bios", 0)->suspect, suspect);
    end();
    return is;
}

static void test_who_differs(void **state)
{
    (void)state;
    assert_int_equal(differ(4, 1, false), AUDIT_UNKNOWN);
    assert_int_equal(differ(5, 1, false), AUDIT_FAIL);
    assert_int_equal(differ(5, 2, false), AUDIT_UNKNOWN); /* two thirds are a majority */
    assert_int_equal(differ(6, 2, false), AUDIT_WARN);
    assert_int_equal(differ(6, 3, false), AUDIT_UNKNOWN);
    assert_int_equal(differ(19, 2, false), AUDIT_WARN);
    assert_int_equal(differ(20, 2, true),
                     AUDIT_WARN); /* a tenth fails, which makes the check suspect */
    assert_int_equal(differ(21, 3, false), AUDIT_WARN);
    assert_int_equal(differ(40, 2, false), AUDIT_FAIL);
    begin(5, "");
    for (uint32_t i = 0; i < 5; i++) {
        also(i, i < 2 ? "os.bios=old" : "os.bios=new");
    }
    judge();
    assert_int_equal(result("cfg.fw.bios", 0)->reason, REASON_NO_MAJORITY);
    assert_string_equal(result("cfg.fw.bios", 0)->note, "new (3), old (2)");
    end();
    begin(5, "");
    for (uint32_t i = 0; i < 5; i++) {
        also(i, i < 1 ? "os.bios=old" : "os.bios=new");
    }
    judge();
    assert_string_equal(result("cfg.fw.bios", 0)->expected, "new");
    assert_string_equal(result("cfg.fw.bios", 0)->basis, "as 4 of 5 have it");
    assert_string_equal(result("cfg.fw.bios", 1)->expected, "new");
    assert_string_equal(result("cfg.fw.bios", 1)->basis, "");
    end();
}

/* Memory of so many hosts; the first ones have less. */
static struct audit_result *with_memory(uint32_t count, uint32_t fewer, long long less)
{
    begin(count, "");
    for (uint32_t i = 0; i < count; i++) {
        number(i, "mem.total", i < fewer ? less : 100000);
    }
    judge();
    return result("cfg.mem.size", 0);
}

/* A host may have a hundredth less than the median. The median of an even number is the lesser of the two in the middle. */
static void test_who_has_less(void **state)
{
    (void)state;
    assert_int_equal(with_memory(5, 1, 99000)->status, AUDIT_PASS);
    end();
    assert_int_equal(with_memory(5, 1, 98999)->status, AUDIT_FAIL);
    assert_string_equal(result("cfg.mem.size", 0)->expected, "100000");
    assert_string_equal(result("cfg.mem.size", 0)->basis, "the median of 5");
    end();
    assert_int_equal(with_memory(6, 3, 50000)->status, AUDIT_PASS);
    assert_string_equal(result("cfg.mem.size", 5)->expected, "50000");
    end();
    assert_int_equal(with_memory(7, 3, 50000)->status, AUDIT_WARN);
    assert_true(result("cfg.mem.size", 0)->suspect); /* three fail: too many for so few hosts */
    end();
    assert_int_equal(with_memory(5, 1, 200000)->status, AUDIT_PASS);
    end();
}

/* Least delays to a neighbour; the last host's is `own`. */
static enum audit_status with_delays(const long long *others, uint32_t count, long long own,
                                     int bound)
{
    begin(count + 1, "");
    for (uint32_t i = 0; i <= count; i++) {
        const long long ns = i < count ? others[i] : own;
        for (int peer = 0; peer < 3; peer++) { /* of one it isn't known which end it is */
            char text[256];
            snprintf(text, sizeof(text),
                     "edge@eth1 p%d eth1=rail, hops 3, paths 4, alive 4, dead 0 out 0 in, sent "
                     "200000, lost 0, "
                     "least %lld out %lld in, late 9, bound %d",
                     peer, ns, ns, bound);
            also(i, text);
        }
    }
    judge();
    const enum audit_status is = (enum audit_status)result("be.lat.base", count)->status;
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(result("be.lat.base", i)->status, AUDIT_PASS);
    }
    end();
    return is;
}

/* The limit is the largest of a microsecond, three bounds, and six spreads. */
static void test_who_is_further(void **state)
{
    static const long long same[] = {2000, 2000, 2000, 2000},
                           apart[] = {19000, 19500, 20000, 20500, 21000};

    (void)state;
    assert_int_equal(with_delays(same, 4, 3000, 0), AUDIT_PASS);
    assert_int_equal(with_delays(same, 4, 3001, 0), AUDIT_FAIL);
    assert_int_equal(with_delays(same, 4, 3200, 400), AUDIT_PASS);
    assert_int_equal(with_delays(same, 4, 3201, 400), AUDIT_FAIL);
    assert_int_equal(with_delays(same, 4, 1, 0), AUDIT_PASS);
    /* the median is 20500, the median distance from it 1000 */
    assert_int_equal(with_delays(apart, 5, 29395, 0), AUDIT_PASS);
    assert_int_equal(with_delays(apart, 5, 29396, 0), AUDIT_FAIL);
}

/* A clock that is slower than the others is as bad as one that is faster. */
static void test_clocks_both_ways(void **state)
{
    static const long long rates[] = {10000, 10001, -10000, -10001};

    (void)state;
    for (int i = 0; i < 4; i++) {
        begin(5, "");
        for (uint32_t k = 0; k < 5; k++) {
            number(k, "clock.rate", k == 4 ? rates[i] : 0);
        }
        judge();
        assert_int_equal(result("cfg.time.freq", 4)->status, i % 2 == 0 ? AUDIT_PASS : AUDIT_FAIL);
        assert_int_equal(result("cfg.time.freq", 0)->status, AUDIT_PASS);
        end();
    }
}

/* `worst` of `count` hosts have equally many incidents: each of these is reported, or none. */
static enum audit_status with_history(uint32_t count, uint32_t worst, int score)
{
    begin(count, "");
    for (uint32_t i = 0; i < count; i++) {
        char text[64];
        snprintf(text, sizeof(text), "history=incidents 9, score %d", i < worst ? score : 10);
        also(i, text);
    }
    judge();
    const enum audit_status is = (enum audit_status)result("node.history", 0)->status;
    assert_int_equal(result("node.history", count - 1)->status, AUDIT_PASS);
    end();
    return is;
}

static void test_the_worst_of_a_hundred(void **state)
{
    (void)state;
    assert_int_equal(with_history(10, 1, 3000), AUDIT_WARN);
    assert_int_equal(with_history(10, 1, 2999), AUDIT_PASS);
    assert_int_equal(with_history(199, 1, 9000), AUDIT_WARN);
    assert_int_equal(with_history(199, 2, 9000), AUDIT_PASS);
    assert_int_equal(with_history(200, 2, 9000), AUDIT_WARN);
    assert_int_equal(with_history(200, 3, 9000), AUDIT_PASS);
    assert_int_equal(with_history(10, 10, 9000), AUDIT_PASS);
}

/* `failed` of `count` hosts fail a rule; `unread` have no fact. */
static struct audit_result *with_failures(uint32_t count, uint32_t failed, uint32_t unread)
{
    begin(count, "");
    for (uint32_t i = 0; i + unread < count; i++) {
        number(i, "os.numa_balancing", i < failed);
    }
    judge();
    return result("cfg.kern.numa_balancing", 0);
}

/* Two of fewer than twenty, or a twentieth of more, may fail. Beyond that the check itself is suspect. */
static void test_the_breaker(void **state)
{
    static const struct {
        uint32_t count, failed, unread;
        bool breaks;
    } cases[] = {{5, 2, 0, false},  {5, 3, 0, true},     {19, 2, 0, false}, {19, 3, 0, true},
                 {20, 1, 0, false}, {20, 2, 0, true},    {20, 2, 1, false}, {40, 2, 0, false},
                 {40, 3, 0, true},  {200, 10, 0, false}, {200, 11, 0, true}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        const struct audit_result *r =
            with_failures(cases[i].count, cases[i].failed, cases[i].unread);
        assert_int_equal(r->status, cases[i].breaks ? AUDIT_WARN : AUDIT_FAIL);
        assert_int_equal(r->suspect, cases[i].breaks);
        assert_true(!cases[i].breaks || strstr(r->note, "suspect") != NULL);
        end();
    }
    /* a host with many failed parts counts as one host */
    begin(5, "");
    also(0, "mount@/a=nfs|mount.answers@/a=0|mount@/b=nfs|mount.answers@/b=0|mount@/"
            "c=nfs|mount.answers@/c=0");
    for (uint32_t i = 1; i < 5; i++) {
        also(i, "mount@/a=nfs|mount.answers@/a=1");
    }
    judge();
    uint32_t counts[AUDIT_STATUS_COUNT];
    assert_int_equal(audit_worst(&a, "node.mounts", 0, counts), AUDIT_FAIL);
    assert_int_equal(counts[AUDIT_FAIL], 3);
    end();
    /* for a link: the shared part has failed, and the check isn't suspect */
    begin(
        5,
        "port@m/1=m/1|port.physical@m/1=2: Polling|port.state@m/1=1: DOWN|port.gids@m/1=3 v2 ip4");
    judge();
    assert_int_equal(result("be.link.initialized", 0)->status, AUDIT_FAIL);
    end();
}

static void test_young_hosts(void **state)
{
    (void)state;
    begin(4, "");
    also(0, "os.uptime=599|mem.swaps=1|disk@/=ext4|disk.used@/=86|os.numa_balancing=0");
    also(1, "os.uptime=600|mem.swaps=1|disk@/=ext4|disk.used@/=86");
    also(2, "os.uptime!no_permission|mem.swaps=1");
    judge();
    assert_int_equal(result("cfg.mem.swap", 0)->status, AUDIT_UNKNOWN);
    assert_int_equal(result("cfg.mem.swap", 0)->reason, REASON_YOUNG);
    assert_int_equal(result("node.disk", 0)->status, AUDIT_UNKNOWN);
    assert_int_equal(result("cfg.kern.numa_balancing", 0)->status, AUDIT_PASS);
    assert_int_equal(result("cfg.mem.swap", 1)->status, AUDIT_FAIL);
    assert_int_equal(result("node.disk", 1)->status, AUDIT_WARN);
    assert_int_equal(result("cfg.mem.swap", 2)->status, AUDIT_FAIL);
    end();
}

/* A site changes a check, a class, or a host, and the severity of a check. */
static void test_what_a_site_changes(void **state)
{
    static const struct audit_host_off off[] = {{"h2", "him"}, {"h1", "her"}};

    (void)state;
    begin(3, "mem.swaps=1|os.numa_balancing=1");
    site.hosts_off = off;
    site.hosts_off_count = 2;
    setting("cfg.kern.numa_balancing")->off = "somebody";
    setting("cfg.mem.swap")->has_severity = true;
    setting("cfg.mem.swap")->severity = SEVERITY_BLOCK;
    site.class_off[COST_PACKETS] = "them";
    judge();
    assert_string_equal(result("cfg.kern.numa_balancing", 0)->note, "off by somebody");
    assert_int_equal(result("cfg.kern.numa_balancing", 0)->status, AUDIT_SKIP);
    assert_int_equal(result("cfg.mem.swap", 0)->status, AUDIT_FAIL);
    assert_int_equal(result("cfg.mem.swap", 0)->severity, SEVERITY_BLOCK);
    assert_true(result("cfg.mem.swap", 0)->overridden);
    assert_false(result("cfg.mem.shm", 0)->overridden);
    assert_string_equal(result("cfg.mem.swap", 1)->note, "off by her");
    assert_string_equal(result("cfg.mem.swap", 2)->note, "off by him");
    for (uint32_t i = 0; i < a.count; i++) {
        const struct audit_result *r = &a.results[i];
        assert_true((r->check->cost == COST_PACKETS) == (strcmp(r->note, "off by them") == 0));
    }
    end();
}

/* Each reason why a sheet is not judged. The first that holds is given. */
static void test_sheets_that_tell_nothing(void **state)
{
    (void)state;
    begin(5, "mem.swaps=1");
    site.stale_ns = 100;
    site.now_utc_ns = 1000;
    for (uint32_t i = 0; i < 5; i++) {
        sheets[i]->at_utc_ns = i == 1 ? 899 : 900;
    }
    sheets[2]->left_out = 1;
    sheets[3]->missing = REASON_BUSY;
    sheets[3]->missing_note = "a job";
    sheets[4]->missing = REASON_TIMEOUT;
    judge();
    assert_int_equal(result("cfg.mem.swap", 0)->status, AUDIT_FAIL);
    static const struct {
        enum audit_reason reason;
        const char *note;
    } why[] = {{REASON_STALE, "the sheet is too old"},
               {REASON_NO_SOURCE, "the sheet had no room for all facts"},
               {REASON_BUSY, "a job"},
               {REASON_TIMEOUT, ""}};
    for (uint32_t i = 1; i < 5; i++) {
        assert_int_equal(result("cfg.mem.swap", i)->status, AUDIT_UNKNOWN);
        assert_int_equal(result("cfg.mem.swap", i)->reason, why[i - 1].reason);
        assert_string_equal(result("cfg.mem.swap", i)->note, why[i - 1].note);
    }
    end();
    begin(1, "mem.swaps=1"); /* any age is fine */
    site.now_utc_ns = INT64_MAX;
    judge();
    assert_int_equal(result("cfg.mem.swap", 0)->status, AUDIT_FAIL);
    end();
}

/* One host alone, without other hosts' sheets: checks that only compare are left out, unless the site declares a value. */
static void test_rules_alone(void **state)
{
    (void)state;
    begin(1, "mem.total=5|os.bios=new|os.kernel=6.1.0|mem.swaps=0");
    site.rules_alone = true;
    setting("cfg.sw.kernel")->declared = "6.1.0";
    judge();
    assert_int_equal(result("cfg.mem.size", 0)->status, AUDIT_PASS);
    assert_string_equal(result("cfg.mem.size", 0)->note,
                        "not compared with others: none are at hand");
    assert_int_equal(result("cfg.fw.bios", 0)->status, AUDIT_SKIP);
    assert_int_equal(result("cfg.sw.kernel", 0)->status, AUDIT_PASS);
    assert_int_equal(result("cfg.mem.swap", 0)->status, AUDIT_PASS);
    setting("cfg.sw.kernel")->declared = "6.1.1";
    assert_int_equal(audit_judge(&a), 0);
    assert_int_equal(result("cfg.sw.kernel", 0)->status, AUDIT_FAIL);
    assert_string_equal(result("cfg.sw.kernel", 0)->expected, "6.1.1");
    end();
}

/* A name, or the beginning of names: the first entry that matches. A host without a product is not compared. */
static void test_cohorts_of_a_site(void **state)
{
    static const struct audit_cohort cohorts[] = {
        {"h1", "one"}, {"h1*", "tens"}, {"", "nobody"}, {"*", "rest"}};
    const struct audit_settings s = {.cohorts = cohorts, .cohort_count = 4},
                                few = {.cohorts = cohorts, .cohort_count = 2};

    (void)state;
    assert_string_equal(audit_declared_cohort(&s, "h1"), "one");
    assert_string_equal(audit_declared_cohort(&s, "h10"), "tens");
    assert_string_equal(audit_declared_cohort(&s, "h2"), "rest");
    assert_null(audit_declared_cohort(&few, "h2"));
    assert_null(audit_declared_cohort(&few, "h"));
    begin(6, "os.bios=new");
    also(5, "os.product!no_permission");
    judge();
    assert_int_equal(result("cfg.fw.bios", 5)->status, AUDIT_UNKNOWN);
    assert_int_equal(result("cfg.fw.bios", 5)->reason, REASON_NO_PERMISSION);
    assert_true(strstr(result("cfg.fw.bios", 5)->note, "cohort is not known") != NULL);
    assert_int_equal(result("cfg.fw.bios", 0)->cohort, 5);
    end();
}

/* If there is no room, the audit reports that, and nothing is written beyond the end. */
static void test_no_room(void **state)
{
    (void)state;
    begin(6, "os.bios=new|mem.swaps=1");
    judge();
    const uint32_t whole = a.count;
    const size_t text = a.text_used;
    a.capacity = whole - 1;
    assert_int_equal(audit_judge(&a), -28);
    assert_true(a.count < whole);
    a.capacity = 65536;
    a.text_size = text;
    assert_int_equal(audit_judge(&a), 0);
    assert_int_equal(a.text_used, text);
    a.text_size = text - 1;
    assert_int_equal(audit_judge(&a), -28);
    assert_true(a.text_used < text);
    a.text_size = text;
    a.item_capacity = 6;
    assert_int_equal(audit_judge(&a), 0);
    a.item_capacity = 5;
    assert_int_equal(audit_judge(&a), -28);
    end();
}

/* Whoever opens the machine looks for a card, not for an address. */
static void test_the_gate_names_the_card(void **state)
{
    static const struct {
        const char *facts, *line;
    } cases[] = {
        {"net.pci@eth3=0000:3b:00.0|net.pci@eth4=0000:3c:00.0|rdma.pci@mlx5_2=0000:3b:00.0|"
         "pci.slot@0000:3b:00.0=5",
         "cfg.pcie.width 0000:3b:00.0 (eth3, mlx5_2, slot 5): "},
        {"gpu@0000:1b:00.0=0000:1b:00.0|gpu@0000:3b:00.0=0000:3b:00.0|gpu.model@0000:3b:00.0=H100",
         "cfg.pcie.width 0000:3b:00.0 (GPU 1 by address, H100): "},
        {"net.pci@eth3=0000:3c:00.0", "cfg.pcie.width 0000:3b:00.0: "}};

    (void)state;
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        char line[GATE_LINE_SIZE];
        begin(1, "pci@0000:3b:00.0=0000:3b:00.0|pci.above@0000:3b:00.0=0000:3a:00.0|"
                 "pci.width@0000:3b:00.0=8|pci.width_max@0000:3b:00.0=16|"
                 "pci.width_max@0000:3a:00.0=16");
        also(0, cases[i].facts);
        judge();
        const struct gate g = gate_of(&a, 0);
        assert_int_equal(g.status, AUDIT_FAIL);
        gate_line(&g, line);
        if (strncmp(line, cases[i].line, strlen(cases[i].line)) != 0) {
            fail_msg("\"%s\", not \"%s\"", line, cases[i].line);
        }
        end();
    }
}

/* A bridge is named by what is below it. What is too long for a line is cut. */
static void test_names_of_devices(void **state)
{
    char text[DEVICE_NAME_SIZE];

    (void)state;
    begin(1, "pci.above@0000:3b:00.0=0000:3a:00.0|net.pci@eth3=0000:3b:00.0|pci.above@0000:5b:00.0="
             "0000:5a:00.0");
    for (int i = 0; i < 12; i++) {
        char fact[64];
        snprintf(fact, sizeof(fact), "net.pci@enp91s0f0np%d=0000:5b:00.0", i);
        also(0, fact);
    }
    judge();
    assert_string_equal(device_name(sheets[0], "0000:3a:00.0", text), "bridge of eth3");
    assert_string_equal(device_name(sheets[0], "0000:99:00.0", text), "");
    assert_string_equal(device_name(sheets[0], "", text), "");
    assert_string_equal(device_name(sheets[0], "eth3", text), "");
    assert_int_equal(strlen(device_name(sheets[0], "0000:5b:00.0", text)), DEVICE_NAME_SIZE - 1);
    assert_int_equal(strlen(device_name(sheets[0], "0000:5a:00.0", text)), DEVICE_NAME_SIZE - 1);
    end();
}

/* What a scheduler is told: the worst of what blocks, and of which it is unread for one reason. */
static void test_the_gate(void **state)
{
    char line[GATE_LINE_SIZE];

    (void)state;
    begin(2, "mount@/a=nfs|mount.answers@/a=0");
    sheets[1]->missing = REASON_BUSY;
    sheets[1]->missing_note = "a job";
    judge();
    struct gate g = gate_of(&a, 0);
    assert_int_equal(g.status, AUDIT_FAIL);
    assert_false(g.unread);
    assert_string_equal(gate_line(&g, line), "node.mounts /a: an error, expected an answer");
    g = gate_of(&a, 1);
    assert_int_equal(g.status, AUDIT_UNKNOWN);
    assert_true(g.unread);
    assert_string_equal(gate_line(&g, line), "not read (busy): a job");
    g = gate_of(&a, 2);
    assert_int_equal(g.status, AUDIT_UNKNOWN);
    assert_string_equal(gate_line(&g, line), "nothing was judged");
    uint32_t block = 0;
    for (uint32_t i = 0; i < a.count; i++) {
        struct audit_result *r = &a.results[i];
        block += r->sheet == 0 && r->severity == SEVERITY_BLOCK;
        r->status = r->severity == SEVERITY_BLOCK ? AUDIT_PASS : AUDIT_FAIL;
    }
    result("be.conn.matrix", 0)->status = AUDIT_SKIP;
    g = gate_of(&a, 0);
    assert_int_equal(g.status, AUDIT_PASS);
    snprintf(names[0], sizeof(names[0]), "%u ", block - 1);
    assert_int_equal(strncmp(gate_line(&g, line), names[0], strlen(names[0])), 0);
    assert_true(strstr(line, "checks pass, 1 do not apply") != NULL);
    struct audit_result *r = result("be.conn.matrix", 0);
    r->status = AUDIT_WARN;
    r->subject = "";
    r->found = "4";
    r->expected = "";
    r->basis = "as all";
    r->note = "look";
    g = gate_of(&a, 0);
    assert_int_equal(g.status, AUDIT_WARN);
    assert_string_equal(gate_line(&g, line), "be.conn.matrix: 4, as all; look");
    r->found = "";
    r->basis = "";
    assert_string_equal(gate_line(&g, line), "be.conn.matrix: look");
    r->expected = "5";
    r->note = "";
    assert_string_equal(gate_line(&g, line), "be.conn.matrix: expected 5");
    r->status = AUDIT_UNKNOWN; /* a single unknown check doesn't mean that the host is unread */
    assert_false(gate_of(&a, 0).unread);
    end();
}

/* Devices are compared with those of the same name only. */
static void test_each_place_by_itself(void **state)
{
    (void)state;
    begin(6, "pci@a=a|pci.mps@a=256|pci@b=b");
    for (uint32_t i = 0; i < 6; i++) {
        also(i, i == 3 ? "pci.mps@b=256" : "pci.mps@b=512");
    }
    judge();
    for (uint32_t i = 0; i < a.count; i++) {
        const struct audit_result *r = &a.results[i];
        if (strcmp(r->check->id, "cfg.pcie.mps") == 0) {
            assert_int_equal(r->status, r->sheet == 3 && strcmp(r->subject, "b") == 0 ? AUDIT_FAIL
                                                                                      : AUDIT_PASS);
            assert_int_equal(r->cohort, 6);
        }
    }
    end();
}

/* Interfaces of so many hosts, each on its rail's switch, except those of the first host. */
static void with_switches(uint32_t count, const char *one, const char *two)
{
    char text[128];

    begin(count, "");
    for (uint32_t i = 0; i < count; i++) {
        snprintf(text, sizeof(text), "net.switch@eth1=%s|net.switch@eth2=%s", i == 0 ? one : "A",
                 i == 0 ? two : "B");
        also(i, text);
    }
    judge();
}

static const struct audit_result *of_interface(const char *check, uint32_t host,
                                               const char *subject)
{
    for (uint32_t i = 0; i < a.count; i++) {
        const struct audit_result *r = &a.results[i];
        if (r->sheet == host && strcmp(r->check->id, check) == 0 &&
            strcmp(r->subject, subject) == 0) {
            return r;
        }
    }
    fail_msg("%s has no result of %s", check, subject);
    return NULL;
}

/* With five interfaces or more the switch of a rail is known. Two interfaces on each other's switch are exchanged; one alone is
 * on the wrong switch. */
static void test_rails(void **state)
{
    (void)state;
    with_switches(6, "A", "B");
    assert_int_equal(of_interface("be.topo.rail", 0, "eth1")->status, AUDIT_PASS);
    assert_int_equal(of_interface("be.topo.swap", 0, "eth2")->status, AUDIT_PASS);
    end();
    with_switches(6, "B", "A");
    assert_int_equal(of_interface("be.topo.rail", 0, "eth1")->status, AUDIT_SKIP);
    assert_int_equal(of_interface("be.topo.swap", 0, "eth1")->status, AUDIT_FAIL);
    assert_string_equal(of_interface("be.topo.swap", 0, "eth1")->found, "exchanged with eth2");
    assert_int_equal(of_interface("be.topo.swap", 0, "eth2")->status, AUDIT_FAIL);
    assert_int_equal(of_interface("be.topo.swap", 1, "eth2")->status, AUDIT_PASS);
    end();
    with_switches(6, "B", "B");
    assert_int_equal(of_interface("be.topo.rail", 0, "eth1")->status, AUDIT_FAIL);
    assert_string_equal(of_interface("be.topo.rail", 0, "eth1")->expected,
                        "there hang eth2 of the other hosts");
    assert_int_equal(of_interface("be.topo.swap", 0, "eth1")->status, AUDIT_PASS);
    assert_int_equal(of_interface("be.topo.rail", 0, "eth2")->status, AUDIT_PASS);
    end();
    with_switches(6, "none", "B");
    assert_int_equal(of_interface("be.topo.rail", 0, "eth1")->status, AUDIT_UNKNOWN);
    end();
    with_switches(4, "A", "B"); /* with four it isn't known */
    assert_int_equal(of_interface("be.topo.rail", 0, "eth1")->status, AUDIT_SKIP);
    end();
    with_switches(5, "A", "B");
    assert_int_equal(of_interface("be.topo.rail", 0, "eth1")->status, AUDIT_PASS);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_who_differs),
                                       cmocka_unit_test(test_who_has_less),
                                       cmocka_unit_test(test_who_is_further),
                                       cmocka_unit_test(test_clocks_both_ways),
                                       cmocka_unit_test(test_the_worst_of_a_hundred),
                                       cmocka_unit_test(test_the_breaker),
                                       cmocka_unit_test(test_young_hosts),
                                       cmocka_unit_test(test_what_a_site_changes),
                                       cmocka_unit_test(test_sheets_that_tell_nothing),
                                       cmocka_unit_test(test_rules_alone),
                                       cmocka_unit_test(test_cohorts_of_a_site),
                                       cmocka_unit_test(test_no_room),
                                       cmocka_unit_test(test_the_gate_names_the_card),
                                       cmocka_unit_test(test_names_of_devices),
                                       cmocka_unit_test(test_the_gate),
                                       cmocka_unit_test(test_each_place_by_itself),
                                       cmocka_unit_test(test_rails)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
