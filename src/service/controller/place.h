/* place.h: is this store the file that the fleet's controller used last, or a copy of it? */
#pragma once
#include "base/bug.h"

struct store;

#define CONTROLLER_EXIT_COPY 78 /* sysexits' EX_CONFIG: the unit does not start it again */
/* Checks that the store at this path is the file that the fleet's controller used last. A store without a place gets this one.
 * -ESTALE with ret_copy: it is a copy; this was logged. */
MUST_CHECK int place_check(struct store *s, const char *path, bool *ret_copy);
/* Makes this the store's place. */
MUST_CHECK int place_take(struct store *s, const char *path);
