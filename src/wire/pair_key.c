/* pair_key.c: pair keys, made when first needed. */
#include "wire/pair_key.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS 4096 /* keys that are kept. An agent exchanges packets with hundreds of hosts */
#define NONE  UINT32_MAX

static const char label[] = "foliot pair key 1";

struct host {
    uint8_t public[PAIR_PUBLIC_SIZE];
    uint32_t slot;
    uint8_t present, heard;
    int64_t since_s;
};

struct slot {
    uint32_t host;
    bool ours; /* this agent asked for it */
    struct probe_key keys[PAIR_FLEET_KEYS];
};

/* No hash table: a host's number is its index in `hosts`. There are as many keys as slots. */
struct pair_table {
    uint8_t secret[PAIR_SECRET_SIZE], public[PAIR_PUBLIC_SIZE];
    struct host *hosts;
    uint32_t count, next_slot;
    struct slot *slots;
    struct probe_key fleet[PAIR_FLEET_KEYS];
    size_t fleet_count;
    int64_t work_s; /* the second in which so many keys were made */
    uint32_t work[PAIR_ASKERS];
};

void pair_secret_new(uint8_t secret[static PAIR_SECRET_SIZE])
{
    randombytes_buf(secret, PAIR_SECRET_SIZE);
}

bool pair_public(const uint8_t secret[static PAIR_SECRET_SIZE],
                 uint8_t public[static PAIR_PUBLIC_SIZE])
{
    return crypto_scalarmult_curve25519_base(public, secret) == 0;
}

int pair_table_new(const uint8_t secret[static PAIR_SECRET_SIZE], struct pair_table **ret)
{
    struct pair_table *t = calloc(1, sizeof(*t));

    if (t == NULL || (t->slots = calloc(SLOTS, sizeof(*t->slots))) == NULL) {
        free(t);
        return -ENOMEM;
    }
    memcpy(t->secret, secret, sizeof(t->secret));
    for (uint32_t i = 0; i < SLOTS; i++) {
        t->slots[i].host = NONE;
    }
    if (!pair_public(secret, t->public)) {
        pair_table_free(t);
        return -EINVAL;
    }
    *ret = t;
    return 0;
}

void pair_table_free(struct pair_table *t)
{
    if (t == NULL) {
        return;
    }
    sodium_memzero(t->slots, SLOTS * sizeof(*t->slots));
    free(t->slots);
    free(t->hosts);
    sodium_memzero(t, sizeof(*t));
    free(t);
}

int pair_table_resize(struct pair_table *t, uint32_t count)
{
    if (count > t->count) {
        struct host *hosts = calloc(count, sizeof(*hosts));
        if (hosts == NULL) {
            return -ENOMEM;
        }
        if (t->count > 0) {
            memcpy(hosts, t->hosts, t->count * sizeof(*hosts));
        }
        free(t->hosts);
        t->hosts = hosts;
    }
    for (uint32_t i = t->count; i < count; i++) {
        t->hosts[i].slot = NONE;
    }
    for (uint32_t i = count; i < t->count; i++) {
        pair_table_set(t, i, NULL, 0);
    }
    t->count = count;
    return 0;
}

static void drop_slot(struct pair_table *t, struct host *h)
{
    if (h->slot != NONE) {
        sodium_memzero(&t->slots[h->slot], sizeof(t->slots[0]));
        t->slots[h->slot].host = NONE;
        h->slot = NONE;
    }
}

void pair_table_set(struct pair_table *t, uint32_t host, const uint8_t *public, int64_t since_s)
{
    struct host *h = &t->hosts[host];

    if (public != NULL && h->present && memcmp(h->public, public, sizeof(h->public)) == 0) {
        return;
    }
    drop_slot(t, h);
    *h = (struct host){.slot = NONE, .present = public != NULL, .since_s = since_s};
    if (public != NULL) {
        memcpy(h->public, public, sizeof(h->public));
    }
}

void pair_table_fleet(struct pair_table *t, const struct probe_key *keys, size_t count)
{
    t->fleet_count = count < PAIR_FLEET_KEYS ? count : PAIR_FLEET_KEYS;
    for (size_t i = 0; i < t->fleet_count; i++) {
        t->fleet[i] = keys[i];
    }
    for (uint32_t i = 0; i < t->count; i++) {
        drop_slot(t, &t->hosts[i]);
    }
}

