/* invariant.h: conditions that must hold in any world of the scenario language, whatever was drawn. So thousands of worlds can
 * be judged without a stated result.
 *
 * They are written from the pages and manuals (docs/clock.md, docs/swarm.md), without the core's code. The claims are read
 * from the clock page and from the terms that a member publishes; the arithmetic is the simulator's own. Each invariant is a
 * metric (`invariant.NAME`, which counts its violations), so a scenario can have a bound for it.
 *
 * A host is judged if it is honest, awake, and its clock had no fault lately. A host with a faulty clock is judged only by its
 * own status (`late`). Hosts that can't be in step, because they reach too few others, need no status. */
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
/* True if the metric is one of them. */
bool invariant_named(const char *metric);

struct invariants;
struct world;
struct packet;

/* NULL: out of memory. */
struct invariants *invariant_new(struct world *w);
void invariant_free(struct invariants *v);
void invariant_instant(struct invariants *v, struct world *w);
void invariant_fault(struct invariants *v, struct world *w, unsigned index, bool on);
void invariant_arrival(struct invariants *v, const struct world *w, const struct packet *p);
/* Takes a finding of a path or a link that no fault of the scenario explains. */
struct world_finding;
void invariant_unexplained(struct invariants *v, struct world *w, const struct world_finding *f);
void invariant_end(struct invariants *v, struct world *w);

uint64_t invariant_count(const struct invariants *v, const char *metric);
uint64_t invariant_broken(const struct invariants *v, enum invariant i);
/* The time of the first violation, and its description; -1 and "" while it holds. */
int64_t invariant_first(const struct invariants *v, enum invariant i, const char **ret_text);
