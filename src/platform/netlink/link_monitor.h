/* link_monitor.h: what the kernel says about a host's NICs: carrier, how often it was lost,
 * counters, addresses.
 *
 * Watches up to HOST_NIC_MAX interfaces, each in a slot. A slot is found by its interface name,
 * then followed by the kernel's index (a rename is seen as one), and found again by permanent MAC
 * address or name when the device went and came back. Everything is state, not events: a caller
 * polls and compares; events (multicast) only say when to look, since some drivers report up to a
 * second late and a flood may lose events (ENOBUFS: then all is asked anew). The carrier-down count
 * is the kernel's: a flap between two looks is still counted.
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

#define LINK_ADDRESS_MAX 8 /* remembered per interface and family */

struct link_interface {
    char name[IF_NAMESIZE]; /* wanted first; then the present one */
    int index;              /* 0: not there */
    bool present, admin_up, carrier;
    uint32_t down_count, up_count; /* of the carrier, since the device was made */
    uint8_t mac[6];                /* permanent if the driver says, else the present one */
    uint32_t speed_mbps;           /* 0: unknown */
    uint32_t mtu;                  /* 0: unknown */
    uint8_t width;                 /* PCIe lanes; 0: unknown */
    char driver[32];
    uint64_t rx_packets, tx_packets, rx_bytes, tx_bytes, rx_errors, tx_errors, rx_drops, tx_drops;
    struct in_addr addresses4[LINK_ADDRESS_MAX];
    struct in6_addr addresses6[LINK_ADDRESS_MAX]; /* link-local ones included */
    uint8_t count4, count6;
};

/* What a slot did since link_monitor_changes was last asked. */
#define LINK_CHANGE_STATE    1u /* carrier, counts, admin state, speed, width */
#define LINK_CHANGE_VANISHED 2u
#define LINK_CHANGE_RETURNED 4u
#define LINK_CHANGE_RENAMED  8u
#define LINK_CHANGE_ADDRESS  16u

struct link_monitor;

/* Watches nothing yet. -ENOMEM; -EPERM, -EMFILE …: no netlink socket can be had. */
MUST_CHECK int link_monitor_open(struct link_monitor **ret_monitor);
struct link_monitor *link_monitor_close(struct link_monitor *m); /* NULL is fine; returns NULL */
/* -ENOSPC. The slot's number counts up from 0. */
MUST_CHECK int link_monitor_watch(struct link_monitor *m, const char *name);
/* Readable when there is something to receive. */
int link_monitor_fd(const struct link_monitor *m);
/* Takes what the kernel sent. */
MUST_CHECK int link_monitor_receive(struct link_monitor *m);
/* Asks for the watched interfaces' present state, by index (those that are gone: all interfaces by
 * a dump), and takes the answers. With addresses: also dumps those. */
MUST_CHECK int link_monitor_poll(struct link_monitor *m, bool addresses);
/* Reads speed, width and driver of a slot anew. */
void link_monitor_look(struct link_monitor *m, unsigned slot);
const struct link_interface *link_monitor_get(const struct link_monitor *m, unsigned slot);
unsigned link_monitor_changes(struct link_monitor *m, unsigned slot); /* LINK_CHANGE_*; then 0 */
/* The name of the interface that has this address; false: none. For "nics: auto". */
MUST_CHECK bool link_find_address(const struct in_addr *address4, const struct in6_addr *address6,
                                  char ret_name[IF_NAMESIZE]);

/* For tests: one recorded netlink message. */
struct nlmsghdr;
void link_monitor_feed(struct link_monitor *m, const struct nlmsghdr *header);
