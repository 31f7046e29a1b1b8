/* The brain's door: each fact reaches the right part, each answer comes from it, names are asked of their owners, a witness sees
 * everything, and an answer's print covers everything in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/brain/brain.h"

static struct brain *brain;
static struct mono now;
static struct brain_answer answer;
static uint8_t severity = ALERT_WARNING; /* of all rules; the least that counts for a trial */

/* What the witness saw. */
static struct {
    uint32_t told, answered, named[BRAIN_NAME_TENANT + 1], known[BRAIN_NAME_TENANT + 1];
    enum brain_fact last;
    int64_t result;
    struct brain_name nic, host, tenant;
} seen;

static void on_told(void *context, struct mono at, enum brain_fact fact, const void *data)
{
    (void)data;
    assert_ptr_equal(context, &seen);
    assert_int_equal(at.ns, now.ns);
    seen.told++;
    seen.last = fact;
}

static void on_answered(void *context, enum brain_fact fact, const struct brain_answer *a)
{
    (void)context;
    assert_int_equal(fact, seen.last);
    seen.answered++;
    seen.result = a->result;
}

static void on_named(void *context, const struct brain_name *name)
{
    (void)context;
    seen.named[name->kind]++;
    seen.known[name->kind] += name->known;
    seen.nic = name->kind == BRAIN_NAME_NIC ? *name : seen.nic;
    seen.host = name->kind == BRAIN_NAME_HOST ? *name : seen.host;
    seen.tenant = name->kind == BRAIN_NAME_TENANT ? *name : seen.tenant;
}

static bool nic_name(void *context, uint32_t nic, struct alert_nic *ret)
{
    *ret = (struct alert_nic){.name = "h1/nic0", .leaf = "leaf7", .host = nic / 2, .rail = 5};
    return *(const bool *)context;
}

static const char *host_name(void *context, uint32_t host)
{
    return *(const bool *)context && host == 1 ? "h1" : NULL;
}

static uint64_t tenant_of(void *context, uint32_t host)
{
    (void)context;
    return 40 + host;
}

static int tell(enum brain_fact fact, const void *data)
{
    memset(&answer, 0, sizeof(answer));
    return brain_tell(brain, now, fact, data, &answer);
}

static void rules(void)
{
    static struct alert_rule list[3];
    static struct alert_config config;

    for (size_t i = 0; i < ARRAY_COUNT(list); i++) {
        alert_rule_init(&list[i]);
        list[i].severity = severity;
    }
    strcpy(list[0].name, "found");
    list[0].condition = ALERT_ON_FINDING;
    list[0].findings = UINT64_MAX;
    strcpy(list[1].name, "silent");
    list[1].condition = ALERT_ON_ABSENCE;
    list[1].metric = ALERT_HOST_REPORT;
    list[1].scope = ALERT_PER_HOST;
    list[1].within = span_s(5);
    strcpy(list[2].name, "slow");
    list[2].condition = ALERT_ON_THRESHOLD;
    list[2].metric = ALERT_JOB_DELAY_P99;
    list[2].scope = ALERT_PER_JOB;
    list[2].limit = 1000;
    config = (struct alert_config){.rules = list,
                                   .rule_count = ARRAY_COUNT(list),
                                   .route_count = 1,
                                   .alert_max = 16,
                                   .incident_max = 16,
                                   .watch_max = 16};
    config.routes[0] = (struct alert_route){.receivers = 1, .repeat = span_s(20)};
    assert_int_equal(tell(BRAIN_RULES, &config), 0);
}

static int begin(void **state)
{
    static const struct brain_witness witness = {on_told, on_named, on_answered, &seen};
    const struct fleet_terms terms = {.beat = span_s(1), .report = span_s(1), .finding_max = 64};

    (void)state;
    memset(&seen, 0, sizeof(seen));
    now = (struct mono){100 * NS_PER_S};
    brain = brain_new();
    if (brain == NULL) {
        return 1;
    }
    brain_witness(brain, &witness);
    tell(BRAIN_TERMS, &terms);
    tell(BRAIN_ROOM, &(struct brain_room){4, 8});
    for (uint32_t h = 0; h < 4; h++) {
        const uint32_t nics[] = {2 * h, 2 * h + 1};
        tell(BRAIN_MEMBER, &(struct fleet_member){h, true, nics, 2});
    }
    return 0;
}

