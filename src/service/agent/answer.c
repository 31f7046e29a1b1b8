/* answer.c: the head of every answer, status, findings. docs/json.md describes the fields. */
#include "service/agent/agent.h"

#include <string.h>
#include <unistd.h>

#include "platform/json/element.h"
#include "platform/metrics/own.h"
#include "service/agent/answers.h"

const char *answer_status_word(uint32_t status)
{
    static const char *const words[] = {"UNKNOWN", "SYNCED", "HOLDOVER", "DISRUPTED"};
    return status < ARRAY_COUNT(words) ? words[status] : "UNKNOWN";
}

const char *answer_stamps_word(uint8_t stamps)
{
    return stamps == STAMP_HARDWARE ? "hardware" : stamps == STAMP_SOFTWARE ? "software" : "none";
}

void answer_put_utc(struct agent *a, struct json_writer *j, const char *key, struct mono at)
{
    int64_t utc = 0;
    const bool known = agent_utc_ns(a, at, &utc);
    json_put_int_if(j, key, known, utc);
}

struct clock_reading answer_reading(const struct agent *a)
{
    struct clock_terms terms;
    node_clock_page(a->node, &terms);
    return clock_terms_read(&terms, (struct nic_time){a->now.ns});
}

void agent_answer_head(struct agent *a, struct json_writer *j, const char *kind)
{
    const struct clock_reading reading = answer_reading(a);
    const bool known = reading.status == CLOCK_SYNCED || reading.status == CLOCK_HOLDOVER;
    json_put_object(j, NULL);
    json_put_int(j, "version", 1);
    json_put_string(j, "kind", kind);
    json_put_string(j, "host", a->config->host);
    json_put_uint(j, "host_index", a->config->host_id.index);
    json_put_int(j, "now_mono_ns", a->now.ns);
    json_put_int_if(j, "now_fleet_ns", known, reading.time.ns);
    answer_put_utc(a, j, "now_utc_ns", a->now);
    json_put_string(j, "clock_status", answer_status_word((uint32_t)reading.status));
}

/* ---- findings ---- */

static void put_end_point(struct agent *a, struct json_writer *j, const char *key,
                          struct nic_id nic, struct host_id host)
{
    const char *host_name = agent_config_host_name(a->config, host);
    if (nic.index == NIC_NONE.index && host_name == NULL) {
        json_put_null(j, key);
        return;
    }
    json_put_object(j, key);
    json_put_string(j, "host", host_name);
    json_put_int_if(j, "nic", nic.index != NIC_NONE.index, nic.index);
    json_put_string(j, "name", agent_interface_name(a, nic));
    json_put_end(j);
}

static void put_rules_out(struct json_writer *j, uint16_t bits)
{
    static const char *const names[] = {"own host", "own NIC", "peer host", "peer NIC", "own link",
                                        "leaf",     "spine",   "clock",     "network"};
    json_put_array(j, "rules_out");
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        if ((bits >> i & 1) != 0) {
            json_put_string(j, NULL, names[i]);
        }
    }
    json_put_end(j);
}

static void put_times(struct agent *a, struct json_writer *j, const struct finding *f)
{
    int64_t until_fleet = 0;
    const bool closed = f->phase == FINDING_CLOSED;
    const bool until_known = closed && agent_fleet_ns(a, (struct mono){f->ended_ns}, &until_fleet);
    json_put_int_if(j, "since_fleet_ns", f->since_fleet_ns != FINDING_NO_TIME, f->since_fleet_ns);
    if (f->since_utc_ns != FINDING_NO_TIME) {
        json_put_int(j, "since_utc_ns", f->since_utc_ns);
    } else {
        answer_put_utc(a, j, "since_utc_ns", f->since);
    }
    json_put_int_if(j, "until_fleet_ns", until_known, until_fleet);
    if (closed) {
        answer_put_utc(a, j, "until_utc_ns", (struct mono){f->ended_ns});
    } else {
        json_put_null(j, "until_utc_ns");
    }
    json_put_int_if(j, "length_ns", closed, f->ended_ns - f->since.ns);
    json_put_int_if(j, "length_error_ns", closed && f->length_error_ns > 0, f->length_error_ns);
    json_put_int(j, "detected_ns", mono_sub(f->said, f->since).ns);
}

