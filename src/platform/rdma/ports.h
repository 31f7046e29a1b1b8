/* ports.h: a host's RDMA ports from the kernel's files (/sys/class/infiniband). It uses no library and opens no device. Values
 * that only the library has (MTU, limits) are in verbs.h. A look costs some microseconds for each entry of the GID table, also
 * for empty ones.
 *
 * Foliot calls a (device, port) a NIC. Everything is read again each time. If the kernel has no value for a field, it has the
 * value that its comment names. */
#pragma once
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#include "platform/sysfs/sysfs.h"

#define RDMA_PORT_MAX     64 /* per host */
#define RDMA_GID_MAX      64 /* kept per port; a table may have 256, nearly all empty */
#define RDMA_PKEY_MAX     16 /* kept per port */
#define RDMA_COUNTER_NONE UINT64_MAX

enum rdma_link_layer { RDMA_LAYER_UNKNOWN, RDMA_LAYER_ETHERNET, RDMA_LAYER_INFINIBAND };

/* The InfiniBand specification's numbers (PortInfo:PortState), for RoCE too. */
enum rdma_port_state {
    RDMA_PORT_NO_STATE = 0,
    RDMA_PORT_DOWN = 1,
    RDMA_PORT_INIT = 2, /* a cable is connected; no subnet manager has configured the port */
    RDMA_PORT_ARMED = 3,
    RDMA_PORT_ACTIVE = 4,
    RDMA_PORT_ACTIVE_DEFER = 5,
};

enum rdma_gid_type { RDMA_GID_UNKNOWN, RDMA_GID_IB, RDMA_GID_ROCE_V1, RDMA_GID_ROCE_V2 };

struct rdma_gid {
    uint8_t gid[16];
    uint16_t index;
    uint8_t type; /* enum rdma_gid_type; the link layer tells InfiniBand from RoCE v1 */
    char if_name[IF_NAMESIZE]; /* "": none */
};

/* Common names for the vendors' counters (docs/rdma.md has the table). Their rates are judged, not their values. */
enum rdma_counter {
    /* missing received packets: loss before this host, or packets sprayed over paths */
    RDMA_GAPS_IN,
    RDMA_GAPS_TOLD,    /* the peer reported missing packets */
    RDMA_ACK_TIMEOUTS, /* no answer: lost tails or acks, or a dead path */
    RDMA_GAVE_UP,      /* a queue pair failed because of this */
    RDMA_RNR,          /* the receiver had no buffer posted */
    RDMA_MARKS_IN,     /* ECN-marked packets: this host is the receiver in a congestion */
    RDMA_CNP_OUT,
    RDMA_CNP_IN,          /* CNPs received: a flow of this host must slow down */
    RDMA_DAMAGED,         /* RoCE packets with a wrong ICRC in a correct Ethernet frame */
    RDMA_DROPS_HOST,      /* drops by PCIe or buffers, not by the fabric */
    RDMA_SYMBOL_ERRORS,   /* InfiniBand: errors of the cable */
    RDMA_LINK_RECOVERIES, /* InfiniBand: the link was trained again and recovered */
    RDMA_LINK_DOWNS,
    /* sent and received, in words of four bytes; the interface does not count these bytes */
    RDMA_DATA,
    RDMA_COUNTER_COUNT
};

struct rdma_port {
    char device[IF_NAMESIZE * 4]; /* e.g. mlx5_0 */
    uint32_t port;                /* counts from 1 */
    uint64_t node_guid;           /* 0: not known */
    uint32_t state, phys_state; /* enum rdma_port_state; phys_state 5 is "link up". 0: not known */
    uint32_t layer;             /* enum rdma_link_layer */
    uint32_t rate_mbps;         /* of all lanes together; 0: not known */
    uint32_t width;             /* lanes; 0: not known */
    uint16_t lid, sm_lid;       /* InfiniBand; 0: none */
    uint8_t lmc, sm_sl;
    bool virtual_function;
    char if_name[IF_NAMESIZE]; /* the Ethernet (or IPoIB) interface of the port; "": none */
    uint32_t mtu;              /* of that interface, bytes; 0: none */
    char firmware[32], board[32];
    uint32_t gid_count, gids_left_out;
    struct rdma_gid gids[RDMA_GID_MAX];
    uint32_t pkey_count;
    uint16_t pkeys[RDMA_PKEY_MAX];         /* by index; 0: empty */
    uint64_t counters[RDMA_COUNTER_COUNT]; /* RDMA_COUNTER_NONE: this device does not have it */
};

struct rdma_port_name {
    char device[IF_NAMESIZE * 4];
    uint32_t port;
};
/* Names of all ports, and the facts of one port: reading all ports at once takes milliseconds if tables are large. Results as
 * for rdma_ports_read. */
int rdma_port_names(const struct sysfs *s, struct rdma_port_name *ret_names, int capacity);
/* False: the port no longer exists. */
bool rdma_port_read(const struct sysfs *s, const struct rdma_port_name *name,
                    struct rdma_port *ret_port);

/* Reads all ports, sorted by device and number; returns how many. 0: the kernel has no RDMA (no such folder), or there is no
 * device. -E2BIG: more than `capacity`. A port that vanishes while it is read is left out. */
int rdma_ports_read(const struct sysfs *s, struct rdma_port *ret_ports, int capacity);

/* "gaps_in": the name in `foliot links --json`. */
const char *rdma_counter_name(enum rdma_counter counter);
const char *rdma_port_state_name(uint32_t state);
const char *rdma_gid_type_name(uint32_t type);

/* True if the GID is a link-local address (fe80::/10), which no router forwards. */
bool rdma_gid_is_link_local(const struct rdma_gid *gid);
/* True if the 16 bytes are an IPv4 address (::ffff:a.b.c.d); *ret_ip has it. */
bool rdma_gid_ipv4(const struct rdma_gid *gid, uint8_t ret_ip[4]);

/* The GID to use for an address: RoCE v2. If `ip` is given (16 bytes, IPv4 mapped; NULL: any): that address; else an IPv4 one,
 * else a global IPv6 one, never fe80. On InfiniBand: the first. NULL: there is none. */
const struct rdma_gid *rdma_gid_choose(const struct rdma_port *port, const uint8_t *ip);
