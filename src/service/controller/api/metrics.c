/* metrics.c: /metrics in OpenMetrics: sums of the fleet, and the controller's own health. Its size is bounded: it has only a
 * few figures per host. History per path is at /api/v1/series. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/fleet/delay_code.h"
#include "platform/metrics/openmetrics.h"
#include "platform/metrics/own.h"
#include "service/controller/api/api.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/audit/audit.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/history/remote.h"
#include "service/controller/trust/trust.h"
#include "wire/switch_page.h"

/* A tenant's token sees the tenant's hosts. */
static bool shown(const struct api_call *call, const struct fleet_host *h)
{
    return h->member && api_sees(call, h);
}

static void put_hosts(const struct api_call *call, struct metrics_text *t, struct mono now)
{
    struct controller *c = call->c;
    metrics_family(t, "host_health", "stateset", NULL,
                   "Health of a host; unknown if the host is silent.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        for (int s = HEALTH_UNKNOWN; shown(call, c->hosts[i]) && s <= HEALTH_BAD; s++) {
            const struct metrics_label labels[] = {
                {"host", c->hosts[i]->name}, {"foliot_host_health", health_word((enum health)s)}};
            metrics_sample_n(t, "host_health", labels, 2,
                             fleet_health(c, c->hosts[i], now) == (enum health)s);
        }
    }
    metrics_family(t, "host_heard_timestamp_seconds", "gauge", "seconds",
                   "Time of the last message from a host.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (shown(call, c->hosts[i]) && c->hosts[i]->heard_utc_ns != 0) {
            metrics_sample(t, "host_heard_timestamp_seconds", "host", c->hosts[i]->name,
                           (double)(c->hosts[i]->heard_utc_ns / NS_PER_MS) * 1e-3);
        }
    }
}

static void put_per_host(const struct api_call *call, struct metrics_text *t, const char *name,
                         const char *help,
                         uint32_t (*value)(const struct api_call *call, const struct fleet_host *h))
{
    const struct controller *c = call->c;
    metrics_family(t, name, "gauge", NULL, help);
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (shown(call, c->hosts[i])) {
            metrics_sample(t, name, "host", c->hosts[i]->name, value(call, c->hosts[i]));
        }
    }
}

static void put_unwatched(const struct api_call *call, struct metrics_text *t)
{
    const struct controller *c = call->c;
    metrics_family(t, "host_nics_unwatched", "gauge", NULL,
                   "NICs of a host that are up, but can't send probes, or whose link can't be "
                   "read.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (shown(call, c->hosts[i])) {
            metrics_sample(t, "host_nics_unwatched", "host", c->hosts[i]->name,
                           fleet_nics_unwatched(c, c->hosts[i]));
        }
    }
}

static uint32_t paths_dead(const struct api_call *call, const struct fleet_host *h)
{
    return scope_paths(call, h).dead;
}

static uint32_t findings_open(const struct api_call *call, const struct fleet_host *h)
{
    return scope_findings(call, h);
}

static uint32_t sensors_off(const struct api_call *call, const struct fleet_host *h)
{
    return h->sensor_off_count;
}

/* ---- what hosts report, with the names and labels of the agents' own /metrics and of remote write ---- */

/* A silent host's figures are out of date. */
static bool current(const struct api_call *call, const struct fleet_host *h)
{
    return shown(call, h) && h->reported &&
           fleet_freshness(call->c, h, controller_mono()) != FRESHNESS_STALE;
}

static void put_clocks(const struct api_call *call, struct metrics_text *t)
{
    static const char *const words[] = {"UNKNOWN", "SYNCED", "HOLDOVER", "DISRUPTED"};
    const struct controller *c = call->c;
    metrics_family(t, "clock_status", "stateset", NULL, "Status of a host's clock.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        for (uint32_t s = 0; current(call, c->hosts[i]) && s < ARRAY_COUNT(words); s++) {
            const struct metrics_label labels[] = {{"host", c->hosts[i]->name},
                                                   {"foliot_clock_status", words[s]}};
            metrics_sample_n(t, "clock_status", labels, 2, c->hosts[i]->clock.status == s);
        }
    }
}

/* A family with one value for each host; NaN: no value. */
static void put_reported(const struct api_call *call, struct metrics_text *t, const char *name,
                         const char *type, const char *unit, const char *help,
                         double (*value)(const struct api_call *call, const struct fleet_host *h))
{
    const struct controller *c = call->c;
    char sample[96];
    snprintf(sample, sizeof(sample), "%s%s", name, strcmp(type, "counter") == 0 ? "_total" : "");
    metrics_family(t, name, type, unit, help);
    for (uint32_t i = 0; i < c->host_count; i++) {
        const double v = current(call, c->hosts[i]) ? value(call, c->hosts[i]) : NAN;
        if (!isnan(v)) {
            metrics_sample(t, sample, "host", c->hosts[i]->name, v);
        }
    }
}