static int end(void **state)
{
    (void)state;
    brain_delete(brain);
    return 0;
}

static void hear(uint32_t host)
{
    tell(BRAIN_HEARD, &(struct brain_heard){host, span_s(2), span_s(3)});
    tell(BRAIN_REPORT,
         &(struct fleet_report){.host = host, .rollup = true, .clock = FLEET_CLOCK_SYNCED});
}

static int find(uint32_t run, uint32_t number, enum finding_phase phase)
{
    const struct alert_finding f = {.said_by = 1,
                                    .run = run,
                                    .number = number,
                                    .kind = FINDING_LINK_DOWN,
                                    .phase = phase,
                                    .from_nic = 2,
                                    .to_nic = 2,
                                    .from_host = 1,
                                    .to_host = 1,
                                    .suspect = element_of(ELEMENT_NIC, PLACE_NIC, 2),
                                    .since = now,
                                    .text = "a NIC is gone"};
    return tell(BRAIN_FINDING, &f);
}

static uint32_t alerts(void)
{
    struct alert a;
    size_t cursor = 0;
    uint32_t count = 0;

    while (brain_alerts(brain) != NULL && alerts_next_alert(brain_alerts(brain), &cursor, &a)) {
        count += a.state == ALERT_PENDING || a.state == ALERT_FIRING;
    }
    return count;
}

/* ---- hosts ---- */

static void hosts_reports_reach_hosts(void **state)
{
    const struct fleet *f = brain_hosts(brain);

    (void)state;
    assert_non_null(f);
    assert_int_equal(fleet_host_freshness(f, 1, now), FRESHNESS_NEVER);
    hear(1);
    assert_int_equal(fleet_host_freshness(f, 1, now), FRESHNESS_LIVE);
    const enum health well = fleet_host_health(f, 1, now);
    tell(BRAIN_REPORT,
         &(struct fleet_report){
             .host = 1, .rollup = true, .clock = FLEET_CLOCK_SYNCED, .ports_down = 1});
    assert_true(fleet_host_health(f, 1, now) != well);
    hear(1);
    assert_int_equal(fleet_host_health(f, 1, now), well);
    assert_int_equal(find(7, 1, FINDING_OPENED), 0);
    assert_int_equal(fleet_host_findings(f, 1), 1);
    assert_true(fleet_host_health(f, 1, now) != well);
    find(7, 1, FINDING_CLOSED);
    assert_int_equal(fleet_host_findings(f, 1), 0);
    find(7, 2, FINDING_OPENED);
    tell(BRAIN_RUN, &(struct brain_run){1, 8}); /* its agent restarted */
    assert_int_equal(fleet_host_findings(f, 1), 0);
    find(8, 1, FINDING_OPENED);
    const uint32_t nics[] = {2, 3};
    tell(BRAIN_MEMBER, &(struct fleet_member){1, false, nics, 2});
    assert_int_equal(fleet_host_findings(f, 1), 0);
}

static void a_silent_host_is_an_answer(void **state)
{
    bool silent = false;

    (void)state;
    hear(2);
    tell(BRAIN_HOSTS_TICK, NULL);
    while (tell(BRAIN_HOSTS_NEXT, NULL) == 1) {
        assert_int_equal(answer.host.host, 2);
        silent = silent || answer.host.kind == FLEET_SILENT;
    }
    assert_false(silent);
    now = mono_add(now, span_s(60));
    tell(BRAIN_HOSTS_TICK, NULL);
    while (tell(BRAIN_HOSTS_NEXT, NULL) == 1) {
        assert_int_equal(answer.host.host, 2);
        silent = silent || answer.host.kind == FLEET_SILENT;
    }
    assert_true(silent);
}

/* ---- losses ---- */

static struct locate_route route(uint32_t from, uint32_t to)
{
    struct locate_route r = {.from_host = {from / 2},
                             .to_host = {to / 2},
                             .from = {from},
                             .to = {to},
                             .teller = {to / 2},
                             .box_count = 1};
    r.boxes[0] = (struct locate_box){9, ELEMENT_LEAF};
    return r;
}

