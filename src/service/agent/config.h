/* config.h: the agent's YAML file, the fleet that it describes, and the key file that it names.
 *
 * A file with an error is refused as a whole, with line and column, and the caller keeps its old configuration. A returned
 * configuration owns all of its memory. It does not change while a node borrows the fleet's arrays. */
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

/* The arrays of mesh_peer and agent_peer have the same index. This struct has a NIC's addresses and names. */
struct agent_peer {
    struct in_addr address4;  /* 0: none */
    struct in6_addr address6; /* zero: none */
    char nic_name[IF_NAMESIZE];
    uint16_t leaf; /* in leaf_names; LEAF_UNKNOWN: none */
    uint16_t reserved;
};

/* The file of the hosts' keys of the same version, beside fleet_file: its name with this suffix. It is a separate file because
 * older agents refuse a list with fields that they don't know. */
#define FLEET_KEYS_SUFFIX ".keys"

struct agent_config {
    char path[AGENT_PATH_SIZE], host[AGENT_NAME_SIZE];
    char key_file[AGENT_PATH_SIZE], runtime_dir[AGENT_PATH_SIZE], state_dir[AGENT_PATH_SIZE];
    char controller[AGENT_PATH_SIZE];   /* "ADDRESS:PORT"; empty: none */
    char identity_dir[AGENT_PATH_SIZE]; /* certificate and key for the controller */
    /* the file that has `peers`, written from the controller's list */
    char fleet_file[AGENT_PATH_SIZE];
    uint64_t fleet_version; /* version of that file */
    /* for tests of an audit: the socket, or the program `foliot` */
    char perf[AGENT_PATH_SIZE];
    char inspect[AGENT_PATH_SIZE];      /* foliot-inspect: its socket, or the program itself */
    char inspect_root[AGENT_PATH_SIZE]; /* what the program reads as "/"; empty: this machine */
    /* members of this group may ask, besides root; "*": every user */
    char socket_group[33];
    char metrics_listen[80]; /* "127.0.0.1:7636"; empty: no metrics over HTTP */
    uint16_t port;
    enum switch_mode mode; /* upper limit for jobs here; UNSET: no limit */
    bool software_stamps;  /* stamps: software, even if the NIC has hardware stamps */
    int64_t record_bytes_max;
    uint32_t edge_bound_ns, delay_floor_ns, diameter, flap_limit;
    uint16_t path_limit, ring_peers;
    uint8_t job_traffic_class; /* of jobs on RDMA ports; 0: best effort */
    bool class_of_jobs;        /* true: job_traffic_class: jobs */
    struct host_id host_id;
    uint32_t nic_count;
    struct {
        char name[IF_NAMESIZE]; /* the name in the peers list */
        uint32_t peer;          /* its index in peers */
        char port_name[140];    /* "leaf3 port Ethernet1/4", from LLDP; empty: not known */
    } nics[HOST_NIC_MAX];
    uint32_t peer_count;
    struct mesh_peer *peers; /* by ascending id; in the arena once peers_moved */
    bool peers_moved;
    uint32_t peer_capacity;  /* room in the arena, once peers_moved */
    struct agent_peer *more; /* in the same order */
    uint32_t host_count;
    char (*host_names)[AGENT_NAME_SIZE];
    uint8_t (*host_keys)[PAIR_PUBLIC_SIZE]; /* public keys, by host; all zero: the list has none */
    time_t host_keys_at;                    /* time when the file with the keys was written */
    uint32_t leaf_count;
    char (*leaf_names)[AGENT_NAME_SIZE];
    uint64_t members_digest; /* digest of a list that has a version (core/fleet/member.h) */
    /* members_file.c: offset for the next change; 0: the list was not loaded from such a file. Then the bytes and the number
     * of the changes in the file. */
    size_t members_end;
    uint32_t members_log, members_changes;
    /* why the file of members isn't used; empty: it is used, or there is none */
    char members_trouble[200];
    uint32_t anchor_count;
    char (*anchors)[AGENT_NAME_SIZE];
    char said[16]
             [AGENT_NAME_SIZE + IF_NAMESIZE]; /* names of NICs in recent sentences: "host1/nic0" */
    uint32_t said_turn;
    uint32_t router_count;
    struct mesh_router *routers;
};

/* Returns -EINVAL or another error, with error->text set. runtime_dir: replaces the configured one (FOLIOT_RUNTIME_DIR), or
 * NULL. fleet_file: a list in the format of members.h that is tried in place of the configured one, or NULL. */
MUST_CHECK int agent_config_load(const char *path, const char *runtime_dir, const char *fleet_file,
                                 struct agent_config **ret_config, struct config_error *error);
struct agent_config *agent_config_free(struct agent_config *config);
/* The fleet for the node. It borrows the configuration's own peers and routers. They lie in the arena, if there is one. */
struct mesh_fleet agent_config_fleet(const struct agent_config *config);

/* Finds the index of a NIC's id in peers; false: not in the list. */
bool agent_config_find(const struct agent_config *config, struct nic_id nic, uint32_t *ret_index);
/* The number of hosts in the list. */
uint32_t agent_config_hosts(const struct agent_config *config);
const char *agent_config_host_name(const struct agent_config *config,
                                   struct host_id host); /* NULL: no such host */

struct agent_keys {
    struct probe_key keys[AGENT_KEY_MAX]; /* the older first */
    time_t not_before[AGENT_KEY_MAX];
    uint32_t count;
};
/* Lines "key ID HEX32 NOT-BEFORE" (RFC 3339, UTC), at most two keys, comments after '#'. A file that users other than its
 * owner may read is refused. error->text never contains a key. */
MUST_CHECK int agent_keys_load(const char *path, struct agent_keys *ret_keys,
                               struct config_error *error);
