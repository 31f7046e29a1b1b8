/* matrix_part.c: a host's part in a matrix. */
#include "core/audit/matrix_part.h"

#include <string.h>

#include "core/fleet/delay_code.h"

#define COUNT(byte) MATRIX_COUNT(byte)

static const char *const whys[MATRIX_WHY_COUNT] = {
    [MATRIX_FINE] = "measured",    [MATRIX_SILENT] = "silent", [MATRIX_SAME_HOST] = "same-host",
    [MATRIX_ALONE] = "no-partner", [MATRIX_CLOCK] = "clock",   [MATRIX_LATE] = "late",
    [MATRIX_PORT] = "port",        [MATRIX_BUSY] = "busy",     [MATRIX_STOPPED] = "stopped",
    [MATRIX_REFUSED] = "refused",  [MATRIX_OLD] = "old-agent",
};

const char *matrix_why_name(enum matrix_why why)
{
    return why < MATRIX_WHY_COUNT ? whys[why] : "unknown";
}

/* ---- a plan as it was received ---- */

/* Each NIC may have only one place: with two, several hosts would send to it in a round. */
static const char *members_wrong(const struct matrix_offer *o, const struct plan_host *h,
                                 uint8_t *seen)
{
    memset(seen, 0, h->member_count);
    for (size_t place = 0; place < o->nic_count; place++) {
        const uint32_t at = o->nics[place] > 0 ? plan_find_member(h, o->nics[place] - 1) : 0;
        if (o->nics[place] == 0) {
            continue;
        }
        if (at == PLAN_NONE) {
            return "one of these NICs is not in its list of members, or not yet";
        }
        if (seen[at]) {
            return "it has a NIC in two places";
        }
        seen[at] = 1;
    }
    return NULL;
}

/* The host's own NICs and their places. All must be of one host of the grid. */
static const char *own_places(const struct matrix_offer *o, const struct plan_host *h,
                              uint32_t *ret_places, uint32_t *ret_own, uint32_t *ret_count)
{
    uint32_t count = 0;
    for (uint32_t place = 0; place < o->nic_count; place++) {
        for (uint32_t i = 0; i < h->own_count; i++) {
            if (o->nics[place] != h->own[i] + 1) {
                continue;
            }
            if (count > 0 && ret_places[0] / o->plan.rails != place / o->plan.rails) {
                return "it has NICs of this host as those of two hosts";
            }
            ret_own[count] = i;
            ret_places[count++] = place;
        }
    }
    *ret_count = count;
    return count > 0 ? NULL : "no NIC of this host is in it";
}

const char *matrix_offer_wrong(const struct matrix_offer *o, const struct plan_host *h,
                               uint8_t *seen, uint32_t ret_places[HOST_NIC_MAX],
                               uint32_t ret_own[HOST_NIC_MAX], uint32_t *ret_count)
{
    const char *wrong = matrix_plan_wrong(&o->plan);
    if (wrong != NULL) {
        return wrong;
    }
    if (o->nic_count != (size_t)o->plan.hosts * o->plan.rails) {
        return "it has another number of NICs than its hosts and rails make";
    }
    wrong = plan_wrong(h, o->fleet_version, o->plan.begin_ns);
    wrong = wrong != NULL ? wrong : members_wrong(o, h, seen);
    return wrong != NULL ? wrong : own_places(o, h, ret_places, ret_own, ret_count);
}

/* ---- rounds ---- */

void matrix_part_init(struct matrix_part *m, const struct matrix_plan *plan, const uint32_t *nics,
                      uint32_t count, void *memory)
{
    *m = (struct matrix_part){.plan = *plan, .seat_count = count, .rounds = matrix_rounds(plan)};
    matrix_plan_ready(&m->plan);
    uint8_t *bytes = memory;
    memset(bytes, 0, (size_t)count * m->rounds * MATRIX_SEAT_BYTES);
    for (uint32_t i = 0; i < count; i++) {
        struct matrix_seat *s = &m->seats[i];
        s->nic = nics[i];
        histogram_init(&s->bounds.head,
                       (struct histogram_shape){2, 29, sizeof(s->bounds.counters[0])});
        s->delay = (int16_t *)(void *)bytes; /* first, because they need even addresses */
        bytes += (size_t)m->rounds * 2;
        s->arrivals[0].round = s->arrivals[1].round = s->stamp_round = MATRIX_NONE;
    }
    for (uint32_t i = 0; i < count; i++) {
        m->seats[i].sent = bytes;
        m->seats[i].heard = bytes + m->rounds;
        bytes += (size_t)m->rounds * 2;
    }
}

static uint32_t host_of(const struct matrix_part *m, uint32_t nic)
{
    return nic / m->plan.rails;
}