static double hard_bound(const struct api_call *call, const struct fleet_host *h)
{
    return h->clock.hard_ns >= 0 ? (double)h->clock.hard_ns * 1e-9 : NAN;
}

static double agent_cpu(const struct api_call *call, const struct fleet_host *h)
{
    return h->cost.cpu_ppm * 1e-6;
}

static double reports_lost(const struct api_call *call, const struct fleet_host *h)
{
    return (double)h->cost.reports_lost;
}

static double ticks_late(const struct api_call *call, const struct fleet_host *h)
{
    return (double)h->cost.late_ticks;
}

static double packets_bad(const struct api_call *call, const struct fleet_host *h)
{
    return (double)h->cost.packets_bad;
}

enum port_sum { SUM_RX_BYTES, SUM_TX_BYTES, SUM_ERRORS, SUM_DROPS };

static double sum_of_ports(const struct api_call *call, const struct fleet_host *h,
                           enum port_sum of)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < h->nic_count; i++) {
        const struct fleet_nic *n = call->c->nics[h->nics[i]];
        sum += of == SUM_RX_BYTES   ? n->rx_bytes
               : of == SUM_TX_BYTES ? n->tx_bytes
               : of == SUM_ERRORS   ? n->rx_errors + n->tx_errors
                                    : n->rx_drops + n->tx_drops;
    }
    return (double)sum;
}

static double rx_bytes(const struct api_call *call, const struct fleet_host *h)
{
    return sum_of_ports(call, h, SUM_RX_BYTES);
}

static double tx_bytes(const struct api_call *call, const struct fleet_host *h)
{
    return sum_of_ports(call, h, SUM_TX_BYTES);
}

static double port_errors(const struct api_call *call, const struct fleet_host *h)
{
    return sum_of_ports(call, h, SUM_ERRORS);
}

static double port_drops(const struct api_call *call, const struct fleet_host *h)
{
    return sum_of_ports(call, h, SUM_DROPS);
}

static double worst_delay(const struct api_call *call, const struct fleet_host *h)
{
    double worst = NAN;
    for (uint32_t i = 0; i < h->path_count; i++) {
        if (h->paths[i].p99 != DELAY_CODE_NONE && api_sees_nic(call, h->paths[i].peer)) {
            worst = fmax(worst, (double)delay_decode(h->paths[i].p99) * 1e-9);
        }
    }
    return worst;
}

static double worst_loss(const struct api_call *call, const struct fleet_host *h)
{
    double worst = NAN;
    for (uint32_t i = 0; i < h->path_count; i++) {
        const int64_t loss = fleet_path_loss_ppm(&h->paths[i]);
        worst = loss >= 0 && api_sees_nic(call, h->paths[i].peer) ? fmax(worst, (double)loss * 1e-6)
                                                                  : worst;
    }
    return worst;
}

/* Only two figures for each NIC: a scrape has up to 100,000 NICs. Traffic is a sum per host. */
static void put_ports(const struct api_call *call, struct metrics_text *t)
{
    const struct controller *c = call->c;
    for (int downs = 0; downs < 2; downs++) {
        metrics_family(t, downs ? "port_carrier_downs" : "port_up", downs ? "counter" : "gauge",
                       NULL, downs ? "Times that carrier was lost." : "1: the port has carrier.");
        for (uint32_t i = 0; i < c->host_count; i++) {
            const struct fleet_host *h = c->hosts[i];
            for (uint32_t k = 0; current(call, h) && k < h->nic_count; k++) {
                const struct fleet_nic *n = c->nics[h->nics[k]];
                const struct metrics_label labels[] = {{"host", h->name}, {"nic", n->name}};
                if (!n->reported || n->state == FOLIOT__V1__PORT_STATE__PORT_UNKNOWN) {
                    continue;
                }
                metrics_sample_n(t, downs ? "port_carrier_downs_total" : "port_up", labels, 2,
                                 downs ? (double)n->carrier_downs
                                       : n->state == FOLIOT__V1__PORT_STATE__PORT_UP);
            }
        }
    }
}

