/* matrix.c: this host's part in a matrix of all NICs (core/audit/matrix_part.h). The agent accepts or refuses the controller's
 * plan. The packets do not go through the node, like those of measure.c: they are sent and counted here. After the last round
 * each own NIC's row is sent to the controller.
 *
 * The agent's own limits (base/limits.h) apply to each plan, whoever asks. Beside a job the limit is a quarter. */
#include <errno.h>
#include <foliot.pb-c.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/endian.h"
#include "core/audit/matrix_part.h"
#include "service/agent/agent.h"

#define TOKEN_MARK  (1ULL << 62)      /* bit 63 marks tokens of measure.c */
#define LATE_NS     (300 * NS_PER_MS) /* how long to wait for packets of the last round */
#define PACKET_BITS 3

_Static_assert(MATRIX_TELLS < 1 << PACKET_BITS, "a packet's number fits beside its round");
_Static_assert(AUDIT_ROUNDS_MAX <= 1 << 20, "a round fits into a token");

struct agent_matrix {
    struct plan_hold plan; /* held: accepted, result not sent yet */
    uint8_t family;
    struct matrix_part part;
    uint32_t *nics; /* by place: NIC's number + 1; 0: no NIC */
    void *memory;
    uint32_t local[HOST_NIC_MAX]; /* own NIC, by seat */
    uint32_t seat[HOST_NIC_MAX];  /* seat, by own NIC; UINT32_MAX: none */
    bool clock_gone;              /* no clock since the last turn */
    struct mono until;            /* the matrix ends at this time, with or without a clock */
};

int agent_matrix_open(struct agent *a)
{
    a->matrix = calloc(1, sizeof(*a->matrix));
    return a->matrix == NULL ? -ENOMEM : 0;
}

static void drop(struct agent *a)
{
    struct agent_matrix *m = a->matrix;
    if (m->plan.held && m->part.plan.gap_ns < AGENT_ROUND_NS) {
        a->period_ns = AGENT_ROUND_NS;
    }
    free(m->nics);
    free(m->memory);
    m->nics = NULL;
    m->memory = NULL;
    m->plan.held = false;
}

void agent_matrix_close(struct agent *a)
{
    if (a->matrix != NULL) {
        free(a->matrix->nics);
        free(a->matrix->memory);
        free(a->matrix);
        a->matrix = NULL;
    }
}

uint64_t agent_matrix_held(const struct agent *a)
{
    return a->matrix->plan.name;
}

/* ---- the plan ---- */

static uint32_t own_number(const struct agent *a, uint32_t local)
{
    return a->config->peers[a->config->nics[local].peer].nic.index;
}

bool agent_job_runs(const struct agent *a)
{
    for (uint32_t i = 0; i < jobs_count(a->jobs); i++) {
        const struct job_process *p = jobs_get(a->jobs, i);
        if (p->known &&
            (p->state == JOB_RUNNING || p->state == JOB_IDLE || p->state == JOB_PARTED)) {
            return true;
        }
    }
    return false;
}

static double rate_of(const struct matrix_part *part)
{
    return (double)part->seat_count * part->plan.packets * 1e9 / (double)part->plan.round_ns;
}

static struct matrix_plan plan_of(const Foliot__V1__Matrix *w)
{
    return (struct matrix_plan){.hosts = w->hosts,
                                .rails = w->rails,
                                .packets = w->packets,
                                .begin_ns = (int64_t)w->begin_ns,
                                .round_ns = w->round_us * NS_PER_US,
                                .gap_ns = w->gap_us * NS_PER_US,
                                .seed = w->seed,
                                .rails_only = w->rails_only,
                                .dscp =
                                    (uint8_t)(w->dscp <= MATRIX_DSCP_MAX ? w->dscp : UINT8_MAX)};
}

/* Returns NULL, or why the plan is refused, in words. */
static const char *look_at(struct agent *a, const Foliot__V1__Matrix *w,
                           const struct matrix_plan *p, uint32_t places[HOST_NIC_MAX],
                           uint32_t *ret_count)
{
    uint8_t *seen = malloc((size_t)a->config->peer_count + 1);
    struct agent_plan_host h = {.members = NULL};
    const char *wrong = "it is out of memory";
    if (seen != NULL && agent_plan_host(a, &h) == 0) {
        wrong = matrix_offer_wrong(&(struct matrix_offer){.plan = *p,
                                                          .nics = w->nic,
                                                          .nic_count = w->n_nic,
                                                          .fleet_version = w->fleet_version},
                                   &h.host, seen, places, a->matrix->local, ret_count);
    }
    free(h.members);
    free(seen);
    return wrong;
}

