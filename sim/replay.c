/* replay.c: `foliot sim replay`: a host's recorded inputs, told to the same code again. */
#include "sim/sim.h"

#include <stdio.h>

int sim_replay(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    fprintf(stderr, "foliot sim replay: not built in yet\n");
    return 2;
}