static void paths_reach_the_inquiry(void **state)
{
    struct brain_path path = {.at = now,
                              .path = {.route = route(0, 2), .port = 7640, .dead = true}};
    const struct brain_place place = {.since = now, .route = route(0, 2)};

    (void)state;
    tell(BRAIN_PATH, &path); /* nothing explains it yet */
    assert_int_equal(tell(BRAIN_PLACE, &place), 0);
    assert_null(brain_inquiry(brain));
    assert_int_equal(tell(BRAIN_INQUIRY, &(struct brain_inquiry){64, span_s(1)}), 0);
    assert_non_null(brain_inquiry(brain));
    assert_false(inquiry_has(brain_inquiry(brain), (struct nic_id){0}, (struct nic_id){2}, 7640));
    tell(BRAIN_PATH, &path);
    assert_true(inquiry_has(brain_inquiry(brain), (struct nic_id){0}, (struct nic_id){2}, 7640));
    tell(BRAIN_LOOK, NULL);
    now = mono_add(now, span_ns(INQUIRY_CALM_NS + INQUIRY_MEMORY_NS));
    tell(BRAIN_LOOK, NULL);
    assert_false(inquiry_has(brain_inquiry(brain), (struct nic_id){0}, (struct nic_id){2}, 7640));
    assert_int_equal(tell(BRAIN_PLACE, &place), 0);
}

/* ---- alerts ---- */

static void alerts_are_those_of_the_newest_rules(void **state)
{
    bool known = true;
    const struct alert_fleet names = {
        .nic = nic_name, .host = host_name, .tenant = tenant_of, .context = &known};

    (void)state;
    assert_null(brain_alerts(brain));
    find(7, 1, FINDING_OPENED); /* for hosts alone: there are no rules yet */
    tell(BRAIN_ALERTS_TICK, NULL);
    assert_int_equal(tell(BRAIN_ALERTS_NEXT, NULL), 0);
    brain_names(brain, &names);
    rules();
    assert_non_null(brain_alerts(brain));
    assert_int_equal(alerts(), 0);
    tell(BRAIN_CLOCK, &(struct brain_clock){1000, 2000});
    find(7, 2, FINDING_OPENED);
    assert_int_equal(alerts(), 1);
    uint32_t told = 0;
    for (int i = 0; i < 5; i++) {
        now = mono_add(now, span_s(1));
        tell(BRAIN_ALERTS_TICK, NULL);
        while (tell(BRAIN_ALERTS_NEXT, NULL) == 1) {
            told += answer.alert.kind == ALERT_ACTION_NOTIFY;
        }
    }
    assert_true(told > 0);
    assert_true(seen.named[BRAIN_NAME_NIC] > 0 && seen.known[BRAIN_NAME_NIC] > 0);
    assert_int_equal(seen.named[BRAIN_NAME_NIC], seen.known[BRAIN_NAME_NIC]);
    assert_string_equal(seen.nic.name, "h1/nic0");
    assert_string_equal(seen.nic.leaf, "leaf7");
    assert_true(seen.nic.id == 2 && seen.nic.host == 1 && seen.nic.rail == 5);
    tell(BRAIN_RUN, &(struct brain_run){1, 8}); /* and its findings are over for alerts, too */
    now = mono_add(now, span_s(1));
    tell(BRAIN_ALERTS_TICK, NULL);
    assert_int_equal(alerts(), 0);
    find(8, 1, FINDING_OPENED);
    rules();
    assert_int_equal(alerts(), 0); /* a new engine */
}

static const char *job_name(void *context, uint64_t job)
{
    return *(const bool *)context && job == 77 ? "train" : NULL;
}

static void seconds(int count, bool slow)
{
    for (int i = 0; i < count; i++) {
        now = mono_add(now, span_s(1));
        if (slow) {
            tell(BRAIN_SAMPLE,
                 &(struct alert_sample){
                     .metric = ALERT_JOB_DELAY_P99, .host = 1, .job = 77, .value = 5000});
        }
        tell(BRAIN_ALERTS_TICK, NULL);
    }
}

