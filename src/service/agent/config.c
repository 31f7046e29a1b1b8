/* config.c: reads the agent's file into structs. config_peers.c reads the fleet that the file lists. */
#include "base/ip.h"
#include "service/agent/config_internal.h"
#include "service/agent/members.h"

#include "base/arena.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct loader {
    struct agent_config *config;
    const char *fleet_file; /* the list that is tried; NULL: none */
    struct config_error *error;
};

struct agent_config *agent_config_free(struct agent_config *config)
{
    if (config != NULL) {
        if (config->peers_moved) {
            arena_free(config->peers);
        }
        members_done(config);
        arena_free(config->routers);
        free(config->anchors);
        free(config);
    }
    return NULL;
}

bool agent_config_find(const struct agent_config *config, struct nic_id nic, uint32_t *ret_index)
{
    uint32_t low = 0, high = config->peer_count;
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (config->peers[middle].nic.index < nic.index) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == config->peer_count || config->peers[low].nic.index != nic.index) {
        return false;
    }
    *ret_index = low;
    return true;
}

uint32_t agent_config_hosts(const struct agent_config *config)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < config->host_count; i++) {
        count += config->host_names[i][0] != 0;
    }
    return count;
}

const char *agent_config_host_name(const struct agent_config *config, struct host_id host)
{
    return host.index < config->host_count && config->host_names[host.index][0] != 0
               ? config->host_names[host.index]
               : NULL;
}

int config_require_copy(const struct config_node *map, const char *key, char *text, size_t size,
                        struct config_error *error)
{
    const struct config_node *node = NULL;
    const int r = config_require(map, key, &node, error);
    return r < 0 ? r : config_copy(map, key, text, size, error);
}

static int load_span(const struct config_node *map, const char *key, struct span max, uint32_t *ret,
                     struct config_error *error)
{
    struct span s = {*ret};
    const int r = config_span(map, key, span_ns(0), max, &s, error);
    *ret = (uint32_t)s.ns;
    return r;
}

/* The path must be absolute, because a daemon's working directory is not fixed. */
static int load_folder(const struct config_node *map, const char *key, char *path, size_t size,
                       struct config_error *error)
{
    const int r = config_copy(map, key, path, size, error);
    return r == 0 && config_get(map, key) != NULL && path[0] != '/'
               ? config_expected(config_get(map, key), error, "an absolute path")
               : r;
}

static int load_class(const struct config_node *root, struct agent_config *c,
                      struct config_error *error)
{
    const struct config_node *node = config_get(root, "job_traffic_class");
    const char *text = node != NULL ? config_text(node) : NULL;
    int64_t class = 0;

    c->class_of_jobs = text != NULL && strcmp(text, "jobs") == 0;
    const int r =
        c->class_of_jobs ? 0 : config_int(root, "job_traffic_class", 0, 255, &class, error);
    c->job_traffic_class = (uint8_t) class;
    return r;
}

