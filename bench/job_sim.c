/* job_sim.c: jobs over the real transport in the simulator (sim/job_world.h): rows that no lab can measure.
 *
 *   job_sim [FAULTS [HOURS [DAYS [RANKS [NICS [LATE [FIRST]]]]]]]
 *
 * chaos      random worlds until so many faults were injected, in 16 parallel slices. It counts lost, doubled, corrupted and
 *            late bytes, and errors while one path was left. With FIRST, seeds begin there, and only the requested parts are
 *            played: so a million faults can be played in parts
 * quiet      so many hours without a fault, of starved processes whose clocks step and begin new epochs
 * week       so many days of a ring of 4,096 processes with one NIC each; a link fails each 26 minutes
 * star       one of 64, of 512 and of RANKS (4,096 takes minutes) ranks that all send to each other. That rank is complete, with
 *            all its lane sets: the number of its connections
 * brownout   one link of four carries a tenth, five times (alone: job_sim 0 0 0 0 0)
 * slow NIC   all-to-all in 12 random fabrics while one NIC carries 1/5 to 1/40 of its rate (together with brownout)
 * contended  two all-reduces of NICS NICs (0: none), compared with ECMP and with spraying
 * late       LATE worlds of senders that closed or were stopped, and of receivers that come after the patience */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/time.h"
#include "parallel.h"
#include "report.h"
#include "sim/job_world.h"

#define BROWN_SEEDS     5
#define SLOW_SEEDS      12
#define CONTENDED_SEEDS 3
#define STEP            262144 /* of a connection; half of NCCL's, to save memory with 1,024 NICs */
#define CHAOS_SLICES    16     /* for random faults, each in its own process */
#define SOCKETS_MUST    8192   /* of one process: half of its limit */
#define STEPS           8      /* on their way, as many as NCCL has */

static int wrongs;

static void play(const struct job_world_config *config, const char *what,
                 struct job_world_result *ret)
{
    job_world_run(config, ret);
    if (ret->wrong != NULL) {
        printf("%s, seed %llu: %s %s\n", what, (unsigned long long)config->seed, ret->wrong,
               ret->detail);
        wrongs++;
    }
}

/* -- chaos ------------------------------------------------------------------------------------ */

/* Slice k plays the worlds first + k, first + k + CHAOS_SLICES, … until it has injected its share of the faults. The slice
 * that ends last adds the rows of all. */
static struct chaos {
    _Atomic uint64_t faults, messages, worlds, resent, killed, failed, wrong, ended;
} * chaos; /* shared with the processes */

static void chaos_rows(struct report *report, uint64_t wanted)
{
    const bool enough = wanted >= 1000000; /* otherwise it is only a short run */
    char note[192];

    snprintf(
        note, sizeof(note),
        "%llu worlds, %llu messages, %llu chunks resent, %llu killed or cut off, %llu requests "
        "failed and had to",
        (unsigned long long)chaos->worlds, (unsigned long long)chaos->messages,
        (unsigned long long)chaos->resent, (unsigned long long)chaos->killed,
        (unsigned long long)chaos->failed);
    report_simulated(report, "sim.job.faults", (double)chaos->faults, "faults",
                     enough ? 1e6 : REPORT_NONE, enough ? 1e7 : REPORT_NONE, REPORT_HIGHER, note);
    report_simulated(report, "sim.job.wrong", (double)chaos->wrong, "worlds", 0, 0, REPORT_LOWER,
                     "lost, doubled, corrupted, late, stuck, or an error while a path was left");
}

