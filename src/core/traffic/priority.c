/* priority.c: see priority.h. */
#include "core/traffic/priority.h"
