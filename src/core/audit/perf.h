/* perf.h: tests of bandwidth and of collectives in an audit: which hosts run what at the same time, which results are slow, and
 * which host or trunk makes them slow.
 *
 * A test is an all-reduce of a group of hosts. A step is a set of groups that have no host in common and run at the same time. A
 * plan is the steps that are known by now. First come pairs: each NIC with a neighbour of its leaf, and with a NIC of another
 * leaf. The median of all pairs is the usual rate of a NIC. Then come all hosts together, at 1, 2, 4 and 8 lanes a peer, with
 * ranks in the order of names and in that of leaves. Between the pairs of different leaves each way through the fabric is tried
 * by itself (ways.h), because a collective avoids a slow trunk and hides it. If the best of these rows is slower than the pairs
 * allow, search.h finds the hosts that make it slow, with a step for each of its rounds.
 *
 * If hosts have RoCE ports, some of them receive packets of several others at once, one host of each leaf: the queue that grows
 * there shows whether the switch marks packets.
 *
 * A ring has hosts whose NICs were all measured by pairs: one dead NIC would end the ring of all. Before the rings these hosts
 * show what the whole fabric carries: by drawn pairs of all hosts at once, over all NICs, with other pairs each time; and by
 * all-to-alls (perf_fabric.c).
 *
 * If most first tests of a place fail, as in a moment in which hosts have no processor, all of them are run once more.
 *
 * In one step each host measures its own memory (perf_memory.c).
 *
 * One test alone makes nothing slow. The screen takes a NIC's best test with its partners, each of which is another host. A NIC
 * that looks slow, or had only tests that failed, meets one more partner, one that doesn't. If at least five NICs are alike,
 * those that are then further off than most are tested again: three to nine times, each time with another partner and beside
 * pairs of others in the same seconds. The verdict uses only these retests, each as a share of the pairs beside it (outlier.h,
 * perf_again.c). The effect of chance is measured by how much the pairs beside differ from each other in the same seconds; until
 * there are enough of them, by the first tests. A host that the search names was seen with different partners. A test that was
 * not done keeps its reason. A host that refuses, leaves, or falls silent is asked no more: the collectives that it ended are run
 * again without it, and earlier ones keep their results.
 *
 * Nobody is named if processors may have been the limit. A host reports the part of a test in which it is not known to have
 * waited for the others: then it worked, or waited for a processor. Without that time the test would be faster, at most by that
 * share. If most hosts of a group report so much of it that the group would not be slow, the group's slowness proves nothing. For
 * a host that is tested with one partner, the partner's report counts: the host's own lack of processors is its own fault. Beside
 * each round of the search pairs of good hosts run, as far as there are some: if half of these are slow, too, a slow test of that
 * round proves nothing.
 *
 * No host's report makes another one fail. A group's rate is the median of its members' reports. A pair is judged by the higher
 * of both reports, and the usual rate is made of the lower ones: so a host that reports too little makes nobody slow, and one
 * that reports too much doesn't raise the rate to which others are compared. Lateness is compared by how long each host worked by
 * its own report. Wrong values are a host's own fault if all of its partners had them with it, and with nobody else. Sans-I/O, no
 * time: steps out, results in. Memory is the caller's. */
#pragma once
#include "base/limits.h"
#include "core/audit/outlier.h"
#include "core/audit/search.h"
#include "core/audit/ways.h"

#define PERF_LEAF_NONE UINT16_MAX
#define PERF_NOBODY    UINT32_MAX

