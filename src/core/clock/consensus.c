/* consensus.c: from many edges to one error. At first the plain mean over all edges is used: it is the least-squares solution
 * over the graph, and best while every edge is a little wrong. Later an edge is parked if its slow level stands out against the
 * typical level (own and neighbours'). A parked edge is still measured, but moves nothing. The other edges are clipped. */
#include "core/clock/clock_private.h"

#include <math.h>

#include "stats/sample.h"

#define LEVEL_GAIN  0.025 /* per tick: two seconds */
#define EXPECT_GAIN 0.08
#define WIDE_S      8.0
#define PARK_SCALE  3.7
#define PARK_NS     2.0
#define PARK_NOISE  0.8
#define PARK_SIGMAS 3.0
#define UNPARK      0.8
#define GONE_S      3.0 /* since it was last live; it counts as live for two more */
#define GONE_S_MAX  3600.0
#define RETURN_NS   (20 * NS_PER_S)
#define REGAINED    4   /* a quarter */
#define GROUP       1.5 /* in parking limits: levels that are so close agree */
/* in parking limits: only another path or another clock can be so far off */
#define FAR         3.0
#define REGROUP_S   1.0
#define UNPARK_S    2.0
#define CLIP        2.5
#define INFO_FALL   16   /* packets that come and go within a tick vary by less */
#define P_CLIP      2    /* times the median of the peers' claims */
#define BOAST       10.0 /* times that, and times what is seen of it: no clock is so uncertain */
#define BOAST_S     10.0
#define FOLLOW_MOST 1.0 /* 1/s^2: the others' maps are 0.15 s old */

/* Sorts, and returns the value below which `share` of the values lie. */
static double quantile(double *values, int count, double share)
{
    sample_sort(values, (size_t)count);
    const int at = (int)(share * count);
    return values[at < count ? at : count - 1];
}

/* A neighbour that is heard again after a silence may have drifted to any value. */
static void note_return(const struct clock *c, struct clock_edge *e)
{
    const bool tracks = c->narrow || c->phase == CLOCK_HOLD;
    const double gone_s = (double)(c->now.ns - e->live_at.ns) * 1e-9;
    const bool hushed = e->hush_s >= GONE_S;

    if (e->hushed && e->hush_s < GONE_S / 2 && tracks) {
        e->returned = true;
        e->returned_at = c->now;
        e->gone_s = e->hushed_s;
    }
    e->hushed = hushed || (e->hushed && e->hush_s >= GONE_S / 2);
    e->hushed_s = hushed ? e->hush_s : e->hushed_s;
    if (tracks && gone_s > GONE_S && e->live_at.ns != 0) {
        e->returned = true;
        e->returned_at = c->now;
        e->gone_s = gone_s;
        edge_begin_level(e);
    } else if (c->now.ns - e->returned_at.ns > RETURN_NS) {
        e->returned = false;
    }
    e->live_at = c->now;
}

/* Begins to count peers: with any number of edges a peer is one neighbour. */
static void count_peers_anew(const struct clock *c)
{
    for (int i = 0; i < c->capacity; i++) {
        c->order[i] = 0;
    }
}

/* True for a peer's first edge since count_peers_anew(). */
static bool is_new_peer(const struct clock *c, const struct clock_edge *e)
{
    return c->order[e->leader]++ == 0;
}

static bool is_back(const struct clock *c, const struct clock_edge *e)
{
    return edge_usable(c, e) && e->returned;
}

/* So many neighbours are back that they may be right: this member's part of the fleet was cut off. Its knowledge of its clock's
 * rate and time came from its own part. */
static void find_regained(struct clock *c)
{
    int usable = 0, back = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (edge_usable(c, e) && !e->config.witness) {
            usable++;
            if (e->returned) {
                c->values[back++] = e->gone_s;
            }
        }
    }
    const bool regained = REGAINED * back >= usable && consensus_peers(c, is_back) > c->liars_max;
    if (regained && !c->regained) {
        const double t = fmin(GONE_S_MAX, quantile(c->values, back, 0.5));
        const double q = bank_wander(&c->bank);
        bank_doubt(&c->bank, q * q * t * t * t / 3, q * q * t);
    }
    c->regained = regained;
}

#define ISLAND 4

int consensus_silent(const struct clock *c, double (*of)(const struct clock_edge *e))
{
    int usable = 0, silent = 0, peers = 0;

    count_peers_anew(c);
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (edge_usable(c, e) && !e->config.witness && e->level_known) {
            usable++;
            if (e->hush_s >= SILENT_S) {
                sample_insert(c->values, (size_t)silent++, of(e));
                peers += is_new_peer(c, e);
            }
        }
    }
    return peers > c->liars_max && ISLAND * silent >= usable ? silent : 0;
}

