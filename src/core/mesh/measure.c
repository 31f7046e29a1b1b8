/* measure.c: measurements on demand: pacing, matching, quantiles. */
#include "core/mesh/measure.h"

#include <errno.h>
#include <string.h>

#include "base/prng.h"
#include "stats/sample.h"

#define CATCH_UP_NS (20 * NS_PER_MS) /* the time that a late caller may make up for */
#define BURST       64               /* answers at once */
#define OVER_NS                                                                                    \
    (30 * NS_PER_S) /* a path without packets for so long belongs to a measurement that is over */
#define TRIES 16    /* places of the table in which a path may be */

_Static_assert(MEASURE_PAIR_MAX *MEASURE_PORT_MAX <= MEASURE_PACKET_MAX, "each path has a packet");

/* ---- the asking side ---- */

int measure_start(struct measure *m, const struct measure_wish *wish, uint32_t nic_count,
                  struct mono now)
{
    if (wish->pair_count == 0 || wish->pair_count > MEASURE_PAIR_MAX || wish->ports == 0 ||
        wish->ports > MEASURE_PORT_MAX || wish->packets == 0 ||
        wish->packets > MEASURE_PATH_PACKET_MAX || wish->rate == 0 ||
        wish->rate > MEASURE_RATE_MAX ||
        wish->pair_count * wish->ports * wish->packets > MEASURE_PACKET_MAX) {
        return -EINVAL;
    }
    for (uint32_t i = 0; i < wish->pair_count; i++) {
        if (wish->pairs[i].local >= nic_count || wish->pairs[i].peer.index >= FLEET_NIC_MAX) {
            return -EINVAL;
        }
    }
    m->wish = *wish;
    memcpy(m->pairs, wish->pairs, wish->pair_count * sizeof(m->pairs[0]));
    m->wish.pairs = m->pairs;
    m->path_count = wish->pair_count * wish->ports;
    m->packet_count = m->path_count * wish->packets;
    ASSERT(m->packet_count <= MEASURE_PACKET_MAX && m->path_count <= m->packet_count);
    m->sent = m->answered = 0;
    m->next = m->last = now;
    m->bound_ns = MEASURE_BOUND_NONE;
    memset(m->packets, 0, m->packet_count * sizeof(m->packets[0]));
    return 0;
}

bool measure_next_send(struct measure *m, struct mono now, struct measure_send *ret_send)
{
    if (m->sent == m->packet_count || mono_before(now, m->next)) {
        return false;
    }
    const uint32_t path = m->sent % m->path_count;
    *ret_send = (struct measure_send){
        .packet = m->sent++, .pair = m->pairs[path / m->wish.ports], .port = path % m->wish.ports};
    if (mono_sub(now, m->next).ns > CATCH_UP_NS) {
        m->next = mono_add(now, span_ns(-CATCH_UP_NS));
    }
    m->next = mono_add(m->next, span_ns(NS_PER_S / m->wish.rate));
    m->last = now;
    return true;
}

static void note_bound(struct measure *m, uint32_t bound_ns)
{
    if (m->bound_ns == MEASURE_BOUND_NONE || bound_ns > m->bound_ns) {
        m->bound_ns = bound_ns;
    }
}

void measure_on_stamp(struct measure *m, uint32_t packet, int64_t fleet_ns, uint32_t bound_ns)
{
    if (packet >= m->sent) {
        return;
    }
    m->packets[packet].sent_ns = fleet_ns;
    m->packets[packet].stamped = 1;
    note_bound(m, bound_ns);
}

void measure_on_not_sent(struct measure *m, uint32_t packet)
{
    if (packet < m->sent && !m->packets[packet].answered) {
        m->packets[packet].not_sent = 1;
    }
}

