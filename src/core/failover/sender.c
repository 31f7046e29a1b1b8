/* sender.c: see sender.h. */
#include "core/failover/sender.h"