/* In this round nothing is sent, and a missing packet means nothing. */
static void miss(struct matrix_part *m, uint32_t round, enum matrix_why why)
{
    for (uint32_t i = 0; i < m->seat_count; i++) {
        struct matrix_seat *s = &m->seats[i];
        s->sent[round] = (uint8_t)(why << 4);
        s->heard[round] = COUNT(s->heard[round]) > 0 ? s->heard[round] : (uint8_t)(why << 4);
    }
}

/* MATRIX_FINE: `other` exists. */
static enum matrix_why partner_why(const struct matrix_part *m, uint32_t nic, uint32_t other)
{
    return other == MATRIX_NONE || (m->holes != NULL && m->holes[other] == 0) ? MATRIX_ALONE
           : host_of(m, other) == host_of(m, nic)                             ? MATRIX_SAME_HOST
                                                                              : MATRIX_FINE;
}

/* Marks the NICs that have no partner in this round. */
static void begin_round(struct matrix_part *m, uint32_t round)
{
    m->sent = 0;
    for (uint32_t i = 0; i < m->seat_count; i++) {
        struct matrix_seat *s = &m->seats[i];
        const uint32_t other = matrix_partner(&m->plan, round, s->nic);
        const enum matrix_why why = partner_why(m, s->nic, other);
        if (why != MATRIX_FINE) {
            s->sent[round] = s->heard[round] = (uint8_t)(why << 4);
        }
    }
}

void matrix_part_end(struct matrix_part *m, enum matrix_why why)
{
    while (m->round < m->rounds) {
        miss(m, m->round++, why);
    }
    m->due = m->sent;
    m->over = true;
}

void matrix_part_turn(struct matrix_part *m, int64_t fleet_ns, enum matrix_why why)
{
    const struct matrix_plan *p = &m->plan;
    m->turn = 0;
    m->due = m->sent;
    if (m->over || fleet_ns < p->begin_ns) {
        return;
    }
    const int64_t since = fleet_ns - p->begin_ns, inside = since % p->round_ns;
    const int64_t now = since / p->round_ns;
    while (m->round < now && m->round < m->rounds) {
        miss(m, m->round++, why != MATRIX_FINE ? why : MATRIX_LATE);
    }
    if (now >= m->rounds) {
        m->over = true;
        return;
    }
    if (m->round == now) {
        m->round++;
        begin_round(m, (uint32_t)now);
    }
    m->due = m->sent;
    if (why != MATRIX_FINE && m->sent == 0) {
        miss(m, (uint32_t)now, why);
    }
    if (why == MATRIX_FINE && inside >= MATRIX_GUARD_NS && inside < p->round_ns - MATRIX_GUARD_NS) {
        const int64_t due = 1 + (inside - MATRIX_GUARD_NS) / p->gap_ns;
        m->due = (uint8_t)(due > p->packets ? p->packets : due);
    }
}

/* The next stamp that no packet has carried yet, and that no other packet will carry. */
static bool next_telling(struct matrix_part *m, struct matrix_packet *ret)
{
    for (uint32_t i = 0; i < m->seat_count; i++) {
        struct matrix_seat *s = &m->seats[i];
        const uint32_t round = s->stamp_round;
        if (round == MATRIX_NONE || s->told ||
            (round + 1 == m->round && !m->over && m->sent < m->plan.packets)) {
            continue;
        }
        s->told = true;
        *ret = (struct matrix_packet){.round = round,
                                      .packet = MATRIX_TELLS,
                                      .earlier = s->stamp_packet,
                                      .left_ns = s->stamp_ns,
                                      .bound_ns = s->stamp_bound_ns,
                                      .seat = i,
                                      .other = matrix_partner(&m->plan, round, s->nic)};
        return true;
    }
    return false;
}

bool matrix_part_next(struct matrix_part *m, struct matrix_packet *ret)
{
    if (next_telling(m, ret)) {
        return true;
    }
    while (m->sent < m->due) {
        const uint32_t round = m->round - 1;
        while (m->turn < m->seat_count) {
            struct matrix_seat *s = &m->seats[m->turn++];
            const uint32_t other = matrix_partner(&m->plan, round, s->nic);
            if (partner_why(m, s->nic, other) != MATRIX_FINE) {
                continue;
            }
            const bool known = s->stamp_round == round,
                       marked = matrix_is_marked(&m->plan, round, m->sent);
            *ret = (struct matrix_packet){.round = round,
                                          .packet = m->sent,
                                          .port = (uint8_t)matrix_port(&m->plan, round, m->sent),
                                          .dscp = marked ? m->plan.dscp : 0,
                                          .earlier = known ? s->stamp_packet : 0,
                                          .left_ns = known ? s->stamp_ns : 0,
                                          .bound_ns = known ? s->stamp_bound_ns : 0,
                                          .seat = m->turn - 1,
                                          .other = other};
            s->sent[round] = (uint8_t)((COUNT(s->sent[round]) + 1) | (marked ? MATRIX_MARK : 0));
            s->told = s->told || known;
            return true;
        }
        m->turn = 0;
        m->sent++;
    }
    return false;
}

