/* state.h: the way of a report: ingest.c receives it, state.c makes the present state of it and state_event.c its events, alarm.c
 * gives it to the alert engine. */
#pragma once
#include "service/controller/fleet/host.h"
#include "service/controller/fleet/members.h"

struct controller;
struct claim;
struct http_request;
struct json_writer;
struct store_event;

/* ---- ingest.c ---- */
struct waiting { /* waits for the commit */
    struct http_request *request;
    struct fleet_host *host;
    uint64_t keys_version, settings_version, authority_version, stream, matrix,
        perf; /* versions that the agent has */
    struct members_wish members;
};
unsigned ingest_on_head(void *context, struct http_request *request);
void ingest_on_request(void *context, struct http_request *request);
void ingest_on_gone(void *context, struct http_request *request);
/* Called once a second. Each minute the salt changes, so that addresses share their limits of joins with other addresses. */
void ingest_second(struct controller *c);
/* After a commit: r is 0, or the error. */
void ingest_answer_waiting(struct controller *c, int r);

/* ---- state.c ---- */
/* Applies a decoded report of a host. at_ns: its time on the controller's clock. Writes events and findings. */
MUST_CHECK int state_apply(struct controller *c, struct fleet_host *h,
                           const Foliot__V1__Report *report, int64_t at_ns);
/* Reports hosts that fell silent or came back. */
void state_watch(struct controller *c);

/* ---- state_event.c ---- */
/* Stores an event of a report. A finding is opened, changed or closed. at_ns: the report's time on the controller's clock. */
MUST_CHECK int state_apply_event(struct controller *c, struct fleet_host *h,
                                 const Foliot__V1__Report *report, const Foliot__V1__Event *e,
                                 int64_t at_ns);
/* When a host's open finding was first reported, by the controller's clock. The present time if it is new, or if UTC was set
 * back. */
int64_t state_heard_ns(struct fleet_host *h, uint32_t number);
/* NULL: it is not open */
struct open_finding *state_finding(struct fleet_host *h, uint32_t number);
/* Hash of a finding's kind and ends: NICs as in messages, hosts as in struct open_finding. */
uint64_t state_subject(const char *kind, const uint32_t nics_plus_1[2], const uint32_t hosts[2]);
/* Writes a row for an event. Streams get it after the commit. */
MUST_CHECK int state_event(struct controller *c, const struct store_event *event);
/* Called before a host's own event is made: without room (quota.h) the event is only counted. */
bool state_keeps_event(struct controller *c, struct fleet_host *h, bool room);
void state_committed(struct controller *c, bool ok);
/* Writes an event as JSON, for the API and streams. */
void state_put_event(const struct controller *c, struct json_writer *j,
                     const struct store_event *event);

/* ---- alarm.c: input of the alert engine ---- */
MUST_CHECK int alarm_open(struct controller *c);
void alarm_close(struct controller *c);
void alarm_on_host(struct controller *c, const struct fleet_host *h); /* the host reported */
void alarm_on_finding(struct controller *c, const struct fleet_host *h, const struct claim *claim,
                      int64_t since_ns, int64_t heard_ns);
/* Gives all its open findings to the engine again, or only this one: another element may explain them now. */
void alarm_retell(struct controller *c, const struct fleet_host *h,
                  const struct open_finding *only);
void alarm_on_removed(struct controller *c, const struct fleet_host *h);
/* Called after state_apply: gives the report's values to the engine, unless they are old. */
void alarm_on_report(struct controller *c, struct fleet_host *h, const Foliot__V1__Report *report,
                     int64_t at_ns);
/* Called once a second: values that belong to no report. */
void alarm_second(struct controller *c);
/* Called after a batch of facts: sends notifications and sets the timer. */
void alarm_run(struct controller *c);
void alarm_reload(struct controller *c);
/* Writes the state that must survive a restart into the open transaction, if it changed. */
void alarm_save(struct controller *c);
