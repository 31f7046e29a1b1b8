/* truth_agents.c: one fault in a small fleet of whole simulated agents, without a controller: how many faults the hosts report
 * for it (finding_fault_same), and when the first finding comes. truth_locate.c measures core/fleet/locate alone.
 *
 *   truth_agents [hole] [5pct] [cost]     all, or some of them */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/prng.h"
#include "drawn_world.h"
#include "parallel.h"
#include "report.h"
#include "sim/check.h"
#include "sim/sim.h"
#include "stats/sample.h"

#define WORLDS   24
#define FAULT_S  60 /* all paths are known by then */
#define WATCH_S  16
#define TEXT_MAX 1024

static const struct set {
    const char *name, *fault;
    double share;
} sets[] = {{"hole", "blackhole", 1}, {"5pct", "loss", 0.05}};
static const struct set *playing;

struct told {
    bool played, wrong;
    double findings, hosts, first_s; /* first_s: INFINITY if never */
};
static struct told *results; /* shared */

/* The cost of digests: the same worlds again, with hosts of an older version that has none. */
#define COST_WORLDS 8
struct cost {
    bool played;
    double probes[2], cpu_s[2]; /* without digests; with */
};
static struct cost *costs; /* shared */

/* Draws a fault of one direction of a trunk or a NIC. */
static void draw(int index, bool wire, int version, char text[static TEXT_MAX])
{
    struct prng prng;
    char target[64], loss[32] = "", older[80] = "";

    prng_init(&prng, hash_u64(0x61676e74, (uint64_t)index));
    const int leaves = 2 + (int)prng_below(&prng, 2), spines = 2 + (int)prng_below(&prng, 3);
    const int hosts = leaves * (2 + (int)prng_below(&prng, 3)),
              nics = 1 + (int)prng_below(&prng, 2);
    if (index % 2 == 0) {
        snprintf(target, sizeof(target), "trunk %d-%d", (int)prng_below(&prng, (uint64_t)leaves),
                 (int)prng_below(&prng, (uint64_t)spines));
    } else {
        snprintf(target, sizeof(target), "nic %d.%d", (int)prng_below(&prng, (uint64_t)hosts),
                 (int)prng_below(&prng, (uint64_t)nics));
    }
    if (version < PROBE_VERSION) {
        snprintf(older, sizeof(older),
                 "  - {at: 0s, kind: version, target: hosts 0-%d, version: %d}\n", hosts - 1,
                 version);
    }
    if (playing->share < 1) {
        snprintf(loss, sizeof(loss), ", loss: %g", playing->share);
    }
    snprintf(text, TEXT_MAX,
             "name: truth-agents\nwhy: one fault\nworld: sim\nduration: %ds\nseed: %d\nwire: %s\n"
             "fabric: {hosts: %d, nics_per_host: %d, leaves: %d, spines: %d}\n"
             "clocks: {stamps: software, noise: 20ns}\n"
             "faults:\n%s  - {at: %ds, kind: %s, target: %s, direction: %s, for: %ds%s}\n"
             "bounds:\n  - {what: fault.wrong, equals: 0}\n",
             FAULT_S + WATCH_S, index + 1, wire ? "yes" : "no", hosts, nics, leaves, spines, older,
             FAULT_S, playing->fault, target, prng_below(&prng, 2) == 0 ? "up" : "down",
             WATCH_S - 2, loss);
}

static bool is_path_kind(uint32_t kind)
{
    return kind == FINDING_PATH_DEAD || kind == FINDING_PATH_LOSSY ||
           kind == FINDING_PATH_FLAPPING || kind == FINDING_PEER_SILENT;
}

