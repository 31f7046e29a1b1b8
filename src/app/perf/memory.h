/* memory.h: an audit's test of the bandwidth of this host's memory: each processor that this process may use adds two arrays
 * into a third one (the triad of STREAM), all of them at the same time.
 *
 * The arrays together are several times as large as the last caches together, so that they come from memory. A run counts only
 * if its threads had their processors nearly all the time: other work on the processors must not look like slow memory. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

enum { MEMORY_RUNS = 5, MEMORY_RUNS_LEAST = 3, MEMORY_RUNS_TRIED = 10 };

struct memory_found {
    double
        rates[MEMORY_RUNS]; /* bytes a second that were read and written, of the runs that count */
    int runs;
    int threads;
    size_t bytes; /* of the arrays */
    double
        away; /* the largest share of a run, or of what comes before, in which its threads had no processor */
};

/* How large the arrays have to be: of these caches together. 0: they are larger than any test may be. */
size_t memory_bytes(uint64_t cache_bytes);
/* Of the last caches of these processors together, in a tree of files (NULL: this machine). 0: not known. */
struct sysfs;
uint64_t memory_cache_bytes(const struct sysfs *tree, const int *processors, int count);
/* run_ms: of all runs that are wanted together; all of it takes three times as long at most. -ENODATA: the caches' size is not
 * known. -EFBIG: memory_bytes() is 0. -E2BIG: the arrays are more than a quarter of the memory that is free. -EBUSY: fewer than
 * MEMORY_RUNS_LEAST runs count. -ETIME: there was no time for them, with processors. */
MUST_CHECK int memory_test(int run_ms, struct memory_found *ret);
