/* state.h: the way of a report: ingest.c takes it, state.c makes it what is now and events, alarm.c tells the alert engine. */
#pragma once
#include "service/controller/fleet/host.h"
#include "service/controller/fleet/members.h"

struct controller;
struct claim;
struct http_request;
struct json_writer;
struct store_event;

/* ---- ingest.c ---- */
struct waiting { /* for the commit */
    struct http_request *request;
    struct fleet_host *host;
    uint64_t keys_version, settings_version, authority_version, stream, matrix,
        perf; /* as it has them */
    struct members_wish members;
};
unsigned ingest_on_head(void *context, struct http_request *request);
void ingest_on_request(void *context, struct http_request *request);
void ingest_on_gone(void *context, struct http_request *request);
/* Once a second: addresses share their counters of joins with others each minute. */
void ingest_second(struct controller *c);
/* After a commit: 0, or why it failed. */
void ingest_answer_waiting(struct controller *c, int r);

/* ---- state.c ---- */
/* One report of a host, decoded, at a moment of our clock. Writes events and findings. */
MUST_CHECK int state_apply(struct controller *c, struct fleet_host *h,
                           const Foliot__V1__Report *report, int64_t at_ns);
/* When a host's open finding was heard of first, whatever it tells itself; now, if it is new, or UTC was put back. */
int64_t state_heard_ns(struct fleet_host *h, uint32_t number);
struct open_finding *state_finding(struct fleet_host *h, uint32_t number); /* NULL: none is open */
/* What a finding is about: NICs as in messages, hosts as struct open_finding has them. */
uint64_t state_subject(const char *kind, const uint32_t nics_plus_1[2], const uint32_t hosts[2]);
/* Tells of hosts that fell silent or came back. */
void state_watch(struct controller *c);
/* Writes an event row; it is shown to streams after the commit. */
MUST_CHECK int state_event(struct controller *c, const struct store_event *event);
/* Asked before one that the host itself tells is made: without room (quota.h) it is only counted. */
bool state_keeps_event(struct controller *c, struct fleet_host *h, bool room);
void state_committed(struct controller *c, bool ok);
/* One event as JSON, for the API and streams. */
void state_put_event(const struct controller *c, struct json_writer *j,
                     const struct store_event *event);

/* ---- alarm.c: what is told to the alert engine ---- */
MUST_CHECK int alarm_open(struct controller *c);
void alarm_close(struct controller *c);
void alarm_on_host(struct controller *c, const struct fleet_host *h); /* it spoke */
void alarm_on_finding(struct controller *c, const struct fleet_host *h, const struct claim *claim,
                      int64_t since_ns, int64_t heard_ns);
/* Its open findings once more, or only that one: what explains them may be another element by now. */
void alarm_retell(struct controller *c, const struct fleet_host *h,
                  const struct open_finding *only);
void alarm_on_removed(struct controller *c, const struct fleet_host *h);
/* After state_apply has taken it: its values, unless they are old. */
void alarm_on_report(struct controller *c, struct fleet_host *h, const Foliot__V1__Report *report,
                     int64_t at_ns);
/* Once a second: what is of no host. */
void alarm_second(struct controller *c);
/* After a batch of facts: tells what is to be told, and sets the timer. */
void alarm_run(struct controller *c);
void alarm_reload(struct controller *c);
/* Puts what survives a restart into the open transaction, if it changed. */
void alarm_save(struct controller *c);
