/* measure.h: one-way delay and loss of pairs of NICs on demand, beside the mesh's permanent measurements.
 *
 * One side sends a limited number of packets at a limited rate, in turn over all paths of all pairs. The other side answers each
 * packet with the fleet time of its arrival, and with the number of packets of that path so far. The delay is that time minus the
 * fleet time of the sender's transmit stamp. The count separates losses on the way out from lost answers: of the packets up to
 * the newest answered one, those that the other side did not count were lost on the way out.
 *
 * struct measure is the asking side of one request; struct measure_heard is the memory of the answering side. Neither trusts the
 * other: requests beyond base/limits.h are refused, unknown answers are dropped, and an answerer has a limit of its own. Packets
 * that it does not answer because of that look like lost answers, never like losses on the way out.
 *
 * Memory: struct measure is about 800 KiB and exists only during a request; measure_heard 160 KiB. Cost: some us for each
 * packet. */
#pragma once
#include "base/bug.h"
#include "base/id.h"
#include "base/limits.h"
#include "base/time.h"

#define MEASURE_BOUND_NONE UINT32_MAX
#define MEASURE_LATE_NS    (3 * NS_PER_S) /* how long it waits for an answer to the last packet */

struct measure_pair {
    uint32_t local; /* own NIC, by index */
    struct nic_id peer;
};

struct measure_wish {
    /* identifies the request; chosen by the asking side */
    uint32_t run;
    /* packets: for each path; rate: packets a second, in all */
    uint32_t pair_count, ports, packets, rate;
    const struct measure_pair *pairs; /* copied */
};

struct measure_packet {
    int64_t sent_ns, heard_ns; /* fleet time */
    uint32_t count;            /* from the answer */
    uint8_t stamped, answered, heard, not_sent;
};

struct measure {
    struct measure_wish wish;
    struct measure_pair pairs[MEASURE_PAIR_MAX];
    uint32_t path_count, packet_count; /* packet i belongs to path i % path_count */
    uint32_t sent, answered;
    struct mono next, last; /* when to send the next packet; when the last one left */
    /* the largest sum of both ends' bounds; MEASURE_BOUND_NONE: no delay is known */
    uint32_t bound_ns;
    struct measure_packet packets[MEASURE_PACKET_MAX];
};

/* -EINVAL: beyond a limit, or a pair's own NIC is not below nic_count; then m is unchanged. */
MUST_CHECK int measure_start(struct measure *m, const struct measure_wish *wish, uint32_t nic_count,
                             struct mono now);

struct measure_send {
    uint32_t packet;
    struct measure_pair pair;
    uint32_t port; /* 0 … ports - 1 */
};
/* The packet that is due now; false: none, or none yet. A late caller makes no burst. */
bool measure_next_send(struct measure *m, struct mono now, struct measure_send *ret_send);
/* The packet left at this fleet time. */
void measure_on_stamp(struct measure *m, uint32_t packet, int64_t fleet_ns, uint32_t bound_ns);
void measure_on_not_sent(struct measure *m, uint32_t packet);

struct measure_answer {
    uint32_t run, packet, local;
    struct nic_id peer;
    int64_t heard_ns;
    uint32_t bound_ns, count; /* MEASURE_BOUND_NONE: heard_ns has no meaning; 0: not known */
};
/* False: the answer is not expected (any more). */
bool measure_on_answer(struct measure *m, const struct measure_answer *answer);
/* True if all packets are answered, or their time is over. */
bool measure_is_done(const struct measure *m, struct mono now);

struct measure_path {
    uint32_t sent, answered;
    /* packets lost on the way out, of `sent`; -1: not known, because no answer came */
    int32_t lost;
    uint32_t timed; /* packets with a known delay; 0: the next three fields have no meaning */
    int64_t owd_ns_min, owd_ns_p50, owd_ns_p99;
};
/* Path `path` of path_count: pair path / ports over port path % ports. */
void measure_path_get(const struct measure *m, uint32_t path, struct measure_path *ret_path);

/* ---- the answering side ---- */

struct measure_heard_path {
    uint32_t run, src, dst, port, count;
    struct mono heard; /* the last packet */
};
struct measure_heard {
    struct measure_heard_path paths[MEASURE_HEARD_MAX];
    double allowance; /* of answers */
    struct mono refilled;
};
struct measure_query {
    uint32_t run;
    struct nic_id src, dst;
    uint16_t port; /* of the sender */
};
void measure_heard_init(struct measure_heard *h, struct mono now);
/* A packet of a measurement came. Counts the packets of its path, including this one; 0: not known, because other paths filled
 * the table. False: it must not be answered, because there were too many. */
bool measure_heard_count(struct measure_heard *h, struct mono now,
                         const struct measure_query *query, uint32_t *ret_count);
