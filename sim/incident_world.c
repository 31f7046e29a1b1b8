/* incident_world.c: draws hosts, paths and black holes from a seed, passes to the brain what a controller would, and judges
 * its incidents. */
#include "sim/incident_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "service/alert/file.h"

enum {
    NICS = 2, /* of a host; each is on a leaf of its rail */
    LEAF_HOSTS = 16,
    SPINES = 4,
    PEERS = 8,                       /* that send to a NIC */
    PORTS = 4,                       /* paths from each of them, over as many spines */
    INCOMING = NICS * PEERS * PORTS, /* paths that a host reports */
    REPORT_S = 10,
    BEAT_S = 2,
    SEEN_S = 2, /* a receiver takes a path as dead after so long */
    /* a fault is named after so long: all reports have come, and the rules' waiting times are over */
    SETTLE_S = 30,
    GONE_S = 150, /* an incident may stay open so much longer than its fault */
    FAULT_MAX = 8,
    FINDING_HOSTS = 24, /* hosts that report a finding of one fault */
    PATHS = 16384,
    JUDGED_MAX = 4096,
    TRIAL_S = 300, /* a new configuration is tried so often, … */
    WATCH_S = 60,  /* so long, */
    TRIED_BY = 4   /* … on so many hosts */
};

enum fault_kind {
    FAULT_SENDS,
    FAULT_RECEIVES,
    FAULT_NIC,
    FAULT_UP,
    FAULT_DOWN,
    FAULT_TRUNK,
    FAULT_KINDS
};

struct way {
    uint32_t from, to, port;
    uint32_t leaf_from, leaf_to, spine; /* spine SPINES: none, both NICs are on one leaf */
};
struct word {
    uint32_t host, way;  /* the host, and the path that it reports */
    struct element word; /* the element that the host suspects */
};
struct fault {
    enum fault_kind kind;
    bool used, seen, over, missed, twice;
    uint32_t from_s, until_s, nic, leaf, spine, number;
    struct word findings[FINDING_HOSTS];
    uint32_t finding_count;
};

struct world {
    struct incident_world_config config;
    struct incident_world_result result;
    struct prng prng;
    struct brain *brain;
    struct way *ways; /* INCOMING of each host */
    uint8_t *dead;    /* whether each is dead, as last reported */
    uint32_t *reported_s;
    struct fault faults[FAULT_MAX], past[FAULT_MAX]; /* past: a ring of faults that are over */
    uint32_t past_next, numbers, leaves, round, sweep, version;
    uint64_t complained[JUDGED_MAX]; /* incidents that were wrong, by number modulo JUDGED_MAX */
    struct rollout_canary canaries[TRIED_BY];
    uint32_t tried_by[TRIED_BY], tried_s; /* 0: no configuration is on trial */
    struct mono now;
    uint32_t now_s;
};

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

static bool swallows(const struct fault *x, const struct way *way)
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

static bool is_dead(const struct world *w, const struct way *way)
{
    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        const struct fault *x = &w->faults[k];
        if (x->used && !x->over && w->now_s >= x->from_s + SEEN_S && swallows(x, way)) {
            return true;
        }
    }
    return false;
}

static bool of_nic(const struct fault *x)
{
    return x->kind <= FAULT_NIC;
}

/* ---- reports to the brain ----------------------------------------------------------------------------------------- */

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

/* all: also clean paths that nothing asked for. */
static void tell_paths(struct world *w, uint32_t host, bool all)
{
    const struct inquiry *q = brain_inquiry(w->brain);

    for (uint32_t k = 0; k < INCOMING; k++) {
        const uint32_t at = host * INCOMING + k;
        const struct way *way = &w->ways[at];
        if (all || w->dead[at] != 0 ||
            inquiry_has(q, (struct nic_id){way->from}, (struct nic_id){way->to},
                        (uint16_t)way->port)) {
            const struct brain_path path = {
                .at = {(int64_t)w->reported_s[host] * NS_PER_S},
                .path = {.route = route_of(way), .port = (uint16_t)way->port, .dead = w->dead[at]}};
            tell(w, BRAIN_PATH, &path, NULL);
        }
    }
}

static void report(struct world *w, uint32_t host)
{
    struct fleet_report r = {.host = host, .rollup = true, .clock = FLEET_CLOCK_SYNCED};
    uint32_t round;

    for (uint32_t k = 0; k < INCOMING; k++) {
        const uint32_t at = host * INCOMING + k;
        w->dead[at] = is_dead(w, &w->ways[at]);
        r.paths_dead += w->dead[at];
    }
    w->reported_s[host] = w->now_s;
    tell(w, BRAIN_REPORT, &r, NULL);
    if (r.paths_dead > 0 || inquiry_wants(brain_inquiry(w->brain), &round)) {
        tell_paths(w, host, false);
    }
}