static void put_suspect(struct agent *a, struct json_writer *j, const struct finding *f)
{
    const struct finding_names names = agent_names(a);
    const char *kind = element_kind_word(f->suspect.kind);
    char text[160];
    element_text(&f->suspect, &names, text, sizeof(text));
    json_put_object(j, "suspect");
    json_put_string(j, "kind", kind != NULL ? kind : "unknown");
    json_put_string(j, "name", f->suspect.kind == ELEMENT_UNKNOWN ? NULL : text);
    json_put_bool(j, "confident", f->suspect.kind != ELEMENT_UNKNOWN);
    json_put_end(j);
    json_put_element(j, "element", &f->suspect, &names, NULL);
    json_put_choice(j, &f->choice, &names);
    json_put_hex64(j, "fault", finding_fault(&f->suspect, &f->choice));
}

static void put_finding_fields(struct agent *a, struct json_writer *j, const struct finding *f)
{
    static const char *const directions[] = {NULL, "out", "in", "both"};
    static const char *const others[] = {NULL, "fine", "lossy", "dead"};
    const struct finding_names names = agent_names(a);
    char text[1024];
    json_put_uint(j, "id", f->number);
    json_put_string(j, "finding", finding_kind_word(f->kind));
    json_put_bool(j, "open", f->phase != FINDING_CLOSED);
    put_end_point(a, j, "from", f->from, f->from_host);
    put_end_point(a, j, "to", f->to, f->to_host);
    json_put_int_if(j, "path", f->path_count > 0, f->path);
    json_put_int_if(j, "port", f->source_port != 0, f->source_port);
    json_put_hex64(j, "signature", f->signature);
    json_put_string(j, "direction",
                    f->direction < ARRAY_COUNT(directions) ? directions[f->direction] : NULL);
    put_times(a, j, f);
    finding_what_text(f, text, sizeof(text));
    json_put_string(j, "what", text);
    json_put_string(j, "other_direction", f->other < ARRAY_COUNT(others) ? others[f->other] : NULL);
    put_rules_out(j, f->rules_out);
    json_put_string(j, "advice", finding_advice_text(f->advice));
    put_suspect(a, j, f);
    json_put_array(j, "numbers");
    for (size_t i = 0; i < ARRAY_COUNT(f->numbers); i++) {
        json_put_int(j, NULL, f->numbers[i]);
    }
    json_put_end(j);
    finding_text(f, &names, text, sizeof(text));
    json_put_string(j, "text", text);
}

void agent_answer_finding(struct agent *a, struct json_writer *j, const char *key,
                          const struct finding *f)
{
    if (j->depth == 0) { /* a watcher gets one line per finding */
        agent_answer_head(a, j, "finding");
    } else {
        json_put_object(j, key);
    }
    put_finding_fields(a, j, f);
    json_put_end(j);
}

static void put_findings(struct agent *a, struct json_writer *j, bool closed_too)
{
    json_put_array(j, "findings");
    for (uint32_t i = 0; i < node_finding_count(a->node); i++) {
        agent_answer_finding(a, j, NULL, node_finding_get(a->node, i));
    }
    const uint64_t kept = a->closed_count < AGENT_CLOSED_KEPT ? a->closed_count : AGENT_CLOSED_KEPT;
    for (uint64_t i = 0; closed_too && i < kept; i++) {
        agent_answer_finding(a, j, NULL, &a->closed[(a->closed_count - 1 - i) % AGENT_CLOSED_KEPT]);
    }
    json_put_end(j);
}

/* ---- status ---- */

/* Why the clock uses no peer, although the mesh may hear some. */
static const char *why_nobody(const struct agent *a)
{
    for (uint32_t i = 0; i < node_finding_count(a->node); i++) {
        if (node_finding_get(a->node, i)->kind == FINDING_STAMPS_MISSING) {
            return "the kernel gives no transmit stamps for this host's packets: see foliot doctor";
        }
    }
    for (uint32_t i = 0; i < node_edge_count(a->node); i++) {
        struct node_edge edge;
        if (node_edge_get(a->node, i, a->now, &edge) && !edge.silent &&
            edge.heard.ns != MONO_NEVER.ns) {
            return "neighbours are heard, but none by packets with the stamps of both ends: see "
                   "foliot doctor there";
        }
    }
    return "no neighbour is heard";
}

