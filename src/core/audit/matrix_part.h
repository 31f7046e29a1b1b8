/* matrix_part.h: a host's part in a matrix of all NICs: when each packet leaves, and the record of those that arrive.
 *
 * Each packet carries the fleet time at which an earlier packet of its round left (a packet can't hold its own time). So the
 * receiver alone computes delay and loss of its direction: no packet is answered. If an agent was so late that all packets of a
 * round left at once, one more packet carries the time of one of them; it is not counted itself. For each NIC and round it keeps
 * the least delay, how many packets came and how many were sent; or the reason why there is nothing. Memory is the caller's:
 * MATRIX_SEAT_BYTES for each round and NIC. */
#pragma once
#include <stddef.h>

#include "base/limits.h"
#include "base/time.h"
#include "core/audit/matrix_plan.h"
#include "core/audit/plan.h"
#include "stats/histogram.h"

/* The reason why a NIC sent nothing in a round, or why it doesn't know which packets came. */
enum matrix_why {
    MATRIX_FINE,
    MATRIX_SILENT,    /* no report has come */
    MATRIX_SAME_HOST, /* both NICs are of one host: such packets pass no cable */
    MATRIX_ALONE,     /* no partner in this round: a hole of the grid */
    MATRIX_CLOCK,     /* its clock was not in step */
    MATRIX_LATE,      /* the agent didn't get a processor in that round */
    MATRIX_PORT,      /* it could not send: its interface is not open */
    MATRIX_BUSY,      /* a job runs: so many packets would disturb it */
    MATRIX_STOPPED,   /* the audit was stopped before */
    MATRIX_REFUSED,   /* the agent refused the plan */
    MATRIX_OLD,       /* the agent is too old */
    MATRIX_WHY_COUNT
};
const char *matrix_why_name(enum matrix_why why);

enum {
    MATRIX_SEAT_BYTES = 4,
    MATRIX_TELLS = MATRIX_PACKETS_MAX, /* number of the extra packet that carries a time */
    MATRIX_MARK = 8 /* in `sent`: the marked packet left; in `heard`: it came with its mark */
};
#define MATRIX_COUNT(byte) ((byte)&7)

/* A NIC in the plan. Columns are by round. `sent`, `heard`: the number of packets, MATRIX_MARK, and the reason << 4. */
struct matrix_seat {
    uint32_t nic;
    uint8_t *sent, *heard;
    int16_t *delay; /* code (core/fleet/delay_code.h) of the least delay */
    /* A histogram of the sums of both clocks' bounds in these delays: four steps for each doubling. */
    struct {
        struct histogram head;
        uint16_t counters[HISTOGRAM_BUCKETS(2, 29)];
    } bounds;
    struct matrix_arrivals {
        uint32_t round;
        uint8_t came;  /* one bit a packet */
        uint8_t timed; /* the packets of `came` whose arrival time is known */
        int64_t at_ns[MATRIX_PACKETS_MAX];
        uint32_t bound_ns[MATRIX_PACKETS_MAX];
    } arrivals[2]; /* for this round and the one before: indexed by the round's last bit */
    bool told;     /* a packet has carried a stamp of stamp_round */
    int64_t stamp_ns;
    uint32_t stamp_round, stamp_bound_ns;
    uint8_t stamp_packet;
};

struct matrix_part {
    struct matrix_plan plan;
    const uint32_t *holes; /* by place: 0: the place is a hole; NULL: there are no holes */
    struct matrix_seat seats[HOST_NIC_MAX];
    uint32_t seat_count, rounds;
    uint32_t round; /* the next round that has not begun */
    uint8_t sent;   /* packets of the present round that each seat has sent */
    uint8_t due;
    uint32_t turn; /* the seat that sends next */
    bool over;
};

/* A plan as it was received. */
struct matrix_offer {
    struct matrix_plan plan;
    const uint32_t *nics; /* by place: the NIC's number + 1; 0: the place is a hole */
    size_t nic_count;
    uint64_t fleet_version;
};
/* The reason why the host takes no part, in words; NULL: it takes part, with `ret_count` own NICs at `ret_places`. ret_own: the
 * own NIC of each seat. seen: member_count bytes, of any content. */
const char *matrix_offer_wrong(const struct matrix_offer *offer, const struct plan_host *host,
                               uint8_t *seen, uint32_t ret_places[HOST_NIC_MAX],
                               uint32_t ret_own[HOST_NIC_MAX], uint32_t *ret_count);

/* nics: this host's places in the grid. memory: matrix_rounds * MATRIX_SEAT_BYTES for each. */
void matrix_part_init(struct matrix_part *m, const struct matrix_plan *plan, const uint32_t *nics,
                      uint32_t count, void *memory);
/* The fleet time is now `fleet_ns`. `why` is MATRIX_FINE, or the reason why this host can't take part now. Rounds that passed
 * since the last call without one are LATE. */
void matrix_part_turn(struct matrix_part *m, int64_t fleet_ns, enum matrix_why why);

struct matrix_packet {
    uint32_t round;
    uint8_t packet;       /* 0 … packets - 1, or MATRIX_TELLS */
    uint8_t port;         /* source port, counted from the first one */
    uint8_t dscp;         /* the mark that it is sent with; 0: none */
    uint8_t dscp_came;    /* the mark that it came with */
    uint8_t earlier;      /* the earlier packet that left at left_ns */
    int64_t left_ns;      /* fleet time; 0: not known */
    uint32_t bound_ns;    /* the bound of left_ns */
    uint32_t seat, other; /* other: the place in the grid */
};
/* The packet to send now. False: nothing (more) until the next turn. */
bool matrix_part_next(struct matrix_part *m, struct matrix_packet *ret);
void matrix_part_on_stamp(struct matrix_part *m, uint32_t seat, uint32_t round, uint8_t packet,
                          int64_t fleet_ns, uint32_t bound_ns);
void matrix_part_on_not_sent(struct matrix_part *m, uint32_t seat, uint32_t round);
/* p: as received; the receiver fills in seat and other. heard_ns: 0: not known. False: it is not of this plan. */
bool matrix_part_on_packet(struct matrix_part *m, const struct matrix_packet *p, int64_t heard_ns,
                           uint32_t bound_ns);
/* A sum of both clocks' bounds that is not exceeded in three quarters of the delays, within a quarter of its value. Verdicts use
 * medians over all partners, so a partner with a wide clock doesn't move them. */
uint32_t matrix_seat_bound(const struct matrix_seat *s);
/* The host takes no part in the rounds that have not begun. */
void matrix_part_end(struct matrix_part *m, enum matrix_why why);