static void chaos_slice(struct report *report, uint64_t wanted, uint64_t begin)
{
    struct job_world_result one;

    for (uint64_t faults = 0, seed = begin; faults < wanted / CHAOS_SLICES; seed += CHAOS_SLICES) {
        struct job_world_config config;
        job_world_chance(&config, seed);
        config.rdma = seed / 2 % 2 != 0;   /* lanes use queue pairs in two of four worlds; */
        config.direct = seed / 4 % 2 != 0; /* in half of these NICs write into receives; */
        /* in half of each some hosts have no queue pairs */
        config.no_rdma_every = seed % 4 == 3 ? 2 : 0;
        if (config.rdma && config.direct) {
            config.fault_mask &= ~(1u << JOB_FAULT_DAMAGE);
        }
        play(&config, "chaos", &one);
        faults += one.faults;
        chaos->faults += one.faults;
        chaos->messages += one.messages;
        chaos->resent += one.resent;
        chaos->failed += one.failed;
        chaos->killed += one.by_kind[JOB_FAULT_KILL] + one.by_kind[JOB_FAULT_PART];
        chaos->worlds++;
    }
    chaos->wrong += (uint64_t)wrongs;
    if (++chaos->ended == CHAOS_SLICES) {
        chaos_rows(report, wanted);
    }
}

/* -- late receivers --------------------------------------------------------------------------- */

static void late(struct report *report, uint64_t worlds)
{
    const int before = wrongs;
    uint64_t messages = 0, half = 0;
    struct job_world_result one;
    char note[160];

    for (uint64_t seed = 1; seed <= worlds; seed++) {
        struct job_world_config config;
        job_world_late(&config, seed);
        play(&config, "late", &one);
        messages += one.messages;
        half += config.freeze_ns != 0;
    }
    snprintf(note, sizeof(note),
             "%llu worlds, %llu messages; in %llu the sender was stopped beyond the patience",
             (unsigned long long)worlds, (unsigned long long)messages, (unsigned long long)half);
    report_simulated(report, "sim.job.late_receivers.lost", wrongs - before, "worlds", 0, 0,
                     REPORT_LOWER, note);
}

/* -- no faults --------------------------------------------------------------------------------- */

static void quiet(struct report *report, double hours)
{
    struct job_world_config config = {
        .seed = 1,
        .hosts = 4,
        .nics = 2,
        .leaves = 2,
        .spines = 4,
        .host_bps = 10000000000LL,
        .trunk_bps = 10000000000LL,
        .delay_ns = 5 * NS_PER_US,
        .pattern = JOB_RING,
        .comms = 1,
        .lanes = 4,
        .standbys = 2,
        .checksum = true,
        .patience_ns = 60 * NS_PER_S,
        .messages = UINT32_MAX / 2,
        .size_max = 65536,
        .depth = 1,
        .gap_ns = 100 * NS_PER_MS,
        .poll_ns = 20 * NS_PER_MS,
        .fault_gap_ns = 60 * NS_PER_S,
        .fault_ns = NS_PER_S,
        .fault_mask = 1u << JOB_FAULT_CLOCK,
        .run_ns = (int64_t)(hours * 3600e9),
        .rto_min_ns = 200 * NS_PER_MS,
        .starved = true,
        .skewed = true,
        .step_ns = 200 * NS_PER_MS,
    };
    struct job_world_result one;
    char note[128];

    play(&config, "quiet", &one);
    snprintf(note, sizeof(note), "%.1f h, %llu messages, %llu steps of clocks", hours,
             (unsigned long long)one.messages, (unsigned long long)one.by_kind[JOB_FAULT_CLOCK]);
    report_simulated(report, "sim.job.quiet.failovers", (double)one.failovers, "lanes", 0, 0,
                     REPORT_LOWER, note);
    report_simulated(report, "sim.job.quiet.repaths", (double)one.repaths, "lanes", REPORT_NONE, 0,
                     REPORT_LOWER, note);
    report_simulated(report, "sim.job.quiet.resent", (double)one.resent, "chunks", REPORT_NONE, 0,
                     REPORT_LOWER, note);
}

/* Processes with two NICs each on a fabric of 100 Gb/s. */
static struct job_world_config wide_fabric(uint32_t hosts, uint32_t leaves, uint32_t spines)
{
    return (struct job_world_config){
        .seed = 1,
        .hosts = hosts,
        .nics = 2,
        .leaves = leaves,
        .spines = spines,
        .host_bps = 100000000000LL,
        .trunk_bps = 100000000000LL,
        .delay_ns = NS_PER_US,
        .lanes = 4,
        .standbys = 2,
        .checksum = true,
        .patience_ns = 60 * NS_PER_S,
        .size_max = 16384,
        .depth = 1,
        .rto_min_ns = 200 * NS_PER_MS,
    };
}

