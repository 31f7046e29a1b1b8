/* report.c: puts this host's state and events into a Report. */
#include <errno.h>
#include <foliot.pb-c.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/ip.h"
#include "base/prng.h"
#include "core/fleet/delay_code.h"
#include "platform/message/message.h"
#include "platform/metrics/own.h"
#include "service/agent/answers.h"
#include "service/agent/uplink.h"

enum { ARENA_SIZE = 4 << 20, NUMBER_COUNT = 4, ROUTER_MAX = 1024 };

struct report_maker {
    uint64_t boot;
    uint32_t run;
    struct message_arena arena;  /* memory of one report */
    struct message_arena events; /* memory of the events that wait */
    Foliot__V1__Event *waiting[UPLINK_EVENT_MAX];
    size_t waiting_count;
    struct message_buffer encoded;
    uint64_t table_sent; /* generation of the table sent last; 0: none */
    bool table_wanted;
};

int report_maker_new(struct report_maker **ret_maker, uint64_t boot, uint32_t run)
{
    struct report_maker *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return -ENOMEM;
    }
    m->boot = boot;
    m->run = run;
    int r = message_arena_init(&m->arena, ARENA_SIZE);
    r = r < 0 ? r : message_arena_init(&m->events, 1 << 20);
    if (r < 0) {
        report_maker_free(m);
        return r;
    }
    *ret_maker = m;
    return 0;
}

void report_maker_free(struct report_maker *m)
{
    if (m != NULL) {
        message_arena_done(&m->arena);
        message_arena_done(&m->events);
        message_buffer_done(&m->encoded);
        free(m);
    }
}

void report_want_table(struct report_maker *m)
{
    m->table_wanted = true;
}

bool report_has_events(const struct report_maker *m)
{
    return m->waiting_count > 0;
}

/* ---- events ---- */

static char *copy_text(struct message_arena *arena, const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = message_arena_take(arena, size);
    if (copy != NULL) {
        memcpy(copy, text, size);
    }
    return copy != NULL ? copy : (char *)(uintptr_t)protobuf_c_empty_string;
}

/* NULL: too many events wait. Then a dropped event is visible only as a finding, at its next change. */
static Foliot__V1__Event *new_event(struct report_maker *m, uint32_t type, struct mono at,
                                    int64_t fleet_ns)
{
    Foliot__V1__Event *e =
        m->waiting_count < UPLINK_EVENT_MAX ? message_arena_take(&m->events, sizeof(*e)) : NULL;
    if (e != NULL) {
        foliot__v1__event__init(e);
        e->type = type;
        e->at_mono = at.ns;
        e->at_fleet = fleet_ns;
        m->waiting[m->waiting_count++] = e;
    }
    return e;
}

static int64_t fleet_or_0(const struct agent *a, struct mono at)
{
    int64_t ns = 0;
    return agent_fleet_ns(a, at, &ns) ? ns : 0;
}

static Foliot__V1__Place *make_place(struct report_maker *m, const struct agent *a,
                                     const struct place *p)
{
    Foliot__V1__Place *out =
        p->kind != PLACE_NONE ? message_arena_take(&m->events, sizeof(*out)) : NULL;
    if (out == NULL) {
        return NULL;
    }
    foliot__v1__place__init(out);
    out->kind = p->kind;
    if (p->kind == PLACE_HOST) {
        const char *name = agent_config_host_name(a->config, (struct host_id){p->number});
        out->host = copy_text(&m->events, name != NULL ? name : "");
    } else {
        out->number = p->number + 1; /* UINT32_MAX (not known) becomes 0 */
    }
    uint8_t *address =
        ip_is_none(p->address) ? NULL : message_arena_take(&m->events, sizeof(p->address));
    if (address != NULL) {
        memcpy(address, p->address, sizeof(p->address));
        out->address = (ProtobufCBinaryData){.data = address, .len = sizeof(p->address)};
    }
    return out;
}

static Foliot__V1__Element *make_element(struct report_maker *m, struct agent *a,
                                         const struct element *from)
{
    Foliot__V1__Element *e = message_arena_take(&m->events, sizeof(*e));
    if (e != NULL) {
        foliot__v1__element__init(e);
        e->kind = from->kind;
        e->direction = from->direction;
        e->a = make_place(m, a, &from->a);
        e->b = make_place(m, a, &from->b);
    }
    return e;
}

