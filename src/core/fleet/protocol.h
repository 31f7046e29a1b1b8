/* protocol.h: the version of proto/foliot.proto between two programs. Each knows its own version, `ours`, and all down to
 * `oldest`, the previous one. The older program decides. An agent begins with its own. A controller that doesn't know it answers
 * 409, and the agent goes down by one. A reply contains the controller's version, and the agent goes up again after the
 * controller was upgraded. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

static inline bool protocol_taken(uint32_t said, uint32_t oldest, uint32_t ours)
{
    return said >= oldest && said <= ours;
}

/* The version after a 409. The same one: there is no common version. */
static inline uint32_t protocol_after_refusal(uint32_t now, uint32_t oldest)
{
    return now > oldest ? now - 1 : now;
}

/* The version after a reply of a program with version `theirs`. */
static inline uint32_t protocol_after_reply(uint32_t theirs, uint32_t now, uint32_t ours)
{
    const uint32_t common = theirs < ours ? theirs : ours;
    return common > now ? common : now;
}
