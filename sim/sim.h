/* sim.h: the command `foliot sim`. */
#pragma once

/* argv[0] is "sim". Returns the exit status: 0 bounds hold, 1 a bound is broken, 2 wrong usage or input. */
int sim_main(int argc, char **argv);
int sim_run(int argc, char **argv);
int sim_replay(int argc, char **argv);
int sim_scale(int argc, char **argv);
