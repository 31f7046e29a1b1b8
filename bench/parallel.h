/* parallel.h: independent jobs, a process per processor. */
#pragma once
#include <stddef.h>

#include "report.h"

/* Runs job(0) … job(count - 1), each in a process of its own, as many at a time as there are processors. What a job
 * finds out it writes into memory of parallel_memory. Returns how many died, or count if none could begin. */
int parallel_run(int count, void (*job)(int index));
/* Zeroed, shared with the jobs that begin later; never given back. NULL: no memory. */
void *parallel_memory(size_t size);

/* Like parallel_run, and the rows that each has added to its report are added to `report`, in order. Whenever one ends,
 * the rows so far are written: who is stopped leaves them. */
int parallel_report(struct report *report, int count,
                    void (*job)(struct report *report, int index));
