/* perf.h: tests of bandwidth and of collectives in an audit: which hosts run what beside each other, what is slow, and what makes
 * it slow.
 *
 * A test is an all-reduce of a group of hosts. A step is a set of groups that have no host in common and run at the same time;
 * a plan is the steps that can be told now. First pairs: each NIC with a neighbour of its leaf, and with one of another; the
 * middle of all pairs is what a NIC carries here. Then all hosts together, at 1, 2, 4, 8 lanes a peer, ranks in the order of
 * names and in that of leaves. Between the pairs of different leaves each way through the fabric is tried by itself (ways.h): a
 * collective goes round a slow trunk and hides it. Where the best of these is slower than the pairs allow, search.h finds who
 * makes it so, a step for each of its rounds.
 *
 * Where hosts have RoCE ports, some of them get packets of many others at once, one host of each leaf: the queue that grows there
 * tells whether the switch marks packets.
 *
 * In rings are hosts whose NICs were all measured by pairs: one dead NIC would end the ring of all. Before the rings these hosts
 * show what the whole fabric carries: drawn pairs of all hosts at once, over all NICs, each time others; and all-to-alls
 * (perf_fabric.c).
 *
 * Where most first tests of a place fail, as in a moment in which hosts have no processor, all of it is tested once more.
 *
 * In one step each host measures its own memory (perf_memory.c).
 *
 * Nobody is slow by one test: a NIC is screened by the better of its partners, of which each is another one. Whoever looks slow,
 * or had only tests that failed, meets one more that does not. Among five alike or more, who is further off than most then is
 * tested afresh, three to nine times, each time with another partner and beside pairs of others in the same seconds; the verdict
 * is by these retests alone, each as a share of what stood beside it (outlier.h, perf_again.c). How much chance does is what the
 * pairs beside differ by from each other in the same seconds; until there are enough of them, what the first tests did. What the
 * search names was seen with different partners. What was not measured keeps the reason. Who refuses, leaves, or falls silent is
 * asked no more: the collectives that it ended are run again without it, and those before keep what they came to.
 *
 * Nobody is named where processors may have been the limit. A host tells in how much of a test it is not known to have waited for
 * the others: then it worked, or waited for a processor. Without that time the test would be faster, at most by that share. If
 * most hosts of a group lacked so much that it would not be slow, its slowness tells nothing. Of a host that is tested beside one
 * partner, what the partner lacked counts: what it lacks itself is its own fault. Beside each round of the search pairs of good
 * hosts run, as far as there are some: where half of these are slow, too, what is slow in that round tells nothing.
 *
 * No host's word condemns another. What a group carries is the middle of what its members tell. A pair is judged by the higher
 * of both words, and what is usual is made of the lower ones: who tells too little slows nobody, who tells too much raises
 * nothing that others are compared with. Who comes late is compared by how long each worked by its own word. Wrong values are a
 * host's own if all of its partners had them with it, and with nobody else. Sans-I/O, no time: steps out, results in. Memory
 * is the caller's.
 */
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
    PERF_PARTNERS = 3 + OUTLIER_RETESTS_MOST, /* of a NIC, by pairs */
    PERF_RETESTS = 3,                         /* of a plan, of each NIC */
    PERF_NOISE_LEAST =
        15, /* differences of those beside retests: of five steps with three of them */
    PERF_NOISE_MOST = 54,
    PERF_RETEST_PLANS = 6, /* who shares partners with many waits for the next */
    PERF_RING_PLANS = 4,   /* a host ends each but the last */
    PERF_ASKED = 4 + PERF_RETESTS * PERF_RETEST_PLANS, /* partners that were planned for a NIC */
    PERF_STEPS_MAX = 5 * HOST_NIC_MAX + 1, /* of a plan: three of pairs, ways, incast; memory */
    PERF_KINDS_MAX = 16,
    PERF_PERMUTATIONS = 3,   /* the middle of fewer is one partner's figure */
    PERF_ALLTOALL_MOST = 32, /* hosts of a group: each has a connection to each other one */
    PERF_SEARCH_BESIDE = 3,  /* pairs of good hosts beside a round of the search */
    PERF_INCAST_LEAST = 5,   /* hosts: four send to one */
    PERF_INCAST_MOST = 32,
    PERF_INCAST_BYTES = 1442, /* of a packet, with Ethernet's, IPv4's and UDP's headers */
    PERF_ARRIVALS = 40,       /* at the meetings of a test */
    PERF_TURNS = 4, /* pairs look in turn where a way is narrow: their trains share trunks */
    PERF_WORDS_SIZE = 160
};
_Static_assert(PERF_STEPS_MAX >= PERF_ROWS, "a step for each row");
_Static_assert(PERF_STEPS_MAX >= (PERF_RETESTS + 1) * HOST_NIC_MAX + 1,
               "retests, and who has no test; memory");
