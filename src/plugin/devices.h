/* devices.h: this host's NICs as NCCL needs them: name, place on the PCI bus, identity, speed.
 *
 * Names and addresses come from the kernel (getifaddrs), kinds from rtnetlink (links.h), the rest from sysfs. An interface counts
 * if it is up, has an address that others can reach (not link-local), and can carry: no loopback, bridge, port of a bridge,
 * tunnel or dead end, whatever its name. If nothing is left, the loopback counts, so that ranks on one machine work. Slow
 * interfaces beside fast ones are left out: a management NIC doesn't belong to the fabric. A filter (FOLIOT_NIC, else
 * NCCL_SOCKET_IFNAME) chooses instead: names or beginnings of names, separated by commas; "=eth0" is exactly that name;
 * "^docker,eth3" is all that count except these. With NCCL_SOCKET_FAMILY only addresses of that family count. */
#pragma once
#include <stdint.h>
#include <sys/socket.h>

#include "base/limits.h"
#include "transport/io.h"

#define DEVICE_SPEED_UNKNOWN 10000 /* Mb/s: the value that NCCL's own socket transport assumes */

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

/* Fills at most `capacity` entries, sorted by PCI path, then name: so equal hosts have the same order. Returns the number found,
 * or -errno. */
MUST_CHECK int devices_find(const char *sysfs, const struct device_wish *wish,
                            struct device *ret_devices, int capacity);
/* A filter that accepts exactly the NICs that the agent watches, from its clock page in that folder. False: there is none. */
MUST_CHECK bool devices_of_agent(const char *folder, char *ret_filter, size_t size);
/* The default number of lanes to a peer: 4, and 8 if a NIC has 200 Gb/s. One connection carries only a fraction of that, and such
 * a fast fabric has many paths (bench/job_sim.c: of the rate with spraying, 4 lanes get 0.87, 8 lanes 0.96). */
uint32_t devices_lanes(const struct device *devices, uint32_t count);
/* Does the filter accept that name? */
bool devices_match(const char *filter, const char *name);
