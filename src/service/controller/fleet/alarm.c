/* alarm.c: gives the fleet's reports to the alert engine, and stores and shows the engine's output. The engine's hosts are
 * indices of c->hosts. Its NICs have the fleet's ids. Its time is the monotonic clock. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "core/brain/brain.h"
#include "core/fleet/delay_code.h"
#include "platform/json/element.h"
#include "service/controller/audit/audit.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/claim.h"
#include "service/controller/fleet/fault.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/fleet_config.h"
#include "service/controller/fleet/levels.h"
#include "service/controller/fleet/state.h"
#include "service/controller/fleet/topology.h"
#include "service/controller/history/document.h"
#include "service/controller/job/job.h"
#include "service/controller/trust/trust.h"

#define SAVED_NAME "alerts"
#define SAVED_MAX  (8 << 20)
/* older values are not used: they waited while there was no connection */
#define OLD_NS  (60 * NS_PER_S)
#define VOTE_NS (10 * NS_PER_S) /* the longest time that one report's paths count for */

/* ---- the engine's tables ---- */

static bool on_nic(void *context, uint32_t nic, struct alert_nic *ret)
{
    struct controller *c = context;
    const struct fleet_nic *n = fleet_find_nic(c, nic);
    if (n == NULL) {
        return false;
    }
    snprintf(c->alarm.nic, sizeof(c->alarm.nic), "%s/%s", n->host->name, n->name);
    *ret = (struct alert_nic){
        .name = c->alarm.nic, .leaf = n->leaf, .host = n->host->index, .rail = n->rail};
    return true;
}

static const char *on_host(void *context, uint32_t host)
{
    const struct controller *c = context;
    return host < c->host_count ? c->hosts[host]->name : NULL;
}

static uint64_t tenant_of(void *context, uint32_t host)
{
    const struct controller *c = context;
    return host < c->host_count ? c->hosts[host]->tenant : 0;
}

static void on_say(void *context, int priority, const struct alert_incident *about,
                   const char *text)
{
    char id[24];
    if (about == NULL) {
        controller_say(priority, "%s", text);
        return;
    }
    snprintf(id, sizeof(id), "%llu", (unsigned long long)about->id);
    const struct journal_field fields[] = {
        {"FOLIOT_INCIDENT", id},
        {"FOLIOT_SEVERITY", alert_severity_word(about->severity)},
        /* the incident's host, not the reporting host */
        {"FOLIOT_HOST", about->host[0] != 0 ? about->host : NULL},
        {"FOLIOT_SOURCE", NULL},
        {NULL, NULL}};
    controller_note(priority, fields, "%s", text);
}

static void on_incident(void *context, const struct alert_incident *incident, uint32_t event,
                        bool notified)
{
    struct controller *c = context;
    struct json_writer j;
    const char *body = NULL;
    size_t size = 0;
    c->revision++;
    if (!notified) {
        return;
    }
    json_writer_init(&j, 1 << 16);
    alerting_put_incident(c->alerting, &j, NULL, incident);
    int r = json_writer_finish(&j, &body, &size);
    char *copy = r < 0 ? NULL : strndup(body, size - 1);
    const struct store_event stored = {.at_ns = controller_utc_ns(),
                                       .kind = "incident",
                                       .word = alert_event_word(event),
                                       .body = copy};
    r = copy == NULL ? -ENOMEM : state_event(c, &stored);
    if (r < 0) {
        /* the code that commits logs errors of the disk; notifications do not need the store */
        controller_say(LOG_WARNING, "incident %llu: its event can't be stored: %s",
                       (unsigned long long)incident->id, strerror(-r));
    }
    free(copy);
    json_writer_done(&j);
}

/* ---- findings ---- */

static uint32_t kind_of(const char *word)
{
    uint32_t kind = FINDING_NONE + 1;
    while (kind < FINDING_KIND_COUNT && strcmp(finding_kind_word(kind), word) != 0) {
        kind++;
    }
    /* a newer agent may report an unknown kind */
    return kind < FINDING_KIND_COUNT ? kind : FINDING_NONE;
}

