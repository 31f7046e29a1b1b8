/* credit.c: see credit.h. */
#include "core/traffic/credit.h"
