/* fleet.c: the members: hosts, their NICs, and the list that all agents get. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>

#include "base/prng.h"
#include "core/brain/brain.h"
#include "core/fleet/fabric.h"
#include "service/controller/controller.h"
#include "service/controller/fleet/fleet.h"
#include "service/controller/fleet/members.h"
#include "service/controller/fleet/quota.h"
#include "service/controller/fleet/state.h"
#include "service/controller/job/job.h"
#include "service/controller/trust/tenant.h"

/* ---- tables ---- */

/* Adds the last host to the table of names. If the table has no more room, it gets a larger one with all hosts. */
static int index_names(struct controller *c)
{
    const uint32_t room = c->host_count * 2 + 64;
    uint32_t first = c->host_count - 1;
    if (c->host_count > c->host_name_room) {
        const int r = hash_index_room(&c->host_names, room);
        if (r < 0) {
            return r;
        }
        c->host_name_room = room;
        first = 0;
    }
    for (uint32_t i = first; i < c->host_count; i++) {
        hash_index_put(&c->host_names, hash_text(c->hosts[i]->name), i);
    }
    return 0;
}

/* A removed host may have had the same name: then the member is returned. */
struct fleet_host *fleet_find_host(const struct controller *c, const char *name)
{
    struct fleet_host *removed = NULL;

    for (uint32_t at = hash_index_first(&c->host_names, hash_text(name)), i;
         (i = hash_index_entry(&c->host_names, at)) != HASH_INDEX_NONE;
         at = hash_index_next(&c->host_names, at)) {
        if (strcmp(c->hosts[i]->name, name) == 0) {
            if (c->hosts[i]->member) {
                return c->hosts[i];
            }
            removed = c->hosts[i];
        }
    }
    return removed;
}