/* Rings without standbys that pass messages on all the time: a process that got a message sends the next. */
static void pass_on(struct job_world_config *config, uint32_t comms, uint32_t size, uint32_t depth)
{
    config->standbys = 0;
    config->pattern = JOB_RING;
    config->comms = comms;
    config->messages = UINT32_MAX / 2;
    config->size_max = size;
    config->whole = true;
    config->depth = config->chain = depth;
}

/* -- a week ----------------------------------------------------------------------------------- */

static void week(struct report *report, double days)
{
    struct job_world_config config = wide_fabric(2048, 64, 32);
    struct job_world_result one;
    char note[128];

    config.pattern = JOB_RING;
    config.comms = 2;
    config.messages = UINT32_MAX / 2;
    config.poll_ns = 900 * NS_PER_US;
    config.fault_gap_ns = 26 * 60 * NS_PER_S;
    config.fault_ns = 600 * NS_PER_S;
    config.fault_mask = 1u << JOB_FAULT_NIC_DOWN | 1u << JOB_FAULT_NIC_HOLE |
                        1u << JOB_FAULT_NIC_IN | 1u << JOB_FAULT_NIC_OUT |
                        1u << JOB_FAULT_TRUNK_DOWN | 1u << JOB_FAULT_TRUNK_HOLE;
    config.run_ns = (int64_t)(days * 86400e9);
    config.carrier_late_ns = NS_PER_S;
    config.buffer_log2 = 17; /* small messages, many connections */
    config.step_ns = 1800 * NS_PER_S;
    play(&config, "week", &one);
    snprintf(
        note, sizeof(note),
        "%.2f days, 4,096 NICs, %llu faults, %llu steps, %llu messages, %llu lanes failed over",
        days, (unsigned long long)one.faults, (unsigned long long)one.steps,
        (unsigned long long)one.messages, (unsigned long long)one.failovers);
    report_simulated(report, "sim.job.week.lives", one.wrong == NULL, "", 1, 1, REPORT_HIGHER,
                     note);
    report_simulated(report, "sim.job.week.worst_step_s", (double)one.step_ns_max / 1e9, "s",
                     REPORT_NONE, REPORT_NONE, REPORT_LOWER,
                     "the longest that a step of the whole job took, a fault in it");
}

/* -- all with all ------------------------------------------------------------------------------ */

static void star(struct report *report, uint32_t ranks)
{
    struct job_world_config config = wide_fabric(ranks, 16, 8);
    struct job_world_result one;
    char id[64], note[128];

    config.pattern = JOB_STAR;
    config.comms = 1;
    config.messages = 3;
    config.poll_ns = 5 * NS_PER_MS;
    play(&config, "star", &one);
    snprintf(id, sizeof(id), "sim.job.sockets.%u", ranks);
    snprintf(note, sizeof(note),
             "most lanes at one of %u ranks that all talk to each other, both directions; the "
             "ceiling is %u",
             ranks, PROCESS_LANES_MAX);
    report_simulated(report, id, one.wrong == NULL ? (double)one.sockets_max : REPORT_NONE,
                     "sockets", SOCKETS_MUST, SOCKETS_MUST, REPORT_LOWER, note);
}

/* -- two jobs that share links ---------------------------------------------------------------- */

/* Two all-reduces in parallel at 400 Gb/s. Each rank's next rank is on another leaf. Host links have 1.5 x the rate of trunk
 * links. */
static struct job_world_config contended_fabric(uint32_t nics, uint64_t seed)
{
    struct job_world_config config = wide_fabric(nics / 2, 32, 32);

    config.seed = seed;
    config.host_bps = 400000000000LL;
    config.trunk_bps = config.host_bps * 2 / 3;
    config.delay_ns = 500;
    config.lanes = 8; /* the plugin's number at that speed */
    config.jobs = 2;
    pass_on(&config, 2, STEP, STEPS);
    config.poll_ns = 20 * NS_PER_US;
    config.buffer_log2 = 19;
    config.warm_ns = 1300 * NS_PER_US;
    config.run_ns = 1450 * NS_PER_US;
    return config;
}

