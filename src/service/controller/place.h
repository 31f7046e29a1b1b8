/* place.h: is this store the file that the fleet's controller last had, or a copy of it? */
#pragma once
#include "base/bug.h"

struct store;

#define CONTROLLER_EXIT_COPY 78 /* sysexits' EX_CONFIG: the unit doesn't start it again */
/* Is the store at this path the file that the fleet's controller last had? A store without a place gets this one.
 * -ESTALE with ret_copy: it is a copy, which was logged. */
MUST_CHECK int place_check(struct store *s, const char *path, bool *ret_copy);
/* From now on it is this one. */
MUST_CHECK int place_take(struct store *s, const char *path);
