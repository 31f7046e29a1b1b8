/* members.c: the log of changes, and the replies for agents. Agents that need the same reply share it. */
#include "service/controller/fleet/members.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"

enum { PACKED_MAX = 64 };

struct change {
    uint64_t version;
    int64_t host; /* the host's id in the store */
};

struct packed { /* a reply for this version of the list */
    uint64_t from, base;
    uint32_t cursor;
    struct message_buffer reply; /* size 0: unused */
};

struct members {
    uint64_t digest; /* of the whole list */
    uint64_t floor;  /* agents with at least this version get only changes */
    uint64_t next;   /* number of the next entry; its index is next % MEMBERS_KEPT */
    uint32_t count;
    struct change log[MEMBERS_KEPT];
    uint64_t packed_version;
    uint32_t packed_turn;
    struct packed packed[PACKED_MAX];
    struct message_buffer whole; /* the list for protocol 1 */
    uint64_t whole_version;
    uint64_t old_version; /* agents of protocol 1 with an earlier version get the whole list */
    struct mono old_at;
    struct message_arena arena; /* memory of one reply */
    uint32_t *told;             /* by host: the last reply that includes it */
    uint32_t told_size, turn;
};

/* ---- the list ---- */

static bool listed(const struct fleet_host *h)
{
    return h->member && h->left_out[0] == 0 && h->nic_count > 0;
}

static struct member_nic nic_of(const struct fleet_nic *n)
{
    static const uint8_t none[16];
    return (struct member_nic){.interface = n->name,
                               .leaf = n->leaf,
                               .rail = n->rail,
                               .address4 = memcmp(n->address4, none, 4) != 0 ? n->address4 : NULL,
                               .address6 = memcmp(n->address6, none, 16) != 0 ? n->address6 : NULL};
}

static uint64_t digest_of(const struct controller *c, const struct fleet_host *h)
{
    if (!listed(h)) {
        return 0;
    }
    uint64_t digest = member_host_digest(h->index, h->name, h->has_pair_key ? h->pair_key : NULL);
    for (uint32_t i = 0; i < h->nic_count; i++) {
        const struct member_nic nic = nic_of(c->nics[h->nics[i]]);
        digest += member_nic_digest(h->index, h->nics[i], &nic);
    }
    return digest;
}

/* ---- the log ---- */

static void entry_name(uint64_t number, char name[static 32])
{
    snprintf(name, 32, "members.%" PRIu64, number % MEMBERS_KEPT);
}

static bool read_entry(struct controller *c, uint64_t slot, uint64_t *ret_number,
                       struct change *ret_change)
{
    char name[32], *value = NULL;
    size_t size = 0;
    entry_name(slot, name);
    uint64_t words[3]; /* little-endian: number, version, host */
    const bool read = store_get(c->store, name, &value, &size) == 0 && size == sizeof(words);
    if (read) {
        memcpy(words, value, sizeof(words));
        *ret_number = le64toh(words[0]);
        *ret_change = (struct change){le64toh(words[1]), (int64_t)le64toh(words[2])};
    }
    free(value);
    return read && *ret_number % MEMBERS_KEPT == slot;
}

/* Reads the log back from the list's version until there is a gap. Gaps: an older controller changed the list without a log;
 * or a restored store continues with a much higher version. */
static int load_log(struct controller *c)
{
    struct members *m = c->members;
    uint64_t *numbers = calloc(MEMBERS_KEPT, sizeof(*numbers)), last = 0;
    if (numbers == NULL) {
        return -ENOMEM;
    }
    for (uint64_t slot = 0; slot < MEMBERS_KEPT; slot++) {
        uint64_t number = 0;
        if (read_entry(c, slot, &number, &m->log[slot]) && number >= MEMBERS_KEPT) {
            numbers[slot] = number;
            last = number > last ? number : last;
        }
    }
    m->next = last == 0 ? MEMBERS_KEPT : last + 1; /* number 0 means a free slot */
    m->floor = c->fleet_version;
    uint64_t version = c->fleet_version;
    for (uint64_t number = last; number > 0 && m->count < MEMBERS_KEPT; number--) {
        const struct change *change = &m->log[number % MEMBERS_KEPT];
        const bool follows =
            change->version == version || (m->count > 0 && change->version + 1 == version);
        if (numbers[number % MEMBERS_KEPT] != number || !follows) {
            break;
        }
        version = change->version;
        m->floor = version - 1;
        m->count++;
    }
    /* some entries of that version may be gone */
    m->floor = m->count == MEMBERS_KEPT ? version : m->floor;
    free(numbers);
    return 0;
}