static void fill_choice(struct report_maker *m, struct agent *a, const struct element_choice *from,
                        Foliot__V1__Finding *out)
{
    Foliot__V1__Element **list =
        from->count > 0 ? message_arena_take(&m->events, from->count * sizeof(*list)) : NULL;
    for (uint32_t i = 0; list != NULL && i < from->count; i++) {
        list[out->n_one_of] = make_element(m, a, &from->one_of[i]);
        out->n_one_of += list[out->n_one_of] != NULL;
    }
    out->one_of = list;
    out->others = from->total > out->n_one_of;
}

/* Fills the suspect, also in words for older controllers. */
static void fill_suspect(struct report_maker *m, struct agent *a, const struct finding *f,
                         Foliot__V1__Finding *out)
{
    const struct finding_names names = agent_names(a);
    char text[512];
    fill_choice(m, a, &f->choice, out);
    if (f->suspect.kind == ELEMENT_UNKNOWN) {
        return;
    }
    out->element = make_element(m, a, &f->suspect);
    element_text(&f->suspect, &names, text, sizeof(text));
    out->suspect_kind = copy_text(&m->events, element_kind_word(f->suspect.kind));
    out->suspect = copy_text(&m->events, text);
}

static void fill_finding(struct report_maker *m, struct agent *a, const struct finding *f,
                         Foliot__V1__Finding *out)
{
    static const char *const others[] = {"", "fine", "lossy", "dead"};
    const char *from = agent_config_host_name(a->config, f->from_host),
               *to = agent_config_host_name(a->config, f->to_host),
               *advice = finding_advice_text(f->advice);
    char text[512];
    out->run = m->run;
    out->number = f->number;
    out->kind = copy_text(&m->events, finding_kind_word(f->kind));
    out->phase = f->phase;
    out->from_nic = f->from.index == NIC_NONE.index ? 0 : f->from.index + 1;
    out->to_nic = f->to.index == NIC_NONE.index ? 0 : f->to.index + 1;
    out->from_host = copy_text(&m->events, from != NULL ? from : "");
    out->to_host = copy_text(&m->events, to != NULL ? to : "");
    out->direction = f->direction;
    out->port = f->source_port;
    out->signature = f->signature;
    out->since_mono = f->since.ns;
    out->since_fleet = f->since_fleet_ns != FINDING_NO_TIME ? f->since_fleet_ns : 0;
    out->path = f->path;
    out->path_count = f->path_count;
    out->rules_out = f->rules_out;
    out->since_utc = f->since_utc_ns != FINDING_NO_TIME ? f->since_utc_ns : 0;
    out->ended_mono = f->phase == FINDING_CLOSED ? f->ended_ns : 0;
    out->length_error = f->phase == FINDING_CLOSED ? f->length_error_ns : 0;
    finding_what_text(f, text, sizeof(text));
    out->what = copy_text(&m->events, text);
    out->confident = f->suspect.kind != ELEMENT_UNKNOWN;
    fill_suspect(m, a, f, out);
    out->advice_number = f->advice;
    out->advice = copy_text(&m->events, advice != NULL ? advice : "");
    out->other_direction =
        copy_text(&m->events, f->other < ARRAY_COUNT(others) ? others[f->other] : "");
    int64_t *numbers = message_arena_take(&m->events, sizeof(f->numbers));
    if (numbers != NULL) {
        memcpy(numbers, f->numbers, sizeof(f->numbers));
        out->numbers = numbers;
        out->n_numbers = NUMBER_COUNT;
    }
}

void report_add_finding(struct report_maker *m, struct agent *a, const struct finding *f)
{
    const struct finding_names names = agent_names(a);
    char text[1024];
    Foliot__V1__Event *e =
        new_event(m, FOLIOT__V1__EVENT_TYPE__EVENT_FINDING, f->said, fleet_or_0(a, f->said));
    Foliot__V1__Finding *out = e != NULL ? message_arena_take(&m->events, sizeof(*out)) : NULL;
    if (out == NULL) {
        return;
    }
    foliot__v1__finding__init(out);
    fill_finding(m, a, f, out);
    e->finding = out;
    finding_text(f, &names, text, sizeof(text));
    e->text = copy_text(&m->events, text);
}

void report_add_link(struct report_maker *m, struct agent *a, const struct agent_event *l)
{
    Foliot__V1__Event *e = new_event(m, FOLIOT__V1__EVENT_TYPE__EVENT_LINK, l->at,
                                     l->fleet_ns != FINDING_NO_TIME ? l->fleet_ns : 0);
    if (e != NULL) {
        e->word = copy_text(&m->events, l->event);
        e->nic = a->config->peers[a->config->nics[l->nic].peer].nic.index;
        e->text = copy_text(&m->events, l->text);
    }
}