static double gap2_of(const struct clock_edge *e)
{
    return fmax(e->gap2, e->stray2);
}

/* While there may be an island: how far its parts may have drifted. */
static void find_sparse(struct clock *c)
{
    double p00, p01;
    const int silent = c->phase == CLOCK_TRACK ? consensus_silent(c, gap2_of) : 0;

    c->sparse = silent > 0;
    c->gap2 = c->sparse ? c->values[3 * silent / 4] : 0;
    bank_variance(&c->bank, &p00, &p01, &c->rate_var, &c->wander2);
}

void consensus_count(struct clock *c)
{
    enum { PEER = 1, PEER_LIVE = 2, HOST = 4, HOST_LIVE = 8 }; /* counted already */
    int live = 0, tracking = 0, peers_live = 0, peers = 0, used = 0, parked = 0;
    int hosts = 0, hosts_live = 0;

    for (int i = 0; i < c->capacity; i++) {
        c->order[i] = 0;
    }
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (!e->used || e->config.witness) {
            continue;
        }
        const bool is_live = edge_live(c, e);
        if (is_live) {
            note_return(c, e);
        }
        used++;
        live += is_live;
        parked += e->parked;
        tracking += is_live && e->peer.phase == CLOCK_TRACK;
        int *peer = &c->order[e->leader], *host = &c->order[e->host_leader];
        peers += (*peer & PEER) == 0;
        peers_live += is_live && (*peer & PEER_LIVE) == 0;
        hosts += (*host & HOST) == 0;
        hosts_live += is_live && (*host & HOST_LIVE) == 0;
        *peer |= is_live ? PEER | PEER_LIVE : PEER;
        *host |= is_live ? HOST | HOST_LIVE : HOST;
    }
    ASSERT(used == c->edge_count); /* the number that suffices is a share of it */
    ASSERT(tracking <= live && peers_live <= peers && hosts_live <= hosts && parked <= used);
    c->hosts_live = hosts_live;
    c->hosts_chosen = hosts;
    c->live = live;
    c->track_peers = tracking;
    c->parked = parked;
    c->peers_live = peers_live;
    c->peers_chosen = peers;
    const int third = (peers - 1) / 3;
    c->liars_max = third < 0 ? 0 : third < 4 ? third : 4;
    /* more peers than may lie, and two fifths of all */
    const int share = (2 * peers + 4) / 5;
    c->needed = share > c->liars_max + 1 ? share : c->liars_max + 1;
    ASSERT(c->needed > c->liars_max); /* otherwise liars alone could move a member */
    find_regained(c);
    find_sparse(c);
}

int consensus_peers(const struct clock *c,
                    bool (*does)(const struct clock *c, const struct clock_edge *e))
{
    int count = 0;

    count_peers_anew(c);
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (e->used && !e->config.witness && c->order[e->leader] == 0 && does(c, e)) {
            count += is_new_peer(c, e);
        }
    }
    return count;
}

static bool vouches(const struct clock *c, const struct clock_edge *e)
{
    return edge_usable(c, e) && !e->parked && !e->unsure && edge_vouches(e);
}

static bool takes_part(const struct clock *c, const struct clock_edge *e)
{
    return edge_usable(c, e) && !e->config.witness && !e->parked && e->in_gate && !e->unsure;
}

/* A peer's claimed error widens the gate for its packets and this member's own filter. So a claim counts for at most twice the
 * typical one. */
static void update_p_limit(struct clock *c)
{
    int count = 0;

    for (int i = 0; i < c->capacity; i++) {
        if (edge_usable(c, &c->edges[i]) && !c->edges[i].config.witness) {
            c->values[count++] = c->edges[i].peer.sqrt_p_ns;
        }
    }
    c->p_limit_ns = count > 0 ? P_CLIP * quantile(c->values, count, 0.5) : 0;
}

/* A peer that is really uncertain shows errors. A claim far above all others', without any visible error for long, is impossible
 * for a clock. */
static void note_boast(const struct clock *c, struct clock_edge *e, double dt_s)
{
    const double seen = fabs(e->level_ns) + fabs(e->e_ns - e->level_ns);
    const bool boasts = c->p_limit_ns > 0 && e->level_known &&
                        e->peer.sqrt_p_ns > BOAST / P_CLIP * c->p_limit_ns &&
                        e->peer.sqrt_p_ns > BOAST * seen;

    e->boast_s = boasts ? e->boast_s + dt_s : 0;
}

