/* network_fault.h: what faults do to one packet. Inside of network. */
#pragma once
#include "sim/network.h"

/* False: lost. Adds what faults delay to p->extra_ns. The route (p->spine) is set. */
bool network_fault_pass(struct network *n, struct packet *p);
