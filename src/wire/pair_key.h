/* pair_key.h: keys for two hosts each, so that a probe proves which host sent it.
 *
 * Each host has its own X25519 key. The fleet's list has the public half beside the host's name. Two hosts get the same 16 bytes
 * from their own secret half and the other's public half, mixed with the fleet's key:
 *
 *     pair key = BLAKE2b-128(key: fleet key, "foliot pair key 1" || X25519(own, other) || lower || higher public half)
 *
 * So no other program can make them, not even a third host or the keeper of the list. When the fleet's key is rotated, all are
 * made anew. A pair key has the fleet key's id.
 *
 * While a fleet is upgraded some hosts have no key in the list yet, or some hosts don't have the new list: - for a host without a
 * key the fleet's key is used, as before; - a host whose key was added while this agent ran is sent the fleet's key until it uses
 * the pair key itself, or
 *    PAIR_SPEAK_S have passed; the fleet's key is accepted from it until PAIR_BIND_S have passed;
 * - from then on, and for keys that were there from the start, only the pair key counts.
 *
 * Cost: 44 bytes for each host of the fleet; an X25519 (some 100 us) once for each host with which packets are exchanged; a table
 * look-up for each packet. A packet names its host before it has proven anything, so strangers' packets cost time, too: at most
 * PAIR_WORK_MAX keys a second for each kind of asker (enum pair_asker), so that strangers can't keep members out. A host with one
 * proof always has its key. A claim displaces neither its key nor one that this agent asked for. Not thread safe. */
#pragma once
#include "wire/probe.h"

#define PAIR_PUBLIC_SIZE 32
#define PAIR_SECRET_SIZE 32
#define PAIR_SPEAK_S     30
#define PAIR_BIND_S      60
#define PAIR_WORK_MAX    64
/* a host whose key was added while this agent ran is a newcomer for so long */
#define PAIR_FRESH_S    600
#define PAIR_FLEET_KEYS 2

struct pair_table;

void pair_secret_new(uint8_t ret_secret[static PAIR_SECRET_SIZE]);
/* false: not a key (a point of low order). */
MUST_CHECK bool pair_public(const uint8_t secret[static PAIR_SECRET_SIZE],
                            uint8_t ret_public[static PAIR_PUBLIC_SIZE]);

/* Keeps a copy of the secret, wiped by pair_table_free(). -ENOMEM, -EINVAL. */
MUST_CHECK int pair_table_new(const uint8_t secret[static PAIR_SECRET_SIZE],
                              struct pair_table **ret);
void pair_table_free(struct pair_table *t); /* accepts NULL */
/* Hosts 0 … count - 1; those above are removed. -ENOMEM. */
MUST_CHECK int pair_table_resize(struct pair_table *t, uint32_t count);
/* The list's entry for a host; NULL: it has no key. since_s: seconds, when the list had it first; for a key that is there already
 * it changes nothing. PAIR_LONG_AGO: binding at once. */
#define PAIR_LONG_AGO INT64_MIN
void pair_table_set(struct pair_table *t, uint32_t host, const uint8_t *public, int64_t since_s);
/* The fleet's keys: pair keys are made from them anew. At most PAIR_FLEET_KEYS. */
void pair_table_fleet(struct pair_table *t, const struct probe_key *keys, size_t count);

/* The reason for which a key is needed. */
enum pair_asker {
    PAIR_OURS,     /* this agent sends to it: always allowed */
    PAIR_LISTED,   /* a packet from the address that the list has for that host */
    PAIR_STRANGER, /* any other packet */
    PAIR_NEWCOMER, /* for the last two, if they name a newcomer: only used in pair_key.c */
    PAIR_ASKERS
};
/* The pair keys with a host, one for each fleet key, in their order; 0: it has none, or too many were asked for in this second.
 * Valid until the next call. */
size_t pair_table_keys(struct pair_table *t, uint32_t host, int64_t now_s, enum pair_asker asker,
                       const struct probe_key **ret_keys);
/* The host used its pair key. */
void pair_table_heard(struct pair_table *t, uint32_t host);
/* Must the pair key be used towards it? */
bool pair_table_speak(const struct pair_table *t, uint32_t host, int64_t now_s);
/* Must everything from it be under the pair key? */
bool pair_table_binds(const struct pair_table *t, uint32_t host, int64_t now_s);
