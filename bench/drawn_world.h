/* drawn_world.h: makes a world from a scenario's text that a bench has drawn. */
#pragma once
#include "sim/world.h"

/* The scenario is in *scenario, which must outlive the world. NULL: it can't be played; the error was printed after the
 * bench's name. */
struct world *drawn_world(const char *bench, int index, const char *text,
                          struct scenario *scenario);