static void put_all_reported(const struct api_call *call, struct metrics_text *t)
{
    put_clocks(call, t);
    put_reported(call, t, "clock_hard_bound_seconds", "gauge", "seconds",
                 "Half width of the hard bound of a host's clock.", hard_bound);
    put_reported(call, t, "host_clock_bound_seconds", "gauge", "seconds",
                 "The same as clock_hard_bound_seconds, under its earlier name.", hard_bound);
    put_reported(call, t, "agent_cpu_ratio", "gauge", "ratio",
                 "Share of one core that a host's agent uses.", agent_cpu);
    put_reported(call, t, "reports_lost", "counter", NULL,
                 "Reports that an agent dropped because its spool was full.", reports_lost);
    put_reported(call, t, "ticks_late", "counter", NULL,
                 "Times that an agent was late and so made no judgement.", ticks_late);
    put_reported(call, t, "packets_bad", "counter", NULL, "Packets that are not valid probes.",
                 packets_bad);
    put_reported(call, t, "host_receive_bytes", "counter", "bytes",
                 "Bytes received by all NICs of a host.", rx_bytes);
    put_reported(call, t, "host_transmit_bytes", "counter", "bytes",
                 "Bytes sent by all NICs of a host.", tx_bytes);
    put_reported(call, t, "host_port_errors", "counter", NULL,
                 "Receive and transmit errors of all NICs of a host.", port_errors);
    put_reported(call, t, "host_port_drops", "counter", NULL,
                 "Receive and transmit drops of all NICs of a host.", port_drops);
    put_reported(call, t, "host_worst_path_owd_seconds", "gauge", "seconds",
                 "p99 one-way delay of the slowest path into a host.", worst_delay);
    put_reported(call, t, "host_worst_path_loss_ratio", "gauge", "ratio",
                 "Loss of the worst path into a host.", worst_loss);
    put_ports(call, t);
}

/* The controller's own cost. */
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

/* A silent host is not a healthy one. */
static void put_freshness(struct controller *c, struct metrics_text *t)
{
    const struct mono now = controller_mono();
    uint32_t counts[FRESHNESS_STALE + 1] = {0};
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (c->hosts[i]->member) {
            counts[fleet_freshness(c, c->hosts[i], now)]++;
        }
    }
    metrics_family(
        t, "hosts_by_freshness", "gauge", NULL,
        "Members by the age of their last message; the health of a stale one is unknown.");
    for (int f = 0; f <= FRESHNESS_STALE; f++) {
        metrics_sample(t, "hosts_by_freshness", "freshness", freshness_word((enum freshness)f),
                       counts[f]);
    }
}

/* Hosts by mode: it shows where somebody turned the care for jobs off. */
static void put_modes(struct controller *c, struct metrics_text *t)
{
    uint32_t counts[SWITCH_FULL + 1] = {0};
    for (uint32_t i = 0; i < c->host_count; i++) {
        const uint32_t mode = c->hosts[i]->mode;
        if (c->hosts[i]->member && mode < SWITCH_FULL + 1) {
            counts[mode]++;
        }
    }
    metrics_family(
        t, "hosts_by_mode", "gauge", NULL,
        "Members by the most that they let jobs do; none: each job keeps the mode that it "
        "was started with.");
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
    metrics_gauge(t, "store_writable", NULL,
                  "0: the store can't be written, and no report is acknowledged.",
                  !c->store_broken);
    metrics_gauge(t, "store_commit_seconds", "seconds", "Duration of the last commit.",
                  (double)c->count.commit_ns_last * 1e-9);
    metrics_gauge(t, "server_certificate_end_timestamp_seconds", "seconds",
                  "Time when the first of the controller's own certificates expires.",
                  (double)api_certificate_end(c));
    metrics_gauge(t, "start_timestamp_seconds", "seconds", "Time when the controller started.",
                  (double)c->started_ns * 1e-9);
    metrics_counter(t, "received_bytes", "Bytes of request bodies from agents.", agents.bytes_in);
    metrics_counter(t, "batches", "Batches of reports, including empty ones.", c->count.batches);
    metrics_counter(t, "reports", "Reports accepted.", c->count.reports);
    metrics_counter(t, "reports_duplicate", "Reports that arrived again.", c->count.duplicates);
    metrics_counter(t, "report_gaps", "Gaps in a host's reports that can't be filled.",
                    c->count.gaps);
    metrics_counter(t, "messages_malformed", "Bodies and reports that can't be read.",
                    c->count.malformed);
    metrics_counter(t, "reports_over", "Reports over a limit; nothing of them was used.",
                    c->count.over);
    metrics_counter(t, "reports_held",
                    "Times that reports had to wait because their host had used up its quota.",
                    c->count.held);
    metrics_counter(t, "events_dropped",
                    "Events that were not stored because their host had used up its quota of rows.",
                    c->count.events_dropped);
    metrics_counter(t, "requests_refused", "Agents' requests without a member's certificate.",
                    c->count.refused);
    metrics_counter(t, "requests_limited", "Requests that came too often.", c->count.limited);
    metrics_counter(t, "foreign_nics", "Reports about NICs of another host.",
                    c->count.foreign_nics);
    metrics_counter(t, "samples_dropped",
                    "Values that were dropped because no table names their path.",
                    c->count.samples_dropped);
    metrics_counter(t, "commits", "Commits to the store.", c->count.commits);
    metrics_counter(t, "commit_failures", "Commits that failed.", c->count.commit_failures);
    metrics_counter(t, "chunks_sealed", "Chunks of history written.", c->count.sealed);
    metrics_counter(
        t, "chunks_unbuilt",
        "Chunks of history that could not be built; each leaves a gap in a host's history.",
        c->count.unbuilt);
    metrics_counter(t, "history_values_dropped",
                    "Values not kept in history because a NIC had more series than a chunk holds.",
                    c->count.values_dropped);
    metrics_counter(t, "api_requests", "Requests to the API.", c->count.api_requests);
    metrics_counter(
        t, "api_limited",
        "API requests that were refused because their token asked too often or for too much.",
        c->count.api_limited);
    metrics_counter(t, "api_refused", "API requests that were refused for their token or its role.",
                    c->count.api_refused);
}

