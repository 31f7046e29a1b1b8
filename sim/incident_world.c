/* incident_world.c: draws hosts, ways and black holes from a seed, reports them to the brain as a controller does, and calls the
 * judge. */
#include "sim/incident_world.h"

#include <stdio.h>
#include <stdlib.h>

#include "service/alert/file.h"
#include "sim/incident_private.h"

static uint32_t below(struct world *w, uint32_t bound)
{
    return (uint32_t)prng_below(&w->prng, bound);
}

/* ---- the fabric --------------------------------------------------------------------------------------------------- */

static uint32_t leaf_of(uint32_t nic)
{
    return nic / NICS / LEAF_HOSTS * NICS + nic % NICS;
}

static void lay_ways(struct world *w)
{
    for (uint32_t nic = 0; nic < w->config.hosts * NICS; nic++) {
        struct way *own = &w->ways[nic / NICS * INCOMING + nic % NICS * (PEERS * PORTS)];
        for (uint32_t k = 0; k < PEERS; k++) {
            uint32_t host = below(w, w->config.hosts);
            host = host == nic / NICS ? (host + 1) % w->config.hosts : host;
            for (uint32_t p = 0; p < PORTS; p++) {
                struct way *way = &own[k * PORTS + p];
                *way = (struct way){.from = host * NICS + nic % NICS, .to = nic, .port = 7640 + p};
                way->leaf_from = leaf_of(way->from);
                way->leaf_to = leaf_of(nic);
                way->spine = way->leaf_from == way->leaf_to ? SPINES : (nic + k + p) % SPINES;
            }
        }
    }
}

bool incident_swallows(const struct fault *x, const struct way *way)
{
    const bool up = way->spine == x->spine && way->leaf_from == x->leaf,
               down = way->spine == x->spine && way->leaf_to == x->leaf;

    switch (x->kind) {
    case FAULT_SENDS:
        return way->from == x->nic;
    case FAULT_RECEIVES:
        return way->to == x->nic;
    case FAULT_NIC:
        return way->from == x->nic || way->to == x->nic;
    case FAULT_UP:
        return up;
    case FAULT_DOWN:
        return down;
    default:
        return up || down;
    }
}

bool incident_is_felt(const struct world *w, const struct fault *x)
{
    return x->used && !x->over && w->now_s >= x->from_s + SEEN_S;
}

/* True state of a way: all packets are lost, or a share of them, by any fault except that one. */
static enum way_state state_of(const struct world *w, const struct way *way,
                               const struct fault *without, uint32_t *ret_ppm)
{
    enum way_state state = WAY_CLEAN;

    *ret_ppm = 0;
    for (uint32_t k = 0; k < FAULT_MAX && state != WAY_DEAD; k++) {
        const struct fault *x = &w->faults[k];
        if (x == without || !incident_is_felt(w, x) || !incident_swallows(x, way)) {
            continue;
        }
        if (!x->turned || x->loss_ppm == 0) {
            state = WAY_DEAD;
        } else {
            *ret_ppm = x->loss_ppm > *ret_ppm ? x->loss_ppm : *ret_ppm;
            state = state == WAY_LOSSY || w->now_s >= x->lossy_s ? WAY_LOSSY : WAY_DOUBTED;
        }
    }
    return state;
}

/* ---- reports ------------------------------------------------------------------------------------------------------ */

static int tell(struct world *w, enum brain_fact fact, const void *data, struct brain_answer *ret)
{
    struct brain_answer own;
    struct brain_answer *answer = ret != NULL ? ret : &own;
    const int r = brain_tell(w->brain, w->now, fact, data, answer);

    if (fact == BRAIN_HOSTS_NEXT || fact == BRAIN_ALERTS_NEXT || fact == BRAIN_PLACE ||
        fact >= BRAIN_CANARY) {
        w->result.trace = hash_u64(w->result.trace, brain_answer_print(fact, answer));
    }
    return r;
}