bool consensus_boasts(const struct clock_edge *e)
{
    return e->boast_s > BOAST_S;
}

static void update_scale(struct clock *c)
{
    int count = 0, peers = 1;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (edge_usable(c, e) && !e->config.witness && e->in_gate && !e->unsure) {
            c->values[count++] = fabs(e->level_ns);
        }
    }
    c->level_q75_ns = count > 0 ? quantile(c->values, count, 0.75) : 0;
    c->scale_own_ns = count > 0 ? quantile(c->values, count, 0.5) : 0;
    c->values[0] = c->scale_own_ns;
    count_peers_anew(c);
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (edge_usable(c, e) && !e->config.witness && is_new_peer(c, e)) {
            c->values[peers++] = e->peer.scale_ns; /* each tells the same on all its edges */
        }
    }
    c->scale_ns = quantile(c->values, peers, 0.5);
    count = 0;
    for (int i = 0; i < c->capacity; i++) {
        if (takes_part(c, &c->edges[i]) && c->edges[i].info_mean > 0) {
            c->values[count++] = 1 / sqrt(c->edges[i].info_mean);
        }
    }
    if (count > 0) {
        c->sigma_e_ns = quantile(c->values, count, 0.5);
    }
}

/* The standard difference between two honest clocks with this clock's wander. */
double clock_stray_ns(const struct clock *c)
{
    return sqrt(2) * c->deviation_ns;
}

/* The level above which an edge is parked; NULL: for an edge with the usual scatter. The level of an edge with more scatter is
 * less certain. */
double park_limit(const struct clock *c, const struct clock_edge *e)
{
    const double usual = c->sigma_e_ns;
    const double own = e != NULL && e->info_mean > 0 ? 1 / sqrt(e->info_mean) : usual;

    const double usually =
        fmax(PARK_SIGMAS * clock_stray_ns(c),
             fmax(PARK_SCALE * c->scale_ns, PARK_NOISE * fmax(usual, own) + PARK_NS));

    return fmax(usually, PARK_SIGMAS * sqrt(c->gap2));
}

/* True if its slow level shows something about this member's error. */
static bool has_vote(const struct clock *c, const struct clock_edge *e)
{
    return edge_usable(c, e) && e->level_known && !e->config.witness && !e->unsure && !e->sparse &&
           e->false_rate == 0;
}

/* True if more than half of all edges show that this member is off by more than `limit` to that side (1 or -1), and if these are
 * to more peers than may lie. Paths err to both sides equally, so the middle edge counts, not the largest group. */
static bool astray_to(const struct clock *c, double limit, int side)
{
    int voting = 0, off = 0, peers = 0;

    count_peers_anew(c);
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (has_vote(c, e)) {
            voting++;
            if (side * e->level_ns > limit) {
                off++;
                peers += is_new_peer(c, e);
            }
        }
    }
    return 2 * off > voting && peers > c->liars_max;
}

static bool astray(const struct clock *c, double limit)
{
    return astray_to(c, limit, 1) || astray_to(c, limit, -1);
}

/* The level around the middle edge where edges agree. 0 if this member isn't astray, or if all peers of those edges may lie. */
static double middle_level(const struct clock *c, double limit)
{
    double sum = 0;
    int voting = 0, around = 0, peers = 0;

    if (!astray(c, limit)) {
        return 0;
    }
    count_peers_anew(c);
    for (int i = 0; i < c->capacity; i++) {
        if (has_vote(c, &c->edges[i])) {
            c->values[voting++] = c->edges[i].level_ns;
        }
    }
    const double middle = quantile(c->values, voting, 0.5);
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (has_vote(c, e) && fabs(e->level_ns - middle) <= limit) {
            sum += e->level_ns;
            around++;
            peers += is_new_peer(c, e);
        }
    }
    return peers > c->liars_max ? sum / around : 0;
}

/* Parks up to half of the edges, if they stand out. It parks more only if they are far off, and if no side has more than half of
 * them. Otherwise this member itself is off, and edges that are left out can't bring it back. */
