/* detector.c: see detector.h. */
#include "core/traffic/detector.h"