enum {
    PERF_LANES_COUNT = 4,
    PERF_ROWS = 2 * PERF_LANES_COUNT,
    PERF_PAIR_LANES = 4,
    PERF_HOSTS_MAX = 4096,
    PERF_PARTNERS = 3 + OUTLIER_RETESTS_MOST, /* partners of a NIC in tests of pairs */
    PERF_RETESTS = 3,                         /* for each NIC, in one plan */
    PERF_NOISE_LEAST =
        15, /* differences between pairs beside retests: five steps with three pairs */
    PERF_NOISE_MOST = 54,
    PERF_RETEST_PLANS = 6, /* a NIC that shares its partners with many waits for the next plan */
    PERF_RING_PLANS = 4,   /* a host ends each one but the last */
    PERF_ASKED = 4 + PERF_RETESTS * PERF_RETEST_PLANS, /* partners that were planned for a NIC */
    PERF_STEPS_MAX = 5 * HOST_NIC_MAX + 1, /* of a plan: three for pairs, ways, incast; memory */
    PERF_KINDS_MAX = 16,
    PERF_PERMUTATIONS = 3,   /* with fewer, the median is one partner's figure */
    PERF_ALLTOALL_MOST = 32, /* hosts of a group: each has a connection to each of the others */
    PERF_SEARCH_BESIDE = 3,  /* pairs of good hosts beside a round of the search */
    PERF_INCAST_LEAST = 5,   /* hosts: four send to one */
    PERF_INCAST_MOST = 32,
    PERF_INCAST_BYTES = 1442, /* size of a packet with the headers of Ethernet, IPv4 and UDP */
    PERF_ARRIVALS = 40,       /* meetings of a test */
    PERF_PARTS = 5,           /* runs of a collective */
    PERF_TURNS = 4, /* pairs take turns to find where a way is narrow: their trains share trunks */
    PERF_WORDS_SIZE = 160
};
_Static_assert(PERF_STEPS_MAX >= PERF_ROWS, "a step for each row");
_Static_assert(PERF_STEPS_MAX >= (PERF_RETESTS + 1) * HOST_NIC_MAX + 1,
               "retests, and who has no test; memory");
_Static_assert(PERF_STEPS_MAX <= AUDIT_STEPS_MAX, "agents take it");
_Static_assert(PERF_HOSTS_MAX <= UINT16_MAX, "a partner fits");
/* A group is slow if it carries less than this share of its slowest pair's expected rate. A ring of many hosts waits for the
 * slowest message at each of them: in the lab it carries 0.9 of what pairs do. */
#define PERF_SLOW 0.8
/* A NIC is slower if it carries less than NICs of its kind by this share: the limit of be.bw.pair, if a site has not set another
 * one. */
#define PERF_PRACTICAL        0.08
#define PERF_MEMORY_PRACTICAL 0.07  /* the same for node.mem_bw */
#define PERF_FLOOR            0.003 /* error of the test itself, as a share */
#define PERF_NOISE_SMALL      0.25  /* as a share of the difference that matters */
/* share of the meetings: the search begins with such a host */
#define PERF_OFTEN_LATE 0.3
/* after the host in the middle; less is not counted as late */
#define PERF_LATE_NS 1000000

/* Why a host has no result of a step. Of two outcomes, the greater one is more informative. */
enum perf_outcome {
    PERF_NOT_RUN, /* the host takes no part */
    PERF_DONE,
    PERF_SILENT,    /* no report came */
    PERF_FAILED,    /* with a reason in words */
    PERF_REFUSED,   /* with a reason in words */
    PERF_BUSY,      /* a job runs on the host */
    PERF_PREEMPTED, /* a job began */
    PERF_OUTCOME_COUNT
};

struct perf_result {
    uint8_t outcome;
    double rate;           /* bus bandwidth in bytes a second, by the host's own clock */
    uint32_t runs, spread; /* in 1/10000 of the rate */
    uint64_t wrong;        /* wrong values at this host */
    uint32_t init_ms;
    uint16_t work[PERF_ARRIVALS]; /* how long it worked before each meeting, in 10 us */
    uint32_t arrivals;            /* the number of meetings */
    /* for an incast: packets; `rate` is the rate at which they came */
    uint64_t sent, came, marked;
    uint32_t late; /* for rows: how often it came last, and late */
    /* share of the test in which this host's processor, not the network, may have been the limit */
    double busy;
    /* of each run of a collective, as they came: its rate beside the fastest, and how long its threads waited for a processor,
     * added up, 1/10000; 0 parts: not known */
    uint8_t parts;
    uint16_t part_rate[PERF_PARTS], part_waited[PERF_PARTS];
    char network[32], words[PERF_WORDS_SIZE];
};

struct perf_host {
    uint32_t nics;
    uint16_t leaf[HOST_NIC_MAX];
    uint16_t
        kind; /* hosts that should be alike have the same number; PERF_KINDS_MAX or more: not known */
    bool there;    /* it can take part */
    bool alltoall; /* its agent supports all-to-all */
    bool incast;   /* its agent supports incast, and its jobs' traffic should be marked */
    bool memory;   /* its agent can measure its memory, and must do so */
};

