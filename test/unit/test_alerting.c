/* All of alerting together: a file, facts, notices at a command; the state that survives a restart and a reload. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "service/alert/alerting.h"

#define UTC (1795000000LL * NS_PER_S)

static char folder[] = "/tmp/foliot-alerting-XXXXXX", path[64], out[64];
static char said[8192];
static unsigned incidents, reloads;
static struct mono now;

static void say(void *context, int priority, const struct alert_incident *about, const char *text)
{
    const size_t used = strlen(said);

    snprintf(said + used, sizeof(said) - used, "%s\n", text);
}
static void on_incident(void *context, const struct alert_incident *c, uint32_t event,
                        bool notified)
{
    incidents += notified;
}
static void on_reload(void *context)
{
    reloads++;
}

static void write_file(const char *text)
{
    const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static const char *out_text(void)
{
    static char text[16384];
    const int fd = open(out, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

    if (fd >= 0) {
        close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    return text;
}

static struct alerting *start(const char *saved)
{
    const struct alerting_options options = {.path = path,
                                             .saved = saved,
                                             .on_incident = on_incident,
                                             .on_reload = on_reload,
                                             .say = say};
    struct alerting *g = NULL;

    assert_int_equal(alerting_new(&options, now, UTC, &g), 0);
    return g;
}

static void run(struct alerting *g, int64_t ns)
{
    const struct mono end = mono_add(now, span_ns(ns));

    do {
        now = mono_min(alerting_deadline(g), end);
        alerting_run(g, now, UTC + now.ns - 1000 * NS_PER_S, FINDING_NO_TIME);
    } while (mono_before(now, end));
}

static void link_down(struct alerting *g, uint32_t nic, enum finding_phase phase)
{
    const struct alert_finding f = {.said_by = nic / 8,
                                    .run = 1,
                                    .number = nic + 1,
                                    .kind = FINDING_NIC_GONE,
                                    .phase = phase,
                                    .from_nic = nic,
                                    .to_nic = ALERT_NO_ID,
                                    .from_host = nic / 8,
                                    .to_host = ALERT_NO_ID,
                                    .since = now,
                                    .text = "a NIC is gone"};

    brain_tell(alerting_brain(g), now, BRAIN_FINDING, &f, NULL);
    brain_tell(alerting_brain(g), now, BRAIN_HOST, &(struct brain_host){nic / 8}, NULL);
}

static int begin(void **state)
{
    now = (struct mono){1000 * NS_PER_S};
    said[0] = '\0';
    incidents = reloads = 0;
    unlink(out);
    write_file("defaults: no\nrules:\n- {name: gone, finding: nic-gone, severity: page}\n");
    return 0;
}

static void with_receiver(const char *command)
{
    char text[512];

    snprintf(text, sizeof(text),
             "defaults: no\nrules:\n- {name: gone, finding: nic-gone, severity: page}\n"
             "receivers:\n- {name: file, command: [/bin/sh, -c, '%s', %s]}\nroutes:\n- {to: "
             "[file]}\n",
             command, out);
    write_file(text);
}
static void with_command(void)
{
    with_receiver("cat >>$0");
}
/* A command may get no processor for longer than the end waits for it. */
static void wait_for(const char *text)
{
    for (int i = 0; i < 60000 && strstr(out_text(), text) == NULL; i++) {
        (void)usleep(1000);
    }
    assert_non_null(strstr(out_text(), text));
}

static char *save(struct alerting *g)
{
    struct json_writer j;
    const char *text = NULL;
    size_t size = 0;

    json_writer_init(&j, 1 << 20);
    alerting_save(g, &j);
    assert_int_equal(json_writer_finish(&j, &text, &size), 0);
    char *copy = strdup(text);
    json_writer_done(&j);
    return copy;
}

static void a_fact_becomes_a_notice(void **state)
{
    with_command();
    struct alerting *g = start(NULL);
    link_down(g, 3, FINDING_OPENED);
    run(g, NS_PER_S);
    wait_for("a NIC is gone");
    alerting_free(g);
    assert_non_null(
        strstr(out_text(),
               "\"key\":\"foliot-1-1\",\"event\":\"opened\",\"severity\":\"page\",\"page\":true"));
    assert_non_null(strstr(out_text(), "\"text\":\"a NIC is gone\""));
    assert_non_null(strstr(said, "incident 1 opened (page): a NIC is gone"));
    assert_int_equal(incidents, 1);
}

