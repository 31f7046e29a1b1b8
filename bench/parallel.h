/* parallel.h: runs independent jobs, one process per processor. */
#pragma once
#include <stddef.h>

#include "report.h"

/* Runs job(0) … job(count - 1), each in its own process, as many at a time as there are processors. A job writes its results
 * into memory of parallel_memory(). Returns how many died, or count if none could begin. */
int parallel_run(int count, void (*job)(int index));
/* Memory, zeroed, shared with the jobs that begin later; it is never freed. NULL: out of memory. */
void *parallel_memory(size_t size);

/* As parallel_run(), and adds the rows of each job's report to `report`, in order. The rows so far are written each time that
 * a job ends, so an interrupted program leaves them. */
int parallel_report(struct report *report, int count,
                    void (*job)(struct report *report, int index));
