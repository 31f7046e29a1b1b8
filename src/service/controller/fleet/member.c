/* member.c: what every agent asks of the list of members, asked before a host is in it: core/fleet/member.h for each NIC, and
 * what must be unlike in the whole list. */
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

/* Agents refuse a list with an address that stands twice in it. */
static int check_address(const struct controller *c, const struct fleet_join *join, size_t i,
                         char words[MEMBER_WORDS_SIZE])
{
    static const uint8_t none[16];
    const Foliot__V1__Nic *n = join->nics[i];
    for (uint32_t k = 0; k < c->nic_count; k++) {
        const struct fleet_nic *other = c->nics[k];
        if (other != NULL && strcmp(other->host->name, join->name) != 0 &&
            same_address(n, other->address4, other->address6)) {
            snprintf(words, MEMBER_WORDS_SIZE,
                     "NIC %s: its address belongs to %s of host %s already", n->name, other->name,
                     other->host->name);
            return -EINVAL;
        }
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

struct leaf_names {
    struct hash_index index;
    uint32_t count;
    const char *names[FLEET_LEAF_MAX + HOST_NIC_MAX];
};

static void add_name(struct leaf_names *l, const char *name)
{
    const uint64_t hash = hash_text(name);
    for (uint32_t at = hash_index_first(&l->index, hash), i;
         (i = hash_index_entry(&l->index, at)) != HASH_INDEX_NONE;
         at = hash_index_next(&l->index, at)) {
        if (strcmp(l->names[i], name) == 0) {
            return;
        }
    }
    if (name[0] != 0 && l->count < ARRAY_COUNT(l->names)) {
        hash_index_put(&l->index, hash, l->count);
        l->names[l->count++] = name;
    }
}

/* The names of all leaves together are as many as agents take. */
static int check_leaves(const struct controller *c, const struct fleet_join *join,
                        char words[MEMBER_WORDS_SIZE])
{
    struct leaf_names *l = calloc(1, sizeof(*l));
    int r = l == NULL ? -ENOMEM : hash_index_room(&l->index, ARRAY_COUNT(l->names));
    for (uint32_t i = 0; r == 0 && i < c->nic_count && l->count < FLEET_LEAF_MAX; i++) {
        if (c->nics[i] != NULL && c->nics[i]->host->left_out[0] == 0) {
            add_name(l, c->nics[i]->leaf);
        }
    }
    for (size_t i = 0; r == 0 && i < join->nic_count; i++) {
        add_name(l, join->nics[i]->leaf);
    }
    if (r == 0 && l->count > FLEET_LEAF_MAX) {
        snprintf(words, MEMBER_WORDS_SIZE, "expected at most %d leaves in the fleet",
                 FLEET_LEAF_MAX);
        r = -EINVAL;
    }
    if (l != NULL) {
        hash_index_done(&l->index);
    }
    free(l);
    return r;
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
                       "host %s is left out of the list of members, for agents refuse it: %s. "
                       "Remove it (foliot host remove %s) and let it join anew",
                       h->name, words, h->name);
    }
}
