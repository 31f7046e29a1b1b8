/* metrics.c: serves /metrics of this host at the address of `metrics_listen`. No token is needed: it contains numbers and no
 * secrets. By default the agent does not listen. */
#include "platform/metrics/openmetrics.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>

#include "platform/http/server.h"
#include "service/agent/answers.h"

static void put_clock(struct agent *a, struct metrics_text *t)
{
    static const char *const words[] = {"UNKNOWN", "SYNCED", "HOLDOVER", "DISRUPTED"};
    const struct clock_reading reading = answer_reading(a);
    metrics_family(t, "clock_status", "stateset", NULL, "Status of the host clock.");
    for (uint32_t i = 0; i < ARRAY_COUNT(words); i++) {
        metrics_sample(t, "clock_status", "foliot_clock_status", words[i],
                       (uint32_t)reading.status == i);
    }
    if (reading.hard_ns >= 0) {
        metrics_gauge(t, "clock_hard_bound_seconds", "seconds", "Half width of the hard bound.",
                      reading.hard_ns * 1e-9);
    }
    if (reading.statistical_ns >= 0) {
        metrics_gauge(t, "clock_statistical_bound_seconds", "seconds",
                      "Half width of the statistical bound.", reading.statistical_ns * 1e-9);
    }
}

static void put_ports(struct agent *a, struct metrics_text *t)
{
    metrics_family(t, "port_up", "gauge", NULL, "1: the port has carrier.");
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        struct link_report r;
        node_link_get(a->node, i, a->now, &r);
        metrics_sample(t, "port_up", "nic", a->config->nics[i].name, r.state == LINK_UP);
    }
    metrics_family(t, "port_carrier_downs", "counter", NULL, "Times that carrier was lost.");
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        metrics_sample(t, "port_carrier_downs_total", "nic", a->config->nics[i].name,
                       link_monitor_get(a->links, a->nics[i].slot)->down_count);
    }
}

static void put_mesh(struct agent *a, struct metrics_text *t)
{
    static const char *const words[] = {"unknown", "alive", "suspect", "lossy", "dead"};
    uint32_t counts[ARRAY_COUNT(words)] = {0}, edges = 0;
    for (uint32_t e = 0; e < node_edge_count(a->node); e++) {
        struct node_edge edge;
        struct path_report p;
        if (!node_edge_get(a->node, e, a->now, &edge)) {
            continue;
        }
        edges++;
        for (uint8_t k = 0; k < edge.peer_path_count; k++) {
            if (node_path_get(a->node, e, k, DIRECTION_IN, a->now, &p)) {
                counts[p.state < ARRAY_COUNT(words) ? p.state : 0]++;
            }
        }
    }
    metrics_gauge(t, "peers", NULL, "NIC pairs that are probed.", edges);
    metrics_family(t, "paths", "gauge", NULL, "Paths into this host by state.");
    for (uint32_t i = 0; i < ARRAY_COUNT(words); i++) {
        metrics_sample(t, "paths", "state", words[i], counts[i]);
    }
    metrics_gauge(t, "findings_open", NULL, "Open findings.", node_finding_count(a->node));
}

static void put_own(struct agent *a, struct metrics_text *t)
{
    struct node_counters n;
    struct uplink_report u;
    uint64_t bad = 0;
    node_counters_get(a->node, &n);
    agent_uplink_report(a, &u);
    for (uint32_t i = 0; i < PROBE_ERROR_COUNT; i++) {
        bad += a->bad_total[i];
    }
    metrics_counter(t, "packets_sent", "Probes sent.", n.sent);
    metrics_counter(t, "packets_received", "Probes received.", n.received);
    metrics_counter(t, "packets_bad", "Packets that are not valid probes.", bad);
    metrics_counter(t, "stamps_missing", "Packets without a time stamp from the kernel.",
                    n.stamps_missing);
    metrics_counter(t, "ticks_late", "Times that this agent was late and so made no judgement.",
                    n.late_ticks);
    metrics_gauge(t, "agent_cpu_ratio", "ratio",
                  "Share of one core that this agent used over the last 10 s.",
                  a->cpu_ppm > 0 ? (double)a->cpu_ppm * 1e-6 : 0);
    metrics_gauge(t, "controller_connected", NULL, "1: the controller answers.", u.connected);
    metrics_gauge(t, "reports_waiting", NULL,
                  "Reports that the controller has not acknowledged yet.", (double)u.waiting);
    metrics_counter(t, "reports_lost", "Reports dropped because the spool was full.", u.lost);
}

static void on_request(void *context, struct http_request *request)
{
    struct agent *a = context;
    struct metrics_text t = {0};
    if (strcmp(http_method(request), "GET") != 0 || strcmp(http_path(request), "/metrics") != 0) {
        http_answer_text(request, 404, "GET /metrics");
        return;
    }
    const char *type = metrics_negotiate(&t, http_header(request, "Accept"));
    t.host = a->config->host[0] != 0 ? a->config->host : NULL;
    put_clock(a, &t);
    put_ports(a, &t);
    put_mesh(a, &t);
    put_own(a, &t);
    metrics_end(&t);
    if (t.failed) {
        http_answer_text(request, 503, "out of memory");
    } else {
        http_answer(request, 200, type, t.bytes, t.size, NULL);
    }
    metrics_done(&t);
}

int agent_metrics_open(struct agent *a)
{
    if (a->config->metrics_listen[0] == 0) {
        return 0;
    }
    const struct http_server_config config = {.loop = a->loop,
                                              .address = a->config->metrics_listen,
                                              .body_max = 1024,
                                              .connection_max = 32,
                                              .arrive_ms = 5000,
                                              .idle_s = 60,
                                              .on_request = on_request,
                                              .context = a};
    const int r = http_server_open(&config, &a->metrics);
    if (r < 0) { /* the agent works without it */
        agent_say(LOG_ERR, "metrics_listen: %s: %s: no metrics are served",
                  a->config->metrics_listen, strerror(-r));
    }
    return 0;
}
