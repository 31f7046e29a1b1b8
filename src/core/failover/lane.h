/* lane.h: the states of a lane as a total function: what follows from a state, an event and what is
 * known. What each state allows, and what must be done on entry, as small functions beside it. The
 * same table serves both ends; core/failover/watch.h makes the events. */
#pragma once
#include <stdbool.h>

#include "wire/lane.h"

enum lane_event {
    LANE_EVENT_HELLO_OK,   /* connected and authenticated */
    LANE_EVENT_ACKED,      /* the peer took a chunk, or answered a ping */
    LANE_EVENT_T,          /* no progress for T while others made some */
    LANE_EVENT_LIMIT,      /* nor for 4 T; connecting: too long */
    LANE_EVENT_LOST,       /* carrier, reset, damaged, the peer's word, judged together */
    LANE_EVENT_HINT,       /* the probe mesh doubts it */
    LANE_EVENT_USABLE,     /* carrier is back, or the peer says that its is */
    LANE_EVENT_HOLD_OVER,  /* the damper's hold ran out */
    LANE_EVENT_TRIAL_LOSS, /* a ping of the trial was lost */
    LANE_EVENT_REPATH,     /* its successor on another path is up */
    LANE_EVENT_CLOSE,
    LANE_EVENT_COUNT
};

/* What decides where the table alone doesn't. */
struct lane_guards {
    bool only;     /* no other lane of the set is usable */
    bool parted;   /* nothing was usable for long, and this isn't the last connection */
    bool first;    /* of the set's first lanes: no trial */
    bool passed;   /* 32 chunks acknowledged, or 200 ms, without a loss */
    bool regained; /* 8 acknowledged within T */
    bool empty;    /* nothing unacknowledged */
    bool held;     /* the damper's hold still runs */
    bool cut;      /* a carrier is known to be down */
};

/* Total: any state, any event; out of range: LANE_CLOSED. */
enum lane_state lane_next(enum lane_state state, enum lane_event event, struct lane_guards guards);

/* Frames may be written and read. */
bool lane_connected(enum lane_state state);
/* New chunks may go. */
bool lane_takes_chunks(enum lane_state state);
/* Counts as a way to the peer. */
bool lane_usable(enum lane_state state);
