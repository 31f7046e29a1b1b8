/* scheduler.c: see scheduler.h. */
#include "core/traffic/scheduler.h"
