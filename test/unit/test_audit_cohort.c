/* test_audit_cohort.c: which hosts decide what is usual: each has one vote, however many parts it has or claims. If two hosts
 * have one identity, whose it is. Ports that half of the hosts use. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audit/judge_kit.h"
#include "base/bug.h"
#include "core/audit/judge.h"
#include "service/audit/judged.h"
#include "service/audit/sheet.h"

enum { HOSTS = 7, PARTS = 4000 };

struct world {
    struct sheet *sheets[HOSTS];
    struct sheet all[HOSTS];
    struct audit audit;
    char names[HOSTS][16];
};

static void add(struct sheet *s, enum fact_id id, const char *subject, const char *value)
{
    sheet_add(s, &(struct fact){(uint16_t)id, FACT_VALUE, subject, value, ""});
}

static struct world *begin(void)
{
    struct world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    for (int i = 0; i < HOSTS; i++) {
        snprintf(w->names[i], sizeof(w->names[i]), "h%d", i);
        w->sheets[i] = sheet_new();
        assert_non_null(w->sheets[i]);
        w->sheets[i]->host = w->names[i];
        add(w->sheets[i], FACT_OS_PRODUCT, "", "Made up");
        add(w->sheets[i], FACT_OS_UPTIME, "", "99999");
    }
    return w;
}

static void judge(struct world *w)
{
    for (int i = 0; i < HOSTS; i++) {
        sheet_finish(w->sheets[i]);
        w->all[i] = *w->sheets[i];
    }
    judge_sheets(&w->audit, w->all, HOSTS);
}

static void done(struct world *w)
{
    for (int i = 0; i < HOSTS; i++) {
        sheet_free(w->sheets[i]);
    }
    judge_done(&w->audit);
    free(w);
}

static enum audit_status worst(const struct world *w, const char *check, uint32_t host)
{
    uint32_t counts[AUDIT_STATUS_COUNT];

    return audit_worst(&w->audit, check, host, counts);
}

static void add_gpu(struct sheet *s, int number, const char *vbios)
{
    char subject[16];

    snprintf(subject, sizeof(subject), "gpu%d", number);
    add(s, FACT_GPU, subject, subject);
    add(s, FACT_GPU_MODEL, subject, "Made up GPU");
    add(s, FACT_GPU_VBIOS, subject, vbios);
}

/* The last host has more GPUs than all others together, and another video BIOS: it is the host that differs. */
static void test_hosts_vote(void **state)
{
    struct world *w = begin();

    for (int i = 0; i < HOSTS - 1; i++) {
        add_gpu(w->sheets[i], 0, "96.00.89");
    }
    for (int k = 0; k < 40; k++) {
        add_gpu(w->sheets[HOSTS - 1], k, "1.1.1");
    }
    judge(w);
    for (uint32_t i = 0; i < HOSTS - 1; i++) {
        assert_int_equal(worst(w, "cfg.fw.gpu", i), AUDIT_PASS);
    }
    assert_int_equal(worst(w, "cfg.fw.gpu", HOSTS - 1), AUDIT_FAIL);
    done(w);
}

/* One part of one host, and two of eight on one host alone. */
static void test_parts_of_hosts(void **state)
{
    struct world *w = begin();

    for (int i = 0; i < HOSTS; i++) {
        for (int k = 0; k < 8; k++) {
            add_gpu(w->sheets[i], k, i == 2 && k == 5 ? "old" : "new");
        }
    }
    judge(w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(w, "cfg.fw.gpu", i), i == 2 ? AUDIT_FAIL : AUDIT_PASS);
    }
    done(w);
    w = begin();
    for (int k = 0; k < 8; k++) {
        add_gpu(w->sheets[0], k, k < 2 ? "old" : "new");
    }
    judge(w);
    assert_int_equal(worst(w, "cfg.fw.gpu", 0), AUDIT_WARN); /* a quarter */
    done(w);
}

static void add_edge(struct sheet *s, int number, long long delay_ns)
{
    char subject[32], text[160];

    snprintf(subject, sizeof(subject), "eth1 p%d eth1", number);
    snprintf(text, sizeof(text),
             "rail, hops 3, paths 4, alive 4, dead 0 out 0 in, sent 200000, lost 0, least %lld out "
             "%lld in, late 900, bound 50",
             delay_ns, delay_ns);
    add(s, FACT_EDGE, subject, text);
}

