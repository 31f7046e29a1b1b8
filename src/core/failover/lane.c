/* lane.c: see lane.h. */
#include "core/failover/lane.h"
