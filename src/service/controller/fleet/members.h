/* members.h: what agents are told of the fleet's members: what changed, pages of the whole list, or, to protocol 1, the list.
 *
 * Each change has a version and is logged: who changed, not what. A reply holds the hosts as they are now, so two changes of
 * one host are told as one, and a change that an agent has already costs it nothing. The log is in the store, in the
 * transaction of the change itself: a controller that starts anew goes on where it was. What is told to many is encoded
 * and packed once. */
#pragma once
#include "service/controller/fleet/host.h"

struct controller;
struct message_arena;
struct message_buffer;

#define MEMBERS_KEPT      4096 /* changes in the log */
#define MEMBERS_PAGE_NICS 4096 /* of one page, and the NICs of one host more */

/* A whole fleet is upgraded within minutes: the whole list goes out every few seconds then, not with each host. */
#define MEMBERS_WHOLE_NS (5 * NS_PER_S)

/* After fleet_load. */
MUST_CHECK int members_open(struct controller *c);
void members_close(struct controller *c);
/* The host is another one from c->fleet_version on: joined, removed, or (soon false) with another key, which protocol 1 is
 * told within MEMBERS_WHOLE_NS. Into the open transaction. */
MUST_CHECK int members_changed(struct controller *c, struct fleet_host *host, bool soon);

/* What an agent has, as it says in its Batch. */
struct members_wish {
    uint32_t protocol, cursor;
    uint64_t version, digest, base;
    uint64_t refused; /* the version that it refused and needn't see again; 0: none */
};
/* zstd of a BatchReply that holds only members: appended to another one's zstd. NULL: nothing is new, or there is no
 * memory. */
const struct message_buffer *members_for(struct controller *c, const struct members_wish *wish);
/* One host, out of the arena; NULL: it is full. */
Foliot__V1__FleetHost *members_host(struct controller *c, struct message_arena *arena,
                                    struct fleet_host *host);
/* The whole list, as protocol 1 has it. -ENOMEM. */
MUST_CHECK int members_fleet(struct controller *c, struct message_arena *arena,
                             Foliot__V1__Fleet **ret_fleet);
