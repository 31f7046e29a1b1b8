/* metrics.c: /metrics in OpenMetrics: the fleet in sums and the controller's own health. Bounded:
 * per-host figures only, and those of few kinds; per-path history is /api/v1/series. */
#include "platform/metrics/openmetrics.h"
#include "platform/metrics/own.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "service/controller/api.h"
#include "service/controller/remote.h"
#include "wire/switch_page.h"

/* A tenant's token sees its own. */
static bool shown(const struct api_call *call, const struct fleet_host *h)
{
    return h->member && api_sees(call, h);
}

static void put_hosts(const struct api_call *call, struct metrics_text *t, struct mono now)
{
    struct controller *c = call->c;
    metrics_family(t, "host_health", "stateset", NULL,
                   "Health of a host; unknown when it is silent.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        for (int s = HEALTH_UNKNOWN; shown(call, c->hosts[i]) && s <= HEALTH_BAD; s++) {
            const char *const labels[2] = {"host", "foliot_host_health"}, *const values[2] = {
                                                                              c->hosts[i]->name,
                                                                              health_word(
                                                                                  (enum health)s)};
            metrics_sample2(t, "host_health", labels, values,
                            fleet_health(c, c->hosts[i], now) == (enum health)s);
        }
    }
    metrics_family(t, "host_clock_bound_seconds", "gauge", "seconds",
                   "Half width of the hard bound of a host's clock.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        if (shown(call, h) && h->reported && h->clock.hard_ns >= 0 &&
            fleet_freshness(c, h, now) != FRESHNESS_STALE) {
            metrics_sample(t, "host_clock_bound_seconds", "host", h->name,
                           (double)h->clock.hard_ns * 1e-9);
        }
    }
    metrics_family(t, "host_heard_timestamp_seconds", "gauge", "seconds",
                   "When a host was last heard.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (shown(call, c->hosts[i]) && c->hosts[i]->heard_utc_ns != 0) {
            metrics_sample(t, "host_heard_timestamp_seconds", "host", c->hosts[i]->name,
                           (double)(c->hosts[i]->heard_utc_ns / NS_PER_MS) * 1e-3);
        }
    }
}

static void put_per_host(const struct api_call *call, struct metrics_text *t, const char *name,
                         const char *help, uint32_t (*value)(const struct fleet_host *h))
{
    const struct controller *c = call->c;
    metrics_family(t, name, "gauge", NULL, help);
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (shown(call, c->hosts[i])) {
            metrics_sample(t, name, "host", c->hosts[i]->name, value(c->hosts[i]));
        }
    }
}