static const char *begin(struct agent *a, const Foliot__V1__Matrix *w)
{
    struct agent_matrix *m = a->matrix;
    const struct matrix_plan p = plan_of(w);
    uint32_t places[HOST_NIC_MAX], count = 0;
    const char *wrong = look_at(a, w, &p, places, &count);
    if (wrong != NULL) {
        return wrong;
    }
    for (uint32_t i = 0; i < a->config->nic_count; i++) {
        m->seat[i] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < count; i++) {
        m->seat[m->local[i]] = i;
    }
    m->nics = calloc(w->n_nic, sizeof(*m->nics));
    m->memory = malloc((size_t)count * matrix_rounds(&p) * MATRIX_SEAT_BYTES);
    if (m->nics == NULL || m->memory == NULL) {
        return "it is out of memory";
    }
    memcpy(m->nics, w->nic, w->n_nic * sizeof(*m->nics));
    matrix_part_init(&m->part, &p, places, count, m->memory);
    m->part.holes = m->nics;
    m->family = (uint8_t)w->family;
    return rate_of(&m->part) > AUDIT_RATE_MAX ? "it is more than an agent does for anybody" : NULL;
}

static void refuse(struct agent *a, const char *why)
{
    struct agent_matrix *m = a->matrix;
    Foliot__V1__MatrixRow row = FOLIOT__V1__MATRIX_ROW__INIT;
    agent_say(LOG_WARNING, "a matrix of all NICs that the controller asks for is refused: %s", why);
    row.audit = m->plan.name;
    row.refused = (char *)(uintptr_t)why;
    const int r = agent_uplink_matrix(a, &row);
    if (r < 0) {
        agent_say(LOG_WARNING, "the controller can't be told of it: %s", strerror(-r));
    }
}

static int64_t answer_ns(const struct agent_matrix *m)
{
    return matrix_answer_ns(&m->part.plan, m->part.seats[0].nic / m->part.plan.rails);
}

void agent_matrix_take(struct agent *a, const Foliot__V1__Matrix *w)
{
    struct agent_matrix *m = a->matrix;
    int64_t now = 0;
    const struct plan_heard heard =
        plan_hear(&m->plan, w != NULL ? w->audit : 0, w != NULL && w->n_nic > 0, a->now);
    if (heard.ends) {
        agent_say(LOG_INFO, "the matrix of all NICs was ended by the controller");
        drop(a);
    }
    if (!heard.begins) {
        return;
    }
    const char *why = begin(a, w);
    if (why != NULL) {
        drop(a);
        refuse(a, why);
        return;
    }
    m->plan.held = true;
    m->clock_gone = false;
    agent_fleet_ns(a, a->now, &now);
    m->until = mono_add(a->now, span_ns(answer_ns(m) - now + NS_PER_S));
    if (m->part.plan.gap_ns < AGENT_ROUND_NS) {
        a->period_ns = m->part.plan.gap_ns;
    }
    agent_uplink_beat(a); /* tell the controller at once, so that it doesn't send the plan again */
}

/* ---- rounds ---- */

static void send_one(struct agent *a, const struct matrix_packet *p)
{
    struct agent_matrix *m = a->matrix;
    const uint32_t local = m->local[p->seat];
    const struct nic_id peer = {m->nics[p->other] - 1};
    const bool tells = p->packet == MATRIX_TELLS;
    const struct mesh_send send = {
        .token = TOKEN_MARK | (m->plan.name & 0xffff) << 40 | (uint64_t)p->seat << 32 |
                 (uint64_t)p->round << 8 | p->packet,
        .local = local,
        .peer = peer,
        .source_port = (uint16_t)(NODE_PORT_BASE_DEFAULT + p->port),
        .net_class = NODE_CLASS_JOB,
        .want_stamp = !tells,
        .probe = {.version = PROBE_VERSION_BEFORE,
                  .version_lowest = PROBE_VERSION_LOWEST,
                  .type = PROBE_ROUND,
                  .path = p->dscp, /* the mesh's path numbers are not used here */
                  .src = {own_number(a, local)},
                  .dst = peer,
                  .timeline = agent_timeline_of(a, local),
                  .anchor.nic = NIC_NONE,
                  .measure = {.run = (uint32_t)m->plan.name,
                              .packet = p->round << PACKET_BITS | p->packet,
                              .heard.ns = p->left_ns,
                              .bound_ns = p->left_ns != 0 ? p->bound_ns : PROBE_BOUND_NONE,
                              .count = p->earlier}}};
    agent_send_over(a, &send, m->family, p->dscp);
}

bool agent_matrix_on_transmit(struct agent *a, const struct node_transmit *t)
{
    struct agent_matrix *m = a->matrix;
    const uint32_t seat = (uint32_t)(t->token >> 32) & 0xff,
                   round = (uint32_t)(t->token >> 8) & 0xffffff;
    int64_t fleet = 0;
    uint32_t bound = 0;
    if ((t->token & TOKEN_MARK) == 0 || (t->token & TOKEN_MARK << 1) != 0) {
        return false;
    }
    if (!m->plan.held || (t->token >> 40 & 0xffff) != (m->plan.name & 0xffff)) {
        return true;
    }
    if ((uint8_t)t->token == MATRIX_TELLS) {
        return true;
    }
    if (t->outcome == TRANSMIT_NOT_SENT) {
        matrix_part_on_not_sent(&m->part, seat, round);
    } else if (t->outcome == TRANSMIT_STAMPED &&
               agent_fleet_of_stamp(a, t->local, t->tx, &fleet, &bound)) {
        matrix_part_on_stamp(&m->part, seat, round, (uint8_t)t->token, fleet, bound);
    }
    return true;
}