_Static_assert(PERF_STEPS_MAX <= AUDIT_STEPS_MAX, "agents take it");
_Static_assert(PERF_HOSTS_MAX <= UINT16_MAX, "a partner fits");
/* A group that carries less than this share of what its slowest pair should is slow. A ring of many hosts is in step with
 * the slowest message at each of them: in the lab it carries 0.9 of what pairs do. */
#define PERF_SLOW 0.8
/* Less than what NICs of its kind carry by this share matters: of be.bw.pair, where a site has not set another one. */
#define PERF_PRACTICAL        0.08
#define PERF_MEMORY_PRACTICAL 0.07    /* the same, of node.mem_bw */
#define PERF_FLOOR            0.003   /* what a test itself is good for, as a share */
#define PERF_NOISE_SMALL      0.25    /* of what matters */
#define PERF_OFTEN_LATE       0.3     /* of the meetings: the search begins with such a host */
#define PERF_LATE_NS          1000000 /* after the one in the middle: sooner is nobody's fault */

/* Why a host has no result of a step; the greater one tells more. */
enum perf_outcome {
    PERF_NOT_RUN, /* it takes no part */
    PERF_DONE,
    PERF_SILENT,    /* nothing came of it */
    PERF_FAILED,    /* with words */
    PERF_REFUSED,   /* with words */
    PERF_BUSY,      /* a job runs there */
    PERF_PREEMPTED, /* a job began */
    PERF_OUTCOME_COUNT
};

struct perf_result {
    uint8_t outcome;
    double rate;           /* bus bandwidth, bytes a second, by its own clock */
    uint32_t runs, spread; /* 1/10000 of it */
    uint64_t wrong;        /* at this host */
    uint32_t init_ms;
    uint16_t work[PERF_ARRIVALS]; /* how long it worked before each meeting, 10 us */
    uint32_t arrivals;            /* meetings */
    uint64_t sent, came, marked;  /* of an incast: packets; rate is what came */
    uint32_t late;                /* of rows: how often it came last, and late */
    double
        busy; /* share of it in which a processor, and not the network, may have been the limit here */
    char network[32], words[PERF_WORDS_SIZE];
};

struct perf_host {
    uint32_t nics;
    uint16_t leaf[HOST_NIC_MAX];
    uint16_t
        kind; /* hosts that ought to be alike have the same number; PERF_KINDS_MAX or more: nobody knows */
    bool there;    /* it can take part */
    bool alltoall; /* its agent can, in an all-to-all */
    bool incast;   /* in an incast, too: its jobs' traffic is to be marked */
    bool memory;   /* its agent can measure its memory, and is to */
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
    PERF_MEMORY /* each host alone */
};
struct perf_step {
    uint8_t kind, lanes, row;
    bool by_leaf;
    uint32_t nic;  /* of a pair, or of ways; PERF_NOBODY: */
    uint32_t nics; /* the first so many of each host */
};
/* A host's part in a step. */
struct perf_part {
    uint32_t group; /* PERF_NOBODY: none, ranks is 0 */
    uint32_t rank, ranks;
    uint32_t leader; /* the host of rank 0 */
};
/* Of a NIC beside those of its kind. */
enum perf_verdict {
    PERF_NOT_COMPARED, /* too few are alike, or it was not measured */
    PERF_ALIKE,
    PERF_UNTOLD, /* slower by what matters, and so are others by chance: it was not tested again */
    PERF_SCREENED, /* it is further off than most: its retests tell. At the end: there were too few of them */
    PERF_CLEARED,  /* by its retests it is as others are */
    PERF_UNPROVEN, /* they are slow, and chance is as slow here */
    PERF_SLOWER
};
/* Of values that were wrong. */
enum perf_truth { PERF_UNTRIED, PERF_RIGHT, PERF_WRONG, PERF_UNSURE /* one partner only */ };
enum perf_stage { PERF_PAIRS, PERF_PAIRS_AGAIN, PERF_FABRIC, PERF_RINGS, PERF_SEARCHING };

