/* lane.c: see lane.h. */
#include "wire/lane.h"
