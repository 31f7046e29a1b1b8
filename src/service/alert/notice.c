/* notice.c: writes a notice as JSON for webhooks and commands, as an alert of Alertmanager's API v2, as a Slack message, and
 * as an e-mail. */
#include "service/alert/notice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "platform/json/json.h"

#define REFRESHED_NS (300 * NS_PER_S) /* Alertmanager resolves what isn't repeated by then */

void alert_notice_init(struct alert_notice *n, const struct alert_action *action, const char *link,
                       struct mono now, int64_t utc_offset_ns, int64_t fleet_offset_ns)
{
    const struct alert_incident *c = &action->incident;
    const bool utc = utc_offset_ns != FINDING_NO_TIME;

    memset(n, 0, sizeof(*n));
    n->event = action->event;
    n->severity = c->severity;
    n->page = action->page;
    n->incident = c->id;
    n->merged_into = c->merged_into;
    n->sequence = action->sequence;
    n->said_utc_ns = utc ? now.ns + utc_offset_ns : FINDING_NO_TIME;
    n->since_utc_ns = utc ? c->since.ns + utc_offset_ns : FINDING_NO_TIME;
    n->since_fleet_ns =
        fleet_offset_ns != FINDING_NO_TIME ? c->since.ns + fleet_offset_ns : FINDING_NO_TIME;
    n->resolved_utc_ns =
        action->event == ALERT_RESOLVED || action->event == ALERT_ABSORBED ? n->said_utc_ns : 0;
    n->alerts = c->alerts_firing;
    n->hosts = c->hosts;
    n->nics = c->links;
    snprintf(n->cause, sizeof(n->cause), "%s", c->cause);
    n->unknown = c->choice.count > 0;
    n->element_kind = c->element.kind;
    n->direction = c->element.direction;
    snprintf(n->host, sizeof(n->host), "%s", c->host);
    snprintf(n->text, sizeof(n->text), "%s", c->text);
    snprintf(n->acknowledged_by, sizeof(n->acknowledged_by), "%s",
             c->acknowledged_by != NULL ? c->acknowledged_by : "");
    if (action->event == ALERT_HEARTBEAT) {
        n->since_utc_ns = n->said_utc_ns;
        snprintf(n->key, sizeof(n->key), "foliot-alive-%lld",
                 (long long)(n->said_utc_ns / NS_PER_S));
    } else {
        snprintf(n->key, sizeof(n->key), "foliot-%llu-%u", (unsigned long long)c->id,
                 action->sequence);
    }
    if (link[0] != '\0' && action->event != ALERT_HEARTBEAT) {
        snprintf(n->link, sizeof(n->link), "%s/#/alerts?incident=%llu&at=%lld", link,
                 (unsigned long long)c->id, (long long)n->since_utc_ns);
    }
}

/* ---- parts ------------------------------------------------------------------------------------------------------ */