void matrix_part_on_stamp(struct matrix_part *m, uint32_t seat, uint32_t round, uint8_t packet,
                          int64_t fleet_ns, uint32_t bound_ns)
{
    if (seat < m->seat_count && round < m->rounds && packet < m->plan.packets) {
        struct matrix_seat *s = &m->seats[seat];
        s->told = s->told && s->stamp_round == round;
        s->stamp_round = round;
        s->stamp_packet = packet;
        s->stamp_ns = fleet_ns;
        s->stamp_bound_ns = bound_ns;
    }
}

void matrix_part_on_not_sent(struct matrix_part *m, uint32_t seat, uint32_t round)
{
    if (seat < m->seat_count && round < m->rounds && COUNT(m->seats[seat].sent[round]) > 0) {
        uint8_t *sent = &m->seats[seat].sent[round];
        *sent = (uint8_t)(COUNT(*sent) - 1);
        *sent |= *sent == 0 ? MATRIX_PORT << 4 : 0;
    }
}

static struct matrix_arrivals *arrivals_of(struct matrix_seat *s, uint32_t round)
{
    struct matrix_arrivals *a = &s->arrivals[round & 1];
    if (a->round != MATRIX_NONE && a->round > round) { /* much too late */
        return NULL;
    }
    if (a->round != round) {
        *a = (struct matrix_arrivals){.round = round};
    }
    return a;
}

uint32_t matrix_seat_bound(const struct matrix_seat *s)
{
    const int64_t most = s->bounds.head.max, ns = histogram_quantile(&s->bounds.head, 0.75);

    if (ns < 8) { /* in steps; INT64_MIN: it has none */
        return ns < 0 ? 0 : (uint32_t)ns;
    }
    const int64_t top =
        ns | ((INT64_C(1) << (61 - __builtin_clzll((uint64_t)ns))) - 1); /* the end of its step */
    return (uint32_t)(top < most ? top : most);
}

static void note_delay(struct matrix_seat *s, uint32_t round, int64_t delay_ns, uint32_t bound_ns)
{
    const int32_t code = delay_encode(delay_ns);
    int16_t *least = &s->delay[round];
    *least = *least == DELAY_CODE_NONE || code < *least ? (int16_t)code : *least;
    histogram_add(&s->bounds.head, bound_ns);
}

/* A clock that is in step is not a round ahead. A host that was stopped reads packets of rounds that it missed. */
static bool is_ahead(const struct matrix_part *m, uint32_t round, int64_t heard_ns)
{
    return heard_ns != 0 ? heard_ns < m->plan.begin_ns + ((int64_t)round - 1) * m->plan.round_ns
                         : round > m->round + 1;
}

bool matrix_part_on_packet(struct matrix_part *m, const struct matrix_packet *p, int64_t heard_ns,
                           uint32_t bound_ns)
{
    if (p->seat >= m->seat_count || p->round >= m->rounds ||
        (p->packet >= m->plan.packets && p->packet != MATRIX_TELLS) ||
        p->earlier >= m->plan.packets ||
        matrix_partner(&m->plan, p->round, m->seats[p->seat].nic) != p->other ||
        is_ahead(m, p->round, heard_ns)) {
        return false;
    }
    struct matrix_seat *s = &m->seats[p->seat];
    struct matrix_arrivals *a = arrivals_of(s, p->round);
    if (a == NULL || (a->came & 1u << p->packet) != 0) {
        return false;
    }
    a->came |= (uint8_t)(1u << p->packet);
    if (p->packet != MATRIX_TELLS) {
        const bool kept = p->dscp != 0 && p->dscp_came == p->dscp;
        s->heard[p->round] =
            (uint8_t)((COUNT(s->heard[p->round]) + 1) | (s->heard[p->round] & MATRIX_MARK) |
                      (kept ? MATRIX_MARK : 0));
    }
    if (heard_ns != 0 && p->packet != MATRIX_TELLS) {
        a->timed |= (uint8_t)(1u << p->packet);
        a->at_ns[p->packet] = heard_ns;
        a->bound_ns[p->packet] = bound_ns;
    }
    if (p->left_ns != 0 && (a->timed & 1u << p->earlier) != 0) {
        const uint64_t bound = (uint64_t)p->bound_ns + a->bound_ns[p->earlier];
        note_delay(s, p->round, a->at_ns[p->earlier] - p->left_ns,
                   bound > UINT32_MAX ? UINT32_MAX : (uint32_t)bound);
    }
    return true;
}
