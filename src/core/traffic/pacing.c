/* pacing.c: see pacing.h. */
#include "core/traffic/pacing.h"
