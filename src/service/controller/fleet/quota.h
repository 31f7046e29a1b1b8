/* quota.h: how much the controller takes from one host: ceilings of one report, and a quota for the unpacked and stored bytes
 * of all its reports. An attacker who controls a member can lie about that member. It can't fill the disk or block the loop
 * for others.
 *
 * Processor time is a quota, too. It is measured on the loop's thread, so a busy machine delays no host. It is checked after
 * each report. One request may use only a part of it, so that other hosts get their turn.
 *
 * If a report is over a ceiling, the whole report is dropped. The host, the log and /metrics get this information. If the
 * quota of bytes is used up, reports wait at the agent, which is told when to come again. The last report may leave a debt,
 * limited by the ceilings.
 *
 * If only the quota of rows is used up, reports are taken and their events dropped; the number of dropped events is reported.
 * A host with a NIC that flaps without end makes more rows than are refilled. If its reports were held back, its rollups would
 * be held back for ever. Its findings stay current: their bytes count. */
#pragma once
#include "service/controller/controller.h"

/* The quota at once is what an agent delivers after an outage: its whole spool is 8 MiB. The needs of a busy host are measured
 * by test_security.py, test_what_a_busy_host_needs: a NIC that flaps 4.5 times a second makes some 900 rows a minute; the
 * largest rollup (16 NICs, 512 paths each) is 22 KB. */
#define QUOTA_ROWS        20000 /* events and findings at once */
#define QUOTA_ROWS_MINUTE 240
/* For job events, which any local user can make. They use nothing of the rows above. */
#define QUOTA_JOB_ROWS        5000
#define QUOTA_STORED          (24 << 20) /* bytes of reports, tables, events and findings at once */
#define QUOTA_STORED_MINUTE   (2 << 20)
#define QUOTA_ROW_BYTES       128         /* of a row and its index entries, beside its body */
#define QUOTA_UNPACKED        (128 << 20) /* unpacked bytes of its requests */
#define QUOTA_UNPACKED_MINUTE (240 << 20)
/* Processor time of the loop. The largest rollup, of 8,192 paths, takes 0.3 ms. So an agent's whole spool of 4,096 reports
 * takes less than the quota at once. */
#define QUOTA_WORK_MS        2000
#define QUOTA_WORK_MS_SECOND 50
#define QUOTA_WORK_MS_DEBT   500 /* above this debt its requests are refused, also beats */
#define QUOTA_TURN_MS        100 /* per request: the remaining reports come with the next request */
#define QUOTA_WAIT_MS_MAX    60000
#define QUOTA_ROWS_DEBT      (2 * REPORT_EVENT_MAX) /* upper limit: what one report can leave */

void quota_fill(struct fleet_host *h); /* for a host that is new to this run */
/* The host's request begins. Until quota_turn_ends, the work of the loop's thread counts for this host. */
void quota_turn_begins(struct fleet_host *h);
void quota_turn_ends(struct fleet_host *h);
bool quota_turn_left(const struct fleet_host *h);
/* True if another report may be taken. Refills the quota by time. */
bool quota_left(struct fleet_host *h);
bool quota_refuses(struct fleet_host *h); /* true: not even a request is taken */
/* True if its events, or its jobs' events, may be kept. */
bool quota_keeps_events(const struct fleet_host *h);
bool quota_keeps_job_events(const struct fleet_host *h);
/* Time until there is quota again; 0: there is. */
uint32_t quota_wait_ms(const struct fleet_host *h);
void quota_unpacked(struct fleet_host *h, size_t bytes);
void quota_stored(struct fleet_host *h, uint64_t rows, uint64_t bytes);
/* One of the rows for the next quota_stored() is a job event. */
void quota_job_row(struct fleet_host *h);

/* Logs and stores an event about a host that sends too much; at most once per every_ns since *told_ns. Returns 0, or an error
 * of the store. */
#define QUOTA_TOLD_NS (3600 * NS_PER_S)
MUST_CHECK int quota_tell(struct controller *c, struct fleet_host *h, const char *word,
                          const char *text, int64_t every_ns, int64_t *told_ns);

/* Checks a message of an agent against the ceilings; false: ret_words has the reason, for people. */
MUST_CHECK bool quota_within(const ProtobufCMessage *message, char ret_words[160]);
