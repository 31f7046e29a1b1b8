/* matrix_part.h: a host's part in a matrix of all NICs: which packet leaves when, and what came of those that arrive.
 *
 * Each packet carries the fleet time at which an earlier one of its round left (a packet can't hold its own), so that the
 * receiver alone knows delay and loss of its direction: nothing is answered. Where an agent was so late that all of a round
 * left at once, one more packet, which counts for nothing, carries the time of one of them. Per NIC and round it keeps the
 * least delay and how many came, and how many went out itself; or why there is nothing. Memory is the caller's:
 * MATRIX_SEAT_BYTES a round and NIC. */
#pragma once
#include <stddef.h>

#include "base/limits.h"
#include "base/time.h"
#include "core/audit/matrix_plan.h"
#include "core/audit/plan.h"
#include "stats/histogram.h"

/* Why a NIC has sent nothing in a round, or can't tell what came. */
enum matrix_why {
    MATRIX_FINE,
    MATRIX_SILENT,    /* nobody has told */
    MATRIX_SAME_HOST, /* the two are of one host: such packets see no cable */
    MATRIX_ALONE,     /* no partner in the round: a hole of the grid */
    MATRIX_CLOCK,     /* its clock was not in step */
    MATRIX_LATE,      /* the agent had no processor in that round */
    MATRIX_PORT,      /* it could not send: its interface is not open */
    MATRIX_BUSY,      /* a job runs, and so many packets are not for beside it */
    MATRIX_STOPPED,   /* the audit was stopped before */
    MATRIX_REFUSED,   /* the agent refused the plan */
    MATRIX_OLD,       /* the agent is too old for it */
    MATRIX_WHY_COUNT
};
const char *matrix_why_name(enum matrix_why why);

enum {
    MATRIX_SEAT_BYTES = 4,
    MATRIX_TELLS = MATRIX_PACKETS_MAX, /* number of such a packet */
    MATRIX_MARK = 8 /* in `sent`: the marked packet left; in `heard`: it came as it was marked */
};
#define MATRIX_COUNT(byte) ((byte)&7)

/* A NIC in the plan. Columns by round; `sent`, `heard`: how many, MATRIX_MARK, and why << 4. */
struct matrix_seat {
    uint32_t nic;
    uint8_t *sent, *heard;
    int16_t *delay; /* code (core/fleet/delay_code.h): the least */
    /* Sums of both clocks' bounds in these delays: four steps to each doubling. */
    struct {
        struct histogram head;
        uint16_t counters[HISTOGRAM_BUCKETS(2, 29)];
    } bounds;
    struct matrix_arrivals {
        uint32_t round;
        uint8_t came;  /* bits: packets */
        uint8_t timed; /* of them, those whose arrival is known */
        int64_t at_ns[MATRIX_PACKETS_MAX];
        uint32_t bound_ns[MATRIX_PACKETS_MAX];
    } arrivals[2]; /* this round's and the one before: by the last bit */
    bool told;     /* of stamp_round: a packet has carried a stamp */
    int64_t stamp_ns;
    uint32_t stamp_round, stamp_bound_ns;
    uint8_t stamp_packet;
};

struct matrix_part {
    struct matrix_plan plan;
    const uint32_t *holes; /* by place: 0: nobody is there; NULL: all are */
    struct matrix_seat seats[HOST_NIC_MAX];
    uint32_t seat_count, rounds;
    uint32_t round; /* the next that has not begun */
    uint8_t sent;   /* packets of the present one, by each seat */
    uint8_t due;
    uint32_t turn; /* the seat that is next */
    bool over;
};

/* A plan as it came. */
struct matrix_offer {
    struct matrix_plan plan;
    const uint32_t *nics; /* by place: number + 1; 0: nobody is there */
    size_t nic_count;
    uint64_t fleet_version;
};
/* Why the host takes no part, in words; NULL: it does, with `ret_count` own NICs at `ret_places`. ret_own: which they are, by
 * seat. seen: member_count bytes, of any content. */
const char *matrix_offer_wrong(const struct matrix_offer *offer, const struct plan_host *host,
                               uint8_t *seen, uint32_t ret_places[HOST_NIC_MAX],
                               uint32_t ret_own[HOST_NIC_MAX], uint32_t *ret_count);

/* nics: places of the grid, of this host. memory: of matrix_rounds * MATRIX_SEAT_BYTES each. */
void matrix_part_init(struct matrix_part *m, const struct matrix_plan *plan, const uint32_t *nics,
                      uint32_t count, void *memory);
/* It is so late. `why` is MATRIX_FINE, or why this host can't take part now. Rounds that passed since the last call without one
 * are LATE. */
void matrix_part_turn(struct matrix_part *m, int64_t fleet_ns, enum matrix_why why);

struct matrix_packet {
    uint32_t round;
    uint8_t packet;       /* 0 … packets - 1, or MATRIX_TELLS */
    uint8_t port;         /* source port that it leaves by, from the first on */
    uint8_t dscp;         /* that it is marked with; 0: it is not */
    uint8_t dscp_came;    /* that it came with */
    uint8_t earlier;      /* the one that left_ns is of */
    int64_t left_ns;      /* fleet time; 0: not known */
    uint32_t bound_ns;    /* of it */
    uint32_t seat, other; /* other: place in the grid */
};
/* What is to be sent now. False: nothing (more) until the next turn. */
bool matrix_part_next(struct matrix_part *m, struct matrix_packet *ret);
void matrix_part_on_stamp(struct matrix_part *m, uint32_t seat, uint32_t round, uint8_t packet,
                          int64_t fleet_ns, uint32_t bound_ns);
void matrix_part_on_not_sent(struct matrix_part *m, uint32_t seat, uint32_t round);
/* p: as it came, seat and other as the receiver has them. heard_ns: 0: not known. False: not of this plan. */
bool matrix_part_on_packet(struct matrix_part *m, const struct matrix_packet *p, int64_t heard_ns,
                           uint32_t bound_ns);
/* The sum of both clocks' bounds that three quarters of the delays keep, within a quarter of it: what is judged are medians over
 * all partners, and one whose clock is wide moves none of those. */
uint32_t matrix_seat_bound(const struct matrix_seat *s);
/* All rounds that have not begun are not taken part in. */
void matrix_part_end(struct matrix_part *m, enum matrix_why why);