/* False: the other's public half is not a key (a point of low order gives a secret that anybody can compute). */
static bool make_keys(struct pair_table *t, const struct host *h, struct slot *slot)
{
    uint8_t shared[crypto_scalarmult_curve25519_BYTES];
    const bool lower = memcmp(t->public, h->public, PAIR_PUBLIC_SIZE) < 0;
    crypto_generichash_state state;

    if (crypto_scalarmult_curve25519(shared, t->secret, h->public) != 0) {
        return false;
    }
    for (size_t i = 0; i < t->fleet_count; i++) {
        struct probe_key *key = &slot->keys[i];
        *key = (struct probe_key){.id = t->fleet[i].id, .pair = true};
        crypto_generichash_init(&state, t->fleet[i].bytes, PROBE_KEY_SIZE, PROBE_KEY_SIZE);
        crypto_generichash_update(&state, (const uint8_t *)label, sizeof(label) - 1);
        crypto_generichash_update(&state, shared, sizeof(shared));
        crypto_generichash_update(&state, lower ? t->public : h->public, PAIR_PUBLIC_SIZE);
        crypto_generichash_update(&state, lower ? h->public : t->public, PAIR_PUBLIC_SIZE);
        crypto_generichash_final(&state, key->bytes, sizeof(key->bytes));
    }
    sodium_memzero(shared, sizeof(shared));
    sodium_memzero(&state, sizeof(state));
    return true;
}

/* A host with a proof costs one key after each rotation, and a false claim to be that host can't cost more. */
static bool may_work(struct pair_table *t, const struct host *h, int64_t now_s,
                     enum pair_asker asker)
{
    const bool newcomer = h->since_s != PAIR_LONG_AGO && now_s - h->since_s < PAIR_FRESH_S;

    if (t->work_s != now_s) {
        t->work_s = now_s;
        memset(t->work, 0, sizeof(t->work));
    }
    return asker == PAIR_OURS || h->heard ||
           t->work[newcomer ? PAIR_NEWCOMER : asker]++ < PAIR_WORK_MAX;
}

/* The oldest slot is freed; before it, any slot that only a claim filled. */
static uint32_t free_slot(const struct pair_table *t)
{
    for (uint32_t i = 0; i < SLOTS; i++) {
        const uint32_t slot = (t->next_slot + i) % SLOTS;
        const struct slot *s = &t->slots[slot];
        if (s->host == NONE || (!s->ours && !t->hosts[s->host].heard)) {
            return slot;
        }
    }
    return t->next_slot;
}

size_t pair_table_keys(struct pair_table *t, uint32_t host, int64_t now_s, enum pair_asker asker,
                       const struct probe_key **ret_keys)
{
    struct host *h = host < t->count ? &t->hosts[host] : NULL;

    if (h == NULL || !h->present || t->fleet_count == 0) {
        return 0;
    }
    if (h->slot == NONE) {
        struct slot made = {.host = host};
        if (!may_work(t, h, now_s, asker) || !make_keys(t, h, &made)) {
            return 0;
        }
        const uint32_t slot = free_slot(t);
        t->next_slot = (slot + 1) % SLOTS;
        if (t->slots[slot].host != NONE) {
            t->hosts[t->slots[slot].host].slot = NONE;
        }
        t->slots[slot] = made;
        h->slot = slot;
        sodium_memzero(&made, sizeof(made));
    }
    t->slots[h->slot].ours = t->slots[h->slot].ours || asker == PAIR_OURS;
    *ret_keys = t->slots[h->slot].keys;
    return t->fleet_count;
}

void pair_table_heard(struct pair_table *t, uint32_t host)
{
    if (host < t->count) {
        t->hosts[host].heard = t->hosts[host].present;
    }
}

static bool for_s(const struct pair_table *t, uint32_t host, int64_t now_s, int64_t seconds)
{
    const struct host *h = host < t->count ? &t->hosts[host] : NULL;

    return h != NULL && h->present &&
           (h->since_s == PAIR_LONG_AGO || now_s - h->since_s >= seconds);
}

bool pair_table_speak(const struct pair_table *t, uint32_t host, int64_t now_s)
{
    return for_s(t, host, now_s, PAIR_SPEAK_S) ||
           (host < t->count && t->hosts[host].present && t->hosts[host].heard);
}

bool pair_table_binds(const struct pair_table *t, uint32_t host, int64_t now_s)
{
    return for_s(t, host, now_s, PAIR_BIND_S);
}
