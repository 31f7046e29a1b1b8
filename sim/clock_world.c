/* clock_world.c: true time, oscillators, stamps, the graph of neighbours, and the members that get the stamps. */
#include "sim/clock_world_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS_PER_SEND 10 /* 50 ms */
#define SEGMENT_S      0.05
#define EPOCH_NS       1700000000000000000LL

static void *claim(size_t count, size_t size)
{
    void *p = calloc(count, size);

    ASSERT(p != NULL);
    return p;
}

/* -- oscillators
 * -------------------------------------------------------------------------------------------- */

static void advance_oscillator(struct clock_world *w, struct member *m)
{
    const double moved = m->fraction + SEGMENT_S * 1e9 * m->rate;

    m->base += (int64_t)(SEGMENT_S * 1e9) + (int64_t)floor(moved);
    m->fraction = moved - floor(moved);
    m->rate += w->config.wander_ppb * 1e-9 * sqrt(SEGMENT_S) * prng_normal(&w->prng);
    if (m->warming) {
        const bool up = ((int64_t)(w->t_ns / (10 * NS_PER_S)) & 1) != 0;
        m->rate += (up ? 1 : -1) * w->config.temperature_ppb_s * 1e-9 * SEGMENT_S;
    }
}

/* The member's raw clock at true time t: whole ns and fraction. */
static int64_t raw_clock(const struct clock_world *w, const struct member *m, double after_s,
                         double *ret_fraction)
{
    const double moved = m->fraction + after_s * 1e9 * (1 + m->rate);
    const double whole = floor(moved);

    (void)w;
    *ret_fraction = moved - whole;
    return m->base + (int64_t)whole;
}

static int64_t stamp(struct clock_world *w, const struct member *m, double after_s, double sign)
{
    double fraction;
    const int64_t raw = raw_clock(w, m, after_s, &fraction);
    const double noise = w->config.software ? sign * w->config.noise_ns * prng_exponential(&w->prng)
                                            : w->config.noise_ns * prng_normal(&w->prng);

    return raw + (int64_t)floor(fraction + noise + 0.5);
}

/* -- making the world
 * --------------------------------------------------------------------------------------- */

static bool has_edge(const struct clock_world *w, int a, int b)
{
    for (int i = 0; i < w->members[a].degree; i++) {
        if (w->members[a].peers[i] == b) {
            return true;
        }
    }
    return false;
}

static bool allowed(const struct clock_world *w, int a, int b)
{
    const int per = w->config.nics_per_host > 1 ? w->config.nics_per_host : 1;

    return a != b && a / per != b / per && !has_edge(w, a, b);
}

static void join(struct clock_world *w, int a, int b)
{
    w->members[a].peers[w->members[a].degree++] = b;
    w->members[b].peers[w->members[b].degree++] = a;
}

/* A random regular graph: stubs are matched at random. Clashes are matched again, and in the end by swapping. */
static void make_graph(struct clock_world *w)
{
    const int n = w->config.members, k = w->config.degree < n - 1 ? w->config.degree : n - 1;
    int count = 0, *stubs = claim((size_t)n * (size_t)k, sizeof(*stubs));

    for (int i = 0; i < n; i++) {
        w->members[i].peers = claim((size_t)k, sizeof(int));
        w->members[i].edge_of = claim((size_t)k, sizeof(int));
        for (int j = 0; j < k; j++) {
            stubs[count++] = i;
        }
    }
    for (int round = 0; round < 200 && count > 1; round++) {
        for (int i = count - 1; i > 0; i--) {
            const int j = (int)prng_below(&w->prng, (uint64_t)i + 1);
            const int t = stubs[i];
            stubs[i] = stubs[j];
            stubs[j] = t;
        }
        int left = 0;
        for (int i = 0; i + 1 < count; i += 2) {
            if (allowed(w, stubs[i], stubs[i + 1])) {
                join(w, stubs[i], stubs[i + 1]);
            } else {
                stubs[left++] = stubs[i];
                stubs[left++] = stubs[i + 1];
            }
        }
        count = left;
    }
    free(stubs); /* a few stubs may stay single: those members have a degree of k - 1 */
}