/* The last finding of each host; and the number of faults in them. */
struct last_word {
    int host;
    struct finding finding;
};
static uint32_t faults_of(const struct world *w)
{
    static struct last_word words[256];
    uint32_t count = 0, faults = 0;

    for (size_t i = 0; i < w->finding_count; i++) {
        const struct world_finding *f = &w->findings[i];
        uint32_t k = 0;

        if ((double)f->at / NS_PER_S < FAULT_S || !is_path_kind(f->finding.kind)) {
            continue;
        }
        while (k < count &&
               (words[k].host != f->host || words[k].finding.number != f->finding.number)) {
            k++;
        }
        if (k < ARRAY_COUNT(words) && (k == count || f->finding.phase != FINDING_CLOSED)) {
            words[k] = (struct last_word){f->host, f->finding};
            count += k == count;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        bool again = false;

        for (uint32_t k = 0; k < i; k++) {
            again = again || finding_fault_same(&words[k].finding, &words[i].finding);
        }
        faults += !again;
    }
    return faults;
}

static void play(int index)
{
    static struct scenario scenario;
    struct told *t = &results[index];
    char text[TEXT_MAX];
    uint64_t hosts = 0;

    draw(index, false, PROBE_VERSION, text);
    struct world *w = drawn_world("truth_agents", index, text, &scenario);
    if (w == NULL) {
        return;
    }
    world_run(w, scenario.duration_ns);
    check_end(w);
    t->first_s = INFINITY;
    for (size_t i = 0; i < w->finding_count; i++) {
        const struct world_finding *f = &w->findings[i];
        const double at = (double)f->at / NS_PER_S - FAULT_S;

        if (f->finding.phase == FINDING_OPENED && at >= 0 && is_path_kind(f->finding.kind)) {
            t->first_s = fmin(t->first_s, at);
            hosts |= 1ull << f->host;
        }
    }
    t->findings = faults_of(w);
    t->hosts = __builtin_popcountll(hosts);
    t->wrong = check_value(w, 0) > 0;
    t->played = true;
    world_free(w);
}

static void play_cost(int index)
{
    static struct scenario scenario;
    struct cost *c = &costs[index];
    char text[TEXT_MAX];

    for (int with = 0; with < 2; with++) {
        draw(index, true, with ? PROBE_VERSION : PROBE_VERSION_DIGEST - 1, text);
        struct world *w = drawn_world("truth_agents", index, text, &scenario);
        if (w == NULL) {
            return;
        }
        const clock_t began = clock();
        world_run(w, scenario.duration_ns);
        c->cpu_s[with] = (double)(clock() - began) / CLOCKS_PER_SEC;
        c->probes[with] = (double)w->probes;
        world_free(w);
    }
    c->played = true;
}

static void row(struct report *report, const char *id, double value, const char *unit, double must,
                const char *note)
{
    struct report_row r = {.value = value,
                           .must = must,
                           .aim = REPORT_NONE,
                           .better = REPORT_LOWER,
                           .runs = WORLDS,
                           .spread = REPORT_NONE};

    snprintf(r.id, sizeof(r.id), "%s", id);
    snprintf(r.unit, sizeof(r.unit), "%s", unit);
    snprintf(r.note, sizeof(r.note), "simulated; %s", note);
    report_add(report, &r);
}

/* Returns how many faults were reported at all. */
static int sum_up(struct report *report)
{
    const bool hole = playing->share >= 1;
    double findings[WORLDS], firsts[WORLDS], wrong = 0, hosts = 0, most = 0;
    int count = 0, told = 0;
    char note[120], id[64];

    for (int i = 0; i < WORLDS; i++) {
        const struct told *t = &results[i];
        if (!t->played) {
            continue;
        }
        findings[count++] = t->findings;
        most = fmax(most, t->findings);
        hosts += t->hosts;
        wrong += t->wrong;
        if (isfinite(t->first_s)) {
            firsts[told++] = t->first_s;
        }
    }
    if (count < WORLDS) {
        return -1;
    }
    qsort(findings, (size_t)count, sizeof(*findings), sample_order);
    qsort(firsts, (size_t)told, sizeof(*firsts), sample_order);
    if (hole) {
        snprintf(note, sizeof(note),
                 "median of %d worlds of 4 to 12 hosts; most %g, told by %.1f hosts on average; no "
                 "controller",
                 count, most, hosts / count);
        row(report, "locate.per_fault.agents", sample_quantile(findings, (size_t)count, 0.5),
            "findings", 1, note);
    }
    snprintf(note, sizeof(note), "p90 of the fleet's first finding; told in %d of %d worlds", told,
             count);
    snprintf(id, sizeof(id), hole ? "locate.agents.first_s" : "gray.s.agents.%s", playing->name);
    row(report, id, told > 0 ? sample_quantile(firsts, (size_t)told, 0.9) : REPORT_NONE, "s",
        REPORT_NONE, note);
    snprintf(note, sizeof(note), "of %d: an agent named another element, as a fact", count);
    snprintf(id, sizeof(id), "locate.agents.wrong.%s", playing->name);
    row(report, id, wrong, "worlds", 0, note);
    return 0;
}

static int sum_up_cost(struct report *report)
{
    double probes[2] = {0, 0}, cpu_s[2] = {0, 0};
    char note[120];

    for (int i = 0; i < COST_WORLDS; i++) {
        for (int with = 0; with < 2 && costs[i].played; with++) {
            probes[with] += costs[i].probes[with];
            cpu_s[with] += costs[i].cpu_s[with];
        }
        if (!costs[i].played) {
            return -1;
        }
    }
    snprintf(note, sizeof(note),
             "of %d worlds, a fault in each %d s; digests on against hosts of the version before",
             COST_WORLDS, FAULT_S + WATCH_S);
    row(report, "truth.cost.digests.bytes", probes[1] / probes[0], "x", 1.05, note);
    row(report, "truth.cost.digests.cpu", cpu_s[1] / cpu_s[0], "x", 1.05, note);
    return 0;
}

int main(int argc, char *argv[])
{
    static struct report report;

    report_init(&report, "truth-agents", argc, argv);
    for (size_t i = 0; i < ARRAY_COUNT(sets); i++) {
        playing = &sets[i];
        if (!report_wanted(playing->name, argc, argv)) {
            continue;
        }
        results = parallel_memory(WORLDS * sizeof(*results));
        if (!results || parallel_run(WORLDS, play) > 0 || sum_up(&report) < 0) {
            fprintf(stderr, "truth_agents: worlds of '%s' died\n", playing->name);
            return 1;
        }
    }
    playing = &sets[0];
    costs = parallel_memory(COST_WORLDS * sizeof(*costs));
    if (report_wanted("cost", argc, argv) &&
        (!costs || parallel_run(COST_WORLDS, play_cost) > 0 || sum_up_cost(&report) < 0)) {
        fprintf(stderr, "truth_agents: worlds of their cost died\n");
        return 1;
    }
    return report_finish(&report) < 0;
}