static void put_unwatched(const struct api_call *call, struct metrics_text *t)
{
    const struct controller *c = call->c;
    metrics_family(t, "host_nics_unwatched", "gauge", NULL,
                   "NICs of a host that are up and can't be probed from, or whose link can't be "
                   "read.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (shown(call, c->hosts[i])) {
            metrics_sample(t, "host_nics_unwatched", "host", c->hosts[i]->name,
                           fleet_nics_unwatched(c, c->hosts[i]));
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

static uint32_t sensors_off(const struct fleet_host *h)
{
    return h->sensor_off_count;
}

/* What it takes to run it. */
static void put_cost(struct metrics_text *t)
{
    struct rusage usage;
    const uint64_t memory = own_memory_bytes();

    getrusage(RUSAGE_SELF, &usage);
    metrics_family(t, "controller_cpu_seconds", "counter", "seconds",
                   "Processor time of the controller.");
    metrics_sample(t, "controller_cpu_seconds_total", NULL, NULL,
                   (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6);
    if (memory > 0) {
        metrics_gauge(t, "controller_memory_bytes", "bytes", "Resident memory of the controller.",
                      (double)memory);
    }
}

/* A sensor that fell silent is none that says that all is well. */
static void put_freshness(struct controller *c, struct metrics_text *t)
{
    const struct mono now = controller_mono();
    uint32_t counts[FRESHNESS_STALE + 1] = {0};
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (c->hosts[i]->member) {
            counts[fleet_freshness(c, c->hosts[i], now)]++;
        }
    }
    metrics_family(t, "hosts_by_freshness", "gauge", NULL,
                   "Members by how lately they were heard; a stale one's health is unknown.");
    for (int f = 0; f <= FRESHNESS_STALE; f++) {
        metrics_sample(t, "hosts_by_freshness", "freshness", freshness_word((enum freshness)f),
                       counts[f]);
    }
}

/* Where jobs are not looked after: somebody turned it off, here or there. */
static void put_modes(struct controller *c, struct metrics_text *t)
{
    uint32_t counts[SWITCH_FULL + 1] = {0};
    for (uint32_t i = 0; i < c->host_count; i++) {
        const uint32_t mode = c->hosts[i]->mode;
        if (c->hosts[i]->member && mode < SWITCH_FULL + 1) {
            counts[mode]++;
        }
    }
    metrics_family(t, "hosts_by_mode", "gauge", NULL,
                   "Members by the most that their switch lets jobs do; none: what they were "
                   "started for.");
    for (uint32_t m = 0; m < SWITCH_FULL + 1; m++) {
        const char *word = switch_mode_word((enum switch_mode)m);
        metrics_sample(t, "hosts_by_mode", "mode", word != NULL ? word : "none", counts[m]);
    }
}

static void put_own(struct controller *c, struct metrics_text *t)
{
    struct store_sizes sizes;
    struct http_counters agents;
    store_sizes(c->store, &sizes);
    http_server_counters(c->agents, &agents);
    metrics_gauge(t, "hosts", NULL, "Members of the fleet.", c->member_count);
    put_freshness(c, t);
    put_modes(c, t);
    put_cost(t);
    metrics_gauge(t, "agent_connections", NULL, "Connections of agents.",
                  (double)agents.connections_now);
    metrics_gauge(t, "store_bytes", "bytes", "Size of the store.", (double)sizes.file_bytes);
    metrics_gauge(t, "store_writable", NULL, "0: nothing can be stored, nothing is acknowledged.",
                  !c->store_broken);
    metrics_gauge(t, "store_commit_seconds", "seconds", "How long the last commit took.",
                  (double)c->count.commit_ns_last * 1e-9);
    metrics_gauge(t, "server_certificate_end_timestamp_seconds", "seconds",
                  "When the controller's own certificate ends.", (double)c->server_not_after);
    metrics_gauge(t, "start_timestamp_seconds", "seconds", "When the controller started.",
                  (double)c->started_ns * 1e-9);
    metrics_counter(t, "received_bytes", "Bytes of bodies from agents.", agents.bytes_in);
    metrics_counter(t, "batches", "Batches of reports, empty ones too.", c->count.batches);
    metrics_counter(t, "reports", "Reports taken.", c->count.reports);
    metrics_counter(t, "reports_duplicate", "Reports that came again.", c->count.duplicates);
    metrics_counter(t, "report_gaps", "Times that reports were lost for good.", c->count.gaps);
    metrics_counter(t, "messages_malformed", "Bodies and reports that can't be read.",
                    c->count.malformed);
    metrics_counter(t, "requests_refused", "Requests without a member's certificate.",
                    c->count.refused);
    metrics_counter(t, "requests_limited", "Requests that came too often.", c->count.limited);
    metrics_counter(t, "foreign_nics", "Reports about NICs that are another host's.",
                    c->count.foreign_nics);
    metrics_counter(t, "samples_dropped", "Values without a table to say whose.",
                    c->count.samples_dropped);
    metrics_counter(t, "commits", "Commits to the store.", c->count.commits);
    metrics_counter(t, "commit_failures", "Commits that failed.", c->count.commit_failures);
    metrics_counter(t, "chunks_sealed", "Chunks of history written.", c->count.sealed);
    metrics_counter(t, "api_requests", "Requests to the API.", c->count.api_requests);
    metrics_counter(t, "api_refused", "Requests to the API that were refused.",
                    c->count.api_refused);
}

void api_get_metrics(struct api_call *call)
{
    struct metrics_text t = {0};
    struct controller *c = call->c;
    const char *type = metrics_negotiate(&t, http_header(call->request, "Accept"));
    if (call->visible == NULL) {
        put_own(c, &t);
    }
    put_hosts(call, &t, controller_mono());
    put_per_host(call, &t, "host_paths_dead", "Paths into a host that are dead.", paths_dead);
    put_per_host(call, &t, "host_findings_open", "Open findings of a host.", findings_open);
    put_per_host(call, &t, "host_sensors_off", "What a host's agent can't watch.", sensors_off);
    put_unwatched(call, &t);
    if (call->visible == NULL) {
        alerting_metrics(c->alerting, &t);
        remote_metrics(c->remote, &t);
    }
    metrics_end(&t);
    call->answered = true;
    if (t.failed) {
        http_answer_text(call->request, 503, "out of memory");
    } else {
        http_answer(call->request, 200, type, t.bytes, t.size, NULL);
    }
    metrics_done(&t);
}
