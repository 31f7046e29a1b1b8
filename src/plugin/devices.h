/* devices.h: this host's NICs as NCCL wants to hear of them: name, place on the PCI bus, identity, speed.
 *
 * Names and addresses come from the kernel (getifaddrs), kinds from rtnetlink (links.h), the rest from sysfs. An interface
 * counts if it is up, has an address that others can reach (not link-local), and can carry: no loopback, bridge, port of a
 * bridge, tunnel or dead end, whatever its name. If nothing is left, the loopback does, so that ranks on one machine
 * work. Of those, slow ones beside fast ones are left out: a management NIC is no fabric's. A filter (FOLIOT_NIC, else
 * NCCL_SOCKET_IFNAME) chooses instead: names or beginnings of names, separated by commas; "=eth0" is that one
 * only; "^docker,eth3" all that count but these. NCCL_SOCKET_FAMILY leaves addresses of that family only. */
#pragma once
#include <stdint.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "transport/io.h"

#define DEVICE_SPEED_UNKNOWN 10000 /* Mb/s: what NCCL's own socket transport assumes */

struct device {
    char name[16];
    char pci_path[256]; /* "": not on the PCI bus */
    uint64_t guid;      /* the same for all functions that share a MAC */
    uint32_t speed_mbps;
    struct io_address address; /* port 0 */
    bool loopback;
};

struct device_wish {
    const char *filter; /* as above; NULL or "": none */
    int family;         /* AF_INET, AF_INET6; AF_UNSPEC: either */
};

/* Fills at most `capacity`, sorted by PCI path, then name: so the order is the same on equal hosts. The number
 * found, or -errno. */
MUST_CHECK int devices_find(const char *sysfs, const struct device_wish *wish,
                            struct device *ret_devices, int capacity);
/* The filter that lets through the NICs that the agent watches, by its clock page in that folder. False: there is none. */
MUST_CHECK bool devices_of_agent(const char *folder, char *ret_filter, size_t size);
/* Lanes that a peer gets unless told otherwise: 4, and 8 where a NIC has 200 Gb/s: one connection brings a fraction of that,
 * and so fast a fabric has many paths (bench/job_sim.c: of what spraying brings 4 get 0.87, 8 0.96). */
uint32_t devices_lanes(const struct device *devices, uint32_t count);
/* Whether the filter lets that name through. */
bool devices_match(const char *filter, const char *name);
