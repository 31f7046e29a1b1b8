/* swarm_draw.c: draws a world from a seed. Each number is drawn from the range that the product is meant for. What the fault
 * model excludes (more liars than a member can stand) is not drawn. */
#include "sim/swarm.h"

#include "base/prng.h"
#include "base/time.h"
#include "wire/probe_field.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUDGET_NIC_S 1600.0 /* NIC seconds of a usual world: they limit its cost */
/* after the last fault, so that the return to step can be judged */
#define SETTLE_NS (16 * NS_PER_S)

/* ---- drawing ---- */
static bool chance(struct prng *p, double share)
{
    return prng_uniform(p) < share;
}

static int pick(struct prng *p, int low, int high)
{
    return low + (int)prng_below(p, (uint64_t)(high - low + 1));
}

static double uniform(struct prng *p, double low, double high)
{
    return low + (high - low) * prng_uniform(p);
}

/* A logarithmic distribution: small and large values are equally likely. */
static double spread(struct prng *p, double low, double high)
{
    return low * pow(high / low, prng_uniform(p));
}

/* Whole us, off every grid. */
static int64_t span(struct prng *p, double low_s, double high_s)
{
    return (int64_t)(spread(p, low_s, high_s) * 1e6) * NS_PER_US;
}

static int one_of(struct prng *p, const int *values, size_t count)
{
    return values[prng_below(p, count)];
}
#define ONE_OF(p, ...)                                                                             \
    one_of(p, (const int[]){__VA_ARGS__}, sizeof((int[]){__VA_ARGS__}) / sizeof(int))

/* Three digits, as a person would write. */
static double rounded(double value)
{
    char text[32];

    snprintf(text, sizeof(text), "%.3g", value);
    return strtod(text, NULL);
}

/* ---- the fabric ---- */
static void draw_size(struct prng *p, struct scenario_fabric *f)
{
    const double nics = chance(p, 0.03) ? spread(p, 64, 320) : spread(p, 2, 72);

    f->nics_per_host = ONE_OF(p, 1, 1, 1, 1, 2, 2, 2, 3, 4, 4, 5, 6, 7, 8);
    f->hosts = (int)(nics / f->nics_per_host);
    f->hosts = f->hosts < 2 ? pick(p, 2, 4) : f->hosts > 64 ? 64 : f->hosts;
}

/* What a machine with two processors can carry (docs/scenarios.md), at most eight hosts. */
static void draw_lab_fabric(struct prng *p, struct scenario_fabric *f)
{
    f->hosts = pick(p, 2, 8);
    f->nics_per_host = f->hosts > 4 ? pick(p, 1, 2) : pick(p, 1, 3);
    f->ip = (enum scenario_ip)ONE_OF(p, IP_V4, IP_V6, IP_BOTH);
    f->link_mbps = ONE_OF(p, 100, 200, 200);
    f->leaves = pick(p, 1, f->hosts < 4 ? f->hosts : 4);
    f->spines = pick(p, 1, 4);
    if (f->nics_per_host > 1 && chance(p, 0.3)) {
        f->wiring = WIRING_RAIL;
        f->leaves = f->leaves > f->nics_per_host ? f->nics_per_host : f->leaves;
    }
    f->buffer_bytes = (int64_t)rounded(spread(p, 100000, 1e6));
    f->probe_class = chance(p, 0.7);
    f->routers_answer = chance(p, 0.85);
}

