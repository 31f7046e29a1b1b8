/* matrix_plan.h: every NIC with every NIC: who exchanges packets with whom in which round.
 *
 * NICs are a grid: hosts times rails, and NIC h * rails + r is that of host h on rail r; where a host has fewer, the grid has
 * holes, which the holder of the list of NICs knows. In a round each NIC has one partner, and each pair meets in exactly one
 * round: perfect matchings. First come the rails (hosts as in a tournament, all rails at once), so that the pairs that jobs use
 * are done after an eighth of the time; then the pairs of two rails. Rounds begin at fleet nanoseconds that follow from
 * the plan alone: no message is needed between them.
 *
 * On a rail each packet of a round leaves by a source port of its own, so that a dead path of several takes some of them, the
 * same ones each time. The last one is marked with the DSCP of jobs where the plan has one; who hears it looks whether it still
 * has it. Packets between rails leave by one port, unmarked.
 *
 * The order of rounds within each of the two parts is drawn by the seed, so that a run that is stopped is an even sample.
 * All is arithmetic: no memory, some ns a question. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/bug.h"

#define MATRIX_NONE UINT32_MAX

enum {
    MATRIX_PACKETS_MAX = 7,            /* of a pair, each way */
    MATRIX_PORTS = MATRIX_PACKETS_MAX, /* that packets of one round may leave by */
    MATRIX_DSCP_MAX = 63,
    MATRIX_NICS_MAX = 1 << 14, /* places of the grid */
    MATRIX_S_MAX = 1800,       /* all rounds */
};
#define MATRIX_ROUND_NS_MIN 5000000LL
#define MATRIX_ROW_NS                                                                              \
    2000000LL /* one row after the other: who takes them all in has other work, too */
#define MATRIX_GUARD_NS 1000000LL /* at both ends of a round nothing is sent */

struct matrix_plan {
    uint32_t hosts, rails;
    uint32_t packets;           /* that a NIC sends in a round */
    int64_t begin_ns, round_ns; /* fleet time */
    int64_t gap_ns;             /* between packets of a round */
    uint64_t seed;
    bool rails_only;
    uint8_t dscp; /* of marked packets; 0: none is */
    uint32_t stride
        [2]; /* of the order of rounds, by matrix_plan_ready; 0: found anew with each question */
};

/* Questions cost a tenth from here on. */
void matrix_plan_ready(struct matrix_plan *p);

/* Why not, in words; NULL: it is one that can be carried out. */
const char *matrix_plan_wrong(const struct matrix_plan *p);
uint32_t matrix_rail_rounds(const struct matrix_plan *p);
uint32_t matrix_rounds(const struct matrix_plan *p);
int64_t matrix_end_ns(const struct matrix_plan *p);
/* When the host of this row of the grid tells what came of it: after all that come before it. */
int64_t matrix_answer_ns(const struct matrix_plan *p, uint32_t host);
/* Which source port, from the first on, packet k of this round leaves by; whether it is the marked one. */
uint32_t matrix_port(const struct matrix_plan *p, uint32_t round, uint32_t packet);
bool matrix_is_marked(const struct matrix_plan *p, uint32_t round, uint32_t packet);
/* MATRIX_NONE: it has none in this round. */
uint32_t matrix_partner(const struct matrix_plan *p, uint32_t round, uint32_t nic);
/* The round in which these two meet; MATRIX_NONE: never (one NIC; another rail in a plan of rails only). */
uint32_t matrix_round_of(const struct matrix_plan *p, uint32_t nic, uint32_t other);
