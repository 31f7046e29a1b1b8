/* measure.c: measurements on demand. The controller asks for pairs of NICs. This host probes them beside its other work, and
 * answers probes of other hosts. The agent's own limits (base/limits.h) apply, whoever asks.
 *
 * These packets do not go through the node: they change no clock, and no path's state. */
#include <errno.h>
#include <foliot.pb-c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "core/fleet/delay_code.h"
#include "core/mesh/measure.h"
#include "service/agent/agent.h"

#define TOKEN_MARK (1ULL << 63) /* the node's own tokens count from 1 up */
#define PATH_MAX_  (MEASURE_PAIR_MAX * MEASURE_PORT_MAX)

struct measure_columns { /* the arrays that Measured points to */
    uint32_t sent[PATH_MAX_], answered[PATH_MAX_];
    int32_t lost[PATH_MAX_], p50[PATH_MAX_], p99[PATH_MAX_];
};

struct agent_measure {
    struct measure_heard *heard;     /* allocated with the first question */
    struct measure *asked;           /* allocated while there is a request */
    struct measure_columns *columns; /* the same */
    uint32_t run;                    /* number of the request; 0: none */
    enum _Foliot__V1__MeasureState state;
    char refused[120];
    Foliot__V1__Measured result;
};

int agent_measure_open(struct agent *a)
{
    a->measure = calloc(1, sizeof(*a->measure));
    return a->measure == NULL ? -ENOMEM : 0;
}

static void forget(struct agent_measure *m)
{
    free(m->asked);
    free(m->columns);
    m->asked = NULL;
    m->columns = NULL;
    m->run = 0;
    m->refused[0] = 0;
    m->state = FOLIOT__V1__MEASURE_STATE__MEASURE_NONE;
}

void agent_measure_close(struct agent *a)
{
    if (a->measure != NULL) {
        forget(a->measure);
        free(a->measure->heard);
        free(a->measure);
        a->measure = NULL;
    }
}

bool agent_fleet_of_stamp(const struct agent *a, uint32_t local, struct nic_time stamp,
                          int64_t *ret_ns, uint32_t *ret_bound_ns)
{
    const struct clock *clock = node_member_clock(a->node, agent_member_of_nic(a, local));
    struct clock_terms terms;
    if (clock == NULL) {
        return false;
    }
    clock_terms(clock, &terms);
    const struct clock_reading reading = clock_terms_read(&terms, stamp);
    if (reading.status == CLOCK_UNKNOWN || !(reading.statistical_ns < 1e9)) {
        return false;
    }
    *ret_ns = clock_stamp(clock, stamp).ns; /* computed as for the mesh's own delays */
    *ret_bound_ns = reading.statistical_ns > 0 ? (uint32_t)reading.statistical_ns : 0;
    return true;
}

uint64_t agent_timeline_of(const struct agent *a, uint32_t local)
{
    const struct clock *clock = node_member_clock(a->node, agent_member_of_nic(a, local));
    struct clock_terms terms;
    if (clock == NULL) {
        return 0;
    }
    clock_terms(clock, &terms);
    return terms.timeline;
}

/* ---- asking ---- */

static bool own_nic(const struct agent *a, uint32_t id, uint32_t *ret_local)
{
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        if (a->config->peers[a->config->nics[i].peer].nic.index == id) {
            *ret_local = i;
            return true;
        }
    }
    return false;
}

/* Returns NULL, or why the request is refused, in words. */
static const char *start(struct agent *a, const Foliot__V1__Measure *wish)
{
    struct agent_measure *m = a->measure;
    struct measure_pair pairs[MEASURE_PAIR_MAX];
    uint32_t unused = 0;
    if (wish->n_local != wish->n_peer || wish->n_local > MEASURE_PAIR_MAX) {
        return "too many pairs at once";
    }
    for (size_t i = 0; i < wish->n_local; i++) {
        const struct nic_id peer = {wish->peer[i]};
        uint32_t index = 0;
        if (!own_nic(a, wish->local[i], &pairs[i].local) ||
            !agent_config_find(a->config, peer, &index) || own_nic(a, peer.index, &unused)) {
            return "one of these NICs is not in its list of members, or not yet";
        }
        pairs[i].peer = peer;
    }
    const struct measure_wish w = {.run = wish->run,
                                   .pair_count = (uint32_t)wish->n_local,
                                   .ports = wish->ports,
                                   .packets = wish->packets,
                                   .rate = wish->rate,
                                   .pairs = pairs};
    m->asked = calloc(1, sizeof(*m->asked));
    m->columns = calloc(1, sizeof(*m->columns));
    if (m->asked == NULL || m->columns == NULL) {
        return "it is out of memory";
    }
    return measure_start(m->asked, &w, a->config->nic_count, a->now) < 0
               ? "it is more than an agent does for anybody"
               : NULL;
}