/* RFC 3339, in UTC, to the nanosecond. */
static const char *rfc3339(int64_t utc_ns, char text[40])
{
    const time_t s = (time_t)(utc_ns / NS_PER_S);
    char whole[24];
    struct tm tm;

    gmtime_r(&s, &tm);
    strftime(whole, sizeof(whole), "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text, 40, "%s.%09lldZ", whole, (long long)(utc_ns % NS_PER_S));
    return text;
}

static void put_time(struct json_writer *j, const char *key, int64_t utc_ns)
{
    char text[40];

    json_put_string(j, key,
                    utc_ns == FINDING_NO_TIME || utc_ns <= 0 ? NULL : rfc3339(utc_ns, text));
}

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* ---- the formats ------------------------------------------------------------------------------------------------ */

static void put_plain(struct json_writer *j, const struct alert_notice *n)
{
    json_put_object(j, NULL);
    json_put_int(j, "version", 1);
    json_put_string(j, "kind", n->event == ALERT_HEARTBEAT ? "heartbeat" : "incident");
    json_put_string(j, "key", n->key);
    json_put_string(j, "event", alert_event_word(n->event));
    json_put_string(j, "severity", alert_severity_word(n->severity));
    json_put_bool(j, "page", n->page);
    json_put_uint(j, "incident", n->incident);
    json_put_int_if(j, "merged_into", n->merged_into != 0, (int64_t)n->merged_into);
    json_put_string(j, "cause", or_null(n->cause));
    json_put_string(j, "element_kind", element_kind_word(n->element_kind));
    json_put_string(j, "direction", direction_word(n->direction));
    json_put_string(j, "text", n->text);
    put_time(j, "since", n->since_utc_ns);
    json_put_int_if(j, "since_utc_ns", n->since_utc_ns != FINDING_NO_TIME, n->since_utc_ns);
    json_put_int_if(j, "since_fleet_ns", n->since_fleet_ns != FINDING_NO_TIME, n->since_fleet_ns);
    put_time(j, "resolved", n->resolved_utc_ns);
    json_put_int_if(j, "said_utc_ns", n->said_utc_ns != FINDING_NO_TIME, n->said_utc_ns);
    json_put_uint(j, "alerts", n->alerts);
    json_put_uint(j, "hosts", n->hosts);
    json_put_uint(j, "nics", n->nics);
    json_put_string(j, "acknowledged_by", or_null(n->acknowledged_by));
    json_put_string(j, "link", or_null(n->link));
    json_put_end(j);
}

/* https://github.com/prometheus/alertmanager, api/v2/openapi.yaml: postableAlerts. Labels name the alert, and routes, silences
 * and inhibitions match them: severity, element and host are labels although they may change when an incident turns out to be
 * worse or larger. The alert with the earlier labels then ends at its endsAt. */
static void put_alertmanager(struct json_writer *j, const struct alert_notice *n)
{
    const bool alive = n->event == ALERT_HEARTBEAT;
    char number[24];

    json_put_array(j, NULL);
    json_put_object(j, NULL);
    json_put_object(j, "labels");
    json_put_string(j, "alertname", alive ? "FoliotAlive" : "FoliotIncident");
    json_put_string(j, "severity", alive ? "none" : alert_severity_word(n->severity));
    if (!alive) {
        snprintf(number, sizeof(number), "%llu", (unsigned long long)n->incident);
        json_put_string(j, "incident", number);
        json_put_string(j, "element", n->unknown ? "unknown" : n->cause);
        json_put_string(j, "element_kind", element_kind_word(n->element_kind));
        json_put_string(j, "host", n->host); /* Alertmanager drops empty labels */
    }
    json_put_end(j);
    json_put_object(j, "annotations");
    json_put_string(j, "summary", n->text);
    json_put_string(j, "cause", n->cause);
    if (direction_word(n->direction) != NULL) { /* no label: the direction may become known later */
        json_put_string(j, "direction", direction_word(n->direction));
    }
    json_put_string(j, "event", alert_event_word(n->event));
    json_put_end(j);
    if (n->since_utc_ns != FINDING_NO_TIME) {
        put_time(j, "startsAt", n->since_utc_ns);
        put_time(j, "endsAt",
                 n->resolved_utc_ns > 0 ? n->resolved_utc_ns : n->said_utc_ns + REFRESHED_NS);
    }
    if (n->link[0] != '\0') {
        json_put_string(j, "generatorURL", n->link);
    }
    json_put_end(j);
    json_put_end(j);
}

/* Slack's mrkdwn: only these three are special. https://api.slack.com/reference/surfaces/formatting#escaping */
static void escape_slack(const char *text, char *to, size_t size)
{
    size_t used = 0;

    for (; *text != '\0' && used + 6 < size; text++) {
        const char *word = *text == '&'   ? "&amp;"
                           : *text == '<' ? "&lt;"
                           : *text == '>' ? "&gt;"
                                          : NULL;
        if (word != NULL) {
            used += (size_t)snprintf(to + used, size - used, "%s", word);
        } else {
            to[used++] = *text;
        }
    }
    to[used] = '\0';
}

static void put_slack(struct json_writer *j, const struct alert_notice *n)
{
    char escaped[2 * ALERT_TEXT_MAX], text[3 * ALERT_TEXT_MAX];

    escape_slack(n->text, escaped, sizeof(escaped));
    snprintf(text, sizeof(text), "*%s* %s: %s%s%s%s",
             n->page ? "PAGE" : alert_severity_word(n->severity), alert_event_word(n->event),
             escaped, n->link[0] != '\0' ? " <" : "", n->link, n->link[0] != '\0' ? "|open>" : "");
    json_put_object(j, NULL);
    json_put_string(j, "text", text);
    json_put_end(j);
}

/* Makes text safe for a mail header: printable ASCII, on one line. */
static void header_text(const char *text, char *to, size_t size)
{
    size_t used = 0;

    for (; *text != '\0' && used + 1 < size; text++) {
        to[used++] = *text >= ' ' && *text < 127 ? *text : '?';
    }
    to[used] = '\0';
}

static int email(const struct alert_receiver *receiver, const struct alert_notice *n,
                 char **ret_body, size_t *ret_size)
{
    char subject[160], date[64], to[ALERT_ADDRESS_MAX * 260] = "", body[ALERT_TEXT_MAX + 1];
    const time_t s = n->said_utc_ns != FINDING_NO_TIME ? (time_t)(n->said_utc_ns / NS_PER_S) : 0;
    struct tm tm;

    for (uint32_t k = 0; k < receiver->to_count; k++) {
        const size_t used = strlen(to);
        snprintf(to + used, sizeof(to) - used, "%s<%s>", k > 0 ? ", " : "", receiver->to[k]);
    }
    gmtime_r(&s, &tm);
    strftime(date, sizeof(date), "%a, %d %b %Y %H:%M:%S +0000", &tm);
    header_text(n->cause[0] != '\0' ? n->cause : n->text, subject, sizeof(subject));
    snprintf(body, sizeof(body), "%s", n->text);
    for (char *p = body; *p != '\0'; p++) { /* hosts choose names: a name must not begin a line */
        *p = (unsigned char)*p < ' ' ? ' ' : *p;
    }
    *ret_body = malloc(ALERT_PAYLOAD_MAX);
    if (*ret_body == NULL) {
        return -ENOMEM;
    }
    int length = snprintf(
        *ret_body, ALERT_PAYLOAD_MAX,
        "From: Foliot <%s>\r\nTo: %s\r\nDate: %s\r\nMessage-ID: <%s@foliot>\r\n"
        "Subject: [foliot] %s %s: %s\r\nMIME-Version: 1.0\r\n"
        "Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n"
        "Auto-Submitted: auto-generated\r\n\r\n%s\r\n\r\n"
        "incident %llu: %u alerts, %u hosts, %u NICs%s%s\r\n%s%s",
        receiver->from, to, date, n->key, n->page ? "PAGE" : alert_severity_word(n->severity),
        alert_event_word(n->event), subject, body, (unsigned long long)n->incident, n->alerts,
        n->hosts, n->nics, n->acknowledged_by[0] != '\0' ? "; acknowledged by " : "",
        n->acknowledged_by, n->link, n->link[0] != '\0' ? "\r\n" : "");
    if (length < 0 || length >= ALERT_PAYLOAD_MAX) {
        free(*ret_body);
        return -ENOSPC;
    }
    *ret_size = (size_t)length;
    return 0;
}

int alert_payload(const struct alert_receiver *receiver, const struct alert_notice *n,
                  char **ret_body, size_t *ret_size)
{
    struct json_writer j;
    const char *text = NULL;
    size_t size = 0;
    char *copy = NULL;

    if (receiver->kind == RECEIVER_EMAIL) {
        return email(receiver, n, ret_body, ret_size);
    }
    json_writer_init(&j, ALERT_PAYLOAD_MAX);
    if (receiver->kind == RECEIVER_ALERTMANAGER) {
        put_alertmanager(&j, n);
    } else if (receiver->kind == RECEIVER_SLACK) {
        put_slack(&j, n);
    } else {
        put_plain(&j, n);
    }
    int r = json_writer_finish(&j, &text, &size);
    copy = r == 0 ? malloc(size + 1) : NULL;
    if (copy != NULL) {
        memcpy(copy, text, size);
        copy[size] = '\0';
        *ret_body = copy;
        *ret_size = size;
    }
    json_writer_done(&j);
    return r < 0 ? r : copy == NULL ? -ENOMEM : 0;
}
