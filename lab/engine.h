/* engine.h: RDMA engines of a lab's NICs: soft-RoCE, in the virtual machine of lab/roce-vm.
 *
 * Soft-RoCE works in the initial network namespace only, and a host of a lab has one of its own. So each NIC's engine is
 * beside its host, as it would be a chip of its own on a card: a pair of interfaces leads from the host's rdma<n> to the
 * initial namespace's h<h>n<n>, which has the NIC's addresses and an RDMA device of the same name. Two filters in the host
 * pass RoCE's packets (UDP port 4791) between rdma<n> and nic<n>. So they use the NIC's own link, shaper and faults, and the
 * host's stack sees none of them, as with hardware.
 *
 *   host h, NIC n                      initial namespace
 *   nic<n>  10.h.n.2 ◄──filters──► rdma<n> ──veth── h<h>n<n>  10.h.n.2, RDMA device h<h>n<n>
 *
 * The initial namespace so has the addresses of all hosts, and would deliver by itself what one NIC sends another: rules put
 * the way out by the sender's own interface before the local table.
 * A host sees its own devices only: lab_engines_view(). */
#pragma once
#include "lab/lab.h"

#include <net/if.h>

/* RDMA devices of one machine that foliot reads, at most: as many NICs may such a lab have. */
#define LAB_ENGINE_MAX 32

/* The device of a NIC: "h3n1". */
void lab_engine_name(int host, int nic, char ret_name[IF_NAMESIZE]);
/* Two lists of commands for `ip -batch`, in the initial namespace: the interfaces, and the rules; one for `rdma -batch`. */
void lab_engines_links(const struct lab *lab, FILE *ip);
void lab_engines_rules(const struct lab *lab, FILE *ip);
void lab_engines_devices(const struct lab *lab, FILE *rdma);

/* After the fabric, in the virtual machine only. Says on stderr what went wrong. */
MUST_CHECK int lab_engines_up(const struct lab *lab);
/* Of a lab of this name: its processes are gone, its namespaces not yet. 0 also where there were none. */
MUST_CHECK int lab_engines_down(const char *name);
/* In a host's namespace with a /sys of its own: of RDMA devices, /sys and /dev have this host's only, and its interfaces have the
 * host's names. Nothing is done in a lab without engines. */
MUST_CHECK int lab_engines_view(const struct lab *lab, int host);
