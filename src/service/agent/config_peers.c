/* config_peers.c: reads the fleet of a file: hosts, NICs, their addresses and leaves. Each id and each address may stand there
 * once. */
#include "service/agent/config_internal.h"

#include "base/hash_index.h"
#include "base/prng.h"
#include "core/fleet/member.h"

#include <arpa/inet.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct loader {
    struct agent_config *config;
    struct config_error *error;
    const struct config_node **places; /* of each peer, for error messages after sorting */
    struct hash_index hosts;           /* by name */
    bool leaves_numbered;              /* every leaf's name ends in its number: "leaf3", 3 */
};

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
    if (text4 != NULL && (inet_pton(AF_INET, text4, &more->address4) != 1 ||
                          !member_address4_good((const uint8_t *)&more->address4))) {
        return config_expected(config_get(entry, "address"), l->error,
                               "an IPv4 address of one NIC");
    }
    if (text6 != NULL && (inet_pton(AF_INET6, text6, &more->address6) != 1 ||
                          !member_address6_good(more->address6.s6_addr))) {
        return config_expected(config_get(entry, "address6"), l->error,
                               "an IPv6 address of one NIC, and not a link-local one");
    }
    return 0;
}

bool config_place_number(const char *name, unsigned *ret)
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
    struct agent_config *c = l->config;
    uint32_t i = 0;
    while (i < c->leaf_count && strcmp(c->leaf_names[i], name) != 0) {
        i++;
    }
    if (i == c->leaf_count) {
        if (i == FLEET_LEAF_MAX) {
            return config_expected(config_get(entry, "leaf"), l->error, "at most %d leaves",
                                   FLEET_LEAF_MAX);
        }
        memcpy(c->leaf_names[c->leaf_count++], name, sizeof(name));
    }
    l->leaves_numbered = l->leaves_numbered && config_place_number(name, &number);
    *ret_leaf = (uint16_t)i;
    return 0;
}

/* A name may stand twice in `hosts`, because a removed host keeps its entry. The later entry is the present host. */
static struct host_id find_host(const struct loader *l, const char *name)
{
    struct host_id found = HOST_NONE;
    for (uint32_t at = hash_index_first(&l->hosts, hash_text(name)), i;
         (i = hash_index_entry(&l->hosts, at)) != HASH_INDEX_NONE;
         at = hash_index_next(&l->hosts, at)) {
        if (strcmp(l->config->host_names[i], name) == 0 &&
            (found.index == HOST_NONE.index || i > found.index)) {
            found.index = i;
        }
    }
    return found;
}

static struct host_id add_host(struct loader *l, const char *name)
{
    struct agent_config *c = l->config;
    snprintf(c->host_names[c->host_count], AGENT_NAME_SIZE, "%s", name);
    hash_index_put(&l->hosts, hash_text(name), c->host_count);
    return (struct host_id){c->host_count++};
}

/* The number of a host: its place in `hosts`, or else the order in which names first appear. */
static struct host_id host_number(struct loader *l, const char *name)
{
    const struct host_id found = find_host(l, name);
    return found.index != HOST_NONE.index ? found : add_host(l, name);
}

static int load_peer(struct loader *l, const struct config_node *entry)
{
    static const char *const keys[] = {"id",   "host",    "nic",      "rail",
                                       "leaf", "address", "address6", NULL};
    struct agent_config *c = l->config;
    struct mesh_peer *peer = &c->peers[c->peer_count];
    struct agent_peer *more = &c->more[c->peer_count];
    const struct config_node *node = NULL;
    char host[AGENT_NAME_SIZE];
    int64_t id = 0, rail = 0;
    int r = config_allow(entry, keys, l->error);
    r = r < 0 ? r : config_require(entry, "id", &node, l->error);
    r = r < 0 ? r : config_int(entry, "id", 0, FLEET_NIC_MAX - 1, &id, l->error);
    r = r < 0 ? r : config_int(entry, "rail", 0, UINT16_MAX - 1, &rail, l->error);
    r = r < 0 ? r : config_require_copy(entry, "host", host, sizeof(host), l->error);
    r = r < 0 ? r
              : config_require_copy(entry, "nic", more->nic_name, sizeof(more->nic_name), l->error);
    r = r < 0 ? r : load_addresses(l, entry, more);
    r = r < 0 ? r : load_leaf(l, entry, &peer->leaf);
    more->leaf = peer->leaf;
    if (r < 0) {
        return r;
    }
    peer->host = host_number(l, host);
    peer->nic = (struct nic_id){(uint32_t)id};
    peer->rail = (uint16_t)rail;
    l->places[c->peer_count++] = entry;
    return 0;
}

/* A value that may stand once in the peers list, and the index of its entry. */
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

/* Sorts the claims. *ret_twice: index of the first claim that equals the one before it, or count. */
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

