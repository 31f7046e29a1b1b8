/* state.c: turns reports into the present state: ports, clocks, paths, silence. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/brain/brain.h"
#include "core/fleet/delay_code.h"
#include "service/controller/audit/audit.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fault.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/state.h"
#include "service/controller/fleet/ways.h"
#include "service/controller/history/remote.h"
#include "service/controller/job/job.h"

/* ---- ports, clock, paths ---- */

static void apply_rates(struct fleet_nic *n, const Foliot__V1__Port *p, int64_t at_ns)
{
    const int64_t passed = at_ns - n->bytes_at_ns;
    const bool first = n->bytes_at_ns == 0;
    n->rx_bps = first ? -1 : controller_rate(n->rx_bytes, p->rx_bytes, passed);
    n->tx_bps = first ? -1 : controller_rate(n->tx_bytes, p->tx_bytes, passed);
    n->bytes_at_ns = at_ns;
    n->rx_bytes = p->rx_bytes;
    n->tx_bytes = p->tx_bytes;
}

/* The name of a switch or a port. It is used in sentences about other hosts' findings, too. */
static void take_name(char *to, size_t size, const char *from)
{
    size_t n = 0;
    for (; from[n] != 0 && n + 1 < size; n++) {
        const bool plain = from[n] >= ' ' && from[n] <= '~' && strchr("\"\\;<>()", from[n]) == NULL;
        to[n] = plain ? from[n] : '?';
    }
    to[n] = 0;
}

static void apply_port(struct controller *c, const struct fleet_host *h,
                       const Foliot__V1__Report *report, const Foliot__V1__Port *p, int64_t at_ns)
{
    struct fleet_nic *n = fleet_find_nic(c, p->nic);
    if (n == NULL || n->host != h) {
        c->count.foreign_nics++;
        return;
    }
    if (report->covers_ms > 0) {
        apply_rates(n, p, at_ns);
    }
    n->state = p->state;
    n->since_utc_ns =
        p->since_mono != 0 ? controller_back(at_ns, report->at_mono, p->since_mono) : 0;
    n->carrier_downs = p->carrier_downs;
    n->flaps_hour = p->flaps_hour;
    n->flaps_day = p->flaps_day;
    n->speed_mbps = p->speed_mbps;
    n->width = p->width;
    n->rx_errors = p->rx_errors;
    n->tx_errors = p->tx_errors;
    n->rx_drops = p->rx_drops;
    n->tx_drops = p->tx_drops;
    n->stamps = p->stamps;
    n->reported = true;
    if (report->covers_ms > 0) {
        take_name(n->neighbour, sizeof(n->neighbour), p->neighbour);
        take_name(n->neighbour_port, sizeof(n->neighbour_port), p->neighbour_port);
    }
    snprintf(n->trouble, sizeof(n->trouble), "%s", p->trouble);
}

/* After its start, a controller has not seen when clocks came into step. Hosts that are in step then count as steady. */
static void mind_steady(struct fleet_host *h, uint32_t status)
{
    const uint32_t synced = FOLIOT__V1__CLOCK_STATUS__CLOCK_STATUS_SYNCED;
    if (status != synced && status != FOLIOT__V1__CLOCK_STATUS__CLOCK_STATUS_HOLDOVER) {
        h->unsteady = true;
    } else if (h->unsteady) {
        h->unsteady = false;
        h->steady = controller_mono();
    }
}

static void apply_clock(struct fleet_host *h, const Foliot__V1__Clock *m)
{
    mind_steady(h, m->status);
    h->clock.status = m->status;
    h->clock.hard_ns = m->hard_ns;
    h->clock.statistical_ns = m->statistical_ns;
    h->clock.offset_ns = m->offset_ns;
    h->clock.rate_ppb = m->rate_ppb;
    h->clock.timeline = m->timeline;
    h->clock.epoch = m->epoch;
    h->clock.edges_live = m->edges_live;
    h->clock.edges_chosen = m->edges_chosen;
    h->clock.utc_known = m->utc_known != 0;
    snprintf(h->why, sizeof(h->why), "%s", m->why);
}

