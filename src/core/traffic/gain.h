/* gain.h: decides whether a set carries more since one of its lanes tries another path.
 *
 * A new lane on a better path takes most chunks at once, and soon has a queue of its own. So its delay may become as long as the
 * old lane's. Its rate is higher in any case: if all lanes wait before the same NIC, the new one takes from the others. Only the
 * total rate of all lanes decides: before the trial, and with the new lane.
 *
 * One for each lane set, at the sender's end; plain struct. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/time.h"

struct gain {
    uint64_t bytes; /* acknowledged on all lanes */
    struct {
        struct mono at;
        uint64_t bytes;
    } marks[2];         /* of earlier times: the older one is one to two MARK_NS old */
    double before;      /* bytes per ns, when the trial began; 0: not known */
    struct mono begun;  /* the new lane carries since then; MONO_NEVER: not yet */
    uint64_t had_bytes; /* at that time */
};

void gain_init(struct gain *g, struct mono now);
void gain_on_acked(struct gain *g, struct mono now, uint64_t bytes);
/* A lane is about to try another path. */
void gain_begin(struct gain *g, struct mono now);
/* Called while the new lane carries. 1: the set carries more, by a sixth; 0: it doesn't; -1: too early. */
int gain_seen(struct gain *g, struct mono now);
