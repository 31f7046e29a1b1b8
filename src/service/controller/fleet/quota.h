/* quota.h: how much of one host the controller takes: ceilings of one report, and a quota of what many of them may
 * have unpacked and stored. A member that was taken over may lie about itself; it can't fill the disk or hold up the
 * loop for the others.
 *
 * Time is a quota, too: of the processor, by the loop's thread, so that a busy machine makes nobody wait. It is looked at
 * after each report, and one request has a part of it only, so that others' turns come.
 *
 * Of a report that is over a ceiling nothing is taken, and its host, the log and /metrics are told. Where the quota of
 * bytes is used up no more reports are taken for now: they wait at the agent, which is told when to come again. The
 * last one taken may leave a debt: no report is larger than its ceilings.
 *
 * Where only the rows are used up reports are taken, but their events are not kept: people are told how many. A host
 * that makes more rows than are refilled, as one whose NIC flaps without end, would be held for ever otherwise, and
 * with it its rollups. Its findings stay as they are now: their bytes count. */
#pragma once
#include "service/controller/controller.h"

/* At once as much as an agent delivers after an outage: its whole spool is 8 MiB. What a busy host needs is measured by
 * test_security.py, test_what_a_busy_host_needs: a NIC that flaps 4.5 times a second makes some 900 rows a minute, the
 * largest rollup (16 NICs, 512 paths each) is 22 KB. */
#define QUOTA_ROWS        20000 /* events and findings at once */
#define QUOTA_ROWS_MINUTE 240
/* Of job events, which any local user can make: they take nothing of the above. */
#define QUOTA_JOB_ROWS        5000
#define QUOTA_STORED          (24 << 20) /* bytes of reports, tables, events and findings at once */
#define QUOTA_STORED_MINUTE   (2 << 20)
#define QUOTA_ROW_BYTES       128         /* of a row and its places in indexes, beside its body */
#define QUOTA_UNPACKED        (128 << 20) /* bytes that its requests may unpack to */
#define QUOTA_UNPACKED_MINUTE (240 << 20)
/* Processor time of the loop. The largest rollup, of 8,192 paths, takes 0.3 ms: an agent's whole spool of 4,096 reports is
 * less than what is there at once. */
#define QUOTA_WORK_MS        2000
#define QUOTA_WORK_MS_SECOND 50
#define QUOTA_WORK_MS_DEBT   500 /* then its requests are refused, beats too */
#define QUOTA_TURN_MS        100 /* of one request: what is left of its reports comes with the next one */
#define QUOTA_WAIT_MS_MAX    60000
#define QUOTA_ROWS_DEBT      (2 * REPORT_EVENT_MAX) /* at most: what one report may leave */

void quota_fill(struct fleet_host *h); /* of a host that is new to this run */
/* Its request is looked at now: what the loop's thread does from here on until quota_turn_ends is its work. */
void quota_turn_begins(struct fleet_host *h);
void quota_turn_ends(struct fleet_host *h);
bool quota_turn_left(const struct fleet_host *h);
/* Another report may be taken. Refills with time. */
bool quota_left(struct fleet_host *h);
bool quota_refuses(struct fleet_host *h); /* not even a request */
/* Its events may be kept; its jobs' events. */
bool quota_keeps_events(const struct fleet_host *h);
bool quota_keeps_job_events(const struct fleet_host *h);
/* When there will be something left; 0: there is. */
uint32_t quota_wait_ms(const struct fleet_host *h);
void quota_unpacked(struct fleet_host *h, size_t bytes);
void quota_stored(struct fleet_host *h, uint64_t rows, uint64_t bytes);
/* One of the rows that quota_stored will be told of is a job event's. */
void quota_job_row(struct fleet_host *h);

/* People are told, in the log and by an event, of a host that sends too much; not again within every_ns of *told_ns. 0, or
 * < 0: the store's. */
#define QUOTA_TOLD_NS (3600 * NS_PER_S)
MUST_CHECK int quota_tell(struct controller *c, struct fleet_host *h, const char *word,
                          const char *text, int64_t every_ns, int64_t *told_ns);

/* A message of an agent within its ceilings; false: why not, for people. */
MUST_CHECK bool quota_within(const ProtobufCMessage *message, char ret_words[160]);
