/* invariant_reach.c: which hosts hear which others, how long packets take, and what a clock must achieve then. */
#include "sim/invariant_private.h"

#include <math.h>
#include <stdlib.h>

#include "stats/sample.h"

#define LOSS_MOST       0.25    /* a path that loses more doesn't count */
#define FULL_MESH       21      /* in fleets of at most so many NICs all probe all: docs/clock.md */
#define HOPS            4       /* in larger fleets: edges between any two hosts */
#define UNGUARDED       12000.0 /* half of the width, without a second clock */
#define LEVEL_STEP      1.1892  /* 2^(1/4) */
#define SHOWN_NS_MAX    3.9e6   /* the widest bound that is shown */
#define WORST_SHARE     0.6     /* of a standing wait, the share that may look like time */
#define MEAN_SHARE      0.02
#define ALONE_NS        (1500 * NS_PER_MS) /* packets under way have been used by then */
#define ALONE_SYNCED_NS (4 * NS_PER_S)
#define FEW_NS          (2 * NS_PER_S)
#define ALONE_RATE      1e-6
#define ALONE_SLACK     2000.0            /* ns: lines differ from their maps, and guards differ */
#define FLAP_SEEN_NS    (50 * NS_PER_MS)  /* a carrier loss of this length is noticed */
#define KEEP_NS         (500 * NS_PER_MS) /* expensive checks of all pairs run this often */

/* ---- paths ---- */
static bool nic_is(const struct world *w, struct scenario_nic n, uint32_t nic)
{
    return world_nic(w, n.host, n.nic) == nic;
}

/* True if the fault takes (nearly) all packets from src to dst over that spine. */
static bool takes(const struct world *w, int index, uint32_t src, uint32_t dst, int spine)
{
    const struct scenario_fault *f = &w->scenario->fault[index];
    const struct scenario_target *t = &f->target;
    const bool bad = f->kind == FAULT_BLACKHOLE || f->kind == FAULT_NIC_VANISH ||
                     (f->kind == FAULT_LOSS && f->loss > LOSS_MOST);

    if (f->kind == FAULT_PARTITION) {
        return w->fault_hosts[index][(int)src / w->nics_per_host] !=
               w->fault_hosts[index][(int)dst / w->nics_per_host];
    }
    if (!bad) {
        return false;
    }
    switch (t->kind) {
    case TARGET_ALL:
        return true;
    case TARGET_NIC:
        return nic_is(w, t->from, src) || nic_is(w, t->from, dst);
    case TARGET_SPINE:
        return spine == t->first;
    case TARGET_TRUNK:
        return spine == t->last && (network_leaf(&w->network, src) == t->first ||
                                    network_leaf(&w->network, dst) == t->first);
    case TARGET_EDGE:
        return (nic_is(w, t->from, src) && nic_is(w, t->to, dst)) ||
               (nic_is(w, t->from, dst) && nic_is(w, t->to, src));
    default:
        return false;
    }
}

static bool spine_clear(const struct invariants *v, const struct world *w, uint32_t src,
                        uint32_t dst, int spine)
{
    const struct network *n = &w->network;

    if (spine >= 0 && n->trunk_down != NULL &&
        (n->trunk_down[network_leaf(n, src) * n->spines + spine] != 0 ||
         n->trunk_down[network_leaf(n, dst) * n->spines + spine] != 0)) {
        return false;
    }
    for (int i = 0; i < w->scenario->fault_count; i++) {
        if (v->on[i] && takes(w, i, src, dst, spine)) {
            return false;
        }
    }
    return true;
}

/* True if more than half of the paths between two NICs carry packets, in both directions. */
static bool pair_clear(const struct invariants *v, const struct world *w, uint32_t src,
                       uint32_t dst)
{
    const struct network *n = &w->network;
    const bool across = w->scenario->fabric.network == NETWORK_FABRIC &&
                        network_leaf(n, src) != network_leaf(n, dst);
    int clear = 0;

    if (n->carrier[src] == 0 || n->carrier[dst] == 0) {
        return false;
    }
    if (!across) {
        return spine_clear(v, w, src, dst, -1);
    }
    for (int spine = 0; spine < n->spines; spine++) {
        clear += spine_clear(v, w, src, dst, spine);
    }
    return 2 * clear > n->spines;
}