/* A silent host and a slow job, with their names. An alert ends with its subject. */
static void hosts_and_jobs_have_names_and_go(void **state)
{
    bool known = true;
    const struct alert_fleet names = {
        .host = host_name, .job = job_name, .tenant = tenant_of, .context = &known};

    (void)state;
    brain_names(brain, &names);
    rules();
    tell(BRAIN_HOST, &(struct brain_host){1});
    seconds(4, false);
    assert_int_equal(alerts(), 0);
    seconds(6, false);
    assert_int_equal(alerts(), 1);
    assert_true(seen.named[BRAIN_NAME_HOST] > 0);
    assert_int_equal(seen.known[BRAIN_NAME_HOST], seen.named[BRAIN_NAME_HOST]);
    assert_string_equal(seen.host.name, "h1");
    tell(BRAIN_HOST_GONE, &(struct brain_host){1});
    seconds(2, false);
    assert_int_equal(alerts(), 0);
    seconds(5, true);
    assert_int_equal(alerts(), 1);
    assert_true(seen.named[BRAIN_NAME_JOB] > 0);
    assert_int_equal(seen.known[BRAIN_NAME_JOB], seen.named[BRAIN_NAME_JOB]);
    tell(BRAIN_JOB_OVER, &(struct brain_job){77});
    seconds(1, false);
    assert_int_equal(alerts(), 0);
}

/* Two hosts accuse an element that neither owns: the brain asks for its tenant. */
static void whose_a_host_is_is_asked(void **state)
{
    const struct alert_fleet names = {.tenant = tenant_of};

    (void)state;
    brain_names(brain, &names);
    severity = ALERT_PAGE;
    rules();
    severity = ALERT_WARNING;
    for (uint32_t host = 1; host <= 2; host++) {
        const struct alert_finding f = {.said_by = host,
                                        .run = 7,
                                        .number = 1,
                                        .kind = FINDING_PATH_DEAD,
                                        .phase = FINDING_OPENED,
                                        .from_nic = 6,
                                        .to_nic = 2 * host,
                                        .from_host = 3,
                                        .to_host = host,
                                        .suspect = element_of(ELEMENT_HOST, PLACE_HOST, 3),
                                        .hearsay = true,
                                        .since = now,
                                        .text = "a path is dead"};
        tell(BRAIN_FINDING, &f);
    }
    seconds(3, false);
    assert_true(seen.named[BRAIN_NAME_TENANT] > 0);
    assert_int_equal(seen.known[BRAIN_NAME_TENANT], seen.named[BRAIN_NAME_TENANT]);
    assert_int_equal(seen.tenant.tenant, 40 + seen.tenant.id);
}

/* Without names, or if the owner has no name for it. */
static void a_name_that_nobody_has_is_not_known(void **state)
{
    bool known = false;
    const struct alert_fleet names = {.nic = nic_name, .host = host_name, .context = &known};

    (void)state;
    for (int turn = 0; turn < 2; turn++) {
        if (turn == 1) {
            brain_names(brain, &names);
        }
        rules();
        find(7, 10 + (uint32_t)turn, FINDING_OPENED);
        tell(BRAIN_ALERTS_TICK, NULL);
        assert_true(seen.named[BRAIN_NAME_NIC] > 0);
        assert_int_equal(seen.known[BRAIN_NAME_NIC], 0);
        assert_int_equal(seen.known[BRAIN_NAME_HOST], 0);
        assert_int_equal(seen.known[BRAIN_NAME_JOB], 0);
    }
}

/* ---- levels and trials ---- */

static void a_levels_round_goes_in_and_comes_out(void **state)
{
    struct brain_level told = {.level = {.name = "rack", .limit = 1000}, .state = {.worst = -1}};
    const struct level_path path = {1, 2, 7640, 5000};

    (void)state;
    level_begin(&told.state);
    assert_true(level_add(&told.state, &told.level, &path));
    struct level_state own = told.state;
    const bool changed = level_end(&own, &told.level, now);
    assert_true(changed);
    assert_int_equal(tell(BRAIN_LEVEL, &told), 1);
    assert_memory_equal(&answer.level, &own, sizeof(own));
    assert_int_equal(answer.level.verdict, LEVEL_BROKEN);
    told.state = answer.level;
    assert_int_equal(tell(BRAIN_LEVEL, &told), 0); /* the same as before */
}

