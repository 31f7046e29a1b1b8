/* alerting_show.c: writes alerts, incidents, silences and rules as JSON, the text that survives a restart, and metrics. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "platform/json/element.h"
#include "service/alert/alerting_internal.h"

static void put_time(const struct alerting *g, struct json_writer *j, const char *key,
                     struct mono at)
{
    json_put_int_if(j, key, g->utc_offset_ns != FINDING_NO_TIME && at.ns != 0,
                    at.ns + g->utc_offset_ns);
}

static void put_id(struct json_writer *j, const char *key, uint32_t id)
{
    json_put_int_if(j, key, id != ALERT_NO_ID, id);
}

/* The engine's tables return a name that is valid until the next call: each name is written at once. */
static void put_host(const struct alerting *g, struct json_writer *j, const char *key,
                     uint32_t host)
{
    const struct alert_fleet *f = &g->options.fleet;

    json_put_string(j, key,
                    host != ALERT_NO_ID && f->host != NULL ? f->host(f->context, host) : NULL);
}

static void put_nic(const struct alerting *g, struct json_writer *j, const char *key, uint32_t nic)
{
    const struct alert_fleet *f = &g->options.fleet;
    struct alert_nic info;
    const bool known = nic != ALERT_NO_ID && f->nic != NULL && f->nic(f->context, nic, &info);

    json_put_string(j, key, known ? info.name : NULL);
}

static void put_job(const struct alerting *g, struct json_writer *j, uint64_t job)
{
    const struct alert_fleet *f = &g->options.fleet;
    json_put_string(j, "job", job != 0 && f->job != NULL ? f->job(f->context, job) : NULL);
}

static void put_alert(const struct alerting *g, struct json_writer *j, const struct alert *a)
{
    json_put_object(j, NULL);
    json_put_uint(j, "id", a->id);
    json_put_int_if(j, "incident", a->incident != 0, (int64_t)a->incident);
    json_put_string(j, "rule", a->rule_name);
    json_put_string(j, "state", alert_state_word(a->state));
    json_put_string(j, "severity", alert_severity_word(a->severity));
    json_put_bool(j, "silenced", a->silenced);
    json_put_bool(j, "stale", a->stale);
    put_time(g, j, "since_utc_ns", a->since);
    put_time(g, j, "fired_utc_ns", a->fired);
    put_host(g, j, "host", a->host);
    put_id(j, "nic_id", a->nic);
    put_nic(g, j, "nic", a->nic);
    put_nic(g, j, "peer", a->peer);
    put_id(j, "port", a->port);
    put_job(g, j, a->job);
    json_put_string(j, "text", a->text);
    json_put_end(j);
}

void alerting_put_alerts(const struct alerting *g, struct json_writer *j, const char *key,
                         const struct alerting_view *view)
{
    struct alert a;
    size_t cursor = 0;

    json_put_array(j, key);
    while (alerts_next_alert(alerting_engine(g), &cursor, &a)) {
        if (view->alert == NULL || view->alert(view->context, &a)) {
            put_alert(g, j, &a);
        }
    }
    json_put_end(j);
}

static const char *host_name(void *context, struct host_id host)
{
    const struct alert_fleet *f = context;

    return f->host != NULL ? f->host(f->context, host.index) : NULL;
}

static const char *nic_name(void *context, struct nic_id nic)
{
    const struct alert_fleet *f = context;
    struct alert_nic info = {0};

    return f->nic != NULL && f->nic(f->context, nic.index, &info) ? info.name : NULL;
}

static const char *host_of_nic(void *context, struct nic_id nic)
{
    const struct alert_fleet *f = context;
    struct alert_nic info = {0};

    return f->nic != NULL && f->host != NULL && f->nic(f->context, nic.index, &info)
               ? f->host(f->context, info.host)
               : NULL;
}

static void put_element(const struct alerting *g, struct json_writer *j,
                        const struct alert_incident *c)
{
    struct alert_fleet fleet = g->options.fleet;
    const struct finding_names names = {
        .host = host_name, .nic = nic_name, .context = &fleet, .host_of = host_of_nic};

    json_put_element(j, "element", &c->element, &names,
                     c->element.kind != ELEMENT_UNKNOWN ? c->cause : NULL);
    json_put_choice(j, &c->choice, &names);
}

