/* lab.h: one emulated fleet on this machine, made of network namespaces.
 *
 * Everything is found by name: a lab NAME is the namespaces foliot-NAME-* and the folder /run/foliot-lab/NAME. `down` needs no
 * state of a process, so it works after a kill -9 of any process. All processes of a lab are in one of its namespaces, and are
 * found by that.
 *
 *   host h, NIC n           namespace foliot-NAME-host<h>, interface nic<n>, 10.h.n.2/30 and fd00:h:n::2/64
 *   its port on the leaf    namespace foliot-NAME-leaf<l>, interface h<h>n<n>, .1 and ::1
 *   trunk leaf l – spine s  leaf's interface spine<s>, spine's interface leaf<l>
 *   a router's own address  172.16.0.<1+l> (leaf), 172.16.1.<1+s> (spine): hops are known by it */
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
    /* Used while the lab is brought up. machines: trees that foliot-inspect reads on the hosts, FOLDER/hostN; NULL: none.
     * exchange: NICs with exchanged cables: the fleet's list has each of them on the next one's leaf, and the last on the first
     * one's. exchanged: their number. */
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

/* Opens a lab that is up, from its saved description. -ENOENT: there is none. */
MUST_CHECK int lab_open(struct lab *lab, const char *name);
/* Makes a lab from a description; file NULL: the default fabric. It prints the error. */
MUST_CHECK int lab_describe(struct lab *lab, const char *name, const char *file);

/* The number of namespaces of a lab of this name. */
int lab_space_count(const char *name);
/* True if any part of a lab of this name exists. */
bool lab_is_there(const char *name);
/* Brings up all of it: fabric, oscillators, agents, and a controller if `api_port` isn't 0. `program`: the agents' program;
 * NULL: foliot-agent. It prints the error; lab_fabric_down() then removes the parts. */
MUST_CHECK int lab_bring_up(const struct lab *lab, bool has_agents, const char *program,
                            int api_port);

/* Brings up the fabric alone. Both functions print the error. */
MUST_CHECK int lab_fabric_up(const struct lab *lab);
/* Removes all parts of a lab of this name. 0 also if there were none. */
MUST_CHECK int lab_fabric_down(const char *name);

/* Does what a routing protocol would do now: leaves avoid trunks that are down, and use them again when they are up. It
 * changes the calling process's namespace. */
MUST_CHECK int lab_fabric_reroute(const struct lab *lab);

/* LAB_ROOT/NAME/oscillators: the lab's clocks, from the scenario's seed and clocks. */
MUST_CHECK int lab_oscillators_create(const struct lab *lab);
void lab_oscillators_file(const struct lab *lab, char ret_file[LAB_TEXT_SIZE]);