static struct locate_route route_of(const struct way *way)
{
    struct locate_route r = {.from_host = {way->from / NICS},
                             .to_host = {way->to / NICS},
                             .from = {way->from},
                             .to = {way->to},
                             .teller = {way->to / NICS}};

    r.boxes[r.box_count++] = (struct locate_box){1 + way->leaf_from, ELEMENT_LEAF};
    if (way->spine < SPINES) {
        r.boxes[r.box_count++] = (struct locate_box){100000 + way->spine, ELEMENT_SPINE};
        r.boxes[r.box_count++] = (struct locate_box){1 + way->leaf_to, ELEMENT_LEAF};
    }
    return r;
}

/* all: also clean paths that nothing has asked for. */
static void tell_paths(struct world *w, uint32_t host, bool all)
{
    const struct inquiry *q = brain_inquiry(w->brain);

    for (uint32_t k = 0; k < INCOMING; k++) {
        const uint32_t at = host * INCOMING + k;
        const struct way *way = &w->ways[at];
        const struct told_way *told = &w->told[at];
        if (all || told->state >= WAY_LOSSY ||
            inquiry_has(q, (struct nic_id){way->from}, (struct nic_id){way->to},
                        (uint16_t)way->port)) {
            const struct brain_path path = {.at = {(int64_t)w->reported_s[host] * NS_PER_S},
                                            .path = {.route = route_of(way),
                                                     .port = (uint16_t)way->port,
                                                     .dead = told->state == WAY_DEAD,
                                                     .lossy = told->state == WAY_LOSSY,
                                                     .loss_ppm = told->loss_ppm}};
            tell(w, BRAIN_PATH, &path, NULL);
        }
    }
}

static void report(struct world *w, uint32_t host)
{
    struct fleet_report r = {.host = host, .rollup = true, .clock = FLEET_CLOCK_SYNCED};
    uint32_t round, lost = 0;

    for (uint32_t k = 0; k < INCOMING; k++) {
        struct told_way *told = &w->told[host * INCOMING + k];
        told->state = (uint8_t)state_of(w, &w->ways[host * INCOMING + k], NULL, &told->loss_ppm);
        r.paths_dead += told->state == WAY_DEAD;
        lost += told->state >= WAY_LOSSY;
    }
    w->reported_s[host] = w->now_s;
    tell(w, BRAIN_REPORT, &r, NULL);
    if (lost > 0 || inquiry_wants(brain_inquiry(w->brain), &round)) {
        tell_paths(w, host, false);
    }
}

static struct element trunk(uint32_t leaf, uint32_t spine)
{
    struct element e = element_of(ELEMENT_TRUNK, PLACE_LEAF, leaf);

    e.b = (struct place){.kind = PLACE_SPINE, .number = spine};
    return e;
}

/* Like a controller: from the leaf upwards. */
static struct element element_from(const struct locate_element *e)
{
    const bool swap = e->kind == ELEMENT_TRUNK && e->a >= 100000;
    const uint64_t a = swap ? e->b : e->a, b = swap ? e->a : e->b;
    struct element r = element_unknown();

    if (e->kind == ELEMENT_NIC || e->kind == ELEMENT_HOST) {
        r = element_of((enum element_kind)e->kind, e->kind == ELEMENT_NIC ? PLACE_NIC : PLACE_HOST,
                       (uint32_t)e->a);
    } else if (e->kind == ELEMENT_TRUNK) {
        r = trunk((uint32_t)a - 1, (uint32_t)b - 100000);
    } else if (e->kind == ELEMENT_LEAF || e->kind == ELEMENT_SPINE) {
        r = element_of((enum element_kind)e->kind,
                       e->kind == ELEMENT_LEAF ? PLACE_LEAF : PLACE_SPINE,
                       (uint32_t)(e->kind == ELEMENT_LEAF ? e->a - 1 : e->a - 100000));
    }
    r.direction = !swap || e->direction == DIRECTION_BOTH ? e->direction
                  : e->direction == DIRECTION_OUT         ? DIRECTION_IN
                                                          : DIRECTION_OUT;
    return r;
}

