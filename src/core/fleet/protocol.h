/* protocol.h: which version of proto/foliot.proto two programs speak. Each speaks its own, `ours`, and
 * all down to `oldest`, the one before; the older of two decides. An agent begins with its own; a
 * controller that doesn't know it answers 409, and the agent goes one down; a reply says what the
 * controller speaks, and the agent goes up again when that one was renewed. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

static inline bool protocol_taken(uint32_t said, uint32_t oldest, uint32_t ours)
{
    return said >= oldest && said <= ours;
}

/* What to speak after a 409. The same again: there is no common one. */
static inline uint32_t protocol_after_refusal(uint32_t now, uint32_t oldest)
{
    return now > oldest ? now - 1 : now;
}

/* What to speak after a reply of one that speaks `theirs`. */
static inline uint32_t protocol_after_reply(uint32_t theirs, uint32_t now, uint32_t ours)
{
    const uint32_t common = theirs < ours ? theirs : ours;
    return common > now ? common : now;
}
