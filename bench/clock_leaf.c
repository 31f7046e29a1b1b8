/* clock_leaf.c: a host's clock as a leaf of a NIC's clock (core/clock/host_leaf.h). It reads the NIC over PCIe. Reads may take
 * long in one direction, take longer and longer, or alternate between short and long. It checks whether the NIC's time is
 * within the host's hard bound.
 *
 *     build/bench/clock_leaf [READINGS]        10 million without
 *
 * Fleet time is the NIC's clock, exactly. All figures are simulated. */
#include "base/prng.h"
#include "base/time.h"
#include "core/clock/host_leaf.h"
#include "report.h"
#include "sim/reader_terms.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define READ_EVERY_NS (100 * NS_PER_MS)
#define ASKED         20               /* readings between two reads of the NIC */
#define WORLD_NS      (600 * NS_PER_S) /* after that another kind of bus */
#define WARM_NS       (2 * NS_PER_S)

enum kind { GROWING, ONE_SIDED, BIMODAL, BURSTS, KINDS };
static const char *const names[KINDS] = {"growing", "one_sided", "bimodal", "bursts"};

struct bus {
    enum kind kind;
    double there, back, most;     /* ns: each direction at rest; the most that is added */
    double period_s, ppm, wander; /* of the NIC against the host: ppm, ppb per root second */
};

struct sums {
    double readings, outside, tenth, width;
};

static struct bus draw(struct prng *p, enum kind kind)
{
    return (struct bus){.kind = kind,
                        .there = 40 + 400 * prng_uniform(p),
                        .back = 40 + 400 * prng_uniform(p),
                        .most = 200 * pow(15, prng_uniform(p)),
                        .period_s = 0.2 * pow(500, prng_uniform(p)),
                        .ppm = 80 * (2 * prng_uniform(p) - 1),
                        .wander = 3 * pow(20, prng_uniform(p))};
}

/* The extra time of the completion, ns. */
static double longer(struct prng *p, const struct bus *b, double at_s)
{
    const double phase = fmod(at_s, b->period_s) / b->period_s;

    switch (b->kind) {
    case GROWING: /* up and down: other devices' writes come first */
        return b->most * (phase < 0.5 ? 2 * phase : 2 - 2 * phase);
    case ONE_SIDED:
        return b->most;
    case BIMODAL:
        return prng_uniform(p) < 0.5 ? b->most : 0;
    default:
        return phase < 0.3 ? b->most * prng_exponential(p) : 0;
    }
}

/* Plays one bus for WORLD_NS. */
static void play(uint64_t seed, enum kind kind, struct sums *sums)
{
    struct host_leaf leaf;
    struct prng p;
    int64_t ahead = 0; /* NIC's clock minus host's, whole ns */
    double fraction = 0, walk = 0;

    prng_init(&p, seed);
    const struct bus bus = draw(&p, kind);
    host_leaf_init(&leaf, 2, 100);
    for (int64_t host = 10 * NS_PER_S; host < 10 * NS_PER_S + WORLD_NS; host += READ_EVERY_NS) {
        const double rate = bus.ppm * 1e-6 + walk * 1e-9;
        const double after = longer(&p, &bus, (double)host * 1e-9);
        const int64_t there = (int64_t)(bus.there + 20 * prng_uniform(&p));
        const int64_t back = (int64_t)(bus.back + 20 * prng_uniform(&p) + after);
        const double moved = fraction + rate * (double)there;
        const struct host_leaf_bracket b = {
            {host}, {host + there + ahead + (int64_t)floor(moved)}, {host + there + back}};
        const struct clock_terms terms = {.status = CLOCK_SYNCED,
                                          .rate_limit = 2e-6,
                                          .rate_drift = 100e-9,
                                          .line = {b.nic, 0, 0, 0, 0, b.nic}};
        host_leaf_on_bracket(&leaf, b.after, 0, &b);
        host_leaf_on_terms(&leaf, b.after, 0, &terms);
        host_leaf_tick(&leaf, (struct mono){b.after.ns + 1000});
        for (int i = 1; i <= ASKED && host > 10 * NS_PER_S + WARM_NS; i++) {
            struct clock_terms t;
            const int64_t since = i * (READ_EVERY_NS / ASKED) - NS_PER_MS;
            if (!host_leaf_terms(&leaf, &t)) {
                continue;
            }
            const struct clock_reading r = reader_terms(&t, (struct nic_time){host + since});
            const double off =
                (double)(r.time.ns - host - since - ahead) - fraction - rate * (double)since;
            sums->readings++;
            sums->width += 2 * r.hard_ns;
            sums->outside += fabs(off) > r.hard_ns + 2;
            sums->tenth += fabs(off) > r.hard_ns / 10 + 2;
        }
        const double gone = fraction + rate * (double)READ_EVERY_NS;
        ahead += (int64_t)floor(gone);
        fraction = gone - floor(gone);
        walk += bus.wander * sqrt((double)READ_EVERY_NS * 1e-9) * prng_normal(&p);
    }
}

int main(int argc, char **argv)
{
    static struct report report;
    const double wanted = argc > 1 ? strtod(argv[1], NULL) : 1e7;
    struct sums all = {0};
    char id[64], note[128];

    if (argc > 2 || !(wanted >= 1)) {
        fputs("usage: clock_leaf [READINGS]\n", stderr);
        return 2;
    }
    report_init(&report, "clock-leaf", argc, argv);
    for (int kind = 0; kind < KINDS; kind++) {
        struct sums sums = {0};
        for (uint64_t seed = 1; sums.readings < wanted / KINDS; seed++) {
            play(seed, (enum kind)kind, &sums);
        }
        snprintf(id, sizeof(id), "clock.leaf.%s.outside", names[kind]);
        snprintf(note, sizeof(note), "of %.3g; mean width %.0f ns", sums.readings,
                 sums.width / sums.readings);
        report_simulated(&report, id, sums.outside, "readings", 0, REPORT_NONE, REPORT_LOWER, note);
        all.readings += sums.readings;
        all.outside += sums.outside;
        all.tenth += sums.tenth;
    }
    report_simulated(&report, "clock.leaf.outside", all.outside, "readings", 0, REPORT_NONE,
                     REPORT_LOWER, "PCIe reads that grow, are one-sided, bimodal, in bursts");
    report_simulated(&report, "clock.leaf.readings", all.readings, "readings", 1e7, REPORT_NONE,
                     REPORT_HIGHER, "judged");
    report_simulated(&report, "clock.leaf.tenth_outside", all.tenth, "readings", 1, REPORT_NONE,
                     REPORT_HIGHER, "were each hard bound a tenth: it must break");
    return report_finish(&report) < 0;
}