/* ---- waits ---- */
static double idle_ns(const struct network *n, const struct packet *p)
{
    const struct scenario_fabric *f = n->fabric;
    const double link = PROBE_WIRE_BYTES * 8000.0 / f->link_mbps;
    const double trunk = PROBE_WIRE_BYTES * 8000.0 / scenario_trunk_mbps(f);
    const double hop = (double)(f->cable_ns + f->switch_ns);

    if (f->network == NETWORK_ABSTRACT) {
        return (double)network_fixed(n, p->src, p->dst, p->source_port);
    }
    return p->spine < 0 ? 2 * link + hop + (double)f->cable_ns
                        : 2 * link + 2 * trunk + 3 * hop + (double)f->cable_ns;
}

/* Both ends' generations: a restarted end may have lost what it learnt. */
static uint64_t lives_of(const struct world *w, int a, int b)
{
    return 1 + w->hosts[a].generation + w->hosts[b].generation;
}

void invariant_arrival(struct invariants *v, const struct world *w, const struct packet *p)
{
    const size_t from = (size_t)p->src / (size_t)w->nics_per_host;
    const size_t to = (size_t)p->dst / (size_t)w->nics_per_host;
    struct waits *s = &v->waits[from * (size_t)w->host_count + to];
    const int64_t second = 1 + p->arrives / NS_PER_S;
    const double delay = (double)(p->arrives - p->sent);
    const double wait = fmax(0, delay - idle_ns(&w->network, p) - (double)p->extra_ns);
    const size_t b = (size_t)(second % WAIT_BUCKETS);

    v->hosts[to].heard_at = w->now;
    v->wait_mean += 0.002 * (wait - v->wait_mean);
    if (s->second[b] != second) {
        s->second[b] = second;
        s->least[b] = wait;
        s->least_delay[b] = delay;
    }
    s->least[b] = fmin(s->least[b], wait);
    s->least_delay[b] = fmin(s->least_delay[b], delay);
    const uint64_t lives = lives_of(w, (int)from, (int)to);
    s->floor = s->floor_of == lives ? fmin(s->floor, wait) : wait;
    s->floor_of = lives;
}

/* The least of the last two whole seconds; INFINITY: no packet came. */
static void least_of(const struct invariants *v, const struct world *w, int from, int to,
                     double *ret_wait, double *ret_delay)
{
    const struct waits *s = &v->waits[from * w->host_count + to];
    const int64_t second = 1 + w->now / NS_PER_S;

    *ret_wait = *ret_delay = INFINITY;
    for (int b = 0; b < WAIT_BUCKETS; b++) {
        if (s->second[b] > second - WAIT_BUCKETS) {
            *ret_wait = fmin(*ret_wait, s->least[b]);
            *ret_delay = fmin(*ret_delay, s->least_delay[b]);
        }
    }
}

/* ---- hosts that hear none, or too few ---- */
/* docs/clock.md, "Premises": a rate may change by 2 ppm, so a bound without new packets must grow by that. Half of that is
 * required. */
void invariant_alone(struct invariants *v, struct world *w, int host)
{
    struct judged_host *h = &v->hosts[host];
    const struct clock_page_terms *terms = &w->hosts[host].page.page.terms;
    const int64_t silent = w->now - h->heard_at;
    const bool told = h->status == CLOCK_PAGE_SYNCED || h->status == CLOCK_PAGE_HOLDOVER;

    if (!told || !h->sound || silent < ALONE_NS || w->now - h->disturbed_at < ALONE_NS) {
        h->alone_at = -1;
        return;
    }
    if (h->status == CLOCK_PAGE_SYNCED && silent > ALONE_SYNCED_NS) {
        invariant_break(v, w, INVARIANT_STALE,
                        "host %d reads SYNCED and has heard nobody for %.1f s", host,
                        (double)silent * 1e-9);
    }
    /* a host whose NICs have clocks still learns about its own clock from them */
    const bool learned = world_nics_stamp(w, host) && h->hard < h->alone_hard - ALONE_SLACK;
    if (h->alone_at < 0 || terms->epoch != h->alone_epoch || learned) {
        h->alone_at = w->now;
        h->alone_hard = h->hard;
        h->alone_epoch = terms->epoch;
        return;
    }
    const double least = ALONE_RATE * (double)(w->now - h->alone_at);
    if (h->hard < h->alone_hard + least - ALONE_SLACK) {
        invariant_break(v, w, INVARIANT_HOLDOVER,
                        "host %d hears nobody, and its bound grew by %.0f ns in %.1f s, less than "
                        "%.0f",
                        host, h->hard - h->alone_hard, (double)(w->now - h->alone_at) * 1e-9,
                        least);
    }
}