int members_open(struct controller *c)
{
    c->members = calloc(1, sizeof(*c->members));
    if (c->members == NULL) {
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < c->host_count; i++) {
        c->hosts[i]->digest = digest_of(c, c->hosts[i]);
        c->members->digest += c->hosts[i]->digest;
    }
    /* room for that many changes of large hosts */
    const size_t nics = MEMBERS_KEPT * (size_t)HOST_NIC_MAX;
    if (message_arena_init(&c->members->arena, nics * 192 + MEMBERS_KEPT * (size_t)256 + 65536) <
        0) {
        return -ENOMEM;
    }
    c->members->old_version = c->fleet_version;
    c->members->old_at = controller_mono();
    return load_log(c);
}

static void drop_packed(struct members *m)
{
    for (uint32_t i = 0; i < PACKED_MAX; i++) {
        message_buffer_done(&m->packed[i].reply);
    }
}

void members_close(struct controller *c)
{
    if (c->members != NULL) {
        drop_packed(c->members);
        message_buffer_done(&c->members->whole);
        message_arena_done(&c->members->arena);
        free(c->members->told);
        free(c->members);
        c->members = NULL;
    }
}

int members_changed(struct controller *c, struct fleet_host *h, bool soon)
{
    struct members *m = c->members;
    char name[32];
    const struct change change = {c->fleet_version, h->id};
    entry_name(m->next, name);
    const uint64_t words[3] = {htole64(m->next), htole64(change.version),
                               htole64((uint64_t)change.host)};
    const int r = store_put(c->store, name, words, sizeof(words));
    if (r < 0) {
        return r;
    }
    if (m->count == MEMBERS_KEPT) {
        m->floor = m->log[m->next % MEMBERS_KEPT].version;
    }
    m->log[m->next++ % MEMBERS_KEPT] = change;
    m->count += m->count < MEMBERS_KEPT;
    const uint64_t digest = digest_of(c, h);
    m->digest += digest - h->digest;
    h->digest = digest;
    if (soon) {
        m->old_version = c->fleet_version;
        m->old_at = controller_mono();
    }
    return 0;
}

/* ---- messages ---- */