bool measure_on_answer(struct measure *m, const struct measure_answer *answer)
{
    if (answer->run != m->wish.run || answer->packet >= m->sent) {
        return false;
    }
    const struct measure_pair *pair = &m->pairs[answer->packet % m->path_count / m->wish.ports];
    struct measure_packet *p = &m->packets[answer->packet];
    if (p->answered || p->not_sent || pair->local != answer->local ||
        pair->peer.index != answer->peer.index) {
        return false;
    }
    p->answered = 1;
    p->count = answer->count;
    p->heard = answer->bound_ns != MEASURE_BOUND_NONE;
    p->heard_ns = answer->heard_ns;
    if (p->heard) {
        note_bound(m, answer->bound_ns);
    }
    m->answered++;
    ASSERT(m->answered <= m->sent && m->sent <= m->packet_count);
    return true;
}

bool measure_is_done(const struct measure *m, struct mono now)
{
    return m->sent == m->packet_count &&
           (m->answered == m->packet_count || mono_sub(now, m->last).ns >= MEASURE_LATE_NS);
}

void measure_path_get(const struct measure *m, uint32_t path, struct measure_path *ret_path)
{
    int64_t delays[MEASURE_PATH_PACKET_MAX];
    uint32_t left = 0; /* packets of the path that left so far */
    *ret_path = (struct measure_path){.lost = -1};
    for (uint32_t i = path; i < m->sent; i += m->path_count) {
        const struct measure_packet *p = &m->packets[i];
        left += !p->not_sent;
        if (!p->answered) {
            continue;
        }
        ret_path->answered++;
        if (p->count > 0) {
            ret_path->lost = p->count < left ? (int32_t)(left - p->count) : 0;
        }
        if (p->stamped && p->heard) {
            sample_insert_int(delays, ret_path->timed++, p->heard_ns - p->sent_ns);
        }
    }
    ret_path->sent = left;
    ASSERT(ret_path->timed <= ret_path->answered && ret_path->answered <= left);
    if (ret_path->timed > 0) {
        ret_path->owd_ns_min = delays[0];
        ret_path->owd_ns_p50 = sample_quantile_int(delays, ret_path->timed, 0.5);
        ret_path->owd_ns_p99 = sample_quantile_int(delays, ret_path->timed, 0.99);
    }
}

/* ---- the answering side ---- */

void measure_heard_init(struct measure_heard *h, struct mono now)
{
    memset(h, 0, sizeof(*h));
    h->allowance = BURST;
    h->refilled = now;
}

/* The place where the path is counted; NULL: none. */
static struct measure_heard_path *find(struct measure_heard *h, struct mono now,
                                       const struct measure_query *q)
{
    const uint64_t place =
        hash_u64(hash_u64(q->src.index, q->dst.index), (uint64_t)q->run << 16 | q->port);
    struct measure_heard_path *free = NULL;
    for (uint32_t i = 0; i < TRIES; i++) {
        struct measure_heard_path *p = &h->paths[(place + i) % MEASURE_HEARD_MAX];
        if (p->count > 0 && p->run == q->run && p->src == q->src.index && p->dst == q->dst.index &&
            p->port == q->port) {
            return p;
        }
        if (free == NULL && (p->count == 0 || mono_sub(now, p->heard).ns > OVER_NS)) {
            free = p;
        }
    }
    if (free != NULL) {
        *free = (struct measure_heard_path){q->run, q->src.index, q->dst.index, q->port, 0, now};
    }
    return free;
}

bool measure_heard_count(struct measure_heard *h, struct mono now,
                         const struct measure_query *query, uint32_t *ret_count)
{
    const int64_t passed = mono_sub(now, h->refilled).ns;
    struct measure_heard_path *p = find(h, now, query);
    *ret_count = 0;
    if (p != NULL) {
        p->heard = now;
        *ret_count = ++p->count;
    }
    h->allowance += passed > 0 ? (double)passed * 1e-9 * MEASURE_ANSWER_RATE_MAX : 0;
    h->allowance = h->allowance > BURST ? BURST : h->allowance;
    h->refilled = now;
    if (h->allowance < 1) {
        return false;
    }
    h->allowance -= 1;
    return true;
}