/* A host with many neighbours and long ways doesn't make long ways usual. */
static void test_medians_by_host(void **state)
{
    struct world *w = begin();

    for (int i = 0; i < HOSTS - 1; i++) {
        for (int k = 0; k < 3; k++) {
            add_edge(w->sheets[i], k, 2000 + k);
        }
    }
    for (int k = 0; k < 60; k++) {
        add_edge(w->sheets[HOSTS - 1], k, 90000 + k);
    }
    judge(w);
    for (uint32_t i = 0; i < HOSTS - 1; i++) {
        assert_int_equal(worst(w, "be.lat.base", i), AUDIT_PASS);
    }
    assert_int_equal(worst(w, "be.lat.base", HOSTS - 1), AUDIT_FAIL);
    done(w);
}

/* The host that has had an identity for longer is not the copy, whichever host claims it now. */
static void test_first_owner(void **state)
{
    const int64_t day = INT64_C(86400000000000);
    /* of hosts 0 and 1: since when; then the results of both */
    static const struct {
        int64_t since[2];
        enum audit_status status[2];
    } cases[] = {{{100, 2}, {AUDIT_FAIL, AUDIT_WARN}}, /* days */
                 {{3, 3}, {AUDIT_FAIL, AUDIT_FAIL}},   /* of one look */
                 {{0, 5}, {AUDIT_FAIL, AUDIT_FAIL}}};  /* unknown */

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct world *w = begin();
        for (int k = 0; k < HOSTS; k++) {
            char id[16];
            snprintf(id, sizeof(id), "machine%d", k < 2 ? 0 : k);
            add(w->sheets[k], FACT_OS_MACHINE_ID, "", id);
            w->sheets[k]->own_since_ns = k < 2 ? cases[i].since[k] * day : day;
        }
        judge(w);
        for (uint32_t k = 0; k < HOSTS; k++) {
            assert_int_equal(worst(w, "node.identity", k), k < 2 ? cases[i].status[k] : AUDIT_PASS);
        }
        done(w);
    }
}

/* As many other hosts use the port as don't: it isn't known whether it is used. */
static void test_tie_of_ports(void **state)
{
    for (int up = 0; up < HOSTS; up++) {
        struct world *w = begin();
        for (int i = 0; i < HOSTS; i++) {
            const bool is_up = i > 0 && i <= up;
            add(w->sheets[i], FACT_PORT, "mlx5_1/1", "1");
            add(w->sheets[i], FACT_PORT_STATE, "mlx5_1/1", is_up ? "4: ACTIVE" : "1: DOWN");
            add(w->sheets[i], FACT_PORT_PHYSICAL, "mlx5_1/1", is_up ? "5: LinkUp" : "2: Polling");
        }
        judge(w);
        assert_int_equal(worst(w, "be.link.initialized", 0), up < 3    ? AUDIT_SKIP
                                                             : up == 3 ? AUDIT_UNKNOWN
                                                                       : AUDIT_FAIL);
        done(w);
    }
}

/* A host with very many parts: there is room for its results, and the other hosts' results are there. */
static void test_room(void **state)
{
    struct world *w = begin();
    struct audit a;

    add(w->sheets[1], FACT_TIME_SOURCE, "", "tsc");
    for (int k = 0; k < PARTS; k++) {
        add_edge(w->sheets[0], k, 2000);
    }
    for (int i = 0; i < HOSTS; i++) {
        sheet_finish(w->sheets[i]);
        w->all[i] = *w->sheets[i];
    }
    assert_int_equal(judged(&a, w->all, HOSTS, &audit_usual), 0);
    w->audit = a;
    assert_true(a.count > 6u * (PARTS));
    assert_int_equal(worst(w, "be.conn.matrix", 0), AUDIT_PASS);
    assert_int_equal(worst(w, "cfg.time.source", 1), AUDIT_PASS);
    done(w);
}

