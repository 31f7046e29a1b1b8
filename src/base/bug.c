/* bug.c: ends a process that found its own bug. */
#include "base/bug.h"

#include <stdio.h>
#include <stdlib.h>

void bug_found(const char *condition, const char *file, int line, const char *function)
{
    fprintf(stderr, "foliot: bug: %s does not hold (%s:%d, %s)\n", condition, file, line, function);
    abort();
}
