/* fleet_world.c: draws hosts, faults and takeovers from a seed, drives the brain, and judges it with rules of its own. */
#include "sim/fleet_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/finding/finding.h"
#include "core/fleet/fleet.h"

enum {
    BEAT_S = 2,
    REPORT_S = 10,
    SILENT_S = 30,  /* three rollups */
    SETTLE_S = 25,  /* after a change: then all reports have come, and findings were sent */
    NICS = 2,       /* of a host */
    WITNESSES = 6,  /* hosts that find one fault */
    FAULT_MAX = 64, /* at once */
};

enum fault_kind {
    FAULT_SILENT,
    FAULT_CABLE,
    FAULT_SENDER,
    FAULT_TRUNK,
    FAULT_UNPLACED,
    FAULT_LIAR,
    FAULT_KINDS
};
struct fault {
    enum fault_kind kind;
    bool used;
    uint32_t from_s, until_s, host, number;
    uint32_t witnesses[WITNESSES];
};

struct truth { /* of one host */
    uint32_t heard_s, quiet_until_s, changed_s;
    uint32_t cables, accusers, liars, unplaced; /* the present number of each */
    bool known, told_silent;                    /* known: this controller has heard it */
};

struct world {
    struct fleet_world_config config;
    struct fleet_world_result result;
    struct prng prng;
    struct fleet *brain;
    struct truth *hosts;
    struct fault faults[FAULT_MAX];
    uint32_t now_s, numbers, began_s; /* began_s: when this controller began */
};

static struct mono mono_at(uint32_t s)
{
    return (struct mono){(int64_t)s * NS_PER_S};
}

static void complain(struct world *w, uint64_t *count, uint32_t host, const char *what)
{
    if (w->result.first[0] == '\0') {
        snprintf(w->result.first, sizeof(w->result.first), "seed %llu, %u s, host %u: %s",
                 (unsigned long long)w->config.seed, w->now_s, host, what);
    }
    ++*count;
}

/* ---- the brain's side --------------------------------------------------------------------------------------------- */

static void say(struct world *w, const struct fault *x, uint32_t sayer, bool open)
{
    struct fleet_finding f = {
        .host = sayer, .run = 1, .number = x->number, .kind = FINDING_PATH_DEAD, .open = open};

    f.suspect = element_unknown();
    switch (x->kind) {
    case FAULT_CABLE:
    case FAULT_SENDER:
    case FAULT_LIAR:
        f.suspect = element_of(ELEMENT_NIC, PLACE_NIC, x->host * NICS);
        break;
    case FAULT_TRUNK:
        f.suspect = element_of(ELEMENT_TRUNK, PLACE_LEAF, x->host % 8);
        f.suspect.b = (struct place){.kind = PLACE_SPINE, .number = x->number % 4};
        if (sayer % 2 != 0) { /* some hosts can't decide between several elements */
            element_choice_add(&f.choice, &f.suspect);
            f.choice.total++;
            f.suspect = element_unknown();
        }
        break;
    default:
        break;
    }
    fleet_on_finding(w->brain, &f, mono_at(w->now_s));
}

static bool finds(const struct fault *x)
{
    return x->kind != FAULT_SILENT;
}

static uint32_t witness_count(const struct fault *x)
{
    return x->kind == FAULT_LIAR || x->kind == FAULT_UNPLACED ? 1 : WITNESSES;
}

static void report(struct world *w, uint32_t host, bool rollup)
{
    const struct truth *t = &w->hosts[host];
    struct fleet_report r = {
        .host = host, .rollup = rollup, .clock = FLEET_CLOCK_SYNCED, .ports_down = t->cables};

    for (uint32_t k = 0; k < FAULT_MAX; k++) { /* a host that finds a fault has dead paths */
        const struct fault *x = &w->faults[k];
        for (uint32_t n = 0; x->used && finds(x) && x->kind != FAULT_LIAR && n < witness_count(x);
             n++) {
            r.paths_dead += x->witnesses[n] == host;
        }
    }
    fleet_on_heard(w->brain, host, span_ns(0), span_ns(0), mono_at(w->now_s));
    fleet_on_report(w->brain, &r, mono_at(w->now_s));
}

