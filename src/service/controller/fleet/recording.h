/* recording.h: while record_mib is set, all input of this controller's brain is written to a file of its data directory.
 * `foliot sim replay` replays it. Each start begins a new file and keeps the file before. */
#pragma once
#include "base/bug.h"

#define RECORD_FILE   "brain.record"
#define RECORD_BEFORE "brain.record.before"

struct controller;

/* Called with the brain, before its first input. If no recording can be made, this is logged, and the controller works
 * without. */
MUST_CHECK int recording_open(struct controller *c);
void recording_second(struct controller *c);
void recording_close(struct controller *c);