static void put_incident_fields(const struct alerting *g, struct json_writer *j,
                                const struct alert_incident *c)
{
    json_put_uint(j, "incident", c->id);
    json_put_string(j, "state", alert_incident_state_word(c->state));
    json_put_string(j, "severity", alert_severity_word(c->severity));
    json_put_string(j, "cause", c->cause);
    put_element(g, j, c);
    json_put_int_if(j, "merged_into", c->merged_into != 0, (int64_t)c->merged_into);
    put_time(g, j, "since_utc_ns", c->since);
    json_put_int_if(j, "since_fleet_ns", g->fleet_offset_ns != FINDING_NO_TIME,
                    c->since.ns + g->fleet_offset_ns);
    put_time(g, j, "changed_utc_ns", c->changed);
    put_time(g, j, "resolved_utc_ns", c->resolved);
    json_put_uint(j, "alerts", c->alerts_firing);
    json_put_uint(j, "alerts_total", c->alerts_total);
    json_put_uint(j, "hosts", c->hosts);
    json_put_uint(j, "nics", c->links);
    json_put_uint(j, "pages", c->pages);
    json_put_uint(j, "reopened", c->reopened);
    json_put_bool(j, "told", c->told);
    json_put_bool(j, "silenced", c->silenced);
    json_put_string(j, "acknowledged_by", c->acknowledged_by);
    put_time(g, j, "acknowledged_utc_ns", c->acknowledged);
    json_put_string(j, "text", c->text);
}

void alerting_put_incident(const struct alerting *g, struct json_writer *j, const char *key,
                           const struct alert_incident *c)
{
    json_put_object(j, key);
    put_incident_fields(g, j, c);
    json_put_end(j);
}

bool alerting_is_open(const struct alert_incident *c)
{
    return c->state == INCIDENT_NEW || c->state == INCIDENT_OPEN || c->state == INCIDENT_QUIET;
}

void alerting_put_incidents(const struct alerting *g, struct json_writer *j, const char *key,
                            bool open_only, const struct alerting_view *view)
{
    struct alert_incident c;
    size_t cursor = 0;

    json_put_array(j, key);
    while (alerts_next_incident(alerting_engine(g), &cursor, &c)) {
        if ((!open_only || alerting_is_open(&c)) &&
            (view->incident == NULL || view->incident(view->context, &c))) {
            alerting_put_incident(g, j, NULL, &c);
        }
    }
    json_put_end(j);
}

static void put_silence(struct json_writer *j, const struct alert_silence *s, const char *by,
                        const char *why)
{
    json_put_object(j, NULL);
    json_put_uint(j, "id", s->id);
    json_put_bool(j, "maintenance", s->maintenance);
    json_put_int(j, "from_utc_ns", s->from_utc_ns);
    json_put_int(j, "until_utc_ns", s->until_utc_ns);
    json_put_int_if(j, "every_ns", s->every.ns > 0, s->every.ns);
    json_put_string(j, "rule", s->match.rule[0] != '\0' ? s->match.rule : NULL);
    json_put_string(j, "host", s->match.host[0] != '\0' ? s->match.host : NULL);
    json_put_string(j, "element", s->match.element[0] != '\0' ? s->match.element : NULL);
    json_put_string(j, "by", by);
    json_put_string(j, "why", why);
    json_put_end(j);
}

void alerting_put_silences(const struct alerting *g, struct json_writer *j, const char *key)
{
    json_put_array(j, key);
    for (size_t k = 0; k < g->silence_count; k++) {
        put_silence(j, &g->silences[k].silence, g->silences[k].by, g->silences[k].why);
    }
    for (size_t k = 0; k < g->file.window_count; k++) {
        put_silence(j, &g->file.windows[k], "alerts.yaml", g->file.window_names[k]);
    }
    json_put_end(j);
}

void alerting_put_rules(const struct alerting *g, struct json_writer *j, const char *key)
{
    static const char *const conditions[] = {"finding", "value", "rate", "count", "absent"};

    json_put_array(j, key);
    for (size_t k = 0; k < g->file.rule_count; k++) {
        const struct alert_rule *r = &g->file.rules[k];
        const struct alert_metric_info *m = alert_metric_info(r->metric);
        json_put_object(j, NULL);
        json_put_string(j, "name", r->name);
        json_put_string(j, "condition", conditions[r->condition]);
        json_put_string(j, "metric", m != NULL ? m->name : NULL);
        json_put_string(j, "severity", alert_severity_word(r->severity));
        json_put_string(j, "per",
                        r->condition == ALERT_ON_FINDING ? NULL : alert_scope_word(r->scope));
        json_put_double(
            j, r->below ? "below" : "above",
            r->condition == ALERT_ON_FINDING || r->condition == ALERT_ON_ABSENCE ? NAN : r->limit);
        json_put_int(j, "within_ns", r->within.ns);
        json_put_int(j, "for_ns", r->hold.ns);
        json_put_end(j);
    }
    json_put_end(j);
}