static int load_scalars(struct loader *l, const struct config_node *root, const char *runtime_dir)
{
    static const char *const keys[] = {
        "host",        "key_file",     "port",        "nics",
        "peers",       "routers",      "stamps",      "edge_limit",
        "runtime_dir", "state_dir",    "delay_floor", "diameter",
        "flap_limit",  "paths",        "ring_peers",  "record_mib",
        "controller",  "identity_dir", "fleet_file",  "metrics_listen",
        "anchors",     "host_keys",    "mode",        "socket_group",
        "inspect",     "inspect_root", "perf",        "job_traffic_class",
        NULL};
    static const char *const modes[] = {"unset", "off", "observe", "failover", "full", NULL};
    static const char *const stamps[] = {"auto", "software", NULL};
    struct agent_config *c = l->config;
    int64_t port = AGENT_PORT_DEFAULT, diameter = 0, flaps = 0, paths = 0, ring = 0, mib = 64;
    int choice = 0, mode = SWITCH_UNSET;
    int r = config_allow(root, keys, l->error);
    r = r < 0 ? r : config_require_copy(root, "host", c->host, sizeof(c->host), l->error);
    r = r < 0 ? r
              : config_require_copy(root, "key_file", c->key_file, sizeof(c->key_file), l->error);
    snprintf(c->runtime_dir, sizeof(c->runtime_dir), "%s", AGENT_RUNTIME_DEFAULT);
    r = r < 0 ? r
              : load_folder(root, "runtime_dir", c->runtime_dir, sizeof(c->runtime_dir), l->error);
    if (runtime_dir != NULL) {
        snprintf(c->runtime_dir, sizeof(c->runtime_dir), "%s", runtime_dir);
    }
    const char *systemd = getenv("STATE_DIRECTORY");
    snprintf(c->state_dir, sizeof(c->state_dir), "%s", systemd != NULL ? systemd : c->runtime_dir);
    r = r < 0 ? r : load_folder(root, "state_dir", c->state_dir, sizeof(c->state_dir), l->error);
    snprintf(c->identity_dir, sizeof(c->identity_dir), "%.180s/identity", c->state_dir);
    r = r < 0
            ? r
            : load_folder(root, "identity_dir", c->identity_dir, sizeof(c->identity_dir), l->error);
    r = r < 0 ? r : config_copy(root, "controller", c->controller, sizeof(c->controller), l->error);
    r = r < 0 ? r : config_copy(root, "fleet_file", c->fleet_file, sizeof(c->fleet_file), l->error);
    r = r < 0 ? r
              : config_copy(root, "metrics_listen", c->metrics_listen, sizeof(c->metrics_listen),
                            l->error);
    snprintf(c->inspect, sizeof(c->inspect), "%s", AGENT_INSPECT_DEFAULT);
    r = r < 0 ? r : load_folder(root, "inspect", c->inspect, sizeof(c->inspect), l->error);
    r = r < 0
            ? r
            : load_folder(root, "inspect_root", c->inspect_root, sizeof(c->inspect_root), l->error);
    snprintf(c->perf, sizeof(c->perf), "%s", AGENT_PERF_DEFAULT);
    r = r < 0 ? r : load_folder(root, "perf", c->perf, sizeof(c->perf), l->error);
    snprintf(c->socket_group, sizeof(c->socket_group), "foliot");
    r = r < 0
            ? r
            : config_copy(root, "socket_group", c->socket_group, sizeof(c->socket_group), l->error);
    r = r < 0 ? r : config_int(root, "port", 1, 65535, &port, l->error);
    r = r < 0 ? r : config_int(root, "diameter", 1, 32, &diameter, l->error);
    r = r < 0 ? r : config_int(root, "flap_limit", 1, 100000, &flaps, l->error);
    r = r < 0 ? r : config_int(root, "paths", 1, EDGE_PATH_MAX, &paths, l->error);
    r = r < 0 ? r : config_int(root, "ring_peers", PEERS_LEAST, PEERS_MOST, &ring, l->error);
    if (r == 0 && ring % 2 != 0) {
        r = config_expected(config_get(root, "ring_peers"), l->error, "an even number");
    }
    r = r < 0 ? r : load_class(root, c, l->error);
    r = r < 0 ? r : config_int(root, "record_mib", 0, 4096, &mib, l->error);
    r = r < 0 ? r : load_span(root, "edge_limit", span_ms(1), &c->edge_bound_ns, l->error);
    r = r < 0 ? r : load_span(root, "delay_floor", span_ms(1), &c->delay_floor_ns, l->error);
    r = r < 0 ? r : config_choice(root, "stamps", stamps, &choice, l->error);
    r = r < 0 ? r : config_choice(root, "mode", modes, &mode, l->error);
    c->mode = (enum switch_mode)mode;
    c->port = (uint16_t)port;
    c->diameter = (uint32_t)diameter;
    c->flap_limit = (uint32_t)flaps;
    c->path_limit = (uint16_t)paths;
    c->ring_peers = (uint16_t)ring;
    c->record_bytes_max = mib << 20;
    c->software_stamps = choice == 1;
    return r;
}