struct perf_config {
    const struct perf_host *hosts; /* in the order of names; they are to be kept */
    uint32_t count;
    bool wants_rings; /* rows of collectives and the search beside the pairs */
    bool no_ways;     /* no path through the fabric is tested */
    bool no_permutations, no_alltoall, no_memory;
    uint64_t seed;    /* of who meets whom in a permutation */
    double practical; /* share that a NIC may be slower by than its kind; 0: PERF_PRACTICAL */
    double memory_practical; /* the same, of a host's memory; 0: PERF_MEMORY_PRACTICAL */
};

struct perf {
    const struct perf_host *hosts;
    uint32_t count;
    bool wants_rings, no_ways, no_permutations, no_alltoall, no_memory, over;
    uint64_t seed;
    double practical, memory_practical;
    struct perf_step steps[PERF_STEPS_MAX];
    uint32_t step_count;
    uint8_t stage;               /* enum perf_stage: of the present plan */
    struct perf_part *parts;     /* [step * count + host] */
    struct perf_result *results; /* the same */
    uint32_t *order;             /* scratch, by host */
    double *scratch;             /* the same */
    uint8_t *gone; /* a job runs there, it refused, it left, or fell silent: it is asked no more */
    uint32_t *ring[2]; /* hosts of the rings, by names and by leaves */
    uint32_t *drawn;   /* scratch, the same in another order */
    uint32_t ring_count;
    uint32_t ring_nics; /* of each of them, from the first on: as many as were measured of most */
    uint32_t ring_plans;
    /* what came of it */
    struct perf_nic {
        double rate; /* with the best of its partners, by the higher of both words */
        double sure; /* the same by the lower of both words */
        double busy; /* in that test, of both ends together, 1 at most (perf_result.busy) */
        uint32_t tried, partners[PERF_PARTNERS], wrong; /* wrong: with how many values were */
        uint16_t asked[PERF_ASKED]; /* partners of tests that were planned, whatever came of them */
        uint8_t asked_count;
        uint8_t verdict;
        struct outlier_retest retest;
        struct perf_incast {
            uint32_t senders; /* that sent to this NIC at once; 0: none did */
            uint64_t sent, came, marked;
            double rate;
        } incast;
    } * nic; /* [host * HOST_NIC_MAX + nic] */
    struct perf_cohort {
        double upper; /* a quarter carries as much with the best of their partners */
        bool known, single;
        struct outlier_cohort best,
            one; /* of NICs by the best of their partners; of single tests: the first ones, then the retests' */
        double noise
            [PERF_NOISE_MOST]; /* of those beside retests, each beside the others of its step */
        uint32_t noise_count;
    } cohorts[PERF_KINDS_MAX][HOST_NIC_MAX];
    struct perf_fabric {
        double rates[PERF_PERMUTATIONS + 1]; /* of a pair, a share for each NIC, ascending */
        uint32_t count;
        uint32_t ranks; /* of its all-to-all; 0: it was in none */
        struct perf_result alltoall;
    } * fabric; /* by host */
    struct perf_memory {
        struct perf_result best; /* of its tests, or why the last of them was not done */
        uint32_t tried, runs;    /* tests that were done, and runs of all of them */
        double usual;            /* the middle of its kind by the first tests */
    } * memory;                  /* by host */
    struct outlier_case *cases;  /* of all NICs */
    uint32_t candidates, retest_plans;
    bool doubted, screened; /* that was planned, and done */
    bool repeated;          /* the same: of pairs of which most failed, */
    uint32_t missed;        /* a bit for each NIC */
    struct ways ways;       /* ways_judge is the caller's: of 8,192 NICs it takes a second */
    double usual[HOST_NIC_MAX], expected; /* the middle of all pairs; of the rings' NICs together */
    struct perf_result *rows;             /* [row * count + host] */
    struct perf_together {                /* of a row's hosts, when it was run last */
        uint8_t outcome;                  /* of the one that came off worst */
        uint32_t hosts;
        double rate; /* < 0: it was not done */
        double busy; /* most hosts told as much or more */
    } together[PERF_ROWS];
    double best; /* of the rows; < 0: none was measured */
    uint32_t best_row;
    bool slow; /* it is less than the pairs allow */
    uint32_t
        excused; /* groups that were slow, and of which processors may be why: the ring, or tests of the search */
    bool searched; /* the search came to its end */
    struct search search;
    struct search_test tests[2 * SEARCH_SETS_MAX];
    uint32_t test_count, beside_count; /* beside: groups behind those of the tests */
    void *search_memory;
    double *named_rate; /* by host: of its last slow test alone beside a good one; 0: none */
};