static struct brain_canary canary(void)
{
    return (struct brain_canary){
        .host = 1,
        .run = 3,
        .heard = true,
        .began = now,
        .canary = {.run = 3,
                   .health = (uint8_t)fleet_host_health(brain_hosts(brain), 1, now),
                   .confirmed = true,
                   .worse = MONO_NEVER},
        .facts = {.watch = span_s(4)}};
}

static void an_alert_that_began_with_a_trial_is_bad(void **state)
{
    struct rollout_facts facts = {.hosts = 1, .confirmed = 1, .watch = span_s(4), .age = span_s(5)};

    (void)state;
    rules();
    hear(1);
    struct brain_canary c = canary();
    assert_int_equal(tell(BRAIN_CANARY, &c), 0);
    assert_int_equal(answer.trial.facts.hosts, 1);
    assert_int_equal(answer.trial.facts.confirmed, 1);
    c.refused = true;
    assert_int_equal(tell(BRAIN_CANARY, &c), 1);
    assert_int_equal(answer.trial.facts.refused, 1);
    c.refused = false;
    c.run = 4;
    assert_int_equal(tell(BRAIN_CANARY, &c), 1);
    assert_int_equal(answer.trial.facts.restarted, 1);
    c.run = 3;
    now = mono_add(now, span_s(1));
    find(7, 1, FINDING_OPENED);
    for (int i = 0; i < 3; i++) {
        now = mono_add(now, span_s(1));
        hear(1);
        tell(BRAIN_ALERTS_TICK, NULL);
    }
    assert_int_equal(tell(BRAIN_CANARY, &c), 1);
    assert_int_equal(answer.trial.facts.alerted, 1);
    c.began = now; /* it existed before */
    tell(BRAIN_CANARY, &c);
    assert_int_equal(answer.trial.facts.alerted, 0);
    c = canary();
    c.host = 2; /* another host's */
    tell(BRAIN_CANARY, &c);
    assert_int_equal(answer.trial.facts.alerted, 0);

    assert_int_equal(tell(BRAIN_TRIAL, &facts), ROLLOUT_GOOD);
    assert_null(answer.why);
    facts.refused = 1;
    assert_int_equal(tell(BRAIN_TRIAL, &facts), ROLLOUT_BAD);
    assert_string_equal(answer.why, "a canary refused it");
}

/* ---- the witness ---- */

static void a_witness_sees_each_fact_and_its_answer(void **state)
{
    (void)state;
    assert_int_equal(seen.told, 6);
    assert_int_equal(seen.answered, 6);
    rules();
    find(7, 1, FINDING_OPENED);
    assert_int_equal(seen.last, BRAIN_FINDING);
    for (int i = 0; i < 4; i++) {
        now = mono_add(now, span_s(1));
        assert_int_equal(brain_tell(brain, now, BRAIN_ALERTS_TICK, NULL, NULL), 0);
    }
    assert_int_equal(brain_tell(brain, now, BRAIN_ALERTS_NEXT, NULL, NULL), 1);
    assert_int_equal(seen.result, 1);
    assert_int_equal(seen.told, seen.answered);
    assert_int_equal(seen.told, 13);
    brain_witness(brain, NULL);
    tell(BRAIN_ALERTS_TICK, NULL);
    assert_int_equal(seen.told, 13);
}

/* ---- prints ---- */

