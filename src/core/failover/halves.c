/* halves.c: see halves.h. */
#include "core/failover/halves.h"

int halves_lane_open(struct sender *s, struct ledger *l, uint32_t lane, uint32_t epoch,
                     enum ledger_way way)
{
    int r = l != NULL ? ledger_lane_open(l, lane, epoch, way) : 0;

    if (r < 0 || s == NULL) {
        return r;
    }
    r = sender_lane_open(s, lane, epoch);
    if (r < 0 && l != NULL) {
        ledger_lane_down(l, lane, epoch);
    }
    return r;
}

void halves_lane_down(struct sender *s, struct ledger *l, uint32_t lane, uint32_t epoch)
{
    if (s != NULL) {
        sender_on_lane_down(s, lane, epoch);
    }
    if (l != NULL) {
        ledger_lane_down(l, lane, epoch);
    }
}

uint64_t halves_taken(const struct ledger *l, uint32_t lane, uint32_t epoch)
{
    uint32_t newest = 0;
    const uint64_t taken = l != NULL ? ledger_lane_taken(l, lane, &newest) : 0;

    return newest == epoch ? taken : 0;
}

uint8_t halves_close_flag(bool sending)
{
    return sending ? LANE_CLOSE_SENDER : 0;
}

enum half halves_of_frame(uint8_t type)
{
    return type == LANE_CHUNK || type == LANE_OPEN ? HALF_LEDGER : HALF_SENDER;
}

enum half halves_of_close(const struct lane_close *close)
{
    return (close->flags & LANE_CLOSE_SENDER) != 0 ? HALF_LEDGER : HALF_SENDER;
}