static void apply_cost(struct fleet_host *h, const Foliot__V1__Cost *m)
{
    h->cost.cpu_ppm = m->cpu_ppm;
    h->cost.memory_bytes = m->memory_bytes;
    h->cost.packets_sent = m->packets_sent;
    h->cost.packets_received = m->packets_received;
    h->cost.packets_bad = m->packets_bad;
    h->cost.late_ticks = m->late_ticks;
    h->cost.reports_lost = m->reports_lost;
    h->cost.spool_bytes = m->spool_bytes;
    h->cost.stamps_missing_ppm = m->stamps_missing_ppm;
}

enum { PATH_COUNT_MAX = HOST_NIC_MAX * NIC_EDGE_MAX * EDGE_PATH_MAX };

static int compare_hops(const void *a, const void *b)
{
    const struct fabric_way *x = a, *y = b;
    return x->local != y->local ? (x->local > y->local) - (x->local < y->local)
           : x->peer != y->peer ? (x->peer > y->peer) - (x->peer < y->peer)
                                : (x->port > y->port) - (x->port < y->port);
}

const struct fabric_way *fleet_way(const struct controller *c, uint32_t from, uint32_t to,
                                   uint32_t port)
{
    const struct fleet_nic *n = fleet_find_nic(c, from);
    const struct fabric_way key = {.local = from, .peer = to, .port = (uint16_t)port};
    return n == NULL || n->host->hop_count == 0
               ? NULL
               : bsearch(&key, n->host->hops, n->host->hop_count, sizeof(key), compare_hops);
}

uint32_t fleet_path_hops(const struct controller *c, uint32_t from, uint32_t to, uint32_t port)
{
    const struct fabric_way *way = fleet_way(c, from, to, port);
    return way != NULL ? way->hops : 0;
}

static void apply_hops(struct controller *c, struct fleet_host *h, const Foliot__V1__PathTable *t)
{
    const struct mono now = controller_mono();
    struct fabric_way *hops = calloc(t->n_out_local + 1, sizeof(*hops));
    if (hops == NULL || t->n_out_local != t->n_out_peer || t->n_out_local != t->n_out_port ||
        t->n_out_local != t->n_out_hops || t->n_out_local > PATH_COUNT_MAX) {
        free(hops);
        return;
    }
    for (size_t i = 0; i < t->n_out_local; i++) {
        hops[i] = (struct fabric_way){.local = t->out_local[i],
                                      .peer = t->out_peer[i],
                                      .port = (uint16_t)t->out_port[i],
                                      .hops = (uint16_t)t->out_hops[i]};
    }
    ways_name(c, h, t, hops);
    qsort(hops, t->n_out_local, sizeof(*hops), compare_hops);
    fabric_on_ways(c->fabric, hops, (uint32_t)t->n_out_local, now);
    fabric_on_ways_gone(c->fabric, h->hops, h->hop_count, now);
    free(h->hops);
    h->hops = hops;
    h->hop_count = (uint32_t)t->n_out_local;
    ways_contradict(c, h);
}

static int apply_table(struct controller *c, struct fleet_host *h, const Foliot__V1__PathTable *t)
{
    if (t->n_local != t->n_peer || t->n_local != t->n_port || t->n_local != t->n_signature ||
        t->n_local > PATH_COUNT_MAX) {
        c->count.malformed++;
        return 0;
    }
    struct fleet_path *paths = calloc(t->n_local + 1, sizeof(*paths));
    if (paths == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < t->n_local; i++) {
        const struct fleet_nic *n = fleet_find_nic(c, t->local[i]);
        paths[i] = (struct fleet_path){.local = t->local[i],
                                       .peer = t->peer[i],
                                       .port = (uint16_t)t->port[i],
                                       .signature = t->signature[i]};
        if (n == NULL || n->host != h) { /* a host reports only about itself */
            c->count.foreign_nics++;
            paths[i].local = UINT32_MAX;
        }
    }
    free(h->paths);
    h->paths = paths;
    h->path_count = (uint32_t)t->n_local;
    apply_hops(c, h, t);
    h->generation = t->generation;
    h->tables_wanted = false;
    return 0;
}

/* If paths are no longer reported, their state is not known. */
static void forget_paths(struct fleet_host *h)
{
    for (uint32_t i = 0; i < h->path_count; i++) {
        fleet_path_measured(&h->paths[i], FOLIOT__V1__PATH_STATE__PATH_STATE_UNKNOWN, 0, 0, 0);
    }
    h->paths_dead = h->paths_lossy = 0;
}

