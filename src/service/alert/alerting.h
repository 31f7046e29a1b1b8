/* alerting.h: all of alerting in one object: the rule file, the engine, delivery and silences. One JSON text holds what
 * survives a restart. A controller passes facts to its brain, calls alerting_run() after each batch of facts and at
 * alerting_deadline(), and stores the text that alerting_save() writes. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/brain/brain.h"
#include "platform/json/json.h"
#include "platform/metrics/openmetrics.h"
#include "service/alert/deliver.h"
#include "service/alert/file.h"

#define ALERTING_CONFIG_DEFAULT "/etc/foliot/alerts.yaml"

struct alerting;

struct alerting_options {
    const char *path;    /* of alerts.yaml */
    bool must_be;        /* false: without a file the default rules hold, and nobody is notified */
    struct brain *brain; /* the brain that raises the alerts; NULL: alerting makes its own */
    struct alert_fleet fleet;
    const char *saved; /* of an earlier run; NULL: none */
    /* An incident changed: show it, keep it. */
    void (*on_incident)(void *context, const struct alert_incident *incident, uint32_t event,
                        bool notified);
    /* After a reload the engine is new: report all open findings to it again. May be NULL. */
    void (*on_reload)(void *context);
    /* A line for the journal. The delivery thread calls this, too. about: the incident that the line is about, or NULL. */
    void (*say)(void *context, int priority, const struct alert_incident *about, const char *text);
    void *context;
};

/* -EINVAL: the file is wrong; the reason was passed to say(). */
MUST_CHECK int alerting_new(const struct alerting_options *options, struct mono now, int64_t utc_ns,
                            struct alerting **ret);
/* Waits a moment for notices that are being sent. NULL is allowed. */
void alerting_free(struct alerting *g);
const struct alerts *alerting_engine(const struct alerting *g);
struct brain *alerting_brain(struct alerting *g); /* facts are passed to it */
/* Ticks if it is due, and delivers notices. fleet_offset_ns: fleet time minus `now`, or FINDING_NO_TIME. */
void alerting_run(struct alerting *g, struct mono now, int64_t utc_ns, int64_t fleet_offset_ns);
struct mono alerting_deadline(const struct alerting *g);
/* Reads the file again. If the file is refused, that is logged and raises an alert; the rules in force stay. */
int alerting_reload(struct alerting *g, struct mono now, int64_t utc_ns);

/* Silences that people make; this call assigns the id. -EINVAL, -ENOSPC, -ENOENT. */
MUST_CHECK int alerting_silence(struct alerting *g, struct mono now,
                                const struct alert_silence *silence, const char *by,
                                const char *why, uint64_t *ret_id);
MUST_CHECK int alerting_unsilence(struct alerting *g, struct mono now, uint64_t id);

/* Saves what survives a restart: open incidents, silences, the next numbers. alerting_changed(): true if it changed since the
 * last call. */
bool alerting_changed(const struct alerting *g);
void alerting_save(struct alerting *g, struct json_writer *j);

/* The formats are in docs/alerts.md. */
struct alerting_view { /* NULL functions: everything is shown */
    bool (*alert)(void *context, const struct alert *alert);
    bool (*incident)(void *context, const struct alert_incident *incident);
    void *context;
};
void alerting_put_alerts(const struct alerting *g, struct json_writer *j, const char *key,
                         const struct alerting_view *view);
void alerting_put_incidents(const struct alerting *g, struct json_writer *j, const char *key,
                            bool open_only, const struct alerting_view *view);
bool alerting_is_open(const struct alert_incident *incident);
void alerting_put_incident(const struct alerting *g, struct json_writer *j, const char *key,
                           const struct alert_incident *incident);
void alerting_put_silences(const struct alerting *g, struct json_writer *j, const char *key);
void alerting_put_rules(const struct alerting *g, struct json_writer *j, const char *key);
/* One sample for each open incident that `view` shows; the engine's and the receivers' counters. */
void alerting_put_incident_metrics(const struct alerting *g, struct metrics_text *t,
                                   const struct alerting_view *view);
void alerting_metrics(struct alerting *g, struct metrics_text *t);
