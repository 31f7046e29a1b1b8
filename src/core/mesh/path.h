/* path.h: what is known of one path of a NIC pair in one direction: alive or not, loss, order,
 * one-way delay.
 *
 * Liveness is a total transition function (path_next). A path is called dead only on proof: its
 * sender holds transmit stamps of packets that the receiver, awake and hearing the same sender on
 * other paths, never got. Silence without proof is UNKNOWN, never DEAD: a starved or stopped agent
 * accuses nobody and is accused of nothing but silence. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

enum path_state {
    PATH_UNKNOWN, /* never heard, or all of the peer is silent, or we were late ourselves */
    PATH_ALIVE,
    PATH_SUSPECT, /* overdue: a burst was asked for */
    PATH_LOSSY,   /* gray: the sequential test found more loss than a good path has */
    PATH_DEAD,    /* black hole, proven */
    PATH_STATE_COUNT
};
enum path_event {
    PATH_HEARD,    /* a packet came through */
    PATH_REVIVED,  /* so many did that a dead path lives again */
    PATH_OVERDUE,  /* the next one should have come */
    PATH_PROVEN,   /* enough packets proven sent and not received */
    PATH_SILENCE,  /* the peer is not heard on any path: no judgement */
    PATH_LATE,     /* we could have missed it ourselves: no judgement */
    PATH_LOSS,     /* the loss test rose above its limit */
    PATH_LOSS_END, /* and fell back */
    PATH_EVENT_COUNT
};
/* Total: every state and event has a successor. */
enum path_state path_next(enum path_state state, enum path_event event);
const char *path_state_word(enum path_state state);

/* One direction of one path. Delays in ns of fleet time; -1 in counts and INT64_MIN in delays:
 * unknown. */
struct path_report {
    uint32_t state;       /* enum path_state */
    uint16_t source_port; /* 0: not known (a peer's path never heard) */
    uint8_t hop_count;    /* routers on the way, 0: unknown */
    uint8_t reserved;
    uint64_t signature;                /* of the hop list */
    struct mono since;                 /* of this state */
    struct mono heard;                 /* last proof of life */
    uint64_t sent, lost, reordered;    /* since the path was chosen; of those whose fate is known */
    uint32_t lost_recent, sent_recent; /* last 30..60 s */
    uint32_t deaths;                   /* times it was found dead */
    uint32_t reserved2;
    int64_t owd_ns_last, owd_ns_min, owd_ns_p50, owd_ns_p99, owd_ns_max; /* last 10..20 s */
    int64_t owd_count;
    int64_t owd_ns_p50_long; /* last minutes: what it was before */
    int64_t job_ns_p50,
        job_ns_max; /* the last 16 singles, in the class of the job's own traffic: its queues too */
    int64_t
        bound_ns; /* the clock's statistical bound on these delays; INT64_MIN: not synchronised */
    int64_t hard_ns; /* the hard one */
};

/* Gray loss: a sequential test (CUSUM of the log likelihood ratio of LOSS_BAD against LOSS_GOOD per
 * coded pair; a pair is lost when either packet is). It rises on losses and falls slowly on
 * arrivals, never below 0; above LOSS_LIMIT the path is called lossy. On a path that loses
 * LOSS_GOOD or less the mean time between false alarms is at least exp(LOSS_LIMIT) pairs (Lorden
 * 1971): 5e11 pairs = 6e7 path-hours at 2.5 pairs a second. It finds 5 % in about 45 s, 2 % in 150
 * s. It ends when the loss of the last LOSS_END_PAIRS pairs is back under LOSS_GOOD. */
#define LOSS_GOOD      0.002
#define LOSS_BAD       0.05
#define LOSS_LIMIT     27.0
#define LOSS_END_PAIRS 250
struct loss_test {
    double score;
    uint32_t clean; /* pairs since the last loss */
    bool lossy;
};
/* What one pair's fate changed: PATH_LOSS, PATH_LOSS_END, or PATH_EVENT_COUNT for nothing. */
enum path_event loss_test_pair(struct loss_test *test, bool lost);

/* The share of packets lost lately: losses and packets, each forgotten with the time constant `window`. */
struct loss_share {
    double lost, sent;
    struct mono at;
};
void loss_share_add(struct loss_share *share, struct mono now, struct span window, double lost,
                    double sent);
double loss_share_get(const struct loss_share *share); /* 0 .. 1 */
/* What it may be by so few packets: two more of them lost. */
double loss_share_most(const struct loss_share *share);

/* How many packets of ours, on all paths of an edge, must go unacknowledged to prove it deaf. A full queue drops
 * packets, too: where a share p of them is being lost, n losses in a row come by chance with probability p^n. And
 * a queue stays full for a while: those within PROOF_EPOCH_NS of each other count as one, and the next epoch is as
 * bad with PROOF_AGAIN times p. So many packets and so long a time are wanted that chance is below PROOF_CHANCE.
 * Where next to nothing is lost otherwise, PROOF_PACKETS are enough at once. */
#define PROOF_PACKETS   6
#define PROOF_CHANCE    1e-9
#define PROOF_QUIET     0.005 /* less is lost on any path */
#define PROOF_SHARE_MAX 0.8   /* who loses more than that is as good as dead */
#define PROOF_EPOCH_NS  (100 * NS_PER_MS)
#define PROOF_AGAIN     2.5
#define PROOF_EPOCHS    14 /* for a verdict within 2 s */
struct proof_wanted {
    uint32_t packets;
    struct span time; /* since the last that came */
};
struct proof_wanted proof_wanted(double share);

/* One path: what one more missing packet says for a black hole, -ln of the chance that a queue dropped it, too, when
 * it was sent `since_ns` after the one missing before it (INT64_MAX: none was). Right behind a dropped packet the
 * queue is as full, so the second of a pair says nothing and a burst little. PROOF_ENOUGH in all is PROOF_CHANCE. */
#define PROOF_ENOUGH   20.7 /* -ln PROOF_CHANCE */
#define PROOF_DRAIN_NS (50.0 * NS_PER_MS)
double proof_evidence(double share, int64_t since_ns);
