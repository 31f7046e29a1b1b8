/* result_json.c: see result_json.h. */
#include "service/audit/result_json.h"

#include <stdio.h>
#include <string.h>

#include "core/audit/device.h"

enum { INTERFACE_SIZE = 64 };

/* The network interface of a result; NULL: none. "eth0 HOST eth1" is an edge (service/inspect/agent.c). */
static const char *interface_of(const struct audit *a, const struct audit_result *r,
                                char text[static INTERFACE_SIZE])
{
    const struct check *c = r->check;
    const struct fact *net;

    if (c->subject == SUBJECT_PORT) {
        net = sheet_find(&a->sheets[r->sheet], FACT_PORT_NET, r->subject);
        return net != NULL && net->state == FACT_VALUE ? net->value : NULL;
    }
    if (c->each == FACT_EDGE || c->each == FACT_LANE || c->subject == SUBJECT_NET) {
        snprintf(text, INTERFACE_SIZE, "%.*s", (int)strcspn(r->subject, " "), r->subject);
        return text[0] != '\0' ? text : NULL;
    }
    return NULL;
}

/* The other host of an edge, of a lane or of a path of the matrix; NULL: none. */
static const char *peer_of(const struct audit *a, const struct audit_result *r)
{
    const struct fact *fact = r->check->each != FACT_COUNT
                                  ? sheet_find(&a->sheets[r->sheet], r->check->each, r->subject)
                                  : NULL;

    return fact != NULL ? fact->peer : NULL;
}

static bool is_of(const struct sheet *s, const struct fact *f)
{
    return s != NULL && f >= s->facts && f < s->facts + s->count;
}

/* The time of a fact. Facts of a result are of its host, of its host at an earlier time, or of other hosts. 0: not known. */
static int64_t time_of(const struct audit *a, const struct audit_result *r, const struct fact *f)
{
    const struct sheet *own = &a->sheets[r->sheet];

    if (is_of(own->was, f)) {
        return own->was->at_utc_ns;
    }
    if (is_of(own->accepted, f)) {
        return own->accepted->at_utc_ns;
    }
    for (uint32_t i = 0; !is_of(own, f) && i < a->sheet_count; i++) {
        own = is_of(&a->sheets[i], f) ? &a->sheets[i] : own;
    }
    return own->at_utc_ns;
}

void result_write(struct json_writer *j, const struct audit *a, const struct audit_result *r)
{
    const struct fact *shown = audit_shown(r);
    char interface[INTERFACE_SIZE], device[DEVICE_NAME_SIZE];

    device_name(&a->sheets[r->sheet], r->subject, device);
    json_put_object(j, NULL);
    json_put_string(j, "check", r->check->id);
    json_put_string(j, "host", a->sheets[r->sheet].host);
    json_put_string(j, "subject", r->subject);
    json_put_string(j, "device", device[0] != 0 ? device : NULL);
    json_put_string(j, "interface", interface_of(a, r, interface));
    json_put_string(j, "peer", peer_of(a, r));
    json_put_string(j, "status", audit_status_name(r->status));
    json_put_string(j, "reason", r->reason != REASON_NONE ? audit_reason_name(r->reason) : NULL);
    json_put_string(j, "severity", check_severity_name(r->severity));
    json_put_bool(j, "suspect", r->suspect);
    json_put_bool(j, "seen_once", r->seen_once);
    json_put_bool(j, "overridden", r->overridden);
    json_put_string(j, "found", r->found);
    json_put_string(j, "expected", r->expected);
    json_put_string(j, "basis", r->basis);
    json_put_string(j, "note", r->note);
    json_put_string(j, "source", shown != NULL ? shown->source : NULL);
    json_put_int_if(j, "at_utc_ns", a->sheets[r->sheet].at_utc_ns != 0,
                    shown != NULL ? time_of(a, r, shown) : a->sheets[r->sheet].at_utc_ns);
    json_put_string(j, "baseline", r->baseline);
    json_put_int(j, "cohort", r->cohort);
    json_put_array(j, "evidence");
    for (int i = 0; i < r->fact_count; i++) {
        json_put_object(j, NULL);
        json_put_string(j, "fact", fact_name(r->facts[i]->id));
        json_put_string(j, "subject", r->facts[i]->subject);
        json_put_string(j, "state", fact_state_name(r->facts[i]->state));
        json_put_string(j, "value", r->facts[i]->value);
        json_put_string(j, "source", r->facts[i]->source);
        json_put_int(j, "at_utc_ns", time_of(a, r, r->facts[i]));
        json_put_end(j);
    }
    json_put_end(j);
    json_put_string(j, "remedy",
                    r->status == AUDIT_FAIL || r->status == AUDIT_WARN ? r->check->remedy : NULL);
    json_put_end(j);
}

void result_write_counts(struct json_writer *j, const char *key,
                         const uint32_t counts[static AUDIT_STATUS_COUNT])
{
    json_put_object(j, key);
    for (int i = 0; i < AUDIT_STATUS_COUNT; i++) {
        json_put_int(j, audit_status_name(i), counts[i]);
    }
    json_put_end(j);
}
