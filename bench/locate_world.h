/* locate_world.h: a fabric drawn at random, with faults, probes and their fates; and a judge of the named faults. It shares no
 * code with core/fleet/locate: elements, paths and their sets are its own. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/prng.h"
#include "core/fleet/locate.h"

#define WORLD_PATH_MAX  40000
#define WORLD_FAULT_MAX 4
#define WORLD_ATOM_MAX  8192
#define WORLD_WORDS     (WORLD_PATH_MAX / 64)

struct world_config {
    uint64_t seed;
    uint32_t faults;
    double share;                         /* share of trials that a fault loses; 1: all */
    bool directed;                        /* only NIC and trunk directions */
    bool trunks;                          /* only trunk directions */
    uint32_t hosts, nics, leaves, spines; /* 0: drawn */
    double background;                    /* loss share of a path's trials */
    double burst_s;  /* losses of a link come in bursts of this length; 0: one by one */
    double swing;    /* the background changes by this factor within a simulated hour */
    double heard;    /* share of the hosts whose reports arrive; 0: all */
    bool liar, show; /* show: prints the named faults */
    double warm_s, watch_s;
    double length_s; /* of the faults; 0: until the end */
};

struct world_result {
    uint32_t paths;
    double rate;          /* trials a second over the first fault */
    bool right, tellable; /* at the end; tellable false: only one host could see it */
    uint32_t wrong;       /* healthy elements named, at any moment */
    uint32_t named;       /* cases named at any moment */
    double right_s;       /* time since the fault; < 0: never */
    uint32_t told;        /* faults that were named at any moment */
    double length_error_s, length_s, told_after_s; /* of the first named fault that ended */
    double look_us;                                /* processor time of a look */
    double path_hours;
    char text[256]; /* the error in words */
};

void world_run(const struct world_config *config, struct world_result *ret_result);
