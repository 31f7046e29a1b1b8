/* api_alert.c: alerts, incidents, silences. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/state.h"

static void end_list(struct api_call *call)
{
    json_put_null(call->j, "next"); /* the engine's limit fits one page */
    json_put_end(call->j);
    api_answer(call);
}

static struct alerting_view view_of(struct api_call *call)
{
    return (struct alerting_view){scope_sees_alert, scope_sees_incident, call};
}

void api_get_alerts(struct api_call *call)
{
    const struct alerting_view view = view_of(call);
    json_put_object(call->j, NULL);
    alerting_put_alerts(call->c->alerting, call->j, "items", &view);
    end_list(call);
}

void api_get_alert_rules(struct api_call *call)
{
    json_put_object(call->j, NULL);
    alerting_put_rules(call->c->alerting, call->j, "items");
    end_list(call);
}

void api_get_incidents(struct api_call *call)
{
    const char *open = http_query(call->request, "open");
    const struct alerting_view view = view_of(call);
    json_put_object(call->j, NULL);
    alerting_put_incidents(call->c->alerting, call->j, "items",
                           open != NULL && strcmp(open, "true") == 0, &view);
    end_list(call);
}

/* The number after the route's prefix. */
static bool number(struct api_call *call, uint64_t *ret)
{
    char *end = NULL;
    errno = 0;
    *ret = strtoull(call->rest, &end, 10);
    if (call->rest[0] < '0' || call->rest[0] > '9' || *end != 0 || errno != 0) {
        api_error(call, 404, "no-such-number", "expected a number");
        return false;
    }
    return true;
}

static void answer_incident(struct api_call *call, uint64_t id)
{
    struct alert_incident incident;
    if (!alerts_find_incident(alerting_engine(call->c->alerting), id, &incident) ||
        !scope_sees_incident(call, &incident)) {
        api_error(call, 404, "no-such-incident",
                  "no such incident, or it ended long ago: look for events of kind incident");
        return;
    }
    json_writer_reset(call->j);
    alerting_put_incident(call->c->alerting, call->j, NULL, &incident);
    api_answer(call);
}

void api_get_incident(struct api_call *call)
{
    uint64_t id = 0;
    if (number(call, &id)) {
        answer_incident(call, id);
    }
}

void api_post_incident(struct api_call *call)
{
    char detail[64];
    uint64_t id = 0;
    if (!number(call, &id)) {
        return;
    }
    if (!json_is_true(json_object_get(call->body, "acknowledge"))) {
        api_error(call, 400, "bad-body", "expected {\"acknowledge\":true}");
        return;
    }
    if (brain_tell(call->c->brain, controller_mono(), BRAIN_ACKNOWLEDGE,
                   &(struct brain_incident){id, call->who}, NULL) < 0) {
        api_error(call, 404, "no-such-incident", "no such open incident");
        return;
    }
    alarm_run(call->c);
    alarm_save(call->c);
    snprintf(detail, sizeof(detail), "incident %" PRIu64, id);
    if (api_audit(call, "incident.acknowledge", detail)) {
        answer_incident(call, id);
    }
}

/* ---- silences ---- */

void api_get_silences(struct api_call *call)
{
    json_put_object(call->j, NULL);
    alerting_put_silences(call->c->alerting, call->j, "items");
    end_list(call);
}

static bool pattern(struct api_call *call, const char *key, char *text, size_t size)
{
    const json_t *v = json_object_get(call->body, key);
    const char *value = json_string_value(v);
    if (v == NULL || json_is_null(v)) {
        return true;
    }
    if (value == NULL || value[0] == 0 || strlen(value) >= size) {
        api_error(call, 400, "bad-body", "%s: expected a pattern of 1 to %zu characters", key,
                  size - 1);
        return false;
    }
    snprintf(text, size, "%s", value);
    return true;
}

