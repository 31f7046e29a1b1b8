/* link_monitor.h: the kernel's state of a host's NICs: carrier, how often it was lost, counters, addresses.
 *
 * Watches up to HOST_NIC_MAX interfaces, each in a slot. A slot is found by its interface name. Then it is followed by the
 * kernel's index, so a rename is seen as one. If the device vanishes and returns, it is found by permanent MAC address or
 * name. The monitor keeps states, not events: a caller polls and compares. Events (multicast) only start a look, because
 * some drivers report up to a second late, and a flood may lose events (ENOBUFS: then everything is asked again). The kernel
 * counts losses of carrier, so a flap between two looks is still counted.
 *
 * Speed and width come from ethtool and sysfs (below a root that tests replace). */
#pragma once
#include "base/bug.h"
#include "base/limits.h"

#include <net/if.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINK_ADDRESS_MAX 8 /* kept per interface and family */

struct link_interface {
    char name[IF_NAMESIZE]; /* at first the wanted name; then the present one */
    int index;              /* 0: the device is missing */
    bool present, admin_up, carrier;
    uint32_t down_count, up_count; /* of the carrier, since the device was created */
    /* the permanent one if the driver reports it, else the present one */
    uint8_t mac[6];
    uint32_t speed_mbps; /* 0: not known */
    uint32_t mtu;        /* 0: not known */
    uint8_t width;       /* PCIe lanes; 0: not known */
    char driver[32];
    uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors, tx_errors, rx_drops, tx_drops;
    struct in_addr addresses4[LINK_ADDRESS_MAX];
    struct in6_addr addresses6[LINK_ADDRESS_MAX]; /* includes link-local ones */
    uint8_t count4, count6;
};

/* Changes of a slot since the last call of link_monitor_changes. */
#define LINK_CHANGE_STATE    1u /* carrier, counts, admin state, speed, width */
#define LINK_CHANGE_VANISHED 2u
#define LINK_CHANGE_RETURNED 4u
#define LINK_CHANGE_RENAMED  8u
#define LINK_CHANGE_ADDRESS  16u

struct link_monitor;

/* Opens a monitor without interfaces. -ENOMEM; -EPERM, -EMFILE …: no netlink socket. */
MUST_CHECK int link_monitor_open(struct link_monitor **ret_monitor);
struct link_monitor *link_monitor_close(struct link_monitor *m); /* accepts NULL; returns NULL */
/* Adds an interface. Returns its slot, counting from 0. -ENOSPC. */
MUST_CHECK int link_monitor_watch(struct link_monitor *m, const char *name);
/* This descriptor is readable when there are messages. */
int link_monitor_fd(const struct link_monitor *m);
/* Processes the kernel's messages. */
MUST_CHECK int link_monitor_receive(struct link_monitor *m);
/* Asks for the present state of the watched interfaces, by index (missing ones: by a dump of all interfaces), and processes
 * the answers. addresses: also dumps the addresses. */
MUST_CHECK int link_monitor_poll(struct link_monitor *m, bool addresses);
/* Reads speed, width and driver of a slot again. */
void link_monitor_look(struct link_monitor *m, unsigned slot);
const struct link_interface *link_monitor_get(const struct link_monitor *m, unsigned slot);
/* LINK_CHANGE_*; resets them to 0 */
unsigned link_monitor_changes(struct link_monitor *m, unsigned slot);
/* Finds the name of the interface with this address; false: none. For "nics: auto". */
MUST_CHECK bool link_find_address(const struct in_addr *address4, const struct in6_addr *address6,
                                  char ret_name[IF_NAMESIZE]);

/* For tests: processes one recorded netlink message. */
struct nlmsghdr;
void link_monitor_feed(struct link_monitor *m, const struct nlmsghdr *header);