/* The receiver's entry was wrong: its page waits, and comes once the file is right. So does a notice that was decided just
 * before. */
static void a_waiting_page_outlives_a_reload(void **state)
{
    with_receiver("exit 1");
    struct alerting *g = start(NULL);
    link_down(g, 3, FINDING_OPENED);
    run(g, NS_PER_S);
    assert_int_equal(brain_tell(alerting_brain(g), now, BRAIN_ACKNOWLEDGE,
                                &(struct brain_incident){1, "ada"}, NULL),
                     0);
    with_command();
    assert_int_equal(alerting_reload(g, now, UTC), 0);
    wait_for("\"event\":\"opened\",\"severity\":\"page\",\"page\":true");
    wait_for("\"event\":\"acknowledged\"");
    alerting_free(g);
    assert_null(strstr(said, "not delivered"));
}

static void a_restart_tells_nobody_twice_and_numbers_go_on(void **state)
{
    struct alerting *g = start(NULL);

    link_down(g, 3, FINDING_OPENED);
    run(g, NS_PER_S);
    assert_int_equal(brain_tell(alerting_brain(g), now, BRAIN_ACKNOWLEDGE,
                                &(struct brain_incident){1, "ada"}, NULL),
                     0);
    run(g, NS_PER_S);
    assert_true(alerting_changed(g));
    char *saved = save(g);
    assert_false(alerting_changed(g));
    alerting_free(g);
    incidents = 0;
    now = (struct mono){5000 * NS_PER_S}; /* another boot: another clock */
    g = start(saved);
    free(saved);
    link_down(g, 3, FINDING_OPENED);
    run(g, NS_PER_S);
    assert_int_equal(incidents, 0);
    link_down(g, 30, FINDING_OPENED);
    run(g, NS_PER_S);
    assert_int_equal(incidents, 1);
    assert_non_null(strstr(said, "incident 2 opened"));
    saved = save(g);
    assert_non_null(strstr(saved, "\"acknowledged_by\":\"ada\""));
    free(saved);
    alerting_free(g);
}

/* It had come back, but had not lasted yet when the rules changed: its page is sent nevertheless. */
static void a_page_that_is_owed_outlives_a_reload(void **state)
{
    struct alerting *g = start(NULL);

    link_down(g, 3, FINDING_OPENED);
    run(g, NS_PER_S);
    link_down(g, 3, FINDING_CLOSED);
    run(g, 120 * NS_PER_S);
    link_down(g, 3, FINDING_OPENED);
    run(g, NS_PER_S);
    assert_int_equal(alerting_reload(g, now, UTC), 0);
    for (int s = 0; s < 31; s++) {
        assert_true(s == 30 || strstr(said, "reopened (page)") == NULL);
        link_down(g, 3, FINDING_OPENED); /* it goes on reporting */
        run(g, 10 * NS_PER_S);
    }
    assert_non_null(strstr(said, "incident 1 reopened (page)"));
    alerting_free(g);
}

static void a_refused_file_leaves_the_rules_in_force_and_is_an_alert(void **state)
{
    struct alerting *g = start(NULL);
    struct alert alert;
    size_t cursor = 0;

    link_down(g, 3, FINDING_OPENED);
    run(g, NS_PER_S);
    write_file("rules:\n- {name: x, vlaue: 1}\n");
    assert_int_equal(alerting_reload(g, now, UTC), -EINVAL);
    run(g, NS_PER_S);
    assert_non_null(strstr(said, ":2:13: expected one of the keys"));
    assert_true(alerts_next_alert(alerting_engine(g), &cursor, &alert));
    while (strcmp(alert.rule_name, "rules-refused") != 0) {
        assert_true(alerts_next_alert(alerting_engine(g), &cursor, &alert));
    }
    assert_int_equal(reloads, 0);
    incidents = 0;
    begin(NULL);
    assert_int_equal(alerting_reload(g, now, UTC), 0);
    assert_int_equal(reloads, 1);
    link_down(g, 3, FINDING_OPENED); /* as its on_reload would: the same finding again */
    run(g, NS_PER_S);
    assert_int_equal(incidents, 0);
    alerting_free(g);
}

