/* phc.h: NICs' own clocks (PTP hardware clocks), and whether a NIC can stamp packets with its clock.
 *
 * The clock is only read, never steered. A read is a bracket: the host's raw clock, the NIC's clock, the host's raw clock.
 * There are three ways, best first: the platform's cross timestamp (no width), the driver's extended offset (the narrowest of
 * several), clock_gettime between two raw readings. The first reads find a way that works, because drivers offer ways that
 * they then refuse (-EBUSY: mlx5 without PCIe time measurement; -ENODEV: the kernel's clock source is not the one that the
 * NIC's time is compared with).
 *
 * Hardware stamps are used only if the NIC stamps *every* received packet (rx filter ALL). NICs that stamp only PTP packets
 * can't stamp probes. Enabling them needs CAP_NET_ADMIN. They stay enabled, because other programs may use them, too. */
#pragma once
#include "platform/timestamp/source.h"

struct phc_abilities {
    /* the driver calls skb_tx_timestamp: without it sent packets have no software stamps */
    bool software_transmit;
    bool hardware; /* of sent packets, and of all received packets */
    int index;     /* /dev/ptpN; -1: the NIC has no clock */
};
/* Asks the driver. -EOPNOTSUPP: it does not support the request. */
MUST_CHECK int phc_abilities_get(const char *interface, struct phc_abilities *ret_abilities);
/* Enables hardware stamps. -ERANGE: the NIC accepted less than all packets. */
MUST_CHECK int phc_enable(const char *interface);
/* Index of ptp_kvm's clock (the hypervisor's clock); -1: none. */
int phc_find_kvm(void);

struct phc;
/* /dev/ptp`index`. -ENOENT: none; -EACCES; -ENOMEM. */
MUST_CHECK int phc_open(struct phc **ret_phc, int index);
struct phc *phc_close(struct phc *p); /* accepts NULL; returns NULL */
/* Reads one bracket: the narrowest of `samples`. */
MUST_CHECK int phc_read(struct phc *p, struct time_source *source, unsigned samples,
                        struct mono *ret_before, struct nic_time *ret_nic, struct mono *ret_after);
/* The way of reading that works so far: "cross" (the platform's cross timestamp), "driver" (its extended offset), "bracket"
 * (clock_gettime between two readings of the host's clock). */
const char *phc_way(const struct phc *p);
/* How much another program changed the clock's rate since the last call, ppb; 0 at the first call. -EACCES: an older kernel
 * returns it only to programs that may steer, and this clock could only be opened for reading. */
MUST_CHECK int phc_steering(struct phc *p, double *ret_ppb);
