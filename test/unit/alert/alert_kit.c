/* alert_kit.c: see alert_kit.h. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "alert_invariant.h"
#include "alert_kit.h"

#define HOST_PER_POD 16
#define ALERTS       512 /* few, because all of them are checked after each event */
#define INCIDENTS    128

struct alerts *engine;
struct alert_config config;
struct alert_rule rules[16];
struct mono now;
uint64_t (*kit_tenant)(void *context, uint32_t host);
uint32_t living = 1;
const struct alert_restore kit_told_page = {.id = 41,
                                            .severity = ALERT_PAGE,
                                            .sequence = 3,
                                            .pages = 1,
                                            .cause = "host0/ib3",
                                            .since = {500},
                                            .told = true,
                                            .text = "as it was"};
struct alert_told told;

static bool nic_of(void *context, uint32_t nic, struct alert_nic *ret)
{
    static char name[32], leaf[32];

    snprintf(name, sizeof(name), "host%u/ib%u", nic / NIC_PER_HOST, nic % NIC_PER_HOST);
    snprintf(leaf, sizeof(leaf), "leaf%u",
             nic / NIC_PER_HOST / HOST_PER_POD * NIC_PER_HOST + nic % NIC_PER_HOST);
    *ret = (struct alert_nic){
        .name = name, .leaf = leaf, .host = nic / NIC_PER_HOST, .rail = nic % NIC_PER_HOST};
    return true;
}
static const char *host_of(void *context, uint32_t host)
{
    static char name[32];

    snprintf(name, sizeof(name), "host%u", host);
    return name;
}

static const char *job_of(void *context, uint64_t job)
{
    return job == 7 ? "train" : NULL;
}

struct alert_rule *kit_rule(size_t index, const char *name, enum alert_condition condition)
{
    struct alert_rule *r = &rules[index];

    alert_rule_init(r);
    snprintf(r->name, sizeof(r->name), "%s", name);
    r->condition = (uint8_t)condition;
    r->severity = ALERT_PAGE;
    config.rule_count = index + 1 > config.rule_count ? index + 1 : config.rule_count;
    return r;
}

struct alert_rule *kit_threshold(enum alert_metric metric, enum alert_scope scope, double limit)
{
    struct alert_rule *r = kit_rule(0, "series", ALERT_ON_THRESHOLD);

    r->metric = (uint8_t)metric;
    r->scope = (uint8_t)scope;
    r->limit = limit;
    return r;
}

void kit_drain(void)
{
    struct alert_action action;

    alert_invariant(engine);
    while (alerts_next_action(engine, &action)) {
        if (action.kind == ALERT_ACTION_NOTIFY) {
            told.events[action.event]++;
            told.pages += action.page;
            told.notifications++;
            told.receivers = action.receivers;
            told.incident = action.incident.id;
            told.sequence = action.sequence;
            snprintf(told.text, sizeof(told.text), "%s", action.incident.text);
            snprintf(told.cause, sizeof(told.cause), "%s", action.incident.cause);
        }
    }
}

void kit_start(void)
{
    alerts_free(engine);
    now = (struct mono){1000 * NS_PER_S};
    memset(&told, 0, sizeof(told));
    config.rules = rules;
    config.alert_max = config.alert_max != 0 ? config.alert_max : ALERTS;
    config.incident_max = config.incident_max != 0 ? config.incident_max : INCIDENTS;
    config.fleet =
        (struct alert_fleet){.nic = nic_of, .host = host_of, .job = job_of, .tenant = kit_tenant};
    config.route_count = 1;
    config.routes[0].receivers = 1;
    config.routes[0].severity = ALERT_INFO;
    engine = alerts_new(&config, now);
    assert_non_null(engine);
    alerts_on_clock(engine, now, UTC_AT_START - now.ns, UTC_AT_START - now.ns);
}

void kit_pass(int64_t ns)
{
    const struct mono end = mono_add(now, span_ns(ns));
    struct mono beat = now;

    while (mono_before(now, end)) {
        now = mono_min(mono_min(alerts_deadline(engine), beat), end);
        if (!mono_before(now, beat)) {
            for (uint32_t h = 0; h < living; h++) {
                alerts_on_host(engine, now, h);
            }
            beat = mono_add(beat, span_s(10));
        }
        alerts_tick(engine, now);
        kit_drain();
    }
}

int kit_begin(void **state)
{
    memset(&config, 0, sizeof(config));
    memset(rules, 0, sizeof(rules));
    living = 1;
    kit_tenant = NULL;
    return 0;
}
int kit_end(void **state)
{
    alerts_free(engine);
    engine = NULL;
    return 0;
}

void kit_sample(enum alert_metric metric, uint32_t nic, double value)
{
    const struct alert_sample s = {.metric = metric,
                                   .host = nic / NIC_PER_HOST,
                                   .nic = nic,
                                   .peer = ALERT_NO_ID,
                                   .port = ALERT_NO_ID,
                                   .value = value};

    alerts_on_sample(engine, now, &s);
    kit_drain();
}

static uint32_t next_number;
struct alert_finding kit_link_finding(uint32_t nic, enum finding_kind kind)
{
    return (struct alert_finding){.said_by = nic / NIC_PER_HOST,
                                  .run = 1,
                                  .number = ++next_number,
                                  .kind = kind,
                                  .from_nic = nic,
                                  .to_nic = ALERT_NO_ID,
                                  .from_host = nic / NIC_PER_HOST,
                                  .to_host = ALERT_NO_ID,
                                  .since = now,
                                  .text = "a sentence"};
}
struct alert_finding kit_path_finding(uint32_t from, uint32_t to, enum element_kind kind,
                                      const char *suspect, bool confident)
{
    struct alert_finding f = kit_link_finding(to, FINDING_PATH_DEAD);

    f.from_nic = from;
    f.to_nic = to;
    f.from_host = from / NIC_PER_HOST;
    f.to_host = to / NIC_PER_HOST;
    suspect_set(&f, suspect_named(kind, suspect), confident);
    return f;
}
void kit_say(const struct alert_finding *f, enum finding_phase phase)
{
    struct alert_finding copy = *f;

    copy.phase = phase;
    alerts_on_finding(engine, now, &copy);
    kit_drain();
}

struct alert_incident kit_incident(uint64_t id)
{
    struct alert_incident i;

    assert_true(alerts_find_incident(engine, id, &i));
    return i;
}

struct alert_counters kit_counters(void)
{
    struct alert_counters c;

    alerts_counters(engine, &c);
    return c;
}

bool kit_any_alert(void)
{
    struct alert a;
    size_t cursor = 0;

    return alerts_next_alert(engine, &cursor, &a);
}

struct alert kit_alert(void)
{
    struct alert first, more;
    size_t cursor = 0;

    assert_true(alerts_next_alert(engine, &cursor, &first));
    assert_false(alerts_next_alert(engine, &cursor, &more));
    return first;
}

void kit_finding_rules(void)
{
    kit_rule(0, "link-down", ALERT_ON_FINDING)->findings = 1ULL << FINDING_LINK_DOWN;
    rules[0].severity = ALERT_WARNING;
    rules[0].scope = ALERT_PER_LINK;
    kit_rule(1, "path-dead", ALERT_ON_FINDING)->findings = 1ULL << FINDING_PATH_DEAD;
    rules[1].wait = span_s(2);
    kit_start();
}
