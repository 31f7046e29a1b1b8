/* memory.h: an audit's test of this host's memory bandwidth. Each processor that this process may use adds two arrays into a
 * third one (the triad of STREAM), all at the same time.
 *
 * The arrays together are several times as large as all last-level caches together, so the data come from memory. A run counts
 * only if its threads had their processors nearly all the time. Otherwise other work on the processors would look like slow
 * memory. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/bug.h"

enum { MEMORY_RUNS = 5, MEMORY_RUNS_LEAST = 3, MEMORY_RUNS_TRIED = 10 };

struct memory_found {
    double rates[MEMORY_RUNS]; /* bytes a second, read and written, in the runs that count */
    int runs;
    int threads;
    size_t bytes; /* the size of the arrays together */
    /* the largest share of a run, or of the filling before it, in which its threads had no processor */
    double away;
};

/* The size of the arrays together, for caches of this size together. 0: they would be larger than any test may be. */
size_t memory_bytes(uint64_t cache_bytes);
/* The size of these processors' last-level caches together, from a tree of files (NULL: this machine). 0: not known. */
struct sysfs;
uint64_t memory_cache_bytes(const struct sysfs *tree, const int *processors, int count);
/* run_ms: all wanted runs together; the whole test takes at most three times as long. -ENODATA: the size of the caches is
 * unknown. -EFBIG: memory_bytes() is 0. -E2BIG: the arrays would need more than a quarter of the free memory. -EBUSY: fewer than
 * MEMORY_RUNS_LEAST runs count. -ETIME: there was not enough time, although the threads had processors. */
MUST_CHECK int memory_test(int run_ms, struct memory_found *ret);