static void park(struct clock *c, struct nic_time now, double dt_s)
{
    const double near = GROUP * park_limit(c, NULL);
    const bool lost = astray(c, near);
    int usable = 0, parked = 0;

    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        const bool counts = edge_usable(c, e) && e->level_known && !e->config.witness;
        usable += counts;
        parked += counts && e->parked;
    }

    c->narrow = c->phase == CLOCK_TRACK && (double)(now.ns - c->phase_since.ns) * 1e-9 > WIDE_S;
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (!e->used || !e->level_known) {
            continue;
        }
        const double off = fabs(e->level_ns);
        const double limit = park_limit(c, e);
        if (c->regained && e->returned) {
            e->parked = false;
            continue;
        }
        if (!e->parked) {
            if (c->narrow && off > limit &&
                (e->config.witness || 2 * (parked + 1) <= usable || (off > FAR * near && !lost))) {
                parked += !e->config.witness && edge_usable(c, e);
                e->parked = true;
                e->parked_s = 0;
                e->calm_s = 0;
            }
            continue;
        }
        e->parked_s += dt_s;
        e->calm_s = off < UNPARK * limit ? e->calm_s + dt_s : 0;
        if (e->calm_s > UNPARK_S) {
            e->parked = false;
        }
    }
}

/* Most edges have shown for a second that this member is off: move there at once. */
static void regroup(struct clock *c, double dt_s)
{
    const double centre = c->narrow ? middle_level(c, GROUP * park_limit(c, NULL)) : 0;

    c->regroup_s = centre != 0 ? c->regroup_s + dt_s : 0;
    if (c->regroup_s < REGROUP_S) {
        return;
    }
    c->regroup_s = 0;
    clock_disrupt(c, span_ms(300));
    clock_jump(c, (int64_t)centre);
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        e->level_ns -= centre;
        e->expected_ns -= centre;
        contain_move(e, -centre);
        e->calm_s = UNPARK_S; /* edges that fit now take part at once */
    }
}

/* The member's error: the plain mean of its edges' levels, plus the mean of their news, weighted by information. So neither
 * random packet counts nor a lossy edge make a static asymmetry look like noise. */
void consensus_gather(struct clock *c, struct nic_time now)
{
    double level_sum = 0, info_sum = 0, new_sum = 0, age_sum = 0, square_sum = 0, p_sum = 0;
    double sparse_sum = 0, sparse_info = 0, sparse_p = 0;
    int members = 0, with_e = 0;

    update_scale(c);
    update_p_limit(c);
    c->vouching = consensus_peers(c, vouches);
    c->peers_in_gate = consensus_peers(c, takes_part);
    int count = 0;
    for (int i = 0; i < c->capacity; i++) {
        if (takes_part(c, &c->edges[i])) {
            c->values[count++] = c->edges[i].has_e ? c->edges[i].e_ns : c->edges[i].level_ns;
        }
    }
    /* witnesses have no vote: otherwise SYNCED would rest on them */
    ASSERT(count <= c->edge_count);
    c->in_gate = count;
    c->has_mean = false;
    if (count == 0) {
        return;
    }
    const double middle = quantile(c->values, count, 0.5);
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (!takes_part(c, e)) {
            continue;
        }
        const double wide = 1.48 * c->scale_ns * (c->narrow ? 1 : 3);
        const double level = fmin(middle + CLIP * (wide + c->sigma_e_ns),
                                  fmax(middle - CLIP * (wide + c->sigma_e_ns), e->level_ns));
        if (!e->sparse && !e->alike) {
            level_sum += level;
            p_sum += edge_peer_variance(c, e);
            members++;
        }
        if (!e->has_e) {
            continue;
        }
        const double limit =
            CLIP * sqrt(1 / e->e_info + 1.48 * 1.48 * c->scale_ns * c->scale_ns + e->stray2);
        const double clipped = fmin(middle + limit, fmax(middle - limit, e->e_ns));
        if (e->sparse || e->alike) {
            sparse_sum += e->e_info * clipped;
            sparse_info += e->e_info;
            sparse_p += e->e_info * e->e_info * edge_peer_variance(c, e);
        } else {
            new_sum += e->e_info * (clipped - level);
        }
        info_sum += e->e_info;
        age_sum += e->e_info * e->e_age_s;
        square_sum += (clipped - middle) * (clipped - middle);
        with_e++;
    }
    if (with_e == 0) {
        return;
    }
    ASSERT(info_sum > 0 && with_e <= count); /* means over them */
    c->has_mean = true;
    const double base = members > 0 ? level_sum / members : 0;
    c->sure_share = fmax(0, 1 - sparse_info / info_sum);
    c->mean_ns = contain_mean(c, base + (new_sum + sparse_sum - sparse_info * base) / info_sum);
    c->mean_age_s = age_sum / info_sum;
    c->mean_var = 1 / info_sum + (members > 0 ? p_sum / members / members : 0) +
                  sparse_p / info_sum / info_sum;
    const double rms2 = square_sum / with_e;
    c->rms_ns = c->rms_ns == 0 ? sqrt(rms2) : sqrt(0.97 * c->rms_ns * c->rms_ns + 0.03 * rms2);
}