/* Why the status isn't SYNCED, in words; NULL: the status is SYNCED. */
const char *answer_why(const struct agent *a, const struct clock_report *r)
{
    static const char *const faults[] = {
        "the host was suspended", "the kernel changed its clock source", "a clock was stepped",
        "the virtual machine was moved", "the host's second clock disagrees: its rate jumped"};
    switch (r->status) {
    case CLOCK_SYNCED:
        return NULL;
    case CLOCK_DISRUPTED:
        return r->fault_seen && r->fault < ARRAY_COUNT(faults)
                   ? faults[r->fault]
                   : "by the neighbours' clocks this one stepped";
    case CLOCK_HOLDOVER:
        return "too few neighbours are heard: bounds grow";
    case CLOCK_UNKNOWN:
        break;
    }
    if (r->peers_live == 0) {
        return why_nobody(a);
    }
    if (!r->settled) {
        return "not settled on a timeline yet: fewer than half of the chosen neighbours agree";
    }
    return r->phase == CLOCK_COLD || r->phase == CLOCK_ACQUIRE
               ? "still learning the neighbours' clocks"
               : "no hard bound: too few neighbours are tight";
}

bool answer_member_report(const struct agent *a, uint32_t member, struct clock_report *ret_report)
{
    struct nic_time at;
    if (node_member_clock(a->node, member) == NULL ||
        !node_member_time(a->node, member, a->now, &at)) {
        return false;
    }
    clock_report(node_member_clock(a->node, member), at, ret_report);
    return true;
}

/* The member that stands for the host when the host's clock is a leaf: the member of its first NIC. */
static bool host_report(const struct agent *a, struct clock_report *ret_report)
{
    const uint32_t member = node_host_member(a->node);
    return answer_member_report(a, member != UINT32_MAX ? member : 0, ret_report);
}

static void put_clock_summary(struct agent *a, struct json_writer *j)
{
    struct clock_report r = {0};
    const struct clock_reading reading = answer_reading(a);
    int64_t utc = 0;
    host_report(a, &r);
    json_put_object(j, "clock");
    json_put_string(j, "status", answer_status_word((uint32_t)reading.status));
    json_put_string(j, "why", reading.status == CLOCK_SYNCED ? NULL : answer_why(a, &r));
    json_put_hex64(j, "timeline", r.timeline);
    json_put_uint(j, "epoch", a->page.page.terms.epoch);
    json_put_int_if(j, "hard_ns", reading.hard_ns >= 0, (int64_t)reading.hard_ns);
    json_put_int_if(j, "statistical_ns", reading.statistical_ns >= 0,
                    (int64_t)reading.statistical_ns);
    json_put_int(j, "edges_live", r.edges_live);
    json_put_int(j, "edges_chosen", r.edges);
    json_put_int(j, "edges_parked", r.edges_parked);
    json_put_int(j, "liars_max", r.liars_max);
    json_put_bool(j, "utc_known", agent_utc_ns(a, a->now, &utc));
    json_put_end(j);
}

static void put_mesh_summary(struct agent *a, struct json_writer *j)
{
    uint32_t edges = 0, paths = 0, bad = 0, hopless = 0;
    for (uint32_t e = 0; e < node_edge_count(a->node); e++) {
        struct node_edge edge;
        struct path_report path;
        if (!node_edge_get(a->node, e, a->now, &edge)) {
            continue;
        }
        edges++;
        for (uint8_t p = 0; p < edge.path_count; p++) {
            paths++;
            for (enum finding_direction d = DIRECTION_OUT; d <= DIRECTION_IN; d++) {
                if (node_path_get(a->node, e, p, d, a->now, &path)) {
                    bad += path.state == PATH_DEAD || path.state == PATH_LOSSY;
                    hopless += d == DIRECTION_OUT && path.signature == 0;
                }
            }
        }
    }
    json_put_object(j, "mesh");
    json_put_uint(j, "peers", edges);
    json_put_uint(j, "paths", paths);
    json_put_uint(j, "paths_bad", bad);
    json_put_string(j, "coverage",
                    hopless == 0 && paths > 0 ? "full"
                    : hopless < paths         ? "partial"
                                              : "unknown");
    json_put_end(j);
}

