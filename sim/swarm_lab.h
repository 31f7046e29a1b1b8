/* swarm_lab.h: the swarm with real packets. */
#pragma once
#include "sim/swarm.h"

/* Draws the lab's world of that seed into FOLDER/swarm-lab-SEED.yaml, and lets `foliot lab run` play it, which prints the
 * result. 0: its bounds hold, and the file was removed; 1: a bound is broken; 2: it couldn't be played; -errno. */
MUST_CHECK int swarm_lab_world(uint64_t seed, const char *folder);