/* Converts UTC of this controller. The result may be before its boot. */
static struct mono mono_of(int64_t utc_ns)
{
    return (struct mono){controller_mono().ns - (controller_utc_ns() - utc_ns)};
}

static uint32_t host_of(const struct controller *c, uint32_t nic, const char *name)
{
    const struct fleet_nic *n = nic != ALERT_NO_ID ? fleet_find_nic(c, nic) : NULL;
    const struct fleet_host *h = n != NULL      ? n->host
                                 : name[0] != 0 ? fleet_find_host(c, name)
                                                : NULL;
    return h != NULL ? h->index : ALERT_NO_ID;
}

static uint32_t host_of_element(const struct controller *c, const struct element *e)
{
    const struct fleet_nic *n = e->kind == ELEMENT_NIC ? fleet_find_nic(c, e->a.number) : NULL;
    return n != NULL ? n->host->index : e->kind == ELEMENT_HOST ? e->a.number : ALERT_NO_ID;
}

/* The host that is the suspect if the finding is true, as in core/alert/cause.c. ALERT_NO_ID: no single host. */
static uint32_t accused_by(const struct controller *c, const struct fleet_host *h,
                           const struct alert_finding *f)
{
    const struct element *e = &f->suspect;
    if (f->kind == FINDING_CLOCK_LIAR || f->kind == FINDING_CLOCK_ASTRAY) {
        return f->from_host;
    }
    if (e->kind == ELEMENT_UNKNOWN && f->kind == FINDING_PEER_SILENT) {
        return f->from_host == h->index ? f->to_host : f->from_host;
    }
    return host_of_element(c, e);
}

static bool is_strangers(const struct controller *c, const struct fleet_host *h, uint32_t host)
{
    return host < c->host_count && host != h->index && c->hosts[host]->tenant != h->tenant;
}

/* True if the finding accuses a host of another tenant. If it has several suspects, all of them must be such hosts. */
static bool is_hearsay(const struct controller *c, const struct fleet_host *h,
                       const struct alert_finding *f)
{
    const bool known = f->suspect.kind != ELEMENT_UNKNOWN;
    bool strangers = !known && f->choice.count > 0;
    for (uint32_t i = 0; i < f->choice.count && strangers; i++) {
        strangers = is_strangers(c, h, host_of_element(c, &f->choice.one_of[i]));
    }
    return strangers || is_strangers(c, h, accused_by(c, h, f));
}

static void tell_finding(struct controller *c, const struct fleet_host *h, struct alert_finding *f,
                         const struct element *named)
{
    fault_place(c, h, f, named);
    f->hearsay = is_hearsay(c, h, f);
    brain_tell(c->brain, controller_mono(), BRAIN_FINDING, f, NULL);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text != NULL ? text : "";
}

static uint32_t nic_of(const json_t *end)
{
    const json_t *nic = json_object_get(end, "nic");
    return json_is_integer(nic) ? (uint32_t)json_integer_value(nic) : ALERT_NO_ID;
}

static uint32_t index_of(void *context, const char *name)
{
    return host_of(context, ALERT_NO_ID, name);
}

/* A finding from the store, in the format of state.c. It was open when the controller stopped, or when the rules changed. */
static int on_stored(void *context, const struct store_finding *stored)
{
    struct controller *c = context;
    struct fleet_host *h = fleet_host_by_id(c, stored->host);
    json_t *body = json_loads(stored->body, 0, NULL);
    if (h != NULL && h->member && body != NULL) {
        const json_t *from = json_object_get(body, "from"), *to = json_object_get(body, "to");
        struct alert_finding finding = {
            .said_by = h->index,
            .run = stored->run,
            .number = stored->number,
            .kind = kind_of(stored->kind),
            .phase = FINDING_OPENED,
            .from_nic = nic_of(from),
            .to_nic = nic_of(to),
            .from_host = host_of(c, nic_of(from), text_of(from, "host")),
            .to_host = host_of(c, nic_of(to), text_of(to, "host")),
            .port = (uint32_t)json_integer_value(json_object_get(body, "port")),
            .suspect = json_read_element(json_object_get(body, "element"), index_of, c),
            .choice = json_read_choice(body, index_of, c),
            .since = mono_of(stored->opened_ns),
            .heard = mono_of(state_heard_ns(h, stored->number)),
            .text = text_of(body, "text")};
        json_t *named = stored->named[0] != 0 ? json_loads(stored->named, 0, NULL) : NULL;
        const struct element element = json_read_element(named, index_of, c);
        tell_finding(c, h, &finding, named != NULL ? &element : NULL);
        json_decref(named);
    }
    json_decref(body);
    return 0;
}

