/* api_fleet.c: the fleet as it is now. A silent host's last report is not its present state: it is shown as unknown, with the
 * time of that report. */
#include <stdio.h>
#include <string.h>

#include "core/fleet/delay_code.h"
#include "core/fleet/fabric.h"
#include "service/controller/api/api.h"
#include "service/controller/api/incident_nics.h"
#include "service/controller/api/routes.h"
#include "service/controller/api/scope.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/trust/trust.h"
#include "wire/switch_page.h"

static const char *clock_word(uint32_t status)
{
    static const char *const words[] = {"UNKNOWN", "SYNCED", "HOLDOVER", "DISRUPTED"};
    return status < ARRAY_COUNT(words) ? words[status] : "UNKNOWN";
}

/* ---- status ---- */

struct sums {
    uint32_t hosts, fresh[4], health[4], ports[4], clocks[4], findings, certificates_ending;
    uint32_t nics, nics_unwatched, nics_unknown, hosts_sensors_off;
    uint64_t paths, paths_dead, paths_lossy;
    int64_t hard_ns_max, statistical_ns_max;
};

static void add_up(const struct api_call *call, struct sums *s, struct mono now)
{
    struct controller *c = call->c;
    const int64_t soon = controller_utc_ns() / NS_PER_S + 30 * 86400LL;
    for (uint32_t i = 0; i < c->host_count; i++) {
        const struct fleet_host *h = c->hosts[i];
        if (!h->member || !api_sees(call, h)) {
            continue;
        }
        const bool known = fleet_current(c, h, now);
        s->hosts++;
        s->fresh[fleet_freshness(c, h, now)]++;
        s->health[fleet_health(c, h, now)]++;
        s->clocks[known ? h->clock.status & 3 : 0]++;
        s->findings += scope_findings(call, h);
        s->certificates_ending +=
            h->not_after < soon && c->config.certificate_s > 30 * 86400 && h->not_after != 0;
        s->nics += h->nic_count;
        for (uint32_t n = 0; n < h->nic_count; n++) {
            const struct fleet_nic *nic = c->nics[h->nics[n]];
            s->ports[known ? nic->state & 3 : 0]++;
            s->nics_unknown += !known || !nic->reported;
        }
        if (known) {
            s->nics_unwatched += fleet_nics_unwatched(c, h);
            s->hosts_sensors_off += h->sensor_off_count > 0;
            const struct scope_paths paths = scope_paths(call, h);
            s->paths += paths.all;
            s->paths_dead += paths.dead;
            s->paths_lossy += paths.lossy;
            if (h->clock.hard_ns > s->hard_ns_max) {
                s->hard_ns_max = h->clock.hard_ns;
            }
            if (h->clock.statistical_ns > s->statistical_ns_max) {
                s->statistical_ns_max = h->clock.statistical_ns;
            }
        }
    }
}

static void put_counts(struct json_writer *j, const char *key, const uint32_t counts[4],
                       const char *const names[4])
{
    json_put_object(j, key);
    for (unsigned i = 0; i < 4; i++) {
        json_put_uint(j, names[i], counts[i]);
    }
    json_put_end(j);
}

static void put_ingest(struct controller *c, struct json_writer *j)
{
    json_put_object(j, "ingest");
    json_put_uint(j, "batches", c->count.batches);
    json_put_uint(j, "reports", c->count.reports);
    json_put_uint(j, "duplicates", c->count.duplicates);
    json_put_uint(j, "gaps", c->count.gaps);
    json_put_uint(j, "malformed", c->count.malformed);
    json_put_uint(j, "refused", c->count.refused);
    json_put_uint(j, "limited", c->count.limited);
    json_put_uint(j, "foreign_nics", c->count.foreign_nics);
    json_put_uint(j, "samples_dropped", c->count.samples_dropped);
    json_put_end(j);
}

