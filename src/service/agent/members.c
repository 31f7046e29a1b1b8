/* members.c: the list in memory. A change is first checked as a whole, then applied as a whole. */
#include "service/agent/members.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/fleet/member.h"
#include "platform/message/message.h"
#include "platform/tls/tls.h"
#include "service/agent/config_internal.h"

_Static_assert(PAIR_PUBLIC_SIZE == MEMBER_KEY_SIZE, "one kind of key");
_Static_assert(MEMBER_LEAF_SIZE == AGENT_NAME_SIZE, "a leaf's name fits");

/* ---- room ---- */

static void *room(size_t count, size_t size)
{
    void *memory = mmap(NULL, count * size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

int members_room(struct agent_config *c)
{
    c->peers = room(FLEET_NIC_MAX, sizeof(*c->peers));
    c->more = room(FLEET_NIC_MAX, sizeof(*c->more));
    c->host_names = room(FLEET_NIC_MAX, sizeof(*c->host_names));
    c->host_keys = room(FLEET_NIC_MAX, sizeof(*c->host_keys));
    c->leaf_names = room(FLEET_LEAF_MAX, sizeof(*c->leaf_names));
    return c->peers == NULL || c->more == NULL || c->host_names == NULL || c->host_keys == NULL ||
                   c->leaf_names == NULL
               ? -ENOMEM
               : 0;
}

static void give_back(void *memory, size_t count, size_t size)
{
    if (memory != NULL) {
        munmap(memory, count * size);
    }
}

void members_done(struct agent_config *c)
{
    give_back(c->peers_moved ? NULL : c->peers, FLEET_NIC_MAX, sizeof(*c->peers));
    give_back(c->more, FLEET_NIC_MAX, sizeof(*c->more));
    give_back(c->host_names, FLEET_NIC_MAX, sizeof(*c->host_names));
    give_back(c->host_keys, FLEET_NIC_MAX, sizeof(*c->host_keys));
    give_back(c->leaf_names, FLEET_LEAF_MAX, sizeof(*c->leaf_names));
    c->peers = NULL;
    c->more = NULL;
    c->host_names = c->leaf_names = NULL;
    c->host_keys = NULL;
}

/* ---- the digest ---- */

static bool some(const void *bytes, size_t size)
{
    static const uint8_t none[PAIR_PUBLIC_SIZE];
    return memcmp(bytes, none, size) != 0;
}

static struct member_nic nic_of(const struct agent_config *c, const struct mesh_peer *peer,
                                const struct agent_peer *more)
{
    return (struct member_nic){
        .interface = more->nic_name,
        .leaf = more->leaf != LEAF_UNKNOWN ? c->leaf_names[more->leaf] : "",
        .rail = peer->rail,
        .address4 = some(&more->address4, 4) ? (const uint8_t *)&more->address4 : NULL,
        .address6 = some(&more->address6, 16) ? more->address6.s6_addr : NULL};
}

static uint64_t host_digest(const struct agent_config *c, uint32_t number)
{
    return member_host_digest(number, c->host_names[number],
                              some(c->host_keys[number], PAIR_PUBLIC_SIZE) ? c->host_keys[number]
                                                                           : NULL);
}

static uint64_t nic_digest(const struct agent_config *c, uint32_t i)
{
    const struct member_nic nic = nic_of(c, &c->peers[i], &c->more[i]);
    return member_nic_digest(c->peers[i].host.index, c->peers[i].nic.index, &nic);
}

uint64_t members_digest(const struct agent_config *c)
{
    uint64_t digest = 0;
    uint32_t before = HOST_NONE.index;
    for (uint32_t i = 0; i < c->peer_count; i++) { /* NICs of one host are neighbours in the list */
        const uint32_t host = c->peers[i].host.index;
        digest += nic_digest(c, i) + (host != before ? host_digest(c, host) : 0);
        before = host;
    }
    return digest;
}

/* ---- a change is checked ---- */

struct planner {
    const struct agent_config *c;
    const Foliot__V1__Members *m;
    struct members_plan *plan;
    char *words;
};

static int refuse(const struct planner *p, const char *what, uint32_t host)
{
    snprintf(p->words, MEMBERS_WORDS, "host number %u: %.160s", host, what);
    return -EINVAL;
}

static struct member_nic nic_of_message(const Foliot__V1__Nic *n)
{
    return (struct member_nic){.interface = n->name,
                               .leaf = n->leaf,
                               .rail = n->rail,
                               .address4 = n->address4.len == 4 ? n->address4.data : NULL,
                               .address6 = n->address6.len == 16 ? n->address6.data : NULL};
}

static int check_host(const struct planner *p, const Foliot__V1__FleetHost *h)
{
    char words[MEMBER_WORDS_SIZE];
    if (h->number >= FLEET_NIC_MAX || !tls_name_good(h->name)) {
        return refuse(p, "expected a number below 1048576 and a name of 1 to 63 of [a-z0-9.-]",
                      h->number);
    }
    if (h->n_nics == 0 || h->n_nics > HOST_NIC_MAX ||
        (h->pair_key.len != 0 && h->pair_key.len != PAIR_PUBLIC_SIZE)) {
        return refuse(p, "expected 1 to 16 NICs, and a key of 32 bytes or none", h->number);
    }
    for (size_t i = 0; i < h->n_nics; i++) {
        const Foliot__V1__Nic *n = h->nics[i];
        const struct member_nic nic = nic_of_message(n);
        if (n->id >= FLEET_NIC_MAX || (i > 0 && n->id <= h->nics[i - 1]->id)) {
            return refuse(p, "expected each NIC's id once, ascending, and below 1048576",
                          h->number);
        }
        if ((n->address4.len != 0 && nic.address4 == NULL) ||
            (n->address6.len != 0 && nic.address6 == NULL)) {
            return refuse(p, "expected addresses of 4 and 16 bytes", h->number);
        }
        if (!member_nic_good(&nic, words)) {
            return refuse(p, words, h->number);
        }
    }
    return 0;
}

static int check_message(const struct planner *p)
{
    const Foliot__V1__Members *m = p->m;
    if (m->n_removed > FLEET_NIC_MAX || m->n_hosts > FLEET_NIC_MAX) {
        return refuse(p, "expected fewer hosts", 0);
    }
    for (size_t i = 0; i < m->n_hosts; i++) {
        if (i > 0 && m->hosts[i]->number <= m->hosts[i - 1]->number) {
            return refuse(p, "expected hosts by ascending number, each once", m->hosts[i]->number);
        }
        const int r = check_host(p, m->hosts[i]);
        if (r < 0) {
            return r;
        }
    }
    for (size_t i = 0; i < m->n_removed; i++) {
        if (i > 0 && m->removed[i] <= m->removed[i - 1]) {
            return refuse(p, "expected removed hosts by ascending number, each once",
                          m->removed[i]);
        }
    }
    return 0;
}

/* ---- which NICs join and leave ---- */

static const Foliot__V1__FleetHost *told(const Foliot__V1__Members *m, uint32_t number)
{
    size_t low = 0, high = m->n_hosts;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->hosts[middle]->number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < m->n_hosts && m->hosts[low]->number == number ? m->hosts[low] : NULL;
}

static bool removed(const Foliot__V1__Members *m, uint32_t number)
{
    size_t low = 0, high = m->n_removed;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (m->removed[middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < m->n_removed && m->removed[low] == number;
}

static const Foliot__V1__Nic *told_nic(const Foliot__V1__FleetHost *h, uint32_t id)
{
    for (size_t i = 0; h != NULL && i < h->n_nics; i++) {
        if (h->nics[i]->id == id) {
            return h->nics[i];
        }
    }
    return NULL;
}

/* Finds the NICs that leave. A message lists all NICs of a host. Unchanged NICs stay; all other NICs of that host leave. */
static int plan_gone(const struct planner *p)
{
    const struct agent_config *c = p->c;
    struct members_plan *plan = p->plan;
    uint32_t before = HOST_NONE.index;
    bool gone = false;
    const Foliot__V1__FleetHost *h = NULL;
    for (uint32_t i = 0; i < c->peer_count; i++) {
        const uint32_t host = c->peers[i].host.index;
        if (host != before) {
            before = host;
            h = told(p->m, host);
            gone = removed(p->m, host);
            plan->digest -= h != NULL || gone ? host_digest(c, host) : 0;
        }
        const Foliot__V1__Nic *n = h != NULL ? told_nic(h, c->peers[i].nic.index) : NULL;
        if (h == NULL && !gone) {
            continue;
        }
        const struct member_nic nic =
            n != NULL ? nic_of_message(n) : (struct member_nic){.interface = "", .leaf = ""};
        const uint64_t digest = nic_digest(c, i);
        if (n != NULL && member_nic_digest(host, n->id, &nic) == digest) {
            continue;
        }
        if (n != NULL) {
            return refuse(p, "a NIC of the list with other values: expected another id", host);
        }
        plan->digest -= digest;
        plan->gone[plan->gone_count++] = c->peers[i].nic.index;
    }
    return 0;
}

static uint16_t leaf_of(const struct agent_config *c, const char *name)
{
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        if (strcmp(c->leaf_names[i], name) == 0) {
            return (uint16_t)i;
        }
    }
    return LEAF_UNKNOWN;
}

static void add_nic(const struct planner *p, const Foliot__V1__FleetHost *h,
                    const Foliot__V1__Nic *n)
{
    const struct member_nic nic = nic_of_message(n);
    struct members_nic *to = &p->plan->add[p->plan->add_count++];
    *to = (struct members_nic){
        .peer = {.nic = {n->id}, .host = {h->number}, .rail = (uint16_t)n->rail},
        .more = {.leaf = LEAF_UNKNOWN}}; /* the leaf is set when all leaves have been checked */
    snprintf(to->more.nic_name, sizeof(to->more.nic_name), "%s", n->name);
    if (nic.address4 != NULL) {
        memcpy(&to->more.address4, nic.address4, 4);
    }
    if (nic.address6 != NULL) {
        memcpy(&to->more.address6, nic.address6, 16);
    }
    for (uint32_t i = 0; i < p->c->anchor_count; i++) {
        to->peer.anchor |= strcmp(p->c->anchors[i], h->name) == 0;
    }
    p->plan->digest += member_nic_digest(h->number, n->id, &nic);
}

static int compare_nics(const void *a, const void *b)
{
    const struct members_nic *x = a, *y = b;
    return x->peer.nic.index < y->peer.nic.index ? -1 : x->peer.nic.index > y->peer.nic.index;
}

static int plan_add(const struct planner *p)
{
    const struct agent_config *c = p->c;
    struct members_plan *plan = p->plan;
    for (size_t i = 0; i < p->m->n_hosts; i++) {
        const Foliot__V1__FleetHost *h = p->m->hosts[i];
        if (removed(p->m, h->number)) {
            return refuse(p, "expected a host to be listed or removed, found both", h->number);
        }
        plan->digest += member_host_digest(
            h->number, h->name,
            h->pair_key.len > 0 && some(h->pair_key.data, 32) ? h->pair_key.data : NULL);
        for (size_t k = 0; k < h->n_nics; k++) {
            uint32_t at = 0;
            if (!agent_config_find(c, (struct nic_id){h->nics[k]->id}, &at)) {
                add_nic(p, h, h->nics[k]);
            } else if (c->peers[at].host.index != h->number) {
                return refuse(p, "expected each NIC's id once, found one of another host",
                              h->number);
            }
        }
    }
    qsort(plan->add, plan->add_count, sizeof(*plan->add), compare_nics);
    for (uint32_t i = 1; i < plan->add_count; i++) {
        if (plan->add[i].peer.nic.index == plan->add[i - 1].peer.nic.index) {
            return refuse(p, "expected each NIC's id once", plan->add[i].peer.host.index);
        }
    }
    const uint32_t count = c->peer_count - plan->gone_count + plan->add_count;
    if (count > FLEET_NIC_MAX || c->peer_count + plan->add_count > FLEET_NIC_MAX) {
        return refuse(p, "expected at most 1048576 NICs", 0);
    }
    return 0;
}

/* ---- leaves ---- */

struct numbering {
    uint32_t count;
    bool in_names;
    /* by place in leaf_names; LEAF_UNKNOWN: no NIC has this leaf */
    uint16_t number[FLEET_LEAF_MAX];
};

static void number_leaf(const struct agent_config *c, struct numbering *n, uint16_t leaf)
{
    unsigned unused;
    if (leaf != LEAF_UNKNOWN && n->number[leaf] == LEAF_UNKNOWN) {
        n->number[leaf] = (uint16_t)n->count++;
        n->in_names = n->in_names && config_place_number(c->leaf_names[leaf], &unused);
    }
}

static void number_begin(struct numbering *n)
{
    n->count = 0;
    n->in_names = true;
    memset(n->number, 0xff, sizeof(n->number));
}

static void number_end(const struct agent_config *c, struct numbering *n)
{
    for (uint32_t i = 0; i < c->leaf_count && n->in_names; i++) {
        unsigned number = 0;
        if (n->number[i] != LEAF_UNKNOWN && config_place_number(c->leaf_names[i], &number)) {
            n->number[i] = (uint16_t)number;
        }
    }
}

void members_number_leaves(struct agent_config *c)
{
    struct numbering n;
    number_begin(&n);
    for (uint32_t i = 0; i < c->peer_count; i++) {
        number_leaf(c, &n, c->more[i].leaf);
    }
    number_end(c, &n);
    for (uint32_t i = 0; i < c->peer_count; i++) {
        c->peers[i].leaf =
            c->more[i].leaf != LEAF_UNKNOWN ? n.number[c->more[i].leaf] : LEAF_UNKNOWN;
    }
}

/* Finds a place for a name: a place that no NIC uses any more, or a new one. */
static int free_leaf(const struct agent_config *c, const struct numbering *used)
{
    for (uint32_t i = 0; i < c->leaf_count; i++) {
        if (used->number[i] == LEAF_UNKNOWN) {
            return (int)i;
        }
    }
    return c->leaf_count < FLEET_LEAF_MAX ? (int)c->leaf_count : -1;
}

/* Finds the leaves of the NICs that join. New names are added to the list's table; that changes nothing for NICs in the list.
 * Then it checks whether a NIC of the list would get another leaf number. */
static int plan_leaves(const struct planner *p, struct agent_config *c)
{
    struct members_plan *plan = p->plan;
    struct numbering n, used; /* used: includes NICs that leave, because the plan may be dropped */
    bool fresh = false;
    number_begin(&n);
    number_begin(&used);
    for (uint32_t i = 0, gone = 0; i < c->peer_count; i++) {
        number_leaf(c, &used, c->more[i].leaf);
        if (gone < plan->gone_count && plan->gone[gone] == c->peers[i].nic.index) {
            gone++;
        } else {
            number_leaf(c, &n, c->more[i].leaf);
        }
    }
    for (uint32_t i = 0; i < plan->add_count; i++) {
        struct members_nic *add = &plan->add[i];
        const char *name = told_nic(told(p->m, add->peer.host.index), add->peer.nic.index)->leaf;
        uint16_t leaf = name[0] != 0 ? leaf_of(c, name) : LEAF_UNKNOWN;
        if (name[0] != 0 && leaf == LEAF_UNKNOWN) {
            const int at = free_leaf(c, &used);
            if (at < 0) { /* for changes: NICs that leave hold their leaves until then */
                const int r = refuse(p, "expected at most 4096 leaves", add->peer.host.index);
                return p->m->from != 0 ? -EBADMSG : r;
            }
            snprintf(c->leaf_names[at], sizeof(c->leaf_names[at]), "%s", name);
            c->leaf_count += (uint32_t)at == c->leaf_count;
            leaf = (uint16_t)at;
        }
        fresh = fresh || (leaf != LEAF_UNKNOWN && n.number[leaf] == LEAF_UNKNOWN);
        number_leaf(c, &n, leaf);
        number_leaf(c, &used, leaf);
        add->more.leaf = leaf;
    }
    number_end(c, &n);
    for (uint32_t i = 0; i < plan->add_count; i++) {
        struct members_nic *add = &plan->add[i];
        add->peer.leaf = add->more.leaf != LEAF_UNKNOWN ? n.number[add->more.leaf] : LEAF_UNKNOWN;
        plan->apart = plan->apart && (c->peer_count == 0 ||
                                      add->peer.nic.index > c->peers[c->peer_count - 1].nic.index);
    }
    for (uint32_t i = 0; i < c->peer_count && plan->apart && (fresh || plan->gone_count > 0); i++) {
        const uint16_t leaf = c->more[i].leaf;
        plan->apart = leaf == LEAF_UNKNOWN || n.number[leaf] == LEAF_UNKNOWN ||
                      n.number[leaf] == c->peers[i].leaf;
    }
    return 0;
}

/* ---- the plan ---- */

static int check_addresses(const struct planner *p)
{
    uint32_t host = 0;
    const char *words = NULL;
    const int r = members_check_addresses(p->c, p->plan, &words, &host);
    return r == -EINVAL ? refuse(p, words, host) : r;
}

static int check_own(const struct planner *p, struct host_id own)
{
    const struct agent_config *c = p->c;
    for (uint32_t i = 0; i < p->plan->gone_count; i++) {
        uint32_t at = 0;
        if (agent_config_find(c, (struct nic_id){p->plan->gone[i]}, &at) &&
            host_id_equal(c->peers[at].host, own)) {
            return refuse(p, "this host's own NICs are no longer in the list: join again",
                          own.index);
        }
    }
    for (uint32_t i = 0; i < p->plan->add_count; i++) {
        if (host_id_equal(p->plan->add[i].peer.host, own)) {
            return refuse(p, "this host has more NICs in the list: the agent must start again",
                          own.index);
        }
    }
    return 0;
}

static int fill_plan(const struct planner *p, struct host_id own)
{
    const struct agent_config *c = p->c;
    struct members_plan *plan = p->plan;
    size_t nics = 1;
    for (size_t i = 0; i < p->m->n_hosts; i++) {
        nics += p->m->hosts[i]->n_nics;
    }
    /* the kernel gives memory only for used pages */
    plan->gone = calloc(c->peer_count + 1, sizeof(*plan->gone));
    plan->add = calloc(nics, sizeof(*plan->add));
    if (plan->gone == NULL || plan->add == NULL) {
        return -ENOMEM;
    }
    plan->digest = c->members_digest;
    int r = plan_gone(p);
    r = r < 0 ? r : plan_add(p);
    r = r < 0 ? r : check_own(p, own);
    r = r < 0 ? r : check_addresses(p);
    if (r == 0 && p->m->from != 0 && plan->digest != p->m->digest) {
        snprintf(p->words, MEMBERS_WORDS,
                 "the list differs from the controller's: the agent asks for the whole list");
        r = -EBADMSG;
    }
    plan->apart = plan->gone_count + plan->add_count <= MEMBERS_APART_MAX;
    /* names may be added to the table now: no NIC uses them before the change is applied */
    return r < 0 ? r : plan_leaves(p, (struct agent_config *)(uintptr_t)c);
}

int members_plan(const struct agent_config *c, const Foliot__V1__Members *m, struct host_id own,
                 struct members_plan *ret_plan, char words[static MEMBERS_WORDS])
{
    struct members_plan plan = {0};
    const struct planner p = {c, m, &plan, words};
    words[0] = 0;
    if (m->from != 0 && (m->from != c->fleet_version || m->version <= m->from)) {
        snprintf(words, MEMBERS_WORDS, "changes of version %llu to %llu: expected some of %llu",
                 (unsigned long long)m->from, (unsigned long long)m->version,
                 (unsigned long long)c->fleet_version);
        return -EBADMSG;
    }
    int r = check_message(&p);
    r = r < 0 ? r : fill_plan(&p, own);
    if (r < 0) {
        members_plan_done(&plan);
        return r;
    }
    *ret_plan = plan;
    return 0;
}

void members_plan_done(struct members_plan *plan)
{
    free(plan->gone);
    free(plan->add);
    *plan = (struct members_plan){0};
}

/* ---- and applied ---- */

static uint32_t drop_gone(struct agent_config *c, const struct members_plan *plan, bool peers)
{
    uint32_t kept = 0;
    for (uint32_t i = 0, gone = 0; i < c->peer_count; i++) {
        if (gone < plan->gone_count && plan->gone[gone] == c->peers[i].nic.index) {
            gone++;
            continue;
        }
        if (kept != i) {
            c->more[kept] = c->more[i];
            if (peers) {
                c->peers[kept] = c->peers[i];
            }
        }
        kept++;
    }
    return kept;
}

void members_apply(struct agent_config *c, const Foliot__V1__Members *m,
                   const struct members_plan *plan, bool peers)
{
    uint32_t kept = plan->gone_count > 0 ? drop_gone(c, plan, peers) : c->peer_count;
    const uint32_t count = kept + plan->add_count;
    for (uint32_t to = count, add = plan->add_count; add > 0; to--) {
        /* from the end of the arrays */
        const struct members_nic *next = &plan->add[add - 1];
        const bool old = kept > 0 && peers && c->peers[kept - 1].nic.index > next->peer.nic.index;
        c->more[to - 1] = old ? c->more[kept - 1] : next->more;
        if (peers) {
            c->peers[to - 1] = old ? c->peers[kept - 1] : next->peer;
        }
        kept -= old;
        add -= !old;
    }
    c->peer_count = count;
    for (size_t i = 0; i < m->n_removed; i++) {
        if (m->removed[i] < c->host_count) {
            memset(c->host_names[m->removed[i]], 0, sizeof(*c->host_names));
            memset(c->host_keys[m->removed[i]], 0, sizeof(*c->host_keys));
        }
    }
    for (size_t i = 0; i < m->n_hosts; i++) {
        const Foliot__V1__FleetHost *h = m->hosts[i];
        c->host_count = h->number >= c->host_count ? h->number + 1 : c->host_count;
        snprintf(c->host_names[h->number], sizeof(*c->host_names), "%s", h->name);
        memset(c->host_keys[h->number], 0, sizeof(*c->host_keys));
        if (h->pair_key.len == PAIR_PUBLIC_SIZE) {
            memcpy(c->host_keys[h->number], h->pair_key.data, PAIR_PUBLIC_SIZE);
        }
    }
    c->members_digest = plan->digest;
    c->fleet_version = m->version;
    if (peers) {
        members_number_leaves(c);
    }
}

Foliot__V1__Members *members_of_fleet(struct message_arena *arena, Foliot__V1__Fleet *fleet)
{
    Foliot__V1__Members *m = message_arena_take(arena, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    foliot__v1__members__init(m);
    m->version = fleet->version;
    m->cursor = 1;
    m->hosts = fleet->hosts;
    for (size_t i = 0; i < fleet->n_hosts; i++) { /* hosts without NICs only keep their number */
        fleet->hosts[i]->number = (uint32_t)i;
        if (fleet->hosts[i]->n_nics > 0) {
            m->hosts[m->n_hosts++] = fleet->hosts[i];
        }
    }
    return m;
}
