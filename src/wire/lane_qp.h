/* lane_qp.h: QP: a lane's two ends agree to continue over a queue pair. From version 5 on.
 *
 * A lane begins as a TCP connection. The end that connected it may offer a queue pair. The other end makes its own, connects it
 * and accepts, or refuses. Both prove the path with a cell in each direction. Then each end writes SWITCH as the last bytes of
 * its direction of the TCP connection, and continues over the queue pair: the lane stays one stream of bytes in order.
 *
 *   0 u8 type   1 u8 step (enum lane_qp_step)   2 u16 lane   4 u32 epoch
 *   8 u32 attempt, by the offering end: answers have the same number; an answer to an attempt that was given up is ignored
 * 12 u32 queue pair and 16 u32 PSN, 24 bits each   20 u16 LID (0: RoCE)   22 u8 log2 of MTU, 8..12   23 u8 SL, < 16 24 u8[16] GID
 * 40 u16 cells to receive into, LANE_QP_CELLS_MIN..LANE_QP_CELLS_MAX 42 u8 1 + the number of its writer's device, whose key of
 * POST is for this end (before v7 <= 4); 0: it takes no writes
 *     (before v6: 0)   43 u8 0
 * 44 u32 size of a cell, LANE_QP_CELL_MIN..LANE_QP_CELL_MAX   48 u16 P_Key of its writer's port; 0: not given (before v9: 0) 50
 * u8[10] 0   60 u32 crc32c of bytes 0-59 REFUSE and SWITCH: 12-59 are 0.
 *
 * A cell on the queue pair begins with a header of LANE_CELL_SIZE bytes:
 *   0 u8 kind (enum lane_cell)   1 u8[3] 0
 *   4 u32 total number of cells that its writer has given back
 */
#pragma once
#include "wire/lane.h"

#define LANE_QP           0xcdu /* after enum lane_frame, NICS and PROOF */
#define LANE_QP_SIZE      64
#define LANE_QP_VERSION   5
#define LANE_QP_CELLS_MIN 4
#define LANE_QP_CELLS_MAX 64
#define LANE_QP_CELL_MIN  256
#define LANE_QP_CELL_MAX  65536
#define LANE_CELL_SIZE    8
#define LANE_QP_MASK      0xffffffu /* of queue pairs' numbers and PSNs */

enum lane_qp_step {
    LANE_QP_OFFER = 1,
    LANE_QP_ACCEPT,
    LANE_QP_REFUSE, /* or: no longer offered */
    LANE_QP_SWITCH,
    LANE_QP_STEP_COUNT
};
struct lane_qp {
    enum lane_qp_step step;
    uint16_t lane; /* < LANE_MAX */
    uint32_t epoch;
    uint32_t attempt;
    /* OFFER, ACCEPT: the writer's; else 0 */
    uint32_t qp, psn;
    uint16_t lid;
    uint8_t mtu_shift, sl;
    uint8_t gid[16];
    uint16_t cells;
    uint8_t device; /* 1 + one of lane_keys.devices; 0: no writes. <= LANE_DEVICES_MAX */
    uint32_t cell_size;
    uint16_t pkey; /* with the bit of full membership; 0: not given */
};

enum lane_cell {
    LANE_CELL_DATA = 1, /* bytes of the lane's stream follow */
    LANE_CELL_CREDIT,   /* only the header */
    LANE_CELL_PROBE,    /* the bytes after the header have no meaning */
    LANE_CELL_END,      /* the stream ended in order */
    LANE_CELL_COUNT
};
struct lane_cell_header {
    enum lane_cell kind;
    uint32_t returned;
};

void lane_qp_encode(uint8_t bytes[static LANE_QP_SIZE], const struct lane_qp *qp);
/* Total, like all decoders of lane.h. */
MUST_CHECK enum lane_error lane_qp_decode(const uint8_t *bytes, size_t size, struct lane_qp *ret);

void lane_cell_encode(uint8_t bytes[static LANE_CELL_SIZE], const struct lane_cell_header *header);
/* Total. The NIC has checked the bytes (ICRC). A value out of range is LANE_ERROR_RANGE. */
MUST_CHECK enum lane_error lane_cell_decode(const uint8_t *bytes, size_t size,
                                            struct lane_cell_header *ret);
