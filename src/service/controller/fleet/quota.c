/* quota.c: ceilings of one report, and what one host may have stored. */
#include "service/controller/fleet/quota.h"

#include <math.h>
#include <stdio.h>
#include <syslog.h>
#include <time.h>

#include "core/audit/perf.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/state.h"
#include "service/controller/job/job.h"

enum { PATHS = HOST_NIC_MAX * NIC_EDGE_MAX * EDGE_PATH_MAX, ROUTERS = 1024, MEASURED = 2048 };

/* The most that an agent sends (service/agent/report.c, report_jobs.c, measure.c). */
static const struct message_ceiling ceilings[] = {
    {&foliot__v1__join_request__descriptor, "request", 0, 16384},
    {&foliot__v1__renew_request__descriptor, "request", 0, 16384},
    {&foliot__v1__batch__descriptor, "reports", MESSAGE_BATCH_REPORT_MAX, 0},
    {&foliot__v1__sealed_report__descriptor, "body", 0,
     MESSAGE_BODY_MAX}, /* each report is checked alone */
    {&foliot__v1__measured__descriptor, "sent", MEASURED, 0},
    {&foliot__v1__measured__descriptor, "answered", MEASURED, 0},
    {&foliot__v1__measured__descriptor, "lost", MEASURED, 0},
    {&foliot__v1__measured__descriptor, "owd_p50", MEASURED, 0},
    {&foliot__v1__measured__descriptor, "owd_p99", MEASURED, 0},
    {&foliot__v1__report__descriptor, "ports", HOST_NIC_MAX, 0},
    {&foliot__v1__report__descriptor, "events", REPORT_EVENT_MAX, 0},
    {&foliot__v1__report__descriptor, "jobs", JOB_HOST_MAX, 0},
    {&foliot__v1__report__descriptor, "sensors_off", SENSORS_OFF_MAX, 0},
    {&foliot__v1__job_process__descriptor, "flows", JOB_FLOW_MAX, 0},
    {&foliot__v1__event__descriptor, "text", 0, REPORT_TEXT_MAX},
    {&foliot__v1__finding__descriptor, "what", 0, REPORT_TEXT_MAX},
    {&foliot__v1__finding__descriptor, "suspect", 0, REPORT_TEXT_MAX},
    {&foliot__v1__finding__descriptor, "advice", 0, REPORT_TEXT_MAX},
    {&foliot__v1__matrix_row__descriptor, "sent", 0, AUDIT_ROUNDS_MAX},
    {&foliot__v1__matrix_row__descriptor, "heard", 0, AUDIT_ROUNDS_MAX},
    {&foliot__v1__matrix_row__descriptor, "delay", 0, 2 * AUDIT_ROUNDS_MAX},
    {&foliot__v1__perf_row__descriptor, "work", PERF_ARRIVALS, 0},
    {&foliot__v1__sheet_part__descriptor, "body", 0, AUDIT_PART_MAX},
    {&foliot__v1__path_table__descriptor, "local", PATHS, 0},
    {&foliot__v1__path_table__descriptor, "peer", PATHS, 0},
    {&foliot__v1__path_table__descriptor, "port", PATHS, 0},
    {&foliot__v1__path_table__descriptor, "signature", PATHS, 0},
    {&foliot__v1__path_table__descriptor, "out_local", PATHS, 0},
    {&foliot__v1__path_table__descriptor, "out_peer", PATHS, 0},
    {&foliot__v1__path_table__descriptor, "out_port", PATHS, 0},
    {&foliot__v1__path_table__descriptor, "out_hops", PATHS, 0},
    {&foliot__v1__path_table__descriptor, "out_router", PATHS *PATH_HOP_MAX, 0},
    {&foliot__v1__path_table__descriptor, "router", ROUTERS, 0},
    {&foliot__v1__path_rollup__descriptor, "owd_p50", PATHS, 0},
    {&foliot__v1__path_rollup__descriptor, "owd_p99", PATHS, 0},
    {&foliot__v1__path_rollup__descriptor, "loss_ppm", PATHS, 0},
    {&foliot__v1__path_rollup__descriptor, "state", PATHS, 0},
};

bool quota_within(const ProtobufCMessage *message, char ret_words[160])
{
    return message_within(message, ceilings, ARRAY_COUNT(ceilings), ret_words);
}

/* ---- the quota ---- */

void quota_fill(struct fleet_host *h)
{
    h->quota.rows = QUOTA_ROWS;
    h->quota.job_rows = QUOTA_JOB_ROWS;
    h->quota.stored = QUOTA_STORED;
    h->quota.unpacked = QUOTA_UNPACKED;
    h->quota.work_ms = QUOTA_WORK_MS;
    h->quota.at_ns = controller_mono().ns;
}

