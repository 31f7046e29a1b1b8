/* port_probe.c: see port_probe.h. */
#include "core/mesh/port_probe.h"

#include <string.h>

#define EACH_NS     (100 * NS_PER_MS)
#define LOST_NS     NS_PER_S
#define FORGET_NS   (10 * NS_PER_S)
#define FRESH_NS    (5 * NS_PER_S) /* an older reference is not comparable */
#define MARGIN_NS   (500 * NS_PER_US)
#define RUN         3
#define RUN_LOST    6  /* packets are lost by chance, too */
#define ANSWERS_A_S 20 /* of a class, for one peer: twice the rate of its questions */

void port_probe_init(struct port_probe *p, uint64_t seed, uint32_t key, bool job, struct mono now)
{
    *p = (struct port_probe){.key = key, .job = job, .next = now};
    prng_init(&p->random, seed);
    p->exchange = (uint32_t)prng_u64(&p->random);
}

/* ---- peers ---- */

/* PORT_PROBE_PEERS: unknown. */
static uint32_t index_of(const struct port_probe *p, struct nic_id nic)
{
    uint32_t i = 0;

    while (i < PORT_PROBE_PEERS && (!p->peers[i].used || !nic_id_equal(p->peers[i].nic, nic))) {
        i++;
    }
    return i;
}

const struct port_peer *port_probe_find(const struct port_probe *p, struct nic_id nic)
{
    const uint32_t i = index_of(p, nic);

    return i < PORT_PROBE_PEERS ? &p->peers[i] : NULL;
}

static void begin(struct port_peer *peer, struct nic_id nic, const struct probe_port *at)
{
    *peer = (struct port_peer){.used = true, .nic = nic, .at = *at, .herald_ns = PORT_HERALD_NS};
    peer->ways[0].at = peer->ways[1].at = MONO_NEVER;
}

static bool same_port(const struct probe_port *a, const struct probe_port *b)
{
    return a->qp == b->qp && a->key == b->key && a->lid == b->lid && a->global == b->global &&
           a->stamps == b->stamps && memcmp(a->gid, b->gid, sizeof(a->gid)) == 0;
}

static void end_waits(struct port_probe *p, uint32_t peer)
{
    for (uint32_t i = 0; i < PORT_PROBE_WAITS; i++) {
        p->waits[i].used = p->waits[i].used && p->waits[i].peer != peer;
    }
}

void port_probe_on_port(struct port_probe *p, struct mono now, struct nic_id nic,
                        const struct probe_port *at)
{
    uint32_t i = index_of(p, nic);

    if (i == PORT_PROBE_PEERS) { /* it gets a place */
        for (i = 0; i < PORT_PROBE_PEERS && p->peers[i].used; i++) {
        }
    }
    if (i == PORT_PROBE_PEERS) {
        return; /* more peers than a mesh has */
    }
    struct port_peer *peer = &p->peers[i];
    if (!peer->used) {
        begin(peer, nic, at);
    } else if (!same_port(&peer->at, at)) {
        const struct port_peer was = *peer;
        end_waits(p, i);
        begin(peer, nic, at);
        peer->asked = was.asked;
        peer->second = was.second; /* a restarted peer has no more answers in this second */
        memcpy(peer->answers, was.answers, sizeof(peer->answers));
    }
    peer->told = now;
}

/* Removes silent peers, so that others are asked instead. */
static void choose(struct port_probe *p, struct mono now)
{
    uint32_t asked = 0;

    for (uint32_t i = 0; i < PORT_PROBE_PEERS; i++) {
        struct port_peer *peer = &p->peers[i];
        if (peer->used && mono_sub(now, peer->told).ns > FORGET_NS) {
            end_waits(p, i);
            peer->used = false;
        }
        asked += peer->used && peer->asked;
    }
    for (uint32_t i = 0; i < PORT_PROBE_PEERS && asked < PORT_PROBE_ASKED; i++) {
        if (p->peers[i].used && !p->peers[i].asked) {
            p->peers[i].asked = true;
            asked++;
        }
    }
}

void port_probe_job(struct port_probe *p, bool job)
{
    p->job = job;
    for (uint32_t i = 0; i < PORT_PROBE_PEERS; i++) {
        struct port_peer *peer = &p->peers[i];
        peer->slow = peer->gone = peer->missed = false;
        peer->slow_run = peer->lost_run = peer->even_run = 0;
        peer->ways[PROBE_WAY_JOB] = (struct port_way){.at = MONO_NEVER};
    }
    for (uint32_t i = 0; i < PORT_PROBE_WAITS; i++) {
        p->waits[i].used = p->waits[i].used && p->waits[i].way != PROBE_WAY_JOB;
    }
}

