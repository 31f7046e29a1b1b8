/* config.h: the agent's YAML file, the fleet it describes, and the key file that it names.
 *
 * A bad file is refused whole, with line and column; the caller keeps what it had. What is returned
 * owns all of its memory, and stays unchanged for as long as a node borrows the fleet's arrays. */
#pragma once
#include "base/limits.h"
#include "core/node/node.h"
#include "platform/config/config.h"
#include "wire/pair_key.h"
#include "wire/probe.h"
#include "wire/switch_page.h"

#include <net/if.h>
#include <netinet/in.h>
#include <time.h>

#define AGENT_CONFIG_DEFAULT  "/etc/foliot/agent.yaml"
#define AGENT_RUNTIME_DEFAULT "/run/foliot"
#define AGENT_STATE_DEFAULT   "/var/lib/foliot"
#define AGENT_INSPECT_DEFAULT "/run/foliot-inspect.sock"
#define AGENT_PERF_DEFAULT    "/run/foliot-perf.sock"
#define AGENT_PORT_DEFAULT    7637
#define AGENT_NAME_SIZE       64
#define AGENT_PATH_SIZE       200
#define AGENT_KEY_MAX         2

/* Beside mesh_peer, at the same index: how to reach a NIC, and what it is called. */
struct agent_peer {
    struct in_addr address4;  /* 0: none */
    struct in6_addr address6; /* zero: none */
    char nic_name[IF_NAMESIZE];
    uint16_t leaf; /* in leaf_names; LEAF_UNKNOWN: none */
    uint16_t reserved;
};

/* Beside fleet_file, by its name and this: the hosts' keys of the same version. A file of its own, for agents from before
 * the keys refuse a list that has more than they know. */
#define FLEET_KEYS_SUFFIX ".keys"

struct agent_config {
    char path[AGENT_PATH_SIZE], host[AGENT_NAME_SIZE];
    char key_file[AGENT_PATH_SIZE], runtime_dir[AGENT_PATH_SIZE], state_dir[AGENT_PATH_SIZE];
    char controller[AGENT_PATH_SIZE];   /* "ADDRESS:PORT"; empty: none */
    char identity_dir[AGENT_PATH_SIZE]; /* certificate and key for it */
    char fleet_file[AGENT_PATH_SIZE];   /* where `peers` are instead, as the controller has them */
    uint64_t fleet_version;             /* of that file */
    char perf[AGENT_PATH_SIZE];         /* an audit's tests: its socket, or the program `foliot` */
    char inspect[AGENT_PATH_SIZE];      /* foliot-inspect: its socket, or the program */
    char inspect_root[AGENT_PATH_SIZE]; /* what the program reads as "/"; empty: this machine */
    char socket_group[33];              /* whose members may ask, beside root; "*": every user */
    char metrics_listen[80];            /* "127.0.0.1:7636"; empty: no metrics over HTTP */
    uint16_t port;
    enum switch_mode mode; /* the most that jobs here may do; UNSET: no limit */
    bool software_stamps;  /* stamps: software, even where the NIC could */
    int64_t record_bytes_max;
    uint32_t edge_bound_ns, delay_floor_ns, diameter, flap_limit;
    uint16_t path_limit, ring_peers;
    uint8_t job_traffic_class; /* of jobs on RDMA ports; 0: the best-effort one */
    bool class_of_jobs;        /* job_traffic_class: jobs */
    struct host_id host_id;
    uint32_t nic_count;
    struct {
        char name[IF_NAMESIZE]; /* as the peers list has it */
        uint32_t peer;          /* its index in peers */
        char port_name[140];    /* "leaf3 port Ethernet1/4", as heard by LLDP; empty: not known */
    } nics[HOST_NIC_MAX];
    uint32_t peer_count;
    struct mesh_peer *peers; /* by ascending id; in the node's memory as soon as peers_moved */
    bool peers_moved;
    uint32_t peer_capacity;  /* then */
    struct agent_peer *more; /* the same order */
    uint32_t host_count;
    char (*host_names)[AGENT_NAME_SIZE];
    uint8_t (*host_keys)[PAIR_PUBLIC_SIZE]; /* public halves, by host; all zero: none in the list */
    time_t host_keys_at;                    /* when the file that has them was written */
    uint32_t leaf_count;
    char (*leaf_names)[AGENT_NAME_SIZE];
    uint64_t members_digest; /* of a list with a version (core/fleet/member.h) */
    /* members_file.c: where the next change goes; 0: the list isn't of such a file. Bytes and count of those that are there */
    size_t members_end;
    uint32_t members_log, members_changes;
    char members_trouble[200]; /* why such a file isn't used; empty: it is, or there is none */
    uint32_t anchor_count;
    char (*anchors)[AGENT_NAME_SIZE];
    char said[16]
             [AGENT_NAME_SIZE + IF_NAMESIZE]; /* what sentences called NICs lately: "host1/nic0" */
    uint32_t said_turn;
    uint32_t router_count;
    struct mesh_router *routers;
};

/* -EINVAL, … with error->text set. runtime_dir: an override (FOLIOT_RUNTIME_DIR) or NULL. fleet_file: a list as members.h keeps
 * it that is tried in place of the one that the file names, or NULL. */
MUST_CHECK int agent_config_load(const char *path, const char *runtime_dir, const char *fleet_file,
                                 struct agent_config **ret_config, struct config_error *error);
struct agent_config *agent_config_free(struct agent_config *config);
/* What the node is told: it borrows the configuration's own peers and routers, which lie in the arena where there is one. */
struct mesh_fleet agent_config_fleet(const struct agent_config *config);

/* Index in peers of a NIC's id; false: not in the list. */
bool agent_config_find(const struct agent_config *config, struct nic_id nic, uint32_t *ret_index);
/* Those in the list. */
uint32_t agent_config_hosts(const struct agent_config *config);
const char *agent_config_host_name(const struct agent_config *config,
                                   struct host_id host); /* NULL: no such */

struct agent_keys {
    struct probe_key keys[AGENT_KEY_MAX]; /* the older first */
    time_t not_before[AGENT_KEY_MAX];
    uint32_t count;
};
/* Lines "key ID HEX32 NOT-BEFORE" (RFC 3339, UTC), at most two keys, comments after '#'. Refuses a
 * file that others than its owner may read. error->text never quotes a key. */
MUST_CHECK int agent_keys_load(const char *path, struct agent_keys *ret_keys,
                               struct config_error *error);