/* Each byte of each of these is in the print: another byte gives another print. */
#define TELLS(fact, field)                                                                         \
    do {                                                                                           \
        struct brain_answer other = a;                                                             \
        ((uint8_t *)&other.field)[0] ^= 1;                                                         \
        if (brain_answer_print(fact, &a) == brain_answer_print(fact, &other)) {                    \
            fail_msg("%s: %s is not in the print", #fact, #field);                                 \
        }                                                                                          \
    } while (0)

static void a_print_is_of_all_that_an_answer_tells(void **state)
{
    struct brain_answer a;

    (void)state;
    memset(&a, 0, sizeof(a));
    a.result = 1;
    TELLS(BRAIN_HOSTS_NEXT, result);
    TELLS(BRAIN_HOSTS_NEXT, host.kind);
    TELLS(BRAIN_HOSTS_NEXT, host.host);
    TELLS(BRAIN_HOSTS_NEXT, host.at);
    TELLS(BRAIN_PLACE, element.kind);
    TELLS(BRAIN_PLACE, element.direction);
    TELLS(BRAIN_PLACE, element.a);
    TELLS(BRAIN_PLACE, element.b);
    TELLS(BRAIN_ALERTS_NEXT, alert.kind);
    TELLS(BRAIN_ALERTS_NEXT, alert.event);
    TELLS(BRAIN_ALERTS_NEXT, alert.receivers);
    TELLS(BRAIN_ALERTS_NEXT, alert.sequence);
    TELLS(BRAIN_ALERTS_NEXT, alert.page);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.id);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.merged_into);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.state);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.severity);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.element.kind);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.element.direction);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.element.a.number);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.element.b.number);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.element.b.address);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.since);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.changed);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.resolved);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.acknowledged);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.alerts_firing);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.alerts_total);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.hosts);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.links);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.sequence);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.pages);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.reopened);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.told);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.silenced);
    TELLS(BRAIN_ALERTS_NEXT, alert.incident.host);
    TELLS(BRAIN_LEVEL, level.verdict);
    TELLS(BRAIN_LEVEL, level.next);
    TELLS(BRAIN_LEVEL, level.since);
    TELLS(BRAIN_LEVEL, level.next_since);
    TELLS(BRAIN_LEVEL, level.paths);
    TELLS(BRAIN_LEVEL, level.unmeasured);
    TELLS(BRAIN_LEVEL, level.beyond);
    TELLS(BRAIN_LEVEL, level.worst);
    TELLS(BRAIN_LEVEL, level.worst_from);
    TELLS(BRAIN_LEVEL, level.worst_to);
    TELLS(BRAIN_LEVEL, level.worst_port);
    TELLS(BRAIN_CANARY, trial.canary.run);
    TELLS(BRAIN_CANARY, trial.canary.health);
    TELLS(BRAIN_CANARY, trial.canary.confirmed);
    TELLS(BRAIN_CANARY, trial.canary.worse);
    TELLS(BRAIN_CANARY, trial.facts.hosts);
    TELLS(BRAIN_CANARY, trial.facts.confirmed);
    TELLS(BRAIN_CANARY, trial.facts.refused);
    TELLS(BRAIN_CANARY, trial.facts.silent);
    TELLS(BRAIN_CANARY, trial.facts.restarted);
    TELLS(BRAIN_CANARY, trial.facts.worse);
    TELLS(BRAIN_CANARY, trial.facts.alerted);
    struct brain_answer why = a;
    why.why = "a canary refused it";
    assert_true(brain_answer_print(BRAIN_TRIAL, &a) != brain_answer_print(BRAIN_TRIAL, &why));
    why = a;
    why.alert.incident.text = "spine1 is dead";
    assert_true(brain_answer_print(BRAIN_ALERTS_NEXT, &a) !=
                brain_answer_print(BRAIN_ALERTS_NEXT, &why));
    why.alert.incident.cause = "spine1";
    struct brain_answer by = why;
    by.alert.incident.acknowledged_by = "ada";
    assert_true(brain_answer_print(BRAIN_ALERTS_NEXT, &by) !=
                brain_answer_print(BRAIN_ALERTS_NEXT, &why));
    /* an unanswered part is not in the print, whatever its bytes are; another fact gives another answer */
    struct brain_answer none = {.result = 0}, rest = {.result = 0};
    rest.host.host = 3;
    assert_true(brain_answer_print(BRAIN_HOSTS_NEXT, &none) ==
                brain_answer_print(BRAIN_HOSTS_NEXT, &rest));
    assert_true(brain_answer_print(BRAIN_HOSTS_NEXT, &none) !=
                brain_answer_print(BRAIN_ALERTS_NEXT, &none));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, begin, end)
    const struct CMUnitTest tests[] = {
        T(hosts_reports_reach_hosts),
        T(a_silent_host_is_an_answer),
        T(paths_reach_the_inquiry),
        T(alerts_are_those_of_the_newest_rules),
        T(hosts_and_jobs_have_names_and_go),
        T(whose_a_host_is_is_asked),
        T(a_name_that_nobody_has_is_not_known),
        T(a_levels_round_goes_in_and_comes_out),
        T(an_alert_that_began_with_a_trial_is_bad),
        T(a_witness_sees_each_fact_and_its_answer),
        cmocka_unit_test(a_print_is_of_all_that_an_answer_tells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