static void draw_fabric(struct prng *p, struct scenario_fabric *f)
{
    draw_size(p, f);
    f->ip = (enum scenario_ip)ONE_OF(p, IP_V4, IP_V6, IP_BOTH);
    f->link_mbps = ONE_OF(p, 200, 1000, 10000, 25000, 100000, 200000, 400000);
    if (chance(p, 0.12)) {
        f->network = NETWORK_ABSTRACT;
        f->delay_ns_min = (int64_t)rounded(spread(p, 500, 20000));
        f->delay_ns_max = (int64_t)rounded((double)f->delay_ns_min * uniform(p, 1, 6));
        f->paths = pick(p, 1, 8);
        f->queued_share = rounded(uniform(p, 0.01, 0.7));
        f->queue_ns = (int64_t)rounded(spread(p, 100, 8000));
        if (chance(p, 0.3)) {
            f->asymmetric_share = rounded(uniform(p, 0.02, 0.3));
            f->asymmetry_ns = (int64_t)rounded(spread(p, 20, 400));
            f->asymmetry_per_path = chance(p, 0.5);
        }
        return;
    }
    f->leaves = pick(p, 1, 4);
    f->leaves = f->leaves > f->hosts ? f->hosts : f->leaves;
    f->spines = pick(p, 1, 8);
    if (f->nics_per_host > 1 && chance(p, 0.3)) {
        f->wiring = WIRING_RAIL;
        f->leaves = f->leaves > f->nics_per_host ? f->nics_per_host : f->leaves;
    }
    f->trunk_mbps = chance(p, 0.5) ? 0 : fmin(f->link_mbps * ONE_OF(p, 1, 2, 4), 800000);
    f->buffer_bytes = (int64_t)rounded(spread(p, 60000, 4e6));
    f->drops = chance(p, 0.5);
    f->probe_class = chance(p, 0.65);
    f->routers_answer = chance(p, 0.85);
    f->edges_per_nic = chance(p, 0.15) ? pick(p, 20, 40) : 0;
    f->cable_ns = (int64_t)rounded(spread(p, 20, 3000));
    f->switch_ns = (int64_t)rounded(spread(p, 200, 3000));
}

/* ---- clocks ---- */
static void draw_clocks(struct prng *p, struct scenario_clocks *c, int hosts)
{
    c->stamps = chance(p, 0.5) ? STAMPS_NIC : STAMPS_SOFTWARE;
    c->noise_ns = round(spread(p, 4, 100));
    if (c->stamps == STAMPS_SOFTWARE && chance(p, 0.7)) {
        c->jitter_ns = round(spread(p, 20, 800));
    }
    c->quantum_ns = chance(p, 0.2) ? ONE_OF(p, 2, 4, 8, 16) : 0;
    c->offset_ns = (int64_t)rounded(spread(p, 1e3, 3600e9));
    c->ppm = rounded(spread(p, 0.5, 200));
    c->wander = rounded(spread(p, 0.5, 60));
    if (chance(p, 0.2)) {
        c->ramp_ppb_s = rounded(spread(p, 2, 50));
        c->ramp_for_ns = span(p, 2, 20);
        c->ramp_every_ns = 2 * c->ramp_for_ns + span(p, 1, 30);
        c->ramp_share = rounded(uniform(p, 0.1, 1));
    }
    c->nic_read_ns = round(spread(p, 200, 2500));
    c->nic_read_noise_ns = round(spread(p, 10, 400));
    c->one_tx_stamp = chance(p, 0.1);
    c->anchors = chance(p, 0.4) ? pick(p, 1, hosts < 4 ? hosts : 4) : 0;
    c->anchor_bound_ns = (int64_t)rounded(spread(p, 1e3, 5e6));
    c->guard = chance(p, 0.8);
    c->warm_start = chance(p, 0.85);
}

/* ---- targets ---- */
static struct scenario_nic some_nic(struct prng *p, const struct scenario_fabric *f)
{
    return (struct scenario_nic){pick(p, 0, f->hosts - 1), pick(p, 0, f->nics_per_host - 1)};
}

static struct scenario_target nic_target(struct prng *p, const struct scenario_fabric *f)
{
    return (struct scenario_target){.kind = TARGET_NIC, .from = some_nic(p, f), .path = -1};
}