/* A bad file on the disk must not stop a controller that restarts at night. */
static void a_start_with_a_bad_file_takes_the_rules_of_the_last_run(void **state)
{
    struct alert alert;
    size_t cursor = 0;

    write_file("rules:\n- {name: own, finding: link-down, severity: page}\n");
    struct alerting *g = start(NULL);
    char *saved = save(g);
    alerting_free(g);
    write_file("rules:\n- {name: x, vlaue: 1}\n");
    said[0] = '\0';
    g = start(saved);
    assert_non_null(strstr(said, ":2:13: expected one of the keys"));
    assert_non_null(strstr(said, "the alert rules of the last run stay in force"));
    run(g, NS_PER_S);
    do {
        assert_true(alerts_next_alert(alerting_engine(g), &cursor, &alert));
    } while (strcmp(alert.rule_name, "rules-refused") != 0);
    free(saved);
    saved = save(g); /* and so does the next start */
    assert_non_null(strstr(saved, "name: own"));
    alerting_free(g);
    free(saved);
}

static void silences_survive_and_go(void **state)
{
    struct alerting *g = start(NULL);
    struct alert_silence s = {.from_utc_ns = UTC, .until_utc_ns = UTC + 3600 * NS_PER_S};
    uint64_t id = 0;

    run(g, NS_PER_MS);
    assert_int_equal(alerting_silence(g, now, &s, "ada", "x", &id), -EINVAL);
    snprintf(s.match.host, sizeof(s.match.host), "host 0");
    assert_int_equal(alerting_silence(g, now, &s, "ada", "new cables", &id), 0);
    char *saved = save(g);
    alerting_free(g);
    now = (struct mono){1000 * NS_PER_S};
    g = start(saved);
    link_down(g, 3, FINDING_OPENED);
    run(g, 60 * NS_PER_S);
    /* Without a table of names an alert knows only its NIC, not its host: then the silence is by element. */
    free(saved);
    saved = save(g);
    assert_non_null(strstr(saved, "\"why\":\"new cables\""));
    free(saved);
    assert_int_equal(alerting_unsilence(g, now, id), 0);
    assert_int_equal(alerting_unsilence(g, now, id), -ENOENT);
    alerting_free(g);
}

static void answers_are_json_and_metrics_have_their_families(void **state)
{
    struct json_writer j;
    const char *text = NULL;
    size_t size = 0;
    struct metrics_text metrics = {0};

    with_command();
    struct alerting *g = start(NULL);
    link_down(g, 3, FINDING_OPENED);
    run(g, NS_PER_S);
    json_writer_init(&j, 1 << 20);
    json_put_object(&j, NULL);
    alerting_put_alerts(g, &j, "alerts", &(struct alerting_view){0});
    alerting_put_incidents(g, &j, "incidents", true, &(struct alerting_view){0});
    alerting_put_silences(g, &j, "silences");
    alerting_put_rules(g, &j, "rules");
    json_put_end(&j);
    assert_int_equal(json_writer_finish(&j, &text, &size), 0);
    json_t *tree = json_loads(text, 0, NULL);
    assert_non_null(tree);
    assert_int_equal(json_array_size(json_object_get(tree, "alerts")), 1);
    assert_string_equal(json_string_value(json_object_get(
                            json_array_get(json_object_get(tree, "incidents"), 0), "state")),
                        "open");
    json_decref(tree);
    json_writer_done(&j);
    alerting_metrics(g, &metrics);
    assert_non_null(strstr(metrics.bytes, "foliot_alerts{state=\"firing\"} 1\n"));
    assert_non_null(strstr(
        metrics.bytes, "foliot_alert_deliveries_total{receiver=\"file\",outcome=\"failed\"} 0\n"));
    metrics_done(&metrics);
    alerting_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_fact_becomes_a_notice, begin),
        cmocka_unit_test_setup(a_page_that_is_owed_outlives_a_reload, begin),
        cmocka_unit_test_setup(a_waiting_page_outlives_a_reload, begin),
        cmocka_unit_test_setup(a_restart_tells_nobody_twice_and_numbers_go_on, begin),
        cmocka_unit_test_setup(a_refused_file_leaves_the_rules_in_force_and_is_an_alert, begin),
        cmocka_unit_test_setup(a_start_with_a_bad_file_takes_the_rules_of_the_last_run, begin),
        cmocka_unit_test_setup(silences_survive_and_go, begin),
        cmocka_unit_test_setup(answers_are_json_and_metrics_have_their_families, begin),
    };

    if (mkdtemp(folder) == NULL) {
        return 1;
    }
    snprintf(path, sizeof(path), "%s/alerts.yaml", folder);
    snprintf(out, sizeof(out), "%s/out", folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(path);
    unlink(out);
    rmdir(folder);
    return failed;
}