static Foliot__V1__Nic *nic_message(struct message_arena *arena, struct fleet_nic *n, bool whole)
{
    Foliot__V1__Nic *m = message_arena_take(arena, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    const struct member_nic nic = nic_of(n);
    foliot__v1__nic__init(m);
    m->id = n->id;
    m->name = n->name;
    m->rail = n->rail;
    m->leaf = n->leaf;
    m->speed_mbps = whole ? n->configured_mbps : 0; /* other hosts do not need it */
    if (nic.address4 != NULL) {
        m->address4 = (ProtobufCBinaryData){4, n->address4};
    }
    if (nic.address6 != NULL) {
        m->address6 = (ProtobufCBinaryData){16, n->address6};
    }
    return m;
}

static Foliot__V1__FleetHost *host_message(struct controller *c, struct message_arena *arena,
                                           struct fleet_host *h, bool whole)
{
    Foliot__V1__FleetHost *m = message_arena_take(arena, sizeof(*m));
    Foliot__V1__Nic **nics = message_arena_take(arena, (h->nic_count + 1) * sizeof(*nics));
    if (m == NULL || nics == NULL) {
        return NULL;
    }
    foliot__v1__fleet_host__init(m);
    m->name = h->name;
    m->number = whole ? 0 : h->index;
    m->nics = nics;
    if (h->has_pair_key && listed(h)) {
        /* the name of a removed host may belong to another host now */
        m->pair_key = (ProtobufCBinaryData){sizeof(h->pair_key), h->pair_key};
    }
    for (uint32_t i = 0; i < h->nic_count && h->left_out[0] == 0; i++) {
        nics[i] = nic_message(arena, c->nics[h->nics[i]], whole);
        if (nics[i] == NULL) {
            return NULL;
        }
        m->n_nics++;
    }
    return m;
}

Foliot__V1__FleetHost *members_host(struct controller *c, struct message_arena *arena,
                                    struct fleet_host *h)
{
    return host_message(c, arena, h, false);
}

int members_fleet(struct controller *c, struct message_arena *arena, Foliot__V1__Fleet **ret_fleet)
{
    Foliot__V1__Fleet *m = message_arena_take(arena, sizeof(*m));
    Foliot__V1__FleetHost **hosts = message_arena_take(arena, (c->host_count + 1) * sizeof(*hosts));
    if (m == NULL || hosts == NULL) {
        return -ENOMEM;
    }
    foliot__v1__fleet__init(m);
    m->version = c->fleet_version;
    m->hosts = hosts;
    for (uint32_t i = 0; i < c->host_count; i++) {
        hosts[i] = host_message(c, arena, c->hosts[i], true);
        if (hosts[i] == NULL) {
            return -ENOMEM;
        }
        m->n_hosts++;
    }
    *ret_fleet = m;
    return 0;
}

/* Allocates a reply with room for so many hosts and removed hosts. */
static Foliot__V1__Members *new_message(struct message_arena *arena, uint32_t hosts)
{
    Foliot__V1__Members *m = message_arena_take(arena, sizeof(*m));
    if (m == NULL) {
        return NULL;
    }
    foliot__v1__members__init(m);
    m->hosts = message_arena_take(arena, (hosts + 1) * sizeof(*m->hosts));
    m->removed = message_arena_take(arena, (hosts + 1) * sizeof(*m->removed));
    return m->hosts == NULL || m->removed == NULL ? NULL : m;
}

static int add_host(struct controller *c, struct message_arena *arena, Foliot__V1__Members *m,
                    struct fleet_host *h)
{
    if (!listed(h)) {
        m->removed[m->n_removed++] = h->index;
        return 0;
    }
    m->hosts[m->n_hosts] = members_host(c, arena, h);
    return m->hosts[m->n_hosts++] == NULL ? -ENOMEM : 0;
}

static int room_to_tell(struct controller *c)
{
    struct members *m = c->members;
    if (m->told_size < c->host_count || m->turn == UINT32_MAX) {
        const uint32_t size = c->host_count * 2;
        free(m->told);
        m->told = calloc(size, sizeof(*m->told));
        m->told_size = m->told != NULL ? size : 0;
        m->turn = 0;
    }
    return m->told_size < c->host_count ? -ENOMEM : 0;
}

/* Sets told[] = turn for hosts that changed since that version. Returns the highest index + 1. */
static uint32_t mark_changed(struct controller *c, uint64_t from)
{
    struct members *s = c->members;
    uint32_t end = 0;
    s->turn++;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct change *change = &s->log[(s->next - 1 - i) % MEMBERS_KEPT];
        if (change->version <= from) {
            break;
        }
        const struct fleet_host *h = fleet_host_by_id(c, change->host);
        if (h != NULL) {
            s->told[h->index] = s->turn;
            end = h->index >= end ? h->index + 1 : end;
        }
    }
    return end;
}

/* Makes a page: hosts from the cursor on. It also has hosts that were on an earlier page and have left since: another host may
 * have their addresses now. */
static int make_page(struct controller *c, struct message_arena *arena,
                     const struct members_wish *wish, Foliot__V1__Members **ret)
{
    uint32_t nics = 0, at = wish->cursor - 1;
    Foliot__V1__Members *m = new_message(arena, MEMBERS_PAGE_NICS + 1);
    if (m == NULL || room_to_tell(c) < 0) {
        return -ENOMEM;
    }
    m->version = wish->base;
    m->cursor = wish->cursor;
    const uint32_t end = mark_changed(c, wish->base);
    for (uint32_t i = 0; i < end && i < at; i++) {
        if (c->members->told[i] == c->members->turn && !listed(c->hosts[i])) {
            m->removed[m->n_removed++] = i;
        }
    }
    for (; at < c->host_count && nics < MEMBERS_PAGE_NICS; at++) {
        if (!listed(c->hosts[at])) {
            continue;
        }
        if (add_host(c, arena, m, c->hosts[at]) < 0) {
            return -ENOMEM;
        }
        nics += c->hosts[at]->nic_count;
    }
    m->next = at < c->host_count ? at + 1 : 0;
    *ret = m;
    return 0;
}

static int make_changes(struct controller *c, struct message_arena *arena, uint64_t from,
                        Foliot__V1__Members **ret)
{
    struct members *s = c->members;
    Foliot__V1__Members *m = new_message(arena, MEMBERS_KEPT);
    if (m == NULL || room_to_tell(c) < 0) {
        return -ENOMEM;
    }
    m->from = from;
    m->version = c->fleet_version;
    m->digest = s->digest;
    const uint32_t end = mark_changed(c, from);
    for (uint32_t i = 0; i < end; i++) {
        if (s->told[i] == s->turn && add_host(c, arena, m, c->hosts[i]) < 0) {
            return -ENOMEM;
        }
    }
    *ret = m;
    return 0;
}

