/* invariant.h: what must hold in any world that the scenario language can describe, whatever was drawn into it. Nobody has to
 * say what this world should end in, so that thousands of them can be judged.
 *
 * Written from what pages and manuals promise (docs/clock.md, docs/swarm.md), without the core's code: the claims are
 * read off the clock page and off the terms that a member publishes, the arithmetic is the simulator's own. Each
 * invariant is a metric (`invariant.NAME`, a count of what broke it), so that a scenario can ask for it.
 *
 * Who is judged: a host that is honest, awake and whose clock nothing broke of late; a host that a clock fault broke, by
 * its own marking only (`late`). Hosts that can't be in step, for too few others can be reached, owe no status. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

enum invariant {
    /* of the clock */
    INVARIANT_HARD,
    INVARIANT_EDGE,
    INVARIANT_HOLDOVER,
    INVARIANT_LATE,
    INVARIANT_STALE,
    INVARIANT_BACKWARDS,
    INVARIANT_TIMELINE,
    INVARIANT_EPOCH,
    INVARIANT_BACK,
    INVARIANT_P99,
    INVARIANT_ACCUSED,
    INVARIANT_STEPPED,
    INVARIANT_UTC,
    INVARIANT_CLOCK_END,
    /* of findings */
    INVARIANT_FALSE = INVARIANT_CLOCK_END,
    INVARIANT_WRONG,
    INVARIANT_MISSED,
    INVARIANT_COUNT
};

/* "invariant.hard" */
const char *invariant_name(enum invariant i);
/* Is that metric one of them? */
bool invariant_named(const char *metric);

struct invariants;
struct world;
struct packet;

/* NULL: no memory. */
struct invariants *invariant_new(struct world *w);
void invariant_free(struct invariants *v);
void invariant_instant(struct invariants *v, struct world *w);
void invariant_fault(struct invariants *v, struct world *w, unsigned index, bool on);
void invariant_arrival(struct invariants *v, const struct world *w, const struct packet *p);
/* A finding of a path or a link that no fault of the scenario explains. */
struct world_finding;
void invariant_unexplained(struct invariants *v, struct world *w, const struct world_finding *f);
void invariant_end(struct invariants *v, struct world *w);

uint64_t invariant_count(const struct invariants *v, const char *metric);
uint64_t invariant_broken(const struct invariants *v, enum invariant i);
/* When it was broken first, and by what, in words; -1 and "" while it holds. */
int64_t invariant_first(const struct invariants *v, enum invariant i, const char **ret_text);