void agent_measure_take(struct agent *a, const Foliot__V1__Measure *wish)
{
    struct agent_measure *m = a->measure;
    if (wish == NULL || wish->run == 0) {
        forget(m);
        return;
    }
    if (wish->run == m->run) {
        return;
    }
    forget(m);
    const char *why = start(a, wish);
    m->run = wish->run;
    m->state = why == NULL ? FOLIOT__V1__MEASURE_STATE__MEASURE_RUNNING
                           : FOLIOT__V1__MEASURE_STATE__MEASURE_REFUSED;
    if (why != NULL) {
        snprintf(m->refused, sizeof(m->refused), "%s", why);
        agent_say(LOG_WARNING, "a measurement that the controller asks for is refused: %s", why);
        agent_uplink_beat(a);
    }
}

static void send_one(struct agent *a, const struct measure_send *s)
{
    const struct agent_measure *m = a->measure;
    const struct mesh_send send = {
        .token = TOKEN_MARK | (uint64_t)(m->run & INT32_MAX) << 32 | s->packet,
        .local = s->pair.local,
        .peer = s->pair.peer,
        .source_port = (uint16_t)(NODE_PORT_BASE_DEFAULT + s->port),
        .net_class = NODE_CLASS_JOB,
        .want_stamp = 1,
        .probe = {.version = PROBE_VERSION_BEFORE,
                  .version_lowest = PROBE_VERSION_LOWEST,
                  .type = PROBE_MEASURE,
                  .src = a->config->peers[a->config->nics[s->pair.local].peer].nic,
                  .dst = s->pair.peer,
                  .path = (uint8_t)s->port,
                  .seq = s->packet,
                  .anchor.nic = NIC_NONE,
                  .measure = {.run = m->run, .packet = s->packet, .bound_ns = PROBE_BOUND_NONE}}};
    agent_send(a, &send);
}

void agent_measure_send(struct agent *a)
{
    struct agent_measure *m = a->measure;
    struct measure_send s;
    if (m->state != FOLIOT__V1__MEASURE_STATE__MEASURE_RUNNING) {
        return;
    }
    while (measure_next_send(m->asked, a->now, &s)) {
        send_one(a, &s);
    }
    if (measure_is_done(m->asked, a->now)) {
        m->state = FOLIOT__V1__MEASURE_STATE__MEASURE_DONE;
        agent_uplink_beat(a);
    }
}

bool agent_measure_on_transmit(struct agent *a, const struct node_transmit *t)
{
    const struct agent_measure *m = a->measure;
    int64_t fleet = 0;
    uint32_t bound = 0;
    if ((t->token & TOKEN_MARK) == 0) {
        return false;
    }
    if (m->asked == NULL || (t->token & ~TOKEN_MARK) >> 32 != (m->run & INT32_MAX)) {
        return true; /* an answer, or a packet of an earlier request */
    }
    if (t->outcome == TRANSMIT_NOT_SENT) {
        measure_on_not_sent(m->asked, (uint32_t)t->token);
    } else if (t->outcome == TRANSMIT_STAMPED &&
               agent_fleet_of_stamp(a, t->local, t->tx, &fleet, &bound)) {
        measure_on_stamp(m->asked, (uint32_t)t->token, fleet, bound);
    }
    return true;
}

/* ---- answering ---- */