void report_add_job(struct report_maker *m, struct agent *a, const struct job_event *job)
{
    Foliot__V1__Event *e =
        new_event(m, FOLIOT__V1__EVENT_TYPE__EVENT_JOB, job->at, fleet_or_0(a, job->at));
    char text[512];
    if (e != NULL) {
        e->job = report_job_event(&m->events, a, job, text, sizeof(text));
        e->word = copy_text(&m->events, job_event_name(job->kind));
        e->text = copy_text(&m->events, text);
    }
}

void report_add_note(struct report_maker *m, struct agent *a, enum uplink_event_kind kind,
                     const char *text)
{
    const bool started = kind == UPLINK_STARTED;
    Foliot__V1__Event *e = new_event(m,
                                     started ? FOLIOT__V1__EVENT_TYPE__EVENT_AGENT_STARTED
                                             : FOLIOT__V1__EVENT_TYPE__EVENT_REPORTS_LOST,
                                     a->now, fleet_or_0(a, a->now));
    if (e == NULL) {
        return;
    }
    e->text = copy_text(&m->events, text);
    Foliot__V1__Finding *run = started ? message_arena_take(&m->events, sizeof(*run)) : NULL;
    if (run != NULL) { /* from now on, findings of this run are the valid ones */
        foliot__v1__finding__init(run);
        run->run = m->run;
        e->finding = run;
    }
}

/* ---- the rollup ---- */

static void fill_clock(struct agent *a, Foliot__V1__Clock *c)
{
    struct clock_report r = {0};
    struct clock_terms terms;
    const struct clock_reading reading = answer_reading(a);
    const uint32_t member = node_host_member(a->node);
    int64_t utc = 0;
    foliot__v1__clock__init(c);
    node_clock_page(a->node, &terms);
    answer_member_report(a, member != UINT32_MAX ? member : 0, &r);
    c->status = (uint32_t)reading.status;
    c->hard_ns = reading.hard_ns >= 0 ? (int64_t)reading.hard_ns : -1;
    c->statistical_ns = reading.statistical_ns >= 0 ? (int64_t)reading.statistical_ns : -1;
    c->timeline = r.timeline != CLOCK_TIMELINE_NONE ? r.timeline : 0;
    c->epoch = a->page.page.terms.epoch;
    c->edges_live = (uint32_t)r.edges_live;
    c->edges_chosen = (uint32_t)r.edges;
    c->utc_known = agent_utc_ns(a, a->now, &utc);
    if (reading.status != CLOCK_UNKNOWN) {
        c->offset_ns = reading.time.ns - time_source_wall_ns(a->source);
        c->rate_ppb = isfinite(terms.line.y) ? (int64_t)llround(terms.line.y * 1e9) : 0;
    }
    if (reading.status != CLOCK_SYNCED) {
        const char *why = answer_why(a, &r);
        c->why = (char *)(uintptr_t)(why != NULL ? why : "");
    }
}

static void fill_port(struct agent *a, uint32_t i, Foliot__V1__Port *p)
{
    const struct agent_nic *nic = &a->nics[i];
    const struct link_interface *l = link_monitor_get(a->links, nic->slot);
    struct link_report r;
    foliot__v1__port__init(p);
    node_link_get(a->node, i, a->now, &r);
    p->nic = a->config->peers[a->config->nics[i].peer].nic.index;
    p->state = agent_links_unread(a) ? (uint32_t)FOLIOT__V1__PORT_STATE__PORT_UNKNOWN
                                     : r.state; /* both enums have the same numbers */
    p->since_mono = nic->down_since.ns;
    p->carrier_downs = l->down_count;
    p->flaps_hour = r.flaps_hour;
    p->flaps_day = r.flaps_day;
    p->speed_mbps = l->speed_mbps;
    p->width = l->width;
    p->rx_bytes = l->rx_bytes;
    p->tx_bytes = l->tx_bytes;
    p->rx_errors = l->rx_errors;
    p->tx_errors = l->tx_errors;
    p->rx_drops = l->rx_drops;
    p->tx_drops = l->tx_drops;
    p->stamps = nic->endpoint == NULL ? 0 : agent_nic_stamps(a, i) == STAMP_HARDWARE ? 2 : 1;
    p->trouble = (char *)(uintptr_t)nic->trouble;
    p->name = (char *)(uintptr_t)l->name;
    const struct lldp *neighbour = agent_lldp_of(a, i);
    if (neighbour != NULL) {
        p->neighbour = (char *)(uintptr_t)neighbour->system;
        p->neighbour_port = (char *)(uintptr_t)neighbour->port;
    }
}

