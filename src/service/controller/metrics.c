/* metrics.c: /metrics in OpenMetrics: the fleet in sums and the controller's own health. Bounded:
 * per-host figures only, and those of few kinds; per-path history is /api/v1/series. */
#include "service/controller/api.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
    char *bytes;
    size_t size, capacity;
    bool failed;
};

static void add(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct text *t, const char *format, ...)
{
    va_list arguments;
    for (int tries = 0; tries < 2 && !t->failed; tries++) {
        va_start(arguments, format);
        const int n = vsnprintf(t->bytes != NULL ? t->bytes + t->size : NULL, t->capacity - t->size,
                                format, arguments);
        va_end(arguments);
        if (n < 0) {
            t->failed = true;
        } else if ((size_t)n < t->capacity - t->size) {
            t->size += (size_t)n;
            return;
        } else {
            const size_t capacity = (t->capacity + (size_t)n) * 2 + 4096;
            char *larger = realloc(t->bytes, capacity);
            t->failed = larger == NULL;
            t->bytes = larger != NULL ? larger : t->bytes;
            t->capacity = larger != NULL ? capacity : t->capacity;
        }
    }
}

static void family(struct text *t, const char *name, const char *type, const char *unit,
                   const char *help)
{
    add(t, "# TYPE foliot_%s %s\n", name, type);
    if (unit != NULL) {
        add(t, "# UNIT foliot_%s %s\n", name, unit);
    }
    add(t, "# HELP foliot_%s %s\n", name, help);
}

static void counter(struct text *t, const char *name, const char *help, uint64_t value)
{
    family(t, name, "counter", NULL, help);
    add(t, "foliot_%s_total %" PRIu64 "\n", name, value);
}

static void gauge(struct text *t, const char *name, const char *unit, const char *help,
                  double value)
{
    family(t, name, "gauge", unit, help);
    add(t, "foliot_%s %.9g\n", name, value);
}

static void put_hosts(struct controller *c, struct text *t, struct mono now)
{
    family(t, "host_health", "stateset", NULL, "Health of a host; unknown when it is silent.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        for (int s = HEALTH_UNKNOWN; c->hosts[i]->member && s <= HEALTH_BAD; s++) {
            add(t, "foliot_host_health{host=\"%s\",foliot_host_health=\"%s\"} %d\n",
                c->hosts[i]->name, health_word((enum health)s),
                fleet_health(c, c->hosts[i], now) == (enum health)s);
        }
    }
    family(t, "host_clock_bound_seconds", "gauge", "seconds",
           "Half width of the hard bound of a host's clock.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        if (h->member && h->reported && h->clock.hard_ns >= 0 &&
            fleet_freshness(c, h, now) != FRESHNESS_STALE) {
            add(t, "foliot_host_clock_bound_seconds{host=\"%s\"} %.9g\n", h->name,
                (double)h->clock.hard_ns * 1e-9);
        }
    }
    family(t, "host_heard_timestamp_seconds", "gauge", "seconds", "When a host was last heard.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (c->hosts[i]->member && c->hosts[i]->heard_utc_ns != 0) {
            add(t, "foliot_host_heard_timestamp_seconds{host=\"%s\"} %.3f\n", c->hosts[i]->name,
                (double)c->hosts[i]->heard_utc_ns * 1e-9);
        }
    }
}

static void put_per_host(struct controller *c, struct text *t, const char *name, const char *help,
                         uint32_t (*value)(const struct fleet_host *h))
{
    family(t, name, "gauge", NULL, help);
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (c->hosts[i]->member) {
            add(t, "foliot_%s{host=\"%s\"} %u\n", name, c->hosts[i]->name, value(c->hosts[i]));
        }
    }
}

static uint32_t paths_dead(const struct fleet_host *h)
{
    return h->paths_dead;
}

static uint32_t findings_open(const struct fleet_host *h)
{
    return h->finding_count;
}

static void put_own(struct controller *c, struct text *t)
{
    struct store_sizes sizes;
    struct http_counters agents;
    store_sizes(c->store, &sizes);
    http_server_counters(c->agents, &agents);
    gauge(t, "hosts", NULL, "Members of the fleet.", c->member_count);
    gauge(t, "agent_connections", NULL, "Connections of agents.", (double)agents.connections_now);
    gauge(t, "store_bytes", "bytes", "Size of the store.", (double)sizes.file_bytes);
    gauge(t, "store_writable", NULL, "0: nothing can be stored, nothing is acknowledged.",
          !c->store_broken);
    gauge(t, "store_commit_seconds", "seconds", "How long the last commit took.",
          (double)c->count.commit_ns_last * 1e-9);
    gauge(t, "server_certificate_end_timestamp_seconds", "seconds",
          "When the controller's own certificate ends.", (double)c->server_not_after);
    gauge(t, "start_timestamp_seconds", "seconds", "When the controller started.",
          (double)c->started_ns * 1e-9);
    counter(t, "received_bytes", "Bytes of bodies from agents.", agents.bytes_in);
    counter(t, "batches", "Batches of reports, empty ones too.", c->count.batches);
    counter(t, "reports", "Reports taken.", c->count.reports);
    counter(t, "reports_duplicate", "Reports that came again.", c->count.duplicates);
    counter(t, "report_gaps", "Times that reports were lost for good.", c->count.gaps);
    counter(t, "messages_malformed", "Bodies and reports that can't be read.", c->count.malformed);
    counter(t, "requests_refused", "Requests without a member's certificate.", c->count.refused);
    counter(t, "requests_limited", "Requests that came too often.", c->count.limited);
    counter(t, "foreign_nics", "Reports about NICs that are another host's.",
            c->count.foreign_nics);
    counter(t, "samples_dropped", "Values without a table to say whose.", c->count.samples_dropped);
    counter(t, "commits", "Commits to the store.", c->count.commits);
    counter(t, "commit_failures", "Commits that failed.", c->count.commit_failures);
    counter(t, "chunks_sealed", "Chunks of history written.", c->count.sealed);
    counter(t, "api_requests", "Requests to the API.", c->count.api_requests);
    counter(t, "api_refused", "Requests to the API that were refused.", c->count.api_refused);
}

void api_get_metrics(struct api_call *call)
{
    struct text t = {0};
    struct controller *c = call->c;
    put_own(c, &t);
    put_hosts(c, &t, controller_mono());
    put_per_host(c, &t, "host_paths_dead", "Paths into a host that are dead.", paths_dead);
    put_per_host(c, &t, "host_findings_open", "Open findings of a host.", findings_open);
    add(&t, "# EOF\n");
    call->answered = true;
    if (t.failed) {
        http_answer_text(call->request, 503, "out of memory");
    } else {
        http_answer(call->request, 200,
                    "application/openmetrics-text; version=1.0.0; charset=utf-8", t.bytes, t.size,
                    NULL);
    }
    free(t.bytes);
}
