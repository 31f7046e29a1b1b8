/* repath.c: see repath.h. */
#include "core/traffic/repath.h"
