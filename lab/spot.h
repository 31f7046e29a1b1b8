/* spot.h: the places in the fabric of a fault's target: the ports to take down, and the hooks where its packets pass.
 *
 * All places are on switches, because a host does not see faults of a real fabric either. */
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

/* The places where the fault's packets pass, in its `direction`; returns how many. */
int lab_spots(const struct lab *lab, const struct scenario_fault *fault,
              struct lab_spot ret_spot[LAB_SPOT_MAX]);
/* The ports whose `link down` takes the target's carrier away; returns how many. */
int lab_link_ports(const struct lab *lab, const struct scenario_fault *fault,
                   struct lab_port ret_port[LAB_SPOT_MAX]);
/* The ports whose shaper sets the target's rate; returns how many. */
int lab_shaper_ports(const struct lab *lab, const struct scenario_fault *fault,
                     struct lab_port ret_port[LAB_SPOT_MAX]);
/* The hosts of a target; the lab's seed draws a share of them. Returns how many. */
int lab_target_hosts(const struct lab *lab, const struct scenario_target *target,
                     int ret_host[LAB_HOST_MAX]);