void api_get_status(struct api_call *call)
{
    static const char *const fresh[] = {"never", "live", "late", "stale"},
                             *const health[] = {"unknown", "ok", "warn", "bad"},
                             *const ports[] = {"unknown", "up", "down", "gone"},
                             *const clocks[] = {"unknown", "synced", "holdover", "disrupted"};
    struct controller *c = call->c;
    struct json_writer *j = call->j;
    struct sums s = {.hard_ns_max = -1, .statistical_ns_max = -1};
    struct store_sizes sizes;
    const bool all = call->visible == NULL; /* only operators see the rest */
    add_up(call, &s, controller_mono());
    store_sizes(c->store, &sizes);
    json_put_object(j, NULL);
    json_put_int(j, "version", 1);
    json_put_string(j, "controller_version", FOLIOT_VERSION);
    json_put_int(j, "started_utc_ns", c->started_ns);
    json_put_int(j, "now_utc_ns", controller_utc_ns());
    json_put_int_if(j, "fleet_version", all, (int64_t)c->fleet_version);
    json_put_uint(j, "hosts", s.hosts);
    put_counts(j, "freshness", s.fresh, fresh);
    put_counts(j, "health", s.health, health);
    put_counts(j, "ports", s.ports, ports);
    put_counts(j, "clocks", s.clocks, clocks);
    json_put_int_if(j, "clock_hard_ns_max", s.hard_ns_max >= 0, s.hard_ns_max);
    json_put_int_if(j, "clock_statistical_ns_max", s.statistical_ns_max >= 0, s.statistical_ns_max);
    json_put_object(j, "paths");
    json_put_uint(j, "measured", s.paths);
    json_put_uint(j, "dead", s.paths_dead);
    json_put_uint(j, "lossy", s.paths_lossy);
    json_put_end(j);
    json_put_object(j, "watching");
    json_put_uint(j, "nics", s.nics);
    json_put_uint(j, "nics_unwatched", s.nics_unwatched);
    json_put_uint(j, "nics_unknown", s.nics_unknown);
    json_put_uint(j, "hosts_sensors_off", s.hosts_sensors_off);
    json_put_end(j);
    json_put_uint(j, "findings_open", s.findings);
    json_put_uint(j, "certificates_ending", s.certificates_ending);
    json_put_int(j, "server_certificate_not_after_utc_ns", api_certificate_end(c) * NS_PER_S);
    json_put_object(j, "store");
    json_put_bool(j, "writable", !c->store_broken);
    json_put_int_if(j, "file_bytes", all, sizes.file_bytes);
    json_put_int_if(j, "commit_ns_last", all, c->count.commit_ns_last);
    json_put_int_if(j, "commit_ns_max", all, c->count.commit_ns_max);
    json_put_end(j);
    if (all) {
        put_ingest(c, j);
    } else {
        json_put_null(j, "ingest");
    }
    json_put_end(j);
    api_answer(call);
}

/* ---- hosts ---- */

static void put_clock(struct json_writer *j, const struct fleet_host *h, bool known)
{
    json_put_object(j, "clock");
    json_put_string(j, "status", clock_word(known ? h->clock.status : 0));
    json_put_string(j, "why", !known ? "it sends no current reports" : h->why[0] ? h->why : NULL);
    json_put_int_if(j, "hard_ns", known && h->clock.hard_ns >= 0, h->clock.hard_ns);
    json_put_int_if(j, "statistical_ns", known && h->clock.statistical_ns >= 0,
                    h->clock.statistical_ns);
    json_put_int_if(j, "offset_ns", known && h->clock.status != 0, h->clock.offset_ns);
    json_put_int_if(j, "rate_ppb", known && h->clock.status != 0, h->clock.rate_ppb);
    json_put_hex64(j, "timeline", known ? h->clock.timeline : 0);
    json_put_int_if(j, "edges_live", known, h->clock.edges_live);
    json_put_int_if(j, "edges_chosen", known, h->clock.edges_chosen);
    json_put_end(j);
}

static void put_cost(struct json_writer *j, const struct fleet_host *h)
{
    json_put_object(j, "agent");
    json_put_string(j, "version", h->version[0] != 0 ? h->version : NULL);
    json_put_int_if(j, "cpu_ppm", h->reported, h->cost.cpu_ppm);
    json_put_int_if(j, "memory_bytes", h->reported, (int64_t)h->cost.memory_bytes);
    json_put_int_if(j, "late_ticks", h->reported, (int64_t)h->cost.late_ticks);
    json_put_int_if(j, "packets_bad", h->reported, (int64_t)h->cost.packets_bad);
    json_put_int_if(j, "reports_lost", h->reported, (int64_t)h->cost.reports_lost);
    json_put_uint(j, "report_bytes", h->bytes);
    json_put_end(j);
}

