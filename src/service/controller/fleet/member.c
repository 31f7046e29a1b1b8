/* member.c: makes every agent's check of the list of members before a host is added: core/fleet/member.h for each NIC, and
 * values that may stand once in the whole list. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/hash_index.h"
#include "base/prng.h"
#include "core/fleet/member.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"

static bool same_address(const Foliot__V1__Nic *n, const uint8_t *address4, const uint8_t *address6)
{
    return (n->address4.len == 4 && memcmp(address4, n->address4.data, 4) == 0) ||
           (n->address6.len == 16 && memcmp(address6, n->address6.data, 16) == 0);
}

/* ---- an index, so that a check costs the same in a large fleet ---- */

struct leaf {
    char name[MEMBER_LEAF_SIZE];
    uint32_t nics; /* 0: only removed NICs had it */
};

struct member_index {
    struct hash_index
        addresses; /* indices of c->nics; removed NICs stay until there is no more room */
    uint32_t address_count, address_room;
    struct hash_index leaf_names; /* indices of leaves */
    struct leaf *leaves;
    uint32_t leaf_count, leaf_room, leaves_used;
};

static uint64_t address_hash(const uint8_t *address, size_t size)
{
    return hash_u64(hash_bytes(size, address, size), size);
}

static struct leaf *find_leaf(const struct member_index *x, const char *name)
{
    for (uint32_t at = hash_index_first(&x->leaf_names, hash_text(name)), i;
         (i = hash_index_entry(&x->leaf_names, at)) != HASH_INDEX_NONE;
         at = hash_index_next(&x->leaf_names, at)) {
        if (strcmp(x->leaves[i].name, name) == 0) {
            return &x->leaves[i];
        }
    }
    return NULL;
}

static void put_address(struct member_index *x, const uint8_t *address, size_t size, uint32_t nic)
{
    static const uint8_t none[16];
    if (memcmp(address, none, size) != 0) {
        hash_index_put(&x->addresses, address_hash(address, size), nic);
        x->address_count++;
    }
}

static int index_addresses(struct controller *c)
{
    struct member_index *x = c->member_index;
    uint32_t live = 0;
    for (uint32_t i = 0; i < c->nic_count; i++) {
        live += 2 * (c->nics[i] != NULL);
    }
    const uint32_t room = 2 * live + 64;
    const int r = hash_index_room(&x->addresses, room);
    if (r < 0) {
        return r;
    }
    x->address_room = room;
    x->address_count = 0;
    for (uint32_t i = 0; i < c->nic_count; i++) {
        if (c->nics[i] != NULL) {
            put_address(x, c->nics[i]->address4, 4, i);
            put_address(x, c->nics[i]->address6, 16, i);
        }
    }
    return 0;
}

/* Makes room for one more leaf. Leaves of removed NICs are dropped. */
static int room_for_leaf(struct member_index *x)
{
    if (x->leaf_count < x->leaf_room) {
        return 0;
    }
    const uint32_t room = 2 * x->leaves_used + 64;
    struct leaf *leaves = calloc(room, sizeof(*leaves));
    const int r = leaves == NULL ? -ENOMEM : hash_index_room(&x->leaf_names, room);
    if (r < 0) {
        free(leaves);
        return r;
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < x->leaf_count; i++) {
        if (x->leaves[i].nics > 0) {
            hash_index_put(&x->leaf_names, hash_text(x->leaves[i].name), count);
            leaves[count++] = x->leaves[i];
        }
    }
    free(x->leaves);
    x->leaves = leaves;
    x->leaf_count = count;
    x->leaf_room = room;
    return 0;
}

static int count_leaf(struct member_index *x, const struct fleet_nic *n)
{
    if (n->leaf[0] == 0 || n->host->left_out[0] != 0) {
        return 0;
    }
    struct leaf *leaf = find_leaf(x, n->leaf);
    if (leaf == NULL) {
        const int r = room_for_leaf(x);
        if (r < 0) {
            return r;
        }
        hash_index_put(&x->leaf_names, hash_text(n->leaf), x->leaf_count);
        leaf = &x->leaves[x->leaf_count++];
        snprintf(leaf->name, sizeof(leaf->name), "%s", n->leaf);
    }
    x->leaves_used += leaf->nics++ == 0;
    return 0;
}

int member_index_load(struct controller *c)
{
    c->member_index = calloc(1, sizeof(*c->member_index));
    int r = c->member_index == NULL ? -ENOMEM : index_addresses(c);
    for (uint32_t i = 0; i < c->nic_count && r == 0; i++) {
        r = c->nics[i] != NULL ? count_leaf(c->member_index, c->nics[i]) : 0;
    }
    return r;
}

void member_index_free(struct controller *c)
{
    if (c->member_index != NULL) {
        hash_index_done(&c->member_index->addresses);
        hash_index_done(&c->member_index->leaf_names);
        free(c->member_index->leaves);
        free(c->member_index);
        c->member_index = NULL;
    }
}

int member_index_add(struct controller *c, const struct fleet_nic *n)
{
    struct member_index *x = c->member_index;
    if (x->address_count + 2 > x->address_room) {
        const int r = index_addresses(c); /* includes the new NIC */
        return r < 0 ? r : count_leaf(x, n);
    }
    put_address(x, n->address4, 4, n->id);
    put_address(x, n->address6, 16, n->id);
    return count_leaf(x, n);
}

