/* engine.h: RDMA engines of a lab's NICs: soft-RoCE, in the virtual machine of lab/roce-vm.
 *
 * Soft-RoCE works in the initial network namespace only, but a host of a lab has its own namespace. So each NIC's engine is
 * outside its host. A pair of interfaces leads from the host's rdma<n> to the initial namespace's h<h>n<n>, which has the
 * NIC's addresses and an RDMA device of the same name. Two filters in the host pass RoCE's packets (UDP port 4791) between
 * rdma<n> and nic<n>. So these packets use the NIC's own link, shaper and faults. The host's network stack sees none of them,
 * as with hardware.
 *
 *   host h, NIC n                      initial namespace
 *   nic<n>  10.h.n.2 ◄──filters──► rdma<n> ──veth── h<h>n<n>  10.h.n.2, RDMA device h<h>n<n>
 *
 * So the initial namespace has the addresses of all hosts, and would deliver packets between NICs internally. Rules therefore
 * send a packet out by the sender's own interface before the local table is used.
 * A host sees only its own devices: lab_engines_view(). */
#pragma once
#include "lab/lab.h"

#include <net/if.h>

/* The most RDMA devices of one machine that foliot reads. Such a lab may have as many NICs. */
#define LAB_ENGINE_MAX 32

/* The device of a NIC: "h3n1". */
void lab_engine_name(int host, int nic, char ret_name[IF_NAMESIZE]);
/* Write commands for the initial namespace: interfaces and rules for `ip -batch`, devices for `rdma -batch`. */
void lab_engines_links(const struct lab *lab, FILE *ip);
void lab_engines_rules(const struct lab *lab, FILE *ip);
void lab_engines_devices(const struct lab *lab, FILE *rdma);

/* Call it after the fabric, in the virtual machine only. It prints the error. */
MUST_CHECK int lab_engines_up(const struct lab *lab);
/* Call it when the lab's processes have ended, before its namespaces are removed. 0 also without engines. */
MUST_CHECK int lab_engines_down(const char *name);
/* Call it in a host's namespace with a /sys of its own. Then /sys and /dev have only this host's RDMA devices, and its
 * interfaces have the host's names. Does nothing in a lab without engines. */
MUST_CHECK int lab_engines_view(const struct lab *lab, int host);
