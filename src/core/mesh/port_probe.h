/* port_probe.h: probes from one RDMA port to ports of other hosts, between queue pairs, and their results: the one-way delay in
 * each direction, for two classes side by side. The job's class is that of jobs' queue pairs, the reference class is best effort.
 *
 * An exchange has four times (as in R-Pingmesh, Liu et al., SIGCOMM 2024): the question left, it arrived, the answer left, it
 * arrived. Each is a span of fleet time that contains the truth: as wide as the uncertainty of the stamps, beside the bound of
 * the clock that made them. So a delay has a half-width: half of both spans' widths, plus both clocks' bounds. A packet before
 * the question, the herald, wakes the other end; the answer has a herald, too. The herald leaves as long before as the other end
 * needs to wake up. If the answer's first span is wider than that, the herald was too late, and the next one leaves twice as long
 * before.
 *
 * Which class is slower doesn't depend on clocks, because both classes use the same two. In three exchanges the least possible
 * delay of the job's class must be 0.5 ms above the largest possible delay of the reference just before: a busy queue of a job's
 * own bulk traffic is below that [judged]. Or six of the job's packets in a row are lost while the reference arrives. In between,
 * no exchange may be even: with the middles of the spans less than 0.5 ms apart. It is over after three even ones in a row. Other
 * exchanges change nothing: their spans are too wide. Six losses are required because packets are lost by chance, too. The port
 * is reported if most of its comparable peers see it: one of them may lie, or may be at fault itself.
 *
 * A recording changes nothing when it is replayed. A host that reports its port repeats a packet that it just got from the
 * receiver, as probes do (mesh_echoed). Packets between queue pairs contain both pairs' keys, so packets of a former pair don't
 * count. Within a pair the numbers of exchanges grow, and each exchange has one question and one answer.
 *
 * Up to PORT_PROBE_PEERS known peers are answered. PORT_PROBE_ASKED of them are asked, one class of one peer each 100 ms, the
 * job's right after the reference. A peer that hasn't reported its port for 10 s is forgotten. Memory: 60 KiB for each port. */
#pragma once
#include "base/bug.h"
#include "base/id.h"
#include "base/prng.h"
#include "base/time.h"
#include "wire/probe.h"

#define PORT_PROBE_PEERS 64
#define PORT_PROBE_ASKED 8
#define PORT_PROBE_KEPT  8 /* exchanges of one peer and class */
#define PORT_PROBE_WAITS 32

struct port_moment {
    struct fleet_time earliest;
    uint32_t width_ns;
    uint32_t bound_ns; /* of the clock; PROBE_BOUND_NONE: not known */
    uint64_t timeline; /* the timeline of the time */
};

/* A delay: by the stamps alone it is between these two; the clocks add error_ns on both sides. */
struct port_delay {
    int64_t least_ns, most_ns;
    uint32_t error_ns, exchange;
};
enum port_direction { PORT_OUT, PORT_IN };

struct port_way {
    struct port_delay delays[2][PORT_PROBE_KEPT]; /* rings, by enum port_direction */
    struct mono at;                               /* of the newest; MONO_NEVER: none */
    uint32_t count, asked, lost;                  /* since the peer was added */
};
struct port_peer {
    bool used, asked;
    struct nic_id nic;
    struct probe_port at;
    struct mono told, second;
    uint32_t answers[2],
        question[2]; /* by enum probe_way: answers in this second; the newest question */
    bool questioned[2];
    uint32_t herald_ns;                     /* the herald's lead */
    struct port_way ways[2];                /* by enum probe_way */
    int64_t slow_job_ns, slow_reference_ns; /* at the last comparison */
    uint8_t slow_run, lost_run, even_run;   /* exchanges of the job's class, in a row */
    bool slow, gone;                        /* the job's class is slower; it doesn't arrive */
    bool missed; /* the last one of the job's class was lost, and no reference arrived since */
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
    bool job;     /* the class of jobs is known, and differs from the reference */
    struct port_peer peers[PORT_PROBE_PEERS];
    struct port_wait waits[PORT_PROBE_WAITS];
    struct mono next;
    uint32_t turn;
    uint32_t exchange; /* grows: the other end answers no number twice */
};
#define PORT_HERALD_NS      150000
#define PORT_HERALD_NS_MOST 2000000