/* The change in words, for the audit trail. */
static void describe(uint64_t id, const struct alert_match *of, int64_t minutes, const char *why,
                     char *text, size_t size)
{
    const char *const patterns[][2] = {
        {"rule", of->rule}, {"host", of->host}, {"element", of->element}};
    size_t at = (size_t)snprintf(text, size, "silence %" PRIu64 ":", id);
    for (size_t i = 0; i < ARRAY_COUNT(patterns); i++) {
        if (patterns[i][1][0] != '\0' && at < size) {
            at += (size_t)snprintf(text + at, size - at, " %s %s", patterns[i][0], patterns[i][1]);
        }
    }
    if (at < size) {
        snprintf(text + at, size - at, " for %" PRId64 " min%s%s", minutes,
                 why[0] != '\0' ? ": " : "", why);
    }
}

/* {"rule"|"host"|"element": pattern, "minutes": n, "from_utc_ns": …, "maintenance": …, "why": …} */
void api_post_silence(struct api_call *call)
{
    const json_t *minutes = json_object_get(call->body, "minutes"),
                 *from = json_object_get(call->body, "from_utc_ns"),
                 *why = json_object_get(call->body, "why");
    struct alert_silence s = {.maintenance =
                                  json_is_true(json_object_get(call->body, "maintenance"))};
    const int64_t now = controller_utc_ns(), count = json_integer_value(minutes);
    char detail[512];
    uint64_t id = 0;
    if (!pattern(call, "rule", s.match.rule, sizeof(s.match.rule)) ||
        !pattern(call, "host", s.match.host, sizeof(s.match.host)) ||
        !pattern(call, "element", s.match.element, sizeof(s.match.element))) {
        return;
    }
    if (!json_is_integer(minutes) || count < 1 || count > 527040 ||
        (from != NULL && (!json_is_integer(from) || json_integer_value(from) < 0 ||
                          json_integer_value(from) > now + 366 * 86400 * NS_PER_S)) ||
        (why != NULL && !json_is_string(why))) {
        api_error(call, 400, "bad-body",
                  "expected minutes (1 to 527040), from_utc_ns within a year, why a text");
        return;
    }
    s.from_utc_ns = from != NULL ? json_integer_value(from) : now;
    s.until_utc_ns = s.from_utc_ns + count * 60 * NS_PER_S;
    const int r = alerting_silence(call->c->alerting, controller_mono(), &s, call->who,
                                   why != NULL ? json_string_value(why) : "", &id);
    if (r < 0) {
        api_error(call, r == -ENOSPC ? 429 : 400, r == -ENOSPC ? "too-many" : "bad-body",
                  r == -ENOSPC ? "too many silences" : "expected one of: rule, host, element");
        return;
    }
    alarm_run(call->c);
    alarm_save(call->c);
    describe(id, &s.match, count, why != NULL ? json_string_value(why) : "", detail,
             sizeof(detail));
    if (api_audit(call, "silence.make", detail)) {
        json_writer_reset(call->j);
        json_put_object(call->j, NULL);
        json_put_uint(call->j, "id", id);
        json_put_int(call->j, "from_utc_ns", s.from_utc_ns);
        json_put_int(call->j, "until_utc_ns", s.until_utc_ns);
        json_put_end(call->j);
        api_answer(call);
    }
}

void api_delete_silence(struct api_call *call)
{
    char detail[64];
    uint64_t id = 0;
    if (!number(call, &id)) {
        return;
    }
    if (alerting_unsilence(call->c->alerting, controller_mono(), id) < 0) {
        api_error(call, 404, "no-such-silence", "no such silence (those of alerts.yaml end there)");
        return;
    }
    alarm_run(call->c);
    alarm_save(call->c);
    snprintf(detail, sizeof(detail), "silence %" PRIu64, id);
    if (api_audit(call, "silence.remove", detail)) {
        json_writer_reset(call->j);
        json_put_object(call->j, NULL);
        json_put_uint(call->j, "removed", id);
        json_put_end(call->j);
        api_answer(call);
    }
}