/* ---- state that survives a restart ------------------------------------------------------------------------------ */

bool alerting_changed(const struct alerting *g)
{
    return g->changed;
}

void alerting_save(struct alerting *g, struct json_writer *j)
{
    uint64_t next = g->first_incident;
    struct alert_incident c;
    size_t cursor = 0;

    g->changed = false;
    json_put_object(j, NULL);
    json_put_int(j, "version", 1);
    json_put_string(j, "rules", g->rules);
    json_put_array(j, "incidents");
    while (alerts_next_incident(alerting_engine(g), &cursor, &c)) {
        next = c.id >= next ? c.id + 1 : next;
        if (!alerting_is_open(&c)) {
            continue;
        }
        json_put_object(j, NULL);
        put_incident_fields(g, j, &c);
        json_put_uint(j, "severity_number", c.severity);
        if (c.owes_page) {
            json_put_bool(j, "owes_page", true);
        }
        json_put_uint(j, "sequence",
                      (uint64_t)c.sequence + 16); /* skips numbers of notices on their way */
        json_put_end(j);
    }
    json_put_end(j);
    g->first_incident = next;
    json_put_uint(j, "next_incident", next);
    json_put_array(j, "silences");
    for (size_t k = 0; k < g->silence_count; k++) {
        put_silence(j, &g->silences[k].silence, g->silences[k].by, g->silences[k].why);
    }
    json_put_end(j);
    json_put_end(j);
}

/* ---- metrics ---------------------------------------------------------------------------------------------------- */

void alerting_put_incident_metrics(const struct alerting *g, struct metrics_text *t,
                                   const struct alerting_view *view)
{
    struct alert_incident c;
    size_t cursor = 0;

    metrics_family(
        t, "incident_open", "gauge", NULL,
        "An open incident. element: its cause, with element_kind and direction; host: the host of "
        "the cause.");
    while (alerts_next_incident(alerting_engine(g), &cursor, &c)) {
        char number[24];
        const char *known = direction_word(c.element.direction);
        const char *direction = known != NULL ? known : "";
        const struct metrics_label labels[] = {
            {"incident", number},
            {"severity", alert_severity_word(c.severity)},
            {"element", c.choice.count > 0 ? "unknown" : c.cause},
            {"element_kind", element_kind_word(c.element.kind)},
            {"direction", direction},
            {"host", c.host},
            {"silenced", c.silenced ? "yes" : "no"},
        };
        snprintf(number, sizeof(number), "%llu", (unsigned long long)c.id);
        if (alerting_is_open(&c) && view->incident(view->context, &c)) {
            metrics_sample_n(t, "incident_open", labels, ARRAY_COUNT(labels), 1);
        }
    }
}

void alerting_metrics(struct alerting *g, struct metrics_text *t)
{
    struct alert_counters c;

    alerts_counters(alerting_engine(g), &c);
    metrics_family(t, "alerts", "gauge", NULL, "Alerts by state.");
    metrics_sample(t, "alerts", "state", "pending", c.pending);
    metrics_sample(t, "alerts", "state", "firing", c.firing);
    metrics_gauge(t, "incidents_open", NULL, "Open incidents.", c.incidents_open);
    metrics_counter(t, "alert_pages", "Notifications of severity page.", c.pages);
    metrics_counter(t, "alert_samples", "Values that alert rules judged.", c.samples);
    metrics_counter(t, "alert_dropped",
                    "Alerts, counters and incidents that were dropped because a table was full.",
                    c.alerts_dropped + c.watches_dropped + c.incidents_dropped);
    metrics_family(t, "alert_deliveries", "counter", NULL,
                   "Notifications to receivers by outcome.");
    for (size_t k = 0; k < g->file.receiver_count; k++) {
        static const char *const words[] = {"delivered", "failed", "given_up"};
        struct deliver_counters d;
        deliver_counters(g->deliver, k, &d);
        for (int outcome = 0; outcome < 3; outcome++) {
            const struct metrics_label labels[] = {{"receiver", g->file.receivers[k].name},
                                                   {"outcome", words[outcome]}};
            const uint64_t count = outcome == 0   ? d.delivered
                                   : outcome == 1 ? d.failed
                                                  : d.given_up;
            metrics_sample_n(t, "alert_deliveries_total", labels, 2, (double)count);
        }
    }
}
