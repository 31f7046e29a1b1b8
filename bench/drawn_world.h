/* drawn_world.h: a world of a scenario's text that a bench has drawn. */
#pragma once
#include "sim/world.h"

/* In *scenario, which must outlive it. NULL: it can't be played, and that was printed, after the bench's name. */
struct world *drawn_world(const char *bench, int index, const char *text,
                          struct scenario *scenario);
