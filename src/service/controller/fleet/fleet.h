/* fleet.h: the members: who they are, who may join, and whether their last report is current. */
#pragma once
#include "service/controller/fleet/host.h"

struct controller;
struct store;

/* ---- member.c ---- */
struct fleet_join;
/* Would agents accept a list with this host? -EINVAL with words; -ENOMEM. */
MUST_CHECK int member_check(const struct controller *c, const struct fleet_join *join,
                            char ret_words[MEMBER_WORDS_SIZE]);
/* Checks a member from a store of an older controller, which made no such check. An invalid one stays a member. It is logged,
 * and left out of the list. */
void member_look(struct fleet_host *host, const struct fleet_nic *nic);
/* The index for member_check(): built from all NICs; then NICs are added and removed. */
MUST_CHECK int member_index_load(struct controller *c);
void member_index_free(struct controller *c);
MUST_CHECK int member_index_add(struct controller *c, const struct fleet_nic *nic);
void member_index_remove(struct controller *c, const struct fleet_nic *nic);

/* ---- fleet.c ---- */
MUST_CHECK int fleet_load(struct controller *c);
void fleet_free(struct controller *c);
struct fleet_host *fleet_find_host(const struct controller *c, const char *name);
struct fleet_host *fleet_host_by_id(const struct controller *c, int64_t id);
/* NULL: no such NIC, or it was removed */
struct fleet_nic *fleet_find_nic(const struct controller *c, uint32_t id);
struct fleet_join {
    const char *name, *version;
    const struct tls_certificate *certificate;
    Foliot__V1__Nic *const *nics;
    size_t nic_count;
    const uint8_t *pair_key; /* NULL: it comes later */
};
/* -EEXIST: a member with another key; -EINVAL with words; else an error of the store. */
MUST_CHECK int fleet_add(struct controller *c, const struct fleet_join *join,
                         struct fleet_host **ret_host, char ret_words[MEMBER_WORDS_SIZE]);
MUST_CHECK int fleet_remove(struct controller *c, struct fleet_host *host);
/* Called after a store was restored from a copy. Agents already have later versions of the list, and would take new lists with
 * the same numbers for those. So counting goes on from a number that was never reached. */
MUST_CHECK int fleet_renumber(struct store *s);
/* The public half of the key that proves a host's probes, as its agent sends it; size 0: none. All agents get it. Only a few
 * changes per hour are accepted. */
void fleet_pair_key(struct controller *c, struct fleet_host *host, const uint8_t *key, size_t size);
MUST_CHECK int fleet_save_host(struct controller *c, const struct fleet_host *host);
enum freshness fleet_freshness(const struct controller *c, const struct fleet_host *h,
                               struct mono now);
/* The host's last report is still current. */
bool fleet_current(const struct controller *c, const struct fleet_host *h, struct mono now);
/* The NIC's link is up, but the NIC can't send probes; or the state of the link can't be read. */
bool fleet_nic_unwatched(const struct fleet_nic *n);
uint32_t fleet_nics_unwatched(const struct controller *c, const struct fleet_host *h);
/* Tell the brain (core/fleet/fleet.h) about a member, and about its report. -ENOMEM. */
MUST_CHECK int fleet_tell_member(struct controller *c, const struct fleet_host *h);
void fleet_tell_report(struct controller *c, const struct fleet_host *h, bool rollup);
enum health fleet_health(const struct controller *c, const struct fleet_host *h, struct mono now);

/* at_ns minus the difference of two readings of one clock. Returns at_ns if the difference is no plausible age: the readings
 * come from other hosts. */
int64_t controller_back(int64_t at_ns, int64_t later_ns, int64_t earlier_ns);
/* The same for an event of a host. An event can't be older than its join, except for the time that its agent keeps reports. */
int64_t fleet_back(const struct fleet_host *h, int64_t at_ns, int64_t later_ns, int64_t earlier_ns);
/* Bits per second; -1: not known. */
int64_t controller_rate(uint64_t before, uint64_t now, int64_t passed_ns);

/* The switches on a path; NULL: not known. */
const struct fabric_way *fleet_way(const struct controller *c, uint32_t from, uint32_t to,
                                   uint32_t port);
/* The number of these switches; 0: not known. */
uint32_t fleet_path_hops(const struct controller *c, uint32_t from, uint32_t to, uint32_t port);
