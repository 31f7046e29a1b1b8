/* config.c: the agent's file into structs. */
#include "service/agent/config.h"

#include "base/prng.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAF_NAME_MAX = 4096 };

struct loader {
    struct agent_config *config;
    struct config_error *error;
    const struct config_node **places; /* of each peer, for complaints after sorting */
    struct {
        char name[AGENT_NAME_SIZE];
    } * leaves;
    uint32_t leaf_count;
    uint32_t *hosts; /* open hash of host names: number + 1; 0: free */
    uint32_t host_mask;
    bool leaves_numbered; /* every leaf's name ends in its number: "leaf3", 3 */
};

struct agent_config *agent_config_free(struct agent_config *config)
{
    if (config != NULL) {
        free(config->peers);
        free(config->more);
        free(config->host_names);
        free(config->routers);
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

const char *agent_config_host_name(const struct agent_config *config, struct host_id host)
{
    return host.index < config->host_count ? config->host_names[host.index] : NULL;
}

static int require_text(const struct config_node *map, const char *key, char *text, size_t size,
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

/* Where a daemon runs from is nobody's business: a folder is named from the root. */
static int load_folder(const struct config_node *map, const char *key, char *path, size_t size,
                       struct config_error *error)
{
    const int r = config_copy(map, key, path, size, error);
    return r == 0 && config_get(map, key) != NULL && path[0] != '/'
               ? config_expected(config_get(map, key), error, "an absolute path")
               : r;
}

static int load_number(const struct config_node *map, const char *key, int64_t min, int64_t max,
                       int64_t *ret, struct config_error *error)
{
    return config_int(map, key, min, max, ret, error);
}

static int load_scalars(struct loader *l, const struct config_node *root, const char *runtime_dir)
{
    static const char *const keys[] = {
        "host",       "key_file",       "port",        "nics",       "peers",       "routers",
        "stamps",     "edge_limit",     "runtime_dir", "state_dir",  "delay_floor", "diameter",
        "flap_limit", "paths",          "ring_peers",  "record_mib", "controller",  "identity_dir",
        "fleet_file", "metrics_listen", "mode",        NULL};
    static const char *const modes[] = {"unset", "off", "observe", "failover", "full", NULL};
    static const char *const stamps[] = {"auto", "software", NULL};
    struct agent_config *c = l->config;
    int64_t port = AGENT_PORT_DEFAULT, diameter = 0, flaps = 0, paths = 0, ring = 0, mib = 64;
    int choice = 0, mode = SWITCH_UNSET;
    int r = config_allow(root, keys, l->error);
    r = r < 0 ? r : require_text(root, "host", c->host, sizeof(c->host), l->error);
    r = r < 0 ? r : require_text(root, "key_file", c->key_file, sizeof(c->key_file), l->error);
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
    r = r < 0 ? r : load_number(root, "port", 1, 65535, &port, l->error);
    r = r < 0 ? r : load_number(root, "diameter", 1, 32, &diameter, l->error);
    r = r < 0 ? r : load_number(root, "flap_limit", 1, 100000, &flaps, l->error);
    r = r < 0 ? r : load_number(root, "paths", 1, EDGE_PATH_MAX, &paths, l->error);
    r = r < 0 ? r : load_number(root, "ring_peers", 2, NIC_EDGE_MAX, &ring, l->error);
    if (r == 0 && ring % 2 != 0) {
        r = config_expected(config_get(root, "ring_peers"), l->error, "an even number");
    }
    r = r < 0 ? r : load_number(root, "record_mib", 0, 4096, &mib, l->error);
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

static int load_addresses(struct loader *l, const struct config_node *entry,
                          struct agent_peer *more)
{
    const char *text4 = NULL, *text6 = NULL;
    int r = config_string(entry, "address", &text4, l->error);
    r = r < 0 ? r : config_string(entry, "address6", &text6, l->error);
    if (r < 0) {
        return r;
    }
    if (text4 == NULL && text6 == NULL) {
        return config_expected(entry, l->error, "a NIC with 'address' or 'address6'");
    }
    if (text4 != NULL &&
        (inet_pton(AF_INET, text4, &more->address4) != 1 || more->address4.s_addr == 0 ||
         ntohl(more->address4.s_addr) >= 0xe0000000)) { /* multicast and beyond */
        return config_expected(config_get(entry, "address"), l->error,
                               "an IPv4 address of one NIC");
    }
    if (text6 != NULL &&
        (inet_pton(AF_INET6, text6, &more->address6) != 1 ||
         IN6_IS_ADDR_UNSPECIFIED(&more->address6) || IN6_IS_ADDR_V4MAPPED(&more->address6) ||
         IN6_IS_ADDR_MULTICAST(&more->address6) || IN6_IS_ADDR_LINKLOCAL(&more->address6))) {
        return config_expected(config_get(entry, "address6"), l->error,
                               "an IPv6 address of one NIC, and not a link-local one");
    }
    return 0;
}

/* "leaf3" and "3" are number 3; other names are numbered as they appear. */
static bool trailing_number(const char *name, unsigned *ret)
{
    const size_t length = strlen(name),
                 digits = length - strspn(name, "abcdefghijklmnopqrstuvwxyz-_");
    if (digits == 0 || digits > 5 || strspn(name + length - digits, "0123456789") != digits) {
        return false;
    }
    *ret = (unsigned)strtoul(name + length - digits, NULL, 10);
    return *ret < LEAF_UNKNOWN;
}

static int load_leaf(struct loader *l, const struct config_node *entry, uint16_t *ret_leaf)
{
    char name[AGENT_NAME_SIZE] = "";
    unsigned number = 0;
    const int r = config_copy(entry, "leaf", name, sizeof(name), l->error);
    *ret_leaf = LEAF_UNKNOWN;
    if (r < 0 || name[0] == 0) {
        return r;
    }
    uint32_t i = 0;
    while (i < l->leaf_count && strcmp(l->leaves[i].name, name) != 0) {
        i++;
    }
    if (i == l->leaf_count) {
        if (i == LEAF_NAME_MAX) {
            return config_expected(config_get(entry, "leaf"), l->error, "at most %d leaves",
                                   LEAF_NAME_MAX);
        }
        memcpy(l->leaves[l->leaf_count++].name, name, sizeof(name));
    }
    l->leaves_numbered = l->leaves_numbered && trailing_number(name, &number);
    *ret_leaf = (uint16_t)i;
    return 0;
}

static uint64_t hash_text(const char *text)
{
    uint64_t h = 0;
    for (; *text != 0; text++) {
        h = hash_u64(h, (uint8_t)*text);
    }
    return h;
}

/* Number of a host by its name: the order of first appearance. */
static struct host_id host_number(struct loader *l, const char *name)
{
    struct agent_config *c = l->config;
    uint32_t at = (uint32_t)hash_text(name) & l->host_mask;
    while (l->hosts[at] != 0 && strcmp(c->host_names[l->hosts[at] - 1], name) != 0) {
        at = (at + 1) & l->host_mask;
    }
    if (l->hosts[at] == 0) {
        snprintf(c->host_names[c->host_count], AGENT_NAME_SIZE, "%s", name);
        l->hosts[at] = ++c->host_count;
    }
    return (struct host_id){l->hosts[at] - 1};
}

static int load_peer(struct loader *l, const struct config_node *entry)
{
    static const char *const keys[] = {"id",   "host",    "nic",      "rail",
                                       "leaf", "address", "address6", NULL};
    struct agent_config *c = l->config;
    struct node_peer *peer = &c->peers[c->peer_count];
    struct agent_peer *more = &c->more[c->peer_count];
    const struct config_node *node = NULL;
    char host[AGENT_NAME_SIZE];
    int64_t id = 0, rail = 0;
    int r = config_allow(entry, keys, l->error);
    r = r < 0 ? r : config_require(entry, "id", &node, l->error);
    r = r < 0 ? r : load_number(entry, "id", 0, FLEET_NIC_MAX - 1, &id, l->error);
    r = r < 0 ? r : load_number(entry, "rail", 0, UINT16_MAX - 1, &rail, l->error);
    r = r < 0 ? r : require_text(entry, "host", host, sizeof(host), l->error);
    r = r < 0 ? r : require_text(entry, "nic", more->nic_name, sizeof(more->nic_name), l->error);
    r = r < 0 ? r : load_addresses(l, entry, more);
    r = r < 0 ? r : load_leaf(l, entry, &peer->leaf);
    if (r < 0) {
        return r;
    }
    peer->host = host_number(l, host);
    peer->nic = (struct nic_id){(uint32_t)id};
    peer->rail = (uint16_t)rail;
    l->places[c->peer_count++] = entry;
    return 0;
}

/* What must be unlike in all of the peers list, and where it stands there. */
struct claim {
    uint8_t value[16];
    uint32_t index;
};

static int compare_claims(const void *a, const void *b)
{
    const struct claim *x = a, *y = b;
    const int order = memcmp(x->value, y->value, sizeof(x->value));
    return order != 0 ? order : x->index < y->index ? -1 : x->index > y->index;
}

/* Sorted; the place of the first one that is there twice in *ret_twice, or count. */
static void sort_claims(struct claim *claims, uint32_t count, uint32_t *ret_twice)
{
    qsort(claims, count, sizeof(*claims), compare_claims);
    *ret_twice = count;
    for (uint32_t i = count; i-- > 1;) {
        if (memcmp(claims[i].value, claims[i - 1].value, sizeof(claims[i].value)) == 0) {
            *ret_twice = i;
        }
    }
}

/* By ascending id, each once. */
static int sort_peers(struct loader *l, struct claim *claims)
{
    struct agent_config *c = l->config;
    uint32_t twice = 0;
    for (uint32_t i = 0; i < c->peer_count; i++) {
        const uint32_t id = htonl(c->peers[i].nic.index);
        claims[i] = (struct claim){.index = i};
        memcpy(claims[i].value, &id, sizeof(id));
    }
    sort_claims(claims, c->peer_count, &twice);
    if (twice < c->peer_count) {
        const uint32_t at = claims[twice].index;
        return config_fail(config_get(l->places[at], "id"), l->error,
                           "expected each NIC's id once, found %u again (first in line %u)",
                           c->peers[at].nic.index, config_line(l->places[claims[twice - 1].index]));
    }
    struct node_peer *peers = calloc(c->peer_count, sizeof(*peers));
    struct agent_peer *more = calloc(c->peer_count, sizeof(*more));
    const struct config_node **places = calloc(c->peer_count, sizeof(const struct config_node *));
    for (uint32_t i = 0; peers != NULL && more != NULL && places != NULL && i < c->peer_count;
         i++) {
        peers[i] = c->peers[claims[i].index];
        more[i] = c->more[claims[i].index];
        places[i] = l->places[claims[i].index];
    }
    if (peers == NULL || more == NULL || places == NULL) {
        free(peers);
        free(more);
        free(places);
        return -ENOMEM;
    }
    free(c->peers);
    free(c->more);
    free(l->places);
    c->peers = peers;
    c->more = more;
    l->places = places;
    return 0;
}

/* A line copied and half changed: its NIC would be taken for another one's. */
static int check_addresses(struct loader *l, struct claim *claims, const char *key)
{
    struct agent_config *c = l->config;
    const bool is_4 = strcmp(key, "address") == 0;
    uint32_t count = 0, twice = 0;
    for (uint32_t i = 0; i < c->peer_count; i++) {
        const struct agent_peer *more = &c->more[i];
        struct claim *claim = &claims[count];
        if (config_get(l->places[i], key) != NULL) {
            *claim = (struct claim){.index = i};
            memcpy(claim->value, is_4 ? (const void *)&more->address4 : &more->address6,
                   is_4 ? sizeof(more->address4) : sizeof(more->address6));
            count++;
        }
    }
    sort_claims(claims, count, &twice);
    if (twice < count) {
        const struct config_node *place = l->places[claims[twice].index];
        return config_fail(config_get(place, key), l->error,
                           "expected each address once, found %s again (first in line %u)",
                           config_text(config_get(place, key)),
                           config_line(l->places[claims[twice - 1].index]));
    }
    return 0;
}

static int check_peers(struct loader *l)
{
    struct claim *claims = calloc(l->config->peer_count, sizeof(*claims));
    int r =
        claims == NULL ? -ENOMEM : check_addresses(l, claims, "address"); /* in the file's order */
    r = r < 0 ? r : check_addresses(l, claims, "address6");
    r = r < 0 ? r : sort_peers(l, claims);
    free(claims);
    return r;
}

static void number_leaves(struct loader *l)
{
    struct agent_config *c = l->config;
    for (uint32_t i = 0; l->leaves_numbered && i < c->peer_count; i++) {
        unsigned number = 0;
        if (c->peers[i].leaf != LEAF_UNKNOWN &&
            trailing_number(l->leaves[c->peers[i].leaf].name, &number)) {
            c->peers[i].leaf = (uint16_t)number;
        }
    }
}

/* Every host's name, in the order of their numbers, those without NICs too: a host keeps its number
 * when one before it has left. */
static int load_hosts(struct loader *l, const struct config_node *hosts)
{
    int r = 0;
    for (const struct config_node *n = config_first(hosts); n != NULL && r == 0;
         n = config_next(n)) {
        const char *name = NULL;
        r = config_node_string(n, &name, l->error);
        if (r == 0 && (name[0] == 0 || strlen(name) >= AGENT_NAME_SIZE)) {
            r = config_expected(n, l->error, "a name of 1 to %d characters", AGENT_NAME_SIZE - 1);
        }
        if (r == 0) {
            host_number(l, name);
        }
    }
    return r;
}

static int load_peers(struct loader *l, const struct config_node *root)
{
    struct agent_config *c = l->config;
    const struct config_node *list = NULL;
    int r = config_require(root, "peers", &list, l->error);
    if (r < 0) {
        return r;
    }
    const size_t count = config_count(list);
    if (config_kind(list) != CONFIG_LIST || count == 0 || count > FLEET_NIC_MAX) {
        return config_expected(list, l->error, "a list of 1 to %d NICs", FLEET_NIC_MAX);
    }
    c->peers = calloc(count, sizeof(*c->peers));
    c->more = calloc(count, sizeof(*c->more));
    const struct config_node *hosts = config_get(root, "hosts");
    const size_t host_max = count + (hosts != NULL ? config_count(hosts) : 0);
    c->host_names = calloc(host_max, sizeof(*c->host_names));
    l->places = calloc(count, sizeof(const struct config_node *));
    l->host_mask = 15;
    while (l->host_mask < 2 * host_max) {
        l->host_mask = 2 * l->host_mask + 1;
    }
    l->hosts = calloc(l->host_mask + 1, sizeof(*l->hosts));
    l->leaves = calloc(LEAF_NAME_MAX, sizeof(*l->leaves));
    if (c->peers == NULL || c->more == NULL || c->host_names == NULL || l->places == NULL ||
        l->hosts == NULL || l->leaves == NULL) {
        return -ENOMEM;
    }
    l->leaves_numbered = true;
    r = hosts != NULL ? load_hosts(l, hosts) : 0;
    for (const struct config_node *n = config_first(list); n != NULL && r == 0;
         n = config_next(n)) {
        r = load_peer(l, n);
    }
    r = r < 0 ? r : check_peers(l);
    if (r == 0) {
        number_leaves(l);
    }
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

/* The fabric's routers: lines "ADDRESS NAME", NAME leafN or spineN. */
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
        struct node_router router = {0};
        unsigned place = 0;
        if (line[strspn(line, " \t\r\n")] == '#' || line[strspn(line, " \t\r\n")] == 0) {
            continue;
        }
        const bool read = sscanf(line, "%63s %63s", address, name) == 2 &&
                          trailing_number(name, &place) &&
                          (strncmp(name, "leaf", 4) == 0 || strncmp(name, "spine", 5) == 0);
        memset(router.address + 10, 0xff, 2);
        if (!read || (inet_pton(AF_INET, address, router.address + 12) != 1 &&
                      inet_pton(AF_INET6, address, router.address) != 1)) {
            line[strcspn(line, "\n")] = 0;
            snprintf(l->error->text, sizeof(l->error->text),
                     "%s:%u:1: expected 'ADDRESS leafN' or 'ADDRESS spineN', found '%.60s'", path,
                     number, line);
            r = -EINVAL;
            break;
        }
        router.place = name[0] == 'l' ? PLACE_LEAF : PLACE_SPINE;
        router.number = place;
        struct node_router *larger = realloc(c->routers, (c->router_count + 1) * sizeof(*larger));
        r = larger == NULL ? -ENOMEM : 0;
        if (larger != NULL) {
            c->routers = larger;
            c->routers[c->router_count++] = router;
        }
    }
    fclose(file);
    return r;
}

/* The root that has `peers`: the file's own, or that of the file that it names. */
static int find_fleet(struct loader *l, const struct config_node *root, struct config **ret_tree,
                      const struct config_node **ret_fleet)
{
    static const char *const keys[] = {"version", "hosts", "peers", NULL};
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
    r = r < 0 ? r : load_number(*ret_fleet, "version", 0, INT64_MAX, &version, l->error);
    c->fleet_version = (uint64_t)version;
    return r;
}

int agent_config_load(const char *path, const char *runtime_dir, struct agent_config **ret_config,
                      struct config_error *error)
{
    struct config *tree = NULL, *fleet_tree = NULL;
    const struct config_node *fleet = NULL;
    struct loader l = {.error = error};
    int r = config_load(path, &tree, error);
    if (r < 0) {
        return r;
    }
    snprintf(error->text, sizeof(error->text), "%s: out of memory", path);
    l.config = calloc(1, sizeof(*l.config));
    r = l.config == NULL ? -ENOMEM : load_scalars(&l, config_root(tree), runtime_dir);
    r = r < 0 ? r : find_fleet(&l, config_root(tree), &fleet_tree, &fleet);
    r = r < 0 ? r : load_peers(&l, fleet);
    r = r < 0 ? r : load_nics(&l, config_root(tree));
    r = r < 0 ? r : load_routers(&l, config_root(tree));
    free(l.places);
    free(l.leaves);
    free(l.hosts);
    config_free(tree);
    config_free(fleet_tree);
    if (r < 0) {
        agent_config_free(l.config);
        return r;
    }
    snprintf(l.config->path, sizeof(l.config->path), "%s", path);
    *ret_config = l.config;
    return 0;
}