void alarm_retell(struct controller *c, const struct fleet_host *h, const struct open_finding *only)
{
    const struct store_finding_filter filter = {.open = 1,
                                                .host = h->id,
                                                .before_id = only != NULL ? only->id + 1 : 0,
                                                .limit = only ? 1 : CONTROLLER_HOST_FINDINGS};
    const int r = c->alerting != NULL ? store_findings(c->store, &filter, on_stored, c) : 0;
    if (r < 0) {
        controller_say(LOG_WARNING, "open findings of %s can't be read: %s", h->name, strerror(-r));
    }
}

void alarm_on_finding(struct controller *c, const struct fleet_host *h, const struct claim *claim,
                      int64_t since_ns, int64_t heard_ns)
{
    const Foliot__V1__Finding *f = &claim->finding;
    struct alert_finding finding = {.said_by = h->index,
                                    .run = f->run,
                                    .number = f->number,
                                    .kind = kind_of(f->kind),
                                    .phase = f->phase == 2   ? FINDING_CLOSED
                                             : f->phase == 1 ? FINDING_UPDATED
                                                             : FINDING_OPENED,
                                    .from_nic = f->from_nic - 1, /* 0 (none) becomes ALERT_NO_ID */
                                    .to_nic = f->to_nic - 1,
                                    .from_host = host_of(c, f->from_nic - 1, f->from_host),
                                    .to_host = host_of(c, f->to_nic - 1, f->to_host),
                                    .port = f->port,
                                    .suspect = claim->element,
                                    .choice = claim->choice,
                                    .since = mono_of(since_ns),
                                    .heard = mono_of(heard_ns),
                                    .text = claim->text[0] != 0 ? claim->text : f->what};
    const struct open_finding *open = state_finding(c->hosts[h->index], f->number);
    if (c->alerting != NULL && f->phase == 1 && open != NULL && fault_recalls(c)) {
        alarm_retell(c, h, open); /* with the name that is stored for it */
    } else if (c->alerting != NULL) {
        tell_finding(c, h, &finding, NULL);
    }
}

static void feed_open(void *context)
{
    struct controller *c = context;
    const struct store_finding_filter filter = {
        .open = 1, .limit = (int)c->host_count * CONTROLLER_HOST_FINDINGS};
    const int r = store_findings(c->store, &filter, on_stored, c);
    if (r < 0) {
        controller_say(LOG_WARNING, "open findings can't be read for alerts: %s", strerror(-r));
    }
    for (uint32_t i = 0; i < c->host_count; i++) { /* hosts that do not come back must be missed */
        if (c->hosts[i]->member) {
            brain_tell(c->brain, controller_mono(), BRAIN_HOST, &(struct brain_host){i}, NULL);
        }
    }
}

/* ---- hosts and values ---- */

void alarm_on_host(struct controller *c, const struct fleet_host *h)
{
    brain_tell(c->brain, controller_mono(), BRAIN_HOST, &(struct brain_host){h->index}, NULL);
}

void alarm_on_removed(struct controller *c, const struct fleet_host *h)
{
    brain_tell(c->brain, controller_mono(), BRAIN_HOST_GONE, &(struct brain_host){h->index}, NULL);
}

struct feed {
    struct brain *brain;
    struct mono now;
    struct alert_sample sample;
};

static void feed(struct feed *f, enum alert_metric metric, double value)
{
    f->sample.metric = metric;
    f->sample.value = value;
    brain_tell(f->brain, f->now, BRAIN_SAMPLE, &f->sample, NULL);
}

