/* foliot_alerts_export.c: prints the rules in the form of Prometheus. */
#include <stdio.h>

#include "app/foliot_alerts.h"
#include "app/foliot_command.h"

/* The controller's /metrics for a rule's metric: the series, the labels of one series, and the factor to its unit. The same
 * series may also come from agents' own /metrics and from remote write: `by` makes them one alert. */
static const struct exported {
    uint32_t metric;
    const char *series, *by;
    double factor;
} exported[] = {
    {ALERT_LINK_UP, "foliot_port_up", "host, nic", 1},
    {ALERT_LINK_DOWNS, "foliot_port_carrier_downs_total", "host, nic", 1},
    {ALERT_CLOCK_HARD, "foliot_clock_hard_bound_seconds", "host", 1e-9},
    {ALERT_CLOCK_SYNCED, "foliot_clock_status{foliot_clock_status=\"SYNCED\"}", "host", 1},
    {ALERT_AGENT_CPU, "foliot_agent_cpu_ratio", "host", 1e-6},
    {ALERT_AGENT_REPORTS_LOST, "foliot_reports_lost_total", "host", 1},
    {ALERT_AGENT_LATE_TICKS, "foliot_ticks_late_total", "host", 1},
    {ALERT_AGENT_BAD_PACKETS, "foliot_packets_bad_total", "host", 1},
};

static bool expression(const struct alert_rule *r, char *text, size_t size)
{
    const char *sign = r->below ? "<" : ">", *worst = r->below ? "min" : "max";
    const long long within = (long long)(r->within.ns / NS_PER_S);

    if (r->condition == ALERT_ON_ABSENCE && r->metric == ALERT_HOST_REPORT) {
        snprintf(text, size, "time() - max by (host) (foliot_host_heard_timestamp_seconds) > %lld",
                 within);
        return true;
    }
    if (r->condition == ALERT_ON_THRESHOLD && r->metric == ALERT_LINK_WATCHED) {
        snprintf(text, size, "max by (host) (foliot_host_nics_unwatched) > 0");
        return true;
    }
    for (size_t k = 0; k < ARRAY_COUNT(exported); k++) {
        const struct exported *e = &exported[k];
        if (e->metric != r->metric || r->aggregate != ALERT_EACH) {
            continue;
        }
        if (r->condition == ALERT_ON_COUNT || r->condition == ALERT_ON_RATE) {
            snprintf(text, size, "max by (%s) (%s(%s[%llds])) > %g", e->by,
                     r->condition == ALERT_ON_COUNT ? "increase" : "rate", e->series, within,
                     r->limit * e->factor);
        } else if (r->condition == ALERT_ON_THRESHOLD) {
            snprintf(text, size, "%s by (%s) (%s) %s %g", worst, e->by, e->series, sign,
                     r->limit * e->factor);
        }
        return r->condition == ALERT_ON_COUNT || r->condition == ALERT_ON_RATE ||
               r->condition == ALERT_ON_THRESHOLD;
    }
    return false;
}

/* A name in Prometheus' style: link-flaps becomes FoliotLinkFlaps. */
static void camel(const char *name, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "Foliot");
    bool upper = true;

    for (; *name != '\0' && used + 1 < size; name++) {
        const bool letter = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                            (*name >= '0' && *name <= '9');
        if (letter) {
            text[used++] =
                upper && *name >= 'a' && *name <= 'z' ? (char)(*name - 'a' + 'A') : *name;
        }
        upper = !letter;
    }
    text[used] = '\0';
}

static void print_quoted(const char *text) /* YAML, single quotes */
{
    putchar('\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            putchar('\'');
        }
        putchar((unsigned char)*text < ' ' ? ' ' : *text);
    }
    putchar('\'');
}

int alerts_export(const struct alert_file *file)
{
    puts("# Foliot's alert rules for Prometheus. They need only the scrape of the controller.\n"
         "# FoliotIncident stands for each incident that Foliot found, with its severity, element "
         "and "
         "host.\n"
         "# It leaves out incidents that a silence or a maintenance window covers. Prometheus "
         "itself "
         "judges the other rules.\n"
         "# A rule without a series here has a comment below: its alerts come as FoliotIncident.\n"
         "groups:\n- name: foliot\n  rules:\n"
         "  - alert: FoliotIncident\n"
         "    expr: 'max by (incident, severity, element, host) "
         "(foliot_incident_open{silenced=\"no\"}) > 0'\n"
         "    annotations: {summary: 'incident {{ $labels.incident }}: {{ $labels.element }}; "
         "foliot alerts shows details'}");
    for (size_t k = 0; k < file->rule_count; k++) {
        const struct alert_rule *r = &file->rules[k];
        char text[256], name[2 * ALERT_NAME_MAX];
        if (!expression(r, text, sizeof(text))) {
            printf("  # %s: %s\n", r->name,
                   r->condition == ALERT_ON_FINDING ? "a finding, not a series"
                                                    : "not in /metrics");
            continue;
        }
        camel(r->name, name, sizeof(name));
        printf("  - alert: %s\n    expr: ", name);
        print_quoted(text);
        printf("\n    for: %llds\n    labels: {severity: %s}\n    annotations: {summary: ",
               (long long)(r->hold.ns / NS_PER_S), alert_severity_word(r->severity));
        print_quoted(r->advice[0] != '\0' ? r->advice : r->name);
        puts("}");
    }
    puts("  - alert: FoliotNothingHeard\n    expr: absent(foliot_start_timestamp_seconds)\n    "
         "for: 2m\n"
         "    labels: {severity: page}\n    annotations: {summary: 'the controller is not scraped: "
         "nothing is watched'}");
    return EXIT_WELL;
}