bool port_probe_is_between(const struct port_probe *p, struct nic_id from,
                           const struct probe_ud *ud)
{
    const struct port_peer *peer = port_probe_find(p, from);

    return peer != NULL && ud->from_key == peer->at.key && ud->to_key == p->key;
}

bool port_probe_is_new(const struct port_probe *p, struct nic_id from, const struct probe_ud *ud)
{
    const struct port_peer *peer = port_probe_find(p, from);

    return peer != NULL && ud->way <= PROBE_WAY_JOB &&
           (!peer->questioned[ud->way] || (int32_t)(ud->exchange - peer->question[ud->way]) > 0);
}

bool port_probe_may_answer(struct port_probe *p, struct mono now, struct nic_id from,
                           const struct probe_ud *ud)
{
    if (!port_probe_is_new(p, from, ud)) {
        return false;
    }
    struct port_peer *peer = &p->peers[index_of(p, from)];
    const int64_t past_ns = mono_sub(now, peer->second).ns;
    if (past_ns >= NS_PER_S || past_ns < 0) {
        peer->second = now;
        peer->answers[0] = peer->answers[1] = 0;
    }
    peer->questioned[ud->way] = true;
    peer->question[ud->way] = ud->exchange;
    return peer->answers[ud->way]++ < ANSWERS_A_S;
}

/* ---- the slower class ---- */

enum seen { SEEN_EVEN, SEEN_SLOW, SEEN_LOST };

static void judge(struct port_peer *peer, enum seen seen)
{
    uint8_t *const run = seen == SEEN_EVEN   ? &peer->even_run
                         : seen == SEEN_SLOW ? &peer->slow_run
                                             : &peer->lost_run;
    const uint8_t most = seen == SEEN_LOST ? RUN_LOST : RUN;
    const uint8_t count = (uint8_t)(*run + (*run < most));

    peer->even_run = peer->slow_run = peer->lost_run = 0;
    *run = count;
    if (count == most) {
        peer->slow = seen == SEEN_SLOW;
        peer->gone = seen == SEEN_LOST;
    }
}

static const struct port_delay *newest(const struct port_way *w, enum port_direction direction)
{
    return &w->delays[direction][(w->count - 1) % PORT_PROBE_KEPT];
}

static bool reference_is_fresh(const struct port_peer *peer, struct mono now)
{
    const struct port_way *r = &peer->ways[PROBE_WAY_REFERENCE];

    return r->count > 0 && mono_sub(now, r->at).ns < FRESH_NS;
}

static void compare(struct port_peer *peer, struct mono now)
{
    const struct port_delay *job = newest(&peer->ways[PROBE_WAY_JOB], PORT_OUT);

    if (reference_is_fresh(peer, now)) {
        const struct port_delay *r = newest(&peer->ways[PROBE_WAY_REFERENCE], PORT_OUT);
        if (job->least_ns > r->most_ns + MARGIN_NS) {
            /* by the stamps alone: both classes use the same clocks, and no delay is negative */
            const int64_t j = (job->least_ns + job->most_ns) / 2,
                          k = (r->least_ns + r->most_ns) / 2;
            peer->slow_job_ns = k < 0 ? j - k : j;
            peer->slow_reference_ns = k < 0 ? 0 : k;
            judge(peer, SEEN_SLOW);
        } else if (job->least_ns + job->most_ns <= r->least_ns + r->most_ns + 2 * MARGIN_NS) {
            judge(peer, SEEN_EVEN);
        }
    }
}

bool port_probe_slow(const struct port_probe *p, struct port_slow *ret_slow)
{
    struct port_slow s = {.nic = NIC_NONE};
    uint32_t compared = 0;

    for (uint32_t i = 0; i < PORT_PROBE_PEERS; i++) {
        const struct port_peer *peer = &p->peers[i];
        struct port_slow one = {.nic = peer->nic, .job_ns = -1};
        compared += peer->used && (peer->slow || peer->gone || peer->ways[PROBE_WAY_JOB].count > 0);
        if (!peer->used || (!peer->slow && !peer->gone) ||
            peer->ways[PROBE_WAY_REFERENCE].count == 0) {
            continue;
        }
        if (peer->slow) {
            one.job_ns = peer->slow_job_ns;
            one.reference_ns = peer->slow_reference_ns;
        } else {
            const struct port_delay *r = newest(&peer->ways[PROBE_WAY_REFERENCE], PORT_OUT);
            int64_t half;
            port_delay_owd(r, &one.reference_ns, &half);
        }
        one.peers = s.peers + 1;
        if (s.peers == 0 || one.job_ns < 0 || (s.job_ns >= 0 && one.job_ns > s.job_ns)) {
            s = one;
        }
        s.peers = one.peers;
    }
    if (2 * s.peers <= compared) {
        return false;
    }
    *ret_slow = s;
    return s.peers > 0;
}