bool agent_matrix_on_packet(struct agent *a, const struct node_receive *r, uint8_t dscp)
{
    const struct probe *p = &r->probe;
    struct agent_matrix *m = a->matrix;
    if (p->type != PROBE_ROUND) {
        return false;
    }
    const uint32_t round = p->measure.packet >> PACKET_BITS;
    if (!m->plan.held || p->measure.run != (uint32_t)m->plan.name ||
        m->seat[r->local] == UINT32_MAX || p->dst.index != own_number(a, r->local) ||
        p->measure.count >= MATRIX_PACKETS_MAX) {
        return true;
    }
    const uint32_t seat = m->seat[r->local],
                   other = matrix_partner(&m->part.plan, round, m->part.seats[seat].nic);
    if (other == MATRIX_NONE || m->nics[other] != p->src.index + 1) {
        return true;
    }
    const bool same = p->timeline != 0 && p->timeline == agent_timeline_of(a, r->local);
    int64_t heard = 0;
    uint32_t bound = 0;
    if (r->stamps == STAMP_NONE || !agent_fleet_of_stamp(a, r->local, r->rx, &heard, &bound)) {
        heard = 0;
    }
    const struct matrix_packet packet = {.round = round,
                                         .packet = p->measure.packet & ((1 << PACKET_BITS) - 1),
                                         .dscp = p->path,
                                         .dscp_came = dscp,
                                         .earlier = (uint8_t)p->measure.count,
                                         .left_ns = same ? p->measure.heard.ns : 0,
                                         .bound_ns = p->measure.bound_ns,
                                         .seat = seat,
                                         .other = other};
    (void)matrix_part_on_packet(&m->part, &packet, heard, bound);
    return true;
}

/* ---- the end ---- */

static int send_row(struct agent *a, const struct matrix_seat *s)
{
    struct agent_matrix *m = a->matrix;
    const uint32_t rounds = m->part.rounds;
    uint8_t *delay = malloc((size_t)rounds * 2);
    Foliot__V1__MatrixRow row = FOLIOT__V1__MATRIX_ROW__INIT;
    if (delay == NULL) {
        return -ENOMEM;
    }
    for (uint32_t k = 0; k < rounds; k++) {
        le16_put(delay + (size_t)2 * k, (uint16_t)s->delay[k]);
    }
    row.audit = m->plan.name;
    row.nic = m->nics[s->nic] - 1;
    row.sent = (ProtobufCBinaryData){rounds, s->sent};
    row.heard = (ProtobufCBinaryData){rounds, s->heard};
    row.delay = (ProtobufCBinaryData){(size_t)rounds * 2, delay};
    row.bound_ns = matrix_seat_bound(s);
    const int r = agent_uplink_matrix(a, &row);
    free(delay);
    return r;
}

static void finish(struct agent *a)
{
    const struct agent_matrix *m = a->matrix;
    for (uint32_t i = 0; i < m->part.seat_count; i++) {
        const int r = send_row(a, &m->part.seats[i]);
        if (r < 0) {
            agent_say(LOG_WARNING, "a row of the matrix can't be sent: %s", strerror(-r));
        }
    }
    drop(a);
}

void agent_matrix_round(struct agent *a)
{
    struct agent_matrix *m = a->matrix;
    struct clock_terms terms;
    struct matrix_packet p;
    if (!m->plan.held) {
        return;
    }
    node_clock_page(a->node, &terms);
    const struct clock_reading now = clock_terms_read(&terms, (struct nic_time){a->now.ns});
    if (now.status == CLOCK_UNKNOWN && mono_before(a->now, m->until)) {
        m->clock_gone = true; /* the next turn marks the rounds that pass meanwhile */
        return;
    }
    if (now.status == CLOCK_UNKNOWN) {
        matrix_part_end(&m->part, MATRIX_CLOCK);
        finish(a);
        return;
    }
    if (m->clock_gone) {
        matrix_part_turn(&m->part, now.time.ns, MATRIX_CLOCK);
        m->clock_gone = false;
    }
    if (rate_of(&m->part) > AUDIT_RATE_BUSY_MAX && agent_job_runs(a)) {
        matrix_part_end(&m->part, MATRIX_BUSY);
    }
    matrix_part_turn(&m->part, now.time.ns,
                     now.status == CLOCK_SYNCED || now.status == CLOCK_HOLDOVER ? MATRIX_FINE
                                                                                : MATRIX_CLOCK);
    while (matrix_part_next(&m->part, &p)) {
        send_one(a, &p);
    }
    if (m->part.over && now.time.ns > answer_ns(m) + LATE_NS) {
        finish(a);
    }
}
