/* recording.h: what this controller's brain is told, kept in a file of its data directory while record_mib is set; replayed by
 * `foliot sim replay`. Each start begins a new one, the one before it stays beside it. */
#pragma once
#include "base/bug.h"

#define RECORD_FILE   "brain.record"
#define RECORD_BEFORE "brain.record.before"

struct controller;

/* With the brain, before it is told anything. A recording that can't be begun is said, and the controller goes on without. */
MUST_CHECK int recording_open(struct controller *c);
void recording_second(struct controller *c);
void recording_close(struct controller *c);