static void say(struct world *w, const struct word *own, uint32_t phase)
{
    const struct way *way = &w->ways[own->way];
    struct brain_place place = {.since = {(int64_t)own->since_s * NS_PER_S},
                                .route = route_of(way)};
    struct alert_finding f = {.said_by = own->host,
                              .run = 1,
                              .number = own->number,
                              .kind = own->lossy ? FINDING_PATH_LOSSY : FINDING_PATH_DEAD,
                              .phase = phase,
                              .from_nic = way->from,
                              .to_nic = way->to,
                              .from_host = way->from / NICS,
                              .to_host = way->to / NICS,
                              .port = way->port,
                              .suspect = element_unknown(),
                              .since = place.since,
                              .heard = {(int64_t)own->heard_s * NS_PER_S},
                              .text = own->lossy ? "a path loses a share" : "a path is dead"};
    struct brain_answer is;

    if (tell(w, BRAIN_PLACE, &place, &is) == 1) {
        f.suspect = element_from(&is.element);
    } else if (own->word.kind != ELEMENT_UNKNOWN) {
        element_choice_add(&f.choice, &own->word);
        f.choice.total++;
    }
    tell(w, BRAIN_FINDING, &f, NULL);
}

/* Updates findings that another element explains by now. */
static void retell(struct world *w)
{
    const uint32_t version = inquiry_version(brain_inquiry(w->brain));

    for (uint32_t k = 0; version != w->version && k < FAULT_MAX; k++) {
        for (uint32_t n = 0;
             w->faults[k].used && w->faults[k].seen && n < w->faults[k].finding_count; n++) {
            say(w, &w->faults[k].findings[n], FINDING_UPDATED);
        }
    }
    w->version = version;
}

/* ---- faults ------------------------------------------------------------------------------------------------------- */

static bool same_place(const struct fault *x, const struct fault *y)
{
    return incident_of_nic(x) == incident_of_nic(y) &&
           (incident_of_nic(x) ? x->nic == y->nic : x->leaf == y->leaf && x->spine == y->spine);
}

/* It recovers in part: in one direction, or it loses only a share from then on. */
static void draw_turn(struct world *w, struct fault *x)
{
    const bool both = x->kind == FAULT_NIC || x->kind == FAULT_TRUNK;

    x->turn_s = x->from_s + SETTLE_S + 15 + below(w, 60);
    x->until_s = x->turn_s + LOSSY_S + 13 + RULES_S + below(w, 120);
    x->then = x->kind;
    if (both && below(w, 2) == 0) {
        x->then = (enum fault_kind)(x->kind - 1 - below(w, 2));
    } else {
        x->loss_ppm = 100000 + 50000 * below(w, 9);
        x->lossy_s = x->turn_s + LOSSY_S + below(w, 14);
    }
}

static void begin_fault(struct world *w, struct fault *x)
{
    *x = (struct fault){.used = true,
                        .kind = (enum fault_kind)below(w, FAULT_KINDS),
                        .nic = below(w, w->config.hosts * NICS),
                        .leaf = below(w, w->leaves),
                        .spine = below(w, SPINES),
                        .number = ++w->numbers,
                        .from_s = w->now_s,
                        .until_s = w->now_s + 45 + below(w, 120)};
    for (uint32_t k = 0; k < FAULT_MAX;
         /* a fault that ended a moment ago can't return yet: it would be the same incident */
         k++) {
        x->used = x->used &&
                  (&w->faults[k] == x || !w->faults[k].used || !same_place(x, &w->faults[k])) &&
                  (!w->past[k].used || !same_place(x, &w->past[k]));
    }
    w->result.faults += x->used;
    if (x->used && w->config.turns) {
        draw_turn(w, x);
    }
}

/* Each host guesses an element: the sender, a trunk, or none. */
static struct element guess(struct world *w, const struct way *way)
{
    switch (below(w, 3)) {
    case 0:
        return element_of(ELEMENT_NIC, PLACE_NIC, way->from);
    case 1:
        return way->spine < SPINES ? trunk(way->leaf_to, way->spine) : element_unknown();
    default:
        return element_unknown();
    }
}