/* ---- the reply for one agent ---- */

static int pack(struct controller *c, const Foliot__V1__BatchReply *reply,
                struct message_buffer *ret)
{
    int r = message_encode(&reply->base, &c->encoded);
    r = r < 0 ? r : message_pack(c->encoded.bytes, c->encoded.size, &c->packed);
    r = r < 0 ? r : message_buffer_reserve(ret, c->packed.size);
    if (r == 0) {
        memcpy(ret->bytes, c->packed.bytes, c->packed.size);
        ret->size = c->packed.size;
    }
    return r;
}

static const struct message_buffer *whole(struct controller *c)
{
    struct members *m = c->members;
    struct message_arena arena;
    Foliot__V1__BatchReply reply = FOLIOT__V1__BATCH_REPLY__INIT;
    if (m->whole.size > 0 && m->whole_version == c->fleet_version) {
        return &m->whole;
    }
    if (message_arena_init(&arena, ((size_t)c->host_count * 256) + c->nic_count * 160 + 65536) <
        0) {
        return NULL;
    }
    int r = members_fleet(c, &arena, &reply.fleet);
    r = r < 0 ? r : pack(c, &reply, &m->whole);
    m->whole_version = c->fleet_version;
    m->whole.size = r < 0 ? 0 : m->whole.size;
    message_arena_done(&arena);
    return r < 0 ? NULL : &m->whole;
}

static bool whole_is_due(struct controller *c, uint64_t version)
{
    struct members *m = c->members;
    const struct mono now = controller_mono();
    if (m->old_version != c->fleet_version && mono_sub(now, m->old_at).ns >= MEMBERS_WHOLE_NS) {
        m->old_version = c->fleet_version;
        m->old_at = now;
    }
    return version < m->old_version || version > c->fleet_version;
}

/* Finds a reply that was made for another agent with the same needs, or a place for a new one. */
static struct packed *place_of(struct controller *c, const struct members_wish *wish)
{
    struct members *m = c->members;
    if (m->packed_version != c->fleet_version) {
        drop_packed(m);
        m->packed_version = c->fleet_version;
    }
    for (uint32_t i = 0; i < PACKED_MAX; i++) {
        struct packed *p = &m->packed[i];
        if (p->reply.size > 0 && p->cursor == wish->cursor &&
            (wish->cursor == 0 ? p->from == wish->version : p->base == wish->base)) {
            return p;
        }
    }
    struct packed *p = &m->packed[m->packed_turn++ % PACKED_MAX];
    p->from = wish->version;
    p->base = wish->base;
    p->cursor = wish->cursor;
    p->reply.size = 0;
    return p;
}

static const struct message_buffer *made(struct controller *c, const struct members_wish *wish)
{
    struct packed *p = place_of(c, wish);
    struct message_arena *arena = &c->members->arena;
    Foliot__V1__BatchReply reply = FOLIOT__V1__BATCH_REPLY__INIT;
    if (p->reply.size > 0) {
        return &p->reply;
    }
    message_arena_reset(arena);
    int r = wish->cursor != 0 ? make_page(c, arena, wish, &reply.members)
                              : make_changes(c, arena, wish->version, &reply.members);
    r = r < 0 ? r : pack(c, &reply, &p->reply);
    p->reply.size = r < 0 ? 0 : p->reply.size;
    return r < 0 ? NULL : &p->reply;
}

const struct message_buffer *members_for(struct controller *c, const struct members_wish *wish)
{
    const struct members *m = c->members;
    struct members_wish w = *wish;
    const bool current = w.version == c->fleet_version;
    if (w.refused != 0 && w.refused == c->fleet_version) {
        return NULL;
    }
    if (w.protocol < 2) {
        return current || !whole_is_due(c, w.refused != 0 ? w.refused : w.version) ? NULL
                                                                                   : whole(c);
    }
    if (w.cursor == 0 && w.version == 0 && w.digest == 0) {
        return NULL; /* the agent does not use the controller's list */
    }
    if (w.cursor == 0 && current && (w.digest == 0 || w.digest == m->digest)) {
        return NULL;
    }
    const bool known = w.version != 0 && w.version >= m->floor && w.version < c->fleet_version;
    const bool goes_on = w.cursor > 1 && w.base >= m->floor && w.base <= c->fleet_version;
    if (w.cursor == 0 ? !known : !goes_on) { /* start with the first page */
        w.cursor = 1;
        w.base = c->fleet_version;
    }
    return made(c, &w);
}