bool consensus_suffices(const struct clock *c)
{
    return c->has_mean && c->peers_in_gate >= (c->needed + 1) / 2;
}

static bool waits(const struct clock *c, const struct clock_edge *e)
{
    return takes_part(c, e) && e->alike && e->info_mean > 0;
}

/* Where the peers whose packets all wait place this member: their plain mean, and its variance in one tick. False: they are so
 * few that all may lie, or less than a quarter of those that are heard. A liar that delays its packets is among them, too. So the
 * clip is centred on the median of all that take part, with a scatter no larger than an honest peer's. */
static bool waiting_mean(struct clock *c, double *ret_mean, double *ret_variance)
{
    const int usable = consensus_peers(c, edge_usable);
    double sum = 0;
    int peers = 0, count = 0;

    for (int i = 0; i < c->capacity; i++) {
        c->order[i] = 0; /* edges to that peer, counted at its lowest edge */
    }
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (waits(c, e) && c->order[e->leader]++ == 0) {
            sample_insert(c->values, (size_t)peers, e->wait_var);
            sample_insert(c->weights, (size_t)peers, 1 / e->info_mean);
            peers++;
        }
    }
    if (peers <= c->liars_max || ISLAND * peers < usable) {
        return false;
    }
    const int honest = peers - 1 - c->liars_max;
    const double most = CLIP * sqrt(c->values[honest] * EXPECT_GAIN);
    *ret_variance = c->weights[honest] / peers;
    for (int i = 0; i < c->capacity; i++) {
        if (takes_part(c, &c->edges[i])) {
            sample_insert(c->values, (size_t)count++, c->edges[i].expected_ns);
        }
    }
    const double middle = c->values[count / 2];
    for (int i = 0; i < c->capacity; i++) {
        const struct clock_edge *e = &c->edges[i];
        if (waits(c, e)) {
            sum += fmin(middle + most, fmax(middle - most, e->expected_ns)) / c->order[e->leader];
        }
    }
    *ret_mean = contain_mean(c, sum / peers);
    return true;
}

/* Members behind one switch hear each other well, and all others through full ports. With weights by information alone each would
 * follow its neighbours. The group would drift away, because its common view of the others is no news to any of them. So this
 * view moves each member separately, at the pace of a filter with this noise and wander. Their filters compare them with each
 * other, and don't notice. */
void consensus_follow(struct clock *c, double dt_s, double *ret_dx, double *ret_dy)
{
    double mean, variance;

    *ret_dx = *ret_dy = 0;
    if (!consensus_suffices(c) || !waiting_mean(c, &mean, &variance)) {
        return;
    }
    const double k1 = fmin(FOLLOW_MOST, bank_wander(&c->bank) / sqrt(variance * dt_s));
    *ret_dx = c->sure_share * sqrt(2 * k1) * dt_s * mean;
    *ret_dy = c->sure_share * k1 * dt_s * mean;
}

void consensus_levels(struct clock *c, struct nic_time now, double dt_s)
{
    for (int i = 0; i < c->capacity; i++) {
        struct clock_edge *e = &c->edges[i];
        if (!e->used || !e->has_e || !edge_usable(c, e)) {
            continue;
        }
        note_boast(c, e, dt_s);
        e->info_mean = e->info_mean == 0 ? e->e_info : 0.99 * e->info_mean + 0.01 * e->e_info;
        e->info_mean = fmin(e->info_mean, INFO_FALL * e->e_info); /* its present scatter */
        ASSERT(e->info_mean > 0); /* gains and the clip are shares of it */
        e->told_at = now;
        if (e->sparse) {
            edge_follow(e);
            continue;
        }
        e->theta_var = 1 / e->e_info;
        e->level_weight = fmin(1 / LEVEL_GAIN, e->level_weight + 1);
        const double s = 1 / sqrt(e->info_mean), most = 3 * s;
        const double gain =
            fmax(LEVEL_GAIN, 1 / (e->level_weight + 1)) * fmin(2, e->e_info / e->info_mean);
        const double e_clipped = fmin(e->expected_ns + most, fmax(e->expected_ns - most, e->e_ns));
        e->level_ns += fmin(1, gain) * (e_clipped - e->level_ns);
        e->expected_ns += EXPECT_GAIN * fmin(most, fmax(-most, e->e_ns - e->expected_ns));
        if (edge_on_the_move(c, e)) {
            e->level_ns = e->expected_ns;
        }
        if (e->config.witness) {
            e->witness_ms += 0.005 * (e->e_ns * e->e_ns - e->witness_ms);
        }
    }
    regroup(c, dt_s);
    park(c, now, dt_s);
}
