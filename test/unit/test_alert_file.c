/* alerts.yaml: its valid content, and an error with its place for each mistake. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/alert/file.h"

static struct alert_file file;

static void refused(const char *text, const char *complaint)
{
    struct config_error error = {""};

    assert_int_equal(alert_file_parse("a.yaml", text, strlen(text), &file, &error), -22);
    if (strncmp(error.text, complaint, strlen(complaint)) != 0) {
        fail_msg("said:   %s\nwanted: %s", error.text, complaint);
    }
}
static void taken(const char *text)
{
    struct config_error error = {""};

    if (alert_file_parse("a.yaml", text, strlen(text), &file, &error) < 0) {
        fail_msg("%s", error.text);
    }
}
static const struct alert_rule *rule(const char *name)
{
    const int at = alert_file_find(&file, name);

    assert_true(at >= 0);
    return &file.rules[at];
}

static void the_default_rules_are_sound(void **state)
{
    struct config_error error;

    if (alert_file_parse("defaults", NULL, 0, &file, &error) < 0) {
        fail_msg("%s", error.text);
    }
    for (size_t k = 0; k < file.rule_count; k++) {
        assert_null(alert_rule_check(&file.rules[k]));
    }
    assert_int_equal(rule("link-flaps")->limit, 8);
    assert_int_equal(rule("link-flaps")->within.ns, 3600 * NS_PER_S);
}

static void own_rules_add_replace_and_remove(void **state)
{
    taken("");
    size_t defaults = file.rule_count;
    taken("rules:\n- {name: link-speed, enabled: no}\n"
          "- {name: link-flaps, count: link.downs, above: 3, within: 10min, severity: warning}\n"
          "- {name: mine, value: path.owd_p50, per: fleet, of: mean, above: 10us, clear: 8us, for: "
          "1h}\n"
          "- {name: share, value: path.loss, per: rail, of: share, above: 0.1%, share: 2.5%}\n");
    assert_int_equal(file.rule_count, defaults + 1);
    assert_int_equal(alert_file_find(&file, "link-speed"), -1);
    assert_int_equal(rule("link-flaps")->limit, 3);
    assert_int_equal(rule("mine")->limit, 10000);
    assert_int_equal(rule("mine")->aggregate, ALERT_MEAN);
    assert_int_equal(rule("share")->limit, 1000);
    assert_true(fabs(rule("share")->share - 0.025) < 1e-9);
    taken("defaults: no\n");
    assert_int_equal(file.rule_count, 0);
}

static void receivers_routes_and_windows(void **state)
{
    char secret[] = "/tmp/foliot-alert-XXXXXX", text[2048];
    const int fd = mkstemp(secret);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, "Bearer s3cret\nrest", 18), 18);
    close(fd);
    snprintf(text, sizeof(text),
             "receivers:\n"
             "- name: hook\n  webhook: {url: 'http://127.0.0.1:1/x', authorization_file: %s}\n"
             "- name: am\n  alertmanager: {url: 'http://127.0.0.1:9093'}\n"
             "- name: mail\n  email: {server: 'smtp://127.0.0.1:25', from: a@b, to: [c@d, e@f]}\n"
             "- name: run\n  command: [/bin/echo, hello]\n  resolved: no\n"
             "routes:\n- {severity: page, to: [hook, mail], repeat: 4h, escalate: [{after: 15min, "
             "to: [run]}]}\n"
             "- {to: [am]}\n"
             "deadman: {every: 1min, to: [am]}\n"
             "maintenance:\n- {name: weekly, hosts: 'gpu-*', from: 2026-11-24T02:00Z, lasts: 2h, "
             "every: 7d}\n"
             "engine: {keep: 2min, promote: 4}\nlink: https://foliot.example:7639\n",
             secret);
    taken(text);
    unlink(secret);
    assert_string_equal(file.receivers[0].authorization, "Bearer s3cret");
    assert_int_equal(file.receiver_count, 4);
    assert_false(file.receivers[3].resolved);
    assert_int_equal(file.routes[0].receivers, 1 | 4);
    assert_int_equal(file.routes[0].severity, ALERT_PAGE);
    assert_int_equal(file.routes[0].steps[0].receivers, 8);
    assert_int_equal(file.routes[1].severity, ALERT_WARNING);
    assert_int_equal(file.heartbeat_receivers, 2);
    assert_int_equal(file.windows[0].from_utc_ns, 1795485600LL * NS_PER_S);
    assert_int_equal(file.windows[0].until_utc_ns - file.windows[0].from_utc_ns, 7200 * NS_PER_S);
    assert_true(alert_silence_active(&file.windows[0],
                                     1795485600LL * NS_PER_S + 14 * 86400 * NS_PER_S, NULL));
    assert_int_equal(file.promote, 4);
}

static void mistakes_are_named_with_their_place(void **state)
{
    refused("rules:\n- {name: x, value: path.los, above: 1}\n", "a.yaml:2:20: expected a metric");
    refused("rules:\n- {name: x, value: path.loss, above: 1}\n",
            "a.yaml:2:38: expected a share with its unit");
    refused("rules:\n- {name: x, value: path.loss}\n",
            "a.yaml:2:3: expected a rule with 'above' or 'below'");
    refused("rules:\n- {name: x, value: path.loss, above: 1%, below: 1%}\n",
            "a.yaml:2:3: expected a rule with one of 'above' and 'below'");
    refused("rules:\n- {name: x, count: link.up, above: 1, within: 1h}\n",
            "a.yaml:2:3: rule 'x': this metric is no counter");
    refused("rules:\n- {name: x, count: link.downs, above: 1}\n",
            "a.yaml:2:3: rule 'x': a window is missing");
    refused("rules:\n- {name: x, count: link.downs, below: 1, within: 1h}\n",
            "a.yaml:2:39: expected 'above'");
    refused("rules:\n- {name: x, value: path.loss, above: 1%, per: rail}\n",
            "a.yaml:2:3: rule 'x': a scope with several members");
    refused("rules:\n- {name: x, value: path.loss, above: 1%, for: 5}\n",
            "a.yaml:2:47: expected a time with its unit");
    refused("rules:\n- {name: x, finding: link-dead}\n", "a.yaml:2:22: expected a kind of finding");
    refused("rules:\n- {name: x, finding: path-dead, suspects: [leaf, cable]}\n",
            "a.yaml:2:50: expected one of: unknown");
    refused("rules:\n- {name: x, finding: link-down, rate: link.downs}\n",
            "a.yaml:2:39: expected one condition, found 'finding' and 'rate'");
    refused("rules:\n- {name: x, sevrity: page}\n", "a.yaml:2:13: expected one of the keys:");
    refused("rules:\n- {name: x}\n", "a.yaml:2:3: expected a rule with one of: finding value");
    refused("rules:\n- name\n", "a.yaml:2:3: expected a map, found 'name'");
    refused("rules:\n- {name: x, finding: link-down}\n- {name: x, finding: nic-gone}\n",
            "a.yaml:3:10: expected each rule once, found 'x' again");
    refused("routes:\n- {to: [nobody]}\n",
            "a.yaml:2:9: expected the name of a receiver above, found 'nobody'");
    refused("receivers:\n- {name: x}\n", "a.yaml:2:3: expected a receiver with one of");
    refused("receivers:\n- {name: x, webhook: {url: 'ftp://x'}}\n",
            "a.yaml:2:22: expected a 'url'");
    refused("receivers:\n- {name: x, command: [echo]}\n",
            "a.yaml:2:23: expected a program's whole path");
    refused("receivers:\n- name: x\n  email: {server: 'smtp://h', from: a@b, to: ['c@d>,e@f']}\n",
            "a.yaml:3:47: expected an address");
    refused("receivers:\n- name: x\n  webhook: {url_file: /nowhere}\n",
            "a.yaml:3:23: expected a readable file");
    refused("maintenance:\n- {name: w, hosts: '*', from: 2026-02-31T02:00Z, lasts: 1h}\n",
            "a.yaml:2:31: expected a time like");
    refused("maintenance:\n- {name: w, hosts: '*', from: soon, lasts: 1h}\n",
            "a.yaml:2:31: expected a time like");
    refused("maintenance:\n- {name: w, from: 2026-11-24T02:00Z, lasts: 1h}\n",
            "a.yaml:2:3: expected a window with hosts");
    refused("- 1\n", "a.yaml:1:1: expected a map");
}

/* Secrets in the file are not repeated in errors. */
static void urls_are_not_repeated(void **state)
{
    struct config_error error;
    const char *text = "receivers:\n- {name: x, slack: {url: 'hxxps://hooks/T0KEN'}}\n";

    assert_int_equal(alert_file_parse("a.yaml", text, strlen(text), &file, &error), -22);
    assert_null(strstr(error.text, "T0KEN"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_default_rules_are_sound),
        cmocka_unit_test(own_rules_add_replace_and_remove),
        cmocka_unit_test(receivers_routes_and_windows),
        cmocka_unit_test(mistakes_are_named_with_their_place),
        cmocka_unit_test(urls_are_not_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