static struct scenario_target host_target(struct prng *p, const struct scenario_fabric *f, int most)
{
    const int count = chance(p, 0.7) ? 1 : pick(p, 1, most < 1 ? 1 : most);
    const int first = pick(p, 0, f->hosts - count);

    return (struct scenario_target){
        .kind = TARGET_HOSTS, .first = first, .last = first + count - 1, .path = -1};
}

static struct scenario_target edge_target(struct prng *p, const struct scenario_fabric *f)
{
    struct scenario_target t = {.kind = TARGET_EDGE, .from = some_nic(p, f), .path = -1};

    do {
        t.to = some_nic(p, f);
    } while (t.to.host == t.from.host);
    t.both_ways = chance(p, 0.4);
    if (chance(p, 0.5)) {
        t.path = pick(p, 0, (f->network == NETWORK_FABRIC ? f->spines : f->paths) - 1);
    }
    return t;
}

static struct scenario_target trunk_target(struct prng *p, const struct scenario_fabric *f)
{
    return (struct scenario_target){.kind = TARGET_TRUNK,
                                    .first = pick(p, 0, f->leaves - 1),
                                    .last = pick(p, 0, f->spines - 1),
                                    .path = -1};
}

static struct scenario_target spine_target(struct prng *p, const struct scenario_fabric *f)
{
    return (struct scenario_target){
        .kind = TARGET_SPINE, .first = pick(p, 0, f->spines - 1), .path = -1};
}

/* A place in the network that a fault of packets may have. */
static struct scenario_target network_target(struct prng *p, const struct scenario_fabric *f,
                                             bool spine)
{
    const bool tiers = f->network == NETWORK_FABRIC && f->leaves > 1;

    switch (pick(p, 0, tiers ? (spine ? 3 : 2) : 1)) {
    case 0:
        return nic_target(p, f);
    case 1:
        return edge_target(p, f);
    case 2:
        return trunk_target(p, f);
    default:
        return spine_target(p, f);
    }
}

static enum scenario_direction some_direction(struct prng *p, const struct scenario_target *t)
{
    return t->kind == TARGET_NIC || t->kind == TARGET_TRUNK
               ? (enum scenario_direction)pick(p, TOWARDS_BOTH, TOWARDS_DOWN)
               : TOWARDS_BOTH;
}

/* ---- traffic ---- */
static void draw_traffic(struct prng *p, struct scenario *s)
{
    const struct scenario_fabric *f = &s->fabric;
    const int count = chance(p, 0.45) ? 0 : pick(p, 1, 2);

    for (int i = 0; i < count && f->network == NETWORK_FABRIC; i++) {
        struct scenario_traffic *t = &s->traffic[s->traffic_count++];
        scenario_traffic_init(t, s);
        t->kind = (enum scenario_traffic_kind)pick(p, 0, TRAFFIC_STANDING);
        if (t->kind == TRAFFIC_STANDING) {
            t->queue_bytes = (int64_t)rounded(spread(p, 2000, (double)f->buffer_bytes));
        } else {
            t->load = rounded(uniform(p, 0.05, 0.9));
        }
        if (t->kind == TRAFFIC_INCAST) {
            t->fan = pick(p, 2, 16);
            t->burst_bytes = (int64_t)rounded(spread(p, 65536, 4e6));
        }
        if (chance(p, 0.5)) {
            t->to = chance(p, 0.5) ? nic_target(p, f) : host_target(p, f, f->hosts);
        }
        if (chance(p, 0.3)) {
            t->start_ns = span(p, 0.05, 0.6e-9 * (double)s->duration_ns);
        }
        if (chance(p, 0.3)) {
            t->end_ns =
                t->start_ns + (int64_t)(prng_uniform(p) * (double)(s->duration_ns - t->start_ns));
        }
    }
}

/* ---- faults ---- */
/* How many of a member's peers may lie: docs/clock.md, "Liars". Without a full mesh chance may give a member more liars than
 * its share. */
