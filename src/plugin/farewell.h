/* farewell.h: the paragraph at a job's end, for readers of its log. */
#pragma once
#include "plugin/profiler.h"
#include "transport/transport.h"

#define FAREWELL_SIZE 1024

/* One process's account. It has only what is known: without a fault nothing about faults, without NCCL's profiler nothing about
 * where its proxies waited. */
void farewell_write(const struct transport_summary *sum, const struct profiler_sums *waits,
                    char text[static FAREWELL_SIZE]);