static void answer(struct agent *a, const struct node_receive *r)
{
    struct agent_measure *m = a->measure;
    const struct measure_query q = {r->probe.measure.run, r->probe.src, r->probe.dst,
                                    r->source_port};
    struct probe_measure reply = {.run = q.run, .packet = r->probe.measure.packet};
    uint32_t index = 0;
    if (!agent_config_find(a->config, r->probe.src, &index)) {
        /* no member of the fleet: no answer */
        return;
    }
    if (m->heard == NULL && (m->heard = calloc(1, sizeof(*m->heard))) != NULL) {
        measure_heard_init(m->heard, a->now);
    }
    if (m->heard == NULL || !measure_heard_count(m->heard, a->now, &q, &reply.count)) {
        return;
    }
    if (r->stamps == STAMP_NONE ||
        !agent_fleet_of_stamp(a, r->local, r->rx, &reply.heard.ns, &reply.bound_ns)) {
        reply.heard.ns = 0;
        reply.bound_ns = PROBE_BOUND_NONE;
    }
    const uint16_t port = (uint16_t)(r->source_port - NODE_PORT_BASE_DEFAULT);
    const struct mesh_send send = {.token = TOKEN_MARK, /* the stamp of this packet is not needed */
                                   .local = r->local,
                                   .peer = r->probe.src,
                                   .source_port =
                                       (uint16_t)(NODE_PORT_BASE_DEFAULT + port % MEASURE_PORT_MAX),
                                   .net_class = NODE_CLASS_JOB,
                                   .probe = {.version = PROBE_VERSION_BEFORE,
                                             .version_lowest = PROBE_VERSION_LOWEST,
                                             .type = PROBE_MEASURED,
                                             .src = r->probe.dst,
                                             .dst = r->probe.src,
                                             .path = r->probe.path,
                                             .timeline = agent_timeline_of(a, r->local),
                                             .anchor.nic = NIC_NONE,
                                             .measure = reply}};
    agent_send(a, &send);
}

bool agent_measure_on_packet(struct agent *a, const struct node_receive *r)
{
    const struct probe *p = &r->probe;
    const struct agent_measure *m = a->measure;
    if (p->type != PROBE_MEASURE && p->type != PROBE_MEASURED) {
        return false;
    }
    if (p->dst.index != a->config->peers[a->config->nics[r->local].peer].nic.index) {
        return true; /* not for this NIC: a copied packet */
    }
    if (p->type == PROBE_MEASURE) {
        answer(a, r);
    } else if (m->asked != NULL) {
        const bool same = p->timeline != 0 && p->timeline == agent_timeline_of(a, r->local);
        const struct measure_answer answered = {.run = p->measure.run,
                                                .packet = p->measure.packet,
                                                .local = r->local,
                                                .peer = p->src,
                                                .heard_ns = p->measure.heard.ns,
                                                .bound_ns =
                                                    same ? p->measure.bound_ns : PROBE_BOUND_NONE,
                                                .count = p->measure.count};
        (void)measure_on_answer(m->asked, &answered);
    }
    return true;
}

/* ---- telling ---- */

static int32_t code_of(const struct measure_path *p, int64_t ns)
{
    return p->timed > 0 ? delay_encode(ns) : DELAY_CODE_NONE;
}

static void fill_columns(struct agent_measure *m)
{
    struct measure_columns *c = m->columns;
    Foliot__V1__Measured *r = &m->result;
    const uint32_t count = m->asked->path_count;
    for (uint32_t i = 0; i < count; i++) {
        struct measure_path p;
        measure_path_get(m->asked, i, &p);
        c->sent[i] = p.sent;
        c->answered[i] = p.answered;
        c->lost[i] = p.lost;
        c->p50[i] = code_of(&p, p.owd_ns_p50);
        c->p99[i] = code_of(&p, p.owd_ns_p99);
    }
    r->port = NODE_PORT_BASE_DEFAULT;
    r->bound_ns = m->asked->bound_ns != MEASURE_BOUND_NONE ? m->asked->bound_ns : 0;
    r->n_sent = r->n_answered = r->n_lost = r->n_owd_p50 = r->n_owd_p99 = count;
    r->sent = c->sent;
    r->answered = c->answered;
    r->lost = c->lost;
    r->owd_p50 = c->p50;
    r->owd_p99 = c->p99;
}

Foliot__V1__Measured *agent_measure_result(struct agent *a)
{
    struct agent_measure *m = a->measure;
    if (m->run == 0) {
        return NULL;
    }
    foliot__v1__measured__init(&m->result);
    m->result.run = m->run;
    m->result.state = m->state;
    m->result.refused = m->refused;
    m->result.packets_sent = m->asked != NULL ? m->asked->sent : 0;
    if (m->state == FOLIOT__V1__MEASURE_STATE__MEASURE_DONE) {
        fill_columns(m);
    }
    return &m->result;
}
