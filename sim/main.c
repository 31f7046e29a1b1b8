/* main.c: the simulator as its own program. `foliot sim` is the same. */
#include "sim/sim.h"

int main(int argc, char **argv)
{
    return sim_main(argc, argv);
}