static int liars_most(const struct scenario_fabric *f)
{
    const int peers = f->hosts - 1;
    const int most = ((peers < 16 ? peers : 16) - 1) / 3;

    if (f->hosts * f->nics_per_host > 21) {
        return f->hosts / 16;
    }
    return most < 4 ? most : 4;
}

static void draw_clock_fault(struct prng *p, struct scenario_fault *x)
{
    const double sign = chance(p, 0.5) ? 1 : -1;

    if (x->kind == FAULT_CLOCK_STEP) {
        x->step_ns = (int64_t)(rounded(spread(p, 50, 5e9)) * sign);
    } else {
        x->ppm = rounded(spread(p, 1, x->kind == FAULT_NIC_STEER ? 100 : 300)) * sign;
    }
}

static void draw_lie(struct prng *p, struct scenario_fault *x)
{
    const int sign = chance(p, 0.5) ? 1 : -1;

    if (chance(p, 0.6)) { /* in any field that a peer can send */
        static const int ways[] = {LIE_RANDOM,    LIE_COLLUDING, LIE_DRIFTING,
                                   LIE_TWO_FACED, LIE_FROZEN,    LIE_ENDS};
        x->field = pick(p, 0, PROBE_FIELD_MESH - 1);
        x->lie = (enum scenario_lie)one_of(p, ways, ARRAY_COUNT(ways));
        const double most = pow(2, fmin(40, 8.0 * probe_fields[x->field].size - 1));
        if (x->lie < LIE_FROZEN) {
            x->amount = (int64_t)rounded(spread(p, 1, most)) * sign;
        }
        return;
    }
    x->lie = (enum scenario_lie)pick(p, 0, LIE_OLDEST);
    x->size_ns = (int64_t)rounded(spread(p, 30, 1e8));
    if (x->lie == LIE_DRIFTING) {
        x->rate_ppb = rounded(spread(p, 1, 500)) * sign;
    } else if (x->lie != LIE_RANDOM) {
        x->size_ns *= sign;
    }
}

/* Draws the fault's place in the network, and its size. False: this fabric has no such place. */
static bool draw_network_place(struct prng *p, const struct scenario_fabric *f,
                               struct scenario_fault *x)
{
    const bool tiers = f->network == NETWORK_FABRIC && f->leaves > 1;

    switch (x->kind) {
    case FAULT_CARRIER:
    case FAULT_NIC_VANISH:
        x->target = nic_target(p, f);
        return true;
    case FAULT_FLAP:
        x->target = tiers && chance(p, 0.5) ? trunk_target(p, f) : nic_target(p, f);
        x->count = pick(p, 1, 12);
        x->down_ns = span(p, 0.01, 1);
        x->up_ns = span(p, 0.05, 2);
        return true;
    case FAULT_BLACKHOLE:
    case FAULT_LOSS:
        x->target = network_target(p, f, true);
        x->direction = some_direction(p, &x->target);
        x->loss = x->kind == FAULT_LOSS ? rounded(spread(p, 0.001, 0.5)) : 0;
        return true;
    case FAULT_BROWNOUT:
        x->target = tiers && chance(p, 0.5) ? trunk_target(p, f) : nic_target(p, f);
        x->rate_mbps = rounded(f->link_mbps * spread(p, 0.01, 0.5));
        return f->network == NETWORK_FABRIC;
    case FAULT_DELAY:
        x->target = network_target(p, f, false);
        x->direction = some_direction(p, &x->target);
        x->delay_ns = (int64_t)rounded(spread(p, 500, 1e6));
        x->jitter_ns = chance(p, 0.3) ? (int64_t)rounded(spread(p, 100, 1e5)) : 0;
        return true;
    case FAULT_TRUNK:
        x->target = trunk_target(p, f);
        x->reroute_ns = chance(p, 0.5) ? span(p, 0.01, 3) : 0;
        return tiers;
    case FAULT_SPINE:
        x->target = spine_target(p, f);
        x->reroute_ns = chance(p, 0.5) ? span(p, 0.01, 3) : 0;
        return tiers;
    case FAULT_ASYMMETRY:
        x->target = edge_target(p, f);
        x->target.path = -1;
        x->delay_ns = (int64_t)rounded(spread(p, 10,
                                              f->network == NETWORK_FABRIC
                                                  ? (double)(f->cable_ns + f->switch_ns)
                                                  : (double)f->delay_ns_min));
        return true;
    case FAULT_REPLAY:
    case FAULT_FORGE:
        x->target = edge_target(p, f);
        x->target.path = -1;
        x->target.both_ways = false;
        x->every_ns = span(p, 0.002, 1);
        return true;
    default:
        return false;
    }
}