static bool own_nic(const struct agent_config *c, const char *name, uint32_t *ret_index)
{
    for (uint32_t i = 0; i < c->peer_count; i++) {
        if (host_id_equal(c->peers[i].host, c->host_id) && strcmp(c->more[i].nic_name, name) == 0) {
            *ret_index = i;
            return true;
        }
    }
    return false;
}

static int add_nic(struct loader *l, const struct config_node *place, uint32_t peer)
{
    struct agent_config *c = l->config;
    if (c->nic_count == HOST_NIC_MAX) {
        return config_expected(place, l->error, "at most %d NICs of one host", HOST_NIC_MAX);
    }
    memcpy(c->nics[c->nic_count].name, c->more[peer].nic_name, IF_NAMESIZE);
    c->nics[c->nic_count++].peer = peer;
    return 0;
}

static int load_nics(struct loader *l, const struct config_node *root)
{
    struct agent_config *c = l->config;
    const struct config_node *nics = config_get(root, "nics");
    int r = 0;
    c->host_id = HOST_NONE;
    for (uint32_t i = 0; i < c->host_count; i++) {
        if (strcmp(c->host_names[i], c->host) == 0) {
            c->host_id = (struct host_id){i};
        }
    }
    if (c->host_id.index == HOST_NONE.index) {
        return config_expected(config_get(root, "host"), l->error, "a host that 'peers' lists");
    }
    if (nics == NULL ||
        (config_kind(nics) == CONFIG_SCALAR && strcmp(config_text(nics), "auto") == 0)) {
        for (uint32_t i = 0; i < c->peer_count && r == 0; i++) {
            r = host_id_equal(c->peers[i].host, c->host_id) ? add_nic(l, root, i) : 0;
        }
        return r;
    }
    if (config_kind(nics) != CONFIG_LIST || config_count(nics) == 0) {
        return config_expected(nics, l->error, "'auto' or a list of interface names");
    }
    for (const struct config_node *n = config_first(nics); n != NULL && r == 0;
         n = config_next(n)) {
        uint32_t peer = 0;
        if (config_kind(n) != CONFIG_SCALAR || !own_nic(c, config_text(n), &peer)) {
            return config_expected(n, l->error, "an interface that 'peers' lists for host %s",
                                   c->host);
        }
        for (uint32_t i = 0; i < c->nic_count; i++) {
            if (c->nics[i].peer == peer) {
                return config_expected(n, l->error, "each interface once");
            }
        }
        r = add_nic(l, n, peer);
    }
    return r;
}

/* Reads the fabric's routers: lines "ADDRESS NAME", where NAME is leafN or spineN. */
static int load_routers(struct loader *l, const struct config_node *root)
{
    char path[AGENT_PATH_SIZE] = "", line[256], address[64], name[AGENT_NAME_SIZE];
    int r = config_copy(root, "routers", path, sizeof(path), l->error);
    if (r < 0 || path[0] == 0) {
        return r;
    }
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return config_fail(config_get(root, "routers"), l->error,
                           "expected a readable file, found: %s: %s", path, strerror(errno));
    }
    struct agent_config *c = l->config;
    for (unsigned number = 1; r == 0 && fgets(line, sizeof(line), file) != NULL; number++) {
        struct mesh_router router = {0};
        unsigned place = 0;
        if (line[strspn(line, " \t\r\n")] == '#' || line[strspn(line, " \t\r\n")] == 0) {
            continue;
        }
        const bool read = sscanf(line, "%63s %63s", address, name) == 2 &&
                          config_place_number(name, &place) &&
                          (strncmp(name, "leaf", 4) == 0 || strncmp(name, "spine", 5) == 0);
        if (!read || !ip_parse(address, router.address)) {
            line[strcspn(line, "\n")] = 0;
            snprintf(l->error->text, sizeof(l->error->text),
                     "%s:%u:1: expected 'ADDRESS leafN' or 'ADDRESS spineN', found '%.60s'", path,
                     number, line);
            r = -EINVAL;
            break;
        }
        router.place = name[0] == 'l' ? PLACE_LEAF : PLACE_SPINE;
        router.number = place;
        struct mesh_router *larger = realloc(c->routers, (c->router_count + 1) * sizeof(*larger));
        r = larger == NULL ? -ENOMEM : 0;
        if (larger != NULL) {
            c->routers = larger;
            c->routers[c->router_count++] = router;
        }
    }
    fclose(file);
    return r;
}

