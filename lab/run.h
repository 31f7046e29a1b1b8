/* run.h: `foliot lab run SCENARIO`: a scenario file, played with real packets. */
#pragma once

/* argv[0] is "run"; `name`: the lab's. Exit status: 0 all bounds hold, 1 a bound is broken, 2 a scenario couldn't be played. */
int lab_run_main(const char *name, int argc, char **argv);
