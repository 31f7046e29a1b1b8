/* spot.h: where in the fabric a fault's target is: the ports to take down, and the places where packets pass.
 *
 * All places are on switches: a host doesn't see what happens there, as with a real fabric. */
#pragma once
#include "lab/lab.h"
#include "lab/machine.h"

#define LAB_SPOT_MAX 1024

/* Packets at one hook of one port. */
struct lab_spot {
    struct lab_port port;
    enum machine_hook hook;
    struct machine_match match;
};

/* Places where the packets pass that a fault is about, `direction` kept to; returns how many. */
int lab_spots(const struct lab *lab, const struct scenario_fault *fault,
              struct lab_spot ret_spot[LAB_SPOT_MAX]);
/* Ports whose `link down` takes the target's carrier away; returns how many. */
int lab_link_ports(const struct lab *lab, const struct scenario_fault *fault,
                   struct lab_port ret_port[LAB_SPOT_MAX]);
/* Ports whose shaper is the target's rate. */
int lab_shaper_ports(const struct lab *lab, const struct scenario_fault *fault,
                     struct lab_port ret_port[LAB_SPOT_MAX]);
/* Hosts of a target, a share of them drawn by the lab's seed; returns how many. */
int lab_target_hosts(const struct lab *lab, const struct scenario_target *target,
                     int ret_host[LAB_HOST_MAX]);
