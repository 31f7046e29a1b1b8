/* uplink.h: the agent's connection to the controller: reports go up, membership comes down (proto/foliot.proto).
 *
 * Nothing here waits. Without the controller the agent works on, and keeps the reports of the last hours (spool.h). Used only
 * with `controller:` in the configuration. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"
#include "base/limits.h"

struct agent;
struct agent_event;
struct finding;
struct uplink;

/* State of the uplink, for `foliot status`. */
struct uplink_report {
    bool configured, connected;
    char controller[128], trouble[200];
    uint64_t acknowledged, waiting, waiting_bytes, lost;
    int64_t certificate_not_after; /* seconds, UTC; 0: not known */
};

MUST_CHECK int agent_uplink_open(struct agent *a);
void agent_uplink_close(struct agent *a);
void agent_uplink_finding(struct agent *a, const struct finding *f);
void agent_uplink_link(struct agent *a, const struct agent_event *e);
/* Reports the events of jobs_events() that were not reported yet. */
void agent_uplink_jobs(struct agent *a);
/* The controller waits for something: send a beat at once. */
void agent_uplink_beat(struct agent *a);
/* Sends a report at once that has only this sheet (or row). -EMSGSIZE: too large for one report. */
struct Foliot__V1__Sheet;
struct Foliot__V1__MatrixRow;
struct Foliot__V1__PerfRow;
MUST_CHECK int agent_uplink_sheet(struct agent *a, struct Foliot__V1__Sheet *sheet);
MUST_CHECK int agent_uplink_matrix(struct agent *a, struct Foliot__V1__MatrixRow *row);
MUST_CHECK int agent_uplink_perf(struct agent *a, struct Foliot__V1__PerfRow *row);
void agent_uplink_report(const struct agent *a, struct uplink_report *ret);

/* ---- shared by uplink.c and report.c ---- */
struct message_buffer;
#define UPLINK_EVENT_MAX REPORT_EVENT_MAX

enum uplink_event_kind { UPLINK_FINDING, UPLINK_LINK, UPLINK_STARTED, UPLINK_LOST };
struct report_maker;
struct job_event;
struct message_arena;
struct Foliot__V1__Report;
struct Foliot__V1__JobEvent;
MUST_CHECK int report_maker_new(struct report_maker **ret_maker, uint64_t boot, uint32_t run);
void report_maker_free(struct report_maker *m);
void report_add_finding(struct report_maker *m, struct agent *a, const struct finding *f);
void report_add_link(struct report_maker *m, struct agent *a, const struct agent_event *e);
void report_add_job(struct report_maker *m, struct agent *a, const struct job_event *e);
void report_add_note(struct report_maker *m, struct agent *a, enum uplink_event_kind kind,
                     const char *text);
bool report_has_events(const struct report_maker *m);
void report_want_table(struct report_maker *m);
/* Makes zstd(Report) with the waiting events; covers_ms > 0: also with a rollup. -ENOMEM. */
MUST_CHECK int report_make(struct report_maker *m, struct agent *a, uint32_t covers_ms,
                           uint64_t lost, uint64_t spool_bytes, struct message_buffer *ret);

/* One of these is set. The report has nothing else. -EMSGSIZE. */
struct report_audit {
    struct Foliot__V1__Sheet *sheet;
    struct Foliot__V1__MatrixRow *matrix;
    struct Foliot__V1__PerfRow *perf;
};
MUST_CHECK int report_make_audit(struct report_maker *m, struct agent *a,
                                 const struct report_audit *what, struct message_buffer *ret);

/* ---- report_jobs.c: memory is from the arena ---- */
MUST_CHECK int report_fill_jobs(struct message_arena *arena, struct agent *a,
                                struct Foliot__V1__Report *report);
/* NULL: out of memory. The sentence is written to `text`. */
struct Foliot__V1__JobEvent *report_job_event(struct message_arena *arena, const struct agent *a,
                                              const struct job_event *e, char *text, size_t size);
