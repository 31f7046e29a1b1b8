/* members.h: what agents get about the fleet's members: changes, pages of the whole list, or (protocol 1) the whole list.
 *
 * Each change has a version and is logged: which host changed, not what. A reply has the present state of hosts. So two
 * changes of one host are sent as one, and a change that an agent already has does no harm. The log is in the store, written
 * in the transaction of the change. So a controller that starts again continues. A reply for many agents is encoded and packed
 * once. */
#pragma once
#include "service/controller/fleet/host.h"

struct controller;
struct message_arena;
struct message_buffer;

#define MEMBERS_KEPT      4096 /* changes in the log */
#define MEMBERS_PAGE_NICS 4096 /* NICs of one page; the last host may add its NICs */

/* In an upgrade a whole fleet changes its keys within minutes. Then the whole list is sent every few seconds, not with each
 * host. */
#define MEMBERS_WHOLE_NS (5 * NS_PER_S)

/* Called after fleet_load. */
MUST_CHECK int members_open(struct controller *c);
void members_close(struct controller *c);
/* The host changed at c->fleet_version: joined, was removed, or (soon: false) has another key; protocol 1 gets a key within
 * MEMBERS_WHOLE_NS. Written into the open transaction. */
MUST_CHECK int members_changed(struct controller *c, struct fleet_host *host, bool soon);

/* What an agent has and wants, from its Batch. */
struct members_wish {
    uint32_t protocol, cursor;
    uint64_t version, digest, base;
    uint64_t refused; /* version that it refused and must not get again; 0: none */
};
/* zstd of a BatchReply that has only members. It is appended to the zstd of another reply. NULL: nothing is new, or out of
 * memory. */
const struct message_buffer *members_for(struct controller *c, const struct members_wish *wish);
/* One host, in the arena; NULL: the arena is full. */
Foliot__V1__FleetHost *members_host(struct controller *c, struct message_arena *arena,
                                    struct fleet_host *host);
/* The whole list for protocol 1. -ENOMEM. */
MUST_CHECK int members_fleet(struct controller *c, struct message_arena *arena,
                             Foliot__V1__Fleet **ret_fleet);
