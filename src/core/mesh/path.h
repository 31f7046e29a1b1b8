/* path.h: one path of a NIC pair in one direction: liveness, loss, order, one-way delay.
 *
 * Liveness is a total transition function (path_next). A path is dead only with proof: its sender has transmit stamps of packets
 * that the receiver did not get, although it was awake and heard the same sender on other paths. Silence without proof is
 * UNKNOWN, never DEAD. So a starved or stopped agent accuses nobody, and is accused of silence only. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum path_state {
    PATH_UNKNOWN, /* never heard, or the whole peer is silent, or this host was late */
    PATH_ALIVE,
    PATH_SUSPECT, /* overdue: a burst was requested */
    PATH_LOSSY,   /* gray: the sequential test found more loss than on a good path */
    PATH_DEAD,    /* black hole, proven */
    PATH_STATE_COUNT
};
enum path_event {
    PATH_HEARD,    /* a packet arrived */
    PATH_REVIVED,  /* enough packets arrived: a dead path lives again */
    PATH_OVERDUE,  /* the next packet should have arrived */
    PATH_PROVEN,   /* enough packets were sent with proof and not received */
    PATH_SILENCE,  /* the peer is not heard on any path: no judgement */
    PATH_LATE,     /* this host may have missed packets: no judgement */
    PATH_LOSS,     /* the loss test rose above its limit */
    PATH_LOSS_END, /* it fell below the limit */
    PATH_EVENT_COUNT
};
/* Total: every state and event has a successor. */
enum path_state path_next(enum path_state state, enum path_event event);
const char *path_state_word(enum path_state state);

/* One direction of one path. Delays in ns of fleet time. Unknown is -1 in counts and INT64_MIN in delays. */
struct path_report {
    uint32_t state;       /* enum path_state */
    uint16_t source_port; /* 0: not known (a path of the peer without packets yet) */
    uint8_t hop_count;    /* routers on the way, 0: unknown */
    uint8_t reserved;
    uint64_t signature; /* of the hop list */
    struct mono since;  /* when this state began */
    struct mono heard;  /* the last proof of life */
    /* since the path was chosen; only packets with known fates */
    uint64_t sent, lost, reordered;
    uint32_t lost_recent, sent_recent; /* last 30..60 s */
    uint32_t deaths;                   /* the number of times that it was dead */
    uint32_t reserved2;
    int64_t owd_ns_last, owd_ns_min, owd_ns_p50, owd_ns_p99, owd_ns_max; /* last 10..20 s */
    int64_t owd_count;
    int64_t owd_ns_p50_long; /* over the last minutes: the usual value */
    int64_t job_ns_p50,
        /* over the last 16 singles, which have the class of the job's own traffic, with its queues */
        job_ns_max;
    int64_t
        bound_ns; /* the clock's statistical bound for these delays; INT64_MIN: not synchronised */
    int64_t hard_ns; /* the hard bound */
};

/* Gray loss: a sequential test (CUSUM of the log likelihood ratio of LOSS_BAD against LOSS_GOOD for each coded pair; a pair is
 * lost if either packet is). It rises with losses and falls slowly with arrivals, never below 0. Above LOSS_LIMIT the path is
 * lossy. On a path that loses LOSS_GOOD or less, the mean time between false alarms is at least exp(LOSS_LIMIT) pairs (Lorden
 * 1971): 5e11 pairs = 6e7 path-hours at 2.5 pairs a second. It finds 5 % in about 45 s, 2 % in 150 s. It ends when the loss of
 * the last LOSS_END_PAIRS pairs is below LOSS_GOOD again. */
#define LOSS_GOOD      0.002
#define LOSS_BAD       0.05
#define LOSS_LIMIT     27.0
#define LOSS_END_PAIRS 250
struct loss_test {
    double score;
    uint32_t clean; /* pairs since the last loss */
    bool lossy;
};
/* The change by one pair's fate: PATH_LOSS, PATH_LOSS_END, or PATH_EVENT_COUNT for no change. */
enum path_event loss_test_pair(struct loss_test *test, bool lost);

/* The recent share of lost packets: losses and packets, both forgotten with the time constant `window`. */
struct loss_share {
    double lost, sent;
    struct mono at;
};
void loss_share_add(struct loss_share *share, struct mono now, struct span window, double lost,
                    double sent);
double loss_share_get(const struct loss_share *share); /* 0 .. 1 */
/* The share that it may be with so few packets: as if two more were lost. */
double loss_share_most(const struct loss_share *share);

/* The number of own packets, on all paths of an edge, that must stay unacknowledged to prove it deaf. A full queue drops packets,
 * too: if it drops a share p, n losses in a row come by chance with probability p^n. And a queue stays full for a while: losses
 * within PROOF_EPOCH_NS count as one, and the next epoch is as bad with PROOF_AGAIN times p. So many packets and so long a time
 * are required that chance is below PROOF_CHANCE. If nearly nothing is lost otherwise, PROOF_PACKETS suffice at once. */
#define PROOF_PACKETS   6
#define PROOF_CHANCE    1e-9
#define PROOF_QUIET     0.005 /* less than this is lost on any path */
#define PROOF_SHARE_MAX 0.8   /* a path that loses more is as good as dead */
#define PROOF_EPOCH_NS  (100 * NS_PER_MS)
#define PROOF_AGAIN     2.5
#define PROOF_EPOCHS    14 /* for a verdict within 2 s */
struct proof_wanted {
    uint32_t packets;
    struct span time; /* since the last arrival */
};
struct proof_wanted proof_wanted(double share);

/* For one path: the evidence of one more missing packet for a black hole. It is -ln of the chance that a queue dropped it, too,
 * if it was sent `since_ns` after the previous missing one (INT64_MAX: there was none). Right behind a dropped packet the queue
 * is as full, so the second packet of a pair shows nothing, and a burst shows little. A sum of PROOF_ENOUGH corresponds to
 * PROOF_CHANCE. */
#define PROOF_ENOUGH   20.7 /* -ln PROOF_CHANCE */
#define PROOF_DRAIN_NS (50.0 * NS_PER_MS)
double proof_evidence(double share, int64_t since_ns);