static struct element trunk(uint32_t leaf, uint32_t spine)
{
    struct element e = element_of(ELEMENT_TRUNK, PLACE_LEAF, leaf);

    e.b = (struct place){.kind = PLACE_SPINE, .number = spine};
    return e;
}

/* Orders a trunk as a controller does: from the leaf upwards. */
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

static void say(struct world *w, const struct fault *x, const struct word *own, uint32_t phase)
{
    const struct way *way = &w->ways[own->way];
    struct brain_place place = {.since = {(int64_t)x->from_s * NS_PER_S}, .route = route_of(way)};
    struct alert_finding f = {.said_by = own->host,
                              .run = 1,
                              .number = x->number,
                              .kind = FINDING_PATH_DEAD,
                              .phase = phase,
                              .from_nic = way->from,
                              .to_nic = way->to,
                              .from_host = way->from / NICS,
                              .to_host = way->to / NICS,
                              .port = way->port,
                              .suspect = element_unknown(),
                              .since = place.since,
                              .text = "a path is dead"};
    struct brain_answer is;

    if (tell(w, BRAIN_PLACE, &place, &is) == 1) {
        f.suspect = element_from(&is.element);
    } else if (own->word.kind != ELEMENT_UNKNOWN) {
        element_choice_add(&f.choice, &own->word);
        f.choice.total++;
    }
    tell(w, BRAIN_FINDING, &f, NULL);
}

/* Reports findings again after the inquiry has changed: their suspects may have changed. */
static void retell(struct world *w)
{
    const uint32_t version = inquiry_version(brain_inquiry(w->brain));

    for (uint32_t k = 0; version != w->version && k < FAULT_MAX; k++) {
        for (uint32_t n = 0;
             w->faults[k].used && w->faults[k].seen && n < w->faults[k].finding_count; n++) {
            say(w, &w->faults[k], &w->faults[k].findings[n], FINDING_UPDATED);
        }
    }
    w->version = version;
}

/* ---- faults ------------------------------------------------------------------------------------------------------- */

static bool same_place(const struct fault *x, const struct fault *y)
{
    return of_nic(x) == of_nic(y) &&
           (of_nic(x) ? x->nic == y->nic : x->leaf == y->leaf && x->spine == y->spine);
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
         k++) { /* a place with a fault a moment ago is left out: its incident would be the same */
        x->used = x->used &&
                  (&w->faults[k] == x || !w->faults[k].used || !same_place(x, &w->faults[k])) &&
                  (!w->past[k].used || !same_place(x, &w->past[k]));
    }
    w->result.faults += x->used;
}

/* Each host suspects something: the sender, a trunk, or nothing. */
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

/* All hosts that miss packets report it; some also report a finding. */
static void see_fault(struct world *w, struct fault *x)
{
    x->seen = true;
    for (uint32_t h = 0; h < w->config.hosts; h++) {
        uint32_t hit = INCOMING;
        for (uint32_t k = 0; k < INCOMING && hit == INCOMING; k++) {
            hit = swallows(x, &w->ways[h * INCOMING + k]) ? k : hit;
        }
        if (hit < INCOMING) {
            report(w, h);
        }
        if (hit < INCOMING && x->finding_count < FINDING_HOSTS) {
            struct word *f = &x->findings[x->finding_count++];
            *f = (struct word){.host = h, .way = h * INCOMING + hit};
            f->word = guess(w, &w->ways[f->way]);
            say(w, x, f, FINDING_OPENED);
        }
    }
}

static void end_fault(struct world *w, struct fault *x)
{
    x->over = true;
    /* a path that works again is reported at once */
    for (uint32_t h = 0; h < w->config.hosts; h++) {
        bool any = false;
        for (uint32_t k = 0; k < INCOMING && !any; k++) {
            any = w->dead[h * INCOMING + k] != 0 && swallows(x, &w->ways[h * INCOMING + k]);
        }
        if (any) {
            report(w, h);
        }
    }
    for (uint32_t n = 0; n < x->finding_count; n++) {
        say(w, x, &x->findings[n], FINDING_CLOSED);
    }
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

/* ---- the judge ---------------------------------------------------------------------------------------------------- */

static void complain(struct world *w, uint64_t *count, const struct fault *x, const char *what,
                     const char *said)
{
    static const char *const kinds[] = {"sends", "receives", "nic", "up", "down", "trunk"};

    if (w->result.first[0] == '\0') {
        snprintf(w->result.first, sizeof(w->result.first), "seed %llu, %u s: %s %s%s %u %u: %s",
                 (unsigned long long)w->config.seed, w->now_s, what,
                 x != NULL ? kinds[x->kind] : "",
                 x == NULL   ? ""
                 : of_nic(x) ? " of NIC"
                             : " of leaf, spine",
                 x == NULL   ? 0
                 : of_nic(x) ? x->nic
                             : x->leaf,
                 x == NULL || of_nic(x) ? 0 : x->spine, said);
    }
    ++*count;
}

static bool names(const struct element *e, const struct fault *x)
{
    return of_nic(x)
               ? e->kind == ELEMENT_NIC && e->a.number == x->nic
               : e->kind == ELEMENT_TRUNK && e->a.number == x->leaf && e->b.number == x->spine;
}

/* True if the element of that name is faulty now, or was a moment ago. */
static bool is_so(const struct world *w, const struct element *e)
{
    bool so = false;

    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        so = so || (w->faults[k].used && names(e, &w->faults[k])) ||
             (w->past[k].used && w->now_s < w->past[k].until_s + GONE_S && names(e, &w->past[k]));
    }
    return so;
}

