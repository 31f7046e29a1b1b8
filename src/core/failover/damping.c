/* damping.c: see damping.h. */
#include "core/failover/damping.h"
