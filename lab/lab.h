/* lab.h: one emulated fleet on this machine, out of network namespaces.
 *
 * Everything is found again by name: a lab NAME is the namespaces foliot-NAME-*, and the folder
 * /run/foliot-lab/NAME. No process holds state that `down` would need: it works after a kill -9 of
 * anything. All processes of a lab live in one of its namespaces, which is how they are found.
 *
 *   host h, NIC n           namespace foliot-NAME-host<h>, interface nic<n>, 10.h.n.2/30 and fd00:h:n::2/64
 *   its port on the leaf    namespace foliot-NAME-leaf<l>, interface h<h>n<n>, .1 and ::1
 *   trunk leaf l – spine s  leaf's interface spine<s>, spine's interface leaf<l>
 *   a router's own address  172.16.0.<1+l> (leaf), 172.16.1.<1+s> (spine): hops are known by it
 */
#pragma once
#include "base/bug.h"
#include "service/scenario/scenario.h"

#include <stdio.h>

#define LAB_ROOT         "/run/foliot-lab"
#define LAB_NAME_MAX     24
#define LAB_HOST_MAX     200
#define LAB_SWITCH_MAX   62
#define LAB_AGENT_PORT   7637
#define LAB_EXCHANGE_MAX 8
#define LAB_TEXT_SIZE    256
#define LAB_MAC_SIZE     18

enum node_kind { NODE_HOST, NODE_LEAF, NODE_SPINE };

struct lab {
    char name[LAB_NAME_MAX + 1];
    char folder[LAB_TEXT_SIZE]; /* LAB_ROOT/NAME */
    struct scenario scenario;   /* its fabric, clocks and seed */
    /* While it is brought up. Trees that foliot-inspect reads on its hosts: FOLDER/hostN; NULL: none is named. NICs of which
     * the fleet's list has each on the next one's leaf, and the last on the first one's: as where cables are exchanged. */
    const char *machines;
    int exchanged;
    bool has_engines; /* its NICs have RDMA devices: engine.h */
    struct lab_nic {
        int host, nic;
    } exchange[LAB_EXCHANGE_MAX];
};

/* One end of a link: interface `interface` in namespace `space`. */
struct lab_port {
    char space[64];
    char interface[16];
};

/* The namespace of a node, by name. */
void lab_space(const struct lab *lab, enum node_kind kind, int index, char ret_space[64]);
int lab_leaf_of(const struct lab *lab, int host, int nic);
int lab_leaf_declared(const struct lab *lab, int host, int nic);
/* The two ends of a NIC's link, and of a trunk. */
struct lab_port lab_nic_port(const struct lab *lab, int host, int nic);
struct lab_port lab_leaf_port(const struct lab *lab, int host, int nic);
struct lab_port lab_uplink_port(const struct lab *lab, int leaf, int spine);
struct lab_port lab_downlink_port(const struct lab *lab, int leaf, int spine);
/* "10.h.n.2", "fd00:h:n::2". */
void lab_address4(int host, int nic, char ret_address[LAB_TEXT_SIZE]);
void lab_address6(int host, int nic, char ret_address[LAB_TEXT_SIZE]);
/* The hardware address of a NIC, or of the leaf's port that it is connected to. */
void lab_mac(int host, int nic, bool is_leaf, char ret_mac[LAB_MAC_SIZE]);

/* Of a lab that is up: -ENOENT if there is none. Reads its saved description. */
MUST_CHECK int lab_open(struct lab *lab, const char *name);
/* From a description; file NULL: the default fabric. Says what is wrong on stderr. */
MUST_CHECK int lab_describe(struct lab *lab, const char *name, const char *file);

/* How many namespaces of a lab of this name there are. */
int lab_space_count(const char *name);
/* Something of a lab of this name is there, whole or not. */
bool lab_is_there(const char *name);
/* All of it: fabric, oscillators, agents, a controller if `api_port` isn't 0. `program` is the agents', NULL:
 * foliot-agent. Says what went wrong on stderr; what was made until then is for lab_fabric_down(). */
MUST_CHECK int lab_bring_up(const struct lab *lab, bool has_agents, const char *program,
                            int api_port);

/* The fabric alone. Both say what went wrong on stderr. */
MUST_CHECK int lab_fabric_up(const struct lab *lab);
/* Whatever there is of a lab of this name, gone. 0 also when there was nothing. */
MUST_CHECK int lab_fabric_down(const char *name);

/* What a routing protocol would do now: leaves go round trunks that are down, and back where they are up. Changes
 * the calling process's namespace. */
MUST_CHECK int lab_fabric_reroute(const struct lab *lab);

/* Oscillators: LAB_ROOT/NAME/oscillators, by the scenario's seed and clocks. */
MUST_CHECK int lab_oscillators_create(const struct lab *lab);
void lab_oscillators_file(const struct lab *lab, char ret_file[LAB_TEXT_SIZE]);
