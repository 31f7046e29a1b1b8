/* phc.h: NICs' own clocks (PTP hardware clocks), and whether a NIC can stamp packets by its clock.
 *
 * The clock is only read, never steered. A read is a bracket: host's raw clock before, NIC's clock,
 * host's raw clock after. Best first: the cross timestamp of the platform (no width at all), the
 * driver's extended offset (narrowest of several), clock_gettime between two raw readings. Which
 * one works is found at the first reads: drivers offer what they then refuse (-EBUSY: mlx5 without
 * PCIe time measurement; -ENODEV: the kernel's clock source is not the one that the NIC's time is
 * compared with).
 *
 * Hardware stamps are used where the NIC stamps *every* packet that comes (rx filter ALL): those
 * that stamp PTP packets only can't stamp ours. Switching them on takes CAP_NET_ADMIN and is left
 * on: others may use it too. */
#pragma once
#include "platform/timestamp/source.h"

struct phc_abilities {
    bool software_transmit; /* the driver calls skb_tx_timestamp: without, no software stamps of
                               what is sent */
    bool hardware;          /* transmit, and receive of all packets */
    int index;              /* /dev/ptpN; -1: the NIC has no clock */
};
/* Asks the driver. -EOPNOTSUPP: it doesn't know the question. */
MUST_CHECK int phc_abilities_get(const char *interface, struct phc_abilities *ret_abilities);
/* Switches hardware stamps on. -ERANGE: the NIC agreed to less than all packets. */
MUST_CHECK int phc_enable(const char *interface);
/* Index of ptp_kvm's clock (the hypervisor's), -1: none. */
int phc_find_kvm(void);

struct phc;
/* /dev/ptp`index`. -ENOENT: none; -EACCES; -ENOMEM. */
MUST_CHECK int phc_open(struct phc **ret_phc, int index);
struct phc *phc_close(struct phc *p); /* NULL is fine; returns NULL */
/* One bracket, the narrowest of `samples`. */
MUST_CHECK int phc_read(struct phc *p, struct time_source *source, unsigned samples,
                        struct mono *ret_before, struct nic_time *ret_nic, struct mono *ret_after);
/* How it is read, as was found so far: "cross" (the platform's cross timestamp), "driver" (its extended offset), "bracket"
 * (clock_gettime between two of the host's). */
const char *phc_way(const struct phc *p);
/* By how much somebody changed the clock's rate since the last call, ppb: 0 at the first. -EACCES: an older kernel tells it to
 * those only that may steer, and this clock could be opened for reading only. */
MUST_CHECK int phc_steering(struct phc *p, double *ret_ppb);