void port_probe_init(struct port_probe *p, uint64_t seed, uint32_t key, bool job, struct mono now);
/* A peer's port; it is reported again about once a second. A new queue pair starts anew. The caller has checked that the report
 * is fresh. */
void port_probe_on_port(struct port_probe *p, struct mono now, struct nic_id nic,
                        const struct probe_port *at);
/* NULL: unknown. */
const struct port_peer *port_probe_find(const struct port_probe *p, struct nic_id nic);

/* The class of jobs changed, or (false) isn't known. Results of the former class are forgotten. */
void port_probe_job(struct port_probe *p, bool job);
/* False: it is not from a known peer's present queue pair to this one. All functions below require true. */
bool port_probe_is_between(const struct port_probe *p, struct nic_id from,
                           const struct probe_ud *ud);
/* True for the herald of a new question, within its class. */
bool port_probe_is_new(const struct port_probe *p, struct nic_id from, const struct probe_ud *ud);
/* True if it is new, and not too many came in this second. */
bool port_probe_may_answer(struct port_probe *p, struct mono now, struct nic_id from,
                           const struct probe_ud *ud);

struct port_question {
    struct nic_id nic;
    struct probe_port at;
    uint32_t exchange;
    uint8_t way;
};
/* The time for which a host may wait for packets of all its ports, because it does nothing else meanwhile: a 200th of its time
 * for its own questions. Questions of others cost as much, if all hosts ask alike, so a 100th is seldom too little. If an
 * answerer doesn't wait, the asker's heralds leave earlier, in vain. Unused time is kept up to PORT_WAIT_KEPT_NS. */
#define PORT_ASK_SHARE    200
#define PORT_ANSWER_SHARE 100
#define PORT_WAIT_KEPT_NS 5000000
struct port_waiting {
    int64_t share; /* one part in so many */
    struct mono at;
    int64_t left_ns; /* < 0: the last wait was longer than the time that was left */
};
bool port_may_wait(struct port_waiting *w, struct mono now);
void port_waited(struct port_waiting *w, int64_t ns);

/* The next question; false: none (yet). A late caller makes no burst. It also counts questions as lost after a second. */
bool port_probe_next(struct port_probe *p, struct mono now, struct port_question *ret_question);
void port_probe_on_left(struct port_probe *p, uint32_t exchange, const struct port_moment *left);
void port_probe_on_not_sent(struct port_probe *p, uint32_t exchange);
/* The answer to that question comes next. True: it is an own question, and this is its first herald. */
bool port_probe_on_coming(struct port_probe *p, struct nic_id from, uint32_t exchange);
/* The answer came; `there`: the arrival time of the question, from the answer. False: not asked, or answered already. */
bool port_probe_on_answer(struct port_probe *p, struct nic_id from, uint32_t exchange,
                          const struct port_moment *there, const struct port_moment *came);
/* The time when the answer left, reported afterwards. Then the exchange is complete. */
bool port_probe_on_answer_left(struct port_probe *p, struct mono now, struct nic_id from,
                               uint32_t exchange, const struct port_moment *left);

/* The most exact of the kept exchanges of a peer and class. False: none. */
bool port_probe_delay(const struct port_peer *peer, enum probe_way way,
                      enum port_direction direction, struct port_delay *ret_delay);
/* The newest one. False: none. */
bool port_probe_newest(const struct port_peer *peer, enum probe_way way,
                       enum port_direction direction, struct port_delay *ret_delay);
/* The middle, and how far the truth may be from it. No delay is negative. */
void port_delay_owd(const struct port_delay *d, int64_t *ret_owd_ns, int64_t *ret_half_ns);

struct port_slow {
    struct nic_id nic;
    uint32_t peers;               /* peers that see it */
    int64_t job_ns, reference_ns; /* to `nic`; job_ns -1: the job's packets don't arrive */
};
/* The worst peer to which the job's class is slower. False: most peers see no difference. */
bool port_probe_slow(const struct port_probe *p, struct port_slow *ret_slow);
