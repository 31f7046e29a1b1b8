/* members.h: the fleet's list on a host: what changed is checked, then applied where it stands; a file keeps it.
 *
 * The list lies in the arrays of struct agent_config, each with room for the largest fleet (address space: memory is taken
 * as it is used). NICs stand by ascending id, hosts at their number, leaves in the order in which this host met them.
 *
 * The file, beside fleet_file by its name and MEMBERS_SUFFIX: a header, the arrays as they are, then the changes since, each with
 * its length and checksum. It is never written over: a change is put behind, and a file with many changes is replaced by a new
 * one. So an agent that is killed anywhere leaves a list that was good, and finds it. It is read once: what becomes of it
 * afterwards does nothing to an agent that runs. */
#pragma once
#include <foliot.pb-c.h>

#include "service/agent/config.h"

#define MEMBERS_SUFFIX    ".members"
#define MEMBERS_WORDS     200
#define MEMBERS_APART_MAX 64 /* NICs that join or leave one by one; more are a new list */

/* ---- members.c ---- */
/* The arrays, empty. -ENOMEM. */
MUST_CHECK int members_room(struct agent_config *c);
void members_done(struct agent_config *c);

struct members_nic {
    struct mesh_peer peer;
    struct agent_peer more;
};
/* What a change comes to. */
struct members_plan {
    uint32_t *gone; /* ids, ascending */
    uint32_t gone_count;
    struct members_nic *add; /* by ascending id */
    uint32_t add_count;
    bool apart; /* may be told NIC by NIC: few, and no other NIC's leaf gets another number */
    uint64_t digest;
};
/* Is it one, does it go with the list, and is the list then the one that the controller has? own: a host whose NICs must stay;
 * HOST_NONE: none. -EINVAL with words; -EBADMSG with words: good in itself, and not for this list; -ENOMEM. */
MUST_CHECK int members_plan(const struct agent_config *c, const Foliot__V1__Members *m,
                            struct host_id own, struct members_plan *ret_plan,
                            char ret_words[static MEMBERS_WORDS]);
void members_plan_done(struct members_plan *plan);
/* By that plan. peers: the array of peers, too; else its owner has done that. */
void members_apply(struct agent_config *c, const Foliot__V1__Members *m,
                   const struct members_plan *plan, bool peers);
/* The number of each leaf, for all hosts alike: those in the names, if each name ends in one, else by the lowest NIC. */
void members_number_leaves(struct agent_config *c);
uint64_t members_digest(const struct agent_config *c);
/* Fleet, of protocol 1, as a page that is the whole list; out of the arena. NULL: it is full. */
struct message_arena;
Foliot__V1__Members *members_of_fleet(struct message_arena *arena, Foliot__V1__Fleet *fleet);

/* ---- members_address.c ---- */
/* Is each address there once, when the plan is applied? -EINVAL with words and the host it is about; -ENOMEM. */
MUST_CHECK int members_check_addresses(const struct agent_config *c,
                                       const struct members_plan *plan, const char **ret_words,
                                       uint32_t *ret_host);

/* ---- members_file.c ---- */
/* -ENOENT; -EBADMSG with words: not one, or damaged before its last change. What is cut off or damaged behind it is left out. */
MUST_CHECK int members_load(struct agent_config *c, const char *path,
                            char ret_words[static MEMBERS_WORDS]);
/* What is put behind next goes there. */
MUST_CHECK int members_save(struct agent_config *c, const char *path);
/* Puts the change behind the list that was loaded from there; -EFBIG: many have been, or it is of no
 * such file, or that was cut off: save it anew. */
MUST_CHECK int members_append(struct agent_config *c, const char *path,
                              const Foliot__V1__Members *m);