static double draw_asymmetry(struct clock_world *w)
{
    const struct clock_world_config *g = &w->config;
    double a = g->asymmetric_uniform_ns * (2 * prng_uniform(&w->prng) - 1);

    if (prng_uniform(&w->prng) < g->asymmetric_share) {
        a += prng_uniform(&w->prng) < 0.5 ? g->asymmetric_ns : -g->asymmetric_ns;
    }
    return a;
}

static void make_edge(struct clock_world *w, int a, int b)
{
    struct clock_world_edge *e = &w->edges[w->edge_count];
    const struct clock_world_config *g = &w->config;
    const double asymmetry = draw_asymmetry(w);

    *e = (struct clock_world_edge){.member = {a, b},
                                   .slot = (int)prng_below(&w->prng, SLOTS_PER_SEND)};
    e->lost = prng_uniform(&w->prng) < g->one_way_loss_share ? (int)prng_below(&w->prng, 2) : -1;
    for (int p = 0; p < g->paths; p++) {
        const double d =
            g->delay_min_ns + (g->delay_max_ns - g->delay_min_ns) * prng_uniform(&w->prng);
        const double off = g->asymmetric_paths ? draw_asymmetry(w) : asymmetry;
        const double apart = w->members[a].place_ns - w->members[b].place_ns;
        e->delay_ns[0][p] = d + off + apart;
        e->delay_ns[1][p] = d - off - apart;
    }
    for (int side = 0; side < 2; side++) {
        struct member *m = &w->members[e->member[side]];
        const struct clock_edge_config c = {.peer = (uint32_t)e->member[1 - side],
                                            .local_nic = {(uint32_t)e->member[side]},
                                            .peer_nic = {(uint32_t)e->member[1 - side]},
                                            .path_count = (uint8_t)g->paths,
                                            .delay_ns_min = (int64_t)g->known_delay_ns,
                                            .chosen = true};
        e->handle[side] = clock_edge_add(m->clock, (struct nic_time){m->base}, &c);
        ASSERT(e->handle[side] >= 0);
        e->baseline[side] = -1;
    }
    w->edge_count++;
}

static void make_clock(struct clock_world *w, int i)
{
    const struct clock_world_config *g = &w->config;
    struct member *m = &w->members[i];
    const struct clock_config c = {.member = (uint32_t)i,
                                   .stamps =
                                       g->software ? CLOCK_STAMPS_SOFTWARE : CLOCK_STAMPS_HARDWARE,
                                   .stamp_noise_ns = 0,
                                   .edge_capacity = (uint16_t)(g->degree + 4),
                                   .wall_minus_ns = m->wall_ns,
                                   .edge_limit_ns = g->edge_limit_ns,
                                   .hops = (uint8_t)g->hops,
                                   .wander_ppb = g->told_wander_ppb,
                                   .seed = g->seed};

    m->clock = clock_new(&c, (struct nic_time){m->base});
    ASSERT(m->clock != NULL);
}

static void make_member(struct clock_world *w, int i)
{
    const struct clock_world_config *g = &w->config;
    struct member *m = &w->members[i];

    m->base = (int64_t)prng_below(&w->prng, 1000000 * (uint64_t)NS_PER_S);
    m->rate = g->rate_ppm * 1e-6 * (2 * prng_uniform(&w->prng) - 1);
    m->warming = g->temperature_ppb_s != 0 && prng_uniform(&w->prng) < 0.25;
    m->wall_ns = EPOCH_NS - m->base + (int64_t)(g->start_ns * (2 * prng_uniform(&w->prng) - 1));
    m->place_ns = g->place_ns > 0 ? g->place_ns * (2 * prng_uniform(&w->prng) - 1) : 0;
    m->named_s = -1;
    make_clock(w, i);
}

