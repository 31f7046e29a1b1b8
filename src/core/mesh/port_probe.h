/* port_probe.h: what one RDMA port asks ports of other hosts, queue pair to queue pair, and what comes of it: the one-way delay
 * each way, of two classes side by side. The job's class is that of jobs' queue pairs, the reference class the best-effort one.
 *
 * An exchange has four moments (R-Pingmesh's, Liu et al., SIGCOMM 2024): the question left, it came, the answer left, it came.
 * Each is a span of fleet time in which the truth lies: as wide as the stamps are uncertain, beside the bound of the clock that
 * made them. So a delay has a half-width: half of both spans' widths, and both clocks' bounds. A packet before the question, the
 * herald, has the other end look out for it; the answer has one, too. The herald leaves so long before as it takes the other end
 * to wake up: an answer whose first span is wider than that tells that it was too late, and the next one leaves twice as long
 * before.
 *
 * Which class is slower doesn't depend on clocks: both cross the same two. In three exchanges the least that the job's can have
 * taken must be 0.5 ms more than the most that the reference's did just before: a busy queue of a job's own bulk is below that
 * [judged]. Or none of six came while the reference's did. Between them none may be even: by the middles of their spans less
 * than 0.5 ms apart. It is over after three even ones in a row; what is neither changes nothing: its spans are too wide.
 * What doesn't come must not come six times: packets are lost by chance, too. A port is told to have it where most of the
 * peers that it compares with see it: one of them may lie, or be at fault itself.
 *
 * What somebody recorded changes nothing when it comes again. Who tells where its port is repeats a packet that it just heard
 * of the receiver, as probes do (mesh_echoed). Packets between queue pairs name both pairs' keys, so none of another pair's
 * life counts; within one exchanges count up, and each has one question and one answer.
 *
 * Told peers are answered, up to PORT_PROBE_PEERS. PORT_PROBE_ASKED of them are asked, one class of one peer each 100 ms, the
 * job's right after the reference. Who hasn't told where it is for 10 s is forgotten. Memory: 60 KiB a port. */
#pragma once
#include "base/bug.h"
#include "base/id.h"
#include "base/prng.h"
#include "base/time.h"
#include "wire/probe.h"

#define PORT_PROBE_PEERS 64
#define PORT_PROBE_ASKED 8
#define PORT_PROBE_KEPT  8 /* exchanges of a peer and class */
#define PORT_PROBE_WAITS 32

struct port_moment {
    struct fleet_time earliest;
    uint32_t width_ns;
    uint32_t bound_ns; /* PROBE_BOUND_NONE: it isn't known; else of the clock */
    uint64_t timeline; /* that it is of */
};

/* A delay: by the stamps alone it lies between these; the clocks add error_ns on both sides. */
struct port_delay {
    int64_t least_ns, most_ns;
    uint32_t error_ns, exchange;
};
enum port_direction { PORT_OUT, PORT_IN };

struct port_way {
    struct port_delay delays[2][PORT_PROBE_KEPT]; /* rings, by enum port_direction */
    struct mono at;                               /* of the newest; MONO_NEVER: none */
    uint32_t count, asked, lost;                  /* since the peer was told */
};
struct port_peer {
    bool used, asked;
    struct nic_id nic;
    struct probe_port at;
    struct mono told, second;
    uint32_t answers[2],
        question[2]; /* by enum probe_way: answers of this second; the newest question */
    bool questioned[2];
    uint32_t herald_ns;                     /* before what it tells of */
    struct port_way ways[2];                /* by enum probe_way */
    int64_t slow_job_ns, slow_reference_ns; /* as it was seen last */
    uint8_t slow_run, lost_run, even_run;   /* exchanges of the job's class, in a row */
    bool slow, gone;                        /* the job's class is slower; doesn't come */
    bool missed; /* the last of the job's class didn't come, and no reference came since */
};
struct port_wait {
    bool used, heralded, answered;
    uint32_t exchange, peer; /* index */
    uint8_t way;
    struct mono asked;
    struct port_moment left, came_there, came_back;
};