/* A way of that host that this fault takes, and no other fault; INCOMING: none. */
static uint32_t way_lost(const struct world *w, const struct fault *x, uint32_t host)
{
    uint32_t ppm;

    for (uint32_t k = 0; k < INCOMING; k++) {
        const struct way *way = &w->ways[host * INCOMING + k];
        if (incident_swallows(x, way) && state_of(w, way, x, &ppm) == WAY_CLEAN) {
            return k;
        }
    }
    return INCOMING;
}

static void open_finding(struct world *w, struct fault *x, uint32_t host, uint32_t way, bool lossy)
{
    struct word *f = &x->findings[x->finding_count++];

    *f = (struct word){.host = host,
                       .way = host * INCOMING + way,
                       .number = lossy ? ++w->numbers : x->number,
                       .since_s = lossy ? x->turn_s : x->from_s,
                       .heard_s = w->now_s,
                       .lossy = lossy};
    f->word = guess(w, &w->ways[f->way]);
    say(w, f, FINDING_OPENED);
}

/* All hosts that miss packets report, and some have a finding. */
static void see_fault(struct world *w, struct fault *x)
{
    x->seen = true;
    for (uint32_t h = 0; h < w->config.hosts; h++) {
        const uint32_t hit = way_lost(w, x, h);
        if (hit < INCOMING) {
            report(w, h);
        }
        if (hit < INCOMING && x->finding_count < FINDING_HOSTS) {
            open_finding(w, x, h, hit, false);
        }
    }
}

/* The fault that keeps the finding from now on: another one that takes its way, if there is one. */
static struct fault *heir_of(struct world *w, const struct fault *x, const struct word *f)
{
    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        struct fault *y = &w->faults[k];
        if (y != x && incident_is_felt(w, y) && incident_swallows(y, &w->ways[f->way]) &&
            (!y->turned || y->loss_ppm == 0) && y->finding_count < FINDING_MAX) {
            return y;
        }
    }
    return NULL;
}

/* Findings whose way is as before stay, also if another fault is the cause; the others are over. */
static void look_at_findings(struct world *w, struct fault *x)
{
    uint32_t kept = 0, ppm;

    for (uint32_t n = 0; n < x->finding_count; n++) {
        struct word f = x->findings[n];
        const enum way_state is = state_of(w, &w->ways[f.way], NULL, &ppm);
        const bool own = incident_is_felt(w, x) && incident_swallows(x, &w->ways[f.way]);
        struct fault *heir = own || f.lossy || is != WAY_DEAD ? NULL : heir_of(w, x, &f);

        if (own && (is == WAY_DEAD) == !f.lossy) {
            x->findings[kept++] = f;
        } else if (heir != NULL) {
            heir->findings[heir->finding_count++] = f;
        } else {
            say(w, &f, FINDING_CLOSED);
        }
    }
    x->finding_count = kept;
}

/* A path that was dead and is alive is reported at once. */
static void report_changed(struct world *w)
{
    for (uint32_t h = 0; h < w->config.hosts; h++) {
        bool any = false;
        for (uint32_t k = 0; k < INCOMING && !any; k++) {
            const struct told_way *told = &w->told[h * INCOMING + k];
            uint32_t ppm;
            any = told->state >= WAY_LOSSY &&
                  told->state != state_of(w, &w->ways[h * INCOMING + k], NULL, &ppm);
        }
        if (any) {
            report(w, h);
        }
    }
}

static void turn_fault(struct world *w, struct fault *x)
{
    x->turned = true;
    x->kind = x->then;
    report_changed(w);
    look_at_findings(w, x);
}

/* Hosts that lose a share know it by now. */
static void tell_lossy(struct world *w, struct fault *x)
{
    for (uint32_t h = 0; h < w->config.hosts && x->finding_count < FINDING_HOSTS; h++) {
        const uint32_t hit = way_lost(w, x, h);
        if (hit < INCOMING) {
            report(w, h);
            open_finding(w, x, h, hit, true);
        }
    }
}

