/* answer_doctor.c: "doctor": which of its requirements the agent can check by itself. */
#include "service/agent/answers.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define OF_LATE_MINUTES 10
#define OF_LATE_NS      (OF_LATE_MINUTES * 60 * NS_PER_S)

struct check {
    const char *name, *result;
    char expected[160], found[200], advice[200];
};

static void put_check(struct json_writer *j, const struct check *c)
{
    json_put_object(j, NULL);
    json_put_string(j, "check", c->name);
    json_put_string(j, "result", c->result);
    json_put_string(j, "expected", c->expected);
    json_put_string(j, "found", c->found);
    json_put_string(j, "advice", c->advice[0] != 0 ? c->advice : NULL);
    json_put_end(j);
}

static struct check check_of(const char *name, const char *expected)
{
    struct check c = {.name = name, .result = "ok"};
    snprintf(c.expected, sizeof(c.expected), "%s", expected);
    return c;
}

static void check_nics(struct agent *a, struct json_writer *j)
{
    struct check port = check_of("port", "every NIC receives on the fleet's UDP port");
    struct check stamps =
        check_of("stamps", "nearly every packet comes back with a transmit stamp");
    uint32_t open = 0;
    uint64_t sent = 0, missing = 0;
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        struct endpoint_counters counters = {0};
        if (a->nics[i].endpoint == NULL) {
            port.result = "fail";
            snprintf(port.advice, sizeof(port.advice), "%s: %s", a->config->nics[i].name,
                     a->nics[i].trouble);
            continue;
        }
        open++;
        endpoint_counters_get(a->nics[i].endpoint, &counters);
        sent += counters.stamps + counters.stamps_missing;
        missing += counters.stamps_missing;
    }
    snprintf(port.found, sizeof(port.found), "%u of %u NICs hear on port %u", open,
             a->config->nic_count, a->config->port);
    put_check(j, &port);
    snprintf(stamps.found, sizeof(stamps.found), "%s stamps; %llu of %llu missing",
             answer_stamps_word(agent_nic_stamps(a, 0)), (unsigned long long)missing,
             (unsigned long long)sent);
    if (sent == 0 || missing * 100 > sent) {
        stamps.result = sent == 0 || missing * 2 > sent ? "fail" : "warn";
        snprintf(stamps.advice, sizeof(stamps.advice),
                 "the NIC's driver gives no (or few) software transmit stamps: see ethtool -T");
    }
    put_check(j, &stamps);
}

static void check_clock(struct agent *a, struct json_writer *j)
{
    struct clock_report r = {0};
    const uint32_t member = node_host_member(a->node) != UINT32_MAX ? node_host_member(a->node) : 0;
    const bool known = answer_member_report(a, member, &r);
    struct check source = check_of("clocksource", "tsc, or another source that the kernel trusts");
    snprintf(source.found, sizeof(source.found), "%s", time_source_clocksource(a->source));
    if (clocksource_is_slow(time_source_clocksource(a->source))) {
        source.result = "warn";
        snprintf(source.advice, sizeof(source.advice),
                 "the kernel gave up the TSC: readings cost microseconds (dmesg has the reason)");
    }
    put_check(j, &source);
    struct check guard = check_of("guard", "a second clock of this host to compare with");
    if (a->guard_source == 0) {
        guard.result = "skip"; /* fleet time works without it, and the host may have none */
        snprintf(guard.found, sizeof(guard.found),
                 "none: only peers' packets would show a jump of this clock's rate. The hard bound "
                 "is about 12 us wider; a NIC with a PHC, or ptp_kvm, cures it");
    } else {
        snprintf(guard.found, sizeof(guard.found), "%s, every 10 ms", a->guard_name);
    }
    put_check(j, &guard);
    struct check residuals =
        check_of("residuals", "edges agree with each other within the statistical bound");
    if (!known || r.status != CLOCK_SYNCED) {
        residuals.result = "skip";
        snprintf(residuals.found, sizeof(residuals.found), "the clock isn't synchronised");
    } else {
        snprintf(residuals.found, sizeof(residuals.found),
                 "typical level %.0f ns, statistical bound %.0f ns, %d of %d edges parked",
                 r.scale_ns, r.statistical_ns, r.edges_parked, r.edges);
        if (r.edges_parked * 3 > r.edges) {
            residuals.result = "warn";
            snprintf(residuals.advice, sizeof(residuals.advice),
                     "`foliot clock` lists the parked edges: a clock, a NIC or a path of theirs is "
                     "off");
        }
    }
    put_check(j, &residuals);
    struct check limit = check_of("edge-limit", "most edges bound their clocks within edge_limit");
    snprintf(limit.found, sizeof(limit.found), "edge_limit %.1f us; this host is %s",
             r.edge_limit_ns / 1000,
             r.core    ? "core"
             : r.tight ? "tight"
                       : "not tight");
    if (known && r.status != CLOCK_UNKNOWN && !r.tight) {
        limit.result = "warn";
        snprintf(limit.advice, sizeof(limit.advice),
                 "raise edge_limit in every host's file to about the 75 %% quantile of bound_ns in "
                 "`foliot clock`");
    }
    put_check(j, &limit);
}