enum perf_kind {
    PERF_PAIR,
    PERF_RETEST,
    PERF_WAYS,
    PERF_INCAST,
    PERF_PERMUTATION,
    PERF_ALLTOALL,
    PERF_RING,
    PERF_SEARCH,
    PERF_MEMORY /* each host by itself */
};
struct perf_step {
    uint8_t kind, lanes, row;
    bool by_leaf;
    uint32_t nic;  /* of a pair, or of ways; PERF_NOBODY: */
    uint32_t nics; /* that many NICs of each host, from the first one on */
};
/* A host's part in a step. */
struct perf_part {
    uint32_t group; /* PERF_NOBODY: it has no part, ranks is 0 */
    uint32_t rank, ranks;
    uint32_t leader; /* the host of rank 0 */
};
/* A NIC compared with NICs of its kind. */
enum perf_verdict {
    PERF_NOT_COMPARED, /* too few are alike, or it was not measured */
    PERF_ALIKE,
    PERF_UNTOLD, /* slower by what matters, but so are others by chance: it was not tested again */
    PERF_SCREENED, /* further off than most: the retests decide. At the end: there were too few of them */
    PERF_CLEARED,  /* by its retests it is like the others */
    PERF_UNPROVEN, /* the retests are slow, but chance is as slow here */
    PERF_SLOWER
};
/* Whether values were wrong. */
enum perf_truth { PERF_UNTRIED, PERF_RIGHT, PERF_WRONG, PERF_UNSURE /* one partner only */ };
enum perf_stage { PERF_PAIRS, PERF_PAIRS_AGAIN, PERF_FABRIC, PERF_RINGS, PERF_SEARCHING };

struct perf_config {
    const struct perf_host *hosts; /* in the order of names; the caller keeps them */
    uint32_t count;
    bool wants_rings; /* rows of collectives and the search, besides the pairs */
    bool no_ways;     /* no way through the fabric is tested */
    bool no_permutations, no_alltoall, no_memory;
    uint64_t seed;    /* of the drawn pairs of a permutation */
    double practical; /* share by which a NIC may be slower than its kind; 0: PERF_PRACTICAL */
    double memory_practical; /* the same for a host's memory; 0: PERF_MEMORY_PRACTICAL */
};

struct perf {
    const struct perf_host *hosts;
    uint32_t count;
    bool wants_rings, no_ways, no_permutations, no_alltoall, no_memory, over;
    uint64_t seed;
    double practical, memory_practical;
    struct perf_step steps[PERF_STEPS_MAX];
    uint32_t step_count;
    uint8_t stage;               /* enum perf_stage of the present plan */
    struct perf_part *parts;     /* [step * count + host] */
    struct perf_result *results; /* [step * count + host] */
    uint32_t *order;             /* scratch, by host */
    double *scratch;             /* scratch, by host */
    uint8_t *gone; /* by host: a job runs, it refused, left, or fell silent: it is asked no more */
    uint32_t *ring[2]; /* hosts of the rings, by names and by leaves */
    uint32_t *drawn;   /* scratch: the same hosts in another order */
    uint32_t ring_count;
    /* NICs of each of these hosts in the rings, from the first one on: as many as most hosts had measured */
    uint32_t ring_nics;
    uint32_t ring_plans;
    /* results of a NIC */
    struct perf_nic {
        double rate; /* with its best partner, by the higher of both reports */
        double sure; /* the same by the lower of both reports */
        double busy; /* in that test, the sum of both ends, at most 1 (perf_result.busy) */
        /* wrong: the number of partners with which values were wrong */
        uint32_t tried, partners[PERF_PARTNERS], wrong;
        uint16_t asked[PERF_ASKED]; /* partners of planned tests, with or without a result */
        uint8_t asked_count;
        uint8_t verdict;
        struct outlier_retest retest;
        struct perf_incast {
            uint32_t senders; /* hosts that sent to this NIC at once; 0: none */
            uint64_t sent, came, marked;
            double rate;
        } incast;
    } * nic; /* [host * HOST_NIC_MAX + nic] */
    struct perf_cohort {
        double upper; /* a quarter of the NICs carries as much with its best partner */
        bool known, single;
        struct outlier_cohort best,
            one; /* NICs by their best partner; single tests: the first ones, then the retests */
        /* differences of the pairs beside retests, each from the others of its step */
        double noise[PERF_NOISE_MOST];
        uint32_t noise_count;
    } cohorts[PERF_KINDS_MAX][HOST_NIC_MAX];
    struct perf_fabric {
        double rates[PERF_PERMUTATIONS + 1]; /* of a pair, a share for each NIC, ascending */
        uint32_t count;
        uint32_t ranks; /* ranks of its all-to-all; 0: it was in none */
        struct perf_result alltoall;
    } * fabric; /* by host */
    struct perf_memory {
        struct perf_result best; /* the best of its tests, or why the last one was not done */
        uint32_t tried, runs;    /* tests that were done, and the runs of all of them */
        double usual;            /* the median of its kind by the first tests */
    } * memory;                  /* by host */
    struct outlier_case *cases;  /* by NIC, for all NICs */
    uint32_t candidates, retest_plans;
    bool doubted, screened; /* whether that stage was planned and done */
    bool repeated;          /* tests of pairs of which most failed were run again, */
    uint32_t missed;        /* a bit for each NIC */
    struct ways ways;       /* the caller calls ways_judge: for 8,192 NICs it takes a second */
    /* the median of all pairs; for the rings' NICs together */
    double usual[HOST_NIC_MAX], expected;
    struct perf_result *rows; /* [row * count + host] */
    struct perf_together {    /* of a row's hosts, when the row was run last */
        uint8_t outcome;      /* the worst outcome of a host */
        uint32_t hosts;
        double rate; /* < 0: it was not done */
        double busy; /* most hosts reported as much or more */
    } together[PERF_ROWS];
    double best; /* the best of the rows; < 0: none was measured */
    uint32_t best_row;
    bool slow; /* it is less than the pairs allow */
    uint32_t
        excused; /* slow groups, the ring or tests of the search, for which processors may be the reason */
    bool searched; /* the search was completed */
    struct search search;
    struct search_test tests[2 * SEARCH_SETS_MAX];
    uint32_t test_count, beside_count; /* beside: the groups after those of the tests */
    void *search_memory;
    double *named_rate; /* by host: the rate of its last slow test with only a good host; 0: none */
};

