/* halves.h: both directions of a lane set at one end: what it sends is its sender's, what it receives
 * its ledger's. Either may be missing (NULL).
 *
 * A lane is one connection with one epoch and one end for both. Everything else is kept apart: each
 * half counts its own chunks and numbers its own communicators, so number 3 of one direction and
 * number 3 of the other are two communicators. What goes over a lane tells which half it is for:
 *
 *   CHUNK, OPEN   the ledger of who reads it
 *   STATE, POST   the sender of who reads it; a STATE's counts are of what its writer has received
 *   CLOSE         a bit tells whether its writer sends on that communicator
 *
 * So the proof of docs/decisions/002-exactly-once.md holds for each direction alone. */
#pragma once
#include "core/failover/ledger.h"
#include "core/failover/sender.h"

/* Opens the lane in both halves, or in none: what sender_lane_open and ledger_lane_open return. */
MUST_CHECK int halves_lane_open(struct sender *s, struct ledger *l, uint32_t lane, uint32_t epoch,
                                enum ledger_way way);
/* The lane is over in both. Idempotent. */
void halves_lane_down(struct sender *s, struct ledger *l, uint32_t lane, uint32_t epoch);
/* What STATE tells of the chunks of (lane, epoch): those that this end has taken. */
uint64_t halves_taken(const struct ledger *l, uint32_t lane, uint32_t epoch);
/* Which half of its reader a frame is for: CHUNK, STATE, POST, OPEN. */
enum half { HALF_SENDER, HALF_LEDGER };
enum half halves_of_frame(uint8_t type);
/* The same of a CLOSE; and its flag, if its writer sends on that communicator, or doesn't. */
enum half halves_of_close(const struct lane_close *close);
uint8_t halves_close_flag(bool sending);
