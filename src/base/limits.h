/* limits.h: the ceiling of everything that grows, in one place. */
#pragma once

#define FLEET_NIC_MAX    (1 << 20) /* NICs in one peers list */
#define HOST_NIC_MAX     16        /* NICs of one host */
#define NIC_EDGE_MAX     64        /* peers that one NIC probes: K plus rail and leaf neighbours */
#define EDGE_PATH_MAX    8         /* distinct paths kept per NIC pair */
#define MEMBER_EDGE_MAX  (HOST_NIC_MAX * NIC_EDGE_MAX)
