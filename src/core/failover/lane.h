/* lane.h: the states of a lane as a total function of state, event and further facts. Beside it are small functions: what each
 * state allows, and what to do on entry. Both ends use the same table; core/failover/watch.h makes the events. */
#pragma once
#include <stdbool.h>

#include "wire/lane.h"

enum lane_event {
    LANE_EVENT_HELLO_OK,   /* connected and authenticated */
    LANE_EVENT_ACKED,      /* the peer took a chunk, or answered a ping */
    LANE_EVENT_T,          /* no progress for T while other lanes made some */
    LANE_EVENT_LIMIT,      /* no progress for 4 T; while connecting: too long */
    LANE_EVENT_LOST,       /* carrier, reset, damage, or the peer's report */
    LANE_EVENT_HINT,       /* the probe mesh doubts it */
    LANE_EVENT_USABLE,     /* the carrier is back, or the peer reports that its carrier is */
    LANE_EVENT_HOLD_OVER,  /* the damper's hold is over */
    LANE_EVENT_TRIAL_LOSS, /* a ping of the trial was lost */
    LANE_EVENT_REPATH,     /* its successor on another path is up */
    LANE_EVENT_CLOSE,
    LANE_EVENT_COUNT
};

/* The facts that decide where the table alone doesn't. */
struct lane_guards {
    bool only;     /* no other lane of the set is usable */
    bool parted;   /* no lane was usable for long, and this isn't the last connection */
    bool first;    /* one of the set's first lanes: it needs no trial */
    bool passed;   /* 32 chunks acknowledged, or 200 ms, without a loss */
    bool regained; /* 8 chunks acknowledged within T */
    bool empty;    /* nothing is unacknowledged */
    bool held;     /* the damper's hold is not over */
    bool cut;      /* a carrier is known to be down */
};

/* Total: any state, any event; out of range: LANE_CLOSED. */
enum lane_state lane_next(enum lane_state state, enum lane_event event, struct lane_guards guards);

/* Frames may be written and read. */
bool lane_connected(enum lane_state state);
/* New chunks may be sent. */
bool lane_takes_chunks(enum lane_state state);
/* It counts as a path to the peer. */
bool lane_usable(enum lane_state state);
