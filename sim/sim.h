/* sim.h: the command `foliot sim`. */
#pragma once
#include "base/bug.h"

/* argv[0] is "sim". Returns the exit status: 0 bounds hold, 1 a bound is broken, 2 wrong usage or input. */
int sim_main(int argc, char **argv);
int sim_run(int argc, char **argv);
int sim_replay(int argc, char **argv);
int sim_scale(int argc, char **argv);
int sim_swarm(int argc, char **argv);

/* One fleet of `hosts` hosts with one NIC each and 16 edges of 4 paths, run for `seconds`. The first quarter is not measured. */
struct sim_scale_point {
    int hosts;
    double packets_per_host_s, events_per_host_s;
    double cpu_us_per_host_s; /* of this process, with its cache misses and page faults */
    double memory_kib_per_host;
};
MUST_CHECK int sim_scale_measure(int hosts, double seconds, struct sim_scale_point *ret_point);
