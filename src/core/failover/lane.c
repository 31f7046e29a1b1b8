/* lane.c: the table of lane.h. A row is a state, a column an event. Where a guard decides, a function of its own computes the
 * result. */
#include "core/failover/lane.h"

#define STAY   LANE_STATE_COUNT       /* no change */
#define GUARD  (LANE_STATE_COUNT + 1) /* guarded() decides */
#define EVENTS LANE_EVENT_COUNT

static const unsigned char table[LANE_STATE_COUNT][EVENTS] = {
    /* hello ok, acked, T, limit, lost, hint, usable, hold over, trial loss,
       repath, close */
    [LANE_CONNECTING] = {GUARD, STAY, STAY, LANE_DOWN, LANE_DOWN, STAY, STAY, STAY, STAY, STAY,
                         LANE_CLOSED},
    [LANE_TRIAL] = {STAY, GUARD, LANE_DOWN, LANE_DOWN, LANE_DOWN, LANE_DOWN, STAY, STAY, LANE_DOWN,
                    STAY, LANE_CLOSED},
    [LANE_ACTIVE] = {STAY, STAY, LANE_SUSPECT, LANE_SUSPECT, LANE_DOWN, LANE_SUSPECT, STAY, STAY,
                     STAY, LANE_DRAINING, LANE_CLOSED},
    [LANE_SUSPECT] = {STAY, GUARD, STAY, GUARD, LANE_DOWN, STAY, STAY, STAY, STAY, LANE_DRAINING,
                      LANE_CLOSED},
    [LANE_DRAINING] = {STAY, GUARD, LANE_DOWN, LANE_DOWN, LANE_DOWN, STAY, STAY, STAY, STAY, STAY,
                       LANE_CLOSED},
    [LANE_DOWN] = {STAY, STAY, STAY, STAY, STAY, STAY, GUARD, GUARD, STAY, STAY, LANE_CLOSED},
    [LANE_CLOSED] = {STAY, STAY, STAY, STAY, STAY, STAY, STAY, STAY, STAY, STAY, STAY},
};

static enum lane_state guarded(enum lane_state state, enum lane_event event, struct lane_guards g)
{
    switch (state) {
    case LANE_CONNECTING:
        return g.only || g.first ? LANE_ACTIVE : LANE_TRIAL;
    case LANE_TRIAL:
        return g.passed ? LANE_ACTIVE : state;
    case LANE_SUSPECT:
        if (event == LANE_EVENT_ACKED) {
            return g.regained ? LANE_ACTIVE : state;
        }
        return g.only && !g.parted ? state : LANE_DOWN;
    case LANE_DRAINING:
        return g.empty ? LANE_CLOSED : state;
    case LANE_DOWN:
        if (event == LANE_EVENT_USABLE) {
            return g.held ? state : LANE_CONNECTING;
        }
        return g.cut ? state : LANE_CONNECTING;
    default:
        return state;
    }
}

enum lane_state lane_next(enum lane_state state, enum lane_event event, struct lane_guards guards)
{
    if ((unsigned)state >= LANE_STATE_COUNT || (unsigned)event >= LANE_EVENT_COUNT) {
        return LANE_CLOSED;
    }
    unsigned next = table[state][event];
    return next == STAY    ? state
           : next == GUARD ? guarded(state, event, guards)
                           : (enum lane_state)next;
}

bool lane_connected(enum lane_state state)
{
    return state == LANE_TRIAL || state == LANE_ACTIVE || state == LANE_SUSPECT ||
           state == LANE_DRAINING;
}

bool lane_takes_chunks(enum lane_state state)
{
    return state == LANE_TRIAL || state == LANE_ACTIVE || state == LANE_SUSPECT;
}

bool lane_usable(enum lane_state state)
{
    return state == LANE_TRIAL || state == LANE_ACTIVE;
}