static double contended_bytes(const struct job_world_config *config, const char *what,
                              struct job_world_result *ret)
{
    play(config, what, ret);
    return (double)ret->chaos_bytes;
}

/* The worst of all draws of ports. */
static void contended(struct report *report, uint32_t nics)
{
    double ecmp_least = INFINITY, spray_least = INFINITY, p99_ns = 0, gbps = 0;
    struct job_world_result one, ecmp, spray;
    char note[160];

    for (uint64_t seed = 1; seed <= CONTENDED_SEEDS; seed++) {
        const struct job_world_config ours = contended_fabric(nics, seed);
        struct job_world_config other = ours;
        const double bytes = contended_bytes(&ours, "contended", &one);
        other.lanes = 1; /* with as much buffer as the eight lanes had */
        other.buffer_log2 += 3;
        other.failover_only = true;
        ecmp_least = fmin(ecmp_least, bytes / contended_bytes(&other, "contended, ECMP", &ecmp));
        other.trunk_bps *=
            other.spines; /* one link as wide as all of them, as with ideal in-order spraying */
        other.spines = 1;
        spray_least =
            fmin(spray_least, bytes / contended_bytes(&other, "contended, sprayed", &spray));
        p99_ns = fmax(p99_ns, (double)one.owd_ns_p99);
        gbps += bytes * 8 / (double)(ours.run_ns - ours.warm_ns) / nics / CONTENDED_SEEDS;
    }
    snprintf(note, sizeof(note),
             "the worst of %d draws; %u NICs of 400 Gb/s, %.0f Gb/s each; 0.15 ms: too short for "
             "lanes to move",
             CONTENDED_SEEDS, nics, gbps);
    report_simulated(report, "sim.job.contended.ecmp", ecmp_least, "ratio", 1.29, 2, REPORT_HIGHER,
                     note);
    report_simulated(report, "sim.job.contended.spray", spray_least, "ratio", 0.9, 0.97,
                     REPORT_HIGHER, note);
    report_simulated(report, "sim.job.contended.p99_us", p99_ns / 1e3, "us", 50, 25, REPORT_LOWER,
                     note);
}

/* -- a link that carries a tenth -------------------------------------------------------------- */

/* One draw of ports isn't enough: chance decides which lanes use the slow link. */
static void brownout(struct report *report)
{
    struct job_world_config config = wide_fabric(8, 2, 4);
    double share_ms = 0, rate_ms = 0, share = 0, rate = 0, before = 0;
    struct job_world_result one;
    char note[160];

    config.nics = 1;
    config.host_bps = 1500000000LL;
    config.trunk_bps = 1000000000LL;
    pass_on(&config, 1, 262144, 8);
    config.poll_ns = 50 * NS_PER_US;
    config.brown_ns = NS_PER_S;
    config.run_ns = 3 * NS_PER_S;
    for (config.seed = 1; config.seed <= BROWN_SEEDS; config.seed++) {
        play(&config, "brown-out", &one);
        const double share_one = (double)one.brown_share_ns / 1e6;
        const double rate_one =
            one.brown_rate_ns < 0 ? REPORT_NONE : (double)one.brown_rate_ns / 1e6;
        share_ms = share_one > share_ms ? share_one : share_ms;
        rate_ms = rate_one > rate_ms || isnan(rate_one) ? rate_one : rate_ms;
        share += one.brown_share / BROWN_SEEDS;
        rate += one.brown_rate / BROWN_SEEDS;
        before += one.brown_before / BROWN_SEEDS;
    }
    snprintf(note, sizeof(note),
             "worst of %d draws; its lanes get %.3f of what is newly sent, and have 0.032 of the "
             "capacity that is left",
             BROWN_SEEDS, share);
    report_simulated(report, "sim.job.brownout.share_ms", share_ms, "ms", 100, 10, REPORT_LOWER,
                     note);
    snprintf(note, sizeof(note),
             "worst of %d; until 100 ms brought 95 %% of the bound of what is left; %.3f of it in "
             "all 2 s; %.3f before",
             BROWN_SEEDS, rate, before);
    report_simulated(report, "sim.job.brownout.rate_ms", rate_ms, "ms", 1000, 100, REPORT_LOWER,
                     note);
}

