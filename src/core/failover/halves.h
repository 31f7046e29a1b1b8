/* halves.h: both directions of a lane set at one end: the sender for what it sends, the ledger for what it receives. Either may
 * be missing (NULL).
 *
 * A lane is one connection with one epoch and one end for both. All else is separate: each half counts its own chunks and numbers
 * its own communicators, so number 3 of one direction and number 3 of the other are two communicators. A frame shows which half
 * it is for:
 *
 *   CHUNK, OPEN   the reader's ledger
 *   STATE, POST   the reader's sender; the counts in a STATE are those of the chunks that its writer received
 *   CLOSE         a bit shows whether its writer sends on that communicator
 *
 * So the proof of docs/decisions/002-exactly-once.md holds for each direction separately. */
#pragma once
#include "core/failover/ledger.h"
#include "core/failover/sender.h"

/* Opens the lane in both halves, or in none. Errors of sender_lane_open and ledger_lane_open. */
MUST_CHECK int halves_lane_open(struct sender *s, struct ledger *l, uint32_t lane, uint32_t epoch,
                                enum ledger_way way);
/* Closes the lane in both halves. Idempotent. */
void halves_lane_down(struct sender *s, struct ledger *l, uint32_t lane, uint32_t epoch);
/* The count for STATE: chunks of (lane, epoch) that this end has taken. */
uint64_t halves_taken(const struct ledger *l, uint32_t lane, uint32_t epoch);
/* The reader's half for a frame: CHUNK, STATE, POST, OPEN. */
enum half { HALF_SENDER, HALF_LEDGER };
enum half halves_of_frame(uint8_t type);
/* The same for a CLOSE; and the CLOSE's flag, by whether its writer sends on that communicator. */
enum half halves_of_close(const struct lane_close *close);
uint8_t halves_close_flag(bool sending);