struct fleet_host *fleet_host_by_id(const struct controller *c, int64_t id)
{
    uint32_t low = 0, high = c->host_count; /* ids are in the order of joining */
    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (c->hosts[middle]->id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < c->host_count && c->hosts[low]->id == id ? c->hosts[low] : NULL;
}

struct fleet_nic *fleet_find_nic(const struct controller *c, uint32_t id)
{
    return id < c->nic_count ? c->nics[id] : NULL;
}

static int add_host(struct controller *c, struct fleet_host *h)
{
    const int r = brain_tell(c->brain, controller_mono(), BRAIN_ROOM,
                             &(struct brain_room){.hosts = c->host_count + 1}, NULL);
    if (r < 0) {
        return r;
    }
    if (c->host_count == c->host_capacity) {
        const uint32_t capacity = c->host_capacity * 2 + 64;
        struct fleet_host **larger = realloc(c->hosts, capacity * sizeof(struct fleet_host *));
        if (larger == NULL) {
            return -ENOMEM;
        }
        c->hosts = larger;
        c->host_capacity = capacity;
    }
    h->index = c->host_count;
    h->heard = h->rolled = MONO_NEVER;
    quota_fill(h);
    tenant_place(c, h);
    c->hosts[c->host_count++] = h;
    c->member_count += h->member;
    return index_names(c);
}

static int place_nic(struct controller *c, uint32_t id, struct fleet_nic *nic)
{
    if (id >= FLEET_NIC_MAX) {
        return -ENOSPC;
    }
    if (id >= c->nic_capacity) {
        const uint32_t capacity = id * 2 + 64;
        struct fleet_nic **larger = realloc(c->nics, capacity * sizeof(struct fleet_nic *));
        if (larger == NULL) {
            return -ENOMEM;
        }
        memset(larger + c->nic_capacity, 0,
               (capacity - c->nic_capacity) * sizeof(struct fleet_nic *));
        c->nics = larger;
        c->nic_capacity = capacity;
    }
    c->nics[id] = nic;
    c->nic_count = id >= c->nic_count ? id + 1 : c->nic_count;
    return 0;
}

/* ---- keys of probes ---- */

/* A key of 32 zero bytes means: no key. */
static bool some_key(const uint8_t key[static PAIR_PUBLIC_SIZE])
{
    static const uint8_t none[PAIR_PUBLIC_SIZE];
    return memcmp(key, none, sizeof(none)) != 0;
}

static void pair_key_name(const struct fleet_host *h, char name[static 32])
{
    snprintf(name, 32, "pair_key.%lld", (long long)h->id);
}

static void load_pair_key(struct controller *c, struct fleet_host *h)
{
    char name[32], *value = NULL;
    size_t size = 0;
    pair_key_name(h, name);
    if (store_get(c->store, name, &value, &size) == 0 && size == sizeof(h->pair_key)) {
        memcpy(h->pair_key, value, size);
        h->has_pair_key = some_key(h->pair_key);
    }
    free(value);
}

/* ---- from the store ---- */

static int load_host(void *context, const struct store_host *s)
{
    struct controller *c = context;
    struct fleet_host *h = calloc(1, sizeof(*h));
    if (h == NULL) {
        return -ENOMEM;
    }
    h->id = s->id;
    h->member = s->state == STORE_HOST_MEMBER;
    h->joined_ns = s->joined_ns;
    h->removed_ns = s->removed_ns;
    h->not_after = s->not_after;
    h->cursor = h->committed = (struct report_cursor){s->stream, s->number};
    h->sealed_ns = s->sealed_ns;
    snprintf(h->name, sizeof(h->name), "%s", s->name);
    snprintf(h->serial, sizeof(h->serial), "%s", s->serial);
    snprintf(h->serial_before, sizeof(h->serial_before), "%s", s->serial_before);
    snprintf(h->pin, sizeof(h->pin), "%s", s->pin);
    snprintf(h->version, sizeof(h->version), "%s", s->version);
    h->tables_wanted = true;
    load_pair_key(c, h);
    const int r = add_host(c, h);
    if (r < 0) {
        free(h);
    }
    return r;
}

static struct fleet_nic *new_nic(struct fleet_host *h, const struct store_nic *s)
{
    struct fleet_nic *n = calloc(1, sizeof(*n));
    if (n != NULL) {
        n->id = s->id;
        n->host = h;
        n->rail = s->rail;
        n->configured_mbps = s->speed_mbps;
        n->rx_bps = n->tx_bps = -1;
        snprintf(n->name, sizeof(n->name), "%s", s->name);
        snprintf(n->leaf, sizeof(n->leaf), "%s", s->leaf);
        memcpy(n->address4, s->address4, sizeof(n->address4));
        memcpy(n->address6, s->address6, sizeof(n->address6));
    }
    return n;
}

static int load_nic(void *context, const struct store_nic *s)
{
    struct controller *c = context;
    struct fleet_host *h = fleet_host_by_id(c, s->host);
    if (s->removed || h == NULL || !h->member || h->nic_count == HOST_NIC_MAX) {
        /* the number of a removed NIC is never used again */
        return s->id >= c->nic_count ? place_nic(c, s->id, NULL) : 0;
    }
    struct fleet_nic *n = new_nic(h, s);
    const int r = n == NULL ? -ENOMEM : place_nic(c, s->id, n);
    if (r < 0) {
        free(n);
        return r;
    }
    h->nics[h->nic_count++] = s->id;
    member_look(h, n);
    return 0;
}

static uint32_t end_of(const struct controller *c, const json_t *end, uint32_t *ret_nic_plus_1)
{
    const char *name = json_string_value(json_object_get(end, "host"));
    const json_t *nic = json_object_get(end, "nic");
    const struct fleet_host *h = name != NULL ? fleet_find_host(c, name) : NULL;
    *ret_nic_plus_1 = json_is_integer(nic) ? (uint32_t)json_integer_value(nic) + 1 : 0;
    return h != NULL ? h->index : json_is_object(end) ? FINDING_END_UNKNOWN : FINDING_END_NONE;
}

static int load_finding(void *context, const struct store_finding *f)
{
    struct fleet_host *h = fleet_host_by_id(context, f->host);
    if (h == NULL || h->finding_count == CONTROLLER_HOST_FINDINGS) {
        return 0;
    }
    json_t *body = json_loads(f->body, 0, NULL);
    /* missing if an older version wrote it */
    const json_t *heard = json_object_get(body, "heard_utc_ns");
    uint32_t nics[2];
    const uint32_t hosts[2] = {end_of(context, json_object_get(body, "from"), &nics[0]),
                               end_of(context, json_object_get(body, "to"), &nics[1])};
    h->findings[h->finding_count++] = (struct open_finding){
        .run = f->run,
        .number = f->number,
        .id = f->id,
        .heard_ns = json_is_integer(heard) ? json_integer_value(heard) : f->opened_ns,
        .from = hosts[0],
        .to = hosts[1],
        .subject = state_subject(f->kind, nics, hosts),
        .named = f->named[0] != 0 ? FINDING_NAMED_SOMEHOW : 0};
    json_decref(body);
    return 0;
}

int fleet_renumber(struct store *s)
{
    char text[24];
    const int n = snprintf(text, sizeof(text), "%lld", (long long)(controller_utc_ns() / NS_PER_S));
    const int r = store_put(s, "fleet_version", text, (size_t)n);
    return r < 0 ? r : store_commit(s);
}

static int load_version(struct controller *c)
{
    char *text = NULL;
    size_t size = 0;
    int r = store_get(c->store, "fleet_version", &text, &size);
    if (r == 0) {
        c->fleet_version = strtoull(text, NULL, 10);
        free(text);
    }
    return r == -ENOENT ? 0 : r;
}

int fleet_load(struct controller *c)
{
    const struct store_finding_filter open = {.open = 1, .limit = INT32_MAX};
    const struct fleet_terms terms = {.beat = span_ms(c->config.beat_ms),
                                      .report = span_ms(c->config.report_ms),
                                      .finding_max = CONTROLLER_FINDINGS};
    int r = brain_tell(c->brain, controller_mono(), BRAIN_TERMS, &terms, NULL);
    r = r < 0 ? r : store_hosts(c->store, load_host, c);
    r = r < 0 ? r : store_nics(c->store, load_nic, c);
    r = r < 0 ? r : store_findings(c->store, &open, load_finding, c);
    r = r < 0 ? r : load_version(c);
    for (uint32_t i = 0; i < c->host_count && r == 0; i++) {
        r = fleet_tell_member(c, c->hosts[i]);
    }
    c->revision = 1;
    r = r < 0 ? r : member_index_load(c);
    return r < 0 ? r : members_open(c);
}

void fleet_free(struct controller *c)
{
    for (uint32_t i = 0; i < c->host_count; i++) {
        free(c->hosts[i]->paths);
        free(c->hosts[i]->hops);
        job_forget_host(c->hosts[i]);
        free(c->hosts[i]);
    }
    for (uint32_t i = 0; i < c->nic_count; i++) {
        free(c->nics[i]);
    }
    free(c->hosts);
    free(c->nics);
    hash_index_done(&c->host_names);
    members_close(c);
    member_index_free(c);
}

/* ---- changes ---- */

/* Makes the next version of the list. Then members_changed() must be called for each host that changed. */
static int bump(struct controller *c)
{
    char text[24];
    const int n = snprintf(text, sizeof(text), "%llu", (unsigned long long)c->fleet_version + 1);
    const int r = store_put(c->store, "fleet_version", text, (size_t)n);
    if (r == 0) {
        c->fleet_version++;
        c->revision++;
    }
    return r;
}

/* A host is installed again, or gets another version and goes back. So some changes are normal. But a host that changes its
 * key all the time would make all agents read the list every few seconds. */
#define PAIR_CHANGES_MAX 6 /* an hour */

static bool may_change_key(struct fleet_host *h, struct mono now)
{
    if (mono_sub(now, h->pair_key_since).ns > 3600 * NS_PER_S) {
        h->pair_key_since = now;
        h->pair_key_changes = 0;
    }
    if (h->pair_key_changes == PAIR_CHANGES_MAX) {
        controller_say(
            LOG_WARNING,
            "host %s changes the key of its probes: expected %d changes an hour at most, "
            "found more. The list keeps the old key. If two machines run under this "
            "name, stop one",
            h->name, PAIR_CHANGES_MAX);
    }
    h->pair_key_changes += h->pair_key_changes <= PAIR_CHANGES_MAX;
    return h->pair_key_changes <= PAIR_CHANGES_MAX;
}

void fleet_pair_key(struct controller *c, struct fleet_host *h, const uint8_t *key, size_t size)
{
    char name[32];
    const bool has = size == sizeof(h->pair_key) && some_key(key);
    const struct mono now = controller_mono();
    const bool other = has != h->has_pair_key || (has && memcmp(h->pair_key, key, size) != 0);
    if (other && may_change_key(h, now)) {
        pair_key_name(h, name);
        if (store_put(c->store, name, has ? key : (const uint8_t *)"", has ? size : 0) < 0) {
            return; /* the key comes again with the next batch */
        }
        h->has_pair_key = has;
        if (has) {
            memcpy(h->pair_key, key, size);
        }
        (void)(bump(c) == 0 ? members_changed(c, h, false)
                            : 0); /* it comes again, or with the next change */
    }
}

int fleet_save_host(struct controller *c, const struct fleet_host *h)
{
    const struct store_host s = {.id = h->id,
                                 .name = h->name,
                                 .state = h->member ? STORE_HOST_MEMBER : STORE_HOST_REMOVED,
                                 .joined_ns = h->joined_ns,
                                 .removed_ns = h->removed_ns,
                                 .serial = h->serial,
                                 .serial_before = h->serial_before,
                                 .pin = h->pin,
                                 .not_after = h->not_after,
                                 .stream = h->cursor.stream,
                                 .number = h->cursor.number,
                                 .sealed_ns = h->sealed_ns,
                                 .version = h->version};
    int64_t id = 0;
    return store_host_put(c->store, &s, &id);
}

static int add_nics(struct controller *c, struct fleet_host *h, const struct fleet_join *join)
{
    int r = 0;
    for (size_t i = 0; i < join->nic_count && r == 0; i++) {
        const Foliot__V1__Nic *n = join->nics[i];
        struct store_nic s = {.id = c->nic_count,
                              .host = h->id,
                              .name = n->name,
                              .leaf = n->leaf,
                              .rail = n->rail,
                              .speed_mbps = n->speed_mbps};
        if (n->address4.len == 4) {
            memcpy(s.address4, n->address4.data, 4);
        }
        if (n->address6.len == 16) {
            memcpy(s.address6, n->address6.data, 16);
        }
        struct fleet_nic *nic = new_nic(h, &s);
        r = nic == NULL ? -ENOMEM : store_nic_put(c->store, &s);
        r = r < 0 ? r : place_nic(c, s.id, nic);
        if (r < 0) {
            free(nic);
        } else {
            h->nics[h->nic_count++] = s.id;
            r = member_index_add(c, nic);
        }
    }
    return r;
}

static void set_certificate(struct fleet_host *h, const struct tls_certificate *t)
{
    snprintf(h->serial_before, sizeof(h->serial_before), "%s", h->serial);
    snprintf(h->serial, sizeof(h->serial), "%s", t->serial);
    for (size_t i = 0; i < TLS_PIN_SIZE; i++) {
        snprintf(h->pin + 2 * i, 3, "%02x", t->pin[i]);
    }
    h->not_after = t->not_after;
}

static bool same_pin(const struct fleet_host *h, const struct tls_certificate *t)
{
    char pin[2 * TLS_PIN_SIZE + 1];
    for (size_t i = 0; i < TLS_PIN_SIZE; i++) {
        snprintf(pin + 2 * i, 3, "%02x", t->pin[i]);
    }
    return strcmp(pin, h->pin) == 0;
}

/* The key came with the request: one change of the list has host and key. */
static int join_key(struct controller *c, struct fleet_host *h, const struct fleet_join *join)
{
    char name[32];
    if (join->pair_key == NULL || !some_key(join->pair_key)) {
        return 0;
    }
    pair_key_name(h, name);
    memcpy(h->pair_key, join->pair_key, sizeof(h->pair_key));
    h->has_pair_key = true;
    return store_put(c->store, name, h->pair_key, sizeof(h->pair_key));
}

int fleet_add(struct controller *c, const struct fleet_join *join, struct fleet_host **ret_host,
              char words[MEMBER_WORDS_SIZE])
{
    struct fleet_host *h = fleet_find_host(c, join->name);
    int r = member_check(c, join, words);
    if (r < 0) {
        return r;
    }
    if (h != NULL && h->member) {
        /* the answer to the first try was lost: the same key proves that it is the same host */
        if (!same_pin(h, join->certificate)) {
            snprintf(words, 160,
                     "a host %s is a member already, with another key: foliot host remove it first",
                     join->name);
            return -EEXIST;
        }
        set_certificate(h, join->certificate);
        *ret_host = h;
        return fleet_save_host(c, h);
    }
    h = calloc(1, sizeof(*h));
    if (h == NULL) {
        return -ENOMEM;
    }
    h->member = true;
    h->joined_ns = controller_utc_ns();
    h->tables_wanted = true;
    snprintf(h->name, sizeof(h->name), "%s", join->name);
    snprintf(h->version, sizeof(h->version), "%.31s", join->version);
    set_certificate(h, join->certificate);
    const struct store_host s = {.name = h->name,
                                 .state = STORE_HOST_MEMBER,
                                 .joined_ns = h->joined_ns,
                                 .serial = h->serial,
                                 .serial_before = "",
                                 .pin = h->pin,
                                 .not_after = h->not_after,
                                 .version = h->version};
    r = store_host_put(c->store, &s, &h->id);
    r = r < 0 ? r : add_host(c, h);
    if (r < 0) {
        free(h);
        return r;
    }
    r = add_nics(c, h, join);
    r = r < 0 ? r : join_key(c, h, join);
    r = r < 0 ? r : fleet_tell_member(c, h);
    r = r < 0 ? r : bump(c);
    r = r < 0 ? r : members_changed(c, h, true);
    *ret_host = h;
    return r;
}

int fleet_remove(struct controller *c, struct fleet_host *h)
{
    struct fleet_host after = *h;
    after.member = false;
    after.removed_ns = controller_utc_ns();
    int r = fleet_save_host(c, &after);
    for (uint32_t i = 0; i < h->nic_count && r == 0; i++) {
        const struct fleet_nic *n = c->nics[h->nics[i]];
        struct store_nic s = {.id = n->id,
                              .host = h->id,
                              .name = n->name,
                              .leaf = n->leaf,
                              .rail = n->rail,
                              .removed = true};
        r = store_nic_put(c->store, &s);
    }
    r = r < 0 ? r : store_findings_close_others(c->store, h->id, UINT32_MAX, after.removed_ns);
    r = r < 0 ? r : bump(c);
    if (r < 0) {
        return r;
    }
    const struct fleet_member gone = {
        .host = h->index, .present = false, .nics = h->nics, .nic_count = h->nic_count};
    brain_tell(c->brain, controller_mono(), BRAIN_MEMBER, &gone, NULL);
    for (uint32_t i = 0; i < h->nic_count; i++) {
        member_index_remove(c, c->nics[h->nics[i]]);
        free(c->nics[h->nics[i]]);
        c->nics[h->nics[i]] = NULL;
    }
    free(h->paths);
    job_forget_host(h);
    fabric_on_ways_gone(c->fabric, h->hops, h->hop_count, controller_mono());
    free(h->hops);
    h->hops = NULL;
    h->hop_count = 0;
    h->paths = NULL;
    h->path_count = h->nic_count = h->finding_count = h->paths_dead = h->paths_lossy = 0;
    h->member = h->reported = false;
    h->removed_ns = after.removed_ns;
    c->member_count--;
    return members_changed(c, h, true);
}

/* ---- judgements ---- */

enum freshness fleet_freshness(const struct controller *c, const struct fleet_host *h,
                               struct mono now)
{
    return fleet_host_freshness(brain_hosts(c->brain), h->index, now);
}

bool fleet_current(const struct controller *c, const struct fleet_host *h, struct mono now)
{
    const enum freshness f = fleet_freshness(c, h, now);
    return h->reported && (f == FRESHNESS_LIVE || f == FRESHNESS_LATE);
}

bool fleet_nic_unwatched(const struct fleet_nic *n)
{
    return n->reported && (n->state == FOLIOT__V1__PORT_STATE__PORT_UNKNOWN ||
                           (n->state == FOLIOT__V1__PORT_STATE__PORT_UP && n->stamps == 0));
}

uint32_t fleet_nics_unwatched(const struct controller *c, const struct fleet_host *h)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < h->nic_count; i++) {
        count += fleet_nic_unwatched(c->nics[h->nics[i]]);
    }
    return count;
}