/* A tree of hops from member 0, for the baselines. */
static void make_tree(struct clock_world *w)
{
    int *queue = claim((size_t)w->config.members, sizeof(*queue)),
        *hops = claim((size_t)w->config.members, sizeof(*hops));
    int first = 0, last = 0;

    memset(hops, -1, (size_t)w->config.members * sizeof(*hops));
    hops[0] = 0;
    queue[last++] = 0;
    while (first < last) {
        const int i = queue[first++];
        for (int k = 0; k < w->members[i].degree; k++) {
            const int j = w->members[i].peers[k];
            if (hops[j] < 0) {
                hops[j] = hops[i] + 1;
                queue[last++] = j;
            }
        }
    }
    for (int i = 0; i < w->config.members; i++) {
        baseline_init(&w->members[i].baseline, i == 0, w->members[i].base, w->members[i].wall_ns,
                      4);
    }
    for (int i = 0; i < w->edge_count; i++) {
        struct clock_world_edge *e = &w->edges[i];
        for (int side = 0; side < 2; side++) {
            struct baseline *b = &w->members[e->member[side]].baseline;
            if (hops[e->member[1 - side]] == hops[e->member[side]] - 1 &&
                b->server_count < BASELINE_SERVERS) {
                e->baseline[side] = b->server_count;
                b->servers[b->server_count++].member = e->member[1 - side];
            }
        }
    }
    free(queue);
    free(hops);
}

struct clock_world *clock_world_new(const struct clock_world_config *config)
{
    struct clock_world *w = claim(1, sizeof(*w));

    w->config = *config;
    w->config.paths = config->paths > 0 ? config->paths : 1;
    prng_init(&w->prng, config->seed);
    w->members = claim((size_t)config->members, sizeof(*w->members));
    w->edges = claim((size_t)config->members * (size_t)config->degree, sizeof(*w->edges));
    for (int i = 0; i < config->members; i++) {
        make_member(w, i);
    }
    make_graph(w);
    for (int i = 0; i < config->members; i++) {
        for (int k = 0; k < w->members[i].degree; k++) {
            if (w->members[i].peers[k] > i) {
                make_edge(w, i, w->members[i].peers[k]);
            }
        }
    }
    for (int i = 0; i < config->members && config->lie != LIE_NONE; i++) {
        w->members[i].liar =
            prng_uniform(&w->prng) < config->liar_share && i >= config->event_count;
    }
    if (config->baselines) {
        make_tree(w);
    }
    judge_init(w);
    return w;
}

void clock_world_free(struct clock_world *w)
{
    if (w == NULL) {
        return;
    }
    for (int i = 0; i < w->config.members; i++) {
        clock_free(w->members[i].clock);
        free(w->members[i].peers);
        free(w->members[i].edge_of);
    }
    judge_done(w);
    free(w->members);
    free(w->edges);
    free(w);
}

/* -- packets
 * ------------------------------------------------------------------------------------------------
 */

/* The message of `from` to `to`: true, or a lie. */
static void speak(struct clock_world *w, int from, int to, struct nic_time now,
                  struct clock_published *p)
{
    clock_published(w->members[from].clock, now, p);
    if (w->members[from].liar && (double)w->t_ns * 1e-9 >= w->config.lie_from_s) {
        clock_lie(w, to, p);
    }
}

/* Sends one packet: draws its queueing, and takes both stamps. */
static void fly(struct clock_world *w, struct clock_world_edge *e, int side, int path,
                double after_s, int64_t *tx, int64_t *rx)
{
    const struct clock_world_config *g = &w->config;
    double delay = e->delay_ns[side][path];

    if (g->queue_share > 0 && prng_uniform(&w->prng) < g->queue_share) {
        delay += g->queue_ns * prng_exponential(&w->prng);
    }
    *tx = stamp(w, &w->members[e->member[side]], after_s, -1);
    *rx = stamp(w, &w->members[e->member[1 - side]], after_s + delay * 1e-9, 1);
    w->packets++;
}