/* Hosts that are cut off from the fleet may not be SYNCED: docs/clock.md, "Hard". If all probe all, a host that hears fewer
 * than three quarters of the others is cut off. */
void invariant_few(struct invariants *v, struct world *w, int host)
{
    struct judged_host *h = &v->hosts[host];
    bool all_known = true;
    int heard = 0;

    for (int i = 0; i < w->scenario->fault_count; i++) {
        all_known = all_known && w->scenario->fault[i].kind != FAULT_PEERS;
    }
    for (int other = 0; other < w->host_count; other++) {
        double wait, delay;
        least_of(v, w, other, host, &wait, &delay);
        heard += other != host && isfinite(delay);
    }
    if (4 * heard >= 3 * (w->host_count - 1) || !all_known || !h->sound || !h->running ||
        w->host_count * w->nics_per_host > FULL_MESH || w->now - h->disturbed_at < FEW_NS) {
        h->few_at = w->now;
    } else if (h->status == CLOCK_PAGE_SYNCED && w->now - h->few_at > FEW_NS) {
        invariant_break(v, w, INVARIANT_STALE,
                        "host %d reads SYNCED and has heard %d of %d others for %.1f s", host,
                        heard, w->host_count - 1, (double)(w->now - h->few_at) * 1e-9);
    }
}

/* ---- hosts that must be in step ---- */
static bool answers(const struct invariants *v, const struct world *w, int host, bool honest)
{
    const struct judged_host *o = &v->hosts[host];

    return o->running && !o->asleep && w->hosts[host].stopped_until <= w->now &&
           w->hosts[host].starved_until <= w->now && (!honest || o->sound);
}

/* The largest share of others that one of its NICs can hear. If all probe all, it counts hosts, because a host is one
 * neighbour however many NICs it has. If chance picks the neighbours, it counts NICs. */
static double heard_share(const struct invariants *v, const struct world *w, int host, bool honest)
{
    const bool sparse = w->host_count * w->nics_per_host > FULL_MESH;
    double best = 0;

    for (int nic = 0; nic < w->nics_per_host; nic++) {
        double heard = 0;
        for (int other = 0; other < w->host_count; other++) {
            int clear = 0;
            if (other == host || !answers(v, w, other, honest)) {
                continue;
            }
            for (int k = 0; k < w->nics_per_host; k++) {
                clear += pair_clear(v, w, world_nic(w, host, nic), world_nic(w, other, k));
            }
            heard += sparse ? (double)clear / w->nics_per_host : clear > 0;
        }
        best = fmax(best, heard / (w->host_count - 1));
    }
    return best;
}

/* Three quarters of the others are nearer than this delay. */
static double reach_ns(struct invariants *v, const struct world *w, int host, double *scratch)
{
    int count = 0;

    for (int other = 0; other < w->host_count; other++) {
        double wait, there, back;
        if (other == host) {
            continue;
        }
        least_of(v, w, host, other, &wait, &there);
        least_of(v, w, other, host, &wait, &back);
        if (isfinite(there) && isfinite(back)) {
            sample_insert(scratch, (size_t)count++, fmax(there, back));
        }
    }
    return count > 0 ? scratch[3 * count / 4 < count ? 3 * count / 4 : count - 1] : INFINITY;
}

static bool hears_enough(const struct invariants *v, const struct world *w, int host)
{
    const bool sparse = w->host_count * w->nics_per_host > FULL_MESH;

    return heard_share(v, w, host, false) >= (sparse ? 0.92 : 0.8) &&
           heard_share(v, w, host, true) >= (sparse ? 0.85 : 0.75);
}

/* A host's bound needs neighbours that could be in step as well: of three hosts in a row the middle one has none. Large fleets
 * are left out: the check of all hosts is expensive there, and few lost paths matter less. */