size_t perf_size(uint32_t hosts);
/* memory: perf_size bytes, aligned like malloc's. -ENODATA: fewer than two hosts can take part. */
MUST_CHECK int perf_init(struct perf *p, const struct perf_config *config, void *memory);
const struct perf_part *perf_part_of(const struct perf *p, uint32_t step, uint32_t host);
/* A result of the present plan. */
void perf_take(struct perf *p, uint32_t step, uint32_t host, const struct perf_result *result);
/* The rate of this host's packets over a way, in a step of PERF_WAYS. The function sets the way's host and partner. */
void perf_take_way(struct perf *p, uint32_t step, uint32_t host, const struct way *way);
/* The host has left: its missing results count as refused, and it is asked no more. */
void perf_leave(struct perf *p, uint32_t host);
/* The plan's results have come, or are given up. False: there is no other plan. */
bool perf_next(struct perf *p);
/* The worst outcome of a host's tests of this plan that are not done. PERF_DONE: all are done. PERF_NOT_RUN: it had none. */
enum perf_outcome perf_missing(const struct perf *p, uint32_t host);
const char *perf_outcome_name(enum perf_outcome outcome);
/* The usual rate of NICs at this place, of hosts of this one's kind; if too few are alike, of all hosts. < 0: none was
 * measured. */
double perf_usual(const struct perf *p, uint32_t host, uint32_t nic);
/* The number of its kind with which a NIC was compared; 0: too few. */
uint32_t perf_cohort(const struct perf *p, uint32_t host, uint32_t nic);
/* Are the values that it sends and receives right? Judged by its pairs. */
enum perf_truth perf_truth_of(const struct perf *p, uint32_t host);
/* The number of hosts with wrong values in a row. */
uint32_t perf_row_wrong(const struct perf *p, uint32_t row);
/* A test of that NIC was done: its rate counts, even if it is 0. */
bool perf_is_measured(const struct perf *p, uint32_t host, uint32_t nic);
/* It is in the rings. Else it takes no part, or fewer of its NICs, from the first one on, were measured than of most hosts. */
bool perf_in_rings(const struct perf *p, uint32_t host);
/* The rate of each of its NICs in permutations: the median. < 0: none was done. */
double perf_permuted(const struct perf *p, uint32_t host);
/* The spread of the first collective's runs, in percent, that remains without the time that threads waited for processors: at
 * this host, and as two others confirm each other; *ret_one: also as one other reports alone, which may be false. false: this
 * host's agent doesn't tell. */
bool perf_spread_left(const struct perf *p, uint32_t host, double *ret_two, double *ret_one);
/* Its memory looked slow, and was not measured again. */
bool perf_memory_doubted(const struct perf *p, uint32_t host);
/* After the search: it was in a fast test beside the slow part. */
bool perf_cleared(const struct perf *p, uint32_t host);
/* row: of PERF_ROWS: 1, 2, 4, 8 lanes by names, then the same by leaves */
uint32_t perf_lanes(uint32_t row);