/* A site's limits also apply to comparisons with others. */
static void test_limits_of_a_site(void **state)
{
    struct world *w = begin();
    struct check_setting settings[CHECKS_MAX] = {{0}};
    struct audit_settings changed = audit_usual;

    for (int i = 0; i < HOSTS; i++) {
        add(w->sheets[i], FACT_MEM_TOTAL, "", i == 2 ? "95000" : "100000");
        add(w->sheets[i], FACT_HISTORY, "",
            i == 4 ? "incidents 5, score 4100" : "incidents 1, score 900");
    }
    judge(w);
    assert_int_equal(worst(w, "cfg.mem.size", 2), AUDIT_FAIL);
    assert_int_equal(worst(w, "cfg.mem.size", 3), AUDIT_PASS);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(w, "node.history", i), i == 4 ? AUDIT_WARN : AUDIT_PASS);
    }
    settings[check_number(check_by_id("cfg.mem.size"))] =
        (struct check_setting){.has_fail = true, .fail = 0.1};
    settings[check_number(check_by_id("node.history"))] =
        (struct check_setting){.has_warn = true, .warn = 5};
    changed.checks = settings;
    w->audit.settings = &changed;
    assert_int_equal(audit_judge(&w->audit), 0);
    assert_int_equal(worst(w, "cfg.mem.size", 2), AUDIT_PASS);
    assert_int_equal(worst(w, "node.history", 4), AUDIT_PASS);
    done(w);
}

/* Two hosts with equally many are no lemons: the fleet is at fault. */
static void test_many_incidents_are_nobodys(void **state)
{
    struct world *w = begin();

    for (int i = 0; i < HOSTS; i++) {
        add(w->sheets[i], FACT_HISTORY, "",
            i < 2 ? "incidents 9, score 7000" : "incidents 0, score 0");
    }
    judge(w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(w, "node.history", i), AUDIT_PASS);
    }
    done(w);
}

static const struct audit_result *list_of(const struct world *w, uint32_t host)
{
    for (uint32_t i = 0; i < w->audit.count; i++) {
        const struct audit_result *r = &w->audit.results[i];
        if (r->sheet == host && r->subject[0] == '\0' && strcmp(r->check->id, "node.mounts") == 0) {
            return r;
        }
    }
    fail_msg("host %u has no result of its mounts", host);
    return NULL;
}

static void add_mount(struct sheet *s, const char *place, const char *kind)
{
    add(s, FACT_MOUNT, place, kind);
    add(s, FACT_MOUNT_ANSWERS, place, "1");
}

/* Of several places the worst counts; what jobs and containers mount is no host's fault. */
static void test_mounts_the_worst_counts(void **state)
{
    struct world *w = begin();

    for (int i = 0; i < HOSTS; i++) {
        if (i != 3 && i != 4) { /* two of seven: a warning */
            add_mount(w->sheets[i], "/apps", "nfs4");
        }
        if (i != 3) {
            add_mount(w->sheets[i], "/data", "nfs4");
        }
        if (i != 5) { /* it is idle */
            add_mount(w->sheets[i], "/gcs", "fuse.gcsfuse");
            add_mount(w->sheets[i], "/var/lib/kubelet/plugins/nfs/globalmount", "nfs4");
        }
    }
    judge(w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(list_of(w, i)->status, i == 3   ? AUDIT_FAIL
                                                : i == 4 ? AUDIT_WARN
                                                         : AUDIT_PASS);
    }
    assert_string_equal(list_of(w, 3)->found, "/data is not mounted");
    done(w);
}

/* A mount that most hosts have is missed where it isn't there: also on a host without any. One of a single host is nothing. */
static void test_mounts_of_the_others(void **state)
{
    struct world *w = begin();

    for (int i = 0; i < HOSTS; i++) {
        if (i != 3) {
            add_mount(w->sheets[i], "/data", "nfs4");
        }
        if (i < 2 || i > 3) { /* of host 2 autofs would mount it */
            add_mount(w->sheets[i], "/users/all", "nfs4");
        }
    }
    add_mount(w->sheets[2], "/users", "autofs");
    add_mount(w->sheets[3], "/users", "autofs");
    add_mount(w->sheets[5], "/mnt/anna", "fuse.sshfs");
    judge(w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        const struct audit_result *r = list_of(w, i);
        assert_int_equal(r->status, i == 3 ? AUDIT_FAIL : AUDIT_PASS);
        assert_int_equal(r->cohort, HOSTS);
    }
    assert_string_equal(list_of(w, 3)->found, "/data is not mounted");
    assert_string_equal(list_of(w, 3)->basis, "as 6 of 7 have it");
    done(w);
    /* without any mount, and where none is usual */
    for (uint32_t have = 0; have < HOSTS; have++) {
        w = begin();
        for (uint32_t i = 0; i < HOSTS; i++) {
            if (i < have) {
                add_mount(w->sheets[i], "/data", "nfs4");
            } else {
                sheet_add(w->sheets[i], &(struct fact){FACT_MOUNT, FACT_ABSENT, "", "", "x"});
            }
        }
        judge(w);
        for (uint32_t i = 0; i < HOSTS; i++) {
            assert_int_equal(list_of(w, i)->status, i < have                ? AUDIT_PASS
                                                    : have == HOSTS - 1     ? AUDIT_FAIL
                                                    : have * 3 >= HOSTS * 2 ? AUDIT_WARN
                                                                            : AUDIT_SKIP);
        }
        done(w);
    }
}