static void give_point(struct clock_world *w, struct clock_world_edge *e, int to_side,
                       const struct flight *f, bool forward, struct nic_time now)
{
    const struct clock_point p = {.edge = e->handle[to_side],
                                  .path = f->path,
                                  .forward = forward,
                                  .local = {forward ? f->tx : f->rx},
                                  .remote = {forward ? f->rx : f->tx},
                                  .local_gap_ns = forward ? f->tx_gap : f->rx_gap,
                                  .remote_gap_ns = forward ? f->rx_gap : f->tx_gap};
    struct member *m = &w->members[e->member[to_side]];

    clock_on_point(m->clock, now, &p);
    if (w->config.baselines && e->baseline[to_side] >= 0) {
        baseline_point(&m->baseline, e->baseline[to_side],
                       &w->members[e->member[1 - to_side]].baseline, f->path, forward, p.local.ns,
                       p.remote.ns);
    }
}

static bool arrives(const struct clock_world *w, const struct clock_world_edge *e, int side)
{
    const struct clock_world_config *g = &w->config;
    const double t_s = (double)w->t_ns * 1e-9;
    const int half = g->members / 2;

    return (e->lost != side || t_s < g->one_way_loss_from_s) &&
           (t_s < g->parted_from_s || t_s >= g->parted_until_s ||
            (e->member[0] < half) == (e->member[1] < half));
}

/* Sends one end's packet. The other end gets its header, the departure of its last packet, and its last arrival from the other
 * end. */
static void send(struct clock_world *w, struct clock_world_edge *e, int side, bool pair,
                 double after_s)
{
    struct member *to = &w->members[e->member[1 - side]];
    struct flight f = {.path = (uint8_t)(e->sent[side] / 2 % (uint32_t)w->config.paths),
                       .valid = true};
    double fraction;

    if (!pair) {
        f.path = (uint8_t)((e->sent[side] / 2 + 1) % (uint32_t)w->config.paths);
    }
    e->sent[side]++;
    if (w->members[e->member[side]].asleep_until_ns > w->t_ns || to->asleep_until_ns > w->t_ns) {
        return;
    }
    fly(w, e, side, f.path, after_s, &f.tx, &f.rx);
    if (pair) {
        int64_t tx, rx;
        fly(w, e, side, f.path, after_s + 10e-6, &tx, &rx);
        if (tx - f.tx > 0 && rx - f.rx > 0) { /* reordered pairs count as single packets */
            f.tx_gap = (int32_t)(tx - f.tx);
            f.rx_gap = (int32_t)(rx - f.rx);
        }
    }
    if (!arrives(w, e, side)) {
        return;
    }
    const struct nic_time now = {raw_clock(w, to, after_s + 20e-6, &fraction)};
    const struct nic_time from_now = {
        raw_clock(w, &w->members[e->member[side]], after_s, &fraction)};
    struct clock_published heard;
    speak(w, e->member[side], e->member[1 - side], from_now, &heard);
    clock_on_peer(to->clock, now, e->handle[1 - side], &heard);
    if (e->last[side].valid) {
        give_point(w, e, 1 - side, &e->last[side], false, now);
    }
    if (e->last[1 - side].valid && !e->told[1 - side]) {
        give_point(w, e, 1 - side, &e->last[1 - side], true, now);
        e->told[1 - side] = true;
    }
    e->last[side] = f;
    e->told[side] = false;
}

/* -- time
 * ---------------------------------------------------------------------------------------------------
 */