/* The age of the youngest fault. While a fault has no name yet, hosts' own suspects are shown. */
static uint32_t youngest(const struct world *w)
{
    uint32_t age = UINT32_MAX;

    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        const struct fault *x = &w->faults[k];
        age = x->used && w->now_s - x->from_s < age ? w->now_s - x->from_s : age;
    }
    return age;
}

static void judge_incidents(struct world *w)
{
    const struct alerts *a = brain_alerts(w->brain);
    struct alert_incident i;
    size_t cursor = 0;

    while (alerts_next_incident(a, &cursor, &i)) {
        const bool open = i.state == INCIDENT_OPEN || i.state == INCIDENT_NEW;
        uint64_t *said = &w->complained[i.id % JUDGED_MAX];
        if (open && i.told && i.element.kind != ELEMENT_UNKNOWN && *said != i.id &&
            youngest(w) >= SETTLE_S && !is_so(w, &i.element)) {
            *said = i.id;
            complain(w, &w->result.wrong, NULL, i.cause, i.text);
        }
    }
}

static void judge_fault(struct world *w, struct fault *x)
{
    const struct alerts *a = brain_alerts(w->brain);
    struct alert_incident i;
    size_t cursor = 0;
    uint32_t count = 0;

    while (alerts_next_incident(a, &cursor, &i)) {
        count += (i.state == INCIDENT_OPEN || i.state == INCIDENT_NEW) && names(&i.element, x);
    }
    if (count == 0 && !x->missed) {
        x->missed = true;
        complain(w, &w->result.forgotten, x, "no incident of", "");
    } else if (count > 1 && !x->twice) {
        x->twice = true;
        complain(w, &w->result.doubled, x, "two incidents of", "");
    }
}

/* The host of the faulty NIC may be ill. A host with dead paths that reports no finding (those beyond FINDING_HOSTS) isn't
 * judged. */
static void judge_health(struct world *w, const struct fault *x)
{
    const struct fleet *hosts = brain_hosts(w->brain);

    for (uint32_t h = 0; h < w->config.hosts; h++) {
        bool asked = !of_nic(x) || x->nic / NICS != h, dead = false;
        for (uint32_t k = 0; k < INCOMING; k++) {
            dead = dead || w->dead[h * INCOMING + k] != 0;
        }
        for (uint32_t n = 0; n < x->finding_count; n++) {
            dead = dead && x->findings[n].host != h;
        }
        asked = asked && !dead;
        w->result.unwell += asked && fleet_host_health(hosts, h, w->now) != HEALTH_OK;
    }
}

static void judge(struct world *w)
{
    judge_incidents(w);
    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        struct fault *x = &w->faults[k];
        const bool told = x->used && x->finding_count > 0;
        if (told && w->now_s == x->from_s + SETTLE_S) {
            w->result.judged++;
            judge_health(w, x);
        }
        if (told && w->now_s >= x->from_s + SETTLE_S) {
            judge_fault(w, x);
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

/* All hosts belong to one operator. */
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
        for (uint32_t h = 0; h < w->config.hosts && w->now_s >= REPORT_S; h++) {
            tell_paths(w, h, true);
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
    judge(w);
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
    w->dead = calloc((size_t)config->hosts * INCOMING, sizeof(*w->dead));
    w->reported_s = calloc(config->hosts, sizeof(*w->reported_s));
    prng_init(&w->prng, config->seed);
    if (w->ways != NULL && w->dead != NULL && w->reported_s != NULL && begin(w)) {
        for (; w->now_s <= config->seconds; w->now_s++) {
            second(w);
        }
        alerts_counters(brain_alerts(w->brain), &counters);
        result = w->result;
        result.incidents = counters.notifications;
    }
    brain_delete(w->brain);
    free(w->ways);
    free(w->dead);
    free(w->reported_s);
    free(w);
    return result;
}