/* Draws the fault's hosts, and its size; other faults are in the network. */
static bool draw_place(struct prng *p, const struct scenario *s, struct scenario_fault *x,
                       int *liars)
{
    const struct scenario_fabric *f = &s->fabric;

    switch (x->kind) {
    case FAULT_CARRIER:
    case FAULT_NIC_VANISH:
    case FAULT_FLAP:
    case FAULT_BLACKHOLE:
    case FAULT_LOSS:
    case FAULT_BROWNOUT:
    case FAULT_DELAY:
    case FAULT_TRUNK:
    case FAULT_SPINE:
    case FAULT_ASYMMETRY:
    case FAULT_REPLAY:
    case FAULT_FORGE:
        return draw_network_place(p, f, x);
    case FAULT_AGENT_STARVE:
        x->share = rounded(uniform(p, 0.1, 0.95));
        x->turn_ns = span(p, 0.02, 1);
        x->target = host_target(p, f, f->hosts / 2);
        return true;
    case FAULT_AGENT_RESTART:
        x->every_ns = span(p, 0.2, 4);
        x->target = host_target(p, f, f->hosts);
        return true;
    case FAULT_CLOCK_STEP:
    case FAULT_CLOCK_FREQ:
        draw_clock_fault(p, x);
        x->target = chance(p, 0.6) ? host_target(p, f, f->hosts / 3) : nic_target(p, f);
        return true;
    case FAULT_NIC_STEER:
        draw_clock_fault(p, x);
        x->target = nic_target(p, f);
        return scenario_nics_stamp(&s->clocks, x->target.from.host);
    case FAULT_LIAR:
        x->target = host_target(p, f, *liars);
        if (x->target.last - x->target.first + 1 > *liars) {
            return false;
        }
        *liars -= x->target.last - x->target.first + 1;
        draw_lie(p, x);
        return true;
    case FAULT_PARTITION:
        x->target = host_target(p, f, f->hosts - 1);
        return true;
    case FAULT_KEY_ROTATE:
        x->target = (struct scenario_target){.kind = TARGET_ALL, .path = -1};
        return true;
    case FAULT_VERSION:
        x->version = 2;
        x->target = host_target(p, f, f->hosts);
        return true;
    case FAULT_PEERS:
        x->target = host_target(p, f, f->hosts / 4);
        return f->hosts >= 4;
    default: /* agents, sleep, reboot, anchors: faults of hosts */
        x->target = host_target(p, f, f->hosts / 2);
        return true;
    }
}

static bool must_end(enum scenario_fault_kind kind)
{
    return kind == FAULT_AGENT_STOP || kind == FAULT_AGENT_STARVE || kind == FAULT_SUSPEND ||
           kind == FAULT_REBOOT || kind == FAULT_PARTITION || kind == FAULT_NIC_VANISH ||
           kind == FAULT_NIC_STEER || kind == FAULT_KEY_ROTATE || kind == FAULT_PEERS ||
           kind == FAULT_AGENT_RESTART;
}