/* ---- audits ---- */

static void put_audit_hosts(const struct api_call *call, struct metrics_text *t)
{
    struct controller *c = call->c;
    metrics_family(t, "host_audit_gate", "stateset", NULL,
                   "Whether a host may take a job, by its newest audit; unknown is no pass.");
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct audit_known *known =
            shown(call, c->hosts[i]) ? audit_known_of(c, c->hosts[i]) : NULL;
        const int gate = known != NULL && known->run != 0 ? known->gate : AUDIT_UNKNOWN;
        for (int s = AUDIT_FAIL; known != NULL && s <= AUDIT_PASS; s++) {
            const struct metrics_label labels[] = {
                {"host", c->hosts[i]->name},
                {"foliot_host_audit_gate", audit_status_name((enum audit_status)s)}};
            metrics_sample_n(t, "host_audit_gate", labels, 2, gate == s);
        }
    }
}

static void put_audit_checks(struct metrics_text *t, const struct audit_summary *s)
{
    metrics_family(t, "audit_results", "gauge", NULL,
                   "Hosts by the status of each check in the newest audit of all hosts.");
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        for (int k = 0; k < AUDIT_STATUS_COUNT; k++) {
            const struct metrics_label labels[] = {
                {"check", check_at(i)->id}, {"status", audit_status_name((enum audit_status)k)}};
            if (s->counts[i][k] > 0) {
                metrics_sample_n(t, "audit_results", labels, 2, s->counts[i][k]);
            }
        }
    }
    metrics_family(t, "audit_check_suspect", "gauge", NULL,
                   "1: so many hosts would fail the check that the check itself is suspect.");
    for (uint32_t i = 0; i < CATALOGUE_COUNT; i++) {
        if (s->suspect[i]) {
            metrics_sample(t, "audit_check_suspect", "check", check_at(i)->id, 1);
        }
    }
    metrics_gauge(t, "audit_run_timestamp_seconds", "seconds",
                  "Time when the newest audit of all hosts ended.",
                  (double)(s->ended_ns / NS_PER_MS) * 1e-3);
}

static void put_audits(const struct api_call *call, struct metrics_text *t)
{
    const struct controller *c = call->c;
    if (c->audits == NULL) {
        return;
    }
    put_audit_hosts(call, t);
    if (call->visible == NULL && c->audits->summary.run != 0) {
        put_audit_checks(t, &c->audits->summary);
    }
    if (call->visible == NULL && c->audits->in_force != NULL) {
        metrics_gauge(t, "audit_off", NULL,
                      "Checks, classes, hosts and fleets that audit.yaml switches off.",
                      audit_offs(c));
    }
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
    put_per_host(call, &t, "host_sensors_off", "Sensors that a host's agent lacks.", sensors_off);
    put_unwatched(call, &t);
    put_all_reported(call, &t);
    put_audits(call, &t);
    const struct alerting_view view = {.incident = scope_sees_incident, .context = call};
    alerting_put_incident_metrics(c->alerting, &t, &view);
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
