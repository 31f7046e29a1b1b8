/* network_fault.h: the effect of faults on one packet. Used only inside network. */
#pragma once
#include "sim/network.h"

/* False: the packet is lost. Adds the faults' delay to p->extra_ns. The route (p->spine) must be set. */
bool network_fault_pass(struct network *n, struct packet *p);
