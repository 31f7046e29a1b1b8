/* measure.h: one-way delay and loss of pairs of NICs that somebody asked for, beside what the mesh measures always.
 *
 * One side sends a bounded number of packets at a bounded rate, in turn over all paths of all pairs; the other answers each
 * with the fleet time at which it heard it, and with how many it heard of that path so far. The delay is that time less the
 * fleet time of the sender's transmit stamp. The count tells loss on the way out from loss of answers: of the packets up to
 * the newest answered one, those that the other side didn't count were lost on the way to it.
 *
 * struct measure is the asking side of one request; struct measure_heard is what the answering side remembers. Neither
 * trusts anybody: requests beyond base/limits.h are refused, answers that don't belong are dropped, and an answerer has a
 * limit of its own. What it doesn't answer because of that looks like lost answers, never like loss on the way out.
 *
 * Memory: struct measure is some 800 KiB, and there only while a request is; measure_heard 160 KiB. Cost: some us per packet. */
#pragma once
#include "base/bug.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/time.h"

#define MEASURE_BOUND_NONE UINT32_MAX
#define MEASURE_LATE_NS    (3 * NS_PER_S) /* how long an answer to the last packet is waited for */

struct measure_pair {
    uint32_t local; /* own NIC, by index */
    struct nic_id peer;
};

struct measure_wish {
    uint32_t run;                              /* names the request; chosen by who asks */
    uint32_t pair_count, ports, packets, rate; /* packets of each path; rate: a second, of all */
    const struct measure_pair *pairs;          /* copied */
};

struct measure_packet {
    int64_t sent_ns, heard_ns; /* fleet time */
    uint32_t count;            /* as answered */
    uint8_t stamped, answered, heard, not_sent;
};

struct measure {
    struct measure_wish wish;
    struct measure_pair pairs[MEASURE_PAIR_MAX];
    uint32_t path_count, packet_count; /* packet i is of path i % path_count */
    uint32_t sent, answered;
    struct mono next, last; /* when to send the next one; when the last one went */
    uint32_t bound_ns; /* worst sum of both ends' bounds; MEASURE_BOUND_NONE: no delay is known */
    struct measure_packet packets[MEASURE_PACKET_MAX];
};

/* -EINVAL: beyond a limit, or a pair's own NIC is none of nic_count; m is then as it was. */
MUST_CHECK int measure_start(struct measure *m, const struct measure_wish *wish, uint32_t nic_count,
                             struct mono now);

struct measure_send {
    uint32_t packet;
    struct measure_pair pair;
    uint32_t port; /* 0 … ports - 1 */
};
/* What is due now; false: nothing (yet). Who calls late makes no burst of what was missed. */
bool measure_next_send(struct measure *m, struct mono now, struct measure_send *ret_send);
/* The packet left at this fleet time. */
void measure_on_stamp(struct measure *m, uint32_t packet, int64_t fleet_ns, uint32_t bound_ns);
void measure_on_not_sent(struct measure *m, uint32_t packet);

struct measure_answer {
    uint32_t run, packet, local;
    struct nic_id peer;
    int64_t heard_ns;
    uint32_t bound_ns, count; /* MEASURE_BOUND_NONE: heard_ns means nothing; 0: not known */
};
/* False: not ours, or not (any more) expected. */
bool measure_on_answer(struct measure *m, const struct measure_answer *answer);
/* All is answered, or was waited for. */
bool measure_is_done(const struct measure *m, struct mono now);

struct measure_path {
    uint32_t sent, answered;
    int32_t lost;   /* on the way out, of `sent`; -1: not known, for no answer came */
    uint32_t timed; /* packets whose delay is known; 0: the next three mean nothing */
    int64_t owd_ns_min, owd_ns_p50, owd_ns_p99;
};
/* Path `path` of path_count: of pair path / ports over port path % ports. */
void measure_path_get(const struct measure *m, uint32_t path, struct measure_path *ret_path);

/* ---- the answering side ---- */

struct measure_heard_path {
    uint32_t run, src, dst, port, count;
    struct mono heard; /* last */
};
struct measure_heard {
    struct measure_heard_path paths[MEASURE_HEARD_MAX];
    double allowance; /* of answers */
    struct mono refilled;
};
struct measure_query {
    uint32_t run;
    struct nic_id src, dst;
    uint16_t port; /* the sender's */
};
void measure_heard_init(struct measure_heard *h, struct mono now);
/* A packet of a measurement came: how many of its path did, it among them; 0: not known, others filled the table. False: it is
 * not to be answered, there were too many. */
bool measure_heard_count(struct measure_heard *h, struct mono now,
                         const struct measure_query *query, uint32_t *ret_count);
