/* traffic_plan.h: the flows of a load. It is pure: from a fabric and a wish it computes flows.
 *
 * Load is a share of every link that the pattern uses, trunks included. Leaves are oversubscribed (in the default lab 8 host
 * links of a leaf share 4 trunks). So traffic between leaves is limited to what trunks carry at that share, and FILL uses the
 * rest of the host links within the leaf. Rates are of payload: a link of 200 Mbit/s carries 0.95 of it as TCP payload. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/bug.h"

enum traffic_pattern {
    TRAFFIC_PATTERN_CROSS, /* each NIC to its counterpart on the next leaf */
    TRAFFIC_PATTERN_FILL,  /* both this and a neighbour on its own leaf: every link at the load */
    TRAFFIC_PATTERN_LEAF,  /* only a neighbour: one flow out and one in on each host link */
    TRAFFIC_PATTERN_ALL_TO_ALL, /* each NIC to every NIC of every other host */
    TRAFFIC_PATTERN_INCAST,     /* all NICs of other hosts to one NIC, which gets the load */
    TRAFFIC_PATTERN_ONE,        /* one NIC to one NIC */
};

#define TRAFFIC_PAYLOAD_SHARE 0.95

struct traffic_nic {
    int host, nic, leaf;
};
struct traffic_fabric {
    const struct traffic_nic *nics;
    int nic_count;
    int spines;
    double link_mbps, trunk_mbps;
};
struct traffic_wish {
    enum traffic_pattern pattern;
    double load;      /* 0 … 1 of each link; 0: rate_mbps counts */
    double rate_mbps; /* payload that one NIC sends in all (INCAST: that the sink receives) */
    bool greedy;      /* unpaced: as much as TCP gets */
    int flows;        /* for each pair of NICs, each with its own source port; at least 1 */
    int from, to;     /* indices into nics: ONE both, INCAST `to` */
};
struct traffic_flow {
    int source, sink; /* indices into nics */
    double rate_bps;  /* payload; 0: greedy */
};

/* Fills at most `capacity` flows; returns their number. -EINVAL: no such NIC, or the pattern has no pair (only one leaf, or
 * one host). -ENOSPC. */
MUST_CHECK int traffic_plan(const struct traffic_fabric *fabric, const struct traffic_wish *wish,
                            struct traffic_flow *ret_flows, int capacity);