/* ---- questions ---- */

static struct port_wait *find_wait(struct port_probe *p, uint32_t exchange)
{
    for (uint32_t i = 0; i < PORT_PROBE_WAITS; i++) {
        if (p->waits[i].used && p->waits[i].exchange == exchange) {
            return &p->waits[i];
        }
    }
    return NULL;
}

/* A place for another question, after the finished ones were noted. */
static struct port_wait *new_wait(struct port_probe *p, struct mono now)
{
    struct port_wait *found = NULL;

    for (uint32_t i = 0; i < PORT_PROBE_WAITS; i++) {
        struct port_wait *w = &p->waits[i];
        if (w->used && mono_sub(now, w->asked).ns > LOST_NS) {
            struct port_peer *peer = &p->peers[w->peer];
            w->used = false;
            peer->ways[w->way].lost++;
            peer->missed = w->way == PROBE_WAY_JOB;
            /* the reference was lost, too: it's not the class */
            if (w->way == PROBE_WAY_REFERENCE) {
                peer->lost_run = 0;
            }
        }
        found = found == NULL && !w->used ? w : found;
    }
    return found;
}

/* The peer and class whose turn it is. NULL: no question. */
static struct port_peer *next_peer(struct port_probe *p, uint8_t *ret_way)
{
    const uint32_t ways = p->job ? 2 : 1;
    uint32_t count = 0, at;

    for (uint32_t i = 0; i < PORT_PROBE_PEERS; i++) {
        count += p->peers[i].used && p->peers[i].asked;
    }
    if (count == 0) {
        return NULL;
    }
    at = p->turn / ways % count;
    *ret_way = (uint8_t)(p->turn % ways);
    p->turn++;
    for (uint32_t i = 0; i < PORT_PROBE_PEERS; i++) {
        if (p->peers[i].used && p->peers[i].asked && at-- == 0) {
            return &p->peers[i];
        }
    }
    return NULL;
}

bool port_may_wait(struct port_waiting *w, struct mono now)
{
    const int64_t past_ns = mono_sub(now, w->at).ns;
    const int64_t left_ns = w->left_ns + (past_ns > 0 ? past_ns / w->share : 0);

    w->left_ns = left_ns < PORT_WAIT_KEPT_NS ? left_ns : PORT_WAIT_KEPT_NS;
    w->at = now;
    return w->left_ns > 0;
}

void port_waited(struct port_waiting *w, int64_t ns)
{
    w->left_ns -= ns > 0 ? ns : 0;
}

bool port_probe_next(struct port_probe *p, struct mono now, struct port_question *ret_question)
{
    uint8_t way = 0;

    if (mono_before(now, p->next) && mono_sub(p->next, now).ns <= EACH_NS) {
        return false;
    }
    p->next = mono_add(now, span_ns(EACH_NS));
    choose(p, now);
    struct port_wait *w = new_wait(p, now);
    struct port_peer *peer = w != NULL ? next_peer(p, &way) : NULL;
    if (peer == NULL) {
        return false;
    }
    *w = (struct port_wait){.used = true,
                            .exchange = ++p->exchange,
                            .peer = (uint32_t)(peer - p->peers),
                            .way = way,
                            .asked = now};
    w->left.bound_ns = PROBE_BOUND_NONE;
    peer->ways[way].asked++;
    *ret_question = (struct port_question){peer->nic, peer->at, w->exchange, way};
    return true;
}

void port_probe_on_left(struct port_probe *p, uint32_t exchange, const struct port_moment *left)
{
    struct port_wait *w = find_wait(p, exchange);

    if (w != NULL) {
        w->left = *left;
    }
}

void port_probe_on_not_sent(struct port_probe *p, uint32_t exchange)
{
    struct port_wait *w = find_wait(p, exchange);

    if (w != NULL) {
        w->used = false;
        p->peers[w->peer].ways[w->way].asked--;
    }
}

/* ---- answers ---- */

static bool known(const struct port_moment *m)
{
    return m->bound_ns != PROBE_BOUND_NONE && m->timeline != 0;
}