/* A new controller: it has members and open findings from its store, and has heard no host. */
static bool take_over(struct world *w)
{
    const struct fleet_terms terms = {.beat = span_ns(BEAT_S * NS_PER_S),
                                      .report = span_ns(REPORT_S * NS_PER_S),
                                      .finding_max = FAULT_MAX * WITNESSES};

    fleet_delete(w->brain);
    w->brain = fleet_new(&terms, mono_at(w->now_s));
    w->began_s = w->now_s;
    if (w->brain == NULL ||
        fleet_make_room(w->brain, w->config.hosts, w->config.hosts * NICS) < 0) {
        return false;
    }
    for (uint32_t h = 0; h < w->config.hosts; h++) {
        const uint32_t nics[NICS] = {h * NICS, h * NICS + 1};
        const struct fleet_member m = {.host = h, .present = true, .nics = nics, .nic_count = NICS};
        fleet_on_member(w->brain, &m, mono_at(w->now_s));
        w->hosts[h].known = w->hosts[h].told_silent = false;
        w->hosts[h].changed_s = w->now_s;
    }
    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        const struct fault *x = &w->faults[k];
        for (uint32_t n = 0; x->used && finds(x) && n < witness_count(x); n++) {
            say(w, x, x->witnesses[n], true);
        }
    }
    return true;
}

/* ---- faults ------------------------------------------------------------------------------------------------------- */

static void count_fault(struct world *w, const struct fault *x, int by)
{
    struct truth *t = &w->hosts[x->host];

    t->cables += (uint32_t)(x->kind == FAULT_CABLE ? by : 0);
    t->accusers += (uint32_t)(x->kind == FAULT_CABLE || x->kind == FAULT_SENDER ? by : 0);
    t->liars += (uint32_t)(x->kind == FAULT_LIAR ? by : 0);
    t->changed_s = w->now_s;
    for (uint32_t n = 0; finds(x) && n < witness_count(x); n++) {
        struct truth *seer = &w->hosts[x->witnesses[n]];
        seer->unplaced += (uint32_t)(x->kind == FAULT_UNPLACED ? by : 0);
        seer->changed_s = w->now_s;
    }
}

static void begin_fault(struct world *w, struct fault *x)
{
    *x = (struct fault){.used = true,
                        .kind = (enum fault_kind)prng_below(&w->prng, FAULT_KINDS),
                        .host = prng_below(&w->prng, w->config.hosts),
                        .number = ++w->numbers,
                        .from_s = w->now_s,
                        .until_s = w->now_s + 40 + prng_below(&w->prng, 200)};
    for (uint32_t n = 0; n < WITNESSES; n++) {
        bool again = true;
        while (again) { /* each witness is another host, and not the faulty one */
            x->witnesses[n] = prng_below(&w->prng, w->config.hosts);
            again = x->witnesses[n] == x->host;
            for (uint32_t k = 0; k < n; k++) {
                again = again || x->witnesses[k] == x->witnesses[n];
            }
        }
    }
    w->result.faults++;
    if (x->kind == FAULT_SILENT && x->until_s > w->hosts[x->host].quiet_until_s) {
        w->hosts[x->host].quiet_until_s = x->until_s;
    }
    count_fault(w, x, 1);
    for (uint32_t n = 0; finds(x) && n < witness_count(x); n++) {
        say(w, x, x->witnesses[n], true);
    }
}

static void end_fault(struct world *w, struct fault *x)
{
    count_fault(w, x, -1);
    for (uint32_t n = 0; finds(x) && n < witness_count(x); n++) {
        say(w, x, x->witnesses[n], false);
    }
    x->used = false;
}

static void play_faults(struct world *w)
{
    uint32_t open = 0;

    for (uint32_t k = 0; k < FAULT_MAX; k++) {
        if (w->faults[k].used && w->now_s >= w->faults[k].until_s) {
            end_fault(w, &w->faults[k]);
        }
        open += w->faults[k].used;
    }
    for (uint32_t k = 0; k < FAULT_MAX && open < w->config.faults; k++) {
        if (!w->faults[k].used && prng_below(&w->prng, 20) == 0) {
            begin_fault(w, &w->faults[k]);
            open++;
        }
    }
}

/* ---- the judge ---------------------------------------------------------------------------------------------------- */

static void judge_action(struct world *w, const struct fleet_action *a)
{
    struct truth *t = &w->hosts[a->host];
    const uint32_t age_s = w->now_s - t->heard_s;

    w->result.trace = hash_u64(w->result.trace, (uint64_t)a->kind << 32 | a->host);
    w->result.trace = hash_u64(w->result.trace, (uint64_t)a->at.ns);
    if (a->kind == FLEET_SILENT) {
        w->result.events++;
        if (!t->known || age_s <= SILENT_S) {
            complain(w, &w->result.wrong, a->host, "called silent, and it isn't");
        }
        if (t->told_silent) {
            complain(w, &w->result.doubled, a->host, "called silent twice");
        }
        t->told_silent = true;
    } else if (a->kind == FLEET_HEARD) {
        w->result.events++;
        if (age_s > BEAT_S) {
            complain(w, &w->result.wrong, a->host, "called heard, and it isn't");
        }
        if (!t->told_silent) {
            complain(w, &w->result.doubled, a->host, "called heard, and was never called silent");
        }
        t->told_silent = false;
    }
}

