/* watch.c: see watch.h. */
#include "core/failover/watch.h"