static bool mark_anchors(struct agent_config *c, const char *name)
{
    bool found = false;
    for (uint32_t i = 0; i < c->peer_count; i++) {
        if (strcmp(c->host_names[c->peers[i].host.index], name) == 0) {
            c->peers[i].anchor = 1;
            found = true;
        }
    }
    return found;
}

/* Reads the hosts that define the fleet's UTC. */
static int load_anchors(struct loader *l, const struct config_node *root)
{
    struct agent_config *c = l->config;
    const struct config_node *list = config_get(root, "anchors");

    if (list != NULL && config_kind(list) != CONFIG_LIST) {
        return config_expected(list, l->error, "a list of hosts");
    }
    for (uint32_t i = 0; i < c->peer_count; i++) {
        /* an array from a file of members has the anchors of an older configuration */
        c->peers[i].anchor = 0;
    }
    c->anchors = calloc(list != NULL ? config_count(list) + 1 : 1, sizeof(*c->anchors));
    if (c->anchors == NULL) {
        return -ENOMEM;
    }
    for (const struct config_node *n = list != NULL ? config_first(list) : NULL; n != NULL;
         n = config_next(n)) {
        const char *name = NULL;
        const int r = config_node_string(n, &name, l->error);
        if (r < 0) {
            return r;
        }
        snprintf(c->anchors[c->anchor_count++], AGENT_NAME_SIZE, "%.63s", name);
        if (!mark_anchors(c, name) && c->fleet_file[0] == 0) {
            return config_expected(n, l->error, "a host that 'peers' lists");
        } /* else ignore it: a host may be named before it joins */
    }
    return 0;
}

/* Finds the root of the tree that has `peers`: of this file, or of the file that fleet_file names. */
static int find_fleet(struct loader *l, const struct config_node *root, struct config **ret_tree,
                      const struct config_node **ret_fleet)
{
    static const char *const keys[] = {"version", "hosts", "peers", "host_keys", NULL};
    struct agent_config *c = l->config;
    int64_t version = 0;
    *ret_fleet = root;
    if (c->fleet_file[0] == 0) {
        return 0;
    }
    if (config_get(root, "peers") != NULL) {
        return config_expected(config_get(root, "peers"), l->error,
                               "no peers here: fleet_file names the file that has them");
    }
    int r = config_load(c->fleet_file, ret_tree, l->error);
    if (r < 0) {
        return r;
    }
    *ret_fleet = config_root(*ret_tree);
    r = config_allow(*ret_fleet, keys, l->error);
    r = r < 0 ? r : config_int(*ret_fleet, "version", 0, INT64_MAX, &version, l->error);
    c->fleet_version = (uint64_t)version;
    return r;
}

