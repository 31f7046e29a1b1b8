/* truth_kinds.c: faults that don't kill a path, in small fleets of whole simulated agents: delays that shift, holes for long
 * packets or for one class alone, links at a fraction of their rate. It measures when the first finding of that kind comes,
 * and what is reported about delays without a fault. It also measures when such fleets know all their paths.
 *
 *   truth_kinds [--first=N] [--worlds=N] [--each] [SET …]
 *
 * Some sets only, by the first word of each line of `sets`; worlds N, N + 1, … (0), so many of them (12). --each: after how long
 * each world was told. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "drawn_world.h"
#include "parallel.h"
#include "report.h"
#include "sim/check.h"
#include "sim/sim.h"
#include "stats/sample.h"

#define WORLDS     12
#define WORLDS_MAX 200
#define FAULT_S    60 /* all paths are known by then, and delays have baselines */
#define WATCH_S    22
#define CALM_S     300
#define WAYS_S     120
#define TEXT_MAX   1200

enum aim { AIM_SLOW, AIM_SIZE, AIM_CLASS, AIM_NARROW, AIM_NOTHING, AIM_WAYS };
static const struct set {
    const char *name, *id, *what;
    enum aim aim;
    double must, aims;
} sets[] = {
    {"delay-path", "delay.shift_s.path", "one direction of one path, +20 to 100 us", AIM_SLOW, 5,
     2},
    {"delay-trunk", "delay.shift_s.trunk", "one direction of a trunk, +20 to 100 us", AIM_SLOW, 5,
     2},
    {"size", "size.blackhole.s", "a trunk swallows IP packets above 1,400 bytes", AIM_SIZE, 20, 5},
    {"class", "class.blackhole.s", "a trunk swallows the job's class", AIM_CLASS, 20, 5},
    {"brownout", "brownout.told_s", "a NIC under load at 5, 20 or 50 % of its rate", AIM_NARROW, 5,
     2},
    {"brownout-trunk", "brownout.told_s.trunk", "a trunk under load at 5, 20 or 50 % of its rate",
     AIM_NARROW, 5, 2},
    {"calm", "delay.shift.false", "nothing is wrong, 200 Mb/s, a quarter of it loaded", AIM_NOTHING,
     0, 0},
    {"busy", "brownout.false", "nothing is wrong, 200 Mb/s, all loaded by 95 %", AIM_NOTHING, 0, 0},
    {"ways", "discovery.ways_s", "from the start until all hosts know the ways of all their ports",
     AIM_WAYS, 60, 30},
};
static const struct set *playing;
static int first_world, worlds = WORLDS;
static bool each; /* world is printed */

struct told {
    bool played, wrong;
    double first_s;    /* INFINITY: never */
    double path_hours; /* of both directions */
    uint32_t slow;     /* findings of slow paths */
    char text[200];    /* the first finding without a cause; else the fabric, for people */
};
static struct told *results; /* shared */

struct drawn {
    int leaves, spines, hosts, nics;
};

static void draw_fault(struct prng *prng, const struct drawn *d, int index, char text[static 256])
{
    const int leaf = (int)prng_below(prng, (uint64_t)d->leaves),
              spine = (int)prng_below(prng, (uint64_t)d->spines);
    const char *way = prng_below(prng, 2) == 0 ? "up" : "down";
    const double delay_us = 20 + 80 * prng_uniform(prng);

    switch (playing->aim) {
    case AIM_SLOW:
        if (strcmp(playing->name, "delay-path") == 0) {
            snprintf(text, 256,
                     "{at: %ds, kind: delay, target: edge 0.0>%d.0 path %d, delay: %.0fus}",
                     FAULT_S, d->hosts - 1, spine, delay_us);
        } else {
            snprintf(text, 256,
                     "{at: %ds, kind: delay, target: trunk %d-%d, direction: %s, delay: %.0fus}",
                     FAULT_S, leaf, spine, way, delay_us);
        }
        return;
    case AIM_SIZE:
        snprintf(
            text, 256,
            "{at: %ds, kind: blackhole, target: trunk %d-%d, direction: %s, above_bytes: 1400}",
            FAULT_S, leaf, spine, way);
        return;
    case AIM_CLASS:
        snprintf(text, 256,
                 "{at: %ds, kind: blackhole, target: trunk %d-%d, direction: %s, class: job}",
                 FAULT_S, leaf, spine, way);
        return;
    case AIM_NARROW: {
        const int mbps = index % 3 == 0 ? 10 : index % 3 == 1 ? 40 : 100;

        if (strcmp(playing->name, "brownout") == 0) {
            snprintf(text, 256, "{at: %ds, kind: brownout, target: nic 0.0, rate_mbps: %d}",
                     FAULT_S, mbps);
        } else {
            snprintf(text, 256, "{at: %ds, kind: brownout, target: trunk %d-%d, rate_mbps: %d}",
                     FAULT_S, leaf, spine, mbps);
        }
        return;
    }
    case AIM_NOTHING:
    case AIM_WAYS:
        text[0] = '\0';
    }
}