static double refilled(double left, double minutes, double a_minute, double most)
{
    left += minutes * a_minute;
    return left < most ? left : most;
}

static int64_t thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void pay(struct fleet_host *h)
{
    if (h->quota.turn_ns != 0) {
        const int64_t now = thread_ns();
        h->quota.work_ms -= (double)(now - h->quota.work_ns) * 1e-6;
        h->quota.work_ns = now;
    }
}

void quota_turn_begins(struct fleet_host *h)
{
    h->quota.turn_ns = h->quota.work_ns = thread_ns();
}

void quota_turn_ends(struct fleet_host *h)
{
    pay(h);
    h->quota.turn_ns = 0;
}

bool quota_turn_left(const struct fleet_host *h)
{
    return thread_ns() - h->quota.turn_ns < QUOTA_TURN_MS * NS_PER_MS;
}

bool quota_left(struct fleet_host *h)
{
    const int64_t now = controller_mono().ns;
    const double minutes = (double)(now - h->quota.at_ns) / 60e9;
    h->quota.at_ns = now;
    h->quota.rows = refilled(h->quota.rows, minutes, QUOTA_ROWS_MINUTE, QUOTA_ROWS);
    h->quota.job_rows = refilled(h->quota.job_rows, minutes, QUOTA_ROWS_MINUTE, QUOTA_JOB_ROWS);
    h->quota.stored = refilled(h->quota.stored, minutes, QUOTA_STORED_MINUTE, QUOTA_STORED);
    h->quota.unpacked = refilled(h->quota.unpacked, minutes, QUOTA_UNPACKED_MINUTE, QUOTA_UNPACKED);
    h->quota.work_ms =
        refilled(h->quota.work_ms, minutes, 60 * QUOTA_WORK_MS_SECOND, QUOTA_WORK_MS);
    pay(h);
    return h->quota.stored > 0 && h->quota.unpacked > 0 && h->quota.work_ms > 0;
}

bool quota_refuses(struct fleet_host *h)
{
    (void)quota_left(h);
    return h->quota.unpacked <= 0 || h->quota.work_ms <= -QUOTA_WORK_MS_DEBT;
}

bool quota_keeps_events(const struct fleet_host *h)
{
    return h->quota.rows > 0;
}

bool quota_keeps_job_events(const struct fleet_host *h)
{
    return h->quota.job_rows > 0;
}

void quota_job_row(struct fleet_host *h)
{
    h->quota.job_rows--;
    h->quota.rows++;
}

static double wait_ms(double left, double a_minute)
{
    return left > 0 ? 0 : 1000 - left / a_minute * 60000;
}

uint32_t quota_wait_ms(const struct fleet_host *h)
{
    const double stored = wait_ms(h->quota.stored, QUOTA_STORED_MINUTE),
                 unpacked = wait_ms(h->quota.unpacked, QUOTA_UNPACKED_MINUTE),
                 work = wait_ms(h->quota.work_ms, 60 * QUOTA_WORK_MS_SECOND);
    const double ms = fmax(fmax(stored, unpacked), work);
    return ms < QUOTA_WAIT_MS_MAX ? (uint32_t)ms : QUOTA_WAIT_MS_MAX;
}

void quota_unpacked(struct fleet_host *h, size_t bytes)
{
    h->quota.unpacked -= (double)bytes;
}

void quota_stored(struct fleet_host *h, uint64_t rows, uint64_t bytes)
{
    h->quota.rows -= (double)rows;
    h->quota.rows = h->quota.rows > -QUOTA_ROWS_DEBT ? h->quota.rows : -QUOTA_ROWS_DEBT;
    h->quota.stored -= (double)bytes;
}

int quota_tell(struct controller *c, struct fleet_host *h, const char *word, const char *text,
               int64_t every_ns, int64_t *told_ns)
{
    const int64_t now = controller_utc_ns();
    if (*told_ns != 0 && now - *told_ns < every_ns && now >= *told_ns) {
        return 0;
    }
    *told_ns = now;
    controller_say(LOG_WARNING, "host %s: %s", h->name, text);
    char body[256];
    /* the text has only the controller's own words */
    snprintf(body, sizeof(body), "{\"text\":\"%s\"}", text);
    const struct store_event event = {
        .at_ns = now, .host = h->id, .kind = "host", .word = word, .body = body};
    return state_event(c, &event);
}
