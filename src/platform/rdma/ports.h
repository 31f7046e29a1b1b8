/* ports.h: a host's RDMA ports as the kernel's files tell of them (/sys/class/infiniband). No library, no device is opened.
 * What only the library knows (MTU, limits) is in verbs.h. A look costs some microseconds for each entry of the GID table,
 * empty ones too.
 *
 * A (device, port) is what Foliot calls a NIC. Everything here is read whole each time; a field that the kernel doesn't tell
 * has the value that its comment names. */
#pragma once
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/sysfs/sysfs.h"

#define RDMA_PORT_MAX     64 /* of a host */
#define RDMA_GID_MAX      64 /* kept of a port; a table may have 256, nearly all empty */
#define RDMA_PKEY_MAX     16 /* kept of a port */
#define RDMA_COUNTER_NONE UINT64_MAX

enum rdma_link_layer { RDMA_LAYER_UNKNOWN, RDMA_LAYER_ETHERNET, RDMA_LAYER_INFINIBAND };

/* The InfiniBand specification's numbers (PortInfo:PortState), for RoCE too. */
enum rdma_port_state {
    RDMA_PORT_NO_STATE = 0,
    RDMA_PORT_DOWN = 1,
    RDMA_PORT_INIT = 2, /* the cable is there, the subnet manager hasn't been */
    RDMA_PORT_ARMED = 3,
    RDMA_PORT_ACTIVE = 4,
    RDMA_PORT_ACTIVE_DEFER = 5,
};

enum rdma_gid_type { RDMA_GID_UNKNOWN, RDMA_GID_IB, RDMA_GID_ROCE_V1, RDMA_GID_ROCE_V2 };

struct rdma_gid {
    uint8_t gid[16];
    uint16_t index;
    uint8_t
        type; /* enum rdma_gid_type; of InfiniBand and of RoCE v1 the kernel tells one word: the link layer tells which */
    char if_name[IF_NAMESIZE]; /* "": none */
};

/* One vocabulary for what each vendor counts under names of its own (docs/rdma.md has the table). Rates judge, values don't. */
enum rdma_counter {
    RDMA_GAPS_IN, /* packets missing on the way in: loss upstream, or packets sprayed over paths */
    RDMA_GAPS_TOLD,    /* the peer missed ours */
    RDMA_ACK_TIMEOUTS, /* nothing came back: lost tails or acks, a dead path */
    RDMA_GAVE_UP,      /* a queue pair died of it */
    RDMA_RNR,          /* the receiver had no buffer posted */
    RDMA_MARKS_IN,     /* ECN-marked packets: we are the congested receiver's end */
    RDMA_CNP_OUT,
    RDMA_CNP_IN,          /* our flow was told to slow down */
    RDMA_DAMAGED,         /* RoCE packets with a wrong ICRC, though the Ethernet frame was good */
    RDMA_DROPS_HOST,      /* PCIe or buffers, not the fabric */
    RDMA_SYMBOL_ERRORS,   /* InfiniBand: errors of the cable */
    RDMA_LINK_RECOVERIES, /* InfiniBand: the link trained again and came back */
    RDMA_LINK_DOWNS,
    RDMA_DATA, /* sent and received, in words of four bytes: its interface doesn't count them */
    RDMA_COUNTER_COUNT
};

struct rdma_port {
    char device[IF_NAMESIZE * 4]; /* mlx5_0 */
    uint32_t port;                /* from 1 */
    uint64_t node_guid;           /* 0: not told */
    uint32_t state,
        phys_state;       /* enum rdma_port_state; 5 of phys_state is "link up". 0: not told */
    uint32_t layer;       /* enum rdma_link_layer */
    uint32_t rate_mbps;   /* of all lanes together; 0: not told */
    uint32_t width;       /* lanes; 0: not told */
    uint16_t lid, sm_lid; /* InfiniBand; 0: none */
    uint8_t lmc, sm_sl;
    bool virtual_function;
    char if_name[IF_NAMESIZE]; /* the Ethernet (or IPoIB) interface beside it; "": none */
    uint32_t mtu;              /* of that interface, bytes; 0: none */
    char firmware[32], board[32];
    uint32_t gid_count, gids_left_out;
    struct rdma_gid gids[RDMA_GID_MAX];
    uint32_t pkey_count;
    uint16_t pkeys[RDMA_PKEY_MAX];         /* by index; 0: empty */
    uint64_t counters[RDMA_COUNTER_COUNT]; /* RDMA_COUNTER_NONE: this device doesn't count it */
};

struct rdma_port_name {
    char device[IF_NAMESIZE * 4];
    uint32_t port;
};
/* Names of all ports, and one of them: a look at all at once takes milliseconds where tables are large. As rdma_ports_read. */
int rdma_port_names(const struct sysfs *s, struct rdma_port_name *ret_names, int capacity);
/* False: it isn't there any more. */
bool rdma_port_read(const struct sysfs *s, const struct rdma_port_name *name,
                    struct rdma_port *ret_port);

/* All ports, by device and number; how many. 0: the kernel has no RDMA (no such folder) or no device. -E2BIG: more than
 * `capacity`. A port that goes while it is read is left out. */
int rdma_ports_read(const struct sysfs *s, struct rdma_port *ret_ports, int capacity);

/* "gaps_in": as `foliot links --json` names it. */
const char *rdma_counter_name(enum rdma_counter counter);
const char *rdma_port_state_name(uint32_t state);
const char *rdma_gid_type_name(uint32_t type);

/* Whether the GID is an address of the link alone (fe80::/10), which no router carries. */
bool rdma_gid_is_link_local(const struct rdma_gid *gid);
/* The 16 bytes as an IPv4 address in `ret_ip`, if they are one (::ffff:a.b.c.d). */
bool rdma_gid_ipv4(const struct rdma_gid *gid, uint8_t ret_ip[4]);

/* The GID to use for an address: RoCE v2, the address itself if `ip` (16 bytes, IPv4 mapped; NULL: any) is given, else an IPv4
 * one, else a global IPv6 one, never fe80. On InfiniBand: the first. NULL: there is none. */
const struct rdma_gid *rdma_gid_choose(const struct rdma_port *port, const uint8_t *ip);