/* The version at the beginning of a list in YAML; 0: there is no such list, or it has no version. */
static uint64_t listed_version(const char *path)
{
    char line[256];
    unsigned long long version = 0;
    FILE *file = fopen(path, "re");
    for (int i = 0; file != NULL && i < 8 && fgets(line, sizeof(line), file) != NULL; i++) {
        if (sscanf(line, "version: %llu", &version) == 1) {
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return version;
}

/* Loads the list in the format of members.h: the list that is tried, or the one beside fleet_file. The latter is not used if
 * an older agent has written a later version into fleet_file itself. Returns 1 if it is loaded. */
static int load_members(struct loader *l)
{
    struct agent_config *c = l->config;
    char beside[AGENT_PATH_SIZE + 24], words[MEMBERS_WORDS];
    snprintf(beside, sizeof(beside), "%s" MEMBERS_SUFFIX, c->fleet_file);
    if (c->fleet_file[0] == 0) {
        return 0;
    }
    const char *path = l->fleet_file != NULL ? l->fleet_file : beside;
    const int r = members_load(c, path, words);
    if (r == 0 && (l->fleet_file != NULL || c->fleet_version >= listed_version(c->fleet_file))) {
        return 1;
    }
    if (l->fleet_file != NULL) {
        snprintf(l->error->text, sizeof(l->error->text), "%s: %s", path, words);
        return r;
    }
    const uint64_t version = c->fleet_version;
    members_done(c);
    c->peer_count = c->host_count = c->leaf_count = 0;
    c->fleet_version = c->members_digest = 0;
    c->members_end = 0;
    c->members_log = c->members_changes = 0;
    if (r < 0 && r != -ENOENT) {
        snprintf(c->members_trouble, sizeof(c->members_trouble), "%.100s: %.90s", path, words);
    } else if (r == 0) {
        snprintf(c->members_trouble, sizeof(c->members_trouble),
                 "%.100s: version %llu, older than %.60s", path, (unsigned long long)version,
                 c->fleet_file);
    }
    return members_room(c);
}

/* Moves the peers into the arena with the node that borrows them, so that a copy of the node has them too. The new array has
 * room for NICs that join. */
static int move_peers(struct agent_config *c)
{
    const uint32_t capacity = fleet_room(c->peer_count);
    struct mesh_peer *place = arena_calloc(capacity, sizeof(*place));
    if (place == NULL) {
        return -ENOMEM;
    }
    memcpy(place, c->peers, c->peer_count * sizeof(*place));
    munmap(c->peers, FLEET_NIC_MAX * sizeof(*c->peers));
    c->peers = place;
    c->peer_capacity = capacity;
    c->peers_moved = true;
    return 0;
}

static int move_routers(struct agent_config *c)
{
    if (c->router_count == 0) {
        return 0;
    }
    struct mesh_router *place = arena_calloc(c->router_count, sizeof(*place));
    if (place == NULL) {
        return -ENOMEM;
    }
    memcpy(place, c->routers, c->router_count * sizeof(*place));
    free(c->routers);
    c->routers = place;
    return 0;
}

struct mesh_fleet agent_config_fleet(const struct agent_config *config)
{
    return (struct mesh_fleet){.seed = 0x666f6c696f742e31ULL,
                               .peers = config->peers,
                               .peer_count = config->peer_count,
                               .room = config->peers,
                               .peer_capacity = config->peer_capacity,
                               .router_count = config->router_count,
                               .routers = config->routers};
}

int agent_config_load(const char *path, const char *runtime_dir, const char *fleet_file,
                      struct agent_config **ret_config, struct config_error *error)
{
    struct config *tree = NULL, *fleet_tree = NULL;
    const struct config_node *fleet = NULL;
    struct loader l = {.fleet_file = fleet_file, .error = error};
    int r = config_load(path, &tree, error);
    if (r < 0) {
        return r;
    }
    snprintf(error->text, sizeof(error->text), "%s: out of memory", path);
    l.config = calloc(1, sizeof(*l.config));
    r = l.config == NULL ? -ENOMEM : members_room(l.config);
    r = r < 0 ? r : load_scalars(&l, config_root(tree), runtime_dir);
    r = r < 0 ? r : load_members(&l);
    if (r == 0) {
        r = find_fleet(&l, config_root(tree), &fleet_tree, &fleet);
        r = r < 0 ? r : config_load_peers(l.config, fleet, error);
    }
    r = r < 0 ? r : load_nics(&l, config_root(tree));
    r = r < 0 ? r : load_anchors(&l, config_root(tree));
    r = r < 0 ? r : load_routers(&l, config_root(tree));
    r = r < 0 ? r : move_peers(l.config);
    r = r < 0 ? r : move_routers(l.config);
    config_free(tree);
    config_free(fleet_tree);
    if (r < 0) {
        agent_config_free(l.config);
        return r;
    }
    if (l.config->fleet_file[0] != 0) {
        l.config->members_digest = members_digest(l.config);
    }
    snprintf(l.config->path, sizeof(l.config->path), "%s", path);
    *ret_config = l.config;
    return 0;
}