static void end_fault(struct world *w, struct fault *x)
{
    x->over = true;
    report_changed(w);
    look_at_findings(w, x);
    w->past[w->past_next++ % FAULT_MAX] = *x;
    x->used = false;
}

static void play_faults(struct world *w)
{
    uint32_t open = 0;

    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        struct fault *x = &w->faults[k];
        if (x->used && !x->seen && w->now_s >= x->from_s + SEEN_S) {
            see_fault(w, x);
        }
        if (x->used && x->turn_s > 0 && !x->turned && w->now_s >= x->turn_s) {
            turn_fault(w, x);
        }
        if (x->used && x->turned && x->loss_ppm > 0 && w->now_s == x->lossy_s) {
            tell_lossy(w, x);
        }
        if (x->used && w->now_s >= x->until_s) {
            end_fault(w, x);
        }
        open += x->used;
    }
    for (uint32_t k = 0; k < FAULT_MAX && open < w->config.faults; k++) {
        if (!w->faults[k].used && below(w, 40) == 0) {
            begin_fault(w, &w->faults[k]);
            open++;
        }
    }
}

/* ---- life --------------------------------------------------------------------------------------------------------- */

static bool name_nic(void *context, uint32_t nic, struct alert_nic *ret)
{
    static char name[32], leaf[32];

    (void)context;
    snprintf(name, sizeof(name), "h%u/nic%u", nic / NICS, nic % NICS);
    snprintf(leaf, sizeof(leaf), "leaf%u", leaf_of(nic));
    *ret = (struct alert_nic){.name = name, .leaf = leaf, .host = nic / NICS, .rail = nic % NICS};
    return true;
}

static const char *name_host(void *context, uint32_t host)
{
    static char name[32];

    (void)context;
    snprintf(name, sizeof(name), "h%u", host);
    return name;
}

/* One operator's fleet. */
static uint64_t tenant_of(void *context, uint32_t host)
{
    (void)context;
    (void)host;
    return 1;
}

static bool tell_rules(struct world *w)
{
    struct alert_file *file = malloc(sizeof(*file));
    struct alert_config *config = calloc(1, sizeof(*config));
    struct config_error error;
    bool good =
        file != NULL && config != NULL && alert_file_parse("defaults", NULL, 0, file, &error) == 0;

    if (good) {
        alert_file_config(file, config);
        good = tell(w, BRAIN_RULES, config, NULL) == 0;
    }
    free(file);
    free(config);
    return good;
}

static bool begin(struct world *w)
{
    const struct alert_fleet names_of = {.nic = name_nic, .host = name_host, .tenant = tenant_of};
    const struct fleet_terms terms = {
        .beat = span_s(BEAT_S), .report = span_s(REPORT_S), .finding_max = 4096};
    const uint32_t hosts = w->config.hosts;

    w->brain = brain_new();
    if (w->brain == NULL) {
        return false;
    }
    brain_names(w->brain, &names_of);
    brain_witness(w->brain, w->config.witness);
    if (tell(w, BRAIN_TERMS, &terms, NULL) < 0 ||
        tell(w, BRAIN_ROOM, &(struct brain_room){hosts, hosts * NICS}, NULL) < 0 ||
        tell(w, BRAIN_INQUIRY, &(struct brain_inquiry){PATHS, span_s(REPORT_S)}, NULL) < 0 ||
        !tell_rules(w)) {
        return false;
    }
    for (uint32_t h = 0; h < hosts; h++) {
        const uint32_t nics[NICS] = {h * NICS, h * NICS + 1};
        tell(w, BRAIN_MEMBER, &(struct fleet_member){h, true, nics, NICS}, NULL);
    }
    lay_ways(w);
    return true;
}

static void hear(struct world *w)
{
    for (uint32_t h = 0; h < w->config.hosts; h++) {
        const uint32_t turn = w->now_s + h;
        if (turn % BEAT_S == 0) {
            tell(w, BRAIN_HOST, &(struct brain_host){h}, NULL);
            tell(w, BRAIN_HEARD, &(struct brain_heard){.host = h}, NULL);
        }
        if (turn % REPORT_S == 0) {
            report(w, h);
        }
    }
}

