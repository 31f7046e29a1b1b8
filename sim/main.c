/* main.c: the simulator by itself. `foliot sim` is the same. */
#include "sim/sim.h"

int main(int argc, char **argv)
{
    return sim_main(argc, argv);
}
