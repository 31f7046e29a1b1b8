/* handle.c: see handle.h. */
#include "wire/handle.h"