enum health fleet_health(const struct controller *c, const struct fleet_host *h, struct mono now)
{
    return fleet_host_health(brain_hosts(c->brain), h->index, now);
}

void fleet_tell_report(struct controller *c, const struct fleet_host *h, bool rollup)
{
    struct fleet_report report = {
        .host = h->index,
        .rollup = rollup,
        .clock = h->clock.status == FOLIOT__V1__CLOCK_STATUS__CLOCK_STATUS_SYNCED
                     ? FLEET_CLOCK_SYNCED
                 : h->clock.status == FOLIOT__V1__CLOCK_STATUS__CLOCK_STATUS_HOLDOVER
                     ? FLEET_CLOCK_HOLDOVER
                     : FLEET_CLOCK_UNUSABLE,
        .nics_unwatched = fleet_nics_unwatched(c, h),
        .paths_dead = h->paths_dead};
    for (uint32_t i = 0; i < h->nic_count; i++) {
        const uint32_t state = c->nics[h->nics[i]]->state;
        report.ports_down += state == FOLIOT__V1__PORT_STATE__PORT_DOWN ||
                             state == FOLIOT__V1__PORT_STATE__PORT_GONE;
    }
    brain_tell(c->brain, controller_mono(), BRAIN_REPORT, &report, NULL);
}

int fleet_tell_member(struct controller *c, const struct fleet_host *h)
{
    const struct fleet_member member = {
        .host = h->index, .present = h->member, .nics = h->nics, .nic_count = h->nic_count};
    const struct brain_room room = {.hosts = c->host_count, .nics = c->nic_count};
    const int r = brain_tell(c->brain, controller_mono(), BRAIN_ROOM, &room, NULL);
    if (r == 0) {
        brain_tell(c->brain, controller_mono(), BRAIN_MEMBER, &member, NULL);
    }
    return r;
}