static void judge_silence(struct world *w, uint32_t host)
{
    struct truth *t = &w->hosts[host];
    const bool gone = t->known && w->now_s - t->heard_s > SILENT_S + 1;

    if (gone != t->told_silent && (gone || w->now_s == t->heard_s)) {
        complain(w, &w->result.forgotten, host, gone ? "its silence" : "that it is heard again");
        t->told_silent = gone;
    }
}

/* Judges hosts that report and have been in their state for long enough. A witness that fell silent doesn't count: only states
 * that hold with any witness are checked. */
static void judge_health(struct world *w, uint32_t host)
{
    const struct truth *t = &w->hosts[host];
    const enum health is = fleet_host_health(w->brain, host, mono_at(w->now_s));
    const bool quiet = !t->known || w->now_s - t->heard_s > SILENT_S;

    w->result.checks++;
    if (quiet) {
        if (is != HEALTH_UNKNOWN) {
            complain(w, &w->result.wrong, host, "nobody hears it, and its health is shown");
        }
        return;
    }
    if (w->now_s - t->changed_s < SETTLE_S || w->now_s - w->began_s < SETTLE_S ||
        w->now_s - t->heard_s > BEAT_S || t->quiet_until_s + SETTLE_S > w->now_s) {
        return;
    }
    if (t->cables > 0 && is != HEALTH_BAD) {
        complain(w, &w->result.wrong, host, "its cable is cut, and it isn't shown as ill");
    } else if (t->cables == 0 && t->accusers == 0 && t->liars < 2 && is == HEALTH_BAD) {
        complain(w, &w->result.wrong, host, "shown as ill, and only sees or is lied about");
    } else if (t->accusers > 0 && is != HEALTH_BAD) {
        complain(w, &w->result.wrong, host, "it can't send, and isn't shown as ill");
    } else if (t->cables + t->accusers + t->liars + t->unplaced == 0 && is != HEALTH_OK) {
        complain(w, &w->result.wrong, host, "well, and not shown as well");
    } else if (t->cables + t->accusers + t->liars == 0 && t->unplaced > 0 && is != HEALTH_WARN) {
        complain(w, &w->result.wrong, host, "it sees what nobody places, and that isn't a warning");
    }
}

/* ---- time --------------------------------------------------------------------------------------------------------- */

static void second(struct world *w)
{
    struct fleet_action action;

    play_faults(w);
    for (uint32_t h = 0; h < w->config.hosts; h++) {
        struct truth *t = &w->hosts[h];
        const uint32_t turn = w->now_s + h;
        if (w->now_s < t->quiet_until_s || turn % BEAT_S != 0) {
            continue;
        }
        report(w, h, turn % REPORT_S == 0);
        t->heard_s = w->now_s;
        t->known = true;
    }
    if (!mono_before(mono_at(w->now_s), fleet_deadline(w->brain))) {
        fleet_tick(w->brain, mono_at(w->now_s));
    }
    while (fleet_next_action(w->brain, &action)) {
        judge_action(w, &action);
    }
    for (uint32_t h = 0; h < w->config.hosts; h++) {
        judge_silence(w, h);
        if ((w->now_s + h) % 7 == 0) {
            judge_health(w, h);
        }
    }
}

struct fleet_world_result fleet_world_run(const struct fleet_world_config *config)
{
    struct world *w = calloc(1, sizeof(*w));
    struct fleet_world_result result = {.wrong = 1, .first = "no memory"};

    if (w == NULL) {
        return result;
    }
    w->config = *config;
    w->hosts = calloc(config->hosts, sizeof(*w->hosts));
    prng_init(&w->prng, config->seed);
    bool good = w->hosts != NULL && take_over(w);
    for (; good && w->now_s < config->seconds; w->now_s++) {
        if (w->now_s > 0 && prng_below(&w->prng, 1800) == 0) {
            good = take_over(w);
        }
        second(w);
    }
    result = good ? w->result : result;
    fleet_delete(w->brain);
    free(w->hosts);
    free(w);
    return result;
}