static void apply_sensors(struct fleet_host *h, const Foliot__V1__Report *report)
{
    h->sensor_off_count = 0;
    for (size_t i = 0; i < report->n_sensors_off && i < SENSORS_OFF_MAX; i++) {
        snprintf(h->sensors_off[h->sensor_off_count++], sizeof(h->sensors_off[0]), "%s",
                 report->sensors_off[i]);
    }
}

static void apply_paths(struct controller *c, struct fleet_host *h, const Foliot__V1__PathRollup *m)
{
    if (m->generation != h->generation || m->n_owd_p50 != h->path_count ||
        m->n_owd_p99 != h->path_count || (m->n_state != 0 && m->n_state != h->path_count) ||
        (m->n_loss_ppm != 0 && m->n_loss_ppm != h->path_count)) {
        h->tables_wanted = true;
        c->count.samples_dropped += m->n_owd_p50;
        forget_paths(h);
        return;
    }
    h->paths_dead = h->paths_lossy = 0;
    for (uint32_t i = 0; i < h->path_count; i++) {
        struct fleet_path *p = &h->paths[i];
        fleet_path_measured(
            p, m->n_state != 0 ? m->state[i] : FOLIOT__V1__PATH_STATE__PATH_STATE_ALIVE,
            m->owd_p50[i], m->owd_p99[i], m->n_loss_ppm != 0 ? m->loss_ppm[i] : 0);
        h->paths_dead += p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD;
        h->paths_lossy += p->state == FOLIOT__V1__PATH_STATE__PATH_STATE_LOSSY;
    }
    h->bound_ns = m->bound_ns;
}

int state_apply(struct controller *c, struct fleet_host *h, const Foliot__V1__Report *report,
                int64_t at_ns)
{
    int r = 0;
    c->revision++;
    if (report->clock != NULL) {
        apply_clock(h, report->clock);
    }
    if (report->cost != NULL) {
        apply_cost(h, report->cost);
    }
    for (size_t i = 0; i < report->n_ports && i < HOST_NIC_MAX; i++) {
        apply_port(c, h, report, report->ports[i], at_ns);
    }
    if (report->table != NULL) {
        r = apply_table(c, h, report->table);
    }
    if (r == 0 && report->paths != NULL) {
        apply_paths(c, h, report->paths);
        h->paths_at_ns = at_ns;
        fault_on_paths(c, h);
    }
    if (report->covers_ms > 0) {
        if (report->paths == NULL) {
            forget_paths(h);
        }
        apply_sensors(h, report);
        h->reported = true;
        h->rolled = controller_mono();
        r = r < 0 ? r : job_on_report(c, h, report, at_ns);
    }
    fleet_tell_report(c, h, report->covers_ms > 0);
    bool started = false; /* only one start per report counts: it closes findings in the store */
    for (size_t i = 0; i < report->n_events && r == 0; i++) {
        const Foliot__V1__Event *e = report->events[i];
        const bool starts = e->type == FOLIOT__V1__EVENT_TYPE__EVENT_AGENT_STARTED;
        r = starts && started ? 0 : state_apply_event(c, h, report, e, at_ns);
        started = started || starts;
    }
    fault_run(c);
    if (r == 0) {
        alarm_on_report(c, h, report, at_ns);
        remote_on_report(c->remote, h, report, at_ns);
    }
    return r;
}

/* ---- silence ---- */

void state_watch(struct controller *c)
{
    struct brain_answer answer;
    const struct mono now = controller_mono();
    int r = 0;
    brain_tell(c->brain, now, BRAIN_HOSTS_TICK, NULL, NULL);
    while (r == 0 && brain_tell(c->brain, now, BRAIN_HOSTS_NEXT, NULL, &answer) == 1) {
        const struct fleet_action *action = &answer.host;
        c->revision++;
        if (action->kind != FLEET_SHOWN) {
            const struct store_event event = {.at_ns = controller_utc_ns(),
                                              .host = c->hosts[action->host]->id,
                                              .kind = "host",
                                              .word =
                                                  action->kind == FLEET_SILENT ? "silent" : "heard",
                                              .body = "{}"};
            r = state_event(c, &event);
            audit_absence(c, c->hosts[action->host], action->kind == FLEET_SILENT);
        }
    }
    if (r < 0) {
        controller_store_failed(c, r, "a host's silence");
    }
}