void member_index_remove(struct controller *c, const struct fleet_nic *n)
{
    struct member_index *x = c->member_index;
    struct leaf *leaf = n->host->left_out[0] == 0 ? find_leaf(x, n->leaf) : NULL;
    if (leaf != NULL && leaf->nics > 0) {
        x->leaves_used -= --leaf->nics == 0;
    }
}

/* ---- a host that wants to join ---- */

static const struct fleet_nic *owner_of(const struct controller *c, const char *host,
                                        const ProtobufCBinaryData *address)
{
    const struct hash_index *x = &c->member_index->addresses;
    if (address->len == 0) {
        return NULL;
    }
    for (uint32_t at = hash_index_first(x, address_hash(address->data, address->len)), i;
         (i = hash_index_entry(x, at)) != HASH_INDEX_NONE; at = hash_index_next(x, at)) {
        const struct fleet_nic *n = c->nics[i];
        if (n != NULL && strcmp(n->host->name, host) != 0 &&
            memcmp(address->len == 4 ? n->address4 : n->address6, address->data, address->len) ==
                0) {
            return n;
        }
    }
    return NULL;
}

/* Agents refuse a list in which an address stands twice. */
static int check_address(const struct controller *c, const struct fleet_join *join, size_t i,
                         char words[MEMBER_WORDS_SIZE])
{
    static const uint8_t none[16];
    const Foliot__V1__Nic *n = join->nics[i];
    const struct fleet_nic *other = owner_of(c, join->name, &n->address4);
    other = other != NULL ? other : owner_of(c, join->name, &n->address6);
    if (other != NULL) {
        snprintf(words, MEMBER_WORDS_SIZE, "NIC %s: its address belongs to %s of host %s already",
                 n->name, other->name, other->host->name);
        return -EINVAL;
    }
    for (size_t k = 0; k < i; k++) {
        const Foliot__V1__Nic *m = join->nics[k];
        if (same_address(n, m->address4.len == 4 ? m->address4.data : none,
                         m->address6.len == 16 ? m->address6.data : none) ||
            strcmp(n->name, m->name) == 0) {
            snprintf(words, MEMBER_WORDS_SIZE,
                     "NICs %s and %s: expected each name and each address once", m->name, n->name);
            return -EINVAL;
        }
    }
    return 0;
}

/* Checks that the number of leaves is within the limit of agents. */
static int check_leaves(const struct controller *c, const struct fleet_join *join,
                        char words[MEMBER_WORDS_SIZE])
{
    uint32_t fresh = 0;
    for (size_t i = 0; i < join->nic_count; i++) {
        const char *name = join->nics[i]->leaf;
        const struct leaf *leaf = find_leaf(c->member_index, name);
        bool known = name[0] == 0 || (leaf != NULL && leaf->nics > 0);
        for (size_t k = 0; k < i && !known; k++) {
            known = strcmp(join->nics[k]->leaf, name) == 0;
        }
        fresh += !known;
    }
    if (fresh > 0 && c->member_index->leaves_used + fresh > FLEET_LEAF_MAX) {
        snprintf(words, MEMBER_WORDS_SIZE, "expected at most %d leaves in the fleet",
                 FLEET_LEAF_MAX);
        return -EINVAL;
    }
    return 0;
}

int member_check(const struct controller *c, const struct fleet_join *join,
                 char words[MEMBER_WORDS_SIZE])
{
    if (join->nic_count == 0 || join->nic_count > HOST_NIC_MAX) {
        snprintf(words, MEMBER_WORDS_SIZE, "expected 1 to %d NICs, found %zu", HOST_NIC_MAX,
                 join->nic_count);
        return -EINVAL;
    }
    if (c->nic_count + join->nic_count > FLEET_NIC_MAX) {
        snprintf(words, MEMBER_WORDS_SIZE, "expected at most %d NICs, removed ones too",
                 FLEET_NIC_MAX);
        return -EINVAL;
    }
    for (size_t i = 0; i < join->nic_count; i++) {
        const Foliot__V1__Nic *n = join->nics[i];
        const bool has4 = n->address4.len == 4, has6 = n->address6.len == 16;
        const struct member_nic nic = {.interface = n->name,
                                       .leaf = n->leaf,
                                       .rail = n->rail,
                                       .address4 = has4 ? n->address4.data : NULL,
                                       .address6 = has6 ? n->address6.data : NULL};
        if ((n->address4.len != 0 && !has4) || (n->address6.len != 0 && !has6)) {
            snprintf(words, MEMBER_WORDS_SIZE, "NIC %zu: expected addresses of 4 and 16 bytes", i);
            return -EINVAL;
        }
        if (!member_nic_good(&nic, words)) {
            return -EINVAL;
        }
        const int r = check_address(c, join, i, words);
        if (r < 0) {
            return r;
        }
    }
    return check_leaves(c, join, words);
}

void member_look(struct fleet_host *h, const struct fleet_nic *n)
{
    static const uint8_t none[16];
    const struct member_nic nic = {
        .interface = n->name,
        .leaf = n->leaf,
        .rail = n->rail,
        .address4 = memcmp(n->address4, none, 4) != 0 ? n->address4 : NULL,
        .address6 = memcmp(n->address6, none, 16) != 0 ? n->address6 : NULL};
    char words[MEMBER_WORDS_SIZE];
    if (!member_nic_good(&nic, words) && h->left_out[0] == 0) {
        memcpy(h->left_out, words, sizeof(words));
        controller_say(LOG_ERR,
                       "host %s is left out of the list of members, because agents refuse it: %s. "
                       "Remove it (foliot host remove %s) and let it join again",
                       h->name, words, h->name);
    }
}
