/* drawn_world.c: see drawn_world.h. */
#include "drawn_world.h"

#include <stdio.h>
#include <string.h>

struct world *drawn_world(const char *bench, int index, const char *text, struct scenario *scenario)
{
    struct config_error error;
    struct world *w = NULL;

    if (scenario_parse(bench, text, strlen(text), scenario, &error) < 0 ||
        world_new(&w, scenario, scenario->seed) < 0) {
        fprintf(stderr, "%s: world %d can't be played:\n%s", bench, index, text);
        return NULL;
    }
    return w;
}