/* When the fault's last turn is over. */
static int64_t ends(const struct scenario_fault *x, const struct scenario_fabric *f)
{
    const int hosts =
        x->target.kind == TARGET_HOSTS ? x->target.last - x->target.first + 1 : f->hosts;

    if (x->kind == FAULT_FLAP) {
        return x->at_ns + x->count * (x->down_ns + x->up_ns);
    }
    if (x->kind == FAULT_AGENT_RESTART) {
        return x->at_ns + hosts * x->every_ns + x->for_ns;
    }
    return x->at_ns + (x->kind == FAULT_KEY_ROTATE ? 2 : 1) * x->for_ns;
}

/* True if the lab can apply the fault to real processes and packets. */
static bool lab_can(const struct scenario_fault *x)
{
    return x->kind <= FAULT_CLOCK_FREQ || x->kind == FAULT_SUSPEND;
}

static bool hands_key(const struct scenario *s)
{
    for (int i = 0; i < s->fault_count; i++) {
        if (s->fault[i].kind == FAULT_KEY_ROTATE) {
            return true;
        }
    }
    return false;
}

static bool sleeps(const struct scenario_fault *x)
{
    return x->kind == FAULT_SUSPEND || x->kind == FAULT_REBOOT;
}

/* True if a host of the fault already sleeps or boots then: it can't be suspended or rebooted. */
static bool sleeps_already(const struct scenario *s, const struct scenario_fault *x)
{
    for (int i = 0; i < s->fault_count && sleeps(x); i++) {
        const struct scenario_fault *f = &s->fault[i];
        if (sleeps(f) && f->target.first <= x->target.last && x->target.first <= f->target.last &&
            f->at_ns <= x->at_ns + x->for_ns && x->at_ns <= f->at_ns + f->for_ns) {
            return true;
        }
    }
    return false;
}

/* Later additions to the language are drawn from their own numbers, so that older worlds stay the same. */
static bool later_chance(const struct scenario *s, uint64_t what, double share)
{
    struct prng p;

    prng_init(&p, hash_u64(s->seed ^ 0x6c61746572, what));
    return chance(&p, share);
}

/* Draws all faults; returns the end of the last. */
static int64_t draw_faults(struct prng *p, struct scenario *s, double seconds)
{
    const int count = chance(p, 0.25) ? 0 : chance(p, 0.35) ? 1 : pick(p, 2, 6);
    int liars = liars_most(&s->fabric);
    int64_t end = 0;

    for (int tries = 0; tries < 40 && s->fault_count < count; tries++) {
        struct scenario_fault x;
        scenario_fault_init(&x);
        x.kind = (enum scenario_fault_kind)prng_below(p, FAULT_KINDS);
        x.at_ns = (int64_t)(uniform(p, 0.02, 1) * seconds * 1e6) * NS_PER_US;
        if (must_end(x.kind) || chance(p, 0.8)) {
            x.for_ns = span(p, 0.1, x.kind == FAULT_AGENT_RESTART ? 2 : seconds / 2);
        }
        if ((s->world == SCENARIO_LAB && !lab_can(&x)) || !draw_place(p, s, &x, &liars) ||
            (x.kind == FAULT_KEY_ROTATE && hands_key(s)) || sleeps_already(s, &x)) {
            continue;
        }
        x.told = x.kind != FAULT_SUSPEND || s->world == SCENARIO_LAB ||
                 !later_chance(s, (uint64_t)x.at_ns, 0.4);
        const int64_t over = ends(&x, &s->fabric);
        if (over > (int64_t)(3 * seconds * 1e9)) {
            continue; /* many flaps or many restarts: the world would be too long */
        }
        s->fault[s->fault_count++] = x;
        end = over > end ? over : end;
    }
    return end;
}

