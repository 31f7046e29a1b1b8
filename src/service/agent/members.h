/* members.h: the fleet's list on a host. A change is checked, then applied in place; a file keeps the list.
 *
 * The list is in the arrays of struct agent_config. Each array has address space for the largest fleet; the kernel gives
 * memory when it is used. NICs are sorted by ascending id. A host is at its number. Leaves are in the order in which this host
 * first got them.
 *
 * The file has the name of fleet_file with MEMBERS_SUFFIX. It has a header, then the arrays, then the changes since; each
 * change has its length and checksum. The file is never overwritten. A change is appended, and a new file replaces a file with
 * many changes. So an agent that is killed at any time leaves a valid list. A running agent has read the file once: later
 * damage to the file does not affect it. */
#pragma once
#include <foliot.pb-c.h>

#include "service/agent/config.h"

#define MEMBERS_SUFFIX ".members"
#define MEMBERS_WORDS  200
/* changes of at most this many NICs are applied NIC by NIC; larger ones are taken as a new list */
#define MEMBERS_APART_MAX 64

/* ---- members.c ---- */
/* Allocates empty arrays. -ENOMEM. */
MUST_CHECK int members_room(struct agent_config *c);
void members_done(struct agent_config *c);

struct members_nic {
    struct mesh_peer peer;
    struct agent_peer more;
};
/* The effect of a change. */
struct members_plan {
    uint32_t *gone; /* ids, in ascending order */
    uint32_t gone_count;
    struct members_nic *add; /* in ascending order of ids */
    uint32_t add_count;
    /* the change may be applied NIC by NIC: it is small, and no other NIC gets another leaf number */
    bool apart;
    uint64_t digest;
};
/* Checks that a change is valid, that it fits the list, and that the new list equals the controller's list. own: a host whose
 * NICs must stay; HOST_NONE: none. Errors: -EINVAL with words; -EBADMSG with words: valid, but not for this list; -ENOMEM. */
MUST_CHECK int members_plan(const struct agent_config *c, const Foliot__V1__Members *m,
                            struct host_id own, struct members_plan *ret_plan,
                            char ret_words[static MEMBERS_WORDS]);
void members_plan_done(struct members_plan *plan);
/* Applies a plan. peers: also change the array of peers; false: its owner has changed it. */
void members_apply(struct agent_config *c, const Foliot__V1__Members *m,
                   const struct members_plan *plan, bool peers);
/* Gives each leaf its number, the same on all hosts. If all names end in a number, these numbers are used. Else leaves are
 * numbered in the order of their lowest NIC. */
void members_number_leaves(struct agent_config *c);
uint64_t members_digest(const struct agent_config *c);
/* Converts a Fleet of protocol 1 into a page that is the whole list, in the arena. NULL: the arena is full. */
struct message_arena;
Foliot__V1__Members *members_of_fleet(struct message_arena *arena, Foliot__V1__Fleet *fleet);

/* ---- members_address.c ---- */
/* Checks that each address stands once in the list after the plan is applied. -EINVAL with words and the host; -ENOMEM. */
MUST_CHECK int members_check_addresses(const struct agent_config *c,
                                       const struct members_plan *plan, const char **ret_words,
                                       uint32_t *ret_host);

/* ---- members_file.c ---- */
/* Errors: -ENOENT; -EBADMSG with words: no such file, or damage before the end of the arrays. If a later change is damaged or
 * cut off, it and all changes after it are ignored. */
MUST_CHECK int members_load(struct agent_config *c, const char *path,
                            char ret_words[static MEMBERS_WORDS]);
/* Saves the whole list. Later changes are appended to this file. */
MUST_CHECK int members_save(struct agent_config *c, const char *path);
/* Appends a change to the file from which the list was loaded. -EFBIG: save the whole list again, because the file has many
 * changes, or the list is not from such a file, or the file was cut off. */
MUST_CHECK int members_append(struct agent_config *c, const char *path,
                              const Foliot__V1__Members *m);