/* A module that receives half of the light of others of its part is a warning; of another part it may be usual. */
static void test_light_of_modules(void **state)
{
    static const char *const light[HOSTS] = {"10000", "9800", "10300", "10000",
                                             "4900",  "5100", "10000"};
    struct world *w = begin();

    for (int i = 0; i < HOSTS; i++) {
        add(w->sheets[i], FACT_NET, "eth0", "eth0");
        add(w->sheets[i], FACT_NET_MODULE, "eth0", "A");
        add(w->sheets[i], FACT_NET_MODULE_ALARM, "eth0", "none");
        add(w->sheets[i], FACT_NET_MODULE_RX, "eth0", light[i]);
        add(w->sheets[i], FACT_NET, "eth1", "eth1");
        add(w->sheets[i], FACT_NET_MODULE, "eth1", "B");
        add(w->sheets[i], FACT_NET_MODULE_ALARM, "eth1", "none");
        add(w->sheets[i], FACT_NET_MODULE_RX, "eth1", "2000");
    }
    judge(w);
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(w, "be.link.optics", i), i == 4 ? AUDIT_WARN : AUDIT_PASS);
    }
    done(w);
}

/* A site declares by cohort: trainers have two GPUs, storage hosts none; for other hosts nothing is declared. */
static void test_declared_by_cohort(void **state)
{
    static const struct audit_cohort cohorts[] = {{"h0", "trainers"},
                                                  {"h1", "trainers"},
                                                  {"h2", "storage"},
                                                  {"h3", "storage"},
                                                  {"h4", "login"}};
    static const struct audit_declared by[] = {{"trainers", "2"}, {"storage", "0"}};
    struct world *w = begin();
    struct check_setting settings[CHECKS_MAX] = {{0}};
    struct audit_settings site = audit_usual;

    for (int i = 0; i < HOSTS; i++) {
        for (int k = 0; k < (i < 1 ? 2 : i < 2 ? 1 : 0); k++) {
            add_gpu(w->sheets[i], k, "1");
        }
        if (i == 3) {
            add_gpu(w->sheets[i], 0, "1");
        } else if (i > 1) {
            sheet_add(w->sheets[i], &(struct fact){FACT_GPU, FACT_ABSENT, "", "", "x"});
        }
    }
    settings[check_number(check_by_id("cfg.gpu.count"))] =
        (struct check_setting){.declared_by = by, .declared_by_count = 2};
    site.checks = settings;
    site.cohorts = cohorts;
    site.cohort_count = ARRAY_COUNT(cohorts);
    judge(w);
    w->audit.settings = &site;
    w->audit.kinds = calloc(HOSTS, sizeof(*w->audit.kinds));
    assert_int_equal(audit_judge(&w->audit), 0);
    static const enum audit_status expected[HOSTS] = {AUDIT_PASS,   AUDIT_FAIL,    AUDIT_PASS,
                                                      AUDIT_FAIL,   AUDIT_UNKNOWN, AUDIT_UNKNOWN,
                                                      AUDIT_UNKNOWN};
    for (uint32_t i = 0; i < HOSTS; i++) {
        assert_int_equal(worst(w, "cfg.gpu.count", i), expected[i]);
    }
    done(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hosts_vote),
                                       cmocka_unit_test(test_parts_of_hosts),
                                       cmocka_unit_test(test_medians_by_host),
                                       cmocka_unit_test(test_first_owner),
                                       cmocka_unit_test(test_tie_of_ports),
                                       cmocka_unit_test(test_room),
                                       cmocka_unit_test(test_limits_of_a_site),
                                       cmocka_unit_test(test_many_incidents_are_nobodys),
                                       cmocka_unit_test(test_mounts_of_the_others),
                                       cmocka_unit_test(test_mounts_the_worst_counts),
                                       cmocka_unit_test(test_light_of_modules),
                                       cmocka_unit_test(test_declared_by_cohort)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