static int fill_ports(struct report_maker *m, struct agent *a, Foliot__V1__Report *report)
{
    Foliot__V1__Port **ports = message_arena_take(&m->arena, HOST_NIC_MAX * sizeof(*ports));
    if (ports == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        ports[i] = message_arena_take(&m->arena, sizeof(**ports));
        if (ports[i] == NULL) {
            return -ENOMEM;
        }
        fill_port(a, i, ports[i]);
    }
    report->ports = ports;
    report->n_ports = a->config->nic_count;
    return 0;
}

static void fill_cost(struct agent *a, uint64_t lost, uint64_t spool_bytes, Foliot__V1__Cost *c)
{
    struct node_counters n;
    foliot__v1__cost__init(c);
    node_counters_get(a->node, &n);
    c->cpu_ppm = a->cpu_ppm > 0 ? (uint32_t)a->cpu_ppm : 0;
    c->memory_bytes = own_memory_bytes();
    c->packets_sent = n.sent;
    c->packets_received = n.received;
    for (uint32_t i = 0; i < PROBE_ERROR_COUNT; i++) {
        c->packets_bad += a->bad_total[i];
    }
    c->late_ticks = n.late_ticks;
    c->reports_lost = lost;
    c->spool_bytes = spool_bytes;
    c->stamps_missing_ppm =
        n.stamped + n.stamps_missing > 0
            ? (uint32_t)(n.stamps_missing * 1000000 / (n.stamped + n.stamps_missing))
            : 0;
}

/* ---- paths ---- */

struct columns {
    uint32_t *local, *peer, *port, *loss, *state;
    uint64_t *signature;
    int32_t *p50, *p99;
    uint32_t *out_local, *out_peer, *out_port, *out_hops, *out_router;
    uint8_t (*routers)[16]; /* distinct routers so far; more than 1024 count as silent */
    uint32_t count, out_count, capacity, router_count, place_count;
    bool lossy, odd; /* lossy: any loss; odd: any state but ALIVE */
    uint64_t generation;
    int64_t bound_ns;
};

static int claim(struct report_maker *m, struct columns *c, uint32_t capacity)
{
    c->capacity = capacity;
    c->local = message_arena_take(&m->arena, capacity * sizeof(uint32_t));
    c->peer = message_arena_take(&m->arena, capacity * sizeof(uint32_t));
    c->port = message_arena_take(&m->arena, capacity * sizeof(uint32_t));
    c->loss = message_arena_take(&m->arena, capacity * sizeof(uint32_t));
    c->state = message_arena_take(&m->arena, capacity * sizeof(uint32_t));
    c->signature = message_arena_take(&m->arena, capacity * sizeof(uint64_t));
    c->p50 = message_arena_take(&m->arena, capacity * sizeof(int32_t));
    c->p99 = message_arena_take(&m->arena, capacity * sizeof(int32_t));
    uint32_t *out = message_arena_take(&m->arena, 4ull * capacity * sizeof(uint32_t));
    c->out_local = out;
    c->out_peer = out + capacity;
    c->out_port = out + 2ull * capacity;
    c->out_hops = out + 3ull * capacity;
    c->out_router = message_arena_take(&m->arena, PATH_HOP_MAX * capacity * sizeof(uint32_t));
    c->routers = message_arena_take(&m->arena, ROUTER_MAX * sizeof(*c->routers));
    return out == NULL || c->routers == NULL || c->out_router == NULL || c->p99 == NULL ||
                   c->p50 == NULL || c->signature == NULL || c->state == NULL || c->loss == NULL ||
                   c->port == NULL || c->peer == NULL || c->local == NULL
               ? -ENOMEM
               : 0;
}