static void put_host_fields(struct api_call *call, const struct fleet_host *h, struct mono now)
{
    struct controller *c = call->c;
    struct json_writer *j = call->j;
    const struct scope_paths paths = scope_paths(call, h);
    uint32_t up = 0;
    const bool known = fleet_current(c, h, now);
    for (uint32_t i = 0; i < h->nic_count; i++) {
        up += c->nics[h->nics[i]]->state == FOLIOT__V1__PORT_STATE__PORT_UP;
    }
    json_put_string(j, "name", h->name);
    json_put_uint(j, "index", h->index);
    json_put_bool(j, "member", h->member);
    json_put_string(j, "health", h->member ? health_word(fleet_health(c, h, now)) : "unknown");
    json_put_string(j, "freshness", freshness_word(fleet_freshness(c, h, now)));
    json_put_int(j, "joined_utc_ns", h->joined_ns);
    json_put_int_if(j, "removed_utc_ns", h->removed_ns != 0, h->removed_ns);
    json_put_int_if(j, "heard_utc_ns", h->heard_utc_ns != 0, h->heard_utc_ns);
    json_put_string(j, "address", h->peer[0] != 0 ? h->peer : NULL);
    json_put_int(j, "certificate_not_after_utc_ns", h->not_after * NS_PER_S);
    json_put_uint(j, "nics", h->nic_count);
    json_put_int_if(j, "nics_up", known, up);
    json_put_int_if(j, "nics_unwatched", known, fleet_nics_unwatched(c, h));
    json_put_int_if(j, "paths", known, paths.all);
    json_put_int_if(j, "paths_dead", known, paths.dead);
    json_put_int_if(j, "paths_lossy", known, paths.lossy);
    json_put_uint(j, "findings_open", scope_findings(call, h));
    json_put_array(j, "sensors_off");
    for (uint32_t i = 0; known && i < h->sensor_off_count; i++) {
        json_put_string(j, NULL, h->sensors_off[i]);
    }
    json_put_end(j);
    json_put_string(j, "members_refused",
                    h->left_out[0] != 0          ? h->left_out
                    : h->members_refused[0] != 0 ? h->members_refused
                                                 : NULL);
    put_clock(j, h, known);
    put_cost(j, h);
    json_put_object(j, "config");
    json_put_int_if(j, "version", h->config_version != 0, (int64_t)h->config_version);
    json_put_string(j, "refused", h->refused[0] != 0 ? h->refused : NULL);
    json_put_string(j, "mode", switch_mode_word((enum switch_mode)h->mode));
    json_put_bool(j, "canary", h->canary);
    json_put_end(j);
}

static bool host_wanted(struct api_call *call, const struct fleet_host *h, struct mono now)
{
    const char *health = http_query(call->request, "health"),
               *fresh = http_query(call->request, "freshness"),
               *part = http_query(call->request, "q"),
               *off = http_query(call->request, "sensors_off"),
               *member = http_query(call->request, "member");
    const bool removed_too = member != NULL && strcmp(member, "any") == 0;
    return (h->member || removed_too) && api_sees(call, h) &&
           (health == NULL || strcmp(health, health_word(fleet_health(call->c, h, now))) == 0) &&
           (fresh == NULL ||
            strcmp(fresh, freshness_word(fleet_freshness(call->c, h, now))) == 0) &&
           (off == NULL || strcmp(off, "true") != 0 ||
            (h->sensor_off_count > 0 && fleet_current(call->c, h, now))) &&
           (part == NULL || strstr(h->name, part) != NULL);
}

void api_get_hosts(struct api_call *call)
{
    struct controller *c = call->c;
    struct json_writer *j = call->j;
    const struct mono now = controller_mono();
    int64_t limit, cursor, count = 0;
    uint32_t i;
    if (!api_page(call, &limit, &cursor)) {
        return;
    }
    json_put_object(j, NULL);
    json_put_array(j, "items");
    for (i = cursor < c->host_count ? (uint32_t)cursor : c->host_count;
         i < c->host_count && count < limit; i++) {
        if (host_wanted(call, c->hosts[i], now)) {
            json_put_object(j, NULL);
            put_host_fields(call, c->hosts[i], now);
            json_put_end(j);
            count++;
        }
    }
    while (i < c->host_count && !host_wanted(call, c->hosts[i], now)) {
        i++; /* `next` counts only hosts that the caller may see */
    }
    json_put_end(j);
    api_put_next(j, i < c->host_count, i);
    json_put_end(j);
    api_answer(call);
}