static bool neighbours_hear_enough(const struct invariants *v, const struct world *w, int host)
{
    int enough = 0;

    if (w->host_count * w->nics_per_host > FULL_MESH) {
        return true;
    }
    for (int other = 0; other < w->host_count; other++) {
        enough += other != host && hears_enough(v, w, other);
    }
    return 4 * enough >= 3 * (w->host_count - 1);
}

/* True if packets are fast enough for a bound that may be shown: so many edges, each wider by up to a level's step than the
 * delays leave open (docs/clock.md, "Hard"). */
static bool near(struct invariants *v, const struct world *w, int host)
{
    const double hops = w->host_count * w->nics_per_host > FULL_MESH ? HOPS : 1;
    const double reach = reach_ns(v, w, host, v->scratch + 2 * w->host_count);

    return hops * LEVEL_STEP * reach + 2 * UNGUARDED < SHOWN_NS_MAX;
}

void invariant_far(struct invariants *v, const struct world *w, int host)
{
    struct judged_host *h = &v->hosts[host];

    if (w->scenario->traffic_count > 0 && w->now - h->near_at > KEEP_NS) {
        h->near_at = w->now;
        h->far_at = near(v, w, host) ? h->far_at : w->now;
    }
}

static bool can_sync(struct invariants *v, const struct world *w, int host)
{
    return hears_enough(v, w, host) && neighbours_hear_enough(v, w, host) && near(v, w, host);
}

bool invariant_can_sync(struct invariants *v, struct world *w, int host)
{
    struct judged_host *h = &v->hosts[host];

    if (h->can_at <= v->changed_at || h->can_at <= v->restarted_at ||
        w->now - h->can_at > KEEP_NS) {
        h->can = can_sync(v, w, host);
        h->can_at = w->now;
    }
    return h->can;
}

/* ---- the error ---- */
bool invariant_error_judged(const struct invariants *v, const struct world *w)
{
    for (int i = 0; i < w->scenario->fault_count; i++) {
        const enum scenario_fault_kind kind = w->scenario->fault[i].kind;
        if (v->on[i] && (kind == FAULT_ASYMMETRY || kind == FAULT_DELAY || kind == FAULT_BROWNOUT ||
                         kind == FAULT_LIAR || kind == FAULT_LOSS)) {
            return false;
        }
    }
    for (int i = 0; i < w->scenario->traffic_count; i++) {
        const struct scenario_traffic *t = &w->scenario->traffic[i];
        if ((w->now >= t->start_ns && w->now - t->start_ns < INVARIANT_SETTLE_NS) ||
            (w->now >= t->end_ns && w->now - t->end_ns < INVARIANT_SETTLE_NS)) {
            return false;
        }
    }
    return true;
}

/* The p99 of the error between two hosts is at most
 *
 *     (10 + 1.5 noise + 0.5 quantum + 0.25 jitter + 0.8 wander + serial / 125) (1 + 2 / sqrt(K))
 *     + asymmetry + 0.6 standing + 0.02 mean wait                                              in ns
 *
 * wander is in ppb per root second. serial is a probe's serialisation time on a link. K is the number of other NICs (at most
 * 16). asymmetry is that of every edge. standing is the wait that nine tenths of the pairs have as their least in two seconds.
 * If one of two hosts has had a queue on its paths since it began, more is allowed: invariant_unseen_ns(). */
static double allowed_ns(struct invariants *v, struct world *w, double *scratch)
{
    const struct scenario_clocks *c = &w->scenario->clocks;
    const struct scenario_fabric *f = &w->scenario->fabric;
    const double edges = fmin(16, (w->host_count - 1) * w->nics_per_host);
    const double serial = PROBE_WIRE_BYTES * 8000.0 / f->link_mbps;
    const double stamps = 10 + 1.5 * c->noise_ns + 0.5 * c->quantum_ns + 0.25 * c->jitter_ns +
                          0.8 * c->wander + serial / 125;
    double asymmetry = 0, standing = 0;
    int count = 0;

    if (f->network == NETWORK_ABSTRACT) {
        asymmetry = (double)f->asymmetry_uniform_ns +
                    f->asymmetric_share * (double)f->asymmetry_ns +
                    0.1 * (double)f->queue_ns * f->queued_share;
    }
    for (int a = 0; a < w->host_count; a++) {
        for (int b = 0; b < w->host_count; b++) {
            double wait, delay;
            if (a == b) {
                continue;
            }
            least_of(v, w, a, b, &wait, &delay);
            if (isfinite(wait)) {
                scratch[count++] = wait;
            }
        }
    }
    if (count > 0) {
        qsort(scratch, (size_t)count, sizeof(scratch[0]), sample_order);
        standing = scratch[9 * count / 10];
    }
    v->allowed_queues = WORST_SHARE * standing;
    return stamps * (1 + 2 / sqrt(edges)) + asymmetry + v->allowed_queues +
           MEAN_SHARE * v->wait_mean;
}