static void feed_ports(struct controller *c, struct feed *f, const struct fleet_host *h,
                       const Foliot__V1__Report *report)
{
    for (size_t i = 0; i < report->n_ports && i < HOST_NIC_MAX; i++) {
        const Foliot__V1__Port *p = report->ports[i];
        const struct fleet_nic *n = fleet_find_nic(c, p->nic);
        if (n == NULL || n->host != h) {
            continue;
        }
        f->sample.nic = p->nic;
        if (report->covers_ms > 0) {
            feed(f, ALERT_LINK_WATCHED, !fleet_nic_unwatched(n));
        }
        if (p->state == FOLIOT__V1__PORT_STATE__PORT_UNKNOWN) {
            continue;
        }
        feed(f, ALERT_LINK_UP, p->state == FOLIOT__V1__PORT_STATE__PORT_UP);
        feed(f, ALERT_LINK_DOWNS, (double)p->carrier_downs);
        if (report->covers_ms > 0) {
            feed(f, ALERT_LINK_SPEED, p->speed_mbps);
            feed(f, ALERT_LINK_RX_ERRORS, (double)p->rx_errors);
            feed(f, ALERT_LINK_TX_ERRORS, (double)p->tx_errors);
            feed(f, ALERT_LINK_RX_DROPS, (double)p->rx_drops);
            feed(f, ALERT_LINK_TX_DROPS, (double)p->tx_drops);
            feed(f, ALERT_LINK_RX_BYTES, (double)p->rx_bytes);
            feed(f, ALERT_LINK_TX_BYTES, (double)p->tx_bytes);
        }
    }
    f->sample.nic = ALERT_NO_ID;
}

/* True if one end is the host's own NIC, and the other end a NIC of the fleet. */
static bool is_fed(const struct controller *c, const struct fleet_path *p)
{
    return p->local != UINT32_MAX && p->state != FOLIOT__V1__PATH_STATE__PATH_STATE_UNKNOWN &&
           fleet_find_nic(c, p->peer) != NULL;
}

/* If a rule is about the share of bad paths of many hosts, each host has the same weight per time. More paths or more reports
 * give no more weight. */
static void feed_paths(struct controller *c, struct feed *f, struct fleet_host *h)
{
    const int64_t passed_ns = mono_sub(f->now, h->paths_fed).ns;
    uint32_t count = 0;
    for (uint32_t i = 0; i < h->path_count; i++) {
        count += is_fed(c, &h->paths[i]);
    }
    const int64_t each = (passed_ns < VOTE_NS ? passed_ns : VOTE_NS) / 4 / (count > 0 ? count : 1);
    f->sample.weight = each > 0 ? (uint32_t)each : 1;
    h->paths_fed = f->now;
    for (uint32_t i = 0; i < h->path_count; i++) {
        const struct fleet_path *p = &h->paths[i];
        if (!is_fed(c, p)) {
            continue;
        }
        f->sample.nic = p->local;
        f->sample.peer = p->peer;
        f->sample.port = p->port;
        if (p->p50 != DELAY_CODE_NONE) {
            feed(f, ALERT_PATH_OWD_P50, (double)delay_decode(p->p50));
        }
        if (p->p99 != DELAY_CODE_NONE) {
            feed(f, ALERT_PATH_OWD_P99, (double)delay_decode(p->p99));
        }
        if (p->state != FOLIOT__V1__PATH_STATE__PATH_STATE_DEAD) { /* a dead path is a finding */
            feed(f, ALERT_PATH_LOSS, p->loss_ppm);
        }
    }
    f->sample.nic = f->sample.peer = f->sample.port = ALERT_NO_ID;
    f->sample.weight = 0;
}