/* -- a slow NIC -------------------------------------------------------------------------------- */

static void slow_nic(struct report *report)
{
    double settled = 0, before = 0, least = 1;
    struct job_world_config config;
    struct job_world_result one;
    char note[160];

    for (uint64_t seed = 1; seed <= SLOW_SEEDS; seed++) {
        job_world_slow(&config, seed);
        play(&config, "slow NIC", &one);
        settled += one.slow_settled / SLOW_SEEDS;
        before += one.slow_before / SLOW_SEEDS;
        least = one.slow_settled < least ? one.slow_settled : least;
    }
    snprintf(note, sizeof(note),
             "mean of %d fabrics by chance, least %.3f; %.3f of the bound of all links before",
             SLOW_SEEDS, least, before);
    report_simulated(report, "sim.job.nic_brownout", settled, "of the bound", REPORT_NONE,
                     REPORT_NONE, REPORT_HIGHER, note);
}

/* -- all parts, one process per processor ------------------------------------------------------ */

static struct {
    uint64_t faults;
    double hours, days;
    uint32_t ranks, nics;
    uint64_t late;
    uint64_t first; /* seed of the first world of chaos */
    bool chaos_only;
} asked;
static int *wrong_parts; /* shared with the processes */

enum part {
    PART_LATE,
    PART_BROWNOUT,
    PART_SLOW_NIC,
    PART_STAR_512,
    PART_STAR_64,
    PART_QUIET,
    PART_CONTENDED,
    PART_WEEK,
    PART_STAR,
    PART_CHAOS, /* followed by its slices */
    PART_COUNT = PART_CHAOS + CHAOS_SLICES,
};

static void measure(struct report *report, int part)
{
    switch ((enum part)part) {
    case PART_LATE:
        if (asked.late > 0) {
            late(report, asked.late);
        }
        break;
    case PART_BROWNOUT:
        if (!asked.chaos_only) {
            brownout(report);
        }
        break;
    case PART_SLOW_NIC:
        if (!asked.chaos_only) {
            slow_nic(report);
        }
        break;
    case PART_STAR_512:
    case PART_STAR_64:
        if (asked.ranks > 0) {
            star(report, part == PART_STAR_512 ? 512 : 64);
        }
        break;
    case PART_QUIET:
        if (asked.hours > 0) {
            quiet(report, asked.hours);
        }
        break;
    case PART_CONTENDED:
        if (asked.nics > 0) {
            contended(report, asked.nics);
        }
        break;
    case PART_WEEK:
        if (asked.days > 0) {
            week(report, asked.days);
        }
        break;
    case PART_STAR:
        if (asked.ranks > 512) {
            star(report, asked.ranks);
        }
        break;
    default:
        if (asked.faults > 0) {
            chaos_slice(report, asked.faults, asked.first + (uint64_t)(part - PART_CHAOS));
        }
        break;
    }
    wrong_parts[part] = wrongs;
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct report report;
    int bad = 0;

    asked.faults = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    asked.hours = argc > 2 ? strtod(argv[2], NULL) : 0.2;
    asked.days = argc > 3 ? strtod(argv[3], NULL) : 0;
    asked.ranks = argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 512;
    asked.nics = argc > 5 ? (uint32_t)strtoul(argv[5], NULL, 10) : 1024;
    asked.late = argc > 6 ? strtoull(argv[6], NULL, 10) : 0;
    asked.chaos_only = argc > 7;
    asked.first = argc > 7 ? strtoull(argv[7], NULL, 10) : 1;
    report_init(&report, "job-sim", argc, argv);
    wrong_parts = parallel_memory(PART_COUNT * sizeof(*wrong_parts));
    chaos = parallel_memory(sizeof(*chaos));
    if (wrong_parts == NULL || chaos == NULL) {
        return 1;
    }
    bad += parallel_report(&report, PART_COUNT, measure);
    for (int i = 0; i < PART_COUNT; i++) {
        bad += wrong_parts[i];
    }
    return report_finish(&report) < 0 || bad > 0;
}