static void add_path(struct columns *c, const struct node_edge *edge, const struct path_report *p)
{
    const uint32_t i = c->count++;
    c->local[i] = edge->local.index;
    c->peer[i] = edge->peer.index;
    c->port[i] = p->source_port;
    c->signature[i] = p->signature;
    c->p50[i] = p->owd_ns_p50 != INT64_MIN ? delay_encode(p->owd_ns_p50) : DELAY_CODE_NONE;
    c->p99[i] = p->owd_ns_p99 != INT64_MIN ? delay_encode(p->owd_ns_p99) : DELAY_CODE_NONE;
    c->loss[i] =
        p->sent_recent > 0 ? (uint32_t)((uint64_t)p->lost_recent * 1000000 / p->sent_recent) : 0;
    c->state[i] = p->state; /* both enums have the same numbers */
    c->lossy = c->lossy || c->loss[i] != 0;
    c->odd = c->odd || p->state != PATH_ALIVE;
    c->generation = hash_u64(c->generation, ((uint64_t)c->local[i] << 32) | c->peer[i]);
    c->generation = hash_u64(c->generation, c->port[i] ^ c->signature[i]);
    if (p->bound_ns != INT64_MIN && p->bound_ns > c->bound_ns) {
        c->bound_ns = p->bound_ns;
    }
}

/* Index of a router + 1; 0: the router does not answer. */
static uint32_t router_number(struct columns *c, const uint8_t router[16])
{
    static const uint8_t silent[16];
    uint32_t i = 0;
    if (memcmp(router, silent, sizeof(silent)) == 0) {
        return 0;
    }
    while (i < c->router_count && memcmp(c->routers[i], router, 16) != 0) {
        i++;
    }
    if (i == c->router_count && i < ROUTER_MAX) {
        memcpy(c->routers[c->router_count++], router, 16);
        for (uint32_t k = 0; k < 16; k++) {
            c->generation = hash_u64(c->generation, router[k]);
        }
    }
    return i < c->router_count ? i + 1 : 0;
}

/* For outgoing paths only the hops and the routers: no other host knows them. */
static void add_hops(struct agent *a, struct columns *c, uint32_t e, const struct node_edge *edge)
{
    uint8_t hops[MESH_HOP_MAX][16];
    struct path_report p;
    for (uint8_t k = 0; k < edge->path_count && c->out_count < c->capacity; k++) {
        const uint8_t count = node_path_hops(a->node, e, k, hops);
        if (count > 0 && node_path_get(a->node, e, k, DIRECTION_OUT, a->now, &p)) {
            const uint32_t i = c->out_count++;
            c->out_local[i] = edge->local.index;
            c->out_peer[i] = edge->peer.index;
            c->out_port[i] = p.source_port;
            c->out_hops[i] = count;
            c->generation =
                hash_u64(c->generation, ((uint64_t)edge->local.index << 32) | edge->peer.index);
            c->generation = hash_u64(c->generation, (uint64_t)p.source_port << 8 | count);
            for (uint8_t h = 0; h < count; h++) {
                const uint32_t router = router_number(c, hops[h]);
                c->out_router[c->place_count++] = router;
                c->generation = hash_u64(c->generation, router);
            }
        }
    }
}

/* Collects incoming paths (DIRECTION_IN). */
static void gather(struct agent *a, struct columns *c)
{
    for (uint32_t e = 0; e < node_edge_count(a->node); e++) {
        struct node_edge edge;
        struct path_report p;
        if (!node_edge_get(a->node, e, a->now, &edge)) {
            continue;
        }
        for (uint8_t k = 0; k < edge.peer_path_count && c->count < c->capacity; k++) {
            if (node_path_get(a->node, e, k, DIRECTION_IN, a->now, &p) && p.source_port != 0) {
                add_path(c, &edge, &p);
            }
        }
        add_hops(a, c, e, &edge);
    }
    c->generation |= 1;
}

static int fill_routers(struct report_maker *m, const struct agent *a, const struct columns *c,
                        Foliot__V1__PathTable *table)
{
    char **names = message_arena_take(&m->arena, (c->router_count + 1) * sizeof(*names));
    if (names == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < c->router_count; i++) {
        char text[INET6_ADDRSTRLEN];
        names[i] = copy_text(&m->arena, answer_router_name(a, c->routers[i], text) ? text : "");
    }
    table->n_router = c->router_count;
    table->router = names;
    table->n_out_router = c->place_count;
    table->out_router = c->out_router;
    return 0;
}