/* ---- trials ------------------------------------------------------------------------------------------------------- */

static void begin_trial(struct world *w)
{
    w->tried_s = w->now_s;
    w->result.trials++;
    for (uint32_t k = 0; k < TRIED_BY; k++) {
        const uint32_t host = (w->now_s + k) % w->config.hosts;
        w->tried_by[k] = host;
        w->canaries[k] = (struct rollout_canary){
            .run = 1,
            .health = (uint8_t)fleet_host_health(brain_hosts(w->brain), host, w->now),
            .confirmed = true,
            .worse = MONO_NEVER};
    }
}

static void play_trial(struct world *w)
{
    struct rollout_facts facts = {.watch = span_s(WATCH_S)};
    struct brain_answer answer;

    if (w->now_s % TRIAL_S == 0) {
        begin_trial(w);
    }
    if (w->tried_s == 0) {
        return;
    }
    facts.age = span_s(w->now_s - w->tried_s);
    for (uint32_t k = 0; k < TRIED_BY; k++) {
        const struct brain_canary told = {.host = w->tried_by[k],
                                          .run = 1,
                                          .heard = true,
                                          .began = {w->tried_s * NS_PER_S},
                                          .canary = w->canaries[k],
                                          .facts = facts};
        tell(w, BRAIN_CANARY, &told, &answer);
        w->canaries[k] = answer.trial.canary;
        facts = answer.trial.facts;
    }
    const int verdict = tell(w, BRAIN_TRIAL, &facts, &answer);
    w->result.taken_back += verdict == ROLLOUT_BAD;
    w->tried_s = verdict == ROLLOUT_WAIT ? w->tried_s : 0;
}

static void second(struct world *w)
{
    uint32_t round;

    hear(w);
    play_faults(w);
    tell(w, BRAIN_HOSTS_TICK, NULL, NULL);
    while (tell(w, BRAIN_HOSTS_NEXT, NULL, NULL) == 1) {
    }
    if (inquiry_wants(brain_inquiry(w->brain), &round) && round != w->round) {
        w->round = round;
        for (uint32_t h = 0; h < w->config.hosts; h++) {
            if (w->reported_s[h] > 0) {
                tell_paths(w, h, true);
            }
        }
    }
    for (uint32_t k = 0; k < 4; k++) {
        tell(w, BRAIN_LOOK, NULL, NULL);
        retell(w);
        tell(w, BRAIN_ALERTS_TICK, NULL, NULL);
        while (tell(w, BRAIN_ALERTS_NEXT, NULL, NULL) == 1) {
        }
        w->now = mono_add(w->now, span_ms(250));
    }
    play_trial(w);
    incident_judge(w);
}

struct incident_world_result incident_world_run(const struct incident_world_config *config)
{
    struct incident_world_result result = {.wrong = 1, .first = "no memory"};
    struct world *w = calloc(1, sizeof(*w));
    struct alert_counters counters;

    if (w == NULL) {
        return result;
    }
    w->config = *config;
    w->leaves = (config->hosts + LEAF_HOSTS - 1) / LEAF_HOSTS * NICS;
    w->now_s = 1;
    w->now = (struct mono){NS_PER_S};
    w->ways = calloc((size_t)config->hosts * INCOMING, sizeof(*w->ways));
    w->told = calloc((size_t)config->hosts * INCOMING, sizeof(*w->told));
    w->reported_s = calloc(config->hosts, sizeof(*w->reported_s));
    prng_init(&w->prng, config->seed);
    if (w->ways != NULL && w->told != NULL && w->reported_s != NULL && begin(w)) {
        for (; w->now_s <= config->seconds; w->now_s++) {
            second(w);
        }
        alerts_counters(brain_alerts(w->brain), &counters);
        result = w->result;
        result.incidents = counters.notifications;
    }
    brain_delete(w->brain);
    free(w->ways);
    free(w->told);
    free(w->reported_s);
    free(w);
    return result;
}