static struct drawn draw(int index, char text[static TEXT_MAX])
{
    struct prng prng;
    char fault[256], load[160] = "", faults[280] = "";

    prng_init(&prng, hash_u64(hash_u64(0x6b696e64, (uint64_t)playing->aim), (uint64_t)index));
    struct drawn d = {.leaves = 2 + (int)prng_below(&prng, 2),
                      .spines = 2 + (int)prng_below(&prng, 3)};
    d.hosts = d.leaves * (2 + (int)prng_below(&prng, 2));
    d.nics = 1 + (int)prng_below(&prng, 2);
    draw_fault(&prng, &d, index, fault);
    if (strcmp(playing->name, "brownout") == 0) {
        snprintf(
            load, sizeof(load),
            "traffic:\n  - {kind: flow, from: nic 1.0, to: nic 0.0, load: 60%%, start: 30s}\n");
    } else if (playing->aim == AIM_NARROW) {
        snprintf(load, sizeof(load), "traffic:\n  - {kind: all-to-all, load: 60%%, start: 30s}\n");
    } else if (strcmp(playing->name, "busy") == 0) {
        snprintf(load, sizeof(load), "traffic:\n  - {kind: all-to-all, load: 95%%, start: 30s}\n");
    } else if (playing->aim == AIM_NOTHING && index % 4 == 3) {
        snprintf(load, sizeof(load), "traffic:\n  - {kind: all-to-all, load: 30%%, start: 30s}\n");
    }
    if (fault[0] != '\0') {
        snprintf(faults, sizeof(faults), "faults:\n  - %s\n", fault);
    }
    snprintf(text, TEXT_MAX,
             "name: truth-kinds\nwhy: one fault\nworld: sim\nduration: %ds\nseed: %d\n"
             "fabric: {hosts: %d, nics_per_host: %d, leaves: %d, spines: %d}\n"
             "clocks: {stamps: software, noise: 20ns}\n%s%s"
             "bounds:\n  - {what: fault.wrong, equals: 0}\n",
             playing->aim == AIM_NOTHING ? CALM_S
             : playing->aim == AIM_WAYS  ? WAYS_S
                                         : FAULT_S + WATCH_S,
             index + 1, d.hosts, d.nics, d.leaves, d.spines, load, faults);
    return d;
}

static bool is_it(const struct finding *f)
{
    const bool lossy = f->kind == FINDING_PATH_LOSSY || f->kind == FINDING_PATH_DEAD;

    switch (playing->aim) {
    case AIM_SLOW:
        return f->kind == FINDING_PATH_SLOW;
    case AIM_SIZE:
        return lossy && f->advice == ADVICE_CHECK_SIZE;
    case AIM_CLASS:
        return lossy && f->advice == ADVICE_CHECK_CLASS;
    case AIM_NARROW: /* the right element, or the few that can't be distinguished from it */
        return f->kind == FINDING_PATH_NARROW &&
               (f->suspect.kind != ELEMENT_UNKNOWN ||
                (f->choice.count > 1 && f->choice.total == f->choice.count));
    case AIM_NOTHING:
        return f->kind == FINDING_PATH_SLOW || f->kind == FINDING_PATH_NARROW || lossy;
    case AIM_WAYS:
        break;
    }
    return false;
}

static bool ways_known(struct world *w)
{
    for (int host = 0; host < w->host_count; host++) {
        const struct node *n = w->hosts[host].node;
        const struct mono now = {world_raw(w, host, w->now)};

        for (uint32_t edge = 0; edge < node_edge_count(n); edge++) {
            struct path_report report;
            struct node_edge e;

            for (uint8_t p = 0; node_edge_get(n, edge, now, &e) && p < e.path_count; p++) {
                if (!node_path_get(n, edge, p, DIRECTION_OUT, now, &report) ||
                    report.signature == 0) {
                    return false;
                }
            }
        }
    }
    return true;
}

static double ways_after(struct world *w)
{
    for (int s = 1; s <= WAYS_S; s++) {
        world_run(w, s * NS_PER_S);
        if (s > 1 && ways_known(w)) {
            return s;
        }
    }
    return INFINITY;
}