/* Was a packet refused for this within the last minutes? What was before is over: a key rotation, an upgrade, a stray packet. */
static bool refused_of_late(const struct agent *a, enum probe_error error)
{
    return a->bad_total[error] > 0 && mono_sub(a->now, a->bad_last[error]).ns < OF_LATE_NS;
}

static void check_packets(struct agent *a, struct json_writer *j)
{
    struct check bad = check_of("bad-packets", "no packet is refused");
    struct check keys = check_of("keys", "every peer uses a key of this host's file");
    struct check peers = check_of("peers", "every chosen peer is heard");
    struct check versions = check_of("versions", "all agents speak a version that this one reads");
    uint64_t total = 0;
    uint32_t silent = 0, edges = 0;
    bool of_late = false;
    for (uint32_t i = 0; i < PROBE_ERROR_COUNT; i++) {
        total += a->bad_total[i];
        of_late = of_late || refused_of_late(a, i);
    }
    snprintf(bad.found, sizeof(bad.found), "%llu refused, %llu of them with a wrong tag",
             (unsigned long long)total, (unsigned long long)a->bad_total[PROBE_ERROR_TAG]);
    if (of_late) {
        bad.result = "warn";
        snprintf(bad.advice, sizeof(bad.advice),
                 "`foliot status --json` has the count of each reason (packets); some in the last "
                 "%d minutes",
                 OF_LATE_MINUTES);
    }
    put_check(j, &bad);
    snprintf(keys.found, sizeof(keys.found), "%u keys; %llu packets under an unknown one",
             a->keys.count, (unsigned long long)a->bad_total[PROBE_ERROR_KEY]);
    if (refused_of_late(a, PROBE_ERROR_KEY)) {
        keys.result = "warn";
        snprintf(keys.advice, sizeof(keys.advice),
                 "copy the newest key file to every host and reload");
    }
    put_check(j, &keys);
    for (uint32_t e = 0; e < node_edge_count(a->node); e++) {
        struct node_edge edge;
        if (node_edge_get(a->node, e, a->now, &edge)) {
            edges++;
            silent += edge.silent;
        }
    }
    snprintf(peers.found, sizeof(peers.found), "%u of %u NIC pairs are silent", silent, edges);
    if (silent > 0) {
        peers.result = silent == edges ? "fail" : "warn";
        snprintf(peers.advice, sizeof(peers.advice),
                 "is the agent running there, and does the firewall pass UDP port %u?",
                 a->config->port);
    }
    put_check(j, &peers);
    snprintf(versions.found, sizeof(versions.found),
             "own version %d; %llu newer, %llu older packets refused", PROBE_VERSION,
             (unsigned long long)a->bad_total[PROBE_ERROR_VERSION_NEWER],
             (unsigned long long)a->bad_total[PROBE_ERROR_VERSION_OLDER]);
    if (refused_of_late(a, PROBE_ERROR_VERSION_OLDER)) {
        versions.result = "warn";
        snprintf(versions.advice, sizeof(versions.advice),
                 "upgrade the agents whose version is older: foliot-controller hosts lists them");
    }
    put_check(j, &versions);
}

static void check_rest(struct agent *a, struct json_writer *j)
{
    struct check capabilities = check_of("capabilities", "CAP_NET_RAW, to hear routers");
    struct check recorder = check_of("recorder", "the last 10 minutes are kept");
    if (!a->hops_allowed) {
        capabilities.result = "warn";
        snprintf(capabilities.advice, sizeof(capabilities.advice),
                 "start the agent by its systemd unit, or as root");
    }
    snprintf(capabilities.found, sizeof(capabilities.found), "%s",
             a->hops_allowed ? "allowed" : "refused: findings name no switch");
    put_check(j, &capabilities);
    struct recorder_report report = {0};
    recorder_report_get(a->recorder, &report);
    if (a->recorder == NULL && a->config->record_bytes_max == 0) {
        recorder.result = "skip";
        snprintf(recorder.found, sizeof(recorder.found), "switched off (record_mib 0)");
    } else if (a->recorder == NULL || report.error != 0) {
        recorder.result = "warn";
        snprintf(recorder.advice, sizeof(recorder.advice), "make room in %.100s",
                 a->config->state_dir);
        snprintf(recorder.found, sizeof(recorder.found), "nothing is recorded: %s",
                 a->recorder == NULL ? "the agent's log has the reason" : strerror(report.error));
    } else {
        snprintf(recorder.found, sizeof(recorder.found), "%lld s, %lld KiB",
                 (long long)((a->now.ns - report.oldest.ns) / NS_PER_S),
                 (long long)(report.bytes / 1024));
    }
    put_check(j, &recorder);
}

void answer_doctor(struct agent *a, struct json_writer *j)
{
    json_put_array(j, "checks");
    check_nics(a, j);
    check_clock(a, j);
    check_packets(a, j);
    check_rest(a, j);
    json_put_end(j);
}
