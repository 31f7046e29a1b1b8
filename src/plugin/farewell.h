/* farewell.h: the paragraph at a job's end, for whoever reads its log afterwards. */
#pragma once
#include "plugin/profiler.h"
#include "transport/transport.h"

#define FAREWELL_SIZE 1024

/* One process's account. Said only as far as it is known: without a fault nothing of faults, without NCCL's profiler
 * nothing of where its proxies waited. */
void farewell_write(const struct transport_summary *sum, const struct profiler_sums *waits,
                    char text[static FAREWELL_SIZE]);