/* False: the two times are not comparable. */
static bool delay_of(const struct port_moment *left, const struct port_moment *came,
                     struct port_delay *ret)
{
    if (!known(left) || !known(came) || left->timeline != came->timeline) {
        return false;
    }
    const int64_t apart = came->earliest.ns - left->earliest.ns;
    if (apart < -FORGET_NS || apart > FORGET_NS) {
        return false; /* one of them is false */
    }
    const uint64_t error = (uint64_t)left->bound_ns + came->bound_ns;
    *ret = (struct port_delay){.least_ns = apart - left->width_ns,
                               .most_ns = apart + came->width_ns,
                               .error_ns = error < UINT32_MAX ? (uint32_t)error : UINT32_MAX};
    return true;
}

bool port_probe_on_coming(struct port_probe *p, struct nic_id from, uint32_t exchange)
{
    struct port_wait *w = find_wait(p, exchange);
    const bool first =
        w != NULL && !w->heralded && !w->answered && nic_id_equal(p->peers[w->peer].nic, from);

    if (first) {
        w->heralded = true;
    }
    return first;
}

bool port_probe_on_answer(struct port_probe *p, struct nic_id from, uint32_t exchange,
                          const struct port_moment *there, const struct port_moment *came)
{
    struct port_wait *w = find_wait(p, exchange);

    if (w == NULL || w->answered || !nic_id_equal(p->peers[w->peer].nic, from)) {
        return false;
    }
    struct port_peer *peer = &p->peers[w->peer];
    if (there->bound_ns != PROBE_BOUND_NONE && !peer->at.stamps) {
        const uint32_t less = peer->herald_ns - peer->herald_ns / 64, more = 2 * peer->herald_ns;
        peer->herald_ns = there->width_ns <= peer->herald_ns
                              ? (less > PORT_HERALD_NS ? less : PORT_HERALD_NS)
                              : (more < PORT_HERALD_NS_MOST ? more : PORT_HERALD_NS_MOST);
    }
    w->answered = true;
    w->came_there = *there;
    w->came_back = *came;
    return true;
}

bool port_probe_on_answer_left(struct port_probe *p, struct mono now, struct nic_id from,
                               uint32_t exchange, const struct port_moment *left)
{
    struct port_wait *w = find_wait(p, exchange);
    struct port_delay out, in;

    if (w == NULL || !w->answered || !nic_id_equal(p->peers[w->peer].nic, from)) {
        return false;
    }
    struct port_peer *peer = &p->peers[w->peer];
    struct port_way *way = &peer->ways[w->way];
    w->used = false;
    if (!delay_of(&w->left, &w->came_there, &out) || !delay_of(left, &w->came_back, &in)) {
        return true; /* it arrived, but its time is unknown */
    }
    out.exchange = in.exchange = exchange;
    way->delays[PORT_OUT][way->count % PORT_PROBE_KEPT] = out;
    way->delays[PORT_IN][way->count % PORT_PROBE_KEPT] = in;
    way->count++;
    way->at = now;
    if (w->way == PROBE_WAY_JOB) {
        compare(peer, now);
    } else if (peer->missed) {
        judge(peer, SEEN_LOST);
    }
    peer->missed = false;
    return true;
}

/* ---- results ---- */

bool port_probe_delay(const struct port_peer *peer, enum probe_way way,
                      enum port_direction direction, struct port_delay *ret_delay)
{
    const struct port_way *w = &peer->ways[way];
    const uint32_t count = w->count < PORT_PROBE_KEPT ? w->count : PORT_PROBE_KEPT;
    const struct port_delay *best = NULL;
    int64_t best_ns = 0, owd, half;

    for (uint32_t i = 0; i < count; i++) {
        const struct port_delay *d = &w->delays[direction][(w->count - 1 - i) % PORT_PROBE_KEPT];
        port_delay_owd(d, &owd, &half);
        if (best == NULL || half < best_ns) {
            best = d;
            best_ns = half;
        }
    }
    if (best != NULL) {
        *ret_delay = *best;
    }
    return best != NULL;
}

bool port_probe_newest(const struct port_peer *peer, enum probe_way way,
                       enum port_direction direction, struct port_delay *ret_delay)
{
    if (peer->ways[way].count > 0) {
        *ret_delay = *newest(&peer->ways[way], direction);
    }
    return peer->ways[way].count > 0;
}

void port_delay_owd(const struct port_delay *d, int64_t *ret_owd_ns, int64_t *ret_half_ns)
{
    int64_t least = d->least_ns - (int64_t)d->error_ns;
    int64_t most = d->most_ns + (int64_t)d->error_ns;

    least = least > 0 ? least : 0;
    most = most > least ? most : least;
    *ret_half_ns = (most - least + 1) / 2;
    *ret_owd_ns = least + *ret_half_ns;
}
