/* traffic_socket.h: the two sockets of one flow, each in its host's namespace. */
#pragma once
#include "lab/lab.h"
#include "lab/traffic_plan.h"

#include <stdint.h>

#define TRAFFIC_PORT_BASE 20000 /* flow i is received on this port + i */

struct traffic_link {
    const struct lab *lab;
    const struct traffic_nic *source, *sink;
    uint16_t source_port; /* 0: the kernel chooses it; it is filled in */
    uint16_t sink_port;
    bool udp, ipv6, high_class;
    bool ends;       /* it carries a given number of bytes, then waits */
    double rate_bps; /* payload; 0: unpaced */
};

/* Opens, connects, sets options. It leaves this process in one of the lab's namespaces. */
MUST_CHECK int traffic_link_open(struct traffic_link *link, int *ret_out, int *ret_in);
