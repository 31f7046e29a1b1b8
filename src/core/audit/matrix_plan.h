/* matrix_plan.h: every NIC with every NIC: which NICs exchange packets in which round.
 *
 * NICs form a grid: hosts times rails. NIC h * rails + r is that of host h on rail r. If a host has fewer NICs, the grid has
 * holes; the holder of the list of NICs has them. In a round each NIC has one partner, and each pair meets in exactly one round:
 * perfect matchings. The pairs within rails come first (hosts as in a tournament, all rails at once), because jobs use them: they
 * are done after an eighth of the time. Then come the pairs of two rails. Rounds begin at fleet nanoseconds that follow from the
 * plan alone: no message is needed between them.
 *
 * On a rail each packet of a round leaves by its own source port. So if one path of several is dead, some of the packets are
 * lost, the same ones each time. If the plan has the DSCP of jobs, the last packet is marked with it, and the receiver looks
 * whether it still has it. Packets between rails leave by one port, unmarked.
 *
 * The seed draws the order of rounds within each of the two parts, so that a run that is stopped is an even sample. All is
 * arithmetic: no memory, a few nanoseconds a question. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"

#define MATRIX_NONE UINT32_MAX

enum {
    MATRIX_PACKETS_MAX = 7,            /* of a pair, in each direction */
    MATRIX_PORTS = MATRIX_PACKETS_MAX, /* source ports of one round */
    MATRIX_DSCP_MAX = 63,
    MATRIX_NICS_MAX = 1 << 14, /* places of the grid */
    MATRIX_S_MAX = 1800,       /* all rounds */
};
#define MATRIX_ROUND_NS_MIN 5000000LL
#define MATRIX_ROW_NS                                                                              \
    2000000LL /* between rows: the program that takes them all in has other work, too */
#define MATRIX_GUARD_NS 1000000LL /* no packet is sent in this time at both ends of a round */

struct matrix_plan {
    uint32_t hosts, rails;
    uint32_t packets;           /* of a NIC in a round */
    int64_t begin_ns, round_ns; /* fleet time */
    int64_t gap_ns;             /* between packets of a round */
    uint64_t seed;
    bool rails_only;
    uint8_t dscp; /* of marked packets; 0: no packet is marked */
    /* of the order of rounds, set by matrix_plan_ready; 0: computed anew for each question */
    uint32_t stride[2];
};

/* Computes the strides once: each question then takes a tenth of the time. */
void matrix_plan_ready(struct matrix_plan *p);

/* The reason why it can't be carried out, in words; NULL: it can. */
const char *matrix_plan_wrong(const struct matrix_plan *p);
uint32_t matrix_rail_rounds(const struct matrix_plan *p);
uint32_t matrix_rounds(const struct matrix_plan *p);
int64_t matrix_end_ns(const struct matrix_plan *p);
/* When the host of this row of the grid sends its result: after all hosts of earlier rows. */
int64_t matrix_answer_ns(const struct matrix_plan *p, uint32_t host);
/* The source port of packet k of this round, counted from the first one; and whether this packet is the marked one. */
uint32_t matrix_port(const struct matrix_plan *p, uint32_t round, uint32_t packet);
bool matrix_is_marked(const struct matrix_plan *p, uint32_t round, uint32_t packet);
/* MATRIX_NONE: the NIC has no partner in this round. */
uint32_t matrix_partner(const struct matrix_plan *p, uint32_t round, uint32_t nic);
/* The round in which these two meet; MATRIX_NONE: never (one NIC; another rail in a plan of rails only). */
uint32_t matrix_round_of(const struct matrix_plan *p, uint32_t nic, uint32_t other);