static int fill_paths(struct report_maker *m, struct agent *a, Foliot__V1__Report *report)
{
    struct columns c = {0};
    Foliot__V1__PathRollup *paths = message_arena_take(&m->arena, sizeof(*paths));
    Foliot__V1__PathTable *table = message_arena_take(&m->arena, sizeof(*table));
    const int r = claim(m, &c, node_edge_count(a->node) * EDGE_PATH_MAX + 1);
    if (r < 0 || paths == NULL || table == NULL) {
        return -ENOMEM;
    }
    gather(a, &c);
    foliot__v1__path_rollup__init(paths);
    paths->generation = c.generation;
    paths->n_owd_p50 = paths->n_owd_p99 = c.count;
    paths->owd_p50 = c.p50;
    paths->owd_p99 = c.p99;
    paths->n_loss_ppm = c.lossy ? c.count : 0;
    paths->loss_ppm = c.loss;
    paths->n_state = c.odd ? c.count : 0;
    paths->state = c.state;
    paths->bound_ns = c.bound_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)c.bound_ns;
    report->paths = paths;
    if (m->table_wanted || m->table_sent != c.generation) {
        foliot__v1__path_table__init(table);
        table->generation = c.generation;
        table->n_local = table->n_peer = table->n_port = table->n_signature = c.count;
        table->local = c.local;
        table->peer = c.peer;
        table->port = c.port;
        table->signature = c.signature;
        table->n_out_local = table->n_out_peer = table->n_out_port = table->n_out_hops =
            c.out_count;
        table->out_local = c.out_local;
        table->out_peer = c.out_peer;
        table->out_port = c.out_port;
        table->out_hops = c.out_hops;
        report->table = table;
        return fill_routers(m, a, &c, table);
    }
    return 0;
}

/* Parts of the watching that don't work. Troubles of NICs are reported with the NICs. */
static int fill_sensors(struct report_maker *m, struct agent *a, Foliot__V1__Report *report)
{
    char **words = message_arena_take(&m->arena, 2 * sizeof(*words));
    if (words == NULL) {
        return -ENOMEM;
    }
    if (!a->hops_allowed) {
        words[report->n_sensors_off++] = (char *)(uintptr_t)AGENT_HOPS_REFUSED;
    }
    if (agent_links_unread(a)) {
        words[report->n_sensors_off++] = (char *)(uintptr_t)AGENT_LINKS_UNREAD;
    }
    report->sensors_off = words;
    return 0;
}

int report_make(struct report_maker *m, struct agent *a, uint32_t covers_ms, uint64_t lost,
                uint64_t spool_bytes, struct message_buffer *ret)
{
    Foliot__V1__Report report = FOLIOT__V1__REPORT__INIT;
    Foliot__V1__Clock clock;
    Foliot__V1__Cost cost;
    int r = 0;
    message_arena_reset(&m->arena);
    report.boot = m->boot;
    report.at_mono = a->now.ns;
    report.at_fleet = fleet_or_0(a, a->now);
    report.covers_ms = covers_ms;
    report.events = m->waiting;
    report.n_events = m->waiting_count;
    r = fill_ports(m, a, &report);
    if (r == 0 && covers_ms > 0) {
        fill_clock(a, &clock);
        fill_cost(a, lost, spool_bytes, &cost);
        report.clock = &clock;
        report.cost = &cost;
        r = fill_sensors(m, a, &report);
        r = r < 0 ? r : fill_paths(m, a, &report);
        r = r < 0 ? r : report_fill_jobs(&m->arena, a, &report);
    }
    r = r < 0 ? r : message_encode(&report.base, &m->encoded);
    r = r < 0 ? r : message_pack(m->encoded.bytes, m->encoded.size, ret);
    if (r < 0) {
        return r;
    }
    m->waiting_count = 0;
    message_arena_reset(&m->events);
    if (report.table != NULL) {
        m->table_sent = report.table->generation;
        m->table_wanted = false;
    }
    return 0;
}

int report_make_audit(struct report_maker *m, struct agent *a, const struct report_audit *what,
                      struct message_buffer *ret)
{
    Foliot__V1__Report report = FOLIOT__V1__REPORT__INIT;
    report.boot = m->boot;
    report.at_mono = a->now.ns;
    report.at_fleet = fleet_or_0(a, a->now);
    report.sheet = what->sheet;
    report.matrix = what->matrix;
    report.perf = what->perf;
    int r = message_encode(&report.base, &m->encoded);
    r = r < 0 ? r : message_pack(m->encoded.bytes, m->encoded.size, ret);
    if (r == 0 && (m->encoded.size > MESSAGE_REPORT_UNPACKED || ret->size > MESSAGE_REPORT_MAX)) {
        r = -EMSGSIZE;
    }
    return r;
}