/* Sorts peers by ascending id. Each id may stand once. */
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
    struct mesh_peer *peers = calloc(c->peer_count, sizeof(*peers));
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
    memcpy(c->peers, peers, c->peer_count * sizeof(*peers));
    memcpy(c->more, more, c->peer_count * sizeof(*more));
    free(peers);
    free(more);
    free(l->places);
    l->places = places;
    return 0;
}

/* Finds lines that were copied and only half changed: two NICs would have one address. */
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
            config_place_number(c->leaf_names[c->peers[i].leaf], &number)) {
            c->peers[i].leaf = (uint16_t)number;
        }
    }
}

/* Reads the names of all hosts, in the order of their numbers. Hosts without NICs are in the list too, so that each host keeps
 * its number when an earlier host leaves. */
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
            (void)add_host(l, name);
        }
    }
    return r;
}

/* {host: 64 hexadecimal digits} */
static int take_keys(struct loader *l, const struct config_node *map)
{
    struct agent_config *c = l->config;
    struct stat st;

    if (config_kind(map) != CONFIG_MAP) {
        return config_expected(map, l->error, "a map of hosts to their public keys");
    }
    c->host_keys_at = stat(config_file(map), &st) == 0 ? st.st_mtime : 0;
    for (const struct config_node *n = config_first(map); n != NULL; n = config_next(n)) {
        const char *hex = NULL;
        size_t size = 0;
        const int r = config_node_string(n, &hex, l->error);
        if (r < 0) {
            return r;
        }
        const struct host_id host = find_host(l, config_key(n));
        if (host.index == HOST_NONE.index) {
            continue;
        }
        if (strlen(hex) != 2 * PAIR_PUBLIC_SIZE ||
            sodium_hex2bin(c->host_keys[host.index], PAIR_PUBLIC_SIZE, hex, strlen(hex), NULL,
                           &size, NULL) != 0 ||
            size != PAIR_PUBLIC_SIZE) {
            return config_expected(n, l->error,
                                   "64 hexadecimal digits (foliot keygen --host prints them)");
        }
    }
    return 0;
}

/* Keys of another version are ignored: an older agent has changed the list and not the keys. */
static int load_keys_beside(struct loader *l, const char *fleet_file)
{
    static const char *const keys[] = {"version", "host_keys", NULL};
    char path[AGENT_PATH_SIZE + 24];
    struct config *tree = NULL;
    int64_t version = 0;

    snprintf(path, sizeof(path), "%s" FLEET_KEYS_SUFFIX, fleet_file);
    if (access(path, F_OK) < 0) {
        return 0;
    }
    int r = config_load(path, &tree, l->error);
    if (r < 0) {
        return r;
    }
    const struct config_node *root = config_root(tree), *map = config_get(root, "host_keys");
    r = config_allow(root, keys, l->error);
    r = r < 0 ? r : config_int(root, "version", 0, INT64_MAX, &version, l->error);
    if (r == 0 && map != NULL && (uint64_t)version == l->config->fleet_version) {
        r = take_keys(l, map);
    }
    config_free(tree);
    return r;
}

static int load_keys(struct loader *l, const struct config_node *root)
{
    struct agent_config *c = l->config;
    const struct config_node *map = config_get(root, "host_keys");

    if (map != NULL) {
        return take_keys(l, map);
    }
    return c->fleet_file[0] != 0 ? load_keys_beside(l, config_file(root)) : 0;
}

static int load_list(struct loader *l, const struct config_node *root)
{
    const struct config_node *list = NULL;
    int r = config_require(root, "peers", &list, l->error);
    if (r < 0) {
        return r;
    }
    const size_t count = config_count(list);
    if (config_kind(list) != CONFIG_LIST || count == 0 || count > FLEET_NIC_MAX) {
        return config_expected(list, l->error, "a list of 1 to %d NICs", FLEET_NIC_MAX);
    }
    const struct config_node *hosts = config_get(root, "hosts");
    const size_t host_max = count + (hosts != NULL ? config_count(hosts) : 0);
    if (host_max > FLEET_NIC_MAX) {
        return config_expected(hosts, l->error, "at most %d hosts and NICs", FLEET_NIC_MAX);
    }
    l->places = calloc(count, sizeof(const struct config_node *));
    if (l->places == NULL || hash_index_room(&l->hosts, host_max) < 0) {
        return -ENOMEM;
    }
    l->leaves_numbered = true;
    r = hosts != NULL ? load_hosts(l, hosts) : 0;
    for (const struct config_node *n = config_first(list); n != NULL && r == 0;
         n = config_next(n)) {
        r = load_peer(l, n);
    }
    r = r < 0 ? r : check_peers(l);
    r = r < 0 ? r : load_keys(l, root);
    if (r == 0) {
        number_leaves(l);
    }
    return r;
}

int config_load_peers(struct agent_config *config, const struct config_node *root,
                      struct config_error *error)
{
    struct loader l = {.config = config, .error = error};
    const int r = load_list(&l, root);
    free(l.places);
    hash_index_done(&l.hosts);
    return r;
}