struct port_probe {
    struct prng random;
    uint32_t key; /* of the own queue pair */
    bool job;     /* the class of jobs is known, and another one */
    struct port_peer peers[PORT_PROBE_PEERS];
    struct port_wait waits[PORT_PROBE_WAITS];
    struct mono next;
    uint32_t turn;
    uint32_t exchange; /* counts up: who is asked answers none twice */
};
#define PORT_HERALD_NS      150000
#define PORT_HERALD_NS_MOST 2000000

void port_probe_init(struct port_probe *p, uint64_t seed, uint32_t key, bool job, struct mono now);
/* Where a peer's port is; told again each second or so. A new queue pair begins anew. The caller knows that it is fresh. */
void port_probe_on_port(struct port_probe *p, struct mono now, struct nic_id nic,
                        const struct probe_port *at);
/* NULL: it wasn't told. */
const struct port_peer *port_probe_find(const struct port_probe *p, struct nic_id nic);

/* The class of jobs is another one, or (false) isn't known. What was seen of the one before is forgotten. */
void port_probe_job(struct port_probe *p, bool job);
/* False: it is none of a told peer's present queue pair to ours. All below are for what is. */
bool port_probe_is_between(const struct port_probe *p, struct nic_id from,
                           const struct probe_ud *ud);
/* A herald of a question that wasn't asked before, in its class. */
bool port_probe_is_new(const struct port_probe *p, struct nic_id from, const struct probe_ud *ud);
/* It is new, and not too often in this second. */
bool port_probe_may_answer(struct port_probe *p, struct mono now, struct nic_id from,
                           const struct probe_ud *ud);

struct port_question {
    struct nic_id nic;
    struct probe_port at;
    uint32_t exchange;
    uint8_t way;
};
/* How long a host may wait for packets of all its ports, for it does nothing else meanwhile: a 200th of its time for its own
 * questions. What others ask costs it as much, where all ask alike, so a 100th is seldom too little. An answerer that doesn't
 * look out has the asker's heralds leave earlier, in vain. What wasn't used is kept up to PORT_WAIT_KEPT_NS. */
#define PORT_ASK_SHARE    200
#define PORT_ANSWER_SHARE 100
#define PORT_WAIT_KEPT_NS 5000000
struct port_waiting {
    int64_t share; /* one part of so many */
    struct mono at;
    int64_t left_ns; /* < 0: the last one was longer than what was left */
};
bool port_may_wait(struct port_waiting *w, struct mono now);
void port_waited(struct port_waiting *w, int64_t ns);

/* What is to be asked now; false: nothing (yet). Who calls late makes no burst. Also notes what was lost: after a second. */
bool port_probe_next(struct port_probe *p, struct mono now, struct port_question *ret_question);
void port_probe_on_left(struct port_probe *p, uint32_t exchange, const struct port_moment *left);
void port_probe_on_not_sent(struct port_probe *p, uint32_t exchange);
/* The answer to that question comes at once. True: it is one of ours, and this is the first that tells so. */
bool port_probe_on_coming(struct port_probe *p, struct nic_id from, uint32_t exchange);
/* The answer came; `there`: when the question came, as the answer tells. False: not asked, or answered already. */
bool port_probe_on_answer(struct port_probe *p, struct nic_id from, uint32_t exchange,
                          const struct port_moment *there, const struct port_moment *came);
/* When the answer left, as it is told afterwards. Then the exchange is over. */
bool port_probe_on_answer_left(struct port_probe *p, struct mono now, struct nic_id from,
                               uint32_t exchange, const struct port_moment *left);

/* Of the kept exchanges of a peer and class the one that is known best. False: none. */
bool port_probe_delay(const struct port_peer *peer, enum probe_way way,
                      enum port_direction direction, struct port_delay *ret_delay);
/* The newest. False: none. */
bool port_probe_newest(const struct port_peer *peer, enum probe_way way,
                       enum port_direction direction, struct port_delay *ret_delay);
/* The middle, and how far the truth may be from it. No delay is negative. */
void port_delay_owd(const struct port_delay *d, int64_t *ret_owd_ns, int64_t *ret_half_ns);

struct port_slow {
    struct nic_id nic;
    uint32_t peers;               /* that see it */
    int64_t job_ns, reference_ns; /* to `nic`; job_ns -1: its packets don't come */
};
/* The worst peer to which the job's class is slower. False: not to most of them. */
bool port_probe_slow(const struct port_probe *p, struct port_slow *ret_slow);
