/* internal.h: only for platform/rdma. */
#pragma once
#include <string.h>

#include "platform/rdma/ports.h"

/* folder: /sys/class/infiniband/DEVICE/ports/N. */
void rdma_counters_read(const struct sysfs *s, const char *folder,
                        uint64_t ret[RDMA_COUNTER_COUNT]);