static void ask_others(struct clock_world *w, int asker, uint32_t about, struct nic_time now)
{
    const struct member *j = &w->members[about];

    for (int n = 0; n < 6 && n < j->degree; n++) {
        const int k = j->peers[prng_below(&w->prng, (uint64_t)j->degree)];
        if (k == asker) {
            continue;
        }
        struct clock_answer a = clock_answer(w->members[k].clock, about);
        if (w->members[k].liar) {
            clock_lie_answer(w, &a);
        }
        clock_on_answer(w->members[asker].clock, now, &a);
    }
}

static void drain(struct clock_world *w, int i, struct nic_time now)
{
    struct clock_action a;

    while (clock_next_action(w->members[i].clock, &a)) {
        if (a.kind == CLOCK_ACTION_QUERY) {
            ask_others(w, i, a.peer, now);
        } else if (a.kind != CLOCK_ACTION_PUBLISH) {
            judge_action(w, i, &a);
        }
    }
}

static void tick_members(struct clock_world *w, double after_s)
{
    for (int i = 0; i < w->config.members; i++) {
        struct member *m = &w->members[i];
        double fraction;
        if (m->asleep_until_ns > w->t_ns) {
            continue;
        }
        const struct nic_time now = {raw_clock(w, m, after_s, &fraction)};
        if (!w->config.unguarded) {
            clock_on_guard(m->clock, now, 500, 60e-6);
        }
        if (now.ns >= clock_deadline(m->clock).ns) {
            clock_tick(m->clock, now);
            drain(w, i, now);
        }
    }
}

static void happen(struct clock_world *w)
{
    const struct clock_world_config *g = &w->config;

    for (int i = 0; i < g->event_count; i++) {
        struct member *m = &w->members[i];
        const struct nic_time now = {m->base};
        m->base += (int64_t)g->step_ns;
        m->rate += g->jump_ppm * 1e-6;
        if (g->suspend_s > 0) {
            m->asleep_until_ns = w->t_ns + (int64_t)(g->suspend_s * 1e9);
            m->suspended = true;
        }
        if (g->restart) {
            struct clock_saved saved;
            clock_save(m->clock, now, &saved);
            clock_free(m->clock);
            make_clock(w, i);
            for (int e = 0; e < w->edge_count; e++) {
                for (int side = 0; side < 2; side++) {
                    if (w->edges[e].member[side] == i) {
                        const struct clock_edge_config c = {
                            .peer = (uint32_t)w->edges[e].member[1 - side],
                            .local_nic = {(uint32_t)i},
                            .peer_nic = {(uint32_t)w->edges[e].member[1 - side]},
                            .path_count = (uint8_t)g->paths,
                            .delay_ns_min = (int64_t)g->known_delay_ns,
                            .chosen = true};
                        w->edges[e].handle[side] = clock_edge_add(m->clock, now, &c);
                    }
                }
            }
            ASSERT(clock_restore(m->clock, now, &saved) == 0);
        }
    }
}

/* A guard notices a frequency jump within 5 ms: G plus J t of drift against the host's other clock. The first pass after
 * waking notices a suspend. */
static void guards(struct clock_world *w, double since_event_s)
{
    const struct clock_world_config *g = &w->config;

    if (w->config.unguarded || since_event_s < 0) {
        return;
    }
    for (int i = 0; i < g->event_count; i++) {
        struct member *m = &w->members[i];
        if (m->suspended && m->asleep_until_ns <= w->t_ns) {
            m->suspended = false;
            /* the raw clock stood still during the suspend */
            m->base -= (int64_t)(g->suspend_s * 1e9);
            clock_on_fault(m->clock, (struct nic_time){m->base}, CLOCK_FAULT_SUSPEND);
        }
        if (g->jump_ppm != 0 && !m->guard_told && fabs(g->jump_ppm) * since_event_s * 1e3 > 500) {
            m->guard_told = true;
            clock_on_fault(m->clock, (struct nic_time){m->base}, CLOCK_FAULT_GUARD);
        }
    }
}