/* ---- the world ---- */
static void add_bound(struct scenario *s, const char *what, double equals)
{
    struct scenario_bound *b = &s->bound[s->bound_count++];

    *b = (struct scenario_bound){.until_ns = s->duration_ns,
                                 .relation = BOUND_EQUALS,
                                 .limit = equals,
                                 .fault = -1,
                                 .world = s->world};
    snprintf(b->what, sizeof(b->what), "%s", what);
}

static void begin(uint64_t seed, struct scenario *s, unsigned world, const char *how)
{
    scenario_init(s);
    s->world = world;
    s->seed = seed;
    snprintf(s->name, sizeof(s->name), "swarm-%llu", (unsigned long long)seed);
    snprintf(s->why, sizeof(s->why), "Drawn at random; foliot sim swarm %s--seeds %llu", how,
             (unsigned long long)seed);
}

void swarm_draw_lab(uint64_t seed, struct scenario *s)
{
    static const char *const none[] = {"clock.hard.outside", "clock.backwards", "clock.stale",
                                       "false.step", "false.liar"};
    struct prng random, *p = &random;

    prng_init(p, hash_u64(seed, 0x6c6162));
    begin(seed, s, SCENARIO_LAB, "--lab ");
    draw_lab_fabric(p, &s->fabric);
    s->clocks.stamps = chance(p, 0.5) ? STAMPS_NIC : STAMPS_SOFTWARE;
    s->clocks.offset_ns = (int64_t)rounded(spread(p, 1e3, 3600e9));
    s->clocks.ppm = rounded(spread(p, 0.5, 200));
    s->clocks.wander = rounded(spread(p, 0.5, 60));
    const int64_t end = draw_faults(p, s, 20);
    s->duration_ns = end + SETTLE_NS + span(p, 1, 5);
    s->duration_ns = s->duration_ns < 25 * NS_PER_S ? 25 * NS_PER_S : s->duration_ns;
    if (chance(p, 0.5)) {
        struct scenario_traffic *t = &s->traffic[s->traffic_count++];
        scenario_traffic_init(t, s);
        t->kind = (enum scenario_traffic_kind)pick(p, TRAFFIC_FLOW, TRAFFIC_ALL_TO_ALL);
        t->load = rounded(uniform(p, 0.05, 0.6));
        t->from = host_target(p, &s->fabric, 1);
        t->fan =
            t->kind == TRAFFIC_INCAST && s->fabric.hosts > 2 ? pick(p, 2, s->fabric.hosts - 1) : 2;
        t->to = host_target(p, &s->fabric, 1);
    }
    for (size_t i = 0; i < ARRAY_COUNT(none); i++) {
        add_bound(s, none[i], 0);
    }
    add_bound(s, "clock.timelines", 1);
}

void swarm_draw(uint64_t seed, struct scenario *ret)
{
    struct prng random, *p = &random;
    struct scenario *s = ret;

    prng_init(p, hash_u64(seed, 0x737761726d));
    begin(seed, s, SCENARIO_SIM, "");
    draw_fabric(p, &s->fabric);
    draw_clocks(p, &s->clocks, s->fabric.hosts);
    s->clocks.stamps = later_chance(s, 0, 0.12) ? STAMPS_MIXED : s->clocks.stamps;
    const double nics = s->fabric.hosts * s->fabric.nics_per_host;
    const double room = fmax(8, fmin(BUDGET_NIC_S / nics - 30, 90));
    const double seconds = chance(p, 0.1) ? room : fmin(room, uniform(p, 8, 40));
    const int64_t end = draw_faults(p, s, seconds);
    s->duration_ns = end + SETTLE_NS + span(p, 1, 10);
    if (s->duration_ns < 28 * NS_PER_S) {
        s->duration_ns = 28 * NS_PER_S + span(p, 0.1, 5);
    }
    draw_traffic(p, s);
    s->wire = hands_key(s) || chance(p, 0.2);
    for (int i = 0; i < INVARIANT_COUNT; i++) {
        add_bound(s, invariant_name((enum invariant)i), 0);
    }
}