static void play(int index)
{
    static struct scenario scenario;
    struct told *t = &results[index];
    char text[TEXT_MAX];

    const struct drawn d = draw(first_world + index, text);
    struct world *w = drawn_world("truth_kinds", index, text, &scenario);
    if (w == NULL) {
        return;
    }
    t->first_s = INFINITY;
    if (playing->aim == AIM_WAYS) {
        t->first_s = ways_after(w);
    } else {
        world_run(w, scenario.duration_ns);
        check_end(w);
    }
    t->path_hours = (double)d.hosts * d.nics * (d.hosts - 1) * d.nics *
                    (d.spines < 4 ? d.spines : 4) * CALM_S / 3600;
    for (size_t i = 0; i < w->finding_count; i++) {
        const struct finding *f = &w->findings[i].finding;
        const double at = (double)w->findings[i].at / NS_PER_S;

        if (f->phase == FINDING_CLOSED || !is_it(f)) {
            continue;
        }
        if (at >= FAULT_S) {
            t->first_s = fmin(t->first_s, at - FAULT_S);
        }
        if (f->phase == FINDING_OPENED && t->slow++ == 0) {
            finding_text(f, NULL, t->text, sizeof(t->text));
        }
    }
    if (t->slow == 0) {
        snprintf(t->text, sizeof(t->text), "%d hosts x %d, %d leaves, %d spines: %.150s", d.hosts,
                 d.nics, d.leaves, d.spines,
                 strstr(text, "faults:") ? strstr(text, "faults:") : "");
    }
    t->wrong = scenario.fault_count > 0 && check_value(w, 0) > 0;
    t->played = true;
    world_free(w);
}

static void row(struct report *report, const char *id, double value, const char *unit, double must,
                double aim, const char *note)
{
    struct report_row r = {.value = value,
                           .must = must,
                           .aim = aim,
                           .better = REPORT_LOWER,
                           .runs = worlds,
                           .spread = REPORT_NONE};

    snprintf(r.id, sizeof(r.id), "%s", id);
    snprintf(r.unit, sizeof(r.unit), "%s", unit);
    snprintf(r.note, sizeof(r.note), "simulated agents; %s", note);
    report_add(report, &r);
}

static void sum_up_calm(struct report *report)
{
    double hours = 0, told = 0;
    char note[120];

    for (int i = 0; i < worlds; i++) {
        hours += results[i].path_hours;
        told += results[i].slow;
        if (results[i].slow > 0) {
            printf("calm %d: %s\n", i, results[i].text);
        }
    }
    snprintf(note, sizeof(note), "findings of paths in %.0f path-hours; %s", hours, playing->what);
    row(report, playing->id, told, "findings", 0, 0, note);
}

static int sum_up(struct report *report)
{
    const double watched = playing->aim == AIM_WAYS ? WAYS_S : WATCH_S;
    double firsts[WORLDS_MAX];
    int told = 0, wrong = 0;
    char note[140];

    for (int i = 0; i < worlds; i++) {
        if (!results[i].played) {
            return -1;
        }
        firsts[i] = fmin(results[i].first_s, watched);
        told += isfinite(results[i].first_s);
        if (playing->aim != AIM_NOTHING && !isfinite(results[i].first_s)) {
            printf("%s %d was not told: %s\n", playing->name, i, results[i].text);
        }
        wrong += results[i].wrong;
        if (playing->aim == AIM_WAYS || each) {
            printf("%s %d: %g s%s, %s\n", playing->name, i, results[i].first_s,
                   results[i].wrong ? ", wrong" : "", results[i].text);
        }
    }
    if (playing->aim == AIM_NOTHING) {
        sum_up_calm(report);
        return 0;
    }
    qsort(firsts, (size_t)worlds, sizeof(*firsts), sample_order);
    snprintf(note, sizeof(note), "p90; told in %d of %d within %g s, wrong element in %d; %s", told,
             worlds, watched, wrong, playing->what);
    row(report, playing->id, told > 0 ? sample_quantile(firsts, (size_t)worlds, 0.9) : REPORT_NONE,
        "s", playing->must, playing->aims, note);
    return 0;
}

int main(int argc, char *argv[])
{
    static struct report report;

    report_init(&report, "truth-kinds", argc, argv);
    for (int i = 1; i < argc; i++) {
        first_world = strncmp(argv[i], "--first=", 8) == 0 ? atoi(argv[i] + 8) : first_world;
        worlds = strncmp(argv[i], "--worlds=", 9) == 0 ? atoi(argv[i] + 9) : worlds;
        each = each || strcmp(argv[i], "--each") == 0;
    }
    if (worlds < 1 || worlds > WORLDS_MAX) {
        fprintf(stderr, "truth_kinds: 1 to %d worlds\n", WORLDS_MAX);
        return 1;
    }
    for (size_t i = 0; i < ARRAY_COUNT(sets); i++) {
        playing = &sets[i];
        if (!report_wanted(playing->name, argc, argv)) {
            continue;
        }
        results = parallel_memory((size_t)worlds * sizeof(*results));
        if (!results || parallel_run(worlds, play) > 0 || sum_up(&report) < 0) {
            fprintf(stderr, "truth_kinds: worlds of '%s' died\n", playing->name);
            return 1;
        }
    }
    return report_finish(&report) < 0;
}