bool clock_world_step(struct clock_world *w)
{
    const struct clock_world_config *g = &w->config;
    const int slot = (int)(w->t_ns / CLOCK_WORLD_SLOT_NS % SLOTS_PER_SEND);
    const bool odd = (w->t_ns / CLOCK_WORLD_SLOT_NS / SLOTS_PER_SEND & 1) != 0;
    const double slot_s = slot * (double)CLOCK_WORLD_SLOT_NS * 1e-9;

    if ((double)w->t_ns * 1e-9 >= g->seconds) {
        return false;
    }
    const int64_t event_ns = (int64_t)(g->event_s * 1e9);
    if (g->event_count > 0 && w->t_ns == event_ns / (CLOCK_WORLD_SLOT_NS * SLOTS_PER_SEND) *
                                             (CLOCK_WORLD_SLOT_NS * SLOTS_PER_SEND)) {
        happen(w);
    }
    if (g->event_count > 0) {
        guards(w, (double)(w->t_ns - event_ns) * 1e-9);
    }
    for (int i = 0; i < w->edge_count; i++) {
        struct clock_world_edge *e = &w->edges[i];
        if (e->slot != slot) {
            continue;
        }
        for (int side = 0; side < 2; side++) {
            const double after_s = slot_s + 1e-3 * prng_uniform(&w->prng) + 2e-3 * side;
            send(w, e, side, odd == (side == 1), after_s);
        }
    }
    tick_members(w, slot_s + 4.5e-3);
    if (slot % 2 == 1) {
        judge_slot(w, slot_s + 4.8e-3);
    }
    w->t_ns += CLOCK_WORLD_SLOT_NS;
    if (slot == SLOTS_PER_SEND - 1) {
        for (int i = 0; i < g->members; i++) {
            advance_oscillator(w, &w->members[i]);
        }
    }
    return true;
}

/* -- for the judge and for tests
 * ---------------------------------------------------------------------------- */

double clock_world_line_ns(const struct clock_world *w, int i, double after_s)
{
    const struct member *m = &w->members[i];
    struct clock_terms t;
    double fraction;
    const int64_t raw = raw_clock(w, m, after_s, &fraction);

    /* own arithmetic, without the core's maps */
    clock_terms(m->clock, &t);
    const double since = (double)(raw - t.line.r.ns) + fraction;
    const double slewed = fmin(since, (double)(t.line.until.ns - t.line.r.ns));
    const int64_t true_ns = EPOCH_NS + w->t_ns / (CLOCK_WORLD_SLOT_NS * SLOTS_PER_SEND) *
                                           (CLOCK_WORLD_SLOT_NS * SLOTS_PER_SEND);
    return (double)(raw + t.line.x_ns - true_ns) - after_s * 1e9 + fraction + t.line.x_fraction +
           t.line.y * since + t.line.slew * slewed;
}

double clock_world_baseline_ns(const struct clock_world *w, int i, const struct baseline_map *map,
                               double after_s)
{
    double fraction;
    const int64_t raw = raw_clock(w, &w->members[i], after_s, &fraction);
    const int64_t true_ns = EPOCH_NS + w->t_ns / (CLOCK_WORLD_SLOT_NS * SLOTS_PER_SEND) *
                                           (CLOCK_WORLD_SLOT_NS * SLOTS_PER_SEND);

    return baseline_offset(map, raw, fraction, true_ns) - after_s * 1e9;
}

struct nic_time clock_world_now(const struct clock_world *w, int i, double after_s)
{
    double fraction;

    return (struct nic_time){raw_clock(w, &w->members[i], after_s, &fraction)};
}

struct clock *clock_world_member(struct clock_world *w, int member)
{
    return w->members[member].clock;
}

void clock_world_run(const struct clock_world_config *config, struct clock_world_result *ret_result)
{
    struct clock_world *w = clock_world_new(config);

    while (clock_world_step(w)) {
    }
    clock_world_result(w, ret_result);
    clock_world_free(w);
}
