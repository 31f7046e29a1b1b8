/* lane_qp.c: QP, and the headers of cells, to bytes and back. */
#include "wire/lane_qp.h"

#include <string.h>

#include "base/endian.h"
#include "wire/crc32c.h"

#define CRC 60

static bool zeros(const uint8_t *bytes, size_t size)
{
    uint8_t any = 0;

    for (size_t i = 0; i < size; i++) {
        any |= bytes[i];
    }
    return any == 0;
}

static bool has_end(enum lane_qp_step step)
{
    return step == LANE_QP_OFFER || step == LANE_QP_ACCEPT;
}

void lane_qp_encode(uint8_t bytes[static LANE_QP_SIZE], const struct lane_qp *qp)
{
    memset(bytes, 0, LANE_QP_SIZE);
    bytes[0] = LANE_QP;
    bytes[1] = (uint8_t)qp->step;
    le16_put(bytes + 2, qp->lane);
    le32_put(bytes + 4, qp->epoch);
    le32_put(bytes + 8, qp->attempt);
    if (has_end(qp->step)) {
        le32_put(bytes + 12, qp->qp & LANE_QP_MASK);
        le32_put(bytes + 16, qp->psn & LANE_QP_MASK);
        le16_put(bytes + 20, qp->lid);
        bytes[22] = qp->mtu_shift;
        bytes[23] = qp->sl;
        memcpy(bytes + 24, qp->gid, sizeof(qp->gid));
        le16_put(bytes + 40, qp->cells);
        bytes[42] = qp->device;
        le32_put(bytes + 44, qp->cell_size);
        le16_put(bytes + 48, qp->pkey);
    }
    le32_put(bytes + CRC, crc32c(0, bytes, CRC));
}

static bool end_valid(const struct lane_qp *qp)
{
    return qp->qp <= LANE_QP_MASK && qp->psn <= LANE_QP_MASK && qp->mtu_shift >= 8 &&
           qp->mtu_shift <= 12 && qp->sl < 16 && qp->cells >= LANE_QP_CELLS_MIN &&
           qp->cells <= LANE_QP_CELLS_MAX && qp->cell_size >= LANE_QP_CELL_MIN &&
           qp->cell_size <= LANE_QP_CELL_MAX && qp->device <= LANE_DEVICES_MAX;
}

enum lane_error lane_qp_decode(const uint8_t *bytes, size_t size, struct lane_qp *ret)
{
    if (size < LANE_QP_SIZE) {
        return LANE_ERROR_SHORT;
    }
    if (bytes[0] != LANE_QP) {
        return LANE_ERROR_TYPE;
    }
    if (le32_get(bytes + CRC) != crc32c(0, bytes, CRC)) {
        return LANE_ERROR_CRC;
    }
    if (bytes[1] == 0 || bytes[1] >= LANE_QP_STEP_COUNT) {
        return LANE_ERROR_RANGE;
    }
    struct lane_qp qp = {.step = (enum lane_qp_step)bytes[1],
                         .lane = le16_get(bytes + 2),
                         .epoch = le32_get(bytes + 4),
                         .attempt = le32_get(bytes + 8),
                         .qp = le32_get(bytes + 12),
                         .psn = le32_get(bytes + 16),
                         .lid = le16_get(bytes + 20),
                         .mtu_shift = bytes[22],
                         .sl = bytes[23],
                         .cells = le16_get(bytes + 40),
                         .device = bytes[42],
                         .cell_size = le32_get(bytes + 44),
                         .pkey = le16_get(bytes + 48)};
    memcpy(qp.gid, bytes + 24, sizeof(qp.gid));
    if (bytes[43] != 0 || !zeros(bytes + 50, 10) || (!has_end(qp.step) && !zeros(bytes + 12, 48))) {
        return LANE_ERROR_RESERVED;
    }
    if (qp.lane >= LANE_MAX || (has_end(qp.step) && !end_valid(&qp))) {
        return LANE_ERROR_RANGE;
    }
    *ret = qp;
    return LANE_ERROR_NONE;
}

void lane_cell_encode(uint8_t bytes[static LANE_CELL_SIZE], const struct lane_cell_header *header)
{
    bytes[0] = (uint8_t)header->kind;
    memset(bytes + 1, 0, 3);
    le32_put(bytes + 4, header->returned);
}

enum lane_error lane_cell_decode(const uint8_t *bytes, size_t size, struct lane_cell_header *ret)
{
    if (size < LANE_CELL_SIZE) {
        return LANE_ERROR_SHORT;
    }
    if (bytes[0] == 0 || bytes[0] >= LANE_CELL_COUNT) {
        return LANE_ERROR_RANGE;
    }
    if (!zeros(bytes + 1, 3)) {
        return LANE_ERROR_RESERVED;
    }
    *ret = (struct lane_cell_header){.kind = (enum lane_cell)bytes[0],
                                     .returned = le32_get(bytes + 4)};
    return LANE_ERROR_NONE;
}