static void feed_host(struct feed *f, const struct fleet_host *h, const Foliot__V1__Report *report)
{
    if (report->clock != NULL) {
        feed(f, ALERT_CLOCK_SYNCED,
             h->clock.status == FOLIOT__V1__CLOCK_STATUS__CLOCK_STATUS_SYNCED);
        if (h->clock.hard_ns >= 0) {
            feed(f, ALERT_CLOCK_HARD, (double)h->clock.hard_ns);
        }
        if (h->clock.statistical_ns >= 0) {
            feed(f, ALERT_CLOCK_STATISTICAL, (double)h->clock.statistical_ns);
        }
    }
    if (report->cost != NULL) {
        feed(f, ALERT_AGENT_CPU, h->cost.cpu_ppm);
        feed(f, ALERT_AGENT_MEMORY, (double)h->cost.memory_bytes);
        feed(f, ALERT_AGENT_REPORTS_LOST, (double)h->cost.reports_lost);
        feed(f, ALERT_AGENT_LATE_TICKS, (double)h->cost.late_ticks);
        feed(f, ALERT_AGENT_BAD_PACKETS, (double)h->cost.packets_bad);
        feed(f, ALERT_AGENT_STAMPS_MISSING, h->cost.stamps_missing_ppm);
    }
    if (report->covers_ms > 0 && h->not_after != 0) {
        const double left = (double)h->not_after - (double)controller_utc_ns() * 1e-9;
        feed(f, ALERT_CERTIFICATE_DAYS, left / 86400);
    }
}

/* Gives the results of the host's newest audit to the engine, with each report of the host. */
static void feed_audit(struct controller *c, struct feed *f, const struct fleet_host *h)
{
    const struct audit_known *known = c->audits != NULL ? audit_known_of(c, h) : NULL;
    if (known == NULL || known->run == 0) {
        return;
    }
    feed(f, ALERT_AUDIT_BLOCKED, known->blocked);
    feed(f, ALERT_AUDIT_FAILED, known->failed);
    feed(f, ALERT_AUDIT_UNKNOWN, known->unknown);
    for (uint32_t i = 0; i < h->nic_count; i++) {
        f->sample.nic = h->nics[i];
        feed(f, ALERT_AUDIT_LINKS, known->links[i]);
    }
    f->sample.nic = ALERT_NO_ID;
}

void alarm_on_report(struct controller *c, struct fleet_host *h, const Foliot__V1__Report *report,
                     int64_t at_ns)
{
    if (c->alerting == NULL || controller_utc_ns() - at_ns > OLD_NS) {
        return;
    }
    struct feed f = {
        .brain = c->brain,
        .now = controller_mono(),
        .sample = {.host = h->index, .nic = ALERT_NO_ID, .peer = ALERT_NO_ID, .port = ALERT_NO_ID}};
    feed_ports(c, &f, h, report);
    if (report->covers_ms > 0) {
        feed_host(&f, h, report);
        feed_audit(c, &f, h);
    }
    if (report->paths != NULL) {
        feed_paths(c, &f, h);
    }
}

/* Compares all NICs with the declared topology. Once in ten seconds is enough: its rule waits for minutes. */
static void feed_topology(struct controller *c, struct feed *f)
{
    struct topology_view v;
    if (c->seconds % 10 == 0 && topology_compare(c, &v) == 0) {
        c->alarm.differences = (uint32_t)v.count;
        topology_view_done(&v);
    }
    feed(f, ALERT_TOPOLOGY_DIFFERENCES, c->alarm.differences);
}

/* Values that are not in reports of hosts. They come once a second, so that their rules can be judged. */
static void feed_members(struct controller *c, struct feed *f)
{
    for (uint32_t i = 0; i < c->host_count; i++) {
        struct fleet_host *h = c->hosts[i];
        const bool refused = h->left_out[0] != 0 || h->members_refused[0] != 0;
        if (h->member && (refused || h->members_alarm)) {
            f->sample.host = i;
            feed(f, ALERT_MEMBERS_REFUSED, refused);
            h->members_alarm = refused;
        }
    }
    f->sample.host = ALERT_NO_ID;
}

static void feed_known(struct feed *f, enum alert_metric metric, double value)
{
    if (value >= 0) {
        feed(f, metric, value);
    }
}

