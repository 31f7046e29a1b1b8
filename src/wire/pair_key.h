/* pair_key.h: keys of two hosts each, so that a probe proves which host sent it.
 *
 * Each host has an X25519 key of its own; its public half stands in the fleet's list beside its name. Two hosts get
 * the same 16 bytes out of their own secret half and the other's public half, mixed with the fleet's key:
 *
 *     pair key = BLAKE2b-128(key: fleet key, "foliot pair key 1" || X25519(own, other) || lower || higher public half)
 *
 * So nobody else can make them, not even a third host or the list's keeper; and the fleet's key, when it is rotated,
 * renews them all. A pair key has the fleet key's id.
 *
 * While a fleet is upgraded some hosts have no key in the list yet, or the list has not reached everybody:
 *  - to a host that has none the fleet's key is used, as before;
 *  - a host whose key came in while we ran is sent to under the fleet's key until it uses the pair key itself, or
 *    PAIR_SPEAK_S have passed; the fleet's key is taken from it until PAIR_BIND_S have passed;
 *  - from then on, and for keys that were there from the start, only the pair key counts.
 *
 * Cost: 44 bytes a host of the fleet; an X25519 (some 100 us) once for each host that is talked to, a table look-up
 * for a packet. A packet names its host before it has proven anything, so strangers' packets cost work too: at most
 * PAIR_WORK_MAX keys a second for each kind of asker (enum pair_asker), so that they can't keep members out. A host that
 * has proven itself once always has its key, and neither its key nor one that we asked for gives way to a claim. Not thread
 * safe. */
#pragma once
#include "wire/probe.h"

#define PAIR_PUBLIC_SIZE 32
#define PAIR_SECRET_SIZE 32
#define PAIR_SPEAK_S     30
#define PAIR_BIND_S      60
#define PAIR_WORK_MAX    64
#define PAIR_FRESH_S     600 /* a host whose key came in while we ran is a newcomer for so long */
#define PAIR_FLEET_KEYS  2

struct pair_table;

void pair_secret_new(uint8_t ret_secret[static PAIR_SECRET_SIZE]);
/* false: no key at all (a point of low order). */
MUST_CHECK bool pair_public(const uint8_t secret[static PAIR_SECRET_SIZE],
                            uint8_t ret_public[static PAIR_PUBLIC_SIZE]);

/* Keeps a copy of the secret, wiped by pair_table_free(). -ENOMEM, -EINVAL. */
MUST_CHECK int pair_table_new(const uint8_t secret[static PAIR_SECRET_SIZE],
                              struct pair_table **ret);
void pair_table_free(struct pair_table *t); /* accepts NULL */
/* Hosts 0 … count - 1; those above are forgotten. -ENOMEM. */
MUST_CHECK int pair_table_resize(struct pair_table *t, uint32_t count);
/* The list's word about a host; NULL: it has no key. since_s: seconds, when the list had it first; of a key that is
 * there already it changes nothing. PAIR_LONG_AGO: binding at once. */
#define PAIR_LONG_AGO INT64_MIN
void pair_table_set(struct pair_table *t, uint32_t host, const uint8_t *public, int64_t since_s);
/* The fleet's keys: pair keys are made from them anew. At most PAIR_FLEET_KEYS. */
void pair_table_fleet(struct pair_table *t, const struct probe_key *keys, size_t count);

/* For whose sake a key is asked for. */
enum pair_asker {
    PAIR_OURS,     /* we send to it: always */
    PAIR_LISTED,   /* a packet from the address that the list has of that host */
    PAIR_STRANGER, /* any other packet */
    PAIR_NEWCOMER, /* of the last two, what names a newcomer: the table's own affair */
    PAIR_ASKERS
};
/* The pair keys with a host, one for each fleet key, in their order; 0: it has none, or too many were asked for in
 * this second. Valid until the next call. */
size_t pair_table_keys(struct pair_table *t, uint32_t host, int64_t now_s, enum pair_asker asker,
                       const struct probe_key **ret_keys);
/* It used its pair key. */
void pair_table_heard(struct pair_table *t, uint32_t host);
/* Use the pair key towards it. */
bool pair_table_speak(const struct pair_table *t, uint32_t host, int64_t now_s);
/* Take nothing from it but under the pair key. */
bool pair_table_binds(const struct pair_table *t, uint32_t host, int64_t now_s);