void api_get_host(struct api_call *call)
{
    struct controller *c = call->c;
    struct json_writer *j = call->j;
    const struct mono now = controller_mono();
    const struct fleet_host *h = fleet_find_host(c, call->rest);
    if (h == NULL || !api_sees(call, h)) {
        api_error(call, 404, "no-such-host", "no such host");
        return;
    }
    struct incident_nics incidents;
    if (!incident_nics_collect(call, &incidents)) {
        api_error(call, 503, "no-memory", "no memory to look through the open incidents");
        return;
    }
    json_put_object(j, NULL);
    put_host_fields(call, h, now);
    json_put_array(j, "links");
    for (uint32_t i = 0; i < h->nic_count; i++) {
        api_put_link(call, &incidents, c->nics[h->nics[i]], now);
    }
    incident_nics_done(&incidents);
    json_put_end(j);
    json_put_end(j);
    api_answer(call);
}

/* ---- paths ---- */

const char *api_path_word(uint32_t state)
{
    static const char *const words[] = {"unknown", "alive", "suspect", "lossy", "dead"};
    return state < ARRAY_COUNT(words) ? words[state] : "unknown";
}

/* The switches of a path; null for a silent one. null for the whole if nothing is known of them. */
static void put_switches(const struct controller *c, struct json_writer *j,
                         const struct fleet_path *p)
{
    const struct fabric_way *way = fleet_way(c, p->peer, p->local, p->port);
    if (!fabric_names_way(way)) {
        json_put_null(j, "switches");
        return;
    }
    json_put_array(j, "switches");
    for (uint32_t k = 0; k < way->hops; k++) {
        json_put_string(j, NULL, fabric_switch_name(c->fabric, way->switches[k]));
    }
    json_put_end(j);
}

static void put_path(const struct controller *c, struct json_writer *j, const struct fleet_host *h,
                     const struct fleet_path *p, bool known)
{
    json_put_object(j, NULL);
    json_put_uint(j, "from", p->peer);
    json_put_uint(j, "to", p->local);
    json_put_uint(j, "port", p->port);
    json_put_hex64(j, "signature", p->signature);
    put_switches(c, j, p);
    json_put_string(j, "state", api_path_word(known ? p->state : 0));
    json_put_int_if(j, "owd_ns_p50", known && p->p50 != DELAY_CODE_NONE, delay_decode(p->p50));
    json_put_int_if(j, "owd_ns_p99", known && p->p99 != DELAY_CODE_NONE, delay_decode(p->p99));
    json_put_int_if(j, "bound_ns", known && h->bound_ns != 0, h->bound_ns);
    json_put_int_if(j, "loss_ppm", known && fleet_path_loss_ppm(p) >= 0, p->loss_ppm);
    json_put_end(j);
}

/* Sorted by the receiving host. The cursor is the path's number among those that the caller may see. */
void api_get_paths(struct api_call *call)
{
    struct controller *c = call->c;
    struct json_writer *j = call->j;
    const struct mono now = controller_mono();
    const char *state = http_query(call->request, "state");
    int64_t limit, cursor, from = -1, to = -1, number = 0, count = 0;
    struct fleet_host *host = NULL;
    if (!api_page(call, &limit, &cursor) || !api_host(call, "host", &host) ||
        !api_number(call, "from", 0, FLEET_NIC_MAX, &from) ||
        !api_number(call, "to", 0, FLEET_NIC_MAX, &to)) {
        return;
    }
    json_put_object(j, NULL);
    json_put_array(j, "items");
    for (uint32_t i = 0; i < c->host_count && count < limit; i++) {
        const struct fleet_host *h = c->hosts[i];
        const bool known = fleet_current(c, h, now);
        if (!api_sees(call, h)) {
            continue;
        }
        if ((host != NULL && h != host) ||
            (call->visible == NULL && number + h->path_count <= cursor)) {
            number += call->visible == NULL ? h->path_count : 0;
            continue;
        }
        for (uint32_t k = 0; k < h->path_count && count < limit; k++) {
            const struct fleet_path *p = &h->paths[k];
            if (!api_sees_nic(call, p->peer)) {
                continue;
            }
            if (number++ >= cursor && p->local != UINT32_MAX && (from < 0 || p->peer == from) &&
                (to < 0 || p->local == to) &&
                (state == NULL || strcmp(state, api_path_word(known ? p->state : 0)) == 0)) {
                put_path(c, j, h, p, known);
                count++;
            }
        }
    }
    json_put_end(j);
    api_put_next(j, count == limit, number);
    json_put_end(j);
    api_answer(call);
}
