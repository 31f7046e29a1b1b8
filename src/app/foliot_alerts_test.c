/* foliot_alerts_test.c: tries a rule on the past: what it would have reported. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "app/foliot_alerts_past.h"
#include "app/foliot_command.h"
#include "app/foliot_foreign.h"
#include "app/foliot_text.h"
#include "platform/json/element.h"

static uint32_t nic_number(const json_t *end)
{
    const json_t *nic = json_object_get(end, "nic");

    return json_is_integer(nic) ? (uint32_t)json_integer_value(nic) : ALERT_NO_ID;
}

static uint32_t word_number(const char *word, const char *(*name)(uint32_t), uint32_t count)
{
    uint32_t k = 0;

    while (k < count && (name(k) == NULL || strcmp(name(k), word) != 0)) {
        k++;
    }
    return k < count ? k : 0;
}

static uint32_t host_number(void *context, const char *name)
{
    return past_host(context, name);
}

static void play_finding(struct past *p, struct alerts *engine, const struct moment *m)
{
    const json_t *d = json_object_get(m->event, "detail"), *from = json_object_get(d, "from"),
                 *to = json_object_get(d, "to");
    const char *phase = past_text(d, "phase");
    const struct alert_finding f = {
        .said_by = past_host(p, past_text(m->event, "host")),
        .run = (uint32_t)json_integer_value(json_object_get(d, "run")),
        .number = (uint32_t)json_integer_value(json_object_get(d, "number")),
        .kind = word_number(past_text(d, "finding"), finding_kind_word, FINDING_KIND_COUNT),
        .phase = strcmp(phase, "closed") == 0    ? FINDING_CLOSED
                 : strcmp(phase, "updated") == 0 ? FINDING_UPDATED
                                                 : FINDING_OPENED,
        .from_nic = nic_number(from),
        .to_nic = nic_number(to),
        .from_host = past_host(p, past_text(from, "host")),
        .to_host = past_host(p, past_text(to, "host")),
        .port = (uint32_t)json_integer_value(json_object_get(d, "port")),
        .suspect = json_read_element(json_object_get(d, "element"), host_number, p),
        .choice = json_read_choice(d, host_number, p),
        .since = {m->at_ns},
        .text = past_text(d, "text")};

    alerts_on_finding(engine, (struct mono){m->at_ns}, &f);
}

/* Runs the engine to `until`, and prints what it would have reported. */
static void play_to(struct past *p, struct alerts *engine, int64_t until, unsigned *told,
                    unsigned *pages)
{
    struct alert_action action;

    do {
        const struct mono due = alerts_deadline(engine);
        const struct mono now = {due.ns < until ? due.ns : until};
        for (uint32_t h = 0; !p->presence && h < json_array_size(p->hosts); h++) {
            /* hosts count as heard, unless the rule is about silence */
            alerts_on_host(engine, now, h);
        }
        alerts_tick(engine, now);
        while (alerts_next_action(engine, &action)) {
            if (action.kind == ALERT_ACTION_NOTIFY) {
                printf("%s  ", text_time(now.ns).text);
                printf("incident %" PRIu64 " %s%s: %s\n", action.incident.id,
                       alert_event_word(action.event), action.page ? " (page)" : "",
                       action.incident.text);
                *told += 1;
                *pages += action.page;
            }
        }
    } while (alerts_deadline(engine).ns < until);
}

static void play_moment(struct past *p, struct alerts *engine, const struct moment *m)
{
    const struct mono at = {m->at_ns};

    switch (m->kind) {
    case MOMENT_FINDING:
        play_finding(p, engine, m);
        break;
    case MOMENT_SAMPLE:
        alerts_on_sample(engine, at, &m->sample);
        break;
    case MOMENT_HOST:
        alerts_on_host(engine, at, m->sample.host);
        break;
    case MOMENT_JOB_OVER:
        alerts_on_job_over(engine, at, m->sample.job);
        break;
    }
}

static int play(struct past *p, const struct alert_rule *rule)
{
    static struct alert_config config;
    unsigned told = 0, pages = 0;

    config = (struct alert_config){.rules = rule,
                                   .rule_count = 1,
                                   .route_count = 1,
                                   .fleet = past_fleet(p),
                                   .blind = span_ns(INT64_MAX / 4)};
    config.routes[0].receivers = 1;
    struct alerts *engine = alerts_new(&config, (struct mono){p->from_ns});
    if (engine == NULL) {
        fputs("foliot alerts test: out of memory\n", stderr);
        return EXIT_UNREACHABLE;
    }
    alerts_on_clock(engine, (struct mono){p->from_ns}, 0, FINDING_NO_TIME);
    for (size_t k = 0; k < p->count; k++) {
        play_to(p, engine, p->moments[k].at_ns, &told, &pages);
        play_moment(p, engine, &p->moments[k]);
    }
    play_to(p, engine, p->until_ns, &told, &pages);
    alerts_free(engine);
    printf("rule %s: %zu facts", rule->name, p->count);
    if (p->step_ns > 0) {
        printf(" in steps of up to %" PRId64 " s", (int64_t)(p->step_ns / NS_PER_S));
    }
    printf(", %u notifications, %u pages\n", told, pages);
    return EXIT_WELL;
}

int alerts_test(struct alerts_call *c, const struct alert_file *file, const char *name,
                int64_t since_ns)
{
    const int at = alert_file_find(file, name);
    struct timespec t;
    struct past p = {0};

    if (at < 0) {
        fprintf(
            stderr,
            "foliot alerts test: no rule '%s': expected one of the built-in rules (in "
            "packaging/alerts.yaml, installed as share/foliot/alerts.yaml), or of --file FILE\n",
            foreign_text(name).text);
        return EXIT_USAGE;
    }
    clock_gettime(CLOCK_REALTIME, &t);
    p.until_ns = t.tv_sec * NS_PER_S + t.tv_nsec;
    p.from_ns = p.until_ns - since_ns;
    int status = past_load(c, &file->rules[at], &p);
    status = status == EXIT_WELL ? play(&p, &file->rules[at]) : status;
    past_done(&p);
    return status;
}