double invariant_allowed_ns(struct invariants *v, struct world *w, double *scratch)
{
    if (v->allowed == 0 || w->now - v->allowed_at > KEEP_NS) {
        v->allowed = allowed_ns(v, w, scratch);
        v->allowed_at = w->now;
    }
    return v->allowed;
}

/* How much longer packets to this host have waited than those from it, as their least since both ends began: the mean over all
 * hosts. */
static double never_seen_ns(const struct invariants *v, const struct world *w, int host)
{
    double sum = 0;

    for (int other = 0; other < w->host_count; other++) {
        const struct waits *in = &v->waits[other * w->host_count + host];
        const struct waits *out = &v->waits[host * w->host_count + other];
        const uint64_t lives = lives_of(w, host, other);
        if (other != host && in->floor_of == lives && out->floor_of == lives) {
            sum += in->floor - out->floor;
        }
    }
    return sum / w->host_count;
}

/* If no packet has found a queue shorter since the host began, the queue looks like a longer cable in one direction. Half of
 * it is taken for time, and the host can't notice that (docs/clock.md, "Standing queues"). The hard bound covers it, or `hard`
 * breaks. The part that `allowed` already has for queues is subtracted. */
double invariant_unseen_ns(const struct invariants *v, const struct world *w, int a, int b)
{
    const double unseen = fabs(never_seen_ns(v, w, a) - never_seen_ns(v, w, b));

    return fmax(0, WORST_SHARE * unseen - v->allowed_queues);
}

/* ---- faults that must be reported ---- */
/* True if no other fault was on near it: two faults at a time may hide each other. */
static bool alone(const struct world *w, int fault, int64_t on, int64_t off)
{
    for (int i = 0; i < w->scenario->fault_count; i++) {
        const struct check_fault *c = &w->check->faults[i];
        if (i != fault && c->on >= 0 && c->on < off &&
            (c->off < 0 || c->off > on - INVARIANT_SETTLE_NS)) {
            return false;
        }
    }
    return true;
}

/* Full queues lose packets, so a part of the losses is no finding. */
static bool full_queues_lose(const struct world *w)
{
    return w->scenario->traffic_count != 0 && w->scenario->fabric.drops;
}

bool invariant_must_be_told(const struct invariants *v, const struct world *w, int fault)
{
    const struct scenario_fault *f = &w->scenario->fault[fault];
    const struct check_fault *c = &w->check->faults[fault];
    const int64_t off = v->on[fault] ? w->now : c->off, lasted = off - c->on;
    const int64_t lost = w->network.faults[fault].lost;

    if (c->on < INVARIANT_START_NS || c->on > w->now - 5 * NS_PER_S ||
        !alone(w, fault, c->on, off)) {
        return false;
    }
    switch (f->kind) {
    case FAULT_CARRIER:
    case FAULT_NIC_VANISH:
        return lasted > 2 * NS_PER_S;
    case FAULT_FLAP: /* a trunk's flaps change nothing: routing heals at once */
        return f->target.kind == TARGET_NIC && f->down_ns >= FLAP_SEEN_NS;
    case FAULT_BLACKHOLE:
        return lasted > 3 * NS_PER_S && lost > 30;
    case FAULT_TRUNK: /* while packets still go there */
    case FAULT_SPINE:
        return lasted > 3 * NS_PER_S && f->reroute_ns > 3 * NS_PER_S && lost > 30 &&
               !full_queues_lose(w);
    case FAULT_PARTITION:
        return lasted > 5 * NS_PER_S && lost > 30;
    case FAULT_LOSS:
        return lasted > 15 * NS_PER_S && lost > 100 && f->loss >= 0.2 && !full_queues_lose(w);
    default:
        return false;
    }
}
