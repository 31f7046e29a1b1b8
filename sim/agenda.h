/* agenda.h: the events to come in the simulated world: a heap sorted by time, then by order of entry.
 *
 * At the same time the event that was entered first comes first, so one seed gives one trace. Time is true time: ns since the
 * run began. Cost: about 60 ns for one event in and out, among 10,000. */
#pragma once
#include "base/bug.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agenda_item {
    int64_t at;
    uint64_t order;
    uint32_t kind;
    uint32_t subject;
};

struct agenda {
    struct agenda_item *items;
    size_t count, capacity;
    uint64_t order;
};

void agenda_init(struct agenda *a);
void agenda_done(struct agenda *a);
void agenda_add(struct agenda *a, int64_t at, uint32_t kind, uint32_t subject);
/* Takes the earliest item. false: there is none. */
bool agenda_next(struct agenda *a, struct agenda_item *ret_item);