static void put_cost(struct agent *a, struct json_writer *j)
{
    uint64_t bad = 0;
    struct node_counters counters;
    node_counters_get(a->node, &counters);
    for (uint32_t i = 0; i < PROBE_ERROR_COUNT; i++) {
        bad += a->bad_total[i];
    }
    json_put_object(j, "cost");
    json_put_int_if(j, "cpu_ppm", a->cpu_ppm > 0, a->cpu_ppm);
    json_put_int(j, "memory_bytes", (int64_t)own_memory_bytes());
    json_put_uint(j, "packets_sent", counters.sent);
    json_put_uint(j, "packets_received", counters.received);
    json_put_uint(j, "packets_bad", bad);
    json_put_uint(j, "stamps", counters.stamped);
    json_put_uint(j, "stamps_missing", counters.stamps_missing);
    json_put_uint(j, "late_ticks", counters.late_ticks);
    json_put_end(j);
    json_put_object(j, "bad_packets");
    json_put_uint(j, "malformed",
                  a->bad_total[PROBE_ERROR_MAGIC] + a->bad_total[PROBE_ERROR_LENGTH] +
                      a->bad_total[PROBE_ERROR_RESERVED] + a->bad_total[PROBE_ERROR_TYPE] +
                      a->bad_total[PROBE_ERROR_STATE] + a->bad_total[PROBE_ERROR_NIC] +
                      a->bad_total[PROBE_ERROR_STAMP] + a->bad_total[PROBE_ERROR_MAP] +
                      a->bad_total[PROBE_ERROR_ANCHOR]);
    json_put_uint(j, "truncated", a->bad_total[PROBE_ERROR_SIZE]);
    json_put_uint(j, "version",
                  a->bad_total[PROBE_ERROR_VERSION_NEWER] +
                      a->bad_total[PROBE_ERROR_VERSION_OLDER]);
    json_put_uint(j, "unknown_key", a->bad_total[PROBE_ERROR_KEY]);
    json_put_uint(j, "forged", a->bad_total[PROBE_ERROR_TAG]);
    json_put_uint(j, "replayed", counters.replayed);
    json_put_uint(j, "reordered", counters.stale);
    json_put_uint(j, "not_for_us", counters.unknown_sender);
    json_put_end(j);
}

/* Writes null if no controller is configured. */
static void put_controller(struct agent *a, struct json_writer *j)
{
    struct uplink_report r;
    agent_uplink_report(a, &r);
    if (!r.configured) {
        json_put_null(j, "controller");
        return;
    }
    json_put_object(j, "controller");
    json_put_string(j, "address", r.controller);
    json_put_bool(j, "connected", r.connected);
    json_put_string(j, "trouble", r.trouble[0] != 0 ? r.trouble : NULL);
    json_put_uint(j, "reports_waiting", r.waiting);
    json_put_uint(j, "waiting_bytes", r.waiting_bytes);
    json_put_uint(j, "reports_lost", r.lost);
    json_put_int_if(j, "config_version", a->settings.config_version != 0,
                    (int64_t)a->settings.config_version);
    json_put_string(j, "config_refused", a->settings.refused[0] != 0 ? a->settings.refused : NULL);
    json_put_int_if(j, "certificate_not_after_utc_ns", r.certificate_not_after != 0,
                    r.certificate_not_after * NS_PER_S);
    json_put_end(j);
}

static void answer_status(struct agent *a, struct json_writer *j)
{
    uint32_t up = 0;
    uint64_t flaps = 0;
    json_put_string(j, "agent_version", FOLIOT_VERSION);
    json_put_int(j, "agent_pid", getpid());
    json_put_int(j, "uptime_ns", mono_sub(a->now, a->started).ns);
    json_put_object(j, "config");
    json_put_string(j, "path", a->config->path);
    json_put_int(j, "loaded_utc_ns", a->config_loaded_utc_ns);
    json_put_string(j, "error", a->config_error[0] != 0 ? a->config_error : NULL);
    json_put_end(j);
    put_clock_summary(a, j);
    put_mesh_summary(a, j);
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        struct link_report report;
        node_link_get(a->node, i, a->now, &report);
        up += report.state == LINK_UP;
        flaps += report.flaps_hour;
    }
    json_put_object(j, "links");
    json_put_uint(j, "nics", a->config->nic_count);
    json_put_uint(j, "nics_up", up);
    json_put_uint(j, "flaps_hour", flaps);
    json_put_end(j);
    put_cost(a, j);
    put_controller(a, j);
    json_put_string(j, "mode", switch_mode_word(agent_settings_mode(a)));
    put_findings(a, j, false);
}

bool agent_answer(struct agent *a, struct json_writer *j, const char *what)
{
    static const struct {
        const char *kind;
        void (*put)(struct agent *a, struct json_writer *j);
    } kinds[] = {
        {"status", answer_status}, {"clock", answer_clock},   {"mesh", answer_mesh},
        {"links", answer_links},   {"doctor", answer_doctor}, {"selftest", answer_selftest},
        {"findings", NULL},        {"jobs", answer_jobs},     {"lanes", answer_lanes},
    };
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (strcmp(kinds[i].kind, what) == 0) {
            agent_answer_head(a, j, what);
            if (kinds[i].put != NULL) {
                kinds[i].put(a, j);
            } else {
                put_findings(a, j, true);
            }
            json_put_end(j);
            return true;
        }
    }
    return false;
}