size_t perf_size(uint32_t hosts);
/* memory: perf_size bytes, of malloc's alignment. -ENODATA: fewer than two can take part. */
MUST_CHECK int perf_init(struct perf *p, const struct perf_config *config, void *memory);
const struct perf_part *perf_part_of(const struct perf *p, uint32_t step, uint32_t host);
/* Of the present plan. */
void perf_take(struct perf *p, uint32_t step, uint32_t host, const struct perf_result *result);
/* What this host's packets got over a way in a step of PERF_WAYS; its host and partner are set here. */
void perf_take_way(struct perf *p, uint32_t step, uint32_t host, const struct way *way);
/* It has left: what it did not tell yet it refused, and it is asked no more. */
void perf_leave(struct perf *p, uint32_t host);
/* The plan's results are there, or are given up. False: there is no other plan. */
bool perf_next(struct perf *p);
/* The worst of what a host's tests of this plan came to that are not done; PERF_DONE: all are; PERF_NOT_RUN: none. */
enum perf_outcome perf_missing(const struct perf *p, uint32_t host);
const char *perf_outcome_name(enum perf_outcome outcome);
/* What NICs at this place of hosts of this one's kind carry; where too few are alike, of all hosts. < 0: none was measured. */
double perf_usual(const struct perf *p, uint32_t host, uint32_t nic);
/* How many of its kind a NIC was compared with; 0: too few. */
uint32_t perf_cohort(const struct perf *p, uint32_t host, uint32_t nic);
/* Are what it sends and what it gets right? By its pairs. */
enum perf_truth perf_truth_of(const struct perf *p, uint32_t host);
/* Hosts with wrong values in a row. */
uint32_t perf_row_wrong(const struct perf *p, uint32_t row);
/* A test of that NIC was done: its rate is one, be it 0. */
bool perf_is_measured(const struct perf *p, uint32_t host, uint32_t nic);
/* It is in the rings; else fewer of its NICs were measured, from the first on, than of most, or it takes no part. */
bool perf_in_rings(const struct perf *p, uint32_t host);
/* What each of its NICs carries in permutations: the middle. < 0: none was done. */
double perf_permuted(const struct perf *p, uint32_t host);
/* Its memory looked slow, and was not measured again. */
bool perf_memory_doubted(const struct perf *p, uint32_t host);
/* After the search: it was in a fast test beside what is slow. */
bool perf_cleared(const struct perf *p, uint32_t host);
uint32_t perf_lanes(uint32_t row); /* of PERF_ROWS: 1, 2, 4, 8 by names, then by leaves */