static void feed_fleet(struct controller *c)
{
    const double now = (double)controller_utc_ns() * 1e-9;
    struct feed f = {
        .brain = c->brain,
        .now = controller_mono(),
        .sample = {
            .host = ALERT_NO_ID, .nic = ALERT_NO_ID, .peer = ALERT_NO_ID, .port = ALERT_NO_ID}};
    feed(&f, ALERT_CONFIG_TAKEN_BACK, c->fleet_config->rolled_back);
    feed(&f, ALERT_LEVELS_BROKEN, levels_broken(c->levels));
    feed(&f, ALERT_CONTROLLER_OTHERS, instance_others(c));
    feed_topology(c, &f);
    feed_members(c, &f);
    if (c->audits != NULL) {
        feed_known(&f, ALERT_AUDIT_AGE, audit_age(c));
        feed_known(&f, ALERT_AUDIT_SUSPECT, audit_suspects(c));
        feed_known(&f, ALERT_AUDIT_OFF, audit_offs(c));
    }
    feed(&f, ALERT_CERTIFICATE_CONTROLLER, ((double)api_certificate_end(c) - now) / 86400);
    feed(&f, ALERT_CERTIFICATE_AUTHORITY, ((double)c->authority_not_after - now) / 86400);
}

void alarm_second(struct controller *c)
{
    if (c->alerting != NULL) {
        feed_fleet(c);
        job_alarm_second(c);
        alarm_run(c);
    }
}

/* ---- life ---- */

static void set_timer(struct controller *c)
{
    const struct mono due = alerting_deadline(c->alerting);
    if (c->alert_timer != NULL) {
        sd_event_source_set_time(c->alert_timer, (uint64_t)((due.ns + 999) / 1000));
        sd_event_source_set_enabled(c->alert_timer, SD_EVENT_ONESHOT);
    }
}

void alarm_run(struct controller *c)
{
    if (c->alerting != NULL) {
        alerting_run(c->alerting, controller_mono(), controller_utc_ns(), FINDING_NO_TIME);
        set_timer(c);
    }
}

static int on_timer(sd_event_source *source, uint64_t at, void *context)
{
    alarm_run(context);
    return 0;
}

int alarm_open(struct controller *c)
{
    char *saved = NULL;
    size_t size = 0;
    int r = store_get(c->store, SAVED_NAME, &saved, &size);
    char *text = r == 0 ? strndup(saved, size) : NULL;
    free(saved);
    const char *own = c->config.alerts;
    const struct alerting_options options = {.path = own[0] != 0 ? own : ALERTING_CONFIG_DEFAULT,
                                             .must_be = own[0] != 0,
                                             .fleet = {.nic = on_nic,
                                                       .host = on_host,
                                                       .tenant = tenant_of,
                                                       .job = job_alarm_name,
                                                       .find = index_of,
                                                       .context = c},
                                             .saved = text,
                                             .brain = c->brain,
                                             .on_incident = on_incident,
                                             .on_reload = feed_open,
                                             .say = on_say,
                                             .context = c};
    r = alerting_new(&options, controller_mono(), controller_utc_ns(), &c->alerting);
    free(text);
    if (r < 0) {
        return r;
    }
    feed_open(c);
    r = sd_event_add_time(c->loop, &c->alert_timer, CLOCK_MONOTONIC, UINT64_MAX, 1, on_timer, c);
    if (r >= 0) {
        alarm_run(c);
    }
    return r < 0 ? r : 0;
}

void alarm_close(struct controller *c)
{
    sd_event_source_disable_unref(c->alert_timer);
    c->alert_timer = NULL;
    alerting_free(c->alerting);
    c->alerting = NULL;
    job_alarm_close(c);
}

void alarm_reload(struct controller *c)
{
    if (c->alerting != NULL) {
        (void)alerting_reload(c->alerting, controller_mono(), controller_utc_ns());
        alarm_run(c);
    }
}

void alarm_save(struct controller *c)
{
    struct json_writer j;
    if (c->alerting == NULL || c->store_broken || !alerting_changed(c->alerting)) {
        return;
    }
    json_writer_init(&j, SAVED_MAX);
    alerting_save(c->alerting, &j);
    const int r = document_save(c, SAVED_NAME, &j);
    if (r < 0) {
        controller_say(LOG_WARNING, "open incidents can't be kept: %s", strerror(-r));
    } else {
        controller_touch(c);
    }
}
