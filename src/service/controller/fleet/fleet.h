/* fleet.h: the members: who they are, who may be one, and whose word still counts. */
#pragma once
#include "service/controller/fleet/host.h"

struct controller;
struct store;

/* ---- member.c ---- */
struct fleet_join;
/* Would agents take a list with this host in it? -EINVAL with words; -ENOMEM. */
MUST_CHECK int member_check(const struct controller *c, const struct fleet_join *join,
                            char ret_words[MEMBER_WORDS_SIZE]);
/* A member of a store from before this was asked: a bad one stays a member, is logged, and is left out of the list. */
void member_look(struct fleet_host *host, const struct fleet_nic *nic);
/* What member_check() looks things up in: of all NICs; of one that was placed; of one that goes. */
MUST_CHECK int member_index_load(struct controller *c);
void member_index_free(struct controller *c);
MUST_CHECK int member_index_add(struct controller *c, const struct fleet_nic *nic);
void member_index_remove(struct controller *c, const struct fleet_nic *nic);

/* ---- fleet.c ---- */
MUST_CHECK int fleet_load(struct controller *c);
void fleet_free(struct controller *c);
struct fleet_host *fleet_find_host(const struct controller *c, const char *name);
struct fleet_host *fleet_host_by_id(const struct controller *c, int64_t id);
struct fleet_nic *fleet_find_nic(const struct controller *c, uint32_t id); /* NULL: none, removed */
struct fleet_join {
    const char *name, *version;
    const struct tls_certificate *certificate;
    Foliot__V1__Nic *const *nics;
    size_t nic_count;
    const uint8_t *pair_key; /* NULL: told later */
};
/* -EEXIST: a member with another key; -EINVAL with words; else the store's. */
MUST_CHECK int fleet_add(struct controller *c, const struct fleet_join *join,
                         struct fleet_host **ret_host, char ret_words[MEMBER_WORDS_SIZE]);
MUST_CHECK int fleet_remove(struct controller *c, struct fleet_host *host);
/* Of a store that was put back: agents have had lists of members by the numbers that would come next, and would take
 * the new ones for those. Goes on from a number that is above all that counting has reached. */
MUST_CHECK int fleet_renumber(struct store *s);
/* The public half of the key that a host's probes are proven with, as its agent tells it; size 0: it has none. All
 * agents learn of it. A few changes an hour count. */
void fleet_pair_key(struct controller *c, struct fleet_host *host, const uint8_t *key, size_t size);
MUST_CHECK int fleet_save_host(struct controller *c, const struct fleet_host *host);
enum freshness fleet_freshness(const struct controller *c, const struct fleet_host *h,
                               struct mono now);
/* Its word still counts. */
bool fleet_current(const struct controller *c, const struct fleet_host *h, struct mono now);
/* Its link is up and it can't be probed from, or its link's state can't be read. */
bool fleet_nic_unwatched(const struct fleet_nic *n);
uint32_t fleet_nics_unwatched(const struct controller *c, const struct fleet_host *h);
/* The brain (core/fleet/fleet.h) hears of it: who it is, and what it reported. -ENOMEM. */
MUST_CHECK int fleet_tell_member(struct controller *c, const struct fleet_host *h);
void fleet_tell_report(struct controller *c, const struct fleet_host *h, bool rollup);
enum health fleet_health(const struct controller *c, const struct fleet_host *h, struct mono now);

/* at_ns less what lies between two readings of one clock; at_ns where that is no sensible age:
 * readings are what strangers say. */
int64_t controller_back(int64_t at_ns, int64_t later_ns, int64_t earlier_ns);
/* The same for what a host did or saw: nothing is as old as before it joined, but for what its agent had kept by then. */
int64_t fleet_back(const struct fleet_host *h, int64_t at_ns, int64_t later_ns, int64_t earlier_ns);
/* Bits a second, -1: not known. */
int64_t controller_rate(uint64_t before, uint64_t now, int64_t passed_ns);

/* Which switches the packets of a path pass; NULL: not known. */
const struct fabric_way *fleet_way(const struct controller *c, uint32_t from, uint32_t to,
                                   uint32_t port);
/* How many these are; 0: not known. */
uint32_t fleet_path_hops(const struct controller *c, uint32_t from, uint32_t to, uint32_t port);
